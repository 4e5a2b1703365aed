/*
 * Agreement: how well two tiers agree on the same questions. A job that was sampled for audit and
 * its audit job on the teacher give one pair of outcomes per rollout; from pairs come shares with
 * intervals, by slice or overall. Pure functions over records.
 *
 * Only pairs in which both sides gave a verdict on the planner (pass or fail) are compared; the
 * others are counted apart: a flagged side says nothing about agreement.
 *
 * Pairs of one job (its main line and branches) share scenario, planner, seed and past, and seeds
 * of one scenario much of it, so they are no independent draws: each scenario counts once, with the
 * share of its pairs that agree, and what is drawn is the logical scenario (scheduler/rate.h).
 */
#ifndef SWERVE_SCHEDULER_AGREEMENT_H
#define SWERVE_SCHEDULER_AGREEMENT_H

#include "scheduler/rate.h"
#include "schemas/outcome.h"

#include <stdbool.h>
#include <stdint.h>

struct agreement_pair {
    const struct outcome *student; /* the audited one */
    const struct outcome *teacher; /* its audit job's */
};

/* Joins the outcomes of one suite (any order): audit job's audit_of = job_id, equal branch_id,
 * one question.
 * Pairs come in the order of the students' (job_id, branch_id). pairs[count / 2] is enough;
 * scratch[count] is overwritten. Returns how many; audit jobs whose other half is not there are
 * left out, and what makes something (futures of an audited drive). */
uint32_t agreement_join(const struct outcome *outcomes, uint32_t count,
                        const struct outcome **scratch, struct agreement_pair *pairs);

/* Agreement of the two sides on one property. */
struct agreement_count {
    int64_t pairs; /* that agree */
    struct rate rate;
};

/* Counts of agreeing pairs; sums of differences, teacher minus student. Start from zeros. */
struct agreement {
    int64_t pairs;                    /* compared */
    int64_t jobs;                     /* that have such a pair */
    int64_t incomplete;               /* one side flagged or without a verdict */
    struct agreement_count verdict;   /* both pass or both fail */
    struct agreement_count collision; /* both with or both without contact */
    struct agreement_count at_fault;
    struct agreement_count interventions; /* the guardian would have acted in both or in neither */
    int64_t student_only_passes;          /* the dangerous direction: the teacher says fail */
    int64_t teacher_only_passes;
    double intervention_difference_sum;
    int64_t distance_pairs;           /* both have a smallest distance to an agent */
    double distance_difference_sum_m; /* of min_distance_m */
    double distance_difference_abs_sum_m;
    double progress_difference_abs_sum_m; /* of progress_m, over all compared pairs */
    int64_t last_job;                     /* the one that was added to last */
};

/* Counts a pair of a case of a logical scenario, keys and order as for rate_add(); pairs of one job
 * follow each other. */
void agreement_add(struct agreement *agreement, const struct agreement_pair *pair,
                   int64_t logical_key, int64_t case_key);

#endif
