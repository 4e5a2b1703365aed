/*
 * printf formats whose texts are escaped: the plain words of a format are a page's markup, and what
 * %s brings may come from anywhere. Whoever writes a form of pages says how it escapes.
 */
#ifndef SWERVE_REPORT_PAGE_FORMAT_H
#define SWERVE_REPORT_PAGE_FORMAT_H

#include "base/text.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

enum { FORMAT_SPELLED_BYTES = 32 };

struct format_writer {
    /* Words of the format, numbers and spelled characters: written as they are. */
    void (*put)(void *context, const char *text, size_t bytes);
    /* Spells the first character of a text, which may stand within a word; returns its bytes in the
     * text. */
    size_t (*spell)(const char *text, bool within, char out[FORMAT_SPELLED_BYTES]);
    /* Stands for a number that is not finite; NULL: it is written as printf does. */
    void (*put_unknown)(void *context);
    bool narrow; /* widths are for columns of others: they are left out */
};

/* Writes the format up to the first of `ends` among its plain words, or to its end, and returns
 * where that is. Of texts there are %s and %.12s, of numbers d, u, lld, llu, zu, c, f and g. */
const char *format_write(const char *format, const char *ends, va_list *args,
                         const struct format_writer *writer, void *context);

/* The first character of a text that is not empty, as a terminal would show it: a browser obeys
 * bidirectional overrides as well. Returns its bytes in the text. */
size_t format_spell(const char *text, enum text_kept kept, char out[FORMAT_SPELLED_BYTES]);

#endif
