/*
 * Text for terminals. Goal: nothing that a terminal obeys, hides or reorders is written, everything
 * else is written as it is. Method: every code point and every single byte against an independent
 * statement of the rule; printed lines by reading the stream back.
 */
#include "base/check.h"
#include "base/log.h"
#include "base/rng.h"
#include "base/text.h"
#include "base/utf8.h"
#include "tests/harness.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

static size_t encode(uint32_t value, char out[8])
{
    size_t bytes = value < 0x80 ? 1 : value < 0x800 ? 2 : value < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = bytes; i > 1; i--) {
        out[i - 1] = (char)(0x80 | (value & 0x3f));
        value >>= 6;
    }
    out[0] = (char)(lead[bytes] | value);
    out[bytes] = '\0';
    return bytes;
}

static void controls_and_hidden_characters_are_spelled_out(void)
{
    static const struct {
        const char *text;
        const char *line;
    } rows[] = {
        {"plain caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x9a\x97",
         "plain caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x9a\x97"},
        {"\x1b]0;title\x07", "\\u001b]0;title\\u0007"},
        {"\xc2\23331m", "\\u009b31m"},
        {"\23331m\xff", "\\x9b31m\\xff"},
        {"a\nb\tc\rd\177", "a\\u000ab\\u0009c\\u000dd\\u007f"},
        {"\xe2\x80\xae"
         "gpj.exe\xe2\x80\xac",
         "\\u202egpj.exe\\u202c"},
        {"pass\xe2\x80\x8b"
         "word\xef\xbb\xbf",
         "pass\\u200bword\\ufeff"},
        {"\xf3\xa0\x81\x81", "\\udb40\\udc41"},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
        {"cut\xe2\x82", "cut\\xe2\\x82"},
        {"no XML: \xef\xbf\xbe\xef\xbf\xbf", "no XML: \\ufffe\\uffff"},
        {"", ""},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char out[128];
        EXPECT_INT(text_escape(rows[i].text, TEXT_LINE, out, sizeof out), strlen(rows[i].line));
        EXPECT_TEXT(out, rows[i].line);
    }
}

static void names_are_of_one_rule(void)
{
    static const char *const good[] = {"a",   "a b",  "caf\xc3\xa9", "a/b",
                                       "...", "a..b", "a/...",       "x=1,y"};
    static const char *const bad[] = {
        "",      ".",  "..",   "a/../b", "a/..",  "../a",     "./a",
        "a/./b", "/a", "a\nb", "\x1b",   "a\xff", "\xc2\x9b", "x\xe2\x80\xaey"};
    char longest[65];
    struct error error;
    for (size_t i = 0; i < COUNT_OF(good); i++) {
        EXPECT_INT(text_name_check("suite", good[i], 64, &error), STATUS_OK);
    }
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        EXPECT_INT(text_name_check("suite", bad[i], 64, &error), STATUS_BAD_INPUT);
        EXPECT_CONTAINS(error.text, "suite: expected a name of 1 to 63 bytes");
    }
    EXPECT_CONTAINS(error.text, "found \"x\\u202ey\"");
    memset(longest, 'a', sizeof longest - 1);
    longest[64] = '\0';
    EXPECT_INT(text_name_check("suite", longest, 64, &error), STATUS_LIMIT);
    EXPECT_INT(text_name_check("suite", longest, 65, &error), STATUS_OK);
}

/* A shell reads back what it was. */
static void a_shell_reads_names_back(void)
{
    static const char *const names[][2] = {
        {"plain-1.2/x", "plain-1.2/x"},   {"a b", "'a b'"},       {"", "''"},
        {"x; rm -rf ~", "'x; rm -rf ~'"}, {"it's", "'it'\\''s'"}, {"$(id)", "'$(id)'"}};
    char out[64];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        EXPECT_TEXT(text_shell_word(names[i][0], out, sizeof out), names[i][1]);
    }
    EXPECT_TEXT(text_shell_word("a 'b", out, 8), "'a '");
}

