/*
 * Bench: how many agent-steps per second the object world makes, without observation, planner or
 * scoring. `swerve bench world` calls it.
 */
#ifndef SWERVE_ENGINE_BENCH_BENCH_H
#define SWERVE_ENGINE_BENCH_BENCH_H

#include "base/arena.h"
#include "base/clock.h"
#include "engine/worlds/world.h"

/* A three-lane motorway with a bend and 20 vehicles that follow and change lanes (IDM and MOBIL),
 * ego in the middle. Everything the record points to comes from the arena. */
enum status engine_bench_scenario(struct arena *arena, struct scenario *out, struct error *error);

/* Steps `slots` rollouts of the prepared scenario in the object world `ticks` times under a
 * constant action, on the calling thread, starting anew whenever the horizon is reached.
 * *agent_steps counts present agents (ego not included), *ns the thread's processor time. */
enum status engine_bench_physics(struct prepared *prepared, uint32_t slots, uint32_t ticks,
                                 const struct clock *clock, int64_t *agent_steps, int64_t *ns,
                                 struct error *error);

/* The middle one of so many figures, which are sorted; of an even number the upper one. */
double engine_bench_median(double *values, uint32_t count);

#endif
