/*
 * Sixteen floats or words at a time, AVX2 and FMA: two registers of eight. The same functions as
 * the AVX-512 header, operation for operation.
 */
#ifndef SWERVE_KERNELS_X86_NN_LANES_AVX2_H
#define SWERVE_KERNELS_X86_NN_LANES_AVX2_H

#if defined(__AVX2__)
#include "kernels/x86/nn_halves.h"

typedef struct {
    __m256 a, b;
} v16; /* 16 floats */

typedef struct {
    __m256i a, b;
} w16; /* 16 words of 32 bits */

static inline v16 v16_set1(float x)
{
    return (v16){_mm256_set1_ps(x), _mm256_set1_ps(x)};
}

static inline v16 v16_zero(void)
{
    return (v16){_mm256_setzero_ps(), _mm256_setzero_ps()};
}

static inline v16 v16_load(const float *p)
{
    return (v16){_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}

static inline void v16_store(float *p, v16 x)
{
    _mm256_storeu_ps(p, x.a);
    _mm256_storeu_ps(p + 8, x.b);
}

/* All ones in the first count (0..16) lanes. */
static inline w16 lanes_mask(uint32_t count)
{
    const __m256i a = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    const __m256i n = _mm256_set1_epi32((int)count);
    return (w16){_mm256_cmpgt_epi32(n, a),
                 _mm256_cmpgt_epi32(n, _mm256_add_epi32(a, _mm256_set1_epi32(8)))};
}

/* The first count (0..16) floats; the others are 0, or are not written. */
static inline v16 v16_load_part(const float *p, uint32_t count)
{
    w16 mask = lanes_mask(count);
    return (v16){_mm256_maskload_ps(p, mask.a), _mm256_maskload_ps(p + 8, mask.b)};
}

static inline void v16_store_part(float *p, v16 x, uint32_t count)
{
    w16 mask = lanes_mask(count);
    _mm256_maskstore_ps(p, mask.a, x.a);
    _mm256_maskstore_ps(p + 8, mask.b, x.b);
}

static inline v16 v16_add(v16 x, v16 y)
{
    return (v16){_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)};
}

static inline v16 v16_sub(v16 x, v16 y)
{
    return (v16){_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)};
}

static inline v16 v16_mul(v16 x, v16 y)
{
    return (v16){_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)};
}

static inline v16 v16_div(v16 x, v16 y)
{
    return (v16){_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)};
}

/* x * y + z, x * y - z and z - x * y, rounded once. */
static inline v16 v16_fma(v16 x, v16 y, v16 z)
{
    return (v16){_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}

static inline v16 v16_fms(v16 x, v16 y, v16 z)
{
    return (v16){_mm256_fmsub_ps(x.a, y.a, z.a), _mm256_fmsub_ps(x.b, y.b, z.b)};
}

static inline v16 v16_fnma(v16 x, v16 y, v16 z)
{
    return (v16){_mm256_fnmadd_ps(x.a, y.a, z.a), _mm256_fnmadd_ps(x.b, y.b, z.b)};
}

/* x * y - z in even lanes, x * y + z in odd ones. */
static inline v16 v16_fma_alternate(v16 x, v16 y, v16 z)
{
    return (v16){_mm256_fmaddsub_ps(x.a, y.a, z.a), _mm256_fmaddsub_ps(x.b, y.b, z.b)};
}

/* x > y ? x : y and x < y ? x : y: y where either is NaN. */
static inline v16 v16_max(v16 x, v16 y)
{
    return (v16){_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)};
}

static inline v16 v16_min(v16 x, v16 y)
{
    return (v16){_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)};
}

/* Between -limit and limit; what NaN becomes is not defined. */
static inline v16 v16_clamp(v16 x, float limit)
{
    return v16_min(v16_set1(limit), v16_max(v16_set1(-limit), x));
}

/* Neighbours exchanged: lanes 1, 0, 3, 2, .. */
static inline v16 v16_swap_pairs(v16 x)
{
    return (v16){_mm256_permute_ps(x.a, 0xB1), _mm256_permute_ps(x.b, 0xB1)};
}

/* Eight floats, each twice. */
static inline v16 v16_load_doubled(const float *p)
{
    __m256 x = _mm256_loadu_ps(p);
    const __m256i low = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3);
    const __m256i high = _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7);
    return (v16){_mm256_permutevar8x32_ps(x, low), _mm256_permutevar8x32_ps(x, high)};
}

