/*
 * Prepared scenario: internals, for the worlds of this room.
 */
#ifndef SWERVE_ENGINE_SENSORS_PREPARED_INTERNAL_H
#define SWERVE_ENGINE_SENSORS_PREPARED_INTERNAL_H

#include "engine/sensors/prepared.h"
#include "engine/sensors/raster.h"
#include "engine/traffic/roadmap.h"
#include "engine/traffic/traffic.h"
#include "schemas/scenario.h"

#include <stdatomic.h>

struct foresight;

struct prepared {
    atomic_uint references;
    _Atomic(struct foresight *) foresight; /* NULL until somebody asks (foresee.h) */
    const struct scenario *scenario;
    struct roadmap *roadmap;
    struct route *route; /* ego's */
    struct raster_layers *layers;
    struct traffic_plan *traffic;
};

#endif
