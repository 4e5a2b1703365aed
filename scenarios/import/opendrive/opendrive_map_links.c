/*
 * OpenDRIVE: part of a network as a scenario's map: what connects lanes, and what stands on them.
 *
 * Neighbours lie in the same section and piece. A successor that begins elsewhere than its lane
 * ends (a lane that opens beside another) is left out and counted. A traffic light on a connecting
 * road is for the lanes that lead there.
 */
#include "base/dmath.h"
#include "scenarios/import/opendrive/opendrive_map.h"
#include "scenarios/import/right_of_way.h"
#include "scenarios/resolve.h"

#include <stdio.h>
#include <string.h>

enum { EMPTY_LANES_MAX = 16 };

static const double EMPTY_M = 0.01;  /* wide, or less: no lane */
static const double GAP_MAX_M = 1.5; /* between a lane and its successor */
static const double STOP_M = 1.0;    /* from a stop line to its lane's end, at least */
static const double BEGIN_M = 0.01;  /* from a lane's beginning to a stop line there */
static const double CROSSWALK_AREA_MIN_M2 = 0.1;

/* ---- neighbours and markings ---- */

static enum marking marking_of(enum opendrive_mark mark)
{
    return mark == OPENDRIVE_MARK_BROKEN  ? MARKING_DASHED
           : mark == OPENDRIVE_MARK_SOLID ? MARKING_SOLID
                                          : MARKING_NONE;
}

/* The mark on the border towards larger t, or smaller. */
static enum marking border_marking(const struct opendrive_network *network, uint32_t lane,
                                   bool left)
{
    const struct opendrive_lane *at = &network->lanes[lane];
    const struct opendrive_section *section = &network->sections[at->section];
    if (left == (at->id > 0)) {
        return marking_of(at->outer_mark);
    }
    uint32_t first = at->id > 0 ? section->left_first : section->right_first;
    return marking_of(lane == first ? section->centre_mark : network->lanes[lane - 1].outer_mark);
}

/* Whether the lane has any width in its section. */
static bool has_width(const struct opendrive_network *network, uint32_t lane)
{
    const struct opendrive_section *section = &network->sections[network->lanes[lane].section];
    double length_m = section->end_m - section->s_m;
    for (uint32_t i = 0; i <= 8; i++) {
        if (opendrive_lane_width_m(network, lane, section->s_m + length_m * i / 8) > EMPTY_M) {
            return true;
        }
    }
    return false;
}

/* The next lane on that side which is there: lanes that open farther on have no width before. */
static uint32_t lane_beside(const struct od_mapper *mapper, uint32_t lane, bool left)
{
    uint32_t beside = opendrive_neighbour(mapper->network, lane, left);
    while (beside != OPENDRIVE_NONE && mapper->pieces[beside].count == 0 &&
           !has_width(mapper->network, beside)) {
        beside = opendrive_neighbour(mapper->network, beside, left);
    }
    return beside;
}

static void link_side(struct od_mapper *mapper, uint32_t index, bool left_of_travel)
{
    const struct opendrive_network *network = mapper->network;
    uint32_t lane = mapper->out->pieces[index].lane;
    const struct opendrive_lane *at = &network->lanes[lane];
    struct lane *made = &mapper->out->map.lanes[index];
    bool left = left_of_travel != at->against;
    uint32_t beside = lane_beside(mapper, lane, left);
    enum marking marking = border_marking(network, lane, left);
    *(left_of_travel ? &made->left_marking : &made->right_marking) = marking;
    if (beside == OPENDRIVE_NONE || mapper->pieces[beside].count != mapper->pieces[lane].count) {
        return;
    }
    uint32_t other = mapper->pieces[beside].first + index - mapper->pieces[lane].first;
    bool opposite = network->lanes[beside].against != at->against;
    *(left_of_travel ? &made->left : &made->right) = (int32_t)other;
    *(left_of_travel ? &made->left_opposite : &made->right_opposite) = opposite;
}

