/*
 * The constants of engine/model.md in device code.
 */
#ifndef SWERVE_KERNELS_CUDA_NUMBER_CUH
#define SWERVE_KERNELS_CUDA_NUMBER_CUH

#include "kernels/cuda/gpu.h"

#define NUMBER_LOGIT_SCALE 0x1.6a09e6p-3f /* 1 / sqrt(32) */
#define NUMBER_NORM_EPSILON 1e-6f
#define NUMBER_SATURATION 1.5f
#define NUMBER_FLOAT_MAX 3.402823466e+38f

/* A float as a product sees it. */
GPU_FN float number_round(float x)
{
    return gpu_bf16_to_float(gpu_act_bf16(x));
}

#endif
