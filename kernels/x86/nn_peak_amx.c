/*
 * Tile products in registers: four independent sums.
 */
#include "kernels/nn_internal.h"
#include "kernels/x86/nn_tiles_amx.h"

double nn_peak_amx(uint32_t rounds)
{
    tiles_configure(TILE_ROWS); /* clears all tiles */
    for (uint32_t round = 0; round < rounds; round++) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
    _tile_release();
    return 2.0 * TILE_ROWS * TILE_COLUMNS * 32 * 4 * rounds;
}
