/*
 * Scenario validation: what a well-formed document must mean. Overlaps at the start, routes that
 * the lanes do not allow, agents whose behaviour cannot be carried out.
 *
 * Invariant: cost is bounded by the published limits (agents squared, lanes times agents).
 */
#include "base/check.h"
#include "base/dmath.h"
#include "base/units.h"
#include "scenarios/resolve.h"
#include "schemas/scenario_json.h"

#include <math.h>

static const double TOUCH_M = 0.01;           /* boxes may touch */
static const double START_MARGIN_M = 0.5;     /* a start this far outside a lane counts as in it */
static const double ROUTE_START_MAX_M = 15.0; /* from a route's first lane */
static const double ROUTE_START_TURNED_MAX_RAD = PI_RAD / 2;
static const double LOG_START_MAX_M = 0.5;
static const double QUINTIC_ACCEL_PEAK = 5.7735026918962573; /* of a shift by 1 m in 1 s */

struct validation {
    const char *name;
    const struct scenario *scenario;
    struct error *error;
};

/* "name: path: text". */
static enum status __attribute__((format(printf, 3, 4)))
fail(const struct validation *v, const char *path, const char *format, ...)
{
    struct error local = {0};
    struct error *error = v->error != NULL ? v->error : &local;
    va_list args;
    va_start(args, format);
    error_setv(error, STATUS_BAD_INPUT, format, args);
    va_end(args);
    return error_prefix(error, "%s: %s", v->name, path);
}

/* ---- routes ---- */

static bool route_step_legal(const struct map *map, uint32_t from, uint32_t to)
{
    const struct lane *lane = &map->lanes[from];
    bool beside = (lane->left == (int32_t)to && !lane->left_opposite) ||
                  (lane->right == (int32_t)to && !lane->right_opposite);
    for (uint32_t i = 0; i < lane->successor_count && !beside; i++) {
        beside = lane->successors[i] == to;
    }
    return beside;
}

static enum status check_route(const struct validation *v, const char *owner, const uint32_t *route,
                               uint32_t count, struct pose start)
{
    const struct map *map = &v->scenario->map;
    const struct lane *first = &map->lanes[route[0]];
    char path[96];
    snprintf(path, sizeof path, "%s.route[0]", owner);
    struct vec2 point = {start.x_m, start.y_m};
    struct polyline_projection p = polyline_project(first->centre_line, first->point_count, point);
    if (p.distance_m > ROUTE_START_MAX_M) {
        return fail(v, path,
                    "expected a route that begins within %g m of the start, found lane "
                    "\"%s\" %g m away",
                    ROUTE_START_MAX_M, first->id, p.distance_m);
    }
    double turned_rad = fabs(dmath_wrap_angle(start.heading_rad - p.heading_rad));
    if (turned_rad > ROUTE_START_TURNED_MAX_RAD) {
        return fail(v, path,
                    "expected a start that faces along the route's first lane, found one turned by "
                    "%.0f degrees against \"%s\"",
                    turned_rad * 180.0 / PI_RAD, first->id);
    }
    for (uint32_t i = 0; i < count; i++) {
        const struct lane *lane = &map->lanes[route[i]];
        snprintf(path, sizeof path, "%s.route[%u]", owner, i);
        if (lane->kind == LANE_SIDEWALK) {
            return fail(v, path, "expected a lane for vehicles, found sidewalk \"%s\"", lane->id);
        }
        if (i > 0 && !route_step_legal(map, route[i - 1], route[i])) {
            return fail(v, path,
                        "expected a successor or same-direction neighbour of \"%s\", found \"%s\"",
                        map->lanes[route[i - 1]].id, lane->id);
        }
    }
    return STATUS_OK;
}

/* ---- ego ---- */

static bool on_drivable(const struct map *map, struct pose pose)
{
    struct vec2 point = {pose.x_m, pose.y_m};
    for (uint32_t i = 0; i < map->drivable_count; i++) {
        const struct polygon *area = &map->drivable[i];
        if (polygon_contains(area->points, area->point_count, point)) {
            return true;
        }
    }
    return map_locate(map, pose, START_MARGIN_M) >= 0;
}

