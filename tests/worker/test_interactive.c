/*
 * Goal: a session in a learned world is the drive of `swerve run` under the same actions and steps
 * of the sampler, however they are mixed and whatever was gone back over; the pool takes each tier
 * when it is due by its costs, says so, and counts it; costs are measured before anybody sits.
 * Method: the smallest student over a road of its own; saved sessions through the runner, compared
 * by trace hash; a pool whose clock stands still until the test moves it, with costs that it
 * plants.
 */
#include "base/rng.h"
#include "tests/worker/jobs.h"
#include "worker/env/env_scene.h"
#include "worker/interactive/interactive.h"
#include "worker/models/models.h"
#include "worker/models/sampler.h"
#include "worker/run/runner.h"

#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define MODELS SWERVE_SOURCE_ROOT "/tests/engine/data"

enum { HORIZON = 14, STEPS = 2 };

static const char road[] =
    "{\"id\":\"road\",\"title\":\"a car ahead\",\"map\":{\"lanes\":[{\"id\":\"east\","
    "\"centre_line\":[[0,0],[500,0]],\"width_m\":3.5,\"speed_limit_mps\":15}]},"
    "\"horizon_s\":1.4,\"ego\":{\"pose\":{\"lane\":\"east\",\"s_m\":20},\"speed_mps\":8,"
    "\"route\":[\"east\"]},\"agents\":[{\"id\":\"ahead\",\"kind\":\"car\",\"pose\":{\"lane\":"
    "\"east\",\"s_m\":60},\"speed_mps\":8,\"behaviour\":\"idm\"}]}";

static char road_path[] = "/tmp/swerve_interactive_XXXXXX";
static struct models *models;
static struct models_model model; /* whose frames nothing is said about: its weights are random */

static void open_model(void)
{
    const struct models_model *found = NULL;
    struct error error;
    EXPECT_OK(models_open(MODELS, NULL, &models, &error), error);
    EXPECT_OK(models_named(models, "tiny", NN_BF16, &found, &error), error);
    model = *found;
    for (int i = 0; i < CONDITIONING_COUNT * MEASURE_COUNT; i++) {
        int measure = i % MEASURE_COUNT;
        model.bounds.bound[i / MEASURE_COUNT][measure] =
            health_measure_kinds[measure].low_is_sick ? -HUGE_VAL : HUGE_VAL;
    }
    EXPECT_INT(model.config->steps, STEPS);
    int fd = mkstemp(road_path);
    EXPECT(fd >= 0 && write(fd, road, sizeof road - 1) == (ssize_t)(sizeof road - 1));
    close(fd);
}

/* ---- replay ---- */

static struct swerve_env *open_env(void)
{
    struct swerve_env *env = NULL;
    struct error error;
    const struct swerve_env_config config = {
        SWERVE_ENV_ABI_VERSION, 1, 1, SWERVE_ENV_BEV | SWERVE_ENV_HASH, NULL, road_path,
    };
    const struct env_learned learned = {&model, CONDITIONING_AGENTS, 1};
    EXPECT_OK(env_open_learned(&config, &learned, &env, &error), error);
    return env;
}

/* Deeds at a tick of a drive of that key. */
static struct action action_of(uint64_t key, uint32_t tick)
{
    return (struct action){4.0 * rng_uniform(key, RNG_STREAM_TEST, tick, 0) - 2.0,
                           0.02 * rng_uniform(key, RNG_STREAM_TEST, tick, 1) - 0.01};
}

static uint32_t skipped_at(uint64_t key, uint32_t tick)
{
    return (uint32_t)((STEPS + 1) * rng_uniform(key, RNG_STREAM_TEST, tick, 2));
}

static void drive(struct session *session, uint64_t key, uint32_t end)
{
    struct error error;
    for (uint32_t tick = session_tick(session); tick < end; tick++) {
        const struct action action = action_of(key, tick);
        EXPECT_OK(session_step(session, &action, skipped_at(key, tick), &error), error);
    }
}

