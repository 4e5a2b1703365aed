/*
 * Raster kernels in plain C: the definition that every other variant must equal bit for bit.
 * Positions are unsigned so that stepping past the window wraps instead of overflowing.
 */
#include "kernels/raster.h"

/* Bilinear blend of four bytes (low byte first) with weights that sum to 64 per axis. */
static uint8_t blend(uint32_t quad, uint32_t fx, uint32_t fy)
{
    uint32_t one = 1u << RASTER_WEIGHT_BITS;
    uint32_t near_row = (quad & 255) * (one - fx) + (quad >> 8 & 255) * fx;
    uint32_t far_row = (quad >> 16 & 255) * (one - fx) + (quad >> 24) * fx;
    uint32_t sum = near_row * (one - fy) + far_row * fy;
    uint32_t half = 1u << (2 * RASTER_WEIGHT_BITS - 1);
    return (uint8_t)((sum + half) >> (2 * RASTER_WEIGHT_BITS));
}

void raster_sample_ref(const struct raster_window *window, uint32_t rows, uint32_t cols, uint8_t *a,
                       uint8_t *b)
{
    const uint32_t tile_mask = RASTER_TILE_TEXELS - 1;
    const uint32_t window_mask = RASTER_WINDOW_TILES - 1;
    const uint32_t weight_mask = (1u << RASTER_WEIGHT_BITS) - 1;
    const int weight_shift = RASTER_POSITION_BITS - RASTER_WEIGHT_BITS;
    for (uint32_t r = 0; r < rows; r++) {
        uint32_t x = (uint32_t)window->x0 + r * (uint32_t)window->row_dx;
        uint32_t y = (uint32_t)window->y0 + r * (uint32_t)window->row_dy;
        for (uint32_t c = 0; c < cols; c++) {
            uint32_t tx = x >> RASTER_POSITION_BITS;
            uint32_t ty = y >> RASTER_POSITION_BITS;
            uint32_t slot = (ty >> RASTER_TILE_BITS & window_mask) << RASTER_WINDOW_BITS |
                            (tx >> RASTER_TILE_BITS & window_mask);
            uint32_t index = (uint32_t)window->directory[slot] << (2 * RASTER_TILE_BITS) |
                             (ty & tile_mask) << RASTER_TILE_BITS | (tx & tile_mask);
            uint64_t texel = window->texels[index];
            uint32_t fx = x >> weight_shift & weight_mask;
            uint32_t fy = y >> weight_shift & weight_mask;
            a[r * cols + c] = blend((uint32_t)texel, fx, fy);
            b[r * cols + c] = blend((uint32_t)(texel >> 32), fx, fy);
            x += (uint32_t)window->col_dx;
            y += (uint32_t)window->col_dy;
        }
    }
}

/* Smallest integer >= x, clamped to [0, RASTER_COLS_MAX]. */
static uint32_t ceil_column(double x)
{
    x = x > 0 ? x : 0;
    x = x < RASTER_COLS_MAX ? x : RASTER_COLS_MAX;
    uint32_t k = (uint32_t)x;
    return k + (k < x);
}

/* Bits from..63 of a word whose bit 0 is column `base`. */
static uint64_t bits_from(uint32_t column, uint32_t base)
{
    uint32_t shift = column > base ? column - base : 0;
    return shift < 64 ? ~UINT64_C(0) << shift : 0;
}

void raster_shade_ref(const struct raster_region *region, uint32_t first, uint32_t end,
                      const struct raster_marks *marks)
{
    for (uint32_t r = first; r < end; r++) {
        double low = region->low_offset[0] + region->low_slope[0] * r;
        for (uint32_t i = 1; i < region->low_count; i++) {
            double bound = region->low_offset[i] + region->low_slope[i] * r;
            low = low > bound ? low : bound;
        }
        double high = region->high_offset[0] + region->high_slope[0] * r;
        for (uint32_t i = 1; i < region->high_count; i++) {
            double bound = region->high_offset[i] + region->high_slope[i] * r;
            high = high < bound ? high : bound;
        }
        uint32_t from = ceil_column(low);
        uint32_t to = ceil_column(high);
        marks->low[r] |= bits_from(from, 0) & ~bits_from(to, 0);
        marks->high[r] |= bits_from(from, 64) & ~bits_from(to, 64);
    }
}

void raster_expand_ref(const struct raster_marks *marks, uint32_t rows, uint32_t cols, uint8_t *out)
{
    for (uint32_t r = 0; r < rows; r++) {
        for (uint32_t c = 0; c < cols; c++) {
            uint64_t word = c < 64 ? marks->low[r] : marks->high[r];
            out[r * cols + c] = word >> (c & 63) & 1 ? 255 : 0;
        }
    }
}
