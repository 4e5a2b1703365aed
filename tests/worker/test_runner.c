/*
 * Goal: the runner's promise. A branch is bit-identical to running its scenario alone with the same
 * interventions; the shared past is simulated once; neighbours, slots, parking, cancelled jobs and
 * other rollouts' planner faults change nothing.
 * Method: jobs over in-memory scenarios through runners of different shapes, compared with each
 * rollout run alone from tick 0 (trace hash, verdict, reasons, every metric bit for bit).
 */
#include "base/rng.h"
#include "tests/engine/world_dummy.h"
#include "tests/worker/jobs.h"

#include <unistd.h>

#define GOOD "plugin:" PLUGIN_MOODY "?good"

enum { HORIZON = 60 };

static uint32_t random_below(uint64_t seed, uint32_t index, uint32_t below)
{
    return (uint32_t)(rng_uniform(seed, RNG_STREAM_TEST, index, 0) * below);
}

/* One branch of every kind, at random ticks; `worlds` also those that only traffic worlds know. */
static void add_every_branch(struct jobs_scenario *s, uint64_t seed, bool traffic)
{
    static const struct action given[] = {{-3.0, 0.02}, {-2.0, -0.02}, {1.0, 0.0}};
    static uint32_t lane = 0;
    static struct signal_phase green = {TRAFFIC_LIGHT_GREEN, 60.0};
    static struct traffic_signal signal = {
        .lane_count = 1, .lanes = &lane, .stop_m = 1.0, .phase_count = 1, .phases = &green};
    s->scenario.map.signals = &signal;
    s->scenario.map.signal_count = 1;
    for (int kind = 0; kind < INTERVENE_COUNT; kind++) {
        bool agent = kind == INTERVENE_AGENT_BRAKE || kind == INTERVENE_AGENT_CUT_IN;
        if ((agent || kind == INTERVENE_SIGNAL || kind == INTERVENE_TRAFFIC) && !traffic) {
            continue;
        }
        uint32_t tick = random_below(seed, (uint32_t)kind, HORIZON);
        struct intervention *what = jobs_branch(s, tick, (enum intervention_kind)kind);
        what->decel_mps2 = 5.0;
        what->offset_m = 2.0;
        what->duration_s = 1.5;
        what->latency_ms = 120.0;
        what->jitter_ms = 60.0;
        what->sensors = SENSOR_LIDAR | SENSOR_CAMERA_FRONT;
        what->conditions = (struct conditions){WEATHER_SNOW, LIGHT_NIGHT, 0.3, 60.0};
        what->agent = kind == INTERVENE_AGENT_APPEAR ? 4 : agent ? 1 : -1;
        what->actions = (struct action *)(uintptr_t)given;
        what->action_count = 3;
        what->light = TRAFFIC_LIGHT_RED;
        what->traffic = TRAFFIC_MODEL_DRIVERS;
        what->draw = 3;
        if (tick + 5 < HORIZON) {
            jobs_then(s, tick + 5, INTERVENE_EGO_PLANNER);
        }
    }
    for (int model = 0; traffic && model < TRAFFIC_MODEL_COUNT; model++) {
        uint32_t tick = random_below(seed, (uint32_t)(INTERVENE_COUNT + model), HORIZON);
        struct intervention *what = jobs_branch(s, tick, INTERVENE_TRAFFIC);
        what->traffic = (enum traffic_model)model;
        what->draw = 3;
    }
}

static void forks_equal_solo_in(const struct world_ops *world, const char *planner, uint64_t seed)
{
    static const uint32_t slot_counts[] = {1, 2, 3, 16};
    struct jobs_scenario s;
    struct runner_stats stats;
    jobs_scenario_init(&s, "fork", HORIZON);
    if (world == &world_dummy_ops) {
        jobs_clear_lane(&s);
    }
    add_every_branch(&s, seed, world != &world_dummy_ops);
    jobs_prepared(&s);
    struct job_run *solo = jobs_run_one(world, planner, &s, seed, 1, true, &stats);
    EXPECT_INT(stats.forks, 0);
    int64_t solo_ticks = stats.ticks;
    for (size_t i = 0; i < sizeof slot_counts / sizeof *slot_counts; i++) {
        struct job_run *forked =
            jobs_run_one(world, planner, &s, seed, slot_counts[i], false, &stats);
        jobs_expect_same(forked, solo);
        EXPECT_INT(stats.ticks, jobs_own_ticks(forked));
        EXPECT(stats.ticks < solo_ticks);
        int64_t due = 0;
        for (uint32_t b = 0; b < s.scenario.branch_count; b++) {
            due += s.scenario.branches[b].at_tick <= forked->results[0].ticks;
        }
        EXPECT_INT(stats.forks, due);
        EXPECT(due >= 3);
        EXPECT((stats.parks > 0) == (slot_counts[i] <= due));
        job_run_destroy(forked);
    }
    job_run_destroy(solo);
    jobs_scenario_finish(&s);
}

static void forks_equal_solo(void)
{
    for (uint64_t seed = 1; seed <= 2; seed++) {
        forks_equal_solo_in(&world_dummy_ops, GOOD, seed);
        forks_equal_solo_in(&world_replay_ops, GOOD, seed);
        forks_equal_solo_in(&world_object_ops, GOOD, seed);
        forks_equal_solo_in(&world_object_ops, "builtin:reference", seed);
        forks_equal_solo_in(&world_object_ops, "builtin:maintain", seed);
    }
}

