/*
 * Goal: environments are the runner's loop with somebody else at the wheel. Under the same actions
 * a drive has the runner's bits; a copy goes on as its source does; neighbours, index and threads
 * change nothing; what cannot be done is refused and leaves everything as it was.
 * Method: a suite of the library through both, compared by trace hash and outcome; random actions
 * through environments of different shapes, all rows compared byte by byte.
 */
#include "base/rng.h"
#include "schemas/outcome_json.h"
#include "schemas/scenario_json.h"
#include "tests/worker/jobs.h"
#include "worker/env/env.h"
#include "worker/run/outcome_build.h"

#include <locale.h>

#define SUITE SWERVE_SOURCE_ROOT "/scenarios/smoke.json"
/* Drives by what it is shown: the whole grid, as environments show it. */
#define LOOKER "plugin:" PLUGIN_MOODY "?good"

enum { TICKS_MAX = 400, ENTRIES_MAX = 16 };

static struct swerve_env *open_env(uint32_t count, uint32_t threads, uint32_t wants)
{
    struct swerve_env *env = NULL;
    char text[512] = "";
    const struct swerve_env_config config = {
        SWERVE_ENV_ABI_VERSION, count, threads, wants, "object", SUITE,
    };
    if (swerve_env_open(&config, &env, text, sizeof text) != 0) {
        TEST_FAIL("%s", text);
    }
    return env;
}

static void ok(int status, const char *text)
{
    if (status != 0) {
        TEST_FAIL("%s", text);
    }
}

static void reset(struct swerve_env *env, uint32_t which, uint32_t scenario, uint64_t seed)
{
    char text[512];
    ok(swerve_env_reset(env, 1, &which, &scenario, &seed, text, sizeof text), text);
}

static void step(struct swerve_env *env)
{
    char text[512];
    ok(swerve_env_step(env, NULL, text, sizeof text), text);
}

/* The outcome of an ended drive as JSON; the caller's to release. */
static json_t *outcome_of(const struct swerve_env *env, uint32_t index)
{
    static char json[SWERVE_ENV_OUTCOME_BYTES];
    char text[512];
    ok(swerve_env_outcome(env, index, json, sizeof json, text, sizeof text), text);
    json_t *object = json_loads(json, 0, NULL);
    EXPECT(object != NULL);
    return object;
}

/* ---- the runner's bits ---- */

static const struct trace_tick *tick_of(const struct trace *trace, uint32_t tick)
{
    size_t bytes =
        sizeof(struct trace_tick) + (size_t)trace->agent_count * sizeof(struct trace_agent);
    EXPECT(tick < trace->tick_count);
    return (const struct trace_tick *)(const void *)(trace->data + tick * bytes);
}

/* The main line alone; *s stays the job's. */
static struct job_run *drive_in_runner(struct jobs_scenario *s, const struct scenario *scenario,
                                       uint64_t seed)
{
    struct error error;
    struct job_run *job = NULL;
    *s = (struct jobs_scenario){.scenario = *scenario};
    s->scenario.branch_count = 0;
    EXPECT_OK(prepared_create(&s->scenario, &s->prepared, &error), error);
    struct runner *runner = jobs_runner(&world_object_ops, LOOKER, 1, false);
    jobs_add(runner, s, 0, seed);
    jobs_run(runner, &job, 1);
    runner_destroy(runner);
    prepared_unref(s->prepared); /* the job has a reference of its own */
    return job;
}

static void expect_outcome(const struct swerve_env *env, uint32_t index, const struct job_run *job)
{
    static const char *const members[] = {"seed",    "verdict",      "reasons",
                                          "metrics", "ticks",        "trace_hash",
                                          "slices",  "health_check", "given"};
    static struct outcome outcome;
    outcome_build(job, 0, &outcome);
    json_t *expected = outcome_encode(&outcome);
    json_t *found = outcome_of(env, index);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        json_t *a = json_object_get(found, members[i]);
        json_t *b = json_object_get(expected, members[i]);
        if (!json_equal(a, b)) {
            TEST_FAIL("environment %u: %s is %s, expected %s", index, members[i],
                      json_dumps(a, JSON_ENCODE_ANY), json_dumps(b, JSON_ENCODE_ANY));
        }
    }
    json_decref(expected);
    json_decref(found);
}

