/*
 * Sky: the upper half of a picture: horizon to zenith, the sun's glow, clouds or stars, and the
 * skyline before it. What the pixels of an image column share is computed once per column. Only the
 * skyline and the stars are finer than a pixel and looked at on every canvas row.
 */
#ifndef SWERVE_KERNELS_CAMERA_SKY_H
#define SWERVE_KERNELS_CAMERA_SKY_H

#include "base/dmath_inline.h"
#include "kernels/camera_tone.h"

/* From this slope on clouds are coarser than a pixel and looked at once. */
#define SKY_STEEP 0.15f

/* Values that the sky's pixels of an image column share, for the columns of a tile. */
struct sky_columns {
    float azimuth_rad[PICTURE_TILE_COLS]; /* world frame */
    float cosine[PICTURE_TILE_COLS], sine[PICTURE_TILE_COLS];
    float skyline[PICTURE_TILE_COLS]; /* slope below which hills or, in a town, roofs stand */
    float halo[PICTURE_TILE_COLS];    /* glow of the sun */
    float scale[PICTURE_TILE_COLS];   /* slope (up / ahead) per canvas row */
};

/* Height of the horizon's trees and hills, or of a town's roofs, as an elevation slope. */
BOTH_FN double sky_skyline(double azimuth_rad, bool town)
{
    double a = azimuth_rad + PI_RAD; /* 0..2 pi */
    if (town) {
        double block = a * 14.0;
        return 0.025 + 0.085 * mood_hash((int32_t)block, 77) * mood_hash((int32_t)(block / 5), 78);
    }
    /* Periods divide the circle, so that the ends meet. */
    double slow;
    double fast;
    double unused;
    inline_sincos(a * 3 + 1.0, &slow, &unused);
    inline_sincos(a * 7, &fast, &unused);
    return 0.020 + 0.012 * slow + 0.008 * fast + 0.010 * mood_hash((int32_t)(a * 60), 79);
}

/* Direction of an image column: to the right per metre ahead. */
BOTH_FN double sky_right(const struct camera_view *view, int32_t col)
{
    return (col + 0.5 - view->cols / 2.0) * PICTURE_SCALE / view->focal;
}

/* Slope per canvas row there. */
BOTH_FN float sky_scale(const struct camera_view *view, double right)
{
    return (float)(1.0 / view->focal / sqrt(1.0 + right * right));
}

/* Glow of the sun at an azimuth of the world. */
BOTH_FN float sky_halo(const struct picture *picture, double azimuth_rad)
{
    double low_sun = 1.0 - picture->mood.sun_direction.z;
    double off = inline_wrap_angle(azimuth_rad - picture->sky.sun_rad);
    return (float)(0.9 * low_sun * low_sun * inline_exp(-off * off * 1.2));
}

/* Fills column `i` of a tile, which looks at an azimuth of the world. */
BOTH_FN void sky_column_at(const struct picture *picture, double azimuth_rad, float scale,
                           int32_t i, struct sky_columns *out)
{
    double sine;
    double cosine;
    inline_sincos(azimuth_rad, &sine, &cosine);
    out->azimuth_rad[i] = (float)azimuth_rad;
    out->cosine[i] = (float)cosine;
    out->sine[i] = (float)sine;
    out->skyline[i] = (float)sky_skyline(azimuth_rad, picture->sky.town);
    out->halo[i] = sky_halo(picture, azimuth_rad);
    out->scale[i] = scale;
}

/* The same where it is column `col` of a camera that looks level. */
BOTH_FN void sky_column(const struct picture *picture, int32_t col, int32_t i,
                        struct sky_columns *out)
{
    double right = sky_right(&picture->view, col);
    double azimuth_rad = inline_wrap_angle(picture->sky.yaw_rad - inline_atan(right));
    sky_column_at(picture, azimuth_rad, sky_scale(&picture->view, right), i, out);
}

/* The highest of a tile's first columns. */
BOTH_FN float sky_skyline_max(const struct sky_columns *sky, int32_t cols)
{
    float most = 0.0f;
    for (int32_t col = 0; col < cols; col++) {
        most = sky->skyline[col] > most ? sky->skyline[col] : most;
    }
    return most;
}

/* Canvas rows that the middle of an image row of the sky lies over the horizon. */
BOTH_FN float sky_up(const struct camera_view *view, int32_t row)
{
    return ((float)view->rows / 2.0f - 0.5f - (float)row) * PICTURE_SCALE;
}

/* Point of the clouds, a plane far above, that is seen `up` canvas rows over the horizon. */
BOTH_FN void sky_cloud_place(const struct sky_columns *sky, int32_t col, float up, float *x,
                             float *y)
{
    float far = 1.3f / (up * sky->scale[col] + 0.06f);
    *x = far * sky->cosine[col];
    *y = far * sky->sine[col];
}

/* The finer octave of noise there. */
BOTH_FN float sky_cloud_fine(float x, float y)
{
    return mood_noise(0, 0, x * 2.3f + 9.0f, y * 2.3f);
}

/* Density of cloud that two octaves of noise make at a slope, 0..1: thinner at the horizon. */
BOTH_FN float sky_cloud(float coarse, float fine, float slope)
{
    float cloud = clamp_unit((0.6f * coarse + 0.4f * fine - 0.52f) * 3.0f);
    return cloud * (slope > 0.03f ? clamp_unit(slope * 6.0f) : 0.0f);
}

/* Whether a star stands `up` canvas rows over the horizon. */
BOTH_FN bool sky_star(const struct sky_columns *sky, int32_t col, float up)
{
    float slope = up * sky->scale[col];
    float hash = mood_hash((int32_t)(sky->azimuth_rad[col] * 400.0f), (int32_t)(slope * 400.0f));
    return slope > 0.08f && hash > 0.9965f;
}

/* A pixel from the shares of it that are cloud, stars and skyline. */
BOTH_FN struct rgb sky_colour(const struct picture *picture, float slope, float halo, float cloud,
                              float stars, float solid)
{
    const struct mood *mood = &picture->mood;
    float t = clamp_unit(slope * 1.9f);
    struct rgb colour = rgb_mix(mood->horizon, mood->zenith, t * (2.0f - t));
    colour = rgb_add(colour, rgb_times(mood->sun, halo * mood_decay(slope * slope * 6.0f)));
    struct rgb lit = rgb_add(mood->ambient, rgb_times(mood->sun, 0.6f));
    colour = rgb_mix(colour, lit, cloud);
    colour = rgb_add(colour, rgb_times(rgb_make(0.45f, 0.45f, 0.5f), stars));
    return rgb_mix(colour, picture->sky.leaf, solid);
}

/* Share of a pixel that clouds cover where they are looked at once, or on each canvas row. */
BOTH_FN float sky_cloud_share(const struct mood *mood, bool once)
{
    float share = mood->stars ? 0.25f : 0.55f;
    return once ? share : share / PICTURE_SCALE;
}

#endif
