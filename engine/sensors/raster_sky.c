/*
 * Sky: the upper half of a camera's image, row by row of a tile at image resolution. The formulas
 * are in kernels/camera_sky.h; here they run along a row, one thing at a time, so that compilers
 * can take many columns at once.
 */
#include "base/dmath.h"
#include "engine/sensors/raster_camera.h"

/* Row of a tile. */
struct sky_shares {
    float slope[PICTURE_TILE_COLS]; /* in the middle of the row */
    float cloud[PICTURE_TILE_COLS];
    float stars[PICTURE_TILE_COLS]; /* share of the pixel */
    float solid[PICTURE_TILE_COLS]; /* share of the pixel that the skyline covers */
};

struct sky_place sky_place_make(const struct painter *painter, double ego_heading_rad, bool town)
{
    const struct mood *mood = &painter->picture.mood;
    const struct camera_view *view = &painter->picture.view;
    struct rgb leaf = town ? (struct rgb){0.36f, 0.36f, 0.39f} : (struct rgb){0.25f, 0.33f, 0.24f};
    struct rgb light = rgb_add(mood->ambient, rgb_times(mood->sun, 0.4f));
    return (struct sky_place){
        .yaw_rad = dmath_atan2(view->sin_yaw, view->cos_yaw) + ego_heading_rad,
        .sun_rad = dmath_atan2(mood->sun_direction.y, mood->sun_direction.x),
        .leaf = mood_fade(mood, rgb_scale(leaf, light), 160.0),
        .town = town,
    };
}

/* Adds `weight` times the clouds on the canvas rows that lie `up` and `more` rows over the horizon.
 */
static void add_clouds(const struct sky *sky, const float *restrict up, float more, float weight,
                       float *restrict out)
{
    const struct sky_columns *columns = &sky->columns;
    float x[PICTURE_TILE_COLS], y[PICTURE_TILE_COLS];
    float coarse[PICTURE_TILE_COLS], fine[PICTURE_TILE_COLS];
    for (int32_t col = 0; col < sky->cols; col++) {
        sky_cloud_place(columns, col, up[col] + more, &x[col], &y[col]);
    }
    for (int32_t col = 0; col < sky->cols; col++) {
        coarse[col] = mood_noise(0, 0, x[col], y[col]);
    }
    for (int32_t col = 0; col < sky->cols; col++) {
        fine[col] = sky_cloud_fine(x[col], y[col]);
    }
    for (int32_t col = 0; col < sky->cols; col++) {
        out[col] +=
            sky_cloud(coarse[col], fine[col], (up[col] + more) * columns->scale[col]) * weight;
    }
}

void sky_init(const struct picture *picture, int32_t first_col, int32_t cols, struct sky *out)
{
    for (int32_t i = 0; i < cols; i++) {
        sky_column(picture, first_col + i, i, &out->columns);
    }
    out->edge_scale = sky_scale(&picture->view, sky_right(&picture->view, 0));
    out->skyline_max = sky_skyline_max(&out->columns, cols);
    out->cols = cols;
}

void sky_colours(const struct picture *picture, const struct sky *sky, const float *restrict up,
                 float least, struct rgb *out)
{
    const struct mood *mood = &picture->mood;
    const struct sky_columns *columns = &sky->columns;
    const float part = 1.0f / CAMERA_SCALE;
    struct sky_shares shares = {0};
    for (int32_t col = 0; col < sky->cols; col++) {
        shares.slope[col] = up[col] * columns->scale[col];
    }
    bool once = least > SKY_STEEP;
    for (int32_t r = once ? 0 : -1; r <= (once ? 0 : 1) && mood->grey <= 0; r++) {
        add_clouds(sky, up, (float)r, sky_cloud_share(mood, once), shares.cloud);
    }
    for (int32_t r = -1; r <= 1 && mood->stars; r++) {
        for (int32_t col = 0; col < sky->cols; col++) {
            shares.stars[col] += sky_star(columns, col, up[col] + (float)r) ? part : 0.0f;
        }
    }
    bool low = least < sky->skyline_max * 2.0f;
    for (int32_t r = -1; r <= 1 && low; r++) {
        for (int32_t col = 0; col < sky->cols; col++) {
            float slope = (up[col] + (float)r) * columns->scale[col];
            shares.solid[col] += slope < columns->skyline[col] ? part : 0.0f;
        }
    }
    for (int32_t col = 0; col < sky->cols; col++) {
        out[col] = sky_colour(picture, shares.slope[col], columns->halo[col], shares.cloud[col],
                              shares.stars[col], shares.solid[col]);
    }
}

void sky_row(const struct picture *picture, const struct sky *sky, int32_t row, struct rgb *out)
{
    const float middle = sky_up(&picture->view, row);
    float up[PICTURE_TILE_COLS];
    for (int32_t col = 0; col < sky->cols; col++) {
        up[col] = middle;
    }
    sky_colours(picture, sky, up, middle * sky->edge_scale, out);
}
