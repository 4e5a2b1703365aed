/*
 * Car following and lane changes.
 *
 * IDM: Treiber, Hennecke, Helbing, "Congested traffic states in empirical observations and
 * microscopic simulations", Phys. Rev. E 62 (2000):
 *   dv/dt = a [1 - (v/v0)^4 - (s*(v, dv)/s)^2],  s* = s0 + max(0, v T + v dv / (2 sqrt(a b))).
 * Above v0 the free term is held at -b (as in Treiber and Kesting, "Traffic Flow Dynamics", 11.3.7,
 * in effect), so that a lowered limit does not mean emergency braking.
 *
 * MOBIL: Kesting, Treiber, Helbing, "General lane-changing model MOBIL for car-following models",
 * Transp. Res. Rec. 1999 (2007): change if the new follower need not brake harder than b_safe and
 *   a'_self - a_self + p (a'_new - a_new + a'_old - a_old) > threshold.
 * A driver thinks about it only while hindered by a leader, and only every MOBIL_PERIOD ticks.
 *
 * A leader is whatever body stands in the corridor that the agent's own body will sweep along its
 * track: traffic ahead, ego, somebody crossing, debris. A body that is about to enter the corridor
 * counts before it does: a merging vehicle ahead as a leader with gentle braking, a crossing one as
 * an obstacle if it gets there first (or is a person).
 */
#include "base/dmath.h"
#include "engine/traffic/traffic.h"

#include <math.h>
#include <stddef.h>

#define LOOK_MAX_M 150.0
#define LOOK_MIN_M 20.0
#define SCREEN_SLACK_M 0.05 /* more than single precision can be wrong by */
#define SCREEN_REACH_SLACK_M 1.0
#define STRAIGHT_MAX_RAD 0.5f
#define SIDE_MARGIN_M 0.2
#define FORESIGHT_S 2.0 /* bodies that will enter the corridor within this time */
#define GAP_MIN_M 0.1
#define ACCEL_MIN_MPS2 (-9.0)
#define FOLLOW_TIME_CONSTANT_S 0.5
#define LOG_CREEP_MPS 0.5
#define BEND_DECEL_MAX_MPS2 4.0
#define BEND_GRIP_SHARE 0.9 /* of a surface, in a bend that a log leads into */
#define CROSSING_SIN 0.5    /* beyond 30 degrees a body crosses, below it merges */
#define STOPPABLE_MPS2 8.0

#define YELLOW_DECEL_MPS2 3.0 /* who must brake harder than this drives on at yellow */

#define MOBIL_PERIOD 10
#define MOBIL_THRESHOLD_MPS2 0.2
#define MOBIL_SAFE_MPS2 4.0
#define MOBIL_DURATION_S 3.0
#define MOBIL_PAUSE_TICKS 60
#define MOBIL_LOOK_M 100.0
#define NEIGHBOUR_OFFSET_MAX_M 8.0

/* Stretch that a body sweeps along a track. */
struct corridor {
    const struct track *track;
    double s_m; /* of the body's centre */
    double direction;
    double low_m; /* offsets */
    double high_m;
    double half_length_m;
};

/* a (s-star / gap)^2. */
static double interaction(const struct driver *driver, double headway_s, double v, double gap_m,
                          double leader_mps)
{
    double dynamic = v * headway_s + v * (v - leader_mps) * driver->half_inverse_sqrt_ab;
    double wanted_m = driver->min_gap_m + dmath_max(dynamic, 0.0);
    double ratio = wanted_m / dmath_max(gap_m, GAP_MIN_M);
    return driver->accel_max_mps2 * ratio * ratio;
}

static double free_accel(const struct driver *driver, double v, double desired_mps)
{
    if (desired_mps < 0.01) {
        return v > 0.0 ? -driver->decel_comfort_mps2 : 0.0;
    }
    double ratio = v / desired_mps;
    double ratio2 = ratio * ratio;
    return dmath_max(driver->accel_max_mps2 * (1.0 - ratio2 * ratio2), -driver->decel_comfort_mps2);
}

