/*
 * Plain ground: where a map's layers hold one value far enough around that a block of an
 * observation's cells, turned any way, needs no sampling. Two bits per texel say so; most of what a
 * grid shows is off the road or in the middle of it. What is drawn has the same bits as if every
 * cell had been sampled: blending equal bytes gives that byte.
 */
#include "engine/sensors/raster_view.h"
#include "kernels/raster_cell.h"

#include <stdlib.h>
#include <string.h>

enum {
    BLOCK = 8,  /* cells per side; a cell is as wide as a texel */
    REFER = 3,  /* row and column in a block of the cell that stands for it */
    RADIUS = 6, /* texels from there to the block's farthest, sqrt(2) * (BLOCK - 1 - REFER) */
    BAND = 2 * RADIUS + 1,
    ROWS = RASTER_TILE_TEXELS + 2 * RADIUS,
    SIDE = 3, /* tiles side by side */
};
_Static_assert(BEV_ROWS % BLOCK == 0 && BEV_COLS % BLOCK == 0, "blocks fill the grid");
_Static_assert(RASTER_TILE_TEXELS == 32 && BAND == 13, "widths of the shifts below");

/* Texels of the layers where one value is all around: nothing; drivable, and nothing marked. */
static const uint64_t plain_texels[RASTER_GROUND_MIXED] = {
    [RASTER_GROUND_EMPTY] = 0,
    [RASTER_GROUND_ROAD] = UINT64_C(0xFFFFFFFF),
};

/* Bits of a tile's texels that have a ground's value. */
static void mark_tile(const uint64_t *texels, struct raster_plain *out)
{
    for (int32_t y = 0; y < RASTER_TILE_TEXELS; y++) {
        for (int g = 0; g < RASTER_GROUND_MIXED; g++) {
            uint32_t bits = 0;
            for (int32_t x = 0; x < RASTER_TILE_TEXELS; x++) {
                bits |= (uint32_t)(texels[y * RASTER_TILE_TEXELS + x] == plain_texels[g]) << x;
            }
            out->rows[g][y] = bits;
        }
    }
}

/* Of three rows side by side: bits of the middle one whose neighbours in the row are set as well.
 */
static uint32_t narrow(uint32_t left, uint32_t middle, uint32_t right)
{
    uint64_t row = left >> (RASTER_TILE_TEXELS - RADIUS) | (uint64_t)middle << RADIUS |
                   (uint64_t)right << (RASTER_TILE_TEXELS + RADIUS);
    row &= row >> 1;
    row &= row >> 2;
    row &= row >> 4;
    return (uint32_t)(row & row >> 5);
}

/* Keeps the bits of a tile around which everything is set. */
static void shrink_tile(const struct raster_plain *marks, const uint32_t around[][SIDE],
                        struct raster_plain *out)
{
    for (int g = 0; g < RASTER_GROUND_MIXED; g++) {
        uint32_t rows[ROWS];
        for (int32_t i = 0; i < ROWS; i++) {
            int32_t y = i - RADIUS + RASTER_TILE_TEXELS;
            const uint32_t *tiles = around[y / RASTER_TILE_TEXELS];
            y %= RASTER_TILE_TEXELS;
            rows[i] = narrow(marks[tiles[0]].rows[g][y], marks[tiles[1]].rows[g][y],
                             marks[tiles[2]].rows[g][y]);
        }
        for (int32_t y = 0; y < RASTER_TILE_TEXELS; y++) {
            uint32_t bits = ~0u;
            for (int32_t k = 0; k < BAND; k++) {
                bits &= rows[y + k];
            }
            out->rows[g][y] = bits;
        }
    }
}

