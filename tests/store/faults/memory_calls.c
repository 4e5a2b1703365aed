/*
 * The table of calls. See memory_calls.h.
 *
 * What precedes a call is played once, into the database that every play of it starts from; the
 * call itself is then made twice, the first time with failures. So a caller fills in beforehand
 * all that the call is made with.
 */
#include "tests/store/faults/memory_calls.h"

#include "base/check.h"
#include "schemas/job_context.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROWS = 32 };

static const char scenario_body[] = "{\"id\":\"memory\"}";

static enum status same(const char *what, int64_t found, int64_t expected, struct error *error)
{
    if (found == expected) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_MISMATCH, "%s: expected %" PRId64 ", found %" PRId64, what,
                     expected, found);
}

/* ---- the calls ---- */

static void answer(struct memory_caller *caller, const void *data, size_t bytes)
{
    CHECK(caller->result_bytes + bytes <= sizeof caller->result);
    memcpy(caller->result + caller->result_bytes, data, bytes);
    caller->result_bytes += bytes;
}

static enum status put_scenario(struct memory_caller *caller, struct error *error)
{
    return caller->store->ops->scenario_put(caller->store, caller->scenario_hash, scenario_body,
                                            sizeof scenario_body - 1, error);
}

static enum status get_scenario(struct memory_caller *caller, struct error *error)
{
    char *body = NULL;
    size_t bytes = 0;
    enum status status = caller->store->ops->scenario_get(caller->store, caller->scenario_hash,
                                                          &body, &bytes, error);

    if (status == STATUS_OK) {
        answer(caller, body, bytes);
        free(body);
    }
    return status;
}

static enum status submit(struct memory_caller *caller, struct error *error)
{
    return caller->store->ops->submit(caller->store, "suite", 1, caller->specs, MEMORY_JOBS,
                                      caller->submitted, error);
}

static enum status heartbeat(struct memory_caller *caller, struct error *error)
{
    struct store_progress progress = {.job_id = caller->leases[0].job_id,
                                      .epoch = caller->leases[0].epoch,
                                      .device_ns = 5,
                                      .metres_mm = 7};
    int64_t cancelled[1];
    uint32_t count = 0;
    int64_t ttl_ms = 0;

    return caller->store->ops->heartbeat(caller->store, &caller->worker, &progress, 1, cancelled,
                                         &count, &ttl_ms, error);
}

static enum status claim(struct memory_caller *caller, struct error *error)
{
    int64_t ttl_ms = 0;
    uint32_t count = 0;
    enum status status =
        caller->store->ops->claim(caller->store, &caller->worker, &caller->claim_id, MEMORY_JOBS, 0,
                                  caller->leases, &count, &ttl_ms, error);

    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        if (caller->told_count == 2 * MEMORY_JOBS) {
            return error_set(error, STATUS_MISMATCH, "two claims answered with more than %d jobs",
                             2 * MEMORY_JOBS);
        }
        caller->told[caller->told_count++] = caller->leases[i].job_id;
    }
    return status;
}

static enum status complete(struct memory_caller *caller, struct error *error)
{
    return caller->store->ops->complete(caller->store, caller->completions, MEMORY_JOBS,
                                        caller->completed, error);
}

static enum status worker_gone(struct memory_caller *caller, struct error *error)
{
    return caller->store->ops->worker_gone(caller->store, caller->worker.worker_id, error);
}

/* The first job goes on: its first rollout is handed over, by each attempt at the call. */
static enum status hand_over(struct memory_caller *caller, struct error *error)
{
    struct job_completion partial = caller->completions[0];
    partial.kind = COMPLETION_PARTIAL;
    partial.outcome_count = 1;
    return caller->store->ops->complete(caller->store, &partial, 1, caller->completed, error);
}

static enum status look_partials(struct memory_caller *caller, struct error *error)
{
    uint32_t count = 0;
    struct outcome found[2];
    enum status status = caller->store->ops->partials(caller->store, caller->leases[0].job_id,
                                                      found, 2, &count, error);

    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        answer(caller, found[i].artifact_hash, strlen(found[i].artifact_hash));
        answer(caller, found[i].branch_id, strlen(found[i].branch_id));
    }
    return status;
}

