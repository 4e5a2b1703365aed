/*
 * HTML checks for the report's tests: balanced tags with quoted attributes, links that lead
 * somewhere, nothing fetched from outside, pictures that decode. A failure names what it found.
 */
#ifndef SWERVE_TESTS_REPORT_HTML_CHECK_H
#define SWERVE_TESTS_REPORT_HTML_CHECK_H

#include "tests/harness.h"

#include <ctype.h>
#include <png.h>
#include <stdint.h>
#include <stdlib.h>

/* The document contains a part; unlike EXPECT_CONTAINS it does not print megabytes. */
#define EXPECT_HAS(text, part)                               \
    do {                                                     \
        const char *test_part = (part);                      \
        if (strstr((text), test_part) == NULL) {             \
            TEST_FAIL("expected to find \"%s\"", test_part); \
        }                                                    \
    } while (0)

enum { HTML_DEPTH_MAX = 64, HTML_NAME_BYTES = 32 };

/* Reads a tag at `at` ('<'): its name, whether it closes or is empty; returns the end of it. */
static inline const char *html_tag(const char *at, char name[HTML_NAME_BYTES], bool *closing,
                                   bool *empty)
{
    static const char *const voids[] = {"meta", "img", "input", "br", "wbr", "!doctype"};
    const char *start = at;
    size_t bytes = 0;
    char quote = '\0';
    at++;
    *closing = *at == '/';
    at += *closing;
    while (isalnum((unsigned char)*at) || *at == '!') {
        if (bytes + 1 < HTML_NAME_BYTES) {
            name[bytes++] = (char)tolower((unsigned char)*at);
        }
        at++;
    }
    name[bytes] = '\0';
    if (bytes == 0) {
        TEST_FAIL("not a tag: %.60s", start);
    }
    while (*at != '\0' && (quote != '\0' || *at != '>')) {
        if (quote == '\0' && *at == '<') {
            TEST_FAIL("'<' inside a tag: %.60s", start);
        }
        if (*at == '"') {
            quote = quote == '\0' ? '"' : '\0';
        }
        at++;
    }
    if (*at == '\0') {
        TEST_FAIL("a tag without an end: %.60s", start);
    }
    *empty = at[-1] == '/';
    for (size_t i = 0; i < sizeof voids / sizeof *voids; i++) {
        *empty = *empty || strcmp(name, voids[i]) == 0;
    }
    return at + 1;
}

static inline void html_expect_balanced(const char *text)
{
    char open[HTML_DEPTH_MAX][HTML_NAME_BYTES];
    size_t depth = 0;
    const char *at = text;
    const char *text_end = text + strlen(text);
    while ((at = strchr(at, '<')) != NULL) {
        char name[HTML_NAME_BYTES];
        bool closing;
        bool empty;
        const char *start = at;
        at = html_tag(at, name, &closing, &empty);
        if (closing) {
            if (depth == 0 || strcmp(open[depth - 1], name) != 0) {
                TEST_FAIL("</%s> closes <%s>: %.60s", name, depth > 0 ? open[depth - 1] : "",
                          start);
            }
            depth--;
        } else if (!empty) {
            EXPECT(depth < HTML_DEPTH_MAX);
            memcpy(open[depth++], name, sizeof name);
            if (strcmp(name, "script") == 0 || strcmp(name, "style") == 0) {
                char end[HTML_NAME_BYTES + 4];
                snprintf(end, sizeof end, "</%s>", name);
                at = memmem(at, (size_t)(text_end - at), end, strlen(end));
                EXPECT(at != NULL);
            }
        }
    }
    if (depth != 0) {
        TEST_FAIL("<%s> is never closed", open[depth - 1]);
    }
}

/* Counts by memmem: for each find a sanitizer's strstr reads the rest of the page, byte by byte. */
static inline size_t html_count(const char *text, const char *part)
{
    size_t count = 0;
    size_t bytes = strlen(part);
    const char *end = text + strlen(text);
    for (const char *at = text; (at = memmem(at, (size_t)(end - at), part, bytes)) != NULL;) {
        at += bytes;
        count++;
    }
    return count;
}

/* Every href is "#id" with exactly one id, every src a data: URI; no style fetches anything. */
static inline void html_expect_self_contained(const char *text)
{
    for (const char *at = text; (at = strstr(at, " href=\"")) != NULL;) {
        char id[96];
        at += strlen(" href=\"");
        size_t bytes = strcspn(at, "\"");
        EXPECT(at[0] == '#' && bytes > 1 && bytes < 80);
        snprintf(id, sizeof id, " id=\"%.*s\"", (int)bytes - 1, at + 1);
        if (html_count(text, id) != 1) {
            TEST_FAIL("#%.*s leads to %zu places", (int)bytes - 1, at + 1, html_count(text, id));
        }
    }
    EXPECT_INT(html_count(text, " src=\""), html_count(text, " src=\"data:image/png;base64,"));
    EXPECT_INT(html_count(text, "url("), 0);
    EXPECT_INT(html_count(text, "@import"), 0);
    EXPECT_INT(html_count(text, "<link"), 0);
    /* The page's own, and drives, which no browser runs. */
    EXPECT_INT(html_count(text, "<script"),
               1 + html_count(text, "<script type=\"application/x-swerve-drive\" "));
}

static inline uint8_t *html_base64(const char *text, size_t digits, size_t *bytes)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint8_t *data = malloc(digits / 4 * 3 + 3);
    uint32_t word = 0;
    uint32_t bits = 0;
    *bytes = 0;
    EXPECT(data != NULL);
    EXPECT_INT(digits % 4, 0);
    for (size_t i = 0; i < digits && text[i] != '='; i++) {
        const char *digit = strchr(alphabet, text[i]);
        EXPECT(digit != NULL && *digit != '\0');
        word = word << 6 | (uint32_t)(digit - alphabet);
        bits += 6;
        if (bits >= 8) {
            bits -= 8;
            data[(*bytes)++] = (uint8_t)(word >> bits);
        }
    }
    return data;
}

/* Decodes every picture; returns how many there are. */
static inline size_t html_expect_pictures(const char *text)
{
    static const char head[] = "src=\"data:image/png;base64,";
    size_t count = 0;
    for (const char *at = text; (at = strstr(at, head)) != NULL; count++) {
        at += strlen(head);
        size_t bytes;
        uint8_t *data = html_base64(at, strcspn(at, "\""), &bytes);
        png_image image = {.version = PNG_IMAGE_VERSION};
        EXPECT(png_image_begin_read_from_memory(&image, data, bytes));
        EXPECT(image.width > 0 && image.height > 0);
        image.format = PNG_FORMAT_RGB;
        uint8_t *pixels = malloc(PNG_IMAGE_SIZE(image));
        EXPECT(pixels != NULL);
        EXPECT(png_image_finish_read(&image, NULL, pixels, 0, NULL));
        free(pixels);
        free(data);
    }
    return count;
}

#endif
