#ifndef SWERVE_KERNELS_CUDA_DRAWING_CAMERA_H
#define SWERVE_KERNELS_CUDA_DRAWING_CAMERA_H
#include "kernels/device.h"
#include "kernels/drawing_camera.h"
#include "kernels/raster.h"
#ifdef __cplusplus
extern "C" {
#endif
struct camera_slots {
    const struct device_slot *slots;
    uint32_t count;
    const uint8_t *drawings;
    size_t drawing_bytes;
    const struct raster_map *maps;
    uint8_t *layouts;
};
void drawing_cameras_launch(const struct camera_slots *s, void *stream);
#ifdef __cplusplus
}
#endif
#endif
