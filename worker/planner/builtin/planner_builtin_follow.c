/*
 * Following. See planner_builtin_follow.h.
 */
#include "worker/planner/builtin/planner_builtin_follow.h"

#include "base/dmath.h"
#include "worker/planner/builtin/planner_builtin.h"

#include <math.h>

#define BEND_LAT_MPS2 2.0
#define YELLOW_DECEL_MPS2 3.0
#define CROSSING_COS 0.5
#define ALLOWED_SLACK (1.0 + 1e-9) /* more than rounding takes from a squared speed */
#define PLACE_SLACK_M 0.01         /* more than rounding takes from a distance */
#define GENTLE_COS 0.49            /* less than that of 60 degrees */
#define PIECE_MIN_M 1e-4

/* Bounds of the points, and how the pieces turn. */
static void bound_route(struct planner_route *route)
{
    uint32_t count = route->seen->route_count;
    double before2 = 0.0;
    route->x_low_m = route->y_low_m = INFINITY;
    route->x_high_m = route->y_high_m = -INFINITY;
    route->gentle = count > 1;
    for (uint32_t i = 0; i < count; i++) {
        double dx = route->dx_m[i];
        double dy = route->dy_m[i];
        double length2 = dx * dx + dy * dy;
        route->x_low_m = dmath_min(route->x_low_m, route->x_m[i]);
        route->x_high_m = dmath_max(route->x_high_m, route->x_m[i]);
        route->y_low_m = dmath_min(route->y_low_m, route->y_m[i]);
        route->y_high_m = dmath_max(route->y_high_m, route->y_m[i]);
        if (i + 1 < count) {
            double dot = i == 0 ? 0.0 : dx * route->dx_m[i - 1] + dy * route->dy_m[i - 1];
            bool turns = i > 0 && (dot <= 0.0 || 4.0 * dot * dot < length2 * before2);
            route->gentle &= length2 > PIECE_MIN_M * PIECE_MIN_M && !turns;
        }
        before2 = length2;
    }
}

void planner_route_take(const struct swerve_observation *seen, struct planner_route *out)
{
    out->seen = seen;
    dmath_sincos(seen->heading_rad, &out->sine, &out->cosine);
    for (uint32_t i = 0; i < seen->route_count; i++) {
        const struct swerve_route_point *a = &seen->route[i];
        const struct swerve_route_point *b = i + 1 < seen->route_count ? a + 1 : a;
        out->x_m[i] = (double)a->x_m;
        out->y_m[i] = (double)a->y_m;
        out->dx_m[i] = (double)b->x_m - (double)a->x_m;
        out->dy_m[i] = (double)b->y_m - (double)a->y_m;
        out->reach_m[i] = fabs(out->dx_m[i]) + fabs(out->dy_m[i]);
    }
    bound_route(out);
}

bool planner_route_misses(const struct planner_route *route, const struct swerve_object *object,
                          double time_s, double reach_m)
{
    double dx = object->x_m - route->seen->x_m;
    double dy = object->y_m - route->seen->y_m;
    double x = route->cosine * dx + route->sine * dy;
    double y = route->cosine * dy - route->sine * dx;
    double x_way = time_s * (route->cosine * object->vx_mps + route->sine * object->vy_mps);
    double y_way = time_s * (route->cosine * object->vy_mps - route->sine * object->vx_mps);
    double beside_x = dmath_max(route->x_low_m - (x + dmath_max(x_way, 0.0)),
                                x + dmath_min(x_way, 0.0) - route->x_high_m);
    double beside_y = dmath_max(route->y_low_m - (y + dmath_max(y_way, 0.0)),
                                y + dmath_min(y_way, 0.0) - route->y_high_m);
    /* An offset at a point where the route turns is the distance from there times at
     * least the cosine of the turn. */
    return route->gentle && GENTLE_COS * dmath_max(beside_x, beside_y) > reach_m + PLACE_SLACK_M;
}

/* Squared distances from a point of ego's frame to the route's points, and the least of them.
 * Minima are taken of every fourth: each waits for the one before. */
