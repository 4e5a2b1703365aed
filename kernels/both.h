/*
 * Functions that the CPU and the device share: one definition, compiled by the C compiler for the
 * engine and by nvcc for kernels. Such a header is C17 and C++17 at once: plain structs, no
 * designated initialisers, no compound literals. Nothing is contracted on either side, and IEEE
 * additions, products, quotients, square roots and roundings to an integer are exact on both, so
 * the same operations in the same order give the same bits.
 */
#ifndef SWERVE_KERNELS_BOTH_H
#define SWERVE_KERNELS_BOTH_H

#ifdef __CUDACC__
#define BOTH_FN static inline __host__ __device__
#else
#define BOTH_FN static inline
#endif

BOTH_FN double both_min(double a, double b)
{
    return a < b ? a : b;
}

BOTH_FN double both_max(double a, double b)
{
    return a > b ? a : b;
}

BOTH_FN double both_clamp(double x, double low, double high)
{
    return x < low ? low : x > high ? high : x;
}

#endif
