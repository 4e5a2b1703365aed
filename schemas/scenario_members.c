/*
 * Members of a scenario's parts: the tables, and decoding and encoding by them. See
 * scenario_members.h; what the members mean is in scenario.h and scenario.md.
 */
#include "schemas/scenario_members.h"

#include "base/check.h"
#include "base/units.h"

#include <math.h>
#include <string.h>

/* A row each. */
/* clang-format off */
MEMBERS(pose,
    NUMBER(struct pose, x_m, -1e5, 1e5, .required = true),
    NUMBER(struct pose, y_m, -1e5, 1e5, .required = true),
    ANGLE(struct pose, heading_rad, .required = true));

MEMBERS(conditions,
    CHOICE(struct conditions, weather, weather_names, WEATHER_COUNT),
    CHOICE(struct conditions, light, light_names, LIGHT_COUNT),
    NUMBER(struct conditions, friction, 1e-3, 1.2),
    NUMBER(struct conditions, visibility_m, 1, 1000));

MEMBERS(goal,
    NUMBER_AS("x_m", struct ego, goal.x_m, -1e5, 1e5, .required = true),
    NUMBER_AS("y_m", struct ego, goal.y_m, -1e5, 1e5, .required = true),
    NUMBER_AS("radius_m", struct ego, goal_radius_m, 0.1, 1000),
    OTHER("area"),
    NUMBER_AS("time_min_s", struct ego, goal_bounds.time_min_s, 0, 600, OPTIONAL(NAN)),
    NUMBER_AS("time_max_s", struct ego, goal_bounds.time_max_s, 0, 600, OPTIONAL(NAN)),
    NUMBER_AS("speed_min_mps", struct ego, goal_bounds.speed_min_mps, -100, 100, OPTIONAL(NAN)),
    NUMBER_AS("speed_max_mps", struct ego, goal_bounds.speed_max_mps, -100, 100, OPTIONAL(NAN)),
    NUMBER_AS("heading_min_rad", struct ego, goal_bounds.heading_min_rad, -2 * PI_RAD, 2 * PI_RAD, OPTIONAL(NAN)),
    NUMBER_AS("heading_max_rad", struct ego, goal_bounds.heading_max_rad, -2 * PI_RAD, 2 * PI_RAD, OPTIONAL(NAN)));

MEMBERS(ego,
    OTHER("pose"),
    NUMBER(struct ego, speed_mps, 0, 100),
    NUMBER(struct ego, length_m, 0.5, 50),
    NUMBER(struct ego, width_m, 0.3, 10),
    NUMBER(struct ego, height_m, 0.3, 10),
    NUMBER(struct ego, wheelbase_m, 0.3, 40),
    OTHER("route"),
    OTHER("goal"),
    OTHER("log"),
    CHOICE(struct ego, dynamics, dynamics_names, DYNAMICS_COUNT, OPTIONAL(0)),
    NUMBER(struct ego, brake_delay_s, 0, EGO_DELAY_MAX_S, OPTIONAL(0)),
    NUMBER(struct ego, steer_delay_s, 0, EGO_DELAY_MAX_S, OPTIONAL(0)));

MEMBERS(criteria,
    FLAG(struct criteria, no_at_fault_collision),
    FLAG(struct criteria, no_collision),
    FLAG(struct criteria, stay_drivable),
    FLAG(struct criteria, right_direction),
    FLAG(struct criteria, reach_goal),
    FLAG(struct criteria, comfortable),
    FLAG(struct criteria, obey_signals, OPTIONAL(1)),
    NUMBER(struct criteria, min_ttc_s, 0, 3, OPTIONAL(NAN)),
    NUMBER(struct criteria, min_distance_m, 0, 100, OPTIONAL(NAN)),
    NUMBER(struct criteria, impact_speed_max_mps, 0, 200, OPTIONAL(NAN)),
    NUMBER(struct criteria, progress_min, 0, 1, OPTIONAL(NAN)),
    NUMBER(struct criteria, score_min, 0, 1, OPTIONAL(NAN)),
    NUMBER(struct criteria, speed_max_mps, 0, 100, OPTIONAL(NAN)),
    NUMBER(struct criteria, expected_progress_m, 0.1, 1e5, OPTIONAL(NAN)),
    NUMBER(struct criteria, total_cost_max, 0, 1e9, OPTIONAL(NAN)));

MEMBERS(lane,
    OTHER("id"),
    CHOICE(struct lane, kind, lane_kind_names, LANE_KIND_COUNT),
    OTHER("centre_line"),
    OTHER("width_m"),
    NUMBER(struct lane, speed_limit_mps, 0, 100),
    OTHER("left"),
    OTHER("right"),
    FLAG(struct lane, left_opposite),
    FLAG(struct lane, right_opposite),
    OTHER("successors"),
    CHOICE(struct lane, left_marking, marking_names, MARKING_COUNT),
    CHOICE(struct lane, right_marking, marking_names, MARKING_COUNT),
    FLAG(struct lane, intersection));

