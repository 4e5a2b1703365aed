/*
 * Sixteen floats or words at a time, AVX-512 (F, BW, DQ, VL). The AVX2 header has the same
 * functions; kernels written on them do the same operations in the same order on both.
 */
#ifndef SWERVE_KERNELS_X86_NN_LANES_AVX512_H
#define SWERVE_KERNELS_X86_NN_LANES_AVX512_H

#if defined(__AVX512F__)
#include "kernels/x86/nn_halves.h"

typedef __m512 v16;  /* 16 floats */
typedef __m512i w16; /* 16 words of 32 bits */

static inline __mmask16 lanes_mask(uint32_t count)
{
    return (__mmask16)((1u << count) - 1);
}

static inline v16 v16_set1(float x)
{
    return _mm512_set1_ps(x);
}

static inline v16 v16_zero(void)
{
    return _mm512_setzero_ps();
}

static inline v16 v16_load(const float *p)
{
    return _mm512_loadu_ps(p);
}

static inline void v16_store(float *p, v16 x)
{
    _mm512_storeu_ps(p, x);
}

/* The first count (0..16) floats; the others are 0, or are not written. */
static inline v16 v16_load_part(const float *p, uint32_t count)
{
    return _mm512_maskz_loadu_ps(lanes_mask(count), p);
}

static inline void v16_store_part(float *p, v16 x, uint32_t count)
{
    _mm512_mask_storeu_ps(p, lanes_mask(count), x);
}

static inline v16 v16_add(v16 a, v16 b)
{
    return _mm512_add_ps(a, b);
}

static inline v16 v16_sub(v16 a, v16 b)
{
    return _mm512_sub_ps(a, b);
}

static inline v16 v16_mul(v16 a, v16 b)
{
    return _mm512_mul_ps(a, b);
}

static inline v16 v16_div(v16 a, v16 b)
{
    return _mm512_div_ps(a, b);
}

/* a * b + c, a * b - c and c - a * b, rounded once. */
static inline v16 v16_fma(v16 a, v16 b, v16 c)
{
    return _mm512_fmadd_ps(a, b, c);
}

static inline v16 v16_fms(v16 a, v16 b, v16 c)
{
    return _mm512_fmsub_ps(a, b, c);
}

static inline v16 v16_fnma(v16 a, v16 b, v16 c)
{
    return _mm512_fnmadd_ps(a, b, c);
}

/* a * b - c in even lanes, a * b + c in odd ones. */
static inline v16 v16_fma_alternate(v16 a, v16 b, v16 c)
{
    return _mm512_fmaddsub_ps(a, b, c);
}

/* a > b ? a : b and a < b ? a : b: b where either is NaN. */
static inline v16 v16_max(v16 a, v16 b)
{
    return _mm512_max_ps(a, b);
}

static inline v16 v16_min(v16 a, v16 b)
{
    return _mm512_min_ps(a, b);
}

/* Between -limit and limit; what NaN becomes is not defined. */
static inline v16 v16_clamp(v16 x, float limit)
{
    return _mm512_range_ps(x, _mm512_set1_ps(limit), 0x02); /* smaller magnitude, sign of x */
}

/* Neighbours exchanged: lanes 1, 0, 3, 2, .. */
static inline v16 v16_swap_pairs(v16 x)
{
    return _mm512_permute_ps(x, 0xB1);
}

/* Eight floats, each twice. */
static inline v16 v16_load_doubled(const float *p)
{
    const __m512i order = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    return _mm512_permutexvar_ps(order, _mm512_castps256_ps512(_mm256_loadu_ps(p)));
}

