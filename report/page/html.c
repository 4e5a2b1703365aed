/*
 * The buffer, escaping, and PNG as data: URIs.
 */
#include "report/page/html.h"

#include "base/png/png_encode.h"

#include "base/base64.h"
#include "base/check.h"
#include "base/embedded.h"
#include "base/sha256.h"
#include "report/page/format.h"

#include <png.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

static bool reserve(struct html *html, size_t bytes)
{
    if (html->failed) {
        return false;
    }
    if (html->capacity_bytes - html->bytes > bytes) {
        return true;
    }
    size_t capacity = html->capacity_bytes == 0 ? 65536 : html->capacity_bytes * 2;
    while (capacity - html->bytes <= bytes) {
        capacity *= 2;
    }
    char *text = realloc(html->text, capacity);
    if (text == NULL) {
        html->failed = true;
        return false;
    }
    html->text = text;
    html->capacity_bytes = capacity;
    return true;
}

static void append(struct html *html, const char *text, size_t bytes)
{
    if (reserve(html, bytes)) {
        memcpy(html->text + html->bytes, text, bytes);
        html->bytes += bytes;
        html->text[html->bytes] = '\0';
    }
}

void html_finish(struct html *html)
{
    free(html->text);
    *html = (struct html){0};
}

void html_raw(struct html *html, const char *text)
{
    append(html, text, strlen(text));
}

size_t html_spell(const char *text, bool within, char out[FORMAT_SPELLED_BYTES])
{
    static const char marks[] = "&<>\"'";
    static const char *const spelled[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    const char *mark = strchr(marks, *text);
    (void)within;
    if (mark == NULL) {
        return format_spell(text, TEXT_LINES, out);
    }
    strcpy(out, spelled[mark - marks]);
    return 1;
}

void html_text(struct html *html, const char *text)
{
    html_format(html, "%s", text);
}

void html_name(struct html *html, const char *name)
{
    char spelled[FORMAT_SPELLED_BYTES];
    while (*name != '\0') {
        bool may_break = strchr("/,=_-:", *name) != NULL;
        name += html_spell(name, false, spelled);
        append(html, spelled, strlen(spelled));
        html_raw(html, may_break && *name != '\0' ? "<wbr>" : "");
    }
}

static void put(void *html, const char *text, size_t bytes)
{
    append(html, text, bytes);
}

void html_format(struct html *html, const char *format, ...)
{
    static const struct format_writer writer = {.put = put, .spell = html_spell, .narrow = true};
    va_list args;
    va_start(args, format);
    format_write(format, "", &args, &writer, html);
    va_end(args);
}

void html_more(struct html *html, int64_t count, int64_t shown, const char *words)
{
    if (count > shown) {
        html_format(html, "<p class=\"note\">%lld more ", (long long)(count - shown));
        html_raw(html, words);
        html_raw(html, "</p>");
    }
}

static void append_base64(struct html *html, const uint8_t *data, size_t bytes)
{
    size_t text_bytes = base64_bytes(bytes);
    if (reserve(html, text_bytes + 1)) {
        base64_encode(data, bytes, html->text + html->bytes);
        html->bytes += text_bytes;
    }
}

void html_deflated(struct html *html, const void *data, size_t bytes)
{
    z_stream stream = {0};
    if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, MAX_MEM_LEVEL,
                     Z_DEFAULT_STRATEGY) != Z_OK) {
        html->failed = true;
        return;
    }
    uLong room = deflateBound(&stream, (uLong)bytes);
    uint8_t *packed = malloc(room);
    stream.next_in = (z_const Bytef *)(uintptr_t)data;
    stream.avail_in = (uInt)bytes;
    stream.next_out = packed;
    stream.avail_out = (uInt)room;
    if (packed != NULL && deflate(&stream, Z_FINISH) == Z_STREAM_END) {
        append_base64(html, packed, stream.total_out);
    } else {
        html->failed = true;
    }
    deflateEnd(&stream);
    free(packed);
}

void html_picture(struct html *html, const uint8_t *rgb, uint32_t width, uint32_t height,
                  uint32_t shown_width, const char *alt)
{
    struct error error;
    uint8_t *png = NULL;
    size_t bytes = 0;
    if (png_encode_quick(rgb, width, height, &png, &bytes, &error) != STATUS_OK) {
        html->failed = true;
        return;
    }
    html_format(html, "<img width=\"%u\" height=\"%u\" alt=\"%s\" src=\"data:image/png;base64,",
                shown_width, height * shown_width / width, alt);
    append_base64(html, png, bytes);
    html_raw(html, "\">");
    free(png);
}

bool html_png(struct html *html, const void *data, size_t bytes, uint32_t shown_width,
              const char *alt)
{
    png_image image = {.version = PNG_IMAGE_VERSION};
    if (!png_image_begin_read_from_memory(&image, data, bytes)) {
        return false;
    }
    if (image.width == 0 || image.height == 0 || image.width > HTML_PNG_SIDE_MAX ||
        image.height > HTML_PNG_SIDE_MAX) {
        png_image_free(&image);
        return false;
    }
    image.format = PNG_FORMAT_RGB;
    uint8_t *rgb = malloc(PNG_IMAGE_SIZE(image));
    bool good = rgb != NULL && png_image_finish_read(&image, NULL, rgb, 0, NULL);
    if (good) {
        html_picture(html, rgb, image.width, image.height, shown_width, alt);
    }
    png_image_free(&image);
    free(rgb);
    return good;
}

/* ---- the document ---- */

extern const struct embedded_text report_assets[];
extern const size_t report_assets_count;

static const char *asset(const char *name)
{
    for (size_t i = 0; i < report_assets_count; i++) {
        if (strcmp(report_assets[i].name, name) == 0) {
            return report_assets[i].text;
        }
    }
    CHECK(!"an asset that was not compiled in");
    return "";
}

/* In the order in which they build on one another. */
static const char *const scripts[] = {"drive.js", "scene.js", "player.js", "report.js"};

/* The one script of a page, as text; the caller's. */
static char *whole_script(void)
{
    size_t bytes = 1;
    for (size_t i = 0; i < COUNT_OF(scripts); i++) {
        bytes += strlen(asset(scripts[i]));
    }
    char *text = calloc(1, bytes);
    for (size_t i = 0; text != NULL && i < COUNT_OF(scripts); i++) {
        strcat(text, asset(scripts[i]));
    }
    return text;
}

/* Nothing is fetched, and of scripts only ours runs, whatever gets into the page. */
static void policy(struct html *html)
{
    uint8_t digest[SHA256_BYTES];
    struct sha256 hash;
    char *script = whole_script();
    if (script == NULL) {
        html->failed = true;
        return;
    }
    sha256_init(&hash);
    sha256_update(&hash, script, strlen(script));
    sha256_final(&hash, digest);
    free(script);
    html_raw(html, "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                   "img-src data:; style-src 'unsafe-inline'; script-src 'sha256-");
    append_base64(html, digest, sizeof digest);
    html_raw(html, "'\">");
}

void html_begin(struct html *html, const char *title)
{
    html_raw(html, "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">");
    policy(html);
    html_format(html,
                "<meta name=\"viewport\" "
                "content=\"width=device-width,initial-scale=1\"><title>%s</title><style>",
                title);
    html_raw(html, asset("report.css"));
    html_raw(html, asset("player.css"));
    html_raw(html, "</style></head><body>");
}

void html_end(struct html *html)
{
    html_raw(html, "<script>");
    for (size_t i = 0; i < COUNT_OF(scripts); i++) {
        html_raw(html, asset(scripts[i]));
    }
    html_raw(html, "</script></body></html>\n");
}
