/*
 * Calls of the HTTP client about versions of models, trust, sets of goldens and tenants. See
 * http_client.h.
 */
#include "store/client/http_call.h"
#include "store/client/http_client_internal.h"

#include <stddef.h>
#include <string.h>

/* Whoever reads page by page asks for what comes behind the last one: a server that goes round in
 * circles would keep it for ever. */
#define PAGE_STANDS \
    "%s: expected a page in ascending order behind what was asked for, found another"

/* Records of these pages begin with the name or the id that they are in order of. */
_Static_assert(offsetof(struct model_version, name) == 0, "a page's order");
_Static_assert(offsetof(struct golden_set, name) == 0, "a page's order");
_Static_assert(offsetof(struct tenant, name) == 0, "a page's order");
_Static_assert(offsetof(struct model_event, id) == 0, "a page's order");
_Static_assert(offsetof(struct trust_event, id) == 0, "a page's order");

/* A page of /v1/MEMBER, by names. `what` is one of them, in errors. */
static enum status get_names(struct store *store, const char *what, const char *member,
                             const struct wire_codec *codec, const char *after, void *out,
                             uint32_t max, uint32_t *count, struct error *error)
{
    struct http_path path;
    TRY(http_id_check(what, after, LIMIT_ID_BYTES, error));
    max = max > HTTP_PAGE_MAX ? HTTP_PAGE_MAX : max;
    http_path_make(&path, "/v1/%s?max=%lld", member, (long long)max);
    if (after[0] != '\0') {
        http_path_add(&path, "&after=%s", after);
    }
    TRY(http_get_list(http_client_of(store)->transport, &path, member, codec, out, max, count,
                      error));
    for (uint32_t i = 0; i < *count; i++) {
        const char *name = (const char *)out + i * codec->bytes;
        if (strcmp(name, i == 0 ? after : name - codec->bytes) <= 0) {
            return error_set(error, STATUS_STORE, PAGE_STANDS, path.text);
        }
    }
    return STATUS_OK;
}

/* A page of events of /v1/MEMBER, by ids. */
static enum status get_events(struct store *store, const char *member,
                              const struct wire_codec *codec, int64_t after_id, void *out,
                              uint32_t max, uint32_t *count, struct error *error)
{
    struct http_path path;
    int64_t before = after_id;
    max = max > HTTP_PAGE_MAX ? HTTP_PAGE_MAX : max;
    http_path_make(&path, "/v1/%s?after=%lld&max=%lld", member, (long long)after_id,
                   (long long)max);
    TRY(http_get_list(http_client_of(store)->transport, &path, "events", codec, out, max, count,
                      error));
    for (uint32_t i = 0; i < *count; i++) {
        int64_t id;
        memcpy(&id, (const char *)out + i * codec->bytes, sizeof id);
        if (id <= before) {
            return error_set(error, STATUS_STORE, PAGE_STANDS, path.text);
        }
        before = id;
    }
    return STATUS_OK;
}

/* Sends a record that is called `name` to /v1/MEMBER/NAME. */
static enum status put_named(struct store *store, const char *what, const char *member,
                             const char *name, json_t *record, struct error *error)
{
    struct http_path path;
    json_t *root = NULL;
    enum status status = http_id_check(what, name, LIMIT_ID_BYTES, error);
    if (status != STATUS_OK) {
        json_decref(record);
        return status;
    }
    http_path_make(&path, "/v1/%s/%s", member, name);
    TRY(http_send_json(http_client_of(store)->transport, "PUT", &path, record, &root, error));
    json_decref(root);
    return STATUS_OK;
}

/* Sends an event, and reads it as it was stored; `stored` may hold half of it after an error. */
static enum status post_event(struct store *store, const struct http_path *path,
                              const struct wire_codec *codec, const void *event, void *stored,
                              struct error *error)
{
    json_t *root = NULL;
    TRY(http_send_json(http_client_of(store)->transport, "POST", path, wire_encode(codec, event),
                       &root, error));
    struct json_cursor cursor = json_cursor_root(path->text, root);
    memset(stored, 0, codec->bytes);
    enum status status = wire_decode(codec, &cursor, stored, error);
    json_decref(root);
    return status;
}

enum status http_client_model_add(struct store *store, const struct model_version *version,
                                  struct error *error)
{
    return put_named(store, "model", "models", version->name, wire_encode(&wire_model, version),
                     error);
}

enum status http_client_models(struct store *store, const char *after, struct model_version *out,
                               uint32_t max, uint32_t *count, struct error *error)
{
    return get_names(store, "model", "models", &wire_model, after, out, max, count, error);
}

enum status http_client_model_event(struct store *store, const struct model_event *event,
                                    struct model_event *done, struct error *error)
{
    struct http_path path;
    struct model_event stored;
    TRY(http_id_check("model", event->model, LIMIT_ID_BYTES, error));
    http_path_make(&path, "/v1/models/%s/events", event->model);
    TRY(post_event(store, &path, &wire_model_event, event, &stored, error));
    *done = stored;
    return STATUS_OK;
}

enum status http_client_model_events(struct store *store, int64_t after_id, struct model_event *out,
                                     uint32_t max, uint32_t *count, struct error *error)
{
    return get_events(store, "model-events", &wire_model_event, after_id, out, max, count, error);
}

enum status http_client_trust_event(struct store *store, const struct trust_event *event,
                                    struct trust_event *done, struct error *error)
{
    struct http_path path;
    struct trust_event stored;
    http_path_make(&path, "/v1/trust");
    TRY(post_event(store, &path, &wire_trust_event, event, &stored, error));
    *done = stored;
    return STATUS_OK;
}

enum status http_client_trust_events(struct store *store, int64_t after_id, struct trust_event *out,
                                     uint32_t max, uint32_t *count, struct error *error)
{
    return get_events(store, "trust", &wire_trust_event, after_id, out, max, count, error);
}

enum status http_client_golden_add(struct store *store, const struct golden_set *set,
                                   struct error *error)
{
    return put_named(store, "golden", "goldens", set->name, wire_encode(&wire_golden, set), error);
}

enum status http_client_goldens(struct store *store, const char *after, struct golden_set *out,
                                uint32_t max, uint32_t *count, struct error *error)
{
    return get_names(store, "golden", "goldens", &wire_golden, after, out, max, count, error);
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
    return get_names(store, "tenant", "tenants", &wire_tenant, after, out, max, count, error);
}

enum status http_client_tenant_set(struct store *store, const struct tenant *tenant,
                                   uint32_t settings, struct error *error)
{
    return put_named(store, "tenant", "tenants", tenant->name,
                     tenant_change_encode(tenant, settings), error);
}
