/*
 * PostgreSQL connections: a driver behind store/sql/db.h. Its files
 * alone know libpq-fe.h.
 *
 * A writer's transactions take one advisory lock of the schema first, so those of all processes on
 * a database come one after the other, as the logic above expects; ids are given out in the order
 * of commits. A lost connection is BUSY: nothing is known of a commit under way, and the operation
 * is repeated, on a new connection. Texts of statements are SQLite's, put into PostgreSQL's words
 * by dialect.h.
 */
#ifndef SWERVE_STORE_POSTGRES_POSTGRES_DB_H
#define SWERVE_STORE_POSTGRES_POSTGRES_DB_H

#include "base/status.h"
#include "store/postgres/postgres_clock.h"
#include "store/sql/db.h"

#include <stdbool.h>
#include <stdint.h>

/* Checks a URL, and cuts SWERVE's own parameter `artifacts` out of it: *url is what libpq gets.
 * USAGE: it has a password, or is none. */
enum status postgres_url_split(const char *given, char *url, size_t url_bytes, char *artifacts,
                               size_t artifacts_bytes, struct error *error);

/* Connects, and waits for a server that is there and starts or stops. The URL and the clock are
 * borrowed until close; clock NULL: a reader, whose transactions change nothing and see one moment.
 * BUSY: nobody answers. USAGE: a pooler that does not keep sessions. */
enum status postgres_db_open(const char *url, struct postgres_clock *clock, struct db **out,
                             struct error *error);

/* Tests look into a connection, and plant errors in it, as in SQLite's (sqlite_db.h). */
struct postgres_db_probe {
    /* The text to prepare for a kept statement, in SQLite's words, usually `sql`. */
    const char *(*text)(void *context, enum statement statement, const char *sql);
    /* A writer's transaction was committed; nobody has been told yet. */
    void (*committed)(void *context);
    void *context;
};
/* From here on, before a kept statement was used; borrowed until close. NULL: none. */
void postgres_db_set_probe(struct db *db, const struct postgres_db_probe *probe);

/* Connections that were made so far. */
int64_t postgres_db_connection(const struct db *db);

/* Any SQL without parameters, several statements too; rows are dropped. */
enum status postgres_db_script(struct db *db, const char *sql, struct error *error);

#endif
