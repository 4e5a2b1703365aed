/*
 * HTTP routes: the table of endpoints and what each does with the store. See http_routes.h; the
 * API is described in schemas/openapi.yaml.
 *
 * Handlers fill the exchange's reply object; whatever they return other than OK becomes an error
 * body. Decoders check form and bounds; meaning is the store's business.
 */
#include "store/http_routes.h"

#include "base/check.h"
#include "base/units.h"
#include "schemas/job_json.h"
#include "schemas/json_record.h"
#include "store/http_wire.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CAPTURES_MAX = 2, QUERY_MAX = 8, CAPTURE_BYTES = 128 };

struct query_entry {
    char key[LIMIT_ID_BYTES];
    char value[CAPTURE_BYTES];
};

struct exchange {
    const struct http_context *context;
    struct store *store;
    const struct http_request *request;
    char ids[CAPTURES_MAX][CAPTURE_BYTES];
    struct query_entry query[QUERY_MAX];
    size_t query_count;
    json_t *body_root; /* of JSON routes; owned by http_route */
    struct json_cursor body;
    json_t *reply; /* a JSON reply; NULL with `data` set: bytes */
    char *data;
    size_t data_bytes;
    int code; /* of an error, where the status does not decide it; 0: it does */
};

enum body_kind { BODY_NONE = 0, BODY_JSON, BODY_SCENARIO, BODY_ARTIFACT };

struct route {
    const char *method;
    const char *pattern; /* '*' stands for one identifier */
    enum body_kind body;
    enum status (*handle)(struct exchange *exchange, struct error *error);
    const char *query_keys[QUERY_MAX + 1];
};

/* ---- helpers ---- */

static enum status no_memory(struct error *error)
{
    return error_set(error, STATUS_NO_MEMORY, "the store's server is out of memory");
}

/* Adds a member to the reply; false when memory runs out. */
static bool reply_put(struct exchange *exchange, const char *key, json_t *value)
{
    if (exchange->reply == NULL) {
        exchange->reply = json_object();
    }
    if (exchange->reply == NULL) {
        json_decref(value);
        return false;
    }
    return json_put(exchange->reply, key, value);
}

static enum status reply_list(struct exchange *exchange, const char *key,
                              const struct wire_codec *codec, const void *records, size_t count,
                              struct error *error)
{
    return reply_put(exchange, key, wire_list_encode(codec, records, count)) ? STATUS_OK
                                                                             : no_memory(error);
}

static enum status reply_integer(struct exchange *exchange, const char *key, int64_t value,
                                 struct error *error)
{
    return reply_put(exchange, key, json_integer(value)) ? STATUS_OK : no_memory(error);
}

/* An empty object: the call succeeded and has nothing to say. */
static enum status reply_nothing(struct exchange *exchange, struct error *error)
{
    exchange->reply = json_object();
    return exchange->reply != NULL ? STATUS_OK : no_memory(error);
}

static const char *query_find(const struct exchange *exchange, const char *key)
{
    for (size_t i = 0; i < exchange->query_count; i++) {
        if (strcmp(exchange->query[i].key, key) == 0) {
            return exchange->query[i].value;
        }
    }
    return NULL;
}

static enum status parse_integer(const char *what, const char *text, int64_t min, int64_t max,
                                 int64_t *out, struct error *error)
{
    char *end = NULL;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    bool digits = (text[0] >= '0' && text[0] <= '9') || (text[0] == '-' && text[1] != '\0');
    if (!digits || *end != '\0' || errno != 0 || value < min || value > max) {
        return error_set(error, STATUS_BAD_INPUT,
                         "%s: expected an integer from %lld to %lld, found \"%.40s\"", what,
                         (long long)min, (long long)max, text);
    }
    *out = value;
    return STATUS_OK;
}

/* *out keeps its default when the key is absent. */
static enum status query_integer(const struct exchange *exchange, const char *key, int64_t min,
                                 int64_t max, int64_t *out, struct error *error)
{
    const char *text = query_find(exchange, key);
    return text == NULL ? STATUS_OK : parse_integer(key, text, min, max, out, error);
}

static enum status query_text(const struct exchange *exchange, const char *key, char *out,
                              size_t capacity, struct error *error)
{
    const char *text = query_find(exchange, key);
    if (text != NULL && strlen(text) >= capacity) {
        return error_set(error, STATUS_LIMIT, "%s: expected at most %zu bytes", key, capacity - 1);
    }
    if (text != NULL) {
        strcpy(out, text);
    }
    return STATUS_OK;
}

