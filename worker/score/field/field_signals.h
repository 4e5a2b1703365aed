/*
 * Extended comfort: how far two plans for the same instants differ, as NAVSIM scores it [E]
 * (navsim 2.1.2, pdm_comfort_metrics.py).
 */
#ifndef SWERVE_WORKER_SCORE_FIELD_FIELD_SIGNALS_H
#define SWERVE_WORKER_SCORE_FIELD_FIELD_SIGNALS_H

#include <stdbool.h>
#include <stdint.h>

enum { FIELD_SAMPLES_MAX = 256 };

/* A plan as it is driven, step_s apart, count 4..FIELD_SAMPLES_MAX; both arrays are borrowed. */
struct field_signals {
    uint32_t count;
    double step_s;
    const double *accel_mps2; /* its length at the rear axle */
    const double *heading_rad;
};

/* Root mean squares of what two plans for the same instants differ by: acceleration, jerk, yaw
 * rate, yaw acceleration. True: each is within its bound. */
enum { FIELD_DIFFERENCES = 4 };
bool field_extended_comfort(const struct field_signals *now, const struct field_signals *before,
                            double differences[FIELD_DIFFERENCES]);

#endif
