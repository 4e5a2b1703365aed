/*
 * Claim loop's reports: what becomes of a job that left its runner, or never got one. Makes its
 * completion, sends traces and pictures ahead of the outcomes that name them, gathers completions
 * for one commit, and tells the lease keeper what is held.
 *
 * Every claimed job gets exactly one completion; until the store has taken that, the job counts as
 * running. Completions wait in a small batch, to share a commit, and longer while the store is
 * silent. Cost is reported as integer nanoseconds and millimetres, never as money.
 */
#include "worker/run/claim_loop_internal.h"

#include "base/check.h"
#include "base/units.h"
#include "base/utf8.h"
#include "worker/models/snapshot.h"
#include "worker/run/outcome_build.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COMPLETION_WAIT_MS = 30 }; /* a completion waits no longer for others to share its commit */

void claim_loop_pending_clear(struct claim_loop *loop)
{
    for (uint32_t i = 0; i < loop->pending_count; i++) {
        free((void *)(uintptr_t)loop->pending[i].outcomes);
    }
    loop->pending_count = 0;
}

/* Whoever drains by hand asks for results: the first failures are said aloud. */
static void tell_failure(struct claim_loop *loop, int64_t job_id, const char *text)
{
    bool aloud = loop->config->drain && loop->failed_count++ < CLAIM_LOOP_FAILURES_TOLD;
    log_event(loop->config->logger, aloud ? LOG_ERROR : LOG_WARNING, "job %lld: %.*s",
              (long long)job_id, (int)(aloud ? strcspn(text, "\r\n") : strlen(text)), text);
}

/* A job whose planner did not start was taken back, as such or, when not excused, as failed. */
static void note_unstarted(struct claim_loop *loop, uint32_t index, bool excused)
{
    const struct job_completion *completion = &loop->pending[index];
    unstarted_judge(&loop->unstarted, &loop->pending_planners[index], completion->job_id, excused,
                    loop->config->logger);
    if (!excused) {
        tell_failure(loop, completion->job_id, completion->error);
    }
}

void claim_loop_fail_completion(struct claim_loop *loop, struct job_completion *completion,
                                const char *text)
{
    completion->kind = COMPLETION_FAILED;
    completion->outcome_count = 0;
    completion->artifact_hash[0] = '\0';
    snprintf(completion->error, sizeof completion->error, "%s", text);
    utf8_repair(completion->error);
    tell_failure(loop, completion->job_id, text);
}

/* Completes one by one what the store did not take at once, because one of them contradicts it: an
 * artifact that has vanished since it was put there. That attempt has failed, and no other. */
static enum status complete_each(struct claim_loop *loop, struct store_completion_result *results,
                                 struct error *error)
{
    struct store *store = loop->config->store;
    for (uint32_t i = 0; i < loop->pending_count; i++) {
        struct job_completion *completion = &loop->pending[i];
        enum status status = store->ops->complete(store, completion, 1, &results[i], error);
        if (status == STATUS_CONFLICT && completion->outcome_count > 0) {
            loop->stats.jobs--;
            claim_loop_fail_completion(loop, completion, error->text);
            status = store->ops->complete(store, completion, 1, &results[i], error);
        }
        if (status != STATUS_OK) {
            return status;
        }
    }
    return STATUS_OK;
}

enum status claim_loop_flush(struct claim_loop *loop, struct error *error)
{
    if (loop->pending_count == 0) {
        return STATUS_OK;
    }
    struct store *store = loop->config->store;
    struct store_completion_result results[CLAIM_LOOP_COMPLETION_BATCH];
    enum status status =
        store->ops->complete(store, loop->pending, loop->pending_count, results, error);
    if (status == STATUS_CONFLICT) {
        status = complete_each(loop, results, error);
    }
    if (status == STATUS_TIMEOUT) {
        return status; /* they wait: see note_offline */
    }
    for (uint32_t i = 0; status == STATUS_OK && i < loop->pending_count; i++) {
        if (results[i].status == STATUS_STALE) {
            loop->stats.stale++;
            log_event(loop->config->logger, LOG_WARNING,
                      "job %lld: the result of epoch %lld came too late; only its cost was kept",
                      (long long)loop->pending[i].job_id, (long long)loop->pending[i].epoch);
        } else if (loop->pending[i].kind == COMPLETION_UNSTARTED) {
            note_unstarted(loop, i, results[i].excused);
        }
    }
    loop->silent_ns = status == STATUS_OK ? 0 : loop->silent_ns;
    loop->running_count -= loop->pending_count;
    claim_loop_pending_clear(loop);
    return status;
}

