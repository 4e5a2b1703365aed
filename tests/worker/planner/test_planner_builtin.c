/*
 * Goal: maintain, brake and log do what they promise in closed loop, and every builtin planner's
 * sessions are independent: alone or in a batch, forked or run again, the bits are the same.
 * Method: the small world of drive.h; a log recorded from one drive and followed in another.
 */
#include "base/check.h"
#include "base/rng.h"
#include "tests/harness.h"
#include "tests/worker/drive.h"
#include "worker/planner/builtin/planner_builtin_follow.h"

static struct planner *open_planner(const char *spec, uint32_t sessions)
{
    struct planner_config config = {.session_count = sessions};
    struct planner *planner = NULL;
    struct error error = {0};
    EXPECT_OK(planner_open(spec, &config, &planner, &error), error);
    return planner;
}

static void begin(struct planner *planner, const struct swerve_episode *episode)
{
    struct error error = {0};
    EXPECT_OK(planner_reset(planner, episode, &error), error);
}

static void maintain_keeps_speed_and_lane(void)
{
    static const double radii[] = {0.0, 80.0, -80.0};
    struct planner *planner = open_planner("builtin:maintain", 1);
    for (int i = 0; i < 3; i++) {
        struct drive *drive = drive_create(9.0, 20.0, radii[i]);
        struct swerve_episode episode = drive_episode(drive, 0);
        begin(planner, &episode);
        drive_run(drive, planner, 200);
        EXPECT_NEAR(drive->scene.ego.speed_mps, 9.0, 0.05);
        EXPECT(drive->offset_max_m < 0.3);
        drive_destroy(drive);
    }
    planner_close(planner);
}

/* v^2 / 2a from 15 m/s at 4 m/s2, plus what the actuator's lag costs. */
static void brake_stops_in_its_lane(void)
{
    struct planner *planner = open_planner("builtin:brake", 1);
    struct drive *drive = drive_create(15.0, 20.0, 120.0);
    struct swerve_episode episode = drive_episode(drive, 0);
    begin(planner, &episode);
    double s = 0.0;
    double d;
    drive_run(drive, planner, 100);
    drive_locate(drive, drive->scene.ego.pose.x_m, drive->scene.ego.pose.y_m, &s, &d);
    EXPECT(drive->scene.ego.speed_mps == 0.0);
    EXPECT_NEAR(s, 15.0 * 15.0 / 8.0 + 15.0 * 0.2, 1.0);
    EXPECT(drive->offset_max_m < 0.3);
    EXPECT_NEAR(drive->accel_min_mps2, -4.0, 0.05);
    drive_destroy(drive);
    planner_close(planner);
}

/* A swerving, accelerating and braking motion as a log. */
static uint32_t make_log(struct swerve_log_point *log, uint32_t count)
{
    double x = 0.0;
    double speed = 8.0;
    for (uint32_t i = 0; i < count; i++) {
        double t = 0.2 * i;
        double y = 1.5 * dmath_sin(0.4 * t);
        log[i] = (struct swerve_log_point){t, x, y, 0.0, speed};
        double accel = t < 4.0 ? 1.0 : t < 10.0 ? -1.5 : 0.5;
        x += speed * 0.2 + 0.5 * accel * 0.04;
        speed += accel * 0.2;
    }
    return count;
}

static void log_is_followed(void)
{
    struct swerve_log_point log[75];
    struct planner *planner = open_planner("builtin:log", 2);
    struct drive *drive = drive_create(8.0, 20.0, 0.0);
    struct swerve_episode episode = drive_episode(drive, 0);
    episode.log_count = make_log(log, 75);
    episode.log = log;
    begin(planner, &episode);
    memset(log, 0xff, sizeof log); /* the pointer was valid during reset only */
    struct swerve_log_point again[75];
    make_log(again, 75);
    for (uint32_t tick = 0; tick < 140; tick++) {
        drive_run(drive, planner, 1);
        double at = (tick + 1) * 0.5;
        uint32_t i = (uint32_t)at;
        double t = at - i;
        double x = again[i].x_m + t * (again[i + 1].x_m - again[i].x_m);
        double y = again[i].y_m + t * (again[i + 1].y_m - again[i].y_m);
        EXPECT_NEAR(drive->scene.ego.pose.x_m, x, 1.0);
        EXPECT_NEAR(drive->scene.ego.pose.y_m, y, 0.5);
    }
    /* Past its end: back to the lane at the last speed. */
    drive_run(drive, planner, 150);
    EXPECT_NEAR(drive->scene.ego.pose.y_m, 0.0, 0.1);
    EXPECT_NEAR(drive->scene.ego.speed_mps, again[74].speed_mps, 0.2);
    drive_destroy(drive);
    planner_close(planner);
}

