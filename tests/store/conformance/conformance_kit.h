/*
 * Parts that the conformance suite's halves share: the store under test, its clock, scratch records
 * and short hands for its calls. Included once by each (tests/harness.h wants one program, one
 * translation unit; each half runs by itself).
 */
#ifndef SWERVE_TESTS_STORE_CONFORMANCE_CONFORMANCE_KIT_H
#define SWERVE_TESTS_STORE_CONFORMANCE_CONFORMANCE_KIT_H

#include "tests/claim_ids.h"
#include "tests/harness.h"
#include "tests/store/conformance/conformance.h"

#include "base/units.h"
#include "schemas/job_context.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

/* Bills are made up here, and time stands still. */
enum { TTL_MS = 15000, BACKOFF_MS = 1000, BILL_SLACK_MS = 1000000000 };

#define SCRATCH static __attribute__((unused))

SCRATCH const struct conformance_backend *backend;
SCRATCH struct manual_clock manual;
SCRATCH struct store *store;
SCRATCH struct error error;

/* These records are too large for a stack. */
SCRATCH struct job_spec specs[1000];
SCRATCH struct store_submit_result submitted[1000];
SCRATCH struct job_lease leases[256];
SCRATCH struct job_completion completions[256];
SCRATCH struct store_completion_result completed[256];
SCRATCH struct outcome outcomes[1000];
SCRATCH struct store_job job;

/* ---- random calls ---- */

/* Sequences from seed `first` on: all of them; one, another each day, where the backend is slow, or
 * under a sanitizer, which looks at code and not at sequences. SWERVE_TEST_LONG: all of them. */
static inline uint64_t random_sequences(uint64_t all, uint64_t *first)
{
    enum { DAY_S = 86400 };
    bool slow = getenv("SWERVE_TEST_LONG") == NULL && (backend->slow || test_rounds(0, 1) != 0);

    *first = slow ? (uint64_t)(time(NULL) / DAY_S) % all : 0;
    printf("# random calls from seed %" PRIu64 " on\n", *first);
    return slow ? 1 : all;
}

/* ---- short hands ---- */

static inline void open_store(bool fresh)
{
    struct store_config config = {.clock = &manual.clock,
                                  .lease_ttl_ms = TTL_MS,
                                  .backoff_ms = BACKOFF_MS,
                                  .bill_slack_ms = BILL_SLACK_MS};

    if (store != NULL) { /* a failed test left it open */
        backend->close(backend->context, store);
        store = NULL;
    }
    if (fresh) {
        manual_clock_init(&manual);
    }
    store = backend->open(backend->context, fresh, &config);
    EXPECT(store != NULL);
}

static inline void close_store(void)
{
    backend->close(backend->context, store);
    store = NULL;
}

static inline void advance_ms(int64_t ms)
{
    manual_clock_advance(&manual, ms * NS_PER_MS);
}

static inline void put_scenario(char hash[SHA256_HEX_BYTES])
{
    static const char body[] = "{\"id\":\"a\"}";
    sha256_hex(body, sizeof body - 1, hash);
    EXPECT_OK(store->ops->scenario_put(store, hash, body, sizeof body - 1, &error), error);
}

/* `count` plain jobs of one rollout with keys "<tag>-<i>". */
static inline void make_specs(const char *suite, const char *tag, uint32_t count)
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

/* Who answers if the job is flagged. */
static inline void name_teacher(struct job_spec *spec)
{
    strcpy(spec->escalate_pool, "teacher");
    spec->escalate_tier = TIER_TEACHER;
    strcpy(spec->escalate_model_hash, "teacher-model");
    strcpy(spec->escalate_sampler, "agents/euler30/fp32");
}

static inline void submit_made(const char *suite, uint32_t weight, uint32_t count)
{
    EXPECT_OK(store->ops->submit(store, suite, weight, specs, count, submitted, &error), error);
}

static inline void submit_plain(const char *suite, const char *tag, uint32_t count)
{
    make_specs(suite, tag, count);
    submit_made(suite, 1, count);
}

static inline struct store_worker worker_of(const char *id, const char *pool)
{
    struct store_worker worker = {.device = "cpu"};
    snprintf(worker.worker_id, sizeof worker.worker_id, "%s", id);
    snprintf(worker.pool, sizeof worker.pool, "%s", pool);
    return worker;
}

static inline uint32_t claim_in(const char *worker_id, const char *pool, uint32_t max)
{
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    struct store_worker worker = worker_of(worker_id, pool);

    EXPECT_OK(store->ops->claim(store, &worker, fresh_claim_id(), max, 0, leases, &count, &ttl_ms,
                                &error),
              error);
    EXPECT_INT(ttl_ms, TTL_MS);
    EXPECT(count <= max);
    return count;
}

static inline uint32_t claim(const char *worker_id, uint32_t max)
{
    return claim_in(worker_id, "bulk", max);
}

/* The teacher's jobs first, others when there are none of these; `*worker_id` has claimed them. */
static inline uint32_t claim_any(const char **worker_id, uint32_t max)
{
    uint32_t count = claim_in("t", "teacher", max);
    *worker_id = count > 0 ? "t" : "w";
    return count > 0 ? count : claim("w", max);
}

/* An outcome that says what its job says, with a verdict. */
static inline void fill_outcome(struct outcome *outcome, const struct job_spec *spec,
                                enum verdict verdict)
{
    memset(outcome, 0, sizeof *outcome);
    job_context_copy(spec, outcome);
    outcome->verdict = verdict;
    outcome->ticks = 100;
    outcome->metres_mm = 5000;
    outcome->metrics.distance_m = 5.0;
    outcome->device_ns = NS_PER_S;
    outcome->reasons = verdict == VERDICT_FAIL ? REASON_PROGRESS : 0;
    if (verdict == VERDICT_FLAGGED) {
        strcpy(outcome->health_check, "frozen");
    }
    if (verdict == VERDICT_PLANNER_ERROR) {
        strcpy(outcome->error, "tick 1: exited");
    }
}

/* completions[index] for leases[index]; DONE brings `rollout_count` passes, FLAGGED the main line.
 */
static inline struct job_completion *make_completion(uint32_t index, const char *worker_id,
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
    if (kind == COMPLETION_FLAGGED) {
        fill_outcome(&outcomes[index], &leases[index].spec, VERDICT_FLAGGED);
        completion->outcomes = &outcomes[index];
        completion->outcome_count = 1;
    }
    return completion;
}

static inline void complete(uint32_t count)
{
    EXPECT_OK(store->ops->complete(store, completions, count, completed, &error), error);
}

static inline void complete_one(const char *worker_id, enum completion_kind kind)
{
    make_completion(0, worker_id, kind);
    complete(1);
}

static inline struct store_suite_status status_of(const char *suite)
{
    struct store_suite_status status;
    EXPECT_OK(store->ops->suite_status(store, suite, &status, &error), error);
    return status;
}

static inline void get_job(int64_t id)
{
    EXPECT_OK(store->ops->job(store, id, &job, &error), error);
}

/* Sum over the suite's ledger (NULL: all) of the rows that ended so (NULL: all). */
static inline struct ledger_totals ledger_of(const char *suite, const char *end)
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
            sum.mflop += rows[i].totals.mflop;
            sum.cost_uusd += rows[i].totals.cost_uusd;
        }
    }
    return sum;
}

/* Ends a half: a failed test may have left the store open. */
static inline int finish_half(int failed)
{
    if (store != NULL) {
        backend->close(backend->context, store);
        store = NULL;
    }
    return failed;
}

#endif
