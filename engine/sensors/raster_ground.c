/*
 * Ground: what cameras see of the map, at image resolution. The formulas are in
 * kernels/camera_ground.h, the loops along a row in kernels/picture_rows.c.
 */
#include "base/dmath.h"
#include "engine/sensors/raster_camera.h"

#include <math.h>

_Static_assert((int)RASTER_TILES_MAX < (int)GROUND_TILE_UNKNOWN, "tile numbers fit the grid");
_Static_assert((int)RASTER_TILE_SAMPLES == 1 << (GROUND_TILE_BITS - GROUND_POSITION_BITS),
               "tile size");

struct ground_place ground_place_make(const struct mood *mood, struct vec2 ego, struct rgb terrain,
                                      bool town)
{
    /* Far outside any map the tile numbers would overflow; nothing is there anyway. */
    double x = dmath_clamp(ego.x_m, -4e6, 4e6);
    double y = dmath_clamp(ego.y_m, -4e6, 4e6);
    int32_t tile_x = (int32_t)floor(x / RASTER_TILE_M) - GROUND_REACH_TILES;
    int32_t tile_y = (int32_t)floor(y / RASTER_TILE_M) - GROUND_REACH_TILES;
    return (struct ground_place){
        .ego_x = x - tile_x * RASTER_TILE_M,
        .ego_y = y - tile_y * RASTER_TILE_M,
        .tile_x = tile_x,
        .tile_y = tile_y,
        .terrain = terrain,
        .light = rgb_add(mood->ambient, rgb_times(mood->sun, (float)mood->sun_direction.z)),
        .paint = 1.0f - 0.6f * (float)mood->snow,
        .paved = town,
    };
}

void ground_init(const struct picture *picture, const struct raster_map *map, struct ground *out)
{
    out->map.map = map;
    out->map.place = &picture->ground;
    for (int material = 0; material < MATERIAL_COUNT; material++) {
        ground_colour(&picture->ground, material, out->map.colours[material]);
    }
    for (int32_t i = 0; i < GROUND_TILES * GROUND_TILES; i++) {
        out->tiles[i] = GROUND_TILE_UNKNOWN;
    }
}

void ground_row(const struct painter *painter, struct ground *ground, int32_t row,
                int32_t first_col, int32_t cols, struct rgb_row *out)
{
    const struct picture *picture = &painter->picture;
    const struct picture_kernels *kernels = &painter->layers->rows;
    const struct ground_row shared = ground_row_make(picture, row);
    struct ground_sums sums = {0};
    struct ground_places places;
    for (int32_t r = 0; r < CAMERA_SCALE; r++) {
        int32_t depths = ground_depths(&picture->view, row, r);
        for (int32_t k = 0; k < depths; k++) {
            const struct ground_line line = ground_line_make(picture, row, r, k, depths);
            kernels->sum(&ground->map, ground->tiles, &line, first_col, cols, &sums);
        }
    }
    kernels->places(&shared, first_col, cols, &places);
    kernels->ground(picture, &shared, &sums, &places, cols, out);
}
