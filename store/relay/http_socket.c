/*
 * Upgrades by libmicrohttpd. See http_socket.h.
 *
 * A connection that was upgraded has a thread of its own until it ends; a server waits for all of
 * them when it stops.
 *
 * With TLS the library would pass on bytes between its session and a socket of ours, through what
 * is left of the memory of the request's headers: 4 bytes at a time. So while its thread waits here
 * for the end, the wire speaks with the session itself.
 */
#include "store/relay/http_socket.h"

#include "base/websocket/handshake.h"

#include <microhttpd.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct http_socket {
    struct http_sockets *sockets;
    struct MHD_UpgradeResponseHandle *handle;
    struct http_socket_life life;
    struct wire *wire;
    struct http_socket *next;
};

void http_sockets_init(struct http_sockets *sockets, bool in_place, http_socket_accept *accept,
                       void *owner, const struct logger *logger)
{
    memset(sockets, 0, sizeof *sockets);
    sockets->in_place = in_place;
    sockets->accept = accept;
    sockets->owner = owner;
    sockets->logger = logger;
    pthread_mutex_init(&sockets->lock, NULL);
    pthread_cond_init(&sockets->ended, NULL);
}

void http_sockets_stop(struct http_sockets *sockets)
{
    pthread_mutex_lock(&sockets->lock);
    sockets->stopping = true;
    for (struct http_socket *socket = sockets->first; socket != NULL; socket = socket->next) {
        wire_stop(socket->wire, WIRE_GOES_AWAY);
    }
    while (sockets->first != NULL) {
        pthread_cond_wait(&sockets->ended, &sockets->lock);
    }
    pthread_mutex_unlock(&sockets->lock);
}

void http_sockets_finish(struct http_sockets *sockets)
{
    pthread_cond_destroy(&sockets->ended);
    pthread_mutex_destroy(&sockets->lock);
}

static void remove_socket(struct http_sockets *sockets, const struct http_socket *socket)
{
    pthread_mutex_lock(&sockets->lock);
    for (struct http_socket **at = &sockets->first; *at != NULL; at = &(*at)->next) {
        if (*at == socket) {
            *at = socket->next;
            break;
        }
    }
    pthread_cond_broadcast(&sockets->ended);
    pthread_mutex_unlock(&sockets->lock);
}

/* Ends what is left of a connection whose wire runs no more. */
static void end_socket(void *context)
{
    struct http_socket *socket = context;
    log_event(socket->sockets->logger, LOG_DEBUG, "a WebSocket has ended");
    socket->life.ended(socket->life.wire.context);
    MHD_upgrade_action(socket->handle, MHD_UPGRADE_ACTION_CLOSE);
    struct wire *wire = socket->wire;
    remove_socket(socket->sockets, socket); /* while the wire can still be told to stop */
    wire_destroy(wire);
    free(socket);
}

/* The socket, or the TLS session on it. */
static void take_connection(const struct http_sockets *sockets, struct MHD_Connection *connection,
                            MHD_socket fd, struct wire_options *out)
{
    const union MHD_ConnectionInfo *session =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    out->fd = fd;
    if (session != NULL && session->tls_session != NULL) {
        out->fd =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
        out->receive = sockets->receive;
        out->send = sockets->send;
        out->end = session->tls_session;
    }
}

/* The wire of a connection that is taken; what failed is told to the log. */
static bool make_wire(struct http_socket *socket, struct MHD_Connection *connection, void *request,
                      const char *begin, size_t begin_bytes, MHD_socket fd)
{
    struct http_sockets *sockets = socket->sockets;
    struct http_socket_life *life = &socket->life;
    struct error error;
    enum status status = sockets->accept(sockets->owner, request, life, &error);
    if (status == STATUS_OK) {
        take_connection(sockets, connection, fd, &life->wire);
        life->wire.begin = begin;
        life->wire.begin_bytes = begin_bytes;
        status = wire_create(&life->wire, &socket->wire, &error);
        if (status != STATUS_OK) {
            life->ended(life->wire.context);
        }
    }
    if (status != STATUS_OK) {
        log_event(sockets->logger, LOG_ERROR, "%s", error.text);
    }
    return status == STATUS_OK;
}

static void on_upgrade(void *context, struct MHD_Connection *connection, void *request,
                       const char *begin, size_t begin_bytes, MHD_socket fd,
                       struct MHD_UpgradeResponseHandle *handle)
{
    struct http_sockets *sockets = context;
    struct http_socket *socket = calloc(1, sizeof *socket);
    if (socket != NULL) {
        socket->sockets = sockets;
        socket->handle = handle;
    }
    if (socket == NULL || !make_wire(socket, connection, request, begin, begin_bytes, fd)) {
        MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
        free(socket);
        return;
    }
    pthread_mutex_lock(&sockets->lock);
    bool good = !sockets->stopping;
    socket->next = sockets->first;
    sockets->first = socket;
    pthread_mutex_unlock(&sockets->lock);
    socket->life.begun(socket->life.wire.context, socket->wire);
    if (good && sockets->in_place) {
        wire_run(socket->wire);
    }
    if (!good || sockets->in_place || !wire_start(socket->wire, end_socket, socket)) {
        end_socket(socket);
    }
}

const char *http_socket_key(struct MHD_Connection *connection)
{
    const char *version =
        MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-WebSocket-Version");
    const char *key = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Sec-WebSocket-Key");
    const char *to = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Upgrade");
    return to != NULL && strcasecmp(to, "websocket") == 0 && version != NULL &&
                   strcmp(version, "13") == 0
               ? key
               : NULL;
}

struct MHD_Response *http_socket_response(struct http_sockets *sockets, const char *key)
{
    char accept[HANDSHAKE_ACCEPT_BYTES];
    struct MHD_Response *response =
        handshake_accept(key, accept) ? MHD_create_response_for_upgrade(on_upgrade, sockets) : NULL;
    if (response != NULL) {
        MHD_add_response_header(response, "Upgrade", "websocket");
        MHD_add_response_header(response, "Sec-WebSocket-Accept", accept);
    }
    return response;
}
