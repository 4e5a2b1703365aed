/*
 * The spy: the backend between the server's routes and its store. Calls pass through it one at a
 * time, in the order in which they take effect, so what it sees is the truth that the model is
 * told.
 */
#include "tests/sim/fleet.h"

#include "base/check.h"
#include "base/units.h"
#include "store/sql/sql_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ID_GAP_MAX = 64 };

#define STALL_NS (100 * NS_PER_MS) /* group_commit.c: shorter ones are nobody's business */

static struct fleet *fleet_of(struct store *store)
{
    return ((struct spy *)store)->fleet;
}

static struct store *inner_of(struct store *store)
{
    return fleet_of(store)->server.store;
}

/* ---- around each call that writes ---- */

static void write_begin(struct fleet *fleet)
{
    struct server *server = &fleet->server;

    if (server->crash_commits >= 0) {
        *server->before = *fleet->model;
    }
    server->clock.stall_reads = 0;
    model_time(fleet->model, sim_clock_now(&server->clock) + server->clock.stall_ns);
    if (server->crash_commits >= 0) {
        *server->swept = *fleet->model;
        server->uncertain = true;
    }
}

void spy_after(struct fleet *fleet)
{
    struct error error;

    if (fleet->bug != NULL && fleet->bug->after != NULL) {
        CHECK(medium_script(&fleet->server, fleet->bug->after, &error) == STATUS_OK);
    }
}

static void write_end(struct fleet *fleet, bool good)
{
    struct server *server = &fleet->server;

    spy_after(fleet);

    if (!good) {
        sim_violation(&fleet->sim, "%s", fleet->model->why);
    }
    if (server->clock.stall_ns > STALL_NS) {
        model_stalled(fleet->model, server->clock.stall_ns);
    }
    if (server->crash_commits >= 0 && !server->snapped) {
        server->uncertain = false; /* everything that it does is done */
    }
}

/* Calls that have no reason to fail here. */
static bool succeeded(struct fleet *fleet, const char *what, enum status status,
                      const struct error *error)
{
    return status == STATUS_OK ||
           model_differ(fleet->model, "%s failed: %s (%s)", what, error != NULL ? error->text : "",
                        status_name(status));
}

/* Jobs of shadows: no answer names them. Those that the store has above the id `last`, which was
 * its last one before the call. */
static bool find_shadows(struct fleet *fleet, int64_t last)
{
    struct store *store = fleet->server.store;
    struct store_job *job = calloc(1, sizeof *job);
    struct error error;
    bool good = true;

    CHECK(job != NULL);
    int missed = 0; /* of ids that an operation took which was undone */
    while (good && fleet->follows && missed < ID_GAP_MAX) {
        bool there = store->ops->job(store, ++last, job, &error) == STATUS_OK;
        good = !there || model_job(fleet->model, last) != NULL ||
               model_shadow_found(fleet->model, job);
        missed = there ? 0 : missed + 1;
    }
    free(job);
    return good && model_shadows_found(fleet->model);
}

static enum status spy_submit_as(struct store *store, const char *tenant, const char *suite_id,
                                 uint32_t weight, enum suite_class of_class, int64_t budget_uusd,
                                 const struct job_spec *specs, uint32_t count,
                                 struct store_submit_result *results, struct error *error)
{
    struct fleet *fleet = fleet_of(store);
    int64_t last = model_last_id(fleet->model);
    write_begin(fleet);
    int number = 0;
    while (number < MODEL_TENANTS - 1 &&
           strcmp(tenant != NULL ? tenant : "", fleet_tenants[number]) != 0) {
        number++;
    }
    enum status status =
        inner_of(store)->ops->submit_as(inner_of(store), tenant, suite_id, weight, of_class,
                                        budget_uusd, specs, count, results, error);
    sim_log(&fleet->sim, "store", "submit to %s: %" PRIu32 " jobs, %s", suite_id, count,
            status_name(status));
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        sim_log(&fleet->sim, "store", "  job %" PRId64 " key %.24s tier %s%s%s%s",
                results[i].job_id, specs[i].key, tier_names[specs[i].tier],
                specs[i].audit_key[0] != '\0' ? " audit" : "", results[i].existed ? " existed" : "",
                results[i].memoised ? " memoised" : "");
    }
    bool good =
        model_submit_as(fleet->model, number, suite_id, weight, specs, count, results, status);
    if (good && status == STATUS_OK) {
        model_class(fleet->model, suite_id, of_class);
    }
    write_end(fleet, good && find_shadows(fleet, last));
    return status;
}

