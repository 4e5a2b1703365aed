/*
 * Prepared scenario: a scenario made ready for worlds. Every world begins a rollout on one; scoring
 * and the learned worlds' layouts read its roadmap and its layers.
 */
#ifndef SWERVE_ENGINE_SENSORS_PREPARED_H
#define SWERVE_ENGINE_SENSORS_PREPARED_H

#include "base/status.h"
#include "schemas/scenario.h"

#include <stdint.h>

struct roadmap;
struct route;
struct track_stop;

/* A scenario made ready for worlds: roadmap, route, precomputed raster layers. Immutable and
 * reference-counted; shared by all rollouts of a scenario, main line and branches, any seed. */
struct prepared;
struct raster_layers; /* engine/sensors/raster.h */

/* The scenario is borrowed and must outlive the prepared scenario. */
enum status prepared_create(const struct scenario *scenario, struct prepared **out,
                            struct error *error);
/* The same, with the layers of one of like[like_count] that has an equal map, where there is one.
 */
enum status prepared_create_like(const struct scenario *scenario, struct prepared *const *like,
                                 uint32_t like_count, struct prepared **out, struct error *error);
struct prepared *prepared_ref(struct prepared *prepared);
void prepared_unref(struct prepared *prepared); /* accepts NULL */
const struct scenario *prepared_scenario(const struct prepared *prepared);
const struct raster_layers *prepared_layers(const struct prepared *prepared);
const struct roadmap *prepared_roadmap(const struct prepared *prepared);
const struct route *prepared_route(const struct prepared *prepared); /* ego's */
/* Stop lines that ego's route crosses (engine/traffic/signals.h), in no order. */
const struct track_stop *prepared_route_stops(const struct prepared *prepared, uint32_t *count);

#endif
