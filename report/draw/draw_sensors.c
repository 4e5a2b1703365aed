/*
 * Sensors of a rig in a recorded drive. See draw_sensors.h.
 */
#include "report/draw/draw_sensors.h"

#include "base/units.h"
#include "engine/rigs/frames.h"

#include <stdlib.h>

struct draw_sensors {
    const struct rig *rig;
    struct raster_rays *rays[RIG_CAMERAS_MAX];
    struct scan *scans[RIG_LIDARS_MAX];
    uint8_t *rgb;              /* room for the largest picture */
    struct scan_point *points; /* room for the longest turn */
    /* Things that are looked at. */
    const struct raster_layers *layers;
    const struct scenario *scenario;
    struct scene before, now;
    uint64_t seed;
};

static enum status open_sensors(struct draw_sensors *sight, struct error *error)
{
    const struct rig *rig = sight->rig;
    size_t picture = 1;
    uint32_t turn = 1;
    for (uint32_t i = 0; i < rig->camera_count; i++) {
        const struct rig_camera *camera = &rig->cameras[i];
        const size_t bytes = (size_t)camera->width * (size_t)camera->height * 3;
        TRY(raster_rays_create(camera, i, &sight->rays[i], error));
        picture = bytes > picture ? bytes : picture;
    }
    for (uint32_t i = 0; i < rig->lidar_count; i++) {
        TRY(scan_create(&rig->lidars[i], i, &sight->scans[i], error));
        const uint32_t count = scan_points_max(sight->scans[i]);
        turn = count > turn ? count : turn;
    }
    sight->rgb = malloc(picture);
    sight->points = malloc(turn * sizeof *sight->points);
    return memory_check(sight->rgb != NULL ? sight->points : NULL, error,
                        "no memory for pictures of rig %s", rig->id);
}

enum status draw_sensors_create(const struct rig *rig, struct draw_sensors **out,
                                struct error *error)
{
    struct draw_sensors *sight = calloc(1, sizeof *sight);
    TRY(memory_check(sight, error, "no memory for rig %s", rig->id));
    sight->rig = rig;
    enum status status = open_sensors(sight, error);
    if (status != STATUS_OK) {
        draw_sensors_destroy(sight);
        return status;
    }
    *out = sight;
    return STATUS_OK;
}

void draw_sensors_destroy(struct draw_sensors *sight)
{
    if (sight == NULL) {
        return;
    }
    for (uint32_t i = 0; i < sight->rig->camera_count; i++) {
        raster_rays_destroy(sight->rays[i]);
    }
    for (uint32_t i = 0; i < sight->rig->lidar_count; i++) {
        scan_destroy(sight->scans[i]);
    }
    free(sight->points);
    free(sight->rgb);
    free(sight);
}

bool draw_sensors_look(struct draw_sensors *sight, struct report_drive *drive, int32_t rollout,
                       uint32_t tick, uint64_t seed)
{
    if (report_drive_has_keyframes(drive) ||
        !report_drive_scene(drive, rollout, tick, &sight->now, NULL) ||
        !report_drive_scene(drive, rollout, tick > 0 ? tick - 1 : 0, &sight->before, NULL)) {
        return false;
    }
    sight->layers = report_drive_layers(drive);
    sight->scenario = &drive->document->scenario;
    sight->seed = seed;
    return sight->layers != NULL;
}

uint32_t draw_sensors_frames(const struct draw_sensors *sight, uint32_t camera)
{
    return sight->now.tick == 0 ? 1 : rig_camera_frames(&sight->rig->cameras[camera]);
}

const uint8_t *draw_sensors_frame(struct draw_sensors *sight, uint32_t camera, uint32_t index,
                                  int64_t *time_ns)
{
    const struct rig_camera *of = &sight->rig->cameras[camera];
    const uint32_t frames = rig_camera_frames(of);
    const uint32_t after = draw_sensors_frames(sight, camera) - 1 - index; /* that follow */
    frames_draw(sight->layers, sight->scenario, &sight->before, &sight->now, sight->seed, of,
                sight->rays[camera], frames - 1 - after, sight->rgb);
    *time_ns = sight->now.tick * TICK_NS - TICK_NS * after / frames;
    return sight->rgb;
}

const struct scan_point *draw_sensors_turn(struct draw_sensors *sight, uint32_t lidar,
                                           uint32_t *count)
{
    *count = frames_scan(sight->layers, sight->scenario, &sight->before, &sight->now, sight->seed,
                         &sight->rig->lidars[lidar], sight->scans[lidar], sight->points);
    return sight->points;
}
