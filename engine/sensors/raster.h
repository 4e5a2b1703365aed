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

/* Static layers of a map (drivable area, markings), prerasterised in a sparse world-anchored grid.
 */
struct raster_layers;

enum status raster_layers_create(const struct map *map, struct raster_layers **out,
                                 struct error *error);
void raster_layers_destroy(struct raster_layers *layers); /* accepts NULL */

/* Fills out[BEV_BYTES]. */
void raster_bev(const struct raster_layers *layers, const struct scenario *scenario,
                const struct scene *scene, uint64_t seed, uint8_t *out);

/* Fills out[CAMERA_BYTES], RGB. */
void raster_camera(const struct raster_layers *layers, const struct scenario *scenario,
                   const struct scene *scene, uint64_t seed, enum camera_index camera,
                   uint8_t *out);

#endif
