/*
 * Goal: what stands between planner and car: the delay line, the ego overrides, dark sensors.
 * Method: the delay line against a plain model (every answer with its due time, the newest issued
 * that is due wins) under random latencies; overrides driven through a kinematic point.
 */
#include "base/rng.h"
#include "base/units.h"
#include "tests/worker/jobs.h"
#include "worker/run/actuation.h"

enum { TICKS = 300 };

struct bench {
    struct jobs_scenario jobs;
    const struct route *route;
    struct scene scene;
    struct actuation actuation;
};

static void bench_init(struct bench *b, uint64_t seed)
{
    jobs_scenario_init(&b->jobs, "stack", TICKS);
    jobs_prepared(&b->jobs);
    b->route = prepared_route(b->jobs.prepared);
    memset(&b->scene, 0, sizeof b->scene);
    b->scene.ego.pose = (struct pose){50, 3.5, 0};
    b->scene.ego.speed_mps = 15;
    actuation_init(&b->actuation, seed);
}

static struct action drive(struct bench *b, double accel_mps2)
{
    const struct action answer = {accel_mps2, 0.001 * accel_mps2};
    double s_m =
        route_project(b->route, (struct vec2){b->scene.ego.pose.x_m, b->scene.ego.pose.y_m}, -1.0)
            .s_m;
    return actuation_drive(&b->actuation, &answer, &b->scene, b->route, 2.8, s_m);
}

static void without_latency_the_answer_drives_at_once(void)
{
    struct bench b;
    bench_init(&b, 1);
    for (uint32_t t = 0; t < TICKS; t++, b.scene.tick++) {
        struct action action = drive(&b, 0.01 * t);
        EXPECT_NEAR(action.accel_mps2, 0.01 * t, 0);
        EXPECT_NEAR(action.steer_rad, 0.001 * (0.01 * t), 0);
    }
    jobs_scenario_finish(&b.jobs);
}

/* Exact arrival without jitter: ceil(latency / 100 ms) ticks later. */
static void a_fixed_latency_delays_by_whole_ticks(void)
{
    static const struct {
        double latency_ms;
        uint32_t ticks;
    } cases[] = {{0, 0},   {1, 1},   {99, 1},  {100, 1},   {101, 2},
                 {120, 2}, {200, 2}, {250, 3}, {1000, 10}, {1001, 11}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bench b;
        bench_init(&b, 1);
        const struct intervention what = {.kind = INTERVENE_STACK_LATENCY,
                                          .latency_ms = cases[i].latency_ms};
        EXPECT(actuation_intervene(&b.actuation, &what, &b.scene, b.route));
        for (uint32_t t = 0; t < 60; t++, b.scene.tick++) {
            struct action action = drive(&b, 1.0 + t);
            EXPECT_NEAR(action.accel_mps2, t < cases[i].ticks ? 0.0 : 1.0 + t - cases[i].ticks, 0);
        }
        jobs_scenario_finish(&b.jobs);
    }
}

/* The action at tick t was issued no later than t and no earlier than the bounds allow, never goes
 * back to an older answer, and is the same whenever the actuation model is copied half way. */
static void jitter_keeps_its_bounds_and_its_order(void)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct bench b;
        bench_init(&b, seed);
        double latency_ms = 500.0 * rng_uniform(seed, RNG_STREAM_TEST, 0, 0);
        double jitter_ms = 300.0 * rng_uniform(seed, RNG_STREAM_TEST, 1, 0);
        const struct intervention what = {
            .kind = INTERVENE_STACK_LATENCY, .latency_ms = latency_ms, .jitter_ms = jitter_ms};
        EXPECT(actuation_intervene(&b.actuation, &what, &b.scene, b.route));
        double last = -1.0;
        double most_ticks = (latency_ms + jitter_ms) / 100.0 + 1.0;
        for (uint32_t t = 0; t < TICKS; t++, b.scene.tick++) {
            struct actuation copy = b.actuation;
            struct action action = drive(&b, (double)t);
            struct actuation after = b.actuation;
            b.actuation = copy;
            EXPECT_NEAR(drive(&b, (double)t).accel_mps2, action.accel_mps2, 0);
            EXPECT(memcmp(&b.actuation.held, &after.held, sizeof after.held) == 0);
            EXPECT(action.accel_mps2 >= last && action.accel_mps2 <= (double)t);
            if ((double)t > most_ticks) {
                EXPECT((double)t - action.accel_mps2 <= most_ticks);
                EXPECT((double)t - action.accel_mps2 + 1.0 >= (latency_ms - jitter_ms) / 100.0);
            }
            last = action.accel_mps2;
        }
        jobs_scenario_finish(&b.jobs);
    }
}

