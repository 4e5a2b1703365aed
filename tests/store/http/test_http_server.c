/*
 * The HTTP server and client over the fake store.
 *
 * Goal: every call arrives and comes back unchanged; hostile or slow requests hurt nobody else.
 * Method: a real server on a Unix socket in this process; clients through store_http_open and raw
 * bytes.
 */
#include "base/check.h"
#include "base/sha256.h"
#include "base/units.h"
#include "schemas/job_json.h"
#include "schemas/outcome_json.h"
#include "store/wire/http_wire.h"
#include "tests/claim_ids.h"
#include "tests/store/http/http_stack.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

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

struct visits {
    uint32_t count;
};

static enum status count_visit(void *context, const struct outcome *outcome, struct error *error)
{
    struct visits *visits = context;
    (void)outcome;
    (void)error;
    visits->count++;
    return STATUS_OK;
}

/* By members: a copy of a record need not keep what lies between them. */
static bool same_spec(const struct job_spec *a, const struct job_spec *b)
{
    json_t *left = job_spec_encode(a, NULL);
    json_t *right = job_spec_encode(b, NULL);
    bool same = left != NULL && json_equal(left, right);
    json_decref(left);
    json_decref(right);
    return same;
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
    EXPECT(same_spec(&job.spec, &specs[1]));
    EXPECT_INT(ops->job(store, 3, &job, &error), STATUS_NOT_FOUND);

    struct store_worker worker = {.worker_id = "w/1", .pool = "bulk", .device = "cpu"};
    struct job_lease leases[4];
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    EXPECT_OK(ops->claim(store, &worker, fresh_claim_id(), 4, 0, leases, &count, &ttl_ms, &error),
              error);
    EXPECT_INT(count, 1);
    EXPECT_INT(ttl_ms, 15000);
    EXPECT_INT(leases[0].job_id, 1);
    EXPECT(same_spec(&leases[0].spec, &specs[0]));

    struct store_progress progress = {.job_id = 1, .epoch = 1, .device_ns = 7, .metres_mm = 8};
    int64_t cancelled[1] = {0};
    EXPECT_OK(ops->heartbeat(store, &worker, &progress, 1, cancelled, &count, &ttl_ms, &error),
              error);
    EXPECT_INT(count, 0);

    struct outcome outcome = make_outcome(&leases[0]);
    struct outcome partial = outcome;
    struct store_completion_result results[2];
    const struct job_completion early = {.job_id = 1,
                                         .epoch = 1,
                                         .worker_id = "w/1",
                                         .kind = COMPLETION_PARTIAL,
                                         .outcome_count = 1,
                                         .outcomes = &outcome};
    EXPECT_OK(ops->complete(store, &early, 1, results, &error), error);
    EXPECT_INT(results[0].status, STATUS_OK);
    memset(&partial, 0xff, sizeof partial);
    EXPECT_OK(ops->partials(store, 1, &partial, 1, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_TEXT(partial.error, "stderr: ?? broken");
    EXPECT_INT(partial.epoch, 1);
    EXPECT(partial.metrics.score == 1.0 / 3.0 && isinf(partial.metrics.min_ttc_s));
    EXPECT_OK(ops->partials(store, 2, &partial, 1, &count, &error), error);
    EXPECT_INT(count, 0);

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
    EXPECT_OK(ops->complete(store, completions, 2, results, &error), error);
    EXPECT_INT(results[0].status, STATUS_OK);
    EXPECT_INT(results[1].status, STATUS_STALE);

    expect_outcome(store, &outcome);

    /* A server that sends the same page for ever is left after the second. */
    struct visits visits = {0};
    atomic_store(&stack.control.stands, 1);
    EXPECT_INT(store_outcomes_each(store, NULL, count_visit, &visits, &error), STATUS_STORE);
    EXPECT_CONTAINS(error.text, "ascending order");
    EXPECT_INT(visits.count, 1);
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
    int64_t lost = 0;
    EXPECT_OK(ops->commits_lost(store, &lost, &error), error);
    EXPECT_INT(lost, 3);
    EXPECT_INT(price, -5);

    EXPECT_OK(ops->worker_gone(store, "w/1", &error), error);
    EXPECT_OK(ops->dead_jobs(store, suite, 0, &job, 1, &count, &error), error);
    EXPECT_INT(count, 0);
    EXPECT_OK(ops->jobs_in_state(store, suite, "dead", 0, &job, 1, &count, &error), error);
    EXPECT_INT(count, 0);
    int64_t cancelled_jobs = 0;
    EXPECT_OK(ops->cancel(store, suite, &cancelled_jobs, &error), error);
    EXPECT_INT(cancelled_jobs, 1);
    ops->close(store);
    stack_stop(&stack);
}

/* A server whose pages never come to an end keeps no client, and figures beyond all sums are none.
 */
static void pages_go_on_or_are_refused(void)
{
    static struct stack stack;
    struct error error;
    struct model_version version = {.name = "student-1", .tier = TIER_STUDENT};
    struct model_version versions[2];
    struct model_event event = {.model = "student-1", .kind = MODEL_MOVED};
    struct model_event events[2];
    struct store_demand rows[2];
    uint32_t count = 0;
    stack_start(&stack);
    struct store *store = connect_to(stack.url);
    const struct store_ops *ops = store->ops;
    EXPECT_OK(ops->model_add(store, &version, &error), error);
    EXPECT_OK(ops->model_event(store, &event, &event, &error), error);
    struct golden_set golden = {.name = "night", .sampler = "agents/euler2/bf16"};
    struct golden_set goldens[2];
    memset(golden.hash, 'a', sizeof golden.hash - 1);
    memset(golden.model_hash, 'b', sizeof golden.model_hash - 1);
    EXPECT_OK(ops->golden_add(store, &golden, &error), error);
    EXPECT_OK(ops->goldens(store, "", goldens, 2, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_TEXT(goldens[0].name, golden.name);
    EXPECT_TEXT(goldens[0].hash, golden.hash);
    EXPECT_TEXT(goldens[0].model_hash, golden.model_hash);
    EXPECT_TEXT(goldens[0].sampler, golden.sampler);
    EXPECT_OK(ops->golden_drop(store, "day", &error), error);
    struct label label = {.suite = "s/1", .kind = LABEL_NOTE, .text = "as it was"};
    struct label labels[2];
    EXPECT_OK(ops->label_add(store, &label, &error), error);
    EXPECT_OK(ops->labels(store, "note", 0, labels, 2, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_TEXT(labels[0].suite, label.suite);
    EXPECT_TEXT(labels[0].text, label.text);
    EXPECT_OK(ops->labels(store, NULL, labels[0].id, labels, 2, &count, &error), error);
    char planner[SHA256_HEX_BYTES];
    void *kept = NULL;
    size_t kept_bytes = 0;
    sha256_hex("p", 1, planner);
    EXPECT_OK(ops->planner_keep(store, "s/1", planner, "files", 5, &error), error);
    EXPECT_OK(ops->planner_kept(store, "s/1", planner, &kept, &kept_bytes, &error), error);
    EXPECT(kept_bytes == 5 && memcmp(kept, "files", 5) == 0);
    free(kept);
    EXPECT_OK(ops->label_drop(store, &label, &error), error);
    EXPECT_OK(ops->labels(store, "note", 0, labels, 2, &count, &error), error);
    EXPECT_INT(count, 0);
    EXPECT_INT(count, 0);
    struct trust_event floor = {.kind = TRUST_FLOOR, .audit_rate = 0.25, .evidence = "a test"};
    struct trust_event trusted[2];
    EXPECT_OK(ops->trust_event(store, &floor, &floor, &error), error);
    EXPECT_OK(ops->trust_events(store, 0, trusted, 2, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_INT(trusted[0].id, floor.id);
    EXPECT_INT(trusted[0].kind, TRUST_FLOOR);
    EXPECT_INT(trusted[0].at_s, floor.at_s);
    EXPECT(trusted[0].audit_rate == floor.audit_rate);
    EXPECT_TEXT(trusted[0].evidence, floor.evidence);
    EXPECT_OK(ops->demand(store, rows, 2, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_INT(rows[0].jobs_queued + rows[0].workers_alive, 7);
    atomic_store(&stack.control.stands, 1);
    EXPECT_OK(ops->models(store, "", versions, 2, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_INT(ops->models(store, "student-1", versions, 2, &count, &error), STATUS_STORE);
    EXPECT_INT(ops->goldens(store, "night", goldens, 2, &count, &error), STATUS_STORE);
    EXPECT_INT(ops->trust_events(store, floor.id, trusted, 2, &count, &error), STATUS_STORE);
    EXPECT_OK(ops->model_events(store, 0, events, 2, &count, &error), error);
    EXPECT_INT(count, 1);
    EXPECT_INT(ops->model_events(store, events[0].id, events, 2, &count, &error), STATUS_STORE);
    EXPECT_CONTAINS(error.text, "ascending order");
    EXPECT_INT(ops->demand(store, rows, 2, &count, &error), STATUS_STORE);
    EXPECT_CONTAINS(error.text, "expected counts and times");
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

#define SIXTY_FOUR "0123456789012345678901234567890123456789012345678901234567890123"

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
        {"GET", "/nothing", "", 404, "no such path"},
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
         "{\"pool\":\"p\",\"device\":\"d\",\"max\":257,\"claim_id\":1}", 413, "$.max"},
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
        {"GET", "/v1/outcomes/one/drive", "", 400, "outcome: expected an integer"},
        {"GET", "/v1/outcomes/1/drive", "", 404, "only keeps the store"},
        {"PUT", "/v1/artifacts/0000", "data", 400, "hash in the path"},
        {"GET", "/v1/scenarios/0000", "", 404, "not_found"},
        {"GET", "/v1/prices/" SIXTY_FOUR "/cpu", "", 413, "pool"},
        {"GET", "/v1/prices/bulk/" SIXTY_FOUR, "", 413, "device"},
        {"POST", "/v1/suites/s/cancel", "{\"now\":1}", 400, "now"},
        {"POST", "/v1/suites/s/cancel", "[]", 400, "expected an object"},
        {"POST", "/v1/workers/w/gone", "{\"really\":true}", 400, "really"},
        {"POST", "/v1/suites/s/jobs", "{\"common\":{},\"jobs\":[]}", 400, "$.jobs"},
        {"POST", "/v1/suites/%ff/jobs", "{\"jobs\":[]}", 400, "UTF-8"},
        {"POST", "/v1/suites/%ed%a0%80/jobs", "{\"jobs\":[]}", 400, "UTF-8"},
        {"PUT", "/v1/scenarios/0000?tenant=%ff%fe", "{}", 400, "UTF-8"},
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

    /* Within every limit of bytes, but a document of two hundred megabytes. */
    enum { OBJECTS = 450000 };
    count =
        sprintf(large, "POST /v1/suites/a/jobs HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n[",
                3 * OBJECTS + 1);
    for (size_t i = 0; i < OBJECTS; i++) {
        memcpy(large + count + 3 * i, i + 1 < OBJECTS ? "{}," : "{}]", 3);
    }
    fd = support_connect(stack.socket_path);
    EXPECT_INT(support_request(fd, large, (size_t)count + 3 * OBJECTS, reply, sizeof reply), 413);
    EXPECT_CONTAINS(reply, "bytes of memory");
    close(fd);

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
    const struct store_server_options options = {0};
    static const struct http_server_times times = {
        .idle_ms = 300, .request_ms = 100, .watch_ms = 10, .drain_ms = 50};
    struct error error;
    memset(&stack, 0, sizeof stack);
    snprintf(stack.socket_path, sizeof stack.socket_path, "%s/s.sock", support_directory());
    snprintf(stack.url, sizeof stack.url, "unix:%s", stack.socket_path);
    EXPECT_OK(fake_store_open(&stack.control, &stack.fake, &error), error);
    EXPECT_OK(http_server_start(stack.fake, support_listen(stack.socket_path), NULL, &options,
                                &times, &stack.server, &error),
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
    EXPECT_INT(paths, 48);
    stack_stop(&stack);
}

/* ---- versions ---- */

static void note_member(struct sha256 *sum, const struct json_field *field)
{
    char text[LIMIT_ID_BYTES + 32];
    int bytes = snprintf(text, sizeof text, "%s:%d:%d;", field->name, (int)field->kind,
                         (int)field->optional);
    CHECK(bytes > 0 && (size_t)bytes < sizeof text);
    sha256_update(sum, text, (size_t)bytes);
}

static void note_members(struct sha256 *sum, const struct json_field_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct json_field_list *inner = list->fields[i].list;
        note_member(sum, &list->fields[i]);
        for (size_t j = 0; inner != NULL && j < inner->count; j++) {
            note_member(sum, &inner->fields[j]);
        }
    }
    sha256_update(sum, "|", 1);
}

/* Goal: a peer of another release is told so when it connects, and not by the first record that it
 * does not know, with jobs in its hands. Method: a digest of the members of all records that are
 * sent. Whoever changes one raises the version where a peer of the one before would refuse it
 * (store/wire/http_wire.h, schemas/openapi.yaml, store/SERVER.md), and writes the new digest. */
static void other_records_are_another_version(void)
{
    static const struct wire_codec *const codecs[] = {
        &wire_submit_result, &wire_progress,      &wire_completion_result,
        &wire_suite_status,  &wire_planner_mains, &wire_ledger_row,
        &wire_awaited,       &wire_demand,        &wire_job,
        &wire_lease,         &wire_outcome,       &wire_model,
        &wire_model_event,   &wire_tenant,        &wire_trust_event,
        &wire_golden,        &wire_label,         &wire_audit,
        &wire_author,        &wire_planner,       &wire_planner_in_world,
        &wire_live_worker,
    };
    static const struct json_field_list *const lists[] = {
        &job_spec_field_list,      &job_lease_field_list, &job_completion_field_list,
        &ledger_totals_field_list, &outcome_record,       &outcome_field_list,
        &metric_field_list,
    };
    struct sha256 sum;
    uint8_t digest[SHA256_BYTES];
    char hex[SHA256_HEX_BYTES];
    sha256_init(&sum);
    for (size_t i = 0; i < COUNT_OF(codecs); i++) {
        CHECK(codecs[i]->list != NULL);
        note_members(&sum, codecs[i]->list);
    }
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        note_members(&sum, lists[i]);
    }
    sha256_final(&sum, digest);
    sha256_to_hex(digest, hex);
    EXPECT_INT(HTTP_API_VERSION, 5);
    EXPECT_TEXT(hex, "89ee7274579232ff1b932811324d6469a78f0823ba1d9c3d3f18f70cc45c5466");
}

int main(int argc, char **argv)
{
    CHECK(argc == 2); /* where the API is described */
    openapi_path = argv[1];
    return TEST_RUN(TEST(calls_of_workers_arrive), TEST(calls_that_look_arrive),
                    TEST(pages_go_on_or_are_refused), TEST(bodies_of_any_size_arrive),
                    TEST(bad_requests_get_sentences), TEST(the_published_paths_are_served),
                    TEST(oversize_requests_are_refused), TEST(slow_clients_block_nobody),
                    TEST(dawdling_clients_are_cut_off), TEST(tcp_serves_as_well),
                    TEST(other_records_are_another_version));
}
