/*
 * Database connections and statements as the store's logic sees them: a table of functions that
 * SQLite (sqlite_db.h) and PostgreSQL (store/postgres/) fill.
 *
 * A connection is used by one thread at a time (its owner sees to that). Statements are named in
 * store/statements/statements.h, prepared on first use and kept. A query is a cursor with a sticky
 * error code: bind, step and read columns without looking, then let query_end say how it went.
 *
 *   struct query query = query_begin(db, STATEMENT_JOB_GET);
 *   query_int(&query, job_id);
 *   if (query_row(&query)) { state = query_column_int(&query, 0); }
 *   return query_end(&query, error);
 */
#ifndef SWERVE_STORE_SQLITE_DB_H
#define SWERVE_STORE_SQLITE_DB_H

#include "base/status.h"
#include "store/statements/statements.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct db_driver;

/* The most that all attempts in the database together have been charged, as far as the ledger knows
 * (store/sql/ledger.c). Writer's connection. */
struct db_booked {
    int64_t device_ns;
    int64_t metres_mm;
    int64_t mflop;
    uint32_t charges; /* since that was read; 0: it was not yet */
};

/* First member of every driver's own struct. */
struct db {
    const struct db_driver *driver;
    struct db_booked booked;
};

struct query {
    struct db *db;
    void *statement; /* the driver's; NULL: could not be prepared, the code says why */
    int next;        /* number of the next parameter, from 1 */
    int column;      /* of the row, that is taken next */
    int code;        /* the driver's result code, sticky */
    bool kept;       /* belongs to the connection */
};

struct db_driver {
    const char *name;
    bool shares; /* writers of several processes may be at work at one time */
    void (*close)(struct db *db);
    void (*limit)(struct db *db, int64_t limit_ms);
    void (*interrupt)(struct db *db);
    bool (*in_transaction)(const struct db *db);
    bool (*failed)(const struct db *db);
    int64_t (*last_id)(const struct db *db);
    int64_t (*changes)(const struct db *db);
    int (*wal_pages)(const struct db *db);
    enum status (*checkpoint)(struct db *db, struct error *error);
    enum status (*durable)(struct db *db, struct error *error); /* NULL: whatever is read is */
    struct query (*begin)(struct db *db, enum statement statement);
    struct query (*begin_sql)(struct db *db, const char *sql);
    void (*bind_int)(struct query *query, int64_t value);
    void (*bind_real)(struct query *query, double value);
    void (*bind_text)(struct query *query, const char *text);
    void (*bind_blob)(struct query *query, const void *data, size_t bytes);
    void (*bind_null)(struct query *query);
    bool (*row)(struct query *query);
    void (*send)(struct query *query); /* NULL: as row, to the end */
    bool (*column_is_null)(const struct query *query, int column);
    int64_t (*column_int)(const struct query *query, int column);
    double (*column_real)(const struct query *query, int column);
    void (*column_text)(struct query *query, int column, char *out, size_t capacity);
    bool (*column_overflow)(struct query *query);
    const void *(*column_blob)(const struct query *query, int column, size_t *bytes);
    enum status (*end)(struct query *query, struct error *error);
};

/* Accepts NULL. */
void db_close(struct db *db);

/* Queries from here on end with TIMEOUT once they have taken until `limit_ms` from now; 0: they may
 * take as long as they like. */
void db_limit(struct db *db, int64_t limit_ms);
/* Any thread, while the connection is open: the query that it runs now ends with BUSY, as do others
 * before the next db_limit. */
void db_interrupt(struct db *db);

bool db_in_transaction(const struct db *db);
/* Writers of several processes may be at work at one time: a transaction that was begun by
 * STATEMENT_BEGIN is alone, those that were begun by STATEMENT_BEGIN_BESIDE are beside one another.
 * Rows that such a writer has read for changing (the driver's texts say which) are its own until it
 * commits, those that others have so far are left out where a claim looks for jobs. */
bool db_shares(const struct db *db);
/* The database failed in a way after which nothing can be promised any more. */
bool db_failed(const struct db *db);
int64_t db_last_id(const struct db *db); /* of the row that was inserted last */
int64_t db_changes(const struct db *db); /* rows that the last statement changed */

/* Pages in the write-ahead log at the last commit; 0 where the log is the server's affair. */
int db_wal_pages(const struct db *db);
/* Copies the log into the database as far as readers let it. */
enum status db_checkpoint(struct db *db, struct error *error);

/* Within a read: what it has read so far is on the disk when this returns. */
enum status db_durable(struct db *db, struct error *error);

struct query query_begin(struct db *db, enum statement statement);
/* A statement that is prepared for this one use. */
struct query query_begin_sql(struct db *db, const char *sql);

/* Bind the next parameter. Texts and blobs are borrowed until query_end. */
void query_int(struct query *query, int64_t value);
void query_real(struct query *query, double value); /* NAN becomes NULL */
void query_text(struct query *query, const char *text);
void query_blob(struct query *query, const void *data, size_t bytes);
void query_null(struct query *query);
void query_int_or_null(struct query *query, int64_t value);     /* 0 becomes NULL */
void query_text_or_null(struct query *query, const char *text); /* "" becomes NULL */

/* True: a row is there. False: no more rows, or an error that query_end reports. */
bool query_row(struct query *query);

bool query_column_is_null(const struct query *query, int column);
int64_t query_column_int(const struct query *query, int column);
double query_column_real(const struct query *query, int column); /* NULL becomes NAN */
/* Copies a text, NULL as "". One that does not fit is an error that query_end reports. */
void query_column_text(struct query *query, int column, char *out, size_t capacity);
/* The same of the row's next column: those of one row are taken in their order. */
int64_t query_take_int(struct query *query);
void query_take_text(struct query *query, char *out, size_t capacity);
/* Whether a text of this row did not fit, which is forgotten: the next row can be looked at. */
bool query_column_overflow(struct query *query);
/* Borrowed until the next step. */
const void *query_column_blob(const struct query *query, int column, size_t *bytes);

/* Ends the use; STATUS_OK, or what went wrong. */
enum status query_end(struct query *query, struct error *error);
/* Steps to the end, then query_end: for statements without rows. */
enum status query_run(struct query *query, struct error *error);
/* The same for a statement whose answer nobody needs: the driver may go on without it. An error
 * then shows at a later statement, at the commit at the latest, and undoes the transaction. */
enum status query_send(struct query *query, struct error *error);
/* Begin, step, end of a kept statement without parameters. */
enum status query_simple(struct db *db, enum statement statement, struct error *error);

#endif
