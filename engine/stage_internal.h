/*
 * Stage internals, for the worlds of this room.
 */
#ifndef SWERVE_ENGINE_STAGE_INTERNAL_H
#define SWERVE_ENGINE_STAGE_INTERNAL_H

#include "engine/raster.h"
#include "engine/roadmap.h"
#include "engine/stage.h"
#include "engine/traffic.h"
#include "schemas/scenario.h"

#include <stdatomic.h>

struct stage {
    atomic_uint references;
    const struct scenario *scenario;
    struct roadmap *roadmap;
    struct route *route; /* ego's */
    struct raster_layers *layers;
    struct traffic_plan *traffic;
};

#endif
