/*
 * Right of way that a map says without a sign at the side road: what priority signs mean for the
 * lanes that meet theirs, who turns across oncoming traffic, and priority to the right where an
 * importer was asked for it.
 */
#ifndef SWERVE_SCENARIOS_IMPORT_RIGHT_OF_WAY_H
#define SWERVE_SCENARIOS_IMPORT_RIGHT_OF_WAY_H

#include "base/arena.h"
#include "base/status.h"
#include "schemas/scenario.h"

struct right_of_way {
    uint32_t gave_way; /* lanes that were given a signal */
    uint32_t dropped;  /* lanes that found the list of signals full */
};

/* Whether a signal controls the lane. */
bool right_of_way_controlled(const struct map *map, uint32_t lane);

/* Gives a lane a signal of a sign that gives way, stop_m before its end; lanes of one sign and
 * stop_m share signals. map->signals has room for LIMIT_SIGNALS. STATUS_NO_MEMORY: the arena is
 * full. */
enum status right_of_way_give(struct map *map, struct arena *arena, enum traffic_sign sign,
                              uint32_t lane, double stop_m, struct right_of_way *counts);

/* Lanes without a signal whose ways cross or join that of a lane with a priority sign, from the
 * side, give way to it. */
enum status right_of_way_beside_priority(struct map *map, struct arena *arena, double stop_m,
                                         struct right_of_way *counts);

/* Lanes without a signal give way to the right where they meet others from the side, if no signal
 * controls any of these. */
enum status right_of_way_to_the_right(struct map *map, struct arena *arena, double stop_m,
                                      struct right_of_way *counts);

/* Lanes of junctions that turn by 45 degrees or more and cross one on which oncoming traffic goes
 * straight on give way to it, unless a sign has one of both give way to everybody. */
enum status right_of_way_of_oncoming(struct map *map, struct arena *arena,
                                     struct right_of_way *counts);

#endif
