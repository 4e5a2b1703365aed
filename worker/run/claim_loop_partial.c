/*
 * Partial outcomes: what is finished of a job outlives its attempt. While a job goes on, outcomes
 * of its finished rollouts are handed to the store every now and then, traces first; whoever claims
 * the job after this worker takes them as they are and drives the rest.
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
#include "worker/run/outcome_build.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { KEEP_EVERY_MS = 1000 };

static bool is_due(const struct claim_loop *loop, const struct job_run *job, bool all)
{
    int64_t every_ms = loop->config->keep_every_ms;
    every_ms = every_ms == 0 ? KEEP_EVERY_MS : every_ms < 0 ? 0 : every_ms;
    int64_t since_ns = clock_now_ns(loop->clock) - job->handed_ns;
    bool whole = job->lease.spec.makes[0] != '\0'; /* what it makes holds all of its rollouts */
    return !whole && job->finished_count > 0 && (all || since_ns >= every_ms * NS_PER_MS) &&
           !job->partial_refused && !job->cancelled && job->failure == STATUS_OK &&
           !outcome_any_flagged(job);
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
    log_event(loop->config->logger, LOG_WARNING,
              "finished rollouts are kept with their jobs alone from now on: %s", error->text);
    return STATUS_OK;
}

enum status claim_loop_hand_over(struct claim_loop *loop, bool all, struct error *error)
{
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < RUNNER_CACHE_RUNNERS_MAX && !loop->keeps_nothing; i++) {
        const struct runner *runner = loop->cache.entries[i].open.runner;
        struct job_run *job = runner != NULL ? runner_jobs(runner) : NULL;
        for (; job != NULL && status == STATUS_OK && !loop->keeps_nothing; job = job->next) {
            if (is_due(loop, job, all)) {
                status = note_refusal(loop, job, hand_over(loop, runner, job, error), error);
            }
        }
    }
    return status;
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
           : outcome->artifact_hash[0] == '\0'      ? "no trace came with it"
           : outcome->verdict == VERDICT_FLAGGED    ? "it was flagged"
           : outcome->prefix_ticks > outcome->ticks ? "it ended before it began"
           : differs != 0                           ? "it answers another question"
                                                    : NULL;
}

/* Takes out the outcomes that cannot be the job's, and those whose artifact the store has no more.
 */
static enum status drop_faulty(struct claim_loop *loop, const struct job_run *job,
                               struct outcome *outcomes, uint32_t *count, struct error *error)
{
    struct store *store = loop->config->store;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *count; i++) {
        const char *hash = outcomes[i].artifact_hash;
        const char *fault = find_fault(job, &outcomes[i]);
        void *data = NULL;
        size_t bytes = 0;
        bool known = kept > 0 && strcmp(hash, outcomes[kept - 1].artifact_hash) == 0;
        enum status status = known || fault != NULL
                                 ? STATUS_OK
                                 : store->ops->artifact_get(store, hash, &data, &bytes, error);
        free(data);
        if (fault != NULL) {
            log_event(loop->config->logger, LOG_WARNING,
                      "job %" PRId64 ": the store keeps an outcome of branch \"%s\", and %s; it is "
                      "left out, and the rollout driven",
                      job->lease.job_id, outcomes[i].branch_id, fault);
            continue;
        }
        if (status == STATUS_NOT_FOUND || status == STATUS_BAD_INPUT) {
            log_event(loop->config->logger, LOG_WARNING,
                      "job %" PRId64 ": branch \"%s\" was finished before and is driven again: %s",
                      job->lease.job_id, outcomes[i].branch_id, error->text);
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
    if (job->lease.epoch <= 1 || job->rollout_count == 1) {
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
