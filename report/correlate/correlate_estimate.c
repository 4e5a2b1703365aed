/*
 * Means over windows with intervals over scenes. See correlate.h.
 *
 * Scenes differ in how many windows they have, so a few of them decide a mean: Kish's number of
 * draws that would be worth as much stands for the number of scenes, in the correction of the
 * variance and in the degrees of freedom, which are fewer still where few scenes make up the
 * spread. Errors are skewed, so the interval of a size is one of its logarithm.
 */
#include "report/correlate/correlate_foresight.h"
#include "scheduler/rate.h"

#include <math.h>

const char *const correlate_names[CORRELATE_MODEL_COUNT] = {
    "kinematic",        "single_track", "straight",     "traffic",
    "traffic_straight", "foreseen",     "accelerating", "tokens"};
const double correlate_horizons_s[CORRELATE_HORIZONS] = {1, 2, 3, 5};

int correlate_horizon_at(uint32_t ticks)
{
    for (int h = 0; h < CORRELATE_HORIZONS; h++) {
        if ((uint32_t)lround(correlate_horizons_s[h] / TICK_S) == ticks) {
            return h;
        }
    }
    return -1;
}

void correlate_error_add(struct correlate_error *errors, double value)
{
    errors->scene.count++;
    errors->scene.value += value;
    errors->most = fmax(errors->most, fabs(value));
    errors->is_signed |= value < 0;
}

void correlate_error_add_share(struct correlate_error *errors, double value)
{
    errors->is_share = true;
    correlate_error_add(errors, value);
}

void correlate_compare(struct correlate *correlate, enum correlate_model model, int horizon,
                       const struct trajectory_point *recorded, double x_m, double y_m,
                       double speed_mps)
{
    struct correlate_cell *cell = &correlate->cells[model][horizon];
    double dx_m = x_m - recorded->x_m;
    double dy_m = y_m - recorded->y_m;
    correlate_error_add(&cell->position_m, hypot(dx_m, dy_m));
    correlate_error_add(&cell->along_m,
                        dx_m * cos(recorded->heading_rad) + dy_m * sin(recorded->heading_rad));
    correlate_error_add(&cell->speed_mps, fabs(speed_mps - recorded->speed_mps));
}

void correlate_error_close(struct correlate_error *errors)
{
    double n = errors->scene.count;
    double y = errors->scene.value;
    double powers[5] = {y * y * y * y, y * y * y * n, y * y * n * n, y * n * n * n, n * n * n * n};
    if (n > 0) {
        errors->scenes++;
        errors->all.count += n;
        errors->all.value += y;
        errors->yy += y * y;
        errors->yn += y * n;
        errors->nn += n * n;
        for (int i = 0; i < 5; i++) {
            errors->fourths[i] += powers[i];
        }
    }
    errors->scene = (struct correlate_sum){0};
}

/* The sum over scenes of (y - mean n)^4. */
static double fourths(const struct correlate_error *errors, double mean)
{
    static const double binomial[5] = {1, -4, 6, -4, 1};
    double sum = 0;
    double power = 1;
    for (int i = 0; i < 5; i++) {
        sum += binomial[i] * power * errors->fourths[i];
        power *= mean;
    }
    return fmax(sum, 0);
}

struct correlate_estimate correlate_estimate(const struct correlate_error *errors)
{
    double n = errors->all.count;
    struct correlate_estimate out = {.mean = NAN,
                                     .low = NAN,
                                     .high = NAN,
                                     .most = errors->most,
                                     .windows = n,
                                     .scenes = errors->scenes};
    if (n > 0) {
        out.mean = errors->all.value / n;
    }
    if (errors->scenes >= RATE_CLUSTERS_MIN) {
        double worth = n * n / errors->nn;
        double squares = errors->yy - 2 * out.mean * errors->yn + out.mean * out.mean * errors->nn;
        double deviation = sqrt(fmax(squares, 0) / (1 - 1 / worth)) / n;
        double degrees = rate_degrees(squares, fourths(errors, out.mean), worth - 1);
        double half = rate_t95(degrees) * deviation;
        bool size = !errors->is_signed && out.mean > 0;
        out.low = size ? out.mean * exp(-half / out.mean) : out.mean - half;
        out.high = size ? out.mean * exp(half / out.mean) : out.mean + half;
        out.low = errors->is_share ? fmax(out.low, -1) : out.low;
        out.high = errors->is_share ? fmin(out.high, 1) : out.high;
    }
    return out;
}
