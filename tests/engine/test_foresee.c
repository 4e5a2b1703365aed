/*
 * Goal: what is foreseen follows from the first tick alone, and who is out of sight is not
 * forgotten. Method: small scenes whose agents have plans of their own run in the object world; the
 * same start is foreseen beside it, and both are compared at ticks at which they must agree or
 * differ. The chance to have left is counted over seeds. Traffic models, to whom a branch hands a
 * drive over in the middle, go through the world as branches do.
 */
#include "engine/sensors/foresee.h"
#include "engine/sensors/visible.h"
#include "tests/engine/traffic_run.h"

#include <stdlib.h>
#include <string.h>

enum { CAR = 0, BUS = 1, LATER = 2, AGENTS = 3 };

struct future {
    const struct foresight *foresight;
    struct scene scene;
    struct agent_motion motion[LIMIT_AGENTS];
    uint64_t seed;
};

static void foresee(const struct run *run, uint64_t seed, struct future *future)
{
    struct error error;
    *future = (struct future){.scene = *run->scene, .seed = seed};
    EXPECT_OK(foresight_of(run->prepared, run->scene, &future->foresight, &error), error);
    foresee_reset(future->foresight, seed, &future->scene, future->motion);
}

/* Ego stands. */
static void go_on(struct future *future, uint32_t ticks)
{
    for (uint32_t i = 0; i < ticks; i++) {
        foresee_step(future->foresight, future->seed, &future->scene, future->motion);
        future->scene.tick++;
    }
}

/* Ego stands in the leftmost of three lanes; a car passes on the right behind a parked bus. */
static void begin_hiding(struct run *run)
{
    begin(run);
    struct scenario *s = &run->scenario;
    maps_motorway(&run->arena, &s->map, 3, 600);
    maps_scenario(&run->arena, s, (struct pose){50, 7, 0}, 0, 2, AGENTS);
    maps_agent(s, CAR, AGENT_CAR, BEHAVIOUR_SCRIPT, (struct pose){65, 0, 0}, 10);
    maps_agent(s, BUS, AGENT_BUS, BEHAVIOUR_STATIC, (struct pose){73, 3.5, 0}, 0)->length_m = 10;
    maps_agent(s, LATER, AGENT_CAR, BEHAVIOUR_SCRIPT, (struct pose){200, 7, 0}, 5);
    s->agents[LATER].hidden = true;
    start(run, &world_object_ops, 0);
}

static void who_is_hidden_for_two_seconds_comes_back(void)
{
    struct run run;
    struct future *future = malloc(sizeof *future);
    uint32_t hidden = 0;
    begin_hiding(&run);
    foresee(&run, 0, future);
    EXPECT(visible_agent(&run.scenario, &future->scene, CAR));
    while (future->scene.tick < 100 &&
           (hidden == 0 || !visible_agent(&run.scenario, &future->scene, CAR))) {
        go_on(future, 1);
        EXPECT(future->scene.agents[CAR].present);
        hidden += !visible_agent(&run.scenario, &future->scene, CAR);
    }
    EXPECT(hidden >= 20 && hidden < 80);
    EXPECT(visible_agent(&run.scenario, &future->scene, CAR));
    EXPECT_NEAR(future->scene.agents[CAR].pose.x_m, 65 + future->scene.tick, 1e-6);
    EXPECT_NEAR(future->scene.agents[CAR].pose.y_m, 0, 1e-6);
    free(future);
    end(&run);
}

static void out_of_sight_one_in_so_many_leaves_a_tick(void)
{
    enum { SEEDS = 4000, TICKS = 60 };
    struct run run;
    struct future *future = malloc(sizeof *future);
    uint32_t hidden = 0;
    uint32_t left = 0;
    begin_hiding(&run);
    foresee(&run, 0, future);
    for (uint32_t i = 0; i < TICKS; i++) {
        hidden += !visible_agent(&run.scenario, &future->scene, CAR);
        go_on(future, 1);
    }
    EXPECT(hidden >= 20);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        foresee(&run, seed, future);
        go_on(future, TICKS);
        left += !future->scene.agents[CAR].present;
        EXPECT(future->scene.agents[BUS].present); /* who does not move does not leave */
    }
    double expected = SEEDS * (double)hidden / FORESEE_LEAVE_ONE_IN; /* few enough to leave once */
    EXPECT_NEAR(left, expected, 4 * sqrt(expected));
    free(future);
    end(&run);
}

