/*
 * Agreement: how well two tiers agree on the same questions. A job that was sampled for audit and
 * its twin on the teacher give one pair of outcomes per rollout; from pairs come shares with
 * intervals, by slice or overall. Pure functions over records.
 *
 * Only pairs in which both sides gave a verdict on the planner (pass or fail) are compared; the
 * others are counted apart: a flagged side says nothing about agreement.
 */
#ifndef SWERVE_SCHEDULER_AGREEMENT_H
#define SWERVE_SCHEDULER_AGREEMENT_H

#include "schemas/outcome.h"

#include <stdbool.h>
#include <stdint.h>

struct agreement_pair {
    const struct outcome *student; /* the audited one */
    const struct outcome *teacher; /* its twin's */
};

/* Joins the outcomes of one suite (any order): twin's audit_of = job_id, equal branch_id. Pairs
 * come in the order of the students' (job_id, branch_id). pairs[count / 2] is enough;
 * scratch[count] is overwritten. Returns how many; twins whose other half is not there are left
 * out. */
uint32_t agreement_join(const struct outcome *outcomes, uint32_t count,
                        const struct outcome **scratch, struct agreement_pair *pairs);

/* Counts of agreeing pairs; sums of differences, teacher minus student. Start from zeros. */
struct agreement {
    int64_t pairs;      /* compared */
    int64_t incomplete; /* one side flagged or without a verdict */
    int64_t verdict;    /* both pass or both fail */
    int64_t collision;  /* both with or both without contact */
    int64_t at_fault;
    int64_t interventions;       /* the guardian would have acted in both or in neither */
    int64_t student_only_passes; /* the dangerous direction: the teacher says fail */
    int64_t teacher_only_passes;
    double intervention_difference_sum;
    int64_t distance_pairs;           /* both have a smallest distance to an agent */
    double distance_difference_sum_m; /* of min_distance_m */
    double distance_difference_abs_sum_m;
    double progress_difference_abs_sum_m; /* of progress_m, over all compared pairs */
};

void agreement_add(struct agreement *agreement, const struct agreement_pair *pair);

/* Wilson score interval of hits / count at z standard deviations (E. B. Wilson, JASA 22, 1927).
 * No trials say nothing: 0 to 1. */
struct agreement_interval {
    double low;
    double high;
};
#define AGREEMENT_Z95 1.959963984540054
struct agreement_interval agreement_wilson(int64_t hits, int64_t count, double z);

#endif
