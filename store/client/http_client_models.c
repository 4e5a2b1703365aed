/*
 * Calls of the HTTP client about versions of models, trust and sets of goldens. See http_client.h.
 */
#include "store/client/http_call.h"
#include "store/client/http_client_internal.h"

#include <string.h>

/* Whoever reads page by page asks for what comes behind the last one: a server that goes round in
 * circles would keep it for ever. */
#define PAGE_STANDS \
    "%s: expected a page in ascending order behind what was asked for, found another"

enum status http_client_model_add(struct store *store, const struct model_version *version,
                                  struct error *error)
{
    struct http_path path;
    json_t *root = NULL;
    TRY(http_id_check("model", version->name, LIMIT_ID_BYTES, error));
    http_path_make(&path, "/v1/models/%s", version->name);
    TRY(http_send_json(http_client_of(store)->transport, "PUT", &path,
                       wire_encode(&wire_model, version), &root, error));
    json_decref(root);
    return STATUS_OK;
}

enum status http_client_models(struct store *store, const char *after, struct model_version *out,
                               uint32_t max, uint32_t *count, struct error *error)
{
    struct http_path path;
    TRY(http_id_check("model", after, LIMIT_ID_BYTES, error));
    max = max > HTTP_PAGE_MAX ? HTTP_PAGE_MAX : max;
    http_path_make(&path, "/v1/models?max=%lld", (long long)max);
    if (after[0] != '\0') {
        http_path_add(&path, "&after=%s", after);
    }
    TRY(http_get_list(http_client_of(store)->transport, &path, "models", &wire_model, out, max,
                      count, error));
    for (uint32_t i = 0; i < *count; i++) {
        if (strcmp(out[i].name, i == 0 ? after : out[i - 1].name) <= 0) {
            return error_set(error, STATUS_STORE, PAGE_STANDS, path.text);
        }
    }
    return STATUS_OK;
}

enum status http_client_model_event(struct store *store, const struct model_event *event,
                                    struct model_event *done, struct error *error)
{
    struct http_path path;
    struct model_event stored;
    json_t *root = NULL;
    TRY(http_id_check("model", event->model, LIMIT_ID_BYTES, error));
    http_path_make(&path, "/v1/models/%s/events", event->model);
    TRY(http_send_json(http_client_of(store)->transport, "POST", &path,
                       wire_encode(&wire_model_event, event), &root, error));
    struct json_cursor cursor = json_cursor_root(path.text, root);
    memset(&stored, 0, sizeof stored);
    enum status status = wire_decode(&wire_model_event, &cursor, &stored, error);
    json_decref(root);
    if (status == STATUS_OK) {
        *done = stored;
    }
    return status;
}

enum status http_client_model_events(struct store *store, int64_t after_id, struct model_event *out,
                                     uint32_t max, uint32_t *count, struct error *error)
{
    struct http_path path;
    max = max > HTTP_PAGE_MAX ? HTTP_PAGE_MAX : max;
    http_path_make(&path, "/v1/model-events?after=%lld&max=%lld", (long long)after_id,
                   (long long)max);
    TRY(http_get_list(http_client_of(store)->transport, &path, "events", &wire_model_event, out,
                      max, count, error));
    for (uint32_t i = 0; i < *count; i++) {
        if (out[i].id <= (i == 0 ? after_id : out[i - 1].id)) {
            return error_set(error, STATUS_STORE, PAGE_STANDS, path.text);
        }
    }
    return STATUS_OK;
}

enum status http_client_trust_event(struct store *store, const struct trust_event *event,
                                    struct trust_event *done, struct error *error)
{
    struct http_path path;
    struct trust_event stored;
    json_t *root = NULL;
    http_path_make(&path, "/v1/trust");
    TRY(http_send_json(http_client_of(store)->transport, "POST", &path,
                       wire_encode(&wire_trust_event, event), &root, error));
    struct json_cursor cursor = json_cursor_root(path.text, root);
    memset(&stored, 0, sizeof stored);
    enum status status = wire_decode(&wire_trust_event, &cursor, &stored, error);
    json_decref(root);
    if (status == STATUS_OK) {
        *done = stored;
    }
    return status;
}

