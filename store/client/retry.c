/*
 * Retrying client: repeats calls until they are answered. See retry.h.
 */
#include "store/client/retry.h"

#include "base/rng.h"
#include "base/units.h"
#include "store/wire/http_wire.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BACKOFF_MS_MIN = 2, BACKOFF_MS_MAX = 250 };

struct retry {
    struct store store;
    struct retry_source source;
    int64_t deadline_ms;
    atomic_uint_least64_t jitter;
};

static struct retry *retry_of(struct store *store)
{
    return (struct retry *)store;
}

static int64_t retry_now_ns(const struct retry *retry)
{
    return clock_now_ns(retry->source.pace != NULL ? retry->source.pace->clock : clock_system());
}

/* ---- repeating ---- */

struct retry_call {
    struct retry *retry;
    struct store *inner;
    enum status status; /* of the last try */
    struct error error;
    uint32_t tries;
    int64_t deadline_ns; /* from the first loss */
};

static void call_begin(struct retry_call *call, struct store *store)
{
    memset(call, 0, offsetof(struct retry_call, error));
    call->retry = retry_of(store);
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
    const struct retry_pace *pace = call->retry->source.pace;
    uint64_t draw = rng_mix(atomic_fetch_add(&call->retry->jitter, 1));
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
    call->retry->source.describe(call->retry->source.context, who, sizeof who);
    call->status =
        error_set(&call->error, STATUS_TIMEOUT, "%.400s did not answer for %lld s: %.500s", who,
                  (long long)(call->retry->deadline_ms / 1000), last);
}

/* True: try (again) on call->inner. False: call->status is final. */
static bool call_next(struct retry_call *call)
{
    struct retry *retry = call->retry;
    bool lost = call->tries > 0;
    if (lost && !unanswered(call->status)) {
        return false;
    }
    for (;;) {
        if (lost) {
            int64_t now_ns = retry_now_ns(retry);
            if (call->deadline_ns == 0) {
                call->deadline_ns = now_ns + retry->deadline_ms * NS_PER_MS;
            }
            if (now_ns >= call->deadline_ns) {
                give_up(call);
                return false;
            }
            back_off(call);
        }
        call->tries++;
        call->status =
            retry->source.locate(retry->source.context, lost, &call->inner, &call->error);
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

/* The rest of a function that repeats `function` until it is answered. */
#define REPEAT(function, ...)                                                          \
    struct retry_call call;                                                            \
    call_begin(&call, store);                                                          \
    while (call_next(&call)) {                                                         \
        call.status = call.inner->ops->function(call.inner, __VA_ARGS__, &call.error); \
    }                                                                                  \
    return call_end(&call, error)

/* A call of the table that is repeated and nothing else: its parameters between store and error,
 * and their names. */
#define UNWRAPPED(...) __VA_ARGS__
#define RETRIED(function, parameters, ...)                                         \
    static enum status retry_##function(struct store *store, UNWRAPPED parameters, \
                                        struct error *error)                       \
    {                                                                              \
        REPEAT(function, __VA_ARGS__);                                             \
    }

/* ---- the calls ---- */

/* Waits no longer in all than the first try would have, and not at all once told to stop. */
static int64_t wait_left_ms(const struct retry_call *call, int64_t wait_ms, int64_t end_ns)
{
    const atomic_bool *stop = call->retry->source.stop;
    int64_t left_ms = (end_ns - retry_now_ns(call->retry)) / NS_PER_MS;
    if (call->tries == 1) {
        return wait_ms;
    }
    return left_ms > 0 && (stop == NULL || !atomic_load(stop)) ? left_ms : 0;
}

static enum status retry_claim(struct store *store, const struct store_worker *worker,
                               int64_t *claim_id, uint32_t max, int64_t wait_ms,
                               struct job_lease *leases, uint32_t *count, int64_t *ttl_ms,
                               struct error *error)
{
    int64_t end_ns = retry_now_ns(retry_of(store)) + wait_ms * NS_PER_MS;
    REPEAT(claim, worker, claim_id, max, wait_left_ms(&call, wait_ms, end_ns), leases, count,
           ttl_ms);
}

RETRIED(complete,
        (const struct job_completion *completions, uint32_t count,
         struct store_completion_result *results),
        completions, count, results)
RETRIED(worker_gone, (const char *worker_id), worker_id)
RETRIED(scenario_put, (const char *hash, const char *body, size_t bytes), hash, body, bytes)
RETRIED(scenario_put_as, (const char *tenant, const char *hash, const char *body, size_t bytes),
        tenant, hash, body, bytes)
RETRIED(scenario_get, (const char *hash, char **body, size_t *bytes), hash, body, bytes)
RETRIED(submit,
        (const char *suite_id, uint32_t weight, const struct job_spec *specs, uint32_t count,
         struct store_submit_result *results),
        suite_id, weight, specs, count, results)
RETRIED(submit_as,
        (const char *tenant, const char *suite_id, uint32_t weight, const struct job_spec *specs,
         uint32_t count, struct store_submit_result *results),
        tenant, suite_id, weight, specs, count, results)
RETRIED(tenants, (const char *after, struct tenant *out, uint32_t max, uint32_t *count), after, out,
        max, count)
RETRIED(tenant_set, (const struct tenant *tenant, uint32_t settings), tenant, settings)
RETRIED(heartbeat,
        (const struct store_worker *worker, const struct store_progress *progress, uint32_t count,
         int64_t *cancelled, uint32_t *cancelled_count, int64_t *ttl_ms),
        worker, progress, count, cancelled, cancelled_count, ttl_ms)
RETRIED(partials, (int64_t job_id, struct outcome *out, uint32_t max, uint32_t *count), job_id, out,
        max, count)
RETRIED(awaited, (const struct store_worker *worker, int64_t since_ms, struct store_awaited *out),
        worker, since_ms, out)
RETRIED(suite_status, (const char *suite_id, struct store_suite_status *out), suite_id, out)
RETRIED(suites, (char (*ids)[LIMIT_ID_BYTES], uint32_t max, uint32_t *count), ids, max, count)
RETRIED(outcomes, (const struct store_outcome_filter *filter, struct outcome *out, uint32_t *count),
        filter, out, count)
RETRIED(job, (int64_t job_id, struct store_job *out), job_id, out)
RETRIED(dead_jobs,
        (const char *suite_id, int64_t after_id, struct store_job *out, uint32_t max,
         uint32_t *count),
        suite_id, after_id, out, max, count)
RETRIED(ledger,
        (const char *suite_id, struct store_ledger_row *rows, uint32_t max, uint32_t *count),
        suite_id, rows, max, count)
RETRIED(price_set, (const char *pool, const char *device, int64_t price_uusd_per_hour), pool,
        device, price_uusd_per_hour)
RETRIED(price_get, (const char *pool, const char *device, int64_t *price_uusd_per_hour), pool,
        device, price_uusd_per_hour)
RETRIED(commits_lost, (int64_t * count), count)
RETRIED(scenarios_page,
        (const char *suite_id, int64_t *after, store_scenario_visit *visit, void *context),
        suite_id, after, visit, context)
RETRIED(demand, (struct store_demand * rows, uint32_t max, uint32_t *count), rows, max, count)
RETRIED(cancel, (const char *suite_id, int64_t *count), suite_id, count)
RETRIED(redrive, (const struct store_author *author, int64_t *jobs), author, jobs)
RETRIED(redrives, (int64_t * count), count)
RETRIED(model_add, (const struct model_version *version), version)
RETRIED(models, (const char *after, struct model_version *out, uint32_t max, uint32_t *count),
        after, out, max, count)
RETRIED(model_event, (const struct model_event *event, struct model_event *done), event, done)
RETRIED(model_events, (int64_t after_id, struct model_event *out, uint32_t max, uint32_t *count),
        after_id, out, max, count)
RETRIED(trust_event, (const struct trust_event *event, struct trust_event *done), event, done)
RETRIED(trust_events, (int64_t after_id, struct trust_event *out, uint32_t max, uint32_t *count),
        after_id, out, max, count)
RETRIED(golden_add, (const struct golden_set *set), set)
RETRIED(goldens, (const char *after, struct golden_set *out, uint32_t max, uint32_t *count), after,
        out, max, count)
RETRIED(golden_drop, (const char *name), name)
RETRIED(artifact_put, (const void *data, size_t bytes, char hash[SHA256_HEX_BYTES]), data, bytes,
        hash)
RETRIED(artifact_get, (const char *hash, void **data, size_t *bytes), hash, data, bytes)

#undef REPEAT

/* ---- life ---- */

static void retry_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    struct retry *retry = retry_of(store);
    retry->source.close(retry->source.context);
    free(retry);
}

