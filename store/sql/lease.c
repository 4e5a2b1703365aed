/*
 * Workers' leases and heartbeats; what happens when a lease ends is in lease_sweep.c. See lease.h.
 */
#include "store/sql/lease.h"

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "store/door/door.h"
#include "store/sql/records.h"
#include "store/sql/sql_store.h"
#include "store/sql/tenants.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRESS_MAX = 4096 }; /* jobs of one heartbeat */

/* ---- leases in memory ---- */

void leases_finish(struct leases *leases)
{
    free(leases->hashes);
    free(leases->rows);
    memset(leases, 0, sizeof *leases);
}

struct lease *leases_find(struct leases *leases, const char *worker_id)
{
    uint64_t hash = text_hash(worker_id);

    for (size_t i = 0; i < leases->count; i++) {
        if (leases->hashes[i] == hash && strcmp(leases->rows[i].worker_id, worker_id) == 0) {
            return &leases->rows[i];
        }
    }
    return NULL;
}

static enum status leases_grow(struct leases *leases, struct error *error)
{
    size_t capacity = leases->capacity == 0 ? 64 : leases->capacity * 2;

    if (capacity > LEASE_WORKERS_MAX) {
        return error_set(error, STATUS_LIMIT, "more than %d workers are alive", LEASE_WORKERS_MAX);
    }
    uint64_t *hashes = realloc(leases->hashes, capacity * sizeof *hashes);
    if (hashes != NULL) {
        leases->hashes = hashes;
    }
    struct lease *rows = realloc(leases->rows, capacity * sizeof *rows);
    if (rows != NULL) {
        leases->rows = rows;
    }
    if (hashes == NULL || rows == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for a worker's lease");
    }
    leases->capacity = capacity;
    return STATUS_OK;
}

enum status leases_renew(struct leases *leases, const char *worker_id, int64_t until_ns,
                         struct lease **out, struct error *error)
{
    struct lease *lease = leases_find(leases, worker_id);

    if (lease == NULL) {
        if (leases->count == leases->capacity) {
            TRY(leases_grow(leases, error));
        }
        leases->hashes[leases->count] = text_hash(worker_id);
        lease = &leases->rows[leases->count++];
        memset(lease, 0, sizeof *lease);
        memcpy(lease->worker_id, worker_id, strlen(worker_id) + 1);
        lease->unheard = true; /* also one that held jobs at an earlier opening, and none at this */
    }
    if (until_ns > lease->until_ns) {
        lease->until_ns = until_ns;
    }
    *out = lease;
    return STATUS_OK;
}

void leases_remove(struct leases *leases, size_t index)
{
    leases->count--;
    leases->hashes[index] = leases->hashes[leases->count];
    leases->rows[index] = leases->rows[leases->count];
}

void lease_stalled(void *context, int64_t stalled_ns)
{
    struct sql_store *store = context;
    store->leases.connected_ns += stalled_ns;
    store->leases.opening_ns += store->leases.opening_ns < INT64_MAX ? stalled_ns : 0;
    for (size_t i = 0; i < store->leases.count; i++) {
        store->leases.rows[i].until_ns += stalled_ns;
    }
}

void lease_holder_read(struct query *query, int column, struct store_holder *out)
{
    bool by_id = !query_column_is_null(query, column);

    out->known = by_id || !query_column_is_null(query, column + 1);
    out->by_name = out->known && !by_id;
    query_column_text(query, by_id ? column : column + 1, out->text, sizeof out->text);
}

enum status lease_holder_check(const struct store_worker *worker, const struct store_holder *holder,
                               struct error *error)
{
    const char *asks = holder->by_name ? worker->holder_name : worker->holder;

    if (!holder->known || worker->holder[0] == '\0' || strcmp(asks, holder->text) == 0) {
        return STATUS_OK;
    }
    return error_set(
        error, STATUS_MISMATCH,
        "worker \"%s\" belongs to another token than that of \"%s\"; each worker process needs "
        "an id of its own, and a token is renewed while the old one is live",
        worker->worker_id, worker->holder_name);
}

/* Whose the worker is, by its row; nobody's while it has none. */
static enum status read_holder(struct db *db, const char *worker_id, struct store_holder *out,
                               struct error *error)
{
    struct query owner = query_begin(db, STATEMENT_WORKER_OWNER);

    query_text(&owner, worker_id);
    if (query_row(&owner)) {
        lease_holder_read(&owner, 1, out);
    }
    return query_end(&owner, error);
}

