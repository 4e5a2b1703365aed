/*
 * Raster sampling with AVX2: eight cells at a time, one 64-bit load per cell. Gathers take three
 * times as long as these loads where they are microcode; eight cells mostly lie in one tile, so
 * its number is looked up once. Bytes times 6-bit weights are summed by vpmaddubsw (at most
 * 255 * 64, no saturation) and vpmaddwd, exactly as the plain C does.
 *
 * A grid that is turned by a multiple of 90 degrees, or by less than a quarter of one more, has
 * its rows or its columns along the texture's lines: eight texels then lie side by side, and share
 * the weights of one direction. Most of a drive along straight roads is so.
 */
#include "kernels/raster_cell.h"

#include <immintrin.h>
#include <stdbool.h>

/* Four texels and their weights (one per 64-bit lane) -> dwords a, b, a, b .. */
static inline __m256i blend4(__m256i texels, __m256i weights_x, __m256i weights_y)
{
    __m256i rows = _mm256_maddubs_epi16(texels, weights_x);
    __m256i sums = _mm256_madd_epi16(rows, weights_y);
    sums = _mm256_add_epi32(sums, _mm256_set1_epi32(1 << (2 * RASTER_WEIGHT_BITS - 1)));
    return _mm256_srli_epi32(sums, 2 * RASTER_WEIGHT_BITS);
}

/* Bytes of both layers of cells 0..7, whose words packus_epi32 left as a0 b0 a1 b1 a4 b4 a5 b5 in
 * lane 0 and a2 b2 a3 b3 a6 b6 a7 b7 in lane 1. */
static inline void part_layers(__m256i packed, uint64_t *a, uint64_t *b)
{
    const __m256i order = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 4, -1, -1, 8, 12, -1, -1, 2, 6, -1, -1, 10, 14, -1, -1));
    __m256i bytes = _mm256_shuffle_epi8(packed, order);
    /* Dwords per lane: a01 a45 b01 b45 / a23 a67 b23 b67, two bytes each. */
    __m128i even = _mm256_castsi256_si128(bytes);
    __m128i odd = _mm256_extracti128_si256(bytes, 1);
    __m128i both = _mm_or_si128(even, _mm_slli_epi32(odd, 16));
    *a = (uint64_t)_mm_cvtsi128_si64(both);
    *b = (uint64_t)_mm_extract_epi64(both, 1);
}

/* Tile numbers of eight places in the directory. */
static inline __m256i tiles_at(const uint16_t *directory, __m256i places)
{
    __m256i first = _mm256_broadcastd_epi32(_mm256_castsi256_si128(places));
    if (_mm256_movemask_epi8(_mm256_cmpeq_epi32(places, first)) == -1) {
        return _mm256_set1_epi32(directory[_mm256_cvtsi256_si32(places)]);
    }
    uint32_t at[8];
    _mm256_storeu_si256((__m256i *)at, places);
    return _mm256_setr_epi32(directory[at[0]], directory[at[1]], directory[at[2]], directory[at[3]],
                             directory[at[4]], directory[at[5]], directory[at[6]],
                             directory[at[7]]);
}

static inline __m256i load4(const uint64_t *texels, const uint32_t at[4])
{
    return _mm256_setr_epi64x((int64_t)texels[at[0]], (int64_t)texels[at[1]],
                              (int64_t)texels[at[2]], (int64_t)texels[at[3]]);
}

