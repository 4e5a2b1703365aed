/*
 * SQLite connections and statements: the only file that knows sqlite3.h is sqlite_db.c.
 *
 * A connection is used by one thread at a time (its owner sees to that). Statements are named in
 * store/sqlite/statements.h, prepared on first use and kept. A query is a cursor with a sticky
 * error code: bind, step and read columns without looking, then let query_end say how it went.
 *
 *   struct query query = query_begin(db, STATEMENT_JOB_GET);
 *   query_int(&query, job_id);
 *   if (query_row(&query)) { state = query_column_int(&query, 0); }
 *   return query_end(&query, error);
 */
#ifndef SWERVE_STORE_SQLITE_SQLITE_DB_H
#define SWERVE_STORE_SQLITE_SQLITE_DB_H

#include "base/status.h"
#include "store/sqlite/statements.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sqlite_db;
struct sqlite3_stmt;

enum sqlite_db_mode {
    SQLITE_DB_WRITER, /* creates the file where there is none */
    SQLITE_DB_READER, /* cannot change anything, checkpoints included */
    SQLITE_DB_ALONE,  /* only to look and to close again: see sqlite_db_open */
};

/* Opens the connection and sets everything that is not stored in the file: synchronous=FULL,
 * foreign keys, defensive mode, no busy timeout, no memory mapping, no automatic checkpoint, small
 * limits. Writes nothing: see sqlite_db_use_wal.
 *
 * SQLITE_DB_ALONE: OK means that no other connection, of any program, has the database and its log
 * open, and that none will until this one is closed; BUSY that one has. SQLite's own lock proves
 * it: whoever has the log open holds the database's lock for reading. The log's shared memory is
 * not touched. */
enum status sqlite_db_open(const char *path, enum sqlite_db_mode mode, struct sqlite_db **out,
                           struct error *error);
/* Accepts NULL. A writer checkpoints what it can, once sqlite_db_use_wal was called. */
void sqlite_db_close(struct sqlite_db *db);

/* Tests look into a connection, and plant errors in it, through one pointer. */
struct sqlite_db_probe {
    /* The text to prepare for a kept statement, usually `sql`; it outlives the connection. */
    const char *(*text)(void *context, enum statement statement, const char *sql);
    /* A transaction was written to the log; nobody has been told yet. */
    void (*committed)(void *context);
    void *context;
};
/* From here on; borrowed until close. NULL: none. */
void sqlite_db_set_probe(struct sqlite_db *db, const struct sqlite_db_probe *probe);

/* Write-ahead logging from here on, and a checkpoint on close. */
enum status sqlite_db_use_wal(struct sqlite_db *db, struct error *error);

/* Closing this connection will not touch the files at its path any more. */
void sqlite_db_abandon(struct sqlite_db *db);

/* Every statement of a script. */
enum status sqlite_db_script(struct sqlite_db *db, const char *sql, struct error *error);
/* First column of the first row of any SQL, 0 when there is none. */
enum status sqlite_db_scalar(struct sqlite_db *db, const char *sql, int64_t *out,
                             struct error *error);
/* PRAGMA quick_check: pages and rows are well formed (indexes are not compared); STATUS_STORE with
 * the first finding and what to do. Reads the whole file, writes nothing. */
enum status sqlite_db_quick_check(struct sqlite_db *db, struct error *error);
/* PRAGMA integrity_check and foreign_key_check; STATUS_STORE with the first finding. */
enum status sqlite_db_check(struct sqlite_db *db, struct error *error);

/* Queries from here on end with TIMEOUT once they have taken until `limit_ms` from now; 0: they may
 * take as long as they like. */
void sqlite_db_limit(struct sqlite_db *db, int64_t limit_ms);
/* Any thread, while the connection is open: the query that it runs now ends with BUSY, as do others
 * before the next sqlite_db_limit. */
void sqlite_db_interrupt(struct sqlite_db *db);

bool sqlite_db_in_transaction(const struct sqlite_db *db);
/* The disk refused a read or write in a way after which nothing can be promised any more. */
bool sqlite_db_failed(const struct sqlite_db *db);
int64_t sqlite_db_last_id(const struct sqlite_db *db);
int64_t sqlite_db_changes(const struct sqlite_db *db);

/* Pages in the write-ahead log at the last commit. */
int sqlite_db_wal_pages(const struct sqlite_db *db);
/* Copies the log into the database as far as readers let it. */
enum status sqlite_db_checkpoint(struct sqlite_db *db, struct error *error);

struct query {
    struct sqlite_db *db;
    struct sqlite3_stmt *statement; /* NULL: could not be prepared, the code says why */
    int next;                       /* number of the next parameter, from 1 */
    int code;                       /* sticky result code */
    bool kept;                      /* belongs to the connection */
};

struct query query_begin(struct sqlite_db *db, enum statement statement);
/* A statement that is prepared for this one use. */
struct query query_begin_sql(struct sqlite_db *db, const char *sql);

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
/* Whether a text of this row did not fit, which is forgotten: the next row can be looked at. */
bool query_column_overflow(struct query *query);
/* Borrowed until the next step. */
const void *query_column_blob(const struct query *query, int column, size_t *bytes);

/* Ends the use; STATUS_OK, or what went wrong. */
enum status query_end(struct query *query, struct error *error);
/* Steps to the end, then query_end: for statements without rows. */
enum status query_run(struct query *query, struct error *error);
/* Begin, step, end of a kept statement without parameters. */
enum status query_simple(struct sqlite_db *db, enum statement statement, struct error *error);

#endif
