/*
 * Ground: what cameras see of the map, at image resolution. The formulas are in
 * kernels/camera_ground.h; here they run along a row, one thing at a time, so that compilers can
 * take many columns at once.
 */
#include "base/dmath.h"
#include "engine/sensors/raster_camera.h"

#include <math.h>

_Static_assert((int)RASTER_TILES_MAX < (int)GROUND_TILE_UNKNOWN, "tile numbers fit the grid");
_Static_assert((int)RASTER_TILE_SAMPLES == 1 << (GROUND_TILE_BITS - GROUND_POSITION_BITS),
               "tile size");

/* struct ground_tone of the pixels of a row of a tile. */
struct tone_row {
    float patches[PICTURE_TILE_COLS], grain[PICTURE_TILE_COLS];
    float lamp[PICTURE_TILE_COLS], mirror[PICTURE_TILE_COLS], left[PICTURE_TILE_COLS];
};

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

/* All samples of one image row. */
static void sum_row(struct ground *ground, const struct picture *picture, int32_t row,
                    int32_t first_col, int32_t cols, struct ground_sum *sums)
{
    for (int32_t r = 0; r < CAMERA_SCALE; r++) {
        int32_t depths = ground_depths(&picture->view, row, r);
        for (int32_t k = 0; k < depths; k++) {
            struct ground_line line = ground_line_make(picture, row, r, k, depths);
            for (int32_t col = 0; col < cols; col++) {
                ground_add(&ground->map, ground->tiles, &line, first_col + col, &sums[col]);
            }
        }
    }
}

static void tone_make(const struct picture *picture, int32_t row, int32_t first_col, int32_t cols,
                      struct tone_row *tone)
{
    const struct ground_row shared = ground_row_make(picture, row);
    float x_m[PICTURE_TILE_COLS], y_m[PICTURE_TILE_COLS];
    float world_x[PICTURE_TILE_COLS], world_y[PICTURE_TILE_COLS];
    float distance_m[PICTURE_TILE_COLS];
    for (int32_t col = 0; col < cols; col++) {
        struct ground_point point = ground_point_at(&shared, first_col + col);
        x_m[col] = point.x_m;
        y_m[col] = point.y_m;
        world_x[col] = point.world_x;
        world_y[col] = point.world_y;
        distance_m[col] = point.distance_m;
        tone->grain[col] = 0.0f;
    }
    for (int32_t col = 0; col < cols; col++) {
        tone->patches[col] = ground_noise_at(&shared.patches, world_x[col], world_y[col]);
    }
    if (shared.grained) {
        for (int32_t col = 0; col < cols; col++) {
            tone->grain[col] = ground_noise_at(&shared.grain, world_x[col], world_y[col]);
        }
    }
    for (int32_t col = 0; col < cols; col++) {
        tone->lamp[col] = mood_headlight_at(shared.headlights, x_m[col], y_m[col]);
    }
    for (int32_t col = 0; col < cols; col++) {
        tone->left[col] = mood_decay(shared.haze_per_m * distance_m[col]);
    }
    for (int32_t col = 0; col < cols; col++) {
        tone->mirror[col] = ground_mirror_at(&shared, distance_m[col]);
    }
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

void ground_row(const struct picture *picture, struct ground *ground, int32_t row,
                int32_t first_col, int32_t cols, struct rgb *out)
{
    struct ground_sum sums[PICTURE_TILE_COLS] = {0};
    struct tone_row tone;
    sum_row(ground, picture, row, first_col, cols, sums);
    tone_make(picture, row, first_col, cols, &tone);
    for (int32_t col = 0; col < cols; col++) {
        const struct ground_tone own = {tone.patches[col], tone.grain[col], tone.lamp[col],
                                        tone.mirror[col], tone.left[col]};
        out[col] = ground_finish(&picture->mood, picture->ground.light, &sums[col], own);
    }
}
