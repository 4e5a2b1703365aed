/*
 * The conformance suite's directed tests: one per sentence of store/store.h. See conformance.h.
 *
 * Method: each test opens a store over empty storage and speaks only through struct store_ops. The
 * random part is in conformance_model.c.
 */
#include "tests/store/conformance.h"

#include "base/rng.h"
#include "base/units.h"
#include "tests/harness.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

enum { TTL_MS = 15000, BACKOFF_MS = 1000 };

static const struct conformance_face *face;
static struct manual_clock manual;
static struct store *store;
static struct error error;

/* Shared scratch: these records are too large for a stack. */
static struct job_spec specs[1000];
static struct store_submit_result submitted[1000];
static struct job_lease leases[256];
static struct job_completion completions[256];
static struct store_completion_result completed[256];
static struct outcome outcomes[1000];
static struct store_job job;

/* ---- the clock ---- */

static int64_t manual_now(void *context)
{
    const struct manual_clock *clock = context;
    return __atomic_load_n(&clock->now_ns, __ATOMIC_SEQ_CST);
}

void manual_clock_init(struct manual_clock *clock)
{
    clock->now_ns = 1000 * NS_PER_S;
    clock->clock = (struct clock){
        .now_ns = manual_now, .wall_ns = manual_now, .thread_cpu_ns = manual_now, .context = clock};
}

void manual_clock_advance(struct manual_clock *clock, int64_t ns)
{
    __atomic_fetch_add(&clock->now_ns, ns, __ATOMIC_SEQ_CST);
}

/* ---- short hands ---- */

static void open_store(bool fresh)
{
    struct store_config config = {
        .clock = &manual.clock, .lease_ttl_ms = TTL_MS, .backoff_ms = BACKOFF_MS};

    if (store != NULL) { /* a failed test left it open */
        face->close(face->context, store);
        store = NULL;
    }
    if (fresh) {
        manual_clock_init(&manual);
    }
    store = face->open(face->context, fresh, &config);
    EXPECT(store != NULL);
}

static void close_store(void)
{
    face->close(face->context, store);
    store = NULL;
}

static void advance_ms(int64_t ms)
{
    manual_clock_advance(&manual, ms * NS_PER_MS);
}

static void put_scenario(char hash[SHA256_HEX_BYTES])
{
    static const char body[] = "{\"id\":\"a\"}";
    sha256_hex(body, sizeof body - 1, hash);
    EXPECT_OK(store->ops->scenario_put(store, hash, body, sizeof body - 1, &error), error);
}

/* `count` plain jobs of one rollout with keys "<tag>-<i>". */
static void make_specs(const char *suite, const char *tag, uint32_t count)
{
    char hash[SHA256_HEX_BYTES];

    put_scenario(hash);
    memset(specs, 0, count * sizeof specs[0]);
    for (uint32_t i = 0; i < count; i++) {
        struct job_spec *spec = &specs[i];
        snprintf(spec->key, sizeof spec->key, "%s-%" PRIu32, tag, i);
        snprintf(spec->suite_id, sizeof spec->suite_id, "%s", suite);
        snprintf(spec->scenario_id, sizeof spec->scenario_id, "scenario-%" PRIu32, i);
        memcpy(spec->scenario_hash, hash, sizeof hash);
        strcpy(spec->planner, "builtin:reference");
        strcpy(spec->planner_hash, "p");
        strcpy(spec->pool, "bulk");
        spec->tier = TIER_OBJECT;
        strcpy(spec->backend, "cpu");
        strcpy(spec->revision, "r");
        spec->seed = i;
        spec->rollout_count = 1;
        spec->attempts_max = 3;
    }
}

static void submit_made(const char *suite, uint32_t weight, uint32_t count)
{
    EXPECT_OK(store->ops->submit(store, suite, weight, specs, count, submitted, &error), error);
}

static void submit_plain(const char *suite, const char *tag, uint32_t count)
{
    make_specs(suite, tag, count);
    submit_made(suite, 1, count);
}

static struct store_worker worker_of(const char *id, const char *pool)
{
    struct store_worker worker = {.device = "cpu"};
    snprintf(worker.worker_id, sizeof worker.worker_id, "%s", id);
    snprintf(worker.pool, sizeof worker.pool, "%s", pool);
    return worker;
}

static uint32_t claim(const char *worker_id, uint32_t max)
{
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    struct store_worker worker = worker_of(worker_id, "bulk");

    EXPECT_OK(store->ops->claim(store, &worker, max, 0, leases, &count, &ttl_ms, &error), error);
    EXPECT_INT(ttl_ms, TTL_MS);
    EXPECT(count <= max);
    return count;
}