/* ---- successors ---- */

static enum status add_successor(struct od_mapper *mapper, struct lane *from, uint32_t to)
{
    const struct lane *next = &mapper->out->map.lanes[to];
    struct vec2 end = from->centre_line[from->point_count - 1];
    double x_m = next->centre_line[0].x_m - end.x_m;
    double y_m = next->centre_line[0].y_m - end.y_m;
    if (x_m * x_m + y_m * y_m > GAP_MAX_M * GAP_MAX_M) {
        mapper->out->notes[OPENDRIVE_NOTE_SUCCESSOR]++;
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < from->successor_count; i++) {
        if (from->successors[i] == to) {
            return STATUS_OK;
        }
    }
    if (from->successors == NULL) {
        from->successors = od_map_alloc(mapper, LIMIT_LANE_LINKS, sizeof *from->successors);
        if (from->successors == NULL) {
            return STATUS_LIMIT;
        }
    }
    if (from->successor_count == LIMIT_LANE_LINKS) {
        return od_map_fail(mapper, "successors of a lane", LIMIT_LANE_LINKS);
    }
    from->successors[from->successor_count++] = to;
    return STATUS_OK;
}

/* Piece of the lane where traffic enters it, or where it leaves it. */
static uint32_t end_piece(const struct od_mapper *mapper, uint32_t lane, bool leave)
{
    const struct od_pieces *pieces = &mapper->pieces[lane];
    bool last = leave != mapper->network->lanes[lane].against;
    return last ? pieces->first + pieces->count - 1 : pieces->first;
}

/* Lanes that follow; one of no length is passed through. */
static enum status link_next(struct od_mapper *mapper, uint32_t index)
{
    const struct opendrive_network *network = mapper->network;
    uint32_t lane = mapper->out->pieces[index].lane;
    const struct opendrive_lane *at = &network->lanes[lane];
    struct lane *made = &mapper->out->map.lanes[index];
    if (index != end_piece(mapper, lane, true)) {
        return add_successor(mapper, made, at->against ? index - 1 : index + 1);
    }
    for (uint32_t i = 0; i < at->next_count; i++) {
        uint32_t next = at->next[i];
        for (int k = 0; k < EMPTY_LANES_MAX && mapper->pieces[next].count == 0; k++) {
            const struct opendrive_section *section =
                &network->sections[network->lanes[next].section];
            if (section->end_m - section->s_m > 0.05 || network->lanes[next].next_count != 1) {
                break;
            }
            next = network->lanes[next].next[0];
        }
        if (mapper->pieces[next].count > 0) {
            TRY(add_successor(mapper, made, end_piece(mapper, next, false)));
        }
    }
    return STATUS_OK;
}

/* ---- traffic lights ---- */

