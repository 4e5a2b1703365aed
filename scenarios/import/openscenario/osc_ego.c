/*
 * Ego's way: the lanes that its path runs along, as the route of the scenario.
 *
 * A route that the file assigns, else the way straightest ahead, is what ego's path follows. The
 * loader would find a route too, but takes the first lane where several lead on.
 */
#include "scenarios/import/openscenario/osc_internal.h"

#include "base/dmath.h"
#include "base/units.h"
#include "schemas/scenario_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define OWN_BEHIND_M 20.0
#define OWN_STEP_M 1.0
#define OWN_WIDTH_M 3.5
#define BEND_LOOK_M 100.0
#define BEND_STEP_M 1.0
#define GRIP_SHARE                                                                                \
    0.475 /* of what the surface gives: friction_use of worker/METRICS.md takes 0.5, and planners \
             do not keep to the middle of a lane */
#define SLIDE_SHARE 0.8 /* of it, beyond which a single-track model slides, too */
#define BEND_DECEL_MAX_MPS2 6.0
#define BESIDE_M 0.5 /* beyond a lane's edge ego still starts in it, as for the loader */

struct route {
    uint32_t count;
    uint32_t *lanes; /* [LIMIT_ROUTE_LANES] of the map */
};

static bool leads_to(const struct lane *lane, uint32_t next)
{
    for (uint32_t i = 0; i < lane->successor_count; i++) {
        if (lane->successors[i] == next) {
            return true;
        }
    }
    return false;
}

/* Pieces of a lane of the network in its direction of travel, from an s on; false: the map does not
 * lead over all of them. */
static bool add_pieces(const struct osc_context *context, const struct opendrive_map *map,
                       uint32_t lane, double from_s_m, struct route *route)
{
    bool against = context->network->lanes[lane].against;
    uint32_t lane_count = map->map.lane_count;
    uint32_t before = route->count;
    for (uint32_t k = 0; k < lane_count; k++) {
        uint32_t at = against ? lane_count - 1 - k : k;
        const struct opendrive_piece *piece = &map->pieces[at];
        const struct lane *made = &map->map.lanes[at];
        bool behind = against ? piece->low_s_m >= from_s_m : piece->high_s_m <= from_s_m;
        if (piece->lane != lane || behind) {
            continue;
        }
        if (route->count == LIMIT_ROUTE_LANES || made->kind == LANE_SIDEWALK ||
            (route->count > 0 && !leads_to(&map->map.lanes[route->lanes[route->count - 1]], at))) {
            return false;
        }
        route->lanes[route->count++] = at;
    }
    return route->count > before;
}

static bool starts_in(const struct lane *lane, struct pose pose)
{
    struct vec2 point = {pose.x_m, pose.y_m};
    struct polyline_projection at = polyline_project(lane->centre_line, lane->point_count, point);
    double width_m = dmath_max(lane->width_m[at.segment], lane->width_m[at.segment + 1]);
    return at.distance_m <= width_m / 2 + BESIDE_M &&
           fabs(dmath_wrap_angle(pose.heading_rad - at.heading_rad)) < PI_RAD / 2;
}

enum status osc_ego_route(struct osc_context *context, const struct opendrive_map *map,
                          struct ego *ego)
{
    const struct osc_entity *entity = context->ego;
    const struct osc_path *path = &entity->path;
    struct route route = {0, osc_alloc(context, LIMIT_ROUTE_LANES, sizeof *route.lanes)};
    double start_m = path->start_s_m + entity->centre_x_m;
    double goal_m = context->options->goal_m;
    if (route.lanes == NULL) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i < path->lane_count; i++) {
        bool behind = i + 1 < path->lane_count && path->lane_s_m[i + 1] <= start_m;
        bool against = context->network->lanes[path->lanes[i]].against;
        bool beyond = !isnan(goal_m) && path->lane_s_m[i] > path->start_s_m + goal_m;
        if (behind) {
            continue;
        }
        if (beyond || path->with_s[i] == against) {
            break;
        }
        double from_s_m = path->with_s[i] ? -INFINITY : INFINITY;
        if (path->lanes[i] == entity->place.lane && route.count == 0) {
            from_s_m = entity->place.s_m + (against ? -1 : 1) * entity->centre_x_m;
        }
        if (!add_pieces(context, map, path->lanes[i], from_s_m, &route)) {
            break;
        }
    }
    if (route.count > 0 && starts_in(&map->map.lanes[route.lanes[0]], ego->pose)) {
        ego->route = route.lanes;
        ego->route_count = route.count;
    }
    return STATUS_OK;
}

