/*
 * OpenDRIVE: along lanes, by a distance or to another lane.
 *
 * Lanes of no length are passed through. Invariant: both walks end, a walk of a distance because
 * every lane with a length uses some of it up and cycles of lanes without one are counted, a search
 * because each lane is taken once.
 */
#include "base/dmath.h"
#include "base/units.h"
#include "scenarios/import/opendrive/opendrive_internal.h"

#include <math.h>
#include <stdlib.h>

enum { STEPS_MAX = 1 << 20, EMPTY_STEPS_MAX = 1024 };

static const double CHANGE_COST_M = 5.0; /* of a lane change, beside the way */
static const double PIECE_M = 1.0;       /* of a way measured along a lane's middle */
static const double STRETCH_MIN = 0.1;

static double length_m(const struct opendrive_network *network, uint32_t lane)
{
    const struct opendrive_section *section = &network->sections[network->lanes[lane].section];
    return section->end_m - section->s_m;
}

/* s where traffic enters the lane, or where it leaves it. */
static double end_s_m(const struct opendrive_network *network, uint32_t lane, bool leave)
{
    const struct opendrive_section *section = &network->sections[network->lanes[lane].section];
    return leave != network->lanes[lane].against ? section->end_m : section->s_m;
}

/* Direction of travel at an end of the lane. */
static double heading_at(const struct opendrive_network *network, uint32_t lane, bool leave)
{
    struct pose pose = opendrive_lane_pose(network, lane, end_s_m(network, lane, leave), 0);
    return pose.heading_rad + (network->lanes[lane].against ? PI_RAD : 0);
}

/* The continuation that the choice asks for. */
static uint32_t choose(const struct opendrive_network *network, uint32_t lane, bool backward,
                       enum opendrive_choice choice)
{
    const struct opendrive_lane *at = &network->lanes[lane];
    const uint32_t *items = backward ? at->previous : at->next;
    uint32_t count = backward ? at->previous_count : at->next_count;
    uint32_t best = OPENDRIVE_NONE;
    double best_rank = INFINITY;
    for (uint32_t i = 0; i < count && count > 1 && choice != OPENDRIVE_FIRST; i++) {
        double turn = dmath_wrap_angle(heading_at(network, items[i], !backward) -
                                       heading_at(network, lane, !backward));
        double left = backward ? -turn : turn;
        double rank = choice == OPENDRIVE_STRAIGHT   ? fabs(turn)
                      : choice == OPENDRIVE_LEFTMOST ? -left
                                                     : left;
        if (rank < best_rank) {
            best_rank = rank;
            best = items[i];
        }
    }
    return best == OPENDRIVE_NONE && count > 0 ? items[0] : best;
}

double opendrive_walk(const struct opendrive_network *network, uint32_t *lane, double *s_m,
                      double distance_m, enum opendrive_choice choice)
{
    bool backward = distance_m < 0;
    double rest_m = fabs(distance_m);
    uint32_t empty = 0;
    for (uint32_t step = 0; step < STEPS_MAX; step++) {
        double end_m = end_s_m(network, *lane, !backward);
        double left_m = fabs(end_m - *s_m);
        if (left_m >= rest_m) {
            *s_m += end_m > *s_m ? rest_m : -rest_m;
            return 0;
        }
        rest_m -= left_m;
        *s_m = end_m;
        empty = left_m > 0 ? 0 : empty + 1;
        uint32_t next = choose(network, *lane, backward, choice);
        if (next == OPENDRIVE_NONE || empty > EMPTY_STEPS_MAX) {
            break;
        }
        *lane = next;
        *s_m = end_s_m(network, next, backward);
    }
    return rest_m;
}

/* Metres of the lane's middle in a metre of the reference line: more outside of a bend. */
static double stretch_at(const struct opendrive_network *network, uint32_t lane, double s_m)
{
    double bend = opendrive_curvature(network, network->lanes[lane].road, s_m) *
                  opendrive_lane_centre_t_m(network, lane, s_m);
    return dmath_max(1 - bend, STRETCH_MIN);
}

double opendrive_lane_way_m(const struct opendrive_network *network, uint32_t lane, double from_m,
                            double to_m)
{
    uint32_t pieces = (uint32_t)(fabs(to_m - from_m) / PIECE_M) + 1;
    double piece_m = (to_m - from_m) / pieces;
    double way_m = 0;
    for (uint32_t i = 0; i < pieces; i++) {
        way_m += fabs(piece_m) * stretch_at(network, lane, from_m + (i + 0.5) * piece_m);
    }
    return way_m;
}

double opendrive_walk_lane(const struct opendrive_network *network, uint32_t *lane, double *s_m,
                           double distance_m, enum opendrive_choice choice)
{
    double left_m = fabs(distance_m);
    while (left_m > 0) {
        double step_m = dmath_min(left_m, PIECE_M);
        double stretch = stretch_at(network, *lane, *s_m);
        double road_m = step_m / stretch;
        double rest_m =
            opendrive_walk(network, lane, s_m, distance_m < 0 ? -road_m : road_m, choice);
        if (rest_m > 0) {
            return left_m - step_m + rest_m * stretch;
        }
        left_m -= step_m;
    }
    return 0;
}

