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
    struct json_builder builder = {0};
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
    build_member(&builder, root, "map", encode_map(&builder, &scenario->map));
    build_member(&builder, root, "ego", encode_ego(&builder, &scenario->map, &scenario->ego));
    build_member(&builder, root, "agents", encode_agents(&builder, scenario));
    if (scenario->storyboard != NULL) {
        build_member(&builder, root, "storyboard", encode_storyboard(&builder, scenario));
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
