/*
 * Goal: a session in a learned world is the drive of `swerve run` under the same actions and steps
 * of the sampler, however they are mixed and whatever was gone back over; the pool takes each tier
 * when it is due by its costs, says so, and counts it; costs are measured before anybody sits.
 * Method: the smallest student over a road of its own; saved sessions through the runner, compared
 * by trace hash; a pool whose clock stands still until the test moves it, with costs that it
 * plants. With a module of devices as argument: the same drives, and a pool, on its first device.
 */
#include "base/file.h"
#include "tests/worker/jobs.h"
#include "tests/worker/sessions.h"
#include "worker/env/env_scene.h"
#include "worker/interactive/interactive_internal.h"
#include "worker/models/sampler.h"
#include "worker/run/runner.h"

#include <malloc.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

/* That everything is driven on; NULL: the CPU. A device has no second model, and an emulated one
 * takes a second for a tick. */
static const struct device *on;

/* ---- replay ---- */

static uint32_t skips(uint64_t key, uint32_t tick)
{
    return on != NULL ? skipped_at(key, tick) % (STEPS + 1) : skipped_at(key, tick);
}

static struct swerve_env *open_env(const struct models_model *before)
{
    struct swerve_env *env = NULL;
    struct error error;
    const struct swerve_env_config config = {
        SWERVE_ENV_ABI_VERSION,           1,    1,
        SWERVE_ENV_BEV | SWERVE_ENV_HASH, NULL, on != NULL ? short_road_path : road_path,
    };
    const struct env_learned learned = {&model, CONDITIONING_AGENTS, 1, before, on};
    EXPECT_OK(env_open_learned(&config, &learned, &env, &error), error);
    return env;
}

