/*
 * Retrying client: repeats calls until they are answered. See retry.h.
 */
#include "store/client/retry.h"

#include "base/check.h"
#include "base/rng.h"
#include "base/units.h"
#include "store/wire/http_wire.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BACKOFF_MS_MIN = 2, BACKOFF_MS_MAX = 250, ADOPT_PAGE = 64 };

struct held_job {
    int64_t job_id;
    int64_t epoch;
};

/* What the link knows of one worker; exists while it is needed. */
struct retry_worker {
    char worker_id[LIMIT_ID_BYTES];
    bool claiming;   /* a thread is inside a claim */
    bool unresolved; /* the answer to a claim was lost */
    bool gone;       /* declared dead here, while that thread claims */
    uint32_t users;  /* threads that wait for or are inside a claim */
    struct held_job *held;
    size_t held_count;
    size_t held_capacity;
    struct retry_worker *next;
};

struct link {
    struct store store;
    struct retry_source source;
    int64_t deadline_ms;
    pthread_mutex_t mutex; /* guards workers */
    pthread_cond_t claim_ended;
    struct retry_worker *workers;
    atomic_uint_least64_t jitter;
};

static struct link *retry_of(struct store *store)
{
    return (struct link *)store;
}

static int64_t retry_now_ns(const struct link *link)
{
    return clock_now_ns(link->source.pace != NULL ? link->source.pace->clock : clock_system());
}

/* ---- repeating ---- */

struct retry_call {
    struct link *link;
    struct store *inner;
    enum status status; /* of the last try */
    struct error error;
    uint32_t tries;
    int64_t deadline_ns; /* from the first loss */
};

static void call_begin(struct retry_call *call, struct store *store)
{
    memset(call, 0, offsetof(struct retry_call, error));
    call->link = retry_of(store);
    call->error.status = STATUS_OK;
    call->error.text[0] = '\0';
    call->tries = 0;
    call->deadline_ns = 0;
}

static bool unanswered(enum status status)
{
    return status == HTTP_LOST || status == HTTP_UNREACHED;
}

/* Full jitter below a doubling bound: a crowd that lost its owner does not come back in step. */
static void back_off(struct retry_call *call)
{
    uint32_t doublings = call->tries < 16 ? call->tries : 16;
    int64_t bound_ms = INT64_C(1) << doublings;
    bound_ms = bound_ms < BACKOFF_MS_MIN   ? BACKOFF_MS_MIN
               : bound_ms > BACKOFF_MS_MAX ? BACKOFF_MS_MAX
                                           : bound_ms;
    const struct retry_pace *pace = call->link->source.pace;
    uint64_t draw = rng_mix(atomic_fetch_add(&call->link->jitter, 1));
    int64_t wait_ns = (int64_t)(draw % (uint64_t)(bound_ms * NS_PER_MS));
    if (pace != NULL) {
        pace->pause(pace->context, wait_ns);
        return;
    }
    struct timespec wait = {.tv_sec = wait_ns / NS_PER_S, .tv_nsec = wait_ns % NS_PER_S};
    nanosleep(&wait, NULL);
}

static void give_up(struct retry_call *call)
{
    char who[LIMIT_SPEC_BYTES];
    char last[ERROR_TEXT_BYTES];
    memcpy(last, call->error.text, sizeof last);
    call->link->source.describe(call->link->source.context, who, sizeof who);
    call->status =
        error_set(&call->error, STATUS_TIMEOUT, "%.400s did not answer for %lld s: %.500s", who,
                  (long long)(call->link->deadline_ms / 1000), last);
}

/* True: try (again) on call->inner. False: call->status is final. */
static bool call_next(struct retry_call *call)
{
    struct link *link = call->link;
    bool lost = call->tries > 0;
    if (lost && !unanswered(call->status)) {
        return false;
    }
    for (;;) {
        if (lost) {
            int64_t now_ns = retry_now_ns(link);
            if (call->deadline_ns == 0) {
                call->deadline_ns = now_ns + link->deadline_ms * NS_PER_MS;
            }
            if (now_ns >= call->deadline_ns) {
                give_up(call);
                return false;
            }
            back_off(call);
        }
        call->tries++;
        call->status = link->source.locate(link->source.context, lost, &call->inner, &call->error);
        if (call->status == STATUS_OK) {
            return true;
        }
        if (!unanswered(call->status)) {
            return false;
        }
        lost = true;
    }
}

