/*
 * Products in registers, compiled for AVX2, AVX-512 and AVX-512 with products of bfloat16 pairs.
 * NN_FP32: one fused chain per output. NN_BF16: blocks of 32 terms in an even and an odd chain, as
 * TDPBF16PS sums them, with denormals flushed by MXCSR while the block runs; the mode is set around
 * a call that is not inlined, so that no other arithmetic runs under it.
 */
#include "kernels/x86/nn_matmul.h"

#define NN_OUTLINE static __attribute__((noinline))

#if defined(__AVX512F__)
enum { VECTORS_FP32 = 4, VECTORS_BF16 = 2 };
#else
enum { VECTORS_FP32 = 1, VECTORS_BF16 = 1 };
#endif

enum { BLOCK_WORDS = NN_BLOCK / WORD_TERMS };

/* 32 terms of a row. */
NN_INLINE void load_terms(const uint16_t *row, float words[BLOCK_WORDS])
{
#if defined(__AVX512BF16__)
    v16_store(words, v16_load_pairs(row));
#else
    v16_store(words, v16_load_bf16(row));
    v16_store(words + 16, v16_load_bf16(row + 16));
#endif
}

/* Loops over registers are unrolled by force and before anything else, or the sums would begin and
 * end in memory: a tenth of the time of a product of 128 terms. */
NN_INLINE void tile_fp32(const struct matmul *p, size_t first, const float *b, float *tile,
                         size_t tile_stride, bool add, const int rows, const int vectors)
{
    v16 sum[MATMUL_ROWS * VECTORS_FP32];
#pragma GCC unroll 24
    for (int i = 0; i < rows * vectors; i++) {
        sum[i] = v16_zero();
    }
    for (uint32_t s = 0; s < p->count; s++) {
        const struct segment *segment = &p->segments[s];
        const size_t stride = segment->stride;
        const float *a = (const float *)segment->base + first * stride;
        for (uint32_t k = 0; k < segment->length; k++, a++, b += 16 * vectors) {
            v16 w[VECTORS_FP32];
#pragma GCC unroll 4
            for (int j = 0; j < vectors; j++) {
                w[j] = v16_load(b + 16 * j);
            }
#pragma GCC unroll 24
            for (int i = 0; i < rows * vectors; i++) {
                v16 x = v16_set1(a[(size_t)(i / vectors) * stride]);
                sum[i] = v16_fma(x, w[i % vectors], sum[i]);
            }
        }
    }
    if (add) {
#pragma GCC unroll 24
        for (int i = 0; i < rows * vectors; i++) {
            const float *at = tile + (size_t)(i / vectors) * tile_stride + i % vectors * NN_LANES;
            sum[i] = v16_add(v16_load(at), sum[i]);
        }
    }
#pragma GCC unroll 24
    for (int i = 0; i < rows * vectors; i++) {
        v16_store(tile + (size_t)(i / vectors) * tile_stride + i % vectors * NN_LANES, sum[i]);
    }
}

/* One block of 32 terms; a[rows][..] as load_terms leaves it, b the block's rows of the panel; adds
 * to the tile. Each turn of the loop takes one row of the panel for either chain. A row's term is
 * used up before the next one is loaded: the chains, one term and four vectors of the panel are
 * what the registers hold. */
NN_INLINE void block_bf16(const float a[][BLOCK_WORDS], const float *b, float *tile,
                          size_t tile_stride, const int rows, const int vectors)
{
    v16 even[MATMUL_ROWS][VECTORS_BF16];
    v16 odd[MATMUL_ROWS][VECTORS_BF16];
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < vectors; j++) {
            even[i][j] = v16_zero();
            odd[i][j] = v16_zero();
        }
    }
    for (int k = 0; k < BLOCK_WORDS; k += 2, b += 32 * vectors) {
        v16 w0[VECTORS_BF16];
        v16 w1[VECTORS_BF16];
        for (int j = 0; j < vectors; j++) {
            w0[j] = v16_load(b + 16 * j);
            w1[j] = v16_load(b + 16 * (vectors + j));
        }
        for (int i = 0; i < rows; i++) {
            v16 x = v16_set1(a[i][k]);
            for (int j = 0; j < vectors; j++) {
                even[i][j] = v16_add_terms(x, w0[j], even[i][j]);
            }
            x = v16_set1(a[i][k + 1]);
            for (int j = 0; j < vectors; j++) {
                odd[i][j] = v16_add_terms(x, w1[j], odd[i][j]);
            }
        }
    }
    NN_FORGET; /* the totals stay in memory: no register is left for them */
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < vectors; j++) {
            float *total = tile + (size_t)i * tile_stride + 16 * j;
            v16_store(total, v16_add(v16_load(total), v16_add(even[i][j], odd[i][j])));
        }
    }
    NN_FORGET;
}

