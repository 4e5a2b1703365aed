/*
 * Mood: what light and weather make of colours. Tables of plain numbers, chosen by eye; distance
 * haze follows Koschmieder's law with visibility as the distance at which 5% of the contrast is
 * left.
 */
#include "base/dmath.h"
#include "engine/raster_camera.h"

/* A hash of two integers, uniform in 0..1. */
static float hash_unit(int32_t a, int32_t b)
{
    uint32_t h = (uint32_t)a * 0x9E3779B1u ^ (uint32_t)b * 0x85EBCA77u;
    h ^= h >> 15;
    h *= 0x2C1B3C6Du;
    h ^= h >> 14;
    return (float)(int32_t)(h >> 8) * (1.0f / 16777216.0f);
}

/* Integer part towards minus infinity, without a call. */
static int32_t floor_int(double x)
{
    int32_t i = (int32_t)x;
    return i - (i > x);
}

float mood_noise(double x, double y)
{
    int32_t ix = floor_int(x);
    int32_t iy = floor_int(y);
    float tx = (float)(x - ix);
    float ty = (float)(y - iy);
    tx = tx * tx * (3 - 2 * tx);
    ty = ty * ty * (3 - 2 * ty);
    float low = hash_unit(ix, iy) * (1 - tx) + hash_unit(ix + 1, iy) * tx;
    float high = hash_unit(ix, iy + 1) * (1 - tx) + hash_unit(ix + 1, iy + 1) * tx;
    return low * (1 - ty) + high * ty;
}

static void set_light(struct mood *mood, enum light light, bool town)
{
    switch (light) {
    case LIGHT_DUSK:
        mood->zenith = (struct rgb){0.20f, 0.26f, 0.46f};
        mood->horizon = (struct rgb){0.93f, 0.62f, 0.42f};
        mood->ambient = (struct rgb){0.44f, 0.42f, 0.50f};
        mood->sun = (struct rgb){0.50f, 0.30f, 0.16f};
        mood->sun_direction = (struct vec3){0.80, 0.57, 0.19};
        mood->headlights = 0.35;
        mood->lamps = true;
        break;
    case LIGHT_NIGHT:
        mood->zenith = (struct rgb){0.015f, 0.02f, 0.05f};
        mood->horizon = (struct rgb){0.07f, 0.08f, 0.13f};
        mood->ambient =
            town ? (struct rgb){0.25f, 0.23f, 0.22f} : (struct rgb){0.14f, 0.15f, 0.20f};
        mood->sun = (struct rgb){0.02f, 0.02f, 0.03f};
        mood->sun_direction = (struct vec3){0.30, -0.40, 0.866};
        mood->headlights = 1.0;
        mood->lamps = true;
        mood->stars = true;
        break;
    case LIGHT_DAY:
    case LIGHT_COUNT:
        mood->zenith = (struct rgb){0.33f, 0.53f, 0.82f};
        mood->horizon = (struct rgb){0.78f, 0.86f, 0.93f};
        mood->ambient = (struct rgb){0.72f, 0.74f, 0.78f};
        mood->sun = (struct rgb){0.36f, 0.34f, 0.28f};
        mood->sun_direction = (struct vec3){-0.36, 0.48, 0.80};
        break;
    }
}

/* Cloud cover 0..1 turns the sky into one grey and takes the sun away. */
static void set_overcast(struct mood *mood, float cover, float brightness)
{
    float level = mood->horizon.r * 0.3f + mood->horizon.g * 0.5f + mood->horizon.b * 0.2f;
    struct rgb grey = rgb_times((struct rgb){0.97f, 0.99f, 1.03f}, level * brightness);
    mood->horizon = rgb_mix(mood->horizon, grey, cover);
    mood->zenith = rgb_mix(mood->zenith, rgb_times(grey, 0.86f), cover);
    mood->sun = rgb_times(mood->sun, 1.0f - cover);
    mood->stars = mood->stars && cover < 0.1f;
}

struct mood mood_make(const struct conditions *conditions, bool town)
{
    struct mood mood = {0};
    set_light(&mood, conditions->light, town);
    switch (conditions->weather) {
    case WEATHER_RAIN:
        set_overcast(&mood, 0.8f, 0.80f);
        mood.wet = 0.6;
        mood.grey = 0.25;
        mood.lamps = true;
        break;
    case WEATHER_HEAVY_RAIN:
        set_overcast(&mood, 0.95f, 0.66f);
        mood.wet = 1.0;
        mood.grey = 0.4;
        mood.lamps = true;
        break;
    case WEATHER_FOG:
        set_overcast(&mood, 1.0f, 0.96f);
        mood.zenith = mood.horizon;
        mood.grey = 0.3;
        mood.wet = 0.2;
        mood.lamps = true;
        break;
    case WEATHER_SNOW:
        set_overcast(&mood, 0.9f, 0.97f);
        mood.snow = 0.75;
        mood.grey = 0.2;
        mood.lamps = true;
        break;
    case WEATHER_CLEAR:
    case WEATHER_COUNT:
        break;
    }
    mood.haze = rgb_mix(mood.horizon, mood.zenith, 0.15f);
    mood.haze_per_m = 3.0 / dmath_max(conditions->visibility_m * 2.2, 1.0);
    if (conditions->weather == WEATHER_FOG) {
        mood.haze_per_m = 3.0 / dmath_max(conditions->visibility_m, 1.0);
    } else if (conditions->weather == WEATHER_CLEAR) {
        mood.haze_per_m = dmath_max(0.0025, 1.0 / dmath_max(conditions->visibility_m * 3.0, 1.0));
    }
    return mood;
}

