/*
 * Sixteen halves of 16 bits in an AVX2 register: what the lanes of AVX2 and AVX-512 share.
 */
#ifndef SWERVE_KERNELS_X86_NN_HALVES_H
#define SWERVE_KERNELS_X86_NN_HALVES_H

#if defined(__AVX2__)
#include <immintrin.h>
#include <stdint.h>

/* 16 bytes with sign as halves. */
static inline void halves_from_bytes(int16_t *out, const int8_t *p)
{
    __m256i halves = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p));
    _mm256_storeu_si256((__m256i *)out, halves);
}

static inline int16_t halves_least(__m256i x)
{
    __m128i eight = _mm_min_epi16(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
    __m128i least = _mm_minpos_epu16(_mm_xor_si128(eight, _mm_set1_epi16(INT16_MIN)));
    return (int16_t)(_mm_cvtsi128_si32(least) ^ 0x8000);
}

static inline int16_t halves_most(__m256i x)
{
    return (int16_t)~halves_least(_mm256_xor_si256(x, _mm256_set1_epi16(-1)));
}

#endif

#endif
