/*
 * Bodies of scenarios in a store: a long map is kept once, apart from the bodies that have it.
 *
 * Invariant: a body that is read is that which was put, byte by byte.
 */
#ifndef SWERVE_STORE_SQL_SCENARIO_BODY_H
#define SWERVE_STORE_SQL_SCENARIO_BODY_H

#include "store/sql/db.h"

/* Place in a body of a map that is long enough to be kept apart; false: there is none. */
bool scenario_body_find_map(const char *body, size_t bytes, size_t *from, size_t *map_bytes);

/* Adds a scenario; tenant 0: nobody's. */
enum status scenario_body_insert(struct db *db, const char *hash, const char *body, size_t bytes,
                                 int64_t tenant, struct error *error);

/* The whole body from three columns of a row, its own text, map_at and the map's: malloc'ed, with a
 * byte 0 behind it. NULL: out of memory. What does not fit together gives another text. */
char *scenario_body_read(const struct query *query, int column, size_t *bytes);

#endif
