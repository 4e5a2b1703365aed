/*
 * Handlers of the endpoints about versions of models. See http_handlers.h.
 */
#include "store/server/http_handlers.h"

#include <stdlib.h>
#include <string.h>

/* The name in the path and the one in the body are the same. */
static enum status check_name(const struct http_exchange *exchange, const char *name,
                              struct error *error)
{
    TRY(http_id_check("model", exchange->ids[0], LIMIT_ID_BYTES, error));
    return strcmp(exchange->ids[0], name) == 0
               ? STATUS_OK
               : error_set(error, STATUS_CONFLICT,
                           "model: the path names \"%.64s\", the body \"%s\"", exchange->ids[0],
                           name);
}

enum status http_handle_model_add(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    struct model_version version;
    memset(&version, 0, sizeof version);
    TRY(wire_decode(&wire_model, &exchange->body, &version, error));
    TRY(check_name(exchange, version.name, error));
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
    struct model_version *versions = calloc((size_t)max + 1, sizeof *versions);
    if (versions == NULL) {
        return http_no_memory(error);
    }
    enum status status = store->ops->models(store, after, versions, (uint32_t)max, &count, error);
    THEN(status, http_reply_list(exchange, "models", &wire_model, versions, count, error));
    free(versions);
    return status;
}

enum status http_handle_model_event(struct http_exchange *exchange, struct error *error)
{
    struct store *store = exchange->store;
    const struct token_grant *grant = exchange->request->grant;
    struct model_event event;
    struct model_event done;
    memset(&event, 0, sizeof event);
    TRY(wire_decode(&wire_model_event, &exchange->body, &event, error));
    TRY(check_name(exchange, event.model, error));
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
    struct model_event *events = calloc((size_t)max + 1, sizeof *events);
    if (events == NULL) {
        return http_no_memory(error);
    }
    enum status status =
        store->ops->model_events(store, after, events, (uint32_t)max, &count, error);
    THEN(status, http_reply_list(exchange, "events", &wire_model_event, events, count, error));
    free(events);
    return status;
}
