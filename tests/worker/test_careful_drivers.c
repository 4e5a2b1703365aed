/*
 * Goal: careful drivers are asked of what they were made for, and answer by driving.
 * Method: on a motorway, a car that stands far ahead is stopped for, one that stands too near is
 * not; what is no motorway names the reason; main lines alone that broke
 * something unsafe are asked; an answer that is kept is the answer.
 */
#include "schemas/storyboard/storyboard.h"
#include "tests/worker/jobs.h"
#include "worker/careful/careful_drivers.h"

static struct careful_drivers *open_drivers(void)
{
    struct careful_drivers *drivers = NULL;
    struct error error;
    EXPECT_OK(careful_drivers_create(&drivers, &error), error);
    return drivers;
}

static struct careful ask(struct careful_drivers *drivers, const struct scenario *scenario,
                          const char *hash, uint64_t seed)
{
    struct careful found;
    struct error error;
    EXPECT_OK(careful_ask(drivers, scenario, hash, seed, &found, &error), error);
    return found;
}

/* A motorway with nobody on it but a car that stands in ego's lane. */
static void standing_car(struct jobs_scenario *s, double at_m, double ego_mps)
{
    jobs_scenario_init(s, "standing", 100);
    s->scenario.ego.speed_mps = ego_mps;
    for (uint32_t i = 1; i < JOBS_AGENTS; i++) {
        maps_agent(&s->scenario, i, AGENT_OBJECT, BEHAVIOUR_STATIC,
                   (struct pose){900 + 5 * i, -9, 0}, 0);
    }
    maps_agent(&s->scenario, 0, AGENT_CAR, BEHAVIOUR_STATIC, (struct pose){at_m, 3.5, 0}, 0);
}

static void what_can_be_avoided_is_and_the_rest_is_not(void)
{
    struct careful_drivers *drivers = open_drivers();
    struct jobs_scenario s;
    standing_car(&s, 200, 25);
    struct careful far_off = ask(drivers, &s.scenario, "far", 0);
    EXPECT_TEXT(far_off.outside, "");
    arena_finish(&s.arena);
    standing_car(&s, 75, 25); /* less than the way that the brakes alone take */
    struct careful near_by = ask(drivers, &s.scenario, "near", 0);
    arena_finish(&s.arena);
    for (int m = 0; m < CAREFUL_MODELS; m++) {
        EXPECT(far_off.drives[m].avoids && !far_off.drives[m].collides);
        EXPECT(!near_by.drives[m].avoids && near_by.drives[m].collides);
        EXPECT_INT(near_by.drives[m].agent, 0);
        EXPECT(near_by.drives[m].impact_mps > 3.0 && near_by.drives[m].impact_mps < 25.0);
    }
    careful_drivers_destroy(drivers);
}

static void branches_are_not_driven(void)
{
    struct careful_drivers *drivers = open_drivers();
    struct jobs_scenario s;
    standing_car(&s, 200, 25);
    struct intervention *none = jobs_branch(&s, 5, INTERVENE_EGO_MAINTAIN);
    none->tick = 5;
    struct careful found = ask(drivers, &s.scenario, "branched", 0);
    EXPECT(found.drives[CAREFUL_DRIVER].avoids);
    arena_finish(&s.arena);
    careful_drivers_destroy(drivers);
}

/* An agent that jumps, as a storyboard may have it: nobody's drive is judged. */
static void drives_without_an_answer_answer_nothing(void)
{
    struct careful_drivers *drivers = open_drivers();
    struct jobs_scenario s;
    struct story_point here[2] = {{0, 600, 50, 0, 0}, {5, 605, 50, 0, 0}};
    struct story_point there[2] = {{0, 900, 50, 0, 0}, {5, 905, 50, 0, 0}};
    struct story_path paths[2] = {{.point_count = 2, .points = here, .next = 1},
                                  {.point_count = 2, .points = there, .next = -1}};
    struct story_actor actor = {.agent = 3,
                                .speed_mps = 10,
                                .accel_max_mps2 = 10,
                                .decel_max_mps2 = 10,
                                .speed_max_mps = 50};
    struct storyboard board = {.path_count = 2, .paths = paths, .actor_count = 1, .actors = &actor};
    standing_car(&s, 200, 25);
    maps_agent(&s.scenario, 3, AGENT_CAR, BEHAVIOUR_STORYBOARD, (struct pose){600, 50, 0}, 10);
    s.scenario.storyboard = &board;
    EXPECT_TEXT(ask(drivers, &s.scenario, "jumps", 0).outside, "the drive in its place is flagged");
    arena_finish(&s.arena);
    careful_drivers_destroy(drivers);
}

