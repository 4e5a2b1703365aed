/*
 * Comfort: the Savitzky-Golay filter against scipy's published behaviour (a stored run of
 * savgol_filter) and against a dense least-squares solution for every window, order, derivative and
 * length; then the comfort metric against the same dense solution, each bound just kept and just
 * broken.
 */
#include "base/rng.h"
#include "tests/worker/rig.h"
#include "worker/score/savgol.h"
#include "worker/score/score_internal.h"

enum { SERIES_MAX = 64 };

/* ---- the independent answer ---- */

/* Fits monomials to y[0..window) by the normal equations, solved by elimination in long double, and
 * reads the derivative at position x. */
static double dense_fit(const double *y, uint32_t window, uint32_t order, uint32_t derivative,
                        double x, double step)
{
    uint32_t n = (order < window ? order : window - 1) + 1;
    long double a[4][5] = {{0}};
    for (uint32_t i = 0; i < window; i++) {
        long double powers[7] = {1};
        for (int k = 1; k < 7; k++) {
            powers[k] = powers[k - 1] * (long double)i;
        }
        for (uint32_t r = 0; r < n; r++) {
            for (uint32_t c = 0; c < n; c++) {
                a[r][c] += powers[r + c];
            }
            a[r][n] += powers[r] * y[i];
        }
    }
    for (uint32_t p = 0; p < n; p++) {
        for (uint32_t r = 0; r < n; r++) {
            if (r != p) {
                long double f = a[r][p] / a[p][p];
                for (uint32_t c = p; c <= n; c++) {
                    a[r][c] -= f * a[p][c];
                }
            }
        }
    }
    long double value = 0;
    for (uint32_t k = derivative; k < n; k++) {
        long double term = a[k][n] / a[k][k];
        for (uint32_t d = 0; d < derivative; d++) {
            term *= (long double)(k - d);
        }
        value += term * powl(x, (int)(k - derivative));
    }
    return (double)(value / powl(step, (int)derivative));
}

/* scipy's mode='interp': the middle of the window inside, the first or last window at the ends. */
static void dense_filter(const double *y, uint32_t count, uint32_t window, uint32_t order,
                         uint32_t derivative, double *out)
{
    window = window < count ? window : count;
    uint32_t half = window / 2;
    for (uint32_t i = 0; i < count; i++) {
        if (i < half) {
            out[i] = dense_fit(y, window, order, derivative, i, TICK_S);
        } else if (i >= count - half) {
            uint32_t start = count - window;
            out[i] = dense_fit(y + start, window, order, derivative, i - start, TICK_S);
        } else {
            uint32_t start = window % 2 == 0 ? i - half + 1 : i - half;
            out[i] = dense_fit(y + start, window, order, derivative, (window - 1) / 2.0, TICK_S);
        }
    }
}

static double largest(const double *y, uint32_t count)
{
    double best = 0;
    for (uint32_t i = 0; i < count; i++) {
        best = fmax(best, fabs(y[i]));
    }
    return best;
}

static void savgol_filter(const double *y, uint32_t count, uint32_t window, uint32_t order,
                          uint32_t derivative, double *out)
{
    struct savgol filter;
    savgol_init(&filter, count, window, order, derivative, TICK_S);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t start = savgol_start(&filter, i);
        EXPECT(start + filter.window <= count);
        out[i] = savgol_value(&filter, y + start, i);
    }
}

/* ---- the filter ---- */

