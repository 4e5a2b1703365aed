/*
 * Goal: ego moves as a kinematic bicycle with limited, lagging actuators on tyres with a friction
 * circle.
 * Method: closed forms (stopping distance, turning radius, step response) and bounds under random
 * actions and frictions.
 */
#include "base/dmath.h"
#include "base/rng.h"
#include "base/units.h"
#include "engine/traffic/ego_model.h"
#include "tests/harness.h"

#define WHEELBASE_M 2.8

static struct ego_state at_speed(double speed)
{
    return (struct ego_state){.speed_mps = speed};
}

static void run(struct ego_state *ego, double *actuator, double accel, double steer,
                double friction, int ticks)
{
    struct action action = {accel, steer};
    for (int i = 0; i < ticks; i++) {
        ego_model_step(ego, actuator, &action, WHEELBASE_M, friction);
    }
}

static void lag_constant_matches_its_formula(void)
{
    double steps = TICK_S / EGO_SUBSTEPS / EGO_ACCEL_TIME_CONSTANT_S;
    EXPECT_NEAR(EGO_ACCEL_SHARE, 1.0 - dmath_exp(-steps), 1e-15);
    EXPECT_NEAR(EGO_ACCEL_MEAN_SHARE, 1.0 - EGO_ACCEL_SHARE / steps, 1e-15);
}

static void braking_distance_is_v2_over_2a(void)
{
    for (double v = 5.0; v <= 40.0; v += 5.0) {
        for (double decel = 2.0; decel <= 8.0; decel += 2.0) {
            struct ego_state ego = at_speed(v);
            double actuator = -decel; /* brakes already bite: the plain formula */
            run(&ego, &actuator, -decel, 0.0, 1.0, 400);
            EXPECT(ego.speed_mps == 0.0);
            EXPECT_NEAR(ego.pose.x_m, v * v / (2 * decel), 1e-6);
            /* From rolling, the lag costs its time constant: v tau - a tau^2 / 2. A sub-step's
             * distance, by the mean of its ends' speeds, is a tau / 12 x (its length / tau)^2 off.
             */
            ego = at_speed(v);
            actuator = 0.0;
            run(&ego, &actuator, -decel, 0.0, 1.0, 400);
            double tau = EGO_ACCEL_TIME_CONSTANT_S;
            double expected = v * v / (2 * decel) + v * tau - decel * tau * tau / 2;
            EXPECT_NEAR(ego.pose.x_m, expected, 0.01);
        }
    }
}

static void stop_is_exact_and_stays(void)
{
    struct ego_state ego = at_speed(3.0);
    double actuator = 0.0;
    run(&ego, &actuator, -5.0, 0.2, 1.0, 30);
    struct ego_state stopped = ego;
    EXPECT(ego.speed_mps == 0.0 && ego.yaw_rate_rps == 0.0 && ego.lat_accel_mps2 == 0.0);
    run(&ego, &actuator, -9.0, 0.2, 1.0, 50);
    EXPECT(ego.pose.x_m == stopped.pose.x_m && ego.pose.heading_rad == stopped.pose.heading_rad);
    EXPECT(ego.accel_mps2 == 0.0);
    run(&ego, &actuator, 2.0, 0.2, 1.0, 20);
    EXPECT(ego.speed_mps > 2.0); /* and it starts again */
}

static void turning_radius_is_the_bicycles(void)
{
    for (double steer = -0.5; steer <= 0.5; steer += 0.1) {
        if (fabs(steer) < 0.05) {
            continue;
        }
        struct ego_state ego = at_speed(4.0);
        double actuator = 0.0;
        run(&ego, &actuator, 0.0, steer, 1.0, 10); /* the wheels get there */
        EXPECT_NEAR(ego.steer_rad, steer, 1e-12);
        double beta = atan(0.5 * tan(steer));
        double radius = WHEELBASE_M / 2 / sin(beta);
        EXPECT_NEAR(ego.yaw_rate_rps, 4.0 / radius, 1e-9);
        /* Three points of the path lie on a circle of that radius. */
        struct vec2 p[3];
        for (int i = 0; i < 3; i++) {
            p[i] = (struct vec2){ego.pose.x_m, ego.pose.y_m};
            run(&ego, &actuator, 0.0, steer, 1.0, 10);
        }
        double a = hypot(p[1].x_m - p[0].x_m, p[1].y_m - p[0].y_m);
        double b = hypot(p[2].x_m - p[1].x_m, p[2].y_m - p[1].y_m);
        double c = hypot(p[2].x_m - p[0].x_m, p[2].y_m - p[0].y_m);
        double area2 = (p[1].x_m - p[0].x_m) * (p[2].y_m - p[0].y_m) -
                       (p[1].y_m - p[0].y_m) * (p[2].x_m - p[0].x_m);
        EXPECT_NEAR(a * b * c / (2 * area2), radius, 0.01 * fabs(radius));
        EXPECT_NEAR(ego.speed_mps, 4.0, 1e-12);
    }
}

