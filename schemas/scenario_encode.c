/*
 * Scenario encoding: the record to its resolved document, every default written out, so that the
 * canonical text of two equal records is the same text. scenario_decode() is its inverse.
 */
#include "base/check.h"
#include "schemas/scenario_json.h"

#include "schemas/scenario_members.h"

void build_member(struct json_builder *builder, json_t *object, const char *key, json_t *value)
{
    /* jansson drops its reference to value also when it fails, and refuses NULL. */
    if (json_object_set_new(object, key, value) != 0) {
        builder->failed = true;
    }
}

void build_element(struct json_builder *builder, json_t *array, json_t *value)
{
    if (json_array_append_new(array, value) != 0) {
        builder->failed = true;
    }
}

json_t *encode_row(struct json_builder *builder, const double *values, size_t count)
{
    json_t *row = json_array();
    for (size_t i = 0; i < count; i++) {
        build_element(builder, row, json_real(values[i]));
    }
    return row;
}

json_t *encode_point(struct json_builder *builder, struct vec2 point)
{
    const double values[] = {point.x_m, point.y_m};
    return encode_row(builder, values, 2);
}

json_t *encode_points(struct json_builder *builder, uint32_t count, const struct vec2 *points)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        build_element(builder, list, encode_point(builder, points[i]));
    }
    return list;
}

json_t *encode_pose(struct json_builder *builder, struct pose pose)
{
    return members_object(builder, &pose_members, &pose);
}

json_t *encode_trajectory(struct json_builder *builder, const struct trajectory *trajectory)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < trajectory->point_count; i++) {
        const struct trajectory_point *p = &trajectory->points[i];
        const double values[] = {p->t_s, p->x_m, p->y_m, p->heading_rad, p->speed_mps};
        build_element(builder, list, encode_row(builder, values, 5));
    }
    return list;
}

json_t *encode_lane_ids(struct json_builder *builder, const struct map *map, uint32_t count,
                        const uint32_t *lanes)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        build_element(builder, list, json_string(map->lanes[lanes[i]].id));
    }
    return list;
}

json_t *encode_conditions(struct json_builder *builder, const struct conditions *conditions)
{
    return members_object(builder, &conditions_members, conditions);
}

static json_t *encode_ego(struct json_builder *builder, const struct map *map,
                          const struct ego *ego)
{
    json_t *object = members_object(builder, &ego_members, ego);
    build_member(builder, object, "pose", encode_pose(builder, ego->pose));
    if (ego->route_count > 0) {
        build_member(builder, object, "route",
                     encode_lane_ids(builder, map, ego->route_count, ego->route));
    }
    if (ego->has_goal) {
        json_t *goal = members_object(builder, &goal_members, ego);
        if (ego->goal_area.point_count > 0) {
            build_member(builder, goal, "area",
                         encode_points(builder, ego->goal_area.point_count, ego->goal_area.points));
        }
        build_member(builder, object, "goal", goal);
    }
    if (ego->log.point_count > 0) {
        build_member(builder, object, "log", encode_trajectory(builder, &ego->log));
    }
    return object;
}

/* ---- map ---- */

static json_t *encode_width(struct json_builder *builder, const struct lane *lane)
{
    bool same = true;
    for (uint32_t i = 1; i < lane->point_count; i++) {
        same = same && lane->width_m[i] == lane->width_m[0];
    }
    if (same) {
        return json_real(lane->width_m[0]);
    }
    json_t *list = json_array();
    for (uint32_t i = 0; i < lane->point_count; i++) {
        build_element(builder, list, json_real(lane->width_m[i]));
    }
    return list;
}

static json_t *encode_neighbour(const struct map *map, int32_t lane)
{
    return lane < 0 ? json_null() : json_string(map->lanes[lane].id);
}

static json_t *encode_lane(struct json_builder *builder, const struct map *map,
                           const struct lane *lane)
{
    json_t *object = json_object();
    build_member(builder, object, "id", json_string(lane->id));
    members_encode(builder, object, &lane_members, MEMBER_KINDS_ALL, lane);
    build_member(builder, object, "centre_line",
                 encode_points(builder, lane->point_count, lane->centre_line));
    build_member(builder, object, "width_m", encode_width(builder, lane));
    build_member(builder, object, "left", encode_neighbour(map, lane->left));
    build_member(builder, object, "right", encode_neighbour(map, lane->right));
    build_member(builder, object, "successors",
                 encode_lane_ids(builder, map, lane->successor_count, lane->successors));
    return object;
}

static json_t *encode_polygons(struct json_builder *builder, uint32_t count,
                               const struct polygon *polygons)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        build_element(builder, list,
                      encode_points(builder, polygons[i].point_count, polygons[i].points));
    }
    return list;
}

