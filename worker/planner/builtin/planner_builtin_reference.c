/*
 * builtin:reference, the planner that Swerve's own suites are driven with: pure pursuit along the
 * route, the Intelligent Driver Model, and emergency braking, on what it sees in the BEV grid only.
 *
 * Each tick: update the tracks (worker/planner/builtin/planner_perception.h); find the speed that
 * limits, curves, visibility and hiding places allow; find the acceleration that every object in
 * ego's path, or about to cross it, asks for; take the lowest; go there within comfortable jerk,
 * unless it is an emergency. It steers round a standing obstacle where its own direction of travel
 * has room. It waits for signals at their stop lines.
 *
 * Comfort stays inside nuPlan's bounds (longitudinal -4.05 .. 2.40 m/s2, jerk 4.13 m/s3).
 */
#include "base/dmath.h"
#include "schemas/observation.h"
#include "worker/planner/builtin/planner_builtin.h"
#include "worker/planner/builtin/planner_builtin_follow.h"
#include "worker/planner/builtin/planner_perception.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Intelligent Driver Model (Treiber, Hennecke, Helbing, Phys. Rev. E 62, 2000). */
#define IDM_ACCEL_MPS2 1.8
#define IDM_DECEL_MPS2 2.0
#define IDM_GAP_M 3.0

#define COMFORT_DECEL_MPS2 3.6
#define COMFORT_JERK_MPS3 3.5
#define EMERGENCY_FROM_MPS2 3.2  /* asked for more than this: an emergency .. */
#define EMERGENCY_UNTIL_MPS2 1.5 /* .. until less than this is asked for */
#define DECEL_MAX_MPS2 9.0
#define STOP_MARGIN_M 1.2 /* clearance that braking aims for */
#define PATH_MARGIN_M 0.3 /* on either side of the car */
#define CURVE_LAT_MPS2 2.0
#define LIMIT_UNPOSTED_MPS 13.9
#define LOOK_AHEAD_S 4.0 /* for objects that cross */
#define HIDING_SPEED_MPS 8.3
#define HIDING_LIMIT_MPS 17.0 /* posted limit up to which pedestrians are expected */
#define SHIFT_RATE_MPS 1.2    /* sideways, when steering round something */
#define YELLOW_DECEL_MPS2 3.0 /* who must brake harder than this drives on at yellow */
#define RED_DECEL_MPS2 8.0    /* and at red who cannot stop at all */
#define SIGNAL_AHEAD_M 120.0
#define STOP_LINE_M 1.0 /* where ego stands before it */
#define GRID_AHEAD_M 76.0
#define NONE_MPS2 100.0

struct reference_session {
    struct perception perception;
    double length_m, width_m, wheelbase_m;
    double accel_mps2;      /* last answer */
    double offset_m;        /* where the lane is kept now, left of the route */
    double offset_target_m; /* where it will be */
    bool emergency;
    struct planner_halts halts;
};

struct reference_parameters {
    double headway_s;
    double speed_factor; /* of what limits and curves allow */
};

struct reference {
    struct planner_builtin base;
    struct reference_parameters parameters;
    struct reference_session sessions[];
};

/* One tick's view, shared by the steps below. */
struct view {
    const struct swerve_observation *seen;
    const struct swerve_surroundings *around;
    struct reference_session *session;
    struct frenet frenet; /* this tick's route */
    double speed_mps;
    double ego_d_m;        /* ego's offset from the route */
    double path_target_m;  /* offset that ego's path leads to .. */
    double path_per_reach; /* .. within 1 / this many metres */
    double front_m;        /* half a length */
    double half_width_m;
    double limit_mps; /* posted here */
};

/* ---- ego's path ---- */

/* Lateral position of ego's path at s: from where ego is now to the offset it is heading for. */
static double path_offset_m(const struct view *view, double s_m)
{
    double shift = view->ego_d_m - view->path_target_m;
    double u = dmath_clamp(s_m * view->path_per_reach, 0.0, 1.0);
    return view->path_target_m + shift * (1.0 - u) * (1.0 - u) * (1.0 + 2.0 * u);
}

static void find_path(struct view *view)
{
    view->path_target_m = view->session->offset_target_m;
    double shift_s = fabs(view->ego_d_m - view->path_target_m) / SHIFT_RATE_MPS;
    view->path_per_reach = 1.0 / dmath_max(8.0, view->speed_mps * (shift_s + 0.8));
}

