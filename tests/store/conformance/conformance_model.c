/*
 * The conformance suite's random part: calls against a store and against a model that fits on a
 * page of paper. See conformance.h.
 *
 * Method: a small world (three suites, a few dozen keys, five workers), so that calls collide:
 * duplicate keys, late and repeated completions under old epochs, foreign workers, leases that run
 * out, cancelled suites. After each call its answer must be the model's; now and then everything
 * that can be read must be, too. Which of several claimable jobs a claim returns is left to the
 * directed tests: the model checks that it was claimable and that no more could be had.
 */
#include "base/rng.h"
#include "base/units.h"
#include "tests/claim_ids.h"
#include "tests/store/conformance/conformance.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUITES = 3,
    KEYS = 40,
    WORKERS = 5, /* the last one is of the teacher pool */
    JOBS_MAX = 1024,
    ATTEMPTS_MAX = 8192,
    BATCH_MAX = 6,
    PLANNERS = 8,
    HOSTS_BLAMED = 2, /* that could not start a planner which nobody has driven */
    END_DONE = 0,
    END_FLAGGED,
    END_FAILED,
    END_RELEASED,
    END_LOST,
    END_STALE,
    END_COUNT
};

static const char *const end_names[END_COUNT] = {
    "done", "flagged", "failed", "released", "lost", "stale",
};

struct model_job {
    int64_t id;
    int suite;
    int key; /* -1: escalated */
    int planner;
    int pool;
    enum job_state state;
    int64_t epoch;
    int64_t attempts;
    int64_t lost;
    int worker;
    int64_t due_ns;
    int64_t delay_ns;
    int64_t progress_ns;
    uint32_t rollouts;
    uint32_t attempts_max;
    bool memoised;
    bool child;
};

/* Every lease ever given; `end` -1 while it runs. */
struct model_attempt {
    int job;
    int64_t epoch;
    int worker;
    int end;
    int64_t device_ns;
    int64_t escalated;
};

struct model {
    const struct model_config *config;
    struct store *store;
    uint64_t random;
    struct error error;
    char *why;
    size_t why_bytes;
    int job_count;
    int attempt_count;
    int64_t lease_until_ns[WORKERS];
    char scenario_hash[SHA256_HEX_BYTES];
    int64_t flagged_outcomes[SUITES];
    int unstarted[PLANNERS][WORKERS]; /* 1 + the suite that last asked for it; each is a host */
    bool driven[PLANNERS];
    struct model_job jobs[JOBS_MAX];
    struct model_attempt attempts[ATTEMPTS_MAX];
    struct job_spec specs[BATCH_MAX];
    struct store_submit_result submitted[BATCH_MAX];
    struct job_lease leases[BATCH_MAX];
    struct job_completion completions[BATCH_MAX];
    struct store_completion_result completed[BATCH_MAX];
    struct outcome outcomes[BATCH_MAX][4];
    struct outcome page[1000];
    struct store_job job;
};

static uint64_t draw(struct model *model, uint64_t bound)
{
    model->random = rng_mix(model->random + 1);
    return (model->random >> 16) % bound;
}

static bool differ(struct model *model, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(model->why, model->why_bytes, format, args);
    va_end(args);
    return false;
}

static int64_t model_now(const struct model *model)
{
    return clock_now_ns(&model->config->clock->clock);
}

static void suite_name(int suite, char out[LIMIT_ID_BYTES])
{
    snprintf(out, LIMIT_ID_BYTES, "suite-%d", suite);
}

static const char *pool_name(int pool)
{
    return pool == 0 ? "bulk" : "teacher";
}

static int worker_pool(int worker)
{
    return worker == WORKERS - 1 ? 1 : 0;
}

static struct store_worker worker_record(int worker)
{
    struct store_worker record = {.device = "cpu"};
    snprintf(record.worker_id, sizeof record.worker_id, "worker-%d", worker);
    snprintf(record.pool, sizeof record.pool, "%s", pool_name(worker_pool(worker)));
    return record;
}

static struct model_job *find_job(struct model *model, int64_t id)
{
    for (int i = 0; i < model->job_count; i++) {
        if (model->jobs[i].id == id) {
            return &model->jobs[i];
        }
    }
    return NULL;
}

static struct model_attempt *find_attempt(struct model *model, const struct model_job *job,
                                          int64_t epoch)
{
    for (int i = 0; i < model->attempt_count; i++) {
        struct model_attempt *attempt = &model->attempts[i];
        if (&model->jobs[attempt->job] == job && attempt->epoch == epoch) {
            return attempt;
        }
    }
    return NULL;
}

