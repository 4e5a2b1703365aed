/*
 * Encodes a storyboard; decode_storyboard() is its inverse. Members that have their defaults are
 * not written.
 */
#include "schemas/storyboard/storyboard_fields.h"
#include "schemas/storyboard/storyboard_paths.h"

#include <math.h>
#include <string.h>

static json_t *encode_path(struct json_builder *builder, const struct story_path *path)
{
    json_t *kept = story_paths_encoded(builder->paths, path);
    if (kept != NULL) {
        return kept;
    }
    json_t *object = json_object();
    json_t *points = json_array();
    for (uint32_t i = 0; i < path->point_count; i++) {
        const struct story_point *p = &path->points[i];
        const double values[] = {p->s_m, p->x_m, p->y_m, p->heading_rad, p->t_s};
        json_t *row = json_array();
        for (size_t k = 0; k < (path->timed ? 5 : 4); k++) {
            build_element(builder, row, json_real(values[k]));
        }
        build_element(builder, points, row);
    }
    build_member(builder, object, "points", points);
    if (path->timed) {
        build_member(builder, object, "timed", json_true());
    }
    if (path->next >= 0) {
        build_member(builder, object, "next", json_integer(path->next));
        build_member(builder, object, "next_s_m", json_real(path->next_s_m));
        build_member(builder, object, "next_offset_m", json_real(path->next_offset_m));
    }
    return object;
}

static json_t *encode_indices(struct json_builder *builder, uint32_t count, const uint32_t *indices)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        build_element(builder, list, json_integer(indices[i]));
    }
    return list;
}

static json_t *encode_trigger(struct json_builder *builder, const struct story_trigger *trigger)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < trigger->count; i++) {
        build_element(
            builder, list,
            encode_indices(builder, trigger->groups[i].count, trigger->groups[i].conditions));
    }
    return list;
}

static json_t *encode_event(struct json_builder *builder, const struct story_event *event)
{
    json_t *object = members_object(builder, &story_event_members, event);
    build_member(builder, object, "group", json_integer(event->group));
    build_member(builder, object, "repeats", json_integer(event->repeats));
    build_member(builder, object, "start", encode_trigger(builder, &event->start));
    build_member(builder, object, "stop", encode_trigger(builder, &event->stop));
    build_member(builder, object, "actions",
                 encode_indices(builder, event->action_count, event->actions));
    return object;
}

static json_t *encode_story_action(struct json_builder *builder, const struct story_action *action)
{
    json_t *object = members_object(builder, &story_action_members, action);
    if (action->step_count > 0) {
        build_member(builder, object, "steps",
                     encode_points(builder, action->step_count, action->steps));
    }
    json_t *ways = action->way_count > 0 ? json_array() : NULL;
    for (uint32_t i = 0; i < action->way_count; i++) {
        const struct story_way *way = &action->ways[i];
        json_t *row = json_array();
        build_element(builder, row, json_real(way->from_s_m));
        build_element(builder, row, json_integer(way->path));
        build_element(builder, row, json_real(way->target_m));
        build_element(builder, ways, row);
    }
    if (action->way_count > 0) {
        build_member(builder, object, "ways", ways);
    }
    return object;
}

json_t *encode_storyboard(struct json_builder *builder, const struct scenario *scenario)
{
    const struct storyboard *board = scenario->storyboard;
    json_t *root = json_object();
    json_t *paths = json_array();
    json_t *actors = json_array();
    json_t *conditions = json_array();
    json_t *actions = json_array();
    json_t *events = json_array();
    for (uint32_t i = 0; i < board->path_count; i++) {
        build_element(builder, paths, encode_path(builder, &board->paths[i]));
    }
    for (uint32_t i = 0; i < board->actor_count; i++) {
        const struct story_actor *actor = &board->actors[i];
        json_t *object = members_object(builder, &story_actor_members, actor);
        build_member(builder, object, "path", json_integer(actor->path));
        if (actor->agent != STORY_EGO) {
            build_member(builder, object, "agent", json_string(scenario->agents[actor->agent].id));
        }
        build_element(builder, actors, object);
    }
    for (uint32_t i = 0; i < board->condition_count; i++) {
        build_element(builder, conditions,
                      members_object(builder, &story_condition_members, &board->conditions[i]));
    }
    for (uint32_t i = 0; i < board->action_count; i++) {
        build_element(builder, actions, encode_story_action(builder, &board->actions[i]));
    }
    for (uint32_t i = 0; i < board->event_count; i++) {
        build_element(builder, events, encode_event(builder, &board->events[i]));
    }
    build_member(builder, root, "paths", paths);
    build_member(builder, root, "actors", actors);
    build_member(builder, root, "conditions", conditions);
    build_member(builder, root, "actions", actions);
    build_member(builder, root, "events", events);
    json_t *variables = board->variable_count > 0 ? json_array() : NULL;
    for (uint32_t i = 0; i < board->variable_count; i++) {
        build_element(builder, variables, json_real(board->variables[i]));
    }
    if (variables != NULL) {
        build_member(builder, root, "variables", variables);
    }
    return root;
}