void claim_loop_wait(struct claim_loop *loop, const struct job_lease *lease)
{
    CHECK(loop->waiting_count < LIMIT_CLAIM_JOBS);
    loop->waiting[loop->waiting_count++] = (struct claim_waiting){.lease = *lease};
}

uint32_t claim_loop_leave_alone(struct claim_loop *loop)
{
    uint32_t count = loop->unstarted.count;
    memcpy(loop->without, loop->unstarted.planners, count * sizeof *loop->without);
    for (uint32_t i = 0; i < loop->waiting_count; i++) {
        count = unstarted_list(loop->without, count, &loop->waiting[i].lease.spec);
    }
    return count;
}

struct job_completion *claim_loop_pending_add(struct claim_loop *loop,
                                              const struct job_lease *lease)
{
    CHECK(loop->pending_count < CLAIM_LOOP_COMPLETION_BATCH);
    if (loop->pending_count == 0) {
        loop->pending_since_ns = clock_now_ns(loop->clock);
    }
    unstarted_planner(&lease->spec, &loop->pending_planners[loop->pending_count]);
    struct job_completion *completion = &loop->pending[loop->pending_count++];
    *completion = (struct job_completion){.job_id = lease->job_id, .epoch = lease->epoch};
    memcpy(completion->worker_id, loop->config->worker.worker_id, sizeof completion->worker_id);
    return completion;
}

enum status claim_loop_make_room(struct claim_loop *loop, struct error *error)
{
    return loop->pending_count < CLAIM_LOOP_COMPLETION_BATCH ? STATUS_OK
                                                             : claim_loop_flush(loop, error);
}

void claim_loop_add_costs(struct job_completion *completion, const struct job_run *job)
{
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        completion->device_ns += job->results[i].device_ns;
        completion->metres_mm += job->results[i].metres_mm;
    }
    completion->mflop = outcome_job_mflop(job);
}

/* ---- whose fault it is ---- */

/* The job's world, or the release that it asks for (MISMATCH), does not run here: no more of such
 * jobs are claimed. False: there are too many kinds to leave another one. */
static bool leave_world(struct claim_loop *loop, const struct job_lease *lease, enum status status,
                        const char *text)
{
    struct store_planner world;
    struct error why;
    error_set(&why, status, "%.900s", text);
    if (status == STATUS_MISMATCH) {
        unstarted_release(&lease->spec, &world);
    } else {
        unstarted_world(&lease->spec, &world);
    }
    if (!unstarted_has(&loop->unstarted, &world) &&
        !unstarted_add(&loop->unstarted, &world, &why)) {
        return false;
    }
    unstarted_hand_back(&loop->unstarted, &world, lease->job_id, loop->config->logger);
    return true;
}

/* Number of times that this host has given the job back, this one included. */
static uint32_t count_fault(struct claim_loop *loop, int64_t job_id)
{
    for (uint32_t i = 0; i < CLAIM_LOOP_FAULTY_JOBS; i++) {
        if (loop->faulty_jobs[i].job_id == job_id) {
            return ++loop->faulty_jobs[i].times;
        }
    }
    uint32_t place = loop->faulty_next++ % CLAIM_LOOP_FAULTY_JOBS;
    loop->faulty_jobs[place].job_id = job_id;
    loop->faulty_jobs[place].times = 1;
    return 1;
}

/* Memory, disk or descriptors are short here: nothing is claimed for a while, and longer each time.
 * A host that finishes nothing in between ends its loop; where others are finished beside a job
 * that was given back several times, it is the job, unless that is of another release. */
