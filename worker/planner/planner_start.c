/*
 * Starts of planners in threads. See planner_start.h.
 */
#include "worker/planner/planner_start.h"

#include "base/units.h"
#include "worker/planner/planner_spec.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct planner_start {
    planner_start_open *open;
    void *context;
    atomic_bool abandoned;
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t returned;
    bool has_returned;
    enum status status;
    struct error error;
};

bool planner_starts_apart(const char *text, const struct planner_config *config)
{
    struct planner_spec spec;
    struct error unused;
    bool sandbox = config->confinement != NULL && config->confinement->sandbox;
    return planner_spec_parse(text, &spec, &unused) == STATUS_OK &&
           (spec.kind == PLANNER_SPEC_EXEC || spec.kind == PLANNER_SPEC_EGODRIVER ||
            (spec.kind == PLANNER_SPEC_PLUGIN && sandbox));
}

static void *run(void *context)
{
    struct planner_start *start = context;
    struct error error = {.status = STATUS_OK};
    enum status status = start->open(start->context, &start->abandoned, &error);
    pthread_mutex_lock(&start->mutex);
    start->status = status;
    start->error = error;
    start->has_returned = true;
    pthread_cond_signal(&start->returned);
    pthread_mutex_unlock(&start->mutex);
    return NULL;
}

static void destroy(struct planner_start *start)
{
    pthread_cond_destroy(&start->returned);
    pthread_mutex_destroy(&start->mutex);
    free(start);
}

enum status planner_start_begin(planner_start_open *open, void *context, struct planner_start **out,
                                struct error *error)
{
    sigset_t all;
    sigset_t before;
    pthread_condattr_t monotonic;
    struct planner_start *start = calloc(1, sizeof *start);
    TRY(memory_check(start, error, "planner: out of memory"));
    start->open = open;
    start->context = context;
    pthread_mutex_init(&start->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&start->returned, &monotonic);
    pthread_condattr_destroy(&monotonic);
    /* Signals are for the thread that looks at what they ask for. */
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int code = pthread_create(&start->thread, NULL, run, start);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (code != 0) {
        destroy(start);
        return error_set(error, STATUS_LIMIT, "planner: no thread to start it in: %s",
                         strerror(code));
    }
    *out = start;
    return STATUS_OK;
}

bool planner_start_wait(struct planner_start *start, int64_t wait_ms)
{
    struct timespec until;
    int code = 0;
    clock_gettime(CLOCK_MONOTONIC, &until);
    int64_t until_ns = (int64_t)until.tv_sec * NS_PER_S + until.tv_nsec + wait_ms * NS_PER_MS;
    until = (struct timespec){until_ns / NS_PER_S, until_ns % NS_PER_S};
    pthread_mutex_lock(&start->mutex);
    while (!start->has_returned && wait_ms > 0 && code == 0) {
        code = pthread_cond_timedwait(&start->returned, &start->mutex, &until);
    }
    bool returned = start->has_returned;
    pthread_mutex_unlock(&start->mutex);
    return returned;
}

enum status planner_start_end(struct planner_start *start, struct error *error)
{
    atomic_store(&start->abandoned, true);
    pthread_join(start->thread, NULL);
    enum status status = start->status;
    if (status != STATUS_OK) {
        *error = start->error;
    }
    destroy(start);
    return status;
}
