/*
 * Records to and from rows. See records.h.
 *
 * An outcome repeats most of what its job says (scenario, seed, planner ..). Equal values are not
 * stored again: they are NULL, or the same context number, and come back when it is read.
 */
#include "store/sql/records.h"

#include "base/check.h"
#include "base/utf8.h"
#include "schemas/job_json.h"
#include "schemas/json_read.h"
#include "schemas/outcome_json.h"
#include "schemas/scenario.h"
#include "store/sql/sql_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

enum status record_find(struct db *db, enum statement statement, const char *text, int64_t *id,
                        struct error *error)
{
    int64_t found = 0;
    struct query query = query_begin(db, statement);

    query_text(&query, text);
    if (query_row(&query)) {
        found = query_column_int(&query, 0);
    }
    TRY(query_end(&query, error));
    *id = found;
    return STATUS_OK;
}

enum status record_find_suite(struct db *db, const char *suite_id, int64_t *id, struct error *error)
{
    TRY(record_find(db, STATEMENT_SUITE_FIND, suite_id, id, error));
    return *id != 0 ? STATUS_OK
                    : error_set(error, STATUS_NOT_FOUND, "the store has no suite \"%s\"", suite_id);
}

static enum status find_or_insert(struct db *db, enum statement find, enum statement insert,
                                  const char *text, int64_t *id, struct error *error)
{
    int64_t found = 0;
    enum status status = record_find(db, find, text, &found, error);

    if (status == STATUS_OK && found == 0) {
        struct query query = query_begin(db, insert);
        query_text(&query, text);
        status = query_run(&query, error);
        found = db_last_id(db);
    }
    if (status == STATUS_OK) {
        *id = found;
    }
    return status;
}

enum status record_pool_id(struct db *db, const char *name, int64_t *id, struct error *error)
{
    return find_or_insert(db, STATEMENT_POOL_FIND, STATEMENT_POOL_INSERT, name, id, error);
}

enum status record_prefix_id(struct db *db, const char *key, int64_t *id, struct error *error)
{
    if (key[0] == '\0') {
        *id = 0;
        return STATUS_OK;
    }
    return find_or_insert(db, STATEMENT_PREFIX_FIND, STATEMENT_PREFIX_INSERT, key, id, error);
}

struct record_context record_context_of_spec(const struct job_spec *spec)
{
    return (struct record_context){
        .planner = spec->planner,
        .planner_hash = spec->planner_hash,
        .pool = spec->pool,
        .tier = spec->tier,
        .model_hash = spec->model_hash,
        .sampler = spec->sampler,
        .backend = spec->backend,
        .revision = spec->revision,
    };
}

struct record_context record_context_of_outcome(const struct outcome *outcome)
{
    return (struct record_context){
        .planner = outcome->planner,
        .planner_hash = outcome->planner_hash,
        .pool = outcome->pool,
        .tier = outcome->tier,
        .model_hash = outcome->model_hash,
        .sampler = outcome->sampler,
        .backend = outcome->backend,
        .revision = outcome->revision,
    };
}

bool record_context_equal(const struct record_context *a, const struct record_context *b)
{
    return a->tier == b->tier && strcmp(a->planner, b->planner) == 0 &&
           strcmp(a->planner_hash, b->planner_hash) == 0 && strcmp(a->pool, b->pool) == 0 &&
           strcmp(a->model_hash, b->model_hash) == 0 && strcmp(a->sampler, b->sampler) == 0 &&
           strcmp(a->backend, b->backend) == 0 && strcmp(a->revision, b->revision) == 0;
}

static void bind_context(struct query *query, const struct record_context *context)
{
    query_text(query, context->planner);
    query_text(query, context->planner_hash);
    query_text(query, context->pool);
    query_int(query, (int64_t)context->tier);
    query_text(query, context->model_hash);
    query_text(query, context->sampler);
    query_text(query, context->backend);
    query_text(query, context->revision);
}

enum status record_context_id(struct db *db, const struct record_context *context, int64_t *id,
                              struct error *error)
{
    int64_t found = 0;
    struct query find = query_begin(db, STATEMENT_CONTEXT_FIND);

    bind_context(&find, context);
    if (query_row(&find)) {
        found = query_column_int(&find, 0);
    }
    enum status status = query_end(&find, error);
    if (status == STATUS_OK && found == 0) {
        struct query insert = query_begin(db, STATEMENT_CONTEXT_INSERT);
        bind_context(&insert, context);
        status = query_run(&insert, error);
        found = db_last_id(db);
    }
    if (status == STATUS_OK) {
        *id = found;
    }
    return status;
}