static void drives_equal_the_runners_with(uint64_t seed, uint32_t threads)
{
    struct suite *suite = NULL;
    struct error error;
    struct job_run *jobs[ENTRIES_MAX];
    static struct jobs_scenario driven[ENTRIES_MAX];
    struct swerve_env_rows rows;
    EXPECT_OK(suite_load(SUITE, &suite, &error), error);
    uint32_t count = suite->entry_count;
    EXPECT(count <= ENTRIES_MAX && count >= 4);
    struct swerve_env *env = open_env(count, threads, SWERVE_ENV_BEV | SWERVE_ENV_HASH);
    EXPECT_INT(swerve_env_scenarios(env), count);
    swerve_env_rows(env, &rows);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t horizon = 0;
        jobs[i] = drive_in_runner(&driven[i], &suite->entries[i].document->scenario, seed);
        reset(env, count - 1 - i, i, seed);
        EXPECT_TEXT(swerve_env_scenario(env, i, &horizon), suite->entries[i].document->scenario.id);
        EXPECT_INT(horizon, suite->entries[i].document->scenario.horizon_ticks);
    }
    for (uint32_t t = 0; t < TICKS_MAX; t++) {
        for (uint32_t i = 0; i < count; i++) {
            uint32_t at = count - 1 - i;
            if (rows.end[at] == SWERVE_ENV_GOES_ON) {
                const struct trace_tick *tick = tick_of(&jobs[i]->results[0].trace, t);
                EXPECT(memcmp(rows.ego + (size_t)at * SWERVE_ENV_EGO, &tick->x_m,
                              SWERVE_ENV_EGO * sizeof(double)) == 0);
                rows.actions[2 * at] = tick->action_accel_mps2;
                rows.actions[2 * at + 1] = tick->action_steer_rad;
            }
        }
        step(env);
    }
    for (uint32_t i = 0; i < count; i++) {
        EXPECT(rows.end[count - 1 - i] != SWERVE_ENV_GOES_ON);
        expect_outcome(env, count - 1 - i, jobs[i]);
        job_run_destroy(jobs[i]);
    }
    swerve_env_close(env);
    suite_destroy(suite);
}

static void drives_equal_the_runners(void)
{
    drives_equal_the_runners_with(0, 1);
    drives_equal_the_runners_with(7, 3);
}

/* ---- copies ---- */

static void random_action(struct swerve_env_rows *rows, uint32_t row, uint64_t seed, uint32_t tick)
{
    rows->actions[2 * row] = 8.0 * rng_uniform(seed, RNG_STREAM_TEST, tick, 0) - 5.0;
    rows->actions[2 * row + 1] = 0.04 * rng_uniform(seed, RNG_STREAM_TEST, tick, 1) - 0.02;
}

static bool same_row(const struct swerve_env_rows *rows, uint32_t a, uint32_t b)
{
    size_t route = (size_t)SWERVE_ENV_ROUTE_POINTS * SWERVE_ENV_ROUTE;
    return memcmp(rows->ego + (size_t)a * SWERVE_ENV_EGO, rows->ego + (size_t)b * SWERVE_ENV_EGO,
                  SWERVE_ENV_EGO * sizeof(double)) == 0 &&
           memcmp(rows->route + a * route, rows->route + b * route, route * sizeof(float)) == 0 &&
           memcmp(rows->bev + (size_t)a * SWERVE_ENV_BEV_BYTES,
                  rows->bev + (size_t)b * SWERVE_ENV_BEV_BYTES, SWERVE_ENV_BEV_BYTES) == 0 &&
           memcmp(rows->cameras + (size_t)a * SWERVE_ENV_CAMERA_BYTES,
                  rows->cameras + (size_t)b * SWERVE_ENV_CAMERA_BYTES,
                  SWERVE_ENV_CAMERA_BYTES) == 0 &&
           rows->end[a] == rows->end[b] && rows->tick[a] == rows->tick[b] &&
           rows->seed[a] == rows->seed[b] && rows->scenario[a] == rows->scenario[b];
}

static void expect_same_outcome(const struct swerve_env *env, uint32_t a, uint32_t b, bool same)
{
    json_t *one = outcome_of(env, a);
    json_t *two = outcome_of(env, b);
    EXPECT(json_equal(json_object_get(one, "trace_hash"), json_object_get(two, "trace_hash")) ==
           same);
    EXPECT(!same || json_equal(one, two));
    json_decref(one);
    json_decref(two);
}

/* 0 is forked into 1 and 4 at one tick and saved; the state is restored into 2 at once, and into 3
 * when 0 has gone on for a while. 4 is driven otherwise. */
