/*
 * Random calls of every role. See property.h.
 */
#include "tests/store/property/property.h"
#include "base/sha256.h"

#include "base/check.h"
#include "base/rng.h"
#include "base/units.h"
#include "schemas/job_json.h"
#include "schemas/outcome_json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BATCH_MAX = 4,
    SPECS = 48,
    LEASES = 96,
    BODIES = 8,
    ARTIFACTS = 6,
    ROLLOUTS_MAX = 6,
    WORKERS = 5,
    MODELS = 4
};

struct given {
    struct job_lease lease;
    int worker;
};

struct property_play {
    struct store *stores[PROPERTY_ROLE_COUNT];
    struct manual_clock *clock;
    uint64_t random;
    bool raw;
    int spec_count;
    struct job_spec specs[SPECS]; /* that were submitted lately */
    uint64_t given_count;         /* of all that there were */
    struct given given[LEASES];   /* the last ones */
    int64_t claim_ids[WORKERS];
    char bodies[BODIES][SHA256_HEX_BYTES];
    char artifacts[ARTIFACTS][SHA256_HEX_BYTES];
    int64_t events[2]; /* the last of models, and of trust */
    uint64_t accepted;
    char last[1400];
    char odd[300]; /* what was changed in the call */
    struct error error;
    struct job_spec batch[BATCH_MAX];
    struct store_submit_result submitted[BATCH_MAX + 1];
    struct job_lease leases[LIMIT_CLAIM_JOBS];
    struct job_completion completions[BATCH_MAX];
    struct store_completion_result completed[BATCH_MAX];
    struct outcome outcomes[BATCH_MAX][ROLLOUTS_MAX];
    struct outcome read[64];
};

static uint64_t draw(struct property_play *play, uint64_t bound)
{
    play->random = rng_mix(play->random + 1);
    return (play->random >> 16) % bound;
}

static bool chance(struct property_play *play, uint64_t in)
{
    return draw(play, in) == 0;
}

/* ---- odd values ---- */

static const char *odd_word(struct property_play *play, size_t capacity)
{
    static const char *const words[] = {"",
                                        "..",
                                        ".",
                                        "a/../b",
                                        "/etc/passwd",
                                        "a\nb",
                                        "\x1b[31mred",
                                        "\xff\xfe",
                                        "x\xe2\x80\xaeg",
                                        "caf\xc3\xa9",
                                        "'; DROP TABLE jobs; --",
                                        "0",
                                        " ",
                                        "null",
                                        "=cmd()",
                                        "suite-1",
                                        "bulk",
                                        "teacher",
                                        "cpu",
                                        "b1",
                                        "b2",
                                        "student-a",
                                        "acme"};
    static char longest[4096];
    uint64_t which = draw(play, COUNT_OF(words) + 2);
    if (which < COUNT_OF(words)) {
        return words[which];
    }
    if (which == COUNT_OF(words)) {
        memset(longest, 'x', capacity - 1);
        longest[capacity - 1] = '\0';
        return longest;
    }
    memset(longest, 'a', SHA256_HEX_BYTES - 1);
    longest[SHA256_HEX_BYTES - 1] = '\0';
    return longest;
}

static void odd_text(struct property_play *play, char *out, size_t capacity)
{
    memset(out, 0, capacity);
    if (play->raw && chance(play, 12)) {
        memset(out, 'y', capacity);
        return;
    }
    snprintf(out, capacity, "%s", odd_word(play, capacity));
}

static int64_t odd_integer(struct property_play *play)
{
    static const int64_t numbers[] = {0,
                                      1,
                                      -1,
                                      2,
                                      257,
                                      258,
                                      1000,
                                      1001,
                                      UINT32_MAX,
                                      INT64_C(1) << 31,
                                      INT64_C(1000000000000000),
                                      INT64_C(1000000000000001),
                                      INT64_C(10000000000000),
                                      INT64_MAX,
                                      INT64_MIN,
                                      INT64_MAX - 1};
    return chance(play, 3) ? (int64_t)draw(play, 64) : numbers[draw(play, COUNT_OF(numbers))];
}

static double odd_real(struct property_play *play)
{
    static const double numbers[] = {0.0, -0.0, 1.0, -1.0, 1e308, 5e-324, 0.1, 2.0};
    uint64_t which = draw(play, COUNT_OF(numbers) + 3);
    return which < COUNT_OF(numbers)        ? numbers[which]
           : which == COUNT_OF(numbers)     ? (double)INFINITY
           : which == COUNT_OF(numbers) + 1 ? -(double)INFINITY
                                            : (double)NAN;
}

