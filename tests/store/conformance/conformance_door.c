/*
 * The conformance suite's fifth part: what is refused at the door. See conformance.h.
 *
 * Goal: whatever `swerve check` calls damage is refused when it arrives, with a sentence that names
 * the member, and nothing is changed by the call. Method: one lie in a call that is honest but for
 * it; then the honest one, which is taken. Behind each test the embedded backend's store is
 * checked.
 */
#include "base/check.h"
#include "base/sha256.h"
#include "base/utf8.h"
#include "tests/claim_ids.h"
#include "tests/store/conformance/conformance_kit.h"

#include <math.h>
#include <string.h>

/* Branches that have names, and a job of all of them. */
#define BRANCHED                                                                                  \
    "{\"branches\":[{\"at_tick\":4,\"id\":\"left\"},{\"at_tick\":5,\"id\":\"right\"}],\"horizon_" \
    "s\":2,"                                                                                      \
    "\"id\":\"branched\"}"

/* `count` leased jobs with their branches. */
static void claim_branched(const char *suite, uint32_t count)
{
    char hash[SHA256_HEX_BYTES];
    sha256_hex(BRANCHED, sizeof BRANCHED - 1, hash);
    EXPECT_OK(store->ops->scenario_put(store, hash, BRANCHED, sizeof BRANCHED - 1, &error), error);
    make_specs(suite, suite, count);
    for (uint32_t i = 0; i < count; i++) {
        memcpy(specs[i].scenario_hash, hash, sizeof hash);
        specs[i].rollout_count = 3;
        job_key_make(&specs[i], 0);
    }
    submit_made(suite, 1, count);
    EXPECT_INT(claim("w", count), count);
}

/* completions[0] with these branches; NULL ends the list. */
static struct job_completion *bring(enum completion_kind kind, const char *const *names)
{
    struct job_completion *completion = make_completion(0, "w", kind);
    char traces[SHA256_HEX_BYTES];
    uint32_t count = 0;
    EXPECT_OK(store->ops->artifact_put(store, "traces", 6, traces, &error), error);
    for (; names[count] != NULL; count++) {
        fill_outcome(&outcomes[count], &leases[0].spec,
                     kind == COMPLETION_FLAGGED ? VERDICT_FLAGGED : VERDICT_PASS);
        strcpy(outcomes[count].branch_id, names[count]);
        sha256_hex("trace", 5, outcomes[count].trace_hash);
        memcpy(outcomes[count].artifact_hash, traces, sizeof traces);
    }
    completion->outcomes = outcomes;
    completion->outcome_count = count;
    return completion;
}

static void refuse(enum status expected, const char *sentence)
{
    struct store_suite_status before = status_of("a");
    error.text[0] = '\0';
    EXPECT_INT(store->ops->complete(store, completions, 1, completed, &error), expected);
    EXPECT_CONTAINS(error.text, sentence);
    struct store_suite_status after = status_of("a");
    EXPECT(memcmp(&before, &after, sizeof before) == 0);
}

static void completions_bring_each_rollout_once(void)
{
    static const char *const doubled[] = {"", "left", "left", NULL};
    static const char *const main_twice[] = {"", "", "right", NULL};
    static const char *const unknown[] = {"", "left", "up", NULL};
    static const char *const without_main[] = {"x", "left", "right", NULL};
    static const char *const few[] = {"", "left", NULL};
    static const char *const whole[] = {"right", "", "left", NULL}; /* in any order */

    open_store(true);
    claim_branched("a", 1);
    bring(COMPLETION_DONE, doubled);
    refuse(STATUS_CONFLICT, "branch \"left\" has another outcome");
    bring(COMPLETION_DONE, main_twice);
    refuse(STATUS_CONFLICT, "has another outcome");
    bring(COMPLETION_DONE, unknown);
    refuse(STATUS_CONFLICT, "branch \"up\" is none of the scenario's");
    bring(COMPLETION_DONE, without_main);
    refuse(STATUS_CONFLICT, "branch \"x\" is none of the scenario's");
    bring(COMPLETION_DONE, few);
    refuse(STATUS_CONFLICT, "expected 3 to 3");
    bring(COMPLETION_PARTIAL, doubled);
    refuse(STATUS_CONFLICT, "has another outcome");
    bring(COMPLETION_FLAGGED, unknown);
    refuse(STATUS_CONFLICT, "is none of the scenario's");
    bring(COMPLETION_DONE, whole);
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    close_store();
}

