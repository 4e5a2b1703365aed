/*
 * Leases that end: sweeps, what happens to the jobs of workers that vanish, workers that are
 * reported gone. See lease.h.
 */
#include "store/sql/lease.h"

#include "base/check.h"
#include "base/units.h"
#include "store/sql/records.h"
#include "store/sql/sql_store.h"
#include "store/sql/tenants.h"

#include <inttypes.h>
#include <stdio.h>

enum { END_CHUNK = 64 }; /* jobs whose ids are read at once */

/* Between tries to queue the jobs of a worker again that the store cannot. */
#define SWEEP_RETRY_NS (1 * NS_PER_S)
#define SWEEP_RETRY_NS_MAX (64 * NS_PER_S)

/* ---- attempts that end without a completion ---- */

static enum status leave_state(struct db *db, int64_t job_id, enum job_state to_state,
                               int64_t attempts, int64_t lost, bool shadow, struct error *error)
{
    struct query query = query_begin(db, STATEMENT_JOB_END);

    query_int(&query, job_id);
    query_int(&query, (int64_t)to_state);
    query_int(&query, attempts);
    query_int(&query, lost);
    query_int(&query, shadow && to_state == JOB_QUEUED ? STATEMENT_DUE_IDLE : 0);
    query_int(&query, 0);
    return query_run(&query, error);
}

enum status lease_job_get(struct db *db, int64_t job_id, struct lease_job *job, struct error *error)
{
    struct query query = query_begin(db, STATEMENT_JOB_HELD);

    query_int(&query, job_id);
    job->found = query_row(&query);
    if (job->found) {
        job->state = query_take_int(&query);
        job->epoch = query_take_int(&query);
        job->worker = query_take_int(&query);
        query_take_text(&query, job->worker_id, sizeof job->worker_id);
        query_take_text(&query, job->device, sizeof job->device);
        job->attempts = query_take_int(&query);
        job->lost = query_take_int(&query);
        job->suite = query_take_int(&query);
        job->pool = query_take_int(&query);
        job->progress_ns = query_take_int(&query);
        job->progress_mm = query_take_int(&query);
        job->progress_mflop = query_take_int(&query);
        job->context = query_take_int(&query);
        job->ticks = query_take_int(&query);
        job->shadow = query_take_int(&query) != 0;
        job->claim_id = query_take_int(&query);
        job->tenant = query_take_int(&query);
        job->budgeted = query_take_int(&query) != 0;
        job->claimed_ns = query_take_int(&query);
        job->driven = query_take_int(&query) != 0;
        job->unstarted = query_take_int(&query) != 0 || db_shares(db);
        job->partials = query_take_int(&query) != 0 || db_shares(db);
        record_read(&query, RECORD_SPEC, &job->spec);
    }
    return query_end(&query, error);
}

enum status lease_end_attempt(struct sql_store *store, struct tally *tally, int64_t job_id,
                              enum job_state to_state, bool alone, struct error *error)
{
    char lost_text[128] = "";
    struct lease_job job;
    TRY(lease_job_get(tally->db, job_id, &job, error));
    if (!job.found) {
        return error_set(error, STATUS_STORE,
                         "job %" PRId64 " has no spec, so its attempt cannot end; `swerve check` "
                         "says what does not fit together",
                         job_id);
    }
    CHECK(job.state == JOB_LEASED);
    int64_t lost = job.lost + 1;
    int64_t lost_max = alone ? JOB_LOST_POISON + LEASE_LOST_ALONE_MAX : LEASE_LOST_MAX;
    if (to_state == JOB_QUEUED && lost >= lost_max) {
        to_state = JOB_DEAD;
        snprintf(lost_text, sizeof lost_text,
                 "%" PRId64 " workers vanished while they ran this job; it is not tried again",
                 lost);
    }
    const struct ledger_attempt attempt = {.job_id = job_id,
                                           .epoch = job.epoch,
                                           .worker = job.worker,
                                           .suite = job.suite,
                                           .pool = job.pool,
                                           .pool_name = job.spec.pool,
                                           .device = job.device,
                                           .tier = job.spec.tier,
                                           .kind = ledger_kind_of(&job.spec, job.shadow),
                                           .end = ATTEMPT_LOST,
                                           .device_ns = job.progress_ns,
                                           .metres_mm = job.progress_mm,
                                           .mflop = job.progress_mflop,
                                           .claimed_ns = job.claimed_ns,
                                           .no_tenant = job.tenant == 0,
                                           .budgeted = job.budgeted,
                                           .artifact_hash = "",
                                           .error = lost_text};
    TRY(ledger_charge(tally, &attempt, error));
    TRY(leave_state(tally->db, job_id, to_state, job.attempts, lost, job.shadow, error));
    if (!job.shadow) {
        struct tally_part part = {
            .suite = job.suite, .pool = job.pool, .tier = job.spec.tier, .ticks_open = job.ticks};
        TRY(tally_move(tally, job.suite, job.pool, JOB_LEASED, to_state, error));
        TRY(tenants_lease_end(store, tally, job.tenant, &job.spec, error));
        TRY(tally_over(tally, &store->paces, &part, true, to_state == JOB_QUEUED,
                       clock_now_ns(store->clock), error));
    }
    store->made_ready |= to_state == JOB_QUEUED;
    return job.partials ? record_partials_drop(tally->db, job_id, to_state, error) : STATUS_OK;
}