static enum status look_awaited(struct memory_caller *caller, struct error *error)
{
    struct store_awaited found;
    struct store_worker other = caller->worker;
    snprintf(other.worker_id, sizeof other.worker_id, "another");
    enum status status = caller->store->ops->awaited(caller->store, &other, 0, &found, error);

    if (status == STATUS_OK) {
        answer(caller, &found.jobs_silent, sizeof found.jobs_silent);
        answer(caller, &found.jobs_delayed, sizeof found.jobs_delayed);
    }
    return status;
}

static enum status suite_status(struct memory_caller *caller, struct error *error)
{
    struct store_suite_status status;
    enum status answered = caller->store->ops->suite_status(caller->store, "suite", &status, error);

    if (answered == STATUS_OK) {
        answer(caller, &status, sizeof status);
    }
    return answered;
}

static enum status suites(struct memory_caller *caller, struct error *error)
{
    char ids[4][LIMIT_ID_BYTES];
    uint32_t count = 0;
    enum status status = caller->store->ops->suites(caller->store, ids, 4, &count, error);

    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        answer(caller, ids[i], strlen(ids[i]));
    }
    return status;
}

static enum status look_outcomes(struct memory_caller *caller, struct error *error)
{
    static struct outcome found[ROWS];
    struct store_outcome_filter filter = {.limit = ROWS};
    uint32_t count = 0;
    enum status status;

    strcpy(filter.suite_id, "suite");
    status = caller->store->ops->outcomes(caller->store, &filter, found, &count, error);
    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        answer(caller, &found[i].id, sizeof found[i].id);
        answer(caller, found[i].artifact_hash, strlen(found[i].artifact_hash));
        answer(caller, found[i].branch_id, strlen(found[i].branch_id));
        answer(caller, found[i].planner, strlen(found[i].planner));
        answer(caller, found[i].health_check, strlen(found[i].health_check));
        answer(caller, found[i].suite_id, strlen(found[i].suite_id));
    }
    return status;
}

static enum status look_job(struct memory_caller *caller, struct error *error)
{
    static struct store_job job;
    enum status status = caller->store->ops->job(caller->store, 1, &job, error);

    if (status == STATUS_OK) {
        answer(caller, &job.state, sizeof job.state);
        answer(caller, job.spec.key, strlen(job.spec.key));
        answer(caller, job.spec.planner, strlen(job.spec.planner));
        answer(caller, job.worker_id, strlen(job.worker_id));
    }
    return status;
}

static enum status look_jobs_in_state(struct memory_caller *caller, struct error *error)
{
    static struct store_job jobs[4];
    uint32_t count = 0;
    enum status status = caller->store->ops->jobs_in_state(caller->store, "suite", "queued", 0,
                                                           jobs, 4, &count, error);

    answer(caller, &count, sizeof count);
    return status;
}

static enum status look_dead(struct memory_caller *caller, struct error *error)
{
    static struct store_job jobs[4];
    uint32_t count = 0;
    enum status status =
        caller->store->ops->dead_jobs(caller->store, "suite", 0, jobs, 4, &count, error);

    answer(caller, &count, sizeof count);
    return status;
}

static enum status look_ledger(struct memory_caller *caller, struct error *error)
{
    static struct store_ledger_row rows[200];
    uint32_t count = 0;
    enum status status = caller->store->ops->ledger(caller->store, NULL, rows, 200, &count, error);

    for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
        answer(caller, rows[i].pool, strlen(rows[i].pool));
        answer(caller, rows[i].end, strlen(rows[i].end));
        answer(caller, &rows[i].totals, sizeof rows[i].totals);
    }
    return status;
}

static enum status set_price(struct memory_caller *caller, struct error *error)
{
    return caller->store->ops->price_set(caller->store, "bulk", "cpu", 1234567, error);
}

static enum status get_price(struct memory_caller *caller, struct error *error)
{
    int64_t price = 0;
    enum status status = caller->store->ops->price_get(caller->store, "bulk", "cpu", &price, error);

    answer(caller, &price, sizeof price);
    return status;
}

static enum status put_weights(struct memory_caller *caller, struct error *error)
{
    char hash[SHA256_HEX_BYTES];