/* Member of the session's outcome; the caller's to free. */
static char *outcome_text(const struct session *session, const char *member)
{
    static char json[SWERVE_ENV_OUTCOME_BYTES];
    struct error error;
    EXPECT_OK(session_outcome(session, json, &error), error);
    json_t *object = json_loads(json, 0, NULL);
    const char *text = json_string_value(json_object_get(object, member));
    EXPECT(text != NULL);
    char *copy = strdup(text);
    json_decref(object);
    return copy;
}

/* All rollouts of a scenario in a world; the job is the caller's. */
static struct job_run *run_scenario(const struct world_ops *world, struct jobs_scenario *s,
                                    uint64_t seed)
{
    struct job_run *job = NULL;
    struct runner *runner = NULL;
    struct error error;
    const struct runner_config config = {
        .world = world,
        .model = world == &world_student_ops ? model.model : NULL,
        .bounds = &model.bounds,
        .planner = "builtin:reference",
        .planner_config = {.tick_deadline_ms = 20000},
        .slot_count = 4,
        .clock = clock_system(),
    };
    EXPECT_OK(runner_create(&config, &runner, &error), error);
    jobs_add(runner, s, 0, seed);
    jobs_run(runner, &job, 1);
    runner_destroy(runner);
    return job;
}

static void a_session_of_mixed_steps_is_driven_again(void)
{
    struct error error;
    struct swerve_env *env = open_env();
    const uint64_t key = 1;
    struct session *session = NULL;
    struct scenario_document *document = NULL;
    struct jobs_scenario s = {0};
    char *text = NULL;
    EXPECT_OK(session_create(env, 0, 0, key, &session, &error), error);
    drive(session, key, 9);
    EXPECT_OK(session_back(session, 5, true, &error), error); /* which drives four again */
    EXPECT_INT(session_tick(session), 4);
    drive(session, key + 100, HORIZON);
    EXPECT_INT(session_end(session), SWERVE_ENV_HORIZON);
    char *hash = outcome_text(session, "trace_hash");
    char *sampler = outcome_text(session, "sampler");
    char *model_hash = outcome_text(session, "model_hash");
    EXPECT_TEXT(sampler, "agents/euler0-2/bf16");
    EXPECT_TEXT(model_hash, model.hash);
    EXPECT_OK(session_scenario(session, "again", &text, &error), error);
    EXPECT_OK(scenario_load_text("again", text, strlen(text), &document, &error), error);
    s.scenario = document->scenario;
    EXPECT_OK(prepared_create(&s.scenario, &s.prepared, &error), error);
    EXPECT_INT(s.scenario.branch_count, 2);
    struct job_run *job = run_scenario(&world_student_ops, &s, key);
    EXPECT_INT(job->failure, STATUS_OK);
    EXPECT_TEXT(job->results[2].trace_hash, hash);
    EXPECT(strcmp(job->results[1].trace_hash, hash) != 0);
    const struct trace *trace = &job->results[2].trace;
    size_t bytes = sizeof(struct trace_tick) + trace->agent_count * sizeof(struct trace_agent);
    for (uint32_t tick = 0; tick < HORIZON; tick++) {
        const struct trace_tick *at =
            (const struct trace_tick *)(const void *)(trace->data + tick * bytes);
        EXPECT_INT(at->skipped, skipped_at(tick < 4 ? key : key + 100, tick));
    }
    job_run_destroy(job);
    job = run_scenario(&world_object_ops, &s, key); /* which has no sampler */
    EXPECT_INT(job->failure, STATUS_OK);
    EXPECT(strcmp(job->results[2].trace_hash, hash) != 0);
    job_run_destroy(job);
    prepared_unref(s.prepared);
    scenario_destroy(document);
    free(text);
    free(hash);
    free(sampler);
    free(model_hash);
    session_destroy(session);
    swerve_env_close(env);
}

static void steps_that_there_are_not_are_refused(void)
{
    struct error error;
    struct session *session = NULL;
    const struct action none = {0};
    struct swerve_env *env = open_env();
    EXPECT_OK(session_create(env, 0, 0, 0, &session, &error), error);
    EXPECT_INT(session_step(session, &none, STEPS + 1, &error), STATUS_BAD_INPUT);
    EXPECT_INT(session_tick(session), 0);
    EXPECT_OK(session_step(session, &none, STEPS, &error), error);
    session_destroy(session);
    swerve_env_close(env);
}

