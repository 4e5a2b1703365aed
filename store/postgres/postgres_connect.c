/*
 * Connections to PostgreSQL: how they are made, and what is asked of a server before it is trusted.
 * See postgres_internal.h.
 *
 * Invariant: a connection that is handed out has the settings below for as long as it lives.
 */
#include "base/units.h"
#include "store/postgres/postgres_db.h"
#include "store/postgres/postgres_internal.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    AWAY_PAUSE_MS = 50,    /* between two tries to connect */
    AWAY_MS_MAX = 30000,   /* that a server which is there may take until it lets one in */
    REFUSED_TRIES_MAX = 3, /* of a server that runs and says no */
    POOL_MS_MAX = 2000,    /* a pooler may take to find a process for a connection */
};

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

/* Without settings yet. */
static PGconn *connection_to(const struct postgres_db *db)
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
    PGconn *connection = PQconnectdbParams(names, values, 1);

    PQsetNoticeProcessor(connection, hear_notice, NULL);
    return connection;
}

/* The number in a result's first field, which it clears; -1: there is none. */
static int64_t take_number(PGresult *result)
{
    bool is = PQresultStatus(result) == PGRES_TUPLES_OK && PQntuples(result) == 1;
    int64_t number = is ? strtoll(PQgetvalue(result, 0, 0), NULL, 10) : -1;

    PQclear(result);
    return number;
}

/* ---- poolers ---- */

/* Process of the server in which another connection's transaction is open meanwhile; -1: none came
 * by in time, as where a pool has as many as there are sessions. */
static int64_t process_beside(PGconn *beside)
{
    int64_t until_ns = clock_now_ns(clock_system()) + POOL_MS_MAX * NS_PER_MS;
    struct pollfd end = {.fd = PQsocket(beside), .events = POLLIN};
    int64_t number = -1;

    if (PQstatus(beside) != CONNECTION_OK ||
        PQsendQuery(beside, "BEGIN; SELECT pg_backend_pid()") != 1) {
        return -1;
    }
    for (int64_t left_ns = 1; PQisBusy(beside) == 1 && left_ns > 0;) {
        left_ns = until_ns - clock_now_ns(clock_system());
        if (left_ns <= 0 || poll(&end, 1, (int)(left_ns / NS_PER_MS) + 1) < 0 ||
            PQconsumeInput(beside) != 1) {
            return -1;
        }
    }
    for (PGresult *result; (result = PQgetResult(beside)) != NULL;) {
        number = take_number(result);
    }
    return number;
}

/* Between this and a server that says another process than the greeting did stands a pooler. It may
 * keep a process for each session. One that does not gives a connection whose transaction is over,
 * or the next one of it, the process of another. */
static enum status check_pooler(struct postgres_db *db, int64_t process, struct error *error)
{
    if (process == PQbackendPID(db->connection)) {
        return STATUS_OK;
    }
    PGconn *beside = connection_to(db);
    int64_t other = process_beside(beside);
    int64_t now = take_number(PQexec(db->connection, "SELECT pg_backend_pid()"));
    PQfinish(beside);
    return other != process && now == process
               ? STATUS_OK
               : error_set(error, STATUS_USAGE,
                           "PostgreSQL %s is reached through a pooler that gives each transaction "
                           "another process of the server; a store needs prepared statements, "
                           "settings, locks and LISTEN that last. Name the server itself, or a "
                           "pool that lasts for a session (pgbouncer: pool_mode = session)",
                           db->who);
}

/* ---- older copies ---- */

uint64_t postgres_log_place(const char *text)
{
    char *end = NULL;
    uint64_t high = strtoull(text, &end, 16);
    return *end == '/' ? high << 32 | strtoull(end + 1, NULL, 16) : 0;
}

/* A writer that was told that its work is kept finds it in the log of whatever answers now: a
 * standby that had not got it, or a copy from before, has a shorter log, or another number. */
static enum status check_mark(struct postgres_db *db, struct error *error)
{
    PGresult *result = PQexec(db->connection, "SELECT pg_current_wal_insert_lsn(), (SELECT"
                                              " system_identifier FROM pg_control_system())");
    enum status status = STATUS_OK;

