/*
 * Keyframes. A frame is 36 KB before compression; road, paint and shadow compress to almost
 * nothing, so a stored frame is about a third of that.
 */
#include "engine/trace/keyframes.h"

#include "base/array.h"

#include "engine/worlds/world.h"

#include <stdlib.h>

void keyframes_finish(struct keyframes *keyframes)
{
    free(keyframes->frames);
    *keyframes = (struct keyframes){.period_ticks = keyframes->period_ticks};
}

bool keyframes_wants(const struct keyframes *keyframes, uint32_t tick, bool last)
{
    return keyframes->period_ticks > 0 && (last || tick % keyframes->period_ticks == 0);
}

void keyframes_encode(const uint8_t *bev, const uint8_t *camera, struct trace_keyframe *frame)
{
    enum { CELLS = TRACE_KEYFRAME_ROWS * BEV_COLS, FIRST = TRACE_KEYFRAME_FIRST_ROW * BEV_COLS };
    for (uint32_t i = 0; i < CELLS; i++) {
        uint32_t value[BEV_CHANNELS];
        for (uint32_t c = 0; c < BEV_CHANNELS; c++) {
            value[c] = (bev[c * BEV_CELLS + FIRST + i] + 8u) / 17u;
        }
        frame->bev[0][i] = (uint8_t)(value[BEV_OCCUPANCY] << 4 | value[BEV_UNSEEN]);
        frame->bev[1][i] = (uint8_t)(value[BEV_DRIVABLE] << 4 | value[BEV_MARKING]);
    }
    for (uint32_t i = 0; i < CAMERA_ROWS * CAMERA_COLS; i++) {
        const uint8_t *rgb = camera + (size_t)i * 3;
        uint32_t red = (rgb[0] * 31u + 127u) / 255u;
        uint32_t green = (rgb[1] * 63u + 127u) / 255u;
        uint32_t blue = (rgb[2] * 31u + 127u) / 255u;
        frame->camera[i] = (uint16_t)(red << 11 | green << 5 | blue);
    }
}

void keyframes_decode_bev(const struct trace_keyframe *frame, uint8_t *bev)
{
    enum { CELLS = TRACE_KEYFRAME_ROWS * BEV_COLS, FIRST = TRACE_KEYFRAME_FIRST_ROW * BEV_COLS };
    for (uint32_t i = 0; i < CELLS; i++) {
        bev[BEV_OCCUPANCY * BEV_CELLS + FIRST + i] = (uint8_t)((frame->bev[0][i] >> 4) * 17);
        bev[BEV_UNSEEN * BEV_CELLS + FIRST + i] = (uint8_t)((frame->bev[0][i] & 15) * 17);
        bev[BEV_DRIVABLE * BEV_CELLS + FIRST + i] = (uint8_t)((frame->bev[1][i] >> 4) * 17);
        bev[BEV_MARKING * BEV_CELLS + FIRST + i] = (uint8_t)((frame->bev[1][i] & 15) * 17);
    }
}

void keyframes_decode_camera(const struct trace_keyframe *frame, uint8_t *camera)
{
    for (uint32_t i = 0; i < CAMERA_ROWS * CAMERA_COLS; i++) {
        uint32_t packed = frame->camera[i];
        camera[3 * i] = (uint8_t)(((packed >> 11) * 255u + 15u) / 31u);
        camera[3 * i + 1] = (uint8_t)(((packed >> 5 & 63u) * 255u + 31u) / 63u);
        camera[3 * i + 2] = (uint8_t)(((packed & 31u) * 255u + 15u) / 31u);
    }
}

enum status keyframes_take(struct keyframes *keyframes, const struct world *world, uint32_t slot,
                           uint32_t tick, struct error *error)
{
    TRY(array_room(&keyframes->frames, keyframes->count, sizeof *keyframes->frames, error));
    uint8_t *seen = malloc(BEV_BYTES + CAMERA_BYTES);
    TRY(memory_check(seen, error, "keyframes: out of memory"));
    const struct observation_buffers buffers = {.bev = seen,
                                                .camera[CAMERA_FRONT] = seen + BEV_BYTES};
    world->ops->slot_observe(world, slot, &buffers);
    struct trace_keyframe *frame = &keyframes->frames[keyframes->count++];
    frame->rollout = 0;
    frame->tick = tick;
    keyframes_encode(seen, seen + BEV_BYTES, frame);
    free(seen);
    return STATUS_OK;
}
