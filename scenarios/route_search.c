/*
 * Routes over the lane graph: which lane ego starts in, the shortest way to a goal (breadth first,
 * fewest lanes), or straight on along first successors.
 */
#include "base/dmath.h"
#include "scenarios/resolve.h"

#include <math.h>
#include <stdlib.h>

enum { CANDIDATES_MAX = 8 };

static const double ROUTE_MARGIN_M = 100.0;

struct lane_hit {
    int32_t lane;
    double s_m;
    double heading_error_rad; /* magnitude */
};

static bool carries_traffic(const struct lane *lane)
{
    return lane->kind != LANE_SIDEWALK;
}

static double width_at(const struct lane *lane, uint32_t segment)
{
    return dmath_max(lane->width_m[segment], lane->width_m[segment + 1]);
}

/* Cheap refusal: no point of the lane is near enough in x, or in y. */
static bool lane_is_far(const struct lane *lane, struct vec2 point, double margin_m)
{
    struct vec2 low = lane->centre_line[0];
    struct vec2 high = low;
    double widest_m = 0.0;
    for (uint32_t i = 0; i < lane->point_count; i++) {
        low.x_m = dmath_min(low.x_m, lane->centre_line[i].x_m);
        low.y_m = dmath_min(low.y_m, lane->centre_line[i].y_m);
        high.x_m = dmath_max(high.x_m, lane->centre_line[i].x_m);
        high.y_m = dmath_max(high.y_m, lane->centre_line[i].y_m);
        widest_m = dmath_max(widest_m, lane->width_m[i]);
    }
    double reach_m = widest_m / 2 + margin_m;
    return point.x_m < low.x_m - reach_m || point.x_m > high.x_m + reach_m ||
           point.y_m < low.y_m - reach_m || point.y_m > high.y_m + reach_m;
}

/* Whether the lane, widened by margin_m, contains the point. */
static bool lane_contains(const struct lane *lane, struct pose pose, double margin_m,
                          struct lane_hit *hit)
{
    struct vec2 point = {pose.x_m, pose.y_m};
    if (lane_is_far(lane, point, margin_m)) {
        return false;
    }
    struct polyline_projection p = polyline_project(lane->centre_line, lane->point_count, point);
    if (p.distance_m > width_at(lane, p.segment) / 2 + margin_m) {
        return false;
    }
    hit->s_m = p.s_m;
    hit->heading_error_rad = fabs(dmath_wrap_angle(pose.heading_rad - p.heading_rad));
    return true;
}

/* The hits of a pose, best first: driving lanes, then the smallest turn, then the list's order. */
static uint32_t locate_all(const struct map *map, struct pose pose, double margin_m,
                           struct lane_hit hits[CANDIDATES_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < map->lane_count; i++) {
        const struct lane *lane = &map->lanes[i];
        struct lane_hit hit = {.lane = (int32_t)i};
        if (!carries_traffic(lane) || !lane_contains(lane, pose, margin_m, &hit)) {
            continue;
        }
        uint32_t at = count < CANDIDATES_MAX ? count++ : CANDIDATES_MAX;
        while (at > 0) {
            const struct lane_hit *before = &hits[at - 1];
            bool driving = lane->kind == LANE_DRIVING;
            bool before_driving = map->lanes[before->lane].kind == LANE_DRIVING;
            bool better = driving != before_driving
                              ? driving
                              : hit.heading_error_rad < before->heading_error_rad;
            if (!better) {
                break;
            }
            if (at < CANDIDATES_MAX) {
                hits[at] = *before;
            }
            at--;
        }
        if (at < CANDIDATES_MAX) {
            hits[at] = hit;
        }
    }
    return count;
}

int32_t map_locate(const struct map *map, struct pose pose, double margin_m)
{
    struct lane_hit hits[CANDIDATES_MAX];
    return locate_all(map, pose, margin_m, hits) > 0 ? hits[0].lane : -1;
}

/* ---- breadth-first search ---- */

struct search {
    const struct map *map;
    int32_t *parent; /* node that found it, -1: not found yet; [lane_count] is the start */
    uint32_t *queue;
    uint32_t head;
    uint32_t tail;
};

static void visit(struct search *search, uint32_t from, uint32_t lane)
{
    if (search->parent[lane] < 0 && carries_traffic(&search->map->lanes[lane])) {
        search->parent[lane] = (int32_t)from;
        search->queue[search->tail++] = lane;
    }
}

static void expand_node(struct search *search, uint32_t node, uint32_t lane_index)
{
    const struct lane *lane = &search->map->lanes[lane_index];
    for (uint32_t i = 0; i < lane->successor_count; i++) {
        visit(search, node, lane->successors[i]);
    }
    if (lane->left >= 0 && !lane->left_opposite) {
        visit(search, node, (uint32_t)lane->left);
    }
    if (lane->right >= 0 && !lane->right_opposite) {
        visit(search, node, (uint32_t)lane->right);
    }
}