bool goal_holds_at_start(const struct ego *ego)
{
    const struct goal_bounds *bounds = &ego->goal_bounds;
    const struct polygon *area = &ego->goal_area;
    struct vec2 at = {ego->pose.x_m, ego->pose.y_m};
    double x_m = at.x_m - ego->goal.x_m;
    double y_m = at.y_m - ego->goal.y_m;
    bool there = area->point_count > 0
                     ? polygon_contains(area->points, area->point_count, at)
                     : x_m * x_m + y_m * y_m <= ego->goal_radius_m * ego->goal_radius_m;
    double width_rad = bounds->heading_max_rad - bounds->heading_min_rad;
    double turned_rad = dmath_wrap_angle(ego->pose.heading_rad - bounds->heading_min_rad);
    turned_rad = turned_rad < 0.0 ? turned_rad + 2.0 * PI_RAD : turned_rad;
    return ego->has_goal && there && !(bounds->time_min_s > 0.0) &&
           !(ego->speed_mps < bounds->speed_min_mps) && !(ego->speed_mps > bounds->speed_max_mps) &&
           !(width_rad < 2.0 * PI_RAD && turned_rad > width_rad);
}

static enum status check_ego(const struct validation *v)
{
    const struct scenario *scenario = v->scenario;
    const struct ego *ego = &scenario->ego;
    if (!on_drivable(&scenario->map, ego->pose)) {
        return fail(v, "$.ego.pose",
                    "expected a place in a lane or drivable area, found (%g, %g) outside",
                    ego->pose.x_m, ego->pose.y_m);
    }
    if (ego->wheelbase_m > ego->length_m) {
        return fail(v, "$.ego.wheelbase_m", "expected at most the length of %g m, found %g",
                    ego->length_m, ego->wheelbase_m);
    }
    if (ego->route_count == 0) {
        return fail(v, "$.ego.route", "expected a route, found none");
    }
    if (scenario->criteria.reach_goal && !ego->has_goal) {
        return fail(v, "$.criteria.reach_goal", "expected a goal ($.ego.goal), found none");
    }
    if (scenario->criteria.reach_goal && scenario->invalid[0] == '\0' && goal_holds_at_start(ego)) {
        return fail(v, "$.ego.goal",
                    "expected a goal that ego has to reach, found one where it "
                    "is at the start");
    }
    return check_route(v, "$.ego", ego->route, ego->route_count, ego->pose);
}

/* ---- agents ---- */

/* The agent may appear at this manoeuvre: it is not there already. */
static bool may_appear(const struct agent *agent, uint32_t manoeuvre)
{
    bool there = !agent->hidden;
    for (uint32_t i = 0; i < manoeuvre; i++) {
        if (agent->manoeuvres[i].kind == MANOEUVRE_APPEAR) {
            there = true;
        } else if (agent->manoeuvres[i].kind == MANOEUVRE_VANISH) {
            there = false;
        }
    }
    return !there;
}

/* The best grip that any place of the scenario offers: a script that asks for more cannot be
 * carried out anywhere. Where the surface under the agent gives less, the engine does less. */
static double grip_max_mps2(const struct scenario *scenario)
{
    double friction = scenario->conditions.friction;
    for (uint32_t i = 0; i < scenario->map.surface_count; i++) {
        friction = dmath_max(friction, scenario->map.surfaces[i].friction);
    }
    return friction * GRAVITY_MPS2;
}

/* Radius of the circle through three points; INFINITY on a straight. */
static double radius_m(struct vec2 a, struct vec2 b, struct vec2 c)
{
    double ab_x = b.x_m - a.x_m;
    double ab_y = b.y_m - a.y_m;
    double ac_x = c.x_m - a.x_m;
    double ac_y = c.y_m - a.y_m;
    double bc_x = c.x_m - b.x_m;
    double bc_y = c.y_m - b.y_m;
    double area2 = fabs(ab_x * ac_y - ab_y * ac_x);
    double sides = sqrt((ab_x * ab_x + ab_y * ab_y) * (ac_x * ac_x + ac_y * ac_y) *
                        (bc_x * bc_x + bc_y * bc_y));
    return area2 > 1e-9 * sides ? sides / (2.0 * area2) : INFINITY;
}