/* Sum by halves: 8 + 8, 4 + 4, .. */
static inline float v16_sum(v16 x)
{
    __m256 h = _mm256_add_ps(x.a, x.b);
    __m128 q = _mm_add_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_add_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_add_ss(q, _mm_movehdup_ps(q)));
}

static inline float v16_largest(v16 x)
{
    __m256 h = _mm256_max_ps(x.a, x.b);
    __m128 q = _mm_max_ps(_mm256_castps256_ps128(h), _mm256_extractf128_ps(h, 1));
    q = _mm_max_ps(q, _mm_movehl_ps(q, q));
    return _mm_cvtss_f32(_mm_max_ss(q, _mm_movehdup_ps(q)));
}

/* Lane i of the result is v16_sum(rows[i]). */
static inline v16 v16_sum_rows(const v16 rows[16])
{
    float sums[16];
    for (int i = 0; i < 16; i++) {
        sums[i] = v16_sum(rows[i]);
    }
    return v16_load(sums);
}

static inline w16 v16_bits(v16 x)
{
    return (w16){_mm256_castps_si256(x.a), _mm256_castps_si256(x.b)};
}

static inline v16 v16_from_bits(w16 x)
{
    return (v16){_mm256_castsi256_ps(x.a), _mm256_castsi256_ps(x.b)};
}

static inline w16 w16_set1(uint32_t x)
{
    return (w16){_mm256_set1_epi32((int)x), _mm256_set1_epi32((int)x)};
}

static inline w16 w16_load(const void *p)
{
    const __m256i *from = p;
    return (w16){_mm256_loadu_si256(from), _mm256_loadu_si256(from + 1)};
}

static inline w16 w16_add(w16 x, w16 y)
{
    return (w16){_mm256_add_epi32(x.a, y.a), _mm256_add_epi32(x.b, y.b)};
}

static inline w16 w16_count_up(uint32_t first)
{
    const w16 steps = {_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7),
                       _mm256_setr_epi32(8, 9, 10, 11, 12, 13, 14, 15)};
    return w16_add(w16_set1(first), steps);
}

static inline w16 w16_sub(w16 x, w16 y)
{
    return (w16){_mm256_sub_epi32(x.a, y.a), _mm256_sub_epi32(x.b, y.b)};
}

static inline w16 w16_xor(w16 x, w16 y)
{
    return (w16){_mm256_xor_si256(x.a, y.a), _mm256_xor_si256(x.b, y.b)};
}

static inline w16 w16_shift_to_exponent(w16 x)
{
    return (w16){_mm256_slli_epi32(x.a, 23), _mm256_slli_epi32(x.b, 23)};
}

/* Sixteen sums of products of integers. */
typedef w16 s16;

static inline s16 s16_set1(int32_t x)
{
    return w16_set1((uint32_t)x);
}

/* p[i] * factor */
static inline s16 s16_scaled(const int32_t *p, int32_t factor)
{
    w16 x = w16_load(p);
    return (s16){_mm256_mullo_epi32(x.a, _mm256_set1_epi32(factor)),
                 _mm256_mullo_epi32(x.b, _mm256_set1_epi32(factor))};
}

/* sum + x[0] * y[0] + x[1] * y[1] of the 16-bit halves of each word. */
static inline s16 s16_add_halves(s16 sum, w16 x, w16 y)
{
    return (s16){_mm256_add_epi32(sum.a, _mm256_madd_epi16(x.a, y.a)),
                 _mm256_add_epi32(sum.b, _mm256_madd_epi16(x.b, y.b))};
}

/* The compiler no longer knows what x is. */
static inline void w16_forget(w16 *x)
{
    __asm__("" : "+x"(x->a), "+x"(x->b));
}

static inline v16 s16_to_float(s16 x)
{
    return (v16){_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)};
}

/* The sum of all words. */
static inline int32_t w16_sum(w16 x)
{
    __m256i h = _mm256_add_epi32(x.a, x.b);
    __m128i q = _mm_add_epi32(_mm256_castsi256_si128(h), _mm256_extracti128_si256(h, 1));
    q = _mm_add_epi32(q, _mm_shuffle_epi32(q, 0x4E));
    return _mm_cvtsi128_si32(_mm_add_epi32(q, _mm_shuffle_epi32(q, 0xB1)));
}

/* Nearest whole number, ties to even. */
static inline w16 v16_to_words(v16 x)
{
    return (w16){_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)};
}

/* The low byte of each word, which is between -128 and 127. */
static inline void w16_store_bytes(int8_t *p, w16 x)
{
    __m256i halves = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xD8);
    __m128i bytes =
        _mm_packs_epi16(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
    _mm_storeu_si128((__m128i *)p, bytes);
}

