/*
 * Goal: builtin:r157 drives as the models of UN R157 do, and forks and repeats to the bit.
 * Method: cut-ins that the models' authors' own program drove (tests/vectors/r157_jrc.txt), tick by
 * tick; and on a straight road what the regulation says in words: who wanders is left alone, a
 * leader's hard braking and a cut-out are reacted to after 0.4 s and 0.75 s, not before.
 */
#include "tests/worker/planner/road.h"

enum { ROWS_MAX = 80 };

/* ---- other programs ---- */

struct row {
    double ego_m, ego_mps, x_m, y_m, vx_mps, vy_mps, accel_mps2;
};

static uint32_t read_rows(FILE *file, struct row *rows, uint32_t count)
{
    EXPECT(count > 0 && count <= ROWS_MAX);
    for (uint32_t i = 0; i < count; i++) {
        struct row *row = &rows[i];
        EXPECT_INT(fscanf(file, "%lf %lf %lf %lf %lf %lf %lf", &row->ego_m, &row->ego_mps,
                          &row->x_m, &row->y_m, &row->vx_mps, &row->vy_mps, &row->accel_mps2),
                   7);
    }
    return count;
}

/* The planner's answers to what a program saw. */
static void follow(const char *spec, struct sizes sizes, const struct row *rows, uint32_t count,
                   double *answers)
{
    struct road road;
    double accel_mps2 = 0.0;
    road_open_sized(&road, spec, 0.0, sizes);
    /* One tick before the first row, so that the lane that the other comes from is known. */
    const struct row *first = &rows[0];
    struct swerve_object before = car_at(first->x_m - 0.1 * first->vx_mps,
                                         first->y_m - 0.1 * first->vy_mps, first->vx_mps, 0);
    before.length_m = sizes.length_m;
    before.width_m = sizes.width_m;
    road_accel(&road, 0, first->ego_m - 0.1 * first->ego_mps, first->ego_mps, 0.0, &before, 1);
    for (uint32_t i = 0; i < count; i++) {
        const struct row *at = &rows[i];
        struct swerve_object other = car_at(at->x_m, at->y_m, at->vx_mps, at->vy_mps);
        other.length_m = sizes.length_m;
        other.width_m = sizes.width_m;
        road.tick++;
        answers[i] = road_accel(&road, 0, at->ego_m, at->ego_mps, accel_mps2, &other, 1);
        accel_mps2 = at->accel_mps2;
    }
    planner_close(road.planner);
}

static const char *const specs_of_models[] = {"builtin:r157?cruise=0&aeb=0",
                                              "builtin:r157?cruise=0&fsm=1"};

static void models_equal_their_authors_program(void)
{
    FILE *file = fopen(R157_VECTORS "/r157_jrc.txt", "r");
    uint32_t model;
    uint32_t count;
    uint32_t cases[2] = {0};
    double worst[2] = {0};
    EXPECT(file != NULL);
    while (fscanf(file, " case %u %u", &model, &count) == 2) {
        struct row rows[ROWS_MAX];
        double answers[ROWS_MAX];
        EXPECT(model < 2);
        follow(specs_of_models[model], OWN_SIZES, rows, read_rows(file, rows, count), answers);
        for (uint32_t i = 0; i < count; i++) {
            worst[model] = dmath_max(worst[model], fabs(answers[i] - rows[i].accel_mps2));
        }
        cases[model]++;
    }
    EXPECT(feof(file));
    fclose(file);
    EXPECT(cases[0] >= 20 && cases[1] >= 18);
    for (int i = 0; i < 2; i++) {
        printf("# %s: %u cases, largest difference %.1e m/s2\n", specs_of_models[i], cases[i],
               worst[i]);
        EXPECT(worst[i] < 1e-5);
    }
}

/* The first row at which more is asked for than the foot off the accelerator gives; `count`: none.
 */
