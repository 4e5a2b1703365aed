/*
 * CommonRoad import: successors, neighbours and junctions between the lanes of a map.
 *
 * Links to lanelets that are not in the file (maps are often cut out of larger ones) are dropped;
 * gaps between a lane and its successor are bridged where that is plausible. Invariant: what is
 * left passes map_validate().
 */
#include "scenarios/import/commonroad.h"
#include "scenarios/resolve.h"

#include <math.h>
#include <string.h>

static const double GAP_MAX_M = 1.5;     /* of a scenario document */
static const double BRIDGE_MAX_M = 10.0; /* a gap up to this is closed by a straight piece */
static const double BRIDGE_COSINE = 0.5; /* if it goes on within 60 degrees */

static struct vec2 line_end(const struct lane *lane)
{
    return lane->centre_line[lane->point_count - 1];
}

/* ---- successors ---- */

struct link_list {
    uint32_t count;
    uint32_t to[LIMIT_LANE_LINKS];
};

static void add_link(struct cr_context *context, struct link_list *links, uint32_t from,
                     uint32_t to)
{
    struct link_list *list = &links[from];
    for (uint32_t i = 0; i < list->count; i++) {
        if (list->to[i] == to) {
            return;
        }
    }
    if (list->count == LIMIT_LANE_LINKS) {
        cr_note(context, CR_NOTE_LINK_DROPPED);
        return;
    }
    list->to[list->count++] = to;
}

static enum status read_successions(struct cr_context *context, const struct cr_map *map,
                                    const struct cr_lanelet *lanelet, struct link_list *links)
{
    char id[LIMIT_ID_BYTES];
    for (uint32_t i = 0; i + 1 < lanelet->lane_count; i++) {
        add_link(context, links, lanelet->first_lane + i, lanelet->first_lane + i + 1);
    }
    for (const struct xml_element *e = lanelet->element->first; e != NULL; e = e->next) {
        if (e->tag != CR_SUCCESSOR && e->tag != CR_PREDECESSOR) {
            continue;
        }
        TRY(cr_reference(context, e, "ref", id));
        const struct cr_lanelet *other = cr_map_find(map, id);
        if (other == NULL || (other->lane_count == 0 && !other->crosswalk)) {
            cr_note(context, CR_NOTE_LINK_DROPPED);
        } else if (other->lane_count > 0 && lanelet->lane_count > 0) {
            const struct cr_lanelet *from = e->tag == CR_SUCCESSOR ? lanelet : other;
            const struct cr_lanelet *to = e->tag == CR_SUCCESSOR ? other : lanelet;
            add_link(context, links, from->first_lane + from->lane_count - 1, to->first_lane);
        }
    }
    return STATUS_OK;
}

/* Whether a lane may go on straight to `target` (or come from it, at_start). */
static bool bridge_is_plausible(const struct lane *lane, struct vec2 target, bool at_start)
{
    uint32_t last = lane->point_count - 1;
    struct vec2 near = lane->centre_line[at_start ? 0 : last];
    struct vec2 inner = lane->centre_line[at_start ? 1 : last - 1];
    double ux = near.x_m - inner.x_m;
    double uy = near.y_m - inner.y_m;
    double vx = target.x_m - near.x_m;
    double vy = target.y_m - near.y_m;
    double lengths = sqrt((ux * ux + uy * uy) * (vx * vx + vy * vy));
    return lengths > 0 && ux * vx + uy * vy > BRIDGE_COSINE * lengths;
}

/* Adds `target` at one end of the lane; false leaves the lane alone. */
static enum status extend(struct cr_context *context, struct lane *lane, struct vec2 target,
                          bool at_start, bool *done)
{
    struct cr_line line = {.count = lane->point_count + 1};
    uint32_t shift = at_start ? 1 : 0;
    uint32_t crossing;
    *done = false;
    if (line.count > LIMIT_LANE_POINTS || !bridge_is_plausible(lane, target, at_start)) {
        return STATUS_OK;
    }
    line.points = cr_alloc(context, line.count, sizeof *line.points);
    line.width_m = cr_alloc(context, line.count, sizeof *line.width_m);
    if (line.points == NULL || line.width_m == NULL) {
        return STATUS_LIMIT;
    }
    memcpy(line.points + shift, lane->centre_line, lane->point_count * sizeof *line.points);
    memcpy(line.width_m + shift, lane->width_m, lane->point_count * sizeof *line.width_m);
    uint32_t added = at_start ? 0 : lane->point_count;
    line.points[added] = target;
    line.width_m[added] = lane->width_m[at_start ? 0 : lane->point_count - 1];
    if (!cr_line_crosses(&line, &crossing, &crossing)) {
        lane->centre_line = line.points;
        lane->width_m = line.width_m;
        lane->point_count = line.count;
        *done = true;
    }
    return STATUS_OK;
}

