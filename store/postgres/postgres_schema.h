/*
 * The schema in PostgreSQL: the migrations of schemas/sql in its words, one version after the
 * other, under a lock that keeps other processes out; and settings that all of them share.
 */
#ifndef SWERVE_STORE_POSTGRES_POSTGRES_SCHEMA_H
#define SWERVE_STORE_POSTGRES_POSTGRES_SCHEMA_H

#include "base/log.h"
#include "base/status.h"
#include "store/sql/db.h"

#include <stddef.h>

/* Makes the tables, or brings them up to this program's version. STORE: the schema is newer, and
 * was left as it is. */
enum status postgres_schema_apply(struct db *db, const struct logger *logger, struct error *error);

/* STORE: there is no store yet. */
enum status postgres_schema_check(struct db *db, struct error *error);

/* The folder beside which artifacts lie, for every process: `given`, which the first one says, or
 * what was said before. CONFLICT: another one was; USAGE: none. */
enum status postgres_schema_artifacts(struct db *db, const char *given, char *out, size_t capacity,
                                      struct error *error);

/* The same of a schema that is there and of this program's version, else STORE. `db` reads. */
enum status postgres_schema_look(struct db *db, const char *given, char *out, size_t capacity,
                                 struct error *error);

#endif