/* The speed the log had here; where it stopped, stop until it left. */
static double log_speed_accel(const struct agent_plan *agent, const struct track *track, double v,
                              double s_m, double time_s)
{
    uint32_t here = track_sample_index(track, s_m);
    uint32_t ahead = track_sample_index(track, s_m + v * FOLLOW_TIME_CONSTANT_S);
    const struct log_cell *cell = &agent->log_cells[here];
    ahead = ahead + 1 < agent->log_cell_count ? ahead + 1 : ahead;
    double wanted_mps = dmath_max(agent->log_cells[ahead].speed_mps, LOG_CREEP_MPS);
    if (cell->slowest_mps < LOG_STANDING_MPS && time_s < cell->depart_s) {
        wanted_mps = cell->slowest_mps;
    }
    return dmath_clamp((wanted_mps - v) / FOLLOW_TIME_CONSTANT_S, -6.0, 3.0);
}

/* Hindrance by a crossing body: 0 if there is none. gap_m to it along the track, lateral_m to the
 * corridor's near edge, cross_m what it must clear beyond that. */
static double crossing_interaction(const struct driver *driver, double headway_s, double v,
                                   double gap_m, double lateral_m, double cross_m,
                                   double lateral_mps, bool person)
{
    double enter_s = lateral_m / lateral_mps;
    double exit_s = (lateral_m + cross_m) / lateral_mps;
    double reach_s = dmath_max(gap_m, 0.0) / dmath_max(v, 0.5);
    bool meets = reach_s < exit_s + 0.5;
    bool first = person || enter_s < reach_s;
    bool stoppable = v * v < 2.0 * STOPPABLE_MPS2 * gap_m;
    if (!meets || !first || !stoppable) {
        return 0.0;
    }
    return interaction(driver, headway_s, v, gap_m, 0.0);
}

/* Bodies that may matter to a corridor, by a test that is cheap and safe: not too far ahead,
 * behind, or beside more than the track can turn there. */
struct candidates {
    uint32_t count;
    uint16_t actor[ACTORS_MAX];
    float along_m[ACTORS_MAX]; /* ahead along the tangent at the body's place */
};

/* Places of the screen outside of which the screen lets nobody pass: those of a rectangle along the
 * outlook, as wide as the fastest and the largest body need. */
static void find_reach(const struct actors *actors, const struct screen_outlook *o, uint32_t *first,
                       uint32_t *end)
{
    double fx = (double)o->fx;
    double fy = (double)o->fy;
    double radius = actors->radius_max_m + SCREEN_REACH_SLACK_M;
    double ahead = (double)o->look_m + radius;
    double drift = FORESIGHT_S * actors->speed_max_mps * (1.0 + (double)o->bend);
    double beside = (double)o->side_m + radius + drift + (double)o->slope * (ahead + radius);
    double wide_x = beside * fabs(fy);
    double wide_y = beside * fabs(fx);
    struct vec2 low = {(double)o->x_m + dmath_min(-radius * fx, ahead * fx) - wide_x,
                       (double)o->y_m + dmath_min(-radius * fy, ahead * fy) - wide_y};
    struct vec2 high = {(double)o->x_m + dmath_max(-radius * fx, ahead * fx) + wide_x,
                        (double)o->y_m + dmath_max(-radius * fy, ahead * fy) + wide_y};
    traffic_screen_range(actors, low, high, first, end);
}

/* Puts candidates back into index order, in which ties are decided. */
static void order_candidates(struct candidates *candidates)
{
    for (uint32_t i = 1; i < candidates->count; i++) {
        uint16_t actor = candidates->actor[i];
        float along_m = candidates->along_m[i];
        uint32_t k = i;
        for (; k > 0 && candidates->actor[k - 1] > actor; k--) {
            candidates->actor[k] = candidates->actor[k - 1];
            candidates->along_m[k] = candidates->along_m[k - 1];
        }
        candidates->actor[k] = actor;
        candidates->along_m[k] = along_m;
    }
}

