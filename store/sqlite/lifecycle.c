/*
 * The end of attempts: completing.
 *
 * A completion counts while its epoch is the job's current one and its worker the one that claimed
 * it; the lease does not matter here. So a worker that was thought lost, but whose job nobody has
 * claimed since, is still in time. One that is too late leaves only its cost. Every (job, epoch) is
 * charged once as a whole: what follows a first, provisional charge adds the difference.
 *
 * A partial completion ends nothing. It counts while its attempt holds the lease, and what that has
 * cost so far is noted with it, so that what is kept of an attempt is charged if it vanishes.
 */
#include "base/check.h"
#include "base/units.h"
#include "store/sqlite/records.h"
#include "store/sqlite/sqlite_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { STORE_COMPLETE_MAX = 4096 }; /* completions of one call */

#define BACKOFF_NS_MAX (60 * NS_PER_S)

struct complete_call {
    struct sqlite_store *store;
    const struct job_completion *completions;
    uint32_t count;
    struct store_completion_result *results;
    struct tally tally;
};

/* The job as the completion finds it. */
struct held_job {
    bool found;
    int64_t state;
    int64_t epoch;
    int64_t worker;
    char worker_id[LIMIT_ID_BYTES];
    char device[LIMIT_ID_BYTES];
    int64_t attempts;
    int64_t lost;
    int64_t suite;
    int64_t pool;
    int64_t prefix;
    int64_t progress_ns;
    int64_t progress_mm;
    int64_t progress_mflop;
    int64_t scenario;
    int64_t context;
    struct job_spec spec;
    int64_t ticks; /* planned */
};

/* Result of a completion for its job. */
struct job_end {
    enum job_state state;
    enum attempt_end end;
    int64_t attempts;
    int64_t lost;
    int64_t delay_ns;
    int64_t escalated_job;
};

static enum status read_held(struct db *db, int64_t job_id, struct held_job *job,
                             struct error *error)
{
    struct query query = query_begin(db, STATEMENT_JOB_HELD);

    query_int(&query, job_id);
    job->found = query_row(&query);
    if (job->found) {
        job->state = query_column_int(&query, 0);
        job->epoch = query_column_int(&query, 1);
        job->worker = query_column_int(&query, 2);
        query_column_text(&query, 3, job->worker_id, sizeof job->worker_id);
        query_column_text(&query, 4, job->device, sizeof job->device);
        job->attempts = query_column_int(&query, 5);
        job->lost = query_column_int(&query, 6);
        job->suite = query_column_int(&query, 7);
        job->pool = query_column_int(&query, 8);
        job->prefix = query_column_int(&query, 9);
        job->progress_ns = query_column_int(&query, 10);
        job->progress_mm = query_column_int(&query, 11);
        job->progress_mflop = query_column_int(&query, 12);
        job->scenario = query_column_int(&query, 13);
        job->context = query_column_int(&query, 14);
        record_spec_read(&query, 15, &job->spec);
        job->ticks = query_column_int(&query, 15 + RECORD_SPEC_COLUMNS);
    }
    return query_end(&query, error);
}

/* ---- what becomes of the job ---- */

static struct job_end end_of(const struct sqlite_store *store, const struct held_job *job,
                             enum completion_kind kind, bool escalates, int64_t lost)
{
    struct job_end end = {.attempts = job->attempts, .lost = lost};
    int64_t failures = job->attempts - lost;

    switch (kind) {
    case COMPLETION_DONE:
        end.state = JOB_DONE;
        end.end = ATTEMPT_DONE;
        break;
    case COMPLETION_FLAGGED:
        end.state = escalates ? JOB_FLAGGED : JOB_DEAD;
        end.end = ATTEMPT_FLAGGED;
        break;
    case COMPLETION_FAILED:
        end.end = ATTEMPT_FAILED;
        end.state = JOB_DEAD;
        if (failures < (int64_t)job->spec.attempts_max) {
            end.state = JOB_QUEUED;
            end.delay_ns = store->backoff_ns;
            for (int64_t i = 1; i < failures && end.delay_ns < BACKOFF_NS_MAX; i++) {
                end.delay_ns *= 2;
            }
            end.delay_ns = end.delay_ns < BACKOFF_NS_MAX ? end.delay_ns : BACKOFF_NS_MAX;
        }
        break;
    default:
        end.state = JOB_QUEUED;
        end.end = ATTEMPT_RELEASED;
        end.attempts--;
        break;
    }
    return end;
}

