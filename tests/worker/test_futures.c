/*
 * Futures. Method: a planner that keeps its speed drives up to a car that goes at the same speed,
 * or that brakes later on by its script. What is written is foreseen by the model that knows it
 * alone, and once it happens by all; the same question has the same answer; and intervals say
 * nothing that a model does not. Moments of records whose drives part, or pass somebody, where it
 * is known.
 */
#include "tests/worker/jobs.h"
#include "worker/careful/futures_job.h"
#include "worker/careful/futures_share.h"
#include "worker/run/revision.h"

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
    const struct job_lease lease = {.job_id = 1, .spec = {.seed = 1, .tier = TIER_OBJECT}};
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
    const struct futures_task task = {.lease = &lease,
                                      .scenario = &s.scenario,
                                      .trace_hash = trace_hash,
                                      .tick = tick,
                                      .draws = draws,
                                      .have = FUTURES_ALL};
    EXPECT_OK(futures_drive(runner, &task, &found, &error), error);
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
    struct forecast_share all = futures_share_over(&found, FUTURES_ALL);
    EXPECT(all.value > 0.2 && all.value < 0.8);
    EXPECT_INT(forecast_answer(&all), FORECAST_UNDECIDED);
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
    struct futures found = {.draws = forecast_draws_decisive(), .have = FUTURES_ALL};
    for (int m = 0; m < TRAFFIC_MODEL_COUNT; m++) {
        found.models[m].passed = found.draws;
    }
    struct forecast_share all = futures_share_over(&found, FUTURES_ALL);
    EXPECT_INT(forecast_answer(&all), FORECAST_PASS);
    for (int m = 0; m < TRAFFIC_MODEL_COUNT; m++) {
        found.models[m].passed--;
    }
    all = futures_share_over(&found, FUTURES_ALL);
    EXPECT_INT(forecast_answer(&all), FORECAST_UNDECIDED);
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

/* ---- moments ---- */

enum { RECORD_TICKS = 60, PARTED = 30, NARROWEST = 40 };

/* Ego goes along at 1 m a tick past somebody who stands at NARROWEST, and from PARTED on, where
 * `swerves`, 0.2 m a tick to the left. */
static void record(bool swerves, uint32_t ticks, struct trace_reader *reader, uint8_t **data)
{
    static const char *const ids[] = {""};
    static const int32_t parents[] = {-1};
    struct trace trace;
    struct error error;
    size_t bytes = 0;
    trace_init(&trace, 1);
    for (uint32_t tick = 0; tick < ticks; tick++) {
        struct scene scene = {.tick = tick, .agent_count = 1};
        const struct trace_extra extra = {.guardian = false};
        scene.ego.pose.x_m = tick;
        scene.ego.pose.y_m = swerves && tick > PARTED ? 0.2 * (tick - PARTED) : 0;
        scene.agents[0].pose = (struct pose){NARROWEST, 3, 0};
        scene.agents[0].present = true;
        EXPECT_OK(trace_append(&trace, &scene, &extra, &error), error);
    }
    const struct trace *traces[] = {&trace};
    EXPECT_OK(trace_pack(traces, ids, parents, 1, data, &bytes, &error), error);
    EXPECT_OK(trace_reader_init(reader, *data, bytes, &error), error);
    trace_finish(&trace);
}

/* The first tick that is further apart than half a metre is the third; a drive that ends parts from
 * one that goes on there. */
static void moments_are_before_it_happens(void)
{
    struct trace_reader straight;
    struct trace_reader swerving;
    struct trace_reader shorter;
    uint8_t *data[3];
    record(false, RECORD_TICKS, &straight, &data[0]);
    record(true, RECORD_TICKS, &swerving, &data[1]);
    record(false, 5, &shorter, &data[2]);
    EXPECT_INT(futures_tick_parted(&straight, &swerving, UINT32_MAX),
               PARTED + 3 - FUTURES_PARTED_TICKS);
    EXPECT_INT(futures_tick_parted(&swerving, &straight, 35), PARTED + 3 - FUTURES_PARTED_TICKS);
    EXPECT_INT(futures_tick_parted(&straight, &straight, 3), RECORD_TICKS - FUTURES_PARTED_TICKS);
    EXPECT_INT(futures_tick_parted(&straight, &shorter, UINT32_MAX), 0);
    EXPECT_INT(futures_tick_parted(&straight, &swerving, 50), 50 - FUTURES_CRUX_TICKS);
    EXPECT_INT(futures_tick_crux(&straight, UINT32_MAX), NARROWEST - FUTURES_CRUX_TICKS);
    EXPECT_INT(futures_tick_crux(&straight, 25), 25 - FUTURES_CRUX_TICKS);
    EXPECT_INT(futures_tick_crux(&shorter, UINT32_MAX), 0);
    for (int i = 0; i < 3; i++) {
        free(data[i]);
    }
    trace_reader_finish(&straight);
    trace_reader_finish(&swerving);
    trace_reader_finish(&shorter);
}

