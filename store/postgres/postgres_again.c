/*
 * Reads of a store in PostgreSQL, asked again where their connection was lost. See
 * postgres_again.h.
 *
 * A read is one transaction and sees one moment, so one that broke off half-way begins anew; what
 * it had written so far into its caller's arrays is undefined after a failure, and is written over.
 * Those of a server's readers are not repeated: who asks over HTTP asks again, and one that a
 * closing server interrupts must end. Writers repeat theirs by operations (sql_store_run).
 */
#include "store/postgres/postgres_again.h"

#include "base/clock.h"
#include "base/units.h"
#include "store/sql/sql_store.h"

/* Whether the caller's lane waits, and the database may be back before `until_ns`. */
static bool comes_back(struct store *base, int64_t until_ns)
{
    const struct sql_backend *backend = (const struct sql_backend *)base;
    return backend->lane == SQL_LANE_WORK && sql_store_await(backend->owner, until_ns);
}

/* Returns what the call of the plain table returns, repeated while the database is away. */
#define AGAIN(name, ...)                                                                 \
    const struct store_ops *ops = sql_store_of(base)->plain;                             \
    int64_t until_ns = clock_now_ns(clock_system()) + SQL_STORE_AWAY_MS_MAX * NS_PER_MS; \
    enum status status = ops->name(__VA_ARGS__);                                         \
    while (status == STATUS_BUSY && comes_back(base, until_ns)) {                        \
        status = ops->name(__VA_ARGS__);                                                 \
    }                                                                                    \
    return status

static enum status again_scenario_get(struct store *base, const char *hash, char **body,
                                      size_t *bytes, struct error *error)
{
    AGAIN(scenario_get, base, hash, body, bytes, error);
}

static enum status again_partials(struct store *base, int64_t job_id, struct outcome *out,
                                  uint32_t max, uint32_t *count, struct error *error)
{
    AGAIN(partials, base, job_id, out, max, count, error);
}

static enum status again_suite_status(struct store *base, const char *suite_id,
                                      struct store_suite_status *out, struct error *error)
{
    AGAIN(suite_status, base, suite_id, out, error);
}

static enum status again_suites(struct store *base, char (*ids)[LIMIT_ID_BYTES], uint32_t max,
                                uint32_t *count, struct error *error)
{
    AGAIN(suites, base, ids, max, count, error);
}

static enum status again_outcomes(struct store *base, const struct store_outcome_filter *filter,
                                  struct outcome *out, uint32_t *count, struct error *error)
{
    AGAIN(outcomes, base, filter, out, count, error);
}

static enum status again_job(struct store *base, int64_t job_id, struct store_job *out,
                             struct error *error)
{
    AGAIN(job, base, job_id, out, error);
}

static enum status again_dead_jobs(struct store *base, const char *suite_id, int64_t after_id,
                                   struct store_job *out, uint32_t max, uint32_t *count,
                                   struct error *error)
{
    AGAIN(dead_jobs, base, suite_id, after_id, out, max, count, error);
}

static enum status again_ledger(struct store *base, const char *suite_id,
                                struct store_ledger_row *rows, uint32_t max, uint32_t *count,
                                struct error *error)
{
    AGAIN(ledger, base, suite_id, rows, max, count, error);
}

static enum status again_price_get(struct store *base, const char *pool, const char *device,
                                   int64_t *price_uusd_per_hour, struct error *error)
{
    AGAIN(price_get, base, pool, device, price_uusd_per_hour, error);
}

static enum status again_commits_lost(struct store *base, int64_t *count, struct error *error)
{
    AGAIN(commits_lost, base, count, error);
}

static enum status again_scenarios_page(struct store *base, const char *suite_id, int64_t *after,
                                        store_scenario_visit *visit, void *context,
                                        struct error *error)
{
    AGAIN(scenarios_page, base, suite_id, after, visit, context, error);
}

static enum status again_demand(struct store *base, struct store_demand *rows, uint32_t max,
                                uint32_t *count, struct error *error)
{
    AGAIN(demand, base, rows, max, count, error);
}