/* More branches than can be parked, of several jobs at once. */
static void a_wide_fan_simulates_its_past_once(void)
{
    static const uint32_t slot_counts[] = {1, 3, 16};
    struct jobs_scenario s;
    jobs_scenario_init(&s, "wide", 20);
    jobs_clear_lane(&s);
    for (uint32_t i = 0; i < 200; i++) {
        jobs_branch(&s, i < 190 ? 12 : 15, INTERVENE_EGO_BRAKE)->decel_mps2 = 0.02 * i;
    }
    jobs_prepared(&s);
    struct job_run *solo = jobs_run_one(&world_dummy_ops, GOOD, &s, 0, 16, true, NULL);
    for (size_t i = 0; i < sizeof slot_counts / sizeof *slot_counts; i++) {
        struct job_run *jobs[4];
        struct runner *runner = jobs_runner(&world_dummy_ops, GOOD, slot_counts[i], false);
        int64_t own = 0;
        for (uint32_t j = 0; j < 4; j++) {
            jobs_add(runner, &s, j, 0);
        }
        jobs_run(runner, jobs, 4);
        for (uint32_t j = 0; j < 4; j++) {
            jobs_expect_same(jobs[j], solo);
            own += jobs_own_ticks(jobs[j]);
            job_run_destroy(jobs[j]);
        }
        EXPECT_INT(own, 4 * (20 + 190 * 8 + 10 * 5));
        EXPECT_INT(runner_stats(runner)->ticks, own);
        EXPECT_INT(runner_stats(runner)->forks, 4 * 200);
        runner_destroy(runner);
    }
    job_run_destroy(solo);
    jobs_scenario_finish(&s);
}

/* Of 16 jobs with as many slots, how many are finished after that part of all ticks. */
static int64_t finished_after(const struct world_ops *world, double part)
{
    enum { JOBS = 16 };
    struct jobs_scenario s;
    int64_t finished = 0;
    jobs_scenario_init(&s, "order", 40);
    jobs_clear_lane(&s);
    for (uint32_t i = 0; i < 3; i++) {
        jobs_branch(&s, 10 + 5 * i, INTERVENE_EGO_BRAKE)->decel_mps2 = 0.5 * (i + 1);
    }
    jobs_prepared(&s);
    struct job_run *alone = jobs_run_one(world, GOOD, &s, 0, 1, false, NULL);
    struct runner *runner = jobs_runner(world, GOOD, JOBS, false);
    for (uint32_t j = 0; j < JOBS; j++) {
        jobs_add(runner, &s, j, 0);
    }
    int64_t next = 0;
    int64_t total = JOBS * jobs_own_ticks(alone);
    while (runner_busy(runner)) {
        runner_tick(runner);
        struct job_run *job;
        while ((job = runner_take(runner)) != NULL) {
            EXPECT(job->lease.job_id <= next + JOBS / 2);
            next++;
            jobs_expect_same(job, alone);
            job_run_destroy(job);
        }
        finished = (double)runner_stats(runner)->ticks < part * (double)total ? next : finished;
    }
    EXPECT_INT(next, JOBS);
    EXPECT_INT(runner_stats(runner)->ticks, total);
    runner_destroy(runner);
    job_run_destroy(alone);
    jobs_scenario_finish(&s);
    return finished;
}

/* An interrupted worker has finished what it had time for: on a device jobs get slots in their
 * order, and a model on the CPU runs few at a time. */
static void jobs_end_one_after_the_other(void)
{
    struct world_ops computing = world_dummy_ops;
    computing.tier = TIER_STUDENT;
    EXPECT(finished_after(&world_dummy_ops, 0.5) >= 3);
    EXPECT(finished_after(&computing, 1.0 / 3.0) >= 4);
}

/* Goal: a job of a higher class has a slot at the next tick, however full the runner is, and ends
 * first; those whose slots it took end with the bits of drives that nobody disturbed. One of the
 * same class, or of none, waits. */
static void a_higher_class_has_its_slot_at_once(void)
{
    enum { MINED = 6 };
    for (uint32_t slots = 1; slots <= 4; slots++) {
        struct jobs_scenario wide, quick;
        struct job_run *first;
        struct job_run *jobs[MINED + 2];
        jobs_scenario_init(&wide, "wide", HORIZON);
        add_every_branch(&wide, slots, true);
        jobs_prepared(&wide);
        jobs_scenario_init(&quick, "quick", 5);
        jobs_prepared(&quick);
        struct runner *runner = jobs_runner(&world_object_ops, GOOD, slots, false);
        for (int64_t id = 0; id < MINED; id++) {
            jobs_add_class(runner, &wide, id, (uint64_t)id, SUITE_MINING);
        }
        for (int i = 0; i < 20; i++) {
            runner_tick(runner);
        }
        EXPECT(runner_take(runner) == NULL);
        jobs_add_class(runner, &quick, MINED, 7, SUITE_MINING);
        jobs_add_class(runner, &quick, MINED + 1, 7, SUITE_INTERACTIVE);
        for (int i = 0; i < 2 * 6; i++) { /* of two halves one is stepped in a tick */
            runner_tick(runner);
        }
        first = runner_take(runner);
        EXPECT(first != NULL && first->lease.job_id == MINED + 1);
        EXPECT(runner_take(runner) == NULL);
        jobs_run(runner, jobs, MINED + 1);
        EXPECT(runner_stats(runner)->parks > 0);
        runner_destroy(runner);
        jobs_expect_same(first, jobs[MINED]);
        for (int64_t id = 0; id < MINED; id++) {
            struct job_run *alone =
                jobs_run_one(&world_object_ops, GOOD, &wide, (uint64_t)id, 4, true, NULL);
            jobs_expect_same(jobs[id], alone);
            job_run_destroy(alone);
            job_run_destroy(jobs[id]);
        }
        job_run_destroy(jobs[MINED]);
        job_run_destroy(first);
        jobs_scenario_finish(&wide);
        jobs_scenario_finish(&quick);
    }
}

/* ---- classes and wide fans ---- */

enum { FAN_TICK = 12, FAN_HORIZON = 16 };

static void make_fan(struct jobs_scenario *s, const char *name, uint32_t branches)
{
    jobs_scenario_init(s, name, FAN_HORIZON);
    jobs_clear_lane(s);
    for (uint32_t i = 0; i < branches; i++) {
        jobs_branch(s, FAN_TICK, INTERVENE_EGO_BRAKE)->decel_mps2 = 0.02 * i;
    }
    jobs_prepared(s);
}