/* Whether the surface gives what the manoeuvre asks for. */
static enum status check_grip(const struct validation *v, const char *owner,
                              const struct agent *agent, uint32_t index)
{
    const struct manoeuvre *manoeuvre = &agent->manoeuvres[index];
    double grip = grip_max_mps2(v->scenario);
    char path[96];
    bool drives = manoeuvre->kind == MANOEUVRE_SPEED || manoeuvre->kind == MANOEUVRE_PATH;
    if (drives && manoeuvre->rate_mps2 > grip * (1.0 + 1e-9)) {
        snprintf(path, sizeof path, "%s.manoeuvres[%u].rate_mps2", owner, index);
        return fail(v, path,
                    "agent \"%s\": expected at most %.2f m/s2, which is all that this surface "
                    "gives (friction %g), found %g",
                    agent->id, grip, grip / GRAVITY_MPS2, manoeuvre->rate_mps2);
    }
    if (manoeuvre->kind == MANOEUVRE_LANE_CHANGE) {
        double least_s = sqrt(QUINTIC_ACCEL_PEAK * fabs(manoeuvre->offset_m) / grip);
        if (manoeuvre->duration_s < least_s * (1.0 - 1e-9)) {
            snprintf(path, sizeof path, "%s.manoeuvres[%u].duration_s", owner, index);
            return fail(v, path,
                        "agent \"%s\": expected at least %.2f s for %g m to the side on a "
                        "surface that gives %.2f m/s2, found %g",
                        agent->id, least_s, manoeuvre->offset_m, grip, manoeuvre->duration_s);
        }
    }
    for (uint32_t k = 2; manoeuvre->kind == MANOEUVRE_PATH && k < manoeuvre->path_count; k++) {
        const struct vec2 *p = &manoeuvre->path[k - 2];
        double lateral = manoeuvre->speed_mps * manoeuvre->speed_mps / radius_m(p[0], p[1], p[2]);
        if (lateral > grip * (1.0 + 1e-9)) {
            snprintf(path, sizeof path, "%s.manoeuvres[%u].path[%u]", owner, index, k - 1);
            return fail(v, path,
                        "agent \"%s\": expected a bend that can be taken at %g m/s on a surface "
                        "that gives %.2f m/s2, found one that takes %.2f",
                        agent->id, manoeuvre->speed_mps, grip, lateral);
        }
    }
    return STATUS_OK;
}

static enum status check_manoeuvres(const struct validation *v, const char *owner,
                                    const struct agent *agent)
{
    char path[96];
    for (uint32_t i = 0; i < agent->manoeuvre_count; i++) {
        const struct manoeuvre *manoeuvre = &agent->manoeuvres[i];
        TRY(check_grip(v, owner, agent, i));
        if (manoeuvre->kind == MANOEUVRE_APPEAR && !may_appear(agent, i)) {
            snprintf(path, sizeof path, "%s.manoeuvres[%u].do", owner, i);
            return fail(v, path,
                        "agent \"%s\": expected \"hidden\": true or a \"vanish\" before "
                        "\"appear\", found an agent that is there already",
                        agent->id);
        }
        if (manoeuvre->kind == MANOEUVRE_PATH) {
            for (uint32_t k = 1; k < manoeuvre->path_count; k++) {
                struct vec2 a = manoeuvre->path[k - 1];
                struct vec2 b = manoeuvre->path[k];
                if (fabs(a.x_m - b.x_m) + fabs(a.y_m - b.y_m) < 1e-3) {
                    snprintf(path, sizeof path, "%s.manoeuvres[%u].path[%u]", owner, i, k);
                    return fail(v, path,
                                "agent \"%s\": expected points at least 1 mm apart, found "
                                "the same point again",
                                agent->id);
                }
            }
        }
    }
    return STATUS_OK;
}

