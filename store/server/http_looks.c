/*
 * Turns for looks. See http_looks.h.
 */
#include "store/server/http_looks.h"

#include "base/check.h"
#include "base/units.h"
#include "store/api/name_hash.h"

#include <errno.h>
#include <string.h>
#include <time.h>

void http_looks_init(struct http_looks *looks)
{
    memset(looks, 0, sizeof *looks);
    pthread_mutex_init(&looks->mutex, NULL);
}

void http_looks_finish(struct http_looks *looks)
{
    CHECK(looks->first == NULL && looks->running == 0);
    pthread_mutex_destroy(&looks->mutex);
}

/* ---- with the mutex held ---- */

static void grant(struct http_looks *looks, struct http_look *look)
{
    looks->running++;
    looks->shares[look->share].running++;
    looks->shares[look->share].served = ++looks->turns;
    look->granted = true;
}

static void stop_waiting(struct http_looks *looks, struct http_look *look)
{
    struct http_look **link = &looks->first;
    while (*link != look) {
        link = &(*link)->next;
    }
    *link = look->next;
    looks->shares[look->share].waiting--;
}

static bool comes_before(const struct http_looks *looks, const struct http_look *a,
                         const struct http_look *b)
{
    uint32_t running_a = looks->shares[a->share].running;
    uint32_t running_b = looks->shares[b->share].running;
    return running_a != running_b ? running_a < running_b
                                  : looks->shares[a->share].served < looks->shares[b->share].served;
}

static void give_turns(struct http_looks *looks)
{
    while (looks->running < HTTP_LOOKS_RUNNING_MAX && looks->first != NULL && !looks->stopping) {
        struct http_look *best = looks->first;
        for (struct http_look *each = best->next; each != NULL; each = each->next) {
            best = comes_before(looks, each, best) ? each : best;
        }
        stop_waiting(looks, best);
        grant(looks, best);
        pthread_cond_signal(&best->turn);
    }
}

static enum status refuse_stopping(struct error *error)
{
    return error_set(error, STATUS_BUSY, "the server is stopping, try again");
}

/* ---- waiting ---- */

static struct timespec time_in(int64_t wait_ms)
{
    struct timespec at;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &at) == 0);
    int64_t ns = at.tv_nsec + wait_ms * NS_PER_MS;
    at.tv_sec += ns / NS_PER_S;
    at.tv_nsec = ns % NS_PER_S;
    return at;
}

static void init_turn(struct http_look *look)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&look->turn, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

/* Mutex held: until the look has its turn. */
static enum status wait_for_turn(struct http_looks *looks, struct http_look *look, int64_t wait_ms,
                                 struct error *error)
{
    struct http_look **link = &looks->first;
    struct timespec until = time_in(wait_ms);
    bool late = false;
    while (*link != NULL) {
        link = &(*link)->next;
    }
    look->next = NULL;
    *link = look;
    looks->shares[look->share].waiting++;
    while (!look->granted && !looks->stopping && !late) {
        late = pthread_cond_timedwait(&look->turn, &looks->mutex, &until) == ETIMEDOUT;
    }
    if (look->granted) {
        return STATUS_OK;
    }
    stop_waiting(looks, look);
    return looks->stopping ? refuse_stopping(error)
                           : error_set(error, STATUS_BUSY,
                                       "more is asked of the server than it answers to readers: "
                                       "no turn within %lld ms, try again later",
                                       (long long)wait_ms);
}

enum status http_looks_enter(struct http_looks *looks, struct http_look *look, const char *token,
                             int64_t wait_ms, int *code, struct error *error)
{
    enum status status = STATUS_OK;
    uint64_t hash = name_hash(token);
    memset(look, 0, sizeof *look);
    look->share = (uint32_t)((hash ^ hash >> 32) % HTTP_LOOK_SHARES);
    init_turn(look);
    pthread_mutex_lock(&looks->mutex);
    if (looks->stopping) {
        status = refuse_stopping(error);
    } else if (looks->running < HTTP_LOOKS_RUNNING_MAX) {
        grant(looks, look); /* nobody waits */
    } else if (looks->shares[look->share].waiting >= HTTP_LOOKS_WAITING_MAX) {
        *code = 429;
        status = error_set(error, STATUS_BUSY,
                           "%d questions with this token wait already, try again later",
                           HTTP_LOOKS_WAITING_MAX);
    } else {
        status = wait_for_turn(looks, look, wait_ms, error);
    }
    pthread_mutex_unlock(&looks->mutex);
    if (status != STATUS_OK) {
        pthread_cond_destroy(&look->turn);
    }
    return status;
}

void http_looks_leave(struct http_looks *looks, struct http_look *look)
{
    pthread_mutex_lock(&looks->mutex);
    looks->running--;
    looks->shares[look->share].running--;
    give_turns(looks);
    pthread_mutex_unlock(&looks->mutex);
    pthread_cond_destroy(&look->turn);
}

void http_looks_stop(struct http_looks *looks)
{
    pthread_mutex_lock(&looks->mutex);
    looks->stopping = true;
    for (struct http_look *each = looks->first; each != NULL; each = each->next) {
        pthread_cond_signal(&each->turn);
    }
    pthread_mutex_unlock(&looks->mutex);
}
