/*
 * Scenario encoding: the record to its resolved document, every default written out, so that the
 * canonical text of two equal records is the same text. scenario_decode() is its inverse.
 */
#include "base/check.h"
#include "schemas/scenario_json.h"

#include "schemas/scenario_parts.h"

#include <math.h>

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
    json_t *object = json_object();
    build_member(builder, object, "x_m", json_real(pose.x_m));
    build_member(builder, object, "y_m", json_real(pose.y_m));
    build_member(builder, object, "heading_rad", json_real(pose.heading_rad));
    return object;
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
    json_t *object = json_object();
    build_member(builder, object, "weather", json_string(weather_names[conditions->weather]));
    build_member(builder, object, "light", json_string(light_names[conditions->light]));
    build_member(builder, object, "friction", json_real(conditions->friction));
    build_member(builder, object, "visibility_m", json_real(conditions->visibility_m));
    return object;
}

static void encode_goal_bounds(struct json_builder *builder, const struct goal_bounds *bounds,
                               json_t *goal)
{
    const struct {
        const char *key;
        double value;
    } numbers[] = {
        {"time_min_s", bounds->time_min_s},           {"time_max_s", bounds->time_max_s},
        {"speed_min_mps", bounds->speed_min_mps},     {"speed_max_mps", bounds->speed_max_mps},
        {"heading_min_rad", bounds->heading_min_rad}, {"heading_max_rad", bounds->heading_max_rad},
    };
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        if (!isnan(numbers[i].value)) {
            build_member(builder, goal, numbers[i].key, json_real(numbers[i].value));
        }
    }
}

static json_t *encode_ego(struct json_builder *builder, const struct map *map,
                          const struct ego *ego)
{
    json_t *object = json_object();
    build_member(builder, object, "pose", encode_pose(builder, ego->pose));
    build_member(builder, object, "speed_mps", json_real(ego->speed_mps));
    build_member(builder, object, "length_m", json_real(ego->length_m));
    build_member(builder, object, "width_m", json_real(ego->width_m));
    build_member(builder, object, "height_m", json_real(ego->height_m));
    build_member(builder, object, "wheelbase_m", json_real(ego->wheelbase_m));
    if (ego->route_count > 0) {
        build_member(builder, object, "route",
                     encode_lane_ids(builder, map, ego->route_count, ego->route));
    }
    if (ego->has_goal) {
        json_t *goal = json_object();
        build_member(builder, goal, "x_m", json_real(ego->goal.x_m));
        build_member(builder, goal, "y_m", json_real(ego->goal.y_m));
        build_member(builder, goal, "radius_m", json_real(ego->goal_radius_m));
        if (ego->goal_area.point_count > 0) {
            build_member(builder, goal, "area",
                         encode_points(builder, ego->goal_area.point_count, ego->goal_area.points));
        }
        encode_goal_bounds(builder, &ego->goal_bounds, goal);
        build_member(builder, object, "goal", goal);
    }
    /* Written where they say something, so that scenarios from before there were such members keep
     * their identity. */
    if (ego->dynamics != DYNAMICS_KINEMATIC) {
        build_member(builder, object, "dynamics", json_string(dynamics_names[ego->dynamics]));
    }
    if (ego->brake_delay_s > 0.0) {
        build_member(builder, object, "brake_delay_s", json_real(ego->brake_delay_s));
    }
    if (ego->steer_delay_s > 0.0) {
        build_member(builder, object, "steer_delay_s", json_real(ego->steer_delay_s));
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

static json_t *encode_criteria(struct json_builder *builder, const struct criteria *criteria)
{
    const struct {
        const char *name;
        double value;
    } numbers[] = {
        {"min_ttc_s", criteria->min_ttc_s},
        {"min_distance_m", criteria->min_distance_m},
        {"impact_speed_max_mps", criteria->impact_speed_max_mps},
        {"progress_min", criteria->progress_min},
        {"score_min", criteria->score_min},
        {"speed_max_mps", criteria->speed_max_mps},
        {"expected_progress_m", criteria->expected_progress_m},
        {"total_cost_max", criteria->total_cost_max},
    };
    json_t *object = json_object();
    build_member(builder, object, "no_at_fault_collision",
                 json_boolean(criteria->no_at_fault_collision));
    build_member(builder, object, "no_collision", json_boolean(criteria->no_collision));
    build_member(builder, object, "stay_drivable", json_boolean(criteria->stay_drivable));
    build_member(builder, object, "right_direction", json_boolean(criteria->right_direction));
    build_member(builder, object, "reach_goal", json_boolean(criteria->reach_goal));
    build_member(builder, object, "comfortable", json_boolean(criteria->comfortable));
    if (!criteria->obey_signals) { /* as with ego's later members */
        build_member(builder, object, "obey_signals", json_false());
    }
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (!isnan(numbers[i].value)) {
            build_member(builder, object, numbers[i].name, json_real(numbers[i].value));
        }
    }
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
    build_member(&builder, root, "criteria", encode_criteria(&builder, &scenario->criteria));
    build_member(&builder, root, "branches", encode_branches(&builder, scenario));
    if (builder.failed) {
        json_decref(root);
        return NULL;
    }
    return root;
}
