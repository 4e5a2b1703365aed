/*
 * The table, and the two things that are made of it. See invariants.h.
 */
#include "store/door/invariants.h"

#include "base/check.h"
#include "schemas/job.h"
#include "schemas/job_json.h"
#include "schemas/outcome_json.h"
#include "store/api/labels.h"
#include "store/api/models.h"
#include "store/api/store.h"
#include "store/api/tenants.h"
#include "store/api/trust.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HASH_BYTES = SHA256_HEX_BYTES - 1, ID_BYTES = LIMIT_ID_BYTES - 1 };

static const struct invariant spec_rows[] = {
    {"key", 1, HASH_BYTES},
    {"suite_id", 0, ID_BYTES},
    {"scenario_id", 1, ID_BYTES},
    {"pool", 1, ID_BYTES},
    {"priority", INT32_MIN, INT32_MAX},
    {"rollout_count", 1, 1 + LIMIT_BRANCHES},
    {"attempts_max", 1, 1000},
    {"parent_job_id", 0, INT64_MAX},
    {"route_own", 0, INT64_MAX},
    {"route_other", 0, INT64_MAX},
};

static const struct json_field progress_fields[] = {
    JSON_FIELD(struct store_progress, device_ns, JSON_FIELD_I64),
    JSON_FIELD(struct store_progress, metres_mm, JSON_FIELD_I64),
    JSON_FIELD(struct store_progress, mflop, JSON_FIELD_I64),
    JSON_FIELD(struct store_progress, ticks, JSON_FIELD_I64),
};

static const struct json_field_list progress_list = JSON_FIELD_LIST(progress_fields);

static const struct invariant progress_rows[] = {
    {"device_ns", 0, LEDGER_ATTEMPT_NS_MAX},
    {"metres_mm", 0, LEDGER_ATTEMPT_MM_MAX},
    {"mflop", 0, LEDGER_ATTEMPT_MFLOP_MAX},
    {"ticks", 0, INT64_MAX}, /* of progress alone: the others are a completion's too */
};

/* Beyond what any drive measures: speeds of vehicles are at most 150 m/s (schemas/scenario), TTC is
 * looked for over 3 s, and a route may be longer than what is driven of it. */
#define SPEED_MAX_MPS 1000
#define ACCEL_MAX_MPS2 100000
#define JERK_MAX_MPS3 10000000
#define PLACE_MAX_M 1000000
#define COST_MAX 1000000000
#define DRIVEN_MAX_M ((1 + LIMIT_HORIZON_TICKS) * OUTCOME_TICK_MM_MAX / 1000)

