/*
 * Cameras (first slice): sky over ground.
 */
#include "engine/raster.h"

void raster_camera(const struct raster_layers *layers, const struct scenario *scenario,
                   const struct scene *scene, uint64_t seed, enum camera_index camera, uint8_t *out)
{
    (void)layers;
    (void)scenario;
    (void)scene;
    (void)seed;
    (void)camera;
    for (int i = 0; i < CAMERA_BYTES; i++) {
        out[i] = i < CAMERA_BYTES / 2 ? 200 : 90;
    }
}
