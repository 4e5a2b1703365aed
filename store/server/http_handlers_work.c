/*
 * Handlers of the endpoints that submit and do work. See http_handlers.h.
 */
#include "base/units.h"
#include "schemas/job_context.h"
#include "schemas/job_json.h"
#include "schemas/json_record.h"
#include "store/server/http_handlers.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

/* ---- submitting ---- */

enum status http_handle_health(struct http_exchange *exchange, struct error *error)
{
    if (!http_reply_put(exchange, "ok", json_true()) ||
        !http_reply_put(exchange, "store", json_string(exchange->store->ops->name)) ||
        !http_reply_put(exchange, "api", json_integer(HTTP_API_VERSION))) {
        return http_no_memory(error);
    }
    return STATUS_OK;
}

/* For whom a call is that says `asked` (NULL: nothing); NULL: whoever the suite belongs to. A token
 * speaks for its own tenant alone, an administrator for any. */
static enum status find_tenant(struct http_exchange *exchange, const char *asked, const char **out,
                               struct error *error)
{
    const struct token *grant = exchange->request->grant;
    bool any = grant == NULL || grant->role == TOKEN_ROLE_ADMIN;
    if (!any && asked != NULL && strcmp(asked, grant->tenant) != 0) {
        exchange->code = 403;
        return error_set(error, STATUS_STORE,
                         "the token of \"%s\" submits for %s%s, not for tenant \"%s\"", grant->name,
                         grant->tenant[0] != '\0' ? "tenant " : "nobody", grant->tenant, asked);
    }
    *out = any ? asked : grant->tenant;
    return *out != NULL ? http_id_check("tenant", *out, LIMIT_ID_BYTES, error) : STATUS_OK;
}

enum status http_handle_scenario_put(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    const char *hash = exchange->ids[0];
    const char *tenant = http_query_find(exchange, "tenant");
    const char *body = exchange->request->body != NULL ? exchange->request->body : "";
    size_t bytes = exchange->request->body_bytes;
    TRY(http_id_check("scenario hash", hash, SHA256_HEX_BYTES, error));
    TRY(find_tenant(exchange, tenant, &tenant, error));
    enum status status = tenant == NULL || tenant[0] == '\0'
                             ? store->ops->scenario_put(store, hash, body, bytes, error)
                             : store->ops->scenario_put_as(store, tenant, hash, body, bytes, error);
    exchange->code =
        status == STATUS_LIMIT ? 403 : 0; /* a quota's: no body is longer than may be */
    TRY(status);
    return http_reply_nothing(exchange, error);
}

enum status http_handle_scenario_get(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    return store->ops->scenario_get(store, exchange->ids[0], &exchange->data, &exchange->data_bytes,
                                    error);
}

static enum status decode_jobs(struct http_exchange *exchange, struct job_spec *specs, size_t count,
                               struct error *error)
{
    struct job_spec common;
    struct json_cursor common_cursor = json_cursor_member(&exchange->body, "common");
    struct json_cursor jobs = json_cursor_member(&exchange->body, "jobs");
    bool has_common = json_cursor_present(&common_cursor);
    if (has_common && count == 0) {
        return json_fail(&jobs, error, "expected jobs that have something in common, found none");
    }
    if (has_common) {
        TRY(job_spec_decode(&common_cursor, NULL, &common, error));
    }
    for (size_t i = 0; i < count; i++) {
        struct json_cursor job = json_cursor_element(&jobs, i);
        TRY(job_spec_decode(&job, has_common ? &common : NULL, &specs[i], error));
    }
    return STATUS_OK;
}

/* An evaluation lets a student answer where it is frozen: an administrator's decision. */
static enum status check_evaluations(struct http_exchange *exchange, const struct job_spec *specs,
                                     uint32_t count, struct error *error)
{
    const struct token *grant = exchange->request->grant;
    for (uint32_t i = 0; grant != NULL && grant->role != TOKEN_ROLE_ADMIN && i < count; i++) {
        if (specs[i].evaluates) {
            exchange->code = 403;
            return error_set(error, STATUS_STORE,
                             "job %u evaluates a student: expected a token of the role admin, "
                             "found \"%s\" of the role %s",
                             i, grant->name, token_role_names[grant->role]);
        }
    }
    return STATUS_OK;
}

