/*
 * Scores of the field that are computed from signals: comfort, lane keeping, direction. See
 * field.h.
 */
#include "worker/score/field/field.h"

#include "base/check.h"
#include "base/units.h"
#include "worker/score/savgol.h"
#include "worker/score/score_internal.h"

#include <math.h>

enum {
    ACCEL_WINDOW = 8,
    JERK_WINDOW = 15,
    YAW_WINDOW = 5,
    ORDER = 2,
    YAW_ACCEL_ORDER = 3, /* of comfort; extended comfort takes ORDER */
};

#define DIRECTION_S 1.0
#define DIRECTION_FULL_M 2.0
#define DIRECTION_HALF_M 6.0

struct bounds {
    double low;
    double high;
};

/* [E] rounds every filtered signal. */
static double rounded(double value)
{
    return rint(value * 1e8) / 1e8;
}

static void filter(const double *in, uint32_t count, double step_s, uint32_t window, uint32_t order,
                   uint32_t derivative, double *out)
{
    struct savgol savgol;
    savgol_init(&savgol, count, window, order, derivative, step_s);
    for (uint32_t i = 0; i < count; i++) {
        out[i] = rounded(savgol_value(&savgol, in + savgol_start(&savgol, i), i));
    }
}

static void jerk_of(const double *accel, const struct field_signals *signals, double *out)
{
    double smooth[FIELD_SAMPLES_MAX];
    filter(accel, signals->count, signals->step_s, ACCEL_WINDOW, ORDER, 0, smooth);
    filter(smooth, signals->count, signals->step_s, JERK_WINDOW, ORDER, 1, out);
}

/* Headings without jumps of a whole turn. */
static void unwrap(const struct field_signals *signals, double *out)
{
    double turns = 0.0;
    for (uint32_t i = 0; i < signals->count; i++) {
        if (i > 0) {
            turns += rint((signals->heading_rad[i] - signals->heading_rad[i - 1]) / (2.0 * PI_RAD));
        }
        out[i] = signals->heading_rad[i] - 2.0 * PI_RAD * turns;
    }
}

static bool all_within(const double *values, uint32_t count, struct bounds bounds)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!(values[i] > bounds.low && values[i] < bounds.high)) {
            return false;
        }
    }
    return true;
}

static void check_count(const struct field_signals *signals)
{
    CHECK(signals->count > YAW_ACCEL_ORDER && signals->count <= FIELD_SAMPLES_MAX);
}

void field_comfort(const struct field_signals *signals, bool within[FIELD_COMFORTS])
{
    static const struct bounds bounds[FIELD_COMFORTS] = {
        {-4.05, 2.40}, {-4.89, 4.89}, {-8.37, 8.37}, {-4.13, 4.13}, {-1.93, 1.93}, {-0.95, 0.95}};
    double made[FIELD_COMFORTS][FIELD_SAMPLES_MAX];
    double heading[FIELD_SAMPLES_MAX];
    uint32_t n = signals->count;
    double step = signals->step_s;
    check_count(signals);
    unwrap(signals, heading);
    filter(signals->along_mps2, n, step, ACCEL_WINDOW, ORDER, 0, made[0]);
    filter(signals->across_mps2, n, step, ACCEL_WINDOW, ORDER, 0, made[1]);
    jerk_of(signals->length_mps2, signals, made[2]);
    jerk_of(signals->along_mps2, signals, made[3]);
    filter(heading, n, step, YAW_WINDOW, YAW_ACCEL_ORDER, 2, made[4]);
    filter(heading, n, step, YAW_WINDOW, ORDER, 1, made[5]);
    for (int i = 0; i < FIELD_COMFORTS; i++) {
        within[i] = all_within(made[i], n, bounds[i]);
    }
}

/* The four features in which plans are compared. */
static void features(const struct field_signals *signals,
                     double out[FIELD_DIFFERENCES][FIELD_SAMPLES_MAX])
{
    double heading[FIELD_SAMPLES_MAX];
    uint32_t n = signals->count;
    double step = signals->step_s;
    check_count(signals);
    unwrap(signals, heading);
    filter(signals->length_mps2, n, step, ACCEL_WINDOW, ORDER, 0, out[0]);
    jerk_of(signals->length_mps2, signals, out[1]);
    filter(heading, n, step, YAW_WINDOW, ORDER, 1, out[2]);
    filter(heading, n, step, YAW_WINDOW, ORDER, 2, out[3]);
}

bool field_extended_comfort(const struct field_signals *now, const struct field_signals *before,
                            double differences[FIELD_DIFFERENCES])
{
    static const double most[FIELD_DIFFERENCES] = {0.7, 0.5, 0.1, 0.1};
    double a[FIELD_DIFFERENCES][FIELD_SAMPLES_MAX];
    double b[FIELD_DIFFERENCES][FIELD_SAMPLES_MAX];
    bool within = true;
    CHECK(now->count == before->count);
    features(now, a);
    features(before, b);
    for (int f = 0; f < FIELD_DIFFERENCES; f++) {
        double sum = 0.0;
        for (uint32_t i = 0; i < now->count; i++) {
            sum += (a[f][i] - b[f][i]) * (a[f][i] - b[f][i]);
        }
        differences[f] = sqrt(sum / now->count);
        within = within && differences[f] <= most[f];
    }
    return within;
}

double field_lane_keeping(const double *deviation_m, const bool *in_junction, uint32_t count,
                          double step_s)
{
    uint32_t most = (uint32_t)ceil(CENTRE_RUN_S / step_s);
    struct centre_run run = {0};
    for (uint32_t i = 0; i < count; i++) {
        centre_run_add(&run, deviation_m[i], in_junction[i], most);
    }
    return run.kept_off ? 0.0 : 1.0;
}

double field_driving_direction(const double *oncoming_m, uint32_t count, double step_s)
{
    uint32_t horizon = (uint32_t)(DIRECTION_S / step_s);
    double most = 0.0;
    for (uint32_t i = 0; i < count; i++) {
        double sum = 0.0;
        for (uint32_t k = i > horizon ? i - horizon : 0; k <= i; k++) {
            sum += oncoming_m[k];
        }
        most = fmax(most, sum);
    }
    return most < DIRECTION_FULL_M ? 1.0 : most < DIRECTION_HALF_M ? 0.5 : 0.0;
}
