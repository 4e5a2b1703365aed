/*
 * A WebSocket that a client opens to a server: connected, trusted and shown a token as calls are
 * (store/client/http_transport.h), for a wire to run (base/websocket/wire.h).
 */
#ifndef SWERVE_STORE_CLIENT_HTTP_DIAL_H
#define SWERVE_STORE_CLIENT_HTTP_DIAL_H

#include "base/websocket/wire.h"

struct http_transport;
struct http_dial;

/* Opens one at a path of the server. STATUS_STORE, with the server's sentence: refused, and so
 * again; HTTP_UNREACHED, HTTP_LOST, BUSY: another time perhaps. */
enum status http_dial_open(struct http_transport *transport, const char *path,
                           struct http_dial **out, struct error *error);
void http_dial_close(struct http_dial *dial); /* accepts NULL; after the wire is destroyed */

/* Fills the connection's part of a wire's options, borrowed until it is closed. */
void http_dial_wire(struct http_dial *dial, struct wire_options *out);

#endif
