/*
 * Sums over clusters and Wilson's interval. See rate.h.
 */
#include "scheduler/rate.h"

#include "base/units.h"

#include <math.h>

/* Sums of shares may be off a whole number by what rounding left. */
#define ROUNDING 1e-9

/* Adds y^k n^(order - k) to sums[k], k from 0 to the order. */
static void add_powers(double y, double n, int order, double *sums)
{
    for (int k = 0; k <= order; k++) {
        sums[k] += pow(y, k) * pow(n, order - k);
    }
}

static void close_logical(struct rate *rate)
{
    double n = (double)rate->logical_cases;
    double y = rate->logical_sum;
    if (rate->logical_cases > 0) {
        rate->logical++;
        rate->largest = rate->logical_cases > rate->largest ? rate->logical_cases : rate->largest;
        rate->cube_sum += n * n * n;
        add_powers(y, n, 2, rate->square_sum);
        add_powers(y, n, 4, rate->fourth_sum);
        rate->below_one += y < n - ROUNDING;
        rate->above_zero += y > ROUNDING;
    }
    rate->logical_cases = 0;
    rate->logical_sum = 0;
}

static void close_case(struct rate *rate)
{
    double drives = (double)rate->case_drives;
    if (share_add(&rate->share, rate->case_sum, drives, (double)rate->case_missing)) {
        rate->logical_cases++;
        rate->logical_sum += rate->case_sum / drives;
    }
    rate->case_drives = 0;
    rate->case_missing = 0;
    rate->case_sum = 0;
}

void rate_add(struct rate *rate, int64_t logical_key, int64_t case_key, double value)
{
    if (case_key != rate->case_key) {
        close_case(rate);
    }
    if (logical_key != rate->logical_key) {
        close_logical(rate);
    }
    rate->case_key = case_key;
    rate->logical_key = logical_key;
    if (isnan(value)) {
        rate->missing++;
        rate->case_missing++;
    } else {
        rate->drives++;
        rate->case_drives++;
        rate->case_sum += value;
    }
}

/* gamma(a + 1/2) / gamma(a): the series for large a (Tricomi, Erdelyi, Pacific J. Math. 1, 1951),
 * and down from there. lgamma() would write a global that threads share. */
static double half_step_of_gamma(double a)
{
    enum { LARGE = 30 };
    double factor = 1;
    for (; a < LARGE; a++) {
        factor *= a / (a + 0.5);
    }
    double x = 1 / a;
    double series =
        1 + x * (-1.0 / 8 +
                 x * (1.0 / 128 + x * (5.0 / 1024 + x * (-21.0 / 32768 - x * 399 / 262144))));
    return factor * sqrt(a) * series;
}

/* Continued fraction of the incomplete beta function (Abramowitz, Stegun, 26.5.8), by Lentz. */
static double beta_fraction(double a, double b, double x)
{
    enum { TERMS_MAX = 500 };
    double d = 1 / (1 - (a + b) * x / (a + 1));
    double c = 1;
    double value = d;
    double step = 0;
    for (int m = 1; m < TERMS_MAX && fabs(step - 1) > 1e-15; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / (1 + even * d);
        c = 1 + even / c;
        value *= c * d;
        d = 1 / (1 + odd * d);
        c = 1 + odd / c;
        step = c * d;
        value *= step;
    }
    return value;
}

/* Probability that Student's t is farther from 0 than t > 0, and its density there. */
static double student_tail(double t, double v, double *density)
{
    double x = v / (v + t * t);
    double front = half_step_of_gamma(v / 2) / sqrt(PI_RAD) * exp(v / 2 * log(x)) * sqrt(1 - x);
    *density = front / t; /* x^(v / 2) sqrt(1 - x) is (1 + t^2 / v)^(-(v + 1) / 2) t / sqrt(v) */
    return x < (v + 2) / (v + 5) ? front * beta_fraction(v / 2, 0.5, x) / (v / 2)
                                 : 1 - front * beta_fraction(0.5, v / 2, 1 - x) / 0.5;
}

double rate_t95(double degrees)
{
    enum { STEPS_MAX = 20 };
    double v = fmax(degrees, 1);
    double t = RATE_Z95;
    double step = 1;
    /* Newton's, in logarithms: the tail is nearly a power there. */
    for (int i = 0; i < STEPS_MAX && fabs(step) > 1e-14; i++) {
        double density;
        double tail = student_tail(t, v, &density);
        step = log(tail / 0.05) * tail / (2 * density * t);
        t *= exp(step);
    }
    return t;
}

double rate_degrees(double squares, double fourths, double most)
{
    return fmin(fourths > 0 ? squares * squares / fourths : most, most);
}

