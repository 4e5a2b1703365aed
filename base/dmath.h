/*
 * Deterministic elementary functions in double precision.
 *
 * The C library chooses its sin, cos, exp .. by CPU model, and those variants differ in the last
 * bit. A rollout's bits must not depend on the machine, so everything on the simulation and scoring
 * path uses these instead: plain +, -, *, / and sqrt (exactly rounded by IEEE 754) in a fixed
 * order, compiled with contraction off. Accuracy: absolute error below 1e-12 on the ranges given.
 */
#ifndef SWERVE_BASE_DMATH_H
#define SWERVE_BASE_DMATH_H

/* |x| <= 1e5; the angle is reduced by multiples of pi/2 (two-part Cody-Waite). */
double dmath_sin(double x_rad);
double dmath_cos(double x_rad);
void dmath_sincos(double x_rad, double *sin_out, double *cos_out);
double dmath_tan(double x_rad);

/* In (-pi, pi]; (0, 0) gives 0. */
double dmath_atan2(double y, double x);
double dmath_atan(double x);

/* e^x for x in [-700, 700], clamped outside. Relative error below 1e-12. */
double dmath_exp(double x);

/* Natural logarithm, x > 0 and normal. */
double dmath_log(double x);

/* The same angle in (-pi, pi], for |x| <= 1e5. */
double dmath_wrap_angle(double x_rad);

static inline double dmath_clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

static inline double dmath_max(double a, double b)
{
    return a > b ? a : b;
}

static inline double dmath_min(double a, double b)
{
    return a < b ? a : b;
}

#endif