/* ---- reading ---- */

#define READ_TEXT(query, column, field) query_column_text((query), (column), (field), sizeof(field))

int record_read(struct query *query, int column, const struct json_field_list *list, void *record)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct json_field *field = &list->fields[i];
        void *place = (char *)record + field->offset;
        switch (field->kind) {
        case JSON_FIELD_RECORD:
            column = record_read(query, column, field->list, place);
            continue;
        case JSON_FIELD_TEXT:
            query_column_text(query, column, place, field->bytes);
            break;
        case JSON_FIELD_F64:
            *(double *)place = query_column_real(query, column);
            break;
        case JSON_FIELD_BOOL:
            *(bool *)place = query_column_int(query, column) != 0;
            break;
        case JSON_FIELD_I64:
        case JSON_FIELD_U64:
            *(int64_t *)place = query_column_int(query, column);
            break;
        case JSON_FIELD_I32:
        case JSON_FIELD_U32:
        case JSON_FIELD_NAME:
        case JSON_FIELD_BITS:
            *(uint32_t *)place = (uint32_t)query_column_int(query, column);
            break;
        case JSON_FIELD_U32_OR_NULL:
            *(uint32_t *)place = query_column_is_null(query, column)
                                     ? UINT32_MAX
                                     : (uint32_t)query_column_int(query, column);
            break;
        }
        column++;
    }
    return column;
}

void record_spec_read(struct query *query, int first, struct job_spec *spec)
{
    CHECK(record_read(query, first, &job_spec_field_list, spec) == first + RECORD_SPEC_COLUMNS);
}

void record_job_read(struct query *query, struct store_job *job)
{
    job->id = query_column_int(query, 0);
    job->state = (enum job_state)query_column_int(query, 1);
    job->epoch = query_column_int(query, 2);
    job->attempts = (uint32_t)query_column_int(query, 3);
    READ_TEXT(query, 4, job->worker_id);
    READ_TEXT(query, 5, job->error);
    record_spec_read(query, 6, &job->spec);
    job->freeze = query_column_int(query, 6 + RECORD_SPEC_COLUMNS);
}

void record_outcome_read(struct query *query, struct outcome *outcome)
{
    enum { HEALTH_CHECK_COLUMN = 26 };
    CHECK(outcome_record.fields[HEALTH_CHECK_COLUMN].offset ==
          offsetof(struct outcome, health_check));
    CHECK(record_read(query, 0, &outcome_record, outcome) == RECORD_OUTCOME_COLUMNS);
    if (query_column_is_null(query, HEALTH_CHECK_COLUMN)) {
        outcome->health_value = 0.0; /* what NULL reads as is NAN */
        outcome->health_threshold = 0.0;
    }
}

/* ---- writing ---- */

static void bind_metrics(struct query *query, const struct metrics *metrics)
{
    query_real(query, metrics->no_at_fault_collision);
    query_real(query, metrics->drivable_area);
    query_real(query, metrics->driving_direction);
    query_real(query, metrics->making_progress);
    query_real(query, metrics->progress);
    query_real(query, metrics->ttc);
    query_real(query, metrics->speed_limit);
    query_real(query, metrics->comfort);
    query_real(query, metrics->score);
    query_real(query, metrics->min_ttc_s);
    query_real(query, metrics->min_distance_m);
    query_real(query, metrics->impact_speed_mps);
    query_real(query, metrics->progress_m);
    query_real(query, metrics->distance_m);
    query_real(query, metrics->speed_max_mps);
    query_real(query, metrics->accel_min_mps2);
    query_real(query, metrics->jerk_max_mps3);
    query_int(query, metrics->intervention_count);
    query_int(query, metrics->collision_count);
    if (metrics->collision_tick == UINT32_MAX) {
        query_null(query);
    } else {
        query_int(query, metrics->collision_tick);
    }
    query_int(query, metrics->collision_agent);
    query_int(query, (int64_t)metrics->collision_kind);
    query_int(query, metrics->at_fault);
    query_int(query, metrics->goal_reached);
}

static void bind_health(struct query *query, const struct outcome *outcome)
{
    if (outcome->health_check[0] == '\0') {
        for (int i = 0; i < 5; i++) {
            query_null(query);
        }
        return;
    }
    query_text(query, outcome->health_check);
    query_int(query, outcome->health_tick);
    query_real(query, outcome->health_value);
    query_real(query, outcome->health_threshold);
    query_text_or_null(query, outcome->evidence_hash);
}