static enum status submit(struct http_exchange *exchange, const char *tenant, uint32_t weight,
                          enum suite_class of_class, int64_t budget_uusd,
                          const struct job_spec *specs, uint32_t count,
                          struct store_submit_result *results, struct error *error)
{
    struct store *store = exchange->store;
    const char *suite = exchange->ids[0];
    enum status status =
        tenant == NULL && budget_uusd == 0 && of_class == SUITE_CLASS_SAME
            ? store->ops->submit(store, suite, weight, specs, count, results, error)
            : store->ops->submit_as(store, tenant, suite, weight, of_class, budget_uusd, specs,
                                    count, results, error);
    exchange->code = status == STATUS_LIMIT ? 403 : 0; /* a quota's */
    return status;
}

enum status http_handle_submit(struct http_exchange *exchange, struct error *error)
{
    static const char *const keys[] = {"weight", "common",      "jobs", "tenant",
                                       "class",  "budget_uusd", NULL};
    char named[LIMIT_ID_BYTES] = "";
    const char *tenant = NULL;
    struct json_cursor jobs = json_cursor_member(&exchange->body, "jobs");
    struct json_cursor asked = json_cursor_member(&exchange->body, "tenant");
    int64_t weight = 1;
    int of_class = SUITE_CLASS_SAME;
    int64_t budget_uusd = 0;
    size_t count = 0;
    TRY(json_object_begin(&exchange->body, keys, error));
    TRY(json_member_integer(&exchange->body, "weight", false, 0, UINT32_MAX, &weight, error));
    TRY(json_member_integer(&exchange->body, "budget_uusd", false, 1, STORE_BUDGET_UUSD_MAX,
                            &budget_uusd, error));
    TRY(json_member_choice(&exchange->body, "class", false, suite_class_names, SUITE_CLASS_COUNT,
                           &of_class, error));
    TRY(json_array_begin(&jobs, 0, HTTP_SUBMIT_JOBS_MAX, &count, error));
    TRY(json_member_text(&exchange->body, "tenant", false, named, LIMIT_ID_BYTES, error));
    TRY(find_tenant(exchange, json_cursor_present(&asked) ? named : NULL, &tenant, error));
    TRY(http_id_check("suite", exchange->ids[0], LIMIT_ID_BYTES, error));
    struct job_spec *specs = malloc((count + 1) * sizeof *specs);
    struct store_submit_result *results = calloc(count + 1, sizeof *results);
    enum status status = specs != NULL && results != NULL
                             ? decode_jobs(exchange, specs, count, error)
                             : http_no_memory(error);
    THEN(status, check_evaluations(exchange, specs, (uint32_t)count, error));
    THEN(status, submit(exchange, tenant, (uint32_t)weight, (enum suite_class)of_class, budget_uusd,
                        specs, (uint32_t)count, results, error));
    THEN(status, http_reply_list(exchange, "results", &wire_submit_result, results, count, error));
    free(specs);
    free(results);
    return status;
}

/* ---- working ---- */

static enum status decode_worker(struct http_exchange *exchange, struct store_worker *worker,
                                 struct error *error)
{
    memset(worker, 0, sizeof *worker);
    enum status status = http_id_check("worker", exchange->ids[0], sizeof worker->worker_id, error);
    if (status == STATUS_OK) {
        strcpy(worker->worker_id, exchange->ids[0]);
        status = json_member_text(&exchange->body, "pool", true, worker->pool, sizeof worker->pool,
                                  error);
    }
    THEN(status, json_member_text(&exchange->body, "device", true, worker->device,
                                  sizeof worker->device, error));
    THEN(status, http_check_pool(exchange, worker->worker_id, worker->pool, error));
    const struct token *grant = exchange->request->grant;
    if (status == STATUS_OK && grant != NULL && grant->role == TOKEN_ROLE_WORKER) {
        memcpy(worker->holder, grant->principal, sizeof grant->principal);
        memcpy(worker->holder_name, grant->name, sizeof worker->holder_name);
    }
    return status;
}

enum status http_handle_heartbeat(struct http_exchange *exchange, struct error *error)
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
    TRY(json_object_begin(&exchange->body, keys, error));
    TRY(decode_worker(exchange, &worker, error));
    TRY(json_array_begin(&list, 0, HTTP_PROGRESS_MAX, &size, error));
    progress = calloc(size + 1, sizeof *progress);
    cancelled = calloc(size + 1, sizeof *cancelled);
    enum status status =
        progress != NULL && cancelled != NULL
            ? wire_list_decode(&wire_progress, &list, progress, size, &count, error)
            : http_no_memory(error);
    if (status == STATUS_OK) {
        status = store->ops->heartbeat(store, &worker, progress, count, cancelled, &cancelled_count,
                                       &ttl_ms, error);
        exchange->code = status == STATUS_MISMATCH ? 403 : 0;
    }
    THEN(status,
         http_reply_list(exchange, "cancelled", &wire_i64, cancelled, cancelled_count, error));
    THEN(status, http_reply_integer(exchange, "ttl_ms", ttl_ms, error));
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

