/*
 * Estimates of the time that a suite still takes.
 *
 * Goal: the estimate is exact where paces are steady, never climbs while work goes on as it did,
 * counts each tier by its own pace, takes an earlier suite's where there is none yet, and says when
 * it does not know; the store feeds it with what it counts. Method: parts made up and worked off
 * step by step; a store on a clock of the test's own, whose jobs of two tiers take known times.
 */
#include "base/units.h"
#include "schemas/job_context.h"
#include "store/api/progress.h"
#include "store/api/store.h"
#include "tests/claim_ids.h"
#include "tests/harness.h"
#include "tests/store/http/http_support.h"
#include "tests/store/manual_clock.h"

#include <stdlib.h>

static struct error error;

static void estimates_are_exact_and_never_climb(void)
{
    enum { TICKS = 50, OBJECT_JOBS = 40, TEACHER_JOBS = 10 };
    struct progress_part parts[] = {
        {.pool = 1, .tier = TIER_OBJECT, .jobs_open = OBJECT_JOBS, .ticks = OBJECT_JOBS * TICKS},
        {.pool = 1, .tier = TIER_TEACHER, .jobs_open = TEACHER_JOBS, .ticks = TEACHER_JOBS * TICKS},
    };
    parts[0].ticks_open = parts[0].ticks;
    parts[1].ticks_open = parts[1].ticks;
    EXPECT_INT(progress_eta_ms(parts, 2), -1);
    parts[1].other_ticks = 10; /* a teacher's second a tick, from another suite */
    parts[1].other_wall_ns = 10 * NS_PER_S;
    EXPECT_INT(progress_eta_ms(parts, 2), -1);
    int64_t last_ms = INT64_MAX;
    for (int job = 0; job < OBJECT_JOBS + TEACHER_JOBS; job++) {
        struct progress_part *part = &parts[job >= OBJECT_JOBS];
        part->jobs_open--;
        part->ticks_open -= TICKS;
        part->wall_ns += TICKS * (job < OBJECT_JOBS ? NS_PER_MS : NS_PER_S);
        int64_t eta_ms = progress_eta_ms(parts, 2);
        int64_t true_ms = (OBJECT_JOBS > job + 1 ? OBJECT_JOBS - job - 1 : 0) * TICKS +
                          parts[1].ticks_open * 1000;
        EXPECT_INT(eta_ms, true_ms);
        EXPECT(eta_ms < last_ms);
        last_ms = eta_ms;
    }
    EXPECT_INT(last_ms, 0);
}

static void pools_run_side_by_side(void)
{
    struct progress_part parts[] = {
        {.pool = 1, .jobs_open = 1, .ticks = 20, .ticks_open = 10, .wall_ns = 10 * NS_PER_S},
        {.pool = 2, .jobs_open = 1, .ticks = 20, .ticks_open = 10, .wall_ns = 30 * NS_PER_S},
        {.pool = 1, .jobs_open = 1, .ticks = 20, .ticks_open = 10, .wall_ns = 15 * NS_PER_S},
    };
    EXPECT_INT(progress_eta_ms(parts, 3), 30000);
    parts[1].jobs_open = 0;
    parts[1].ticks_open = 0;
    EXPECT_INT(progress_eta_ms(parts, 3), 25000);
    parts[0].ticks = 0; /* its scenarios do not say how long they are */
    parts[0].ticks_open = 0;
    EXPECT_INT(progress_eta_ms(parts, 3), -1);
    EXPECT_INT(progress_eta_ms(parts, 0), 0);
    char text[PROGRESS_TEXT_BYTES];
    EXPECT_TEXT(progress_eta_text(-1, text), "?");
    EXPECT_TEXT(progress_eta_text(40001, text), "41 s");
    EXPECT_TEXT(progress_eta_text(600000, text), "10 min");
    EXPECT_TEXT(progress_eta_text(36000000, text), "10.0 h");
}

/* ---- in a store ---- */

static struct manual_clock manual;