static void tyres_and_actuators_are_limited(void)
{
    for (uint32_t seed = 0; seed < 20; seed++) {
        double friction = 0.1 + 1.0 * rng_uniform(seed, RNG_STREAM_TEST, 0, 9);
        struct ego_state ego = at_speed(40.0 * rng_uniform(seed, RNG_STREAM_TEST, 0, 8));
        double actuator = 0.0;
        for (uint32_t tick = 0; tick < 300; tick++) {
            struct ego_state before = ego;
            struct action action = {40.0 * rng_uniform(seed, RNG_STREAM_TEST, tick, 1) - 20.0,
                                    2.0 * rng_uniform(seed, RNG_STREAM_TEST, tick, 2) - 1.0};
            ego_model_step(&ego, &actuator, &action, WHEELBASE_M, friction);
            double grip = friction * GRAVITY_MPS2;
            EXPECT(ego.accel_mps2 <= EGO_ACCEL_MAX_MPS2 + 1e-9);
            EXPECT(ego.accel_mps2 >= -grip - 1e-9);
            /* lat_accel is taken at the end of a sub-step that gained speed: a few percent */
            EXPECT(fabs(ego.lat_accel_mps2) <= 1.05 * grip + 0.3);
            EXPECT(fabs(ego.steer_rad) <= EGO_STEER_MAX_RAD + 1e-12);
            EXPECT(fabs(ego.steer_rad - before.steer_rad) <=
                   EGO_STEER_RATE_MAX_RPS * TICK_S + 1e-12);
            EXPECT(ego.speed_mps >= 0.0 && ego.speed_mps <= EGO_SPEED_MAX_MPS);
        }
    }
}

static void ice_lengthens_the_stop_and_widens_the_turn(void)
{
    struct ego_state dry = at_speed(15.0);
    struct ego_state ice = at_speed(15.0);
    double dry_actuator = 0.0;
    double ice_actuator = 0.0;
    run(&dry, &dry_actuator, -9.0, 0.0, 1.0, 300);
    run(&ice, &ice_actuator, -9.0, 0.0, 0.2, 300);
    EXPECT_NEAR(ice.pose.x_m, 15.0 * 15.0 / (2 * 0.2 * GRAVITY_MPS2) + 15.0 * 0.2, 1.0);
    EXPECT(ice.pose.x_m > 3.0 * dry.pose.x_m);
    dry = at_speed(15.0);
    ice = at_speed(15.0);
    dry_actuator = ice_actuator = 0.0;
    run(&dry, &dry_actuator, 0.0, 0.05, 1.0, 20);
    run(&ice, &ice_actuator, 0.0, 0.05, 0.2, 20);
    EXPECT(ice.pose.heading_rad < 0.7 * dry.pose.heading_rad);
}

static void acceleration_lags_by_its_time_constant(void)
{
    struct ego_state ego = at_speed(10.0);
    double actuator = 0.0;
    run(&ego, &actuator, 2.0, 0.0, 1.0, 2); /* one time constant */
    EXPECT_NEAR(actuator, 2.0 * (1.0 - exp(-1.0)), 1e-9);
    run(&ego, &actuator, 2.0, 0.0, 1.0, 20);
    EXPECT_NEAR(ego.accel_mps2, 2.0, 1e-3);
}

int main(void)
{
    return TEST_RUN(TEST(lag_constant_matches_its_formula), TEST(braking_distance_is_v2_over_2a),
                    TEST(stop_is_exact_and_stays), TEST(turning_radius_is_the_bicycles),
                    TEST(tyres_and_actuators_are_limited),
                    TEST(ice_lengthens_the_stop_and_widens_the_turn),
                    TEST(acceleration_lags_by_its_time_constant));
}