/* An outcome that says what its job says, with a verdict. */
static void fill_outcome(struct outcome *outcome, const struct job_spec *spec, enum verdict verdict)
{
    memset(outcome, 0, sizeof *outcome);
    memcpy(outcome->scenario_id, spec->scenario_id, sizeof outcome->scenario_id);
    memcpy(outcome->scenario_hash, spec->scenario_hash, sizeof outcome->scenario_hash);
    memcpy(outcome->planner, spec->planner, sizeof outcome->planner);
    memcpy(outcome->planner_hash, spec->planner_hash, sizeof outcome->planner_hash);
    memcpy(outcome->pool, spec->pool, sizeof outcome->pool);
    memcpy(outcome->backend, spec->backend, sizeof outcome->backend);
    memcpy(outcome->revision, spec->revision, sizeof outcome->revision);
    outcome->tier = spec->tier;
    outcome->seed = spec->seed;
    outcome->verdict = verdict;
    outcome->ticks = 100;
    outcome->metres_mm = 5000;
    outcome->device_ns = NS_PER_S;
}

/* completions[index] for leases[index]; DONE brings `rollout_count` passes. */
static struct job_completion *make_completion(uint32_t index, const char *worker_id,
                                              enum completion_kind kind)
{
    struct job_completion *completion = &completions[index];

    memset(completion, 0, sizeof *completion);
    completion->job_id = leases[index].job_id;
    completion->epoch = leases[index].epoch;
    snprintf(completion->worker_id, sizeof completion->worker_id, "%s", worker_id);
    completion->kind = kind;
    completion->device_ns = 2 * NS_PER_S;
    completion->metres_mm = 6000;
    if (kind == COMPLETION_DONE) {
        fill_outcome(&outcomes[index], &leases[index].spec, VERDICT_PASS);
        completion->outcomes = &outcomes[index];
        completion->outcome_count = leases[index].spec.rollout_count;
    }
    return completion;
}

static void complete(uint32_t count)
{
    EXPECT_OK(store->ops->complete(store, completions, count, completed, &error), error);
}

static void complete_one(const char *worker_id, enum completion_kind kind)
{
    make_completion(0, worker_id, kind);
    complete(1);
}

static struct store_suite_status status_of(const char *suite)
{
    struct store_suite_status status;
    EXPECT_OK(store->ops->suite_status(store, suite, &status, &error), error);
    return status;
}

static void get_job(int64_t id)
{
    EXPECT_OK(store->ops->job(store, id, &job, &error), error);
}

/* Sum over the suite's ledger (NULL: all) of the rows that ended so (NULL: all). */
static struct ledger_totals ledger_of(const char *suite, const char *end)
{
    struct store_ledger_row rows[64];
    struct ledger_totals sum = {0};
    uint32_t count = 0;

    EXPECT_OK(store->ops->ledger(store, suite, rows, 64, &count, &error), error);
    for (uint32_t i = 0; i < count; i++) {
        if (end == NULL || strcmp(rows[i].end, end) == 0) {
            sum.attempts += rows[i].totals.attempts;
            sum.device_ns += rows[i].totals.device_ns;
            sum.metres_mm += rows[i].totals.metres_mm;
            sum.cost_uusd += rows[i].totals.cost_uusd;
        }
    }
    return sum;
}

/* ---- scenarios and artifacts ---- */

/* Goal: bodies come back byte for byte; names that do not fit are refused. */
static void scenario_bodies_are_kept(void)
{
    char hash[SHA256_HEX_BYTES];
    char *body = NULL;
    size_t bytes = 0;

    open_store(true);
    put_scenario(hash);
    put_scenario(hash);
    EXPECT_OK(store->ops->scenario_get(store, hash, &body, &bytes, &error), error);
    EXPECT_INT(bytes, 10);
    EXPECT_TEXT(body, "{\"id\":\"a\"}");
    free(body);
    EXPECT_INT(store->ops->scenario_put(store, hash, "{}", 2, &error), STATUS_BAD_INPUT);
    hash[0] = hash[0] == '0' ? '1' : '0';
    EXPECT_INT(store->ops->scenario_get(store, hash, &body, &bytes, &error), STATUS_NOT_FOUND);
    close_store();
}

