/*
 * Painter: polygons, lines and words on a picture of pixels, or the same as SVG. What draws scenes
 * knows one painter and not which of the two it is.
 *
 * Places are in pixels, x to the right, y down. Edges are antialiased: four lines of samples a
 * pixel, exact along x. Sticky failure: after memory runs out calls do nothing and `failed` says
 * so.
 */
#ifndef SWERVE_REPORT_DRAW_PAINTER_H
#define SWERVE_REPORT_DRAW_PAINTER_H

#include "base/geom.h"
#include "base/status.h"
#include "report/page/html.h"

#include <stdbool.h>
#include <stdint.h>

enum { PAINTER_SIDE_MAX = 4096 };

struct colour {
    uint8_t red, green, blue;
    float alpha;
};

struct painter_edge {
    float x0, y0, x1, y1; /* y0 < y1 */
    int winding;
};

struct painter {
    uint32_t width;
    uint32_t height;
    bool failed;
    uint8_t *rgb; /* [height][width][3], owned; NULL: SVG */
    struct html svg;
    struct painter_edge *edges; /* of the shape that is being filled; owned */
    uint32_t edge_count;
    uint32_t edge_capacity;
    float *cover; /* [width + 1] */
};

/* A picture filled with `ground`. Sides of 1 to PAINTER_SIDE_MAX. NO_MEMORY. */
enum status painter_init(struct painter *painter, uint32_t width, uint32_t height, bool svg,
                         struct colour ground, struct error *error);
void painter_finish(struct painter *painter);

/* Everything anew in one colour; of pixels alone. */
void painter_clear(struct painter *painter, struct colour ground);

void painter_polygon(struct painter *painter, const struct vec2 *points, uint32_t count,
                     struct colour fill);
/* dash: length of dashes and of what is between them; 0: none. */
void painter_line(struct painter *painter, const struct vec2 *points, uint32_t count, double width,
                  double dash, struct colour colour);
void painter_circle(struct painter *painter, struct vec2 center, double radius, double width,
                    struct colour colour);
/* Words whose first one begins at x, their middle at y. In pixels, letters are those of a 5 x 7
 * raster, and what is not ASCII a box. */
void painter_text(struct painter *painter, double x, double y, double size, struct colour colour,
                  const char *text);
/* Width of text in pixels, for SVG an estimate. */
double painter_text_width(const char *text, double size);

/* Copies a picture in, each of its pixels `scale` wide and high; of pixels alone. */
void painter_image(struct painter *painter, uint32_t x, uint32_t y, const uint8_t *rgb,
                   uint32_t width, uint32_t height, uint32_t scale);

/* Ends the SVG document. */
void painter_end(struct painter *painter);

/* The file of a picture that has ended: SVG or PNG, the caller's to free. NO_MEMORY. */
enum status painter_take(struct painter *painter, void **data, size_t *bytes, struct error *error);

/* Whether FILE.svg is asked for or FILE.png. USAGE, which names the option: another ending. */
enum status painter_kind(const char *option, const char *path, bool *svg, struct error *error);

/* Seven rows of five bits of a character, the left one highest. */
const uint8_t *painter_glyph(unsigned char character);

#endif
