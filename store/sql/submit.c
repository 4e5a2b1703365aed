/*
 * Orders of the owner of a suite: submitting and cancelling.
 *
 * Submitting takes scenario bodies and jobs. What another suite has finished under the same key and
 * with the same spec is not run again: the new job is done at once and refers to its outcomes.
 * Cancelling ends the jobs that were open when it began, CANCEL_CHUNK per transaction. A job that
 * follows a tier with a shadow brings that one's job with it, in the same transaction; one of a
 * frozen slice is the teacher's from the beginning, and what the floor of audits asks for is added.
 */
#include "base/check.h"
#include "base/sha256.h"
#include "base/units.h"
#include "schemas/job_json.h"
#include "store/door/door.h"
#include "store/sql/records.h"
#include "store/sql/sql_store.h"
#include "store/sql/tenants.h"

#include <inttypes.h>
#include <string.h>

/* Jobs that one transaction cancels, so that others need not wait long. */
enum { CANCEL_CHUNK = 256 };

struct submit_call {
    struct sql_store *store;
    const struct job_spec *specs;
    uint32_t count;
    struct store_submit_result *results;
    struct db *db;
    struct tally *tally;
    int64_t suite;
    struct tenants_suite owner;
    struct question_audited audited; /* of an audit job */
    int64_t freeze;                  /* by which a job is submitted as the teacher's; 0: none */
    const char *asked;               /* .. and the key that it was asked by; "": its own */
    struct models_shadow shadow;
    int64_t shadow_of; /* what is submitted now is a job of this version's; 0: a client's */
};

/* Ids behind a spec's texts; a suite's specs mostly repeat those of the one before. */
struct spec_ids {
    const struct job_spec *spec; /* whose ids these are; NULL: nobody's */
    int64_t pool;
    int64_t prefix;
    int64_t context;
    int64_t scenario;
    int64_t ticks;      /* planned, of the scenario */
    int64_t escalation; /* context of who answers if the job is flagged; 0: nobody is named */
};

/* ---- scenarios ---- */

struct scenario_call {
    const struct clock *clock;
    const char *tenant; /* "": nobody's */
    const char *hash;
    const char *body;
    size_t bytes;
};

static enum status scenario_put_op(struct db *db, void *context, struct error *error)
{
    const struct scenario_call *call = context;
    int64_t id = 0;
    int64_t tenant = 0;
    TRY(record_find(db, STATEMENT_SCENARIO_FIND, call->hash, &id, error));
    if (id != 0) {
        return STATUS_OK;
    }
    TRY(call->tenant[0] != '\0'
            ? tenants_bring(db, call->clock, call->tenant, call->bytes, &tenant, error)
            : STATUS_OK);
    return record_scenario_insert(db, call->hash, call->body, call->bytes, tenant, error);
}

enum status lifecycle_scenario_put_as(struct store *base, const char *tenant, const char *hash,
                                      const char *body, size_t bytes, struct error *error)
{
    char found[SHA256_HEX_BYTES];
    struct scenario_call call = {sql_store_of(base)->clock, tenant, hash, body, bytes};

    if (bytes > LIMIT_DOCUMENT_BYTES) {
        return error_set(error, STATUS_LIMIT, "a scenario has at most %d bytes, this one has %zu",
                         LIMIT_DOCUMENT_BYTES, bytes);
    }
    sha256_hex(body, bytes, found);
    if (strcmp(hash, found) != 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "the scenario's SHA-256 is %s, not %.64s as its name says", found, hash);
    }
    return sql_store_write(sql_store_of(base), scenario_put_op, &call, error);
}

/* ---- jobs ---- */

static enum status find_scenario(struct submit_call *call, const struct job_spec *spec, int64_t *id,
                                 struct error *error)
{
    *id = 0;
    if (spec->scenario_hash[0] == '\0') {
        return STATUS_OK;
    }
    TRY(record_find(call->db, STATEMENT_SCENARIO_FIND, spec->scenario_hash, id, error));
    if (*id == 0) {
        return error_set(error, STATUS_CONFLICT,
                         "scenario \"%s\": its body (%s) is not in the store; put it there before "
                         "submitting",
                         spec->scenario_id, spec->scenario_hash);
    }
    return STATUS_OK;
}