/* Whether lateral extent [low, high] at s_low .. s_high touches the strip that ego will sweep. */
static bool touches_path(const struct view *view, double s_low_m, double s_high_m, double d_low_m,
                         double d_high_m, double margin_m)
{
    double a = path_offset_m(view, s_low_m);
    double b = path_offset_m(view, s_high_m);
    double half = view->half_width_m + margin_m;
    return d_high_m > dmath_min(a, b) - half && d_low_m < dmath_max(a, b) + half;
}

/* ---- speed that the road allows ---- */

/* Speed that keeps a later allowance reachable at a gentle deceleration. */
static double allowance_mps(double later_mps, double distance_m, double decel_mps2)
{
    return sqrt(later_mps * later_mps + 2.0 * decel_mps2 * dmath_max(distance_m, 0.0));
}

/* Curvature at route point i from the points `reach` before and after it (Menger). */
static double curvature_at(const struct swerve_route_point *route, uint32_t i, uint32_t reach)
{
    double ax = (double)route[i].x_m - (double)route[i - reach].x_m;
    double ay = (double)route[i].y_m - (double)route[i - reach].y_m;
    double bx = (double)route[i + reach].x_m - (double)route[i].x_m;
    double by = (double)route[i + reach].y_m - (double)route[i].y_m;
    double cx = ax + bx;
    double cy = ay + by;
    double product = sqrt((ax * ax + ay * ay) * (bx * bx + by * by) * (cx * cx + cy * cy));
    return product > 1e-6 ? 2.0 * fabs(ax * by - ay * bx) / product : 0.0;
}

static double road_speed_mps(const struct view *view, double factor)
{
    const struct swerve_observation *seen = view->seen;
    double best = 1e9;
    for (uint32_t i = 0; i < seen->route_count; i++) {
        double distance_m = SWERVE_ROUTE_STEP_M * (double)i;
        double posted = (double)seen->route[i].speed_limit_mps;
        double speed = posted > 0.0 ? posted : LIMIT_UNPOSTED_MPS;
        if (i >= 1 && i + 1 < seen->route_count) {
            uint32_t reach = i >= 2 && i + 2 < seen->route_count ? 2 : 1;
            double curvature = curvature_at(seen->route, i, reach);
            if (curvature > 1e-4) {
                speed = dmath_min(speed, sqrt(CURVE_LAT_MPS2 / curvature));
                distance_m -= SWERVE_ROUTE_STEP_M;
            }
        }
        best = dmath_min(best, allowance_mps(speed * factor, distance_m, 1.3));
    }
    return best;
}

/* Whether something that moves, or that is followed anyway, stands between ego and a point of its
 * path. What a standing thing beside the road hides stays hidden, and counts as the end of view. */
static bool hidden_by_traffic(const struct view *view, double s_m)
{
    double d_m = path_offset_m(view, s_m);
    for (uint32_t i = 0; i < PERCEPTION_TRACKS; i++) {
        const struct perception_track *track = &view->session->perception.tracks[i];
        struct perception_extent extent = track->at;
        if (!perception_trusted(track) || extent.s_high_m < view->front_m || extent.s_low_m > s_m) {
            continue;
        }
        double middle_m = dmath_clamp(0.5 * (extent.s_low_m + extent.s_high_m), 0.0, s_m);
        double sight_m = view->ego_d_m + (d_m - view->ego_d_m) * middle_m / s_m;
        bool moving = fabs(track->s_mps) > 1.0 || fabs(track->d_mps) > 0.5;
        bool in_path = touches_path(view, extent.s_low_m, extent.s_high_m, extent.d_low_m,
                                    extent.d_high_m, PATH_MARGIN_M);
        if ((moving || in_path) && extent.d_low_m - 1.5 < sight_m &&
            extent.d_high_m + 1.5 > sight_m) {
            return true;
        }
    }
    return false;
}

/* The view ends in fog, in heavy rain, behind a bend, and where the grid does: be able to stop
 * within what is seen. */
