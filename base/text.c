/*
 * One walk over the text, a character at a time. See text.h.
 */
#include "base/text.h"

#include "base/check.h"
#include "base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ESCAPE_BYTES = 16 }; /* two \u escapes and the terminator */

struct range {
    uint32_t first;
    uint32_t last;
};

/* Controls, and what Unicode 15 lists as bidirectional controls, default-ignorable format
 * characters, separators of lines and fillers without a shape. Variation selectors stay: emoji are
 * written with them, and they follow a visible character. */
static const struct range hidden[] = {
    {0x00, 0x1f},       {0x7f, 0x9f},       {0xad, 0xad},       {0x34f, 0x34f},   {0x61c, 0x61c},
    {0x115f, 0x1160},   {0x17b4, 0x17b5},   {0x180b, 0x180f},   {0x200b, 0x200f}, {0x2028, 0x202e},
    {0x2060, 0x206f},   {0x3164, 0x3164},   {0xfeff, 0xfeff},   {0xffa0, 0xffa0}, {0xfff0, 0xfffb},
    {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff},
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
