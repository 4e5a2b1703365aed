/*
 * Right of way without a sign at the side road. See right_of_way.h.
 *
 * Two lanes meet if they end near each other at an angle and the ways behind them, taken as
 * straight from where each begins to where it is left or 40 m on, cross or end in one place. Roads
 * that face each other, and lanes side by side, do not: signs of priority roads say nothing of
 * them.
 */
#include "scenarios/import/right_of_way.h"

#include "base/dmath.h"
#include "base/geom.h"
#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define APART_MAX_M 60.0 /* between the ends of lanes that lead to one junction */
#define SIDE_SINE 0.5    /* of the angle between roads that cross */
#define WAY_MAX_M 40.0
#define TURN_MIN_RAD (PI_RAD / 4)
#define STRAIGHT_MAX_RAD (PI_RAD / 6)
#define ONCOMING_COS 0.5 /* within 60 degrees of the opposite direction */
#define TOGETHER_M 1.5
#define SIGN_AHEAD_M 100.0 /* from a priority sign's lane to the junction that it stands before */

enum { LANES_AHEAD_MAX = 8, TURN_CHORDS = 16, STRAIGHT_CHORDS = 8 };

struct approach {
    struct pose end;
    double ux;
    double uy;
    double length_m;
};

static struct approach approach_of(const struct lane *lane)
{
    double length_m = polyline_length_m(lane->centre_line, lane->point_count);
    struct approach approach = {
        .end = polyline_pose_at(lane->centre_line, lane->point_count, length_m, 0.0),
        .length_m = length_m};
    dmath_sincos(approach.end.heading_rad, &approach.uy, &approach.ux);
    return approach;
}

static bool from_the_side(const struct approach *a, const struct approach *b)
{
    double dx = a->end.x_m - b->end.x_m;
    double dy = a->end.y_m - b->end.y_m;
    return dx * dx + dy * dy < APART_MAX_M * APART_MAX_M &&
           fabs(a->ux * b->uy - a->uy * b->ux) > SIDE_SINE;
}

static double turn(struct vec2 a, struct vec2 b, struct vec2 c)
{
    return (b.x_m - a.x_m) * (c.y_m - a.y_m) - (b.y_m - a.y_m) * (c.x_m - a.x_m);
}

static bool ways_meet(const struct lane *one, const struct lane *other)
{
    const struct lane *lanes[2] = {one, other};
    struct vec2 from[2];
    struct vec2 to[2];
    for (int i = 0; i < 2; i++) {
        const struct lane *lane = lanes[i];
        double length_m = polyline_length_m(lane->centre_line, lane->point_count);
        struct pose on = polyline_pose_at(lane->centre_line, lane->point_count,
                                          dmath_min(length_m, WAY_MAX_M), 0.0);
        from[i] = lane->centre_line[0];
        to[i] = (struct vec2){on.x_m, on.y_m};
    }
    double dx = to[0].x_m - to[1].x_m;
    double dy = to[0].y_m - to[1].y_m;
    bool crosses = turn(from[0], to[0], from[1]) * turn(from[0], to[0], to[1]) < 0.0 &&
                   turn(from[1], to[1], from[0]) * turn(from[1], to[1], to[0]) < 0.0;
    return crosses || dx * dx + dy * dy < TOGETHER_M * TOGETHER_M;
}

static bool lanes_meet(const struct map *map, const struct lane *a, const struct lane *b)
{
    for (uint32_t i = 0; i < a->successor_count; i++) {
        for (uint32_t k = 0; k < b->successor_count; k++) {
            if (a->successors[i] == b->successors[k] ||
                ways_meet(&map->lanes[a->successors[i]], &map->lanes[b->successors[k]])) {
                return true;
            }
        }
    }
    return false;
}

bool right_of_way_controlled(const struct map *map, uint32_t lane)
{
    for (uint32_t i = 0; i < map->signal_count; i++) {
        for (uint32_t k = 0; k < map->signals[i].lane_count; k++) {
            if (map->signals[i].lanes[k] == lane) {
                return true;
            }
        }
    }
    return false;
}

static void name_signal(const struct map *map, enum traffic_sign sign, char out[LIMIT_ID_BYTES])
{
    const char *stem = sign == TRAFFIC_SIGN_GIVE_WAY_RIGHT      ? "right"
                       : sign == TRAFFIC_SIGN_GIVE_WAY_ONCOMING ? "turn"
                                                                : "side";
    bool taken = true;
    for (uint32_t number = 1; taken; number++) {
        snprintf(out, LIMIT_ID_BYTES, "%s.%u", stem, number);
        taken = false;
        for (uint32_t i = 0; i < map->signal_count && !taken; i++) {
            taken = strcmp(map->signals[i].id, out) == 0;
        }
    }
}