static double nearest_squared(const struct planner_route *route, double px, double py,
                              double squared[SWERVE_ROUTE_POINTS])
{
    double nearest[4] = {1e300, 1e300, 1e300, 1e300};
    uint32_t count = route->seen->route_count;
    uint32_t i = 0;
    for (; i + 4 <= count; i += 4) {
        for (uint32_t k = 0; k < 4; k++) {
            double x = px - route->x_m[i + k];
            double y = py - route->y_m[i + k];
            squared[i + k] = x * x + y * y;
            nearest[k] = dmath_min(squared[i + k], nearest[k]);
        }
    }
    for (; i < count; i++) {
        double x = px - route->x_m[i];
        double y = py - route->y_m[i];
        squared[i] = x * x + y * y;
        nearest[0] = dmath_min(squared[i], nearest[0]);
    }
    return dmath_min(dmath_min(nearest[0], nearest[1]), dmath_min(nearest[2], nearest[3]));
}

bool planner_place_find(const struct planner_route *route, double x_m, double y_m,
                        double heading_rad, struct planner_place *out)
{
    const struct swerve_observation *seen = route->seen;
    double best = 1e300;
    bool found = false;
    double way_x = 1.0; /* of the nearest piece */
    double way_y = 0.0;
    double px = route->cosine * (x_m - seen->x_m) + route->sine * (y_m - seen->y_m);
    double py = route->cosine * (y_m - seen->y_m) - route->sine * (x_m - seen->x_m);
    double squared_m2[SWERVE_ROUTE_POINTS];
    double near_m = sqrt(nearest_squared(route, px, py, squared_m2)) + PLACE_SLACK_M;
    for (uint32_t i = 0; i + 1 < seen->route_count; i++) {
        /* Pieces all of which lies beyond a point of the route are not the nearest. */
        double most_m = near_m + route->reach_m[i];
        if (squared_m2[i] > most_m * most_m) {
            continue;
        }
        double dx = route->dx_m[i];
        double dy = route->dy_m[i];
        double length = sqrt(dx * dx + dy * dy);
        if (length < 1e-6) {
            continue;
        }
        double from_x = px - route->x_m[i];
        double from_y = py - route->y_m[i];
        double along = (from_x * dx + from_y * dy) / length;
        double share = dmath_clamp(along, 0.0, length);
        double ex = from_x - share * dx / length;
        double ey = from_y - share * dy / length;
        double squared = ex * ex + ey * ey;
        if (squared < best) {
            best = squared;
            way_x = dx;
            way_y = dy;
            out->s_m = i * SWERVE_ROUTE_STEP_M + share;
            out->offset_m = (from_y * dx - from_x * dy) / length;
            out->left_m = (double)seen->route[i].left_m;
            out->right_m = (double)seen->route[i].right_m;
            found = (i > 0 || along >= 0.0) && (i + 2 < seen->route_count || along <= length);
        }
    }
    if (found) {
        out->route_rad = dmath_atan2(way_y, way_x);
        dmath_sincos(heading_rad - seen->heading_rad - out->route_rad, &out->sine, &out->cosine);
    }
    return found;
}

struct planner_half planner_place_half(const struct planner_place *at, double length_m,
                                       double width_m)
{
    return (struct planner_half){
        0.5 * (fabs(at->cosine) * length_m + fabs(at->sine) * width_m),
        0.5 * (fabs(at->sine) * length_m + fabs(at->cosine) * width_m),
    };
}

double planner_idm_behind(const struct planner_manners *manners, double speed_mps, double gap_m,
                          double lead_mps)
{
    double wanted_m = speed_mps * manners->headway_s +
                      speed_mps * (speed_mps - lead_mps) /
                          (2.0 * sqrt(manners->accel_mps2 * manners->decel_mps2));
    double ratio = (manners->min_gap_m + dmath_max(wanted_m, 0.0)) / dmath_max(gap_m, 0.1);
    return manners->accel_mps2 * (1.0 - ratio * ratio);
}

