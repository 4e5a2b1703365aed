/*
 * Deterministic math: measured against the C library's long double functions on a dense sweep of
 * the documented ranges, random arguments and the corners of the domain. Bounds are those that
 * dmath.h promises.
 */
#include "base/check.h"
#include "base/dmath.h"
#include "base/rng.h"
#include "base/units.h"
#include "tests/harness.h"

#include <float.h>

#define PI_LONG 3.14159265358979323846264338327950288L

/* A deterministic argument in [-range, range]. */
static double argument(uint32_t index, double range)
{
    return (2.0 * rng_uniform(11, RNG_STREAM_TEST, index, 1) - 1.0) * range;
}

static void sine_and_cosine_are_accurate(void)
{
    static const double ranges[] = {1e-3, 1.0, 10.0, 1e3, 1e5};
    for (size_t r = 0; r < COUNT_OF(ranges); r++) {
        for (uint32_t i = 0; i < 20000; i++) {
            double x = argument(i, ranges[r]);
            double s;
            double c;
            dmath_sincos(x, &s, &c);
            EXPECT_NEAR(s, (double)sinl(x), 1e-12);
            EXPECT_NEAR(c, (double)cosl(x), 1e-12);
            EXPECT(dmath_sin(x) == s && dmath_cos(x) == c);
            EXPECT_NEAR(s * s + c * c, 1.0, 1e-12);
        }
    }
}

static void sine_and_cosine_hold_near_multiples_of_a_quarter_turn(void)
{
    for (int n = -1000; n <= 1000; n++) {
        for (int k = -3; k <= 3; k++) {
            double x = n * (PI_RAD / 4) + k * 1e-9;
            EXPECT_NEAR(dmath_sin(x), (double)sinl(x), 1e-12);
            EXPECT_NEAR(dmath_cos(x), (double)cosl(x), 1e-12);
        }
    }
    EXPECT(dmath_sin(0.0) == 0.0);
    EXPECT(dmath_cos(0.0) == 1.0);
}

static void tangent_is_accurate_away_from_its_poles(void)
{
    for (uint32_t i = 0; i < 20000; i++) {
        double x = argument(i, 1.4);
        EXPECT_NEAR(dmath_tan(x), (double)tanl(x), 1e-11);
    }
}

static void arctangents_are_accurate(void)
{
    for (uint32_t i = 0; i < 20000; i++) {
        double x = argument(i, i % 2 == 0 ? 3.0 : 1e6);
        double y = argument(i + 100000, i % 3 == 0 ? 3.0 : 1e6);
        EXPECT_NEAR(dmath_atan(x), (double)atanl(x), 1e-12);
        EXPECT_NEAR(dmath_atan2(y, x), (double)atan2l(y, x), 1e-12);
    }
}

static void arctangent_knows_the_quadrants(void)
{
    EXPECT(dmath_atan2(0, 0) == 0);
    EXPECT(dmath_atan2(0, 2) == 0);
    EXPECT_NEAR(dmath_atan2(0, -2), PI_RAD, 1e-15);
    EXPECT_NEAR(dmath_atan2(-0.0, -2), PI_RAD, 1e-15); /* the range is (-pi, pi] */
    EXPECT_NEAR(dmath_atan2(2, 0), PI_RAD / 2, 1e-15);
    EXPECT_NEAR(dmath_atan2(-2, 0), -PI_RAD / 2, 1e-15);
    EXPECT_NEAR(dmath_atan2(1, 1), PI_RAD / 4, 1e-15);
    EXPECT_NEAR(dmath_atan2(1, -1), 3 * PI_RAD / 4, 1e-15);
    EXPECT_NEAR(dmath_atan2(-1, -1), -3 * PI_RAD / 4, 1e-15);
    EXPECT_NEAR(dmath_atan2(-1, 1), -PI_RAD / 4, 1e-15);
}

static void exponential_has_a_small_relative_error(void)
{
    for (uint32_t i = 0; i < 20000; i++) {
        double x = argument(i, i % 2 == 0 ? 5.0 : 700.0);
        double expected = (double)expl(x);
        EXPECT_NEAR(dmath_exp(x) / expected, 1.0, 1e-12);
    }
    EXPECT(dmath_exp(0.0) == 1.0);
    EXPECT(dmath_exp(1e4) == dmath_exp(700.0));
    EXPECT(dmath_exp(-1e4) == dmath_exp(-700.0));
}

static void logarithm_inverts_the_exponential(void)
{
    for (uint32_t i = 0; i < 20000; i++) {
        double x = argument(i, 600.0);
        EXPECT_NEAR(dmath_log(dmath_exp(x)), x, 1e-12 * (1.0 + fabs(x)));
        double y = 1.0 + argument(i, 0.5);
        EXPECT_NEAR(dmath_log(y), (double)logl(y), 1e-12);
    }
    EXPECT(dmath_log(1.0) == 0.0);
    EXPECT_NEAR(dmath_log(DBL_MIN), (double)logl(DBL_MIN), 1e-10);
    EXPECT_NEAR(dmath_log(DBL_MAX), (double)logl(DBL_MAX), 1e-10);
}

/* The result must be in range and differ from the argument by whole turns. */
static void check_wrap(double x)
{
    double wrapped = dmath_wrap_angle(x);
    if (!(wrapped > -PI_RAD && wrapped <= PI_RAD)) {
        TEST_FAIL("%.17g wraps to %.17g, out of (-pi, pi]", x, wrapped);
    }
    long double turns = ((long double)x - wrapped) / (2 * PI_LONG);
    EXPECT_NEAR((double)(turns - roundl(turns)), 0.0, 1e-10);
}

static void wrapped_angles_are_in_range_and_equal(void)
{
    for (uint32_t i = 0; i < 50000; i++) {
        check_wrap(argument(i, i % 2 == 0 ? 10.0 : 1e5));
    }
    for (int n = -2001; n <= 2001; n++) {
        double x = n * PI_RAD;
        check_wrap(x);
        check_wrap(nextafter(x, INFINITY));
        check_wrap(nextafter(x, -INFINITY));
    }
    EXPECT(dmath_wrap_angle(PI_RAD) == PI_RAD);
    EXPECT(dmath_wrap_angle(-PI_RAD) == PI_RAD);
    EXPECT(dmath_wrap_angle(1.25) == 1.25);
}

static void clamp_min_and_max_choose(void)
{
    EXPECT(dmath_clamp(5, 0, 1) == 1);
    EXPECT(dmath_clamp(-5, 0, 1) == 0);
    EXPECT(dmath_clamp(0.5, 0, 1) == 0.5);
    EXPECT(dmath_max(1, 2) == 2 && dmath_max(2, 1) == 2);
    EXPECT(dmath_min(1, 2) == 1 && dmath_min(2, 1) == 1);
}

int main(void)
{
    return TEST_RUN(TEST(sine_and_cosine_are_accurate),
                    TEST(sine_and_cosine_hold_near_multiples_of_a_quarter_turn),
                    TEST(tangent_is_accurate_away_from_its_poles), TEST(arctangents_are_accurate),
                    TEST(arctangent_knows_the_quadrants),
                    TEST(exponential_has_a_small_relative_error),
                    TEST(logarithm_inverts_the_exponential),
                    TEST(wrapped_angles_are_in_range_and_equal), TEST(clamp_min_and_max_choose));
}
