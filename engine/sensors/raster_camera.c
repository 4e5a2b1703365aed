/*
 * Cameras: one perspective image of any size from a scene, patch by patch: sky and ground as a
 * backdrop, by inverse mapping of pixels; agents as solids over it; then rain or snow in front of
 * the lens. A picture that a person can read at a glance and a network can learn from.
 */
#include "engine/sensors/raster_camera.h"
#include "base/check.h"
#include "base/dmath.h"
#include "base/rng.h"
#include "engine/sensors/raster.h"
#include "schemas/rig/rig.h"

#include <stdlib.h>
#include <string.h>

enum { CUT_COMMANDS = 1 << 16, CUT_POINTS = 4 * CUT_COMMANDS }; /* of faces that were cut */

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

/* A square of `side` pixels whose upper left corner is (col, row), both in squares. */
static void blend_square(const struct painter *painter, uint8_t *out, int32_t side, int32_t col,
                         int32_t row, struct rgb colour, float opacity)
{
    const struct raster_area *area = &painter->area;
    const size_t cols = (size_t)painter->picture.view.cols;
    const float parts[3] = {colour.r, colour.g, colour.b};
    for (int32_t i = 0; i < side * side; i++) {
        int32_t r = row * side + i / side;
        int32_t c = col * side + i % side;
        if (c < area->first_col || c >= area->end_col || r < area->first_row ||
            r >= area->end_row) {
            continue;
        }
        uint8_t *pixel = out + ((size_t)r * cols + (size_t)c) * 3;
        for (int k = 0; k < 3; k++) {
            float mixed = pixel[k] + (parts[k] * 255.0f - pixel[k]) * opacity;
            pixel[k] = (uint8_t)(mixed + 0.5f);
        }
    }
}

/* Streaks of rain, flakes of snow: new ones every tick, from the camera's random stream. Drops are
 * as large in an image of any size. */
static void draw_precipitation(const struct painter *painter, uint64_t seed, uint32_t stream,
                               uint8_t *out)
{
    static const uint32_t counts[WEATHER_COUNT] = {
        [WEATHER_RAIN] = 45, [WEATHER_HEAVY_RAIN] = 110, [WEATHER_SNOW] = 120};
    const struct camera_view *view = &painter->picture.view;
    const struct scene *scene = painter->scene;
    bool snow = scene->conditions.weather == WEATHER_SNOW;
    float bright = painter->picture.mood.headlights > 0.5 ? 0.55f : 0.95f;
    struct rgb colour = snow ? rgb_times((struct rgb){1.0f, 1.0f, 1.0f}, bright)
                             : rgb_times((struct rgb){0.80f, 0.84f, 0.90f}, bright);
    int32_t side = view->rows / CAMERA_ROWS > 1 ? view->rows / CAMERA_ROWS : 1;
    uint32_t cols = (uint32_t)(view->cols + side - 1) / (uint32_t)side;
    uint32_t rows = (uint32_t)(view->rows + side - 1) / (uint32_t)side;
    for (uint32_t i = 0; i < counts[scene->conditions.weather]; i++) {
        uint32_t counter[4] = {scene->tick, RNG_STREAM_CAMERA, stream << 16 | i, 0};
        uint32_t words[4];
        rng_philox(seed, counter, words);
        int32_t col = (int32_t)(words[0] % cols);
        int32_t row = (int32_t)(words[1] % (rows + 8)) - 8;
        float opacity = 0.10f + 0.16f * (float)(words[2] & 255) / 255.0f;
        int32_t length = snow ? 1 + (int32_t)(words[3] % 8 == 0) : 3 + (int32_t)(words[3] % 6);
        for (int32_t k = 0; k < length; k++) {
            blend_square(painter, out, side, col + (snow ? 0 : k / 4), row + k, colour,
                         snow ? opacity * 2.6f : opacity);
        }
    }
}

/* ---- the whole ---- */

/* Agents that may be in an image. */
struct standing {
    struct body bodies[LIMIT_AGENTS];
    uint32_t count;
};

