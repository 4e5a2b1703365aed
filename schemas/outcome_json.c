/*
 * Outcome codec: the tables. See outcome_json.h.
 */
#include "schemas/outcome_json.h"

#include "base/check.h"
#include "schemas/json_record.h"
#include "schemas/scenario.h"

#include <string.h>

#define METRIC(member, kind) JSON_FIELD(struct metrics, member, kind)
#define METRIC_YOUNGER(member) JSON_FIELD_YOUNGER(struct metrics, member)

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
    METRIC_YOUNGER(lataccel_cost),
    METRIC_YOUNGER(jerk_cost),
    METRIC_YOUNGER(total_cost),
    METRIC_YOUNGER(lane_keeping),
    METRIC_YOUNGER(traffic_light),
    METRIC_YOUNGER(extended_comfort),
    METRIC_YOUNGER(stage_distance_m),
    METRIC_YOUNGER(stage_epdms),
    METRIC(intervention_count, JSON_FIELD_U32),
    METRIC(collision_count, JSON_FIELD_U32),
    METRIC(collision_tick, JSON_FIELD_U32_OR_NULL),
    METRIC(collision_agent, JSON_FIELD_I32),
    JSON_FIELD_ENUM(struct metrics, collision_kind, collision_kind_names, COLLISION_KIND_COUNT),
    METRIC(at_fault, JSON_FIELD_BOOL),
    METRIC(goal_reached, JSON_FIELD_BOOL),
};

const struct json_field_list metric_field_list = JSON_FIELD_LIST(metric_fields);

/* A measure, both ways in which a drive sums it up. */
#define MEASURE_FIELD(member, name_end, measure, text)                       \
    {                                                                        \
        .name = text name_end, .kind = JSON_FIELD_F64,                       \
        .offset = offsetof(struct drive_health, member) +                    \
                  (measure) * sizeof(((struct drive_health *)0)->member[0]), \
        .bytes = sizeof(double)                                              \
    }
#define MEASURE(measure, text) \
    MEASURE_FIELD(worst, "_worst", measure, text), MEASURE_FIELD(mean, "_mean", measure, text)

/* Named as health_measure_kinds has them. */
static const struct json_field health_fields[] = {
    JSON_FIELD(struct drive_health, measured_ticks, JSON_FIELD_I64),
    MEASURE(MEASURE_SATURATED, "saturated"),
    MEASURE(MEASURE_STILL, "still"),
    MEASURE(MEASURE_CUT, "cut"),
    MEASURE(MEASURE_MASS_HIGH, "mass_high"),
    MEASURE(MEASURE_MASS_LOW, "mass_low"),
    MEASURE(MEASURE_LAYOUT, "layout"),
    MEASURE(MEASURE_CAMERA, "camera"),
    MEASURE(MEASURE_JUMP, "jump"),
    MEASURE(MEASURE_LOST, "lost"),
    MEASURE(MEASURE_ABSENT, "absent"),
    MEASURE(MEASURE_ABSENT_VRU, "absent_vru"),
    MEASURE(MEASURE_OFFSET, "offset"),
    MEASURE(MEASURE_PHANTOM, "phantom"),
    MEASURE(MEASURE_PHANTOM_VRU, "phantom_vru"),
};

_Static_assert(1 + 2 * MEASURE_COUNT == COUNT_OF(health_fields), "measures of a drive");

const struct json_field_list drive_health_field_list = JSON_FIELD_LIST(health_fields);

#define FUTURES(member)                                        \
    {                                                          \
        .name = "futures_" #member, .kind = JSON_FIELD_U32,    \
        .offset = offsetof(struct outcome_futures, member),    \
        .bytes = sizeof(((struct outcome_futures *)0)->member) \
    }

/* Named with what they are of, since they are columns beside many others. */
static const struct json_field futures_fields[] = {
    {.name = "futures_state",
     .kind = JSON_FIELD_NAME,
     .offset = offsetof(struct outcome_futures, state),
     .bytes = sizeof((struct outcome_futures *)0)->state,
     .names = futures_state_names,
     .name_count = FUTURES_STATE_COUNT},
    FUTURES(tick),
    FUTURES(draws),
    FUTURES(idm_passed),
    FUTURES(idm_failed),
    FUTURES(drivers_passed),
    FUTURES(drivers_failed),
    FUTURES(constant_passed),
    FUTURES(constant_failed),
};

