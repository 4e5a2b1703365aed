/*
 * Ends of the products of gemm.cu and gemm_wgmma.cu: which rows are wanted, where they go, and the
 * epilogues of kernels/nn.h on a pair of sums.
 */
#ifndef SWERVE_KERNELS_CUDA_COMMON_GEMM_STORE_CUH
#define SWERVE_KERNELS_CUDA_COMMON_GEMM_STORE_CUH

#include "kernels/cuda/common/gpu.h"
#include "kernels/cuda/common/matrix.h"

/* Offset of row `row` of all items. */
GPU_FN size_t gemm_row_offset(const struct gpu_gemm &g, uint32_t row, size_t item_stride,
                              size_t stride)
{
    return (row / g.rows) * item_stride + (row % g.rows) * stride;
}

/* Whether the tile's rows belong to an active item at all: the same answer in all threads. */
GPU_FN bool gemm_tile_active(const struct gpu_gemm &g, uint32_t first_row, uint32_t rows)
{
    uint32_t end = first_row + rows < g.items * g.rows ? first_row + rows : g.items * g.rows;
    for (uint32_t item = first_row / g.rows; item <= (end - 1) / g.rows; item++) {
        if (g.active == NULL || g.active[item] != 0) {
            return true;
        }
    }
    return false;
}

/* Whether row `row` of all items is there and its item active. */
GPU_FN bool gemm_row_wanted(const struct gpu_gemm &g, uint32_t row)
{
    return row < g.items * g.rows && (g.active == NULL || g.active[row / g.rows] != 0);
}

GPU_FN float gemm_silu(float x)
{
    return x / (1.0f + expf(-x));
}

/* Two neighbouring outputs y of one row; `col` is even. */
GPU_FN void gemm_store_pair(const struct gpu_gemm &g, uint32_t row, uint32_t col, float y0,
                            float y1)
{
    size_t at = gemm_row_offset(g, row, g.c_item, g.ldc) + col;
    if (g.bias != NULL) {
        y0 += g.bias[col];
        y1 += g.bias[col + 1];
    }
    if (g.epilogue == NN_STORE) {
        *reinterpret_cast<float2 *>(g.c + at) = make_float2(y0, y1);
    } else if (g.epilogue == NN_ADD_GATED) {
        float2 *c = reinterpret_cast<float2 *>(g.c + at);
        float2 old = *c;
        float gate0 = 1.0f;
        float gate1 = 1.0f;
        if (g.gate != NULL) {
            const float *gate = g.gate + row / g.rows * g.gate_item;
            gate0 = gate[col];
            gate1 = gate[col + 1];
        }
        *c = make_float2(fmaf(gate0, y0, old.x), fmaf(gate1, y1, old.y));
    } else {
        if (g.epilogue == NN_SILU_ACT) {
            y0 = gemm_silu(y0);
            y1 = gemm_silu(y1);
        }
        *reinterpret_cast<uint32_t *>(static_cast<uint16_t *>(g.out) + at) = gpu_pack_bf16(y0, y1);
    }
}

#endif