/* Facts about a job's scenario by its number. */
static enum status find_ticks(struct submit_call *call, struct spec_ids *ids, struct error *error)
{
    struct query query = query_begin(call->db, STATEMENT_SCENARIO_TICKS);

    ids->ticks = 0;
    query_int(&query, ids->scenario);
    if (query_row(&query)) {
        ids->ticks = query_column_int(&query, 0);
    }
    return query_end(&query, error);
}

static enum status add_planner(struct submit_call *call, const char *planner, struct error *error)
{
    struct query query = query_begin(call->db, STATEMENT_PLANNER_COUNT);

    query_int(&query, call->suite);
    query_text(&query, planner);
    return query_run(&query, error);
}

/* Whether two jobs have one row of contexts. */
static bool one_context(const struct job_spec *a, const struct job_spec *b)
{
    bool same = true;
    for (size_t i = 0; i < job_shared_field_list.count; i++) {
        same = same && json_record_same(&job_shared_field_list.fields[i], a, b);
    }
    return same;
}

static bool same_escalation(const struct job_spec *a, const struct job_spec *b)
{
    return strcmp(a->escalate_pool, b->escalate_pool) == 0 &&
           a->escalate_tier == b->escalate_tier &&
           strcmp(a->escalate_model_hash, b->escalate_model_hash) == 0 &&
           strcmp(a->escalate_sampler, b->escalate_sampler) == 0 && a->follows == b->follows;
}

static enum status find_ids(struct submit_call *call, const struct job_spec *spec,
                            struct spec_ids *ids, struct error *error)
{
    const struct job_spec *last = ids->spec;
    bool apart = last == NULL || !one_context(last, spec);

    ids->spec = NULL;
    if (last == NULL || strcmp(last->pool, spec->pool) != 0) {
        TRY(record_pool_id(call->db, spec->pool, &ids->pool, error));
    }
    if (last == NULL || strcmp(last->prefix_key, spec->prefix_key) != 0) {
        TRY(record_prefix_id(call->db, spec->prefix_key, &ids->prefix, error));
    }
    if (apart) {
        TRY(record_context_id(call->db, spec, &ids->context, error));
        TRY(add_planner(call, spec->planner, error));
    }
    if (apart || !same_escalation(last, spec)) {
        TRY(question_escalation(call->db, spec, &ids->escalation, error));
    }
    if (last == NULL || strcmp(last->scenario_hash, spec->scenario_hash) != 0) {
        TRY(find_scenario(call, spec, &ids->scenario, error));
        TRY(find_ticks(call, ids, error));
    }
    ids->spec = spec;
    return STATUS_OK;
}

/* The suite's own job with this key, or that was submitted under it and has moved to another
 * version of its model since; or another suite's finished job of this key and question. One whose
 * artifact is gone is not taken over: running it again is what brings the artifact back. */
static enum status find_known(struct submit_call *call, const struct job_spec *spec,
                              struct store_submit_result *result, int64_t *memo_of,
                              struct error *error)
{
    struct query own = query_begin(call->db, STATEMENT_SPEC_FIND);

    bool unnamed = false;
    memset(result, 0, sizeof *result);
    *memo_of = 0;
    query_text(&own, spec->key);
    query_int(&own, call->suite);
    enum status looked = STATUS_OK;
    if (query_row(&own)) {
        result->job_id = query_column_int(&own, 0);
        result->memoised = query_column_int(&own, 1) != 0;
        result->existed = true;
        if (query_column_int(&own, 2) != 0) {
            looked = question_artifact_lost(call->store, &own, 3, &result->lost, error);
        }
        unnamed = query_column_int(&own, 4) != 0 && spec->escalate_pool[0] != '\0';
    }
    enum status status = query_end(&own, looked == STATUS_OK ? error : NULL);
    status = looked == STATUS_OK ? status : looked;
    if (status != STATUS_OK || result->existed) {
        return status == STATUS_OK && unnamed
                   ? question_fill_escalation(call->db, spec, result->job_id, error)
                   : status;
    }
    return question_known(call->store, call->db, spec, memo_of, error);
}

static enum status insert_rows(struct submit_call *call, const struct job_spec *spec,
                               const struct spec_ids *ids, int64_t memo_of, int64_t *job_id,
                               struct error *error)
{
    struct query job = query_begin(call->db, STATEMENT_JOB_INSERT);

