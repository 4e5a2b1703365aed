/*
 * Migrations: brings a database file to the schema that this program writes.
 *
 * The file's version is PRAGMA user_version: how many of schemas/sql/NNNN_*.sql it has seen. A
 * newer file is refused and left alone; an older one is brought forward step by step, each step in
 * its own transaction. An empty one is made whole in one transaction, with the schema that all
 * steps make together (scripts/whole_schema.py).
 */
#ifndef SWERVE_STORE_SQLITE_MIGRATE_H
#define SWERVE_STORE_SQLITE_MIGRATE_H

#include "base/embedded.h"
#include "base/log.h"
#include "base/status.h"
#include "store/sql/sqlite_db.h"

#include <stddef.h>
#include <stdint.h>

/* schemas/sql in order, built in. */
extern const struct embedded_text store_migrations[];
extern const size_t store_migrations_count;

/* One text: what all of them make together. */
extern const struct embedded_text store_whole_schema[];

/* May the file be used: it is empty, or a job store no newer than this program, with the schema of
 * its version and nothing else in it. Writes nothing. */
enum status migrate_check(struct db *db, const char *path, struct error *error);

/* Applies what is missing. After migrate_check. */
enum status migrate_apply(struct db *db, const char *path, const struct logger *logger,
                          struct error *error);

#endif
