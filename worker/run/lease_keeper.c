/*
 * The heartbeat thread. Shared state sits behind one mutex; the store call is made without it.
 */
#include "worker/run/lease_keeper.h"

#include "base/check.h"
#include "base/units.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    LEASE_PERIOD_MS_MAX = 1000,
    LEASE_PERIOD_MS_MIN = 50,
    STUCK_STEP_MS_MAX = 2 * LEASE_PERIOD_MS_MAX,
    STUCK_EXIT_STATUS = 6, /* as for every planner error: see base/status.h */
};

struct lease_keeper {
    struct store *store;
    struct store_worker worker;
    const struct clock *clock;
    const struct logger *logger;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    bool stopping;
    int64_t expires_ns;  /* INT64_MAX: never renewed yet */
    int64_t answered_ns; /* 0: never */
    int64_t ttl_ms;
    struct store_progress progress[LIMIT_CLAIM_JOBS];
    uint32_t progress_count;
    struct lease_keeper_stop stops[LIMIT_CLAIM_JOBS];
    uint32_t stop_count;
    char watched[LIMIT_SPEC_BYTES]; /* "": nothing */
    uint64_t watches;               /* calls of lease_keeper_watch: a new one is progress */
    /* Of the keeper's thread alone: */
    int64_t stuck_limit_ms;
    uint64_t stuck_watch;
    int64_t stuck_ns;
    int64_t stuck_seen_ns;
};

static void renew_locked(struct lease_keeper *keeper, int64_t sent_ns, int64_t ttl_ms)
{
    int64_t expires_ns = sent_ns + ttl_ms * NS_PER_MS;
    keeper->ttl_ms = ttl_ms;
    if (keeper->expires_ns == INT64_MAX || expires_ns > keeper->expires_ns) {
        keeper->expires_ns = expires_ns;
    }
}

/* The list has no epochs. It is about what was reported, and of two attempts at a job first about
 * the earlier one: the later one is listed again once it is reported alone. */
static void remember_stops(struct lease_keeper *keeper, const struct store_progress *sent,
                           uint32_t sent_count, const int64_t *ids, uint32_t count)
{
    for (uint32_t i = 0; i < count && keeper->stop_count < LIMIT_CLAIM_JOBS; i++) {
        const struct store_progress *meant = NULL;
        for (uint32_t k = 0; k < sent_count; k++) {
            if (sent[k].job_id == ids[i] && (meant == NULL || sent[k].epoch < meant->epoch)) {
                meant = &sent[k];
            }
        }
        if (meant != NULL) {
            keeper->stops[keeper->stop_count++] =
                (struct lease_keeper_stop){meant->job_id, meant->epoch};
        }
    }
}

static void beat(struct lease_keeper *keeper)
{
    struct store_progress progress[LIMIT_CLAIM_JOBS];
    int64_t cancelled[LIMIT_CLAIM_JOBS];
    uint32_t cancelled_count = 0;
    int64_t ttl_ms = 0;
    struct error error;
    pthread_mutex_lock(&keeper->mutex);
    uint32_t count = keeper->progress_count;
    memcpy(progress, keeper->progress, count * sizeof *progress);
    pthread_mutex_unlock(&keeper->mutex);
    int64_t sent_ns = clock_now_ns(keeper->clock);
    enum status status =
        keeper->store->ops->heartbeat(keeper->store, &keeper->worker, progress, count, cancelled,
                                      &cancelled_count, &ttl_ms, &error);
    pthread_mutex_lock(&keeper->mutex);
    if (status == STATUS_OK) {
        keeper->answered_ns = clock_now_ns(keeper->clock);
        renew_locked(keeper, sent_ns, ttl_ms);
        remember_stops(keeper, progress, count, cancelled, cancelled_count);
    } else {
        log_event(keeper->logger, LOG_WARNING, "heartbeat: %s", error.text);
    }
    pthread_mutex_unlock(&keeper->mutex);
}

/* A process that was stopped or suspended as a whole is not stuck: one round of this thread counts
 * for two periods at most. */
static void check_stuck_locked(struct lease_keeper *keeper)
{
    int64_t now_ns = clock_now_ns(keeper->clock);
    int64_t step_ns = now_ns - keeper->stuck_seen_ns;
    keeper->stuck_seen_ns = now_ns;
    if (keeper->watched[0] == '\0' || keeper->watches != keeper->stuck_watch) {
        keeper->stuck_watch = keeper->watches;
        keeper->stuck_ns = 0;
        return;
    }
    keeper->stuck_ns +=
        step_ns < STUCK_STEP_MS_MAX * NS_PER_MS ? step_ns : STUCK_STEP_MS_MAX * NS_PER_MS;
    if (keeper->stuck_ns > keeper->stuck_limit_ms * NS_PER_MS) {
        log_event(
            keeper->logger, LOG_ERROR,
            "planner %s has not returned for %.1f s: this worker ends; its jobs are run again",
            keeper->watched, (double)keeper->stuck_ns / (double)NS_PER_S);
        _exit(STUCK_EXIT_STATUS);
    }
}

/* Jobs that are held are reported in every round; an idle worker's lease is left alone for a third
 * of its length. After a failure, or a loss, the store is asked again in every round. */
static bool due_locked(const struct lease_keeper *keeper, int64_t period_ms)
{
    int64_t next_ns = clock_now_ns(keeper->clock) + period_ms * NS_PER_MS;
    return keeper->progress_count > 0 || keeper->expires_ns == INT64_MAX ||
           next_ns > keeper->expires_ns - keeper->ttl_ms * NS_PER_MS / 3 * 2;
}