static void give_back(struct claim_loop *loop, struct job_completion *completion,
                      const struct job_lease *lease, enum status status, const char *text)
{
    if (status != STATUS_MISMATCH && count_fault(loop, lease->job_id) > CLAIM_LOOP_FAULTS_JOB &&
        loop->fault_count == 0) {
        claim_loop_fail_completion(loop, completion, text);
        return;
    }
    completion->kind = COMPLETION_RELEASED;
    /* One claim brings many jobs, each of which may be a fault. */
    uint32_t doubled =
        loop->fault_count < CLAIM_LOOP_FAULTS_MAX ? loop->fault_count : CLAIM_LOOP_FAULTS_MAX;
    int64_t pause_ms = (int64_t)CLAIM_LOOP_FAULT_PAUSE_MS << doubled;
    loop->fault_count++;
    loop->paused_until_ns = clock_now_ns(loop->clock) + pause_ms * NS_PER_MS;
    log_event(loop->config->logger, loop->fault_count == 1 ? LOG_ERROR : LOG_WARNING,
              "job %lld goes back uncharged, for a fault of this host: %.*s",
              (long long)lease->job_id, (int)strcspn(text, "\r\n"), text);
    if (loop->fault_count >= CLAIM_LOOP_FAULTS_MAX) {
        error_set(&loop->refusal, status, "%.900s", text);
    }
}

bool claim_loop_paused(const struct claim_loop *loop)
{
    return loop->paused_until_ns != 0 && clock_now_ns(loop->clock) < loop->paused_until_ns;
}

void claim_loop_end_broken(struct claim_loop *loop, struct job_completion *completion,
                           const struct job_lease *lease, enum status status, const char *text)
{
    completion->outcome_count = 0;
    completion->artifact_hash[0] = '\0';
    switch (status) {
    case STATUS_DEVICE:
    case STATUS_MISMATCH: /* this worker is of another revision than the job */
        completion->kind = COMPLETION_RELEASED;
        if (!leave_world(loop, lease, status, text)) {
            give_back(loop, completion, lease, status, text);
        }
        break;
    case STATUS_NO_MEMORY:
    case STATUS_IO:
        give_back(loop, completion, lease, status, text);
        break;
    default:
        claim_loop_fail_completion(loop, completion, text);
        break;
    }
}

void claim_loop_hand_back_unstarted(struct claim_loop *loop, const struct job_lease *lease,
                                    const struct error *why)
{
    struct store_planner planner;
    unstarted_planner(&lease->spec, &planner);
    if (!unstarted_has(&loop->unstarted, &planner) &&
        !unstarted_add(&loop->unstarted, &planner, why)) {
        claim_loop_fail_completion(loop, claim_loop_pending_add(loop, lease), why->text);
        return;
    }
    struct job_completion *completion = claim_loop_pending_add(loop, lease);
    completion->kind = COMPLETION_UNSTARTED;
    snprintf(completion->error, sizeof completion->error, "%s", why->text);
    utf8_repair(completion->error);
}

static const char *first_flag(const struct job_run *job)
{
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        if (job->results[i].verdict == VERDICT_FLAGGED) {
            return job->results[i].error;
        }
    }
    return "";
}

/* The picture of a flagged frame; a branch that shares its main line's end shares that too. */
static enum status put_snapshot(struct store *store, const struct job_run *job, uint32_t index,
                                struct outcome *outcomes, struct error *error)
{
    const struct rollout_result *result = &job->results[index];
    uint8_t *png = NULL;
    size_t bytes = 0;
    if (result->snapshot == NULL) {
        if (result->health.check != HEALTH_OK && index > 0) {
            memcpy(outcomes[index].evidence_hash, outcomes[0].evidence_hash,
                   sizeof outcomes[index].evidence_hash);
        }
        return STATUS_OK;
    }
    enum status status = snapshot_png(result->snapshot, &png, &bytes, error);
    if (status == STATUS_OK) {
        status = store->ops->artifact_put(store, png, bytes, outcomes[index].evidence_hash, error);
        free(png);
    }
    return status;
}

