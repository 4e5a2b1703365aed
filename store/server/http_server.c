/*
 * The HTTP server over any store: the HTTP library's side of it. What connections do is
 * http_connections.c's business, bodies are request_body.c's, and what a request means and who may
 * ask is http_routes.c's.
 *
 * One thread per connection: a handler waits in the store for a commit or a job, so that a group
 * commit gathers all waiting clients, and a long poll starves nobody. Connections are bounded;
 * those a little beyond the bound are told so, further ones wait in the kernel.
 *
 * Invariant: whoever may not ask is answered before a byte of the body is taken.
 */
#include "store/server/http_server.h"

#include "store/server/http_connections.h"
#include "store/server/http_handlers.h"
#include "store/server/http_headers.h"
#include "store/server/http_metrics.h"
#include "store/server/http_response.h"
#include "store/server/http_routes.h"
#include "store/server/request_body.h"
#include "store/server/tls.h"
#include "store/server/unix_peer.h"
#include "store/wire/http_coding.h"
#include "store/wire/http_wire.h"

#include "base/check.h"

#include <errno.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
    STACK_BYTES = 2 << 20, /* per connection, virtual; a picture of a drive takes 0.4 MB of it */
    CROWD_MAX = 64,        /* connections that are only told that there are too many */
};

static const struct http_server_times usual_times = {
    .idle_ms = HTTP_IDLE_MS,
    .request_ms = HTTP_REQUEST_MS,
    .unknown_ms = HTTP_UNKNOWN_MS,
    .watch_ms = 500,
    .drain_ms = 5000,
};

struct request {
    struct relay_guest guest; /* stands first, for the relay; once its connection is a WebSocket */
    bool upgraded;
    char uri[HTTP_URI_BYTES_MAX];         /* path and query */
    char authority[HTTP_AUTHORITY_BYTES]; /* of a target in absolute form; "": it was none */
    bool begun;                           /* headers are complete */
    struct http_connection *connection;
    struct request_body request_body;
    struct http_match match;
    struct http_admission admission;
    int64_t start_ns;
    bool takes_packed;   /* the path does */
    bool packed;         /* the body is */
    bool accepts_packed; /* the answer may be */
    bool answered;
    bool readers;       /* the answer is to one who only reads */
    size_t reply_bytes; /* of the answer, as counted in the budget */
};

struct store_server {
    struct http_context context;
    struct http_server_times times;
    atomic_bool stopping;
    struct http_readers readers;
    struct http_events events;
    struct http_ready ready;
    struct http_connections connections;
    struct http_budget budget;
    struct http_metrics metrics;
    struct tls_identity *tls; /* NULL: in the clear */
    const struct logger *logger;
    struct MHD_Daemon *daemon;
    int listen_fd;
};

/* ---- connections ---- */

static struct http_connection *connection_of(struct MHD_Connection *handle)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(handle, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

static void on_connection(void *context, struct MHD_Connection *handle, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct store_server *server = context;
    struct error refused;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *fd =
            MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CONNECTION_FD);
        const union MHD_ConnectionInfo *address =
            MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        /* NULL: its requests find no context and are refused. */
        struct http_connection *connection = http_connection_open(
            &server->connections, server, fd->connect_fd,
            address != NULL ? address->client_addr : NULL, server->times.unknown_ms);
        if (connection != NULL && unix_peer_check(fd->connect_fd, &refused) != STATUS_OK) {
            connection->stranger = true;
            log_event(server->logger, LOG_ERROR, "refused a connection: %s", refused.text);
        }
        *socket_context = connection;
        return;
    }
    http_connection_close(*socket_context);
    *socket_context = NULL;
}

/* The library keeps its connection as the session's user pointer, from before the handshake on. */
static int on_certificate(gnutls_session_t session, const gnutls_datum_t *authorities,
                          int authority_count, const gnutls_pk_algorithm_t *algorithms,
                          int algorithm_count, gnutls_pcert_st **chain, unsigned *chain_count,
                          gnutls_privkey_t *key)
{
    (void)authorities;
    (void)authority_count;
    (void)algorithms;
    (void)algorithm_count;
    struct http_connection *connection = connection_of(gnutls_session_get_ptr(session));
    if (connection == NULL) {
        return -1; /* the handshake fails */
    }
    struct store_server *server = connection->owner;
    tls_identity_current(server->tls, chain, chain_count, key);
    return 0;
}

/* ---- requests ---- */

