/*
 * Device functions for activations: typed loads and stores, SiLU. The arithmetic is that of
 * kernels/ref/nn_scalar.h, operation by operation, so elementwise kernels give the bits of the CPU.
 */
#ifndef SWERVE_KERNELS_CUDA_COMMON_ACT_CUH
#define SWERVE_KERNELS_CUDA_COMMON_ACT_CUH

#include "kernels/cuda/common/gpu.h"
#include "kernels/cuda/common/kernels.h"
#include "kernels/nn_internal.h"

GPU_FN float gpu_act_get(enum gpu_type type, const void *values, size_t at)
{
    return type == GPU_F32 ? ((const float *)values)[at]
                           : gpu_bf16_to_float(((const uint16_t *)values)[at]);
}

GPU_FN void gpu_act_put(enum gpu_type type, void *values, size_t at, float x)
{
    if (type == GPU_F32) {
        ((float *)values)[at] = x;
    } else {
        ((uint16_t *)values)[at] = gpu_act_bf16(x);
    }
}

GPU_FN uint32_t gpu_act_pair(float low, float high)
{
    return gpu_act_bf16(low) | (uint32_t)gpu_act_bf16(high) << 16;
}

/* Four values at an index that is a multiple of 4, from memory aligned to 16 bytes. */
GPU_FN float4 gpu_act_get4(enum gpu_type type, const void *values, size_t at)
{
    if (type == GPU_F32) {
        return *(const float4 *)((const float *)values + at);
    }
    uint2 pairs = *(const uint2 *)((const uint16_t *)values + at);
    return make_float4(__uint_as_float(pairs.x << 16), __uint_as_float(pairs.x & 0xffff0000u),
                       __uint_as_float(pairs.y << 16), __uint_as_float(pairs.y & 0xffff0000u));
}

GPU_FN void gpu_act_put4(enum gpu_type type, void *values, size_t at, float4 x)
{
    if (type == GPU_F32) {
        *(float4 *)((float *)values + at) = x;
    } else {
        *(uint2 *)((uint16_t *)values + at) =
            make_uint2(gpu_act_pair(x.x, x.y), gpu_act_pair(x.z, x.w));
    }
}

/* 1 / (1 + exp(-x)) from the polynomial's value and the rounded exponent; see nn_scalar.h. */
GPU_FN float gpu_silu_divide(float x, float p, float shifted, bool precise)
{
    float d = 1.0f + __uint_as_float(__float_as_uint(p) + (__float_as_uint(shifted) << 23));
    float r = __uint_as_float(NN_INVERSE_MAGIC - __float_as_uint(d));
    float t = __fmaf_rn(-d, r, 1.0f);
    if (precise) {
        r = __fmaf_rn(r, __fmaf_rn(t, t, t), r);
        t = __fmaf_rn(-d, r, 1.0f);
        r = __fmaf_rn(r, t, r);
    } else {
        r = __fmaf_rn(r, t, r);
        r = __fmaf_rn(r, t * t, r);
    }
    return x * r;
}

GPU_FN float gpu_silu_limit(float x)
{
    float y = -NN_EXP_LIMIT > x ? -NN_EXP_LIMIT : x;
    return NN_EXP_LIMIT < y ? NN_EXP_LIMIT : y;
}

/* x / (1 + exp(-argument)) */
GPU_FN float gpu_logistic_times(float x, float argument)
{
    float y = gpu_silu_limit(argument);
    float shifted = __fmaf_rn(y, -NN_EXP_LOG2E, NN_EXP_MAGIC);
    float f = __fmaf_rn(y, -NN_EXP_LOG2E, -(shifted - NN_EXP_MAGIC));
    float p = __fmaf_rn(NN_EXP_C5, f, NN_EXP_C4);
    p = __fmaf_rn(p, f, NN_EXP_C3);
    p = __fmaf_rn(p, f, NN_EXP_C2);
    p = __fmaf_rn(p, f, NN_EXP_C1);
    p = __fmaf_rn(p, f, 1.0f);
    return gpu_silu_divide(x, p, shifted, true);
}

GPU_FN float gpu_silu(float x)
{
    return gpu_logistic_times(x, x);
}

/* To 1e-5, for results that are rounded to bfloat16. */
GPU_FN float gpu_silu_short(float x)
{
    float y = gpu_silu_limit(x);
    float shifted = __fmaf_rn(y, -NN_EXP_LOG2E, NN_EXP_MAGIC);
    float f = __fmaf_rn(y, -NN_EXP_LOG2E, -(shifted - NN_EXP_MAGIC));
    float p = __fmaf_rn(NN_EXP_SHORT_C4, f, NN_EXP_SHORT_C3);
    p = __fmaf_rn(p, f, NN_EXP_SHORT_C2);
    p = __fmaf_rn(p, f, NN_EXP_SHORT_C1);
    p = __fmaf_rn(p, f, 1.0f);
    return gpu_silu_divide(x, p, shifted, false);
}

/* The SiLU of an epilogue that stores this type. */
GPU_FN float gpu_silu_act(enum gpu_type type, float x)
{
    return type == GPU_BF16 ? gpu_silu_short(x) : gpu_silu(x);
}

#endif