static const struct store_ops retry_ops = {
    .name = "shared",
    .close = retry_close,
    .scenario_put = retry_scenario_put,
    .scenario_put_as = retry_scenario_put_as,
    .scenario_get = retry_scenario_get,
    .submit = retry_submit,
    .submit_as = retry_submit_as,
    .tenants = retry_tenants,
    .tenant_set = retry_tenant_set,
    .heartbeat = retry_heartbeat,
    .claim = retry_claim,
    .complete = retry_complete,
    .worker_gone = retry_worker_gone,
    .partials = retry_partials,
    .awaited = retry_awaited,
    .suite_status = retry_suite_status,
    .suites = retry_suites,
    .outcomes = retry_outcomes,
    .job = retry_job,
    .dead_jobs = retry_dead_jobs,
    .ledger = retry_ledger,
    .price_set = retry_price_set,
    .price_get = retry_price_get,
    .commits_lost = retry_commits_lost,
    .scenarios_page = retry_scenarios_page,
    .demand = retry_demand,
    .cancel = retry_cancel,
    .redrive = retry_redrive,
    .redrives = retry_redrives,
    .model_add = retry_model_add,
    .models = retry_models,
    .model_event = retry_model_event,
    .model_events = retry_model_events,
    .trust_event = retry_trust_event,
    .trust_events = retry_trust_events,
    .golden_add = retry_golden_add,
    .goldens = retry_goldens,
    .golden_drop = retry_golden_drop,
    .artifact_put = retry_artifact_put,
    .artifact_get = retry_artifact_get,
};

enum status retry_create(const struct retry_source *source, int64_t deadline_ms, struct store **out,
                         struct error *error)
{
    struct retry *retry = calloc(1, sizeof *retry);
    if (retry == NULL) {
        source->close(source->context);
        return error_set(error, STATUS_NO_MEMORY, "out of memory for a store");
    }
    retry->store.ops = &retry_ops;
    retry->source = *source;
    retry->deadline_ms = deadline_ms;
    atomic_init(&retry->jitter,
                source->pace != NULL
                    ? source->pace->seed
                    : rng_mix((uint64_t)clock_now_ns(clock_system()) ^ (uint64_t)getpid() << 40));
    *out = &retry->store;
    return STATUS_OK;
}
