/*
 * Guardian: a rule-based monitor in the manner of RSS (Shalev-Shwartz, Shammah, Shashua, "On a
 * Formal Model of Safe and Scalable Self-driving Cars", arXiv:1708.06374, 2017). It says when it
 * would have overridden the planner: longitudinal distance to something in ego's path below the
 * safe distance without ego braking for it, or ego about to leave the drivable area. It never acts.
 * Parameters and what differs from the paper: worker/METRICS.md.
 */
#include "base/dmath.h"
#include "base/units.h"
#include "worker/score/score_internal.h"

#include <math.h>

#define RESPONSE_S 0.3
#define ACCEL_RESPONSE_MPS2 2.0 /* worst case while responding */
#define BRAKE_EGO_MPS2 6.0      /* ego brakes at least this */
#define BRAKE_LEAD_MPS2 8.0     /* a vehicle ahead brakes at most this */
#define BRAKE_LATERAL_MPS2 4.0  /* a crossing agent stops short of the path with at least this */
#define LATERAL_MARGIN_M 0.1
#define BRAKING_SHARE 0.9 /* ego brakes as it should from this share of its braking on */
#define NEAR_S 0.8        /* nearer in time than this, the route no longer excuses */
#define MOVING_MPS 0.5
#define OFF_ROAD_M 0.3
#define LOOKAHEAD_S 1.0

/* An agent relative to a path: arc length to its centre, signed lateral offset, relative heading.
 */
struct path_position {
    double s_m;
    double offset_m;
    double cos_heading;
    double sin_heading;
};

void guardian_brakes(double friction, double *ego_mps2, double *lead_mps2)
{
    double tyres_mps2 = friction * GRAVITY_MPS2;
    *ego_mps2 = dmath_min(BRAKE_EGO_MPS2, tyres_mps2);
    *lead_mps2 = dmath_min(BRAKE_LEAD_MPS2, tyres_mps2);
}

/* Distance covered from a speed by one who reacts late and then brakes. */
static double stopping_m(double speed_mps, double brake_mps2)
{
    double after_mps = speed_mps + RESPONSE_S * ACCEL_RESPONSE_MPS2;
    return speed_mps * RESPONSE_S + 0.5 * ACCEL_RESPONSE_MPS2 * RESPONSE_S * RESPONSE_S +
           after_mps * after_mps / (2 * brake_mps2);
}

/* RSS safe longitudinal distance, same direction and oncoming; along_mps is the agent's speed along
 * ego's path. */
static double safe_distance_m(const struct ego_view *ego, double along_mps)
{
    double ego_m = stopping_m(ego->speed_mps, ego->brake_mps2);
    if (along_mps < 0) {
        return ego_m + stopping_m(-along_mps, ego->brake_mps2);
    }
    double lead_m = along_mps * along_mps / (2 * ego->lead_brake_mps2);
    return dmath_max(0.0, ego_m - lead_m);
}

/* Position relative to the circle that ego is on. With curvature k and the agent at (x, y) in
 * ego's frame, the signed distance to the circle written so that it holds for k -> 0. */
static struct path_position on_arc(const struct ego_view *ego, const struct box *agent,
                                   struct vec2 offset)
{
    const struct box *box = &ego->box;
    double k = ego->yaw_rate_rps / dmath_max(ego->speed_mps, MOVING_MPS);
    double x = offset.x_m * box->cos_heading + offset.y_m * box->sin_heading;
    double y = -offset.x_m * box->sin_heading + offset.y_m * box->cos_heading;
    double ux = 1.0 - k * y; /* unit-circle coordinates of the agent, from the circle's centre */
    double uy = k * x;
    double norm = sqrt(ux * ux + uy * uy);
    double angle = dmath_atan2(uy, ux);
    /* The agent's heading relative to ego's, then relative to the path at the agent. */
    double c = agent->cos_heading * box->cos_heading + agent->sin_heading * box->sin_heading;
    double s = agent->sin_heading * box->cos_heading - agent->cos_heading * box->sin_heading;
    double path_c = norm > 0 ? ux / norm : 1.0;
    double path_s = norm > 0 ? uy / norm : 0.0;
    return (struct path_position){
        .s_m = fabs(k) > 1e-6 ? angle / k : x,
        .offset_m = (2 * y - k * (x * x + y * y)) / (1.0 + norm),
        .cos_heading = c * path_c + s * path_s,
        .sin_heading = s * path_c - c * path_s,
    };
}

/* Position relative to a path parallel to the route through ego. */
static struct path_position on_route(const struct score *score, const struct box *agent)
{
    const struct ego_view *ego = &score->ego;
    struct polyline_projection found = route_project(score->route, agent->center, ego->route_s_m);
    double c;
    double s;
    dmath_sincos(found.heading_rad, &s, &c);
    return (struct path_position){
        .s_m = found.s_m - ego->route_s_m,
        .offset_m = found.offset_m - ego->route_offset_m,
        .cos_heading = agent->cos_heading * c + agent->sin_heading * s,
        .sin_heading = agent->sin_heading * c - agent->cos_heading * s,
    };
}