static uint32_t odd_name(struct property_play *play, const struct json_field *field)
{
    bool beyond = play->raw && chance(play, 6);
    return beyond ? (uint32_t)odd_integer(play) : (uint32_t)draw(play, field->name_count);
}

/* Changes one member of the record to something that is odd. */
static void change(struct property_play *play, const struct json_field_list *list, void *record)
{
    const struct json_field *field = &list->fields[draw(play, list->count)];
    char *place = (char *)record + field->offset;
    int64_t wide = odd_integer(play);
    uint32_t narrow = (uint32_t)wide;
    double real = odd_real(play);
    switch (field->kind) {
    case JSON_FIELD_RECORD:
        change(play, field->list, place);
        return;
    case JSON_FIELD_TEXT:
        odd_text(play, place, field->bytes);
        break;
    case JSON_FIELD_I64:
    case JSON_FIELD_U64:
        memcpy(place, &wide, sizeof wide);
        break;
    case JSON_FIELD_F64:
        memcpy(place, &real, sizeof real);
        break;
    case JSON_FIELD_BOOL:
        *(bool *)place = !*(bool *)place;
        break;
    case JSON_FIELD_NAME:
        narrow = odd_name(play, field);
        memcpy(place, &narrow, sizeof narrow);
        break;
    case JSON_FIELD_BITS:
        narrow &= play->raw && chance(play, 4) ? UINT32_MAX : (1U << field->name_count) - 1;
        memcpy(place, &narrow, sizeof narrow);
        break;
    default:
        memcpy(place, &narrow, sizeof narrow);
        break;
    }
    size_t used = strlen(play->odd);
    snprintf(play->odd + used, sizeof play->odd - used, " [%s odd]", field->name);
}

/* One record in `in`, at times twice. */
static void perhaps(struct property_play *play, uint64_t in, const struct json_field_list *list,
                    void *record)
{
    while (chance(play, in)) {
        change(play, list, record);
    }
}

/* ---- calls ---- */

static struct store *as(struct property_play *play, enum property_role role)
{
    return play->stores[chance(play, 12) ? draw(play, PROPERTY_ROLE_COUNT) : role];
}

static bool note(struct property_play *play, const char *call, enum status status)
{
    play->accepted += status == STATUS_OK;
    snprintf(play->last, sizeof play->last, "%s%s: %s%s%.800s", call, play->odd,
             status_name(status), status != STATUS_OK ? ": " : "",
             status != STATUS_OK ? play->error.text : "");
    return status != STATUS_STORE && status != STATUS_IO && status != STATUS_NO_MEMORY;
}

/* The last two are mostly a tenant's. */
static void suite_name(struct property_play *play, bool tenant, char out[LIMIT_ID_BYTES])
{
    int suite = (int)draw(play, 2) + (tenant != chance(play, 15) ? 2 : 0);
    if (chance(play, 20)) {
        odd_text(play, out, LIMIT_ID_BYTES);
        out[LIMIT_ID_BYTES - 1] = '\0';
    } else {
        snprintf(out, LIMIT_ID_BYTES, "suite-%d", suite);
    }
}

static const char *const bodies[BODIES] = {
    "{\"id\":\"a\"}",
    "{\"branches\":[{\"at_tick\":4,\"id\":\"b1\"},{\"at_tick\":5,\"id\":\"b2\"}],\"horizon_s\":2,"
    "\"id\":\"s\"}",
    "{\"id\":\"w\",\"horizon_s\":1,\"map\":{\"lanes\":[{\"id\":\"a\",\"centre_line\":[[0,0],[9,0]]}"
    "]},\"ego\":{\"pose\":{\"x_m\":0,\"y_m\":0,\"heading_rad\":0},\"route\":[\"a\"]},"
    "\"conditions\":{\"weather\":\"rain\"}}",
    "{\"branches\":[{\"at_tick\":4}],\"horizon_s\":0.9,\"id\":\"simulated\"}",
    "no JSON {",
    "{\"horizon_s\":1e300,\"branches\":[1,\"x\",null,{\"id\":7},{\"at_tick\":-1e200}]}",
    "{\"horizon_s\":-5,\"branches\":{\"x\":1}}",
    "\xff\x01\x02",
};
static const uint32_t rollouts_of_body[BODIES] = {1, 3, 1, 2, 1, 2, 1, 1};