void rate_wilson(double share, double n, double z, double *low, double *high)
{
    if (!(n > 0)) {
        *low = 0.0;
        *high = 1.0;
        return;
    }
    double p = fmin(fmax(share, 0.0), 1.0);
    double centre = p + z * z / (2.0 * n);
    double half = z * sqrt(p * (1.0 - p) / n + z * z / (4.0 * n * n));
    double scale = 1.0 / (1.0 + z * z / n);
    /* Exact at the ends, where rounding would leave a trace. */
    *low = p == 0.0 ? 0.0 : fmax((centre - half) * scale, 0.0);
    *high = p == 1.0 ? 1.0 : fmin((centre + half) * scale, 1.0);
}

void rate_interval(double share, double n, double *low, double *high)
{
    double unused;
    rate_wilson(share - 0.5 / n, n, RATE_Z95, low, &unused);
    rate_wilson(share + 0.5 / n, n, RATE_Z95, &unused, high);
}

double rate_down(double value, double step)
{
    return floor(value / step + ROUNDING) * step + 0.0; /* no -0 */
}

double rate_up(double value, double step)
{
    return ceil(value / step - ROUNDING) * step + 0.0;
}

double rate_step(double value, int digits)
{
    return value == 0 ? 1 : pow(10, floor(log10(fabs(value))) + 1 - digits);
}

/* Draws of which a part is what logical scenarios that are unlike in size make up: as many as would
 * have so large a part of as many logical scenarios as these are worth (Kish). */
static double draws_of_part(double part, double square_sum, double cases)
{
    return square_sum > 0 ? part * cases / square_sum : INFINITY;
}

/* Draws that there are at the least: where logical scenarios end as a whole, what all weigh is
 * worth, and no more than what those that failed, or passed, say. */
static double draws_least(const struct rate *rate, double s2)
{
    const double *of2 = rate->square_sum;
    double cases = (double)rate->share.cases;
    double passed = rate->share.value_sum;
    double failed = cases - passed;
    double least = fmin(draws_of_part(failed, of2[0] - 2 * of2[1] + of2[2], cases),
                        draws_of_part(passed, of2[2], cases));
    return fmin(least, 1 / s2);
}

/* Independent draws that would spread as much as the logical scenarios do. */
static double draws(const struct rate *rate, double p)
{
    double cases = (double)rate->share.cases;
    double s2 = rate->square_sum[0] / (cases * cases);
    double s3 = rate->cube_sum / (cases * cases * cases);
    double unbiased = s2 - 2 * s3 + s2 * s2; /* 0: one logical scenario is all there is */
    if (rate->below_one == 0 || rate->above_zero == 0 || unbiased <= ROUNDING * s2) {
        return 1 / s2;
    }
    const double *of2 = rate->square_sum;
    const double *of4 = rate->fourth_sum;
    double squares = of2[2] - 2 * p * of2[1] + p * p * of2[0];
    double fourths = of4[4] + p * (-4 * of4[3] + p * (6 * of4[2] + p * (-4 * of4[1] + p * of4[0])));
    if (squares <= ROUNDING * of2[0]) { /* all alike, and neither 0 nor 1 */
        return (double)rate->drives;
    }
    double variance = squares / (cases * cases) * s2 / unbiased;
    double n = fmin(p * (1 - p) / variance, (double)rate->drives);
    double t = rate_t95(rate_degrees(squares, fourths, 1 / s2) - 1);
    return fmax(n * RATE_Z95 * RATE_Z95 / (t * t), draws_least(rate, s2));
}

struct rate_estimate rate_estimate(const struct rate *rate)
{
    struct rate whole = *rate;
    close_case(&whole);
    close_logical(&whole);
    struct rate_estimate out = {.value = NAN,
                                .high = 1.0,
                                .worst = share_worst(&whole.share),
                                .best = share_best(&whole.share),
                                .drives = whole.drives,
                                .missing = whole.missing,
                                .cases = whole.share.cases,
                                .logical = whole.logical};
    if (out.cases > 0) {
        out.value = whole.below_one == 0    ? 1.0
                    : whole.above_zero == 0 ? 0.0
                                            : share_value(&whole.share);
        out.largest = (double)whole.largest / (double)out.cases;
        rate_interval(out.value, draws(&whole, out.value), &out.low, &out.high);
    }
    return out;
}

/* Distance of an end of a difference, from those of its parts. */
static double joined(double first, double second, double twice_correlation)
{
    return sqrt(first * first + second * second - twice_correlation * first * second);
}

struct rate_difference rate_difference(const struct rate *gains, const struct rate *losses)
{
    struct rate_estimate up = rate_estimate(gains);
    struct rate_estimate down = rate_estimate(losses);
    if (up.cases == 0) {
        return (struct rate_difference){.value = NAN, .low = -1.0, .high = 1.0};
    }
    double value = up.value - down.value;
    double odds = up.value * down.value / ((1 - up.value) * (1 - down.value));
    double both = up.value + down.value < 1 ? -2 * sqrt(odds) : -2; /* twice the correlation */
    return (struct rate_difference){
        .value = value,
        .low = fmax(-1.0, value - joined(up.value - up.low, down.high - down.value, both)),
        .high = fmin(1.0, value + joined(up.high - up.value, down.value - down.low, both)),
    };
}
