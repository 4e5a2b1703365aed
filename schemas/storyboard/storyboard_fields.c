/*
 * The members of a storyboard's records (schemas/scenario_members.h). Names are those of the JSON
 * document; bounds are what the engine can take.
 */
#include "schemas/storyboard/storyboard_fields.h"

#include <math.h>

#define PLACE_M 1e6
#define SPEED_MPS 200.0
#define TIME_S 1e5

static const char *const condition_names[STORY_CONDITION_COUNT] = {
    "time",      "state",    "distance",       "relative_distance", "headway",
    "ttc",       "speed",    "relative_speed", "acceleration",      "standstill",
    "travelled", "reach",    "collision",      "constant",          "angle",
    "clearance", "off_road", "road_end",       "variable"};
static const char *const rule_names[STORY_RULE_COUNT] = {
    "greater", "greater_equal", "less", "less_equal", "equal", "not_equal"};
static const char *const edge_names[STORY_EDGE_COUNT] = {"none", "rising", "falling", "either"};
static const char *const measure_names[STORY_MEASURE_COUNT] = {"euclidean", "longitudinal",
                                                               "lateral"};
static const char *const state_names[STORY_STATE_COUNT] = {"standby", "running", "complete",
                                                           "starts",  "ends",    "stops"};
static const char *const type_names[STORY_TYPE_COUNT] = {"other", "vehicle", "pedestrian", "misc"};
static const char *const action_names[STORY_ACTION_COUNT] = {
    "speed", "profile", "lateral", "follow", "gap",  "synchronise",
    "place", "path",    "show",    "hide",   "wait", "set"};
static const char *const shape_names[STORY_SHAPE_COUNT] = {"step", "linear", "cubic", "sinusoidal"};
static const char *const by_names[STORY_BY_COUNT] = {"time", "distance", "rate", "accel"};
static const char *const priority_names[STORY_PRIORITY_COUNT] = {"overwrite", "skip", "parallel"};

/* A row each. */
/* clang-format off */
MEMBERS(story_actor,
    OTHER("agent"),
    OTHER("path"),
    NUMBER(struct story_actor, s_m, -PLACE_M, PLACE_M, OPTIONAL(0)),
    NUMBER(struct story_actor, offset_m, -1e4, 1e4, OPTIONAL(0)),
    NUMBER(struct story_actor, heading_rad, -7, 7, OPTIONAL(0)),
    NUMBER(struct story_actor, speed_mps, -SPEED_MPS, SPEED_MPS, OPTIONAL(0)),
    NUMBER(struct story_actor, reference_m, -20, 20, OPTIONAL(0)),
    NUMBER(struct story_actor, accel_max_mps2, 0.01, 1e4, OPTIONAL(10)),
    NUMBER(struct story_actor, decel_max_mps2, 0.01, 1e4, OPTIONAL(10)),
    NUMBER(struct story_actor, speed_max_mps, 0, SPEED_MPS, OPTIONAL(SPEED_MPS)));

MEMBERS(story_condition,
    CHOICE_AS("is", struct story_condition, kind, condition_names, STORY_CONDITION_COUNT, .required = true),
    CHOICE(struct story_condition, rule, rule_names, STORY_RULE_COUNT, OPTIONAL(STORY_GREATER)),
    CHOICE(struct story_condition, edge, edge_names, STORY_EDGE_COUNT, OPTIONAL(STORY_EDGE_NONE)),
    CHOICE(struct story_condition, measure, measure_names, STORY_MEASURE_COUNT, OPTIONAL(STORY_EUCLIDEAN)),
    CHOICE(struct story_condition, state, state_names, STORY_STATE_COUNT, OPTIONAL(STORY_COMPLETE)),
    CHOICE(struct story_condition, type, type_names, STORY_TYPE_COUNT, OPTIONAL(STORY_OTHER)),
    INDEX(struct story_condition, actor, STORY_REFERS_ACTOR),
    INDEX(struct story_condition, other, STORY_REFERS_ACTOR),
    INDEX(struct story_condition, event, STORY_REFERS_EVENT),
    INDEX(struct story_condition, action, STORY_REFERS_ACTION),
    INDEX(struct story_condition, variable, STORY_REFERS_VARIABLE),
    FLAG(struct story_condition, freespace, OPTIONAL(0)),
    FLAG(struct story_condition, along, OPTIONAL(0)),
    FLAG(struct story_condition, same_way, OPTIONAL(0)),
    NUMBER(struct story_condition, value, -1e6, 1e6, OPTIONAL(0)),
    NUMBER(struct story_condition, delay_s, 0, TIME_S, OPTIONAL(0)),
    NUMBER(struct story_condition, x_m, -PLACE_M, PLACE_M, OPTIONAL(0)),
    NUMBER(struct story_condition, y_m, -PLACE_M, PLACE_M, OPTIONAL(0)),
    NUMBER(struct story_condition, tolerance_rad, 0, 100, OPTIONAL(0)),
    NUMBER(struct story_condition, ahead_m, 0, PLACE_M, OPTIONAL(0)),
    NUMBER(struct story_condition, behind_m, 0, PLACE_M, OPTIONAL(0)),
    NUMBER(struct story_condition, low_m, -PLACE_M, PLACE_M, OPTIONAL(0)),
    NUMBER(struct story_condition, high_m, -PLACE_M, PLACE_M, OPTIONAL(0)));

