/*
 * Simulated clients that are no workers: who submits suites, cancels them, sets prices, and reports
 * workers as gone. Which tier and pool a job goes to, and which jobs get an audit job on the
 * teacher, is decided by the real scheduler.
 */
#include "tests/sim/fleet.h"

#include "base/check.h"
#include "base/sha256.h"
#include "base/units.h"
#include "scheduler/audit.h"
#include "scheduler/route.h"
#include "schemas/job_context.h"
#include "store/api/trust.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH_SPECS_MAX = 64, SCENARIOS = 8, PLANNERS = 2, SEEDS = 6 };

static const char scenario_body[] = MODEL_SCENARIO_BODY;

/* The scenario of a job: one for all, or one for each weather that may be frozen. */
static enum status put_scenarios(const struct fleet *fleet, struct store *store,
                                 struct error *error)
{
    char hash[SHA256_HEX_BYTES];
    enum status status = STATUS_OK;
    if (!fleet->freezes) {
        sha256_hex(scenario_body, sizeof scenario_body - 1, hash);
        return store->ops->scenario_put(store, hash, scenario_body, sizeof scenario_body - 1,
                                        error);
    }
    for (int i = 0; i < MODEL_WEATHERS && status == STATUS_OK; i++) {
        char body[1024];
        int bytes = snprintf(body, sizeof body, MODEL_WEATHER_BODY, model_weathers[i]);
        sha256_hex(body, (size_t)bytes, hash);
        status = store->ops->scenario_put(store, hash, body, (size_t)bytes, error);
    }
    return status;
}

void fleet_key(const char *scenario_id, uint64_t seed, enum tier tier, const char *planner,
               char key[SHA256_HEX_BYTES])
{
    char text[LIMIT_SPEC_BYTES + 256];
    char question[SHA256_HEX_BYTES];
    char asked[SHA256_HEX_BYTES];
    int bytes =
        snprintf(text, sizeof text, "%s %" PRIu64 " %s", scenario_id, seed, tier_names[tier]);

    sha256_hex(text, (size_t)bytes, question);
    sha256_hex(planner, strlen(planner), asked);
    snprintf(key, SHA256_HEX_BYTES, "%.40s-%.20s", question, asked);
}

/* ---- what is submitted ---- */

/* Every third scenario is a question of perception, of planning, of regression. */
static void route(const struct fleet *fleet, int scenario, struct job_spec *spec)
{
    static const enum question questions[] = {QUESTION_PERCEPTION, QUESTION_PLANNING,
                                              QUESTION_REGRESSION};
    struct scenario *record = calloc(1, sizeof *record);
    struct route_policy policy = {.student_available = true, .teacher_available = true};
    struct route_decision decision;
    struct error error;

    CHECK(record != NULL);
    snprintf(record->id, sizeof record->id, "%s", spec->scenario_id);
    record->question = fleet->one_tier ? QUESTION_PLANNING : questions[scenario % 3];
    CHECK(route_scenario(record, &policy, &decision, &error) == STATUS_OK);
    spec->tier = decision.tier;
    memcpy(spec->pool, decision.pool, sizeof spec->pool);
    free(record);
}

/* The job of a suite's place `index`: the same whenever it is asked for, and for some places the
 * same question in every suite. */
static void make_spec(const struct fleet *fleet, int suite, uint32_t index, struct job_spec *spec)
{
    bool shared = index % 2 == 0 && !fleet->follows; /* a key that moves is no other suite's */
    uint32_t place = shared ? index : index + 1000 * (uint32_t)(suite + 1);
    int scenario = (int)(place % SCENARIOS);
    uint32_t planner = place / SCENARIOS % PLANNERS;

    memset(spec, 0, sizeof *spec);
    snprintf(spec->suite_id, sizeof spec->suite_id, "suite-%d", suite);
    snprintf(spec->scenario_id, sizeof spec->scenario_id, "scenario-%d", scenario);
    sha256_hex(scenario_body, sizeof scenario_body - 1, spec->scenario_hash);
    snprintf(spec->planner, sizeof spec->planner, "builtin:p%" PRIu32, planner);
    snprintf(spec->planner_hash, sizeof spec->planner_hash, "hash%" PRIu32, planner);
    snprintf(spec->backend, sizeof spec->backend, "cpu");
    snprintf(spec->revision, sizeof spec->revision, "r");
    /* In places that suites share, both planners are asked the same questions. */
    spec->seed = shared ? place / (SCENARIOS * PLANNERS) : place;
    route(fleet, scenario, spec);
    if (spec->tier == TIER_STUDENT) {
        snprintf(spec->model_hash, sizeof spec->model_hash, "ms");
        snprintf(spec->sampler, sizeof spec->sampler, "few");
    }
    if (fleet->freezes) {
        model_weather_hash(scenario / 3 % MODEL_WEATHERS, spec->scenario_hash);
    }
    if (spec->tier == TIER_STUDENT && (fleet->follows || fleet->freezes)) {
        spec->follows = fleet->follows;
        model_version_hash(0, spec->model_hash);
        snprintf(spec->sampler, sizeof spec->sampler, "agents/few/bf16");
    }
    if (spec->tier == TIER_STUDENT) {
        snprintf(spec->escalate_pool, sizeof spec->escalate_pool, "teacher");
        spec->escalate_tier = TIER_TEACHER;
        snprintf(spec->escalate_model_hash, sizeof spec->escalate_model_hash, "mt");
        snprintf(spec->escalate_sampler, sizeof spec->escalate_sampler, "many");
    }
    spec->evaluates =
        spec->tier == TIER_STUDENT && fleet->freezes && !fleet->follows && place % 7 == 3;
    spec->priority = (int32_t)(index % 2);
    /* Scenarios with a weather are whole ones, of one branch. */
    spec->rollout_count = fleet->freezes ? 2 : 1 + place % fleet->model->rollouts_max;
    spec->attempts_max = 1 + place % 4;
    if (fleet->model->affinity) {
        snprintf(spec->prefix_key, sizeof spec->prefix_key, "prefix-%d", scenario % 3);
    }
    fleet_key(spec->scenario_id, spec->seed, spec->tier, spec->planner, spec->key);
    if (spec->tier == TIER_STUDENT && (fleet->follows || fleet->freezes)) {
        job_key_make(spec, 0); /* as a move makes it anew */
    }
}