    return caller->store->ops->artifact_put(caller->store, "weights", 7, hash, error);
}

static enum status add_model(struct memory_caller *caller, struct error *error)
{
    struct model_version version = {
        .name = "v1", .tier = TIER_STUDENT, .precision = "bf16", .sampler = "euler2/bf16"};

    sha256_hex("weights", 7, version.hash);
    return caller->store->ops->model_add(caller->store, &version, error);
}

static enum status add_model_before(struct memory_caller *caller, struct error *error)
{
    TRY(put_weights(caller, error));
    return add_model(caller, error);
}

static enum status look_models(struct memory_caller *caller, struct error *error)
{
    struct model_version found[2];
    uint32_t count = 0;
    enum status status = caller->store->ops->models(caller->store, "", found, 2, &count, error);

    answer(caller, &count, sizeof count);
    if (status == STATUS_OK && count > 0) {
        answer(caller, found[0].name, strlen(found[0].name));
    }
    return status;
}

static enum status model_is_there(struct memory_caller *caller, struct error *error)
{
    struct model_version found[2];
    uint32_t count = 0;
    TRY(caller->store->ops->models(caller->store, "", found, 2, &count, error));
    return same("models", count, 1, error);
}

static const char golden_list[] = "{\"recordings\": [{\"artifact\": \"%s\", \"bytes\": 7}]}";

/* A set whose one recording is what put_weights() put. */
static void name_golden(struct golden_set *set, char list[256])
{
    char weights[SHA256_HEX_BYTES];

    *set = (struct golden_set){.name = "g1", .sampler = "agents/euler2/bf16"};
    sha256_hex("weights", 7, weights);
    int bytes = snprintf(list, 256, golden_list, weights);
    sha256_hex(list, (size_t)bytes, set->hash);
    memcpy(set->model_hash, weights, sizeof set->model_hash);
}

static enum status put_golden_list(struct memory_caller *caller, struct error *error)
{
    struct golden_set set;
    char list[256];
    char hash[SHA256_HEX_BYTES];
    TRY(put_weights(caller, error));

    name_golden(&set, list);
    return caller->store->ops->artifact_put(caller->store, list, strlen(list), hash, error);
}

static enum status add_golden(struct memory_caller *caller, struct error *error)
{
    struct golden_set set;
    char list[256];

    name_golden(&set, list);
    return caller->store->ops->golden_add(caller->store, &set, error);
}

static enum status add_golden_before(struct memory_caller *caller, struct error *error)
{
    TRY(put_golden_list(caller, error));
    return add_golden(caller, error);
}

static enum status count_goldens(struct memory_caller *caller, uint32_t *count, struct error *error)
{
    struct golden_set found[2];

    return caller->store->ops->goldens(caller->store, "", found, 2, count, error);
}

static enum status look_goldens(struct memory_caller *caller, struct error *error)
{
    uint32_t count = 0;
    enum status status = count_goldens(caller, &count, error);

    answer(caller, &count, sizeof count);
    return status;
}

static enum status golden_is_there(struct memory_caller *caller, struct error *error)
{
    uint32_t count = 0;
    TRY(count_goldens(caller, &count, error));
    return same("goldens", count, 1, error);
}

static enum status add_label(struct memory_caller *caller, struct error *error)
{
    const struct label label = {.suite = "suite", .kind = LABEL_TAG, .text = "night"};
    return caller->store->ops->label_add(caller->store, &label, error);
}

static enum status count_labels(struct memory_caller *caller, uint32_t *count, struct error *error)
{
    struct label found[2];
    return caller->store->ops->labels(caller->store, "tag", 0, found, 2, count, error);
}

static enum status look_labels(struct memory_caller *caller, struct error *error)
{
    uint32_t count = 0;
    enum status status = count_labels(caller, &count, error);
    answer(caller, &count, sizeof count);
    return status;
}

static enum status label_is_there(struct memory_caller *caller, struct error *error)
{
    uint32_t count = 0;
    TRY(count_labels(caller, &count, error));
    return same("labels", count, 1, error);
}

static enum status drop_label(struct memory_caller *caller, struct error *error)
{
    const struct label label = {.suite = "suite", .kind = LABEL_TAG, .text = "night"};
    return caller->store->ops->label_drop(caller->store, &label, error);
}

