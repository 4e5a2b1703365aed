/*
 * HTTP by libmicrohttpd, and what becomes a WebSocket. See session_server.h.
 */
#include "cli/session/session_server.h"

#include "base/check.h"
#include "cli/session/session_metrics.h"
#include "report/drive_json.h"
#include "store/relay/http_socket.h"
#include "store/server/http_connections.h"
#include "store/server/web/web.h"

#include <microhttpd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum {
    CONNECTIONS_MAX = 128,
    CROWD_MAX = 64,   /* connections that are only told that there are too many */
    WHOLE_MS = 10000, /* of a connection that is no session, from its begin to its end */
    WATCH_MS = 500,
    HEADER_BYTES = 16 << 10,
};

struct session_server {
    struct MHD_Daemon *daemon;
    struct http_connections connections;
    bool watches; /* the connections */
    struct talk_options talk;
    const struct logger *logger;
    char key[SESSION_KEY_BYTES];
    struct http_sockets sockets;
};

/* ---- sessions ---- */

static void begin_talk(void *context, struct wire *wire)
{
    talk_attach(context, wire_lane(wire));
}

static void end_talk(void *context)
{
    talk_destroy(context);
}

static enum status accept_talk(void *owner, void *request, struct http_socket_life *out,
                               struct error *error)
{
    const struct session_server *server = owner;
    struct talk *talk = NULL;
    (void)request;
    TRY(talk_create(&server->talk, "", &talk, error));
    *out = (struct http_socket_life){
        .wire = {.message_max = WIRE_MESSAGE_BYTES, .message = talk_message, .context = talk},
        .begun = begin_talk,
        .ended = end_talk,
    };
    return STATUS_OK;
}

/* ---- replies ---- */

static enum MHD_Result reply(struct MHD_Connection *connection, unsigned code, const char *type,
                             const void *bytes, size_t count, enum MHD_ResponseMemoryMode mode)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(count, (void *)(uintptr_t)bytes, mode);
    if (response == NULL) {
        return MHD_NO;
    }
    MHD_add_response_header(response, "Content-Type", type);
    MHD_add_response_header(response, "Content-Security-Policy", WEB_POLICY);
    MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    MHD_add_response_header(response, "Connection", "close");
    enum MHD_Result result = MHD_queue_response(connection, code, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result refuse(struct MHD_Connection *connection, unsigned code,
                              const char *sentence)
{
    return reply(connection, code, "text/plain; charset=utf-8", sentence, strlen(sentence),
                 MHD_RESPMEM_MUST_COPY);
}

static enum MHD_Result reply_file(struct MHD_Connection *connection, const char *name)
{
    static const char *const types[WEB_KIND_COUNT] = {
        [WEB_HTML] = "text/html; charset=utf-8",
        [WEB_SCRIPT] = "text/javascript; charset=utf-8",
        [WEB_STYLE] = "text/css; charset=utf-8",
    };
    const struct web_file file = web_file_find(name);
    return file.text != NULL ? reply(connection, MHD_HTTP_OK, types[file.kind], file.text,
                                     file.bytes, MHD_RESPMEM_PERSISTENT)
                             : refuse(connection, MHD_HTTP_NOT_FOUND, "there is no such page\n");
}

/* The map and the boxes of a scenario, as the page draws them. */
static enum MHD_Result reply_scenario(const struct session_server *server,
                                      struct MHD_Connection *connection)
{
    struct error error;
    struct json_text text = {0};
    const char *id = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "scenario");
    for (uint32_t i = 0; id != NULL && i < interactive_scenarios(server->talk.pool); i++) {
        const struct scenario_document *document = interactive_document(server->talk.pool, i);
        if (strcmp(document->scenario.id, id) != 0) {
            continue;
        }
        if (drive_json_begin(document, &text, &error) != STATUS_OK) {
            free(text.data);
            return refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, error.text);
        }
        return reply(connection, MHD_HTTP_OK, "application/json", text.data, text.bytes,
                     MHD_RESPMEM_MUST_FREE);
    }
    return refuse(connection, MHD_HTTP_NOT_FOUND, "?scenario=: there is no such scenario\n");
}

/* Histograms of ticks, for Prometheus. */
static enum MHD_Result reply_metrics(const struct session_server *server,
                                     struct MHD_Connection *connection)
{
    char *text = session_metrics(server->talk.pool);
    return text != NULL ? reply(connection, MHD_HTTP_OK, "text/plain; version=0.0.4; charset=utf-8",
                                text, strlen(text), MHD_RESPMEM_MUST_FREE)
                        : refuse(connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
}

/* ---- who may speak ---- */

static struct http_connection *connection_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info != NULL ? info->socket_context : NULL;
}

static void on_connection(void *context, struct MHD_Connection *handle, void **socket_context,
                          enum MHD_ConnectionNotificationCode code)
{
    struct session_server *server = context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        const union MHD_ConnectionInfo *fd =
            MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CONNECTION_FD);
        const union MHD_ConnectionInfo *address =
            MHD_get_connection_info(handle, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
        *socket_context =
            http_connection_open(&server->connections, server, fd->connect_fd,
                                 address != NULL ? address->client_addr : NULL, WHOLE_MS);
        return;
    }
    http_connection_close(*socket_context);
    *socket_context = NULL;
}