/* A text that is NULL in the row when it equals the job's. */
static void bind_unless_equal(struct query *query, const char *text, const char *of_job)
{
    if (strcmp(text, of_job) == 0) {
        query_null(query);
    } else {
        query_text(query, text);
    }
}

/* The outcome as it will be read back. */
static struct outcome as_stored(const struct record_outcome_place *place,
                                const struct outcome *outcome)
{
    struct outcome stored = *outcome;

    stored.job_id = place->job_id;
    stored.epoch = place->epoch;
    memcpy(stored.suite_id, place->spec->suite_id, sizeof stored.suite_id);
    stored.verdict = place->evidence ? VERDICT_FLAGGED : outcome->verdict;
    if (stored.health_check[0] == '\0') {
        stored.health_tick = 0;
        stored.health_value = 0.0;
        stored.health_threshold = 0.0;
        stored.evidence_hash[0] = '\0';
    }
    return stored;
}

enum status record_outcome_insert(struct db *db, const struct record_outcome_place *place,
                                  const struct outcome *outcome, struct digest *suite_digest,
                                  struct error *error)
{
    struct digest digest;
    int64_t context_id = place->context;
    struct record_context of_job = record_context_of_spec(place->spec);
    struct record_context own = record_context_of_outcome(outcome);

    if (!record_context_equal(&of_job, &own)) {
        TRY(record_context_id(db, &own, &context_id, error));
    }
    struct query query = query_begin(db, STATEMENT_OUTCOME_INSERT);
    query_int(&query, place->job_id);
    query_int(&query, place->epoch);
    query_int(&query, place->suite);
    query_int(&query, context_id);
    bind_unless_equal(&query, outcome->scenario_id, place->spec->scenario_id);
    bind_unless_equal(&query, outcome->scenario_hash, place->spec->scenario_hash);
    if (outcome->seed == place->spec->seed) {
        query_null(&query);
    } else {
        query_int(&query, (int64_t)outcome->seed);
    }
    query_text(&query, outcome->branch_id);
    query_int(&query, place->evidence ? VERDICT_FLAGGED : (int64_t)outcome->verdict);
    query_int(&query, outcome->reasons);
    query_int(&query, outcome->ticks);
    query_int(&query, outcome->prefix_ticks);
    query_int(&query, outcome->metres_mm);
    query_int(&query, outcome->device_ns);
    query_text(&query, outcome->trace_hash);
    query_text(&query, outcome->artifact_hash);
    for (int i = 0; i < SLICE_KIND_COUNT; i++) {
        query_text(&query, outcome->slice[i]);
    }
    query_int(&query, outcome->safety_critical);
    query_text(&query, outcome->error);
    bind_metrics(&query, &outcome->metrics);
    query_int(&query, outcome->mflop);
    bind_health(&query, outcome);
    struct outcome stored = as_stored(place, outcome);
    digest_outcome(&stored, place->spec, &digest);
    query_blob(&query, digest.bytes, sizeof digest.bytes);
    query_text(&query, outcome->given);
    query_real(&query, outcome->metrics.lataccel_cost);
    query_real(&query, outcome->metrics.jerk_cost);
    query_real(&query, outcome->metrics.total_cost);
    query_real(&query, outcome->metrics.lane_keeping);
    query_real(&query, outcome->metrics.traffic_light);
    query_real(&query, outcome->metrics.extended_comfort);
    query_real(&query, outcome->metrics.stage_distance_m);
    query_real(&query, outcome->metrics.stage_epdms);
    query_int_or_null(&query, place->at_ms);
    query_int(&query, outcome->pages_used_percent);
    TRY(query_run(&query, error));
    int64_t id = db_last_id(db);
    if (id <= place->floor) { /* SQLite goes on from what is left: see store/sql/redrive.c */
        struct query renumber = query_begin(db, STATEMENT_REDRIVE_RENUMBER);
        query_int(&renumber, id);
        query_int(&renumber, place->floor + 1);
        TRY(query_run(&renumber, error));
        id = place->floor + 1;
    }
    digest_add_outcome(suite_digest, &digest, id);
    return STATUS_OK;
}

/* ---- partial outcomes ---- */

/* NO_MEMORY, or STATUS_STORE: it is no outcome. */
static enum status read_text(const char *place, const char *text, size_t bytes, struct outcome *out,
                             struct error *error)
{
    struct error why;
    json_t *value = NULL;
    enum status status = json_read_text(place, text != NULL ? text : "", bytes, &value, &why);