/* Of a job of one rollout there is the main line; of a scenario that names no branches, as many
 * rollouts as the job has, each by a name of its own. */
static void rollouts_without_names_are_counted(void)
{
    static const char *const a_branch[] = {"left", NULL};
    static const char *const main_line[] = {"", NULL};
    static const char *const doubled[] = {"", "b1", "b1", NULL};
    static const char *const no_main[] = {"b1", "b2", "b3", NULL};
    static const char *const whole[] = {"", "b1", "b2", NULL};

    open_store(true);
    submit_plain("a", "k", 1);
    EXPECT_INT(claim("w", 1), 1);
    bring(COMPLETION_DONE, a_branch);
    refuse(STATUS_CONFLICT, "is none of the scenario's");
    bring(COMPLETION_DONE, main_line);
    complete(1);
    make_specs("a", "l", 1);
    specs[0].rollout_count = 3;
    submit_made("a", 1, 1);
    EXPECT_INT(claim("w", 1), 1);
    bring(COMPLETION_DONE, doubled);
    refuse(STATUS_CONFLICT, "has another outcome");
    bring(COMPLETION_DONE, no_main);
    refuse(STATUS_CONFLICT, "no outcome of the main line");
    bring(COMPLETION_DONE, whole);
    complete(1);
    EXPECT_INT(status_of("a").jobs[JOB_DONE], 2);
    close_store();
}

static void a_flag_brings_its_evidence(void)
{
    static const char *const main_line[] = {"", NULL};

    open_store(true);
    submit_plain("a", "k", 1);
    EXPECT_INT(claim("w", 1), 1);
    bring(COMPLETION_FLAGGED, main_line);
    completions[0].outcome_count = 0;
    refuse(STATUS_CONFLICT, "its flagged completion brings 0 outcomes");
    completions[0].outcome_count = 1;
    outcomes[0].health_check[0] = '\0';
    refuse(STATUS_CONFLICT, "expected an outcome of the verdict flagged");
    strcpy(outcomes[0].health_check, "frozen");
    outcomes[0].verdict = VERDICT_FAIL;
    refuse(STATUS_BAD_INPUT, "fail: expected a reason");
    outcomes[0].reasons = REASON_TTC;
    outcomes[0].health_check[0] = '\0';
    refuse(STATUS_CONFLICT, "expected an outcome of the verdict flagged");
    outcomes[0].reasons = 0;
    strcpy(outcomes[0].health_check, "frozen");
    outcomes[0].verdict = VERDICT_FLAGGED;
    complete(1);
    EXPECT_INT(status_of("a").jobs[JOB_FLAGGED] + status_of("a").jobs[JOB_DEAD], 1);
    close_store();
}

/* Also over several calls, of a scenario that does not say what its branches are called. */
static void partial_outcomes_are_no_more_than_rollouts(void)
{
    static const char *const unknown[] = {"up", NULL};
    static const char *const left[] = {"left", NULL};
    uint32_t count = 0;

    open_store(true);
    claim_branched("a", 1);
    int64_t id = leases[0].job_id;
    bring(COMPLETION_PARTIAL, unknown);
    refuse(STATUS_CONFLICT, "branch \"up\" is none of the scenario's");
    bring(COMPLETION_PARTIAL, left);
    outcomes[0].artifact_hash[0] = '\0';
    refuse(STATUS_BAD_INPUT, "needs the artifact");
    bring(COMPLETION_PARTIAL, left);
    complete(1);
    complete(1); /* a replay */
    EXPECT_OK(store->ops->partials(store, id, outcomes, 4, &count, &error), error);
    EXPECT_INT(count, 1);
    make_specs("a", "l", 1);
    specs[0].rollout_count = 3;
    submit_made("a", 1, 1);
    EXPECT_INT(claim("w", 1), 1);
    for (int i = 0; i < 4; i++) {
        char name[2][LIMIT_ID_BYTES];
        const char *names[3] = {name[0], name[1], NULL};
        sprintf(name[0], "b%d", 2 * i);
        sprintf(name[1], "b%d", 2 * i + 1);
        bring(COMPLETION_PARTIAL, names);
        if (i == 0) {
            complete(1);
            continue;
        }
        refuse(STATUS_CONFLICT, "would have 4 partial outcomes");
    }
    close_store();
}