static enum status again_tenants(struct store *base, const char *after, struct tenant *out,
                                 uint32_t max, uint32_t *count, struct error *error)
{
    AGAIN(tenants, base, after, out, max, count, error);
}

static enum status again_models(struct store *base, const char *after, struct model_version *out,
                                uint32_t max, uint32_t *count, struct error *error)
{
    AGAIN(models, base, after, out, max, count, error);
}

static enum status again_model_events(struct store *base, int64_t after_id, struct model_event *out,
                                      uint32_t max, uint32_t *count, struct error *error)
{
    AGAIN(model_events, base, after_id, out, max, count, error);
}

static enum status again_trust_events(struct store *base, int64_t after_id, struct trust_event *out,
                                      uint32_t max, uint32_t *count, struct error *error)
{
    AGAIN(trust_events, base, after_id, out, max, count, error);
}

static enum status again_goldens(struct store *base, const char *after, struct golden_set *out,
                                 uint32_t max, uint32_t *count, struct error *error)
{
    AGAIN(goldens, base, after, out, max, count, error);
}

static enum status again_worker_owner(struct store *base, const char *worker_id,
                                      struct store_worker_owner *out, struct error *error)
{
    AGAIN(worker_owner, base, worker_id, out, error);
}

static enum status again_outcomes_page(struct store *base,
                                       const struct store_outcome_filter *filter,
                                       struct outcome *out, uint32_t *count, int64_t *next,
                                       struct error *error)
{
    AGAIN(outcomes_page, base, filter, out, count, next, error);
}

static enum status again_stats(struct store *base, struct store_stats *out, struct error *error)
{
    AGAIN(stats, base, out, error);
}

static enum status again_suites_page(struct store *base, const char *after,
                                     char (*ids)[LIMIT_ID_BYTES], uint32_t max, uint32_t *count,
                                     struct error *error)
{
    AGAIN(suites_page, base, after, ids, max, count, error);
}

static enum status again_slices_page(struct store *base, const char *suite_id, int64_t after,
                                     struct store_slice *out, uint32_t *count, int64_t *next,
                                     struct error *error)
{
    AGAIN(slices_page, base, suite_id, after, out, count, next, error);
}

static enum status again_suite_tenant(struct store *base, const char *suite_id,
                                      char name[LIMIT_ID_BYTES], struct error *error)
{
    AGAIN(suite_tenant, base, suite_id, name, error);
}

static enum status again_workers_page(struct store *base, const char *after,
                                      struct store_live_worker *out, uint32_t max, uint32_t *count,
                                      struct error *error)
{
    AGAIN(workers_page, base, after, out, max, count, error);
}

static enum status again_audit_page(struct store *base, int64_t after_id, struct store_audit *out,
                                    uint32_t max, uint32_t *count, struct error *error)
{
    AGAIN(audit_page, base, after_id, out, max, count, error);
}

void postgres_again_adapt(struct store_ops *ops)
{
    ops->scenario_get = again_scenario_get;
    ops->partials = again_partials;
    ops->suite_status = again_suite_status;
    ops->suites = again_suites;
    ops->outcomes = again_outcomes;
    ops->job = again_job;
    ops->dead_jobs = again_dead_jobs;
    ops->ledger = again_ledger;
    ops->price_get = again_price_get;
    ops->commits_lost = again_commits_lost;
    ops->scenarios_page = again_scenarios_page;
    ops->demand = again_demand;
    ops->tenants = again_tenants;
    ops->models = again_models;
    ops->model_events = again_model_events;
    ops->trust_events = again_trust_events;
    ops->goldens = again_goldens;
    ops->worker_owner = again_worker_owner;
    ops->outcomes_page = again_outcomes_page;
    ops->stats = again_stats;
    ops->suites_page = again_suites_page;
    ops->slices_page = again_slices_page;
    ops->suite_tenant = again_suite_tenant;
    ops->workers_page = again_workers_page;
    ops->audit_page = again_audit_page;
}