/* Returns whether the track is straight enough that `along_m` orders bodies as the track does. */
static bool find_candidates(const struct traffic_plan *plan, const struct actors *actors,
                            uint32_t self, const struct corridor *corridor, double v,
                            struct candidates *out)
{
    bool sees_ego = plan->agents[actors->agent[self]].driver.sees_ego;
    double look_m = dmath_clamp(10.0 + 5.0 * v + 0.25 * v * v, LOOK_MIN_M, LOOK_MAX_M);
    struct track_sample here;
    track_frame_at(corridor->track, corridor->s_m, &here);
    double window_m = corridor->direction < 0 ? corridor->s_m - TRACK_BEND_M : corridor->s_m;
    float bend = corridor->track->bend_rad[track_sample_index(corridor->track, window_m)];
    double side_m = dmath_max(fabs(corridor->low_m), fabs(corridor->high_m)) + SCREEN_SLACK_M;
    bool straight = bend < STRAIGHT_MAX_RAD;
    const struct screen_outlook outlook = {
        .x_m = (float)(here.x_m - actors->origin_x_m),
        .y_m = (float)(here.y_m - actors->origin_y_m),
        .fx = (float)(corridor->direction * here.ux),
        .fy = (float)(corridor->direction * here.uy),
        .look_m = (float)look_m,
        .side_m = (float)(straight ? side_m : side_m + look_m),
        .bend = bend,
        .slope = straight ? 1.15f * bend : 0.0f,
        .foresight_s = (float)FORESIGHT_S,
        .without = {(uint16_t)self, (uint16_t)(sees_ego ? self : actors->ego)},
    };
    const struct screen_bodies bodies = {
        .x_m = actors->screen_x_m,
        .y_m = actors->screen_y_m,
        .vx_mps = actors->screen_vx_mps,
        .vy_mps = actors->screen_vy_mps,
        .radius_m = actors->screen_radius_m,
        .long_x_m = actors->screen_long_x_m,
        .long_y_m = actors->screen_long_y_m,
        .half_width_m = actors->screen_half_width_m,
        .actor = actors->screen_actor,
    };
    uint32_t first = 0;
    uint32_t end = actors->padded_count;
    if (actors->sliced) {
        find_reach(actors, &outlook, &first, &end);
    }
    out->count = plan->screen.find(&bodies, &outlook, first, end, out->actor, out->along_m);
    if (actors->sliced) {
        order_candidates(out);
    }
    return straight;
}

/* Hindrance by one body; *leads tells whether it is in the corridor, so that what lies beyond it
 * does not count. */
static double hindrance_by(const struct driver *driver, double headway_s,
                           const struct actors *actors, uint32_t self, uint32_t j, double along_m,
                           const struct corridor *corridor, double v, bool *leads)
{
    struct track_position at =
        track_project_near(corridor->track, (struct vec2){actors->x_m[j], actors->y_m[j]},
                           corridor->s_m + corridor->direction * along_m);
    double ahead_m = corridor->direction * (at.s_m - corridor->s_m);
    *leads = false;
    if (ahead_m < 0.0 || (ahead_m == 0.0 && j > self)) {
        return 0.0;
    }
    double c = corridor->direction * (at.ux * actors->ux[j] + at.uy * actors->uy[j]);
    double s = at.ux * actors->uy[j] - at.uy * actors->ux[j]; /* track frame */
    double half_long = actors->half_length_m[j] * fabs(c) + actors->half_width_m[j] * fabs(s);
    double half_side = actors->half_length_m[j] * fabs(s) + actors->half_width_m[j] * fabs(c);
    double lon_mps = corridor->direction * (at.ux * actors->vx_mps[j] + at.uy * actors->vy_mps[j]);
    double lat_mps = at.ux * actors->vy_mps[j] - at.uy * actors->vx_mps[j];
    double gap_m = ahead_m - half_long - corridor->half_length_m;
    double beyond_high = at.offset_m - half_side - corridor->high_m;
    double beyond_low = corridor->low_m - at.offset_m - half_side;
    if (beyond_high < 0.0 && beyond_low < 0.0) {
        *leads = true;
        return interaction(driver, headway_s, v, gap_m, lon_mps);
    }
    double lateral_m = beyond_high >= 0.0 ? beyond_high : beyond_low;
    double closing_mps = beyond_high >= 0.0 ? -lat_mps : lat_mps;
    if (closing_mps < 0.1 || lateral_m > FORESIGHT_S * closing_mps) {
        return 0.0;
    }
    if (fabs(s) > CROSSING_SIN) {
        double clear_m = corridor->high_m - corridor->low_m + 2.0 * half_side;
        return crossing_interaction(driver, headway_s, v, gap_m, lateral_m, clear_m, closing_mps,
                                    actors->yielded_to[j] != 0);
    }
    if (c > 0.0) {
        double gentle = driver->accel_max_mps2 + 2.0 * driver->decel_comfort_mps2;
        return dmath_min(interaction(driver, headway_s, v, gap_m, lon_mps), gentle);
    }
    return 0.0;
}

