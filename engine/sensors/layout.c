/*
 * Layout: the scene drawn in the anchored window, as the learned worlds are given it, and the way
 * back from a window to the observation. engine/model.md has every definition.
 *
 * The window is twice as wide as the rasteriser's grid, so it is drawn as two halves, side by side
 * along v; the sensor may lie in either. Cells never turn or move but by whole patches, so what is
 * at rest keeps its bytes from tick to tick until it is hidden or leaves.
 */
#include "engine/sensors/layout.h"

#include "base/dmath.h"
#include "engine/sensors/layout_internal.h"
#include "engine/sensors/prepared_internal.h"
#include "engine/sensors/raster_view.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

const char *const conditioning_names[CONDITIONING_CHOICES] = {"agents", "map", "none", "foresee",
                                                              "tokens"};

#define WINDOW_M (WINDOW_PATCHES * WINDOW_PATCH_M)
#define LOOK_AHEAD_M 32.0
#define HEADING_SHARE 0.38 /* of cos or sin; beyond it what is behind ego is given up first */
#define VELOCITY_UNIT 4.0
#define VELOCITY_ZERO 128

/* ---- anchor and window ---- */

struct anchor anchor_make(struct pose pose)
{
    struct anchor anchor = {.pose = pose};
    dmath_sincos(pose.heading_rad, &anchor.sin_heading, &anchor.cos_heading);
    return anchor;
}

struct pose anchor_local(const struct anchor *anchor, struct pose pose)
{
    double dx = pose.x_m - anchor->pose.x_m;
    double dy = pose.y_m - anchor->pose.y_m;
    double c = anchor->cos_heading;
    double s = anchor->sin_heading;
    return (struct pose){
        .x_m = dx * c + dy * s,
        .y_m = -dx * s + dy * c,
        .heading_rad = dmath_wrap_angle(pose.heading_rad - anchor->pose.heading_rad),
    };
}

/* First patch of the window along one axis. */
static int32_t first_patch(double middle_m, double share)
{
    double patches = (middle_m - WINDOW_M / 2) / WINDOW_PATCH_M;
    double first = share > HEADING_SHARE    ? ceil(patches)
                   : share < -HEADING_SHARE ? floor(patches)
                                            : floor(patches + 0.5);
    return (int32_t)dmath_clamp(first, -1e8, 1e8);
}

struct window window_of(struct pose ego)
{
    double s;
    double c;
    dmath_sincos(ego.heading_rad, &s, &c);
    return (struct window){
        .i = first_patch(ego.x_m + LOOK_AHEAD_M * c, c),
        .j = first_patch(ego.y_m + LOOK_AHEAD_M * s, s),
    };
}

/* ---- planes ---- */

struct window_place layout_place(const struct scene *scene, const struct anchor *anchor,
                                 struct window window)
{
    struct pose ego = anchor_local(anchor, scene->ego.pose);
    return (struct window_place){
        .row = (ego.x_m - window.i * WINDOW_PATCH_M) / BEV_CELL_M,
        .col = (ego.y_m - window.j * WINDOW_PATCH_M) / BEV_CELL_M,
    };
}

struct raster_view layout_half_view(const struct scene *scene, const struct anchor *anchor,
                                    struct window window, int half)
{
    struct pose ego = anchor_local(anchor, scene->ego.pose);
    double u = window.i * WINDOW_PATCH_M - ego.x_m;
    double v = window.j * WINDOW_PATCH_M - ego.y_m;
    return (struct raster_view){
        .sensor = {scene->ego.pose.x_m, scene->ego.pose.y_m},
        .heading_rad = anchor->pose.heading_rad,
        .cos_heading = anchor->cos_heading,
        .sin_heading = anchor->sin_heading,
        .x_min_m = u,
        .y_min_m = v + half * (WINDOW_M / 2),
        /* A scene that jumped may leave ego outside its window; what hides must still count. */
        .x_low_m = dmath_min(u, 0.0),
        .x_high_m = dmath_max(u + WINDOW_M, 0.0),
        .y_low_m = dmath_min(v, 0.0),
        .y_high_m = dmath_max(v + WINDOW_M, 0.0),
    };
}

struct raster_view layout_map_view(const struct anchor *anchor, struct window window, int half)
{
    return (struct raster_view){
        .sensor = {anchor->pose.x_m, anchor->pose.y_m},
        .heading_rad = anchor->pose.heading_rad,
        .cos_heading = anchor->cos_heading,
        .sin_heading = anchor->sin_heading,
        .x_min_m = window.i * WINDOW_PATCH_M,
        .y_min_m = window.j * WINDOW_PATCH_M + half * (WINDOW_M / 2),
    };
}

