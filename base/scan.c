/*
 * Strict JSON scanning, see scan.h. Every step either moves forward or fails, and nothing is read
 * beyond `bytes`.
 */
#include "base/scan.h"

#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scan scan_begin(const char *source, const char *part, const char *text, size_t bytes,
                       struct error *error)
{
    return (struct scan){source, part, text, bytes, 0, STATUS_OK, error};
}

bool scan_fail(struct scan *scan, enum status status, const char *format, ...)
{
    if (scan->status != STATUS_OK) {
        return false;
    }
    char what[512];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    scan->status = error_set(scan->error, status, "%s: %s, byte %zu: %s", scan->source, scan->part,
                             scan->at, what);
    return false;
}

static bool fail_found(struct scan *scan, const char *expected)
{
    if (scan->at >= scan->bytes) {
        return scan_fail(scan, STATUS_BAD_INPUT, "expected %s, found the end", expected);
    }
    unsigned char c = (unsigned char)scan->text[scan->at];
    if (c < 0x20 || c > 0x7e) {
        return scan_fail(scan, STATUS_BAD_INPUT, "expected %s, found byte 0x%02x", expected, c);
    }
    return scan_fail(scan, STATUS_BAD_INPUT, "expected %s, found '%c'", expected, c);
}

static void skip_white(struct scan *scan)
{
    while (scan->at < scan->bytes) {
        char c = scan->text[scan->at];
        if (c != ' ' && c != '\t' && c != '\n' && c != '\r') {
            return;
        }
        scan->at++;
    }
}

static bool next_is(struct scan *scan, char c)
{
    skip_white(scan);
    return scan->at < scan->bytes && scan->text[scan->at] == c;
}

bool scan_expect(struct scan *scan, char c)
{
    if (scan->status != STATUS_OK) {
        return false;
    }
    if (!next_is(scan, c)) {
        char expected[4] = {'\'', c, '\'', 0};
        return fail_found(scan, expected);
    }
    scan->at++;
    return true;
}

bool scan_literal(struct scan *scan, const char *text)
{
    size_t bytes = strlen(text);
    if (scan->status != STATUS_OK || scan->bytes - scan->at < bytes ||
        memcmp(scan->text + scan->at, text, bytes) != 0) {
        return false;
    }
    scan->at += bytes;
    return true;
}

bool scan_end(struct scan *scan)
{
    if (scan->status != STATUS_OK) {
        return false;
    }
    skip_white(scan);
    return scan->at == scan->bytes || fail_found(scan, "nothing more");
}

static size_t utf8_put(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

static bool hex4(struct scan *scan, uint32_t *out)
{
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) {
        char c = scan->at < scan->bytes ? scan->text[scan->at] : 0;
        uint32_t digit = c >= '0' && c <= '9'   ? (uint32_t)(c - '0')
                         : c >= 'a' && c <= 'f' ? (uint32_t)(c - 'a' + 10)
                         : c >= 'A' && c <= 'F' ? (uint32_t)(c - 'A' + 10)
                                                : 16;
        if (digit == 16) {
            return fail_found(scan, "a hexadecimal digit");
        }
        value = value << 4 | digit;
        scan->at++;
    }
    *out = value;
    return true;
}

/* After "\u": one code point, of two escapes if the first is a high surrogate. */
static bool take_unicode(struct scan *scan, char out[4], size_t *count)
{
    uint32_t code = 0;
    uint32_t low = 0;
    if (!hex4(scan, &code)) {
        return false;
    }
    if (code >= 0xd800 && code < 0xdc00) {
        if (scan->bytes - scan->at < 6 || memcmp(scan->text + scan->at, "\\u", 2) != 0) {
            return fail_found(scan, "the second half of a surrogate pair");
        }
        scan->at += 2;
        if (!hex4(scan, &low)) {
            return false;
        }
        if (low < 0xdc00 || low > 0xdfff) {
            return scan_fail(scan, STATUS_BAD_INPUT,
                             "expected the second half of a surrogate pair, found \\u%04x", low);
        }
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    }
    if (code == 0 || (code >= 0xdc00 && code <= 0xdfff)) {
        return scan_fail(scan, STATUS_BAD_INPUT, "expected a character, found \\u%04x", code);
    }
    *count = utf8_put(code, out);
    return true;
}

static bool take_escape(struct scan *scan, char out[4], size_t *count)
{
    static const char names[] = "\"\\/bfnrt";
    static const char values[] = "\"\\/\b\f\n\r\t";
    char c = scan->at < scan->bytes ? scan->text[scan->at] : 0;
    const char *known = c != 0 ? strchr(names, c) : NULL;
    if (known != NULL) {
        out[0] = values[known - names];
        *count = 1;
        scan->at++;
        return true;
    }
    if (c != 'u') {
        return fail_found(scan, "an escape");
    }
    scan->at++;
    return take_unicode(scan, out, count);
}

/* Bytes of ASCII from here on that stand for themselves. */
static size_t plain_bytes(const struct scan *scan)
{
    size_t at = scan->at;
    while (at < scan->bytes && scan->text[at] >= 0x20 && scan->text[at] < 0x7f &&
           scan->text[at] != '"' && scan->text[at] != '\\') {
        at++;
    }
    return at - scan->at;
}