/* Strongest hindrance by any body up to and including the leader. */
static double hindrance(const struct traffic_plan *plan, double headway_s,
                        const struct actors *actors, uint32_t self, const struct corridor *corridor,
                        double v)
{
    const struct driver *driver = &plan->agents[actors->agent[self]].driver;
    struct candidates candidates;
    bool ordered = find_candidates(plan, actors, self, corridor, v, &candidates);
    double worst = 0.0;
    while (candidates.count > 0) {
        uint32_t next = 0;
        for (uint32_t k = 1; k < candidates.count; k++) {
            next = candidates.along_m[k] < candidates.along_m[next] ? k : next;
        }
        bool leads;
        worst =
            dmath_max(worst, hindrance_by(driver, headway_s, actors, self, candidates.actor[next],
                                          candidates.along_m[next], corridor, v, &leads));
        if (leads && ordered) {
            break;
        }
        candidates.count--;
        candidates.actor[next] = candidates.actor[candidates.count];
        candidates.along_m[next] = candidates.along_m[candidates.count];
    }
    return worst;
}

static struct corridor corridor_of(const struct traffic_plan *plan, uint32_t agent,
                                   const struct agent_motion *motion)
{
    double target_m = motion->shift_duration_s > 0.0 ? motion->shift_to_m : motion->offset_m;
    double half_width = plan->agents[agent].half_width_m + SIDE_MARGIN_M;
    return (struct corridor){
        .track = plan->tracks[motion->track],
        .s_m = motion->s_m,
        .direction = motion->direction,
        .low_m = dmath_min(target_m, motion->offset_m) - half_width,
        .high_m = dmath_max(target_m, motion->offset_m) + half_width,
        .half_length_m = plan->agents[agent].half_length_m,
    };
}

/* Hindrance by signals: the stop line is a leader that stands. At red everybody brakes who still
 * can stop, and so at signs that have it wait; at yellow who can do it without braking hard (ITE's
 * yellow times count on 3 m/s2). */
static double hindrance_by_signals(const struct traffic_plan *plan, const struct actors *actors,
                                   uint32_t self, const struct scene *scene, double headway_s,
                                   const struct corridor *corridor,
                                   const struct agent_motion *motion, double v)
{
    const struct driver *driver = &plan->agents[actors->agent[self]].driver;
    double worst = 0.0;
    int32_t track = motion->track;
    if (plan->stops.first == NULL || corridor->direction < 0.0) {
        return 0.0;
    }
    for (uint32_t i = plan->stops.first[track]; i < plan->stops.first[track + 1]; i++) {
        const struct track_stop *stop = &plan->stops.stops[i];
        enum traffic_light light = (enum traffic_light)scene->signal_light[stop->signal];
        double gap_m = stop->s_m - corridor->s_m - corridor->half_length_m;
        double decel_mps2 = light == TRAFFIC_LIGHT_YELLOW ? YELLOW_DECEL_MPS2 : STOPPABLE_MPS2;
        bool asks = signal_stops(light) || light == TRAFFIC_LIGHT_YELLOW;
        if (gap_m <= 0.0 || gap_m >= LOOK_MAX_M || v * v > 2.0 * decel_mps2 * gap_m) {
            continue;
        }
        if (asks ||
            (plan->has_signs && traffic_signs_hold(plan, actors, self, stop, motion, v, gap_m))) {
            worst = dmath_max(worst, interaction(driver, headway_s, v, gap_m, 0.0));
        }
    }
    return worst;
}

/* Acceleration at which the bends ahead are taken with a lateral acceleration: that for which the
 * track's cap was made, or another. */
