/*
 * OpenDRIVE: how lanes continue, over sections, roads and junctions.
 *
 * The file says which ends of lanes meet, from both sides or from one; each meeting becomes a step
 * in the direction of travel, from the lane that leaves there to the one that enters. Meetings of
 * two lanes that both leave are noted and dropped, and so are links to what is not there.
 * Invariant: lane b is in next of a exactly where a is in previous of b.
 */
#include "base/dmath.h"
#include "scenarios/import/opendrive/opendrive_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct edge {
    uint32_t from;
    uint32_t to;
};

struct linker {
    struct od_reader *reader;
    struct opendrive_network *network;
    struct opendrive_name *junctions; /* sorted by id */
    size_t count;
    size_t capacity;
    struct edge *edges; /* malloc'ed */
};

/* ---- edges ---- */

static enum status add_edge(struct linker *linker, uint32_t from, uint32_t to)
{
    if (linker->count == linker->capacity) {
        size_t capacity = linker->capacity == 0 ? 1024 : linker->capacity * 2;
        struct edge *edges = realloc(linker->edges, capacity * sizeof *edges);
        TRY(memory_check(edges, linker->reader->error, "%s: out of memory", linker->network->name));
        linker->edges = edges;
        linker->capacity = capacity;
    }
    linker->edges[linker->count++] = (struct edge){from, to};
    return STATUS_OK;
}

/* Whether traffic on the lane leaves it at that end. */
static bool leaves(const struct opendrive_lane *lane, enum opendrive_contact end)
{
    return lane->against ? end == OPENDRIVE_START : end == OPENDRIVE_END;
}

static enum status join(struct linker *linker, uint32_t a, enum opendrive_contact a_end, uint32_t b,
                        enum opendrive_contact b_end)
{
    const struct opendrive_lane *lanes = linker->network->lanes;
    bool a_leaves = leaves(&lanes[a], a_end);
    if (a_leaves == leaves(&lanes[b], b_end)) {
        linker->network->notes[OPENDRIVE_NOTE_LINK]++;
        return STATUS_OK;
    }
    return a_leaves ? add_edge(linker, a, b) : add_edge(linker, b, a);
}

static uint32_t end_section(const struct opendrive_road *road, enum opendrive_contact end)
{
    return end == OPENDRIVE_START ? road->section_first
                                  : road->section_first + road->section_count - 1;
}

static double end_s_m(const struct opendrive_network *network, uint32_t section,
                      enum opendrive_contact end)
{
    const struct opendrive_section *at = &network->sections[section];
    return end == OPENDRIVE_START ? at->s_m : at->end_m;
}

static double distance_m(struct pose a, struct pose b)
{
    return sqrt((a.x_m - b.x_m) * (a.x_m - b.x_m) + (a.y_m - b.y_m) * (a.y_m - b.y_m));
}

/* Whether the ends of two lanes lie on each other. */
static bool lanes_touch(const struct opendrive_network *network, uint32_t a,
                        enum opendrive_contact a_end, uint32_t b, enum opendrive_contact b_end)
{
    double a_m = end_s_m(network, network->lanes[a].section, a_end);
    double b_m = end_s_m(network, network->lanes[b].section, b_end);
    double miss_m = distance_m(opendrive_lane_pose(network, a, a_m, 0),
                               opendrive_lane_pose(network, b, b_m, 0));
    double wider_m =
        fabs(opendrive_lane_width_m(network, a, a_m) - opendrive_lane_width_m(network, b, b_m));
    return miss_m < OD_TOUCH_M && wider_m < 2 * OD_TOUCH_M;
}

/* ---- sections and roads that follow each other ---- */

/* Joins the lanes of one section's end to those of another section's end. */
static enum status join_sections(struct linker *linker, uint32_t section,
                                 enum opendrive_contact end, uint32_t other,
                                 enum opendrive_contact other_end)
{
    struct opendrive_network *network = linker->network;
    const struct opendrive_section *at = &network->sections[section];
    for (uint32_t i = 0; i < at->left_count + at->right_count; i++) {
        uint32_t lane =
            i < at->left_count ? at->left_first + i : at->right_first + i - at->left_count;
        const struct opendrive_lane *from = &network->lanes[lane];
        bool linked = end == OPENDRIVE_START ? from->has_predecessor : from->has_successor;
        int32_t id = end == OPENDRIVE_START ? from->predecessor_id : from->successor_id;
        uint32_t to = linked && id != 0 ? od_lane_in(network, other, id) : OPENDRIVE_NONE;
        if (to != OPENDRIVE_NONE) {
            TRY(join(linker, lane, end, to, other_end));
            continue;
        }
        network->notes[OPENDRIVE_NOTE_LINK] += linked;
        to = od_lane_in(network, other, end == other_end ? -from->id : from->id);
        if (linked || to == OPENDRIVE_NONE || from->has_predecessor || from->has_successor ||
            network->lanes[to].has_predecessor || network->lanes[to].has_successor ||
            !lanes_touch(network, lane, end, to, other_end)) {
            continue;
        }
        /* Neither lane says anything, and one lies where the other ends. */
        network->notes[OPENDRIVE_NOTE_LINK_FOUND]++;
        TRY(join(linker, lane, end, to, other_end));
    }
    return STATUS_OK;
}