static const struct invariant outcome_rows[] = {
    {"ticks", 0, LIMIT_HORIZON_TICKS},
    {"prefix_ticks", 0, LIMIT_HORIZON_TICKS},
    {"metres_mm", 0, OUTCOME_MM_MAX},
    {"device_ns", 0, LEDGER_ATTEMPT_NS_MAX},
    {"mflop", 0, LEDGER_ATTEMPT_MFLOP_MAX},
    {"pages_used_percent", 0, 100},
    {"peak_mflops", 0, OUTCOME_PEAK_MFLOPS_MAX},
    /* metrics */
    {"no_at_fault_collision", 0, 1},
    {"drivable_area", 0, 1},
    {"driving_direction", 0, 1},
    {"making_progress", 0, 1},
    {"progress", 0, 1},
    {"ttc", 0, 1},
    {"speed_limit", 0, 1},
    {"comfort", 0, 1},
    {"score", 0, 1},
    {"min_ttc_s", 0, 4},
    {"min_distance_m", 0, PLACE_MAX_M},
    {"impact_speed_mps", 0, SPEED_MAX_MPS},
    {"progress_m", -PLACE_MAX_M, PLACE_MAX_M},
    {"distance_m", 0, DRIVEN_MAX_M},
    {"speed_max_mps", 0, SPEED_MAX_MPS},
    {"accel_min_mps2", -ACCEL_MAX_MPS2, ACCEL_MAX_MPS2},
    {"jerk_max_mps3", 0, JERK_MAX_MPS3},
    {"lataccel_cost", 0, COST_MAX},
    {"jerk_cost", 0, COST_MAX},
    {"total_cost", 0, COST_MAX},
    {"lane_keeping", 0, 1},
    {"traffic_light", 0, 1},
    {"extended_comfort", 0, 1},
    {"stage_distance_m", 0, PLACE_MAX_M},
    {"stage_epdms", 0, 1},
    {"intervention_count", 0, LIMIT_HORIZON_TICKS},
    {"collision_count", 0, LIMIT_AGENTS},
    {"collision_tick", 0, LIMIT_HORIZON_TICKS},
    {"collision_agent", -1, LIMIT_AGENTS - 1},
    /* health */
    {"measured_ticks", 0, LIMIT_HORIZON_TICKS + 1},
    /* futures */
    {"futures_tick", 0, LIMIT_HORIZON_TICKS - 1},
    {"futures_draws", 0, OUTCOME_DRAWS_MAX},
    {"futures_idm_passed", 0, OUTCOME_DRAWS_MAX},
    {"futures_idm_failed", 0, OUTCOME_DRAWS_MAX},
    {"futures_drivers_passed", 0, OUTCOME_DRAWS_MAX},
    {"futures_drivers_failed", 0, OUTCOME_DRAWS_MAX},
    {"futures_constant_passed", 0, OUTCOME_DRAWS_MAX},
    {"futures_constant_failed", 0, OUTCOME_DRAWS_MAX},
};

static const struct invariant tenant_rows[] = {
    {"name", 1, ID_BYTES},
    {"weight", 1, TENANT_WEIGHT_MAX},
    {"jobs_queued_max", 0, INT64_MAX},
    {"uusd_day_max", 0, INT64_MAX},
    {"uusd_month_max", 0, INT64_MAX},
    {"units_leased_max", 0, INT64_MAX},
    {"scenario_bytes_max", 0, INT64_MAX},
    {"sessions_max", 0, INT64_MAX},
};

#define DATE_S_MAX INT64_C(100000000000) /* the year 5138 */

static const struct invariant model_rows[] = {
    {"name", 1, ID_BYTES},        {"hash", HASH_BYTES, HASH_BYTES}, {"precision", 1, ID_BYTES},
    {"sampler", 1, ID_BYTES},     {"agents_ticks", 0, INT32_MAX},   {"map_ticks", 0, INT32_MAX},
    {"none_ticks", 0, INT32_MAX}, {"added_s", 0, DATE_S_MAX},       {"canary_percent", 0, 100},
};

static const struct invariant model_event_rows[] = {
    {"model", INT64_MIN, INT64_MAX}, /* a number in its row; whoever has it is looked up */
    {"canary_percent", 0, 100},      {"jobs_moved", 0, INT64_MAX},    {"expires_s", 0, INT64_MAX},
    {"at_s", 0, DATE_S_MAX},         {"after_outcome", 0, INT64_MAX},
};

static const struct invariant trust_event_rows[] = {
    {"freeze", 0, INT64_MAX},    {"evaluation", 0, INT64_MAX}, {"jobs", 0, INT64_MAX},
    {"disagreed", 0, INT64_MAX}, {"sounded_at", 0, INT64_MAX}, {"at_s", 0, DATE_S_MAX},
};

static const struct invariant golden_rows[] = {
    {"name", 1, ID_BYTES},
    {"hash", HASH_BYTES, HASH_BYTES},
    {"model_hash", HASH_BYTES, HASH_BYTES},
    {"sampler", 1, ID_BYTES},
    {"recordings", 0, INT64_MAX},
    {"bytes", 0, INT64_MAX},
    {"made_s", 0, DATE_S_MAX},
};

