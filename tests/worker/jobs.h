/*
 * Jobs in memory for the tests of the loop: scenarios on a three-lane road with branches, run
 * through a runner, and the comparison "the same rollout to the last bit".
 */
#ifndef SWERVE_TESTS_WORKER_JOBS_H
#define SWERVE_TESTS_WORKER_JOBS_H

#include "base/arena.h"
#include "base/clock.h"
#include "engine/worlds/world.h"
#include "tests/engine/maps.h"
#include "tests/harness.h"
#include "worker/run/runner.h"

#include <stdlib.h>

enum { JOBS_BRANCHES_MAX = LIMIT_BRANCHES, JOBS_AGENTS = 5 };

struct jobs_scenario {
    struct arena arena;
    struct scenario scenario;
    struct prepared *prepared;
};

/* Ego on the middle of three lanes; a slower car ahead, one beside, one behind, a post off the
 * road and a hidden box. Branches are added by the test, then jobs_prepared(). */
static inline void jobs_scenario_init(struct jobs_scenario *s, const char *id,
                                      uint32_t horizon_ticks)
{
    memset(s, 0, sizeof *s);
    arena_init(&s->arena, (size_t)64 << 20);
    struct scenario *scenario = &s->scenario;
    maps_motorway(&s->arena, &scenario->map, 3, 1000);
    maps_scenario(&s->arena, scenario, (struct pose){50, 3.5, 0}, 15, 1, JOBS_AGENTS);
    snprintf(scenario->id, sizeof scenario->id, "%s", id);
    maps_agent(scenario, 0, AGENT_CAR, BEHAVIOUR_IDM, (struct pose){95, 3.5, 0}, 12);
    maps_agent(scenario, 1, AGENT_TRUCK, BEHAVIOUR_IDM, (struct pose){60, 7.0, 0}, 14);
    maps_agent(scenario, 2, AGENT_CAR, BEHAVIOUR_IDM, (struct pose){30, 0.0, 0}, 18);
    maps_agent(scenario, 3, AGENT_OBJECT, BEHAVIOUR_STATIC, (struct pose){160, -8, 0}, 0);
    maps_agent(scenario, 4, AGENT_OBJECT, BEHAVIOUR_STATIC, (struct pose){300, 3.5, 0}, 0);
    scenario->agents[4].hidden = true;
    for (uint32_t i = 0; i < 3; i++) {
        /* So that the replay world runs it too. */
        struct trajectory *log = &scenario->agents[i].trajectory;
        struct pose from = scenario->agents[i].pose;
        double speed_mps = scenario->agents[i].speed_mps;
        log->point_count = 2;
        log->points = arena_alloc(&s->arena, 2, sizeof *log->points);
        log->points[0] = (struct trajectory_point){0, from.x_m, from.y_m, 0, speed_mps};
        log->points[1] =
            (struct trajectory_point){30, from.x_m + 30 * speed_mps, from.y_m, 0, speed_mps};
        scenario->agents[i].behaviour = BEHAVIOUR_REPLAY;
    }
    scenario->horizon_ticks = horizon_ticks;
    scenario->criteria = criteria_default();
    for (int i = 0; i < SLICE_KIND_COUNT; i++) {
        snprintf(scenario->slices.value[i], LIMIT_ID_BYTES, "some");
    }
    scenario->branches = arena_alloc(&s->arena, JOBS_BRANCHES_MAX, sizeof *scenario->branches);
    EXPECT(scenario->branches != NULL);
}

/* Moves the car ahead aside: in the dummy world, where agents stand, it would be a wall. */
static inline void jobs_clear_lane(struct jobs_scenario *s)
{
    s->scenario.agents[0].pose.y_m = 0.0;
    s->scenario.agents[0].trajectory.points[0].y_m = 0.0;
    s->scenario.agents[0].trajectory.points[1].y_m = 0.0;
}

/* A branch of one intervention at its fork; the caller fills the numbers. */
static inline struct intervention *jobs_branch(struct jobs_scenario *s, uint32_t at_tick,
                                               enum intervention_kind kind)
{
    struct scenario *scenario = &s->scenario;
    EXPECT(scenario->branch_count < JOBS_BRANCHES_MAX);
    struct branch *branch = &scenario->branches[scenario->branch_count];
    snprintf(branch->id, sizeof branch->id, "b%u", scenario->branch_count++);
    branch->at_tick = at_tick;
    branch->intervention_count = 1;
    branch->interventions = arena_alloc(&s->arena, 2, sizeof *branch->interventions);
    EXPECT(branch->interventions != NULL);
    branch->interventions[0] = (struct intervention){.kind = kind, .tick = at_tick, .agent = -1};
    return &branch->interventions[0];
}

/* .. followed by a second one later. */
static inline struct intervention *jobs_then(struct jobs_scenario *s, uint32_t tick,
                                             enum intervention_kind kind)
{
    struct branch *branch = &s->scenario.branches[s->scenario.branch_count - 1];
    branch->interventions[1] = (struct intervention){.kind = kind, .tick = tick, .agent = -1};
    branch->intervention_count = 2;
    return &branch->interventions[1];
}

