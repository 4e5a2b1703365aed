/*
 * The fake store. See fake_store.h.
 */
#include "tests/store/http/fake_store.h"

#include "base/check.h"
#include "base/units.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    FAKE_JOBS_MAX = 65536,
    FAKE_BLOBS_MAX = 4096,
    FAKE_OUTCOMES_MAX = 65536,
    FAKE_TTL_MS = 15000
};

struct fake_blob {
    char hash[SHA256_HEX_BYTES];
    void *data;
    size_t bytes;
};

struct fake {
    struct store store;
    struct fake_control *control;
    struct fake_control own_control;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct store_job *jobs;           /* id = index + 1; grown */
    int64_t claim_ids[FAKE_JOBS_MAX]; /* that leased them */
    uint32_t job_count;
    struct outcome partial;
    int64_t partial_job_id; /* 0: none */
    struct outcome *outcomes;
    uint32_t outcome_count;
    struct fake_blob blobs[FAKE_BLOBS_MAX];
    uint32_t blob_count;
    struct ledger_totals totals;
    int64_t price_uusd;
    struct golden_set golden;
    struct label label;
    struct model_version version;
    struct model_event event;
    struct trust_event trust;
};

static struct fake *begin(struct store *store)
{
    struct fake *fake = (struct fake *)store;
    atomic_fetch_add(&fake->control->calls, 1);
    pthread_mutex_lock(&fake->mutex);
    return fake;
}

static enum status end(struct fake *fake, enum status status, struct error *error)
{
    if (atomic_load(&fake->control->fail_calls) > 0) {
        atomic_fetch_sub(&fake->control->fail_calls, 1);
        status = (enum status)atomic_load(&fake->control->fail_as);
        status = status != STATUS_OK ? status : STATUS_STORE;
    }
    pthread_cond_broadcast(&fake->changed);
    pthread_mutex_unlock(&fake->mutex);
    return status == STATUS_OK ? status : error_set(error, status, "fake: %s", status_name(status));
}

/* Room for one more element at the end of a doubling array. */
static void *grow(void *array, uint32_t count, size_t size)
{
    if (count == 0 || (count & (count - 1)) == 0) {
        array = realloc(array, (count == 0 ? 1 : 2 * (size_t)count) * size);
        CHECK(array != NULL);
    }
    return array;
}

static enum status blob_put(struct fake *fake, const char *hash, const void *data, size_t bytes)
{
    for (uint32_t i = 0; i < fake->blob_count; i++) {
        if (strcmp(fake->blobs[i].hash, hash) == 0) {
            return STATUS_OK;
        }
    }
    CHECK(fake->blob_count < FAKE_BLOBS_MAX);
    struct fake_blob *blob = &fake->blobs[fake->blob_count++];
    strcpy(blob->hash, hash);
    blob->data = malloc(bytes + 1);
    CHECK(blob->data != NULL);
    memcpy(blob->data, data, bytes);
    blob->bytes = bytes;
    return STATUS_OK;
}

static enum status blob_get(struct fake *fake, const char *hash, char **data, size_t *bytes)
{
    for (uint32_t i = 0; i < fake->blob_count; i++) {
        if (strcmp(fake->blobs[i].hash, hash) == 0) {
            *data = malloc(fake->blobs[i].bytes + 1);
            CHECK(*data != NULL);
            memcpy(*data, fake->blobs[i].data, fake->blobs[i].bytes);
            (*data)[fake->blobs[i].bytes] = '\0';
            *bytes = fake->blobs[i].bytes;
            return STATUS_OK;
        }
    }
    return STATUS_NOT_FOUND;
}

static enum status fake_scenario_put(struct store *store, const char *hash, const char *body,
                                     size_t bytes, struct error *error)
{
    struct fake *fake = begin(store);
    return end(fake, blob_put(fake, hash, body, bytes), error);
}

static enum status fake_scenario_get(struct store *store, const char *hash, char **body,
                                     size_t *bytes, struct error *error)
{
    struct fake *fake = begin(store);
    return end(fake, blob_get(fake, hash, body, bytes), error);
}