    if (status == STATUS_OK) {
        struct json_cursor cursor = json_cursor_root(place, value);
        status = outcome_decode(&cursor, out, &why);
        json_decref(value);
    }
    if (status == STATUS_OK) {
        return STATUS_OK;
    }
    return error_set(error, status == STATUS_NO_MEMORY ? status : STATUS_STORE,
                     "cannot be read: %.800s", why.text);
}

enum status record_partial_insert(struct db *db, const struct record_outcome_place *place,
                                  const struct outcome *outcome, struct error *error)
{
    struct digest digest;
    struct outcome stored = as_stored(place, outcome);

    stored.id = 0;
    stored.parent_job_id = 0;
    stored.audit_of = 0;
    stored.shadow = false;
    stored.at_ms = 0; /* has a column */
    stored.freeze = 0;
    stored.in_flight = false;
    json_t *value = outcome_encode(&stored);
    char *text = value != NULL ? json_compact_text(value) : NULL;
    json_decref(value);
    if (text == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for a partial outcome");
    }
    /* The digest is of what will be read: texts that are not UTF-8 are mended on the way. */
    enum status status = read_text("partial outcome", text, strlen(text), &stored, error);
    if (status == STATUS_OK) {
        digest_outcome(&stored, place->spec, &digest);
        struct query query = query_begin(db, STATEMENT_PARTIAL_ADD);
        query_int(&query, place->job_id);
        query_text(&query, stored.branch_id);
        query_int(&query, place->epoch);
        query_text(&query, text);
        query_blob(&query, digest.bytes, sizeof digest.bytes);
        query_int_or_null(&query, place->at_ms);
        status = query_run(&query, error);
    }
    free(text);
    return status;
}

enum status record_partial_read(struct query *query, const struct job_spec *spec,
                                struct outcome *outcome, struct error *error)
{
    char branch_id[LIMIT_ID_BYTES];
    char place[64 + LIMIT_ID_BYTES];
    struct digest digest;
    size_t bytes = 0;
    size_t digest_bytes = 0;
    int64_t job_id = query_column_int(query, 0);
    int64_t epoch = query_column_int(query, 2);
    const char *text = query_column_blob(query, 3, &bytes);
    const void *said = query_column_blob(query, 4, &digest_bytes);

    query_column_text(query, 1, branch_id, sizeof branch_id);
    snprintf(place, sizeof place, "job %" PRId64 ", branch \"%s\": partial outcome", job_id,
             branch_id);
    TRY(read_text(place, text, bytes, outcome, error));
    if (outcome->job_id != job_id || outcome->epoch != epoch ||
        strcmp(outcome->branch_id, branch_id) != 0 ||
        !digest_outcome_fits(outcome, spec, said, digest_bytes, &digest)) {
        return error_set(error, STATUS_STORE,
                         "%s: is not what was stored: its digest is of other figures, or its job's "
                         "spec was changed",
                         place);
    }
    outcome->at_ms = query_column_int(query, 5);
    return STATUS_OK;
}

enum status record_partials_drop(struct db *db, int64_t job_id, enum job_state state,
                                 struct error *error)
{
    if (state == JOB_QUEUED || state == JOB_LEASED) {
        return STATUS_OK;
    }
    struct query query = query_begin(db, STATEMENT_PARTIAL_DROP);
    query_int(&query, job_id);
    return query_send(&query, error);
}

/* ---- completions that may be queued ---- */

static enum status check_artifact(const struct sql_store *store, int64_t job_id, const char *hash,
                                  struct error *error)
{
    bool exists = false;
    enum status status = artifacts_exists(&store->artifacts, hash, &exists, error);

    if (status == STATUS_OK && !exists) {
        return error_set(error, STATUS_CONFLICT,
                         "job %" PRId64 ": artifact %s is not in the store; put it there before "
                         "completing",
                         job_id, hash);
    }
    return status;
}

#define FITS(text) (memchr((text), '\0', sizeof(text)) != NULL)