/* ---- the model's rules ---- */

static void lose(struct model *model, struct model_job *job, enum job_state state)
{
    struct model_attempt *attempt = find_attempt(model, job, job->epoch);
    attempt->end = END_LOST;
    attempt->device_ns = job->progress_ns;
    job->lost++;
    job->state = state;
}

static void lose_worker(struct model *model, int worker)
{
    int held = 0;
    for (int i = 0; i < model->job_count; i++) {
        held += model->jobs[i].state == JOB_LEASED && model->jobs[i].worker == worker;
    }
    /* Lost five times, the last time as all that its worker held: dead; in company, twenty. */
    int64_t lost_max = held == 1 ? 5 : 20;
    for (int i = 0; i < model->job_count; i++) {
        struct model_job *job = &model->jobs[i];
        if (job->state == JOB_LEASED && job->worker == worker) {
            lose(model, job, job->lost + 1 >= lost_max ? JOB_DEAD : JOB_QUEUED);
        }
    }
}

/* What time has brought about. */
static void sweep(struct model *model)
{
    int64_t now_ns = model_now(model);

    for (int worker = 0; worker < WORKERS; worker++) {
        if (model->lease_until_ns[worker] <= now_ns) {
            lose_worker(model, worker);
        }
    }
    for (int i = 0; i < model->job_count; i++) {
        if (model->jobs[i].due_ns <= now_ns) {
            model->jobs[i].due_ns = 0;
        }
    }
}

static void renew(struct model *model, int worker)
{
    model->lease_until_ns[worker] = model_now(model) + model->config->lease_ttl_ms * NS_PER_MS;
}

static bool claimable(const struct model_job *job, int pool)
{
    return job->state == JOB_QUEUED && job->due_ns == 0 && job->pool == pool;
}

static void fail_job(struct model *model, struct model_job *job)
{
    int64_t failures = job->attempts - job->lost;
    int64_t delay_ns = model->config->backoff_ms * NS_PER_MS;

    if (failures >= (int64_t)job->attempts_max) {
        job->state = JOB_DEAD;
        return;
    }
    for (int64_t i = 1; i < failures; i++) {
        delay_ns *= 2;
    }
    job->state = JOB_QUEUED;
    job->due_ns = model_now(model) + (delay_ns < 60 * NS_PER_S ? delay_ns : 60 * NS_PER_S);
}

static void add_child(struct model *model, const struct model_job *parent, int64_t id)
{
    struct model_job *child = &model->jobs[model->job_count++];

    *child = (struct model_job){
        .id = id,
        .suite = parent->suite,
        .key = -1,
        .pool = 1,
        .state = JOB_QUEUED,
        .worker = -1,
        .planner = parent->planner,
        .rollouts = parent->rollouts,
        .attempts_max = parent->attempts_max,
        .child = true,
    };
}

/* The worker's host cannot start the job's planner. Whether it is the planner that is at fault. */
static bool note_unstarted(struct model *model, const struct model_job *job, int worker)
{
    int hosts = 0;

    model->unstarted[job->planner][worker] = 1 + job->suite;
    for (int i = 0; i < WORKERS; i++) {
        hosts += model->unstarted[job->planner][i] > 0;
    }
    return !model->driven[job->planner] && hosts >= HOSTS_BLAMED;
}

static void note_driven(struct model *model, const struct model_job *job, int worker)
{
    model->driven[job->planner] = true;
    model->unstarted[job->planner][worker] = 0;
}

