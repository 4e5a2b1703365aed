/*
 * Draw list of a camera's picture, as plain structs: the host prepares them once per picture,
 * the CPU (engine/sensors/raster_camera.c) or a GPU (kernels/cuda/draw_camera.cu) draws them, byte
 * for byte the same, for both run the functions of kernels/camera_*.h.
 *
 * A picture has a backdrop, sky over ground, at its own resolution. Over it lie agents: a list of
 * commands on a canvas PICTURE_SCALE times as fine in both directions, drawn in order against a
 * depth buffer and averaged down where a command touched a pixel.
 */
#ifndef SWERVE_KERNELS_DRAW_LIST_CAMERA_H
#define SWERVE_KERNELS_DRAW_LIST_CAMERA_H

#include "base/both.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PICTURE_ROWS = 64, /* of the learned worlds' pictures, which a device draws */
    PICTURE_COLS = 96,
    PICTURE_CAMERAS = 3,
    PICTURE_SCALE = 3,
    PICTURE_TILE_COLS = PICTURE_COLS, /* columns that are drawn at a time, of any picture */
    FACE_POINTS_MAX = 8,
    SCREEN_POINTS_MAX = FACE_POINTS_MAX + 1, /* the near plane cuts off one corner */
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
    double focal;        /* canvas pixels */
    double ground_max_m; /* depth up to which it shows the map */
    /* Pixels of the image, rows even: the horizon lies between the middle ones. The canvas has
     * PICTURE_SCALE times as many. */
    int32_t rows, cols;
};

/* Effect of light and weather on colours. */
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

/* Point of view of the sky; a town has roofs on the skyline, other places have hills. */
struct sky_place {
    double yaw_rad;  /* of the camera in the world frame */
    double sun_rad;  /* azimuth of the sun there */
    struct rgb leaf; /* colour of the skyline, lit */
    bool town;
};

/* The map's tiles around ego, and what lies beside the map. */
struct ground_place {
    double ego_x, ego_y;    /* from the corner of the tiles */
    int32_t tile_x, tile_y; /* of the corner, in the map */
    struct rgb terrain;
    struct rgb light; /* on level ground */
    float paint;      /* share of it that snow leaves bare */
    bool paved;       /* a town: what is not road is pavement */
};

/* One camera's picture of one tick. */
struct picture {
    struct camera_view view;
    struct mood mood;
    double ego_cos, ego_sin; /* of ego's heading */
    struct sky_place sky;
    struct ground_place ground;
};

/* A corner on the canvas. */
struct screen_point {
    double u, v;
};

enum screen_kind {
    SCREEN_FILL = 0, /* takes the samples where it is nearest */
    SCREEN_SHADOW,   /* darkens what is there and hides nothing */
    SCREEN_GLOW,     /* adds light around a lamp, unless something hides it */
};

/* Something convex on the canvas. Rows and columns are those of the canvas. */
struct screen_command {
    uint8_t kind;       /* enum screen_kind */
    uint8_t points;     /* 3..SCREEN_POINTS_MAX; of a glow 1, its middle */
    uint16_t first_row; /* it reaches no row before this */
    uint16_t end_row;   /* nor from this on */
    uint16_t reserved;
    uint32_t first_point; /* in the list of points */
    struct rgb colour;    /* of a shadow .r: what it leaves of the colours */
    /* Fill: 1/depth in 1/m is inverse_depth + u * du + v * dv; of a camera that does not look level
     * 1/distance is their product with the direction. Glow: what is nearer than
     * inverse_depth hides it, du is its radius. */
    double inverse_depth, du, dv;
};

/* Parts that agents add to a picture, in the order of drawing. The lists are elsewhere: the
 * caller's arrays, or what lies behind a draw list. */
struct screen_list {
    const struct screen_command *commands;
    const struct screen_point *points;
    uint32_t count;
};

/* Middle of a camera's canvas. */
BOTH_FN struct screen_point camera_view_middle(const struct camera_view *view)
{
    struct screen_point middle;
    middle.u = view->cols * PICTURE_SCALE / 2.0;
    middle.v = view->rows * PICTURE_SCALE / 2.0;
    return middle;
}

/* A slot's three pictures; behind this head lie the commands of all of them, then the points. Of
 * the conditionings without agents there are none. */
struct draw_list_cameras {
    uint32_t command_count, point_count;    /* of the whole */
    uint32_t commands[PICTURE_CAMERAS + 1]; /* those of camera c: from [c] up to [c + 1] */
    uint32_t reserved;
    struct picture pictures[PICTURE_CAMERAS];
};

/* Bytes of a draw list with so many commands and points. */
BOTH_FN size_t draw_list_cameras_bytes(uint32_t command_count, uint32_t point_count)
{
    return sizeof(struct draw_list_cameras) + command_count * sizeof(struct screen_command) +
           point_count * sizeof(struct screen_point);
}

/* The list of one of its cameras. */
BOTH_FN struct screen_list draw_list_cameras_list(const struct draw_list_cameras *draw_list,
                                                  uint32_t camera)
{
    const struct screen_command *commands = (const struct screen_command *)(draw_list + 1);
    struct screen_list list;
    list.points = (const struct screen_point *)(commands + draw_list->command_count);
    list.commands = commands + draw_list->commands[camera];
    list.count = draw_list->commands[camera + 1] - draw_list->commands[camera];
    return list;
}

/* Whether a draw list of so many bytes holds all that its lists name. */
BOTH_FN bool draw_list_cameras_valid(const struct draw_list_cameras *draw_list, size_t bytes)
{
    if (bytes < sizeof *draw_list || draw_list->command_count > bytes ||
        draw_list->point_count > bytes ||
        draw_list_cameras_bytes(draw_list->command_count, draw_list->point_count) > bytes ||
        draw_list->commands[0] != 0 ||
        draw_list->commands[PICTURE_CAMERAS] != draw_list->command_count) {
        return false;
    }
    bool good = true;
    for (int camera = 0; camera < PICTURE_CAMERAS; camera++) {
        good = good && draw_list->commands[camera] <= draw_list->commands[camera + 1];
    }
    const struct screen_command *commands = (const struct screen_command *)(draw_list + 1);
    for (uint32_t i = 0; i < draw_list->command_count; i++) {
        good = good && commands[i].points >= 1 && commands[i].points <= draw_list->point_count &&
               commands[i].first_point <= draw_list->point_count - commands[i].points;
    }
    return good;
}

#endif
