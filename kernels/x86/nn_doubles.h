/*
 * Doubles on the vector units, as many as a register holds, and their exponential: inline_exp of
 * base/dmath_inline.h, lane by lane and bit by bit.
 */
#ifndef SWERVE_KERNELS_X86_NN_DOUBLES_H
#define SWERVE_KERNELS_X86_NN_DOUBLES_H

#include "base/dmath_inline.h"
#include "kernels/x86/nn_lanes.h"

#include <stdbool.h>

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

/* Whether all lanes of both are the same numbers in single precision; no NaN. */
static inline bool doubles_round_alike(doubles a, doubles b)
{
    return _mm256_cmp_ps_mask(_mm512_cvtpd_ps(a), _mm512_cvtpd_ps(b), _CMP_NEQ_OQ) == 0;
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

static inline bool doubles_round_alike(doubles a, doubles b)
{
    return _mm_movemask_ps(_mm_cmpneq_ps(_mm256_cvtpd_ps(a), _mm256_cvtpd_ps(b))) == 0;
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

/* x = n ln 2 + r of `count` (a constant) vectors of numbers up to 700; r takes the place of x. */
NN_INLINE void doubles_reduce_many(doubles *x, doubles *n, const int count)
{
    for (int i = 0; i < count; i++) {
        x[i] = doubles_max(x[i], doubles_set1(-700.0));
        n[i] = doubles_floor(x[i] * doubles_set1(1.4426950408889634) + doubles_set1(0.5));
        x[i] = (x[i] - n[i] * doubles_set1(LN2_HIGH)) - n[i] * doubles_set1(LN2_LOW);
    }
}

/* p 2^n */
static inline doubles doubles_scale(doubles p, doubles n)
{
    const double magic = 0x1.8p52 + 1023.0; /* a whole number and this has it in the last bits */
    return p * doubles_shift_to_exponent(n + doubles_set1(magic));
}

/* exp of `count` (a constant) vectors of numbers up to 700, in step. */
NN_INLINE void doubles_exp_many(doubles *x, const int count)
{
    doubles n[DOUBLES_MANY];
    doubles p[DOUBLES_MANY];
    doubles_reduce_many(x, n, count);
    for (int i = 0; i < count; i++) {
        p[i] = doubles_set1(1.0);
    }
#pragma GCC unroll 16
    for (int k = 13; k >= 1; k--) {
        for (int i = 0; i < count; i++) {
            p[i] = doubles_set1(1.0) + doubles_quotient(x[i], k) * p[i];
        }
    }
    for (int i = 0; i < count; i++) {
        x[i] = doubles_scale(p[i], n[i]);
    }
}

/* The same where a shorter series tells what doubles_store will make of it: it ends at r^10 / 10!,
 * so it is off by less than 2^-41 of itself, and most often both ends of an interval that is wider
 * than that round to the same number in single precision. False: they do not, somewhere. */
NN_INLINE bool doubles_exp_quick(doubles *x, const int count)
{
    static const double factors[] = {1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120,
                                     1.0 / 24,     1.0 / 6,     0.5,        1.0,       1.0};
    const doubles margin = doubles_set1(0x1p-40);
    doubles n[DOUBLES_MANY];
    doubles p[DOUBLES_MANY];
    bool alike = true;
    doubles_reduce_many(x, n, count);
    for (int i = 0; i < count; i++) {
        p[i] = doubles_set1(1.0 / 3628800);
    }
#pragma GCC unroll 10
    for (int k = 0; k < 10; k++) {
        for (int i = 0; i < count; i++) {
            p[i] = doubles_fma(p[i], x[i], doubles_set1(factors[k]));
        }
    }
    for (int i = 0; i < count; i++) {
        x[i] = doubles_scale(p[i], n[i]);
        alike &=
            doubles_round_alike(doubles_fma(x[i], margin, x[i]), doubles_fnma(x[i], margin, x[i]));
    }
    return alike;
}

#endif

#endif