/* A gap is bridged from the lane that has no other link at that end, so that no other link breaks.
 */
static enum status close_gap(struct cr_context *context, struct map *map,
                             const struct link_list *links, const uint32_t *sources, uint32_t from,
                             uint32_t to, bool *linked)
{
    struct vec2 end = line_end(&map->lanes[from]);
    struct vec2 start = map->lanes[to].centre_line[0];
    double gap_m = points_distance_m(end, start);
    *linked = gap_m <= GAP_MAX_M;
    if (*linked || gap_m > BRIDGE_MAX_M || from == to) {
        return STATUS_OK;
    }
    if (links[from].count == 1) {
        TRY(extend(context, &map->lanes[from], start, false, linked));
    }
    if (!*linked && sources[to] == 1) {
        TRY(extend(context, &map->lanes[to], end, true, linked));
    }
    if (*linked) {
        cr_note(context, CR_NOTE_LINE_REPAIRED);
    }
    return STATUS_OK;
}

static enum status keep_links(struct cr_context *context, struct map *map, struct link_list *links)
{
    uint32_t *sources = cr_alloc(context, map->lane_count, sizeof *sources);
    if (sources == NULL) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i < map->lane_count; i++) {
        for (uint32_t k = 0; k < links[i].count; k++) {
            sources[links[i].to[k]]++;
        }
    }
    for (uint32_t i = 0; i < map->lane_count; i++) {
        struct lane *lane = &map->lanes[i];
        lane->successors = cr_alloc(context, links[i].count, sizeof *lane->successors);
        if (lane->successors == NULL) {
            return STATUS_LIMIT;
        }
        for (uint32_t k = 0; k < links[i].count; k++) {
            bool linked;
            TRY(close_gap(context, map, links, sources, i, links[i].to[k], &linked));
            if (linked) {
                lane->successors[lane->successor_count++] = links[i].to[k];
            } else {
                cr_note(context, CR_NOTE_LINK_DROPPED);
            }
        }
    }
    return STATUS_OK;
}

/* ---- neighbours ---- */

static enum status read_neighbour(struct cr_context *context, struct cr_map *map,
                                  const struct cr_lanelet *lanelet, bool left)
{
    char id[LIMIT_ID_BYTES];
    struct lane *lane = &map->map.lanes[lanelet->first_lane];
    const struct xml_element *e =
        xml_child(lanelet->element, left ? CR_ADJACENT_LEFT : CR_ADJACENT_RIGHT);
    if (e == NULL) {
        return STATUS_OK;
    }
    TRY(cr_reference(context, e, "ref", id));
    const char *direction = xml_attribute(e, "drivingDir");
    bool opposite = direction != NULL && strcmp(direction, "opposite") == 0;
    if (direction != NULL && !opposite && strcmp(direction, "same") != 0) {
        return cr_fail(context, e, STATUS_BAD_INPUT,
                       "expected drivingDir \"same\" or \"opposite\", found \"%.64s\"", direction);
    }
    const struct cr_lanelet *other = cr_map_find(map, id);
    if (other == NULL || (other->lane_count == 0 && !other->crosswalk)) {
        cr_note(context, CR_NOTE_LINK_DROPPED);
        return STATUS_OK;
    }
    if (other->lane_count != 1 || lanelet->lane_count != 1 || other == lanelet) {
        return STATUS_OK; /* beside a crosswalk, or beside one of several parts */
    }
    if (left) {
        lane->left = (int32_t)other->first_lane;
        lane->left_opposite = opposite;
    } else {
        lane->right = (int32_t)other->first_lane;
        lane->right_opposite = opposite;
    }
    return STATUS_OK;
}

