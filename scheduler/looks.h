/*
 * Looks: what draws show of their mean, however often somebody looks while they come. Pure
 * functions over counts.
 *
 * Draws are of 0 to 1 and independent, and their mean is to lie above a band m. Were it m or less,
 * the wealth of who bets on every draw x at fair odds,
 *
 *     product of (x p / m + (1 - x) (1 - p) / (1 - m)),  p above m,
 *
 * would not grow: it reaches 20 times what it began with once in 20 sequences of draws at the most,
 * at any time (Ville 1939; Waudby-Smith, Ramdas, J. Royal Stat. Soc. B 86, 2024). The evidence is
 * the mean of that over p, spread evenly between m and 1. So looking may end when it likes what it
 * sees, which an interval for a number of draws that was fixed before does not allow.
 */
#ifndef SWERVE_SCHEDULER_LOOKS_H
#define SWERVE_SCHEDULER_LOOKS_H

#include <stdint.h>

/* Evidence that is enough: 1 in 20 sequences reaches it wrongly. */
#define LOOKS_EVIDENCE 20.0

struct looks {
    int64_t ones;
    int64_t zeros;
    uint32_t part_count;
    const double *parts; /* borrowed: draws above 0 and below 1 */
};

int64_t looks_draws(const struct looks *looks);
double looks_mean(const struct looks *looks); /* NAN without draws */

/* Logarithm of the evidence that the mean is above the band, and that it is below. Of a band of 0
 * and any draw, and of one of 1 and a draw below, that is infinite. */
double looks_above(const struct looks *looks, double band);
double looks_below(const struct looks *looks, double band);

/* The highest band that the mean is shown to be above; 0: none. */
double looks_low(const struct looks *looks);

/* Draws of which a share is 1 until the mean is shown to be above the band, were they to come as
 * evenly as can be; -1: no number will do. 43 and 88 without a 0 for 0.90 and 0.95. */
int64_t looks_needed(double share, double band);

/* Draws of 1 that are lacking until the mean of so many (any numbers) is shown to be above the
 * band; -1: no number will do. */
int64_t looks_more(double ones, double zeros, double band);

/* Probability that at most `draws` show the mean to be above the band, when each is 1 with a
 * probability of `share`, somebody looks after each, and ends when it is shown to be above or
 * below. */
double looks_power(double share, double band, uint32_t draws);

#endif
