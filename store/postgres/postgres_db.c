/*
 * Connections, statements and error sentences on top of libpq. See postgres_db.h.
 *
 * Parameters travel as text (blobs as bytes) with the types that PostgreSQL infers; rows come in
 * binary form and whole. So a query holds its result, and others may run while it is read.
 */
#include "store/postgres/postgres_db.h"

#include "base/check.h"
#include "base/units.h"
#include "schemas/limits.h"
#include "store/postgres/dialect.h"
#include "store/postgres/postgres_wire.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PARAMETERS_MAX = 64,
    KEPT_SQL_MAX = 16,  /* further texts that are kept prepared, by address */
    QUERIES_MAX = 16,   /* in use at one time */
    AWAY_PAUSE_MS = 50, /* between two tries to connect */
};

enum { CODE_READY = 0, CODE_ROW, CODE_DONE, CODE_TOO_BIG, CODE_FAILED };

/* One use of a statement. */
struct postgres_query {
    bool used;
    const char *sql; /* SQLite's words; NULL: `statement` */
    enum statement statement;
    int parameters;
    const char *values[PARAMETERS_MAX];
    int lengths[PARAMETERS_MAX];
    int formats[PARAMETERS_MAX];
    char numbers[PARAMETERS_MAX][32];
    PGresult *result; /* NULL: not sent yet */
    int row;
    struct error error; /* of a failure */
    char own_name[16];
};

struct postgres_db {
    struct db base; /* first */
    const char *url;
    struct postgres_clock *clock; /* NULL: a reader */
    PGconn *connection;
    PGcancel *cancel;
    bool prepared[STATEMENT_COUNT];
    const char *kept_sql[KEPT_SQL_MAX];
    int kept_count;
    int64_t limit_ms;
    atomic_bool interrupted;
    int64_t last_id;
    int64_t changes;
    int64_t connections;
    int64_t away_ns; /* of the machine's clock: the last try to connect that failed; 0: none */
    char who[128];   /* database and host, for sentences */
    struct postgres_query queries[QUERIES_MAX];
};

static const struct db_driver postgres_driver;

static struct postgres_db *postgres_of(struct db *db)
{
    return (struct postgres_db *)db;
}

static const struct postgres_db *postgres_of_const(const struct db *db)
{
    return (const struct postgres_db *)db;
}

static struct postgres_query *use_of(const struct query *query)
{
    return query->statement;
}

/* ---- URLs ---- */

enum status postgres_url_split(const char *given, char *url, size_t url_bytes, char *artifacts,
                               size_t artifacts_bytes, struct error *error)
{
    char *why = NULL;

    if (strlen(given) >= url_bytes) {
        return error_set(error, STATUS_LIMIT, "store: a postgresql:// URL has at most %zu bytes",
                         url_bytes - 1);
    }
    snprintf(url, url_bytes, "%s", given);
    postgres_wire_cut(url, "artifacts", artifacts, artifacts_bytes);
    PQconninfoOption *options = PQconninfoParse(url, &why);
    if (options == NULL) {
        /* Without the sentence of libpq, which may quote a password. */
        PQfreemem(why);
        return error_set(error, STATUS_USAGE,
                         "store: expected postgresql://[USER@]HOST[:PORT]/DATABASE[?NAME=VALUE..], "
                         "found a URL that libpq cannot read");
    }
    bool password = false;
    for (const PQconninfoOption *option = options; option->keyword != NULL; option++) {
        password |= option->val != NULL && (strcmp(option->keyword, "password") == 0 ||
                                            strcmp(option->keyword, "sslpassword") == 0);
    }
    PQconninfoFree(options);
    return password ? error_set(error, STATUS_USAGE,
                                "store: a password on the command line is seen by every user of "
                                "this machine; put it into ~/.pgpass or a service file "
                                "(?service=NAME), and leave it out of the URL")
                    : STATUS_OK;
}

/* ---- connecting ---- */