static enum status fake_submit(struct store *store, const char *suite_id, uint32_t weight,
                               const struct job_spec *specs, uint32_t count,
                               struct store_submit_result *results, struct error *error)
{
    struct fake *fake = begin(store);
    if (weight < 1 || weight > 100) {
        return end(fake, STATUS_BAD_INPUT, error);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct store_job *job = NULL;
        for (uint32_t k = 0; k < fake->job_count && job == NULL; k++) {
            if (strcmp(fake->jobs[k].spec.key, specs[i].key) == 0 &&
                strcmp(fake->jobs[k].spec.suite_id, suite_id) == 0) {
                job = &fake->jobs[k];
            }
        }
        results[i] = (struct store_submit_result){.existed = job != NULL};
        if (job == NULL) {
            CHECK(fake->job_count < FAKE_JOBS_MAX);
            fake->jobs = grow(fake->jobs, fake->job_count, sizeof *fake->jobs);
            job = &fake->jobs[fake->job_count++];
            memset(job, 0, sizeof *job);
            job->id = fake->job_count;
            job->spec = specs[i];
            strcpy(job->spec.suite_id, suite_id);
        }
        results[i].job_id = job->id;
    }
    return end(fake, STATUS_OK, error);
}

static enum status fake_heartbeat(struct store *store, const struct store_worker *worker,
                                  const struct store_progress *progress, uint32_t count,
                                  int64_t *cancelled, uint32_t *cancelled_count, int64_t *ttl_ms,
                                  struct error *error)
{
    struct fake *fake = begin(store);
    (void)worker;
    *cancelled_count = 0;
    for (uint32_t i = 0; progress != NULL && i < count; i++) {
        if (progress[i].job_id >= 1 && progress[i].job_id <= fake->job_count &&
            fake->jobs[progress[i].job_id - 1].state == JOB_CANCELLED) {
            cancelled[(*cancelled_count)++] = progress[i].job_id;
        }
    }
    *ttl_ms = FAKE_TTL_MS;
    return end(fake, STATUS_OK, error);
}

/* Leases queued jobs, or finds those that the claim leased. */
static uint32_t take_jobs(struct fake *fake, const struct store_worker *worker, int64_t claim_id,
                          bool again, uint32_t max, struct job_lease *leases)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < fake->job_count && found < max; i++) {
        struct store_job *job = &fake->jobs[i];
        if (!again && job->state == JOB_QUEUED && strcmp(job->spec.pool, worker->pool) == 0) {
            job->state = JOB_LEASED;
            job->epoch++;
            job->attempts++;
            strcpy(job->worker_id, worker->worker_id);
            fake->claim_ids[i] = claim_id;
        } else if (!again || job->state != JOB_LEASED || fake->claim_ids[i] != claim_id ||
                   strcmp(job->worker_id, worker->worker_id) != 0) {
            continue;
        }
        leases[found++] = (struct job_lease){
            .job_id = job->id, .epoch = job->epoch, .attempt = job->attempts, .spec = job->spec};
    }
    return found;
}

/* The worker's last claim that leased jobs; 0: none. */
static int64_t last_claim(const struct fake *fake, const struct store_worker *worker)
{
    int64_t last = 0;
    for (uint32_t i = 0; i < fake->job_count; i++) {
        if (strcmp(fake->jobs[i].worker_id, worker->worker_id) == 0 && fake->claim_ids[i] > last) {
            last = fake->claim_ids[i];
        }
    }
    return last;
}

static enum status fake_claim(struct store *store, const struct store_worker *worker,
                              int64_t *claim_id, uint32_t max, int64_t wait_ms,
                              struct job_lease *leases, uint32_t *count, int64_t *ttl_ms,
                              struct error *error)
{
    struct fake *fake = begin(store);
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    int64_t ns = until.tv_nsec + wait_ms % 1000 * NS_PER_MS;
    until.tv_sec += wait_ms / 1000 + ns / NS_PER_S;
    until.tv_nsec = ns % NS_PER_S;
    atomic_fetch_add(&fake->control->claim_calls, 1);
    bool again = *claim_id <= last_claim(fake, worker);
    uint32_t found = take_jobs(fake, worker, *claim_id, again, max, leases);
    while (!again && found == 0 && wait_ms > 0 &&
           pthread_cond_timedwait(&fake->changed, &fake->mutex, &until) == 0) {
        found = take_jobs(fake, worker, *claim_id, again, max, leases);
    }
    *count = found;
    *claim_id += again || found > 0 ? 1 : 0;
    *ttl_ms = FAKE_TTL_MS;
    return end(fake, STATUS_OK, error);
}

