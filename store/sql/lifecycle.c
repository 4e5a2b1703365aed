/*
 * The end of attempts: completing.
 *
 * A completion counts while its epoch is the job's current one and its worker the one that claimed
 * it; the lease does not matter here. So a worker that was thought lost, but whose job nobody has
 * claimed since, is still in time. One that is too late leaves only its cost. Every (job, epoch) is
 * charged once as a whole: what follows a first, provisional charge adds the difference.
 *
 * First every job of a call is looked at and ended, then outcomes and costs are written: those, and
 * sums, are written by one transaction at a time, the rest beside others (db_shares). So ids of
 * outcomes are in the order of commits, and who follows them misses none.
 *
 * A partial completion ends nothing. It counts while its attempt holds the lease, and what that has
 * cost so far is noted with it, so that what is kept of an attempt is charged if it vanishes.
 */
#include "base/check.h"
#include "base/units.h"
#include "store/door/door.h"
#include "store/sql/records.h"
#include "store/sql/sql_store.h"
#include "store/sql/tenants.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STORE_COMPLETE_MAX = 4096 }; /* completions of one call */

#define BACKOFF_NS_MAX (60 * NS_PER_S)

/* Result of a completion for its job. */
struct job_end {
    enum job_state state;
    enum attempt_end end;
    int64_t attempts;
    int64_t lost;
    int64_t delay_ns;
    int64_t escalated_job;
    const char *why; /* a flagged job has no successor; NULL: as the completion says */
};

/* A completion that was accepted, or counts as a cost alone, and is not in the books yet. */
struct booking {
    const struct job_completion *completion;
    struct lease_job job;
    struct ledger_entry before;
    struct job_end end; /* of one that was accepted */
    bool stale;
};

struct complete_call {
    struct sql_store *store;
    const struct job_completion *completions;
    uint32_t count;
    struct store_completion_result *results;
    struct tally tally;
    struct booking *bookings; /* [count], owned */
    uint32_t booked;
    bool beside; /* others: see goes_beside */
};

static int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* ---- what becomes of the job ---- */

