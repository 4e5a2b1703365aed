/*
 * Controls log: one recorded drive of the controls challenge, a CSV file at 10 Hz with the columns
 * t, vEgo, aEgo, roll, targetLateralAcceleration and steerCommand, in any order, others ignored.
 *
 * Invariant: every number is finite, but steer beyond TINYPHYSICS_CONTROL_STEP may be absent (0).
 * Signs are the simulator's: steer is positive to the right, the file's is to the left.
 */
#ifndef SWERVE_ENGINE_TINYPHYSICS_CONTROLS_LOG_H
#define SWERVE_ENGINE_TINYPHYSICS_CONTROLS_LOG_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum {
    CONTROLS_ROWS_MIN = 102, /* two steps under control: a difference for the jerk */
    CONTROLS_ROWS_MAX = 65536,
};

struct controls_row {
    double target_mps2;        /* lateral acceleration asked for */
    double roll_lataccel_mps2; /* of the road's roll: g sin(roll) */
    double v_ego_mps, a_ego_mps2;
    double steer; /* logged, -2 .. 2 after clipping */
};

struct controls_log {
    uint32_t count;
    struct controls_row *rows;
};

/* Reads a text of `bytes`, terminated. BAD_INPUT and LIMIT name `source` (its path), line, column,
 * expected and found. Free with controls_log_free. */
enum status controls_log_parse(const char *source, const char *text, size_t bytes,
                               struct controls_log *log, struct error *error);
void controls_log_free(struct controls_log *log);

#endif