static void plans_are_not_foreseen(void)
{
    struct run run;
    struct future *future = malloc(sizeof *future);
    begin(&run);
    struct scenario *s = &run.scenario;
    maps_motorway(&run.arena, &s->map, 3, 600);
    maps_scenario(&run.arena, s, (struct pose){50, 7, 0}, 0, 2, AGENTS);
    struct agent *car =
        maps_agent(s, CAR, AGENT_CAR, BEHAVIOUR_SCRIPT, (struct pose){80, 0, 0}, 10);
    script(&run, car, 1)[0] = (struct manoeuvre){
        .trigger = {TRIGGER_TIME, 0.5}, .kind = MANOEUVRE_SPEED, .speed_mps = 0, .rate_mps2 = 4};
    maps_agent(s, BUS, AGENT_PEDESTRIAN, BEHAVIOUR_SCRIPT, (struct pose){90, -6, PI_RAD / 2}, 1.4);
    maps_agent(s, LATER, AGENT_CAR, BEHAVIOUR_SCRIPT, (struct pose){60, 3.5, 0}, 10);
    start(&run, &world_object_ops, 0);
    foresee(&run, 0, future);
    for (uint32_t i = 0; i < 30; i++) {
        tick(&run, 0);
        go_on(future, 1);
    }
    EXPECT(run.scene->agents[CAR].speed_mps < 1);
    EXPECT(future->scene.agents[CAR].speed_mps > 9); /* or it yields to the pedestrian */
    EXPECT_NEAR(future->scene.agents[BUS].pose.y_m, -6 + 3 * 1.4, 1e-9);
    EXPECT_NEAR(future->scene.agents[LATER].pose.x_m, 90, 1e-6);
    free(future);
    end(&run);
}

/* A driver who speeds up: in the first tick as was seen, then less and less, as IDM explains it. */
static void acceleration_is_known_and_explained(void)
{
    struct run run;
    struct future *future = malloc(sizeof *future);
    begin(&run);
    struct scenario *s = &run.scenario;
    maps_motorway(&run.arena, &s->map, 3, 900);
    maps_scenario(&run.arena, s, (struct pose){50, 7, 0}, 0, 2, 1);
    struct agent *car = maps_agent(s, CAR, AGENT_CAR, BEHAVIOUR_IDM, (struct pose){80, 0, 0}, 10);
    car->idm.desired_speed_mps = 14;
    car->idm.accel_max_mps2 = 1.9;
    start(&run, &world_object_ops, 0);
    foresee(&run, 0, future);
    tick(&run, 0);
    go_on(future, 1);
    EXPECT(run.scene->agents[CAR].accel_mps2 > 1);
    double accel_mps2 = run.scene->agents[CAR].accel_mps2;
    EXPECT_NEAR(future->scene.agents[CAR].accel_mps2, accel_mps2, 1e-9);
    for (uint32_t i = 1; i < 50; i++) {
        tick(&run, 0);
        go_on(future, 1);
    }
    double is_m = run.scene->agents[CAR].pose.x_m;
    double accelerating_m = 80 + 10 * 5 + 0.5 * accel_mps2 * 25;
    EXPECT(accelerating_m > is_m);
    EXPECT(future->scene.agents[CAR].pose.x_m > is_m - 1);
    EXPECT(future->scene.agents[CAR].pose.x_m < accelerating_m - 1);
    free(future);
    end(&run);
}

/* The first successor turns, the second goes straight on. */
static void where_lanes_part_the_straighter_one_is_followed(void)
{
    struct run run;
    struct future *future = malloc(sizeof *future);
    begin(&run);
    struct scenario *s = &run.scenario;
    struct lane *lanes = maps_lanes(&run.arena, &s->map, 3);
    maps_straight(&run.arena, &lanes[0], (struct pose){0, 0, 0}, 100, 3.5);
    maps_arc(&run.arena, &lanes[1], (struct vec2){100, 30}, 30, -PI_RAD / 2, 0, 30, 3.5);
    maps_straight(&run.arena, &lanes[2], (struct pose){100, 0, 0}, 300, 3.5);
    maps_successor(&run.arena, &lanes[0], 1);
    maps_successor(&run.arena, &lanes[0], 2);
    maps_scenario(&run.arena, s, (struct pose){10, 0, 0}, 0, 0, 1);
    maps_agent(s, CAR, AGENT_CAR, BEHAVIOUR_IDM, (struct pose){80, 0, 0}, 8);
    start(&run, &world_object_ops, 0);
    foresee(&run, 0, future);
    for (uint32_t i = 0; i < 60; i++) {
        tick(&run, 0);
        go_on(future, 1);
    }
    EXPECT(run.scene->agents[CAR].pose.y_m > 3); /* the object world takes the first */
    EXPECT_NEAR(future->scene.agents[CAR].pose.y_m, 0, 1e-6);
    EXPECT(future->scene.agents[CAR].pose.x_m > 120);
    free(future);
    end(&run);
}