/* A worker that was nobody's yet is its caller's from here on; one that was known by its token's
 * name is known by that token's id. */
static enum status hold(struct db *db, const struct store_worker *worker,
                        struct store_holder *holder, struct error *error)
{
    if (holder->known && (!holder->by_name || worker->holder[0] == '\0')) {
        return STATUS_OK;
    }
    struct query query = query_begin(db, STATEMENT_WORKER_HOLD);
    query_text(&query, worker->worker_id);
    query_text(&query, worker->holder);
    *holder = (struct store_holder){.known = true};
    memcpy(holder->text, worker->holder, sizeof holder->text);
    return query_run(&query, error);
}

enum status lease_renew(struct sql_store *store, struct db *db, const struct store_worker *worker,
                        int64_t until_ns, struct lease **out, struct error *error)
{
    const char *worker_id = worker->worker_id;
    struct lease *lease = leases_find(&store->leases, worker_id);
    struct store_holder holder = {.known = false};
    if (lease != NULL && lease->holder.known) {
        holder = lease->holder;
    } else { /* as other processes, or an earlier opening, know it */
        TRY(read_holder(db, worker_id, &holder, error));
    }
    TRY(lease_holder_check(worker, &holder, error));
    TRY(hold(db, worker, &holder, error));
    TRY(leases_renew(&store->leases, worker_id, until_ns, out, error));
    lease = *out;
    lease->holder = holder;
    lease->heard_ns = clock_now_ns(store->clock);
    if (store->medium->peers != NULL) {
        TRY(store->medium->peers->renew(db, worker_id, lease->until_ns, error));
    }
    if (lease->unheard) {
        struct query heard = query_begin(db, STATEMENT_WORKER_HEARD);
        query_text(&heard, worker_id);
        TRY(query_run(&heard, error));
        /* Should the transaction be undone, the worker counts as unheard of in openings before. */
        lease->unheard = false;
    }
    return STATUS_OK;
}

enum status lease_restart(struct sql_store *store, struct error *error)
{
    const struct lease_peers *peers = store->medium->peers;
    if (peers != NULL) { /* leases and backoffs go on by the database's clock */
        store->leases.opening_ns = INT64_MAX;
        store->leases.connection = peers->connection(store->db);
        store->leases.connected_ns = clock_now_ns(store->clock);
        return peers->clamp(store->db, store->leases.connected_ns, store->lease_ttl_ns, error);
    }
    int64_t now_ns = clock_now_ns(store->clock);
    enum status status = STATUS_OK;
    struct query workers = query_begin(store->db, STATEMENT_LEASED_WORKERS);
    while (status == STATUS_OK && query_row(&workers)) {
        char worker_id[LIMIT_ID_BYTES];
        struct lease *lease;
        int64_t parts = query_column_int(&workers, 1);
        int64_t left = parts < LEASE_PARTS ? LEASE_PARTS - parts : 0;
        query_column_text(&workers, 0, worker_id, sizeof worker_id);
        status = leases_renew(&store->leases, worker_id,
                              now_ns + store->lease_ttl_ns / LEASE_PARTS * left, &lease, error);
        if (status == STATUS_OK) {
            lease_holder_read(&workers, 2, &lease->holder);
        }
    }
    store->leases.opening_ns =
        store->leases.count > 0 ? now_ns + store->lease_ttl_ns / LEASE_PARTS : INT64_MAX;
    if (status != STATUS_OK) {
        query_end(&workers, NULL);
        return status;
    }
    status = query_end(&workers, error);
    if (status == STATUS_OK) {
        struct query delayed = query_begin(store->db, STATEMENT_DELAYED_RESTART);
        query_int(&delayed, now_ns);
        status = query_run(&delayed, error);
    }
    return status;
}

/* ---- heartbeats ---- */

struct heartbeat_call {
    struct sql_store *store;
    const struct store_worker *worker;
    const struct store_progress *progress;
    uint32_t count;
    int64_t *cancelled;
    uint32_t cancelled_count;
};

/* Of the rollouts of one job. */
#define TICKS_MAX ((int64_t)LIMIT_HORIZON_TICKS * (1 + LIMIT_BRANCHES))

int64_t lease_billable_mm(int64_t rollouts, int64_t ticks, int64_t metres_mm)
{
    if (ticks <= 0 || ticks > TICKS_MAX) {
        return metres_mm; /* not known */
    }
    int64_t most_mm = rollouts * (ticks + 1) * OUTCOME_TICK_MM_MAX;
    return metres_mm < most_mm ? metres_mm : most_mm;
}

