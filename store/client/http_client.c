/*
 * The raw HTTP backend: opening, and the calls that do not go by their rows (http_client_call.c)
 * and are not the workers' (http_client_work.c). See http_client.h; the API is described in
 * schemas/openapi.yaml.
 *
 * Batches beyond what one request may carry are sent as several requests, each atomic: a submit of
 * more than HTTP_SUBMIT_JOBS_MAX jobs that fails half-way has stored its first part, and completes
 * when it is repeated.
 */
#include "store/client/http_client.h"

#include "base/check.h"
#include "schemas/job_json.h"
#include "schemas/json_record.h"
#include "schemas/scenario_json.h"
#include "store/client/http_call.h"
#include "store/client/http_client_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- submitting ---- */

/* tenant NULL: whoever the token speaks for. */
static enum status client_scenario_put_as(struct store *store, const char *tenant, const char *hash,
                                          const char *body, size_t bytes, struct error *error)
{
    struct http_path path;
    TRY(http_id_check("scenario hash", hash, SHA256_HEX_BYTES, error));
    http_path_make(&path, "/v1/scenarios/%s", hash);
    if (tenant != NULL) {
        TRY(tenant[0] != '\0' ? http_id_check("tenant", tenant, LIMIT_ID_BYTES, error) : STATUS_OK);
        http_path_add(&path, "?tenant=%s", tenant);
    }
    return http_put_bytes(http_client_of(store)->transport, &path, body, bytes, error);
}

static enum status client_scenario_put(struct store *store, const char *hash, const char *body,
                                       size_t bytes, struct error *error)
{
    return client_scenario_put_as(store, NULL, hash, body, bytes, error);
}

static enum status client_scenario_get(struct store *store, const char *hash, char **body,
                                       size_t *bytes, struct error *error)
{
    struct http_path path;
    TRY(http_id_check("scenario hash", hash, SHA256_HEX_BYTES, error));
    http_path_make(&path, "/v1/scenarios/%s", hash);
    return http_get_bytes(http_client_of(store)->transport, &path, LIMIT_DOCUMENT_BYTES, body,
                          bytes, error);
}

/* ---- files of planners ---- */

static enum status kept_path(const char *suite, const char *planner_hash, struct http_path *path,
                             struct error *error)
{
    TRY(http_id_check("suite", suite, LIMIT_ID_BYTES, error));
    TRY(http_id_check("planner hash", planner_hash, SHA256_HEX_BYTES, error));
    http_path_make(path, "/v1/suites/%s", suite);
    http_path_add(path, "/planners/%s", planner_hash);
    return STATUS_OK;
}

static enum status client_planner_keep(struct store *store, const char *suite,
                                       const char *planner_hash, const void *data, size_t bytes,
                                       struct error *error)
{
    struct http_path path;
    char hash[SHA256_HEX_BYTES];
    TRY(kept_path(suite, planner_hash, &path, error));
    sha256_hex(data, bytes, hash);
    http_path_add(&path, "?sha256=%s", hash);
    return http_put_bytes(http_client_of(store)->transport, &path, data, bytes, error);
}

static enum status client_planner_kept(struct store *store, const char *suite,
                                       const char *planner_hash, void **data, size_t *bytes,
                                       struct error *error)
{
    struct http_path path;
    char *reply = NULL;
    TRY(kept_path(suite, planner_hash, &path, error));
    TRY(http_get_bytes(http_client_of(store)->transport, &path, LABEL_FILES_BYTES, &reply, bytes,
                       error));
    *data = reply;
    return STATUS_OK;
}

/* tenant NULL, class SAME, budget 0: not said. */
static json_t *submit_body(const char *tenant, uint32_t weight, enum suite_class of_class,
                           int64_t budget_uusd, const struct job_spec *specs, uint32_t count)
{
    json_t *jobs = json_array();
    json_t *body = json_pack("{s:I, s:O}", "weight", (json_int_t)weight, "jobs", jobs);
    bool good =
        body != NULL && (count == 0 || json_put(body, "common", job_spec_encode(&specs[0], NULL)));
    if (tenant != NULL) {
        good = good && json_put(body, "tenant", json_string(tenant));
    }
    if (of_class != SUITE_CLASS_SAME) {
        good = good && json_put(body, "class", json_string(suite_class_names[of_class]));
    }
    if (budget_uusd != 0) {
        good = good && json_put(body, "budget_uusd", json_integer((json_int_t)budget_uusd));
    }
    for (uint32_t i = 0; good && i < count; i++) {
        good = json_array_append_new(jobs, job_spec_encode(&specs[i], &specs[0])) == 0;
    }
    json_decref(jobs);
    if (!good) {
        json_decref(body);
        return NULL;
    }
    return body;
}