/* The status that the completion must get; changes the model accordingly. */
static enum status model_complete(struct model *model, const struct job_completion *completion,
                                  int worker, int64_t escalated, int64_t *expect_escalated,
                                  bool *excused)
{
    static const int ends[] = {[COMPLETION_DONE] = END_DONE,
                               [COMPLETION_FLAGGED] = END_FLAGGED,
                               [COMPLETION_FAILED] = END_FAILED,
                               [COMPLETION_RELEASED] = END_RELEASED,
                               [COMPLETION_UNSTARTED] = END_RELEASED};
    bool unstarted = completion->kind == COMPLETION_UNSTARTED;
    struct model_job *job = find_job(model, completion->job_id);
    struct model_attempt *attempt = find_attempt(model, job, completion->epoch);

    *expect_escalated = 0;
    *excused = false;
    if (attempt == NULL || attempt->worker != worker) {
        return STATUS_STALE;
    }
    bool current = completion->epoch == job->epoch;
    bool late = job->state == JOB_QUEUED && attempt->end == END_LOST;
    if (!current || !(job->state == JOB_LEASED || late)) {
        if (attempt->end == ends[completion->kind] || (unstarted && attempt->end == END_FAILED)) {
            *excused = unstarted && attempt->end == END_RELEASED;
            *expect_escalated = attempt->escalated;
            return STATUS_OK;
        }
        if (attempt->end == END_LOST) {
            attempt->end = END_STALE;
            if (completion->device_ns > attempt->device_ns) {
                attempt->device_ns = completion->device_ns;
            }
        }
        return STATUS_STALE;
    }
    job->lost -= late ? 1 : 0;
    bool blamed = unstarted && note_unstarted(model, job, worker);
    *excused = unstarted && !blamed;
    attempt->end = blamed ? END_FAILED : ends[completion->kind];
    if (!late || completion->device_ns > attempt->device_ns) {
        attempt->device_ns = completion->device_ns;
    }
    switch (blamed ? COMPLETION_FAILED : completion->kind) {
    case COMPLETION_DONE:
        job->state = JOB_DONE;
        note_driven(model, job, worker);
        break;
    case COMPLETION_FLAGGED:
        job->state = completion->escalate_pool[0] != '\0' ? JOB_FLAGGED : JOB_DEAD;
        model->flagged_outcomes[job->suite] += completion->outcome_count;
        if (job->state == JOB_FLAGGED) {
            note_driven(model, job, worker);
            attempt->escalated = escalated;
            *expect_escalated = escalated;
            add_child(model, job, escalated);
        }
        break;
    case COMPLETION_FAILED:
        fail_job(model, job);
        break;
    default:
        job->state = JOB_QUEUED;
        job->attempts--;
        break;
    }
    return STATUS_OK;
}

/* ---- calls ---- */

static void make_spec(struct model *model, int suite, int key, struct job_spec *spec)
{
    memset(spec, 0, sizeof *spec);
    snprintf(spec->key, sizeof spec->key, "key-%d", key);
    suite_name(suite, spec->suite_id);
    snprintf(spec->scenario_id, sizeof spec->scenario_id, "scenario-%d", key);
    memcpy(spec->scenario_hash, model->scenario_hash, sizeof spec->scenario_hash);
    strcpy(spec->pool, "bulk");
    snprintf(spec->planner, sizeof spec->planner, "builtin:%d", key % PLANNERS);
    spec->tier = TIER_OBJECT;
    spec->priority = key % 4;
    spec->rollout_count = 1 + (uint32_t)key % 3;
    spec->attempts_max = 1 + (uint32_t)key % 3;
    if (key % 5 != 0) {
        snprintf(spec->prefix_key, sizeof spec->prefix_key, "prefix-%d", key % 5);
    }
}

static bool check_submitted(struct model *model, int suite, int key,
                            const struct store_submit_result *result, const struct job_spec *spec)
{
    bool done_elsewhere = false;

    for (int i = 0; i < model->job_count; i++) {
        const struct model_job *job = &model->jobs[i];
        if (job->key == key && job->suite == suite) {
            if (!result->existed || result->job_id != job->id ||
                result->memoised != job->memoised) {
                return differ(model, "submit: key %d of suite %d was there before", key, suite);
            }
            return true;
        }
        done_elsewhere |= job->key == key && job->state == JOB_DONE;
    }
    if (result->existed || result->memoised != done_elsewhere ||
        find_job(model, result->job_id) != NULL) {
        return differ(model, "submit: key %d of suite %d is new (memoised %d, found %d)", key,
                      suite, done_elsewhere, result->memoised);
    }
    model->jobs[model->job_count++] = (struct model_job){
        .id = result->job_id,
        .suite = suite,
        .key = key,
        .planner = key % PLANNERS,
        .state = done_elsewhere ? JOB_DONE : JOB_QUEUED,
        .worker = -1,
        .rollouts = spec->rollout_count,
        .attempts_max = spec->attempts_max,
        .memoised = done_elsewhere,
    };
    return true;
}

