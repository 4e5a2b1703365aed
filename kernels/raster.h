/*
 * Raster kernels: the three inner loops of the BEV grid. `sample` rotates the static map layers
 * into ego's frame, `shade` marks the columns of each row that lie in a convex region, `expand`
 * turns such marks into bytes.
 *
 * The layers are a sparse texture, anchored in the world, of square tiles; a frame looks at a
 * window of RASTER_WINDOW_TILES^2 of them through a directory of tile numbers. One 64-bit texel
 * holds the 2 x 2 neighbourhood that bilinear interpolation needs, for both layers, so one load
 * serves a cell and no tile border needs care. Every variant gives the same bits
 * (tests/kernels/test_raster.c compares them): `sample` and `expand` work on integers, `shade` on
 * doubles with one multiplication and one addition per bound, never fused.
 */
#ifndef SWERVE_KERNELS_RASTER_H
#define SWERVE_KERNELS_RASTER_H

#include "base/both.h"
#include "base/geom.h"
#include "base/rng.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    RASTER_TILE_BITS = 5,
    RASTER_TILE_TEXELS = 1 << RASTER_TILE_BITS, /* per side */
    RASTER_WINDOW_BITS = 3,
    RASTER_WINDOW_TILES = 1 << RASTER_WINDOW_BITS, /* per side */
    RASTER_POSITION_BITS = 16,                     /* fraction bits of a position in texels */
    RASTER_WEIGHT_BITS = 6,                        /* fraction bits that interpolation uses */
};

/* ---- the map ---- */

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

/* Material of a texel's ground, for pictures. */
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

/* Layers that only the cameras need. */
struct raster_detail {
    struct raster_mask paint; /* lane markings and zebra bars */
    uint8_t material[RASTER_TILE_CELLS];
};

struct raster_slot {
    uint64_t key;
    uint32_t tile; /* 0: free */
};

/* A map from above, in sparse square tiles anchored in the world (engine/sensors/raster_layers.h).
 */
struct raster_map {
    struct vec2 anchor;  /* corner of tile (0, 0) */
    uint32_t tile_count; /* tile 0, the empty one, included */
    uint32_t slot_mask;  /* hash table of slot_mask + 1 entries */
    struct raster_slot *slots;
    uint64_t *texels; /* [tile_count][RASTER_TILE_CELLS], layer A drivable, B marking */
    struct raster_detail *details; /* [tile_count] */
};

BOTH_FN uint64_t raster_map_key(int32_t x, int32_t y)
{
    return (uint64_t)(uint32_t)y << 32 | (uint32_t)x;
}

/* The slot that holds the key, or the free one where it belongs. */
BOTH_FN struct raster_slot *raster_map_find(const struct raster_map *map, uint64_t key)
{
    uint32_t i = (uint32_t)rng_mix(key) & map->slot_mask;
    while (map->slots[i].tile != 0 && map->slots[i].key != key) {
        i = (i + 1) & map->slot_mask;
    }
    return &map->slots[i];
}

/* Number of the tile at tile coordinates (x, y), 0 when nothing is there. */
BOTH_FN uint32_t raster_map_tile(const struct raster_map *map, int32_t x, int32_t y)
{
    return raster_map_find(map, raster_map_key(x, y))->tile;
}

/* ---- kernels ---- */

/* Byte k of a texel at column x, row y: k = 0..3 layer A at (x, y), (x + 1, y), (x, y + 1),
 * (x + 1, y + 1); k = 4..7 the same for layer B. Little-endian. */
struct raster_window {
    const uint64_t *texels; /* [tile][RASTER_TILE_TEXELS][RASTER_TILE_TEXELS]; tile 0 is all zero */
    uint16_t directory[RASTER_WINDOW_TILES * RASTER_WINDOW_TILES]; /* [tile y][tile x], 0: empty */
    /* Sample (row, col) lies at x = x0 + row * row_dx + col * col_dx, y likewise, in 2^-16 texels
     * from the window's corner, measured between texel centres. Coordinates wrap at the window's
     * width, so any position is safe. */
    int32_t x0, y0, row_dx, row_dy, col_dx, col_dy;
};

enum { RASTER_BOUNDS = 4, RASTER_COLS_MAX = 128 };

/* A convex region cut by rows: in row r it spans the columns c with
 * max(low_offset[i] + low_slope[i] * r) <= c < min(high_offset[i] + high_slope[i] * r). Unused
 * bounds are repetitions or the grid's own edges. All finite. */
struct raster_region {
    double low_offset[RASTER_BOUNDS], low_slope[RASTER_BOUNDS];
    double high_offset[RASTER_BOUNDS], high_slope[RASTER_BOUNDS];
    uint32_t low_count, high_count; /* 1..RASTER_BOUNDS each */
};

/* Marks of columns 0..63 and 64..127, one pair of words per row. */
struct raster_marks {
    uint64_t *low;
    uint64_t *high;
};

struct raster_kernels {
    /* Writes rows x cols bytes to each of a and b, row-major, rows `stride` >= cols bytes apart, no
     * byte more. Interpolated with 6-bit weights, rounded to nearest. The outputs alias nothing. */
    void (*sample)(const struct raster_window *window, uint32_t rows, uint32_t cols, size_t stride,
                   uint8_t *a, uint8_t *b);

    /* Sets the marks of the region's columns, clipped to 0..127, in rows first <= r < end; other
     * marks and rows keep their bits. */
    void (*shade)(const struct raster_region *region, uint32_t first, uint32_t end,
                  const struct raster_marks *marks);

    /* Writes rows * cols bytes, row-major without padding: 255 where marked, else 0. cols <= 128.
     */
    void (*expand)(const struct raster_marks *marks, uint32_t rows, uint32_t cols, uint8_t *out);
};

/* Fills the table with the best variants that `flags` (enum cpu_flag) allows. */
void raster_kernels_init(struct raster_kernels *kernels, uint32_t flags);

/* The variants, for tables and tests; the x86 ones exist only there and need their flag. */
void raster_sample_ref(const struct raster_window *window, uint32_t rows, uint32_t cols,
                       size_t stride, uint8_t *a, uint8_t *b);
void raster_shade_ref(const struct raster_region *region, uint32_t first, uint32_t end,
                      const struct raster_marks *marks);
void raster_expand_ref(const struct raster_marks *marks, uint32_t rows, uint32_t cols,
                       uint8_t *out);
void raster_sample_avx2(const struct raster_window *window, uint32_t rows, uint32_t cols,
                        size_t stride, uint8_t *a, uint8_t *b);
void raster_shade_avx2(const struct raster_region *region, uint32_t first, uint32_t end,
                       const struct raster_marks *marks);
void raster_expand_avx2(const struct raster_marks *marks, uint32_t rows, uint32_t cols,
                        uint8_t *out);
/* `sample` with AVX2, for grids of whole 8 x 8 blocks whose rows or columns go along the texture's
 * lines, a texel a cell. False: this one is none; nothing is written. */
bool raster_sample_straight(const struct raster_window *window, uint32_t rows, uint32_t cols,
                            size_t stride, uint8_t *a, uint8_t *b);
void raster_sample_avx512(const struct raster_window *window, uint32_t rows, uint32_t cols,
                          size_t stride, uint8_t *a, uint8_t *b);
void raster_shade_avx512(const struct raster_region *region, uint32_t first, uint32_t end,
                         const struct raster_marks *marks);
void raster_expand_avx512(const struct raster_marks *marks, uint32_t rows, uint32_t cols,
                          uint8_t *out);

#endif
