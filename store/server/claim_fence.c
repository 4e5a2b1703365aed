/*
 * The gate for claims. See http_routes.h.
 */
#include "store/server/claim_fence.h"

#include "store/api/name_hash.h"

#include <string.h>

void claim_fence_init(struct claim_fence *fence)
{
    memset(fence, 0, sizeof *fence);
    pthread_mutex_init(&fence->mutex, NULL);
    pthread_cond_init(&fence->changed, NULL);
}

void claim_fence_finish(struct claim_fence *fence)
{
    pthread_cond_destroy(&fence->changed);
    pthread_mutex_destroy(&fence->mutex);
}

void claim_fence_stop(struct claim_fence *fence)
{
    pthread_mutex_lock(&fence->mutex);
    fence->stopping = true;
    pthread_mutex_unlock(&fence->mutex);
}

bool claim_fence_stopping(struct claim_fence *fence)
{
    pthread_mutex_lock(&fence->mutex);
    bool stopping = fence->stopping;
    pthread_mutex_unlock(&fence->mutex);
    return stopping;
}

/* ---- claims that were delivered before; with the mutex held ---- */

static struct claim_fence_run *runs_of(struct claim_fence *fence, const char *worker_id)
{
    uint64_t hash = name_hash(worker_id);
    return fence->runs[(hash ^ hash >> 32) % HTTP_RUN_SETS];
}

/* Both are > 0, so that nothing overflows. */
static bool within_reach(const struct claim_fence_run *run, int64_t sequence)
{
    int64_t ahead = sequence - run->highest;
    return ahead > -HTTP_RUN_REACH && ahead < HTTP_RUN_REACH;
}

/* The run that the claim belongs to, or a new one. */
static struct claim_fence_run *find_run(struct claim_fence *fence,
                                        const struct claim_fence_claim *claim)
{
    struct claim_fence_run *runs = runs_of(fence, claim->worker_id);
    struct claim_fence_run *oldest = runs;
    for (size_t i = 0; i < HTTP_RUN_WAYS; i++) {
        if (runs[i].used > 0 && within_reach(&runs[i], claim->sequence) &&
            strcmp(runs[i].worker_id, claim->worker_id) == 0) {
            return &runs[i];
        }
        if (runs[i].used < oldest->used) {
            oldest = &runs[i];
        }
    }
    strcpy(oldest->worker_id, claim->worker_id);
    oldest->highest = claim->sequence;
    oldest->seen = 0;
    return oldest;
}

/* False: the number has been, or is too far behind to tell. */
static bool take_number(struct claim_fence *fence, const struct claim_fence_claim *claim)
{
    struct claim_fence_run *run = find_run(fence, claim);
    int64_t ahead = claim->sequence - run->highest;
    run->used = ++fence->claims_begun;
    if (ahead > 0) {
        run->seen = ahead < HTTP_RUN_RECENT ? run->seen << ahead : 0;
        run->highest = claim->sequence;
        ahead = 0;
    }
    if (ahead <= -HTTP_RUN_RECENT || (run->seen >> -ahead & 1) != 0) {
        return false;
    }
    run->seen |= UINT64_C(1) << -ahead;
    return true;
}

static bool is_fenced(const struct claim_fence *fence, const struct claim_fence_claim *claim)
{
    bool fenced = false;
    for (size_t i = 0; i < HTTP_FENCES_MAX && !fenced; i++) {
        fenced = claim->sequence <= fence->fences[i].sequence &&
                 strcmp(fence->fences[i].worker_id, claim->worker_id) == 0;
    }
    return fenced;
}

/* ---- the life of a claim ---- */

bool claim_fence_begin(struct claim_fence *fence, struct claim_fence_claim *claim)
{
    pthread_mutex_lock(&fence->mutex);
    bool good = !is_fenced(fence, claim) && take_number(fence, claim);
    if (good) {
        claim->next = fence->claims;
        fence->claims = claim;
    }
    pthread_mutex_unlock(&fence->mutex);
    return good;
}

bool claim_fence_enter(struct claim_fence *fence, struct claim_fence_claim *claim)
{
    pthread_mutex_lock(&fence->mutex);
    claim->running = !claim->cancelled;
    pthread_mutex_unlock(&fence->mutex);
    return claim->running;
}

bool claim_fence_cancelled(struct claim_fence *fence, const struct claim_fence_claim *claim)
{
    pthread_mutex_lock(&fence->mutex);
    bool cancelled = claim->cancelled;
    pthread_mutex_unlock(&fence->mutex);
    return cancelled;
}

void claim_fence_leave(struct claim_fence *fence, struct claim_fence_claim *claim)
{
    pthread_mutex_lock(&fence->mutex);
    claim->running = false;
    pthread_cond_broadcast(&fence->changed);
    pthread_mutex_unlock(&fence->mutex);
}

void claim_fence_end(struct claim_fence *fence, struct claim_fence_claim *claim)
{
    pthread_mutex_lock(&fence->mutex);
    struct claim_fence_claim **link = &fence->claims;
    while (*link != claim) {
        link = &(*link)->next;
    }
    *link = claim->next;
    pthread_mutex_unlock(&fence->mutex);
}

/* ---- fences ---- */

/* With the mutex held: is a claim that the fence forbids inside the store? Cancels all of them. */
static bool cancel_claims(struct claim_fence *fence, const char *worker_id, int64_t sequence)
{
    bool running = false;
    for (struct claim_fence_claim *claim = fence->claims; claim != NULL; claim = claim->next) {
        if (claim->sequence <= sequence && strcmp(claim->worker_id, worker_id) == 0) {
            claim->cancelled = true;
            running = running || claim->running;
        }
    }
    return running;
}

static void remember_fence(struct claim_fence *fence, const char *worker_id, int64_t sequence)
{
    size_t slot = HTTP_FENCES_MAX;
    for (size_t i = 0; i < HTTP_FENCES_MAX; i++) {
        if (strcmp(fence->fences[i].worker_id, worker_id) == 0) {
            slot = i;
        }
    }
    if (slot == HTTP_FENCES_MAX) {
        slot = fence->fence_next++ % HTTP_FENCES_MAX;
        strcpy(fence->fences[slot].worker_id, worker_id);
        fence->fences[slot].sequence = sequence;
    } else if (fence->fences[slot].sequence < sequence) {
        fence->fences[slot].sequence = sequence;
    }
}

void claim_fence_epoch(struct claim_fence *fence, const char *worker_id, int64_t sequence)
{
    pthread_mutex_lock(&fence->mutex);
    if (sequence != HTTP_FENCE_PRESENT) {
        remember_fence(fence, worker_id, sequence);
    }
    while (cancel_claims(fence, worker_id, sequence)) {
        pthread_cond_wait(&fence->changed, &fence->mutex);
    }
    pthread_mutex_unlock(&fence->mutex);
}
