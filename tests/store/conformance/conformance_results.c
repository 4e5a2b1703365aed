/*
 * The conformance suite's second half: what completions do, what they cost, what can be read. See
 * conformance.c for the method.
 */
#include "base/check.h"
#include "base/rng.h"
#include "base/sha256.h"
#include "tests/claim_ids.h"
#include "tests/store/conformance/conformance_kit.h"

#include <math.h>

/* ---- completing ---- */

static int64_t wall_now_ms(void)
{
    return clock_wall_ns(&manual.clock) / NS_PER_MS;
}

/* Goal: an outcome comes back as it went in, values that do not apply included. */
static void outcomes_come_back(void)
{
    static struct outcome sent[2];
    struct store_outcome_filter filter = {.limit = 10};
    uint32_t count = 0;
    char hash[SHA256_HEX_BYTES];

    open_store(true);
    make_specs("a", "k", 1);
    specs[0].rollout_count = 2;
    memset(specs[0].planner, 'q', sizeof specs[0].planner - 1);
    strcpy(specs[0].backend, "cuda:sm_90");
    memset(specs[0].scenario_id, 'v', sizeof specs[0].scenario_id - 1);
    strcpy(specs[0].model_hash, "m");
    specs[0].tier = TIER_STUDENT;
    specs[0].seed = UINT64_MAX;
    submit_made("a", 1, 1);
    EXPECT_INT(claim("w", 1), 1);
    EXPECT_OK(store->ops->artifact_put(store, "trace", 5, hash, &error), error);
    for (int i = 0; i < 2; i++) {
        fill_outcome(&sent[i], &specs[0], i == 0 ? VERDICT_FAIL : VERDICT_PLANNER_ERROR);
        strcpy(sent[i].suite_id, "a");
        strcpy(sent[i].branch_id, i == 0 ? "" : "swerve");
        sent[i].job_id = leases[0].job_id;
        sent[i].epoch = leases[0].epoch;
        sent[i].reasons = i == 0 ? REASON_COLLISION | REASON_TTC : 0;
        sent[i].prefix_ticks = i == 0 ? 0 : 40;
        memcpy(sent[i].artifact_hash, hash, sizeof hash);
        sha256_hex("t", 1, sent[i].trace_hash);
        strcpy(sent[i].slice[0], "rain");
        strcpy(sent[i].slice[5], "cut_in");
        sent[i].safety_critical = true;
        struct metrics *metrics = &sent[i].metrics;
        metrics->score = i == 0 ? 0 : 0.1 + 0.2; /* ego is at fault */
        metrics->min_ttc_s = (double)INFINITY;
        metrics->ttc = 1;
        metrics->accel_min_mps2 = -3.25e-300;
        metrics->collision_tick = i == 0 ? UINT32_MAX : 12;
        metrics->collision_agent = -1;
        metrics->collision_kind = COLLISION_FRONT;
        metrics->at_fault = true;
        metrics->collision_count = 1;
        metrics->jerk_max_mps3 = 17;
        metrics->lataccel_cost = 0.1 * (i + 1); /* of a log of the controls challenge */
        metrics->jerk_cost = i == 0 ? (double)NAN : 23.5;
        metrics->total_cost = i == 0 ? (double)NAN : 33.5;
        metrics->lane_keeping = i == 0 ? (double)NAN : 1.0;
        metrics->traffic_light = metrics->lane_keeping;
    }
    memset(sent[1].error, 'e', sizeof sent[1].error - 1);
    sent[1].mflop = INT64_C(123456789012345);
    sent[1].pages_used_percent = 97;
    sent[1].peak_mflops = 5000000;
    sent[1].health.measured_ticks = 81; /* the other's world has no measures */
    for (int i = 0; i < MEASURE_COUNT; i++) {
        sent[1].health.worst[i] =
            i == 0 ? (double)NAN : (health_measure_kinds[i].low_is_sick ? -0.1 : 2.0) * i;
        sent[1].health.mean[i] = i == 0 ? (double)NAN : 0.5 * i;
    }
    make_completion(0, "w", COMPLETION_DONE);
    memcpy(completions[0].artifact_hash, hash, sizeof hash);
    completions[0].outcomes = sent;
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 2);
    for (int i = 0; i < 2; i++) {
        EXPECT(outcomes[i].id > 0);
        sent[i].id = outcomes[i].id;
        sent[i].at_ms = wall_now_ms();
        EXPECT(memcmp(&outcomes[i], &sent[i], sizeof sent[i]) == 0);
    }
    struct store_suite_status status = status_of("a");
    EXPECT_INT(status.rollouts[VERDICT_FAIL], 1);
    EXPECT_INT(status.rollouts[VERDICT_PLANNER_ERROR], 1);
    EXPECT_INT(status.ticks, 160);
    EXPECT_INT(status.prefix_ticks_saved, 40);
    EXPECT_INT(status.metres_mm, 10000);
    EXPECT_INT(status.device_ns, 2 * NS_PER_S);
    close_store();
}

/* Goal: an invalid rollout is counted apart, found by its verdict, comes back with its reason, and
 * is refused without one. */
static void invalid_rollouts_are_counted_apart(void)
{
    struct store_outcome_filter filter = {
        .limit = 10, .by_verdict = true, .verdict = VERDICT_INVALID};
    uint32_t count = 0;

    open_store(true);
    submit_plain("a", "k", 2);
    EXPECT_INT(status_of("a").rollouts[VERDICT_INVALID], 0);
    EXPECT_INT(claim("w", 2), 2);
    make_completion(0, "w", COMPLETION_DONE);
    outcomes[0].verdict = VERDICT_INVALID;
    EXPECT_INT(store->ops->complete(store, completions, 1, completed, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "the check that did not hold");
    snprintf(outcomes[0].health_check, sizeof outcomes[0].health_check, "friction_use");
    snprintf(outcomes[0].error, sizeof outcomes[0].error, "ego turned too hard");
    outcomes[0].health_tick = 7;
    outcomes[0].health_value = 5.5;
    outcomes[0].health_threshold = (double)NAN;
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_INT(outcomes[0].verdict, VERDICT_INVALID);
    EXPECT_TEXT(outcomes[0].health_check, "friction_use");
    EXPECT_TEXT(outcomes[0].error, "ego turned too hard");
    EXPECT_INT(outcomes[0].health_tick, 7);
    EXPECT_NEAR(outcomes[0].health_value, 5.5, 0);
    EXPECT(isnan(outcomes[0].health_threshold));
    struct store_suite_status status = status_of("a");
    EXPECT_INT(status.rollouts[VERDICT_INVALID], 1);
    EXPECT_INT(status.rollouts[VERDICT_PASS], 0);
    EXPECT_INT(status.rollouts[VERDICT_FAIL], 0);
    EXPECT_INT(status.rollouts[VERDICT_FLAGGED], 0);
    EXPECT_INT(status.jobs[JOB_DONE], 1);
    close_store();
}

/* Goal: metrics that do not apply (NAN) come back as such. */
static void missing_metrics_come_back(void)
{
    struct store_outcome_filter filter = {.limit = 10};
    uint32_t count = 0;

    open_store(true);
    submit_plain("a", "k", 1);
    EXPECT_INT(claim("w", 1), 1);
    make_completion(0, "w", COMPLETION_DONE);
    outcomes[0].metrics.impact_speed_mps = (double)NAN;
    outcomes[0].metrics.progress = (double)NAN;
    complete(1);
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT(isnan(outcomes[0].metrics.impact_speed_mps) && isnan(outcomes[0].metrics.progress));
    EXPECT_NEAR(outcomes[0].metrics.ttc, 0, 0);
    close_store();
}

/* ---- what a drain waits for ---- */

static struct store_awaited awaited_by(const char *worker_id, int64_t since_ms)
{
    struct store_awaited found;
    struct store_worker worker = worker_of(worker_id, "bulk");
    EXPECT_OK(store->ops->awaited(store, &worker, since_ms, &found, &error), error);
    return found;
}

static void heard(const char *worker_id)
{
    int64_t ttl_ms = 0;
    struct store_worker worker = worker_of(worker_id, "bulk");
    EXPECT_OK(store->ops->heartbeat(store, &worker, NULL, 0, NULL, NULL, &ttl_ms, &error), error);
}

/* Goal: jobs that others hold are waited for until those were heard of since, or their leases have
 * ended; so are jobs that wait out a delay; one's own are not. */
static void drains_know_what_may_come_back(void)
{
    open_store(true);
    submit_plain("a", "k", 8);
    EXPECT_INT(awaited_by("w", 0).jobs_silent, 0);
    EXPECT_INT(claim("dead", 3), 3);
    EXPECT_INT(claim("living", 2), 2);
    EXPECT_INT(claim("w", 2), 2);
    advance_ms(1);
    EXPECT_INT(awaited_by("w", 0).jobs_silent, 5);
    EXPECT_INT(awaited_by("living", 0).jobs_silent, 5);
    struct store_worker elsewhere = worker_of("w", "teacher");
    struct store_awaited found;
    EXPECT_OK(store->ops->awaited(store, &elsewhere, 0, &found, &error), error);
    EXPECT_INT(found.jobs_silent, 0);
    advance_ms(4999);
    heard("living");
    advance_ms(1);
    found = awaited_by("w", 5000);
    EXPECT_INT(found.jobs_silent, 3);
    EXPECT_INT(found.silent_ms, TTL_MS - 5001);
    EXPECT_INT(found.jobs_delayed, 0);
    complete_one("w", COMPLETION_FAILED); /* the first of its own */
    found = awaited_by("w", 5000);
    EXPECT_INT(found.jobs_delayed, 1);
    EXPECT_INT(found.delayed_ms, BACKOFF_MS);
    advance_ms(BACKOFF_MS);
    heard("w");
    EXPECT_INT(awaited_by("w", 6000).jobs_delayed, 0);
    advance_ms(TTL_MS - 6001);
    heard("living");
    heard("w");
    EXPECT_INT(awaited_by("w", TTL_MS).jobs_silent, 0);
    EXPECT_INT(status_of("a").jobs[JOB_QUEUED], 1 + 1 + 3);
    EXPECT_INT(store->ops->awaited(store, &elsewhere, -1, &found, &error), STATUS_BAD_INPUT);
    close_store();
}

/* ---- partial outcomes ---- */

/* completions[0]: `count` outcomes from rollout `first` on of the job that is leased. */
static struct job_completion *make_partial(const char *worker_id, uint32_t first, uint32_t count)
{
    char traces[SHA256_HEX_BYTES];
    struct job_completion *completion = make_completion(0, worker_id, COMPLETION_PARTIAL);
    EXPECT_OK(store->ops->artifact_put(store, "traces", 6, traces, &error), error);
    for (uint32_t i = 0; i < count; i++) {
        fill_outcome(&outcomes[i], &leases[0].spec, VERDICT_FAIL);
        if (first + i > 0) {
            snprintf(outcomes[i].branch_id, sizeof outcomes[i].branch_id, "b%" PRIu32, first + i);
        }
        sha256_hex(worker_id, strlen(worker_id), outcomes[i].trace_hash);
        memcpy(outcomes[i].artifact_hash, traces, sizeof traces);
    }
    completion->outcomes = outcomes;
    completion->outcome_count = count;
    return completion;
}

/* Number of them; those handed over by `worker_id` are *own. */
static uint32_t partials_of(int64_t job_id, const char *worker_id, uint32_t *own)
{
    static struct outcome found[8];
    char trace[SHA256_HEX_BYTES];
    uint32_t count = 0;
    sha256_hex(worker_id, strlen(worker_id), trace);
    EXPECT_OK(store->ops->partials(store, job_id, found, 8, &count, &error), error);
    *own = 0;
    for (uint32_t i = 0; i < count; i++) {
        EXPECT_INT(found[i].job_id, job_id);
        EXPECT_INT(found[i].verdict, VERDICT_FAIL);
        EXPECT_TEXT(found[i].suite_id, "a");
        *own += strcmp(found[i].trace_hash, trace) == 0;
    }
    return count;
}

/* One job of four rollouts, claimed by "w". */
static void claim_four(void)
{
    make_specs("a", "k", 1);
    specs[0].rollout_count = 4;
    submit_made("a", 1, 1);
    EXPECT_INT(claim("w", 1), 1);
}

/* Goal: what is finished of a job outlives its attempt and the store's opening, counts nowhere, is
 * billed once, and is not taken from an attempt that has lost its lease. */
static void finished_rollouts_outlive_their_attempt(void)
{
    uint32_t own = 0;
    struct store_outcome_filter filter = {.limit = 10};

    open_store(true);
    claim_four();
    int64_t id = leases[0].job_id;
    EXPECT_INT(partials_of(id, "w", &own), 0);
    for (int i = 0; i < 2; i++) { /* a repeated call changes nothing */
        make_partial("w", 0, 2);
        complete(1);
        EXPECT_INT(completed[0].status, STATUS_OK);
        EXPECT_INT(partials_of(id, "w", &own), 2);
        EXPECT_INT(own, 2);
    }
    struct store_suite_status status = status_of("a");
    EXPECT_INT(status.jobs[JOB_LEASED], 1);
    EXPECT_INT(status.rollouts[VERDICT_FAIL] + status.ticks + status.metres_mm, 0);
    EXPECT_INT(ledger_of("a", NULL).attempts, 0);
    uint32_t count = 0;
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 0);

    struct job_completion late = *make_partial("w", 2, 1);
    close_store();
    open_store(false);
    advance_ms(TTL_MS + 1);
    EXPECT_INT(claim("x", 1), 1);
    EXPECT_INT(leases[0].epoch, 2);
    EXPECT_INT(ledger_of("a", "lost").device_ns, 2 * NS_PER_S); /* as it was handed over */
    EXPECT_INT(partials_of(id, "w", &own), 2);
    EXPECT_INT(own, 2);
    completions[0] = late;
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_STALE);
    EXPECT_INT(ledger_of("a", NULL).device_ns, 2 * NS_PER_S);
    EXPECT_INT(partials_of(id, "w", &own), 2);

    make_partial("x", 1, 2); /* the first one of branch 1 stays */
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    EXPECT_INT(partials_of(id, "x", &own), 3);
    EXPECT_INT(own, 1);
    complete_one("x", COMPLETION_RELEASED);
    EXPECT_INT(partials_of(id, "x", &own), 3);
    EXPECT_INT(claim("y", 1), 1);
    struct job_completion *done = make_partial("y", 0, 4);
    done->kind = COMPLETION_DONE;
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    EXPECT_INT(partials_of(id, "y", &own), 0);
    make_partial("y", 0, 1);
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_STALE);
    EXPECT_INT(partials_of(id, "y", &own), 0);
    status = status_of("a");
    EXPECT_INT(status.rollouts[VERDICT_FAIL], 4);
    EXPECT_INT(status.ticks, 400);
    EXPECT_INT(ledger_of("a", NULL).attempts, 3);
    EXPECT_INT(ledger_of("a", NULL).device_ns, 6 * NS_PER_S);
    close_store();
}