static void every_code_point_is_shown_or_named(void)
{
    int spelled_count = 0;
    for (uint32_t value = 1; value <= 0x10ffff; value++) {
        char text[8];
        char out[32];
        bool control = value < 0x20 || (value >= 0x7f && value < 0xa0);
        if (value >= 0xd800 && value <= 0xdfff) {
            continue;
        }
        encode(value, text);
        text_escape(text, TEXT_LINE, out, sizeof out);
        bool spelled = strcmp(text, out) != 0;
        EXPECT(spelled || !control);
        spelled_count += spelled;
        if (spelled && value < 0x10000) {
            char expected[32];
            snprintf(expected, sizeof expected, "\\u%04x", value);
            EXPECT_TEXT(out, expected);
        }
        text_escape(text, TEXT_LINES, out, sizeof out);
        EXPECT((strcmp(text, out) == 0) == (!spelled || value == '\n' || value == '\t'));
    }
    EXPECT(spelled_count > 64 && spelled_count < 5000);
}

/* A text that does not fit is cut between characters and escapes, never within. */
static void what_is_no_character_is_marked(void)
{
    static const struct {
        const char *text, *repaired;
    } rows[] = {
        {"", ""},
        {"plain", "plain"},
        {"\xc3\xa4 \xe2\x82\xac \xf0\x9f\x92\xa9", "\xc3\xa4 \xe2\x82\xac \xf0\x9f\x92\xa9"},
        {"\xff", "?"},
        {"a\xc3", "a?"},
        {"\xe2\x82", "??"},
        {"\xed\xa0\x80\xc3\xa4", "???\xc3\xa4"},
        {"\xc0\x80z", "??z"},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char text[32];
        snprintf(text, sizeof text, "%s", rows[i].text);
        utf8_repair(text);
        EXPECT_TEXT(text, rows[i].repaired);
        EXPECT(utf8_valid(text));
    }
}

static void short_buffers_hold_whole_pieces(void)
{
    static const char text[] = "a\x1b"
                               "\xe2\x82\xac\xc2\x9bz";
    static const char whole[] = "a\\u001b\xe2\x82\xac\\u009bz";
    static const size_t ends[] = {0, 1, 7, 10, 16, 17};
    for (size_t capacity = 1; capacity <= sizeof whole; capacity++) {
        char *out = malloc(capacity);
        size_t expected = 0;
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
            expected = ends[i] < capacity ? ends[i] : expected;
        }
        size_t bytes = text_escape(text, TEXT_LINE, out, capacity);
        bool good = bytes == expected && memcmp(out, whole, bytes) == 0 && out[bytes] == '\0';
        free(out);
        EXPECT(good);
    }
}

static void lines_end_where_the_format_says(void)
{
    char read[256] = "";
    FILE *stream = tmpfile();
    EXPECT(stream != NULL);
    int bytes = text_print(stream, "\n%-6s| %s\n\n", "id\n", "x\x1b[2J");
    bytes += text_print_lines(stream, "%s\n", "first\n\tsecond\r");
    bytes += text_put(stream, "{\"a\": \"\xc2\x9b\"}\n");
    rewind(stream);
    size_t got = fread(read, 1, sizeof read - 1, stream);
    fclose(stream);
    EXPECT_TEXT(read, "\nid\\u000a   | x\\u001b[2J\n\nfirst\n\tsecond\\u000d\n"
                      "{\"a\": \"\\u009b\"}\n");
    EXPECT_INT(bytes, got);
    FILE *closed = fopen("/dev/full", "w");
    if (closed != NULL) {
        setvbuf(closed, NULL, _IONBF, 0);
        EXPECT(text_print(closed, "%s\n", "text") < 0);
        fclose(closed);
    }
}

