/*
 * CommonRoad import: ego's lane, goal and route.
 *
 * A goal is a set of regions and lanelets, any of which will do; the one with the shortest way
 * (Dijkstra over successors and same-direction neighbours) becomes the document's goal circle. When
 * none can be reached, the route leads as near to the first one as the lanes allow.
 */
#include "base/dmath.h"
#include "base/units.h"
#include "scenarios/import/commonroad.h"
#include "scenarios/resolve.h"

#include <math.h>
#include <string.h>

enum { TARGETS_MAX = 256 };

static const double START_MARGIN_M = 0.5; /* of the loader */
static const double START_MAX_M = 14.99;  /* from a route's first lane; the loader takes 15 */
static const double GOAL_RADIUS_MIN_M = 2.0;
static const double GOAL_RADIUS_MAX_M = 1000.0;
static const double CHANGE_COST_M = 30.0;      /* of a lane change */
static const double OTHER_KIND_COST_M = 500.0; /* of entering a shoulder or cycle lane */
static const double TURN_COST_M = 10.0;        /* per radian between ego and its lane */
static const double AGAINST_COST_M = 1000.0;   /* ego stands against the lane */
static const double AHEAD_M = 100.0;
static const double AHEAD_MPS = 15.0;

struct target {
    int32_t lane; /* a lanelet's lane, or -1: a region */
    struct vec2 centre;
    double radius_m;
};

struct finder {
    struct cr_context *context;
    const struct cr_map *source;
    struct map *map;
    struct ego *ego;
    uint32_t target_count;
    struct target targets[TARGETS_MAX];
    double *cost_m;   /* [lane_count] to the beginning of the lane, INFINITY: not reached */
    int32_t *parent;  /* [lane_count] -1: ego starts in it */
    double *length_m; /* [lane_count] */
    bool *done;
};

/* ---- goal ---- */

static void add_target(struct finder *finder, const struct target *target)
{
    if (finder->target_count < TARGETS_MAX) {
        finder->targets[finder->target_count++] = *target;
    }
}

/* The middle of a lane and all of its length. */
static void add_lane_target(struct finder *finder, uint32_t index)
{
    const struct lane *lane = &finder->map->lanes[index];
    double length_m = polyline_length_m(lane->centre_line, lane->point_count);
    struct pose middle = polyline_pose_at(lane->centre_line, lane->point_count, length_m / 2, 0);
    struct target target = {.lane = (int32_t)index, .centre = {middle.x_m, middle.y_m}};
    target.radius_m = dmath_clamp(length_m / 2, GOAL_RADIUS_MIN_M, GOAL_RADIUS_MAX_M);
    add_target(finder, &target);
}

static enum status read_goal_lanes(struct finder *finder, const struct xml_element *position)
{
    char id[LIMIT_ID_BYTES];
    const struct xml_element *missing = NULL;
    bool any = false;
    const struct xml_element *e = xml_child(position, CR_LANELET);
    for (; e != NULL; e = xml_next(e)) {
        TRY(cr_reference(finder->context, e, "ref", id));
        const struct cr_lanelet *lanelet = cr_map_find(finder->source, id);
        if (lanelet == NULL || lanelet->lane_count == 0) {
            missing = e;
            continue;
        }
        any = true;
        for (uint32_t i = 0; i < lanelet->lane_count; i++) {
            add_lane_target(finder, lanelet->first_lane + i);
        }
    }
    if (missing != NULL && !any) {
        return cr_fail(finder->context, missing, STATUS_BAD_INPUT,
                       "expected the id of a <lanelet> of this file, found \"%.64s\"",
                       xml_attribute(missing, "ref"));
    }
    return STATUS_OK;
}

static enum status read_goal_position(struct finder *finder, const struct xml_element *position)
{
    const struct xml_element *point = xml_child(position, CR_POINT);
    if (xml_child(position, CR_LANELET) != NULL) {
        return read_goal_lanes(finder, position);
    }
    if (point != NULL) {
        struct target target = {.lane = -1, .radius_m = GOAL_RADIUS_MIN_M};
        TRY(cr_point(finder->context, point, true, &target.centre));
        add_target(finder, &target);
        return STATUS_OK;
    }
    struct cr_part *parts;
    uint32_t count;
    TRY(cr_shape(finder->context, position, true, &count, &parts));
    for (uint32_t i = 0; i < count; i++) {
        double longer = dmath_max(parts[i].length_m, parts[i].width_m);
        struct target target = {
            .lane = -1,
            .centre = {parts[i].pose.x_m, parts[i].pose.y_m},
            .radius_m = dmath_clamp(longer / 2, GOAL_RADIUS_MIN_M, GOAL_RADIUS_MAX_M),
        };
        add_target(finder, &target);
    }
    return STATUS_OK;
}