static void make_audit(const struct job_spec *spec, struct job_spec *audit)
{
    char teacher[SHA256_HEX_BYTES];

    *audit = *spec;
    memcpy(audit->audit_key, spec->key, sizeof audit->audit_key);
    audit->tier = TIER_TEACHER;
    job_escalation_clear(audit);
    snprintf(audit->pool, sizeof audit->pool, "teacher");
    audit->follows = audit->evaluates = false;
    snprintf(audit->model_hash, sizeof audit->model_hash, "mt");
    snprintf(audit->sampler, sizeof audit->sampler, "many");
    fleet_key(spec->scenario_id, spec->seed, TIER_TEACHER, spec->planner, teacher);
    job_key_audit(teacher, audit->key);
}

static void forge_audit(const struct fleet *fleet, struct job_spec *audit)
{
    if (fleet->bug != NULL && fleet->bug->forged_audits) {
        audit->seed += 1000000;
    }
}

static uint32_t make_batch(const struct fleet *fleet, int suite, int batch, struct job_spec *specs)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < fleet->batch_jobs; i++) {
        make_spec(fleet, suite, (uint32_t)batch * fleet->batch_jobs + i, &specs[count++]);
        if (specs[count - 1].tier == TIER_STUDENT &&
            (specs[count - 1].evaluates ||
             trust_audit_sampled(specs[count - 1].key, fleet->audit_rate))) {
            make_audit(&specs[count - 1], &specs[count]);
            forge_audit(fleet, &specs[count]);
            count++;
        }
    }
    CHECK(count <= BATCH_SPECS_MAX);
    return count;
}

/* ---- submitting ---- */

struct submitter {
    int suite;
    struct job_spec specs[BATCH_SPECS_MAX];
    struct store_submit_result results[BATCH_SPECS_MAX];
};

