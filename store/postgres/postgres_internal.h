/*
 * Insides of a connection to PostgreSQL, shared by its files: postgres_db.c (connecting, sending),
 * postgres_transaction.c (what opens and closes transactions), postgres_columns.c (what came back).
 */
#ifndef SWERVE_STORE_POSTGRES_POSTGRES_INTERNAL_H
#define SWERVE_STORE_POSTGRES_POSTGRES_INTERNAL_H

#include "schemas/limits.h"
#include "store/postgres/postgres_clock.h"
#include "store/postgres/postgres_pipeline.h"
#include "store/sql/db.h"

#include <stdatomic.h>

enum {
    PARAMETERS_MAX = 128, /* an outcome has 104 */
    KEPT_SQL_MAX = 16,    /* further texts that are kept prepared, by address */
    QUERIES_MAX = 16,     /* in use at one time */
};

enum { CODE_READY = 0, CODE_ROW, CODE_DONE, CODE_TOO_BIG, CODE_FAILED };

struct pg_cancel; /* libpq's */

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
    struct pg_result *result; /* NULL: not sent yet */
    int row;
    bool writes_row;    /* or nothing is as it should be */
    bool streams;       /* rows come by a cursor, and more may be still to come */
    struct error error; /* of a failure */
    char own_name[16];
};

struct postgres_db {
    struct db base; /* first */
    const char *url;
    struct postgres_clock *clock;          /* NULL: a reader */
    const struct postgres_db_probe *probe; /* NULL outside tests */
    struct pg_conn *connection;
    struct pg_cancel *cancel;
    bool prepared[STATEMENT_COUNT];
    bool writes_row[STATEMENT_COUNT]; /* those that are prepared: see dialect_writes_row */
    const char *kept_sql[KEPT_SQL_MAX];
    bool kept_writes_row[KEPT_SQL_MAX];
    int kept_count;
    int64_t limit_ms;
    atomic_bool interrupted;
    int64_t last_id;
    int64_t changes;
    int pending;                               /* statements whose answers have not been read */
    const char *awaits[POSTGRES_PIPELINE_MAX]; /* of them: see struct postgres_send */
    bool writes;                               /* the transaction was begun by a writer */
    bool undone;           /* one of them failed: nothing but a rollback is of use */
    struct error deferred; /* its error */
    int64_t connections;
    int64_t away_ns; /* of the machine's clock: the last try to connect that failed; 0: none */
    char who[128];   /* database and host, for sentences */
    /* Of a writer: a place of the server's log that was durable, 0 as yet, and whose log it is. */
    uint64_t mark;
    char server[32];
    struct error older; /* OK: whatever answered had the mark in its log */
    char twin[256];     /* the key of the row that was made twice last */
    int twin_tries;
    struct postgres_query queries[QUERIES_MAX];
};

static inline struct postgres_db *postgres_of(struct db *db)
{
    return (struct postgres_db *)db;
}

static inline const struct postgres_db *postgres_of_const(const struct db *db)
{
    return (const struct postgres_db *)db;
}

static inline struct postgres_query *postgres_use_of(const struct query *query)
{
    return query->statement;
}

/* postgres_connect.c: a new connection. BUSY: nobody answers. USAGE: a pooler that does not keep
 * sessions. STORE: what answers now is an older copy; so it stays, whatever answers later. */
enum status postgres_connect(struct postgres_db *db, struct error *error);
/* The first one, which waits for a server that is there and starts or stops. */
enum status postgres_connect_first(struct postgres_db *db, struct error *error);
/* The same where the one that there was is lost. */
enum status postgres_reconnect(struct postgres_db *db, struct error *error);
/* Accepts one that is not connected. */
void postgres_disconnect(struct postgres_db *db);
/* Settings of the connection, and other texts without rows. */
enum status postgres_setup(struct postgres_db *db, const char *sql, struct error *error);

/* "16/B374D848" as a number: a place in the server's log; 0: it is none. */
uint64_t postgres_log_place(const char *text);

/* postgres_locks.c: ends the transaction, which failed, and tells who else than this store's
 * processes holds locks of the store. False: nobody does. */
bool postgres_locks_stranger(struct postgres_db *db, char who[256]);

/* Queues a statement. What cannot even be sent is lost with the connection. */
void postgres_queue(struct postgres_db *db, const struct postgres_send *send);
/* Waits for all pending answers, the last of which the caller gets. NULL: one before it failed, and
 * with it the transaction (db->deferred), or nothing was pending. */
struct pg_result *postgres_settle(struct postgres_db *db);
/* The same where nobody asks for the last one. The error may be NULL. */
enum status postgres_settle_all(struct postgres_db *db, struct error *error);

/* A kept statement's text, malloc'ed; NULL: out of memory. */
char *postgres_text(const struct postgres_db *db, enum statement statement);

/* Statements that open and close transactions are sent as they are. */
bool postgres_transaction_is(enum statement statement);
struct pg_result *postgres_transaction_run(struct postgres_db *db, enum statement statement);
/* Text of one that opens or closes a savepoint, or takes a lock, with nobody waiting for the
 * answer; NULL: it has to be waited for. */
const char *postgres_transaction_along(const struct postgres_db *db, enum statement statement);

/* Columns, as in struct db_driver. */
bool postgres_column_is_null(const struct query *query, int column);
int64_t postgres_column_int(const struct query *query, int column);
double postgres_column_real(const struct query *query, int column);
void postgres_column_text(struct query *query, int column, char *out, size_t capacity);
bool postgres_column_overflow(struct query *query);
const void *postgres_column_blob(const struct query *query, int column, size_t *bytes);

#endif
