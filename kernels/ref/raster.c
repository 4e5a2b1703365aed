/*
 * Raster kernels in plain C: the definition that every other variant must equal bit for bit.
 */
#include "kernels/raster_cell.h"

void raster_sample_ref(const struct raster_window *window, uint32_t rows, uint32_t cols,
                       size_t stride, uint8_t *a, uint8_t *b)
{
    for (uint32_t r = 0; r < rows; r++) {
        uint32_t x = (uint32_t)window->x0 + r * (uint32_t)window->row_dx;
        uint32_t y = (uint32_t)window->y0 + r * (uint32_t)window->row_dy;
        for (uint32_t c = 0; c < cols; c++) {
            uint32_t tile = window->directory[raster_cell_place(x, y)];
            uint64_t texel = window->texels[raster_cell_texel(tile, x, y)];
            a[r * stride + c] = raster_cell_blend((uint32_t)texel, x, y);
            b[r * stride + c] = raster_cell_blend((uint32_t)(texel >> 32), x, y);
            x += (uint32_t)window->col_dx;
            y += (uint32_t)window->col_dy;
        }
    }
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
        uint32_t from = raster_cell_ceil(low);
        uint32_t to = raster_cell_ceil(high);
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
