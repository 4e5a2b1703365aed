/*
 * The HTTP server and client over the fake store.
 *
 * Goal: every call arrives and comes back unchanged; hostile or slow requests hurt nobody else;
 * waiting claims do not starve others; a server that stops finishes what it began; an answer that
 * is lost, whichever it is, changes nothing in the end.
 * Method: a real server on a Unix socket in this process; clients through store_http_open, raw
 * bytes, and a relay that drops the Nth answer, for every N.
 */
#include "base/check.h"
#include "base/units.h"
#include "store/http_server.h"
#include "store/http_wire.h"
#include "tests/harness.h"
#include "tests/store/fake_store.h"
#include "tests/store/http_support.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct stack {
    struct fake_control control;
    struct store *fake;
    struct store_server *server;
    char socket_path[100];
    char url[128];
};

static void stack_start(struct stack *stack)
{
    struct error error;
    memset(stack, 0, sizeof *stack);
    snprintf(stack->socket_path, sizeof stack->socket_path, "%s/s.sock", support_directory());
    snprintf(stack->url, sizeof stack->url, "unix:%s", stack->socket_path);
    EXPECT_OK(fake_store_open(&stack->control, &stack->fake, &error), error);
    int fd = support_listen(stack->socket_path);
    EXPECT_OK(store_server_start(stack->fake, fd, NULL, &stack->server, &error), error);
}

static void stack_stop(struct stack *stack)
{
    store_server_stop(stack->server);
    stack->fake->ops->close(stack->fake);
}

static struct store *connect_to(const char *url)
{
    struct error error;
    struct store *store = NULL;
    EXPECT_OK(store_http_open(url, NULL, &store, &error), error);
    return store;
}

static struct job_spec make_spec(int number)
{
    struct job_spec spec = {
        .suite_id = "s/1 ?&%\xc3\xa9",
        .scenario_id = "cut_in",
        .planner = "exec:python3 \"p.py\"",
        .pool = "bulk",
        .tier = TIER_OBJECT,
        .backend = "cpu",
        .seed = UINT64_MAX - (uint64_t)number,
        .priority = -3,
        .rollout_count = 2,
        .attempts_max = 3,
    };
    snprintf(spec.key, sizeof spec.key, "key-%d", number);
    return spec;
}

static struct outcome make_outcome(const struct job_lease *lease)
{
    struct outcome outcome;
    memset(&outcome, 0, sizeof outcome);
    outcome.job_id = lease->job_id;
    outcome.epoch = lease->epoch;
    outcome.seed = lease->spec.seed;
    memcpy(outcome.suite_id, lease->spec.suite_id, sizeof outcome.suite_id);
    memcpy(outcome.scenario_id, lease->spec.scenario_id, sizeof outcome.scenario_id);
    outcome.verdict = VERDICT_FAIL;
    outcome.reasons = REASON_TTC | REASON_SPEED;
    outcome.metrics.min_ttc_s = INFINITY;
    outcome.metrics.impact_speed_mps = NAN;
    outcome.metrics.score = 1.0 / 3.0;
    outcome.metrics.collision_tick = UINT32_MAX;
    strcpy(outcome.error, "stderr: \xff\xfe broken");
    return outcome;
}

static void submit_jobs(struct store *store, int first, uint32_t count)
{
    struct error error;
    struct job_spec *specs = calloc(count, sizeof *specs);
    struct store_submit_result *results = calloc(count, sizeof *results);
    CHECK(specs != NULL && results != NULL);
    for (uint32_t i = 0; i < count; i++) {
        specs[i] = make_spec(first + (int)i);
    }
    EXPECT_OK(store->ops->submit(store, specs[0].suite_id, 1, specs, count, results, &error),
              error);
    free(specs);
    free(results);
}

/* A worker's whole little life: submits `jobs` jobs, claims and completes them. */
static void live(struct store *store, uint32_t jobs)
{
    struct error error;
    struct job_lease leases[8];
    uint32_t count = 0;
    int64_t ttl_ms;
    uint32_t completed = 0;
    submit_jobs(store, 0, jobs);
    struct store_worker worker = {.worker_id = "w", .pool = "bulk", .device = "cpu"};
    EXPECT_OK(store->ops->heartbeat(store, &worker, NULL, 0, NULL, &count, &ttl_ms, &error), error);
    while (completed < jobs) {
        struct outcome outcomes[8];
        struct job_completion completions[8];
        struct store_completion_result results[8];
        memset(completions, 0, sizeof completions);
        EXPECT_OK(store->ops->claim(store, &worker, 3, 0, leases, &count, &ttl_ms, &error), error);
        if (count == 0) {
            TEST_FAIL("%u of %u jobs are leased to a worker that does not know", jobs - completed,
                      jobs);
        }
        for (uint32_t i = 0; i < count; i++) {
            outcomes[i] = make_outcome(&leases[i]);
            completions[i].job_id = leases[i].job_id;
            completions[i].epoch = leases[i].epoch;
            completions[i].device_ns = 10;
            completions[i].outcome_count = 1;
            completions[i].outcomes = &outcomes[i];
            strcpy(completions[i].worker_id, "w");
        }
        EXPECT_OK(store->ops->complete(store, completions, count, results, &error), error);
        for (uint32_t i = 0; i < count; i++) {
            EXPECT_INT(results[i].status, STATUS_OK);
        }
        completed += count;
    }
}

