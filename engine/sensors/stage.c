/*
 * Stage: a scenario prepared once for all its rollouts: roadmap, ego's route, the agents'
 * paths, raster layers.
 * Immutable after creation and shared by reference; the last reference frees it.
 */
#include "engine/traffic/route_internal.h"
#include "engine/sensors/stage_internal.h"

#include <stdlib.h>

enum status stage_create(const struct scenario *scenario, struct stage **out, struct error *error)
{
    struct stage *stage = calloc(1, sizeof *stage);
    if (stage == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "no memory for scenario %s", scenario->id);
    }
    atomic_init(&stage->references, 1);
    stage->scenario = scenario;
    enum status status = roadmap_create(&scenario->map, &stage->roadmap, error);
    if (status == STATUS_OK) {
        status = route_create(stage->roadmap, scenario->ego.route, scenario->ego.route_count,
                              scenario->ego.pose, &stage->route, error);
    }
    if (status == STATUS_OK) {
        status = traffic_plan_create(scenario, stage->roadmap, route_track_mutable(stage->route),
                                     &stage->traffic, error);
    }
    if (status == STATUS_OK) {
        status = raster_layers_create(&scenario->map, &stage->layers, error);
    }
    if (status != STATUS_OK) {
        stage_unref(stage);
        return error_prefix(error, "scenario %s", scenario->id);
    }
    *out = stage;
    return STATUS_OK;
}

struct stage *stage_ref(struct stage *stage)
{
    atomic_fetch_add_explicit(&stage->references, 1, memory_order_relaxed);
    return stage;
}

void stage_unref(struct stage *stage)
{
    if (stage == NULL ||
        atomic_fetch_sub_explicit(&stage->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    raster_layers_destroy(stage->layers);
    traffic_plan_destroy(stage->traffic);
    route_destroy(stage->route);
    roadmap_destroy(stage->roadmap);
    free(stage);
}

const struct scenario *stage_scenario(const struct stage *stage)
{
    return stage->scenario;
}

const struct roadmap *stage_roadmap(const struct stage *stage)
{
    return stage->roadmap;
}

const struct route *stage_route(const struct stage *stage)
{
    return stage->route;
}