static void a_copy_goes_on_as_its_source(void)
{
    enum { FORK = 12, LATER = 9 };
    struct swerve_env *env = open_env(5, 1, SWERVE_ENV_BEV | SWERVE_ENV_CAMERAS | SWERVE_ENV_HASH);
    struct swerve_env_rows rows;
    struct swerve_env_state *state = NULL;
    char text[512];
    swerve_env_rows(env, &rows);
    reset(env, 0, 2, 5);
    reset(env, 3, 1, 9); /* something to be replaced */
    for (uint32_t t = 0; t < FORK; t++) {
        random_action(&rows, 0, 1, t);
        random_action(&rows, 3, 2, t);
        step(env);
    }
    ok(swerve_env_fork(env, 0, 1, text, sizeof text), text);
    ok(swerve_env_fork(env, 0, 4, text, sizeof text), text);
    ok(swerve_env_save(env, 0, &state, text, sizeof text), text);
    ok(swerve_env_restore(env, state, 2, text, sizeof text), text);
    EXPECT(same_row(&rows, 0, 1) && same_row(&rows, 0, 2) && !same_row(&rows, 0, 3));
    uint32_t end = FORK;
    for (uint32_t t = FORK; rows.end[0] == SWERVE_ENV_GOES_ON; t++, end++) {
        EXPECT(t < TICKS_MAX);
        for (uint32_t i = 0; i < 3; i++) {
            random_action(&rows, i, 1, t);
        }
        random_action(&rows, 4, 3, t);
        if (t == FORK + LATER) {
            ok(swerve_env_restore(env, state, 3, text, sizeof text), text);
        }
        if (t >= FORK + LATER) {
            random_action(&rows, 3, 1, t - LATER);
        }
        step(env);
        EXPECT(same_row(&rows, 0, 1) && same_row(&rows, 0, 2));
    }
    for (uint32_t t = end - LATER; rows.end[3] == SWERVE_ENV_GOES_ON; t++) {
        random_action(&rows, 3, 1, t);
        step(env);
    }
    while (rows.end[4] == SWERVE_ENV_GOES_ON) {
        step(env);
    }
    for (uint32_t i = 1; i < 4; i++) {
        expect_same_outcome(env, 0, i, true);
    }
    expect_same_outcome(env, 0, 4, false);
    swerve_env_state_free(env, state);
    swerve_env_state_free(env, NULL);
    swerve_env_close(env);
}

/* ---- shapes ---- */

/* Random drives of every environment with one thread, and reversed with several. */
static void threads_and_index_do_not_matter(void)
{
    enum { COUNT = 11 };
    struct swerve_env *one = open_env(COUNT, 1, SWERVE_ENV_BEV);
    struct swerve_env *other = open_env(COUNT, 4, SWERVE_ENV_BEV);
    struct swerve_env_rows a;
    struct swerve_env_rows b;
    swerve_env_rows(one, &a);
    swerve_env_rows(other, &b);
    EXPECT(a.cameras == NULL);
    for (uint32_t i = 0; i < COUNT; i++) {
        reset(one, i, i % 5, i);
        reset(other, COUNT - 1 - i, i % 5, i);
    }
    for (uint32_t t = 0; t < 60; t++) {
        for (uint32_t i = 0; i < COUNT; i++) {
            random_action(&a, i, i, t);
            random_action(&b, COUNT - 1 - i, i, t);
        }
        step(one);
        step(other);
        for (uint32_t i = 0; i < COUNT; i++) {
            uint32_t r = COUNT - 1 - i;
            EXPECT(memcmp(a.ego + (size_t)i * SWERVE_ENV_EGO, b.ego + (size_t)r * SWERVE_ENV_EGO,
                          SWERVE_ENV_EGO * sizeof(double)) == 0);
            EXPECT(memcmp(a.bev + (size_t)i * SWERVE_ENV_BEV_BYTES,
                          b.bev + (size_t)r * SWERVE_ENV_BEV_BYTES, SWERVE_ENV_BEV_BYTES) == 0);
            EXPECT(a.advance_m[i] == b.advance_m[r] && a.contact[i] == b.contact[r] &&
                   a.end[i] == b.end[r] && a.tick[i] == b.tick[r]);
        }
    }
    swerve_env_close(one);
    swerve_env_close(other);
}

static void expect_refused(int status, enum status expected, const char *text, const char *part)
{
    EXPECT_INT(status, expected);
    EXPECT_CONTAINS(text, part);
}

/* With a comma for a point in the program's locale, suites read the same. */
static void documents_have_points_in_every_locale(void)
{
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE.utf8", "es_ES.UTF-8",
                                        "nl_NL.UTF-8"};
    const char *found = NULL;
    struct swerve_env *env = NULL;
    char text[512] = "";
    const struct swerve_env_config config = {
        SWERVE_ENV_ABI_VERSION, 1, 1, 0, "object", SWERVE_SOURCE_ROOT "/scenarios/ncap.json",
    };
    for (size_t i = 0; i < sizeof names / sizeof *names && found == NULL; i++) {
        found = setlocale(LC_ALL, names[i]);
    }
    if (found == NULL) {
        printf("# no locale with a comma is installed here: nothing was tried\n");
        return;
    }
    int status = swerve_env_open(&config, &env, text, sizeof text);
    bool kept = strcmp(localeconv()->decimal_point, ",") == 0;
    setlocale(LC_ALL, "C");
    ok(status, text);
    EXPECT(kept);
    swerve_env_close(env);
}

