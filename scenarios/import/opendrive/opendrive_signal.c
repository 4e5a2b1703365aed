/*
 * OpenDRIVE: signals, who controls them and whom they are for; crosswalks among the objects.
 *
 * A signal is for the lanes of its validity, or for all driving lanes, whose traffic runs the way
 * that its orientation says. Objects other than crosswalks are counted and left.
 */
#include "base/dmath.h"
#include "scenarios/import/opendrive/opendrive_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CORNERS_MAX = 256 };
#define SIGNAL_BEYOND_M 0.1 /* that a road's length may be rounded by */

/* ---- signals ---- */

/* Whether the element's <validity> children hold for the lane; without any, they do. */
static enum status is_valid_for(const struct od_reader *reader, const struct xml_element *element,
                                int32_t id, bool *out)
{
    const struct xml_element *validity = xml_child(element, OD_VALIDITY);
    bool valid = validity == NULL;
    for (; validity != NULL; validity = xml_next(validity)) {
        int32_t from = 0;
        int32_t to = 0;
        TRY(od_int(reader, validity, "fromLane", &from));
        TRY(od_int(reader, validity, "toLane", &to));
        valid = valid || (id >= (from < to ? from : to) && id <= (from < to ? to : from));
    }
    *out = valid;
    return STATUS_OK;
}

static enum status find_lanes(struct od_reader *reader, const struct xml_element *element,
                              struct opendrive_signal *signal)
{
    struct opendrive_network *network = reader->network;
    const struct opendrive_section *section =
        &network->sections[opendrive_section_at(network, signal->road, signal->s_m)];
    uint32_t total = section->left_count + section->right_count;
    signal->lanes = od_alloc(reader, total, sizeof *signal->lanes);
    if (signal->lanes == NULL) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i < total; i++) {
        uint32_t index = i < section->left_count ? section->left_first + i
                                                 : section->right_first + i - section->left_count;
        const struct opendrive_lane *lane = &network->lanes[index];
        bool valid = false;
        TRY(is_valid_for(reader, element, lane->id, &valid));
        bool way = signal->orientation == 0 || (signal->orientation > 0) != lane->against;
        if (valid && way && lane->type == OPENDRIVE_LANE_DRIVING) {
            signal->lanes[signal->lane_count++] = index;
        }
    }
    return STATUS_OK;
}

/* The road's place for a signal that the file has before its beginning or behind its end. */
static void keep_on_road(struct opendrive_network *network, struct opendrive_signal *signal)
{
    double given_m = signal->s_m;
    signal->s_m = dmath_clamp(given_m, 0, network->roads[signal->road].length_m);
    network->notes[OPENDRIVE_NOTE_SIGNAL] += fabs(given_m - signal->s_m) > SIGNAL_BEYOND_M;
}

static enum status read_signal(struct od_reader *reader, const struct xml_element *element,
                               uint32_t road, struct opendrive_signal *out)
{
    const char *orientation = xml_attribute(element, "orientation");
    const char *dynamic = xml_attribute(element, "dynamic");
    const char *value = xml_attribute(element, "value");
    const char *id = "";
    *out = (struct opendrive_signal){
        .road = road, .line = element->line, .controller = OPENDRIVE_NONE, .value = NAN};
    TRY(od_text(reader, element, "id", &id));
    TRY(od_number(reader, element, "s", -OD_LENGTH_MAX_M, OD_LENGTH_MAX_M, &out->s_m));
    TRY(od_number(reader, element, "t", -OD_LENGTH_MAX_M, OD_LENGTH_MAX_M, &out->t_m));
    keep_on_road(reader->network, out);
    out->reference = element->tag == OD_SIGNAL_REFERENCE;
    out->id = od_copy(reader, id);
    out->name = od_copy(reader, xml_attribute(element, "name"));
    out->type = od_copy(reader, xml_attribute(element, "type"));
    out->subtype = od_copy(reader, xml_attribute(element, "subtype"));
    out->country = od_copy(reader, xml_attribute(element, "country"));
    if (out->id == NULL || out->name == NULL || out->type == NULL || out->subtype == NULL ||
        out->country == NULL) {
        return STATUS_LIMIT;
    }
    out->dynamic = dynamic != NULL && strcmp(dynamic, "yes") == 0;
    if (orientation != NULL) {
        out->orientation = orientation[0] == '+' ? 1 : orientation[0] == '-' ? -1 : 0;
    }
    if (value != NULL && !od_parse_number(value, &out->value)) {
        out->value = NAN;
    }
    return find_lanes(reader, element, out);
}

