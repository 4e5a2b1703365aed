/*
 * A planner's instance died while it drove several rollouts. Nobody knows which one is to blame, so
 * each of them is run again from tick 0 with the planner to itself; the one during which it dies
 * again is the guilty one. A fresh instance is opened after every death.
 */
#include "worker/runner_internal.h"

#include <stdio.h>
#include <string.h>

enum status runner_open_planner(struct runner *runner, struct error *error)
{
    struct planner_config config = runner->config.planner_config;
    struct planner *planner = NULL;
    config.session_count = runner->session_count;
    enum status status = planner_open(runner->planner_spec, &config, &planner, error);
    if (status != STATUS_OK) {
        return status;
    }
    /* Rollouts have room for the sensors asked for at first, and the choice is part of their bits.
     */
    if (runner->planner_opened && planner_wants(planner) != runner->wants) {
        status = error_set(error, STATUS_PLANNER,
                           "planner %s: asked for sensors %u when it was started again, %u before",
                           runner->planner_spec, planner_wants(planner), runner->wants);
        planner_close(planner);
        return status;
    }
    runner->planner = planner;
    runner->planner_opened = true;
    runner->wants = planner_wants(planner);
    return STATUS_OK;
}

static void isolate(struct runner *runner, struct rollout *rollout)
{
    struct error error;
    struct rollout *again = NULL;
    struct job_run *job = rollout->job;
    if (rollout_create(job, rollout->branch, rollout->branch != ROLLOUT_MAIN, runner->wants, &again,
                       &error) != STATUS_OK) {
        runner_fail_job(job, &error);
    } else {
        rollout_list_push_back(&runner->isolated, again);
    }
    /* What was simulated in vain is still paid for; discarding charges it. Its metres do not count:
     * the rollout drives them again. */
    rollout->distance_m = 0.0;
    runner_discard(runner, rollout);
}

/* A main line in isolation does not fork: its unfinished branches follow, each alone. */
static void isolate_branches(struct runner *runner, struct job_run *job)
{
    job->no_forks = true;
    for (uint32_t b = 0; b < job->scenario->branch_count; b++) {
        if (job->results[b + 1].finished || rollout_list_has(&runner->isolated, job, (int32_t)b) ||
            rollout_list_has(&runner->waiting, job, (int32_t)b)) {
            continue;
        }
        struct error error;
        struct rollout *solo = NULL;
        if (rollout_create(job, (int32_t)b, true, runner->wants, &solo, &error) != STATUS_OK) {
            runner_fail_job(job, &error);
            return;
        }
        rollout_list_push_back(&runner->isolated, solo);
    }
}

/* The sentence of the guilty: what happened, then as much of the end of its stderr as fits, because
 * the last line of a traceback is the one that says why. */
static void blame(struct runner *runner, const struct error *error)
{
    struct rollout *guilty = runner->alone;
    char text[OUTCOME_ERROR_BYTES];
    const char *tail = planner_stderr_tail(runner->planner);
    const char *joint = tail[0] != '\0' ? "\nstderr: " : "";
    size_t room = sizeof text - 1 - strlen(error->text) - strlen(joint);
    size_t tail_bytes = strlen(tail);
    if (tail_bytes > room) {
        tail += tail_bytes - room;
        while (((unsigned char)*tail & 0xC0) == 0x80) {
            tail++; /* not into the middle of a UTF-8 character */
        }
    }
    snprintf(text, sizeof text, "%s%s%s", error->text, joint, tail);
    uint32_t tick = runner_ops(runner)->slot_scene(runner->world, (uint32_t)guilty->slot)->tick;
    rollout_finish(guilty, tick, text);
    runner_discard(runner, guilty);
}

void runner_planner_died(struct runner *runner, const struct error *error)
{
    log_event(runner->config.logger, LOG_WARNING, "%s: %s; running its rollouts again one by one",
              runner->planner_spec, error->text);
    if (runner->alone != NULL) {
        blame(runner, error);
    }
    for (uint32_t i = 0; i < runner->slot_count; i++) {
        if (runner->slots[i] != NULL) {
            isolate(runner, runner->slots[i]);
        }
    }
    struct rollout_list kept = {0};
    struct rollout *rollout;
    while ((rollout = rollout_list_pop(&runner->waiting)) != NULL) {
        if (rollout->has_session) {
            isolate(runner, rollout);
        } else {
            rollout_list_push_back(&kept, rollout);
        }
    }
    runner->waiting = kept;
    for (struct job_run *job = runner->jobs; job != NULL; job = job->next) {
        if (!job->no_forks && rollout_list_has(&runner->isolated, job, ROLLOUT_MAIN)) {
            isolate_branches(runner, job);
        }
    }
    planner_close(runner->planner);
    runner->planner = NULL;
}

void runner_reopen_planner(struct runner *runner)
{
    struct error error;
    runner->stats.planner_restarts++;
    if (runner_open_planner(runner, &error) == STATUS_OK) {
        return;
    }
    /* It started before and does not now: an operating fault. The attempts fail and are retried. */
    for (struct job_run *job = runner->jobs; job != NULL; job = job->next) {
        runner_fail_job(job, &error);
    }
}
