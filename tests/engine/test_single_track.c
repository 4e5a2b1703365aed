/*
 * Goal: ego as a dynamic single-track model does what the equations say that it is after, and dead
 * times delay commands by just their length.
 * Method: closed forms (steady yaw gain, the linear step response, stopping distance, load of an
 * axle), the order of the integrator, and bounds under random actions and frictions.
 */
#include "base/dmath.h"
#include "base/rng.h"
#include "base/units.h"
#include "engine/traffic/single_track.h"
#include "tests/harness.h"

#include <math.h>

#define WHEELBASE_M 2.5789128
#define FRONT_M (SINGLE_TRACK_FRONT_SHARE * WHEELBASE_M)
#define REAR_M (WHEELBASE_M - FRONT_M)
#define HEIGHT_M (SINGLE_TRACK_HEIGHT_SHARE * WHEELBASE_M)

static struct ego_state at_speed(double speed)
{
    return (struct ego_state){.speed_mps = speed};
}

static void run(struct ego_state *ego, struct ego_motion *motion, double accel, double steer,
                double friction, int ticks)
{
    struct action action = {accel, steer};
    for (int i = 0; i < ticks; i++) {
        single_track_step(ego, motion, &action, WHEELBASE_M, friction, SINGLE_TRACK_SUBSTEPS);
    }
}

/* Vehicle 2's axles have tyres of one stiffness per load, so its understeer gradient is 0 without
 * acceleration: the gain is v / wheelbase. */
static void the_steady_yaw_gain_is_neutral(void)
{
    for (double v = 5.0; v <= 35.0; v += 5.0) {
        struct ego_state ego = at_speed(v);
        struct ego_motion motion = {0};
        double steer = 0.5 / (v * v); /* about 0.2 m/s2 */
        run(&ego, &motion, 0.0, steer, 1.0489, 60);
        EXPECT_NEAR(ego.yaw_rate_rps / steer, ego.speed_mps / WHEELBASE_M, 0.01 * v / WHEELBASE_M);
        EXPECT_NEAR(ego.lat_accel_mps2, ego.speed_mps * ego.yaw_rate_rps, 0.002);
        /* Sideslip of the centre: rear_m yaw / v less the rear axle's slip angle. */
        double slip = REAR_M * ego.yaw_rate_rps / v -
                      ego.lat_accel_mps2 / (SINGLE_TRACK_STIFFNESS * 1.0489 * GRAVITY_MPS2);
        EXPECT_NEAR(motion.side_mps / v, slip, 2e-4);
    }
}

/* The linear single-track model under a step of steering, in closed form by its characteristic
 * polynomial: yaw rate r of  r'' + 2 d w r' + w^2 r = w^2 r_steady,  with r'(0) from the front
 * axle's first push. */
static void a_small_step_steer_answers_as_the_linear_model(void)
{
    const double mu = 1.0489;
    const double v = 25.0;
    const double delta = 0.002;
    double c = SINGLE_TRACK_STIFFNESS * mu * GRAVITY_MPS2 / WHEELBASE_M;
    double front = c * REAR_M; /* stiffness per mass */
    double rear = c * FRONT_M;
    double inertia = SINGLE_TRACK_GYRATION2 * WHEELBASE_M * WHEELBASE_M;
    double a11 = -(front + rear) / v;
    double a12 = -v - (front * FRONT_M - rear * REAR_M) / v;
    double a21 = -(front * FRONT_M - rear * REAR_M) / (inertia * v);
    double a22 = -(front * FRONT_M * FRONT_M + rear * REAR_M * REAR_M) / (inertia * v);
    double w2 = a11 * a22 - a12 * a21;
    double half = -(a11 + a22) / 2;
    double steady = v / WHEELBASE_M * delta;
    double first = FRONT_M * front / inertia * delta; /* r'(0) */
    struct ego_state ego = at_speed(v);
    struct ego_motion motion = {0};
    ego.steer_rad = delta; /* the wheels are there at once */
    for (int tick = 1; tick <= 20; tick++) {
        run(&ego, &motion, 0.0, delta, mu, 1);
        double t = tick * TICK_S;
        double root2 = half * half - w2;
        double expected;
        if (root2 < 0) {
            double w = sqrt(-root2);
            expected = steady + exp(-half * t) * (-steady * cos(w * t) +
                                                  (first - half * steady) / w * sin(w * t));
        } else {
            double q = sqrt(root2);
            expected = steady + exp(-half * t) * (-steady * cosh(q * t) +
                                                  (first - half * steady) / q * sinh(q * t));
        }
        EXPECT_NEAR(ego.yaw_rate_rps, expected, 0.01 * steady);
    }
}

