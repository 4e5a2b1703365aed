/*
 * One walk over the text, a character at a time. See text.h.
 */
#include "base/text.h"

#include "base/check.h"
#include "base/utf8.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    ESCAPE_BYTES = 16, /* two \u escapes and the terminator */
    WORD_BYTES = 64,   /* longer words are like nothing */
    SLIP_EDITS_MAX = 2,
    SHORT_WORD_BYTES = 3,
};

struct range {
    uint32_t first;
    uint32_t last;
};

/* Controls, and what Unicode 15 lists as bidirectional controls, default-ignorable format
 * characters, separators of lines, fillers without a shape, and what XML forbids. Variation
 * selectors stay: emoji are written with them, and they follow a visible character. */
static const struct range hidden[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},     {0x61c, 0x61c},
    {0x115f, 0x1160}, {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f},   {0x2028, 0x202e},
    {0x2060, 0x206f}, {0x3164, 0x3164},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0},   {0xfff0, 0xfffb},
    {0xfffe, 0xffff}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
};

static uint32_t code_point(const unsigned char *text, size_t bytes)
{
    static const unsigned char lead_mask[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t value = text[0] & lead_mask[bytes];
    for (size_t i = 1; i < bytes; i++) {
        value = value << 6 | (text[i] & 0x3f);
    }
    return value;
}

size_t text_shown_bytes(const unsigned char *text, size_t bytes, enum text_kept kept)
{
    size_t length = utf8_sequence_bytes(text, bytes);
    if (length == 0 || (kept == TEXT_LINES && (*text == '\n' || *text == '\t'))) {
        return length;
    }
    uint32_t value = code_point(text, length);
    for (size_t i = 0; i < COUNT_OF(hidden) && value >= hidden[i].first; i++) {
        if (value <= hidden[i].last) {
            return 0;
        }
    }
    return length;
}

/* Spells out what stands at text; returns the bytes of it that were read. */
static size_t spell(const unsigned char *text, size_t bytes, char out[ESCAPE_BYTES])
{
    size_t length = utf8_sequence_bytes(text, bytes);
    if (length == 0) {
        snprintf(out, ESCAPE_BYTES, "\\x%02x", text[0]);
        return 1;
    }
    uint32_t value = code_point(text, length);
    if (value < 0x10000) {
        snprintf(out, ESCAPE_BYTES, "\\u%04x", value);
    } else {
        snprintf(out, ESCAPE_BYTES, "\\u%04x\\u%04x", 0xd800 + ((value - 0x10000) >> 10),
                 0xdc00 + ((value - 0x10000) & 0x3ff));
    }
    return length;
}

size_t text_escape(const char *text, enum text_kept kept, char *out, size_t capacity)
{
    const unsigned char *at = (const unsigned char *)text;
    size_t left = strlen(text);
    size_t used = 0;
    CHECK(capacity > 0);
    while (left > 0) {
        char spelled[ESCAPE_BYTES];
        size_t read = text_shown_bytes(at, left, kept);
        bool shown = read > 0;
        read = shown ? read : spell(at, left, spelled);
        size_t bytes = shown ? read : strlen(spelled);
        if (bytes >= capacity - used) {
            break;
        }
        memcpy(out + used, shown ? (const char *)at : spelled, bytes);
        used += bytes;
        at += read;
        left -= read;
    }
    out[used] = '\0';
    return used;
}

/* Whether it begins with a slash, or has a step that a path would take upwards or nowhere. */
static bool has_steps(const char *name)
{
    bool steps = name[0] == '/';
    while (name != NULL && !steps) {
        size_t bytes = strcspn(name, "/");
        steps = (bytes == 1 && name[0] == '.') || (bytes == 2 && name[0] == '.' && name[1] == '.');
        name = name[bytes] == '/' ? name + bytes + 1 : NULL;
    }
    return steps;
}

enum status text_name_check(const char *what, const char *name, size_t capacity,
                            struct error *error)
{
    enum { SHOWN_BYTES = 384 };
    char shown[SHOWN_BYTES];
    size_t bytes = strnlen(name, capacity);
    size_t at = 0;
    size_t length = 1;
    if (bytes == capacity) {
        return error_set(error, STATUS_LIMIT, "%s: expected a name of at most %zu bytes", what,
                         capacity - 1);
    }
    while (at < bytes && length > 0) {
        length = text_shown_bytes((const unsigned char *)name + at, bytes - at, TEXT_LINE);
        at += length;
    }
    if (bytes > 0 && at == bytes && !has_steps(name)) {
        return STATUS_OK;
    }
    text_escape(name, TEXT_LINE, shown, sizeof shown);
    return error_set(error, STATUS_BAD_INPUT,
                     "%s: expected a name of 1 to %zu bytes of printable UTF-8 that does not begin "
                     "with \"/\" and has no step \".\" or \"..\", found \"%s\"",
                     what, capacity - 1, shown);
}

int text_hex_digit(unsigned char digit)
{
    return digit >= '0' && digit <= '9'   ? digit - '0'
           : digit >= 'a' && digit <= 'f' ? digit - 'a' + 10
           : digit >= 'A' && digit <= 'F' ? digit - 'A' + 10
                                          : -1;
}

const char *text_shell_word(const char *name, char *out, size_t capacity)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./:@%+=,-";
    size_t used = 1;
    CHECK(capacity >= sizeof "''");
    if (name[0] != '\0' && name[strspn(name, plain)] == '\0' && strlen(name) < capacity) {
        return memcpy(out, name, strlen(name) + 1);
    }
    out[0] = '\'';
    for (; *name != '\0'; name++) {
        const char *piece = *name == '\'' ? "'\\''" : name;
        size_t bytes = *name == '\'' ? strlen(piece) : 1;
        if (used + bytes + sizeof "'" > capacity) {
            break;
        }
        memcpy(out + used, piece, bytes);
        used += bytes;
    }
    memcpy(out + used, "'", sizeof "'");
    return out;
}

