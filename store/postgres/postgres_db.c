/*
 * Connections, statements and error sentences on top of libpq. See postgres_db.h.
 *
 * Parameters travel as text (blobs as bytes) with the types that PostgreSQL infers; rows come in
 * binary form and whole. So a query holds its result, and others may run while it is read.
 *
 * Statements whose answer nobody waits for go with the next one that somebody does wait for, or
 * with the commit. Invariant: when one of them fails, everything fails until the rollback.
 */
#include "store/postgres/postgres_db.h"

#include "base/check.h"
#include "store/postgres/dialect.h"
#include "store/postgres/postgres_internal.h"
#include "store/postgres/postgres_wire.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct db_driver postgres_driver;

enum status postgres_db_open(const char *url, struct postgres_clock *clock, struct db **out,
                             struct error *error)
{
    struct postgres_db *db = calloc(1, sizeof *db);
    TRY(memory_check(db, error, "out of memory for a connection to PostgreSQL"));

    db->base.driver = &postgres_driver;
    db->url = url;
    db->clock = clock;
    snprintf(db->who, sizeof db->who, "server");
    enum status status = postgres_connect_first(db, error);
    if (status != STATUS_OK) {
        free(db);
        return status;
    }
    *out = &db->base;
    return STATUS_OK;
}

static void driver_close(struct db *base)
{
    struct postgres_db *db = postgres_of(base);

    for (int i = 0; i < QUERIES_MAX; i++) {
        PQclear(db->queries[i].result);
    }
    postgres_disconnect(db);
    free(db);
}

int64_t postgres_db_connection(const struct db *db)
{
    return postgres_of_const(db)->connections;
}

/* ---- sentences ---- */

/* Two who make one row: the second finds it when he tries again. A key that is there every time is
 * no matter of turns. */
static bool fails_again(struct postgres_db *db, const PGresult *result)
{
    enum { TRIES_MAX = 10 };
    const char *key = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);

    if (key == NULL || strncmp(db->twin, key, sizeof db->twin - 1) != 0) {
        snprintf(db->twin, sizeof db->twin, "%s", key != NULL ? key : "");
        db->twin_tries = 0;
    }
    return ++db->twin_tries > TRIES_MAX;
}

/* A connection that could not be written to counts as whole until its end has been read. */
static bool is_lost(struct postgres_db *db)
{
    enum { READS_MAX = 64 };
    struct pollfd end = {.fd = PQsocket(db->connection), .events = POLLIN};

    for (int i = 0; i < READS_MAX && end.fd >= 0 && poll(&end, 1, 0) > 0; i++) {
        if (PQconsumeInput(db->connection) != 1) {
            return true;
        }
    }
    return db->connection == NULL || PQstatus(db->connection) != CONNECTION_OK;
}

static enum status fail(struct postgres_db *db, const PGresult *result, struct error *error)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    bool lost = state == NULL ? is_lost(db) : PQstatus(db->connection) != CONNECTION_OK;
    enum status status = postgres_wire_status(state != NULL ? state : "", lost);

    text = text != NULL ? text : PQerrorMessage(db->connection);
    if (state != NULL && strcmp(state, POSTGRES_LOCK_TIMEOUT) == 0) {
        char who[256];
        bool stranger = postgres_locks_stranger(db, who);
        return error_set(
            error, status,
            "PostgreSQL %s: waited for a lock in vain: %s, and until that ends nothing "
            "that needs it can be done",
            db->who, stranger ? who : "another process of the store holds it");
    }
    if (state != NULL && strcmp(state, "23505") == 0 && fails_again(db, result)) {
        status = STATUS_STORE;
    }
    if (status == STATUS_TIMEOUT && atomic_load(&db->interrupted)) {
        status = STATUS_BUSY;
    }
    if (status == STATUS_TIMEOUT) {
        return error_set(error, status,
                         "PostgreSQL %s: the answer took longer than %" PRId64
                         " ms and was given up; ask for less (one suite, one job, a smaller page)",
                         db->who, db->limit_ms);
    }
    return error_set(error, status, "PostgreSQL %s: %.*s%s%s", db->who, (int)strcspn(text, "\n"),
                     text, state != NULL ? ", SQLSTATE " : "", state != NULL ? state : "");
}