/* For a phase that others have allow_ms for: nobody waits so long for a peer that has not shown
 * that it may ask. */
static int64_t allowed_ms(const struct request *request, int64_t allow_ms)
{
    const struct store_server *server = request->connection->owner;
    return http_connection_known(request->connection) || allow_ms < server->times.unknown_ms
               ? allow_ms
               : server->times.unknown_ms;
}

static void take_target(struct request *request, const char *uri)
{
    struct request_body *request_body = &request->request_body;
    struct http_target target;
    struct error error;
    if (strlen(uri) >= sizeof request->uri) {
        request_body_refuse(request_body, STATUS_LIMIT, 0, "URI: expected at most %zu bytes",
                            sizeof request->uri - 1);
    } else if (http_target_split(uri, &target, &error) != STATUS_OK) {
        request_body_refuse(request_body, error.status, 0, "%s", error.text);
    } else {
        memcpy(request->uri, target.path, strlen(target.path) + 1);
        memcpy(request->authority, target.authority, sizeof request->authority);
    }
}

/* A request line has arrived. The result becomes the request's context. */
static void *on_uri(void *context, const char *uri, struct MHD_Connection *handle)
{
    struct store_server *server = context;
    struct http_connection *connection = connection_of(handle);
    struct request *request = connection != NULL ? calloc(1, sizeof *request) : NULL;
    if (request == NULL) {
        return NULL;
    }
    request->connection = connection;
    request->request_body.budget = &server->budget;
    request->start_ns = clock_now_ns(clock_system());
    take_target(request, uri);
    /* The time of an unknown one runs from its first byte to the end of its headers. */
    http_connection_phase(connection, HTTP_RECEIVING,
                          http_connection_known(connection) ? server->times.request_ms : -1);
    return request;
}

static void on_completed(void *context, struct MHD_Connection *handle, void **request_context,
                         enum MHD_RequestTerminationCode code)
{
    struct store_server *server = context;
    struct request *request = *request_context;
    (void)handle;
    (void)code;
    if (request != NULL) {
        request_body_finish(&request->request_body);
        atomic_fetch_sub(&server->budget.bytes, request->reply_bytes);
        atomic_fetch_sub(&server->budget.reader_bytes, request->readers ? request->reply_bytes : 0);
        if (request->answered) {
            http_metrics_time(&server->metrics, http_route_number(request->match.route),
                              clock_now_ns(clock_system()) - request->start_ns);
        }
        struct http_connection *connection = request->connection;
        enum http_phase phase = request->upgraded ? HTTP_HANDLING : HTTP_IDLE;
        int64_t idle_ms = allowed_ms(request, server->times.idle_ms);
        free(request);
        *request_context = NULL;
        http_connection_phase(connection, phase, idle_ms);
    }
}

/* ---- replies ---- */

