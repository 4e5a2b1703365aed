/*
 * Scenario decoding: agents with their behaviours, and branches with their interventions.
 *
 * Which members are legal depends on the kind of manoeuvre or intervention, so that a duration on
 * a manoeuvre that has none is an error instead of a surprise.
 */
#include "schemas/scenario_parts.h"

enum { KEYS_MAX = 8 };

const struct agent_size agent_sizes[AGENT_KIND_COUNT] = {
    [AGENT_CAR] = {4.5, 1.8, 1.5},         [AGENT_VAN] = {5.5, 2.0, 2.3},
    [AGENT_TRUCK] = {10.0, 2.5, 3.5},      [AGENT_BUS] = {12.0, 2.55, 3.2},
    [AGENT_MOTORCYCLE] = {2.2, 0.8, 1.5},  [AGENT_CYCLIST] = {1.8, 0.6, 1.7},
    [AGENT_PEDESTRIAN] = {0.6, 0.6, 1.75}, [AGENT_ANIMAL] = {1.8, 0.6, 1.4},
    [AGENT_OBJECT] = {1.0, 1.0, 0.5},
};

/* 50 km/h, for an IDM agent that says nothing about its speed. */
static const double DESIRED_SPEED_MPS = 50.0 / 3.6;

static double default_desired_speed(const struct agent *agent)
{
    double fastest = agent->speed_mps;
    for (uint32_t i = 0; i < agent->trajectory.point_count; i++) {
        double speed = agent->trajectory.points[i].speed_mps;
        fastest = speed > fastest ? speed : fastest;
    }
    return fastest >= 0.1 ? fastest : DESIRED_SPEED_MPS;
}

static enum status decode_idm(const struct json_cursor *cursor, struct agent *agent,
                              struct error *error)
{
    static const char *const keys[] = {"desired_speed_mps", "time_headway_s",     "min_gap_m",
                                       "accel_max_mps2",    "decel_comfort_mps2", "politeness",
                                       "lane_changes",      "sees_ego",           NULL};
    struct idm *idm = &agent->idm;
    *idm = (struct idm){
        .desired_speed_mps = default_desired_speed(agent),
        .time_headway_s = 1.5,
        .min_gap_m = 2.0,
        .accel_max_mps2 = 1.5,
        .decel_comfort_mps2 = 2.0,
        .politeness = 0.3,
        .lane_changes = true,
        .sees_ego = true,
    };
    if (!json_cursor_present(cursor)) {
        return STATUS_OK;
    }
    if (agent->behaviour != BEHAVIOUR_IDM && agent->behaviour != BEHAVIOUR_REPLAY) {
        return json_fail(cursor, error,
                         "expected no driver model where the behaviour is \"%s\", found one",
                         behaviour_names[agent->behaviour]);
    }
    const struct {
        double min, max;
        double *value;
    } numbers[] = {
        {0.1, 100, &idm->desired_speed_mps},
        {0, 10, &idm->time_headway_s},
        {0, 50, &idm->min_gap_m},
        {0.1, 10, &idm->accel_max_mps2},
        {0.1, 10, &idm->decel_comfort_mps2},
        {0, 1, &idm->politeness},
    };
    TRY(json_object_begin(cursor, keys, error));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        TRY(json_member_number(cursor, keys[i], false, numbers[i].min, numbers[i].max,
                               numbers[i].value, error));
    }
    TRY(json_member_bool(cursor, "lane_changes", false, &idm->lane_changes, error));
    return json_member_bool(cursor, "sees_ego", false, &idm->sees_ego, error);
}

static enum status decode_trigger(const struct json_cursor *cursor, struct trigger *out,
                                  struct error *error)
{
    int kind;
    TRY(json_member_choice(cursor, "when", true, trigger_names, TRIGGER_COUNT, &kind, error));
    double min = kind == TRIGGER_EGO_PASSED ? -1000.0 : 0.0;
    TRY(json_member_number(cursor, "value", true, min, 10000.0, &out->value, error));
    out->kind = (enum trigger_kind)kind;
    return STATUS_OK;
}

