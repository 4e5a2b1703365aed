/*
 * HTTP routes: the table of endpoints, and the way from a request to its handler and back. See
 * http_routes.h; the API is described in schemas/openapi.yaml.
 */
#include "store/server/http_routes.h"

#include "base/check.h"
#include "store/server/http_handlers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum body_kind {
    BODY_NONE = 0,
    BODY_JSON,
    BODY_JSON_TEXT, /* JSON that the handler parses by itself, where it has to */
    BODY_SCENARIO,
    BODY_FILES,
    BODY_ARTIFACT
};

/* Roles that may use a route, as bits. ANYBODY: without a token, too. */
enum {
    READ = 1 << TOKEN_ROLE_READ,
    SUBMIT = 1 << TOKEN_ROLE_SUBMIT,
    WORKER = 1 << TOKEN_ROLE_WORKER,
    ADMIN = 1 << TOKEN_ROLE_ADMIN,
    DRIVER = 1 << TOKEN_ROLE_DRIVER,
    READERS = READ | SUBMIT | ADMIN,
    WORKERS = WORKER | ADMIN,
    ALL = READERS | WORKER,
    ANYBODY = 1 << TOKEN_ROLE_COUNT,
};

/* Who waits for whom. Whoever only reads waits for a turn, on connections of its own. */
enum call_lane {
    WORK = 0, /* nobody waits for readers */
    READS,
    MIXED, /* workers need it; from others it is a reader, where tokens tell them apart */
};

struct http_route {
    const char *method;
    const char *pattern; /* '*' stands for one identifier */
    unsigned roles;
    enum call_lane lane;
    enum body_kind body;
    enum status (*handle)(struct http_exchange *exchange, struct error *error);
    unsigned call;                 /* STORE_CALL_COUNT: none */
    const char *query_keys[3 + 1]; /* of no call; NULL-terminated */
};

#define CALL(function, kind, method, path, roles, lane, body, handler, ...)                        \
    {(method), (path), (roles), (lane), BODY_##body, http_handle_##handler, STORE_CALL_##function, \
     {NULL}},
#define NO_ROUTE(function, ...)
#define OWN(path, roles, lane, handler, ...)                                                \
    {                                                                                       \
        "GET", (path), (roles), (lane), BODY_NONE, http_handle_##handler, STORE_CALL_COUNT, \
        {                                                                                   \
            __VA_ARGS__                                                                     \
        }                                                                                   \
    }

static const struct http_route routes[] = {
    OWN("/healthz", ANYBODY, WORK, healthz, NULL),
    OWN("/readyz", ANYBODY, WORK, readyz, NULL),
    OWN("/metrics", READ | ADMIN, READS, metrics, NULL),
    OWN("/", ANYBODY, WORK, web, NULL),
    OWN("/web/*", ANYBODY, WORK, web, NULL),
    OWN("/v1/overview", READERS, READS, overview, "after", "limit"),
    OWN("/v1/events", READERS, WORK, events, NULL),
    OWN("/v1/health", ALL, WORK, health, NULL),
    OWN("/v1/outcomes/*/drive", READERS, READS, drive, NULL),
    OWN("/v1/outcomes/*/frames/*", READERS, READS, frames, NULL),
    OWN("/v1/scaling/*", READERS, READS, scaling, NULL),
    OWN("/v1/sessions", READERS | DRIVER, WORK, sessions, "worker", "key"),
    OWN("/v1/sessions/worker", WORKERS, WORK, sessions_worker, NULL),
    OWN("/v1/scenario", READERS | DRIVER, WORK, session_scenario, "scenario", "key"),
    OWN("/v1/agreement", READERS, READS, agreement, "after", "limit", "days"),
    STORE_CALLS(CALL, NO_ROUTE)};
_Static_assert(COUNT_OF(routes) <= HTTP_METRICS_ROUTES_MAX, "metrics have room for every route");

/* Does the raw path fit the pattern? The match receives where each '*' stands. */
static bool pattern_fits(const char *pattern, const char *path, size_t path_bytes,
                         struct http_match *match)
{
    size_t at = 0;
    size_t capture = 0;
    memset(match->captures, 0, sizeof match->captures);
    for (; *pattern != '\0'; pattern++) {
        if (*pattern == '*') {
            size_t begin = at;
            while (at < path_bytes && path[at] != '/') {
                at++;
            }
            match->captures[capture].text = path + begin;
            match->captures[capture++].bytes = at - begin;
        } else if (at >= path_bytes || path[at++] != *pattern) {
            return false;
        }
    }
    return at == path_bytes;
}

