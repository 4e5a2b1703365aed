/*
 * Doubles on the vector units, as many as a register holds, and their exponential: inline_exp of
 * base/dmath_inline.h, lane by lane and bit by bit.
 */
#ifndef SWERVE_KERNELS_X86_NN_DOUBLES_H
#define SWERVE_KERNELS_X86_NN_DOUBLES_H

#include "base/dmath_inline.h"
#include "kernels/x86/nn_lanes.h"

#if defined(__AVX512F__)

typedef __m512d doubles;

enum { DOUBLES = 8 };

static inline doubles doubles_set1(double x)
{
    return _mm512_set1_pd(x);
}

/* From and to single precision. */
static inline doubles doubles_load(const float *p)
{
    return _mm512_cvtps_pd(_mm256_loadu_ps(p));
}

static inline void doubles_store(float *p, doubles x)
{
    _mm256_storeu_ps(p, _mm512_cvtpd_ps(x));
}

/* a * b + c, -a * b + c, rounded once. */
static inline doubles doubles_fma(doubles a, doubles b, doubles c)
{
    return _mm512_fmadd_pd(a, b, c);
}

static inline doubles doubles_fnma(doubles a, doubles b, doubles c)
{
    return _mm512_fnmadd_pd(a, b, c);
}

static inline doubles doubles_max(doubles a, doubles b)
{
    return _mm512_max_pd(a, b);
}

static inline doubles doubles_floor(doubles x)
{
    return _mm512_roundscale_pd(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}

/* The lowest 12 bits as sign and exponent of a power of two. */
static inline doubles doubles_shift_to_exponent(doubles x)
{
    return _mm512_castsi512_pd(_mm512_slli_epi64(_mm512_castpd_si512(x), 52));
}

#elif defined(__AVX2__)

typedef __m256d doubles;

enum { DOUBLES = 4 };

static inline doubles doubles_set1(double x)
{
    return _mm256_set1_pd(x);
}

static inline doubles doubles_load(const float *p)
{
    return _mm256_cvtps_pd(_mm_loadu_ps(p));
}

static inline void doubles_store(float *p, doubles x)
{
    _mm_storeu_ps(p, _mm256_cvtpd_ps(x));
}

static inline doubles doubles_fma(doubles a, doubles b, doubles c)
{
    return _mm256_fmadd_pd(a, b, c);
}

static inline doubles doubles_fnma(doubles a, doubles b, doubles c)
{
    return _mm256_fnmadd_pd(a, b, c);
}

static inline doubles doubles_max(doubles a, doubles b)
{
    return _mm256_max_pd(a, b);
}

static inline doubles doubles_floor(doubles x)
{
    return _mm256_floor_pd(x);
}

static inline doubles doubles_shift_to_exponent(doubles x)
{
    return _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_castpd_si256(x), 52));
}

#endif

#if defined(__AVX2__)

enum { DOUBLES_MANY = 4 };

/* r / k to the last bit, without a division: a quotient that a correctly rounded reciprocal has
 * corrected once is off by less than its last digit, and corrected again it is the nearest one
 * (Markstein, Computation of elementary functions on the IBM RISC System/6000 processor, 1990). */
NN_INLINE doubles doubles_quotient(doubles r, const int k)
{
    const doubles inverse = doubles_set1(1.0 / k);
    doubles q = r * inverse;
    if ((k & (k - 1)) == 0) {
        return q;
    }
    q = doubles_fma(doubles_fnma(doubles_set1(k), q, r), inverse, q);
    return doubles_fma(doubles_fnma(doubles_set1(k), q, r), inverse, q);
}

/* exp of `count` (a constant) vectors of numbers up to 700, in step. */
NN_INLINE void doubles_exp_many(doubles *x, const int count)
{
    const double magic = 0x1.8p52 + 1023.0; /* a whole number and this has it in the last bits */
    doubles n[DOUBLES_MANY];
    doubles p[DOUBLES_MANY];
    for (int i = 0; i < count; i++) {
        x[i] = doubles_max(x[i], doubles_set1(-700.0));
        n[i] = doubles_floor(x[i] * doubles_set1(1.4426950408889634) + doubles_set1(0.5));
        x[i] = (x[i] - n[i] * doubles_set1(LN2_HIGH)) - n[i] * doubles_set1(LN2_LOW);
        p[i] = doubles_set1(1.0);
    }
#pragma GCC unroll 16
    for (int k = 13; k >= 1; k--) {
        for (int i = 0; i < count; i++) {
            p[i] = doubles_set1(1.0) + doubles_quotient(x[i], k) * p[i];
        }
    }
    for (int i = 0; i < count; i++) {
        x[i] = p[i] * doubles_shift_to_exponent(n[i] + doubles_set1(magic));
    }
}

#endif

#endif
