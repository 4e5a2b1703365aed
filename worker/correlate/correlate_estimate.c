/*
 * Means over windows with intervals over scenes. See correlate.h.
 *
 * Scenes differ in how many windows they have, so a few of them decide a mean: Kish's number of
 * draws that would be worth as much stands for the number of scenes, in the correction of the
 * variance and in the degrees of freedom. Errors are skewed, so the interval of a size is one of
 * its logarithm.
 */
#include "scheduler/rate.h"
#include "worker/correlate/correlate.h"

#include <math.h>

void correlate_error_add(struct correlate_error *errors, double value)
{
    errors->scene.count++;
    errors->scene.value += value;
    errors->most = fmax(errors->most, fabs(value));
    errors->is_signed |= value < 0;
}

void correlate_error_close(struct correlate_error *errors)
{
    double n = errors->scene.count;
    double y = errors->scene.value;
    if (n > 0) {
        errors->scenes++;
        errors->all.count += n;
        errors->all.value += y;
        errors->yy += y * y;
        errors->yn += y * n;
        errors->nn += n * n;
    }
    errors->scene = (struct correlate_sum){0};
}

/* Student's t between whole degrees of freedom, of which there is at least one. */
static double t95(double degrees)
{
    double below = fmax(floor(degrees), 1);
    double part = fmax(degrees - below, 0);
    return (1 - part) * rate_t95((int64_t)below) + part * rate_t95((int64_t)below + 1);
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
    if (errors->scenes > 1) {
        double worth = n * n / errors->nn;
        double squares = errors->yy - 2 * out.mean * errors->yn + out.mean * out.mean * errors->nn;
        double deviation = sqrt(fmax(squares, 0) / (1 - 1 / worth)) / n;
        double half = t95(worth - 1) * deviation;
        bool size = !errors->is_signed && out.mean > 0;
        out.low = size ? out.mean * exp(-half / out.mean) : out.mean - half;
        out.high = size ? out.mean * exp(half / out.mean) : out.mean + half;
    }
    return out;
}
