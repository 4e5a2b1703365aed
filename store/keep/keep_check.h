/*
 * Checking a store wherever it is: a file as store/check does, or a PostgreSQL database with the
 * same statements.
 *
 * A database is read in one read-only REPEATABLE READ transaction, one moment of it, beside all its
 * processes, which are not held up. What is a file's own is left out: pages, indexes and the log
 * are the server's (pg_amcheck, data checksums). References between rows are looked at though the
 * server enforces them, since restores may switch that off.
 */
#ifndef SWERVE_STORE_KEEP_KEEP_CHECK_H
#define SWERVE_STORE_KEEP_KEEP_CHECK_H

#include "store/check/check.h"

/* As store_check. */
enum status keep_check(const char *store, const struct store_check_options *options,
                       struct store_check_summary *out, struct error *error);

#endif
