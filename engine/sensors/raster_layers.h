/*
 * Raster layers: what a map looks like from above, prerasterised once per map into sparse square
 * tiles. Shared by raster_bev.c (coverage texels at 0.5 m) and raster_camera.c (paint at 6.25 cm,
 * materials at 0.5 m). Private to the rasteriser.
 *
 * The grid is anchored at the map's own lowest corner, so a map that is moved by any amount has the
 * same texels, and positions are precise however far from the origin it lies. Immutable once built.
 */
#ifndef SWERVE_ENGINE_SENSORS_RASTER_LAYERS_H
#define SWERVE_ENGINE_SENSORS_RASTER_LAYERS_H

#include "base/geom.h"
#include "base/status.h"
#include "engine/sensors/raster.h"
#include "kernels/picture_rows.h"
#include "kernels/raster.h"
#include "schemas/scenario.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* A traffic light of one lane (raster_signals.c). */
struct raster_head {
    uint32_t signal; /* index in the map */
    enum traffic_sign sign;
    struct pose line;    /* the middle of the stop line, heading as traffic drives */
    double half_m;       /* of the lane's width */
    double sine, cosine; /* of the heading */
};

/* Grounds whose texels are all alike. */
enum raster_ground {
    RASTER_GROUND_EMPTY = 0, /* neither road nor paint */
    RASTER_GROUND_ROAD,      /* drivable in full, without paint */
    RASTER_GROUND_MIXED      /* anything else; also the number of the others */
};

/* Bit x of row y of a tile: the ground is all that lies around that texel (raster_plain.c). */
struct raster_plain {
    uint32_t rows[RASTER_GROUND_MIXED][RASTER_TILE_TEXELS];
};

struct raster_layers {
    atomic_uint references;
    struct raster_key key;
    struct raster_map map;      /* owned; kernels/raster.h */
    struct raster_plain *plain; /* [tile_count], owned; nothing is known of tile 0 */
    uint32_t head_count;
    struct raster_head *heads; /* owned; NULL: the map has no signals */
    struct raster_kernels kernels;
    struct picture_kernels rows;
};

/* Fills *window for sampling a grid whose cell (0, 0) has its centre at `first` (world frame) and
 * whose next row and column lie at the given offsets. Every cell must lie within 54.5 m of
 * `middle`. */
void raster_layers_window(const struct raster_layers *layers, struct vec2 middle, struct vec2 first,
                          struct vec2 row_step, struct vec2 col_step, struct raster_window *window);

/* Sets the samples of a tile that a polygon covers (even-odd; a sample exactly on a left or lower
 * edge is inside). `corner` is the tile's lowest corner. count >= 3. */
void raster_mask_fill(struct raster_mask *mask, struct vec2 corner, const struct vec2 *points,
                      uint32_t count);

/* Number of samples per texel (0..64) for a whole tile, row-major. */
void raster_mask_count(const struct raster_mask *mask, uint8_t counts[RASTER_TILE_CELLS]);

/* The heads of a map's signals; the caller frees them. */
enum status raster_heads_create(const struct map *map, struct raster_head **out, uint32_t *count,
                                struct error *error);

/* [tile_count] of a map whose texels are there; the caller frees them. NULL: out of memory. */
struct raster_plain *raster_plain_create(const struct raster_map *map);

/* ---- what a map consists of (raster_shapes.c) ---- */

enum raster_shape {
    SHAPE_DRIVABLE = 0,
    SHAPE_MARKING,
    SHAPE_CROSSWALK,
    SHAPE_MATERIAL, /* only a material, no layer */
    SHAPE_COUNT
};

/* Receives polygons; they are borrowed for the call. Returning false stops the walk. */
typedef bool (*raster_shape_visit)(void *context, enum raster_shape shape,
                                   enum raster_material material, const struct vec2 *points,
                                   uint32_t count);

/* Walks every polygon of a map in a fixed order: sidewalks, extra drivable areas, lanes, surface
 * patches, crosswalks, markings. Stops quietly when the visitor does; fails only for want of
 * memory. */
enum status raster_shapes_walk(const struct map *map, raster_shape_visit visit, void *context,
                               struct error *error);

#endif
