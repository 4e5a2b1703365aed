/*
 * The bodies of base/dmath.h, for code that is compiled for a GPU too and may call nothing that is
 * compiled elsewhere: Taylor and atanh-series kernels on reduced arguments. The degrees were chosen
 * so that the first dropped term is below 1e-13 on the reduced range; see tests/base/test_dmath.c
 * for the measured error. Both names of a function give the same bits, on the host and on a GPU:
 * nothing here is contracted, and floor is exact everywhere.
 */
#ifndef SWERVE_BASE_DMATH_INLINE_H
#define SWERVE_BASE_DMATH_INLINE_H

#include "base/both.h"
#include "base/units.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* pi/2 = HIGH + LOW; HIGH has 33 significant bits, so n * HIGH is exact for |n| < 2^20. */
#define HALF_PI_HIGH 1.57079632673412561417e+00
#define HALF_PI_LOW 6.07710050650619224932e-11
#define LN2_HIGH 6.93147180369123816490e-01
#define LN2_LOW 1.90821492927058770002e-10

/* Taylor series about 0 on |x| <= pi/4, degree 17: next term x^19/19! < 1e-19. */
BOTH_FN double inline_sin_reduced(double x)
{
    double z = x * x;
    double p = -1.0 / 1307674368000.0 + z * (1.0 / 355687428096000.0);
    p = 1.0 / 6227020800.0 + z * p;
    p = -1.0 / 39916800.0 + z * p;
    p = 1.0 / 362880.0 + z * p;
    p = -1.0 / 5040.0 + z * p;
    p = 1.0 / 120.0 + z * p;
    p = -1.0 / 6.0 + z * p;
    return x + x * z * p;
}

/* Degree 16 on the same range: next term x^18/18! < 1e-17. */
BOTH_FN double inline_cos_reduced(double x)
{
    double z = x * x;
    double p = -1.0 / 87178291200.0 + z * (1.0 / 20922789888000.0);
    p = 1.0 / 479001600.0 + z * p;
    p = -1.0 / 3628800.0 + z * p;
    p = 1.0 / 40320.0 + z * p;
    p = -1.0 / 720.0 + z * p;
    p = 1.0 / 24.0 + z * p;
    return 1.0 - 0.5 * z + z * z * p;
}

BOTH_FN void inline_sincos(double x_rad, double *sin_out, double *cos_out)
{
    /* floor is exact and needs no library variant that could differ. */
    double n = floor(x_rad * (2.0 / PI_RAD) + 0.5);
    double r = (x_rad - n * HALF_PI_HIGH) - n * HALF_PI_LOW;
    double s = inline_sin_reduced(r);
    double c = inline_cos_reduced(r);
    switch ((int64_t)n & 3) {
    case 0:
        *sin_out = s;
        *cos_out = c;
        break;
    case 1:
        *sin_out = c;
        *cos_out = -s;
        break;
    case 2:
        *sin_out = -s;
        *cos_out = -c;
        break;
    default:
        *sin_out = -c;
        *cos_out = s;
        break;
    }
}

/* atan on |x| <= tan(pi/16) by its Taylor series: next term 0.199^21/21 < 1e-16. */
BOTH_FN double inline_atan_reduced(double x)
{
    double z = x * x;
    double p = 0.0;
    for (int k = 9; k >= 0; k--) {
        p = (k % 2 == 0 ? 1.0 : -1.0) / (2 * k + 1) + z * p;
    }
    return x * p;
}

BOTH_FN double inline_atan(double x)
{
    const double tan_pi_8 = 0.41421356237309503;
    double a = fabs(x);
    double base = 0.0;
    /* Two argument reductions, by pi/4 multiples and then by pi/8. */
    if (a > 2.414213562373095) {
        base = PI_RAD / 2;
        a = -1.0 / a;
    } else if (a > tan_pi_8) {
        base = PI_RAD / 4;
        a = (a - 1.0) / (a + 1.0);
    }
    double sign = a < 0 ? -1.0 : 1.0;
    double b = fabs(a);
    if (b > 0.198912367379658) {
        base += sign * (PI_RAD / 8);
        b = (b - tan_pi_8) / (1.0 + b * tan_pi_8);
    }
    double result = base + sign * inline_atan_reduced(b);
    return x < 0 ? -result : result;
}

BOTH_FN double inline_exp(double x)
{
    x = both_clamp(x, -700.0, 700.0);
    double n = floor(x * 1.4426950408889634 + 0.5);
    double r = (x - n * LN2_HIGH) - n * LN2_LOW;
    double p = 1.0;
    for (int k = 13; k >= 1; k--) {
        p = 1.0 + r / k * p;
    }
    uint64_t bits = (uint64_t)(int64_t)(n + 1023) << 52;
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

BOTH_FN double inline_wrap_angle(double x_rad)
{
    double turns = floor(x_rad / (2 * PI_RAD) + 0.5);
    double wrapped = x_rad - turns * (2 * PI_RAD);
    if (wrapped <= -PI_RAD) {
        wrapped += 2 * PI_RAD;
    }
    return wrapped;
}

#endif
