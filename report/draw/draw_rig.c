/*
 * Pictures of a rig's cameras and lidars, as PNG files named after them.
 */
#include "report/draw/draw_rig.h"

#include "base/file.h"
#include "base/png/png_encode.h"
#include "base/text.h"
#include "engine/lens/lens.h"
#include "engine/rigs/frames.h"
#include "engine/rigs/scan.h"
#include "engine/sensors/raster.h"
#include "engine/worlds/world.h"
#include "report/report_drive.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A moment that is looked at. */
struct moment {
    const struct raster_layers *layers;
    const struct scenario *scenario;
    const struct scene *before; /* the tick before, or the same */
    const struct scene *scene;
    uint64_t seed;
};

enum status draw_rig_check(const char *name, const struct rig *rig, struct errors *errors,
                           struct error *error)
{
    uint32_t before = errors_count(errors);
    for (uint32_t i = 0; i < rig->camera_count; i++) {
        struct lens lens;
        enum status status = lens_init(&rig->cameras[i], &lens, error);
        if (status != STATUS_OK) {
            status = error_prefix(error, "%s", name);
        }
        TRY(errors_keep(errors, status, error));
    }
    return errors_end(errors, before, error);
}

static enum status write_picture(const uint8_t *rgb, uint32_t width, uint32_t height,
                                 const char *folder, const char *id, struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    uint8_t *png = NULL;
    size_t bytes = 0;
    if (snprintf(path, sizeof path, "%s/%s.png", folder, id) >= (int)sizeof path) {
        return error_set(error, STATUS_LIMIT, "%s: the path is too long", folder);
    }
    TRY(png_encode(rgb, width, height, &png, &bytes, error));
    enum status status = file_replace(path, png, bytes, 0644, error);
    if (status == STATUS_OK) {
        text_print(stdout, "%s: %u x %u\n", path, width, height);
    }
    free(png);
    return status;
}

static enum status write_camera(const struct moment *moment, const struct rig_camera *camera,
                                uint32_t index, const char *folder, struct error *error)
{
    struct raster_rays *rays = NULL;
    size_t size = (size_t)camera->width * (size_t)camera->height * 3;
    TRY(raster_rays_create(camera, index, &rays, error));
    uint8_t *rgb = malloc(size);
    enum status status =
        memory_check(rgb, error, "no memory for the %zu bytes of camera %s", size, camera->id);
    if (status == STATUS_OK) {
        frames_draw(moment->layers, moment->scenario, moment->before, moment->scene, moment->seed,
                    camera, rays, rig_camera_frames(camera) - 1, rgb);
    }
    THEN(status, write_picture(rgb, (uint32_t)camera->width, (uint32_t)camera->height, folder,
                               camera->id, error));
    free(rgb);
    raster_rays_destroy(rays);
    return status;
}

/* ---- lidars ---- */

enum { SCAN_SIDE = 800, SCAN_COLOURS = 4 };
#define SCAN_PIXELS_PER_M 8.0 /* 50 m to every side */

/* Picture of points from above. */
struct plan {
    float *height_m; /* [SCAN_SIDE][SCAN_SIDE], of what shows */
    uint8_t *rgb;    /* [SCAN_SIDE][SCAN_SIDE][3] */
};

/* Square of (2 reach + 1) pixels, where nothing higher is. */
static void draw_dot(struct plan *plan, int32_t row, int32_t col, int32_t reach, float height_m,
                     const uint8_t colour[3])
{
    for (int32_t r = row - reach; r <= row + reach; r++) {
        for (int32_t c = col - reach; c <= col + reach; c++) {
            if (r < 0 || r >= SCAN_SIDE || c < 0 || c >= SCAN_SIDE) {
                continue;
            }
            size_t pixel = (size_t)r * SCAN_SIDE + (size_t)c;
            if (height_m > plan->height_m[pixel]) {
                plan->height_m[pixel] = height_m;
                memcpy(&plan->rgb[3 * pixel], colour, 3);
            }
        }
    }
}

/* Ego in the middle looks up. The ground is grey by intensity; what stands on it is coloured by
 * height and larger. */
static void draw_points(const struct scan *scan, const struct scan_point *points, uint32_t count,
                        struct plan *plan)
{
    static const uint8_t colours[SCAN_COLOURS][3] = {
        {60, 140, 255}, {60, 220, 160}, {250, 210, 60}, {255, 90, 60}}; /* a metre each */
    for (size_t i = 0; i < (size_t)SCAN_SIDE * SCAN_SIDE; i++) {
        plan->height_m[i] = -INFINITY;
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct vec3 at = scan_place(scan, &points[i]);
        double col = floor(SCAN_SIDE / 2.0 - at.y * SCAN_PIXELS_PER_M);
        double row = floor(SCAN_SIDE / 2.0 - at.x * SCAN_PIXELS_PER_M);
        if (!(col >= 0.0 && col < SCAN_SIDE && row >= 0.0 && row < SCAN_SIDE)) {
            continue;
        }
        /* At flat angles little comes back: the root shows what the ground is made of. */
        uint8_t grey = (uint8_t)(50.0 + 205.0 * sqrt(points[i].intensity / 255.0));
        const uint8_t ground[3] = {grey, grey, grey};
        bool stands = at.z > 0.05;
        int metres = at.z < SCAN_COLOURS ? (int)at.z : SCAN_COLOURS - 1;
        draw_dot(plan, (int32_t)row, (int32_t)col, stands, (float)at.z,
                 stands ? colours[metres] : ground);
    }
}