static enum status check_agent(const struct validation *v, uint32_t index)
{
    const struct agent *agent = &v->scenario->agents[index];
    char owner[48];
    char path[96];
    snprintf(owner, sizeof owner, "$.agents[%u]", index);
    snprintf(path, sizeof path, "%s.pose", owner);
    if (agent->behaviour == BEHAVIOUR_IDM &&
        map_locate(&v->scenario->map, agent->pose, START_MARGIN_M) < 0) {
        return fail(v, path,
                    "agent \"%s\": expected a place in a lane, because its behaviour is "
                    "\"idm\", found (%g, %g) outside",
                    agent->id, agent->pose.x_m, agent->pose.y_m);
    }
    if (agent->trajectory.point_count > 0 && agent->trajectory.points[0].t_s == 0) {
        const struct trajectory_point *first = &agent->trajectory.points[0];
        double x = first->x_m - agent->pose.x_m;
        double y = first->y_m - agent->pose.y_m;
        if (sqrt(x * x + y * y) > LOG_START_MAX_M) {
            return fail(v, path,
                        "agent \"%s\": expected the place where its trajectory begins "
                        "(%g, %g), found (%g, %g)",
                        agent->id, first->x_m, first->y_m, agent->pose.x_m, agent->pose.y_m);
        }
    }
    if (agent->route_count > 0) {
        TRY(check_route(v, owner, agent->route, agent->route_count, agent->pose));
    }
    return check_manoeuvres(v, owner, agent);
}

/* ---- overlaps ---- */

/* Whether the agent is there at the very start. */
static bool starts_present(const struct agent *agent)
{
    return !agent->hidden &&
           (agent->trajectory.point_count == 0 || agent->trajectory.points[0].t_s <= 0);
}

static struct box shrunk_box(struct pose pose, double length_m, double width_m)
{
    return box_make(pose, dmath_max(length_m - TOUCH_M, TOUCH_M),
                    dmath_max(width_m - TOUCH_M, TOUCH_M));
}

/* Recorded agents may overlap one another (measured boxes do), and so may those of a storyboard;
 * nothing else may. */
static enum status check_overlaps(const struct validation *v)
{
    const struct scenario *scenario = v->scenario;
    const struct ego *ego = &scenario->ego;
    struct box boxes[LIMIT_AGENTS];
    struct box ego_box = shrunk_box(ego->pose, ego->length_m, ego->width_m);
    char path[48];
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        const struct agent *agent = &scenario->agents[i];
        boxes[i] = shrunk_box(agent->pose, agent->length_m, agent->width_m);
        snprintf(path, sizeof path, "$.agents[%u]", i);
        if (!starts_present(agent)) {
            continue;
        }
        if (box_overlap(&ego_box, &boxes[i])) {
            return fail(v, path, "expected agents apart at the start, found \"%s\" overlapping ego",
                        agent->id);
        }
        for (uint32_t j = 0; j < i; j++) {
            const struct agent *other = &scenario->agents[j];
            bool recorded =
                agent->behaviour == other->behaviour &&
                (agent->behaviour == BEHAVIOUR_REPLAY || agent->behaviour == BEHAVIOUR_STORYBOARD);
            if (!recorded && starts_present(other) && box_overlap(&boxes[i], &boxes[j])) {
                return fail(v, path,
                            "expected agents apart at the start, found \"%s\" overlapping \"%s\"",
                            agent->id, other->id);
            }
        }
    }
    return STATUS_OK;
}

/* ---- branches ---- */

/* A model that foresees leaves what is written behind for good. */
static enum status check_traffic(const struct validation *v, uint32_t b)
{
    const struct branch *branch = &v->scenario->branches[b];
    bool foresees = false;
    for (uint32_t i = 0; i < branch->intervention_count; i++) {
        const struct intervention *it = &branch->interventions[i];
        if (it->kind != INTERVENE_TRAFFIC) {
            continue;
        }
        if (foresees && it->traffic == TRAFFIC_MODEL_WRITTEN) {
            char path[96];
            snprintf(path, sizeof path, "$.branches[%u].interventions[%u].model", b, i);
            return fail(v, path,
                        "expected a model that foresees, as the one before it does, found "
                        "\"written\"");
        }
        foresees = foresees || it->traffic != TRAFFIC_MODEL_WRITTEN;
    }
    return STATUS_OK;
}