static void filter_agrees_with_scipy(void)
{
    /* scipy 1.17.1: x = ((7 i^2 + 3 i) mod 29 - 14) / 9, 20 samples, delta 0.1. */
    static const double smooth_8_2[20] = {
        -1.28703703703704,  -0.943121693121693, -0.654761904761904, -0.421957671957671,
        -0.215277777777778, -0.159722222222222, -0.159722222222222, -0.215277777777778,
        -0.326388888888889, -0.493055555555555, -1.01736111111111,  -0.993055555555555,
        -0.621527777777778, -0.104166666666667, 0.357638888888889,  0.5625,
        0.502645502645502,  0.11111111111111,   -0.642857142857143, -1.75925925925926};
    static const double jerk_15_2[20] = {
        0.961534159604013,  0.881257123575927,  0.80098008754784,   0.720703051519754,
        0.640426015491667,  0.560148979463581,  0.479871943435494,  0.399594907407416,
        0.431594860166299,  0.480837821239617,  0.462951152683305,  0.295735308012101,
        -0.083640400604683, -0.244885454181673, -0.406130507758659, -0.567375561335645,
        -0.728620614912631, -0.889865668489617, -1.0511107220666,   -1.21235577564359};
    static const double rate_5_2[20] = {7.93650793650795,
                                        5.07936507936509,
                                        2.22222222222222,
                                        1.66666666666667,
                                        1.11111111111111,
                                        0.555555555555555,
                                        0,
                                        -0.555555555555557,
                                        -1.11111111111111,
                                        -1.66666666666667,
                                        -2.22222222222222,
                                        -2.77777777777778,
                                        3.11111111111111,
                                        5.77777777777778,
                                        5.22222222222223,
                                        1.44444444444445,
                                        -5.55555555555556,
                                        -6.11111111111112,
                                        -4.36507936507936,
                                        -2.61904761904762};
    static const double accel_5_3[20] = {
        -28.5714285714294, -28.571428571429, -28.5714285714286, 17.4603174603175,
        -28.5714285714286, 17.4603174603175, -28.5714285714286, 17.4603174603175,
        -28.5714285714286, 17.4603174603175, -28.5714285714286, 17.4603174603175,
        63.4920634920636,  63.4920634920635, -74.6031746031746, -74.6031746031746,
        -28.5714285714286, 17.4603174603175, 17.460317460317,   17.4603174603166};
    double x[20];
    double smooth[20];
    double out[20];
    for (int i = 0; i < 20; i++) {
        x[i] = ((7 * i * i + 3 * i) % 29 - 14) / 9.0;
    }
    savgol_filter(x, 20, 8, 2, 0, smooth);
    for (int i = 0; i < 20; i++) {
        EXPECT_NEAR(smooth[i], smooth_8_2[i], 1e-12);
    }
    savgol_filter(smooth, 20, 15, 2, 1, out);
    for (int i = 0; i < 20; i++) {
        EXPECT_NEAR(out[i], jerk_15_2[i], 1e-12);
    }
    savgol_filter(x, 20, 5, 2, 1, out);
    for (int i = 0; i < 20; i++) {
        EXPECT_NEAR(out[i], rate_5_2[i], 1e-11);
    }
    savgol_filter(x, 20, 5, 3, 2, out);
    for (int i = 0; i < 20; i++) {
        EXPECT_NEAR(out[i], accel_5_3[i], 1e-10);
    }
}

static void filter_agrees_with_dense_least_squares(void)
{
    double y[40];
    double expected[40];
    double found[40];
    for (uint32_t i = 0; i < COUNT_OF(y); i++) {
        y[i] = 2 * rng_uniform(41, RNG_STREAM_TEST, i, 0) - 1;
    }
    for (uint32_t count = 1; count <= COUNT_OF(y); count++) {
        for (uint32_t window = 1; window <= SAVGOL_WINDOW_MAX; window++) {
            for (uint32_t order = 0; order <= SAVGOL_ORDER_MAX; order++) {
                for (uint32_t derivative = 0; derivative <= order; derivative++) {
                    dense_filter(y, count, window, order, derivative, expected);
                    savgol_filter(y, count, window, order, derivative, found);
                    double scale = pow(10, derivative);
                    for (uint32_t i = 0; i < count; i++) {
                        EXPECT_NEAR(found[i], expected[i], 1e-10 * scale);
                    }
                }
            }
        }
    }
}

