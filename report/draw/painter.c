/*
 * Filling by winding number: edges of a shape, crossings of each sample line sorted, coverage added
 * to a row of floats, the row blended. Lines are shapes too: a quad per segment, all of one
 * winding.
 */
#include "report/draw/painter.h"

#include "base/check.h"
#include "base/png/png_encode.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 4, CROSSINGS_MAX = 512, CIRCLE_POINTS = 40, GLYPH_ROWS = 7, GLYPH_COLS = 5 };

#define FAR 1e6

enum status painter_init(struct painter *painter, uint32_t width, uint32_t height, bool svg,
                         struct colour ground, struct error *error)
{
    CHECK(width > 0 && width <= PAINTER_SIDE_MAX && height > 0 && height <= PAINTER_SIDE_MAX);
    *painter = (struct painter){.width = width, .height = height};
    if (svg) {
        html_format(&painter->svg,
                    "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %u %u\" width=\"%u\" "
                    "height=\"%u\" font-family=\"sans-serif\">\n<rect width=\"100%%\" "
                    "height=\"100%%\" fill=\"rgb(%u,%u,%u)\"/>\n",
                    width, height, width, height, ground.red, ground.green, ground.blue);
        return STATUS_OK;
    }
    painter->rgb = malloc((size_t)width * height * 3);
    painter->cover = malloc((width + 1) * sizeof *painter->cover);
    if (painter->rgb == NULL || painter->cover == NULL) {
        painter_finish(painter);
        return error_set(error, STATUS_NO_MEMORY, "picture: out of memory for %u x %u", width,
                         height);
    }
    painter_clear(painter, ground);
    return STATUS_OK;
}

void painter_finish(struct painter *painter)
{
    html_finish(&painter->svg);
    free(painter->rgb);
    free(painter->cover);
    free(painter->edges);
    *painter = (struct painter){0};
}

void painter_clear(struct painter *painter, struct colour ground)
{
    for (size_t i = 0; i < (size_t)painter->width * painter->height; i++) {
        painter->rgb[3 * i] = ground.red;
        painter->rgb[3 * i + 1] = ground.green;
        painter->rgb[3 * i + 2] = ground.blue;
    }
}

/* ---- shapes ---- */

/* Far outside of any picture, where floats still count; a trace may hold any number, or none. */
static double bounded(double value)
{
    return fmin(fmax(value, -FAR), FAR);
}

static void add_edge(struct painter *painter, struct vec2 a, struct vec2 b)
{
    a = (struct vec2){bounded(a.x_m), bounded(a.y_m)};
    b = (struct vec2){bounded(b.x_m), bounded(b.y_m)};
    if (painter->edge_count == painter->edge_capacity) {
        uint32_t capacity = painter->edge_capacity > 0 ? painter->edge_capacity * 2 : 256;
        struct painter_edge *edges = realloc(painter->edges, capacity * sizeof *edges);
        if (edges == NULL) {
            painter->failed = true;
            return;
        }
        painter->edges = edges;
        painter->edge_capacity = capacity;
    }
    if (a.y_m == b.y_m) {
        return;
    }
    bool down = a.y_m < b.y_m;
    struct vec2 top = down ? a : b;
    struct vec2 bottom = down ? b : a;
    painter->edges[painter->edge_count++] = (struct painter_edge){
        (float)top.x_m, (float)top.y_m, (float)bottom.x_m, (float)bottom.y_m, down ? 1 : -1};
}

/* A closed outline; turned round where it must be, so that outlines add up. */
static void add_outline(struct painter *painter, const struct vec2 *points, uint32_t count)
{
    double area = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct vec2 a = points[i];
        struct vec2 b = points[(i + 1) % count];
        area += a.x_m * b.y_m - a.y_m * b.x_m;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct vec2 a = points[i];
        struct vec2 b = points[(i + 1) % count];
        add_edge(painter, area < 0 ? b : a, area < 0 ? a : b);
    }
}

struct crossing {
    float x;
    int winding;
};