/* Ids above `after` of jobs that the worker holds. */
static enum status held_ids(struct db *db, const char *worker_id, int64_t after,
                            int64_t ids[END_CHUNK], uint32_t *found, struct error *error)
{
    struct query query = query_begin(db, STATEMENT_LEASED_OF_WORKER);

    query_text(&query, worker_id);
    query_int(&query, after);
    query_int(&query, END_CHUNK);
    *found = 0;
    while (*found < END_CHUNK && query_row(&query)) {
        ids[(*found)++] = query_column_int(&query, 0);
    }
    return query_end(&query, error);
}

/* Queues every job that the worker holds again. */
static enum status requeue_jobs(struct sql_store *store, struct tally *tally, const char *worker_id,
                                int64_t *count, struct error *error)
{
    int64_t ids[END_CHUNK];
    uint32_t found = END_CHUNK;
    int64_t after = 0;
    enum status status = STATUS_OK;

    *count = 0;
    while (status == STATUS_OK && found == END_CHUNK) {
        status = held_ids(tally->db, worker_id, after, ids, &found, error);
        bool alone = *count == 0 && found == 1;
        for (uint32_t i = 0; i < found && status == STATUS_OK; i++) {
            status = lease_end_attempt(store, tally, ids[i], JOB_QUEUED, alone, error);
            after = ids[i];
        }
        *count += found;
    }
    return status;
}

/* ---- time ---- */

static enum status promote_delayed(struct sql_store *store, int64_t now_ns, int64_t *next_ns,
                                   struct error *error)
{
    struct query promote = query_begin(store->db, STATEMENT_DELAYED_PROMOTE);

    query_int(&promote, now_ns);
    TRY(query_run(&promote, error));
    store->made_ready |= db_changes(store->db) > 0;
    struct query next = query_begin(store->db, STATEMENT_DELAYED_NEXT);
    if (query_row(&next)) {
        int64_t due_ns = query_column_int(&next, 0);
        *next_ns = due_ns < *next_ns ? due_ns : *next_ns;
    }
    return query_end(&next, error);
}

/* The opening has lasted for another part of a lease, or several: they count against those who have
 * not been heard of in it. */
static enum status count_silence(struct sql_store *store, int64_t now_ns, int64_t *next_ns,
                                 struct error *error)
{
    struct leases *leases = &store->leases;
    int64_t part_ns = store->lease_ttl_ns / LEASE_PARTS;
    bool silent = false;

    if (leases->opening_ns <= now_ns) {
        int64_t parts = 1 + (now_ns - leases->opening_ns) / part_ns;
        for (size_t i = 0; i < leases->count; i++) {
            if (leases->rows[i].unheard) {
                struct query unheard = query_begin(store->db, STATEMENT_WORKER_UNHEARD);
                query_text(&unheard, leases->rows[i].worker_id);
                query_int(&unheard, parts < LEASE_PARTS ? parts : LEASE_PARTS);
                TRY(query_run(&unheard, error));
                silent = true;
            }
        }
        leases->opening_ns = silent ? leases->opening_ns + parts * part_ns : INT64_MAX;
    }
    *next_ns = leases->opening_ns < *next_ns ? leases->opening_ns : *next_ns;
    return STATUS_OK;
}

/* A part of a sweep, which runs in a savepoint of its own. */
struct sweep_part {
    struct sql_store *store;
    const char *worker_id;
    int64_t job_id;
    bool alone;
    int64_t count; /* jobs that are queued again */
    int64_t now_ns;
    int64_t next_ns;
};

