/*
 * Invariants: of every number and text of a stored record the least and the greatest that it may
 * be, in one table. What arrives beyond it is refused (invariants_check), and `swerve check` calls
 * rows beyond it damage (invariants_sql), so that no call can bring about what a check complains
 * of.
 *
 * Members are those of the records' JSON tables. One that is not in the table below is what its
 * kind holds: a text fits its buffer, a name and a set of bits are known, a bool is 0 or 1.
 * Members that must agree with one another are looked at by one function, at both places.
 */
#ifndef SWERVE_STORE_DOOR_INVARIANTS_H
#define SWERVE_STORE_DOOR_INVARIANTS_H

#include "base/status.h"
#include "schemas/json_record.h"
#include "schemas/limits.h"
#include "schemas/outcome.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of ego in a tick: one that moves further is flagged as a teleport (docs/health.md). */
#define OUTCOME_TICK_MM_MAX INT64_C(12000)
/* Bounds on what one attempt may report: 11 days of device time, 10 million km, 1e21 operations. */
#define LEDGER_ATTEMPT_NS_MAX (INT64_C(1000000) * 1000000000)
#define LEDGER_ATTEMPT_MM_MAX (INT64_C(10000000) * 1000000)
#define LEDGER_ATTEMPT_MFLOP_MAX (INT64_C(1000000) * 1000000000)
/* Operations, in millions, of a nanosecond of device time: 1e17 a second. A world step is shared by
 * 8 devices at most (kernels/cuda/scale), and the fastest there is does 1e16 operations a second
 * (NVIDIA's data sheet of the B200: 9e15 in FP4, dense). */
#define LEDGER_MFLOP_PER_NS 100
/* Device time that operations are allowed beside what is billed: clocks of processor time go in
 * steps. */
#define LEDGER_MFLOP_SLACK_NS 100000000
/* Of one rollout: 10,000 km, also of one whose last tick is a teleport and was flagged, so that a
 * suite of 900 million rollouts still counts its metres. */
#define OUTCOME_MM_MAX (INT64_C(10000) * 1000000)
#define OUTCOME_PEAK_MFLOPS_MAX INT64_C(1000000000000)

/* From a number's least to its greatest; of a text that of its bytes. A real number may also be
 * NaN, which says that there is none. */
struct invariant {
    const char *member;
    int64_t least;
    int64_t greatest;
};

struct invariants {
    const struct json_field_list *fields;
    const struct invariant *rows; /* in the order of the fields */
    size_t count;
};

extern const struct invariants invariants_spec;
extern const struct invariants invariants_context; /* outcomes of earlier versions name no pool */
extern const struct invariants invariants_completion;
extern const struct invariants invariants_progress;
extern const struct invariants invariants_outcome;
extern const struct invariants invariants_tenant;
extern const struct invariants invariants_model;
extern const struct invariants invariants_model_event;
extern const struct invariants invariants_trust_event;
extern const struct invariants invariants_golden;
extern const struct invariants invariants_label;

/* Every member of the record; the sentence says which one, its range and what was found. BAD_INPUT,
 * or LIMIT: a text does not end. */
enum status invariants_check(const struct invariants *of, const void *record, struct error *error);

/* Whether the members of an outcome, each within its range, agree with one another: its verdict
 * with its reasons, its metres with its ticks, its contacts among themselves. BAD_INPUT. */
enum status invariants_outcome_agrees(const struct outcome *outcome, struct error *error);

/* Whether the table whose rows are looked at has such a column. */
typedef enum status invariants_has(void *context, const char *column, bool *has,
                                   struct error *error);

/* The statement that gives (place, sentence) for each row of a table that is beyond: of those
 * members that are columns of it. `place`: SQL that names row t. *sql is malloc'ed, the caller's;
 * NULL: no column is a member. */
enum status invariants_sql(const struct invariants *of, const char *table, const char *place,
                           invariants_has *has, void *context, char **sql, struct error *error);

#endif
