/*
 * The conformance suite's random part: calls against a store and against the model of job stores
 * (tests/store/model). See conformance.h.
 *
 * Method: a small world (three suites, a few dozen keys, five workers), so that calls collide:
 * duplicate keys, late and repeated completions under old epochs, claims that are repeated, foreign
 * workers, leases that run out, cancelled suites. After each call its answer must be the model's;
 * now and then everything that can be read must be, too.
 */
#include "base/rng.h"
#include "base/units.h"
#include "schemas/job_context.h"
#include "tests/store/conformance/conformance.h"
#include "tests/store/model/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SUITES = 4,
    KEYS = 40,
    WORKERS = 5, /* the last one is of the teacher pool */
    BATCH_MAX = 6,
    PLANNERS = 8,
    LEASES_MAX = 8192
};

static const char scenario_body[] = MODEL_SCENARIO_BODY;

/* A lease that was given, perhaps over by now. */
struct given {
    struct job_lease lease;
    int worker;
};

struct play {
    struct store *store;
    struct manual_clock *clock;
    struct model *model;
    bool tenants; /* suites are tenants' */
    uint64_t random;
    struct error error;
    char scenario_hash[SHA256_HEX_BYTES];
    int64_t claim_ids[WORKERS]; /* of the next claim */
    uint32_t claim_max[WORKERS];
    struct given *given;
    int given_count;
    struct job_spec specs[BATCH_MAX];
    struct store_submit_result submitted[BATCH_MAX];
    struct job_lease leases[BATCH_MAX];
    struct job_completion completions[BATCH_MAX];
    struct store_completion_result completed[BATCH_MAX];
    struct outcome outcomes[BATCH_MAX][MODEL_ROLLOUTS_MAX];
};

static uint64_t draw(struct play *play, uint64_t bound)
{
    play->random = rng_mix(play->random + 1);
    return (play->random >> 16) % bound;
}

/* A call that has no reason to fail; to be followed by what the model says of it. */
static bool answered(struct play *play, const char *call, enum status status)
{
    return status == STATUS_OK || model_differ(play->model, "%s: %s", call, play->error.text);
}

/* Before each call that writes: time takes effect. */
static void now(struct play *play)
{
    model_time(play->model, clock_now_ns(&play->clock->clock));
}

static void suite_name(int suite, char out[LIMIT_ID_BYTES])
{
    snprintf(out, LIMIT_ID_BYTES, "suite-%d", suite);
}

static struct store_worker worker_record(int worker)
{
    struct store_worker record = {.device = "cpu"};
    snprintf(record.worker_id, sizeof record.worker_id, "worker-%d", worker);
    snprintf(record.pool, sizeof record.pool, "%s", model_pools[worker == WORKERS - 1]);
    return record;
}

/* ---- calls ---- */

static void make_spec(struct play *play, int suite, int key, struct job_spec *spec)
{
    memset(spec, 0, sizeof *spec);
    snprintf(spec->key, sizeof spec->key, "key-%d", key);
    suite_name(suite, spec->suite_id);
    snprintf(spec->scenario_id, sizeof spec->scenario_id, "scenario-%d", key);
    memcpy(spec->scenario_hash, play->scenario_hash, sizeof spec->scenario_hash);
    strcpy(spec->pool, model_pools[0]);
    snprintf(spec->planner, sizeof spec->planner, "builtin:%d", key % PLANNERS);
    spec->tier = TIER_OBJECT;
    spec->priority = key % 4;
    spec->rollout_count = 1 + (uint32_t)key % 3;
    spec->attempts_max = 1 + (uint32_t)key % 3;
    if (key % 2 == 0) {
        snprintf(spec->escalate_pool, sizeof spec->escalate_pool, "%s", model_pools[1]);
        spec->escalate_tier = TIER_TEACHER;
    }
    if (key % 5 != 0) {
        snprintf(spec->prefix_key, sizeof spec->prefix_key, "prefix-%d", key % 5);
    }
}

/* Whose suites are. The first tenant may have few rollouts leased, the second few jobs queued. */
static const int tenants[SUITES] = {0, 1, 2, 1};
static const char *const tenant_names[MODEL_TENANTS] = {"", "acme", "beta"};
static const struct tenant tenant_settings[] = {
    {.name = "acme", .weight = 3, .units_leased_max = 7},
    {.name = "beta", .weight = 2, .jobs_queued_max = 9}};

