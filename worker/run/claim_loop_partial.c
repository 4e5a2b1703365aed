/*
 * Partial outcomes: what is finished of a job outlives its attempt. While a job goes on, outcomes
 * of its finished rollouts are handed to the store every now and then, traces first; whoever claims
 * the job after this worker takes them as they are and drives the rest. Of a main line that takes
 * minutes in a learned world it is the log so far (checkpoint.h), in place of an outcome: one whose
 * evidence that is, until the next one or the real one replaces it.
 *
 * A branch that is left forks from the main line's past. If the main line itself is finished, it is
 * driven again up to the last fork: that is billed to the attempt that does it, and to no outcome.
 * Of a job with a flagged rollout nothing more is handed over: its results will be discarded. A
 * rollout whose artifact has vanished meanwhile is driven again, and so is one whose outcome cannot
 * be this job's: what a store of an earlier version took from whoever sent it is no reason for the
 * job to fail.
 */
#include "worker/run/claim_loop_internal.h"

#include "base/units.h"
#include "schemas/job_context.h"
#include "worker/run/checkpoint.h"
#include "worker/run/outcome_build.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { KEEP_EVERY_MS = 1000 };

static int64_t keep_every_ns(const struct claim_loop_config *config)
{
    int64_t every_ms = config->keep_every_ms;
    return (every_ms == 0 ? KEEP_EVERY_MS : every_ms < 0 ? 0 : every_ms) * NS_PER_MS;
}

int64_t claim_loop_checkpoint_ns(const struct claim_loop_config *config)
{
    int64_t every_ns = keep_every_ns(config) * CLAIM_LOOP_CHECKPOINT_TIMES;
    return every_ns > 0 ? every_ns : 1;
}

/* Refuses jobs that make something, too: that holds all of their rollouts from the first tick. */
static bool may_keep(const struct job_run *job)
{
    return job->lease.spec.makes[0] == '\0' && !job->partial_refused && !job->cancelled &&
           job->failure == STATUS_OK && !outcome_any_flagged(job);
}

static bool is_due(const struct claim_loop *loop, const struct job_run *job, bool all)
{
    int64_t since_ns = clock_now_ns(loop->clock) - job->handed_ns;
    return job->finished_count > 0 && (all || since_ns >= keep_every_ns(loop->config)) &&
           may_keep(job);
}

/* The store has them, or refuses to take any more of this attempt. */
static enum status send(struct claim_loop *loop, struct job_run *job,
                        struct job_completion *completion, const uint32_t *picked,
                        struct error *error)
{
    struct store *store = loop->config->store;
    struct store_completion_result result;
    TRY(store->ops->complete(store, completion, 1, &result, error));
    job->partial_refused = result.status != STATUS_OK;
    for (uint32_t k = 0; k < completion->outcome_count && !job->partial_refused; k++) {
        TRY(job_run_keep(job, picked[k], &completion->outcomes[k], error));
    }
    return STATUS_OK;
}

static enum status hand_over(struct claim_loop *loop, const struct runner *runner,
                             struct job_run *job, struct error *error)
{
    uint32_t picked[1 + LIMIT_BRANCHES];
    const struct trace *main_trace = runner_main_trace(runner, job);
    struct job_completion completion = {.job_id = job->lease.job_id,
                                        .epoch = job->lease.epoch,
                                        .kind = COMPLETION_PARTIAL,
                                        .outcome_count = outcome_pick(job, main_trace, picked)};
    memcpy(completion.worker_id, loop->config->worker.worker_id, sizeof completion.worker_id);
    job->handed_ns = clock_now_ns(loop->clock);
    if (completion.outcome_count == 0) {
        return STATUS_OK;
    }
    claim_loop_add_costs(&completion, job);
    struct outcome *outcomes = calloc(completion.outcome_count, sizeof *outcomes);
    if (outcomes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "outcomes: out of memory");
    }
    enum status status =
        claim_loop_put_traces(loop, job, main_trace, completion.artifact_hash, error);
    for (uint32_t k = 0; status == STATUS_OK && k < completion.outcome_count; k++) {
        outcome_build(job, picked[k], &outcomes[k]);
        memcpy(outcomes[k].artifact_hash, completion.artifact_hash,
               sizeof outcomes[k].artifact_hash);
    }
    completion.outcomes = outcomes;
    THEN(status, send(loop, job, &completion, picked, error));
    free(outcomes);
    return status;
}

static enum status hand_checkpoint(struct claim_loop *loop, struct rollout *rollout,
                                   struct error *error)
{
    struct job_run *job = rollout->job;
    struct store *store = loop->config->store;
    struct store_completion_result result;
    char *data = NULL;
    size_t bytes = 0;
    struct outcome *outcome = calloc(1, sizeof *outcome);
    TRY(memory_check(outcome, error, "checkpoint: out of memory"));
    outcome_name(job, 0, outcome);
    enum status status = checkpoint_take(rollout, &data, &bytes, &outcome->ticks, error);
    THEN(status, store->ops->artifact_put(store, data, bytes, outcome->evidence_hash, error));
    free(data);
    if (status == STATUS_OK) {
        struct job_completion completion = {.job_id = job->lease.job_id,
                                            .epoch = job->lease.epoch,
                                            .kind = COMPLETION_PARTIAL,
                                            .outcomes = outcome,
                                            .outcome_count = 1};
        memcpy(completion.worker_id, loop->config->worker.worker_id, sizeof completion.worker_id);
        claim_loop_add_costs(&completion, job);
        status = store->ops->complete(store, &completion, 1, &result, error);
        job->partial_refused = status == STATUS_OK && result.status != STATUS_OK;
    }
    free(outcome);
    return status;
}