static enum status join_road(struct linker *linker, const struct opendrive_road *road)
{
    for (uint32_t i = 0; i + 1 < road->section_count; i++) {
        uint32_t section = road->section_first + i;
        TRY(join_sections(linker, section, OPENDRIVE_END, section + 1, OPENDRIVE_START));
        TRY(join_sections(linker, section + 1, OPENDRIVE_START, section, OPENDRIVE_END));
    }
    for (int side = 0; side < 2; side++) {
        const struct opendrive_link *link = &road->ends[side];
        enum opendrive_contact end = side == 0 ? OPENDRIVE_START : OPENDRIVE_END;
        if (link->road != OPENDRIVE_NONE) {
            const struct opendrive_road *other = &linker->network->roads[link->road];
            TRY(join_sections(linker, end_section(road, end), end,
                              end_section(other, link->contact), link->contact));
        }
    }
    return STATUS_OK;
}

/* ---- ids to indices ---- */

static uint32_t junction_find(const struct linker *linker, const char *id)
{
    for (uint32_t low = 0, high = linker->network->junction_count; low < high;) {
        uint32_t middle = low + (high - low) / 2;
        int order = strcmp(linker->junctions[middle].id, id);
        if (order == 0) {
            return linker->junctions[middle].index;
        }
        low = order < 0 ? middle + 1 : low;
        high = order < 0 ? high : middle;
    }
    return OPENDRIVE_NONE;
}

static enum opendrive_contact read_contact(const struct xml_element *element)
{
    const char *text = xml_attribute(element, "contactPoint");
    if (text == NULL) {
        return OPENDRIVE_CONTACT_NONE;
    }
    return strcmp(text, "start") == 0 ? OPENDRIVE_START
           : strcmp(text, "end") == 0 ? OPENDRIVE_END
                                      : OPENDRIVE_CONTACT_NONE;
}

static struct pose road_end(const struct opendrive_network *network, uint32_t road,
                            enum opendrive_contact end)
{
    double curvature;
    const struct opendrive_road *at = &network->roads[road];
    return od_reference_pose(at, end == OPENDRIVE_START ? 0 : at->length_m, &curvature);
}

/* The end of a road that is nearer to a place. */
static enum opendrive_contact nearer_end(const struct opendrive_network *network, uint32_t road,
                                         struct pose place)
{
    double start = distance_m(road_end(network, road, OPENDRIVE_START), place);
    double end = distance_m(road_end(network, road, OPENDRIVE_END), place);
    return start <= end ? OPENDRIVE_START : OPENDRIVE_END;
}

static enum status resolve_road(struct linker *linker, uint32_t index)
{
    struct opendrive_network *network = linker->network;
    struct opendrive_road *road = &network->roads[index];
    const struct od_road_source *source = &linker->reader->sources[index];
    if (source->junction != NULL && strcmp(source->junction, "-1") != 0) {
        road->junction = junction_find(linker, source->junction);
    }
    for (int side = 0; side < 2; side++) {
        const struct xml_element *element = source->links[side];
        const char *type = element != NULL ? xml_attribute(element, "elementType") : NULL;
        const char *id = element != NULL ? xml_attribute(element, "elementId") : NULL;
        struct opendrive_link *link = &road->ends[side];
        if (id == NULL) {
            continue;
        }
        if (type != NULL && strcmp(type, "junction") == 0) {
            link->junction = junction_find(linker, id);
        } else {
            link->road = opendrive_road_find(network, id);
        }
        if (link->road != OPENDRIVE_NONE) {
            enum opendrive_contact here = side == 0 ? OPENDRIVE_START : OPENDRIVE_END;
            link->contact = read_contact(element);
            if (link->contact == OPENDRIVE_CONTACT_NONE) {
                link->contact = nearer_end(network, link->road, road_end(network, index, here));
            }
        }
        network->notes[OPENDRIVE_NOTE_LINK] +=
            link->road == OPENDRIVE_NONE && link->junction == OPENDRIVE_NONE;
    }
    return STATUS_OK;
}