static enum status read_goals(struct finder *finder, const struct xml_element *problem)
{
    const struct xml_element *goal = xml_child(problem, CR_GOAL_STATE);
    for (; goal != NULL; goal = xml_next(goal)) {
        const struct xml_element *position = xml_child(goal, CR_POSITION);
        if (position != NULL) {
            TRY(read_goal_position(finder, position));
        }
    }
    return STATUS_OK;
}

/* ---- ego's lane ---- */

/* Onto the centre of the nearest lane for vehicles, along it. */
static void move_into_lane(struct finder *finder)
{
    struct pose *pose = &finder->ego->pose;
    struct map *map = finder->map;
    struct polyline_projection best = {.distance_m = INFINITY};
    uint32_t nearest = 0;
    bool vehicles = false;
    for (uint32_t i = 0; i < map->lane_count; i++) {
        const struct lane *lane = &map->lanes[i];
        bool carries = lane->kind != LANE_SIDEWALK;
        struct polyline_projection p = polyline_project(lane->centre_line, lane->point_count,
                                                        (struct vec2){pose->x_m, pose->y_m});
        if ((carries && !vehicles) || (carries == vehicles && p.distance_m < best.distance_m)) {
            best = p;
            nearest = i;
            vehicles = carries;
        }
    }
    struct lane *lane = &map->lanes[nearest];
    if (!vehicles) {
        lane->kind = LANE_DRIVING;
    }
    *pose = polyline_pose_at(lane->centre_line, lane->point_count, best.s_m, 0);
    cr_note(finder->context, CR_NOTE_EGO_MOVED);
}

/* ---- search ---- */

static bool carries_traffic(const struct lane *lane)
{
    return lane->kind != LANE_SIDEWALK;
}

static struct polyline_projection on_lane(const struct finder *finder, uint32_t lane,
                                          struct vec2 point)
{
    const struct lane *l = &finder->map->lanes[lane];
    return polyline_project(l->centre_line, l->point_count, point);
}

static bool lane_covers(const struct lane *lane, const struct polyline_projection *p,
                        double margin_m)
{
    double width_m = dmath_max(lane->width_m[p->segment], lane->width_m[p->segment + 1]);
    return p->distance_m <= width_m / 2 + margin_m;
}

static bool may_start(const struct lane *lane, const struct polyline_projection *p)
{
    return carries_traffic(lane) && p->distance_m <= START_MAX_M &&
           lane_covers(lane, p, START_MARGIN_M);
}

/* Every lane that ego stands in is a start, at a cost that says how well it fits. False: none. */
static bool seed_starts(struct finder *finder)
{
    const struct pose *pose = &finder->ego->pose;
    bool any = false;
    for (uint32_t i = 0; i < finder->map->lane_count; i++) {
        const struct lane *lane = &finder->map->lanes[i];
        finder->cost_m[i] = INFINITY;
        finder->parent[i] = -1;
        finder->done[i] = false;
        finder->length_m[i] = polyline_length_m(lane->centre_line, lane->point_count);
        struct polyline_projection p = on_lane(finder, i, (struct vec2){pose->x_m, pose->y_m});
        if (!may_start(lane, &p)) {
            continue;
        }
        any = true;
        double turn = fabs(dmath_wrap_angle(pose->heading_rad - p.heading_rad));
        finder->cost_m[i] = turn * TURN_COST_M + fabs(p.offset_m) - p.s_m +
                            (turn > PI_RAD / 2 ? AGAINST_COST_M : 0) +
                            (lane->kind != LANE_DRIVING ? OTHER_KIND_COST_M : 0);
    }
    return any;
}