/* The low half of each word, which is between -32768 and 32767. */
static inline void w16_store_halves(int16_t *p, w16 x)
{
    __m256i halves = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xD8);
    _mm256_storeu_si256((__m256i *)p, halves);
}

/* The largest of count bfloat16 (a multiple of 32) by their bits without sign. */
static inline uint32_t bf16_largest(const uint16_t *p, uint32_t count)
{
    __m256i most = _mm256_setzero_si256();
    for (uint32_t i = 0; i < count; i += 16) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(p + i));
        most = _mm256_max_epu16(most, _mm256_and_si256(x, _mm256_set1_epi16(0x7FFF)));
    }
    return (uint32_t)halves_most(most); /* no sign, so any order will do */
}

/* The keys (ref/nn_scalar.h) of the smallest and the largest of count bfloat16 (a multiple of 32),
 * and of 0. */
static inline void bf16_range(const uint16_t *p, uint32_t count, int16_t *least, int16_t *most)
{
    __m256i low = _mm256_setzero_si256();
    __m256i high = _mm256_setzero_si256();
    for (uint32_t i = 0; i < count; i += 16) {
        __m256i x = _mm256_loadu_si256((const __m256i *)(p + i));
        __m256i key = _mm256_xor_si256(x, _mm256_srli_epi16(_mm256_srai_epi16(x, 15), 1));
        low = _mm256_min_epi16(low, key);
        high = _mm256_max_epi16(high, key);
    }
    *least = halves_least(low);
    *most = halves_most(high);
}

static inline void w8_multiply(__m256i x, __m256i factor, __m256i *high, __m256i *low)
{
    __m256i even = _mm256_mul_epu32(x, factor);
    __m256i odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), factor);
    *low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xAA);
    *high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xAA);
}

/* Both halves of x * factor. */
static inline void w16_multiply(w16 x, uint32_t factor, w16 *high, w16 *low)
{
    const __m256i f = _mm256_set1_epi32((int)factor);
    w8_multiply(x.a, f, &high->a, &low->a);
    w8_multiply(x.b, f, &high->b, &low->b);
}

static inline __m256 w8_byte_sums(__m256i x, int32_t offset)
{
    __m256i pairs = _mm256_maddubs_epi16(x, _mm256_set1_epi8(1));
    __m256i sums = _mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
    return _mm256_cvtepi32_ps(_mm256_sub_epi32(sums, _mm256_set1_epi32(offset)));
}

/* The sum of each word's four bytes, minus offset. */
static inline v16 w16_byte_sums(w16 x, int32_t offset)
{
    return (v16){w8_byte_sums(x.a, offset), w8_byte_sums(x.b, offset)};
}

static inline void v8_store_interleaved(float *p, __m256 x0, __m256 x1, __m256 x2, __m256 x3)
{
    __m256d t0 = _mm256_castps_pd(_mm256_unpacklo_ps(x0, x1));
    __m256d t1 = _mm256_castps_pd(_mm256_unpackhi_ps(x0, x1));
    __m256d t2 = _mm256_castps_pd(_mm256_unpacklo_ps(x2, x3));
    __m256d t3 = _mm256_castps_pd(_mm256_unpackhi_ps(x2, x3));
    __m256 r0 = _mm256_castpd_ps(_mm256_unpacklo_pd(t0, t2)); /* counters 0 and 4 */
    __m256 r1 = _mm256_castpd_ps(_mm256_unpackhi_pd(t0, t2));
    __m256 r2 = _mm256_castpd_ps(_mm256_unpacklo_pd(t1, t3));
    __m256 r3 = _mm256_castpd_ps(_mm256_unpackhi_pd(t1, t3));
    _mm256_storeu_ps(p, _mm256_permute2f128_ps(r0, r1, 0x20));
    _mm256_storeu_ps(p + 8, _mm256_permute2f128_ps(r2, r3, 0x20));
    _mm256_storeu_ps(p + 16, _mm256_permute2f128_ps(r0, r1, 0x31));
    _mm256_storeu_ps(p + 24, _mm256_permute2f128_ps(r2, r3, 0x31));
}

/* p[4 i + j] = x[j] lane i. */
static inline void v16_store_interleaved(float *p, const v16 x[4])
{
    v8_store_interleaved(p, x[0].a, x[1].a, x[2].a, x[3].a);
    v8_store_interleaved(p + 32, x[0].b, x[1].b, x[2].b, x[3].b);
}