/* Whether the attempt's result could still be accepted. */
static enum status note_progress(struct db *db, const struct heartbeat_call *call,
                                 const struct store_progress *progress, bool *valid,
                                 struct error *error)
{
    char worker_id[LIMIT_ID_BYTES] = "";
    int64_t state = -1;
    int64_t epoch = 0;
    int64_t device_ns = 0;
    int64_t metres_mm = 0;
    int64_t mflop = 0;
    int64_t claimed_ns = 0;
    int64_t ticks = 0;
    int64_t driven_mm = progress->metres_mm;
    struct query query = query_begin(db, STATEMENT_JOB_PROGRESS_GET);

    query_int(&query, progress->job_id);
    if (query_row(&query)) {
        state = query_take_int(&query);
        epoch = query_take_int(&query);
        query_take_text(&query, worker_id, sizeof worker_id);
        device_ns = query_take_int(&query);
        metres_mm = query_take_int(&query);
        mflop = query_take_int(&query);
        claimed_ns = query_take_int(&query);
        query.column++; /* its suite */
        ticks = query_take_int(&query);
        int64_t rollouts = query_take_int(&query);
        driven_mm = lease_billable_mm(rollouts, query_take_int(&query), driven_mm);
    }
    TRY(query_end(&query, error));
    *valid = (state == JOB_LEASED || state == JOB_QUEUED) && epoch == progress->epoch &&
             strcmp(worker_id, call->worker->worker_id) == 0;
    if (!*valid || state != JOB_LEASED) {
        return STATUS_OK;
    }
    int64_t billed_ns =
        claim_billable_ns(call->store, progress->job_id, claimed_ns, progress->device_ns);
    int64_t driven = progress->ticks < TICKS_MAX ? progress->ticks : TICKS_MAX;
    if (billed_ns <= device_ns && driven_mm <= metres_mm && progress->mflop <= mflop &&
        driven <= ticks) {
        return STATUS_OK;
    }
    struct query update = query_begin(db, STATEMENT_JOB_PROGRESS_SET);
    query_int(&update, progress->job_id);
    query_int(&update, billed_ns > device_ns ? billed_ns : device_ns);
    query_int(&update, driven_mm > metres_mm ? driven_mm : metres_mm);
    query_int(&update, progress->mflop > mflop ? progress->mflop : mflop);
    query_int(&update, driven);
    return query_send(&update, error);
}

/* ---- hand-backs ---- */

/* Suites of the pool with claimable jobs, the newest first. */
static enum status read_waiting(struct db *db, int64_t pool, struct handback_look *look,
                                struct error *error)
{
    int64_t below = INT64_MAX;
    for (int looked = 0; below != 0 && looked < HANDBACK_SUITES_MAX; looked++) {
        struct handback_waiting *row = &look->rows[look->count];
        struct query query = query_begin(db, STATEMENT_WAITING_SUITE_NEXT);
        query_int(&query, pool);
        query_int(&query, below);
        below = 0;
        if (query_row(&query)) {
            below = query_take_int(&query);
            *row = (struct handback_waiting){.suite = below};
            row->of_class = (enum suite_class)query_take_int(&query);
            row->tenant = query_take_int(&query);
            look->count += row->of_class != SUITE_MINING;
        }
        TRY(query_end(&query, error));
    }
    return STATUS_OK;
}

/* The pool's entry, or the one that was looked at longest ago. */
static struct handback_look *find_look(struct sql_store *store, int64_t pool)
{
    struct handback_look *oldest = &store->looks[0];
    for (int i = 0; i < SQL_LOOKS; i++) {
        if (store->looks[i].pool == pool) {
            return &store->looks[i];
        }
        oldest = store->looks[i].at_ns < oldest->at_ns ? &store->looks[i] : oldest;
    }
    *oldest = (struct handback_look){.pool = pool};
    return oldest;
}