static enum status decode_manoeuvre(const struct json_cursor *cursor,
                                    struct scenario_decoder *decoder, void *element)
{
    struct manoeuvre *out = element;
    static const char *const any[] = {"when",     "value",      "do",   "speed_mps", "rate_mps2",
                                      "offset_m", "duration_s", "path", NULL};
    static const char *const keys[MANOEUVRE_COUNT][KEYS_MAX] = {
        [MANOEUVRE_SPEED] = {"when", "value", "do", "speed_mps", "rate_mps2"},
        [MANOEUVRE_LANE_CHANGE] = {"when", "value", "do", "offset_m", "duration_s"},
        [MANOEUVRE_PATH] = {"when", "value", "do", "path", "speed_mps", "rate_mps2"},
        [MANOEUVRE_APPEAR] = {"when", "value", "do"},
        [MANOEUVRE_VANISH] = {"when", "value", "do"},
    };
    struct error *error = decoder->error;
    int kind;
    TRY(json_object_begin(cursor, any, error));
    TRY(json_member_choice(cursor, "do", true, manoeuvre_names, MANOEUVRE_COUNT, &kind, error));
    TRY(json_object_begin(cursor, keys[kind], error));
    TRY(decode_trigger(cursor, &out->trigger, error));
    out->kind = (enum manoeuvre_kind)kind;
    if (kind == MANOEUVRE_SPEED || kind == MANOEUVRE_PATH) {
        out->rate_mps2 = 2.0;
        TRY(json_member_number(cursor, "speed_mps", true, 0.0, 100.0, &out->speed_mps, error));
        TRY(json_member_number(cursor, "rate_mps2", false, 0.01, 50.0, &out->rate_mps2, error));
    }
    if (kind == MANOEUVRE_LANE_CHANGE) {
        out->duration_s = 3.0;
        TRY(json_member_number(cursor, "offset_m", true, -50.0, 50.0, &out->offset_m, error));
        TRY(json_member_number(cursor, "duration_s", false, 0.1, 60.0, &out->duration_s, error));
    }
    if (kind == MANOEUVRE_PATH) {
        struct json_cursor path = json_cursor_member(cursor, "path");
        TRY(decode_points(&path, 2, LIMIT_TRAJECTORY_POINTS, decoder, &out->path_count,
                          &out->path));
    }
    return STATUS_OK;
}

static enum status decode_manoeuvres(const struct json_cursor *cursor,
                                     struct scenario_decoder *decoder, struct agent *out)
{
    size_t count = 0;
    if (json_cursor_present(cursor)) {
        TRY(json_array_begin(cursor, 0, LIMIT_MANOEUVRES, &count, decoder->error));
    }
    if (count > 0 && out->behaviour != BEHAVIOUR_SCRIPT) {
        return json_fail(cursor, decoder->error,
                         "expected manoeuvres only where the behaviour is \"script\", found \"%s\"",
                         behaviour_names[out->behaviour]);
    }
    return decode_list(cursor, 0, LIMIT_MANOEUVRES, decoder, decode_manoeuvre,
                       sizeof *out->manoeuvres, &out->manoeuvres, &out->manoeuvre_count);
}

/* The logged trajectory and what follows from it: pose and speed at its first point. A moving agent
 * of any behaviour may have one; the replay world follows it. */
static enum status decode_motion(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                                 struct agent *out)
{
    struct error *error = decoder->error;
    struct json_cursor trajectory = json_cursor_member(cursor, "trajectory");
    struct json_cursor pose = json_cursor_member(cursor, "pose");
    bool logged = json_cursor_present(&trajectory);
    if (!logged && out->behaviour == BEHAVIOUR_REPLAY) {
        return json_fail(&trajectory, error,
                         "expected a trajectory, because the behaviour is \"replay\", found "
                         "nothing");
    }
    if (logged && out->behaviour == BEHAVIOUR_STATIC) {
        return json_fail(&trajectory, error,
                         "expected no trajectory where the behaviour is \"static\", found one");
    }
    TRY(decode_trajectory(&trajectory, decoder, &out->trajectory));
    if (logged) {
        const struct trajectory_point *first = &out->trajectory.points[0];
        out->pose = (struct pose){first->x_m, first->y_m, first->heading_rad};
        out->speed_mps = first->speed_mps;
    }
    if (json_cursor_present(&pose) || !logged) {
        TRY(decode_pose(&pose, &out->pose, error));
    }
    return json_member_number(cursor, "speed_mps", false, 0.0, 150.0, &out->speed_mps, error);
}