bool scan_string(struct scan *scan, char *out, size_t room, size_t *length)
{
    if (scan->status != STATUS_OK) {
        return false;
    }
    if (!next_is(scan, '"')) {
        return fail_found(scan, "a string");
    }
    scan->at++;
    size_t used = 0;
    while (scan->at < scan->bytes && scan->text[scan->at] != '"') {
        const char *piece = scan->text + scan->at;
        size_t count = plain_bytes(scan);
        char escaped[4];
        if (*piece == '\\') {
            scan->at++;
            piece = escaped;
            if (!take_escape(scan, escaped, &count)) {
                return false;
            }
        } else {
            if (count == 0 && (unsigned char)*piece >= 0x20) {
                count = utf8_sequence_bytes((const unsigned char *)piece, scan->bytes - scan->at);
            }
            if (count == 0) {
                return fail_found(scan, "text in UTF-8");
            }
            scan->at += count;
        }
        if (used + count >= room) {
            return scan_fail(scan, STATUS_LIMIT, "a string of more than %zu bytes", room - 1);
        }
        memcpy(out + used, piece, count);
        used += count;
    }
    if (scan->at >= scan->bytes) {
        return fail_found(scan, "'\"'");
    }
    scan->at++;
    out[used] = 0;
    if (length != NULL) {
        *length = used;
    }
    return true;
}

static bool digit_at(const struct scan *scan)
{
    return scan->at < scan->bytes && scan->text[scan->at] >= '0' && scan->text[scan->at] <= '9';
}

bool scan_integer(struct scan *scan, uint64_t *out)
{
    if (scan->status != STATUS_OK) {
        return false;
    }
    skip_white(scan);
    size_t start = scan->at;
    uint64_t value = 0;
    while (digit_at(scan)) {
        uint64_t digit = (uint64_t)(scan->text[scan->at] - '0');
        if (value > (INT64_MAX - digit) / 10) {
            return scan_fail(scan, STATUS_LIMIT, "an integer above 2^63 - 1");
        }
        value = value * 10 + digit;
        scan->at++;
    }
    size_t digits = scan->at - start;
    if (digits == 0 || (digits > 1 && scan->text[start] == '0')) {
        scan->at = start;
        return fail_found(scan, "an integer, no sign and no leading zero");
    }
    *out = value;
    return true;
}

bool scan_signed(struct scan *scan, int64_t min, int64_t max, int64_t *out)
{
    uint64_t size = 0;
    skip_white(scan);
    bool negative = scan_literal(scan, "-");
    if (negative && !digit_at(scan)) {
        return fail_found(scan, "a digit");
    }
    if (!scan_integer(scan, &size)) {
        return false;
    }
    int64_t value = negative ? -(int64_t)size : (int64_t)size;
    if (value < min || value > max) {
        return scan_fail(scan, STATUS_LIMIT, "expected an integer from %lld to %lld",
                         (long long)min, (long long)max);
    }
    *out = value;
    return true;
}

static bool take_digits(struct scan *scan)
{
    if (!digit_at(scan)) {
        return fail_found(scan, "a digit");
    }
    while (digit_at(scan)) {
        scan->at++;
    }
    return true;
}

bool scan_number(struct scan *scan, double *out)
{
    if (scan->status != STATUS_OK) {
        return false;
    }
    skip_white(scan);
    size_t start = scan->at;
    if (next_is(scan, '-')) {
        scan->at++;
    }
    size_t whole = scan->at;
    if (!take_digits(scan)) {
        return false;
    }
    if (scan->text[whole] == '0' && scan->at - whole > 1) {
        return scan_fail(scan, STATUS_BAD_INPUT, "expected a number without leading zeros");
    }
    if (scan->at < scan->bytes && scan->text[scan->at] == '.') {
        scan->at++;
        if (!take_digits(scan)) {
            return false;
        }
    }
    if (scan->at < scan->bytes && (scan->text[scan->at] | 0x20) == 'e') {
        scan->at++;
        if (scan->at < scan->bytes &&
            (scan->text[scan->at] == '-' || scan->text[scan->at] == '+')) {
            scan->at++;
        }
        if (!take_digits(scan)) {
            return false;
        }
    }
    char text[64];
    size_t length = scan->at - start;
    if (length >= sizeof text) {
        return scan_fail(scan, STATUS_LIMIT, "a number of more than %zu characters",
                         sizeof text - 1);
    }
    memcpy(text, scan->text + start, length);
    text[length] = 0;
    *out = strtod(text, NULL);
    return true;
}

static bool next_of(struct scan *scan, bool *first, char close)
{
    if (scan->status != STATUS_OK) {
        return false;
    }
    if (next_is(scan, close)) {
        scan->at++;
        return false;
    }
    if (!*first && !scan_expect(scan, ',')) {
        return false;
    }
    *first = false;
    return true;
}

bool scan_member(struct scan *scan, bool *first, char *key, size_t room)
{
    return next_of(scan, first, '}') && scan_string(scan, key, room, NULL) &&
           scan_expect(scan, ':');
}

bool scan_element(struct scan *scan, bool *first)
{
    return next_of(scan, first, ']');
}