static bool set_tenants(struct play *play)
{
    for (int i = 1; i < MODEL_TENANTS; i++) {
        const struct tenant *settings = &tenant_settings[i - 1];
        play->model->weights[MODEL_SUITES_MAX + i] = settings->weight;
        play->model->jobs_queued_max[i] = play->tenants ? settings->jobs_queued_max : 0;
        play->model->units_max[i] = play->tenants ? settings->units_leased_max : 0;
        if (play->tenants && !answered(play, "tenant_set",
                                       play->store->ops->tenant_set(
                                           play->store, settings, TENANT_SETTINGS, &play->error))) {
            return false;
        }
    }
    return true;
}

/* Tenants have queued and spent what their suites have, by the store's own sums. */
static bool check_tenants(struct play *play)
{
    struct tenant found[MODEL_TENANTS];
    uint32_t count = 0;
    if (!play->tenants) {
        return true;
    }
    if (!answered(play, "tenants",
                  play->store->ops->tenants(play->store, "", found, MODEL_TENANTS, &count,
                                            &play->error))) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct store_suite_status status;
        int64_t queued = 0;
        int64_t cost_uusd = 0;
        for (int suite = 0; suite < SUITES; suite++) {
            char name[LIMIT_ID_BYTES];
            suite_name(suite, name);
            if (strcmp(tenant_names[tenants[suite]], found[i].name) == 0 &&
                play->store->ops->suite_status(play->store, name, &status, NULL) == STATUS_OK) {
                queued += status.jobs[JOB_QUEUED];
                cost_uusd += status.cost_uusd;
            }
        }
        if (found[i].jobs_queued != queued || found[i].uusd_month != cost_uusd) {
            return model_differ(play->model,
                                "tenant %s: %" PRId64 " queued and %" PRId64
                                " uusd, its suites have %" PRId64 " and %" PRId64,
                                found[i].name, found[i].jobs_queued, found[i].uusd_month, queued,
                                cost_uusd);
        }
    }
    return count == MODEL_TENANTS - 1 ||
           model_differ(play->model, "%" PRIu32 " tenants, not 2", count);
}

static bool call_submit(struct play *play)
{
    char name[LIMIT_ID_BYTES];
    int suite = (int)draw(play, SUITES);
    uint32_t count = 1 + (uint32_t)draw(play, BATCH_MAX);
    uint32_t weight = 1 + (uint32_t)suite;

    suite_name(suite, name);
    for (uint32_t i = 0; i < count; i++) {
        make_spec(play, suite, (int)draw(play, KEYS), &play->specs[i]);
    }
    now(play);
    if (play->tenants) {
        int tenant = tenants[suite];
        enum status told = play->store->ops->submit_as(play->store, tenant_names[tenant], name,
                                                       weight, SUITE_CLASS_SAME, 0, play->specs,
                                                       count, play->submitted, &play->error);
        return model_submit_as(play->model, tenant, name, weight, play->specs, count,
                               play->submitted, told);
    }
    enum status status = play->store->ops->submit(play->store, name, weight, play->specs, count,
                                                  play->submitted, &play->error);
    return answered(play, "submit", status) &&
           model_submit(play->model, name, weight, play->specs, count, play->submitted, status);
}

/* Most claims are new; some repeat the worker's last one that leased jobs. */
static bool call_claim(struct play *play)
{
    int worker = (int)draw(play, WORKERS);
    struct store_worker record = worker_record(worker);
    int64_t *next_id = &play->claim_ids[worker];
    bool again = *next_id > 1 && draw(play, 8) == 0;
    int64_t asked = again ? *next_id - 1 : *next_id;
    int64_t id = asked;
    uint32_t max = again ? BATCH_MAX : 1 + (uint32_t)draw(play, BATCH_MAX);
    uint32_t count = 0;
    int64_t ttl_ms = 0;

    if (!again) { /* an id that found no jobs is used again, for no fewer */
        max = max > play->claim_max[worker] ? max : play->claim_max[worker];
        play->claim_max[worker] = max;
    }
    now(play);
    enum status status = play->store->ops->claim(play->store, &record, &id, max, 0, play->leases,
                                                 &count, &ttl_ms, &play->error);
    if (!answered(play, "claim", status) ||
        !model_claim(play->model, &record, asked, max, play->leases, count, id, status)) {
        return false;
    }
    if (id != *next_id) {
        *next_id = id;
        play->claim_max[worker] = 0;
    }
    for (uint32_t i = 0; i < count && play->given_count < LEASES_MAX; i++) {
        play->given[play->given_count++] = (struct given){play->leases[i], worker};
    }
    return true;
}