/* `below` jobs of `low`, mined, for so many ticks; then as many as slots of `high`, each class
 * above the last. */
static void drive_ranks(uint32_t slots, const struct jobs_scenario *low, uint32_t below,
                        uint32_t ticks, const struct jobs_scenario *high, uint32_t ranks)
{
    static const enum suite_class classes[] = {SUITE_REGRESSION, SUITE_INTERACTIVE};
    struct job_run *jobs[3 * 8];
    uint32_t count = 0;
    struct runner *runner = jobs_runner(&world_dummy_ops, GOOD, slots, false);
    struct job_run *low_alone = jobs_run_one(&world_dummy_ops, GOOD, low, 0, 16, false, NULL);
    struct job_run *high_alone = jobs_run_one(&world_dummy_ops, GOOD, high, 0, 16, false, NULL);
    for (; count < below; count++) {
        jobs_add_class(runner, low, count, 0, SUITE_MINING);
    }
    for (uint32_t i = 0; i < ticks; i++) {
        runner_tick(runner);
    }
    for (uint32_t rank = 2 - ranks; rank < 2; rank++) {
        for (uint32_t i = 0; i < slots; i++, count++) {
            jobs_add_class(runner, high, count, 0, classes[rank]);
        }
        runner_tick(runner);
        runner_tick(runner);
    }
    jobs_run(runner, jobs, count);
    runner_destroy(runner);
    for (uint32_t i = 0; i < count; i++) {
        jobs_expect_same(jobs[i], i < below ? low_alone : high_alone);
        job_run_destroy(jobs[i]);
    }
    job_run_destroy(low_alone);
    job_run_destroy(high_alone);
}

/* Goal: however many main lines of lower classes are parked, a wide fan of a higher one has its
 * sessions, and every job ends with the bits that it has alone. */
static void a_wide_fan_of_a_higher_class_has_sessions(void)
{
    static const uint32_t slot_counts[] = {1, 2, 4, 8};
    struct jobs_scenario low, high;
    make_fan(&low, "low", 0);
    make_fan(&high, "high", 256);
    for (size_t i = 0; i < sizeof slot_counts / sizeof *slot_counts; i++) {
        for (uint32_t ranks = 1; ranks <= 2; ranks++) {
            drive_ranks(slot_counts[i], &low, slot_counts[i], 4, &high, ranks);
        }
    }
    jobs_scenario_finish(&low);
    jobs_scenario_finish(&high);
}

/* Goal: where branches of a lower class fill the parking, main lines of a higher one that are to
 * fork let them by instead of asking for ever. Method: every number of ticks after which they come
 * finds another state of the fan. */
static void a_full_parking_of_a_lower_class_is_let_by(void)
{
    struct jobs_scenario exact, more, high;
    make_fan(&high, "high", 3);
    make_fan(&more, "more", 70);
    for (uint32_t slots = 1; slots <= 3; slots++) {
        make_fan(&exact, "exact", 63 + slots); /* one goes on, and its last branch was parked */
        for (uint32_t ticks = FAN_TICK - 1; ticks < FAN_TICK + 10; ticks++) {
            drive_ranks(slots, &exact, 1 + slots / 2, ticks, &high, 1 + ticks % 2);
            drive_ranks(slots, &more, 1 + slots / 2, ticks, &high, 1 + ticks % 2);
        }
        jobs_scenario_finish(&exact);
    }
    jobs_scenario_finish(&more);
    jobs_scenario_finish(&high);
}

/* ---- what the world is told of parked branches ---- */

/* In a tick: the states that the world was told of, in order, and how many of them went on. */
static struct {
    const void *told[16];
    uint32_t count, restored;
    bool stepped;
    uint32_t patience; /* says "no more" to that one */
    uint32_t told_in_all, restored_in_all;
} spy;

static bool spy_prefetch(struct world *world, const void *state)
{
    if (spy.stepped) {
        spy.count = spy.restored = 0;
        spy.stepped = false;
    }
    EXPECT(spy.count < world->slot_count && spy.count < spy.patience);
    spy.told[spy.count++] = state;
    spy.told_in_all++;
    return spy.count < spy.patience;
}

static void spy_restore(struct world *world, uint32_t slot, void *state)
{
    EXPECT(spy.restored >= spy.patience || state == spy.told[spy.restored]);
    EXPECT(spy.restored >= spy.patience || spy.restored < spy.count);
    spy.restored++;
    spy.restored_in_all++;
    world_dummy_ops.slot_restore(world, slot, state);
}

static void spy_step(struct world *world, const struct action *actions, const uint8_t *active)
{
    spy.stepped = true;
    world_dummy_ops.step(world, actions, active);
}

/* Whatever goes on next was announced the tick before, the first first, and no more than a world
 * wants to hear of; nothing else depends on it. */
static void the_world_hears_which_branches_go_on_next(void)
{
    static const uint32_t slot_counts[] = {1, 3, 16};
    struct world_ops world = world_dummy_ops;
    struct jobs_scenario s;
    struct runner_stats stats;
    world.slot_state_prefetch = spy_prefetch;
    world.slot_restore = spy_restore;
    world.step = spy_step;
    jobs_scenario_init(&s, "ahead", 20);
    jobs_clear_lane(&s);
    for (uint32_t i = 0; i < 90; i++) {
        jobs_branch(&s, 8 + i % 3, INTERVENE_EGO_BRAKE)->decel_mps2 = 0.02 * i;
    }
    jobs_prepared(&s);
    struct job_run *solo = jobs_run_one(&world_dummy_ops, GOOD, &s, 0, 16, true, NULL);
    for (size_t i = 0; i < 2 * COUNT_OF(slot_counts); i++) {
        memset(&spy, 0, sizeof spy);
        spy.patience = i < COUNT_OF(slot_counts) ? UINT32_MAX : 2;
        struct job_run *job = jobs_run_one(&world, GOOD, &s, 0,
                                           slot_counts[i % COUNT_OF(slot_counts)], false, &stats);
        jobs_expect_same(job, solo);
        EXPECT_INT(spy.restored_in_all, stats.parks);
        EXPECT(spy.restored_in_all > 50 && spy.told_in_all > 50);
        job_run_destroy(job);
    }
    job_run_destroy(solo);
    jobs_scenario_finish(&s);
}

