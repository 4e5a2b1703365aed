/*
 * The HTTP server over any store: connections, bodies, limits and draining. What a request means is
 * http_routes.c's business.
 *
 * One thread per connection: a handler waits in the store for a commit or a job, so that a group
 * commit gathers all waiting clients, and a long poll starves nobody. Connections are bounded; a
 * watchdog thread shuts down those that are idle or slower than their deadline, because the HTTP
 * library's own timeout restarts with every byte. Bodies are counted as they arrive.
 *
 * Invariant: every connection is on the server's list from its first to its last moment, and its
 * descriptor is only shut down (never closed) by others, under the server's mutex.
 */
#include "store/http_server.h"

#include "store/http_routes.h"
#include "store/http_wire.h"

#include "base/check.h"
#include "base/units.h"

#include <errno.h>
#include <microhttpd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    STACK_BYTES = 1 << 20,     /* per connection, virtual */
    DESCRIPTORS_RESERVED = 96, /* left to the rest of the process */
    DISCARD_FACTOR = 4,        /* larger refused bodies are cut off instead of read */
};

static const struct http_server_times usual_times = {
    .idle_ms = HTTP_IDLE_MS,
    .request_ms = HTTP_REQUEST_MS,
    .watch_ms = 500,
    .drain_ms = 5000,
};

enum phase { PHASE_IDLE = 0, PHASE_RECEIVING, PHASE_HANDLING, PHASE_REPLYING };

struct connection {
    struct store_server *server;
    int fd;
    enum phase phase;    /* guarded by the server's mutex, as are the two below */
    int64_t deadline_ns; /* of the phase */
    struct connection *next;
    struct connection **link;
};

struct request {
    char uri[HTTP_URI_BYTES_MAX];
    bool begun;   /* headers are complete */
    bool refused; /* `error` answers it; the body is discarded */
    struct error error;
    size_t body_max;
    size_t received_bytes;
    char *body;
    size_t body_bytes;
    size_t body_capacity; /* counted in the server's buffered_bytes */
    struct connection *connection;
};

struct store_server {
    struct http_context context;
    struct http_server_times times;
    struct http_gate gate;
    const struct logger *logger;
    struct MHD_Daemon *daemon;
    int listen_fd;
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a connection went idle or closed, or the watchdog shall end */
    struct connection *connections;
    size_t buffered_bytes;
    bool watch_ends;
    pthread_t watchdog;
};

/* ---- connections ---- */

static int64_t now_ns(void)
{
    return clock_now_ns(clock_system());
}

static void set_phase(struct connection *connection, enum phase phase, int64_t allow_ms)
{
    struct store_server *server = connection->server;
    pthread_mutex_lock(&server->mutex);
    connection->phase = phase;
    connection->deadline_ns = now_ns() + allow_ms * NS_PER_MS;
    if (phase == PHASE_IDLE) {
        pthread_cond_broadcast(&server->changed);
    }
    pthread_mutex_unlock(&server->mutex);
}

static void on_connection(void *context, struct MHD_Connection *handle, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct store_server *server = context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CONNECTION_FD);
        struct connection *connection = calloc(1, sizeof *connection);
        *socket_context = connection;
        if (connection == NULL) {
            return; /* its requests find no context and are refused */
        }
        connection->server = server;
        connection->fd = info->connect_fd;
        connection->deadline_ns = now_ns() + server->times.request_ms * NS_PER_MS;
        pthread_mutex_lock(&server->mutex);
        connection->next = server->connections;
        connection->link = &server->connections;
        if (connection->next != NULL) {
            connection->next->link = &connection->next;
        }
        server->connections = connection;
        pthread_mutex_unlock(&server->mutex);
        return;
    }
    struct connection *connection = *socket_context;
    if (connection != NULL) {
        pthread_mutex_lock(&server->mutex);
        *connection->link = connection->next;
        if (connection->next != NULL) {
            connection->next->link = connection->link;
        }
        pthread_cond_broadcast(&server->changed);
        pthread_mutex_unlock(&server->mutex);
        free(connection);
        *socket_context = NULL;
    }
}

/* With the mutex held: ends the connections that the caller's rule names. */
static size_t shut_connections(struct store_server *server,
                               bool (*rule)(const struct connection *, int64_t time_ns))
{
    int64_t time_ns = now_ns();
    size_t left = 0;
    for (struct connection *each = server->connections; each != NULL; each = each->next) {
        if (rule(each, time_ns)) {
            shutdown(each->fd, SHUT_RDWR);
        } else {
            left++;
        }
    }
    return left;
}

