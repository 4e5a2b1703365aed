/*
 * A store's schema against the migrations that it says it has seen: is everything there, and
 * nothing else? A trigger that another program added would run inside our transactions; a version
 * that was lowered by hand would have a migration applied twice.
 *
 * What should be there is read from the migrations themselves (schemas/sql), so there is no second
 * list to keep. Private to the store room.
 */
#ifndef SWERVE_STORE_SQLITE_SCHEMA_CHECK_H
#define SWERVE_STORE_SQLITE_SCHEMA_CHECK_H

#include "base/status.h"
#include "store/sqlite/sqlite_db.h"

#include <stdint.h>

/* The file holds what the first `version` migrations make, by name; STATUS_STORE names what is
 * missing, too many or of a later version, and what to do. Writes nothing. */
enum status schema_check(struct db *db, const char *path, int64_t version, struct error *error);

#endif