static void filter_reproduces_polynomials_of_its_order(void)
{
    double y[30];
    double found[30];
    for (int i = 0; i < 30; i++) {
        double t = i * TICK_S;
        y[i] = 1 - 2 * t + 3 * t * t - 0.5 * t * t * t;
    }
    savgol_filter(y, 30, 7, 3, 0, found);
    for (int i = 0; i < 30; i++) {
        EXPECT_NEAR(found[i], y[i], 1e-12);
    }
    savgol_filter(y, 30, 9, 3, 2, found);
    for (int i = 0; i < 30; i++) {
        EXPECT_NEAR(found[i], 6 - 3 * i * TICK_S, 1e-10);
    }
}

/* ---- the metric ---- */

/* Scores a rollout of `count` ticks with these signals (NULL: zero); ego stands still otherwise. */
static struct comfort measure(uint32_t count, const double *lon, const double *lat,
                              const double *heading, struct metrics *metrics)
{
    struct stand rig;
    rig_motorway(&rig, 3, (struct pose){500, 3.5, 0}, 0, 0, SERIES_MAX);
    rig_start(&rig);
    for (uint32_t i = 0; i < count; i++) {
        rig.scene.ego.accel_mps2 = lon != NULL ? lon[i] : 0;
        rig.scene.ego.lat_accel_mps2 = lat != NULL ? lat[i] : 0;
        rig.scene.ego.pose.heading_rad = heading != NULL ? dmath_wrap_angle(heading[i]) : 0;
        rig_tick(&rig);
    }
    *metrics = *rig_metrics(&rig);
    struct comfort comfort = comfort_measure(rig.score);
    EXPECT_INT(comfort.comfortable, metrics->comfort == 1);
    rig_finish(&rig);
    return comfort;
}

static void metric_agrees_with_dense_least_squares(void)
{
    for (uint32_t count = 1; count <= 50; count += count < 20 ? 1 : 7) {
        double lon[SERIES_MAX];
        double lat[SERIES_MAX];
        double both[SERIES_MAX];
        double heading[SERIES_MAX];
        double smooth[SERIES_MAX];
        double out[SERIES_MAX];
        for (uint32_t i = 0; i < count; i++) {
            lon[i] = 4 * rng_uniform(count, RNG_STREAM_TEST, i, 0) - 2;
            lat[i] = 4 * rng_uniform(count, RNG_STREAM_TEST, i, 1) - 2;
            both[i] = hypot(lon[i], lat[i]);
            /* Passes through +-pi several times. */
            heading[i] = 3 + 0.4 * i + 0.3 * rng_uniform(count, RNG_STREAM_TEST, i, 2);
        }
        struct metrics metrics;
        struct comfort found = measure(count, lon, lat, heading, &metrics);
        dense_filter(lon, count, 8, 2, 0, smooth);
        double low = INFINITY;
        double high = -INFINITY;
        for (uint32_t i = 0; i < count; i++) {
            low = fmin(low, smooth[i]);
            high = fmax(high, smooth[i]);
        }
        EXPECT_NEAR(found.lon_accel_min_mps2, low, 1e-10);
        EXPECT_NEAR(metrics.accel_min_mps2, low, 1e-10);
        EXPECT_NEAR(found.lon_accel_max_mps2, high, 1e-10);
        dense_filter(smooth, count, 15, 2, 1, out);
        EXPECT_NEAR(found.lon_jerk_max_mps3, largest(out, count), 1e-8);
        dense_filter(lat, count, 8, 2, 0, smooth);
        EXPECT_NEAR(found.lat_accel_max_mps2, largest(smooth, count), 1e-10);
        dense_filter(both, count, 8, 2, 0, smooth);
        dense_filter(smooth, count, 15, 2, 1, out);
        EXPECT_NEAR(found.jerk_max_mps3, largest(out, count), 1e-8);
        EXPECT_NEAR(metrics.jerk_max_mps3, largest(out, count), 1e-8);
        dense_filter(heading, count, 5, 2, 1, out);
        EXPECT_NEAR(found.yaw_rate_max_rps, largest(out, count), 1e-8);
        dense_filter(heading, count, 5, 3, 2, out);
        EXPECT_NEAR(found.yaw_accel_max_rps2, largest(out, count), 1e-7);
    }
}