const struct json_field_list outcome_futures_field_list = JSON_FIELD_LIST(futures_fields);

#define SLICE(slice_name, index)                                     \
    {                                                                \
        .name = (slice_name), .kind = JSON_FIELD_TEXT,               \
        .offset = (index) * sizeof(((struct outcome *)0)->slice[0]), \
        .bytes = sizeof(((struct outcome *)0)->slice[0])             \
    }

/* Named as slice_names has them. */
static const struct json_field slice_fields[] = {
    SLICE("weather", SLICE_WEATHER), SLICE("light", SLICE_LIGHT),
    SLICE("road", SLICE_ROAD),       SLICE("geography", SLICE_GEOGRAPHY),
    SLICE("actor", SLICE_ACTOR),     SLICE("scenario_type", SLICE_SCENARIO_TYPE),
};

static const struct json_field_list slice_field_list = JSON_FIELD_LIST(slice_fields);

_Static_assert(SLICE_KIND_COUNT == COUNT_OF(slice_fields) &&
                   SLICE_KIND_COUNT == COUNT_OF(((struct outcome *)0)->slice),
               "slices of an outcome");

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
    JSON_FIELD_OPTIONAL(struct outcome, shadow, JSON_FIELD_BOOL),
    JSON_FIELD_OPTIONAL(struct outcome, at_ms, JSON_FIELD_I64),
    JSON_FIELD_OPTIONAL(struct outcome, pages_used_percent, JSON_FIELD_U32),
    JSON_FIELD_OPTIONAL(struct outcome, peak_mflops, JSON_FIELD_I64),
    JSON_FIELD_OPTIONAL(struct outcome, freeze, JSON_FIELD_I64),
    JSON_FIELD_OPTIONAL(struct outcome, in_flight, JSON_FIELD_BOOL),
    {.name = "route_reason",
     .kind = JSON_FIELD_NAME,
     .offset = offsetof(struct outcome, route_reason),
     .bytes = sizeof((struct outcome *)0)->route_reason,
     .names = route_reason_names,
     .name_count = ROUTE_REASON_COUNT,
     .optional = true},
    JSON_FIELD_OPTIONAL(struct outcome, route_own, JSON_FIELD_I64),
    JSON_FIELD_OPTIONAL(struct outcome, route_other, JSON_FIELD_I64),
    JSON_FIELD_OPTIONAL(struct outcome, rig, JSON_FIELD_TEXT),
    OUTCOME(given, JSON_FIELD_TEXT),
    JSON_FIELD_SET(struct outcome, reasons, reason_names, REASON_BIT_COUNT),
    JSON_FIELD_OBJECT("metrics", offsetof(struct outcome, metrics), &metric_field_list),
    JSON_FIELD_OBJECT("slices", offsetof(struct outcome, slice), &slice_field_list),
    JSON_FIELD_OBJECT_OPTIONAL(struct outcome, health, &drive_health_field_list),
    JSON_FIELD_OBJECT_OPTIONAL(struct outcome, futures, &outcome_futures_field_list),
};

enum { NESTED = 5 }; /* the members that are not flat */

const struct json_field_list outcome_record = JSON_FIELD_LIST(outcome_fields);
const struct json_field_list outcome_field_list = {outcome_fields,
                                                   COUNT_OF(outcome_fields) - NESTED};

json_t *outcome_encode(const struct outcome *outcome)
{
    return json_record_encode(&outcome_record, outcome, NULL);
}

enum status outcome_decode(const struct json_cursor *cursor, struct outcome *out,
                           struct error *error)
{
    struct outcome scratch;
    memset(&scratch, 0, sizeof scratch);
    TRY(json_record_decode(&outcome_record, NULL, true, cursor, &scratch, error));
    *out = scratch;
    return STATUS_OK;
}
