/*
 * Records to and from rows. See records.h.
 *
 * An outcome repeats the question of its job (scenario, seed, planner ..), which complete_one() has
 * compared. That is not stored again: it is NULL, or the same context number, and comes back when
 * the outcome is read. Outcomes of earlier versions may have a question of their own.
 */
#include "store/sql/records.h"

#include "base/arena.h"
#include "base/check.h"
#include "base/utf8.h"
#include "schemas/json_read.h"
#include "schemas/outcome_json.h"
#include "schemas/scenario_json.h"
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

enum status record_context_id(struct db *db, const struct job_spec *spec, int64_t *id,
                              struct error *error)
{
    int64_t found = 0;
    struct query find = query_begin(db, STATEMENT_CONTEXT_FIND);

    record_write(&find, RECORD_CONTEXT, spec);
    if (query_row(&find)) {
        found = query_column_int(&find, 0);
    }
    enum status status = query_end(&find, error);
    if (status == STATUS_OK && found == 0) {
        struct query insert = query_begin(db, STATEMENT_CONTEXT_INSERT);
        record_write(&insert, RECORD_CONTEXT, spec);
        status = query_run(&insert, error);
        found = db_last_id(db);
    }
    if (status == STATUS_OK) {
        *id = found;
    }
    return status;
}

/* ---- reading ---- */

static void read_member(struct query *query, const struct json_field *field, void *place)
{
    if (field->kind == JSON_FIELD_TEXT) {
        query_take_text(query, place, field->bytes);
    } else if (field->kind == JSON_FIELD_F64) {
        *(double *)place = query_column_real(query, query->column++);
    } else {
        bool none =
            field->kind == JSON_FIELD_U32_OR_NULL && query_column_is_null(query, query->column);
        int64_t value = query_take_int(query);
        json_field_set_integer(field, place, none ? UINT32_MAX : value);
    }
}

static void read_members(struct query *query, const struct json_field_list *list, char *record)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct json_field *field = &list->fields[i];
        if (field->kind == JSON_FIELD_RECORD) {
            read_members(query, field->list, record + field->offset);
        } else {
            read_member(query, field, record + field->offset);
        }
    }
}

void record_read(struct query *query, enum record kind, void *record)
{
    read_members(query, record_columns[kind].fields, record);
}

uint32_t record_read_rows(struct query *query, enum record kind, size_t bytes, void *out,
                          uint32_t max)
{
    uint32_t found = 0;
    while (found < max && query_row(query)) {
        char *record = (char *)out + bytes * found++;
        memset(record, 0, bytes);
        record_read(query, kind, record);
    }
    return found;
}

void record_digest_take(struct query *query, struct digest *out)
{
    size_t bytes = 0;
    const void *blob = query_column_blob(query, query->column++, &bytes);
    memset(out, 0, sizeof *out);
    if (blob != NULL && bytes == sizeof out->bytes) {
        memcpy(out->bytes, blob, bytes);
    }
}

void record_job_read(struct query *query, struct store_job *job)
{
    job->id = query_take_int(query);
    job->state = (enum job_state)query_take_int(query);
    job->epoch = query_take_int(query);
    job->attempts = (uint32_t)query_take_int(query);
    query_take_text(query, job->worker_id, sizeof job->worker_id);
    query_take_text(query, job->error, sizeof job->error);
    job->freeze = query_take_int(query);
    query_take_text(query, job->token, sizeof job->token);
    job->handed_back = query_take_int(query);
    query_take_text(query, job->handed_back_for, sizeof job->handed_back_for);
    record_read(query, RECORD_SPEC, &job->spec);
}

enum status record_spec_get(struct db *db, int64_t job_id, struct job_spec *spec, bool *found,
                            struct error *error)
{
    struct query query = query_begin(db, STATEMENT_CHECK_SPEC);

    memset(spec, 0, sizeof *spec);
    query_int(&query, job_id);
    bool there = query_row(&query);
    if (there) {
        record_read(&query, RECORD_SPEC, spec);
    }
    if (found != NULL) {
        *found = there;
    }
    return query_end(&query, error);
}