/* Claims one job for a worker that the token of that id holds. */
static void claim_held(const char *worker_id, const char *token)
{
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    struct store_worker worker = worker_of(worker_id, "bulk");
    snprintf(worker.holder, sizeof worker.holder, "%s", token);
    snprintf(worker.holder_name, sizeof worker.holder_name, "name of %s", token);
    EXPECT_OK(
        store->ops->claim(store, &worker, fresh_claim_id(), 1, 0, leases, &count, &ttl_ms, &error),
        error);
    EXPECT_INT(count, 1);
}

static void hand_over(const char *worker_id, uint32_t first, uint32_t count)
{
    make_partial(worker_id, first, count);
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
}

static void gone(const char *worker_id)
{
    EXPECT_OK(store->ops->worker_gone(store, worker_id, &error), error);
}

/* Goal: what is finished of a job is given to workers of the token that drove it, and to no others:
 * those drive it themselves, in their own time, and each attempt is charged for its own. Method:
 * two tokens take turns at one job, the first one's workers under a new name each time. */
static void partial_outcomes_are_their_tokens(void)
{
    struct store_outcome_filter filter = {.limit = 10};
    uint32_t own = 0;
    uint32_t count = 0;

    if (!backend->holders) {
        return;
    }
    open_store(true);
    make_specs("a", "k", 1);
    specs[0].rollout_count = 4;
    submit_made("a", 1, 1);
    claim_held("w1", "one");
    int64_t id = leases[0].job_id;
    hand_over("w1", 0, 2);
    EXPECT_INT(partials_of(id, "w1", &own), 2);
    gone("w1");
    advance_ms(1000);
    claim_held("x", "two");
    EXPECT_INT(partials_of(id, "w1", &own), 0);
    int64_t by_two_ms = wall_now_ms();
    hand_over("x", 1, 2); /* branch 1 instead of what the other token has of it */
    EXPECT_INT(partials_of(id, "x", &own), 2);
    EXPECT_INT(own, 2);
    close_store();
    open_store(false);
    complete_one("x", COMPLETION_RELEASED);
    claim_held("w2", "one");
    EXPECT_INT(partials_of(id, "w1", &own), 1); /* the main line */
    EXPECT_INT(own, 1);
    hand_over("w2", 0, 1); /* one party: the first of a rollout stays */
    EXPECT_INT(partials_of(id, "w1", &own), 1);
    EXPECT_INT(own, 1);
    gone("w2");
    claim_held("y", "two");
    EXPECT_INT(partials_of(id, "x", &own), 2);
    EXPECT_INT(own, 2);
    advance_ms(1000);
    struct job_completion *done = make_partial("y", 0, 4);
    done->kind = COMPLETION_DONE;
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 4);
    for (int i = 0; i < 4; i++) {
        bool kept = outcomes[i].branch_id[0] == 'b' && outcomes[i].branch_id[1] < '3';
        EXPECT_INT(outcomes[i].at_ms, kept ? by_two_ms : wall_now_ms());
    }
    EXPECT_INT(ledger_of("a", "lost").device_ns, 2 * 2 * NS_PER_S);
    EXPECT_INT(ledger_of("a", NULL).attempts, 4);
    close_store();
}

/* Goal: an outcome says when the store took it, by the store's clock, whatever the worker says: a
 * partial one keeps that when its job ends, the others have their job's end; a replay and a result
 * that is taken over change nothing. */
static void outcomes_say_when_they_came(void)
{
    struct store_outcome_filter filter = {.limit = 10, .suite_id = "a"};
    uint32_t count = 0;

    open_store(true);
    claim_four();
    int64_t id = leases[0].job_id;
    make_partial("w", 1, 2);
    outcomes[0].at_ms = 12345;
    int64_t partial_ms = wall_now_ms();
    complete(1);
    advance_ms(3600000);
    complete(1); /* again */
    EXPECT_OK(store->ops->partials(store, id, outcomes, 4, &count, &error), error);
    EXPECT_INT(count, 2);
    EXPECT_INT(outcomes[0].at_ms, partial_ms);
    EXPECT_INT(outcomes[1].at_ms, partial_ms);
    close_store();
    open_store(false);
    advance_ms(TTL_MS + 1);
    EXPECT_INT(claim("x", 1), 1);
    advance_ms(86400000);
    struct job_completion *done = make_partial("x", 0, 4);
    done->kind = COMPLETION_DONE;
    int64_t done_ms = wall_now_ms();
    complete(1);
    advance_ms(1000);
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    make_specs("b", "k", 1);
    specs[0].rollout_count = 4;
    submit_made("b", 1, 1);
    for (int suite = 0; suite < 2; suite++) {
        filter.suite_id[0] = (char)('a' + suite);
        EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
        EXPECT_INT(count, 4);
        for (int i = 0; i < 4; i++) {
            EXPECT_INT(outcomes[i].at_ms, i == 1 || i == 2 ? partial_ms : done_ms);
        }
    }
    close_store();
}

/* Goal: a job that ends otherwise than done keeps nothing: flagged, dead, cancelled while it runs
 * or waits. */
static void ended_jobs_keep_no_partial_outcomes(void)
{
    uint32_t own = 0;

    for (int way = 0; way < 5; way++) {
        open_store(true);
        make_specs("a", "k", 1);
        specs[0].rollout_count = 4;
        if (way == 1) {
            name_teacher(&specs[0]);
        }
        submit_made("a", 1, 1);
        EXPECT_INT(claim("w", 1), 1);
        int64_t id = leases[0].job_id;
        make_partial("w", 1, 2);
        complete(1);
        EXPECT_INT(partials_of(id, "w", &own), 2);
        int64_t cancelled = 0;
        switch (way) {
        case 0:
            complete_one("w", COMPLETION_FLAGGED);
            break;
        case 1:
            EXPECT(completed[0].escalated_job_id == 0);
            complete_one("w", COMPLETION_FLAGGED);
            EXPECT(completed[0].escalated_job_id > 0);
            break;
        case 2: /* attempts_max is 3 */
            for (int i = 0; i < 3; i++) {
                EXPECT_INT(partials_of(id, "w", &own), 2);
                complete_one("w", COMPLETION_FAILED);
                advance_ms(60000);
                EXPECT_INT(claim("w", 1), i < 2 ? 1 : 0);
            }
            break;
        case 3:
            complete_one("w", COMPLETION_RELEASED);
            __attribute__((fallthrough));
        default:
            EXPECT_OK(store->ops->cancel(store, "a", &cancelled, &error), error);
            EXPECT_INT(cancelled, 1);
            break;
        }
        EXPECT_INT(partials_of(id, "w", &own), 0);
        close_store();
    }
}

/* Goal: a partial outcome that is a checkpoint, one with evidence and no trace, gives way to the
 * next one and to the rollout's own, which stays. */