static double view_speed_mps(const struct view *view)
{
    double dark_s = (double)(view->seen->time_ns - view->session->perception.bev_time_ns) * 1e-9;
    double seen_m = GRID_AHEAD_M;
    for (double s = view->front_m + 1.0; s < GRID_AHEAD_M; s += 2.0) {
        if (perception_unseen(view->seen, s, path_offset_m(view, s))) {
            seen_m = hidden_by_traffic(view, s) ? GRID_AHEAD_M : s;
            break;
        }
    }
    if (dark_s > 0.25) {
        seen_m = dmath_min(seen_m, GRID_AHEAD_M - dark_s * (view->speed_mps + 15.0));
    }
    /* v t + v^2 / 2a = room, with a = 8 at the end of the grid, less in bad weather, t = 0.5 s. */
    double room_m = dmath_max(seen_m - view->front_m - 3.0, 0.0);
    double decel = seen_m < GRID_AHEAD_M ? 5.0 : 8.0;
    double react = 0.5 * decel;
    return sqrt(react * react + 2.0 * decel * room_m) - react;
}

/* Standing things beside the path that hide what is behind them: a child may step out. */
static double hiding_speed_mps(const struct view *view)
{
    double best = 1e9;
    if (view->limit_mps > HIDING_LIMIT_MPS) {
        return best;
    }
    for (uint32_t i = 0; i < PERCEPTION_TRACKS; i++) {
        const struct perception_track *track = &view->session->perception.tracks[i];
        if (!track->live || track->age < 5 || fabs(track->s_mps) > 0.6 ||
            fabs(track->d_mps) > 0.4) {
            continue;
        }
        struct perception_extent extent = track->at;
        double path = path_offset_m(view, extent.s_low_m);
        bool left = extent.d_low_m > path;
        double aside_m =
            (left ? extent.d_low_m - path : path - extent.d_high_m) - view->half_width_m;
        if (extent.s_high_m < view->front_m || extent.s_low_m > 60.0 || aside_m < 0.0 ||
            aside_m > 2.0) {
            continue;
        }
        double behind_d = left ? extent.d_low_m + 0.8 : extent.d_high_m - 0.8;
        if (perception_unseen(view->seen, extent.s_high_m + 1.0, behind_d)) {
            double distance_m = extent.s_low_m - view->front_m - 4.0;
            best = dmath_min(best, allowance_mps(HIDING_SPEED_MPS, distance_m, 1.5));
        }
    }
    return best;
}

/* Acceleration on a free road: IDM's below the wanted speed, a gentle return to it above. */
static double free_accel_mps2(double speed_mps, double wanted_mps)
{
    if (wanted_mps < 0.3) {
        return -1.5;
    }
    double ratio = speed_mps / wanted_mps;
    if (ratio <= 1.0) {
        return IDM_ACCEL_MPS2 * (1.0 - ratio * ratio * ratio * ratio);
    }
    return dmath_max(1.2 * (wanted_mps - speed_mps), -2.2);
}

/* ---- objects ---- */

/* Acceleration that one object asks for. */
struct demand {
    double comfort_mps2;  /* accelerate no more than this; NONE_MPS2: no wish */
    double required_mps2; /* constant deceleration that avoids it, >= 0 */
};

/* Deceleration that keeps ego behind a leader that may itself be braking. */
static double following_decel_mps2(double speed_mps, double gap_m, double leader_mps,
                                   double leader_mps2)
{
    double room_m = dmath_max(gap_m - STOP_MARGIN_M, 0.25);
    if (leader_mps < -0.5) {
        /* Oncoming: stand before it arrives. ego covers v^2/2a while it covers |leader| v/a. */
        return speed_mps * (0.5 * speed_mps - leader_mps) / room_m;
    }
    double leader = dmath_max(leader_mps, 0.0);
    double required = 0.0;
    if (speed_mps > leader) {
        required = (speed_mps - leader) * (speed_mps - leader) / (2.0 * room_m);
    }
    if (leader_mps2 < -1.5 && speed_mps > 0.5) {
        double leader_stop_m = leader * leader / (-2.0 * leader_mps2);
        required = dmath_max(required, speed_mps * speed_mps / (2.0 * (room_m + leader_stop_m)));
    }
    return required;
}

static struct demand follow(const struct view *view, const struct perception_track *track,
                            double gap_m, double headway_s)
{
    double speed = view->speed_mps;
    double leader = dmath_max(track->s_mps, 0.0);
    double wanted_gap =
        IDM_GAP_M +
        dmath_max(0.0, speed * headway_s + speed * (speed - leader) /
                                               (2.0 * sqrt(IDM_ACCEL_MPS2 * IDM_DECEL_MPS2)));
    double ratio = wanted_gap / dmath_max(gap_m, 0.5);
    /* Only the interaction term: the free-road term joins when the lowest wish is taken. */
    double comfort = IDM_ACCEL_MPS2 * (1.0 - ratio * ratio);
    return (struct demand){dmath_max(comfort, -COMFORT_DECEL_MPS2),
                           following_decel_mps2(speed, gap_m, track->s_mps, track->s_mps2)};
}

