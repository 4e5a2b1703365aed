/*
 * Parts that the files of the raw HTTP backend share: the client, and the calls of its
 * store_ops that lie in http_client_work.c and http_client_call.c. Private to these three.
 */
#ifndef SWERVE_STORE_CLIENT_HTTP_CLIENT_INTERNAL_H
#define SWERVE_STORE_CLIENT_HTTP_CLIENT_INTERNAL_H

#include "store/api/calls.h"
#include "store/client/http_client.h"

#include <stdatomic.h>

struct http_client {
    struct store store; /* first */
    struct store_ops ops;
    struct http_transport *transport;
    const atomic_bool *stop; /* NULL: never */
};

static inline struct http_client *http_client_of(struct store *store)
{
    return (struct http_client *)store;
}

/* Functions that workers call. */
enum status http_client_heartbeat(struct store *store, const struct store_worker *worker,
                                  const struct store_progress *progress, uint32_t count,
                                  int64_t *cancelled, uint32_t *cancelled_count, int64_t *ttl_ms,
                                  struct error *error);
enum status http_client_claim(struct store *store, const struct store_worker *worker,
                              int64_t *claim_id, uint32_t max, int64_t wait_ms,
                              struct job_lease *leases, uint32_t *count, int64_t *ttl_ms,
                              struct error *error);
enum status http_client_complete(struct store *store, const struct job_completion *completions,
                                 uint32_t count, struct store_completion_result *results,
                                 struct error *error);
enum status http_client_awaited(struct store *store, const struct store_worker *worker,
                                int64_t since_ms, struct store_awaited *out, struct error *error);

/* Any call that its row describes whole: store_ops.call. */
enum status http_client_call(struct store *store, unsigned call, const void *args,
                             struct error *error);

#endif
