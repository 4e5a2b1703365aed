/*
 * Insides of the egodriver client, shared by its files. See egodriver.h.
 */
#ifndef SWERVE_WORKER_EGODRIVER_INTERNAL_H
#define SWERVE_WORKER_EGODRIVER_INTERNAL_H

#include "base/sha256.h"
#include "schemas/rig/rig.h"
#include "worker/contract/contract_call.h"
#include "worker/contract/contract_camera.h"
#include "worker/egodriver/egodriver.h"
#include "worker/grpc/grpc.h"

#include <stddef.h>

enum {
    EGODRIVER_UUID_BYTES = 37, /* with its end */
    EGODRIVER_REASON_BYTES = 240,
    EGODRIVER_LOG_BYTES_MAX = 512 << 20, /* of all that one session was sent */
    EGODRIVER_TOLD_BYTES = 4096,         /* of what its driver told */
    EGODRIVER_TOLD_LINE_BYTES = 1024,
};

/* Calls of the service, in the order of a tick. */
enum ego_call {
    EGO_VERSION = 0,
    EGO_START,
    EGO_CLOSE,
    EGO_MOTION,
    EGO_ROUTE,
    EGO_IMAGE,
    EGO_DRIVE,
    EGO_FORK,
    EGO_CALL_COUNT
};

/* Cameras that a policy is shown. */
struct ego_cameras {
    uint32_t count;
    struct rig_camera cameras[RIG_CAMERAS_MAX];
};

/* ---- egodriver_log.c: what sessions were sent, and what their drivers told ---- */

/* Memory that messages are made in, one behind the other, mapped at once: a page fault for every
 * page of kept pictures takes longer than writing them. */
struct ego_block;

/* A message as it was sent. Shared by the sessions of a fork; whose it is stands in its first
 * field, which is written before each sending (ego_message_address). */
struct ego_message {
    uint32_t references;
    enum ego_call call;
    struct ego_block *block;
    uint8_t answer[SHA256_BYTES]; /* of EGO_DRIVE: digest of the trajectory that came back */
    size_t bytes;
    uint8_t data[];
};

struct ego_log {
    uint32_t count;
    struct ego_message **messages;
    uint64_t bytes; /* beyond EGODRIVER_LOG_BYTES_MAX: nothing is kept, forks are refused */
};

/* A message of `bytes`, not written yet, in *block where there is room, else in a new one, which
 * *block becomes; NULL: no memory. */
struct ego_message *ego_message_make(struct ego_block **block, enum ego_call call, size_t bytes);
void ego_message_free(struct ego_message *message); /* a reference; accepts NULL */
void ego_block_leave(struct ego_block **block);     /* no message is made in it any more */

/* Takes a message over; it is freed with the log, or by ego_log_bound. NO_MEMORY: the caller keeps
 * it. */
enum status ego_log_add(struct ego_log *log, struct ego_message *message, struct error *error);
/* Drops messages that are more than these bytes, when none of them is on its way. */
void ego_log_bound(struct ego_log *log, uint64_t bytes_max);
enum status ego_log_copy(const struct ego_log *from, struct ego_log *to, struct error *error);
void ego_log_clear(struct ego_log *log);
bool ego_log_is_whole(const struct ego_log *log);

/* Debug bytes of a session's newest answers, a line each: "drive 12: " and the bytes as they came,
 * those that are no printable ASCII as \xNN. Nobody reads anything into them. */
struct ego_told {
    size_t bytes;
    char text[EGODRIVER_TOLD_BYTES + 1]; /* terminated */
};

/* Adds a line; old ones make way for it, and what is too long for a line is cut and said. */
void ego_told_add(struct ego_told *told, uint32_t tick, const uint8_t *data, size_t bytes);

/* ---- egodriver_messages.c: records as messages ---- */

/* Frame of the rig: how far it lies behind the centre of ego's box. */
struct ego_frame {
    double rear_m;
};

/* Each makes a message whose session is still to be written; NULL: no memory. */
struct ego_message *ego_message_start(struct ego_block **block, const struct ego_cameras *cameras,
                                      bool tell_scene, const struct swerve_episode *episode,
                                      int revision);
struct ego_message *ego_message_close(struct ego_block **block);
struct ego_message *ego_message_fork(struct ego_block **block, const char *fork_uuid);
struct ego_message *ego_message_motion(struct ego_block **block, const struct ego_frame *frame,
                                       const struct swerve_observation *seen);
struct ego_message *ego_message_route(struct ego_block **block, const struct ego_frame *frame,
                                      const struct swerve_observation *seen);
struct ego_message *ego_message_image(struct ego_block **block, const struct swerve_sensor *sensor,
                                      uint32_t frame);
struct ego_message *ego_message_drive(struct ego_block **block, bool carla,
                                      const struct swerve_observation *seen,
                                      const struct swerve_surroundings *around);

/* Writes whose a message is. */
void ego_message_address(struct ego_message *message, const char *uuid);

/* Reads an answer to drive. `digest`: of the trajectory's numbers; its debug bytes go to `told`.
 * False: `reason` says what is wrong with it. */
bool ego_answer_read(const uint8_t *data, size_t bytes, const struct ego_frame *frame,
                     const struct swerve_observation *seen, struct swerve_answer *answer,
                     uint8_t digest[SHA256_BYTES], struct ego_told *told,
                     char reason[EGODRIVER_REASON_BYTES]);
/* The digest alone. False: it is no answer. */
bool ego_answer_digest(const uint8_t *data, size_t bytes, uint8_t digest[SHA256_BYTES]);

#endif
