/*
 * Launchers of what draws layouts on the device (kernels/drawing.h). Host side of drawing.cu,
 * drawing_bev.cu and drawing_camera.cu. Pointers are to device memory but for `source`; launches
 * are asynchronous on `stream`. Slots that are not active, and parts that were given
 * (device_slot.given), are left alone. A slot's bytes depend on its own record, drawing and map.
 */
#ifndef SWERVE_KERNELS_CUDA_STUDENT_DRAWING_H
#define SWERVE_KERNELS_CUDA_STUDENT_DRAWING_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct drawing_slots {
    const struct device_slot *slots; /* [count] */
    uint32_t count;
    /* [count][DRAWING_BYTES_MAX] each: pinned memory of the host, read once; where it goes. */
    const uint8_t *source;
    uint8_t *drawings;
    struct lidar_box *boxes;       /* [count][DRAWING_AGENTS_MAX]: between the two launches */
    const struct raster_map *maps; /* [DEVICE_MAPS_MAX], with pointers to device memory */
    uint8_t *layouts;              /* [count][DEVICE_FRAME_BYTES] */
};

/* What is in use of the drawings, from the host's memory to the device's. */
void drawing_fetch(const struct drawing_slots *s, void *stream);

/* The layouts' BEV, all 22 channels: the bytes of engine/sensors/layout.h, layout_bev. Two launches. */
void drawing_bev(const struct drawing_slots *s, void *stream);

/* The layouts' cameras: the bytes of engine/sensors/layout.h, layout_cameras. */
void drawing_camera(const struct drawing_slots *s, void *stream);

#ifdef __cplusplus
}
#endif

#endif
