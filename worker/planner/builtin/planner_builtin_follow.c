/*
 * Following. See planner_builtin_follow.h.
 */
#include "worker/planner/builtin/planner_builtin_follow.h"

#include "base/dmath.h"

#include <math.h>

#define BEND_LAT_MPS2 2.0
#define YELLOW_DECEL_MPS2 3.0

bool planner_place_find(const struct swerve_observation *seen, double x_m, double y_m,
                        double heading_rad, struct planner_place *out)
{
    double sine;
    double cosine;
    double best = 1e300;
    bool found = false;
    dmath_sincos(seen->heading_rad, &sine, &cosine);
    double px = cosine * (x_m - seen->x_m) + sine * (y_m - seen->y_m);
    double py = cosine * (y_m - seen->y_m) - sine * (x_m - seen->x_m);
    for (uint32_t i = 0; i + 1 < seen->route_count; i++) {
        const struct swerve_route_point *a = &seen->route[i];
        double dx = (double)a[1].x_m - (double)a->x_m;
        double dy = (double)a[1].y_m - (double)a->y_m;
        double length = sqrt(dx * dx + dy * dy);
        if (length < 1e-6) {
            continue;
        }
        double along = ((px - (double)a->x_m) * dx + (py - (double)a->y_m) * dy) / length;
        double share = dmath_clamp(along, 0.0, length);
        double ex = px - (double)a->x_m - share * dx / length;
        double ey = py - (double)a->y_m - share * dy / length;
        double squared = ex * ex + ey * ey;
        if (squared < best) {
            best = squared;
            out->route_rad = dmath_atan2(dy, dx);
            out->s_m = i * SWERVE_ROUTE_STEP_M + share;
            out->offset_m = ((py - (double)a->y_m) * dx - (px - (double)a->x_m) * dy) / length;
            out->left_m = (double)a->left_m;
            out->right_m = (double)a->right_m;
            found = (i > 0 || along >= 0.0) && (i + 2 < seen->route_count || along <= length);
        }
    }
    if (found) {
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

double planner_idm_signals(const struct planner_manners *manners,
                           const struct swerve_observation *seen,
                           const struct swerve_surroundings *around)
{
    double accel_mps2 = manners->accel_mps2;
    for (uint32_t i = 0; i < around->signal_count; i++) {
        const struct swerve_signal_state *signal = &around->signals[i];
        double gap_m = signal->stop_ahead_m;
        bool stops = signal->light == SWERVE_SIGNAL_RED ||
                     signal->light == SWERVE_SIGNAL_RED_YELLOW ||
                     signal->light == SWERVE_SIGNAL_YELLOW;
        double needed_mps2 = seen->speed_mps * seen->speed_mps / (2.0 * dmath_max(gap_m, 0.1));
        if (stops && gap_m > 0.0 &&
            (signal->light != SWERVE_SIGNAL_YELLOW || needed_mps2 < YELLOW_DECEL_MPS2)) {
            accel_mps2 = dmath_min(accel_mps2,
                                   planner_idm_behind(manners, seen->speed_mps, gap_m + 1.0, 0.0));
        }
    }
    return accel_mps2;
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
        double turn_rad = fabs(dmath_atan2(ax * by - ay * bx, ax * bx + ay * by));
        double bend = BEND_LAT_MPS2 * SWERVE_ROUTE_STEP_M / dmath_max(turn_rad, 1e-4);
        double ahead_m = (i - 1) * SWERVE_ROUTE_STEP_M;
        allowed = dmath_min(allowed, sqrt(bend + 2.0 * manners->decel_mps2 * ahead_m));
    }
    return allowed;
}
