/*
 * Decodes a scenario's storyboard. Every index is checked against what it refers to, every action
 * and condition against what its kind needs, so that the engine can run what was decoded as it is.
 */
#include "schemas/storyboard/storyboard_fields.h"
#include "schemas/storyboard/storyboard_paths.h"

#include <string.h>

/* Number of things of a kind that may be referred to. */
static uint32_t count_of(const struct storyboard *board, enum story_reference_kind kind)
{
    switch (kind) {
    case STORY_REFERS_PATH:
        return board->path_count;
    case STORY_REFERS_ACTOR:
        return board->actor_count;
    case STORY_REFERS_ACTION:
        return board->action_count;
    case STORY_REFERS_VARIABLE:
        return board->variable_count;
    case STORY_REFERS_EVENT:
        break;
    }
    return board->event_count;
}

static enum status decode_index(const struct json_cursor *cursor, uint32_t count, int32_t *out,
                                struct error *error)
{
    int64_t value;
    if (count == 0) {
        return json_fail(cursor, error,
                         "expected no reference, since there is nothing of the "
                         "kind, found one");
    }
    TRY(json_value_integer(cursor, 0, (int64_t)count - 1, &value, error));
    *out = (int32_t)value;
    return STATUS_OK;
}

static enum status decode_record(const struct json_cursor *cursor, const struct storyboard *board,
                                 const struct member_list *list, void *out, struct error *error)
{
    TRY(members_read(cursor, list, out, error));
    for (size_t i = 0; i < list->count; i++) {
        const struct member *member = &list->members[i];
        struct json_cursor at = json_cursor_member(cursor, member->name);
        if (member->kind == MEMBER_INDEX && json_cursor_present(&at)) {
            uint32_t count = count_of(board, (enum story_reference_kind)member->refers);
            TRY(decode_index(&at, count, (int32_t *)(void *)((char *)out + member->offset), error));
        }
    }
    return STATUS_OK;
}

/* ---- paths ---- */

static enum status decode_path_point(const struct json_cursor *cursor, size_t columns,
                                     struct story_point *out, struct error *error)
{
    double values[5] = {0};
    size_t count;
    TRY(json_array_begin(cursor, columns, columns, &count, error));
    for (size_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(cursor, i);
        double bound = i == 3 ? 1e4 : i == 4 ? 1e5 : 1e6;
        TRY(json_value_number(&element, -bound, bound, &values[i], error));
    }
    *out = (struct story_point){values[0], values[1], values[2], values[3], values[4]};
    return STATUS_OK;
}

static enum status decode_path_points(const struct json_cursor *cursor,
                                      struct scenario_decoder *decoder, struct story_path *path)
{
    size_t count;
    size_t columns = path->timed ? 5 : 4;
    TRY(json_array_begin(cursor, 2, LIMIT_STORY_PATH_POINTS, &count, decoder->error));
    path->points = decoder_alloc(decoder, cursor, count, sizeof *path->points);
    if (path->points == NULL) {
        return STATUS_LIMIT;
    }
    for (size_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(cursor, i);
        struct story_point *at = &path->points[i];
        TRY(decode_path_point(&element, columns, at, decoder->error));
        if (i > 0 && at->s_m < at[-1].s_m) {
            return json_fail(&element, decoder->error, "expected an s of at least %g m, found %g",
                             at[-1].s_m, at->s_m);
        }
        if (i > 0 && path->timed && at->t_s <= at[-1].t_s) {
            return json_fail(&element, decoder->error, "expected a time after %g s, found %g",
                             at[-1].t_s, at->t_s);
        }
    }
    path->point_count = (uint32_t)count;
    return STATUS_OK;
}

/* A path that was decoded before, whose successor this document has too: its points where they
 * last, else a copy. */
static enum status adopt_path(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                              const struct story_path *kept, struct story_path *out)
{
    *out = *kept;
    if (story_paths_last(decoder->shared->paths)) {
        return STATUS_OK;
    }
    struct story_point *points = decoder_alloc(decoder, cursor, kept->point_count, sizeof *points);
    if (points == NULL) {
        return STATUS_LIMIT;
    }
    memcpy(points, kept->points, kept->point_count * sizeof *points);
    out->points = points;
    return STATUS_OK;
}

