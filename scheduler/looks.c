/*
 * Evidence as a mean over bets. See looks.h.
 */
#include "scheduler/looks.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { BETS = 128, STEPS = 24 };

int64_t looks_draws(const struct looks *looks)
{
    return looks->ones + looks->zeros + looks->part_count;
}

double looks_mean(const struct looks *looks)
{
    double sum = (double)looks->ones;
    for (uint32_t i = 0; i < looks->part_count; i++) {
        sum += looks->parts[i];
    }
    return looks_draws(looks) > 0 ? sum / (double)looks_draws(looks) : (double)NAN;
}

/* Logarithm of the mean of exp(value). */
static double mean_log(const double value[BETS])
{
    double most = value[0];
    double sum = 0.0;
    for (int i = 1; i < BETS; i++) {
        most = value[i] > most ? value[i] : most;
    }
    for (int i = 0; i < BETS; i++) {
        sum += exp(value[i] - most);
    }
    return most + log(sum / BETS);
}

/* Against a mean of m, with bets from `from` to `to`; shares of draws may be any number. */
static double evidence(const struct looks *looks, double ones, double zeros, double m, double from,
                       double to)
{
    double value[BETS];
    for (int i = 0; i < BETS; i++) {
        double p = from + (to - from) * (i + 0.5) / BETS;
        double won = p / m;
        double lost = (1.0 - p) / (1.0 - m);
        value[i] = ones * log(won) + zeros * log(lost);
        for (uint32_t k = 0; looks != NULL && k < looks->part_count; k++) {
            value[i] += log(looks->parts[k] * won + (1.0 - looks->parts[k]) * lost);
        }
    }
    return mean_log(value);
}

double looks_above(const struct looks *looks, double band)
{
    if (band <= 0.0 || band >= 1.0) {
        return band <= 0.0 && looks_draws(looks) > 0 ? INFINITY : -INFINITY;
    }
    return evidence(looks, (double)looks->ones, (double)looks->zeros, band, band, 1.0);
}

double looks_below(const struct looks *looks, double band)
{
    if (band <= 0.0 || band >= 1.0) {
        return band >= 1.0 && looks->ones < looks_draws(looks) ? INFINITY : -INFINITY;
    }
    return evidence(looks, (double)looks->ones, (double)looks->zeros, band, 0.0, band);
}

double looks_low(const struct looks *looks)
{
    double low = 0.0;
    double high = looks_draws(looks) > 0 ? looks_mean(looks) : 0.0;
    for (int i = 0; i < STEPS; i++) {
        double middle = 0.5 * (low + high);
        bool shown = middle > 0.0 && looks_above(looks, middle) >= log(LOOKS_EVIDENCE);
        low = shown ? middle : low;
        high = shown ? high : middle;
    }
    return low;
}

int64_t looks_needed(double share, double band)
{
    int64_t low = 1;
    int64_t high = INT64_C(1) << 40;
    share = isnan(share) ? 1.0 : share;
    if (band <= 0.0) {
        return 1;
    }
    if (share <= band) {
        return -1;
    }
    while (low < high) { /* the logarithm is convex in the draws and begins at 0 */
        int64_t middle = low + (high - low) / 2;
        double ones = share * (double)middle;
        if (evidence(NULL, ones, (double)middle - ones, band, band, 1.0) >= log(LOOKS_EVIDENCE)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

int64_t looks_more(double ones, double zeros, double band)
{
    int64_t low = 0;
    int64_t high = INT64_C(1) << 40;
    if (band <= 0.0 || band >= 1.0) {
        return band >= 1.0 ? -1 : ones + zeros < 1;
    }
    while (low < high) { /* a draw of 1 is always more evidence */
        int64_t middle = low + (high - low) / 2;
        if (evidence(NULL, ones + (double)middle, zeros, band, band, 1.0) >= log(LOOKS_EVIDENCE)) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

double looks_power(double share, double band, uint32_t draws)
{
    double *zeros =
        calloc((size_t)draws + 2, sizeof *zeros); /* probability of so many, undecided */
    double passed = 0.0;
    uint32_t most = 0;  /* zeros that are too many to be shown above */
    uint32_t least = 1; /* .. that are enough to be shown below */
    if (zeros == NULL) {
        return NAN;
    }
    zeros[0] = 1.0;
    for (uint32_t n = 1; n <= draws; n++) {
        struct looks looks = {.ones = (int64_t)n - most, .zeros = most};
        for (uint32_t k = n; k > 0; k--) {
            zeros[k] = share * zeros[k] + (1.0 - share) * zeros[k - 1];
        }
        zeros[0] *= share;
        while (most <= n && looks_above(&looks, band) >= log(LOOKS_EVIDENCE)) {
            most++;
            looks = (struct looks){.ones = (int64_t)n - most, .zeros = most};
        }
        for (uint32_t k = 0; k < most; k++) {
            passed += zeros[k];
            zeros[k] = 0.0;
        }
        looks = (struct looks){.ones = (int64_t)n - least, .zeros = least};
        while (least <= n && looks_below(&looks, band) < log(LOOKS_EVIDENCE)) {
            least++;
            looks = (struct looks){.ones = (int64_t)n - least, .zeros = least};
        }
        for (uint32_t k = least; k <= n; k++) {
            zeros[k] = 0.0;
        }
    }
    free(zeros);
    return passed;
}
