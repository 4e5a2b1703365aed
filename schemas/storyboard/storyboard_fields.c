/*
 * The members of a storyboard's records. Names are those of the JSON document; bounds are what the
 * engine can take.
 */
#include "schemas/storyboard/storyboard_fields.h"

#include <math.h>

#define PLACE_M 1e6
#define SPEED_MPS 200.0
#define TIME_S 1e5

static const char *const condition_names[STORY_CONDITION_COUNT] = {
    "time",      "state",          "distance",     "relative_distance", "headway",   "ttc",
    "speed",     "relative_speed", "acceleration", "standstill",        "travelled", "reach",
    "collision", "constant",       "angle",        "clearance",         "off_road",  "road_end"};
static const char *const rule_names[STORY_RULE_COUNT] = {
    "greater", "greater_equal", "less", "less_equal", "equal", "not_equal"};
static const char *const edge_names[STORY_EDGE_COUNT] = {"none", "rising", "falling", "either"};
static const char *const measure_names[STORY_MEASURE_COUNT] = {"euclidean", "longitudinal",
                                                               "lateral"};
static const char *const state_names[STORY_STATE_COUNT] = {"standby", "running", "complete",
                                                           "starts",  "ends",    "stops"};
static const char *const action_names[STORY_ACTION_COUNT] = {
    "speed", "profile", "lateral", "follow", "gap", "synchronise",
    "place", "path",    "show",    "hide",   "wait"};
static const char *const shape_names[STORY_SHAPE_COUNT] = {"step", "linear", "cubic", "sinusoidal"};
static const char *const by_names[STORY_BY_COUNT] = {"time", "distance", "rate", "accel"};
static const char *const priority_names[STORY_PRIORITY_COUNT] = {"overwrite", "skip", "parallel"};

#define AT(record, member) offsetof(struct record, member)

static const struct story_choice no_choices[] = {{NULL, 0, NULL, 0, 0}};
static const struct story_flag no_flags[] = {{NULL, 0}};

static const struct story_reference actor_references[] = {{NULL, 0, 0}};
static const struct story_number actor_numbers[] = {
    {"s_m", AT(story_actor, s_m), -PLACE_M, PLACE_M, 0.0},
    {"offset_m", AT(story_actor, offset_m), -1e4, 1e4, 0.0},
    {"heading_rad", AT(story_actor, heading_rad), -7.0, 7.0, 0.0},
    {"speed_mps", AT(story_actor, speed_mps), -SPEED_MPS, SPEED_MPS, 0.0},
    {"reference_m", AT(story_actor, reference_m), -20.0, 20.0, 0.0},
    {"accel_max_mps2", AT(story_actor, accel_max_mps2), 0.01, 1e4, 10.0},
    {"decel_max_mps2", AT(story_actor, decel_max_mps2), 0.01, 1e4, 10.0},
    {"speed_max_mps", AT(story_actor, speed_max_mps), 0.0, SPEED_MPS, SPEED_MPS},
    {NULL, 0, 0, 0, 0}};
static const char *const actor_keys[] = {
    "agent",          "path",          "s_m",         "offset_m",
    "heading_rad",    "speed_mps",     "reference_m", "accel_max_mps2",
    "decel_max_mps2", "speed_max_mps", NULL};
const struct story_record story_actor_record = {actor_keys, no_choices, actor_references, no_flags,
                                                actor_numbers};

static const struct story_choice condition_choices[] = {
    {"is", AT(story_condition, kind), condition_names, STORY_CONDITION_COUNT, -1},
    {"rule", AT(story_condition, rule), rule_names, STORY_RULE_COUNT, STORY_GREATER},
    {"edge", AT(story_condition, edge), edge_names, STORY_EDGE_COUNT, STORY_EDGE_NONE},
    {"measure", AT(story_condition, measure), measure_names, STORY_MEASURE_COUNT, STORY_EUCLIDEAN},
    {"state", AT(story_condition, state), state_names, STORY_STATE_COUNT, STORY_COMPLETE},
    {NULL, 0, NULL, 0, 0}};
static const struct story_reference condition_references[] = {
    {"actor", AT(story_condition, actor), STORY_REFERS_ACTOR},
    {"other", AT(story_condition, other), STORY_REFERS_ACTOR},
    {"event", AT(story_condition, event), STORY_REFERS_EVENT},
    {"action", AT(story_condition, action), STORY_REFERS_ACTION},
    {NULL, 0, 0}};
static const struct story_flag condition_flags[] = {{"freespace", AT(story_condition, freespace)},
                                                    {"along", AT(story_condition, along)},
                                                    {"same_way", AT(story_condition, same_way)},
                                                    {NULL, 0}};
static const struct story_number condition_numbers[] = {
    {"value", AT(story_condition, value), -1e6, 1e6, 0.0},
    {"delay_s", AT(story_condition, delay_s), 0.0, TIME_S, 0.0},
    {"x_m", AT(story_condition, x_m), -PLACE_M, PLACE_M, 0.0},
    {"y_m", AT(story_condition, y_m), -PLACE_M, PLACE_M, 0.0},
    {"tolerance_rad", AT(story_condition, tolerance_rad), 0.0, 100.0, 0.0},
    {"ahead_m", AT(story_condition, ahead_m), 0.0, PLACE_M, 0.0},
    {"behind_m", AT(story_condition, behind_m), 0.0, PLACE_M, 0.0},
    {"low_m", AT(story_condition, low_m), -PLACE_M, PLACE_M, 0.0},
    {"high_m", AT(story_condition, high_m), -PLACE_M, PLACE_M, 0.0},
    {NULL, 0, 0, 0, 0}};