static json_t *encode_map(struct json_builder *builder, const struct map *map)
{
    json_t *object = json_object();
    json_t *lanes = json_array();
    json_t *surfaces = json_array();
    for (uint32_t i = 0; i < map->lane_count; i++) {
        build_element(builder, lanes, encode_lane(builder, map, &map->lanes[i]));
    }
    for (uint32_t i = 0; i < map->surface_count; i++) {
        const struct surface *surface = &map->surfaces[i];
        json_t *entry = json_object();
        build_member(builder, entry, "kind", json_string(surface->kind));
        members_encode(builder, entry, &surface_members, MEMBER_KINDS_ALL, surface);
        build_member(builder, entry, "area",
                     encode_points(builder, surface->area.point_count, surface->area.points));
        build_element(builder, surfaces, entry);
    }
    if (map->id[0] != '\0') {
        build_member(builder, object, "id", json_string(map->id));
    }
    build_member(builder, object, "lanes", lanes);
    build_member(builder, object, "drivable",
                 encode_polygons(builder, map->drivable_count, map->drivable));
    build_member(builder, object, "crosswalks",
                 encode_polygons(builder, map->crosswalk_count, map->crosswalks));
    build_member(builder, object, "surfaces", surfaces);
    if (map->signal_count > 0) { /* so that maps from before there were any keep their identity */
        build_member(builder, object, "signals", encode_signals(builder, map));
    }
    return object;
}

/* ---- agents ---- */

static json_t *encode_manoeuvre(struct json_builder *builder, const struct manoeuvre *manoeuvre)
{
    json_t *object = json_object();
    members_encode(builder, object, &manoeuvre_members, 1u << manoeuvre->kind, manoeuvre);
    build_member(builder, object, "value", json_real(manoeuvre->trigger.value));
    if (manoeuvre->kind == MANOEUVRE_PATH) {
        build_member(builder, object, "path",
                     encode_points(builder, manoeuvre->path_count, manoeuvre->path));
    }
    return object;
}

static json_t *encode_agent(struct json_builder *builder, const struct map *map,
                            const struct agent *agent)
{
    json_t *object = json_object();
    build_member(builder, object, "id", json_string(agent->id));
    build_member(builder, object, "pose", encode_pose(builder, agent->pose));
    members_encode(builder, object, &agent_members, MEMBER_KINDS_ALL, agent);
    if (agent->behaviour == BEHAVIOUR_IDM || agent->behaviour == BEHAVIOUR_REPLAY) {
        build_member(builder, object, "idm", members_object(builder, &idm_members, &agent->idm));
    }
    if (agent->trajectory.point_count > 0) {
        build_member(builder, object, "trajectory", encode_trajectory(builder, &agent->trajectory));
    }
    if (agent->manoeuvre_count > 0) {
        json_t *list = json_array();
        for (uint32_t i = 0; i < agent->manoeuvre_count; i++) {
            build_element(builder, list, encode_manoeuvre(builder, &agent->manoeuvres[i]));
        }
        build_member(builder, object, "manoeuvres", list);
    }
    if (agent->route_count > 0) {
        build_member(builder, object, "route",
                     encode_lane_ids(builder, map, agent->route_count, agent->route));
    }
    return object;
}

/* ---- branches ---- */

static json_t *encode_actions(struct json_builder *builder, const struct intervention *intervention)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < intervention->action_count; i++) {
        const struct action *action = &intervention->actions[i];
        build_element(builder, list,
                      encode_point(builder, (struct vec2){action->accel_mps2, action->steer_rad}));
    }
    return list;
}

static json_t *encode_skipped(struct json_builder *builder, const struct intervention *intervention)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < intervention->skipped_count; i++) {
        build_element(builder, list, json_integer(intervention->skipped[i]));
    }
    return list;
}

static json_t *encode_sensors(struct json_builder *builder, uint32_t sensors)
{
    json_t *list = json_array();
    for (int i = 0; i < SENSOR_KIND_COUNT; i++) {
        if ((sensors & (1u << i)) != 0) {
            build_element(builder, list, json_string(sensor_names[i]));
        }
    }
    return list;
}

