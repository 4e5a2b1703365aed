/*
 * Products of integers (NN_INT8) on the vector units, compiled for AVX2, AVX-512 and AVX-512
 * with products of four bytes (VNNI). Sums are exact, so only the epilogue's order is bound; tiles
 * of sums lie in registers, panels of weights outside, rows inside, as in nn_gemm.c.
 *
 * A panel is [width] scales, then [k / INT8_TERMS][width] words. VNNI's VPDPBUSD takes one side
 * without sign: a word holds four weights plus 128, and 128 times the row's sum is taken off before
 * the sum begins. Without it a word holds two weights of 16 bits, for VPMADDWD; pairs of bytes
 * (VPMADDUBSW) saturate at 16 bits.
 */
#include "kernels/ref/nn_scalar.h"
#include "kernels/x86/nn_epilogue.h"

enum {
    INT8_ROWS = 6, /* of a tile: what the registers hold */
    INT8_TILE_COLUMNS = 64,
};

#if defined(__AVX512F__)
enum { INT8_PANEL = 64, EPILOGUE_VECTORS = 2 };
#else
enum { INT8_PANEL = 16, EPILOGUE_VECTORS = 1 };
#endif
enum { INT8_VECTORS = INT8_PANEL / NN_LANES, EPILOGUE_STEP = EPILOGUE_VECTORS * NN_LANES };

/* ---- weights ---- */

#if defined(__AVX512VNNI__)
enum { INT8_TERMS = 4, INT8_OFFSET = 128 };

static void put_weight(void *words, size_t index, int8_t q)
{
    ((uint8_t *)words)[index] = (uint8_t)(q + INT8_OFFSET);
}
#else
enum { INT8_TERMS = 2, INT8_OFFSET = 0 };

static void put_weight(void *words, size_t index, int8_t q)
{
    ((int16_t *)words)[index] = q;
}
#endif

static uint32_t panel_width(uint32_t n, uint32_t col)
{
    return n - col < INT8_PANEL ? n - col : INT8_PANEL;
}

static size_t panel_words(uint32_t width, uint32_t k)
{
    return (size_t)width * (1 + k / INT8_TERMS);
}

static size_t packed_bytes(uint32_t n, uint32_t k)
{
    return panel_words(n, k) * sizeof(int32_t);
}

static void pack(const float *w, uint32_t n, uint32_t k, void *out)
{
    float *panel = out;
    uint32_t width;
    for (uint32_t col = 0; col < n; col += width) {
        width = panel_width(n, col);
        for (uint32_t j = 0; j < width; j++) {
            const float *from = w + (size_t)(col + j) * k;
            struct nn_int8_step step = nn_int8_weights(from, k);
            panel[j] = step.scale;
            for (uint32_t i = 0; i < k; i++) {
                size_t word = (size_t)(i / INT8_TERMS) * width + j;
                put_weight(panel + width, word * INT8_TERMS + i % INT8_TERMS,
                           nn_to_int8(from[i], step));
            }
        }
        panel += panel_words(width, k);
    }
}

/* ---- activations ---- */

static void to_int8(const void *act, uint32_t k, int8_t *q, size_t ldq, struct nn_int8_row *rows,
                    uint32_t first_row, uint32_t end_row)
{
    for (size_t row = first_row; row < end_row; row++) {
        const uint16_t *x = (const uint16_t *)act + row * k;
        int8_t *to = q + row * ldq;
        struct nn_int8_step step = nn_int8_step(bf16_largest(x, k) << 16);
        if (step.inverse == 0.0f) {
            rows[row] = (struct nn_int8_row){.scale = step.scale};
            memset(to, 0, k);
            continue;
        }
        const v16 inverse = v16_set1(step.inverse);
        w16 sum = w16_set1(0);
        for (uint32_t i = 0; i < k; i += NN_LANES) {
            w16 words = v16_to_words(v16_mul(v16_load_bf16(x + i), inverse));
            w16_store_bytes(to + i, words);
            sum = w16_add(sum, words);
        }
        rows[row] = (struct nn_int8_row){.scale = step.scale, .sum = w16_sum(sum)};
    }
}

/* ---- sums ---- */

enum { BLOCK_WORDS = NN_BLOCK / INT8_TERMS };

#if defined(__AVX512VNNI__)
NN_INLINE s16 add_word(s16 sum, int32_t a, w16 w)
{
    return s16_add_bytes(sum, w, w16_set1((uint32_t)a));
}

NN_INLINE void load_block(const int8_t *row, int32_t words[BLOCK_WORDS])
{
    memcpy(words, row, NN_BLOCK);
}
#else
NN_INLINE s16 add_word(s16 sum, int32_t a, w16 w)
{
    return s16_add_halves(sum, w16_set1((uint32_t)a), w);
}

NN_INLINE void load_block(const int8_t *row, int32_t words[BLOCK_WORDS])
{
    int16_t halves[NN_BLOCK];
    halves_from_bytes(halves, row);
    halves_from_bytes(halves + 16, row + 16);
    memcpy(words, halves, sizeof halves);
}
#endif