static uint32_t brakes_from(const double *accel_mps2, uint32_t count)
{
    uint32_t tick = 0;
    while (tick < count && accel_mps2[tick] > -1.0) {
        tick++;
    }
    return tick;
}

/* Distance of two profiles, each from where it brakes on. */
static double profile_difference(const double *a, uint32_t a_from, const double *b, uint32_t b_from,
                                 uint32_t count)
{
    double worst = 0.0;
    while (a_from < count && b_from < count) {
        worst = dmath_max(worst, fabs(a[a_from++] - b[b_from++]));
    }
    return worst;
}

/* esmini drops a cut-in whose time to collision is above 2 s at the moment of perception; its
 * driver then never brakes for it. Ours looks on, as the authors' program does. */
static void profiles_agree_with_esminis_reference_drivers(void)
{
    FILE *file = fopen(R157_VECTORS "/r157_esmini.txt", "r");
    struct sizes sizes;
    uint32_t model;
    uint32_t count;
    uint32_t cases[2] = {0};
    uint32_t dropped = 0;
    double apart_mps2[2] = {0};
    uint32_t apart_ticks[2] = {0};
    EXPECT(file != NULL);
    while (fscanf(file, " case %u %u %lf %lf %lf", &model, &count, &sizes.length_m, &sizes.width_m,
                  &sizes.lane_m) == 5) {
        struct row rows[ROWS_MAX];
        double ours[ROWS_MAX];
        double theirs[ROWS_MAX];
        EXPECT(model < 2);
        follow(specs_of_models[model], sizes, rows, read_rows(file, rows, count), ours);
        for (uint32_t i = 0; i < count; i++) {
            theirs[i] = rows[i].accel_mps2;
        }
        while (rows[count - 1].ego_mps - rows[count - 1].vx_mps < 0.2) {
            count--; /* where ego comes no nearer, both let go */
        }
        uint32_t our_tick = brakes_from(ours, count);
        uint32_t their_tick = brakes_from(theirs, count);
        EXPECT(our_tick < count);
        cases[model]++;
        if (their_tick == count) {
            EXPECT_INT(model, 0);
            dropped++;
            continue;
        }
        uint32_t ticks = our_tick > their_tick ? our_tick - their_tick : their_tick - our_tick;
        double difference = profile_difference(ours, our_tick, theirs, their_tick, count);
        apart_ticks[model] = ticks > apart_ticks[model] ? ticks : apart_ticks[model];
        apart_mps2[model] = dmath_max(apart_mps2[model], difference);
    }
    EXPECT(feof(file));
    fclose(file);
    for (int i = 0; i < 2; i++) {
        printf("# %s: %u cases, onset within %u ticks, profiles within %.3f m/s2\n",
               specs_of_models[i], cases[i], apart_ticks[i], apart_mps2[i]);
    }
    EXPECT_INT(cases[0], 12);
    EXPECT_INT(cases[1], 12);
    EXPECT_INT(dropped, 4);
    EXPECT(apart_ticks[0] <= 1 && apart_ticks[1] <= 2);
    EXPECT(apart_mps2[0] < 0.401 && apart_mps2[1] < 0.45);
}

/* ---- what the regulation says in words ---- */

enum { EVENT_TICK = 20, TICKS = 60 };

/* Motion of the other one from EVENT_TICK on. */
struct event {
    struct swerve_object other; /* before; y or x as it would be at tick 0 */
    double brake_mps2, drift_mps, drift_m;
};