static bool call_scenario_put(struct property_play *play)
{
    struct store *store = as(play, chance(play, 2) ? PROPERTY_SUBMIT : PROPERTY_SUBMIT_TENANT);
    int which = (int)draw(play, BODIES);
    char tenant[LIMIT_ID_BYTES] = "acme";
    char hash[SHA256_HEX_BYTES];
    sha256_hex(bodies[which], strlen(bodies[which]), hash);
    if (chance(play, 10)) {
        odd_text(play, tenant, sizeof tenant);
        tenant[sizeof tenant - 1] = '\0';
    }
    enum status status = chance(play, 2)
                             ? store->ops->scenario_put(store, hash, bodies[which],
                                                        strlen(bodies[which]), &play->error)
                             : store->ops->scenario_put_as(store, tenant, hash, bodies[which],
                                                           strlen(bodies[which]), &play->error);
    return note(play, "scenario_put", status);
}

static bool call_artifact_put(struct property_play *play)
{
    struct store *store = as(play, chance(play, 2) ? PROPERTY_WORKER : PROPERTY_ADMIN);
    int which = (int)draw(play, ARTIFACTS);
    char list[256];
    /* The last one is a list of goldens. */
    int bytes =
        which < ARTIFACTS - 1
            ? snprintf(list, sizeof list, "artifact %d", which)
            : snprintf(list, sizeof list, "{\"recordings\":[{\"artifact\":\"%s\",\"bytes\":10}]}",
                       play->artifacts[0]);
    char hash[SHA256_HEX_BYTES];
    enum status status = store->ops->artifact_put(store, list, (size_t)bytes, hash, &play->error);
    if (status == STATUS_OK) {
        memcpy(play->artifacts[which], hash, sizeof hash);
    }
    return note(play, "artifact_put", status);
}

static const char *artifact(struct property_play *play)
{
    return play->artifacts[draw(play, ARTIFACTS)];
}

static const char *const model_names[MODELS] = {"student-a", "student-b", "teacher-a", "teacher-b"};

static void make_version(struct property_play *play, int which, struct model_version *version)
{
    *version = (struct model_version){
        .tier = which < 2 ? TIER_STUDENT : TIER_TEACHER, .precision = "bf16", .agents_ticks = 300};
    snprintf(version->name, sizeof version->name, "%s", model_names[which]);
    snprintf(version->sampler, sizeof version->sampler, which < 2 ? "euler2/bf16" : "euler9/bf16");
    memcpy(version->hash, play->artifacts[which], sizeof version->hash);
}

static void make_spec(struct property_play *play, const char *suite, struct job_spec *spec)
{
    int body = chance(play, 2) ? 1 : (int)draw(play, BODIES);
    struct model_version version = {.name = ""};
    memset(spec, 0, sizeof *spec);
    snprintf(spec->suite_id, sizeof spec->suite_id, "%s", suite);
    snprintf(spec->scenario_id, sizeof spec->scenario_id, "s-%d", body);
    memcpy(spec->scenario_hash, play->bodies[body], sizeof spec->scenario_hash);
    snprintf(spec->planner, sizeof spec->planner, "builtin:%d", (int)draw(play, 2));
    snprintf(spec->planner_hash, sizeof spec->planner_hash, "p");
    snprintf(spec->revision, sizeof spec->revision, "r");
    snprintf(spec->backend, sizeof spec->backend, "cpu");
    spec->tier = chance(play, 2) ? TIER_OBJECT : chance(play, 4) ? TIER_TEACHER : TIER_STUDENT;
    if (spec->tier >= TIER_STUDENT) {
        make_version(play, (spec->tier == TIER_TEACHER ? 2 : 0) + (int)draw(play, 2), &version);
        memcpy(spec->model_hash, version.hash, sizeof spec->model_hash);
        snprintf(spec->sampler, sizeof spec->sampler, "agents/%.40s", version.sampler);
        spec->follows = chance(play, 2);
    }
    snprintf(spec->pool, sizeof spec->pool, spec->tier == TIER_TEACHER ? "teacher" : "bulk");
    spec->seed = draw(play, 4);
    spec->rollout_count = rollouts_of_body[body];
    spec->attempts_max = 1 + (uint32_t)draw(play, 3);
    spec->priority = (int32_t)draw(play, 3);
    job_key_make(spec, 0);
    if (chance(play, 4)) { /* a key of whoever submits */
        snprintf(spec->key, sizeof spec->key, "key-%d", (int)draw(play, 12));
    }
}

/* An audit of a job that was submitted before. */
static void make_audit(struct property_play *play, const char *suite, struct job_spec *spec)
{
    struct model_version teacher;
    const struct job_spec *of = &play->specs[draw(play, (uint64_t)play->spec_count)];
    make_version(play, 2 + (int)draw(play, 2), &teacher);
    trust_job_audit(&teacher, of, spec);
    snprintf(spec->suite_id, sizeof spec->suite_id, "%s", suite);
}

