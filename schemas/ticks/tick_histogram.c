/*
 * Counts by bounds. See tick_histogram.h.
 */
#include "schemas/ticks/tick_histogram.h"

#include <math.h>
#include <stddef.h>

const char *const tick_part_names[TICK_PARTS] = {"wait", "compute", "overhead", "slack"};

const double tick_bounds_ms[TICK_BOUNDS] = {0,  0.1, 0.2, 0.5, 1,  2,  5,   10,  15,  20,  25,  30,
                                            40, 50,  60,  70,  80, 90, 100, 150, 200, 500, 1000};

void tick_histogram_add(struct tick_histogram *histogram, double value_ms)
{
    size_t bucket = 0;
    while (bucket < TICK_BOUNDS && value_ms > tick_bounds_ms[bucket]) {
        bucket++;
    }
    histogram->counts[bucket]++;
    histogram->sum_ms += value_ms;
}

uint64_t tick_histogram_count(const struct tick_histogram *histogram)
{
    uint64_t count = 0;
    for (size_t i = 0; i <= TICK_BOUNDS; i++) {
        count += histogram->counts[i];
    }
    return count;
}

double tick_histogram_quantile_ms(const struct tick_histogram *histogram, double share)
{
    double wanted = share * (double)tick_histogram_count(histogram);
    uint64_t below = 0;
    if (tick_histogram_count(histogram) == 0) {
        return 0.0;
    }
    for (size_t i = 0; i < TICK_BOUNDS; i++) {
        below += histogram->counts[i];
        if (below > 0 && (double)below >= wanted) {
            return tick_bounds_ms[i];
        }
    }
    return (double)INFINITY;
}
