/*
 * The connections of the HTTP server: which there are, what each is doing and until when, and how
 * many come from one address. Knows nothing of HTTP; a connection is a descriptor that may be shut
 * down.
 *
 * A peer is unknown until a request of its has shown that it may ask (a token; where none are asked
 * for, any good request), and those at a Unix socket are known. Unknown ones may take a quarter of
 * the places: beyond it, and where there is no place, the address that holds the most of them loses
 * its oldest one to the newcomer. So a few addresses that say nothing crowd out each other, and
 * whoever has a token finds a place for as long as it takes to show it.
 *
 * A watchdog thread shuts down those that are idle or slower than their deadline, because the HTTP
 * library's own timeout restarts with every byte.
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

/* Connections that come from one address; lives as long as there are any. */
struct http_address {
    struct http_peer peer;
    size_t holders;            /* connections that point here */
    size_t count;              /* of these, those that are not displaced */
    size_t unknown;            /* of these */
    struct http_address *next; /* of the same bucket */
};

struct http_connection {
    struct http_connections *list;
    void *owner; /* the server; not looked at here */
    int fd;
    struct http_peer peer;
    struct http_address *address; /* NULL: a Unix socket */
    bool stranger; /* at a Unix socket: not who may use it (store/server/unix_peer.h) */
    enum http_crowd crowd;
    enum http_phase phase; /* guarded by the list's mutex, as are those below */
    bool known;            /* has shown that it may ask */
    bool displaced;        /* shut down for a newcomer, and counted no more */
    uint64_t serial;       /* order of arrival */
    int64_t deadline_ns;   /* of the phase */
    struct http_connection *next;
    struct http_connection **link;
};

enum { HTTP_ADDRESS_BUCKETS = 1024 };

struct http_connections {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* a connection went idle or closed: for a drain */
    pthread_cond_t ending;  /* for the watchdog, which every request would wake otherwise */
    struct http_connection *first;
    int64_t watch_ms;
    size_t server_max; /* beyond these, requests are refused */
    size_t peer_max;   /* 0: any number */
    size_t unknown_max;
    size_t count;   /* those that are displaced left out */
    size_t unknown; /* of these */
    uint64_t serial;
    struct http_address *addresses[HTTP_ADDRESS_BUCKETS];
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

/* Whether the peer has shown that it may ask, as its newest request says. */
void http_connection_know(struct http_connection *connection, bool known);
bool http_connection_known(struct http_connection *connection);

/* A connection that is HANDLING has no deadline. allow_ms < 0: the deadline stays. */
void http_connection_phase(struct http_connection *connection, enum http_phase phase,
                           int64_t allow_ms);

/* Waits until no request is in progress. Connections without one are shut down, and after drain_ms
 * those whose client does not keep moving as well. */
void http_connections_drain(struct http_connections *list, int64_t drain_ms);

/* Number in each phase. */
void http_connections_count(struct http_connections *list, size_t counts[HTTP_PHASE_COUNT]);

#endif