/* An outcome that cannot be handed over is lost with this worker, no more: whatever is wrong is met
 * again when the job is completed. What contradicts the store, as an artifact that has vanished
 * does, is the job's affair alone (NULL: there is none). */
static enum status note_refusal(struct claim_loop *loop, struct job_run *job, enum status status,
                                const struct error *error)
{
    if (status == STATUS_OK || status == STATUS_TIMEOUT) {
        return status;
    }
    if (status == STATUS_CONFLICT && job != NULL) {
        job->partial_refused = true;
        log_event(loop->config->logger, LOG_WARNING,
                  "job %" PRId64 ": finished rollouts are kept with their job alone: %s",
                  job->lease.job_id, error->text);
        return STATUS_OK;
    }
    loop->keeps_nothing = true;
    for (uint32_t i = 0; i < RUNNER_CACHE_RUNNERS_MAX; i++) {
        const struct runner *runner = loop->cache.entries[i].open.runner;
        for (job = runner != NULL ? runner_jobs(runner) : NULL; job != NULL; job = job->next) {
            job->partial_refused = true;
        }
    }
    log_event(loop->config->logger, LOG_WARNING,
              "finished rollouts are kept with their jobs alone from now on: %s", error->text);
    return STATUS_OK;
}

/* Hands over what is due of one job, or `all` that there is. */
static enum status hand_over_job(struct claim_loop *loop, const struct runner *runner,
                                 struct job_run *job, bool all, struct error *error)
{
    enum status status = STATUS_OK;
    if (is_due(loop, job, all)) {
        status = note_refusal(loop, job, hand_over(loop, runner, job, error), error);
    }
    struct rollout *part =
        runner_checkpoint_due(runner, job, all ? 0 : claim_loop_checkpoint_ns(loop->config));
    if (part != NULL && may_keep(job) && status == STATUS_OK && !loop->keeps_nothing) {
        status = note_refusal(loop, job, hand_checkpoint(loop, part, error), error);
    }
    return status;
}

enum status claim_loop_hand_over(struct claim_loop *loop, bool all, struct error *error)
{
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < RUNNER_CACHE_RUNNERS_MAX && !loop->keeps_nothing; i++) {
        const struct runner *runner = loop->cache.entries[i].open.runner;
        struct job_run *job = runner != NULL ? runner_jobs(runner) : NULL;
        for (; job != NULL && status == STATUS_OK && !loop->keeps_nothing; job = job->next) {
            status = hand_over_job(loop, runner, job, all, error);
        }
    }
    return status;
}

/* A job that a runner has, as claim_loop_give_up() says. */
static void give_up_job(struct claim_loop *loop, struct runner *runner, struct job_run *job)
{
    struct error error;
    bool keeps = loop->offline_ns == 0 && !loop->keeps_nothing;
    enum status status = keeps ? hand_over_job(loop, runner, job, true, &error) : STATUS_OK;
    if (status == STATUS_TIMEOUT) { /* the next job does not wait for it again */
        claim_loop_fell_silent(loop, &error);
    }
    if (status != STATUS_OK) {
        log_event(loop->config->logger, LOG_WARNING,
                  "job %" PRId64 ": what is finished of it is lost: %s", job->lease.job_id,
                  error.text);
    }
    runner_cancel(runner, job->lease.job_id, job->lease.epoch);
    loop->made_way = true;
}

void claim_loop_give_up(struct claim_loop *loop, int64_t job_id, int64_t epoch)
{
    for (uint32_t i = 0; i < RUNNER_CACHE_RUNNERS_MAX; i++) {
        struct runner *runner = loop->cache.entries[i].open.runner;
        struct job_run *job = runner != NULL ? runner_jobs(runner) : NULL;
        while (job != NULL && (job->lease.job_id != job_id || job->lease.epoch != epoch)) {
            job = job->next;
        }
        if (job != NULL && !job->cancelled) {
            give_up_job(loop, runner, job);
        }
    }
    for (uint32_t i = 0; i < loop->waiting_count; i++) {
        struct claim_waiting *waiting = &loop->waiting[i];
        bool is_it = waiting->lease.job_id == job_id && waiting->lease.epoch == epoch;
        waiting->given_up = waiting->given_up || is_it;
        loop->made_way = loop->made_way || is_it;
    }
    for (struct claim_clip *clip = loop->clips; clip != NULL; clip = clip->next) {
        bool is_it = clip->lease.job_id == job_id && clip->lease.epoch == epoch;
        clip->cancelled = clip->cancelled || is_it;
        loop->made_way = loop->made_way || is_it;
    }
}