static void neighbours_do_not_matter(void)
{
    enum { COUNT = 5 };
    struct jobs_scenario s[COUNT];
    struct job_run *alone[COUNT];
    struct job_run *together[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        jobs_scenario_init(&s[i], "neighbour", 30 + 7 * i);
        s[i].scenario.ego.speed_mps = 10.0 + 2.0 * i;
        jobs_branch(&s[i], 3 * i, INTERVENE_EGO_BRAKE)->decel_mps2 = 4.0;
        jobs_branch(&s[i], 20, INTERVENE_STACK_DROPOUT)->sensors = SENSOR_LIDAR;
        jobs_prepared(&s[i]);
        alone[i] = jobs_run_one(&world_object_ops, GOOD, &s[i], i, 1, false, NULL);
    }
    for (uint32_t slots = 2; slots <= 16; slots += 7) {
        struct runner *runner = jobs_runner(&world_object_ops, GOOD, slots, false);
        for (uint32_t i = 0; i < COUNT; i++) {
            jobs_add(runner, &s[i], i, i);
        }
        jobs_run(runner, together, COUNT);
        for (uint32_t i = 0; i < COUNT; i++) {
            jobs_expect_same(together[i], alone[i]);
            job_run_destroy(together[i]);
        }
        runner_destroy(runner);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        job_run_destroy(alone[i]);
        jobs_scenario_finish(&s[i]);
    }
}

/* A standing car ahead ends the main line at a tick found by running it; branches fork before,
 * exactly at and after that tick. */
static void branches_of_a_main_line_that_ends_early(void)
{
    struct jobs_scenario s;
    struct runner_stats stats;
    uint32_t end = 0;
    for (int round = 0; round < 2; round++) {
        jobs_scenario_init(&s, "wall", HORIZON);
        s.scenario.agents[0].pose.x_m = 75.0;
        s.scenario.agents[0].behaviour = BEHAVIOUR_STATIC;
        s.scenario.agents[0].speed_mps = 0.0;
        s.scenario.agents[0].trajectory.point_count = 0;
        if (round == 1) {
            for (uint32_t tick = end - 2; tick <= end + 2; tick++) {
                jobs_branch(&s, tick, INTERVENE_EGO_BRAKE)->decel_mps2 = 8.0;
                jobs_branch(&s, tick, INTERVENE_AGENT_APPEAR)->agent = 4;
            }
            jobs_branch(&s, 0, INTERVENE_EGO_BRAKE)->decel_mps2 = 8.0;
        }
        jobs_prepared(&s);
        struct job_run *job =
            jobs_run_one(&world_object_ops, "builtin:maintain", &s, 0, 3, false, &stats);
        end = job->results[0].ticks;
        EXPECT(end > 3 && end + 3 < HORIZON);
        EXPECT_INT(job->results[0].metrics.collision_count, 1);
        if (round == 1) {
            struct job_run *solo =
                jobs_run_one(&world_object_ops, "builtin:maintain", &s, 0, 1, true, NULL);
            jobs_expect_same(job, solo);
            EXPECT_INT(stats.ticks, jobs_own_ticks(job));
            EXPECT_INT(stats.forks, 7); /* later ones share the main line's end */
            EXPECT(job->results[11].verdict == VERDICT_PASS);
            job_run_destroy(solo);
        }
        job_run_destroy(job);
        jobs_scenario_finish(&s);
    }
}

static void a_cancelled_job_leaves_the_others_alone(void)
{
    struct jobs_scenario s;
    struct job_run *jobs[3];
    jobs_scenario_init(&s, "cancel", HORIZON);
    add_every_branch(&s, 5, true);
    jobs_prepared(&s);
    struct job_run *alone = jobs_run_one(&world_object_ops, GOOD, &s, 7, 1, false, NULL);
    struct runner *runner = jobs_runner(&world_object_ops, GOOD, 4, false);
    for (uint32_t i = 0; i < 3; i++) {
        jobs_add(runner, &s, i, 7);
    }
    for (int tick = 0; tick < 40; tick++) {
        runner_tick(runner);
    }
    struct runner_progress before[3];
    EXPECT_INT(runner_progress(runner, before, 3), 3);
    runner_cancel(runner, 1, 2); /* a later attempt: there is none */
    for (const struct job_run *job = runner_jobs(runner); job != NULL; job = job->next) {
        EXPECT(!job->cancelled);
    }
    runner_cancel(runner, 1, 1);
    jobs_run(runner, jobs, 3);
    EXPECT(jobs[1]->cancelled);
    EXPECT(jobs[1]->finished_count < jobs[1]->rollout_count);
    int64_t device_ns = 0;
    int64_t metres_mm = 0;
    for (uint32_t i = 0; i < jobs[1]->rollout_count; i++) {
        device_ns += jobs[1]->results[i].device_ns;
        metres_mm += jobs[1]->results[i].metres_mm;
    }
    for (int i = 0; i < 3; i++) {
        if (before[i].job_id == 1) {
            EXPECT(before[i].device_ns > 0 && device_ns >= before[i].device_ns);
            EXPECT(before[i].metres_mm > 0 && metres_mm + 50 >= before[i].metres_mm);
        }
    }
    jobs_expect_same(jobs[0], alone);
    jobs_expect_same(jobs[2], alone);
    for (uint32_t i = 0; i < 3; i++) {
        job_run_destroy(jobs[i]);
    }
    jobs_add(runner, &s, 0, 7);
    runner_tick(runner);
    runner_cancel_all(runner);
    EXPECT(!runner_busy(runner));
    jobs[0] = runner_take(runner);
    EXPECT(jobs[0] != NULL && jobs[0]->cancelled);
    EXPECT(runner_take(runner) == NULL);
    job_run_destroy(jobs[0]);
    runner_destroy(runner);
    job_run_destroy(alone);
    jobs_scenario_finish(&s);
}