/* Numbers beyond what there is; all reasons that there are. */
static void outcomes_are_within_their_range(void)
{
    static const char *const main_line[] = {"", NULL};
    uint32_t count = 0;
    struct store_outcome_filter filter = {.limit = 10};

    open_store(true);
    submit_plain("a", "k", 1);
    EXPECT_INT(claim("w", 1), 1);
    bring(COMPLETION_DONE, main_line);
    outcomes[0].metrics.collision_agent = -2;
    refuse(STATUS_BAD_INPUT, "collision_agent: expected -1 to 255, found -2");
    outcomes[0].metrics.collision_agent = -1;
    outcomes[0].metres_mm = INT64_C(10000000000001);
    refuse(STATUS_BAD_INPUT, "outcome 0: metres_mm: expected 0 to");
    outcomes[0].metres_mm = 5;
    outcomes[0].prefix_ticks = outcomes[0].ticks + 1;
    refuse(STATUS_BAD_INPUT, "expected prefix_ticks of at most ticks");
    outcomes[0].prefix_ticks = 0;
    completions[0].mflop = INT64_C(1000000000000001);
    refuse(STATUS_BAD_INPUT, "mflop: expected 0 to 1000000000000000, found 1000000000000001");
    completions[0].mflop = 0;
    outcomes[0].verdict = VERDICT_FAIL;
    outcomes[0].reasons = (1U << REASON_BIT_COUNT) - 1;
    outcomes[0].metrics.at_fault = true;
    outcomes[0].metrics.collision_count = 1;
    outcomes[0].metrics.no_at_fault_collision = 0;
    outcomes[0].metrics.drivable_area = outcomes[0].metrics.driving_direction = 0;
    outcomes[0].metrics.goal_reached = false;
    complete(1);
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_INT(outcomes[0].reasons, (1U << REASON_BIT_COUNT) - 1);
    close_store();
}

/* Figures of metrics that no drive measures; infinity and none at all, where they say something. */
static void metrics_are_within_their_range(void)
{
    static const char *const main_line[] = {"", NULL};
    struct metrics *metrics = &outcomes[0].metrics;
    const struct {
        double *metric;
        double value;
        const char *sentence;
    } lies[] = {
        {&metrics->score, 7, "score: expected 0 to 1, found 7"},
        {&metrics->score, -1, "score: expected 0 to 1, found -1"},
        {&metrics->score, INFINITY, "score: expected 0 to 1, found inf"},
        {&metrics->score, 1e308, "score: expected 0 to 1, found 1e+308"},
        {&metrics->progress, INFINITY, "progress: expected 0 to 1, found inf"},
        {&metrics->distance_m, -5, "distance_m: expected 0 to 72012, found -5"},
        {&metrics->distance_m, 1e300, "distance_m: expected 0 to 72012, found 1e+300"},
        {&metrics->distance_m, 1213, "distance_m: expected 12 m a tick at most"},
        {&metrics->min_ttc_s, -3, "min_ttc_s: expected 0 to 4 or infinite, found -3"},
        {&metrics->min_ttc_s, -INFINITY, "min_ttc_s: expected 0 to 4 or infinite, found -inf"},
        {&metrics->impact_speed_mps, -3, "impact_speed_mps: expected 0 to 1000, found -3"},
        {&metrics->speed_max_mps, 1e9, "speed_max_mps: expected 0 to 1000, found 1e+09"},
    };

    open_store(true);
    submit_plain("a", "k", 1);
    EXPECT_INT(claim("w", 1), 1);
    bring(COMPLETION_DONE, main_line);
    for (size_t i = 0; i < COUNT_OF(lies); i++) {
        double was = *lies[i].metric;
        *lies[i].metric = lies[i].value;
        refuse(STATUS_BAD_INPUT, lies[i].sentence);
        *lies[i].metric = was;
    }
    metrics->intervention_count = 4000000000U;
    refuse(STATUS_BAD_INPUT, "intervention_count: expected 0 to 6000, found 4000000000");
    metrics->intervention_count = 0;
    metrics->collision_count = UINT32_MAX;
    refuse(STATUS_BAD_INPUT, "collision_count: expected 0 to 256, found 4294967295");
    metrics->collision_count = 0;
    metrics->collision_tick = 101; /* of 100 */
    refuse(STATUS_BAD_INPUT, "expected collision_tick of at most ticks");
    metrics->collision_tick = UINT32_MAX;
    metrics->collision_agent = 256;
    refuse(STATUS_BAD_INPUT, "collision_agent: expected -1 to 255, found 256");
    metrics->collision_agent = -1;
    metrics->min_ttc_s = metrics->min_distance_m = INFINITY;
    metrics->impact_speed_mps = metrics->total_cost = NAN;
    metrics->no_at_fault_collision = metrics->ttc = 1;
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    close_store();
}

