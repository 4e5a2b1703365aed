/*
 * The dynamic single-track model. See single_track.h.
 */
#include "engine/traffic/single_track.h"

#include "base/check.h"
#include "base/dmath.h"

#include <math.h>

enum { X, Y, HEADING, ALONG, SIDE, YAW_RATE, STATES };

/* Constants of a sub-step. */
struct axle_forces {
    double front_m; /* axles' distances from the centre of gravity */
    double rear_m;
    double gyration2_m2;
    double steer_sin;
    double steer_cos;
    double friction;
    double along_front_mps2; /* longitudinal force per mass */
    double along_rear_mps2;
    double load_front_mps2; /* vertical force per mass */
    double load_rear_mps2;
};

/* Longitudinal forces and loads under an acceleration that is asked for: load moves to the axle
 * that the body leans on, which raises what that axle may take. */
static void share_forces(struct axle_forces *axles, double wheelbase_m, double wanted_mps2)
{
    double height_m = SINGLE_TRACK_HEIGHT_SHARE * wheelbase_m;
    double grip = axles->friction * GRAVITY_MPS2;
    double most = SINGLE_TRACK_BRAKE_SHARE * grip;
    double along = dmath_max(wanted_mps2, -most);
    double front_static = GRAVITY_MPS2 * axles->rear_m / wheelbase_m;
    double rear_static = GRAVITY_MPS2 * axles->front_m / wheelbase_m;
    double transfer = height_m / wheelbase_m;
    if (along > 0.0) {
        /* Driven wheels at the rear: along <= share (rear_static + along transfer). */
        double share = SINGLE_TRACK_BRAKE_SHARE * axles->friction;
        along = dmath_min(along, share * rear_static / dmath_max(1.0 - share * transfer, 0.1));
    }
    axles->load_front_mps2 = dmath_max(front_static - along * transfer, 0.0);
    axles->load_rear_mps2 = dmath_max(rear_static + along * transfer, 0.0);
    axles->along_front_mps2 = along < 0.0 ? along * axles->load_front_mps2 / GRAVITY_MPS2 : 0.0;
    axles->along_rear_mps2 = along - axles->along_front_mps2;
}

/* Lateral force per mass of an axle at a slip tangent, against the slip. */
static double brush_tyre(double slip_tan, double load_mps2, double along_mps2, double friction)
{
    double grip = friction * load_mps2;
    double left2 = grip * grip - along_mps2 * along_mps2;
    double most = left2 > 0.0 ? sqrt(left2) : 0.0;
    double stiffness = SINGLE_TRACK_STIFFNESS * grip;
    double pull = stiffness * fabs(slip_tan);
    double force = most;
    if (pull < 3.0 * most) {
        force = pull - pull * pull / (3.0 * most) + pull * pull * pull / (27.0 * most * most);
    }
    return slip_tan > 0.0 ? -force : force;
}

static void derive(const struct axle_forces *axles, const double state[STATES], double out[STATES])
{
    double s;
    double c;
    double along = state[ALONG];
    double turn = state[YAW_RATE];
    /* In each wheel's own frame, so that a locked steering angle is no slip angle. */
    double front_side = state[SIDE] + axles->front_m * turn;
    double front_along = axles->steer_cos * along + axles->steer_sin * front_side;
    double front_across = axles->steer_cos * front_side - axles->steer_sin * along;
    double front_slip = front_across / dmath_max(front_along, SINGLE_TRACK_SLOW_MPS / 2);
    double rear_slip =
        (state[SIDE] - axles->rear_m * turn) / dmath_max(along, SINGLE_TRACK_SLOW_MPS / 2);
    double front =
        brush_tyre(front_slip, axles->load_front_mps2, axles->along_front_mps2, axles->friction);
    double rear =
        brush_tyre(rear_slip, axles->load_rear_mps2, axles->along_rear_mps2, axles->friction);
    double front_x = axles->along_front_mps2 * axles->steer_cos - front * axles->steer_sin;
    double front_y = axles->along_front_mps2 * axles->steer_sin + front * axles->steer_cos;
    dmath_sincos(state[HEADING], &s, &c);
    out[X] = along * c - state[SIDE] * s;
    out[Y] = along * s + state[SIDE] * c;
    out[HEADING] = turn;
    out[ALONG] = front_x + axles->along_rear_mps2 + state[SIDE] * turn;
    out[SIDE] = front_y + rear - along * turn;
    out[YAW_RATE] = (axles->front_m * front_y - axles->rear_m * rear) / axles->gyration2_m2;
}