static int64_t period_of(const struct lease_keeper *keeper)
{
    int64_t period_ms = keeper->ttl_ms / 4;
    period_ms = period_ms > LEASE_PERIOD_MS_MAX ? LEASE_PERIOD_MS_MAX : period_ms;
    period_ms = period_ms < LEASE_PERIOD_MS_MIN ? LEASE_PERIOD_MS_MIN : period_ms;
    int64_t stuck_ms = keeper->stuck_limit_ms / 4;
    return period_ms < stuck_ms ? period_ms : stuck_ms;
}

static void *keep(void *context)
{
    struct lease_keeper *keeper = context;
    pthread_mutex_lock(&keeper->mutex);
    while (!keeper->stopping) {
        if (due_locked(keeper, period_of(keeper))) {
            pthread_mutex_unlock(&keeper->mutex);
            beat(keeper);
            pthread_mutex_lock(&keeper->mutex);
        }
        check_stuck_locked(keeper);
        int64_t period_ms = period_of(keeper);
        struct timespec until = clock_moment_in(period_ms * NS_PER_MS);
        if (!keeper->stopping) {
            pthread_cond_timedwait(&keeper->wake, &keeper->mutex, &until);
        }
    }
    pthread_mutex_unlock(&keeper->mutex);
    return NULL;
}

enum status lease_keeper_start(struct store *store, const struct store_worker *worker,
                               int64_t stuck_limit_ms, const struct clock *clock,
                               const struct logger *logger, struct lease_keeper **out,
                               struct error *error)
{
    CHECK(stuck_limit_ms >= 4);
    struct lease_keeper *keeper = calloc(1, sizeof *keeper);
    TRY(memory_check(keeper, error, "lease: out of memory"));
    keeper->store = store;
    keeper->worker = *worker;
    keeper->stuck_limit_ms = stuck_limit_ms;
    keeper->stuck_seen_ns = clock_now_ns(clock);
    keeper->clock = clock;
    keeper->logger = logger;
    keeper->expires_ns = INT64_MAX;
    pthread_mutex_init(&keeper->mutex, NULL);
    clock_condition_init(&keeper->wake);
    int failure = pthread_create(&keeper->thread, NULL, keep, keeper);
    if (failure != 0) {
        pthread_cond_destroy(&keeper->wake);
        pthread_mutex_destroy(&keeper->mutex);
        free(keeper);
        return error_set(error, STATUS_IO, "lease: cannot start a thread: %s", strerror(failure));
    }
    *out = keeper;
    return STATUS_OK;
}

void lease_keeper_stop(struct lease_keeper *keeper)
{
    if (keeper == NULL) {
        return;
    }
    pthread_mutex_lock(&keeper->mutex);
    keeper->stopping = true;
    pthread_cond_signal(&keeper->wake);
    pthread_mutex_unlock(&keeper->mutex);
    pthread_join(keeper->thread, NULL);
    pthread_cond_destroy(&keeper->wake);
    pthread_mutex_destroy(&keeper->mutex);
    free(keeper);
}

void lease_keeper_report(struct lease_keeper *keeper, const struct store_progress *progress,
                         uint32_t count)
{
    CHECK(count <= LIMIT_CLAIM_JOBS);
    pthread_mutex_lock(&keeper->mutex);
    memcpy(keeper->progress, progress, count * sizeof *progress);
    keeper->progress_count = count;
    pthread_mutex_unlock(&keeper->mutex);
}

void lease_keeper_watch(struct lease_keeper *keeper, const char *planner)
{
    pthread_mutex_lock(&keeper->mutex);
    snprintf(keeper->watched, sizeof keeper->watched, "%s", planner);
    keeper->watches++;
    pthread_mutex_unlock(&keeper->mutex);
}

void lease_keeper_renewed(struct lease_keeper *keeper, int64_t sent_ns, int64_t ttl_ms)
{
    pthread_mutex_lock(&keeper->mutex);
    renew_locked(keeper, sent_ns, ttl_ms);
    pthread_mutex_unlock(&keeper->mutex);
}

bool lease_keeper_lost(struct lease_keeper *keeper)
{
    pthread_mutex_lock(&keeper->mutex);
    bool lost = clock_now_ns(keeper->clock) > keeper->expires_ns;
    if (lost) {
        keeper->expires_ns = INT64_MAX; /* told once; the next renewal starts anew */
    }
    pthread_mutex_unlock(&keeper->mutex);
    return lost;
}

int64_t lease_keeper_answered_ns(struct lease_keeper *keeper)
{
    pthread_mutex_lock(&keeper->mutex);
    int64_t answered_ns = keeper->answered_ns;
    pthread_mutex_unlock(&keeper->mutex);
    return answered_ns;
}

uint32_t lease_keeper_stopped(struct lease_keeper *keeper, struct lease_keeper_stop *stops,
                              uint32_t max)
{
    pthread_mutex_lock(&keeper->mutex);
    uint32_t count = keeper->stop_count < max ? keeper->stop_count : max;
    memcpy(stops, keeper->stops, count * sizeof *stops);
    memmove(keeper->stops, keeper->stops + count,
            (keeper->stop_count - count) * sizeof *keeper->stops);
    keeper->stop_count -= count;
    pthread_mutex_unlock(&keeper->mutex);
    return count;
}