    query_int(&job, call->suite);
    query_int(&job, ids->pool);
    query_int(&job, ids->prefix);
    query_int(&job, memo_of != 0 ? JOB_DONE : JOB_QUEUED);
    query_int(&job, spec->priority);
    query_int(&job, spec->rollout_count);
    query_int_or_null(&job, memo_of);
    query_int(&job, ledger_kind_of(spec, call->shadow_of != 0) == LEDGER_AUDIT);
    query_int(&job, spec->follows);
    query_int(&job, call->shadow_of != 0 && memo_of == 0 ? STATEMENT_DUE_IDLE : 0);
    query_int_or_null(&job, call->shadow_of);
    query_int_or_null(&job, call->freeze);
    query_int(&job, spec->evaluates);
    TRY(query_run(&job, error));
    *job_id = db_last_id(call->db);
    struct query insert = query_begin(call->db, STATEMENT_SPEC_INSERT);
    query_int(&insert, *job_id);
    query_int(&insert, call->suite);
    query_text(&insert, spec->key);
    query_text(&insert, spec->scenario_id);
    query_int_or_null(&insert, ids->scenario);
    query_int(&insert, ids->context);
    query_int(&insert, (int64_t)spec->seed);
    query_int(&insert, spec->attempts_max);
    query_int_or_null(&insert, spec->parent_job_id);
    query_text_or_null(&insert, spec->audit_key[0] != '\0' ? call->audited.key : "");
    query_text_or_null(&insert, call->freeze != 0 ? call->asked : "");
    query_int_or_null(&insert, ids->escalation);
    query_text(&insert, spec->rig);
    query_text(&insert, spec->makes);
    query_int(&insert, spec->route_reason);
    query_int(&insert, spec->route_own);
    query_int(&insert, spec->route_other);
    return query_run(&insert, error);
}

/* The counters of a new job that is no shadow's. */
static enum status count_job(struct submit_call *call, const struct job_spec *spec,
                             const struct spec_ids *ids, int64_t memo_of, struct error *error)
{
    struct tally_suite *counters;
    bool audit = ledger_kind_of(spec, false) == LEDGER_AUDIT;

    TRY(tally_move(call->tally, call->suite, ids->pool, JOB_STATE_COUNT,
                   memo_of != 0 ? JOB_DONE : JOB_QUEUED, error));
    if (memo_of == 0) {
        const struct tally_part part = {.suite = call->suite,
                                        .pool = ids->pool,
                                        .tier = spec->tier,
                                        .jobs_open = 1,
                                        .ticks = ids->ticks,
                                        .ticks_open = ids->ticks};
        TRY(tally_progress(call->tally, &part, error));
    }
    TRY(tally_suite(call->tally, call->suite, &counters, error));
    counters->rollouts_total += spec->parent_job_id == 0 && !audit ? spec->rollout_count : 0;
    return STATUS_OK;
}

static enum status submit_one(struct submit_call *call, const struct job_spec *spec,
                              struct spec_ids *ids, struct store_submit_result *result,
                              struct error *error)
{
    int64_t memo_of = 0;
    enum status status = find_known(call, spec, result, &memo_of, error);

    if (status != STATUS_OK || result->existed) {
        return status;
    }
    if (call->specs != NULL) { /* others copy a job that is there */
        struct door_scenario scenario;
        TRY(record_scenarios_find(call->db, &call->store->scenarios, spec, &scenario, error));
        TRY(door_rollout_count(spec, &scenario, error));
    }
    if (spec->parent_job_id != 0) {
        status = question_check_parent(call->db, call->suite, spec, error);
    }
    if (status == STATUS_OK && spec->audit_key[0] != '\0') {
        status = question_check_audit(call->db, call->suite, spec, call->shadow_of != 0,
                                      &call->audited, error);
        if (status == STATUS_OK && call->audited.answered != 0) { /* there is such evidence */
            result->job_id = call->audited.answered;
            result->existed = true;
            return STATUS_OK;
        }
    }
    THEN(status, find_ids(call, spec, ids, error));
    THEN(status, insert_rows(call, spec, ids, memo_of, &result->job_id, error));
    if (status == STATUS_OK && memo_of != 0) {
        result->memoised = true;
        status = question_take(call->tally, call->suite, result->job_id, memo_of,
                               ledger_kind_of(spec, call->shadow_of != 0), error);
    }
    if (status == STATUS_OK && call->shadow_of == 0) {
        status = count_job(call, spec, ids, memo_of, error);
    }
    call->store->made_ready |= status == STATUS_OK && memo_of == 0;
    return status;
}

