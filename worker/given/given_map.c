/*
 * The map as planners are given it: the scenario's lanes with their borders, as arrays that lanes
 * point into. See given.h and schemas/planner.h.
 */
#include "worker/given/given.h"

#include "base/check.h"
#include "engine/traffic/signals.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A border is not drawn farther out at a kink than this many times the half width. */
#define MITRE_MAX 2.0

_Static_assert(SWERVE_LANE_DRIVING == (int)LANE_DRIVING &&
                   SWERVE_LANE_SHOULDER == (int)LANE_SHOULDER &&
                   SWERVE_LANE_CYCLE == (int)LANE_CYCLE &&
                   SWERVE_LANE_SIDEWALK == (int)LANE_SIDEWALK,
               "kinds of lanes");
_Static_assert((int)SWERVE_MARKING_DASHED == (int)MARKING_DASHED &&
                   (int)SWERVE_MARKING_SOLID == (int)MARKING_SOLID,
               "markings");
_Static_assert((int)SWERVE_MAP_ID_BYTES == (int)LIMIT_ID_BYTES, "lane ids are copied whole");

struct given_map {
    struct swerve_map map;
    struct swerve_map_lane *lanes;
    struct swerve_map_point *points;
    uint32_t *links;
    struct swerve_map_area *areas;
    struct swerve_map_vertex *vertices;
    struct swerve_map_stop_line *stop_lines;
    struct swerve_map_signal *signals;
    uint32_t *route;
};

/* ---- borders ---- */

/* The unit vector to the left of a segment; zero for one without length. */
static struct vec2 left_of(struct vec2 from, struct vec2 to)
{
    double dx_m = to.x_m - from.x_m;
    double dy_m = to.y_m - from.y_m;
    double length_m = sqrt(dx_m * dx_m + dy_m * dy_m);
    return length_m > 0.0 ? (struct vec2){-dy_m / length_m, dx_m / length_m}
                          : (struct vec2){0.0, 0.0};
}

/* From the centre to the left border where two segments meet, for a half width of 1. */
static struct vec2 mitre(struct vec2 before, struct vec2 after)
{
    struct vec2 sum = {before.x_m + after.x_m, before.y_m + after.y_m};
    double squared = sum.x_m * sum.x_m + sum.y_m * sum.y_m;
    /* |sum| is twice the cosine of half the kink; the mitre is 1 over that cosine long. */
    if (squared <= 4.0 / (MITRE_MAX * MITRE_MAX)) {
        double length = sqrt(squared);
        return length > 1e-9 ? (struct vec2){sum.x_m / length, sum.y_m / length} : after;
    }
    return (struct vec2){2.0 * sum.x_m / squared, 2.0 * sum.y_m / squared};
}

static void add_points(const struct lane *lane, struct swerve_map_point *out)
{
    const struct vec2 *line = lane->centre_line;
    uint32_t last = lane->point_count - 1;
    for (uint32_t i = 0; i <= last; i++) {
        struct vec2 before = left_of(line[i > 0 ? i - 1 : 0], line[i > 0 ? i : 1]);
        struct vec2 after = left_of(line[i < last ? i : last - 1], line[i < last ? i + 1 : last]);
        struct vec2 side = mitre(before, after);
        double half_m = lane->width_m[i] / 2;
        out[i] = (struct swerve_map_point){
            .x_m = line[i].x_m,
            .y_m = line[i].y_m,
            .left_x_m = line[i].x_m + half_m * side.x_m,
            .left_y_m = line[i].y_m + half_m * side.y_m,
            .right_x_m = line[i].x_m - half_m * side.x_m,
            .right_y_m = line[i].y_m - half_m * side.y_m,
        };
    }
}

/* ---- arrays ---- */

