/*
 * Camera rasteriser internals: the canvas that a band of image rows is drawn on, the mood that
 * light and weather give it, and the solids that agents are made of. Private to the rasteriser.
 *
 * Sky and ground make a backdrop at image resolution. Agents are drawn over it in bands of
 * CAMERA_BAND_ROWS rows, on a canvas CAMERA_SCALE times as fine in both directions that takes over
 * only the pixels they touch and is averaged down, so edges are antialiased, memory stays small and
 * empty road costs nothing twice.
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

/* Sky and ground. */
struct backdrop {
    struct rgb colour[CAMERA_ROWS][CAMERA_COLS];
};

struct canvas {
    int32_t first_row; /* of the band, canvas rows */
    const struct backdrop *backdrop;
    /* Image pixels that solids changed; only there the samples below hold anything. */
    bool any_touched;
    bool touched[CAMERA_BAND_ROWS][CAMERA_COLS];
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

/* The same for an image row of points of ego's frame: arrays of CAMERA_COLS, no aliasing. */
void mood_headlight_row(const struct mood *mood, const float *x_m, const float *y_m, float *out);

/* Fades a lit colour with distance. */
struct rgb mood_fade(const struct mood *mood, struct rgb colour, double distance_m);

/* What haze leaves of a colour, 0..1, for an image row of CAMERA_COLS distances. */
void mood_haze_row(const struct mood *mood, const float *distance_m, float *out);

/* Smooth noise in 0..1 with cells of unit size for an image row of CAMERA_COLS positions relative
 * to the corner of a cell; |x|, |y| < 2^20. `out` aliases nothing. */
void mood_noise_row(int32_t cell_x, int32_t cell_y, const float *x, const float *y, float *out);

/* Uniform in 0..1, from two integers. */
static inline float mood_hash(int32_t a, int32_t b)
{
    uint32_t h = (uint32_t)a * 0x9E3779B1u ^ (uint32_t)b * 0x85EBCA77u;
    h ^= h >> 15;
    h *= 0x2C1B3C6Du;
    h ^= h >> 14;
    return (float)(int32_t)(h >> 8) * (1.0f / 16777216.0f);
}

/* exp(-x) for x >= 0 as (1 - x/64)^64: within 0.01, smooth, and a tenth of the cost. */
static inline float mood_decay(float x)
{
    float t = 1.0f - x * (1.0f / 64.0f);
    t = t > 0.0f ? t : 0.0f;
    t *= t;
    t *= t;
    t *= t;
    t *= t;
    t *= t;
    return t * t;
}

/* ---- the backdrop, raster_sky.c and raster_ground.c ---- */

/* Fills the upper half. A town has roofs on the skyline, other places have hills. */
void sky_draw(const struct painter *painter, bool town, struct backdrop *out);

struct ground_place {
    double ego_x, ego_y; /* relative to the layers' anchor */
    struct rgb terrain;
    bool town; /* what is not road is pavement */
};

/* Fills the lower half. */
void ground_draw(const struct painter *painter, const struct raster_layers *layers,
                 const struct ground_place *place, struct backdrop *out);

/* ---- agents, raster_solids.c ---- */

/* An agent that may be in the image, in ego's frame. */
struct body {
    const struct painter *painter;
    const struct agent *agent;
    const struct agent_state *state;
    uint32_t index;
    uint32_t tick;
    double x, y, c, s;  /* centre and heading */
    double top, bottom; /* canvas rows that it may touch */
};

/* Picks the agents of a scene that the camera may see; the records point to the arguments. Returns
 * their number. */
uint32_t solids_pick(const struct painter *painter, const struct scenario *scenario,
                     const struct scene *scene, struct body out[LIMIT_AGENTS]);

/* Draws them on the band, shadows first; nearer surfaces win. */
void solids_draw(const struct body *bodies, uint32_t count);

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
