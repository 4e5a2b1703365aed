/*
 * Raster layers: what a map looks like from above, prerasterised once per map into sparse square
 * tiles. Shared by raster_bev.c (coverage texels at 0.5 m) and raster_camera.c (paint at 6.25 cm,
 * materials at 0.5 m). Private to the rasteriser.
 *
 * The grid is anchored at the map's own lowest corner, so a map that is moved by any amount has the
 * same texels, and positions are precise however far from the origin it lies. Immutable once built.
 */
#ifndef SWERVE_ENGINE_RASTER_LAYERS_H
#define SWERVE_ENGINE_RASTER_LAYERS_H

#include "base/geom.h"
#include "base/status.h"
#include "kernels/raster.h"
#include "schemas/scenario.h"

#include <stdbool.h>
#include <stdint.h>

#define RASTER_TEXEL_M 0.5
#define RASTER_TILE_M 16.0
#define RASTER_SAMPLE_M 0.0625

enum {
    RASTER_TILE_SAMPLES = 256,                    /* per side; 8 x 8 samples are one texel */
    RASTER_MASK_WORDS = RASTER_TILE_SAMPLES / 64, /* per row of samples */
    RASTER_TILE_CELLS = RASTER_TILE_TEXELS * RASTER_TILE_TEXELS,
    RASTER_TILES_MAX = 16384, /* 4.2 square kilometres of tiles that hold something */
};

/* One bit per sample point; bit i of word w in row j is the point (64 w + i + 1/2, j + 1/2). */
struct raster_mask {
    uint64_t rows[RASTER_TILE_SAMPLES][RASTER_MASK_WORDS];
};

/* What the ground of a texel is made of, for pictures. */
enum raster_material {
    MATERIAL_NONE = 0,
    MATERIAL_SIDEWALK,
    MATERIAL_ROAD,
    MATERIAL_SHOULDER,
    MATERIAL_CYCLE,
    MATERIAL_WATER,
    MATERIAL_ICE,
    MATERIAL_OIL,
    MATERIAL_GRAVEL,
    MATERIAL_SNOW,
    MATERIAL_COUNT
};

/* What only the cameras need. */
struct raster_detail {
    struct raster_mask paint; /* lane markings and zebra bars */
    uint8_t material[RASTER_TILE_CELLS];
};

struct raster_slot {
    uint64_t key;
    uint32_t tile; /* 0: free */
};

struct raster_layers {
    struct vec2 anchor;  /* corner of tile (0, 0) */
    uint32_t tile_count; /* tile 0, the empty one, included */
    uint32_t slot_mask;  /* hash table of slot_mask + 1 entries */
    struct raster_slot *slots;
    uint64_t *texels; /* [tile_count][RASTER_TILE_CELLS], layer A drivable, B marking */
    struct raster_detail *details; /* [tile_count] */
    struct raster_kernels kernels;
};

/* Number of the tile at tile coordinates (x, y), 0 when nothing is there. */
uint32_t raster_layers_tile(const struct raster_layers *layers, int32_t x, int32_t y);

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