/* By hash and seed, even were the scenario another one: it is not driven twice. */
static void an_answer_is_kept(void)
{
    struct careful_drivers *drivers = open_drivers();
    struct jobs_scenario s;
    standing_car(&s, 200, 25);
    EXPECT(ask(drivers, &s.scenario, "one", 0).drives[0].avoids);
    s.scenario.agents[0].pose.x_m = 75;
    EXPECT(ask(drivers, &s.scenario, "one", 0).drives[0].avoids);
    EXPECT(!ask(drivers, &s.scenario, "one", 1).drives[0].avoids);
    EXPECT(!ask(drivers, &s.scenario, "other", 0).drives[0].avoids);
    for (int i = 0; i < 300; i++) { /* more than are kept */
        char hash[16];
        snprintf(hash, sizeof hash, "h%d", i);
        s.scenario.conditions.friction = 0.3;
        EXPECT_CONTAINS(ask(drivers, &s.scenario, hash, 0).outside, "slippery");
    }
    arena_finish(&s.arena);
    careful_drivers_destroy(drivers);
}

static void what_is_no_motorway_is_not_asked(void)
{
    struct jobs_scenario s;
    char why[LIMIT_TEXT_BYTES];
    standing_car(&s, 200, 25);
    struct scenario *scenario = &s.scenario;
    struct lane *lane = &scenario->map.lanes[scenario->ego.route[0]];
    careful_outside(scenario, why);
    EXPECT_TEXT(why, "");
    scenario->agents[2].kind = AGENT_CYCLIST;
    careful_outside(scenario, why);
    EXPECT_TEXT(why, "a cyclist takes part");
    scenario->agents[2].kind = AGENT_OBJECT;
    lane->intersection = true;
    careful_outside(scenario, why);
    EXPECT_TEXT(why, "ego's route crosses a junction");
    lane->intersection = false;
    lane->left_opposite = true;
    careful_outside(scenario, why);
    EXPECT_CONTAINS(why, "towards ego");
    lane->left_opposite = false;
    lane->speed_limit_mps = 50 / 3.6;
    careful_outside(scenario, why);
    EXPECT_CONTAINS(why, "60 km/h");
    lane->speed_limit_mps = 60 / 3.6;
    careful_outside(scenario, why);
    EXPECT_TEXT(why, "");
    arena_finish(&s.arena);
}

static void only_unsafe_main_lines_are_asked(void)
{
    struct outcome outcome = {.verdict = VERDICT_FAIL, .reasons = REASON_COLLISION};
    outcome.metrics.collision_count = 1;
    EXPECT(careful_asked(&outcome));
    outcome.branch_id[0] = 'b';
    EXPECT(!careful_asked(&outcome));
    outcome.branch_id[0] = '\0';
    outcome.verdict = VERDICT_PASS;
    EXPECT(!careful_asked(&outcome));
    outcome.verdict = VERDICT_FAIL;
    outcome.metrics.collision_count = 0;
    outcome.reasons = REASON_PROGRESS; /* too slow: nothing to avoid */
    EXPECT(!careful_asked(&outcome));
}

static void json_has_what_was_found(void)
{
    struct careful careful = {.outside = "a cyclist takes part"};
    json_t *json = careful_json(&careful);
    EXPECT_TEXT(json_string_value(json_object_get(json, "outside")), "a cyclist takes part");
    json_decref(json);
    careful.outside[0] = '\0';
    careful.drives[CAREFUL_FUZZY] = (struct careful_drive){.collides = true, .impact_mps = 2.5};
    json = careful_json(&careful);
    json_t *fuzzy = json_object_get(json, "fuzzy");
    EXPECT(json_is_false(json_object_get(fuzzy, "avoids")));
    EXPECT_NEAR(json_real_value(json_object_get(fuzzy, "impact_mps")), 2.5, 1e-12);
    EXPECT(json_object_get(json_object_get(json, "driver"), "impact_mps") == NULL);
    json_decref(json);
}

int main(void)
{
    return TEST_RUN(TEST(what_can_be_avoided_is_and_the_rest_is_not), TEST(branches_are_not_driven),
                    TEST(drives_without_an_answer_answer_nothing), TEST(an_answer_is_kept),
                    TEST(what_is_no_motorway_is_not_asked), TEST(only_unsafe_main_lines_are_asked),
                    TEST(json_has_what_was_found));
}
