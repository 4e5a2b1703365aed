/*
 * Parts that the handlers of all endpoints share: replies and query values. See http_handlers.h.
 */
#include "store/server/http_handlers.h"

#include "schemas/json_record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { METRICS_ROWS_MAX = 2000 }; /* of agreement that are looked through */

enum status http_no_memory(struct error *error)
{
    return error_set(error, STATUS_NO_MEMORY, HTTP_NO_MEMORY);
}

enum status http_body_parse(struct http_exchange *exchange, struct error *error)
{
    const struct http_request *request = exchange->request;
    const char *text = request->body != NULL ? request->body : "";
    size_t memory_bytes = http_document_bytes(text, request->body_bytes);
    if (memory_bytes > HTTP_DOCUMENT_BYTES_MAX) {
        return error_set(error, STATUS_LIMIT,
                         "request body: expected a document of at most %d bytes of memory, this "
                         "one may take %zu",
                         HTTP_DOCUMENT_BYTES_MAX, memory_bytes);
    }
    struct http_budget *budget = exchange->context->budget;
    if (budget != NULL) {
        if (!http_budget_take(&budget->bytes, memory_bytes, HTTP_BUFFERED_BYTES_MAX)) {
            return error_set(error, STATUS_BUSY,
                             "request body: the server holds too many bodies, try again");
        }
        exchange->document_bytes = memory_bytes;
    }
    enum status status =
        json_read_text("request body", text, request->body_bytes, &exchange->body_root, error);
    exchange->body = json_cursor_root("request body", exchange->body_root);
    return status;
}

void http_body_finish(struct http_exchange *exchange)
{
    json_decref(exchange->body_root);
    if (exchange->document_bytes > 0) {
        atomic_fetch_sub(&exchange->context->budget->bytes, exchange->document_bytes);
    }
}

enum status http_body_empty(const struct http_exchange *exchange, struct error *error)
{
    static const char *const keys[] = {NULL};
    return json_object_begin(&exchange->body, keys, error);
}

enum status http_reply_text(struct http_exchange *exchange, struct json_text *text,
                            struct error *error)
{
    if (text->failed) {
        free(text->data);
        return http_no_memory(error);
    }
    exchange->data = text->data;
    exchange->data_bytes = text->bytes;
    exchange->content = HTTP_CONTENT_JSON;
    return STATUS_OK;
}

/* Adds a member to the reply; false when memory runs out. */
bool http_reply_put(struct http_exchange *exchange, const char *key, json_t *value)
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

enum status http_reply_list(struct http_exchange *exchange, const char *key,
                            const struct wire_codec *codec, const void *records, size_t count,
                            struct error *error)
{
    return http_reply_put(exchange, key, wire_list_encode(codec, records, count))
               ? STATUS_OK
               : http_no_memory(error);
}

enum status http_reply_record(struct http_exchange *exchange, const struct wire_codec *codec,
                              const void *record, struct error *error)
{
    exchange->reply = wire_encode(codec, record);
    return exchange->reply != NULL ? STATUS_OK : http_no_memory(error);
}

enum status http_reply_integer(struct http_exchange *exchange, const char *key, int64_t value,
                               struct error *error)
{
    return http_reply_put(exchange, key, json_integer(value)) ? STATUS_OK : http_no_memory(error);
}

/* An empty object: the call succeeded and has nothing to say. */
enum status http_reply_nothing(struct http_exchange *exchange, struct error *error)
{
    exchange->reply = json_object();
    return exchange->reply != NULL ? STATUS_OK : http_no_memory(error);
}

const char *http_query_find(const struct http_exchange *exchange, const char *key)
{
    for (size_t i = 0; i < exchange->query_count; i++) {
        if (strcmp(exchange->query[i].key, key) == 0) {
            return exchange->query[i].value;
        }
    }
    return NULL;
}