/* Whether intervention i of the branch finds its agent hidden, whatever happens before it. */
static bool stays_hidden(const struct agent *agent, const struct branch *branch, uint32_t i)
{
    bool hidden = agent->hidden;
    for (uint32_t k = 0; k < agent->manoeuvre_count; k++) {
        hidden = hidden && agent->manoeuvres[k].kind != MANOEUVRE_APPEAR;
    }
    for (uint32_t k = 0; k < i; k++) {
        const struct intervention *before = &branch->interventions[k];
        hidden = hidden && (before->kind != INTERVENE_AGENT_APPEAR ||
                            before->agent != branch->interventions[i].agent);
    }
    return hidden;
}

/* As the engine refuses it when it is due (engine/traffic/traffic_script.c), where that depends on
 * the scenario alone. */
static enum status check_ordered_agent(const struct validation *v, uint32_t b, uint32_t i)
{
    const struct branch *branch = &v->scenario->branches[b];
    const struct intervention *it = &branch->interventions[i];
    const struct agent *agent = &v->scenario->agents[it->agent];
    const bool recorded = agent->behaviour == BEHAVIOUR_REPLAY && agent->trajectory.point_count > 0;
    char path[96];
    snprintf(path, sizeof path, "$.branches[%u].interventions[%u].agent", b, i);
    if (agent->behaviour == BEHAVIOUR_STATIC) {
        return fail(v, path,
                    "expected an agent that moves, found \"%s\", whose behaviour is \"static\"",
                    agent->id);
    }
    if (it->kind == INTERVENE_AGENT_CUT_IN && agent->kind >= AGENT_PEDESTRIAN) {
        return fail(v, path, "expected a vehicle, found \"%s\", whose kind is \"%s\"", agent->id,
                    agent_kind_names[agent->kind]);
    }
    if (stays_hidden(agent, branch, i)) {
        return fail(v, path,
                    "expected an agent that is there at tick %u, found \"%s\", which is hidden and "
                    "nothing makes it appear before",
                    it->tick, agent->id);
    }
    if (recorded && agent->trajectory.points[0].t_s > it->tick * TICK_S + 1e-9) {
        return fail(v, path,
                    "expected an agent that is there at tick %u, found \"%s\", whose trajectory "
                    "begins at %g s",
                    it->tick, agent->id, agent->trajectory.points[0].t_s);
    }
    return STATUS_OK;
}

static enum status check_branches(const struct validation *v)
{
    const struct scenario *scenario = v->scenario;
    for (uint32_t b = 0; b < scenario->branch_count; b++) {
        const struct branch *branch = &scenario->branches[b];
        TRY(check_traffic(v, b));
        for (uint32_t i = 0; i < branch->intervention_count; i++) {
            const enum intervention_kind kind = branch->interventions[i].kind;
            if (kind == INTERVENE_AGENT_BRAKE || kind == INTERVENE_AGENT_CUT_IN) {
                TRY(check_ordered_agent(v, b, i));
            }
        }
    }
    return STATUS_OK;
}

enum status scenario_validate_parts(const char *name, const struct scenario *scenario,
                                    bool lanes_checked, struct errors *errors, struct error *error)
{
    uint32_t before = errors_count(errors);
    const struct validation v = {.name = name, .scenario = scenario, .error = error};
    CHECK(scenario->agent_count <= LIMIT_AGENTS);
    TRY(map_validate(name, "$.map", &scenario->map, !lanes_checked, error));
    TRY(errors_keep(errors, check_ego(&v), error));
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        TRY(errors_keep(errors, check_agent(&v, i), error));
    }
    TRY(errors_keep(errors, check_overlaps(&v), error));
    TRY(errors_keep(errors, check_branches(&v), error));
    return errors_end(errors, before, error);
}