/* The teacher's job for a flagged one: the same question to another pool, tier and model. Without a
 * key of its own it gets one derived from the flagged job's, so that it exists once. */
static enum status escalate(struct complete_call *call, const struct held_job *job,
                            const struct job_completion *completion, int64_t *job_id,
                            struct error *error)
{
    char text[SHA256_HEX_BYTES + LIMIT_ID_BYTES + 64];
    struct job_spec spec = job->spec;

    if (completion->escalate_key[0] != '\0') {
        memcpy(spec.key, completion->escalate_key, sizeof spec.key);
    } else {
        int bytes = snprintf(text, sizeof text, "escalation %s %s %s", job->spec.key,
                             completion->escalate_pool, tier_names[completion->escalate_tier]);
        sha256_hex(text, (size_t)bytes, spec.key);
    }
    memcpy(spec.pool, completion->escalate_pool, sizeof spec.pool);
    spec.tier = completion->escalate_tier;
    memcpy(spec.model_hash, completion->escalate_model_hash, sizeof spec.model_hash);
    memcpy(spec.sampler, completion->escalate_sampler, sizeof spec.sampler);
    spec.parent_job_id = completion->job_id;
    return submit_successor(call->store, &call->tally, job->suite, &spec, job_id, error);
}

static enum status insert_outcomes(struct complete_call *call, const struct held_job *job,
                                   const struct job_completion *completion, struct error *error)
{
    struct tally_suite *counters;
    bool evidence = completion->kind == COMPLETION_FLAGGED;
    bool audit = job->spec.audit_key[0] != '\0';
    struct record_outcome_place place = {
        .job_id = completion->job_id,
        .epoch = completion->epoch,
        .suite = job->suite,
        .context = job->context,
        .spec = &job->spec,
        .evidence = evidence,
    };
    enum status status = tally_suite(&call->tally, job->suite, &counters, error);

    for (uint32_t i = 0; i < completion->outcome_count && status == STATUS_OK; i++) {
        const struct outcome *outcome = &completion->outcomes[i];
        status = record_outcome_insert(call->tally.db, &place, outcome, &counters->outcomes_digest,
                                       error);
        counters->outcomes_digested++;
        if (audit) {
            counters->rollouts_audit++;
            continue;
        }
        counters->rollouts[evidence ? VERDICT_FLAGGED : outcome->verdict]++;
        if (!evidence) {
            counters->ticks += (int64_t)outcome->ticks - outcome->prefix_ticks;
            counters->prefix_ticks_saved += outcome->prefix_ticks;
            counters->metres_mm += outcome->metres_mm;
        }
    }
    return status;
}

static enum status end_job(struct complete_call *call, const struct held_job *job,
                           const struct job_completion *completion, const struct job_end *end,
                           struct error *error)
{
    struct sqlite_store *store = call->store;
    int64_t due_ns = end->delay_ns > 0 ? clock_now_ns(store->clock) + end->delay_ns : 0;
    struct query query = query_begin(call->tally.db, STATEMENT_JOB_END);

    query_int(&query, completion->job_id);
    query_int(&query, (int64_t)end->state);
    query_int(&query, end->attempts);
    query_int(&query, end->lost);
    query_int(&query, due_ns);
    query_int(&query, end->delay_ns);
    enum status status = query_run(&query, error);
    THEN(status, tally_move(&call->tally, job->suite, job->pool, (enum job_state)job->state,
                            end->state, error));
    const struct tally_part part = {
        .suite = job->suite, .pool = job->pool, .tier = job->spec.tier, .ticks_open = job->ticks};
    THEN(status, tally_over(&call->tally, &store->paces, &part, job->state == JOB_LEASED,
                            end->state == JOB_QUEUED, clock_now_ns(store->clock), error));
    THEN(status, record_partials_drop(call->tally.db, completion->job_id, end->state, error));
    if (due_ns > 0) {
        group_commit_sweep_by(store->group, due_ns);
    } else {
        store->made_ready |= end->state == JOB_QUEUED;
    }
    return status;
}