static bool call_submit(struct property_play *play)
{
    bool tenant = chance(play, 2);
    struct store *store = as(play, tenant ? PROPERTY_SUBMIT_TENANT : PROPERTY_SUBMIT);
    char suite[LIMIT_ID_BYTES];
    char name[LIMIT_ID_BYTES] = "acme";
    uint32_t count = (uint32_t)draw(play, BATCH_MAX + 1);
    uint32_t weight = chance(play, 30) ? (uint32_t)odd_integer(play) : 1 + (uint32_t)draw(play, 3);
    suite_name(play, tenant, suite);
    for (uint32_t i = 0; i < count; i++) {
        struct job_spec *spec = &play->batch[i];
        make_spec(play, suite, spec);
        if (play->spec_count > 0 && chance(play, 6)) {
            make_audit(play, suite, spec);
        } else if (play->spec_count > 0 && chance(play, 4)) { /* again, perhaps to another suite */
            *spec = play->specs[draw(play, (uint64_t)play->spec_count)];
            snprintf(spec->suite_id, sizeof spec->suite_id, "%s", suite);
        }
        if (chance(play, spec->tier == TIER_STUDENT ? 10 : 200)) {
            spec->evaluates = true;
            spec->follows = false;
        }
        perhaps(play, 12, &job_spec_field_list, spec);
    }
    if (chance(play, 10)) {
        odd_text(play, name, sizeof name);
        name[sizeof name - 1] = '\0';
    }
    int64_t budget = chance(play, 4) ? (int64_t)draw(play, 1000) - 10 : 0;
    enum suite_class of_class = (enum suite_class)draw(play, SUITE_CLASS_COUNT);
    enum status status =
        tenant ? store->ops->submit_as(store, name, suite, weight, of_class, budget, play->batch,
                                       count, play->submitted, &play->error)
               : store->ops->submit(store, suite, weight, play->batch, count, play->submitted,
                                    &play->error);
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        int at = play->spec_count < SPECS ? play->spec_count++ : (int)draw(play, SPECS);
        play->specs[at] = play->batch[i];
    }
    return note(play, "submit", status);
}

/* Mostly one of those that run still. */
static const struct given *draw_given(struct property_play *play)
{
    uint64_t known = play->given_count < LEASES ? play->given_count : LEASES;
    uint64_t span = chance(play, 4) || known < 12 ? known : 12;
    return &play->given[(play->given_count - 1 - draw(play, span)) % LEASES];
}

static void make_worker(struct property_play *play, int which, struct store_worker *worker)
{
    static const char *const pools[WORKERS] = {"bulk", "bulk", "bulk", "teacher", "teacher"};
    *worker = (struct store_worker){.device = "cpu"};
    snprintf(worker->worker_id, sizeof worker->worker_id, "worker-%d", which);
    snprintf(worker->pool, sizeof worker->pool, "%s", pools[which]);
    snprintf(worker->host, sizeof worker->host, "host-%d", which % 2);
    if (chance(play, 25)) {
        char *texts[] = {worker->worker_id, worker->pool, worker->device, worker->host};
        odd_text(play, texts[draw(play, 4)], LIMIT_ID_BYTES);
        snprintf(play->odd, sizeof play->odd, " [worker odd]");
    }
}

static enum property_role role_of(int worker)
{
    return worker >= 3 ? PROPERTY_TEACHER : worker == 2 ? PROPERTY_WORKER_OTHER : PROPERTY_WORKER;
}

static bool call_claim(struct property_play *play)
{
    int which = (int)draw(play, WORKERS);
    struct store *store = as(play, role_of(which));
    struct store_worker worker;
    int64_t id = play->claim_ids[which] - (chance(play, 6) ? 1 : 0);
    int64_t ttl_ms = 0;
    uint32_t count = 0;
    uint32_t max = 1 + (uint32_t)draw(play, 6);
    make_worker(play, which, &worker);
    if (chance(play, 40)) {
        id = odd_integer(play);
        max = (uint32_t)odd_integer(play);
    }
    enum status status =
        store->ops->claim(store, &worker, &id, max, 0, play->leases, &count, &ttl_ms, &play->error);
    if (status == STATUS_OK && id > play->claim_ids[which] && id < INT64_MAX / 2) {
        play->claim_ids[which] = id;
    }
    for (uint32_t i = 0; i < count && status == STATUS_OK; i++) {
        play->given[play->given_count++ % LEASES] = (struct given){play->leases[i], which};
    }
    return note(play, "claim", status);
}