static enum status decode_path(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                               void *element)
{
    static const char *const keys[] = {"points",   "timed",         "next",
                                       "next_s_m", "next_offset_m", NULL};
    struct story_path *out = element;
    const struct storyboard *board = decoder->scenario->storyboard;
    struct error *error = decoder->error;
    struct story_paths *shared = decoder->shared->paths;
    const struct story_path *kept = story_paths_decoded(shared, cursor->value);
    if (kept != NULL && kept->next < (int64_t)board->path_count) {
        return adopt_path(cursor, decoder, kept, out);
    }
    TRY(json_object_begin(cursor, keys, error));
    TRY(json_member_bool(cursor, "timed", false, &out->timed, error));
    struct json_cursor part = json_cursor_member(cursor, "next");
    out->next = -1;
    if (json_cursor_present(&part)) {
        TRY(decode_index(&part, board->path_count, &out->next, error));
    }
    TRY(json_member_number(cursor, "next_s_m", false, -1e6, 1e6, &out->next_s_m, error));
    TRY(json_member_number(cursor, "next_offset_m", false, -1e4, 1e4, &out->next_offset_m, error));
    part = json_cursor_member(cursor, "points");
    TRY(decode_path_points(&part, decoder, out));
    story_paths_keep(shared, out, cursor->value);
    return STATUS_OK;
}

/* ---- actors, conditions, actions ---- */

static enum status decode_actor(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                                void *element)
{
    struct story_actor *out = element;
    struct scenario *scenario = decoder->scenario;
    int32_t path = -1;
    TRY(decode_record(cursor, scenario->storyboard, &story_actor_members, out, decoder->error));
    struct json_cursor part = json_cursor_member(cursor, "path");
    TRY(decode_index(&part, scenario->storyboard->path_count, &path, decoder->error));
    out->path = (uint32_t)path;
    out->agent = STORY_EGO;
    part = json_cursor_member(cursor, "agent");
    if (json_cursor_present(&part)) {
        uint32_t agent;
        TRY(id_index_find(&decoder->agents, &part, "an agent", &agent, decoder->error));
        if (scenario->agents[agent].behaviour != BEHAVIOUR_STORYBOARD) {
            return json_fail(&part, decoder->error,
                             "expected an agent whose behaviour is \"storyboard\", found \"%s\"",
                             scenario->agents[agent].id);
        }
        out->agent = (int32_t)agent;
    }
    return STATUS_OK;
}

static enum status need(const struct json_cursor *cursor, const char *key, int32_t value,
                        struct error *error)
{
    if (value < 0) {
        struct json_cursor at = json_cursor_member(cursor, key);
        return json_fail(&at, error, "expected a number, which this kind needs, found nothing");
    }
    return STATUS_OK;
}

static enum status decode_condition(const struct json_cursor *cursor,
                                    struct scenario_decoder *decoder, void *element)
{
    struct story_condition *out = element;
    struct error *error = decoder->error;
    TRY(decode_record(cursor, decoder->scenario->storyboard, &story_condition_members, out, error));
    switch (out->kind) {
    case STORY_TIME:
    case STORY_CONSTANT:
        return STATUS_OK;
    case STORY_VARIABLE:
        return need(cursor, "variable", out->variable, error);
    case STORY_STATE:
        return out->action < 0 ? need(cursor, "event", out->event, error) : STATUS_OK;
    case STORY_RELATIVE_DISTANCE:
    case STORY_HEADWAY:
    case STORY_RELATIVE_SPEED:
    case STORY_COLLISION:
        TRY(out->type == STORY_OTHER ? need(cursor, "other", out->other, error) : STATUS_OK);
        break;
    case STORY_CLEARANCE:
        TRY(need(cursor, "other", out->other, error));
        break;
    default:
        break;
    }
    return need(cursor, "actor", out->actor, error);
}

static enum status decode_step(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                               void *element)
{
    struct vec2 *out = element;
    size_t count;
    TRY(json_array_begin(cursor, 2, 2, &count, decoder->error));
    struct json_cursor time = json_cursor_element(cursor, 0);
    struct json_cursor speed = json_cursor_element(cursor, 1);
    TRY(json_value_number(&time, 0.0, 1e5, &out->x_m, decoder->error));
    return json_value_number(&speed, -200.0, 200.0, &out->y_m, decoder->error);
}