/* Everything that stands on the ground. */
static void draw_standing(const struct painter *painter, const struct standing *standing)
{
    solids_draw(standing->bodies, standing->count);
    signals_draw(painter, painter->layers, painter->scene);
}

static void draw_backdrop(const struct painter *painter, const struct sky *sky,
                          struct ground *ground, const struct patch *patch, struct backdrop *out)
{
    const struct camera_view *view = &painter->picture.view;
    if (painter->rays != NULL) {
        rays_backdrop(painter, ground, patch, out);
        return;
    }
    for (int32_t i = 0; i < patch->rows; i++) {
        int32_t row = patch->first_row + i;
        if (row < view->rows / 2) {
            sky_row(painter, sky, row, &out->rows[i]);
        } else {
            ground_row(painter, ground, row, patch->first_col, patch->cols, &out->rows[i]);
        }
    }
}

static void resolve_backdrop(const struct painter *painter, const struct backdrop *backdrop,
                             const struct patch *patch, uint8_t *out)
{
    size_t cols = (size_t)painter->picture.view.cols;
    for (int32_t row = 0; row < patch->rows; row++) {
        size_t first = (size_t)(patch->first_row + row) * cols + (size_t)patch->first_col;
        painter->layers->rows.bytes(&backdrop->rows[row], patch->cols, out + first * 3);
    }
}

/* Draws what stands on a patch over its backdrop: `whole`, the painter's screen, or where that is
 * full, the patch's rows anew. */
static void draw_patch(const struct painter *painter, const struct standing *standing,
                       const struct screen_list *whole, bool full, struct canvas *canvas)
{
    const struct patch *patch = &canvas->patch;
    struct screen *screen = painter->screen;
    if (!full) {
        canvas_draw(canvas, whole);
        return;
    }
    /* Emptied onto the canvas as often as it fills up. */
    screen->command_count = screen->point_count = 0;
    screen->rows = (struct screen_rows){patch->first_row * CAMERA_SCALE,
                                        (patch->first_row + patch->rows) * CAMERA_SCALE};
    screen->canvas = canvas;
    draw_standing(painter, standing);
    const struct screen_list rest = screen_list_of(screen);
    canvas_draw(canvas, &rest);
}

static int32_t lower(int32_t a, int32_t b)
{
    return a < b ? a : b;
}

/* Draws the area patch by patch. */
static void draw_patches(const struct painter *painter, const struct standing *standing,
                         uint8_t *out)
{
    const struct picture *picture = &painter->picture;
    const struct raster_area *area = &painter->area;
    struct sky sky;
    struct ground ground;
    struct backdrop backdrop;
    struct canvas canvas;
    struct patch patch;
    canvas.rays = painter->rays;
    canvas.backdrop = &backdrop;
    ground_init(picture, &painter->layers->map, &ground);
    draw_standing(painter, standing);
    const struct screen_list whole = screen_list_of(painter->screen);
    bool full = painter->screen->full;
    for (patch.first_col = area->first_col; patch.first_col < area->end_col;
         patch.first_col += PICTURE_TILE_COLS) {
        patch.cols = lower(area->end_col - patch.first_col, PICTURE_TILE_COLS);
        if (painter->rays == NULL) {
            sky_init(picture, patch.first_col, patch.cols, &sky);
        }
        for (patch.first_row = area->first_row; patch.first_row < area->end_row;
             patch.first_row += CAMERA_BAND_ROWS) {
            patch.rows = lower(area->end_row - patch.first_row, CAMERA_BAND_ROWS);
            draw_backdrop(painter, &sky, &ground, &patch, &backdrop);
            resolve_backdrop(painter, &backdrop, &patch, out);
            canvas_begin(&canvas, &patch);
            draw_patch(painter, standing, &whole, full, &canvas);
            canvas_resolve(&canvas, picture->view.cols, out);
        }
    }
}

