/*
 * Redriving: results of workers that are not to be believed are dropped, and their jobs are driven
 * again.
 *
 * A step takes REDRIVE_CHUNK jobs of the author that are done, in one transaction: their outcomes
 * go, with what other suites had taken over from them; counters and digests lose what they had
 * counted; the attempt stays on the bill and ends as stale; the job is queued again, as one more
 * that was lost. A shadow's job, which counts nowhere, is cancelled. What an author flagged is left
 * where the teacher answers for it, and driven again where nobody does, so that the job is dead.
 * Partial outcomes of the author's go too. Of any other job that is dead the author's failures and
 * losses count no longer: they end as handed back, and the job is queued again unless others alone
 * have lost it too often.
 *
 * Ids of outcomes are never given out twice: the table redrives keeps the greatest one that there
 * was, and SQLite, which would go on from what is left, is told the next.
 */
#include "base/text.h"
#include "base/units.h"
#include "store/sql/records.h"
#include "store/sql/sql_store.h"
#include "store/sql/tenants.h"

#include <inttypes.h>
#include <string.h>

enum {
    REDRIVE_CHUNK = 64,   /* jobs of one step */
    REDRIVE_STRIDE = 4096 /* jobs that one step looks at */
};

struct redrive_call {
    struct sql_store *store;
    const struct store_author *author;
    struct tally tally;
    int64_t after;    /* jobs up to here were looked at */
    int64_t last_job; /* the newest when the call began */
    int64_t last_outcome;
    int64_t count;   /* dropped by this step */
    int64_t dropped; /* .. and by all before it */
};

/* Place of a job in counters. */
struct redrive_job {
    int64_t id;
    int64_t suite;
    int64_t pool;
    enum tier tier;
    int64_t ticks;
    bool audit;
    bool shadow;
};

/* ---- counters ---- */

/* Takes back what a suite counted of this job's outcomes; `taken`: they are another suite's. */
static enum status uncount(struct redrive_call *call, const struct redrive_job *job, int64_t source,
                           bool taken, struct error *error)
{
    struct tally_suite *counters = NULL;
    TRY(tally_suite(&call->tally, job->suite, &counters, error));
    counters->jobs_memoised -= taken ? 1 : 0;
    struct query query = query_begin(call->tally.db, STATEMENT_REDRIVE_OUTCOMES);
    query_int(&query, source);
    while (query_row(&query)) {
        int64_t verdict = query_column_int(&query, 1);
        struct digest digest;
        size_t bytes = 0;
        const void *stored = query_column_blob(&query, 5, &bytes);
        if (!taken && bytes == sizeof digest.bytes) {
            memcpy(digest.bytes, stored, sizeof digest.bytes);
            digest_remove_outcome(&counters->outcomes_digest, &digest, query_column_int(&query, 0));
            counters->outcomes_digested--;
        }
        if (job->audit || job->shadow) {
            counters->rollouts_audit -= job->shadow ? 0 : 1;
        } else if (verdict >= 0 && verdict < VERDICT_COUNT) {
            counters->rollouts[verdict]--;
            if (!taken && verdict != VERDICT_FLAGGED) { /* that is evidence alone */
                counters->ticks -= query_column_int(&query, 2) - query_column_int(&query, 3);
                counters->prefix_ticks_saved -= query_column_int(&query, 3);
                counters->metres_mm -= query_column_int(&query, 4);
            }
        }
    }
    return query_end(&query, error);
}

/* The job is open again. */
static enum status reopen(struct redrive_call *call, const struct redrive_job *job,
                          enum job_state from, bool planned, struct error *error)
{
    const struct tally_part part = {.suite = job->suite,
                                    .pool = job->pool,
                                    .tier = job->tier,
                                    .jobs_open = 1,
                                    .ticks = planned ? job->ticks : 0,
                                    .ticks_open = job->ticks};
    TRY(tally_budget(&call->tally, job->suite, error));
    TRY(tally_move(&call->tally, job->suite, job->pool, from, JOB_QUEUED, error));
    call->store->made_ready = true;
    return tally_progress(&call->tally, &part, error);
}

/* ---- those that took a result over ---- */

static void job_read(struct query *query, struct redrive_job *job)
{
    job->id = query_take_int(query);
    job->suite = query_take_int(query);
    job->pool = query_take_int(query);
    job->tier = (enum tier)query_take_int(query);
    job->ticks = query_take_int(query);
    job->audit = query_take_int(query) != 0;
    job->shadow = query_take_int(query) != 0;
}

