/*
 * Following: agreement in a store that goes on, read in steps. Each outcome is read once, and what
 * an audit or a shadow repeats is looked up where it came earlier, so that a step costs what is
 * new. It comes to what `swerve agreement` makes of the same store, as long as that holds no more
 * of the object world's answers than are kept (report/trust/arbiter.h).
 *
 * Invariant: between two steps, every outcome up to follow_up_to() is counted, and none after it.
 * A step that fails can be repeated.
 */
#ifndef SWERVE_REPORT_TRUST_FOLLOW_H
#define SWERVE_REPORT_TRUST_FOLLOW_H

#include "report/trust/table.h"

/* Beyond these a store is for `swerve agreement` alone: LIMIT. */
enum { FOLLOW_DRIVES_MAX = 2000000, FOLLOW_PAIRS_MAX = 50000 };

struct follow;

/* *out is the caller's; the policy is copied. */
enum status follow_create(const struct trust_policy *policy, struct follow **out,
                          struct error *error);
void follow_destroy(struct follow *follow); /* accepts NULL */

/* Reads up to about `outcomes_max` further outcomes of the store, always the same one. *end: there
 * are no more now. */
enum status follow_step(struct follow *follow, struct store *store, uint32_t outcomes_max,
                        bool *end, struct error *error);

/* The last outcome that is counted; 0: none. */
int64_t follow_up_to(const struct follow *follow);

/* Decisions of the store, as of the last step that came to its end. */
const struct decisions *follow_decisions(const struct follow *follow);

/* Measures that got worse, as measures_json() has them, of the drives that are counted. */
enum status follow_drift(const struct follow *follow, json_t **out, struct error *error);

/* The table of what is counted; *out is to be finished. */
enum status follow_table(const struct follow *follow, struct table *out, struct error *error);

#endif