static enum status call_end(const struct retry_call *call, struct error *error)
{
    if (call->status != STATUS_OK && error != NULL) {
        *error = call->error;
        error->status = call->status;
    }
    return call->status;
}

/* ---- what workers hold ---- */

/* With the mutex held. NULL: unknown. */
static struct retry_worker *find_worker(struct link *link, const char *worker_id)
{
    struct retry_worker *worker = link->workers;
    while (worker != NULL && strcmp(worker->worker_id, worker_id) != 0) {
        worker = worker->next;
    }
    return worker;
}

static void free_worker(struct retry_worker *worker)
{
    free(worker->held);
    free(worker);
}

/* With the mutex held: forgets a worker that there is nothing to know of. */
static void prune_worker(struct link *link, struct retry_worker *worker)
{
    if (worker->users > 0 || worker->held_count > 0 || worker->unresolved) {
        return;
    }
    struct retry_worker **place = &link->workers;
    while (*place != worker) {
        place = &(*place)->next;
    }
    *place = worker->next;
    free_worker(worker);
}

/* Waits for the worker's turn to claim; NULL when memory runs out. Room for `max` more held jobs is
 * there on return, so that nothing can fail once they are leased. */
static struct retry_worker *claim_begin(struct link *link, const char *worker_id, uint32_t max)
{
    pthread_mutex_lock(&link->mutex);
    struct retry_worker *worker = find_worker(link, worker_id);
    if (worker == NULL) {
        worker = calloc(1, sizeof *worker);
        if (worker == NULL) {
            goto done;
        }
        snprintf(worker->worker_id, sizeof worker->worker_id, "%s", worker_id);
        worker->next = link->workers;
        link->workers = worker;
    }
    worker->users++;
    while (worker->claiming) {
        pthread_cond_wait(&link->claim_ended, &link->mutex);
    }
    if (worker->held_count + max > worker->held_capacity) {
        size_t capacity = 2 * (worker->held_count + max);
        struct held_job *grown = realloc(worker->held, capacity * sizeof *grown);
        if (grown == NULL) {
            worker->users--;
            prune_worker(link, worker);
            worker = NULL;
            goto done;
        }
        worker->held = grown;
        worker->held_capacity = capacity;
    }
    worker->claiming = true;
    worker->gone = false;
done:
    pthread_mutex_unlock(&link->mutex);
    return worker;
}

static void claim_end(struct link *link, struct retry_worker *worker,
                      const struct job_lease *leases, uint32_t count)
{
    pthread_mutex_lock(&link->mutex);
    for (uint32_t i = 0; i < count; i++) {
        CHECK(worker->held_count < worker->held_capacity);
        worker->held[worker->held_count++] =
            (struct held_job){.job_id = leases[i].job_id, .epoch = leases[i].epoch};
    }
    worker->claiming = false;
    worker->users--;
    prune_worker(link, worker);
    pthread_cond_broadcast(&link->claim_ended);
    pthread_mutex_unlock(&link->mutex);
}

static void drop_held(struct link *link, const struct job_completion *completion)
{
    pthread_mutex_lock(&link->mutex);
    struct retry_worker *worker = find_worker(link, completion->worker_id);
    for (size_t i = 0; worker != NULL && i < worker->held_count; i++) {
        if (worker->held[i].job_id == completion->job_id &&
            worker->held[i].epoch <= completion->epoch) {
            worker->held[i] = worker->held[--worker->held_count];
            break;
        }
    }
    if (worker != NULL) {
        prune_worker(link, worker);
    }
    pthread_mutex_unlock(&link->mutex);
}

static bool holds(struct link *link, const struct retry_worker *worker,
                  const struct job_lease *lease)
{
    bool found = false;
    pthread_mutex_lock(&link->mutex);
    for (size_t i = 0; i < worker->held_count && !found; i++) {
        found = worker->held[i].job_id == lease->job_id && worker->held[i].epoch == lease->epoch;
    }
    pthread_mutex_unlock(&link->mutex);
    return found;
}