    if (PQresultStatus(result) != PGRES_TUPLES_OK) {
        status = away(db, PQerrorMessage(db->connection), error);
    } else if (db->mark != 0 && strcmp(PQgetvalue(result, 0, 1), db->server) != 0) {
        status = error_set(&db->older, STATUS_STORE,
                           "PostgreSQL %s is another server than before (system identifier %.20s, "
                           "not %.20s): it is not known what of the work that this process was "
                           "told is kept is in it. Stop all processes of the store, run `swerve "
                           "check`, and start them again (docs/postgresql.md, Fail-over)",
                           db->who, PQgetvalue(result, 0, 1), db->server);
    } else if (postgres_log_place(PQgetvalue(result, 0, 0)) < db->mark) {
        status = error_set(
            &db->older, STATUS_STORE,
            "PostgreSQL %s is an older copy than before: its log ends at %.20s, and this process "
            "was told at %" PRIX32 "/%" PRIX32 " that its work is kept. What was acknowledged in "
            "between is lost. Stop all processes of the store, run `swerve check`, and start them "
            "again (docs/postgresql.md, Fail-over)",
            db->who, PQgetvalue(result, 0, 0), (uint32_t)(db->mark >> 32), (uint32_t)db->mark);
    } else {
        snprintf(db->server, sizeof db->server, "%s", PQgetvalue(result, 0, 1));
    }
    if (status == STATUS_STORE) {
        *error = db->older;
    }
    PQclear(result);
    return status;
}

/* ---- the whole ---- */

/* Whatever the site has chosen, an acknowledged commit is on the disk; a process that hangs inside
 * a transaction does not keep the others waiting, and who waits for its turn waits; who waits for
 * anything else is told, after longer than that, by whom he is held up.
 * Each statement is written for an index, whose order it reads in: neither a table that is still
 * empty when it is planned nor an average of its sizes is a reason to sort. */
static const char settings[] =
    "SET jit = off; SET max_parallel_workers_per_gather = 0;"
    " SET enable_seqscan = off; SET enable_bitmapscan = off; SET standard_conforming_strings = on;"
    " SET idle_in_transaction_session_timeout = 20000; SET statement_timeout = 0;"
    " SET lock_timeout = 25000;"
    " SELECT set_config('synchronous_commit', 'on', false)"
    " WHERE current_setting('synchronous_commit') = 'off'; SELECT pg_backend_pid()";

static enum status set_up(struct postgres_db *db, struct error *error)
{
    int64_t process = take_number(PQexec(db->connection, settings));
    TRY(process < 0 ? away(db, PQerrorMessage(db->connection), error) : STATUS_OK);
    TRY(check_pooler(db, process, error));
    return db->clock != NULL ? check_mark(db, error) : STATUS_OK;
}

enum status postgres_connect(struct postgres_db *db, struct error *error)
{
    int64_t now_ns = clock_now_ns(clock_system());

    if (db->older.status != STATUS_OK) {
        *error = db->older;
        return db->older.status;
    }
    if (db->away_ns != 0 && now_ns - db->away_ns < AWAY_PAUSE_MS * NS_PER_MS) {
        return away(db, "it was asked a moment ago", error);
    }
    db->connection = connection_to(db);
    if (PQstatus(db->connection) != CONNECTION_OK) {
        enum status status = away(db, PQerrorMessage(db->connection), error);
        postgres_disconnect(db);
        db->away_ns = clock_now_ns(clock_system());
        return status;
    }
    db->away_ns = 0;
    db->connections++;
    db->cancel = PQgetCancel(db->connection);
    const char *host = PQhost(db->connection);
    snprintf(db->who, sizeof db->who, "%.60s at %.60s", PQdb(db->connection),
             host != NULL ? host : "");
    enum status status = set_up(db, error);
    if (status != STATUS_OK) {
        postgres_disconnect(db);
    }
    return status;
}

/* Whether a server that did not take the connection is one that soon will: it answered before the
 * connection ended, or says that it is starting or stopping. Who is refused is told at once, but
 * for a connection that somebody ended just then. */
static bool comes_back(const struct postgres_db *db, int tries)
{
    PGPing ping = db->connections > 0 ? PQPING_REJECT : PQping(db->url);
    return ping == PQPING_REJECT || (ping == PQPING_OK && tries < REFUSED_TRIES_MAX);
}

enum status postgres_connect_first(struct postgres_db *db, struct error *error)
{
    const struct timespec pause = {.tv_nsec = 2 * AWAY_PAUSE_MS * NS_PER_MS};
    int64_t until_ns = clock_now_ns(clock_system()) + AWAY_MS_MAX * NS_PER_MS;
    enum status status = postgres_connect(db, error);

    for (int tries = 1;
         status == STATUS_BUSY && clock_now_ns(clock_system()) < until_ns && comes_back(db, tries);
         tries++) {
        nanosleep(&pause, NULL);
        status = postgres_connect(db, error);
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
