/*
 * Workers' leases and heartbeats; what happens when a lease ends is in lease_sweep.c. See lease.h.
 */
#include "store/sql/lease.h"

#include "base/check.h"
#include "base/units.h"
#include "store/api/name_hash.h"
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
    uint64_t hash = name_hash(worker_id);

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
        leases->hashes[leases->count] = name_hash(worker_id);
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
    for (size_t i = 0; i < store->leases.count; i++) {
        store->leases.rows[i].until_ns += stalled_ns;
    }
}

enum status lease_holder_check(const struct store_worker *worker, const char *holder,
                               struct error *error)
{
    if (worker->holder[0] == '\0' || strcmp(worker->holder, holder) == 0) {
        return STATUS_OK;
    }
    return error_set(
        error, STATUS_MISMATCH,
        "worker \"%s\" belongs to another token than \"%s\"; each worker process needs an "
        "id of its own, and a token keeps its name when it is renewed",
        worker->worker_id, worker->holder);
}

/* Takes what other processes know of a worker that is new to this one, and tells them of it. */
static enum status tell_peers(struct sql_store *store, struct db *db,
                              const struct store_worker *worker, struct lease *lease,
                              struct error *error)
{
    if (!lease->held) {
        struct query owner = query_begin(db, STATEMENT_WORKER_OWNER);
        query_text(&owner, worker->worker_id);
        if (query_row(&owner) && !query_column_is_null(&owner, 1)) {
            lease->held = true;
            query_column_text(&owner, 1, lease->holder, sizeof lease->holder);
        }
        TRY(query_end(&owner, error));
        TRY(lease->held ? lease_holder_check(worker, lease->holder, error) : STATUS_OK);
    }
    return store->medium->peers->renew(db, worker->worker_id, lease->until_ns, error);
}

enum status lease_renew(struct sql_store *store, struct db *db, const struct store_worker *worker,
                        int64_t until_ns, struct lease **out, struct error *error)
{
    const char *worker_id = worker->worker_id;
    struct lease *lease = leases_find(&store->leases, worker_id);
    TRY(lease != NULL && lease->held ? lease_holder_check(worker, lease->holder, error)
                                     : STATUS_OK);
    TRY(leases_renew(&store->leases, worker_id, until_ns, out, error));
    lease = *out;
    TRY(store->medium->peers != NULL ? tell_peers(store, db, worker, lease, error) : STATUS_OK);
    if (!lease->held) {
        lease->held = true;
        memcpy(lease->holder, worker->holder, sizeof lease->holder);
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
        bool lost = query_column_int(&workers, 1) >= LEASE_OPENINGS_MAX;
        query_column_text(&workers, 0, worker_id, sizeof worker_id);
        status = leases_renew(&store->leases, worker_id,
                              lost ? now_ns : now_ns + store->lease_ttl_ns, &lease, error);
        if (status == STATUS_OK) {
            lease->held = !query_column_is_null(&workers, 2);
            query_column_text(&workers, 2, lease->holder, sizeof lease->holder);
        }
    }
    store->leases.opening_ns =
        store->leases.count > 0 ? now_ns + store->lease_ttl_ns / LEASE_OPENING_PART : INT64_MAX;
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
    struct query query = query_begin(db, STATEMENT_JOB_PROGRESS_GET);

    query_int(&query, progress->job_id);
    if (query_row(&query)) {
        state = query_column_int(&query, 0);
        epoch = query_column_int(&query, 1);
        query_column_text(&query, 2, worker_id, sizeof worker_id);
        device_ns = query_column_int(&query, 3);
        metres_mm = query_column_int(&query, 4);
        mflop = query_column_int(&query, 5);
    }
    TRY(query_end(&query, error));
    *valid = (state == JOB_LEASED || state == JOB_QUEUED) && epoch == progress->epoch &&
             strcmp(worker_id, call->worker->worker_id) == 0;
    if (!*valid || state != JOB_LEASED) {
        return STATUS_OK;
    }
    int64_t billed_ns =
        claim_billable_ns(call->store, progress->job_id, progress->epoch, progress->device_ns);
    if (billed_ns <= device_ns && progress->metres_mm <= metres_mm && progress->mflop <= mflop) {
        return STATUS_OK;
    }
    struct query update = query_begin(db, STATEMENT_JOB_PROGRESS_SET);
    query_int(&update, progress->job_id);
    query_int(&update, billed_ns > device_ns ? billed_ns : device_ns);
    query_int(&update, progress->metres_mm > metres_mm ? progress->metres_mm : metres_mm);
    query_int(&update, progress->mflop > mflop ? progress->mflop : mflop);
    return query_send(&update, error);
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
    enum status status = sql_store_run_beside(store, heartbeat_op, NULL, false, &call, error);
    sql_store_leave(store);
    TRY(status);
    *(cancelled_count != NULL ? cancelled_count : &count) = call.cancelled_count;
    *ttl_ms = store->lease_ttl_ns / NS_PER_MS;
    return STATUS_OK;
}
