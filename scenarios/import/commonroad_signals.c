/*
 * CommonRoad import: traffic lights and stop lines to signals.
 *
 * A light's cycle is counted in time steps of the file; at step t it is (t - timeOffset) into its
 * phases. A lanelet obeys the light that it refers to; of several, one for all directions or for
 * straight on. Lanelets of one light whose stop lines lie equally far from their ends share a
 * signal.
 */
#include "base/dmath.h"
#include "scenarios/import/commonroad.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PHASE_MAX_S 3600.0
#define STOP_CLEAR_M 0.1 /* of a lane lies before its stop line, at least */
#define SAME_STOP_M 0.01

/* A light by its id. */
struct known_light {
    const char *id;
    uint32_t order; /* in the file; of several with one id the first counts */
    const struct xml_element *element;
};

struct signal_reader {
    struct cr_context *context;
    struct known_light *lights; /* [light_count], by id */
    uint32_t light_count;
    double start_s;
    struct map *map;
    const struct xml_element *light_of[LIMIT_SIGNALS];
};

static enum status read_color(const struct cr_context *context, const struct xml_element *element,
                              enum traffic_light *out)
{
    static const char *const names[TRAFFIC_LIGHT_COUNT] = {"red", "redYellow", "yellow", "green",
                                                           "inactive"};
    for (int i = 0; i < TRAFFIC_LIGHT_COUNT; i++) {
        if (strcmp(element->text, names[i]) == 0) {
            *out = (enum traffic_light)i;
            return STATUS_OK;
        }
    }
    return cr_fail(context, element, STATUS_BAD_INPUT,
                   "expected red, redYellow, yellow, green or inactive, found \"%.32s\"",
                   element->text);
}

static enum status read_phases(const struct signal_reader *reader, const struct xml_element *cycle,
                               struct traffic_signal *signal)
{
    const struct cr_context *context = reader->context;
    uint32_t count = xml_count(cycle, CR_CYCLE_ELEMENT);
    double cycle_s = 0.0;
    double offset_steps = 0.0;
    if (count == 0 || count > LIMIT_SIGNAL_PHASES) {
        return cr_fail(context, cycle, STATUS_BAD_INPUT,
                       "expected 1 to %d <cycleElement>, found %u", LIMIT_SIGNAL_PHASES, count);
    }
    signal->phases = cr_alloc(context, count, sizeof *signal->phases);
    if (signal->phases == NULL) {
        return STATUS_LIMIT;
    }
    const struct xml_element *part = xml_child(cycle, CR_CYCLE_ELEMENT);
    for (uint32_t i = 0; i < count; i++, part = xml_next(part)) {
        const struct xml_element *color;
        const struct xml_element *duration;
        double steps;
        TRY(cr_required(context, part, CR_COLOR, &color));
        TRY(cr_required(context, part, CR_DURATION, &duration));
        TRY(read_color(context, color, &signal->phases[i].light));
        TRY(cr_value(context, duration, 1.0, PHASE_MAX_S / context->dt_s, &steps));
        signal->phases[i].duration_s = dmath_max(steps * context->dt_s, 0.1);
        cycle_s += signal->phases[i].duration_s;
    }
    signal->phase_count = count;
    signal->repeats = true;
    TRY(cr_child_value(context, cycle, CR_TIME_OFFSET, -1e7, 1e7, &offset_steps));
    double into_s = reader->start_s - offset_steps * context->dt_s;
    signal->offset_s = dmath_max(into_s - cycle_s * floor(into_s / cycle_s), 0.0);
    return STATUS_OK;
}

