/*
 * Frames of a recorded tick for the player in a browser: what each camera of the drive's rig saw,
 * at the camera's own size, drawn again, or of a learned world as it was kept.
 */
#ifndef SWERVE_REPORT_DRAW_DRAW_FRAMES_H
#define SWERVE_REPORT_DRAW_DRAW_FRAMES_H

#include "base/status.h"
#include "report/report_drive.h"
#include "store/api/store.h"

#include <stddef.h>
#include <stdint.h>

enum { DRAW_FRAMES_PIXELS_MAX = 40 << 20 }; /* of all cameras */

/* As draw_frames_fetch() below, of an opened drive; pictures of at most width_max columns, 0: as
 * large as they are. */
enum status draw_frames(struct report_drive *drive, const struct outcome *outcome, uint32_t tick,
                        uint32_t width_max, char **json, size_t *bytes, struct error *error);

/* {"rig": id, "tick": n, "cameras": [{"id", "width", "height", "jpeg"}]}: the newest frame of each
 * camera at a tick, JPEG as base64; of a learned world those of the nearest tick that has some.
 * *json is malloc'ed, the caller's. NOT_FOUND: no such outcome or tick, no trace of
 * it was kept, its planner brought a rig that the store does not have, or a model made its pictures
 * and none were kept. LIMIT: more than DRAW_FRAMES_PIXELS_MAX. */
enum status draw_frames_fetch(struct store *store, int64_t outcome_id, uint32_t tick, char **json,
                              size_t *bytes, struct error *error);

#endif
