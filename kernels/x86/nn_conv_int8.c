/*
 * The 3 x 3 convolution of integers (NN_INT8) on the vector units, compiled for AVX2, AVX-512
 * and AVX-512 with products of four bytes (VNNI). Lines of the inputs become integers as they
 * are reached and stay for the three rows that need them. The taps of a row of the kernel lie one
 * after the other in a line, so a *segment* (a line of one input) is one product of 3 * channels
 * terms whose rows overlap; its exact sums are scaled and added to the totals, which stay in
 * memory.
 *
 * Packed: [n] scales, [segments][n] sums of the weights, then panels of CONV_PANEL outputs, each
 * [segment][3 * used channels / CONV_TERMS][CONV_PANEL] words; behind all of them, where they would
 * end if every channel were used, the used channels of each segment. VNNI's VPDPBUSD takes one side
 * without sign: there a line holds its numbers plus the line's zero, and a sum starts at minus that
 * many times its weights.
 */
#include "kernels/ref/nn_scalar.h"
#include "kernels/x86/nn_epilogue.h"
#include "kernels/x86/nn_x86.h"

#include "base/check.h"

#include <string.h>

enum { CONV_SEGMENTS = 6, CONV_PANEL = 32 };

#if defined(__AVX512F__)
enum { CONV_ROWS = 12, CONV_VECTORS = 2 };
#else
enum { CONV_ROWS = 6, CONV_VECTORS = 1 };
#endif
enum { CONV_WIDTH = CONV_VECTORS * NN_LANES };

#if defined(__AVX512VNNI__)
enum { CONV_TERMS = 4, CONV_OFFSET = 1 };
typedef int8_t conv_weight;
typedef uint8_t conv_term;

NN_INLINE void store_terms(conv_term *out, w16 words)
{
    w16_store_bytes((int8_t *)out, words);
}

NN_INLINE s16 add_word(s16 sum, w16 a, w16 w)
{
    return s16_add_bytes(sum, a, w);
}
#else
enum { CONV_TERMS = 2, CONV_OFFSET = 0 };
typedef int16_t conv_weight;
typedef int16_t conv_term;

NN_INLINE void store_terms(conv_term *out, w16 words)
{
    w16_store_halves(out, words);
}

NN_INLINE s16 add_word(s16 sum, w16 a, w16 w)
{
    return s16_add_halves(sum, a, w);
}
#endif

/* ---- weights ---- */

struct packed {
    float *scale;       /* [n] */
    int32_t *sums;      /* [segments][n] */
    conv_weight *panel; /* [n / CONV_PANEL][panel_terms] */
    size_t panel_terms;
    uint32_t *used; /* [CONV_SEGMENTS] */
};

static struct packed packed_at(void *base, uint32_t n, uint32_t segments, uint32_t depth)
{
    uint8_t *at = base;
    void *sums = at + n * sizeof(float);
    conv_weight *panel = (void *)(at + n * (sizeof(float) + segments * sizeof(int32_t)));
    void *used = panel + (size_t)9 * depth * n;
    return (struct packed){base, sums, panel, 0, used};
}

/* Terms of a panel, of what the used channels say. */
static size_t panel_terms(const struct packed *p, uint32_t segments)
{
    size_t channels = 0;
    for (uint32_t s = 0; s < segments; s++) {
        channels += p->used[s];
    }
    return 3 * channels * CONV_PANEL;
}

static size_t packed_bytes(uint32_t n, uint32_t in_count, const uint32_t in_channels[2])
{
    const size_t depth = nn_conv_depth(in_count, in_channels);
    return n * (sizeof(float) + 3 * in_count * sizeof(int32_t) + 9 * depth * sizeof(conv_weight)) +
           CONV_SEGMENTS * sizeof(uint32_t);
}

/* One output's weights of the used channels of one segment, quantised; returns their sum. */
static int32_t pack_segment(const float *taps, uint32_t depth, uint32_t used,
                            struct nn_int8_step step, conv_weight *words)
{
    int32_t sum = 0;
    for (uint32_t k = 0; k < 3 * used; k++) {
        int8_t q = nn_to_int8(taps[(size_t)(k / used) * depth + k % used], step);
        words[(size_t)(k / CONV_TERMS) * CONV_PANEL * CONV_TERMS + k % CONV_TERMS] = q;
        sum += q;
    }
    return sum;
}

