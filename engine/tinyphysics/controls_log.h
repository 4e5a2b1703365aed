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
#include "schemas/scenario.h"

#include <stddef.h>

enum {
    CONTROLS_ROWS_MIN = LIMIT_CONTROLS_ROWS_MIN,
    CONTROLS_ROWS_MAX = 65536,
};

/* Reads a text of `bytes`, terminated. BAD_INPUT and LIMIT name `source` (its path), line, column,
 * expected and found. Free with controls_log_free. */
enum status controls_log_parse(const char *source, const char *text, size_t bytes,
                               struct controls_log *log, struct error *error);
void controls_log_free(struct controls_log *log);

#endif
