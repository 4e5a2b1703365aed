/*
 * Looks: requests of those who only look, and how many of them are answered at one time. What
 * workers and submitters ask never passes here, so no number of readers holds them up.
 *
 * A look waits for its turn. Turns go to the token with the fewest looks in progress, then to the
 * one that was longest without a turn, so that one token's crowd delays itself and not another's
 * single question. Nobody waits for longer than the limit, and of one token no more than a few
 * wait: the others are told to come again. Thread-safe. Private to the store room.
 *
 * Invariant: running <= HTTP_LOOKS_RUNNING_MAX, and a look waits only while that many run.
 */
#ifndef SWERVE_STORE_SERVER_HTTP_LOOKS_H
#define SWERVE_STORE_SERVER_HTTP_LOOKS_H

#include "base/status.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    HTTP_LOOKS_RUNNING_MAX = 4,
    HTTP_LOOKS_WAITING_MAX = 256, /* of one token */
    HTTP_LOOK_WAIT_MS = 5000,
    HTTP_LOOK_SHARES = 1024, /* tokens are told apart by a hash of this many values */
};

/* One look in progress or waiting; lives on the stack of the thread that serves it. */
struct http_look {
    uint32_t share;
    bool granted;
    pthread_cond_t turn;
    struct http_look *next; /* that waits, in order of arrival */
};

struct http_looks {
    pthread_mutex_t mutex;
    struct http_look *first; /* that waits */
    uint32_t running;
    uint64_t turns; /* given so far */
    bool stopping;
    struct {
        uint32_t running;
        uint32_t waiting;
        uint64_t served; /* its last turn */
    } shares[HTTP_LOOK_SHARES];
};

void http_looks_init(struct http_looks *looks);
void http_looks_finish(struct http_looks *looks);

/* Waits for a turn of this token ("": no tokens are asked for). BUSY: none came within wait_ms, the
 * server is stopping, or (*code = 429) the token has too many looks that wait. On OK, leave. */
enum status http_looks_enter(struct http_looks *looks, struct http_look *look, const char *token,
                             int64_t wait_ms, int *code, struct error *error);
void http_looks_leave(struct http_looks *looks, struct http_look *look);

/* From here on nobody gets a turn; those that wait are told now. */
void http_looks_stop(struct http_looks *looks);

#endif