static bool call_heartbeat(struct property_play *play)
{
    int which = (int)draw(play, WORKERS);
    struct store *store = as(play, role_of(which));
    struct store_worker worker;
    struct store_progress progress[BATCH_MAX];
    int64_t cancelled[BATCH_MAX];
    uint32_t cancelled_count = 0;
    int64_t ttl_ms = 0;
    uint32_t count = play->given_count > 0 ? (uint32_t)draw(play, BATCH_MAX + 1) : 0;
    make_worker(play, which, &worker);
    for (uint32_t i = 0; i < count; i++) {
        const struct given *given = draw_given(play);
        progress[i] = (struct store_progress){.job_id = given->lease.job_id,
                                              .epoch = given->lease.epoch,
                                              .device_ns = (int64_t)draw(play, 1 << 30),
                                              .metres_mm = (int64_t)draw(play, 2000),
                                              .mflop = (int64_t)draw(play, 1 << 20),
                                              .ticks = (int64_t)draw(play, 100)};
        int64_t *numbers[] = {&progress[i].job_id,    &progress[i].epoch, &progress[i].device_ns,
                              &progress[i].metres_mm, &progress[i].mflop, &progress[i].ticks};
        if (chance(play, 10)) {
            *numbers[draw(play, COUNT_OF(numbers))] = odd_integer(play);
        }
    }
    enum status status = store->ops->heartbeat(store, &worker, progress, count, cancelled,
                                               &cancelled_count, &ttl_ms, &play->error);
    return note(play, "heartbeat", status);
}

static void make_outcome(struct property_play *play, const struct job_spec *spec, uint32_t index,
                         bool flagged, struct outcome *outcome)
{
    memset(outcome, 0, sizeof *outcome);
    memcpy(outcome->scenario_id, spec->scenario_id, sizeof outcome->scenario_id);
    memcpy(outcome->scenario_hash, spec->scenario_hash, sizeof outcome->scenario_hash);
    memcpy(outcome->planner, spec->planner, sizeof outcome->planner);
    memcpy(outcome->planner_hash, spec->planner_hash, sizeof outcome->planner_hash);
    memcpy(outcome->pool, spec->pool, sizeof outcome->pool);
    memcpy(outcome->model_hash, spec->model_hash, sizeof outcome->model_hash);
    memcpy(outcome->sampler, spec->sampler, sizeof outcome->sampler);
    memcpy(outcome->backend, spec->backend, sizeof outcome->backend);
    memcpy(outcome->revision, spec->revision, sizeof outcome->revision);
    outcome->tier = spec->tier;
    outcome->seed = spec->seed;
    outcome->verdict = flagged           ? VERDICT_FLAGGED
                       : chance(play, 2) ? VERDICT_PASS
                       : chance(play, 4) ? VERDICT_PLANNER_ERROR
                                         : VERDICT_FAIL;
    outcome->reasons = outcome->verdict == VERDICT_FAIL
                           ? 1 + (uint32_t)draw(play, (1 << REASON_BIT_COUNT) - 1)
                           : 0;
    if (outcome->verdict == VERDICT_PLANNER_ERROR) {
        snprintf(outcome->error, sizeof outcome->error, "exited");
    }
    outcome->ticks = 9; /* no scenario is shorter */
    outcome->prefix_ticks = index > 0 ? 5 : 0;
    outcome->metres_mm = 1000;
    outcome->metrics.distance_m = 1.0;
    outcome->device_ns = 100;
    outcome->metrics.collision_tick = UINT32_MAX;
    outcome->metrics.collision_agent = -1;
    outcome->metrics.min_ttc_s = chance(play, 4) ? odd_real(play) : 1.5;
    if (index > 0) {
        snprintf(outcome->branch_id, sizeof outcome->branch_id, "b%" PRIu32, index);
    }
    if (flagged) {
        snprintf(outcome->health_check, sizeof outcome->health_check, "frozen");
    }
    sha256_hex("trace", 5, outcome->trace_hash);
    if (!chance(play, 8)) {
        memcpy(outcome->artifact_hash, artifact(play), sizeof outcome->artifact_hash);
    }
}

