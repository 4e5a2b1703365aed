/*
 * SQLite's words in PostgreSQL's: statements and migrations are written once, in the former.
 *
 * What is translated is what the texts of this repository use, no more: parameters, CROSS JOIN with
 * a condition, MIN of two values, lists in JSON; in migrations types, row ids, STRICT and WITHOUT
 * ROWID. The test `store_postgres` prepares every statement.
 */
#ifndef SWERVE_STORE_POSTGRES_DIALECT_H
#define SWERVE_STORE_POSTGRES_DIALECT_H

#include "base/status.h"
#include "store/statements/statements.h"

#include <stdbool.h>

/* The text of a kept statement, malloc'ed. NULL: out of memory. */
char *dialect_statement(enum statement statement);
/* The same of another text that stands for it, in SQLite's words. */
char *dialect_statement_as(enum statement statement, const char *sql);
/* Any other statement, malloc'ed. */
char *dialect_query(const char *sql);
/* Whether a text, as above, inserts or updates at least one row whenever all is well: it inserts
 * values that nothing stands against, or updates a row by its key, which whoever runs it has seen.
 */
bool dialect_writes_row(const char *text);
/* A migration's text, malloc'ed. `fresh`: no table has rows yet, so statements that only change or
 * copy rows are left out. */
char *dialect_migration(const char *sql, bool fresh);

#endif