static enum status read_takers(struct db *db, int64_t source, struct redrive_job *jobs,
                               uint32_t *found, struct error *error)
{
    struct query query = query_begin(db, STATEMENT_REDRIVE_TAKERS);

    query_int(&query, source);
    query_int(&query, REDRIVE_CHUNK);
    *found = 0;
    while (*found < REDRIVE_CHUNK && query_row(&query)) {
        job_read(&query, &jobs[(*found)++]);
    }
    return query_end(&query, error);
}

static enum status release_taker(struct redrive_call *call, const struct redrive_job *taker,
                                 int64_t source, struct error *error)
{
    TRY(uncount(call, taker, source, true, error));
    struct query unlink = query_begin(call->tally.db, STATEMENT_REDRIVE_UNLINK);
    query_int(&unlink, taker->suite);
    query_int(&unlink, source);
    TRY(query_run(&unlink, error));
    struct query queue = query_begin(call->tally.db, STATEMENT_REDRIVE_TAKER_QUEUE);
    query_int(&queue, taker->id);
    query_int(&queue, taker->shadow ? JOB_CANCELLED : JOB_QUEUED);
    TRY(query_run(&queue, error));
    return taker->shadow ? STATUS_OK : reopen(call, taker, JOB_DONE, true, error);
}

/* All of them, some at a time: each that is released takes the result over no longer. */
static enum status release_takers(struct redrive_call *call, int64_t source, struct error *error)
{
    struct redrive_job takers[REDRIVE_CHUNK];
    uint32_t found = REDRIVE_CHUNK;

    while (found == REDRIVE_CHUNK) {
        TRY(read_takers(call->tally.db, source, takers, &found, error));
        for (uint32_t i = 0; i < found; i++) {
            TRY(release_taker(call, &takers[i], source, error));
        }
    }
    return STATUS_OK;
}

/* ---- one job ---- */

static enum ledger_kind kind_of(const struct redrive_job *job)
{
    if (job->shadow) {
        return LEDGER_SHADOW;
    }
    return job->audit ? LEDGER_AUDIT : LEDGER_RESULT;
}

/* An attempt of the author's cost what it cost, and counts for nothing. */
static enum status spoil_attempt(struct redrive_call *call, const struct redrive_job *job,
                                 int64_t epoch, enum attempt_end end, const char *why,
                                 struct error *error)
{
    struct ledger_entry before;
    TRY(ledger_entry_get(call->tally.db, job->id, epoch, &before, error));
    const struct ledger_attempt attempt = {
        .job_id = job->id,
        .epoch = epoch,
        .suite = job->suite,
        .pool = before.pool,
        .device = before.device,
        .tier = before.tier,
        .kind = kind_of(job),
        .end = end,
        .artifact_hash = "",
        .error = why,
    };
    return before.found ? ledger_recharge(&call->tally, &attempt, &before, error) : STATUS_OK;
}

static enum status drop_outcomes(struct redrive_call *call, int64_t job_id, struct error *error)
{
    struct query query = query_begin(call->tally.db, STATEMENT_REDRIVE_DROP);

    query_int(&query, job_id);
    return query_run(&query, error);
}

struct author_job {
    struct redrive_job job;
    enum job_state state; /* done or dead */
    bool flagged;         /* by the author, and nobody answers for it */
    int64_t epoch;
    int64_t attempts;
    int64_t lost;
};

static enum status leave_job(struct redrive_call *call, const struct redrive_job *job,
                             enum job_state state, int64_t attempts, int64_t lost,
                             struct error *error)
{
    struct query end = query_begin(call->tally.db, STATEMENT_JOB_END);

    query_int(&end, job->id);
    query_int(&end, (int64_t)state);
    query_int(&end, attempts);
    query_int(&end, lost);
    query_int(&end, 0);
    query_int(&end, 0);
    return query_run(&end, error);
}

/* A job that the author has finished, or whose death is his flag. */
static enum status redrive_done(struct redrive_call *call, const struct author_job *found,
                                struct error *error)
{
    const struct redrive_job *job = &found->job;

