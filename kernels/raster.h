/*
 * Raster kernels: rotated sampling of the static map layers into the ego-aligned BEV grid.
 *
 * The layers are a sparse texture, anchored in the world, of square tiles; a frame looks at a
 * window of RASTER_WINDOW_TILES^2 of them through a directory of tile numbers. One 64-bit texel
 * holds the 2 x 2 neighbourhood that bilinear interpolation needs, for both layers, so one load
 * serves a cell and no tile border needs care. All arithmetic is on integers: every variant gives
 * the same bits (tests/kernels/test_raster.c compares them).
 */
#ifndef SWERVE_KERNELS_RASTER_H
#define SWERVE_KERNELS_RASTER_H

#include <stdint.h>

enum {
    RASTER_TILE_BITS = 5,
    RASTER_TILE_TEXELS = 1 << RASTER_TILE_BITS, /* per side */
    RASTER_WINDOW_BITS = 3,
    RASTER_WINDOW_TILES = 1 << RASTER_WINDOW_BITS, /* per side */
    RASTER_POSITION_BITS = 16,                     /* fraction bits of a position in texels */
    RASTER_WEIGHT_BITS = 6,                        /* fraction bits that interpolation uses */
};

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

struct raster_kernels {
    /* Writes rows * cols bytes to each of a and b, row-major without padding, no byte more.
     * Interpolated with 6-bit weights, rounded to nearest. The outputs alias nothing. */
    void (*sample)(const struct raster_window *window, uint32_t rows, uint32_t cols, uint8_t *a,
                   uint8_t *b);
};

/* Fills the table with the best variants that `flags` (enum cpu_flag) allows. */
void raster_kernels_init(struct raster_kernels *kernels, uint32_t flags);

/* The variants, for tables and tests; the x86 ones exist only there and need their flag. */
void raster_sample_ref(const struct raster_window *window, uint32_t rows, uint32_t cols, uint8_t *a,
                       uint8_t *b);
void raster_sample_avx2(const struct raster_window *window, uint32_t rows, uint32_t cols,
                        uint8_t *a, uint8_t *b);
void raster_sample_avx512(const struct raster_window *window, uint32_t rows, uint32_t cols,
                          uint8_t *a, uint8_t *b);

#endif