/* Runs of what may be shown are written whole. */
static int put(FILE *stream, const char *text, size_t left, enum text_kept kept)
{
    const unsigned char *at = (const unsigned char *)text;
    int written = 0;
    while (left > 0) {
        size_t run = 0;
        size_t shown;
        while (run < left && (shown = text_shown_bytes(at + run, left - run, kept)) > 0) {
            run += shown;
        }
        if (fwrite(at, 1, run, stream) != run) {
            return -1;
        }
        written += (int)run;
        at += run;
        left -= run;
        if (left > 0) {
            char spelled[ESCAPE_BYTES];
            size_t read = spell(at, left, spelled);
            if (fputs(spelled, stream) == EOF) {
                return -1;
            }
            written += (int)strlen(spelled);
            at += read;
            left -= read;
        }
    }
    return written;
}

static int put_line_feeds(FILE *stream, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (fputc('\n', stream) == EOF) {
            return -1;
        }
    }
    return (int)count;
}

static int vprint(FILE *stream, enum text_kept kept, const char *format, va_list args)
{
    char *text = NULL;
    size_t before = strspn(format, "\n");
    size_t after = 0;
    for (size_t end = strlen(format); end > before && format[end - 1] == '\n'; end--) {
        after++;
    }
    int bytes = vasprintf(&text, format, args);
    if (bytes < 0) {
        errno = ENOMEM;
        return -1;
    }
    if (stream == stderr) {
        fflush(stdout); /* what was said before stands before, where both go to one file */
    }
    int head = put_line_feeds(stream, before);
    int body = head < 0 ? -1 : put(stream, text + before, (size_t)bytes - before - after, kept);
    int tail = body < 0 ? -1 : put_line_feeds(stream, after);
    free(text);
    return tail < 0 ? -1 : head + body + tail;
}

int text_print(FILE *stream, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int bytes = vprint(stream, TEXT_LINE, format, args);
    va_end(args);
    return bytes;
}

int text_print_lines(FILE *stream, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int bytes = vprint(stream, TEXT_LINES, format, args);
    va_end(args);
    return bytes;
}

int text_put(FILE *stream, const char *text)
{
    return put(stream, text, strlen(text), TEXT_LINES);
}

/* ---- numbers ---- */

enum { DIGITS_MIN = 15, DIGITS_MAX = 17, MANTISSA_BITS = 52 };

/* A positive number in [1e-4, 1e15), exactly: mantissa / 2^shift. */
struct exact {
    unsigned __int128 mantissa; /* below 2^53 */
    int shift;
};

static unsigned __int128 power_of_ten(int exponent)
{
    static const uint64_t powers[] = {1,
                                      10,
                                      100,
                                      1000,
                                      10000,
                                      100000,
                                      1000000,
                                      10000000,
                                      100000000,
                                      1000000000,
                                      10000000000,
                                      100000000000,
                                      1000000000000,
                                      10000000000000,
                                      100000000000000,
                                      1000000000000000,
                                      10000000000000000,
                                      100000000000000000,
                                      1000000000000000000};
    int low = exponent <= 18 ? exponent : 18;
    return (unsigned __int128)powers[low] * powers[exponent - low];
}

/* The number times 10^places, rounded to the nearest integer (halves to even). All products stay
 * below 2^124: places are so many that at most 17 digits come out. */