bool claim_loop_store_refuses(enum status status)
{
    return status == STATUS_IO || status == STATUS_STORE;
}

enum status claim_loop_put_traces(struct claim_loop *loop, const struct job_run *job,
                                  const struct trace *main_trace, char hash[SHA256_HEX_BYTES],
                                  struct error *error)
{
    struct store *store = loop->config->store;
    uint32_t picked[1 + LIMIT_BRANCHES];
    uint8_t *data = NULL;
    size_t bytes = 0;
    uint32_t count = outcome_pick(job, main_trace, picked);
    if (count == 0) {
        return STATUS_OK;
    }
    enum status status = outcome_pack_traces(job, main_trace, picked, count, &data, &bytes, error);
    THEN(status, store->ops->artifact_put(store, data, bytes, hash, error));
    free(data);
    return status;
}

/* A recording that no store takes is so however often it is driven: the main line says why. */
static void end_unkept(struct job_run *job)
{
    struct rollout_result *result = &job->results[0];
    result->verdict = VERDICT_PLANNER_ERROR;
    result->reasons = 0;
    result->invalid = NULL;
    snprintf(result->error, sizeof result->error, "%s", job->film_fault);
}

/* Tells what the job makes; of one that is no result, evidence as of any other. */
static enum status put_made(struct claim_loop *loop, struct job_run *job,
                            char hash[SHA256_HEX_BYTES], struct error *error)
{
    struct store *store = loop->config->store;
    uint8_t *data = NULL;
    size_t bytes = 0;
    bool makes = job->lease.spec.makes[0] != '\0';
    bool result = makes && job->film_fault[0] == '\0';
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        result = result && job->results[i].verdict != VERDICT_FLAGGED &&
                 job->results[i].verdict != VERDICT_PLANNER_ERROR;
    }
    enum status status = result ? loop->config->pack_golden(job, &data, &bytes, error) : STATUS_OK;
    if (status == STATUS_LIMIT) {
        snprintf(job->film_fault, sizeof job->film_fault, "%s", error->text);
        result = false;
        status = STATUS_OK;
    }
    if (makes && job->film_fault[0] != '\0' && job->results[0].verdict != VERDICT_FLAGGED) {
        end_unkept(job);
    }
    if (status == STATUS_OK && !result) {
        return claim_loop_put_traces(loop, job, &job->results[0].trace, hash, error);
    }
    THEN(status, store->ops->artifact_put(store, data, bytes, hash, error));
    free(data);
    return status;
}

/* Traces first, then the outcomes that refer to them. STATUS_TIMEOUT: nothing was attached, because
 * the store is silent; STATUS_IO, STATUS_STORE: because it cannot keep the artifacts. Whatever else
 * goes wrong is the attempt's failure. */
static enum status attach_outcomes(struct claim_loop *loop, struct job_completion *completion,
                                   struct job_run *job, struct error *error)
{
    struct store *store = loop->config->store;
    struct outcome *outcomes = calloc(job->rollout_count, sizeof *outcomes);
    if (outcomes == NULL) {
        error_set(error, STATUS_NO_MEMORY, "outcomes: out of memory");
        claim_loop_end_broken(loop, completion, &job->lease, error->status, error->text);
        return STATUS_OK;
    }
    enum status status = put_made(loop, job, completion->artifact_hash, error);
    for (uint32_t i = 0; status == STATUS_OK && i < job->rollout_count; i++) {
        outcome_build(job, i, &outcomes[i]);
        if (job->results[i].kept == NULL) { /* the others have artifacts of their own */
            memcpy(outcomes[i].artifact_hash, completion->artifact_hash,
                   sizeof outcomes[i].artifact_hash);
            status = put_snapshot(store, job, i, outcomes, error);
        }
    }
    if (status != STATUS_OK) {
        free(outcomes);
        if (status == STATUS_TIMEOUT || claim_loop_store_refuses(status)) {
            return status;
        }
        claim_loop_end_broken(loop, completion, &job->lease, status, error->text);
        return STATUS_OK;
    }
    completion->kind = COMPLETION_DONE;
    if (outcome_any_flagged(job)) {
        completion->kind = COMPLETION_FLAGGED;
        snprintf(completion->error, sizeof completion->error, "%s", first_flag(job));
    }
    completion->outcomes = outcomes;
    completion->outcome_count = job->rollout_count;
    return STATUS_OK;
}

