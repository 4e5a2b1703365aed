/*
 * The arithmetic of the network kernels, one number at a time: the definition that every vector
 * variant follows operation by operation. fmaf rounds once; nothing here is contracted, reordered
 * or taken from libm but fmaf and sqrtf.
 */
#ifndef SWERVE_KERNELS_REF_NN_SCALAR_H
#define SWERVE_KERNELS_REF_NN_SCALAR_H

#include "kernels/nn_internal.h"

#include <float.h>
#include <math.h>
#include <string.h>

static inline uint32_t nn_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float nn_from_bits(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Nearest bfloat16, ties to even; denormals become zero of their sign, every NaN one NaN. */
static inline uint16_t nn_to_bf16(float x)
{
    uint32_t bits = nn_bits(x);
    if (x != x) {
        return 0x7FC0;
    }
    if (fabsf(x) < FLT_MIN) {
        return (uint16_t)(bits >> 16 & 0x8000);
    }
    return (uint16_t)((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

static inline float nn_from_bf16(uint16_t x)
{
    return nn_from_bits((uint32_t)x << 16);
}

static inline float nn_act_get(enum nn_precision precision, const void *act, size_t index)
{
    return precision == NN_BF16 ? nn_from_bf16(((const uint16_t *)act)[index])
                                : ((const float *)act)[index];
}

static inline void nn_act_put(enum nn_precision precision, void *act, size_t index, float x)
{
    if (precision == NN_BF16) {
        ((uint16_t *)act)[index] = nn_to_bf16(x);
    } else {
        ((float *)act)[index] = x;
    }
}

/* A float as a product sees it: rounded to the activation type. */
static inline float nn_act_round(enum nn_precision precision, float x)
{
    return precision == NN_BF16 ? nn_from_bf16(nn_to_bf16(x)) : x;
}

/* The steps in which NN_INT8 counts a row: both factors 0 for a zero row, scale NaN and inverse 0
 * for one that is not finite. `largest`: bits of the largest magnitude, which order as magnitudes
 * do, infinities and NaN above all. */
struct nn_int8_step {
    float scale, inverse;
};

static inline struct nn_int8_step nn_int8_step(uint32_t largest)
{
    float x = nn_from_bits(largest);
    if (largest >= 0x7F800000) {
        return (struct nn_int8_step){nn_from_bits(0x7FC00000), 0.0f};
    }
    if (x < NN_INT8_LEAST) {
        return (struct nn_int8_step){0.0f, 0.0f};
    }
    return (struct nn_int8_step){x / 127.0f, 127.0f / x};
}

/* x in these steps, -127..127. */
static inline int8_t nn_to_int8(float x, struct nn_int8_step step)
{
    if (step.inverse == 0.0f) {
        return 0;
    }
    float shifted = x * step.inverse + NN_EXP_MAGIC;
    return (int8_t)(int32_t)(nn_bits(shifted) - nn_bits(NN_EXP_MAGIC));
}

/* The steps of a line of a map (conv3x3_int8); a and a + zero fit into a byte without sign. */
struct nn_int8_line {
    float scale, inverse;
    int32_t zero; /* what smallest becomes, with the sign changed */
};

/* bfloat16 bits as a number that orders as they do, NaN beyond the infinities. */
static inline int16_t nn_bf16_key(uint16_t bits)
{
    return (int16_t)(bits ^ (bits >> 15 != 0 ? 0x7FFF : 0));
}

/* Of the keys of the smallest and largest element. */
static inline struct nn_int8_line nn_int8_line(int16_t least, int16_t most)
{
    const float low = least < 0 ? nn_from_bf16((uint16_t)(least ^ 0x7FFF)) : 0.0f;
    const float high = most > 0 ? nn_from_bf16((uint16_t)most) : 0.0f;
    const float width = high - low;
    if (!(width < INFINITY)) {
        return (struct nn_int8_line){nn_from_bits(0x7FC00000), 0.0f, 0};
    }
    if (width < NN_INT8_LEAST) {
        return (struct nn_int8_line){0.0f, 0.0f, 0};
    }
    const float inverse = 254.0f / width;
    return (struct nn_int8_line){width / 254.0f, inverse, (int32_t)rintf(-low * inverse)};
}

/* The steps of the k weights of one output. */
static inline struct nn_int8_step nn_int8_weights(const float *w, uint32_t k)
{
    uint32_t largest = 0;
    for (uint32_t i = 0; i < k; i++) {
        uint32_t bits = nn_bits(w[i]) & 0x7FFFFFFF;
        largest = bits > largest ? bits : largest;
    }
    return nn_int8_step(largest);
}

static inline float nn_flush(float x)
{
    return fabsf(x) < FLT_MIN ? copysignf(0.0f, x) : x;
}

/* a * b + c rounded once, denormals in and out taken as zero. A result is denormal if it is so
 * after rounding to 24 bits without a limit on the exponent, hence the second product. */
static inline float nn_fma_flush(float a, float b, float c)
{
    a = nn_flush(a);
    b = nn_flush(b);
    c = nn_flush(c);
    float result = fmaf(a, b, c);
    if (fabsf(result) <= FLT_MIN && result != 0.0f &&
        fabsf(fmaf(a * 0x1p60f, b, c * 0x1p60f)) < FLT_MIN * 0x1p60f) {
        return copysignf(0.0f, result);
    }
    return result;
}

/* exp(x) for x <= 0. */
static inline float nn_exp(float x)
{
    x = -NN_EXP_LIMIT > x ? -NN_EXP_LIMIT : x; /* NaN passes */
    float shifted = fmaf(x, NN_EXP_LOG2E, NN_EXP_MAGIC);
    float f = fmaf(x, NN_EXP_LOG2E, -(shifted - NN_EXP_MAGIC));
    float p = fmaf(NN_EXP_C5, f, NN_EXP_C4);
    p = fmaf(p, f, NN_EXP_C3);
    p = fmaf(p, f, NN_EXP_C2);
    p = fmaf(p, f, NN_EXP_C1);
    p = fmaf(p, f, 1.0f);
    return p * nn_from_bits((nn_bits(shifted) + 127) << 23);
}

/* 1 / (1 + exp(-x)), beyond the limits as at them. 2^n goes straight into the exponent. */
static inline float nn_logistic(float x)
{
    float y = -NN_EXP_LIMIT > x ? -NN_EXP_LIMIT : x;
    y = NN_EXP_LIMIT < y ? NN_EXP_LIMIT : y;
    float shifted = fmaf(y, -NN_EXP_LOG2E, NN_EXP_MAGIC);
    float f = fmaf(y, -NN_EXP_LOG2E, -(shifted - NN_EXP_MAGIC));
    float p = fmaf(NN_EXP_C5, f, NN_EXP_C4);
    p = fmaf(p, f, NN_EXP_C3);
    p = fmaf(p, f, NN_EXP_C2);
    p = fmaf(p, f, NN_EXP_C1);
    p = fmaf(p, f, 1.0f);
    float d = 1.0f + nn_from_bits(nn_bits(p) + (nn_bits(shifted) << 23));
    float r = nn_from_bits(NN_INVERSE_MAGIC - nn_bits(d));
    float t = fmaf(-d, r, 1.0f); /* r * (1 + t + t^2), then r * (1 + t) */
    r = fmaf(r, fmaf(t, t, t), r);
    t = fmaf(-d, r, 1.0f);
    return fmaf(r, t, r);
}

/* x itself is not limited, so NaN and infinities pass. */
static inline float nn_silu(float x)
{
    return x * nn_logistic(x);
}

/* The same to 1e-5, for results that are rounded to bfloat16. */
static inline float nn_silu_short(float x)
{
    float y = -NN_EXP_LIMIT > x ? -NN_EXP_LIMIT : x;
    y = NN_EXP_LIMIT < y ? NN_EXP_LIMIT : y;
    float shifted = fmaf(y, -NN_EXP_LOG2E, NN_EXP_MAGIC);
    float f = fmaf(y, -NN_EXP_LOG2E, -(shifted - NN_EXP_MAGIC));
    float p = fmaf(NN_EXP_SHORT_C4, f, NN_EXP_SHORT_C3);
    p = fmaf(p, f, NN_EXP_SHORT_C2);
    p = fmaf(p, f, NN_EXP_SHORT_C1);
    p = fmaf(p, f, 1.0f);
    float d = 1.0f + nn_from_bits(nn_bits(p) + (nn_bits(shifted) << 23));
    float r = nn_from_bits(NN_INVERSE_MAGIC - nn_bits(d));
    float t = fmaf(-d, r, 1.0f); /* r * (1 + t) * (1 + t^2) */
    r = fmaf(r, t, r);
    r = fmaf(r, t * t, r);
    return x * r;
}

/* The epilogues' SiLU. */
static inline float nn_silu_act(enum nn_precision precision, float x)
{
    return precision == NN_BF16 ? nn_silu_short(x) : nn_silu(x);
}

/* Sum of 16 partial sums, halves first. */
static inline float nn_lanes_sum(float lanes[NN_LANES])
{
    for (uint32_t half = NN_LANES / 2; half > 0; half /= 2) {
        for (uint32_t i = 0; i < half; i++) {
            lanes[i] += lanes[i + half];
        }
    }
    return lanes[0];
}

/* One block of NN_BF16: even and odd terms in a chain each, from 0, then one to the other. */
static inline float nn_block_sum(const float a[NN_BLOCK], const float w[NN_BLOCK])
{
    float even = 0.0f;
    float odd = 0.0f;
    for (uint32_t k = 0; k < NN_BLOCK; k += 2) {
        even = nn_fma_flush(a[k], w[k], even);
        odd = nn_fma_flush(a[k + 1], w[k + 1], odd);
    }
    return nn_fma_flush(even, 1.0f, odd);
}

/* total + sum of a[k] * w[k] over count terms, a multiple of 32 in NN_BF16; operands are already
 * rounded. */
static inline float nn_dot(enum nn_precision precision, float total, const float *a, const float *w,
                           uint32_t count)
{
    if (precision == NN_FP32) {
        for (uint32_t k = 0; k < count; k++) {
            total = fmaf(a[k], w[k], total);
        }
        return total;
    }
    for (uint32_t k = 0; k < count; k += NN_BLOCK) {
        total = nn_fma_flush(total, 1.0f, nn_block_sum(a + k, w + k));
    }
    return total;
}

#endif
