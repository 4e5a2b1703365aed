/*
 * SHA-256 (FIPS 180-4): names scenarios, models, traces and artifacts by content.
 *
 * Kept here rather than taken from a crypto library because the engine and its tests must build
 * with libc alone.
 */
#ifndef SWERVE_BASE_SHA256_H
#define SWERVE_BASE_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SHA256_BYTES = 32, SHA256_HEX_BYTES = 65 /* 64 digits and the terminator */ };

struct sha256 {
    uint32_t state[8];
    uint64_t total_bytes;
    uint8_t block[64];
    void (*blocks)(uint32_t state[8], const uint8_t *blocks, size_t count);
};

enum sha256_flag { SHA256_FLAG_X86 = 1 /* the SHA extensions */ };

/* Instructions that this machine has for it: a set of enum sha256_flag. */
uint32_t sha256_flags_detect(void);

void sha256_init(struct sha256 *hash);
/* With the instructions in `flags` only, which the machine must have; 0: plain C. For tests and
 * benchmarks: the digest is the same. */
void sha256_init_masked(struct sha256 *hash, uint32_t flags);
void sha256_update(struct sha256 *hash, const void *data, size_t bytes);
void sha256_final(struct sha256 *hash, uint8_t out[SHA256_BYTES]);

/* Lower-case hex of a finished digest, terminated. */
void sha256_to_hex(const uint8_t digest[SHA256_BYTES], char out[SHA256_HEX_BYTES]);

/* Whether the first `bytes` of a terminated text are a digest as sha256_to_hex writes it. */
bool sha256_is_hex(const char *text, size_t bytes);

/* init + update + final + to_hex. */
void sha256_hex(const void *data, size_t bytes, char out[SHA256_HEX_BYTES]);

#endif
