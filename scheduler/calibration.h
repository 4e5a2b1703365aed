/*
 * Calibration: whether what is forecast as likely to fail fails as often as was said. Pure
 * functions; forecasts and what came of them in, scores out.
 *
 * The Brier score is the mean squared difference of probability and what came, 0 or 1 (G. W. Brier,
 * Monthly Weather Review 78, 1950): 0 is exact. Beside it stand the score's difference from that
 * of another forecast of the same drives, paired, and the table of what came by what was said.
 * What is drawn are logical scenarios, as of every rate (scheduler/rate.h).
 */
#ifndef SWERVE_SCHEDULER_CALIBRATION_H
#define SWERVE_SCHEDULER_CALIBRATION_H

#include "scheduler/paired.h"
#include "scheduler/rate.h"

#include <stdbool.h>
#include <stdint.h>

enum { CALIBRATION_BINS = 5 }; /* 0 to 0.2, to 0.4, .. to 1, a limit being the upper one's */

struct calibration_bin {
    int64_t forecasts;
    int64_t failed;
    double said; /* sum of their probabilities */
};

/* Start from zeros but for the clusters. */
struct calibration {
    struct paired_cluster *clusters; /* [cluster_max] zeros, borrowed; of logical keys from 1 on */
    uint32_t cluster_max;
    int64_t forecasts;
    int64_t failed;
    struct rate error;   /* squared */
    int64_t case_key;    /* of the case that is still open, */
    int64_t case_drives; /* of how many drives, */
    double case_mean;    /* and by how much their errors are above those of the other forecast */
    struct calibration_bin bins[CALIBRATION_BINS];
};

/* Adds a forecast of a drive that failed or passed, and the other forecast of it; 0 to 1. NAN of
 * either: it is missing. Keys and order as for rate_add(). */
void calibration_add(struct calibration *calibration, int64_t logical_key, int64_t case_key,
                     double probability, double other, bool failed);

/* The Brier score; NAN without forecasts. */
double calibration_score(const struct calibration *calibration);

/* Difference to the other's score: below 0 it is better than that. */
struct paired_mean calibration_beside(const struct calibration *calibration);

#endif
