/*
 * Transactions of writers and readers. See postgres_internal.h.
 */
#include "base/units.h"
#include "store/postgres/dialect.h"
#include "store/postgres/postgres_db.h"
#include "store/postgres/postgres_internal.h"
#include "store/postgres/postgres_wire.h"

#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

bool postgres_transaction_is(enum statement statement)
{
    return statement <= STATEMENT_READ_BEGIN;
}

/* The lock of this schema's writers, then the database's clock: whoever waited for the lock has the
 * time at which he got it. A site's defaults do not count: what was committed before the lock was
 * given must be seen behind it. The commit itself waits for no disk, see commit_writer. */
#define BEGIN_WRITER(lock)                                                                      \
    "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE; SET LOCAL synchronous_commit = off;"      \
    " SET LOCAL lock_timeout = 5000;"                                                           \
    " SELECT " lock "(1398232662, hashtext(current_schema())); SET LOCAL lock_timeout = 25000;" \
    " SELECT CAST(1000000 * extract(epoch FROM clock_timestamp()) AS BIGINT)"

/* The lock's wait ended in vain. Others of the store may take as long as they like, an upgrade
 * minutes: they are waited for again. */
static bool waits_again(struct postgres_db *db, const PGresult *result)
{
    char who[256];
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    return state != NULL && strcmp(state, POSTGRES_LOCK_TIMEOUT) == 0 &&
           !postgres_locks_stranger(db, who) && PQstatus(db->connection) == CONNECTION_OK;
}

static PGresult *begin_writer(struct postgres_db *db, const char *begin)
{
    PGresult *result = PQexec(db->connection, begin);

    while (waits_again(db, result)) {
        PQclear(result);
        result = PQexec(db->connection, begin);
    }
    db->writes = PQresultStatus(result) == PGRES_TUPLES_OK;
    if (db->writes && db->clock != NULL) {
        int64_t server_ns = strtoll(PQgetvalue(result, 0, 0), NULL, 10) * (NS_PER_MS / 1000);
        atomic_store(&db->clock->offset_ns, server_ns - clock_now_ns(clock_system()));
    }
    return result;
}

/* Commits, which gives the locks back, and then waits for the disk: behind the commit goes a
 * message into the log, whose own transaction is durable when it is answered, and with it all that
 * was committed before it. So others have their turn while the disk works. All answers are read
 * before: a row that was not written is no error of the server's. */
static PGresult *commit_writer(struct postgres_db *db)
{
    PGresult *result = NULL;
    PGresult *synced = NULL;

    if (postgres_settle_all(db, NULL) != STATUS_OK) {
        return NULL;
    }
    postgres_pipeline_commit(db->connection, &result, &synced);
    if (PQresultStatus(synced) == PGRES_TUPLES_OK) {
        db->mark = postgres_log_place(PQgetvalue(synced, 0, 0));
        PQclear(synced);
    } else if (PQresultStatus(result) == PGRES_COMMAND_OK) { /* but it may not be durable */
        PQclear(result);
        result = synced;
    } else {
        PQclear(synced);
    }
    db->writes = false;
    if (db->probe != NULL && PQresultStatus(result) == PGRES_COMMAND_OK) {
        db->probe->committed(db->probe->context);
    }
    return result;
}

void postgres_db_set_probe(struct db *base, const struct postgres_db_probe *probe)
{
    struct postgres_db *db = postgres_of(base);
    /* Those that were prepared from other texts are prepared again, under the same names. */
    PQclear(PQexec(db->connection, "DEALLOCATE ALL"));
    memset(db->prepared, 0, sizeof db->prepared);
    db->kept_count = 0;
    db->probe = probe;
}

char *postgres_text(const struct postgres_db *db, enum statement statement)
{
    if (db->probe == NULL) {
        return dialect_statement(statement);
    }
    char *sql = statement_text(statement);
    const char *other = sql != NULL ? db->probe->text(db->probe->context, statement, sql) : NULL;
    char *text = other == NULL || other == sql ? dialect_statement(statement)
                                               : dialect_statement_as(statement, other);
    free(sql);
    return text;
}

PGresult *postgres_transaction_run(struct postgres_db *db, enum statement statement)
{
    switch ((int)statement) {
    case STATEMENT_BEGIN:
        return begin_writer(db, BEGIN_WRITER("pg_advisory_xact_lock"));
    case STATEMENT_BEGIN_BESIDE:
        return begin_writer(db, BEGIN_WRITER("pg_advisory_xact_lock_shared"));
    case STATEMENT_COMMIT:
        if (db->writes) {
            return commit_writer(db);
        }
        break;
    case STATEMENT_ROLLBACK:
        postgres_settle_all(db, NULL);
        db->undone = false;
        db->writes = false;
        break;
    default:
        break;
    }
    if (postgres_settle_all(db, NULL) != STATUS_OK) {
        return NULL;
    }
    char *text = dialect_statement(statement);
    PGresult *result = text != NULL ? PQexec(db->connection, text) : NULL;
    free(text);
    return result;
}

const char *postgres_transaction_along(const struct postgres_db *db, enum statement statement)
{
    if (!db->writes) {
        return NULL;
    }
    switch ((int)statement) {
    case STATEMENT_SAVEPOINT:
    case STATEMENT_RELEASE:
        return statement_pattern(statement);
    case STATEMENT_BOOKS:
        return "SELECT pg_advisory_xact_lock(1398232663, hashtext(current_schema()))";
    default:
        return NULL;
    }
}