static double bend_accel(const struct agent_motion *motion, const struct track *track, double v,
                         double lat_accel_mps2)
{
    if (motion->direction < 0) {
        return INFINITY;
    }
    double ahead_m = motion->s_m + v * FOLLOW_TIME_CONSTANT_S;
    double cap_mps = track->speed_cap_mps[track_sample_index(track, ahead_m)];
    if (lat_accel_mps2 != BEND_LAT_ACCEL_MPS2) {
        cap_mps *= sqrt(lat_accel_mps2 / BEND_LAT_ACCEL_MPS2);
    }
    return dmath_max((cap_mps - v) / FOLLOW_TIME_CONSTANT_S, -BEND_DECEL_MAX_MPS2);
}

/* Acceleration of the driver with nobody ahead: the desired speed, and less in a bend, which takes
 * less on ice. */
static double open_accel(const struct driver *driver, const struct agent_motion *motion,
                         const struct track *track, double v, double grip_mps2)
{
    double accel = free_accel(driver, v, motion->target_speed_mps * motion->speed_factor);
    double lat_accel_mps2 = dmath_min(grip_mps2, BEND_LAT_ACCEL_MPS2);
    return dmath_min(accel, bend_accel(motion, track, v, lat_accel_mps2));
}

/* The same of a driver on its log: the recorded speed, but no bend faster than the surface bears;
 * behind the end of the log the track goes on into bends that were not driven. */
static double log_accel(const struct agent_plan *agent, const struct agent_motion *motion,
                        const struct track *track, double v, double time_s, double grip_mps2)
{
    return dmath_min(log_speed_accel(agent, track, v, motion->s_m, time_s),
                     bend_accel(motion, track, v, BEND_GRIP_SHARE * grip_mps2));
}

double traffic_idm_accel(const struct traffic_plan *plan, const struct actors *actors,
                         uint32_t self, const struct scene *scene, double grip_mps2,
                         const struct agent_motion *motion)
{
    uint32_t agent = actors->agent[self];
    const struct agent_plan *prepared = &plan->agents[agent];
    const struct driver *driver = &prepared->driver;
    struct corridor corridor = corridor_of(plan, agent, motion);
    double v = scene->agents[agent].speed_mps;
    double open = motion->on_log ? log_accel(prepared, motion, corridor.track, v,
                                             traffic_time_s(scene), grip_mps2)
                                 : open_accel(driver, motion, corridor.track, v, grip_mps2);
    double headway_s = driver->time_headway_s * motion->headway_factor;
    double hindered =
        dmath_max(hindrance(plan, headway_s, actors, self, &corridor, v),
                  hindrance_by_signals(plan, actors, self, scene, headway_s, &corridor, motion, v));
    double accel = open - hindered;
    return dmath_clamp(accel, dmath_max(ACCEL_MIN_MPS2, -grip_mps2), grip_mps2);
}

/* ---- MOBIL ---- */

struct neighbour {
    int32_t actor; /* -1: nobody */
    double gap_m;
    double speed_mps; /* along the track */
};

