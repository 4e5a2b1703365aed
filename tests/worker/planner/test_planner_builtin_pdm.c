/*
 * Goal: builtin:pdm drives well on a straight road, by the rules that it states.
 * Method: a point mass that follows its answers: it reaches the limit, stops behind what stands and
 * at a red light, passes within its lane what leaves room for it, waits for who crosses, brakes
 * with all it has for who appears; and answers are of the moment alone, whatever came before.
 */
#include "base/units.h"
#include "tests/worker/planner/road.h"

enum { TICKS = 300 };

struct drive {
    struct road_ego ego;
    double heading_rad;
    double accel_min_mps2, offset_max_m, gap_min_m;
};

/* Ego as a bicycle whose heading stays small enough to be left out of what it sees. */
static struct drive follow(struct road *road, double speed_mps, struct swerve_object *objects,
                           uint32_t count, uint32_t ticks)
{
    struct drive drive = {.ego = {.speed_mps = speed_mps}, .gap_min_m = 1e9};
    for (uint32_t tick = 0; tick < ticks; tick++) {
        road->tick = tick;
        struct swerve_action action = road_ask(road, 0, drive.ego, objects, count);
        double v = drive.ego.speed_mps;
        drive.accel_min_mps2 = dmath_min(drive.accel_min_mps2, action.accel_mps2);
        /* The heading relaxes to where the wheels point: enough for lane changes of a metre. */
        drive.ego.y_m += 0.1 * v * sin(action.steer_rad);
        drive.ego.x_m += 0.1 * v;
        drive.ego.speed_mps = dmath_max(v + 0.1 * action.accel_mps2, 0.0);
        drive.offset_max_m = dmath_max(drive.offset_max_m, fabs(drive.ego.y_m));
        for (uint32_t i = 0; i < count; i++) {
            objects[i].x_m += 0.1 * objects[i].vx_mps;
            objects[i].y_m += 0.1 * objects[i].vy_mps;
            struct box one =
                box_make((struct pose){drive.ego.x_m, drive.ego.y_m, 0}, EGO_LENGTH_M, EGO_WIDTH_M);
            struct box other =
                box_make((struct pose){objects[i].x_m, objects[i].y_m, objects[i].heading_rad},
                         objects[i].length_m, objects[i].width_m);
            drive.gap_min_m = dmath_min(drive.gap_min_m, box_distance_m(&one, &other));
        }
    }
    return drive;
}

static void a_free_road_is_driven_at_its_limit(void)
{
    struct road road;
    road_open(&road, "builtin:pdm", 15.0);
    struct drive drive = follow(&road, 10.0, NULL, 0, TICKS);
    EXPECT_NEAR(drive.ego.speed_mps, 15.0, 0.3);
    EXPECT(drive.offset_max_m < 1e-9);
    planner_close(road.planner);
}

static void what_stands_is_stopped_for_without_haste(void)
{
    struct road road;
    struct swerve_object car = car_at(150, 0, 0, 0);
    road_open(&road, "builtin:pdm", 15.0);
    struct drive drive = follow(&road, 15.0, &car, 1, TICKS);
    EXPECT(drive.ego.speed_mps < 0.1);
    EXPECT(drive.gap_min_m > 0.5 && drive.gap_min_m < 6.0);
    EXPECT(drive.accel_min_mps2 > -4.5);
    planner_close(road.planner);
}

static void red_is_stopped_at_and_green_is_not(void)
{
    struct road road;
    road_open(&road, "builtin:pdm", 13.9);
    road.stop_x_m = 120.0;
    road.light = SWERVE_SIGNAL_RED;
    struct drive drive = follow(&road, 13.9, NULL, 0, TICKS);
    double front_m = drive.ego.x_m + 0.5 * EGO_LENGTH_M;
    EXPECT(drive.ego.speed_mps < 0.1 && front_m < 120.0 && front_m > 114.0);
    road.light = SWERVE_SIGNAL_GREEN;
    drive = follow(&road, 13.9, NULL, 0, TICKS);
    EXPECT(drive.ego.x_m > 200.0);
    planner_close(road.planner);
}

/* Something narrow at the lane's edge: a metre aside there is room. */
static void what_leaves_room_is_passed_within_the_lane(void)
{
    struct road road;
    struct swerve_object post = car_at(100, -1.2, 0, 0);
    post.width_m = 0.5;
    post.length_m = 1.0;
    road_open_sized(&road, "builtin:pdm", 12.0, (struct sizes){EGO_LENGTH_M, EGO_WIDTH_M, 4.4});
    struct drive drive = follow(&road, 12.0, &post, 1, TICKS);
    EXPECT(drive.ego.x_m > 150.0);
    EXPECT(drive.gap_min_m > 0.1);
    EXPECT(drive.offset_max_m > 0.3 && drive.offset_max_m < 1.3);
    planner_close(road.planner);
}