/* Copies one half's plane of elements of `bytes` bytes to its place in the window's plane. */
static void place_half(const void *from, int half, size_t bytes, void *to)
{
    for (size_t r = 0; r < WINDOW_CELLS; r++) {
        memcpy((uint8_t *)to + (r * WINDOW_CELLS + (size_t)half * BEV_COLS) * bytes,
               (const uint8_t *)from + r * BEV_COLS * bytes, BEV_COLS * bytes);
    }
}

void layout_planes(const struct prepared *prepared, const struct scene *scene,
                   const struct anchor *anchor, struct window window, struct window_planes *out)
{
    uint8_t occupancy[BEV_CELLS];
    uint8_t vru[BEV_CELLS];
    uint8_t unseen[BEV_CELLS];
    uint16_t owner[BEV_CELLS];
    const struct raster_planes planes = {occupancy, unseen, vru, owner};
    _Static_assert((int)WINDOW_CELLS == (int)BEV_ROWS && WINDOW_CELLS == 2 * (int)BEV_COLS,
                   "the window is two grids side by side");
    for (int half = 0; half < 2; half++) {
        struct raster_view view = layout_half_view(scene, anchor, window, half);
        raster_lidar(&prepared->layers->kernels, prepared->scenario, scene, &view, &planes);
        place_half(occupancy, half, 1, out->occupancy);
        place_half(vru, half, 1, out->vru);
        place_half(unseen, half, 1, out->unseen);
        place_half(owner, half, sizeof owner[0], out->owner);
    }
}

/* ---- packing ---- */

/* The four cells of each position into channels first .. first + 3. */
static void pack_plane(const uint8_t *plane, int first, uint8_t *bev)
{
    for (int32_t row = 0; row < WINDOW_SIDE; row++) {
        const uint8_t *low = plane + (size_t)row * 2 * WINDOW_CELLS;
        const uint8_t *high = low + WINDOW_CELLS;
        uint8_t *out = bev + (size_t)row * WINDOW_SIDE * FRAME_BEV_CHANNELS + first;
        for (int32_t col = 0; col < WINDOW_SIDE; col++) {
            out[0] = low[2 * col];
            out[1] = low[2 * col + 1];
            out[2] = high[2 * col];
            out[3] = high[2 * col + 1];
            out += FRAME_BEV_CHANNELS;
        }
    }
}

void layout_pack_returns(const struct window_planes *planes, uint8_t *bev)
{
    pack_plane(planes->occupancy, FRAME_OCCUPANCY, bev);
    pack_plane(planes->vru, FRAME_VRU, bev);
    pack_plane(planes->unseen, FRAME_UNSEEN, bev);
}

void layout_pack_map(const struct prepared *prepared, const struct anchor *anchor,
                     struct window window, uint8_t *bev)
{
    uint8_t drivable[WINDOW_PLANE];
    uint8_t marking[WINDOW_PLANE];
    uint8_t halves[2][BEV_CELLS];
    for (int half = 0; half < 2; half++) {
        const struct raster_view view = layout_map_view(anchor, window, half);
        raster_map(prepared->layers, &view, halves[0], halves[1]);
        place_half(halves[0], half, 1, drivable);
        place_half(halves[1], half, 1, marking);
    }
    pack_plane(drivable, FRAME_DRIVABLE, bev);
    pack_plane(marking, FRAME_MARKING, bev);
}

uint8_t layout_velocity_byte(double velocity_mps)
{
    return (uint8_t)dmath_clamp(floor(VELOCITY_ZERO + 0.5 + VELOCITY_UNIT * velocity_mps), 0, 255);
}

static void clear_velocity(uint8_t *bev)
{
    for (size_t i = 0; i < WINDOW_POSITIONS; i++) {
        bev[i * FRAME_BEV_CHANNELS + FRAME_VELOCITY] = VELOCITY_ZERO;
        bev[i * FRAME_BEV_CHANNELS + FRAME_VELOCITY + 1] = VELOCITY_ZERO;
    }
}