static const struct invariant label_rows[] = {
    {"suite", INT64_MIN, INT64_MAX}, /* a number in its row; whoever has it is looked up */
    {"text", 1, LABEL_BYTES - 1},
    {"at_s", 0, DATE_S_MAX},
};

#define OF(list, rows)                  \
    {                                   \
        &(list), (rows), COUNT_OF(rows) \
    }

const struct invariants invariants_spec = OF(job_spec_field_list, spec_rows);
const struct invariants invariants_context = {&job_spec_field_list, NULL, 0};
const struct invariants invariants_completion = {&job_completion_field_list, progress_rows,
                                                 COUNT_OF(progress_rows) - 1};
const struct invariants invariants_progress = OF(progress_list, progress_rows);
const struct invariants invariants_outcome = OF(outcome_record, outcome_rows);
const struct invariants invariants_tenant = OF(tenant_fields, tenant_rows);
const struct invariants invariants_model = OF(model_version_fields, model_rows);
const struct invariants invariants_model_event = OF(model_event_fields, model_event_rows);
const struct invariants invariants_trust_event = OF(trust_event_fields, trust_event_rows);
const struct invariants invariants_golden = OF(golden_set_fields, golden_rows);
const struct invariants invariants_label = OF(label_fields, label_rows);

/* Whether nothing that came near is infinity. */
static bool may_be_infinite(const struct json_field *field)
{
    return strcmp(field->name, "min_ttc_s") == 0 || strcmp(field->name, "min_distance_m") == 0;
}

/* Bounds of the member, whose row is the next one if it has any; false: it may be whatever it
 * holds. */
static bool bounds(const struct invariants *of, size_t *next, const struct json_field *field,
                   int64_t *least, int64_t *greatest)
{
    *least = 0;
    switch (field->kind) {
    case JSON_FIELD_TEXT:
        *greatest = (int64_t)field->bytes - 1;
        break;
    case JSON_FIELD_U32:
        *greatest = UINT32_MAX;
        break;
    case JSON_FIELD_U32_OR_NULL: /* NULL in a row */
        *greatest = (int64_t)UINT32_MAX - 1;
        break;
    case JSON_FIELD_I32:
        *least = INT32_MIN;
        *greatest = INT32_MAX;
        break;
    case JSON_FIELD_BOOL:
        *greatest = 1;
        break;
    case JSON_FIELD_NAME:
        *greatest = (int64_t)field->name_count - 1;
        break;
    case JSON_FIELD_BITS:
        *greatest = (INT64_C(1) << field->name_count) - 1;
        break;
    default:
        *least = INT64_MIN;
        *greatest = INT64_MAX;
        break;
    }
    const struct invariant *row = *next < of->count ? &of->rows[*next] : NULL;
    if (row != NULL && strcmp(field->name, row->member) == 0) {
        *least = row->least;
        *greatest = row->greatest;
        (*next)++;
    }
    return *least != INT64_MIN || *greatest != INT64_MAX;
}

/* ---- the door ---- */

/* A number; of a text its bytes, -1: it does not end. */
static int64_t value_of(const struct json_field *field, const void *place)
{
    if (field->kind != JSON_FIELD_TEXT) {
        return json_field_integer(field, place);
    }
    const char *end = memchr(place, '\0', field->bytes);
    return end != NULL ? end - (const char *)place : -1;
}

/* A real number: NaN is beyond nothing. */
static enum status check_real(const struct json_field *field, double value, int64_t least,
                              int64_t greatest, struct error *error)
{
    bool infinite = may_be_infinite(field);
    bool beyond = value < (double)least || value > (double)greatest;
    if (!beyond || (infinite && isinf(value) && value > 0)) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_BAD_INPUT, "%s: expected %" PRId64 " to %" PRId64 "%s, found %g",
                     field->name, least, greatest, infinite ? " or infinite" : "", value);
}

