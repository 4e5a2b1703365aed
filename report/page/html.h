/*
 * HTML writing: a growing text buffer with escaped and plain printing. Sticky failure: after memory
 * runs out every call is a no-op and html_failed() says so, so that callers check once.
 */
#ifndef SWERVE_REPORT_PAGE_HTML_H
#define SWERVE_REPORT_PAGE_HTML_H

#include "report/page/format.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct html {
    char *text; /* owned, terminated once anything was written */
    size_t bytes;
    size_t capacity_bytes;
    bool failed;
};

void html_finish(struct html *html);

/* The document up to its body, with the reports' style and a policy that lets nothing but their own
 * script run; and its end with that script. */
void html_begin(struct html *html, const char *title);
void html_end(struct html *html);

/* Markup: written as it is. */
void html_raw(struct html *html, const char *text);

/* Markup with values. A text (%s, %.12s) may come from anywhere: it is written as html_text does.
 * The conversions are those of report/page/format.h. */
void html_format(struct html *html, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Text from anywhere: & < > " ' are escaped, control characters become spaces. */
void html_text(struct html *html, const char *text);
/* A name from anywhere, which may go on in the next line behind each of / , = _ - and :. */
void html_name(struct html *html, const char *name);
/* Spelling of a character in html_text (format.h). */
size_t html_spell(const char *text, bool within, char out[FORMAT_SPELLED_BYTES]);

/* A note where more are there than `shown`: "3 more WORDS". The words are markup. */
void html_more(struct html *html, int64_t count, int64_t shown, const char *words);

/* Bytes as base64 of a raw deflate stream (RFC 1951). */
void html_deflated(struct html *html, const void *data, size_t bytes);

/* <img> with an RGB picture as an inline PNG of the given display size. */
void html_picture(struct html *html, const uint8_t *rgb, uint32_t width, uint32_t height,
                  uint32_t shown_width, const char *alt);

/* The same from a PNG that anybody may have written: it is decoded and drawn anew. False, with
 * nothing written: it is no PNG of at most HTML_PNG_SIDE_MAX pixels a side. */
enum { HTML_PNG_SIDE_MAX = 2048 };
bool html_png(struct html *html, const void *data, size_t bytes, uint32_t shown_width,
              const char *alt);

#endif
