/*
 * Cameras: one perspective image from a scene: sky and ground as a backdrop, by inverse mapping of
 * pixels; agents as solids over it, in bands of rows; then rain or snow in front of the lens. A
 * picture that a person can read at a glance and a network can learn
 * from; the calibration is in schemas/observation.h.
 */
#include "engine/sensors/raster_camera.h"
#include "base/dmath.h"
#include "base/rng.h"
#include "engine/sensors/raster.h"

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
    float bright = painter->picture.mood.headlights > 0.5 ? 0.55f : 0.95f;
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

static void resolve_backdrop(const struct backdrop *backdrop, uint8_t *out)
{
    for (int32_t i = 0; i < CAMERA_ROWS * CAMERA_COLS; i++) {
        struct rgb colour = backdrop->colour[i / CAMERA_COLS][i % CAMERA_COLS];
        out[3 * i] = rgb_byte(colour.r);
        out[3 * i + 1] = rgb_byte(colour.g);
        out[3 * i + 2] = rgb_byte(colour.b);
    }
}

/* Everything that stands on the ground. */
static void draw_standing(const struct painter *painter, const struct body *bodies, uint32_t count)
{
    solids_draw(bodies, count);
    signals_draw(painter, painter->layers, painter->scene);
}

/* Draws the agents over the backdrop's bytes, from the painter's screen. */
static void draw_bands(const struct painter *painter, const struct body *bodies, uint32_t count,
                       const struct backdrop *backdrop, uint8_t *out)
{
    struct screen *screen = painter->screen;
    struct canvas canvas;
    canvas.backdrop = backdrop;
    draw_standing(painter, bodies, count);
    const struct screen_list whole = screen_list_of(screen);
    bool full = screen->full;
    for (int32_t band = 0; band < CAMERA_ROWS / CAMERA_BAND_ROWS; band++) {
        canvas_begin(&canvas, band);
        if (full) { /* band by band, then, emptied onto the canvas as often as it fills up */
            screen->command_count = screen->point_count = 0;
            screen->rows = (struct screen_rows){band * CANVAS_BAND, (band + 1) * CANVAS_BAND};
            screen->canvas = &canvas;
            draw_standing(painter, bodies, count);
            const struct screen_list rest = screen_list_of(screen);
            canvas_draw(&canvas, &rest);
        } else {
            canvas_draw(&canvas, &whole);
        }
        canvas_resolve(&canvas, out);
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

static void painter_init(struct painter *painter, const struct raster_layers *layers,
                         const struct scenario *scenario, const struct scene *scene,
                         enum camera_index camera, struct screen *screen)
{
    const struct pose *ego = &scene->ego.pose;
    const struct vec2 at = {ego->x_m - layers->map.anchor.x_m, ego->y_m - layers->map.anchor.y_m};
    bool town = is_town(scenario);
    struct picture *picture = &painter->picture;
    memset(picture, 0, sizeof *picture);
    painter->screen = screen;
    painter->layers = layers;
    painter->scene = scene;
    picture->view = view_make(camera);
    picture->mood = mood_make(&scene->conditions, town);
    dmath_sincos(ego->heading_rad, &picture->ego_sin, &picture->ego_cos);
    picture->sky = sky_place_make(painter, ego->heading_rad, town);
    picture->ground = ground_place_make(&picture->mood, at, terrain_colour(scenario), town);
}

bool raster_camera_prepare(const struct raster_layers *layers, const struct scenario *scenario,
                           const struct scene *scene, enum camera_index camera,
                           struct picture *picture, struct screen *screen)
{
    struct body bodies[LIMIT_AGENTS];
    struct painter painter;
    painter_init(&painter, layers, scenario, scene, camera, screen);
    draw_standing(&painter, bodies, solids_pick(&painter, scenario, scene, bodies));
    *picture = painter.picture;
    return !screen->full;
}

void raster_camera_bounded(const struct raster_layers *layers, const struct scenario *scenario,
                           const struct scene *scene, uint64_t seed, enum camera_index camera,
                           uint32_t commands_max, uint32_t points_max, uint8_t *out)
{
    struct backdrop backdrop;
    struct body bodies[LIMIT_AGENTS];
    struct screen_command commands[SCREEN_COMMANDS];
    struct screen_point points[SCREEN_POINTS];
    struct painter painter;
    struct screen screen = {
        .commands = commands,
        .points = points,
        .commands_max = commands_max < SCREEN_COMMANDS ? commands_max : SCREEN_COMMANDS,
        .points_max = points_max < SCREEN_POINTS ? points_max : SCREEN_POINTS,
        .rows = {0, CANVAS_ROWS},
    };
    painter_init(&painter, layers, scenario, scene, camera, &screen);
    sky_draw(&painter, &backdrop);
    ground_draw(&painter, &layers->map, &backdrop);
    resolve_backdrop(&backdrop, out);
    draw_bands(&painter, bodies, solids_pick(&painter, scenario, scene, bodies), &backdrop, out);
    draw_precipitation(&painter, scene, seed, camera, out);
}

void raster_camera(const struct raster_layers *layers, const struct scenario *scenario,
                   const struct scene *scene, uint64_t seed, enum camera_index camera, uint8_t *out)
{
    raster_camera_bounded(layers, scenario, scene, seed, camera, SCREEN_COMMANDS, SCREEN_POINTS,
                          out);
}