static void complete_one(struct fake *fake, const struct job_completion *completion,
                         struct store_completion_result *result)
{
    static const enum job_state states[COMPLETION_KIND_COUNT] = {JOB_DONE, JOB_FLAGGED, JOB_QUEUED,
                                                                 JOB_QUEUED};
    *result = (struct store_completion_result){.status = STATUS_STALE};
    if (completion->job_id < 1 || completion->job_id > fake->job_count) {
        return;
    }
    struct store_job *job = &fake->jobs[completion->job_id - 1];
    if (job->epoch != completion->epoch) {
        return;
    }
    result->status = STATUS_OK;
    if (job->state != JOB_LEASED) {
        return; /* a replay */
    }
    if (completion->kind == COMPLETION_PARTIAL) {
        CHECK(completion->outcome_count == 1); /* one is remembered */
        fake->partial = completion->outcomes[0];
        fake->partial_job_id = completion->job_id;
        return;
    }
    job->state = states[completion->kind];
    fake->totals.attempts++;
    fake->totals.device_ns += completion->device_ns;
    fake->totals.metres_mm += completion->metres_mm;
    for (uint32_t i = 0; i < completion->outcome_count; i++) {
        CHECK(fake->outcome_count < FAKE_OUTCOMES_MAX);
        fake->outcomes = grow(fake->outcomes, fake->outcome_count, sizeof *fake->outcomes);
        fake->outcomes[fake->outcome_count] = completion->outcomes[i];
        fake->outcomes[fake->outcome_count].id = fake->outcome_count + 1;
        fake->outcome_count++;
    }
}

static enum status fake_complete(struct store *store, const struct job_completion *completions,
                                 uint32_t count, struct store_completion_result *results,
                                 struct error *error)
{
    struct fake *fake = begin(store);
    for (uint32_t i = 0; i < count; i++) {
        complete_one(fake, &completions[i], &results[i]);
    }
    return end(fake, STATUS_OK, error);
}

static enum status fake_worker_gone(struct store *store, const char *worker_id, struct error *error)
{
    struct fake *fake = begin(store);
    for (uint32_t i = 0; i < fake->job_count; i++) {
        if (fake->jobs[i].state == JOB_LEASED && strcmp(fake->jobs[i].worker_id, worker_id) == 0) {
            fake->jobs[i].state = JOB_QUEUED;
        }
    }
    return end(fake, STATUS_OK, error);
}

static enum status fake_partials(struct store *store, int64_t job_id, struct outcome *out,
                                 uint32_t max, uint32_t *count, struct error *error)
{
    struct fake *fake = begin(store);
    *count = max > 0 && fake->partial_job_id == job_id ? 1 : 0;
    if (*count > 0) {
        out[0] = fake->partial;
    }
    return end(fake, STATUS_OK, error);
}

static enum status fake_suite_status(struct store *store, const char *suite_id,
                                     struct store_suite_status *out, struct error *error)
{
    struct fake *fake = begin(store);
    atomic_fetch_add(&fake->control->blocked, 1);
    while (atomic_load(&fake->control->block) != 0) {
        struct timespec pause = {.tv_nsec = NS_PER_MS};
        pthread_mutex_unlock(&fake->mutex);
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&fake->mutex);
    }
    atomic_fetch_sub(&fake->control->blocked, 1);
    memset(out, 0, sizeof *out);
    bool known = false;
    for (uint32_t i = 0; i < fake->job_count; i++) {
        if (strcmp(fake->jobs[i].spec.suite_id, suite_id) == 0) {
            out->jobs[fake->jobs[i].state]++;
            out->rollouts_total += fake->jobs[i].spec.rollout_count;
            known = true;
        }
    }
    for (uint32_t i = 0; i < fake->outcome_count; i++) {
        if (strcmp(fake->outcomes[i].suite_id, suite_id) == 0) {
            out->rollouts[fake->outcomes[i].verdict]++;
        }
    }
    return end(fake, known ? STATUS_OK : STATUS_NOT_FOUND, error);
}

static enum status fake_suites(struct store *store, char (*ids)[LIMIT_ID_BYTES], uint32_t max,
                               uint32_t *count, struct error *error)
{
    struct fake *fake = begin(store);
    uint32_t found = 0;
    for (uint32_t i = fake->job_count; i > 0 && found < max; i--) {
        bool seen = false;
        for (uint32_t k = 0; k < found; k++) {
            seen = seen || strcmp(ids[k], fake->jobs[i - 1].spec.suite_id) == 0;
        }
        if (!seen) {
            strcpy(ids[found++], fake->jobs[i - 1].spec.suite_id);
        }
    }
    *count = found;
    return end(fake, STATUS_OK, error);
}