static const char *const condition_keys[] = {
    "is",       "rule",      "edge",     "measure", "state",   "actor", "other", "event",
    "action",   "freespace", "along",    "value",   "delay_s", "x_m",   "y_m",   "tolerance_rad",
    "same_way", "ahead_m",   "behind_m", "low_m",   "high_m",  NULL};
const struct story_record story_condition_record = {
    condition_keys, condition_choices, condition_references, condition_flags, condition_numbers};

static const struct story_choice action_choices[] = {
    {"do", AT(story_action, kind), action_names, STORY_ACTION_COUNT, -1},
    {"shape", AT(story_action, shape), shape_names, STORY_SHAPE_COUNT, STORY_STEP},
    {"by", AT(story_action, by), by_names, STORY_BY_COUNT, STORY_BY_TIME},
    {NULL, 0, NULL, 0, 0}};
static const struct story_reference action_references[] = {
    {"actor", AT(story_action, actor), STORY_REFERS_ACTOR},
    {"other", AT(story_action, other), STORY_REFERS_ACTOR},
    {"path", AT(story_action, path), STORY_REFERS_PATH},
    {"ways_on", AT(story_action, ways_on), STORY_REFERS_PATH},
    {NULL, 0, 0}};
static const struct story_flag action_flags[] = {{"continuous", AT(story_action, continuous)},
                                                 {"freespace", AT(story_action, freespace)},
                                                 {"absolute", AT(story_action, absolute)},
                                                 {"ends_speed", AT(story_action, ends_speed)},
                                                 {NULL, 0}};
static const struct story_number action_numbers[] = {
    {"target_mps", AT(story_action, target_mps), -SPEED_MPS, SPEED_MPS, 0.0},
    {"target_m", AT(story_action, target_m), -1e4, 1e4, 0.0},
    {"factor", AT(story_action, factor), -100.0, 100.0, 0.0},
    {"value", AT(story_action, value), 0.0, 1e6, 0.0},
    {"time_s", AT(story_action, time_s), 0.0, 1e4, NAN},
    {"s_m", AT(story_action, s_m), -PLACE_M, PLACE_M, 0.0},
    {"offset_m", AT(story_action, offset_m), -1e4, 1e4, 0.0},
    {"heading_rad", AT(story_action, heading_rad), -7.0, 7.0, 0.0},
    {"start_s", AT(story_action, start_s), -TIME_S, TIME_S, 0.0},
    {"scale", AT(story_action, scale), 1e-3, 1e3, 1.0},
    {"x_m", AT(story_action, x_m), -PLACE_M, PLACE_M, 0.0},
    {"y_m", AT(story_action, y_m), -PLACE_M, PLACE_M, 0.0},
    {"other_x_m", AT(story_action, other_x_m), -PLACE_M, PLACE_M, 0.0},
    {"other_y_m", AT(story_action, other_y_m), -PLACE_M, PLACE_M, 0.0},
    {"tolerance_m", AT(story_action, tolerance_m), 0.0, 1e4, 0.0},
    {"other_tolerance_m", AT(story_action, other_tolerance_m), 0.0, 1e4, 0.0},
    {"steady_m", AT(story_action, steady_m), 0.0, 1e5, 0.0},
    {"accel_mps2", AT(story_action, accel_mps2), 0.01, 1e4, INFINITY},
    {"decel_mps2", AT(story_action, decel_mps2), 0.01, 1e4, INFINITY},
    {"speed_max_mps", AT(story_action, speed_max_mps), 0.0, SPEED_MPS, SPEED_MPS},
    {NULL, 0, 0, 0, 0}};
static const char *const action_keys[] = {"do",          "shape",
                                          "by",          "actor",
                                          "other",       "path",
                                          "continuous",  "freespace",
                                          "absolute",    "ends_speed",
                                          "target_mps",  "target_m",
                                          "factor",      "value",
                                          "time_s",      "s_m",
                                          "offset_m",    "heading_rad",
                                          "start_s",     "scale",
                                          "x_m",         "y_m",
                                          "other_x_m",   "other_y_m",
                                          "tolerance_m", "other_tolerance_m",
                                          "steady_m",    "accel_mps2",
                                          "decel_mps2",  "speed_max_mps",
                                          "steps",       "ways",
                                          "ways_on",     NULL};
const struct story_record story_action_record = {action_keys, action_choices, action_references,
                                                 action_flags, action_numbers};

static const struct story_choice event_choices[] = {
    {"priority", AT(story_event, priority), priority_names, STORY_PRIORITY_COUNT, STORY_OVERWRITE},
    {NULL, 0, NULL, 0, 0}};
static const struct story_reference event_references[] = {
    {"parent", AT(story_event, parent), STORY_REFERS_EVENT}, {NULL, 0, 0}};
static const struct story_number event_numbers[] = {{NULL, 0, 0, 0, 0}};
static const char *const event_keys[] = {"priority", "parent", "group",   "repeats",
                                         "start",    "stop",   "actions", NULL};
const struct story_record story_event_record = {event_keys, event_choices, event_references,
                                                no_flags, event_numbers};
