/*
 * The store when memory runs out.
 *
 * Method: each call of the store's table is made on a store that was just opened, with the Nth
 * allocation failing (memory.h), once or from then on, for N = 1, 2, .. until the call meets no
 * failure: through the embedded face, and through a client and a server on a Unix socket in this
 * process, where the allocations of both sides count. A call that fails says why; repeated with
 * memory there it succeeds; what it answers is what it answers with plenty of memory; and what it
 * changed was changed once. The address sanitizer's build watches for leaks.
 *
 * Usage: test_memory embedded|http [STEP]: after the first few, every STEPth allocation fails.
 */
#include "store/store.h"
#include "tests/harness.h"
#include "tests/store/http_support.h"
#include "tests/store/invariants.h"
#include "tests/store/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

enum { JOBS = 4, ROWS = 32, RESULT_BYTES = 1 << 20, FIRST_ONES = 12, ALLOCATIONS_MAX = 100000 };

static bool over_http;
static int64_t step = 1;

static char path[128];
static char socket_path[128];
static struct store *behind;
static struct store_server *server;
static struct store *store;
static struct error error;
static uint64_t plays;

/* The play's own names, so that plays on one file do not meet. */
static int serial;
static struct store_worker worker;
static struct job_spec specs[JOBS];
static struct store_submit_result submitted[JOBS];
static struct job_lease leases[JOBS];
static uint32_t lease_count;
static struct outcome outcomes[JOBS][2];
static struct job_completion completions[JOBS];
static struct store_completion_result completed[JOBS];
static int64_t told[2 * JOBS]; /* ids of leases that a claim answered with */
static uint32_t told_count;
static char artifact[SHA256_HEX_BYTES];
static uint8_t artifact_data[3000];
static char scenario_hash[SHA256_HEX_BYTES];
static const char scenario_body[] = "{\"id\":\"memory\"}";
static int64_t suite_jobs;           /* submitted so far */
static uint8_t result[RESULT_BYTES]; /* what the call answered */
static uint8_t first_result[RESULT_BYTES];
static size_t result_bytes;

/* ---- faces ---- */

static enum status open_all(int listen_fd)
{
    enum status status = store_sqlite_open(path, NULL, &behind, &error);

    if (status != STATUS_OK) {
        behind = NULL;
        if (listen_fd >= 0) {
            close(listen_fd);
        }
        return status;
    }
    if (!over_http) {
        store = behind;
        behind = NULL;
        return STATUS_OK;
    }
    char url[160];
    snprintf(url, sizeof url, "unix:%s", socket_path);
    status = store_server_start(behind, listen_fd, NULL, &server, &error);
    if (status != STATUS_OK) {
        server = NULL;
        return status;
    }
    status = store_http_open(url, NULL, &store, &error);
    if (status != STATUS_OK) {
        store = NULL;
    }
    return status;
}

static void close_all(void)
{
    if (store != NULL) {
        store->ops->close(store);
    }
    store_server_stop(server);
    if (behind != NULL) {
        behind->ops->close(behind);
    }
    store = NULL;
    server = NULL;
    behind = NULL;
}

static void open_well(void)
{
    EXPECT_OK(open_all(over_http ? support_listen(socket_path) : -1), error);
}

/* ---- what precedes a call ---- */

static void name_play(void)
{
    serial++;
    memset(&worker, 0, sizeof worker);
    snprintf(worker.worker_id, sizeof worker.worker_id, "worker-%d", serial);
    snprintf(worker.pool, sizeof worker.pool, "pool-%d", serial);
    strcpy(worker.device, "cpu");
    for (int i = 0; i < JOBS; i++) {
        struct job_spec *spec = &specs[i];
        memset(spec, 0, sizeof *spec);
        snprintf(spec->key, sizeof spec->key, "key-%d-%d", serial, i);
        snprintf(spec->scenario_id, sizeof spec->scenario_id, "scenario-%d", i);
        memcpy(spec->scenario_hash, scenario_hash, sizeof spec->scenario_hash);
        memcpy(spec->pool, worker.pool, sizeof spec->pool);
        strcpy(spec->planner, "builtin:reference");
        spec->tier = TIER_OBJECT;
        spec->rollout_count = i == 0 ? 2 : 1;
        spec->attempts_max = 3;
        spec->priority = JOBS - i;
    }
    told_count = 0;
}