static enum status decode_size(const struct json_cursor *cursor, struct agent *out,
                               struct error *error)
{
    const struct agent_size *size = &agent_sizes[out->kind];
    out->length_m = size->length_m;
    out->width_m = size->width_m;
    out->height_m = size->height_m;
    TRY(json_member_number(cursor, "length_m", false, 0.05, 50.0, &out->length_m, error));
    TRY(json_member_number(cursor, "width_m", false, 0.05, 50.0, &out->width_m, error));
    return json_member_number(cursor, "height_m", false, 0.01, 20.0, &out->height_m, error);
}

static enum status decode_agent(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                                void *element)
{
    static const char *const keys[] = {"id",   "kind",       "length_m",   "width_m", "height_m",
                                       "pose", "speed_mps",  "hidden",     "low",     "behaviour",
                                       "idm",  "trajectory", "manoeuvres", "route",   NULL};
    struct agent *out = element;
    struct error *error = decoder->error;
    int kind;
    int behaviour = BEHAVIOUR_STATIC;
    TRY(json_object_begin(cursor, keys, error));
    TRY(decode_id(cursor, "id", true, out->id, error));
    TRY(json_member_choice(cursor, "kind", true, agent_kind_names, AGENT_KIND_COUNT, &kind, error));
    TRY(json_member_choice(cursor, "behaviour", false, behaviour_names, BEHAVIOUR_COUNT, &behaviour,
                           error));
    out->kind = (enum agent_kind)kind;
    out->behaviour = (enum behaviour_kind)behaviour;
    TRY(decode_size(cursor, out, error));
    TRY(decode_motion(cursor, decoder, out));
    TRY(json_member_bool(cursor, "hidden", false, &out->hidden, error));
    TRY(json_member_bool(cursor, "low", false, &out->low, error));
    struct json_cursor part = json_cursor_member(cursor, "idm");
    TRY(decode_idm(&part, out, error));
    part = json_cursor_member(cursor, "manoeuvres");
    TRY(decode_manoeuvres(&part, decoder, out));
    part = json_cursor_member(cursor, "route");
    TRY(decode_route(&part, 0, decoder, &out->route_count, &out->route));
    if (out->route_count > 0 && out->behaviour != BEHAVIOUR_IDM) {
        return json_fail(&part, error,
                         "expected a route only where the behaviour is \"idm\", found \"%s\"",
                         behaviour_names[out->behaviour]);
    }
    return STATUS_OK;
}

enum status decode_agents(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                          struct scenario *out)
{
    TRY(decode_list(cursor, 0, LIMIT_AGENTS, decoder, decode_agent, sizeof *out->agents,
                    &out->agents, &out->agent_count));
    return id_index_build(&decoder->agents, cursor, decoder, out->agents, out->agent_count,
                          sizeof *out->agents, offsetof(struct agent, id));
}

/* ---- branches ---- */

static const char *const intervention_keys[INTERVENE_COUNT][KEYS_MAX] = {
    [INTERVENE_EGO_BRAKE] = {"kind", "tick", "decel_mps2"},
    [INTERVENE_EGO_SWERVE] = {"kind", "tick", "offset_m", "duration_s"},
    [INTERVENE_EGO_MAINTAIN] = {"kind", "tick"},
    [INTERVENE_EGO_ACTIONS] = {"kind", "tick", "actions"},
    [INTERVENE_EGO_PLANNER] = {"kind", "tick"},
    [INTERVENE_AGENT_BRAKE] = {"kind", "tick", "agent", "decel_mps2"},
    [INTERVENE_AGENT_CUT_IN] = {"kind", "tick", "agent", "duration_s"},
    [INTERVENE_AGENT_APPEAR] = {"kind", "tick", "agent"},
    [INTERVENE_CONDITIONS] = {"kind", "tick", "conditions"},
    [INTERVENE_STACK_LATENCY] = {"kind", "tick", "latency_ms", "jitter_ms"},
    [INTERVENE_STACK_DROPOUT] = {"kind", "tick", "sensors", "duration_s"},
    [INTERVENE_SIGNAL] = {"kind", "tick", "signal", "light"},
};

