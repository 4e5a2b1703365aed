/*
 * Visible: whether ego's sensors can see an agent. The same plane geometry as the lidar's
 * (raster_lidar.c): a present box hides what is behind it, whatever the heights, unless it is low;
 * nothing is seen beyond the visibility. Exact lines of sight to points of the outline, no grid.
 */
#ifndef SWERVE_ENGINE_SENSORS_VISIBLE_H
#define SWERVE_ENGINE_SENSORS_VISIBLE_H

#include "schemas/scenario.h"
#include "schemas/scene.h"

#include <stdbool.h>
#include <stdint.h>

/* Whether an agent hides nothing: it says so, or it is under 0.6 m high. */
bool visible_is_low(const struct agent *agent);

/* Whether any of the corners and edge centres of a present agent's box is in sight of ego's centre.
 */
bool visible_agent(const struct scenario *scenario, const struct scene *scene, uint32_t agent);

#endif