static bool call_submit(struct model *model)
{
    char name[LIMIT_ID_BYTES];
    int keys[BATCH_MAX];
    int suite = (int)draw(model, SUITES);
    uint32_t count = 1 + (uint32_t)draw(model, BATCH_MAX);

    suite_name(suite, name);
    for (uint32_t i = 0; i < count; i++) {
        keys[i] = (int)draw(model, KEYS);
        make_spec(model, suite, keys[i], &model->specs[i]);
    }
    if (model->store->ops->submit(model->store, name, 1 + (uint32_t)suite, model->specs, count,
                                  model->submitted, &model->error) != STATUS_OK) {
        return differ(model, "submit: %s", model->error.text);
    }
    sweep(model);
    for (uint32_t i = 0; i < count; i++) {
        if (!check_submitted(model, suite, keys[i], &model->submitted[i], &model->specs[i])) {
            return false;
        }
    }
    return true;
}

static bool check_claimed(struct model *model, int worker, const struct job_lease *lease)
{
    struct model_job *job = find_job(model, lease->job_id);

    if (job == NULL || !claimable(job, worker_pool(worker))) {
        return differ(model, "claim: job %" PRId64 " was not claimable", lease->job_id);
    }
    job->state = JOB_LEASED;
    job->epoch++;
    job->attempts++;
    job->worker = worker;
    job->progress_ns = 0;
    if (lease->epoch != job->epoch || lease->attempt != job->attempts ||
        lease->spec.rollout_count != job->rollouts) {
        return differ(model, "claim: job %" PRId64 ": epoch %" PRId64 " not %" PRId64, job->id,
                      lease->epoch, job->epoch);
    }
    model->attempts[model->attempt_count++] = (struct model_attempt){
        .job = (int)(job - model->jobs), .epoch = job->epoch, .worker = worker, .end = -1};
    return true;
}

static bool call_claim(struct model *model)
{
    int worker = (int)draw(model, WORKERS);
    struct store_worker record = worker_record(worker);
    uint32_t max = 1 + (uint32_t)draw(model, BATCH_MAX);
    uint32_t count = 0;
    uint32_t available = 0;
    int64_t ttl_ms = 0;

    if (model->store->ops->claim(model->store, &record, fresh_claim_id(), max, 0, model->leases,
                                 &count, &ttl_ms, &model->error) != STATUS_OK) {
        return differ(model, "claim: %s", model->error.text);
    }
    sweep(model);
    renew(model, worker);
    for (int i = 0; i < model->job_count; i++) {
        available += claimable(&model->jobs[i], worker_pool(worker));
    }
    if (count != (available < max ? available : max)) {
        return differ(model, "claim: %" PRIu32 " of %" PRIu32 " wanted, %" PRIu32 " claimable",
                      count, max, available);
    }
    for (uint32_t i = 0; i < count; i++) {
        if (!check_claimed(model, worker, &model->leases[i])) {
            return false;
        }
    }
    return true;
}

/* A lease given lately, mostly still running. */
static struct model_attempt *draw_attempt(struct model *model)
{
    int span = model->attempt_count < 25 ? model->attempt_count : 25;
    return &model->attempts[model->attempt_count - 1 - (int)draw(model, (uint64_t)span)];
}

static bool call_heartbeat(struct model *model)
{
    struct store_progress progress[3];
    int64_t cancelled[3];
    uint32_t cancelled_count = 0;
    uint32_t count = model->attempt_count > 0 ? (uint32_t)draw(model, 4) : 0;
    int64_t ttl_ms = 0;
    int worker = (int)draw(model, WORKERS);
    struct store_worker record = worker_record(worker);
    uint32_t expected = 0;

    for (uint32_t i = 0; i < count; i++) {
        struct model_attempt *attempt = draw_attempt(model);
        progress[i] = (struct store_progress){.job_id = model->jobs[attempt->job].id,
                                              .epoch = attempt->epoch,
                                              .device_ns = (int64_t)draw(model, 1 << 30)};
    }
    if (model->store->ops->heartbeat(model->store, &record, progress, count, cancelled,
                                     &cancelled_count, &ttl_ms, &model->error) != STATUS_OK) {
        return differ(model, "heartbeat: %s", model->error.text);
    }
    sweep(model);
    renew(model, worker);
    for (uint32_t i = 0; i < count; i++) {
        struct model_job *job = find_job(model, progress[i].job_id);
        bool valid = job->epoch == progress[i].epoch && job->worker == worker &&
                     (job->state == JOB_LEASED || job->state == JOB_QUEUED);
        if (valid && job->state == JOB_LEASED && progress[i].device_ns > job->progress_ns) {
            job->progress_ns = progress[i].device_ns;
        }
        if (!valid && (expected >= cancelled_count || cancelled[expected] != job->id)) {
            return differ(model, "heartbeat: job %" PRId64 " is over, but not listed", job->id);
        }
        expected += valid ? 0 : 1;
    }
    if (expected != cancelled_count) {
        return differ(model, "heartbeat: %" PRIu32 " listed, %" PRIu32 " expected", cancelled_count,
                      expected);
    }
    return true;
}