static void what_cannot_be_opened(void)
{
    struct swerve_env *env = NULL;
    char text[512];
    const struct swerve_env_config good = {SWERVE_ENV_ABI_VERSION, 1, 1, 0, "object", SUITE};
    struct swerve_env_config bad = good;
    bad.abi_version = 99;
    expect_refused(swerve_env_open(&bad, &env, text, sizeof text), STATUS_USAGE, text, "99");
    bad = good;
    bad.count = 0;
    expect_refused(swerve_env_open(&bad, &env, text, sizeof text), STATUS_USAGE, text, "found 0");
    bad = good;
    bad.threads = 1000;
    expect_refused(swerve_env_open(&bad, &env, text, sizeof text), STATUS_USAGE, text, "1000");
    bad = good;
    bad.world = "student";
    expect_refused(swerve_env_open(&bad, &env, text, sizeof text), STATUS_USAGE, text, "student");
    bad = good;
    bad.suite = "/no/such/suite.json";
    EXPECT(swerve_env_open(&bad, &env, text, sizeof text) != 0);
    EXPECT_CONTAINS(text, "/no/such/suite.json");
    bad = good;
    bad.world = "replay"; /* which needs recorded agents */
    EXPECT(swerve_env_open(&bad, &env, text, sizeof text) != 0);
    EXPECT(env == NULL);
    swerve_env_close(NULL);
}

static void what_cannot_be_done_changes_nothing(void)
{
    struct swerve_env *env = open_env(2, 1, 0);
    struct swerve_env_rows rows;
    struct swerve_env_state *state = NULL;
    char text[512];
    static char json[SWERVE_ENV_OUTCOME_BYTES];
    const uint32_t two[] = {0, 2};
    const uint32_t scenarios[] = {0, 0};
    const uint32_t beyond = 4096;
    const uint64_t seeds[] = {1, 1};
    swerve_env_rows(env, &rows);
    EXPECT_INT(rows.end[0], SWERVE_ENV_EMPTY);
    step(env); /* of none */
    expect_refused(swerve_env_reset(env, 2, two, scenarios, seeds, text, sizeof text), STATUS_USAGE,
                   text, "found 2");
    expect_refused(swerve_env_reset(env, 1, two, &beyond, seeds, text, sizeof text), STATUS_USAGE,
                   text, "found 4096");
    EXPECT_INT(rows.end[0], SWERVE_ENV_EMPTY);
    expect_refused(swerve_env_fork(env, 0, 1, text, sizeof text), STATUS_CONFLICT, text, "none");
    reset(env, 0, 0, 1);
    expect_refused(swerve_env_outcome(env, 0, json, sizeof json, text, sizeof text),
                   STATUS_CONFLICT, text, "not ended");
    expect_refused(swerve_env_fork(env, 0, 2, text, sizeof text), STATUS_USAGE, text, "below 2");
    ok(swerve_env_fork(env, 0, 0, text, sizeof text), text);
    const double bad[] = {(double)NAN, (double)INFINITY, 50.1, -51};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        rows.actions[0] = bad[i];
        expect_refused(swerve_env_step(env, NULL, text, sizeof text), STATUS_BAD_INPUT, text,
                       "environment 0");
        EXPECT_INT(rows.tick[0], 0);
    }
    const uint8_t idle[] = {1, 0};
    ok(swerve_env_step(env, idle, text, sizeof text), text);
    EXPECT_INT(rows.tick[0], 0);
    rows.actions[0] = 0.0;
    for (uint32_t t = 0; rows.end[0] == SWERVE_ENV_GOES_ON; t++) {
        EXPECT(t < TICKS_MAX);
        step(env);
    }
    uint32_t last = rows.tick[0];
    step(env);
    EXPECT_INT(rows.tick[0], last);
    expect_refused(swerve_env_save(env, 0, &state, text, sizeof text), STATUS_CONFLICT, text,
                   "ended");
    expect_refused(swerve_env_outcome(env, 0, json, 10, text, sizeof text), STATUS_LIMIT, text,
                   "room for 10");
    json_t *outcome = outcome_of(env, 0);
    EXPECT_TEXT(json_string_value(json_object_get(outcome, "trace_hash")), "");
    json_decref(outcome);
    swerve_env_close(env);
}