static enum status check_field(const struct invariants *of, size_t *next,
                               const struct json_field *field, const void *record,
                               struct error *error)
{
    int64_t least;
    int64_t greatest;
    if (field->kind == JSON_FIELD_U64 || !bounds(of, next, field, &least, &greatest)) {
        return STATUS_OK;
    }
    if (field->kind == JSON_FIELD_F64) {
        double real;
        memcpy(&real, (const char *)record + field->offset, sizeof real);
        return check_real(field, real, least, greatest, error);
    }
    int64_t value = value_of(field, (const char *)record + field->offset);
    if ((value >= least && value <= greatest) ||
        (field->kind == JSON_FIELD_U32_OR_NULL && value == UINT32_MAX)) {
        return STATUS_OK;
    }
    if (field->kind == JSON_FIELD_TEXT && value < 0) {
        return error_set(error, STATUS_LIMIT, "%s is not terminated", field->name);
    }
    bool is_text = field->kind == JSON_FIELD_TEXT;
    return error_set(error, STATUS_BAD_INPUT,
                     "%s: expected %" PRId64 " to %" PRId64 "%s, found %" PRId64, field->name,
                     least, greatest, is_text ? " bytes" : "", value);
}

static enum status check_fields(const struct invariants *of, size_t *next,
                                const struct json_field_list *list, const void *record,
                                struct error *error)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct json_field *field = &list->fields[i];
        TRY(field->kind == JSON_FIELD_RECORD
                ? check_fields(of, next, field->list, (const char *)record + field->offset, error)
                : check_field(of, next, field, record, error));
    }
    return STATUS_OK;
}

enum status invariants_check(const struct invariants *of, const void *record, struct error *error)
{
    size_t next = 0;
    TRY(check_fields(of, &next, of->fields, record, error));
    CHECK(next == of->count); /* each row was some member's */
    return STATUS_OK;
}

/* ---- members that must agree ---- */

/* Members that each verdict has beside it (worker/run/rollout.c). Of one that is flagged, and of
 * those of its job, which are its evidence, whatever they had. */
static const char *verdict_disagrees(const struct outcome *outcome)
{
    bool checked = outcome->health_check[0] != '\0';
    switch (outcome->verdict) {
    case VERDICT_PASS:
        return outcome->reasons != 0 ? "pass: expected no reasons"
               : checked             ? "pass: expected no health_check"
                                     : NULL;
    case VERDICT_FAIL:
        return outcome->reasons == 0 ? "fail: expected a reason at least, found none"
               : checked             ? "fail: expected no health_check"
                                     : NULL;
    case VERDICT_PLANNER_ERROR:
        return outcome->reasons != 0       ? "planner_error: expected no reasons"
               : outcome->error[0] == '\0' ? "planner_error: expected its error, found none"
               : checked                   ? "planner_error: expected no health_check"
                                           : NULL;
    case VERDICT_INVALID:
        return outcome->reasons != 0 ? "invalid: expected no reasons"
               : !checked            ? "an invalid rollout needs the check that did not hold"
                                     : NULL;
    default:
        return NULL;
    }
}

/* Whether it was driven to a verdict, and says which drive: a clip of training data does not. */
static bool is_judged(const struct outcome *outcome)
{
    return (outcome->verdict == VERDICT_PASS || outcome->verdict == VERDICT_FAIL) &&
           outcome->trace_hash[0] != '\0';
}

/* Whether metres_mm, in whole millimetres, are those of its way, or, behind a past that another
 * rollout drove, no more. */
static bool metres_agree(const struct outcome *outcome)
{
    const double way_mm = outcome->metrics.distance_m * 1e3;
    const double apart_mm = (double)outcome->metres_mm - way_mm;
    return apart_mm <= 1.0 && (outcome->prefix_ticks > 0 || apart_mm >= -1.0);
}

/* Subscores that follow from measures beside them, and the score that follows from the subscores:
 * of every drive that our code scored (worker/score), so of no log of the controls challenge. */