static enum status label_is_gone(struct memory_caller *caller, struct error *error)
{
    uint32_t count = 0;
    TRY(count_labels(caller, &count, error));
    return same("labels", count, 0, error);
}

static enum status keep_planner(struct memory_caller *caller, struct error *error)
{
    return caller->store->ops->planner_keep(caller->store, "suite", caller->scenario_hash,
                                            scenario_body, sizeof scenario_body - 1, error);
}

static enum status kept_planner(struct memory_caller *caller, struct error *error)
{
    void *data = NULL;
    size_t bytes = 0;
    enum status status = caller->store->ops->planner_kept(
        caller->store, "suite", caller->scenario_hash, &data, &bytes, error);
    if (status == STATUS_OK) {
        answer(caller, data, bytes);
        free(data);
    }
    return status;
}

static enum status planner_is_kept(struct memory_caller *caller, struct error *error)
{
    void *data = NULL;
    size_t bytes = 0;
    TRY(caller->store->ops->planner_kept(caller->store, "suite", caller->scenario_hash, &data,
                                         &bytes, error));
    free(data);
    return same("bytes of files", (int64_t)bytes, sizeof scenario_body - 1, error);
}

static enum status drop_golden(struct memory_caller *caller, struct error *error)
{
    return caller->store->ops->golden_drop(caller->store, "g1", error);
}

static enum status golden_is_gone(struct memory_caller *caller, struct error *error)
{
    uint32_t count = 0;
    TRY(count_goldens(caller, &count, error));
    return same("goldens", count, 0, error);
}

static enum status promote_model(struct memory_caller *caller, struct error *error)
{
    struct model_event done;
    const struct model_event event = {.model = "v1",
                                      .kind = MODEL_MOVED,
                                      .to_state = MODEL_PROMOTED,
                                      .forced = true,
                                      .evidence = "a test"};

    return caller->store->ops->model_event(caller->store, &event, &done, error);
}

static enum status look_events(struct memory_caller *caller, struct error *error)
{
    struct model_event found[4];
    uint32_t count = 0;
    enum status status =
        caller->store->ops->model_events(caller->store, 0, found, 4, &count, error);

    answer(caller, &count, sizeof count);
    return status;
}

/* However often it was asked for: added, and promoted. */
static enum status promoted_once(struct memory_caller *caller, struct error *error)
{
    struct model_event found[4];
    uint32_t count = 0;
    TRY(caller->store->ops->model_events(caller->store, 0, found, 4, &count, error));
    return same("events", count, 2, error);
}

static enum status freeze_all(struct memory_caller *caller, struct error *error)
{
    struct trust_event done;
    struct trust_event event = {
        .kind = TRUST_FREEZE, .student_sampler = "euler2/bf16", .teacher_sampler = "euler2/bf16"};

    memset(event.student_hash, '5', sizeof event.student_hash - 1);
    memset(event.teacher_hash, '7', sizeof event.teacher_hash - 1);
    return caller->store->ops->trust_event(caller->store, &event, &done, error);
}

static enum status count_trust(struct memory_caller *caller, uint32_t *count, struct error *error)
{
    struct trust_event found[4];

    return caller->store->ops->trust_events(caller->store, 0, found, 4, count, error);
}

static enum status look_trust(struct memory_caller *caller, struct error *error)
{
    uint32_t count = 0;
    enum status status = count_trust(caller, &count, error);

    answer(caller, &count, sizeof count);
    return status;
}

/* However often it was asked for. */
static enum status frozen_once(struct memory_caller *caller, struct error *error)
{
    uint32_t count = 0;
    TRY(count_trust(caller, &count, error));
    return same("events of trust", count, 1, error);
}

static enum status cancel(struct memory_caller *caller, struct error *error)
{
    int64_t count = 0;
    return caller->store->ops->cancel(caller->store, "suite", &count, error);
}

static enum status put_artifact(struct memory_caller *caller, struct error *error)
{
    return caller->store->ops->artifact_put(caller->store, caller->artifact_data,
                                            sizeof caller->artifact_data, caller->artifact, error);
}