static void checkpoints_give_way(void)
{
    static const char *const kinds[] = {"log of 5 ticks", "log of 9 ticks", NULL, "a late log"};
    struct outcome found[8];
    char log[SHA256_HEX_BYTES];
    uint32_t count = 0;
    open_store(true);
    claim_four();
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        make_partial("w", 0, 1);
        if (kinds[i] != NULL) {
            EXPECT_OK(store->ops->artifact_put(store, kinds[i], strlen(kinds[i]), log, &error),
                      error);
            outcomes[0].trace_hash[0] = outcomes[0].artifact_hash[0] = '\0';
            memcpy(outcomes[0].evidence_hash, log, sizeof log);
        }
        complete(1);
        EXPECT_INT(completed[0].status, STATUS_OK);
        EXPECT_OK(store->ops->partials(store, leases[0].job_id, found, 8, &count, &error), error);
        EXPECT_INT(count, 1);
        EXPECT_TEXT(found[0].evidence_hash, i < 2 ? log : "");
        sha256_hex("w", 1, log);
        EXPECT_TEXT(found[0].trace_hash, i < 2 ? "" : log);
    }
    close_store();
}

/* Goal: what cannot be a partial outcome is refused as a whole. */
static void bad_partial_outcomes_are_refused(void)
{
    uint32_t own = 0;

    open_store(true);
    claim_four();
    int64_t id = leases[0].job_id;
    make_partial("w", 0, 2);
    outcomes[1].verdict = VERDICT_FLAGGED;
    EXPECT_INT(store->ops->complete(store, completions, 1, completed, &error), STATUS_BAD_INPUT);
    make_partial("w", 0, 2);
    memset(outcomes[1].artifact_hash, 'a', SHA256_HEX_BYTES - 1);
    EXPECT_INT(store->ops->complete(store, completions, 1, completed, &error), STATUS_CONFLICT);
    make_partial("w", 0, 5);
    EXPECT_INT(store->ops->complete(store, completions, 1, completed, &error), STATUS_CONFLICT);
    EXPECT_INT(partials_of(id, "w", &own), 0);
    EXPECT_INT(store->ops->partials(store, id + 1, outcomes, 1, &own, &error), STATUS_NOT_FOUND);
    close_store();
}

/* Goal: replaying a completion answers the same and changes nothing. */
static void replays_change_nothing(void)
{
    open_store(true);
    submit_plain("a", "k", 3);
    EXPECT_INT(claim("w", 3), 3);
    make_completion(0, "w", COMPLETION_DONE);
    make_completion(1, "w", COMPLETION_FAILED);
    make_completion(2, "w", COMPLETION_RELEASED);
    for (int i = 0; i < 3; i++) {
        complete(3);
        for (int k = 0; k < 3; k++) {
            EXPECT_INT(completed[k].status, STATUS_OK);
        }
    }
    struct store_suite_status status = status_of("a");
    EXPECT_INT(status.jobs[JOB_DONE], 1);
    EXPECT_INT(status.jobs[JOB_QUEUED], 2);
    EXPECT_INT(status.rollouts[VERDICT_PASS], 1);
    EXPECT_INT(status.device_ns, 6 * NS_PER_S);
    EXPECT_INT(ledger_of("a", NULL).attempts, 3);
    /* Another kind for an epoch that is closed is not a replay. */
    struct job_completion replay = completions[0];
    completions[0] = completions[1];
    completions[0].kind = COMPLETION_RELEASED;
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_STALE);
    completions[0] = replay;
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    EXPECT_INT(ledger_of("a", NULL).attempts, 3);
    close_store();
}

/* Goal: a completion counts only with the current epoch; a late one leaves its cost, once. */
static void late_completions_are_fenced(void)
{
    open_store(true);
    submit_plain("a", "k", 1);
    EXPECT_INT(claim("slow", 1), 1);
    struct job_lease old = leases[0];
    EXPECT_OK(store->ops->worker_gone(store, "slow", &error), error);
    EXPECT_INT(ledger_of("a", "lost").attempts, 1);
    EXPECT_INT(claim("quick", 1), 1);
    EXPECT_INT(leases[0].job_id, old.job_id);
    EXPECT_INT(leases[0].epoch, old.epoch + 1);
    EXPECT_INT(leases[0].attempt, 2);
    struct job_lease current = leases[0];
    leases[0] = old;
    for (int i = 0; i < 2; i++) {
        complete_one("slow", COMPLETION_DONE);
        EXPECT_INT(completed[0].status, STATUS_STALE);
    }
    EXPECT_INT(ledger_of("a", "stale").attempts, 1);
    EXPECT_INT(ledger_of("a", "stale").device_ns, 2 * NS_PER_S);
    EXPECT_INT(ledger_of("a", "lost").attempts, 0);
    EXPECT_INT(status_of("a").rollouts[VERDICT_PASS], 0);
    leases[0] = current;
    complete_one("quick", COMPLETION_DONE);
    EXPECT_INT(completed[0].status, STATUS_OK);
    /* The epoch of another worker, an epoch that never was, a job that never was. */
    complete_one("slow", COMPLETION_DONE);
    EXPECT_INT(completed[0].status, STATUS_STALE);
    leases[0].epoch = 77;
    complete_one("quick", COMPLETION_DONE);
    EXPECT_INT(completed[0].status, STATUS_STALE);
    leases[0].job_id = 4711;
    complete_one("quick", COMPLETION_DONE);
    EXPECT_INT(completed[0].status, STATUS_STALE);
    EXPECT_INT(ledger_of("a", NULL).attempts, 2);
    EXPECT_INT(ledger_of("a", NULL).device_ns, 4 * NS_PER_S);
    EXPECT_INT(status_of("a").rollouts[VERDICT_PASS], 1);
    close_store();
}

/* Goal: safety rests on the epoch alone: a worker taken for lost, whose job nobody else has
 * claimed, is still in time, and is charged once. */
static void unclaimed_work_is_still_accepted(void)
{
    open_store(true);
    submit_plain("a", "k", 1);
    EXPECT_INT(claim("w", 1), 1);
    advance_ms(TTL_MS + 1);
    struct job_lease held = leases[0];
    EXPECT_INT(claim("other", 1), 1); /* its lease has ended: the job goes to another */
    leases[0] = held;
    complete_one("w", COMPLETION_DONE);
    EXPECT_INT(completed[0].status, STATUS_STALE);
    close_store();

    open_store(true);
    submit_plain("a", "k", 1);
    EXPECT_INT(claim("w", 1), 1);
    EXPECT_OK(store->ops->worker_gone(store, "w", &error), error);
    EXPECT_INT(status_of("a").jobs[JOB_QUEUED], 1);
    complete_one("w", COMPLETION_DONE);
    EXPECT_INT(completed[0].status, STATUS_OK);
    EXPECT_INT(status_of("a").jobs[JOB_DONE], 1);
    EXPECT_INT(ledger_of("a", NULL).attempts, 1);
    EXPECT_INT(ledger_of("a", "done").device_ns, 2 * NS_PER_S);
    EXPECT_INT(claim("x", 1), 0);
    close_store();
}

