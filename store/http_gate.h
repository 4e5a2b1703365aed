/*
 * The gate for claims: a claim whose client has given up (connection lost, worker declared dead)
 * must not take effect after somebody has looked at what that worker holds, or its jobs would be
 * leased to a worker that does not know of them.
 *
 * Every claim of a client carries a rising sequence number. A fence cancels the claims up to a
 * number, waits for those that are inside the store, and refuses the late ones. Thread-safe.
 * Private to the store room.
 */
#ifndef SWERVE_STORE_HTTP_GATE_H
#define SWERVE_STORE_HTTP_GATE_H

#include "schemas/limits.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum { HTTP_FENCES_MAX = 1024 };

/* Fences the claims that are in progress and remembers nothing. */
#define HTTP_FENCE_PRESENT INT64_MAX

/* One claim in progress; lives on the stack of the thread that serves it. */
struct http_gate_claim {
    const char *worker_id; /* shorter than LIMIT_ID_BYTES */
    int64_t sequence;      /* > 0 */
    bool running;          /* inside the store */
    bool cancelled;        /* must not enter the store again */
    struct http_gate_claim *next;
};

struct http_gate {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct http_gate_claim *claims;
    /* The oldest fence gives way: by then its client's requests have long timed out. */
    struct {
        char worker_id[LIMIT_ID_BYTES];
        int64_t sequence; /* claims up to this one are refused; 0: free */
    } fences[HTTP_FENCES_MAX];
    uint32_t fence_next;
    bool stopping;
};

void http_gate_init(struct http_gate *gate);
void http_gate_finish(struct http_gate *gate);

/* From here on, waiting claims end with what they have. */
void http_gate_stop(struct http_gate *gate);
bool http_gate_stopping(struct http_gate *gate);

/* begin; then enter and leave around each call of the store; end. begin false: fenced, the claim
 * was not taken up. enter false: cancelled meanwhile. */
bool http_gate_begin(struct http_gate *gate, struct http_gate_claim *claim);
bool http_gate_enter(struct http_gate *gate, struct http_gate_claim *claim);
void http_gate_leave(struct http_gate *gate, struct http_gate_claim *claim);
void http_gate_end(struct http_gate *gate, struct http_gate_claim *claim);
bool http_gate_cancelled(struct http_gate *gate, const struct http_gate_claim *claim);

/* On return no claim of the worker up to `sequence` is inside the store or will be. */
void http_gate_fence(struct http_gate *gate, const char *worker_id, int64_t sequence);

#endif