/* Up to `max` jobs that are leased to the worker without its knowledge. Resolves the worker when
 * there are no more. */
static enum status adopt(struct retry_call *call, struct retry_worker *worker, uint32_t max,
                         struct job_lease *leases, uint32_t *count)
{
    struct store *inner = call->inner;
    enum status status = STATUS_OK;
    int64_t after_id = 0;
    uint32_t adopted = 0;
    struct job_lease *page = malloc(ADOPT_PAGE * sizeof *page);
    TRY(memory_check(page, &call->error, "out of memory for a claim"));
    for (;;) {
        uint32_t found = 0;
        status = inner->ops->worker_leases(inner, worker->worker_id, after_id, page, ADOPT_PAGE,
                                           &found, &call->error);
        if (status != STATUS_OK || found == 0) {
            break;
        }
        for (uint32_t i = 0; i < found; i++) {
            if (holds(call->link, worker, &page[i])) {
                continue;
            }
            if (adopted == max) {
                goto done; /* the rest is for the next claim */
            }
            leases[adopted++] = page[i];
        }
        after_id = page[found - 1].job_id;
    }
    if (status == STATUS_OK) {
        worker->unresolved = false;
    }
done:
    free(page);
    if (status == STATUS_OK) {
        *count = adopted;
    }
    return status;
}

static bool told_to_stop(const struct link *link)
{
    return link->source.stop != NULL && atomic_load(link->source.stop);
}

static bool declared_gone(struct link *link, const struct retry_worker *worker)
{
    pthread_mutex_lock(&link->mutex);
    bool gone = worker->gone;
    pthread_mutex_unlock(&link->mutex);
    return gone;
}

/* One try at a claim: first what an earlier one may have left, then new jobs. */
static enum status try_claim(struct retry_call *call, struct retry_worker *known,
                             const struct store_worker *worker, uint32_t max, int64_t wait_ms,
                             struct job_lease *leases, uint32_t *count, int64_t *ttl_ms)
{
    struct store *inner = call->inner;
    if (known->unresolved) {
        int64_t none;
        uint32_t none_count = 0;
        /* Renews the lease, as a claim does. */
        enum status status =
            inner->ops->heartbeat(inner, worker, NULL, 0, &none, &none_count, ttl_ms, &call->error);
        THEN(status, adopt(call, known, max, leases, count));
        if (status != STATUS_OK || *count > 0 || told_to_stop(call->link)) {
            return status;
        }
    }
    enum status status =
        inner->ops->claim(inner, worker, max, wait_ms, leases, count, ttl_ms, &call->error);
    if (status != STATUS_OK && status != HTTP_UNREACHED) {
        known->unresolved = true; /* lost, or there was no memory to read the answer */
    }
    if (status == STATUS_STALE && !declared_gone(call->link, known)) {
        /* The claim was delivered twice, and this is the answer to the one that came second. (Or
         * somebody else declared the worker dead; it is not, and goes on.) */
        return HTTP_LOST;
    }
    return status;
}

static enum status retry_claim(struct store *store, const struct store_worker *worker, uint32_t max,
                               int64_t wait_ms, struct job_lease *leases, uint32_t *count,
                               int64_t *ttl_ms, struct error *error)
{
    struct link *link = retry_of(store);
    struct retry_call call;
    uint32_t found = 0;
    int64_t ttl = 0;
    struct retry_worker *known = claim_begin(link, worker->worker_id, max);
    TRY(memory_check(known, error, "out of memory for a claim"));
    int64_t end_ns = retry_now_ns(link) + wait_ms * NS_PER_MS;
    call_begin(&call, store);
    while (call_next(&call)) {
        int64_t left_ms = (end_ns - retry_now_ns(link)) / NS_PER_MS;
        left_ms = call.tries == 1 ? wait_ms : left_ms > 0 ? left_ms : 0;
        found = 0;
        call.status = try_claim(&call, known, worker, max, left_ms, leases, &found, &ttl);
    }
    claim_end(link, known, leases, call.status == STATUS_OK ? found : 0);
    if (call.status == STATUS_OK) {
        *count = found;
        *ttl_ms = ttl;
    }
    return call_end(&call, error);
}

