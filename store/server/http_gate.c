/*
 * The gate for claims. See http_routes.h.
 */
#include "store/server/http_gate.h"

#include "store/api/name_hash.h"

#include <string.h>

void http_gate_init(struct http_gate *gate)
{
    memset(gate, 0, sizeof *gate);
    pthread_mutex_init(&gate->mutex, NULL);
    pthread_cond_init(&gate->changed, NULL);
}

void http_gate_finish(struct http_gate *gate)
{
    pthread_cond_destroy(&gate->changed);
    pthread_mutex_destroy(&gate->mutex);
}

void http_gate_stop(struct http_gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    gate->stopping = true;
    pthread_mutex_unlock(&gate->mutex);
}

bool http_gate_stopping(struct http_gate *gate)
{
    pthread_mutex_lock(&gate->mutex);
    bool stopping = gate->stopping;
    pthread_mutex_unlock(&gate->mutex);
    return stopping;
}

/* ---- claims that were delivered before; with the mutex held ---- */

static struct http_gate_run *runs_of(struct http_gate *gate, const char *worker_id)
{
    uint64_t hash = name_hash(worker_id);
    return gate->runs[(hash ^ hash >> 32) % HTTP_RUN_SETS];
}

/* Both are > 0, so that nothing overflows. */
static bool within_reach(const struct http_gate_run *run, int64_t sequence)
{
    int64_t ahead = sequence - run->highest;
    return ahead > -HTTP_RUN_REACH && ahead < HTTP_RUN_REACH;
}

/* The run that the claim belongs to, or a new one. */
static struct http_gate_run *find_run(struct http_gate *gate, const struct http_gate_claim *claim)
{
    struct http_gate_run *runs = runs_of(gate, claim->worker_id);
    struct http_gate_run *oldest = runs;
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
static bool take_number(struct http_gate *gate, const struct http_gate_claim *claim)
{
    struct http_gate_run *run = find_run(gate, claim);
    int64_t ahead = claim->sequence - run->highest;
    run->used = ++gate->claims_begun;
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

static bool is_fenced(const struct http_gate *gate, const struct http_gate_claim *claim)
{
    bool fenced = false;
    for (size_t i = 0; i < HTTP_FENCES_MAX && !fenced; i++) {
        fenced = claim->sequence <= gate->fences[i].sequence &&
                 strcmp(gate->fences[i].worker_id, claim->worker_id) == 0;
    }
    return fenced;
}

/* ---- the life of a claim ---- */

bool http_gate_begin(struct http_gate *gate, struct http_gate_claim *claim)
{
    pthread_mutex_lock(&gate->mutex);
    bool good = !is_fenced(gate, claim) && take_number(gate, claim);
    if (good) {
        claim->next = gate->claims;
        gate->claims = claim;
    }
    pthread_mutex_unlock(&gate->mutex);
    return good;
}

bool http_gate_enter(struct http_gate *gate, struct http_gate_claim *claim)
{
    pthread_mutex_lock(&gate->mutex);
    claim->running = !claim->cancelled;
    pthread_mutex_unlock(&gate->mutex);
    return claim->running;
}

bool http_gate_cancelled(struct http_gate *gate, const struct http_gate_claim *claim)
{
    pthread_mutex_lock(&gate->mutex);
    bool cancelled = claim->cancelled;
    pthread_mutex_unlock(&gate->mutex);
    return cancelled;
}

void http_gate_leave(struct http_gate *gate, struct http_gate_claim *claim)
{
    pthread_mutex_lock(&gate->mutex);
    claim->running = false;
    pthread_cond_broadcast(&gate->changed);
    pthread_mutex_unlock(&gate->mutex);
}

void http_gate_end(struct http_gate *gate, struct http_gate_claim *claim)
{
    pthread_mutex_lock(&gate->mutex);
    struct http_gate_claim **link = &gate->claims;
    while (*link != claim) {
        link = &(*link)->next;
    }
    *link = claim->next;
    pthread_mutex_unlock(&gate->mutex);
}

/* ---- fences ---- */

/* With the mutex held: is a claim that the fence forbids inside the store? Cancels all of them. */
static bool cancel_claims(struct http_gate *gate, const char *worker_id, int64_t sequence)
{
    bool running = false;
    for (struct http_gate_claim *claim = gate->claims; claim != NULL; claim = claim->next) {
        if (claim->sequence <= sequence && strcmp(claim->worker_id, worker_id) == 0) {
            claim->cancelled = true;
            running = running || claim->running;
        }
    }
    return running;
}

static void remember_fence(struct http_gate *gate, const char *worker_id, int64_t sequence)
{
    size_t slot = HTTP_FENCES_MAX;
    for (size_t i = 0; i < HTTP_FENCES_MAX; i++) {
        if (strcmp(gate->fences[i].worker_id, worker_id) == 0) {
            slot = i;
        }
    }
    if (slot == HTTP_FENCES_MAX) {
        slot = gate->fence_next++ % HTTP_FENCES_MAX;
        strcpy(gate->fences[slot].worker_id, worker_id);
        gate->fences[slot].sequence = sequence;
    } else if (gate->fences[slot].sequence < sequence) {
        gate->fences[slot].sequence = sequence;
    }
}

void http_gate_fence(struct http_gate *gate, const char *worker_id, int64_t sequence)
{
    pthread_mutex_lock(&gate->mutex);
    if (sequence != HTTP_FENCE_PRESENT) {
        remember_fence(gate, worker_id, sequence);
    }
    while (cancel_claims(gate, worker_id, sequence)) {
        pthread_cond_wait(&gate->changed, &gate->mutex);
    }
    pthread_mutex_unlock(&gate->mutex);
}
