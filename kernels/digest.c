/*
 * Digest of many bytes, with the vectors that every x86-64 has and in plain C. A step of a lane is
 * x = lane xor word, lane = low half of x times the factor + high half of x.
 */
#include "kernels/digest.h"

#include "base/check.h"

#include <string.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#endif

static const uint64_t prime = UINT64_C(0x9E3779B185EBCA87);
/* Factor times 2^32 - 1 is a safe prime, as is half of it: the longest period. */
static const uint64_t factor = UINT64_C(4294883355);

static void begin(uint64_t seed, size_t bytes, uint64_t lane[DIGEST_LANES])
{
    CHECK(bytes % DIGEST_BLOCK_BYTES == 0);
    for (uint64_t k = 0; k < DIGEST_LANES; k++) {
        lane[k] = (seed + k) * prime;
    }
}

static uint64_t end(const uint64_t lane[DIGEST_LANES], size_t bytes)
{
    uint64_t digest = bytes;
    for (int k = 0; k < DIGEST_LANES; k++) {
        digest = (digest ^ lane[k]) * prime;
        digest ^= digest >> 32;
    }
    return digest;
}

uint64_t digest_wide_ref(uint64_t seed, const uint8_t *data, size_t bytes)
{
    uint64_t lane[DIGEST_LANES];
    begin(seed, bytes, lane);
    for (size_t i = 0; i < bytes; i += DIGEST_BLOCK_BYTES) {
        for (size_t k = 0; k < DIGEST_LANES; k++) {
            uint64_t word;
            memcpy(&word, data + i + 8 * k, sizeof word);
            word ^= lane[k];
            lane[k] = (word & UINT32_MAX) * factor + (word >> 32);
        }
    }
    return end(lane, bytes);
}

#if defined(__x86_64__)

uint64_t digest_wide(uint64_t seed, const uint8_t *data, size_t bytes)
{
    enum { VECTORS = DIGEST_LANES / 2 };
    const __m128i factors = _mm_set1_epi64x((int64_t)factor);
    uint64_t lane[DIGEST_LANES];
    __m128i x[VECTORS];
    begin(seed, bytes, lane);
    memcpy(x, lane, sizeof x);
    for (size_t i = 0; i < bytes; i += DIGEST_BLOCK_BYTES) {
#pragma GCC unroll 8
        for (int k = 0; k < VECTORS; k++) {
            const __m128i word = _mm_loadu_si128((const __m128i *)(const void *)(data + i) + k);
            x[k] = _mm_xor_si128(x[k], word);
            x[k] = _mm_add_epi64(_mm_mul_epu32(x[k], factors), _mm_srli_epi64(x[k], 32));
        }
    }
    memcpy(lane, x, sizeof lane);
    return end(lane, bytes);
}

#else

uint64_t digest_wide(uint64_t seed, const uint8_t *data, size_t bytes)
{
    return digest_wide_ref(seed, data, bytes);
}

#endif