/* Fails whose metrics say the contrary. */
static void refuse_reasons_without_cause(void)
{
    struct outcome *outcome = &outcomes[0];
    const struct outcome was = *outcome;
    const struct {
        uint32_t reason;
        const char *sentence;
    } cases[] = {
        {REASON_AT_FAULT_COLLISION, "at_fault_collision: expected at_fault"},
        {REASON_COLLISION, "collision: expected a contact"},
        {REASON_OFF_DRIVABLE, "off_drivable: expected drivable_area 0"},
        {REASON_WRONG_DIRECTION, "wrong_direction: expected driving_direction 0"},
        {REASON_GOAL_NOT_REACHED, "goal_not_reached: expected goal_reached false"},
    };
    outcome->verdict = VERDICT_FAIL;
    outcome->metrics.at_fault = false;
    outcome->metrics.collision_count = 0;
    outcome->metrics.drivable_area = outcome->metrics.driving_direction = 1;
    outcome->metrics.goal_reached = true;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        outcome->reasons = cases[i].reason;
        refuse(STATUS_BAD_INPUT, cases[i].sentence);
    }
    *outcome = was;
}

/* Figures of a world without a model; measures, and checks, that no drive has. */
static void refuse_forged_health(void)
{
    struct outcome *outcome = &outcomes[0];
    const struct outcome was = *outcome;
    outcome->mflop = 1;
    refuse(STATUS_BAD_INPUT, "mflop: expected 0 of a world without a model");
    *outcome = was;
    outcome->metrics.intervention_count = outcome->ticks + 2;
    refuse(STATUS_BAD_INPUT, "expected intervention_count of at most a tick's each");
    *outcome = was;
    outcome->health.worst[MEASURE_OFFSET] = INFINITY;
    refuse(STATUS_BAD_INPUT, "health: expected a worst and a mean of a measure, finite");
    outcome->health.worst[MEASURE_OFFSET] = 1;
    outcome->health.mean[MEASURE_OFFSET] = 2;
    refuse(STATUS_BAD_INPUT, "health: expected no mean of a measure beyond its worst");
    *outcome = was;
    outcome->verdict = VERDICT_INVALID;
    outcome->reasons = 0;
    strcpy(outcome->health_check, "no such <b>");
    refuse(STATUS_BAD_INPUT, "health_check: expected letters a to z");
    strcpy(outcome->health_check, "sideslip");
    outcome->health_tick = outcome->ticks + 1;
    refuse(STATUS_BAD_INPUT, "expected health_tick of at most ticks");
    *outcome = was;
}

/* Outcomes that contradict themselves are refused; the honest one of each verdict
 * is taken. */