static void who_crosses_is_waited_for(void)
{
    struct road road;
    struct swerve_object walker = car_at(60, -5.0, 0, 1.4);
    walker.kind = SWERVE_OBJECT_PEDESTRIAN;
    walker.length_m = walker.width_m = 0.5;
    road_open(&road, "builtin:pdm", 13.9);
    struct drive drive = follow(&road, 13.9, &walker, 1, TICKS);
    EXPECT(drive.gap_min_m > 0.3);
    EXPECT(drive.ego.x_m > 150.0); /* and not for ever */
    planner_close(road.planner);
}

static void who_appears_is_braked_for_with_all_there_is(void)
{
    struct road road;
    struct swerve_object car = car_at(20, 0, 0, 0);
    road_open(&road, "builtin:pdm", 13.9);
    EXPECT_NEAR(road_accel(&road, 0, 0, 13.9, 0, &car, 1), -8.0, 1e-12);
    planner_close(road.planner);
}

/* Nothing is kept: a session that comes from elsewhere answers as a new one. */
static void answers_are_of_the_moment(void)
{
    struct road road;
    struct swerve_object near_by = car_at(40, 0.4, 5, 0);
    struct swerve_object far_off = car_at(80, -0.4, 9, 0);
    struct error error = {0};
    road_open(&road, "builtin:pdm", 13.9);
    road_reset(&road, 1, SWERVE_OBJECTS_TRUE, STATUS_OK);
    const struct road_ego ego = {.x_m = 3, .y_m = 0.2, .speed_mps = 11};
    struct swerve_action fresh = road_ask(&road, 1, ego, &near_by, 1);
    for (int i = 0; i < 5; i++) {
        road_ask(&road, 0, (struct road_ego){.speed_mps = 3 * i}, &far_off, 1);
    }
    struct swerve_action used = road_ask(&road, 0, ego, &near_by, 1);
    EXPECT(memcmp(&fresh, &used, sizeof fresh) == 0);
    EXPECT_OK(planner_fork(road.planner, 0, 1, &error), error);
    used = road_ask(&road, 1, ego, &near_by, 1);
    EXPECT(memcmp(&fresh, &used, sizeof fresh) == 0);
    planner_close(road.planner);
}

static void it_needs_a_list(void)
{
    struct road road;
    road_open(&road, "builtin:pdm", 13.9);
    road_reset(&road, 1, SWERVE_OBJECTS_NONE, STATUS_PLANNER);
    planner_close(road.planner);
}

/* Front edge when it passes the line at 80 m and what it met: a car crosses behind the line at x =
 * 90 m, 10 m/s fast, and would be there at `arrives_s`; below 0: there is none. */
struct passage {
    double slowest_mps; /* with the front within 4 m before the line */
    double time_s;      /* when the front passes the line; -1: never */
};

/* Another car comes on that heading to the point 10 m behind the line. */
static struct passage pass_with(const char *spec, uint32_t light, double arrives_s,
                                double heading_rad)
{
    struct road road;
    struct passage found = {100.0, -1.0};
    double x_m = 0.0;
    double v = 10.0;
    double vx_mps = 10.0 * dmath_cos(heading_rad);
    double vy_mps = 10.0 * dmath_sin(heading_rad);
    road_open(&road, spec, 12.0);
    road.light = light;
    road.stop_x_m = 80.0;
    for (; road.tick < 400 && found.time_s < 0.0; road.tick++) {
        double time_s = 0.1 * road.tick;
        double front_m = x_m + 0.5 * EGO_LENGTH_M;
        struct swerve_object car = car_at(90.0 + vx_mps * (time_s - arrives_s),
                                          vy_mps * (time_s - arrives_s), vx_mps, vy_mps);
        car.heading_rad = heading_rad;
        if (front_m > 76.0 && front_m <= 80.0) {
            found.slowest_mps = dmath_min(found.slowest_mps, v);
        }
        if (front_m > 80.0) {
            found.time_s = time_s;
        }
        v += 0.1 * road_accel(&road, 0, x_m, v, 0.0, &car, arrives_s >= 0.0);
        v = dmath_max(v, 0.0);
        x_m += 0.1 * v;
    }
    planner_close(road.planner);
    return found;
}

static struct passage pass_sign(const char *spec, uint32_t light, double arrives_s)
{
    return pass_with(spec, light, arrives_s, PI_RAD / 2);
}