static enum status read_light(const struct signal_reader *reader, const struct xml_element *light,
                              struct traffic_signal *signal)
{
    const struct xml_element *active = xml_child(light, CR_ACTIVE);
    const struct xml_element *cycle = xml_child(light, CR_CYCLE);
    if (cycle != NULL && (active == NULL || strcmp(active->text, "false") != 0)) {
        return read_phases(reader, cycle, signal);
    }
    signal->phases = cr_alloc(reader->context, 1, sizeof *signal->phases);
    if (signal->phases == NULL) {
        return STATUS_LIMIT;
    }
    signal->phases[0] = (struct signal_phase){TRAFFIC_LIGHT_OFF, PHASE_MAX_S};
    signal->phase_count = 1;
    return STATUS_OK;
}

static int compare_lights(const void *a, const void *b)
{
    const struct known_light *one = a;
    const struct known_light *other = b;
    int ids = strcmp(one->id, other->id);
    return ids != 0 ? ids : (one->order > other->order) - (one->order < other->order);
}

/* Files are foreign and may refer to any number of lights any number of times, so lights are sorted
 * once. */
static enum status list_lights(struct signal_reader *reader, const struct xml_element *root)
{
    reader->lights =
        cr_alloc(reader->context, xml_count(root, CR_TRAFFIC_LIGHT), sizeof *reader->lights);
    if (reader->lights == NULL) {
        return STATUS_LIMIT;
    }
    const struct xml_element *light = xml_child(root, CR_TRAFFIC_LIGHT);
    for (; light != NULL; light = xml_next(light)) {
        const char *id = xml_attribute(light, "id");
        if (id != NULL) {
            reader->lights[reader->light_count] =
                (struct known_light){id, reader->light_count, light};
            reader->light_count++;
        }
    }
    qsort(reader->lights, reader->light_count, sizeof *reader->lights, compare_lights);
    return STATUS_OK;
}

static const struct xml_element *find_light(const struct signal_reader *reader, const char *id)
{
    uint32_t first = 0;
    uint32_t end = reader->light_count;
    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        if (strcmp(reader->lights[middle].id, id) < 0) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    bool found = first < reader->light_count && strcmp(reader->lights[first].id, id) == 0;
    return found ? reader->lights[first].element : NULL;
}

/* Score of a light that suits all the traffic of a lanelet. */
static int light_rank(const struct xml_element *light)
{
    const struct xml_element *direction = xml_child(light, CR_DIRECTION);
    if (direction == NULL || strcmp(direction->text, "all") == 0) {
        return 3;
    }
    if (strcmp(direction->text, "straight") == 0) {
        return 2;
    }
    return strstr(direction->text, "traight") != NULL ? 1 : 0; /* leftStraight, straightRight */
}

static enum status choose_light(struct signal_reader *reader, const struct xml_element *lanelet,
                                const struct xml_element **out)
{
    int best = -1;
    *out = NULL;
    const struct xml_element *reference = xml_child(lanelet, CR_TRAFFIC_LIGHT_REF);
    for (; reference != NULL; reference = xml_next(reference)) {
        const char *id = xml_attribute(reference, "ref");
        const struct xml_element *light = id != NULL ? find_light(reader, id) : NULL;
        if (light == NULL) {
            return cr_fail(reader->context, reference, STATUS_BAD_INPUT,
                           "expected the id of a <trafficLight>, found \"%.64s\"",
                           id != NULL ? id : "");
        }
        if (light_rank(light) > best) {
            best = light_rank(light);
            *out = light;
        }
    }
    if (*out != NULL && best < 3) {
        cr_note(reader->context, CR_NOTE_LIGHT_FOR_ALL);
    }
    return STATUS_OK;
}

/* From the stop line to the lane's end; a line without points lies at the end. */
static enum status read_stop(const struct cr_context *context, const struct xml_element *lanelet,
                             const struct lane *lane, double *stop_m)
{
    const struct xml_element *line = xml_child(lanelet, CR_STOP_LINE);
    const struct xml_element *point = line != NULL ? xml_child(line, CR_POINT) : NULL;
    double length_m = polyline_length_m(lane->centre_line, lane->point_count);
    *stop_m = 0.0;
    if (point == NULL || xml_next(point) == NULL) {
        return STATUS_OK;
    }
    struct vec2 ends[2];
    TRY(cr_point(context, point, true, &ends[0]));
    TRY(cr_point(context, xml_next(point), true, &ends[1]));
    struct vec2 middle = {(ends[0].x_m + ends[1].x_m) / 2, (ends[0].y_m + ends[1].y_m) / 2};
    double s_m = polyline_project(lane->centre_line, lane->point_count, middle).s_m;
    *stop_m = dmath_clamp(length_m - s_m, 0.0, dmath_max(length_m - STOP_CLEAR_M, 0.0));
    return STATUS_OK;
}