/* Part of a sideways speed that is surely not noise. */
static double certain_mps(double d_mps)
{
    return d_mps > 0.25 ? d_mps - 0.15 : d_mps < -0.25 ? d_mps + 0.15 : 0.0;
}

/* Place and time at which ego and an object would meet at present speeds. */
struct meeting {
    bool expected;
    double at_s;
    double clear_s; /* when it has left ego's path again */
    double s_m;     /* where it is first in the way */
};

/* Near the route, speeds along and across it are kept, so traffic follows the bends of its road;
 * elsewhere an object goes straight on. */
static bool extent_after(const struct view *view, const struct perception_track *track, double t_s,
                         struct perception_extent *out)
{
    if (!track->near_route) {
        return perception_extent_after(&view->session->perception, &view->frenet, track,
                                       track->vx_mps, track->vy_mps, t_s, out);
    }
    double d_m = certain_mps(track->d_mps) * t_s;
    double s_m = track->s_mps * t_s;
    *out = (struct perception_extent){track->at.s_low_m + s_m, track->at.s_high_m + s_m,
                                      track->at.d_low_m + d_m, track->at.d_high_m + d_m};
    return true;
}

static struct meeting find_meeting(const struct view *view, const struct perception_track *track)
{
    struct meeting meeting = {.clear_s = LOOK_AHEAD_S + 1.0, .s_m = 1e9};
    double speed = sqrt(track->vx_mps * track->vx_mps + track->vy_mps * track->vy_mps);
    if (track->near_route ? certain_mps(track->d_mps) == 0.0 : speed < 0.5) {
        return meeting;
    }
    double horizon_s = dmath_min(LOOK_AHEAD_S, 0.6 * (double)track->age);
    bool was_in_path = false;
    for (double t = 0.0; t <= LOOK_AHEAD_S; t += 0.2) {
        struct perception_extent then;
        bool known = extent_after(view, track, t, &then);
        bool in_path = known && then.s_high_m > -view->front_m &&
                       touches_path(view, then.s_low_m, then.s_high_m, then.d_low_m, then.d_high_m,
                                    PATH_MARGIN_M + 0.1 + 0.1 * t);
        if (meeting.expected && was_in_path && !in_path) {
            meeting.clear_s = t;
            break;
        }
        was_in_path = in_path;
        if (!in_path) {
            continue;
        }
        meeting.s_m = dmath_min(meeting.s_m, then.s_low_m);
        double ego_m = view->speed_mps * t;
        if (!meeting.expected && t <= horizon_s && then.s_low_m < ego_m + view->front_m + 0.8 &&
            then.s_high_m > ego_m - view->front_m - 0.8) {
            meeting.expected = true;
            meeting.at_s = t;
        }
    }
    return meeting;
}

/* An object that is not in the path yet but will be when ego gets there. */
static struct demand yield(const struct view *view, struct perception_track *track)
{
    const struct demand nothing = {NONE_MPS2, 0.0};
    struct meeting meeting = {.expected = false};
    if (track->at.s_high_m > -view->front_m) {
        meeting = find_meeting(view, track);
    }
    if (!meeting.expected) {
        track->conflict_ticks = 0;
        return nothing;
    }
    track->conflict_ticks++;
    if (track->conflict_ticks < 2 && meeting.at_s > 1.0) {
        return nothing;
    }
    double speed = view->speed_mps;
    /* Things that move along the road are followed; one that crosses is waited for where it
     * crosses. */
    bool along = fabs(track->d_mps) < 0.5 * fabs(track->s_mps);
    double gap_m = (along ? track->at.s_low_m : meeting.s_m) - view->front_m;
    double room_m = dmath_max(gap_m - STOP_MARGIN_M, 0.25);
    double required = following_decel_mps2(speed, gap_m, along ? track->s_mps : 0.0, 0.0);
    if (gap_m < 0.0) {
        required = dmath_min(required, 3.0); /* beside us: make room */
    } else if (meeting.clear_s <= LOOK_AHEAD_S && meeting.clear_s * speed < 2.0 * room_m) {
        /* It is enough to arrive after it has gone: room = v t - a t^2 / 2. */
        double clear_s = meeting.clear_s;
        double later = 2.0 * (speed * clear_s - room_m) / (clear_s * clear_s);
        required = dmath_min(required, dmath_max(later, 0.0));
    }
    double comfort = required > 1.0 ? dmath_max(-1.1 * required, -COMFORT_DECEL_MPS2) : 0.0;
    return (struct demand){comfort, required};
}