static enum status get_artifact(struct memory_caller *caller, struct error *error)
{
    void *data = NULL;
    size_t bytes = 0;
    enum status status =
        caller->store->ops->artifact_get(caller->store, caller->artifact, &data, &bytes, error);

    if (status == STATUS_OK) {
        answer(caller, data, bytes);
        free(data);
    }
    return status;
}

/* ---- what precedes them ---- */

void memory_caller_listen(struct memory_caller *caller)
{
    caller->told_count = 0;
    caller->result_bytes = 0;
}

static void take_names(struct memory_caller *caller)
{
    struct store_worker *worker = &caller->worker;

    caller->serial++;
    caller->claim_id = 1;
    memset(worker, 0, sizeof *worker);
    snprintf(worker->worker_id, sizeof worker->worker_id, "worker-%d", caller->serial);
    snprintf(worker->pool, sizeof worker->pool, "pool-%d", caller->serial);
    strcpy(worker->device, "cpu");
    for (int i = 0; i < MEMORY_JOBS; i++) {
        struct job_spec *spec = &caller->specs[i];
        memset(spec, 0, sizeof *spec);
        snprintf(spec->key, sizeof spec->key, "key-%d-%d", caller->serial, i);
        snprintf(spec->scenario_id, sizeof spec->scenario_id, "scenario-%d", i);
        memcpy(spec->scenario_hash, caller->scenario_hash, sizeof spec->scenario_hash);
        memcpy(spec->pool, worker->pool, sizeof spec->pool);
        strcpy(spec->planner, "builtin:reference");
        spec->tier = TIER_OBJECT;
        spec->rollout_count = i == 0 ? 2 : 1;
        strcpy(spec->escalate_pool, "teacher");
        spec->escalate_tier = TIER_TEACHER;
        spec->attempts_max = 3;
        spec->priority = MEMORY_JOBS - i;
    }
}

enum status memory_nothing(struct memory_caller *caller, struct error *error)
{
    (void)caller;
    (void)error;
    return STATUS_OK;
}

static enum status submit_before(struct memory_caller *caller, struct error *error)
{
    enum status status = submit(caller, error);

    if (status == STATUS_OK) {
        caller->suite_jobs += MEMORY_JOBS;
    }
    return status;
}

static enum status claim_before(struct memory_caller *caller, struct error *error)
{
    int64_t ttl_ms = 0;
    uint32_t count = 0;
    enum status status = submit_before(caller, error);

    if (status == STATUS_OK) {
        status = caller->store->ops->claim(caller->store, &caller->worker, &caller->claim_id,
                                           MEMORY_JOBS, 0, caller->leases, &count, &ttl_ms, error);
    }
    if (status == STATUS_OK) {
        status = same("jobs that were claimed", count, MEMORY_JOBS, error);
    }
    return status;
}

/* A job of each ending: the first two with outcomes, the second one to be escalated. */
static void fill_completions(struct memory_caller *caller)
{
    static const enum completion_kind kinds[MEMORY_JOBS] = {COMPLETION_DONE, COMPLETION_FLAGGED,
                                                            COMPLETION_FAILED, COMPLETION_RELEASED};

    for (int i = 0; i < MEMORY_JOBS; i++) {
        const struct job_lease *lease = &caller->leases[i];
        struct job_completion *completion = &caller->completions[i];
        struct outcome *outcomes = caller->outcomes[i];
        memset(completion, 0, sizeof *completion);
        memset(outcomes, 0, sizeof caller->outcomes[i]);
        completion->job_id = lease->job_id;
        completion->epoch = lease->epoch;
        memcpy(completion->worker_id, caller->worker.worker_id, sizeof completion->worker_id);
        completion->kind = kinds[i];
        completion->device_ns = 1000000;
        if (i < 2) {
            completion->outcomes = outcomes;
            completion->outcome_count = lease->spec.rollout_count;
            memcpy(completion->artifact_hash, caller->artifact, sizeof caller->artifact);
            memcpy(outcomes[0].artifact_hash, caller->artifact, sizeof caller->artifact);
            strcpy(outcomes[1].branch_id, "braked");
            job_context_copy(&lease->spec, &outcomes[0]);
            job_context_copy(&lease->spec, &outcomes[1]);
        }
    }
    strcpy(caller->outcomes[1][0].health_check, "frozen");
    caller->outcomes[1][0].verdict = VERDICT_FLAGGED;
}

