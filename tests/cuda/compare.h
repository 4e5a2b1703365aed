/*
 * Parts that tests of CUDA kernels share: inputs as in tests/kernels/nn_compare.h, and comparison
 * with a double-precision result within absolute + relative * |expected|. NaN is expected where the
 * reference has NaN; what the reference puts beyond the type's range must be infinite.
 */
#ifndef SWERVE_TESTS_CUDA_COMPARE_H
#define SWERVE_TESTS_CUDA_COMPARE_H

#include "kernels/cuda/common/kernels.h"
#include "tests/cuda/rig.h"
#include "tests/kernels/nn_compare.h"

static inline size_t gpu_type_bytes(enum gpu_type type)
{
    return type == GPU_F32 ? 4 : type == GPU_BF16 ? 2 : 1;
}

/* OCP FP8 E4M3, by its definition. */
static inline double e4m3_value(uint8_t byte)
{
    int exponent = byte >> 3 & 15;
    double magnitude = exponent == 0 ? ldexp(byte & 7, -9) : ldexp(8 + (byte & 7), exponent - 10);
    magnitude = (byte & 127) == 127 ? (double)NAN : magnitude;
    return byte & 128 ? -magnitude : magnitude;
}

static inline double typed_value(enum gpu_type type, const void *values, size_t index)
{
    switch (type) {
    case GPU_F32:
        return ((const float *)values)[index];
    case GPU_BF16:
        return float_of((uint32_t)((const uint16_t *)values)[index] << 16);
    default:
        return e4m3_value(((const uint8_t *)values)[index]);
    }
}

static inline bool is_near(double found, double expected, double absolute, double relative)
{
    if (isnan(expected)) {
        return isnan(found);
    }
    if (fabs(expected) > (double)FLT_MAX) {
        return fabs(found) > (double)FLT_MAX * 0.99;
    }
    return fabs(found - expected) <= absolute + relative * fabs(expected);
}

static inline void expect_close(const char *what, size_t index, double found, double expected,
                                double absolute, double relative)
{
    if (!is_near(found, expected, absolute, relative)) {
        TEST_FAIL("%s: element %zu: expected %.9g, found %.9g", what, index, expected, found);
    }
}

#endif