static void jobs_ask_of_one_drive(void)
{
    struct job_spec drive = {.scenario_id = "scene", .tier = TIER_STUDENT, .rollout_count = 9};
    struct job_spec spec;
    struct error error;
    strcpy(drive.key, "key");
    strcpy(drive.pool, "teacher");
    strcpy(drive.escalate_pool, "teacher");
    EXPECT_INT(futures_job(&drive, 37, 16, &spec, &error), STATUS_MISMATCH);
    snprintf(drive.revision, sizeof drive.revision, "%s", revision_hash);
    EXPECT_OK(futures_job(&drive, 37, 16, &spec, &error), error);
    uint32_t tick = 0;
    uint32_t draws = 0;
    EXPECT(job_futures(&spec, &tick, &draws) && job_has_maker(&spec) && !job_has_maker(&drive));
    EXPECT(tick == 37 && draws == 16);
    EXPECT_TEXT(spec.makes, "futures:37:16");
    EXPECT_TEXT(spec.audit_key, "key");
    EXPECT_TEXT(spec.pool, "bulk");
    EXPECT(spec.tier == TIER_OBJECT && spec.rollout_count == 1 && spec.escalate_pool[0] == '\0');
    struct job_spec later;
    EXPECT_OK(futures_job(&drive, 38, 16, &later, &error), error);
    EXPECT(strcmp(spec.key, later.key) != 0 && strcmp(spec.key, drive.key) != 0);
}

static void the_interval_has_that_of_each_model(void)
{
    struct futures found = {.draws = 16, .have = FUTURES_ALL};
    for (int m = 0; m < TRAFFIC_MODEL_COUNT; m++) {
        found.models[m] = (struct futures_of_model){.passed = 16};
    }
    struct forecast_share all = futures_share_over(&found, FUTURES_ALL);
    EXPECT_NEAR(all.value, 0, 0);
    EXPECT_NEAR(all.high, 0.2407360, 1e-6); /* Newcombe's method 4 of 0 in 16 */
    EXPECT_INT(forecast_answer(&all), FORECAST_PASS);
    found.models[TRAFFIC_MODEL_DRIVERS] = (struct futures_of_model){.failed = 16};
    all = futures_share_over(&found, FUTURES_ALL);
    EXPECT_NEAR(all.value, 1.0 / TRAFFIC_MODEL_COUNT, 1e-12);
    EXPECT(all.low == 0 && all.high == 1);
    EXPECT_INT(forecast_answer(&all), FORECAST_UNDECIDED);
    for (int m = 0; m < TRAFFIC_MODEL_COUNT; m++) {
        found.models[m] = (struct futures_of_model){.passed = 1, .failed = 15};
    }
    all = futures_share_over(&found, FUTURES_ALL);
    EXPECT_INT(forecast_answer(&all), FORECAST_FAIL);
    found.models[TRAFFIC_MODEL_IDM] =
        (struct futures_of_model){.without = 16}; /* it says nothing */
    all = futures_share_over(&found, FUTURES_ALL);
    EXPECT_NEAR(all.value, 15.0 / 16, 1e-12);
    EXPECT_INT(forecast_answer(&all), FORECAST_UNDECIDED);
}

int main(void)
{
    return TEST_RUN(TEST(what_is_written_is_known_to_one_model), TEST(what_has_begun_is_foreseen),
                    TEST(what_has_failed_for_good_is_not_foretold),
                    TEST(what_can_be_made_good_is_foretold), TEST(answers_take_draws),
                    TEST(the_same_question_has_the_same_answer), TEST(nothing_follows_the_end),
                    TEST(the_interval_has_that_of_each_model), TEST(moments_are_before_it_happens),
                    TEST(jobs_ask_of_one_drive));
}
