/*
 * Handlers of what the dashboard shows: its files, an overview of the store, a suite by slices,
 * workers. See http_handlers.h. Every list comes in pages, and every page costs a bounded number of
 * rows, so a browser that stays open is a reader like others.
 */
#include "schemas/json_record.h"
#include "schemas/scenario_json.h"
#include "store/server/http_handlers.h"
#include "store/server/web/web.h"

#include <stdlib.h>
#include <string.h>

enum { OVERVIEW_SUITES_MAX = 100, WORKERS_MAX = 500 };

/* ---- the page's files ---- */

enum status http_handle_web(struct http_exchange *exchange, struct error *error)
{
    static const enum http_content contents[WEB_KIND_COUNT] = {
        HTTP_CONTENT_HTML, HTTP_CONTENT_SCRIPT, HTTP_CONTENT_STYLE};
    struct web_file file = web_file_find(exchange->ids[0]);
    if (file.text == NULL) {
        exchange->code = 404;
        return error_set(error, STATUS_NOT_FOUND, "no such path: GET /web/%.100s",
                         exchange->ids[0]);
    }
    exchange->data = malloc(file.bytes + 1);
    if (exchange->data == NULL) {
        return http_no_memory(error);
    }
    memcpy(exchange->data, file.text, file.bytes);
    exchange->data_bytes = file.bytes;
    exchange->content = contents[file.kind];
    return STATUS_OK;
}

/* ---- the store ---- */

static enum status put(json_t *object, const char *key, json_t *value, struct error *error)
{
    return json_put(object, key, value) ? STATUS_OK : http_no_memory(error);
}