/* Members of outcomes[0], a pass, that no drive has; it is as before then. */
static void refuse_forged_drives(void)
{
    static const char *const hashes[] = {
        "zz", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"};
    static const char *const sights[] = {"front", "bev,", "\x1b[31m", "chunks:1+x"};
    struct outcome *outcome = &outcomes[0];
    const struct outcome honest = *outcome;
    for (size_t i = 0; i < COUNT_OF(hashes); i++) {
        strcpy(outcome->trace_hash, hashes[i]);
        refuse(STATUS_BAD_INPUT, "trace_hash: expected 64 digits of 0 to 9 and a to f");
    }
    memset(outcome->trace_hash, 'a', sizeof outcome->trace_hash - 1);
    for (size_t i = 0; i < COUNT_OF(sights); i++) {
        strcpy(outcome->given, sights[i]);
        refuse(STATUS_BAD_INPUT, "given: expected sights");
    }
    strcpy(outcome->given, "bev,cameras,objects:seen,map,chunks:9+12@30");
    outcome->metrics.total_cost = NAN;
    outcome->metrics.score = NAN;
    refuse(STATUS_BAD_INPUT, "score: expected one of a drive that passed or failed, found none");
    outcome->metrics.score = 0.99;
    outcome->metrics.at_fault = false;
    refuse(STATUS_BAD_INPUT, "no_at_fault_collision: expected 0 where at_fault, else 1");
    outcome->metrics.no_at_fault_collision = outcome->metrics.drivable_area = 1;
    outcome->metrics.driving_direction = outcome->metrics.making_progress = 1;
    outcome->metrics.progress = 0.1;
    refuse(STATUS_BAD_INPUT, "making_progress: expected 1 where progress is at least 0.2");
    outcome->metrics.progress = 0.5;
    outcome->metrics.ttc = 1;
    outcome->metrics.min_ttc_s = 0.95;
    refuse(STATUS_BAD_INPUT, "ttc: expected 1 where min_ttc_s is above 0.95");
    outcome->metrics.min_ttc_s = 1;
    refuse(STATUS_BAD_INPUT, "score: expected what its subscores make");
    outcome->metrics.score = (5 * 0.5 + 5) / 16;
    outcome->metrics.distance_m = 210;
    refuse(STATUS_BAD_INPUT, "metres_mm: expected those of distance_m");
    *outcome = honest;
}

static void verdicts_agree_with_their_reasons(void)
{
    static const char *const main_line[] = {"", NULL};
    static const struct {
        enum verdict verdict;
        uint32_t reasons;
        const char *health_check;
        const char *error;
        const char *sentence; /* NULL: taken */
    } cases[] = {
        {VERDICT_PASS, REASON_TTC, "", "", "pass: expected no reasons"},
        {VERDICT_PASS, 0, "frozen", "", "pass: expected no health_check"},
        {VERDICT_FAIL, 0, "", "", "fail: expected a reason at least, found none"},
        {VERDICT_FAIL, REASON_TTC, "frozen", "", "fail: expected no health_check"},
        {VERDICT_PLANNER_ERROR, 0, "", "", "planner_error: expected its error, found none"},
        {VERDICT_PLANNER_ERROR, REASON_TTC, "", "exited", "planner_error: expected no reasons"},
        {VERDICT_INVALID, 0, "", "", "needs the check that did not hold"},
        {VERDICT_INVALID, REASON_TTC, "friction", "", "invalid: expected no reasons"},
        {VERDICT_PASS, 0, "", "", NULL},
        {VERDICT_PASS, 0, "", "died once", NULL},
        {VERDICT_FAIL, REASON_TTC, "", OUTCOME_VARIES, NULL},
        {VERDICT_PLANNER_ERROR, 0, "", "exited", NULL},
        {VERDICT_INVALID, 0, "friction", "beyond half the friction", NULL},
    };

    open_store(true);
    submit_plain("a", "k", COUNT_OF(cases));
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        if (i == 0 || cases[i - 1].sentence == NULL) {
            EXPECT_INT(claim("w", 1), 1);
        }
        bring(COMPLETION_DONE, main_line);
        outcomes[0].verdict = cases[i].verdict;
        outcomes[0].reasons = cases[i].reasons;
        strcpy(outcomes[0].health_check, cases[i].health_check);
        strcpy(outcomes[0].error, cases[i].error);
        if (cases[i].sentence != NULL) {
            refuse(STATUS_BAD_INPUT, cases[i].sentence);
            continue;
        }
        complete(1);
        EXPECT_INT(completed[0].status, STATUS_OK);
    }
    EXPECT_INT(claim("w", 1), 1);
    bring(COMPLETION_DONE, main_line);
    outcomes[0].prefix_ticks = 1;
    refuse(STATUS_BAD_INPUT, "expected no prefix_ticks of a main line");
    outcomes[0].prefix_ticks = 0;
    outcomes[0].metres_mm = 1212001;
    refuse(STATUS_BAD_INPUT, "metres_mm: expected 12 m a tick at most");
    outcomes[0].metres_mm = 0;
    outcomes[0].metrics.at_fault = true;
    refuse(STATUS_BAD_INPUT, "at_fault: expected a contact, found collision_count 0");
    outcomes[0].metrics.collision_count = 1;
    outcomes[0].metrics.no_at_fault_collision = 1;
    refuse(STATUS_BAD_INPUT, "at_fault: expected no_at_fault_collision 0");
    outcomes[0].metrics.no_at_fault_collision = 0;
    refuse_reasons_without_cause();
    refuse_forged_health();
    refuse_forged_drives();
    complete(1); /* of a scenario whose criteria nobody knows */
    EXPECT_INT(completed[0].status, STATUS_OK);
    close_store();
}