static enum status spy_submit(struct store *store, const char *suite_id, uint32_t weight,
                              const struct job_spec *specs, uint32_t count,
                              struct store_submit_result *results, struct error *error)
{
    return spy_submit_as(store, "", suite_id, weight, SUITE_CLASS_SAME, 0, specs, count, results,
                         error);
}

/* The worker as a server's guard knows it: by its token. */
static struct store_worker held_by(const struct fleet *fleet, const struct store_worker *worker)
{
    struct store_worker held = *worker;
    bool one = fleet->bug != NULL && fleet->bug->one_holder;
    snprintf(held.holder, sizeof held.holder, "token %d", one ? 0 : model_party(worker->worker_id));
    return held;
}

static enum status spy_heartbeat(struct store *store, const struct store_worker *worker,
                                 const struct store_progress *progress, uint32_t count,
                                 int64_t *cancelled, uint32_t *cancelled_count, int64_t *ttl_ms,
                                 struct error *error)
{
    struct fleet *fleet = fleet_of(store);
    const struct store_worker held = held_by(fleet, worker);
    write_begin(fleet);
    enum status status =
        fleet->bug != NULL && fleet->bug->heartbeat != NULL
            ? fleet->bug->heartbeat(fleet, &held, progress, count, cancelled, cancelled_count,
                                    ttl_ms, error)
            : inner_of(store)->ops->heartbeat(inner_of(store), &held, progress, count, cancelled,
                                              cancelled_count, ttl_ms, error);
    sim_log(&fleet->sim, "store", "heartbeat of %s: %" PRIu32 " jobs, %" PRIu32 " cancelled, %s",
            worker->worker_id, count, *cancelled_count, status_name(status));
    write_end(fleet, succeeded(fleet, "heartbeat", status, error) &&
                         model_heartbeat(fleet->model, worker, progress, count, cancelled,
                                         *cancelled_count));
    return status;
}

/* Jobs that came back into a frozen slice as the student's: a claim that meets one makes it the
 * teacher's, and does not say so. */
static bool find_strayed(struct fleet *fleet)
{
    struct store *store = fleet->server.store;
    struct model *model = fleet->model;
    struct store_job *job = calloc(1, sizeof *job);
    struct error error;
    bool good = true;

    CHECK(job != NULL);
    for (int i = 0; fleet->freezes && good && i < model->job_count; i++) {
        if (model_is_strayed(model, &model->jobs[i])) {
            good = store->ops->job(store, model->jobs[i].id, job, &error) == STATUS_OK
                       ? model_strayed_found(model, job)
                       : model_differ(model, "job %" PRId64 " is lost", model->jobs[i].id);
        }
    }
    free(job);
    return good;
}

static enum status spy_claim(struct store *store, const struct store_worker *worker,
                             int64_t *claim_id, uint32_t max, int64_t wait_ms,
                             struct job_lease *leases, uint32_t *count, int64_t *ttl_ms,
                             struct error *error)
{
    struct fleet *fleet = fleet_of(store);
    int64_t asked = *claim_id;
    const struct store_worker held = held_by(fleet, worker);
    CHECK(wait_ms == 0);
    write_begin(fleet);
    if (fleet->bug != NULL && fleet->bug->late_claims) {
        *claim_id = model_claim_late(fleet->model, worker->worker_id, asked) ? INT32_MAX : asked;
    }
    enum status status = inner_of(store)->ops->claim(inner_of(store), &held, claim_id, max, wait_ms,
                                                     leases, count, ttl_ms, error);
    sim_log(&fleet->sim, "store",
            "claim %" PRId64 " of %s for %" PRIu32 ": %" PRIu32 " jobs, next %" PRId64 ", %s",
            asked, worker->worker_id, max, *count, *claim_id, status_name(status));
    for (uint32_t i = 0; i < *count && status == STATUS_OK; i++) {
        sim_log(&fleet->sim, "store", "  job %" PRId64 " epoch %" PRId64 " of %s", leases[i].job_id,
                leases[i].epoch, leases[i].spec.suite_id);
    }
    write_end(fleet,
              (status == STATUS_CONFLICT || succeeded(fleet, "claim", status, error)) &&
                  find_strayed(fleet) &&
                  model_claim(fleet->model, worker, asked, max, leases, *count, *claim_id, status));
    return status;
}

