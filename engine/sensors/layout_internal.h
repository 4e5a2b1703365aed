/*
 * Layout internals: the window as planes of cells, before they are packed into a frame. Shared by
 * layout.c (the noise-free scene) and layout_sensed.c (what sensors make of it).
 *
 * A plane is [WINDOW_CELLS][WINDOW_CELLS]: row r covers u from 8 i + r / 2, column c covers v from
 * 8 j + c / 2, in metres.
 */
#ifndef SWERVE_ENGINE_SENSORS_LAYOUT_INTERNAL_H
#define SWERVE_ENGINE_SENSORS_LAYOUT_INTERNAL_H

#include "engine/sensors/layout.h"
#include "engine/sensors/raster_view.h"

enum { WINDOW_CELLS = 2 * WINDOW_SIDE, WINDOW_PLANE = WINDOW_CELLS * WINDOW_CELLS };

#define WINDOW_PATCH_M 8.0

struct window_planes {
    uint8_t occupancy[WINDOW_PLANE];
    uint8_t vru[WINDOW_PLANE];
    uint8_t unseen[WINDOW_PLANE];
    uint16_t owner[WINDOW_PLANE]; /* 1 + agent of the return, 0: none */
};

/* Ego in window cells: row and column of its centre, fractions included. */
struct window_place {
    double row;
    double col;
};

struct window_place layout_place(const struct scene *scene, const struct anchor *anchor,
                                 struct window window);

/* One half of the window (0: lower v, 1: upper): around the lidar; and as the map is looked at,
 * from the anchor, so that its bytes stay as long as the window does. */
struct raster_view layout_half_view(const struct scene *scene, const struct anchor *anchor,
                                    struct window window, int half);
struct raster_view layout_map_view(const struct anchor *anchor, struct window window, int half);

/* A velocity in a frame's unit. */
uint8_t layout_velocity_byte(double velocity_mps);

/* Returns of a perfect sensor. */
void layout_planes(const struct prepared *prepared, const struct scene *scene,
                   const struct anchor *anchor, struct window window, struct window_planes *out);

/* Packs occupancy, vru, unseen into channels 0..11 of a frame. */
void layout_pack_returns(const struct window_planes *planes, uint8_t *bev);

/* Channels 12..21: the map, and the velocity of the owners. */
void layout_pack_map(const struct prepared *prepared, const struct anchor *anchor,
                     struct window window, uint8_t *bev);
void layout_pack_velocity(const struct window_planes *planes, const struct scene *scene,
                          const struct anchor *anchor, uint8_t *bev);

/* The scene as camera layouts show it: by day, in clear weather, in the conditioning `map` without
 * agents. */
void layout_canonical(const struct scene *scene, enum conditioning conditioning, struct scene *out);

#endif