struct raster_plain *raster_plain_create(const struct raster_map *map)
{
    struct raster_plain *marks = calloc(map->tile_count, sizeof *marks);
    struct raster_plain *plain = calloc(map->tile_count, sizeof *plain);
    for (uint32_t tile = 0; marks != NULL && tile < map->tile_count; tile++) {
        mark_tile(map->texels + (size_t)tile * RASTER_TILE_CELLS, &marks[tile]);
    }
    for (uint32_t i = 0; marks != NULL && plain != NULL && i <= map->slot_mask; i++) {
        const struct raster_slot *slot = &map->slots[i];
        uint32_t around[SIDE][SIDE];
        if (slot->tile == 0) {
            continue;
        }
        for (int32_t k = 0; k < SIDE * SIDE; k++) {
            around[k / SIDE][k % SIDE] =
                raster_map_tile(map, (int32_t)(uint32_t)slot->key + k % SIDE - 1,
                                (int32_t)(slot->key >> 32) + k / SIDE - 1);
        }
        shrink_tile(marks, around, &plain[slot->tile]);
    }
    if (marks == NULL) {
        free(plain);
        plain = NULL;
    }
    free(marks);
    return plain;
}

/* Ground of the block whose cell of reference lies at a position. Mixed ground has to be sampled.
 * The empty tile has no bits: the tiles around are looked at. */
static enum raster_ground ground_at(const struct raster_plain *plain,
                                    const struct raster_window *window, uint32_t x, uint32_t y)
{
    const uint32_t reach = (uint32_t)RADIUS << RASTER_POSITION_BITS;
    uint32_t tile = window->directory[raster_cell_place(x, y)];
    if (tile == 0) {
        return (window->directory[raster_cell_place(x - reach, y - reach)] |
                window->directory[raster_cell_place(x + reach, y - reach)] |
                window->directory[raster_cell_place(x - reach, y + reach)] |
                window->directory[raster_cell_place(x + reach, y + reach)]) == 0
                   ? RASTER_GROUND_EMPTY
                   : RASTER_GROUND_MIXED;
    }
    const uint32_t mask = RASTER_TILE_TEXELS - 1;
    uint32_t row = y >> RASTER_POSITION_BITS & mask;
    uint32_t bit = x >> RASTER_POSITION_BITS & mask;
    return plain[tile].rows[RASTER_GROUND_EMPTY][row] >> bit & 1  ? RASTER_GROUND_EMPTY
           : plain[tile].rows[RASTER_GROUND_ROAD][row] >> bit & 1 ? RASTER_GROUND_ROAD
                                                                  : RASTER_GROUND_MIXED;
}

void raster_plain_map(const struct raster_layers *layers, const struct raster_window *whole,
                      uint8_t *drivable, uint8_t *marking)
{
    const struct raster_window window = *whole;
    struct raster_window part = window;
    const uint32_t blocks = BEV_COLS / BLOCK;
    /* Most blocks are empty: both planes at once take less than those one by one. */
    memset(drivable, 0, BEV_CELLS);
    memset(marking, 0, BEV_CELLS);
    for (uint32_t r = 0; r < BEV_ROWS; r += BLOCK) {
        uint32_t first = 0; /* columns from here to this block have to be sampled */
        uint32_t x_row = (uint32_t)window.x0 + r * (uint32_t)window.row_dx;
        uint32_t y_row = (uint32_t)window.y0 + r * (uint32_t)window.row_dy;
        uint32_t x = x_row + REFER * ((uint32_t)window.row_dx + (uint32_t)window.col_dx);
        uint32_t y = y_row + REFER * ((uint32_t)window.row_dy + (uint32_t)window.col_dy);
        uint8_t *band[2] = {drivable + r * BEV_COLS, marking + r * BEV_COLS};
        for (uint32_t b = 0; b <= blocks; b++) {
            enum raster_ground ground =
                b < blocks ? ground_at(layers->plain, &window, x, y) : RASTER_GROUND_EMPTY;
            x += BLOCK * (uint32_t)window.col_dx;
            y += BLOCK * (uint32_t)window.col_dy;
            if (ground == RASTER_GROUND_MIXED) {
                continue;
            }
            if (first < b * BLOCK) {
                part.x0 = (int32_t)(x_row + first * (uint32_t)window.col_dx);
                part.y0 = (int32_t)(y_row + first * (uint32_t)window.col_dy);
                layers->kernels.sample(&part, BLOCK, b * BLOCK - first, BEV_COLS, band[0] + first,
                                       band[1] + first);
            }
            first = (b + 1) * BLOCK;
            for (uint32_t k = 0; ground == RASTER_GROUND_ROAD && k < BLOCK; k++) {
                memset(band[0] + k * BEV_COLS + b * BLOCK, 255, BLOCK);
            }
        }
    }
}