/* Counts of what is going to be filled in. */
static void count_map(const struct scenario *scenario, struct swerve_map *out)
{
    const struct map *map = &scenario->map;
    out->lane_count = map->lane_count;
    for (uint32_t i = 0; i < map->lane_count; i++) {
        out->point_count += map->lanes[i].point_count;
        out->link_count += 2 * map->lanes[i].successor_count; /* and back again */
    }
    out->signal_count = map->signal_count;
    for (uint32_t i = 0; i < map->signal_count; i++) {
        out->stop_line_count += map->signals[i].lane_count;
        out->link_count += map->signals[i].lane_count;
    }
    out->area_count = map->crosswalk_count + map->drivable_count;
    for (uint32_t i = 0; i < map->crosswalk_count; i++) {
        out->vertex_count += map->crosswalks[i].point_count;
    }
    for (uint32_t i = 0; i < map->drivable_count; i++) {
        out->vertex_count += map->drivable[i].point_count;
    }
    out->route_count = scenario->ego.route_count;
    if (scenario->ego.has_goal) {
        out->goal_x_m = scenario->ego.goal.x_m;
        out->goal_y_m = scenario->ego.goal.y_m;
        out->goal_radius_m = scenario->ego.goal_radius_m;
    }
}

static bool allocate(struct given_map *map)
{
    const struct swerve_map *counts = &map->map;
    /* One more of each: an array without elements is an array too. */
    map->lanes = calloc(counts->lane_count + 1, sizeof *map->lanes);
    map->points = calloc(counts->point_count + 1, sizeof *map->points);
    map->links = calloc(counts->link_count + 1, sizeof *map->links);
    map->areas = calloc(counts->area_count + 1, sizeof *map->areas);
    map->vertices = calloc(counts->vertex_count + 1, sizeof *map->vertices);
    map->stop_lines = calloc(counts->stop_line_count + 1, sizeof *map->stop_lines);
    map->signals = calloc(counts->signal_count + 1, sizeof *map->signals);
    map->route = calloc(counts->route_count + 1, sizeof *map->route);
    return map->lanes != NULL && map->points != NULL && map->links != NULL && map->areas != NULL &&
           map->vertices != NULL && map->stop_lines != NULL && map->signals != NULL &&
           map->route != NULL;
}

static void fill_lanes(struct given_map *map, const struct scenario *scenario)
{
    uint32_t points = 0;
    for (uint32_t i = 0; i < scenario->map.lane_count; i++) {
        const struct lane *from = &scenario->map.lanes[i];
        struct swerve_map_lane *to = &map->lanes[i];
        *to = (struct swerve_map_lane){
            .kind = (uint32_t)from->kind,
            .flags = (from->intersection ? (uint32_t)SWERVE_LANE_INTERSECTION : 0) |
                     (from->left_opposite ? (uint32_t)SWERVE_LANE_LEFT_OPPOSITE : 0) |
                     (from->right_opposite ? (uint32_t)SWERVE_LANE_RIGHT_OPPOSITE : 0),
            .first_point = points,
            .point_count = from->point_count,
            .left = from->left,
            .right = from->right,
            .left_marking = (uint32_t)from->left_marking,
            .right_marking = (uint32_t)from->right_marking,
            .speed_limit_mps = from->speed_limit_mps,
        };
        snprintf(to->id, sizeof to->id, "%s", from->id); /* zeros behind it */
        add_points(from, &map->points[points]);
        points += from->point_count;
    }
    for (uint32_t i = 0; i < scenario->ego.route_count; i++) {
        map->route[i] = scenario->ego.route[i];
        map->lanes[scenario->ego.route[i]].flags |= SWERVE_LANE_ON_ROUTE;
    }
}

/* Successors as the scenario has them, then each lane's predecessors, ascending; returns how many.
 */
static uint32_t fill_links(struct given_map *map, const struct scenario *scenario)
{
    uint32_t links = 0;
    uint32_t lane_count = scenario->map.lane_count;
    for (uint32_t i = 0; i < lane_count; i++) {
        const struct lane *from = &scenario->map.lanes[i];
        map->lanes[i].first_successor = links;
        map->lanes[i].successor_count = from->successor_count;
        for (uint32_t k = 0; k < from->successor_count; k++) {
            map->links[links++] = from->successors[k];
            map->lanes[from->successors[k]].predecessor_count++;
        }
    }
    for (uint32_t i = 0; i < lane_count; i++) {
        map->lanes[i].first_predecessor = links;
        links += map->lanes[i].predecessor_count;
        map->lanes[i].predecessor_count = 0;
    }
    for (uint32_t i = 0; i < lane_count; i++) {
        const struct lane *from = &scenario->map.lanes[i];
        for (uint32_t k = 0; k < from->successor_count; k++) {
            struct swerve_map_lane *to = &map->lanes[from->successors[k]];
            map->links[to->first_predecessor + to->predecessor_count++] = i;
        }
    }
    return links;
}