static json_t *counts_new(const int64_t *counts, const char *const *names, size_t count)
{
    json_t *object = json_object();
    for (size_t i = 0; object != NULL && i < count; i++) {
        if (counts[i] != 0 && !json_put(object, names[i], json_integer(counts[i]))) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static enum status add_suites(struct store *store, const char *after, int64_t limit, json_t *reply,
                              struct error *error)
{
    char(*ids)[LIMIT_ID_BYTES] = calloc((size_t)limit, sizeof *ids);
    json_t *list = json_array();
    uint32_t count = 0;
    enum status status = ids != NULL && list != NULL ? STATUS_OK : http_no_memory(error);
    THEN(status, store->ops->suites_page(store, after, ids, (uint32_t)limit, &count, error));
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        struct store_suite_status suite;
        memset(&suite, 0, sizeof suite);
        status = store->ops->suite_status(store, ids[i], &suite, error);
        json_t *row = status == STATUS_OK ? wire_encode(&wire_suite_status, &suite) : NULL;
        if (status == STATUS_OK && (!json_put(row, "suite", json_text_new(ids[i], sizeof ids[i])) ||
                                    json_array_append(list, row) != 0)) {
            status = http_no_memory(error);
        }
        json_decref(row);
    }
    if (status == STATUS_OK && count == (uint32_t)limit) {
        status = put(reply, "next", json_text_new(ids[count - 1], sizeof ids[0]), error);
    }
    THEN(status, put(reply, "suites", json_incref(list), error));
    json_decref(list);
    free(ids);
    return status;
}

static enum status add_pools(struct store *store, json_t *reply, struct error *error)
{
    struct store_stats *stats = calloc(1, sizeof *stats);
    json_t *list = json_array();
    int64_t lost = 0;
    enum status status = stats != NULL && list != NULL ? STATUS_OK : http_no_memory(error);
    THEN(status, store->ops->stats(store, stats, error));
    THEN(status, store->ops->commits_lost(store, &lost, error));
    for (uint32_t i = 0; status == STATUS_OK && i < stats->pool_count; i++) {
        const struct store_pool_jobs *pool = &stats->pools[i];
        json_t *row = json_object();
        if (row == NULL || !json_put(row, "pool", json_text_new(pool->pool, sizeof pool->pool)) ||
            !json_put(row, "jobs", counts_new(pool->jobs, job_state_names, JOB_STATE_COUNT)) ||
            json_array_append(list, row) != 0) {
            status = http_no_memory(error);
        }
        json_decref(row);
    }
    THEN(status, put(reply, "pools", json_incref(list), error));
    THEN(status, put(reply, "workers", json_integer(stats->workers_alive), error));
    THEN(status, put(reply, "commits_lost", json_integer(lost), error));
    json_decref(list);
    free(stats);
    return status;
}

static enum status refuse_unable(struct error *error)
{
    return error_set(error, STATUS_NOT_FOUND, "this store does not tell what a dashboard shows");
}

enum status http_overview(struct store *store, const char *after, int64_t limit, json_t **out,
                          struct error *error)
{
    if (store->ops->suites_page == NULL) {
        return refuse_unable(error);
    }
    json_t *reply = json_object();
    enum status status = reply != NULL ? STATUS_OK : http_no_memory(error);
    THEN(status, add_suites(store, after, limit, reply, error));
    THEN(status, add_pools(store, reply, error));
    if (status != STATUS_OK) {
        json_decref(reply);
        return status;
    }
    *out = reply;
    return STATUS_OK;
}

enum status http_handle_overview(struct http_exchange *exchange, struct error *error)
{
    char after[LIMIT_ID_BYTES] = "";
    int64_t limit = HTTP_OVERVIEW_SUITES;
    TRY(http_query_integer(exchange, "limit", 1, OVERVIEW_SUITES_MAX, &limit, error));
    TRY(http_query_text(exchange, "after", after, sizeof after, error));
    return http_overview(exchange->store, after, limit, &exchange->reply, error);
}

enum status http_handle_events(struct http_exchange *exchange, struct error *error)
{
    const struct token *grant = exchange->request->grant;
    if (exchange->context->events == NULL || exchange->store->ops->suites_page == NULL) {
        return refuse_unable(error);
    }
    TRY(http_events_follow(exchange->context->events, exchange->context->guard, grant,
                           &exchange->follower, &exchange->code, error));
    exchange->content = HTTP_CONTENT_EVENTS;
    return STATUS_OK;
}

/* ---- a suite by slices ---- */

static json_t *slice_new(const struct store_slice *slice)
{
    const char *kind = slice->kind < SLICE_KIND_COUNT ? slice_names[slice->kind] : "";
    json_t *row = json_object();
    if (row == NULL || !json_put(row, "planner", json_text_new(slice->planner, LIMIT_SPEC_BYTES)) ||
        !json_put(row, "tier", json_string(tier_names[slice->tier])) ||
        !json_put(row, "kind", json_string(kind)) ||
        !json_put(row, "value", json_text_new(slice->value, sizeof slice->value)) ||
        !json_put(row, "rollouts", counts_new(slice->rollouts, verdict_names, VERDICT_COUNT)) ||
        !json_put(row, "branches", counts_new(slice->branches, verdict_names, VERDICT_COUNT)) ||
        !json_put(row, "audited", json_integer(slice->audited)) ||
        !json_put(row, "agreed", json_integer(slice->agreed))) {
        json_decref(row);
        return NULL;
    }
    return row;
}

enum status http_handle_slices(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    int64_t after = 0;
    int64_t next = 0;
    uint32_t count = 0;
    TRY(http_id_check("suite", exchange->ids[0], LIMIT_ID_BYTES, error));
    TRY(http_query_integer(exchange, "after", 0, INT64_MAX, &after, error));
    if (store->ops->slices_page == NULL) {
        return refuse_unable(error);
    }
    /* Megabytes of which most suites touch little: not calloc. */
    struct store_slice *slices = exchange->rows = malloc(STORE_SLICES_MAX * sizeof *slices);
    TRY(memory_check(slices, error, HTTP_NO_MEMORY));
    TRY(store->ops->slices_page(store, exchange->ids[0], after, slices, &count, &next, error));
    json_t *list = json_array();
    bool good = http_reply_put(exchange, "slices", list);
    for (uint32_t i = 0; i < count && good; i++) {
        good = json_array_append_new(list, slice_new(&slices[i])) == 0;
    }
    return !good      ? http_no_memory(error)
           : next > 0 ? http_reply_integer(exchange, "next", next, error)
                      : STATUS_OK;
}

/* ---- workers ---- */

enum status http_handle_workers(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    char after[LIMIT_ID_BYTES] = "";
    int64_t limit = 100;
    uint32_t count = 0;
    TRY(http_query_integer(exchange, "limit", 1, WORKERS_MAX, &limit, error));
    TRY(http_query_text(exchange, "after", after, sizeof after, error));
    if (store->ops->workers_page == NULL) {
        return refuse_unable(error);
    }
    struct store_live_worker *workers = exchange->rows = calloc((size_t)limit, sizeof *workers);
    TRY(memory_check(workers, error, HTTP_NO_MEMORY));
    TRY(store->ops->workers_page(store, after, workers, (uint32_t)limit, &count, error));
    if (count == (uint32_t)limit &&
        !http_reply_put(exchange, "next",
                        json_text_new(workers[count - 1].worker_id, LIMIT_ID_BYTES))) {
        return http_no_memory(error);
    }
    return http_reply_list(exchange, "workers", &wire_live_worker, workers, count, error);
}
