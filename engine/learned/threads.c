/*
 * The pool, see threads.h. One 64-bit word holds the number of the run and how many of its chunks
 * nobody has taken; a chunk is taken by lowering it with compare-and-swap. A thread that comes late
 * finds another run's number and takes nothing of the old one, so the caller only waits for chunks
 * that were taken, never for a thread that the machine has put aside.
 *
 * Waiting spins for some microseconds, because a tick is hundreds of short runs, then sleeps.
 */
#include "engine/learned/threads.h"

#include "base/check.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SPINS = 4000 };

struct threads {
    uint32_t count;
    uint32_t started;
    pthread_t ids[THREADS_MAX];

    /* The run, written before `state` is; stable while one of its chunks is not done. */
    void (*work)(void *context, uint32_t first, uint32_t end);
    void *context;
    uint32_t items;
    uint32_t chunk;
    uint32_t chunks;

    _Atomic uint64_t state; /* run << 32 | chunks not taken */
    _Atomic uint32_t done;  /* chunks */
    _Atomic uint32_t sleepers;
    _Atomic bool stop;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
};

static void pause_briefly(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* Takes and does one chunk of the current run; false when there is none. */
static bool do_chunk(struct threads *t)
{
    uint64_t state = atomic_load_explicit(&t->state, memory_order_acquire);
    do {
        if ((uint32_t)state == 0) {
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&t->state, &state, state - 1,
                                                    memory_order_acquire, memory_order_acquire));
    uint32_t first = (t->chunks - (uint32_t)state) * t->chunk;
    uint32_t end = t->items - first > t->chunk ? first + t->chunk : t->items;
    t->work(t->context, first, end);
    atomic_fetch_add_explicit(&t->done, 1, memory_order_release);
    return true;
}

static void sleep_until_work(struct threads *t)
{
    pthread_mutex_lock(&t->mutex);
    atomic_fetch_add(&t->sleepers, 1);
    while ((uint32_t)atomic_load(&t->state) == 0 && !atomic_load(&t->stop)) {
        pthread_cond_wait(&t->wake, &t->mutex);
    }
    atomic_fetch_sub(&t->sleepers, 1);
    pthread_mutex_unlock(&t->mutex);
}

static void *worker(void *argument)
{
    struct threads *t = argument;
    while (!atomic_load(&t->stop)) {
        uint32_t spins = 0;
        while (!do_chunk(t) && spins < SPINS) {
            pause_briefly();
            spins++;
        }
        if (spins == SPINS) {
            sleep_until_work(t);
        }
    }
    return NULL;
}

static void wake_sleepers(struct threads *t)
{
    if (atomic_load(&t->sleepers) > 0) {
        pthread_mutex_lock(&t->mutex);
        pthread_cond_broadcast(&t->wake);
        pthread_mutex_unlock(&t->mutex);
    }
}

void threads_run(struct threads *t, uint32_t items, uint32_t chunk,
                 void (*work)(void *context, uint32_t first, uint32_t end), void *context)
{
    CHECK(chunk > 0);
    if (t->started == 0 || items <= chunk) {
        if (items > 0) {
            work(context, 0, items);
        }
        return;
    }
    t->work = work;
    t->context = context;
    t->items = items;
    t->chunk = chunk;
    t->chunks = (items - 1) / chunk + 1;
    atomic_store_explicit(&t->done, 0, memory_order_relaxed);
    uint64_t run = (atomic_load_explicit(&t->state, memory_order_relaxed) >> 32) + 1;
    atomic_store(&t->state, run << 32 | t->chunks);
    wake_sleepers(t);
    while (do_chunk(t)) {
    }
    for (uint32_t spins = 0; atomic_load_explicit(&t->done, memory_order_acquire) != t->chunks;
         spins++) {
        if (spins < SPINS) {
            pause_briefly();
        } else {
            sched_yield();
        }
    }
}

enum status threads_create(uint32_t count, struct threads **out, struct error *error)
{
    if (count > THREADS_MAX) {
        return error_set(error, STATUS_LIMIT, "expected at most %d threads, found %u", THREADS_MAX,
                         count);
    }
    struct threads *t = calloc(1, sizeof *t);
    TRY(memory_check(t, error, "no memory for a pool of threads"));
    t->count = count > 0 ? count : 1;
    pthread_mutex_init(&t->mutex, NULL);
    pthread_cond_init(&t->wake, NULL);
    while (t->started + 1 < t->count) {
        int reason = pthread_create(&t->ids[t->started], NULL, worker, t);
        if (reason != 0) {
            threads_destroy(t);
            return error_set(error, STATUS_IO, "cannot start a thread: %s", strerror(reason));
        }
        t->started++;
    }
    *out = t;
    return STATUS_OK;
}

void threads_destroy(struct threads *t)
{
    if (t == NULL) {
        return;
    }
    pthread_mutex_lock(&t->mutex);
    atomic_store(&t->stop, true);
    pthread_cond_broadcast(&t->wake);
    pthread_mutex_unlock(&t->mutex);
    for (uint32_t i = 0; i < t->started; i++) {
        pthread_join(t->ids[i], NULL);
    }
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->mutex);
    free(t);
}

uint32_t threads_count(const struct threads *t)
{
    return t->count;
}