/* Finds what waits in a pool, as it was HANDBACK_LOOK_NS ago at the most. */
static enum status look_at(struct sql_store *store, struct db *db, int64_t pool,
                           struct handback_look **out, struct error *error)
{
    struct handback_look *look = find_look(store, pool);
    const int64_t now_ns = clock_now_ns(store->clock);
    *out = look;
    if (look->at_ns != 0 && now_ns - look->at_ns < HANDBACK_LOOK_NS) {
        return STATUS_OK;
    }
    struct handback_look now = {.pool = pool, .at_ns = now_ns};
    pthread_mutex_lock(&store->mutex);
    const int64_t ready_ns = store->ready_ns;
    pthread_mutex_unlock(&store->mutex);
    TRY(read_waiting(db, pool, &now, error)); /* not OK: the look before stays */
    const int64_t age_ns = ready_ns > look->at_ns && ready_ns < now_ns ? now_ns - ready_ns : 0;
    handback_keep(&now, look, claim_time_ns(store) - age_ns);
    *look = now;
    return STATUS_OK;
}

/* Place among the jobs that the heartbeat reports; -1: none. */
static int64_t reported(const struct heartbeat_call *call, const struct handback_job *job)
{
    for (uint32_t i = 0; i < call->count; i++) {
        if (call->progress[i].job_id == job->id && call->progress[i].epoch == job->epoch) {
            return i;
        }
    }
    return -1;
}

/* Leased jobs of the worker that it reports. */
static enum status read_held(const struct heartbeat_call *call, struct db *db, int64_t worker,
                             uint32_t *count, struct error *error)
{
    struct query query = query_begin(db, STATEMENT_HELD_OF_WORKER);
    query_int(&query, worker);
    query_int(&query, LIMIT_CLAIM_JOBS);
    *count = 0;
    while (*count < LIMIT_CLAIM_JOBS && query_row(&query)) {
        struct handback_job *job = &call->store->beats[*count];
        *job = (struct handback_job){.id = query_take_int(&query)};
        job->epoch = query_take_int(&query);
        job->tenant = query_take_int(&query);
        job->of_class = (enum suite_class)query_take_int(&query);
        job->claimed_ns = query_take_int(&query);
        job->ticks = query_take_int(&query);
        job->times = query_take_int(&query);
        job->asked = query_take_int(&query) > 0;
        *count += reported(call, job) >= 0;
    }
    return query_end(&query, error);
}

/* Counts what waits above the worker's jobs, once a look. *any: something does. */
static enum status count_waiting(struct sql_store *store, struct db *db, struct handback_look *look,
                                 uint32_t held, bool *any, struct error *error)
{
    *any = false;
    for (uint32_t i = 0; i < look->count; i++) {
        struct handback_waiting *row = &look->rows[i];
        bool above = handback_concerns(row, store->beats, held);
        *any |= above;
        if (row->counted || !above) {
            continue;
        }
        struct query query = query_begin(db, STATEMENT_WAITING_JOBS);
        query_int(&query, look->pool);
        query_int(&query, row->suite);
        query_int(&query, row->asked + HANDBACK_JOBS_MAX);
        int64_t waiting = 0;
        int64_t going = 0;
        if (query_row(&query)) {
            waiting = query_take_int(&query);
            going = query_take_int(&query);
        }
        TRY(query_end(&query, error));
        handback_count(row, waiting, going);
    }
    return STATUS_OK;
}

/* Planned ticks of those jobs that may make way now. */
static enum status read_ticks(struct sql_store *store, struct db *db, struct handback_look *look,
                              uint32_t held, int64_t now_ns, struct error *error)
{
    for (uint32_t i = 0; i < held; i++) {
        struct handback_job *job = &store->beats[i];
        if (!handback_could(look, job, now_ns)) {
            continue;
        }
        struct query query = query_begin(db, STATEMENT_HELD_TICKS);
        query_int(&query, job->id);
        if (query_row(&query)) {
            job->ticks_planned = query_take_int(&query);
        }
        TRY(query_end(&query, error));
    }
    return STATUS_OK;
}

static enum status find_worker(struct db *db, struct lease *lease, struct error *error)
{
    if (lease->row != 0) {
        return STATUS_OK;
    }
    struct query query = query_begin(db, STATEMENT_WORKER_FIND);
    query_text(&query, lease->worker_id);
    if (query_row(&query)) {
        lease->row = query_take_int(&query);
        lease->pool = query_take_int(&query);
    }
    return query_end(&query, error);
}

/* Lists, behind those that cannot count any more, jobs that are to make way for others. What a
 * worker was asked for it is asked for again, until it has heard it. */