MEMBERS(surface,
    OTHER("kind"),
    NUMBER(struct surface, friction, 1e-3, 1.2),
    OTHER("area"));

MEMBERS(signal_phase,
    CHOICE(struct signal_phase, light, traffic_light_names, TRAFFIC_LIGHT_COUNT, .required = true),
    NUMBER(struct signal_phase, duration_s, 0.1, 3600, .required = true));

MEMBERS(signal,
    OTHER("id"),
    OTHER("lanes"),
    NUMBER(struct traffic_signal, stop_m, 0, 1000),
    NUMBER(struct traffic_signal, offset_s, 0, 1e6, .kinds = SIGNAL_IS_LIGHT),
    FLAG(struct traffic_signal, repeats, .kinds = SIGNAL_IS_LIGHT),
    OTHER("phases", .kinds = SIGNAL_IS_LIGHT),
    OTHER("sign"));

MEMBERS(idm,
    NUMBER(struct idm, desired_speed_mps, 0.1, 100),
    NUMBER(struct idm, time_headway_s, 0, 10),
    NUMBER(struct idm, min_gap_m, 0, 50),
    NUMBER(struct idm, accel_max_mps2, 0.1, 10),
    NUMBER(struct idm, decel_comfort_mps2, 0.1, 10),
    NUMBER(struct idm, politeness, 0, 1),
    FLAG(struct idm, lane_changes),
    FLAG(struct idm, sees_ego));

#define OF(kind) (1u << MANOEUVRE_##kind)
MEMBERS(manoeuvre,
    CHOICE_AS("when", struct manoeuvre, trigger.kind, trigger_names, TRIGGER_COUNT, .required = true),
    OTHER("value"),
    CHOICE_AS("do", struct manoeuvre, kind, manoeuvre_names, MANOEUVRE_COUNT, .required = true),
    NUMBER(struct manoeuvre, speed_mps, 0, 100, .required = true, .kinds = OF(SPEED) | OF(PATH)),
    NUMBER(struct manoeuvre, rate_mps2, 0.01, 50, .kinds = OF(SPEED) | OF(PATH)),
    NUMBER(struct manoeuvre, offset_m, -50, 50, .required = true, .kinds = OF(LANE_CHANGE)),
    NUMBER(struct manoeuvre, duration_s, 0.1, 60, .kinds = OF(LANE_CHANGE)),
    OTHER("path", .kinds = OF(PATH)));
#undef OF

MEMBERS(agent,
    OTHER("id"),
    CHOICE(struct agent, kind, agent_kind_names, AGENT_KIND_COUNT, .required = true),
    NUMBER(struct agent, length_m, 0.05, 50),
    NUMBER(struct agent, width_m, 0.05, 50),
    NUMBER(struct agent, height_m, 0.01, 20),
    OTHER("pose"),
    NUMBER(struct agent, speed_mps, 0, 150),
    FLAG(struct agent, hidden),
    FLAG(struct agent, low),
    CHOICE(struct agent, behaviour, behaviour_names, BEHAVIOUR_COUNT),
    OTHER("idm"),
    OTHER("trajectory"),
    OTHER("manoeuvres"),
    OTHER("route"));

#define OF(kind) (1u << INTERVENE_##kind)
MEMBERS(intervention,
    CHOICE(struct intervention, kind, intervention_names, INTERVENE_COUNT, .required = true),
    OTHER("tick"),
    OTHER("agent", .kinds = OF(AGENT_BRAKE) | OF(AGENT_CUT_IN) | OF(AGENT_APPEAR)),
    NUMBER(struct intervention, decel_mps2, 0.1, 12, .required = true, .kinds = OF(EGO_BRAKE) | OF(AGENT_BRAKE)),
    NUMBER(struct intervention, offset_m, -20, 20, .required = true, .kinds = OF(EGO_SWERVE)),
    NUMBER(struct intervention, duration_s, 0.1, 60, .kinds = OF(EGO_SWERVE) | OF(AGENT_CUT_IN)),
    NUMBER(struct intervention, duration_s, 0.1, 600, .required = true, .kinds = OF(STACK_DROPOUT)),
    NUMBER(struct intervention, latency_ms, 0, 10000, .required = true, .kinds = OF(STACK_LATENCY)),
    NUMBER(struct intervention, jitter_ms, 0, 10000, .kinds = OF(STACK_LATENCY)),
    OTHER("sensors", .kinds = OF(STACK_DROPOUT)),
    OTHER("conditions", .kinds = OF(CONDITIONS)),
    OTHER("actions", .kinds = OF(EGO_ACTIONS)),
    OTHER("skipped_steps", .kinds = OF(EGO_ACTIONS)),
    OTHER("signal", .kinds = OF(SIGNAL)),
    CHOICE(struct intervention, light, traffic_light_names, TRAFFIC_LIGHT_COUNT, .required = true, .kinds = OF(SIGNAL)),
    CHOICE_AS("model", struct intervention, traffic, traffic_model_names, TRAFFIC_MODEL_COUNT, .required = true, .kinds = OF(TRAFFIC)),
    OTHER("draw", .kinds = OF(TRAFFIC)));