/* tile[r][0 .. 16 vectors - 1] = scaled sums of rows first .. first + rows - 1 with a panel. */
NN_INLINE void tile_of(const struct nn_gemm *g, size_t first, const float *panel, float *tile,
                       const int rows, const int vectors)
{
    const int8_t *a = (const int8_t *)g->a + first * g->lda;
    const void *words = panel + NN_LANES * vectors;
    const int32_t *b = words;
    s16 sum[INT8_ROWS][INT8_VECTORS];
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < vectors; j++) {
            sum[i][j] = s16_set1(-INT8_OFFSET * g->rows[first + i].sum);
        }
    }
    for (uint32_t k = 0; k < g->k; k += NN_BLOCK) {
        int32_t terms[INT8_ROWS][BLOCK_WORDS];
        for (int i = 0; i < rows; i++) {
            load_block(a + (size_t)i * g->lda + k, terms[i]);
        }
        for (int word = 0; word < BLOCK_WORDS; word++, b += NN_LANES * vectors) {
            w16 w[INT8_VECTORS];
            for (int j = 0; j < vectors; j++) {
                w[j] = w16_load(b + NN_LANES * j);
            }
            for (int i = 0; i < rows; i++) {
                for (int j = 0; j < vectors; j++) {
                    sum[i][j] = add_word(sum[i][j], terms[i][word], w[j]);
                }
            }
        }
    }
    for (int i = 0; i < rows; i++) {
        const v16 scale = v16_set1(g->rows[first + i].scale);
        for (int j = 0; j < vectors; j++) {
            v16 step = v16_mul(scale, v16_load(panel + NN_LANES * j));
            v16_store(tile + i * INT8_TILE_COLUMNS + NN_LANES * j,
                      v16_mul(s16_to_float(sum[i][j]), step));
        }
    }
}

/* One function per number of rows, so that the sums stay in registers. */
#define TILE_FUNCTION(rows, vectors)                                            \
    static __attribute__((noinline)) void tile_##rows##_##vectors(              \
        const struct nn_gemm *g, size_t first, const float *panel, float *tile) \
    {                                                                           \
        tile_of(g, first, panel, tile, rows, vectors);                          \
    }

typedef void (*tile_function)(const struct nn_gemm *g, size_t first, const float *panel,
                              float *tile);

#if defined(__AVX512F__)
TILE_FUNCTION(1, 4)
TILE_FUNCTION(2, 4)
TILE_FUNCTION(3, 4)
TILE_FUNCTION(4, 4)
TILE_FUNCTION(5, 4)
TILE_FUNCTION(6, 4)
TILE_FUNCTION(1, 2)
TILE_FUNCTION(2, 2)
TILE_FUNCTION(3, 2)
TILE_FUNCTION(4, 2)
TILE_FUNCTION(5, 2)
TILE_FUNCTION(6, 2)

static tile_function find_tile(uint32_t rows, uint32_t width)
{
    static const tile_function wide[] = {tile_1_4, tile_2_4, tile_3_4,
                                         tile_4_4, tile_5_4, tile_6_4};
    static const tile_function narrow[] = {tile_1_2, tile_2_2, tile_3_2,
                                           tile_4_2, tile_5_2, tile_6_2};
    return width == INT8_PANEL ? wide[rows - 1] : narrow[rows - 1];
}
#else
TILE_FUNCTION(1, 1)
TILE_FUNCTION(2, 1)
TILE_FUNCTION(3, 1)
TILE_FUNCTION(4, 1)
TILE_FUNCTION(5, 1)
TILE_FUNCTION(6, 1)

static tile_function find_tile(uint32_t rows, uint32_t width)
{
    static const tile_function all[] = {tile_1_1, tile_2_1, tile_3_1, tile_4_1, tile_5_1, tile_6_1};
    (void)width;
    return all[rows - 1];
}
#endif

static void gemm(const struct nn_gemm *g, uint32_t first_row, uint32_t end_row)
{
    _Alignas(64) float tile[INT8_ROWS * INT8_TILE_COLUMNS];
    const float *panel = g->b;
    uint32_t width;
    for (uint32_t col = 0; col < g->n; col += width) {
        width = panel_width(g->n, col);
        uint32_t rows;
        for (uint32_t row = first_row; row < end_row; row += rows) {
            rows = end_row - row < INT8_ROWS ? end_row - row : INT8_ROWS;
            find_tile(rows, width)(g, row, panel, tile);
            for (uint32_t i = 0; i < rows; i++) {
                struct sums sums = {tile + i * INT8_TILE_COLUMNS, INT8_TILE_COLUMNS};
                for (uint32_t j = 0; j < width; j += EPILOGUE_STEP, sums.first += EPILOGUE_STEP) {
                    gemm_finish(NN_BF16, g->epilogue, g, row + i, col + j, sums, 1,
                                EPILOGUE_VECTORS);
                }
            }
        }
        panel += panel_words(width, g->k);
    }
}

void NN_NAME(table_int8)(struct nn_kernels *kernels)
{
#if defined(__AVX512VNNI__)
    kernels->name = "avx512vnni";
#elif defined(__AVX512F__)
    kernels->name = "avx512";
#else
    kernels->name = "avx2";
#endif
    kernels->packed_bytes_int8 = packed_bytes;
    kernels->pack_int8 = pack;
    kernels->to_int8 = to_int8;
    kernels->gemm_int8 = gemm;
}