enum status osc_ego_note_end(struct osc_context *context)
{
    const struct osc_entity *entity = context->ego;
    const struct story_path *path = &context->board.paths[entity->path.index];
    double left_m = path->points[path->point_count - 1].s_m - entity->path.start_s_m;
    double speed_mps = entity->speed_mps;
    if (!entity->path.ends || left_m >= speed_mps * context->horizon_s) {
        return STATUS_OK;
    }
    return osc_note_made(
        context, entity->element,
        "ego's lanes end %.0f m ahead, where it is after %.1f s at %.3g m/s: the scenario lasts "
        "%g s (--horizon makes it shorter)",
        left_m, left_m / speed_mps, speed_mps, context->horizon_s);
}

/* ---- ego's own lane ---- */

bool osc_ego_in_lane(const struct map *map, const struct ego *ego)
{
    for (uint32_t i = 0; i < map->lane_count; i++) {
        if (map->lanes[i].kind != LANE_SIDEWALK && starts_in(&map->lanes[i], ego->pose)) {
            return true;
        }
    }
    return false;
}

/* Points beside ego's path, as far as ego is, from behind its rear on, OWN_STEP_M apart or more. */
static uint32_t own_line(const struct osc_context *context, struct vec2 *points)
{
    const struct osc_path *path = &context->ego->path;
    const struct story_path *way = &context->board.paths[path->index];
    const struct pose *start = &context->ego->pose;
    double end_m = way->points[way->point_count - 1].s_m;
    double from_m = path->start_s_m - OWN_BEHIND_M;
    double start_s_m;
    double offset_m;
    osc_path_project(&context->board, path->index, (struct vec2){start->x_m, start->y_m},
                     &start_s_m, &offset_m);
    double step_m = dmath_max((end_m - from_m) / (LIMIT_LANE_POINTS - 1), OWN_STEP_M);
    uint32_t count = 0;
    for (double s_m = from_m; s_m <= end_m && count < LIMIT_LANE_POINTS; s_m += step_m) {
        struct pose at = osc_path_pose(&context->board, path->index, s_m);
        points[count++] = (struct vec2){at.x_m - offset_m * dmath_sin(at.heading_rad),
                                        at.y_m + offset_m * dmath_cos(at.heading_rad)};
    }
    return count;
}

enum status osc_ego_own_lane(struct osc_context *context, struct map *map, struct ego *ego)
{
    struct lane *lanes = osc_alloc(context, map->lane_count + 1, sizeof *lanes);
    struct vec2 *points = osc_alloc(context, LIMIT_LANE_POINTS, sizeof *points);
    double *widths = osc_alloc(context, LIMIT_LANE_POINTS, sizeof *widths);
    uint32_t *route = osc_alloc(context, 1, sizeof *route);
    if (lanes == NULL || points == NULL || widths == NULL || route == NULL) {
        return STATUS_LIMIT;
    }
    memcpy(lanes, map->lanes, map->lane_count * sizeof *lanes);
    uint32_t count = own_line(context, points);
    for (uint32_t i = 0; i < count; i++) {
        widths[i] = OWN_WIDTH_M;
    }
    lanes[map->lane_count] = (struct lane){.id = "ego_path",
                                           .point_count = count,
                                           .centre_line = points,
                                           .width_m = widths,
                                           .left = -1,
                                           .right = -1};
    route[0] = map->lane_count++;
    map->lanes = lanes;
    ego->route = route;
    ego->route_count = 1;
    osc_note(context, context->ego->element,
             "ego starts beside every lane, or against its direction: its own way is a lane of the "
             "map, ego_path");
    return STATUS_OK;
}

