/*
 * SHA-256: the examples of FIPS 180-4 (NIST CAVP short and long messages), and the property that
 * the digest does not depend on how a message is cut into updates.
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

static void standard_examples_hold(void)
{
    for (size_t i = 0; i < COUNT_OF(answers); i++) {
        char hex[SHA256_HEX_BYTES];
        sha256_hex(answers[i].message, strlen(answers[i].message), hex);
        EXPECT_TEXT(hex, answers[i].hex);
    }
}

static void a_million_a_hold(void)
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_HEX_BYTES];
    char chunk[1000];
    memset(chunk, 'a', sizeof chunk);
    sha256_init(&hash);
    for (int i = 0; i < 1000; i++) {
        sha256_update(&hash, chunk, sizeof chunk);
    }
    sha256_final(&hash, digest);
    sha256_to_hex(digest, hex);
    EXPECT_TEXT(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
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

int main(void)
{
    return TEST_RUN(TEST(standard_examples_hold), TEST(a_million_a_hold), TEST(cuts_do_not_matter),
                    TEST(different_messages_differ));
}
