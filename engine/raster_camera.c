/*
 * Cameras: one perspective image from a scene, in bands of rows: sky and ground by inverse mapping
 * of canvas pixels (the ground through the map layers), agents as solids over them, then rain or
 * snow in front of the lens. A picture that a person can read at a glance and a network can learn
 * from; the calibration is in schemas/observation.h.
 */
#include "engine/raster_camera.h"
#include "base/dmath.h"
#include "base/rng.h"
#include "engine/raster.h"

#include <math.h>
#include <string.h>

#define GROUND_MAX_M 400.0

/* The map as the ground pixels of one image read it; remembers the last tile. */
struct ground {
    const struct raster_layers *layers;
    double origin_x, origin_y; /* ego, relative to the layers' anchor */
    int32_t tile_x, tile_y;
    uint32_t tile;
    struct rgb terrain;
    bool paved; /* a town: what is not road is pavement */
};

/* ---- ground ---- */

static const struct rgb material_colours[MATERIAL_COUNT] = {
    [MATERIAL_SIDEWALK] = {0.62f, 0.60f, 0.57f},  [MATERIAL_ROAD] = {0.33f, 0.335f, 0.35f},
    [MATERIAL_SHOULDER] = {0.38f, 0.38f, 0.385f}, [MATERIAL_CYCLE] = {0.50f, 0.30f, 0.25f},
    [MATERIAL_WATER] = {0.26f, 0.36f, 0.45f},     [MATERIAL_ICE] = {0.68f, 0.77f, 0.83f},
    [MATERIAL_OIL] = {0.11f, 0.10f, 0.13f},       [MATERIAL_GRAVEL] = {0.52f, 0.47f, 0.40f},
    [MATERIAL_SNOW] = {0.88f, 0.90f, 0.93f},
};

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

/* Integer part towards minus infinity, without a call. */
static int32_t floor_int(double x)
{
    int32_t i = (int32_t)x;
    return i - (i > x);
}

static void move_to_tile(struct ground *ground, int32_t tile_x, int32_t tile_y)
{
    if (tile_x != ground->tile_x || tile_y != ground->tile_y) {
        ground->tile_x = tile_x;
        ground->tile_y = tile_y;
        ground->tile = raster_layers_tile(ground->layers, tile_x, tile_y);
    }
}

/* Interpolated coverage (drivable, marking) at a position in texels. */
static void sample_layers(struct ground *ground, double x, double y, float *drivable,
                          float *marking)
{
    int32_t ix = floor_int(x - 0.5);
    int32_t iy = floor_int(y - 0.5);
    move_to_tile(ground, ix >> RASTER_TILE_BITS, iy >> RASTER_TILE_BITS);
    *drivable = 0.0f;
    *marking = 0.0f;
    if (ground->tile == 0) {
        return;
    }
    int32_t mask = RASTER_TILE_TEXELS - 1;
    uint64_t texel =
        ground->layers->texels[(size_t)ground->tile * RASTER_TILE_CELLS +
                               (size_t)((iy & mask) * RASTER_TILE_TEXELS + (ix & mask))];
    float tx = (float)(x - 0.5 - ix);
    float ty = (float)(y - 0.5 - iy);
    float weights[4] = {(1 - tx) * (1 - ty), tx * (1 - ty), (1 - tx) * ty, tx * ty};
    for (int k = 0; k < 4; k++) {
        *drivable += weights[k] * (float)(texel >> (8 * k) & 255);
        *marking += weights[k] * (float)(texel >> (8 * k + 32) & 255);
    }
    *drivable *= 1.0f / 255.0f;
    *marking *= 1.0f / 255.0f;
}

/* Paint and material right at a position in texels. */
static void sample_detail(struct ground *ground, double x, double y, bool *paint,
                          enum raster_material *material)
{
    int32_t ix = floor_int(x * 8.0);
    int32_t iy = floor_int(y * 8.0);
    move_to_tile(ground, ix >> 8, iy >> 8);
    *paint = false;
    *material = MATERIAL_NONE;
    if (ground->tile == 0) {
        return;
    }
    const struct raster_detail *detail = &ground->layers->details[ground->tile];
    ix &= 255;
    iy &= 255;
    *paint = detail->paint.rows[iy][ix >> 6] >> (ix & 63) & 1;
    *material = detail->material[(iy >> 3) * RASTER_TILE_TEXELS + (ix >> 3)];
}

