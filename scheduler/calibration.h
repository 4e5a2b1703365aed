/*
 * Calibration: forecasts, and whether what is forecast as likely to fail fails as often as was
 * said. Pure functions; draws, forecasts and what came of them in, shares, answers and scores out.
 *
 * P(fail) of a traffic model is the share of its draws that fail. Nobody knows which model is
 * right, so the interval of several reaches from the lowest end of theirs to the highest: it has
 * P(fail) in it whichever of them is.
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
#include "schemas/outcome.h"

#include <stdbool.h>
#include <stdint.h>

struct forecast_share {
    double value; /* P(fail); NAN: no future has a verdict */
    double low;   /* of the 95% interval */
    double high;
};

/* Of one model's draws: the interval of a rate (rate_interval), 0 to 1 without any. */
struct forecast_share forecast_share_of(uint32_t passed, uint32_t failed);
/* Of several models, each of the same weight; of none, NAN in 0 to 1. */
struct forecast_share forecast_share_over(const struct forecast_share *models, uint32_t count);
/* Of what an outcome keeps: all its models. Of one without futures as of none. */
struct forecast_share forecast_kept(const struct outcome_futures *futures);

/* Answer: the verdict that an interval on one side of a half means. */
enum forecast_answer { FORECAST_UNDECIDED = 0, FORECAST_PASS, FORECAST_FAIL, FORECAST_ANSWERS };
extern const char *const forecast_answer_names[FORECAST_ANSWERS]; /* "undecided", "pass", "fail" */
enum forecast_answer forecast_answer(const struct forecast_share *share);
/* Whether an answer is that verdict; undecided is none. */
bool forecast_says(enum forecast_answer answer, enum verdict verdict);

/* Verdict that futures settle: their answer, where the drive itself ends so in the world as it is
 * written
 * (`own`); else undecided: what its models could not foresee is no evidence against a script. */
enum forecast_answer forecast_settles(const struct outcome_futures *futures, enum verdict own);

/* Draws of a model from which on an answer can be another than undecided. */
uint32_t forecast_draws_decisive(void);

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
