/*
 * Sky: the upper half of a camera's backdrop, row by row at image resolution: horizon to zenith,
 * the sun's glow, clouds or stars, and the skyline before it. What the columns of an image share is
 * computed once. Only the skyline and the stars are finer than a pixel and looked at on every
 * canvas row.
 */
#include "base/dmath.h"
#include "engine/raster_camera.h"

#include <math.h>

/* What the sky's pixels of one image column share. */
struct sky {
    const struct mood *mood;
    float azimuth_rad[CAMERA_COLS]; /* world frame */
    float cosine[CAMERA_COLS], sine[CAMERA_COLS];
    float skyline[CAMERA_COLS]; /* slope below which hills or, in a town, roofs stand */
    float halo[CAMERA_COLS];    /* glow of the sun */
    float scale[CAMERA_COLS];   /* slope (up / ahead) per canvas row */
    float skyline_max;
    struct rgb leaf; /* colour of the skyline */
};

/* One image row. */
struct sky_row {
    float slope[CAMERA_COLS]; /* in the middle of the row */
    float cloud[CAMERA_COLS];
    float stars[CAMERA_COLS]; /* share of the pixel */
    float solid[CAMERA_COLS]; /* share of the pixel that the skyline covers */
};

/* Height of the horizon's trees and hills, or of a town's roofs, as an elevation slope. */
static double skyline_height(double azimuth_rad, bool town)
{
    double a = azimuth_rad + PI_RAD; /* 0..2 pi */
    if (town) {
        double block = a * 14.0;
        return 0.025 + 0.085 * mood_hash((int32_t)block, 77) * mood_hash((int32_t)(block / 5), 78);
    }
    /* Periods divide the circle, so that the ends meet. */
    return 0.020 + 0.012 * dmath_sin(a * 3 + 1.0) + 0.008 * dmath_sin(a * 7) +
           0.010 * mood_hash((int32_t)(a * 60), 79);
}

static void sky_init(struct sky *sky, const struct painter *painter, bool town)
{
    const struct mood *mood = &painter->mood;
    const struct camera_view *view = &painter->view;
    double yaw = dmath_atan2(view->sin_yaw, view->cos_yaw) + painter->ego_heading;
    double sun = dmath_atan2(mood->sun_direction.y, mood->sun_direction.x);
    double low_sun = 1.0 - mood->sun_direction.z;
    sky->mood = mood;
    sky->skyline_max = 0.0f;
    for (int32_t col = 0; col < CAMERA_COLS; col++) {
        double right = (col + 0.5 - CAMERA_COLS / 2.0) * CAMERA_SCALE / view->focal;
        double azimuth_rad = dmath_wrap_angle(yaw - dmath_atan(right));
        double sine;
        double cosine;
        dmath_sincos(azimuth_rad, &sine, &cosine);
        double off = dmath_wrap_angle(azimuth_rad - sun);
        sky->azimuth_rad[col] = (float)azimuth_rad;
        sky->cosine[col] = (float)cosine;
        sky->sine[col] = (float)sine;
        sky->skyline[col] = (float)skyline_height(azimuth_rad, town);
        sky->halo[col] = (float)(0.9 * low_sun * low_sun * dmath_exp(-off * off * 1.2));
        sky->scale[col] = (float)(1.0 / view->focal / sqrt(1.0 + right * right));
        sky->skyline_max =
            sky->skyline[col] > sky->skyline_max ? sky->skyline[col] : sky->skyline_max;
    }
    struct rgb leaf = town ? (struct rgb){0.36f, 0.36f, 0.39f} : (struct rgb){0.25f, 0.33f, 0.24f};
    struct rgb light = rgb_add(mood->ambient, rgb_times(mood->sun, 0.4f));
    sky->leaf = mood_fade(mood, rgb_scale(leaf, light), 160.0);
}

static float clamp_unit(float x)
{
    return x < 0.0f ? 0.0f : x > 1.0f ? 1.0f : x;
}

/* Adds `weight` times the clouds on the canvas row that lies `up` rows over the horizon: a plane
 * far above, thinning towards the horizon. */