/* Nearest bodies ahead of and behind s on a track, within the corridor's offsets. */
static void find_neighbours(const struct actors *actors, uint32_t self,
                            const struct corridor *corridor, struct neighbour *leader,
                            struct neighbour *follower)
{
    const struct track *track = corridor->track;
    struct track_sample here;
    track_frame_at(track, corridor->s_m, &here);
    double bend = track->bend_rad[track_sample_index(track, corridor->s_m - MOBIL_LOOK_M)] +
                  track->bend_rad[track_sample_index(track, corridor->s_m)];
    double slope = bend < STRAIGHT_MAX_RAD ? 1.15 * bend : 1.0; /* beyond it, look at everybody */
    double side_m = dmath_max(fabs(corridor->low_m), fabs(corridor->high_m)) +
                    (bend < STRAIGHT_MAX_RAD ? 0.0 : MOBIL_LOOK_M);
    leader->actor = -1;
    follower->actor = -1;
    double x_m = here.x_m - actors->origin_x_m;
    double y_m = here.y_m - actors->origin_y_m;
    const double reach_m = MOBIL_LOOK_M + SCREEN_REACH_SLACK_M;
    uint32_t first;
    uint32_t end;
    traffic_screen_range(actors, (struct vec2){x_m - reach_m, y_m - reach_m},
                         (struct vec2){x_m + reach_m, y_m + reach_m}, &first, &end);
    for (uint32_t i = first; i < end && i < actors->count; i++) {
        uint32_t j = actors->screen_actor[i];
        double dx = actors->x_m[j] - here.x_m;
        double dy = actors->y_m[j] - here.y_m;
        double across = fabs(here.ux * dy - here.uy * dx);
        double distance2 = dx * dx + dy * dy;
        if (j == self || distance2 > MOBIL_LOOK_M * MOBIL_LOOK_M ||
            across > side_m + actors->radius_m[j] + slope * sqrt(distance2)) {
            continue;
        }
        struct track_position at =
            track_project_near(corridor->track, (struct vec2){actors->x_m[j], actors->y_m[j]},
                               corridor->s_m + dx * here.ux + dy * here.uy);
        double c = fabs(at.ux * actors->ux[j] + at.uy * actors->uy[j]);
        double s = fabs(at.ux * actors->uy[j] - at.uy * actors->ux[j]);
        double half_long = actors->half_length_m[j] * c + actors->half_width_m[j] * s;
        double half_side = actors->half_length_m[j] * s + actors->half_width_m[j] * c;
        if (at.offset_m - half_side > corridor->high_m ||
            at.offset_m + half_side < corridor->low_m) {
            continue;
        }
        bool ahead = at.s_m >= corridor->s_m;
        struct neighbour *slot = ahead ? leader : follower;
        double gap_m = fabs(at.s_m - corridor->s_m) - half_long - corridor->half_length_m;
        if (slot->actor < 0 || gap_m < slot->gap_m ||
            (gap_m == slot->gap_m && (int32_t)j < slot->actor)) {
            *slot = (struct neighbour){(int32_t)j, gap_m,
                                       at.ux * actors->vx_mps[j] + at.uy * actors->vy_mps[j]};
        }
    }
}

/* Acceleration that an actor would choose; people in ego and scripted cars are taken to be like the
 * asker. */
static const struct driver *driver_of(const struct traffic_plan *plan, const struct actors *actors,
                                      int32_t actor, const struct driver *like)
{
    uint32_t agent = actors->agent[actor];
    return agent < plan->agent_count && plan->agents[agent].reactive ? &plan->agents[agent].driver
                                                                     : like;
}

/* Change of a follower's acceleration when its leader becomes (gap, speed) instead of what it is
 * now; only the interaction terms differ. */
static double follower_gain(const struct driver *driver, double v, double gap_before_m,
                            double speed_before_mps, double gap_after_m, double speed_after_mps)
{
    double headway_s = driver->time_headway_s;
    double before = isfinite(gap_before_m)
                        ? interaction(driver, headway_s, v, gap_before_m, speed_before_mps)
                        : 0.0;
    double after = isfinite(gap_after_m)
                       ? interaction(driver, headway_s, v, gap_after_m, speed_after_mps)
                       : 0.0;
    return before - after;
}

struct mobil {
    const struct traffic_plan *plan;
    const struct scene *scene;
    const struct actors *actors;
    uint32_t self;
    uint32_t agent;
    double v;
    double grip_mps2;
    double accel_mps2;    /* now */
    double old_gain_mps2; /* what leaving gives the old follower */
};

/* The incentive to be on `to` instead, -INFINITY where it is not safe. */
static double mobil_incentive(const struct mobil *m, const struct agent_motion *to)
{
    const struct driver *driver = &m->plan->agents[m->agent].driver;
    struct corridor corridor = corridor_of(m->plan, m->agent, to);
    double half_width = m->plan->agents[m->agent].half_width_m + SIDE_MARGIN_M;
    corridor.low_m = -half_width; /* the place in the other lane, not the way there */
    corridor.high_m = half_width;
    struct neighbour leader;
    struct neighbour follower;
    find_neighbours(m->actors, m->self, &corridor, &leader, &follower);
    if ((leader.actor >= 0 && leader.gap_m < driver->min_gap_m) ||
        (follower.actor >= 0 && follower.gap_m < driver->min_gap_m)) {
        return -INFINITY;
    }
    double new_gain = 0.0;
    if (follower.actor >= 0) {
        const struct driver *behind = driver_of(m->plan, m->actors, follower.actor, driver);
        double needed =
            interaction(behind, behind->time_headway_s, follower.speed_mps, follower.gap_m, m->v);
        if (needed - behind->accel_max_mps2 > MOBIL_SAFE_MPS2) {
            return -INFINITY;
        }
        double gap_before_m = leader.actor >= 0
                                  ? follower.gap_m + leader.gap_m + 2.0 * corridor.half_length_m
                                  : INFINITY;
        new_gain = follower_gain(behind, follower.speed_mps, gap_before_m, leader.speed_mps,
                                 follower.gap_m, m->v);
    }
    double open = open_accel(driver, to, corridor.track, m->v, m->grip_mps2);
    double headway_s = driver->time_headway_s * to->headway_factor;
    double hindered = dmath_max(hindrance(m->plan, headway_s, m->actors, m->self, &corridor, m->v),
                                hindrance_by_signals(m->plan, m->actors, m->self, m->scene,
                                                     headway_s, &corridor, to, m->v));
    double accel = open - hindered;
    return accel - m->accel_mps2 + driver->politeness * (new_gain + m->old_gain_mps2);
}