static const char *score_disagrees(const struct outcome *outcome)
{
    const struct metrics *metrics = &outcome->metrics;
    if (!is_judged(outcome) || !isnan(metrics->total_cost)) {
        return NULL;
    }
    if (isnan(metrics->score)) {
        return "score: expected one of a drive that passed or failed, found none";
    }
    if (metrics->no_at_fault_collision != (metrics->at_fault ? 0.0 : 1.0)) {
        return "no_at_fault_collision: expected 0 where at_fault, else 1";
    }
    if (metrics->making_progress !=
        (metrics->progress >= METRICS_MAKING_PROGRESS_MIN ? 1.0 : 0.0)) {
        return "making_progress: expected 1 where progress is at least 0.2, else 0";
    }
    if (metrics->ttc != (metrics->min_ttc_s > METRICS_TTC_BOUND_S ? 1.0 : 0.0)) {
        return "ttc: expected 1 where min_ttc_s is above 0.95, else 0";
    }
    return fabs(metrics->score - metrics_score(metrics)) <= 1e-9
               ? NULL
               : "score: expected what its subscores make (worker/METRICS.md), found another";
}

/* Sights as worker/given writes them: words with commas between, "chunks:FIRST+MORE@HZ" the last.
 */
static bool is_given(const char *text)
{
    static const char *const words[] = {
        "bev", "cameras", "lidars",   "objects:none", "objects:true",     "objects:seen",
        "map", "signals", "controls", "route",        "objects:generated"};
    for (bool more = *text != '\0'; more;) {
        const size_t bytes = strcspn(text, ",");
        bool known =
            strncmp(text, "chunks:", 7) == 0 && 7 + strspn(text + 7, "0123456789+@") == bytes;
        for (size_t i = 0; i < COUNT_OF(words) && !known; i++) {
            known = strlen(words[i]) == bytes && memcmp(words[i], text, bytes) == 0;
        }
        if (!known) {
            return false;
        }
        more = text[bytes] == ',';
        text += bytes + (more ? 1 : 0);
    }
    return true;
}

/* Measures of the pictures: finite or none, and no mean beyond the worst. */
static const char *health_disagrees(const struct drive_health *health)
{
    for (int i = 0; i < MEASURE_COUNT; i++) {
        const double worst = health->worst[i];
        const double mean = health->mean[i];
        const double slack = 1e-6 * (1.0 + fabs(worst));
        if (isinf(worst) || isinf(mean) || isnan(worst) != isnan(mean)) {
            return "health: expected a worst and a mean of a measure, finite, or neither";
        }
        if (health_measure_kinds[i].low_is_sick ? mean < worst - slack : mean > worst + slack) {
            return "health: expected no mean of a measure beyond its worst";
        }
    }
    return NULL;
}

/* Draws that passed or failed are no more than there are, and there are none without futures. */
static const char *futures_disagree(const struct outcome_futures *f)
{
    uint32_t idm = f->idm_passed + f->idm_failed;
    uint32_t drivers = f->drivers_passed + f->drivers_failed;
    uint32_t constant = f->constant_passed + f->constant_failed;
    bool more = idm > f->draws || drivers > f->draws || constant > f->draws;
    return more ? "futures: expected no more of a model that pass and fail than draws"
           : f->state != FUTURES_DRIVEN && idm + drivers + constant > 0
               ? "futures: expected none that pass or fail where none were driven"
           : f->state == FUTURES_NONE && f->tick + f->draws > 0
               ? "futures: expected neither a tick nor draws of an outcome that has none"
           : f->state != FUTURES_NONE && f->draws == 0 ? "futures: expected a draw at least"
                                                       : NULL;
}

/* Names of checks are words of ours (docs/health.md). */
static bool is_check_name(const char *text)
{
    return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(text);
}

/* The furthest that its ticks take, rounded up: of one that is not flagged for moving further. */
static int64_t driven_mm_max(const struct outcome *outcome)
{
    return outcome->verdict == VERDICT_FLAGGED
               ? OUTCOME_MM_MAX
               : (outcome->ticks - (int64_t)outcome->prefix_ticks) * OUTCOME_TICK_MM_MAX +
                     OUTCOME_TICK_MM_MAX;
}

