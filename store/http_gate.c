/*
 * The gate for claims. See http_routes.h.
 */
#include "store/http_gate.h"

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

bool http_gate_begin(struct http_gate *gate, struct http_gate_claim *claim)
{
    bool fenced = false;
    pthread_mutex_lock(&gate->mutex);
    for (size_t i = 0; i < HTTP_FENCES_MAX && !fenced; i++) {
        fenced = claim->sequence <= gate->fences[i].sequence &&
                 strcmp(gate->fences[i].worker_id, claim->worker_id) == 0;
    }
    if (!fenced) {
        claim->next = gate->claims;
        gate->claims = claim;
    }
    pthread_mutex_unlock(&gate->mutex);
    return !fenced;
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
