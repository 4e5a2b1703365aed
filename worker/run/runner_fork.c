/*
 * Branches: at its tick each branch becomes a copy of the main line's live state. It takes a free
 * slot, or that of a rollout of a later job, which is parked, so that jobs end one after the other
 * and not all together; else it is parked itself; when even the parking is full, or no session is
 * left, the main line itself steps aside and goes on forking later from the same tick, so that its
 * past is simulated once however wide the fan.
 */
#include "worker/run/runner_internal.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>

/* Queues a branch to be run from tick 0: the only way when its session cannot be copied. */
static void run_solo_later(struct runner *runner, struct job_run *job, int32_t branch)
{
    struct error error;
    struct rollout *solo = NULL;
    if (rollout_create(job, branch, true, runner->wants, &solo, &error) != STATUS_OK) {
        runner_fail_job(job, &error);
        return;
    }
    runner_wait(runner, solo);
}

/* Copies the planner's memory; a planner that cannot makes the branch pay for its own prefix. */
static void fork_session(struct runner *runner, const struct rollout *parent,
                         struct rollout *rollout)
{
    struct error error;
    struct job_run *job = parent->job;
    int32_t branch = rollout->branch;
    if (planner_fork(runner->planner, parent->session, rollout->session, &error) == STATUS_OK) {
        return;
    }
    if (!planner_alive(runner->planner)) {
        runner_planner_died(runner, &error);
        return;
    }
    if (runner->stats.fork_refusals++ == 0) { /* outcomes are the same, the bill is not */
        log_event(runner->config.logger, LOG_ERROR,
                  "%s; such branches run from tick 0 and share nothing", error.text);
    }
    if (planner_varies(runner->planner, rollout->session)) { /* they are others each time */
        snprintf(job->results[branch + 1].error, OUTCOME_ERROR_BYTES,
                 "tick %u: " OUTCOME_VARIES ": %s", rollout->prefix_ticks, error.text);
    }
    if (rollout->slot < 0) {
        rollout_list_remove(&runner->waiting, rollout);
    }
    runner_discard(runner, rollout);
    run_solo_later(runner, job, branch);
}

/* False when there is no place for another branch now. */
static bool fork_branch(struct runner *runner, const struct rollout *parent, int32_t branch,
                        uint32_t tick)
{
    struct error error;
    struct rollout *rollout = NULL;
    void *state = NULL;
    if (runner->free_session_count == 0) {
        return false;
    }
    int32_t slot = runner_find_free_slot(runner);
    slot = slot < 0 ? runner_make_way(runner, parent->job) : slot;
    if (slot < 0) {
        if (runner->parked_branch_count == RUNNER_PARKED_MAX) {
            return false;
        }
        state = malloc(runner_ops(runner)->slot_state_bytes(runner->world));
        if (state == NULL) {
            return false;
        }
    }
    parent->job->results[branch + 1].started = true;
    if (rollout_fork(parent, branch, tick, &rollout, &error) != STATUS_OK) {
        free(state);
        runner_fail_job(parent->job, &error);
        return true;
    }
    runner_take_session(runner, rollout);
    if (runner_observes_on_device(
            runner)) { /* its sensors may be dark: they show the parent's last look */
        runner_ops(runner)->view_copy(runner->world, parent->session, rollout->session);
    }
    runner->stats.forks++;
    if (slot >= 0) {
        runner_ops(runner)->slot_fork(runner->world, (uint32_t)parent->slot, (uint32_t)slot);
        runner_occupy(runner, rollout, slot);
    } else {
        runner_ops(runner)->slot_save(runner->world, (uint32_t)parent->slot, state);
        runner_wait_parked(runner, rollout, state);
    }
    fork_session(runner, parent, rollout);
    return true;
}

/* Whether branches of this rollout are still to come. */
static bool forks_later(const struct rollout *rollout)
{
    const struct job_run *job = rollout->job;
    bool later = false;
    for (uint32_t b = 0; b < job->scenario->branch_count && !later; b++) {
        later = !job->results[b + 1].started;
    }
    return later && rollout->branch == ROLLOUT_MAIN && !job->no_forks;
}

/* A main line that was driven again for its past alone leaves when nothing more forks from it. */
static void leave_past(struct runner *runner, struct rollout *parent, uint32_t tick)
{
    if (parent->job->results[0].kept != NULL && !forks_later(parent)) {
        rollout_finish(parent, tick, "");
        runner_discard(runner, parent);
    }
}

void runner_fork_due(struct runner *runner, uint32_t slot)
{
    struct rollout *parent = runner->slots[slot];
    if (parent != NULL && !forks_later(parent)) {
        planner_end_forks(runner->planner, parent->session);
    }
    if (parent == NULL || parent->branch != ROLLOUT_MAIN || parent->job->no_forks) {
        return;
    }
    struct job_run *job = parent->job;
    uint32_t tick = runner_ops(runner)->slot_scene(runner->world, slot)->tick;
    for (uint32_t b = 0; b < job->scenario->branch_count; b++) {
        if (job->scenario->branches[b].at_tick != tick || job->results[b + 1].started) {
            continue;
        }
        if (!fork_branch(runner, parent, (int32_t)b, tick)) {
            parent->wants_place = true;
            if (!runner_park(runner, parent)) {
                const struct error error = {STATUS_NO_MEMORY, "parking: out of memory"};
                runner_fail_job(job, &error);
            }
            return;
        }
        if (runner->planner == NULL) {
            return; /* it died, and `parent` with it */
        }
    }
    leave_past(runner, parent, tick);
}