/* Reason why a partial outcome cannot be this job's; NULL: none. */
static const char *find_fault(const struct job_run *job, const struct outcome *outcome)
{
    const struct job_context asked = job_context_of_spec(&job->lease.spec);
    const struct job_context answered = job_context_of_outcome(outcome);
    uint32_t differs =
        job_context_differs(&answered, &asked,
                            JOB_CONTEXT_SEED | JOB_CONTEXT_TIER | JOB_CONTEXT_SCENARIO_HASH |
                                JOB_CONTEXT_PLANNER | JOB_CONTEXT_PLANNER_HASH |
                                JOB_CONTEXT_MODEL_HASH | JOB_CONTEXT_SAMPLER | JOB_CONTEXT_RIG);
    return job_run_rollout_of(job, outcome->branch_id) == job->rollout_count
               ? "it is none of the scenario's"
           : outcome->artifact_hash[0] == '\0' && !checkpoint_is(outcome) ? "no trace came with it"
           : outcome->verdict == VERDICT_FLAGGED                          ? "it was flagged"
           : outcome->prefix_ticks > outcome->ticks ? "it ended before it began"
           : differs != 0                           ? "it answers another question"
                                                    : NULL;
}

/* The log of a main line that an earlier attempt did not finish; one that is none of this build is
 * of no use. */
static enum status take_checkpoint(const struct claim_loop *loop, struct job_run *job,
                                   const void *data, size_t bytes)
{
    struct error error;
    enum status status = checkpoint_restore(job, data, bytes, &error);
    if (status != STATUS_OK) {
        log_event(loop->config->logger, LOG_WARNING,
                  "job %" PRId64 ": is driven from its start: %s", job->lease.job_id, error.text);
    }
    return status == STATUS_NO_MEMORY ? status : STATUS_OK;
}

/* Takes out the outcomes that cannot be the job's, and those whose artifact the store has no more,
 * or has damaged. */
static enum status drop_faulty(struct claim_loop *loop, struct job_run *job,
                               struct outcome *outcomes, uint32_t *count, struct error *error)
{
    struct store *store = loop->config->store;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++) {
        bool part = checkpoint_is(&outcomes[i]);
        const char *hash = part ? outcomes[i].evidence_hash : outcomes[i].artifact_hash;
        const char *fault = find_fault(job, &outcomes[i]);
        void *data = NULL;
        size_t bytes = 0;
        bool known = kept > 0 && strcmp(hash, outcomes[kept - 1].artifact_hash) == 0;
        enum status status = known || fault != NULL
                                 ? STATUS_OK
                                 : store->ops->artifact_get(store, hash, &data, &bytes, error);
        if (status == STATUS_OK && part && fault == NULL) {
            status = take_checkpoint(loop, job, data, bytes);
        }
        free(data);
        if (status == STATUS_OK && part && fault == NULL) {
            continue;
        }
        if (fault != NULL) {
            log_event(loop->config->logger, LOG_WARNING,
                      "job %" PRId64 ": the store keeps an outcome of branch \"%s\", and %s; it is "
                      "left out, and the rollout driven",
                      job->lease.job_id, outcomes[i].branch_id, fault);
            continue;
        }
        if (status == STATUS_NOT_FOUND || status == STATUS_BAD_INPUT || status == STATUS_IO) {
            log_event(loop->config->logger, LOG_WARNING,
                      "job %" PRId64 ": branch \"%s\" was %s before and is driven again: %s",
                      job->lease.job_id, outcomes[i].branch_id, part ? "begun" : "finished",
                      error->text);
            continue;
        }
        if (status != STATUS_OK) {
            return status;
        }
        outcomes[kept++] = outcomes[i];
    }
    *count = kept;
    return STATUS_OK;
}

enum status claim_loop_restore(struct claim_loop *loop, struct job_run *job, struct error *error)
{
    struct store *store = loop->config->store;
    uint32_t count = 0;
    bool alone = job->rollout_count == 1 && job->lease.spec.tier < TIER_STUDENT;
    if (job->lease.epoch <= 1 || alone) {
        return STATUS_OK; /* nobody was here before, or left but a part */
    }
    struct outcome *outcomes = calloc(job->rollout_count, sizeof *outcomes);
    if (outcomes == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "job: out of memory");
    }
    enum status status =
        store->ops->partials(store, job->lease.job_id, outcomes, job->rollout_count, &count, error);
    if (status == STATUS_USAGE) { /* a server of an earlier version */
        status = note_refusal(loop, NULL, status, error);
        count = 0;
    }
    THEN(status, drop_faulty(loop, job, outcomes, &count, error));
    THEN(status, job_run_restore(job, outcomes, count, error));
    if (status == STATUS_OK && count > 0) {
        log_event(loop->config->logger, LOG_INFO,
                  "job %" PRId64 ": %" PRIu32 " of %" PRIu32 " rollouts were finished before",
                  job->lease.job_id, count, job->rollout_count);
    }
    free(outcomes);
    return status;
}
