/*
 * Cost of a world, as counted by it: the whole of it, and the share of each rollout that it
 * stepped. In no outcome's bits.
 */
#include "worker/run/runner_internal.h"

#include "engine/worlds/world.h"

#include <stdio.h>

struct world_cost runner_cost(const struct runner *runner)
{
    struct world_cost cost = {0};
    if (runner_ops(runner)->cost != NULL) {
        runner_ops(runner)->cost(runner->world, &cost);
    }
    return cost;
}

/* Frame pages in use at the fullest, rounded up; 0: a world without any. */
static uint32_t used_percent(const struct world_cost *cost)
{
    return cost->frames_max == 0
               ? 0
               : (uint32_t)((100 * cost->frames_peak + cost->frames_max - 1) / cost->frames_max);
}

void runner_share_cost(struct runner *runner)
{
    uint32_t stepped = 0;
    if (runner_ops(runner)->cost == NULL) {
        return;
    }
    for (uint32_t i = 0; i < runner->slot_count; i++) {
        stepped += runner->active[i] != 0;
    }
    if (stepped == 0) {
        return;
    }
    struct world_cost cost = runner_cost(runner);
    double each = (cost.flop - runner->flop_seen) / stepped;
    uint32_t pages_used_percent = used_percent(&cost);
    runner->flop_seen = cost.flop;
    for (uint32_t i = 0; i < runner->slot_count; i++) {
        if (runner->active[i]) {
            runner->slots[i]->flop += each;
            runner->slots[i]->pages_used_percent = pages_used_percent;
            runner->slots[i]->peak_flops = cost.peak_flops;
        }
    }
}

const struct health_bounds *runner_bounds(const struct runner *runner,
                                          const struct rollout *rollout)
{
    const struct runner_config *config = &runner->config;
    return config->previous != NULL && model_skips_past(config->model, rollout->skipped)
               ? config->previous_bounds
               : config->bounds;
}

void runner_commit(struct runner *runner, struct rollout *rollout, uint32_t tick)
{
    const struct world_ops *ops = runner_ops(runner);
    const uint32_t slot = (uint32_t)rollout->slot;
    struct error error;
    if (ops->slot_commit != NULL) {
        ops->slot_commit(runner->world, slot, &rollout->action);
    }
    if (ops->slot_skip == NULL) {
        return;
    }
    uint32_t skipped = actuation_skipped(&rollout->actuation, tick);
    rollout->skipped = skipped > runner->config.skipped ? skipped : runner->config.skipped;
    if (ops->slot_skip(runner->world, slot, rollout->skipped, &error) != STATUS_OK) {
        runner_fail_job(rollout->job, &error);
    }
}

void runner_charge(struct runner *runner, int64_t elapsed_ns)
{
    uint32_t left = runner->active_count;
    if (left == 0 && runner->jobs != NULL) {
        runner->jobs->results[0].device_ns += elapsed_ns;
    }
    for (uint32_t i = 0; i < runner->slot_count && left > 0; i++) {
        if (runner->slots[i] != NULL) {
            int64_t share_ns = elapsed_ns / left;
            runner->slots[i]->device_ns += share_ns;
            elapsed_ns -= share_ns;
            left--;
        }
    }
}

bool runner_meters_wall(const struct runner *runner)
{
    bool away = runner->config.foreign != NULL && runner_ops(runner)->tier != TIER_GOLDEN;
    return runner->on_device || away;
}

int64_t runner_meter_ns(const struct runner *runner)
{
    return (runner_meters_wall(runner) ? clock_now_ns : clock_thread_cpu_ns)(runner->config.clock);
}

static enum status film(const struct runner *runner, struct rollout *rollout, bool last,
                        struct error *error)
{
    const struct world *world = runner->world;
    const uint32_t slot = (uint32_t)rollout->slot;
    struct reel *reel = &rollout->trace.reel;
    TRY(reel_take(reel, world, slot, error));
    if (rollout->shots == NULL) {
        return STATUS_OK;
    }
    if (last) {
        const uint32_t tick = world->ops->slot_scene(world, slot)->tick;
        TRY(shots_take(rollout->shots, world, slot,
                       actuation_sensors_dark(&rollout->actuation, tick), tick * TICK_NS, error));
    }
    return shots_keep(rollout->shots, world, reel, error);
}

enum status runner_film(const struct runner *runner, struct rollout *rollout, bool last,
                        struct error *error)
{
    struct job_run *job = rollout->job;
    if (!job->filmed || job->film_fault[0] != '\0') {
        return STATUS_OK;
    }
    enum status status = film(runner, rollout, last, error);
    job->film_ticks += status == STATUS_OK;
    if (status != STATUS_LIMIT) {
        return status;
    }
    snprintf(
        job->film_fault, sizeof job->film_fault,
        "scenario %.64s: its recording takes more than %d MiB: %llu ticks of its rollouts fit; "
        "use a shorter horizon or fewer branches",
        job->scenario->id, LIMIT_ARTIFACT_BYTES >> 20, (unsigned long long)job->film_ticks);
    return STATUS_OK;
}