/* Sum by halves: 8 + 8, 4 + 4, .. */
static inline float v16_sum(v16 x)
{
    __m256 h = _mm256_add_ps(_mm512_castps512_ps256(x), _mm512_extractf32x8_ps(x, 1));
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

static inline float v16_largest(v16 x)
{
    return _mm512_reduce_max_ps(x);
}

/* Lane i of the result is v16_sum(rows[i]). Each step adds halves and packs two rows into one; the
 * last permutation puts the rows back in order. */
static inline v16 v16_sum_rows(const v16 rows[16])
{
    v16 a[8];
    v16 b[4];
    v16 c[2];
    for (int i = 0; i < 8; i++) {
        v16 low = _mm512_shuffle_f32x4(rows[2 * i], rows[2 * i + 1], 0x44);
        v16 high = _mm512_shuffle_f32x4(rows[2 * i], rows[2 * i + 1], 0xEE);
        a[i] = _mm512_add_ps(low, high);
    }
    for (int i = 0; i < 4; i++) {
        v16 low = _mm512_shuffle_f32x4(a[2 * i], a[2 * i + 1], 0x88);
        v16 high = _mm512_shuffle_f32x4(a[2 * i], a[2 * i + 1], 0xDD);
        b[i] = _mm512_add_ps(low, high);
    }
    for (int i = 0; i < 2; i++) {
        v16 low = _mm512_shuffle_ps(b[2 * i], b[2 * i + 1], 0x44);
        v16 high = _mm512_shuffle_ps(b[2 * i], b[2 * i + 1], 0xEE);
        c[i] = _mm512_add_ps(low, high);
    }
    v16 low = _mm512_shuffle_ps(c[0], c[1], 0x88);
    v16 high = _mm512_shuffle_ps(c[0], c[1], 0xDD);
    /* Lane 4 g + r holds row 4 r + g. */
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    return _mm512_permutexvar_ps(order, _mm512_add_ps(low, high));
}

static inline w16 v16_bits(v16 x)
{
    return _mm512_castps_si512(x);
}

static inline v16 v16_from_bits(w16 x)
{
    return _mm512_castsi512_ps(x);
}

static inline w16 w16_set1(uint32_t x)
{
    return _mm512_set1_epi32((int)x);
}

static inline w16 w16_count_up(uint32_t first)
{
    return _mm512_add_epi32(
        _mm512_set1_epi32((int)first),
        _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

static inline w16 w16_load(const void *p)
{
    return _mm512_loadu_si512(p);
}

static inline w16 w16_add(w16 a, w16 b)
{
    return _mm512_add_epi32(a, b);
}

static inline w16 w16_sub(w16 a, w16 b)
{
    return _mm512_sub_epi32(a, b);
}

static inline w16 w16_xor(w16 a, w16 b)
{
    return _mm512_xor_si512(a, b);
}

static inline w16 w16_shift_to_exponent(w16 x)
{
    return _mm512_slli_epi32(x, 23);
}

/* Sixteen sums of products of integers. A type of its own, that of the instructions' operands:
 * sums of type w16 are spilled by gcc 12 in the middle of a loop. */
typedef int32_t s16 __attribute__((vector_size(64)));

static inline s16 s16_set1(int32_t x)
{
    return (s16)_mm512_set1_epi32(x);
}

/* p[i] * factor */
static inline s16 s16_scaled(const int32_t *p, int32_t factor)
{
    return (s16)_mm512_mullo_epi32(_mm512_loadu_si512(p), _mm512_set1_epi32(factor));
}

/* sum + a[0] * b[0] + a[1] * b[1] of the 16-bit halves of each word. */
static inline s16 s16_add_halves(s16 sum, w16 a, w16 b)
{
    return sum + (s16)_mm512_madd_epi16(a, b);
}

#if defined(__AVX512VNNI__)
/* sum + the four products of each word's bytes: a without sign, b with. */
static inline s16 s16_add_bytes(s16 sum, w16 a, w16 b)
{
    return (s16)_mm512_dpbusd_epi32((w16)sum, a, b);
}
#endif

/* The compiler no longer knows what x is. */
static inline void w16_forget(w16 *x)
{
    __asm__("" : "+v"(*x));
}

static inline v16 s16_to_float(s16 x)
{
    return _mm512_cvtepi32_ps((w16)x);
}

/* The sum of all words. */
static inline int32_t w16_sum(w16 x)
{
    return _mm512_reduce_add_epi32(x);
}

/* Nearest whole number, ties to even. */
static inline w16 v16_to_words(v16 x)
{
    return _mm512_cvtps_epi32(x);
}

/* The low byte of each word. */
static inline void w16_store_bytes(int8_t *p, w16 x)
{
    _mm_storeu_si128((__m128i *)p, _mm512_cvtepi32_epi8(x));
}

/* The low half of each word. */
static inline void w16_store_halves(int16_t *p, w16 x)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(x));
}

/* The largest of count bfloat16 (a multiple of 32) by their bits without sign. */
static inline uint32_t bf16_largest(const uint16_t *p, uint32_t count)
{
    __m512i most = _mm512_setzero_si512();
    for (uint32_t i = 0; i < count; i += 32) {
        __m512i bits = _mm512_and_si512(_mm512_loadu_si512(p + i), _mm512_set1_epi16(0x7FFF));
        most = _mm512_max_epu16(most, bits);
    }
    __m256i half =
        _mm256_max_epu16(_mm512_castsi512_si256(most), _mm512_extracti64x4_epi64(most, 1));
    return (uint32_t)halves_most(half); /* no sign, so any order will do */
}

/* The keys (ref/nn_scalar.h) of the smallest and the largest of count bfloat16 (a multiple of 32),
 * and of 0. */
static inline void bf16_range(const uint16_t *p, uint32_t count, int16_t *least, int16_t *most)
{
    __m512i low = _mm512_setzero_si512();
    __m512i high = _mm512_setzero_si512();
    for (uint32_t i = 0; i < count; i += 32) {
        __m512i x = _mm512_loadu_si512(p + i);
        __m512i flip = _mm512_srli_epi16(_mm512_srai_epi16(x, 15), 1);
        low = _mm512_min_epi16(low, _mm512_xor_si512(x, flip));
        high = _mm512_max_epi16(high, _mm512_xor_si512(x, flip));
    }
    __m256i l = _mm256_min_epi16(_mm512_castsi512_si256(low), _mm512_extracti64x4_epi64(low, 1));
    __m256i h = _mm256_max_epi16(_mm512_castsi512_si256(high), _mm512_extracti64x4_epi64(high, 1));
    *least = halves_least(l);
    *most = halves_most(h);
}

/* Both halves of a * factor. */
static inline void w16_multiply(w16 a, uint32_t factor, w16 *high, w16 *low)
{
    const w16 f = _mm512_set1_epi32((int)factor);
    w16 even = _mm512_mul_epu32(a, f);
    w16 odd = _mm512_mul_epu32(_mm512_srli_epi64(a, 32), f);
    *low = _mm512_mask_blend_epi32(0xAAAA, even, _mm512_slli_epi64(odd, 32));
    *high = _mm512_mask_blend_epi32(0xAAAA, _mm512_srli_epi64(even, 32), odd);
}

/* The sum of each word's four bytes, minus offset. */
static inline v16 w16_byte_sums(w16 x, int32_t offset)
{
    w16 pairs = _mm512_maddubs_epi16(x, _mm512_set1_epi8(1));
    w16 sums = _mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(sums, _mm512_set1_epi32(offset)));
}