static void log_without_a_log_maintains(void)
{
    struct planner *planner = open_planner("builtin:log", 1);
    struct drive *drive = drive_create(11.0, 20.0, 100.0);
    struct swerve_episode episode = drive_episode(drive, 0);
    begin(planner, &episode);
    drive_run(drive, planner, 150);
    EXPECT_NEAR(drive->scene.ego.speed_mps, 11.0, 0.05);
    EXPECT(drive->offset_max_m < 0.3);
    drive_destroy(drive);
    planner_close(planner);
}

/* ---- sessions ---- */

enum { WORLDS = 3, TICKS = 120 };

static struct drive *make_world(int i)
{
    struct drive *drive = drive_create(12.0, 15.0, i == 2 ? 150.0 : 0.0);
    if (i != 2) {
        drive_add(drive, (struct pose){60.0, 0.0, 0.0}, 4.5, 1.8, i == 0 ? 0.0 : 6.0);
    }
    if (i == 1) {
        struct drive_agent *walker =
            drive_add(drive, (struct pose){50.0, -6.0, PI_RAD / 2}, 0.5, 0.5, 1.5);
        walker->event_s = 0.0;
        drive->scene.conditions.weather = WEATHER_HEAVY_RAIN;
    }
    return drive;
}

static void begin_world(struct planner *planner, const struct drive *drive, uint32_t session)
{
    struct swerve_log_point log[75];
    struct swerve_episode episode = drive_episode(drive, session);
    episode.log_count = make_log(log, 75);
    episode.log = log;
    begin(planner, &episode);
}

/* Actions of world i driven alone in session 0. */
static void run_alone(const char *spec, int i, struct swerve_action *actions)
{
    struct planner *planner = open_planner(spec, 1);
    struct drive *drive = make_world(i);
    begin_world(planner, drive, 0);
    for (int tick = 0; tick < TICKS; tick++) {
        struct swerve_observation seen = drive_observe(drive, 0);
        uint8_t failed;
        struct error error = {0};
        EXPECT_OK(planner_act(planner, 1, &seen, &actions[tick], &failed, &error), error);
        drive_step(drive, actions[tick]);
    }
    drive_destroy(drive);
    planner_close(planner);
}

/* All worlds at once, sessions in another order, and at half-time each session is forked into
 * another number that goes on in its place, while the old number starts something else. */
static void check_spec(const char *spec)
{
    static struct swerve_action alone[WORLDS][TICKS];
    for (int i = 0; i < WORLDS; i++) {
        run_alone(spec, i, alone[i]);
    }
    struct planner *planner = open_planner(spec, 2 * WORLDS);
    struct drive *drives[WORLDS];
    uint32_t sessions[WORLDS];
    struct error error = {0};
    for (int i = 0; i < WORLDS; i++) {
        drives[i] = make_world(i);
        sessions[i] = (uint32_t)(WORLDS - 1 - i);
        begin_world(planner, drives[i], sessions[i]);
    }
    for (int tick = 0; tick < TICKS; tick++) {
        for (int i = 0; tick == TICKS / 2 && i < WORLDS; i++) {
            uint32_t to = (uint32_t)(WORLDS + i);
            EXPECT_OK(planner_fork(planner, sessions[i], to, &error), error);
            planner_end(planner, sessions[i]);
            begin_world(planner, drives[(i + 1) % WORLDS], sessions[i]);
            sessions[i] = to;
        }
        struct swerve_observation seen[WORLDS];
        struct swerve_action actions[WORLDS];
        uint8_t failed[WORLDS];
        for (int i = 0; i < WORLDS; i++) {
            seen[i] = drive_observe(drives[i], sessions[i]);
        }
        EXPECT_OK(planner_act(planner, WORLDS, seen, actions, failed, &error), error);
        for (int i = 0; i < WORLDS; i++) {
            EXPECT(memcmp(&actions[i], &alone[i][tick], sizeof actions[i]) == 0);
            drive_step(drives[i], actions[i]);
        }
    }
    for (int i = 0; i < WORLDS; i++) {
        drive_destroy(drives[i]);
    }
    planner_close(planner);
}

static void reference_sessions_are_independent(void)
{
    check_spec("builtin:reference");
}