static bool outcome_fits(const struct outcome *outcome)
{
    bool fits = FITS(outcome->scenario_id) && FITS(outcome->scenario_hash) &&
                FITS(outcome->branch_id) && FITS(outcome->planner) && FITS(outcome->planner_hash) &&
                FITS(outcome->pool) && FITS(outcome->model_hash) && FITS(outcome->sampler) &&
                FITS(outcome->backend) && FITS(outcome->revision) && FITS(outcome->trace_hash) &&
                FITS(outcome->artifact_hash) && FITS(outcome->error) &&
                FITS(outcome->health_check) && FITS(outcome->evidence_hash);

    for (size_t i = 0; i < COUNT_OF(outcome->slice); i++) {
        fits = fits && FITS(outcome->slice[i]);
    }
    return fits;
}

static enum status check_outcome(const struct sql_store *store,
                                 const struct job_completion *completion, uint32_t index,
                                 struct error *error)
{
    const struct outcome *outcome = &completion->outcomes[index];

    if (!outcome_fits(outcome)) {
        return error_set(error, STATUS_LIMIT,
                         "job %" PRId64 ", outcome %" PRIu32 ": a text is not terminated",
                         completion->job_id, index);
    }
    if ((int)outcome->verdict < 0 || outcome->verdict >= VERDICT_COUNT || (int)outcome->tier < 0 ||
        outcome->tier >= TIER_COUNT || outcome->metres_mm < 0 || outcome->device_ns < 0 ||
        outcome->mflop < 0 || outcome->prefix_ticks > outcome->ticks ||
        outcome->device_ns > LEDGER_ATTEMPT_NS_MAX || outcome->metres_mm > LEDGER_ATTEMPT_MM_MAX ||
        outcome->mflop > LEDGER_ATTEMPT_MFLOP_MAX || outcome->pages_used_percent > 100) {
        return error_set(
            error, STATUS_BAD_INPUT,
            "job %" PRId64 ", outcome %" PRIu32
            ": verdict, tier, ticks, metres, device time, operations or pages out of range",
            completion->job_id, index);
    }
    if (completion->kind != COMPLETION_FLAGGED && outcome->verdict == VERDICT_FLAGGED) {
        return error_set(error, STATUS_BAD_INPUT,
                         "job %" PRId64 ", outcome %" PRIu32
                         ": a flagged rollout cannot be part of a finished job",
                         completion->job_id, index);
    }
    if (outcome->verdict == VERDICT_INVALID && outcome->health_check[0] == '\0') {
        return error_set(error, STATUS_BAD_INPUT,
                         "job %" PRId64 ", outcome %" PRIu32
                         ": an invalid rollout needs the check that did not hold",
                         completion->job_id, index);
    }
    if (outcome->artifact_hash[0] != '\0' &&
        strcmp(outcome->artifact_hash, completion->artifact_hash) != 0) {
        TRY(check_artifact(store, completion->job_id, outcome->artifact_hash, error));
    }
    if (outcome->evidence_hash[0] != '\0') {
        return check_artifact(store, completion->job_id, outcome->evidence_hash, error);
    }
    return STATUS_OK;
}

enum status completion_check(const struct sql_store *store, const struct job_completion *completion,
                             struct error *error)
{
    bool with_outcomes = completion->kind == COMPLETION_DONE ||
                         completion->kind == COMPLETION_FLAGGED ||
                         completion->kind == COMPLETION_PARTIAL;

    if ((int)completion->kind < 0 || completion->kind >= COMPLETION_KIND_COUNT ||
        !FITS(completion->worker_id) || !FITS(completion->artifact_hash) ||
        !FITS(completion->escalate_pool) || !FITS(completion->escalate_model_hash) ||
        !FITS(completion->escalate_sampler) || !FITS(completion->escalate_key) ||
        !FITS(completion->error) || completion->mflop < 0 ||
        completion->mflop > LEDGER_ATTEMPT_MFLOP_MAX || completion->device_ns < 0 ||
        completion->device_ns > LEDGER_ATTEMPT_NS_MAX || completion->metres_mm < 0 ||
        completion->metres_mm > LEDGER_ATTEMPT_MM_MAX || (int)completion->escalate_tier < 0 ||
        completion->escalate_tier >= TIER_COUNT) {
        return error_set(error, STATUS_BAD_INPUT,
                         "the completion of job %" PRId64 " has a value out of range",
                         completion->job_id);
    }
    if (completion->outcome_count > 1 + LIMIT_BRANCHES ||
        (!with_outcomes && completion->outcome_count > 0)) {
        return error_set(
            error, STATUS_BAD_INPUT,
            "job %" PRId64 ": a completion of kind %s cannot bring %" PRIu32 " outcomes",
            completion->job_id, completion_kind_names[completion->kind], completion->outcome_count);
    }
    if (completion->artifact_hash[0] != '\0') {
        TRY(check_artifact(store, completion->job_id, completion->artifact_hash, error));
    }
    for (uint32_t i = 0; i < completion->outcome_count; i++) {
        TRY(check_outcome(store, completion, i, error));
    }
    return STATUS_OK;
}

