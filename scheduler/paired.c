/*
 * Exact signs, Holm, and the clustered bootstrap. See paired.h.
 */
#include "scheduler/paired.h"
#include "scheduler/rate.h"

#include "base/rng.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RESAMPLES = 1000, TAIL = RESAMPLES * 25 / 1000 };
#define EXACT_STEPS_MAX 1e8

static double normal_p(int64_t observed, double variance)
{
    /* Half a step towards the middle, as sums move by two. */
    double z = variance > 0 ? fmax(0.0, (double)llabs(observed) - 1.0) / sqrt(variance) : 0.0;
    return erfc(z / sqrt(2.0));
}

/* The share of sign patterns whose sum is at least as far from 0; `total` is the largest sum. */
static double count_signs(const int32_t *net, uint32_t count, int64_t total, int64_t observed,
                          double *share)
{
    size_t size = (size_t)total + 1; /* of what is above the smallest sum, in steps of two */
    int64_t reach = 0;
    double p = 0;
    memset(share, 0, size * sizeof *share);
    share[0] = 1.0;
    for (uint32_t i = 0; i < count; i++) {
        int64_t step = llabs((long long)net[i]);
        if (step == 0) {
            continue;
        }
        reach += step;
        for (int64_t at = reach; at >= 0; at--) {
            double up = at >= step ? share[at - step] : 0.0;
            share[at] = (share[at] + up) / 2;
        }
    }
    for (int64_t at = 0; at <= total; at++) {
        if (llabs(2 * at - total) >= llabs(observed)) {
            p += share[at];
        }
    }
    return fmin(p, 1.0);
}

double paired_exact_p(const int32_t *net, uint32_t count)
{
    int64_t total = 0;
    int64_t observed = 0;
    double variance = 0;
    double changed = 0;
    for (uint32_t i = 0; i < count; i++) {
        total += llabs((long long)net[i]);
        observed += net[i];
        variance += (double)net[i] * net[i];
        changed += net[i] != 0;
    }
    if (total == 0) {
        return 1.0;
    }
    double *share = (double)total * changed <= EXACT_STEPS_MAX
                        ? malloc(((size_t)total + 1) * sizeof *share)
                        : NULL;
    if (share == NULL) {
        return normal_p(observed, variance);
    }
    double p = count_signs(net, count, total, observed, share);
    free(share);
    return p;
}

void paired_holm(double *p, uint32_t count, uint32_t *scratch)
{
    uint32_t tests = 0;
    double largest = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (isnan(p[i])) {
            continue;
        }
        uint32_t at = tests++;
        for (; at > 0 && p[scratch[at - 1]] > p[i]; at--) {
            scratch[at] = scratch[at - 1];
        }
        scratch[at] = i;
    }
    for (uint32_t rank = 0; rank < tests; rank++) {
        largest = fmax(largest, fmin(1.0, p[scratch[rank]] * (double)(tests - rank)));
        p[scratch[rank]] = largest;
    }
}

/* ---- means ---- */

struct sums {
    double sum;
    double cases;
    double ss; /* squares and products of the clusters' sums and cases */
    double sn;
    double nn;
};

static void add(struct sums *sums, const struct paired_cluster *cluster)
{
    sums->sum += cluster->sum;
    sums->cases += cluster->cases;
    sums->ss += cluster->sum * cluster->sum;
    sums->sn += cluster->sum * cluster->cases;
    sums->nn += cluster->cases * cluster->cases;
}

/* Standard error of the ratio of sums, by linearisation. */
static double standard_error(const struct sums *sums, uint32_t count)
{
    double mean = sums->sum / sums->cases;
    double squares = sums->ss - 2 * mean * sums->sn + mean * mean * sums->nn;
    double k = (double)count;
    return sqrt(fmax(squares, 0.0) * k / (k - 1)) / sums->cases;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Quantiles of (resampled mean - mean) / its error. A resample in which nothing varies says nothing
 * of the scale: it counts as no deviation. */
static void bootstrap(const struct paired_cluster *clusters, uint32_t count, double mean,
                      double *low, double *high)
{
    double t[RESAMPLES];
    for (uint32_t r = 0; r < RESAMPLES; r++) {
        struct sums sums = {0};
        for (uint32_t i = 0; i < count; i++) {
            double u = rng_uniform(1, RNG_STREAM_TEST, r, i);
            add(&sums, &clusters[(uint32_t)(u * count)]);
        }
        double error = sums.cases > 0 ? standard_error(&sums, count) : 0.0;
        t[r] = error > 1e-12 * fabs(mean) ? (sums.sum / sums.cases - mean) / error : 0.0;
    }
    qsort(t, RESAMPLES, sizeof *t, compare_doubles);
    *low = t[TAIL];
    *high = t[RESAMPLES - 1 - TAIL];
}

struct paired_mean paired_mean(const struct paired_cluster *clusters, uint32_t count)
{
    struct sums sums = {0};
    struct paired_mean out = {NAN, -INFINITY, INFINITY};
    uint32_t filled = 0;
    bool still = true; /* every difference is 0 */
    for (uint32_t i = 0; i < count; i++) {
        add(&sums, &clusters[i]);
        filled += clusters[i].cases > 0;
        still = still && clusters[i].sum == 0;
    }
    if (sums.cases <= 0) {
        return out;
    }
    out.value = sums.sum / sums.cases;
    if (still) {
        return (struct paired_mean){0.0, 0.0, 0.0};
    }
    if (filled < 2) {
        return out;
    }
    double error = standard_error(&sums, count);
    double t = rate_t95((int64_t)filled - 1);
    double low;
    double high;
    bootstrap(clusters, count, out.value, &low, &high);
    out.low = out.value - fmax(t, high) * error;
    out.high = out.value + fmax(t, -low) * error;
    return out;
}