/* ---- writing ---- */

static void write_member(struct query *query, const struct json_field *field, const void *place)
{
    if (field->kind == JSON_FIELD_TEXT) {
        query_text(query, place);
    } else if (field->kind == JSON_FIELD_F64) {
        query_real(query, *(const double *)place);
    } else if (field->kind == JSON_FIELD_U32_OR_NULL && *(const uint32_t *)place == UINT32_MAX) {
        query_null(query);
    } else {
        query_int(query, json_field_integer(field, place));
    }
}

static void write_members(struct query *query, const struct columns *columns,
                          const struct json_field_list *list, const char *record, size_t offset)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct json_field *field = &list->fields[i];
        size_t at = offset + field->offset;
        const struct column *other = columns_other(columns, at);
        if (field->kind == JSON_FIELD_RECORD) {
            write_members(query, columns, field->list, record, at);
        } else if (other == NULL || other->name != NULL) {
            write_member(query, field, record + at);
        }
    }
}

void record_write(struct query *query, enum record kind, const void *record)
{
    write_members(query, &record_columns[kind], record_columns[kind].fields, record, 0);
}

/* The check that flagged an outcome or makes it invalid: all NULL where there was none. */
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

/* The outcome as it will be read back. */
static struct outcome as_stored(const struct record_outcome_place *place,
                                const struct outcome *outcome)
{
    struct outcome stored = *outcome;

    stored.job_id = place->job_id;
    stored.epoch = place->epoch;
    memcpy(stored.suite_id, place->spec->suite_id, sizeof stored.suite_id);
    stored.verdict = place->evidence ? VERDICT_FLAGGED : outcome->verdict;
    stored.device_ns = place->device_ns;
    stored.at_ms = place->at_ms;
    if (place->slices != NULL) {
        memcpy(stored.slice, place->slices->value, sizeof stored.slice);
        stored.safety_critical = place->slices->safety_critical;
    }
    if (stored.health_check[0] == '\0') {
        stored.health_tick = 0;
        stored.health_value = 0.0;
        stored.health_threshold = 0.0;
        stored.evidence_hash[0] = '\0';
    }
    return stored;
}

/* When a partial outcome of the same rollout came, if there was one. */
static enum status partial_time(struct db *db, const struct record_outcome_place *place,
                                struct outcome *stored, struct error *error)
{
    if (!place->partials) {
        return STATUS_OK;
    }
    struct query query = query_begin(db, STATEMENT_PARTIAL_TIME);
    query_int(&query, place->job_id);
    query_text(&query, stored->branch_id);
    if (query_row(&query) && !query_column_is_null(&query, 0)) {
        stored->at_ms = query_column_int(&query, 0);
    }
    return query_end(&query, error);
}

enum status record_outcome_insert(struct db *db, const struct record_outcome_place *place,
                                  const struct outcome *outcome, struct digest *suite_digest,
                                  struct error *error)
{
    struct digest digest;
    struct outcome stored = as_stored(place, outcome);
    TRY(partial_time(db, place, &stored, error));
    digest_outcome(&stored, place->spec, &digest);
    struct query query = query_begin(db, STATEMENT_OUTCOME_INSERT);
    query_int(&query, place->job_id);
    query_int(&query, place->epoch);
    query_int(&query, place->suite);
    query_int(&query, place->context);
    query_text(&query, stored.branch_id);
    query_blob(&query, digest.bytes, sizeof digest.bytes);
    bind_health(&query, &stored);
    query_int_or_null(&query, stored.at_ms);
    record_write(&query, RECORD_OUTCOME, &stored);
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

