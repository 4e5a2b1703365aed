/*
 * Rates: shares over a suite with the interval that the suite's own design allows. Pure functions;
 * what is shown of rates (summary, slices, agreement, comparisons) comes from here.
 *
 * A drive is a draw within a case, a case (a concrete scenario under one planner) lies within a
 * logical scenario, which its grid varies. Seeds of one case often give the same drive, and cases
 * of one logical scenario resemble each other, so neither are independent draws. Therefore a case
 * counts once, with the mean of its drives, and what the interval takes for drawn are the logical
 * scenarios: a cluster sample with the ratio estimator.
 *
 * Invariant: values of one case follow one another, and so do cases of one logical scenario.
 */
#ifndef SWERVE_SCHEDULER_RATE_H
#define SWERVE_SCHEDULER_RATE_H

#include "store/api/share.h"

#include <stdint.h>

#define RATE_Z95 1.959963984540054

/* Sums over cases. Start from zeros. */
struct rate {
    int64_t drives;     /* that gave a value */
    int64_t missing;    /* that gave none */
    int64_t logical;    /* with such a case */
    struct share share; /* of the cases */
    /* Of the cases still open; rate_add() closes them. */
    int64_t case_key;
    int64_t case_drives;
    int64_t case_missing;
    double case_sum;
    int64_t logical_key;
    int64_t logical_cases;
    double logical_sum;
    /* Over logical scenarios: n cases, of which y is the sum of values. */
    int64_t largest;      /* n at the most */
    double square_sum[3]; /* of y^k n^(2 - k) */
    double fourth_sum[5]; /* of y^k n^(4 - k) */
    double cube_sum;      /* of n^3 */
    int64_t below_one;    /* logical scenarios in which not everything is 1 */
    int64_t above_zero;
};

/* Adds a drive's value, 0 to 1, or its lack (NAN), to a case of a logical scenario. Keys are above
 * 0 and name both; equal keys follow one another, and a case key belongs to one logical key. */
void rate_add(struct rate *rate, int64_t logical_key, int64_t case_key, double value);

struct rate_estimate {
    double value; /* NAN without cases */
    double low;   /* of the 95% interval; 0 to 1 without cases */
    double high;
    double worst; /* the value, were everything that is missing 0 */
    double best;  /* or 1 */
    int64_t drives;
    int64_t missing;
    int64_t cases;
    int64_t logical;
    double largest; /* share of the cases that are of one logical scenario, at the most */
};

/* The mean over cases and its interval: rate_interval() of the number of independent draws that
 * the spread between logical scenarios amounts to (Dean, Pagano, J. Survey Stat. Methodol. 3,
 * 2015). With w_l the shares of the cases and e_l the logical scenarios' means less the whole:
 *
 *     V = sum(w^2 e^2) S2 / (S2 - 2 S3 + S2^2), Sk = sum(w^k): a mean is drawn to what weighs most,
 *         and this is unbiased where means spread alike (Bell, McCaffrey, Survey Methodology 28,
 *         2002); L / (L - 1) times the sum where all weigh alike
 *     Student's t, one degree of freedom fewer than what the w^2 e^2 are worth (rate_degrees()), at
 *         most 1 / S2, which is what the weights are worth (Kish, Survey Sampling, 1965)
 *
 * Where all are equal (all pass) it is 1 / S2 draws. Else it is never fewer than 1 / S2, which they
 * are when logical scenarios end as a whole, or, where those that fail weigh more than others, than
 * those of which their share is as many failures as they are worth: one that fails beside many that
 * always pass is one draw. Likewise of those that pass. worker/METRICS.md explains it,
 * docs/intervals.md has how often it holds the truth. */
struct rate_estimate rate_estimate(const struct rate *rate);

/* The difference of two rates over the same cases, from where they differ: `gains` has what the
 * second has above the first in each drive, `losses` what it has below, added side by side. The
 * interval joins theirs (MOVER: Zou, Donner, Statistics in Medicine 27, 2008), with the correlation
 * of two shares of which a case is in one at most. */
struct rate_difference {
    double value; /* second minus first; NAN without cases */
    double low;   /* of the 95% interval; -1 to 1 without cases */
    double high;
};
struct rate_difference rate_difference(const struct rate *gains, const struct rate *losses);

/* Wilson score interval of a share of n draws at z standard deviations (E. B. Wilson, JASA 22,
 * 1927). Without draws 0 to 1. */
void rate_wilson(double share, double n, double z, double *low, double *high);

/* 95% interval of a share of n > 0 draws: Wilson's with the correction for continuity (Newcombe,
 * Statistics in Medicine 17, 1998, method 4), without which it holds shares near 1 too rarely: 0.95
 * in 86% of three draws. */
void rate_interval(double share, double n, double *low, double *high);

/* The end of an interval as it is printed, outwards to a multiple of `step`, so that what is
 * printed leaves nothing out. */
double rate_down(double value, double step);
double rate_up(double value, double step);

/* The step of a number that is printed with that many significant digits. */
double rate_step(double value, int digits);

/* Two-sided 95% quantile of Student's t, degrees of freedom at least 1, whole or not. */
double rate_t95(double degrees);

/* Fewer clusters than this (logical scenarios, recorded scenes) give a mean no interval: of those
 * that would hold the truth often enough none says anything. */
enum { RATE_CLUSTERS_MIN = 5 };

/* Degrees of freedom of a variance that is a sum of squares, one a cluster (Satterthwaite,
 * Biometrics Bulletin 2, 1946), from the sum of these and that of their squares: where few clusters
 * make up all of it, it is known as badly as from so few. At most `most`. */
double rate_degrees(double squares, double fourths, double most);

#endif