static struct demand object_demand(const struct view *view, struct perception_track *track,
                                   double headway_s)
{
    struct perception_extent at = track->at;
    bool ahead = at.s_high_m > view->front_m;
    if (ahead &&
        touches_path(view, at.s_low_m, at.s_high_m, at.d_low_m, at.d_high_m, PATH_MARGIN_M)) {
        track->conflict_ticks++;
        return follow(view, track, at.s_low_m - view->front_m, headway_s);
    }
    return yield(view, track);
}

/* A stop line that ego has to wait at is a leader that stands; it is no emergency. */
static double signals_demand_mps2(const struct view *view)
{
    double v = view->speed_mps;
    double wanted = NONE_MPS2;
    for (uint32_t i = 0; i < view->around->signal_count; i++) {
        const struct swerve_signal_state *signal = &view->around->signals[i];
        bool yellow = signal->light == SWERVE_SIGNAL_YELLOW;
        struct reference_session *session = view->session;
        bool red = signal->light == SWERVE_SIGNAL_RED ||
                   signal->light == SWERVE_SIGNAL_RED_YELLOW ||
                   planner_sign_holds(view->seen, view->around, signal, session->length_m,
                                      session->width_m, &session->halts);
        double ahead_m = signal->stop_ahead_m;
        double decel = yellow ? YELLOW_DECEL_MPS2 : RED_DECEL_MPS2;
        if ((!yellow && !red) || ahead_m < 0.0 || ahead_m > SIGNAL_AHEAD_M ||
            v * v > 2.0 * decel * ahead_m) {
            continue;
        }
        double gap_m = dmath_max(ahead_m - STOP_LINE_M, 0.1);
        double braking = -v * v / (2.0 * gap_m);
        double follow = v * v > 1.2 * gap_m || gap_m < 1.0 ? braking : NONE_MPS2;
        wanted = dmath_min(wanted, v < 0.3 && gap_m < 1.0 ? -1.0 : follow);
    }
    return wanted;
}

static struct demand all_demands(const struct view *view, double headway_s)
{
    struct demand worst = {signals_demand_mps2(view), 0.0};
    for (uint32_t i = 0; i < PERCEPTION_TRACKS; i++) {
        struct perception_track *track = &view->session->perception.tracks[i];
        if (!track->live || !perception_trusted(track)) {
            continue;
        }
        struct demand demand = object_demand(view, track, headway_s);
        worst.comfort_mps2 = dmath_min(worst.comfort_mps2, demand.comfort_mps2);
        worst.required_mps2 = dmath_max(worst.required_mps2, demand.required_mps2);
    }
    return worst;
}

/* ---- steering round ---- */

/* Whether the strip at an offset is free of everything from beside ego to `until_m` ahead. */
static bool strip_free(const struct view *view, double offset_m, double until_m, double clearance_m)
{
    double half = view->half_width_m + clearance_m;
    /* On the way there ego also sweeps what lies between. */
    double low = dmath_min(offset_m, view->ego_d_m) - half;
    double high = dmath_max(offset_m, view->ego_d_m) + half;
    for (uint32_t i = 0; i < PERCEPTION_TRACKS; i++) {
        const struct perception_track *track = &view->session->perception.tracks[i];
        if (!track->live || !perception_trusted(track)) {
            continue;
        }
        struct perception_extent at = track->at;
        double closing_mps = track->s_mps - view->speed_mps;
        bool beside = at.s_low_m < view->front_m + 4.0;
        double d_low = at.d_low_m + dmath_min(0.0, 2.0 * certain_mps(track->d_mps));
        double d_high = at.d_high_m + dmath_max(0.0, 2.0 * certain_mps(track->d_mps));
        bool in_strip = beside ? d_high > low && d_low < high
                               : d_high > offset_m - half && d_low < offset_m + half;
        bool in_reach = at.s_low_m < until_m &&
                        at.s_high_m + 4.0 * dmath_max(closing_mps, 0.0) > -view->front_m - 4.0;
        bool leaving = at.s_low_m > view->front_m + 15.0 && closing_mps > 0.0;
        if (in_strip && in_reach && !leaving) {
            return false;
        }
    }
    return true;
}

