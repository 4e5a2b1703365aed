/*
 * Placement: {"lane", "s_m", "offset_m"} in poses, goals and paths becomes coordinates. See
 * resolve.h. What is not such a place is left for the decoder to accept or refuse.
 *
 * A place with a mistake becomes the origin before the error is returned: whoever goes on to look
 * for further mistakes finds a document without places, and this mistake only once.
 */
#include "base/check.h"
#include "base/dmath.h"
#include "scenarios/resolve.h"

#include <string.h>

/* Reads a place; `extra` is one more legal key, or NULL. */
static enum status read_place(const struct json_cursor *cursor, const struct lane_table *lanes,
                              const char *extra, struct pose *out, struct error *error)
{
    const char *keys[] = {"lane", "s_m", "offset_m", extra, NULL};
    char id[LIMIT_ID_BYTES];
    double s_m;
    double offset_m = 0.0;
    TRY(json_object_begin(cursor, keys, error));
    TRY(json_member_text(cursor, "lane", true, id, sizeof id, error));
    const struct lane_shape *lane = lane_table_find(lanes, id);
    if (lane == NULL) {
        struct json_cursor member = json_cursor_member(cursor, "lane");
        return json_fail(&member, error,
                         "expected the id of a lane, found \"%s\", which there is not", id);
    }
    double length_m = lane->s_m[lane->point_count - 1];
    TRY(json_member_number(cursor, "s_m", true, 0.0, length_m, &s_m, error));
    TRY(json_member_number(cursor, "offset_m", false, -1000.0, 1000.0, &offset_m, error));
    *out = lane_shape_pose(lane, s_m, offset_m);
    return STATUS_OK;
}

static bool is_place(const json_t *value)
{
    return json_object_get(value, "lane") != NULL;
}

/* Sets number members; false when memory runs out. */
static bool set_number(json_t *object, const char *key, double value)
{
    return json_object_set_new(object, key, json_real(value)) == 0;
}

static enum status no_memory(const struct json_cursor *cursor, struct error *error)
{
    return json_fail_status(cursor, STATUS_NO_MEMORY, error, "out of memory");
}

static enum status place_pose(const struct json_cursor *cursor, const struct lane_table *lanes,
                              struct error *error)
{
    struct pose pose = {0};
    double turn_rad = 0.0;
    if (!is_place(cursor->value)) {
        return STATUS_OK;
    }
    enum status status = read_place(cursor, lanes, "heading_offset_rad", &pose, error);
    THEN(status, json_member_angle(cursor, "heading_offset_rad", false, &turn_rad, error));
    json_t *object = (json_t *)(uintptr_t)cursor->value;
    json_object_clear(object);
    if (!set_number(object, "x_m", pose.x_m) || !set_number(object, "y_m", pose.y_m) ||
        !set_number(object, "heading_rad", dmath_wrap_angle(pose.heading_rad + turn_rad))) {
        return no_memory(cursor, error);
    }
    return status;
}

static enum status place_goal(const struct json_cursor *cursor, const struct lane_table *lanes,
                              struct error *error)
{
    struct pose pose = {0};
    double radius_m = 5.0;
    if (!is_place(cursor->value)) {
        return STATUS_OK;
    }
    /* Any other condition there is the decoder's. */
    static const char *const kept[] = {"area",           "time_min_s",    "time_max_s",
                                       "speed_min_mps",  "speed_max_mps", "heading_min_rad",
                                       "heading_max_rad"};
    json_t *object = (json_t *)(uintptr_t)cursor->value;
    json_t *others = json_object();
    for (size_t i = 0; i < COUNT_OF(kept); i++) {
        json_t *member = json_object_get(object, kept[i]);
        if (member != NULL && json_object_set(others, kept[i], member) == 0) {
            json_object_del(object, kept[i]);
        }
    }
    enum status status = read_place(cursor, lanes, "radius_m", &pose, error);
    if (status == STATUS_OK) {
        status = json_member_number(cursor, "radius_m", false, 0.1, 1000.0, &radius_m, error);
    }
    json_object_clear(object);
    if (!set_number(object, "x_m", pose.x_m) || !set_number(object, "y_m", pose.y_m) ||
        !set_number(object, "radius_m", radius_m) || json_object_update(object, others) != 0) {
        status = no_memory(cursor, error);
    }
    json_decref(others);
    return status;
}

