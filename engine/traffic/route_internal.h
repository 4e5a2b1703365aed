/*
 * Route internals: the track behind a route, and the builders that traffic shares with it.
 */
#ifndef SWERVE_ENGINE_TRAFFIC_ROUTE_INTERNAL_H
#define SWERVE_ENGINE_TRAFFIC_ROUTE_INTERNAL_H

#include "engine/traffic/roadmap.h"
#include "engine/traffic/track.h"

/* While a prepared scenario is being made. */
struct track *route_track_mutable(struct route *route);

/* Appends `lane` and its first successors, whole, until length_m more metres are there or lanes
 * end. */
void route_add_chain(struct track_builder *builder, const struct roadmap *roadmap, int32_t lane,
                     double length_m);

/* The track of a lane sequence (count >= 1, indices of the map); *length_m without extension. */
enum status route_build_track(const struct roadmap *roadmap, const uint32_t *lanes, uint32_t count,
                              struct pose start, double extension_m, double *length_m,
                              struct track **out, struct error *error);

#endif