static enum MHD_Result queue_reply(struct MHD_Connection *handle, struct request *request,
                                   struct http_reply *reply, bool close_after)
{
    struct store_server *server = request->connection->owner;
    bool buffered = reply->stream == NULL && reply->follower == NULL;
    struct http_headers headers;
    const struct http_response_site site = {
        .context = &server->context,
        .connection = request->connection,
        .logger = server->logger,
        .request_ms = server->times.request_ms,
    };
    http_headers_make(reply, request->uri, request->takes_packed, close_after, &headers);
    struct MHD_Response *response = http_response_make(&site, handle, &headers, reply);
    if (response == NULL) {
        return MHD_NO;
    }
    if (buffered) {
        request->reply_bytes = reply->bytes;
        request->readers = reply->readers;
        atomic_fetch_add(&server->budget.bytes, reply->bytes);
        atomic_fetch_add(&server->budget.reader_bytes, reply->readers ? reply->bytes : 0);
    }
    request->answered = true;
    request->guest = reply->guest;
    request->upgraded = reply->code == 101;
    if (reply->code == 500) {
        log_event(server->logger, LOG_ERROR, "%.200s is answered 500: %.600s", request->uri,
                  reply->data != NULL ? reply->data : "out of memory");
    }
    http_metrics_count(&server->metrics, http_route_number(request->match.route), reply->code);
    http_connection_phase(request->connection, request->upgraded ? HTTP_HANDLING : HTTP_REPLYING,
                          allowed_ms(request, server->times.request_ms) +
                              (int64_t)(reply->bytes / HTTP_BYTES_PER_MS_MIN));
    enum MHD_Result result = MHD_queue_response(handle, (unsigned)reply->code, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result queue_refusal(struct MHD_Connection *handle, struct request *request,
                                     bool close_after)
{
    struct http_reply reply = {0};
    http_reply_error(&reply, &request->request_body.error, request->request_body.code);
    return queue_reply(handle, request, &reply, close_after);
}

/* ---- from headers to handlers ---- */

struct framing {
    unsigned hosts;   /* headers that say whom it is for */
    unsigned lengths; /* .. where the body ends */
    unsigned codings;
    bool plain; /* each of them is well-formed */
    bool named; /* and so is each host */
};

static enum MHD_Result take_framing(void *context, enum MHD_ValueKind kind, const char *key,
                                    const char *value)
{
    enum { LENGTH_DIGITS_MAX = 18 };
    struct framing *framing = context;
    (void)kind;
    /* "Content-Length : 2" is a length to some (RFC 9112, 5.1). */
    framing->plain = framing->plain && key[strcspn(key, " \t")] == '\0';
    if (strcasecmp(key, MHD_HTTP_HEADER_HOST) == 0) {
        framing->hosts++;
        framing->named = framing->named && http_host_is_plain(value != NULL ? value : "");
    }
    if (strcasecmp(key, MHD_HTTP_HEADER_CONTENT_LENGTH) == 0) {
        size_t digits = value != NULL ? strspn(value, "0123456789") : 0;
        framing->lengths++;
        framing->plain =
            framing->plain && digits > 0 && digits <= LENGTH_DIGITS_MAX && value[digits] == '\0';
    } else if (strcasecmp(key, MHD_HTTP_HEADER_TRANSFER_ENCODING) == 0) {
        framing->codings++;
        framing->plain = framing->plain && value != NULL && strcasecmp(value, "chunked") == 0;
    }
    return MHD_YES;
}

/* The end of a body must be said once and plainly: whoever stands between a client and this server
 * may understand anything else in another way, and take the rest of the body for a request of its
 * own (RFC 9112, 6.3 and 11.2). So must the host, or another one may have been meant (3.2). */
static enum status check_framing(struct MHD_Connection *handle, const char *version,
                                 struct error *error)
{
    struct framing framing = {.plain = true, .named = true};
    MHD_get_connection_values(handle, MHD_HEADER_KIND, take_framing, &framing);
    if (!framing.plain || framing.lengths + framing.codings > 1) {
        return error_set(error, STATUS_BAD_INPUT,
                         "headers: expected one Content-Length of digits, or "
                         "Transfer-Encoding: chunked");
    }
    bool must = strcmp(version, MHD_HTTP_VERSION_1_1) == 0;
    return framing.named && (framing.hosts == 1 || (framing.hosts == 0 && !must))
               ? STATUS_OK
               : error_set(error, STATUS_BAD_INPUT,
                           "headers: expected one Host with one name, found %u", framing.hosts);
}

struct codings {
    const char *value; /* of the first Content-Encoding */
    unsigned count;
};

static enum MHD_Result take_coding(void *context, enum MHD_ValueKind kind, const char *key,
                                   const char *value)
{
    struct codings *codings = context;
    (void)kind;
    if (strcasecmp(key, MHD_HTTP_HEADER_CONTENT_ENCODING) == 0) {
        codings->value = codings->count == 0 ? value : codings->value;
        codings->count++;
    }
    return MHD_YES;
}

/* Whether the request is taken up at all; a refusal is in its body. */
static void admit(struct store_server *server, struct MHD_Connection *handle,
                  struct request *request, const char *method)
{
    struct request_body *request_body = &request->request_body;
    struct error refused;
    /* Looked at once more, for the sentence and because it may have been for want of memory. */
    if (request->connection->stranger &&
        unix_peer_check(request->connection->fd, &refused) != STATUS_OK) {
        request_body_refuse(request_body, refused.status, refused.status == STATUS_BUSY ? 503 : 403,
                            "%s", refused.text);
        return;
    }
    if (request->connection->crowd == HTTP_CROWD_PEER) {
        request_body_refuse(request_body, STATUS_BUSY, 429,
                            "too many connections from this address, try again later");
        return;
    }
    if (request->connection->crowd == HTTP_CROWD_SERVER) {
        request_body_refuse(request_body, STATUS_BUSY, 503,
                            "too many connections, try again later");
        return;
    }
    const struct http_origin origin = {
        .host = request->authority[0] != '\0'
                    ? request->authority
                    : MHD_lookup_connection_value(handle, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST),
        .origin = MHD_lookup_connection_value(handle, MHD_HEADER_KIND, MHD_HTTP_HEADER_ORIGIN),
        .fetch_site = MHD_lookup_connection_value(handle, MHD_HEADER_KIND, "Sec-Fetch-Site"),
    };
    bool trusting = server->context.guard == NULL && request->connection->peer.known;
    /* Anybody may point to the page, which holds no data. */
    if (strcmp(request->uri, "/") != 0 &&
        http_origin_check(&origin, trusting, &refused) != STATUS_OK) {
        request_body_refuse(request_body, refused.status, 403, "%s", refused.text);
        return;
    }
    const char *authorization =
        MHD_lookup_connection_value(handle, MHD_HEADER_KIND, MHD_HTTP_HEADER_AUTHORIZATION);
    http_route_find(method, request->uri, &request->match);
    http_route_admit(&server->context, request->match.route, request->uri, authorization,
                     &request->admission);
    /* Who needs no token has shown none, and counts as before. */
    if (request->admission.limited || server->context.guard == NULL) {
        http_connection_know(request->connection, request->admission.code != 401);
    }
    if (request->admission.code != 0) {
        request_body_refuse(request_body, request->admission.error.status, request->admission.code,
                            "%s", request->admission.error.text);
    }
}

/* Which form the body has, and which the answer may have; a form that is not taken is refused. */
static void settle_coding(struct MHD_Connection *handle, struct request *request)
{
    struct codings codings = {0};
    MHD_get_connection_values(handle, MHD_HEADER_KIND, take_coding, &codings);
    enum http_coding coding = http_coding_of(codings.value);
    request->accepts_packed = http_coding_accepted(
        MHD_lookup_connection_value(handle, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT_ENCODING));
    request->takes_packed = http_route_takes_artifact(request->match.route);
    request->packed = coding == HTTP_CODING_ZSTD;
    if (request->request_body.body_max > 0 && (codings.count > 1 || coding == HTTP_CODING_OTHER ||
                                               (request->packed && !request->takes_packed))) {
        request_body_refuse(&request->request_body, STATUS_USAGE, 415,
                            "Content-Encoding: expected %s, found \"%.64s\"%s",
                            request->takes_packed ? "zstd, identity or none" : "none",
                            codings.value != NULL ? codings.value : "",
                            codings.count > 1 ? " and another" : "");
    }
}

/* Headers are complete: decides by them. */
static enum MHD_Result begin_request(struct store_server *server, struct MHD_Connection *handle,
                                     struct request *request, const char *method,
                                     const char *version)
{
    struct request_body *request_body = &request->request_body;
    struct error refused;
    const char *length =
        MHD_lookup_connection_value(handle, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    bool chunked = MHD_lookup_connection_value(handle, MHD_HEADER_KIND,
                                               MHD_HTTP_HEADER_TRANSFER_ENCODING) != NULL;
    unsigned long long declared = length != NULL ? strtoull(length, NULL, 10) : 0;
    request->begun = true;
    if (request_body->refused) {
        return queue_refusal(handle, request, true); /* the URI is too long */
    }
    if (check_framing(handle, version, &refused) != STATUS_OK) {
        request_body_refuse(request_body, refused.status, 0, "%s", refused.text);
        return queue_refusal(handle, request, true);
    }
    admit(server, handle, request, method);
    if (request_body->refused) {
        bool crowded =
            request->connection->crowd != HTTP_CROWD_NONE || request->connection->stranger;
        return queue_refusal(handle, request, crowded || chunked || declared > 0);
    }
    request_body->body_max = http_route_body_max(request->match.route);
    settle_coding(handle, request);
    if (!request_body->refused && declared > request_body->body_max && request_body->body_max > 0) {
        request_body_refuse(request_body, STATUS_LIMIT, 0,
                            "%s %.100s: expected at most %zu bytes, found %llu", method,
                            request->uri, request_body->body_max, declared);
    }
    if (request_body->refused && !request_body_worth_reading(request_body, declared)) {
        return queue_refusal(handle, request, true);
    }
    if (!request_body->refused && server->context.store->ops->artifact_write != NULL &&
        request->takes_packed) {
        if (chunked) {
            request_body_refuse(request_body, STATUS_USAGE, 411,
                                "artifact: expected a Content-Length, found chunks");
        } else {
            request_body_stream(request_body, server->context.store, (size_t)declared,
                                request->packed);
        }
        if (request_body->refused) {
            return queue_refusal(handle, request, true);
        }
    }
    uint64_t expect = declared < LIMIT_ARTIFACT_BYTES ? declared : LIMIT_ARTIFACT_BYTES;
    http_connection_phase(request->connection, HTTP_RECEIVING,
                          allowed_ms(request, server->times.request_ms) +
                              (int64_t)(expect / HTTP_BYTES_PER_MS_MIN));
    return MHD_YES;
}

static enum MHD_Result handle_request(struct store_server *server, struct MHD_Connection *handle,
                                      struct request *request, const char *method)
{
    struct request_body *request_body = &request->request_body;
    bool stopping = atomic_load(&server->stopping);
    if (stopping && !request_body->refused) {
        request_body_refuse(request_body, STATUS_BUSY, 0, "the server is stopping, try again");
    }
    if (request_body->refused) {
        return queue_refusal(handle, request, stopping);
    }
    struct http_request complete = {
        .method = method,
        .uri = request->uri,
        .match = &request->match,
        .body = request_body->body,
        .body_bytes = request_body->body_bytes,
        .packed = request->packed,
        .accepts_packed = request->accepts_packed,
        .peer_fd = request->connection->fd,
        .grant = request->admission.limited ? &request->admission.grant : NULL,
        .socket_key = strcmp(method, "GET") == 0 ? http_socket_key(handle) : NULL,
    };
    struct http_reply reply;
    http_connection_phase(request->connection, HTTP_HANDLING, 0);
    if (request_body->writer != NULL) {
        complete.upload = request_body_release(request_body);
    }
    http_route(&server->context, &complete, &reply);
    request_body_finish(request_body); /* the body's memory is wanted elsewhere */
    return queue_reply(handle, request, &reply, atomic_load(&server->stopping));
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *handle, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_bytes, void **request_context)
{
    struct store_server *server = context;
    struct request *request = *request_context;
    (void)url;
    if (request == NULL) {
        return MHD_NO; /* no memory for its context */
    }
    if (!request->begun) {
        return begin_request(server, handle, request, method, version);
    }
    if (*upload_bytes > 0) {
        bool go_on = request_body_take(&request->request_body, upload, *upload_bytes);
        *upload_bytes = 0;
        return go_on ? MHD_YES : MHD_NO;
    }
    return handle_request(server, handle, request, method);
}

/* ---- starting and stopping ---- */

/* Percent-coding is resolved per path segment by the routes. */
static size_t keep_escapes(void *context, struct MHD_Connection *handle, char *text)
{
    (void)context;
    (void)handle;
    return strlen(text);
}

static void log_library(void *context, const char *format, va_list args)
    __attribute__((format(printf, 2, 0)));

static void log_library(void *context, const char *format, va_list args)
{
    const struct store_server *server = context;
    char text[512];
    vsnprintf(text, sizeof text, format, args);
    text[strcspn(text, "\n")] = '\0';
    log_event(server->logger, LOG_DEBUG, "http: %s", text);
}

/* The server's threads take no signals: they belong to the program's own threads, and a client
 * that hangs up must not raise SIGPIPE. */
static struct MHD_Daemon *start_daemon(struct store_server *server)
{
    sigset_t all;
    sigset_t before;
    unsigned flags = MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD |
                     MHD_USE_POLL | MHD_USE_ITC | MHD_USE_ERROR_LOG | MHD_ALLOW_UPGRADE;
    struct MHD_OptionItem secure[] = {
        {MHD_OPTION_HTTPS_PRIORITIES, 0, (void *)(uintptr_t)TLS_PRIORITIES},
        {MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)(uintptr_t)on_certificate},
        {MHD_OPTION_END, 0, NULL},
    };
    if (server->tls != NULL) {
        flags |= MHD_USE_TLS;
    } else {
        secure[0].option = MHD_OPTION_END;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    struct MHD_Daemon *daemon = MHD_start_daemon(
        flags, 0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, log_library, server,
        MHD_OPTION_LISTEN_SOCKET, server->listen_fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)(server->connections.server_max + CROWD_MAX), MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)(HTTP_IDLE_MS / 1000), MHD_OPTION_CONNECTION_MEMORY_LIMIT,
        (size_t)HTTP_HEADER_BYTES_MAX, MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES,
        MHD_OPTION_UNESCAPE_CALLBACK, keep_escapes, NULL, MHD_OPTION_URI_LOG_CALLBACK, on_uri,
        server, MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, server, MHD_OPTION_ARRAY, secure, MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return daemon;
}

static void destroy(struct store_server *server)
{
    http_connections_finish(&server->connections);
    http_events_stop(&server->events);
    http_events_finish(&server->events);
    http_metrics_finish(&server->metrics);
    http_readers_finish(&server->readers);
    http_ready_finish(&server->ready);
    relay_destroy(server->context.relay);
    free(server);
}

static struct http_context context_of(struct store_server *server, struct store *store,
                                      const struct store_server_options *options)
{
    return (struct http_context){
        .store = store,
        .clock = clock_system(), /* waits are real even where leases run on simulated time */
        .stopping = &server->stopping,
        .readers = &server->readers,
        .events = &server->events,
        .ready = &server->ready,
        .guard = options->guard,
        .drive = options->drive,
        .frames = options->frames,
        .scaling = options->scaling,
        .scaling_context = options->scaling_context,
        .agreement = options->agreement,
        .agreement_context = options->agreement_context,
        .asks_again = options->asks_again,
        .read_only = options->read_only,
        .planners_kept_max = options->planners_kept_max,
        .metrics = &server->metrics,
        .connections = &server->connections,
        .budget = &server->budget,
    };
}

enum status http_server_start(struct store *store, int listen_fd, const struct store_config *config,
                              const struct store_server_options *options,
                              const struct http_server_times *times, struct store_server **out,
                              struct error *error)
{
    size_t server_max =
        options->connections_max > 0 ? options->connections_max : HTTP_CONNECTIONS_MAX;
    struct store_server *server = calloc(1, sizeof *server);
    if (server == NULL) {
        close(listen_fd);
        return error_set(error, STATUS_NO_MEMORY, "out of memory for the store's server");
    }
    enum status status = http_connections_start(&server->connections, times->watch_ms,
                                                http_connections_limit(server_max, CROWD_MAX),
                                                options->peer_connections_max, error);
    if (status != STATUS_OK) {
        close(listen_fd);
        free(server);
        return status;
    }
    atomic_init(&server->stopping, false);
    http_readers_init(&server->readers);
    http_ready_init(&server->ready);
    status = http_events_start(&server->events, store, &server->readers, error);
    if (status != STATUS_OK) {
        close(listen_fd);
        http_connections_finish(&server->connections);
        http_readers_finish(&server->readers);
        http_ready_finish(&server->ready);
        free(server);
        return status;
    }
    http_metrics_init(&server->metrics);
    server->logger = config != NULL ? config->logger : NULL;
    server->times = *times;
    server->tls = options->tls;
    server->listen_fd = listen_fd;
    server->context = context_of(server, store, options);
    status = http_start_relay(&server->context, options->sessions_tenant, server->logger, error);
    if (status != STATUS_OK) {
        close(listen_fd);
        destroy(server);
        return status;
    }
    server->daemon = start_daemon(server);
    if (server->daemon == NULL) {
        int reason = errno;
        close(listen_fd);
        destroy(server);
        return error_set(error, reason == ENOMEM ? STATUS_NO_MEMORY : STATUS_IO,
                         "cannot start the store's HTTP server: %s", strerror(reason));
    }
    *out = server;
    return STATUS_OK;
}

enum status store_server_start_with(struct store *store, int listen_fd,
                                    const struct store_config *config,
                                    const struct store_server_options *options,
                                    struct store_server **out, struct error *error)
{
    return http_server_start(store, listen_fd, config, options, &usual_times, out, error);
}

enum status store_server_start(struct store *store, int listen_fd,
                               const struct store_config *config, struct store_server **out,
                               struct error *error)
{
    const struct store_server_options options = {0};
    return store_server_start_with(store, listen_fd, config, &options, out, error);
}

void store_server_stop(struct store_server *server)
{
    if (server == NULL) {
        return;
    }
    struct store *store = server->context.store;
    atomic_store(&server->stopping, true);
    http_readers_stop(&server->readers);
    http_events_stop(&server->events);
    relay_stop(server->context.relay);
    if (store->ops->reading_end != NULL) {
        store->ops->reading_end(store);
    }
    int fd = MHD_quiesce_daemon(server->daemon);
    http_connections_drain(&server->connections, server->times.drain_ms);
    MHD_stop_daemon(server->daemon);
    if (fd >= 0) {
        close(fd);
    }
    destroy(server);
}
