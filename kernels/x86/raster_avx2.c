/*
 * Raster sampling with AVX2: eight cells at a time, one 64-bit load per cell. Gathers take three
 * times as long as these loads where they are microcode; eight cells mostly lie in one tile, so
 * its number is looked up once. Bytes times 6-bit weights are summed by vpmaddubsw (at most
 * 255 * 64, no saturation) and vpmaddwd, exactly as the plain C does.
 */
#include "kernels/raster.h"

#include <immintrin.h>

/* Four texels and their weights (one per 64-bit lane) -> dwords a, b, a, b .. */
static inline __m256i blend4(__m256i texels, __m256i weights_x, __m256i weights_y)
{
    __m256i rows = _mm256_maddubs_epi16(texels, weights_x);
    __m256i sums = _mm256_madd_epi16(rows, weights_y);
    sums = _mm256_add_epi32(sums, _mm256_set1_epi32(1 << (2 * RASTER_WEIGHT_BITS - 1)));
    return _mm256_srli_epi32(sums, 2 * RASTER_WEIGHT_BITS);
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

    /* Low half gives cells 0..3, high half 4..7; words then bytes, lane by lane. */
    __m256i packed =
        _mm256_packus_epi32(blend4(low, wx_low, wy_low), blend4(high, wx_high, wy_high));
    /* Lane 0: a0 b0 a1 b1 a4 b4 a5 b5, lane 1: a2 b2 a3 b3 a6 b6 a7 b7 (as words). */
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

void raster_sample_avx2(const struct raster_window *window, uint32_t rows, uint32_t cols,
                        uint8_t *a, uint8_t *b)
{
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i step_x = _mm256_set1_epi32((int32_t)(8u * (uint32_t)window->col_dx));
    const __m256i step_y = _mm256_set1_epi32((int32_t)(8u * (uint32_t)window->col_dy));
    const __m256i lane_x = _mm256_mullo_epi32(lanes, _mm256_set1_epi32(window->col_dx));
    const __m256i lane_y = _mm256_mullo_epi32(lanes, _mm256_set1_epi32(window->col_dy));
    for (uint32_t r = 0; r < rows; r++) {
        uint32_t x_row = (uint32_t)window->x0 + r * (uint32_t)window->row_dx;
        uint32_t y_row = (uint32_t)window->y0 + r * (uint32_t)window->row_dy;
        __m256i x = _mm256_add_epi32(_mm256_set1_epi32((int32_t)x_row), lane_x);
        __m256i y = _mm256_add_epi32(_mm256_set1_epi32((int32_t)y_row), lane_y);
        for (uint32_t c = 0; c < cols; c += 8) {
            uint64_t a8;
            uint64_t b8;
            sample8(window, x, y, &a8, &b8);
            store_bytes(a + r * cols + c, a8, cols - c);
            store_bytes(b + r * cols + c, b8, cols - c);
            x = _mm256_add_epi32(x, step_x);
            y = _mm256_add_epi32(y, step_y);
        }
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