static void submit_of(struct store *store, const char *suite, const char *planner, enum tier tier,
                      int first, int count)
{
    static struct job_spec specs[64];
    static struct store_submit_result results[64];
    static const char body[] =
        "{\"branches\":[{\"at_tick\":40},{\"at_tick\":90},7],\"horizon_s\":8}";
    char hash[SHA256_HEX_BYTES];
    sha256_hex(body, strlen(body), hash);
    EXPECT_OK(store->ops->scenario_put(store, hash, body, strlen(body), &error), error);
    memset(specs, 0, sizeof specs);
    for (int i = 0; i < count; i++) {
        struct job_spec *spec = &specs[i];
        snprintf(spec->key, sizeof spec->key, "%s-%d", suite, first + i);
        strcpy(spec->scenario_id, "s");
        memcpy(spec->scenario_hash, hash, sizeof hash);
        strcpy(spec->planner, planner);
        strcpy(spec->pool, "bulk");
        strcpy(spec->backend, "cpu");
        spec->tier = tier;
        spec->rollout_count = 1;
        spec->attempts_max = 3;
    }
    EXPECT_OK(store->ops->submit(store, suite, 1, specs, (uint32_t)count, results, &error), error);
}

static void submit_jobs(struct store *store, const char *suite, enum tier tier, int first,
                        int count)
{
    submit_of(store, suite, tier == TIER_TEACHER ? "b" : "a", tier, first, count);
}

/* Claims `max` jobs, lets the time pass, and ends them; how many there were. */
static uint32_t work(struct store *store, uint32_t max, int64_t took_ns)
{
    static struct job_lease leases[64];
    static struct outcome outcomes[64];
    static struct job_completion completions[64];
    static struct store_completion_result results[64];
    static int64_t claim_id = 1;
    struct store_worker worker = {.worker_id = "w", .pool = "bulk", .device = "cpu"};
    uint32_t count = 0;
    int64_t ttl_ms;
    EXPECT_OK(store->ops->claim(store, &worker, &claim_id, max, 0, leases, &count, &ttl_ms, &error),
              error);
    manual_clock_advance(&manual, took_ns);
    for (uint32_t i = 0; i < count; i++) {
        memset(&completions[i], 0, sizeof completions[i]);
        memset(&outcomes[i], 0, sizeof outcomes[i]);
        completions[i].job_id = leases[i].job_id;
        completions[i].epoch = leases[i].epoch;
        strcpy(completions[i].worker_id, "w");
        completions[i].outcome_count = 1;
        completions[i].outcomes = &outcomes[i];
        job_context_copy(&leases[i].spec, &outcomes[i]);
        outcomes[i].metrics.collision_tick = UINT32_MAX;
    }
    EXPECT_OK(store->ops->complete(store, completions, count, results, &error), error);
    for (uint32_t i = 0; i < count; i++) {
        EXPECT_INT(results[i].status, STATUS_OK);
    }
    return count;
}

static struct store_suite_status status_of(struct store *store, const char *suite)
{
    struct store_suite_status status;
    EXPECT_OK(store->ops->suite_status(store, suite, &status, &error), error);
    return status;
}

static void a_store_counts_what_it_takes(void)
{
    enum { JOB_TICKS = 80 + 40 }; /* a branch at tick 40 of 80, one that is never reached */
    char path[160];
    struct store *store = NULL;
    const struct store_config config = {.clock = &manual.clock};
    manual_clock_init(&manual);
    snprintf(path, sizeof path, "%s/p.db", support_directory());
    EXPECT_OK(store_sqlite_open(path, &config, &store, &error), error);
    submit_jobs(store, "first", TIER_OBJECT, 0, 20);
    struct store_suite_status status = status_of(store, "first");
    EXPECT_INT(status.submitted_s, MANUAL_CLOCK_WALL_S);
    EXPECT_INT(status.planner_count, 1);
    EXPECT_TEXT(status.planner, "a");
    EXPECT_INT(status.ticks_planned, 20 * JOB_TICKS);
    EXPECT_INT(status.ticks_ended, 0);
    EXPECT_INT(status.eta_ms, -1);
    for (int round = 1; round <= 4; round++) {
        EXPECT_INT(work(store, 5, 10 * NS_PER_S), 5);
        manual_clock_advance(&manual, 1000 * NS_PER_S); /* in which nothing runs */
        status = status_of(store, "first");
        EXPECT_INT(status.ticks_ended, round * 5 * JOB_TICKS);
        EXPECT_INT(status.eta_ms, (4 - round) * 10000);
    }
    /* Another suite begins with what the first one has shown, and knows nothing of a teacher, nor
     * of a planner that has not driven yet. */
    submit_of(store, "slow", "egodriver:far", TIER_OBJECT, 0, 10);
    EXPECT_INT(status_of(store, "slow").eta_ms, -1);
    int64_t let_go = 0;
    EXPECT_OK(store->ops->cancel(store, "slow", &let_go, &error), error);
    submit_jobs(store, "second", TIER_OBJECT, 0, 10);
    EXPECT_INT(status_of(store, "second").eta_ms, 20000);
    submit_jobs(store, "second", TIER_TEACHER, 10, 2);
    status = status_of(store, "second");
    EXPECT_INT(status.eta_ms, -1);
    EXPECT_INT(status.planner_count, 2);
    int64_t cancelled = 0;
    EXPECT_OK(store->ops->cancel(store, "second", &cancelled, &error), error);
    EXPECT_INT(cancelled, 12);
    status = status_of(store, "second");
    EXPECT_INT(status.ticks_planned, 12 * JOB_TICKS);
    EXPECT_INT(status.ticks_ended, 12 * JOB_TICKS);
    EXPECT_INT(status.eta_ms, 0);
    store->ops->close(store);
}

