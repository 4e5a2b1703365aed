/*
 * Prepared scenario: a scenario prepared once for all its rollouts: roadmap, ego's route, the
 * agents' paths, raster layers. Immutable after creation, but for the foresight that is added once,
 * and shared by reference; the last reference frees it.
 */
#include "engine/sensors/foresee.h"
#include "engine/sensors/prepared_internal.h"
#include "engine/traffic/route_internal.h"

#include <stdlib.h>

/* The layers of the map, another reference to what is there or new ones. */
static enum status take_layers(const struct map *map, struct prepared *const *like,
                               uint32_t like_count, struct raster_layers **out, struct error *error)
{
    if (like_count > 0) {
        struct raster_key key = raster_key_of(map);
        for (uint32_t i = 0; i < like_count; i++) {
            if (raster_layers_have(like[i]->layers, &key)) {
                *out = raster_layers_ref(like[i]->layers);
                return STATUS_OK;
            }
        }
    }
    return raster_layers_create(map, out, error);
}

enum status prepared_create(const struct scenario *scenario, struct prepared **out,
                            struct error *error)
{
    return prepared_create_like(scenario, NULL, 0, out, error);
}

enum status prepared_create_like(const struct scenario *scenario, struct prepared *const *like,
                                 uint32_t like_count, struct prepared **out, struct error *error)
{
    struct prepared *prepared = calloc(1, sizeof *prepared);
    TRY(memory_check(prepared, error, "no memory for scenario %s", scenario->id));
    atomic_init(&prepared->references, 1);
    atomic_init(&prepared->foresight, NULL);
    prepared->scenario = scenario;
    enum status status = roadmap_create(&scenario->map, &prepared->roadmap, error);
    THEN(status, route_create(prepared->roadmap, scenario->ego.route, scenario->ego.route_count,
                              scenario->ego.pose, &prepared->route, error));
    THEN(status,
         traffic_plan_create(scenario, prepared->roadmap, route_track_mutable(prepared->route),
                             &prepared->traffic, error));
    THEN(status, take_layers(&scenario->map, like, like_count, &prepared->layers, error));
    if (status != STATUS_OK) {
        prepared_unref(prepared);
        return error_prefix(error, "scenario %s", scenario->id);
    }
    *out = prepared;
    return STATUS_OK;
}

struct prepared *prepared_ref(struct prepared *prepared)
{
    atomic_fetch_add_explicit(&prepared->references, 1, memory_order_relaxed);
    return prepared;
}

void prepared_unref(struct prepared *prepared)
{
    if (prepared == NULL ||
        atomic_fetch_sub_explicit(&prepared->references, 1, memory_order_acq_rel) != 1) {
        return;
    }
    foresight_unref(atomic_load_explicit(&prepared->foresight, memory_order_acquire));
    raster_layers_destroy(prepared->layers);
    traffic_plan_destroy(prepared->traffic);
    route_destroy(prepared->route);
    roadmap_destroy(prepared->roadmap);
    free(prepared);
}

const struct scenario *prepared_scenario(const struct prepared *prepared)
{
    return prepared->scenario;
}

const struct raster_layers *prepared_layers(const struct prepared *prepared)
{
    return prepared->layers;
}

const struct roadmap *prepared_roadmap(const struct prepared *prepared)
{
    return prepared->roadmap;
}

const struct route *prepared_route(const struct prepared *prepared)
{
    return prepared->route;
}

const struct track_stop *prepared_route_stops(const struct prepared *prepared, uint32_t *count)
{
    const struct track_stops *stops = &prepared->traffic->stops;
    *count = 0;
    if (stops->first == NULL) {
        return NULL;
    }
    *count = stops->first[TRAFFIC_TRACK_ROUTE + 1] - stops->first[TRAFFIC_TRACK_ROUTE];
    return &stops->stops[stops->first[TRAFFIC_TRACK_ROUTE]];
}
