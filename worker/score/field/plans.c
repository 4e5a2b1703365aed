/*
 * Pairs of plans. See plans.h.
 */
#include "worker/score/field/plans.h"

#include "base/units.h"
#include "worker/score/field/field_signals.h"

#include <math.h>

enum { OVERLAP = TRACKER_DRIVE_SAMPLES - PLANS_APART_TICKS };

static bool agree(const struct tracker_drive *now, const struct tracker_drive *before)
{
    double differences[FIELD_DIFFERENCES];
    const struct field_signals a = {.count = OVERLAP,
                                    .step_s = TICK_S,
                                    .accel_mps2 = now->accel_mps2,
                                    .heading_rad = now->heading_rad};
    const struct field_signals b = {.count = OVERLAP,
                                    .step_s = TICK_S,
                                    .accel_mps2 = before->accel_mps2 + PLANS_APART_TICKS,
                                    .heading_rad = before->heading_rad + PLANS_APART_TICKS};
    return field_extended_comfort(&a, &b, differences);
}

void plans_add(struct plans *plans, uint32_t tick, const struct swerve_observation *ego,
               double wheelbase_m, const struct swerve_answer *answer)
{
    const struct tracker_ego now = {
        .x_m = ego->x_m,
        .y_m = ego->y_m,
        .heading_rad = ego->heading_rad,
        .speed_mps = ego->speed_mps,
        .steer_rad = ego->steer_rad,
        .wheelbase_m = wheelbase_m,
    };
    struct tracker_drive drive;
    if (tick % PLANS_APART_TICKS != 0) {
        return;
    }
    if (answer->point_count == 0 ||
        !tracker_simulate(&now, ego->accel_mps2, ego->yaw_rate_rps, answer->points,
                          answer->point_count, &drive)) {
        plans_break(plans);
        return;
    }
    if (plans->has_last && plans->last_tick + PLANS_APART_TICKS == tick) {
        plans->pairs++;
        plans->agreed += agree(&drive, &plans->last);
    }
    plans->has_last = true;
    plans->last_tick = tick;
    plans->last = drive;
}

void plans_break(struct plans *plans)
{
    plans->has_last = false;
}

double plans_comfort(const struct plans *plans)
{
    return plans->pairs > 0 ? (double)plans->agreed / plans->pairs : NAN;
}