/* Goal: artifacts of any size come back; put twice is one; unknown and ill-formed names differ. */
static void artifacts_come_back(void)
{
    static uint8_t data[3 << 20];
    static const size_t sizes[] = {0, 1, 4096, sizeof data};
    char hash[SHA256_HEX_BYTES];
    char expected[SHA256_HEX_BYTES];

    open_store(true);
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)(rng_mix(i / 3) >> 56);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *back = NULL;
        size_t bytes = 1;
        for (int twice = 0; twice < 2; twice++) {
            EXPECT_OK(store->ops->artifact_put(store, data, sizes[i], hash, &error), error);
        }
        sha256_hex(data, sizes[i], expected);
        EXPECT_TEXT(hash, expected);
        EXPECT_OK(store->ops->artifact_get(store, hash, &back, &bytes, &error), error);
        EXPECT_INT(bytes, sizes[i]);
        bool equal = memcmp(back, data, bytes) == 0;
        free(back);
        EXPECT(equal);
    }
    void *none = NULL;
    size_t bytes = 0;
    memset(hash, 'a', 64);
    EXPECT_INT(store->ops->artifact_get(store, hash, &none, &bytes, &error), STATUS_NOT_FOUND);
    EXPECT(store->ops->artifact_get(store, "../../etc/passwd", &none, &bytes, &error) != STATUS_OK);
    close_store();
}

/* ---- submitting ---- */

/* Goal: a key is accepted once per suite, whatever else is in the submission. */
static void submitting_is_idempotent(void)
{
    int64_t first;

    open_store(true);
    submit_plain("a", "k", 10);
    first = submitted[3].job_id;
    EXPECT(!submitted[3].existed && !submitted[3].memoised);
    submit_plain("a", "k", 12);
    EXPECT(submitted[3].existed && submitted[3].job_id == first);
    EXPECT(!submitted[11].existed);
    EXPECT_INT(status_of("a").jobs[JOB_QUEUED], 12);
    EXPECT_INT(status_of("a").rollouts_total, 12);
    /* The same key twice in one submission. */
    make_specs("a", "m", 2);
    memcpy(specs[1].key, specs[0].key, sizeof specs[0].key);
    submit_made("a", 1, 2);
    EXPECT(submitted[1].existed && submitted[1].job_id == submitted[0].job_id);
    close_store();
}

/* Goal: one bad job, and none is stored. */
static void submitting_is_all_or_nothing(void)
{
    open_store(true);
    submit_plain("a", "k", 1);
    make_specs("a", "m", 5);
    memset(specs[4].scenario_hash, 'b', 64);
    EXPECT_INT(store->ops->submit(store, "a", 1, specs, 5, submitted, &error), STATUS_CONFLICT);
    EXPECT_CONTAINS(error.text, "scenario-4");
    make_specs("a", "m", 5);
    specs[4].rollout_count = 0;
    EXPECT_INT(store->ops->submit(store, "a", 1, specs, 5, submitted, &error), STATUS_LIMIT);
    make_specs("a", "m", 5);
    EXPECT_INT(store->ops->submit(store, "a", 0, specs, 5, submitted, &error), STATUS_BAD_INPUT);
    EXPECT_INT(store->ops->submit(store, "", 1, specs, 5, submitted, &error), STATUS_BAD_INPUT);
    specs[2].parent_job_id = 12345;
    EXPECT_INT(store->ops->submit(store, "a", 1, specs, 5, submitted, &error), STATUS_CONFLICT);
    EXPECT_INT(status_of("a").jobs[JOB_QUEUED], 1);
    EXPECT_INT(store->ops->submit(store, "empty", 1, specs, 0, submitted, &error), STATUS_OK);
    EXPECT_INT(status_of("empty").jobs[JOB_QUEUED], 0);
    close_store();
}

/* Goal: what was submitted comes back in the lease and in job(), to the last bit. */
static void specs_come_back(void)
{
    open_store(true);
    make_specs("a", "k", 1);
    struct job_spec *spec = &specs[0];
    spec->seed = UINT64_C(0xfedcba9876543210);
    spec->priority = -7;
    spec->rollout_count = 257;
    spec->attempts_max = 9;
    strcpy(spec->model_hash, "model");
    strcpy(spec->sampler, "euler-4");
    strcpy(spec->prefix_key, "map");
    memset(spec->planner, 'x', sizeof spec->planner - 1);
    submit_made("a", 1, 1);
    EXPECT_INT(claim("w", 5), 1);
    EXPECT_INT(leases[0].job_id, submitted[0].job_id);
    EXPECT_INT(leases[0].epoch, 1);
    EXPECT_INT(leases[0].attempt, 1);
    EXPECT(memcmp(&leases[0].spec, spec, sizeof *spec) == 0);
    get_job(submitted[0].job_id);
    EXPECT(memcmp(&job.spec, spec, sizeof *spec) == 0);
    EXPECT_INT(job.state, JOB_LEASED);
    EXPECT_TEXT(job.worker_id, "w");
    EXPECT_INT(store->ops->job(store, 999999, &job, &error), STATUS_NOT_FOUND);
    close_store();
}

