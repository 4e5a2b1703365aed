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
#include <stdio.h>
#include <string.h>

enum { TARGETS_MAX = 256 };

static const double START_MARGIN_M = 0.5; /* of the loader */
static const double START_MAX_M = 14.99;  /* from a route's first lane; the loader takes 15 */
static const double GOAL_RADIUS_MIN_M = 2.0;
static const double GOAL_RADIUS_MAX_M = 1000.0;
static const double GOAL_TIME_MAX_S = 600.0; /* of a scenario document */
static const double MOVED_MAX_M = 1.0;  /* farther, and it is another problem than the file's */
static const double EXTENSION_M = 30.0; /* of a lane, at least */
static const double EXTENSION_MAX_M = 10000.0;
static const double CHANGE_COST_M = 30.0;      /* of a lane change */
static const double OTHER_KIND_COST_M = 500.0; /* of entering a shoulder or cycle lane */
static const double TURN_COST_M = 10.0;        /* per radian between ego and its lane */
static const double AGAINST_COST_M = 1000.0;   /* ego stands against the lane */
static const double TURNED_MAX_RAD =
    PI_RAD / 2 - 1e-3; /* at the start; the loader takes a little more */
static const double AHEAD_M = 100.0;
static const double AHEAD_MPS = 15.0;

struct target {
    int32_t lane; /* a lanelet's lane, or -1: a region */
    struct vec2 centre;
    double radius_m;
    struct polygon area; /* point_count 0: the circle */
    struct goal_bounds bounds;
};

struct finder {
    struct cr_context *context;
    const struct cr_map *source;
    struct scenario *scenario;
    struct map *map;
    struct ego *ego;
    double start_s;            /* ego's time in the file */
    struct goal_bounds bounds; /* of the goal state that is read */
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
        finder->targets[finder->target_count] = *target;
        finder->targets[finder->target_count++].bounds = finder->bounds;
    }
}

/* The lane as an area: its left edge, and back along its right one. */
static void lane_area(const struct finder *finder, const struct lane *lane, struct polygon *out)
{
    uint32_t count = 2 * lane->point_count;
    struct vec2 *points =
        count <= LIMIT_LANE_POINTS ? cr_alloc(finder->context, count, sizeof *points) : NULL;
    double s_m = 0;
    for (uint32_t i = 0; points != NULL && i < lane->point_count; i++) {
        struct vec2 at = lane->centre_line[i];
        if (i > 0) {
            struct vec2 before = lane->centre_line[i - 1];
            s_m += sqrt((at.x_m - before.x_m) * (at.x_m - before.x_m) +
                        (at.y_m - before.y_m) * (at.y_m - before.y_m));
        }
        struct pose left =
            polyline_pose_at(lane->centre_line, lane->point_count, s_m, lane->width_m[i] / 2);
        struct pose right =
            polyline_pose_at(lane->centre_line, lane->point_count, s_m, -lane->width_m[i] / 2);
        points[i] = (struct vec2){left.x_m, left.y_m};
        points[count - 1 - i] = (struct vec2){right.x_m, right.y_m};
    }
    *out = (struct polygon){points != NULL ? count : 0, points};
}

/* The middle of a lane and all of its length. */
static void add_lane_target(struct finder *finder, uint32_t index)
{
    const struct lane *lane = &finder->map->lanes[index];
    double length_m = polyline_length_m(lane->centre_line, lane->point_count);
    struct pose middle = polyline_pose_at(lane->centre_line, lane->point_count, length_m / 2, 0);
    struct target target = {.lane = (int32_t)index, .centre = {middle.x_m, middle.y_m}};
    target.radius_m = dmath_clamp(length_m / 2, GOAL_RADIUS_MIN_M, GOAL_RADIUS_MAX_M);
    lane_area(finder, lane, &target.area);
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
        if (xml_child(position, CR_CIRCLE) == NULL) {
            struct box box = box_make(parts[i].pose, parts[i].length_m, parts[i].width_m);
            target.area.points = cr_alloc(finder->context, 4, sizeof *target.area.points);
            if (target.area.points == NULL) {
                return STATUS_LIMIT;
            }
            target.area.point_count = 4;
            box_corners(&box, target.area.points);
        }
        add_target(finder, &target);
    }
    return STATUS_OK;
}

/* Conditions of a goal state besides its place. Times count from ego's start; an orientation that
 * leaves everything open asks nothing. */
