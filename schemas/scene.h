/*
 * Scene: the true state of one rollout at one tick, where truth exists. Scoring, the rasteriser,
 * the trace and the guardian all read this record, so all of them speak of the same world.
 */
#ifndef SWERVE_SCHEMAS_SCENE_H
#define SWERVE_SCHEMAS_SCENE_H

#include "base/geom.h"
#include "schemas/limits.h"
#include "schemas/scenario.h"

#include <stdbool.h>
#include <stdint.h>

struct ego_state {
    struct pose pose;      /* box centre */
    double speed_mps;      /* along the heading, >= 0 */
    double accel_mps2;     /* longitudinal, as physics realised it over the last tick */
    double lat_accel_mps2; /* left positive */
    double yaw_rate_rps;
    double steer_rad; /* front-wheel angle as realised */
};

struct agent_state {
    struct pose pose;
    double speed_mps; /* along heading; may be negative (reversing) */
    double accel_mps2;
    bool present;
};

#define SCENE_FORESEEN_TICKS 50 /* for which agents are trusted that a world foresees */

/* Fixed size so that it can be a slot, a trace frame or a stack value. Agent i is agents[i] of the
 * scenario; sizes and kinds are there. */
struct scene {
    uint32_t tick;
    uint32_t agent_count;
    struct ego_state ego;
    struct conditions conditions;        /* as they are now; branches may change them */
    uint8_t signal_light[LIMIT_SIGNALS]; /* enum traffic_light of the map's signals */
    uint8_t signal_held[LIMIT_SIGNALS];  /* 0: by its phases, else an intervention's light + 1 */
    struct agent_state agents[LIMIT_AGENTS];
};

#endif