/* One event stays one line, and cannot move the cursor. */
static void log_lines_are_single_and_plain(void)
{
    int ends[2];
    char read_back[2048] = "";
    EXPECT(pipe(ends) == 0);
    const struct logger logger = {ends[1], LOG_INFO, "store"};
    char longest[3000];
    memset(longest, '\x1b', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    log_event(&logger, LOG_INFO, "suite %s", "a\nstore: error: forged\x1b[A");
    log_event(&logger, LOG_INFO, "%s", longest);
    close(ends[1]);
    ssize_t bytes = read(ends[0], read_back, sizeof read_back - 1);
    close(ends[0]);
    static const char first[] = "store: info: suite a\\u000astore: error: forged\\u001b[A\n";
    EXPECT(bytes > (ssize_t)sizeof first);
    EXPECT(memcmp(read_back, first, sizeof first - 1) == 0);
    EXPECT(memchr(read_back, '\x1b', (size_t)bytes) == NULL);
    EXPECT(bytes - (ssize_t)(sizeof first - 1) <= 1024 && read_back[bytes - 1] == '\n');
}

/* As printf says it, in the fewest digits of which strtod makes the same number. */
static void expect_fewest_digits(double value)
{
    char wanted[TEXT_REAL_BYTES];
    char found[TEXT_REAL_BYTES];
    int digits = 15;
    do {
        snprintf(wanted, sizeof wanted, "%.*g", digits, value);
    } while (++digits <= 17 && strtod(wanted, NULL) != value);
    size_t bytes = text_real(value, found);
    EXPECT_TEXT(found, wanted);
    EXPECT(bytes == strlen(found));
}

static void numbers_have_the_fewest_digits_that_read_back(void)
{
    static const double special[] = {0.0,
                                     -0.0,
                                     0.5,
                                     0.1,
                                     1e-4,
                                     9.999999999999999e-5,
                                     1e15,
                                     1e300,
                                     5e-324,
                                     NAN,
                                     1e-3,
                                     INFINITY,
                                     999999999999999.9,
                                     -2.5,
                                     1e14,
                                     99999999999999.98,
                                     0.30000000000000004,
                                     -INFINITY};
    for (size_t i = 0; i < COUNT_OF(special); i++) {
        expect_fewest_digits(special[i]);
    }
    for (int i = 0; i < 200000; i++) {
        uint64_t draw = rng_mix((uint64_t)i);
        double value;
        memcpy(&value, &draw, sizeof value); /* any number at all */
        expect_fewest_digits(value);
        /* Of common sizes, in full and as people write them; and the neighbours of powers. */
        value = (double)(int64_t)draw / 9.3e18 * pow(10.0, (double)(draw % 20) - 5.0);
        expect_fewest_digits(value);
        expect_fewest_digits((double)(int64_t)(draw % 2000003) / 1000.0);
        value = i % 2 == 0 ? ldexp(1.0, (int)(draw % 70) - 15) : pow(10.0, (double)(draw % 20) - 5);
        expect_fewest_digits(nextafter(value, draw & 1 ? INFINITY : 0.0));
        expect_fewest_digits(value);
    }
}

static void digits_are_of_either_case(void)
{
    static const char digits[] = "0123456789abcdefABCDEF";
    for (int i = 0; i < 22; i++) {
        EXPECT_INT(text_hex_digit((unsigned char)digits[i]), i < 16 ? i : i - 6);
    }
    for (int c = 0; c < 256; c++) {
        bool is_digit = c != 0 && strchr(digits, c) != NULL;
        EXPECT_INT(text_hex_digit((unsigned char)c) >= 0, is_digit);
    }
}

int main(void)
{
    return TEST_RUN(
        TEST(controls_and_hidden_characters_are_spelled_out), TEST(names_are_of_one_rule),
        TEST(a_shell_reads_names_back), TEST(every_code_point_is_shown_or_named),
        TEST(what_is_no_character_is_marked), TEST(short_buffers_hold_whole_pieces),
        TEST(lines_end_where_the_format_says), TEST(log_lines_are_single_and_plain),
        TEST(numbers_have_the_fewest_digits_that_read_back), TEST(digits_are_of_either_case));
}