/* The lanes from the start to `last`, or 0 lanes when they do not fit. */
static uint32_t trace_back(const struct search *search, uint32_t start_lane, uint32_t last,
                           uint32_t lanes[LIMIT_ROUTE_LANES])
{
    uint32_t count = 0;
    uint32_t start_node = search->map->lane_count;
    for (uint32_t node = last; count < LIMIT_ROUTE_LANES; node = (uint32_t)search->parent[node]) {
        lanes[count++] = node == start_node ? start_lane : node;
        if (node == start_node) {
            for (uint32_t i = 0, j = count - 1; i < j; i++, j--) {
                uint32_t swap = lanes[i];
                lanes[i] = lanes[j];
                lanes[j] = swap;
            }
            return count;
        }
    }
    return 0;
}

/* From one start lane to any of the goal's lanes. The start is a node of its own, so that a goal
 * behind ego in the same lane is reached round the block. */
static uint32_t search_route(struct search *search, const struct lane_hit *start,
                             const struct lane_hit *goals, uint32_t goal_count,
                             uint32_t lanes[LIMIT_ROUTE_LANES])
{
    uint32_t start_node = search->map->lane_count;
    for (uint32_t g = 0; g < goal_count; g++) {
        if (goals[g].lane == start->lane && goals[g].s_m >= start->s_m) {
            lanes[0] = (uint32_t)start->lane;
            return 1;
        }
    }
    for (uint32_t i = 0; i <= search->map->lane_count; i++) {
        search->parent[i] = -1;
    }
    search->head = 0;
    search->tail = 0;
    expand_node(search, start_node, (uint32_t)start->lane);
    while (search->head < search->tail) {
        uint32_t lane = search->queue[search->head++];
        for (uint32_t g = 0; g < goal_count; g++) {
            if ((uint32_t)goals[g].lane == lane) {
                return trace_back(search, (uint32_t)start->lane, lane, lanes);
            }
        }
        expand_node(search, lane, lane);
    }
    return 0;
}

static uint32_t route_to_goal(struct search *search, const struct ego *ego,
                              const struct lane_hit *starts, uint32_t start_count,
                              uint32_t lanes[LIMIT_ROUTE_LANES])
{
    struct lane_hit goals[CANDIDATES_MAX];
    struct pose goal = {ego->goal.x_m, ego->goal.y_m, 0.0};
    uint32_t goal_count = locate_all(search->map, goal, 0.0, goals);
    if (goal_count == 0) {
        goal_count = locate_all(search->map, goal, ego->goal_radius_m, goals);
    }
    for (uint32_t i = 0; i < start_count; i++) {
        uint32_t count = search_route(search, &starts[i], goals, goal_count, lanes);
        if (count > 0) {
            return count;
        }
    }
    return 0;
}

/* Straight on, as far as ego could possibly come. */
static uint32_t route_ahead(const struct scenario *scenario, const struct lane_hit *start,
                            uint32_t lanes[LIMIT_ROUTE_LANES])
{
    uint32_t count = 0;
    uint32_t at = (uint32_t)start->lane;
    double length_m = -start->s_m;
    double needed_m = ROUTE_MARGIN_M;
    for (;;) {
        const struct lane *lane = &scenario->map.lanes[at];
        double fastest = dmath_max(scenario->ego.speed_mps, dmath_max(lane->speed_limit_mps, 15.0));
        needed_m = dmath_max(needed_m, ROUTE_MARGIN_M + fastest * scenario->horizon_ticks * 0.1);
        lanes[count++] = at;
        length_m += polyline_length_m(lane->centre_line, lane->point_count);
        if (lane->successor_count == 0 || length_m >= needed_m || count == LIMIT_ROUTE_LANES) {
            return count;
        }
        at = lane->successors[0];
    }
}

enum status scenario_route_complete(const char *name, struct scenario *scenario,
                                    struct arena *arena, struct error *error)
{
    struct lane_hit starts[CANDIDATES_MAX];
    uint32_t lanes[LIMIT_ROUTE_LANES];
    struct ego *ego = &scenario->ego;
    uint32_t lane_count = scenario->map.lane_count;
    if (ego->route_count > 0) {
        return STATUS_OK;
    }
    uint32_t start_count = locate_all(&scenario->map, ego->pose, 0.5, starts);
    if (start_count == 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: $.ego.route: expected a route, because ego does not start in a lane, "
                         "found none",
                         name);
    }
    uint32_t count;
    if (!ego->has_goal) {
        count = route_ahead(scenario, &starts[0], lanes);
    } else {
        struct search search = {.map = &scenario->map};
        search.parent = malloc((lane_count + 1) * sizeof *search.parent);
        search.queue = malloc((lane_count + 1) * sizeof *search.queue);
        count = search.parent != NULL && search.queue != NULL
                    ? route_to_goal(&search, ego, starts, start_count, lanes)
                    : UINT32_MAX;
        free(search.parent);
        free(search.queue);
    }
    if (count == UINT32_MAX) {
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", name);
    }
    if (count == 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: $.ego.goal: expected a goal that the lanes lead to within %d lanes, "
                         "found none such from lane \"%s\"",
                         name, LIMIT_ROUTE_LANES, scenario->map.lanes[starts[0].lane].id);
    }
    uint32_t *route = arena_alloc(arena, count, sizeof *route);
    if (route == NULL) {
        return error_set(error, STATUS_LIMIT, "%s: expected a scenario of at most %zu bytes", name,
                         arena->limit_bytes);
    }
    for (uint32_t i = 0; i < count; i++) {
        route[i] = lanes[i];
    }
    ego->route = route;
    ego->route_count = count;
    return STATUS_OK;
}