/* Until it is answered. False: killed. */
static bool submit_batch(struct task *task, struct submitter *submitter, int batch)
{
    struct process *process = task->process;
    struct fleet *fleet = process->fleet;
    struct store *store = process->link;
    struct error error;
    uint32_t count = make_batch(fleet, submitter->suite, batch, submitter->specs);
    const char *suite_id = submitter->specs[0].suite_id;

    for (;;) {
        enum status status = put_scenarios(fleet, store, &error);
        if (status == STATUS_OK) {
            uint32_t weight = fleet->weights[submitter->suite];
            const char *tenant = fleet->tenants[submitter->suite];
            enum suite_class of_class = fleet->classes[submitter->suite];
            status =
                tenant == NULL && of_class == SUITE_CLASS_SAME
                    ? store->ops->submit(store, suite_id, weight, submitter->specs, count,
                                         submitter->results, &error)
                    : store->ops->submit_as(store, tenant, suite_id, weight, of_class, 0,
                                            submitter->specs, count, submitter->results, &error);
        }
        if (process->dead) {
            return false;
        }
        if (status == STATUS_OK) {
            break;
        }
        sim_log(&fleet->sim, process->name, "submit: %s", error.text);
        if (!task_sleep(task, sim_between(&fleet->sim, 100, 5000) * NS_PER_MS)) {
            return false;
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        fleet_acknowledged(fleet, &submitter->specs[i], submitter->results[i].job_id);
    }
    return true;
}

static bool look(struct task *task, const char *suite_id)
{
    struct store_suite_status status;
    struct error error;
    struct store *store = task->process->link;

    store->ops->suite_status(store, suite_id, &status, &error);
    return !task->process->dead;
}

static void submit_suite(struct task *task)
{
    struct submitter *submitter = task->context;
    struct fleet *fleet = task->process->fleet;
    struct sim *sim = &fleet->sim;
    bool alive = true;

    for (int batch = 0; batch < fleet->batches && alive; batch++) {
        alive = submit_batch(task, submitter, batch);
        if (alive && sim_chance(sim, 0.3)) {
            alive = look(task, submitter->specs[0].suite_id);
        }
        if (alive && sim_chance(sim, 0.2)) { /* somebody starts the same command once more */
            alive = submit_batch(task, submitter, (int)sim_between(sim, 0, batch));
        }
        if (alive && !fleet->one_tier) {
            alive = task_sleep(task, sim_between(sim, 0, 20000) * NS_PER_MS);
        }
    }
    fleet_submitter_ended(fleet, task->process, submitter->suite);
}

void submitter_start(struct fleet *fleet, int suite)
{
    char name[LIMIT_ID_BYTES];
    struct submitter *submitter = calloc(1, sizeof *submitter);

    CHECK(submitter != NULL);
    snprintf(name, sizeof name, "suite-%d", suite);
    submitter->suite = suite;
    struct process *process = process_create(fleet, name);
    process->state = submitter;
    process_start(process, submit_suite, submitter);
}

/* ---- operators ---- */

struct order {
    char suite_id[LIMIT_ID_BYTES];  /* to be cancelled, or "" */
    char worker_id[LIMIT_ID_BYTES]; /* that is gone, or "" */
    int pool;
    int device;
    int64_t price;
    struct model_event event; /* of a version, or "" */
    bool trusts;              /* the following is meant */
    struct trust_event trust;
};

static void carry_out(struct task *task)
{
    const struct order *order = task->context;
    struct store *store = task->process->link;
    struct error error = {.text = ""};
    int64_t count = 0;
    enum status status;

    if (order->suite_id[0] != '\0') {
        status = store->ops->cancel(store, order->suite_id, &count, &error);
    } else if (order->worker_id[0] != '\0') {
        status = store->ops->worker_gone(store, order->worker_id, &error);
    } else if (order->trusts) {
        struct trust_event done;
        status = store->ops->trust_event(store, &order->trust, &done, &error);
    } else if (order->event.model[0] != '\0') {
        struct model_event done;
        status = store->ops->model_event(store, &order->event, &done, &error);
    } else {
        status = store->ops->price_set(store, model_pools[order->pool],
                                       model_devices[order->device], order->price, &error);
    }
    if (status != STATUS_OK) {
        sim_log(&task->process->fleet->sim, "operator", "%s", error.text);
    }
}

static struct order *order_start(struct fleet *fleet)
{
    struct order *order = calloc(1, sizeof *order);
    CHECK(order != NULL);
    struct process *process = process_create(fleet, "operator");
    process->state = order;
    process_start(process, carry_out, order);
    return order;
}

void operator_cancel(struct fleet *fleet, const char *suite_id)
{
    snprintf(order_start(fleet)->suite_id, LIMIT_ID_BYTES, "%s", suite_id);
}

void operator_gone(struct fleet *fleet, const char *worker_id)
{
    snprintf(order_start(fleet)->worker_id, LIMIT_ID_BYTES, "%s", worker_id);
}

void operator_price(struct fleet *fleet, int pool, int device, int64_t price)
{
    struct order *order = order_start(fleet);
    order->pool = pool;
    order->device = device;
    order->price = price;
}

void operator_floor(struct fleet *fleet, double rate)
{
    struct order *order = order_start(fleet);
    order->trusts = true;
    order->trust = (struct trust_event){
        .kind = TRUST_FLOOR, .audit_rate = rate, .audit_rate_safety_critical = rate};
}

void operator_trust(struct fleet *fleet, int weather)
{
    struct order *order = order_start(fleet);
    int64_t freeze = fleet->model->freezes[weather];
    order->trusts = true;
    order->trust =
        freeze == 0
            ? model_freeze_of(weather)
            : (struct trust_event){
                  .kind = TRUST_THAW, .freeze = freeze, .forced = true, .evidence = "a seed"};
}

void operator_version(struct fleet *fleet, int version, enum model_state to, int64_t canary_percent)
{
    struct order *order = order_start(fleet);
    order->event = (struct model_event){.kind = MODEL_MOVED,
                                        .to_state = to,
                                        .canary_percent = to == MODEL_CANARY   ? canary_percent
                                                          : to == MODEL_SHADOW ? canary_percent - 1
                                                                               : 0,
                                        .forced = true,
                                        .evidence = "a seed"};
    snprintf(order->event.model, sizeof order->event.model, "%s", model_versions[version]);
}
