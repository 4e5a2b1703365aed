/*
 * Exact signs, Holm, and means over clusters. See paired.h.
 */
#include "scheduler/paired.h"
#include "scheduler/rate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

double paired_least_p(uint32_t changed)
{
    return fmin(1.0, ldexp(1.0, 1 - (int)changed));
}

/* Level that a test's least p must reach for it to be one. */
static double tarone_level(const double *p, const double *least, uint32_t count)
{
    for (uint32_t k = 1;; k++) {
        uint32_t can = 0;
        for (uint32_t i = 0; i < count; i++) {
            can += !isnan(p[i]) && least[i] <= PAIRED_FINDING_P / k;
        }
        if (can <= k) {
            return PAIRED_FINDING_P / k;
        }
    }
}

void paired_holm(double *p, const double *least, uint32_t count, uint32_t *scratch)
{
    uint32_t tests = 0;
    double largest = 0;
    double level = tarone_level(p, least, count);
    for (uint32_t i = 0; i < count; i++) {
        if (isnan(p[i]) || least[i] > level) {
            p[i] = isnan(p[i]) ? p[i] : 1.0;
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

struct paired_mean paired_mean(const struct paired_cluster *clusters, uint32_t count)
{
    struct paired_mean out = {.value = NAN, .low = -INFINITY, .high = INFINITY};
    double sum = 0;
    double cases = 0;
    double squares = 0;
    double fourths = 0;
    for (uint32_t i = 0; i < count; i++) {
        sum += clusters[i].sum;
        cases += clusters[i].cases;
        out.clusters += clusters[i].cases > 0;
        out.changed += clusters[i].sum != 0;
    }
    if (cases <= 0) {
        return out;
    }
    out.value = sum / cases;
    for (uint32_t i = 0; i < count; i++) { /* the ratio of sums, linearised */
        double from_mean = clusters[i].sum - out.value * clusters[i].cases;
        squares += from_mean * from_mean;
        fourths += from_mean * from_mean * from_mean * from_mean;
    }
    if (out.changed == 0) {
        out.low = 0;
        out.high = 0;
    } else if (out.clusters >= RATE_CLUSTERS_MIN) {
        double k = out.clusters;
        double error = sqrt(squares * k / (k - 1)) / cases;
        double half = rate_t95(rate_degrees(squares, fourths, k)) * error;
        out.low = out.value - half;
        out.high = out.value + half;
    }
    return out;
}

const char *paired_mean_text(const struct paired_mean *mean, char text[PAIRED_TEXT_BYTES])
{
    if (mean->changed == 0) {
        snprintf(text, PAIRED_TEXT_BYTES, "%+.4g (the same everywhere)", mean->value);
    } else if (isfinite(mean->low)) {
        snprintf(text, PAIRED_TEXT_BYTES, "%+.4g [%+.4g, %+.4g]", mean->value,
                 rate_down(mean->low, rate_step(mean->low, 4)),
                 rate_up(mean->high, rate_step(mean->high, 4)));
    } else {
        snprintf(text, PAIRED_TEXT_BYTES, "%+.4g (of %u: too few for an interval)", mean->value,
                 mean->clusters);
    }
    return text;
}