static struct camera_view view_make(const struct raster_level *camera)
{
    const struct camera_calibration *calibration = &camera->calibration;
    double side = dmath_tan(calibration->hfov_rad / 2);
    struct camera_view view = {
        .origin = {calibration->x_m, calibration->y_m, calibration->z_m},
        .focal = camera->cols * CAMERA_SCALE / 2.0 / side,
        .ground_max_m = ground_max_m(side),
        .rows = camera->rows,
        .cols = camera->cols,
    };
    dmath_sincos(calibration->yaw_rad, &view.sin_yaw, &view.cos_yaw);
    return view;
}

static void painter_init(struct painter *painter, const struct raster_layers *layers,
                         const struct scenario *scenario, const struct scene *scene,
                         const struct camera_view *view, const struct raster_area *area,
                         struct screen *screen)
{
    const struct pose *ego = &scene->ego.pose;
    const struct vec2 at = {ego->x_m - layers->map.anchor.x_m, ego->y_m - layers->map.anchor.y_m};
    bool town = is_town(scenario);
    struct picture *picture = &painter->picture;
    memset(picture, 0, sizeof *picture);
    screen->rows =
        (struct screen_rows){area->first_row * CAMERA_SCALE, area->end_row * CAMERA_SCALE};
    painter->rays = NULL;
    painter->area = *area;
    painter->screen = screen;
    painter->layers = layers;
    painter->scene = scene;
    picture->view = *view;
    picture->mood = mood_make(&scene->conditions, town);
    dmath_sincos(ego->heading_rad, &picture->ego_sin, &picture->ego_cos);
    picture->sky = sky_place_make(painter, ego->heading_rad, town);
    picture->ground = ground_place_make(&picture->mood, at, terrain_colour(scenario), town);
}

static struct raster_level level_of(enum camera_index camera)
{
    return (struct raster_level){camera_calibrations[camera], CAMERA_ROWS, CAMERA_COLS,
                                 (uint32_t)camera};
}

bool raster_camera_prepare(const struct raster_layers *layers, const struct scenario *scenario,
                           const struct scene *scene, enum camera_index camera,
                           struct picture *picture, struct screen *screen)
{
    const struct raster_level level = level_of(camera);
    const struct camera_view view = view_make(&level);
    const struct raster_area whole = {0, level.rows, 0, level.cols};
    struct standing standing;
    struct painter painter;
    painter_init(&painter, layers, scenario, scene, &view, &whole, screen);
    standing.count = solids_pick(&painter, scenario, scene, standing.bodies);
    draw_standing(&painter, &standing);
    *picture = painter.picture;
    return !screen->full;
}

static void level_draw(const struct raster_layers *layers, const struct scenario *scenario,
                       const struct scene *scene, uint64_t seed, const struct raster_level *camera,
                       const struct raster_area *area, const struct screen *bounds, uint8_t *out)
{
    const struct camera_view view = view_make(camera);
    struct standing standing;
    struct screen_command commands[SCREEN_COMMANDS];
    struct screen_point points[SCREEN_POINTS];
    struct painter painter;
    struct screen screen = {
        .commands = commands,
        .points = points,
        .commands_max = bounds->commands_max,
        .points_max = bounds->points_max,
    };
    painter_init(&painter, layers, scenario, scene, &view, area, &screen);
    standing.count = solids_pick(&painter, scenario, scene, standing.bodies);
    draw_patches(&painter, &standing, out);
    draw_precipitation(&painter, seed, camera->stream, out);
}

void raster_level_bounded(const struct raster_layers *layers, const struct scenario *scenario,
                          const struct scene *scene, uint64_t seed,
                          const struct raster_level *camera, uint32_t commands_max,
                          uint32_t points_max, uint8_t *out)
{
    const struct screen bounds = {
        .commands_max = commands_max < SCREEN_COMMANDS ? commands_max : SCREEN_COMMANDS,
        .points_max = points_max < SCREEN_POINTS ? points_max : SCREEN_POINTS,
    };
    const struct raster_area whole = {0, camera->rows, 0, camera->cols};
    level_draw(layers, scenario, scene, seed, camera, &whole, &bounds, out);
}

static const struct screen level_bounds = {.commands_max = SCREEN_COMMANDS,
                                           .points_max = SCREEN_POINTS};

