/*
 * The step of a tick, and what it costs. The world steps once for all rollouts that were driven,
 * or, where slots are in two halves, for those of one half in a thread of its own while the planner
 * is asked for the other's. Only the planner's call runs beside it: whatever else touches the world
 * waits for its end. Costs are as the world counts them, the whole and the share of each rollout
 * that it stepped; they are in no outcome's bits.
 */
#include "worker/run/runner_internal.h"

#include "base/check.h"
#include "engine/worlds/world.h"
#include "worker/run/checkpoint.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- steps ---- */

struct stepper {
    struct runner *runner;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    enum { STEPPER_IDLE, STEPPER_STEPS, STEPPER_ENDS } state;
    int64_t cpu_ns; /* of its steps that nobody was charged for yet */
};

static void step_world(struct runner *runner)
{
    runner_ops(runner)->step(runner->world, runner->actions, runner->active);
}

static void *stepper_run(void *argument)
{
    struct stepper *stepper = argument;
    const struct clock *clock = stepper->runner->config.clock;
    pthread_mutex_lock(&stepper->lock);
    while (stepper->state != STEPPER_ENDS) {
        if (stepper->state == STEPPER_IDLE) {
            pthread_cond_wait(&stepper->changed, &stepper->lock);
            continue;
        }
        pthread_mutex_unlock(&stepper->lock);
        int64_t start_ns = clock_thread_cpu_ns(clock);
        step_world(stepper->runner);
        int64_t cpu_ns = clock_thread_cpu_ns(clock) - start_ns;
        pthread_mutex_lock(&stepper->lock);
        stepper->cpu_ns += cpu_ns;
        stepper->state = STEPPER_IDLE;
        pthread_cond_broadcast(&stepper->changed);
    }
    pthread_mutex_unlock(&stepper->lock);
    return NULL;
}

/* A stepper that steps is waited for. */
static void stepper_turn(struct stepper *stepper, int state)
{
    pthread_mutex_lock(&stepper->lock);
    while (stepper->state == STEPPER_STEPS) {
        pthread_cond_wait(&stepper->changed, &stepper->lock);
    }
    stepper->state = state;
    pthread_cond_broadcast(&stepper->changed);
    pthread_mutex_unlock(&stepper->lock);
}

enum status runner_stepper_open(struct runner *runner, struct error *error)
{
    struct stepper *stepper = calloc(1, sizeof *stepper);
    TRY(memory_check(stepper, error, "runner: out of memory"));
    stepper->runner = runner;
    pthread_mutex_init(&stepper->lock, NULL);
    pthread_cond_init(&stepper->changed, NULL);
    int code = pthread_create(&stepper->thread, NULL, stepper_run, stepper);
    if (code != 0) {
        pthread_cond_destroy(&stepper->changed);
        pthread_mutex_destroy(&stepper->lock);
        free(stepper);
        return error_set(error, STATUS_LIMIT, "runner: no thread for the world's step: %s",
                         strerror(code));
    }
    runner->stepper = stepper;
    return STATUS_OK;
}

void runner_stepper_close(struct runner *runner)
{
    struct stepper *stepper = runner->stepper;
    if (stepper != NULL) {
        stepper_turn(stepper, STEPPER_ENDS);
        pthread_join(stepper->thread, NULL);
        pthread_cond_destroy(&stepper->changed);
        pthread_mutex_destroy(&stepper->lock);
        free(stepper);
        runner->stepper = NULL;
    }
}

int64_t runner_step_ns(struct runner *runner)
{
    int64_t cpu_ns = 0;
    if (runner->stepper != NULL) {
        cpu_ns = runner->stepper->cpu_ns;
        runner->stepper->cpu_ns = 0;
    }
    return runner_meters_wall(runner) ? 0 : cpu_ns;
}

void runner_step_begin(struct runner *runner)
{
    const struct world_ops *ops = runner_ops(runner);
    memcpy(runner->stepped, runner->active, runner->slot_count);
    for (uint32_t i = 0; i < runner->slot_count; i++) {
        struct rollout *rollout = runner->slots[i];
        if (runner->stepped[i] && rollout->checkpoint != NULL) {
            uint32_t tick = ops->slot_scene(runner->world, i)->tick;
            runner->active[i] = !checkpoint_retrace(rollout, runner->world);
            checkpoint_judge(rollout, tick, runner->config.checkpoint_ns);
        }
    }
    if (runner->stepper != NULL) {
        stepper_turn(runner->stepper, STEPPER_STEPS);
    } else {
        step_world(runner);
    }
}

void runner_step_end(struct runner *runner)
{
    const struct world_ops *ops = runner_ops(runner);
    if (runner->stepper != NULL) {
        stepper_turn(runner->stepper, STEPPER_IDLE);
    }
    for (uint32_t i = 0; i < runner->slot_count; i++) {
        struct rollout *rollout = runner->slots[i];
        if (runner->stepped[i]) {
            const struct pose *now = &ops->slot_scene(runner->world, i)->ego.pose;
            double dx = now->x_m - rollout->health.ego_pose.x_m;
            double dy = now->y_m - rollout->health.ego_pose.y_m;
            rollout->distance_m += sqrt(dx * dx + dy * dy);
            runner->stats.ticks += runner->active[i];
            checkpoint_note(rollout, runner->world);
        }
    }
    runner_share_cost(runner);
    memset(runner->active, 0, runner->slot_count);
}

/* ---- cost ---- */

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