static json_t *encode_intervention(struct json_builder *builder, const struct scenario *scenario,
                                   const struct intervention *it)
{
    enum intervention_kind kind = it->kind;
    json_t *object = json_object();
    members_encode(builder, object, &intervention_members, 1u << kind, it);
    build_member(builder, object, "tick", json_integer(it->tick));
    if (kind == INTERVENE_AGENT_BRAKE || kind == INTERVENE_AGENT_CUT_IN ||
        kind == INTERVENE_AGENT_APPEAR) {
        build_member(builder, object, "agent", json_string(scenario->agents[it->agent].id));
    }
    if (kind == INTERVENE_EGO_ACTIONS) {
        build_member(builder, object, "actions", encode_actions(builder, it));
        if (it->skipped_count > 0) {
            build_member(builder, object, "skipped_steps", encode_skipped(builder, it));
        }
    }
    if (kind == INTERVENE_CONDITIONS) {
        build_member(builder, object, "conditions", encode_conditions(builder, &it->conditions));
    }
    if (kind == INTERVENE_STACK_DROPOUT) {
        build_member(builder, object, "sensors", encode_sensors(builder, it->sensors));
    }
    if (kind == INTERVENE_SIGNAL) {
        build_member(builder, object, "signal", json_string(scenario->map.signals[it->signal].id));
    }
    if (kind == INTERVENE_TRAFFIC) {
        build_member(builder, object, "draw", json_integer(it->draw));
    }
    return object;
}

static json_t *encode_branch(struct json_builder *builder, const struct scenario *scenario,
                             const struct branch *branch)
{
    json_t *object = json_object();
    json_t *list = json_array();
    for (uint32_t i = 0; i < branch->intervention_count; i++) {
        build_element(builder, list,
                      encode_intervention(builder, scenario, &branch->interventions[i]));
    }
    build_member(builder, object, "id", json_string(branch->id));
    build_member(builder, object, "at_tick", json_integer(branch->at_tick));
    build_member(builder, object, "interventions", list);
    return object;
}

/* ---- whole ---- */

static json_t *encode_slices(struct json_builder *builder, const struct slices *slices)
{
    json_t *object = json_object();
    for (int i = 0; i < SLICE_KIND_COUNT; i++) {
        build_member(builder, object, slice_names[i], json_string(slices->value[i]));
    }
    build_member(builder, object, "safety_critical", json_boolean(slices->safety_critical));
    return object;
}

static json_t *encode_agents(struct json_builder *builder, const struct scenario *scenario)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        build_element(builder, list, encode_agent(builder, &scenario->map, &scenario->agents[i]));
    }
    return list;
}

static json_t *encode_branches(struct json_builder *builder, const struct scenario *scenario)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < scenario->branch_count; i++) {
        build_element(builder, list, encode_branch(builder, scenario, &scenario->branches[i]));
    }
    return list;
}

json_t *scenario_encode(const struct scenario *scenario)
{
    return scenario_encode_on(scenario, &(const struct scenario_shared){0});
}

json_t *scenario_encode_on(const struct scenario *scenario, const struct scenario_shared *shared)
{
    struct json_builder builder = {.paths = shared->paths};
    json_t *root = json_object();
    build_member(&builder, root, "id", json_string(scenario->id));
    build_member(&builder, root, "title", json_string(scenario->title));
    build_member(&builder, root, "source", json_string(scenario->source));
    build_member(&builder, root, "prompt", json_string(scenario->prompt));
    if (scenario->invalid[0] != '\0') {
        build_member(&builder, root, "invalid", json_string(scenario->invalid));
    }
    if (scenario->links[TRACE_HAZARD].count + scenario->links[TRACE_CONDITION].count +
            scenario->links[TRACE_REQUIREMENT].count >
        0) {
        build_member(&builder, root, "traceability", encode_traceability(&builder, scenario));
    }
    build_member(&builder, root, "map",
                 shared->map_json != NULL ? json_incref(shared->map_json)
                                          : encode_map(&builder, &scenario->map));
    build_member(&builder, root, "ego", encode_ego(&builder, &scenario->map, &scenario->ego));
    build_member(&builder, root, "agents", encode_agents(&builder, scenario));
    if (scenario->storyboard != NULL) {
        build_member(&builder, root, "storyboard", encode_storyboard(&builder, scenario));
    }
    if (scenario->rig != NULL) {
        build_member(&builder, root, "rig", encode_rig(scenario->rig));
    }
    if (scenario->controls.log.count > 0) {
        build_member(&builder, root, "controls", encode_controls(&builder, &scenario->controls));
    }
    build_member(&builder, root, "conditions", encode_conditions(&builder, &scenario->conditions));
    build_member(&builder, root, "slices", encode_slices(&builder, &scenario->slices));
    build_member(&builder, root, "horizon_s", json_real(scenario->horizon_ticks / 10.0));
    build_member(&builder, root, "question", json_string(question_names[scenario->question]));
    build_member(&builder, root, "criteria",
                 members_object(&builder, &criteria_members, &scenario->criteria));
    build_member(&builder, root, "branches", encode_branches(&builder, scenario));
    if (builder.failed) {
        json_decref(root);
        return NULL;
    }
    return root;
}
