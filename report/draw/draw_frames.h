/*
 * Frames of a recorded tick for the player in a browser: what each camera of the drive's rig saw,
 * at the camera's own size, drawn again.
 */
#ifndef SWERVE_REPORT_DRAW_DRAW_FRAMES_H
#define SWERVE_REPORT_DRAW_DRAW_FRAMES_H

#include "base/status.h"
#include "store/api/store.h"

#include <stddef.h>
#include <stdint.h>

enum { DRAW_FRAMES_PIXELS_MAX = 40 << 20 }; /* of all cameras */

/* {"rig": id, "tick": n, "cameras": [{"id", "width", "height", "jpeg"}]}: the newest frame of each
 * camera at a tick, JPEG as base64. *json is malloc'ed, not terminated, the caller's. NOT_FOUND: no
 * such outcome or tick, no trace of it was kept, its planner brought a rig that the store does not
 * have, or its pictures are those of a model. LIMIT: more than DRAW_FRAMES_PIXELS_MAX. */
enum status draw_frames_fetch(struct store *store, int64_t outcome_id, uint32_t tick, char **json,
                              size_t *bytes, struct error *error);

#endif