static void a_world_that_refuses_fails_the_job(void)
{
    struct jobs_scenario good;
    struct jobs_scenario refused;
    struct job_run *jobs[2];
    jobs_scenario_init(&good, "good", HORIZON);
    jobs_branch(&good, 10, INTERVENE_EGO_MAINTAIN);
    jobs_prepared(&good);
    jobs_scenario_init(&refused, "refused", HORIZON);
    jobs_branch(&refused, 10, INTERVENE_EGO_MAINTAIN);
    jobs_branch(&refused, 20, INTERVENE_AGENT_BRAKE)->agent = 0; /* unknown to the dummy world */
    jobs_prepared(&refused);
    struct job_run *alone = jobs_run_one(&world_dummy_ops, GOOD, &good, 0, 1, false, NULL);
    struct runner *runner = jobs_runner(&world_dummy_ops, GOOD, 2, false);
    jobs_add(runner, &refused, 0, 0);
    jobs_add(runner, &good, 1, 0);
    jobs_run(runner, jobs, 2);
    EXPECT_INT(jobs[0]->failure, STATUS_BAD_INPUT);
    EXPECT_CONTAINS(jobs[0]->error, "dummy");
    jobs_expect_same(jobs[1], alone);
    job_run_destroy(jobs[0]);
    job_run_destroy(jobs[1]);
    job_run_destroy(alone);
    runner_destroy(runner);
    jobs_scenario_finish(&good);
    jobs_scenario_finish(&refused);
}

/* ---- planner faults ---- */

#define DEATH ": " ROLLOUT_DEATH

/* Takes out what rollouts keep of a death among their neighbours. */
static void forget_deaths(struct job_run *job)
{
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        if (strstr(job->results[i].error, DEATH) != NULL) {
            EXPECT(strncmp(job->results[i].error, "tick ", 5) == 0);
            EXPECT(job->results[i].verdict != VERDICT_PLANNER_ERROR);
            job->results[i].error[0] = '\0';
        }
    }
}

/* Two innocent jobs around a targeted one under `bad`; the innocent ones must equal those of the
 * well-behaved planner. Returns the targeted job. */
static struct job_run *among_neighbours(const char *bad, const char *good, struct jobs_scenario *s,
                                        uint32_t slots, struct runner_stats *stats)
{
    struct jobs_scenario innocent;
    struct job_run *jobs[3];
    jobs_scenario_init(&innocent, "innocent", HORIZON);
    jobs_clear_lane(&innocent);
    jobs_branch(&innocent, 8, INTERVENE_EGO_BRAKE)->decel_mps2 = 6.0;
    jobs_branch(&innocent, 30, INTERVENE_EGO_MAINTAIN);
    jobs_prepared(&innocent);
    struct job_run *alone = jobs_run_one(&world_dummy_ops, good, &innocent, 3, 1, false, NULL);
    struct runner *runner = jobs_runner(&world_dummy_ops, bad, slots, false);
    jobs_add(runner, &innocent, 0, 3);
    jobs_add(runner, s, 1, 4);
    jobs_add(runner, &innocent, 2, 3);
    jobs_run(runner, jobs, 3);
    forget_deaths(jobs[0]);
    forget_deaths(jobs[2]);
    jobs_expect_same(jobs[0], alone);
    jobs_expect_same(jobs[2], alone);
    EXPECT_INT(jobs[1]->failure, STATUS_OK);
    *stats = *runner_stats(runner);
    runner_destroy(runner);
    job_run_destroy(jobs[0]);
    job_run_destroy(jobs[2]);
    job_run_destroy(alone);
    jobs_scenario_finish(&innocent);
    return jobs[1];
}

static void targeted(struct jobs_scenario *s)
{
    jobs_scenario_init(s, "guilty", HORIZON);
    jobs_clear_lane(s);
    jobs_branch(s, 10, INTERVENE_EGO_MAINTAIN);
    jobs_branch(s, 25, INTERVENE_EGO_MAINTAIN);
    jobs_branch(s, 40, INTERVENE_EGO_MAINTAIN);
    jobs_branch(s, 12, INTERVENE_EGO_BRAKE)->decel_mps2 = 8.0; /* slow from tick 35 on */
    jobs_prepared(s);
}

static void expect_faults(const struct job_run *job, const char *mask, const char *text)
{
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        EXPECT_INT(job->results[i].verdict == VERDICT_PLANNER_ERROR, mask[i] == 'x');
        if (mask[i] == 'x') {
            EXPECT_CONTAINS(job->results[i].error, text);
        }
    }
}

static void check_fault(const char *bad, const char *mask, const char *text, bool dies)
{
    struct jobs_scenario s;
    struct runner_stats stats;
    targeted(&s);
    struct job_run *solo = jobs_run_one(&world_dummy_ops, bad, &s, 4, 1, true, NULL);
    for (uint32_t slots = 1; slots <= 16; slots += 5) {
        struct job_run *job = among_neighbours(bad, GOOD, &s, slots, &stats);
        forget_deaths(job);
        jobs_expect_same(job, solo);
        expect_faults(job, mask, text);
        EXPECT((stats.planner_restarts > 0) == dies);
        job_run_destroy(job);
    }
    job_run_destroy(solo);
    jobs_scenario_finish(&s);
}

/* Main line and every branch meet tick 20: a branch that forked before fails by itself, one that
 * would fork later shares the main line's end. */
static void a_nan_ends_its_rollout_alone(void)
{
    check_fault("plugin:" PLUGIN_MOODY "?nan,20,guilty", "xxxxx", "tick 20", false);
    check_fault("plugin:" PLUGIN_MOODY "?nan,0,guilty", "xxxxx", "tick 0", false);
    check_fault("plugin:" PLUGIN_MOODY "?nan,40,guilty", "xxxxx", "tick 40", false);
    check_fault("plugin:" PLUGIN_MOODY "?nanslow,3,guilty", "....x", "not finite", false);
    check_fault("plugin:" PLUGIN_MOODY "?noreset,0,guilty", "xxxxx", "taste", false);
}

