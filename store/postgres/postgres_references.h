/*
 * Rows that refer to rows which are not there, whatever the server was told to enforce.
 */
#ifndef SWERVE_STORE_POSTGRES_POSTGRES_REFERENCES_H
#define SWERVE_STORE_POSTGRES_POSTGRES_REFERENCES_H

#include "base/status.h"

#include <stdint.h>

struct db;

struct postgres_references_visit {
    void (*reference)(void *context, const char *place, const char *parent);
    void (*loose)(void *context, const char *table, const char *constraint);
};

/* Shows rows of each foreign key of the schema, `max` of a key at most, and keys that are not
 * enforced. Inside a read transaction of `db`, which is PostgreSQL's. */
enum status postgres_references(struct db *db, uint32_t max,
                                const struct postgres_references_visit *visit, void *context,
                                struct error *error);

#endif
