/*
 * Places of errors in JSON texts.
 *
 * Goal: the line and column of an error are those of the value that its path names, however the
 * text is laid out, and nothing is read beyond a text of any kind. Method: random documents whose
 * leaves and keys are all different, with random white space, written while the places of all
 * values are noted; and such texts cut anywhere.
 */
#include "base/check.h"
#include "base/rng.h"
#include "scenarios/json_place.h"
#include "tests/harness.h"

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

enum { DOCUMENTS = 300, VALUES_MAX = 4000, TEXT_BYTES = 1 << 16 };

struct noted {
    char path[200];
    size_t offset;
};

static struct {
    char text[TEXT_BYTES];
    size_t used;
    struct noted values[VALUES_MAX];
    size_t count;
    uint64_t draws;
} doc;

static uint32_t draw(uint32_t below)
{
    return (uint32_t)(rng_mix(doc.draws++) % below);
}

static void put(const char *text)
{
    size_t bytes = strlen(text);
    CHECK(doc.used + bytes < TEXT_BYTES);
    memcpy(doc.text + doc.used, text, bytes + 1);
    doc.used += bytes;
}

static void put_white(void)
{
    static const char *const whites[] = {"", "", " ", "\n", "\t ", "\r\n"};
    put(whites[draw(6)]);
}

static void put_value(const char *path, int depth)
{
    static const char *const words[] = {"true",         "null",     "-1.5e3",  "\"\"",
                                        "\"a\\\"b]}\"", "\"\\\\\"", "\"{[,\"", "\"\xc3\xa9:\""};
    CHECK(doc.count < VALUES_MAX);
    struct noted *noted = &doc.values[doc.count++];
    snprintf(noted->path, sizeof noted->path, "%s", path);
    put_white();
    noted->offset = doc.used;
    uint32_t kind = depth == 0 ? 1 + draw(2) : depth < 5 ? draw(3) : 0;
    uint32_t count = draw(5);
    if (kind == 0) {
        put(words[draw(8)]);
        put_white();
        return;
    }
    put(kind == 1 ? "[" : "{");
    for (uint32_t i = 0; i < count; i++) {
        char child[200];
        char key[32] = "";
        put(i > 0 ? "," : "");
        if (kind == 1) {
            snprintf(child, sizeof child, "%.150s[%u]", path, i);
        } else {
            /* One key may begin another. */
            snprintf(key, sizeof key, "%.*s_%u", (int)(1 + i), "kkkkkk", i);
            snprintf(child, sizeof child, "%.150s.%s", path, key);
            put_white();
            put("\"");
            put(key);
            put("\"");
            put_white();
            put(":");
        }
        put_value(child, depth + 1);
    }
    put_white();
    put(kind == 1 ? "]" : "}");
    put_white();
}

static void fill(uint64_t seed)
{
    doc.used = 0;
    doc.count = 0;
    doc.draws = seed << 32;
    put_value("$", 0);
}

static void every_value_is_found(void)
{
    for (uint64_t seed = 1; seed <= DOCUMENTS; seed++) {
        fill(seed);
        for (size_t i = 0; i < doc.count; i++) {
            const struct noted *noted = &doc.values[i];
            size_t offset = json_place_offset(doc.text, doc.used, noted->path, NULL, 0);
            if (offset != noted->offset) {
                TEST_FAIL("%s: expected %zu, found %zu in %s", noted->path, noted->offset, offset,
                          doc.text);
            }
            /* A member that is not there: the value that it would be in. */
            char missing[240];
            snprintf(missing, sizeof missing, "%s.none[3]", noted->path);
            EXPECT_INT(json_place_offset(doc.text, doc.used, missing, NULL, 0), noted->offset);
        }
    }
}

/* Copies of exactly the bytes that there are, so that sanitizers see a step too far. */
static void cut_texts_end_the_walk(void)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        fill(seed);
        for (size_t bytes = 0; bytes < doc.used; bytes += 1 + doc.used / 50) {
            char *cut = malloc(bytes + 1);
            CHECK(cut != NULL);
            memcpy(cut, doc.text, bytes);
            for (size_t i = 0; i < doc.count; i += 1 + doc.count / 20) {
                EXPECT(json_place_offset(cut, bytes, doc.values[i].path, "k_0", 3) <= bytes);
            }
            free(cut);
        }
    }
    static const char odd[] = {'[', '\0', '\0', ',', '"', '\\'};
    EXPECT(json_place_offset(odd, sizeof odd, "$[999999999999]", NULL, 0) <= sizeof odd);
}

static void errors_have_lines_and_columns(void)
{
    static const char text[] = "{\n  \"\xc3\xa9\": 1, \"list\": [1,\n    {\"name\": \"x\"}]\n}\n";
    char path[] = "/tmp/swerve-place-XXXXXX";
    char error[256];
    struct json_place place;
    int fd = mkstemp(path);
    EXPECT(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
    snprintf(error, sizeof error,
             "s.json: $.scenarios[0]: with a=2: %s: $.list[1].name: expected 2", path);
    EXPECT(json_place_find(error, &place));
    EXPECT_TEXT(place.file, path);
    EXPECT_TEXT(place.path, "$.list[1].name");
    EXPECT_INT(place.line, 3);
    EXPECT_INT(place.column, 14);
    snprintf(error, sizeof error, "%s: $: unknown member \"list\"; legal are \"a\"", path);
    EXPECT(json_place_find(error, &place));
    EXPECT_INT(place.line, 2);
    EXPECT_INT(place.column, 11); /* e with an accent is one character */
    snprintf(error, sizeof error, "a: %s: line 7, column 12: expected JSON, found: x", path);
    EXPECT(json_place_find(error, &place));
    EXPECT_TEXT(place.file, path);
    EXPECT_TEXT(place.path, "");
    EXPECT(place.line == 7 && place.column == 12);
    EXPECT_INT(unlink(path), 0);
    EXPECT(!json_place_find("nowhere.json: $.list: expected 2", &place));
    EXPECT(!json_place_find("out of memory", &place));
}

int main(void)
{
    return TEST_RUN(TEST(every_value_is_found), TEST(cut_texts_end_the_walk),
                    TEST(errors_have_lines_and_columns));
}