static enum status spy_complete(struct store *store, const struct job_completion *completions,
                                uint32_t count, struct store_completion_result *results,
                                struct error *error)
{
    struct fleet *fleet = fleet_of(store);
    write_begin(fleet);
    enum status status =
        fleet->bug != NULL && fleet->bug->complete != NULL
            ? fleet->bug->complete(fleet, completions, count, results, error)
            : inner_of(store)->ops->complete(inner_of(store), completions, count, results, error);
    for (uint32_t i = 0; i < count; i++) {
        sim_log(
            &fleet->sim, "store",
            "completion (%s) of job %" PRId64 " epoch %" PRId64 " by %s: %s, successor %" PRId64,
            completion_kind_names[completions[i].kind], completions[i].job_id, completions[i].epoch,
            completions[i].worker_id, status_name(status == STATUS_OK ? results[i].status : status),
            status == STATUS_OK ? results[i].escalated_job_id : 0);
    }
    write_end(fleet, succeeded(fleet, "complete", status, error) &&
                         model_complete(fleet->model, completions, count, results));
    return status;
}

static enum status spy_worker_gone(struct store *store, const char *worker_id, struct error *error)
{
    struct fleet *fleet = fleet_of(store);
    write_begin(fleet);
    enum status status = inner_of(store)->ops->worker_gone(inner_of(store), worker_id, error);
    sim_log(&fleet->sim, "store", "%s is gone: %s", worker_id, status_name(status));
    bool good = succeeded(fleet, "worker_gone", status, error);
    model_worker_gone(fleet->model, worker_id);
    write_end(fleet, good);
    return status;
}

static enum status spy_cancel(struct store *store, const char *suite_id, int64_t *count,
                              struct error *error)
{
    struct fleet *fleet = fleet_of(store);
    write_begin(fleet);
    enum status status = inner_of(store)->ops->cancel(inner_of(store), suite_id, count, error);
    sim_log(&fleet->sim, "store", "cancel of %s: %s", suite_id, status_name(status));
    write_end(fleet,
              model_cancel(fleet->model, suite_id, status == STATUS_OK ? *count : 0, status));
    return status;
}

static enum status spy_price_set(struct store *store, const char *pool, const char *device,
                                 int64_t price, struct error *error)
{
    struct fleet *fleet = fleet_of(store);
    write_begin(fleet);
    enum status status =
        inner_of(store)->ops->price_set(inner_of(store), pool, device, price, error);
    sim_log(&fleet->sim, "store", "price of %s, %s: %" PRId64, pool, device, price);
    bool good = succeeded(fleet, "price_set", status, error);
    model_price_set(fleet->model, pool, device, price);
    write_end(fleet, good);
    return status;
}

static enum status spy_model_event(struct store *store, const struct model_event *event,
                                   struct model_event *done, struct error *error)
{
    struct fleet *fleet = fleet_of(store);
    int64_t last = model_last_id(fleet->model);
    write_begin(fleet);
    enum status status = inner_of(store)->ops->model_event(inner_of(store), event, done, error);
    sim_log(&fleet->sim, "store", "model %s to %s, %" PRId64 "%%: %s", event->model,
            model_state_names[event->to_state], event->canary_percent, status_name(status));
    fleet->moves += status == STATUS_OK;
    write_end(fleet, model_version_moved(fleet->model, event, status) && find_shadows(fleet, last));
    return status;
}