static struct ledger_attempt attempt_of(struct sqlite_store *store, const struct held_job *job,
                                        const struct job_completion *completion,
                                        enum attempt_end end, int64_t escalated_job)
{
    return (struct ledger_attempt){
        .job_id = completion->job_id,
        .epoch = completion->epoch,
        .suite = job->suite,
        .worker = job->worker,
        .pool = job->pool,
        .pool_name = job->spec.pool,
        .device = job->device,
        .tier = job->spec.tier,
        .audit = job->spec.audit_key[0] != '\0',
        .end = end,
        .device_ns =
            claim_billable_ns(store, completion->job_id, completion->epoch, completion->device_ns),
        .metres_mm = completion->metres_mm,
        .mflop = completion->mflop,
        .escalated_job = escalated_job,
        .artifact_hash = completion->artifact_hash,
        .error = completion->error,
    };
}

/* ---- planners that do not start ---- */

static struct query planner_query(struct complete_call *call, enum statement statement,
                                  const struct held_job *job)
{
    struct query query = query_begin(call->tally.db, statement);
    query_text(&query, job->spec.planner);
    query_text(&query, job->spec.planner_hash);
    return query;
}

static enum status worker_host(struct complete_call *call, const struct held_job *job,
                               char host[LIMIT_ID_BYTES], struct error *error)
{
    struct query query = query_begin(call->tally.db, STATEMENT_WORKER_HOST);
    query_int(&query, job->worker);
    host[0] = '\0';
    if (query_row(&query)) {
        query_column_text(&query, 0, host, LIMIT_ID_BYTES);
    }
    return query_end(&query, error);
}

/* Number of hosts that could not start the job's planner, whether `host` is among them, and whether
 * somebody has driven it since the first of them. */
static enum status unstarted_hosts(struct complete_call *call, const struct held_job *job,
                                   const char *host, int64_t *count, bool *known, bool *driven,
                                   struct error *error)
{
    struct query query = planner_query(call, STATEMENT_UNSTARTED_HOSTS, job);
    query_text(&query, host);
    if (query_row(&query)) {
        *count = query_column_int(&query, 0);
        *known = query_column_int(&query, 1) > 0;
        *driven = query_column_int(&query, 2) > 0;
    }
    return query_end(&query, error);
}

/* Whether any job of the planner has a result. */
static enum status was_driven(struct complete_call *call, const struct held_job *job, bool *driven,
                              struct error *error)
{
    struct query query = planner_query(call, STATEMENT_PLANNER_DRIVEN, job);
    *driven = query_row(&query);
    return query_end(&query, error);
}

/* The job's worker could not start its planner. *blamed: nor could others, and nobody ever did. */
static enum status note_unstarted(struct complete_call *call, const struct held_job *job,
                                  const struct job_completion *completion, bool *blamed,
                                  struct error *error)
{
    char host[LIMIT_ID_BYTES];
    int64_t count = 0;
    bool known = false;
    bool driven = false;
    TRY(worker_host(call, job, host, error));
    TRY(unstarted_hosts(call, job, host, &count, &known, &driven, error));
    if (!known && !driven) {
        TRY(was_driven(call, job, &driven, error));
    }
    struct query set = planner_query(call, STATEMENT_UNSTARTED_SET, job);
    query_text(&set, host);
    query_int(&set, driven ? 1 : 0);
    query_int(&set, job->suite);
    query_int(&set, job->worker);
    query_text(&set, completion->error);
    *blamed = !driven && count + (known ? 0 : 1) >= call->store->planner_hosts;
    return query_run(&set, error);
}

/* The job's worker has driven its planner: nothing is wrong with either. */
static enum status note_driven(struct complete_call *call, const struct held_job *job,
                               const struct job_completion *completion, struct error *error)
{
    char host[LIMIT_ID_BYTES];
    int64_t count = 0;
    bool known = false;
    bool driven = false;
    struct query mark_context = query_begin(call->tally.db, STATEMENT_CONTEXT_DRIVEN);
    query_int(&mark_context, completion->job_id);
    enum status status = query_run(&mark_context, error);

    THEN(status, unstarted_hosts(call, job, "", &count, &known, &driven, error));
    if (status != STATUS_OK || count == 0) {
        return status; /* as nearly always */
    }
    status = worker_host(call, job, host, error);
    if (status == STATUS_OK) {
        struct query clear = planner_query(call, STATEMENT_UNSTARTED_CLEAR, job);
        query_text(&clear, host);
        status = query_run(&clear, error);
    }
    if (status == STATUS_OK && !driven) {
        struct query mark = planner_query(call, STATEMENT_UNSTARTED_DRIVEN, job);
        status = query_run(&mark, error);
    }
    return status;
}

