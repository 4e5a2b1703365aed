/*
 * Roadmap: a map prepared for questions. Built once per scenario, immutable, shared by every slot,
 * the rasteriser and scoring; reference-counted (atomically), because the same map serves many
 * jobs.
 *
 * Answers: which lane is this point in, how far outside the drivable area is it, where is arc
 * length s of a lane, which friction holds here, and where does a route lead.
 */
#ifndef SWERVE_ENGINE_TRAFFIC_ROADMAP_H
#define SWERVE_ENGINE_TRAFFIC_ROADMAP_H

#include "base/status.h"
#include "schemas/scenario.h"

struct roadmap;

struct lane_position {
    int32_t lane;             /* index, -1: in no lane */
    double s_m;               /* along its centre line */
    double offset_m;          /* left positive */
    double heading_error_rad; /* heading minus the lane's, wrapped */
    double width_m;           /* of the lane here */
};

/* The map is borrowed and must outlive the roadmap. */
enum status roadmap_create(const struct map *map, struct roadmap **out, struct error *error);
void roadmap_destroy(struct roadmap *roadmap); /* accepts NULL */

const struct map *roadmap_map(const struct roadmap *roadmap);

/* The lane that contains the pose: of several, the one whose heading agrees best (driving lanes
 * first). *out has lane -1 and returns false when no lane contains it. */
bool roadmap_locate(const struct roadmap *roadmap, struct pose pose, struct lane_position *out);

/* Every lane of kind driving, shoulder or cycle that contains the point, ascending index; at most
 * `max`. */
uint32_t roadmap_lanes_at(const struct roadmap *roadmap, struct vec2 point, int32_t *lanes,
                          uint32_t max);

/* 0 inside the drivable area (driving, shoulder and cycle lanes, extra polygons), else the distance
 * to it, exact up to 5 m, at least 5 beyond. */
double roadmap_off_drivable_m(const struct roadmap *roadmap, struct vec2 point);
/* Whether that is far_m or more, which is above 0 and at most 5; sooner known. */
bool roadmap_leaves_drivable(const struct roadmap *roadmap, struct vec2 point, double far_m);

/* Friction of the surface patch that contains the point, or `otherwise`. */
double roadmap_friction(const struct roadmap *roadmap, struct vec2 point, double otherwise);

double roadmap_lane_length_m(const struct roadmap *roadmap, int32_t lane);
double roadmap_lane_width_m(const struct roadmap *roadmap, int32_t lane, double s_m);
struct pose roadmap_lane_pose(const struct roadmap *roadmap, int32_t lane, double s_m,
                              double offset_m);

/* Route: the concatenated centre lines of a lane sequence; a neighbour step changes lane with a 40
 * m blend (on the first lane it begins just ahead of `start`). s = 0 is the beginning of the first
 * lane. Extended 200 m along successors (first one), and straight past its ends: poses and
 * projections exist there too, but route_length_m() counts the given lanes alone. */
struct route;

enum status route_create(const struct roadmap *roadmap, const uint32_t *lanes, uint32_t count,
                         struct pose start, struct route **out, struct error *error);
void route_destroy(struct route *route); /* accepts NULL */
double route_length_m(const struct route *route);
/* Projection near the last known arc length (search window -20 .. +100 m), O(1) per call; pass
 * hint_s_m < 0 to search the whole route. */
struct polyline_projection route_project(const struct route *route, struct vec2 point,
                                         double hint_s_m);
struct pose route_pose_at(const struct route *route, double s_m, double offset_m);
/* Index of the map lane that carries the route at s_m. */
int32_t route_lane_at(const struct route *route, double s_m);

#endif