static enum status read_goal_bounds(struct finder *finder, const struct xml_element *goal)
{
    const struct cr_context *context = finder->context;
    struct goal_bounds bounds = {NAN, NAN, NAN, NAN, NAN, NAN};
    TRY(cr_interval(context, xml_child(goal, CR_TIME), 0, 1e7, &bounds.time_min_s,
                    &bounds.time_max_s));
    bounds.time_min_s = dmath_max(bounds.time_min_s * context->dt_s - finder->start_s, 0);
    bounds.time_max_s = bounds.time_max_s * context->dt_s - finder->start_s;
    if (!(bounds.time_max_s >= bounds.time_min_s) || bounds.time_max_s > GOAL_TIME_MAX_S) {
        bounds.time_min_s = NAN;
        bounds.time_max_s = NAN;
    }
    TRY(cr_interval(context, xml_child(goal, CR_VELOCITY), -CR_SPEED_MAX_MPS, CR_SPEED_MAX_MPS,
                    &bounds.speed_min_mps, &bounds.speed_max_mps));
    TRY(cr_interval(context, xml_child(goal, CR_ORIENTATION), -2 * PI_RAD, 2 * PI_RAD,
                    &bounds.heading_min_rad, &bounds.heading_max_rad));
    finder->bounds = bounds;
    return STATUS_OK;
}

