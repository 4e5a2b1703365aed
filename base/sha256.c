/*
 * SHA-256 after FIPS 180-4, sections 4.1.2, 4.2.2, 5 and 6.2; tested on the standard's examples.
 *
 * The plain C here is the reference, and what machines without instructions for it use.
 */
#include "base/sha256.h"

#include "base/sha256_blocks.h"

#include <stdatomic.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

const uint32_t sha256_round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate_right(uint32_t word, int bits)
{
    return (word >> bits) | (word << (32 - bits));
}

static void compress(uint32_t state[8], const uint8_t block[64])
{
    uint32_t w[64];
    for (int i = 0; i < 16; i++) {
        w[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
               (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    }
    for (int i = 16; i < 64; i++) {
        uint32_t s0 = rotate_right(w[i - 15], 7) ^ rotate_right(w[i - 15], 18) ^ (w[i - 15] >> 3);
        uint32_t s1 = rotate_right(w[i - 2], 17) ^ rotate_right(w[i - 2], 19) ^ (w[i - 2] >> 10);
        w[i] = w[i - 16] + s0 + w[i - 7] + s1;
    }
    uint32_t v[8];
    memcpy(v, state, sizeof v);
    for (int i = 0; i < 64; i++) {
        uint32_t s1 = rotate_right(v[4], 6) ^ rotate_right(v[4], 11) ^ rotate_right(v[4], 25);
        uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
        uint32_t t1 = v[7] + s1 + choice + sha256_round_constants[i] + w[i];
        uint32_t s0 = rotate_right(v[0], 2) ^ rotate_right(v[0], 13) ^ rotate_right(v[0], 22);
        uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
        uint32_t t2 = s0 + majority;
        memmove(v + 1, v, 7 * sizeof v[0]);
        v[4] += t1;
        v[0] = t1 + t2;
    }
    for (int i = 0; i < 8; i++) {
        state[i] += v[i];
    }
}

void sha256_blocks_c(uint32_t state[8], const uint8_t *blocks, size_t count)
{
    for (; count > 0; count--, blocks += 64) {
        compress(state, blocks);
    }
}

static uint32_t detect(void)
{
#if defined(__x86_64__)
    enum { SSSE3 = 1 << 9, SSE41 = 1 << 19, SHA = 1 << 29 };
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    if (__get_cpuid(1, &a, &b, &c, &d) && (c & SSSE3) != 0 && (c & SSE41) != 0 &&
        __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & SHA) != 0) {
        return SHA256_FLAG_X86;
    }
#endif
    return 0;
}

uint32_t sha256_flags_detect(void)
{
    /* Asked once: virtual machines answer cpuid in the time of many blocks. */
    static atomic_uint_least32_t known; /* flags plus one; 0: not asked yet */
    uint32_t flags = atomic_load_explicit(&known, memory_order_relaxed);
    if (flags == 0) {
        flags = detect() + 1;
        atomic_store_explicit(&known, flags, memory_order_relaxed);
    }
    return flags - 1;
}

void sha256_init(struct sha256 *hash)
{
    sha256_init_masked(hash, sha256_flags_detect());
}

void sha256_init_masked(struct sha256 *hash, uint32_t flags)
{
    static const uint32_t initial[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                        0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, initial, sizeof initial);
    hash->total_bytes = 0;
    hash->blocks = sha256_blocks_c;
#if defined(__x86_64__)
    if ((flags & SHA256_FLAG_X86) != 0) {
        hash->blocks = sha256_blocks_x86;
    }
#else
    (void)flags;
#endif
}

void sha256_update(struct sha256 *hash, const void *data, size_t bytes)
{
    const uint8_t *input = data;
    size_t held = hash->total_bytes % 64;
    hash->total_bytes += bytes;
    if (held > 0) {
        size_t take = bytes < 64 - held ? bytes : 64 - held;
        if (take > 0) {
            memcpy(hash->block + held, input, take);
        }
        if (held + take < 64) {
            return;
        }
        hash->blocks(hash->state, hash->block, 1);
        input += take;
        bytes -= take;
    }
    if (bytes >= 64) {
        hash->blocks(hash->state, input, bytes / 64);
    }
    if (bytes % 64 > 0) {
        memcpy(hash->block, input + bytes / 64 * 64, bytes % 64);
    }
}

void sha256_final(struct sha256 *hash, uint8_t out[SHA256_BYTES])
{
    static const uint8_t padding[64] = {0x80};
    uint64_t bits = hash->total_bytes * 8;
    size_t held = hash->total_bytes % 64;
    sha256_update(hash, padding, held < 56 ? 56 - held : 120 - held);
    uint8_t length[8];
    for (int i = 0; i < 8; i++) {
        length[i] = (uint8_t)(bits >> (56 - 8 * i));
    }
    sha256_update(hash, length, sizeof length);
    for (int i = 0; i < 32; i++) {
        out[i] = (uint8_t)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
    }
}

void sha256_to_hex(const uint8_t digest[SHA256_BYTES], char out[SHA256_HEX_BYTES])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = 0; i < SHA256_BYTES; i++) {
        out[2 * i] = digits[digest[i] >> 4];
        out[2 * i + 1] = digits[digest[i] & 15];
    }
    out[64] = '\0';
}

bool sha256_is_hex(const char *text, size_t bytes)
{
    return bytes == SHA256_HEX_BYTES - 1 && strspn(text, "0123456789abcdef") >= bytes;
}

void sha256_hex(const void *data, size_t bytes, char out[SHA256_HEX_BYTES])
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    sha256_init(&hash);
    sha256_update(&hash, data, bytes);
    sha256_final(&hash, digest);
    sha256_to_hex(digest, out);
}
