/*
 * Futures. Method: a planner that keeps its speed drives up to a car that goes at the same speed,
 * or that brakes later on by its script. What is written is foreseen by the model that knows it
 * alone, and once it happens by all; the same question has the same answer; and intervals say
 * nothing that a model does not.
 */
#include "tests/worker/jobs.h"
#include "worker/careful/futures.h"

enum { HORIZON = 100, BRAKES_S = 4 };

/* Another world than that of the braking car: an object on ego's lane, which ends no drive; or a
 * free road of which too much is asked. */
enum hazard { HAZARD_BRAKES, HAZARD_OBJECT, HAZARD_PROGRESS };

static struct futures ask_about(enum hazard hazard, uint32_t tick, uint32_t draws,
                                const char *trace_hash)
{
    const struct runner_config config = {.world = &world_object_ops,
                                         .planner = "builtin:maintain",
                                         .planner_config = {.tick_deadline_ms = 2000},
                                         .slot_count = 8,
                                         .clock = clock_system()};
    struct jobs_scenario s;
    struct runner *runner = NULL;
    struct futures found;
    struct error error;
    struct outcome outcome = {.id = 1, .seed = 1, .tier = TIER_OBJECT};
    snprintf(outcome.trace_hash, sizeof outcome.trace_hash, "%s", trace_hash);
    jobs_scenario_init(&s, "braking", HORIZON);
    for (uint32_t i = 1; i < JOBS_AGENTS; i++) {
        maps_agent(&s.scenario, i, AGENT_OBJECT, BEHAVIOUR_STATIC,
                   (struct pose){900 + 5 * i, -9, 0}, 0);
    }
    struct agent *car = maps_agent(&s.scenario, 0, AGENT_CAR, BEHAVIOUR_SCRIPT,
                                   (struct pose){90, 3.5, 0}, s.scenario.ego.speed_mps);
    struct manoeuvre brake = {.trigger = {TRIGGER_TIME, BRAKES_S},
                              .kind = MANOEUVRE_SPEED,
                              .speed_mps = 0,
                              .rate_mps2 = 6};
    car->manoeuvre_count = hazard == HAZARD_BRAKES;
    car->manoeuvres = &brake;
    if (hazard == HAZARD_OBJECT) {
        s.scenario.agents[1].pose = (struct pose){80, 3.5, 0};
    }
    if (hazard == HAZARD_PROGRESS) {
        s.scenario.criteria.progress_min = 1.0;
        s.scenario.criteria.expected_progress_m = 1000;
    }
    EXPECT_OK(runner_create(&config, &runner, &error), error);
    EXPECT_OK(futures_drive(runner, &s.scenario, &outcome, tick, draws, true, &found, &error),
              error);
    runner_destroy(runner);
    arena_finish(&s.arena);
    return found;
}

static struct futures ask(uint32_t tick, uint32_t draws, const char *trace_hash)
{
    return ask_about(HAZARD_BRAKES, tick, draws, trace_hash);
}

static void what_is_written_is_known_to_one_model(void)
{
    struct futures found = ask(0, 3, "another");
    EXPECT(!found.same && found.begun);
    EXPECT_INT(found.verdict, VERDICT_FAIL);
    EXPECT_INT(found.nominal, VERDICT_PASS);
    EXPECT_INT(found.models[TRAFFIC_MODEL_WRITTEN].failed, 3);
    EXPECT_INT(found.models[TRAFFIC_MODEL_WRITTEN].failing, 7);
    EXPECT_INT(found.models[TRAFFIC_MODEL_IDM].failed, 0);
    struct futures_share all = futures_share_over(&found, FUTURES_ALL);
    EXPECT(all.value > 0.2 && all.value < 0.8);
    EXPECT_INT(futures_answer(&all), FUTURES_UNDECIDED);
    EXPECT(futures_share_over(&found, FUTURES_FORESEEN).value < all.value);
}

static void what_has_begun_is_foreseen(void)
{
    struct futures found = ask(BRAKES_S * 10 + 10, 3, "");
    EXPECT(found.begun);
    EXPECT_INT(found.nominal, VERDICT_FAIL);
    EXPECT_INT(found.models[TRAFFIC_MODEL_CONSTANT].failed, 3);
}

/* 30 m at 15 m/s, less two half lengths: the contact is at 1.6 s or so. Before it, the object is
 * foretold; from its frame on there is nothing to foretell, though the drive goes on. */
