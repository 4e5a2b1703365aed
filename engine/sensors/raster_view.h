/*
 * Raster view: a grid of BEV_ROWS x BEV_COLS cells placed and turned anywhere around a lidar, and
 * what can be drawn on it. Shared by the observation (raster_bev.c) and the anchored window of the
 * learned worlds (layout.c). Private to the rasteriser. Pure.
 */
#ifndef SWERVE_ENGINE_SENSORS_RASTER_VIEW_H
#define SWERVE_ENGINE_SENSORS_RASTER_VIEW_H

#include "engine/sensors/raster_layers.h"
#include "kernels/lidar.h"
#include "kernels/raster.h"
#include "schemas/observation.h"
#include "schemas/scenario.h"
#include "schemas/scene.h"

#include <stdint.h>

/* The view's frame: origin at the sensor, x along the grid's rows, y to the left. */
struct raster_view {
    struct vec2 sensor; /* world frame */
    double heading_rad; /* of x in the world */
    double cos_heading, sin_heading;
    double x_min_m, y_min_m; /* the grid's corner */
    /* A convex area that holds the sensor and the grid: what lies outside cannot hide a cell. */
    double x_low_m, x_high_m, y_low_m, y_high_m;
};

/* [BEV_CELLS] each; vru and owner may be NULL. */
struct raster_planes {
    uint8_t *occupancy; /* share of the cell that returned a ray */
    uint8_t *unseen;    /* 255 where no ray came */
    uint8_t *vru;       /* of the occupancy, what vulnerable road users returned */
    uint16_t *owner;    /* 1 + agent whose return it is, the last in index order; 0: none */
};

/* The observation's grid: ego's axes, sensor at ego. */
struct raster_view raster_view_ego(const struct pose *ego);

/* Returns of a perfect sensor under the scene's visibility; overwrites the planes. */
void raster_lidar(const struct raster_kernels *kernels, const struct scenario *scenario,
                  const struct scene *scene, const struct raster_view *view,
                  const struct raster_planes *planes);

/* The agents that may fill or hide a cell between the view's low and high bounds, in index order,
 * without their velocities: agents[capacity]. False: there are more. */
bool raster_lidar_agents(const struct scenario *scenario, const struct scene *scene,
                         const struct raster_view *view, uint32_t capacity,
                         struct lidar_agent *agents, uint32_t *count);

/* Samples of raster_map. */
void raster_map_window(const struct raster_layers *layers, const struct raster_view *view,
                       struct raster_window *window);

/* Drivable area and markings: [BEV_CELLS] each. The view's low and high bounds do not matter. */
void raster_map(const struct raster_layers *layers, const struct raster_view *view,
                uint8_t *drivable, uint8_t *marking);

/* The same of a window for such a grid, whose cells are as wide as texels (raster_plain.c). */
void raster_plain_map(const struct raster_layers *layers, const struct raster_window *window,
                      uint8_t *drivable, uint8_t *marking);

/* Adds the stop lines whose lights hold traffic to a grid's markings: red and red with yellow in
 * full, yellow by half. */
void raster_stop_lines(const struct raster_layers *layers, const struct scene *scene,
                       const struct raster_view *view, uint8_t *marking);

/* Effect of weather on a lidar: the chance that a cell's return is lost, at no range and at the
 * edge of visibility, in 1/256, and the number of stray returns per frame. */
struct raster_weather {
    uint16_t lost_near, lost_far;
    uint32_t strays;
};

extern const struct raster_weather raster_weather_noise[WEATHER_COUNT];

#endif