    TRY(uncount(call, job, job->id, false, error));
    TRY(release_takers(call, job->id, error));
    TRY(spoil_attempt(call, job, found->epoch, ATTEMPT_STALE,
                      "its outcomes were dropped: their author is not believed", error));
    TRY(drop_outcomes(call, job->id, error));
    TRY(leave_job(call, job, job->shadow ? JOB_CANCELLED : JOB_QUEUED, found->attempts,
                  found->lost + 1, error));
    call->count++;
    return job->shadow ? STATUS_OK : reopen(call, job, found->state, false, error);
}

/* Attempts of the author's that count in the job's failures or losses. */
static enum status read_counted(struct redrive_call *call, int64_t job_id,
                                int64_t epochs[REDRIVE_CHUNK], uint32_t *found, int64_t *lost,
                                struct error *error)
{
    struct query query = query_begin(call->tally.db, STATEMENT_REDRIVE_COUNTED);

    query_int(&query, job_id);
    query_text(&query, call->author->holder);
    query_text(&query, call->author->worker_id);
    query_int(&query, REDRIVE_CHUNK);
    *found = 0;
    while (*found < REDRIVE_CHUNK && query_row(&query)) {
        epochs[(*found)++] = query_column_int(&query, 0);
        *lost += query_column_int(&query, 1) != ATTEMPT_FAILED;
    }
    return query_end(&query, error);
}

static enum status redrive_dead(struct redrive_call *call, const struct author_job *found,
                                struct error *error)
{
    const struct redrive_job *job = &found->job;
    int64_t epochs[REDRIVE_CHUNK];
    uint32_t count = REDRIVE_CHUNK;
    int64_t attempts = 0;
    int64_t lost = 0;

    while (count == REDRIVE_CHUNK) {
        TRY(read_counted(call, job->id, epochs, &count, &lost, error));
        for (uint32_t i = 0; i < count; i++) {
            TRY(spoil_attempt(call, job, epochs[i], ATTEMPT_RELEASED,
                              "it counts for nothing: its worker is not believed", error));
        }
        attempts += count;
    }
    bool again = found->lost - lost < LEASE_LOST_MAX;
    TRY(leave_job(call, job, again ? JOB_QUEUED : JOB_DEAD, found->attempts - attempts,
                  found->lost - lost, error));
    call->count += again;
    return again ? reopen(call, job, JOB_DEAD, false, error) : STATUS_OK;
}

/* ---- steps ---- */

static enum status read_newest(struct redrive_call *call, struct error *error)
{
    struct query query = query_begin(call->tally.db, STATEMENT_REDRIVE_NEWEST);

    if (query_row(&query)) {
        call->last_job = query_column_int(&query, 0);
        call->last_outcome = query_column_int(&query, 1);
    }
    return query_end(&query, error);
}

/* Jobs above call->after that the author has finished, or that are dead of his flag or attempts;
 * sets where the next step begins. */
static enum status read_jobs(struct redrive_call *call, struct author_job *jobs, uint32_t *found,
                             struct error *error)
{
    int64_t end = call->after + REDRIVE_STRIDE;
    struct query query = query_begin(call->tally.db, STATEMENT_REDRIVE_JOBS);

    query_int(&query, call->after);
    query_int(&query, end);
    query_text(&query, call->author->holder);
    query_text(&query, call->author->worker_id);
    query_int(&query, REDRIVE_CHUNK);
    *found = 0;
    while (*found < REDRIVE_CHUNK && query_row(&query)) {
        struct author_job *job = &jobs[(*found)++];
        job_read(&query, &job->job);
        job->epoch = query_take_int(&query);
        job->attempts = query_take_int(&query);
        job->lost = query_take_int(&query);
        job->state = (enum job_state)query_take_int(&query);
        job->flagged = query_take_int(&query) != 0;
    }
    TRY(query_end(&query, error));
    call->after = *found == REDRIVE_CHUNK ? jobs[*found - 1].job.id : end;
    return STATUS_OK;
}

static enum status note_redrive(struct redrive_call *call, struct error *error)
{
    struct query query = query_begin(call->tally.db, STATEMENT_REDRIVE_ADD);

    query_text(&query, call->author->holder);
    query_text(&query, call->author->worker_id);
    query_int(&query, call->count);
    query_int(&query, call->last_outcome);
    query_int(&query, clock_wall_ns(call->store->clock) / NS_PER_S);
    return query_run(&query, error);
}