/* Goal: another suite's finished result is taken over at no cost, and reported as the suite's. */
static void finished_results_are_taken_over(void)
{
    struct store_outcome_filter filter = {.limit = 10, .suite_id = "b"};
    uint32_t count = 0;

    open_store(true);
    submit_plain("a", "k", 2);
    int64_t original = submitted[0].job_id;
    EXPECT_INT(claim("w", 1), 1);
    complete_one("w", COMPLETION_DONE);
    int64_t cost = status_of("a").cost_uusd;
    submit_plain("b", "k", 2);
    EXPECT(submitted[0].memoised && !submitted[0].existed && submitted[0].job_id != original);
    EXPECT(!submitted[1].memoised);
    struct store_suite_status status = status_of("b");
    EXPECT_INT(status.jobs[JOB_DONE], 1);
    EXPECT_INT(status.jobs[JOB_QUEUED], 1);
    EXPECT_INT(status.memoised_jobs, 1);
    EXPECT_INT(status.rollouts[VERDICT_PASS], 1);
    EXPECT_INT(status.cost_uusd, 0);
    EXPECT_INT(status_of("a").cost_uusd, cost);
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_TEXT(outcomes[0].suite_id, "b");
    EXPECT_INT(outcomes[0].job_id, submitted[0].job_id);
    int64_t id = outcomes[0].id;
    filter = (struct store_outcome_filter){.limit = 10, .job_id = original};
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_INT(outcomes[0].id, id);
    EXPECT_TEXT(outcomes[0].suite_id, "a");
    /* Again, from the one that was itself taken over; and repeated. */
    int64_t taken = submitted[0].job_id;
    submit_plain("c", "k", 1);
    EXPECT(submitted[0].memoised);
    submit_plain("b", "k", 1);
    EXPECT(submitted[0].existed && submitted[0].memoised && submitted[0].job_id == taken);
    EXPECT_INT(status_of("c").rollouts[VERDICT_PASS], 1);
    filter = (struct store_outcome_filter){.limit = 10};
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 1);
    close_store();
}

/* Goal: suites are listed newest first. */
static void suites_are_listed(void)
{
    char ids[8][LIMIT_ID_BYTES];
    uint32_t count = 0;

    open_store(true);
    EXPECT_OK(store->ops->suites(store, ids, 8, &count, &error), error);
    EXPECT_INT(count, 0);
    submit_plain("first", "k", 1);
    submit_plain("second", "k", 1);
    submit_plain("first", "k", 1);
    EXPECT_OK(store->ops->suites(store, ids, 8, &count, &error), error);
    EXPECT_INT(count, 2);
    EXPECT_TEXT(ids[0], "second");
    EXPECT_OK(store->ops->suites(store, ids, 1, &count, &error), error);
    EXPECT_INT(count, 1);
    struct store_suite_status status;
    EXPECT_INT(store->ops->suite_status(store, "none", &status, &error), STATUS_NOT_FOUND);
    close_store();
}

/* ---- claiming ---- */

/* Goal: priority first, then age; other pools' jobs are not touched. */
static void claims_go_by_priority_and_age(void)
{
    static const int32_t priorities[] = {0, 5, 0, -1, 5};
    static const uint32_t expected[] = {1, 4, 0, 2, 3};

    open_store(true);
    make_specs("a", "k", 6);
    for (uint32_t i = 0; i < 5; i++) {
        specs[i].priority = priorities[i];
    }
    strcpy(specs[5].pool, "teacher");
    submit_made("a", 1, 6);
    EXPECT_INT(claim("w", 100), 5);
    for (uint32_t i = 0; i < 5; i++) {
        EXPECT_INT(leases[i].job_id, submitted[expected[i]].job_id);
    }
    EXPECT_INT(claim("w", 100), 0);
    EXPECT_INT(status_of("a").jobs[JOB_LEASED], 5);
    close_store();
}

/* Goal: a worker gets jobs that share its context first, in the batch and in its next claim. */
static void claims_prefer_the_same_prefix(void)
{
    open_store(true);
    make_specs("a", "k", 12);
    for (uint32_t i = 0; i < 12; i++) {
        snprintf(specs[i].prefix_key, sizeof specs[i].prefix_key, "map-%" PRIu32, i % 3);
    }
    submit_made("a", 1, 12);
    EXPECT_INT(claim("w", 3), 3);
    for (uint32_t i = 0; i < 3; i++) {
        EXPECT_TEXT(leases[i].spec.prefix_key, "map-0");
    }
    EXPECT_INT(claim("other", 1), 1); /* has no context yet: the oldest */
    EXPECT_INT(leases[0].job_id, submitted[1].job_id);
    EXPECT_INT(claim("third", 2), 2);
    EXPECT_INT(leases[0].job_id, submitted[2].job_id);
    EXPECT_INT(leases[1].job_id, submitted[5].job_id);
    EXPECT_INT(claim("third", 1), 1);
    EXPECT_INT(leases[0].job_id, submitted[8].job_id);
    EXPECT_INT(claim("w", 2), 2);
    EXPECT_INT(leases[0].job_id, submitted[9].job_id); /* map-0, then the oldest */
    EXPECT_INT(leases[1].job_id, submitted[4].job_id);
    close_store();
}