static void make_completion(struct model *model, uint32_t index, int *worker)
{
    struct job_completion *completion = &model->completions[index];
    const struct model_attempt *attempt = draw_attempt(model);
    const struct model_job *job = &model->jobs[attempt->job];
    uint64_t dice = draw(model, 10);

    memset(completion, 0, sizeof *completion);
    completion->job_id = job->id;
    completion->epoch = attempt->epoch;
    *worker = draw(model, 20) == 0 ? (int)draw(model, WORKERS) : attempt->worker;
    snprintf(completion->worker_id, sizeof completion->worker_id, "worker-%d", *worker);
    completion->kind = dice < 5   ? COMPLETION_DONE
                       : dice < 6 ? COMPLETION_FLAGGED
                       : dice < 7 ? COMPLETION_FAILED
                       : dice < 8 ? COMPLETION_UNSTARTED
                                  : COMPLETION_RELEASED;
    completion->device_ns = (int64_t)draw(model, UINT64_C(1) << 36);
    completion->metres_mm = 1000;
    completion->mflop = completion->device_ns / 3;
    completion->outcomes = model->outcomes[index];
    if (completion->kind == COMPLETION_DONE) {
        completion->outcome_count = job->rollouts;
    } else if (completion->kind == COMPLETION_FLAGGED) {
        completion->outcome_count = (uint32_t)draw(model, job->rollouts + 1);
        strcpy(completion->escalate_pool, draw(model, 2) == 0 ? "teacher" : "");
        completion->escalate_tier = TIER_TEACHER;
    }
}

static bool call_complete(struct model *model)
{
    int workers[BATCH_MAX];
    uint32_t count = 1 + (uint32_t)draw(model, BATCH_MAX);

    if (model->attempt_count == 0) {
        return true;
    }
    for (uint32_t i = 0; i < count; i++) {
        make_completion(model, i, &workers[i]);
    }
    if (model->store->ops->complete(model->store, model->completions, count, model->completed,
                                    &model->error) != STATUS_OK) {
        return differ(model, "complete: %s", model->error.text);
    }
    sweep(model);
    for (uint32_t i = 0; i < count; i++) {
        const struct store_completion_result *result = &model->completed[i];
        int64_t escalated = 0;
        bool excused = false;
        enum status expected = model_complete(model, &model->completions[i], workers[i],
                                              result->escalated_job_id, &escalated, &excused);
        if (result->status != expected || result->escalated_job_id != escalated ||
            result->excused != excused ||
            (escalated != 0 && escalated == model->completions[i].job_id)) {
            return differ(model,
                          "complete: job %" PRId64 " epoch %" PRId64 " kind %s: %s, expected %s",
                          model->completions[i].job_id, model->completions[i].epoch,
                          completion_kind_names[model->completions[i].kind],
                          status_name(result->status), status_name(expected));
        }
    }
    return true;
}

static bool call_cancel(struct model *model)
{
    char name[LIMIT_ID_BYTES];
    int suite = (int)draw(model, SUITES);
    int64_t count = 0;
    int64_t expected = 0;
    bool known = false;

    suite_name(suite, name);
    enum status status = model->store->ops->cancel(model->store, name, &count, &model->error);
    sweep(model);
    for (int i = 0; i < model->job_count; i++) {
        struct model_job *job = &model->jobs[i];
        known |= job->suite == suite;
        if (job->suite != suite) {
            continue;
        }
        if (job->state == JOB_QUEUED) {
            job->state = JOB_CANCELLED;
            expected++;
        } else if (job->state == JOB_LEASED) {
            lose(model, job, JOB_CANCELLED);
            expected++;
        }
    }
    if (status != (known ? STATUS_OK : STATUS_NOT_FOUND) || (known && count != expected)) {
        return differ(model, "cancel: %" PRId64 ", expected %" PRId64, count, expected);
    }
    return true;
}

