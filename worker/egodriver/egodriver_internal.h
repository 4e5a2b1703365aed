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

/* A message as it was sent. Shared by the sessions of a fork; whose it is stands in its first
 * field, which is written before each sending (ego_message_address). */
struct ego_message {
    uint32_t references;
    enum ego_call call;
    uint8_t answer[SHA256_BYTES]; /* of EGO_DRIVE: digest of the trajectory that came back */
    size_t bytes;
    uint8_t data[];
};

struct ego_log {
    uint32_t count;
    struct ego_message **messages;
    uint64_t bytes; /* beyond EGODRIVER_LOG_BYTES_MAX: nothing is kept, forks are refused */
};

/* Takes a message over; it is freed with the log, or by ego_log_bound. NO_MEMORY: the caller keeps
 * it. */
enum status ego_log_add(struct ego_log *log, struct ego_message *message, struct error *error);
/* Drops messages that are more than these bytes, when none of them is on its way. */
void ego_log_bound(struct ego_log *log, uint64_t bytes_max);
enum status ego_log_copy(const struct ego_log *from, struct ego_log *to, struct error *error);
void ego_log_clear(struct ego_log *log);
bool ego_log_is_whole(const struct ego_log *log);
void ego_message_free(struct ego_message *message); /* a reference; accepts NULL */

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

/* Each allocates a message whose session is still to be written; NULL: no memory. */
struct ego_message *ego_message_start(const struct ego_cameras *cameras, bool tell_scene,
                                      const struct swerve_episode *episode, int revision);
struct ego_message *ego_message_close(void);
struct ego_message *ego_message_fork(const char *fork_uuid);
struct ego_message *ego_message_motion(const struct ego_frame *frame,
                                       const struct swerve_observation *seen);
struct ego_message *ego_message_route(const struct ego_frame *frame,
                                      const struct swerve_observation *seen);
struct ego_message *ego_message_image(const struct swerve_sensor *sensor, uint32_t frame);
struct ego_message *ego_message_drive(bool carla, const struct swerve_observation *seen,
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