/* A claim that waits: what it asks for, and until when. */
struct patience {
    struct http_exchange *exchange;
    const struct store_worker *worker;
    int64_t claim_id; /* of the next claim, once this one has leased jobs */
    uint32_t max;
    int64_t end_ns;
    uint64_t generation; /* of what is claimable, when it was last looked for */
};

static int64_t left_ms(const struct patience *patience)
{
    int64_t left_ns = patience->end_ns - clock_now_ns(patience->exchange->context->clock);
    return left_ns > 0 ? left_ns / NS_PER_MS : 0;
}

static int64_t slice_ms(const struct patience *patience)
{
    const atomic_bool *stopping = patience->exchange->context->stopping;
    int64_t left = left_ms(patience);
    if (stopping != NULL && atomic_load(stopping)) {
        return 0;
    }
    return left < HTTP_WAIT_SLICE_MS ? left : HTTP_WAIT_SLICE_MS;
}

/* Not OK: nobody waits for the answer any more. */
static enum status check_wanted(const struct patience *patience, struct error *error)
{
    return peer_gone(patience->exchange->request)
               ? error_set(error, STATUS_STALE, "worker %s: the client went away",
                           patience->worker->worker_id)
               : STATUS_OK;
}

/* Until there may be something to claim, the lease wants renewing (*again), or nothing is left to
 * wait for. In slices, so that a stop or a client that went away is noticed. The claim is
 * not inside the store meanwhile and costs its writer nothing; of a store that cannot wait by
 * itself, the claim has waited for one slice. */
static enum status wait_for_work(struct patience *patience, int64_t ttl_ms, bool *again,
                                 struct error *error)
{
    struct store *store = patience->exchange->store;
    const struct clock *clock = patience->exchange->context->clock;
    int64_t renew_ns = clock_now_ns(clock) + ttl_ms / 3 * NS_PER_MS;
    uint64_t seen = patience->generation;
    enum status status = check_wanted(patience, error);
    *again = store->ops->claimable_wait == NULL && slice_ms(patience) > 0;
    while (status == STATUS_OK && !*again && slice_ms(patience) > 0) {
        store->ops->claimable_wait(store, &patience->generation, slice_ms(patience));
        *again = patience->generation != seen || clock_now_ns(clock) >= renew_ns;
        status = check_wanted(patience, error);
    }
    return status;
}

static enum status claim_with_patience(struct patience *patience, struct job_lease *leases,
                                       uint32_t *count, int64_t *ttl_ms, struct error *error)
{
    struct store *store = patience->exchange->store;
    int64_t claim_id = patience->claim_id;
    bool again = true;
    enum status status = STATUS_OK;
    while (status == STATUS_OK && again) {
        int64_t wait_ms = slice_ms(patience);
        if (store->ops->claimable_wait != NULL) {
            store->ops->claimable_wait(store, &patience->generation, 0);
            wait_ms = 0;
        }
        TRY(http_check_live(patience->exchange, error)); /* it may have waited for long */
        status = store->ops->claim(store, patience->worker, &patience->claim_id, patience->max,
                                   wait_ms, leases, count, ttl_ms, error);
        again = false;
        if (status == STATUS_OK && patience->claim_id == claim_id && slice_ms(patience) > 0) {
            status = wait_for_work(patience, *ttl_ms, &again, error);
        }
    }
    return status;
}

static enum status claim_for(struct patience *patience, struct error *error)
{
    struct http_exchange *exchange = patience->exchange;
    uint32_t count = 0;
    int64_t ttl_ms = 0;
    struct json_text text = {0};
    struct job_lease *leases = malloc(((size_t)patience->max + 1) * sizeof *leases);
    exchange->rows = leases;
    TRY(memory_check(leases, error, HTTP_NO_MEMORY));
    enum status status = claim_with_patience(patience, leases, &count, &ttl_ms, error);
    exchange->code = status == STATUS_MISMATCH ? 403 : exchange->code;
    TRY(status);
    json_write_literal(&text, "{\"leases\":[");
    for (uint32_t i = 0; i < count; i++) {
        json_write_literal(&text, i == 0 ? "" : ",");
        /* Nothing to a worker, and one of an earlier version refuses members that it does not know.
         */
        job_escalation_clear(&leases[i].spec);
        json_write_record(&text, &job_lease_field_list, &leases[i]);
    }
    json_write_literal(&text, "],\"ttl_ms\":");
    json_write_integer(&text, ttl_ms);
    json_write_literal(&text, ",\"next_claim_id\":");
    json_write_integer(&text, patience->claim_id);
    json_write_literal(&text, "}");
    return http_reply_text(exchange, &text, error);
}