static enum status spy_trust_event(struct store *store, const struct trust_event *event,
                                   struct trust_event *done, struct error *error)
{
    struct fleet *fleet = fleet_of(store);
    char slice[TRUST_SLICE_TEXT_BYTES];
    write_begin(fleet);
    enum status status = inner_of(store)->ops->trust_event(inner_of(store), event, done, error);
    sim_log(&fleet->sim, "store", "%s of %s: event %" PRId64 ", %s",
            trust_event_kind_names[event->kind], trust_slice_text(&event->slice, slice),
            status == STATUS_OK ? done->id : event->freeze, status_name(status));
    fleet->events += status == STATUS_OK;
    write_end(fleet, model_trusted(fleet->model, event, done, status));
    return status;
}

static enum status spy_scenario_put(struct store *store, const char *hash, const char *body,
                                    size_t bytes, struct error *error)
{
    struct fleet *fleet = fleet_of(store);
    write_begin(fleet);
    enum status status =
        inner_of(store)->ops->scenario_put(inner_of(store), hash, body, bytes, error);
    write_end(fleet, succeeded(fleet, "scenario_put", status, error));
    return status;
}

/* ---- reading ---- */

static void look_end(struct fleet *fleet, bool good)
{
    if (!good) {
        sim_violation(&fleet->sim, "%s", fleet->model->why);
    }
}

static enum status spy_partials(struct store *store, int64_t job_id, struct outcome *out,
                                uint32_t max, uint32_t *count, struct error *error)
{
    struct fleet *fleet = fleet_of(store);
    enum status status =
        inner_of(store)->ops->partials(inner_of(store), job_id, out, max, count, error);
    sim_log(&fleet->sim, "store", "partial outcomes of job %" PRId64 ": %" PRIu32, job_id, *count);
    look_end(fleet, succeeded(fleet, "partials", status, error) &&
                        model_partials(fleet->model, job_id, out, *count));
    return status;
}

static enum status spy_suite_status(struct store *store, const char *suite_id,
                                    struct store_suite_status *out, struct error *error)
{
    struct fleet *fleet = fleet_of(store);
    enum status status = inner_of(store)->ops->suite_status(inner_of(store), suite_id, out, error);
    bool known = model_suite(fleet->model, suite_id) >= 0;
    if (status == STATUS_NOT_FOUND) {
        look_end(fleet, !known || model_differ(fleet->model, "suite %s is lost", suite_id));
        return status;
    }
    look_end(fleet, succeeded(fleet, "suite_status", status, error) &&
                        model_check_status(fleet->model, suite_id, out));
    return status;
}

static enum status spy_job(struct store *store, int64_t job_id, struct store_job *out,
                           struct error *error)
{
    struct fleet *fleet = fleet_of(store);
    enum status status = inner_of(store)->ops->job(inner_of(store), job_id, out, error);
    look_end(fleet, succeeded(fleet, "job", status, error) && model_check_job(fleet->model, out));
    return status;
}

/* ---- passed on as they are ---- */

static enum status spy_scenario_get(struct store *store, const char *hash, char **body,
                                    size_t *bytes, struct error *error)
{
    return inner_of(store)->ops->scenario_get(inner_of(store), hash, body, bytes, error);
}

static enum status spy_artifact_put(struct store *store, const void *data, size_t bytes,
                                    char hash[SHA256_HEX_BYTES], struct error *error)
{
    return inner_of(store)->ops->artifact_put(inner_of(store), data, bytes, hash, error);
}

static const struct store_ops spy_ops = {
    .name = "spy",
    .scenario_put = spy_scenario_put,
    .scenario_get = spy_scenario_get,
    .submit = spy_submit,
    .submit_as = spy_submit_as,
    .heartbeat = spy_heartbeat,
    .claim = spy_claim,
    .complete = spy_complete,
    .worker_gone = spy_worker_gone,
    .partials = spy_partials,
    .suite_status = spy_suite_status,
    .job = spy_job,
    .cancel = spy_cancel,
    .price_set = spy_price_set,
    .model_event = spy_model_event,
    .trust_event = spy_trust_event,
    .artifact_put = spy_artifact_put,
};

void spy_init(struct spy *spy, struct fleet *fleet)
{
    spy->store.ops = &spy_ops;
    spy->fleet = fleet;
}