static enum status ask_back(struct heartbeat_call *call, struct db *db, struct lease *lease,
                            struct error *error)
{
    struct sql_store *store = call->store;
    struct handback_look *look = NULL;
    uint32_t count = 0;
    TRY(find_worker(db, lease, error));
    if (lease->row == 0 || call->cancelled_count == call->count) {
        return STATUS_OK;
    }
    TRY(look_at(store, db, lease->pool, &look, error));
    if (look->count == 0) {
        return STATUS_OK;
    }
    TRY(read_held(call, db, lease->row, &count, error));
    const int64_t now_ns = claim_time_ns(store);
    bool any = false;
    TRY(count_waiting(store, db, look, count, &any, error));
    if (!any) {
        return STATUS_OK;
    }
    TRY(read_ticks(store, db, look, count, now_ns, error));
    /* Should the transaction be undone, what is asked for here counts until it has helped. */
    handback_choose(look, store->beats, count, now_ns);
    for (uint32_t i = 0; i < count; i++) {
        const struct handback_job *job = &store->beats[i];
        if (job->for_suite != 0) {
            struct query ask = query_begin(db, STATEMENT_HAND_BACK_ASK);
            query_int(&ask, job->id);
            query_int(&ask, job->epoch);
            query_int(&ask, job->for_suite);
            TRY(query_send(&ask, error));
        }
        if (job->for_suite != 0 || job->asked) {
            call->cancelled[call->cancelled_count++] = job->id;
        }
    }
    return STATUS_OK;
}

enum status lease_handed_back(struct sql_store *store, struct db *db, int64_t job_id, int64_t epoch,
                              int64_t suite, int64_t pool, struct error *error)
{
    struct query find = query_begin(db, STATEMENT_HAND_BACK_FIND);
    query_int(&find, job_id);
    query_int(&find, epoch);
    bool asked = query_row(&find);
    int64_t for_suite = asked ? query_take_int(&find) : 0;
    TRY(query_end(&find, error));
    if (!asked) {
        return STATUS_OK;
    }
    handback_owe(store->owed, pool, for_suite);
    struct query done = query_begin(db, STATEMENT_HAND_BACK_DONE);
    query_int(&done, job_id);
    query_int(&done, epoch);
    TRY(query_run(&done, error));
    struct query of_suite = query_begin(db, STATEMENT_HAND_BACK_COUNT_SUITE);
    query_int(&of_suite, suite);
    TRY(query_run(&of_suite, error));
    struct query of_pool = query_begin(db, STATEMENT_HAND_BACK_COUNT_POOL);
    query_int(&of_pool, pool);
    return query_run(&of_pool, error);
}

static enum status heartbeat_op(struct db *db, void *context, struct error *error)
{
    struct heartbeat_call *call = context;
    struct sql_store *store = call->store;
    struct lease *lease;
    int64_t until_ns = clock_now_ns(store->clock) + store->lease_ttl_ns;
    enum status status = lease_renew(store, db, call->worker, until_ns, &lease, error);

    group_commit_sweep_by(store->group, until_ns);
    call->cancelled_count = 0;
    for (uint32_t i = 0; i < call->count && status == STATUS_OK; i++) {
        bool valid = true;
        status = note_progress(db, call, &call->progress[i], &valid, error);
        if (status == STATUS_OK && !valid) {
            call->cancelled[call->cancelled_count++] = call->progress[i].job_id;
        }
    }
    THEN(status, ask_back(call, db, lease, error));
    return status;
}

enum status lease_heartbeat(struct store *base, const struct store_worker *worker,
                            const struct store_progress *progress, uint32_t count,
                            int64_t *cancelled, uint32_t *cancelled_count, int64_t *ttl_ms,
                            struct error *error)
{
    struct sql_store *store = sql_store_of(base);
    struct heartbeat_call call = {
        .store = store, .worker = worker, .progress = progress, .count = count};
    TRY(door_worker(worker, error));

    if (count > PROGRESS_MAX) {
        return error_set(error, STATUS_LIMIT, "a heartbeat reports at most %d jobs", PROGRESS_MAX);
    }
    for (uint32_t i = 0; i < count; i++) {
        TRY(door_progress(&progress[i], error));
    }
    call.cancelled = cancelled;
    TRY(sql_store_enter(store, error));
    enum status status = sql_store_run_beside(store, heartbeat_op, NULL, false, 0, &call, error);
    sql_store_leave(store);
    TRY(status);
    *(cancelled_count != NULL ? cancelled_count : &count) = call.cancelled_count;
    *ttl_ms = store->lease_ttl_ns / NS_PER_MS;
    return STATUS_OK;
}

/* ---- what a drain waits for ---- */

enum { NAMES_CHUNK = 64 };

struct held_by {
    char worker_id[LIMIT_ID_BYTES];
    int64_t jobs;
};