static void maintain_sessions_are_independent(void)
{
    check_spec("builtin:maintain");
}

static void brake_sessions_are_independent(void)
{
    check_spec("builtin:brake?decel_mps2=1.5");
}

static void log_sessions_are_independent(void)
{
    check_spec("builtin:log");
}

/* ---- idm: a straight road, things on it, and nothing else ---- */

struct road {
    struct planner *planner;
    struct swerve_route_point route[SWERVE_ROUTE_POINTS];
    double x_m, speed_mps;
    uint32_t light; /* of the signal whose stop line is at 100 m */
    uint32_t tick;
};

static enum status road_open(struct road *road, enum swerve_objects_source source,
                             struct error *error)
{
    const struct swerve_episode episode = {.ego_length_m = 4.6,
                                           .ego_width_m = 1.9,
                                           .ego_wheelbase_m = 2.8,
                                           .objects_source = (uint32_t)source};
    *road = (struct road){
        .planner = open_planner("builtin:idm", 1), .speed_mps = 12.0, .light = SWERVE_SIGNAL_GREEN};
    for (uint32_t i = 0; i < SWERVE_ROUTE_POINTS; i++) {
        road->route[i] =
            (struct swerve_route_point){.x_m = (float)(4.0 * i), .speed_limit_mps = 15.0f};
    }
    return planner_reset(road->planner, &episode, error);
}

static double road_accel(struct road *road, const struct swerve_object *objects, uint32_t count)
{
    const struct swerve_signal_state state = {0, road->light, 100.0 - road->x_m - 4.6 / 2};
    const struct swerve_observation seen = {.tick = road->tick++,
                                            .x_m = road->x_m,
                                            .speed_mps = road->speed_mps,
                                            .route_count = SWERVE_ROUTE_POINTS,
                                            .route = road->route};
    struct swerve_surroundings around = {.objects_source = SWERVE_OBJECTS_TRUE,
                                         .object_count = count,
                                         .objects = objects,
                                         .signal_count = 1,
                                         .signals = &state};
    struct swerve_action action;
    uint8_t failed = 0;
    struct error error = {0};
    EXPECT_OK(planner_plan(road->planner, 1, &seen, &around, &action, &failed, &error), error);
    EXPECT(failed == 0 && action.steer_rad == 0.0);
    return action.accel_mps2;
}

/* Place of ego's centre after half a minute. */
static double road_drive(struct road *road, const struct swerve_object *objects, uint32_t count)
{
    for (int tick = 0; tick < 300; tick++) {
        double accel_mps2 = road_accel(road, objects, count);
        road->speed_mps += 0.1 * accel_mps2;
        road->speed_mps = road->speed_mps > 0.0 ? road->speed_mps : 0.0;
        road->x_m += 0.1 * road->speed_mps;
    }
    return road->x_m;
}

static void idm_yields_to_what_is_in_its_way(void)
{
    struct error error = {0};
    struct road road;
    struct swerve_object car = {.length_m = 4.5, .width_m = 1.8, .height_m = 1.5, .x_m = 60.0};
    struct swerve_object walker = {.kind = SWERVE_OBJECT_PEDESTRIAN,
                                   .length_m = 0.5,
                                   .width_m = 0.5,
                                   .height_m = 1.8,
                                   .x_m = 20.0,
                                   .y_m = -3.0,
                                   .heading_rad = 1.5707963,
                                   .vy_mps = 1.5};
    EXPECT_OK(road_open(&road, SWERVE_OBJECTS_TRUE, &error), error);
    EXPECT(road_accel(&road, NULL, 0) > 0.5);
    EXPECT(road_accel(&road, &car, 1) < 0.0);
    EXPECT(road_accel(&road, &walker, 1) < -3.0); /* not in the way yet, but soon */
    walker.vy_mps = -1.5;
    walker.heading_rad = -1.5707963;
    EXPECT(road_accel(&road, &walker, 1) > 0.5); /* goes away */
    car.y_m = 3.5;
    EXPECT(road_accel(&road, &car, 1) > 0.5); /* the next lane */
    car.y_m = 0.0;
    car.x_m = -20.0;
    EXPECT(road_accel(&road, &car, 1) > 0.5); /* behind */
    car.x_m = 60.0;
    double gap_m = 60.0 - 4.5 / 2 - road_drive(&road, &car, 1) - 4.6 / 2;
    EXPECT(road.speed_mps < 0.1 && gap_m > 1.0 && gap_m < 4.0);
    planner_close(road.planner);
}