static void drive(struct session *session, uint64_t key, uint32_t end)
{
    struct error error;
    for (uint32_t tick = session_tick(session); tick < end; tick++) {
        const struct action action = action_of(key, tick);
        EXPECT_OK(session_step(session, &action, skips(key, tick), &error), error);
    }
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
        .previous = world == &world_student_ops && on == NULL ? previous.model : NULL,
        .device = world == &world_student_ops ? on : NULL,
        .previous_bounds = &previous.bounds,
        .bounds = &model.bounds,
        .planner = "plugin:" PLUGIN_MOODY "?echo,0,none", /* is shown the whole grid, too */
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

/* A session of nine ticks, five back, and on to the end, or on a device of three and two; then what
 * it saved, through the runner: the same trace, whose ticks say what they left out. */
static void drive_again(struct swerve_env *env, uint64_t key)
{
    struct error error;
    char expected[LIMIT_ID_BYTES] = "agents/euler0-2/bf16";
    if (on == NULL) {
        sampler_add_previous(expected, previous.hash);
    }
    struct session *session = NULL;
    struct scenario_document *document = NULL;
    struct jobs_scenario s = {0};
    char *text = NULL;
    EXPECT_OK(session_create(env, 0, 0, key, &session, &error), error);
    const uint32_t horizon = on != NULL ? SHORT_HORIZON : HORIZON;
    const uint32_t left = on != NULL ? 1 : 4;
    drive(session, key, on != NULL ? 3 : 9);
    EXPECT_OK(session_back(session, on != NULL ? 2 : 5, true, &error), error); /* and there again */
    EXPECT_INT(session_tick(session), left);
    drive(session, key + 100, horizon);
    EXPECT_INT(session_end(session), SWERVE_ENV_HORIZON);
    char *hash = outcome_text(session, "trace_hash");
    char *sampler = outcome_text(session, "sampler");
    char *model_hash = outcome_text(session, "model_hash");
    if (key == 1 && on == NULL) { /* which draws all */
        EXPECT_TEXT(sampler, expected);
    }
    EXPECT_TEXT(model_hash, model.hash);
    char *backend = outcome_text(session, "backend");
    EXPECT_TEXT(backend, on != NULL ? on->backend : "");
    free(backend);
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
    for (uint32_t tick = 0; tick < horizon; tick++) {
        const struct trace_tick *at =
            (const struct trace_tick *)(const void *)(trace->data + tick * bytes);
        EXPECT_INT(at->skipped, skips(tick < left ? key : key + 100, tick));
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
}

/* Sessions in each of which every tick draws its tier among four; SWERVE_TEST_LONG=yes: a hundred.
 */
static void sessions_of_mixed_steps_are_driven_again(void)
{
    struct swerve_env *env = open_env(on == NULL ? &previous : NULL);
    const char *whole = getenv("SWERVE_TEST_LONG");
    int64_t rounds = on != NULL                                   ? 2
                     : whole != NULL && strcmp(whole, "yes") == 0 ? 100
                                                                  : test_rounds(8, 2);
    for (int64_t key = 1; key <= rounds; key++) {
        drive_again(env, (uint64_t)key);
    }
    swerve_env_close(env);
}

static void steps_that_there_are_not_are_refused(void)
{
    struct error error;
    struct session *session = NULL;
    const struct action none = {0};
    struct swerve_env *env = open_env(NULL);
    EXPECT_OK(session_create(env, 0, 0, 0, &session, &error), error);
    EXPECT_INT(session_step(session, &none, STEPS + 1, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "there is no previous model");
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
    options.suite = with->suite != NULL ? with->suite : on != NULL ? short_road_path : road_path;
    options.world = "student";
    options.seats = 2;
    options.clock = clock;
    options.model = &model;
    options.previous = on == NULL ? &previous : NULL;
    options.device = on;
    EXPECT_OK(interactive_open(&options, &pool, &error), error);
    return pool;
}

/* Tiers of the pool, the best first. */
enum { TWO_STEPS = 0, ONE_STEP, BY_PREVIOUS, DRAWN, TIERS };

static const struct {
    const char *name;
    uint32_t steps;
} tiers[TIERS] = {{"student", 2}, {"student", 1}, {"previous", 1}, {"drawn", 0}};

static const char *maker_of(int tier)
{
    return tier == BY_PREVIOUS ? previous.hash : tier == DRAWN ? "" : model.hash;
}

/* A tick that waited so long, and what came of it: its tier, and late or not. */
struct rung {
    int wait_ms;
    int tier;
    bool late;
};

/* Deadline 40 ms, two steps of 15, 2 before them; by the previous model 10, drawn 5. */
static const double planted_ms[INTERACTIVE_MODELS][DEADLINE_PARTS] = {
    {2, 15, 0}, {8, 2, 0}, {5, 0, 0}};

static void climb_down(const struct interactive_wish *accepts, const struct rung *rungs,
                       uint32_t count)
{
    struct still still = {.now_ns = NS_PER_S};
    struct seen seen = {.count = 0};
    struct error error;
    struct seat *seat = NULL;
    uint64_t taken[TIERS] = {0};
    uint64_t lates = 0;
    struct tick_tier ticks[DEADLINE_TIERS_MAX];
    still.clock = (struct clock){still_now_ns, still_now_ns, still_now_ns, &still};
    pthread_mutex_init(&seen.lock, NULL);
    clock_condition_init(&seen.news);
    struct interactive *pool =
        open_pool(&(struct interactive_options){.planted_ms = planted_ms}, &still.clock);
    struct interactive_wish wish = *accepts;
    wish.rate = 1;
    wish.limit_ms = 40;
    const struct interactive_listener listener = {see, fail, &seen};
    EXPECT_OK(interactive_sit(pool, &wish, &listener, &seat, &error), error);
    EXPECT_TEXT(seen.tier, "");
    interactive_pause(seat, false);
    wait_for_tick(&seen, 1);
    EXPECT_INT(seen.frame.steps, STEPS);
    taken[TWO_STEPS]++;
    for (uint32_t i = 0; i < count; i++) {
        const struct rung *rung = &rungs[i];
        atomic_store(&still.now_ns,
                     NS_PER_S + (i + 1) * 100 * NS_PER_MS + rung->wait_ms * NS_PER_MS);
        wait_for_tick(&seen, 2 + i);
        pthread_mutex_lock(&seen.lock);
        if (strcmp(seen.tier, tiers[rung->tier].name) != 0 ||
            seen.frame.steps != tiers[rung->tier].steps || seen.frame.late != rung->late) {
            TEST_FAIL("after a wait of %d ms: %s, %u steps%s", rung->wait_ms, seen.tier,
                      seen.frame.steps, seen.frame.late ? ", late" : "");
        }
        EXPECT_NEAR(seen.frame.wait_ms, rung->wait_ms, 1e-6);
        EXPECT_NEAR(seen.frame.limit_ms, 40, 1e-6);
        EXPECT_NEAR(seen.frame.slack_ms, 40 - rung->wait_ms, 1e-6);
        EXPECT_TEXT(seen.model, maker_of(rung->tier));
        pthread_mutex_unlock(&seen.lock);
        taken[rung->tier]++;
        lates += rung->late;
    }
    interactive_pause(seat, true); /* which waits for the tick's account */
    EXPECT_INT(interactive_ticks(pool, seat, ticks), TIERS);
    for (uint32_t i = 0; i < TIERS; i++) {
        EXPECT_TEXT(ticks[i].tier, tiers[i].name);
        EXPECT_INT(ticks[i].steps, tiers[i].steps);
        EXPECT_INT(ticks[i].ticks, taken[i]);
        EXPECT_INT(tick_histogram_count(&ticks[i].parts[TICK_SLACK]), taken[i]);
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
    static const struct rung all[] = {
        {0, TWO_STEPS, false},    {8, TWO_STEPS, false},    {9, ONE_STEP, false},
        {15, ONE_STEP, false},    {23, ONE_STEP, false},    {24, BY_PREVIOUS, false},
        {28, BY_PREVIOUS, false}, {30, BY_PREVIOUS, false}, {31, DRAWN, false},
        {60, DRAWN, true},        {0, TWO_STEPS, false}};
    static const struct rung generated[] = {
        {15, ONE_STEP, false}, {31, BY_PREVIOUS, false}, {60, BY_PREVIOUS, true}};
    static const struct rung own[] = {
        {15, ONE_STEP, false}, {28, ONE_STEP, false}, {60, ONE_STEP, true}};
    climb_down(&(struct interactive_wish){.steps_least = 0}, all, COUNT_OF(all));
    climb_down(&(struct interactive_wish){.steps_least = 1}, generated, COUNT_OF(generated));
    climb_down(&(struct interactive_wish){.model_alone = true}, own, COUNT_OF(own));
}

struct way_back {
    struct seat *seat;
    enum status status;
};

static void *go_back(void *context)
{
    struct way_back *way = context;
    struct error error;
    way->status = interactive_back(way->seat, 5, false, &error);
    return NULL;
}

static bool is_returning(struct interactive *pool, const struct seat *seat)
{
    pthread_mutex_lock(&pool->lock);
    bool returning = seat->returning;
    pthread_mutex_unlock(&pool->lock);
    return returning;
}

/* One goes nine ticks and five back; the other's tick is due in 10 ms, and a tick on the way back
 * takes 32: it waits until that one is served. */
static void a_way_back_makes_nobody_late(void)
{
    struct still still = {.now_ns = NS_PER_S};
    struct seen seen[2] = {{.count = 0}, {.count = 0}};
    struct seat *seats[2] = {NULL, NULL};
    struct error error;
    pthread_t thread;
    const struct timespec pause = {0, 50 * NS_PER_MS};
    const struct interactive_wish wish = {.rate = 1, .limit_ms = 40, .steps_least = STEPS};
    still.clock = (struct clock){still_now_ns, still_now_ns, still_now_ns, &still};
    struct interactive *pool =
        open_pool(&(struct interactive_options){.planted_ms = planted_ms}, &still.clock);
    for (int i = 0; i < 2; i++) {
        const struct interactive_listener listener = {see, fail, &seen[i]};
        pthread_mutex_init(&seen[i].lock, NULL);
        clock_condition_init(&seen[i].news);
        EXPECT_OK(interactive_sit(pool, &wish, &listener, &seats[i], &error), error);
    }
    interactive_pause(seats[0], false);
    for (uint32_t tick = 1; tick <= 9; tick++) {
        wait_for_tick(&seen[0], tick);
        if (tick < 9) {
            atomic_fetch_add(&still.now_ns, 100 * NS_PER_MS);
        }
    }
    interactive_pause(seats[0], true);
    interactive_pause(seats[1], false);
    wait_for_tick(&seen[1], 1);
    atomic_fetch_add(&still.now_ns, 90 * NS_PER_MS);
    struct way_back way = {.seat = seats[0], .status = STATUS_BUSY};
    EXPECT_INT(pthread_create(&thread, NULL, go_back, &way), 0);
    int64_t begin_ns = clock_monotonic_ns();
    while (!is_returning(pool, seats[0])) {
        EXPECT(clock_monotonic_ns() - begin_ns < 20 * NS_PER_S);
    }
    nanosleep(&pause, NULL);
    EXPECT(is_returning(pool, seats[0])); /* no tick of it has been driven: four would not fit */
    pthread_mutex_lock(&pool->world_lock);
    EXPECT_INT(session_returning(seats[0]->session), 4);
    pthread_mutex_unlock(&pool->world_lock);
    atomic_fetch_add(&still.now_ns, 10 * NS_PER_MS);
    wait_for_tick(&seen[1], 2);
    EXPECT_NEAR(seen[1].frame.wait_ms, 0, 1e-6);
    pthread_join(thread, NULL);
    EXPECT_INT(way.status, STATUS_OK);
    EXPECT_INT(seen[0].tick, 4);
    for (int i = 0; i < 2; i++) {
        interactive_leave(seats[i]);
        pthread_cond_destroy(&seen[i].news);
        pthread_mutex_destroy(&seen[i].lock);
    }
    interactive_close(pool);
}

struct taking_up {
    struct interactive *pool;
    struct interactive_wish wish;
    struct interactive_listener listener;
    struct seat *seat;
    enum status status;
};

static void *take_up(void *context)
{
    struct taking_up *taking = context;
    struct error error;
    taking->status =
        interactive_sit(taking->pool, &taking->wish, &taking->listener, &taking->seat, &error);
    return NULL;
}

/* Ticks that a seat which returns has left; UINT32_MAX: none returns. */
static uint32_t left_to_return(struct interactive *pool)
{
    uint32_t left = UINT32_MAX;
    pthread_mutex_lock(&pool->world_lock);
    pthread_mutex_lock(&pool->lock);
    for (uint32_t i = 0; i < pool->place_count; i++) {
        const struct seat *seat = pool->seats[i];
        left = seat != NULL && seat->returning ? session_returning(seat->session) : left;
    }
    pthread_mutex_unlock(&pool->lock);
    pthread_mutex_unlock(&pool->world_lock);
    return left;
}

/* A kept session of 25 ticks is taken up while the other's tick is due in 2 ms, must begin within 3
 * more, and a tick that is gone through takes 5: all 25 wait until that one is served. */
static void taking_up_makes_nobody_late(void)
{
    enum { TICKS = 25 };
    char folder[] = "/tmp/swerve_kept_XXXXXX";
    char name[INTERACTIVE_NAME_BYTES];
    struct still still = {.now_ns = NS_PER_S};
    struct seen seen[2] = {{.count = 0}, {.count = 0}};
    struct seat *seat = NULL;
    struct error error;
    pthread_t thread;
    const struct timespec pause = {0, 50 * NS_PER_MS};
    still.clock = (struct clock){still_now_ns, still_now_ns, still_now_ns, &still};
    EXPECT(mkdtemp(folder) != NULL);
    struct interactive *pool = open_pool(&(struct interactive_options){.planted_ms = planted_ms,
                                                                       .keep = folder,
                                                                       .suite = long_road_path},
                                         &still.clock);
    for (int i = 0; i < 2; i++) {
        pthread_mutex_init(&seen[i].lock, NULL);
        clock_condition_init(&seen[i].news);
    }
    const struct interactive_wish wish = {.rate = 1, .limit_ms = 34, .steps_least = STEPS};
    const struct interactive_listener first = {see, fail, &seen[0]};
    const struct interactive_listener second = {see, fail, &seen[1]};
    EXPECT_OK(interactive_sit(pool, &wish, &first, &seat, &error), error);
    snprintf(name, sizeof name, "%s", interactive_name(seat));
    interactive_pause(seat, false);
    for (uint32_t tick = 1; tick <= TICKS; tick++) {
        wait_for_tick(&seen[0], tick);
        if (tick < TICKS) {
            atomic_fetch_add(&still.now_ns, 100 * NS_PER_MS);
        }
    }
    interactive_leave(seat);
    EXPECT_OK(interactive_sit(pool, &wish, &second, &seat, &error), error);
    interactive_pause(seat, false);
    wait_for_tick(&seen[1], 1);
    atomic_fetch_add(&still.now_ns, 98 * NS_PER_MS);
    seen[0].tick = 0;
    struct taking_up taking = {.pool = pool, .wish = wish, .listener = first};
    taking.wish.resume = name;
    EXPECT_INT(pthread_create(&thread, NULL, take_up, &taking), 0);
    int64_t begin_ns = clock_monotonic_ns();
    while (left_to_return(pool) == UINT32_MAX) {
        EXPECT(clock_monotonic_ns() - begin_ns < 20 * NS_PER_S);
    }
    nanosleep(&pause, NULL);
    EXPECT_INT(left_to_return(pool), TICKS);
    atomic_fetch_add(&still.now_ns, 2 * NS_PER_MS);
    wait_for_tick(&seen[1], 2);
    EXPECT_NEAR(seen[1].frame.wait_ms, 0, 1e-6);
    EXPECT(!seen[1].frame.late);
    pthread_join(thread, NULL);
    EXPECT_INT(taking.status, STATUS_OK);
    EXPECT_INT(seen[0].tick, TICKS);
    interactive_leave(seat);
    interactive_leave(taking.seat);
    interactive_close(pool);
    EXPECT(file_remove_tree(folder));
    for (int i = 0; i < 2; i++) {
        pthread_cond_destroy(&seen[i].news);
        pthread_mutex_destroy(&seen[i].lock);
    }
}

/* Hardware is refused tiers of which nothing is known, and those that are below their band in a
 * slice of its scenario; people never. */
static void hardware_is_refused_what_is_below_its_band(void)
{
    static const struct interactive_judged of_one_step = {.sampler = "agents/euler1/bf16",
                                                          .result = "passed",
                                                          .agreement = 1,
                                                          .scenarios = 90,
                                                          .band = 0.9};
    struct interactive_judged judged[4] = {of_one_step,
                                           {.sampler = "agents/euler0/bf16",
                                            .result = "passed",
                                            .agreement = 0.97,
                                            .scenarios = 90,
                                            .band = 0.9},
                                           {.sampler = "agents/euler0/bf16",
                                            .refused = true,
                                            .result = "below its band",
                                            .agreement = 0.5,
                                            .scenarios = 24,
                                            .band = 0.9},
                                           of_one_step};
    judged[3].previous = true;
    static const struct {
        uint32_t judged;   /* rows */
        const char *slice; /* weather of the last one */
        uint32_t steps_least;
        bool previous;
        const char *text; /* NULL: it sits */
    } cases[] = {
        {0, "", 2, true, NULL},
        {0, "", 1, false,
         "tier student of 1 steps is refused to hardware: expected its verdicts beside those of "
         "all "
         "steps, found none of sampler agents/euler1/bf16"},
        {1, "", 1, false, NULL},
        {1, "", 0, false, "found none of sampler agents/euler0/bf16"},
        {2, "", 0, true,
         "tier previous of 1 steps is refused to hardware: expected its verdicts beside those of "
         "all steps, found none of sampler agents/euler1/bf16 of model "},
        {4, "rain", 0, true, NULL},
        {2, "", 0, false, NULL},
        {3, "rain", 0, false, NULL},
        {3, "", 1, false, NULL},
        {3, "", 0, false,
         "tier drawn of 0 steps is refused to hardware: in slice all 50.0% of its verdicts are "
         "those of all steps, over 24 scenarios, band 90.0%: below its band"},
    };
    struct seen seen = {.count = 0};
    struct error error;
    const struct interactive_listener listener = {see, fail, &seen};
    pthread_mutex_init(&seen.lock, NULL);
    clock_condition_init(&seen.news);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct seat *seat = NULL;
        snprintf(judged[2].slice.value[SLICE_WEATHER], LIMIT_ID_BYTES, "%s", cases[i].slice);
        const struct interactive_options options = {
            .planted_ms = planted_ms,
            .judged = judged,
            .judged_count = cases[i].judged,
            .way_count = cases[i].previous ? 0 : 3,
            .ways = {{.steps = 2}, {.steps = 1}, {.steps = 0}},
        };
        struct interactive *pool = open_pool(&options, clock_system());
        struct interactive_wish wish = {
            .rate = 1, .limit_ms = 1000, .hardware = true, .steps_least = cases[i].steps_least};
        enum status status = interactive_sit(pool, &wish, &listener, &seat, &error);
        EXPECT_INT(status, cases[i].text == NULL ? STATUS_OK : STATUS_BAD_INPUT);
        if (cases[i].text != NULL) {
            EXPECT_CONTAINS(error.text, cases[i].text);
            wish.hardware = false;
            EXPECT_OK(interactive_sit(pool, &wish, &listener, &seat, &error), error);
        }
        interactive_leave(seat);
        interactive_close(pool);
    }
    pthread_cond_destroy(&seen.news);
    pthread_mutex_destroy(&seen.lock);
}

static void wait_until_known(struct interactive *pool)
{
    const struct timespec pause = {0, 10 * NS_PER_MS};
    int64_t begin_ns = clock_monotonic_ns();
    while (!interactive_counts(pool).known) {
        EXPECT(clock_monotonic_ns() - begin_ns < 60 * NS_PER_S);
        nanosleep(&pause, NULL);
    }
}

/* Costs are measured while nobody sits, and then refuse who cannot be served in time. */
static void costs_are_measured_before_anybody_sits(void)
{
    struct seen seen = {.count = 0};
    struct error error;
    struct seat *seat = NULL;
    const struct interactive_listener listener = {see, fail, &seen};
    struct interactive_wish wish = {.rate = 1, .limit_ms = 1, .steps_least = STEPS};
    pthread_mutex_init(&seen.lock, NULL);
    clock_condition_init(&seen.news);
    struct interactive *pool = open_pool(&(struct interactive_options){0}, clock_system());
    wait_until_known(pool);
    EXPECT_INT(interactive_sit(pool, &wish, &listener, &seat, &error), STATUS_BUSY);
    EXPECT_CONTAINS(error.text, "longer than its deadline of 1.0 ms; ask for a longer one, or");
    wish.steps_least = STEPS + 1;
    EXPECT_INT(interactive_sit(pool, &wish, &listener, &seat, &error), STATUS_BAD_INPUT);
    wish = (struct interactive_wish){.rate = 0.1, .limit_ms = 1000};
    EXPECT_OK(interactive_sit(pool, &wish, &listener, &seat, &error), error);
    EXPECT(interactive_counts(pool).load > 0.0);
    /* Who begins anew, or is refused, takes nothing from what is known. */
    struct interactive_wish anew = wish;
    anew.instead = seat;
    EXPECT_OK(interactive_sit(pool, &anew, &listener, &seat, &error), error);
    EXPECT(interactive_counts(pool).known);
    anew =
        (struct interactive_wish){.rate = 1, .limit_ms = 1, .steps_least = STEPS, .instead = seat};
    EXPECT_INT(interactive_sit(pool, &anew, &listener, &seat, &error), STATUS_BUSY);
    EXPECT(interactive_counts(pool).known);
    interactive_leave(seat);
    interactive_close(pool);
    pthread_cond_destroy(&seen.news);
    pthread_mutex_destroy(&seen.lock);
}

/* Goal: whoever is refused is told by which numbers, and how there is room; whoever asks beforehand
 * is told of room for as many as are let in. */
static void a_refusal_has_numbers_and_a_way_out(void)
{
    static const double object_ms[INTERACTIVE_MODELS][DEADLINE_PARTS] = {{1, 0, 23}};
    const struct interactive_options options = {.suite = road_path,
                                                .world = "object",
                                                .seats = 8,
                                                .clock = clock_system(),
                                                .planted_ms = object_ms};
    struct interactive *pool = NULL;
    struct seen seen = {.tick = 0};
    struct seat *seats[4] = {NULL};
    struct error error;
    const struct interactive_listener listener = {see, fail, &seen};
    struct interactive_wish wish = {.rate = INTERACTIVE_RATE, .limit_ms = INTERACTIVE_LIMIT_MS};
    pthread_mutex_init(&seen.lock, NULL);
    clock_condition_init(&seen.news);
    EXPECT_OK(interactive_open(&options, &pool, &error), error);
    for (uint32_t i = 0; i < 3; i++) { /* 24 of 100 ms each */
        EXPECT_INT(interactive_counts(pool).room, 3 - i);
        EXPECT_OK(interactive_sit(pool, &wish, &listener, &seats[i], &error), error);
    }
    EXPECT_INT(interactive_counts(pool).room, 0);
    EXPECT_INT(interactive_sit(pool, &wish, &listener, &seats[3], &error), STATUS_BUSY);
    EXPECT_TEXT(error.text,
                "session: no room in this server's time: 3 others and this one would take 96% of "
                "it, expected at most 80%; a tick takes 24.0 ms, with 23.0 ms to draw and send its "
                "pictures (95th percentiles); at a rate of 0.33 there is");
    wish.rate = 0.33;
    EXPECT_OK(interactive_sit(pool, &wish, &listener, &seats[3], &error), error);
    EXPECT_INT(interactive_sit(pool, &wish, &listener, &seats[0], &error), STATUS_BUSY);
    EXPECT_CONTAINS(error.text, "nor is there at a lower rate; ask again when somebody has left");
    for (int i = 0; i < 4; i++) {
        interactive_leave(seats[i]);
    }
    interactive_close(pool);
    pthread_cond_destroy(&seen.news);
    pthread_mutex_destroy(&seen.lock);
}

static void ways_that_there_are_not_are_refused(void)
{
    static const struct {
        uint32_t count;
        struct interactive_way ways[3];
        enum conditioning conditioning;
    } bad[] = {{1, {{.steps = 3}}, CONDITIONING_AGENTS},
               {3, {{.steps = 2}, {.steps = 0}, {.steps = 1}}, CONDITIONING_AGENTS},
               {2, {{.steps = 1}, {.steps = 1}}, CONDITIONING_AGENTS},
               {1, {{true, 1}}, CONDITIONING_AGENTS},
               {2, {{.steps = 2}, {.steps = 0}}, CONDITIONING_MAP}};
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

static void samplers_name_the_previous_model(void)
{
    static const char hash[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    static const char *const none[] = {"agents/euler2/bf16", "agents/theirs/exact",
                                       "agents/euler2+0123/bf16",
                                       "agents/euler2+0123456789ABCDEF0123456789abcdef/bf16"};
    char sampler[LIMIT_ID_BYTES] = "agents/euler2/bf16";
    char less[LIMIT_ID_BYTES];
    char digits[SAMPLER_HASH_DIGITS + 1];
    uint32_t skipped = 0;
    struct error error;
    sampler_add_previous(sampler, hash);
    EXPECT_TEXT(sampler, "agents/euler2+0123456789abcdef0123456789abcdef/bf16");
    EXPECT(sampler_previous(sampler, digits));
    EXPECT_TEXT(digits, "0123456789abcdef0123456789abcdef");
    memcpy(less, sampler, sizeof less);
    EXPECT_OK(sampler_skip(less, 1, &error), error);
    EXPECT_TEXT(less, "agents/euler1+0123456789abcdef0123456789abcdef/bf16");
    EXPECT(sampler_skips(sampler, less, &skipped));
    EXPECT_INT(skipped, 1);
    EXPECT(!sampler_skips("agents/euler2/bf16", sampler, &skipped));
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        EXPECT(!sampler_previous(none[i], digits));
    }
}

/* Many sessions, kept in files, each of which drives a tick and leaves; SWERVE_TEST_LONG=yes: a
 * thousand. */
static void memory_stays_flat_over_many_sessions(void)
{
    enum { WARM = 20, SLACK_BYTES = 64 << 10 };
    char folder[] = "/tmp/swerve_kept_XXXXXX";
    struct seen seen = {.count = 0};
    struct error error;
    struct interactive *pool = NULL;
    const struct interactive_listener listener = {see, fail, &seen};
    const struct interactive_wish wish = {.rate = 1, .limit_ms = 1000};
    EXPECT(mkdtemp(folder) != NULL);
    pthread_mutex_init(&seen.lock, NULL);
    clock_condition_init(&seen.news);
    pool = open_pool(&(struct interactive_options){.planted_ms = planted_ms, .keep = folder},
                     clock_system());
    size_t warm_bytes = 0;
    const char *whole = getenv("SWERVE_TEST_LONG");
    int64_t rounds = whole != NULL && strcmp(whole, "yes") == 0 ? 1000 : 2 * WARM;
    for (int64_t i = 0; i < rounds; i++) {
        struct seat *seat = NULL;
        seen.tick = 0;
        EXPECT_OK(interactive_sit(pool, &wish, &listener, &seat, &error), error);
        EXPECT_INT(strlen(interactive_name(seat)), INTERACTIVE_NAME_BYTES - 1);
        interactive_pause(seat, false);
        wait_for_tick(&seen, 1);
        interactive_leave(seat);
        if (i == WARM) {
            warm_bytes = mallinfo2().uordblks;
        }
    }
    size_t bytes = mallinfo2().uordblks; /* 0 under sanitizers, which look for leaks themselves */
    if (bytes > warm_bytes + SLACK_BYTES) {
        TEST_FAIL("%zu bytes after %d sessions, %zu after %lld", warm_bytes, WARM, bytes,
                  (long long)rounds);
    }
    interactive_close(pool);
    EXPECT(file_remove_tree(folder));
    pthread_cond_destroy(&seen.news);
    pthread_mutex_destroy(&seen.lock);
}

/* Goal: kept sessions take a bounded room: the longest untouched goes when another begins, one that
 * somebody drives stays. Method: room for a byte. */
static void kept_sessions_make_room(void)
{
    char folder[] = "/tmp/swerve_kept_XXXXXX";
    char first[INTERACTIVE_NAME_BYTES];
    char second[INTERACTIVE_NAME_BYTES];
    struct seen seen = {.count = 0};
    struct error error;
    struct seat *seats[2] = {NULL, NULL};
    const struct interactive_listener listener = {see, fail, &seen};
    const struct interactive_wish begin = {.rate = 1, .limit_ms = 1000};
    EXPECT(mkdtemp(folder) != NULL);
    pthread_mutex_init(&seen.lock, NULL);
    clock_condition_init(&seen.news);
    struct interactive *pool = open_pool(
        &(struct interactive_options){.planted_ms = planted_ms, .keep = folder, .keep_bytes = 1},
        clock_system());
    EXPECT_OK(interactive_sit(pool, &begin, &listener, &seats[0], &error), error);
    snprintf(first, sizeof first, "%s", interactive_name(seats[0]));
    interactive_leave(seats[0]);
    EXPECT_OK(interactive_sit(pool, &begin, &listener, &seats[0], &error), error);
    snprintf(second, sizeof second, "%s", interactive_name(seats[0]));
    const struct interactive_wish gone = {.rate = 1, .limit_ms = 1000, .resume = first};
    EXPECT_INT(interactive_sit(pool, &gone, &listener, &seats[1], &error), STATUS_NOT_FOUND);
    EXPECT_OK(interactive_sit(pool, &begin, &listener, &seats[1], &error), error);
    /* Whoever finds no seat is told so before any log is read, or removed for him. */
    struct seat *third = NULL;
    EXPECT_INT(interactive_sit(pool, &gone, &listener, &third, &error), STATUS_BUSY);
    EXPECT_CONTAINS(error.text, "all 2 seats are taken");
    EXPECT_INT(interactive_sit(pool, &begin, &listener, &third, &error), STATUS_BUSY);
    interactive_leave(seats[0]);
    const struct interactive_wish stays = {.rate = 1, .limit_ms = 1000, .resume = second};
    EXPECT_OK(interactive_sit(pool, &stays, &listener, &seats[0], &error), error);
    interactive_leave(seats[0]);
    interactive_leave(seats[1]);
    interactive_close(pool);
    EXPECT(file_remove_tree(folder));
    pthread_cond_destroy(&seen.news);
    pthread_mutex_destroy(&seen.lock);
}

/* Goal: a kept session is taken up where frames are judged as they were, and where it is refused
 * the session before goes on. Method: a bound of the model is another one in the second of three
 * pools on one folder. */
static void bounds_belong_to_a_kept_session(void)
{
    char folder[] = "/tmp/swerve_kept_XXXXXX";
    char name[INTERACTIVE_NAME_BYTES];
    struct seen seen = {.count = 0};
    struct error error;
    struct seat *seat = NULL;
    struct seat *taken = NULL;
    const struct interactive_listener listener = {see, fail, &seen};
    const struct interactive_wish begin = {.rate = 1, .limit_ms = 1000};
    double *bound = &model.bounds.bound[CONDITIONING_AGENTS][0];
    const double before = *bound;
    EXPECT(mkdtemp(folder) != NULL);
    pthread_mutex_init(&seen.lock, NULL);
    clock_condition_init(&seen.news);
    const struct interactive_options kept = {.planted_ms = planted_ms, .keep = folder};
    struct interactive *pool = open_pool(&kept, clock_system());
    EXPECT_OK(interactive_sit(pool, &begin, &listener, &seat, &error), error);
    snprintf(name, sizeof name, "%s", interactive_name(seat));
    interactive_pause(seat, false);
    wait_for_tick(&seen, 2);
    interactive_leave(seat);
    interactive_close(pool);
    const struct interactive_wish resume = {.rate = 1, .limit_ms = 1000, .resume = name};

    *bound = 0.5;
    seen.tick = 0;
    pool = open_pool(&kept, clock_system());
    EXPECT_OK(interactive_sit(pool, &begin, &listener, &seat, &error), error);
    interactive_pause(seat, false);
    struct interactive_wish instead = resume;
    instead.instead = seat;
    EXPECT_INT(interactive_sit(pool, &instead, &listener, &taken, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "health bounds");
    EXPECT(taken == NULL);
    wait_for_tick(&seen, 2);
    EXPECT_INT(interactive_counts(pool).seated, 1);
    interactive_leave(seat);
    interactive_close(pool);

    *bound = before;
    pool = open_pool(&kept, clock_system());
    EXPECT_OK(interactive_sit(pool, &resume, &listener, &taken, &error), error);
    EXPECT_TEXT(interactive_name(taken), name);
    interactive_leave(taken);
    interactive_close(pool);
    EXPECT(file_remove_tree(folder));
    pthread_cond_destroy(&seen.news);
    pthread_mutex_destroy(&seen.lock);
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
                 {"tokens/euler2/bf16", 2, "tokens/euler0/bf16"},
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

/* ---- on a device ---- */

/* Goal: a device's ticks are timed whole, each tier by itself, and its sessions go on on the same
 * backend alone. Method: what the first ticks of a pool leave; one that is kept, in another pool,
 * then on the CPU. */
static void a_device_has_costs_by_tier_and_keeps_its_sessions(void)
{
    char folder[] = "/tmp/swerve_kept_XXXXXX";
    char name[INTERACTIVE_NAME_BYTES];
    char sentence[256];
    struct seen seen = {.count = 0};
    struct error error;
    struct seat *seat = NULL;
    const struct device *device = on;
    const struct interactive_listener listener = {see, fail, &seen};
    const struct interactive_wish begin = {.rate = 0.1, .limit_ms = 1000, .steps_least = 1};
    EXPECT(mkdtemp(folder) != NULL);
    pthread_mutex_init(&seen.lock, NULL);
    clock_condition_init(&seen.news);
    const struct interactive_options kept = {.keep = folder, .way_count = 2, .ways = {{false, 1}}};
    struct interactive *pool = open_pool(&kept, clock_system());
    EXPECT_OK(interactive_sit(pool, &begin, &listener, &seat, &error), error);
    snprintf(name, sizeof name, "%s", interactive_name(seat));
    interactive_pause(seat, false);
    wait_for_tick(&seen, 2);
    interactive_pause(seat, true); /* which waits for the tick's account */
    pthread_mutex_lock(&pool->lock);
    const struct deadline_pool *deadlines = &pool->deadlines;
    EXPECT_INT(deadlines->tier_count, 2); /* one step, drawn */
    EXPECT(deadlines->costs[0][DEADLINE_CONTEXT].count >= 2);
    EXPECT_INT(deadlines->costs[0][DEADLINE_STEP].count, 0);
    EXPECT_INT(deadlines->tiers[1].costs, 1);
    pthread_mutex_unlock(&pool->lock);
    interactive_leave(seat);
    interactive_close(pool);

    const struct interactive_wish resume = {.rate = 0.1, .limit_ms = 1000, .resume = name};
    seen.tick = 0;
    pool = open_pool(&kept, clock_system());
    EXPECT_OK(interactive_sit(pool, &resume, &listener, &seat, &error), error);
    EXPECT(seen.tick >= 2);
    interactive_leave(seat);
    interactive_close(pool);

    snprintf(sentence, sizeof sentence,
             "expected one of world student, as this server has, found student on %s",
             device->backend);
    on = NULL;
    const struct interactive_options elsewhere = {.keep = folder, .suite = short_road_path};
    pool = open_pool(&elsewhere, clock_system());
    EXPECT_INT(interactive_sit(pool, &resume, &listener, &seat, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, sentence);
    interactive_close(pool);
    on = device;
    EXPECT(file_remove_tree(folder));
    pthread_cond_destroy(&seen.news);
    pthread_mutex_destroy(&seen.lock);
}

static int run_on_device(const char *module)
{
    struct device device;
    struct error error;
    EXPECT_INT(setenv("SWERVE_CUDA_MODULE", module, 1), 0);
    EXPECT_OK(device_choose("cuda:0", &device, &error), error);
    on = &device;
    int code = TEST_RUN(TEST(sessions_of_mixed_steps_are_driven_again),
                        TEST(a_device_has_costs_by_tier_and_keeps_its_sessions));
    on = NULL;
    return code;
}

int main(int argc, char **argv)
{
    open_model(SWERVE_SOURCE_ROOT "/tests/engine/data");
    if (argc > 1) {
        int on_device = run_on_device(argv[1]);
        close_models();
        return on_device;
    }
    int code = TEST_RUN(
        TEST(sessions_of_mixed_steps_are_driven_again), TEST(steps_that_there_are_not_are_refused),
        TEST(every_rung_is_reached), TEST(a_way_back_makes_nobody_late),
        TEST(taking_up_makes_nobody_late), TEST(hardware_is_refused_what_is_below_its_band),
        TEST(costs_are_measured_before_anybody_sits), TEST(ways_that_there_are_not_are_refused),
        TEST(memory_stays_flat_over_many_sessions), TEST(kept_sessions_make_room),
        TEST(bounds_belong_to_a_kept_session), TEST(samplers_are_called_after_their_steps),
        TEST(samplers_name_the_previous_model), TEST(quantiles_are_bounds),
        TEST(a_refusal_has_numbers_and_a_way_out));
    close_models();
    return code;
}
