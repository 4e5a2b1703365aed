/*
 * Outcome codec: two tables and the three members that are not flat. See outcome_json.h.
 */
#include "schemas/outcome_json.h"

#include "base/check.h"
#include "schemas/json_record.h"
#include "schemas/scenario_json.h"

#include <string.h>

#define METRIC(member, kind) JSON_FIELD(struct metrics, member, kind)

static const struct json_field metric_fields[] = {
    METRIC(no_at_fault_collision, JSON_FIELD_F64),
    METRIC(drivable_area, JSON_FIELD_F64),
    METRIC(driving_direction, JSON_FIELD_F64),
    METRIC(making_progress, JSON_FIELD_F64),
    METRIC(progress, JSON_FIELD_F64),
    METRIC(ttc, JSON_FIELD_F64),
    METRIC(speed_limit, JSON_FIELD_F64),
    METRIC(comfort, JSON_FIELD_F64),
    METRIC(score, JSON_FIELD_F64),
    METRIC(min_ttc_s, JSON_FIELD_F64),
    METRIC(min_distance_m, JSON_FIELD_F64),
    METRIC(impact_speed_mps, JSON_FIELD_F64),
    METRIC(progress_m, JSON_FIELD_F64),
    METRIC(distance_m, JSON_FIELD_F64),
    METRIC(speed_max_mps, JSON_FIELD_F64),
    METRIC(accel_min_mps2, JSON_FIELD_F64),
    METRIC(jerk_max_mps3, JSON_FIELD_F64),
    METRIC(intervention_count, JSON_FIELD_U32),
    METRIC(collision_count, JSON_FIELD_U32),
    METRIC(collision_tick, JSON_FIELD_U32_OR_NULL),
    METRIC(collision_agent, JSON_FIELD_I32),
    JSON_FIELD_ENUM(struct metrics, collision_kind, collision_kind_names, COLLISION_KIND_COUNT),
    METRIC(at_fault, JSON_FIELD_BOOL),
    METRIC(goal_reached, JSON_FIELD_BOOL),
};

#define OUTCOME(member, kind) JSON_FIELD(struct outcome, member, kind)

static const struct json_field outcome_fields[] = {
    OUTCOME(id, JSON_FIELD_I64),
    OUTCOME(job_id, JSON_FIELD_I64),
    OUTCOME(epoch, JSON_FIELD_I64),
    OUTCOME(suite_id, JSON_FIELD_TEXT),
    OUTCOME(scenario_id, JSON_FIELD_TEXT),
    OUTCOME(scenario_hash, JSON_FIELD_TEXT),
    OUTCOME(branch_id, JSON_FIELD_TEXT),
    OUTCOME(planner, JSON_FIELD_TEXT),
    OUTCOME(planner_hash, JSON_FIELD_TEXT),
    JSON_FIELD_ENUM(struct outcome, tier, tier_names, TIER_COUNT),
    OUTCOME(pool, JSON_FIELD_TEXT),
    OUTCOME(model_hash, JSON_FIELD_TEXT),
    OUTCOME(sampler, JSON_FIELD_TEXT),
    OUTCOME(backend, JSON_FIELD_TEXT),
    OUTCOME(revision, JSON_FIELD_TEXT),
    OUTCOME(seed, JSON_FIELD_U64),
    JSON_FIELD_ENUM(struct outcome, verdict, verdict_names, VERDICT_COUNT),
    OUTCOME(ticks, JSON_FIELD_U32),
    OUTCOME(prefix_ticks, JSON_FIELD_U32),
    OUTCOME(metres_mm, JSON_FIELD_I64),
    OUTCOME(device_ns, JSON_FIELD_I64),
    OUTCOME(mflop, JSON_FIELD_I64),
    OUTCOME(trace_hash, JSON_FIELD_TEXT),
    OUTCOME(artifact_hash, JSON_FIELD_TEXT),
    OUTCOME(safety_critical, JSON_FIELD_BOOL),
    OUTCOME(error, JSON_FIELD_TEXT),
    OUTCOME(health_check, JSON_FIELD_TEXT),
    OUTCOME(health_tick, JSON_FIELD_U32),
    OUTCOME(health_value, JSON_FIELD_F64),
    OUTCOME(health_threshold, JSON_FIELD_F64),
    OUTCOME(evidence_hash, JSON_FIELD_TEXT),
    OUTCOME(parent_job_id, JSON_FIELD_I64),
    OUTCOME(audit_of, JSON_FIELD_I64),
};

