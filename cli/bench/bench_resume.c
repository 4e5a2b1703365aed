/*
 * The resume benchmark. One rollout is parked again and again while another one drives in the only
 * slot of a world whose pool holds one memory and the page that is being written, so that each time
 * all its pages are in the spill. The other one ends, and the parked one goes on. Every second time
 * this is announced before the other one's last two ticks, as the runner does.
 */
#include "cli/bench/bench_resume.h"

#include "engine/bench/bench.h"
#include "engine/worlds/world.h"
#include "worker/run/spill.h"

#include <stdlib.h>

enum { TOLD_TICKS = 2, SPILL_BYTES_MAX = 1 << 30 };

struct resume {
    const struct model *model;
    const struct clock *clock;
    const struct world_ops *ops;
    struct arena arena;
    struct scenario scenario;
    struct prepared *prepared;
    struct spill *spill;
    struct world *world;
    void *parked;
};

static enum status open_world(struct resume *resume, size_t page_bytes_max, size_t host_bytes_max,
                              struct error *error)
{
    const struct world_config config = {
        .slot_count = 1,
        .model = resume->model,
        .thread_count = 1,
        .page_bytes_max = page_bytes_max,
        .host_bytes_max = host_bytes_max,
        .spill = spill_ops_of(resume->spill),
    };
    return resume->ops->open(&config, &resume->world, error);
}

static void close_all(struct resume *resume)
{
    resume->ops->close(resume->world);
    spill_destroy(resume->spill);
    prepared_unref(resume->prepared);
    arena_finish(&resume->arena);
    free(resume->parked);
}

static enum status open_all(struct resume *resume, struct error *error)
{
    struct world_cost cost;
    uint32_t window = model_config(resume->model)->window;
    arena_init(&resume->arena, LIMIT_SCENARIO_ARENA_BYTES);
    resume->ops = world_ops_for_tier(model_config(resume->model)->tier);
    enum status status = engine_bench_scenario(&resume->arena, &resume->scenario, error);
    THEN(status, prepared_create(&resume->scenario, &resume->prepared, error));
    THEN(status, spill_create(NULL, SPILL_BYTES_MAX, &resume->spill, error));
    if (status == STATUS_OK) {
        status = open_world(resume, 0, 0, error); /* to learn how large a page is */
    }
    if (status == STATUS_OK) {
        resume->ops->cost(resume->world, &cost);
        resume->ops->close(resume->world);
        resume->world = NULL;
        status =
            open_world(resume, (window + 1) * cost.page_bytes, window * cost.page_bytes, error);
    }
    if (status == STATUS_OK) {
        resume->parked = malloc(resume->ops->slot_state_bytes(resume->world));
        if (resume->parked == NULL) {
            status = error_set(error, STATUS_NO_MEMORY, "bench: no memory for a parked rollout");
        }
    }
    return status;
}

static void drive(struct resume *resume, uint32_t ticks, bool told)
{
    const struct action action = {-0.1, 0.0};
    const uint8_t active = 1;
    for (uint32_t i = 0; i < ticks; i++) {
        if (told) {
            resume->ops->slot_state_prefetch(resume->world, resume->parked);
        }
        resume->ops->step(resume->world, &action, &active);
    }
}

/* Another rollout drives and ends while this one is parked; *ns is what its restore takes. */
static enum status park_and_resume(struct resume *resume, uint64_t seed, bool told, double *ns,
                                   struct error *error)
{
    struct world_cost cost;
    uint32_t window = model_config(resume->model)->window;
    resume->ops->slot_save(resume->world, 0, resume->parked);
    resume->ops->slot_release(resume->world, 0);
    enum status status = resume->ops->slot_reset(resume->world, 0, resume->prepared, seed, error);
    if (status == STATUS_OK) {
        drive(resume, window, false);
        resume->ops->cost(resume->world, &cost);
        drive(resume, TOLD_TICKS, told);
        resume->ops->slot_release(resume->world, 0);
    }
    int64_t start_ns = clock_now_ns(resume->clock);
    resume->ops->slot_restore(resume->world, 0, resume->parked);
    *ns = (double)(clock_now_ns(resume->clock) - start_ns);
    if (status == STATUS_OK && cost.pages_spill != window) {
        status = error_set(error, STATUS_IO, "bench: expected %u pages in the spill, found %llu",
                           window, (unsigned long long)cost.pages_spill);
    }
    return status;
}

static enum status measure(struct resume *resume, struct bench_resume_result *out,
                           struct error *error)
{
    double times_ns[2][BENCH_RESUME_REPEATS];
    struct world_cost cost;
    uint32_t window = model_config(resume->model)->window;
    TRY(resume->ops->slot_reset(resume->world, 0, resume->prepared, 1, error));
    drive(resume, window, false);
    for (int i = 0; i < 2 * BENCH_RESUME_REPEATS; i++) {
        bool told = i % 2 == 1;
        TRY(park_and_resume(resume, 2 + (uint64_t)i, told, &times_ns[told][i / 2], error));
    }
    resume->ops->cost(resume->world, &cost);
    out->wanted_ns = engine_bench_median(times_ns[0], BENCH_RESUME_REPEATS);
    out->ahead_ns = engine_bench_median(times_ns[1], BENCH_RESUME_REPEATS);
    out->pages = window;
    out->ready = (double)cost.ahead_used / (double)cost.pages_ahead;
    return STATUS_OK;
}

enum status bench_resume_run(const struct model *model, const struct clock *clock,
                             struct bench_resume_result *out, struct error *error)
{
    struct resume resume = {.model = model, .clock = clock};
    struct bench_resume_result result;
    enum status status = open_all(&resume, error);
    THEN(status, measure(&resume, &result, error));
    if (status == STATUS_OK) {
        *out = result;
    }
    close_all(&resume);
    return status;
}