/* Brings the job of the tier's shadow with a new job, which somebody drives. */
static enum status add_shadow(struct submit_call *call, const struct job_spec *spec,
                              struct error *error)
{
    TRY(models_shadow_find(call->db, spec->tier, &call->shadow, error));
    struct job_spec shadow;
    struct spec_ids ids = {.spec = NULL};
    struct store_submit_result ignored;

    if (call->shadow.id == 0 || !model_job_shadow(&call->shadow.version, spec, &shadow)) {
        return STATUS_OK;
    }
    call->shadow_of = call->shadow.id;
    enum status status = submit_one(call, &shadow, &ids, &ignored, error);
    call->shadow_of = 0;
    return status;
}

/* A student's job of a frozen slice, as the teacher's; the suite may have it under its old key. */
static enum status submit_frozen(struct submit_call *call, const struct job_spec *spec,
                                 struct store_submit_result *result, struct error *error)
{
    struct job_spec moved = *spec;
    struct spec_ids ids = {.spec = NULL};
    int64_t ignored = 0;
    TRY(find_known(call, spec, result, &ignored, error));
    if (result->existed) {
        return STATUS_OK;
    }
    TRY(freezes_answer(call->store, call->freeze, &moved, error));
    call->asked = spec->key;
    return submit_one(call, &moved, &ids, result, error);
}

static enum status submit_with_shadow(struct submit_call *call, const struct job_spec *spec,
                                      struct spec_ids *ids, struct store_submit_result *result,
                                      struct error *error)
{
    TRY(freezes_find(call->store, spec, &call->freeze, error));
    if (call->freeze != 0) {
        enum status status = submit_frozen(call, spec, result, error);
        call->freeze = 0;
        return status;
    }
    TRY(submit_one(call, spec, ids, result, error));
    bool driven = !result->existed && !result->memoised;
    return driven && spec->follows ? add_shadow(call, spec, error) : STATUS_OK;
}

/* Audits that the store's floor asks for and that the call did not bring; *queued grows by those
 * that wait. */
static enum status add_audits(struct submit_call *call, int64_t *queued, struct error *error)
{
    for (uint32_t i = 0; i < call->count; i++) {
        struct job_spec audit;
        struct spec_ids ids = {.spec = NULL};
        struct store_submit_result added = {.existed = true};
        bool wanted = false;
        TRY(call->results[i].existed
                ? STATUS_OK
                : freezes_audit(call->store, call->suite, &call->specs[i], &audit, &wanted, error));
        TRY(wanted ? submit_one(call, &audit, &ids, &added, error) : STATUS_OK);
        *queued += !added.existed && !added.memoised;
    }
    return STATUS_OK;
}

static enum status submit_op(struct db *db, void *context, struct error *error)
{
    struct submit_call *call = context;
    struct spec_ids ids = {.spec = NULL};
    struct tally tally;

    call->db = db;
    call->tally = &tally;
    call->shadow.known = false; /* an operation may be repeated, later */
    call->shadow_of = 0;
    call->freeze = 0;
    freezes_begin(call->store);
    tally_init(&tally, db, call->store->clock);
    int64_t queued = 0;
    enum status status =
        tenants_suite(call->db, call->store->clock, &call->owner, &call->suite, error);
    THEN(status, tenants_budget(call->store, &tally, call->suite, &call->owner, &queued, error));
    for (uint32_t i = 0; i < call->count && status == STATUS_OK; i++) {
        status = submit_with_shadow(call, &call->specs[i], &ids, &call->results[i], error);
        queued += !call->results[i].existed && !call->results[i].memoised;
    }
    THEN(status, add_audits(call, &queued, error));
    call->store->turns.news |= queued > 0 && call->owner.of_class == SUITE_INTERACTIVE;
    THEN(status, tally_flush(&tally, error));
    THEN(status, tenants_allow(call->db, call->store->clock, &call->owner, queued, error));
    return status;
}

enum status submit_successor(struct sql_store *store, struct tally *tally, int64_t suite,
                             const struct job_spec *spec, int64_t *job_id, struct error *error)
{
    struct spec_ids ids = {.spec = NULL};
    struct store_submit_result result;
    struct submit_call call = {.store = store, .db = tally->db, .tally = tally, .suite = suite};
    TRY(submit_with_shadow(&call, spec, &ids, &result, error));
    *job_id = result.job_id;
    return STATUS_OK;
}

