/*
 * Pictures of a learned world's cameras, packed as JPEG. See pictures.h.
 */
#include "worker/given/pictures.h"

#include "base/jpeg/jpeg_encode.h"
#include "schemas/rig/rig.h"

#include <stdlib.h>
#include <string.h>

enum { JPEG_QUALITY = 90, JPEG_HEAD_BYTES = 2048 };

_Static_assert((int)TRACE_CAMERAS_MAX == (int)RIG_CAMERAS_MAX && (int)RIG_ID_MAX <= LIMIT_ID_BYTES,
               "a trace has room for every camera of a rig");

static enum status keep(struct trace *trace, const struct rig_camera *camera, uint32_t index,
                        uint32_t tick, const uint8_t *rgb, struct error *error)
{
    const size_t room = (size_t)camera->width * (size_t)camera->height * 3 + JPEG_HEAD_BYTES;
    struct trace_picture head = {.tick = tick,
                                 .camera = index,
                                 .width = (uint32_t)camera->width,
                                 .height = (uint32_t)camera->height};
    uint8_t *packed = malloc(room);
    size_t bytes = 0;
    memcpy(head.id, camera->id, sizeof camera->id);
    enum status status = memory_check(packed, error, "no memory for a picture of %s", camera->id);
    THEN(status,
         jpeg_encode(rgb, head.width, head.height, JPEG_QUALITY, packed, room, &bytes, error));
    head.bytes = (uint32_t)bytes;
    THEN(status, trace_keep_picture(trace, &head, packed, error));
    free(packed);
    return status;
}

enum status pictures_keep(struct trace *trace, const struct world *world, uint32_t slot,
                          uint32_t tick, bool last, struct error *error)
{
    if (!keyframes_wants(&trace->keyframes, tick, last)) {
        return STATUS_OK;
    }
    TRY(keyframes_take(&trace->keyframes, world, slot, tick, error));
    if (world->ops->rig_made == NULL || !trace_wants_pictures(trace, tick, last)) {
        return STATUS_OK;
    }
    const struct rig *rig = world->ops->rig_made(world);
    for (uint32_t i = 0; i < rig->camera_count; i++) {
        TRY(keep(trace, &rig->cameras[i], i, tick, world->ops->slot_frame(world, slot, i, 0),
                 error));
    }
    return STATUS_OK;
}
