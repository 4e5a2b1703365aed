/*
 * Statements: what a check found in a store, as a text that is signed. A line each: "swerve
 * statement 1", when (UTC), the digest of all suites, how many they are, then each suite:
 *
 *     suite DIGEST OUTCOMES NAME
 *
 * A suite's DIGEST is the sum of its own digest and those of its outcomes (store/api/digest.h): of
 * its name, tenant and time, of every figure of every outcome, when it came included, and of its
 * job's spec. Models, freezes, prices and jobs without an outcome are in none.
 *
 * The signature lies beside it in FILE.sig (store/keep/signature.h).
 */
#ifndef SWERVE_STORE_KEEP_STATEMENT_H
#define SWERVE_STORE_KEEP_STATEMENT_H

#include "store/check/check.h"

#include <stddef.h>
#include <stdint.h>

struct statement {
    struct store_check_suite *suites; /* owned */
    size_t count;
};

/* Takes up a suite, as store_check_options.suite gives it. NO_MEMORY. */
enum status statement_add(struct statement *statement, const struct store_check_suite *suite,
                          struct error *error);
void statement_finish(struct statement *statement); /* zeros, too */

/* Writes the statement of a check without faults, which found these suites, into `path`, and its
 * signature beside it. CONFLICT: there were faults, or outcomes without a digest, which nobody can
 * vouch for. */
enum status statement_sign(const struct statement *found, const struct store_check_summary *summary,
                           int64_t now_s, const char *key_path, const char *path,
                           struct error *error);

/* Reads a statement whose signature is by that key. MISMATCH: it is not; BAD_INPUT names the line
 * that is none of a statement's. */
enum status statement_read(const char *path, const char *key_path, struct statement *out,
                           struct error *error);

/* Tells of each suite that is not as it was signed (a fault of kind "signature", counted in the
 * summary), and of how many were not signed (a note). Sorts both. */
void statement_compare(struct statement *signed_suites, struct statement *found,
                       const struct store_check_options *options,
                       struct store_check_summary *summary);

#endif
