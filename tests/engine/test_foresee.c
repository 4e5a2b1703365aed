/*
 * Goal: what is foreseen follows from the first tick alone, and who is out of sight is not
 * forgotten. Method: small scenes whose agents have plans of their own run in the object world; the
 * same start is foreseen beside it, and both are compared at ticks at which they must agree or
 * differ. The chance to have left is counted over seeds.
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

int main(void)
{
    return TEST_RUN(TEST(who_is_hidden_for_two_seconds_comes_back),
                    TEST(out_of_sight_one_in_so_many_leaves_a_tick), TEST(plans_are_not_foreseen),
                    TEST(acceleration_is_known_and_explained),
                    TEST(where_lanes_part_the_straighter_one_is_followed),
                    TEST(who_was_not_there_is_absent_until_told), TEST(all_who_ask_share_one));
}
