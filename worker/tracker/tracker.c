/*
 * Checks of trajectories, pure pursuit, and the choice between the trackers. See tracker.h.
 */
#include "worker/tracker/tracker.h"

#include "base/check.h"
#include "base/dmath.h"
#include "base/units.h"

#include <math.h>
#include <stdio.h>

#define REACH_MAX_S 1000.0
#define FAR_M 10000.0
#define HEADING_MAX_RAD 1000.0
#define SPEED_MAX_MPS 200.0

/* Pure pursuit. */
#define LOOK_AHEAD_S 0.9
#define LOOK_AHEAD_MIN_M 4.0
#define SPEED_LEAD_S 0.5
#define SPEED_GAIN 1.5

/* ---- checks ---- */

static bool point_holds(const struct tracker_ego *ego, const struct swerve_trajectory_point *point,
                        double after_s, bool first, const char **expected, double *found)
{
    const struct {
        double value;
        double most;
        const char *expected;
    } members[] = {
        {point->x_m - ego->x_m, FAR_M, "x_m within 10 km of ego"},
        {point->y_m - ego->y_m, FAR_M, "y_m within 10 km of ego"},
        {point->heading_rad, HEADING_MAX_RAD, "heading_rad within 1,000"},
        {point->speed_mps, SPEED_MAX_MPS, "speed_mps within 200"},
    };
    for (size_t i = 0; i < COUNT_OF(members); i++) {
        if (!(fabs(members[i].value) <= members[i].most)) {
            *expected = members[i].expected;
            *found = members[i].value;
            return false;
        }
    }
    *expected = first ? "t_s from 0 to 1,000" : "t_s above that of the point before, to 1,000";
    *found = point->t_s;
    return (first ? point->t_s >= after_s : point->t_s > after_s) && point->t_s <= REACH_MAX_S;
}

bool tracker_check(const struct tracker_ego *ego, const struct swerve_trajectory_point *points,
                   uint32_t count, char *text, size_t text_bytes)
{
    const char *expected = NULL;
    double found = 0.0;
    double after_s = 0.0;
    if (count < 1 || count > SWERVE_TRAJECTORY_POINTS) {
        snprintf(text, text_bytes, "trajectory: expected 1 to %d points, found %u",
                 SWERVE_TRAJECTORY_POINTS, count);
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!point_holds(ego, &points[i], after_s, i == 0, &expected, &found)) {
            snprintf(text, text_bytes, "trajectory point %u: expected %s, found %g", i, expected,
                     found);
            return false;
        }
        after_s = points[i].t_s;
    }
    /* A hair less, for times that were added up. */
    if (after_s < TRACKER_REACH_MIN_S - 1e-9) {
        snprintf(text, text_bytes, "trajectory: expected points up to %g s at least, found %g",
                 TRACKER_REACH_MIN_S, after_s);
        return false;
    }
    return true;
}

/* ---- pure pursuit ---- */

/* Speed that the trajectory has at a time; beyond its end that of its last point. */
static double speed_at(const struct swerve_trajectory_point *points, uint32_t count, double now_mps,
                       double t_s)
{
    double before_s = 0.0;
    double before_mps = now_mps;
    for (uint32_t i = 0; i < count; i++) {
        if (points[i].t_s >= t_s) {
            double span_s = points[i].t_s - before_s;
            double share = span_s > 0.0 ? (t_s - before_s) / span_s : 1.0;
            return before_mps + share * (points[i].speed_mps - before_mps);
        }
        before_s = points[i].t_s;
        before_mps = points[i].speed_mps;
    }
    return before_mps;
}

/* The front-wheel angle that takes the rear axle on a circle through the first point that is a
 * look-ahead away (Coulter, CMU-RI-TR-92-01); the last one where none is. */
static double pursue(const struct tracker_ego *ego, const struct swerve_trajectory_point *points,
                     uint32_t count)
{
    double look_ahead_m = dmath_max(LOOK_AHEAD_S * ego->speed_mps, LOOK_AHEAD_MIN_M);
    double sine;
    double cosine;
    dmath_sincos(ego->heading_rad, &sine, &cosine);
    for (uint32_t i = 0; i < count; i++) {
        double dx_m = points[i].x_m - ego->x_m;
        double dy_m = points[i].y_m - ego->y_m;
        double ahead_m = cosine * dx_m + sine * dy_m + 0.5 * ego->wheelbase_m;
        double left_m = cosine * dy_m - sine * dx_m;
        double squared = ahead_m * ahead_m + left_m * left_m;
        if (i + 1 < count && (ahead_m <= 0.0 || squared < look_ahead_m * look_ahead_m)) {
            continue;
        }
        /* A short trajectory of a car that stands says nothing about direction. */
        return ahead_m < 0.1 || squared < 1.0
                   ? ego->steer_rad
                   : dmath_atan(2.0 * ego->wheelbase_m * left_m / squared);
    }
    return ego->steer_rad;
}

struct swerve_action tracker_follow(enum swerve_tracker tracker, const struct tracker_ego *ego,
                                    const struct swerve_trajectory_point *points, uint32_t count)
{
    if (tracker == SWERVE_TRACKER_PURSUIT) {
        double ahead_mps = speed_at(points, count, ego->speed_mps, SPEED_LEAD_S);
        return (struct swerve_action){
            dmath_clamp(SPEED_GAIN * (ahead_mps - ego->speed_mps), -9.0, 5.0),
            pursue(ego, points, count)};
    }
    CHECK(tracker == SWERVE_TRACKER_LQR);
    struct tracker_command command = tracker_lqr(ego, points, count);
    /* nuPlan's motion model integrates the rate over a tick. */
    return (struct swerve_action){
        dmath_clamp(command.accel_mps2, -40.0, 40.0),
        dmath_clamp(ego->steer_rad + command.steer_rate_rps * TICK_S, -1.5, 1.5)};
}