static int by_x(const void *a, const void *b)
{
    float left = ((const struct crossing *)a)->x;
    float right = ((const struct crossing *)b)->x;
    return (left > right) - (left < right);
}

/* Adds the span [from, to) of a sample line. */
static void add_span(struct painter *painter, float from, float to)
{
    float width = (float)painter->width;
    from = from < 0 ? 0 : from > width ? width : from;
    to = to < 0 ? 0 : to > width ? width : to;
    uint32_t first = (uint32_t)from;
    uint32_t last = (uint32_t)to;
    if (to <= from) {
        return;
    }
    if (first == last) {
        painter->cover[first] += to - from;
        return;
    }
    painter->cover[first] += (float)(first + 1) - from;
    for (uint32_t x = first + 1; x < last; x++) {
        painter->cover[x] += 1;
    }
    painter->cover[last] += to - (float)last;
}

static void sample_line(struct painter *painter, float y)
{
    struct crossing crossings[CROSSINGS_MAX];
    uint32_t count = 0;
    int winding = 0;
    for (uint32_t i = 0; i < painter->edge_count && count < CROSSINGS_MAX; i++) {
        const struct painter_edge *edge = &painter->edges[i];
        if (y >= edge->y0 && y < edge->y1) {
            float along = (y - edge->y0) / (edge->y1 - edge->y0);
            crossings[count++] =
                (struct crossing){edge->x0 + along * (edge->x1 - edge->x0), edge->winding};
        }
    }
    if (count > 1) {
        qsort(crossings, count, sizeof crossings[0], by_x);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (winding != 0) {
            add_span(painter, crossings[i - 1].x, crossings[i].x);
        }
        winding += crossings[i].winding;
    }
}

static void blend(uint8_t *value, uint8_t colour, float share)
{
    *value = (uint8_t)lrintf((float)*value + ((float)colour - (float)*value) * share);
}

/* Fills what the outlines enclose, and forgets them. */
static void fill(struct painter *painter, struct colour colour)
{
    float top = (float)painter->height;
    float bottom = 0;
    float left = (float)painter->width;
    float right = 0;
    for (uint32_t i = 0; i < painter->edge_count; i++) {
        top = fminf(top, painter->edges[i].y0);
        bottom = fmaxf(bottom, painter->edges[i].y1);
        left = fminf(left, fminf(painter->edges[i].x0, painter->edges[i].x1));
        right = fmaxf(right, fmaxf(painter->edges[i].x0, painter->edges[i].x1));
    }
    uint32_t first = (uint32_t)fmaxf(left, 0);
    uint32_t end = (uint32_t)fminf(fmaxf(right, 0) + 1, (float)painter->width);
    top = first < end ? fmaxf(top, 0) : bottom;
    bottom = fminf(bottom, (float)painter->height);
    for (uint32_t y = (uint32_t)top; (float)y < bottom; y++) {
        memset(painter->cover + first, 0, (end + 1 - first) * sizeof *painter->cover);
        for (int s = 0; s < SAMPLES; s++) {
            sample_line(painter, (float)y + ((float)s + 0.5F) / SAMPLES);
        }
        uint8_t *row = painter->rgb + (size_t)y * painter->width * 3;
        for (uint32_t x = first; x < end; x++) {
            float share = fminf(painter->cover[x] / SAMPLES, 1) * colour.alpha;
            if (share > 0) {
                blend(&row[3 * x], colour.red, share);
                blend(&row[3 * x + 1], colour.green, share);
                blend(&row[3 * x + 2], colour.blue, share);
            }
        }
    }
    painter->edge_count = 0;
}

static void svg_points(struct painter *painter, const struct vec2 *points, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        html_format(&painter->svg, "%s%.1f,%.1f", i > 0 ? " " : "", points[i].x_m, points[i].y_m);
    }
}

static void svg_colour(struct painter *painter, const char *what, struct colour colour)
{
    html_format(&painter->svg, " %s=\"rgb(%u,%u,%u)\"", what, colour.red, colour.green,
                colour.blue);
    if (colour.alpha < 1) {
        html_format(&painter->svg, " opacity=\"%.2f\"", (double)colour.alpha);
    }
}