/* Somebody's trigger that returns NULL, or his rule, took the row of a statement of ours. */
static enum status say_swallowed(const struct postgres_db *db, const char *sql, struct error *error)
{
    const char *table = sql + strlen(strncmp(sql, "UPDATE ", 7) == 0 ? "UPDATE " : "INSERT INTO ");
    return error_set(
        error, STATUS_STORE,
        "PostgreSQL %s: table %.*s did not take a row: a trigger or a rule that is not "
        "Swerve's swallows it. Nothing of the transaction was kept",
        db->who, (int)strcspn(table, " "), table);
}

PGresult *postgres_settle(struct postgres_db *db)
{
    bool undone = false;
    const char *missed = NULL;
    PGresult *last =
        postgres_pipeline_end(db->connection, &db->pending, db->awaits, &undone, &missed);

    if (undone || missed != NULL) {
        db->undone = true;
        if (missed != NULL) {
            say_swallowed(db, missed, &db->deferred);
        } else {
            fail(db, last, &db->deferred);
        }
        PQclear(last);
        return NULL;
    }
    return last;
}

enum status postgres_settle_all(struct postgres_db *db, struct error *error)
{
    if (db->pending > 0) {
        PGresult *last = postgres_settle(db);
        ExecStatusType code = PQresultStatus(last);
        if (!db->undone && code != PGRES_COMMAND_OK && code != PGRES_TUPLES_OK) {
            db->undone = true;
            fail(db, last, &db->deferred);
        }
        PQclear(last);
    }
    if (db->undone && error != NULL) {
        *error = db->deferred;
    }
    return db->undone ? db->deferred.status : STATUS_OK;
}

void postgres_queue(struct postgres_db *db, const struct postgres_send *send)
{
    if (db->pending >= POSTGRES_PIPELINE_MAX) {
        postgres_settle_all(db, NULL);
    }
    if (db->undone) {
        return;
    }
    db->awaits[db->pending] = send->awaits;
    if (!postgres_pipeline_send(db->connection, &db->pending, send)) {
        db->undone = true;
        fail(db, NULL, &db->deferred);
    }
}

enum status postgres_db_script(struct db *base, const char *sql, struct error *error)
{
    struct postgres_db *db = postgres_of(base);
    TRY(postgres_reconnect(db, error));
    TRY(postgres_settle_all(db, error));
    PGresult *result = PQexec(db->connection, sql);
    ExecStatusType code = PQresultStatus(result);
    enum status status = STATUS_OK;

    if (code != PGRES_COMMAND_OK && code != PGRES_TUPLES_OK && code != PGRES_EMPTY_QUERY) {
        status = fail(db, result, error);
    }
    PQclear(result);
    return status;
}

/* ---- limits ---- */

static void driver_limit(struct db *base, int64_t limit_ms)
{
    struct postgres_db *db = postgres_of(base);
    char text[64];
    struct error ignored;

    atomic_store(&db->interrupted, false);
    if (db->limit_ms != limit_ms) {
        snprintf(text, sizeof text, "SET statement_timeout = %" PRId64, limit_ms);
        db->limit_ms = limit_ms;
        /* In vain where the connection is lost, which the next statement says. It is not made anew
         * here: another thread may be about to interrupt it. */
        postgres_setup(db, text, &ignored);
    }
}

static void driver_interrupt(struct db *base)
{
    struct postgres_db *db = postgres_of(base);
    char why[256];

    atomic_store(&db->interrupted, true);
    PQcancel(db->cancel, why, sizeof why);
}

static bool driver_in_transaction(const struct db *base)
{
    const struct postgres_db *db = postgres_of_const(base);
    PGTransactionStatusType status = PQtransactionStatus(db->connection);
    return db->pending > 0 || status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
}

/* A connection that is lost is made anew: nothing is for good here. */
static bool driver_failed(const struct db *base)
{
    (void)base;
    return false;
}

static int64_t driver_last_id(const struct db *base)
{
    return postgres_of_const(base)->last_id;
}

static int64_t driver_changes(const struct db *base)
{
    return postgres_of_const(base)->changes;
}

static int driver_wal_pages(const struct db *base)
{
    (void)base;
    return 0;
}

static enum status driver_checkpoint(struct db *base, struct error *error)
{
    (void)base;
    (void)error;
    return STATUS_OK;
}

/* Everything that the read can see was committed before the message, whose own commit waits for
 * the disk. Where the log is there already nothing is written. */
static enum status driver_durable(struct db *base, struct error *error)
{
    return postgres_setup(
        postgres_of(base),
        "SELECT pg_logical_emit_message(true, 'swerve', '')"
        " WHERE pg_current_wal_insert_lsn() > pg_current_wal_flush_lsn(); COMMIT AND CHAIN",
        error);
}

/* ---- queries ---- */

