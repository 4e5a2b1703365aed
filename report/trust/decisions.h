/*
 * Decisions about trust as a store keeps them (store/api/trust.h): which slices of a student are
 * frozen to the teacher now, what a thaw made history, and the floor of audits. And the way into
 * the store of what a table of agreement decides.
 */
#ifndef SWERVE_REPORT_TRUST_DECISIONS_H
#define SWERVE_REPORT_TRUST_DECISIONS_H

#include "report/trust/drives.h"
#include "store/api/store.h"

#include <jansson.h>
#include <stdio.h>

struct decisions {
    uint32_t count;
    struct trust_event *events; /* owned; ascending */
};

/* Every event of a store; of a server that knows of none, none. */
enum status decisions_read(struct store *store, struct decisions *out, struct error *error);
void decisions_finish(struct decisions *decisions);

/* The floor that is set now, or NULL. */
const struct trust_event *decisions_floor(const struct decisions *decisions);

/* Whether a freeze holds: of this student, or with NULL of anybody; how many do. */
bool decisions_holds(const struct trust_event *event, const struct drives_student *student);
uint32_t decisions_holding(const struct decisions *decisions, const struct drives_student *student);

/* Whether an answer of the student belongs to what a thaw made history: of a scenario of the slice,
 * up to the last outcome that there was. */
bool decisions_are_past(const struct decisions *decisions, const struct drives_student *student,
                        const char slice[SLICE_KIND_COUNT][LIMIT_ID_BYTES], bool safety_critical,
                        int64_t outcome_id);

/* Likewise, to what a freeze that holds rests on. */
bool decisions_are_before_freeze(const struct decisions *decisions,
                                 const struct drives_student *student,
                                 const char slice[SLICE_KIND_COUNT][LIMIT_ID_BYTES],
                                 bool safety_critical, int64_t outcome_id);

/* Freezes in the store what the table says is frozen and the store does not hold yet. `hash`: of
 * the policy's file, "" for none; `actor`: who says so. *recorded: how many. */
struct table;
enum status decisions_record(struct store *store, const struct table *table, const char *hash,
                             const char *actor, uint32_t *recorded, struct error *error);

/* Sets the store's floor where it is lower than these shares; *raised: it was. */
enum status decisions_raise_floor(struct store *store, double rate, double safety_critical_rate,
                                  const char *hash, const char *actor, bool *raised,
                                  struct error *error);

/* SHA-256 of a policy's file; "" for NULL. */
enum status decisions_policy_hash(const char *path, char out[SHA256_HEX_BYTES],
                                  struct error *error);

/* Freezes that hold, one line each; an array of freezes with what is told of them. */
void decisions_print(const struct decisions *decisions, FILE *stream);
json_t *decisions_json(const struct decisions *decisions);

#endif
