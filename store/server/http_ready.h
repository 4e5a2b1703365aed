/*
 * Readiness: whether the store behind a server answers, for load balancers that ask often and show
 * no token. One of them asks the store, a second apart at the least; the others get what it heard.
 * Thread-safe. Private to the store room.
 */
#ifndef SWERVE_STORE_SERVER_HTTP_READY_H
#define SWERVE_STORE_SERVER_HTTP_READY_H

#include "store/api/store.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    HTTP_READY_FRESH_MS = 1000, /* as long as an answer is passed on */
    HTTP_READY_LATE_MS = 2000,  /* after which a store that is being asked does not answer */
};

struct http_ready {
    pthread_mutex_t mutex;
    bool asking;
    bool heard; /* `last` is an answer */
    int64_t asked_ns;
    int64_t heard_ns;
    struct error last; /* OK: it reads and writes */
};

void http_ready_init(struct http_ready *ready);
void http_ready_finish(struct http_ready *ready);

/* STATUS_OK: the store was read from and its writer answered, lately. Else why not. */
enum status http_ready_check(struct http_ready *ready, struct store *store, struct error *error);

#endif