enum status http_client_trust_events(struct store *store, int64_t after_id, struct trust_event *out,
                                     uint32_t max, uint32_t *count, struct error *error)
{
    struct http_path path;
    max = max > HTTP_PAGE_MAX ? HTTP_PAGE_MAX : max;
    http_path_make(&path, "/v1/trust?after=%lld&max=%lld", (long long)after_id, (long long)max);
    TRY(http_get_list(http_client_of(store)->transport, &path, "events", &wire_trust_event, out,
                      max, count, error));
    for (uint32_t i = 0; i < *count; i++) {
        if (out[i].id <= (i == 0 ? after_id : out[i - 1].id)) {
            return error_set(error, STATUS_STORE, PAGE_STANDS, path.text);
        }
    }
    return STATUS_OK;
}

enum status http_client_golden_add(struct store *store, const struct golden_set *set,
                                   struct error *error)
{
    struct http_path path;
    json_t *root = NULL;
    TRY(http_id_check("golden", set->name, LIMIT_ID_BYTES, error));
    http_path_make(&path, "/v1/goldens/%s", set->name);
    TRY(http_send_json(http_client_of(store)->transport, "PUT", &path,
                       wire_encode(&wire_golden, set), &root, error));
    json_decref(root);
    return STATUS_OK;
}

enum status http_client_goldens(struct store *store, const char *after, struct golden_set *out,
                                uint32_t max, uint32_t *count, struct error *error)
{
    struct http_path path;
    TRY(http_id_check("golden", after, LIMIT_ID_BYTES, error));
    max = max > HTTP_PAGE_MAX ? HTTP_PAGE_MAX : max;
    http_path_make(&path, "/v1/goldens?max=%lld", (long long)max);
    if (after[0] != '\0') {
        http_path_add(&path, "&after=%s", after);
    }
    TRY(http_get_list(http_client_of(store)->transport, &path, "goldens", &wire_golden, out, max,
                      count, error));
    for (uint32_t i = 0; i < *count; i++) {
        if (strcmp(out[i].name, i == 0 ? after : out[i - 1].name) <= 0) {
            return error_set(error, STATUS_STORE, PAGE_STANDS, path.text);
        }
    }
    return STATUS_OK;
}

enum status http_client_golden_drop(struct store *store, const char *name, struct error *error)
{
    struct http_path path;
    json_t *root = NULL;
    TRY(http_id_check("golden", name, LIMIT_ID_BYTES, error));
    http_path_make(&path, "/v1/goldens/%s/expire", name);
    TRY(http_send_json(http_client_of(store)->transport, "POST", &path, json_object(), &root,
                       error));
    json_decref(root);
    return STATUS_OK;
}

enum status http_client_tenants(struct store *store, const char *after, struct tenant *out,
                                uint32_t max, uint32_t *count, struct error *error)
{
    struct http_path path;
    TRY(http_id_check("tenant", after, LIMIT_ID_BYTES, error));
    max = max > HTTP_PAGE_MAX ? HTTP_PAGE_MAX : max;
    http_path_make(&path, "/v1/tenants?max=%lld", (long long)max);
    if (after[0] != '\0') {
        http_path_add(&path, "&after=%s", after);
    }
    TRY(http_get_list(http_client_of(store)->transport, &path, "tenants", &wire_tenant, out, max,
                      count, error));
    for (uint32_t i = 0; i < *count; i++) {
        if (strcmp(out[i].name, i == 0 ? after : out[i - 1].name) <= 0) {
            return error_set(error, STATUS_STORE, PAGE_STANDS, path.text);
        }
    }
    return STATUS_OK;
}

enum status http_client_tenant_set(struct store *store, const struct tenant *tenant,
                                   struct error *error)
{
    struct http_path path;
    json_t *root = NULL;
    TRY(http_id_check("tenant", tenant->name, LIMIT_ID_BYTES, error));
    http_path_make(&path, "/v1/tenants/%s", tenant->name);
    TRY(http_send_json(http_client_of(store)->transport, "PUT", &path,
                       wire_encode(&wire_tenant_set, tenant), &root, error));
    json_decref(root);
    return STATUS_OK;
}