static struct query query_of(struct postgres_db *db, enum statement statement, const char *sql)
{
    struct postgres_query *use = NULL;

    for (int i = 0; i < QUERIES_MAX && use == NULL; i++) {
        use = db->queries[i].used ? NULL : &db->queries[i];
    }
    CHECK(use != NULL);
    use->used = true;
    use->sql = sql;
    use->statement = statement;
    use->parameters = 0;
    use->result = NULL;
    use->row = -1;
    use->streams = use->writes_row = false;
    return (struct query){.db = &db->base, .statement = use, .next = 1, .code = CODE_READY};
}

static struct query driver_begin(struct db *base, enum statement statement)
{
    return query_of(postgres_of(base), statement, NULL);
}

static struct query driver_begin_sql(struct db *base, const char *sql)
{
    return query_of(postgres_of(base), STATEMENT_COUNT, sql);
}

/* Room for the text of the next parameter, where it is a number. */
static char *number_place(struct postgres_query *use)
{
    CHECK(use->parameters < PARAMETERS_MAX);
    return use->numbers[use->parameters];
}

static void bind(struct query *query, const char *value, size_t bytes, int format)
{
    struct postgres_query *use = postgres_use_of(query);

    CHECK(use->parameters < PARAMETERS_MAX);
    use->values[use->parameters] = value;
    use->lengths[use->parameters] = (int)bytes;
    use->formats[use->parameters] = format;
    use->parameters++;
    query->next++;
}

static void driver_bind_int(struct query *query, int64_t value)
{
    struct postgres_query *use = postgres_use_of(query);
    char *number = number_place(use);

    snprintf(number, sizeof use->numbers[0], "%" PRId64, value);
    bind(query, number, 0, 0);
}

static void driver_bind_null(struct query *query)
{
    bind(query, NULL, 0, 0);
}

static void driver_bind_real(struct query *query, double value)
{
    struct postgres_query *use = postgres_use_of(query);

    if (isnan(value)) {
        driver_bind_null(query);
        return;
    }
    char *number = number_place(use);
    snprintf(number, sizeof use->numbers[0], "%.17g", value == 0.0 ? 0.0 : value);
    bind(query, number, 0, 0);
}

static void driver_bind_text(struct query *query, const char *text)
{
    bind(query, text, 0, 0);
}

static void driver_bind_blob(struct query *query, const void *data, size_t bytes)
{
    bind(query, data != NULL ? data : "", bytes, 1);
}

/* Prepares what is not yet; NULL: done. */
static PGresult *prepare(struct postgres_db *db, struct postgres_query *use)
{
    char *text = NULL;

    if (use->sql == NULL) {
        snprintf(use->own_name, sizeof use->own_name, "s%d", (int)use->statement);
        use->writes_row = db->writes_row[use->statement];
        if (db->prepared[use->statement]) {
            return NULL;
        }
        text = postgres_text(db, use->statement);
    } else if (db->clock == NULL) { /* a reader's: any text, once */
        use->own_name[0] = '\0';
        text = dialect_query(use->sql);
    } else {
        int index = 0;
        while (index < db->kept_count && db->kept_sql[index] != use->sql) {
            index++;
        }
        if (index < db->kept_count) {
            snprintf(use->own_name, sizeof use->own_name, "k%d", index);
            use->writes_row = db->kept_writes_row[index];
            return NULL;
        }
        CHECK(db->kept_count < KEPT_SQL_MAX);
        snprintf(use->own_name, sizeof use->own_name, "k%d", index);
        text = dialect_query(use->sql);
    }
    if (postgres_settle_all(db, NULL) != STATUS_OK) {
        free(text);
        return NULL;
    }
    PGresult *result = PQprepare(db->connection, use->own_name, text != NULL ? text : "", 0, NULL);
    use->writes_row = text != NULL && dialect_writes_row(text);
    free(text);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        return result;
    }
    PQclear(result);
    if (use->sql == NULL) {
        db->prepared[use->statement] = true;
        db->writes_row[use->statement] = use->writes_row;
    } else if (use->own_name[0] != '\0') {
        db->kept_writes_row[db->kept_count] = use->writes_row;
        db->kept_sql[db->kept_count++] = use->sql;
    }
    return NULL;
}

/* A commit that says otherwise has undone everything. */
static bool answered_well(const struct postgres_query *use, const PGresult *result)
{
    ExecStatusType code = PQresultStatus(result);
    bool commits = use->sql == NULL && use->statement == STATEMENT_COMMIT;

    return (code == PGRES_COMMAND_OK || code == PGRES_TUPLES_OK) &&
           (!commits || strcmp(PQcmdStatus((PGresult *)result), "COMMIT") == 0);
}