/* Signals, with their stop lines, and their lanes behind the other links. */
static void fill_signals(struct given_map *map, const struct prepared *prepared, uint32_t links)
{
    const struct map *from = &prepared_scenario(prepared)->map;
    uint32_t lines = 0;
    for (uint32_t i = 0; i < from->signal_count; i++) {
        const struct traffic_signal *signal = &from->signals[i];
        struct swerve_map_signal *to = &map->signals[i];
        to->first_lane = links;
        to->lane_count = signal->lane_count;
        to->first_stop_line = lines;
        to->sign = (uint32_t)signal->sign;
        snprintf(to->id, sizeof to->id, "%s", signal->id);
        for (uint32_t k = 0; k < signal->lane_count; k++) {
            struct stop_line line = signal_stop_line(prepared_roadmap(prepared), signal, k);
            map->links[links++] = signal->lanes[k];
            map->stop_lines[lines++] = (struct swerve_map_stop_line){line.left.x_m,
                                                                     line.left.y_m,
                                                                     line.right.x_m,
                                                                     line.right.y_m,
                                                                     (int32_t)signal->lanes[k],
                                                                     (int32_t)i};
        }
    }
    CHECK(links == map->map.link_count && lines == map->map.stop_line_count);
}

static void fill_areas(struct given_map *map, enum swerve_area_kind kind,
                       const struct polygon *polygons, uint32_t count, uint32_t *areas,
                       uint32_t *vertices)
{
    for (uint32_t i = 0; i < count; i++) {
        map->areas[(*areas)++] =
            (struct swerve_map_area){(uint32_t)kind, *vertices, polygons[i].point_count, 0};
        for (uint32_t k = 0; k < polygons[i].point_count; k++) {
            map->vertices[(*vertices)++] =
                (struct swerve_map_vertex){polygons[i].points[k].x_m, polygons[i].points[k].y_m};
        }
    }
}

enum status given_map_create(const struct prepared *prepared, struct given_map **out,
                             struct error *error)
{
    const struct scenario *scenario = prepared_scenario(prepared);
    uint32_t areas = 0;
    uint32_t vertices = 0;
    struct given_map *map = calloc(1, sizeof *map);
    TRY(memory_check(map, error, "scenario %s: out of memory for its map", scenario->id));
    count_map(scenario, &map->map);
    if (!allocate(map)) {
        given_map_destroy(map);
        return error_set(error, STATUS_NO_MEMORY, "scenario %s: out of memory for its map",
                         scenario->id);
    }
    fill_lanes(map, scenario);
    fill_signals(map, prepared, fill_links(map, scenario));
    fill_areas(map, SWERVE_AREA_CROSSING, scenario->map.crosswalks, scenario->map.crosswalk_count,
               &areas, &vertices);
    fill_areas(map, SWERVE_AREA_DRIVABLE, scenario->map.drivable, scenario->map.drivable_count,
               &areas, &vertices);
    map->map.lanes = map->lanes;
    map->map.points = map->points;
    map->map.links = map->links;
    map->map.areas = map->areas;
    map->map.vertices = map->vertices;
    map->map.stop_lines = map->stop_lines;
    map->map.signals = map->signals;
    map->map.route = map->route;
    *out = map;
    return STATUS_OK;
}

void given_map_destroy(struct given_map *map)
{
    if (map == NULL) {
        return;
    }
    free(map->lanes);
    free(map->points);
    free(map->links);
    free(map->areas);
    free(map->vertices);
    free(map->stop_lines);
    free(map->signals);
    free(map->route);
    free(map);
}

const struct swerve_map *given_map_of(const struct given_map *map)
{
    return &map->map;
}
