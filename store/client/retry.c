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

static enum status retry_complete(struct store *store, const struct job_completion *completions,
                                  uint32_t count, struct store_completion_result *results,
                                  struct error *error)
{
    REPEAT(complete, completions, count, results);
}

static enum status retry_worker_gone(struct store *store, const char *worker_id,
                                     struct error *error)
{
    REPEAT(worker_gone, worker_id);
}

static enum status retry_scenario_put(struct store *store, const char *hash, const char *body,
                                      size_t bytes, struct error *error)
{
    REPEAT(scenario_put, hash, body, bytes);
}

static enum status retry_scenario_put_as(struct store *store, const char *tenant, const char *hash,
                                         const char *body, size_t bytes, struct error *error)
{
    REPEAT(scenario_put_as, tenant, hash, body, bytes);
}

static enum status retry_scenario_get(struct store *store, const char *hash, char **body,
                                      size_t *bytes, struct error *error)
{
    REPEAT(scenario_get, hash, body, bytes);
}

static enum status retry_submit(struct store *store, const char *suite_id, uint32_t weight,
                                const struct job_spec *specs, uint32_t count,
                                struct store_submit_result *results, struct error *error)
{
    REPEAT(submit, suite_id, weight, specs, count, results);
}

static enum status retry_submit_as(struct store *store, const char *tenant, const char *suite_id,
                                   uint32_t weight, const struct job_spec *specs, uint32_t count,
                                   struct store_submit_result *results, struct error *error)
{
    REPEAT(submit_as, tenant, suite_id, weight, specs, count, results);
}

static enum status retry_tenants(struct store *store, const char *after, struct tenant *out,
                                 uint32_t max, uint32_t *count, struct error *error)
{
    REPEAT(tenants, after, out, max, count);
}

static enum status retry_tenant_set(struct store *store, const struct tenant *tenant,
                                    struct error *error)
{
    REPEAT(tenant_set, tenant);
}

static enum status retry_heartbeat(struct store *store, const struct store_worker *worker,
                                   const struct store_progress *progress, uint32_t count,
                                   int64_t *cancelled, uint32_t *cancelled_count, int64_t *ttl_ms,
                                   struct error *error)
{
    REPEAT(heartbeat, worker, progress, count, cancelled, cancelled_count, ttl_ms);
}

static enum status retry_partials(struct store *store, int64_t job_id, struct outcome *out,
                                  uint32_t max, uint32_t *count, struct error *error)
{
    REPEAT(partials, job_id, out, max, count);
}

static enum status retry_suite_status(struct store *store, const char *suite_id,
                                      struct store_suite_status *out, struct error *error)
{
    REPEAT(suite_status, suite_id, out);
}

static enum status retry_suites(struct store *store, char (*ids)[LIMIT_ID_BYTES], uint32_t max,
                                uint32_t *count, struct error *error)
{
    REPEAT(suites, ids, max, count);
}

static enum status retry_outcomes(struct store *store, const struct store_outcome_filter *filter,
                                  struct outcome *out, uint32_t *count, struct error *error)
{
    REPEAT(outcomes, filter, out, count);
}

static enum status retry_job(struct store *store, int64_t job_id, struct store_job *out,
                             struct error *error)
{
    REPEAT(job, job_id, out);
}

static enum status retry_dead_jobs(struct store *store, const char *suite_id, int64_t after_id,
                                   struct store_job *out, uint32_t max, uint32_t *count,
                                   struct error *error)
{
    REPEAT(dead_jobs, suite_id, after_id, out, max, count);
}

static enum status retry_ledger(struct store *store, const char *suite_id,
                                struct store_ledger_row *rows, uint32_t max, uint32_t *count,
                                struct error *error)
{
    REPEAT(ledger, suite_id, rows, max, count);
}

static enum status retry_price_set(struct store *store, const char *pool, const char *device,
                                   int64_t price_uusd_per_hour, struct error *error)
{
    REPEAT(price_set, pool, device, price_uusd_per_hour);
}

static enum status retry_price_get(struct store *store, const char *pool, const char *device,
                                   int64_t *price_uusd_per_hour, struct error *error)
{
    REPEAT(price_get, pool, device, price_uusd_per_hour);
}

static enum status retry_commits_lost(struct store *store, int64_t *count, struct error *error)
{
    REPEAT(commits_lost, count);
}

static enum status retry_scenarios_page(struct store *store, const char *suite_id, int64_t *after,
                                        store_scenario_visit *visit, void *context,
                                        struct error *error)
{
    REPEAT(scenarios_page, suite_id, after, visit, context);
}

static enum status retry_demand(struct store *store, struct store_demand *rows, uint32_t max,
                                uint32_t *count, struct error *error)
{
    REPEAT(demand, rows, max, count);
}

static enum status retry_cancel(struct store *store, const char *suite_id, int64_t *count,
                                struct error *error)
{
    REPEAT(cancel, suite_id, count);
}

static enum status retry_model_add(struct store *store, const struct model_version *version,
                                   struct error *error)
{
    REPEAT(model_add, version);
}

static enum status retry_models(struct store *store, const char *after, struct model_version *out,
                                uint32_t max, uint32_t *count, struct error *error)
{
    REPEAT(models, after, out, max, count);
}

static enum status retry_model_event(struct store *store, const struct model_event *event,
                                     struct model_event *done, struct error *error)
{
    REPEAT(model_event, event, done);
}

static enum status retry_model_events(struct store *store, int64_t after_id,
                                      struct model_event *out, uint32_t max, uint32_t *count,
                                      struct error *error)
{
    REPEAT(model_events, after_id, out, max, count);
}

static enum status retry_trust_event(struct store *store, const struct trust_event *event,
                                     struct trust_event *done, struct error *error)
{
    REPEAT(trust_event, event, done);
}

static enum status retry_trust_events(struct store *store, int64_t after_id,
                                      struct trust_event *out, uint32_t max, uint32_t *count,
                                      struct error *error)
{
    REPEAT(trust_events, after_id, out, max, count);
}

static enum status retry_golden_add(struct store *store, const struct golden_set *set,
                                    struct error *error)
{
    REPEAT(golden_add, set);
}

static enum status retry_goldens(struct store *store, const char *after, struct golden_set *out,
                                 uint32_t max, uint32_t *count, struct error *error)
{
    REPEAT(goldens, after, out, max, count);
}

static enum status retry_golden_drop(struct store *store, const char *name, struct error *error)
{
    REPEAT(golden_drop, name);
}

static enum status retry_artifact_put(struct store *store, const void *data, size_t bytes,
                                      char hash[SHA256_HEX_BYTES], struct error *error)
{
    REPEAT(artifact_put, data, bytes, hash);
}

static enum status retry_artifact_get(struct store *store, const char *hash, void **data,
                                      size_t *bytes, struct error *error)
{
    REPEAT(artifact_get, hash, data, bytes);
}

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
