/*
 * Cameras: one perspective image from a scene: sky and ground as a backdrop, by inverse mapping of
 * pixels; agents as solids over it, in bands of rows; then rain or snow in front of the lens. A
 * picture that a person can read at a glance and a network can learn
 * from; the calibration is in schemas/observation.h.
 */
#include "engine/raster_camera.h"
#include "base/dmath.h"
#include "base/rng.h"
#include "engine/raster.h"

#include <string.h>

static bool slice_is(const struct scenario *scenario, enum slice_kind kind, const char *value)
{
    return strcmp(scenario->slices.value[kind], value) == 0;
}

static bool is_town(const struct scenario *scenario)
{
    return slice_is(scenario, SLICE_ROAD, "urban") || slice_is(scenario, SLICE_ROAD, "junction") ||
           slice_is(scenario, SLICE_ROAD, "roundabout") ||
           slice_is(scenario, SLICE_ROAD, "parking");
}

static struct rgb terrain_colour(const struct scenario *scenario)
{
    if (slice_is(scenario, SLICE_GEOGRAPHY, "africa") ||
        slice_is(scenario, SLICE_GEOGRAPHY, "oceania")) {
        return (struct rgb){0.60f, 0.46f, 0.30f};
    }
    if (slice_is(scenario, SLICE_GEOGRAPHY, "north_america")) {
        return (struct rgb){0.47f, 0.47f, 0.28f};
    }
    if (slice_is(scenario, SLICE_GEOGRAPHY, "asia")) {
        return (struct rgb){0.30f, 0.46f, 0.24f};
    }
    return (struct rgb){0.34f, 0.48f, 0.24f};
}

/* ---- in front of the lens ---- */

static void blend_pixel(uint8_t *out, int32_t col, int32_t row, struct rgb colour, float opacity)
{
    if (col < 0 || col >= CAMERA_COLS || row < 0 || row >= CAMERA_ROWS) {
        return;
    }
    uint8_t *pixel = out + (row * CAMERA_COLS + col) * 3;
    float parts[3] = {colour.r, colour.g, colour.b};
    for (int k = 0; k < 3; k++) {
        float mixed = pixel[k] + (parts[k] * 255.0f - pixel[k]) * opacity;
        pixel[k] = (uint8_t)(mixed + 0.5f);
    }
}

/* Streaks of rain, flakes of snow: new ones every tick, from the camera's random stream. */
static void draw_precipitation(const struct painter *painter, const struct scene *scene,
                               uint64_t seed, enum camera_index camera, uint8_t *out)
{
    static const uint32_t counts[WEATHER_COUNT] = {
        [WEATHER_RAIN] = 45, [WEATHER_HEAVY_RAIN] = 110, [WEATHER_SNOW] = 120};
    bool snow = scene->conditions.weather == WEATHER_SNOW;
    float bright = painter->mood.headlights > 0.5 ? 0.55f : 0.95f;
    struct rgb colour = snow ? rgb_times((struct rgb){1.0f, 1.0f, 1.0f}, bright)
                             : rgb_times((struct rgb){0.80f, 0.84f, 0.90f}, bright);
    for (uint32_t i = 0; i < counts[scene->conditions.weather]; i++) {
        uint32_t counter[4] = {scene->tick, RNG_STREAM_CAMERA, (uint32_t)camera << 16 | i, 0};
        uint32_t words[4];
        rng_philox(seed, counter, words);
        int32_t col = (int32_t)(words[0] % CAMERA_COLS);
        int32_t row = (int32_t)(words[1] % (CAMERA_ROWS + 8)) - 8;
        float opacity = 0.10f + 0.16f * (float)(words[2] & 255) / 255.0f;
        int32_t length = snow ? 1 + (int32_t)(words[3] % 8 == 0) : 3 + (int32_t)(words[3] % 6);
        for (int32_t k = 0; k < length; k++) {
            blend_pixel(out, col + (snow ? 0 : k / 4), row + k, colour,
                        snow ? opacity * 2.6f : opacity);
        }
    }
}

/* ---- the whole ---- */

static uint8_t to_byte(float value)
{
    value = value < 0.0f ? 0.0f : value > 1.0f ? 1.0f : value;
    return (uint8_t)(value * 255.0f + 0.5f);
}