static enum status accept(struct complete_call *call, const struct held_job *job,
                          const struct job_completion *completion,
                          const struct ledger_entry *before, struct store_completion_result *result,
                          struct error *error)
{
    bool blamed = false;
    enum status status = completion->kind == COMPLETION_UNSTARTED
                             ? note_unstarted(call, job, completion, &blamed, error)
                             : STATUS_OK;
    struct job_end end =
        end_of(call->store, job, blamed ? COMPLETION_FAILED : completion->kind,
               completion->escalate_pool[0] != '\0', job->lost - (before->found ? 1 : 0));

    if (status == STATUS_OK && (end.state == JOB_DONE || end.state == JOB_FLAGGED)) {
        status = note_driven(call, job, completion, error);
    }
    if (status == STATUS_OK && end.state == JOB_FLAGGED) {
        status = escalate(call, job, completion, &end.escalated_job, error);
    }
    THEN(status, end_job(call, job, completion, &end, error));
    if (status == STATUS_OK) {
        struct ledger_attempt attempt =
            attempt_of(call->store, job, completion, end.end, end.escalated_job);
        if (end.end == ATTEMPT_FLAGGED && end.state == JOB_DEAD && completion->error[0] == '\0') {
            attempt.error = "flagged by a health check, and there is no pool to escalate to";
        }
        status = before->found ? ledger_recharge(&call->tally, &attempt, before, error)
                               : ledger_charge(&call->tally, &attempt, error);
    }
    if (status == STATUS_OK &&
        (completion->kind == COMPLETION_DONE || completion->kind == COMPLETION_FLAGGED)) {
        status = insert_outcomes(call, job, completion, error);
    }
    if (status == STATUS_OK) {
        result->escalated_job_id = end.escalated_job;
        result->excused = completion->kind == COMPLETION_UNSTARTED && !blamed;
    }
    return status;
}

/* ---- partial completions ---- */

static int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static enum status keep_partial(struct complete_call *call, const struct held_job *job,
                                const struct job_completion *completion, struct error *error)
{
    struct record_outcome_place place = {.job_id = completion->job_id,
                                         .epoch = completion->epoch,
                                         .suite = job->suite,
                                         .context = job->context,
                                         .spec = &job->spec};
    struct query progress = query_begin(call->tally.db, STATEMENT_JOB_PROGRESS_SET);

    query_int(&progress, completion->job_id);
    query_int(&progress, max_i64(job->progress_ns,
                                 claim_billable_ns(call->store, completion->job_id,
                                                   completion->epoch, completion->device_ns)));
    query_int(&progress, max_i64(job->progress_mm, completion->metres_mm));
    query_int(&progress, max_i64(job->progress_mflop, completion->mflop));
    enum status status = query_run(&progress, error);
    for (uint32_t i = 0; i < completion->outcome_count && status == STATUS_OK; i++) {
        status = record_partial_insert(call->tally.db, &place, &completion->outcomes[i], error);
    }
    return status;
}

/* ---- which completions count ---- */

/* A completion whose attempt is on record: a replay, or one that comes too late. */
static enum status answer_recorded(struct complete_call *call, const struct held_job *job,
                                   const struct job_completion *completion,
                                   const struct ledger_entry *before,
                                   struct store_completion_result *result, struct error *error)
{
    static const enum attempt_end ends[COMPLETION_KIND_COUNT] = {
        [COMPLETION_DONE] = ATTEMPT_DONE,          [COMPLETION_FLAGGED] = ATTEMPT_FLAGGED,
        [COMPLETION_FAILED] = ATTEMPT_FAILED,      [COMPLETION_RELEASED] = ATTEMPT_RELEASED,
        [COMPLETION_UNSTARTED] = ATTEMPT_RELEASED,
    };
    bool unstarted = completion->kind == COMPLETION_UNSTARTED;

    result->status = STATUS_STALE;
    if (strcmp(before->worker_id, completion->worker_id) != 0) {
        return STATUS_OK; /* not its attempt, so not its cost either */
    }
    if (before->end == ends[completion->kind] || (unstarted && before->end == ATTEMPT_FAILED)) {
        result->status = STATUS_OK;
        result->excused = unstarted && before->end == ATTEMPT_RELEASED;
        result->escalated_job_id = before->escalated_job;
        return STATUS_OK;
    }
    if (before->end != ATTEMPT_LOST) {
        return STATUS_OK;
    }
    struct ledger_attempt attempt = attempt_of(call->store, job, completion, ATTEMPT_STALE, 0);
    attempt.tier = before->tier;
    attempt.pool = before->pool;
    attempt.device = before->device;
    return ledger_recharge(&call->tally, &attempt, before, error);
}