static inline v16 v16_load_bf16(const uint16_t *p)
{
    __m256i low = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p));
    __m256i high = _mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)(p + 8)));
    return (v16){_mm256_castsi256_ps(_mm256_slli_epi32(low, 16)),
                 _mm256_castsi256_ps(_mm256_slli_epi32(high, 16))};
}

static inline __m256i v8_to_bf16(__m256 x)
{
    __m256i bits = _mm256_castps_si256(x);
    __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    __m256i up = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
    __m256i exponent = _mm256_and_si256(bits, _mm256_set1_epi32(0x7F800000));
    __m256i tiny = _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256());
    __m256i keep = _mm256_blendv_epi8(_mm256_set1_epi32(-1), _mm256_set1_epi32(0x8000), tiny);
    __m256i result = _mm256_and_si256(_mm256_srli_epi32(up, 16), keep);
    __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    return _mm256_blendv_epi8(result, _mm256_set1_epi32(0x7FC0), nan);
}

/* Nearest bfloat16 of each lane in the low half of its word: denormals to zero, NaN to 0x7FC0. */
static inline w16 v16_to_bf16(v16 x)
{
    return (w16){v8_to_bf16(x.a), v8_to_bf16(x.b)};
}

static inline void v16_store_bf16(uint16_t *p, v16 x)
{
    w16 words = v16_to_bf16(x);
    __m256i packed = _mm256_packus_epi32(words.a, words.b); /* by quarters: 0, 2, 1, 3 */
    _mm256_storeu_si256((__m256i *)p, _mm256_permute4x64_epi64(packed, 0xD8));
}

static inline void v16_store_bf16_part(uint16_t *p, v16 x, uint32_t count)
{
    uint16_t all[16];
    v16_store_bf16(all, x);
    for (uint32_t i = 0; i < count; i++) {
        p[i] = all[i];
    }
}

/* x rounded to bfloat16, as floats. */
static inline v16 v16_round_bf16(v16 x)
{
    w16 words = v16_to_bf16(x);
    return (v16){_mm256_castsi256_ps(_mm256_slli_epi32(words.a, 16)),
                 _mm256_castsi256_ps(_mm256_slli_epi32(words.b, 16))};
}

static inline __m256i v8_quantise(__m256 x, float limit, uint32_t *not_finite, uint32_t *saturated)
{
    __m256 magnitude = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x);
    __m256 finite = _mm256_cmp_ps(magnitude, _mm256_set1_ps(0x1.fffffep127f), _CMP_LE_OQ);
    __m256 beyond = _mm256_cmp_ps(magnitude, _mm256_set1_ps(limit), _CMP_GT_OQ);
    *not_finite = (uint32_t)_mm256_movemask_ps(finite) ^ 0xFF;
    *saturated = (uint32_t)_mm256_movemask_ps(_mm256_and_ps(finite, beyond));
    __m256 clamped = _mm256_min_ps(_mm256_max_ps(x, _mm256_set1_ps(-1.0f)), _mm256_set1_ps(1.0f));
    __m256 value = _mm256_fmadd_ps(clamped, _mm256_set1_ps(127.5f), _mm256_set1_ps(128.0f));
    __m256i byte = _mm256_min_epi32(_mm256_cvttps_epi32(value), _mm256_set1_epi32(255));
    return _mm256_blendv_epi8(_mm256_set1_epi32(128), byte, _mm256_castps_si256(finite));
}

/* Bytes of the first count lanes; the masks say which lanes are not finite or beyond the limit. */
static inline void v16_store_quantised(uint8_t *p, v16 x, uint32_t count, float limit,
                                       uint32_t *not_finite, uint32_t *saturated)
{
    uint32_t none[2];
    uint32_t far[2];
    __m256i low = v8_quantise(x.a, limit, &none[0], &far[0]);
    __m256i high = v8_quantise(x.b, limit, &none[1], &far[1]);
    uint32_t used = (1u << count) - 1;
    *not_finite = (none[0] | none[1] << 8) & used;
    *saturated = (far[0] | far[1] << 8) & used;
    __m256i halves = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xD8);
    __m128i bytes =
        _mm_packus_epi16(_mm256_castsi256_si128(halves), _mm256_extracti128_si256(halves, 1));
    uint8_t all[16];
    _mm_storeu_si128((__m128i *)all, bytes);
    for (uint32_t i = 0; i < count; i++) {
        p[i] = all[i];
    }
}

#endif

#endif
