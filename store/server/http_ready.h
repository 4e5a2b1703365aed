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
    /* For which a write that failed counts: without clients nobody would try the next one. */
    HTTP_READY_UNWRITTEN_MS = 10000,
};

struct http_ready {
    pthread_mutex_t mutex;
    bool asking;
    bool heard; /* `last` is an answer */
    int64_t asked_ns;
    int64_t heard_ns;
    struct error last;        /* OK: it reads and its writer answers */
    struct error unwritten;   /* the last write that failed; OK: none did */
    const char *unwritten_by; /* what it was of */
    int64_t unwritten_ns;
};

void http_ready_init(struct http_ready *ready);
void http_ready_finish(struct http_ready *ready);

/* Tells of a call that writes: IO, the disk is full or fails; OK ends what a failed call of the
 * same kind began. `by` names the kind, by its address. */
void http_ready_wrote(struct http_ready *ready, const char *by, const struct error *result);

/* STATUS_OK: the store was read from and its writer answered, and no write failed,
 * lately. Else why not. */
enum status http_ready_check(struct http_ready *ready, struct store *store, struct error *error);

#endif