/* HEAD is GET without a body, which the HTTP library leaves out. */
void http_route_find(const char *method, const char *uri, struct http_match *out)
{
    size_t path_bytes = strcspn(uri, "?");
    const char *wanted = strcmp(method, "HEAD") == 0 ? "GET" : method;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < COUNT_OF(routes) && out->route == NULL; i++) {
        if (pattern_fits(routes[i].pattern, uri, path_bytes, out)) {
            out->known_path = true;
            out->route = strcmp(routes[i].method, wanted) == 0 ? &routes[i] : NULL;
        }
    }
}

size_t http_route_number(const struct http_route *route)
{
    return route != NULL ? (size_t)(route - routes) : HTTP_METRICS_ROUTES_MAX;
}

const char *http_route_method(size_t number)
{
    return number < COUNT_OF(routes) ? routes[number].method : "other";
}

const char *http_route_pattern(size_t number)
{
    return number < COUNT_OF(routes) ? routes[number].pattern : "other";
}

void http_route_methods(const char *uri, char *out, size_t capacity)
{
    struct http_match ignored;
    size_t used = 0;
    out[0] = '\0';
    for (size_t i = 0; i < COUNT_OF(routes) && used < capacity; i++) {
        if (pattern_fits(routes[i].pattern, uri, strcspn(uri, "?"), &ignored)) {
            used += (size_t)snprintf(out + used, capacity - used, "%s%s%s", used > 0 ? ", " : "",
                                     routes[i].method,
                                     strcmp(routes[i].method, "GET") == 0 ? ", HEAD" : "");
        }
    }
}

bool http_route_takes_artifact(const struct http_route *route)
{
    return route != NULL && route->body == BODY_ARTIFACT;
}

/* ---- who may ---- */

static bool takes_key(const struct http_route *route, const char *key)
{
    const char *const *own = route->query_keys;
    while (*own != NULL && strcmp(*own, key) != 0) {
        own++;
    }
    return *own != NULL ||
           (route->call < STORE_CALL_COUNT && http_call_takes(&http_call_forms[route->call], key));
}

static void refuse(struct http_admission *out, int code, const char *text)
{
    out->code = code;
    error_set(&out->error, STATUS_STORE, "%s", text);
}

/* Jobs and models are no tenant's, so a worker of a tenant, whom that may trust more than others
 * do, does nothing but serve its sessions. */
static bool is_for_sessions_alone(const struct token *grant, const struct http_route *route)
{
    return grant->role == TOKEN_ROLE_WORKER && grant->tenant[0] != '\0' &&
           route->handle != http_handle_sessions_worker;
}

/* By the token; leaves `out` alone where none is needed. */
static void admit_by_token(const struct http_context *context, const struct http_route *route,
                           const char *authorization, struct http_admission *out)
{
    if (context->guard == NULL || (route != NULL && (route->roles & ANYBODY) != 0)) {
        return;
    }
    out->limited = true;
    if (!token_guard_admit(context->guard, authorization, &out->grant)) {
        refuse(out, 401,
               authorization == NULL
                   ? "this server wants a token: \"Authorization: Bearer TOKEN\""
                   : "the token that was sent is not one of this server's: it may be mistyped, "
                     "expired or revoked");
    } else if (route != NULL && (route->roles & (1U << out->grant.role)) == 0) {
        out->code = 403;
        error_set(&out->error, STATUS_STORE,
                  "the token of \"%s\" has the role %s, which may not "
                  "%s %s",
                  out->grant.name, token_role_names[out->grant.role], route->method,
                  route->pattern);
    } else if (route != NULL && is_for_sessions_alone(&out->grant, route)) {
        out->code = 403;
        error_set(&out->error, STATUS_STORE,
                  "the token of \"%s\" is of a worker of tenant \"%s\", which serves its sessions "
                  "alone, and may not %s %s",
                  out->grant.name, out->grant.tenant, route->method, route->pattern);
    }
}

/* The key in the query of a route that takes one, as a header would have it. */
static bool key_of(const struct http_route *route, const char *uri, char *out, size_t capacity)
{
    const char *at = route != NULL && takes_key(route, "key") ? strchr(uri, '?') : NULL;
    while (at != NULL && strncmp(at + 1, "key=", 4) != 0) {
        at = strchr(at + 1, '&');
    }
    if (at == NULL) {
        return false;
    }
    int bytes = (int)strcspn(at + 5, "&");
    return snprintf(out, capacity, "Bearer %.*s", bytes, at + 5) < (int)capacity;
}