static inline void jobs_prepared(struct jobs_scenario *s)
{
    struct error error;
    EXPECT_OK(prepared_create(&s->scenario, &s->prepared, &error), error);
}

static inline void jobs_scenario_finish(struct jobs_scenario *s)
{
    prepared_unref(s->prepared);
    arena_finish(&s->arena);
}

static bool jobs_overlap; /* runners of the program step one half while the other is asked */

static inline struct runner *jobs_runner(const struct world_ops *world, const char *planner,
                                         uint32_t slots, bool solo)
{
    struct runner *runner = NULL;
    struct error error;
    const struct runner_config config = {
        .world = world,
        .planner = planner,
        .planner_config = {.tick_deadline_ms = 400},
        .slot_count = slots,
        .always_solo = solo,
        .overlap = jobs_overlap,
        .clock = clock_system(),
    };
    EXPECT_OK(runner_create(&config, &runner, &error), error);
    return runner;
}

static inline void jobs_add_class(struct runner *runner, const struct jobs_scenario *s, int64_t id,
                                  uint64_t seed, enum suite_class of_class)
{
    struct error error;
    struct job_run *job = NULL;
    const struct job_lease lease = {
        .job_id = id, .epoch = 1, .of_class = of_class, .spec = {.seed = seed}};
    EXPECT_OK(job_run_create(&lease, s->prepared, &job, &error), error);
    EXPECT_OK(runner_add(runner, job, ROLLOUT_ALL, &error), error);
}

static inline void jobs_add(struct runner *runner, const struct jobs_scenario *s, int64_t id,
                            uint64_t seed)
{
    jobs_add_class(runner, s, id, seed, SUITE_CLASS_SAME);
}

/* Ticks until nothing is left; out[id] is the job of that id, count of them. */
static inline void jobs_run(struct runner *runner, struct job_run **out, uint32_t count)
{
    uint32_t ticks = 0;
    for (uint32_t i = 0; i < count; i++) {
        out[i] = NULL;
    }
    while (runner_busy(runner)) {
        EXPECT(ticks++ < 200000);
        runner_tick(runner);
        struct job_run *job;
        while ((job = runner_take(runner)) != NULL) {
            EXPECT(job->lease.job_id < count && out[job->lease.job_id] == NULL);
            out[job->lease.job_id] = job;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        EXPECT(out[i] != NULL);
    }
}

/* One job alone in a runner of its own. */
static inline struct job_run *jobs_run_one(const struct world_ops *world, const char *planner,
                                           const struct jobs_scenario *s, uint64_t seed,
                                           uint32_t slots, bool solo, struct runner_stats *stats)
{
    struct job_run *job;
    struct runner *runner = jobs_runner(world, planner, slots, solo);
    jobs_add(runner, s, 0, seed);
    jobs_run(runner, &job, 1);
    if (stats != NULL) {
        *stats = *runner_stats(runner);
    }
    runner_destroy(runner);
    return job;
}

/* Bitwise, so that NAN equals NAN. */
static inline bool jobs_metrics_equal(const struct metrics *a, const struct metrics *b)
{
    return memcmp(a, b, offsetof(struct metrics, intervention_count)) == 0 &&
           a->intervention_count == b->intervention_count &&
           a->collision_count == b->collision_count && a->collision_tick == b->collision_tick &&
           a->collision_agent == b->collision_agent && a->collision_kind == b->collision_kind &&
           a->at_fault == b->at_fault && a->goal_reached == b->goal_reached;
}

static inline void jobs_expect_same_result(const struct rollout_result *a,
                                           const struct rollout_result *b, uint32_t index)
{
    if (!a->finished || !b->finished || strcmp(a->trace_hash, b->trace_hash) != 0 ||
        a->ticks != b->ticks || a->verdict != b->verdict || a->reasons != b->reasons ||
        !jobs_metrics_equal(&a->metrics, &b->metrics) || strcmp(a->error, b->error) != 0) {
        TEST_FAIL("rollout %u differs: ticks %u %u, verdict %d %d, hash %.12s %.12s, \"%s\" \"%s\"",
                  index, a->ticks, b->ticks, (int)a->verdict, (int)b->verdict, a->trace_hash,
                  b->trace_hash, a->error, b->error);
    }
}

static inline void jobs_expect_same(const struct job_run *a, const struct job_run *b)
{
    EXPECT_INT(a->failure, STATUS_OK);
    EXPECT_INT(b->failure, STATUS_OK);
    EXPECT_INT(a->rollout_count, b->rollout_count);
    for (uint32_t i = 0; i < a->rollout_count; i++) {
        jobs_expect_same_result(&a->results[i], &b->results[i], i);
    }
}

/* Ticks that the job's rollouts did not share. */
static inline int64_t jobs_own_ticks(const struct job_run *job)
{
    int64_t own = 0;
    for (uint32_t i = 0; i < job->rollout_count; i++) {
        own += (int64_t)job->results[i].ticks - job->results[i].prefix_ticks;
    }
    return own;
}

#endif