double mood_headlight(const struct mood *mood, double x_m, double y_m)
{
    double ahead = x_m - 2.0;
    if (mood->headlights <= 0 || ahead <= 0) {
        return 0.0;
    }
    double across = y_m / (1.6 + 0.30 * ahead);
    double beam = 1.0 / (1.0 + across * across * across * across);
    double reach = 1.0 / (1.0 + (ahead / 30.0) * (ahead / 30.0));
    double near = ahead < 3.0 ? ahead / 3.0 : 1.0;
    return mood->headlights * 1.25 * beam * reach * near;
}

/* exp(-x) for x >= 0 as (1 - x/64)^64: within 0.01, smooth, and a tenth of the cost. */
static float haze_left(double x)
{
    float t = (float)(1.0 - x * (1.0 / 64.0));
    t = t > 0.0f ? t : 0.0f;
    t *= t;
    t *= t;
    t *= t;
    t *= t;
    t *= t;
    return t * t;
}

struct rgb mood_fade(const struct mood *mood, struct rgb colour, double distance_m)
{
    float grey = colour.r * 0.3f + colour.g * 0.55f + colour.b * 0.15f;
    colour = rgb_mix(colour, (struct rgb){grey, grey, grey}, (float)mood->grey);
    return rgb_mix(mood->haze, colour, haze_left(mood->haze_per_m * distance_m));
}

/* Height of the horizon's trees and hills, or of a town's roofs, as an elevation slope. */
static double skyline_height(double azimuth_rad, bool town)
{
    double a = azimuth_rad + PI_RAD; /* 0..2 pi */
    if (town) {
        double block = a * 14.0;
        return 0.025 + 0.085 * hash_unit((int32_t)block, 77) * hash_unit((int32_t)(block / 5), 78);
    }
    /* Periods divide the circle, so that the ends meet. */
    return 0.020 + 0.012 * dmath_sin(a * 3 + 1.0) + 0.008 * dmath_sin(a * 7) +
           0.010 * hash_unit((int32_t)(a * 60), 79);
}

struct sky_column sky_column_make(const struct painter *painter, double direction_rad, bool town)
{
    const struct mood *mood = &painter->mood;
    struct sky_column column = {.town = town};
    column.azimuth_rad = dmath_wrap_angle(direction_rad + painter->ego_heading);
    dmath_sincos(column.azimuth_rad, &column.sine, &column.cosine);
    column.skyline = skyline_height(column.azimuth_rad, town);
    double sun = dmath_atan2(mood->sun_direction.y, mood->sun_direction.x);
    double off = dmath_wrap_angle(column.azimuth_rad - sun);
    double low_sun = 1.0 - mood->sun_direction.z;
    column.halo = 0.9 * low_sun * low_sun * dmath_exp(-off * off * 1.2);
    return column;
}

struct rgb sky_colour(const struct painter *painter, const struct sky_column *column, double slope)
{
    const struct mood *mood = &painter->mood;
    if (slope < column->skyline) {
        struct rgb leaf =
            column->town ? (struct rgb){0.36f, 0.36f, 0.39f} : (struct rgb){0.25f, 0.33f, 0.24f};
        struct rgb lit = rgb_scale(leaf, rgb_add(mood->ambient, rgb_times(mood->sun, 0.4f)));
        return mood_fade(mood, lit, 160.0);
    }
    float t = (float)dmath_clamp(slope * 1.9, 0.0, 1.0);
    struct rgb sky = rgb_mix(mood->horizon, mood->zenith, t * (2.0f - t));
    sky = rgb_add(sky, rgb_times(mood->sun, (float)column->halo * haze_left(slope * slope * 6.0)));
    if (slope > 0.03 && mood->grey <= 0) {
        /* Clouds on a plane far above, thinning towards the horizon. */
        double far = 1.3 / (slope + 0.06);
        double x = far * column->cosine;
        double y = far * column->sine;
        double cloud = 0.6 * mood_noise(x, y) + 0.4 * mood_noise(x * 2.3 + 9.0, y * 2.3);
        cloud = dmath_clamp((cloud - 0.52) * 3.0, 0.0, 1.0) * dmath_min(slope * 6.0, 1.0);
        struct rgb lit = rgb_add(mood->ambient, rgb_times(mood->sun, 0.6f));
        sky = rgb_mix(sky, lit, (float)(cloud * (mood->stars ? 0.25 : 0.55)));
    }
    if (mood->stars && slope > 0.08 &&
        hash_unit((int32_t)(column->azimuth_rad * 400.0), (int32_t)(slope * 400.0)) > 0.9965) {
        sky = rgb_add(sky, (struct rgb){0.45f, 0.45f, 0.5f});
    }
    return sky;
}
