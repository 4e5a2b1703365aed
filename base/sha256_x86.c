/*
 * SHA-256 with the x86 SHA extensions (Intel SDM, volume 2: SHA256RNDS2, SHA256MSG1, SHA256MSG2).
 *
 * The instructions want the state as two registers, {F, E, B, A} and {H, G, D, C} from the lowest
 * lane up, and do two rounds at a time: the one that does not change becomes the other's old half.
 * Words of the schedule are made four at a time, in a ring of four registers.
 */
#include "base/sha256_blocks.h"

#include <immintrin.h>

/* Four rounds with words w[4] and their constants. */
static inline void four_rounds(__m128i *abef, __m128i *cdgh, __m128i w, int first)
{
    __m128i k = _mm_loadu_si128((const __m128i *)(sha256_round_constants + first));
    __m128i sum = _mm_add_epi32(w, k);
    *cdgh = _mm_sha256rnds2_epu32(*cdgh, *abef, sum);
    *abef = _mm_sha256rnds2_epu32(*abef, *cdgh, _mm_shuffle_epi32(sum, 0x0E));
}

/* Words t .. t+3 of the schedule, from the sixteen before: w0 the oldest four, w3 the newest. */
static inline __m128i next_words(__m128i w0, __m128i w1, __m128i w2, __m128i w3)
{
    __m128i seven_back = _mm_alignr_epi8(w3, w2, 4);
    return _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(w0, w1), seven_back), w3);
}

static inline __m128i load_words(const uint8_t *block, int part)
{
    const __m128i big_endian = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
    return _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(block + 16 * part)), big_endian);
}

void sha256_blocks_x86(uint32_t state[8], const uint8_t *blocks, size_t count)
{
    __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)state), 0xB1);
    __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)(state + 4)), 0x1B);
    __m128i abef = _mm_alignr_epi8(badc, hgfe, 8);
    __m128i cdgh = _mm_blend_epi16(hgfe, badc, 0xF0);
    for (; count > 0; count--, blocks += 64) {
        __m128i abef_before = abef;
        __m128i cdgh_before = cdgh;
        __m128i w0 = load_words(blocks, 0);
        __m128i w1 = load_words(blocks, 1);
        __m128i w2 = load_words(blocks, 2);
        __m128i w3 = load_words(blocks, 3);
        for (int round = 0; round < 48; round += 16) {
            four_rounds(&abef, &cdgh, w0, round);
            w0 = next_words(w0, w1, w2, w3);
            four_rounds(&abef, &cdgh, w1, round + 4);
            w1 = next_words(w1, w2, w3, w0);
            four_rounds(&abef, &cdgh, w2, round + 8);
            w2 = next_words(w2, w3, w0, w1);
            four_rounds(&abef, &cdgh, w3, round + 12);
            w3 = next_words(w3, w0, w1, w2);
        }
        four_rounds(&abef, &cdgh, w0, 48);
        four_rounds(&abef, &cdgh, w1, 52);
        four_rounds(&abef, &cdgh, w2, 56);
        four_rounds(&abef, &cdgh, w3, 60);
        abef = _mm_add_epi32(abef, abef_before);
        cdgh = _mm_add_epi32(cdgh, cdgh_before);
    }
    __m128i feba = _mm_shuffle_epi32(abef, 0x1B);
    __m128i dchg = _mm_shuffle_epi32(cdgh, 0xB1);
    _mm_storeu_si128((__m128i *)state, _mm_blend_epi16(feba, dchg, 0xF0));
    _mm_storeu_si128((__m128i *)(state + 4), _mm_alignr_epi8(dchg, feba, 8));
}