/* ---- jobs and workers ---- */

enum status record_suite_check(const char *suite_id, struct error *error)
{
    if (suite_id[0] == '\0' || strnlen(suite_id, LIMIT_ID_BYTES) == LIMIT_ID_BYTES) {
        return error_set(error, STATUS_BAD_INPUT, "a suite's id has 1 to %d bytes",
                         LIMIT_ID_BYTES - 1);
    }
    if (!utf8_valid(suite_id)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "a suite's id: expected UTF-8, found other bytes");
    }
    return STATUS_OK;
}

enum status record_spec_check(const struct job_spec *spec, const char *suite_id, uint32_t index,
                              struct error *error)
{
    if (!FITS(spec->key) || !FITS(spec->suite_id) || !FITS(spec->scenario_id) ||
        !FITS(spec->scenario_hash) || !FITS(spec->planner) || !FITS(spec->planner_hash) ||
        !FITS(spec->pool) || !FITS(spec->model_hash) || !FITS(spec->sampler) ||
        !FITS(spec->backend) || !FITS(spec->revision) || !FITS(spec->prefix_key) ||
        !FITS(spec->audit_key)) {
        return error_set(error, STATUS_LIMIT, "job %" PRIu32 ": a text is not terminated", index);
    }
    if (spec->key[0] == '\0' || spec->pool[0] == '\0' || spec->scenario_id[0] == '\0') {
        return error_set(error, STATUS_BAD_INPUT,
                         "job %" PRIu32 ": key, scenario and pool are needed", index);
    }
    if (spec->suite_id[0] != '\0' && strcmp(spec->suite_id, suite_id) != 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "job %" PRIu32 " says suite \"%s\", it was submitted to \"%s\"", index,
                         spec->suite_id, suite_id);
    }
    if ((int)spec->tier < 0 || spec->tier >= TIER_COUNT || spec->attempts_max < 1 ||
        spec->attempts_max > 1000 || spec->parent_job_id < 0) {
        return error_set(error, STATUS_BAD_INPUT,
                         "job %" PRIu32 ": tier, attempts_max (1 to 1000) or parent out of range",
                         index);
    }
    if (spec->evaluates &&
        (spec->tier != TIER_STUDENT || spec->audit_key[0] != '\0' || spec->follows)) {
        return error_set(error, STATUS_BAD_INPUT,
                         "job %" PRIu32 " evaluates: expected a student's, in its own right, of "
                         "the model that it names, found tier %s%s%s",
                         index, tier_names[spec->tier],
                         spec->audit_key[0] != '\0' ? ", an audit" : "",
                         spec->follows ? ", one that follows" : "");
    }
    if (spec->rollout_count < 1 || spec->rollout_count > 1 + LIMIT_BRANCHES) {
        return error_set(error, STATUS_LIMIT,
                         "job %" PRIu32 " has %" PRIu32 " rollouts; 1 to %d are allowed", index,
                         spec->rollout_count, 1 + LIMIT_BRANCHES);
    }
    return STATUS_OK;
}

enum status claim_worker_check(const struct store_worker *worker, struct error *error)
{
    if (worker->worker_id[0] == '\0' || worker->pool[0] == '\0' || worker->device[0] == '\0') {
        return error_set(error, STATUS_BAD_INPUT, "a worker needs an id, a pool and a device");
    }
    if (strnlen(worker->worker_id, LIMIT_ID_BYTES) == LIMIT_ID_BYTES ||
        strnlen(worker->pool, LIMIT_ID_BYTES) == LIMIT_ID_BYTES ||
        strnlen(worker->device, LIMIT_ID_BYTES) == LIMIT_ID_BYTES ||
        strnlen(worker->host, LIMIT_ID_BYTES) == LIMIT_ID_BYTES) {
        return error_set(error, STATUS_LIMIT,
                         "a worker's id, pool, device and host have at most %d bytes",
                         LIMIT_ID_BYTES - 1);
    }
    if (worker->without_count > STORE_WITHOUT_MAX) {
        return error_set(error, STATUS_LIMIT, "a claim leaves at most %d planners alone",
                         STORE_WITHOUT_MAX);
    }
    return STATUS_OK;
}