static enum status complete_one(struct complete_call *call, const struct job_completion *completion,
                                struct store_completion_result *result, struct error *error)
{
    struct held_job job;
    struct ledger_entry before = {.found = false};
    enum status status = read_held(call->tally.db, completion->job_id, &job, error);

    *result = (struct store_completion_result){.status = STATUS_STALE};
    if (status != STATUS_OK || !job.found) {
        return status;
    }
    bool current =
        completion->epoch == job.epoch && strcmp(completion->worker_id, job.worker_id) == 0;
    bool leased = current && job.state == JOB_LEASED;
    bool partial = completion->kind == COMPLETION_PARTIAL;
    if (partial && !leased) {
        return STATUS_OK;
    }
    if (!leased) {
        status =
            ledger_entry_get(call->tally.db, completion->job_id, completion->epoch, &before, error);
        if (status != STATUS_OK || !before.found) {
            return status; /* nobody was ever given this epoch, or another holds it */
        }
        if (!current || job.state != JOB_QUEUED || before.end != ATTEMPT_LOST) {
            return answer_recorded(call, &job, completion, &before, result, error);
        }
    }
    if ((partial && completion->outcome_count > job.spec.rollout_count) ||
        (completion->kind == COMPLETION_DONE &&
         completion->outcome_count != job.spec.rollout_count)) {
        return error_set(error, STATUS_CONFLICT,
                         "job %" PRId64 " has %" PRIu32 " rollouts, its completion brings %" PRIu32
                         " outcomes",
                         completion->job_id, job.spec.rollout_count, completion->outcome_count);
    }
    if (completion->kind == COMPLETION_FLAGGED &&
        strcmp(completion->escalate_key, job.spec.key) == 0) {
        return error_set(error, STATUS_CONFLICT,
                         "job %" PRId64 ": its successor cannot have its own key",
                         completion->job_id);
    }
    result->status = STATUS_OK;
    return partial ? keep_partial(call, &job, completion, error)
                   : accept(call, &job, completion, &before, result, error);
}

static enum status complete_op(struct db *db, void *context, struct error *error)
{
    struct complete_call *call = context;

    tally_init(&call->tally, db);
    for (uint32_t i = 0; i < call->count; i++) {
        TRY(complete_one(call, &call->completions[i], &call->results[i], error));
    }
    return tally_flush(&call->tally, error);
}

/* ---- checks before anything is queued ---- */

static enum status check_artifact(const struct sqlite_store *store, int64_t job_id,
                                  const char *hash, struct error *error)
{
    bool exists = false;
    enum status status = artifacts_exists(&store->artifacts, hash, &exists, error);

    if (status == STATUS_OK && !exists) {
        return error_set(error, STATUS_CONFLICT,
                         "job %" PRId64 ": artifact %s is not in the store; put it there before "
                         "completing",
                         job_id, hash);
    }
    return status;
}

#define FITS(text) (memchr((text), '\0', sizeof(text)) != NULL)

static bool outcome_fits(const struct outcome *outcome)
{
    bool fits = FITS(outcome->scenario_id) && FITS(outcome->scenario_hash) &&
                FITS(outcome->branch_id) && FITS(outcome->planner) && FITS(outcome->planner_hash) &&
                FITS(outcome->pool) && FITS(outcome->model_hash) && FITS(outcome->sampler) &&
                FITS(outcome->backend) && FITS(outcome->revision) && FITS(outcome->trace_hash) &&
                FITS(outcome->artifact_hash) && FITS(outcome->error) &&
                FITS(outcome->health_check) && FITS(outcome->evidence_hash);

    for (size_t i = 0; i < COUNT_OF(outcome->slice); i++) {
        fits = fits && FITS(outcome->slice[i]);
    }
    return fits;
}

static enum status check_outcome(const struct sqlite_store *store,
                                 const struct job_completion *completion, uint32_t index,
                                 struct error *error)
{
    const struct outcome *outcome = &completion->outcomes[index];