static enum status decode_way(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                              void *element)
{
    struct story_way *out = element;
    size_t count;
    int64_t path = -1;
    int64_t last = (int64_t)decoder->scenario->storyboard->path_count - 1;
    TRY(json_array_begin(cursor, 3, 3, &count, decoder->error));
    struct json_cursor from = json_cursor_element(cursor, 0);
    struct json_cursor along = json_cursor_element(cursor, 1);
    struct json_cursor target = json_cursor_element(cursor, 2);
    TRY(json_value_number(&from, -1e6, 1e6, &out->from_s_m, decoder->error));
    TRY(json_value_integer(&along, -1, last, &path, decoder->error));
    out->path = (int32_t)path;
    return json_value_number(&target, -1e4, 1e4, &out->target_m, decoder->error);
}

static enum status decode_story_action(const struct json_cursor *cursor,
                                       struct scenario_decoder *decoder, void *element)
{
    struct story_action *out = element;
    struct error *error = decoder->error;
    struct storyboard *board = decoder->scenario->storyboard;
    TRY(decode_record(cursor, board, &story_action_members, out, error));
    struct json_cursor steps = json_cursor_member(cursor, "steps");
    TRY(decode_list(&steps, out->kind == STORY_DO_PROFILE, LIMIT_STORY_STEPS, decoder, decode_step,
                    sizeof *out->steps, &out->steps, &out->step_count));
    struct json_cursor ways = json_cursor_member(cursor, "ways");
    TRY(decode_list(&ways, 0, LIMIT_STORY_WAYS, decoder, decode_way, sizeof *out->ways, &out->ways,
                    &out->way_count));
    TRY(out->way_count > 0 ? need(cursor, "ways_on", out->ways_on, error) : STATUS_OK);
    if (out->kind == STORY_DO_WAIT || out->kind == STORY_DO_SET) {
        return out->kind == STORY_DO_SET ? need(cursor, "variable", out->variable, error)
                                         : STATUS_OK;
    }
    TRY(need(cursor, "actor", out->actor, error));
    if (board->actors[out->actor].agent == STORY_EGO) {
        struct json_cursor at = json_cursor_member(cursor, "actor");
        return json_fail(&at, error,
                         "expected an actor that is an agent, found ego, whom a "
                         "planner drives");
    }
    bool gap = out->kind == STORY_DO_GAP || out->kind == STORY_DO_SYNCHRONISE;
    bool path =
        out->kind == STORY_DO_FOLLOW || out->kind == STORY_DO_PLACE || out->kind == STORY_DO_PATH;
    if (out->relative && out->kind != STORY_DO_FOLLOW) {
        struct json_cursor at = json_cursor_member(cursor, "relative");
        return json_fail(&at, error, "expected it of an action that follows a path alone");
    }
    TRY(gap ? need(cursor, "other", out->other, error) : STATUS_OK);
    return path ? need(cursor, "path", out->path, error) : STATUS_OK;
}

/* ---- events ---- */

static enum status decode_indices(const struct json_cursor *cursor,
                                  struct scenario_decoder *decoder, uint32_t max, uint32_t limit,
                                  uint32_t *count, uint32_t **out)
{
    size_t found = 0;
    if (!json_cursor_present(cursor)) {
        return STATUS_OK;
    }
    TRY(json_array_begin(cursor, 0, max, &found, decoder->error));
    *out = decoder_alloc(decoder, cursor, found, sizeof **out);
    if (*out == NULL) {
        return STATUS_LIMIT;
    }
    for (size_t i = 0; i < found; i++) {
        struct json_cursor element = json_cursor_element(cursor, i);
        int32_t index = 0;
        TRY(decode_index(&element, limit, &index, decoder->error));
        (*out)[i] = (uint32_t)index;
    }
    *count = (uint32_t)found;
    return STATUS_OK;
}

static enum status decode_group(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                                void *element)
{
    struct story_group *out = element;
    return decode_indices(cursor, decoder, LIMIT_STORY_GROUPS,
                          decoder->scenario->storyboard->condition_count, &out->count,
                          &out->conditions);
}

