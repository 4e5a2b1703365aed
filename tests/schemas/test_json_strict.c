/*
 * Strict JSON reading. Method: texts at and just beyond each bound; files that are not files.
 */
#include "schemas/json_read.h"
#include "schemas/limits.h"
#include "tests/harness.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* Repeats `part` into a new text between `head` and `tail`. */
static char *repeat(const char *head, const char *part, size_t count, const char *tail)
{
    size_t bytes = strlen(head) + count * strlen(part) + strlen(tail) + 1;
    char *text = malloc(bytes);
    EXPECT(text != NULL);
    char *at = stpcpy(text, head);
    for (size_t i = 0; i < count; i++) {
        at = stpcpy(at, part);
    }
    strcpy(at, tail);
    return text;
}

static enum status read_and_drop(const char *text, struct error *error)
{
    json_t *root = NULL;
    enum status status = json_read_text("text", text, strlen(text), &root, error);
    EXPECT((status == STATUS_OK) == (root != NULL));
    json_decref(root);
    return status;
}

/* Goal: what is not strict JSON is refused with a line. */
static void bad_texts_are_refused(void)
{
    static const char *const texts[] = {
        "",
        "{",
        "{\"a\":1,\"a\":2}",
        "[1,]",
        "nan",
        "[NaN]",
        "[1e999]",
        "{\"a\":1} x",
        "[\"\xff\"]",
        "[\"\\u0000\"]",
        "[Infinity]",
        "[01]",
        "[99999999999999999999]",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct error error = {0};
        EXPECT_INT(read_and_drop(texts[i], &error), STATUS_BAD_INPUT);
        EXPECT_CONTAINS(error.text, "text: line ");
    }
}

/* Goal: nesting and the number of containers are bounded exactly at the published limits. */
static void structure_is_bounded(void)
{
    struct error error = {0};
    char deep[2 * LIMIT_JSON_DEPTH + 3];
    for (int depth = LIMIT_JSON_DEPTH; depth <= LIMIT_JSON_DEPTH + 1; depth++) {
        memset(deep, '[', (size_t)depth);
        memset(deep + depth, ']', (size_t)depth);
        deep[2 * depth] = '\0';
        EXPECT_INT(read_and_drop(deep, &error),
                   depth == LIMIT_JSON_DEPTH ? STATUS_OK : STATUS_LIMIT);
    }
    EXPECT_CONTAINS(error.text, "32 nested levels");
    char *wide = repeat("[", "[],", LIMIT_JSON_CONTAINERS, "1]");
    EXPECT_INT(read_and_drop(wide, &error), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, "1048576 objects and arrays");
    free(wide);
    EXPECT_INT(read_and_drop("[\"[[[[ \\\" [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"]", &error),
               STATUS_OK);
}

/* Goal: a file too large is refused before it is read, and what is no regular file is refused
 * without waiting for it. Method: a sparse file of 100 MB, a pipe that nobody writes, a directory.
 */
static void odd_files_are_refused(void)
{
    char directory[] = "/tmp/swerve-json-XXXXXX";
    char path[64];
    struct error error = {0};
    json_t *root = NULL;
    EXPECT(mkdtemp(directory) != NULL);
    snprintf(path, sizeof path, "%s/big.json", directory);
    int file = open(path, O_CREAT | O_WRONLY, 0600);
    EXPECT(file >= 0 && ftruncate(file, 100 << 20) == 0);
    close(file);
    EXPECT_INT(json_read_file(path, LIMIT_DOCUMENT_BYTES, &root, &error), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, "big.json: expected at most 16777216 bytes, found 104857600");
    unlink(path);
    EXPECT_INT(mkfifo(path, 0600), 0);
    EXPECT_INT(json_read_file(path, LIMIT_DOCUMENT_BYTES, &root, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "expected a regular file");
    unlink(path);
    EXPECT_INT(json_read_file(path, LIMIT_DOCUMENT_BYTES, &root, &error), STATUS_NOT_FOUND);
    EXPECT_INT(json_read_file(directory, LIMIT_DOCUMENT_BYTES, &root, &error), STATUS_BAD_INPUT);
    rmdir(directory);
    EXPECT(root == NULL);
}

/* Goal: canonical text depends on values alone. */
static void canonical_text_is_canonical(void)
{
    json_t *a = json_pack("{s:i,s:f,s:[s,b]}", "b", 1, "a", 0.1, "c", "x", 1);
    json_t *b = json_pack("{s:[s,b],s:f,s:i}", "c", "x", 1, "a", 0.1, "b", 1);
    char *first = json_canonical_text(a);
    char *second = json_canonical_text(b);
    EXPECT_TEXT(first, "{\"a\":0.10000000000000001,\"b\":1,\"c\":[\"x\",true]}");
    EXPECT_TEXT(second, first);
    free(first);
    free(second);
    json_decref(a);
    json_decref(b);
}

int main(void)
{
    return TEST_RUN(TEST(bad_texts_are_refused), TEST(structure_is_bounded),
                    TEST(odd_files_are_refused), TEST(canonical_text_is_canonical));
}
