/*
 * A planner's instance died while it drove several rollouts. Nobody knows which one is to blame, so
 * each of them is run again from tick 0 with the planner to itself; the one during which it dies
 * again is the guilty one. A fresh instance is opened after every death.
 *
 * Where the connection to a planner's server is lost, then too, the rollout is not to blame: the
 * attempt fails, as where the server does not listen any more, and its job is tried again as often
 * as others.
 *
 * A planner starts in a thread of its own where that may take long (runner_config.start_apart):
 * until it has, the runner has nothing to do, and its worker goes on with others.
 *
 * A planner that dies once and not again is a result all the same, and one to be looked at: each
 * rollout that was being driven keeps the sentence of that death, whatever its verdict becomes.
 */
#include "worker/planner/planner_spec.h"
#include "worker/planner/planner_start.h"
#include "worker/run/runner_internal.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/units.h"
#include "engine/worlds/foreign.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void runner_keep_output(struct runner *runner, struct rollout *rollout)
{
    size_t bytes = 0;
    if (runner->planner != NULL && rollout->has_session) {
        const char *text = planner_session_output(runner->planner, rollout->session, &bytes);
        trace_keep_output(&rollout->trace, text, bytes);
    }
}

/* Results are stored under the identity that was submitted, so no other planner may drive: the
 * files that its command line names, and what it had loaded when it had started. Where that could
 * not be asked when the job was submitted, the files alone count. */
static enum status check_identity(const struct runner *runner, const char *files,
                                  const struct planner *planner, struct error *error)
{
    char found[SHA256_HEX_BYTES];
    TRY(planner_identity(runner->planner_spec, found, error));
    bool steady = strcmp(found, files) == 0; /* nobody wrote to them while it was starting */
    bool same = strcmp(found, runner->planner_hash) == 0;
    planner_identity_extend(found, planner_loaded(planner));
    if (steady && (same || strcmp(found, runner->planner_hash) == 0)) {
        return STATUS_OK;
    }
    bool builtin = strncmp(planner_spec_bare(runner->planner_spec), "builtin:", 8) == 0;
    return error_set(error, STATUS_PLANNER,
                     "planner %.600s: %s since the job was submitted (expected hash %.12s, found "
                     "%.12s); submit again",
                     runner->planner_spec,
                     builtin                              ? "this worker's version of it changed"
                     : planner_loaded(planner)[0] != '\0' ? "its files changed, or what it imports,"
                                                          : "its files changed",
                     runner->planner_hash, found);
}

bool runner_keep_rig(struct runner *runner)
{
    const struct rig *rig = runner->config.rig;
    const char *hash = runner->config.rig_hash;
    runner->config.rig = NULL;
    runner->config.rig_hash = NULL;
    runner->rig_checked = hash != NULL;
    snprintf(runner->rig_hash, sizeof runner->rig_hash, "%s", hash != NULL ? hash : "");
    if (rig == NULL) {
        return true;
    }
    runner->rig = malloc(sizeof *runner->rig);
    if (runner->rig != NULL) {
        *runner->rig = *rig;
    }
    return runner->rig != NULL;
}

/* Results are stored under the rig that was submitted. CONFLICT: the planner has started, so it is
 * the job that is wrong, wherever it is tried. */
static enum status check_rig(const struct runner *runner, const struct planner *planner,
                             struct error *error)
{
    char found[SHA256_HEX_BYTES];
    if (!runner->rig_checked) {
        return STATUS_OK;
    }
    TRY(rig_hash(planner_rig(planner), found, error));
    if (strcmp(found, runner->rig_hash) == 0) {
        return STATUS_OK;
    }
    return error_set(
        error, STATUS_CONFLICT,
        "planner %.600s: expected the rig %.12s of the job, found %s (%.12s)", runner->planner_spec,
        runner->rig_hash[0] != '\0' ? runner->rig_hash : "swerve", planner_rig(planner)->id, found);
}

/* A view for every session, where the planner looks on the device. */
static enum status open_views(struct runner *runner, struct error *error)
{
    if (!runner_observes_on_device(runner) || runner->views_opened) {
        return STATUS_OK;
    }
    enum status status = runner_ops(runner)->views_open(
        runner->world, runner->session_count, (runner->wants & SWERVE_WANTS_BEV) != 0,
        (runner->wants & SWERVE_WANTS_CAMERAS) != 0, error);
    runner->views_opened = status == STATUS_OK;
    return status;
}