static bool passes(const struct store_outcome_filter *filter, const struct outcome *outcome)
{
    return outcome->id > filter->after_id &&
           (filter->suite_id[0] == '\0' || strcmp(filter->suite_id, outcome->suite_id) == 0) &&
           (filter->scenario_id[0] == '\0' ||
            strcmp(filter->scenario_id, outcome->scenario_id) == 0) &&
           (filter->job_id == 0 || filter->job_id == outcome->job_id) &&
           (filter->outcome_id == 0 || filter->outcome_id == outcome->id) &&
           (!filter->by_verdict || filter->verdict == outcome->verdict);
}

static enum status fake_outcomes(struct store *store, const struct store_outcome_filter *filter,
                                 struct outcome *out, uint32_t *count, struct error *error)
{
    struct fake *fake = begin(store);
    uint32_t found = 0;
    if (filter->limit < 1 || filter->limit > 1000) {
        return end(fake, STATUS_BAD_INPUT, error);
    }
    struct store_outcome_filter asked = *filter;
    asked.after_id = atomic_load(&fake->control->stands) != 0 ? 0 : filter->after_id;
    for (uint32_t i = 0; i < fake->outcome_count && found < filter->limit; i++) {
        if (passes(&asked, &fake->outcomes[i])) {
            out[found++] = fake->outcomes[i];
        }
    }
    *count = found;
    return end(fake, STATUS_OK, error);
}

static enum status fake_job(struct store *store, int64_t job_id, struct store_job *out,
                            struct error *error)
{
    struct fake *fake = begin(store);
    if (job_id < 1 || job_id > fake->job_count) {
        return end(fake, STATUS_NOT_FOUND, error);
    }
    *out = fake->jobs[job_id - 1];
    return end(fake, STATUS_OK, error);
}

static enum status fake_dead_jobs(struct store *store, const char *suite_id, int64_t after_id,
                                  struct store_job *out, uint32_t max, uint32_t *count,
                                  struct error *error)
{
    struct fake *fake = begin(store);
    uint32_t found = 0;
    for (uint32_t i = 0; i < fake->job_count && found < max; i++) {
        if (fake->jobs[i].state == JOB_DEAD && fake->jobs[i].id > after_id &&
            strcmp(fake->jobs[i].spec.suite_id, suite_id) == 0) {
            out[found++] = fake->jobs[i];
        }
    }
    *count = found;
    return end(fake, STATUS_OK, error);
}

static enum status fake_jobs_in_state(struct store *store, const char *suite_id, const char *state,
                                      int64_t after_id, struct store_job *out, uint32_t max,
                                      uint32_t *count, struct error *error)
{
    if (state == NULL || strcmp(state, "dead") != 0) {
        return error_set(error, STATUS_BAD_INPUT, "state: expected dead");
    }
    return fake_dead_jobs(store, suite_id, after_id, out, max, count, error);
}

static enum status fake_ledger(struct store *store, const char *suite_id,
                               struct store_ledger_row *rows, uint32_t max, uint32_t *count,
                               struct error *error)
{
    struct fake *fake = begin(store);
    (void)suite_id;
    *count = max > 0 ? 1 : 0;
    if (max > 0) {
        rows[0] = (struct store_ledger_row){
            .pool = "bulk", .device = "cpu", .end = "done", .totals = fake->totals};
    }
    return end(fake, STATUS_OK, error);
}

static enum status fake_price_set(struct store *store, const char *pool, const char *device,
                                  int64_t price_uusd_per_hour, struct error *error)
{
    struct fake *fake = begin(store);
    (void)pool;
    (void)device;
    fake->price_uusd = price_uusd_per_hour;
    return end(fake, STATUS_OK, error);
}

static enum status fake_model_add(struct store *store, const struct model_version *version,
                                  struct error *error)
{
    struct fake *fake = begin(store);
    fake->version = *version;
    return end(fake, STATUS_OK, error);
}

static enum status fake_models(struct store *store, const char *after, struct model_version *out,
                               uint32_t max, uint32_t *count, struct error *error)
{
    struct fake *fake = begin(store);
    bool stands = atomic_load(&fake->control->stands) != 0;
    *count = max > 0 && (stands || strcmp(fake->version.name, after) > 0) ? 1 : 0;
    if (*count > 0) {
        out[0] = fake->version;
    }
    return end(fake, STATUS_OK, error);
}