struct awaited_call {
    struct sql_store *store;
    const struct store_worker *worker;
    int64_t since_ns;
    int64_t now_ns;
    struct held_by rows[NAMES_CHUNK];
    struct store_awaited found;
};

/* Workers of the pool that hold jobs, above `after`. */
static enum status read_holders(struct awaited_call *call, struct db *db, const char *after,
                                uint32_t *count, struct error *error)
{
    struct query query = query_begin(db, STATEMENT_LEASED_OF_POOL);

    query_text(&query, call->worker->pool);
    query_text(&query, after);
    query_int(&query, NAMES_CHUNK);
    *count = 0;
    while (*count < NAMES_CHUNK && query_row(&query)) {
        struct held_by *row = &call->rows[(*count)++];
        query_take_text(&query, row->worker_id, sizeof row->worker_id);
        row->jobs = query_take_int(&query);
    }
    return query_end(&query, error);
}

/* When the worker was heard of last (INT64_MIN: not since the opening), and when its lease ends. */
static enum status last_heard(struct awaited_call *call, struct db *db, const char *worker_id,
                              int64_t *heard_ns, int64_t *until_ns, struct error *error)
{
    struct sql_store *store = call->store;
    const struct lease_peers *peers = store->medium->peers;
    const struct lease *lease = leases_find(&store->leases, worker_id);

    if (peers != NULL) {
        TRY(peers->until(db, worker_id, until_ns, error));
        *heard_ns = *until_ns - store->lease_ttl_ns;
        int64_t first_ns = store->leases.connected_ns + store->lease_ttl_ns;
        *until_ns = *until_ns > first_ns ? *until_ns : first_ns;
        return STATUS_OK;
    }
    *heard_ns = lease == NULL || lease->unheard ? INT64_MIN : lease->heard_ns;
    *until_ns = lease == NULL ? call->now_ns : lease->until_ns;
    if (lease != NULL && lease->retry_ns != 0) { /* nobody can say when its jobs come back */
        *heard_ns = INT64_MAX;
    }
    return STATUS_OK;
}

static int64_t until_ms(int64_t until_ns, int64_t now_ns)
{
    return until_ns > now_ns ? (until_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS : 0;
}

static enum status awaited_op(struct db *db, void *context, struct error *error)
{
    struct awaited_call *call = context;
    struct store_awaited *found = &call->found;
    char after[LIMIT_ID_BYTES] = "";
    uint32_t count = NAMES_CHUNK;

    memset(found, 0, sizeof *found);
    call->now_ns = clock_now_ns(call->store->clock);
    while (count == NAMES_CHUNK) {
        TRY(read_holders(call, db, after, &count, error));
        for (uint32_t i = 0; i < count; i++) {
            int64_t heard_ns = 0;
            int64_t until_ns = 0;
            memcpy(after, call->rows[i].worker_id, sizeof after);
            TRY(last_heard(call, db, after, &heard_ns, &until_ns, error));
            if (heard_ns >= call->now_ns - call->since_ns ||
                strcmp(after, call->worker->worker_id) == 0) {
                continue;
            }
            int64_t left_ms = until_ms(until_ns, call->now_ns);
            found->jobs_silent += call->rows[i].jobs;
            found->silent_ms = left_ms > found->silent_ms ? left_ms : found->silent_ms;
        }
    }
    struct query delayed = query_begin(db, STATEMENT_DELAYED_OF_POOL);
    query_text(&delayed, call->worker->pool);
    if (query_row(&delayed)) {
        found->jobs_delayed = query_column_int(&delayed, 0);
        found->delayed_ms = until_ms(query_column_int(&delayed, 1), call->now_ns);
    }
    return query_end(&delayed, error);
}

enum status lease_awaited(struct store *base, const struct store_worker *worker, int64_t since_ms,
                          struct store_awaited *out, struct error *error)
{
    struct awaited_call call = {.store = sql_store_of(base), .worker = worker};
    TRY(door_worker(worker, error));

    if (since_ms < 0 || since_ms > STORE_SINCE_MS_MAX) {
        return error_set(error, STATUS_BAD_INPUT,
                         "expected a time of 0 to %" PRId64 " ms since which workers were heard "
                         "of, found %" PRId64,
                         STORE_SINCE_MS_MAX, since_ms);
    }
    call.since_ns = since_ms * NS_PER_MS;
    TRY(sql_store_write(call.store, awaited_op, &call, error));
    *out = call.found;
    return STATUS_OK;
}
