/*
 * The compression function of SHA-256 over whole blocks: FIPS 180-4, section 6.2.2, once per block
 * of 64 bytes in order. Plain C is the reference; the others give the same state. Private to base.
 */
#ifndef SWERVE_BASE_SHA256_BLOCKS_H
#define SWERVE_BASE_SHA256_BLOCKS_H

#include <stddef.h>
#include <stdint.h>

extern const uint32_t sha256_round_constants[64];

void sha256_blocks_c(uint32_t state[8], const uint8_t *blocks, size_t count);

/* Only where SHA256_FLAG_X86 was detected. */
void sha256_blocks_x86(uint32_t state[8], const uint8_t *blocks, size_t count);

#endif
