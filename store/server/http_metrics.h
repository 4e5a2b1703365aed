/*
 * Counters of a server, and their text for a Prometheus scraper: the exposition format 0.0.4
 * (https://prometheus.io/docs/instrumenting/exposition_formats/).
 *
 * Labels take their values from fixed tables (routes, codes, phases, states) or from bounded ones
 * (STORE_STATS_POOLS_MAX pools, HTTP_METRICS_LEDGER_MAX ledger rows, rows of agreement), so that
 * clients cannot make the number of series grow. What the store counts is asked for at most every
 * ten seconds, and seldom enough that asking takes less than a hundredth of the time. Thread-safe.
 * Private to the store room.
 */
#ifndef SWERVE_STORE_SERVER_HTTP_METRICS_H
#define SWERVE_STORE_SERVER_HTTP_METRICS_H

#include "store/api/store.h"
#include "store/server/http_connections.h"
#include "store/server/request_body.h"

#include <jansson.h>
#include <stdatomic.h>

enum {
    HTTP_METRICS_ROUTES_MAX = 64,
    HTTP_METRICS_CODES = 17,
    HTTP_METRICS_BUCKETS = 10,
    HTTP_METRICS_LEDGER_MAX = 1024,
    HTTP_METRICS_TENANTS_MAX = 256, /* the first by name */
};

struct http_metrics {
    /* By route; the last one stands for requests that have none. */
    struct {
        atomic_uint_least64_t codes[HTTP_METRICS_CODES];
        atomic_uint_least64_t buckets[HTTP_METRICS_BUCKETS];
        atomic_uint_least64_t ns;
    } routes[HTTP_METRICS_ROUTES_MAX + 1];
    pthread_mutex_t mutex; /* guards what follows */
    char *store_text;      /* what the store said last */
    int64_t store_text_until_ns;
};

void http_metrics_init(struct http_metrics *metrics);
void http_metrics_finish(struct http_metrics *metrics);

/* A request is about to be answered: route index (HTTP_METRICS_ROUTES_MAX: none) and code. */
void http_metrics_count(struct http_metrics *metrics, size_t route, int code);
/* It has been: the time from its first line to the answer's last byte. */
void http_metrics_time(struct http_metrics *metrics, size_t route, int64_t ns);

/* The whole text, malloc'ed, owned by the caller. `agreement`: what /v1/agreement answers; NULL:
 * not known. `relay`: relay_figures(); NULL: none are relayed. */
enum status http_metrics_text(struct http_metrics *metrics, struct store *store,
                              struct http_connections *connections,
                              const struct http_budget *budget, const json_t *agreement,
                              const json_t *relay, char **text, size_t *bytes, struct error *error);

#endif