static void runge_kutta(const struct axle_forces *axles, double dt_s, double state[STATES])
{
    double k[4][STATES];
    double at[STATES];
    derive(axles, state, k[0]);
    for (int stage = 1; stage < 4; stage++) {
        double reach_s = stage == 3 ? dt_s : dt_s / 2;
        for (int i = 0; i < STATES; i++) {
            at[i] = state[i] + reach_s * k[stage - 1][i];
        }
        derive(axles, at, k[stage]);
    }
    for (int i = 0; i < STATES; i++) {
        state[i] += dt_s / 6.0 * (k[0][i] + 2.0 * k[1][i] + 2.0 * k[2][i] + k[3][i]);
    }
}

/* Below the speed at which slip angles mean anything: the kinematic bicycle. */
static void roll(const struct axle_forces *axles, double dt_s, double state[STATES])
{
    double s;
    double c;
    double wheelbase_m = axles->front_m + axles->rear_m;
    double accel = axles->along_front_mps2 + axles->along_rear_mps2;
    double before = state[ALONG];
    double after = before + accel * dt_s;
    double distance_m = 0.5 * (before + dmath_max(after, 0.0)) * dt_s;
    if (after <= 0.0) {
        after = 0.0;
        distance_m = accel < 0.0 ? before * before / (-2.0 * accel) : 0.0;
    }
    double curvature = axles->steer_sin / axles->steer_cos / wheelbase_m;
    double turned = curvature * distance_m;
    double side_m = axles->rear_m * curvature * distance_m;
    dmath_sincos(state[HEADING] + 0.5 * turned, &s, &c);
    state[X] += distance_m * c - side_m * s;
    state[Y] += distance_m * s + side_m * c;
    state[HEADING] += turned;
    state[ALONG] = after;
    state[YAW_RATE] = after * curvature;
    state[SIDE] = axles->rear_m * state[YAW_RATE];
}

void single_track_step(struct ego_state *ego, struct ego_motion *motion,
                       const struct action *action, double wheelbase_m, double friction,
                       uint32_t substeps)
{
    CHECK(isfinite(action->accel_mps2) && isfinite(action->steer_rad) && substeps > 0);
    double dt_s = TICK_S / substeps;
    double turn = SINGLE_TRACK_STEER_RATE_RPS * dt_s;
    double lag = 1.0 - dmath_exp(-dt_s / EGO_ACCEL_TIME_CONSTANT_S);
    double mean_lag = 1.0 - lag * EGO_ACCEL_TIME_CONSTANT_S / dt_s;
    double grip_mps2 = friction * GRAVITY_MPS2;
    double command_mps2 = dmath_clamp(action->accel_mps2, -grip_mps2, EGO_ACCEL_MAX_MPS2);
    double steer_rad = dmath_clamp(action->steer_rad, -EGO_STEER_MAX_RAD, EGO_STEER_MAX_RAD);
    double state[STATES] = {ego->pose.x_m,  ego->pose.y_m,    ego->pose.heading_rad,
                            ego->speed_mps, motion->side_mps, ego->yaw_rate_rps};
    struct axle_forces axles = {.front_m = SINGLE_TRACK_FRONT_SHARE * wheelbase_m,
                                .rear_m = (1.0 - SINGLE_TRACK_FRONT_SHARE) * wheelbase_m,
                                .gyration2_m2 = SINGLE_TRACK_GYRATION2 * wheelbase_m * wheelbase_m,
                                .friction = friction};
    double last[STATES] = {0};
    for (uint32_t i = 0; i < substeps; i++) {
        ego->steer_rad += dmath_clamp(steer_rad - ego->steer_rad, -turn, turn);
        double behind_mps2 = command_mps2 - motion->actuator_mps2;
        dmath_sincos(ego->steer_rad, &axles.steer_sin, &axles.steer_cos);
        share_forces(&axles, wheelbase_m, motion->actuator_mps2 + behind_mps2 * mean_lag);
        motion->actuator_mps2 += behind_mps2 * lag;
        if (state[ALONG] < SINGLE_TRACK_SLOW_MPS) {
            roll(&axles, dt_s, state);
        } else {
            runge_kutta(&axles, dt_s, state);
        }
        state[ALONG] = dmath_clamp(state[ALONG], 0.0, EGO_SPEED_MAX_MPS);
    }
    derive(&axles, state, last);
    ego->accel_mps2 = (state[ALONG] - ego->speed_mps) / TICK_S;
    ego->pose = (struct pose){state[X], state[Y], dmath_wrap_angle(state[HEADING])};
    ego->speed_mps = state[ALONG];
    ego->yaw_rate_rps = state[YAW_RATE];
    motion->side_mps = state[SIDE];
    ego->lat_accel_mps2 = state[ALONG] < SINGLE_TRACK_SLOW_MPS
                              ? state[ALONG] * state[YAW_RATE]
                              : last[SIDE] + state[ALONG] * state[YAW_RATE];
}