static enum status client_submit_as(struct store *store, const char *tenant, const char *suite_id,
                                    uint32_t weight, enum suite_class of_class, int64_t budget_uusd,
                                    const struct job_spec *specs, uint32_t count,
                                    struct store_submit_result *results, struct error *error)
{
    struct http_path path;
    TRY(http_id_check("suite", suite_id, LIMIT_ID_BYTES, error));
    TRY(tenant != NULL ? http_id_check("tenant", tenant, LIMIT_ID_BYTES, error) : STATUS_OK);
    enum status status = STATUS_OK;
    http_path_make(&path, "/v1/suites/%s/jobs", suite_id);
    for (uint32_t done = 0; done < count || (done == 0 && count == 0);) {
        uint32_t part = count - done;
        if (part > HTTP_SUBMIT_JOBS_MAX) {
            part = HTTP_SUBMIT_JOBS_MAX;
        }
        json_t *root = NULL;
        uint32_t found = 0;
        status = http_ask(http_client_of(store)->transport, "POST", &path,
                          submit_body(tenant, weight, of_class, budget_uusd, specs + done, part),
                          &root, error);
        THEN(status, http_take_list(path.text, root, "results", &wire_submit_result, results + done,
                                    part, &found, error));
        if (status == STATUS_OK && found != part) {
            status = error_set(error, STATUS_STORE, "%s: expected %u results, found %u", path.text,
                               part, found);
        }
        if (status != STATUS_OK || count == 0) {
            return status;
        }
        done += part;
    }
    return STATUS_OK;
}

static enum status client_submit(struct store *store, const char *suite_id, uint32_t weight,
                                 const struct job_spec *specs, uint32_t count,
                                 struct store_submit_result *results, struct error *error)
{
    return client_submit_as(store, NULL, suite_id, weight, SUITE_CLASS_SAME, 0, specs, count,
                            results, error);
}

/* ---- looking ---- */

static void outcomes_path(const struct store_outcome_filter *filter, int64_t after_id,
                          uint32_t limit, struct http_path *path)
{
    http_path_make(path, "/v1/outcomes?limit=%lld", (long long)limit);
    if (filter->suite_id[0] != '\0') {
        http_path_add(path, "&suite=%s", filter->suite_id);
    }
    if (filter->scenario_id[0] != '\0') {
        http_path_add(path, "&scenario=%s", filter->scenario_id);
    }
    if (filter->job_id != 0) {
        http_path_add(path, "&job=%lld", (long long)filter->job_id);
    }
    if (filter->outcome_id != 0) {
        http_path_add(path, "&outcome=%lld", (long long)filter->outcome_id);
    }
    if (filter->by_verdict) {
        http_path_add(path, "&verdict=%s", verdict_names[filter->verdict]);
    }
    if (filter->by_slice) {
        http_path_add(path, "&slice=%s:%s", slice_names[filter->slice_kind], filter->slice_value);
    }
    if (filter->main_lines) {
        http_path_add(path, "&branches=no");
    }
    if (after_id != 0) {
        http_path_add(path, "&after=%lld", (long long)after_id);
    }
}

/* Answers that look at rows and find nothing, of one call: each looks at thousands. */
enum { PAGES_EMPTY_MAX = 100000, SCENARIO_OUTCOMES = 1000 };

/* One answer; *next > 0: the server had looked at enough, and goes on from there. */
static enum status take_outcomes(const char *path, json_t *root, int64_t after_id,
                                 struct outcome *out, uint32_t max, uint32_t *count, int64_t *next,
                                 struct error *error)
{
    static const char *const keys[] = {"outcomes", "next", NULL};
    struct json_cursor cursor = json_cursor_root(path, root);
    enum status status = json_object_begin(&cursor, keys, error);
    *next = 0;
    if (status == STATUS_OK) {
        struct json_cursor list = json_cursor_member(&cursor, "outcomes");
        status = wire_list_decode(&wire_outcome, &list, out, max, count, error);
    }
    for (uint32_t i = 0; status == STATUS_OK && i < *count; i++) {
        if (out[i].id <= (i == 0 ? after_id : out[i - 1].id)) {
            status = error_set(error, STATUS_STORE,
                               "%s: expected outcomes in ascending order behind %lld, found %lld",
                               path, (long long)after_id, (long long)out[i].id);
        }
    }
    THEN(status, json_member_integer(&cursor, "next", false, 1, INT64_MAX, next, error));
    json_decref(root);
    return status;
}