static void pack(const float *w, uint32_t n, uint32_t in_count, const uint32_t in_channels[2],
                 const uint32_t in_used[2], void *out)
{
    const uint32_t depth = nn_conv_depth(in_count, in_channels);
    struct packed p = packed_at(out, n, 3 * in_count, depth);
    for (uint32_t s = 0; s < CONV_SEGMENTS; s++) {
        p.used[s] = s < 3 * in_count ? in_used[s % in_count] : 0;
        CHECK(p.used[s] % 4 == 0);
    }
    p.panel_terms = panel_terms(&p, 3 * in_count);
    for (uint32_t o = 0; o < n; o++, w += (size_t)9 * depth) {
        const struct nn_int8_step step = nn_int8_weights(w, 9 * depth);
        conv_weight *words = p.panel + o / CONV_PANEL * p.panel_terms + o % CONV_PANEL * CONV_TERMS;
        p.scale[o] = step.scale;
        for (uint32_t s = 0; s < 3 * in_count; s++) {
            const float *taps =
                w + (size_t)(s / in_count) * 3 * depth + (s % in_count > 0 ? in_channels[0] : 0);
            p.sums[(size_t)s * n + o] = pack_segment(taps, depth, p.used[s], step, words);
            words += (size_t)3 * p.used[s] * CONV_PANEL;
        }
    }
}

/* ---- lines of the inputs ---- */

struct line {
    float scale;
    int32_t zero; /* of what the terms hold */
    _Alignas(64) conv_term terms[(NN_CONV_INT8_COLS_MAX + 2) * NN_CONV_INT8_CHANNELS_MAX];
};

struct lines {
    struct line input[2][3]; /* by padded row, modulo 3 */
};

static void quantise_line(const struct nn_conv *c, uint32_t input, uint32_t row, struct line *line)
{
    const uint32_t count = (c->cols + 2) * c->in_channels[input];
    const uint16_t *x = (const uint16_t *)c->in[input] + (size_t)row * count;
    int16_t least;
    int16_t most;
    bf16_range(x, count, &least, &most);
    const struct nn_int8_line steps = nn_int8_line(least, most);
    line->scale = steps.scale;
    line->zero = CONV_OFFSET * steps.zero;
    if (steps.inverse == 0.0f) {
        memset(line->terms, 0, count * sizeof *line->terms);
        return;
    }
    const v16 inverse = v16_set1(steps.inverse);
    const w16 zero = w16_set1((uint32_t)line->zero);
    for (uint32_t i = 0; i < count; i += NN_LANES) {
        w16 words = v16_to_words(v16_mul(v16_load_bf16(x + i), inverse));
        store_terms(line->terms + i, w16_add(words, zero));
    }
}

static void quantise_row(const struct nn_conv *c, uint32_t row, struct lines *lines)
{
    for (uint32_t input = 0; input < c->in_count; input++) {
        quantise_line(c, input, row, &lines->input[input][row % 3]);
    }
}

/* ---- sums ---- */

struct line_segment {
    const conv_term *terms; /* of the tile's first position, left neighbour first */
    uint32_t channels;
    uint32_t used; /* of them */
    float scale;
    int32_t zero;
    const int32_t *sums; /* of the weights */
};

NN_INLINE w16 load_word(const conv_term *a)
{
    uint32_t word;
    memcpy(&word, a, sizeof word);
    return w16_set1(word);
}

/* Adds the sums of one segment to the totals of `rows` positions; returns the weights after it. */
NN_INLINE const conv_weight *add_segment(const struct line_segment *s, const conv_weight *b,
                                         float *tile, const int rows)
{
    const int half = rows / 2;
    s16 upper[CONV_ROWS / 2][CONV_VECTORS];
    s16 lower[CONV_ROWS / 2][CONV_VECTORS];
    for (int i = 0; i < half; i++) {
        for (int j = 0; j < CONV_VECTORS; j++) {
            upper[i][j] = lower[i][j] = s16_scaled(s->sums + NN_LANES * j, -s->zero);
        }
    }
    const size_t channels = s->channels;
    const conv_term *a = s->terms;
    const conv_term *c = a + (size_t)half * channels;
    /* Without padding the taps are one run of terms. */
    const uint32_t run = s->used == s->channels ? 3 * s->channels : s->used;
    for (uint32_t done = 0; done < 3 * s->used; done += run, a += channels, c += channels) {
        for (uint32_t k = 0; k < run; k += CONV_TERMS, b += CONV_PANEL * CONV_TERMS) {
            w16 w[CONV_VECTORS];
            for (int j = 0; j < CONV_VECTORS; j++) {
                w[j] = w16_load(b + NN_LANES * CONV_TERMS * j);
            }
            for (int i = 0; i < half; i++) {
                const w16 x = load_word(a + (size_t)i * channels + k);
                const w16 y = load_word(c + (size_t)i * channels + k);
                for (int j = 0; j < CONV_VECTORS; j++) {
                    upper[i][j] = add_word(upper[i][j], x, w[j]);
                    lower[i][j] = add_word(lower[i][j], y, w[j]);
                }
            }
        }
    }
    NN_FORGET; /* the totals stay in memory: no register is left for them */
    const v16 scale = v16_set1(s->scale);
    for (int i = 0; i < half; i++) {
        for (int j = 0; j < CONV_VECTORS; j++) {
            float *total = tile + i * CONV_WIDTH + NN_LANES * j;
            v16_store(total, v16_fma(s16_to_float(upper[i][j]), scale, v16_load(total)));
            total += half * CONV_WIDTH;
            v16_store(total, v16_fma(s16_to_float(lower[i][j]), scale, v16_load(total)));
        }
    }
    NN_FORGET;
    return b;
}