void claim_loop_drop_job(struct claim_loop *loop, struct job_run *job)
{
    struct prepared *prepared = job->prepared;
    job_run_destroy(job);
    prepared_cache_put(loop->prepared_scenarios, prepared);
}

/* The job goes back without an attempt charged, and the loop ends with what the store said: jobs
 * would use up their attempts, one after the other, until somebody makes room. */
static void give_back_refused(struct claim_loop *loop, struct job_completion *completion,
                              const struct error *error)
{
    completion->kind = COMPLETION_RELEASED;
    completion->outcome_count = 0;
    completion->artifact_hash[0] = '\0';
    loop->refusal = *error;
}

/* Turns a job that left its runner into a completion. STATUS_TIMEOUT: the store is silent, the job
 * is kept for later. */
static enum status report(struct claim_loop *loop, struct job_run *job, struct error *error)
{
    struct job_completion *completion = claim_loop_pending_add(loop, &job->lease);
    claim_loop_add_costs(completion, job);
    if (job->cancelled) {
        completion->kind = COMPLETION_RELEASED;
    } else if (job->failure != STATUS_OK) {
        claim_loop_end_broken(loop, completion, &job->lease, job->failure, job->error);
    } else {
        enum status status = attach_outcomes(loop, completion, job, error);
        if (status == STATUS_TIMEOUT) {
            loop->pending_count--;
            CHECK(loop->unsent_count < LIMIT_CLAIM_JOBS);
            loop->unsent[loop->unsent_count++] = job;
            return STATUS_TIMEOUT;
        }
        if (status != STATUS_OK) {
            give_back_refused(loop, completion, error);
        } else if (completion->kind == COMPLETION_DONE || completion->kind == COMPLETION_FLAGGED) {
            loop->stats.jobs++;
            loop->fault_count = 0;
        }
    }
    claim_loop_drop_job(loop, job);
    return STATUS_OK;
}

/* The jobs that a silent store did not take before. */
static enum status send_unsent(struct claim_loop *loop, struct error *error)
{
    while (loop->unsent_count > 0) {
        TRY(claim_loop_make_room(loop, error));
        TRY(report(loop, loop->unsent[--loop->unsent_count], error));
    }
    return STATUS_OK;
}

enum status claim_loop_collect(struct claim_loop *loop, bool force, struct error *error)
{
    enum status status = send_unsent(loop, error);
    for (uint32_t i = 0; i < RUNNER_CACHE_RUNNERS_MAX && status == STATUS_OK; i++) {
        struct job_run *job;
        /* Room for one, here or in claim(). */
        while ((status = claim_loop_make_room(loop, error)) == STATUS_OK &&
               loop->cache.entries[i].open.runner != NULL &&
               (job = runner_take(loop->cache.entries[i].open.runner)) != NULL) {
            status = report(loop, job, error);
            if (status != STATUS_OK) {
                break;
            }
        }
    }
    if (status != STATUS_OK) {
        return status;
    }
    int64_t waited_ns = clock_now_ns(loop->clock) - loop->pending_since_ns;
    if (loop->pending_count > 0 && (force || loop->pending_count == loop->running_count ||
                                    waited_ns > COMPLETION_WAIT_MS * NS_PER_MS)) {
        return claim_loop_flush(loop, error);
    }
    return STATUS_OK;
}

static struct store_progress progress_of(const struct job_completion *completion)
{
    int64_t ticks = 0;
    for (uint32_t i = 0; i < completion->outcome_count; i++) {
        ticks += (int64_t)completion->outcomes[i].ticks - completion->outcomes[i].prefix_ticks;
    }
    return (struct store_progress){.job_id = completion->job_id,
                                   .epoch = completion->epoch,
                                   .device_ns = completion->device_ns,
                                   .metres_mm = completion->metres_mm,
                                   .mflop = completion->mflop,
                                   .ticks = ticks};
}