/* One of the leases given lately, most of which still run. */
static const struct given *draw_given(struct play *play)
{
    int span = play->given_count < 25 ? play->given_count : 25;
    return &play->given[play->given_count - 1 - (int)draw(play, (uint64_t)span)];
}

static bool call_heartbeat(struct play *play)
{
    struct store_progress progress[3];
    int64_t cancelled[3];
    uint32_t cancelled_count = 0;
    uint32_t count = play->given_count > 0 ? (uint32_t)draw(play, 4) : 0;
    int64_t ttl_ms = 0;
    struct store_worker record = worker_record((int)draw(play, WORKERS));

    for (uint32_t i = 0; i < count; i++) {
        const struct given *given = draw_given(play);
        progress[i] = (struct store_progress){.job_id = given->lease.job_id,
                                              .epoch = given->lease.epoch,
                                              .device_ns = (int64_t)draw(play, 1 << 30),
                                              .metres_mm = (int64_t)draw(play, 2000)};
    }
    now(play);
    enum status status = play->store->ops->heartbeat(
        play->store, &record, progress, count, cancelled, &cancelled_count, &ttl_ms, &play->error);
    return answered(play, "heartbeat", status) &&
           model_heartbeat(play->model, &record, progress, count, cancelled, cancelled_count);
}

/* The results that the lease's attempt hands in: but for the trace's name those of any
 * other with its key, as rollouts that are repeated are. */
static void fill_outcomes(struct outcome *outcomes, uint32_t count, const struct job_lease *lease,
                          bool flagged)
{
    size_t key = 0;
    for (const char *at = lease->spec.key; *at != '\0'; at++) {
        key += (unsigned char)*at;
    }
    for (uint32_t i = 0; i < count; i++) {
        struct outcome *outcome = &outcomes[i];
        memset(outcome, 0, sizeof *outcome);
        job_context_copy(&lease->spec, outcome);
        outcome->verdict = flagged              ? VERDICT_FLAGGED
                           : (key + i) % 3 == 0 ? VERDICT_FAIL
                                                : VERDICT_PASS;
        outcome->reasons = outcome->verdict == VERDICT_FAIL ? REASON_TTC : 0;
        snprintf(outcome->health_check, sizeof outcome->health_check, "%s",
                 flagged ? "frozen" : "");
        outcome->ticks = 20 + i;
        outcome->prefix_ticks = i > 0 ? 10 : 0;
        outcome->metres_mm = 1000 + (int64_t)i;
        outcome->metrics.distance_m = (double)outcome->metres_mm * 1e-3;
        if (i > 0) {
            snprintf(outcome->branch_id, sizeof outcome->branch_id, "b%" PRIu32, i);
        }
        snprintf(outcome->trace_hash, sizeof outcome->trace_hash, "%032" PRIx64 "%032" PRIx64,
                 lease->job_id, lease->epoch);
    }
}

static void make_completion(struct play *play, uint32_t index)
{
    struct job_completion *completion = &play->completions[index];
    const struct given *given = draw_given(play);
    const struct job_lease *lease = &given->lease;
    uint64_t dice = draw(play, 10);

    memset(completion, 0, sizeof *completion);
    completion->job_id = lease->job_id;
    completion->epoch = lease->epoch;
    int worker = draw(play, 20) == 0 ? (int)draw(play, WORKERS) : given->worker;
    snprintf(completion->worker_id, sizeof completion->worker_id, "worker-%d", worker);
    completion->kind = dice < 5   ? COMPLETION_DONE
                       : dice < 6 ? COMPLETION_FLAGGED
                       : dice < 7 ? COMPLETION_FAILED
                       : dice < 8 ? COMPLETION_UNSTARTED
                                  : COMPLETION_RELEASED;
    completion->device_ns = (int64_t)draw(play, UINT64_C(1) << 36);
    completion->metres_mm = 1000;
    completion->mflop = completion->device_ns / 3;
    completion->outcomes = play->outcomes[index];
    if (completion->kind == COMPLETION_DONE) {
        completion->outcome_count = lease->spec.rollout_count;
    } else if (completion->kind == COMPLETION_FLAGGED) {
        completion->outcome_count = 1 + (uint32_t)draw(play, lease->spec.rollout_count);
        if (draw(play, 2) == 0) { /* earlier versions send a copy of what the job says */
            memcpy(completion->escalate_pool, lease->spec.escalate_pool,
                   sizeof completion->escalate_pool);
            completion->escalate_tier = lease->spec.escalate_tier;
        }
    }
    fill_outcomes(play->outcomes[index], completion->outcome_count, lease,
                  completion->kind == COMPLETION_FLAGGED);
}