/* Goal: suites get rollouts in proportion to their weights, with and without affinity, whatever
 * the size of their jobs. Method: three suites with more jobs than are claimed; compare shares. */
static void suites_share_by_weight(void)
{
    static const uint32_t weights[] = {1, 3, 1};
    static const uint32_t sizes[] = {1, 1, 5};
    static const char *const names[] = {"a", "b", "c"};

    for (int affinity = 0; affinity < 2; affinity++) {
        for (uint32_t batch = 1; batch <= 16; batch *= 4) {
            int64_t rollouts[3] = {0};
            int64_t total = 0;
            open_store(true);
            for (int s = 0; s < 3; s++) {
                make_specs(names[s], names[s], 1000);
                for (int i = 0; i < 1000; i++) {
                    specs[i].rollout_count = sizes[s];
                    strcpy(specs[i].prefix_key, affinity ? names[s] : "");
                }
                submit_made(names[s], weights[s], 1000);
            }
            while (total < 1000) {
                uint32_t count = claim("w", batch);
                EXPECT_INT(count, batch);
                for (uint32_t i = 0; i < count; i++) {
                    rollouts[leases[i].spec.suite_id[0] - 'a'] += leases[i].spec.rollout_count;
                    total += leases[i].spec.rollout_count;
                }
            }
            /* 1/5, 3/5, 1/5, within what quantum and debt allow. */
            EXPECT_NEAR(rollouts[0], (double)total / 5, 100);
            EXPECT_NEAR(rollouts[1], (double)total * 3 / 5, 100);
            EXPECT_NEAR(rollouts[2], (double)total / 5, 100);
            close_store();
        }
    }
}

struct waiting {
    uint32_t count;
    enum status status;
    struct job_lease lease;
    struct error error;
};

static void *claim_waiting(void *context)
{
    struct waiting *waiting = context;
    struct store_worker worker = worker_of("waiter", "bulk");
    int64_t ttl_ms = 0;

    waiting->status = store->ops->claim(store, &worker, 1, 60000, &waiting->lease, &waiting->count,
                                        &ttl_ms, &waiting->error);
    return NULL;
}

/* Goal: a waiting claim gets the job that is submitted while it waits. (Whether it waits yet when
 * the submission comes is up to the machine; both orders must end well.) */
static void claims_wait_for_work(void)
{
    static struct waiting waiting;
    pthread_t thread;

    open_store(true);
    memset(&waiting, 0, sizeof waiting);
    EXPECT_INT(pthread_create(&thread, NULL, claim_waiting, &waiting), 0);
    submit_plain("a", "k", 1);
    pthread_join(thread, NULL);
    EXPECT_OK(waiting.status, waiting.error);
    EXPECT_INT(waiting.count, 1);
    EXPECT_INT(waiting.lease.job_id, submitted[0].job_id);
    close_store();
}

/* Goal: a worker is what it said it was; nonsense is refused. */
static void workers_are_checked(void)
{
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    struct store_worker worker = worker_of("", "bulk");

    open_store(true);
    EXPECT_INT(store->ops->claim(store, &worker, 1, 0, leases, &count, &ttl_ms, &error),
               STATUS_BAD_INPUT);
    worker = worker_of("w", "bulk");
    EXPECT_INT(store->ops->claim(store, &worker, 257, 0, leases, &count, &ttl_ms, &error),
               STATUS_LIMIT);
    EXPECT_INT(claim("w", 1), 0);
    worker = worker_of("w", "teacher");
    EXPECT_INT(store->ops->claim(store, &worker, 1, 0, leases, &count, &ttl_ms, &error),
               STATUS_CONFLICT);
    worker = worker_of("v", "bulk");
    strcpy(worker.device, "abacus");
    EXPECT(store->ops->claim(store, &worker, 1, 0, leases, &count, &ttl_ms, &error) != STATUS_OK);
    EXPECT_CONTAINS(error.text, "abacus");
    close_store();
}

