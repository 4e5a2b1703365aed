/*
 * Strict JSON reading: every kind of wrong document gets its status and a sentence with file, path,
 * what was expected and what was found; out-parameters stay untouched on failure. Truncations of a
 * valid document never crash and never parse. Method: texts at and just beyond each bound; files
 * that are not files.
 */
#include "base/check.h"
#include "schemas/json_read.h"
#include "schemas/limits.h"
#include "tests/harness.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char valid[] = "{\"map\": {\"lanes\": [{\"id\": \"a\", \"width_m\": 3.5}, "
                            "{\"id\": \"b\\n\\u00e9\", \"width_m\": [3, 3.25]}]}, "
                            "\"seeds\": 12, \"on\": true, \"kind\": \"bus\", \"none\": null}";

static json_t *parse(const char *text)
{
    json_t *root = NULL;
    struct error error;
    EXPECT_OK(json_read_text("doc.json", text, strlen(text), &root, &error), error);
    return root;
}

static enum status parse_status(const char *text, size_t bytes, struct error *error)
{
    json_t *root = NULL;
    enum status status = json_read_text("doc.json", text, bytes, &root, error);
    EXPECT(status == STATUS_OK ? root != NULL : root == NULL);
    json_decref(root);
    return status;
}

static void broken_text_is_refused_with_its_place(void)
{
    struct error error;
    static const char *const broken[] = {
        "",
        "{",
        "[1, 2",
        "{\"a\": 1} x",
        "{\"a\": 1, \"a\": 2}",
        "nan",
        "[NaN]",
        "{\"a\": NaN}",
        "[1e999]",
        "{\"a\": 1e999}",
        "[Infinity]",
        "{\"a\": Infinity}",
        "[01]",
        "{\"a\": 01}",
        "[99999999999999999999]",
        "{'a': 1}",
        "[1,]",
        "\"\xff\xfe\"",
        "[\"\xff\"]",
        "\"\\ud800\"",
        "\"a\\u0000b\"",
        "[\"\\u0000\"]",
        "// comment\n{}",
    };
    for (size_t i = 0; i < COUNT_OF(broken); i++) {
        EXPECT_INT(parse_status(broken[i], strlen(broken[i]), &error), STATUS_BAD_INPUT);
        EXPECT_CONTAINS(error.text, "doc.json: line ");
    }
    EXPECT_INT(parse_status("{\"a\": 1,\n\n  oops}", 17, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "line 3");
}

static void truncations_never_parse(void)
{
    struct error error;
    for (size_t bytes = 0; bytes < strlen(valid); bytes++) {
        /* An exact-size copy, so that a sanitizer sees any read past the end. */
        char *copy = malloc(bytes + 1);
        EXPECT(copy != NULL);
        memcpy(copy, valid, bytes);
        char *exact = realloc(copy, bytes > 0 ? bytes : 1);
        enum status status = parse_status(exact, bytes, &error);
        free(exact);
        EXPECT_INT(status, STATUS_BAD_INPUT);
    }
    EXPECT_INT(parse_status(valid, strlen(valid), &error), STATUS_OK);
}

/* Nesting is bounded exactly at the published limit. */
static void depth_is_limited(void)
{
    struct error error;
    char text[400];
    for (int depth = LIMIT_JSON_DEPTH; depth <= LIMIT_JSON_DEPTH + 1; depth++) {
        memset(text, '[', (size_t)depth);
        memset(text + depth, ']', (size_t)depth);
        EXPECT_INT(parse_status(text, 2 * (size_t)depth, &error),
                   depth <= LIMIT_JSON_DEPTH ? STATUS_OK : STATUS_LIMIT);
    }
    EXPECT_CONTAINS(error.text, "32 nested levels");
    /* Brackets inside texts do not count. */
    memset(text, '[', 200);
    text[0] = '"';
    text[199] = '"';
    EXPECT_INT(parse_status(text, 200, &error), STATUS_OK);
    static const char quoted[] = "[\"[[[[ \\\" [[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\"]";
    EXPECT_INT(parse_status(quoted, strlen(quoted), &error), STATUS_OK);
}

/* So is the number of containers. */
static void containers_are_limited(void)
{
    static const char element[] = "[],";
    struct error error;
    char *text = malloc(strlen(element) * LIMIT_JSON_CONTAINERS + sizeof "[1]");
    EXPECT(text != NULL);
    char *at = stpcpy(text, "[");
    for (size_t i = 0; i < LIMIT_JSON_CONTAINERS; i++) {
        at = stpcpy(at, element);
    }
    at = stpcpy(at, "1]");
    EXPECT_INT(parse_status(text, (size_t)(at - text), &error), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, "1048576 objects and arrays");
    free(text);
}

static void numbers_have_bounds_and_paths(void)
{
    struct error error;
    json_t *root = parse(valid);
    struct json_cursor top = json_cursor_root("doc.json", root);
    struct json_cursor map = json_cursor_member(&top, "map");
    struct json_cursor lanes = json_cursor_member(&map, "lanes");
    struct json_cursor first = json_cursor_element(&lanes, 0);
    struct json_cursor second = json_cursor_element(&lanes, 1);
    double width_m = -1;
    EXPECT_OK(json_member_number(&first, "width_m", true, 3.5, 3.5, &width_m, &error), error);
    EXPECT_NEAR(width_m, 3.5, 0);
    width_m = -1;
    EXPECT_INT(json_member_number(&first, "width_m", true, 0, 3, &width_m, &error),
               STATUS_BAD_INPUT);
    EXPECT_TEXT(error.text,
                "doc.json: $.map.lanes[0].width_m: expected a number from 0 to 3, found 3.5");
    EXPECT_INT(json_member_number(&second, "width_m", true, 0, 9, &width_m, &error),
               STATUS_BAD_INPUT);
    EXPECT_TEXT(error.text, "doc.json: $.map.lanes[1].width_m: expected a number, found an array");
    EXPECT_INT(json_member_number(&second, "speed", true, 0, 9, &width_m, &error),
               STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "$.map.lanes[1].speed: expected a number, found nothing");
    EXPECT_NEAR(width_m, -1, 0); /* untouched by all three failures */
    EXPECT_OK(json_member_number(&second, "speed", false, 0, 9, &width_m, &error), error);
    EXPECT_NEAR(width_m, -1, 0); /* absent and optional: the default stands */
    json_decref(root);
}

static void integers_do_not_take_fractions(void)
{
    struct error error;
    json_t *root = parse("{\"i\": 12, \"f\": 12.0, \"t\": \"12\", \"big\": 9223372036854775807}");
    struct json_cursor top = json_cursor_root("doc.json", root);
    int64_t value = 5;
    EXPECT_OK(json_member_integer(&top, "i", true, 12, 12, &value, &error), error);
    EXPECT_INT(value, 12);
    EXPECT_INT(json_member_integer(&top, "f", true, 0, 99, &value, &error), STATUS_BAD_INPUT);
    EXPECT_INT(json_member_integer(&top, "t", true, 0, 99, &value, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "$.t: expected an integer, found text \"");
    EXPECT_INT(json_member_integer(&top, "i", true, 13, 99, &value, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "expected an integer from 13 to 99, found 12");
    EXPECT_OK(json_member_integer(&top, "big", true, 0, INT64_MAX, &value, &error), error);
    EXPECT(value == INT64_MAX);
    json_decref(root);
}

static void bools_texts_and_choices_are_strict(void)
{
    static const char *const kinds[] = {"car", "bus"};
    struct error error;
    json_t *root = parse("{\"on\": true, \"one\": 1, \"kind\": \"bus\", \"odd\": \"tram\", "
                         "\"long\": \"12345678\"}");
    struct json_cursor top = json_cursor_root("doc.json", root);
    bool on = false;
    int choice = -1;
    char text[8] = "kept";
    EXPECT_OK(json_member_bool(&top, "on", true, &on, &error), error);
    EXPECT(on);
    EXPECT_INT(json_member_bool(&top, "one", true, &on, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "expected true or false, found an integer");
    EXPECT_OK(json_member_choice(&top, "kind", true, kinds, 2, &choice, &error), error);
    EXPECT_INT(choice, 1);
    EXPECT_INT(json_member_choice(&top, "odd", true, kinds, 2, &choice, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "$.odd: expected one of \"car\", \"bus\", found \"tram\"");
    EXPECT_INT(choice, 1);
    EXPECT_INT(json_member_text(&top, "long", true, text, sizeof text, &error), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, "at most 7 bytes of text, found 8");
    EXPECT_TEXT(text, "kept");
    EXPECT_OK(json_member_text(&top, "kind", true, text, sizeof text, &error), error);
    EXPECT_TEXT(text, "bus");
    json_decref(root);
}

static void unknown_members_and_array_counts_are_errors(void)
{
    static const char *const keys[] = {"map", "seeds", "on", "kind", NULL};
    struct error error;
    json_t *root = parse(valid);
    struct json_cursor top = json_cursor_root("doc.json", root);
    EXPECT_INT(json_object_begin(&top, keys, &error), STATUS_BAD_INPUT);
    EXPECT_TEXT(error.text, "doc.json: $: unknown member \"none\"; legal are \"map\", \"seeds\", "
                            "\"on\", \"kind\"");
    static const char *const near[] = {"map", "nones", "on", "kind", "seeds", NULL};
    EXPECT_INT(json_object_begin(&top, near, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "did you mean \"nones\"?");
    struct json_cursor map = json_cursor_member(&top, "map");
    struct json_cursor lanes = json_cursor_member(&map, "lanes");
    struct json_cursor seeds = json_cursor_member(&top, "seeds");
    size_t count = 77;
    EXPECT_INT(json_object_begin(&lanes, keys, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "expected an object, found an array");
    EXPECT_INT(json_array_begin(&seeds, 0, 9, &count, &error), STATUS_BAD_INPUT);
    EXPECT_INT(json_array_begin(&lanes, 3, 9, &count, &error), STATUS_BAD_INPUT);
    EXPECT_INT(json_array_begin(&lanes, 0, 1, &count, &error), STATUS_LIMIT);
    EXPECT_INT(count, 77);
    EXPECT_OK(json_array_begin(&lanes, 2, 2, &count, &error), error);
    EXPECT_INT(count, 2);
    json_decref(root);
}

static void canonical_text_depends_on_the_value_alone(void)
{
    json_t *a = parse("{\"b\": [1, 0.1, \"x\"], \"a\": {\"y\": null, \"x\": true}}");
    json_t *b = parse(" { \"a\":{\"x\":true , \"y\":null},\n\"b\":[1,0.1000,\"\\u0078\"] } ");
    json_t *c = parse("{\"a\": {\"y\": null, \"x\": true}, \"b\": [0.1, 1, \"x\"]}");
    char *text_a = json_canonical_text(a);
    char *text_b = json_canonical_text(b);
    char *text_c = json_canonical_text(c);
    EXPECT(text_a != NULL && text_b != NULL && text_c != NULL);
    EXPECT_TEXT(text_a, text_b);
    EXPECT(strcmp(text_a, text_c) != 0);
    json_t *again = parse(text_a);
    EXPECT(json_equal(again, a));
    free(text_a);
    free(text_b);
    free(text_c);
    json_t *sorted = json_pack("{s:i,s:f,s:[s,b]}", "b", 1, "a", 0.1, "c", "x", 1);
    char *text = json_canonical_text(sorted);
    EXPECT_TEXT(text, "{\"a\":0.10000000000000001,\"b\":1,\"c\":[\"x\",true]}");
    free(text);
    json_decref(sorted);
    json_t *other = json_pack("{s:[s,b],s:f,s:i}", "c", "x", 1, "a", 0.1, "b", 1);
    text = json_canonical_text(other);
    EXPECT_TEXT(text, "{\"a\":0.10000000000000001,\"b\":1,\"c\":[\"x\",true]}");
    free(text);
    json_decref(other);
    json_decref(a);
    json_decref(b);
    json_decref(c);
    json_decref(again);
}

/* Text that is sent and shown has no digit too many, and is the same number for whoever reads it.
 */
static void shown_text_has_the_fewest_digits(void)
{
    const double numbers[] = {0.1,  0.05,    1.0 / 3, 0.30000000000000004, 1e22,
                              -0.0, 3.3e-06, 5e-324,  1234567890.12345,    1.7976931348623157e308};
    json_t *list = json_array();
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        json_array_append_new(list, json_real(numbers[i]));
    }
    json_t *value = json_pack("{s:o, s:I, s:s}", "list", list, "n", (json_int_t)1234567890123456789,
                              "t", "0.10000000000000001 \\\" 0.10000000000000001");
    char *text = json_compact_text(value);
    EXPECT_TEXT(
        text,
        "{\"list\":[0.1,0.05,0.3333333333333333,0.30000000000000004,1e22,-0.0,3.3e-06,"
        "4.94065645841247e-324,1234567890.12345,1.7976931348623157e308],\"n\":1234567890123456789,"
        "\"t\":\"0.10000000000000001 \\\\\\\" 0.10000000000000001\"}");
    json_t *again = parse(text);
    EXPECT(json_equal(again, value));
    free(text);
    json_decref(again);
    text = json_indented_text(value);
    again = parse(text);
    EXPECT(json_equal(again, value));
    free(text);
    json_decref(again);
    json_decref(value);
}

static void files_are_read_within_their_limit(void)
{
    char path[] = "/tmp/swerve_json_XXXXXX";
    struct error error;
    json_t *root = NULL;
    int fd = mkstemp(path);
    EXPECT(fd >= 0);
    EXPECT_INT(write(fd, valid, strlen(valid)), strlen(valid));
    close(fd);
    EXPECT_OK(json_read_file(path, strlen(valid), &root, &error), error);
    EXPECT_INT(json_object_size(root), 5);
    json_decref(root);
    root = NULL;
    EXPECT_INT(json_read_file(path, strlen(valid) - 1, &root, &error), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, path);
    unlink(path);
    EXPECT_INT(json_read_file(path, 100, &root, &error), STATUS_NOT_FOUND);
    EXPECT_INT(json_read_file("/tmp", 100, &root, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "expected a regular file");
    EXPECT(root == NULL);
}

/* A file too large is refused before it is read, and what is no regular file is refused without
 * waiting for it: a sparse file of 100 MB, a pipe that nobody writes, a directory. */
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

int main(void)
{
    return TEST_RUN(
        TEST(broken_text_is_refused_with_its_place), TEST(truncations_never_parse),
        TEST(depth_is_limited), TEST(containers_are_limited), TEST(numbers_have_bounds_and_paths),
        TEST(integers_do_not_take_fractions), TEST(bools_texts_and_choices_are_strict),
        TEST(unknown_members_and_array_counts_are_errors),
        TEST(canonical_text_depends_on_the_value_alone), TEST(shown_text_has_the_fewest_digits),
        TEST(files_are_read_within_their_limit), TEST(odd_files_are_refused));
}
