/*
 * Parts that the files of the raw HTTP backend share: the client, and the calls of its
 * store_ops that lie in http_client_work.c and http_client_models.c. Private to these three.
 */
#ifndef SWERVE_STORE_CLIENT_HTTP_CLIENT_INTERNAL_H
#define SWERVE_STORE_CLIENT_HTTP_CLIENT_INTERNAL_H

#include "store/client/http_client.h"

#include <stdatomic.h>

struct http_client {
    struct store store; /* first */
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
enum status http_client_worker_gone(struct store *store, const char *worker_id,
                                    struct error *error);
enum status http_client_awaited(struct store *store, const struct store_worker *worker,
                                int64_t since_ms, struct store_awaited *out, struct error *error);
enum status http_client_partials(struct store *store, int64_t job_id, struct outcome *out,
                                 uint32_t max, uint32_t *count, struct error *error);

/* About versions of models, sets of goldens and tenants: http_client_models.c. */
enum status http_client_model_add(struct store *store, const struct model_version *version,
                                  struct error *error);
enum status http_client_models(struct store *store, const char *after, struct model_version *out,
                               uint32_t max, uint32_t *count, struct error *error);
enum status http_client_model_event(struct store *store, const struct model_event *event,
                                    struct model_event *done, struct error *error);
enum status http_client_model_events(struct store *store, int64_t after_id, struct model_event *out,
                                     uint32_t max, uint32_t *count, struct error *error);

enum status http_client_trust_event(struct store *store, const struct trust_event *event,
                                    struct trust_event *done, struct error *error);
enum status http_client_trust_events(struct store *store, int64_t after_id, struct trust_event *out,
                                     uint32_t max, uint32_t *count, struct error *error);
enum status http_client_golden_add(struct store *store, const struct golden_set *set,
                                   struct error *error);
enum status http_client_goldens(struct store *store, const char *after, struct golden_set *out,
                                uint32_t max, uint32_t *count, struct error *error);
enum status http_client_tenants(struct store *store, const char *after, struct tenant *out,
                                uint32_t max, uint32_t *count, struct error *error);
enum status http_client_tenant_set(struct store *store, const struct tenant *tenant,
                                   uint32_t settings, struct error *error);
enum status http_client_golden_drop(struct store *store, const char *name, struct error *error);

#endif