static void nothing_before(void)
{
}

static void submit_before(void)
{
    EXPECT_OK(store->ops->submit(store, "suite", 1, specs, JOBS, submitted, &error), error);
    suite_jobs += JOBS;
}

static void claim_before(void)
{
    int64_t ttl_ms = 0;

    submit_before();
    EXPECT_OK(store->ops->claim(store, &worker, JOBS, 0, leases, &lease_count, &ttl_ms, &error),
              error);
    EXPECT_INT(lease_count, JOBS);
}

static void complete_before(void)
{
    static const enum completion_kind kinds[JOBS] = {COMPLETION_DONE, COMPLETION_FLAGGED,
                                                     COMPLETION_FAILED, COMPLETION_RELEASED};

    claim_before();
    EXPECT_OK(
        store->ops->artifact_put(store, artifact_data, sizeof artifact_data, artifact, &error),
        error);
    for (int i = 0; i < JOBS; i++) {
        struct job_completion *completion = &completions[i];
        memset(completion, 0, sizeof *completion);
        memset(outcomes[i], 0, sizeof outcomes[i]);
        completion->job_id = leases[i].job_id;
        completion->epoch = leases[i].epoch;
        memcpy(completion->worker_id, worker.worker_id, sizeof worker.worker_id);
        completion->kind = kinds[i];
        completion->device_ns = 1000000;
        if (i < 2) {
            completion->outcomes = outcomes[i];
            completion->outcome_count = leases[i].spec.rollout_count;
            memcpy(completion->artifact_hash, artifact, sizeof artifact);
            memcpy(outcomes[i][0].artifact_hash, artifact, sizeof artifact);
            strcpy(outcomes[i][1].branch_id, "braked");
        }
    }
    strcpy(completions[1].escalate_pool, "teacher");
    completions[1].escalate_tier = TIER_TEACHER;
    strcpy(outcomes[1][0].health_check, "frozen");
    outcomes[1][0].verdict = VERDICT_FLAGGED;
}

/* ---- the calls ---- */

static void answer(const void *data, size_t bytes)
{
    EXPECT(result_bytes + bytes <= sizeof result);
    memcpy(result + result_bytes, data, bytes);
    result_bytes += bytes;
}

static enum status put_scenario(void)
{
    return store->ops->scenario_put(store, scenario_hash, scenario_body, sizeof scenario_body - 1,
                                    &error);
}

static enum status get_scenario(void)
{
    char *body = NULL;
    size_t bytes = 0;
    enum status status = store->ops->scenario_get(store, scenario_hash, &body, &bytes, &error);

    if (status == STATUS_OK) {
        answer(body, bytes);
        free(body);
    }
    return status;
}

static enum status submit(void)
{
    return store->ops->submit(store, "suite", 1, specs, JOBS, submitted, &error);
}

static enum status heartbeat(void)
{
    struct store_progress progress = {
        .job_id = leases[0].job_id, .epoch = leases[0].epoch, .device_ns = 5, .metres_mm = 7};
    int64_t cancelled[1];
    uint32_t count = 0;
    int64_t ttl_ms = 0;

    return store->ops->heartbeat(store, &worker, &progress, 1, cancelled, &count, &ttl_ms, &error);
}

static enum status claim(void)
{
    int64_t ttl_ms = 0;
    uint32_t count = 0;
    enum status status =
        store->ops->claim(store, &worker, JOBS, 0, leases, &count, &ttl_ms, &error);

    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        EXPECT(told_count < 2 * JOBS);
        told[told_count++] = leases[i].job_id;
    }
    return status;
}

static enum status complete(void)
{
    return store->ops->complete(store, completions, JOBS, completed, &error);
}

