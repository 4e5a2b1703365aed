/*
 * Scan: points that a lidar of a rig (schemas/rig/rig.h) returns from a scene: agents as boxes of
 * their height, and level ground. Pure and deterministic.
 *
 * The lidar turns left, from straight ahead on: azimuth i of n looks 2 pi i / n to the left, at i /
 * n of a turn. Points are in the lidar's own frame (x ahead, y left, z up) at the moment of their
 * azimuth. A beam that returns nothing has no point. Ego's own body is not hit.
 */
#ifndef SWERVE_ENGINE_RIGS_SCAN_H
#define SWERVE_ENGINE_RIGS_SCAN_H

#include "base/status.h"
#include "engine/sensors/raster.h"
#include "kernels/draw_list_camera.h"
#include "schemas/rig/rig.h"
#include "schemas/scenario.h"
#include "schemas/scene.h"

#include <stdint.h>

/* 16 bytes, little-endian. */
struct scan_point {
    float x_m, y_m, z_m;
    uint8_t intensity; /* share of the light that comes back, of 255: surface and angle alone */
    uint8_t ring;      /* which elevation */
    uint16_t time_2us; /* since the turn began */
};

_Static_assert(sizeof(struct scan_point) == 16, "size of a point");

/* Tables of a lidar. */
struct scan;

/* `stream`: of random numbers; lidars of a rig count up from 0. NO_MEMORY. */
enum status scan_create(const struct rig_lidar *lidar, uint32_t stream, struct scan **out,
                        struct error *error);
void scan_destroy(struct scan *scan); /* accepts NULL */

/* Points of one turn, at most. */
uint32_t scan_points_max(const struct scan *scan);

/* Points of azimuths first..end-1, azimuth by azimuth, elevations in their order; returns their
 * number. out[(end - first) * elevations]. Rain, snow and fog lose returns; nothing is seen beyond
 * the scene's visibility. `layers`: those of the scenario's map. */
uint32_t scan_points(const struct scan *scan, const struct raster_layers *layers,
                     const struct scenario *scenario, const struct scene *scene, uint64_t seed,
                     int32_t first, int32_t end, struct scan_point *out);

/* Place of a point in ego's frame at its moment, m. */
struct vec3 scan_place(const struct scan *scan, const struct scan_point *point);

#endif
