/*
 * Raster sampling with AVX-512: sixteen cells at a time. The whole window directory lives in two
 * registers (vpermt2w), so only texels are gathered; groups that lie in empty tiles are skipped.
 * The arithmetic is that of the plain C: vpmaddubsw and vpmaddwd on 6-bit weights never saturate.
 */
#include "kernels/raster.h"

#include <immintrin.h>

/* Eight texels and their weights (one per 64-bit lane) -> one 64-bit lane per cell, a low, b high.
 */
static inline __m512i blend8(__m512i texels, __m512i weights_x, __m512i weights_y)
{
    __m512i rows = _mm512_maddubs_epi16(texels, weights_x);
    __m512i sums = _mm512_madd_epi16(rows, weights_y);
    sums = _mm512_add_epi32(sums, _mm512_set1_epi32(1 << (2 * RASTER_WEIGHT_BITS - 1)));
    return _mm512_srli_epi32(sums, 2 * RASTER_WEIGHT_BITS);
}

/* Spreads eight 16-bit weight pairs to four words per 64-bit lane. */
static inline __m512i spread_x(__m256i pairs)
{
    const __m512i words =
        _mm512_broadcast_i32x4(_mm_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 8, 9, 8, 9, 8, 9, 8, 9));
    return _mm512_shuffle_epi8(_mm512_cvtepu32_epi64(pairs), words);
}

/* Spreads eight 32-bit weight pairs to two dwords per 64-bit lane. */
static inline __m512i spread_y(__m256i pairs)
{
    return _mm512_shuffle_epi32(_mm512_cvtepu32_epi64(pairs), _MM_PERM_CCAA);
}

static inline void sample16(const struct raster_window *window, __m512i directory_low,
                            __m512i directory_high, __m512i x, __m512i y, __m128i *a, __m128i *b)
{
    const __m512i tile_mask = _mm512_set1_epi32(RASTER_TILE_TEXELS - 1);
    const __m512i weight_mask = _mm512_set1_epi32((1 << RASTER_WEIGHT_BITS) - 1);
    const int weight_shift = RASTER_POSITION_BITS - RASTER_WEIGHT_BITS;
    const int slot_shift = RASTER_POSITION_BITS + RASTER_TILE_BITS;
    const __m512i window_mask = _mm512_set1_epi32(RASTER_WINDOW_TILES - 1);
    __m512i slot_x = _mm512_and_epi32(_mm512_srli_epi32(x, slot_shift), window_mask);
    __m512i slot_y = _mm512_and_epi32(_mm512_srli_epi32(y, slot_shift), window_mask);
    __m512i slot = _mm512_or_epi32(_mm512_slli_epi32(slot_y, RASTER_WINDOW_BITS), slot_x);
    __m512i tile = _mm512_permutex2var_epi16(directory_low, slot, directory_high);
    tile = _mm512_and_epi32(tile, _mm512_set1_epi32(0xFFFF));
    if (_mm512_test_epi32_mask(tile, tile) == 0) {
        *a = _mm_setzero_si128();
        *b = _mm_setzero_si128();
        return;
    }
    __m512i tx = _mm512_and_epi32(_mm512_srli_epi32(x, RASTER_POSITION_BITS), tile_mask);
    __m512i ty = _mm512_and_epi32(_mm512_srli_epi32(y, RASTER_POSITION_BITS), tile_mask);
    __m512i index = _mm512_or_epi32(_mm512_slli_epi32(ty, RASTER_TILE_BITS), tx);
    index = _mm512_or_epi32(index, _mm512_slli_epi32(tile, 2 * RASTER_TILE_BITS));
    __m512i low = _mm512_i32gather_epi64(_mm512_castsi512_si256(index), window->texels, 8);
    __m512i high = _mm512_i32gather_epi64(_mm512_extracti64x4_epi64(index, 1), window->texels, 8);

    /* (64 - f) and f side by side, as bytes for x and as words for y. */
    __m512i fx = _mm512_and_epi32(_mm512_srli_epi32(x, weight_shift), weight_mask);
    __m512i fy = _mm512_and_epi32(_mm512_srli_epi32(y, weight_shift), weight_mask);
    const __m512i one = _mm512_set1_epi32(1 << RASTER_WEIGHT_BITS);
    __m512i wx = _mm512_add_epi32(one, _mm512_sub_epi32(_mm512_slli_epi32(fx, 8), fx));
    __m512i wy = _mm512_add_epi32(one, _mm512_sub_epi32(_mm512_slli_epi32(fy, 16), fy));
    low = blend8(low, spread_x(_mm512_castsi512_si256(wx)), spread_y(_mm512_castsi512_si256(wy)));
    high = blend8(high, spread_x(_mm512_extracti64x4_epi64(wx, 1)),
                  spread_y(_mm512_extracti64x4_epi64(wy, 1)));
    *a = _mm_unpacklo_epi64(_mm512_cvtepi64_epi8(low), _mm512_cvtepi64_epi8(high));
    *b = _mm_unpacklo_epi64(_mm512_cvtepi64_epi8(_mm512_srli_epi64(low, 32)),
                            _mm512_cvtepi64_epi8(_mm512_srli_epi64(high, 32)));
}