static void event_step(const struct event *event, uint32_t tick, struct swerve_object *other)
{
    double since_s = tick < EVENT_TICK ? 0.0 : 0.1 * (tick - EVENT_TICK);
    double limit_s = event->brake_mps2 > 0.0 ? event->other.vx_mps / event->brake_mps2 : 0.0;
    double braked_s = dmath_min(since_s, limit_s);
    double moved_m = dmath_min(fabs(event->drift_mps) * since_s, event->drift_m);
    bool drifts = tick >= EVENT_TICK && moved_m < event->drift_m;
    *other = event->other;
    other->x_m += event->other.vx_mps * 0.1 * tick -
                  event->other.vx_mps * (since_s - braked_s) * (event->brake_mps2 > 0.0) -
                  0.5 * event->brake_mps2 * braked_s * braked_s;
    other->vx_mps -= event->brake_mps2 * braked_s;
    other->ax_mps2 = tick >= EVENT_TICK && other->vx_mps > 0.0 ? -event->brake_mps2 : 0.0;
    other->y_m += event->drift_mps > 0.0 ? moved_m : -moved_m;
    other->vy_mps = drifts ? event->drift_mps : 0.0;
}

/* Ego under the model, a point mass, at 20 m/s at first. Fills the acceleration of every tick;
 * returns the gap to the other's rear at the end. */
static double run(const char *spec, const struct event *event, double *accel_mps2)
{
    struct road road;
    double x_m = 0.0;
    double speed_mps = 20.0;
    double last_mps2 = 0.0;
    struct swerve_object other;
    road_open(&road, spec, 20.0);
    for (uint32_t tick = 0; tick < TICKS; tick++) {
        event_step(event, tick, &other);
        road.tick = tick;
        last_mps2 = road_accel(&road, 0, x_m, speed_mps, last_mps2, &other, 1);
        accel_mps2[tick] = last_mps2;
        x_m += 0.1 * speed_mps;
        speed_mps = dmath_max(speed_mps + 0.1 * last_mps2, 0.0);
    }
    planner_close(road.planner);
    event_step(event, TICKS, &other);
    return other.x_m - x_m - EGO_LENGTH_M;
}

static uint32_t brakes_at(const double *accel_mps2)
{
    return brakes_from(accel_mps2, TICKS);
}

static void who_wanders_is_left_alone(void)
{
    double accel_mps2[TICKS];
    struct event event = {.other = car_at(45, 3.5, 12, 0), .drift_mps = -0.5, .drift_m = 0.37};
    run("builtin:r157?cruise=0", &event, accel_mps2);
    for (uint32_t tick = 0; tick < TICKS; tick++) {
        EXPECT(accel_mps2[tick] == 0.0);
    }
    event.drift_m = 3.5;
    event.drift_mps = -1.5;
    run("builtin:r157?cruise=0", &event, accel_mps2);
    EXPECT(brakes_at(accel_mps2) < TICKS);
}

/* 0.4 s to judge and 0.75 s to react, on the tick's grid: 0.4 and 0.8 s. */
static void a_leaders_hard_braking_takes_time_to_react_to(void)
{
    double accel_mps2[TICKS];
    struct event event = {.other = car_at(40, 0, 20, 0), .brake_mps2 = 6.0};
    run("builtin:r157?cruise=0&aeb=0", &event, accel_mps2);
    EXPECT(accel_mps2[EVENT_TICK + 3] == 0.0);
    EXPECT_NEAR(accel_mps2[EVENT_TICK + 4], -0.4, 1e-9);
    EXPECT_INT(brakes_at(accel_mps2), EVENT_TICK + 12);
    EXPECT_NEAR(accel_mps2[EVENT_TICK + 18], -0.774 * 9.81, 1e-9);
    event.brake_mps2 = 4.9; /* not hard: nothing before its time to collision is short */
    run("builtin:r157?cruise=0&aeb=0", &event, accel_mps2);
    EXPECT(brakes_at(accel_mps2) > EVENT_TICK + 12);
}

/* Between conflicts it keeps its distance with comfort. */
static void a_leader_that_brakes_gently_is_followed(void)
{
    double accel_mps2[TICKS];
    struct event event = {.other = car_at(50, 0, 20, 0), .brake_mps2 = 2.0};
    static const char *const specs[] = {"builtin:r157", "builtin:r157?fsm=1"};
    for (int i = 0; i < 2; i++) {
        double gap_m = run(specs[i], &event, accel_mps2);
        EXPECT(gap_m > 3.0);
        for (uint32_t tick = 0; tick < TICKS; tick++) {
            EXPECT(accel_mps2[tick] >= -4.0 - 1e-9);
        }
    }
}