/* ---- junctions ---- */

/* The end at which a road comes to the junction. */
static enum opendrive_contact incoming_end(const struct linker *linker, uint32_t road,
                                           uint32_t junction, struct pose contact)
{
    const struct opendrive_road *at = &linker->network->roads[road];
    bool starts = at->ends[0].junction == junction;
    bool ends = at->ends[1].junction == junction;
    if (starts != ends) {
        return starts ? OPENDRIVE_START : OPENDRIVE_END;
    }
    return nearer_end(linker->network, road, contact);
}

/* Lane links of a connection, or lanes of the same id that touch where it has none. */
static enum status join_connection(struct linker *linker, const struct xml_element *element,
                                   uint32_t incoming, enum opendrive_contact incoming_at,
                                   uint32_t connecting, enum opendrive_contact contact)
{
    struct opendrive_network *network = linker->network;
    uint32_t from_section = end_section(&network->roads[incoming], incoming_at);
    uint32_t to_section = end_section(&network->roads[connecting], contact);
    const struct xml_element *link = xml_child(element, OD_LANE_LINK);
    for (; link != NULL; link = xml_next(link)) {
        int32_t from_id = 0;
        int32_t to_id = 0;
        TRY(od_int(linker->reader, link, "from", &from_id));
        TRY(od_int(linker->reader, link, "to", &to_id));
        uint32_t from = od_lane_in(network, from_section, from_id);
        uint32_t to = od_lane_in(network, to_section, to_id);
        if (from == OPENDRIVE_NONE || to == OPENDRIVE_NONE) {
            network->notes[OPENDRIVE_NOTE_LINK] += from_id != 0 || to_id != 0;
            continue;
        }
        TRY(join(linker, from, incoming_at, to, contact));
    }
    if (xml_child(element, OD_LANE_LINK) == NULL) {
        const struct opendrive_section *at = &network->sections[from_section];
        for (uint32_t i = 0; i < at->left_count + at->right_count; i++) {
            uint32_t from =
                i < at->left_count ? at->left_first + i : at->right_first + i - at->left_count;
            int32_t id = network->lanes[from].id;
            uint32_t to = od_lane_in(network, to_section, incoming_at == contact ? -id : id);
            if (to != OPENDRIVE_NONE && lanes_touch(network, from, incoming_at, to, contact)) {
                network->notes[OPENDRIVE_NOTE_LINK_FOUND]++;
                TRY(join(linker, from, incoming_at, to, contact));
            }
        }
    }
    return STATUS_OK;
}

static enum status read_connection(struct linker *linker, const struct xml_element *element,
                                   uint32_t junction)
{
    struct opendrive_network *network = linker->network;
    struct opendrive_junction *owner = &network->junctions[junction];
    const char *incoming_id = xml_attribute(element, "incomingRoad");
    const char *connecting_id = xml_attribute(element, "connectingRoad");
    if (connecting_id == NULL) {
        connecting_id = xml_attribute(element, "linkedRoad"); /* a direct junction's */
    }
    uint32_t incoming =
        incoming_id != NULL ? opendrive_road_find(network, incoming_id) : OPENDRIVE_NONE;
    uint32_t connecting =
        connecting_id != NULL ? opendrive_road_find(network, connecting_id) : OPENDRIVE_NONE;
    if (incoming == OPENDRIVE_NONE || connecting == OPENDRIVE_NONE) {
        network->notes[OPENDRIVE_NOTE_LINK]++;
        return STATUS_OK;
    }
    enum opendrive_contact contact = read_contact(element);
    if (contact == OPENDRIVE_CONTACT_NONE) {
        struct pose start = road_end(network, connecting, OPENDRIVE_START);
        enum opendrive_contact at = incoming_end(linker, incoming, junction, start);
        contact = nearer_end(network, connecting, road_end(network, incoming, at));
    }
    enum opendrive_contact at =
        incoming_end(linker, incoming, junction, road_end(network, connecting, contact));
    owner->connections[owner->connection_count++] =
        (struct opendrive_connection){incoming, connecting, contact};
    return join_connection(linker, element, incoming, at, connecting, contact);
}

/* A record names two connecting roads, or two roads that lead to the junction. */
static void read_priority(struct linker *linker, const struct xml_element *element,
                          uint32_t junction)
{
    struct opendrive_network *network = linker->network;
    const char *low_id = xml_attribute(element, "low");
    uint32_t low = low_id != NULL ? opendrive_road_find(network, low_id) : OPENDRIVE_NONE;
    if (low == OPENDRIVE_NONE) {
        network->notes[OPENDRIVE_NOTE_LINK]++;
        return;
    }
    network->roads[low].second_at = junction;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(((const struct opendrive_name *)a)->id, ((const struct opendrive_name *)b)->id);
}

