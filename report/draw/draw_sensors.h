/*
 * Sensors of a rig in a recorded drive, drawn again: frames and turns as a planner was shown them.
 */
#ifndef SWERVE_REPORT_DRAW_DRAW_SENSORS_H
#define SWERVE_REPORT_DRAW_DRAW_SENSORS_H

#include "engine/rigs/scan.h"
#include "report/report_drive.h"
#include "schemas/rig/rig.h"

struct draw_sensors;

/* `rig` is borrowed. */
enum status draw_sensors_create(const struct rig *rig, struct draw_sensors **out,
                                struct error *error);
void draw_sensors_destroy(struct draw_sensors *sight); /* accepts NULL */

/* Looks at a tick and the one before it. False: it was not recorded, its frames are those of a
 * model, or memory ran out. The drive is borrowed until the next one. */
bool draw_sensors_look(struct draw_sensors *sight, struct report_drive *drive, int32_t rollout,
                       uint32_t tick, uint64_t seed);

/* Frames of a camera that the tick has: at tick 0 one. */
uint32_t draw_sensors_frames(const struct draw_sensors *sight, uint32_t camera);

/* Frame `index` below that, RGB [height][width][3], until the next call; *time_ns: its time. */
const uint8_t *draw_sensors_frame(struct draw_sensors *sight, uint32_t camera, uint32_t index,
                                  int64_t *time_ns);

/* The turn of a lidar that ends with the tick, until the next call. */
const struct scan_point *draw_sensors_turn(struct draw_sensors *sight, uint32_t lidar,
                                           uint32_t *count);

#endif