/* ---- completing ---- */

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
    submit_made("a", 1, 1);
    EXPECT_INT(claim("w", 1), 1);
    EXPECT_OK(store->ops->artifact_put(store, "trace", 5, hash, &error), error);
    for (int i = 0; i < 2; i++) {
        fill_outcome(&sent[i], &specs[0], i == 0 ? VERDICT_FAIL : VERDICT_PLANNER_ERROR);
        strcpy(sent[i].suite_id, "a");
        strcpy(sent[i].branch_id, i == 0 ? "" : "swerve");
        sent[i].job_id = leases[0].job_id;
        sent[i].epoch = leases[0].epoch;
        sent[i].reasons = REASON_COLLISION | REASON_TTC;
        sent[i].prefix_ticks = i == 0 ? 0 : 40;
        memcpy(sent[i].artifact_hash, hash, sizeof hash);
        strcpy(sent[i].trace_hash, "t");
        strcpy(sent[i].slice[0], "rain");
        strcpy(sent[i].slice[5], "cut_in");
        sent[i].safety_critical = true;
        struct metrics *metrics = &sent[i].metrics;
        metrics->score = 0.1 + 0.2;
        metrics->min_ttc_s = (double)INFINITY;
        metrics->accel_min_mps2 = -3.25e-300;
        metrics->collision_tick = i == 0 ? UINT32_MAX : 12;
        metrics->collision_agent = -1;
        metrics->collision_kind = COLLISION_FRONT;
        metrics->at_fault = true;
        metrics->jerk_max_mps3 = 17;
    }
    /* The second differs from its job in everything that may differ. */
    memset(sent[1].planner, 'q', sizeof sent[1].planner - 1);
    strcpy(sent[1].backend, "cuda:sm_90");
    memset(sent[1].scenario_id, 'v', sizeof sent[1].scenario_id - 1);
    strcpy(sent[1].model_hash, "m");
    sent[1].tier = TIER_STUDENT;
    sent[1].seed = UINT64_MAX;
    memset(sent[1].error, 'e', sizeof sent[1].error - 1);
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
    EXPECT_INT(claim("poker", 0 + 1), 1); /* its lease has ended: the job goes to another */
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