static void relax(struct finder *finder, uint32_t from, uint32_t to, double step_m)
{
    const struct lane *lane = &finder->map->lanes[to];
    double cost =
        finder->cost_m[from] + step_m + (lane->kind != LANE_DRIVING ? OTHER_KIND_COST_M : 0);
    if (carries_traffic(lane) && !finder->done[to] && cost < finder->cost_m[to]) {
        finder->cost_m[to] = cost;
        finder->parent[to] = (int32_t)from;
    }
}

/* Costs from ego to every lane it can reach. */
static void search_all(struct finder *finder)
{
    const struct map *map = finder->map;
    seed_starts(finder);
    for (;;) {
        int32_t best = -1;
        for (uint32_t i = 0; i < map->lane_count; i++) {
            if (!finder->done[i] && isfinite(finder->cost_m[i]) &&
                (best < 0 || finder->cost_m[i] < finder->cost_m[best])) {
                best = (int32_t)i;
            }
        }
        if (best < 0) {
            return;
        }
        const struct lane *lane = &map->lanes[best];
        finder->done[best] = true;
        for (uint32_t i = 0; i < lane->successor_count; i++) {
            relax(finder, (uint32_t)best, lane->successors[i], finder->length_m[best]);
        }
        if (lane->left >= 0 && !lane->left_opposite) {
            relax(finder, (uint32_t)best, (uint32_t)lane->left, CHANGE_COST_M);
        }
        if (lane->right >= 0 && !lane->right_opposite) {
            relax(finder, (uint32_t)best, (uint32_t)lane->right, CHANGE_COST_M);
        }
    }
}

/* Cost of ending in the lane at the target, INFINITY: it does not lead there. */
static double cost_at(const struct finder *finder, const struct target *target, uint32_t lane)
{
    const struct lane *l = &finder->map->lanes[lane];
    if (!isfinite(finder->cost_m[lane])) {
        return INFINITY;
    }
    if (target->lane >= 0) {
        return (uint32_t)target->lane == lane ? finder->cost_m[lane] : INFINITY;
    }
    struct polyline_projection p = on_lane(finder, lane, target->centre);
    if (!lane_covers(l, &p, START_MARGIN_M)) {
        return INFINITY;
    }
    if (finder->parent[lane] < 0) {
        struct vec2 start = {finder->ego->pose.x_m, finder->ego->pose.y_m};
        if (p.s_m + target->radius_m < on_lane(finder, lane, start).s_m) {
            return INFINITY; /* behind ego in its own lane */
        }
    }
    return finder->cost_m[lane] + p.s_m;
}

/* The cheapest pair of target and lane. */
static bool choose_target(const struct finder *finder, uint32_t *target, uint32_t *lane)
{
    double best = INFINITY;
    for (uint32_t t = 0; t < finder->target_count; t++) {
        for (uint32_t i = 0; i < finder->map->lane_count; i++) {
            double cost = cost_at(finder, &finder->targets[t], i);
            if (cost < best) {
                best = cost;
                *target = t;
                *lane = i;
            }
        }
    }
    return isfinite(best);
}

/* The reachable lane that comes nearest to a target that no lane leads to. */
static uint32_t nearest_reachable(const struct finder *finder, const struct target *target)
{
    double best = INFINITY;
    uint32_t nearest = 0;
    for (uint32_t i = 0; i < finder->map->lane_count; i++) {
        if (isfinite(finder->cost_m[i])) {
            double distance =
                on_lane(finder, i, target->centre).distance_m + 1e-6 * finder->cost_m[i];
            if (distance < best) {
                best = distance;
                nearest = i;
            }
        }
    }
    return nearest;
}

/* From ego's lane to `last`; of a way that is too long, the first part. */
static void trace_route(struct finder *finder, uint32_t last)
{
    uint32_t count = 1;
    for (uint32_t lane = last; finder->parent[lane] >= 0; count++) {
        lane = (uint32_t)finder->parent[lane];
    }
    struct ego *ego = finder->ego;
    ego->route_count = count < LIMIT_ROUTE_LANES ? count : LIMIT_ROUTE_LANES;
    uint32_t lane = last;
    for (uint32_t i = count; i-- > 0;) {
        if (i < LIMIT_ROUTE_LANES) {
            ego->route[i] = lane;
        }
        lane = finder->parent[lane] >= 0 ? (uint32_t)finder->parent[lane] : lane;
    }
    if (count > LIMIT_ROUTE_LANES) {
        cr_note(finder->context, CR_NOTE_GOAL_UNREACHED);
    }
}

