/*
 * The digest of an observation as engine/trace/trace.c computes it, for tests that link the engine
 * alone.
 */
#ifndef SWERVE_TESTS_CUDA_DIGEST_H
#define SWERVE_TESTS_CUDA_DIGEST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* bytes: a multiple of 32 */
static inline uint64_t digest_of(uint64_t seed, const uint8_t *data, size_t bytes)
{
    const uint64_t prime = UINT64_C(0x9E3779B185EBCA87);
    uint64_t lane[4] = {seed, seed ^ prime, ~seed, seed + prime};
    for (size_t i = 0; i < bytes; i += 8) {
        uint64_t word;
        memcpy(&word, data + i, sizeof word);
        uint64_t *own = &lane[i / 8 % 4];
        *own = (*own ^ word) * prime;
        *own ^= *own >> 29;
    }
    uint64_t digest = bytes;
    for (int k = 0; k < 4; k++) {
        digest = (digest ^ lane[k]) * prime;
        digest ^= digest >> 32;
    }
    return digest;
}

#endif
