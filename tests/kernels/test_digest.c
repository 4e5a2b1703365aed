/*
 * Goal: every variant of the wide digest has the bits of its plain C, and every byte counts, at its
 * place.
 *
 * Method: random data of all sizes that are allowed, at any alignment; then one bit at a time; then
 * words that change places.
 */
#include "base/rng.h"
#include "kernels/digest.h"
#include "tests/harness.h"

#include <string.h>

enum { BLOCKS = 6, BYTES = BLOCKS * DIGEST_BLOCK_BYTES, ROOM = BYTES + 16 };

static void fill(uint8_t *data, uint32_t round)
{
    for (uint32_t i = 0; i < ROOM; i++) {
        data[i] = (uint8_t)rng_mix((uint64_t)round << 32 | i);
    }
}

static void variants_agree(void)
{
    uint8_t data[ROOM];
    for (uint32_t round = 0; round < 200; round++) {
        fill(data, round);
        for (size_t bytes = 0; bytes <= BYTES; bytes += DIGEST_BLOCK_BYTES) {
            const uint8_t *at = data + round % 16;
            EXPECT(digest_wide(round, at, bytes) == digest_wide_ref(round, at, bytes));
        }
    }
}

static void every_bit_counts(void)
{
    static const uint8_t zeros[BYTES];
    uint8_t data[ROOM];
    for (uint32_t round = 0; round < 2; round++) {
        fill(data, round);
        if (round == 0) {
            memcpy(data, zeros, BYTES);
        }
        uint64_t base = digest_wide(1, data, BYTES);
        EXPECT(digest_wide(2, data, BYTES) != base);
        EXPECT(digest_wide(1, data, BYTES - DIGEST_BLOCK_BYTES) != base);
        for (size_t bit = 0; bit < (size_t)BYTES * 8; bit++) {
            data[bit / 8] ^= (uint8_t)(1u << bit % 8);
            EXPECT(digest_wide(1, data, BYTES) != base);
            data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
    }
}

/* Words of one lane, and of two. */
static void places_count(void)
{
    uint8_t data[ROOM];
    fill(data, 7);
    uint64_t base = digest_wide(1, data, BYTES);
    for (size_t far = 8; far < BYTES; far += 8) {
        uint8_t word[8];
        memcpy(word, data, 8);
        memcpy(data, data + far, 8);
        memcpy(data + far, word, 8);
        EXPECT(digest_wide(1, data, BYTES) != base);
        fill(data, 7);
    }
}

int main(void)
{
    return TEST_RUN(TEST(variants_agree), TEST(every_bit_counts), TEST(places_count));
}
