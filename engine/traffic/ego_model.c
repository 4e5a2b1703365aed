/*
 * The kinematic bicycle. Direction of travel uses the heading in the middle of the sub-step, which
 * is exact for an arc up to the difference between chord and arc (1e-4 at full lock).
 */
#include "engine/traffic/ego_model.h"

#include "base/check.h"
#include "base/dmath.h"
#include "base/units.h"
#include "engine/traffic/single_track.h"

#include <math.h>

#define SUBSTEP_S (TICK_S / EGO_SUBSTEPS)

/* Friction circle: a demand outside it keeps its direction and loses length. The lateral demand is
 * first cut to what the tyres could give at best, so that turning the wheel further at the limit
 * does not take the brakes away. */
static void limit_to_tyres(double grip_mps2, double *lon_mps2, double *lat_mps2)
{
    *lon_mps2 = dmath_clamp(*lon_mps2, -grip_mps2, grip_mps2);
    *lat_mps2 = dmath_clamp(*lat_mps2, -grip_mps2, grip_mps2);
    double total = sqrt(*lon_mps2 * *lon_mps2 + *lat_mps2 * *lat_mps2);
    if (total > grip_mps2) {
        *lon_mps2 *= grip_mps2 / total;
        *lat_mps2 *= grip_mps2 / total;
    }
}

static void substep(struct ego_state *ego, double *actuator_mps2, double command_mps2,
                    double steer_target_rad, double half_wheelbase_m, double grip_mps2)
{
    double turn = EGO_STEER_RATE_MAX_RPS * SUBSTEP_S;
    ego->steer_rad += dmath_clamp(steer_target_rad - ego->steer_rad, -turn, turn);
    double lon = *actuator_mps2 + (command_mps2 - *actuator_mps2) * EGO_ACCEL_MEAN_SHARE;
    *actuator_mps2 += (command_mps2 - *actuator_mps2) * EGO_ACCEL_SHARE;

    double v = ego->speed_mps;
    double tan_beta = 0.5 * dmath_tan(ego->steer_rad);
    double sin_beta = tan_beta / sqrt(1.0 + tan_beta * tan_beta);
    double curvature = sin_beta / half_wheelbase_m;
    double lat_wanted = v * v * curvature;
    double lat = lat_wanted;
    limit_to_tyres(grip_mps2, &lon, &lat);
    if (lat != lat_wanted) {
        curvature = lat / (v * v); /* the front slides: wider than steered */
        sin_beta = curvature * half_wheelbase_m;
    }

    double v1 = v + lon * SUBSTEP_S;
    double distance_m;
    if (v1 <= 0.0) {
        v1 = 0.0;
        distance_m = lon < 0.0 ? v * v / (-2.0 * lon) : 0.0;
    } else {
        v1 = dmath_min(v1, EGO_SPEED_MAX_MPS);
        distance_m = 0.5 * (v + v1) * SUBSTEP_S;
    }
    double turned = curvature * distance_m;
    double s;
    double c;
    dmath_sincos(ego->pose.heading_rad + 0.5 * turned, &s, &c);
    double cos_beta = sqrt(1.0 - sin_beta * sin_beta);
    ego->pose.x_m += distance_m * (c * cos_beta - s * sin_beta);
    ego->pose.y_m += distance_m * (s * cos_beta + c * sin_beta);
    ego->pose.heading_rad = dmath_wrap_angle(ego->pose.heading_rad + turned);
    ego->speed_mps = v1;
    ego->yaw_rate_rps = v1 * curvature;
    ego->lat_accel_mps2 = v1 * v1 * curvature;
}

void ego_model_step(struct ego_state *ego, double *actuator_mps2, const struct action *action,
                    double wheelbase_m, double friction)
{
    CHECK(isfinite(action->accel_mps2) && isfinite(action->steer_rad));
    double grip_mps2 = friction * GRAVITY_MPS2;
    double command_mps2 = dmath_clamp(action->accel_mps2, -grip_mps2, EGO_ACCEL_MAX_MPS2);
    double steer_rad = dmath_clamp(action->steer_rad, -EGO_STEER_MAX_RAD, EGO_STEER_MAX_RAD);
    double before_mps = ego->speed_mps;
    for (int i = 0; i < EGO_SUBSTEPS; i++) {
        substep(ego, actuator_mps2, command_mps2, steer_rad, wheelbase_m / 2, grip_mps2);
    }
    ego->accel_mps2 = (ego->speed_mps - before_mps) / TICK_S;
}

/* The command of `delay_s` ago; nothing was commanded before the start. */
static double delayed(double line[EGO_DELAY_TICKS_MAX], double delay_s, double command)
{
    uint32_t ticks = (uint32_t)(delay_s / TICK_S + 0.5);
    CHECK(ticks <= EGO_DELAY_TICKS_MAX);
    if (ticks == 0) {
        return command;
    }
    double due = line[0];
    for (uint32_t i = 0; i + 1 < ticks; i++) {
        line[i] = line[i + 1];
    }
    line[ticks - 1] = command;
    return due;
}

void ego_motion_step(struct ego_state *ego, struct ego_motion *motion, const struct ego *record,
                     const struct action *action, double friction)
{
    const struct action due = {
        .accel_mps2 = delayed(motion->accel_line_mps2, record->brake_delay_s, action->accel_mps2),
        .steer_rad = delayed(motion->steer_line_rad, record->steer_delay_s, action->steer_rad),
    };
    if (record->dynamics == DYNAMICS_SINGLE_TRACK) {
        single_track_step(ego, motion, &due, record->wheelbase_m, friction, SINGLE_TRACK_SUBSTEPS);
    } else {
        ego_model_step(ego, &motion->actuator_mps2, &due, record->wheelbase_m, friction);
    }
}