/* CONFLICT: what the job's world cannot make of the rig it can make nowhere. */
static enum status open_sensors(struct runner *runner, const struct rig *rig,
                                const struct rig_choice *choice, struct error *error)
{
    const struct world_ops *ops = runner_ops(runner);
    enum status status =
        ops->rig_take != NULL ? ops->rig_take(runner->world, rig, error) : STATUS_OK;
    if (choice->count > 0) {
        THEN(status, sensors_create(rig, choice, ops, &runner->sensors, error));
    }
    return status == STATUS_BAD_INPUT ? error->status = STATUS_CONFLICT : status;
}

/* Rollouts have room for the sensors asked for at first, and the choice is part of their bits. */
static enum status take_sensors(struct runner *runner, const struct planner *planner,
                                struct error *error)
{
    const struct rig_choice *choice = planner_choice(planner);
    const struct rig *rig = planner_rig(planner);
    if (!runner->planner_opened) {
        return open_sensors(runner, rig, choice, error);
    }
    if (planner_wants(planner) != runner->wants) {
        return error_set(error, STATUS_PLANNER,
                         "planner %s: asked for sensors %u when it was started again, %u before",
                         runner->planner_spec, planner_wants(planner), runner->wants);
    }
    if (runner->sensors != NULL ? !sensors_are(runner->sensors, rig, choice) : choice->count > 0) {
        return error_set(error, STATUS_PLANNER,
                         "planner %s: chose other sensors of a rig when it was started again",
                         runner->planner_spec);
    }
    return STATUS_OK;
}

/* Opens it with the job's rig. CONFLICT: it starts, but not with that one, which whoever submits
 * writes: that is no reason to leave its other jobs alone. What took too long says nothing of it.
 */
static enum status open_with_rig(const struct runner *runner, struct planner_config *config,
                                 struct planner **out, struct error *error)
{
    char rig[SHA256_HEX_BYTES] = "";
    struct planner *plain = NULL;
    struct error unused;
    int64_t begun_ns = clock_monotonic_ns();
    enum status status = planner_open(runner->planner_spec, config, out, error);
    bool late = clock_monotonic_ns() - begun_ns >= planner_start_ms(config) * NS_PER_MS;
    if (status != STATUS_PLANNER || late || config->rig == NULL ||
        rig_hash(config->rig, rig, &unused) != STATUS_OK || rig[0] == '\0') {
        return status;
    }
    config->rig = NULL;
    if (planner_open(runner->planner_spec, config, &plain, &unused) == STATUS_OK) {
        error->status = STATUS_CONFLICT;
    }
    planner_close(plain);
    return error->status;
}

/* A planner that is being opened: of the thread that does it, until its start has ended. */
struct opening {
    const struct runner *runner; /* what of it never changes */
    struct planner_config config;
    struct planner *planner;
    struct planner_start *start;
};

static struct opening opening_of(const struct runner *runner)
{
    struct opening opening = {.runner = runner, .config = runner->config.planner_config};
    opening.config.session_count = runner->session_count;
    opening.config.rig = runner->rig;
    opening.config.place = runner->place.backend != NULL ? &runner->place : NULL;
    return opening;
}

static enum status open_instance(void *context, const atomic_bool *abandoned, struct error *error)
{
    struct opening *opening = context;
    const struct runner *runner = opening->runner;
    char files[SHA256_HEX_BYTES] = "";
    bool checked = runner->planner_hash[0] != '\0';
    opening->config.abandoned = abandoned;
    if (checked) {
        TRY(planner_identity(runner->planner_spec, files, error));
    }
    TRY(open_with_rig(runner, &opening->config, &opening->planner, error));
    return checked ? check_identity(runner, files, opening->planner, error) : STATUS_OK;
}

/* Takes an instance over, on failure too. */
static enum status take_instance(struct runner *runner, struct planner *planner, enum status status,
                                 struct error *error)
{
    THEN(status, check_rig(runner, planner, error));
    THEN(status, take_sensors(runner, planner, error));
    if (status != STATUS_OK) {
        planner_close(planner);
        return status;
    }
    runner->planner = planner;
    runner->planner_opened = true;
    runner->wants = planner_wants(planner);
    return open_views(runner, error);
}