/* Without a plate they give way as at a yield sign, by priority to the right to that side alone; a
 * priority sign asks for nothing. */
static void right_of_way_without_signs_is_obeyed(void)
{
    static const char *const specs[] = {"builtin:idm", "builtin:pdm"};
    uint32_t waited = 0;
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        for (double arrives_s = 4.0; arrives_s < 40.0; arrives_s += 1.0) {
            double yield_s = pass_sign(specs[i], SWERVE_SIGNAL_YIELD_SIGN, arrives_s).time_s;
            double free_s = pass_sign(specs[i], SWERVE_SIGNAL_PRIORITY_SIGN, arrives_s).time_s;
            double dark_s = pass_sign(specs[i], SWERVE_SIGNAL_OFF, arrives_s).time_s;
            double side_s = pass_sign(specs[i], SWERVE_SIGNAL_GIVE_WAY, arrives_s).time_s;
            double right_s = pass_sign(specs[i], SWERVE_SIGNAL_GIVE_WAY_RIGHT, arrives_s).time_s;
            double left_s =
                pass_with(specs[i], SWERVE_SIGNAL_GIVE_WAY_RIGHT, arrives_s, -PI_RAD / 2).time_s;
            double left_free_s =
                pass_with(specs[i], SWERVE_SIGNAL_OFF, arrives_s, -PI_RAD / 2).time_s;
            EXPECT(side_s == yield_s && right_s == yield_s);
            EXPECT(free_s == dark_s && left_s == left_free_s);
            waited += right_s > left_s;
        }
    }
    EXPECT(waited > 6);
}

/* Who turns across oncoming traffic waits for who comes towards it, and for nobody who crosses. */
static void oncoming_traffic_goes_first(void)
{
    static const char *const specs[] = {"builtin:idm", "builtin:pdm"};
    const double oncoming_rad = 0.85 * PI_RAD;
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        uint32_t waited = 0;
        for (double arrives_s = 6.0; arrives_s < 40.0; arrives_s += 1.0) {
            const uint32_t sign = SWERVE_SIGNAL_GIVE_WAY_ONCOMING;
            double crossing_s = pass_sign(specs[i], sign, arrives_s).time_s;
            double turn_s = pass_with(specs[i], sign, arrives_s, oncoming_rad).time_s;
            EXPECT(crossing_s == pass_sign(specs[i], SWERVE_SIGNAL_OFF, arrives_s).time_s);
            EXPECT(turn_s > 0.0 && (turn_s > arrives_s - 0.5 || turn_s < arrives_s - 3.0));
            waited += turn_s > pass_with(specs[i], sign, -1.0, oncoming_rad).time_s + 0.5;
        }
        EXPECT(waited >= 2);
    }
}

/* At a stop sign they stand; at both signs they leave others the headway. */
static void signs_are_obeyed(void)
{
    static const char *const specs[] = {"builtin:idm", "builtin:pdm"};
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++) {
        struct passage alone = pass_sign(specs[i], SWERVE_SIGNAL_STOP_SIGN, -1.0);
        EXPECT(alone.slowest_mps < 0.1 && alone.time_s > 0.0);
        struct passage yields = pass_sign(specs[i], SWERVE_SIGNAL_YIELD_SIGN, -1.0);
        EXPECT(yields.slowest_mps > 5.0 && yields.time_s > 0.0);
        for (double arrives_s = 4.0; arrives_s < 40.0; arrives_s += 1.0) {
            struct passage stop = pass_sign(specs[i], SWERVE_SIGNAL_STOP_SIGN, arrives_s);
            struct passage yield = pass_sign(specs[i], SWERVE_SIGNAL_YIELD_SIGN, arrives_s);
            EXPECT(stop.slowest_mps < 0.1 && stop.time_s > 0.0 && yield.time_s > 0.0);
            EXPECT(stop.time_s > arrives_s - 0.5 || stop.time_s < arrives_s - 5.0);
            EXPECT(yield.time_s > arrives_s - 0.5 || yield.time_s < arrives_s - 5.0);
        }
    }
}

int main(void)
{
    return TEST_RUN(
        TEST(a_free_road_is_driven_at_its_limit), TEST(what_stands_is_stopped_for_without_haste),
        TEST(red_is_stopped_at_and_green_is_not), TEST(what_leaves_room_is_passed_within_the_lane),
        TEST(who_crosses_is_waited_for), TEST(who_appears_is_braked_for_with_all_there_is),
        TEST(answers_are_of_the_moment), TEST(signs_are_obeyed),
        TEST(right_of_way_without_signs_is_obeyed), TEST(oncoming_traffic_goes_first),
        TEST(it_needs_a_list));
}