/* Unlit colour of the ground at (x, y) of ego's frame; `footprint_m` is the width of a pixel. */
static struct rgb ground_colour(const struct painter *painter, struct ground *ground, double x,
                                double y, double footprint_m)
{
    double world_x = ground->origin_x + x * painter->ego_cos - y * painter->ego_sin;
    double world_y = ground->origin_y + x * painter->ego_sin + y * painter->ego_cos;
    double tx = world_x / RASTER_TEXEL_M;
    double ty = world_y / RASTER_TEXEL_M;
    float drivable;
    float marking;
    bool paint;
    enum raster_material material;
    sample_layers(ground, tx, ty, &drivable, &marking);
    sample_detail(ground, tx, ty, &paint, &material);

    /* Close by, the edge of the blurred coverage is made as sharp as a pixel. */
    float sharp = (float)dmath_clamp(0.5 / (footprint_m * 2.0 + 0.05), 1.0, 5.0);
    float road = (float)dmath_clamp((drivable - 0.5f) * sharp + 0.5f, 0.0, 1.0);
    float fine = (float)dmath_clamp(1.2 - footprint_m * 9.0, 0.0, 1.0);
    float grain = fine > 0 ? (float)(mood_noise(world_x * 2.1, world_y * 2.1) - 0.5) : 0.0f;
    float patches = (float)(mood_noise(world_x * 0.16, world_y * 0.16) - 0.5);
    struct rgb off = material == MATERIAL_SIDEWALK || (ground->paved && drivable > 0.01f)
                         ? material_colours[MATERIAL_SIDEWALK]
                         : ground->terrain;
    off = rgb_times(off, 1.0f + 0.16f * patches + 0.14f * grain * fine);
    struct rgb on = material_colours[material > MATERIAL_SIDEWALK ? material : MATERIAL_ROAD];
    on = rgb_times(on, 1.0f + 0.07f * patches + 0.06f * grain * fine);
    if (material > MATERIAL_CYCLE) {
        road = 1.0f; /* a surface patch shows wherever it lies */
    }
    float snow = (float)painter->mood.snow;
    off = rgb_mix(off, material_colours[MATERIAL_SNOW], snow);
    on = rgb_mix(on, material_colours[MATERIAL_SNOW], snow * (0.45f + 0.5f * patches));
    struct rgb colour = rgb_mix(off, on, road);
    /* Paint as it is close by, as coverage where a pixel is wider than a line. */
    float blend = (float)dmath_clamp((footprint_m - 0.12) * 6.0, 0.0, 1.0);
    float cover = (paint ? 1.0f : 0.0f) * (1.0f - blend) + marking * blend;
    return rgb_mix(colour, (struct rgb){0.93f, 0.93f, 0.90f}, cover * (1.0f - 0.6f * snow));
}

static struct rgb lit_ground(const struct painter *painter, struct ground *ground, double x,
                             double y, double footprint_m, double distance_m)
{
    const struct mood *mood = &painter->mood;
    struct rgb colour = ground_colour(painter, ground, x, y, footprint_m);
    float lamp = (float)mood_headlight(mood, x, y);
    struct rgb light = rgb_add(mood->ambient, rgb_times(mood->sun, (float)mood->sun_direction.z));
    light = rgb_add(light, rgb_times((struct rgb){0.95f, 0.9f, 0.78f}, lamp));
    colour = rgb_scale(colour, light);
    if (mood->wet > 0) {
        /* Wet ground is darker and mirrors the sky at grazing angles. */
        double grazing = distance_m / (distance_m + 9.0);
        colour = rgb_times(colour, (float)(1.0 - 0.28 * mood->wet));
        colour = rgb_mix(colour, mood->horizon, (float)(0.42 * mood->wet * grazing * grazing));
    }
    return mood_fade(mood, colour, distance_m);
}

/* One canvas row of ground: averages several depths where a row spans many metres. */
static void draw_ground_row(const struct painter *painter, struct ground *ground, int32_t r,
                            double v)
{
    struct canvas *canvas = painter->canvas;
    const struct camera_view *view = &painter->view;
    double depth = view->origin.z * view->focal / v;
    double span = depth * depth / (view->origin.z * view->focal);
    int32_t samples = (int32_t)dmath_clamp(span + 0.5, 1.0, 4.0);
    for (int32_t c = 0; c < CANVAS_COLS; c++) {
        double right = (c + 0.5 - CANVAS_COLS / 2.0) / view->focal;
        struct rgb sum = {0, 0, 0};
        for (int32_t k = 0; k < samples; k++) {
            double z = view->origin.z * view->focal / (v + (k + 0.5) / samples - 0.5);
            z = dmath_min(z, GROUND_MAX_M);
            double x = view->origin.x + z * view->cos_yaw + right * z * view->sin_yaw;
            double y = view->origin.y + z * view->sin_yaw - right * z * view->cos_yaw;
            double distance = z * sqrt(1.0 + right * right);
            sum = rgb_add(sum, lit_ground(painter, ground, x, y, z / view->focal, distance));
        }
        canvas->colour[r][c] = rgb_times(sum, 1.0f / (float)samples);
        canvas->inverse_depth[r][c] = 0.0f;
    }
}

