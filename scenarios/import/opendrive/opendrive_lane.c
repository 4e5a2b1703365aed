/*
 * OpenDRIVE: lane sections of a road, their lanes from the centre outwards.
 *
 * Sections are sorted by s. A lane without a width has none and is noted; a width that turns
 * negative counts as 0. Whether traffic runs against s follows from the side of the centre, the
 * road's rule and the lane's own direction.
 */
#include "base/dmath.h"
#include "scenarios/import/opendrive/opendrive_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static enum opendrive_lane_type lane_type(struct od_reader *reader, const char *name)
{
    static const struct {
        const char *name;
        enum opendrive_lane_type type;
    } types[] = {
        {"driving", OPENDRIVE_LANE_DRIVING},     {"entry", OPENDRIVE_LANE_DRIVING},
        {"exit", OPENDRIVE_LANE_DRIVING},        {"onRamp", OPENDRIVE_LANE_DRIVING},
        {"offRamp", OPENDRIVE_LANE_DRIVING},     {"connectingRamp", OPENDRIVE_LANE_DRIVING},
        {"slipLane", OPENDRIVE_LANE_DRIVING},    {"mwyEntry", OPENDRIVE_LANE_DRIVING},
        {"mwyExit", OPENDRIVE_LANE_DRIVING},     {"bidirectional", OPENDRIVE_LANE_DRIVING},
        {"bus", OPENDRIVE_LANE_DRIVING},         {"taxi", OPENDRIVE_LANE_DRIVING},
        {"HOV", OPENDRIVE_LANE_DRIVING},         {"shared", OPENDRIVE_LANE_DRIVING},
        {"shoulder", OPENDRIVE_LANE_SHOULDER},   {"stop", OPENDRIVE_LANE_SHOULDER},
        {"border", OPENDRIVE_LANE_SHOULDER},     {"parking", OPENDRIVE_LANE_SHOULDER},
        {"restricted", OPENDRIVE_LANE_SHOULDER}, {"biking", OPENDRIVE_LANE_BIKING},
        {"sidewalk", OPENDRIVE_LANE_SIDEWALK},   {"walking", OPENDRIVE_LANE_SIDEWALK},
        {"none", OPENDRIVE_LANE_NONE},           {"median", OPENDRIVE_LANE_NONE},
        {"curb", OPENDRIVE_LANE_NONE},           {"rail", OPENDRIVE_LANE_NONE},
        {"tram", OPENDRIVE_LANE_NONE},           {"roadWorks", OPENDRIVE_LANE_NONE},
        {"special1", OPENDRIVE_LANE_NONE},       {"special2", OPENDRIVE_LANE_NONE},
        {"special3", OPENDRIVE_LANE_NONE},
    };
    for (size_t i = 0; name != NULL && i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i].name, name) == 0) {
            return types[i].type;
        }
    }
    reader->network->notes[OPENDRIVE_NOTE_LANE_TYPE]++;
    return OPENDRIVE_LANE_NONE;
}

/* The mark at the beginning of the section. */
static enum opendrive_mark read_mark(const struct xml_element *lane)
{
    const struct xml_element *mark = od_first(lane, OD_ROAD_MARK, "sOffset");
    const char *type = mark != NULL ? xml_attribute(mark, "type") : NULL;
    if (type == NULL || type[0] == '\0') {
        return OPENDRIVE_MARK_UNKNOWN;
    }
    if (strcmp(type, "none") == 0) {
        return OPENDRIVE_MARK_NONE;
    }
    /* Of two lines the one nearer to the inner lane comes first; both broken is broken. */
    bool broken = strcmp(type, "broken") == 0 || strcmp(type, "broken broken") == 0 ||
                  strcmp(type, "botts dots") == 0;
    return broken ? OPENDRIVE_MARK_BROKEN : OPENDRIVE_MARK_SOLID;
}

