/*
 * The walk over a format. See format.h.
 */
#include "report/page/format.h"

#include "base/check.h"
#include "base/utf8.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The longest double in %f has 309 digits before the point; a format asks for few behind it. */
enum { NUMBER_BYTES = 512, LONGEST_TEXT = 1 << 30 };

static bool is_of_word(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
}

static void convert_text(const char *spec, const char *text, const struct format_writer *writer,
                         void *context)
{
    const char *point = strchr(spec, '.');
    size_t bytes = strnlen(text, point != NULL ? strtoul(point + 1, NULL, 10) : LONGEST_TEXT);
    size_t width = writer->narrow ? 0 : strtoul(spec + strspn(spec, "%+-0"), NULL, 10);
    bool before = false;
    for (size_t i = bytes; spec[1] != '-' && i < width; i++) {
        writer->put(context, " ", 1);
    }
    for (size_t at = 0; at < bytes;) {
        char spelled[FORMAT_SPELLED_BYTES];
        bool within = before && at + 1 < bytes && is_of_word(text[at + 1]);
        before = is_of_word(text[at]);
        at += writer->spell(text + at, within, spelled);
        writer->put(context, spelled, strlen(spelled));
    }
    for (size_t i = bytes; spec[1] == '-' && i < width; i++) {
        writer->put(context, " ", 1);
    }
}

/* One conversion of a format, "%.2f" or so; returns its bytes. */
static size_t convert(const char *spec, va_list *args, const struct format_writer *writer,
                      void *context)
{
    char one[16] = "";
    char number[NUMBER_BYTES] = "";
    size_t sized = 1 + strspn(spec + 1, "+-.0123456789");
    size_t length = strspn(spec + sized, "lz");
    size_t bytes = sized + length + 1;
    CHECK(bytes < sizeof one);
    memcpy(one, spec, bytes);
    switch (one[bytes - 1]) {
    case '%':
        writer->put(context, "%", 1);
        return bytes;
    case 's':
        convert_text(one, va_arg(*args, const char *), writer, context);
        return bytes;
    case 'd':
    case 'u':
    case 'c':
        if (length == 0) {
            snprintf(number, sizeof number, one, va_arg(*args, int));
        } else {
            snprintf(number, sizeof number, one, va_arg(*args, long long));
        }
        break;
    default: {
        CHECK(strchr("fg", one[bytes - 1]) != NULL);
        double value = va_arg(*args, double);
        if (!isfinite(value) && writer->put_unknown != NULL) {
            writer->put_unknown(context);
            return bytes;
        }
        snprintf(number, sizeof number, one, value);
    }
    }
    const char *shown = number + (writer->narrow ? strspn(number, " ") : 0);
    writer->put(context, shown, strlen(shown));
    return bytes;
}

const char *format_write(const char *format, const char *ends, va_list *args,
                         const struct format_writer *writer, void *context)
{
    char stops[8];
    snprintf(stops, sizeof stops, "%%%s", ends);
    for (;;) {
        size_t plain = strcspn(format, stops);
        writer->put(context, format, plain);
        format += plain;
        if (*format != '%') {
            return format;
        }
        format += convert(format, args, writer, context);
    }
}

size_t format_spell(const char *text, enum text_kept kept, char out[FORMAT_SPELLED_BYTES])
{
    char one[8] = "";
    size_t bytes = utf8_sequence_bytes((const unsigned char *)text, strnlen(text, 4));
    bytes = bytes > 0 ? bytes : 1;
    memcpy(one, text, bytes);
    text_escape(one, kept, out, FORMAT_SPELLED_BYTES);
    return bytes;
}