static bool is_named(const struct map *map, const char *id)
{
    for (uint32_t i = 0; i < map->signal_count; i++) {
        if (strcmp(map->signals[i].id, id) == 0) {
            return true;
        }
    }
    return false;
}

/* A light's signals after the first get a number, and none the name that another light has. */
static void name_signal(const struct map *map, const struct xml_element *light,
                        char out[LIMIT_ID_BYTES])
{
    char text[LIMIT_ID_BYTES];
    const char *id = xml_attribute(light, "id");
    cr_make_id(id != NULL ? id : "", text);
    memcpy(out, text, LIMIT_ID_BYTES);
    for (uint32_t number = map->signal_count; is_named(map, out); number++) {
        snprintf(out, LIMIT_ID_BYTES, "%.50s.%u", text, number);
    }
}

static enum status add_lane(struct signal_reader *reader, const struct xml_element *light,
                            uint32_t lane, double stop_m)
{
    struct map *map = reader->map;
    for (uint32_t i = 0; i < map->signal_count; i++) {
        struct traffic_signal *signal = &map->signals[i];
        if (reader->light_of[i] == light && fabs(signal->stop_m - stop_m) < SAME_STOP_M &&
            signal->lane_count < LIMIT_SIGNAL_LANES) {
            signal->lanes[signal->lane_count++] = lane;
            return STATUS_OK;
        }
    }
    if (map->signal_count == LIMIT_SIGNALS) {
        cr_note(reader->context, CR_NOTE_SIGNAL_DROPPED);
        return STATUS_OK;
    }
    struct traffic_signal signal = {.stop_m = stop_m};
    signal.lanes = cr_alloc(reader->context, LIMIT_SIGNAL_LANES, sizeof *signal.lanes);
    if (signal.lanes == NULL) {
        return STATUS_LIMIT;
    }
    signal.lanes[signal.lane_count++] = lane;
    name_signal(map, light, signal.id);
    TRY(read_light(reader, light, &signal));
    reader->light_of[map->signal_count] = light;
    map->signals[map->signal_count++] = signal;
    return STATUS_OK;
}

enum status cr_signals_read(struct cr_context *context, const struct xml_element *root,
                            const struct cr_map *lanelets, double start_s, struct map *map)
{
    struct signal_reader reader = {.context = context, .start_s = start_s, .map = map};
    if (xml_child(root, CR_TRAFFIC_LIGHT) == NULL) {
        return STATUS_OK;
    }
    TRY(list_lights(&reader, root));
    map->signal_count = 0;
    map->signals = cr_alloc(context, LIMIT_SIGNALS, sizeof *map->signals);
    if (map->signals == NULL) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i < lanelets->lanelet_count; i++) {
        const struct cr_lanelet *lanelet = &lanelets->lanelets[i];
        const struct xml_element *light;
        double stop_m;
        if (lanelet->lane_count == 0) {
            continue;
        }
        uint32_t lane = lanelet->first_lane + lanelet->lane_count - 1;
        enum lane_kind kind = map->lanes[lane].kind;
        TRY(choose_light(&reader, lanelet->element, &light));
        if (light == NULL || (kind != LANE_DRIVING && kind != LANE_CYCLE)) {
            continue;
        }
        TRY(read_stop(context, lanelet->element, &map->lanes[lane], &stop_m));
        TRY(add_lane(&reader, light, lane, stop_m));
    }
    return STATUS_OK;
}