static void make_completion(struct property_play *play, uint32_t index)
{
    static const enum completion_kind kinds[] = {
        COMPLETION_DONE,    COMPLETION_DONE,     COMPLETION_DONE,
        COMPLETION_FLAGGED, COMPLETION_FLAGGED,  COMPLETION_PARTIAL,
        COMPLETION_FAILED,  COMPLETION_RELEASED, COMPLETION_UNSTARTED};
    struct job_completion *completion = &play->completions[index];
    const struct given *given = draw_given(play);
    const struct job_spec *spec = &given->lease.spec;
    memset(completion, 0, sizeof *completion);
    completion->job_id = given->lease.job_id;
    completion->epoch = given->lease.epoch;
    completion->kind = kinds[draw(play, COUNT_OF(kinds))];
    snprintf(completion->worker_id, sizeof completion->worker_id, "worker-%d",
             chance(play, 15) ? (int)draw(play, WORKERS) : given->worker);
    completion->device_ns = (int64_t)draw(play, UINT64_C(1) << 36);
    completion->metres_mm = 1000;
    completion->mflop = chance(play, 20) ? INT64_C(1000000000000000) : completion->device_ns / 3;
    completion->outcomes = play->outcomes[index];
    bool partial = completion->kind == COMPLETION_PARTIAL;
    bool flagged = completion->kind == COMPLETION_FLAGGED;
    uint32_t most = spec->rollout_count < ROLLOUTS_MAX ? spec->rollout_count : ROLLOUTS_MAX;
    completion->outcome_count = completion->kind == COMPLETION_DONE ? most
                                : partial || flagged                ? 1 + (uint32_t)draw(play, most)
                                                                    : 0;
    if (flagged && chance(play, 2)) {
        snprintf(completion->escalate_pool, sizeof completion->escalate_pool, "teacher");
        completion->escalate_tier = TIER_TEACHER;
    }
    if (chance(play, 20)) { /* too many, or too few */
        completion->outcome_count = (uint32_t)draw(play, ROLLOUTS_MAX + 1);
    }
    for (uint32_t i = 0; i < completion->outcome_count; i++) {
        uint32_t rollout = partial ? (uint32_t)draw(play, most) : i;
        rollout = chance(play, 30) ? (uint32_t)draw(play, 4) : rollout;
        make_outcome(play, spec, rollout, flagged, &play->outcomes[index][i]);
        perhaps(play, 40, &outcome_record, &play->outcomes[index][i]);
    }
    if (chance(play, 3)) {
        memcpy(completion->artifact_hash, artifact(play), sizeof completion->artifact_hash);
    }
    perhaps(play, 20, &job_completion_field_list, completion);
}

static bool call_complete(struct property_play *play)
{
    uint32_t count = 1 + (uint32_t)draw(play, BATCH_MAX);
    if (play->given_count == 0) {
        return true;
    }
    for (uint32_t i = 0; i < count; i++) {
        make_completion(play, i);
    }
    if (count > 1 && chance(play, 8)) { /* the same twice in one call */
        play->completions[1] = play->completions[0];
    }
    int which = (int)strtol(play->completions[0].worker_id +
                                (play->completions[0].worker_id[0] == 'w' ? strlen("worker-") : 0),
                            NULL, 10);
    struct store *store = as(play, role_of(which >= 0 && which < WORKERS ? which : 0));
    enum status status =
        store->ops->complete(store, play->completions, count, play->completed, &play->error);
    return note(play, "complete", status);
}

/* ---- orders ---- */

static bool call_tenant_set(struct property_play *play)
{
    struct store *store = as(play, PROPERTY_ADMIN);
    struct tenant tenant = {.name = "acme",
                            .weight = 1 + (int64_t)draw(play, 3),
                            .jobs_queued_max = chance(play, 2) ? 0 : 20,
                            .units_leased_max = chance(play, 2) ? 0 : 9};
    uint32_t settings = (uint32_t)draw(play, 2 * TENANT_VERSION);
    tenant.version = (int64_t)draw(play, 4);
    perhaps(play, 4, &tenant_fields, &tenant);
    return note(play, "tenant_set", store->ops->tenant_set(store, &tenant, settings, &play->error));
}

static bool call_price_set(struct property_play *play)
{
    struct store *store = as(play, PROPERTY_ADMIN);
    char pool[LIMIT_ID_BYTES] = "bulk";
    char device[LIMIT_ID_BYTES] = "cpu";
    int64_t price = chance(play, 3) ? odd_integer(play) : (int64_t)draw(play, 1000000000000);
    if (chance(play, 4)) {
        odd_text(play, chance(play, 2) ? pool : device, LIMIT_ID_BYTES);
        pool[LIMIT_ID_BYTES - 1] = device[LIMIT_ID_BYTES - 1] = '\0';
    }
    return note(play, "price_set", store->ops->price_set(store, pool, device, price, &play->error));
}