static void who_was_not_there_is_absent_until_told(void)
{
    struct run run;
    struct error error;
    struct future *future = malloc(sizeof *future);
    struct intervention brake = {.kind = INTERVENE_AGENT_BRAKE, .agent = LATER, .decel_mps2 = 3};
    const struct intervention appear = {.kind = INTERVENE_AGENT_APPEAR, .agent = LATER};
    begin_hiding(&run);
    foresee(&run, 0, future);
    go_on(future, 5);
    EXPECT(!future->scene.agents[LATER].present);
    EXPECT_INT(foresee_intervene(future->foresight, &brake, &future->scene, future->motion, &error),
               STATUS_BAD_INPUT);
    EXPECT_OK(foresee_intervene(future->foresight, &appear, &future->scene, future->motion, &error),
              error);
    go_on(future, 10);
    EXPECT(future->scene.agents[LATER].present);
    EXPECT_NEAR(future->scene.agents[LATER].pose.x_m, 205, 1);
    brake.agent = CAR;
    EXPECT_OK(foresee_intervene(future->foresight, &brake, &future->scene, future->motion, &error),
              error);
    go_on(future, 10);
    EXPECT_NEAR(future->scene.agents[CAR].speed_mps, 7, 0.1);
    free(future);
    end(&run);
}

static void all_who_ask_share_one(void)
{
    struct run run;
    const struct foresight *first;
    const struct foresight *second;
    struct error error;
    begin_hiding(&run);
    EXPECT_OK(foresight_of(run.prepared, run.scene, &first, &error), error);
    EXPECT_OK(foresight_of(run.prepared, run.scene, &second, &error), error);
    EXPECT(first == second);
    end(&run);
}

/* ---- a drive that is handed over in the middle ---- */

static void hand_over(struct run *run, enum traffic_model model, uint32_t draw)
{
    const struct intervention what = {
        .kind = INTERVENE_TRAFFIC, .agent = -1, .traffic = model, .draw = draw};
    struct error error;
    EXPECT_OK(run->ops->slot_intervene(run->world, 0, &what, &error), error);
}

/* Three lanes. A car that brakes at 4 s, one that IDM drives, and one that speeds up. */
static void begin_driving(struct run *run, uint64_t seed, uint32_t ticks)
{
    begin(run);
    struct scenario *s = &run->scenario;
    maps_motorway(&run->arena, &s->map, 3, 900);
    maps_scenario(&run->arena, s, (struct pose){50, 7, 0}, 0, 2, AGENTS);
    struct agent *brakes =
        maps_agent(s, CAR, AGENT_CAR, BEHAVIOUR_SCRIPT, (struct pose){80, 0, 0}, 10);
    script(run, brakes, 1)[0] = (struct manoeuvre){
        .trigger = {TRIGGER_TIME, 4}, .kind = MANOEUVRE_SPEED, .speed_mps = 0, .rate_mps2 = 4};
    maps_agent(s, BUS, AGENT_BUS, BEHAVIOUR_IDM, (struct pose){120, 3.5, 0}, 10);
    struct agent *speeds_up =
        maps_agent(s, LATER, AGENT_CAR, BEHAVIOUR_SCRIPT, (struct pose){120, 7, 0}, 10);
    script(run, speeds_up, 1)[0] = (struct manoeuvre){
        .trigger = {TRIGGER_TIME, 1}, .kind = MANOEUVRE_SPEED, .speed_mps = 20, .rate_mps2 = 1};
    start(run, &world_object_ops, seed);
    for (uint32_t i = 0; i < ticks; i++) {
        tick(run, 0);
    }
}

/* Scene after `ticks` more under a model; CAR's speed there. */
static double speed_after(enum traffic_model model, uint32_t draw, uint32_t agent, uint32_t ticks)
{
    struct run run;
    begin_driving(&run, 1, 20);
    const struct agent_state before = run.scene->agents[agent];
    hand_over(&run, model, draw);
    EXPECT(memcmp(&before, &run.scene->agents[agent], sizeof before) == 0); /* it begins as it is */
    for (uint32_t i = 0; i < ticks; i++) {
        tick(&run, 0);
    }
    double speed_mps = run.scene->agents[agent].speed_mps;
    end(&run);
    return speed_mps;
}

static void models_do_not_know_what_is_written(void)
{
    EXPECT(speed_after(TRAFFIC_MODEL_WRITTEN, 1, CAR, 40) < 3);
    EXPECT(speed_after(TRAFFIC_MODEL_IDM, 0, CAR, 40) > 9);
    EXPECT(speed_after(TRAFFIC_MODEL_DRIVERS, 0, CAR, 40) > 9);
    EXPECT_NEAR(speed_after(TRAFFIC_MODEL_CONSTANT, 0, CAR, 40), 10, 1e-9);
}