/* The planners that the worker leaves alone; *out is malloc'ed, NULL when there are none. */
static enum status decode_without(struct http_exchange *exchange, struct store_worker *worker,
                                  struct store_planner **out, struct error *error)
{
    struct json_cursor list = json_cursor_member(&exchange->body, "without");
    size_t count = 0;
    *out = NULL;
    if (!json_cursor_present(&list)) {
        return STATUS_OK;
    }
    enum status status = json_array_begin(&list, 0, STORE_WITHOUT_MAX, &count, error);
    if (status != STATUS_OK || count == 0) {
        return status;
    }
    struct store_planner *planners = calloc(count, sizeof *planners);
    if (planners == NULL) {
        return http_no_memory(error);
    }
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct json_cursor entry = json_cursor_element(&list, i);
        struct json_cursor tier = json_cursor_member(&entry, "tier");
        planners[i].in_world = json_cursor_present(&tier);
        status = wire_decode(planners[i].in_world ? &wire_planner_in_world : &wire_planner, &entry,
                             &planners[i], error);
    }
    if (status != STATUS_OK) {
        free(planners);
        return status;
    }
    *out = planners;
    worker->without = planners;
    worker->without_count = (uint32_t)count;
    return STATUS_OK;
}

enum status http_handle_claim(struct http_exchange *exchange, struct error *error)
{
    static const char *const keys[] = {"pool", "device",  "host",     "without",
                                       "max",  "wait_ms", "claim_id", NULL};
    struct store_worker worker;
    struct patience patience = {.exchange = exchange, .worker = &worker};
    struct store_planner *without = NULL;
    int64_t max = 1;
    int64_t wait_ms = 0;
    enum status status = json_object_begin(&exchange->body, keys, error);
    THEN(status, decode_worker(exchange, &worker, error));
    THEN(status, json_member_integer(&exchange->body, "max", true, 0, UINT32_MAX, &max, error));
    THEN(status, json_member_integer(&exchange->body, "wait_ms", false, 0, HTTP_WAIT_MS_MAX,
                                     &wait_ms, error));
    THEN(status, json_member_integer(&exchange->body, "claim_id", true, 1, INT64_MAX - 1,
                                     &patience.claim_id, error));
    THEN(status,
         json_member_text(&exchange->body, "host", false, worker.host, sizeof worker.host, error));
    if (status == STATUS_OK && max > LIMIT_CLAIM_JOBS) {
        status = error_set(error, STATUS_LIMIT, "$.max: a claim takes at most %d jobs, not %lld",
                           LIMIT_CLAIM_JOBS, (long long)max);
    }
    patience.max = (uint32_t)max;
    patience.end_ns = clock_now_ns(exchange->context->clock) + wait_ms * NS_PER_MS;
    THEN(status, decode_without(exchange, &worker, &without, error));
    THEN(status, claim_for(&patience, error));
    free(without);
    return status;
}

/* The completions of one request; each array has room for `capacity` elements. */
struct completions {
    struct job_completion *list;
    struct outcome **outcomes; /* of each */
    size_t count;
    size_t capacity;
    uint64_t outcome_count;
};

static void completions_finish(struct completions *completions)
{
    for (size_t i = 0; i < completions->count; i++) {
        free(completions->outcomes[i]);
    }
    free(completions->list);
    free(completions->outcomes);
    memset(completions, 0, sizeof *completions);
}

static bool completions_reserve(struct completions *completions, size_t capacity)
{
    struct job_completion *list =
        realloc(completions->list, (capacity + 1) * sizeof *completions->list);
    if (list == NULL) {
        return false;
    }
    completions->list = list;
    struct outcome **outcomes =
        realloc(completions->outcomes, (capacity + 1) * sizeof(struct outcome *));
    if (outcomes == NULL) {
        return false;
    }
    completions->outcomes = outcomes;
    completions->capacity = capacity;
    return true;
}

/* One completion may bring as many as a job has rollouts. */
static bool too_many_outcomes(const struct completions *completions)
{
    return completions->count > 1 && completions->outcome_count > HTTP_COMPLETION_OUTCOMES_MAX;
}