uint32_t opendrive_neighbour(const struct opendrive_network *network, uint32_t lane, bool left)
{
    const struct opendrive_lane *at = &network->lanes[lane];
    const struct opendrive_section *section = &network->sections[at->section];
    bool outward = left == (at->id > 0);
    uint32_t first = at->id > 0 ? section->left_first : section->right_first;
    uint32_t count = at->id > 0 ? section->left_count : section->right_count;
    if (outward) {
        return lane + 1 < first + count ? lane + 1 : OPENDRIVE_NONE;
    }
    if (lane > first) {
        return lane - 1;
    }
    if (at->id > 0) {
        return section->right_count > 0 ? section->right_first : OPENDRIVE_NONE;
    }
    return section->left_count > 0 ? section->left_first : OPENDRIVE_NONE;
}

/* ---- routes: Dijkstra's algorithm with a binary heap ---- */

struct search {
    double *cost_m;   /* [lane_count], to the beginning of the lane */
    uint32_t *before; /* [lane_count] */
    uint32_t *heap;   /* [lane_count] lanes by cost */
    uint32_t *place;  /* [lane_count] in the heap, OPENDRIVE_NONE: not in it */
    uint32_t heap_count;
};

static void heap_put(struct search *search, uint32_t at, uint32_t lane)
{
    search->heap[at] = lane;
    search->place[lane] = at;
}

static void heap_rise(struct search *search, uint32_t at)
{
    uint32_t lane = search->heap[at];
    while (at > 0 && search->cost_m[search->heap[(at - 1) / 2]] > search->cost_m[lane]) {
        heap_put(search, at, search->heap[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    heap_put(search, at, lane);
}

static uint32_t heap_pop(struct search *search)
{
    uint32_t top = search->heap[0];
    uint32_t lane = search->heap[--search->heap_count];
    uint32_t at = 0;
    search->place[top] = OPENDRIVE_NONE;
    if (search->heap_count == 0) {
        return top;
    }
    for (uint32_t child = 1; child < search->heap_count; child = 2 * at + 1) {
        child += child + 1 < search->heap_count &&
                 search->cost_m[search->heap[child + 1]] < search->cost_m[search->heap[child]];
        if (search->cost_m[search->heap[child]] >= search->cost_m[lane]) {
            break;
        }
        heap_put(search, at, search->heap[child]);
        at = child;
    }
    heap_put(search, at, lane);
    return top;
}

static void relax(struct search *search, uint32_t from, uint32_t to, double cost_m)
{
    if (cost_m >= search->cost_m[to]) {
        return;
    }
    search->cost_m[to] = cost_m;
    search->before[to] = from;
    if (search->place[to] == OPENDRIVE_NONE) {
        heap_put(search, search->heap_count++, to);
    }
    heap_rise(search, search->place[to]);
}

static bool run_search(const struct opendrive_network *network, struct search *search,
                       uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < network->lane_count; i++) {
        search->cost_m[i] = INFINITY;
        search->before[i] = OPENDRIVE_NONE;
        search->place[i] = OPENDRIVE_NONE;
    }
    relax(search, OPENDRIVE_NONE, from, 0);
    while (search->heap_count > 0) {
        uint32_t lane = heap_pop(search);
        const struct opendrive_lane *at = &network->lanes[lane];
        if (lane == to) {
            return true;
        }
        for (uint32_t i = 0; i < at->next_count; i++) {
            relax(search, lane, at->next[i], search->cost_m[lane] + length_m(network, lane));
        }
        for (int left = 0; left < 2; left++) {
            uint32_t beside = opendrive_neighbour(network, lane, left != 0);
            if (beside != OPENDRIVE_NONE && network->lanes[beside].against == at->against &&
                network->lanes[beside].type == OPENDRIVE_LANE_DRIVING) {
                relax(search, lane, beside, search->cost_m[lane] + CHANGE_COST_M);
            }
        }
    }
    return false;
}

uint32_t opendrive_route(const struct opendrive_network *network, uint32_t from, uint32_t to,
                         uint32_t *out, uint32_t capacity)
{
    size_t lanes = network->lane_count;
    struct search search = {
        .cost_m = malloc(lanes * sizeof *search.cost_m),
        .before = malloc(lanes * sizeof *search.before),
        .heap = malloc(lanes * sizeof *search.heap),
        .place = malloc(lanes * sizeof *search.place),
    };
    uint32_t count = 0;
    if (search.cost_m != NULL && search.before != NULL && search.heap != NULL &&
        search.place != NULL && run_search(network, &search, from, to)) {
        for (uint32_t lane = to; lane != OPENDRIVE_NONE; lane = search.before[lane]) {
            count++;
        }
        uint32_t at = count;
        for (uint32_t lane = to; lane != OPENDRIVE_NONE && count <= capacity;
             lane = search.before[lane]) {
            out[--at] = lane;
        }
    }
    free(search.cost_m);
    free(search.before);
    free(search.heap);
    free(search.place);
    return count <= capacity ? count : 0;
}