static enum status worker_gone(void)
{
    return store->ops->worker_gone(store, worker.worker_id, &error);
}

static enum status worker_leases(void)
{
    uint32_t count = 0;
    struct job_lease found[JOBS];
    enum status status =
        store->ops->worker_leases(store, worker.worker_id, 0, found, JOBS, &count, &error);

    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        answer(&found[i].job_id, sizeof found[i].job_id);
        answer(found[i].spec.key, strlen(found[i].spec.key));
        answer(found[i].spec.planner, strlen(found[i].spec.planner));
    }
    return status;
}

static enum status suite_status(void)
{
    struct store_suite_status status;
    enum status answered = store->ops->suite_status(store, "suite", &status, &error);

    if (answered == STATUS_OK) {
        answer(&status, sizeof status);
    }
    return answered;
}

static enum status suites(void)
{
    char ids[4][LIMIT_ID_BYTES];
    uint32_t count = 0;
    enum status status = store->ops->suites(store, ids, 4, &count, &error);

    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        answer(ids[i], strlen(ids[i]));
    }
    return status;
}

static enum status look_outcomes(void)
{
    static struct outcome found[ROWS];
    struct store_outcome_filter filter = {.limit = ROWS};
    uint32_t count = 0;
    enum status status;

    strcpy(filter.suite_id, "suite");
    status = store->ops->outcomes(store, &filter, found, &count, &error);
    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        answer(&found[i].id, sizeof found[i].id);
        answer(found[i].artifact_hash, strlen(found[i].artifact_hash));
        answer(found[i].branch_id, strlen(found[i].branch_id));
        answer(found[i].planner, strlen(found[i].planner));
        answer(found[i].health_check, strlen(found[i].health_check));
        answer(found[i].suite_id, strlen(found[i].suite_id));
    }
    return status;
}

static enum status look_job(void)
{
    static struct store_job job;
    enum status status = store->ops->job(store, 1, &job, &error);

    if (status == STATUS_OK) {
        answer(&job.state, sizeof job.state);
        answer(job.spec.key, strlen(job.spec.key));
        answer(job.spec.planner, strlen(job.spec.planner));
        answer(job.worker_id, strlen(job.worker_id));
    }
    return status;
}

static enum status look_dead(void)
{
    static struct store_job jobs[4];
    uint32_t count = 0;
    enum status status = store->ops->dead_jobs(store, "suite", 0, jobs, 4, &count, &error);

    answer(&count, sizeof count);
    return status;
}

static enum status look_ledger(void)
{
    static struct store_ledger_row rows[200];
    uint32_t count = 0;
    enum status status = store->ops->ledger(store, NULL, rows, 200, &count, &error);

    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        answer(rows[i].pool, strlen(rows[i].pool));
        answer(rows[i].end, strlen(rows[i].end));
        answer(&rows[i].totals, sizeof rows[i].totals);
    }
    return status;
}

static enum status set_price(void)
{
    return store->ops->price_set(store, "bulk", "cpu", 1234567, &error);
}

static enum status get_price(void)
{
    int64_t price = 0;
    enum status status = store->ops->price_get(store, "bulk", "cpu", &price, &error);

    answer(&price, sizeof price);
    return status;
}

static enum status cancel(void)
{
    int64_t count = 0;
    return store->ops->cancel(store, "suite", &count, &error);
}

static enum status put_artifact(void)
{
    return store->ops->artifact_put(store, artifact_data, sizeof artifact_data, artifact, &error);
}

static enum status get_artifact(void)
{
    void *data = NULL;
    size_t bytes = 0;
    enum status status = store->ops->artifact_get(store, artifact, &data, &bytes, &error);

    if (status == STATUS_OK) {
        answer(data, bytes);
        free(data);
    }
    return status;
}

/* ---- what follows it ---- */

static void nothing_after(void)
{
}

static void submitted_once(void)
{
    struct store_suite_status status;
    int64_t jobs = 0;

    suite_jobs += JOBS;
    EXPECT_OK(store->ops->suite_status(store, "suite", &status, &error), error);
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        jobs += status.jobs[i];
    }
    EXPECT_INT(jobs, suite_jobs);
}

