/*
 * Connections of an HTTP server that become WebSockets: the upgrade, and the threads that run them
 * until they end. See base/websocket/wire.h for what passes then. Private to servers of HTTP.
 */
#ifndef SWERVE_STORE_RELAY_HTTP_SOCKET_H
#define SWERVE_STORE_RELAY_HTTP_SOCKET_H

#include "base/log.h"
#include "base/websocket/wire.h"

#include <pthread.h>

struct MHD_Connection;
struct MHD_Response;
struct http_socket;

/* Life of a connection that is upgraded. Calls are given the wire's context. */
struct http_socket_life {
    struct wire_options wire;                        /* but for its connection */
    void (*begun)(void *context, struct wire *wire); /* before it runs */
    void (*ended)(void *context);                    /* it runs no more; it is destroyed after */
};

/* Fills the life of a connection whose request has that context of the HTTP library's. A failure
 * ends the connection. */
typedef enum status http_socket_accept(void *owner, void *request, struct http_socket_life *out,
                                       struct error *error);

struct http_sockets {
    bool in_place; /* each connection has a thread already, the library's */
    http_socket_accept *accept;
    void *owner;
    const struct logger *logger;
    /* Bytes by a TLS session; NULL: there are none. To be set after http_sockets_init(). */
    ssize_t (*receive)(void *session, void *out, size_t capacity);
    ssize_t (*send)(void *session, const void *data, size_t bytes);
    pthread_mutex_t lock;
    pthread_cond_t ended;
    struct http_socket *first;
    bool stopping;
};

/* in_place: the library has a thread per connection, which runs it; wanted for TLS. */
void http_sockets_init(struct http_sockets *sockets, bool in_place, http_socket_accept *accept,
                       void *owner, const struct logger *logger);
/* Ends all and waits for them; later ones end at once. */
void http_sockets_stop(struct http_sockets *sockets);
void http_sockets_finish(struct http_sockets *sockets); /* after the stop */

/* The key of a request that asks for a WebSocket of version 13; NULL: it does not. */
const char *http_socket_key(struct MHD_Connection *connection);
/* The answer to one, of code 101. NULL: out of memory, or it is no key. The sockets outlive it. */
struct MHD_Response *http_socket_response(struct http_sockets *sockets, const char *key);

#endif
