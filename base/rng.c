/*
 * Philox4x32-10 and SplitMix64. Constants from the papers named in rng.h; the known-answer vectors
 * of the Random123 distribution are in the tests.
 */
#include "base/rng.h"

static void philox_round(uint32_t counter[4], uint32_t key0, uint32_t key1)
{
    uint64_t product0 = UINT64_C(0xD2511F53) * counter[0];
    uint64_t product1 = UINT64_C(0xCD9E8D57) * counter[2];
    uint32_t word0 = (uint32_t)(product1 >> 32) ^ counter[1] ^ key0;
    uint32_t word2 = (uint32_t)(product0 >> 32) ^ counter[3] ^ key1;
    counter[1] = (uint32_t)product1;
    counter[3] = (uint32_t)product0;
    counter[0] = word0;
    counter[2] = word2;
}

void rng_philox(uint64_t key, const uint32_t counter[4], uint32_t out[4])
{
    uint32_t key0 = (uint32_t)key;
    uint32_t key1 = (uint32_t)(key >> 32);
    for (int i = 0; i < 4; i++) {
        out[i] = counter[i];
    }
    for (int round = 0; round < 10; round++) {
        philox_round(out, key0, key1);
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
}

double rng_uniform(uint64_t key, enum rng_stream stream, uint32_t tick, uint32_t element)
{
    const uint32_t counter[4] = {tick, (uint32_t)stream, element, 0};
    uint32_t out[4];
    rng_philox(key, counter, out);
    return out[0] * (1.0 / 4294967296.0);
}