static void note_result(struct postgres_db *db, const struct postgres_query *use)
{
    PGresult *result = use->result;
    const char *changed = PQcmdTuples(result);

    db->changes = strtoll(changed, NULL, 10);
    if (strncmp(PQcmdStatus(result), "INSERT", 6) == 0 && PQntuples(result) > 0) {
        int last = PQntuples(result) - 1;
        uint64_t id = 0;
        for (int i = 0; i < 8; i++) {
            id = id << 8 | (uint8_t)PQgetvalue(result, last, 0)[i];
        }
        db->last_id = (int64_t)id;
    }
}

static bool is_begin(const struct postgres_query *use)
{
    return use->sql == NULL &&
           (use->statement == STATEMENT_BEGIN || use->statement == STATEMENT_BEGIN_BESIDE);
}

/* In SQLite's words. */
static const char *words_of(const struct postgres_query *use)
{
    return use->sql != NULL ? use->sql : statement_pattern(use->statement);
}

static struct postgres_send send_of(const struct postgres_query *use)
{
    return (struct postgres_send){.name = use->own_name,
                                  .awaits = use->writes_row ? words_of(use) : NULL,
                                  .parameters = use->parameters,
                                  .values = use->values,
                                  .lengths = use->lengths,
                                  .formats = use->formats};
}

/* Statements that give a row or more of each outcome, attempt or scenario that there is. */
static bool is_long(const struct postgres_query *use)
{
    switch ((int)use->statement) {
    case STATEMENT_CHECK_ARTIFACTS:
    case STATEMENT_CHECK_ATTEMPTS:
    case STATEMENT_CHECK_OUTCOMES:
    case STATEMENT_CHECK_PARTIALS:
    case STATEMENT_CHECK_RETAINED:
    case STATEMENT_CHECK_SCENARIOS:
        return use->sql == NULL;
    default:
        return false;
    }
}

/* Their rows come by a cursor, as many at a time as memory may hold, so that other statements may
 * run in between. */
static PGresult *fetch(struct postgres_db *db, const struct postgres_query *use)
{
    char sql[48];
    snprintf(sql, sizeof sql, "FETCH 256 FROM c%d", (int)(use - db->queries));
    return PQexecParams(db->connection, sql, 0, NULL, NULL, NULL, NULL, 1);
}

static PGresult *begin_long(struct postgres_db *db, struct postgres_query *use)
{
    char *text = postgres_text(db, use->statement);
    size_t bytes = text != NULL ? strlen(text) + 64 : 0;
    char *sql = text != NULL ? malloc(bytes) : NULL;
    PGresult *result = NULL;

    if (sql != NULL) {
        snprintf(sql, bytes, "DECLARE c%d NO SCROLL CURSOR FOR %s", (int)(use - db->queries), text);
        result = PQexec(db->connection, sql);
    }
    free(text);
    free(sql);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        return result;
    }
    PQclear(result);
    use->streams = true;
    return fetch(db, use);
}

static void end_long(struct postgres_db *db, const struct postgres_query *use)
{
    char sql[48];
    snprintf(sql, sizeof sql, "CLOSE c%d", (int)(use - db->queries));
    PQclear(PQexec(db->connection, sql)); /* in vain in a transaction that failed */
}

/* Sends a prepared statement with all that is pending, and waits for its answer. */
static PGresult *run_prepared(struct postgres_db *db, struct postgres_query *use)
{
    if (is_long(use) && postgres_settle_all(db, NULL) == STATUS_OK) {
        return begin_long(db, use);
    }
    PGresult *result = prepare(db, use);
    if (result != NULL || db->undone) {
        return result;
    }
    if (db->pending == 0) {
        return PQexecPrepared(db->connection, use->own_name, use->parameters, use->values,
                              use->lengths, use->formats, 1);
    }
    const struct postgres_send send = send_of(use);
    postgres_queue(db, &send);
    return postgres_settle(db);
}

static void fail_query(struct query *query, PGresult *result)
{
    struct postgres_db *db = postgres_of(query->db);
    struct postgres_query *use = postgres_use_of(query);

    query->code = CODE_FAILED;
    if (db->undone) {
        use->error = db->deferred;
    } else {
        fail(db, result, &use->error);
    }
}

