/*
 * The text names of enumerations that travel in JSON, SQL and on the screen.
 */
#include "base/check.h"
#include "schemas/job.h"
#include "schemas/outcome.h"
#include "schemas/scenario_json.h"

#include <stdio.h>
#include <string.h>

const char *const tier_names[TIER_COUNT] = {"replay", "object", "student", "teacher", "golden"};

const char *const route_reason_names[ROUTE_REASON_COUNT] = {
    "none",   "author",  "logged", "unlogged", "planning", "sensors", "degraded",
    "frozen", "horizon", "price",  "backlog",  "audit",    "flagged"};

const char *const futures_state_names[FUTURES_STATE_COUNT] = {"none", "driven", "ended",
                                                              "failed_before", "without"};

const char *const verdict_names[VERDICT_COUNT] = {"pass", "fail", "planner_error", "flagged",
                                                  "invalid"};

const char *const reason_names[REASON_BIT_COUNT] = {
    "at_fault_collision", "collision",     "off_drivable", "wrong_direction",
    "goal_not_reached",   "uncomfortable", "ttc",          "distance",
    "impact_speed",       "progress",      "score",        "speed",
    "red_light",          "cost",          "stop_sign",
};

const struct health_measure_kind health_measure_kinds[MEASURE_COUNT] = {
    [MEASURE_SATURATED] = {"saturated", false},
    [MEASURE_STILL] = {"still", true},
    [MEASURE_CUT] = {"cut", false},
    [MEASURE_MASS_HIGH] = {"mass_high", false},
    [MEASURE_MASS_LOW] = {"mass_low", true},
    [MEASURE_LAYOUT] = {"layout", true},
    [MEASURE_CAMERA] = {"camera", true},
    [MEASURE_JUMP] = {"jump", false},
    [MEASURE_LOST] = {"lost", false},
    [MEASURE_ABSENT] = {"absent", false},
    [MEASURE_ABSENT_VRU] = {"absent_vru", false},
    [MEASURE_OFFSET] = {"offset", false},
    [MEASURE_PHANTOM] = {"phantom", false},
    [MEASURE_PHANTOM_VRU] = {"phantom_vru", false},
};

const char *reasons_text(uint32_t reasons, const char *separator, char out[REASONS_TEXT_BYTES])
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t bit = 0; bit < REASON_BIT_COUNT; bit++) {
        if ((reasons >> bit & 1) != 0) {
            used += (size_t)snprintf(out + used, REASONS_TEXT_BYTES - used, "%s%s",
                                     used > 0 ? separator : "", reason_names[bit]);
            CHECK(used < REASONS_TEXT_BYTES);
        }
    }
    return out;
}

const char *outcome_world_option(const char *sampler)
{
    const char *last = strrchr(sampler, '/');
    bool theirs = last != NULL &&
                  (strcmp(last + 1, SAMPLER_EXACT) == 0 || strcmp(last + 1, SAMPLER_VARIES) == 0);
    return theirs ? " --world SPEC" : "";
}

const char *const collision_kind_names[COLLISION_KIND_COUNT] = {
    "none", "stopped_ego", "stopped_track", "rear", "front", "lateral",
};

const char *const job_state_names[JOB_STATE_COUNT] = {
    "queued", "leased", "done", "flagged", "dead", "cancelled",
};

const char *const completion_kind_names[COMPLETION_KIND_COUNT] = {
    "done", "flagged", "failed", "released", "unstarted", "partial",
};

/* ---- scenarios ---- */

const char *const lane_kind_names[LANE_KIND_COUNT] = {"driving", "shoulder", "cycle", "sidewalk"};

const char *const marking_names[MARKING_COUNT] = {"none", "dashed", "solid"};

const char *const traffic_sign_names[TRAFFIC_SIGN_COUNT] = {
    "none", "stop", "yield", "priority", "give_way", "give_way_right", "give_way_oncoming"};

const char *const traffic_light_names[TRAFFIC_LIGHT_COUNT] = {"red", "red_yellow", "yellow",
                                                              "green", "off"};

const char *const trigger_names[TRIGGER_COUNT] = {"time", "ego_distance", "ego_tta", "ego_passed",
                                                  "after"};

const char *const manoeuvre_names[MANOEUVRE_COUNT] = {"speed", "lane_change", "path", "appear",
                                                      "vanish"};

const char *const agent_kind_names[AGENT_KIND_COUNT] = {
    "car", "van", "truck", "bus", "motorcycle", "cyclist", "pedestrian", "animal", "object",
};

const char *const behaviour_names[BEHAVIOUR_COUNT] = {"static", "idm", "replay", "script",
                                                      "storyboard"};

const char *const dynamics_names[DYNAMICS_COUNT] = {"kinematic", "single_track"};
const char *const weather_names[WEATHER_COUNT] = {"clear", "rain", "heavy_rain", "fog", "snow"};

const char *const light_names[LIGHT_COUNT] = {"day", "dusk", "night"};

const char *const slice_names[SLICE_KIND_COUNT] = {
    "weather", "light", "road", "geography", "actor", "scenario_type",
};

const char *const intervention_names[INTERVENE_COUNT] = {
    "ego_brake",     "ego_swerve",   "ego_maintain", "ego_actions", "ego_planner",
    "agent_brake",   "agent_cut_in", "agent_appear", "conditions",  "stack_latency",
    "stack_dropout", "signal",       "traffic",
};

const char *const traffic_model_names[TRAFFIC_MODEL_COUNT] = {"written", "idm", "drivers",
                                                              "constant", "tokens"};

const char *const sensor_names[SENSOR_KIND_COUNT] = {"lidar", "camera_left", "camera_front",
                                                     "camera_right"};

const char *const question_names[QUESTION_COUNT] = {"regression", "planning", "perception"};

const char *const suite_class_names[SUITE_CLASS_COUNT] = {"", "regression", "interactive",
                                                          "mining"};
