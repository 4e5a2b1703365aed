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

/* Sets a store up, or finds one that was. */
struct postgres_schema_setup {
    const struct logger *logger;
    const char *artifacts; /* where they lie, as the URL says; "": what was said before */
    /* Opens that place, before anything of it is kept. What it makes there stays. */
    enum status (*place)(void *context, const char *artifacts, struct error *error);
    void *context;
};

/* Makes the tables, or brings them up to this program's version, and keeps for every process where
 * artifacts lie. All in one transaction: a set-up that fails leaves the database as it was. STORE:
 * the schema is newer, or somebody else's. CONFLICT: artifacts are elsewhere; USAGE: nowhere. */
enum status postgres_schema_apply(struct db *db, const struct postgres_schema_setup *setup,
                                  struct error *error);
/* STORE: there is no store yet. */
enum status postgres_schema_check(struct db *db, struct error *error);

/* The place of the artifacts of a schema that is there and of this program's version, else STORE.
 * `db` reads. */
enum status postgres_schema_look(struct db *db, const char *given, char *out, size_t capacity,
                                 struct error *error);

#endif
