/*
 * What a server wants to know of the embedded store: counts for its metrics, and whose worker a
 * worker is.
 *
 * Jobs are counted as they change state (pool_jobs), so asking costs little.
 */
#include "store/sqlite/sqlite_store.h"

#include <string.h>

struct owner_call {
    struct sqlite_store *store;
    const char *worker_id;
    struct store_worker_owner *out;
};

/* A worker that was heard of, but never claimed, is known to the leases alone. */
static enum status find_owner_op(struct sqlite_db *db, void *context, struct error *error)
{
    struct owner_call *call = context;
    const struct lease *lease = leases_find(&call->store->leases, call->worker_id);
    (void)db;
    (void)error;
    call->out->held = lease != NULL && lease->held;
    if (call->out->held) {
        memcpy(call->out->holder, lease->holder, sizeof call->out->holder);
    }
    return STATUS_OK;
}

enum status stats_worker_owner(struct store *base, const char *worker_id,
                               struct store_worker_owner *out, struct error *error)
{
    struct sqlite_db *db;
    struct store_worker_owner found = {.held = false};
    struct sqlite_store *store = sqlite_store_of(base);
    TRY(sqlite_store_read_begin(base, &db, error));
    struct query query = query_begin(db, STATEMENT_WORKER_OWNER);
    query_text(&query, worker_id);
    if (query_row(&query)) {
        query_column_text(&query, 0, found.pool, sizeof found.pool);
        found.held = !query_column_is_null(&query, 1);
        query_column_text(&query, 1, found.holder, sizeof found.holder);
    }
    enum status status = query_end(&query, error);
    sqlite_store_read_end(store, db);
    if (status == STATUS_OK && found.pool[0] == '\0') {
        struct owner_call call = {.store = store, .worker_id = worker_id, .out = &found};
        status = sqlite_store_write(store, find_owner_op, &call, error);
    }
    if (status == STATUS_OK) {
        *out = found;
    }
    return status;
}

enum status stats_commits_lost(struct store *base, int64_t *count, struct error *error)
{
    struct sqlite_db *db;
    int64_t lost = 0;
    TRY(sqlite_store_read_begin(base, &db, error));
    struct query query = query_begin(db, STATEMENT_LOG_LOST);
    if (query_row(&query)) {
        lost = query_column_int(&query, 0);
    }
    enum status status = query_end(&query, error);
    sqlite_store_read_end(sqlite_store_of(base), db);
    if (status == STATUS_OK) {
        *count = lost;
    }
    return status;
}

/* The entry of a pool; pools beyond the table share its last one. */
static struct store_pool_jobs *pool_entry(struct store_stats *stats, const char *pool)
{
    uint32_t count = stats->pool_count;
    if (count > 0 && strcmp(stats->pools[count - 1].pool, pool) == 0) {
        return &stats->pools[count - 1];
    }
    if (count == STORE_STATS_POOLS_MAX) {
        struct store_pool_jobs *last = &stats->pools[count - 1];
        memcpy(last->pool, "other", sizeof "other");
        return last;
    }
    struct store_pool_jobs *entry = &stats->pools[stats->pool_count++];
    memset(entry, 0, sizeof *entry);
    memcpy(entry->pool, pool, strlen(pool) + 1); /* as long as the column is read */
    return entry;
}

static enum status count_jobs(struct store *base, struct store_stats *out, struct error *error)
{
    struct sqlite_db *db;
    struct sqlite_store *store = sqlite_store_of(base);
    TRY(sqlite_store_read_begin(base, &db, error));
    struct query query = query_begin(db, STATEMENT_POOL_JOBS);
    while (query_row(&query)) {
        char pool[LIMIT_ID_BYTES];
        int64_t state = query_column_int(&query, 1);
        query_column_text(&query, 0, pool, sizeof pool);
        if (state >= 0 && state < JOB_STATE_COUNT) {
            pool_entry(out, pool)->jobs[state] += query_column_int(&query, 2);
        }
    }
    enum status status = query_end(&query, error);
    sqlite_store_read_end(store, db);
    return status;
}

/* Leases belong to the writer thread. */
static enum status count_workers_op(struct sqlite_db *db, void *context, struct error *error)
{
    struct sqlite_store *store = ((void **)context)[0];
    int64_t *count = ((void **)context)[1];
    (void)db;
    (void)error;
    *count = (int64_t)store->leases.count;
    return STATUS_OK;
}

enum status stats_read(struct store *base, struct store_stats *out, struct error *error)
{
    struct sqlite_store *store = sqlite_store_of(base);
    memset(out, 0, sizeof *out);
    void *context[] = {store, &out->workers_alive};
    TRY(sqlite_store_write(store, count_workers_op, context, error));
    TRY(count_jobs(base, out, error));
    group_commit_stats(store->group, out);
    return STATUS_OK;
}