static enum status decode_story_trigger(const struct json_cursor *cursor,
                                        struct scenario_decoder *decoder, struct story_trigger *out)
{
    return decode_list(cursor, 0, LIMIT_STORY_GROUPS, decoder, decode_group, sizeof *out->groups,
                       &out->groups, &out->count);
}

static enum status decode_event(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                                void *element)
{
    struct story_event *out = element;
    struct storyboard *board = decoder->scenario->storyboard;
    struct error *error = decoder->error;
    int64_t group = 0;
    int64_t repeats = 1;
    TRY(decode_record(cursor, board, &story_event_members, out, error));
    struct json_cursor part = json_cursor_member(cursor, "parent");
    if (out->parent >= 0 && out->parent >= (int32_t)(out - board->events)) {
        return json_fail(&part, error, "expected an earlier event, found %d", (int)out->parent);
    }
    if (out->parent >= 0 && board->events[out->parent].parent >= 0) {
        return json_fail(&part, error,
                         "expected an event without a parent, found %d, which has "
                         "one",
                         (int)out->parent);
    }
    TRY(json_member_integer(cursor, "group", false, 0, 10000, &group, error));
    TRY(json_member_integer(cursor, "repeats", false, 1, 10000, &repeats, error));
    out->group = (uint32_t)group;
    out->repeats = (uint32_t)repeats;
    part = json_cursor_member(cursor, "start");
    TRY(decode_story_trigger(&part, decoder, &out->start));
    part = json_cursor_member(cursor, "stop");
    TRY(decode_story_trigger(&part, decoder, &out->stop));
    part = json_cursor_member(cursor, "actions");
    return decode_indices(&part, decoder, LIMIT_STORY_ACTIONS, board->action_count,
                          &out->action_count, &out->actions);
}

/* Reserves a list, so that what refers to it can be checked before it is read. */
static enum status reserve(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                           uint32_t min, uint32_t max, size_t bytes, void *list, uint32_t *count)
{
    size_t found = 0;
    if (min > 0 || json_cursor_present(cursor)) {
        TRY(json_array_begin(cursor, min, max, &found, decoder->error));
    }
    char *elements = decoder_alloc(decoder, cursor, found, bytes);
    if (elements == NULL) {
        return STATUS_LIMIT;
    }
    memcpy(list, &elements, sizeof elements);
    *count = (uint32_t)found;
    return STATUS_OK;
}

static enum status fill(const struct json_cursor *list, struct scenario_decoder *decoder,
                        element_decoder decode, void *elements, size_t bytes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(list, i);
        TRY(decode(&element, decoder, (char *)elements + i * bytes));
    }
    return STATUS_OK;
}

static enum status decode_variable(const struct json_cursor *cursor,
                                   struct scenario_decoder *decoder, void *element)
{
    return json_value_number(cursor, -1e6, 1e6, element, decoder->error);
}

static enum status count_uses(const struct json_cursor *event, const char *key,
                              const struct story_trigger *trigger,
                              bool used[LIMIT_STORY_CONDITIONS], struct error *error)
{
    for (uint32_t i = 0; i < trigger->count; i++) {
        for (uint32_t k = 0; k < trigger->groups[i].count; k++) {
            bool *mark = &used[trigger->groups[i].conditions[k]];
            if (*mark) {
                struct json_cursor at = json_cursor_member(event, key);
                return json_fail(&at, error, "expected each condition in one place, found %u again",
                                 trigger->groups[i].conditions[k]);
            }
            *mark = true;
        }
    }
    return STATUS_OK;
}

/* A condition remembers what it was: two triggers that look at the same one would take its edges
 * from each other, and many would make the storyboard's time of a tick that of their product. */
static enum status check_conditions(const struct json_cursor *events,
                                    const struct storyboard *board, struct error *error)
{
    bool used[LIMIT_STORY_CONDITIONS] = {false};
    for (uint32_t i = 0; i < board->event_count; i++) {
        struct json_cursor event = json_cursor_element(events, i);
        TRY(count_uses(&event, "start", &board->events[i].start, used, error));
        TRY(count_uses(&event, "stop", &board->events[i].stop, used, error));
    }
    return STATUS_OK;
}

