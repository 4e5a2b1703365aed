/*
 * The object and the replay world on a scene of the user's: agent-steps per second of one core, as
 * bench_world.c does on its own motorway. Comparisons with other simulators stand on it
 * (scripts/compare/pufferdrive.py).
 *
 * An agent-step is one agent, ego or an agent that is there, moved on by a tick of 0.1 s. Drives
 * begin anew at the scenario's horizon, which is part of the time. Ego gets no action: it rolls on.
 */
#include "cli/bench/bench.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"
#include "engine/bench/bench.h"
#include "engine/worlds/world.h"
#include "scenarios/scenarios.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SCENE_SLOTS = 16, SCENE_AGENT_STEPS = 400000 /* of one sample, at least */ };

struct sample {
    double steps_per_s; /* agent-steps */
    double agents;      /* there in a tick of one slot, ego among them; the mean */
};

static uint64_t agents_there(const struct world *world)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < world->slot_count; i++) {
        const struct scene *scene = world->ops->slot_scene(world, i);
        count++; /* ego */
        for (uint32_t k = 0; k < scene->agent_count; k++) {
            count += scene->agents[k].present;
        }
    }
    return count;
}

/* From tick 0 to the horizon in all slots; *ns grows by the processor time. */
static enum status drive_once(struct world *world, struct prepared *prepared, uint64_t *agents,
                              uint64_t *ticks, int64_t *ns, struct error *error)
{
    static const struct action rolls[SCENE_SLOTS];
    uint8_t active[SCENE_SLOTS];
    memset(active, 1, sizeof active);
    int64_t start_ns = clock_thread_cpu_ns(clock_system());
    for (uint32_t i = 0; i < SCENE_SLOTS; i++) {
        TRY(world->ops->slot_reset(world, i, prepared, i, error));
    }
    *ns += clock_thread_cpu_ns(clock_system()) - start_ns;
    for (uint32_t tick = 0; tick < prepared_scenario(prepared)->horizon_ticks; tick++) {
        *agents += agents_there(world);
        *ticks += SCENE_SLOTS;
        start_ns = clock_thread_cpu_ns(clock_system());
        world->ops->step(world, rolls, active);
        *ns += clock_thread_cpu_ns(clock_system()) - start_ns;
    }
    for (uint32_t i = 0; i < SCENE_SLOTS; i++) {
        world->ops->slot_release(world, i);
    }
    return STATUS_OK;
}

static enum status sample_world(const struct world_ops *ops, struct prepared *prepared,
                                struct sample *out, struct error *error)
{
    struct world *world = NULL;
    uint64_t agents = 0;
    uint64_t ticks = 0;
    int64_t ns = 0;
    TRY(ops->open(&(struct world_config){.slot_count = SCENE_SLOTS}, &world, error));
    enum status status = STATUS_OK;
    while (status == STATUS_OK && agents < SCENE_AGENT_STEPS) {
        status = drive_once(world, prepared, &agents, &ticks, &ns, error);
    }
    ops->close(world);
    if (status == STATUS_OK) {
        *out = (struct sample){(double)agents * (double)NS_PER_S / (double)ns,
                               (double)agents / (double)ticks};
    }
    return status;
}

static enum status bench_prepared(struct bench_report *report, struct prepared *prepared,
                                  struct error *error)
{
    const struct world_ops *const worlds[] = {&world_replay_ops, &world_object_ops};
    double steps[COUNT_OF(worlds)][BENCH_REPEATS];
    struct sample sample = {0};
    for (size_t w = 0; w < COUNT_OF(worlds); w++) {
        TRY(worlds[w]->accepts(prepared_scenario(prepared), error));
    }
    for (int i = 0; i < BENCH_REPEATS; i++) {
        for (size_t w = 0; w < COUNT_OF(worlds); w++) {
            TRY(sample_world(worlds[w], prepared, &sample, error));
            steps[w][i] = sample.steps_per_s;
            if (i == 0) {
                bench_add(report, sample.agents, "agents/tick",
                          1.0 + prepared_scenario(prepared)->agent_count, "all of the scenario",
                          "%s.agents", worlds[w]->name);
            }
        }
    }
    double replay = engine_bench_median(steps[0], BENCH_REPEATS);
    bench_add(report, replay, "agent-steps/s/core", 0.0, "", "replay.physics");
    bench_add(report, engine_bench_median(steps[1], BENCH_REPEATS), "agent-steps/s/core", replay,
              "agents follow their recording", "object.physics");
    return STATUS_OK;
}

enum status bench_scene(const char *path, struct bench_report *report, struct error *error)
{
    struct suite *suite = NULL;
    struct prepared *prepared = NULL;
    TRY(suite_load(path, &suite, error));
    enum status status =
        suite->entry_count > 0
            ? STATUS_OK
            : error_set(error, STATUS_BAD_INPUT, "%s: expected a scenario, found none", path);
    THEN(status, prepared_create(&suite->entries[0].document->scenario, &prepared, error));
    THEN(status, bench_prepared(report, prepared, error));
    prepared_unref(prepared);
    suite_destroy(suite);
    return status;
}
