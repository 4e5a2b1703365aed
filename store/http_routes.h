/*
 * HTTP routes: from one complete request to one reply, by calling the store. Nothing here knows
 * the HTTP library, so that requests can be made up in tests.
 * Private to the store room.
 */
#ifndef SWERVE_STORE_HTTP_ROUTES_H
#define SWERVE_STORE_HTTP_ROUTES_H

#include "store/http_gate.h"
#include "store/store.h"

#include <stdbool.h>

struct http_request {
    const char *method;
    const char *uri; /* raw: path, then perhaps '?' and the query */
    const void *body;
    size_t body_bytes;
    int peer_fd; /* the connection, to see whether the client is still there; -1: unknown */
};

struct http_reply {
    int code;
    bool json;
    char *data; /* malloc'ed, owned by the caller */
    size_t bytes;
};

struct http_context {
    struct store *store;
    const struct clock *clock;
    struct http_gate *gate;
};

/* Largest body that the request's route takes; 0 where it takes none or there is no such route. */
size_t http_route_body_max(const char *method, const char *uri);

/* Never fails: an error is a reply. reply->data is NULL only when memory ran out (code 500). */
void http_route(const struct http_context *context, const struct http_request *request,
                struct http_reply *reply);

/* A reply that says the error. */
void http_reply_error(struct http_reply *reply, const struct error *error);

#endif
