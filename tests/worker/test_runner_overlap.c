/*
 * Goal: where slots are in two halves the planner is asked for one while the world steps the other,
 * and who was stepped pays for it. (That nothing else changes is test_runner.c, which is run with
 * such runners, too.)
 * Method: a world whose step waits until the planner has answered; a world whose step takes a known
 * processor time.
 */
#include "tests/engine/world_dummy.h"
#include "tests/worker/jobs.h"

#include <stdatomic.h>
#include <time.h>

enum { HORIZON = 40, PATIENCE_MS = 300, BURNT_NS = 300000 };

static atomic_bool stepping, answered; /* the first is true within a step alone */
static int met;

static bool wait_for(const atomic_bool *what)
{
    const struct timespec a_while = {0, 1000000};
    for (int ms = 0; ms < PATIENCE_MS && !atomic_load(what); ms++) {
        nanosleep(&a_while, NULL);
    }
    return atomic_load(what);
}

/* Within the planner's call: a step has to go on. */
static void meet_step(void *context, uint32_t count, const struct swerve_observation *observations,
                      const struct swerve_action *actions)
{
    (void)context;
    (void)count;
    (void)observations;
    (void)actions;
    if (wait_for(&stepping)) {
        met++;
        atomic_store(&answered, true);
    }
}

static bool any(const struct world *world, const uint8_t *active)
{
    for (uint32_t i = 0; i < world->slot_count; i++) {
        if (active[i]) {
            return true;
        }
    }
    return false;
}

/* Goes on until an answer has met it, or for long. */
static void patient_step(struct world *world, const struct action *actions, const uint8_t *active)
{
    if (any(world, active)) {
        atomic_store(&stepping, true);
        wait_for(&answered);
        atomic_store(&stepping, false);
        atomic_store(&answered, false);
    }
    world_dummy_ops.step(world, actions, active);
}

static struct runner *open_runner(const struct world_ops *world, bool overlap, uint32_t slots,
                                  bool meets)
{
    struct runner *runner = NULL;
    struct error error;
    const struct runner_config config = {
        .world = world,
        .planner = "builtin:maintain",
        .planner_config = {.observed = meets ? meet_step : NULL},
        .slot_count = slots,
        .overlap = overlap,
        .clock = clock_system(),
    };
    EXPECT_OK(runner_create(&config, &runner, &error), error);
    return runner;
}

static void drive(const struct world_ops *world, bool overlap, uint32_t slots,
                  struct job_run **jobs, uint32_t count)
{
    struct jobs_scenario s;
    struct runner *runner = open_runner(world, overlap, slots, world->step == patient_step);
    jobs_scenario_init(&s, "halves", HORIZON);
    jobs_clear_lane(&s);
    jobs_prepared(&s);
    for (uint32_t i = 0; i < count; i++) {
        jobs_add(runner, &s, i, i);
    }
    jobs_run(runner, jobs, count);
    EXPECT_INT(runner_stats(runner)->ticks, HORIZON * (int64_t)count);
    runner_destroy(runner);
    jobs_scenario_finish(&s);
}

/* All answers but the first, before which nobody was driven. */
static void one_half_thinks_while_the_other_steps(void)
{
    struct world_ops world = world_dummy_ops;
    struct job_run *jobs[4];
    world.step = patient_step;
    drive(&world, true, 4, jobs, 4);
    for (uint32_t i = 0; i < COUNT_OF(jobs); i++) {
        EXPECT_INT(jobs[i]->results[0].ticks, HORIZON);
        job_run_destroy(jobs[i]);
    }
    EXPECT_INT(met, 2 * HORIZON - 1);
}

static void burning_step(struct world *world, const struct action *actions, const uint8_t *active)
{
    const struct clock *clock = clock_system();
    int64_t end_ns = clock_thread_cpu_ns(clock);
    for (uint32_t i = 0; i < world->slot_count; i++) {
        end_ns += active[i] ? BURNT_NS : 0;
    }
    while (clock_thread_cpu_ns(clock) < end_ns) {
    }
    world_dummy_ops.step(world, actions, active);
}

static void steps_are_paid_for(void)
{
    struct world_ops world = world_dummy_ops;
    world.step = burning_step;
    for (int overlap = 0; overlap < 2; overlap++) {
        struct job_run *jobs[4];
        int64_t sum_ns = 0;
        drive(&world, overlap != 0, 4, jobs, 4);
        for (uint32_t i = 0; i < COUNT_OF(jobs); i++) {
            sum_ns += jobs[i]->results[0].device_ns;
            EXPECT(jobs[i]->results[0].device_ns > HORIZON * (int64_t)BURNT_NS / 2);
            job_run_destroy(jobs[i]);
        }
        EXPECT(sum_ns >= 4 * HORIZON * (int64_t)BURNT_NS);
    }
}

/* With one slot there are no halves. */
static void one_slot_takes_all_turns(void)
{
    struct job_run *jobs[3];
    drive(&world_dummy_ops, true, 1, jobs, 3);
    for (uint32_t i = 0; i < COUNT_OF(jobs); i++) {
        job_run_destroy(jobs[i]);
    }
}

int main(void)
{
    return TEST_RUN(TEST(one_half_thinks_while_the_other_steps), TEST(steps_are_paid_for),
                    TEST(one_slot_takes_all_turns));
}