static enum status read_goals(struct finder *finder, const struct xml_element *problem)
{
    const struct xml_element *goal = xml_child(problem, CR_GOAL_STATE);
    for (; goal != NULL; goal = xml_next(goal)) {
        const struct xml_element *position = xml_child(goal, CR_POSITION);
        TRY(read_goal_bounds(finder, goal));
        if (position != NULL) {
            TRY(read_goal_position(finder, position));
        } else if (xml_child(goal, CR_VELOCITY) != NULL ||
                   xml_child(goal, CR_ORIENTATION) != NULL) {
            cr_note(finder->context, CR_NOTE_GOAL_ANYWHERE);
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
    struct pose before = *pose;
    *pose = polyline_pose_at(lane->centre_line, lane->point_count, best.s_m, 0);
    cr_note(finder->context, CR_NOTE_EGO_MOVED);
    double moved_m = sqrt((pose->x_m - before.x_m) * (pose->x_m - before.x_m) +
                          (pose->y_m - before.y_m) * (pose->y_m - before.y_m));
    if (moved_m > MOVED_MAX_M) {
        snprintf(finder->scenario->invalid, sizeof finder->scenario->invalid,
                 "ego starts outside every lane of the file and was moved by %.1f m", moved_m);
    }
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

/* ---- where the map ends ---- */

/* A lane with one more point, so far before its first or after its last, straight on. */
static enum status extend_lane(struct finder *finder, struct lane *lane, bool before, double by_m)
{
    uint32_t count = lane->point_count + 1;
    struct vec2 *line = cr_alloc(finder->context, count, sizeof *line);
    double *width_m = cr_alloc(finder->context, count, sizeof *width_m);
    if (line == NULL || width_m == NULL) {
        return STATUS_LIMIT;
    }
    double end_m = polyline_length_m(lane->centre_line, lane->point_count);
    struct pose beyond =
        polyline_pose_at(lane->centre_line, lane->point_count, before ? -by_m : end_m + by_m, 0);
    for (uint32_t i = 0; i < lane->point_count; i++) {
        line[i + before] = lane->centre_line[i];
        width_m[i + before] = lane->width_m[i];
    }
    uint32_t added = before ? 0 : count - 1;
    line[added] = (struct vec2){beyond.x_m, beyond.y_m};
    width_m[added] = lane->width_m[before ? 0 : lane->point_count - 1];
    lane->centre_line = line;
    lane->width_m = width_m;
    lane->point_count = count;
    cr_note(finder->context, CR_NOTE_LANE_EXTENDED);
    return STATUS_OK;
}

static bool leads_to(const struct lane *lane, uint32_t next)
{
    for (uint32_t i = 0; i < lane->successor_count; i++) {
        if (lane->successors[i] == next) {
            return true;
        }
    }
    return false;
}

static bool has_predecessor(const struct map *map, uint32_t lane)
{
    for (uint32_t i = 0; i < map->lane_count; i++) {
        if (leads_to(&map->lanes[i], lane)) {
            return true;
        }
    }
    return false;
}

/* Metres that ego could drive before the horizon beyond the end of its route, at the highest limit
 * of its lanes. A lane that the route leaves for the one beside it is no part of the way. */
static double beyond_end_m(const struct finder *finder)
{
    const struct ego *ego = finder->ego;
    const struct lane *lanes = finder->map->lanes;
    struct vec2 start = {ego->pose.x_m, ego->pose.y_m};
    double fastest_mps = dmath_max(ego->speed_mps, AHEAD_MPS);
    double left_m = 0;
    bool begun = false;
    for (uint32_t i = 0; i < ego->route_count; i++) {
        uint32_t at = ego->route[i];
        fastest_mps = dmath_max(fastest_mps, lanes[at].speed_limit_mps);
        if (i + 1 == ego->route_count || leads_to(&lanes[at], ego->route[i + 1])) {
            left_m += finder->length_m[at] - (begun ? 0 : on_lane(finder, at, start).s_m);
            begun = true;
        }
    }
    return fastest_mps * finder->scenario->horizon_ticks * TICK_S + ego->length_m - left_m;
}

/* Recorded maps are cut off where nobody drove any more, which may be under ego's rear: the lanes
 * in which ego starts and, of its route, ends go on where nothing leads into or out of them, and
 * their neighbours beside them. */
static enum status extend_map(struct finder *finder)
{
    struct map *map = finder->map;
    const struct ego *ego = finder->ego;
    double beyond_m = beyond_end_m(finder);
    for (int end = 0; end < 2; end++) {
        uint32_t at = ego->route[end == 0 ? 0 : ego->route_count - 1];
        int32_t lanes[3] = {(int32_t)at, map->lanes[at].left_opposite ? -1 : map->lanes[at].left,
                            map->lanes[at].right_opposite ? -1 : map->lanes[at].right};
        for (int i = 0; i < 3; i++) {
            struct lane *lane = lanes[i] >= 0 ? &map->lanes[lanes[i]] : NULL;
            if (lane == NULL || lane->point_count >= LIMIT_LANE_POINTS) {
                continue;
            }
            double start_m =
                on_lane(finder, (uint32_t)lanes[i], (struct vec2){ego->pose.x_m, ego->pose.y_m})
                    .s_m;
            if (end == 0 && start_m < ego->length_m && !has_predecessor(map, (uint32_t)lanes[i])) {
                TRY(extend_lane(finder, lane, true, EXTENSION_M));
            }
            if (end == 1 && lane->successor_count == 0 && beyond_m > 0) {
                TRY(extend_lane(finder, lane, false,
                                dmath_clamp(beyond_m, EXTENSION_M, EXTENSION_MAX_M)));
            }
        }
    }
    return STATUS_OK;
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

/* Nobody can drive a route from a start that faces against it. */
static enum status check_start(const struct finder *finder, const struct xml_element *problem)
{
    const struct pose *pose = &finder->ego->pose;
    uint32_t first = finder->ego->route[0];
    struct polyline_projection p = on_lane(finder, first, (struct vec2){pose->x_m, pose->y_m});
    double turned_rad = fabs(dmath_wrap_angle(pose->heading_rad - p.heading_rad));
    if (turned_rad <= TURNED_MAX_RAD) {
        return STATUS_OK;
    }
    return cr_fail(finder->context, problem, STATUS_BAD_INPUT,
                   "expected an initial state along a lanelet, found one turned by %.0f degrees "
                   "against lanelet %s",
                   turned_rad * 180.0 / PI_RAD, finder->map->lanes[first].id);
}

enum status cr_route_find(struct cr_context *context, const struct xml_element *problem,
                          const struct cr_map *map, double start_s, struct scenario *scenario)
{
    struct finder finder = {.context = context,
                            .source = map,
                            .scenario = scenario,
                            .map = &scenario->map,
                            .ego = &scenario->ego,
                            .start_s = start_s};
    scenario->ego.goal_bounds = (struct goal_bounds){NAN, NAN, NAN, NAN, NAN, NAN};
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
        TRY(extend_map(&finder));
        return check_start(&finder, problem);
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
    finder.ego->goal_area = finder.targets[target].area;
    finder.ego->goal_bounds = finder.targets[target].bounds;
    scenario->criteria.reach_goal = reached;
    TRY(extend_map(&finder));
    return check_start(&finder, problem);
}