static enum status complete_before(struct memory_caller *caller, struct error *error)
{
    enum status status = claim_before(caller, error);

    if (status == STATUS_OK) {
        status = put_artifact(caller, error);
    }
    if (status == STATUS_OK) {
        fill_completions(caller);
    }
    return status;
}

enum status memory_caller_begin(struct memory_caller *caller, struct error *error)
{
    sha256_hex(scenario_body, sizeof scenario_body - 1, caller->scenario_hash);
    caller->suite_jobs = 0;
    enum status status = put_scenario(caller, error);
    if (status != STATUS_OK) {
        return status;
    }
    take_names(caller);
    status = complete_before(caller, error);
    if (status == STATUS_OK) {
        status = complete(caller, error);
    }
    if (status == STATUS_OK) {
        caller->suite_jobs++; /* the teacher's */
        take_names(caller);
    }
    return status;
}

/* The artifact's file and its directory, so that both have to be made again. */
static enum status remove_artifact(const struct memory_caller *caller, struct error *error)
{
    char name[256];

    snprintf(name, sizeof name, "%s.artifacts/%.2s/%s.zst", caller->path, caller->artifact,
             caller->artifact);
    if (unlink(name) != 0) {
        return error_set(error, STATUS_IO, "%s: cannot unlink it: %s", name, strerror(errno));
    }
    *strrchr(name, '/') = '\0';
    if (rmdir(name) != 0) {
        return error_set(error, STATUS_IO, "%s: cannot remove it: %s", name, strerror(errno));
    }
    return STATUS_OK;
}

/* Its name is known, but it is not there. */
static enum status new_artifact(struct memory_caller *caller, struct error *error)
{
    enum status status = put_artifact(caller, error);
    return status == STATUS_OK ? remove_artifact(caller, error) : status;
}

/* ---- what follows them ---- */

static enum status submitted_once(struct memory_caller *caller, struct error *error)
{
    struct store_suite_status found;
    int64_t jobs = 0;
    enum status status = caller->store->ops->suite_status(caller->store, "suite", &found, error);

    if (status != STATUS_OK) {
        return status;
    }
    for (int i = 0; i < JOB_STATE_COUNT; i++) {
        jobs += found.jobs[i];
    }
    return same("jobs of the suite", jobs, caller->suite_jobs + MEMORY_JOBS, error);
}

/* The worker was told of every job of its pool. */
static enum status told_of_every_lease(struct memory_caller *caller, struct error *error)
{
    uint32_t told = 0;

    for (uint32_t i = 0; i < caller->told_count; i++) {
        bool before = false;
        for (uint32_t j = 0; j < i; j++) {
            before = before || caller->told[j] == caller->told[i];
        }
        told += before ? 0 : 1;
    }
    return same("jobs that the worker was told of", told, MEMORY_JOBS, error);
}

static enum status job_completed_once(struct memory_caller *caller, int index,
                                      enum job_state expected, struct error *error)
{
    static struct outcome found[ROWS];
    static struct store_job job;
    struct store *store = caller->store;
    const struct job_completion *completion = &caller->completions[index];
    struct store_outcome_filter filter = {.limit = ROWS, .job_id = completion->job_id};
    uint32_t count = 0;
    enum status status =
        same("status of a completion", caller->completed[index].status, STATUS_OK, error);

    if (status == STATUS_OK) {
        status = store->ops->job(store, completion->job_id, &job, error);
    }
    if (status == STATUS_OK) {
        status = same("state of a job", job.state, expected, error);
    }
    if (status == STATUS_OK) {
        status = store->ops->outcomes(store, &filter, found, &count, error);
    }
    if (status == STATUS_OK) {
        status = same("outcomes of a job", count, completion->outcome_count, error);
    }
    return status;
}

static enum status completed_once(struct memory_caller *caller, struct error *error)
{
    static const enum job_state states[MEMORY_JOBS] = {JOB_DONE, JOB_FLAGGED, JOB_QUEUED,
                                                       JOB_QUEUED};
    enum status status =
        same("an escalated job", caller->completed[1].escalated_job_id > 0, true, error);