static bool rule_late(const struct connection *connection, int64_t time_ns)
{
    return connection->phase != PHASE_HANDLING && time_ns > connection->deadline_ns;
}

static bool rule_idle(const struct connection *connection, int64_t time_ns)
{
    (void)time_ns;
    return connection->phase == PHASE_IDLE;
}

static bool rule_unhandled(const struct connection *connection, int64_t time_ns)
{
    (void)time_ns;
    return connection->phase != PHASE_HANDLING;
}

/* Waits on the server's condition for at most the watch time, mutex held. */
static void wait_changed(struct store_server *server)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t ns = until.tv_nsec + server->times.watch_ms * NS_PER_MS;
    until.tv_sec += ns / NS_PER_S;
    until.tv_nsec = ns % NS_PER_S;
    pthread_cond_timedwait(&server->changed, &server->mutex, &until);
}

static void *watch(void *context)
{
    struct store_server *server = context;
    pthread_mutex_lock(&server->mutex);
    int64_t next_ns = 0;
    while (!server->watch_ends) {
        if (now_ns() >= next_ns) {
            shut_connections(server, rule_late);
            next_ns = now_ns() + server->times.watch_ms * NS_PER_MS;
        }
        wait_changed(server);
    }
    pthread_mutex_unlock(&server->mutex);
    return NULL;
}

/* ---- requests ---- */