static enum status redrive_op(struct db *db, void *context, struct error *error)
{
    struct redrive_call *call = context;
    struct author_job jobs[REDRIVE_CHUNK];
    int64_t after = call->after;
    uint32_t found = 0;

    tally_init(&call->tally, db, call->store->clock);
    call->count = 0;
    TRY(tally_books(&call->tally, error));
    TRY(read_newest(call, error));
    enum status status = read_jobs(call, jobs, &found, error);
    for (uint32_t i = 0; i < found && status == STATUS_OK; i++) {
        bool drop = jobs[i].state == JOB_DONE || jobs[i].flagged;
        status = drop ? redrive_done(call, &jobs[i], error) : redrive_dead(call, &jobs[i], error);
    }
    THEN(status, call->count > 0 ? note_redrive(call, error) : STATUS_OK);
    THEN(status, tally_flush(&call->tally, error));
    if (status != STATUS_OK) {
        call->after = after; /* the operation may be repeated */
    } else if (call->count > 0) {
        call->store->outcome_floor = call->last_outcome;
    }
    return status;
}

/* NOT_FOUND: the store knows no such worker. */
static enum status find_author_op(struct db *db, void *context, struct error *error)
{
    const struct redrive_call *call = context;
    const struct store_author *author = call->author;
    struct query query = query_begin(db, STATEMENT_REDRIVE_AUTHOR);

    query_text(&query, author->holder);
    query_text(&query, author->worker_id);
    bool found = query_row(&query);
    TRY(query_end(&query, error));
    return found ? STATUS_OK
                 : error_set(error, STATUS_NOT_FOUND,
                             "redrive: no worker%s%s%s%s has ever claimed a job here; a token is "
                             "known by the id that `swerve token ls` shows, after a rotation by "
                             "that of its first one",
                             author->worker_id[0] != '\0' ? " " : "", author->worker_id,
                             author->holder[0] != '\0' ? " of token " : "", author->holder);
}

/* Planners that nobody else has driven count as driven no longer; partial outcomes go. */
static enum status redrive_finish_op(struct db *db, void *context, struct error *error)
{
    const struct redrive_call *call = context;
    struct query partials = query_begin(db, STATEMENT_REDRIVE_PARTIALS);

    query_text(&partials, call->author->holder);
    query_text(&partials, call->author->worker_id);
    TRY(query_run(&partials, error));
    TRY(query_simple(db, STATEMENT_REDRIVE_UNDRIVEN, error));
    return query_simple(db, STATEMENT_REDRIVE_UNSTARTED, error);
}

enum status redrive_count(struct store *base, int64_t *count, struct error *error)
{
    struct query query;
    int64_t found = 0;
    TRY(sql_read_begin(base, STATEMENT_REDRIVE_COUNT, &query, error));
    if (query_row(&query)) {
        found = query_column_int(&query, 0);
    }
    TRY(sql_read_end(base, &query, error));
    *count = found;
    return STATUS_OK;
}

enum status redrive_restart(struct sql_store *store, struct error *error)
{
    struct query query = query_begin(store->db, STATEMENT_REDRIVE_FLOOR);

    if (query_row(&query)) {
        store->outcome_floor = query_column_int(&query, 0);
    }
    return query_end(&query, error);
}

enum status redrive_author(struct store *base, const struct store_author *author, int64_t *jobs,
                           struct error *error)
{
    struct redrive_call call = {.store = sql_store_of(base), .author = author, .last_job = -1};

    if (author->holder[0] == '\0' && author->worker_id[0] == '\0') {
        return error_set(error, STATUS_BAD_INPUT,
                         "redrive: expected a token or a worker whose results are dropped, found "
                         "neither");
    }
    TRY(author->holder[0] != '\0'
            ? text_name_check("token", author->holder, sizeof author->holder, error)
            : STATUS_OK);
    TRY(author->worker_id[0] != '\0'
            ? text_name_check("worker", author->worker_id, sizeof author->worker_id, error)
            : STATUS_OK);
    TRY(sql_store_write(call.store, find_author_op, &call, error));
    do {
        TRY(sql_store_write(call.store, redrive_op, &call, error));
        call.dropped += call.count;
    } while (call.after < call.last_job);
    /* Always: an order before this one may have been interrupted here. */
    TRY(sql_store_write(call.store, redrive_finish_op, &call, error));
    *jobs = call.dropped;
    return STATUS_OK;
}