static enum status retry_complete(struct store *store, const struct job_completion *completions,
                                  uint32_t count, struct store_completion_result *results,
                                  struct error *error)
{
    struct retry_call call;
    call_begin(&call, store);
    while (call_next(&call)) {
        call.status =
            call.inner->ops->complete(call.inner, completions, count, results, &call.error);
    }
    for (uint32_t i = 0; call.status == STATUS_OK && i < count; i++) {
        if (completions[i].kind != COMPLETION_PARTIAL) {
            drop_held(call.link, &completions[i]);
        }
    }
    return call_end(&call, error);
}

static enum status retry_worker_gone(struct store *store, const char *worker_id,
                                     struct error *error)
{
    struct retry_call call;
    call_begin(&call, store);
    pthread_mutex_lock(&call.link->mutex);
    struct retry_worker *claiming = find_worker(call.link, worker_id);
    if (claiming != NULL) {
        claiming->gone = true;
    }
    pthread_mutex_unlock(&call.link->mutex);
    while (call_next(&call)) {
        call.status = call.inner->ops->worker_gone(call.inner, worker_id, &call.error);
    }
    if (call.status == STATUS_OK) {
        pthread_mutex_lock(&call.link->mutex);
        struct retry_worker *worker = find_worker(call.link, worker_id);
        if (worker != NULL && worker->users == 0) {
            worker->held_count = 0;
            worker->unresolved = false;
            prune_worker(call.link, worker);
        }
        pthread_mutex_unlock(&call.link->mutex);
    }
    return call_end(&call, error);
}

/* ---- the rest only repeats ---- */

#define REPEAT(store, error, operation, ...)                                                \
    do {                                                                                    \
        struct retry_call call;                                                             \
        call_begin(&call, store);                                                           \
        while (call_next(&call)) {                                                          \
            call.status = call.inner->ops->operation(call.inner, __VA_ARGS__, &call.error); \
        }                                                                                   \
        return call_end(&call, error);                                                      \
    } while (0)

static enum status retry_scenario_put(struct store *store, const char *hash, const char *body,
                                      size_t bytes, struct error *error)
{
    REPEAT(store, error, scenario_put, hash, body, bytes);
}

static enum status retry_scenario_get(struct store *store, const char *hash, char **body,
                                      size_t *bytes, struct error *error)
{
    REPEAT(store, error, scenario_get, hash, body, bytes);
}

static enum status retry_submit(struct store *store, const char *suite_id, uint32_t weight,
                                const struct job_spec *specs, uint32_t count,
                                struct store_submit_result *results, struct error *error)
{
    REPEAT(store, error, submit, suite_id, weight, specs, count, results);
}

static enum status retry_heartbeat(struct store *store, const struct store_worker *worker,
                                   const struct store_progress *progress, uint32_t count,
                                   int64_t *cancelled, uint32_t *cancelled_count, int64_t *ttl_ms,
                                   struct error *error)
{
    REPEAT(store, error, heartbeat, worker, progress, count, cancelled, cancelled_count, ttl_ms);
}

static enum status retry_worker_leases(struct store *store, const char *worker_id, int64_t after_id,
                                       struct job_lease *leases, uint32_t max, uint32_t *count,
                                       struct error *error)
{
    REPEAT(store, error, worker_leases, worker_id, after_id, leases, max, count);
}

static enum status retry_partials(struct store *store, int64_t job_id, struct outcome *out,
                                  uint32_t max, uint32_t *count, struct error *error)
{
    struct retry_call call;
    call_begin(&call, store);
    while (call_next(&call)) {
        call.status = call.inner->ops->partials(call.inner, job_id, out, max, count, &call.error);
    }
    return call_end(&call, error);
}

static enum status retry_suite_status(struct store *store, const char *suite_id,
                                      struct store_suite_status *out, struct error *error)
{
    REPEAT(store, error, suite_status, suite_id, out);
}

static enum status retry_suites(struct store *store, char (*ids)[LIMIT_ID_BYTES], uint32_t max,
                                uint32_t *count, struct error *error)
{
    REPEAT(store, error, suites, ids, max, count);
}