/* Goal: failures back off, doubling, and end in a dead job that says why. */
static void failures_back_off_and_die(void)
{
    uint32_t count = 0;

    open_store(true);
    submit_plain("a", "k", 1);
    for (int attempt = 1; attempt <= 3; attempt++) {
        EXPECT_INT(claim("w", 1), 1);
        EXPECT_INT(leases[0].attempt, attempt);
        make_completion(0, "w", COMPLETION_FAILED);
        snprintf(completions[0].error, sizeof completions[0].error, "broke %d", attempt);
        complete(1);
        EXPECT_INT(completed[0].status, STATUS_OK);
        if (attempt < 3) {
            EXPECT_INT(status_of("a").jobs[JOB_QUEUED], 1);
            EXPECT_INT(claim("w", 1), 0);
            advance_ms(BACKOFF_MS * attempt - 1); /* 1 s, then 2 s */
            EXPECT_INT(claim("w", 1), 0);
            advance_ms(1);
        }
    }
    EXPECT_INT(status_of("a").jobs[JOB_DEAD], 1);
    advance_ms(100000);
    EXPECT_INT(claim("w", 1), 0);
    EXPECT_OK(store->ops->dead_jobs(store, "a", 0, &job, 1, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_TEXT(job.error, "broke 3");
    EXPECT_INT(job.attempts, 3);
    EXPECT_OK(store->ops->dead_jobs(store, "a", job.id, &job, 1, &count, &error), error);
    EXPECT_INT(count, 0);
    EXPECT_INT(ledger_of("a", "failed").attempts, 3);
    close_store();
}

/* Goal: a job handed back is claimable at once and has lost no attempt. */
static void released_jobs_are_queued_at_once(void)
{
    open_store(true);
    submit_plain("a", "k", 1);
    for (int i = 0; i < 10; i++) {
        EXPECT_INT(claim("w", 1), 1);
        EXPECT_INT(leases[0].attempt, 1);
        EXPECT_INT(leases[0].epoch, i + 1);
        complete_one("w", COMPLETION_RELEASED);
    }
    EXPECT_INT(status_of("a").jobs[JOB_QUEUED], 1);
    EXPECT_INT(ledger_of("a", "released").attempts, 10);
    close_store();
}

/* ---- planners that do not start ---- */

/* A claim of a worker on a host, which leaves the planners of the first `without` letters alone. */
static uint32_t claim_on(const char *worker_id, const char *host, const char *without)
{
    static struct store_planner planners[4];
    struct store_worker worker = worker_of(worker_id, "bulk");
    uint32_t count = 0;
    int64_t ttl_ms = 0;

    strcpy(worker.host, host);
    worker.without = planners;
    for (; without[worker.without_count] != '\0'; worker.without_count++) {
        struct store_planner *planner = &planners[worker.without_count];
        snprintf(planner->planner, sizeof planner->planner, "exec:%c \"'",
                 without[worker.without_count]);
        strcpy(planner->planner_hash, "p");
    }
    EXPECT_OK(
        store->ops->claim(store, &worker, fresh_claim_id(), 8, 0, leases, &count, &ttl_ms, &error),
        error);
    return count;
}

/* `count` jobs, by turns of planners "a" and "b", whose specs need quoting. */
static void submit_two_planners(uint32_t count)
{
    make_specs("s", "k", count);
    for (uint32_t i = 0; i < count; i++) {
        snprintf(specs[i].planner, sizeof specs[i].planner, "exec:%c \"'", i % 2 == 0 ? 'a' : 'b');
    }
    submit_made("s", 1, count);
}

static bool unstarted(const char *worker_id, uint32_t index)
{
    make_completion(index, worker_id, COMPLETION_UNSTARTED);
    completions[0] = completions[index];
    strcpy(completions[0].error, "no such file");
    completions[0].outcome_count = 0;
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    return completed[0].excused;
}

/* Goal: a planner that does not start on one host costs no attempt, however often and under how
 * many names a worker of that host says so; a claim that leaves it alone gets the other jobs. */
static void one_host_is_excused(void)
{
    open_store(true);
    submit_two_planners(4);
    for (int i = 0; i < 5; i++) {
        char worker_id[16];
        snprintf(worker_id, sizeof worker_id, "w%d", i);
        EXPECT_INT(claim_on(worker_id, "h", ""), 4);
        for (uint32_t k = 0; k < 4; k++) {
            EXPECT_INT(leases[k].attempt, 1);
            EXPECT(unstarted(worker_id, k));
            EXPECT(unstarted(worker_id, k)); /* a replay */
        }
    }
    EXPECT_INT(status_of("s").jobs[JOB_QUEUED], 4);
    EXPECT_INT(status_of("s").unstarted_hosts, 1);
    EXPECT_INT(ledger_of("s", "released").attempts, 20);
    EXPECT_INT(claim_on("v", "h", "ab"), 0);
    EXPECT_INT(claim_on("v", "h", "a"), 2);
    EXPECT_CONTAINS(leases[0].spec.planner, "b");
    EXPECT_CONTAINS(leases[1].spec.planner, "b");
    EXPECT_INT(claim_on("v", "h", "a"), 0);
    EXPECT_INT(claim_on("v", "h", ""), 2);
    EXPECT_INT(leases[0].epoch, 6);
    close_store();
}

/* Goal: main lines of several planners have a rate each, and none together; rows beyond those that
 * are asked for are left out, and a suite that is not there is told. */
static void rates_stand_by_planner(void)
{
    struct store_planner_mains rows[4];
    uint32_t count = 0;
    open_store(true);
    submit_two_planners(4);
    EXPECT_INT(claim_on("v", "h", ""), 4);
    for (uint32_t i = 0; i < 4; i++) {
        enum verdict verdict = leases[i].spec.planner[5] == 'b' ? VERDICT_FAIL : VERDICT_PASS;
        make_completion(i, "v", COMPLETION_DONE);
        fill_outcome(&outcomes[i], &leases[i].spec, verdict);
        completions[i].outcomes = &outcomes[i];
        completions[i].outcome_count = 1;
    }
    complete(4);
    struct store_suite_status status = status_of("s");
    EXPECT_INT(status.planner_count, 2);
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        EXPECT_INT(status.mains[tier].scenarios, 0);
    }
    EXPECT_OK(store->ops->mains(store, "s", rows, 4, &count, &error), error);
    EXPECT_INT(count, 2);
    EXPECT_TEXT(rows[0].planner, "exec:a \"'");
    EXPECT_TEXT(rows[1].planner, "exec:b \"'");
    EXPECT_INT(rows[0].mains.verdicts[VERDICT_PASS], 2);
    EXPECT_INT(rows[1].mains.verdicts[VERDICT_FAIL], 2);
    EXPECT(rows[0].mains.rate == 1 && rows[1].mains.rate == 0 && rows[1].mains.worst == 0);
    EXPECT_OK(store->ops->mains(store, "s", rows, 1, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT(rows[0].mains.rate == 1);
    EXPECT_INT(store->ops->mains(store, "none", rows, 4, &count, &error), STATUS_NOT_FOUND);
    close_store();
}

/* Goal: a claim that leaves a planner alone in one world gets its jobs in others, and other
 * planners' in that one. */
static void one_world_is_left_alone(void)
{
    struct store_planner left = {.planner = "builtin:reference", .planner_hash = "p"};
    struct store_worker worker = worker_of("w", "bulk");
    uint32_t count = 0;
    int64_t ttl_ms = 0;

    open_store(true);
    make_specs("s", "k", 5);
    for (int i = 0; i < 4; i++) { /* the last one is of the object world */
        specs[i].tier = TIER_STUDENT;
        strcpy(specs[i].model_hash, i == 1 ? "other" : "m");
        strcpy(specs[i].sampler, i == 2 ? "other" : "s\"'");
    }
    strcpy(specs[3].planner, "builtin:maintain");
    memset(specs[0].revision, 'a', SHA256_HEX_BYTES - 1);
    submit_made("s", 1, 5);
    left.in_world = true;
    left.tier = TIER_STUDENT;
    strcpy(left.model_hash, "m");
    strcpy(left.sampler, "s\"'");
    strcpy(left.backend, "cpu");
    worker.without = &left;
    worker.without_count = 1;
    EXPECT_OK(
        store->ops->claim(store, &worker, fresh_claim_id(), 8, 0, leases, &count, &ttl_ms, &error),
        error);
    EXPECT_INT(count, 4);
    for (uint32_t i = 0; i < count; i++) {
        EXPECT(strcmp(leases[i].spec.key, "k-0") != 0);
    }
    memset(left.revision, 'a', SHA256_HEX_BYTES - 1);
    EXPECT_OK(
        store->ops->claim(store, &worker, fresh_claim_id(), 8, 0, leases, &count, &ttl_ms, &error),
        error);
    EXPECT_INT(count, 0);
    for (int other = 0; other < 2; other++) { /* of another revision, then of another backend */
        left.revision[0] = other == 0 ? 'b' : '\0';
        strcpy(left.backend, other == 0 ? "cpu" : "cuda:sm_90");
        EXPECT_OK(store->ops->claim(store, &worker, fresh_claim_id(), 8, 0, leases, &count, &ttl_ms,
                                    &error),
                  error);
        EXPECT_INT(count, 1);
        EXPECT_TEXT(leases[0].spec.key, "k-0");
        make_completion(0, "w", COMPLETION_RELEASED);
        completions[0].outcome_count = 0;
        complete(1);
    }
    close_store();
}

/* Goal: of a planner that nobody has driven, a second host is believed: the attempt has failed. */
static void two_hosts_blame_the_planner(void)
{
    open_store(true);
    submit_two_planners(1);
    EXPECT_INT(claim_on("v", "h1", ""), 1);
    EXPECT(unstarted("v", 0));
    struct store_suite_status status = status_of("s");
    EXPECT_INT(status.unstarted_hosts, 1);
    EXPECT_TEXT(status.unstarted, "v: no such file");
    EXPECT_INT(claim_on("v2", "h1", ""), 1);
    EXPECT(unstarted("v2", 0));
    EXPECT_INT(status_of("s").unstarted_hosts, 1);
    for (int i = 0; i < 3; i++) {
        char worker_id[16];
        snprintf(worker_id, sizeof worker_id, "w%d", i);
        advance_ms(10000);
        EXPECT_INT(claim_on(worker_id, i < 2 ? "h2" : "", ""), 1);
        EXPECT_INT(leases[0].attempt, i + 1);
        EXPECT(!unstarted(worker_id, 0));
        EXPECT(!unstarted(worker_id, 0)); /* a replay */
    }
    status = status_of("s");
    EXPECT_INT(status.jobs[JOB_DEAD], 1);
    EXPECT_INT(status.unstarted_hosts, 3);
    EXPECT_INT(ledger_of("s", "released").attempts, 2);
    EXPECT_INT(ledger_of("s", "failed").attempts, 3);
    close_store();
}

/* Goal: where somebody drives the planner, before or after, no number of hosts is believed; and a
 * host that drives it is no longer listed. */
static void a_driven_planner_is_not_blamed(void)
{
    open_store(true);
    make_specs("s", "k", 6);
    submit_made("s", 1, 6);
    EXPECT_INT(claim_on("v", "h1", ""), 6);
    EXPECT(unstarted("v", 0));
    EXPECT_INT(claim_on("w", "h2", ""), 1);
    make_completion(0, "w", COMPLETION_DONE);
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    EXPECT_OK(store->ops->worker_gone(store, "v", &error), error);
    for (int i = 0; i < 3; i++) {
        char worker_id[16];
        snprintf(worker_id, sizeof worker_id, "x%d", i);
        EXPECT_INT(claim_on(worker_id, worker_id, ""), 5);
        EXPECT(unstarted(worker_id, 0));
        EXPECT_OK(store->ops->worker_gone(store, worker_id, &error), error);
    }
    EXPECT_INT(status_of("s").unstarted_hosts, 4);
    EXPECT_INT(claim_on("x9", "x1", ""), 5);
    make_completion(0, "x9", COMPLETION_DONE);
    complete(1);
    EXPECT_INT(status_of("s").unstarted_hosts, 3);
    close_store();
}

/* Goal: a flagged job keeps its evidence and is replaced, in the same step, by a teacher's. */
static void flagged_jobs_are_escalated(void)
{
    struct store_worker teacher = worker_of("t", "teacher");
    struct store_outcome_filter filter = {.limit = 10, .by_verdict = true};
    uint32_t count = 0;
    int64_t ttl_ms = 0;

    open_store(true);
    make_specs("a", "k", 2);
    name_teacher(&specs[0]);
    submit_made("a", 1, 2);
    EXPECT_INT(claim("w", 1), 1);
    int64_t flagged = leases[0].job_id;
    make_completion(0, "w", COMPLETION_FLAGGED);
    fill_outcome(&outcomes[0], &leases[0].spec, VERDICT_FLAGGED);
    completions[0].outcomes = outcomes;
    completions[0].outcome_count = 1;
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    int64_t escalated = completed[0].escalated_job_id;
    EXPECT(escalated > 0);
    complete(1); /* replay */
    EXPECT_INT(completed[0].escalated_job_id, escalated);
    filter.verdict = VERDICT_FLAGGED;
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_INT(outcomes[0].job_id, flagged);
    struct store_suite_status status = status_of("a");
    EXPECT_INT(status.jobs[JOB_FLAGGED], 1);
    EXPECT_INT(status.jobs[JOB_QUEUED], 2);
    EXPECT_INT(status.rollouts_total, 2);
    EXPECT_INT(status.rollouts[VERDICT_PASS], 0);
    EXPECT_INT(status.rollouts[VERDICT_FLAGGED], 1);
    const struct store_mains *mains = &status.mains[outcomes[0].tier];
    EXPECT_INT(mains->verdicts[VERDICT_FLAGGED], 1);
    EXPECT(isnan(mains->rate) && mains->worst == 0 && mains->best == 1);
    EXPECT_INT(status.metres_mm, 0);
    EXPECT_OK(
        store->ops->claim(store, &teacher, fresh_claim_id(), 9, 0, leases, &count, &ttl_ms, &error),
        error);
    EXPECT_INT(count, 1);
    EXPECT_INT(leases[0].job_id, escalated);
    EXPECT_INT(leases[0].spec.parent_job_id, flagged);
    EXPECT_INT(leases[0].spec.tier, TIER_TEACHER);
    EXPECT_TEXT(leases[0].spec.pool, "teacher");
    EXPECT_TEXT(leases[0].spec.scenario_id, "scenario-0");
    complete_one("t", COMPLETION_DONE);
    EXPECT_INT(completed[0].status, STATUS_OK);
    EXPECT_INT(status_of("a").rollouts[VERDICT_PASS], 1);
    /* Nowhere to go: dead. */
    EXPECT_INT(claim("w", 1), 1);
    make_completion(0, "w", COMPLETION_FLAGGED);
    strcpy(completions[0].error, "frozen world");
    complete(1);
    EXPECT_INT(completed[0].escalated_job_id, 0);
    status = status_of("a");
    EXPECT_INT(status.jobs[JOB_DEAD], 1);
    mains = &status.mains[leases[0].spec.tier]; /* it counts once, as what it ended as */
    EXPECT_INT(mains->verdicts[VERDICT_FLAGGED], 2);
    EXPECT_INT(mains->no_answer, 0);
    get_job(leases[0].job_id);
    EXPECT_TEXT(job.error, "frozen world");
    close_store();
}

/* A student's job as a submission makes it, which the teacher answers if it is flagged. */
static void make_student(const char *suite, const char *model)
{
    make_specs(suite, "-", 1);
    specs[0].tier = TIER_STUDENT;
    strcpy(specs[0].model_hash, model);
    strcpy(specs[0].sampler, "agents/euler2/fp32");
    name_teacher(&specs[0]);
    job_key_make(&specs[0], 0);
}

/* Goal: the successor of a flagged job is what the job's row says, and a result that exists is not
 * computed again: neither the suite's own nor another suite's. */
static void successors_keep_their_identity(void)
{
    struct store_worker teacher = worker_of("t", "teacher");
    struct job_spec expected;
    uint32_t count = 0;
    int64_t ttl_ms = 0;

    open_store(true);
    for (int round = 0; round < 3; round++) {
        const char *suite = round == 1 ? "b" : "a";
        make_student(suite, round == 2 ? "another" : "student");
        job_escalation_take(&specs[0], &expected);
        job_key_make(&expected, 0);
        submit_made(suite, 1, 1);
        EXPECT_INT(claim("w", 1), 1);
        int64_t flagged = leases[0].job_id;
        make_completion(0, "w", COMPLETION_FLAGGED);
        if (round == 1) { /* as workers of earlier versions do */
            memcpy(completions[0].escalate_key, expected.key, sizeof expected.key);
            strcpy(completions[0].escalate_pool, "teacher");
            completions[0].escalate_tier = TIER_TEACHER;
            strcpy(completions[0].escalate_model_hash, "teacher-model");
        }
        complete(1);
        EXPECT_INT(completed[0].status, STATUS_OK);
        int64_t successor = completed[0].escalated_job_id;
        get_job(successor);
        EXPECT_INT(job.state, round == 0 ? JOB_QUEUED : JOB_DONE);
        EXPECT_INT(job.spec.parent_job_id, round == 2 ? 1 : flagged);
        EXPECT_INT(successor, round == 2 ? 2 : flagged + 1);
        EXPECT_TEXT(job.spec.key, expected.key);
        EXPECT_INT(job.spec.tier, TIER_TEACHER);
        EXPECT_TEXT(job.spec.pool, "teacher");
        EXPECT_TEXT(job.spec.model_hash, "teacher-model");
        EXPECT_TEXT(job.spec.sampler, "agents/euler30/fp32");
        EXPECT_TEXT(job.spec.revision, "r");
        EXPECT_TEXT(job.spec.escalate_pool, "");
        EXPECT_INT(status_of(suite).memoised_jobs, round == 1);
        if (round == 0) {
            EXPECT_OK(store->ops->claim(store, &teacher, fresh_claim_id(), 9, 0, leases, &count,
                                        &ttl_ms, &error),
                      error);
            EXPECT_INT(count, 1);
            EXPECT_TEXT(leases[0].spec.model_hash, "teacher-model");
            complete_one("t", COMPLETION_DONE);
            struct store_outcome_filter filter = {.limit = 10, .job_id = successor};
            EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
            EXPECT_INT(count, 1);
            EXPECT_INT(outcomes[0].parent_job_id, flagged);
        }
    }
    EXPECT_INT(status_of("a").rollouts[VERDICT_PASS], 1);
    EXPECT_INT(status_of("b").rollouts[VERDICT_PASS], 1);
    close_store();
}

/* Goal: a successor takes over what another completion of the same call has just finished. */
static void successors_take_over_what_the_call_brings(void)
{
    struct store_worker teacher = worker_of("t", "teacher");
    static struct job_lease asked;
    uint32_t count = 0;
    int64_t ttl_ms = 0;

    open_store(true);
    make_student("a", "student");
    submit_made("a", 1, 1);
    job_escalation_take(&specs[0], &specs[1]);
    specs[0] = specs[1];
    strcpy(specs[0].suite_id, "b");
    job_key_make(&specs[0], 0);
    submit_made("b", 1, 1);
    EXPECT_OK(
        store->ops->claim(store, &teacher, fresh_claim_id(), 1, 0, leases, &count, &ttl_ms, &error),
        error);
    asked = leases[0];
    EXPECT_INT(claim("w", 1), 1);
    leases[1] = leases[0];
    leases[0] = asked;
    make_completion(0, "t", COMPLETION_DONE);
    make_completion(1, "w", COMPLETION_FLAGGED);
    fill_outcome(&outcomes[1], &leases[1].spec, VERDICT_FLAGGED);
    completions[1].outcomes = &outcomes[1];
    completions[1].outcome_count = 1;
    complete(2);
    get_job(completed[1].escalated_job_id);
    EXPECT_INT(job.state, JOB_DONE);
    EXPECT_INT(status_of("a").memoised_jobs, 1);
    EXPECT_INT(status_of("a").rollouts[VERDICT_PASS], 1);
    EXPECT_INT(status_of("b").rollouts[VERDICT_PASS], 1);
    struct store_outcome_filter filter = {.limit = 10, .job_id = job.id};
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 1);
    close_store();
}

/* Refused, and nothing of it is there. */
static void expect_refused(const char *what)
{
    struct store_outcome_filter filter = {.limit = 10};
    static struct outcome found[10];
    uint32_t count = 0;
    EXPECT_INT(store->ops->complete(store, completions, 1, completed, &error), STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, what);
    EXPECT_OK(store->ops->outcomes(store, &filter, found, &count, &error), error);
    EXPECT_INT(count, 0);
    EXPECT_INT(status_of("a").jobs[JOB_LEASED], 1);
    EXPECT_INT(status_of("a").jobs[JOB_QUEUED], 0);
    EXPECT_INT(ledger_of("a", NULL).attempts, 0);
}

/* Goal: no worker says who answers instead of a flagged job. */
static void flags_name_no_job_of_their_own(void)
{
    static const char *const forged[] = {"pool", "model", "sampler", "key", "tier"};
    open_store(true);
    make_student("a", "student");
    submit_made("a", 1, 1);
    EXPECT_INT(claim("w", 1), 1);
    for (int way = 0; way < 5; way++) {
        struct job_completion *flag = make_completion(0, "w", COMPLETION_FLAGGED);
        strcpy(flag->escalate_pool, way == 0 ? "bulk" : "teacher");
        flag->escalate_tier = way == 4 ? TIER_STUDENT : TIER_TEACHER;
        strcpy(flag->escalate_model_hash, way == 1 ? "rival" : "teacher-model");
        strcpy(flag->escalate_sampler, way == 2 ? "agents/euler1/fp32" : "agents/euler30/fp32");
        strcpy(flag->escalate_key, way == 3 ? leases[0].spec.key : "");
        fill_outcome(&outcomes[0], &leases[0].spec, VERDICT_FLAGGED);
        flag->outcomes = outcomes;
        flag->outcome_count = 1;
        char said[64];
        snprintf(said, sizeof said, "its flag names %s", forged[way]);
        expect_refused(said);
    }
    complete_one("w", COMPLETION_FLAGGED);
    EXPECT_INT(status_of("a").jobs[JOB_FLAGGED], 1);
    /* The teacher's own job is the last. */
    struct store_worker teacher = worker_of("t", "teacher");
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    EXPECT_OK(
        store->ops->claim(store, &teacher, fresh_claim_id(), 9, 0, leases, &count, &ttl_ms, &error),
        error);
    EXPECT_INT(count, 1);
    make_completion(0, "t", COMPLETION_FLAGGED);
    strcpy(completions[0].escalate_pool, "teacher");
    completions[0].escalate_tier = TIER_TEACHER;
    EXPECT_INT(store->ops->complete(store, completions, 1, completed, &error), STATUS_CONFLICT);
    complete_one("t", COMPLETION_FLAGGED);
    EXPECT_INT(completed[0].escalated_job_id, 0);
    get_job(leases[0].job_id);
    EXPECT_INT(job.state, JOB_DEAD);
    EXPECT_CONTAINS(job.error, "a teacher's job escalates no further");
    /* Nor does a submission give it a successor, or an object job to another world than a teacher.
     */
    make_student("a", "student");
    specs[0].tier = TIER_TEACHER;
    EXPECT_INT(store->ops->submit(store, "a", 1, specs, 1, submitted, &error), STATUS_BAD_INPUT);
    specs[0].tier = TIER_OBJECT;
    specs[0].escalate_tier = TIER_STUDENT;
    EXPECT_INT(store->ops->submit(store, "a", 1, specs, 1, submitted, &error), STATUS_BAD_INPUT);
    specs[0].escalate_pool[0] = '\0';
    EXPECT_INT(store->ops->submit(store, "a", 1, specs, 1, submitted, &error), STATUS_BAD_INPUT);
    close_store();
}

/* Goal: of a job of which nobody said who answers instead, as those of earlier versions, a worker
 * does not say it either: it dies; or the same suite, submitted again, says it. */
static void jobs_that_name_nobody_can_be_named_later(void)
{
    open_store(true);
    for (int way = 0; way < 2; way++) {
        make_student("a", way == 0 ? "student" : "another");
        struct job_spec named = specs[0];
        job_escalation_clear(&specs[0]);
        submit_made("a", 1, 1);
        EXPECT_INT(claim("w", 1), 1);
        EXPECT_TEXT(leases[0].spec.escalate_pool, "");
        if (way == 1) {
            specs[0] = named;
            submit_made("a", 1, 1);
            EXPECT(submitted[0].existed);
            get_job(leases[0].job_id);
            EXPECT_TEXT(job.spec.escalate_model_hash, "teacher-model");
            strcpy(specs[0].escalate_model_hash, "rival"); /* it stays */
            submit_made("a", 1, 1);
            get_job(leases[0].job_id);
            EXPECT_TEXT(job.spec.escalate_model_hash, "teacher-model");
        }
        make_completion(0, "w", COMPLETION_FLAGGED);
        strcpy(completions[0].escalate_pool, "teacher");
        completions[0].escalate_tier = TIER_TEACHER;
        complete(1);
        EXPECT((completed[0].escalated_job_id != 0) == (way == 1));
        get_job(leases[0].job_id);
        EXPECT_INT(job.state, way == 1 ? JOB_FLAGGED : JOB_DEAD);
        if (way == 0) {
            EXPECT_CONTAINS(job.error, "submit the suite again");
        }
    }
    close_store();
}

/* Goal: an outcome, partial or not, answers the question of its job and no other: whatever it says
 * otherwise is refused with a sentence. */
static void outcomes_answer_their_job(void)
{
    static const char *const members[] = {"scenario_id",  "scenario_hash", "seed",    "planner",
                                          "planner_hash", "revision",      "pool",    "tier",
                                          "model_hash",   "sampler",       "backend", "rig"};
    static const enum completion_kind kinds[] = {COMPLETION_DONE, COMPLETION_FLAGGED,
                                                 COMPLETION_PARTIAL};
    open_store(true);
    make_student("a", "student");
    specs[0].rollout_count = 2;
    strcpy(specs[0].planner, "exec:ours");
    strcpy(specs[0].rig, "a rig");
    EXPECT_INT(store->ops->submit(store, "a", 1, specs, 1, submitted, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "rig \"a rig\": expected a SHA-256");
    sha256_hex("a rig", 5, specs[0].rig);
    submit_made("a", 1, 1);
    EXPECT_INT(claim("w", 1), 1);
    for (size_t kind = 0; kind < 3; kind++) {
        for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
            make_completion(0, "w", kinds[kind]);
            uint32_t last = kinds[kind] == COMPLETION_PARTIAL ? 0 : 1;
            for (uint32_t k = 0; k < 2; k++) {
                fill_outcome(&outcomes[k], &leases[0].spec,
                             kinds[kind] == COMPLETION_FLAGGED ? VERDICT_FLAGGED : VERDICT_PASS);
                strcpy(outcomes[k].branch_id, k == 0 ? "" : "swerve");
            }
            completions[0].outcomes = outcomes;
            completions[0].outcome_count = 1 + last;
            struct outcome *lie = &outcomes[last];
            char *texts[] = {lie->scenario_id,  lie->scenario_hash, NULL,         lie->planner,
                             lie->planner_hash, lie->revision,      lie->pool,    NULL,
                             lie->model_hash,   lie->sampler,       lie->backend, lie->rig};
            if (texts[i] != NULL) {
                strcpy(texts[i], i == 3 ? "exec:rival" : "");
            }
            lie->seed += i == 2;
            lie->tier = i == 7 ? TIER_TEACHER : lie->tier;
            expect_refused(members[i]);
            char place[64];
            snprintf(place, sizeof place, "outcome %" PRIu32 ": %s is ", last, members[i]);
            EXPECT_CONTAINS(error.text, place);
            if (i == 3) {
                EXPECT_CONTAINS(error.text,
                                "planner is \"exec:rival\", the job asks for \"exec:ours\"");
            }
            uint32_t own = 0;
            EXPECT_INT(partials_of(leases[0].job_id, "w", &own), 0);
        }
    }
    /* Beside another's, neither is kept; and the truth is. */
    fill_outcome(&outcomes[0], &leases[0].spec, VERDICT_PASS);
    fill_outcome(&outcomes[1], &leases[0].spec, VERDICT_PASS);
    strcpy(outcomes[1].branch_id, "swerve");
    make_completion(0, "w", COMPLETION_DONE);
    completions[0].outcomes = outcomes;
    fill_outcome(&outcomes[0], &leases[0].spec, VERDICT_PASS);
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    EXPECT_INT(status_of("a").rollouts[VERDICT_PASS], 2);
    close_store();
}

/* A job that says otherwise than `specs[0]` in member `i` of the question. */
static void ask_otherwise(struct job_spec *spec, int i)
{
    char hash[SHA256_HEX_BYTES];
    static const char body[] = "{\"id\":\"b\"}";
    sha256_hex(body, sizeof body - 1, hash);
    EXPECT_OK(store->ops->scenario_put(store, hash, body, sizeof body - 1, &error), error);
    switch (i) {
    case 0:
        strcpy(spec->scenario_id, "another");
        break;
    case 1:
        memcpy(spec->scenario_hash, hash, sizeof hash);
        break;
    case 2:
        spec->seed++;
        break;
    case 3:
        strcpy(spec->planner, "exec:rival");
        break;
    case 4:
        strcpy(spec->planner_hash, "x");
        break;
    case 5:
        strcpy(spec->revision, "x");
        break;
    default:
        spec->rollout_count++;
        break;
    }
}

/* Goal: an audit, and a job that answers for another, ask what that one asks. */
static void audits_ask_what_they_repeat(void)
{
    open_store(true);
    make_student("a", "student");
    submit_made("a", 1, 1);
    int64_t audited = submitted[0].job_id;
    for (int as_parent = 0; as_parent < 2; as_parent++) {
        for (int i = 0; i < 8; i++) {
            make_student("a", "student");
            struct job_spec *spec = &specs[0];
            char key[SHA256_HEX_BYTES];
            memcpy(key, spec->key, sizeof key);
            job_escalation_clear(spec);
            spec->tier = i == 7 ? TIER_STUDENT : TIER_TEACHER;
            ask_otherwise(spec, i);
            spec->rollout_count = i == 7 ? 1 : spec->rollout_count;
            snprintf(spec->key, sizeof spec->key, "forged-%d-%d", as_parent, i);
            if (as_parent) {
                spec->parent_job_id = audited;
            } else {
                memcpy(spec->audit_key, key, sizeof key);
            }
            enum status status = store->ops->submit(store, "a", 1, specs, 1, submitted, &error);
            EXPECT_INT(status, as_parent && i == 7 ? STATUS_OK : STATUS_CONFLICT);
            if (i < 7) {
                EXPECT_CONTAINS(error.text, "but asks something else");
            } else if (!as_parent) {
                EXPECT_CONTAINS(error.text, "an audit is answered by a teacher");
            }
        }
    }
    EXPECT_INT(status_of("a").jobs[JOB_QUEUED], 2);
    close_store();
}

/* Goal: what flagged a rollout comes back with it, also a measurement that is not a number. */
static void evidence_comes_back(void)
{
    static struct outcome sent[2];
    struct store_outcome_filter filter = {.limit = 10};
    char picture[SHA256_HEX_BYTES];
    uint32_t count = 0;

    open_store(true);
    make_specs("a", "k", 1);
    specs[0].rollout_count = 2;
    specs[0].tier = TIER_STUDENT; /* of whose pictures something is computed */
    submit_made("a", 1, 1);
    EXPECT_INT(claim("w", 1), 1);
    EXPECT_OK(store->ops->artifact_put(store, "frame", 5, picture, &error), error);
    make_completion(0, "w", COMPLETION_FLAGGED);
    completions[0].mflop = 5000;
    for (int i = 0; i < 2; i++) {
        fill_outcome(&sent[i], &leases[0].spec, VERDICT_FLAGGED);
        sprintf(sent[i].branch_id, "branch-%d", i);
        strcpy(sent[i].health_check, "not_finite");
        sent[i].health_tick = 17;
        sent[i].health_value = i == 0 ? NAN : 2.5;
        sent[i].health_threshold = 0.25;
        sent[i].mflop = 100 + i;
        memset(sent[i].evidence_hash, 'e', i == 0 ? 64 : 0);
    }
    completions[0].outcomes = sent;
    completions[0].outcome_count = 2;
    EXPECT_INT(store->ops->complete(store, completions, 1, completed, &error), STATUS_CONFLICT);
    memcpy(sent[0].evidence_hash, picture, sizeof picture);
    complete(1);
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 2);
    for (int i = 0; i < 2; i++) {
        EXPECT_TEXT(outcomes[i].health_check, "not_finite");
        EXPECT_INT(outcomes[i].health_tick, 17);
        EXPECT(i == 0 ? isnan(outcomes[i].health_value) : outcomes[i].health_value == 2.5);
        EXPECT(outcomes[i].health_threshold == 0.25);
        EXPECT_TEXT(outcomes[i].evidence_hash, i == 0 ? picture : "");
        EXPECT_INT(outcomes[i].mflop, 100 + i);
    }
    EXPECT_INT(status_of("a").mflop, 5000);
    EXPECT_INT(ledger_of("a", "flagged").mflop, 5000);
    close_store();
}

/* Two student jobs and the audit job of the second; in `suite`. */
static void submit_with_audit(const char *suite)
{
    make_specs(suite, "k", 3);
    specs[1].tier = TIER_STUDENT;
    specs[2] = specs[1];
    strcpy(specs[2].key, "twin");
    strcpy(specs[2].pool, "teacher");
    specs[2].tier = TIER_TEACHER;
    strcpy(specs[2].audit_key, specs[1].key);
    submit_made(suite, 1, 3);
}

/* Goal: an audit job is tied to the job that it repeats; its verdicts are not the suite's, its cost
 * is; the same holds where another suite takes its result over. */
static void audits_are_second_opinions(void)
{
    struct store_worker teacher = worker_of("t", "teacher");
    struct store_outcome_filter filter = {.limit = 10};
    uint32_t count = 0;
    int64_t ttl_ms = 0;

    open_store(true);
    make_specs("a", "x", 1);
    strcpy(specs[0].audit_key, "k-1");
    EXPECT_INT(store->ops->submit(store, "a", 1, specs, 1, submitted, &error), STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, "k-1");
    submit_with_audit("a");
    int64_t audited = submitted[1].job_id;
    int64_t audit = submitted[2].job_id;
    make_specs("a", "x", 1);
    strcpy(specs[0].audit_key, "twin"); /* no audits of audits */
    EXPECT_INT(store->ops->submit(store, "a", 1, specs, 1, submitted, &error), STATUS_CONFLICT);
    EXPECT_INT(status_of("a").rollouts_total, 2);
    EXPECT_INT(status_of("a").jobs[JOB_QUEUED], 3);
    EXPECT_INT(claim("w", 9), 2);
    make_completion(0, "w", COMPLETION_DONE);
    make_completion(1, "w", COMPLETION_DONE);
    complete(2);
    EXPECT_OK(
        store->ops->claim(store, &teacher, fresh_claim_id(), 9, 0, leases, &count, &ttl_ms, &error),
        error);
    EXPECT_INT(count, 1);
    EXPECT_TEXT(leases[0].spec.audit_key, "k-1");
    make_completion(0, "t", COMPLETION_DONE);
    completions[0].mflop = 77;
    outcomes[0].verdict = VERDICT_FAIL;
    outcomes[0].reasons = REASON_SCORE;
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    submit_with_audit("b");
    EXPECT(submitted[2].memoised);
    for (int i = 0; i < 2; i++) {
        const char *suite = i == 0 ? "a" : "b";
        struct store_suite_status status = status_of(suite);
        EXPECT_INT(status.jobs[JOB_DONE], 3);
        EXPECT_INT(status.rollouts_total, 2);
        EXPECT_INT(status.rollouts[VERDICT_PASS], 2);
        EXPECT_INT(status.rollouts[VERDICT_FAIL], 0);
        EXPECT_INT(status.rollouts_audit, 1);
        /* The audit's main line, which fails, is in no rate; what was taken over is. */
        const struct store_mains *mains = &status.mains[TIER_STUDENT];
        EXPECT_INT(mains->verdicts[VERDICT_PASS], 1);
        EXPECT_INT(mains->scenarios, 1);
        EXPECT_INT(mains->logical, 1);
        EXPECT(mains->rate == 1 && mains->worst == 1);
        EXPECT_INT(status.mains[TIER_TEACHER].scenarios, 0);
        struct store_planner_mains rows[4];
        EXPECT_OK(store->ops->mains(store, suite, rows, 4, &count, &error), error);
        EXPECT_INT(count, 2); /* the first job's tier, and the students' */
        EXPECT_TEXT(rows[1].planner, status.planner);
        EXPECT(rows[1].tier == TIER_STUDENT && memcmp(&rows[1].mains, mains, sizeof *mains) == 0);
        EXPECT_INT(status.mflop, i == 0 ? 77 : 0);
        EXPECT_INT(status.metres_mm, i == 0 ? 10000 : 0);
        strcpy(filter.suite_id, suite);
        EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
        EXPECT_INT(count, 3);
        EXPECT_INT(outcomes[0].audit_of, 0);
        EXPECT_INT(outcomes[2].job_id, i == 0 ? audit : submitted[2].job_id);
        EXPECT_INT(outcomes[2].audit_of, i == 0 ? audited : submitted[1].job_id);
    }
    /* One that ends dead leaves no question open. */
    EXPECT_INT(status_of("a").audits_dead, 0);
    submit_with_audit("c");
    EXPECT(submitted[2].memoised);
    make_specs("c", "y", 1);
    strcpy(specs[0].pool, "teacher");
    specs[0].tier = TIER_TEACHER;
    strcpy(specs[0].audit_key, "k-0");
    submit_made("c", 1, 1);
    EXPECT_OK(
        store->ops->claim(store, &teacher, fresh_claim_id(), 9, 0, leases, &count, &ttl_ms, &error),
        error);
    EXPECT_INT(count, 1);
    complete_one("t", COMPLETION_FLAGGED);
    EXPECT_INT(status_of("c").jobs[JOB_DEAD], 1);
    EXPECT_INT(status_of("c").audits_dead, 1);
    EXPECT_INT(status_of("c").rollouts[VERDICT_FLAGGED], 0);
    struct store_ledger_row rows[8];
    EXPECT_OK(store->ops->ledger(store, "a", rows, 8, &count, &error), error);
    int64_t audits = 0;
    for (uint32_t i = 0; i < count; i++) {
        audits += rows[i].audit ? rows[i].totals.attempts : 0;
        EXPECT_INT(rows[i].audit, strcmp(rows[i].pool, "teacher") == 0);
    }
    EXPECT_INT(audits, 1);
    EXPECT_INT(ledger_of("a", "done").attempts, 3);
    close_store();
}

static void make_golden(struct job_spec *spec)
{
    strcpy(spec->makes, JOB_MAKES_GOLDEN);
    spec->tier = TIER_STUDENT;
    strcpy(spec->model_hash, "student-model");
    strcpy(spec->sampler, "agents/euler2/bf16");
}

/* Goal: a job that makes something is leased, paid and kept like any other, answers no question of
 * a suite's, is nobody's memo that asks for a verdict, and escalates to nobody. */
static void what_is_made_is_no_result(void)
{
    static const char *const wrong[] = {"films",   "clip:",    "clip:0",
                                        "clip:01", "clip:601", "clip:1x"};
    struct store_outcome_filter filter = {.limit = 10, .suite_id = "a"};
    uint32_t count = 0;

    open_store(true);
    for (size_t i = 0; i <= COUNT_OF(wrong); i++) {
        make_specs("a", "x", 1);
        strcpy(specs[0].makes, i < COUNT_OF(wrong) ? wrong[i] : JOB_MAKES_GOLDEN);
        specs[0].follows = i == COUNT_OF(wrong);
        EXPECT_INT(store->ops->submit(store, "a", 1, specs, 1, submitted, &error),
                   STATUS_BAD_INPUT);
        EXPECT_CONTAINS(error.text, "makes");
    }
    for (int tier = 0; tier < TIER_COUNT; tier++) { /* of no world that makes it */
        for (int clip = 0; clip < 2; clip++) {
            bool fits =
                tier == TIER_STUDENT || tier == TIER_TEACHER || (clip == 1 && tier == TIER_OBJECT);
            make_specs("tiers", fits ? "y" : "z", 1);
            specs[0].tier = (enum tier)tier;
            strcpy(specs[0].makes, clip == 1 ? JOB_MAKES_CLIP "1" : JOB_MAKES_GOLDEN);
            if (!fits) {
                EXPECT_INT(store->ops->submit(store, "tiers", 1, specs, 1, submitted, &error),
                           STATUS_BAD_INPUT);
                EXPECT_CONTAINS(error.text, "student or teacher, found");
            }
        }
    }
    make_specs("a", "k", 2);
    make_golden(&specs[0]);
    strcpy(specs[1].makes, JOB_MAKES_CLIP "600");
    submit_made("a", 1, 2);
    EXPECT_INT(status_of("a").rollouts_total, 0);
    EXPECT_INT(claim("w", 9), 2);
    EXPECT_TEXT(leases[0].spec.makes, JOB_MAKES_GOLDEN);
    EXPECT_TEXT(leases[1].spec.makes, JOB_MAKES_CLIP "600");
    make_completion(0, "w", COMPLETION_DONE);
    make_completion(1, "w", COMPLETION_FLAGGED);
    complete(2);
    struct store_suite_status status = status_of("a");
    EXPECT_INT(status.jobs[JOB_DONE], 1);
    EXPECT_INT(status.jobs[JOB_DEAD], 1); /* the same command makes it again */
    EXPECT_INT(status.audits_dead, 0);
    EXPECT_INT(status.rollouts_audit, 2);
    EXPECT_INT(status.rollouts[VERDICT_PASS] + status.rollouts[VERDICT_FLAGGED], 0);
    EXPECT_INT(status.mains[TIER_OBJECT].scenarios + status.mains[TIER_OBJECT].no_answer, 0);
    EXPECT(status.cost_uusd ==
           ledger_of("a", "done").cost_uusd + ledger_of("a", "flagged").cost_uusd);
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 2);
    EXPECT_INT(outcomes[0].audit_of, outcomes[0].job_id);
    make_specs("b", "k", 1); /* the same key and question, but for its verdict */
    submit_made("b", 1, 1);
    EXPECT(!submitted[0].memoised);
    make_specs("c", "k", 1);
    make_golden(&specs[0]);
    submit_made("c", 1, 1);
    EXPECT(submitted[0].memoised);
    EXPECT_INT(status_of("c").rollouts_audit, 1);
    close_store();
}