/* Eight cells at positions x, y -> their bytes of layers a and b. */
static inline void sample8(const struct raster_window *window, __m256i x, __m256i y, uint64_t *a,
                           uint64_t *b)
{
    const __m256i window_mask = _mm256_set1_epi32(RASTER_WINDOW_TILES - 1);
    const __m256i tile_mask = _mm256_set1_epi32(RASTER_TILE_TEXELS - 1);
    const __m256i weight_mask = _mm256_set1_epi32((1 << RASTER_WEIGHT_BITS) - 1);
    const int weight_shift = RASTER_POSITION_BITS - RASTER_WEIGHT_BITS;
    __m256i tx = _mm256_srli_epi32(x, RASTER_POSITION_BITS);
    __m256i ty = _mm256_srli_epi32(y, RASTER_POSITION_BITS);
    __m256i slot_x = _mm256_and_si256(_mm256_srli_epi32(tx, RASTER_TILE_BITS), window_mask);
    __m256i slot_y = _mm256_and_si256(_mm256_srli_epi32(ty, RASTER_TILE_BITS), window_mask);
    __m256i slot = _mm256_or_si256(_mm256_slli_epi32(slot_y, RASTER_WINDOW_BITS), slot_x);
    __m256i tile = tiles_at(window->directory, slot);
    if (_mm256_testz_si256(tile, tile)) {
        *a = 0;
        *b = 0;
        return;
    }
    __m256i index = _mm256_or_si256(_mm256_slli_epi32(_mm256_and_si256(ty, tile_mask), 5),
                                    _mm256_and_si256(tx, tile_mask));
    index = _mm256_or_si256(index, _mm256_slli_epi32(tile, 2 * RASTER_TILE_BITS));
    uint32_t at[8];
    _mm256_storeu_si256((__m256i *)at, index);
    __m256i low = load4(window->texels, at);
    __m256i high = load4(window->texels, at + 4);

    /* (64 - f) and f side by side, as bytes for x and as words for y. */
    __m256i fx = _mm256_and_si256(_mm256_srli_epi32(x, weight_shift), weight_mask);
    __m256i fy = _mm256_and_si256(_mm256_srli_epi32(y, weight_shift), weight_mask);
    const __m256i one = _mm256_set1_epi32(1 << RASTER_WEIGHT_BITS);
    __m256i wx = _mm256_add_epi32(one, _mm256_sub_epi32(_mm256_slli_epi32(fx, 8), fx));
    __m256i wy = _mm256_add_epi32(one, _mm256_sub_epi32(_mm256_slli_epi32(fy, 16), fy));
    const __m256i words =
        _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 8, 9, 8, 9, 8, 9, 8, 9));
    __m256i wx_low = _mm256_shuffle_epi8(_mm256_cvtepu32_epi64(_mm256_castsi256_si128(wx)), words);
    __m256i wx_high =
        _mm256_shuffle_epi8(_mm256_cvtepu32_epi64(_mm256_extracti128_si256(wx, 1)), words);
    __m256i wy_low = _mm256_shuffle_epi32(_mm256_cvtepu32_epi64(_mm256_castsi256_si128(wy)), 0xA0);
    __m256i wy_high =
        _mm256_shuffle_epi32(_mm256_cvtepu32_epi64(_mm256_extracti128_si256(wy, 1)), 0xA0);

    part_layers(_mm256_packus_epi32(blend4(low, wx_low, wy_low), blend4(high, wx_high, wy_high)), a,
                b);
}

static inline void store_bytes(uint8_t *out, uint64_t value, uint32_t count)
{
    if (count >= 8) {
        __builtin_memcpy(out, &value, 8);
        return;
    }
    for (uint32_t i = 0; i < count; i++) {
        out[i] = (uint8_t)(value >> (8 * i));
    }
}

/* Planes of a grid, rows `stride` bytes apart. */
struct planes {
    uint8_t *a;
    uint8_t *b;
    size_t stride;
};

/* Samples `rows` x `cols` cells, whichever way the grid is turned. x, y: of the first cell. */
static void sample_any(const struct raster_window *window, uint32_t x, uint32_t y, uint32_t rows,
                       uint32_t cols, struct planes out)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i step_x = _mm256_set1_epi32((int32_t)(8u * (uint32_t)window->col_dx));
    const __m256i step_y = _mm256_set1_epi32((int32_t)(8u * (uint32_t)window->col_dy));
    const __m256i lane_x = _mm256_mullo_epi32(lanes, _mm256_set1_epi32(window->col_dx));
    const __m256i lane_y = _mm256_mullo_epi32(lanes, _mm256_set1_epi32(window->col_dy));
    for (uint32_t r = 0; r < rows; r++) {
        __m256i x8 = _mm256_add_epi32(_mm256_set1_epi32((int32_t)x), lane_x);
        __m256i y8 = _mm256_add_epi32(_mm256_set1_epi32((int32_t)y), lane_y);
        for (uint32_t c = 0; c < cols; c += 8) {
            uint64_t a8;
            uint64_t b8;
            sample8(window, x8, y8, &a8, &b8);
            store_bytes(out.a + r * out.stride + c, a8, cols - c);
            store_bytes(out.b + r * out.stride + c, b8, cols - c);
            x8 = _mm256_add_epi32(x8, step_x);
            y8 = _mm256_add_epi32(y8, step_y);
        }
        x += (uint32_t)window->row_dx;
        y += (uint32_t)window->row_dy;
    }
}

enum { BLOCK = 8, ONE = 1 << RASTER_POSITION_BITS };

/* A grid of which one direction goes along the texture's lines, a texel a cell. */
struct straight {
    bool by_rows;     /* the grid's next row is the next texel; else its next column is */
    bool backwards;   /* .. the one before */
    uint32_t along_y; /* steps in the order of the texels */
    uint32_t across_x;
    uint32_t across_y; /* a texel, up or down */
};