/* ---- crosswalks ---- */

/* A corner of an outline, along the road or beside the object. */
static enum status read_corner(struct od_reader *reader, const struct xml_element *corner,
                               uint32_t road, struct pose object, struct vec2 *out)
{
    double first = 0;
    double second = 0;
    bool local = corner->tag == OD_CORNER_LOCAL;
    TRY(od_number(reader, corner, local ? "u" : "s", -OD_LENGTH_MAX_M, OD_LENGTH_MAX_M, &first));
    TRY(od_number(reader, corner, local ? "v" : "t", -OD_LENGTH_MAX_M, OD_LENGTH_MAX_M, &second));
    if (!local) {
        struct pose pose = opendrive_road_pose(reader->network, road, first, second);
        *out = (struct vec2){pose.x_m, pose.y_m};
        return STATUS_OK;
    }
    double sine;
    double cosine;
    dmath_sincos(object.heading_rad, &sine, &cosine);
    *out = (struct vec2){object.x_m + first * cosine - second * sine,
                         object.y_m + first * sine + second * cosine};
    return STATUS_OK;
}

/* The first outline's corners, or a box of the object's length and width. */
static enum status read_outline(struct od_reader *reader, const struct xml_element *element,
                                uint32_t road, struct pose object, struct opendrive_crosswalk *out)
{
    const struct xml_element *group = xml_child(element, OD_OUTLINES);
    const struct xml_element *outline = xml_child(group != NULL ? group : element, OD_OUTLINE);
    const struct xml_element *corner = outline != NULL ? outline->first : NULL;
    double length_m = 0;
    double width_m = 0;
    for (; corner != NULL && out->point_count < CORNERS_MAX; corner = corner->next) {
        if (corner->tag == OD_CORNER_LOCAL || corner->tag == OD_CORNER_ROAD) {
            TRY(read_corner(reader, corner, road, object, &out->points[out->point_count]));
            out->point_count++;
        }
    }
    if (out->point_count >= 3) {
        return STATUS_OK;
    }
    out->point_count = 0;
    TRY(od_optional(reader, element, "length", 0, 1000, &length_m));
    TRY(od_optional(reader, element, "width", 0, 1000, &width_m));
    if (length_m > 0.1 && width_m > 0.1) {
        struct box box = box_make(object, length_m, width_m);
        struct vec2 corners[4];
        box_corners(&box, corners);
        memcpy(out->points, corners, sizeof corners);
        out->point_count = 4;
    }
    return STATUS_OK;
}

static enum status read_crosswalk(struct od_reader *reader, const struct xml_element *element,
                                  uint32_t road)
{
    struct opendrive_network *network = reader->network;
    struct opendrive_crosswalk *out = &network->crosswalks[network->crosswalk_count];
    double s_m = 0;
    double t_m = 0;
    double heading = 0;
    TRY(od_optional(reader, element, "s", -OD_LENGTH_MAX_M, OD_LENGTH_MAX_M, &s_m));
    TRY(od_optional(reader, element, "t", -OD_LENGTH_MAX_M, OD_LENGTH_MAX_M, &t_m));
    TRY(od_optional(reader, element, "hdg", -1e4, 1e4, &heading));
    *out = (struct opendrive_crosswalk){.road = road};
    out->points = od_alloc(reader, CORNERS_MAX, sizeof *out->points);
    if (out->points == NULL) {
        return STATUS_LIMIT;
    }
    struct pose object = opendrive_road_pose(network, road, s_m, t_m);
    object.heading_rad = dmath_wrap_angle(object.heading_rad + heading);
    TRY(read_outline(reader, element, road, object, out));
    if (out->point_count >= 3) {
        network->crosswalk_count++;
    } else {
        network->notes[OPENDRIVE_NOTE_OBJECT]++;
    }
    return STATUS_OK;
}

/* ---- all ---- */

static bool is_crosswalk(const struct xml_element *object)
{
    const char *type = xml_attribute(object, "type");
    return type != NULL && strcmp(type, "crosswalk") == 0;
}