/* ---- the pool ---- */

/* A clock that stands still until the test moves it. */
struct still {
    struct clock clock;
    _Atomic int64_t now_ns;
};

static int64_t still_now_ns(void *context)
{
    struct still *still = context;
    return atomic_load(&still->now_ns);
}

/* The newest frame, for the test's thread. */
struct seen {
    pthread_mutex_t lock;
    pthread_cond_t news;
    uint32_t count;
    uint32_t tick;
    char tier[LIMIT_ID_BYTES];
    char model[SHA256_HEX_BYTES];
    struct interactive_frame frame;
    char failure[ERROR_TEXT_BYTES];
};

static void see(void *context, const struct interactive_frame *frame)
{
    struct seen *seen = context;
    pthread_mutex_lock(&seen->lock);
    seen->count++;
    seen->tick = frame->scene->tick;
    snprintf(seen->tier, sizeof seen->tier, "%s", frame->tier);
    snprintf(seen->model, sizeof seen->model, "%s", frame->model);
    seen->frame = *frame;
    pthread_cond_signal(&seen->news);
    pthread_mutex_unlock(&seen->lock);
}

static void fail(void *context, const char *sentence)
{
    struct seen *seen = context;
    pthread_mutex_lock(&seen->lock);
    snprintf(seen->failure, sizeof seen->failure, "%s", sentence);
    pthread_cond_signal(&seen->news);
    pthread_mutex_unlock(&seen->lock);
}

static void wait_for_tick(struct seen *seen, uint32_t tick)
{
    const struct timespec end = clock_moment_in(20000 * NS_PER_MS);
    pthread_mutex_lock(&seen->lock);
    while (seen->tick < tick && seen->failure[0] == '\0') {
        if (pthread_cond_timedwait(&seen->news, &seen->lock, &end) != 0) {
            TEST_FAIL("no frame of tick %u within 20 s", tick);
        }
    }
    EXPECT_TEXT(seen->failure, "");
    pthread_mutex_unlock(&seen->lock);
}

static struct interactive *open_pool(const struct interactive_options *with,
                                     const struct clock *clock)
{
    struct interactive *pool = NULL;
    struct error error;
    struct interactive_options options = *with;
    options.suite = road_path;
    options.world = "student";
    options.seats = 2;
    options.clock = clock;
    options.model = &model;
    EXPECT_OK(interactive_open(&options, &pool, &error), error);
    return pool;
}

/* A tick that waited so long, and what came of it: by how many steps, and late or not. */
struct rung {
    int wait_ms;
    uint32_t steps;
    bool late;
};

/* Deadline 40 ms, two steps of 15, 2 before them; drawn in 5. */
static const double planted_ms[INTERACTIVE_MODELS][DEADLINE_PARTS] = {{2, 15, 0}, {5, 0, 0}};

