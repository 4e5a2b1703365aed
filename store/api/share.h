/*
 * Shares: the rule by which drives make a rate, wherever one is made. A case (a concrete scenario
 * of one planner in one world) counts once, with the mean of its drives that have a result. A rate
 * is the mean over the cases that have any; its range is the mean over all cases, with everything
 * that has no result taken for 0, and for 1.
 */
#ifndef SWERVE_STORE_API_SHARE_H
#define SWERVE_STORE_API_SHARE_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

/* Sums over cases. Start from zeros. */
struct share {
    int64_t cases; /* with a result */
    int64_t all;   /* also those without */
    double value_sum;
    double worst_sum;
    double best_sum;
};

/* Adds a case: the sum of its drives' values, 0 to 1 each, so many drives, and those without a
 * result. Whether it has any. */
static inline bool share_add(struct share *share, double sum, double drives, double missing)
{
    if (drives + missing > 0) {
        share->all++;
        share->worst_sum += sum / (drives + missing);
        share->best_sum += (sum + missing) / (drives + missing);
    }
    if (drives > 0) {
        share->cases++;
        share->value_sum += sum / drives;
    }
    return drives > 0;
}

/* Means; NAN without cases. */
static inline double share_value(const struct share *share)
{
    return share->cases > 0 ? share->value_sum / (double)share->cases : (double)NAN;
}

static inline double share_worst(const struct share *share)
{
    return share->all > 0 ? share->worst_sum / (double)share->all : (double)NAN;
}

static inline double share_best(const struct share *share)
{
    return share->all > 0 ? share->best_sum / (double)share->all : (double)NAN;
}

#endif
