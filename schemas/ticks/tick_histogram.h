/*
 * Histograms of what ticks of sessions took: counts by fixed bounds, so that they can be added,
 * scraped, and asked for a quantile. A spike once in a hundred ticks shows in them.
 */
#ifndef SWERVE_SCHEMAS_TICKS_TICK_HISTOGRAM_H
#define SWERVE_SCHEMAS_TICKS_TICK_HISTOGRAM_H

#include "schemas/limits.h"

#include <stdint.h>

/* Parts of a tick that are counted. */
enum tick_part {
    TICK_WAIT = 0, /* from its moment until it was begun */
    TICK_COMPUTE,  /* from then until the state after it */
    TICK_OVERHEAD, /* from then until it was told */
    TICK_SLACK,    /* left of the deadline when it was computed; below 0: late */
    TICK_PARTS
};

extern const char *const tick_part_names[TICK_PARTS];

enum { TICK_BOUNDS = 23 };

/* Upper bounds of the buckets in milliseconds, rising; one more bucket has what is beyond. */
extern const double tick_bounds_ms[TICK_BOUNDS];

struct tick_histogram {
    uint64_t counts[TICK_BOUNDS + 1];
    double sum_ms;
};

/* Ticks of one tier of sessions. */
struct tick_tier {
    char tier[LIMIT_ID_BYTES];
    uint32_t steps; /* of a sampler */
    uint64_t ticks, lates;
    struct tick_histogram parts[TICK_PARTS];
};

void tick_histogram_add(struct tick_histogram *histogram, double value_ms);
uint64_t tick_histogram_count(const struct tick_histogram *histogram);
/* Bound below or at which a share of the values lies, 0 to 1; INFINITY: beyond the last bound, 0
 * where there are none. */
double tick_histogram_quantile_ms(const struct tick_histogram *histogram, double share);

#endif
