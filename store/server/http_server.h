/*
 * The HTTP server with times of the caller's choosing, for tests; users call store_server_start.
 * Private to the store room.
 */
#ifndef SWERVE_STORE_SERVER_HTTP_SERVER_H
#define SWERVE_STORE_SERVER_HTTP_SERVER_H

#include "store/server/server.h"

struct http_server_times {
    int64_t idle_ms;    /* a connection without a request */
    int64_t unknown_ms; /* most of these two for a peer that has not shown that it may ask */
    int64_t request_ms; /* to send a request, or to take a reply, besides its bytes */
    int64_t watch_ms;   /* how often connections are looked at */
    int64_t drain_ms;   /* how long a stop waits for clients that send or take bytes */
};

enum status http_server_start(struct store *store, int listen_fd, const struct store_config *config,
                              const struct store_server_options *options,
                              const struct http_server_times *times, struct store_server **out,
                              struct error *error);

#endif