static void what_has_failed_for_good_is_not_foretold(void)
{
    uint32_t contact = 0;
    for (uint32_t tick = 0; tick < 30; tick++) {
        struct futures found = ask_about(HAZARD_OBJECT, tick, 1, "");
        EXPECT(found.begun);
        EXPECT_INT(found.verdict, VERDICT_FAIL);
        EXPECT_INT(found.models[TRAFFIC_MODEL_IDM].failed, 1);
        EXPECT(!(contact > 0 && !found.failed_before));
        contact = contact == 0 && found.failed_before ? tick : contact;
    }
    EXPECT(contact >= 14 && contact <= 20);
    EXPECT(ask_about(HAZARD_OBJECT, HORIZON - 1, 1, "").failed_before);
}

/* Progress is judged over the whole drive: at 5 s nothing has failed yet. */
static void what_can_be_made_good_is_foretold(void)
{
    struct futures found = ask_about(HAZARD_PROGRESS, 50, 1, "");
    EXPECT_INT(found.verdict, VERDICT_FAIL);
    EXPECT(found.begun && !found.failed_before);
}

static void answers_take_draws(void)
{
    struct futures found = {.draws = futures_draws_decisive(), .tokens = true};
    for (int m = 0; m < TRAFFIC_MODEL_COUNT; m++) {
        found.models[m].passed = found.draws;
    }
    struct futures_share all = futures_share_over(&found, FUTURES_ALL);
    EXPECT_INT(futures_answer(&all), FUTURES_PASS);
    for (int m = 0; m < TRAFFIC_MODEL_COUNT; m++) {
        found.models[m].passed--;
    }
    all = futures_share_over(&found, FUTURES_ALL);
    EXPECT_INT(futures_answer(&all), FUTURES_UNDECIDED);
}

static void the_same_question_has_the_same_answer(void)
{
    struct futures first = ask(10, 8, "");
    struct futures second = ask(10, 8, "");
    for (int m = 0; m < TRAFFIC_MODEL_COUNT; m++) {
        EXPECT(first.models[m].failing == second.models[m].failing);
        EXPECT_INT(first.models[m].passed + first.models[m].failed + first.models[m].without, 8);
    }
}

static void nothing_follows_the_end(void)
{
    EXPECT(!ask(HORIZON, 1, "").begun);
    EXPECT(!ask(HORIZON - 1, 1, "").begun); /* it has hit the car before */
}

static void the_interval_has_that_of_each_model(void)
{
    struct futures found = {.draws = 16, .tokens = true};
    for (int m = 0; m < TRAFFIC_MODEL_COUNT; m++) {
        found.models[m] = (struct futures_of_model){.passed = 16};
    }
    struct futures_share all = futures_share_over(&found, FUTURES_ALL);
    EXPECT_NEAR(all.value, 0, 0);
    EXPECT_NEAR(all.high, 0.2407360, 1e-6); /* Newcombe's method 4 of 0 in 16 */
    EXPECT_INT(futures_answer(&all), FUTURES_PASS);
    found.models[TRAFFIC_MODEL_DRIVERS] = (struct futures_of_model){.failed = 16};
    all = futures_share_over(&found, FUTURES_ALL);
    EXPECT_NEAR(all.value, 1.0 / TRAFFIC_MODEL_COUNT, 1e-12);
    EXPECT(all.low == 0 && all.high == 1);
    EXPECT_INT(futures_answer(&all), FUTURES_UNDECIDED);
    for (int m = 0; m < TRAFFIC_MODEL_COUNT; m++) {
        found.models[m] = (struct futures_of_model){.passed = 1, .failed = 15};
    }
    all = futures_share_over(&found, FUTURES_ALL);
    EXPECT_INT(futures_answer(&all), FUTURES_FAIL);
    found.models[TRAFFIC_MODEL_IDM] =
        (struct futures_of_model){.without = 16}; /* it says nothing */
    all = futures_share_over(&found, FUTURES_ALL);
    EXPECT_NEAR(all.value, 15.0 / 16, 1e-12);
    EXPECT_INT(futures_answer(&all), FUTURES_UNDECIDED);
}

int main(void)
{
    return TEST_RUN(TEST(what_is_written_is_known_to_one_model), TEST(what_has_begun_is_foreseen),
                    TEST(what_has_failed_for_good_is_not_foretold),
                    TEST(what_can_be_made_good_is_foretold), TEST(answers_take_draws),
                    TEST(the_same_question_has_the_same_answer), TEST(nothing_follows_the_end),
                    TEST(the_interval_has_that_of_each_model));
}
