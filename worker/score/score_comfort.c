/*
 * Comfort after nuPlan's "ego is comfortable": the recorded signals through Savitzky-Golay filters,
 * every sample within fixed bounds. See worker/METRICS.md for windows, orders and their sources.
 */
#include "base/dmath.h"
#include "base/units.h"
#include "worker/score/savgol.h"
#include "worker/score/score_internal.h"

#include <math.h>
#include <string.h>

enum {
    ACCEL_WINDOW = 8,
    ACCEL_ORDER = 2,
    JERK_WINDOW = 15,
    JERK_ORDER = 2,
    YAW_WINDOW = 5,
    YAW_RATE_ORDER = 2,
    YAW_ACCEL_ORDER = 3,
};

/* nuPlan's bounds, determined there from expert driving; a sample on a bound is outside. */
#define LON_ACCEL_MIN_MPS2 (-4.05)
#define LON_ACCEL_MAX_MPS2 2.40
#define LAT_ACCEL_MAX_MPS2 4.89
#define JERK_MAX_MPS3 8.37
#define LON_JERK_MAX_MPS3 4.13
#define YAW_RATE_MAX_RPS 0.95
#define YAW_ACCEL_MAX_RPS2 1.93

struct range {
    double min;
    double max;
};

static void widen(struct range *range, double value)
{
    range->min = dmath_min(range->min, value);
    range->max = dmath_max(range->max, value);
}

static double largest(struct range range)
{
    return dmath_max(-range.min, range.max);
}

static struct range filtered_range(const struct savgol *filter, const double *samples)
{
    struct range range = {INFINITY, -INFINITY};
    for (uint32_t i = 0; i < filter->count; i++) {
        widen(&range, savgol_value(filter, samples + savgol_start(filter, i), i));
    }
    return range;
}

/* Range of the outer filter over the output of the inner one, which is produced as the outer
 * window slides, so that no second series has to be stored. */
static struct range filtered_twice_range(const struct savgol *outer, const struct savgol *inner,
                                         const double *samples)
{
    struct range range = {INFINITY, -INFINITY};
    double held[SAVGOL_WINDOW_MAX];
    uint32_t held_start = 0;
    uint32_t held_count = 0;
    for (uint32_t i = 0; i < outer->count; i++) {
        uint32_t start = savgol_start(outer, i);
        while (held_start + held_count < start + outer->window) {
            if (held_count == outer->window) {
                memmove(held, held + 1, (held_count - 1) * sizeof held[0]);
                held_start++;
                held_count--;
            }
            uint32_t next = held_start + held_count;
            held[held_count++] = savgol_value(inner, samples + savgol_start(inner, next), next);
        }
        widen(&range, savgol_value(outer, held, i));
    }
    return range;
}

struct comfort comfort_measure(const struct score *score)
{
    uint32_t count = score->sample_count;
    struct savgol accel;
    struct savgol jerk;
    struct savgol yaw_rate;
    struct savgol yaw_accel;
    savgol_init(&accel, count, ACCEL_WINDOW, ACCEL_ORDER, 0, TICK_S);
    savgol_init(&jerk, count, JERK_WINDOW, JERK_ORDER, 1, TICK_S);
    savgol_init(&yaw_rate, count, YAW_WINDOW, YAW_RATE_ORDER, 1, TICK_S);
    savgol_init(&yaw_accel, count, YAW_WINDOW, YAW_ACCEL_ORDER, 2, TICK_S);

    const double *lon = score_signal(score, SIGNAL_LON_ACCEL);
    const double *heading = score_signal(score, SIGNAL_HEADING);
    struct range lon_accel = filtered_range(&accel, lon);
    struct comfort comfort = {
        .lon_accel_min_mps2 = lon_accel.min,
        .lon_accel_max_mps2 = lon_accel.max,
        .lat_accel_max_mps2 =
            largest(filtered_range(&accel, score_signal(score, SIGNAL_LAT_ACCEL))),
        .lon_jerk_max_mps3 = largest(filtered_twice_range(&jerk, &accel, lon)),
        .jerk_max_mps3 =
            largest(filtered_twice_range(&jerk, &accel, score_signal(score, SIGNAL_ACCEL))),
        .yaw_rate_max_rps = largest(filtered_range(&yaw_rate, heading)),
        .yaw_accel_max_rps2 = largest(filtered_range(&yaw_accel, heading)),
    };
    comfort.comfortable = comfort.lon_accel_min_mps2 > LON_ACCEL_MIN_MPS2 &&
                          comfort.lon_accel_max_mps2 < LON_ACCEL_MAX_MPS2 &&
                          comfort.lat_accel_max_mps2 < LAT_ACCEL_MAX_MPS2 &&
                          comfort.lon_jerk_max_mps3 < LON_JERK_MAX_MPS3 &&
                          comfort.jerk_max_mps3 < JERK_MAX_MPS3 &&
                          comfort.yaw_rate_max_rps < YAW_RATE_MAX_RPS &&
                          comfort.yaw_accel_max_rps2 < YAW_ACCEL_MAX_RPS2;
    return comfort;
}