static void climb_down(uint32_t steps_least, const struct rung *rungs, uint32_t count)
{
    struct still still = {.now_ns = NS_PER_S};
    struct seen seen = {.count = 0};
    struct error error;
    struct seat *seat = NULL;
    uint64_t taken[STEPS + 1] = {0};
    uint64_t lates = 0;
    struct interactive_ticks ticks[DEADLINE_TIERS_MAX];
    still.clock = (struct clock){still_now_ns, still_now_ns, still_now_ns, &still};
    pthread_mutex_init(&seen.lock, NULL);
    clock_condition_init(&seen.news);
    struct interactive *pool =
        open_pool(&(struct interactive_options){.planted_ms = planted_ms}, &still.clock);
    const struct interactive_wish wish = {.rate = 1, .limit_ms = 40, .steps_least = steps_least};
    const struct interactive_listener listener = {see, fail, &seen};
    EXPECT_OK(interactive_sit(pool, &wish, &listener, &seat, &error), error);
    EXPECT_TEXT(seen.tier, "");
    interactive_pause(seat, false);
    wait_for_tick(&seen, 1);
    EXPECT_INT(seen.frame.steps, STEPS);
    taken[STEPS]++;
    for (uint32_t i = 0; i < count; i++) {
        const struct rung *rung = &rungs[i];
        atomic_store(&still.now_ns,
                     NS_PER_S + (i + 1) * 100 * NS_PER_MS + rung->wait_ms * NS_PER_MS);
        wait_for_tick(&seen, 2 + i);
        pthread_mutex_lock(&seen.lock);
        if (seen.frame.steps != rung->steps || seen.frame.late != rung->late) {
            TEST_FAIL("after a wait of %d ms: %u steps%s", rung->wait_ms, seen.frame.steps,
                      seen.frame.late ? ", late" : "");
        }
        EXPECT_NEAR(seen.frame.wait_ms, rung->wait_ms, 1e-6);
        EXPECT_NEAR(seen.frame.limit_ms, 40, 1e-6);
        EXPECT_NEAR(seen.frame.slack_ms, 40 - rung->wait_ms, 1e-6);
        EXPECT_TEXT(seen.tier, rung->steps > 0 ? "student" : "drawn");
        EXPECT_TEXT(seen.model, rung->steps > 0 ? model.hash : "");
        pthread_mutex_unlock(&seen.lock);
        taken[rung->steps]++;
        lates += rung->late;
    }
    interactive_pause(seat, true); /* which waits for the tick's account */
    EXPECT_INT(interactive_ticks(pool, seat, ticks), STEPS + 1);
    for (uint32_t i = 0; i <= STEPS; i++) {
        EXPECT_INT(ticks[i].steps, STEPS - i);
        EXPECT_INT(ticks[i].ticks, taken[STEPS - i]);
        EXPECT_INT(tick_histogram_count(&ticks[i].parts[TICK_SLACK]), taken[STEPS - i]);
        lates -= ticks[i].lates;
    }
    EXPECT_INT(lates, 0);
    interactive_leave(seat);
    interactive_close(pool);
    pthread_cond_destroy(&seen.news);
    pthread_mutex_destroy(&seen.lock);
}

static void every_rung_is_reached(void)
{
    static const struct rung all[] = {{0, 2, false},  {8, 2, false},  {9, 1, false},
                                      {15, 1, false}, {23, 1, false}, {24, 0, false},
                                      {28, 0, false}, {60, 0, true},  {0, 2, false}};
    static const struct rung one_step[] = {{15, 1, false}, {28, 1, false}, {60, 1, true}};
    climb_down(0, all, COUNT_OF(all));
    climb_down(1, one_step, COUNT_OF(one_step));
}

/* Costs are measured while nobody sits, and then refuse who cannot be served in time. */
static void costs_are_measured_before_anybody_sits(void)
{
    struct seen seen = {.count = 0};
    struct error error;
    struct seat *seat = NULL;
    const struct timespec pause = {0, 10 * NS_PER_MS};
    const struct interactive_listener listener = {see, fail, &seen};
    struct interactive_wish wish = {.rate = 1, .limit_ms = 1, .steps_least = STEPS};
    int64_t begin_ns = clock_monotonic_ns();
    pthread_mutex_init(&seen.lock, NULL);
    clock_condition_init(&seen.news);
    struct interactive *pool = open_pool(&(struct interactive_options){0}, clock_system());
    while (!interactive_counts(pool).known) {
        EXPECT(clock_monotonic_ns() - begin_ns < 60 * NS_PER_S);
        nanosleep(&pause, NULL);
    }
    EXPECT_INT(interactive_sit(pool, &wish, &listener, &seat, &error), STATUS_BUSY);
    EXPECT_CONTAINS(error.text, "takes longer than its deadline");
    wish.steps_least = STEPS + 1;
    EXPECT_INT(interactive_sit(pool, &wish, &listener, &seat, &error), STATUS_BAD_INPUT);
    wish = (struct interactive_wish){.rate = 0.1, .limit_ms = 1000};
    EXPECT_OK(interactive_sit(pool, &wish, &listener, &seat, &error), error);
    EXPECT(interactive_counts(pool).load > 0.0);
    interactive_leave(seat);
    interactive_close(pool);
    pthread_cond_destroy(&seen.news);
    pthread_mutex_destroy(&seen.lock);
}

