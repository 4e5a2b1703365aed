/*
 * The gate for claims: a claim whose client has given up (connection lost, worker declared dead)
 * must not take effect after somebody has looked at what that worker holds, or its jobs would be
 * leased to a worker that does not know of them.
 *
 * Every claim of a client carries a rising sequence number. A fence cancels the claims up to a
 * number, waits for those that are inside the store, and refuses the late ones.
 *
 * A claim that something on the way delivers twice must lease once. So the claim fence remembers
 * the numbers of each worker's claims, as runs: the numbers of one client's life lie close
 * together, those of the next begin elsewhere, perhaps lower (numbers start at the machine's
 * running time, and machines boot). Within a run a number passes once, and one far behind the
 * highest not at all; a number far from all known runs begins a new one, so that nobody is locked
 * out by a predecessor. Thread-safe. Private to the store room.
 */
#ifndef SWERVE_STORE_SERVER_CLAIM_FENCE_H
#define SWERVE_STORE_SERVER_CLAIM_FENCE_H

#include "schemas/limits.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    HTTP_FENCES_MAX = 1024,
    HTTP_RUN_SETS = 1024, /* a worker's runs are all in one set */
    HTTP_RUN_WAYS = 8,
    HTTP_RUN_RECENT = 64,   /* numbers up to the highest that may still come out of order */
    HTTP_RUN_REACH = 65536, /* numbers this near belong to one run */
};

/* Fences the claims that are in progress and remembers nothing. */
#define HTTP_FENCE_PRESENT INT64_MAX

/* One claim in progress; lives on the stack of the thread that serves it. */
struct claim_fence_claim {
    const char *worker_id; /* shorter than LIMIT_ID_BYTES */
    int64_t sequence;      /* > 0 */
    bool running;          /* inside the store */
    bool cancelled;        /* must not enter the store again */
    struct claim_fence_claim *next;
};

/* Claims of one worker whose numbers lie close together. */
struct claim_fence_run {
    char worker_id[LIMIT_ID_BYTES];
    int64_t highest;
    uint64_t seen; /* bit i: highest - i was taken up */
    uint64_t used; /* when, counted in claims; 0: free */
};

struct claim_fence {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct claim_fence_claim *claims;
    /* The oldest fence gives way: by then its client's requests have long timed out. */
    struct {
        char worker_id[LIMIT_ID_BYTES];
        int64_t sequence; /* claims up to this one are refused; 0: free */
    } fences[HTTP_FENCES_MAX];
    uint32_t fence_next;
    /* Of a set, the run that was longest without a claim gives way. */
    struct claim_fence_run runs[HTTP_RUN_SETS][HTTP_RUN_WAYS];
    uint64_t claims_begun;
    bool stopping;
};

void claim_fence_init(struct claim_fence *fence);
void claim_fence_finish(struct claim_fence *fence);

/* From here on, waiting claims end with what they have. */
void claim_fence_stop(struct claim_fence *fence);
bool claim_fence_stopping(struct claim_fence *fence);

/* begin; then enter and leave around each call of the store; end. begin false: fenced, or
 * its number has been; the claim was not taken up. enter false: cancelled meanwhile. */
bool claim_fence_begin(struct claim_fence *fence, struct claim_fence_claim *claim);
bool claim_fence_enter(struct claim_fence *fence, struct claim_fence_claim *claim);
void claim_fence_leave(struct claim_fence *fence, struct claim_fence_claim *claim);
void claim_fence_end(struct claim_fence *fence, struct claim_fence_claim *claim);
bool claim_fence_cancelled(struct claim_fence *fence, const struct claim_fence_claim *claim);

/* On return no claim of the worker up to `sequence` is inside the store or will be. */
void claim_fence_epoch(struct claim_fence *fence, const char *worker_id, int64_t sequence);

#endif
