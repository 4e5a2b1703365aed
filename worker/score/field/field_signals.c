/*
 * Extended comfort from filtered signals. See field_signals.h.
 */
#include "worker/score/field/field_signals.h"

#include "base/check.h"
#include "base/units.h"
#include "worker/score/savgol.h"

#include <math.h>

enum {
    ACCEL_WINDOW = 8,
    JERK_WINDOW = 15,
    YAW_WINDOW = 5,
    ORDER = 2,
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

static void check_count(const struct field_signals *signals)
{
    CHECK(signals->count >= 4 && signals->count <= FIELD_SAMPLES_MAX);
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
    filter(signals->accel_mps2, n, step, ACCEL_WINDOW, ORDER, 0, out[0]);
    jerk_of(signals->accel_mps2, signals, out[1]);
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