static void stopping_distance_is_that_of_the_friction(void)
{
    for (double friction = 0.2; friction <= 1.05; friction += 0.2) {
        for (double v = 10.0; v <= 40.0; v += 10.0) {
            struct ego_state ego = at_speed(v);
            double most = SINGLE_TRACK_BRAKE_SHARE * friction * GRAVITY_MPS2;
            struct ego_motion motion = {.actuator_mps2 = -friction * GRAVITY_MPS2};
            run(&ego, &motion, -20.0, 0.0, friction, 400);
            EXPECT(ego.speed_mps == 0.0 && ego.yaw_rate_rps == 0.0);
            EXPECT_NEAR(ego.pose.x_m, v * v / (2 * most), 1e-3 * v);
            EXPECT(ego.pose.y_m == 0.0);
        }
    }
    /* 100 km/h on a dry road stays within what UN Regulation 13-H asks of every car,
     * 0.1 v + 0.006 v^2 with v in km/h, the lag of the brakes included. */
    struct ego_state ego = at_speed(100 / 3.6);
    struct ego_motion motion = {0};
    run(&ego, &motion, -20.0, 0.0, 1.0, 200);
    EXPECT(ego.pose.x_m < 0.1 * 100 + 0.006 * 100 * 100);
    EXPECT_NEAR(ego.pose.x_m, 100 / 3.6 * (100 / 3.6) / (2 * 9.614) + 0.2 * 100 / 3.6, 1.0);
}

/* One short step from straight on: the push of the front axle grows with the load on it. */
static void braking_loads_the_front_axle(void)
{
    double yaw_rate[2];
    for (int k = 0; k < 2; k++) {
        struct ego_state ego = at_speed(20);
        struct ego_motion motion = {.actuator_mps2 = k == 0 ? 0.0 : -4.0};
        struct action action = {motion.actuator_mps2, 0.001};
        ego.steer_rad = 0.001;
        single_track_step(&ego, &motion, &action, WHEELBASE_M, 1.0, 1000);
        yaw_rate[k] = ego.yaw_rate_rps;
    }
    /* Over a whole tick the rear axle answers as well: between no gain and that of the load. */
    double load = (GRAVITY_MPS2 * REAR_M + 4.0 * HEIGHT_M) / (GRAVITY_MPS2 * REAR_M);
    EXPECT(yaw_rate[1] / yaw_rate[0] > 1.02 && yaw_rate[1] / yaw_rate[0] < 1.15 * load);
}

static void the_integrator_is_of_fourth_order(void)
{
    double error[3];
    struct ego_state best = {0};
    for (int k = 3; k >= 0; k--) {
        const uint32_t substeps[4] = {8, 16, 32, 512};
        struct ego_state ego = at_speed(20);
        struct ego_motion motion = {.actuator_mps2 = -3.0};
        struct action action = {-3.0, 0.03};
        ego.steer_rad = 0.03; /* inputs stand still, so that only the integrator errs */
        for (int i = 0; i < 5; i++) {
            single_track_step(&ego, &motion, &action, WHEELBASE_M, 1.0, substeps[k]);
        }
        if (k == 3) {
            best = ego;
        } else {
            error[k] = hypot(ego.pose.x_m - best.pose.x_m, ego.pose.y_m - best.pose.y_m);
        }
    }
    EXPECT(error[0] / error[1] > 10.0);
    EXPECT(error[1] < 1e-5);
    EXPECT(error[2] < error[1]);
}

static void tyres_saturate(void)
{
    for (uint32_t seed = 0; seed < 30; seed++) {
        double friction = 0.1 + 1.0 * rng_uniform(seed, RNG_STREAM_TEST, 0, 9);
        double grip = friction * GRAVITY_MPS2;
        struct ego_state ego = at_speed(40.0 * rng_uniform(seed, RNG_STREAM_TEST, 0, 8));
        struct ego_motion motion = {0};
        for (uint32_t tick = 0; tick < 300; tick++) {
            struct ego_state before = ego;
            double held = tick / 10;
            run(&ego, &motion, 24.0 * rng_uniform(seed, RNG_STREAM_TEST, (uint64_t)held, 1) - 16.0,
                2.0 * rng_uniform(seed, RNG_STREAM_TEST, (uint64_t)held, 2) - 1.0, friction, 1);
            EXPECT(isfinite(ego.pose.x_m) && isfinite(ego.yaw_rate_rps));
            EXPECT(ego.speed_mps >= 0.0 && ego.speed_mps <= EGO_SPEED_MAX_MPS);
            EXPECT(fabs(ego.steer_rad - before.steer_rad) <=
                   SINGLE_TRACK_STEER_RATE_RPS * TICK_S + 1e-12);
            if (ego.speed_mps > SINGLE_TRACK_SLOW_MPS) {
                EXPECT(fabs(ego.lat_accel_mps2) <= grip + 1e-9);
            }
        }
    }
}

