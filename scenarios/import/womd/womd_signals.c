/*
 * WOMD import: states of traffic lights, which are recorded per lane and sample. See womd.h.
 *
 * Runs of one state become phases that do not repeat. Samples at which a light was not seen show
 * the last state that was; before the first one, that.
 */
#include "scenarios/import/womd/womd.h"

#include "base/dmath.h"
#include "base/units.h"

#include <stdio.h>
#include <string.h>

enum { KEYS_MAX = 4096 };
#define STOP_MAX_M 1000.0 /* of a document */

/* TrafficSignalLaneState of map.proto in what the scenario knows: arrows are lights of their lane,
 * a flashing stop is a stop, and a flashing caution tells nobody anything. */
static const char *light_of(const char *state)
{
    static const struct {
        const char *state;
        const char *light;
    } table[] = {
        {"arrow_stop", "red"},    {"arrow_caution", "yellow"}, {"arrow_go", "green"},
        {"stop", "red"},          {"caution", "yellow"},       {"go", "green"},
        {"flashing_stop", "red"}, {"flashing_caution", "off"}, {"unknown", NULL},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        if (strcmp(table[i].state, state) == 0) {
            return table[i].light;
        }
    }
    return NULL;
}

static const struct womd_lane *find_lane(const struct womd_lanes *lanes, const char *key)
{
    char id[LIMIT_ID_BYTES];
    snprintf(id, sizeof id, "lane%.40s", key);
    for (uint32_t i = 0; i < lanes->count; i++) {
        if (strcmp(lanes->items[i].id, id) == 0) {
            return &lanes->items[i];
        }
    }
    return NULL;
}

/* The light at every sample, NULL where it was not seen. Samples before `first` count as the
 * first one. */
static enum status read_lights(struct womd_context *context, const struct json_cursor *light,
                               uint32_t first, const char **lights, uint32_t *end)
{
    size_t count;
    size_t times;
    struct json_cursor states = json_cursor_member(light, "state");
    struct json_cursor indices = json_cursor_member(light, "time_index");
    TRY(json_array_begin(&states, 0, WOMD_SAMPLES_MAX, &count, context->error));
    TRY(json_array_begin(&indices, count, count, &times, context->error));
    for (size_t i = 0; i < count; i++) {
        struct json_cursor state = json_cursor_element(&states, i);
        struct json_cursor time = json_cursor_element(&indices, i);
        int64_t sample;
        char text[LIMIT_ID_BYTES];
        TRY(json_value_text(&state, text, sizeof text, context->error));
        TRY(json_value_integer(&time, 0, WOMD_SAMPLES_MAX - 1, &sample, context->error));
        uint32_t at = sample > first ? (uint32_t)sample - first : 0;
        lights[at] = light_of(text) != NULL ? light_of(text) : lights[at];
        *end = at + 1 > *end ? at + 1 : *end;
    }
    return STATUS_OK;
}

/* Phases of equal lights; NULL: none was seen, or there are too many. */
static json_t *make_phases(const char *const *lights, uint32_t end)
{
    json_t *phases = json_array();
    const char *shown = NULL;
    for (uint32_t i = 0; i < end && shown == NULL; i++) {
        shown = lights[i];
    }
    uint32_t begun = 0;
    for (uint32_t i = 0; i <= end && shown != NULL; i++) {
        bool changes = i == end || (lights[i] != NULL && strcmp(lights[i], shown) != 0);
        if (changes && i > begun) {
            json_array_append_new(phases, json_pack("{s:s, s:f}", "light", shown, "duration_s",
                                                    (i - begun) * TICK_S));
            begun = i;
        }
        shown = i < end && changes ? lights[i] : shown;
    }
    if (json_array_size(phases) == 0 || json_array_size(phases) > LIMIT_SIGNAL_PHASES) {
        json_decref(phases);
        return NULL;
    }
    return phases;
}

/* Metres before the lane's end at which the file's stop point lies; where it has none, at the
 * lane's beginning: a light is recorded for the lane through the junction. */
static enum status stop_line(struct womd_context *context, const struct json_cursor *light,
                             const struct womd_lane *lane, double *stop_m)
{
    struct json_cursor xs = json_cursor_member(light, "x");
    struct json_cursor ys = json_cursor_member(light, "y");
    double length_m = polyline_length_m(lane->points, lane->point_count);
    double s_m = 0;
    if (json_array_size(xs.value) > 0 && json_array_size(ys.value) > 0) {
        struct json_cursor x = json_cursor_element(&xs, 0);
        struct json_cursor y = json_cursor_element(&ys, 0);
        struct vec2 at;
        TRY(json_value_number(&x, -WOMD_COORDINATE_MAX_M, WOMD_COORDINATE_MAX_M, &at.x_m,
                              context->error));
        TRY(json_value_number(&y, -WOMD_COORDINATE_MAX_M, WOMD_COORDINATE_MAX_M, &at.y_m,
                              context->error));
        at.x_m -= context->origin.x_m;
        at.y_m -= context->origin.y_m;
        s_m = polyline_project(lane->points, lane->point_count, at).s_m;
    }
    *stop_m = dmath_clamp(length_m - s_m, 0.0, dmath_min(length_m * 0.99, STOP_MAX_M));
    return STATUS_OK;
}

static enum status add_signal(struct womd_context *context, const struct json_cursor *light,
                              uint32_t first, const struct womd_lanes *lanes, json_t *list)
{
    const char *lights[WOMD_SAMPLES_MAX] = {NULL};
    uint32_t end = 0;
    char id[LIMIT_ID_BYTES];
    if (!json_is_object(light->value)) {
        return json_fail(light, context->error, "expected an object, the states of a light");
    }
    TRY(read_lights(context, light, first, lights, &end));
    const struct womd_lane *lane = find_lane(lanes, light->key);
    json_t *phases =
        lane != NULL && json_array_size(list) < LIMIT_SIGNALS ? make_phases(lights, end) : NULL;
    if (phases == NULL) {
        context->notes.lights_dropped++;
        return STATUS_OK;
    }
    double stop_m;
    enum status status = stop_line(context, light, lane, &stop_m);
    if (status != STATUS_OK) {
        json_decref(phases);
        return status;
    }
    snprintf(id, sizeof id, "light_%.40s", light->key);
    json_array_append_new(list,
                          json_pack("{s:s, s:[s], s:f, s:o, s:b}", "id", id, "lanes", lane->id,
                                    "stop_m", stop_m, "phases", phases, "repeats", 0));
    return STATUS_OK;
}

enum status womd_signals(struct womd_context *context, const struct json_cursor *states,
                         uint32_t first, const struct womd_lanes *lanes, json_t *map)
{
    const char *key;
    json_t *value;
    if (!json_cursor_present(states)) {
        return STATUS_OK;
    }
    if (!json_is_object(states->value) || json_object_size(states->value) > KEYS_MAX) {
        return json_fail(states, context->error,
                         "expected an object of at most %d lanes with the states of their lights",
                         KEYS_MAX);
    }
    json_t *list = json_array();
    enum status status = STATUS_OK;
    json_object_foreach ((json_t *)(uintptr_t)states->value, key, value) {
        struct json_cursor light = json_cursor_member(states, key);
        THEN(status, add_signal(context, &light, first, lanes, list));
    }
    if (status == STATUS_OK && json_array_size(list) > 0) {
        json_object_set(map, "signals", list);
    }
    json_decref(list);
    return status;
}