static bool call_worker_gone(struct model *model)
{
    int worker = (int)draw(model, WORKERS);
    struct store_worker record = worker_record(worker);

    if (model->store->ops->worker_gone(model->store, record.worker_id, &model->error) !=
        STATUS_OK) {
        return differ(model, "worker_gone: %s", model->error.text);
    }
    sweep(model);
    lose_worker(model, worker);
    model->lease_until_ns[worker] = 0;
    return true;
}

/* ---- everything that can be read ---- */

static bool check_jobs(struct model *model)
{
    for (int i = 0; i < model->job_count; i++) {
        const struct model_job *expected = &model->jobs[i];
        const struct store_job *job = &model->job;
        if (model->store->ops->job(model->store, expected->id, &model->job, &model->error) !=
            STATUS_OK) {
            return differ(model, "job: %s", model->error.text);
        }
        if (job->state != expected->state || job->epoch != expected->epoch ||
            job->attempts != expected->attempts) {
            return differ(model,
                          "job %" PRId64 ": %s epoch %" PRId64 ", expected %s epoch %" PRId64,
                          job->id, job_state_names[job->state], job->epoch,
                          job_state_names[expected->state], expected->epoch);
        }
    }
    return true;
}

static bool check_suite(struct model *model, int suite)
{
    char name[LIMIT_ID_BYTES];
    struct store_suite_status status;
    struct store_suite_status expected = {0};
    bool known = false;

    for (int i = 0; i < model->job_count; i++) {
        const struct model_job *job = &model->jobs[i];
        if (job->suite != suite) {
            continue;
        }
        known = true;
        expected.jobs[job->state]++;
        expected.memoised_jobs += job->memoised;
        expected.rollouts_total += job->child ? 0 : job->rollouts;
        expected.rollouts[VERDICT_PASS] += job->state == JOB_DONE ? job->rollouts : 0;
    }
    for (int i = 0; i < model->attempt_count; i++) {
        if (model->jobs[model->attempts[i].job].suite == suite && model->attempts[i].end >= 0) {
            expected.device_ns += model->attempts[i].device_ns;
        }
    }
    for (int worker = 0; worker < WORKERS; worker++) {
        bool asked = false;
        for (int i = 0; i < PLANNERS; i++) {
            asked |= model->unstarted[i][worker] == 1 + suite;
        }
        expected.unstarted_hosts += asked;
    }
    expected.rollouts[VERDICT_FLAGGED] = model->flagged_outcomes[suite];
    suite_name(suite, name);
    if (!known) {
        return true;
    }
    if (model->store->ops->suite_status(model->store, name, &status, &model->error) != STATUS_OK) {
        return differ(model, "suite_status: %s", model->error.text);
    }
    if (memcmp(status.jobs, expected.jobs, sizeof status.jobs) != 0 ||
        memcmp(status.rollouts, expected.rollouts, sizeof status.rollouts) != 0 ||
        status.rollouts_total != expected.rollouts_total ||
        status.unstarted_hosts != expected.unstarted_hosts ||
        status.memoised_jobs != expected.memoised_jobs || status.device_ns != expected.device_ns) {
        return differ(
            model,
            "suite %d: done %" PRId64 " (expected %" PRId64 "), queued %" PRId64 " (%" PRId64
            "), passes %" PRId64 " (%" PRId64 "), device_ns %" PRId64 " (%" PRId64 ")",
            suite, status.jobs[JOB_DONE], expected.jobs[JOB_DONE], status.jobs[JOB_QUEUED],
            expected.jobs[JOB_QUEUED], status.rollouts[VERDICT_PASS],
            expected.rollouts[VERDICT_PASS], status.device_ns, expected.device_ns);
    }
    struct store_outcome_filter filter = {.limit = 1000};
    uint32_t count = 0;
    int64_t total = 0;
    suite_name(suite, filter.suite_id);
    do {
        if (model->store->ops->outcomes(model->store, &filter, model->page, &count,
                                        &model->error) != STATUS_OK) {
            return differ(model, "outcomes: %s", model->error.text);
        }
        total += count;
        filter.after_id = count > 0 ? model->page[count - 1].id : 0;
    } while (count == filter.limit);
    if (total != expected.rollouts[VERDICT_PASS] + expected.rollouts[VERDICT_FLAGGED]) {
        return differ(model, "suite %d: %" PRId64 " outcomes", suite, total);
    }
    return true;
}