static enum status check_id(const char *what, const char *id, size_t capacity, struct error *error)
{
    if (strlen(id) >= capacity) {
        return error_set(error, STATUS_LIMIT, "%s: expected at most %zu bytes", what, capacity - 1);
    }
    return STATUS_OK;
}

/* ---- submitting ---- */

static enum status handle_health(struct exchange *exchange, struct error *error)
{
    if (!reply_put(exchange, "ok", json_true()) ||
        !reply_put(exchange, "store", json_string(exchange->store->ops->name)) ||
        !reply_put(exchange, "api", json_integer(1))) {
        return no_memory(error);
    }
    return STATUS_OK;
}

static enum status handle_scenario_put(struct exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    enum status status = check_id("scenario hash", exchange->ids[0], SHA256_HEX_BYTES, error);
    if (status == STATUS_OK) {
        const char *body = exchange->request->body;
        status = store->ops->scenario_put(store, exchange->ids[0], body != NULL ? body : "",
                                          exchange->request->body_bytes, error);
    }
    return status == STATUS_OK ? reply_nothing(exchange, error) : status;
}

static enum status handle_scenario_get(struct exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    return store->ops->scenario_get(store, exchange->ids[0], &exchange->data, &exchange->data_bytes,
                                    error);
}

static enum status decode_jobs(struct exchange *exchange, struct job_spec *specs, size_t count,
                               struct error *error)
{
    struct job_spec common;
    struct json_cursor common_cursor = json_cursor_member(&exchange->body, "common");
    struct json_cursor jobs = json_cursor_member(&exchange->body, "jobs");
    bool has_common = json_cursor_present(&common_cursor);
    enum status status = STATUS_OK;
    if (has_common) {
        status = job_spec_decode(&common_cursor, NULL, &common, error);
    }
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct json_cursor job = json_cursor_element(&jobs, i);
        status = job_spec_decode(&job, has_common ? &common : NULL, &specs[i], error);
    }
    return status;
}