static bool is_texel(int32_t step)
{
    return step == ONE || step == -ONE;
}

static bool find_straight(const struct raster_window *window, struct straight *out)
{
    bool by_rows = is_texel(window->row_dx) && is_texel(window->col_dy);
    int32_t along_x = by_rows ? window->row_dx : window->col_dx;
    int32_t along_y = by_rows ? window->row_dy : window->col_dy;
    if (!by_rows && !(is_texel(window->col_dx) && is_texel(window->row_dy))) {
        return false;
    }
    bool backwards = along_x < 0;
    *out = (struct straight){
        .by_rows = by_rows,
        .backwards = backwards,
        .along_y = backwards ? 0u - (uint32_t)along_y : (uint32_t)along_y,
        .across_x = (uint32_t)(by_rows ? window->col_dx : window->row_dx),
        .across_y = (uint32_t)(by_rows ? window->col_dy : window->row_dy),
    };
    return along_y > -ONE / BLOCK && along_y < ONE / BLOCK; /* a block changes lines once at most */
}

/* Four texels of those that the mask has, zeros for the others, which may lie outside the texture:
 * hence the address as a number. */
static inline __m256i load_masked(const uint64_t *texels, int64_t first, __m256i mask)
{
    uintptr_t address = (uintptr_t)texels + (uintptr_t)(first * (int64_t)sizeof *texels);
    return _mm256_maskload_epi64((const long long *)address, mask);
}

/* Eight texels side by side from a position on. */
static inline void load_line(const struct raster_window *window, uint32_t x, uint32_t y,
                             __m256i *low, __m256i *high)
{
    const uint64_t *texels = window->texels;
    uint32_t count = RASTER_TILE_TEXELS - (x >> RASTER_POSITION_BITS & (RASTER_TILE_TEXELS - 1));
    int64_t first = raster_cell_texel(window->directory[raster_cell_place(x, y)], x, y);
    if (count >= BLOCK) {
        *low = _mm256_loadu_si256((const __m256i *)(texels + first));
        *high = _mm256_loadu_si256((const __m256i *)(texels + first + BLOCK / 2));
        return;
    }
    /* The others are the first of the next tile. */
    x += count * ONE;
    int64_t rest =
        (int64_t)raster_cell_texel(window->directory[raster_cell_place(x, y)], x, y) - count;
    __m256i lanes = _mm256_setr_epi64x(0, 1, 2, 3);
    __m256i here_low = _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), lanes);
    __m256i here_high = _mm256_cmpgt_epi64(_mm256_set1_epi64x((int64_t)count - BLOCK / 2), lanes);
    __m256i there_low = _mm256_xor_si256(here_low, _mm256_set1_epi64x(-1));
    __m256i there_high = _mm256_xor_si256(here_high, _mm256_set1_epi64x(-1));
    *low =
        _mm256_or_si256(load_masked(texels, first, here_low), load_masked(texels, rest, there_low));
    *high = _mm256_or_si256(load_masked(texels, first + BLOCK / 2, here_high),
                            load_masked(texels, rest + BLOCK / 2, there_high));
}

/* Eight lines of eight cells, as packed words (part_layers). x, y: of the block's first cell.
 * False: a line of cells changes the texture's line within the block; nothing is sampled. */
static inline bool sample_lines(const struct raster_window *window, const struct straight *straight,
                                uint32_t x, uint32_t y, __m256i packed[BLOCK])
{
    if (straight->backwards) {
        x -= (BLOCK - 1) * ONE;
        y -= (BLOCK - 1) * straight->along_y;
    }
    if ((y ^ (y + (BLOCK - 1) * straight->along_y)) >> RASTER_POSITION_BITS != 0) {
        return false;
    }
    const int weight_shift = RASTER_POSITION_BITS - RASTER_WEIGHT_BITS;
    const uint32_t weight_mask = (1 << RASTER_WEIGHT_BITS) - 1;
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    __m256i lines =
        _mm256_add_epi32(_mm256_set1_epi32((int32_t)y),
                         _mm256_mullo_epi32(lanes, _mm256_set1_epi32((int32_t)straight->along_y)));
    __m256i fy = _mm256_and_si256(_mm256_srli_epi32(lines, weight_shift),
                                  _mm256_set1_epi32((int32_t)weight_mask));
    __m256i wy = _mm256_add_epi32(_mm256_set1_epi32(1 << RASTER_WEIGHT_BITS),
                                  _mm256_sub_epi32(_mm256_slli_epi32(fy, 16), fy));
    __m256i wy_low = _mm256_shuffle_epi32(_mm256_cvtepu32_epi64(_mm256_castsi256_si128(wy)), 0xA0);
    __m256i wy_high =
        _mm256_shuffle_epi32(_mm256_cvtepu32_epi64(_mm256_extracti128_si256(wy, 1)), 0xA0);
    for (uint32_t i = 0; i < BLOCK; i++) {
        __m256i low;
        __m256i high;
        load_line(window, x, y, &low, &high);
        uint32_t fx = x >> weight_shift & weight_mask;
        __m256i wx = _mm256_set1_epi16((int16_t)((1u << RASTER_WEIGHT_BITS) - fx + (fx << 8)));
        packed[i] = _mm256_packus_epi32(blend4(low, wx, wy_low), blend4(high, wx, wy_high));
        x += straight->across_x;
        y += straight->across_y;
    }
    return true;
}