static enum status away(const struct postgres_db *db, const char *why, struct error *error)
{
    return error_set(error, STATUS_BUSY, "PostgreSQL %s does not answer: %.*s", db->who,
                     (int)strcspn(why, "\n"), why);
}

static void disconnect(struct postgres_db *db)
{
    PQfreeCancel(db->cancel);
    PQfinish(db->connection);
    db->cancel = NULL;
    db->connection = NULL;
    memset(db->prepared, 0, sizeof db->prepared);
    db->kept_count = 0;
}

static enum status run_setup(struct postgres_db *db, const char *sql, struct error *error)
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

static enum status connect_now(struct postgres_db *db, struct error *error)
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
        disconnect(db);
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
     * inside a transaction does not keep the others waiting, and who waits for its turn waits. */
    enum status status = run_setup(db,
                                   "SET jit = off; SET standard_conforming_strings = on; SET "
                                   "idle_in_transaction_session_timeout"
                                   " = 20000; SET statement_timeout = 0; SET lock_timeout = 0;"
                                   " SELECT set_config('synchronous_commit', 'on', false)"
                                   " WHERE current_setting('synchronous_commit') = 'off'",
                                   error);
    if (status != STATUS_OK) {
        disconnect(db);
    }
    return status;
}

static enum status reconnect(struct postgres_db *db, struct error *error)
{
    if (db->connection != NULL && PQstatus(db->connection) == CONNECTION_OK) {
        return STATUS_OK;
    }
    disconnect(db);
    return connect_now(db, error);
}

enum status postgres_db_open(const char *url, struct postgres_clock *clock, struct db **out,
                             struct error *error)
{
    struct postgres_db *db = calloc(1, sizeof *db);
    TRY(memory_check(db, error, "out of memory for a connection to PostgreSQL"));

    db->base.driver = &postgres_driver;
    db->url = url;
    db->clock = clock;
    snprintf(db->who, sizeof db->who, "server");
    enum status status = connect_now(db, error);
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
    disconnect(db);
    free(db);
}

int64_t postgres_db_connection(const struct db *db)
{
    return postgres_of_const(db)->connections;
}

/* ---- sentences ---- */

static enum status fail(struct postgres_db *db, const PGresult *result, struct error *error)
{
    const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    bool lost = db->connection == NULL || PQstatus(db->connection) != CONNECTION_OK;
    enum status status = postgres_wire_status(state != NULL ? state : "", lost);