static bool call_complete(struct play *play)
{
    uint32_t count = 1 + (uint32_t)draw(play, BATCH_MAX);

    if (play->given_count == 0) {
        return true;
    }
    for (uint32_t i = 0; i < count; i++) {
        make_completion(play, i);
    }
    now(play);
    enum status status = play->store->ops->complete(play->store, play->completions, count,
                                                    play->completed, &play->error);
    return answered(play, "complete", status) &&
           model_complete(play->model, play->completions, count, play->completed);
}

static bool call_cancel(struct play *play)
{
    char name[LIMIT_ID_BYTES];
    int64_t count = 0;

    suite_name((int)draw(play, SUITES), name);
    now(play);
    enum status status = play->store->ops->cancel(play->store, name, &count, &play->error);
    return model_cancel(play->model, name, count, status);
}

static bool call_worker_gone(struct play *play)
{
    struct store_worker record = worker_record((int)draw(play, WORKERS));

    now(play);
    if (!answered(play, "worker_gone",
                  play->store->ops->worker_gone(play->store, record.worker_id, &play->error))) {
        return false;
    }
    model_worker_gone(play->model, record.worker_id);
    return true;
}

static bool step(struct play *play)
{
    uint64_t dice = draw(play, 100);

    if (dice < 15) {
        return call_submit(play);
    }
    if (dice < 45) {
        return call_claim(play);
    }
    if (dice < 75) {
        return call_complete(play);
    }
    if (dice < 87) {
        return call_heartbeat(play);
    }
    if (dice < 90) {
        return call_worker_gone(play);
    }
    if (dice < 91) {
        return call_cancel(play);
    }
    if (dice < 97) {
        manual_clock_advance(play->clock, (int64_t)draw(play, 2000) * NS_PER_MS);
        return true;
    }
    if (dice < 98) {
        manual_clock_advance(play->clock, play->model->ttl_ns);
        return true;
    }
    /* The call makes time take effect. */
    return call_heartbeat(play) && check_tenants(play) &&
           model_check_store(play->model, play->store);
}

/* A new play over empty storage. */
static bool begin(struct play *play, const struct random_config *config)
{
    play->store = config->store;
    play->clock = config->clock;
    play->random = config->seed;
    for (int i = 0; i < WORKERS; i++) {
        play->claim_ids[i] = 1;
    }
    model_init(play->model, config->lease_ttl_ms * NS_PER_MS, config->backoff_ms * NS_PER_MS);
    play->model->affinity = true;
    play->model->wall_ns = clock_wall_ns(&play->clock->clock) - clock_now_ns(&play->clock->clock);
    play->tenants = config->seed % 2 == 1;
    if (!set_tenants(play)) {
        return false;
    }
    sha256_hex(scenario_body, sizeof scenario_body - 1, play->scenario_hash);
    return answered(play, "scenario_put",
                    play->store->ops->scenario_put(play->store, play->scenario_hash, scenario_body,
                                                   sizeof scenario_body - 1, &play->error));
}

bool conformance_random(const struct random_config *config, char *why, size_t why_bytes)
{
    struct play *play = calloc(1, sizeof *play);
    struct model *model = calloc(1, sizeof *model);
    struct given *given = calloc(LEASES_MAX, sizeof *given);
    bool equal = false;

    if (play == NULL || model == NULL || given == NULL) {
        snprintf(why, why_bytes, "out of memory");
    } else {
        play->model = model;
        play->given = given;
        equal = begin(play, config);
        uint32_t i = 0;
        for (; i < config->steps && equal; i++) {
            equal = step(play);
        }
        equal = equal && call_heartbeat(play) && model_check_store(model, play->store);
        if (!equal) {
            snprintf(why, why_bytes, "%s (step %" PRIu32 ")", model->why, i);
        }
    }
    free(given);
    free(model);
    free(play);
    return equal;
}