/* Without a document, as workers write it. False: not understood, nothing is held. */
static bool scan_completions(const struct http_request *request, struct completions *completions)
{
    struct scan scan = scan_begin("message", "record", request->body, request->body_bytes, NULL);
    bool good = scan_literal(&scan, "{\"completions\":[");
    while (good && !scan_literal(&scan, "]")) {
        size_t i = completions->count;
        good = i < HTTP_COMPLETIONS_MAX && !too_many_outcomes(completions) &&
               (i == 0 || scan_literal(&scan, ",")) &&
               (i < completions->capacity || completions_reserve(completions, 2 * i + 16)) &&
               job_completion_scan(&scan, &completions->list[i], &completions->outcomes[i]);
        if (good) {
            completions->outcome_count += completions->list[i].outcome_count;
            completions->count++;
        }
    }
    good = good && scan_literal(&scan, "}") && scan.at == scan.bytes &&
           !too_many_outcomes(completions);
    if (!good) {
        completions_finish(completions);
    }
    return good;
}

static enum status decode_completions(struct http_exchange *exchange,
                                      struct completions *completions, struct error *error)
{
    static const char *const keys[] = {"completions", NULL};
    size_t count = 0;
    enum status status = http_body_parse(exchange, error);
    struct json_cursor list = json_cursor_member(&exchange->body, "completions");
    THEN(status, json_object_begin(&exchange->body, keys, error));
    THEN(status, json_array_begin(&list, 0, HTTP_COMPLETIONS_MAX, &count, error));
    if (status == STATUS_OK && !completions_reserve(completions, count)) {
        status = http_no_memory(error);
    }
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct json_cursor element = json_cursor_element(&list, i);
        status = job_completion_decode(&element, &completions->list[i], &completions->outcomes[i],
                                       error);
        if (status == STATUS_OK) {
            completions->outcome_count += completions->list[i].outcome_count;
            completions->count++;
        }
        if (status == STATUS_OK && too_many_outcomes(completions)) {
            status = error_set(error, STATUS_LIMIT,
                               "completions: expected at most %d outcomes in one request",
                               HTTP_COMPLETION_OUTCOMES_MAX);
        }
    }
    return status;
}

enum status http_handle_complete(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    struct completions completions = {0};
    struct store_completion_result *results = NULL;
    enum status status = STATUS_OK;
    if (!scan_completions(exchange->request, &completions)) {
        status = decode_completions(exchange, &completions, error);
    }
    if (status == STATUS_OK) {
        results = exchange->rows = calloc(completions.count + 1, sizeof *results);
        status = memory_check(results, error, HTTP_NO_MEMORY);
    }
    for (size_t i = 0; status == STATUS_OK && i < completions.count; i++) {
        const char *worker_id = completions.list[i].worker_id;
        if (i == 0 || strcmp(worker_id, completions.list[i - 1].worker_id) != 0) {
            status = http_check_pool(exchange, worker_id, NULL, error);
        }
    }
    if (status == STATUS_OK && completions.count > 0) {
        status = store->ops->complete(store, completions.list, (uint32_t)completions.count, results,
                                      error);
    }
    THEN(status, http_reply_list(exchange, "results", &wire_completion_result, results,
                                 completions.count, error));
    completions_finish(&completions);
    return status;
}

enum status http_handle_awaited(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    struct store_worker worker = {.device = "any"}; /* which does not matter */
    struct store_awaited awaited;
    int64_t since_ms = 0;
    if (store->ops->awaited == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "this store cannot say what a drain waits for");
    }
    TRY(http_id_check("worker", exchange->ids[0], sizeof worker.worker_id, error));
    strcpy(worker.worker_id, exchange->ids[0]);
    TRY(http_query_text(exchange, "pool", worker.pool, sizeof worker.pool, error));
    if (worker.pool[0] == '\0') {
        return error_set(error, STATUS_BAD_INPUT, "pool: expected the pool that is drained");
    }
    TRY(http_query_integer(exchange, "since_ms", 0, STORE_SINCE_MS_MAX, &since_ms, error));
    TRY(http_check_pool(exchange, worker.worker_id, worker.pool, error));
    TRY(store->ops->awaited(store, &worker, since_ms, &awaited, error));
    return http_reply_record(exchange, &wire_awaited, &awaited, error);
}

/* ---- tenants ---- */

enum status http_handle_tenant_set(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    struct tenant tenant;
    uint32_t settings = 0;
    TRY(tenant_change_decode(&exchange->body, &tenant, &settings, error));
    TRY(http_id_check("tenant", exchange->ids[0], LIMIT_ID_BYTES, error));
    TRY(http_check_name("tenant", exchange->ids[0], tenant.name, error));
    TRY(store->ops->tenant_set(store, &tenant, settings, error));
    return http_reply_nothing(exchange, error);
}