enum channel { LON, LAT, HEADING };

/* The shape, scaled by the factor, must be comfortable at 0.999 and not at 1.001 of `bound`. */
static void check_bound(enum channel channel, const double *shape, uint32_t count, double unit,
                        double bound)
{
    for (int broken = 0; broken <= 1; broken++) {
        double signal[SERIES_MAX];
        struct metrics metrics;
        for (uint32_t i = 0; i < count; i++) {
            signal[i] = shape[i] * bound / unit * (broken ? 1.001 : 0.999);
        }
        measure(count, channel == LON ? signal : NULL, channel == LAT ? signal : NULL,
                channel == HEADING ? signal : NULL, &metrics);
        EXPECT_INT(metrics.comfort, !broken);
    }
}

static void acceleration_bounds_are_exact(void)
{
    double ones[30];
    for (int i = 0; i < 30; i++) {
        ones[i] = 1;
    }
    check_bound(LON, ones, 30, 1, 2.40);
    check_bound(LON, ones, 30, 1, -4.05);
    check_bound(LAT, ones, 30, 1, 4.89);
    check_bound(LAT, ones, 30, 1, -4.89);
}

static void jerk_bounds_are_exact(void)
{
    /* A swing that stays far from the acceleration bounds. */
    double swing[30];
    double smooth[30];
    double jerk[30];
    for (int i = 0; i < 30; i++) {
        swing[i] = sin(2 * PI_RAD * i / 24);
    }
    dense_filter(swing, 30, 8, 2, 0, smooth);
    dense_filter(smooth, 30, 15, 2, 1, jerk);
    check_bound(LON, swing, 30, largest(jerk, 30), 4.13);
    /* Lateral alone: only the jerk of the magnitude is bounded. A rise to 4.2 m/s2 within half a
     * second; over so short a rollout both filters keep a straight line. */
    double rise[6];
    for (int i = 0; i < 6; i++) {
        rise[i] = i * TICK_S;
    }
    check_bound(LAT, rise, 6, 1, 8.37);
}

static void yaw_bounds_are_exact(void)
{
    double turn[30];
    double bend[9];
    for (int i = 0; i < 30; i++) {
        turn[i] = i * TICK_S;
    }
    check_bound(HEADING, turn, 30, 1, 0.95);
    check_bound(HEADING, turn, 30, 1, -0.95);
    /* The rate swings from -0.78 to 0.78 rad/s, so that only its change is near a bound. */
    for (int i = 0; i < 9; i++) {
        double t = (i - 4) * TICK_S;
        bend[i] = 0.5 * t * t;
    }
    check_bound(HEADING, bend, 9, 1, 1.93);
}

static void one_bad_sample_is_smoothed_but_a_lasting_one_counts(void)
{
    double lon[30] = {0};
    struct metrics metrics;
    lon[15] = 3.0; /* a single spike above the bound, smoothed below it and its jerk */
    measure(30, lon, NULL, NULL, &metrics);
    EXPECT_INT(metrics.comfort, 1);
    for (int i = 15; i < 30; i++) {
        lon[i] = 3.0;
    }
    measure(30, lon, NULL, NULL, &metrics);
    EXPECT_INT(metrics.comfort, 0);
}

int main(void)
{
    return TEST_RUN(TEST(filter_agrees_with_scipy), TEST(filter_agrees_with_dense_least_squares),
                    TEST(filter_reproduces_polynomials_of_its_order),
                    TEST(metric_agrees_with_dense_least_squares),
                    TEST(acceleration_bounds_are_exact), TEST(jerk_bounds_are_exact),
                    TEST(yaw_bounds_are_exact),
                    TEST(one_bad_sample_is_smoothed_but_a_lasting_one_counts));
}