void painter_polygon(struct painter *painter, const struct vec2 *points, uint32_t count,
                     struct colour colour)
{
    if (painter->rgb == NULL) {
        html_raw(&painter->svg, "<polygon points=\"");
        svg_points(painter, points, count);
        html_raw(&painter->svg, "\"");
        svg_colour(painter, "fill", colour);
        html_raw(&painter->svg, "/>\n");
        return;
    }
    add_outline(painter, points, count);
    fill(painter, colour);
}

static void add_segment(struct painter *painter, struct vec2 a, struct vec2 b, double width)
{
    double x = b.x_m - a.x_m;
    double y = b.y_m - a.y_m;
    double length = hypot(x, y);
    if (length < 1e-9) {
        return;
    }
    double u = x / length * width / 2; /* half a width further at both ends closes corners */
    double v = y / length * width / 2;
    double out = width > 2 ? 0.5 : 0;
    const struct vec2 quad[4] = {
        {a.x_m - u * out - v, a.y_m - v * out + u},
        {b.x_m + u * out - v, b.y_m + v * out + u},
        {b.x_m + u * out + v, b.y_m + v * out - u},
        {a.x_m - u * out + v, a.y_m - v * out - u},
    };
    add_outline(painter, quad, 4);
}

/* The part of a segment that is drawn: `done` is the length of the line before it. */
static void add_dashes(struct painter *painter, struct vec2 a, struct vec2 b, double width,
                       double dash, double done)
{
    double length = hypot(b.x_m - a.x_m, b.y_m - a.y_m);
    double first = floor(done / (2 * dash)) * 2 * dash;
    for (double at = first; at < done + length && length > 0; at += 2 * dash) {
        double from = fmax(at - done, 0) / length;
        double to = fmin(at + dash - done, length) / length;
        if (to > from) {
            add_segment(
                painter,
                (struct vec2){a.x_m + (b.x_m - a.x_m) * from, a.y_m + (b.y_m - a.y_m) * from},
                (struct vec2){a.x_m + (b.x_m - a.x_m) * to, a.y_m + (b.y_m - a.y_m) * to}, width);
        }
    }
}

/* Nothing of a segment is on the picture. */
static bool beside(const struct painter *painter, struct vec2 a, struct vec2 b, double width)
{
    return fmax(a.x_m, b.x_m) < -width || fmin(a.x_m, b.x_m) > painter->width + width ||
           fmax(a.y_m, b.y_m) < -width || fmin(a.y_m, b.y_m) > painter->height + width;
}

void painter_line(struct painter *painter, const struct vec2 *points, uint32_t count, double width,
                  double dash, struct colour colour)
{
    double done = 0;
    if (painter->rgb == NULL) {
        html_raw(&painter->svg, "<polyline fill=\"none\" stroke-linejoin=\"round\" points=\"");
        svg_points(painter, points, count);
        html_format(&painter->svg, "\" stroke-width=\"%.2f\"", width);
        if (dash > 0) {
            html_format(&painter->svg, " stroke-dasharray=\"%.1f\"", dash);
        }
        svg_colour(painter, "stroke", colour);
        html_raw(&painter->svg, "/>\n");
        return;
    }
    for (uint32_t i = 1; i < count; i++) {
        struct vec2 a = points[i - 1];
        struct vec2 b = points[i];
        double length = hypot(b.x_m - a.x_m, b.y_m - a.y_m);
        if (beside(painter, a, b, width)) {
            done += length;
            continue;
        }
        /* A dash of less than a pixel, or thousands of them, are a line. */
        if (dash >= 1 && length / dash < PAINTER_SIDE_MAX) {
            add_dashes(painter, a, b, width, dash, fmod(done, 2 * dash));
        } else {
            add_segment(painter, a, b, width);
        }
        done += length;
    }
    fill(painter, colour);
}