static enum status decode_action(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                                 void *element)
{
    struct action *out = element;
    size_t columns;
    TRY(json_array_begin(cursor, 2, 2, &columns, decoder->error));
    struct json_cursor accel = json_cursor_element(cursor, 0);
    struct json_cursor steer = json_cursor_element(cursor, 1);
    TRY(json_value_number(&accel, -20.0, 20.0, &out->accel_mps2, decoder->error));
    return json_value_number(&steer, -1.5, 1.5, &out->steer_rad, decoder->error);
}

static enum status decode_sensors(const struct json_cursor *cursor, uint32_t *out,
                                  struct error *error)
{
    size_t count;
    uint32_t mask = 0;
    TRY(json_array_begin(cursor, 1, SENSOR_KIND_COUNT, &count, error));
    for (size_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(cursor, i);
        int sensor;
        TRY(json_value_choice(&element, sensor_names, SENSOR_KIND_COUNT, &sensor, error));
        if ((mask & (1u << sensor)) != 0) {
            return json_fail(&element, error, "expected each sensor once, found \"%s\" again",
                             sensor_names[sensor]);
        }
        mask |= 1u << sensor;
    }
    *out = mask;
    return STATUS_OK;
}

static enum status decode_agent_reference(const struct json_cursor *cursor,
                                          struct scenario_decoder *decoder,
                                          const struct scenario *scenario, struct intervention *out)
{
    struct json_cursor member = json_cursor_member(cursor, "agent");
    uint32_t index;
    TRY(id_index_find(&decoder->agents, &member, "an agent", &index, decoder->error));
    if (out->kind == INTERVENE_AGENT_APPEAR && !scenario->agents[index].hidden) {
        return json_fail(&member, decoder->error,
                         "expected an agent with \"hidden\": true, found \"%s\", which is there "
                         "from the start",
                         scenario->agents[index].id);
    }
    out->agent = (int32_t)index;
    return STATUS_OK;
}

/* The members that belong to one kind; which are legal has been checked. */
static enum status decode_intervention_members(const struct json_cursor *cursor,
                                               struct scenario_decoder *decoder,
                                               const struct scenario *scenario,
                                               struct intervention *out)
{
    struct error *error = decoder->error;
    struct json_cursor part;
    switch (out->kind) {
    case INTERVENE_EGO_BRAKE:
        return json_member_number(cursor, "decel_mps2", true, 0.1, 12.0, &out->decel_mps2, error);
    case INTERVENE_EGO_SWERVE:
        out->duration_s = 2.0;
        TRY(json_member_number(cursor, "offset_m", true, -20.0, 20.0, &out->offset_m, error));
        return json_member_number(cursor, "duration_s", false, 0.1, 60.0, &out->duration_s, error);
    case INTERVENE_EGO_ACTIONS:
        part = json_cursor_member(cursor, "actions");
        return decode_list(&part, 1, LIMIT_ACTIONS, decoder, decode_action, sizeof *out->actions,
                           &out->actions, &out->action_count);
    case INTERVENE_AGENT_BRAKE:
        TRY(decode_agent_reference(cursor, decoder, scenario, out));
        return json_member_number(cursor, "decel_mps2", true, 0.1, 12.0, &out->decel_mps2, error);
    case INTERVENE_AGENT_CUT_IN:
        out->duration_s = 3.0;
        TRY(decode_agent_reference(cursor, decoder, scenario, out));
        return json_member_number(cursor, "duration_s", false, 0.1, 60.0, &out->duration_s, error);
    case INTERVENE_AGENT_APPEAR:
        return decode_agent_reference(cursor, decoder, scenario, out);
    case INTERVENE_CONDITIONS:
        part = json_cursor_member(cursor, "conditions");
        return decode_conditions(&part, &scenario->conditions, &out->conditions, error);
    case INTERVENE_STACK_LATENCY:
        TRY(json_member_number(cursor, "latency_ms", true, 0.0, 10000.0, &out->latency_ms, error));
        return json_member_number(cursor, "jitter_ms", false, 0.0, 10000.0, &out->jitter_ms, error);
    case INTERVENE_STACK_DROPOUT:
        part = json_cursor_member(cursor, "sensors");
        TRY(decode_sensors(&part, &out->sensors, error));
        return json_member_number(cursor, "duration_s", true, 0.1, 600.0, &out->duration_s, error);
    case INTERVENE_SIGNAL:
        TRY(decode_signal_members(cursor, decoder, out));
        if (scenario->map.signals[out->signal].sign != TRAFFIC_SIGN_NONE) {
            return json_fail(cursor, error, "expected a traffic light, found the sign \"%s\"",
                             scenario->map.signals[out->signal].id);
        }
        return STATUS_OK;
    default:
        return STATUS_OK;
    }
}