    memcpy(stored.evidence_hash, outcome->evidence_hash, sizeof stored.evidence_hash);
    stored.id = 0;
    stored.parent_job_id = 0;
    stored.audit_of = 0;
    stored.shadow = false;
    stored.at_ms = 0; /* has a column */
    stored.freeze = 0;
    stored.in_flight = false;
    stored.route_reason = ROUTE_REASON_NONE;
    stored.route_own = stored.route_other = 0;
    json_t *value = outcome_encode(&stored);
    char *text = value != NULL ? json_compact_text(value) : NULL;
    json_decref(value);
    if (text == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "out of memory for a partial outcome");
    }
    /* The digest is of what will be read: texts that are not UTF-8 are mended on the way. */
    enum status status = read_text("partial outcome", text, strlen(text), &stored, error);
    if (status == STATUS_OK) {
        stored.at_ms = place->at_ms;
        digest_outcome(&stored, place->spec, &digest);
        struct query query = query_begin(db, STATEMENT_PARTIAL_ADD);
        query_int(&query, place->job_id);
        query_text(&query, stored.branch_id);
        query_int(&query, place->epoch);
        query_text(&query, text);
        query_blob(&query, digest.bytes, sizeof digest.bytes);
        query_int_or_null(&query, place->at_ms);
        query_int(&query, place->worker);
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
    outcome->at_ms = query_column_int(query, 5);
    if (outcome->job_id != job_id || outcome->epoch != epoch ||
        strcmp(outcome->branch_id, branch_id) != 0 ||
        !digest_outcome_fits(outcome, spec, said, digest_bytes, &digest)) {
        return error_set(error, STATUS_STORE,
                         "%s: is not what was stored: its digest is of other figures, or its job's "
                         "spec was changed",
                         place);
    }
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

enum status record_partials_count(struct db *db, int64_t job_id, uint32_t rollout_count,
                                  struct error *error)
{
    int64_t count = 0;
    struct query query = query_begin(db, STATEMENT_PARTIAL_COUNT);

    query_int(&query, job_id);
    if (query_row(&query)) {
        count = query_column_int(&query, 0);
    }
    TRY(query_end(&query, error));
    return count <= (int64_t)rollout_count
               ? STATUS_OK
               : error_set(error, STATUS_CONFLICT,
                           "job %" PRId64 " has %" PRIu32 " rollouts, and would have %" PRId64
                           " partial outcomes",
                           job_id, rollout_count, count);
}

/* ---- scenarios ---- */

void record_scenarios_finish(struct record_scenarios *scenarios)
{
    for (size_t i = 0; i < RECORD_SCENARIOS_KNOWN; i++) {
        free(scenarios->rows[i].names);
        free(scenarios->rows[i].of_branch);
    }
    memset(scenarios, 0, sizeof *scenarios);
}

/* NULL, where one has no name, or the same as another. */
static enum status read_names(const json_t *list, char (**out)[LIMIT_ID_BYTES], uint32_t *count,
                              struct error *error)
{
    size_t found = json_array_size(list);
    found = found <= LIMIT_BRANCHES ? found : 0;
    char(*names)[LIMIT_ID_BYTES] = calloc(found + 1, sizeof *names);
    TRY(memory_check(names, error, "out of memory for a scenario's branches"));
    bool good = true;
    for (size_t i = 0; i < found; i++) {
        const char *name = json_string_value(json_object_get(json_array_get(list, i), "id"));
        good = good && name != NULL && name[0] != '\0' && strlen(name) < LIMIT_ID_BYTES;
        snprintf(names[i], sizeof names[i], "%s", good ? name : "");
        for (size_t k = 0; k < i && good; k++) {
            good = strcmp(names[k], names[i]) != 0;
        }
    }
    if (!good) {
        free(names);
    }
    *out = good ? names : NULL;
    *count = (uint32_t)found;
    return STATUS_OK;
}

/* Slices of branches, where one changes the conditions. */
static enum status read_slices(const struct scenario *scenario, struct record_scenario *out,
                               struct error *error)
{
    struct slices slices;
    bool changed = false;
    for (uint32_t i = 1; i <= scenario->branch_count && out->names != NULL; i++) {
        scenario_slices(scenario, i, &slices);
        changed |= memcmp(slices.value, scenario->slices.value, sizeof slices.value) != 0;
    }
    if (!changed) {
        return STATUS_OK;
    }
    out->of_branch = calloc(scenario->branch_count, sizeof *out->of_branch);
    TRY(memory_check(out->of_branch, error, "out of memory for the slices of branches"));
    for (uint32_t i = 0; i < scenario->branch_count; i++) {
        scenario_slices(scenario, i + 1, &out->of_branch[i]);
    }
    return STATUS_OK;
}

/* Facts of a body that is a scenario. */
static enum status read_facts(const json_t *root, struct record_scenario *out, struct error *error)
{
    struct error why;
    struct arena arena;
    struct scenario *scenario = malloc(sizeof *scenario);
    TRY(memory_check(scenario, error, "out of memory for a scenario"));
    arena_init(&arena, LIMIT_SCENARIO_ARENA_BYTES);
    enum status status = scenario_decode("scenario", root, &arena, scenario, &why);
    out->decoded = status == STATUS_OK;
    if (out->decoded) {
        status = read_slices(scenario, out, &why);
        out->facts = (struct door_facts){.slices = scenario->slices,
                                         .horizon_ticks = scenario->horizon_ticks,
                                         .branch_count = scenario->branch_count,
                                         .no_fault = scenario->criteria.no_at_fault_collision,
                                         .controls = scenario->controls.log.count > 0,
                                         .of_branch = out->of_branch};
    }
    arena_finish(&arena);
    free(scenario);
    if (status == STATUS_NO_MEMORY) {
        return error_set(error, status, "%s", why.text);
    }
    return STATUS_OK;
}

/* A body that is no scenario has no branches that anybody could name. */
static enum status read_branches(struct db *db, const char *scenario_hash,
                                 struct record_scenario *out, struct error *error)
{
    struct error why;
    json_t *root = NULL;
    size_t bytes = 0;
    struct query query = query_begin(db, STATEMENT_SCENARIO_BODY);

    query_text(&query, scenario_hash);
    out->there = query_row(&query);
    char *body = out->there ? record_scenario_body(&query, 0, &bytes) : NULL;
    enum status status = STATUS_OK;
    if (out->there) {
        status = memory_check(body, &why, "out of memory for a scenario");
        THEN(status, json_read_text("scenario", body, bytes, &root, &why));
    }
    free(body);
    status = status == STATUS_NO_MEMORY
                 ? error_set(error, status, "%s", why.text)
                 : read_names(json_object_get(root, "branches"), &out->names, &out->count, error);
    if (status == STATUS_OK && root != NULL) {
        status = read_facts(root, out, error);
    }
    json_decref(root);
    enum status ended = query_end(&query, status == STATUS_OK ? error : NULL);
    status = status == STATUS_OK ? ended : status;
    if (status != STATUS_OK) {
        free(out->names);
        free(out->of_branch);
        out->names = NULL;
        out->of_branch = NULL;
    }
    return status;
}

enum status record_scenarios_find(struct db *db, struct record_scenarios *scenarios,
                                  const struct job_spec *spec, struct door_scenario *out,
                                  struct error *error)
{
    uint32_t at = 0;
    while (at < RECORD_SCENARIOS_KNOWN &&
           strcmp(scenarios->rows[at].scenario_hash, spec->scenario_hash) != 0) {
        at++;
    }
    *out = (struct door_scenario){.known = false};
    if (spec->scenario_hash[0] == '\0') {
        return STATUS_OK;
    }
    if (at == RECORD_SCENARIOS_KNOWN) {
        struct record_scenario read = {.count = 0};
        TRY(read_branches(db, spec->scenario_hash, &read, error));
        if (!read.there) { /* it may come */
            free(read.names);
            free(read.of_branch);
            return STATUS_OK;
        }
        memcpy(read.scenario_hash, spec->scenario_hash, sizeof read.scenario_hash);
        at = scenarios->next++ % RECORD_SCENARIOS_KNOWN;
        free(scenarios->rows[at].names);
        free(scenarios->rows[at].of_branch);
        scenarios->rows[at] = read;
    }
    const struct record_scenario *row = &scenarios->rows[at];
    out->names = (const char(*)[LIMIT_ID_BYTES])row->names;
    out->count = row->count;
    out->known = row->names != NULL && row->count + 1 == spec->rollout_count;
    out->facts = row->decoded ? &row->facts : NULL;
    return STATUS_OK;
}