/* All sky rows of the band. It is smooth across, so one direction serves a whole image column. */
static void draw_sky(const struct painter *painter, bool town)
{
    struct canvas *canvas = painter->canvas;
    const struct camera_view *view = &painter->view;
    int32_t rows = CANVAS_ROWS / 2 - canvas->first_row;
    rows = rows < CANVAS_BAND ? rows : CANVAS_BAND;
    if (rows <= 0) {
        return;
    }
    double yaw = dmath_atan2(view->sin_yaw, view->cos_yaw);
    for (int32_t c = 0; c < CANVAS_COLS; c += CAMERA_SCALE) {
        double right = (c + CAMERA_SCALE / 2.0 - CANVAS_COLS / 2.0) / view->focal;
        double scale = 1.0 / view->focal / sqrt(1.0 + right * right);
        struct sky_column column = sky_column_make(painter, yaw - dmath_atan(right), town);
        for (int32_t r = 0; r < rows; r++) {
            double up = CANVAS_ROWS / 2.0 - (canvas->first_row + r + 0.5);
            struct rgb colour = sky_colour(painter, &column, up * scale);
            for (int32_t k = 0; k < CAMERA_SCALE; k++) {
                canvas->colour[r][c + k] = colour;
                canvas->inverse_depth[r][c + k] = 0.0f;
            }
        }
    }
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

/* Averages the band down into image rows. */
static void resolve_band(const struct canvas *canvas, uint8_t *out)
{
    const float part = 1.0f / (CAMERA_SCALE * CAMERA_SCALE);
    int32_t first = canvas->first_row / CAMERA_SCALE;
    for (int32_t row = 0; row < CAMERA_BAND_ROWS; row++) {
        for (int32_t col = 0; col < CAMERA_COLS; col++) {
            struct rgb sum = {0, 0, 0};
            for (int32_t k = 0; k < CAMERA_SCALE * CAMERA_SCALE; k++) {
                struct rgb c = canvas->colour[row * CAMERA_SCALE + k / CAMERA_SCALE]
                                             [col * CAMERA_SCALE + k % CAMERA_SCALE];
                c.r = c.r > 1.0f ? 1.0f : c.r;
                c.g = c.g > 1.0f ? 1.0f : c.g;
                c.b = c.b > 1.0f ? 1.0f : c.b;
                sum = rgb_add(sum, c);
            }
            uint8_t *pixel = out + ((first + row) * CAMERA_COLS + col) * 3;
            pixel[0] = to_byte(sum.r * part);
            pixel[1] = to_byte(sum.g * part);
            pixel[2] = to_byte(sum.b * part);
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
    struct canvas canvas;
    struct painter painter = {
        .view = view_make(camera),
        .mood = mood_make(&scene->conditions, is_town(scenario)),
        .ego_heading = scene->ego.pose.heading_rad,
        .canvas = &canvas,
    };
    dmath_sincos(scene->ego.pose.heading_rad, &painter.ego_sin, &painter.ego_cos);
    struct ground ground = {
        .layers = layers,
        .origin_x = scene->ego.pose.x_m - layers->anchor.x_m,
        .origin_y = scene->ego.pose.y_m - layers->anchor.y_m,
        .tile_x = INT32_MIN,
        .tile_y = INT32_MIN,
        .terrain = terrain_colour(scenario),
        .paved = is_town(scenario),
    };
    for (int32_t band = 0; band < CAMERA_ROWS / CAMERA_BAND_ROWS; band++) {
        canvas.first_row = band * CANVAS_BAND;
        draw_sky(&painter, ground.paved);
        for (int32_t r = 0; r < CANVAS_BAND; r++) {
            double v = canvas.first_row + r + 0.5 - CANVAS_ROWS / 2.0;
            if (v > 0) {
                draw_ground_row(&painter, &ground, r, v);
            }
        }
        solids_draw(&painter, scenario, scene);
        resolve_band(&canvas, out);
    }
    draw_precipitation(&painter, scene, seed, camera, out);
}
