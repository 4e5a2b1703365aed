/*
 * Goal: a safetensors file is either understood exactly or refused with a sentence that names the
 * file, the tensor, what was expected and what was found; no bytes crash the reader.
 * Method: files built from a header text and a number of data bytes: good ones read back, one
 * planted fault each in a table, every cut of a good file, and random damage whose survivors must
 * still tile their data.
 */
#include "base/rng.h"
#include "base/scan.h"
#include "engine/learned/safetensors.h"
#include "tests/harness.h"

#include <stdlib.h>
#include <unistd.h>

enum { FILE_BYTES_MAX = 16384 };

/* 8-byte aligned image of a file. */
static uint64_t image_words[FILE_BYTES_MAX / 8];
static uint8_t *const image = (uint8_t *)image_words;

static size_t build(const char *header, size_t header_bytes, size_t data_bytes)
{
    for (int i = 0; i < 8; i++) {
        image[i] = (uint8_t)(header_bytes >> (8 * i));
    }
    memcpy(image + 8, header, header_bytes);
    for (size_t i = 0; i < data_bytes; i++) {
        image[8 + header_bytes + i] = (uint8_t)(i * 7 + 1);
    }
    return 8 + header_bytes + data_bytes;
}

/* Pads with blanks so that the data are 8-byte aligned, as writers do. */
static size_t build_padded(const char *header, size_t data_bytes)
{
    static char padded[FILE_BYTES_MAX];
    size_t length = strlen(header);
    memcpy(padded, header, length);
    while (length % 8 != 0) {
        padded[length++] = ' ';
    }
    return build(padded, length, data_bytes);
}

static const char *const good =
    "{\"__metadata__\":{\"format\":\"x\\u0041\\n\\\"\\u20ac\\ud83d\\ude97\",\"note\":\"\"},"
    "\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
    "\"a.weight\" : { \"shape\":[ 4 ], \"data_offsets\":[24,32], \"dtype\":\"BF16\" },"
    "\"none\":{\"dtype\":\"U8\",\"shape\":[0,5],\"data_offsets\":[32,32]},"
    "\"one\":{\"dtype\":\"I32\",\"shape\":[],\"data_offsets\":[32,36]}}";

static void check_good(const struct safetensors *file, const uint8_t *data)
{
    EXPECT_INT(safetensors_count(file), 4);
    EXPECT_TEXT(safetensors_at(file, 0)->name, "a.weight");
    EXPECT_TEXT(safetensors_at(file, 3)->name, "one");
    EXPECT(safetensors_at(file, 4) == NULL);
    const struct safetensors_tensor *b = safetensors_find(file, "b");
    EXPECT(b != NULL && b->dtype == SAFETENSORS_F32);
    EXPECT_INT(b->rank, 2);
    EXPECT_INT(b->shape[0], 2);
    EXPECT_INT(b->shape[1], 3);
    EXPECT_INT(b->count, 6);
    EXPECT_INT(b->bytes, 24);
    EXPECT(memcmp(b->data, data, 24) == 0);
    EXPECT_INT(safetensors_find(file, "one")->count, 1);
    EXPECT_INT(safetensors_find(file, "one")->rank, 0);
    EXPECT_INT(safetensors_find(file, "none")->count, 0);
    EXPECT(safetensors_find(file, "c") == NULL);
    EXPECT_TEXT(safetensors_metadata(file, "format"), "xA\n\"\xe2\x82\xac\xf0\x9f\x9a\x97");
    EXPECT_TEXT(safetensors_metadata(file, "note"), "");
    EXPECT(safetensors_metadata(file, "b") == NULL);
}

static void a_good_file_reads_back(void)
{
    struct safetensors *file = NULL;
    struct error error = {0};
    size_t bytes = build_padded(good, 36);
    EXPECT_OK(safetensors_parse("good", image, bytes, &file, &error), error);
    check_good(file, image + bytes - 36);
    safetensors_close(file);
    bytes = build_padded("{}", 0);
    EXPECT_OK(safetensors_parse("empty", image, bytes, &file, &error), error);
    EXPECT_INT(safetensors_count(file), 0);
    EXPECT(safetensors_find(file, "a") == NULL);
    safetensors_close(file);
    safetensors_close(NULL);
}