static enum status write_lidar(const struct moment *moment, const struct rig_lidar *lidar,
                               uint32_t index, const char *folder, struct error *error)
{
    struct scan *scan = NULL;
    TRY(scan_create(lidar, index, &scan, error));
    uint32_t most = scan_points_max(scan);
    struct scan_point *points = malloc(most * sizeof *points);
    float *height_m = malloc((size_t)SCAN_SIDE * SCAN_SIDE * sizeof *height_m);
    uint8_t *rgb = calloc((size_t)SCAN_SIDE * SCAN_SIDE, 3);
    enum status status = STATUS_OK;
    if (points == NULL || height_m == NULL || rgb == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "no memory for the %u points of lidar %s", most,
                           lidar->id);
    } else {
        uint32_t count = frames_scan(moment->layers, moment->scenario, moment->before,
                                     moment->scene, moment->seed, lidar, scan, points);
        draw_points(scan, points, count, &(struct plan){height_m, rgb});
        status = write_picture(rgb, SCAN_SIDE, SCAN_SIDE, folder, lidar->id, error);
    }
    free(rgb);
    free(height_m);
    free(points);
    scan_destroy(scan);
    return status;
}

static enum status write_sensors(const struct moment *moment, const struct rig *rig,
                                 const char *folder, struct error *error)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return error_set(error, STATUS_IO, "%s: %s", folder, strerror(errno));
    }
    for (uint32_t i = 0; i < rig->camera_count; i++) {
        TRY(write_camera(moment, &rig->cameras[i], i, folder, error));
    }
    for (uint32_t i = 0; i < rig->lidar_count; i++) {
        TRY(write_lidar(moment, &rig->lidars[i], i, folder, error));
    }
    return STATUS_OK;
}

enum status draw_rig_start(const struct rig *rig, const struct scenario *scenario, uint64_t seed,
                           const char *folder, struct error *error)
{
    const struct world_ops *ops = &world_object_ops;
    const struct world_config config = {.slot_count = 1};
    struct prepared *prepared = NULL;
    struct raster_layers *layers = NULL;
    struct world *world = NULL;
    TRY(prepared_create(scenario, &prepared, error));
    enum status status = raster_layers_create(&scenario->map, &layers, error);
    THEN(status, ops->open(&config, &world, error));
    THEN(status, ops->slot_reset(world, 0, prepared, seed, error));
    if (status == STATUS_OK) {
        const struct scene *scene = ops->slot_scene(world, 0);
        const struct moment moment = {layers, scenario, scene, scene, seed};
        status = write_sensors(&moment, rig, folder, error);
    }
    ops->close(world);
    raster_layers_destroy(layers);
    prepared_unref(prepared);
    return status;
}

enum status draw_rig_tick(const struct rig *rig, struct store *store, const struct outcome *outcome,
                          uint32_t tick, const char *folder, struct error *error)
{
    struct report_drive drive = {0};
    struct scene *scenes = malloc(2 * sizeof *scenes); /* of the tick before and the tick */
    TRY(memory_check(scenes, error, "no memory for scenes"));
    enum status status =
        report_drive_open(&drive, store, outcome->scenario_hash, outcome->artifact_hash, error);
    if (status == STATUS_OK) {
        int32_t rollout = report_drive_rollout(&drive, outcome->branch_id);
        if (rollout < 0 || !report_drive_scene(&drive, rollout, tick, &scenes[1], NULL) ||
            !report_drive_scene(&drive, rollout, tick > 0 ? tick - 1 : 0, &scenes[0], NULL)) {
            status = error_set(error, STATUS_NOT_FOUND,
                               "outcome %lld: expected a recorded tick, found %u of %u",
                               (long long)outcome->id, tick, outcome->ticks);
        }
    }
    const struct raster_layers *layers = status == STATUS_OK ? report_drive_layers(&drive) : NULL;
    THEN(status, memory_check(layers, error, "no memory for the layers of a map"));
    if (status == STATUS_OK) {
        const struct moment moment = {layers, &drive.document->scenario, &scenes[0], &scenes[1],
                                      outcome->seed};
        status = write_sensors(&moment, rig, folder, error);
    }
    report_drive_close(&drive);
    free(scenes);
    return status;
}