enum status invariants_outcome_agrees(const struct outcome *outcome, struct error *error)
{
    const struct metrics *metrics = &outcome->metrics;
    const char *verdict = verdict_disagrees(outcome);
    const char *health = health_disagrees(&outcome->health);
    const char *score = score_disagrees(outcome);
    const char *futures = futures_disagree(&outcome->futures);
    const struct {
        bool broken;
        const char *sentence;
    } rules[] = {
        {verdict != NULL, verdict},
        {health != NULL, health},
        {futures != NULL, futures},
        {outcome->tier < TIER_STUDENT && outcome->mflop > 0,
         "mflop: expected 0 of a world without a model, found more"},
        {!is_check_name(outcome->health_check),
         "health_check: expected letters a to z, digits and '_'"},
        {outcome->health_check[0] != '\0' && outcome->health_tick > outcome->ticks,
         "expected health_tick of at most ticks"},
        {metrics->intervention_count > outcome->ticks + 1,
         "expected intervention_count of at most a tick's each"},
        {(outcome->reasons & REASON_AT_FAULT_COLLISION) != 0 && !metrics->at_fault,
         "at_fault_collision: expected at_fault, found none"},
        {(outcome->reasons & REASON_COLLISION) != 0 && metrics->collision_count == 0,
         "collision: expected a contact, found collision_count 0"},
        {(outcome->reasons & REASON_OFF_DRIVABLE) != 0 && metrics->drivable_area > 0,
         "off_drivable: expected drivable_area 0"},
        {(outcome->reasons & REASON_WRONG_DIRECTION) != 0 && metrics->driving_direction > 0,
         "wrong_direction: expected driving_direction 0"},
        {(outcome->reasons & REASON_GOAL_NOT_REACHED) != 0 && metrics->goal_reached,
         "goal_not_reached: expected goal_reached false"},
        {outcome->prefix_ticks > outcome->ticks, "expected prefix_ticks of at most ticks"},
        {outcome->branch_id[0] == '\0' && outcome->prefix_ticks > 0,
         "expected no prefix_ticks of a main line"},
        {outcome->metres_mm > driven_mm_max(outcome),
         "metres_mm: expected 12 m a tick at most, found more"},
        {metrics->distance_m > (1.0 + outcome->ticks) * ((double)OUTCOME_TICK_MM_MAX * 1e-3),
         "distance_m: expected 12 m a tick at most, found more"},
        {outcome->trace_hash[0] != '\0' &&
             !sha256_is_hex(outcome->trace_hash, strlen(outcome->trace_hash)),
         "trace_hash: expected 64 digits of 0 to 9 and a to f"},
        {!is_given(outcome->given),
         "given: expected sights of schemas/planner.md with commas between"},
        {score != NULL, score},
        {is_judged(outcome) && isnan(metrics->total_cost) && !metres_agree(outcome),
         "metres_mm: expected those of distance_m, or behind a fork no more, found others"},
        {metrics->collision_tick != UINT32_MAX && metrics->collision_tick > outcome->ticks,
         "expected collision_tick of at most ticks"},
        {metrics->at_fault && metrics->collision_count == 0,
         "at_fault: expected a contact, found collision_count 0"},
        {metrics->at_fault && metrics->no_at_fault_collision > 0,
         "at_fault: expected no_at_fault_collision 0"},
    };
    for (size_t i = 0; i < COUNT_OF(rules); i++) {
        if (rules[i].broken) {
            return error_set(error, STATUS_BAD_INPUT, "%s", rules[i].sentence);
        }
    }
    return STATUS_OK;
}

/* ---- the check ---- */

struct sql_text {
    FILE *cases;    /* CASE .. of the sentence */
    FILE *where;    /* groups of them, since a chain of ORs is as deep as it is long */
    uint32_t count; /* columns */
};

