/*
 * Sky: the upper half of a camera's image, row by row of a tile at image resolution. The formulas
 * are in kernels/camera_sky.h, the loops along a row in kernels/picture_rows.c.
 */
#include "base/dmath.h"
#include "engine/sensors/raster_camera.h"

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

void sky_init(const struct picture *picture, int32_t first_col, int32_t cols, struct sky *out)
{
    for (int32_t i = 0; i < cols; i++) {
        sky_column(picture, first_col + i, i, &out->columns);
    }
    out->edge_scale = sky_scale(&picture->view, sky_right(&picture->view, 0));
    out->skyline_max = sky_skyline_max(&out->columns, cols);
    out->cols = cols;
}

void sky_row(const struct painter *painter, const struct sky *sky, int32_t row, struct rgb_row *out)
{
    const struct picture *picture = &painter->picture;
    const float middle = sky_up(&picture->view, row);
    float up[PICTURE_TILE_COLS];
    for (int32_t col = 0; col < sky->cols; col++) {
        up[col] = middle;
    }
    const struct sky_row own = {&sky->columns, up, middle * sky->edge_scale, sky->skyline_max};
    painter->layers->rows.sky(picture, &own, sky->cols, out);
}
