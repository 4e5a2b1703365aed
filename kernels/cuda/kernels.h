/*
 * What the CUDA kernels offer to the module: one launcher per operation, in plain C. Pointers of
 * the structs are device memory; structs are passed to kernels by value, so a captured graph keeps
 * the pointers and sizes that it was captured with. A launcher queues its kernels on `stream` (a
 * cudaStream_t), checks nothing that a caller cannot know, and returns at once; launch errors show
 * in cudaGetLastError.
 *
 * Bits of a result depend on that row, token or position alone: never on how many others there are,
 * where it lies in the batch, or the schedule. Tolerances against kernels/ref are in tests/cuda.
 *
 * A batch is groups of rows that share their modulation: a slot's tokens or positions.
 * group_rows = 0: one group.
 */
#ifndef SWERVE_KERNELS_CUDA_KERNELS_H
#define SWERVE_KERNELS_CUDA_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum gpu_type {
    GPU_F32 = 0,
    GPU_BF16, /* uint16_t */
    GPU_E4M3, /* uint8_t, OCP FP8, with a float scale per row: value = byte * scale */
};

/* ---- norm.cu ---- */

/* out[r] = LN(x[r]) * (one + scale) + shift, eps 1e-6, one = 1 or 0; kernels/nn.h `norm`. */
struct gpu_norm {
    uint32_t rows, width; /* width: a multiple of 4, at most 8192 */
    const void *x;        /* [rows][width] */
    enum gpu_type x_type; /* GPU_F32 or GPU_BF16 */
    float one;
    const float *scale; /* scale[group * group_stride + column]; NULL with shift: plain LN */
    const float *shift;
    uint32_t group_rows;
    size_t group_stride; /* floats */
    enum gpu_type out_type;
    void *out;        /* [rows][width] */
    float *row_scale; /* [rows], GPU_E4M3: largest magnitude / 448, 1 for a row of zeros */
};
void gpu_norm_launch(const struct gpu_norm *norm, void *stream);

#ifdef __cplusplus
}
#endif

#endif