/* p[4 i + j] = x[j] lane i. */
static inline void v16_store_interleaved(float *p, const v16 x[4])
{
    __m512d t0 = _mm512_castps_pd(_mm512_unpacklo_ps(x[0], x[1]));
    __m512d t1 = _mm512_castps_pd(_mm512_unpackhi_ps(x[0], x[1]));
    __m512d t2 = _mm512_castps_pd(_mm512_unpacklo_ps(x[2], x[3]));
    __m512d t3 = _mm512_castps_pd(_mm512_unpackhi_ps(x[2], x[3]));
    v16 r0 = _mm512_castpd_ps(_mm512_unpacklo_pd(t0, t2)); /* counters 0, 4, 8, 12 */
    v16 r1 = _mm512_castpd_ps(_mm512_unpackhi_pd(t0, t2)); /* 1, 5, 9, 13 */
    v16 r2 = _mm512_castpd_ps(_mm512_unpacklo_pd(t1, t3));
    v16 r3 = _mm512_castpd_ps(_mm512_unpackhi_pd(t1, t3));
    v16 s0 = _mm512_shuffle_f32x4(r0, r1, 0x44); /* 0, 4, 1, 5 */
    v16 s1 = _mm512_shuffle_f32x4(r2, r3, 0x44); /* 2, 6, 3, 7 */
    v16 s2 = _mm512_shuffle_f32x4(r0, r1, 0xEE); /* 8, 12, 9, 13 */
    v16 s3 = _mm512_shuffle_f32x4(r2, r3, 0xEE);
    _mm512_storeu_ps(p, _mm512_shuffle_f32x4(s0, s1, 0x88));
    _mm512_storeu_ps(p + 16, _mm512_shuffle_f32x4(s0, s1, 0xDD));
    _mm512_storeu_ps(p + 32, _mm512_shuffle_f32x4(s2, s3, 0x88));
    _mm512_storeu_ps(p + 48, _mm512_shuffle_f32x4(s2, s3, 0xDD));
}

