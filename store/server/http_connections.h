/*
 * The connections of the HTTP server: which there are, what each is doing and until when, and how
 * many come from one address. Knows nothing of HTTP; a connection is a descriptor that may be shut
 * down.
 *
 * A watchdog thread shuts down those that are idle or slower than their deadline, because the HTTP
 * library's own timeout restarts with every byte. Private to the store room.
 *
 * Invariant: every connection is on the list from its first to its last moment, and its descriptor
 * is only shut down (never closed) by others, under the list's mutex.
 */
#ifndef SWERVE_STORE_SERVER_HTTP_CONNECTIONS_H
#define SWERVE_STORE_SERVER_HTTP_CONNECTIONS_H

#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

enum http_phase { HTTP_IDLE = 0, HTTP_RECEIVING, HTTP_HANDLING, HTTP_REPLYING, HTTP_PHASE_COUNT };

/* Why a connection's requests are refused. */
enum http_crowd { HTTP_CROWD_NONE = 0, HTTP_CROWD_SERVER, HTTP_CROWD_PEER };

struct http_peer {
    uint8_t bytes[16]; /* IPv4 mapped into IPv6; IPv6: the /64 network, which is one customer's */
    bool known;        /* false: a Unix socket */
};

struct http_connection {
    struct http_connections *list;
    void *owner; /* the server; not looked at here */
    int fd;
    struct http_peer peer;
    bool stranger; /* at a Unix socket: not who may use it (store/server/unix_peer.h) */
    enum http_crowd crowd;
    enum http_phase phase; /* guarded by the list's mutex, as are those below */
    int64_t deadline_ns;   /* of the phase */
    struct http_connection *next;
    struct http_connection **link;
};

struct http_connections {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a connection went idle or closed: for a drain */
    pthread_cond_t ending;  /* for the watchdog, which every request would wake otherwise */
    struct http_connection *first;
    int64_t watch_ms;
    size_t server_max; /* beyond these, requests are refused */
    size_t peer_max;   /* 0: any number */
    size_t count;
    bool ends;
    pthread_t watchdog;
};

enum status http_connections_start(struct http_connections *list, int64_t watch_ms,
                                   size_t server_max, size_t peer_max, struct error *error);
/* Ends the watchdog. No connection may be left. */
void http_connections_finish(struct http_connections *list);

/* As many connections as the process's descriptors allow beside `spare` more, at most `wanted`. */
size_t http_connections_limit(size_t wanted, size_t spare);

/* A new connection, idle until allow_ms from now; NULL when memory runs out. */
struct http_connection *http_connection_open(struct http_connections *list, void *owner, int fd,
                                             const struct sockaddr *address, int64_t allow_ms);
void http_connection_close(struct http_connection *connection); /* accepts NULL */

/* A connection that is HANDLING has no deadline. */
void http_connection_phase(struct http_connection *connection, enum http_phase phase,
                           int64_t allow_ms);

/* Waits until no request is in progress. Connections without one are shut down, and after drain_ms
 * those whose client does not keep moving as well. */
void http_connections_drain(struct http_connections *list, int64_t drain_ms);

/* Number in each phase. */
void http_connections_count(struct http_connections *list, size_t counts[HTTP_PHASE_COUNT]);

#endif