/* The longest latency that scenarios may ask for still arrives; beyond it nothing is corrupted. */
static void the_delay_line_holds_the_longest_latency(void)
{
    for (int beyond = 0; beyond < 2; beyond++) {
        struct bench b;
        bench_init(&b, 1);
        const struct intervention what = {.kind = INTERVENE_STACK_LATENCY,
                                          .latency_ms = beyond ? 25000.0 : 20000.0};
        EXPECT(actuation_intervene(&b.actuation, &what, &b.scene, b.route));
        for (uint32_t t = 0; t < 2 * TICKS; t++, b.scene.tick++) {
            double expected = t < 200 || beyond ? 0.0 : 1.0 + t - 200;
            EXPECT_NEAR(drive(&b, 1.0 + t).accel_mps2, expected, 0);
            EXPECT(b.actuation.pending_count <= ACTUATION_DELAY_TICKS_MAX);
        }
        jobs_scenario_finish(&b.jobs);
    }
}

static void latency_ends_when_its_time_is_over(void)
{
    struct bench b;
    bench_init(&b, 1);
    b.scene.tick = 7;
    const struct intervention what = {
        .kind = INTERVENE_STACK_LATENCY, .latency_ms = 300.0, .duration_s = 0.5};
    EXPECT(actuation_intervene(&b.actuation, &what, &b.scene, b.route));
    for (uint32_t t = 7; t < 30; t++, b.scene.tick++) {
        double expected = t < 10 ? 0.0 : t < 12 ? t - 3 : t;
        EXPECT_NEAR(drive(&b, (double)t).accel_mps2, expected, 0);
    }
    jobs_scenario_finish(&b.jobs);
}

static void overrides_replace_the_planner_until_it_is_back(void)
{
    static const struct action given[] = {{1.0, 0.1}, {2.0, 0.2}};
    struct bench b;
    bench_init(&b, 1);
    const struct intervention actions = {.kind = INTERVENE_EGO_ACTIONS,
                                         .actions = (struct action *)(uintptr_t)given,
                                         .action_count = 2};
    const struct intervention brake = {.kind = INTERVENE_EGO_BRAKE, .decel_mps2 = 6.0};
    const struct intervention planner = {.kind = INTERVENE_EGO_PLANNER};
    EXPECT_NEAR(drive(&b, 0.5).accel_mps2, 0.5, 0);
    b.scene.tick++;
    EXPECT(actuation_intervene(&b.actuation, &actions, &b.scene, b.route));
    for (uint32_t i = 0; i < 4; i++, b.scene.tick++) {
        struct action action = drive(&b, 0.5);
        EXPECT_NEAR(action.accel_mps2, given[i < 2 ? i : 1].accel_mps2, 0);
        EXPECT_NEAR(action.steer_rad, given[i < 2 ? i : 1].steer_rad, 0);
    }
    EXPECT(actuation_intervene(&b.actuation, &brake, &b.scene, b.route));
    EXPECT_NEAR(drive(&b, 0.5).accel_mps2, -6.0, 0);
    b.scene.tick++;
    EXPECT(actuation_intervene(&b.actuation, &planner, &b.scene, b.route));
    EXPECT_NEAR(drive(&b, 0.25).accel_mps2, 0.25, 0);
    jobs_scenario_finish(&b.jobs);
}

/* A kinematic point under swerve, brake and maintain ends where the intervention says. */
static double settle_y_m(struct bench *b, const struct intervention *what, double *speed_mps)
{
    EXPECT(actuation_intervene(&b->actuation, what, &b->scene, b->route));
    for (uint32_t t = 0; t < 60; t++, b->scene.tick++) {
        struct action action = drive(b, 3.0);
        struct ego_state *ego = &b->scene.ego;
        ego->speed_mps = fmax(0.0, ego->speed_mps + action.accel_mps2 * TICK_S);
        ego->pose.heading_rad += ego->speed_mps * tan(action.steer_rad) / 2.8 * TICK_S;
        ego->pose.x_m += ego->speed_mps * cos(ego->pose.heading_rad) * TICK_S;
        ego->pose.y_m += ego->speed_mps * sin(ego->pose.heading_rad) * TICK_S;
    }
    *speed_mps = b->scene.ego.speed_mps;
    return b->scene.ego.pose.y_m;
}