/* Whether the agent is in ego's way at this place, or comes into it faster than it can stop. */
static bool in_corridor(const struct ego_view *ego, const struct box *agent, double speed_mps,
                        const struct path_position *at)
{
    double half_m = ego->box.half_width_m + agent->half_length_m * fabs(at->sin_heading) +
                    agent->half_width_m * fabs(at->cos_heading) + LATERAL_MARGIN_M;
    double lateral_mps = speed_mps * at->sin_heading;
    double closing_mps = at->offset_m > 0 ? -lateral_mps : lateral_mps;
    if (closing_mps > 0) {
        half_m += closing_mps * RESPONSE_S + closing_mps * closing_mps / (2 * BRAKE_LATERAL_MPS2);
    }
    return fabs(at->offset_m) < half_m;
}

bool guardian_agent_unsafe(const struct score *score, struct agent_view *agent)
{
    const struct ego_view *ego = &score->ego;
    if (ego->speed_mps < MOVING_MPS && !score->guardian_acts) {
        return false;
    }
    double ahead_m =
        agent->offset.x_m * ego->box.cos_heading + agent->offset.y_m * ego->box.sin_heading;
    double speed_mps = agent->state->speed_mps;
    double bound_m = agent->reach_m + safe_distance_m(ego, -fabs(speed_mps));
    if (ahead_m <= 0 || agent->distance2_m2 > bound_m * bound_m) {
        return false;
    }
    const struct box *box = agent_view_box(agent);
    struct path_position arc = on_arc(ego, box, agent->offset);
    if (arc.s_m <= 0 || !in_corridor(ego, box, speed_mps, &arc)) {
        return false;
    }
    double along_mps = speed_mps * arc.cos_heading;
    double gap_m = arc.s_m - ego->box.half_length_m - box->half_length_m * fabs(arc.cos_heading) -
                   box->half_width_m * fabs(arc.sin_heading);
    if (gap_m >= safe_distance_m(ego, along_mps)) {
        return false;
    }
    double closing_mps = ego->speed_mps - along_mps;
    if (gap_m < closing_mps * NEAR_S) {
        return true;
    }
    /* Farther away the road may turn: the agent must also be in the way along the route. */
    struct path_position route = on_route(score, box);
    return in_corridor(ego, box, speed_mps, &route);
}

/* Ego after t_s at constant turn rate, braking as now but not backwards. */
static struct pose predict(const struct ego_view *ego, double t_s)
{
    double moving_s = t_s;
    double brake_mps2 = dmath_max(0.0, -ego->accel_mps2);
    if (brake_mps2 * t_s > ego->speed_mps) {
        moving_s = ego->speed_mps / brake_mps2;
    }
    double arc_m = ego->speed_mps * moving_s - 0.5 * brake_mps2 * moving_s * moving_s;
    double k = ego->yaw_rate_rps / ego->speed_mps;
    double turn_rad = k * arc_m;
    double s;
    double c;
    dmath_sincos(turn_rad, &s, &c);
    /* Chord of the arc in ego's frame; the series keeps it exact for a vanishing turn. */
    bool turns = fabs(turn_rad) > 1e-4;
    double x = turns ? s / k : arc_m * (1.0 - turn_rad * turn_rad / 6);
    double y = turns ? (1.0 - c) / k : arc_m * turn_rad / 2;
    const struct box *box = &ego->box;
    return (struct pose){
        .x_m = box->center.x_m + x * box->cos_heading - y * box->sin_heading,
        .y_m = box->center.y_m + x * box->sin_heading + y * box->cos_heading,
        .heading_rad = turn_rad, /* relative to now */
    };
}

bool guardian_leaves_road(const struct score *score)
{
    const struct ego_view *ego = &score->ego;
    if (ego->off_drivable_m >= OFF_ROAD_M) {
        return true;
    }
    if (ego->speed_mps < MOVING_MPS) {
        return false;
    }
    for (int half = 1; half <= 2; half++) {
        struct pose then = predict(ego, LOOKAHEAD_S * half / 2);
        double s;
        double c;
        dmath_sincos(then.heading_rad, &s, &c);
        struct box box = ego->box;
        box.center = (struct vec2){then.x_m, then.y_m};
        box.cos_heading = ego->box.cos_heading * c - ego->box.sin_heading * s;
        box.sin_heading = ego->box.sin_heading * c + ego->box.cos_heading * s;
        struct vec2 corners[4];
        box_corners(&box, corners);
        /* The front corners lead. */
        if (roadmap_leaves_drivable(score->roadmap, corners[0], OFF_ROAD_M) ||
            roadmap_leaves_drivable(score->roadmap, corners[3], OFF_ROAD_M)) {
            return true;
        }
    }
    return false;
}

void guardian_update(struct score *score, bool agent_unsafe, bool leaves_road)
{
    const struct ego_view *ego = &score->ego;
    /* Braking as RSS asks is the proper response: no override begins, but one goes on until the
     * distance is safe again. */
    bool braking = ego->accel_mps2 <= -BRAKING_SHARE * ego->brake_mps2;
    bool active = leaves_road || (agent_unsafe && (!braking || score->guardian_active));
    if (active && !score->guardian_active) {
        score->intervention_count++;
    }
    score->guardian_active = active;
}