static void an_instance_that_dies_is_blamed_on_the_guilty_alone(void)
{
    check_fault("plugin:" PLUGIN_MOODY "?die,20,guilty", "xxxxx", "out of sorts", true);
    check_fault("plugin:" PLUGIN_MOODY "?dieslow,3,guilty", "....x", "out of sorts", true);
}

static void a_planner_that_cannot_fork_runs_the_prefix_again(void)
{
    struct jobs_scenario s;
    struct runner_stats stats;
    targeted(&s);
    struct job_run *solo = jobs_run_one(&world_dummy_ops, GOOD, &s, 4, 1, true, &stats);
    int64_t solo_ticks = stats.ticks;
    EXPECT_INT(stats.fork_refusals, 0);
    for (uint32_t slots = 1; slots <= 16; slots += 5) {
        struct job_run *job = jobs_run_one(
            &world_dummy_ops, "plugin:" PLUGIN_MOODY "?nofork,0,none", &s, 4, slots, false, &stats);
        jobs_expect_same(job, solo);
        EXPECT_INT(stats.ticks, solo_ticks);
        EXPECT(stats.fork_refusals > 0);
        EXPECT_INT(jobs_own_ticks(job), solo_ticks);
        job_run_destroy(job);
    }
    job_run_destroy(solo);
    jobs_scenario_finish(&s);
}

/* The same with a process: it crashes, hangs, or dies while a rollout is being set up. */
static void a_process_that_dies_is_blamed_on_the_guilty_alone(void)
{
    static const struct {
        const char *mode;
        const char *start; /* of the sentence */
        const char *text;
    } cases[] = {
        {"crash,20", "tick 20: planner exec:", "at my wit's end"},
        {"crash,20", "tick 20: planner exec:", ": act: the process was killed by signal 6"},
        {"hang,20", "tick 20: planner exec:", "guilty is tiring"},
        {"resetdie,0", "tick 0: planner exec:", "not again"},
        {"forkdie,0", NULL, NULL}};
    struct jobs_scenario s;
    struct runner_stats stats;
    const char *command =
        "exec:python3 -S " SWERVE_SOURCE_ROOT "/tests/worker/bad_planners/moody.py ";
    char good[512];
    snprintf(good, sizeof good, "%sgood,0", command);
    targeted(&s);
    s.scenario.branch_count = 1; /* starting a process takes its time */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char bad[512];
        snprintf(bad, sizeof bad, "%s%s", command, cases[i].mode);
        struct job_run *job = among_neighbours(bad, good, &s, 3, &stats);
        EXPECT(stats.planner_restarts > 0);
        if (cases[i].text != NULL) {
            expect_faults(job, "xx", cases[i].text);
            const char *said = job->results[0].error;
            EXPECT(strncmp(said, cases[i].start, strlen(cases[i].start)) == 0);
            EXPECT(strstr(said, "stderr ends") == NULL); /* all of it follows */
        } else {
            /* It only dies when it is asked to fork, and alone nobody asks. */
            struct job_run *solo = jobs_run_one(&world_dummy_ops, good, &s, 4, 1, true, NULL);
            EXPECT_CONTAINS(job->results[0].error, DEATH);
            EXPECT_CONTAINS(job->results[0].error, "split personality");
            forget_deaths(job);
            jobs_expect_same(job, solo);
            job_run_destroy(solo);
        }
        job_run_destroy(job);
    }
    jobs_scenario_finish(&s);
}

/* Goal: a planner that dies once and drives well when it is asked again leaves a sign, and one that
 * raises fails its rollout, whatever it raises. */
static void a_first_death_is_kept(void)
{
    static const struct {
        const char *mode;
        const char *text; /* NULL: no death, but a failure */
    } cases[] = {{"exit", "exited with status 0"},
                 {"segv", "was killed by signal 11"},
                 {"hang", "no answer within"},
                 {"interrupt", NULL}};
    char file[64];
    char spec[400];
    struct jobs_scenario s;
    jobs_scenario_init(&s, "once", HORIZON);
    jobs_clear_lane(&s);
    jobs_prepared(&s);
    snprintf(file, sizeof file, "/tmp/swerve-once-%d", (int)getpid());
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct runner_stats stats;
        snprintf(spec, sizeof spec,
                 "exec:python3 -S " SWERVE_SOURCE_ROOT "/tests/worker/bad_planners/once.py %s %s",
                 cases[i].mode, file);
        struct job_run *job = jobs_run_one(&world_dummy_ops, spec, &s, 4, 1, false, &stats);
        const struct rollout_result *result = &job->results[0];
        EXPECT_INT(unlink(file), 0);
        EXPECT_INT(job->failure, STATUS_OK);
        EXPECT_INT(result->verdict == VERDICT_PLANNER_ERROR, cases[i].text == NULL);
        EXPECT_INT(stats.planner_restarts, cases[i].text != NULL);
        EXPECT_CONTAINS(result->error, cases[i].text != NULL ? cases[i].text : "KeyboardInterrupt");
        EXPECT_CONTAINS(result->error, "tick 5: ");
        EXPECT_CONTAINS(result->error, "my last words");
        if (cases[i].text != NULL) {
            EXPECT_CONTAINS(result->error, "tick 5" DEATH ": planner exec:");
        }
        job_run_destroy(job);
    }
    jobs_scenario_finish(&s);
}

/* ---- sick worlds ---- */

/* The dummy world, but with a fault planted at one tick once it snows. */
enum fault { FAULT_NAN, FAULT_TELEPORT, FAULT_JUMP, FAULT_FROZEN, FAULT_AGENT_NAN, FAULT_COUNT };

static enum fault planted;
enum { FAULT_TICK = 30 };