    text = text != NULL ? text : PQerrorMessage(db->connection);
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

enum status postgres_db_script(struct db *base, const char *sql, struct error *error)
{
    struct postgres_db *db = postgres_of(base);
    TRY(reconnect(db, error));
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
        run_setup(db, text, &ignored);
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
    return status == PQTRANS_INTRANS || status == PQTRANS_INERROR;
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

static void bind(struct query *query, const char *value, size_t bytes, int format)
{
    struct postgres_query *use = use_of(query);

    CHECK(use->parameters < PARAMETERS_MAX);
    use->values[use->parameters] = value;
    use->lengths[use->parameters] = (int)bytes;
    use->formats[use->parameters] = format;
    use->parameters++;
    query->next++;
}

static void driver_bind_int(struct query *query, int64_t value)
{
    struct postgres_query *use = use_of(query);
    char *number = use->numbers[use->parameters];

    snprintf(number, sizeof use->numbers[0], "%" PRId64, value);
    bind(query, number, 0, 0);
}

static void driver_bind_null(struct query *query)
{
    bind(query, NULL, 0, 0);
}

static void driver_bind_real(struct query *query, double value)
{
    struct postgres_query *use = use_of(query);
    char *number = use->numbers[use->parameters];

    if (isnan(value)) {
        driver_bind_null(query);
        return;
    }
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

/* Statements that open and close transactions are sent as they are. */
static bool is_plain(enum statement statement)
{
    return statement <= STATEMENT_READ_BEGIN;
}

static PGresult *run_plain(struct postgres_db *db, enum statement statement)
{
    /* The lock of this schema's writers, then the database's clock: whoever waited for the lock has
     * the time at which he got it. A site's defaults do not count: what was committed before the
     * lock was given must be seen behind it. */
    static const char begin[] =
        "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;"
        " SELECT pg_advisory_xact_lock(1398232662, hashtext(current_schema()));"
        " SELECT CAST(1000000 * extract(epoch FROM clock_timestamp()) AS BIGINT)";

    if (statement != STATEMENT_BEGIN) {
        char *text = dialect_statement(statement);
        PGresult *result = text != NULL ? PQexec(db->connection, text) : NULL;
        free(text);
        return result;
    }
    PGresult *result = PQexec(db->connection, begin);
    if (PQresultStatus(result) == PGRES_TUPLES_OK && db->clock != NULL) {
        int64_t server_ns = strtoll(PQgetvalue(result, 0, 0), NULL, 10) * (NS_PER_MS / 1000);
        atomic_store(&db->clock->offset_ns, server_ns - clock_now_ns(clock_system()));
    }
    return result;
}

/* Prepares what is not yet; NULL: done. */
static PGresult *prepare(struct postgres_db *db, struct postgres_query *use)
{
    char *text = NULL;

    if (use->sql == NULL) {
        snprintf(use->own_name, sizeof use->own_name, "s%d", (int)use->statement);
        if (db->prepared[use->statement]) {
            return NULL;
        }
        text = dialect_statement(use->statement);
    } else {
        int index = 0;
        while (index < db->kept_count && db->kept_sql[index] != use->sql) {
            index++;
        }
        if (index < db->kept_count) {
            snprintf(use->own_name, sizeof use->own_name, "k%d", index);
            return NULL;
        }
        CHECK(db->kept_count < KEPT_SQL_MAX);
        snprintf(use->own_name, sizeof use->own_name, "k%d", index);
        text = dialect_query(use->sql);
    }
    PGresult *result = PQprepare(db->connection, use->own_name, text != NULL ? text : "", 0, NULL);
    free(text);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) {
        return result;
    }
    PQclear(result);
    if (use->sql == NULL) {
        db->prepared[use->statement] = true;
    } else {
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

static void send_query(struct query *query)
{
    struct postgres_db *db = postgres_of(query->db);
    struct postgres_query *use = use_of(query);
    bool plain = use->sql == NULL && is_plain(use->statement);
    bool begins = plain && (use->statement == STATEMENT_BEGIN);

    if (begins && reconnect(db, &use->error) != STATUS_OK) {
        query->code = CODE_FAILED;
        return;
    }
    if (plain) {
        use->result = run_plain(db, use->statement);
    } else {
        use->result = prepare(db, use);
        if (use->result == NULL) {
            use->result = PQexecPrepared(db->connection, use->own_name, use->parameters,
                                         use->values, use->lengths, use->formats, 1);
        }
    }
    if (!answered_well(use, use->result)) {
        query->code = CODE_FAILED;
        fail(db, use->result, &use->error);
        return;
    }
    if (!plain) {
        note_result(db, use);
    }
}

static bool driver_row(struct query *query)
{
    struct postgres_query *use = use_of(query);
    bool plain = use->sql == NULL && is_plain(use->statement);

    if (query->code != CODE_READY && query->code != CODE_ROW) {
        return false;
    }
    if (use->result == NULL) {
        send_query(query);
    }
    if (query->code == CODE_FAILED) {
        return false;
    }
    use->row++;
    query->code = !plain && use->row < PQntuples(use->result) ? CODE_ROW : CODE_DONE;
    return query->code == CODE_ROW;
}

/* ---- columns ---- */

static bool driver_column_is_null(const struct query *query, int column)
{
    const struct postgres_query *use = use_of(query);
    return PQgetisnull(use->result, use->row, column) != 0;
}

static int64_t driver_column_int(const struct query *query, int column)
{
    const struct postgres_query *use = use_of(query);
    const char *data = PQgetvalue(use->result, use->row, column);

    if (driver_column_is_null(query, column)) {
        return 0;
    }
    switch (PQftype(use->result, column)) {
    case TYPE_BOOL:
        return data[0] != 0;
    case TYPE_INT2:
        return (int16_t)postgres_wire_uint(data, 2);
    case TYPE_INT4:
        return (int32_t)postgres_wire_uint(data, 4);
    case TYPE_INT8:
        return (int64_t)postgres_wire_uint(data, 8);
    case TYPE_FLOAT4:
    case TYPE_FLOAT8:
        return (int64_t)postgres_wire_double(data, PQgetlength(use->result, use->row, column));
    case TYPE_NUMERIC:
        return postgres_wire_numeric(data);
    default: /* as SQLite reads a text */
        return strtoll(data, NULL, 10);
    }
}

static double driver_column_real(const struct query *query, int column)
{
    const struct postgres_query *use = use_of(query);
    Oid type = PQftype(use->result, column);

    if (driver_column_is_null(query, column)) {
        return (double)NAN;
    }
    return type == TYPE_FLOAT8 || type == TYPE_FLOAT4
               ? postgres_wire_double(PQgetvalue(use->result, use->row, column),
                                      PQgetlength(use->result, use->row, column))
               : (double)driver_column_int(query, column);
}

static void driver_column_text(struct query *query, int column, char *out, size_t capacity)
{
    const struct postgres_query *use = use_of(query);
    size_t bytes = (size_t)PQgetlength(use->result, use->row, column);

    if (bytes >= capacity) {
        query->code = CODE_TOO_BIG;
        bytes = 0;
    }
    memcpy(out, PQgetvalue(use->result, use->row, column), bytes);
    out[bytes] = '\0';
}

static bool driver_column_overflow(struct query *query)
{
    bool overflow = query->code == CODE_TOO_BIG;
    query->code = overflow ? CODE_ROW : query->code;
    return overflow;
}

static const void *driver_column_blob(const struct query *query, int column, size_t *bytes)
{
    const struct postgres_query *use = use_of(query);
    *bytes = (size_t)PQgetlength(use->result, use->row, column);
    return driver_column_is_null(query, column) ? NULL : PQgetvalue(use->result, use->row, column);
}

static enum status driver_end(struct query *query, struct error *error)
{
    struct postgres_db *db = postgres_of(query->db);
    struct postgres_query *use = use_of(query);
    enum status status = STATUS_OK;

    if (query->code == CODE_FAILED) {
        status = use->error.status;
        if (error != NULL) {
            *error = use->error;
        }
    } else if (query->code == CODE_TOO_BIG) {
        status = error_set(error, STATUS_LIMIT, "PostgreSQL %s: a value is too large", db->who);
    }
    PQclear(use->result);
    use->result = NULL;
    use->used = false;
    query->statement = NULL;
    return status;
}

static const struct db_driver postgres_driver = {
    .name = "postgresql",
    .close = driver_close,
    .limit = driver_limit,
    .interrupt = driver_interrupt,
    .in_transaction = driver_in_transaction,
    .failed = driver_failed,
    .last_id = driver_last_id,
    .changes = driver_changes,
    .wal_pages = driver_wal_pages,
    .checkpoint = driver_checkpoint,
    .begin = driver_begin,
    .begin_sql = driver_begin_sql,
    .bind_int = driver_bind_int,
    .bind_real = driver_bind_real,
    .bind_text = driver_bind_text,
    .bind_blob = driver_bind_blob,
    .bind_null = driver_bind_null,
    .row = driver_row,
    .column_is_null = driver_column_is_null,
    .column_int = driver_column_int,
    .column_real = driver_column_real,
    .column_text = driver_column_text,
    .column_overflow = driver_column_overflow,
    .column_blob = driver_column_blob,
    .end = driver_end,
};
