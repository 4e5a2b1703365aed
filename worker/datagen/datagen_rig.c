/*
 * Sensors of a rig in training shards. See datagen_rig.h.
 */
#include "worker/datagen/datagen_rig.h"

#include "engine/rigs/frames.h"
#include "engine/rigs/scan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME_BYTES = RIG_ID_MAX + 16 };

struct datagen_rig {
    const struct rig *rig;
    struct raster_rays *rays[RIG_CAMERAS_MAX];
    struct scan *scans[RIG_LIDARS_MAX];
    char names[RIG_CAMERAS_MAX + RIG_LIDARS_MAX][NAME_BYTES];
    uint32_t first; /* of its tensors in a shard */
    uint8_t *room;  /* for the largest frame or turn */
};

static size_t turn_bytes(const struct datagen_rig *self, uint32_t lidar)
{
    return (size_t)scan_points_max(self->scans[lidar]) * sizeof(struct scan_point);
}

static size_t frame_bytes(const struct rig_camera *camera)
{
    return (size_t)camera->width * (size_t)camera->height * 3;
}

enum status datagen_rig_create(const struct rig *rig, struct datagen_rig **out, struct error *error)
{
    struct datagen_rig *self = calloc(1, sizeof *self);
    TRY(memory_check(self, error, "datagen: no memory for the rig %s", rig->id));
    self->rig = rig;
    size_t room = 1;
    enum status status = STATUS_OK;
    for (uint32_t i = 0; i < rig->camera_count; i++) {
        THEN(status, raster_rays_create(&rig->cameras[i], i, &self->rays[i], error));
        room = frame_bytes(&rig->cameras[i]) > room ? frame_bytes(&rig->cameras[i]) : room;
    }
    for (uint32_t i = 0; i < rig->lidar_count; i++) {
        THEN(status, scan_create(&rig->lidars[i], i, &self->scans[i], error));
        if (status == STATUS_OK && turn_bytes(self, i) > room) {
            room = turn_bytes(self, i);
        }
    }
    self->room = malloc(room);
    THEN(status, memory_check(self->room, error, "datagen: no memory for the rig %s", rig->id));
    if (status != STATUS_OK) {
        datagen_rig_destroy(self);
        return status;
    }
    *out = self;
    return STATUS_OK;
}

void datagen_rig_destroy(struct datagen_rig *self)
{
    if (self == NULL) {
        return;
    }
    for (uint32_t i = 0; i < RIG_CAMERAS_MAX; i++) {
        raster_rays_destroy(self->rays[i]);
    }
    for (uint32_t i = 0; i < RIG_LIDARS_MAX; i++) {
        scan_destroy(self->scans[i]);
    }
    free(self->room);
    free(self);
}

enum status datagen_rig_tensors(struct datagen_rig *self, uint64_t clips, uint64_t ticks,
                                struct shard_tensor tensors[SHARD_TENSORS_MAX], uint32_t *count,
                                struct error *error)
{
    const struct rig *rig = self->rig;
    const uint32_t own = rig->camera_count + rig->lidar_count;
    char(*name)[NAME_BYTES] = self->names;
    self->first = *count;
    if (*count + own > SHARD_TENSORS_MAX) {
        return error_set(error, STATUS_LIMIT,
                         "rig %s: expected at most %u tensors of its sensors, found %u", rig->id,
                         SHARD_TENSORS_MAX - *count, own);
    }
    for (uint32_t i = 0; i < rig->camera_count; i++, name++) {
        const struct rig_camera *camera = &rig->cameras[i];
        snprintf(*name, sizeof *name, "rig_%s", camera->id);
        tensors[(*count)++] =
            (struct shard_tensor){*name,
                                  "U8",
                                  6,
                                  {clips, ticks, rig_camera_frames(camera),
                                   (uint64_t)camera->height, (uint64_t)camera->width, 3}};
    }
    for (uint32_t i = 0; i < rig->lidar_count; i++) {
        snprintf(*name, sizeof *name, "rig_%s", rig->lidars[i].id);
        tensors[(*count)++] = (struct shard_tensor){
            *name++,
            "U8",
            4,
            {clips, ticks, scan_points_max(self->scans[i]), sizeof(struct scan_point)}};
    }
    return STATUS_OK;
}

enum status datagen_rig_write(struct datagen_rig *self, struct shard_file *file, uint64_t frame,
                              const struct prepared *prepared, const struct scene *before,
                              const struct scene *now, uint64_t seed, struct error *error)
{
    const struct rig *rig = self->rig;
    uint32_t tensor = self->first;
    for (uint32_t i = 0; i < rig->camera_count; i++, tensor++) {
        const struct rig_camera *camera = &rig->cameras[i];
        const size_t bytes = frame_bytes(camera);
        const uint32_t frames = rig_camera_frames(camera);
        for (uint32_t k = 0; k < frames; k++) {
            frames_draw(prepared_layers(prepared), prepared_scenario(prepared), before, now, seed,
                        camera, self->rays[i], k, self->room);
            TRY(shard_write(file, tensor, (frame * frames + k) * bytes, self->room, bytes, error));
        }
    }
    for (uint32_t i = 0; i < rig->lidar_count; i++, tensor++) {
        const size_t bytes = turn_bytes(self, i);
        memset(self->room, 0, bytes);
        frames_scan(prepared_layers(prepared), prepared_scenario(prepared), before, now, seed,
                    &rig->lidars[i], self->scans[i], (struct scan_point *)(void *)self->room);
        TRY(shard_write(file, tensor, frame * bytes, self->room, bytes, error));
    }
    return STATUS_OK;
}