/* Goal: one long job is no blank: what its worker says it has driven moves the bar, and gives an
 * estimate before anything has ended. */
static void jobs_that_run_count_by_their_ticks(void)
{
    enum { JOB_TICKS = 80 + 40, JOBS = 3 };
    static struct job_lease leases[JOBS];
    struct store_worker worker = {.worker_id = "w", .pool = "bulk", .device = "cpu"};
    struct store_progress progress[JOBS];
    int64_t cancelled[JOBS];
    uint32_t cancelled_count = 0;
    uint32_t count = 0;
    int64_t claim_id = 1;
    int64_t ttl_ms = 0;
    char path[160];
    char text[PROGRESS_BAR_BYTES];
    struct store *store = NULL;
    const struct store_config config = {.clock = &manual.clock};
    manual_clock_init(&manual);
    snprintf(path, sizeof path, "%s/r.db", support_directory());
    EXPECT_OK(store_sqlite_open(path, &config, &store, &error), error);
    submit_jobs(store, "s", TIER_STUDENT, 0, JOBS);
    EXPECT_OK(
        store->ops->claim(store, &worker, &claim_id, JOBS, 0, leases, &count, &ttl_ms, &error),
        error);
    EXPECT_INT(count, JOBS);
    struct store_suite_status status = status_of(store, "s");
    EXPECT_INT(status.eta_ms, -1);
    EXPECT_TEXT(progress_bar_text(&status, text), "[....................]   0% of ticks");
    manual_clock_advance(&manual, 8 * NS_PER_S);
    for (int i = 0; i < JOBS; i++) {
        progress[i] = (struct store_progress){.job_id = leases[i].job_id,
                                              .epoch = leases[i].epoch,
                                              .device_ns = 2 * NS_PER_S,
                                              .ticks = i < 2 ? 20 : 1000000};
    }
    EXPECT_OK(store->ops->heartbeat(store, &worker, progress, JOBS, cancelled, &cancelled_count,
                                    &ttl_ms, &error),
              error);
    status = status_of(store, "s");
    EXPECT_INT(status.ticks_ended, 0);
    EXPECT_INT(status.ticks_running, 20 + 20 + JOB_TICKS); /* no more than is planned */
    EXPECT_INT(status.eta_ms, 200 * 8000 / 160);           /* 8 s for 160 ticks */
    EXPECT_TEXT(progress_bar_text(&status, text), "[########............]  44% of ticks");
    progress[0].ticks = 10; /* goes back no more than a cost does */
    EXPECT_OK(store->ops->heartbeat(store, &worker, progress, JOBS, cancelled, &cancelled_count,
                                    &ttl_ms, &error),
              error);
    EXPECT_INT(status_of(store, "s").ticks_running, 20 + 20 + JOB_TICKS);
    progress[0].ticks = -1;
    EXPECT_INT(store->ops->heartbeat(store, &worker, progress, JOBS, cancelled, &cancelled_count,
                                     &ttl_ms, &error),
               STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "ticks: expected 0 to");
    /* Another attempt begins at its start. */
    EXPECT_OK(store->ops->worker_gone(store, "w", &error), error);
    EXPECT_INT(status_of(store, "s").ticks_running, 0);
    claim_id = 2;
    EXPECT_OK(
        store->ops->claim(store, &worker, &claim_id, JOBS, 0, leases, &count, &ttl_ms, &error),
        error);
    EXPECT_INT(status_of(store, "s").ticks_running, 0);
    store->ops->close(store);
}

int main(void)
{
    return TEST_RUN(TEST(estimates_are_exact_and_never_climb), TEST(pools_run_side_by_side),
                    TEST(a_store_counts_what_it_takes), TEST(jobs_that_run_count_by_their_ticks));
}
