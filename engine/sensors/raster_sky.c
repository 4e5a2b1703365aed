/*
 * Sky: the upper half of a camera's backdrop, row by row at image resolution. The formulas are in
 * kernels/camera_sky.h; here they run along a row, one thing at a time, so that compilers can take
 * many columns at once.
 */
#include "base/dmath.h"
#include "engine/sensors/raster_camera.h"
#include "kernels/camera_sky.h"

/* One image row. */
struct sky_row {
    float slope[CAMERA_COLS]; /* in the middle of the row */
    float cloud[CAMERA_COLS];
    float stars[CAMERA_COLS]; /* share of the pixel */
    float solid[CAMERA_COLS]; /* share of the pixel that the skyline covers */
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

/* Adds `weight` times the clouds on the canvas row that lies `up` rows over the horizon. */
static void add_clouds(const struct sky_columns *sky, float up, float weight, float *restrict out)
{
    float x[CAMERA_COLS], y[CAMERA_COLS];
    float coarse[CAMERA_COLS], fine[CAMERA_COLS];
    for (int32_t col = 0; col < CAMERA_COLS; col++) {
        sky_cloud_place(sky, col, up, &x[col], &y[col]);
    }
    for (int32_t col = 0; col < CAMERA_COLS; col++) {
        coarse[col] = mood_noise(0, 0, x[col], y[col]);
    }
    for (int32_t col = 0; col < CAMERA_COLS; col++) {
        fine[col] = sky_cloud_fine(x[col], y[col]);
    }
    for (int32_t col = 0; col < CAMERA_COLS; col++) {
        out[col] += sky_cloud(coarse[col], fine[col], up * sky->scale[col]) * weight;
    }
}

void sky_draw(const struct painter *painter, struct backdrop *out)
{
    const struct picture *picture = &painter->picture;
    const struct mood *mood = &picture->mood;
    const float part = 1.0f / CAMERA_SCALE;
    struct sky_columns sky;
    for (int32_t col = 0; col < CAMERA_COLS; col++) {
        sky_column(picture, col, &sky);
    }
    float skyline_max = sky_skyline_max(&sky);
    for (int32_t row_index = 0; row_index < CAMERA_ROWS / 2; row_index++) {
        float middle = sky_up(row_index);
        struct sky_row row = {0};
        for (int32_t col = 0; col < CAMERA_COLS; col++) {
            row.slope[col] = middle * sky.scale[col];
        }
        bool once = row.slope[0] > SKY_STEEP;
        for (int32_t r = once ? 0 : -1; r <= (once ? 0 : 1) && mood->grey <= 0; r++) {
            add_clouds(&sky, middle + (float)r, sky_cloud_share(mood, once), row.cloud);
        }
        for (int32_t r = -1; r <= 1 && mood->stars; r++) {
            for (int32_t col = 0; col < CAMERA_COLS; col++) {
                row.stars[col] += sky_star(&sky, col, middle + (float)r) ? part : 0.0f;
            }
        }
        bool low = row.slope[0] < skyline_max * 2.0f;
        for (int32_t r = -1; r <= 1 && low; r++) {
            for (int32_t col = 0; col < CAMERA_COLS; col++) {
                float slope = (middle + (float)r) * sky.scale[col];
                row.solid[col] += slope < sky.skyline[col] ? part : 0.0f;
            }
        }
        for (int32_t col = 0; col < CAMERA_COLS; col++) {
            out->colour[row_index][col] =
                sky_colour(picture, row.slope[col], sky.halo[col], row.cloud[col], row.stars[col],
                           row.solid[col]);
        }
    }
}
