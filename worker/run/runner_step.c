/*
 * The step of a tick: once for all rollouts that were driven, or, where slots are in two halves,
 * for those of one half in a thread of its own while the planner is asked for the other's. Only the
 * planner's call runs beside it: whatever else touches the world waits for its end.
 */
#include "worker/run/runner_internal.h"

#include "base/check.h"
#include "worker/run/checkpoint.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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
