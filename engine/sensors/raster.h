/*
 * Raster: draws an observation (schemas/observation.h) from a scene: the BEV grid as a lidar sees
 * it and three camera images in perspective. Used by the object and replay worlds, and by the
 * report to redraw any recorded tick. Pure: a frame depends on (layers, scenario, scene, seed)
 * alone.
 */
#ifndef SWERVE_ENGINE_SENSORS_RASTER_H
#define SWERVE_ENGINE_SENSORS_RASTER_H

#include "base/status.h"
#include "schemas/observation.h"
#include "schemas/scenario.h"
#include "schemas/scene.h"

#include <stdbool.h>
#include <stdint.h>

/* Static layers of a map (drivable area, markings), prerasterised in a sparse world-anchored grid.
 * Immutable and reference-counted. */
struct raster_layers;

enum status raster_layers_create(const struct map *map, struct raster_layers **out,
                                 struct error *error);
/* Gives up one reference; accepts NULL. */
void raster_layers_destroy(struct raster_layers *layers);
struct raster_layers *raster_layers_ref(struct raster_layers *layers);

/* Draws pictures and points with those of this machine's instruction sets that `cpu_flags`
 * (kernels/cpu.h) names; at first all. No byte depends on it. Not while others draw. */
void raster_layers_use(struct raster_layers *layers, uint32_t cpu_flags);

/* Key of what the layers of a map are made of: equal for equal maps. Names do not count. */
struct raster_key {
    uint8_t bytes[32];
};
struct raster_key raster_key_of(const struct map *map);
bool raster_layers_have(const struct raster_layers *layers, const struct raster_key *key);

/* Fills out[BEV_BYTES]. */
void raster_bev(const struct raster_layers *layers, const struct scenario *scenario,
                const struct scene *scene, uint64_t seed, uint8_t *out);

/* Occupancy and unseen of it alone. */
void raster_returns(const struct raster_layers *layers, const struct scenario *scenario,
                    const struct scene *scene, uint64_t seed, uint8_t *out);

/* A pinhole camera that looks level: square pixels, the horizon in the middle of the image. */
struct raster_level {
    struct camera_calibration calibration; /* schemas/observation.h; hfov below 180 degrees */
    int32_t rows, cols;                    /* pixels; rows even, both 2..RIG_SIDE_MAX */
    uint32_t stream;                       /* of random numbers: cameras of a rig count up from 0 */
};

/* Fills out[rows][cols][3], RGB. */
void raster_level(const struct raster_layers *layers, const struct scenario *scenario,
                  const struct scene *scene, uint64_t seed, const struct raster_level *camera,
                  uint8_t *out);

/* A camera of a rig (schemas/rig/rig.h), with a table of the directions that its pixels look in. */
struct raster_rays;
struct rig_camera;

/* Fails where the lens is not one to one, or memory runs out. `stream`: of random numbers. */
enum status raster_rays_create(const struct rig_camera *camera, uint32_t stream,
                               struct raster_rays **out, struct error *error);
void raster_rays_destroy(struct raster_rays *rays); /* accepts NULL */

/* Fills out[height][width][3], RGB; black where the lens sees nothing. A pinhole that looks level,
 * with square pixels and the axis in the middle of an even number of rows, is drawn by
 * raster_level, byte for byte. */
void raster_rays_draw(const struct raster_layers *layers, const struct scenario *scenario,
                      const struct scene *scene, uint64_t seed, const struct raster_rays *rays,
                      uint8_t *out);

/* Part of a picture, in pixels. */
struct raster_area {
    int32_t first_row, end_row; /* multiples of 8, or the picture's end */
    int32_t first_col, end_col; /* multiples of 8, or the picture's end */
};

/* The same of that part alone; the rest of `out` stays. Parts whose columns begin at multiples of
 * 96 have the bytes of the whole, so that threads may share a picture. */
void raster_rays_draw_area(const struct raster_layers *layers, const struct scenario *scenario,
                           const struct scene *scene, uint64_t seed, const struct raster_rays *rays,
                           const struct raster_area *area, uint8_t *out);

/* One of the three cameras of schemas/observation.h: fills out[CAMERA_BYTES], RGB. */
void raster_camera(const struct raster_layers *layers, const struct scenario *scenario,
                   const struct scene *scene, uint64_t seed, enum camera_index camera,
                   uint8_t *out);

#endif
