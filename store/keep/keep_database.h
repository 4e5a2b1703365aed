/*
 * The database of a store as the keepers of the house read it: one moment of a SQLite file beside
 * its owner, or of a PostgreSQL database beside all its processes. Nothing is changed in it.
 */
#ifndef SWERVE_STORE_KEEP_KEEP_DATABASE_H
#define SWERVE_STORE_KEEP_KEEP_DATABASE_H

#include "base/status.h"
#include "schemas/limits.h"
#include "store/check/check_internal.h"

#include <stdint.h>

struct keep_database {
    struct check check; /* its findings are counted, and told to nobody */
    struct store_check_options options;
    struct store_check_summary summary;
    char path[LIMIT_PATH_BYTES]; /* artifacts are in PATH.artifacts */
    char url[LIMIT_PATH_BYTES];  /* of PostgreSQL; "": a file */
};

/* Finds the store at a path or a PostgreSQL URL. `out` must not move until it is closed, which has
 * to be done on failure, too. STORE: of another version than this program's. */
enum status keep_database_find(const char *store, int64_t wait_ms, struct keep_database *out,
                               struct error *error);
/* Begins to read, on check.db. BUSY: a program had the file to itself for all of wait_ms. */
enum status keep_database_begin(struct keep_database *database, struct error *error);
void keep_database_close(struct keep_database *database);

#endif