static void files_open_mapped_and_copied(void)
{
    char path[] = "/tmp/swerve_safetensors_XXXXXX";
    struct safetensors *file = NULL;
    struct error error = {0};
    int fd = mkstemp(path);
    EXPECT(fd >= 0);
    size_t bytes = build_padded(good, 36);
    EXPECT_INT(write(fd, image, bytes), (long long)bytes);
    for (int mode = SAFETENSORS_MAP; mode <= SAFETENSORS_COPY; mode++) {
        EXPECT_OK(safetensors_open(path, (enum safetensors_mode)mode, &file, &error), error);
        size_t found = 0;
        const uint8_t *data = safetensors_bytes(file, &found);
        EXPECT_INT(found, bytes);
        if (mode == SAFETENSORS_COPY) {
            EXPECT_INT(ftruncate(fd, 0), 0); /* it is ours now */
        }
        check_good(file, data + bytes - 36);
        safetensors_close(file);
    }
    EXPECT_INT(safetensors_open(path, SAFETENSORS_MAP, &file, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, path);
    close(fd);
    unlink(path);
    EXPECT_INT(safetensors_open(path, SAFETENSORS_MAP, &file, &error), STATUS_NOT_FOUND);
    EXPECT_CONTAINS(error.text, path);
    EXPECT_INT(safetensors_open("/tmp", SAFETENSORS_COPY, &file, &error), STATUS_BAD_INPUT);
}

#define TENSOR(name, dtype, shape, offsets) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static const struct {
    const char *header;
    size_t data_bytes;
    enum status status;
    const char *says;
} faults[] = {
    {"{" TENSOR("a", "F32", "[1]", "[0,4]") "}", 5, STATUS_BAD_INPUT, "1 bytes more"},
    {"{" TENSOR("a", "F32", "[2]", "[0,8]") "}", 4, STATUS_BAD_INPUT, "within the 4 bytes"},
    {"{" TENSOR("a", "F32", "[2]", "[0,4]") "}", 4, STATUS_BAD_INPUT, "expected 8 bytes"},
    {"{" TENSOR("a", "F32", "[1]", "[4,0]") "}", 4, STATUS_BAD_INPUT, "bytes 4 to 0"},
    {"{" TENSOR("a", "F32", "[1]", "[0,4]") "," TENSOR("b", "F32", "[1]", "[0,4]") "}", 4,
     STATUS_BAD_INPUT, "overlap"},
    {"{" TENSOR("a", "F32", "[1]", "[0,4]") "," TENSOR("b", "U8", "[4]", "[2,6]") "}", 6,
     STATUS_BAD_INPUT, "overlap"},
    {"{" TENSOR("a", "F32", "[1]", "[0,4]") "," TENSOR("b", "F32", "[1]", "[8,12]") "}", 12,
     STATUS_BAD_INPUT, "hole"},
    {"{" TENSOR("a", "U8", "[1]", "[1,2]") "}", 2, STATUS_BAD_INPUT, "hole"},
    {"{" TENSOR("a", "U8", "[2]", "[0,2]") "," TENSOR("b", "F32", "[1]", "[2,6]") "}", 6,
     STATUS_BAD_INPUT, "multiple of 4"},
    {"{" TENSOR("a", "U8", "[2]", "[0,2]") "," TENSOR("a", "U8", "[1]", "[2,3]") "}", 3,
     STATUS_BAD_INPUT, "\"a\" twice"},
    {"{" TENSOR("a", "F64", "[1]", "[0,8]") "}", 8, STATUS_BAD_INPUT, "found \"F64\""},
    {"{" TENSOR("a", "f32", "[1]", "[0,4]") "}", 4, STATUS_BAD_INPUT, "found \"f32\""},
    {"{" TENSOR("a", "F32", "[-1]", "[0,4]") "}", 4, STATUS_BAD_INPUT, "found '-'"},
    {"{" TENSOR("a", "F32", "[1.0]", "[0,4]") "}", 4, STATUS_BAD_INPUT, "found '.'"},
    {"{" TENSOR("a", "F32", "[01]", "[0,4]") "}", 4, STATUS_BAD_INPUT, "leading zero"},
    {"{" TENSOR("a", "F32", "[99999999999999999999]", "[0,4]") "}", 4, STATUS_LIMIT, "2^63"},
    {"{" TENSOR("a", "F32", "[4294967296,4294967296]", "[0,4]") "}", 4, STATUS_LIMIT, "elements"},
    {"{" TENSOR("a", "U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1, STATUS_LIMIT, "8 dimensions"},
    {"{" TENSOR("a", "F32", "[1]", "[0]") "}", 4, STATUS_BAD_INPUT, "expected ','"},
    {"{" TENSOR("a", "F32", "[1]", "[0,4,8]") "}", 4, STATUS_BAD_INPUT, "expected ']'"},
    {"{" TENSOR("a", "F32", "[1,]", "[0,4]") "}", 4, STATUS_BAD_INPUT, "an integer"},
    {"{" TENSOR("a", "F32", "[1]", "[0,4]") ",}", 4, STATUS_BAD_INPUT, "a string"},
    {"{" TENSOR("a", "F32", "[1]", "[0,4]") "}}", 4, STATUS_BAD_INPUT, "nothing more"},
    {"{" TENSOR("", "F32", "[1]", "[0,4]") "}", 4, STATUS_BAD_INPUT, "tensor name"},
    {"{" TENSOR("a\\n", "F32", "[1]", "[0,4]") "}", 4, STATUS_BAD_INPUT, "tensor name"},
    {"{" TENSOR("\xc3\xa4", "F32", "[1]", "[0,4]") "}", 4, STATUS_BAD_INPUT, "tensor name"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0]}}", 0, STATUS_BAD_INPUT, "\"data_offsets\""},
    {"{\"a\":{\"shape\":[0],\"data_offsets\":[0,0]}}", 0, STATUS_BAD_INPUT, "expected \"dtype\""},
    {"{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,0]}}", 0, STATUS_BAD_INPUT, "\"shape\""},
    {"{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 0, STATUS_BAD_INPUT, "\"dtype\" twice"},
    {"{\"a\":{\"more\":1}}", 0, STATUS_BAD_INPUT, "found \"more\""},
    {"{\"a\":[]}", 0, STATUS_BAD_INPUT, "expected '{'"},
    {"{\"a\":null}", 0, STATUS_BAD_INPUT, "expected '{'"},
    {"{\"__metadata__\":{\"a\":1}}", 0, STATUS_BAD_INPUT, "a string"},
    {"{\"__metadata__\":{\"a\":\"1\",\"a\":\"2\"}}", 0, STATUS_BAD_INPUT, "\"a\" twice"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, STATUS_BAD_INPUT, "__metadata__ once"},
    {"{\"__metadata__\":{\"a\":\"\\u0000\"}}", 0, STATUS_BAD_INPUT, "u0000"},
    {"{\"__metadata__\":{\"a\":\"\\ud800\"}}", 0, STATUS_BAD_INPUT, "surrogate"},
    {"{\"__metadata__\":{\"a\":\"\\ud800\\u0041\"}}", 0, STATUS_BAD_INPUT, "surrogate"},
    {"{\"__metadata__\":{\"a\":\"\\udc00\"}}", 0, STATUS_BAD_INPUT, "udc00"},
    {"{\"__metadata__\":{\"a\":\"\\u12g4\"}}", 0, STATUS_BAD_INPUT, "hexadecimal"},
    {"{\"__metadata__\":{\"a\":\"\\x\"}}", 0, STATUS_BAD_INPUT, "an escape"},
    {"{\"__metadata__\":{\"a\":\"\xc0\xaf\"}}", 0, STATUS_BAD_INPUT, "UTF-8"},
    {"{\"__metadata__\":{\"a\":\"\xed\xa0\x80\"}}", 0, STATUS_BAD_INPUT, "UTF-8"},
    {"{\"__metadata__\":{\"a\":\"\xf4\x90\x80\x80\"}}", 0, STATUS_BAD_INPUT, "UTF-8"},
    {"{\"__metadata__\":{\"a\":\"\t\"}}", 0, STATUS_BAD_INPUT, "UTF-8"},
    {"{\"__metadata__\":{\"a\":\"b", 0, STATUS_BAD_INPUT, "found the end"},
    {" {}", 0, STATUS_BAD_INPUT, "begins with '{'"},
    {"[]", 0, STATUS_BAD_INPUT, "begins with '{'"},
};

