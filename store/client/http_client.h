/*
 * The raw HTTP backend: a struct store whose every call is one HTTP exchange, without any retry.
 *
 * Besides the store's own statuses its functions return HTTP_UNREACHED and HTTP_LOST
 * (http_wire.h), so it is only used behind store/client/retry.c, which retries. Private to the
 * store room.
 */
#ifndef SWERVE_STORE_CLIENT_HTTP_CLIENT_H
#define SWERVE_STORE_CLIENT_HTTP_CLIENT_H

#include "store/api/store.h"
#include "store/client/http_transport.h"

/* url as in http_transport.h. Does not connect. Closed through ops->close. */
enum status http_client_open(const char *url, const struct store_config *config, struct store **out,
                             struct error *error);

/* The same over a carrier (http_transport.h). */
enum status http_client_open_over(const struct http_carrier *carrier,
                                  const struct store_config *config, struct store **out,
                                  struct error *error);

/* One exchange that shows that a store answers there. */
enum status http_client_ping(struct store *store, struct error *error);

#endif