static void resolve_backdrop(const struct backdrop *backdrop, uint8_t *out)
{
    for (int32_t i = 0; i < CAMERA_ROWS * CAMERA_COLS; i++) {
        struct rgb colour = backdrop->colour[i / CAMERA_COLS][i % CAMERA_COLS];
        out[3 * i] = to_byte(colour.r);
        out[3 * i + 1] = to_byte(colour.g);
        out[3 * i + 2] = to_byte(colour.b);
    }
}

/* Averages the samples of one image pixel. */
static void resolve_pixel(const struct canvas *canvas, int32_t row, int32_t col, uint8_t *pixel)
{
    const float part = 1.0f / (CAMERA_SCALE * CAMERA_SCALE);
    struct rgb sum = {0, 0, 0};
    for (int32_t k = 0; k < CAMERA_SCALE * CAMERA_SCALE; k++) {
        struct rgb c = canvas->colour[row * CAMERA_SCALE + k / CAMERA_SCALE]
                                     [col * CAMERA_SCALE + k % CAMERA_SCALE];
        c.r = c.r > 1.0f ? 1.0f : c.r;
        c.g = c.g > 1.0f ? 1.0f : c.g;
        c.b = c.b > 1.0f ? 1.0f : c.b;
        sum = rgb_add(sum, c);
    }
    pixel[0] = to_byte(sum.r * part);
    pixel[1] = to_byte(sum.g * part);
    pixel[2] = to_byte(sum.b * part);
}

/* Draws the agents over the backdrop's bytes. */
static void draw_bands(const struct painter *painter, const struct body *bodies, uint32_t count,
                       uint8_t *out)
{
    struct canvas *canvas = painter->canvas;
    for (int32_t band = 0; band < CAMERA_ROWS / CAMERA_BAND_ROWS; band++) {
        canvas->first_row = band * CANVAS_BAND;
        canvas->any_touched = false;
        memset(canvas->touched, 0, sizeof canvas->touched);
        solids_draw(bodies, count);
        for (int32_t i = 0; canvas->any_touched && i < CAMERA_BAND_ROWS * CAMERA_COLS; i++) {
            int32_t row = i / CAMERA_COLS;
            int32_t col = i % CAMERA_COLS;
            if (canvas->touched[row][col]) {
                resolve_pixel(canvas, row, col,
                              out + (band * CAMERA_BAND_ROWS * CAMERA_COLS + i) * 3);
            }
        }
    }
}

static struct camera_view view_make(enum camera_index camera)
{
    const struct camera_calibration *calibration = &camera_calibrations[camera];
    struct camera_view view = {
        .origin = {calibration->x_m, calibration->y_m, calibration->z_m},
        .focal = CANVAS_COLS / 2.0 / dmath_tan(calibration->hfov_rad / 2),
    };
    dmath_sincos(calibration->yaw_rad, &view.sin_yaw, &view.cos_yaw);
    return view;
}

void raster_camera(const struct raster_layers *layers, const struct scenario *scenario,
                   const struct scene *scene, uint64_t seed, enum camera_index camera, uint8_t *out)
{
    struct backdrop backdrop;
    struct canvas canvas;
    struct body bodies[LIMIT_AGENTS];
    bool town = is_town(scenario);
    canvas.backdrop = &backdrop;
    struct painter painter = {
        .view = view_make(camera),
        .mood = mood_make(&scene->conditions, town),
        .ego_heading = scene->ego.pose.heading_rad,
        .canvas = &canvas,
    };
    dmath_sincos(scene->ego.pose.heading_rad, &painter.ego_sin, &painter.ego_cos);
    const struct ground_place place = {
        .ego_x = scene->ego.pose.x_m - layers->map.anchor.x_m,
        .ego_y = scene->ego.pose.y_m - layers->map.anchor.y_m,
        .terrain = terrain_colour(scenario),
        .town = town,
    };
    sky_draw(&painter, town, &backdrop);
    ground_draw(&painter, layers, &place, &backdrop);
    resolve_backdrop(&backdrop, out);
    draw_bands(&painter, bodies, solids_pick(&painter, scenario, scene, bodies), out);
    draw_precipitation(&painter, scene, seed, camera, out);
}