static void sick_step(struct world *world, const struct action *actions, const uint8_t *active)
{
    world_dummy_ops.step(world, actions, active);
    for (uint32_t i = 0; i < world->slot_count; i++) {
        if (!active[i]) {
            continue;
        }
        struct scene *scene = (struct scene *)(uintptr_t)world_dummy_ops.slot_scene(world, i);
        if (scene->tick != FAULT_TICK || scene->conditions.weather != WEATHER_SNOW) {
            continue;
        }
        switch (planted) {
        case FAULT_NAN:
            scene->ego.yaw_rate_rps = (double)NAN;
            break;
        case FAULT_AGENT_NAN:
            scene->agents[2].pose.x_m = (double)INFINITY;
            break;
        case FAULT_TELEPORT:
            scene->agents[1].pose.y_m += 13.0;
            break;
        case FAULT_JUMP:
            scene->ego.speed_mps += 4.0;
            break;
        default:
            scene->tick--;
            break;
        }
    }
}

static void sick_worlds_are_flagged(void)
{
    static const enum health_check expected[FAULT_COUNT] = {
        HEALTH_NOT_FINITE, HEALTH_TELEPORT, HEALTH_KINEMATICS, HEALTH_FROZEN, HEALTH_NOT_FINITE};
    static const int32_t agents[FAULT_COUNT] = {-1, 1, -1, -1, 2};
    struct world_ops sick = world_dummy_ops;
    struct jobs_scenario s;
    sick.step = sick_step;
    jobs_scenario_init(&s, "sick", HORIZON);
    jobs_clear_lane(&s);
    jobs_branch(&s, 10, INTERVENE_CONDITIONS)->conditions =
        (struct conditions){WEATHER_SNOW, LIGHT_DAY, 0.4, 80.0};
    jobs_branch(&s, 10, INTERVENE_EGO_BRAKE)->decel_mps2 = 3.0;
    jobs_branch(&s, 40, INTERVENE_CONDITIONS)->conditions =
        (struct conditions){WEATHER_SNOW, LIGHT_DAY, 0.4, 80.0};
    jobs_prepared(&s);
    for (int fault = 0; fault < FAULT_COUNT; fault++) {
        planted = (enum fault)fault;
        struct job_run *solo = jobs_run_one(&sick, GOOD, &s, 0, 1, true, NULL);
        struct job_run *job = jobs_run_one(&sick, GOOD, &s, 0, 2, false, NULL);
        jobs_expect_same(job, solo);
        EXPECT_INT(job->results[1].verdict, VERDICT_FLAGGED);
        EXPECT_INT(job->results[1].health.check, expected[fault]);
        EXPECT_INT(job->results[1].health.agent, agents[fault]);
        EXPECT_CONTAINS(job->results[1].error, health_check_names[expected[fault]]);
        for (uint32_t i = 0; i < job->rollout_count; i++) {
            EXPECT_INT(job->results[i].verdict == VERDICT_FLAGGED, i == 1);
        }
        job_run_destroy(job);
        job_run_destroy(solo);
    }
    /* A main line that is flagged takes with it the branches that would have forked later. */
    s.scenario.conditions.weather = WEATHER_SNOW;
    planted = FAULT_TELEPORT;
    struct job_run *job = jobs_run_one(&sick, GOOD, &s, 0, 2, false, NULL);
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        EXPECT_INT(job->results[i].verdict, VERDICT_FLAGGED);
    }
    job_run_destroy(job);
    jobs_scenario_finish(&s);
}

/* ---- latency and dropouts as they are recorded ---- */

static const struct trace_tick *tick_of(const struct rollout_result *result, uint32_t tick)
{
    size_t stride = sizeof(struct trace_tick) + JOBS_AGENTS * sizeof(struct trace_agent);
    EXPECT(tick >= result->trace.first_tick &&
           tick - result->trace.first_tick < result->trace.tick_count);
    const uint8_t *at = result->trace.data + (tick - result->trace.first_tick) * stride;
    const struct trace_tick *out = (const struct trace_tick *)(const void *)at;
    EXPECT_INT(out->tick, tick);
    return out;
}

/* The planner answers 0.01 x tick: with 120 ms of latency the answer of tick t drives at t + 2, and
 * the one before the latency began is held until then. */
static void latency_delays_the_action(void)
{
    struct jobs_scenario s;
    jobs_scenario_init(&s, "late", 40);
    jobs_clear_lane(&s);
    struct intervention *what = jobs_branch(&s, 10, INTERVENE_STACK_LATENCY);
    what->latency_ms = 120.0;
    what->duration_s = 1.0;
    jobs_branch(&s, 0, INTERVENE_STACK_LATENCY)->latency_ms = 100.0;
    jobs_prepared(&s);
    struct job_run *job = jobs_run_one(&world_dummy_ops, "plugin:" PLUGIN_MOODY "?echo,0,none", &s,
                                       0, 2, false, NULL);
    for (uint32_t t = 0; t < 39; t++) {
        EXPECT_NEAR(tick_of(&job->results[0], t)->action_accel_mps2, 0.01 * t, 0);
        EXPECT_NEAR(tick_of(&job->results[2], t)->action_accel_mps2, t == 0 ? 0.0 : 0.01 * (t - 1),
                    0);
        if (t >= 10) {
            double answered = t < 12 ? 9 : t < 20 ? t - 2 : t;
            EXPECT_NEAR(tick_of(&job->results[1], t)->action_accel_mps2, 0.01 * answered, 0);
        }
    }
    job_run_destroy(job);
    jobs_scenario_finish(&s);
}

