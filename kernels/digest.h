/*
 * Digest of many bytes, order-sensitive and not cryptographic: sixteen lanes of 64 bits, each of
 * which multiplies with carry (Marsaglia 1994). Lanes wait for nobody but themselves, so a vector
 * holds as many as it has room for. Every variant gives the same bits
 * (tests/kernels/test_digest.c compares them).
 */
#ifndef SWERVE_KERNELS_DIGEST_H
#define SWERVE_KERNELS_DIGEST_H

#include <stddef.h>
#include <stdint.h>

enum { DIGEST_LANES = 16, DIGEST_BLOCK_BYTES = DIGEST_LANES * 8 };

/* Of data[bytes]; bytes: a multiple of DIGEST_BLOCK_BYTES. */
uint64_t digest_wide(uint64_t seed, const uint8_t *data, size_t bytes);

/* The same in plain C. */
uint64_t digest_wide_ref(uint64_t seed, const uint8_t *data, size_t bytes);

#endif