static inline v16 v16_load_bf16(const uint16_t *p)
{
    __m256i half = _mm256_loadu_si256((const __m256i *)p);
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

/* Nearest bfloat16 of each lane in the low half of its word: denormals to zero, NaN to 0x7FC0. */
static inline w16 v16_to_bf16(v16 x)
{
    w16 bits = _mm512_castps_si512(x);
    w16 odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    w16 up = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7FFF)), odd);
    w16 result = _mm512_srli_epi32(up, 16);
    __mmask16 tiny = _mm512_testn_epi32_mask(bits, _mm512_set1_epi32(0x7F800000));
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    result = _mm512_mask_and_epi32(result, tiny, result, _mm512_set1_epi32(0x8000));
    return _mm512_mask_blend_epi32(nan, result, _mm512_set1_epi32(0x7FC0));
}

#if defined(__AVX512BF16__)
/* The instruction differs from the definition in what it makes of NaN alone. */
static inline void v16_store_bf16(uint16_t *p, v16 x)
{
    __m256i half = (__m256i)_mm512_cvtneps_pbh(x);
    __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    half = _mm256_mask_mov_epi16(half, nan, _mm256_set1_epi16(0x7FC0));
    _mm256_storeu_si256((__m256i *)p, half);
}
#else
static inline void v16_store_bf16(uint16_t *p, v16 x)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtepi32_epi16(v16_to_bf16(x)));
}
#endif

#if defined(__AVX512BF16__)
/* Two bfloat16 to a word. v16_dot_pairs adds the product of the high halves, then that of the low
 * ones, each rounded to float and denormals flushed whatever MXCSR says: two links of a chain. */
static inline v16 v16_dot_pairs(v16 a, v16 b, v16 sum)
{
    return _mm512_dpbf16_ps(sum, (__m512bh)_mm512_castps_si512(a),
                            (__m512bh)_mm512_castps_si512(b));
}

/* Floats that are bfloat16 already. */
static inline v16 v16_pair(v16 high, v16 low)
{
    w16 bits = _mm512_srli_epi32(_mm512_castps_si512(low), 16);
    return _mm512_castsi512_ps(_mm512_or_si512(_mm512_castps_si512(high), bits));
}

/* 32 terms k, .. as pairs (k, k + 2), (k + 1, k + 3), (k + 4, k + 6), .., the first one high. */
static inline v16 v16_load_pairs(const uint16_t *p)
{
    const w16 order =
        _mm512_setr_epi32(0x00000002, 0x00010003, 0x00040006, 0x00050007, 0x0008000A, 0x0009000B,
                          0x000C000E, 0x000D000F, 0x00100012, 0x00110013, 0x00140016, 0x00150017,
                          0x0018001A, 0x0019001B, 0x001C001E, 0x001D001F);
    return _mm512_castsi512_ps(_mm512_permutexvar_epi16(order, _mm512_loadu_si512(p)));
}
#endif

static inline void v16_store_bf16_part(uint16_t *p, v16 x, uint32_t count)
{
    _mm512_mask_cvtepi32_storeu_epi16(p, lanes_mask(count), v16_to_bf16(x));
}

/* x rounded to bfloat16, as floats. */
static inline v16 v16_round_bf16(v16 x)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(v16_to_bf16(x), 16));
}

/* Bytes of the first count lanes; the masks say which lanes are not finite or beyond the limit. */
static inline void v16_store_quantised(uint8_t *p, v16 x, uint32_t count, float limit,
                                       uint32_t *not_finite, uint32_t *saturated)
{
    __mmask16 used = lanes_mask(count);
    v16 magnitude = _mm512_abs_ps(x);
    __mmask16 finite = _mm512_cmp_ps_mask(magnitude, _mm512_set1_ps(0x1.fffffep127f), _CMP_LE_OQ);
    *not_finite = (uint32_t)(used & ~finite);
    *saturated =
        _mm512_mask_cmp_ps_mask(used & finite, magnitude, _mm512_set1_ps(limit), _CMP_GT_OQ);
    v16 clamped = _mm512_min_ps(_mm512_max_ps(x, _mm512_set1_ps(-1.0f)), _mm512_set1_ps(1.0f));
    v16 value = _mm512_fmadd_ps(clamped, _mm512_set1_ps(127.5f), _mm512_set1_ps(128.0f));
    w16 byte = _mm512_min_epi32(_mm512_cvttps_epi32(value), _mm512_set1_epi32(255));
    byte = _mm512_mask_blend_epi32(finite, _mm512_set1_epi32(128), byte);
    _mm512_mask_cvtepi32_storeu_epi8(p, used, byte);
}

#endif

#endif