enum status submit_shadow(struct sql_store *store, struct tally *tally,
                          const struct models_shadow *shadow, const struct job_spec *spec,
                          struct error *error)
{
    struct submit_call call = {.store = store, .db = tally->db, .tally = tally, .shadow = *shadow};
    TRY(record_find(tally->db, STATEMENT_SUITE_FIND, spec->suite_id, &call.suite, error));
    return add_shadow(&call, spec, error);
}

enum status lifecycle_submit(struct store *base, const char *suite_id, uint32_t weight,
                             const struct job_spec *specs, uint32_t count,
                             struct store_submit_result *results, struct error *error)
{
    return lifecycle_submit_as(base, NULL, suite_id, weight, SUITE_CLASS_SAME, 0, specs, count,
                               results, error);
}

enum status lifecycle_submit_as(struct store *base, const char *tenant, const char *suite_id,
                                uint32_t weight, enum suite_class of_class, int64_t budget_uusd,
                                const struct job_spec *specs, uint32_t count,
                                struct store_submit_result *results, struct error *error)
{
    struct sql_store *store = sql_store_of(base);
    struct submit_call call = {
        .store = store,
        .owner = {.suite_id = suite_id,
                  .weight = weight,
                  .of_class = of_class,
                  .asked = tenant,
                  .asked_uusd = budget_uusd},
        .specs = specs,
        .count = count,
        .results = results,
    };

    TRY(door_suite(suite_id, error));
    TRY(door_budget(suite_id, budget_uusd, error));
    TRY(door_class(suite_id, of_class, error));
    if (weight < 1 || weight > 100) {
        return error_set(error, STATUS_BAD_INPUT, "suite \"%s\": weight %" PRIu32 " is not 1..100",
                         suite_id, weight);
    }
    if (count > LIMIT_SUITE_JOBS) {
        return error_set(error, STATUS_LIMIT,
                         "suite \"%s\": %" PRIu32 " jobs in one submission; at most %d are allowed",
                         suite_id, count, LIMIT_SUITE_JOBS);
    }
    for (uint32_t i = 0; i < count; i++) {
        TRY(door_spec(&specs[i], suite_id, i, error));
    }
    return sql_store_write(store, submit_op, &call, error);
}

/* ---- cancelling ---- */

struct cancel_call {
    struct sql_store *store;
    const char *suite_id;
    int64_t last_job; /* the newest that was open when the call began; 0: not looked for yet */
    int64_t count;    /* of this step */
    bool more;        /* there may be further steps */
};

struct open_job {
    int64_t id;
    enum job_state state;
    int64_t pool;
    enum tier tier;
    int64_t ticks;
    bool shadow;
};

static enum status read_open(struct db *db, const struct cancel_call *call, int64_t suite,
                             struct open_job jobs[CANCEL_CHUNK], uint32_t *count,
                             struct error *error)
{
    struct query query = query_begin(db, STATEMENT_OPEN_OF_SUITE);

    query_int(&query, suite);
    query_int(&query, call->last_job);
    query_int(&query, CANCEL_CHUNK);
    *count = 0;
    while (*count < CANCEL_CHUNK && query_row(&query)) {
        jobs[*count].id = query_take_int(&query);
        jobs[*count].state = (enum job_state)query_take_int(&query);
        jobs[*count].pool = query_take_int(&query);
        jobs[*count].tier = (enum tier)query_take_int(&query);
        jobs[*count].ticks = query_take_int(&query);
        jobs[(*count)++].shadow = query_take_int(&query) != 0;
    }
    return query_end(&query, error);
}

static enum status cancel_queued(struct tally *tally, int64_t suite, const struct open_job *job,
                                 struct error *error)
{
    struct query query = query_begin(tally->db, STATEMENT_CANCEL_QUEUED);

    query_int(&query, job->id);
    TRY(query_run(&query, error));
    TRY(record_partials_drop(tally->db, job->id, JOB_CANCELLED, error));
    if (job->shadow) {
        return STATUS_OK;
    }
    const struct tally_part part = {.suite = suite,
                                    .pool = job->pool,
                                    .tier = job->tier,
                                    .jobs_open = -1,
                                    .ticks_open = -job->ticks};
    TRY(tally_progress(tally, &part, error));
    return tally_move(tally, suite, job->pool, JOB_QUEUED, JOB_CANCELLED, error);
}