static enum status name_junctions(struct linker *linker)
{
    struct od_reader *reader = linker->reader;
    struct opendrive_network *network = linker->network;
    uint32_t count = xml_count(reader->root, OD_JUNCTION);
    network->junctions = od_alloc(reader, count, sizeof *network->junctions);
    linker->junctions = arena_alloc(reader->tree, count, sizeof *linker->junctions);
    TRY(memory_check(linker->junctions, reader->error, "%s: out of memory", network->name));
    if (network->junctions == NULL) {
        return STATUS_LIMIT;
    }
    const struct xml_element *element = xml_child(reader->root, OD_JUNCTION);
    for (uint32_t i = 0; i < count; i++, element = xml_next(element)) {
        struct opendrive_junction *junction = &network->junctions[i];
        const char *text;
        TRY(od_text(reader, element, "id", &text));
        junction->id = od_copy(reader, text);
        junction->line = element->line;
        junction->connections =
            od_alloc(reader, xml_count(element, OD_CONNECTION), sizeof *junction->connections);
        if (junction->id == NULL || junction->connections == NULL) {
            return STATUS_LIMIT;
        }
        linker->junctions[i] = (struct opendrive_name){junction->id, i};
        network->junction_count++;
    }
    qsort(linker->junctions, count, sizeof *linker->junctions, compare_names);
    return STATUS_OK;
}

/* ---- both directions of the edges ---- */

/* Appends unless it is there; the arrays have room for every edge of the lane. */
static void append(uint32_t *items, uint32_t *count, uint32_t item)
{
    for (uint32_t i = 0; i < *count; i++) {
        if (items[i] == item) {
            return;
        }
    }
    items[(*count)++] = item;
}

static enum status store_edges(struct linker *linker)
{
    struct opendrive_network *network = linker->network;
    for (size_t i = 0; i < linker->count; i++) {
        network->lanes[linker->edges[i].from].next_count++;
        network->lanes[linker->edges[i].to].previous_count++;
    }
    for (uint32_t i = 0; i < network->lane_count; i++) {
        struct opendrive_lane *lane = &network->lanes[i];
        lane->next = od_alloc(linker->reader, lane->next_count, sizeof *lane->next);
        lane->previous = od_alloc(linker->reader, lane->previous_count, sizeof *lane->previous);
        if (lane->next == NULL || lane->previous == NULL) {
            return STATUS_LIMIT;
        }
        lane->next_count = 0;
        lane->previous_count = 0;
    }
    for (size_t i = 0; i < linker->count; i++) {
        struct opendrive_lane *from = &network->lanes[linker->edges[i].from];
        struct opendrive_lane *to = &network->lanes[linker->edges[i].to];
        if (from->next_count == OPENDRIVE_LANE_LINKS_MAX ||
            to->previous_count == OPENDRIVE_LANE_LINKS_MAX) {
            return error_set(linker->reader->error, STATUS_LIMIT,
                             "%s: line %u: <lane>: expected at most %d lanes that follow it or "
                             "that it follows, found more",
                             network->name, from->line, OPENDRIVE_LANE_LINKS_MAX);
        }
        append(from->next, &from->next_count, linker->edges[i].to);
        append(to->previous, &to->previous_count, linker->edges[i].from);
    }
    return STATUS_OK;
}

static enum status link_all(struct linker *linker)
{
    struct opendrive_network *network = linker->network;
    TRY(name_junctions(linker));
    for (uint32_t i = 0; i < network->road_count; i++) {
        TRY(resolve_road(linker, i));
    }
    for (uint32_t i = 0; i < network->road_count; i++) {
        TRY(join_road(linker, &network->roads[i]));
    }
    const struct xml_element *element = xml_child(linker->reader->root, OD_JUNCTION);
    for (uint32_t i = 0; i < network->junction_count; i++, element = xml_next(element)) {
        const struct xml_element *connection = xml_child(element, OD_CONNECTION);
        for (; connection != NULL; connection = xml_next(connection)) {
            TRY(read_connection(linker, connection, i));
        }
        const struct xml_element *priority = xml_child(element, OD_PRIORITY);
        for (; priority != NULL; priority = xml_next(priority)) {
            read_priority(linker, priority, i);
        }
    }
    return store_edges(linker);
}

enum status od_links_read(struct od_reader *reader)
{
    struct linker linker = {.reader = reader, .network = reader->network};
    enum status status = link_all(&linker);
    free(linker.edges);
    return status;
}