void http_route_admit(const struct http_context *context, const struct http_route *route,
                      const char *uri, const char *authorization, struct http_admission *out)
{
    char key[TOKEN_SECRET_BYTES + sizeof "Bearer "];
    bool by_key = authorization == NULL && key_of(route, uri, key, sizeof key);
    memset(out, 0, sizeof *out);
    admit_by_token(context, route, by_key ? key : authorization, out);
    /* Addresses are written down in more places than headers. */
    if (out->code == 0 && out->limited && by_key && out->grant.role != TOKEN_ROLE_DRIVER) {
        refuse(out, 403, "a token in an address: expected a driver's; others go into a header");
    }
    explicit_bzero(key, sizeof key);
    /* A call that a reader may use changes nothing. */
    if (out->code == 0 && context->read_only && route != NULL &&
        (route->roles & (READ | ANYBODY)) == 0) {
        refuse(out, 403, "this server shows a store and changes nothing in it");
    }
}

size_t http_route_body_max(const struct http_route *route)
{
    switch (route != NULL ? route->body : BODY_NONE) {
    case BODY_JSON:
    case BODY_JSON_TEXT:
        return HTTP_JSON_BYTES_MAX;
    case BODY_SCENARIO:
        return LIMIT_DOCUMENT_BYTES;
    case BODY_FILES:
        return LABEL_FILES_BYTES;
    case BODY_ARTIFACT:
        return LIMIT_ARTIFACT_BYTES;
    default:
        return 0;
    }
}

static enum status parse_query(struct http_exchange *exchange, const struct http_route *route,
                               const char *text, struct error *error)
{
    while (*text != '\0') {
        size_t bytes = strcspn(text, "&");
        size_t key_bytes = strcspn(text, "=&");
        struct http_query_entry *entry = &exchange->query[exchange->query_count];
        if (exchange->query_count == HTTP_QUERY_MAX) {
            return error_set(error, STATUS_LIMIT, "query: expected at most %d members",
                             HTTP_QUERY_MAX);
        }
        TRY(http_percent_decode("query", text, key_bytes, entry->key, sizeof entry->key, error));
        size_t skip = key_bytes < bytes ? key_bytes + 1 : key_bytes;
        TRY(http_percent_decode("query", text + skip, bytes - skip, entry->value,
                                sizeof entry->value, error));
        if (!takes_key(route, entry->key) || http_query_find(exchange, entry->key) != NULL) {
            return error_set(error, STATUS_BAD_INPUT, "query: unknown or repeated member \"%s\"",
                             entry->key);
        }
        exchange->query_count++;
        text += bytes + (text[bytes] == '&');
    }
    return STATUS_OK;
}

static bool only_reads(const struct http_exchange *exchange, const struct http_route *route)
{
    const struct token *grant = exchange->request->grant;
    return route->lane == READS ||
           (route->lane == MIXED && grant != NULL && grant->role != TOKEN_ROLE_WORKER);
}

/* Answers one who only reads, when it is its turn. */
static enum status read_in_turn(struct http_exchange *exchange, const struct http_route *route,
                                struct error *error)
{
    const struct http_context *context = exchange->context;
    const struct token *grant = exchange->request->grant;
    struct http_reader turn;
    exchange->readers = true;
    if (exchange->store->ops->reading != NULL) {
        exchange->store = exchange->store->ops->reading(exchange->store);
    }
    if (context->readers == NULL) {
        return route->handle(exchange, error);
    }
    if (atomic_load(&context->budget->reader_bytes) > HTTP_READER_BYTES_MAX) {
        return error_set(error, STATUS_BUSY,
                         "readers have not taken %d MiB of answers yet, try again later",
                         HTTP_READER_BYTES_MAX >> 20);
    }
    TRY(http_readers_enter(context->readers, &turn, grant != NULL ? grant->name : "",
                           HTTP_READER_WAIT_MS, &exchange->code, error));
    enum status status = route->handle(exchange, error);
    http_readers_leave(context->readers, &turn);
    return status;
}

/* Calls that order something, and that people make: workers' are attempts, and a scenario is what
 * its name says. */
static bool is_logged(const struct http_exchange *exchange, const struct http_route *route)
{
    return exchange->request->grant != NULL && exchange->store->ops->audit_begin != NULL &&
           strcmp(route->method, "GET") != 0 && (route->roles & WORKER) == 0 &&
           route->body != BODY_SCENARIO;
}

/* Carries out a call that stands in the log before anything is done. */
static enum status handle_logged(struct http_exchange *exchange, const struct http_route *route,
                                 struct error *error)
{
    const struct store_ops *ops = exchange->store->ops;
    const struct token *grant = exchange->request->grant;
    struct store_audit entry = {.id = 0};
    struct error why;

