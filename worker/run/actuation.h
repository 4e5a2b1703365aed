/*
 * Actuation model: what stands between the planner and the car. Turns the planner's answers into
 * the action that reaches the world each tick: the delay line of "what if inference had taken 120
 * ms", and the ego interventions that replace the planner for a while. Also says which sensors are
 * dark.
 *
 * A plain value without pointers into itself: a fork copies it.
 */
#ifndef SWERVE_WORKER_RUN_ACTUATION_H
#define SWERVE_WORKER_RUN_ACTUATION_H

#include "engine/traffic/roadmap.h"
#include "schemas/planner.h"
#include "schemas/scenario.h"
#include "schemas/scene.h"

#include <stdbool.h>
#include <stdint.h>

/* The longest latency plus jitter that a scenario may ask for, 10 s + 10 s, and one tick. */
enum { ACTUATION_DELAY_TICKS_MAX = 201 };

struct actuation_pending {
    struct action action;
    int64_t due_us; /* simulated time at which it reaches the car */
};

struct actuation {
    uint64_t seed;
    /* delay line, ring of at most one answer per tick */
    struct actuation_pending pending[ACTUATION_DELAY_TICKS_MAX];
    uint32_t pending_head;
    uint32_t pending_count;
    struct action held; /* last action that arrived */
    double latency_ms;
    double jitter_ms;
    uint32_t latency_until_tick; /* exclusive; UINT32_MAX: to the end */
    /* sensors */
    uint32_t dark_until_tick[4]; /* exclusive, by bit of enum sensor_mask */
    /* ego override: the intervention in force, NULL: the planner drives. Borrowed from the
     * scenario. */
    const struct intervention *override;
    uint32_t override_tick;
    double override_speed_mps; /* at its start */
    double override_offset_m;  /* lateral offset from the route at its start */
};

void actuation_init(struct actuation *actuation, uint64_t seed);

/* Puts an ego intervention or one of the actuation model in force at this tick; world interventions
 * are not ours (false). */
bool actuation_intervene(struct actuation *actuation, const struct intervention *intervention,
                         const struct scene *scene, const struct route *route);

/* enum sensor_mask bits that are dark at this tick. */
uint32_t actuation_sensors_dark(const struct actuation *actuation, uint32_t tick);

/* Steps of a learned world's sampler that the actions in force leave out of this tick. */
uint32_t actuation_skipped(const struct actuation *actuation, uint32_t tick);

/* Takes the planner's answer of this tick and returns the action that reaches the car now. */
struct action actuation_drive(struct actuation *actuation, const struct action *answer,
                              const struct scene *scene, const struct route *route,
                              double wheelbase_m, double route_s_m);

#endif