/* The nearest object that stands in the unshifted lane, or NULL. */
static const struct perception_track *find_blocker(const struct view *view)
{
    const struct perception_track *blocker = NULL;
    double nearest_m = 70.0;
    double half = view->half_width_m + PATH_MARGIN_M;
    for (uint32_t i = 0; i < PERCEPTION_TRACKS; i++) {
        const struct perception_track *track = &view->session->perception.tracks[i];
        struct perception_extent at = track->at;
        bool standing =
            track->live && track->age >= 8 && fabs(track->s_mps) < 0.6 && fabs(track->d_mps) < 0.3;
        if (standing && at.s_high_m > -view->front_m - 3.0 && at.s_low_m < nearest_m &&
            at.d_high_m > -half && at.d_low_m < half) {
            blocker = track;
            nearest_m = at.s_low_m;
        }
    }
    return blocker;
}

/* Chooses where in its direction of travel ego wants to be. */
static void choose_offset(const struct view *view)
{
    struct reference_session *session = view->session;
    const struct perception_track *blocker = find_blocker(view);
    if (blocker == NULL) {
        if (session->offset_target_m != 0.0 && strip_free(view, 0.0, 40.0, PATH_MARGIN_M)) {
            session->offset_target_m = 0.0;
        }
        return;
    }
    struct perception_extent at = blocker->at;
    double index =
        dmath_clamp(at.s_low_m / SWERVE_ROUTE_STEP_M, 0.0, (double)(view->seen->route_count - 1));
    const struct swerve_route_point *there = &view->seen->route[(uint32_t)index];
    const double clearance_m = 0.7;
    double left = at.d_high_m + view->half_width_m + clearance_m;
    double right = at.d_low_m - view->half_width_m - clearance_m;
    double left_most =
        (double)there->left_m + (double)there->adjacent_left_m - view->half_width_m - 0.2;
    double right_most =
        -(double)there->right_m - (double)there->adjacent_right_m + view->half_width_m + 0.2;
    double current = session->offset_target_m;
    if (current >= left - 0.3 || current <= right + 0.3) {
        return; /* already passing it */
    }
    const double choices[2] = {fabs(left) <= fabs(right) ? left : right,
                               fabs(left) <= fabs(right) ? right : left};
    for (int i = 0; i < 2; i++) {
        double offset = choices[i];
        double room_m = at.s_low_m - view->front_m;
        double needed_m =
            4.0 + view->speed_mps * (0.5 + fabs(offset - view->ego_d_m) / SHIFT_RATE_MPS);
        if (offset <= left_most && offset >= right_most && room_m > needed_m &&
            strip_free(view, offset, at.s_high_m + 15.0, clearance_m - 0.2)) {
            session->offset_target_m = offset;
            return;
        }
    }
}

static double steer(const struct view *view)
{
    struct reference_session *session = view->session;
    double step = SHIFT_RATE_MPS * TICK_S;
    session->offset_m += dmath_clamp(session->offset_target_m - session->offset_m, -step, step);
    return planner_keep_lane(view->seen, session->wheelbase_m, session->offset_m);
}

/* ---- one tick ---- */

static double settle_accel(struct reference_session *session, double speed_mps, double wanted_mps2,
                           double required_mps2)
{
    if (required_mps2 > EMERGENCY_FROM_MPS2) {
        session->emergency = true;
    } else if (required_mps2 < EMERGENCY_UNTIL_MPS2) {
        session->emergency = false;
    }
    double accel = dmath_max(wanted_mps2, -COMFORT_DECEL_MPS2);
    if (session->emergency) {
        accel = dmath_min(accel, -dmath_clamp(1.2 * required_mps2 + 0.5, 2.0, DECEL_MAX_MPS2));
        if (accel < session->accel_mps2) {
            session->accel_mps2 = accel;
            return accel;
        }
    }
    if (!session->emergency && speed_mps < 1.0 && accel < 0.0) {
        /* Come to rest without a jolt; then stay put. */
        accel = dmath_max(accel, -0.6 - 1.2 * speed_mps);
    }
    double step = COMFORT_JERK_MPS3 * TICK_S;
    accel = dmath_clamp(accel, session->accel_mps2 - step,
                        session->accel_mps2 + (session->accel_mps2 < -4.0 ? 4.0 * step : step));
    session->accel_mps2 = accel;
    return accel;
}