const struct json_field_list outcome_field_list = {outcome_fields, COUNT_OF(outcome_fields)};
const struct json_field_list metric_field_list = {metric_fields, COUNT_OF(metric_fields)};

static const char *const outcome_extra_keys[] = {"reasons", "metrics", "slices", NULL};

_Static_assert(SLICE_KIND_COUNT == COUNT_OF(((struct outcome *)0)->slice), "slices of an outcome");

json_t *metrics_encode(const struct metrics *metrics)
{
    json_t *object = json_object();
    if (object == NULL ||
        !json_record_encode(metric_fields, COUNT_OF(metric_fields), metrics, NULL, object)) {
        json_decref(object);
        return NULL;
    }
    return object;
}

enum status metrics_decode(const struct json_cursor *cursor, struct metrics *out,
                           struct error *error)
{
    struct metrics scratch = {0};
    TRY(json_record_decode(metric_fields, COUNT_OF(metric_fields), NULL, true, cursor, &scratch,
                           error));
    *out = scratch;
    return STATUS_OK;
}

static json_t *encode_reasons(uint32_t reasons)
{
    json_t *array = json_array();
    for (uint32_t bit = 0; array != NULL && bit < REASON_BIT_COUNT; bit++) {
        if ((reasons >> bit & 1) != 0 &&
            json_array_append_new(array, json_string(reason_names[bit])) != 0) {
            json_decref(array);
            return NULL;
        }
    }
    return array;
}

static enum status decode_reasons(const struct json_cursor *cursor, uint32_t *out,
                                  struct error *error)
{
    size_t count;
    uint32_t reasons = 0;
    enum status status = json_array_begin(cursor, 0, REASON_BIT_COUNT, &count, error);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct json_cursor element = json_cursor_element(cursor, i);
        int bit = 0;
        status = json_value_choice(&element, reason_names, REASON_BIT_COUNT, &bit, error);
        if (status == STATUS_OK && (reasons >> bit & 1) != 0) {
            return json_fail(&element, error, "expected each reason once, found \"%s\" again",
                             reason_names[bit]);
        }
        reasons |= UINT32_C(1) << bit;
    }
    if (status == STATUS_OK) {
        *out = reasons;
    }
    return status;
}

