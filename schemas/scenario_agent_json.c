/*
 * Scenario decoding: agents with their behaviours, and branches with their interventions.
 *
 * Which members are legal depends on the kind of manoeuvre or intervention, so that a duration on
 * a manoeuvre that has none is an error instead of a surprise.
 */
#include "schemas/scenario_members.h"

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
    return members_read(cursor, &idm_members, idm, error);
}

static enum status decode_manoeuvre(const struct json_cursor *cursor,
                                    struct scenario_decoder *decoder, void *element)
{
    struct manoeuvre *out = element;
    struct error *error = decoder->error;
    TRY(members_begin(cursor, &manoeuvre_members, MEMBER_KINDS_ALL, error));
    TRY(member_decode(cursor, &manoeuvre_members, "do", out, error));
    uint32_t kinds = 1u << out->kind;
    bool moves = out->kind == MANOEUVRE_SPEED || out->kind == MANOEUVRE_PATH;
    out->rate_mps2 = moves ? 2.0 : 0.0;
    out->duration_s = out->kind == MANOEUVRE_LANE_CHANGE ? 3.0 : 0.0;
    TRY(members_begin(cursor, &manoeuvre_members, kinds, error));
    TRY(members_decode(cursor, &manoeuvre_members, kinds, out, error));
    double least = out->trigger.kind == TRIGGER_EGO_PASSED ? -1000.0 : 0.0;
    TRY(json_member_number(cursor, "value", true, least, 10000.0, &out->trigger.value, error));
    if (out->kind == MANOEUVRE_PATH) {
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
    return json_cursor_present(&pose) || !logged ? decode_pose(&pose, &out->pose, error)
                                                 : STATUS_OK;
}

static enum status decode_agent(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                                void *element)
{
    struct agent *out = element;
    struct error *error = decoder->error;
    TRY(members_begin(cursor, &agent_members, MEMBER_KINDS_ALL, error));
    TRY(decode_id(cursor, "id", true, out->id, error));
    out->behaviour = BEHAVIOUR_STATIC;
    TRY(member_decode(cursor, &agent_members, "kind", out, error));
    TRY(member_decode(cursor, &agent_members, "behaviour", out, error));
    const struct agent_size *size = &agent_sizes[out->kind];
    out->length_m = size->length_m;
    out->width_m = size->width_m;
    out->height_m = size->height_m;
    TRY(decode_motion(cursor, decoder, out));
    TRY(members_decode(cursor, &agent_members, MEMBER_KINDS_ALL, out, error));
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

static enum status decode_signal_reference(const struct json_cursor *cursor,
                                           struct scenario_decoder *decoder,
                                           const struct scenario *scenario,
                                           struct intervention *out)
{
    struct json_cursor member = json_cursor_member(cursor, "signal");
    TRY(id_index_find(&decoder->signals, &member, "a signal", &out->signal, decoder->error));
    const struct traffic_signal *signal = &scenario->map.signals[out->signal];
    return signal->sign == TRAFFIC_SIGN_NONE
               ? STATUS_OK
               : json_fail(cursor, decoder->error,
                           "expected a traffic light, found the sign \"%s\"", signal->id);
}

static enum status decode_skipped_steps(const struct json_cursor *cursor,
                                        struct scenario_decoder *decoder, void *record)
{
    int64_t steps;
    TRY(json_value_integer(cursor, 0, LIMIT_SAMPLER_STEPS, &steps, decoder->error));
    *(uint8_t *)record = (uint8_t)steps;
    return STATUS_OK;
}

static enum status decode_draw(const struct json_cursor *cursor, uint32_t *out, struct error *error)
{
    int64_t draw = 0;
    struct json_cursor member = json_cursor_member(cursor, "draw");
    if (json_cursor_present(&member)) {
        TRY(json_value_integer(&member, 0, UINT32_MAX, &draw, error));
    }
    *out = (uint32_t)draw;
    return STATUS_OK;
}

/* The members of one kind that no row reads. */
static enum status decode_intervention_others(const struct json_cursor *cursor,
                                              struct scenario_decoder *decoder,
                                              const struct scenario *scenario,
                                              struct intervention *out)
{
    struct json_cursor part;
    switch (out->kind) {
    case INTERVENE_EGO_ACTIONS:
        part = json_cursor_member(cursor, "actions");
        TRY(decode_list(&part, 1, LIMIT_ACTIONS, decoder, decode_action, sizeof *out->actions,
                        &out->actions, &out->action_count));
        part = json_cursor_member(cursor, "skipped_steps");
        return decode_list(&part, 0, out->action_count, decoder, decode_skipped_steps,
                           sizeof *out->skipped, &out->skipped, &out->skipped_count);
    case INTERVENE_AGENT_BRAKE:
    case INTERVENE_AGENT_CUT_IN:
    case INTERVENE_AGENT_APPEAR:
        return decode_agent_reference(cursor, decoder, scenario, out);
    case INTERVENE_CONDITIONS:
        part = json_cursor_member(cursor, "conditions");
        return decode_conditions(&part, &scenario->conditions, &out->conditions, decoder->error);
    case INTERVENE_STACK_DROPOUT:
        part = json_cursor_member(cursor, "sensors");
        return decode_sensors(&part, &out->sensors, decoder->error);
    case INTERVENE_SIGNAL:
        return decode_signal_reference(cursor, decoder, scenario, out);
    case INTERVENE_TRAFFIC:
        return decode_draw(cursor, &out->draw, decoder->error);
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
    struct error *error = decoder->error;
    int64_t tick = at_tick;
    *out = (struct intervention){.agent = -1};
    TRY(members_begin(cursor, &intervention_members, MEMBER_KINDS_ALL, error));
    TRY(member_decode(cursor, &intervention_members, "kind", out, error));
    uint32_t kinds = 1u << out->kind;
    TRY(members_begin(cursor, &intervention_members, kinds, error));
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
    out->tick = (uint32_t)tick;
    out->duration_s = out->kind == INTERVENE_EGO_SWERVE     ? 2.0
                      : out->kind == INTERVENE_AGENT_CUT_IN ? 3.0
                                                            : 0.0;
    TRY(members_decode(cursor, &intervention_members, kinds, out, error));
    return decode_intervention_others(cursor, decoder, scenario, out);
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
