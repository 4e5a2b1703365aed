/*
 * OpenDRIVE, private to opendrive_map*.c: a map while it is made.
 *
 * Invariant: the pieces of a lane stand one after the other in the map, towards larger s.
 */
#ifndef SWERVE_SCENARIOS_IMPORT_OPENDRIVE_OPENDRIVE_MAP_H
#define SWERVE_SCENARIOS_IMPORT_OPENDRIVE_OPENDRIVE_MAP_H

#include "scenarios/import/opendrive/opendrive.h"

/* Lanes of the map that a lane of the network became. */
struct od_pieces {
    uint32_t first;
    uint32_t count;
};

struct od_mapper {
    const struct opendrive_network *network;
    const struct opendrive_cut *cut;
    struct arena *arena;
    struct opendrive_map *out;
    struct error *error;
    struct od_pieces *pieces; /* [network->lane_count] */
    uint32_t point_count;
    uint32_t long_cuts; /* where a lane would have had too many points */
    uint64_t work;      /* that drawing has taken */
    uint64_t work_max;
};

/* ---- opendrive_map.c ---- */

/* STATUS_LIMIT, with what there is too much of. */
enum status od_map_fail(const struct od_mapper *mapper, const char *what, int limit);
/* STATUS_LIMIT: the map's arena is full. */
enum status od_map_no_memory(const struct od_mapper *mapper);
/* Memory of that; NULL with the error set. */
void *od_map_alloc(const struct od_mapper *mapper, size_t count, size_t size);
bool od_crosswalk_is_in(const struct opendrive_crosswalk *crosswalk,
                        const struct opendrive_cut *cut);
struct vec2 od_map_point(const struct od_mapper *mapper, struct pose pose);

/* Lane i of a section's left_count + right_count. */
static inline uint32_t od_section_lane(const struct opendrive_section *section, uint32_t i)
{
    return i < section->left_count ? section->left_first + i
                                   : section->right_first + i - section->left_count;
}

/* ---- opendrive_map_links.c ---- */

/* Neighbours, successors, markings, signals and crosswalks of the lanes that are there. */
enum status od_map_link(struct od_mapper *mapper);

#endif