static enum status fake_golden_add(struct store *store, const struct golden_set *set,
                                   struct error *error)
{
    struct fake *fake = begin(store);
    fake->golden = *set;
    return end(fake, STATUS_OK, error);
}

static enum status fake_goldens(struct store *store, const char *after, struct golden_set *out,
                                uint32_t max, uint32_t *count, struct error *error)
{
    struct fake *fake = begin(store);
    bool stands = atomic_load(&fake->control->stands) != 0;
    *count = max > 0 && (stands || strcmp(fake->golden.name, after) > 0) ? 1 : 0;
    if (*count > 0) {
        out[0] = fake->golden;
    }
    return end(fake, STATUS_OK, error);
}

static enum status fake_golden_drop(struct store *store, const char *name, struct error *error)
{
    struct fake *fake = begin(store);
    fake->golden.name[0] = strcmp(fake->golden.name, name) == 0 ? '\0' : fake->golden.name[0];
    return end(fake, STATUS_OK, error);
}

static enum status fake_label_add(struct store *store, const struct label *label,
                                  struct error *error)
{
    struct fake *fake = begin(store);
    fake->label = *label;
    fake->label.id = 7;
    return end(fake, STATUS_OK, error);
}

static enum status fake_label_drop(struct store *store, const struct label *label,
                                   struct error *error)
{
    struct fake *fake = begin(store);
    fake->label.id = strcmp(fake->label.text, label->text) == 0 ? 0 : fake->label.id;
    return end(fake, STATUS_OK, error);
}

static enum status fake_labels(struct store *store, const char *kind, int64_t after_id,
                               struct label *out, uint32_t max, uint32_t *count,
                               struct error *error)
{
    struct fake *fake = begin(store);
    bool of_kind = kind == NULL || strcmp(kind, label_kind_names[fake->label.kind]) == 0;
    *count = max > 0 && of_kind && after_id < fake->label.id ? 1 : 0;
    if (*count > 0) {
        out[0] = fake->label;
    }
    return end(fake, STATUS_OK, error);
}

static enum status fake_model_event(struct store *store, const struct model_event *event,
                                    struct model_event *done, struct error *error)
{
    struct fake *fake = begin(store);
    fake->event = *event;
    fake->event.id = 7;
    *done = fake->event;
    return end(fake, STATUS_OK, error);
}

static enum status fake_model_events(struct store *store, int64_t after_id, struct model_event *out,
                                     uint32_t max, uint32_t *count, struct error *error)
{
    struct fake *fake = begin(store);
    bool stands = atomic_load(&fake->control->stands) != 0;
    *count = max > 0 && (stands || fake->event.id > after_id) ? 1 : 0;
    if (*count > 0) {
        out[0] = fake->event;
    }
    return end(fake, STATUS_OK, error);
}

static enum status fake_trust_event(struct store *store, const struct trust_event *event,
                                    struct trust_event *done, struct error *error)
{
    struct fake *fake = begin(store);
    fake->trust = *event;
    fake->trust.id = 9;
    *done = fake->trust;
    return end(fake, STATUS_OK, error);
}

static enum status fake_trust_events(struct store *store, int64_t after_id, struct trust_event *out,
                                     uint32_t max, uint32_t *count, struct error *error)
{
    struct fake *fake = begin(store);
    bool stands = atomic_load(&fake->control->stands) != 0;
    *count = max > 0 && (stands || fake->trust.id > after_id) ? 1 : 0;
    if (*count > 0) {
        out[0] = fake->trust;
    }
    return end(fake, STATUS_OK, error);
}

static enum status fake_commits_lost(struct store *store, int64_t *count, struct error *error)
{
    struct fake *fake = begin(store);
    *count = 3;
    return end(fake, STATUS_OK, error);
}

static enum status fake_demand(struct store *store, struct store_demand *rows, uint32_t max,
                               uint32_t *count, struct error *error)
{
    struct fake *fake = begin(store);
    *count = max > 0 ? 1 : 0;
    if (max > 0) {
        rows[0] = (struct store_demand){
            .pool = "bulk",
            .tier = TIER_OBJECT,
            .jobs_queued = 5,
            .workers_alive = atomic_load(&fake->control->stands) != 0 ? INT64_MAX : 2};
    }
    return end(fake, STATUS_OK, error);
}

static enum status fake_price_get(struct store *store, const char *pool, const char *device,
                                  int64_t *price_uusd_per_hour, struct error *error)
{
    struct fake *fake = begin(store);
    (void)pool;
    (void)device;
    *price_uusd_per_hour = fake->price_uusd;
    return end(fake, STATUS_OK, error);
}