static void check_level(const struct raster_level *camera)
{
    CHECK(camera->rows >= 2 && camera->rows % 2 == 0 && camera->rows <= RIG_SIDE_MAX &&
          camera->cols >= 2 && camera->cols <= RIG_SIDE_MAX);
}

void raster_level(const struct raster_layers *layers, const struct scenario *scenario,
                  const struct scene *scene, uint64_t seed, const struct raster_level *camera,
                  uint8_t *out)
{
    const struct raster_area whole = {0, camera->rows, 0, camera->cols};
    check_level(camera);
    level_draw(layers, scenario, scene, seed, camera, &whole, &level_bounds, out);
}

void raster_rays_draw_part(const struct raster_layers *layers, const struct scenario *scenario,
                           const struct scene *scene, uint64_t seed, const struct raster_rays *rays,
                           const struct raster_area *area, struct sky_ring *ring, uint8_t *out)
{
    const struct camera_view view = {
        .origin = rays->origin,
        .cos_yaw = 1.0, /* directions are in ego's frame */
        .focal = rays->cols * CAMERA_SCALE / 2.0,
        .ground_max_m = GROUND_MAX_M,
        .rows = rays->rows,
        .cols = rays->cols,
    };
    struct standing standing;
    struct screen_command few[SCREEN_COMMANDS];
    struct screen_point few_points[SCREEN_POINTS];
    struct painter painter;
    CHECK(area->first_row >= 0 && area->end_row <= rays->rows && area->first_col >= 0 &&
          area->end_col <= rays->cols);
    if (rays->is_level) {
        check_level(&rays->level);
        level_draw(layers, scenario, scene, seed, &rays->level, area, &level_bounds, out);
        return;
    }
    /* Lists of faces that were cut are long; where memory is short, short ones give the same. */
    struct screen_command *commands = malloc(CUT_COMMANDS * sizeof *commands);
    struct screen_point *points = malloc(CUT_POINTS * sizeof *points);
    bool many = commands != NULL && points != NULL;
    struct screen screen = {.commands = many ? commands : few,
                            .points = many ? points : few_points,
                            .commands_max = many ? CUT_COMMANDS : SCREEN_COMMANDS,
                            .points_max = many ? CUT_POINTS : SCREEN_POINTS};
    painter_init(&painter, layers, scenario, scene, &view, area, &screen);
    painter.rays = rays;
    painter.ring = ring;
    standing.count = solids_pick(&painter, scenario, scene, standing.bodies);
    draw_patches(&painter, &standing, out);
    draw_precipitation(&painter, seed, rays->level.stream, out);
    for (int32_t row = area->first_row; row < area->end_row; row++) {
        size_t first = (size_t)row * (size_t)rays->cols;
        for (int32_t col = area->first_col; col < area->end_col; col++) {
            if (rays_blind(&rays->rays[first + (size_t)col])) {
                memset(&out[3 * (first + (size_t)col)], 0, 3);
            }
        }
    }
    free(points);
    free(commands);
}

void raster_rays_draw_area(const struct raster_layers *layers, const struct scenario *scenario,
                           const struct scene *scene, uint64_t seed, const struct raster_rays *rays,
                           const struct raster_area *area, uint8_t *out)
{
    struct sky_ring ring;
    ring.made = false;
    raster_rays_draw_part(layers, scenario, scene, seed, rays, area, &ring, out);
}

void raster_rays_draw(const struct raster_layers *layers, const struct scenario *scenario,
                      const struct scene *scene, uint64_t seed, const struct raster_rays *rays,
                      uint8_t *out)
{
    const struct raster_area whole = {0, rays->rows, 0, rays->cols};
    raster_rays_draw_area(layers, scenario, scene, seed, rays, &whole, out);
}

void raster_camera(const struct raster_layers *layers, const struct scenario *scenario,
                   const struct scene *scene, uint64_t seed, enum camera_index camera, uint8_t *out)
{
    const struct raster_level level = level_of(camera);
    raster_level(layers, scenario, scene, seed, &level, out);
}