static enum status retry_outcomes(struct store *store, const struct store_outcome_filter *filter,
                                  struct outcome *out, uint32_t *count, struct error *error)
{
    REPEAT(store, error, outcomes, filter, out, count);
}

static enum status retry_job(struct store *store, int64_t job_id, struct store_job *out,
                             struct error *error)
{
    REPEAT(store, error, job, job_id, out);
}

static enum status retry_dead_jobs(struct store *store, const char *suite_id, int64_t after_id,
                                   struct store_job *out, uint32_t max, uint32_t *count,
                                   struct error *error)
{
    REPEAT(store, error, dead_jobs, suite_id, after_id, out, max, count);
}

static enum status retry_ledger(struct store *store, const char *suite_id,
                                struct store_ledger_row *rows, uint32_t max, uint32_t *count,
                                struct error *error)
{
    REPEAT(store, error, ledger, suite_id, rows, max, count);
}

static enum status retry_price_set(struct store *store, const char *pool, const char *device,
                                   int64_t price_uusd_per_hour, struct error *error)
{
    REPEAT(store, error, price_set, pool, device, price_uusd_per_hour);
}

static enum status retry_price_get(struct store *store, const char *pool, const char *device,
                                   int64_t *price_uusd_per_hour, struct error *error)
{
    REPEAT(store, error, price_get, pool, device, price_uusd_per_hour);
}

static enum status retry_commits_lost(struct store *store, int64_t *count, struct error *error)
{
    REPEAT(store, error, commits_lost, count);
}

static enum status retry_cancel(struct store *store, const char *suite_id, int64_t *count,
                                struct error *error)
{
    REPEAT(store, error, cancel, suite_id, count);
}

static enum status retry_artifact_put(struct store *store, const void *data, size_t bytes,
                                      char hash[SHA256_HEX_BYTES], struct error *error)
{
    REPEAT(store, error, artifact_put, data, bytes, hash);
}

static enum status retry_artifact_get(struct store *store, const char *hash, void **data,
                                      size_t *bytes, struct error *error)
{
    REPEAT(store, error, artifact_get, hash, data, bytes);
}

/* ---- life ---- */

static void retry_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    struct link *link = retry_of(store);
    link->source.close(link->source.context);
    while (link->workers != NULL) {
        struct retry_worker *worker = link->workers;
        link->workers = worker->next;
        free_worker(worker);
    }
    pthread_cond_destroy(&link->claim_ended);
    pthread_mutex_destroy(&link->mutex);
    free(link);
}

static const struct store_ops retry_ops = {
    .name = "shared",
    .close = retry_close,
    .scenario_put = retry_scenario_put,
    .scenario_get = retry_scenario_get,
    .submit = retry_submit,
    .heartbeat = retry_heartbeat,
    .claim = retry_claim,
    .complete = retry_complete,
    .worker_gone = retry_worker_gone,
    .worker_leases = retry_worker_leases,
    .partials = retry_partials,
    .suite_status = retry_suite_status,
    .suites = retry_suites,
    .outcomes = retry_outcomes,
    .job = retry_job,
    .dead_jobs = retry_dead_jobs,
    .ledger = retry_ledger,
    .price_set = retry_price_set,
    .price_get = retry_price_get,
    .commits_lost = retry_commits_lost,
    .cancel = retry_cancel,
    .artifact_put = retry_artifact_put,
    .artifact_get = retry_artifact_get,
};

enum status retry_create(const struct retry_source *source, int64_t deadline_ms, struct store **out,
                         struct error *error)
{
    struct link *link = calloc(1, sizeof *link);
    if (link == NULL) {
        source->close(source->context);
        return error_set(error, STATUS_NO_MEMORY, "out of memory for a store");
    }
    link->store.ops = &retry_ops;
    link->source = *source;
    link->deadline_ms = deadline_ms;
    pthread_mutex_init(&link->mutex, NULL);
    pthread_cond_init(&link->claim_ended, NULL);
    atomic_init(&link->jitter,
                source->pace != NULL
                    ? source->pace->seed
                    : rng_mix((uint64_t)clock_now_ns(clock_system()) ^ (uint64_t)getpid() << 40));
    *out = &link->store;
    return STATUS_OK;
}