enum status right_of_way_give(struct map *map, struct arena *arena, enum traffic_sign sign,
                              uint32_t lane, double stop_m, struct right_of_way *counts)
{
    struct traffic_signal *found = NULL;
    for (uint32_t i = 0; i < map->signal_count && found == NULL; i++) {
        struct traffic_signal *signal = &map->signals[i];
        bool suits = signal->sign == sign && signal->stop_m == stop_m &&
                     signal->lane_count < LIMIT_SIGNAL_LANES;
        found = suits ? signal : NULL;
    }
    if (found == NULL && map->signal_count == LIMIT_SIGNALS) {
        counts->dropped++;
        return STATUS_OK;
    }
    if (found == NULL) {
        struct traffic_signal made = {.sign = sign, .stop_m = stop_m};
        made.lanes = arena_alloc(arena, LIMIT_SIGNAL_LANES, sizeof *made.lanes);
        if (made.lanes == NULL) {
            return STATUS_NO_MEMORY;
        }
        name_signal(map, sign, made.id);
        found = &map->signals[map->signal_count++];
        *found = made;
    }
    found->lanes[found->lane_count++] = lane;
    counts->gave_way++;
    return STATUS_OK;
}

/* Whether traffic on the lane may be about to meet others; within a junction it has met them. */
static bool leads_on(const struct lane *lane, double stop_m)
{
    return lane->kind == LANE_DRIVING && !lane->intersection && lane->successor_count > 0 &&
           polyline_length_m(lane->centre_line, lane->point_count) > 2.0 * stop_m;
}

/* Of every lane; NULL: the arena is full. */
static struct approach *all_approaches(const struct map *map, struct arena *arena)
{
    struct approach *approaches = arena_alloc(arena, map->lane_count, sizeof *approaches);
    for (uint32_t i = 0; approaches != NULL && i < map->lane_count; i++) {
        approaches[i] = approach_of(&map->lanes[i]);
    }
    return approaches;
}

/* Whether the lane comes from the side to the one with the sign, or to those that it leads to. */
static bool meets_along(const struct map *map, const struct approach *approaches, uint32_t lane,
                        uint32_t major)
{
    double ahead_m = 0.0;
    for (int i = 0; i < LANES_AHEAD_MAX && ahead_m < SIGN_AHEAD_M; i++) {
        const struct lane *at = &map->lanes[major];
        if (from_the_side(&approaches[lane], &approaches[major]) &&
            lanes_meet(map, &map->lanes[lane], at)) {
            return true;
        }
        if (at->successor_count != 1) {
            return false;
        }
        major = at->successors[0];
        ahead_m += approaches[major].length_m;
    }
    return false;
}

/* Whether the lane comes from the side to one with a priority sign. */
static bool meets_priority(const struct map *map, const struct approach *approaches,
                           uint32_t signals, uint32_t lane)
{
    for (uint32_t i = 0; i < signals; i++) {
        const struct traffic_signal *signal = &map->signals[i];
        for (uint32_t k = 0; signal->sign == TRAFFIC_SIGN_PRIORITY && k < signal->lane_count; k++) {
            if (meets_along(map, approaches, lane, signal->lanes[k])) {
                return true;
            }
        }
    }
    return false;
}

enum status right_of_way_beside_priority(struct map *map, struct arena *arena, double stop_m,
                                         struct right_of_way *counts)
{
    uint32_t signals = map->signal_count;
    bool any = false;
    for (uint32_t i = 0; i < signals; i++) {
        any = any || map->signals[i].sign == TRAFFIC_SIGN_PRIORITY;
    }
    if (!any) {
        return STATUS_OK;
    }
    const struct approach *approaches = all_approaches(map, arena);
    if (approaches == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < map->lane_count; i++) {
        if (leads_on(&map->lanes[i], stop_m) && !right_of_way_controlled(map, i) &&
            meets_priority(map, approaches, signals, i)) {
            TRY(right_of_way_give(map, arena, TRAFFIC_SIGN_GIVE_WAY, i, stop_m, counts));
        }
    }
    return STATUS_OK;
}

/* Whether the lane meets others from the side, none of which a signal controls. */
static bool meets_equals(const struct map *map, const struct approach *approaches, const bool *has,
                         uint32_t lane)
{
    bool meets = false;
    for (uint32_t i = 0; i < map->lane_count; i++) {
        const struct lane *other = &map->lanes[i];
        if (i != lane && leads_on(other, 0.0) && from_the_side(&approaches[lane], &approaches[i]) &&
            lanes_meet(map, &map->lanes[lane], other)) {
            if (has[i]) {
                return false;
            }
            meets = true;
        }
    }
    return meets;
}