static enum status read_along(struct od_reader *reader, uint32_t road)
{
    struct opendrive_network *network = reader->network;
    const struct xml_element *element = reader->sources[road].element;
    const struct xml_element *signals = xml_child(element, OD_SIGNALS);
    const struct xml_element *objects = xml_child(element, OD_OBJECTS);
    const struct xml_element *child = signals != NULL ? signals->first : NULL;
    for (; child != NULL; child = child->next) {
        if (child->tag == OD_SIGNAL || child->tag == OD_SIGNAL_REFERENCE) {
            TRY(read_signal(reader, child, road, &network->signals[network->signal_count]));
            network->signal_count++;
        }
    }
    child = objects != NULL ? xml_child(objects, OD_OBJECT) : NULL;
    for (; child != NULL; child = xml_next(child)) {
        if (is_crosswalk(child)) {
            TRY(read_crosswalk(reader, child, road));
        } else {
            network->notes[OPENDRIVE_NOTE_OBJECT]++;
        }
    }
    return STATUS_OK;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct opendrive_name *)a)->id, ((const struct opendrive_name *)b)->id);
}

/* A reference takes from its signal what that one is; a controller names its signals. */
static enum status connect(struct od_reader *reader)
{
    struct opendrive_network *network = reader->network;
    struct opendrive_name *names = arena_alloc(reader->tree, network->signal_count, sizeof *names);
    uint32_t count = 0;
    TRY(memory_check(names, reader->error, "%s: out of memory", network->name));
    for (uint32_t i = 0; i < network->signal_count; i++) {
        if (!network->signals[i].reference) {
            names[count++] = (struct opendrive_name){network->signals[i].id, i};
        }
    }
    qsort(names, count, sizeof *names, compare_names);
    const struct xml_element *element = xml_child(reader->root, OD_CONTROLLER);
    for (uint32_t i = 0; i < network->controller_count; i++, element = xml_next(element)) {
        const struct xml_element *control = xml_child(element, OD_CONTROL);
        network->controllers[i] = od_copy(reader, xml_attribute(element, "id"));
        if (network->controllers[i] == NULL) {
            return STATUS_LIMIT;
        }
        for (; control != NULL; control = xml_next(control)) {
            struct opendrive_name key = {xml_attribute(control, "signalId"), 0};
            const struct opendrive_name *found =
                key.id != NULL && count > 0 ? bsearch(&key, names, count, sizeof key, compare_names)
                                            : NULL;
            if (found != NULL) {
                network->signals[found->index].controller = i;
            }
        }
    }
    for (uint32_t i = 0; i < network->signal_count; i++) {
        struct opendrive_signal *signal = &network->signals[i];
        struct opendrive_name key = {signal->id, 0};
        const struct opendrive_name *found =
            signal->reference && count > 0 ? bsearch(&key, names, count, sizeof key, compare_names)
                                           : NULL;
        if (found != NULL) {
            const struct opendrive_signal *of = &network->signals[found->index];
            signal->name = of->name;
            signal->type = of->type;
            signal->subtype = of->subtype;
            signal->country = of->country;
            signal->value = of->value;
            signal->dynamic = of->dynamic;
            signal->controller = of->controller;
        }
    }
    return STATUS_OK;
}

enum status od_signals_read(struct od_reader *reader)
{
    struct opendrive_network *network = reader->network;
    uint32_t signals = 0;
    uint32_t crosswalks = 0;
    for (uint32_t i = 0; i < network->road_count; i++) {
        const struct xml_element *element = reader->sources[i].element;
        const struct xml_element *group = xml_child(element, OD_SIGNALS);
        const struct xml_element *objects = xml_child(element, OD_OBJECTS);
        signals += group != NULL ? xml_count(group, OD_SIGNAL) : 0;
        signals += group != NULL ? xml_count(group, OD_SIGNAL_REFERENCE) : 0;
        const struct xml_element *object = objects != NULL ? xml_child(objects, OD_OBJECT) : NULL;
        for (; object != NULL; object = xml_next(object)) {
            crosswalks += is_crosswalk(object);
        }
    }
    network->controller_count = xml_count(reader->root, OD_CONTROLLER);
    network->signals = od_alloc(reader, signals, sizeof *network->signals);
    network->crosswalks = od_alloc(reader, crosswalks, sizeof *network->crosswalks);
    network->controllers =
        od_alloc(reader, network->controller_count, sizeof *network->controllers);
    if (network->signals == NULL || network->crosswalks == NULL || network->controllers == NULL) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i < network->road_count; i++) {
        TRY(read_along(reader, i));
    }
    return connect(reader);
}