/* A result answers those who ask for as many rollouts. */
static void results_are_taken_over_whole(void)
{
    open_store(true);
    submit_plain("a", "k", 1);
    EXPECT_INT(claim("w", 1), 1);
    complete_one("w", COMPLETION_DONE);
    make_specs("b", "k", 1);
    specs[0].rollout_count = 2;
    submit_made("b", 1, 1);
    EXPECT(!submitted[0].memoised);
    EXPECT_INT(status_of("b").jobs[JOB_QUEUED], 1);
    submit_plain("c", "k", 1);
    EXPECT(submitted[0].memoised);
    close_store();
}

/* A scenario that decodes, of 10 ticks and one branch. */
#define WHOLE                                                                                     \
    "{\"branches\":[{\"at_tick\":4,\"id\":\"b1\",\"interventions\":[{\"kind\":\"conditions\","    \
    "\"conditions\":{\"weather\":\"fog\"}}]}],\"ego\":{\"pose\":{\"x_m\":0,\"y_m\":0,"            \
    "\"heading_rad\":0},\"route\":[\"a\"]},\"horizon_s\":1,\"id\":\"whole\",\"map\":{\"lanes\":[" \
    "{\"id\":\"a\",\"centre_line\":[[0,0],[9,0]]}]}}"

/* Goal: a job has the rollouts that its scenario has, and no outcome is longer than that. */
static void jobs_have_the_size_of_their_scenario(void)
{
    static const char *const names[] = {"", "b1", NULL};
    char hash[SHA256_HEX_BYTES];
    open_store(true);
    sha256_hex(WHOLE, sizeof WHOLE - 1, hash);
    make_specs("a", "k", 1);
    memcpy(specs[0].scenario_hash, hash, sizeof hash); /* asked for before it is there */
    EXPECT_INT(store->ops->submit(store, "a", 1, specs, 1, submitted, &error), STATUS_CONFLICT);
    EXPECT_OK(store->ops->scenario_put(store, hash, WHOLE, sizeof WHOLE - 1, &error), error);
    for (uint32_t rollouts = 1; rollouts < 5; rollouts++) {
        specs[0].rollout_count = rollouts;
        bool taken = rollouts == 2;
        EXPECT_INT(store->ops->submit(store, "a", 1, specs, 1, submitted, &error),
                   taken ? STATUS_OK : STATUS_CONFLICT);
        if (!taken) {
            EXPECT_CONTAINS(error.text, "it has 1 branches, so that a job of it has 2 rollouts");
        }
        specs[0].key[0] = (char)('l' + rollouts);
    }
    EXPECT_INT(claim("w", 9), 1);
    bring(COMPLETION_DONE, names);
    for (uint32_t i = 0; i < 2; i++) {
        outcomes[0].ticks = outcomes[1].ticks = 10;
        outcomes[i].ticks = 11;
        refuse(STATUS_CONFLICT, "expected ticks of at most 10, which its scenario lasts, found 11");
        outcomes[i].ticks = LIMIT_HORIZON_TICKS + 1;
        refuse(STATUS_BAD_INPUT, "ticks: expected 0 to 6000, found 6001");
    }
    outcomes[0].ticks = outcomes[1].ticks = 10;
    outcomes[1].metrics.at_fault = true;
    outcomes[1].metrics.collision_count = 1;
    refuse(STATUS_CONFLICT, "outcome 1: pass: its scenario asks for no collision at fault");
    outcomes[1].metrics.at_fault = false;
    completions[0].metres_mm = INT64_C(10000000000000);
    complete(1);
    EXPECT_INT(completed[0].status, STATUS_OK);
    EXPECT_INT(status_of("a").ticks, 20);
    struct store_ledger_row rows[8];
    uint32_t count = 0;
    EXPECT_OK(store->ops->ledger(store, "a", rows, 8, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT(rows[0].totals.metres_mm >= 16 * 12000 &&
           rows[0].totals.metres_mm <= 2 * 21 * 12000); /* a tick's at most */
    close_store();
}

/* Whatever a worker says in its heartbeats, an attempt that is lost with it, or that it hands back,
 * is booked with no more miles than its scenario has room for. */
static void lost_miles_are_within_their_scenario(void)
{
    struct store_worker worker = worker_of("w", "bulk");
    struct store_progress progress = {.metres_mm = INT64_C(10000000000000), .device_ns = 1};
    const char *const ends[] = {"lost", "released"};
    char hash[SHA256_HEX_BYTES];
    int64_t cancelled[1];
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    open_store(true);
    sha256_hex(WHOLE, sizeof WHOLE - 1, hash);
    EXPECT_OK(store->ops->scenario_put(store, hash, WHOLE, sizeof WHOLE - 1, &error), error);
    make_specs("a", "k", 1);
    memcpy(specs[0].scenario_hash, hash, sizeof hash);
    specs[0].rollout_count = 2;
    EXPECT_OK(store->ops->submit(store, "a", 1, specs, 1, submitted, &error), error);
    for (int i = 0; i < 2; i++) {
        EXPECT_INT(claim("w", 1), 1);
        progress.job_id = leases[0].job_id;
        progress.epoch = leases[0].epoch;
        EXPECT_OK(
            store->ops->heartbeat(store, &worker, &progress, 1, cancelled, &count, &ttl_ms, &error),
            error);
        if (i == 0) {
            EXPECT_OK(store->ops->worker_gone(store, "w", &error), error);
        } else {
            make_completion(0, "w", COMPLETION_RELEASED);
            completions[0].metres_mm = progress.metres_mm;
            complete(1);
        }
        const int64_t booked_mm = ledger_of("a", ends[i]).metres_mm;
        EXPECT(booked_mm >= 16 * 12000 && booked_mm <= 2 * 21 * 12000);
    }
    close_store();
}

/* An audit is of the scenario and seed that it repeats. */
static void audits_repeat_what_they_name(void)
{
    open_store(true);
    submit_plain("a", "k", 1);
    for (int i = 0; i < 2; i++) {
        make_specs("a", "t", 1);
        strcpy(specs[0].pool, "teacher");
        specs[0].tier = TIER_TEACHER;
        strcpy(specs[0].audit_key, "k-0");
        specs[0].seed += i == 0;
        strcpy(specs[0].scenario_id, i == 0 ? "scenario-0" : "another");
        EXPECT_INT(store->ops->submit(store, "a", 1, specs, 1, submitted, &error), STATUS_CONFLICT);
        EXPECT_INT(status_of("a").jobs[JOB_QUEUED], 1);
    }
    close_store();
}

/* ---- names ---- */

static const char *const bad_names[] = {".",
                                        "..",
                                        "a/../b",
                                        "a/..",
                                        "../a",
                                        "./a",
                                        "/etc/passwd",
                                        "a\nb",
                                        "a\tb",
                                        "\x1b[31mred",
                                        "a\x7f",
                                        "caf\xc3",
                                        "\xff",
                                        "x\xe2\x80\xaegnp.exe",
                                        "pass\xe2\x80\x8bword"};
static const char *const good_names[] = {"a",    "a b",     "caf\xc3\xa9", "a/b",    "...",
                                         "a..b", "..a/b..", "s/1 ?&%",     "x=1,y=2"};

static enum status name_worker(const char *id, const char *pool, const char *device)
{
    struct store_worker worker = {.device = "cpu"};
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    snprintf(worker.worker_id, sizeof worker.worker_id, "%s", id);
    snprintf(worker.pool, sizeof worker.pool, "%s", pool);
    snprintf(worker.device, sizeof worker.device, "%s", device);
    enum status beats =
        store->ops->heartbeat(store, &worker, NULL, 0, NULL, &count, &ttl_ms, &error);
    enum status claims =
        store->ops->claim(store, &worker, fresh_claim_id(), 1, 0, leases, &count, &ttl_ms, &error);
    EXPECT_INT(claims, beats);
    return claims;
}

static enum status name_spec(const char *scenario_id, const char *pool)
{
    make_specs("a", "k", 1);
    snprintf(specs[0].scenario_id, sizeof specs[0].scenario_id, "%s", scenario_id);
    snprintf(specs[0].pool, sizeof specs[0].pool, "%s", pool);
    return store->ops->submit(store, "a", 1, specs, 1, submitted, &error);
}

static enum status name_tenant(const char *name)
{
    struct tenant tenant = {.weight = 1};
    snprintf(tenant.name, sizeof tenant.name, "%s", name);
    enum status status = store->ops->tenant_set(store, &tenant, TENANT_SETTINGS, &error);
    make_specs("t", "k", 1);
    EXPECT_INT(store->ops->submit_as(store, name, "t", 1, SUITE_CLASS_SAME, 0, specs, 1, submitted,
                                     &error),
               status);
    return status;
}

static void names_are_printable_and_no_paths(void)
{
    char ids[8][LIMIT_ID_BYTES];
    uint32_t count = 0;

    open_store(true);
    for (size_t i = 0; i < sizeof bad_names / sizeof *bad_names; i++) {
        const char *name = bad_names[i];
        make_specs("", "k", 1);
        EXPECT_INT(store->ops->submit(store, name, 1, specs, 1, submitted, &error),
                   STATUS_BAD_INPUT);
        if (utf8_valid(name)) { /* in JSON a "?" stands for what is none */
            EXPECT_INT(name_spec(name, "bulk"), STATUS_BAD_INPUT);
            EXPECT_INT(name_spec("scenario", name), STATUS_BAD_INPUT);
        }
        EXPECT_INT(name_worker(name, "bulk", "cpu"), STATUS_BAD_INPUT);
        EXPECT_INT(name_worker("w", name, "cpu"), STATUS_BAD_INPUT);
        EXPECT_INT(name_worker("w", "bulk", name), STATUS_BAD_INPUT);
        EXPECT_INT(name_tenant(name), STATUS_BAD_INPUT);
        EXPECT_INT(store->ops->price_set(store, name, "cpu", 1, &error), STATUS_BAD_INPUT);
        EXPECT_INT(store->ops->price_set(store, "bulk", name, 1, &error), STATUS_BAD_INPUT);
        EXPECT_INT(store->ops->golden_drop(store, name, &error), STATUS_BAD_INPUT);
    }
    EXPECT_OK(store->ops->suites(store, ids, 8, &count, &error), error);
    EXPECT_INT(count, 0);
    for (size_t i = 0; i < sizeof good_names / sizeof *good_names; i++) {
        make_specs("", "k", 1);
        EXPECT_OK(store->ops->submit(store, good_names[i], 1, specs, 1, submitted, &error), error);
        EXPECT_INT(status_of(good_names[i]).jobs[JOB_QUEUED], 1);
        EXPECT_OK(store->ops->price_set(store, good_names[i], "cpu", 1, &error), error);
    }
    EXPECT_INT(name_worker("w/1", "bulk", "cpu"), STATUS_OK);
    close_store();
}

int conformance_door(const struct conformance_backend *tested)
{
    backend = tested;
    return finish_half(TEST_RUN(
        TEST(completions_bring_each_rollout_once), TEST(rollouts_without_names_are_counted),
        TEST(a_flag_brings_its_evidence), TEST(partial_outcomes_are_no_more_than_rollouts),
        TEST(outcomes_are_within_their_range), TEST(metrics_are_within_their_range),
        TEST(verdicts_agree_with_their_reasons), TEST(results_are_taken_over_whole),
        TEST(jobs_have_the_size_of_their_scenario), TEST(lost_miles_are_within_their_scenario),
        TEST(audits_repeat_what_they_name), TEST(names_are_printable_and_no_paths)));
}
