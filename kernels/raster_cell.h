/*
 * Raster cells: what one cell of a grid shows of the map, and which columns of one row a convex
 * region holds. The definitions of kernels/ref/raster.c and of the device's kernels.
 */
#ifndef SWERVE_KERNELS_RASTER_CELL_H
#define SWERVE_KERNELS_RASTER_CELL_H

#include "base/both.h"
#include "kernels/raster.h"

/* Index of a position's tile in a window's directory. Positions are unsigned, so that stepping
 * past the window wraps instead of overflowing. */
BOTH_FN uint32_t raster_cell_place(uint32_t x, uint32_t y)
{
    const uint32_t mask = RASTER_WINDOW_TILES - 1;
    uint32_t tile_x = x >> (RASTER_POSITION_BITS + RASTER_TILE_BITS) & mask;
    uint32_t tile_y = y >> (RASTER_POSITION_BITS + RASTER_TILE_BITS) & mask;
    return tile_y << RASTER_WINDOW_BITS | tile_x;
}

/* The texel of a position in its tile. */
BOTH_FN uint32_t raster_cell_texel(uint32_t tile, uint32_t x, uint32_t y)
{
    const uint32_t mask = RASTER_TILE_TEXELS - 1;
    uint32_t texel_x = x >> RASTER_POSITION_BITS & mask;
    uint32_t texel_y = y >> RASTER_POSITION_BITS & mask;
    return tile << (2 * RASTER_TILE_BITS) | texel_y << RASTER_TILE_BITS | texel_x;
}

/* Bilinear blend of four bytes (low byte first) with the weights of a position. */
BOTH_FN uint8_t raster_cell_blend(uint32_t quad, uint32_t x, uint32_t y)
{
    const uint32_t one = 1u << RASTER_WEIGHT_BITS;
    const uint32_t half = 1u << (2 * RASTER_WEIGHT_BITS - 1);
    uint32_t fx = x >> (RASTER_POSITION_BITS - RASTER_WEIGHT_BITS) & (one - 1);
    uint32_t fy = y >> (RASTER_POSITION_BITS - RASTER_WEIGHT_BITS) & (one - 1);
    uint32_t near_row = (quad & 255) * (one - fx) + (quad >> 8 & 255) * fx;
    uint32_t far_row = (quad >> 16 & 255) * (one - fx) + (quad >> 24) * fx;
    uint32_t sum = near_row * (one - fy) + far_row * fy;
    return (uint8_t)((sum + half) >> (2 * RASTER_WEIGHT_BITS));
}

/* Contents of a cell of a window's grid: layer A in the low byte, B in the next. The tiles are the
 * map's, wherever the window's texels point; a number that the map does not have is its empty one.
 */
BOTH_FN uint32_t raster_cell_ground(const struct raster_window *window,
                                    const struct raster_map *map, uint32_t row, uint32_t col)
{
    uint32_t x =
        (uint32_t)window->x0 + row * (uint32_t)window->row_dx + col * (uint32_t)window->col_dx;
    uint32_t y =
        (uint32_t)window->y0 + row * (uint32_t)window->row_dy + col * (uint32_t)window->col_dy;
    uint32_t tile = window->directory[raster_cell_place(x, y)];
    tile = tile < map->tile_count ? tile : 0;
    uint64_t texel = map->texels[raster_cell_texel(tile, x, y)];
    return raster_cell_blend((uint32_t)texel, x, y) |
           (uint32_t)raster_cell_blend((uint32_t)(texel >> 32), x, y) << 8;
}

/* Smallest integer >= x, clamped to [0, RASTER_COLS_MAX]. */
BOTH_FN uint32_t raster_cell_ceil(double x)
{
    x = x > 0 ? x : 0;
    x = x < RASTER_COLS_MAX ? x : (double)RASTER_COLS_MAX;
    uint32_t k = (uint32_t)x;
    return k + (k < x);
}

#endif