static void each_fault_is_named(void)
{
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        struct safetensors *file = NULL;
        struct error error = {0};
        size_t bytes = build_padded(faults[i].header, faults[i].data_bytes);
        enum status status = safetensors_parse("some/file", image, bytes, &file, &error);
        if (status != faults[i].status || strstr(error.text, faults[i].says) == NULL ||
            strncmp(error.text, "some/file: ", 11) != 0 || file != NULL) {
            TEST_FAIL("fault %zu: expected \"%s\", found status %d, \"%s\"", i, faults[i].says,
                      (int)status, error.text);
        }
    }
}

static void lengths_are_not_believed(void)
{
    struct safetensors *file = NULL;
    struct error error = {0};
    size_t bytes = build_padded(good, 36);
    static const uint64_t lengths[] = {UINT64_MAX, 1ull << 63, SAFETENSORS_HEADER_BYTES_MAX + 1,
                                       FILE_BYTES_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        memcpy(image, &lengths[i], 8);
        EXPECT_INT(safetensors_parse("f", image, bytes, &file, &error), STATUS_BAD_INPUT);
        EXPECT_CONTAINS(error.text, "a length of");
    }
    for (size_t cut = 0; cut < bytes; cut++) {
        build_padded(good, 36);
        /* A copy of exactly that size, so that a sanitizer sees a read beyond it. */
        uint8_t *copy = malloc(cut + 1);
        memcpy(copy, image, cut);
        enum status status = safetensors_parse("f", copy, cut, &file, &error);
        free(copy);
        EXPECT_INT(status, STATUS_BAD_INPUT);
    }
}

