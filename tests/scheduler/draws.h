/*
 * Draws from the distributions that suites with a known truth are made of. One stream a program,
 * which a test sets to a state of its own.
 */
#ifndef SWERVE_TESTS_SCHEDULER_DRAWS_H
#define SWERVE_TESTS_SCHEDULER_DRAWS_H

#include "base/rng.h"

#include <math.h>
#include <stdint.h>

static uint64_t draws_state;

static inline double draw_uniform(void)
{
    return ((double)(rng_mix(++draws_state) >> 11) + 0.5) * 0x1p-53;
}

static inline double draw_normal(void)
{
    return sqrt(-2 * log(draw_uniform())) * cos(6.283185307179586 * draw_uniform());
}

/* Marsaglia, Tsang, ACM Trans. Math. Software 26, 2000. */
static inline double draw_gamma(double shape)
{
    double boost = shape < 1 ? pow(draw_uniform(), 1 / shape) : 1;
    double d = (shape < 1 ? shape + 1 : shape) - 1.0 / 3;
    for (;;) {
        double x = draw_normal();
        double v = 1 + x / sqrt(9 * d);
        v = v * v * v;
        if (v > 0 && log(draw_uniform()) < 0.5 * x * x + d - d * v + d * log(v)) {
            return boost * d * v;
        }
    }
}

#endif