static double end_heading(const struct lane *lane, bool at_start)
{
    uint32_t at = at_start ? 0 : lane->point_count - 2;
    struct vec2 a = lane->centre_line[at];
    struct vec2 b = lane->centre_line[at + 1];
    return dmath_atan2(b.y_m - a.y_m, b.x_m - a.x_m);
}

/* Without a goal: along the straightest successors, as far as ego could come. */
static void route_ahead(struct finder *finder, double horizon_s)
{
    struct ego *ego = finder->ego;
    const struct map *map = finder->map;
    uint32_t at = 0;
    for (uint32_t i = 0; i < map->lane_count; i++) {
        struct vec2 start = {ego->pose.x_m, ego->pose.y_m};
        if (finder->parent[i] < 0 && isfinite(finder->cost_m[i])) {
            double here = finder->cost_m[i] + on_lane(finder, i, start).s_m;
            double best = finder->cost_m[at] + on_lane(finder, at, start).s_m;
            at = !isfinite(best) || here < best || finder->parent[at] >= 0 ? i : at;
        }
    }
    double needed_m = AHEAD_M + dmath_max(ego->speed_mps, AHEAD_MPS) * horizon_s;
    double length_m = 0;
    while (ego->route_count < LIMIT_ROUTE_LANES) {
        const struct lane *lane = &map->lanes[at];
        int32_t next = -1;
        double least = INFINITY;
        ego->route[ego->route_count++] = at;
        length_m += finder->length_m[at];
        for (uint32_t i = 0; i < lane->successor_count; i++) {
            const struct lane *ahead = &map->lanes[lane->successors[i]];
            double turn =
                fabs(dmath_wrap_angle(end_heading(ahead, true) - end_heading(lane, false))) +
                0.5 * fabs(dmath_wrap_angle(end_heading(ahead, false) - end_heading(lane, false)));
            if (carries_traffic(ahead) && turn < least) {
                least = turn;
                next = (int32_t)lane->successors[i];
            }
        }
        if (next < 0 || length_m >= needed_m) {
            return;
        }
        at = (uint32_t)next;
    }
}

static enum status finder_alloc(struct finder *finder)
{
    uint32_t count = finder->map->lane_count;
    finder->cost_m = cr_alloc(finder->context, count, sizeof *finder->cost_m);
    finder->parent = cr_alloc(finder->context, count, sizeof *finder->parent);
    finder->length_m = cr_alloc(finder->context, count, sizeof *finder->length_m);
    finder->done = cr_alloc(finder->context, count, sizeof *finder->done);
    finder->ego->route = cr_alloc(finder->context, LIMIT_ROUTE_LANES, sizeof(uint32_t));
    return finder->cost_m != NULL && finder->parent != NULL && finder->length_m != NULL &&
                   finder->done != NULL && finder->ego->route != NULL
               ? STATUS_OK
               : STATUS_LIMIT;
}

enum status cr_route_find(struct cr_context *context, const struct xml_element *problem,
                          const struct cr_map *map, struct scenario *scenario)
{
    struct finder finder = {
        .context = context, .source = map, .map = &scenario->map, .ego = &scenario->ego};
    uint32_t target = 0;
    uint32_t lane = 0;
    TRY(finder_alloc(&finder));
    TRY(read_goals(&finder, problem));
    if (map_locate(finder.map, finder.ego->pose, START_MARGIN_M) < 0 || !seed_starts(&finder)) {
        move_into_lane(&finder);
    }
    search_all(&finder);
    if (finder.target_count == 0) {
        route_ahead(&finder, scenario->horizon_ticks * TICK_S);
        return STATUS_OK;
    }
    bool reached = choose_target(&finder, &target, &lane);
    if (!reached) {
        cr_note(context, CR_NOTE_GOAL_UNREACHED);
        lane = nearest_reachable(&finder, &finder.targets[0]);
    }
    trace_route(&finder, lane);
    finder.ego->has_goal = true;
    finder.ego->goal = finder.targets[target].centre;
    finder.ego->goal_radius_m = finder.targets[target].radius_m;
    scenario->criteria.reach_goal = reached;
    return STATUS_OK;
}