enum { SQL_GROUP_COLUMNS = 16 };

/* Infinity is what is beyond the greatest finite number: SQL dialects spell it differently. */
static void add_column(struct sql_text *text, const struct json_field *field, int64_t least,
                       int64_t greatest)
{
    char beyond[256];
    bool infinite = may_be_infinite(field);
    const char *name = field->name;
    bool is_text = field->kind == JSON_FIELD_TEXT;
    if (is_text) {
        snprintf(beyond, sizeof beyond,
                 "(length(CAST(t.%s AS BLOB)) NOT BETWEEN %" PRId64 " AND %" PRId64
                 " OR instr(t.%s, char(0)) > 0)",
                 name, least, greatest, name);
    } else {
        snprintf(beyond, sizeof beyond, "(t.%s < %" PRId64 " OR t.%s > %" PRId64 "%s%s%s)", name,
                 least, name, greatest, infinite ? " AND t." : "", infinite ? name : "",
                 infinite ? " <= 1.7976931348623157e308" : "");
    }
    if (is_text) {
        fprintf(text->cases,
                " WHEN %s THEN 'holds a text that is empty, cut off or longer than any that is "
                "stored: %s'",
                beyond, name);
    } else {
        fprintf(text->cases,
                " WHEN %s THEN 'has %s ' || t.%s || ', expected %" PRId64 " to %" PRId64 "%s'",
                beyond, name, name, least, greatest, infinite ? " or infinite" : "");
    }
    bool first = text->count % SQL_GROUP_COLUMNS == 0;
    const char *joint = text->count == 0 ? "(" : first ? ") OR (" : " OR ";
    fprintf(text->where, "%s%s", joint, beyond);
    text->count++;
}

static enum status add_columns(const struct invariants *of, size_t *next,
                               const struct json_field_list *list, struct sql_text *text,
                               invariants_has *has, void *context, struct error *error)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct json_field *field = &list->fields[i];
        int64_t least;
        int64_t greatest;
        bool there = false;
        if (field->kind == JSON_FIELD_RECORD) {
            TRY(add_columns(of, next, field->list, text, has, context, error));
            continue;
        }
        if (field->kind == JSON_FIELD_U64 || !bounds(of, next, field, &least, &greatest)) {
            continue;
        }
        TRY(has(context, field->name, &there, error));
        if (there) {
            add_column(text, field, least, greatest);
        }
    }
    return STATUS_OK;
}

enum status invariants_sql(const struct invariants *of, const char *table, const char *place,
                           invariants_has *has, void *context, char **sql, struct error *error)
{
    char *cases = NULL;
    char *where = NULL;
    size_t cases_bytes = 0;
    size_t where_bytes = 0;
    size_t next = 0;
    struct sql_text text = {.cases = open_memstream(&cases, &cases_bytes),
                            .where = open_memstream(&where, &where_bytes)};
    enum status status = text.cases != NULL && text.where != NULL
                             ? STATUS_OK
                             : error_set(error, STATUS_NO_MEMORY, "out of memory for a check");
    THEN(status, add_columns(of, &next, of->fields, &text, has, context, error));
    CHECK(status != STATUS_OK || next == of->count);
    bool written = (text.cases == NULL || fclose(text.cases) == 0) &
                   (text.where == NULL || fclose(text.where) == 0);
    *sql = NULL;
    if (status == STATUS_OK && text.count > 0) {
        size_t bytes = cases_bytes + where_bytes + strlen(table) + strlen(place) + 64;
        *sql = written ? malloc(bytes) : NULL;
        status = memory_check(*sql, error, "out of memory for a check");
        if (status == STATUS_OK) {
            snprintf(*sql, bytes, "SELECT %s, CASE%s END FROM %s t WHERE %s)", place, cases, table,
                     where);
        }
    }
    free(cases);
    free(where);
    return status;
}