static void send_query(struct query *query)
{
    struct postgres_db *db = postgres_of(query->db);
    struct postgres_query *use = postgres_use_of(query);
    bool plain = use->sql == NULL && postgres_transaction_is(use->statement);

    if (is_begin(use)) {
        if (postgres_reconnect(db, &use->error) != STATUS_OK) {
            query->code = CODE_FAILED;
            return;
        }
        db->undone &= driver_in_transaction(&db->base);
    }
    if (db->undone && !(plain && use->statement == STATEMENT_ROLLBACK)) {
        fail_query(query, NULL);
        return;
    }
    const char *along = plain ? postgres_transaction_along(db, use->statement) : NULL;
    if (along != NULL) {
        const struct postgres_send send = {.text = along};
        postgres_queue(db, &send);
        query->code = db->undone ? CODE_FAILED : CODE_DONE;
        use->error = db->deferred;
        return;
    }
    use->result = plain ? postgres_transaction_run(db, use->statement) : run_prepared(db, use);
    if (db->undone || !answered_well(use, use->result)) {
        fail_query(query, use->result);
        return;
    }
    if (use->writes_row && !postgres_pipeline_wrote(use->result)) {
        query->code = CODE_FAILED;
        say_swallowed(db, words_of(use), &use->error);
        return;
    }
    if (!plain) {
        note_result(db, use);
    }
}

static bool driver_row(struct query *query)
{
    struct postgres_db *db = postgres_of(query->db);
    struct postgres_query *use = postgres_use_of(query);
    bool plain = use->sql == NULL && postgres_transaction_is(use->statement);

    if (query->code != CODE_READY && query->code != CODE_ROW) {
        return false;
    }
    if (use->result == NULL) {
        send_query(query);
    }
    if (query->code == CODE_FAILED || query->code == CODE_DONE) {
        return false;
    }
    use->row++;
    if (use->streams && use->row > 0 && use->row == PQntuples(use->result)) {
        PQclear(use->result);
        use->result = fetch(db, use);
        use->row = 0;
        if (!answered_well(use, use->result)) {
            fail_query(query, use->result);
            return false;
        }
    }
    query->code = !plain && use->row < PQntuples(use->result) ? CODE_ROW : CODE_DONE;
    return query->code == CODE_ROW;
}

/* With the next statement that somebody waits for. */
static void driver_send(struct query *query)
{
    struct postgres_db *db = postgres_of(query->db);
    struct postgres_query *use = postgres_use_of(query);

    if (!db->writes) {
        driver_row(query);
        return;
    }
    use->result = db->undone ? NULL : prepare(db, use);
    if (use->result == NULL && !db->undone) {
        const struct postgres_send send = send_of(use);
        postgres_queue(db, &send);
    }
    if (db->undone || use->result != NULL) {
        fail_query(query, use->result);
    } else {
        query->code = CODE_DONE;
    }
}

static enum status driver_end(struct query *query, struct error *error)
{
    struct postgres_db *db = postgres_of(query->db);
    struct postgres_query *use = postgres_use_of(query);
    enum status status = STATUS_OK;

    if (query->code == CODE_FAILED) {
        status = use->error.status;
        if (error != NULL) {
            *error = use->error;
        }
    } else if (query->code == CODE_TOO_BIG) {
        status = error_set(error, STATUS_LIMIT, "PostgreSQL %s: a value is too large", db->who);
    }
    if (use->streams) {
        end_long(db, use);
    }
    PQclear(use->result);
    use->result = NULL;
    use->used = false;
    query->statement = NULL;
    return status;
}

static const struct db_driver postgres_driver = {
    .name = "postgresql",
    .shares = true,
    .send = driver_send,
    .close = driver_close,
    .limit = driver_limit,
    .interrupt = driver_interrupt,
    .in_transaction = driver_in_transaction,
    .failed = driver_failed,
    .last_id = driver_last_id,
    .changes = driver_changes,
    .wal_pages = driver_wal_pages,
    .checkpoint = driver_checkpoint,
    .durable = driver_durable,
    .begin = driver_begin,
    .begin_sql = driver_begin_sql,
    .bind_int = driver_bind_int,
    .bind_real = driver_bind_real,
    .bind_text = driver_bind_text,
    .bind_blob = driver_bind_blob,
    .bind_null = driver_bind_null,
    .row = driver_row,
    .column_is_null = postgres_column_is_null,
    .column_int = postgres_column_int,
    .column_real = postgres_column_real,
    .column_text = postgres_column_text,
    .column_overflow = postgres_column_overflow,
    .column_blob = postgres_column_blob,
    .end = driver_end,
};