/* Whatever survives damage still describes its bytes completely. */
static void damage_never_gets_through(void)
{
    uint64_t state = 11;
    uint32_t survivors = 0;
    for (int round = 0; round < 20000; round++) {
        struct safetensors *file = NULL;
        struct error error = {0};
        size_t bytes = build_padded(good, 36);
        for (int i = 0; i <= round % 3; i++) {
            state = rng_mix(state);
            image[state % (bytes - 36)] = (uint8_t)(state >> 40);
        }
        if (safetensors_parse("f", image, bytes, &file, &error) != STATUS_OK) {
            EXPECT(error.text[0] != 0);
            continue;
        }
        size_t total = 0;
        for (size_t i = 0; i < safetensors_count(file); i++) {
            const struct safetensors_tensor *t = safetensors_at(file, i);
            EXPECT((const uint8_t *)t->data >= image + 8);
            EXPECT((const uint8_t *)t->data + t->bytes <= image + bytes);
            total += t->bytes;
        }
        EXPECT_INT(total, 36);
        survivors++;
        safetensors_close(file);
    }
    EXPECT(survivors > 100); /* blanks and metadata: the damage is not always fatal */
}

/* ---- the scanner's numbers ---- */

static void numbers_follow_the_grammar(void)
{
    static const struct {
        const char *text;
        double value;
    } right[] = {{"0", 0.0},     {"-0.5", -0.5}, {"12.25e1", 122.5},
                 {"1E-2", 0.01}, {" 7 ", 7.0},   {"1e+2", 100.0}};
    static const char *const wrong[] = {"",   "-",   "01",  "1.",  ".5",  "1e",
                                        "+1", "0x1", "nan", "inf", "1 2", "1e+"};
    struct error error = {0};
    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        struct scan scan = scan_begin("f", "text", right[i].text, strlen(right[i].text), &error);
        double value = 0.0;
        EXPECT(scan_number(&scan, &value) && scan_end(&scan));
        EXPECT_NEAR(value, right[i].value, 1e-15);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct scan scan = scan_begin("f", "text", wrong[i], strlen(wrong[i]), &error);
        double value = 0.0;
        if (scan_number(&scan, &value) && scan_end(&scan)) {
            TEST_FAIL("\"%s\" was taken as a number", wrong[i]);
        }
        EXPECT(!scan_expect(&scan, 'x')); /* once failed, always failed */
    }
}

int main(void)
{
    return TEST_RUN(TEST(a_good_file_reads_back), TEST(files_open_mapped_and_copied),
                    TEST(each_fault_is_named), TEST(lengths_are_not_believed),
                    TEST(damage_never_gets_through), TEST(numbers_follow_the_grammar));
}