void painter_circle(struct painter *painter, struct vec2 center, double radius, double width,
                    struct colour colour)
{
    struct vec2 points[CIRCLE_POINTS + 1];
    for (int i = 0; i <= CIRCLE_POINTS; i++) {
        double turn = 2 * acos(-1.0) * i / CIRCLE_POINTS;
        points[i] = (struct vec2){center.x_m + radius * cos(turn), center.y_m + radius * sin(turn)};
    }
    painter_line(painter, points, CIRCLE_POINTS + 1, width, 0, colour);
}

/* ---- words ---- */

double painter_text_width(const char *text, double size)
{
    return (double)strlen(text) * size * (GLYPH_COLS + 1) / GLYPH_ROWS;
}

/* One outline per run of dots of a row. */
static void add_glyph(struct painter *painter, const uint8_t *rows, double x, double y, double dot)
{
    for (int r = 0; r < GLYPH_ROWS; r++) {
        for (int c = 0; c < GLYPH_COLS; c++) {
            int from = c;
            while (c < GLYPH_COLS && (rows[r] >> (GLYPH_COLS - 1 - c) & 1)) {
                c++;
            }
            if (c > from) {
                const struct vec2 box[4] = {{x + from * dot, y + r * dot},
                                            {x + c * dot, y + r * dot},
                                            {x + c * dot, y + (r + 1) * dot},
                                            {x + from * dot, y + (r + 1) * dot}};
                add_outline(painter, box, 4);
            }
        }
    }
}

void painter_text(struct painter *painter, double x, double y, double size, struct colour colour,
                  const char *text)
{
    double dot = size / GLYPH_ROWS;
    if (painter->rgb == NULL) {
        html_format(&painter->svg, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%.1f\"", x,
                    y + size * 0.5, size * 1.35);
        svg_colour(painter, "fill", colour);
        html_raw(&painter->svg, ">");
        html_text(&painter->svg, text);
        html_raw(&painter->svg, "</text>\n");
        return;
    }
    for (; *text != '\0' && x < painter->width; text++) {
        if (((unsigned char)*text & 0xc0) == 0x80) {
            continue; /* not the first byte of a character */
        }
        add_glyph(painter, painter_glyph((unsigned char)*text), x, y - size / 2, dot);
        fill(painter, colour); /* one by one, so that few edges cross a line */
        x += dot * (GLYPH_COLS + 1);
    }
}

void painter_image(struct painter *painter, uint32_t x, uint32_t y, const uint8_t *rgb,
                   uint32_t width, uint32_t height, uint32_t scale)
{
    for (uint32_t r = 0; r < height * scale && y + r < painter->height; r++) {
        uint8_t *row = painter->rgb + ((size_t)(y + r) * painter->width + x) * 3;
        for (uint32_t c = 0; c < width * scale && x + c < painter->width; c++) {
            memcpy(row + 3 * (size_t)c, rgb + ((size_t)(r / scale) * width + c / scale) * 3, 3);
        }
    }
}

void painter_end(struct painter *painter)
{
    if (painter->rgb == NULL) {
        html_raw(&painter->svg, "</svg>\n");
        painter->failed = painter->failed || painter->svg.failed;
    }
}

enum status painter_take(struct painter *painter, void **data, size_t *bytes, struct error *error)
{
    if (painter->failed) {
        return error_set(error, STATUS_NO_MEMORY, "picture: out of memory");
    }
    if (painter->rgb == NULL) {
        *data = painter->svg.text;
        *bytes = painter->svg.bytes;
        painter->svg = (struct html){0};
        return STATUS_OK;
    }
    uint8_t *png = NULL;
    TRY(png_encode(painter->rgb, painter->width, painter->height, &png, bytes, error));
    *data = png;
    return STATUS_OK;
}

enum status painter_kind(const char *option, const char *path, bool *svg, struct error *error)
{
    const char *ending = strrchr(path, '.');
    *svg = ending != NULL && strcmp(ending, ".svg") == 0;
    if (!*svg && (ending == NULL || strcmp(ending, ".png") != 0)) {
        return error_set(error, STATUS_USAGE, "%s: expected FILE.png or FILE.svg, found %s", option,
                         path);
    }
    return STATUS_OK;
}