static enum status read_speeds(struct od_reader *reader, const struct xml_element *element,
                               double section_s_m, struct opendrive_lane *lane)
{
    uint32_t count = xml_count(element, OD_SPEED);
    if (count == 0) {
        return STATUS_OK;
    }
    lane->speeds = od_alloc(reader, count, sizeof *lane->speeds);
    if (lane->speeds == NULL) {
        return STATUS_LIMIT;
    }
    const struct xml_element *speed = xml_child(element, OD_SPEED);
    for (; speed != NULL; speed = xml_next(speed)) {
        struct opendrive_speed *out = &lane->speeds[lane->speed_count++];
        TRY(od_optional(reader, speed, "sOffset", 0, OD_LENGTH_MAX_M, &out->s_m));
        TRY(od_speed(reader, speed, &out->limit_mps));
        out->s_m += section_s_m;
    }
    od_speeds_sort(lane->speeds, lane->speed_count);
    return STATUS_OK;
}

static enum status read_lane_link(struct od_reader *reader, const struct xml_element *element,
                                  struct opendrive_lane *lane)
{
    const struct xml_element *link = xml_child(element, OD_LINK);
    const struct xml_element *before = link != NULL ? xml_child(link, OD_PREDECESSOR) : NULL;
    const struct xml_element *after = link != NULL ? xml_child(link, OD_SUCCESSOR) : NULL;
    if (before != NULL) {
        lane->has_predecessor = true;
        TRY(od_int(reader, before, "id", &lane->predecessor_id));
    }
    if (after != NULL) {
        lane->has_successor = true;
        TRY(od_int(reader, after, "id", &lane->successor_id));
    }
    return STATUS_OK;
}

static enum status read_lane(struct od_reader *reader, const struct xml_element *element,
                             double from_m, const struct opendrive_section *section, bool left,
                             struct opendrive_lane *lane)
{
    const struct opendrive_road *road = &reader->network->roads[section->road];
    const char *type = xml_attribute(element, "type");
    const char *direction = xml_attribute(element, "direction");
    *lane = (struct opendrive_lane){.road = section->road, .line = element->line};
    lane->section = reader->network->section_count;
    TRY(od_int(reader, element, "id", &lane->id));
    if (left ? lane->id <= 0 : lane->id >= 0) {
        return od_fail(reader, element, STATUS_BAD_INPUT, "id: expected one %s 0 in <%s>, found %d",
                       left ? "above" : "below", left ? "left" : "right", lane->id);
    }
    lane->type = lane_type(reader, type);
    lane->type_name = od_copy(reader, type);
    if (lane->type_name == NULL) {
        return STATUS_LIMIT;
    }
    bool reversed = direction != NULL && strcmp(direction, "reversed") == 0;
    lane->against = (left != road->left_hand) != reversed;
    lane->outer_mark = read_mark(element);
    TRY(od_cubics(reader, element, OD_WIDTH, "sOffset", from_m, &lane->widths));
    if (lane->widths.count == 0) {
        lane->is_border = true;
        TRY(od_cubics(reader, element, OD_BORDER, "sOffset", from_m, &lane->widths));
    }
    if (lane->widths.count == 0) {
        lane->is_border = false;
        reader->network->notes[OPENDRIVE_NOTE_WIDTH]++;
    }
    TRY(read_speeds(reader, element, from_m, lane));
    return read_lane_link(reader, element, lane);
}

static int compare_lanes(const void *a, const void *b)
{
    int32_t left = abs(((const struct opendrive_lane *)a)->id);
    int32_t right = abs(((const struct opendrive_lane *)b)->id);
    return left < right ? -1 : left > right;
}

/* Lanes of a side, from the section's element or from the one whose lanes go on beside it. */
static enum status read_side(struct od_reader *reader, const struct xml_element *element,
                             double from_m, struct opendrive_section *section, bool left)
{
    struct opendrive_network *network = reader->network;
    const struct xml_element *group = xml_child(element, left ? OD_LEFT : OD_RIGHT);
    const struct xml_element *child = group != NULL ? xml_child(group, OD_LANE) : NULL;
    uint32_t first = network->lane_count;
    uint32_t count = 0;
    for (; child != NULL; child = xml_next(child)) {
        if (count == OPENDRIVE_SECTION_LANES_MAX) {
            return od_fail(reader, child, STATUS_LIMIT,
                           "expected at most %d lanes on a side, found more",
                           OPENDRIVE_SECTION_LANES_MAX);
        }
        TRY(read_lane(reader, child, from_m, section, left, &network->lanes[first + count]));
        count++;
    }
    qsort(network->lanes + first, count, sizeof *network->lanes, compare_lanes);
    for (uint32_t i = 1; i < count; i++) {
        if (network->lanes[first + i].id == network->lanes[first + i - 1].id) {
            return od_fail(reader, element, STATUS_BAD_INPUT,
                           "expected each lane once, found lane %d again in line %u",
                           network->lanes[first + i].id, network->lanes[first + i].line);
        }
    }
    network->lane_count += count;
    *(left ? &section->left_first : &section->right_first) = first;
    *(left ? &section->left_count : &section->right_count) = count;
    return STATUS_OK;
}