void raster_sample_avx512(const struct raster_window *window, uint32_t rows, uint32_t cols,
                          size_t stride, uint8_t *a, uint8_t *b)
{
    if (raster_sample_straight(window, rows, cols, stride, a, b)) {
        return;
    }
    const __m512i directory_low = _mm512_loadu_si512(window->directory);
    const __m512i directory_high = _mm512_loadu_si512(window->directory + 32);
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512i step_x = _mm512_set1_epi32((int32_t)(16u * (uint32_t)window->col_dx));
    const __m512i step_y = _mm512_set1_epi32((int32_t)(16u * (uint32_t)window->col_dy));
    const __m512i lane_x = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(window->col_dx));
    const __m512i lane_y = _mm512_mullo_epi32(lanes, _mm512_set1_epi32(window->col_dy));
    for (uint32_t r = 0; r < rows; r++) {
        uint32_t x_row = (uint32_t)window->x0 + r * (uint32_t)window->row_dx;
        uint32_t y_row = (uint32_t)window->y0 + r * (uint32_t)window->row_dy;
        __m512i x = _mm512_add_epi32(_mm512_set1_epi32((int32_t)x_row), lane_x);
        __m512i y = _mm512_add_epi32(_mm512_set1_epi32((int32_t)y_row), lane_y);
        for (uint32_t c = 0; c < cols; c += 16) {
            __m128i a16;
            __m128i b16;
            sample16(window, directory_low, directory_high, x, y, &a16, &b16);
            uint32_t left = cols - c;
            __mmask16 mask = left >= 16 ? 0xFFFF : (__mmask16)((1u << left) - 1);
            _mm_mask_storeu_epi8(a + r * stride + c, mask, a16);
            _mm_mask_storeu_epi8(b + r * stride + c, mask, b16);
            x = _mm512_add_epi32(x, step_x);
            y = _mm512_add_epi32(y, step_y);
        }
    }
}

/* Bits from..63 of words whose bit 0 is column `base`; variable shifts by 64 or more give 0. */
static inline __m512i bits_from(__m512i column, int64_t base)
{
    __m512i shift = _mm512_sub_epi64(column, _mm512_set1_epi64(base));
    shift = _mm512_max_epi64(shift, _mm512_setzero_si512());
    return _mm512_sllv_epi64(_mm512_set1_epi64(-1), shift);
}

/* ceil, clamped to [0, RASTER_COLS_MAX], as 64-bit integers. */
static inline __m512i ceil_column(__m512d x)
{
    x = _mm512_max_pd(x, _mm512_setzero_pd());
    x = _mm512_min_pd(x, _mm512_set1_pd(RASTER_COLS_MAX));
    return _mm512_cvt_roundpd_epi64(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC);
}

static inline __m512d bound(double offset, double slope, __m512d rows)
{
    return _mm512_add_pd(_mm512_set1_pd(offset), _mm512_mul_pd(_mm512_set1_pd(slope), rows));
}

void raster_shade_avx512(const struct raster_region *region, uint32_t first, uint32_t end,
                         const struct raster_marks *marks)
{
    for (uint32_t r = first; r < end; r += 8) {
        __mmask8 active = end - r >= 8 ? 0xFF : (__mmask8)((1u << (end - r)) - 1);
        __m512d rows = _mm512_add_pd(_mm512_set1_pd(r), _mm512_setr_pd(0, 1, 2, 3, 4, 5, 6, 7));
        __m512d low = bound(region->low_offset[0], region->low_slope[0], rows);
        for (uint32_t i = 1; i < region->low_count; i++) {
            low = _mm512_max_pd(low, bound(region->low_offset[i], region->low_slope[i], rows));
        }
        __m512d high = bound(region->high_offset[0], region->high_slope[0], rows);
        for (uint32_t i = 1; i < region->high_count; i++) {
            high = _mm512_min_pd(high, bound(region->high_offset[i], region->high_slope[i], rows));
        }
        __m512i from = ceil_column(low);
        __m512i to = ceil_column(high);
        __m512i set_low = _mm512_andnot_si512(bits_from(to, 0), bits_from(from, 0));
        __m512i set_high = _mm512_andnot_si512(bits_from(to, 64), bits_from(from, 64));
        set_low = _mm512_or_si512(set_low, _mm512_maskz_loadu_epi64(active, marks->low + r));
        set_high = _mm512_or_si512(set_high, _mm512_maskz_loadu_epi64(active, marks->high + r));
        _mm512_mask_storeu_epi64(marks->low + r, active, set_low);
        _mm512_mask_storeu_epi64(marks->high + r, active, set_high);
    }
}

void raster_expand_avx512(const struct raster_marks *marks, uint32_t rows, uint32_t cols,
                          uint8_t *out)
{
    uint32_t low_cols = cols < 64 ? cols : 64;
    __mmask64 low_mask = low_cols == 64 ? ~UINT64_C(0) : (UINT64_C(1) << low_cols) - 1;
    uint32_t high_cols = cols - low_cols;
    __mmask64 high_mask = high_cols == 64 ? ~UINT64_C(0) : (UINT64_C(1) << high_cols) - 1;
    for (uint32_t r = 0; r < rows; r++) {
        uint8_t *row = out + r * cols;
        _mm512_mask_storeu_epi8(row, low_mask, _mm512_movm_epi8(marks->low[r]));
        if (high_mask != 0) {
            _mm512_mask_storeu_epi8(row + 64, high_mask, _mm512_movm_epi8(marks->high[r]));
        }
    }
}