static void idm_obeys_signals(void)
{
    struct error error = {0};
    struct road road;
    EXPECT_OK(road_open(&road, SWERVE_OBJECTS_SEEN, &error), error);
    road.light = SWERVE_SIGNAL_RED;
    double front_m = road_drive(&road, NULL, 0) + 4.6 / 2;
    EXPECT(road.speed_mps < 0.1 && front_m < 100.0 && front_m > 96.0);
    road.light = SWERVE_SIGNAL_GREEN;
    EXPECT(road_drive(&road, NULL, 0) > 200.0);
    EXPECT_NEAR(road.speed_mps, 15.0, 0.3);
    planner_close(road.planner);
}

static void idm_needs_a_list(void)
{
    struct error error = {0};
    struct road road;
    EXPECT_INT(road_open(&road, SWERVE_OBJECTS_NONE, &error), STATUS_PLANNER);
    EXPECT_CONTAINS(error.text, "this world has none");
    planner_close(road.planner);
}

/* Goal: whoever is said to miss the route has no place near it, now or later. Method: random
 * routes, with sharp bends, points that repeat and hardly any, and objects around them. */
static void who_misses_the_route_has_no_place_on_it(void)
{
    uint32_t missed = 0;
    uint32_t element = 0;
    for (uint32_t round = 0; round < test_rounds(20000, 1000); round++) {
        uint32_t counter[4] = {0, RNG_STREAM_TEST, 0, 0};
        double random[4 * 24];
        for (uint32_t i = 0; i < COUNT_OF(random); i += 4) {
            uint32_t words[4];
            counter[2] = element++;
            rng_philox(23, counter, words);
            for (int k = 0; k < 4; k++) {
                random[i + (uint32_t)k] = words[k] / 2147483648.0 - 1.0;
            }
        }
        struct swerve_route_point points[SWERVE_ROUTE_POINTS] = {{0}};
        struct swerve_observation seen = {.route = points,
                                          .x_m = 500.0 * random[0],
                                          .y_m = 500.0 * random[1],
                                          .heading_rad = 3.0 * random[2],
                                          .route_count = 1 + round % SWERVE_ROUTE_POINTS};
        double turn = random[3] * (round % 3 == 0 ? 2.0 : round % 3 == 1 ? 0.5 : 0.0);
        double x_m = 0.0;
        double y_m = 0.0;
        double way_rad = 0.0;
        for (uint32_t i = 0; i < seen.route_count; i++) {
            points[i].x_m = (float)x_m;
            points[i].y_m = (float)y_m;
            way_rad += turn * random[8 + i];
            double step_m = round % 7 == 0 && i % 5 == 0 ? 0.0 : SWERVE_ROUTE_STEP_M;
            x_m += step_m * cos(way_rad);
            y_m += step_m * sin(way_rad);
        }
        struct swerve_object object = {.x_m = seen.x_m + 150.0 * random[40],
                                       .y_m = seen.y_m + 150.0 * random[41],
                                       .heading_rad = 3.0 * random[42],
                                       .vx_mps = 30.0 * random[43],
                                       .vy_mps = 30.0 * random[44]};
        struct planner_route route;
        double reach_m = 3.0 + 2.0 * random[45];
        planner_route_take(&seen, &route);
        if (!planner_route_misses(&route, &object, 2.0, reach_m)) {
            continue;
        }
        missed++;
        for (double t_s = 0.0; t_s <= 2.0; t_s += 0.125) {
            struct planner_place at;
            if (planner_place_find(&route, object.x_m + t_s * object.vx_mps,
                                   object.y_m + t_s * object.vy_mps, object.heading_rad, &at)) {
                EXPECT(fabs(at.offset_m) > reach_m);
            }
        }
    }
    EXPECT(missed > 100);
}

int main(void)
{
    return TEST_RUN(TEST(maintain_keeps_speed_and_lane), TEST(brake_stops_in_its_lane),
                    TEST(log_is_followed), TEST(log_without_a_log_maintains),
                    TEST(reference_sessions_are_independent),
                    TEST(maintain_sessions_are_independent), TEST(brake_sessions_are_independent),
                    TEST(log_sessions_are_independent), TEST(idm_yields_to_what_is_in_its_way),
                    TEST(idm_obeys_signals), TEST(idm_needs_a_list),
                    TEST(who_misses_the_route_has_no_place_on_it));
}