/* A request line has arrived. The result becomes the request's context. */
static void *on_uri(void *context, const char *uri, struct MHD_Connection *handle)
{
    (void)context;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(handle, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    struct connection *connection = info != NULL ? info->socket_context : NULL;
    struct request *request = connection != NULL ? calloc(1, sizeof *request) : NULL;
    if (request == NULL) {
        return NULL;
    }
    request->connection = connection;
    if (strlen(uri) < sizeof request->uri) {
        strcpy(request->uri, uri);
    } else {
        request->refused = true;
        error_set(&request->error, STATUS_LIMIT, "URI: expected at most %zu bytes",
                  sizeof request->uri - 1);
    }
    set_phase(connection, PHASE_RECEIVING, connection->server->times.request_ms);
    return request;
}

static void release_body(struct request *request)
{
    struct store_server *server = request->connection->server;
    pthread_mutex_lock(&server->mutex);
    server->buffered_bytes -= request->body_capacity;
    pthread_mutex_unlock(&server->mutex);
    free(request->body);
    request->body = NULL;
    request->body_bytes = 0;
    request->body_capacity = 0;
}

static void on_completed(void *context, struct MHD_Connection *handle, void **request_context,
                         enum MHD_RequestTerminationCode code)
{
    (void)context;
    (void)handle;
    (void)code;
    struct request *request = *request_context;
    if (request != NULL) {
        struct connection *connection = request->connection;
        release_body(request);
        free(request);
        *request_context = NULL;
        set_phase(connection, PHASE_IDLE, connection->server->times.idle_ms);
    }
}

static enum MHD_Result queue_reply(struct MHD_Connection *handle, struct request *request,
                                   struct http_reply *reply, bool close_after)
{
    if (reply->data == NULL) {
        return MHD_NO; /* no memory even for an error: the connection ends */
    }
    struct MHD_Response *response =
        MHD_create_response_from_buffer(reply->bytes, reply->data, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(reply->data);
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                            reply->json ? "application/json" : "application/octet-stream");
    if (close_after) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    set_phase(request->connection, PHASE_REPLYING,
              request->connection->server->times.request_ms +
                  (int64_t)(reply->bytes / HTTP_BYTES_PER_MS_MIN));
    enum MHD_Result result = MHD_queue_response(handle, (unsigned)reply->code, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result queue_error(struct MHD_Connection *handle, struct request *request,
                                   bool close_after)
{
    struct http_reply reply = {0};
    http_reply_error(&reply, &request->error);
    return queue_reply(handle, request, &reply, close_after);
}

static void refuse(struct request *request, enum status status, const char *text)
{
    request->refused = true;
    error_set(&request->error, status, "%s", text);
    release_body(request);
}

struct framing {
    unsigned lengths; /* headers that say where the body ends */
    unsigned codings;
    bool plain; /* each of them is well-formed */
};

static enum MHD_Result take_framing(void *context, enum MHD_ValueKind kind, const char *key,
                                    const char *value)
{
    enum { LENGTH_DIGITS_MAX = 18 };
    struct framing *framing = context;
    (void)kind;
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

/* Where a body ends must be said once and plainly: whoever stands between a client and this server
 * may understand anything else in another way, and take the rest of the body for a request of its
 * own (RFC 9112, 6.3 and 11.2). */
static bool framing_is_plain(struct MHD_Connection *handle)
{
    struct framing framing = {.plain = true};
    MHD_get_connection_values(handle, MHD_HEADER_KIND, take_framing, &framing);
    return framing.plain && framing.lengths + framing.codings <= 1;
}

/* Headers are complete: decides by the declared length. */
static enum MHD_Result begin_request(struct MHD_Connection *handle, struct request *request,
                                     const char *method)
{
    const char *length =
        MHD_lookup_connection_value(handle, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);
    unsigned long long declared = length != NULL ? strtoull(length, NULL, 10) : 0;
    request->begun = true;
    if (!framing_is_plain(handle)) {
        refuse(request, STATUS_BAD_INPUT,
               "headers: expected one Content-Length of digits, or Transfer-Encoding: chunked");
        return queue_error(handle, request, true);
    }
    request->body_max = http_route_body_max(method, request->uri);
    if (!request->refused && declared > request->body_max && request->body_max > 0) {
        char text[LIMIT_TEXT_BYTES];
        snprintf(text, sizeof text, "%s %.100s: expected at most %zu bytes, found %llu", method,
                 request->uri, request->body_max, declared);
        refuse(request, STATUS_LIMIT, text);
        if (declared / DISCARD_FACTOR > request->body_max) {
            return queue_error(handle, request, true);
        }
    }
    uint64_t expect = declared < LIMIT_ARTIFACT_BYTES ? declared : LIMIT_ARTIFACT_BYTES;
    set_phase(request->connection, PHASE_RECEIVING,
              request->connection->server->times.request_ms +
                  (int64_t)(expect / HTTP_BYTES_PER_MS_MIN));
    return MHD_YES;
}

/* Room for `bytes` more, within what all requests may hold together. */
static enum status grow_body(struct request *request, size_t bytes)
{
    struct store_server *server = request->connection->server;
    size_t need = request->body_bytes + bytes + 1;
    if (need <= request->body_capacity) {
        return STATUS_OK;
    }
    size_t capacity = request->body_capacity * 2 > need ? request->body_capacity * 2 : need;
    size_t more = capacity - request->body_capacity;
    pthread_mutex_lock(&server->mutex);
    bool fits = more <= HTTP_BUFFERED_BYTES_MAX - server->buffered_bytes;
    server->buffered_bytes += fits ? more : 0;
    pthread_mutex_unlock(&server->mutex);
    if (!fits) {
        return STATUS_BUSY;
    }
    char *grown = realloc(request->body, capacity);
    if (grown == NULL) {
        pthread_mutex_lock(&server->mutex);
        server->buffered_bytes -= more;
        pthread_mutex_unlock(&server->mutex);
        return STATUS_NO_MEMORY;
    }
    request->body = grown;
    request->body_capacity = capacity;
    return STATUS_OK;
}

/* Takes a piece of the body; a refused one is read and dropped, so that the client gets to see the
 * answer, but not without end. */
static enum MHD_Result receive(struct request *request, const char *data, size_t bytes)
{
    request->received_bytes += bytes;
    if (request->refused || request->body_max == 0) {
        size_t limit = request->body_max > 0 ? request->body_max : HTTP_JSON_BYTES_MAX;
        return request->received_bytes / DISCARD_FACTOR > limit ? MHD_NO : MHD_YES;
    }
    if (bytes > request->body_max - request->body_bytes) {
        refuse(request, STATUS_LIMIT, "request body: longer than this path takes");
        return MHD_YES;
    }
    enum status status = grow_body(request, bytes);
    if (status != STATUS_OK) {
        refuse(request, status, "request body: the server holds too many bodies, try again");
        return MHD_YES;
    }
    memcpy(request->body + request->body_bytes, data, bytes);
    request->body_bytes += bytes;
    return MHD_YES;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *handle, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_bytes, void **request_context)
{
    struct store_server *server = context;
    struct request *request = *request_context;
    (void)url;
    (void)version;
    if (request == NULL) {
        return MHD_NO; /* no memory for its context */
    }
    if (!request->begun) {
        return begin_request(handle, request, method);
    }
    if (*upload_bytes > 0) {
        enum MHD_Result result = receive(request, upload, *upload_bytes);
        *upload_bytes = 0;
        return result;
    }
    bool stopping = http_gate_stopping(&server->gate);
    if (stopping && !request->refused) {
        refuse(request, STATUS_BUSY, "the store is closing here; ask again");
    }
    if (request->refused) {
        return queue_error(handle, request, stopping);
    }
    struct http_request complete = {
        .method = method,
        .uri = request->uri,
        .body = request->body,
        .body_bytes = request->body_bytes,
        .peer_fd = request->connection->fd,
    };
    struct http_reply reply;
    set_phase(request->connection, PHASE_HANDLING, 0);
    http_route(&server->context, &complete, &reply);
    release_body(request);
    return queue_reply(handle, request, &reply, http_gate_stopping(&server->gate));
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

/* As many connections as the process's descriptors allow. */
static unsigned connection_limit(void)
{
    struct rlimit files = {0};
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur == RLIM_INFINITY ||
        files.rlim_cur >= HTTP_CONNECTIONS_MAX + DESCRIPTORS_RESERVED) {
        return HTTP_CONNECTIONS_MAX;
    }
    return files.rlim_cur > 2 * DESCRIPTORS_RESERVED
               ? (unsigned)(files.rlim_cur - DESCRIPTORS_RESERVED)
               : DESCRIPTORS_RESERVED;
}

/* The server's threads take no signals: they belong to the program's own threads, and a client
 * that hangs up must not raise SIGPIPE. */
static struct MHD_Daemon *start_daemon(struct store_server *server)
{
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL |
            MHD_USE_ITC | MHD_USE_ERROR_LOG,
        0, NULL, NULL, on_request, server, MHD_OPTION_EXTERNAL_LOGGER, log_library, server,
        MHD_OPTION_LISTEN_SOCKET, server->listen_fd, MHD_OPTION_CONNECTION_LIMIT,
        connection_limit(), MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(HTTP_IDLE_MS / 1000),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HTTP_HEADER_BYTES_MAX,
        MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES, MHD_OPTION_UNESCAPE_CALLBACK,
        keep_escapes, NULL, MHD_OPTION_URI_LOG_CALLBACK, on_uri, server,
        MHD_OPTION_NOTIFY_COMPLETED, on_completed, server, MHD_OPTION_NOTIFY_CONNECTION,
        on_connection, server, MHD_OPTION_END);
    if (daemon != NULL && pthread_create(&server->watchdog, NULL, watch, server) != 0) {
        MHD_stop_daemon(daemon);
        daemon = NULL;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return daemon;
}

static void destroy(struct store_server *server)
{
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->mutex);
    http_gate_finish(&server->gate);
    free(server);
}

enum status http_server_start(struct store *store, int listen_fd, const struct store_config *config,
                              const struct http_server_times *times, struct store_server **out,
                              struct error *error)
{
    struct store_server *server = calloc(1, sizeof *server);
    if (server == NULL) {
        close(listen_fd);
        return error_set(error, STATUS_NO_MEMORY, "out of memory for the store's server");
    }
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&server->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&server->mutex, NULL);
    http_gate_init(&server->gate);
    server->logger = config != NULL ? config->logger : NULL;
    server->times = *times;
    server->listen_fd = listen_fd;
    server->context = (struct http_context){
        .store = store,
        .clock = clock_system(), /* waits are real even where leases run on simulated time */
        .gate = &server->gate,
    };
    server->daemon = start_daemon(server);
    if (server->daemon == NULL) {
        close(listen_fd);
        destroy(server);
        return error_set(error, STATUS_IO, "cannot start the store's HTTP server: %s",
                         strerror(errno));
    }
    *out = server;
    return STATUS_OK;
}

enum status store_server_start(struct store *store, int listen_fd,
                               const struct store_config *config, struct store_server **out,
                               struct error *error)
{
    return http_server_start(store, listen_fd, config, &usual_times, out, error);
}

/* Until no request is in progress; clients that only hold the connection, or do not keep moving,
 * do not hold up the end. */
static void drain(struct store_server *server)
{
    int64_t grace_ns = now_ns() + server->times.drain_ms * NS_PER_MS;
    pthread_mutex_lock(&server->mutex);
    for (;;) {
        bool patient = now_ns() < grace_ns;
        if (shut_connections(server, patient ? rule_idle : rule_unhandled) == 0) {
            break;
        }
        wait_changed(server);
    }
    pthread_mutex_unlock(&server->mutex);
}

void store_server_stop(struct store_server *server)
{
    if (server == NULL) {
        return;
    }
    http_gate_stop(&server->gate);
    int fd = MHD_quiesce_daemon(server->daemon);
    drain(server);
    MHD_stop_daemon(server->daemon);
    if (fd >= 0) {
        close(fd);
    }
    pthread_mutex_lock(&server->mutex);
    server->watch_ends = true;
    pthread_cond_broadcast(&server->changed);
    pthread_mutex_unlock(&server->mutex);
    pthread_join(server->watchdog, NULL);
    destroy(server);
}
