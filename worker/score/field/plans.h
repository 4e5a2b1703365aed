/*
 * Plans along a drive, for NAVSIM's extended comfort: what was planned is compared with what had
 * been planned 0.5 s before, as both would be driven. [E] of field.h: scene_aggregator.py,
 * _compute_two_frame_comfort, on frames 0.5 s apart.
 *
 * A plain value without pointers: a fork copies it.
 */
#ifndef SWERVE_WORKER_SCORE_FIELD_PLANS_H
#define SWERVE_WORKER_SCORE_FIELD_PLANS_H

#include "schemas/planner.h"
#include "worker/tracker/tracker.h"

#include <stdbool.h>
#include <stdint.h>

enum { PLANS_APART_TICKS = 5 };

struct plans {
    bool has_last; /* the plan of last_tick, which reached 4 s */
    uint32_t last_tick;
    struct tracker_drive last;
    uint32_t pairs;
    uint32_t agreed;
};

/* A planner's answer at a tick, from what it was shown of ego; plans of ticks between frames are
 * not looked at. Without a trajectory, or with one that ends before 4 s, there is no frame. */
void plans_add(struct plans *plans, uint32_t tick, const struct swerve_observation *ego,
               double wheelbase_m, const struct swerve_answer *answer);

/* Ego is moved by something else: the plan before it and that after it need not agree. */
void plans_break(struct plans *plans);

/* Share of the pairs that agree; NAN: there are none. */
double plans_comfort(const struct plans *plans);

#endif