/* ---- bends ---- */

/* Speed at the start at which bends ahead can still be slowed down for, to that share of what the
 * surface gives. */
static double bend_speed(const struct osc_context *context, double share, double decel_mps2,
                         double look_m)
{
    const struct osc_path *path = &context->ego->path;
    const struct story_path *way = &context->board.paths[path->index];
    double least2 = INFINITY;
    struct pose before = osc_path_pose(&context->board, path->index, path->start_s_m);
    double end_m = way->points[way->point_count - 1].s_m;
    for (double ahead_m = 0; ahead_m < look_m && path->start_s_m + ahead_m < end_m;
         ahead_m += BEND_STEP_M) {
        struct pose at =
            osc_path_pose(&context->board, path->index, path->start_s_m + ahead_m + BEND_STEP_M);
        double curvature = fabs(at.heading_rad - before.heading_rad) / BEND_STEP_M;
        least2 = dmath_min(least2, share * GRAVITY_MPS2 / dmath_max(curvature, 1e-9) +
                                       2 * decel_mps2 * ahead_m);
        before = at;
    }
    return sqrt(least2);
}

enum status osc_ego_fit_bend(struct osc_context *context)
{
    struct osc_entity *ego = context->ego;
    double gentle_mps = bend_speed(context, GRIP_SHARE, BEND_DECEL_MPS2, BEND_LOOK_M);
    double speed_mps = ego->speed_mps;
    if (speed_mps <= gentle_mps) {
        double held_mps =
            bend_speed(context, GRIP_SHARE, 0, speed_mps * dmath_max(context->horizon_s, 0));
        ego->single_track = held_mps < speed_mps && !context->options->fit_speed;
        return !ego->single_track
                   ? STATUS_OK
                   : osc_note_made(context, ego->element,
                                   "ego starts with %.3g m/s towards a bend that a kinematic model "
                                   "holds with %.1f m/s: it is a single-track model",
                                   speed_mps, floor(held_mps * 10) / 10);
    }
    gentle_mps = floor(gentle_mps * 10) / 10;
    if (context->options->fit_speed ||
        speed_mps > bend_speed(context, SLIDE_SHARE, BEND_DECEL_MAX_MPS2, BEND_LOOK_M)) {
        ego->speed_mps = gentle_mps;
        return osc_note_made(context, ego->element,
                             "ego starts with %.1f m/s, which its bend holds, not %.3g%s",
                             gentle_mps, speed_mps,
                             context->options->fit_speed ? "" : ", with which any car would slide");
    }
    ego->single_track = true;
    return osc_note_made(
        context, ego->element,
        "ego starts with %.3g m/s in a bend that a kinematic model holds with %.1f m/s: it is a "
        "single-track model (--fit-speed starts with what the kinematic one holds)",
        speed_mps, gentle_mps);
}

const char *osc_actor_slice(const struct scenario *scenario)
{
    static const enum agent_kind order[] = {AGENT_PEDESTRIAN, AGENT_CYCLIST, AGENT_ANIMAL,
                                            AGENT_MOTORCYCLE, AGENT_TRUCK,   AGENT_BUS,
                                            AGENT_VAN,        AGENT_CAR,     AGENT_OBJECT};
    for (size_t k = 0; k < sizeof order / sizeof *order; k++) {
        for (uint32_t i = 0; i < scenario->agent_count; i++) {
            if (scenario->agents[i].kind == order[k]) {
                return agent_kind_names[order[k]];
            }
        }
    }
    return "none";
}