NN_INLINE void tile_bf16(const struct matmul *p, size_t first, const float *b, float *tile,
                         size_t tile_stride, const int rows, const int vectors)
{
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < vectors; j++) {
            v16_store(tile + (size_t)i * tile_stride + 16 * j, v16_zero());
        }
    }
    for (uint32_t s = 0; s < p->count; s++) {
        const struct segment *segment = &p->segments[s];
        const uint16_t *a = (const uint16_t *)segment->base + first * segment->stride;
        for (uint32_t k = 0; k < segment->length; k += NN_BLOCK, b += BLOCK_WORDS * 16 * vectors) {
            float terms[MATMUL_ROWS][BLOCK_WORDS];
            for (int i = 0; i < rows; i++) {
                load_terms(a + (size_t)i * segment->stride + k, terms[i]);
            }
            block_bf16(terms, b, tile, tile_stride, rows, vectors);
        }
    }
}

/* One function per number of rows, so that the sums stay in registers. */
#define TILE_FP32(rows, vectors)                                                                  \
    NN_OUTLINE void tile_fp32_##rows##_##vectors(const struct matmul *p, size_t first,            \
                                                 const float *b, float *tile, size_t tile_stride, \
                                                 bool add)                                        \
    {                                                                                             \
        tile_fp32(p, first, b, tile, tile_stride, add, rows, vectors);                            \
    }
#define TILE_BF16(rows, vectors)                                                                  \
    NN_OUTLINE void tile_bf16_##rows##_##vectors(const struct matmul *p, size_t first,            \
                                                 const float *b, float *tile, size_t tile_stride) \
    {                                                                                             \
        tile_bf16(p, first, b, tile, tile_stride, rows, vectors);                                 \
    }

typedef void (*tile_fp32_function)(const struct matmul *p, size_t first, const float *b,
                                   float *tile, size_t tile_stride, bool add);
typedef void (*tile_bf16_function)(const struct matmul *p, size_t first, const float *b,
                                   float *tile, size_t tile_stride);

#if defined(__AVX512F__)
TILE_FP32(1, 4)
TILE_FP32(2, 4)
TILE_FP32(3, 4)
TILE_FP32(4, 4)
TILE_FP32(5, 4)
TILE_FP32(6, 4)
TILE_FP32(1, 2)
TILE_FP32(2, 2)
TILE_FP32(3, 2)
TILE_FP32(4, 2)
TILE_FP32(5, 2)
TILE_FP32(6, 2)
TILE_BF16(1, 2)
TILE_BF16(2, 2)
TILE_BF16(3, 2)
TILE_BF16(4, 2)
TILE_BF16(5, 2)
TILE_BF16(6, 2)

static tile_fp32_function find_fp32(uint32_t rows, uint32_t width)
{
    static const tile_fp32_function wide[] = {tile_fp32_1_4, tile_fp32_2_4, tile_fp32_3_4,
                                              tile_fp32_4_4, tile_fp32_5_4, tile_fp32_6_4};
    static const tile_fp32_function narrow[] = {tile_fp32_1_2, tile_fp32_2_2, tile_fp32_3_2,
                                                tile_fp32_4_2, tile_fp32_5_2, tile_fp32_6_2};
    return width == 64 ? wide[rows - 1] : narrow[rows - 1];
}

static tile_bf16_function find_bf16(uint32_t rows)
{
    static const tile_bf16_function all[] = {tile_bf16_1_2, tile_bf16_2_2, tile_bf16_3_2,
                                             tile_bf16_4_2, tile_bf16_5_2, tile_bf16_6_2};
    return all[rows - 1];
}
#else
TILE_FP32(1, 1)
TILE_FP32(2, 1)
TILE_FP32(3, 1)
TILE_FP32(4, 1)
TILE_FP32(5, 1)
TILE_FP32(6, 1)
TILE_BF16(1, 1)
TILE_BF16(2, 1)
TILE_BF16(3, 1)

static tile_fp32_function find_fp32(uint32_t rows, uint32_t width)
{
    static const tile_fp32_function all[] = {tile_fp32_1_1, tile_fp32_2_1, tile_fp32_3_1,
                                             tile_fp32_4_1, tile_fp32_5_1, tile_fp32_6_1};
    (void)width;
    return all[rows - 1];
}

static tile_bf16_function find_bf16(uint32_t rows)
{
    static const tile_bf16_function all[] = {tile_bf16_1_1, tile_bf16_2_1, tile_bf16_3_1};
    return all[rows - 1];
}
#endif

void NN_NAME(matmul_fp32)(const struct matmul *p, size_t first, uint32_t rows, const float *b,
                          uint32_t width, float *tile, size_t tile_stride, bool add)
{
    find_fp32(rows, width)(p, first, b, tile, tile_stride, add);
}

void NN_NAME(matmul_bf16)(const struct matmul *p, size_t first, uint32_t rows, const float *b,
                          uint32_t width, float *tile, size_t tile_stride)
{
    const unsigned flush = 0x8040; /* flush to zero, denormals are zero */
    (void)width;
    unsigned mode = _mm_getcsr();
    _mm_setcsr(mode | flush);
    find_bf16(rows)(p, first, b, tile, tile_stride);
    _mm_setcsr(mode);
}
