/*
 * Matrix product and 3 x 3 convolution on the vector units, compiled for AVX2 and for AVX-512.
 * Panels of weights outside, rows inside: a panel is read from memory once and then lies in the
 * second-level cache. Results do not depend on how rows are cut into tiles.
 */
#include "kernels/x86/nn_epilogue.h"
#include "kernels/x86/nn_matmul.h"
#include "kernels/x86/nn_x86.h"

/* Vectors that an epilogue takes at a time; a panel is a multiple of them. */
#if defined(__AVX512F__)
enum { VECTORS = 2 };
#else
enum { VECTORS = 1 };
#endif
enum { STEP = VECTORS * NN_LANES };

size_t NN_NAME(packed_bytes_fp32)(uint32_t n, uint32_t k)
{
    return n * panel_rows(NN_FP32, k) * sizeof(float);
}

size_t NN_NAME(packed_bytes_bf16)(uint32_t n, uint32_t k)
{
    return n * panel_rows(NN_BF16, k) * sizeof(float);
}

NN_INLINE void pack(enum nn_precision precision, const float *w, uint32_t n, uint32_t k, float *out)
{
    uint32_t width;
    for (uint32_t col = 0; col < n; col += width) {
        width = matmul_width(precision, n, col);
        for (uint32_t i = 0; i < k; i += NN_LANES) {
            for (uint32_t j = 0; j < width; j++) {
                float terms[NN_LANES];
                v16_store(terms, act_round(precision, v16_load(w + (size_t)(col + j) * k + i)));
                for (uint32_t q = 0; q < NN_LANES; q += 4) {
                    panel_store_one(precision, out + panel_rows(precision, i + q) * width + j,
                                    width, terms + q);
                }
            }
        }
        out += width * panel_rows(precision, k);
    }
}

/* Sums that are the output as they are, or are added to it. */
NN_INLINE bool goes_straight(enum nn_precision precision, const struct nn_gemm *g)
{
    return precision == NN_FP32 && g->bias == NULL &&
           (g->epilogue == NN_STORE || (g->epilogue == NN_ADD_GATED && g->gate == NULL));
}

NN_INLINE void gemm_rows(enum nn_precision precision, const struct nn_gemm *g,
                         const struct matmul *p, uint32_t row, uint32_t rows, uint32_t col,
                         const float *b, uint32_t width)
{
    _Alignas(64) float tile[MATMUL_ROWS * MATMUL_COLUMNS];
    if (goes_straight(precision, g)) {
        NN_NAME(matmul_fp32)
        (p, row, rows, b, width, g->c + row * g->ldc + col, g->ldc, g->epilogue == NN_ADD_GATED);
        return;
    }
    matmul_tile(precision, p, row, rows, b, width, tile);
    for (uint32_t i = 0; i < rows; i++) {
        struct sums sums = {tile + i * MATMUL_COLUMNS, MATMUL_COLUMNS};
        for (uint32_t j = 0; j < width; j += STEP, sums.first += STEP) {
            gemm_finish(precision, g->epilogue, g, row + i, col + j, sums, 1, VECTORS);
        }
    }
}

NN_INLINE void gemm(enum nn_precision precision, const struct nn_gemm *g, uint32_t first_row,
                    uint32_t end_row)
{
    const struct matmul p = {.segments = {{g->a, g->lda, g->k}}, .count = 1};
    const uint32_t step = matmul_rows(precision);
    const float *b = g->b;
    uint32_t width;
    for (uint32_t col = 0; col < g->n; col += width) {
        width = matmul_width(precision, g->n, col);
        uint32_t rows;
        for (uint32_t row = first_row; row < end_row; row += rows) {
            rows = end_row - row < step ? end_row - row : step;
            gemm_rows(precision, g, &p, row, rows, col, b, width);
        }
        b += width * panel_rows(precision, g->k);
    }
}

NN_INLINE void conv3x3(enum nn_precision precision, const struct nn_conv *c, uint32_t first_row,
                       uint32_t end_row)
{
    _Alignas(64) float tile[MATMUL_ROWS * MATMUL_COLUMNS];
    const struct matmul p = conv_matmul(precision, c);
    const uint32_t step = matmul_rows(precision);
    const uint32_t depth = 9 * nn_conv_depth(c->in_count, c->in_channels);
    const float *b = c->b;
    uint32_t width;
    for (uint32_t o = 0; o < c->out_channels; o += width) {
        width = matmul_width(precision, c->out_channels, o);
        for (uint32_t row = first_row; row < end_row; row++) {
            uint32_t count;
            for (uint32_t col = 0; col < c->cols; col += count) {
                count = c->cols - col < step ? c->cols - col : step;
                size_t first = (size_t)row * (c->cols + 2) + col;
                matmul_tile(precision, &p, first, count, b, width, tile);
                for (uint32_t i = 0; i < count; i++) {
                    struct sums sums = {tile + i * MATMUL_COLUMNS, MATMUL_COLUMNS};
                    for (uint32_t j = 0; j < width; j += STEP, sums.first += STEP) {
                        conv_finish(precision, c, row, col + i, o + j, sums, 1, VECTORS);
                    }
                }
            }
        }
        b += width * panel_rows(precision, depth);
    }
}

void NN_NAME(pack_fp32)(const float *w, uint32_t n, uint32_t k, void *out)
{
    pack(NN_FP32, w, n, k, out);
}

void NN_NAME(pack_bf16)(const float *w, uint32_t n, uint32_t k, void *out)
{
    pack(NN_BF16, w, n, k, out);
}

void NN_NAME(gemm_fp32)(const struct nn_gemm *g, uint32_t first_row, uint32_t end_row)
{
    gemm(NN_FP32, g, first_row, end_row);
}

void NN_NAME(gemm_bf16)(const struct nn_gemm *g, uint32_t first_row, uint32_t end_row)
{
    gemm(NN_BF16, g, first_row, end_row);
}

void NN_NAME(conv3x3_fp32)(const struct nn_conv *c, uint32_t first_row, uint32_t end_row)
{
    conv3x3(NN_FP32, c, first_row, end_row);
}

void NN_NAME(conv3x3_bf16)(const struct nn_conv *c, uint32_t first_row, uint32_t end_row)
{
    conv3x3(NN_BF16, c, first_row, end_row);
}