/* The planner answers the age of its lidar frame; the digest is of what it was shown. */
static void a_dark_lidar_keeps_its_last_frame(void)
{
    struct jobs_scenario s;
    jobs_scenario_init(&s, "dark", 40);
    jobs_clear_lane(&s);
    struct intervention *what = jobs_branch(&s, 10, INTERVENE_STACK_DROPOUT);
    what->sensors = SENSOR_LIDAR;
    what->duration_s = 0.5;
    what = jobs_branch(&s, 0, INTERVENE_STACK_DROPOUT);
    what->sensors = SENSOR_LIDAR;
    what->duration_s = 0.3;
    jobs_branch(&s, 10, INTERVENE_STACK_DROPOUT)->sensors = SENSOR_CAMERA_LEFT;
    jobs_prepared(&s);
    struct job_run *job =
        jobs_run_one(&world_dummy_ops, "plugin:" PLUGIN_MOODY "?age,0,none", &s, 0, 2, false, NULL);
    for (uint32_t t = 10; t < 39; t++) {
        const struct trace_tick *dark = tick_of(&job->results[1], t);
        uint64_t last = tick_of(&job->results[0], 9)->observation_digest;
        bool is_dark = t < 15;
        EXPECT_INT(dark->sensors_dark, is_dark ? SENSOR_LIDAR : 0);
        EXPECT_NEAR(dark->action_accel_mps2, is_dark ? 0.1 * (t - 9) : 0.0, 1e-9);
        EXPECT((dark->observation_digest == last) == is_dark);
        EXPECT_NEAR(tick_of(&job->results[3], t)->action_accel_mps2, 0.0, 0);
    }
    for (uint32_t t = 0; t < 5; t++) {
        /* Nothing was ever seen: an empty frame, older than the start. */
        const struct trace_tick *dark = tick_of(&job->results[2], t);
        EXPECT_NEAR(dark->action_accel_mps2, t < 3 ? 0.1 * t + 1e-9 : 0.0, 1e-12);
        EXPECT((dark->observation_digest == tick_of(&job->results[2], 0)->observation_digest) ==
               (t < 3));
    }
    job_run_destroy(job);
    jobs_scenario_finish(&s);
}

static struct job_run *film(const struct jobs_scenario *s, uint64_t room_bytes)
{
    struct error error;
    struct job_run *job = NULL;
    const struct job_lease lease = {.epoch = 1};
    struct runner *runner = jobs_runner(&world_object_ops, GOOD, 4, false);
    EXPECT_OK(job_run_create(&lease, s->prepared, &job, &error), error);
    job->filmed = true;
    job->film_room_bytes = room_bytes;
    EXPECT_OK(runner_add(runner, job, ROLLOUT_ALL, &error), error);
    jobs_run(runner, &job, 1);
    runner_destroy(runner);
    return job;
}

/* A job that outgrows its recording is driven no further: its rollouts end at the tick that does
 * not fit, and say how many did. Its reels never take more than there is room. */
static void a_film_ends_with_its_room(void)
{
    const uint64_t room_bytes = LIMIT_ARTIFACT_BYTES;
    struct jobs_scenario s;
    char fits[64];
    jobs_scenario_init(&s, "film", HORIZON);
    jobs_branch(&s, 4, INTERVENE_EGO_BRAKE)->decel_mps2 = 1.0;
    jobs_prepared(&s);
    struct job_run *whole = film(&s, room_bytes);
    uint64_t bytes = 0;
    uint32_t ticks = 0;
    for (uint32_t i = 0; i < 2; i++) {
        const struct trace *trace = &whole->results[i].trace;
        EXPECT(whole->results[i].verdict != VERDICT_PLANNER_ERROR);
        EXPECT_INT(trace->reel.count, trace->tick_count);
        bytes += trace->reel.bytes + trace->reel.count * sizeof(uint32_t);
        ticks += trace->tick_count;
    }
    EXPECT_INT(whole->film_room_bytes, room_bytes - bytes);
    EXPECT_INT(whole->film_ticks, ticks);
    job_run_destroy(film(&s, bytes)); /* exactly */
    struct job_run *cut = film(&s, bytes / 2);
    EXPECT(cut->film_ticks > 0 && cut->film_ticks < ticks);
    snprintf(fits, sizeof fits, "%u ticks of its rollouts fit", (unsigned)cut->film_ticks);
    bytes = bytes / 2 - cut->film_room_bytes;
    for (uint32_t i = 0; i < 2; i++) {
        const struct trace *trace = &cut->results[i].trace;
        EXPECT_INT(cut->results[i].verdict, VERDICT_PLANNER_ERROR);
        EXPECT_CONTAINS(cut->results[i].error, fits);
        EXPECT(cut->results[i].ticks < whole->results[i].ticks);
        bytes -= trace->reel.bytes + trace->reel.count * sizeof(uint32_t);
    }
    EXPECT_INT(bytes, 0);
    job_run_destroy(cut);
    job_run_destroy(whole);
    jobs_scenario_finish(&s);
}

/* "overlap": the same of runners whose slots are in two halves. */
int main(int argc, char **argv)
{
    jobs_overlap = argc > 1 && strcmp(argv[1], "overlap") == 0;
    return TEST_RUN(TEST(forks_equal_solo), TEST(a_wide_fan_simulates_its_past_once),
                    TEST(jobs_end_one_after_the_other), TEST(a_higher_class_has_its_slot_at_once),
                    TEST(a_wide_fan_of_a_higher_class_has_sessions),
                    TEST(a_full_parking_of_a_lower_class_is_let_by),
                    TEST(the_world_hears_which_branches_go_on_next), TEST(neighbours_do_not_matter),
                    TEST(branches_of_a_main_line_that_ends_early),
                    TEST(a_cancelled_job_leaves_the_others_alone),
                    TEST(a_world_that_refuses_fails_the_job), TEST(a_nan_ends_its_rollout_alone),
                    TEST(an_instance_that_dies_is_blamed_on_the_guilty_alone),
                    TEST(a_planner_that_cannot_fork_runs_the_prefix_again),
                    TEST(a_process_that_dies_is_blamed_on_the_guilty_alone),
                    TEST(a_first_death_is_kept), TEST(sick_worlds_are_flagged),
                    TEST(latency_delays_the_action), TEST(a_dark_lidar_keeps_its_last_frame),
                    TEST(a_film_ends_with_its_room));
}
