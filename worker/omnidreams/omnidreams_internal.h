/*
 * Insides of the client of world models, shared by its files. See omnidreams.h.
 */
#ifndef SWERVE_WORKER_OMNIDREAMS_INTERNAL_H
#define SWERVE_WORKER_OMNIDREAMS_INTERNAL_H

#include "schemas/rig/rig.h"
#include "schemas/scenario.h"
#include "worker/omnidreams/omnidreams.h"

#include <stddef.h>

enum {
    OMNIDREAMS_REPLY_BYTES_MAX = 256 << 20, /* 32 frames of 16 cameras */
    OMNIDREAMS_SESSION_BYTES = 128,
};

/* Formats of a picture, as the contract numbers them. */
enum omnidreams_format { OMNIDREAMS_PNG = 1, OMNIDREAMS_JPEG = 2, OMNIDREAMS_PLANES = 4 };

/* A picture of a camera as a file. */
struct omnidreams_picture {
    uint8_t *data; /* malloc'ed */
    size_t bytes;
    uint32_t format; /* enum omnidreams_format */
};

/* Decodes a picture of a camera's size into rgb [height][width][3]. BAD_INPUT. */
enum status omnidreams_picture_read(const uint8_t *data, size_t bytes, uint32_t format,
                                    const struct rig_camera *camera, uint8_t *rgb,
                                    struct error *error);

/* ---- omnidreams_seeds.c ---- */

/* The first picture of a camera in a scenario's surroundings; *out is the caller's. NOT_FOUND says
 * where it was looked for. */
enum status omnidreams_seed(const struct omnidreams_seeds *seeds, const struct scenario *scenario,
                            const struct conditions *conditions, const char *camera,
                            struct omnidreams_picture *out, struct error *error);

/* ---- omnidreams_messages.c: records as messages ---- */

/* A message, malloc'ed. */
struct omnidreams_message {
    uint8_t *data;
    size_t bytes;
};

/* Parts that a session begins with. */
struct omnidreams_start {
    const struct scenario *scenario;
    const struct rig *rig;
    struct conditions conditions;
    const uint8_t *map;
    size_t map_bytes;
    const struct omnidreams_picture *first; /* [rig->camera_count] */
    const char *prompt;                     /* "": made of the conditions */
    uint64_t seed;
};

enum status omnidreams_message_start(const struct omnidreams_start *start,
                                     struct omnidreams_message *out, struct error *error);
enum status omnidreams_message_close(const char *session, struct omnidreams_message *out,
                                     struct error *error);
/* `rear_m`: from the rear axle to the centre of ego's box. bodies: [frame_count][body_count]. */
enum status omnidreams_message_chunk(const char *session, uint32_t rate_hz, double rear_m,
                                     const struct swerve_world_chunk *chunk,
                                     const struct swerve_world_body *bodies,
                                     struct omnidreams_message *out, struct error *error);

/* Reads an answer to start_session. BAD_INPUT: it is none. */
enum status omnidreams_session_read(const uint8_t *data, size_t bytes,
                                    char session[OMNIDREAMS_SESSION_BYTES], struct error *error);

/* Decodes an answer to render_video_chunk into the frames of the chunk, which lie in `memory`.
 * BAD_INPUT says which frame is missing or wrong. */
enum status omnidreams_chunk_read(const uint8_t *data, size_t bytes, const struct rig *rig,
                                  const struct swerve_world_chunk *chunk, uint8_t *memory,
                                  struct error *error);

#endif