double planner_idm_free(const struct planner_manners *manners, double speed_mps, double allowed_mps)
{
    double ratio = speed_mps / dmath_max(allowed_mps, 0.1);
    double accel_mps2 = manners->accel_mps2 * (1.0 - ratio * ratio * ratio * ratio);
    return dmath_max(accel_mps2, -manners->decel_mps2);
}

/* ---- signs ---- */

#define HALT_MPS 0.1
#define HALT_WITHIN_M 4.0
#define FORGET_M 30.0
#define DECIDE_S 4.0
#define DECIDE_M 5.0
#define CRITICAL_HEADWAY_S 6.5
#define TURN_HEADWAY_S 4.1
#define ONCOMING_COS 0.5
#define WAY_M 20.0
#define WAY_STEP_M 1.0
#define WAY_SIDE_M 0.3
#define MOVING_MPS 0.3
#define RIGHT_SINE 0.5

/* Whether the object, going straight on, comes to the route behind the line in less than the
 * critical headway; not one that drives ahead of ego on the route, or behind it. At some signs only
 * if it comes from the right of ego's way at the line, or towards it. */
static bool has_priority(const struct planner_route *route, const struct swerve_object *object,
                         double line_m, double width_m, uint32_t sign)
{
    const struct swerve_observation *seen = route->seen;
    bool turns = sign == SWERVE_SIGNAL_GIVE_WAY_ONCOMING;
    double headway_s = turns ? TURN_HEADWAY_S : CRITICAL_HEADWAY_S;
    double speed_mps = sqrt(object->vx_mps * object->vx_mps + object->vy_mps * object->vy_mps);
    struct planner_place now;
    double sine = route->sine;
    double cosine = route->cosine;
    if (speed_mps < MOVING_MPS) {
        return false;
    }
    double dx = object->x_m - seen->x_m;
    double dy = object->y_m - seen->y_m;
    double x_m = cosine * dx + sine * dy;
    double y_m = cosine * dy - sine * dx;
    double ux = (cosine * object->vx_mps + sine * object->vy_mps) / speed_mps;
    double uy = (cosine * object->vy_mps - sine * object->vx_mps) / speed_mps;
    double side_m = 0.5 * (width_m + object->width_m) + WAY_SIDE_M;
    if (turns || sign == SWERVE_SIGNAL_GIVE_WAY_RIGHT) {
        struct planner_point from = planner_route_at(seen, line_m, 0.0);
        struct planner_point to = planner_route_at(seen, line_m + 1.0, 0.0);
        double along_x = to.x_m - from.x_m;
        double along_y = to.y_m - from.y_m;
        double length = sqrt(along_x * along_x + along_y * along_y);
        if (turns ? along_x * ux + along_y * uy > -ONCOMING_COS * length
                  : along_x * uy - along_y * ux < RIGHT_SINE * length) {
            return false;
        }
    }
    bool leads = planner_place_find(route, object->x_m, object->y_m, object->heading_rad, &now) &&
                 fabs(now.offset_m) < side_m && now.cosine > CROSSING_COS;
    bool follows =
        ux > CROSSING_COS && x_m * ux + y_m * uy < 0.0 && fabs(x_m * uy - y_m * ux) < side_m;
    for (double s_m = line_m; !leads && !follows && s_m <= line_m + WAY_M; s_m += WAY_STEP_M) {
        struct planner_point at = planner_route_at(seen, s_m, 0.0);
        double along_m = (at.x_m - x_m) * ux + (at.y_m - y_m) * uy;
        double across_m = fabs((at.y_m - y_m) * ux - (at.x_m - x_m) * uy);
        if (across_m < side_m && along_m > -0.5 * object->length_m &&
            along_m - 0.5 * object->length_m < headway_s * speed_mps) {
            return true;
        }
    }
    return false;
}