static enum status fake_cancel(struct store *store, const char *suite_id, int64_t *count,
                               struct error *error)
{
    struct fake *fake = begin(store);
    *count = 0;
    for (uint32_t i = 0; i < fake->job_count; i++) {
        struct store_job *job = &fake->jobs[i];
        if (strcmp(job->spec.suite_id, suite_id) == 0 &&
            (job->state == JOB_QUEUED || job->state == JOB_LEASED)) {
            job->state = JOB_CANCELLED;
            (*count)++;
        }
    }
    return end(fake, STATUS_OK, error);
}

static enum status fake_artifact_put(struct store *store, const void *data, size_t bytes,
                                     char hash[SHA256_HEX_BYTES], struct error *error)
{
    char name[SHA256_HEX_BYTES];
    struct fake *fake = begin(store);
    sha256_hex(data, bytes, name);
    blob_put(fake, name, data, bytes);
    memcpy(hash, name, sizeof name);
    return end(fake, STATUS_OK, error);
}

static enum status fake_artifact_get(struct store *store, const char *hash, void **data,
                                     size_t *bytes, struct error *error)
{
    struct fake *fake = begin(store);
    char *copy = NULL;
    enum status status = blob_get(fake, hash, &copy, bytes);
    *data = status == STATUS_OK ? copy : *data;
    return end(fake, status, error);
}

static enum status fake_planner_keep(struct store *store, const char *suite,
                                     const char *planner_hash, const void *data, size_t bytes,
                                     struct error *error)
{
    struct fake *fake = begin(store);
    (void)suite;
    blob_put(fake, planner_hash, data, bytes);
    return end(fake, STATUS_OK, error);
}

static enum status fake_planner_kept(struct store *store, const char *suite,
                                     const char *planner_hash, void **data, size_t *bytes,
                                     struct error *error)
{
    (void)suite;
    return fake_artifact_get(store, planner_hash, data, bytes, error);
}

static void fake_close(struct store *store)
{
    if (store == NULL) {
        return;
    }
    struct fake *fake = (struct fake *)store;
    for (uint32_t i = 0; i < fake->blob_count; i++) {
        free(fake->blobs[i].data);
    }
    free(fake->jobs);
    free(fake->outcomes);
    pthread_cond_destroy(&fake->changed);
    pthread_mutex_destroy(&fake->mutex);
    free(fake);
}

static const struct store_ops fake_ops = {
    .name = "fake",
    .close = fake_close,
    .scenario_put = fake_scenario_put,
    .scenario_get = fake_scenario_get,
    .submit = fake_submit,
    .heartbeat = fake_heartbeat,
    .claim = fake_claim,
    .complete = fake_complete,
    .worker_gone = fake_worker_gone,
    .partials = fake_partials,
    .suite_status = fake_suite_status,
    .suites = fake_suites,
    .outcomes = fake_outcomes,
    .job = fake_job,
    .dead_jobs = fake_dead_jobs,
    .jobs_in_state = fake_jobs_in_state,
    .ledger = fake_ledger,
    .price_set = fake_price_set,
    .price_get = fake_price_get,
    .commits_lost = fake_commits_lost,
    .demand = fake_demand,
    .cancel = fake_cancel,
    .model_add = fake_model_add,
    .models = fake_models,
    .trust_event = fake_trust_event,
    .trust_events = fake_trust_events,
    .golden_add = fake_golden_add,
    .goldens = fake_goldens,
    .golden_drop = fake_golden_drop,
    .label_add = fake_label_add,
    .label_drop = fake_label_drop,
    .labels = fake_labels,
    .model_event = fake_model_event,
    .model_events = fake_model_events,
    .planner_keep = fake_planner_keep,
    .planner_kept = fake_planner_kept,
    .artifact_put = fake_artifact_put,
    .artifact_get = fake_artifact_get,
};

enum status fake_store_open(struct fake_control *control, struct store **out, struct error *error)
{
    struct fake *fake = calloc(1, sizeof *fake);
    if (fake == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory");
    }
    fake->store.ops = &fake_ops;
    fake->control = control != NULL ? control : &fake->own_control;
    pthread_mutex_init(&fake->mutex, NULL);
    pthread_cond_init(&fake->changed, NULL);
    *out = &fake->store;
    return STATUS_OK;
}