/* A position that several agents share has the velocity of the last in index order. */
void layout_pack_velocity(const struct window_planes *planes, const struct scene *scene,
                          const struct anchor *anchor, uint8_t *bev)
{
    uint8_t of_agent[LIMIT_AGENTS][2];
    for (uint32_t i = 0; i < scene->agent_count; i++) {
        const struct agent_state *state = &scene->agents[i];
        double s;
        double c;
        dmath_sincos(state->pose.heading_rad - anchor->pose.heading_rad, &s, &c);
        of_agent[i][0] = layout_velocity_byte(state->speed_mps * c);
        of_agent[i][1] = layout_velocity_byte(state->speed_mps * s);
    }
    clear_velocity(bev);
    for (size_t row = 0; row < WINDOW_SIDE; row++) {
        const uint16_t *low = planes->owner + row * 2 * WINDOW_CELLS;
        const uint16_t *high = low + WINDOW_CELLS;
        uint8_t *out = bev + row * WINDOW_SIDE * FRAME_BEV_CHANNELS + FRAME_VELOCITY;
        for (size_t col = 0; col < WINDOW_SIDE; col++) {
            uint16_t a = low[2 * col] > low[2 * col + 1] ? low[2 * col] : low[2 * col + 1];
            uint16_t b = high[2 * col] > high[2 * col + 1] ? high[2 * col] : high[2 * col + 1];
            uint16_t owner = a > b ? a : b;
            if (owner != 0) {
                memcpy(out + col * FRAME_BEV_CHANNELS, of_agent[owner - 1], 2);
            }
        }
    }
}

void layout_bev(const struct prepared *prepared, const struct scene *scene,
                const struct anchor *anchor, struct window window, enum conditioning conditioning,
                uint8_t *bev)
{
    if (conditioning == CONDITIONING_AGENTS) {
        struct window_planes planes;
        layout_planes(prepared, scene, anchor, window, &planes);
        layout_pack_returns(&planes, bev);
        layout_pack_velocity(&planes, scene, anchor, bev);
    } else {
        memset(bev, 0, FRAME_BEV_BYTES);
        clear_velocity(bev);
    }
    if (conditioning != CONDITIONING_NONE) {
        layout_pack_map(prepared, anchor, window, bev);
    }
}

/* ---- cameras ---- */

void layout_camera_pack(const uint8_t *image, uint8_t *packed)
{
    for (size_t row = 0; row < FRAME_CAMERA_ROWS; row++) {
        const uint8_t *high = image + 2 * row * CAMERA_COLS * 3;
        const uint8_t *low = high + (size_t)CAMERA_COLS * 3;
        for (size_t col = 0; col < FRAME_CAMERA_COLS; col++) {
            memcpy(packed, high + col * 6, 6);
            memcpy(packed + 6, low + col * 6, 6);
            packed += FRAME_CAMERA_CHANNELS;
        }
    }
}

void layout_camera_unpack(const uint8_t *packed, uint8_t *image)
{
    for (size_t row = 0; row < FRAME_CAMERA_ROWS; row++) {
        uint8_t *high = image + 2 * row * CAMERA_COLS * 3;
        uint8_t *low = high + (size_t)CAMERA_COLS * 3;
        for (size_t col = 0; col < FRAME_CAMERA_COLS; col++) {
            memcpy(high + col * 6, packed, 6);
            memcpy(low + col * 6, packed + 6, 6);
            packed += FRAME_CAMERA_CHANNELS;
        }
    }
}

void layout_canonical(const struct scene *scene, enum conditioning conditioning, struct scene *out)
{
    /* As much of a scene as it uses; what lies beyond is not read by anyone. */
    uint32_t agents = conditioning == CONDITIONING_MAP ? 0 : scene->agent_count;
    memcpy(out, scene, offsetof(struct scene, agents) + agents * sizeof scene->agents[0]);
    out->agent_count = agents;
    out->conditions.weather = WEATHER_CLEAR;
    out->conditions.light = LIGHT_DAY;
    out->conditions.visibility_m = 200.0;
    /* Models were trained on maps without lights. */
    memset(out->signal_light, TRAFFIC_LIGHT_COUNT, sizeof out->signal_light);
}

void layout_cameras(const struct prepared *prepared, const struct scene *scene,
                    enum conditioning conditioning, uint8_t *cameras)
{
    if (conditioning == CONDITIONING_NONE) {
        memset(cameras, 128, FRAME_CAMERA_BYTES);
        return;
    }
    struct scene canonical;
    uint8_t image[CAMERA_BYTES];
    layout_canonical(scene, conditioning, &canonical);
    for (int camera = 0; camera < CAMERA_COUNT; camera++) {
        /* Without precipitation a picture needs no seed. */
        raster_camera(prepared->layers, prepared->scenario, &canonical, 0,
                      (enum camera_index)camera, image);
        layout_camera_pack(image, cameras + (size_t)camera * (FRAME_CAMERA_BYTES / CAMERA_COUNT));
    }
}