enum status runner_open_planner(struct runner *runner, struct error *error)
{
    struct opening opening = opening_of(runner);
    enum status status = open_instance(&opening, NULL, error);
    return take_instance(runner, opening.planner, status, error);
}

enum status runner_start_planner(struct runner *runner, struct error *error)
{
    if (!runner->config.start_apart ||
        !planner_starts_apart(runner->planner_spec, &runner->config.planner_config)) {
        return runner_open_planner(runner, error);
    }
    struct opening *opening = malloc(sizeof *opening);
    TRY(memory_check(opening, error, "runner: out of memory"));
    *opening = opening_of(runner);
    enum status status = planner_start_begin(open_instance, opening, &opening->start, error);
    if (status != STATUS_OK) {
        free(opening);
        return status == STATUS_LIMIT ? error->status = STATUS_NO_MEMORY : status;
    }
    runner->opening = opening;
    return STATUS_OK;
}

/* Ends the start; *out is the caller's. */
static enum status end_start(struct runner *runner, struct planner **out, struct error *error)
{
    enum status status = planner_start_end(runner->opening->start, error);
    *out = runner->opening->planner;
    free(runner->opening);
    runner->opening = NULL;
    return status;
}

void runner_abandon_start(struct runner *runner)
{
    struct error unused;
    struct planner *planner = NULL;
    if (runner->opening != NULL) {
        (void)end_start(runner, &planner, &unused);
        planner_close(planner);
    }
}

bool runner_starts(const struct runner *runner, int64_t wait_ms)
{
    return runner->opening != NULL && !planner_start_wait(runner->opening->start, wait_ms);
}

static enum status finish_start(struct runner *runner, struct error *error)
{
    struct planner *planner = NULL;
    enum status status = end_start(runner, &planner, error);
    return take_instance(runner, planner, status, error);
}

enum status runner_started(struct runner *runner, struct error *error)
{
    if (runner->opening == NULL) {
        return STATUS_OK;
    }
    enum status status = finish_start(runner, error);
    return status == STATUS_OK ? status
                               : (error->status = runner_start_failed(&runner->config, status));
}

struct death {
    const char *sentence;
    uint32_t driven; /* rollouts that the planner had then */
};

/* Puts the sentence of a death where the result's error will be. The first one counts. Whose fault
 * it was is not known yet, so each that was driven has it. */
static void keep_death(struct runner *runner, const struct rollout *rollout,
                       const struct death *death)
{
    char sentence[ERROR_TEXT_BYTES + 128];
    char others[64] = "";
    struct rollout_result *result = &rollout->job->results[rollout->branch + 1];
    if (result->finished || result->error[0] != '\0') {
        return; /* finished: it drives the past of others */
    }
    if (death->driven > 1) {
        snprintf(others, sizeof others, " while it drove %u more", death->driven - 1);
    }
    snprintf(sentence, sizeof sentence, ROLLOUT_DEATH "%s: %s", others, death->sentence);
    runner_fault_text(runner, rollout, rollout->trace.first_tick + rollout->trace.tick_count,
                      sentence, result->error);
}