static enum status client_outcomes(struct store *store, const struct store_outcome_filter *filter,
                                   struct outcome *out, uint32_t *count, struct error *error)
{
    struct http_path path;
    uint32_t found = 0;
    int64_t after_id = filter->after_id;
    int64_t next = 0;
    int empty = 0;
    enum status status = STATUS_OK;
    if (filter->by_verdict && (unsigned)filter->verdict >= VERDICT_COUNT) {
        return error_set(error, STATUS_BAD_INPUT, "outcomes: unknown verdict %d",
                         (int)filter->verdict);
    }
    do {
        json_t *root = NULL;
        uint32_t part = 0;
        outcomes_path(filter, after_id, filter->limit - found, &path);
        status = http_ask(http_client_of(store)->transport, "GET", &path, NULL, &root, error);
        THEN(status, take_outcomes(path.text, root, after_id, out + found, filter->limit - found,
                                   &part, &next, error));
        if (status == STATUS_OK && next > 0 && part == 0 && ++empty > PAGES_EMPTY_MAX) {
            status = error_set(error, STATUS_STORE, "%s: %d answers in a row found nothing",
                               path.text, PAGES_EMPTY_MAX);
        }
        if (status == STATUS_OK && next > 0 && next <= after_id) {
            status = error_set(error, STATUS_STORE, "%s: expected to go on after %lld, found %lld",
                               path.text, (long long)after_id, (long long)next);
        }
        found += status == STATUS_OK ? part : 0;
        after_id = next;
    } while (status == STATUS_OK && next > 0 && found < filter->limit);
    if (status == STATUS_OK) {
        *count = found;
    }
    return status;
}

/* The API has no list of them: they come with the outcomes of main lines. */
static enum status client_scenarios_page(struct store *store, const char *suite_id, int64_t *after,
                                         store_scenario_visit *visit, void *context,
                                         struct error *error)
{
    struct store_outcome_filter filter = {
        .after_id = *after, .limit = SCENARIO_OUTCOMES, .main_lines = true};
    struct outcome *page = malloc(SCENARIO_OUTCOMES * sizeof *page);
    uint32_t count = 0;
    enum status status = memory_check(page, error, "out of memory for a page of outcomes");
    snprintf(filter.suite_id, sizeof filter.suite_id, "%s", suite_id != NULL ? suite_id : "");
    THEN(status, client_outcomes(store, &filter, page, &count, error));
    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        status = visit(context, page[i].scenario_id, error);
    }
    if (status == STATUS_OK) {
        *after = count > 0 ? page[count - 1].id : 0;
    }
    free(page);
    return status;
}

/* Sums over all rows fit, and nothing is below zero: scripts start workers by them. */
static enum status check_demand(const char *path, const struct store_demand *row,
                                struct error *error)
{
    const int64_t most = INT64_MAX / 1024;
    const int64_t values[] = {row->jobs_queued,   row->jobs_leased,   row->ticks_queued,
                              row->age_ms,        row->workers_alive, row->workers_busy,
                              row->rollouts_seen, row->tick_ns,       row->tick_p99_ns};

    for (size_t i = 0; i < COUNT_OF(values); i++) {
        if (values[i] < 0 || values[i] > most) {
            return error_set(error, STATUS_STORE,
                             "%s: pool \"%s\": expected counts and times of 0 to %lld, found %lld",
                             path, row->pool, (long long)most, (long long)values[i]);
        }
    }
    return STATUS_OK;
}

static enum status client_demand(struct store *store, struct store_demand *rows, uint32_t max,
                                 uint32_t *count, struct error *error)
{
    uint32_t found = 0;
    const struct store_args_demand args = {rows, max, &found};
    TRY(http_client_call(store, STORE_CALL_demand, &args, error));
    for (uint32_t i = 0; i < found; i++) {
        TRY(check_demand("/v1/demand", &rows[i], error));
    }
    *count = found;
    return STATUS_OK;
}

static enum status client_tenant_set(struct store *store, const struct tenant *tenant,
                                     uint32_t settings, struct error *error)
{
    struct http_path path;
    json_t *root = NULL;
    TRY(http_id_check("tenant", tenant->name, LIMIT_ID_BYTES, error));
    http_path_make(&path, "/v1/tenants/%s", tenant->name);
    TRY(http_ask(http_client_of(store)->transport, "PUT", &path,
                 tenant_change_encode(tenant, settings), &root, error));
    json_decref(root);
    return STATUS_OK;
}

/* ---- artifacts ---- */

