/*
 * SQLite connections: one of the drivers behind store/sql/db.h. The only file that knows
 * sqlite3.h is sqlite_db.c.
 *
 * Functions here are for what a database in a file needs beside statements: opening, write-ahead
 * logging, checks, scripts of migrations. They take a struct db that sqlite_db_open made.
 */
#ifndef SWERVE_STORE_SQLITE_SQLITE_DB_H
#define SWERVE_STORE_SQLITE_SQLITE_DB_H

#include "base/status.h"
#include "store/sql/db.h"

#include <stdint.h>

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
enum status sqlite_db_open(const char *path, enum sqlite_db_mode mode, struct db **out,
                           struct error *error);

/* STORE: beside `path`, where no database is or an empty one, lies a log. It holds what was
 * acknowledged, and SQLite would remove it. The log is looked at first: whoever makes a store at
 * this moment wrote the database before the log. sqlite_db_open asks this too. */
enum status sqlite_db_log_check(const char *path, struct error *error);

/* Tests look into a connection, and plant errors in it, through one pointer. */
struct sqlite_db_probe {
    /* The text to prepare for a kept statement, usually `sql`; it outlives the connection. */
    const char *(*text)(void *context, enum statement statement, const char *sql);
    /* A transaction was written to the log; nobody has been told yet. */
    void (*committed)(void *context);
    void *context;
};
/* From here on; borrowed until close. NULL: none. */
void sqlite_db_set_probe(struct db *db, const struct sqlite_db_probe *probe);

/* Write-ahead logging from here on; db_close checkpoints what it can. */
enum status sqlite_db_use_wal(struct db *db, struct error *error);

/* Closing this connection will not touch the files at its path any more. */
void sqlite_db_abandon(struct db *db);

/* Every statement of a script. */
enum status sqlite_db_script(struct db *db, const char *sql, struct error *error);
/* First column of the first row of any SQL, 0 when there is none. */
enum status sqlite_db_scalar(struct db *db, const char *sql, int64_t *out, struct error *error);
/* PRAGMA quick_check: pages and rows are well formed (indexes are not compared); STATUS_STORE with
 * the first finding and what to do. Reads the whole file, writes nothing. */
enum status sqlite_db_quick_check(struct db *db, struct error *error);
/* PRAGMA integrity_check and foreign_key_check; STATUS_STORE with the first finding. */
enum status sqlite_db_check(struct db *db, struct error *error);
/* Copies the database, as the read transaction of this connection sees it (one is begun where there
 * is none), into a new file, without a log beside it; not synced. Waits for nobody. */
enum status sqlite_db_copy(struct db *db, const char *path, struct error *error);

#endif
