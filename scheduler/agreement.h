/*
 * Agreement: how well two tiers agree on the same questions. A job that was sampled for audit and
 * its twin on the teacher give one pair of outcomes per rollout; from pairs come shares with
 * intervals, by slice or overall. Pure functions over records.
 *
 * Only pairs in which both sides gave a verdict on the planner (pass or fail) are compared; the
 * others are counted apart: a flagged side says nothing about agreement.
 *
 * Pairs of one job (its main line and branches) share scenario, planner, seed and past, so they are
 * no independent draws: what is drawn is the job. Rates and intervals are therefore over jobs, a
 * cluster sample: each job counts once, with the share of its pairs that agree.
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

/* How often the two sides agree on one property. */
struct agreement_count {
    int64_t pairs; /* that agree */
    double jobs;   /* for each job the share of its pairs that agree, summed */
    int64_t last;  /* of the job that was added to last: its pairs that agree */
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
    int64_t last_job;                     /* the one that was added to last, and its pairs */
    int64_t last_pairs;
};

/* Counts a pair. `job` names the independent draw that it belongs to; pairs of one job must follow
 * each other. */
void agreement_add(struct agreement *agreement, const struct agreement_pair *pair, int64_t job);

/* Mean over jobs of the share of a job's pairs that agree; NAN without jobs. */
double agreement_rate(const struct agreement *agreement, const struct agreement_count *count);

/* Wilson score interval of hits / n at z standard deviations (E. B. Wilson, JASA 22, 1927).
 * Hits may be a sum of shares: between 0 and 1 these vary at most as much as hits and misses of the
 * same mean, so the interval is no narrower than it should be. No trials say nothing: 0 to 1. */
struct agreement_interval {
    double low;
    double high;
};
#define AGREEMENT_Z95 1.959963984540054
struct agreement_interval agreement_wilson(double hits, double n, double z);

/* The interval of agreement_rate() at 95%, over jobs. */
struct agreement_interval agreement_interval95(const struct agreement *agreement,
                                               const struct agreement_count *count);

#endif
