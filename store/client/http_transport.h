/*
 * HTTP transport: one request, one reply, over TCP or a Unix socket, with libcurl. Knows nothing of
 * the store; retrying is the caller's business (store/client/retry.c), but the transport says
 * whether a failed request can have been executed.
 *
 * Connections are kept alive in a pool of curl handles; a handle serves one thread at a time. A
 * network that has gone silent is noticed by the kernel (no acknowledgement, no answer to a
 * keep-alive probe), long before a slow server is given up.
 *
 * A server is trusted through the system's authorities or a file of them; it knows us by a bearer
 * token, which is sent over TLS or to this machine only, and never to a Unix socket.
 * Thread-safe. Private to the store room.
 */
#ifndef SWERVE_STORE_CLIENT_HTTP_TRANSPORT_H
#define SWERVE_STORE_CLIENT_HTTP_TRANSPORT_H

#include "base/status.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct http_transport;

struct http_call {
    const char *method;
    const char *path; /* "/v1/..", percent-coded, with the query */
    const void *body; /* NULL: none */
    size_t body_bytes;
    bool json;               /* content type of the body: JSON, else bytes */
    bool packed;             /* the body is a zstd frame (Content-Encoding) */
    bool accepts_packed;     /* so may the reply be */
    const atomic_bool *stop; /* when this is set, the call is given up (HTTP_LOST); NULL: never */
    int64_t wait_ms;         /* how long the server may hold the reply back (long polls) */
    size_t reply_max;        /* longer replies are STATUS_LIMIT */
    int64_t limit_ms;        /* for the whole call beyond wait_ms; 0: HTTP_REQUEST_MS */
    int code;                /* out: HTTP code */
    int64_t retry_ms;        /* out: the Retry-After of the reply; 0: none */
    char *reply;             /* out: malloc'ed, terminated, owned by the caller */
    size_t reply_bytes;      /* out */
    bool reply_packed;       /* out: a zstd frame */
};

/* Somebody else who carries calls: simulated networks. */
struct http_carrier {
    /* As http_transport_call. */
    enum status (*call)(void *context, struct http_call *call, struct error *error);
    void *context;
};

/* A transport over a carrier, which is copied; its context is borrowed. */
enum status http_transport_create_over(const struct http_carrier *carrier,
                                       struct http_transport **out, struct error *error);

/* url: "unix:PATH", or "http://host:port", "https://.." without a path. token_file, ca_file: NULL
 * or "" for none; not for "unix:". Reads both files, does not connect. STATUS_USAGE: a token would
 * travel in the clear beyond this machine. */
enum status http_transport_create(const char *url, const char *token_file, const char *ca_file,
                                  struct http_transport **out, struct error *error);
void http_transport_destroy(struct http_transport *transport); /* accepts NULL */

/* OK: a whole reply arrived, whatever its code. HTTP_UNREACHED, HTTP_LOST: see http_wire.h. */
enum status http_transport_call(struct http_transport *transport, struct http_call *call,
                                struct error *error);

/* ---- connections of the caller's own ---- */

enum { HTTP_AUTHORIZATION_BYTES = 576 };

/* A handle of libcurl that is connected to the server, and through TLS trusted as in calls; the
 * caller speaks there by himself (curl_easy_send) and cleans it up. `authorization` is the line
 * that shows the token, with its line's end; "": there is none. Not for "unix:". HTTP_UNREACHED,
 * STATUS_STORE as of calls. */
enum status http_transport_connect(struct http_transport *transport, void **handle,
                                   char authorization[HTTP_AUTHORIZATION_BYTES],
                                   struct error *error);
/* "host:port" of its URL. */
const char *http_transport_host(const struct http_transport *transport);

#endif