static enum status sweep_worker_op(struct db *db, void *context, struct error *error)
{
    struct sweep_part *part = context;
    struct tally tally;

    tally_init(&tally, db, part->store->clock);
    TRY(requeue_jobs(part->store, &tally, part->worker_id, &part->count, error));
    return tally_flush(&tally, error);
}

static enum status sweep_job_op(struct db *db, void *context, struct error *error)
{
    struct sweep_part *part = context;
    struct tally tally;

    tally_init(&tally, db, part->store->clock);
    TRY(lease_end_attempt(part->store, &tally, part->job_id, JOB_QUEUED, part->alone, error));
    return tally_flush(&tally, error);
}

static enum status sweep_time_op(struct db *db, void *context, struct error *error)
{
    struct sweep_part *part = context;

    (void)db;
    TRY(count_silence(part->store, part->now_ns, &part->next_ns, error));
    return promote_delayed(part->store, part->now_ns, &part->next_ns, error);
}

/* Runs a part; *status is its own. Not OK: the whole sweep was undone. */
static enum status sweep_nested(struct sweep_part *part, group_operation run, enum status *status,
                                struct error *error)
{
    if (group_commit_nested(part->store->db, run, part, status, error)) {
        return STATUS_OK;
    }
    return *status != STATUS_OK
               ? *status
               : error_set(error, STATUS_STORE, "the sweep's transaction could not go on");
}

/* Queues the worker's jobs again one by one, because one of them stands in the way of all. *broken:
 * how many cannot be, *why: the last of them. */
static enum status sweep_one_by_one(struct sweep_part *part, int64_t *broken, struct error *why,
                                    struct error *error)
{
    int64_t ids[END_CHUNK];
    uint32_t found = END_CHUNK;
    int64_t after = 0;
    enum status status = STATUS_OK;

    part->count = 0;
    *broken = 0;
    while (status == STATUS_OK && found == END_CHUNK) {
        status = held_ids(part->store->db, part->worker_id, after, ids, &found, error);
        part->alone = after == 0 && found == 1;
        for (uint32_t i = 0; i < found && status == STATUS_OK; i++) {
            enum status own;
            part->job_id = ids[i];
            after = ids[i];
            status = sweep_nested(part, sweep_job_op, &own, why);
            if (status != STATUS_OK) {
                *error = *why;
            }
            *broken += own != STATUS_OK ? 1 : 0;
            part->count += own == STATUS_OK ? 1 : 0;
        }
    }
    return status;
}

/* Ends the lease of one worker, whose jobs are queued again. What cannot be is tried again later,
 * at first soon. */
static enum status sweep_lease(struct sql_store *store, struct lease *lease, int64_t now_ns,
                               struct error *error)
{
    struct sweep_part part = {.store = store, .worker_id = lease->worker_id};
    struct error why = {.status = STATUS_OK};
    int64_t broken = 0;
    enum status own;
    TRY(sweep_nested(&part, sweep_worker_op, &own, error));

    if (own != STATUS_OK) {
        why = *error;
        TRY(sweep_one_by_one(&part, &broken, &why, error));
    }
    lease->requeued = part.count;
    store->leases.requeued += part.count;
    int64_t retry_ns = lease->retry_ns == 0 ? SWEEP_RETRY_NS : lease->retry_ns * 2;
    lease->retry_ns = 0;
    if (broken > 0) {
        lease->retry_ns = retry_ns < SWEEP_RETRY_NS_MAX ? retry_ns : SWEEP_RETRY_NS_MAX;
        lease->until_ns = now_ns + lease->retry_ns;
        log_event(store->logger, LOG_ERROR,
                  "worker %s is gone, and %" PRId64 " of its jobs cannot be queued again (tried "
                  "again in %" PRId64 " s; `swerve check` says what does not fit together): %s",
                  lease->worker_id, broken, lease->retry_ns / NS_PER_S, why.text);
    }
    return STATUS_OK;
}

/* Leases that ended and that no process looks after any more become this one's, to be ended. */
static enum status adopt_ended(struct sql_store *store, int64_t now_ns, struct error *error)
{
    char worker_id[LIMIT_ID_BYTES] = "";
    struct lease *lease;
    do {
        TRY(store->medium->peers->next_ended(store->db, now_ns, worker_id, worker_id, error));
        TRY(worker_id[0] != '\0' ? leases_renew(&store->leases, worker_id, 0, &lease, error)
                                 : STATUS_OK);
    } while (worker_id[0] != '\0');
    return STATUS_OK;
}

