/*
 * The product that matrix multiplication, convolution and attention share: a tile of up to
 * MATMUL_ROWS rows by one panel of columns, its terms in segments that lie apart (one for a
 * matrix, one per tap and input for a convolution, which so reads its map in place).
 *
 * Panels: columns are packed `matmul_panel` at a time (the last may be narrower), each [k][width]
 * floats, already rounded to the activation type. Where the processor multiplies pairs of bfloat16,
 * a panel is [k / 2][width] words instead: terms (4 i, 4 i + 2) in row 2 i and (4 i + 1, 4 i + 3)
 * in row 2 i + 1, so that a row belongs to one of the two chains of a block.
 */
#ifndef SWERVE_KERNELS_X86_NN_MATMUL_H
#define SWERVE_KERNELS_X86_NN_MATMUL_H

#include "kernels/x86/nn_lanes.h"

#include <stdbool.h>
#include <string.h>

#if defined(__AVX2__)

enum {
    MATMUL_ROWS = 6,
    MATMUL_COLUMNS = 64, /* of a tile of sums */
    MATMUL_SEGMENTS = 18,
};

/* Terms of consecutive rows: element (row, i) is base[row * stride + i]. */
struct segment {
    const void *base; /* act */
    size_t stride;
    uint32_t length; /* a multiple of 32 in NN_BF16 */
};

struct matmul {
    struct segment segments[MATMUL_SEGMENTS];
    uint32_t count;
};

/* Columns of a full panel. */
NN_INLINE uint32_t matmul_panel(enum nn_precision precision)
{
#if defined(__AVX512F__)
    return precision == NN_BF16 ? 32 : 64;
#else
    (void)precision;
    return 16;
#endif
}

NN_INLINE uint32_t matmul_width(enum nn_precision precision, uint32_t columns, uint32_t col)
{
    uint32_t panel = matmul_panel(precision);
    return columns - col < panel ? columns - col : panel;
}

/* Rows of a panel of k terms. */
NN_INLINE size_t panel_rows(enum nn_precision precision, uint32_t k)
{
    return precision == NN_BF16 ? k / WORD_TERMS : k;
}

/* Four terms (rounded; the first at a multiple of 4) of 16 columns, and of one; `panel` is at their
 * first row and column. */
NN_INLINE void panel_store(enum nn_precision precision, float *panel, uint32_t width,
                           const v16 terms[4])
{
#if defined(__AVX512BF16__)
    if (precision == NN_BF16) {
        v16_store(panel, v16_pair(terms[0], terms[2]));
        v16_store(panel + width, v16_pair(terms[1], terms[3]));
        return;
    }
#endif
    (void)precision;
    for (uint32_t i = 0; i < 4; i++) {
        v16_store(panel + (size_t)i * width, terms[i]);
    }
}

NN_INLINE void panel_store_one(enum nn_precision precision, float *panel, uint32_t width,
                               const float terms[4])
{
#if defined(__AVX512BF16__)
    if (precision == NN_BF16) {
        uint32_t bits[4];
        memcpy(bits, terms, sizeof bits);
        for (uint32_t i = 0; i < 2; i++) {
            uint32_t pair = bits[i] | bits[i + 2] >> 16;
            memcpy(panel + (size_t)i * width, &pair, sizeof pair);
        }
        return;
    }
#endif
    (void)precision;
    for (uint32_t i = 0; i < 4; i++) {
        panel[(size_t)i * width] = terms[i];
    }
}

/* Rows of one tile: what the registers hold. */
NN_INLINE uint32_t matmul_rows(enum nn_precision precision)
{
#if defined(__AVX512F__)
    (void)precision;
    return 6;
#else
    return precision == NN_BF16 ? 3 : 6;
#endif
}

/* Segments of all taps and inputs; "rows" of the product are positions of the padded map. */
NN_INLINE struct matmul conv_matmul(enum nn_precision precision, const struct nn_conv *c)
{
    struct matmul p = {.count = 0};
    for (uint32_t tap = 0; tap < 9; tap++) {
        for (uint32_t i = 0; i < c->in_count; i++) {
            uint32_t channels = c->in_channels[i];
            size_t offset = ((size_t)(tap / 3) * (c->cols + 2) + tap % 3) * channels;
            p.segments[p.count++] = (struct segment){
                (const uint8_t *)c->in[i] + offset * nn_act_bytes(precision), channels, channels};
        }
    }
    return p;
}

/* tile[r][0..width - 1] = sums of rows first .. first + rows - 1 with the panel b; the tile's rows
 * are tile_stride floats apart. `add`: added to what the tile holds. width is 16, 32 or 64, as
 * matmul_width gives it. */
void NN_NAME(matmul_fp32)(const struct matmul *p, size_t first, uint32_t rows, const float *b,
                          uint32_t width, float *tile, size_t tile_stride, bool add);
void NN_NAME(matmul_bf16)(const struct matmul *p, size_t first, uint32_t rows, const float *b,
                          uint32_t width, float *tile, size_t tile_stride);

/* Into a tile of its own, rows MATMUL_COLUMNS apart. */
NN_INLINE void matmul_tile(enum nn_precision precision, const struct matmul *p, size_t first,
                           uint32_t rows, const float *b, uint32_t width, float *tile)
{
    if (precision == NN_BF16) {
        NN_NAME(matmul_bf16)(p, first, rows, b, width, tile, MATMUL_COLUMNS);
    } else {
        NN_NAME(matmul_fp32)(p, first, rows, b, width, tile, MATMUL_COLUMNS, false);
    }
}

#endif

#endif