/* Lights for vehicles: pedestrians' and cyclists' own are 1000002, 1000007, 1000013, 1000014. */
static bool is_light(const struct opendrive_signal *signal)
{
    static const char *const types[] = {"1000001", "1000008", "1000009",   "1000010",
                                        "1000011", "1000012", "1000015",   "1000016",
                                        "1000017", "1000018", "1.000.001", "1.000.011"};
    for (size_t i = 0; signal->dynamic && i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(signal->type, types[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* Signs of priority by the numbers of the German and American catalogues; the first are also those
 * that the format's own examples and CARLA use. 301 holds at one junction, 306 along a road. */
static enum traffic_sign sign_of(const struct opendrive_signal *signal)
{
    if (strcmp(signal->type, "206") == 0 || strcmp(signal->type, "R1-1") == 0) {
        return TRAFFIC_SIGN_STOP;
    }
    if (strcmp(signal->type, "205") == 0 || strcmp(signal->type, "R1-2") == 0) {
        return TRAFFIC_SIGN_YIELD;
    }
    bool goes_first = strcmp(signal->type, "306") == 0 || strcmp(signal->type, "301") == 0;
    return goes_first ? TRAFFIC_SIGN_PRIORITY : TRAFFIC_SIGN_NONE;
}

static double line_length_m(const struct lane *lane)
{
    return polyline_length_m(lane->centre_line, lane->point_count);
}

static void control(const struct od_mapper *mapper, struct traffic_signal *made, uint32_t piece)
{
    const struct lane *lane = &mapper->out->map.lanes[piece];
    if (lane->kind != LANE_DRIVING && lane->kind != LANE_CYCLE) {
        return;
    }
    for (uint32_t i = 0; i < made->lane_count; i++) {
        if (made->lanes[i] == piece) {
            return;
        }
    }
    if (made->lane_count < LIMIT_SIGNAL_LANES && line_length_m(lane) > 2 * STOP_M) {
        made->lanes[made->lane_count++] = piece;
    }
}

/* The lanes that lead up to the light or sign, and its distance from their ends. */
static void find_approach(const struct od_mapper *mapper, const struct opendrive_signal *signal,
                          struct traffic_signal *made)
{
    const struct opendrive_network *network = mapper->network;
    bool inside = network->roads[signal->road].junction != OPENDRIVE_NONE;
    for (uint32_t i = 0; i < signal->lane_count; i++) {
        const struct opendrive_lane *lane = &network->lanes[signal->lanes[i]];
        for (uint32_t k = 0; inside && k < lane->previous_count; k++) {
            if (mapper->pieces[lane->previous[k]].count > 0) {
                control(mapper, made, end_piece(mapper, lane->previous[k], true));
            }
        }
        if (!inside && mapper->pieces[signal->lanes[i]].count > 0) {
            uint32_t piece = opendrive_map_lane(mapper->out, signal->lanes[i], signal->s_m);
            control(mapper, made, piece);
        }
    }
    made->stop_m = STOP_M;
    for (uint32_t i = 0; !inside && i < made->lane_count; i++) {
        const struct opendrive_piece *piece = &mapper->out->pieces[made->lanes[i]];
        bool against = network->lanes[piece->lane].against;
        double end_m = against ? piece->low_s_m : piece->high_s_m;
        double length_m = line_length_m(&mapper->out->map.lanes[made->lanes[i]]);
        made->stop_m = dmath_clamp(dmath_max(fabs(end_m - signal->s_m), made->stop_m), STOP_M,
                                   length_m - STOP_M);
    }
}

/* Whether it is for a lane of the map. */
static bool is_on_map(const struct od_mapper *mapper, const struct opendrive_signal *signal)
{
    for (uint32_t i = 0; i < signal->lane_count; i++) {
        if (mapper->pieces[signal->lanes[i]].count > 0) {
            return true;
        }
    }
    return false;
}

static bool same_lanes(const struct traffic_signal *a, const struct traffic_signal *b)
{
    return a->lane_count == b->lane_count &&
           memcmp(a->lanes, b->lanes, a->lane_count * sizeof *a->lanes) == 0;
}

static enum status add_light(struct od_mapper *mapper, const struct opendrive_signal *signal)
{
    struct map *map = &mapper->out->map;
    struct traffic_signal made = {.repeats = true, .phase_count = 1};
    made.lanes = od_map_alloc(mapper, LIMIT_SIGNAL_LANES, sizeof *made.lanes);
    made.phases = od_map_alloc(mapper, 1, sizeof *made.phases);
    if (made.lanes == NULL || made.phases == NULL) {
        return STATUS_LIMIT;
    }
    find_approach(mapper, signal, &made);
    for (uint32_t i = 0; i < map->signal_count; i++) {
        if (same_lanes(&map->signals[i], &made)) {
            return STATUS_OK; /* a second light for the same traffic */
        }
    }
    if (made.lane_count == 0 || map->signal_count == LIMIT_SIGNALS) {
        mapper->out->notes[OPENDRIVE_NOTE_LIGHT] +=
            made.lane_count == 0 && is_on_map(mapper, signal);
        mapper->out->beyond_limit += made.lane_count > 0;
        return STATUS_OK;
    }
    made.phases[0] = (struct signal_phase){TRAFFIC_LIGHT_OFF, 1};
    snprintf(made.id, sizeof made.id, "s%u", (uint32_t)(signal - mapper->network->signals));
    map->signals[map->signal_count++] = made;
    return STATUS_OK;
}

/* A sign counts where no light and no earlier sign does. */
static enum status add_sign(struct od_mapper *mapper, const struct opendrive_signal *signal)
{
    struct map *map = &mapper->out->map;
    struct traffic_signal made = {.sign = sign_of(signal)};
    struct traffic_signal found = {0};
    found.lanes = od_map_alloc(mapper, LIMIT_SIGNAL_LANES, sizeof *found.lanes);
    made.lanes = od_map_alloc(mapper, LIMIT_SIGNAL_LANES, sizeof *made.lanes);
    if (made.lanes == NULL || found.lanes == NULL) {
        return STATUS_LIMIT;
    }
    find_approach(mapper, signal, &found);
    made.stop_m = found.stop_m;
    for (uint32_t i = 0; i < found.lane_count; i++) {
        if (!right_of_way_controlled(map, found.lanes[i])) {
            made.lanes[made.lane_count++] = found.lanes[i];
        }
    }
    if (made.lane_count == 0 || map->signal_count == LIMIT_SIGNALS) {
        mapper->out->beyond_limit += made.lane_count > 0;
        return STATUS_OK;
    }
    snprintf(made.id, sizeof made.id, "s%u", (uint32_t)(signal - mapper->network->signals));
    map->signals[map->signal_count++] = made;
    return STATUS_OK;
}

static enum status add_signals(struct od_mapper *mapper)
{
    const struct opendrive_network *network = mapper->network;
    struct map *map = &mapper->out->map;
    map->signals = od_map_alloc(mapper, LIMIT_SIGNALS, sizeof *map->signals);
    if (map->signals == NULL) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i < network->signal_count; i++) {
        if (is_light(&network->signals[i])) {
            TRY(add_light(mapper, &network->signals[i]));
        } else if (sign_of(&network->signals[i]) == TRAFFIC_SIGN_NONE) {
            mapper->out->notes[OPENDRIVE_NOTE_SIGN] += is_on_map(mapper, &network->signals[i]);
        }
    }
    for (uint32_t i = 0; i < network->signal_count; i++) {
        if (sign_of(&network->signals[i]) != TRAFFIC_SIGN_NONE) {
            TRY(add_sign(mapper, &network->signals[i]));
        }
    }
    return STATUS_OK;
}

/* ---- right of way without signs at the side road ---- */

/* Junction whose records say that traffic from one lane to the next goes second, OPENDRIVE_NONE:
 * none. */
static uint32_t second_at(const struct opendrive_network *network,
                          const struct opendrive_lane *lane, uint32_t next)
{
    const struct opendrive_road *incoming = &network->roads[lane->road];
    const struct opendrive_road *connecting = &network->roads[network->lanes[next].road];
    bool second = connecting->junction != OPENDRIVE_NONE && incoming != connecting &&
                  (connecting->second_at == connecting->junction ||
                   incoming->second_at == connecting->junction);
    return second ? connecting->junction : OPENDRIVE_NONE;
}

/* A lane that leads to roads of lower rank alone gives way at its end, else each of these where it
 * begins. */
static enum status give_way_before(struct od_mapper *mapper, uint32_t lane)
{
    const struct opendrive_network *network = mapper->network;
    struct map *map = &mapper->out->map;
    struct right_of_way *counts = &mapper->out->right_of_way;
    const struct opendrive_lane *at = &network->lanes[lane];
    uint32_t piece = end_piece(mapper, lane, true);
    uint32_t second = 0;
    for (uint32_t i = 0; i < at->next_count; i++) {
        second += second_at(network, at, at->next[i]) != OPENDRIVE_NONE;
    }
    if (second == 0 || map->lanes[piece].kind != LANE_DRIVING ||
        right_of_way_controlled(map, piece) || line_length_m(&map->lanes[piece]) <= 2 * STOP_M) {
        return STATUS_OK;
    }
    if (second == at->next_count) {
        return right_of_way_give(map, mapper->arena, TRAFFIC_SIGN_GIVE_WAY, piece, STOP_M, counts);
    }
    for (uint32_t i = 0; i < at->next_count; i++) {
        if (second_at(network, at, at->next[i]) == OPENDRIVE_NONE ||
            mapper->pieces[at->next[i]].count == 0) {
            continue;
        }
        uint32_t first = end_piece(mapper, at->next[i], false);
        if (map->lanes[first].kind == LANE_DRIVING && !right_of_way_controlled(map, first) &&
            line_length_m(&map->lanes[first]) > STOP_M) {
            TRY(right_of_way_give(map, mapper->arena, TRAFFIC_SIGN_GIVE_WAY, first,
                                  line_length_m(&map->lanes[first]) - BEGIN_M, counts));
        }
    }
    return STATUS_OK;
}

/* Junctions' records of which connecting road goes first; they count where no sign does. */
static enum status add_priorities(struct od_mapper *mapper)
{
    for (uint32_t i = 0; i < mapper->network->lane_count; i++) {
        if (mapper->pieces[i].count > 0) {
            TRY(give_way_before(mapper, i));
        }
    }
    return STATUS_OK;
}

static enum status add_right_of_way(struct od_mapper *mapper)
{
    struct map *map = &mapper->out->map;
    struct right_of_way *counts = &mapper->out->right_of_way;
    enum status status = right_of_way_beside_priority(map, mapper->arena, STOP_M, counts);
    THEN(status, add_priorities(mapper));
    if (status == STATUS_OK && mapper->cut->priority_to_the_right) {
        status = right_of_way_to_the_right(map, mapper->arena, STOP_M, counts);
    }
    THEN(status, right_of_way_of_oncoming(map, mapper->arena, counts));
    return status == STATUS_NO_MEMORY ? od_map_no_memory(mapper) : status;
}

/* ---- crosswalks ---- */

static enum status add_crosswalks(struct od_mapper *mapper)
{
    const struct opendrive_network *network = mapper->network;
    struct map *map = &mapper->out->map;
    map->crosswalks = od_map_alloc(mapper, LIMIT_POLYGONS, sizeof *map->crosswalks);
    if (map->crosswalks == NULL) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i < network->crosswalk_count; i++) {
        const struct opendrive_crosswalk *from = &network->crosswalks[i];
        if (!od_crosswalk_is_in(from, mapper->cut)) {
            continue;
        }
        struct vec2 *points = od_map_alloc(mapper, from->point_count, sizeof *points);
        if (points == NULL) {
            return STATUS_LIMIT;
        }
        for (uint32_t k = 0; k < from->point_count; k++) {
            points[k] =
                od_map_point(mapper, (struct pose){from->points[k].x_m, from->points[k].y_m, 0});
        }
        if (map->crosswalk_count == LIMIT_POLYGONS ||
            !points_form_polygon(points, from->point_count, CROSSWALK_AREA_MIN_M2)) {
            mapper->out->notes[OPENDRIVE_NOTE_CROSSWALK]++;
            continue;
        }
        map->crosswalks[map->crosswalk_count++] = (struct polygon){from->point_count, points};
    }
    return STATUS_OK;
}

enum status od_map_link(struct od_mapper *mapper)
{
    for (uint32_t i = 0; i < mapper->out->map.lane_count; i++) {
        link_side(mapper, i, true);
        link_side(mapper, i, false);
        TRY(link_next(mapper, i));
    }
    TRY(add_signals(mapper));
    TRY(add_right_of_way(mapper));
    return add_crosswalks(mapper);
}