static uint64_t round_scaled(const struct exact *exact, int places)
{
    unsigned __int128 scaled = exact->mantissa * power_of_ten(places);
    unsigned __int128 whole = scaled >> exact->shift;
    unsigned __int128 twice = (scaled - (whole << exact->shift)) << 1;
    unsigned __int128 one = (unsigned __int128)1 << exact->shift;
    return (uint64_t)whole + (twice > one || (twice == one && (whole & 1) != 0) ? 1 : 0);
}

/* Whether digits / 10^places is nearer to the number than half the distance to its neighbours. */
static bool reads_back(const struct exact *exact, uint64_t digits, int places)
{
    unsigned __int128 power = power_of_ten(places);
    unsigned __int128 a = (unsigned __int128)digits << exact->shift;
    unsigned __int128 b = exact->mantissa * power;
    return (a > b ? a - b : b - a) << 1 < power;
}

static size_t put_decimal(uint64_t digits, int places, char *out)
{
    char text[24];
    int count = 0;
    for (; places > 0 && digits % 10 == 0; places--) {
        digits /= 10;
    }
    do { /* backwards, with a zero in front of the point */
        text[count++] = (char)('0' + digits % 10);
        digits /= 10;
    } while (digits > 0 || count <= places);
    size_t bytes = 0;
    while (count > 0) {
        out[bytes++] = text[--count];
        if (count == places && places > 0) {
            out[bytes++] = '.';
        }
    }
    out[bytes] = '\0';
    return bytes;
}

/* By integers; 0: not one of the numbers that this is for. */
static size_t put_common(double value, char *out)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t fraction = bits & ((UINT64_C(1) << MANTISSA_BITS) - 1);
    if (!(value >= 1e-4 && value < 1e15) || fraction == 0) {
        return 0; /* a power of two is nearer to its lower neighbour than to its upper one */
    }
    struct exact exact = {.mantissa = fraction | UINT64_C(1) << MANTISSA_BITS,
                          .shift = 1023 + MANTISSA_BITS - (int)(bits >> MANTISSA_BITS)};
    static const double powers[] = {1e-3, 1e-2, 1e-1, 1e0, 1e1,  1e2,  1e3,  1e4,  1e5,
                                    1e6,  1e7,  1e8,  1e9, 1e10, 1e11, 1e12, 1e13, 1e14};
    int exponent = -4; /* of the first digit */
    while (exponent < DIGITS_MIN - 1 && value >= powers[exponent + 4]) {
        exponent++;
    }
    for (int digits = DIGITS_MIN; digits <= DIGITS_MAX; digits++) {
        int places = digits - 1 - exponent;
        uint64_t decimal = round_scaled(&exact, places);
        if (digits == DIGITS_MAX || reads_back(&exact, decimal, places)) {
            return put_decimal(decimal, places, out);
        }
    }
    return 0;
}

size_t text_real(double value, char out[TEXT_REAL_BYTES])
{
    bool negative = signbit(value) != 0;
    double size = fabs(value);
    size_t bytes = 0;
    out[0] = '-';
    if (size < 1e15 && size == (double)(uint64_t)size) {
        return put_decimal((uint64_t)size, 0, out + negative) + negative;
    }
    bytes = put_common(size, out + negative);
    if (bytes > 0) {
        return bytes + negative;
    }
    for (int digits = DIGITS_MIN; digits <= DIGITS_MAX; digits++) {
        bytes = (size_t)snprintf(out, TEXT_REAL_BYTES, "%.*g", digits, value);
        if (digits < DIGITS_MAX && strtod(out, NULL) == value) {
            break;
        }
    }
    return bytes;
}

/* Levenshtein distance; both texts are shorter than WORD_BYTES. */
static size_t edit_distance(const char *a, const char *b)
{
    size_t row[WORD_BYTES];
    size_t width = strlen(b);
    for (size_t j = 0; j <= width; j++) {
        row[j] = j;
    }
    for (size_t i = 1; a[i - 1] != '\0'; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= width; j++) {
            size_t best = diagonal + (a[i - 1] != b[j - 1] ? 1 : 0);
            diagonal = row[j];
            best = row[j] + 1 < best ? row[j] + 1 : best;
            row[j] = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
        }
    }
    return row[width];
}

const char *text_nearest(const char *word, const char *const *words)
{
    const char *nearest = NULL;
    size_t least = SLIP_EDITS_MAX + 1;
    for (; *words != NULL && strlen(word) < WORD_BYTES; words++) {
        size_t distance =
            strlen(*words) < WORD_BYTES ? edit_distance(word, *words) : SLIP_EDITS_MAX + 1;
        /* Two slips in a short word leave nothing of it, unless it begins alike. */
        bool alike = distance < 2 || word[0] == (*words)[0] || strlen(*words) > SHORT_WORD_BYTES;
        if (distance < least && distance < strlen(*words) && alike) {
            least = distance;
            nearest = *words;
        }
    }
    return nearest;
}