#undef OF
/* clang-format on */

static bool has(const struct member *member, uint32_t kinds)
{
    return member->kinds == 0 || (member->kinds & kinds) != 0;
}

enum status members_begin(const struct json_cursor *cursor, const struct member_list *list,
                          uint32_t kinds, struct error *error)
{
    const char *keys[MEMBERS_MAX + 1];
    size_t count = 0;
    CHECK(list->count <= MEMBERS_MAX);
    for (size_t i = 0; i < list->count; i++) {
        const struct member *member = &list->members[i];
        bool again = count > 0 && strcmp(keys[count - 1], member->name) == 0;
        if (has(member, kinds) && !again) {
            keys[count++] = member->name;
        }
    }
    keys[count] = NULL;
    return json_object_begin(cursor, keys, error);
}

static void put_fallback(const struct member *member, void *place)
{
    switch (member->kind) {
    case MEMBER_NUMBER:
    case MEMBER_ANGLE:
        *(double *)place = member->fallback;
        break;
    case MEMBER_FLAG:
        *(bool *)place = member->fallback != 0.0;
        break;
    case MEMBER_CHOICE:
    case MEMBER_INDEX:
        *(int *)place = (int)member->fallback;
        break;
    case MEMBER_OTHER:
        break;
    }
}

static enum status decode(const struct json_cursor *cursor, const struct member *member,
                          void *record, struct error *error)
{
    void *place = (char *)record + member->offset;
    const char *name = member->name;
    if (member->optional) {
        put_fallback(member, place);
    }
    switch (member->kind) {
    case MEMBER_NUMBER:
        return json_member_number(cursor, name, member->required, member->min, member->max, place,
                                  error);
    case MEMBER_ANGLE:
        return json_member_angle(cursor, name, member->required, place, error);
    case MEMBER_FLAG:
        return json_member_bool(cursor, name, member->required, place, error);
    case MEMBER_CHOICE:
        return json_member_choice(cursor, name, member->required, member->names, member->name_count,
                                  place, error);
    case MEMBER_INDEX:
    case MEMBER_OTHER:
        break;
    }
    return STATUS_OK;
}

enum status members_decode(const struct json_cursor *cursor, const struct member_list *list,
                           uint32_t kinds, void *record, struct error *error)
{
    for (size_t i = 0; i < list->count; i++) {
        if (has(&list->members[i], kinds)) {
            TRY(decode(cursor, &list->members[i], record, error));
        }
    }
    return STATUS_OK;
}

enum status members_read(const struct json_cursor *cursor, const struct member_list *list,
                         void *record, struct error *error)
{
    TRY(members_begin(cursor, list, MEMBER_KINDS_ALL, error));
    return members_decode(cursor, list, MEMBER_KINDS_ALL, record, error);
}

enum status member_decode(const struct json_cursor *cursor, const struct member_list *list,
                          const char *name, void *record, struct error *error)
{
    size_t i = 0;
    while (strcmp(list->members[i].name, name) != 0) {
        i++;
        CHECK(i < list->count);
    }
    return decode(cursor, &list->members[i], record, error);
}

/* A number, or that of a choice or an index, or 1 of a flag that is true. */
static double number_of(const struct member *member, const void *record)
{
    const void *place = (const char *)record + member->offset;
    return member->kind == MEMBER_FLAG ? (double)*(const bool *)place
           : member->kind == MEMBER_CHOICE || member->kind == MEMBER_INDEX
               ? (double)*(const int *)place
               : *(const double *)place;
}

static json_t *encode(const struct member *member, double number)
{
    return member->kind == MEMBER_FLAG     ? json_boolean(number != 0.0)
           : member->kind == MEMBER_CHOICE ? json_string(member->names[(int)number])
           : member->kind == MEMBER_INDEX  ? json_integer((int)number)
                                           : json_real(number);
}

void members_encode(struct json_builder *builder, json_t *object, const struct member_list *list,
                    uint32_t kinds, const void *record)
{
    for (size_t i = 0; i < list->count; i++) {
        const struct member *member = &list->members[i];
        if (!has(member, kinds) || member->kind == MEMBER_OTHER) {
            continue;
        }
        double number = number_of(member, record);
        if (!member->optional || (number != member->fallback && isfinite(number))) {
            build_member(builder, object, member->name, encode(member, number));
        }
    }
}

json_t *members_object(struct json_builder *builder, const struct member_list *list,
                       const void *record)
{
    json_t *object = json_object();
    members_encode(builder, object, list, MEMBER_KINDS_ALL, record);
    return object;
}