static void expect_outcome(struct store *store, const struct outcome *expected)
{
    const struct store_ops *ops = store->ops;
    struct error error;
    uint32_t count = 0;
    struct store_outcome_filter filter = {.limit = 10, .by_verdict = true, .verdict = VERDICT_FAIL};
    struct outcome out[10];
    strcpy(filter.suite_id, expected->suite_id);
    strcpy(filter.scenario_id, "cut_in");
    EXPECT_OK(ops->outcomes(store, &filter, out, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_TEXT(out[0].error, "stderr: ?? broken");
    EXPECT(isnan(out[0].metrics.impact_speed_mps) && isinf(out[0].metrics.min_ttc_s));
    EXPECT(out[0].metrics.score == 1.0 / 3.0 && out[0].seed == expected->seed);
    EXPECT_INT(out[0].reasons, expected->reasons);
    filter.verdict = VERDICT_PASS;
    EXPECT_OK(ops->outcomes(store, &filter, out, &count, &error), error);
    EXPECT_INT(count, 0);
    filter.limit = 0;
    EXPECT_INT(ops->outcomes(store, &filter, out, &count, &error), STATUS_LIMIT);
}

static void calls_of_workers_arrive(void)
{
    static struct stack stack;
    struct error error;
    struct job_spec specs[2];
    struct store_submit_result submitted[2];
    stack_start(&stack);
    struct store *store = connect_to(stack.url);
    const struct store_ops *ops = store->ops;

    specs[0] = make_spec(1);
    specs[1] = make_spec(2);
    strcpy(specs[1].pool, "teacher");
    specs[1].tier = TIER_TEACHER;
    const char *suite = specs[0].suite_id;
    EXPECT_OK(ops->submit(store, suite, 5, specs, 2, submitted, &error), error);
    EXPECT(!submitted[0].existed && !submitted[1].existed);
    EXPECT_OK(ops->submit(store, suite, 5, specs, 2, submitted, &error), error);
    EXPECT(submitted[0].existed && submitted[1].job_id == 2);
    EXPECT_INT(ops->submit(store, suite, 0, specs, 2, submitted, &error), STATUS_BAD_INPUT);
    EXPECT_TEXT(error.text, "fake: bad_input");

    struct store_job job;
    EXPECT_OK(ops->job(store, 2, &job, &error), error);
    EXPECT(memcmp(&job.spec, &specs[1], sizeof job.spec) == 0);
    EXPECT_INT(ops->job(store, 3, &job, &error), STATUS_NOT_FOUND);

    struct store_worker worker = {.worker_id = "w/1", .pool = "bulk", .device = "cpu"};
    struct job_lease leases[4];
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    EXPECT_OK(ops->claim(store, &worker, 4, 0, leases, &count, &ttl_ms, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_INT(ttl_ms, 15000);
    EXPECT_INT(leases[0].job_id, 1);
    EXPECT(memcmp(&leases[0].spec, &specs[0], sizeof specs[0]) == 0);
    uint32_t held = 0;
    EXPECT_OK(ops->worker_leases(store, "w/1", 0, leases, 4, &held, &error), error);
    EXPECT_INT(held, 1);

    struct store_progress progress = {.job_id = 1, .epoch = 1, .device_ns = 7, .metres_mm = 8};
    int64_t cancelled[1] = {0};
    EXPECT_OK(ops->heartbeat(store, &worker, &progress, 1, cancelled, &count, &ttl_ms, &error),
              error);
    EXPECT_INT(count, 0);

    struct outcome outcome = make_outcome(&leases[0]);
    struct job_completion completions[2] = {
        {.job_id = 1,
         .epoch = 1,
         .worker_id = "w/1",
         .device_ns = 11,
         .metres_mm = 12,
         .outcome_count = 1,
         .outcomes = &outcome},
        {.job_id = 1, .epoch = 99, .worker_id = "w/1"},
    };
    struct store_completion_result results[2];
    EXPECT_OK(ops->complete(store, completions, 2, results, &error), error);
    EXPECT_INT(results[0].status, STATUS_OK);
    EXPECT_INT(results[1].status, STATUS_STALE);

    expect_outcome(store, &outcome);
    ops->close(store);
    stack_stop(&stack);
}

static void calls_that_look_arrive(void)
{
    static struct stack stack;
    struct error error;
    struct store_job job;
    uint32_t count = 0;
    stack_start(&stack);
    struct store *store = connect_to(stack.url);
    const struct store_ops *ops = store->ops;
    const char *suite = "s/1 ?&%\xc3\xa9";
    live(store, 1);
    submit_jobs(store, 100, 1);

    struct store_suite_status status;
    EXPECT_OK(ops->suite_status(store, suite, &status, &error), error);
    EXPECT_INT(status.jobs[JOB_DONE], 1);
    EXPECT_INT(status.jobs[JOB_QUEUED], 1);
    EXPECT_INT(status.rollouts[VERDICT_FAIL], 1);
    EXPECT_INT(status.rollouts_total, 4);
    EXPECT_INT(ops->suite_status(store, "none", &status, &error), STATUS_NOT_FOUND);

    char ids[4][LIMIT_ID_BYTES];
    EXPECT_OK(ops->suites(store, ids, 4, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_TEXT(ids[0], suite);

    struct store_ledger_row rows[4];
    EXPECT_OK(ops->ledger(store, NULL, rows, 4, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_INT(rows[0].totals.device_ns, 10);
    EXPECT_OK(ops->ledger(store, suite, rows, 4, &count, &error), error);

    int64_t price = 0;
    EXPECT_OK(ops->price_set(store, "bulk", "cuda:sm_90", -5, &error), error);
    EXPECT_OK(ops->price_get(store, "bulk", "cuda:sm_90", &price, &error), error);
    EXPECT_INT(price, -5);

    EXPECT_OK(ops->worker_gone(store, "w/1", &error), error);
    EXPECT_OK(ops->dead_jobs(store, suite, 0, &job, 1, &count, &error), error);
    EXPECT_INT(count, 0);
    int64_t cancelled_jobs = 0;
    EXPECT_OK(ops->cancel(store, suite, &cancelled_jobs, &error), error);
    EXPECT_INT(cancelled_jobs, 1);
    ops->close(store);
    stack_stop(&stack);
}

static void bodies_of_any_size_arrive(void)
{
    static struct stack stack;
    static const size_t sizes[] = {0, 1, 4095, 65536, 1000001, 5000000};
    struct error error;
    stack_start(&stack);
    struct store *store = connect_to(stack.url);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        char *data = malloc(sizes[i] + 1);
        CHECK(data != NULL);
        for (size_t k = 0; k < sizes[i]; k++) {
            data[k] = (char)(k * 2654435761u >> 13);
        }
        char hash[SHA256_HEX_BYTES];
        void *back = NULL;
        size_t bytes = 0;
        EXPECT_OK(store->ops->artifact_put(store, data, sizes[i], hash, &error), error);
        EXPECT_OK(store->ops->artifact_get(store, hash, &back, &bytes, &error), error);
        EXPECT_INT(bytes, sizes[i]);
        EXPECT(memcmp(back, data, bytes) == 0);
        free(back);
        free(data);
    }
    char *body = NULL;
    size_t bytes = 0;
    void *none = NULL;
    EXPECT_OK(store->ops->scenario_put(store, "abc", "{\"id\":1}", 8, &error), error);
    EXPECT_OK(store->ops->scenario_get(store, "abc", &body, &bytes, &error), error);
    EXPECT_TEXT(body, "{\"id\":1}");
    free(body);
    EXPECT_INT(store->ops->artifact_get(store, "beef", &none, &bytes, &error), STATUS_NOT_FOUND);

    /* More jobs than one request carries. */
    submit_jobs(store, 0, 300);
    store->ops->close(store);
    stack_stop(&stack);
}

static void bad_requests_get_sentences(void)
{
    static struct stack stack;
    static char reply[65536];
    static char deep[256];
    static const struct {
        const char *method;
        const char *path;
        const char *body;
        int code;
        const char *text;
    } cases[] = {
        {"GET", "/", "", 404, "no such path"},
        {"GET", "/v2/health", "", 404, "no such path"},
        {"GET", "/v1/suites/a/b", "", 404, "no such path"},
        {"DELETE", "/v1/suites", "", 405, "wrong method"},
        {"POST", "/v1/outcomes", "{}", 405, "wrong method"},
        {"POST", "/v1/completions", "", 400, "expected JSON"},
        {"POST", "/v1/completions", "{", 400, "expected JSON"},
        {"POST", "/v1/completions", "{} {}", 400, "expected JSON"},
        {"POST", "/v1/completions", "[]", 400, "expected an object"},
        {"POST", "/v1/completions", "{\"completions\":7}", 400, "$.completions"},
        {"POST", "/v1/completions", "{\"completions\":[{}]}", 400, "$.completions[0]"},
        {"POST", "/v1/completions", "{\"extra\":1}", 400, "extra"},
        {"POST", "/v1/completions", "{\"completions\":[],\"completions\":[]}", 400, "duplicate"},
        {"POST", "/v1/completions", "{\"completions\":\"\xff\"}", 400, "expected JSON"},
        {"POST", "/v1/completions", deep, 413, "nested"},
        {"POST", "/v1/workers/w/claim",
         "{\"pool\":\"p\",\"device\":\"d\",\"max\":257,\"sequence\":1}", 413, "$.max"},
        {"POST", "/v1/workers/w/claim",
         "{\"pool\":\"p\",\"device\":\"d\",\"max\":1,\"wait_ms\":1e9}", 400, "$.wait_ms"},
        {"GET", "/v1/jobs/x", "", 400, "job: expected an integer"},
        {"GET", "/v1/jobs/99999999999999999999", "", 400, "job: expected an integer"},
        {"GET", "/v1/jobs/%zz", "", 400, "%XX"},
        {"GET", "/v1/jobs/%00", "", 400, "%XX"},
        {"GET", "/v1/outcomes?limit=1001", "", 413, "limit"},
        {"GET", "/v1/outcomes?limit=1&limit=2", "", 400, "repeated"},
        {"GET", "/v1/outcomes?colour=red", "", 400, "colour"},
        {"GET", "/v1/outcomes?verdict=maybe", "", 400, "verdict"},
        {"PUT", "/v1/artifacts/0000", "data", 400, "hash in the path"},
        {"GET", "/v1/scenarios/0000", "", 404, "not_found"},
    };
    memset(deep, '[', 200);
    stack_start(&stack);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        int code = support_call(stack.socket_path, cases[i].method, cases[i].path, cases[i].body,
                                reply, sizeof reply);
        if (code != cases[i].code) {
            TEST_FAIL("%s %s: expected %d, found %d: %s", cases[i].method, cases[i].path,
                      cases[i].code, code, reply);
        }
        EXPECT_CONTAINS(reply, cases[i].text);
        EXPECT_CONTAINS(reply, "{\"error\":{\"");
    }
    /* An identifier longer than any. */
    char path[400] = "/v1/suites/";
    memset(path + 11, 'a', 300);
    EXPECT_INT(support_call(stack.socket_path, "GET", path, "", reply, sizeof reply), 413);
    EXPECT_INT(support_call(stack.socket_path, "GET", "/v1/health", "", reply, sizeof reply), 200);
    stack_stop(&stack);
}

/* Requests that are too large in every way: headers, URI, declared body, body without length. */
static void oversize_requests_are_refused(void)
{
    static struct stack stack;
    static char text[200000];
    static char reply[65536];
    stack_start(&stack);
    int count = sprintf(text, "GET /v1/health?x=");
    memset(text + count, 'a', 5000);
    strcpy(text + count + 5000, " HTTP/1.1\r\nHost: x\r\n\r\n");
    int fd = support_connect(stack.socket_path);
    EXPECT_INT(support_request(fd, text, strlen(text), reply, sizeof reply), 413);
    close(fd);

    count = sprintf(text, "GET /v1/health HTTP/1.1\r\nHost: x\r\nLong: ");
    memset(text + count, 'a', 100000);
    strcpy(text + count + 100000, "\r\n\r\n");
    fd = support_connect(stack.socket_path);
    int code = support_request(fd, text, strlen(text), reply, sizeof reply);
    EXPECT(code == 431 || code == 413 || code == 0);
    close(fd);

    fd = support_connect(stack.socket_path);
    count = sprintf(text, "PUT /v1/scenarios/a HTTP/1.1\r\nHost: x\r\nContent-Length: %llu\r\n\r\n",
                    1ull << 40);
    EXPECT_INT(support_request(fd, text, (size_t)count, reply, sizeof reply), 413);
    EXPECT_CONTAINS(reply, "expected at most 16777216 bytes");
    close(fd);

    /* One byte over, all of it sent: the answer still arrives. */
    char *large = calloc(1, LIMIT_DOCUMENT_BYTES + 4096);
    CHECK(large != NULL);
    count = sprintf(large, "PUT /v1/scenarios/a HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n",
                    LIMIT_DOCUMENT_BYTES + 1);
    fd = support_connect(stack.socket_path);
    code =
        support_request(fd, large, (size_t)count + LIMIT_DOCUMENT_BYTES + 1, reply, sizeof reply);
    close(fd);
    EXPECT_INT(code, 413);

    /* Chunked, never ending: cut off, or answered. */
    fd = support_connect(stack.socket_path);
    count = sprintf(
        large, "PUT /v1/scenarios/a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    EXPECT(send(fd, large, (size_t)count, MSG_NOSIGNAL) == count);
    count = sprintf(large, "400000\r\n");
    memset(large + count, 'x', 0x400000);
    strcpy(large + count + 0x400000, "\r\n");
    size_t sent = 0;
    while (sent < (size_t)LIMIT_DOCUMENT_BYTES * 16) {
        ssize_t got = send(fd, large, (size_t)count + 0x400002, MSG_NOSIGNAL);
        if (got <= 0) {
            break;
        }
        sent += (size_t)got;
    }
    EXPECT(sent < (size_t)LIMIT_DOCUMENT_BYTES * 16);
    close(fd);
    free(large);
    EXPECT_INT(support_call(stack.socket_path, "GET", "/v1/health", "", reply, sizeof reply), 200);
    stack_stop(&stack);
}

static void slow_clients_block_nobody(void)
{
    static struct stack stack;
    int slow[64];
    struct error error;
    static const char *const halves[] = {
        "", "GET /v1/he", "POST /v1/completions HTTP/1.1\r\nHost: x\r\n",
        "POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{\"comp"};
    stack_start(&stack);
    for (size_t i = 0; i < COUNT_OF(slow); i++) {
        const char *half = halves[i % COUNT_OF(halves)];
        slow[i] = support_connect(stack.socket_path);
        EXPECT(send(slow[i], half, strlen(half), MSG_NOSIGNAL) == (ssize_t)strlen(half));
    }
    struct store *store = connect_to(stack.url);
    submit_jobs(store, 0, 50);
    struct store_suite_status status;
    EXPECT_OK(store->ops->suite_status(store, make_spec(0).suite_id, &status, &error), error);
    EXPECT_INT(status.jobs[JOB_QUEUED], 50);
    store->ops->close(store);
    for (size_t i = 0; i < COUNT_OF(slow); i++) {
        close(slow[i]);
    }
    stack_stop(&stack);
}

/* Clients that never finish a request, however they keep busy, are cut off; those that behave are
 * not. The server's times are short; what is awaited is the end of the connections. */
static void dawdling_clients_are_cut_off(void)
{
    static struct stack stack;
    static const struct http_server_times times = {
        .idle_ms = 300, .request_ms = 100, .watch_ms = 10, .drain_ms = 50};
    struct error error;
    memset(&stack, 0, sizeof stack);
    snprintf(stack.socket_path, sizeof stack.socket_path, "%s/s.sock", support_directory());
    snprintf(stack.url, sizeof stack.url, "unix:%s", stack.socket_path);
    EXPECT_OK(fake_store_open(&stack.control, &stack.fake, &error), error);
    EXPECT_OK(http_server_start(stack.fake, support_listen(stack.socket_path), NULL, &times,
                                &stack.server, &error),
              error);
    struct store *store = connect_to(stack.url);
    int silent = support_connect(stack.socket_path);
    int headers = support_connect(stack.socket_path);
    int body = support_connect(stack.socket_path);
    static const char begin[] = "POST /v1/completions HTTP/1.1\r\nHost: x\r\n";
    static const char more[] = "Content-Length: 1000000\r\n\r\n{";
    EXPECT(send(headers, begin, sizeof begin - 1, MSG_NOSIGNAL) > 0);
    EXPECT(send(body, begin, sizeof begin - 1, MSG_NOSIGNAL) > 0);
    EXPECT(send(body, more, sizeof more - 1, MSG_NOSIGNAL) > 0);
    bool headers_open = true;
    bool body_open = true;
    for (int i = 0; headers_open || body_open; i++) { /* a byte every few milliseconds */
        struct timespec pause = {.tv_nsec = 5 * NS_PER_MS};
        struct store_suite_status status;
        headers_open = headers_open && send(headers, "a", 1, MSG_NOSIGNAL) == 1;
        body_open = body_open && send(body, " ", 1, MSG_NOSIGNAL) == 1;
        EXPECT_INT(store->ops->suite_status(store, "none", &status, &error), STATUS_NOT_FOUND);
        EXPECT(i < 5000);
        nanosleep(&pause, NULL);
    }
    char byte;
    EXPECT(recv(silent, &byte, 1, 0) == 0); /* blocks until the server ends it */
    close(silent);
    close(headers);
    close(body);
    store->ops->close(store);
    stack_stop(&stack);
}

/* The same over TCP, as `serve` uses it. */
static void tcp_serves_as_well(void)
{
    static struct stack stack;
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t bytes = sizeof address;
    struct error error;
    struct store_job job;
    memset(&stack, 0, sizeof stack);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT(fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    EXPECT(listen(fd, 16) == 0 && getsockname(fd, (struct sockaddr *)&address, &bytes) == 0);
    EXPECT_OK(fake_store_open(&stack.control, &stack.fake, &error), error);
    EXPECT_OK(store_server_start(stack.fake, fd, NULL, &stack.server, &error), error);
    snprintf(stack.url, sizeof stack.url, "http://127.0.0.1:%d/", ntohs(address.sin_port));
    struct store *store = connect_to(stack.url);
    submit_jobs(store, 0, 10);
    EXPECT_OK(store->ops->job(store, 10, &job, &error), error);
    EXPECT_TEXT(job.spec.key, "key-9");
    store->ops->close(store);
    stack_stop(&stack);
}

/* ---- many clients ---- */

enum { CROWD = 300, CROWD_JOBS = 3000 };

struct crowd {
    const char *url;
    atomic_int next_worker;
    atomic_int completed;
    atomic_int failed;
    atomic_int waiting;
    int64_t wait_ms;
    int target;
};

static void *crowd_member(void *context)
{
    struct crowd *crowd = context;
    struct error error;
    struct store *store = NULL;
    struct store_worker worker = {.pool = "bulk", .device = "cpu"};
    snprintf(worker.worker_id, sizeof worker.worker_id, "w%d",
             atomic_fetch_add(&crowd->next_worker, 1));
    if (store_http_open(crowd->url, NULL, &store, &error) != STATUS_OK) {
        fprintf(stderr, "# %s\n", error.text);
        atomic_fetch_add(&crowd->failed, 1);
        return NULL;
    }
    while (atomic_load(&crowd->completed) < crowd->target) {
        struct job_lease lease;
        uint32_t count = 0;
        int64_t ttl_ms;
        atomic_fetch_add(&crowd->waiting, 1);
        enum status status =
            store->ops->claim(store, &worker, 1, crowd->wait_ms, &lease, &count, &ttl_ms, &error);
        atomic_fetch_sub(&crowd->waiting, 1);
        if (status == STATUS_OK && count == 1) {
            struct outcome outcome = make_outcome(&lease);
            struct job_completion completion = {.job_id = lease.job_id,
                                                .epoch = lease.epoch,
                                                .outcome_count = 1,
                                                .outcomes = &outcome};
            struct store_completion_result result;
            memcpy(completion.worker_id, worker.worker_id, sizeof completion.worker_id);
            status = store->ops->complete(store, &completion, 1, &result, &error);
            if (status == STATUS_OK && result.status == STATUS_OK) {
                atomic_fetch_add(&crowd->completed, 1);
            }
        }
        if (status != STATUS_OK) {
            fprintf(stderr, "# %s\n", error.text);
            atomic_fetch_add(&crowd->failed, 1);
            break;
        }
    }
    store->ops->close(store);
    return NULL;
}

/* Long polls of all workers at once, jobs trickling in: every job is done once, and the submitter
 * is never shut out. */
static void three_hundred_workers_share_the_work(void)
{
    static struct stack stack;
    pthread_t threads[CROWD];
    stack_start(&stack);
    static struct crowd crowd;
    memset(&crowd, 0, sizeof crowd);
    crowd.url = stack.url;
    crowd.wait_ms = 400;
    crowd.target = CROWD_JOBS;
    for (int i = 0; i < CROWD; i++) {
        CHECK(pthread_create(&threads[i], NULL, crowd_member, &crowd) == 0);
    }
    struct store *store = connect_to(stack.url);
    for (int i = 0; i < CROWD_JOBS; i += 100) {
        submit_jobs(store, i, 100);
    }
    for (int i = 0; i < CROWD; i++) {
        pthread_join(threads[i], NULL);
    }
    EXPECT_INT(crowd.failed, 0);
    EXPECT_INT(crowd.completed, CROWD_JOBS);
    struct store_suite_status status;
    struct error error;
    EXPECT_OK(store->ops->suite_status(store, make_spec(0).suite_id, &status, &error), error);
    EXPECT_INT(status.jobs[JOB_DONE], CROWD_JOBS);
    EXPECT_INT(status.rollouts[VERDICT_FAIL], CROWD_JOBS);
    store->ops->close(store);
    stack_stop(&stack);
}

/* ---- stopping ---- */

struct asker {
    const char *url;
    enum status status;
    struct store_suite_status suite;
    atomic_int done;
};

static void *ask_status(void *context)
{
    struct asker *asker = context;
    struct error error;
    struct store *store = NULL;
    asker->status = store_http_open(asker->url, NULL, &store, &error);
    if (asker->status == STATUS_OK) {
        asker->status =
            store->ops->suite_status(store, make_spec(0).suite_id, &asker->suite, &error);
        store->ops->close(store);
    }
    atomic_store(&asker->done, 1);
    return NULL;
}

static void *stop_server(void *context)
{
    struct stack *stack = context;
    store_server_stop(stack->server);
    return NULL;
}

/* A request that the store is working on when the server stops is answered. */
static void stopping_answers_what_was_begun(void)
{
    static struct stack stack;
    static struct asker asker;
    pthread_t ask_thread;
    pthread_t stop_thread;
    stack_start(&stack);
    struct store *store = connect_to(stack.url);
    submit_jobs(store, 0, 5);
    memset(&asker, 0, sizeof asker);
    asker.url = stack.url;
    atomic_store(&stack.control.block, 1);
    CHECK(pthread_create(&ask_thread, NULL, ask_status, &asker) == 0);
    while (atomic_load(&stack.control.blocked) == 0) {
        sched_yield();
    }
    CHECK(pthread_create(&stop_thread, NULL, stop_server, &stack) == 0);
    /* The idle connection of `store` is closed by the stop, and new ones get no answer. */
    EXPECT_INT(asker.done, 0);
    atomic_store(&stack.control.block, 0);
    pthread_join(ask_thread, NULL);
    pthread_join(stop_thread, NULL);
    EXPECT_INT(asker.status, STATUS_OK);
    EXPECT_INT(asker.suite.jobs[JOB_QUEUED], 5);
    store->ops->close(store);
    stack.fake->ops->close(stack.fake);
}

static void *claim_long(void *context)
{
    struct crowd *crowd = context;
    struct error error;
    int fd = support_connect(crowd->url + 5);
    char reply[4096];
    static const char body[] =
        "{\"pool\":\"bulk\",\"device\":\"cpu\",\"max\":1,\"wait_ms\":60000,\"sequence\":1}";
    char text[512];
    int count = sprintf(
        text, "POST /v1/workers/w/claim HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s",
        sizeof body - 1, body);
    (void)error;
    int code = support_request(fd, text, (size_t)count, reply, sizeof reply);
    close(fd);
    if (code != 200 || strstr(reply, "\"leases\":[]") == NULL) {
        fprintf(stderr, "# long claim: %d %s\n", code, reply);
        atomic_fetch_add(&crowd->failed, 1);
    }
    return NULL;
}

/* Claims that could wait for a minute end with an empty answer. */
static void stopping_ends_long_polls(void)
{
    static struct stack stack;
    static struct crowd crowd;
    pthread_t threads[32];
    stack_start(&stack);
    memset(&crowd, 0, sizeof crowd);
    crowd.url = stack.url;
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        CHECK(pthread_create(&threads[i], NULL, claim_long, &crowd) == 0);
    }
    while (atomic_load(&stack.control.claim_calls) < (int)COUNT_OF(threads)) {
        sched_yield();
    }
    store_server_stop(stack.server);
    for (size_t i = 0; i < COUNT_OF(threads); i++) {
        pthread_join(threads[i], NULL);
    }
    EXPECT_INT(crowd.failed, 0);
    stack.fake->ops->close(stack.fake);
}

/* A client that hung up while it waited for a job gets none: the job goes to the next. */
static void a_claim_of_a_client_that_left_takes_no_job(void)
{
    static struct stack stack;
    static const char body[] =
        "{\"pool\":\"bulk\",\"device\":\"cpu\",\"max\":1,\"wait_ms\":60000,\"sequence\":1}";
    char text[512];
    stack_start(&stack);
    int count = sprintf(
        text, "POST /v1/workers/gone/claim HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n\r\n%s",
        sizeof body - 1, body);
    int fd = support_connect(stack.socket_path);
    EXPECT(send(fd, text, (size_t)count, MSG_NOSIGNAL) == count);
    while (atomic_load(&stack.control.claim_calls) == 0) {
        sched_yield();
    }
    close(fd);
    struct store *store = connect_to(stack.url);
    submit_jobs(store, 0, 1);
    struct store_worker worker = {.worker_id = "here", .pool = "bulk", .device = "cpu"};
    struct job_lease lease;
    uint32_t leased = 0;
    int64_t ttl_ms;
    struct error error;
    EXPECT_OK(store->ops->claim(store, &worker, 1, 5000, &lease, &leased, &ttl_ms, &error), error);
    EXPECT_INT(leased, 1);
    store->ops->close(store);
    stack_stop(&stack);
}

/* ---- lost answers ---- */

/* For N = 1, 2, ..: lose the Nth answer (and once also the next one); all jobs are done exactly
 * once, and none stays with a worker that does not know of it. */
static void any_lost_answer_changes_nothing(void)
{
    char relay_path[100];
    char url[128];
    snprintf(relay_path, sizeof relay_path, "%s/relay.sock", support_directory());
    snprintf(url, sizeof url, "unix:%s", relay_path);
    for (int losses = 1; losses <= 2; losses++) {
        bool clean = false;
        for (int lose = 1; !clean; lose++) {
            static struct stack stack;
            stack_start(&stack);
            struct support_relay *relay =
                support_relay_start(relay_path, stack.socket_path, lose, losses);
            struct store *store = connect_to(url);
            live(store, 8);
            store->ops->close(store);
            clean = support_relay_answers(relay) < lose;
            support_relay_stop(relay);
            struct store_suite_status status;
            struct store_ledger_row row;
            uint32_t rows;
            struct error error;
            EXPECT_OK(
                stack.fake->ops->suite_status(stack.fake, make_spec(0).suite_id, &status, &error),
                error);
            EXPECT_INT(status.jobs[JOB_DONE], 8);
            EXPECT_INT(status.rollouts[VERDICT_FAIL], 8);
            EXPECT_OK(stack.fake->ops->ledger(stack.fake, NULL, &row, 1, &rows, &error), error);
            EXPECT_INT(row.totals.attempts, 8);
            EXPECT_INT(row.totals.device_ns, 80);
            stack_stop(&stack);
            EXPECT(lose < 1000);
        }
    }
}

/* The store's own errors are answers, not losses: they come back at once and once. */
static void errors_of_the_store_are_not_repeated(void)
{
    static struct stack stack;
    struct error error;
    struct store_job job;
    stack_start(&stack);
    struct store *store = connect_to(stack.url);
    atomic_store(&stack.control.fail_calls, 1);
    EXPECT_INT(store->ops->job(store, 1, &job, &error), STATUS_STORE);
    EXPECT_TEXT(error.text, "fake: store");
    EXPECT_INT(store->ops->job(store, 1, &job, &error), STATUS_NOT_FOUND);
    EXPECT_INT(stack.control.calls, 2);
    store->ops->close(store);
    stack_stop(&stack);
}

static const char *openapi_path;

/* Every path of the published description is served, and says so to a method that it has not. */
static void the_published_paths_are_served(void)
{
    static struct stack stack;
    static char reply[65536];
    char line[256];
    int paths = 0;
    FILE *stream = fopen(openapi_path, "r");
    EXPECT(stream != NULL);
    stack_start(&stack);
    while (fgets(line, sizeof line, stream) != NULL) {
        char path[256] = "";
        size_t used = 0;
        if (strncmp(line, "  /v1/", 6) != 0) {
            continue;
        }
        for (const char *c = line + 2; *c != ':'; c++) {
            if (*c == '{') {
                c += strcspn(c, "}");
                path[used++] = '1';
            } else {
                path[used++] = *c;
            }
        }
        int code = support_call(stack.socket_path, "DELETE", path, "", reply, sizeof reply);
        if (code != 405) {
            TEST_FAIL("%s: expected 405, found %d", path, code);
        }
        paths++;
    }
    fclose(stream);
    EXPECT_INT(paths, 17);
    stack_stop(&stack);
}

int main(int argc, char **argv)
{
    CHECK(argc == 2); /* where the API is described */
    openapi_path = argv[1];
    return TEST_RUN(TEST(calls_of_workers_arrive), TEST(calls_that_look_arrive),
                    TEST(bodies_of_any_size_arrive), TEST(bad_requests_get_sentences),
                    TEST(the_published_paths_are_served), TEST(oversize_requests_are_refused),
                    TEST(slow_clients_block_nobody), TEST(dawdling_clients_are_cut_off),
                    TEST(tcp_serves_as_well), TEST(three_hundred_workers_share_the_work),
                    TEST(stopping_answers_what_was_begun), TEST(stopping_ends_long_polls),
                    TEST(a_claim_of_a_client_that_left_takes_no_job),
                    TEST(any_lost_answer_changes_nothing),
                    TEST(errors_of_the_store_are_not_repeated));
}