/* Everything that is leased to the worker, it was told of. */
static void told_of_every_lease(void)
{
    struct job_lease found[2 * JOBS];
    uint32_t count = 0;

    EXPECT_OK(
        store->ops->worker_leases(store, worker.worker_id, 0, found, 2 * JOBS, &count, &error),
        error);
    EXPECT_INT(count, JOBS);
    for (uint32_t i = 0; i < count; i++) {
        bool known = false;
        for (uint32_t j = 0; j < told_count; j++) {
            known = known || told[j] == found[i].job_id;
        }
        if (!known) {
            TEST_FAIL("job %" PRId64 " is leased to a worker that was not told", found[i].job_id);
        }
    }
}

static void completed_once(void)
{
    static const enum job_state states[JOBS] = {JOB_DONE, JOB_FLAGGED, JOB_QUEUED, JOB_QUEUED};
    static struct outcome found[ROWS];
    static struct store_job job;

    suite_jobs++; /* the teacher's */
    EXPECT(completed[1].escalated_job_id > 0);
    for (int i = 0; i < JOBS; i++) {
        struct store_outcome_filter filter = {.limit = ROWS, .job_id = completions[i].job_id};
        uint32_t count = 0;
        EXPECT_INT(completed[i].status, STATUS_OK);
        EXPECT_OK(store->ops->job(store, completions[i].job_id, &job, &error), error);
        EXPECT_INT(job.state, states[i]);
        EXPECT_OK(store->ops->outcomes(store, &filter, found, &count, &error), error);
        EXPECT_INT(count, completions[i].outcome_count);
    }
}

static void new_artifact(void)
{
    for (size_t i = 0; i < sizeof artifact_data; i++) {
        artifact_data[i] = (uint8_t)(serial + (int)(i / 7));
    }
}

static void put_before(void)
{
    new_artifact();
    EXPECT_OK(put_artifact(), error);
}

static void artifact_is_there(void)
{
    result_bytes = 0;
    EXPECT_OK(get_artifact(), error);
    EXPECT(result_bytes == sizeof artifact_data &&
           memcmp(result, artifact_data, result_bytes) == 0);
}

/* ---- playing ---- */

struct call {
    const char *name;
    void (*before)(void);
    enum status (*run)(void);
    void (*after)(void);
};

static const struct call calls[] = {
    {"scenario_put", nothing_before, put_scenario, nothing_after},
    {"scenario_get", nothing_before, get_scenario, nothing_after},
    {"submit", nothing_before, submit, submitted_once},
    {"claim", submit_before, claim, told_of_every_lease},
    {"heartbeat", claim_before, heartbeat, nothing_after},
    {"complete", complete_before, complete, completed_once},
    {"worker_gone", claim_before, worker_gone, nothing_after},
    {"worker_leases", claim_before, worker_leases, nothing_after},
    {"suite_status", nothing_before, suite_status, nothing_after},
    {"suites", nothing_before, suites, nothing_after},
    {"outcomes", nothing_before, look_outcomes, nothing_after},
    {"job", nothing_before, look_job, nothing_after},
    {"dead_jobs", nothing_before, look_dead, nothing_after},
    {"ledger", nothing_before, look_ledger, nothing_after},
    {"price_set", nothing_before, set_price, nothing_after},
    {"price_get", nothing_before, get_price, nothing_after},
    {"cancel", nothing_before, cancel, nothing_after},
    {"artifact_put", new_artifact, put_artifact, artifact_is_there},
    {"artifact_get", put_before, get_artifact, nothing_after},
};

/* A refusal names its reason; memory is not confused with a broken disk or a damaged file. */
static void expect_refusal(enum status status, const char *name, int64_t at, bool forever)
{
    if (status != STATUS_NO_MEMORY && status != STATUS_TIMEOUT && status != STATUS_BUSY) {
        TEST_FAIL("%s, allocation %" PRId64 "%s: status %s: %s", name, at, forever ? " and on" : "",
                  status < STATUS_COUNT ? status_name(status) : "of the transport", error.text);
    }
    EXPECT(strlen(error.text) > 5);
}