static bool call_model_add(struct property_play *play)
{
    struct store *store = as(play, PROPERTY_ADMIN);
    struct model_version version;
    make_version(play, (int)draw(play, MODELS), &version);
    perhaps(play, 4, &model_version_fields, &version);
    return note(play, "model_add", store->ops->model_add(store, &version, &play->error));
}

static bool call_model_event(struct property_play *play)
{
    struct store *store = as(play, PROPERTY_ADMIN);
    struct model_event event = {.kind = chance(play, 4) ? MODEL_EVALUATED : MODEL_MOVED,
                                .to_state = (enum model_state)draw(play, MODEL_STATE_COUNT),
                                .forced = true,
                                .passed = chance(play, 2),
                                .evidence = "a reason"};
    struct model_event done;
    snprintf(event.model, sizeof event.model, "%s", model_names[draw(play, MODELS)]);
    if (event.to_state == MODEL_CANARY || event.to_state == MODEL_SHADOW) {
        event.canary_percent = 1 + (int64_t)draw(play, 100);
    }
    perhaps(play, 5, &model_event_fields, &event);
    enum status status = store->ops->model_event(store, &event, &done, &play->error);
    play->events[0] = status == STATUS_OK ? done.id : play->events[0];
    return note(play, "model_event", status);
}

static bool call_trust_event(struct property_play *play)
{
    struct store *store = as(play, PROPERTY_ADMIN);
    struct model_version student;
    struct model_version teacher;
    struct trust_event event = {.kind = (enum trust_event_kind)draw(play, TRUST_EVENT_KIND_COUNT),
                                .evidence = "a reason"};
    struct trust_event done;
    make_version(play, (int)draw(play, 2), &student);
    make_version(play, 2 + (int)draw(play, 2), &teacher);
    memcpy(event.student_hash, student.hash, sizeof event.student_hash);
    memcpy(event.student_sampler, student.sampler, sizeof event.student_sampler);
    memcpy(event.teacher_hash, teacher.hash, sizeof event.teacher_hash);
    memcpy(event.teacher_sampler, teacher.sampler, sizeof event.teacher_sampler);
    snprintf(event.slice.value[0], sizeof event.slice.value[0], "%s",
             chance(play, 2) ? "" : "rain");
    event.freeze = play->events[1];
    event.forced = chance(play, 2);
    event.evaluation = chance(play, 3) ? play->events[0] : 0;
    event.audit_rate = chance(play, 2) ? 0.0 : 0.25;
    perhaps(play, 5, &trust_event_fields, &event);
    enum status status = store->ops->trust_event(store, &event, &done, &play->error);
    play->events[1] = status == STATUS_OK && done.kind == TRUST_FREEZE ? done.id : play->events[1];
    return note(play, "trust_event", status);
}

static bool call_golden(struct property_play *play)
{
    struct store *store = as(play, PROPERTY_ADMIN);
    struct golden_set set = {.name = "night", .sampler = "agents/euler2/bf16"};
    memcpy(set.hash, play->artifacts[ARTIFACTS - 1], sizeof set.hash);
    memcpy(set.model_hash, play->artifacts[0], sizeof set.model_hash);
    perhaps(play, 3, &golden_set_fields, &set);
    set.name[sizeof set.name - 1] = '\0';
    return chance(play, 3)
               ? note(play, "golden_drop", store->ops->golden_drop(store, set.name, &play->error))
               : note(play, "golden_add", store->ops->golden_add(store, &set, &play->error));
}

static bool call_label(struct property_play *play)
{
    struct store *store = as(play, PROPERTY_SUBMIT);
    struct label label = {.kind = (enum label_kind)draw(play, LABEL_KIND_COUNT)};
    suite_name(play, chance(play, 2), label.suite);
    snprintf(label.text, sizeof label.text, "%s", chance(play, 2) ? "night" : "day");
    if (label.kind == LABEL_FILES) {
        snprintf(label.text, sizeof label.text, "%s %s", play->artifacts[0], play->artifacts[1]);
    }
    perhaps(play, 3, &label_fields, &label);
    return chance(play, 4)
               ? note(play, "label_drop", store->ops->label_drop(store, &label, &play->error))
               : note(play, "label_add", store->ops->label_add(store, &label, &play->error));
}

static bool call_cancel(struct property_play *play)
{
    struct store *store = as(play, PROPERTY_SUBMIT);
    char suite[LIMIT_ID_BYTES];
    int64_t count = 0;
    suite_name(play, chance(play, 2), suite);
    return note(play, "cancel", store->ops->cancel(store, suite, &count, &play->error));
}