static json_t *encode_slices(const struct outcome *outcome)
{
    json_t *object = json_object();
    for (size_t i = 0; object != NULL && i < SLICE_KIND_COUNT; i++) {
        if (!json_put(object, slice_names[i],
                      json_text_new(outcome->slice[i], sizeof outcome->slice[i]))) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static enum status decode_slices(const struct json_cursor *cursor, struct outcome *out,
                                 struct error *error)
{
    const char *keys[SLICE_KIND_COUNT + 1] = {NULL};
    for (size_t i = 0; i < SLICE_KIND_COUNT; i++) {
        keys[i] = slice_names[i];
    }
    TRY(json_object_begin(cursor, keys, error));
    for (size_t i = 0; i < SLICE_KIND_COUNT; i++) {
        TRY(json_member_text(cursor, slice_names[i], true, out->slice[i], sizeof out->slice[i],
                             error));
    }
    return STATUS_OK;
}

json_t *outcome_encode(const struct outcome *outcome)
{
    json_t *object = json_object();
    if (object == NULL ||
        !json_record_encode(outcome_fields, COUNT_OF(outcome_fields), outcome, NULL, object) ||
        !json_put(object, "reasons", encode_reasons(outcome->reasons)) ||
        !json_put(object, "metrics", metrics_encode(&outcome->metrics)) ||
        !json_put(object, "slices", encode_slices(outcome))) {
        json_decref(object);
        return NULL;
    }
    return object;
}

enum status outcome_decode(const struct json_cursor *cursor, struct outcome *out,
                           struct error *error)
{
    struct outcome scratch;
    memset(&scratch, 0, sizeof scratch);
    TRY(json_record_decode(outcome_fields, COUNT_OF(outcome_fields), outcome_extra_keys, true,
                           cursor, &scratch, error));
    struct json_cursor reasons = json_cursor_member(cursor, "reasons");
    TRY(decode_reasons(&reasons, &scratch.reasons, error));
    struct json_cursor metrics = json_cursor_member(cursor, "metrics");
    TRY(metrics_decode(&metrics, &scratch.metrics, error));
    struct json_cursor slices = json_cursor_member(cursor, "slices");
    TRY(decode_slices(&slices, &scratch, error));
    *out = scratch;
    return STATUS_OK;
}

/* ---- without a document ---- */

static bool scan_reasons(struct json_scan *scan, uint32_t *out)
{
    uint32_t reasons = 0;
    bool first = true;
    if (!json_scan_literal(scan, "[")) {
        return false;
    }
    while (!json_scan_literal(scan, "]")) {
        int bit = 0;
        if ((!first && !json_scan_literal(scan, ",")) ||
            !json_scan_choice(scan, reason_names, REASON_BIT_COUNT, &bit) ||
            (reasons >> bit & 1) != 0) {
            return false;
        }
        reasons |= UINT32_C(1) << bit;
        first = false;
    }
    *out = reasons;
    return true;
}

static bool scan_slices(struct json_scan *scan, struct outcome *out)
{
    for (size_t i = 0; i < SLICE_KIND_COUNT; i++) {
        if (!json_scan_key(scan, slice_names[i], i == 0) ||
            !json_scan_text(scan, out->slice[i], sizeof out->slice[i])) {
            return false;
        }
    }
    return true;
}

bool outcome_scan(struct json_scan *scan, struct outcome *out)
{
    memset(out, 0, sizeof *out);
    return json_scan_literal(scan, "{") &&
           json_scan_fields(scan, outcome_fields, COUNT_OF(outcome_fields), out) &&
           json_scan_key(scan, "reasons", false) && scan_reasons(scan, &out->reasons) &&
           json_scan_key(scan, "metrics", false) && json_scan_literal(scan, "{") &&
           json_scan_fields(scan, metric_fields, COUNT_OF(metric_fields), &out->metrics) &&
           json_scan_literal(scan, "}") && json_scan_key(scan, "slices", false) &&
           json_scan_literal(scan, "{") && scan_slices(scan, out) && json_scan_literal(scan, "}}");
}

void outcome_write(struct json_text *text, const struct outcome *outcome)
{
    bool first = true;
    json_write_literal(text, "{");
    json_write_fields(text, outcome_fields, COUNT_OF(outcome_fields), outcome);
    json_write_literal(text, ",\"reasons\":[");
    for (uint32_t bit = 0; bit < REASON_BIT_COUNT; bit++) {
        if ((outcome->reasons >> bit & 1) != 0) {
            json_write_literal(text, first ? "\"" : ",\"");
            json_write_literal(text, reason_names[bit]);
            json_write_literal(text, "\"");
            first = false;
        }
    }
    json_write_literal(text, "],\"metrics\":{");
    json_write_fields(text, metric_fields, COUNT_OF(metric_fields), &outcome->metrics);
    json_write_literal(text, "},\"slices\":{");
    for (size_t i = 0; i < SLICE_KIND_COUNT; i++) {
        json_write_literal(text, i == 0 ? "\"" : ",\"");
        json_write_literal(text, slice_names[i]);
        json_write_literal(text, "\":");
        json_write_text(text, outcome->slice[i], sizeof outcome->slice[i]);
    }
    json_write_literal(text, "}}");
}