static void store_halves(__m128i halves, struct planes out, uint32_t row)
{
    _mm_storel_epi64((__m128i *)(out.a + row * out.stride), halves);
    _mm_storel_epi64((__m128i *)(out.b + row * out.stride), _mm_unpackhi_epi64(halves, halves));
}

/* Lines are the block's columns: transposes them. */
static inline void store_columns(const __m256i packed[BLOCK], bool backwards, struct planes out)
{
    const __m256i pairs = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15));
    __m256i two[4]; /* words of two columns: a0 b0 a1 b1 a4 b4 a5 b5 / a2 b2 a3 b3 a6 b6 a7 b7 */
    for (uint32_t i = 0; i < 4; i++) {
        two[i] = _mm256_shuffle_epi8(_mm256_packus_epi16(packed[2 * i], packed[2 * i + 1]), pairs);
    }
    __m256i near[2] = {_mm256_unpacklo_epi16(two[0], two[1]),
                       _mm256_unpacklo_epi16(two[2], two[3])}; /* a0 b0 a1 b1 / a2 b2 a3 b3 */
    __m256i far[2] = {_mm256_unpackhi_epi16(two[0], two[1]), _mm256_unpackhi_epi16(two[2], two[3])};
    __m256i rows[4] = {
        /* 0 / 2, 1 / 3, 4 / 6, 5 / 7 */
        _mm256_unpacklo_epi32(near[0], near[1]), _mm256_unpackhi_epi32(near[0], near[1]),
        _mm256_unpacklo_epi32(far[0], far[1]), _mm256_unpackhi_epi32(far[0], far[1])};
    const uint32_t turn = backwards ? BLOCK - 1 : 0;
    for (uint32_t i = 0; i < 4; i++) {
        uint32_t row = (i & 1) + 2 * (i & 2);
        store_halves(_mm256_castsi256_si128(rows[i]), out, row ^ turn);
        store_halves(_mm256_extracti128_si256(rows[i], 1), out, (row + 2) ^ turn);
    }
}

/* Lines are the block's rows. */
static inline void store_rows(const __m256i packed[BLOCK], bool backwards, struct planes out)
{
    for (uint32_t i = 0; i < BLOCK; i++) {
        uint64_t a8;
        uint64_t b8;
        part_layers(packed[i], &a8, &b8);
        a8 = backwards ? __builtin_bswap64(a8) : a8;
        b8 = backwards ? __builtin_bswap64(b8) : b8;
        __builtin_memcpy(out.a + i * out.stride, &a8, BLOCK);
        __builtin_memcpy(out.b + i * out.stride, &b8, BLOCK);
    }
}

bool raster_sample_straight(const struct raster_window *window, uint32_t rows, uint32_t cols,
                            size_t stride, uint8_t *a, uint8_t *b)
{
    struct straight straight;
    if (rows % BLOCK != 0 || cols % BLOCK != 0 || !find_straight(window, &straight)) {
        return false;
    }
    for (uint32_t r = 0; r < rows; r += BLOCK) {
        for (uint32_t c = 0; c < cols; c += BLOCK) {
            uint32_t x =
                (uint32_t)window->x0 + r * (uint32_t)window->row_dx + c * (uint32_t)window->col_dx;
            uint32_t y =
                (uint32_t)window->y0 + r * (uint32_t)window->row_dy + c * (uint32_t)window->col_dy;
            struct planes out = {a + r * stride + c, b + r * stride + c, stride};
            __m256i packed[BLOCK];
            if (!sample_lines(window, &straight, x, y, packed)) {
                sample_any(window, x, y, BLOCK, BLOCK, out);
            } else if (straight.by_rows) {
                store_columns(packed, straight.backwards, out);
            } else {
                store_rows(packed, straight.backwards, out);
            }
        }
    }
    return true;
}

