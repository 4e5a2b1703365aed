/*
 * Launchers of what draws layouts on the device (kernels/draw_list.h). Host side of draw_list.cu,
 * draw_list_bev.cu and draw_list_camera.cu. Pointers are to device memory but for `source`;
 * launches are asynchronous on `stream`. Slots that are not active, and parts that were given
 * (device_slot.given), are left alone. A slot's bytes depend on its own record, draw list and map.
 */
#ifndef SWERVE_KERNELS_CUDA_STUDENT_DRAW_LIST_H
#define SWERVE_KERNELS_CUDA_STUDENT_DRAW_LIST_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct draw_list_slots {
    const struct device_slot *slots; /* [count] */
    uint32_t count;
    /* [count][DRAW_LIST_BYTES_MAX] each: pinned memory of the host, read once; where it goes. */
    const uint8_t *source;
    uint8_t *draw_lists;
    struct lidar_box *boxes;       /* [count][DRAW_LIST_AGENTS_MAX]: between the two launches */
    const struct raster_map *maps; /* [DEVICE_MAPS_MAX], with pointers to device memory */
    uint8_t *layouts;              /* [count][DEVICE_FRAME_BYTES] */
};

/* Copy of the used part of the draw lists, from the host's memory to the device's. */
void draw_list_fetch(const struct draw_list_slots *s, void *stream);

/* The layouts' BEV, all 22 channels: the bytes of engine/sensors/layout.h, layout_bev. Two
 * launches. */
void draw_list_bev(const struct draw_list_slots *s, void *stream);

/* The layouts' cameras: the bytes of engine/sensors/layout.h, layout_cameras. */
void draw_list_camera(const struct draw_list_slots *s, void *stream);

#ifdef __cplusplus
}
#endif

#endif