/* Somebody who walks into the lane, out of nowhere and too near for comfort. */
static void a_person_is_braked_for(void)
{
    double accel_mps2[TICKS];
    struct event event = {.other = car_at(70, -4.0, 0, 0), .drift_mps = 1.5, .drift_m = 4.0};
    event.other.kind = SWERVE_OBJECT_PEDESTRIAN;
    event.other.length_m = event.other.width_m = 0.5;
    run("builtin:r157?cruise=0&aeb=0", &event, accel_mps2);
    uint32_t first = brakes_at(accel_mps2);
    EXPECT(first >= EVENT_TICK + 12 && first < EVENT_TICK + 20);
}

static void aeb_brakes_harder_than_the_driver(void)
{
    double accel_mps2[TICKS];
    double worst_mps2 = 0.0;
    struct event event = {.other = car_at(24, 0, 20, 0), .brake_mps2 = 8.0};
    run("builtin:r157?cruise=0", &event, accel_mps2);
    for (uint32_t tick = 0; tick < TICKS; tick++) {
        worst_mps2 = dmath_min(worst_mps2, accel_mps2[tick]);
    }
    EXPECT_NEAR(worst_mps2, -0.85 * 9.81, 1e-9);
}

/* ---- sessions ---- */

static void sessions_are_independent(void)
{
    static const char *const specs[] = {"builtin:r157", "builtin:r157?fsm=1"};
    const struct event event = {.other = car_at(22, 3.5, 14, 0), .drift_mps = -1.4, .drift_m = 3.5};
    for (int s = 0; s < 2; s++) {
        double alone[TICKS];
        struct road road;
        struct swerve_object other;
        double x_m = 0.0;
        double speed_mps = 20.0;
        double last_mps2 = 0.0;
        uint32_t session = 0;
        struct error error = {0};
        run(specs[s], &event, alone);
        road_open(&road, specs[s], 20.0);
        for (uint32_t tick = 0; tick < TICKS; tick++) {
            if (tick == TICKS / 2) { /* goes on as a fork; the old number starts something else */
                EXPECT_OK(planner_fork(road.planner, 0, 1, &error), error);
                road_reset(&road, 0, SWERVE_OBJECTS_SEEN, STATUS_OK);
                session = 1;
            }
            event_step(&event, tick, &other);
            road.tick = tick;
            last_mps2 = road_accel(&road, session, x_m, speed_mps, last_mps2, &other, 1);
            EXPECT(last_mps2 == alone[tick]);
            if (session == 1) {
                road_accel(&road, 0, x_m, 5.0, 0.0, &other, 1);
            }
            x_m += 0.1 * speed_mps;
            speed_mps = dmath_max(speed_mps + 0.1 * last_mps2, 0.0);
        }
        planner_close(road.planner);
    }
}

static void it_needs_a_list(void)
{
    struct road road;
    road_open(&road, "builtin:r157", 20.0);
    road_reset(&road, 1, SWERVE_OBJECTS_NONE, STATUS_PLANNER);
    planner_close(road.planner);
}

int main(void)
{
    return TEST_RUN(TEST(models_equal_their_authors_program),
                    TEST(profiles_agree_with_esminis_reference_drivers),
                    TEST(who_wanders_is_left_alone),
                    TEST(a_leaders_hard_braking_takes_time_to_react_to),
                    TEST(a_leader_that_brakes_gently_is_followed), TEST(a_person_is_braked_for),
                    TEST(aeb_brakes_harder_than_the_driver), TEST(sessions_are_independent),
                    TEST(it_needs_a_list));
}
