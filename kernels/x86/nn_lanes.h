/*
 * The lanes of the instruction set that a file is compiled for, and the formulas that the network
 * kernels share on them. The x86/nn_*.c files are compiled once per instruction set; NN_NAME gives
 * each its own public names. Every function here is its namesake of ref/nn_scalar.h, lane by lane.
 */
#ifndef SWERVE_KERNELS_X86_NN_LANES_H
#define SWERVE_KERNELS_X86_NN_LANES_H

#include "kernels/nn_internal.h"

#if defined(__AVX512BF16__)
#include "kernels/x86/nn_lanes_avx512.h"
#define NN_NAME(name) nn_##name##_avx512bf16
#elif defined(__AVX512VNNI__)
#include "kernels/x86/nn_lanes_avx512.h"
#define NN_NAME(name) nn_##name##_avx512vnni
#elif defined(__AVX512F__)
#include "kernels/x86/nn_lanes_avx512.h"
#define NN_NAME(name) nn_##name##_avx512
#elif defined(__AVX2__)
#include "kernels/x86/nn_lanes_avx2.h"
#define NN_NAME(name) nn_##name##_avx2
#endif

#if defined(__AVX2__)

#define NN_INLINE static inline __attribute__((always_inline))
/* The compiler takes what it knows of memory for stale. */
#define NN_FORGET __asm__ volatile("" ::: "memory")

/* Terms of an NN_BF16 product in a word of an operand, and what such a word of each side adds to a
 * chain. */
#if defined(__AVX512BF16__)
enum { WORD_TERMS = 2 };

NN_INLINE v16 v16_add_terms(v16 a, v16 b, v16 chain)
{
    return v16_dot_pairs(a, b, chain);
}
#else
enum { WORD_TERMS = 1 };

NN_INLINE v16 v16_add_terms(v16 a, v16 b, v16 chain)
{
    return v16_fma(a, b, chain);
}
#endif

NN_INLINE v16 v16_exp(v16 x)
{
    x = v16_max(v16_set1(-NN_EXP_LIMIT), x);
    v16 shifted = v16_fma(x, v16_set1(NN_EXP_LOG2E), v16_set1(NN_EXP_MAGIC));
    v16 n = v16_sub(shifted, v16_set1(NN_EXP_MAGIC));
    v16 f = v16_fms(x, v16_set1(NN_EXP_LOG2E), n);
    v16 p = v16_fma(v16_set1(NN_EXP_C5), f, v16_set1(NN_EXP_C4));
    p = v16_fma(p, f, v16_set1(NN_EXP_C3));
    p = v16_fma(p, f, v16_set1(NN_EXP_C2));
    p = v16_fma(p, f, v16_set1(NN_EXP_C1));
    p = v16_fma(p, f, v16_set1(1.0f));
    w16 scale = w16_shift_to_exponent(w16_add(v16_bits(shifted), w16_set1(127)));
    return v16_mul(p, v16_from_bits(scale));
}

enum { LOGISTIC_MAX = 4 };

/* 1 / (1 + exp(-x)) of `count` vectors in step: one is a chain of dependent operations, which the
 * processor cannot see far enough ahead to overlap with the next. `shorter`: as nn_silu_short. */
NN_INLINE void v16_logistic_many(v16 *x, const int count, const bool shorter)
{
    const v16 one = v16_set1(1.0f);
    const v16 c4 = v16_set1(shorter ? NN_EXP_SHORT_C4 : NN_EXP_C4);
    const v16 c3 = v16_set1(shorter ? NN_EXP_SHORT_C3 : NN_EXP_C3);
    const v16 c2 = v16_set1(shorter ? NN_EXP_SHORT_C2 : NN_EXP_C2);
    const v16 c1 = v16_set1(shorter ? NN_EXP_SHORT_C1 : NN_EXP_C1);
    v16 s[LOGISTIC_MAX];
    v16 f[LOGISTIC_MAX];
    v16 p[LOGISTIC_MAX];
    v16 t[LOGISTIC_MAX];
    for (int i = 0; i < count; i++) {
        f[i] = v16_clamp(x[i], NN_EXP_LIMIT);
    }
    for (int i = 0; i < count; i++) {
        s[i] = v16_fma(f[i], v16_set1(-NN_EXP_LOG2E), v16_set1(NN_EXP_MAGIC));
    }
    for (int i = 0; i < count; i++) {
        t[i] = v16_sub(s[i], v16_set1(NN_EXP_MAGIC));
    }
    for (int i = 0; i < count; i++) {
        f[i] = v16_fms(f[i], v16_set1(-NN_EXP_LOG2E), t[i]);
    }
    for (int i = 0; i < count; i++) {
        p[i] = shorter ? c4 : v16_fma(v16_set1(NN_EXP_C5), f[i], c4);
    }
    for (int i = 0; i < count; i++) {
        p[i] = v16_fma(p[i], f[i], c3);
    }
    for (int i = 0; i < count; i++) {
        p[i] = v16_fma(p[i], f[i], c2);
    }
    for (int i = 0; i < count; i++) {
        p[i] = v16_fma(p[i], f[i], c1);
    }
    for (int i = 0; i < count; i++) {
        p[i] = v16_fma(p[i], f[i], one);
    }
    for (int i = 0; i < count; i++) {
        w16 e = w16_add(v16_bits(p[i]), w16_shift_to_exponent(v16_bits(s[i])));
        s[i] = v16_add(one, v16_from_bits(e));
    }
    for (int i = 0; i < count; i++) {
        p[i] = v16_from_bits(w16_sub(w16_set1(NN_INVERSE_MAGIC), v16_bits(s[i])));
    }
    for (int i = 0; i < count; i++) {
        t[i] = v16_fnma(s[i], p[i], one);
    }
    for (int i = 0; i < count; i++) {
        f[i] = shorter ? v16_mul(t[i], t[i]) : v16_fma(t[i], t[i], t[i]);
    }
    for (int i = 0; i < count; i++) {
        p[i] = v16_fma(p[i], shorter ? t[i] : f[i], p[i]);
    }
    for (int i = 0; i < count; i++) {
        t[i] = shorter ? f[i] : v16_fnma(s[i], p[i], one);
    }
    for (int i = 0; i < count; i++) {
        x[i] = v16_fma(p[i], t[i], p[i]);
    }
}

enum { SILU_MAX = LOGISTIC_MAX };

NN_INLINE void v16_silu_many(v16 *x, const int count, const bool shorter)
{
    v16 y[SILU_MAX];
    for (int i = 0; i < count; i++) {
        y[i] = x[i];
    }
    v16_logistic_many(y, count, shorter);
    for (int i = 0; i < count; i++) {
        x[i] = v16_mul(x[i], y[i]);
    }
}

/* 16 activations from element `index` on, as floats; and back. */
NN_INLINE v16 act_load(enum nn_precision precision, const void *act, size_t index)
{
    return precision == NN_BF16 ? v16_load_bf16((const uint16_t *)act + index)
                                : v16_load((const float *)act + index);
}

NN_INLINE void act_store(enum nn_precision precision, void *act, size_t index, v16 x)
{
    if (precision == NN_BF16) {
        v16_store_bf16((uint16_t *)act + index, x);
    } else {
        v16_store((float *)act + index, x);
    }
}

NN_INLINE v16 act_round(enum nn_precision precision, v16 x)
{
    return precision == NN_BF16 ? v16_round_bf16(x) : x;
}

#endif

#endif