static enum status handle_submit(struct exchange *exchange, struct error *error)
{
    static const char *const keys[] = {"weight", "common", "jobs", NULL};
    struct store *store = exchange->store;
    struct json_cursor jobs = json_cursor_member(&exchange->body, "jobs");
    int64_t weight = 1;
    size_t count = 0;
    enum status status = json_object_begin(&exchange->body, keys, error);
    if (status == STATUS_OK) {
        status =
            json_member_integer(&exchange->body, "weight", false, 0, UINT32_MAX, &weight, error);
    }
    if (status == STATUS_OK) {
        status = json_array_begin(&jobs, 0, HTTP_SUBMIT_JOBS_MAX, &count, error);
    }
    if (status == STATUS_OK) {
        status = check_id("suite", exchange->ids[0], LIMIT_ID_BYTES, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    struct job_spec *specs = malloc((count + 1) * sizeof *specs);
    struct store_submit_result *results = calloc(count + 1, sizeof *results);
    status = specs != NULL && results != NULL ? decode_jobs(exchange, specs, count, error)
                                              : no_memory(error);
    if (status == STATUS_OK) {
        status = store->ops->submit(store, exchange->ids[0], (uint32_t)weight, specs,
                                    (uint32_t)count, results, error);
    }
    if (status == STATUS_OK) {
        status = reply_list(exchange, "results", &wire_submit_result, results, count, error);
    }
    free(specs);
    free(results);
    return status;
}

/* ---- working ---- */

static enum status decode_worker(struct exchange *exchange, struct store_worker *worker,
                                 struct error *error)
{
    memset(worker, 0, sizeof *worker);
    enum status status = check_id("worker", exchange->ids[0], sizeof worker->worker_id, error);
    if (status == STATUS_OK) {
        strcpy(worker->worker_id, exchange->ids[0]);
        status = json_member_text(&exchange->body, "pool", true, worker->pool, sizeof worker->pool,
                                  error);
    }
    if (status == STATUS_OK) {
        status = json_member_text(&exchange->body, "device", true, worker->device,
                                  sizeof worker->device, error);
    }
    return status;
}

static enum status handle_heartbeat(struct exchange *exchange, struct error *error)
{
    static const char *const keys[] = {"pool", "device", "progress", NULL};
    struct store *store = exchange->store;
    struct store_worker worker;
    struct json_cursor list = json_cursor_member(&exchange->body, "progress");
    size_t size = 0;
    uint32_t count = 0;
    uint32_t cancelled_count = 0;
    int64_t ttl_ms = 0;
    struct store_progress *progress = NULL;
    int64_t *cancelled = NULL;
    enum status status = json_object_begin(&exchange->body, keys, error);
    if (status == STATUS_OK) {
        status = decode_worker(exchange, &worker, error);
    }
    if (status == STATUS_OK) {
        status = json_array_begin(&list, 0, HTTP_PROGRESS_MAX, &size, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    progress = calloc(size + 1, sizeof *progress);
    cancelled = calloc(size + 1, sizeof *cancelled);
    status = progress != NULL && cancelled != NULL
                 ? wire_list_decode(&wire_progress, &list, progress, size, &count, error)
                 : no_memory(error);
    if (status == STATUS_OK) {
        status = store->ops->heartbeat(store, &worker, progress, count, cancelled, &cancelled_count,
                                       &ttl_ms, error);
    }
    if (status == STATUS_OK) {
        status = reply_list(exchange, "cancelled", &wire_i64, cancelled, cancelled_count, error);
    }
    if (status == STATUS_OK) {
        status = reply_integer(exchange, "ttl_ms", ttl_ms, error);
    }
    free(progress);
    free(cancelled);
    return status;
}

static bool peer_gone(const struct http_request *request)
{
    struct pollfd peer = {.fd = request->peer_fd, .events = POLLRDHUP};
    return request->peer_fd >= 0 && poll(&peer, 1, 0) > 0 &&
           (peer.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

/* Claims in slices of the wait, so that a stop, a fence or a client that went away is noticed. */
static enum status claim_in_slices(struct exchange *exchange, const struct store_worker *worker,
                                   struct http_gate_claim *claim, uint32_t max, int64_t wait_ms,
                                   struct job_lease *leases, uint32_t *count, int64_t *ttl_ms,
                                   struct error *error)
{
    struct http_gate *gate = exchange->context->gate;
    struct store *store = exchange->store;
    const struct clock *clock = exchange->context->clock;
    int64_t end_ns = clock_now_ns(clock) + wait_ms * (NS_PER_S / 1000);
    for (;;) {
        int64_t left_ms = (end_ns - clock_now_ns(clock)) / (NS_PER_S / 1000);
        int64_t slice_ms = left_ms < HTTP_WAIT_SLICE_MS ? left_ms : HTTP_WAIT_SLICE_MS;
        if (slice_ms < 0 || http_gate_stopping(gate)) {
            slice_ms = 0;
        }
        if (!http_gate_enter(gate, claim)) {
            return error_set(error, STATUS_STALE,
                             "worker %s: this claim was given up by its client", worker->worker_id);
        }
        enum status status =
            store->ops->claim(store, worker, max, slice_ms, leases, count, ttl_ms, error);
        http_gate_leave(gate, claim);
        if (status != STATUS_OK || *count > 0 || slice_ms == 0 || slice_ms == left_ms) {
            return status;
        }
        if (peer_gone(exchange->request)) {
            return error_set(error, STATUS_STALE, "worker %s: the client went away",
                             worker->worker_id);
        }
    }
}

/* Jobs claimed for a client that went away while it waited go back unharmed; should that fail, the
 * lease runs out. */
static void release_leases(struct store *store, const struct store_worker *worker,
                           const struct job_lease *leases, uint32_t count)
{
    struct job_completion *releases = calloc(count, sizeof *releases);
    struct store_completion_result *results = calloc(count, sizeof *results);
    if (releases != NULL && results != NULL) {
        for (uint32_t i = 0; i < count; i++) {
            releases[i].job_id = leases[i].job_id;
            releases[i].epoch = leases[i].epoch;
            releases[i].kind = COMPLETION_RELEASED;
            memcpy(releases[i].worker_id, worker->worker_id, sizeof releases[i].worker_id);
        }
        (void)store->ops->complete(store, releases, count, results, NULL);
    }
    free(releases);
    free(results);
}

static enum status claim_for(struct exchange *exchange, const struct store_worker *worker,
                             uint32_t max, int64_t wait_ms, int64_t sequence, struct error *error)
{
    struct http_gate *gate = exchange->context->gate;
    struct http_gate_claim claim = {.worker_id = worker->worker_id, .sequence = sequence};
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    struct job_lease *leases = calloc((size_t)max + 1, sizeof *leases);
    if (leases == NULL) {
        return no_memory(error);
    }
    if (!http_gate_begin(gate, &claim)) {
        free(leases);
        return error_set(error, STATUS_STALE, "worker %s: this claim was given up by its client",
                         worker->worker_id);
    }
    enum status status =
        claim_in_slices(exchange, worker, &claim, max, wait_ms, leases, &count, &ttl_ms, error);
    if (status == STATUS_OK && count > 0 && peer_gone(exchange->request)) {
        release_leases(exchange->store, worker, leases, count);
        count = 0;
    }
    http_gate_end(gate, &claim);
    if (status == STATUS_OK) {
        status = reply_list(exchange, "leases", &wire_lease, leases, count, error);
    }
    if (status == STATUS_OK) {
        status = reply_integer(exchange, "ttl_ms", ttl_ms, error);
    }
    free(leases);
    return status;
}

static enum status handle_claim(struct exchange *exchange, struct error *error)
{
    static const char *const keys[] = {"pool", "device", "max", "wait_ms", "sequence", NULL};
    struct store_worker worker;
    int64_t max = 1;
    int64_t wait_ms = 0;
    int64_t sequence = 0;
    enum status status = json_object_begin(&exchange->body, keys, error);
    if (status == STATUS_OK) {
        status = decode_worker(exchange, &worker, error);
    }
    if (status == STATUS_OK) {
        status =
            json_member_integer(&exchange->body, "max", true, 0, LIMIT_CLAIM_JOBS, &max, error);
    }
    if (status == STATUS_OK) {
        status = json_member_integer(&exchange->body, "wait_ms", false, 0, HTTP_WAIT_MS_MAX,
                                     &wait_ms, error);
    }
    if (status == STATUS_OK) {
        status = json_member_integer(&exchange->body, "sequence", true, 1, INT64_MAX - 1, &sequence,
                                     error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    return claim_for(exchange, &worker, (uint32_t)max, wait_ms, sequence, error);
}

static enum status decode_completions(const struct json_cursor *list,
                                      struct job_completion *completions, struct outcome **outcomes,
                                      size_t count, struct error *error)
{
    uint64_t outcome_count = 0;
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct json_cursor element = json_cursor_element(list, i);
        status = job_completion_decode(&element, &completions[i], &outcomes[i], error);
        if (status == STATUS_OK) {
            outcome_count += completions[i].outcome_count;
        }
        if (status == STATUS_OK && i > 0 && outcome_count > HTTP_COMPLETION_OUTCOMES_MAX) {
            status = error_set(error, STATUS_LIMIT,
                               "completions: expected at most %d outcomes in one request",
                               HTTP_COMPLETION_OUTCOMES_MAX);
        }
    }
    return status;
}

static enum status handle_complete(struct exchange *exchange, struct error *error)
{
    static const char *const keys[] = {"completions", NULL};
    struct store *store = exchange->store;
    struct json_cursor list = json_cursor_member(&exchange->body, "completions");
    size_t count = 0;
    enum status status = json_object_begin(&exchange->body, keys, error);
    if (status == STATUS_OK) {
        status = json_array_begin(&list, 0, HTTP_COMPLETIONS_MAX, &count, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    struct job_completion *completions = calloc(count + 1, sizeof *completions);
    struct outcome **outcomes = calloc(count + 1, sizeof(struct outcome *));
    struct store_completion_result *results = calloc(count + 1, sizeof *results);
    bool memory = completions != NULL && outcomes != NULL && results != NULL;
    status =
        memory ? decode_completions(&list, completions, outcomes, count, error) : no_memory(error);
    if (status == STATUS_OK && count > 0) {
        status = store->ops->complete(store, completions, (uint32_t)count, results, error);
    }
    if (status == STATUS_OK) {
        status = reply_list(exchange, "results", &wire_completion_result, results, count, error);
    }
    for (size_t i = 0; outcomes != NULL && i < count; i++) {
        free(outcomes[i]);
    }
    free(outcomes);
    free(completions);
    free(results);
    return status;
}

static enum status handle_worker_gone(struct exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    enum status status = check_id("worker", exchange->ids[0], LIMIT_ID_BYTES, error);
    if (status == STATUS_OK) {
        /* A claim that still waits for the dead worker would take a new lease. */
        http_gate_fence(exchange->context->gate, exchange->ids[0], HTTP_FENCE_PRESENT);
        status = store->ops->worker_gone(store, exchange->ids[0], error);
    }
    return status == STATUS_OK ? reply_nothing(exchange, error) : status;
}

static enum status handle_worker_leases(struct exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    int64_t after = 0;
    int64_t max = HTTP_PAGE_MAX;
    int64_t fence = 0;
    uint32_t count = 0;
    enum status status = query_integer(exchange, "after", INT64_MIN, INT64_MAX, &after, error);
    if (status == STATUS_OK) {
        status = query_integer(exchange, "max", 0, HTTP_PAGE_MAX, &max, error);
    }
    if (status == STATUS_OK) {
        status = query_integer(exchange, "fence", 0, INT64_MAX - 1, &fence, error);
    }
    if (status == STATUS_OK) {
        status = check_id("worker", exchange->ids[0], LIMIT_ID_BYTES, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    if (fence > 0) {
        http_gate_fence(exchange->context->gate, exchange->ids[0], fence);
    }
    struct job_lease *leases = calloc((size_t)max + 1, sizeof *leases);
    if (leases == NULL) {
        return no_memory(error);
    }
    status = store->ops->worker_leases(store, exchange->ids[0], after, leases, (uint32_t)max,
                                       &count, error);
    if (status == STATUS_OK) {
        status = reply_list(exchange, "leases", &wire_lease, leases, count, error);
    }
    free(leases);
    return status;
}

/* ---- looking ---- */

static enum status handle_suite_status(struct exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    struct store_suite_status suite;
    memset(&suite, 0, sizeof suite);
    enum status status = check_id("suite", exchange->ids[0], LIMIT_ID_BYTES, error);
    if (status == STATUS_OK) {
        status = store->ops->suite_status(store, exchange->ids[0], &suite, error);
    }
    if (status == STATUS_OK) {
        exchange->reply = wire_suite_status.encode(&suite);
        status = exchange->reply != NULL ? STATUS_OK : no_memory(error);
    }
    return status;
}

static enum status handle_suites(struct exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    int64_t max = HTTP_LIST_MAX;
    uint32_t count = 0;
    enum status status = query_integer(exchange, "max", 0, HTTP_LIST_MAX, &max, error);
    if (status != STATUS_OK) {
        return status;
    }
    char(*ids)[LIMIT_ID_BYTES] = calloc((size_t)max + 1, sizeof *ids);
    if (ids == NULL) {
        return no_memory(error);
    }
    status = store->ops->suites(store, ids, (uint32_t)max, &count, error);
    if (status == STATUS_OK) {
        status = reply_list(exchange, "suites", &wire_text_id, ids, count, error);
    }
    free(ids);
    return status;
}

static enum status decode_filter(const struct exchange *exchange,
                                 struct store_outcome_filter *filter, struct error *error)
{
    int64_t limit = 100;
    memset(filter, 0, sizeof *filter);
    enum status status = query_integer(exchange, "limit", 0, UINT32_MAX, &limit, error);
    if (status == STATUS_OK) {
        status = query_text(exchange, "suite", filter->suite_id, sizeof filter->suite_id, error);
    }
    if (status == STATUS_OK) {
        status = query_text(exchange, "scenario", filter->scenario_id, sizeof filter->scenario_id,
                            error);
    }
    if (status == STATUS_OK) {
        status = query_integer(exchange, "job", INT64_MIN, INT64_MAX, &filter->job_id, error);
    }
    if (status == STATUS_OK) {
        status =
            query_integer(exchange, "outcome", INT64_MIN, INT64_MAX, &filter->outcome_id, error);
    }
    if (status == STATUS_OK) {
        status = query_integer(exchange, "after", INT64_MIN, INT64_MAX, &filter->after_id, error);
    }
    const char *verdict = query_find(exchange, "verdict");
    if (status == STATUS_OK && verdict != NULL) {
        int index = 0;
        while (index < VERDICT_COUNT && strcmp(verdict, verdict_names[index]) != 0) {
            index++;
        }
        if (index == VERDICT_COUNT) {
            return error_set(error, STATUS_BAD_INPUT,
                             "verdict: expected a verdict, found \"%.40s\"", verdict);
        }
        filter->by_verdict = true;
        filter->verdict = (enum verdict)index;
    }
    if (status == STATUS_OK && (limit < 1 || limit > HTTP_PAGE_MAX)) {
        return error_set(error, STATUS_BAD_INPUT, "limit: expected 1 to %d, found %lld",
                         HTTP_PAGE_MAX, (long long)limit);
    }
    filter->limit = (uint32_t)limit;
    return status;
}

static enum status handle_outcomes(struct exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    struct store_outcome_filter filter;
    uint32_t count = 0;
    enum status status = decode_filter(exchange, &filter, error);
    if (status != STATUS_OK) {
        return status;
    }
    struct outcome *outcomes = calloc(filter.limit, sizeof *outcomes);
    if (outcomes == NULL) {
        return no_memory(error);
    }
    status = store->ops->outcomes(store, &filter, outcomes, &count, error);
    if (status == STATUS_OK) {
        status = reply_list(exchange, "outcomes", &wire_outcome, outcomes, count, error);
    }
    free(outcomes);
    return status;
}

static enum status handle_job(struct exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    struct store_job job;
    int64_t job_id = 0;
    memset(&job, 0, sizeof job);
    enum status status =
        parse_integer("job", exchange->ids[0], INT64_MIN, INT64_MAX, &job_id, error);
    if (status == STATUS_OK) {
        status = store->ops->job(store, job_id, &job, error);
    }
    if (status == STATUS_OK) {
        exchange->reply = wire_job.encode(&job);
        status = exchange->reply != NULL ? STATUS_OK : no_memory(error);
    }
    return status;
}

static enum status handle_dead_jobs(struct exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    int64_t after = 0;
    int64_t max = HTTP_PAGE_MAX;
    uint32_t count = 0;
    enum status status = query_integer(exchange, "after", INT64_MIN, INT64_MAX, &after, error);
    if (status == STATUS_OK) {
        status = query_integer(exchange, "max", 0, HTTP_PAGE_MAX, &max, error);
    }
    if (status == STATUS_OK) {
        status = check_id("suite", exchange->ids[0], LIMIT_ID_BYTES, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    struct store_job *jobs = calloc((size_t)max + 1, sizeof *jobs);
    if (jobs == NULL) {
        return no_memory(error);
    }
    status =
        store->ops->dead_jobs(store, exchange->ids[0], after, jobs, (uint32_t)max, &count, error);
    if (status == STATUS_OK) {
        status = reply_list(exchange, "jobs", &wire_job, jobs, count, error);
    }
    free(jobs);
    return status;
}

static enum status handle_ledger(struct exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    char suite_id[LIMIT_ID_BYTES] = "";
    int64_t max = HTTP_LIST_MAX;
    uint32_t count = 0;
    enum status status = query_integer(exchange, "max", 0, HTTP_LIST_MAX, &max, error);
    if (status == STATUS_OK) {
        status = query_text(exchange, "suite", suite_id, sizeof suite_id, error);
    }
    if (status != STATUS_OK) {
        return status;
    }
    struct store_ledger_row *rows = calloc((size_t)max + 1, sizeof *rows);
    if (rows == NULL) {
        return no_memory(error);
    }
    const char *suite = query_find(exchange, "suite") != NULL ? suite_id : NULL;
    status = store->ops->ledger(store, suite, rows, (uint32_t)max, &count, error);
    if (status == STATUS_OK) {
        status = reply_list(exchange, "rows", &wire_ledger_row, rows, count, error);
    }
    free(rows);
    return status;
}

static enum status handle_price_set(struct exchange *exchange, struct error *error)
{
    static const char *const keys[] = {"price_uusd_per_hour", NULL};
    struct store *store = exchange->store;
    int64_t price = 0;
    enum status status = json_object_begin(&exchange->body, keys, error);
    if (status == STATUS_OK) {
        status = json_member_integer(&exchange->body, keys[0], true, INT64_MIN, INT64_MAX, &price,
                                     error);
    }
    if (status == STATUS_OK) {
        status = check_id("pool", exchange->ids[0], LIMIT_ID_BYTES, error);
    }
    if (status == STATUS_OK) {
        status = check_id("device", exchange->ids[1], LIMIT_ID_BYTES, error);
    }
    if (status == STATUS_OK) {
        status = store->ops->price_set(store, exchange->ids[0], exchange->ids[1], price, error);
    }
    return status == STATUS_OK ? reply_nothing(exchange, error) : status;
}

static enum status handle_price_get(struct exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    int64_t price = 0;
    enum status status =
        store->ops->price_get(store, exchange->ids[0], exchange->ids[1], &price, error);
    return status == STATUS_OK ? reply_integer(exchange, "price_uusd_per_hour", price, error)
                               : status;
}

static enum status handle_cancel(struct exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    int64_t count = 0;
    enum status status = check_id("suite", exchange->ids[0], LIMIT_ID_BYTES, error);
    if (status == STATUS_OK) {
        status = store->ops->cancel(store, exchange->ids[0], &count, error);
    }
    return status == STATUS_OK ? reply_integer(exchange, "cancelled", count, error) : status;
}

/* ---- artifacts ---- */

static enum status handle_artifact_put(struct exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    const struct http_request *request = exchange->request;
    char hash[SHA256_HEX_BYTES];
    const void *data = request->body != NULL ? request->body : "";
    sha256_hex(data, request->body_bytes, hash);
    if (strcmp(hash, exchange->ids[0]) != 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "artifact: expected bytes with the hash in the path, found %s", hash);
    }
    enum status status = store->ops->artifact_put(store, data, request->body_bytes, hash, error);
    return status == STATUS_OK ? reply_nothing(exchange, error) : status;
}

static enum status handle_artifact_get(struct exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    void *data = NULL;
    enum status status = check_id("artifact hash", exchange->ids[0], SHA256_HEX_BYTES, error);
    if (status == STATUS_OK) {
        status =
            store->ops->artifact_get(store, exchange->ids[0], &data, &exchange->data_bytes, error);
    }
    if (status == STATUS_OK) {
        exchange->data = data;
    }
    return status;
}

/* ---- routing ---- */

static const struct route routes[] = {
    {"GET", "/v1/health", BODY_NONE, handle_health, {NULL}},
    {"PUT", "/v1/scenarios/*", BODY_SCENARIO, handle_scenario_put, {NULL}},
    {"GET", "/v1/scenarios/*", BODY_NONE, handle_scenario_get, {NULL}},
    {"GET", "/v1/suites", BODY_NONE, handle_suites, {"max", NULL}},
    {"GET", "/v1/suites/*", BODY_NONE, handle_suite_status, {NULL}},
    {"POST", "/v1/suites/*/jobs", BODY_JSON, handle_submit, {NULL}},
    {"GET", "/v1/suites/*/dead", BODY_NONE, handle_dead_jobs, {"after", "max", NULL}},
    {"POST", "/v1/suites/*/cancel", BODY_JSON, handle_cancel, {NULL}},
    {"POST", "/v1/workers/*/heartbeat", BODY_JSON, handle_heartbeat, {NULL}},
    {"POST", "/v1/workers/*/claim", BODY_JSON, handle_claim, {NULL}},
    {"POST", "/v1/workers/*/gone", BODY_JSON, handle_worker_gone, {NULL}},
    {"GET", "/v1/workers/*/leases", BODY_NONE, handle_worker_leases, {"after", "max", "fence"}},
    {"POST", "/v1/completions", BODY_JSON, handle_complete, {NULL}},
    {"GET",
     "/v1/outcomes",
     BODY_NONE,
     handle_outcomes,
     {"suite", "scenario", "job", "outcome", "verdict", "after", "limit", NULL}},
    {"GET", "/v1/jobs/*", BODY_NONE, handle_job, {NULL}},
    {"GET", "/v1/ledger", BODY_NONE, handle_ledger, {"suite", "max", NULL}},
    {"PUT", "/v1/prices/*/*", BODY_JSON, handle_price_set, {NULL}},
    {"GET", "/v1/prices/*/*", BODY_NONE, handle_price_get, {NULL}},
    {"PUT", "/v1/artifacts/*", BODY_ARTIFACT, handle_artifact_put, {NULL}},
    {"GET", "/v1/artifacts/*", BODY_NONE, handle_artifact_get, {NULL}},
};

/* Does the raw path fit the pattern? captures[] receives where each '*' stands. */
static bool pattern_fits(const char *pattern, const char *path, size_t path_bytes,
                         const char *captures[CAPTURES_MAX], size_t capture_bytes[CAPTURES_MAX])
{
    size_t at = 0;
    size_t capture = 0;
    memset(captures, 0, CAPTURES_MAX * sizeof captures[0]);
    for (; *pattern != '\0'; pattern++) {
        if (*pattern == '*') {
            size_t begin = at;
            while (at < path_bytes && path[at] != '/') {
                at++;
            }
            captures[capture] = path + begin;
            capture_bytes[capture++] = at - begin;
        } else if (at >= path_bytes || path[at++] != *pattern) {
            return false;
        }
    }
    return at == path_bytes;
}

/* The route of a request, with its captures; *known_path: some other method has this path. */
static const struct route *find_route(const char *method, const char *uri,
                                      const char *captures[CAPTURES_MAX],
                                      size_t capture_bytes[CAPTURES_MAX], bool *known_path)
{
    size_t path_bytes = strcspn(uri, "?");
    *known_path = false;
    for (size_t i = 0; i < COUNT_OF(routes); i++) {
        if (pattern_fits(routes[i].pattern, uri, path_bytes, captures, capture_bytes)) {
            *known_path = true;
            if (strcmp(routes[i].method, method) == 0) {
                return &routes[i];
            }
        }
    }
    return NULL;
}

size_t http_route_body_max(const char *method, const char *uri)
{
    const char *captures[CAPTURES_MAX];
    size_t capture_bytes[CAPTURES_MAX];
    bool known_path;
    const struct route *route = find_route(method, uri, captures, capture_bytes, &known_path);
    switch (route != NULL ? route->body : BODY_NONE) {
    case BODY_JSON:
        return HTTP_JSON_BYTES_MAX;
    case BODY_SCENARIO:
        return LIMIT_DOCUMENT_BYTES;
    case BODY_ARTIFACT:
        return LIMIT_ARTIFACT_BYTES;
    default:
        return 0;
    }
}

static enum status parse_query(struct exchange *exchange, const struct route *route,
                               const char *text, struct error *error)
{
    while (*text != '\0') {
        size_t bytes = strcspn(text, "&");
        size_t key_bytes = strcspn(text, "=&");
        struct query_entry *entry = &exchange->query[exchange->query_count];
        if (exchange->query_count == QUERY_MAX) {
            return error_set(error, STATUS_LIMIT, "query: expected at most %d members", QUERY_MAX);
        }
        enum status status =
            http_percent_decode("query", text, key_bytes, entry->key, sizeof entry->key, error);
        if (status == STATUS_OK) {
            size_t skip = key_bytes < bytes ? key_bytes + 1 : key_bytes;
            status = http_percent_decode("query", text + skip, bytes - skip, entry->value,
                                         sizeof entry->value, error);
        }
        if (status != STATUS_OK) {
            return status;
        }
        const char *const *legal = route->query_keys;
        while (*legal != NULL && strcmp(*legal, entry->key) != 0) {
            legal++;
        }
        if (*legal == NULL || query_find(exchange, entry->key) != NULL) {
            return error_set(error, STATUS_BAD_INPUT, "query: unknown or repeated member \"%s\"",
                             entry->key);
        }
        exchange->query_count++;
        text += bytes + (text[bytes] == '&');
    }
    return STATUS_OK;
}

static enum status dispatch(struct exchange *exchange, struct error *error)
{
    const struct http_request *request = exchange->request;
    const char *captures[CAPTURES_MAX] = {NULL};
    size_t capture_bytes[CAPTURES_MAX] = {0};
    bool known_path;
    const struct route *route =
        find_route(request->method, request->uri, captures, capture_bytes, &known_path);
    if (route == NULL) {
        exchange->code = known_path ? 405 : 404;
        return error_set(error, STATUS_USAGE, "%s: %s %.200s",
                         known_path ? "wrong method" : "no such path", request->method,
                         request->uri);
    }
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < CAPTURES_MAX && captures[i] != NULL; i++) {
        status = http_percent_decode("path", captures[i], capture_bytes[i], exchange->ids[i],
                                     sizeof exchange->ids[i], error);
    }
    const char *query = strchr(request->uri, '?');
    if (status == STATUS_OK && query != NULL) {
        status = parse_query(exchange, route, query + 1, error);
    }
    if (status == STATUS_OK && route->body == BODY_JSON) {
        status = json_read_text("request body", request->body != NULL ? request->body : "",
                                request->body_bytes, &exchange->body_root, error);
        exchange->body = json_cursor_root("request body", exchange->body_root);
    }
    return status == STATUS_OK ? route->handle(exchange, error) : status;
}

static void reply_json(struct http_reply *reply, int code, const json_t *value)
{
    reply->code = code;
    reply->json = true;
    reply->data = value != NULL ? json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    reply->bytes = reply->data != NULL ? strlen(reply->data) : 0;
    if (reply->data == NULL) {
        reply->code = 500;
    }
}

void http_reply_error(struct http_reply *reply, const struct error *error)
{
    json_t *value = http_error_encode(error);
    reply_json(reply, http_code_of(error->status), value);
    json_decref(value);
}

void http_route(const struct http_context *context, const struct http_request *request,
                struct http_reply *reply)
{
    struct error error = {.status = STATUS_STORE, .text = ""};
    struct exchange exchange = {
        .context = context,
        .store = context->store,
        .request = request,
    };
    memset(reply, 0, sizeof *reply);
    enum status status = dispatch(&exchange, &error);
    json_decref(exchange.body_root);
    if (status != STATUS_OK) {
        error.status = status;
        http_reply_error(reply, &error);
        if (exchange.code != 0 && reply->data != NULL) {
            reply->code = exchange.code;
        }
    } else if (exchange.data != NULL) {
        reply->code = 200;
        reply->data = exchange.data;
        reply->bytes = exchange.data_bytes;
        exchange.data = NULL;
    } else {
        reply_json(reply, 200, exchange.reply);
    }
    json_decref(exchange.reply);
    free(exchange.data);
}
