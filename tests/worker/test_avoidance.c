/*
 * Avoidance. Method: one lane's drive at constant speed into a standing car. Until when braking
 * avoids it follows from the stopping distance; who stands behind a truck until late is no hazard
 * that ego could have known of, though braking before would have helped; and a free road has
 * nothing to avoid.
 */
#include "tests/worker/jobs.h"
#include "worker/run/avoidance.h"

enum { HORIZON = 80 };

static struct avoidance sweep_by(struct jobs_scenario *s, const char *planner)
{
    const struct runner_config config = {.world = &world_object_ops,
                                         .planner = planner,
                                         .planner_config = {.tick_deadline_ms = 2000},
                                         .slot_count = 8,
                                         .clock = clock_system()};
    struct runner *runner = NULL;
    struct avoidance found;
    struct error error;
    /* As the store would have it: of a drive that is not known to have touched anything. */
    struct outcome outcome = {.id = 1, .seed = 0, .tier = TIER_OBJECT, .ticks = HORIZON};
    EXPECT_OK(runner_create(&config, &runner, &error), error);
    EXPECT_OK(avoidance_sweep(runner, &s->scenario, &outcome, &found, &error), error);
    runner_destroy(runner);
    arena_finish(&s->arena);
    return found;
}

static struct avoidance sweep(struct jobs_scenario *s)
{
    return sweep_by(s, "builtin:maintain");
}

/* All agents far off, but a car that stands ahead in ego's lane. */
static void standing_car(struct jobs_scenario *s, double at_m)
{
    jobs_scenario_init(s, "standing", HORIZON);
    for (uint32_t i = 1; i < JOBS_AGENTS; i++) {
        maps_agent(&s->scenario, i, AGENT_OBJECT, BEHAVIOUR_STATIC,
                   (struct pose){900 + 5 * i, -9, 0}, 0);
    }
    maps_agent(&s->scenario, 0, AGENT_CAR, BEHAVIOUR_STATIC, (struct pose){at_m, 3.5, 0}, 0);
}

static void the_last_moment_to_brake_is_the_stopping_distance(void)
{
    struct jobs_scenario s;
    standing_car(&s, 120);
    struct avoidance found = sweep(&s);
    EXPECT(!found.safe);
    EXPECT_INT(found.agent, 0);
    EXPECT_INT(found.visible_tick, 0);
    /* At 15 m/s and 8 m/s2 it takes 0.94 s of the way, and the brakes a little more. */
    uint32_t last = found.last_tick[AVOIDANCE_BRAKE];
    EXPECT(last != UINT32_MAX && avoidance_in_time(&found, AVOIDANCE_BRAKE));
    double before_s = (found.end_tick - last) * 0.1;
    EXPECT(before_s > 0.9 && before_s < 1.6);
    EXPECT(found.forks[AVOIDANCE_BRAKE] >= found.safe_forks[AVOIDANCE_BRAKE]);
}

static void what_was_never_in_sight_was_not_avoidable_in_time(void)
{
    struct avoidance found = {.agent = 2, .visible_tick = UINT32_MAX, .last_tick = {30, 30, 30}};
    EXPECT(!avoidance_in_time(&found, AVOIDANCE_BRAKE));
    found.visible_tick = 31;
    EXPECT(!avoidance_in_time(&found, AVOIDANCE_BRAKE));
    found.visible_tick = 30;
    EXPECT(avoidance_in_time(&found, AVOIDANCE_BRAKE));
    found.last_tick[AVOIDANCE_BRAKE] = UINT32_MAX;
    EXPECT(!avoidance_in_time(&found, AVOIDANCE_BRAKE));
}

/* A guardian that acts stops for what the planner drives into, and is another planner. */
static void a_guardian_that_acts_stops_ego(void)
{
    struct jobs_scenario s;
    char plain[SHA256_HEX_BYTES];
    char guarded[SHA256_HEX_BYTES];
    struct error error;
    standing_car(&s, 120);
    struct avoidance found = sweep_by(&s, "guarded+builtin:maintain");
    EXPECT(found.safe);
    EXPECT_OK(planner_identity("builtin:maintain", plain, &error), error);
    EXPECT_OK(planner_identity("guarded+builtin:maintain", guarded, &error), error);
    EXPECT(strcmp(plain, guarded) != 0);
    EXPECT(planner_identity("guarded+guarded+builtin:maintain", guarded, &error) != STATUS_OK);
}

/* In fog the car comes into sight when it is too late to brake for it. */
static void fog_shortens_what_could_be_known(void)
{
    struct jobs_scenario s;
    standing_car(&s, 120);
    s.scenario.conditions.visibility_m = 10;
    struct avoidance found = sweep(&s);
    EXPECT(!found.safe && found.visible_tick != UINT32_MAX);
    EXPECT(found.visible_tick > found.last_tick[AVOIDANCE_BRAKE]);
    EXPECT(found.last_tick[AVOIDANCE_BRAKE] != UINT32_MAX);
    EXPECT(!avoidance_in_time(&found, AVOIDANCE_BRAKE));
}

static void a_free_road_has_nothing_to_avoid(void)
{
    struct jobs_scenario s;
    standing_car(&s, 800);
    struct avoidance found = sweep(&s);
    EXPECT(found.safe);
    EXPECT_INT(found.agent, -1);
    EXPECT_INT(found.end_tick, HORIZON);
    EXPECT_INT(found.safe_forks[AVOIDANCE_BRAKE], found.forks[AVOIDANCE_BRAKE]);
    EXPECT(found.forks[AVOIDANCE_BRAKE] > 30);
}

int main(void)
{
    return TEST_RUN(TEST(the_last_moment_to_brake_is_the_stopping_distance),
                    TEST(what_was_never_in_sight_was_not_avoidable_in_time),
                    TEST(fog_shortens_what_could_be_known), TEST(a_guardian_that_acts_stops_ego),
                    TEST(a_free_road_has_nothing_to_avoid));
}