/* Digits are compared in a time that does not depend on where they differ. */
static bool has_key(const struct session_server *server, struct MHD_Connection *connection)
{
    const char *given = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "key");
    unsigned differs = given == NULL || strlen(given) != sizeof server->key - 1;
    for (size_t i = 0; !differs && i < sizeof server->key - 1; i++) {
        differs |= (unsigned char)(given[i] ^ server->key[i]);
    }
    return differs == 0;
}

/* A browser names the page that opens a WebSocket: it is to be ours. Programs name none. */
static bool is_own_page(struct MHD_Connection *connection)
{
    const char *origin = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Origin");
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host");
    static const char scheme[] = "http://";
    return origin == NULL || (host != NULL && strncmp(origin, scheme, strlen(scheme)) == 0 &&
                              strcmp(origin + strlen(scheme), host) == 0);
}

static enum MHD_Result upgrade(struct session_server *server, struct MHD_Connection *connection)
{
    const char *key = http_socket_key(connection);
    if (key != NULL && !is_own_page(connection)) {
        return refuse(connection, MHD_HTTP_FORBIDDEN, "another site's page may not drive here\n");
    }
    struct MHD_Response *response =
        key != NULL ? http_socket_response(&server->sockets, key) : NULL;
    if (response == NULL) {
        return refuse(connection, MHD_HTTP_UPGRADE_REQUIRED,
                      "expected the upgrade to a WebSocket of version 13\n");
    }
    http_connection_phase(connection_of(connection), HTTP_HANDLING, 0); /* no deadline any more */
    enum MHD_Result result = MHD_queue_response(connection, MHD_HTTP_SWITCHING_PROTOCOLS, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *url,
                                  const char *method, const char *version, const char *upload,
                                  size_t *upload_bytes, void **request)
{
    struct session_server *server = context;
    static int seen; /* marks a request whose headers alone were given so far */
    (void)version;
    (void)upload;
    if (*request == NULL) {
        *request = &seen;
        return MHD_YES;
    }
    if (*upload_bytes > 0 || strcmp(method, "GET") != 0) {
        *upload_bytes = 0;
        return refuse(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "expected GET\n");
    }
    struct http_connection *own = connection_of(connection);
    if (own == NULL || own->crowd != HTTP_CROWD_NONE) {
        return refuse(connection, MHD_HTTP_SERVICE_UNAVAILABLE, "there are too many connections\n");
    }
    bool speaks = strncmp(url, "/v1/", 4) == 0;
    if (speaks && !has_key(server, connection)) {
        return refuse(connection, MHD_HTTP_UNAUTHORIZED,
                      "expected ?key= with the key that the server printed when it began\n");
    }
    http_connection_know(own, speaks);
    if (strcmp(url, "/v1/sessions") == 0) {
        return upgrade(server, connection);
    }
    if (strcmp(url, "/v1/metrics") == 0) {
        return reply_metrics(server, connection);
    }
    if (strcmp(url, "/v1/scenario") == 0) {
        return reply_scenario(server, connection);
    }
    return reply_file(connection, strcmp(url, "/") == 0 ? "wheel.html" : url + 1);
}

/* ---- starting and stopping ---- */

static void make_key(char key[SESSION_KEY_BYTES])
{
    uint8_t random[(SESSION_KEY_BYTES - 1) / 2];
    CHECK(getrandom(random, sizeof random, 0) == (ssize_t)sizeof random);
    for (size_t i = 0; i < sizeof random; i++) {
        snprintf(key + 2 * i, 3, "%02x", random[i]);
    }
}

enum status session_server_start(int listen_fd, const struct talk_options *talk,
                                 const struct logger *logger, struct session_server **out,
                                 struct error *error)
{
    struct session_server *server = calloc(1, sizeof *server);
    sigset_t all;
    sigset_t before;
    TRY(memory_check(server, error, "sessions: out of memory"));
    server->talk = *talk;
    server->logger = logger;
    make_key(server->key);
    http_sockets_init(&server->sockets, false, accept_talk, server, logger);
    enum status status =
        http_connections_start(&server->connections, WATCH_MS, CONNECTIONS_MAX, 0, error);
    server->watches = status == STATUS_OK;
    if (status != STATUS_OK) {
        session_server_stop(server);
        return status;
    }
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    server->daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL | MHD_USE_ITC | MHD_ALLOW_UPGRADE, 0, NULL,
        NULL, on_request, server, MHD_OPTION_LISTEN_SOCKET, listen_fd, MHD_OPTION_CONNECTION_LIMIT,
        (unsigned)(CONNECTIONS_MAX + CROWD_MAX), MHD_OPTION_NOTIFY_CONNECTION, on_connection,
        server, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)HEADER_BYTES, MHD_OPTION_END);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (server->daemon == NULL) {
        session_server_stop(server);
        return error_set(error, STATUS_IO, "sessions: the server cannot be started");
    }
    *out = server;
    return STATUS_OK;
}

const char *session_server_key(const struct session_server *server)
{
    return server->key;
}

void session_server_stop(struct session_server *server)
{
    if (server == NULL) {
        return;
    }
    http_sockets_stop(&server->sockets);
    if (server->daemon != NULL) {
        MHD_stop_daemon(server->daemon);
    }
    if (server->watches) {
        http_connections_finish(&server->connections);
    }
    http_sockets_finish(&server->sockets);
    free(server);
}