NN_INLINE void tile_of(const struct line_segment *segments, uint32_t count, const conv_weight *b,
                       const float *scale, float *tile, const int rows)
{
    for (int i = 0; i < rows * CONV_VECTORS; i++) {
        v16_store(tile + NN_LANES * i, v16_zero());
    }
    for (uint32_t s = 0; s < count; s++) {
        b = add_segment(&segments[s], b, tile, rows);
    }
    for (int i = 0; i < rows * CONV_VECTORS; i++) {
        v16 step = v16_load(scale + i % CONV_VECTORS * NN_LANES);
        v16_store(tile + NN_LANES * i, v16_mul(v16_load(tile + NN_LANES * i), step));
    }
}

/* One function per number of rows, so that the sums stay in registers. */
#define TILE_FUNCTION(rows)                                                                 \
    static __attribute__((noinline)) void tile_##rows(const struct line_segment *segments,  \
                                                      uint32_t count, const conv_weight *b, \
                                                      const float *scale, float *tile)      \
    {                                                                                       \
        tile_of(segments, count, b, scale, tile, rows);                                     \
    }

typedef void (*tile_function)(const struct line_segment *segments, uint32_t count,
                              const conv_weight *b, const float *scale, float *tile);

/* Columns come in multiples of 16: whole tiles, and what they leave. */
TILE_FUNCTION(2)
TILE_FUNCTION(4)
#if defined(__AVX512F__)
TILE_FUNCTION(8)
TILE_FUNCTION(12)

static tile_function find_tile(uint32_t rows)
{
    return rows == 12 ? tile_12 : rows == 8 ? tile_8 : rows == 4 ? tile_4 : tile_2;
}
#else
TILE_FUNCTION(6)

static tile_function find_tile(uint32_t rows)
{
    return rows == 6 ? tile_6 : rows == 4 ? tile_4 : tile_2;
}
#endif

/* Outputs o .. o + CONV_WIDTH - 1 of one row. */
static void conv_outputs(const struct nn_conv *c, const struct packed *p, const struct lines *lines,
                         uint32_t row, uint32_t o)
{
    _Alignas(64) float tile[CONV_ROWS * CONV_WIDTH];
    struct line_segment segments[CONV_SEGMENTS];
    const uint32_t count = 3 * c->in_count;
    for (uint32_t s = 0; s < count; s++) {
        const struct line *line = &lines->input[s % c->in_count][(row + s / c->in_count) % 3];
        segments[s] = (struct line_segment){line->terms, c->in_channels[s % c->in_count],
                                            p->used[s],  line->scale,
                                            line->zero,  p->sums + (size_t)s * c->out_channels + o};
    }
    const conv_weight *b = p->panel + o / CONV_PANEL * p->panel_terms + o % CONV_PANEL * CONV_TERMS;
    uint32_t rows;
    for (uint32_t col = 0; col < c->cols; col += rows) {
        rows = c->cols - col < CONV_ROWS ? c->cols - col : CONV_ROWS;
        find_tile(rows)(segments, count, b, p->scale + o, tile);
        for (uint32_t i = 0; i < rows; i += 2) {
            struct sums sums = {tile + i * CONV_WIDTH, CONV_WIDTH};
            conv_finish(NN_BF16, c, row, col + i, o, sums, 2, CONV_VECTORS);
        }
        for (uint32_t s = 0; s < count; s++) {
            segments[s].terms += (size_t)rows * segments[s].channels;
        }
    }
}

static void conv3x3(const struct nn_conv *c, uint32_t first_row, uint32_t end_row)
{
    const uint32_t depth = nn_conv_depth(c->in_count, c->in_channels);
    struct packed p = packed_at((void *)c->b, c->out_channels, 3 * c->in_count, depth);
    struct lines lines;
    p.panel_terms = panel_terms(&p, 3 * c->in_count);
    CHECK(c->cols <= NN_CONV_INT8_COLS_MAX && depth <= 2 * NN_CONV_INT8_CHANNELS_MAX);
    for (uint32_t row = first_row; row < end_row; row++) {
        for (uint32_t next = row == first_row ? row : row + 2; next < row + 3; next++) {
            quantise_row(c, next, &lines);
        }
        for (uint32_t o = 0; o < c->out_channels; o += CONV_WIDTH) {
            conv_outputs(c, &p, &lines, row, o);
        }
    }
}

void NN_NAME(table_conv_int8)(struct nn_kernels *kernels)
{
    kernels->conv_packed_bytes_int8 = packed_bytes;
    kernels->conv_pack_int8 = pack;
    kernels->conv3x3_int8 = conv3x3;
}