enum status right_of_way_to_the_right(struct map *map, struct arena *arena, double stop_m,
                                      struct right_of_way *counts)
{
    const struct approach *approaches = all_approaches(map, arena);
    bool *has = arena_alloc(arena, map->lane_count, sizeof *has);
    if (approaches == NULL || has == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < map->lane_count; i++) {
        has[i] = right_of_way_controlled(map, i);
    }
    for (uint32_t i = 0; i < map->lane_count; i++) {
        if (leads_on(&map->lanes[i], stop_m) && !has[i] && meets_equals(map, approaches, has, i)) {
            TRY(right_of_way_give(map, arena, TRAFFIC_SIGN_GIVE_WAY_RIGHT, i, stop_m, counts));
        }
    }
    return STATUS_OK;
}

/* ---- across oncoming traffic ---- */

/* Direction in which a lane begins, and the angle by which it turns. */
struct bend {
    double ux;
    double uy;
    double turned_rad;
    bool yields; /* at a sign, to everybody */
};

static struct bend bend_of(const struct lane *lane)
{
    const struct vec2 *p = lane->centre_line;
    uint32_t last = lane->point_count - 1;
    double begin_rad = dmath_atan2(p[1].y_m - p[0].y_m, p[1].x_m - p[0].x_m);
    double end_rad = dmath_atan2(p[last].y_m - p[last - 1].y_m, p[last].x_m - p[last - 1].x_m);
    struct bend bend = {.turned_rad = dmath_wrap_angle(end_rad - begin_rad)};
    dmath_sincos(begin_rad, &bend.uy, &bend.ux);
    return bend;
}

/* Point i of a lane's centre line, drawn by `chords` of its points. */
static struct vec2 chord_end(const struct lane *lane, uint32_t i, uint32_t chords)
{
    return lane->centre_line[(size_t)i * (lane->point_count - 1) / chords];
}

/* Whether the centre lines cross, drawn with few points: a junction's lanes are short. */
static bool centres_cross(const struct lane *turning, const struct lane *straight)
{
    for (uint32_t i = 0; i < TURN_CHORDS; i++) {
        struct vec2 a = chord_end(turning, i, TURN_CHORDS);
        struct vec2 b = chord_end(turning, i + 1, TURN_CHORDS);
        for (uint32_t k = 0; k < STRAIGHT_CHORDS; k++) {
            if (segments_intersect(a, b, chord_end(straight, k, STRAIGHT_CHORDS),
                                   chord_end(straight, k + 1, STRAIGHT_CHORDS))) {
                return true;
            }
        }
    }
    return false;
}

/* Marks lanes that have a sign at which everybody else goes first, and those that they lead to. */
static void mark_yielding(const struct map *map, struct bend *bends)
{
    for (uint32_t i = 0; i < map->signal_count; i++) {
        const struct traffic_signal *signal = &map->signals[i];
        bool yields = signal->sign == TRAFFIC_SIGN_STOP || signal->sign == TRAFFIC_SIGN_YIELD ||
                      signal->sign == TRAFFIC_SIGN_GIVE_WAY;
        for (uint32_t k = 0; yields && k < signal->lane_count; k++) {
            const struct lane *at = &map->lanes[signal->lanes[k]];
            bends[signal->lanes[k]].yields = true;
            for (uint32_t n = 0; n < at->successor_count; n++) {
                bends[at->successors[n]].yields = true;
            }
        }
    }
}

static bool of_junction(const struct lane *lane, const struct bend *bend)
{
    return lane->intersection && lane->kind == LANE_DRIVING && !bend->yields;
}

static bool crosses_oncoming(const struct map *map, const struct bend *bends, uint32_t lane)
{
    for (uint32_t i = 0; i < map->lane_count; i++) {
        if (of_junction(&map->lanes[i], &bends[i]) &&
            fabs(bends[i].turned_rad) < STRAIGHT_MAX_RAD &&
            bends[i].ux * bends[lane].ux + bends[i].uy * bends[lane].uy < -ONCOMING_COS &&
            centres_cross(&map->lanes[lane], &map->lanes[i])) {
            return true;
        }
    }
    return false;
}

enum status right_of_way_of_oncoming(struct map *map, struct arena *arena,
                                     struct right_of_way *counts)
{
    struct bend *bends = arena_alloc(arena, map->lane_count, sizeof *bends);
    if (bends == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < map->lane_count; i++) {
        bends[i] = bend_of(&map->lanes[i]);
    }
    mark_yielding(map, bends);
    for (uint32_t i = 0; i < map->lane_count; i++) {
        if (of_junction(&map->lanes[i], &bends[i]) && fabs(bends[i].turned_rad) >= TURN_MIN_RAD &&
            crosses_oncoming(map, bends, i)) {
            TRY(right_of_way_give(map, arena, TRAFFIC_SIGN_GIVE_WAY_ONCOMING, i, 0.0, counts));
        }
    }
    return STATUS_OK;
}
