/*
 * Connections to PostgreSQL: how they are made, and what is asked of a server before it is trusted.
 * See postgres_internal.h.
 *
 * Invariant: a connection that is handed out has the settings below for as long as it lives.
 */
#include "base/units.h"
#include "store/postgres/postgres_db.h"
#include "store/postgres/postgres_internal.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

enum { AWAY_PAUSE_MS = 50 }; /* between two tries to connect */

/* ---- connecting ---- */

static enum status away(const struct postgres_db *db, const char *why, struct error *error)
{
    return error_set(error, STATUS_BUSY, "PostgreSQL %s does not answer: %.*s", db->who,
                     (int)strcspn(why, "\n"), why);
}

void postgres_disconnect(struct postgres_db *db)
{
    PQfreeCancel(db->cancel);
    PQfinish(db->connection);
    db->pending = 0;
    db->undone = false;
    db->writes = false;
    db->cancel = NULL;
    db->connection = NULL;
    memset(db->prepared, 0, sizeof db->prepared);
    db->kept_count = 0;
}

enum status postgres_setup(struct postgres_db *db, const char *sql, struct error *error)
{
    PGresult *result = PQexec(db->connection, sql);
    ExecStatusType code = PQresultStatus(result);

    PQclear(result);
    return code == PGRES_COMMAND_OK || code == PGRES_TUPLES_OK
               ? STATUS_OK
               : away(db, PQerrorMessage(db->connection), error);
}

/* Errors have sentences of their own; what the server says beside is in its log. */
static void hear_notice(void *context, const char *text)
{
    (void)context;
    (void)text;
}

enum status postgres_connect(struct postgres_db *db, struct error *error)
{
    /* The later of two values counts: the URL may say otherwise of all in front of it. A machine
     * that vanishes without a word is noticed after 30 s, and not after the system's 2 hours. */
    const char *const names[] = {"application_name",
                                 "connect_timeout",
                                 "keepalives_idle",
                                 "keepalives_interval",
                                 "keepalives_count",
                                 "tcp_user_timeout",
                                 "dbname",
                                 "client_encoding",
                                 NULL};
    const char *const values[] = {"swerve", "10", "15", "5", "3", "30000", db->url, "UTF8", NULL};
    int64_t now_ns = clock_now_ns(clock_system());

    if (db->away_ns != 0 && now_ns - db->away_ns < AWAY_PAUSE_MS * NS_PER_MS) {
        return away(db, "it was asked a moment ago", error);
    }
    db->connection = PQconnectdbParams(names, values, 1);
    if (PQstatus(db->connection) != CONNECTION_OK) {
        enum status status = away(db, PQerrorMessage(db->connection), error);
        postgres_disconnect(db);
        db->away_ns = clock_now_ns(clock_system());
        return status;
    }
    PQsetNoticeProcessor(db->connection, hear_notice, NULL);
    db->away_ns = 0;
    db->connections++;
    db->cancel = PQgetCancel(db->connection);
    const char *host = PQhost(db->connection);
    snprintf(db->who, sizeof db->who, "%.60s at %.60s", PQdb(db->connection),
             host != NULL ? host : "");
    /* Whatever the site has chosen, an acknowledged commit is on the disk; a process that hangs
     * inside a transaction does not keep the others waiting, and who waits for its turn waits.
     * Each statement is written for an index, whose order it reads in: neither a table that is
     * still empty when it is planned nor an average of its sizes is a reason to sort. */
    enum status status =
        postgres_setup(db,
                       "SET jit = off; SET max_parallel_workers_per_gather = 0;"
                       " SET enable_seqscan = off; SET enable_bitmapscan = off; SET "
                       "standard_conforming_strings = on; SET "
                       "idle_in_transaction_session_timeout"
                       " = 20000; SET statement_timeout = 0; SET lock_timeout = 0;"
                       " SELECT set_config('synchronous_commit', 'on', false)"
                       " WHERE current_setting('synchronous_commit') = 'off'",
                       error);
    if (status != STATUS_OK) {
        postgres_disconnect(db);
    }
    return status;
}

/* One that a pipeline did not leave, for want of memory, takes no further statement. */
static bool usable(const struct postgres_db *db)
{
    return PQstatus(db->connection) == CONNECTION_OK &&
           (db->pending > 0 || PQpipelineStatus(db->connection) == PQ_PIPELINE_OFF);
}

enum status postgres_reconnect(struct postgres_db *db, struct error *error)
{
    if (usable(db)) {
        return STATUS_OK;
    }
    postgres_disconnect(db);
    return postgres_connect(db, error);
}