/* Futures of job "k-1", in the pool of the object world. */
static void make_futures(const char *suite, const char *key, const char *makes)
{
    make_specs(suite, "k", 2);
    specs[0] = specs[1];
    snprintf(specs[0].key, sizeof specs[0].key, "%s", key);
    strcpy(specs[0].audit_key, "k-1");
    snprintf(specs[0].makes, sizeof specs[0].makes, "%s", makes);
    specs[0].rollout_count = 1;
}

static void futures_are_refused(void)
{
    static const char *const wrong[] = {"futures:",    "futures:1",    "futures:01:4",
                                        "futures:1:0", "futures:1:64", "futures:6000:4",
                                        "futures:1:4x"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        make_futures("a", "f", wrong[i]);
        EXPECT_INT(store->ops->submit(store, "a", 1, specs, 1, submitted, &error),
                   STATUS_BAD_INPUT);
        EXPECT_CONTAINS(error.text, "futures:TICK:DRAWS");
    }
    make_futures("a", "f", "futures:37:4");
    specs[0].audit_key[0] = '\0';
    EXPECT_INT(store->ops->submit(store, "a", 1, specs, 1, submitted, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "the job whose futures they are");
    make_futures("a", "f", "futures:37:4");
    specs[0].tier = TIER_TEACHER;
    EXPECT_INT(store->ops->submit(store, "a", 1, specs, 1, submitted, &error), STATUS_BAD_INPUT);
    make_futures("a", "f", "futures:37:4");
    specs[0].seed += 1;
    EXPECT_INT(store->ops->submit(store, "a", 1, specs, 1, submitted, &error), STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, "it makes futures of job");
}

/* Goal: futures of a drive are kept once, with the outcome of the job that makes them, which is in
 * no rate and no pair, and looks at the drive's job; no other outcome has any. */
static void futures_are_kept_once(void)
{
    static const struct outcome_futures kept = {FUTURES_DRIVEN, 37, 4, 3, 1, 0, 4, 2, 0};
    struct store_outcome_filter filter = {.limit = 10, .suite_id = "a"};
    struct store_slice slices[8];
    uint32_t count = 0;
    int64_t next = 0;

    open_store(true);
    submit_plain("a", "k", 2);
    int64_t looked_at = submitted[1].job_id;
    EXPECT_INT(claim("w", 9), 2);
    make_completion(0, "w", COMPLETION_DONE);
    make_completion(1, "w", COMPLETION_DONE);
    outcomes[1].futures = kept;
    EXPECT_INT(store->ops->complete(store, completions, 2, completed, &error), STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, "the job makes \"\"");
    outcomes[1].futures = (struct outcome_futures){.state = FUTURES_NONE};
    complete(2);
    futures_are_refused();
    make_futures("a", "f", "futures:37:4");
    submit_made("a", 1, 1);
    int64_t makes = submitted[0].job_id;
    make_futures("a", "other", "futures:12:4"); /* whatever was asked first is asked */
    submit_made("a", 1, 1);
    EXPECT(submitted[0].existed);
    EXPECT_INT(submitted[0].job_id, makes);
    EXPECT_INT(claim("w", 9), 1);
    EXPECT_TEXT(leases[0].spec.makes, "futures:37:4");
    make_completion(0, "w", COMPLETION_DONE);
    EXPECT_INT(store->ops->complete(store, completions, 1, completed, &error), STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, "its futures are none");
    outcomes[0].futures = kept;
    outcomes[0].futures.idm_failed = 2;
    EXPECT_INT(store->ops->complete(store, completions, 1, completed, &error), STATUS_BAD_INPUT);
    EXPECT_CONTAINS(error.text, "than draws");
    outcomes[0].futures = kept;
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    struct store_suite_status status = status_of("a");
    EXPECT_INT(status.rollouts_total, 2);
    EXPECT_INT(status.rollouts_audit, 1);
    EXPECT_INT(status.mains[TIER_OBJECT].verdicts[VERDICT_PASS], 2);
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 3);
    EXPECT(memcmp(&outcomes[2].futures, &kept, sizeof kept) == 0);
    EXPECT_INT(outcomes[2].audit_of, looked_at);
    EXPECT(outcome_is_made(&outcomes[2]) && !outcome_is_made(&outcomes[1]));
    if (store->ops->slices_page != NULL) {
        EXPECT_OK(store->ops->slices_page(store, "a", 0, slices, &count, &next, &error), error);
        for (uint32_t i = 0; i < count && i < COUNT_OF(slices); i++) {
            EXPECT_INT(slices[i].audited, 0);
        }
    }
    close_store();
}