/* Attempts and device time by how they ended; money per pool is exact to the micro-dollar. */
static bool check_ledger(struct model *model)
{
    struct store_ledger_row rows[64];
    struct ledger_totals expected[2][END_COUNT] = {0};
    uint32_t count = 0;
    int64_t cost_uusd[2] = {0};
    __int128 owed[2] = {0};

    for (int i = 0; i < model->attempt_count; i++) {
        const struct model_attempt *attempt = &model->attempts[i];
        int pool = model->jobs[attempt->job].pool;
        if (attempt->end >= 0) {
            expected[pool][attempt->end].attempts++;
            expected[pool][attempt->end].device_ns += attempt->device_ns;
            owed[pool] += (__int128)attempt->device_ns * 40000;
        }
    }
    if (model->store->ops->ledger(model->store, NULL, rows, 64, &count, &model->error) !=
        STATUS_OK) {
        return differ(model, "ledger: %s", model->error.text);
    }
    for (uint32_t i = 0; i < count; i++) {
        int pool = strcmp(rows[i].pool, "teacher") == 0 ? 1 : 0;
        cost_uusd[pool] += rows[i].totals.cost_uusd;
        for (int end = 0; end < END_COUNT; end++) {
            if (strcmp(rows[i].end, end_names[end]) == 0) {
                expected[pool][end].attempts -= rows[i].totals.attempts;
                expected[pool][end].device_ns -= rows[i].totals.device_ns;
            }
        }
    }
    for (int pool = 0; pool < 2; pool++) {
        for (int end = 0; end < END_COUNT; end++) {
            if (expected[pool][end].attempts != 0 || expected[pool][end].device_ns != 0) {
                return differ(model, "ledger: %s %s is off by %" PRId64 " attempts, %" PRId64 " ns",
                              pool_name(pool), end_names[end], expected[pool][end].attempts,
                              expected[pool][end].device_ns);
            }
        }
        if (cost_uusd[pool] != (int64_t)(owed[pool] / NS_PER_HOUR)) {
            return differ(model, "ledger: %s costs %" PRId64 " uusd, expected %" PRId64,
                          pool_name(pool), cost_uusd[pool], (int64_t)(owed[pool] / NS_PER_HOUR));
        }
    }
    return true;
}

static bool check_all(struct model *model)
{
    for (int suite = 0; suite < SUITES; suite++) {
        if (!check_suite(model, suite)) {
            return false;
        }
    }
    return check_jobs(model) && check_ledger(model);
}

static bool step(struct model *model)
{
    uint64_t dice = draw(model, 100);

    if (dice < 15) {
        return call_submit(model);
    }
    if (dice < 45) {
        return call_claim(model);
    }
    if (dice < 75) {
        return call_complete(model);
    }
    if (dice < 87) {
        return call_heartbeat(model);
    }
    if (dice < 90) {
        return call_worker_gone(model);
    }
    if (dice < 91) {
        return call_cancel(model);
    }
    if (dice < 97) {
        manual_clock_advance(model->config->clock, (int64_t)draw(model, 2000) * NS_PER_MS);
        return true;
    }
    if (dice < 98) {
        manual_clock_advance(model->config->clock, model->config->lease_ttl_ms * NS_PER_MS);
        return true;
    }
    return call_heartbeat(model) && check_all(model); /* the call makes time take effect */
}

bool conformance_model(const struct model_config *config, char *why, size_t why_bytes)
{
    static const char body[] = "{\"model\":1}";
    struct model *model = calloc(1, sizeof *model);
    bool equal = model != NULL;

    if (model == NULL) {
        snprintf(why, why_bytes, "out of memory");
        return false;
    }
    model->config = config;
    model->store = config->store;
    model->random = config->seed;
    model->why = why;
    model->why_bytes = why_bytes;
    sha256_hex(body, sizeof body - 1, model->scenario_hash);
    if (config->store->ops->scenario_put(config->store, model->scenario_hash, body, sizeof body - 1,
                                         &model->error) != STATUS_OK) {
        equal = differ(model, "scenario_put: %s", model->error.text);
    }
    for (uint32_t i = 0; i < config->steps && equal; i++) {
        equal = step(model);
        if (!equal) {
            size_t used = strlen(why);
            snprintf(why + used, why_bytes - used, " (step %" PRIu32 ")", i);
        }
    }
    equal = equal && call_heartbeat(model) && check_all(model);
    free(model);
    return equal;
}