static double old_follower_gain(const struct mobil *m, const struct agent_motion *motion)
{
    struct corridor corridor = corridor_of(m->plan, m->agent, motion);
    struct neighbour leader;
    struct neighbour follower;
    find_neighbours(m->actors, m->self, &corridor, &leader, &follower);
    if (follower.actor < 0) {
        return 0.0;
    }
    const struct driver *behind =
        driver_of(m->plan, m->actors, follower.actor, &m->plan->agents[m->agent].driver);
    double gap_after_m =
        leader.actor >= 0 ? follower.gap_m + leader.gap_m + 2.0 * corridor.half_length_m : INFINITY;
    return follower_gain(behind, follower.speed_mps, follower.gap_m, m->v, gap_after_m,
                         leader.speed_mps);
}

void traffic_mobil_decide(const struct traffic_plan *plan, const struct actors *actors,
                          uint32_t self, const struct scene *scene, double grip_mps2,
                          struct agent_motion *motion, double accel_mps2)
{
    uint32_t agent = actors->agent[self];
    const struct track *track = plan->tracks[motion->track];
    double v = scene->agents[agent].speed_mps;
    if ((scene->tick + agent) % MOBIL_PERIOD != 0 || scene->tick < motion->lane_change_tick ||
        motion->shift_duration_s > 0.0 || track->span_count == 0 || motion->direction < 0) {
        return;
    }
    double open = open_accel(&plan->agents[agent].driver, motion, track, v, grip_mps2);
    if (open - accel_mps2 < MOBIL_THRESHOLD_MPS2) {
        return; /* nobody is in the way */
    }
    struct mobil m = {plan, scene, actors, self, agent, v, grip_mps2, accel_mps2, 0.0};
    m.old_gain_mps2 = old_follower_gain(&m, motion);
    uint32_t span = track->sample_span[track_sample_index(track, motion->s_m)];
    const struct map *map = roadmap_map(plan->roadmap);
    const struct lane *lane = &map->lanes[track->spans[span].lane];
    int32_t sides[2] = {lane->left_opposite ? -1 : lane->left,
                        lane->right_opposite ? -1 : lane->right};
    double best = MOBIL_THRESHOLD_MPS2;
    struct agent_motion chosen = *motion;
    for (int i = 0; i < 2; i++) {
        if (sides[i] < 0 || map->lanes[sides[i]].kind != LANE_DRIVING ||
            plan->lane_track[sides[i]] < 0) {
            continue;
        }
        struct agent_motion to = *motion;
        double guess_m = plan->lane_s_m[sides[i]] + motion->s_m - track->spans[span].s_m;
        traffic_change_track(plan, &to, &scene->agents[agent], plan->lane_track[sides[i]], guess_m);
        if (to.direction < 0 || fabs(to.offset_m) > NEIGHBOUR_OFFSET_MAX_M) {
            continue;
        }
        double incentive = mobil_incentive(&m, &to);
        if (incentive > best) {
            best = incentive;
            chosen = to;
        }
    }
    if (chosen.track != motion->track) {
        *motion = chosen;
        motion->lane_change_tick = scene->tick + MOBIL_PAUSE_TICKS;
        traffic_shift(motion, 0.0, MOBIL_DURATION_S, grip_mps2);
    }
}