/* Goal: a completion that contradicts the store is refused as a whole. */
static void wrong_completions_are_refused(void)
{
    open_store(true);
    submit_plain("a", "k", 2);
    EXPECT_INT(claim("w", 2), 2);
    make_completion(0, "w", COMPLETION_DONE);
    make_completion(1, "w", COMPLETION_DONE);
    memset(completions[1].artifact_hash, 'c', 64);
    EXPECT_INT(store->ops->complete(store, completions, 2, completed, &error), STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, "artifact");
    completions[1].artifact_hash[0] = '\0';
    completions[1].outcome_count = 0;
    EXPECT_INT(store->ops->complete(store, completions, 2, completed, &error), STATUS_CONFLICT);
    completions[1].outcome_count = 1;
    outcomes[1].verdict = VERDICT_FLAGGED;
    EXPECT_INT(store->ops->complete(store, completions, 2, completed, &error), STATUS_BAD_INPUT);
    completions[1].device_ns = -1;
    EXPECT_INT(store->ops->complete(store, completions, 2, completed, &error), STATUS_BAD_INPUT);
    EXPECT_INT(status_of("a").jobs[JOB_LEASED], 2);
    EXPECT_INT(ledger_of("a", NULL).attempts, 0);
    close_store();
}
/* ---- money ---- */

