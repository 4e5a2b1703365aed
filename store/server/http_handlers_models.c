/*
 * Handlers of the endpoints about versions of models, trust, sets of goldens and tenants. See
 * http_handlers.h.
 */
#include "store/server/http_handlers.h"

#include <stdlib.h>
#include <string.h>

/* The name in the path and the one in the body are the same. */
static enum status check_name(const struct http_exchange *exchange, const char *what,
                              const char *name, struct error *error)
{
    TRY(http_id_check(what, exchange->ids[0], LIMIT_ID_BYTES, error));
    return strcmp(exchange->ids[0], name) == 0
               ? STATUS_OK
               : error_set(error, STATUS_CONFLICT, "%s: the path names \"%.64s\", the body \"%s\"",
                           what, exchange->ids[0], name);
}

enum status http_handle_model_add(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    struct model_version version;
    memset(&version, 0, sizeof version);
    TRY(wire_decode(&wire_model, &exchange->body, &version, error));
    TRY(check_name(exchange, "model", version.name, error));
    TRY(store->ops->model_add(store, &version, error));
    return http_reply_nothing(exchange, error);
}

enum status http_handle_models(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    int64_t max = HTTP_PAGE_MAX;
    uint32_t count = 0;
    char after[LIMIT_ID_BYTES] = "";
    TRY(http_query_integer(exchange, "max", 0, HTTP_PAGE_MAX, &max, error));
    TRY(http_query_text(exchange, "after", after, sizeof after, error));
    struct model_version *versions = exchange->rows = calloc((size_t)max + 1, sizeof *versions);
    TRY(memory_check(versions, error, HTTP_NO_MEMORY));
    TRY(store->ops->models(store, after, versions, (uint32_t)max, &count, error));
    return http_reply_list(exchange, "models", &wire_model, versions, count, error);
}

enum status http_handle_model_event(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    const struct token_grant *grant = exchange->request->grant;
    struct model_event event;
    struct model_event done;
    memset(&event, 0, sizeof event);
    TRY(wire_decode(&wire_model_event, &exchange->body, &event, error));
    TRY(check_name(exchange, "model", event.model, error));
    if (grant != NULL) { /* whatever the body says */
        memcpy(event.actor, grant->name, sizeof event.actor);
    }
    TRY(store->ops->model_event(store, &event, &done, error));
    exchange->reply = wire_encode(&wire_model_event, &done);
    return exchange->reply != NULL ? STATUS_OK : http_no_memory(error);
}

enum status http_handle_model_events(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    int64_t max = 100;
    int64_t after = 0;
    uint32_t count = 0;
    TRY(http_query_integer(exchange, "max", 0, HTTP_PAGE_MAX, &max, error));
    TRY(http_query_integer(exchange, "after", 0, INT64_MAX, &after, error));
    struct model_event *events = exchange->rows = calloc((size_t)max + 1, sizeof *events);
    TRY(memory_check(events, error, HTTP_NO_MEMORY));
    TRY(store->ops->model_events(store, after, events, (uint32_t)max, &count, error));
    return http_reply_list(exchange, "events", &wire_model_event, events, count, error);
}

/* ---- trust ---- */

enum status http_handle_trust_event(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    const struct token_grant *grant = exchange->request->grant;
    struct trust_event event;
    struct trust_event done;
    memset(&event, 0, sizeof event);
    TRY(wire_decode(&wire_trust_event, &exchange->body, &event, error));
    if (grant != NULL) { /* whatever the body says */
        memcpy(event.actor, grant->name, sizeof event.actor);
    }
    TRY(store->ops->trust_event(store, &event, &done, error));
    exchange->reply = wire_encode(&wire_trust_event, &done);
    return exchange->reply != NULL ? STATUS_OK : http_no_memory(error);
}

enum status http_handle_trust_events(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    int64_t max = 100;
    int64_t after = 0;
    uint32_t count = 0;
    TRY(http_query_integer(exchange, "max", 0, HTTP_PAGE_MAX, &max, error));
    TRY(http_query_integer(exchange, "after", 0, INT64_MAX, &after, error));
    struct trust_event *events = exchange->rows = calloc((size_t)max + 1, sizeof *events);
    TRY(memory_check(events, error, HTTP_NO_MEMORY));
    TRY(store->ops->trust_events(store, after, events, (uint32_t)max, &count, error));
    return http_reply_list(exchange, "events", &wire_trust_event, events, count, error);
}

/* ---- goldens ---- */

enum status http_handle_golden_add(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    struct golden_set set;
    memset(&set, 0, sizeof set);
    TRY(wire_decode(&wire_golden, &exchange->body, &set, error));
    TRY(check_name(exchange, "golden", set.name, error));
    TRY(store->ops->golden_add(store, &set, error));
    return http_reply_nothing(exchange, error);
}

enum status http_handle_goldens(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    int64_t max = HTTP_PAGE_MAX;
    uint32_t count = 0;
    char after[LIMIT_ID_BYTES] = "";
    TRY(http_query_integer(exchange, "max", 0, HTTP_PAGE_MAX, &max, error));
    TRY(http_query_text(exchange, "after", after, sizeof after, error));
    struct golden_set *sets = calloc((size_t)max + 1, sizeof *sets);
    if (sets == NULL) {
        return http_no_memory(error);
    }
    enum status status = store->ops->goldens(store, after, sets, (uint32_t)max, &count, error);
    THEN(status, http_reply_list(exchange, "goldens", &wire_golden, sets, count, error));
    free(sets);
    return status;
}

enum status http_handle_golden_drop(struct http_exchange *exchange, struct error *error)
{
    static const char *const none[] = {NULL};
    struct store *store = exchange->store;
    TRY(json_object_begin(&exchange->body, none, error));
    TRY(http_id_check("golden", exchange->ids[0], LIMIT_ID_BYTES, error));
    TRY(store->ops->golden_drop(store, exchange->ids[0], error));
    return http_reply_nothing(exchange, error);
}

/* ---- tenants ---- */

enum status http_handle_tenants(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    int64_t max = HTTP_PAGE_MAX;
    uint32_t count = 0;
    char after[LIMIT_ID_BYTES] = "";
    TRY(http_query_integer(exchange, "max", 0, HTTP_PAGE_MAX, &max, error));
    TRY(http_query_text(exchange, "after", after, sizeof after, error));
    struct tenant *tenants = calloc((size_t)max + 1, sizeof *tenants);
    if (tenants == NULL) {
        return http_no_memory(error);
    }
    enum status status = store->ops->tenants(store, after, tenants, (uint32_t)max, &count, error);
    THEN(status, http_reply_list(exchange, "tenants", &wire_tenant, tenants, count, error));
    free(tenants);
    return status;
}

enum status http_handle_tenant_set(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    struct tenant tenant;
    memset(&tenant, 0, sizeof tenant);
    TRY(wire_decode(&wire_tenant_set, &exchange->body, &tenant, error));
    TRY(check_name(exchange, "tenant", tenant.name, error));
    TRY(store->ops->tenant_set(store, &tenant, error));
    return http_reply_nothing(exchange, error);
}