bool planner_sign_holds(const struct swerve_observation *seen,
                        const struct swerve_surroundings *around,
                        const struct swerve_signal_state *signal, double length_m, double width_m,
                        struct planner_halts *halts)
{
    double gap_m = signal->stop_ahead_m;
    bool stop = signal->light == SWERVE_SIGNAL_STOP_SIGN;
    if (!stop && signal->light != SWERVE_SIGNAL_YIELD_SIGN &&
        signal->light < SWERVE_SIGNAL_GIVE_WAY) {
        return false;
    }
    if (gap_m < 0.0 || gap_m > FORGET_M) {
        halts->stood_at = halts->stood_at == signal->signal + 1 ? 0 : halts->stood_at;
        return stop && gap_m >= 0.0;
    }
    if (stop && seen->speed_mps < HALT_MPS && gap_m <= HALT_WITHIN_M) {
        halts->stood_at = signal->signal + 1;
    }
    bool waits = stop && halts->stood_at != signal->signal + 1;
    if (waits || gap_m >= dmath_max(DECIDE_S * seen->speed_mps, DECIDE_M)) {
        return waits;
    }
    struct planner_route route;
    planner_route_take(seen, &route);
    for (uint32_t i = 0; !waits && i < around->object_count; i++) {
        waits = has_priority(&route, &around->objects[i], gap_m + 0.5 * length_m, width_m,
                             signal->light);
    }
    return waits;
}

double planner_idm_signals(const struct planner_manners *manners,
                           const struct swerve_observation *seen,
                           const struct swerve_surroundings *around, double length_m,
                           double width_m, struct planner_halts *halts)
{
    double accel_mps2 = manners->accel_mps2;
    for (uint32_t i = 0; i < around->signal_count; i++) {
        const struct swerve_signal_state *signal = &around->signals[i];
        double gap_m = signal->stop_ahead_m;
        bool stops = signal->light == SWERVE_SIGNAL_RED ||
                     signal->light == SWERVE_SIGNAL_RED_YELLOW ||
                     signal->light == SWERVE_SIGNAL_YELLOW ||
                     planner_sign_holds(seen, around, signal, length_m, width_m, halts);
        double needed_mps2 = seen->speed_mps * seen->speed_mps / (2.0 * dmath_max(gap_m, 0.1));
        if (stops && gap_m > 0.0 &&
            (signal->light != SWERVE_SIGNAL_YELLOW || needed_mps2 < YELLOW_DECEL_MPS2)) {
            accel_mps2 = dmath_min(accel_mps2,
                                   planner_idm_behind(manners, seen->speed_mps, gap_m + 1.0, 0.0));
        }
    }
    return accel_mps2;
}

/* Squared speed at which a turn between two pieces of the route is taken. */
static double bend_squared(double turn_rad)
{
    return BEND_LAT_MPS2 * SWERVE_ROUTE_STEP_M / dmath_max(turn_rad, 1e-4);
}

double planner_allowed_mps(const struct planner_manners *manners,
                           const struct swerve_observation *seen, double unposted_mps)
{
    double limit = (double)seen->route[0].speed_limit_mps;
    double allowed = manners->speed_factor * (limit > 0.0 ? limit : unposted_mps);
    for (uint32_t i = 1; i + 1 < seen->route_count; i++) {
        const struct swerve_route_point *at = &seen->route[i];
        double ax = (double)at->x_m - (double)at[-1].x_m;
        double ay = (double)at->y_m - (double)at[-1].y_m;
        double bx = (double)at[1].x_m - (double)at->x_m;
        double by = (double)at[1].y_m - (double)at->y_m;
        double cross = ax * by - ay * bx;
        double dot = ax * bx + ay * by;
        double ahead_m = (i - 1) * SWERVE_ROUTE_STEP_M;
        double brakes = 2.0 * manners->decel_mps2 * ahead_m;
        /* An angle is at most its tangent, and few bends matter: most need no angle. */
        if (dot > 0.0 &&
            bend_squared(fabs(cross) / dot) + brakes > ALLOWED_SLACK * allowed * allowed) {
            continue;
        }
        allowed = dmath_min(allowed, sqrt(bend_squared(fabs(dmath_atan2(cross, dot))) + brakes));
    }
    return allowed;
}