/* A job that is submitted while a cancel goes its way is not meant by it. */
static enum status find_last(struct db *db, struct cancel_call *call, int64_t suite,
                             struct error *error)
{
    if (call->last_job != 0) {
        return STATUS_OK;
    }
    struct query query = query_begin(db, STATEMENT_OPEN_LAST);
    query_int(&query, suite);
    if (query_row(&query)) {
        call->last_job = query_column_int(&query, 0);
    }
    return query_end(&query, error);
}

/* Jobs that a budget cancelled stay so from now on, and count as cancelled by this call. */
static enum status forgo(struct db *db, int64_t suite, int64_t *count, struct error *error)
{
    struct query found = query_begin(db, STATEMENT_BUDGET_COUNT);

    query_int(&found, suite);
    *count = query_row(&found) ? query_column_int(&found, 0) : 0;
    TRY(query_end(&found, error));
    if (*count == 0) {
        return STATUS_OK;
    }
    struct query forgo = query_begin(db, STATEMENT_BUDGET_FORGO);
    query_int(&forgo, suite);
    return query_run(&forgo, error);
}

/* One step: at most CANCEL_CHUNK jobs that are open. */
static enum status cancel_op(struct db *db, void *context, struct error *error)
{
    struct cancel_call *call = context;
    struct open_job jobs[CANCEL_CHUNK];
    struct tally tally;
    uint32_t found = 0;
    int64_t suite = 0;
    call->count = 0;
    tally_init(&tally, db, call->store->clock);
    enum status status = record_find_suite(db, call->suite_id, &suite, error);
    THEN(status, forgo(db, suite, &call->count, error));
    THEN(status, find_last(db, call, suite, error));
    THEN(status, read_open(db, call, suite, jobs, &found, error));
    for (uint32_t i = 0; i < found && status == STATUS_OK; i++) {
        status = jobs[i].state == JOB_QUEUED ? cancel_queued(&tally, suite, &jobs[i], error)
                                             : lease_end_attempt(call->store, &tally, jobs[i].id,
                                                                 JOB_CANCELLED, false, error);
        call->count += !jobs[i].shadow;
    }
    call->more = found == CANCEL_CHUNK;
    return status == STATUS_OK ? tally_flush(&tally, error) : status;
}

enum status lifecycle_cancel(struct store *base, const char *suite_id, int64_t *count,
                             struct error *error)
{
    struct cancel_call call = {.store = sql_store_of(base), .suite_id = suite_id, .more = true};
    int64_t cancelled = 0;
    enum status status = STATUS_OK;

    while (status == STATUS_OK && call.more) {
        status = sql_store_write(call.store, cancel_op, &call, error);
        cancelled += call.count;
    }
    if (status == STATUS_OK) {
        *count = cancelled;
    }
    return status;
}

/* Jobs of a shadow are in no counter, so that their places alone have to be read. */
static enum status read_open_shadows(struct db *db, int64_t version,
                                     struct open_job jobs[CANCEL_CHUNK], uint32_t *count,
                                     struct error *error)
{
    struct query query = query_begin(db, STATEMENT_OPEN_OF_SHADOW);

    query_int(&query, version);
    query_int(&query, CANCEL_CHUNK);
    *count = 0;
    while (*count < CANCEL_CHUNK && query_row(&query)) {
        jobs[*count] = (struct open_job){.id = query_column_int(&query, 0), .shadow = true};
        jobs[(*count)++].state = (enum job_state)query_column_int(&query, 1);
    }
    return query_end(&query, error);
}

enum status submit_shadows_end(struct sql_store *store, struct tally *tally, int64_t version,
                               struct error *error)
{
    struct open_job jobs[CANCEL_CHUNK];
    uint32_t found = CANCEL_CHUNK;

    while (found == CANCEL_CHUNK) {
        TRY(read_open_shadows(tally->db, version, jobs, &found, error));
        for (uint32_t i = 0; i < found; i++) {
            TRY(jobs[i].state == JOB_QUEUED
                    ? cancel_queued(tally, 0, &jobs[i], error)
                    : lease_end_attempt(store, tally, jobs[i].id, JOB_CANCELLED, false, error));
        }
    }
    return STATUS_OK;
}
