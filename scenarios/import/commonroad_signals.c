/*
 * CommonRoad import: traffic lights, signs of priority and stop lines to signals.
 *
 * A light's cycle is counted in time steps of the file; at step t it is (t - timeOffset) into its
 * phases. A lanelet obeys the light that it refers to; of several, one for all directions or for
 * straight on. One without a light obeys the sign of priority that it refers to. Lanelets of one
 * light whose stop lines lie equally far from their ends share a signal. A map holds few signals,
 * so all lights come before the first sign.
 */
#include "base/dmath.h"
#include "scenarios/import/commonroad.h"
#include "scenarios/import/right_of_way.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PHASE_MAX_S 3600.0
#define STOP_CLEAR_M 0.1 /* of a lane lies before its stop line, at least */
#define SAME_STOP_M 0.01

/* A light or sign by its id. */
struct known {
    const char *id;
    uint32_t order; /* in the file; of several with one id the first counts */
    const struct xml_element *element;
    enum traffic_sign sign; /* that it stands for */
};

struct known_list {
    struct known *known; /* [count], by id */
    uint32_t count;
};

struct signal_reader {
    struct cr_context *context;
    struct known_list lights;
    struct known_list signs;
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
    for (; part != NULL; part = xml_next(part)) {
        struct signal_phase *phase = &signal->phases[signal->phase_count];
        const struct xml_element *color;
        const struct xml_element *duration;
        double steps;
        TRY(cr_required(context, part, CR_COLOR, &color));
        TRY(cr_required(context, part, CR_DURATION, &duration));
        TRY(read_color(context, color, &phase->light));
        TRY(cr_value(context, duration, 0.0, PHASE_MAX_S / context->dt_s, &steps));
        if (steps > 0.0) { /* one of no duration never shows */
            phase->duration_s = dmath_max(steps * context->dt_s, 0.1);
            cycle_s += phase->duration_s;
            signal->phase_count++;
        }
    }
    if (signal->phase_count == 0) {
        return cr_fail(context, cycle, STATUS_BAD_INPUT,
                       "expected a <cycleElement> with a duration, found none");
    }
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

/* The sign that an element stands for: German numbers, which Zamunda's are too, and American ones.
 */
static enum traffic_sign sign_kind(const struct xml_element *sign)
{
    enum traffic_sign kind = TRAFFIC_SIGN_NONE;
    const struct xml_element *part = xml_child(sign, CR_TRAFFIC_SIGN_ELEMENT);
    for (; part != NULL; part = xml_next(part)) {
        const struct xml_element *number = xml_child(part, CR_TRAFFIC_SIGN_ID);
        const char *text = number != NULL ? number->text : "";
        if (strcmp(text, "206") == 0 || strcmp(text, "R1-1") == 0) {
            return TRAFFIC_SIGN_STOP;
        }
        if (strcmp(text, "205") == 0 || strcmp(text, "R1-2") == 0) {
            kind = TRAFFIC_SIGN_YIELD;
        }
        bool goes_first = strcmp(text, "306") == 0 || strcmp(text, "301") == 0;
        if (goes_first && kind == TRAFFIC_SIGN_NONE) {
            kind = TRAFFIC_SIGN_PRIORITY;
        }
    }
    return kind;
}

static int compare_known(const void *a, const void *b)
{
    const struct known *one = a;
    const struct known *other = b;
    int ids = strcmp(one->id, other->id);
    return ids != 0 ? ids : (one->order > other->order) - (one->order < other->order);
}

/* Files are foreign and may refer to any number of lights and signs, of any number of parts, any
 * number of times, so they are sorted, and looked into, once. */
static enum status list_known(const struct signal_reader *reader, const struct xml_element *root,
                              int tag, struct known_list *out)
{
    out->known = cr_alloc(reader->context, xml_count(root, tag), sizeof *out->known);
    if (out->known == NULL) {
        return STATUS_LIMIT;
    }
    const struct xml_element *element = xml_child(root, tag);
    for (; element != NULL; element = xml_next(element)) {
        const char *id = xml_attribute(element, "id");
        if (id != NULL) {
            out->known[out->count] = (struct known){id, out->count, element, sign_kind(element)};
            out->count++;
        }
    }
    qsort(out->known, out->count, sizeof *out->known, compare_known);
    return STATUS_OK;
}

static const struct known *find_known(const struct known_list *list, const char *id)
{
    uint32_t first = 0;
    uint32_t end = list->count;
    while (first < end) {
        uint32_t middle = first + (end - first) / 2;
        if (strcmp(list->known[middle].id, id) < 0) {
            first = middle + 1;
        } else {
            end = middle;
        }
    }
    bool found = first < list->count && strcmp(list->known[first].id, id) == 0;
    return found ? &list->known[first] : NULL;
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

/* References of a lanelet, else of its stop line. */
static const struct xml_element *first_reference(const struct xml_element *lanelet, int name)
{
    const struct xml_element *own = xml_child(lanelet, name);
    const struct xml_element *line = xml_child(lanelet, CR_STOP_LINE);
    return own != NULL || line == NULL ? own : xml_child(line, name);
}

static enum status choose_light(struct signal_reader *reader, const struct xml_element *lanelet,
                                const struct known **out)
{
    int best = -1;
    *out = NULL;
    const struct xml_element *reference = first_reference(lanelet, CR_TRAFFIC_LIGHT_REF);
    for (; reference != NULL; reference = xml_next(reference)) {
        const char *id = xml_attribute(reference, "ref");
        const struct known *light = id != NULL ? find_known(&reader->lights, id) : NULL;
        if (light == NULL) {
            return cr_fail(reader->context, reference, STATUS_BAD_INPUT,
                           "expected the id of a <trafficLight>, found \"%.64s\"",
                           id != NULL ? id : "");
        }
        if (light_rank(light->element) > best) {
            best = light_rank(light->element);
            *out = light;
        }
    }
    if (*out != NULL && best < 3) {
        cr_note(reader->context, CR_NOTE_LIGHT_FOR_ALL);
    }
    return STATUS_OK;
}

/* The sign of priority that a lanelet refers to, NULL: none; stop before yield before priority. */
static const struct known *choose_sign(const struct signal_reader *reader,
                                       const struct xml_element *lanelet)
{
    const struct known *chosen = NULL;
    const struct xml_element *reference = first_reference(lanelet, CR_TRAFFIC_SIGN_REF);
    for (; reference != NULL; reference = xml_next(reference)) {
        const char *id = xml_attribute(reference, "ref");
        const struct known *sign = id != NULL ? find_known(&reader->signs, id) : NULL;
        enum traffic_sign kind = sign != NULL ? sign->sign : TRAFFIC_SIGN_NONE;
        if (kind != TRAFFIC_SIGN_NONE && (chosen == NULL || kind < chosen->sign)) {
            chosen = sign;
        }
    }
    return chosen;
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

static enum status add_lane(struct signal_reader *reader, const struct known *known, uint32_t lane,
                            double stop_m)
{
    const struct xml_element *light = known->element;
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
    signal.sign = known->sign; /* lights have none */
    if (signal.sign == TRAFFIC_SIGN_NONE) {
        TRY(read_light(reader, light, &signal));
    }
    reader->light_of[map->signal_count] = light;
    map->signals[map->signal_count++] = signal;
    return STATUS_OK;
}

/* The lanelet's light, or its sign where it has no light. */
static enum status add_lanelet(struct signal_reader *reader, const struct cr_lanelet *lanelet,
                               bool signs)
{
    const struct known *light = NULL;
    uint32_t lane = lanelet->first_lane + lanelet->lane_count - 1;
    double stop_m;
    if (lanelet->lane_count == 0) {
        return STATUS_OK;
    }
    enum lane_kind kind = reader->map->lanes[lane].kind;
    TRY(choose_light(reader, lanelet->element, &light));
    if (signs) {
        light = light == NULL ? choose_sign(reader, lanelet->element) : NULL;
    }
    if (light == NULL || (kind != LANE_DRIVING && kind != LANE_CYCLE)) {
        return STATUS_OK;
    }
    TRY(read_stop(reader->context, lanelet->element, &reader->map->lanes[lane], &stop_m));
    return add_lane(reader, light, lane, stop_m);
}

enum status cr_signals_read(struct cr_context *context, const struct xml_element *root,
                            const struct cr_map *lanelets, double start_s, struct map *map)
{
    struct signal_reader reader = {.context = context, .start_s = start_s, .map = map};
    TRY(list_known(&reader, root, CR_TRAFFIC_LIGHT, &reader.lights));
    TRY(list_known(&reader, root, CR_TRAFFIC_SIGN, &reader.signs));
    map->signal_count = 0;
    map->signals = cr_alloc(context, LIMIT_SIGNALS, sizeof *map->signals);
    if (map->signals == NULL) {
        return STATUS_LIMIT;
    }
    for (int signs = 0; signs < 2; signs++) {
        for (uint32_t i = 0; i < lanelets->lanelet_count; i++) {
            TRY(add_lanelet(&reader, &lanelets->lanelets[i], signs != 0));
        }
    }
    struct right_of_way counts = {0};
    if (right_of_way_beside_priority(map, context->arena, 0.0, &counts) != STATUS_OK ||
        right_of_way_of_oncoming(map, context->arena, &counts) != STATUS_OK) {
        return cr_fail(context, root, STATUS_LIMIT, "expected a map of at most %zu bytes in memory",
                       context->arena->limit_bytes);
    }
    for (uint32_t i = 0; i < counts.gave_way; i++) {
        cr_note(context, CR_NOTE_GIVES_WAY);
    }
    for (uint32_t i = 0; i < counts.dropped; i++) {
        cr_note(context, CR_NOTE_SIGNAL_DROPPED);
    }
    return STATUS_OK;
}