/* Goal: entries add up to the cost of the sum, within one micro-dollar per price, through changes
 * of price and over reopening. Method: random durations against exact 128-bit arithmetic. */
static void the_ledger_adds_up(void)
{
    static const int64_t prices[] = {40000, 1, 999983, 0};
    __int128 exact = 0;
    int64_t price = 0;

    open_store(true);
    EXPECT_OK(store->ops->price_get(store, "bulk", "cpu", &price, &error), error);
    EXPECT_INT(price, 40000);
    EXPECT_INT(store->ops->price_set(store, "bulk", "cpu", -1, &error), STATUS_BAD_INPUT);
    EXPECT_INT(store->ops->price_get(store, "bulk", "abacus", &price, &error), STATUS_NOT_FOUND);
    for (uint32_t round = 0; round < 4; round++) {
        EXPECT_OK(store->ops->price_set(store, "bulk", "cpu", prices[round], &error), error);
        submit_plain("a", (const char[]){(char)('k' + (char)round), '\0'}, 200);
        for (uint32_t done = 0; done < 200;) {
            uint32_t count = claim("w", 7);
            EXPECT(count > 0);
            for (uint32_t i = 0; i < count; i++) {
                make_completion(i, "w", COMPLETION_DONE);
                completions[i].device_ns = (int64_t)(rng_mix(round * 1000 + done + i) >> 30);
                exact += (__int128)completions[i].device_ns * prices[round];
            }
            complete(count);
            done += count;
        }
        close_store();
        open_store(false);
    }
    struct ledger_totals totals = ledger_of(NULL, NULL);
    EXPECT_INT(totals.attempts, 800);
    EXPECT_NEAR((double)(int64_t)(exact / NS_PER_HOUR - totals.cost_uusd), 1.5, 2.5);
    EXPECT_INT(status_of("a").cost_uusd, totals.cost_uusd);
    EXPECT_INT(ledger_of("a", "done").cost_uusd, totals.cost_uusd);
    close_store();
}
/* ---- reading ---- */