static void isolate(struct runner *runner, struct rollout *rollout, const struct death *death)
{
    struct error error;
    struct rollout *again = NULL;
    struct job_run *job = rollout->job;
    keep_death(runner, rollout, death);
    if (rollout_create(job, rollout->branch, rollout->branch != ROLLOUT_MAIN, runner->wants, &again,
                       &error) != STATUS_OK) {
        runner_fail_job(job, &error);
    } else {
        rollout_list_push_back(&runner->isolated, again);
    }
    /* Ticks that were simulated in vain are still paid for; discarding charges them. Its metres do
     * not count: the rollout drives them again. */
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

void runner_fault_text(struct runner *runner, const struct rollout *rollout, uint32_t tick,
                       const char *sentence, char text[OUTCOME_ERROR_BYTES])
{
    size_t own_bytes = 0;
    const char *tail = planner_stderr_tail(runner->planner);
    const char *own = planner_session_output(runner->planner, rollout->session, &own_bytes);
    if (own_bytes > 0 && planner_has_stderr(runner->planner)) {
        tail = own;
    }
    size_t used = 0;
    int wrote = snprintf(text, OUTCOME_ERROR_BYTES, "tick %u: %s", tick, sentence);
    CHECK(wrote > 0 && wrote < OUTCOME_ERROR_BYTES);
    used = (size_t)wrote;
    if (tail[0] == '\0') {
        return;
    }
    /* The sentence of a death ends with the last line of what follows anyway. */
    char *twice = strstr(text, PLANNER_STDERR_JOINT);
    if (twice != NULL) {
        used = (size_t)(twice - text);
    }
    const char joint[] = "\nstderr: ";
    size_t room = OUTCOME_ERROR_BYTES - used - sizeof joint;
    size_t tail_bytes = strlen(tail);
    if (tail_bytes > room) {
        tail += tail_bytes - room;
        while (((unsigned char)*tail & 0xC0) == 0x80) {
            tail++; /* not into the middle of a UTF-8 character */
        }
    }
    snprintf(text + used, OUTCOME_ERROR_BYTES - used, "%s%s", joint, tail);
}

static void blame(struct runner *runner, const struct error *error)
{
    struct rollout *guilty = runner->alone;
    char text[OUTCOME_ERROR_BYTES];
    uint32_t tick = runner_ops(runner)->slot_scene(runner->world, (uint32_t)guilty->slot)->tick;
    runner_fault_text(runner, guilty, tick, error->text, text);
    runner_keep_output(runner, guilty);
    guilty->job->results[guilty->branch + 1].error[0] = '\0'; /* this death says it all */
    rollout_finish(guilty, tick, text);
    runner_discard(runner, guilty);
}

void runner_planner_died(struct runner *runner, const struct error *error)
{
    log_event(runner->config.logger, LOG_WARNING, "%s: %s; running its rollouts again one by one",
              runner->planner_spec, error->text);
    if (runner->alone != NULL && planner_cut_off(runner->planner)) {
        runner_fail_job(runner->alone->job, error);
        runner_discard(runner, runner->alone);
    } else if (runner->alone != NULL) {
        blame(runner, error);
    }
    const struct death death = {error->text, runner->session_count - runner->free_session_count};
    for (uint32_t i = 0; i < runner->slot_count; i++) {
        if (runner->slots[i] != NULL) {
            isolate(runner, runner->slots[i], &death);
        }
    }
    struct rollout_list kept = {0};
    struct rollout *rollout;
    while ((rollout = rollout_list_pop(&runner->waiting)) != NULL) {
        if (rollout->has_session) {
            isolate(runner, rollout, &death);
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
    enum status status = STATUS_OK;
    if (runner->opening == NULL) {
        runner->stats.planner_restarts++;
        status = runner_start_planner(runner, &error);
    }
    if (runner->opening != NULL) {
        if (runner_starts(runner, 0)) {
            return;
        }
        status = finish_start(runner, &error);
    }
    if (status == STATUS_OK) {
        return;
    }
    /* It started before and does not now: an operating fault. The attempts fail and are retried. */
    for (struct job_run *job = runner->jobs; job != NULL; job = job->next) {
        runner_fail_job(job, &error);
    }
}

bool runner_is_cut_off(struct runner *runner, struct rollout *rollout)
{
    struct error error;
    const struct frame_stats *frame_stats =
        runner_ops(runner)->slot_frame_stats != NULL
            ? runner_ops(runner)->slot_frame_stats(runner->world, (uint32_t)rollout->slot)
            : NULL;
    if (frame_stats == NULL || !frame_stats->outage) {
        return false;
    }
    error_set(&error, STATUS_IO, "%s", frame_stats->fault);
    runner_fail_job(rollout->job, &error);
    return true;
}

enum status runner_start_failed(const struct runner_config *config, enum status status)
{
    bool cut_off = status == STATUS_IO && config->foreign != NULL && config->foreign->outside;
    bool passes = status == STATUS_NO_MEMORY || status == STATUS_DEVICE ||
                  status == STATUS_CONFLICT || cut_off;
    return passes ? status : STATUS_PLANNER;
}
