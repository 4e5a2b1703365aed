/*
 * Camera rasteriser internals: the canvas that a band of image rows is drawn on, the mood that
 * light and weather give it, and the solids that agents are made of. Private to the rasteriser.
 *
 * An image is drawn in bands of CAMERA_BAND_ROWS rows at CAMERA_SCALE times its size in both
 * directions and averaged down, so edges are antialiased and memory stays small.
 */
#ifndef SWERVE_ENGINE_RASTER_CAMERA_H
#define SWERVE_ENGINE_RASTER_CAMERA_H

#include "engine/raster_layers.h"
#include "schemas/observation.h"
#include "schemas/scene.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    CAMERA_SCALE = 3,
    CAMERA_BAND_ROWS = 8,
    CANVAS_COLS = CAMERA_COLS * CAMERA_SCALE,
    CANVAS_ROWS = CAMERA_ROWS * CAMERA_SCALE,
    CANVAS_BAND = CAMERA_BAND_ROWS * CAMERA_SCALE,
    FACE_POINTS_MAX = 8,
};

/* Linear in what the eye sees, 0..1. */
struct rgb {
    float r, g, b;
};

struct vec3 {
    double x, y, z;
};

/* A camera placed in ego's frame. Camera axes: x right, y down, z ahead. */
struct camera_view {
    struct vec3 origin;
    double cos_yaw, sin_yaw;
    double focal; /* canvas pixels */
};

/* What light and weather do to colours. */
struct mood {
    struct rgb zenith, horizon; /* sky */
    struct rgb ambient;         /* multiplies colours everywhere */
    struct rgb sun;             /* added by angle to the sun */
    struct vec3 sun_direction;  /* world frame, unit */
    struct rgb haze;            /* what distance fades to */
    double haze_per_m;          /* exp(-haze_per_m * distance) of the colour is left */
    double headlights;          /* 0 by day .. 1 at night */
    double wet;                 /* 0..1: dark, mirroring ground */
    double snow;                /* 0..1: white ground */
    double grey;                /* 0..1: desaturation */
    bool lamps;                 /* vehicles have their lights on */
    bool stars;
};

struct canvas {
    int32_t first_row; /* of the band, canvas rows */
    struct rgb colour[CANVAS_BAND][CANVAS_COLS];
    float inverse_depth[CANVAS_BAND][CANVAS_COLS]; /* 1/m, 0: infinitely far */
};

struct painter {
    struct camera_view view;
    struct mood mood;
    double ego_heading, ego_cos, ego_sin;
    struct canvas *canvas;
};

static inline struct rgb rgb_mix(struct rgb a, struct rgb b, float t)
{
    return (struct rgb){a.r + (b.r - a.r) * t, a.g + (b.g - a.g) * t, a.b + (b.b - a.b) * t};
}

static inline struct rgb rgb_scale(struct rgb a, struct rgb b)
{
    return (struct rgb){a.r * b.r, a.g * b.g, a.b * b.b};
}

static inline struct rgb rgb_times(struct rgb a, float t)
{
    return (struct rgb){a.r * t, a.g * t, a.b * t};
}

static inline struct rgb rgb_add(struct rgb a, struct rgb b)
{
    return (struct rgb){a.r + b.r, a.g + b.g, a.b + b.b};
}

/* Ego frame -> camera axes. */
struct vec3 camera_transform(const struct camera_view *view, struct vec3 point);

/* A town has street lamps at night. */
struct mood mood_make(const struct conditions *conditions, bool town);

/* Light that ego's headlamps throw on a point of ego's frame, 0..1. */
double mood_headlight(const struct mood *mood, double x_m, double y_m);

/* Fades a lit colour with distance. */
struct rgb mood_fade(const struct mood *mood, struct rgb colour, double distance_m);

/* Smooth noise in 0..1 with cells of unit size; |x|, |y| < 2^31. */
float mood_noise(double x, double y);

/* What all sky pixels of one canvas column share. */
struct sky_column {
    double azimuth_rad; /* world frame */
    double cosine, sine;
    double skyline; /* slope below which hills or, in a town, roofs stand */
    double halo;    /* glow of the sun */
    bool town;
};

/* direction_rad is in ego's frame. */
struct sky_column sky_column_make(const struct painter *painter, double direction_rad, bool town);

/* Colour of the sky at an elevation slope (up / ahead) >= 0. */
struct rgb sky_colour(const struct painter *painter, const struct sky_column *column, double slope);

/* Draws the agents of a scene on the band, shadows first; nearer surfaces win. */
void solids_draw(const struct painter *painter, const struct scenario *scenario,
                 const struct scene *scene);

/* ---- drawing, raster_canvas.c ---- */

/* A convex planar face in ego's frame, counter-clockwise seen from outside. */
struct face {
    uint32_t count; /* 3..FACE_POINTS_MAX */
    struct vec3 points[FACE_POINTS_MAX];
    struct rgb colour;
    bool glows; /* a lamp: not lit, not darkened */
};

/* Lights, fades and fills a face where it is nearest; faces that look away are left out. */
void canvas_fill(const struct painter *painter, const struct face *face);

/* Darkens what lies under a horizontal face; nothing is hidden by it. */
void canvas_shadow(const struct painter *painter, const struct face *face, float strength);

/* Adds a round glow of the given radius around a lamp that is not hidden. */
void canvas_glow(const struct painter *painter, struct vec3 point, double radius_m,
                 struct rgb colour);

#endif