/* Section whose element has the lanes of each side. */
struct side_source {
    const struct xml_element *element;
    double from_m;
};

/* Lanes of a side that a section for the other one leaves as they are: each leads to itself. */
static void carry_on(struct opendrive_network *network, struct opendrive_section *section,
                     bool left)
{
    uint32_t first = left ? section->left_first : section->right_first;
    uint32_t count = left ? section->left_count : section->right_count;
    uint32_t before = left ? section[-1].left_first : section[-1].right_first;
    for (uint32_t i = 0; i < count; i++) {
        struct opendrive_lane *lane = &network->lanes[first + i];
        struct opendrive_lane *earlier = &network->lanes[before + i];
        lane->has_predecessor = true;
        lane->predecessor_id = lane->id;
        earlier->has_successor = true;
        earlier->successor_id = lane->id;
    }
}

static enum status read_section(struct od_reader *reader, const struct xml_element *element,
                                uint32_t road, struct side_source sources[2])
{
    struct opendrive_network *network = reader->network;
    struct opendrive_section *section = &network->sections[network->section_count];
    const struct xml_element *centre = xml_child(element, OD_CENTER);
    const struct xml_element *lane = centre != NULL ? xml_child(centre, OD_LANE) : NULL;
    const char *single = xml_attribute(element, "singleSide");
    *section = (struct opendrive_section){.road = road};
    TRY(od_number(reader, element, "s", -1e-3, OD_LENGTH_MAX_M, &section->s_m));
    section->centre_mark = lane != NULL ? read_mark(lane) : OPENDRIVE_MARK_UNKNOWN;
    for (int side = 0; side < 2; side++) {
        bool left = side == 0;
        bool goes_on = single != NULL && strcmp(single, "true") == 0 &&
                       sources[side].element != NULL &&
                       xml_child(element, left ? OD_LEFT : OD_RIGHT) == NULL;
        if (!goes_on) {
            sources[side] = (struct side_source){element, section->s_m};
        }
        TRY(read_side(reader, sources[side].element, sources[side].from_m, section, left));
        if (goes_on) {
            carry_on(network, section, left);
        }
    }
    network->section_count++;
    return STATUS_OK;
}

enum status od_lanes_read(struct od_reader *reader, const struct xml_element *element,
                          uint32_t road_index)
{
    struct opendrive_network *network = reader->network;
    struct opendrive_road *road = &network->roads[road_index];
    const struct xml_element *child;
    struct side_source sides[2] = {{NULL, 0}, {NULL, 0}};
    TRY(od_required(reader, element, OD_LANE_SECTION, &child));
    road->section_first = network->section_count;
    for (; child != NULL; child = xml_next(child)) {
        TRY(read_section(reader, child, road_index, sides));
        struct opendrive_section *section = &network->sections[network->section_count - 1];
        if (road->section_count > 0 && section->s_m < section[-1].s_m) {
            return od_fail(reader, child, STATUS_BAD_INPUT,
                           "s: expected sections in ascending order, found %g after %g",
                           section->s_m, section[-1].s_m);
        }
        road->section_count++;
    }
    struct opendrive_section *sections = &network->sections[road->section_first];
    sections[0].s_m = 0;
    for (uint32_t i = 0; i < road->section_count; i++) {
        double next_m = i + 1 < road->section_count ? sections[i + 1].s_m : road->length_m;
        sections[i].end_m = dmath_max(sections[i].s_m, next_m);
    }
    return STATUS_OK;
}
