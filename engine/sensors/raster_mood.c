/*
 * Mood: what light and weather make of colours. Tables of plain numbers, chosen by eye; distance
 * haze follows Koschmieder's law with visibility as the distance at which 5% of the contrast is
 * left.
 */
#include "base/dmath.h"
#include "engine/sensors/raster_camera.h"

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

struct rgb mood_fade(const struct mood *mood, struct rgb colour, double distance_m)
{
    float grey = colour.r * 0.3f + colour.g * 0.55f + colour.b * 0.15f;
    colour = rgb_mix(colour, (struct rgb){grey, grey, grey}, (float)mood->grey);
    return rgb_mix(mood->haze, colour, mood_decay((float)(mood->haze_per_m * distance_m)));
}