    for (int i = 0; i < MEMORY_JOBS && status == STATUS_OK; i++) {
        status = job_completed_once(caller, i, states[i], error);
    }
    return status;
}

static enum status artifact_is_there(struct memory_caller *caller, struct error *error)
{
    caller->result_bytes = 0;
    enum status status = get_artifact(caller, error);
    if (status != STATUS_OK) {
        return status;
    }
    if (caller->result_bytes != sizeof caller->artifact_data ||
        memcmp(caller->result, caller->artifact_data, caller->result_bytes) != 0) {
        return error_set(error, STATUS_MISMATCH,
                         "artifact %s: expected the %zu bytes that were put, found %zu others",
                         caller->artifact, sizeof caller->artifact_data, caller->result_bytes);
    }
    return remove_artifact(caller, error);
}

/* ---- partial outcomes ---- */

static enum status partials_before(struct memory_caller *caller, struct error *error)
{
    enum status status = complete_before(caller, error);
    return status == STATUS_OK ? hand_over(caller, error) : status;
}

/* Then the job goes on to its end. */
static enum status handed_over_once(struct memory_caller *caller, struct error *error)
{
    uint32_t count = 0;
    struct outcome found[2];
    enum status status = caller->store->ops->partials(caller->store, caller->leases[0].job_id,
                                                      found, 2, &count, error);

    if (status == STATUS_OK) {
        status = same("partial outcomes", count, 1, error);
    }
    return status;
}

/* ---- the table ---- */

const struct memory_call memory_calls[] = {
    {"scenario_put", memory_nothing, put_scenario, memory_nothing, false},
    {"scenario_get", memory_nothing, get_scenario, memory_nothing, true},
    {"submit", memory_nothing, submit, submitted_once, false},
    {"claim", submit_before, claim, told_of_every_lease, false},
    {"heartbeat", claim_before, heartbeat, memory_nothing, false},
    {"complete", complete_before, complete, completed_once, false},
    {"worker_gone", claim_before, worker_gone, memory_nothing, false},
    {"partial", complete_before, hand_over, handed_over_once, false},
    {"partials", partials_before, look_partials, memory_nothing, true},
    {"awaited", claim_before, look_awaited, memory_nothing, true},
    {"suite_status", memory_nothing, suite_status, memory_nothing, true},
    {"suites", memory_nothing, suites, memory_nothing, true},
    {"outcomes", memory_nothing, look_outcomes, memory_nothing, true},
    {"job", memory_nothing, look_job, memory_nothing, true},
    {"jobs_in_state", memory_nothing, look_jobs_in_state, memory_nothing, true},
    {"dead_jobs", memory_nothing, look_dead, memory_nothing, true},
    {"ledger", memory_nothing, look_ledger, memory_nothing, true},
    {"price_set", memory_nothing, set_price, memory_nothing, false},
    {"price_get", memory_nothing, get_price, memory_nothing, true},
    {"model_add", put_weights, add_model, model_is_there, false},
    {"models", add_model_before, look_models, memory_nothing, true},
    {"model_event", add_model_before, promote_model, promoted_once, false},
    {"model_events", add_model_before, look_events, memory_nothing, true},
    {"trust_event", memory_nothing, freeze_all, frozen_once, false},
    {"trust_events", freeze_all, look_trust, memory_nothing, true},
    {"golden_add", put_golden_list, add_golden, golden_is_there, false},
    {"goldens", add_golden_before, look_goldens, memory_nothing, true},
    {"golden_drop", add_golden_before, drop_golden, golden_is_gone, false},
    {"label_add", memory_nothing, add_label, label_is_there, false},
    {"label_drop", add_label, drop_label, label_is_gone, false},
    {"planner_keep", memory_nothing, keep_planner, planner_is_kept, false},
    {"planner_kept", keep_planner, kept_planner, memory_nothing, true},
    {"labels", add_label, look_labels, memory_nothing, true},
    {"cancel", memory_nothing, cancel, memory_nothing, false},
    {"artifact_put", new_artifact, put_artifact, artifact_is_there, false},
    {"artifact_get", put_artifact, get_artifact, memory_nothing, true},
};
const size_t memory_call_count = COUNT_OF(memory_calls);