static void ways_that_there_are_not_are_refused(void)
{
    static const struct {
        uint32_t count;
        uint32_t ways[3];
        enum conditioning conditioning;
    } bad[] = {{1, {3}, CONDITIONING_AGENTS},
               {3, {2, 0, 1}, CONDITIONING_AGENTS},
               {2, {1, 1}, CONDITIONING_AGENTS},
               {2, {2, 0}, CONDITIONING_MAP}};
    struct interactive *pool = NULL;
    struct error error;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        struct interactive_options options = {
            .suite = road_path,
            .world = "student",
            .seats = 1,
            .clock = clock_system(),
            .model = &model,
            .conditioning = bad[i].conditioning,
            .way_count = bad[i].count,
        };
        memcpy(options.ways, bad[i].ways, sizeof bad[i].ways);
        EXPECT_INT(interactive_open(&options, &pool, &error), STATUS_USAGE);
        EXPECT_CONTAINS(error.text, "expected steps of the sampler that fall");
    }
}

static void samplers_are_called_after_their_steps(void)
{
    static const struct {
        const char *own;
        uint32_t skipped;
        const char *taken; /* NULL: refused */
    } cases[] = {{"agents/euler2/bf16", 1, "agents/euler1/bf16"},
                 {"agents/euler2/bf16", 2, "agents/euler0/bf16"},
                 {"agents/euler12/int8", 3, "agents/euler9/int8"},
                 {"map/euler2/bf16", 1, "map/euler1/bf16"},
                 {"foresee/euler2/bf16", 2, "foresee/euler0/bf16"},
                 {"agents/euler2/bf16", 3, NULL},
                 {"map/euler2/bf16", 2, NULL},
                 {"agents/theirs/exact", 1, NULL}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char sampler[LIMIT_ID_BYTES];
        struct error error;
        uint32_t skipped = 77;
        snprintf(sampler, sizeof sampler, "%s", cases[i].own);
        enum status status = sampler_skip(sampler, cases[i].skipped, &error);
        EXPECT_INT(status, cases[i].taken != NULL ? STATUS_OK : STATUS_BAD_INPUT);
        EXPECT_TEXT(sampler, cases[i].taken != NULL ? cases[i].taken : cases[i].own);
        EXPECT(sampler_skips(cases[i].own, sampler, &skipped));
        EXPECT_INT(skipped, cases[i].taken != NULL ? cases[i].skipped : 0);
    }
    static const char *const others[] = {"agents/euler3/bf16",   "map/euler1/bf16",
                                         "agents/euler1/int8",   "agents/euler/bf16",
                                         "agents/euler0-2/bf16", "agents/theirs/exact"};
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        uint32_t skipped;
        EXPECT(!sampler_skips("agents/euler2/bf16", others[i], &skipped));
    }
}

static void quantiles_are_bounds(void)
{
    struct tick_histogram histogram = {{0}, 0.0};
    EXPECT(tick_histogram_quantile_ms(&histogram, 0.5) == 0.0);
    for (int i = 1; i <= 100; i++) {
        tick_histogram_add(&histogram, i <= 98 ? 7.0 : i == 99 ? 130.0 : 5000.0);
    }
    tick_histogram_add(&histogram, -3.0);
    EXPECT_INT(tick_histogram_count(&histogram), 101);
    EXPECT(tick_histogram_quantile_ms(&histogram, 0.005) == 0.0);
    EXPECT(tick_histogram_quantile_ms(&histogram, 0.5) == 10.0);
    EXPECT(tick_histogram_quantile_ms(&histogram, 0.98) == 10.0);
    EXPECT(tick_histogram_quantile_ms(&histogram, 0.99) == 150.0);
    EXPECT(isinf(tick_histogram_quantile_ms(&histogram, 1.0)));
    EXPECT_NEAR(histogram.sum_ms, 98 * 7.0 + 130.0 + 5000.0 - 3.0, 1e-9);
}

int main(void)
{
    open_model();
    int code = TEST_RUN(TEST(a_session_of_mixed_steps_is_driven_again),
                        TEST(steps_that_there_are_not_are_refused), TEST(every_rung_is_reached),
                        TEST(costs_are_measured_before_anybody_sits),
                        TEST(ways_that_there_are_not_are_refused),
                        TEST(samplers_are_called_after_their_steps), TEST(quantiles_are_bounds));
    models_close(models);
    unlink(road_path);
    return code;
}