/* Goal: a flagged job keeps its evidence and is replaced, in the same step, by a teacher's. */
static void flagged_jobs_are_escalated(void)
{
    struct store_worker teacher = worker_of("t", "teacher");
    struct store_outcome_filter filter = {.limit = 10, .by_verdict = true};
    uint32_t count = 0;
    int64_t ttl_ms = 0;

    open_store(true);
    submit_plain("a", "k", 2);
    EXPECT_INT(claim("w", 1), 1);
    int64_t flagged = leases[0].job_id;
    make_completion(0, "w", COMPLETION_FLAGGED);
    strcpy(completions[0].escalate_pool, "teacher");
    completions[0].escalate_tier = TIER_TEACHER;
    fill_outcome(&outcomes[0], &leases[0].spec, VERDICT_PASS);
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
    EXPECT_INT(status.metres_mm, 0);
    EXPECT_OK(store->ops->claim(store, &teacher, 9, 0, leases, &count, &ttl_ms, &error), error);
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
    EXPECT_INT(status_of("a").jobs[JOB_DEAD], 1);
    get_job(leases[0].job_id);
    EXPECT_TEXT(job.error, "frozen world");
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

/* ---- leases ---- */

/* Goal: heartbeats keep jobs; without them they go to others, and what was reported is charged;
 * the late completion adds the difference only. */
static void leases_end_and_are_charged(void)
{
    struct store_worker worker = worker_of("w", "bulk");
    struct store_progress progress = {.device_ns = NS_PER_S, .metres_mm = 700};
    int64_t cancelled[1];
    uint32_t cancelled_count = 9;
    int64_t ttl_ms = 0;

    open_store(true);
    submit_plain("a", "k", 1);
    EXPECT_INT(claim("w", 1), 1);
    struct job_lease held = leases[0];
    progress.job_id = held.job_id;
    progress.epoch = held.epoch;
    for (int i = 0; i < 4; i++) {
        advance_ms(TTL_MS - 1);
        EXPECT_OK(store->ops->heartbeat(store, &worker, &progress, 1, cancelled, &cancelled_count,
                                        &ttl_ms, &error),
                  error);
        EXPECT_INT(cancelled_count, 0);
        EXPECT_INT(ttl_ms, TTL_MS);
        EXPECT_INT(claim("other", 1), 0);
    }
    advance_ms(TTL_MS);
    EXPECT_INT(claim("other", 1), 1);
    EXPECT_INT(leases[0].epoch, held.epoch + 1);
    EXPECT_INT(ledger_of("a", "lost").attempts, 1);
    EXPECT_INT(ledger_of("a", "lost").device_ns, NS_PER_S);
    EXPECT_INT(ledger_of("a", "lost").metres_mm, 700);
    /* It is told so when it comes back. */
    EXPECT_OK(store->ops->heartbeat(store, &worker, &progress, 1, cancelled, &cancelled_count,
                                    &ttl_ms, &error),
              error);
    EXPECT_INT(cancelled_count, 1);
    leases[0] = held;
    complete_one("w", COMPLETION_DONE);
    EXPECT_INT(completed[0].status, STATUS_STALE);
    EXPECT_INT(ledger_of("a", NULL).attempts, 1);
    EXPECT_INT(ledger_of("a", "stale").device_ns, 2 * NS_PER_S);
    close_store();
}

/* Goal: losing workers does not use up attempts, but a job that loses every worker is dead. */
static void lost_jobs_are_not_tried_for_ever(void)
{
    int claims = 0;

    open_store(true);
    submit_plain("a", "k", 1);
    while (claims < 1000 && claim("w", 1) == 1) {
        claims++;
        EXPECT_OK(store->ops->worker_gone(store, "w", &error), error);
    }
    EXPECT(claims > 3 && claims < 100);
    EXPECT_INT(status_of("a").jobs[JOB_DEAD], 1);
    EXPECT_INT(ledger_of("a", "lost").attempts, claims);
    get_job(submitted[0].job_id);
    EXPECT_CONTAINS(job.error, "vanished");
    close_store();
}

/* Goal: cancelling ends queued and running jobs; their workers are told; late work costs. */
static void cancelled_jobs_stay_cancelled(void)
{
    struct store_worker worker = worker_of("w", "bulk");
    struct store_progress progress[2];
    int64_t cancelled[2] = {0};
    uint32_t cancelled_count = 0;
    int64_t ttl_ms = 0;
    int64_t count = 0;

    open_store(true);
    submit_plain("b", "kb", 1);
    submit_plain("a", "k", 5);
    EXPECT_INT(claim("w", 3), 3);
    uint32_t of_a = strcmp(leases[0].spec.suite_id, "a") == 0 ? 0 : 1;
    EXPECT_TEXT(leases[of_a].spec.suite_id, "a");
    for (uint32_t i = 0; i < 2; i++) {
        progress[i] = (struct store_progress){
            .job_id = leases[i].job_id, .epoch = leases[i].epoch, .device_ns = 100};
    }
    EXPECT_OK(store->ops->cancel(store, "a", &count, &error), error);
    EXPECT_INT(count, 5);
    EXPECT_INT(status_of("a").jobs[JOB_CANCELLED], 5);
    EXPECT_INT(status_of("b").jobs[JOB_CANCELLED], 0);
    EXPECT_OK(store->ops->heartbeat(store, &worker, progress, 2, cancelled, &cancelled_count,
                                    &ttl_ms, &error),
              error);
    EXPECT(cancelled_count >= 1);
    make_completion(of_a, "w", COMPLETION_DONE);
    EXPECT_OK(store->ops->complete(store, &completions[of_a], 1, completed, &error), error);
    EXPECT_INT(completed[0].status, STATUS_STALE);
    EXPECT_INT(ledger_of("a", "stale").device_ns, 2 * NS_PER_S);
    EXPECT_INT(status_of("a").jobs[JOB_CANCELLED], 5);
    EXPECT_OK(store->ops->cancel(store, "a", &count, &error), error);
    EXPECT_INT(count, 0);
    EXPECT_INT(store->ops->cancel(store, "none", &count, &error), STATUS_NOT_FOUND);
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
    filter = (struct store_outcome_filter){.limit = 1000, .outcome_id = outcomes[0].id};
    EXPECT_OK(store->ops->outcomes(store, &filter, outcomes, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_INT(outcomes[0].id, filter.outcome_id);
    filter = (struct store_outcome_filter){.limit = 1001};
    EXPECT_INT(store->ops->outcomes(store, &filter, outcomes, &count, &error), STATUS_LIMIT);
    close_store();
}

/* ---- life ---- */

/* Goal: everything is there after reopening; leases and backoffs start again from then. */
static void reopening_keeps_everything(void)
{
    open_store(true);
    submit_plain("a", "k", 5);
    EXPECT_INT(claim("w", 3), 3);
    make_completion(0, "w", COMPLETION_DONE);
    make_completion(1, "w", COMPLETION_FAILED);
    complete(2);
    struct job_lease held = leases[2];
    close_store();
    manual.now_ns = 5 * NS_PER_S; /* the machine was started again */
    open_store(false);
    struct store_suite_status status = status_of("a");
    EXPECT_INT(status.jobs[JOB_DONE], 1);
    EXPECT_INT(status.jobs[JOB_LEASED], 1);
    EXPECT_INT(status.jobs[JOB_QUEUED], 3);
    EXPECT_INT(claim("v", 9), 2);
    advance_ms(BACKOFF_MS - 1);
    EXPECT_INT(claim("v", 9), 0);
    advance_ms(1);
    EXPECT_INT(claim("v", 9), 1);
    leases[0] = held;
    complete_one("w", COMPLETION_DONE);
    EXPECT_INT(completed[0].status, STATUS_OK);
    advance_ms(TTL_MS + 1);
    EXPECT_INT(claim("x", 9), 3);
    close_store();
}

struct crew_member {
    char name[16];
    uint32_t done;
    enum status status;
    struct error error;
};

static void *crew_work(void *context)
{
    struct crew_member *member = context;
    struct store_worker worker = worker_of(member->name, "bulk");
    struct job_lease *own = calloc(4, sizeof *own);
    struct job_completion *ends = calloc(4, sizeof *ends);
    struct outcome *results = calloc(4, sizeof *results);
    struct store_completion_result answers[4];
    uint32_t count = 1;
    int64_t ttl_ms;

    while (count > 0 && member->status == STATUS_OK) {
        member->status =
            store->ops->claim(store, &worker, 4, 0, own, &count, &ttl_ms, &member->error);
        for (uint32_t i = 0; i < count && member->status == STATUS_OK; i++) {
            memset(&ends[i], 0, sizeof ends[i]);
            ends[i].job_id = own[i].job_id;
            ends[i].epoch = own[i].epoch;
            memcpy(ends[i].worker_id, worker.worker_id, sizeof worker.worker_id);
            fill_outcome(&results[i], &own[i].spec, VERDICT_PASS);
            ends[i].outcomes = &results[i];
            ends[i].outcome_count = 1;
            ends[i].device_ns = 1;
        }
        if (member->status == STATUS_OK && count > 0) {
            member->status = store->ops->complete(store, ends, count, answers, &member->error);
        }
        for (uint32_t i = 0; i < count && member->status == STATUS_OK; i++) {
            member->done += answers[i].status == STATUS_OK;
        }
    }
    free(own);
    free(ends);
    free(results);
    return NULL;
}

/* Goal: many threads at once; every job is done exactly once. */
static void crews_share_the_work(void)
{
    enum { CREW = 6, JOBS = 300 };
    struct crew_member crew[CREW];
    pthread_t threads[CREW];
    uint32_t done = 0;

    open_store(true);
    submit_plain("a", "k", JOBS);
    for (int i = 0; i < CREW; i++) {
        crew[i] = (struct crew_member){.status = STATUS_OK};
        snprintf(crew[i].name, sizeof crew[i].name, "w%d", i);
        EXPECT_INT(pthread_create(&threads[i], NULL, crew_work, &crew[i]), 0);
    }
    for (int i = 0; i < CREW; i++) {
        pthread_join(threads[i], NULL);
    }
    for (int i = 0; i < CREW; i++) {
        EXPECT_OK(crew[i].status, crew[i].error);
        done += crew[i].done;
    }
    EXPECT_INT(done, JOBS);
    EXPECT_INT(status_of("a").jobs[JOB_DONE], JOBS);
    EXPECT_INT(status_of("a").rollouts[VERDICT_PASS], JOBS);
    EXPECT_INT(ledger_of("a", "done").attempts, JOBS);
    close_store();
}

/* Goal: any sequence of calls does what the model says. */
static void random_calls_match_the_model(void)
{
    char why[1024];

    for (uint64_t seed = 1; seed <= 6; seed++) {
        open_store(true);
        struct model_config config = {
            .store = store,
            .clock = &manual,
            .lease_ttl_ms = TTL_MS,
            .backoff_ms = BACKOFF_MS,
            .seed = seed,
            .steps = 400,
        };
        if (!conformance_model(&config, why, sizeof why)) {
            TEST_FAIL("seed %d: %s", (int)seed, why);
        }
        close_store();
    }
}

int conformance_run(const struct conformance_face *tested)
{
    face = tested;
    int failed = TEST_RUN(
        TEST(scenario_bodies_are_kept), TEST(artifacts_come_back), TEST(submitting_is_idempotent),
        TEST(submitting_is_all_or_nothing), TEST(specs_come_back),
        TEST(finished_results_are_taken_over), TEST(suites_are_listed),
        TEST(claims_go_by_priority_and_age), TEST(claims_prefer_the_same_prefix),
        TEST(suites_share_by_weight), TEST(claims_wait_for_work), TEST(workers_are_checked),
        TEST(outcomes_come_back), TEST(missing_metrics_come_back), TEST(replays_change_nothing),
        TEST(late_completions_are_fenced), TEST(unclaimed_work_is_still_accepted),
        TEST(failures_back_off_and_die), TEST(released_jobs_are_queued_at_once),
        TEST(flagged_jobs_are_escalated), TEST(wrong_completions_are_refused),
        TEST(leases_end_and_are_charged), TEST(lost_jobs_are_not_tried_for_ever),
        TEST(cancelled_jobs_stay_cancelled), TEST(the_ledger_adds_up),
        TEST(outcomes_are_filtered_and_paged), TEST(reopening_keeps_everything),
        TEST(crews_share_the_work), TEST(random_calls_match_the_model));
    if (store != NULL) {
        face->close(face->context, store);
        store = NULL;
    }
    return failed;
}