static void a_constant_acceleration_ends(void)
{
    double now_mps = speed_after(TRAFFIC_MODEL_CONSTANT, 0, LATER, 0);
    EXPECT_NEAR(speed_after(TRAFFIC_MODEL_CONSTANT, 0, LATER, 20), now_mps + 2, 1e-9);
    EXPECT_NEAR(speed_after(TRAFFIC_MODEL_CONSTANT, 0, LATER, 30), now_mps + 3, 1e-9);
    EXPECT_NEAR(speed_after(TRAFFIC_MODEL_CONSTANT, 0, LATER, 50), now_mps + 3, 1e-9);
}

/* Nominal draws of default and of drawn drivers are the same; others differ, and come again. */
static void draws_are_futures_of_their_own(void)
{
    for (int m = 0; m < TRAFFIC_MODEL_COUNT; m++) {
        enum traffic_model model = (enum traffic_model)m;
        double first_mps = speed_after(model, 2, BUS, 40);
        EXPECT(first_mps == speed_after(model, 2, BUS, 40));
        EXPECT(first_mps != speed_after(model, 3, BUS, 40));
    }
    EXPECT(speed_after(TRAFFIC_MODEL_IDM, 0, BUS, 40) ==
           speed_after(TRAFFIC_MODEL_DRIVERS, 0, BUS, 40));
}

static void the_own_seed_changes_nothing_that_is_written(void)
{
    struct run as_is;
    struct run varied;
    begin_driving(&as_is, 7, 20);
    begin_driving(&varied, 7, 20);
    hand_over(&varied, TRAFFIC_MODEL_WRITTEN, 7);
    for (uint32_t i = 0; i < 50; i++) {
        tick(&as_is, 0);
        tick(&varied, 0);
    }
    EXPECT(memcmp(as_is.scene->agents, varied.scene->agents,
                  AGENTS * sizeof as_is.scene->agents[0]) == 0);
    end(&as_is);
    end(&varied);
}

/* A fork of what was handed over outlives it, and a second model takes over from the first. */
static void fork_of(enum traffic_model model)
{
    const struct intervention back = {.kind = INTERVENE_TRAFFIC, .agent = -1, .draw = 1};
    struct run run;
    struct error error;
    begin_driving(&run, 1, 20);
    hand_over(&run, model, 3);
    struct world *two;
    EXPECT_OK(run.ops->open(&(struct world_config){.slot_count = 2}, &two, &error), error);
    EXPECT_OK(run.ops->slot_reset(two, 0, run.prepared, 1, &error), error);
    struct action actions[2] = {{0}};
    const uint8_t first[2] = {1, 0};
    const uint8_t second[2] = {0, 1};
    for (uint32_t i = 0; i < 20; i++) {
        run.ops->step(two, actions, first);
    }
    const struct intervention what = {
        .kind = INTERVENE_TRAFFIC, .agent = -1, .traffic = model, .draw = 3};
    EXPECT_OK(run.ops->slot_intervene(two, 0, &what, &error), error);
    for (uint32_t i = 0; i < 7; i++) {
        run.ops->step(two, actions, first);
        tick(&run, 0);
    }
    run.ops->slot_fork(two, 0, 1);
    run.ops->slot_release(two, 0);
    for (uint32_t i = 0; i < 23; i++) {
        run.ops->step(two, actions, second);
        tick(&run, 0);
    }
    EXPECT(memcmp(run.scene->agents, run.ops->slot_scene(two, 1)->agents,
                  AGENTS * sizeof run.scene->agents[0]) == 0);
    run.ops->close(two);
    hand_over(&run, TRAFFIC_MODEL_DRIVERS, 1);
    tick(&run, 0);
    EXPECT_INT(run.ops->slot_intervene(run.world, 0, &back, &error), STATUS_BAD_INPUT);
    EXPECT(strstr(error.text, "written") != NULL);
    end(&run);
}

static void forks_and_further_models(void)
{
    fork_of(TRAFFIC_MODEL_CONSTANT);
    fork_of(TRAFFIC_MODEL_TOKENS);
}

int main(void)
{
    return TEST_RUN(TEST(who_is_hidden_for_two_seconds_comes_back),
                    TEST(out_of_sight_one_in_so_many_leaves_a_tick), TEST(plans_are_not_foreseen),
                    TEST(acceleration_is_known_and_explained),
                    TEST(where_lanes_part_the_straighter_one_is_followed),
                    TEST(who_was_not_there_is_absent_until_told), TEST(all_who_ask_share_one),
                    TEST(models_do_not_know_what_is_written), TEST(a_constant_acceleration_ends),
                    TEST(draws_are_futures_of_their_own),
                    TEST(the_own_seed_changes_nothing_that_is_written),
                    TEST(forks_and_further_models));
}
