/*
 * The fanout benchmark. The scene is that of engine/bench/bench.c. Both ways run in one process and
 * world after the other, each alone in its world; processor time, so that neighbours do not count.
 */
#include "engine/bench/bench_fanout.h"

#include "engine/bench/bench.h"

#include <stdlib.h>
#include <string.h>

enum { FORKS = 500, HALF = BENCH_FANOUT_TICKS / 2 };

struct fanout {
    const struct model *model;
    const struct clock *clock;
    const struct world_ops *ops;
    struct prepared *prepared;
    struct world *world;
    struct action actions[BENCH_FANOUT_BRANCHES];
    uint8_t active[BENCH_FANOUT_BRANCHES];
};

static enum status open_world(struct fanout *fanout, struct error *error)
{
    const struct world_config config = {
        .slot_count = BENCH_FANOUT_BRANCHES,
        .model = fanout->model,
        .thread_count = 1,
    };
    fanout->ops = world_ops_for_tier(model_config(fanout->model)->tier);
    return fanout->ops->open(&config, &fanout->world, error);
}

static void close_world(struct fanout *fanout)
{
    if (fanout->world != NULL) {
        fanout->ops->close(fanout->world);
        fanout->world = NULL;
    }
}

/* Slots 0 .. count - 1 for `ticks`, each braking in its own measure. */
static void drive(struct fanout *fanout, uint32_t count, uint32_t ticks)
{
    memset(fanout->active, 0, sizeof fanout->active);
    for (uint32_t i = 0; i < count; i++) {
        fanout->active[i] = 1;
        fanout->actions[i] = (struct action){-0.2 * i, 0.0};
    }
    for (uint32_t tick = 0; tick < ticks; tick++) {
        fanout->ops->step(fanout->world, fanout->actions, fanout->active);
    }
}

static enum status run_apart(struct fanout *fanout, struct bench_fanout_result *out,
                             struct error *error)
{
    struct world_cost cost;
    enum status status = open_world(fanout, error);
    int64_t start_ns = clock_thread_cpu_ns(fanout->clock);
    for (uint32_t i = 0; i < BENCH_FANOUT_BRANCHES && status == STATUS_OK; i++) {
        status = fanout->ops->slot_reset(fanout->world, i, fanout->prepared, 1, error);
    }
    if (status == STATUS_OK) {
        drive(fanout, BENCH_FANOUT_BRANCHES, BENCH_FANOUT_TICKS);
        fanout->ops->cost(fanout->world, &cost);
        out->apart_ns = (double)(clock_thread_cpu_ns(fanout->clock) - start_ns);
        out->apart_ticks = cost.ticks;
        out->apart_pages = cost.pages_peak;
    }
    close_world(fanout);
    return status;
}

static enum status run_fanout(struct fanout *fanout, struct bench_fanout_result *out,
                              struct error *error)
{
    struct world_cost before;
    struct world_cost forked;
    struct world_cost cost;
    uint32_t window = model_config(fanout->model)->window;
    enum status status = open_world(fanout, error);
    int64_t start_ns = clock_thread_cpu_ns(fanout->clock);
    THEN(status, fanout->ops->slot_reset(fanout->world, 0, fanout->prepared, 1, error));
    if (status == STATUS_OK) {
        drive(fanout, 1, HALF);
        fanout->ops->cost(fanout->world, &before);
        for (uint32_t i = 1; i < BENCH_FANOUT_BRANCHES; i++) {
            fanout->ops->slot_fork(fanout->world, 0, i);
        }
        fanout->ops->cost(fanout->world, &forked);
        drive(fanout, BENCH_FANOUT_BRANCHES, BENCH_FANOUT_TICKS - HALF);
        fanout->ops->cost(fanout->world, &cost);
        out->fanout_ns = (double)(clock_thread_cpu_ns(fanout->clock) - start_ns);
        out->fanout_ticks = cost.ticks;
        out->fanout_pages = forked.pages_peak;
        out->page_bytes = cost.page_bytes;
        out->pages_shared = forked.pages_shared - before.pages_shared;
        out->pages_expected =
            (uint64_t)(BENCH_FANOUT_BRANCHES - 1) * (window < HALF + 1 ? window : HALF + 1);
    }
    close_world(fanout);
    return status;
}

static int compare_times(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a;
    int64_t y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static enum status time_forks(struct fanout *fanout, struct bench_fanout_result *out,
                              struct error *error)
{
    int64_t times_ns[FORKS];
    enum status status = open_world(fanout, error);
    THEN(status, fanout->ops->slot_reset(fanout->world, 0, fanout->prepared, 1, error));
    if (status == STATUS_OK) {
        drive(fanout, 1, model_config(fanout->model)->window);
        for (int i = 0; i < FORKS; i++) {
            uint32_t slot = 1 + (uint32_t)i % (BENCH_FANOUT_BRANCHES - 1);
            int64_t start_ns = clock_now_ns(fanout->clock);
            fanout->ops->slot_fork(fanout->world, 0, slot);
            times_ns[i] = clock_now_ns(fanout->clock) - start_ns;
            fanout->ops->slot_release(fanout->world, slot);
        }
        qsort(times_ns, FORKS, sizeof times_ns[0], compare_times);
        out->fork_ns = (double)times_ns[FORKS / 2];
        out->fork_p99_ns = (double)times_ns[FORKS * 99 / 100];
    }
    close_world(fanout);
    return status;
}

enum status bench_fanout_run(const struct model *model, const struct clock *clock,
                             struct bench_fanout_result *out, struct error *error)
{
    struct fanout fanout = {.model = model, .clock = clock};
    struct bench_fanout_result result = {0};
    struct scenario scenario;
    struct arena arena;
    arena_init(&arena, LIMIT_SCENARIO_ARENA_BYTES);
    enum status status = engine_bench_scenario(&arena, &scenario, error);
    THEN(status, prepared_create(&scenario, &fanout.prepared, error));
    THEN(status, time_forks(&fanout, &result, error));
    THEN(status, run_fanout(&fanout, &result, error));
    THEN(status, run_apart(&fanout, &result, error));
    if (status == STATUS_OK) {
        *out = result;
    }
    prepared_unref(fanout.prepared);
    arena_finish(&arena);
    return status;
}