/* False: the call met no failure. */
static bool play(const struct call *call, int64_t at, bool forever)
{
    name_play();
    open_well();
    call->before();
    result_bytes = 0;
    error.text[0] = '\0';
    memory_fail(at, forever);
    enum status status = call->run();
    int64_t failures = memory_is_well();
    size_t first_bytes = result_bytes;
    memcpy(first_result, result, result_bytes);
    if (status != STATUS_OK) {
        EXPECT(failures > 0);
        expect_refusal(status, call->name, at, forever);
    }
    result_bytes = 0;
    EXPECT_OK(call->run(), error);
    if (status == STATUS_OK &&
        (first_bytes != result_bytes || memcmp(result, first_result, result_bytes) != 0)) {
        TEST_FAIL("%s, allocation %" PRId64 "%s: not what it answers with plenty of memory",
                  call->name, at, forever ? " and on" : "");
    }
    call->after();
    close_all();
    plays++;
    return failures > 0;
}

static int64_t next(int64_t at)
{
    return at < FIRST_ONES ? at + 1 : at + step;
}

static void start(const char *name)
{
    close_all(); /* a failed test left it open */
    snprintf(path, sizeof path, "%s/%s.db", support_directory(), name);
    snprintf(socket_path, sizeof socket_path, "%s/s.sock", support_directory());
    sha256_hex(scenario_body, sizeof scenario_body - 1, scenario_hash);
    suite_jobs = 0;
    plays = 0;
    open_well();
    EXPECT_OK(put_scenario(), error);
    name_play();
    complete_before();
    EXPECT_OK(complete(), error);
    suite_jobs++;
    close_all();
}

/* Goal: no call loses, doubles or invents anything for want of memory. */
static void calls_without_memory(void)
{
    char why[256];
    int64_t allocations = 0;

    start("calls");
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        for (int forever = 0; forever < 2; forever++) {
            int64_t at = 1;
            while (at < ALLOCATIONS_MAX && play(&calls[i], at, forever == 1)) {
                at = next(at);
            }
            EXPECT(at < ALLOCATIONS_MAX);
            allocations += at - 1;
        }
    }
    if (!invariants_hold(path, why, sizeof why)) {
        TEST_FAIL("in the end: %s", why);
    }
    printf("# %" PRId64 " allocations, %" PRIu64 " plays\n", allocations, plays);
}

/* Goal: nor does opening, of a new store or of one with jobs in it. */
static void opening_without_memory(void)
{
    int64_t allocations = 0;

    for (int variant = 0; variant < 4; variant++) {
        bool forever = variant % 2 == 1;
        bool fresh = variant / 2 == 1;
        int64_t at = 1;
        int64_t failures = 1;
        if (!fresh) {
            start("open");
        }
        for (; failures > 0; at = next(at)) {
            if (fresh) {
                snprintf(path, sizeof path, "%s/open-%d-%" PRId64 ".db", support_directory(),
                         variant, at);
            }
            int fd = over_http ? support_listen(socket_path) : -1;
            error.text[0] = '\0';
            memory_fail(at, forever);
            enum status status = open_all(fd);
            failures = memory_is_well();
            close_all();
            if (status != STATUS_OK) {
                EXPECT(failures > 0);
                expect_refusal(status, "open", at, forever);
            }
            open_well();
            close_all();
            plays++;
        }
        allocations += at - 1;
    }
    printf("# %" PRId64 " allocations, %" PRIu64 " plays\n", allocations, plays);
}

int main(int argc, char **argv)
{
    over_http = argc > 1 && strcmp(argv[1], "http") == 0;
    step = argc > 2 ? strtoll(argv[2], NULL, 10) : 1;
    return TEST_RUN(TEST(calls_without_memory), TEST(opening_without_memory));
}