static void add_clouds(const struct sky *sky, float up, float weight, float *restrict out)
{
    float x[CAMERA_COLS], y[CAMERA_COLS];
    float fine_x[CAMERA_COLS], fine_y[CAMERA_COLS];
    float coarse[CAMERA_COLS], fine[CAMERA_COLS];
    for (int32_t col = 0; col < CAMERA_COLS; col++) {
        float far = 1.3f / (up * sky->scale[col] + 0.06f);
        x[col] = far * sky->cosine[col];
        y[col] = far * sky->sine[col];
        fine_x[col] = x[col] * 2.3f + 9.0f;
        fine_y[col] = y[col] * 2.3f;
    }
    mood_noise_row(0, 0, x, y, coarse);
    mood_noise_row(0, 0, fine_x, fine_y, fine);
    for (int32_t col = 0; col < CAMERA_COLS; col++) {
        float slope = up * sky->scale[col];
        float cloud = clamp_unit((0.6f * coarse[col] + 0.4f * fine[col] - 0.52f) * 3.0f);
        cloud *= slope > 0.03f ? clamp_unit(slope * 6.0f) : 0.0f;
        out[col] += cloud * weight;
    }
}

static void add_stars(const struct sky *sky, float up, float *restrict out)
{
    for (int32_t col = 0; col < CAMERA_COLS; col++) {
        float slope = up * sky->scale[col];
        float hash =
            mood_hash((int32_t)(sky->azimuth_rad[col] * 400.0f), (int32_t)(slope * 400.0f));
        out[col] += slope > 0.08f && hash > 0.9965f ? 1.0f / CAMERA_SCALE : 0.0f;
    }
}

static struct rgb sky_colour(const struct sky *sky, const struct sky_row *row, int32_t col)
{
    const struct mood *mood = sky->mood;
    float slope = row->slope[col];
    float t = clamp_unit(slope * 1.9f);
    struct rgb colour = rgb_mix(mood->horizon, mood->zenith, t * (2.0f - t));
    float halo = sky->halo[col] * mood_decay(slope * slope * 6.0f);
    colour = rgb_add(colour, rgb_times(mood->sun, halo));
    struct rgb lit = rgb_add(mood->ambient, rgb_times(mood->sun, 0.6f));
    colour = rgb_mix(colour, lit, row->cloud[col]);
    colour = rgb_add(colour, rgb_times((struct rgb){0.45f, 0.45f, 0.5f}, row->stars[col]));
    return rgb_mix(colour, sky->leaf, row->solid[col]);
}

void sky_draw(const struct painter *painter, bool town, struct backdrop *out)
{
    struct sky sky;
    sky_init(&sky, painter, town);
    const struct mood *mood = sky.mood;
    const float steep = 0.15f; /* from here on clouds are coarser than a pixel */
    for (int32_t row_index = 0; row_index < CAMERA_ROWS / 2; row_index++) {
        float middle = (CAMERA_ROWS / 2.0f - 0.5f - (float)row_index) * CAMERA_SCALE;
        struct sky_row row = {0};
        for (int32_t col = 0; col < CAMERA_COLS; col++) {
            row.slope[col] = middle * sky.scale[col];
        }
        if (mood->grey <= 0) {
            float share = mood->stars ? 0.25f : 0.55f;
            bool once = row.slope[0] > steep;
            for (int32_t r = once ? 0 : -1; r <= (once ? 0 : 1); r++) {
                add_clouds(&sky, middle + (float)r, once ? share : share / CAMERA_SCALE, row.cloud);
            }
        }
        for (int32_t r = -1; r <= 1 && mood->stars; r++) {
            add_stars(&sky, middle + (float)r, row.stars);
        }
        bool low = row.slope[0] < sky.skyline_max * 2.0f;
        for (int32_t r = -1; r <= 1 && low; r++) {
            for (int32_t col = 0; col < CAMERA_COLS; col++) {
                float slope = (middle + (float)r) * sky.scale[col];
                row.solid[col] += slope < sky.skyline[col] ? 1.0f / CAMERA_SCALE : 0.0f;
            }
        }
        for (int32_t col = 0; col < CAMERA_COLS; col++) {
            out->colour[row_index][col] = sky_colour(&sky, &row, col);
        }
    }
}