/* Sight at a drive's start, where road users are as the document has them; and refusals. */
static void a_drawing_is_what_was_seen(void)
{
    static uint8_t bev[SWERVE_ENV_BEV_BYTES];
    static uint8_t cameras[SWERVE_ENV_CAMERA_BYTES];
    static double agents[LIMIT_AGENTS][4];
    struct suite *suite = NULL;
    struct swerve_env_drawing *drawing = NULL;
    struct swerve_env_rows rows;
    struct error error;
    char text[512];
    EXPECT_OK(suite_load(SUITE, &suite, &error), error);
    struct swerve_env *env = open_env(1, 1, SWERVE_ENV_BEV | SWERVE_ENV_CAMERAS);
    swerve_env_rows(env, &rows);
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        const struct scenario_document *document = suite->entries[i].document;
        const struct scenario *scenario = &document->scenario;
        reset(env, 0, i, 0);
        for (uint32_t a = 0; a < scenario->agent_count; a++) {
            const struct agent *agent = &scenario->agents[a];
            agents[a][0] = agent->hidden ? (double)NAN : agent->pose.x_m;
            agents[a][1] = agent->pose.y_m;
            agents[a][2] = agent->pose.heading_rad;
            agents[a][3] = agent->speed_mps;
        }
        struct swerve_env_moment moment = {
            .agent_count = scenario->agent_count,
            .ego = rows.ego,
            .agents = agents[0],
            .weather = weather_names[scenario->conditions.weather],
            .light = light_names[scenario->conditions.light],
            .visibility_m = scenario->conditions.visibility_m,
        };
        char *whole;
        size_t bytes;
        EXPECT_OK(scenario_canonical_text(document, &whole, &bytes, &error), error);
        ok(swerve_env_drawing_open(whole, bytes, 0, &drawing, text, sizeof text), text);
        free(whole);
        ok(swerve_env_draw(drawing, &moment, bev, cameras, text, sizeof text), text);
        EXPECT(memcmp(bev, rows.bev, sizeof bev) == 0);
        EXPECT(memcmp(cameras, rows.cameras, sizeof cameras) == 0);
        moment.weather = "hail";
        expect_refused(swerve_env_draw(drawing, &moment, bev, NULL, text, sizeof text),
                       STATUS_BAD_INPUT, text, "hail");
        moment.weather = "clear";
        moment.agent_count = scenario->agent_count + 1;
        expect_refused(swerve_env_draw(drawing, &moment, bev, NULL, text, sizeof text),
                       STATUS_BAD_INPUT, text, "agents");
        moment.agent_count = 0;
        moment.visibility_m = (double)NAN;
        expect_refused(swerve_env_draw(drawing, &moment, NULL, cameras, text, sizeof text),
                       STATUS_BAD_INPUT, text, "visibility");
        swerve_env_drawing_close(drawing);
    }
    drawing = NULL;
    EXPECT(swerve_env_drawing_open("{}", 2, 0, &drawing, text, sizeof text) != 0);
    EXPECT(drawing == NULL);
    swerve_env_drawing_close(NULL);
    swerve_env_close(env);
    suite_destroy(suite);
}

/* A state has the scenario and the world of its handle, which another's rows know nothing of. */
static void a_state_of_another_handle_is_refused(void)
{
    struct swerve_env *env = open_env(1, 1, 0);
    struct swerve_env *other = open_env(2, 1, 0);
    struct swerve_env_state *state = NULL;
    char text[512] = "";
    reset(env, 0, 2, 5);
    ok(swerve_env_save(env, 0, &state, text, sizeof text), text);
    expect_refused(swerve_env_restore(other, state, 1, text, sizeof text), STATUS_USAGE, text,
                   "another's");
    struct swerve_env_rows rows;
    swerve_env_rows(other, &rows);
    EXPECT_INT(rows.end[1], SWERVE_ENV_EMPTY);
    ok(swerve_env_restore(env, state, 0, text, sizeof text), text);
    swerve_env_state_free(env, state);
    swerve_env_close(other);
    swerve_env_close(env);
}

int main(void)
{
    return TEST_RUN(TEST(drives_equal_the_runners), TEST(a_copy_goes_on_as_its_source),
                    TEST(threads_and_index_do_not_matter),
                    TEST(documents_have_points_in_every_locale), TEST(what_cannot_be_opened),
                    TEST(what_cannot_be_done_changes_nothing),
                    TEST(a_state_of_another_handle_is_refused), TEST(a_drawing_is_what_was_seen));
}
