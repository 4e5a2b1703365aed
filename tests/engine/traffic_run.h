/*
 * One scenario in one world, tick by tick: what the tests of traffic share.
 */
#ifndef SWERVE_TESTS_ENGINE_TRAFFIC_RUN_H
#define SWERVE_TESTS_ENGINE_TRAFFIC_RUN_H

#include "engine/worlds/world.h"
#include "tests/engine/maps.h"
#include "tests/harness.h"

struct run {
    struct arena arena;
    struct scenario scenario;
    struct prepared *prepared;
    const struct world_ops *ops;
    struct world *world;
    const struct scene *scene;
};

static inline void begin(struct run *run)
{
    *run = (struct run){0};
    arena_init(&run->arena, 1 << 23);
}

static inline void start(struct run *run, const struct world_ops *ops, uint64_t seed)
{
    struct error error;
    run->ops = ops;
    EXPECT_OK(prepared_create(&run->scenario, &run->prepared, &error), error);
    EXPECT_OK(ops->open(&(struct world_config){.slot_count = 1}, &run->world, &error), error);
    EXPECT_OK(ops->slot_reset(run->world, 0, run->prepared, seed, &error), error);
    run->scene = ops->slot_scene(run->world, 0);
}

static inline void tick(struct run *run, double accel)
{
    struct action action = {accel, 0.0};
    uint8_t active = 1;
    run->ops->step(run->world, &action, &active);
}

static inline void end(struct run *run)
{
    run->ops->close(run->world);
    prepared_unref(run->prepared);
    arena_finish(&run->arena);
}

static inline struct box body(const struct run *run, uint32_t agent)
{
    const struct agent *a = &run->scenario.agents[agent];
    return box_make(run->scene->agents[agent].pose, a->length_m, a->width_m);
}

static inline struct manoeuvre *script(struct run *run, struct agent *agent, uint32_t count)
{
    agent->manoeuvres = arena_alloc(&run->arena, count, sizeof *agent->manoeuvres);
    agent->manoeuvre_count = count;
    return agent->manoeuvres;
}

#endif
