/*
 * Shared leases. See postgres_leases.h.
 *
 * One row per worker, in the database's clock. Rows decide only who is taken to be gone; what a
 * worker's jobs are worth after that is decided by their epochs, as ever.
 */
#include "store/postgres/postgres_leases.h"

#include "store/postgres/postgres_db.h"
#include "store/postgres/postgres_listen.h"

#include <string.h>

static enum status renew(struct db *db, const char *worker_id, int64_t until_ns,
                         struct error *error)
{
    struct query query =
        query_begin_sql(db, "INSERT INTO worker_leases (worker, until_ns) VALUES (?1, ?2)"
                            " ON CONFLICT (worker) DO UPDATE SET until_ns ="
                            " GREATEST(worker_leases.until_ns, EXCLUDED.until_ns)");

    query_text(&query, worker_id);
    query_int(&query, until_ns);
    return query_send(&query, error);
}

static enum status until(struct db *db, const char *worker_id, int64_t *until_ns,
                         struct error *error)
{
    struct query query =
        query_begin_sql(db, "SELECT until_ns FROM worker_leases WHERE worker = ?1");

    query_text(&query, worker_id);
    *until_ns = query_row(&query) ? query_column_int(&query, 0) : 0;
    return query_end(&query, error);
}

static enum status forget(struct db *db, const char *worker_id, struct error *error)
{
    struct query query = query_begin_sql(db, "DELETE FROM worker_leases WHERE worker = ?1");

    query_text(&query, worker_id);
    return query_run(&query, error);
}

static enum status next_ended(struct db *db, int64_t now_ns, const char *after,
                              char worker_id[LIMIT_ID_BYTES], struct error *error)
{
    char found[LIMIT_ID_BYTES] = "";
    struct query query = query_begin_sql(db, "SELECT worker FROM worker_leases"
                                             " WHERE until_ns <= ?1 AND worker > ?2"
                                             " ORDER BY worker LIMIT 1");

    query_int(&query, now_ns);
    query_text(&query, after);
    if (query_row(&query)) {
        query_column_text(&query, 0, found, sizeof found);
    }
    memcpy(worker_id, found, sizeof found); /* `after` may be the same place */
    return query_end(&query, error);
}

static enum status clamp_rows(struct db *db, int64_t now_ns, int64_t lease_ttl_ns,
                              struct error *error)
{
    struct query leases =
        query_begin_sql(db, "UPDATE worker_leases SET until_ns = ?1 WHERE until_ns > ?1");

    query_int(&leases, now_ns + lease_ttl_ns);
    TRY(query_run(&leases, error));
    struct query backoffs =
        query_begin_sql(db, "UPDATE jobs SET due_ns = ?1 + delay_ns"
                            " WHERE state = 0 AND due_ns > 0 AND due_ns > ?1 + delay_ns");
    query_int(&backoffs, now_ns);
    return query_run(&backoffs, error);
}

static enum status clamp(struct db *db, int64_t now_ns, int64_t lease_ttl_ns, struct error *error)
{
    struct error ignored;
    TRY(query_simple(db, STATEMENT_BEGIN, error));
    enum status status = clamp_rows(db, now_ns, lease_ttl_ns, error);

    if (status != STATUS_OK) {
        query_simple(db, STATEMENT_ROLLBACK, &ignored);
        return status;
    }
    return query_simple(db, STATEMENT_COMMIT, error);
}

const struct lease_peers postgres_lease_peers = {
    .announce = postgres_listen_announce,
    .renew = renew,
    .until = until,
    .forget = forget,
    .next_ended = next_ended,
    .connection = postgres_db_connection,
    .clamp = clamp,
};