MEMBERS(story_action,
    CHOICE_AS("do", struct story_action, kind, action_names, STORY_ACTION_COUNT, .required = true),
    CHOICE(struct story_action, shape, shape_names, STORY_SHAPE_COUNT, OPTIONAL(STORY_STEP)),
    CHOICE(struct story_action, by, by_names, STORY_BY_COUNT, OPTIONAL(STORY_BY_TIME)),
    INDEX(struct story_action, actor, STORY_REFERS_ACTOR),
    INDEX(struct story_action, other, STORY_REFERS_ACTOR),
    INDEX(struct story_action, path, STORY_REFERS_PATH),
    INDEX(struct story_action, ways_on, STORY_REFERS_PATH),
    INDEX(struct story_action, variable, STORY_REFERS_VARIABLE),
    FLAG(struct story_action, continuous, OPTIONAL(0)),
    FLAG(struct story_action, freespace, OPTIONAL(0)),
    FLAG(struct story_action, absolute, OPTIONAL(0)),
    FLAG(struct story_action, relative, OPTIONAL(0)),
    FLAG(struct story_action, ends_speed, OPTIONAL(0)),
    NUMBER(struct story_action, target_mps, -SPEED_MPS, SPEED_MPS, OPTIONAL(0)),
    NUMBER(struct story_action, target_m, -1e4, 1e4, OPTIONAL(0)),
    NUMBER(struct story_action, factor, -100, 100, OPTIONAL(0)),
    NUMBER(struct story_action, set_to, -1e6, 1e6, OPTIONAL(0)),
    NUMBER(struct story_action, value, 0, 1e6, OPTIONAL(0)),
    NUMBER(struct story_action, time_s, 0, 1e4, OPTIONAL(NAN)),
    NUMBER(struct story_action, s_m, -PLACE_M, PLACE_M, OPTIONAL(0)),
    NUMBER(struct story_action, offset_m, -1e4, 1e4, OPTIONAL(0)),
    NUMBER(struct story_action, heading_rad, -7, 7, OPTIONAL(0)),
    NUMBER(struct story_action, start_s, -TIME_S, TIME_S, OPTIONAL(0)),
    NUMBER(struct story_action, scale, 1e-3, 1e3, OPTIONAL(1)),
    NUMBER(struct story_action, x_m, -PLACE_M, PLACE_M, OPTIONAL(0)),
    NUMBER(struct story_action, y_m, -PLACE_M, PLACE_M, OPTIONAL(0)),
    NUMBER(struct story_action, other_x_m, -PLACE_M, PLACE_M, OPTIONAL(0)),
    NUMBER(struct story_action, other_y_m, -PLACE_M, PLACE_M, OPTIONAL(0)),
    NUMBER(struct story_action, tolerance_m, 0, 1e4, OPTIONAL(0)),
    NUMBER(struct story_action, other_tolerance_m, 0, 1e4, OPTIONAL(0)),
    NUMBER(struct story_action, steady_m, 0, 1e5, OPTIONAL(0)),
    NUMBER(struct story_action, accel_mps2, 0.01, 1e4, OPTIONAL(INFINITY)),
    NUMBER(struct story_action, decel_mps2, 0.01, 1e4, OPTIONAL(INFINITY)),
    NUMBER(struct story_action, speed_max_mps, 0, SPEED_MPS, OPTIONAL(SPEED_MPS)),
    OTHER("steps"),
    OTHER("ways"));

MEMBERS(story_event,
    CHOICE(struct story_event, priority, priority_names, STORY_PRIORITY_COUNT, OPTIONAL(STORY_OVERWRITE)),
    INDEX(struct story_event, parent, STORY_REFERS_EVENT),
    OTHER("group"),
    OTHER("repeats"),
    OTHER("start"),
    OTHER("stop"),
    OTHER("actions"));
/* clang-format on */