/* first_tick: the tick of the intervention before this one, or the fork. */
static enum status decode_intervention(const struct json_cursor *cursor,
                                       struct scenario_decoder *decoder,
                                       const struct scenario *scenario, uint32_t at_tick,
                                       uint32_t first_tick, struct intervention *out)
{
    static const char *const any[] = {
        "kind",      "tick",    "agent",      "decel_mps2", "offset_m", "duration_s", "latency_ms",
        "jitter_ms", "sensors", "conditions", "actions",    "signal",   "light",      NULL};
    struct error *error = decoder->error;
    int64_t tick = at_tick;
    int kind;
    TRY(json_object_begin(cursor, any, error));
    TRY(json_member_choice(cursor, "kind", true, intervention_names, INTERVENE_COUNT, &kind,
                           error));
    TRY(json_object_begin(cursor, intervention_keys[kind], error));
    struct json_cursor member = json_cursor_member(cursor, "tick");
    if (json_cursor_present(&member)) {
        TRY(json_value_integer(&member, first_tick, (int64_t)scenario->horizon_ticks - 1, &tick,
                               error));
    } else if (first_tick > at_tick) {
        return json_fail(&member, error,
                         "expected a tick of %u or later, as the intervention before it has, found "
                         "nothing",
                         first_tick);
    }
    *out = (struct intervention){
        .kind = (enum intervention_kind)kind, .tick = (uint32_t)tick, .agent = -1};
    return decode_intervention_members(cursor, decoder, scenario, out);
}

static enum status decode_branch(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                                 void *record)
{
    static const char *const keys[] = {"id", "at_tick", "interventions", NULL};
    const struct scenario *scenario = decoder->scenario;
    struct branch *out = record;
    int64_t at_tick;
    size_t count;
    TRY(json_object_begin(cursor, keys, decoder->error));
    TRY(decode_id(cursor, "id", true, out->id, decoder->error));
    TRY(json_member_integer(cursor, "at_tick", true, 0, (int64_t)scenario->horizon_ticks - 1,
                            &at_tick, decoder->error));
    out->at_tick = (uint32_t)at_tick;
    struct json_cursor list = json_cursor_member(cursor, "interventions");
    TRY(json_array_begin(&list, 1, LIMIT_INTERVENTIONS, &count, decoder->error));
    out->interventions = decoder_alloc(decoder, &list, count, sizeof *out->interventions);
    if (out->interventions == NULL) {
        return STATUS_LIMIT;
    }
    uint32_t first_tick = out->at_tick;
    for (size_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(&list, i);
        TRY(decode_intervention(&element, decoder, scenario, out->at_tick, first_tick,
                                &out->interventions[i]));
        first_tick = out->interventions[i].tick;
    }
    out->intervention_count = (uint32_t)count;
    return STATUS_OK;
}

enum status decode_branches(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                            struct scenario *out)
{
    struct id_index ids = {0};
    TRY(decode_list(cursor, 0, LIMIT_BRANCHES, decoder, decode_branch, sizeof *out->branches,
                    &out->branches, &out->branch_count));
    return id_index_build(&ids, cursor, decoder, out->branches, out->branch_count,
                          sizeof *out->branches, offsetof(struct branch, id));
}