/* Every agent whose behaviour says so is moved by one actor. */
static enum status check_agents(const struct json_cursor *cursor, const struct scenario *scenario,
                                struct error *error)
{
    const struct storyboard *board = scenario->storyboard;
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        uint32_t actors = 0;
        for (uint32_t k = 0; board != NULL && k < board->actor_count; k++) {
            actors += board->actors[k].agent == (int32_t)i;
        }
        bool moved = scenario->agents[i].behaviour == BEHAVIOUR_STORYBOARD;
        if (moved && actors != 1) {
            return json_fail(cursor, error,
                             "expected one actor for agent \"%s\", whose behaviour is "
                             "\"storyboard\", found %u",
                             scenario->agents[i].id, actors);
        }
    }
    return STATUS_OK;
}

static uint64_t map_points(const struct map *map)
{
    uint64_t points = 0;
    for (uint32_t i = 0; i < map->lane_count; i++) {
        points += map->lanes[i].point_count;
    }
    for (uint32_t i = 0; i < map->drivable_count; i++) {
        points += map->drivable[i].point_count;
    }
    return points;
}

enum status decode_storyboard(const struct json_cursor *cursor, struct scenario_decoder *decoder,
                              struct scenario *out)
{
    static const char *const keys[] = {"paths",  "actors",    "conditions", "actions",
                                       "events", "variables", NULL};
    if (!json_cursor_present(cursor)) {
        return check_agents(cursor, out, decoder->error);
    }
    struct storyboard *board = decoder_alloc(decoder, cursor, 1, sizeof *board);
    if (board == NULL) {
        return STATUS_LIMIT;
    }
    *board = (struct storyboard){0};
    out->storyboard = board;
    TRY(json_object_begin(cursor, keys, decoder->error));
    struct json_cursor paths = json_cursor_member(cursor, "paths");
    struct json_cursor actors = json_cursor_member(cursor, "actors");
    struct json_cursor conditions = json_cursor_member(cursor, "conditions");
    struct json_cursor actions = json_cursor_member(cursor, "actions");
    struct json_cursor events = json_cursor_member(cursor, "events");
    TRY(reserve(&paths, decoder, 1, LIMIT_STORY_PATHS, sizeof *board->paths, &board->paths,
                &board->path_count));
    TRY(reserve(&actors, decoder, 1, LIMIT_STORY_ACTORS, sizeof *board->actors, &board->actors,
                &board->actor_count));
    TRY(reserve(&conditions, decoder, 0, LIMIT_STORY_CONDITIONS, sizeof *board->conditions,
                &board->conditions, &board->condition_count));
    TRY(reserve(&actions, decoder, 0, LIMIT_STORY_ACTIONS, sizeof *board->actions, &board->actions,
                &board->action_count));
    TRY(reserve(&events, decoder, 0, LIMIT_STORY_EVENTS, sizeof *board->events, &board->events,
                &board->event_count));
    struct json_cursor variables = json_cursor_member(cursor, "variables");
    TRY(decode_list(&variables, 0, LIMIT_STORY_VARIABLES, decoder, decode_variable,
                    sizeof *board->variables, &board->variables, &board->variable_count));
    TRY(fill(&paths, decoder, decode_path, board->paths, sizeof *board->paths, board->path_count));
    TRY(fill(&actors, decoder, decode_actor, board->actors, sizeof *board->actors,
             board->actor_count));
    TRY(fill(&conditions, decoder, decode_condition, board->conditions, sizeof *board->conditions,
             board->condition_count));
    TRY(fill(&actions, decoder, decode_story_action, board->actions, sizeof *board->actions,
             board->action_count));
    TRY(fill(&events, decoder, decode_event, board->events, sizeof *board->events,
             board->event_count));
    TRY(check_conditions(&events, board, decoder->error));
    uint64_t visits = storyboard_visits(board, map_points(&out->map));
    if (visits > LIMIT_STORY_VISITS) {
        return json_fail_status(cursor, STATUS_LIMIT, decoder->error,
                                "expected conditions and actions that look at most at %llu points "
                                "of paths in a step, found %llu",
                                (unsigned long long)LIMIT_STORY_VISITS, (unsigned long long)visits);
    }
    return check_agents(cursor, out, decoder->error);
}