static enum status place_path(const struct json_cursor *path, const struct lane_table *lanes,
                              struct errors *errors, struct error *error)
{
    uint32_t before = errors_count(errors);
    for (size_t i = 0; i < json_array_size(path->value); i++) {
        struct json_cursor element = json_cursor_element(path, i);
        struct pose pose = {0};
        if (!is_place(element.value)) {
            continue;
        }
        TRY(errors_keep(errors, read_place(&element, lanes, NULL, &pose, error), error));
        json_t *point = json_array();
        if (json_array_append_new(point, json_real(pose.x_m)) != 0 ||
            json_array_append_new(point, json_real(pose.y_m)) != 0) {
            json_decref(point);
            return no_memory(&element, error);
        }
        if (json_array_set_new((json_t *)(uintptr_t)path->value, i, point) != 0) {
            return no_memory(&element, error);
        }
    }
    return errors_end(errors, before, error);
}

/* An IDM agent that stands, on a lane with a posted limit, wants to drive at that limit. */
static enum status desire_limit(const struct json_cursor *agent, const struct lane_table *lanes,
                                struct error *error)
{
    json_t *object = (json_t *)(uintptr_t)agent->value;
    const char *behaviour = json_string_value(json_object_get(object, "behaviour"));
    const json_t *pose = json_object_get(object, "pose");
    const char *id = json_string_value(json_object_get(pose, "lane"));
    json_t *idm = json_object_get(object, "idm");
    double speed_mps = json_number_value(json_object_get(object, "speed_mps"));
    if (behaviour == NULL || strcmp(behaviour, "idm") != 0 || id == NULL || speed_mps >= 0.1 ||
        (idm != NULL && !json_is_object(idm)) ||
        json_object_get(idm, "desired_speed_mps") != NULL) {
        return STATUS_OK;
    }
    const struct lane_shape *lane = lane_table_find(lanes, id);
    if (lane == NULL || lane->speed_limit_mps < 0.1) {
        return STATUS_OK;
    }
    if (idm == NULL) {
        idm = json_object();
        if (json_object_set_new(object, "idm", idm) != 0) {
            return no_memory(agent, error);
        }
    }
    return set_number(idm, "desired_speed_mps", lane->speed_limit_mps) ? STATUS_OK
                                                                       : no_memory(agent, error);
}

static enum status place_agent(const struct json_cursor *agent, const struct lane_table *lanes,
                               struct errors *errors, struct error *error)
{
    uint32_t before = errors_count(errors);
    if (!json_is_object(agent->value)) {
        return STATUS_OK;
    }
    TRY(desire_limit(agent, lanes, error));
    struct json_cursor pose = json_cursor_member(agent, "pose");
    TRY(errors_keep(errors, place_pose(&pose, lanes, error), error));
    struct json_cursor manoeuvres = json_cursor_member(agent, "manoeuvres");
    for (size_t i = 0; i < json_array_size(manoeuvres.value); i++) {
        struct json_cursor element = json_cursor_element(&manoeuvres, i);
        struct json_cursor path = json_cursor_member(&element, "path");
        TRY(errors_keep(errors, place_path(&path, lanes, errors, error), error));
    }
    return errors_end(errors, before, error);
}

enum status scenario_place(const struct json_cursor *scenario, const struct lane_table *lanes,
                           struct errors *errors, struct error *error)
{
    uint32_t before = errors_count(errors);
    struct json_cursor ego = json_cursor_member(scenario, "ego");
    struct json_cursor part = json_cursor_member(&ego, "pose");
    TRY(errors_keep(errors, place_pose(&part, lanes, error), error));
    part = json_cursor_member(&ego, "goal");
    TRY(errors_keep(errors, place_goal(&part, lanes, error), error));
    struct json_cursor agents = json_cursor_member(scenario, "agents");
    for (size_t i = 0; i < json_array_size(agents.value); i++) {
        struct json_cursor element = json_cursor_element(&agents, i);
        TRY(errors_keep(errors, place_agent(&element, lanes, errors, error), error));
    }
    return errors_end(errors, before, error);
}