enum status http_parse_integer(const char *what, const char *text, int64_t min, int64_t max,
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
enum status http_query_integer(const struct http_exchange *exchange, const char *key, int64_t min,
                               int64_t max, int64_t *out, struct error *error)
{
    const char *text = http_query_find(exchange, key);
    return text == NULL ? STATUS_OK : http_parse_integer(key, text, min, max, out, error);
}

enum status http_query_text(const struct http_exchange *exchange, const char *key, char *out,
                            size_t capacity, struct error *error)
{
    const char *text = http_query_find(exchange, key);
    if (text != NULL && strlen(text) >= capacity) {
        return error_set(error, STATUS_LIMIT, "%s: expected at most %zu bytes", key, capacity - 1);
    }
    if (text != NULL) {
        strcpy(out, text);
    }
    return STATUS_OK;
}

enum status http_check_name(const char *what, const char *in_path, const char *in_body,
                            struct error *error)
{
    return strcmp(in_path, in_body) == 0
               ? STATUS_OK
               : error_set(error, STATUS_CONFLICT, "%s: the path names \"%.64s\", the body \"%s\"",
                           what, in_path, in_body);
}

static bool speaks_for(const struct token *grant, const struct store_holder *holder)
{
    return strcmp(holder->text, holder->by_name ? grant->name : grant->principal) == 0;
}

enum status http_check_pool(struct http_exchange *exchange, const char *worker_id, const char *pool,
                            struct error *error)
{
    const struct token *grant = exchange->request->grant;
    struct store *store = exchange->store;
    struct store_worker_owner owner = {.pool = ""};
    if (grant == NULL || grant->role != TOKEN_ROLE_WORKER) {
        return STATUS_OK;
    }
    if (pool != NULL && strcmp(pool, grant->pool) != 0) {
        exchange->code = 403;
        return error_set(error, STATUS_STORE,
                         "the token of \"%s\" works for the pool \"%s\", not for \"%s\"",
                         grant->name, grant->pool, pool);
    }
    if (store->ops->worker_owner == NULL) {
        exchange->code = 403;
        return error_set(
            error, STATUS_STORE,
            "this store cannot tell whose workers are, so workers' tokens may not act");
    }
    TRY(store->ops->worker_owner(store, worker_id, &owner, error));
    if (owner.pool[0] != '\0' && strcmp(owner.pool, grant->pool) != 0) {
        exchange->code = 403;
        return error_set(error, STATUS_STORE,
                         "the token of \"%s\" works for the pool \"%s\", and worker \"%s\" for "
                         "another",
                         grant->name, grant->pool, worker_id);
    }
    if (owner.holder.known && !speaks_for(grant, &owner.holder)) {
        exchange->code = 403;
        return error_set(
            error, STATUS_STORE,
            "worker \"%s\" belongs to another token than that of \"%s\", which may not "
            "speak for it",
            worker_id, grant->name);
    }
    return STATUS_OK;
}

enum status http_check_live(struct http_exchange *exchange, struct error *error)
{
    const struct token *grant = exchange->request->grant;
    struct token_guard *guard = exchange->context->guard;
    if (grant == NULL || guard == NULL || token_guard_holds(guard, grant->id)) {
        return STATUS_OK;
    }
    exchange->code = 401;
    return error_set(error, STATUS_STORE,
                     "the token of \"%s\" was revoked or has expired since the request began",
                     grant->name);
}

enum status http_check_held(struct http_exchange *exchange, int64_t job_id, int64_t *epoch,
                            struct error *error)
{
    const struct token *grant = exchange->request->grant;
    struct store *store = exchange->store;
    struct store_worker_owner owner = {.pool = ""};
    struct store_job job;
    if (grant == NULL || grant->role != TOKEN_ROLE_WORKER) {
        return STATUS_OK;
    }
    TRY(store->ops->job(store, job_id, &job, error));
    bool held = strcmp(job.spec.pool, grant->pool) == 0 && job.worker_id[0] != '\0' &&
                store->ops->worker_owner != NULL;
    if (held) {
        TRY(store->ops->worker_owner(store, job.worker_id, &owner, error));
        held = owner.holder.known && speaks_for(grant, &owner.holder);
    }
    if (!held) {
        exchange->code = 403;
        return error_set(error, STATUS_STALE,
                         "job %lld is not held by a worker of the token of \"%s\", which looks at "
                         "no other jobs",
                         (long long)job.id, grant->name);
    }
    if (*epoch != 0 && *epoch != job.epoch) {
        return error_set(error, STATUS_STALE, "job %lld was claimed anew meanwhile",
                         (long long)job_id);
    }
    *epoch = job.epoch;
    return STATUS_OK;
}

/* ---- the server itself ---- */

/* For load balancers and the like: says nothing about the store, costs nothing. */
enum status http_handle_healthz(struct http_exchange *exchange, struct error *error)
{
    return http_reply_put(exchange, "ok", json_true()) ? STATUS_OK : http_no_memory(error);
}

/* Whoever shows no token is told that the store does not answer; why may name its files. */
enum status http_handle_readyz(struct http_exchange *exchange, struct error *error)
{
    const struct http_context *context = exchange->context;
    enum status status = context->ready != NULL
                             ? http_ready_check(context->ready, exchange->store, error)
                             : STATUS_OK;
    if (status == STATUS_OK) {
        return http_handle_healthz(exchange, error);
    }
    exchange->code = 503;
    return context->guard == NULL
               ? status
               : error_set(error, status,
                           "the store does not answer (%s); the server's log and calls with a "
                           "token say why",
                           status_name(status));
}

enum status http_handle_metrics(struct http_exchange *exchange, struct error *error)
{
    const struct http_context *context = exchange->context;
    if (context->metrics == NULL) {
        return error_set(error, STATUS_NOT_FOUND, "this server keeps no metrics");
    }
    json_t *agreement = NULL;
    struct error ignored; /* /v1/agreement tells it */
    if (context->agreement != NULL &&
        context->agreement(context->agreement_context, exchange->store, 0, METRICS_ROWS_MAX, 0,
                           &agreement, &ignored) != STATUS_OK) {
        agreement = NULL;
    }
    json_t *relay = context->relay != NULL ? relay_figures(context->relay) : NULL;
    exchange->content = HTTP_CONTENT_METRICS;
    enum status status =
        http_metrics_text(context->metrics, exchange->store, context->connections, context->budget,
                          agreement, relay, &exchange->data, &exchange->data_bytes, error);
    json_decref(relay);
    json_decref(agreement);
    return status;
}

enum status http_check_tenant(struct http_exchange *exchange, const char *suite_id,
                              struct error *error)
{
    const struct token *grant = exchange->request->grant;
    struct store *store = exchange->store;
    char tenant[LIMIT_ID_BYTES] = "";
    if (grant == NULL || grant->role == TOKEN_ROLE_ADMIN || store->ops->suite_tenant == NULL) {
        return STATUS_OK;
    }
    TRY(store->ops->suite_tenant(store, suite_id, tenant, error));
    if (strcmp(tenant, grant->tenant) != 0) {
        exchange->code = 403;
        return error_set(error, STATUS_STORE,
                         "suite \"%s\" belongs to another tenant than the token of \"%s\"",
                         suite_id, grant->name);
    }
    return STATUS_OK;
}