void raster_sample_avx2(const struct raster_window *window, uint32_t rows, uint32_t cols,
                        size_t stride, uint8_t *a, uint8_t *b)
{
    if (!raster_sample_straight(window, rows, cols, stride, a, b)) {
        sample_any(window, (uint32_t)window->x0, (uint32_t)window->y0, rows, cols,
                   (struct planes){a, b, stride});
    }
}

/* Bits from..63 of words whose bit 0 is column `base`; variable shifts by 64 or more give 0, and
 * columns below the base must give all ones. */
static inline __m256i bits_from(__m256i column, int64_t base)
{
    __m256i shift = _mm256_sub_epi64(column, _mm256_set1_epi64x(base));
    __m256i below = _mm256_cmpgt_epi64(_mm256_setzero_si256(), shift);
    return _mm256_or_si256(below, _mm256_sllv_epi64(_mm256_set1_epi64x(-1), shift));
}

/* ceil, clamped to [0, RASTER_COLS_MAX], as 64-bit integers. */
static inline __m256i ceil_column(__m256d x)
{
    x = _mm256_max_pd(x, _mm256_setzero_pd());
    x = _mm256_min_pd(x, _mm256_set1_pd(RASTER_COLS_MAX));
    return _mm256_cvtepi32_epi64(_mm256_cvtpd_epi32(_mm256_ceil_pd(x)));
}

static inline __m256d bound(double offset, double slope, __m256d rows)
{
    return _mm256_add_pd(_mm256_set1_pd(offset), _mm256_mul_pd(_mm256_set1_pd(slope), rows));
}

void raster_shade_avx2(const struct raster_region *region, uint32_t first, uint32_t end,
                       const struct raster_marks *marks)
{
    uint32_t r = first;
    for (; r + 4 <= end; r += 4) {
        __m256d rows = _mm256_add_pd(_mm256_set1_pd(r), _mm256_setr_pd(0, 1, 2, 3));
        __m256d low = bound(region->low_offset[0], region->low_slope[0], rows);
        for (uint32_t i = 1; i < region->low_count; i++) {
            low = _mm256_max_pd(low, bound(region->low_offset[i], region->low_slope[i], rows));
        }
        __m256d high = bound(region->high_offset[0], region->high_slope[0], rows);
        for (uint32_t i = 1; i < region->high_count; i++) {
            high = _mm256_min_pd(high, bound(region->high_offset[i], region->high_slope[i], rows));
        }
        __m256i from = ceil_column(low);
        __m256i to = ceil_column(high);
        __m256i *out_low = (__m256i *)(marks->low + r);
        __m256i *out_high = (__m256i *)(marks->high + r);
        __m256i set_low = _mm256_andnot_si256(bits_from(to, 0), bits_from(from, 0));
        __m256i set_high = _mm256_andnot_si256(bits_from(to, 64), bits_from(from, 64));
        _mm256_storeu_si256(out_low, _mm256_or_si256(_mm256_loadu_si256(out_low), set_low));
        _mm256_storeu_si256(out_high, _mm256_or_si256(_mm256_loadu_si256(out_high), set_high));
    }
    if (r < end) {
        raster_shade_ref(region, r, end, marks);
    }
}

/* 32 bits -> 32 bytes of 0 or 255. */
static inline __m256i expand32(uint32_t bits)
{
    const __m256i spread =
        _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303);
    const __m256i select = _mm256_set1_epi64x((int64_t)0x8040201008040201);
    __m256i bytes = _mm256_shuffle_epi8(_mm256_set1_epi32((int32_t)bits), spread);
    return _mm256_cmpeq_epi8(_mm256_and_si256(bytes, select), select);
}

void raster_expand_avx2(const struct raster_marks *marks, uint32_t rows, uint32_t cols,
                        uint8_t *out)
{
    for (uint32_t r = 0; r < rows; r++) {
        uint32_t c = 0;
        for (; c + 32 <= cols; c += 32) {
            uint64_t word = c < 64 ? marks->low[r] : marks->high[r];
            __m256i bytes = expand32((uint32_t)(word >> (c & 63)));
            _mm256_storeu_si256((__m256i *)(out + r * cols + c), bytes);
        }
        for (; c < cols; c++) {
            uint64_t word = c < 64 ? marks->low[r] : marks->high[r];
            out[r * cols + c] = word >> (c & 63) & 1 ? 255 : 0;
        }
    }
}