void claim_loop_fell_silent(struct claim_loop *loop, const struct error *error)
{
    if (loop->offline_ns == 0) {
        log_event(loop->config->logger, LOG_ERROR, "the store is silent; going on without it: %s",
                  error->text);
        loop->offline_ns = clock_now_ns(loop->clock);
        loop->silent_ns = loop->silent_ns != 0 ? loop->silent_ns : loop->offline_ns;
    }
}

enum status claim_loop_note_offline(struct claim_loop *loop, enum status status,
                                    struct error *error)
{
    if (status != STATUS_TIMEOUT || loop->config->offline_limit_ms == 0) {
        return status;
    }
    claim_loop_fell_silent(loop, error);
    return STATUS_OK;
}

enum status claim_loop_check_offline(struct claim_loop *loop, bool *offline, struct error *error)
{
    int64_t limit_ns = loop->config->offline_limit_ms * NS_PER_MS;
    if (loop->offline_ns != 0 && lease_keeper_answered_ns(loop->keeper) > loop->offline_ns) {
        log_event(loop->config->logger, LOG_ERROR, "the store answers again after %.1f s",
                  (double)(clock_now_ns(loop->clock) - loop->offline_ns) / (double)NS_PER_S);
        loop->offline_ns = 0;
    }
    *offline = loop->offline_ns != 0;
    if (*offline && clock_now_ns(loop->clock) - loop->silent_ns > limit_ns) {
        return error_set(error, STATUS_TIMEOUT,
                         "the store has been silent for %.0f s; what was not reported is run again",
                         (double)limit_ns / (double)NS_PER_S);
    }
    return STATUS_OK;
}

void claim_loop_report_to_keeper(struct claim_loop *loop)
{
    loop->reported_ns = clock_now_ns(loop->clock);
    struct runner_progress from[LIMIT_CLAIM_JOBS];
    struct store_progress to[LIMIT_CLAIM_JOBS];
    uint32_t count = 0;
    for (uint32_t i = 0; i < RUNNER_CACHE_RUNNERS_MAX; i++) {
        if (loop->cache.entries[i].open.runner != NULL) {
            count += runner_progress(loop->cache.entries[i].open.runner, from + count,
                                     LIMIT_CLAIM_JOBS - count);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        to[i] = (struct store_progress){from[i].job_id,
                                        from[i].epoch,
                                        from[i].device_ns,
                                        from[i].metres_mm,
                                        (int64_t)(from[i].flop * 1e-6),
                                        from[i].ticks};
    }
    for (const struct claim_clip *clip = loop->clips; clip != NULL && count < LIMIT_CLAIM_JOBS;
         clip = clip->next) {
        to[count++] = (struct store_progress){.job_id = clip->lease.job_id,
                                              .epoch = clip->lease.epoch,
                                              .device_ns = clip->made.device_ns,
                                              .metres_mm = clip->made.metres_mm};
    }
    for (uint32_t i = 0; i < loop->waiting_count && count < LIMIT_CLAIM_JOBS; i++) {
        to[count++] = (struct store_progress){.job_id = loop->waiting[i].lease.job_id,
                                              .epoch = loop->waiting[i].lease.epoch};
    }
    /* Results on their way to the store are still ours. */
    for (uint32_t i = 0; i < loop->pending_count && count < LIMIT_CLAIM_JOBS; i++) {
        to[count++] = progress_of(&loop->pending[i]);
    }
    for (uint32_t i = 0; i < loop->unsent_count && count < LIMIT_CLAIM_JOBS; i++) {
        struct job_completion completion = {.job_id = loop->unsent[i]->lease.job_id,
                                            .epoch = loop->unsent[i]->lease.epoch};
        claim_loop_add_costs(&completion, loop->unsent[i]);
        to[count++] = progress_of(&completion);
    }
    lease_keeper_report(loop->keeper, to, count);
}