    if (!outcome_fits(outcome)) {
        return error_set(error, STATUS_LIMIT,
                         "job %" PRId64 ", outcome %" PRIu32 ": a text is not terminated",
                         completion->job_id, index);
    }
    if ((int)outcome->verdict < 0 || outcome->verdict >= VERDICT_COUNT || (int)outcome->tier < 0 ||
        outcome->tier >= TIER_COUNT || outcome->metres_mm < 0 || outcome->device_ns < 0 ||
        outcome->mflop < 0 || outcome->prefix_ticks > outcome->ticks ||
        outcome->device_ns > LEDGER_ATTEMPT_NS_MAX || outcome->metres_mm > LEDGER_ATTEMPT_MM_MAX ||
        outcome->mflop > LEDGER_ATTEMPT_MFLOP_MAX) {
        return error_set(error, STATUS_BAD_INPUT,
                         "job %" PRId64 ", outcome %" PRIu32
                         ": verdict, tier, ticks, metres, device time or operations out of range",
                         completion->job_id, index);
    }
    if (completion->kind != COMPLETION_FLAGGED && outcome->verdict == VERDICT_FLAGGED) {
        return error_set(error, STATUS_BAD_INPUT,
                         "job %" PRId64 ", outcome %" PRIu32
                         ": a flagged rollout cannot be part of a finished job",
                         completion->job_id, index);
    }
    if (outcome->verdict == VERDICT_INVALID && outcome->health_check[0] == '\0') {
        return error_set(error, STATUS_BAD_INPUT,
                         "job %" PRId64 ", outcome %" PRIu32
                         ": an invalid rollout needs the check that did not hold",
                         completion->job_id, index);
    }
    if (outcome->artifact_hash[0] != '\0' &&
        strcmp(outcome->artifact_hash, completion->artifact_hash) != 0) {
        TRY(check_artifact(store, completion->job_id, outcome->artifact_hash, error));
    }
    if (outcome->evidence_hash[0] != '\0') {
        return check_artifact(store, completion->job_id, outcome->evidence_hash, error);
    }
    return STATUS_OK;
}

static enum status check_completion(const struct sqlite_store *store,
                                    const struct job_completion *completion, struct error *error)
{
    bool with_outcomes = completion->kind == COMPLETION_DONE ||
                         completion->kind == COMPLETION_FLAGGED ||
                         completion->kind == COMPLETION_PARTIAL;

    if ((int)completion->kind < 0 || completion->kind >= COMPLETION_KIND_COUNT ||
        !FITS(completion->worker_id) || !FITS(completion->artifact_hash) ||
        !FITS(completion->escalate_pool) || !FITS(completion->escalate_model_hash) ||
        !FITS(completion->escalate_sampler) || !FITS(completion->escalate_key) ||
        !FITS(completion->error) || completion->mflop < 0 ||
        completion->mflop > LEDGER_ATTEMPT_MFLOP_MAX || completion->device_ns < 0 ||
        completion->device_ns > LEDGER_ATTEMPT_NS_MAX || completion->metres_mm < 0 ||
        completion->metres_mm > LEDGER_ATTEMPT_MM_MAX || (int)completion->escalate_tier < 0 ||
        completion->escalate_tier >= TIER_COUNT) {
        return error_set(error, STATUS_BAD_INPUT,
                         "the completion of job %" PRId64 " has a value out of range",
                         completion->job_id);
    }
    if (completion->outcome_count > 1 + LIMIT_BRANCHES ||
        (!with_outcomes && completion->outcome_count > 0)) {
        return error_set(
            error, STATUS_BAD_INPUT,
            "job %" PRId64 ": a completion of kind %s cannot bring %" PRIu32 " outcomes",
            completion->job_id, completion_kind_names[completion->kind], completion->outcome_count);
    }
    if (completion->artifact_hash[0] != '\0') {
        TRY(check_artifact(store, completion->job_id, completion->artifact_hash, error));
    }
    for (uint32_t i = 0; i < completion->outcome_count; i++) {
        TRY(check_outcome(store, completion, i, error));
    }
    return STATUS_OK;
}

enum status lifecycle_complete(struct store *base, const struct job_completion *completions,
                               uint32_t count, struct store_completion_result *results,
                               struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    struct complete_call call = {
        .store = store, .completions = completions, .count = count, .results = results};

    if (count > STORE_COMPLETE_MAX) {
        return error_set(error, STATUS_LIMIT, "a call completes at most %d jobs, not %" PRIu32,
                         STORE_COMPLETE_MAX, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        TRY(check_completion(store, &completions[i], error));
    }
    return sqlite_store_write(store, complete_op, &call, error);
}