static bool call_worker_gone(struct property_play *play)
{
    int which = (int)draw(play, WORKERS);
    struct store *store = as(play, role_of(which));
    struct store_worker worker;
    make_worker(play, which, &worker);
    worker.worker_id[sizeof worker.worker_id - 1] = '\0';
    return note(play, "worker_gone",
                store->ops->worker_gone(store, worker.worker_id, &play->error));
}

/* ---- reading ---- */

static bool call_read(struct property_play *play)
{
    struct store *store = as(play, PROPERTY_READ);
    struct store_suite_status status_out;
    struct store_ledger_row rows[16];
    struct store_demand demand[8];
    struct tenant tenants[4];
    struct store_outcome_filter filter = {.limit = 60};
    char suite[LIMIT_ID_BYTES];
    uint32_t count = 0;
    int64_t job_id = play->given_count > 0 ? draw_given(play)->lease.job_id : 1;
    suite_name(play, chance(play, 2), suite);
    switch (draw(play, 6)) {
    case 0:
        return note(play, "suite_status",
                    store->ops->suite_status(store, suite, &status_out, &play->error));
    case 1:
        return note(play, "outcomes",
                    store->ops->outcomes(store, &filter, play->read, &count, &play->error));
    case 2:
        return note(play, "partials",
                    store->ops->partials(store, job_id, play->read, 60, &count, &play->error));
    case 3:
        return note(play, "ledger",
                    store->ops->ledger(store, NULL, rows, 16, &count, &play->error));
    case 4:
        return note(play, "tenants",
                    store->ops->tenants(store, "", tenants, 4, &count, &play->error));
    default:
        return store->ops->demand == NULL ||
               note(play, "demand", store->ops->demand(store, demand, 8, &count, &play->error));
    }
}

/* ---- a play ---- */

static bool call_time(struct property_play *play)
{
    manual_clock_advance(play->clock,
                         chance(play, 6) ? 20 * NS_PER_S : (int64_t)draw(play, 2000) * NS_PER_MS);
    return call_heartbeat(play); /* which makes time take effect */
}

bool property_step(struct property_play *play, bool strict)
{
    static const struct {
        uint64_t share;
        bool (*call)(struct property_play *play);
    } calls[] = {
        {18, call_submit},      {24, call_claim},      {28, call_complete}, {8, call_heartbeat},
        {2, call_worker_gone},  {1, call_cancel},      {4, call_time},      {2, call_scenario_put},
        {2, call_artifact_put}, {1, call_tenant_set},  {1, call_price_set}, {1, call_model_add},
        {2, call_model_event},  {2, call_trust_event}, {1, call_golden},    {5, call_read},
        {2, call_label},
    };
    uint64_t all = 0;
    size_t at = 0;
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        all += calls[i].share;
    }
    uint64_t dice = draw(play, all);
    while (dice >= calls[at].share) {
        dice -= calls[at++].share;
    }
    play->odd[0] = '\0';
    return calls[at].call(play) || !strict;
}

void property_stores(struct property_play *play, const struct property_config *config)
{
    memcpy(play->stores, config->stores, sizeof play->stores);
}

struct property_play *property_begin(const struct property_config *config)
{
    struct property_play *play = calloc(1, sizeof *play);
    CHECK(play != NULL);
    property_stores(play, config);
    play->clock = config->clock;
    play->random = rng_mix(config->seed * 2 + 1);
    play->raw = config->raw;
    for (int i = 0; i < WORKERS; i++) {
        play->claim_ids[i] = 1;
    }
    struct store *admin = play->stores[PROPERTY_ADMIN];
    for (int i = 0; i < BODIES; i++) {
        sha256_hex(bodies[i], strlen(bodies[i]), play->bodies[i]);
        CHECK(admin->ops->scenario_put(admin, play->bodies[i], bodies[i], strlen(bodies[i]),
                                       &play->error) == STATUS_OK);
    }
    for (int i = 0; i < ARTIFACTS * 8; i++) {
        call_artifact_put(play);
    }
    for (int i = 0; i < MODELS; i++) {
        struct model_version version;
        make_version(play, i, &version);
        admin->ops->model_add(admin, &version, &play->error);
    }
    return play;
}

const char *property_last(const struct property_play *play)
{
    return play->last;
}

uint64_t property_accepted(const struct property_play *play)
{
    return play->accepted;
}

void property_end(struct property_play *play)
{
    free(play);
}
