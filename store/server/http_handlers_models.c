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

/* Question of a page by names, and room for its rows, of `bytes` each. */
static enum status page_of_names(struct http_exchange *exchange, size_t bytes,
                                 char after[LIMIT_ID_BYTES], int64_t *max, struct error *error)
{
    *max = HTTP_PAGE_MAX;
    after[0] = '\0';
    TRY(http_query_integer(exchange, "max", 0, HTTP_PAGE_MAX, max, error));
    TRY(http_query_text(exchange, "after", after, LIMIT_ID_BYTES, error));
    exchange->rows = calloc((size_t)*max + 1, bytes);
    return memory_check(exchange->rows, error, HTTP_NO_MEMORY);
}

/* Who orders: with tokens the token's name, whatever the body says. */
static void name_actor(const struct http_exchange *exchange, char actor[LIMIT_ID_BYTES])
{
    if (exchange->request->grant != NULL) {
        memcpy(actor, exchange->request->grant->name, LIMIT_ID_BYTES);
    }
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
    int64_t max;
    uint32_t count = 0;
    char after[LIMIT_ID_BYTES];
    TRY(page_of_names(exchange, sizeof(struct model_version), after, &max, error));
    TRY(store->ops->models(store, after, exchange->rows, (uint32_t)max, &count, error));
    return http_reply_list(exchange, "models", &wire_model, exchange->rows, count, error);
}

enum status http_handle_model_event(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    struct model_event event;
    struct model_event done;
    memset(&event, 0, sizeof event);
    TRY(wire_decode(&wire_model_event, &exchange->body, &event, error));
    TRY(check_name(exchange, "model", event.model, error));
    name_actor(exchange, event.actor);
    TRY(store->ops->model_event(store, &event, &done, error));
    exchange->reply = wire_encode(&wire_model_event, &done);
    return exchange->reply != NULL ? STATUS_OK : http_no_memory(error);
}

enum status http_handle_model_events(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    int64_t max;
    int64_t after;
    uint32_t count = 0;
    TRY(http_page_by_ids(exchange, sizeof(struct model_event), &after, &max, error));
    TRY(store->ops->model_events(store, after, exchange->rows, (uint32_t)max, &count, error));
    return http_reply_list(exchange, "events", &wire_model_event, exchange->rows, count, error);
}

/* ---- trust ---- */

enum status http_handle_trust_event(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    struct trust_event event;
    struct trust_event done;
    memset(&event, 0, sizeof event);
    TRY(wire_decode(&wire_trust_event, &exchange->body, &event, error));
    name_actor(exchange, event.actor);
    TRY(store->ops->trust_event(store, &event, &done, error));
    exchange->reply = wire_encode(&wire_trust_event, &done);
    return exchange->reply != NULL ? STATUS_OK : http_no_memory(error);
}

enum status http_handle_trust_events(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    int64_t max;
    int64_t after;
    uint32_t count = 0;
    TRY(http_page_by_ids(exchange, sizeof(struct trust_event), &after, &max, error));
    TRY(store->ops->trust_events(store, after, exchange->rows, (uint32_t)max, &count, error));
    return http_reply_list(exchange, "events", &wire_trust_event, exchange->rows, count, error);
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
    int64_t max;
    uint32_t count = 0;
    char after[LIMIT_ID_BYTES];
    TRY(page_of_names(exchange, sizeof(struct golden_set), after, &max, error));
    TRY(store->ops->goldens(store, after, exchange->rows, (uint32_t)max, &count, error));
    return http_reply_list(exchange, "goldens", &wire_golden, exchange->rows, count, error);
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
    int64_t max;
    uint32_t count = 0;
    char after[LIMIT_ID_BYTES];
    TRY(page_of_names(exchange, sizeof(struct tenant), after, &max, error));
    TRY(store->ops->tenants(store, after, exchange->rows, (uint32_t)max, &count, error));
    return http_reply_list(exchange, "tenants", &wire_tenant, exchange->rows, count, error);
}

enum status http_handle_tenant_set(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    struct tenant tenant;
    uint32_t settings = 0;
    TRY(tenant_change_decode(&exchange->body, &tenant, &settings, error));
    TRY(check_name(exchange, "tenant", tenant.name, error));
    TRY(store->ops->tenant_set(store, &tenant, settings, error));
    return http_reply_nothing(exchange, error);
}
