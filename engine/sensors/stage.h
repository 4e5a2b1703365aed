/*
 * Stage: a scenario made ready for worlds. Every world begins a rollout on one; scoring and the
 * learned worlds' layouts read its roadmap and its layers.
 */
#ifndef SWERVE_ENGINE_SENSORS_STAGE_H
#define SWERVE_ENGINE_SENSORS_STAGE_H

#include "base/status.h"
#include "schemas/scenario.h"

struct roadmap;
struct route;

/* A scenario made ready for worlds: roadmap, route, precomputed raster layers. Immutable and
 * reference-counted; shared by all rollouts of a scenario, main line and branches, any seed. */
struct stage;

/* The scenario is borrowed and must outlive the stage. */
enum status stage_create(const struct scenario *scenario, struct stage **out, struct error *error);
struct stage *stage_ref(struct stage *stage);
void stage_unref(struct stage *stage); /* accepts NULL */
const struct scenario *stage_scenario(const struct stage *stage);
const struct roadmap *stage_roadmap(const struct stage *stage);
const struct route *stage_route(const struct stage *stage); /* ego's */

#endif
