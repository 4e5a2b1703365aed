/*
 * Layouts of products of a warpgroup: where numbers lie in tiles of shared memory and in registers,
 * and the descriptor of a tile. Pure functions of integers: kernels place by them, the
 * emulator (tests/simt/simt_wgmma.cpp) reads registers by them, and tests/cuda/wgmma_layout.cpp
 * compares each with what CUTLASS's headers say, on the host. PTX ISA, 9.7.15.5.1; gpu.h tells it
 * in words.
 */
#ifndef SWERVE_KERNELS_CUDA_COMMON_WGMMA_LAYOUT_H
#define SWERVE_KERNELS_CUDA_COMMON_WGMMA_LAYOUT_H

#include "base/both.h"

#include <stdint.h>

enum {
    WGMMA_ROW_BYTES = 128, /* of a row of a panel: 64 numbers of bf16, 128 of e4m3 */
    WGMMA_ROWS_BYTES = 8 * WGMMA_ROW_BYTES, /* of eight rows: the pattern repeats */
    WGMMA_PANEL_ROWS = 128,
    WGMMA_PANEL_BYTES = WGMMA_PANEL_ROWS * WGMMA_ROW_BYTES,
    WGMMA_PANEL_PIECES = 8, /* of 16 bytes, in a row */
};

/* Byte of 16 in a panel: number `piece`, 0 to 7, of row `row`. */
BOTH_FN uint32_t wgmma_place(uint32_t row, uint32_t piece)
{
    return row * WGMMA_ROW_BYTES + (piece ^ row % 8) * 16;
}

/* The same in a tile of 128 rows of more than 128 bytes: panels one after the other. */
BOTH_FN uint32_t wgmma_tile_place(uint32_t row, uint32_t piece)
{
    return piece / WGMMA_PANEL_PIECES * WGMMA_PANEL_BYTES +
           wgmma_place(row, piece % WGMMA_PANEL_PIECES);
}

/* Bytes from a tile's beginning to its 32-byte step `step` of k: where rows are k's own (K-major)
 * and where a row is one k (MN-major, 16 rows of bf16). */
BOTH_FN uint32_t wgmma_step_k_major(uint32_t step)
{
    return step / 4 * WGMMA_PANEL_BYTES + step % 4 * 32;
}

BOTH_FN uint32_t wgmma_step_mn_major(uint32_t step)
{
    return step * 2 * WGMMA_ROWS_BYTES;
}

/* Descriptor of a tile of the 128-byte swizzle (9.7.15.5.1.2.2): an address in shared memory, at a
 * multiple of 1,024 but for a step along K-major rows, and strides in bytes. */
BOTH_FN uint64_t wgmma_descriptor(uint32_t address, uint32_t leading_bytes, uint32_t stride_bytes)
{
    return (uint64_t)(address >> 4 & 0x3FFF) | (uint64_t)(leading_bytes >> 4 & 0x3FFF) << 16 |
           (uint64_t)(stride_bytes >> 4 & 0x3FFF) << 32 | (uint64_t)1 << 62;
}

#endif