    snprintf(entry.name, sizeof entry.name, "%s", grant->name);
    snprintf(entry.role, sizeof entry.role, "%s", token_role_names[grant->role]);
    snprintf(entry.action, sizeof entry.action, "%s %s", route->method, route->pattern);
    snprintf(entry.subject, sizeof entry.subject, "%s%s%s", exchange->ids[0],
             exchange->ids[1][0] != '\0' ? " " : "", exchange->ids[1]);
    TRY(ops->audit_begin(exchange->store, &entry, error));
    enum status status = route->handle(exchange, error);
    int code = status == STATUS_OK   ? 200
               : exchange->code != 0 ? exchange->code
                                     : http_code_of(status);
    /* Failing changes no answer: what is done is done, and the entry goes on saying "begun". */
    (void)ops->audit_end(exchange->store, entry.id, code, &why);
    return status;
}

static enum status dispatch(struct http_exchange *exchange, struct error *error)
{
    const struct http_request *request = exchange->request;
    const struct http_match *match = request->match;
    const struct http_route *route = match->route;
    if (route == NULL) {
        exchange->code = match->known_path ? 405 : 404;
        return error_set(error, STATUS_USAGE, "%s: %s %.200s",
                         match->known_path ? "wrong method" : "no such path", request->method,
                         request->uri);
    }
    enum status status = STATUS_OK;
    exchange->call = route->call;
    for (size_t i = 0; i < HTTP_CAPTURES_MAX && match->captures[i].text != NULL; i++) {
        THEN(status, http_percent_decode("path", match->captures[i].text, match->captures[i].bytes,
                                         exchange->ids[i], sizeof exchange->ids[i], error));
    }
    if (route->body != BODY_NONE) { /* which may have taken long to come */
        THEN(status, http_check_live(exchange, error));
    }
    const char *query = strchr(request->uri, '?');
    if (status == STATUS_OK && query != NULL) {
        status = parse_query(exchange, route, query + 1, error);
    }
    if (status == STATUS_OK && route->body == BODY_JSON) {
        status = http_body_parse(exchange, error);
    }
    THEN(status, only_reads(exchange, route)  ? read_in_turn(exchange, route, error)
                 : is_logged(exchange, route) ? handle_logged(exchange, route, error)
                                              : route->handle(exchange, error));
    return status;
}

static void reply_json(struct http_reply *reply, int code, const json_t *value)
{
    reply->code = code;
    reply->content = HTTP_CONTENT_JSON;
    reply->data = value != NULL ? json_compact_text(value) : NULL;
    reply->bytes = reply->data != NULL ? strlen(reply->data) : 0;
    if (reply->data == NULL) {
        reply->code = 500;
    }
}

void http_reply_error(struct http_reply *reply, const struct error *error, int code)
{
    json_t *value = http_error_encode(error);
    reply_json(reply, code != 0 ? code : http_code_of(error->status), value);
    json_decref(value);
}

/* A disk that is full may have room again: a fleet's workers, whose results would be lost, are told
 * to come back, and whoever sends work is told by /readyz. */
static void note_write(struct http_exchange *exchange, const struct http_route *route,
                       enum status status, struct error *error)
{
    if (route == NULL || strcmp(route->method, "GET") == 0) {
        return;
    }
    if (status == STATUS_IO && exchange->context->asks_again && (route->roles & WORKER) != 0) {
        exchange->code = 503;
    }
    if (exchange->context->ready != NULL) {
        error->status = status;
        http_ready_wrote(exchange->context->ready, route->pattern, error);
    }
}

void http_route(const struct http_context *context, const struct http_request *request,
                struct http_reply *reply)
{
    struct error error = {.status = STATUS_STORE, .text = ""};
    struct http_exchange exchange = {
        .context = context,
        .store = context->store,
        .request = request,
        .upload = request->upload,
    };
    memset(reply, 0, sizeof *reply);
    enum status status = dispatch(&exchange, &error);
    note_write(&exchange, request->match->route, status, &error);
    http_body_finish(&exchange);
    free(exchange.rows);
    artifact_writer_abort(exchange.upload);
    if (status != STATUS_OK) {
        error.status = status;
        http_reply_error(reply, &error, exchange.code);
    } else if (exchange.data != NULL || exchange.stream != NULL || exchange.follower != NULL) {
        reply->code = 200;
        reply->follower = exchange.follower;
        exchange.follower = NULL;
        reply->content = exchange.content;
        reply->data = exchange.data;
        reply->stream = exchange.stream;
        reply->bytes = exchange.data_bytes;
        reply->packed = exchange.packed;
        exchange.data = NULL;
        exchange.stream = NULL;
    } else {
        reply_json(reply, 200, exchange.reply);
    }
    if (status == STATUS_OK && exchange.upgrades) {
        reply->code = 101;
        reply->guest = exchange.guest;
    }
    reply->readers = exchange.readers;
    json_decref(exchange.reply);
    free(exchange.data);
    artifact_reader_close(exchange.stream);
    http_events_leave(exchange.follower);
}
