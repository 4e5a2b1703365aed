/*
 * A reply as a response of the HTTP library: bytes in memory, an artifact piece by piece, or events
 * for as long as the client follows them. Private to the store room.
 */
#ifndef SWERVE_STORE_SERVER_HTTP_RESPONSE_H
#define SWERVE_STORE_SERVER_HTTP_RESPONSE_H

#include "base/log.h"
#include "store/server/http_headers.h"

#include <stdint.h>

struct MHD_Connection;
struct MHD_Response;

/* Surroundings of a reply; outlives the response. */
struct http_response_site {
    const struct http_context *context;
    struct http_connection *connection;
    const struct logger *logger;
    int64_t request_ms; /* that a client has to take a piece of events */
};

/* Takes the reply's data, stream or follower over, on failure too. NULL: no memory even for an
 * error, the connection is to end. */
struct MHD_Response *http_response_make(const struct http_response_site *site,
                                        struct MHD_Connection *handle,
                                        const struct http_headers *headers,
                                        struct http_reply *reply);

#endif
