/*
 * Launchers of what a planner on the device is shown: observations drawn from pages into views
 * (kernels/device.h). Host side of observe.cu. All pointers are to device memory; launches are
 * asynchronous on `stream`.
 *
 * The bytes are those of engine/sensors/layout_observe.c and layout_camera_unpack, the digests
 * those of engine/trace/trace.h. A view depends on its own record and page alone.
 */
#ifndef SWERVE_KERNELS_CUDA_STUDENT_OBSERVE_H
#define SWERVE_KERNELS_CUDA_STUDENT_OBSERVE_H

#include "kernels/device.h"

#ifdef __cplusplus
extern "C" {
#endif

struct observe_views {
    uint32_t count;                    /* of records */
    const struct device_view *records; /* [count] */
    const uint8_t *arena;
    size_t page_bytes;
    uint8_t *views; /* a multiple of 8; the grid of a view, then its images */
    size_t view_bytes;
    int bev, cameras;              /* what views have */
    const struct raster_map *maps; /* [DEVICE_MAPS_MAX], with pointers to device memory */
};

/* Drivable area and markings of a grid that is drawn are left alone where they are not the frame's
 * and the record names no map: somebody else writes them. */
void observe_draw(const struct observe_views *v, void *stream);

/* digests[count], of the records' views as they are. */
void observe_digest(const struct observe_views *v, uint64_t *digests, void *stream);

#ifdef __cplusplus
}
#endif

#endif