static bool side_contradicts(const struct map *map, int32_t me, bool left_side)
{
    const struct lane *lane = &map->lanes[me];
    int32_t side = left_side ? lane->left : lane->right;
    bool opposite = left_side ? lane->left_opposite : lane->right_opposite;
    if (side < 0) {
        return false;
    }
    const struct lane *other = &map->lanes[side];
    bool left_is_me = other->left == me;
    bool right_is_me = other->right == me;
    bool flags_differ = (left_is_me && other->left_opposite != opposite) ||
                        (right_is_me && other->right_opposite != opposite);
    bool wrong_side =
        (left_is_me || right_is_me) && !(opposite == left_side ? left_is_me : right_is_me);
    return flags_differ || wrong_side || (!left_side && lane->left == lane->right);
}

/* Of two lanes that contradict each other the later one loses its link. */
static void drop_contradictions(struct cr_context *context, struct map *map)
{
    for (int32_t i = (int32_t)map->lane_count - 1; i >= 0; i--) {
        struct lane *lane = &map->lanes[i];
        if (side_contradicts(map, i, false)) {
            lane->right = -1;
            lane->right_opposite = false;
            cr_note(context, CR_NOTE_LINK_DROPPED);
        }
        if (side_contradicts(map, i, true)) {
            lane->left = -1;
            lane->left_opposite = false;
            cr_note(context, CR_NOTE_LINK_DROPPED);
        }
    }
}

/* ---- junctions and markings ---- */

static void mark_junction(struct cr_map *map, const char *id)
{
    const struct cr_lanelet *lanelet = cr_map_find(map, id);
    for (uint32_t i = 0; lanelet != NULL && i < lanelet->lane_count; i++) {
        map->map.lanes[lanelet->first_lane + i].intersection = true;
    }
}

/* The lanelets across a junction are those that its incoming ones lead to. */
static enum status read_junctions(struct cr_context *context, const struct xml_element *root,
                                  struct cr_map *map)
{
    char id[LIMIT_ID_BYTES];
    const struct xml_element *junction = xml_child(root, CR_INTERSECTION);
    for (; junction != NULL; junction = xml_next(junction)) {
        const struct xml_element *incoming = xml_child(junction, CR_INCOMING);
        for (; incoming != NULL; incoming = xml_next(incoming)) {
            for (const struct xml_element *e = incoming->first; e != NULL; e = e->next) {
                if (e->tag == CR_SUCCESSORS_LEFT || e->tag == CR_SUCCESSORS_RIGHT ||
                    e->tag == CR_SUCCESSORS_STRAIGHT) {
                    TRY(cr_reference(context, e, "ref", id));
                    mark_junction(map, id);
                }
            }
        }
    }
    return STATUS_OK;
}

/* Default of silent files: none within a junction, dashed between lanes, solid at the edge. */
static enum marking default_marking(const struct lane *lane, int32_t side)
{
    if (lane->intersection) {
        return MARKING_NONE;
    }
    return side >= 0 ? MARKING_DASHED : MARKING_SOLID;
}

enum status cr_links_read(struct cr_context *context, struct cr_map *map)
{
    struct link_list *links = cr_alloc(context, map->map.lane_count, sizeof *links);
    if (links == NULL) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i < map->lanelet_count; i++) {
        const struct cr_lanelet *lanelet = &map->lanelets[i];
        TRY(read_successions(context, map, lanelet, links));
        if (lanelet->lane_count > 0) {
            TRY(read_neighbour(context, map, lanelet, true));
            TRY(read_neighbour(context, map, lanelet, false));
        }
    }
    TRY(keep_links(context, &map->map, links));
    drop_contradictions(context, &map->map);
    TRY(read_junctions(context, map->lanelets[0].element->parent, map));
    for (uint32_t i = 0; i < map->map.lane_count; i++) {
        struct lane *lane = &map->map.lanes[i];
        if (lane->left_marking == MARKING_COUNT) {
            lane->left_marking = default_marking(lane, lane->left);
        }
        if (lane->right_marking == MARKING_COUNT) {
            lane->right_marking = default_marking(lane, lane->right);
        }
    }
    return STATUS_OK;
}