/* Goal: filters select, pages meet end to end. */
static void outcomes_are_filtered_and_paged(void)
{
    struct store_outcome_filter filter = {.limit = 7, .suite_id = "a"};
    uint32_t count = 0;
    uint32_t seen = 0;
    int64_t last_job = 0;

    open_store(true);
    submit_plain("a", "k", 40);
    submit_plain("b", "m", 5);
    for (uint32_t got = claim("w", 11); got > 0; got = claim("w", 11)) {
        for (uint32_t i = 0; i < got; i++) {
            make_completion(i, "w", COMPLETION_DONE);
            outcomes[i].verdict = leases[i].spec.seed % 4 == 0 ? VERDICT_FAIL : VERDICT_PASS;
            outcomes[i].reasons = leases[i].spec.seed % 4 == 0 ? REASON_SCORE : 0;
            last_job = leases[i].job_id;
        }
        complete(got);
    }
    do {
        EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
        for (uint32_t i = 0; i < count; i++) {
            EXPECT(outcomes[i].id > filter.after_id);
            EXPECT_TEXT(outcomes[i].suite_id, "a");
            filter.after_id = outcomes[i].id;
        }
        seen += count;
    } while (count == filter.limit);
    EXPECT_INT(seen, 40);
    filter = (struct store_outcome_filter){
        .limit = 1000, .suite_id = "a", .by_verdict = true, .verdict = VERDICT_FAIL};
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 10);
    filter = (struct store_outcome_filter){.limit = 1000, .scenario_id = "scenario-3"};
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 2);
    filter = (struct store_outcome_filter){.limit = 1000, .job_id = last_job};
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 1);
    struct outcome last = outcomes[0];
    filter.by_verdict = true; /* all at once */
    filter.verdict = last.verdict;
    memcpy(filter.suite_id, last.suite_id, sizeof filter.suite_id);
    memcpy(filter.scenario_id, last.scenario_id, sizeof filter.scenario_id);
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_INT(outcomes[0].id, last.id);
    filter.scenario_id[0] = 'S';
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 0);
    filter = (struct store_outcome_filter){.limit = 1000, .outcome_id = last.id};
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 1);
    filter = (struct store_outcome_filter){.limit = 1000, .outcome_id = outcomes[0].id};
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_INT(outcomes[0].id, filter.outcome_id);
    filter = (struct store_outcome_filter){.limit = 1001};
    EXPECT(store->ops->outcomes(store, &filter, outcomes, &count, &error) != STATUS_OK);
    close_store();
}

/* Queued and leased jobs of a tier as their own records say. */
static void count_jobs(enum tier tier, const int64_t *ids, uint32_t count, int64_t *queued,
                       int64_t *leased)
{
    *queued = *leased = 0;
    for (uint32_t i = 0; i < count; i++) {
        get_job(ids[i]);
        *queued += job.spec.tier == tier && job.state == JOB_QUEUED;
        *leased += job.spec.tier == tier && job.state == JOB_LEASED;
    }
}

/* Submits up to five jobs of 30 ticks, every other one of the tier replay. */
static uint32_t submit_some(uint64_t drawn, int step, int64_t *ids)
{
    static const char body[] = "{\"id\":\"a\",\"horizon_s\":3}";
    char suite[16];
    char tag[16];
    uint32_t count = 1 + (uint32_t)(drawn >> 8) % 5;
    snprintf(suite, sizeof suite, "s%d", (int)(drawn >> 16) % 3);
    snprintf(tag, sizeof tag, "k%d", step);
    make_specs(suite, tag, count);
    for (uint32_t i = 0; i < count; i++) {
        sha256_hex(body, sizeof body - 1, specs[i].scenario_hash);
        specs[i].tier = i % 2 == 0 ? TIER_OBJECT : TIER_REPLAY;
    }
    EXPECT_OK(
        store->ops->scenario_put(store, specs[0].scenario_hash, body, sizeof body - 1, &error),
        error);
    submit_made(suite, 1, count);
    for (uint32_t i = 0; i < count; i++) {
        ids[i] = submitted[i].job_id;
    }
    advance_ms(2000);
    return count;
}

/* Goal: what is said to wait is what the jobs' own records say, through random submissions, claims
 * and ends; and a tick's time is that of the rollouts. */
static void demand_is_what_waits(void)
{
    enum { STEPS = 60, TICKS = 30 };
    static const enum completion_kind kinds[] = {COMPLETION_DONE, COMPLETION_FAILED,
                                                 COMPLETION_RELEASED};
    struct store_demand rows[8];
    int64_t ids[STEPS * 5];
    uint32_t known = 0;
    uint32_t count = 0;
    uint64_t drawn = 7;
    open_store(true);
    if (store->ops->demand == NULL) {
        close_store();
        return;
    }
    EXPECT_OK(store->ops->demand(store, rows, 8, &count, &error), error);
    EXPECT_INT(count, 0);
    for (int step = 0; step < STEPS; step++) {
        drawn = rng_mix(drawn + 1);
        if (drawn % 3 == 0) {
            known += submit_some(drawn, step, &ids[known]);
        } else {
            uint32_t got = claim("w", 1 + (uint32_t)(drawn >> 8) % 3);
            uint32_t ended = step % 4 == 0 ? 0 : got; /* the others stay leased */
            for (uint32_t i = 0; i < ended; i++) {
                make_completion(i, "w", kinds[drawn % 3 == 1 ? 0 : 1 + i % 2]);
            }
            complete(ended);
        }
        EXPECT_OK(store->ops->demand(store, rows, 8, &count, &error), error);
        for (uint32_t i = 0; i < count; i++) {
            int64_t queued = 0;
            int64_t leased = 0;
            count_jobs(rows[i].tier, ids, known, &queued, &leased);
            EXPECT_INT(rows[i].jobs_queued, queued);
            EXPECT_INT(rows[i].jobs_leased, leased);
            EXPECT_INT(rows[i].ticks_queued, queued * TICKS);
            EXPECT((rows[i].age_ms > 0) == (queued > 0));
            EXPECT(rows[i].workers_busy <= rows[i].workers_alive);
            EXPECT_INT(rows[i].tick_ns, rows[i].rollouts_seen > 0 ? NS_PER_S / 100 : 0);
            EXPECT_INT(rows[i].tick_p99_ns, rows[i].tick_ns);
        }
    }
    EXPECT_INT(count, 2);
    close_store();
}

int conformance_results(const struct conformance_backend *tested)
{
    backend = tested;
    return finish_half(TEST_RUN(
        TEST(outcomes_come_back), TEST(missing_metrics_come_back),
        TEST(invalid_rollouts_are_counted_apart), TEST(replays_change_nothing),
        TEST(finished_rollouts_outlive_their_attempt), TEST(checkpoints_give_way),
        TEST(outcomes_say_when_they_came), TEST(partial_outcomes_are_their_tokens),
        TEST(ended_jobs_keep_no_partial_outcomes), TEST(bad_partial_outcomes_are_refused),
        TEST(late_completions_are_fenced), TEST(unclaimed_work_is_still_accepted),
        TEST(failures_back_off_and_die), TEST(released_jobs_are_queued_at_once),
        TEST(one_host_is_excused), TEST(rates_stand_by_planner), TEST(one_world_is_left_alone),
        TEST(two_hosts_blame_the_planner), TEST(a_driven_planner_is_not_blamed),
        TEST(flagged_jobs_are_escalated), TEST(successors_keep_their_identity),
        TEST(flags_name_no_job_of_their_own), TEST(successors_take_over_what_the_call_brings),
        TEST(jobs_that_name_nobody_can_be_named_later), TEST(outcomes_answer_their_job),
        TEST(audits_ask_what_they_repeat), TEST(evidence_comes_back),
        TEST(audits_are_second_opinions), TEST(what_is_made_is_no_result),
        TEST(futures_are_kept_once), TEST(wrong_completions_are_refused), TEST(the_ledger_adds_up),
        TEST(outcomes_are_filtered_and_paged), TEST(demand_is_what_waits),
        TEST(drains_know_what_may_come_back)));
}
