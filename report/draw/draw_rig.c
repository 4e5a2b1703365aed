/*
 * Pictures of a rig's cameras, as PNG files named after them.
 */
#include "report/draw/draw_rig.h"

#include "base/file.h"
#include "base/png/png_encode.h"
#include "base/text.h"
#include "engine/sensors/lens.h"
#include "engine/sensors/raster.h"
#include "engine/worlds/world.h"
#include "report/report_drive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A moment that is looked at. */
struct moment {
    const struct raster_layers *layers;
    const struct scenario *scenario;
    const struct scene *scene;
    uint64_t seed;
};

enum status draw_rig_check(const struct rig *rig, struct error *error)
{
    for (uint32_t i = 0; i < rig->camera_count; i++) {
        struct lens lens;
        TRY(lens_init(&rig->cameras[i], &lens, error));
    }
    return STATUS_OK;
}

static enum status write_camera(const struct moment *moment, const struct rig_camera *camera,
                                uint32_t index, const char *folder, struct error *error)
{
    struct raster_rays *rays = NULL;
    char path[LIMIT_PATH_BYTES];
    uint8_t *png = NULL;
    size_t bytes = 0;
    size_t size = (size_t)camera->width * (size_t)camera->height * 3;
    if (snprintf(path, sizeof path, "%s/%s.png", folder, camera->id) >= (int)sizeof path) {
        return error_set(error, STATUS_LIMIT, "%s: the path is too long", folder);
    }
    TRY(raster_rays_create(camera, index, &rays, error));
    uint8_t *rgb = malloc(size);
    enum status status =
        memory_check(rgb, error, "no memory for the %zu bytes of camera %s", size, camera->id);
    if (status == STATUS_OK) {
        raster_rays_draw(moment->layers, moment->scenario, moment->scene, moment->seed, rays, rgb);
    }
    THEN(status,
         png_encode(rgb, (uint32_t)camera->width, (uint32_t)camera->height, &png, &bytes, error));
    THEN(status, file_replace(path, png, bytes, 0644, error));
    if (status == STATUS_OK) {
        text_print(stdout, "%s: %d x %d\n", path, camera->width, camera->height);
    }
    free(png);
    free(rgb);
    raster_rays_destroy(rays);
    return status;
}

static enum status write_cameras(const struct moment *moment, const struct rig *rig,
                                 const char *folder, struct error *error)
{
    if (mkdir(folder, 0777) != 0 && errno != EEXIST) {
        return error_set(error, STATUS_IO, "%s: %s", folder, strerror(errno));
    }
    for (uint32_t i = 0; i < rig->camera_count; i++) {
        TRY(write_camera(moment, &rig->cameras[i], i, folder, error));
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
        const struct moment moment = {layers, scenario, ops->slot_scene(world, 0), seed};
        status = write_cameras(&moment, rig, folder, error);
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
    struct scene *scene = malloc(sizeof *scene);
    TRY(memory_check(scene, error, "no memory for a scene"));
    enum status status = report_drive_open(&drive, store, outcome, error);
    if (status == STATUS_OK) {
        int32_t rollout = report_drive_rollout(&drive, outcome);
        if (rollout < 0 || !report_drive_scene(&drive, rollout, tick, scene, NULL)) {
            status = error_set(error, STATUS_NOT_FOUND,
                               "outcome %lld: expected a recorded tick, found %u of %u",
                               (long long)outcome->id, tick, outcome->ticks);
        }
    }
    const struct raster_layers *layers = status == STATUS_OK ? report_drive_layers(&drive) : NULL;
    THEN(status, memory_check(layers, error, "no memory for the layers of a map"));
    if (status == STATUS_OK) {
        const struct moment moment = {layers, &drive.document->scenario, scene, outcome->seed};
        status = write_cameras(&moment, rig, folder, error);
    }
    report_drive_close(&drive);
    free(scene);
    return status;
}