static enum status client_artifact_put(struct store *store, const void *data, size_t bytes,
                                       char hash[SHA256_HEX_BYTES], struct error *error)
{
    struct http_path path;
    char name[SHA256_HEX_BYTES];
    if (bytes > LIMIT_ARTIFACT_BYTES) {
        return error_set(error, STATUS_LIMIT, "artifact: expected at most %d bytes, found %zu",
                         LIMIT_ARTIFACT_BYTES, bytes);
    }
    sha256_hex(data, bytes, name);
    http_path_make(&path, "/v1/artifacts/%s", name);
    TRY(http_put_packed(http_client_of(store)->transport, &path, data, bytes, error));
    memcpy(hash, name, sizeof name);
    return STATUS_OK;
}

static enum status client_artifact_get(struct store *store, const char *hash, void **data,
                                       size_t *bytes, struct error *error)
{
    struct http_path path;
    char found[SHA256_HEX_BYTES];
    void *body = NULL;
    size_t body_bytes = 0;
    TRY(http_id_check("artifact hash", hash, SHA256_HEX_BYTES, error));
    http_path_make(&path, "/v1/artifacts/%s", hash);
    TRY(http_get_packed(http_client_of(store)->transport, &path, LIMIT_ARTIFACT_BYTES, &body,
                        &body_bytes, error));
    sha256_hex(body, body_bytes, found);
    if (strcmp(found, hash) != 0) {
        free(body);
        return error_set(error, STATUS_IO, "artifact %s: expected these bytes' hash, found %s",
                         hash, found);
    }
    *data = body;
    *bytes = body_bytes;
    return STATUS_OK;
}

/* ---- opening ---- */

static void client_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    struct http_client *client = http_client_of(store);
    http_transport_destroy(client->transport);
    free(client);
}

/* Every call goes by its row but these. */
static void set_ops(struct store_ops *ops)
{
    *ops = (struct store_ops){.name = "http", .close = client_close, .call = http_client_call};
    store_calls_relay(ops, STORE_KIND_HERE, 0);
    ops->scenario_put = client_scenario_put;
    ops->scenario_put_as = client_scenario_put_as;
    ops->scenario_get = client_scenario_get;
    ops->submit = client_submit;
    ops->submit_as = client_submit_as;
    ops->tenant_set = client_tenant_set;
    ops->heartbeat = http_client_heartbeat;
    ops->claim = http_client_claim;
    ops->complete = http_client_complete;
    ops->awaited = http_client_awaited;
    ops->outcomes = client_outcomes;
    ops->scenarios_page = client_scenarios_page;
    ops->demand = client_demand;
    ops->planner_keep = client_planner_keep;
    ops->planner_kept = client_planner_kept;
    ops->artifact_put = client_artifact_put;
    ops->artifact_get = client_artifact_get;
}

/* Takes over the transport, on failure too. */
static enum status open_on(struct http_transport *transport, const struct store_config *config,
                           struct store **out, struct error *error)
{
    struct http_client *client = calloc(1, sizeof *client);
    if (client == NULL) {
        http_transport_destroy(transport);
        return error_set(error, STATUS_NO_MEMORY, "out of memory for a store's client");
    }
    client->transport = transport;
    set_ops(&client->ops);
    client->store.ops = &client->ops;
    client->stop = config != NULL ? config->stop : NULL;
    *out = &client->store;
    return STATUS_OK;
}

enum status http_client_open(const char *url, const struct store_config *config, struct store **out,
                             struct error *error)
{
    struct http_transport *transport;
    TRY(http_transport_create(url, config != NULL ? config->token_file : NULL,
                              config != NULL ? config->ca_file : NULL, &transport, error));
    return open_on(transport, config, out, error);
}

enum status http_client_open_over(const struct http_carrier *carrier,
                                  const struct store_config *config, struct store **out,
                                  struct error *error)
{
    struct http_transport *transport;
    enum status status = http_transport_create_over(carrier, &transport, error);
    return status == STATUS_OK ? open_on(transport, config, out, error) : status;
}

enum status http_client_ping(struct store *store, struct error *error)
{
    struct http_path path;
    json_t *root = NULL;
    int64_t api = 0;
    http_path_make(&path, "/v1/health");
    TRY(http_ask(http_client_of(store)->transport, "GET", &path, NULL, &root, error));
    struct json_cursor cursor = json_cursor_root(path.text, root);
    enum status status = json_member_integer(&cursor, "api", true, 0, INT64_MAX, &api, error);
    json_decref(root);
    if (status == STATUS_OK && api != HTTP_API_VERSION) {
        return error_set(error, STATUS_STORE,
                         "the store speaks version %lld of the API, this program version %d: use "
                         "the same release on both sides",
                         (long long)api, HTTP_API_VERSION);
    }
    return status;
}