static void overrides_do_what_they_are_called(void)
{
    const struct intervention swerve = {
        .kind = INTERVENE_EGO_SWERVE, .offset_m = 2.0, .duration_s = 1.5};
    const struct intervention right = {
        .kind = INTERVENE_EGO_SWERVE, .offset_m = -1.0, .duration_s = 2.0};
    const struct intervention brake = {.kind = INTERVENE_EGO_BRAKE, .decel_mps2 = 5.0};
    const struct intervention hold = {.kind = INTERVENE_EGO_MAINTAIN};
    double speed_mps;
    struct bench b;
    bench_init(&b, 1);
    EXPECT_NEAR(settle_y_m(&b, &swerve, &speed_mps), 5.5, 0.2);
    EXPECT_NEAR(speed_mps, 15.0, 0.1);
    jobs_scenario_finish(&b.jobs);
    bench_init(&b, 1);
    EXPECT_NEAR(settle_y_m(&b, &right, &speed_mps), 2.5, 0.2);
    jobs_scenario_finish(&b.jobs);
    bench_init(&b, 1);
    EXPECT_NEAR(settle_y_m(&b, &brake, &speed_mps), 3.5, 0.1);
    EXPECT_NEAR(speed_mps, 0.0, 0);
    jobs_scenario_finish(&b.jobs);
    bench_init(&b, 1);
    EXPECT_NEAR(settle_y_m(&b, &hold, &speed_mps), 3.5, 0.1);
    EXPECT_NEAR(speed_mps, 15.0, 0.01);
    jobs_scenario_finish(&b.jobs);
}

static void sensors_are_dark_for_as_long_as_asked(void)
{
    struct bench b;
    bench_init(&b, 1);
    b.scene.tick = 10;
    const struct intervention lidar = {
        .kind = INTERVENE_STACK_DROPOUT, .sensors = SENSOR_LIDAR, .duration_s = 0.3};
    const struct intervention left = {.kind = INTERVENE_STACK_DROPOUT,
                                      .sensors = SENSOR_CAMERA_LEFT | SENSOR_CAMERA_RIGHT};
    EXPECT_INT(actuation_sensors_dark(&b.actuation, 10), 0);
    EXPECT(actuation_intervene(&b.actuation, &lidar, &b.scene, b.route));
    EXPECT(actuation_intervene(&b.actuation, &left, &b.scene, b.route));
    EXPECT_INT(actuation_sensors_dark(&b.actuation, 10),
               SENSOR_LIDAR | SENSOR_CAMERA_LEFT | SENSOR_CAMERA_RIGHT);
    EXPECT_INT(actuation_sensors_dark(&b.actuation, 12),
               SENSOR_LIDAR | SENSOR_CAMERA_LEFT | SENSOR_CAMERA_RIGHT);
    EXPECT_INT(actuation_sensors_dark(&b.actuation, 13), SENSOR_CAMERA_LEFT | SENSOR_CAMERA_RIGHT);
    EXPECT_INT(actuation_sensors_dark(&b.actuation, 6000),
               SENSOR_CAMERA_LEFT | SENSOR_CAMERA_RIGHT);
    jobs_scenario_finish(&b.jobs);
}

static void world_interventions_are_not_ours(void)
{
    struct bench b;
    bench_init(&b, 1);
    for (int kind = INTERVENE_AGENT_BRAKE; kind <= INTERVENE_CONDITIONS; kind++) {
        const struct intervention what = {.kind = (enum intervention_kind)kind};
        struct actuation before = b.actuation;
        EXPECT(!actuation_intervene(&b.actuation, &what, &b.scene, b.route));
        EXPECT(memcmp(&before, &b.actuation, sizeof before) == 0);
    }
    jobs_scenario_finish(&b.jobs);
}

int main(void)
{
    return TEST_RUN(
        TEST(without_latency_the_answer_drives_at_once),
        TEST(a_fixed_latency_delays_by_whole_ticks), TEST(jitter_keeps_its_bounds_and_its_order),
        TEST(the_delay_line_holds_the_longest_latency), TEST(latency_ends_when_its_time_is_over),
        TEST(overrides_replace_the_planner_until_it_is_back),
        TEST(overrides_do_what_they_are_called), TEST(sensors_are_dark_for_as_long_as_asked),
        TEST(world_interventions_are_not_ours));
}