static struct job_end end_of(const struct sql_store *store, const struct lease_job *job,
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

/* Device time that outcomes may take together: what was charged, of which kept ones have some from
 * attempts before this one. */
static enum status outcomes_ns(struct db *db, const struct job_completion *completion,
                               int64_t attempt_ns, int64_t *ns, struct error *error)
{
    int64_t asked_ns = 0;
    for (uint32_t i = 0; i < completion->outcome_count; i++) {
        asked_ns += completion->outcomes[i].device_ns; /* in range: so many fit */
    }
    *ns = asked_ns;
    bool full = db->booked.device_ns == INT64_MAX;
    return asked_ns > attempt_ns || full ? ledger_job_ns(db, completion->job_id, ns, error)
                                         : STATUS_OK;
}

/* 0: the clock was never set. */
static int64_t wall_ms(const struct sql_store *store)
{
    return max_i64(clock_wall_ns(store->clock) / NS_PER_MS, 0);
}

/* Scenario of a completion that brings outcomes, borrowed until the next one is looked for. */
static enum status find_scenario(struct complete_call *call, const struct lease_job *job,
                                 const struct job_completion *completion, struct door_scenario *out,
                                 struct error *error)
{
    return completion->outcome_count > 0
               ? record_scenarios_find(call->tally.db, &call->store->scenarios, &job->spec, out,
                                       error)
               : STATUS_OK;
}

static enum status insert_outcomes(struct complete_call *call, const struct lease_job *job,
                                   const struct job_completion *completion, int64_t attempt_ns,
                                   struct error *error)
{
    struct tally_suite *counters;
    int64_t left_ns = 0;
    bool evidence = completion->kind == COMPLETION_FLAGGED;
    bool audit = ledger_kind_of(&job->spec, job->shadow) != LEDGER_RESULT;
    struct record_outcome_place place = {
        .job_id = completion->job_id,
        .epoch = completion->epoch,
        .suite = job->suite,
        .context = job->context,
        .spec = &job->spec,
        .at_ms = wall_ms(call->store),
        .floor = call->store->outcome_floor,
        .evidence = evidence,
        .partials = job->partials,
    };
    struct door_scenario scenario = {.known = false};
    enum status status = tally_suite(&call->tally, job->suite, &counters, error);

    THEN(status, find_scenario(call, job, completion, &scenario, error));
    THEN(status, outcomes_ns(call->tally.db, completion, attempt_ns, &left_ns, error));
    for (uint32_t i = 0; i < completion->outcome_count && status == STATUS_OK; i++) {
        const struct outcome *outcome = &completion->outcomes[i];
        place.slices = door_slices(&scenario, outcome->branch_id);
        place.device_ns = outcome->device_ns < left_ns ? outcome->device_ns : left_ns;
        left_ns -= place.device_ns;
        status = record_outcome_insert(call->tally.db, &place, outcome, &counters->outcomes_digest,
                                       error);
        counters->outcomes_digested++;
        if (audit) {
            counters->rollouts_audit += job->shadow ? 0 : 1;
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

static enum status end_job(struct complete_call *call, const struct lease_job *job,
                           const struct job_completion *completion, const struct job_end *end,
                           struct error *error)
{
    struct sql_store *store = call->store;
    int64_t due_ns = end->delay_ns > 0 ? clock_now_ns(store->clock) + end->delay_ns
                     : job->shadow && end->state == JOB_QUEUED ? STATEMENT_DUE_IDLE
                                                               : 0;
    struct query query = query_begin(call->tally.db, STATEMENT_JOB_END);

    query_int(&query, completion->job_id);
    query_int(&query, (int64_t)end->state);
    query_int(&query, end->attempts);
    query_int(&query, end->lost);
    query_int(&query, due_ns);
    query_int(&query, end->delay_ns);
    enum status status = query_send(&query, error);
    if (!job->shadow) {
        THEN(status, tally_move(&call->tally, job->suite, job->pool, (enum job_state)job->state,
                                end->state, error));
        if (job->state == JOB_LEASED) {
            THEN(status, tenants_lease_end(store, &call->tally, job->tenant, &job->spec, error));
        }
        const struct tally_part part = {.suite = job->suite,
                                        .pool = job->pool,
                                        .tier = job->spec.tier,
                                        .ticks_open = job->ticks};
        THEN(status, tally_over(&call->tally, &store->paces, &part, job->state == JOB_LEASED,
                                end->state == JOB_QUEUED, clock_now_ns(store->clock), error));
    }
    if (due_ns > 0) {
        group_commit_sweep_by(store->group, due_ns);
    } else {
        store->made_ready |= end->state == JOB_QUEUED;
    }
    return status;
}

static struct ledger_attempt attempt_of(struct sql_store *store, const struct lease_job *job,
                                        const struct job_completion *completion,
                                        const struct ledger_entry *before, enum attempt_end end,
                                        int64_t escalated_job)
{
    int64_t claimed_ns = before->found ? before->claimed_ns : job->claimed_ns;

    return (struct ledger_attempt){
        .job_id = completion->job_id,
        .epoch = completion->epoch,
        .suite = job->suite,
        .worker = job->worker,
        .pool = job->pool,
        .pool_name = job->spec.pool,
        .device = job->device,
        .tier = job->spec.tier,
        .kind = ledger_kind_of(&job->spec, job->shadow),
        .end = end,
        .claimed_ns = claimed_ns,
        .no_tenant = job->tenant == 0,
        .budgeted = job->budgeted,
        .device_ns =
            claim_billable_ns(store, completion->job_id, claimed_ns, completion->device_ns),
        .metres_mm = lease_billable_mm(job->spec.rollout_count, job->ticks, completion->metres_mm),
        .mflop = completion->mflop,
        .escalated_job = escalated_job,
        .artifact_hash = completion->artifact_hash,
        .error = completion->error,
    };
}

/* ---- planners that do not start ---- */

static struct query planner_query(struct complete_call *call, enum statement statement,
                                  const struct lease_job *job)
{
    struct query query = query_begin(call->tally.db, statement);
    query_text(&query, job->spec.planner);
    query_text(&query, job->spec.planner_hash);
    return query;
}

static enum status worker_host(struct complete_call *call, const struct lease_job *job,
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
static enum status unstarted_hosts(struct complete_call *call, const struct lease_job *job,
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
static enum status was_driven(struct complete_call *call, const struct lease_job *job, bool *driven,
                              struct error *error)
{
    struct query query = planner_query(call, STATEMENT_PLANNER_DRIVEN, job);
    *driven = query_row(&query);
    return query_end(&query, error);
}

/* The job's worker could not start its planner. *blamed: nor could others, and nobody ever did. */
static enum status note_unstarted(struct complete_call *call, const struct lease_job *job,
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
static enum status note_driven(struct complete_call *call, const struct lease_job *job,
                               const struct job_completion *completion, struct error *error)
{
    char host[LIMIT_ID_BYTES];
    int64_t count = 0;
    bool known = false;
    bool driven = false;
    enum status status = STATUS_OK;
    if (!job->driven) {
        struct query mark_context = query_begin(call->tally.db, STATEMENT_CONTEXT_DRIVEN);
        query_int(&mark_context, completion->job_id);
        status = query_send(&mark_context, error);
    }
    if (!job->unstarted) {
        return status;
    }
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

static enum status accept(struct complete_call *call, const struct lease_job *job,
                          const struct job_completion *completion,
                          const struct ledger_entry *before, struct store_completion_result *result,
                          struct error *error)
{
    bool blamed = false;
    enum status status = completion->kind == COMPLETION_UNSTARTED
                             ? note_unstarted(call, job, completion, &blamed, error)
                             : STATUS_OK;
    struct job_spec successor;
    const char *why = NULL;
    bool escalates = false;
    if (status == STATUS_OK && completion->kind == COMPLETION_FLAGGED) {
        status = question_successor(call->store, &job->spec, completion, &successor, &escalates,
                                    &why, error);
    }
    struct job_end end = end_of(call->store, job, blamed ? COMPLETION_FAILED : completion->kind,
                                escalates, job->lost - (before->found ? 1 : 0));
    end.why = why;

    if (status == STATUS_OK && (end.state == JOB_DONE || end.state == JOB_FLAGGED)) {
        status = note_driven(call, job, completion, error);
        if (!job->shadow) {
            THEN(status, freezes_mark(call->store, completion->job_id, &job->spec, error));
        }
    }
    if (status == STATUS_OK && end.state == JOB_FLAGGED) {
        status = question_escalate(call->store, &call->tally, job->suite, &job->spec,
                                   completion->job_id, &successor, &end.escalated_job, error);
    }
    if (status == STATUS_OK && completion->kind == COMPLETION_RELEASED) {
        status = lease_handed_back(call->store, call->tally.db, completion->job_id,
                                   completion->epoch, job->suite, job->pool, error);
    }
    THEN(status, end_job(call, job, completion, &end, error));
    if (status == STATUS_OK) {
        call->bookings[call->booked++] =
            (struct booking){.completion = completion, .job = *job, .before = *before, .end = end};
        result->escalated_job_id = end.escalated_job;
        result->excused = completion->kind == COMPLETION_UNSTARTED && !blamed;
    }
    return status;
}

/* ---- the books ---- */

static enum status book_accepted(struct complete_call *call, const struct booking *booking,
                                 struct error *error)
{
    const struct job_completion *completion = booking->completion;
    const struct job_end *end = &booking->end;
    char why[OUTCOME_ERROR_BYTES];
    struct ledger_attempt attempt = attempt_of(call->store, &booking->job, completion,
                                               &booking->before, end->end, end->escalated_job);

    if (end->end == ATTEMPT_FLAGGED && end->state == JOB_DEAD) {
        const char *flag = completion->error[0] != '\0' ? completion->error
                           : end->why != NULL
                               ? "flagged by a health check"
                               : "flagged by a health check, and there is no pool to escalate to";
        snprintf(why, sizeof why, "%.1900s%s%s", flag, end->why != NULL ? "; " : "",
                 end->why != NULL ? end->why : "");
        attempt.error = why;
    }
    TRY(booking->before.found ? ledger_recharge(&call->tally, &attempt, &booking->before, error)
                              : ledger_charge(&call->tally, &attempt, error));
    if (completion->kind == COMPLETION_DONE || completion->kind == COMPLETION_FLAGGED) {
        TRY(insert_outcomes(call, &booking->job, completion, attempt.device_ns, error));
    }
    /* Behind the outcomes, which take over when partial ones came. */
    return booking->job.partials
               ? record_partials_drop(call->tally.db, completion->job_id, end->state, error)
               : STATUS_OK;
}

/* A lost attempt that reported after all: what it cost more. */
static enum status book_stale(struct complete_call *call, const struct booking *booking,
                              struct error *error)
{
    struct ledger_attempt attempt = attempt_of(call->store, &booking->job, booking->completion,
                                               &booking->before, ATTEMPT_STALE, 0);
    attempt.tier = booking->before.tier;
    attempt.pool = booking->before.pool;
    attempt.device = booking->before.device;
    return ledger_recharge(&call->tally, &attempt, &booking->before, error);
}

static enum status book_all(struct complete_call *call, struct error *error)
{
    TRY(call->booked > 0 ? tally_books(&call->tally, error) : STATUS_OK);
    for (uint32_t i = 0; i < call->booked; i++) {
        const struct booking *booking = &call->bookings[i];
        TRY(booking->stale ? book_stale(call, booking, error)
                           : book_accepted(call, booking, error));
    }
    call->booked = 0;
    return STATUS_OK;
}

/* ---- partial completions ---- */

static enum status keep_partial(struct complete_call *call, const struct lease_job *job,
                                const struct job_completion *completion, struct error *error)
{
    struct record_outcome_place place = {.job_id = completion->job_id,
                                         .epoch = completion->epoch,
                                         .suite = job->suite,
                                         .worker = job->worker,
                                         .context = job->context,
                                         .spec = &job->spec,
                                         .at_ms = wall_ms(call->store)};
    struct door_scenario scenario = {.known = false};
    struct query progress = query_begin(call->tally.db, STATEMENT_JOB_PROGRESS_SET);

    query_int(&progress, completion->job_id);
    query_int(&progress,
              max_i64(job->progress_ns, claim_billable_ns(call->store, completion->job_id,
                                                          job->claimed_ns, completion->device_ns)));
    query_int(&progress,
              max_i64(job->progress_mm, lease_billable_mm(job->spec.rollout_count, job->ticks,
                                                          completion->metres_mm)));
    query_int(&progress, max_i64(job->progress_mflop, completion->mflop));
    query_int(&progress, 0); /* what it said stays */
    enum status status = query_run(&progress, error);
    THEN(status, find_scenario(call, job, completion, &scenario, error));
    for (uint32_t i = 0; i < completion->outcome_count && status == STATUS_OK; i++) {
        place.slices = door_slices(&scenario, completion->outcomes[i].branch_id);
        place.device_ns = completion->outcomes[i].device_ns;
        status = record_partial_insert(call->tally.db, &place, &completion->outcomes[i], error);
    }
    THEN(status,
         record_partials_count(call->tally.db, completion->job_id, job->spec.rollout_count, error));
    return status;
}

/* ---- which completions count ---- */

/* A completion whose attempt is on record: a replay, or one that comes too late. */
static enum status answer_recorded(struct complete_call *call, const struct lease_job *job,
                                   const struct job_completion *completion,
                                   const struct ledger_entry *before,
                                   struct store_completion_result *result)
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
    call->bookings[call->booked++] =
        (struct booking){.completion = completion, .job = *job, .before = *before, .stale = true};
    return STATUS_OK;
}

/* Its outcomes are of the job's rollouts, each once, and answer the job's question. */
static enum status check_outcomes(struct complete_call *call, const struct lease_job *job,
                                  const struct job_completion *completion, struct error *error)
{
    struct door_scenario scenario = {.known = false};
    TRY(find_scenario(call, job, completion, &scenario, error));
    TRY(door_rollouts(completion, job->spec.rollout_count, &scenario, error));
    return question_check_outcomes(completion, &job->spec, &scenario, error);
}

static enum status complete_one(struct complete_call *call, const struct job_completion *completion,
                                struct store_completion_result *result, struct error *error)
{
    struct lease_job job;
    struct ledger_entry before = {.found = false};
    enum status status = lease_job_get(call->tally.db, completion->job_id, &job, error);

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
        if (status == STATUS_OK && !before.found && current && db_shares(call->tally.db)) {
            return error_set(error, STATUS_BUSY,
                             "job %" PRId64 " is being completed a second time at this moment",
                             completion->job_id);
        }
        if (status != STATUS_OK || !before.found) {
            return status; /* nobody was ever given this epoch, or another holds it */
        }
        /* Without a claim: since its lease was over, the job has become another version's. */
        if (!current || job.state != JOB_QUEUED || before.end != ATTEMPT_LOST ||
            job.claim_id == 0) {
            return answer_recorded(call, &job, completion, &before, result);
        }
    }
    TRY(check_outcomes(call, &job, completion, error));
    result->status = STATUS_OK;
    return partial ? keep_partial(call, &job, completion, error)
                   : accept(call, &job, completion, &before, result, error);
}

/* The call completes this job for a second time: what it did first has to be in the books. */
static bool is_booked(const struct complete_call *call, int64_t job_id)
{
    for (uint32_t i = 0; i < call->booked; i++) {
        if (call->bookings[i].completion->job_id == job_id) {
            return true;
        }
    }
    return false;
}

static enum status complete_op(struct db *db, void *context, struct error *error)
{
    struct complete_call *call = context;

    tally_init(&call->tally, db, call->store->clock);
    call->tally.beside = call->beside;
    freezes_begin(call->store);
    call->booked = 0;
    for (uint32_t i = 0; i < call->count; i++) {
        const struct job_completion *completion = &call->completions[i];
        /* A successor may take over a result of this call. */
        bool first = completion->kind == COMPLETION_FLAGGED || is_booked(call, completion->job_id);
        TRY(first ? book_all(call, error) : STATUS_OK);
        TRY(complete_one(call, completion, &call->results[i], error));
    }
    return STATUS_OK;
}

static enum status complete_finish(struct db *db, void *context, struct error *error)
{
    struct complete_call *call = context;

    (void)db;
    TRY(book_all(call, error));
    return tally_flush(&call->tally, error);
}

static enum status complete_alone_op(struct db *db, void *context, struct error *error)
{
    TRY(complete_op(db, context, error));
    return complete_finish(db, context, error);
}

/* Completions of these kinds touch more than their jobs: successors, and who could start what. */
static bool goes_beside(const struct complete_call *call)
{
    bool beside = true;
    for (uint32_t i = 0; i < call->count; i++) {
        enum completion_kind kind = call->completions[i].kind;
        beside &= kind != COMPLETION_FLAGGED && kind != COMPLETION_UNSTARTED;
    }
    return beside;
}

/* ---- the call ---- */

enum status lifecycle_complete(struct store *base, const struct job_completion *completions,
                               uint32_t count, struct store_completion_result *results,
                               struct error *error)
{
    struct sql_store *store = sql_store_of(base);
    struct complete_call call = {
        .store = store, .completions = completions, .count = count, .results = results};

    if (count > STORE_COMPLETE_MAX) {
        return error_set(error, STATUS_LIMIT, "a call completes at most %d jobs, not %" PRIu32,
                         STORE_COMPLETE_MAX, count);
    }
    for (uint32_t i = 0; i < count; i++) {
        TRY(door_completion(&store->artifacts, &completions[i], error));
    }
    call.bookings = calloc(count > 0 ? count : 1, sizeof *call.bookings);
    TRY(memory_check(call.bookings, error, "out of memory for completions"));
    enum status status = sql_store_enter(store, error);
    if (status == STATUS_OK) {
        call.beside = goes_beside(&call);
        status = call.beside ? sql_store_run_beside(store, complete_op, complete_finish, false,
                                                    count, &call, error)
                             : STATUS_OK;
        if (!call.beside || (status != STATUS_OK && call.tally.stops)) {
            call.beside = false;
            status = sql_store_run(store, complete_alone_op, &call, error);
        }
        sql_store_leave(store);
    }
    free(call.bookings);
    return status;
}
