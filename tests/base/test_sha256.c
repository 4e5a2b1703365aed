/*
 * SHA-256: the examples of FIPS 180-4 (NIST CAVP short and long messages), and the property that
 * the digest does not depend on how a message is cut into updates. Every instruction set of this
 * machine gives what plain C gives.
 */
#include "base/check.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "tests/harness.h"

struct answer {
    const char *message;
    const char *hex;
};

static const struct answer answers[] = {
    {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
    {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
    {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
     "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrlmno"
     "pqrsmnopqrstnopqrstu",
     "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
};

/* Ends a hash that has taken its message. */
static void finish_hex(struct sha256 *hash, char hex[SHA256_HEX_BYTES])
{
    uint8_t digest[SHA256_BYTES];
    sha256_final(hash, digest);
    sha256_to_hex(digest, hex);
}

static void standard_examples_hold(void)
{
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        char hex[SHA256_HEX_BYTES];
        struct sha256 plain;
        sha256_hex(answers[i].message, strlen(answers[i].message), hex);
        EXPECT_TEXT(hex, answers[i].hex);
        sha256_init_masked(&plain, 0);
        sha256_update(&plain, answers[i].message, strlen(answers[i].message));
        finish_hex(&plain, hex);
        EXPECT_TEXT(hex, answers[i].hex);
    }
}

static void million_a(uint32_t flags)
{
    struct sha256 hash;
    char hex[SHA256_HEX_BYTES];
    char chunk[1000];
    memset(chunk, 'a', sizeof chunk);
    sha256_init_masked(&hash, flags);
    for (int i = 0; i < 1000; i++) {
        sha256_update(&hash, chunk, sizeof chunk);
    }
    finish_hex(&hash, hex);
    EXPECT_TEXT(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void a_million_a_hold(void)
{
    million_a(0);
    million_a(sha256_flags_detect());
}

/* One random message at a random alignment, whole in plain C and cut at random places with every
 * instruction that the machine has. */
static void compare_at_random(uint32_t seed, uint8_t *room, size_t capacity)
{
    struct sha256 plain;
    struct sha256 quick;
    char expected[SHA256_HEX_BYTES];
    char found[SHA256_HEX_BYTES];
    uint32_t draw = 0;
    size_t skew = (size_t)(rng_uniform(7, RNG_STREAM_TEST, seed, draw++) * 64);
    size_t length = (size_t)(rng_uniform(7, RNG_STREAM_TEST, seed, draw++) *
                             (double)(seed % 8 == 0 ? capacity - skew : 700));
    uint8_t *message = room + skew;
    for (size_t i = 0; i < length; i++) {
        message[i] = (uint8_t)(rng_mix(((uint64_t)seed << 32) + i / 8) >> (8 * (i % 8)));
    }
    sha256_init_masked(&plain, 0);
    sha256_update(&plain, message, length);
    sha256_init_masked(&quick, sha256_flags_detect());
    double longest = seed % 3 == 0 ? 70 : 2000;
    for (size_t at = 0; at < length;) {
        size_t take = (size_t)(rng_uniform(7, RNG_STREAM_TEST, seed, draw++) * longest);
        take = take > length - at ? length - at : take;
        sha256_update(&quick, message + at, take);
        at += take;
    }
    finish_hex(&plain, expected);
    finish_hex(&quick, found);
    EXPECT_TEXT(found, expected);
}

static void instruction_sets_agree(void)
{
    enum { MESSAGES = 5000, CAPACITY = 20000 };
    static uint8_t room[CAPACITY];
    for (uint32_t seed = 0; seed < MESSAGES; seed++) {
        compare_at_random(seed, room, sizeof room);
    }
}

/* Pathological blocks, through many compressions: all carries and none. */
static void constant_messages_agree(void)
{
    static const uint8_t fills[] = {0x00, 0xff, 0x80, 0x7f, 0x55, 0xaa};
    uint8_t message[64 * 7];
    for (size_t i = 0; i < COUNT_OF(fills); i++) {
        struct sha256 plain;
        struct sha256 quick;
        char expected[SHA256_HEX_BYTES];
        char found[SHA256_HEX_BYTES];
        memset(message, fills[i], sizeof message);
        sha256_init_masked(&plain, 0);
        sha256_init_masked(&quick, sha256_flags_detect());
        for (int k = 0; k < 100; k++) {
            sha256_update(&plain, message, sizeof message);
            sha256_update(&quick, message, sizeof message);
        }
        finish_hex(&plain, expected);
        finish_hex(&quick, found);
        EXPECT_TEXT(found, expected);
    }
}

/* Every length around the block and padding boundaries, cut at random places. */
static void cuts_do_not_matter(void)
{
    uint8_t message[300];
    for (uint32_t i = 0; i < sizeof message; i++) {
        message[i] = (uint8_t)rng_mix(i);
    }
    for (uint32_t length = 0; length <= sizeof message; length++) {
        char whole[SHA256_HEX_BYTES];
        char cut[SHA256_HEX_BYTES];
        uint8_t digest[SHA256_BYTES];
        struct sha256 hash;
        sha256_hex(message, length, whole);
        sha256_init(&hash);
        uint32_t at = 0;
        for (uint32_t k = 0; at < length; k++) {
            uint32_t take =
                (uint32_t)(rng_uniform(3, RNG_STREAM_TEST, length, k) * 80); /* may be 0 */
            take = take > length - at ? length - at : take;
            sha256_update(&hash, message + at, take);
            at += take;
        }
        sha256_final(&hash, digest);
        sha256_to_hex(digest, cut);
        EXPECT_TEXT(cut, whole);
    }
}

static void different_messages_differ(void)
{
    uint8_t message[64] = {0};
    char first[SHA256_HEX_BYTES];
    char flipped[SHA256_HEX_BYTES];
    sha256_hex(message, sizeof message, first);
    for (int bit = 0; bit < 512; bit++) {
        message[bit / 8] ^= (uint8_t)(1 << (bit % 8));
        sha256_hex(message, sizeof message, flipped);
        EXPECT(strcmp(first, flipped) != 0);
        message[bit / 8] ^= (uint8_t)(1 << (bit % 8));
    }
}

static void digits_are_told_from_other_texts(void)
{
    char hex[SHA256_HEX_BYTES];
    sha256_hex("abc", 3, hex);
    EXPECT(sha256_is_hex(hex, strlen(hex)));
    EXPECT(!sha256_is_hex(hex, strlen(hex) - 1));
    EXPECT(!sha256_is_hex("", 0));
    static const char others[] = {'A', 'g', '/', ' ', '\0'};
    for (size_t at = 0; at < SHA256_HEX_BYTES - 1; at++) {
        for (size_t i = 0; i < sizeof others; i++) {
            const char kept = hex[at];
            hex[at] = others[i];
            EXPECT(!sha256_is_hex(hex, SHA256_HEX_BYTES - 1));
            hex[at] = kept;
        }
    }
}

int main(void)
{
    return TEST_RUN(TEST(standard_examples_hold), TEST(a_million_a_hold), TEST(cuts_do_not_matter),
                    TEST(instruction_sets_agree), TEST(constant_messages_agree),
                    TEST(different_messages_differ), TEST(digits_are_told_from_other_texts));
}