static void decide(struct reference_session *session, const struct reference_parameters *parameters,
                   const struct swerve_observation *seen, const struct swerve_surroundings *around,
                   struct swerve_action *action)
{
    if (seen->route_count < 2 || seen->bev == NULL) {
        action->accel_mps2 = settle_accel(session, seen->speed_mps, -2.0, 0.0);
        action->steer_rad = 0.0;
        return;
    }
    struct view view = {
        .seen = seen,
        .around = around,
        .session = session,
        .speed_mps = dmath_max(seen->speed_mps, 0.0),
        .front_m = 0.5 * session->length_m,
        .half_width_m = 0.5 * session->width_m,
        .limit_mps = (double)seen->route[0].speed_limit_mps > 0.0
                         ? (double)seen->route[0].speed_limit_mps
                         : LIMIT_UNPOSTED_MPS,
    };
    frenet_make(&view.frenet, seen);
    struct frenet_point foot = {.d_m = 0.0};
    frenet_project(&view.frenet, 0.0, 0.0, &foot);
    view.ego_d_m = foot.d_m;
    perception_update(&session->perception, &view.frenet, seen);
    find_path(&view);
    choose_offset(&view);
    find_path(&view);
    double road = road_speed_mps(&view, parameters->speed_factor);
    double cautious = dmath_min(view_speed_mps(&view), hiding_speed_mps(&view));
    double wanted = free_accel_mps2(view.speed_mps, dmath_min(road, cautious));
    struct demand demand = all_demands(&view, parameters->headway_s);
    wanted = dmath_min(wanted, demand.comfort_mps2);
    action->accel_mps2 = settle_accel(session, view.speed_mps, wanted, demand.required_mps2);
    action->steer_rad = steer(&view);
}

/* ---- the ABI ---- */

static int reference_open(void **planner, const char *config, uint32_t session_count,
                          char *error_text, uint32_t error_bytes)
{
    struct reference_parameters values = {.headway_s = 1.4, .speed_factor = 1.0};
    const struct planner_parameter parameters[] = {
        {"headway_s", 0.3, 5.0, &values.headway_s},
        {"speed_factor", 0.2, 1.5, &values.speed_factor},
    };
    if (planner_config_read(config, parameters, 2, error_text, error_bytes) != 0) {
        return 1;
    }
    struct reference *self = planner_builtin_create(sizeof *self, sizeof self->sessions[0],
                                                    session_count, error_text, error_bytes);
    if (self == NULL) {
        return 1;
    }
    self->parameters = values;
    *planner = self;
    return 0;
}

static int reference_reset(void *planner, const struct swerve_episode *episode, char *error_text,
                           uint32_t error_bytes)
{
    (void)error_text;
    (void)error_bytes;
    struct reference *self = planner;
    struct reference_session *session = &self->sessions[episode->session];
    memset(session, 0, sizeof *session);
    perception_reset(&session->perception);
    session->length_m = episode->ego_length_m;
    session->width_m = episode->ego_width_m;
    session->wheelbase_m = episode->ego_wheelbase_m;
    return 0;
}

static int reference_plan(void *planner, uint32_t count,
                          const struct swerve_observation *observations,
                          const struct swerve_surroundings *surroundings,
                          struct swerve_answer *answers, uint8_t *failed, char *error_text,
                          uint32_t error_bytes)
{
    (void)failed;
    (void)error_text;
    (void)error_bytes;
    struct reference *self = planner;
    for (uint32_t i = 0; i < count; i++) {
        decide(&self->sessions[observations[i].session], &self->parameters, &observations[i],
               &surroundings[i], &answers[i].action);
    }
    return 0;
}

const struct swerve_planner_ops planner_builtin_reference_ops = {
    .abi_version = SWERVE_PLANNER_ABI_VERSION,
    .wants = SWERVE_WANTS_BEV | PLANNER_WANTS_RETURNS | SWERVE_WANTS_SIGNALS,
    .name = "reference",
    .open = reference_open,
    .close = free,
    .reset = reference_reset,
    .plan = reference_plan,
    .fork = planner_builtin_fork,
};