/* Whether the lease has ended, also as others see it. */
static enum status lease_ended(struct sql_store *store, struct lease *lease, int64_t now_ns,
                               bool *ended, struct error *error)
{
    *ended = lease->until_ns <= now_ns;
    if (!*ended || store->medium->peers == NULL || lease->retry_ns != 0) {
        return STATUS_OK;
    }
    TRY(store->medium->peers->until(store->db, lease->worker_id, &lease->until_ns, error));
    *ended = lease->until_ns <= now_ns;
    return STATUS_OK;
}

/* Leases that have ended, one after the other. */
static enum status sweep_leases(struct sql_store *store, int64_t now_ns, int64_t *next_ns,
                                struct error *error)
{
    const struct lease_peers *peers = store->medium->peers;

    if (peers != NULL) {
        struct leases *leases = &store->leases;
        bool anew = leases->connection != peers->connection(store->db);
        leases->connection = peers->connection(store->db);
        leases->connected_ns = anew ? now_ns : leases->connected_ns;
        *next_ns = leases->connected_ns + store->lease_ttl_ns;
        if (*next_ns > now_ns) {
            return STATUS_OK;
        }
        *next_ns = now_ns + store->lease_ttl_ns / 2;
        TRY(adopt_ended(store, now_ns, error));
    }
    for (size_t i = 0; i < store->leases.count;) {
        struct lease *lease = &store->leases.rows[i];
        bool ended = false;
        TRY(lease_ended(store, lease, now_ns, &ended, error));
        if (ended) {
            TRY(sweep_lease(store, lease, now_ns, error));
        }
        if (ended && lease->requeued == 0 && lease->until_ns <= now_ns) {
            TRY(peers != NULL ? peers->forget(store->db, lease->worker_id, error) : STATUS_OK);
            leases_remove(&store->leases, i);
            continue;
        }
        *next_ns = lease->until_ns < *next_ns ? lease->until_ns : *next_ns;
        i++;
    }
    return STATUS_OK;
}

/* A lease leaves memory only when a sweep has seen its worker hold nothing; so a sweep that is
 * undone is simply repeated. */
enum status lease_sweep(struct db *db, void *context, int64_t now_ns, int64_t *next_ns,
                        struct error *error)
{
    struct sql_store *store = context;
    struct sweep_part rest = {.store = store, .now_ns = now_ns, .next_ns = INT64_MAX};
    enum status own;

    (void)db;
    TRY(sweep_leases(store, now_ns, next_ns, error));
    TRY(sweep_nested(&rest, sweep_time_op, &own, error));
    if (own != STATUS_OK) {
        log_event(store->logger, LOG_ERROR, "sweep: %s", error->text);
        rest.next_ns = now_ns + SWEEP_RETRY_NS;
    }
    *next_ns = rest.next_ns < *next_ns ? rest.next_ns : *next_ns;
    return STATUS_OK;
}

void lease_swept(void *context, bool committed)
{
    struct sql_store *store = context;
    if (store->leases.requeued == 0) {
        return;
    }
    store->leases.requeued = 0;
    for (size_t i = 0; i < store->leases.count; i++) {
        struct lease *lease = &store->leases.rows[i];
        if (lease->requeued > 0 && committed) {
            log_event(store->logger, LOG_WARNING,
                      "worker %s is gone; %" PRId64 " of its jobs are queued again",
                      lease->worker_id, lease->requeued);
        }
        lease->requeued = 0;
    }
}

/* ---- workers that are gone ---- */

struct gone_call {
    struct sql_store *store;
    const char *worker_id;
};

static enum status gone_op(struct db *db, void *context, struct error *error)
{
    struct gone_call *call = context;
    struct sql_store *store = call->store;
    struct lease *lease = leases_find(&store->leases, call->worker_id);
    struct tally tally;
    int64_t count = 0;

    tally_init(&tally, db, store->clock);
    if (lease != NULL) {
        lease->until_ns = 0; /* the next sweep forgets it */
        group_commit_sweep_by(store->group, 0);
    }
    const struct lease_peers *peers = store->medium->peers;
    TRY(peers != NULL ? peers->forget(db, call->worker_id, error) : STATUS_OK);
    TRY(requeue_jobs(store, &tally, call->worker_id, &count, error));
    return tally_flush(&tally, error);
}

enum status lease_worker_gone(struct store *base, const char *worker_id, struct error *error)
{
    struct gone_call call = {.store = sql_store_of(base), .worker_id = worker_id};
    return sql_store_write(call.store, gone_op, &call, error);
}