/* On ice the front slides: more steering does not turn ego more. */
static void a_slippery_bend_is_left_wide(void)
{
    struct ego_state dry = at_speed(15);
    struct ego_state ice = at_speed(15);
    struct ego_motion dry_motion = {0};
    struct ego_motion ice_motion = {0};
    run(&dry, &dry_motion, 0.0, 0.05, 1.0, 20);
    run(&ice, &ice_motion, 0.0, 0.05, 0.2, 20);
    EXPECT(ice.pose.y_m < 0.7 * dry.pose.y_m);
    EXPECT(fabs(ice.lat_accel_mps2) <= 0.2 * GRAVITY_MPS2);
}

static void ego_stops_and_starts_again(void)
{
    struct ego_state ego = at_speed(6);
    struct ego_motion motion = {0};
    run(&ego, &motion, -5.0, 0.2, 1.0, 40);
    struct ego_state stopped = ego;
    EXPECT(ego.speed_mps == 0.0 && ego.yaw_rate_rps == 0.0 && ego.lat_accel_mps2 == 0.0);
    run(&ego, &motion, -5.0, 0.2, 1.0, 20);
    EXPECT(ego.pose.x_m == stopped.pose.x_m && ego.pose.y_m == stopped.pose.y_m);
    run(&ego, &motion, 2.0, 0.0, 1.0, 40);
    EXPECT(ego.speed_mps > 5.0);
}

/* Ego's jump in lateral acceleration from one tick to the next, under a full turn of the wheel. */
static void turning_in_takes_time(void)
{
    struct ego_state kinematic = at_speed(15);
    struct ego_state dynamic = at_speed(15);
    struct ego_motion motion = {0};
    double actuator = 0.0;
    struct action action = {0.0, 0.1};
    ego_model_step(&kinematic, &actuator, &action, WHEELBASE_M, 1.0);
    run(&dynamic, &motion, 0.0, 0.1, 1.0, 1);
    EXPECT(fabs(dynamic.lat_accel_mps2) < 0.6 * fabs(kinematic.lat_accel_mps2));
}

static void dead_times_delay_by_their_length(void)
{
    for (int model = 0; model < DYNAMICS_COUNT; model++) {
        double stopped_m[4];
        for (int k = 0; k < 4; k++) {
            struct ego record = {.wheelbase_m = WHEELBASE_M,
                                 .dynamics = (enum dynamics)model,
                                 .brake_delay_s = k * TICK_S};
            struct ego_state ego = at_speed(20);
            struct ego_motion motion = {0};
            struct action action = {-6.0, 0.0};
            for (int i = 0; i < 100; i++) {
                ego_motion_step(&ego, &motion, &record, &action, 1.0);
            }
            stopped_m[k] = ego.pose.x_m;
            EXPECT_NEAR(stopped_m[k] - stopped_m[0], 20 * k * TICK_S, 1e-9);
        }
        struct ego record = {
            .wheelbase_m = WHEELBASE_M, .dynamics = (enum dynamics)model, .steer_delay_s = 0.3};
        struct ego_state ego = at_speed(20);
        struct ego_motion motion = {0};
        struct action action = {0.0, 0.01};
        for (int i = 0; i < 4; i++) {
            EXPECT(ego.steer_rad == 0.0);
            ego_motion_step(&ego, &motion, &record, &action, 1.0);
        }
        EXPECT_NEAR(ego.steer_rad, 0.01, 1e-12);
    }
}

int main(void)
{
    return TEST_RUN(
        TEST(the_steady_yaw_gain_is_neutral), TEST(a_small_step_steer_answers_as_the_linear_model),
        TEST(stopping_distance_is_that_of_the_friction), TEST(braking_loads_the_front_axle),
        TEST(the_integrator_is_of_fourth_order), TEST(tyres_saturate),
        TEST(a_slippery_bend_is_left_wide), TEST(ego_stops_and_starts_again),
        TEST(turning_in_takes_time), TEST(dead_times_delay_by_their_length));
}
