/*
 * Paths that actors follow along lanes and straight ahead.
 *
 * A path along lanes begins a little behind the actor, so that what follows it can be measured, and
 * goes on as far as anybody gets within the horizon. Where lanes part, the actor's route decides,
 * else the way straightest ahead. Points closer than needed are dropped: places stay within 1 mm.
 */
#include "scenarios/import/openscenario/osc_internal.h"

#include "base/dmath.h"
#include "base/units.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define BEHIND_M 250.0
#define FASTEST_MPS 40.0
#define AHEAD_MIN_M 100.0
#define AHEAD_MAX_M 4000.0
#define STEP_MAX_M 2.0
#define STEP_MIN_M 0.2
#define SAGITTA_M 0.001
#define KEPT_M 0.001
#define KEPT_RAD 2e-4
#define NEXT_M 1e-3

enum { MERGED_MAX = 256, TRACKS_MAX = 8 };

struct piece {
    uint32_t lane;
    double from_m;
    double to_m; /* s of the road; from > to: towards smaller s */
    bool with_s;
};

struct chain {
    uint32_t count;
    bool ends; /* where the last lane leads nowhere */
    struct piece pieces[OSC_CHAIN_MAX];
};

/* Points along a chain of lanes, the same for whoever drives there. */
struct track {
    struct chain chain;
    double s_m[OSC_CHAIN_MAX]; /* of the path, where each piece begins */
    uint32_t count;            /* 0: none yet */
    struct story_point *points;
};

struct osc_tracks {
    uint32_t next; /* to be made anew */
    struct track items[TRACKS_MAX];
    struct chain chain; /* of one path at a time */
    struct story_point points[OSC_POINTS_MAX];
};

/* ---- points ---- */

static bool merges(const struct story_point *points, uint32_t from, uint32_t to)
{
    const struct story_point *a = &points[from];
    const struct story_point *b = &points[to];
    for (uint32_t i = from + 1; i < to; i++) {
        double u = (points[i].s_m - a->s_m) / (b->s_m - a->s_m);
        double dx = points[i].x_m - (a->x_m + u * (b->x_m - a->x_m));
        double dy = points[i].y_m - (a->y_m + u * (b->y_m - a->y_m));
        double turn =
            points[i].heading_rad - (a->heading_rad + u * (b->heading_rad - a->heading_rad));
        if (dx * dx + dy * dy > KEPT_M * KEPT_M || fabs(turn) > KEPT_RAD) {
            return false;
        }
    }
    return true;
}

void osc_points_thin(struct osc_points *line)
{
    struct story_point *points = line->points;
    uint32_t count = line->count;
    uint32_t kept = 1;
    uint32_t from = 0;
    while (from + 1 < count) {
        uint32_t to = from + 1;
        uint32_t reach = 1;
        while (reach <= MERGED_MAX && from + reach < count && merges(points, from, from + reach)) {
            to = from + reach;
            reach *= 2;
        }
        for (uint32_t i = to + 1; i < count && i < from + reach && merges(points, from, i); i++) {
            to = i;
        }
        points[kept++] = points[to];
        from = to;
    }
    line->count = kept;
}

enum status osc_path_add(struct osc_context *context, const struct osc_element *element,
                         const struct story_point *points, uint32_t count, bool timed,
                         uint32_t *index)
{
    struct storyboard *board = &context->board;
    size_t bytes = count * sizeof *points;
    for (uint32_t i = 0; i < board->path_count; i++) {
        const struct story_path *path = &board->paths[i];
        if (path->point_count == count && path->timed == timed && path->next < 0 &&
            memcmp(path->points, points, bytes) == 0) {
            *index = i;
            return STATUS_OK;
        }
    }
    if (board->path_count == LIMIT_STORY_PATHS || count > LIMIT_STORY_PATH_POINTS) {
        return osc_fail(context, element, "expected at most %d paths of %d points, found more",
                        LIMIT_STORY_PATHS, LIMIT_STORY_PATH_POINTS);
    }
    struct story_point *copy = osc_alloc(context, count, sizeof *copy);
    if (copy == NULL) {
        return STATUS_LIMIT;
    }
    memcpy(copy, points, bytes);
    *index = board->path_count;
    board->paths[board->path_count++] =
        (struct story_path){.point_count = count, .points = copy, .timed = timed, .next = -1};
    return STATUS_OK;
}

struct pose osc_path_pose(const struct storyboard *board, uint32_t index, double s_m)
{
    const struct story_path *path = &board->paths[index];
    uint32_t k = 0;
    while (k + 2 < path->point_count && path->points[k + 1].s_m <= s_m) {
        k++;
    }
    const struct story_point *a = &path->points[k];
    const struct story_point *b = a + 1;
    double u = b->s_m > a->s_m ? (s_m - a->s_m) / (b->s_m - a->s_m) : 0.0;
    double h = dmath_clamp(u, 0.0, 1.0);
    return (struct pose){a->x_m + u * (b->x_m - a->x_m), a->y_m + u * (b->y_m - a->y_m),
                         a->heading_rad + h * (b->heading_rad - a->heading_rad)};
}

void osc_path_project(const struct storyboard *board, uint32_t index, struct vec2 point,
                      double *s_m, double *offset_m)
{
    const struct story_path *path = &board->paths[index];
    double nearest = INFINITY;
    *s_m = path->points[0].s_m;
    *offset_m = 0.0;
    for (uint32_t k = 0; k + 1 < path->point_count; k++) {
        const struct story_point *a = &path->points[k];
        const struct story_point *b = a + 1;
        double dx = b->x_m - a->x_m;
        double dy = b->y_m - a->y_m;
        double length2 = dx * dx + dy * dy;
        if (length2 <= 0.0) {
            continue;
        }
        double px = point.x_m - a->x_m;
        double py = point.y_m - a->y_m;
        double u = dmath_clamp((px * dx + py * dy) / length2, 0.0, 1.0);
        double ex = px - u * dx;
        double ey = py - u * dy;
        if (ex * ex + ey * ey < nearest) {
            nearest = ex * ex + ey * ey;
            *s_m = a->s_m + u * (b->s_m - a->s_m);
            *offset_m = (dx * py - dy * px < 0.0 ? -1.0 : 1.0) * sqrt(nearest);
        }
    }
}

/* ---- along lanes ---- */

/* Place of a road among those of the route; their number: it is none of them. */
static uint32_t route_place(const struct osc_entity *entity, uint32_t road)
{
    uint32_t i = 0;
    while (i < entity->route_road_count && entity->route_roads[i] != road) {
        i++;
    }
    return i;
}

bool osc_on_route(const struct osc_entity *entity, uint32_t road)
{
    return route_place(entity, road) < entity->route_road_count;
}

/* Of lanes that follow one: the one on the route, else, since the other side of the road has
 * connecting roads of its own, the one over which a later road of the route is reached. */
static uint32_t lane_on_route(const struct osc_context *context, const struct osc_entity *entity,
                              uint32_t lane, const uint32_t *list, uint32_t count,
                              bool along_travel)
{
    const struct opendrive_lane *lanes = context->network->lanes;
    for (uint32_t i = 0; i < count; i++) {
        if (osc_on_route(entity, lanes[list[i]].road)) {
            return list[i];
        }
    }
    uint32_t here = route_place(entity, lanes[lane].road);
    for (uint32_t i = 0; i < count; i++) {
        const struct opendrive_lane *over = &lanes[list[i]];
        uint32_t beyond_count = along_travel ? over->next_count : over->previous_count;
        const uint32_t *beyond = along_travel ? over->next : over->previous;
        uint32_t place = beyond_count > 0 ? route_place(entity, lanes[beyond[0]].road)
                                          : entity->route_road_count;
        if (place > here && place < entity->route_road_count) {
            return list[i];
        }
    }
    return OPENDRIVE_NONE;
}

/* The lane that goes on from the end of one, in the actor's direction. */
static uint32_t lane_after(const struct osc_context *context, const struct osc_entity *entity,
                           uint32_t lane, bool with_s, bool ahead, bool *next_with_s)
{
    const struct opendrive_network *network = context->network;
    const struct opendrive_lane *record = &network->lanes[lane];
    const struct opendrive_section *section = &network->sections[record->section];
    bool with_traffic = with_s != record->against;
    bool along_travel = with_traffic == ahead;
    uint32_t next = lane;
    double s_m = with_s == ahead ? section->end_m : section->s_m;
    uint32_t count = along_travel ? record->next_count : record->previous_count;
    const uint32_t *list = along_travel ? record->next : record->previous;
    if (opendrive_walk(network, &next, &s_m, along_travel ? NEXT_M : -NEXT_M, OPENDRIVE_STRAIGHT) !=
            0.0 ||
        next == lane) {
        return OPENDRIVE_NONE;
    }
    uint32_t chosen = ahead && count > 1
                          ? lane_on_route(context, entity, lane, list, count, along_travel)
                          : OPENDRIVE_NONE;
    next = chosen != OPENDRIVE_NONE ? chosen : next;
    *next_with_s = with_traffic != network->lanes[next].against;
    return next;
}

static double far_end(const struct osc_context *context, uint32_t lane, bool with_s)
{
    const struct opendrive_section *section =
        &context->network->sections[context->network->lanes[lane].section];
    return with_s ? section->end_m : section->s_m;
}

/* Pieces from BEHIND_M before the place to as far ahead as anybody gets; *first is the place's. */
static void make_chain(const struct osc_context *context, const struct osc_entity *entity,
                       uint32_t lane, double s_m, bool with_s, struct chain *chain, uint32_t *first)
{
    struct piece behind[OSC_CHAIN_MAX / 4];
    uint32_t behind_count = 0;
    double left_m = BEHIND_M;
    uint32_t at = lane;
    bool way = with_s;
    double from_m = s_m;
    while (at != OPENDRIVE_NONE && left_m > 0 && behind_count < OSC_CHAIN_MAX / 4) {
        double near_m = far_end(context, at, !way);
        double length_m = fabs(from_m - near_m);
        double cut_m = length_m > left_m ? from_m + (way ? -left_m : left_m) : near_m;
        behind[behind_count++] = (struct piece){at, cut_m, from_m, way};
        left_m -= length_m;
        bool next_way = way;
        at = left_m > 0 ? lane_after(context, entity, at, way, false, &next_way) : OPENDRIVE_NONE;
        way = next_way;
        from_m = at != OPENDRIVE_NONE ? far_end(context, at, way) : 0;
    }
    chain->count = 0;
    chain->ends = false;
    while (behind_count > 0) {
        chain->pieces[chain->count++] = behind[--behind_count];
    }
    *first = chain->count - 1;
    left_m = dmath_clamp(context->horizon_s * FASTEST_MPS, AHEAD_MIN_M, AHEAD_MAX_M);
    chain->pieces[*first].to_m = far_end(context, lane, with_s);
    left_m -= fabs(chain->pieces[*first].to_m - s_m);
    at = lane;
    way = with_s;
    while (left_m > 0 && chain->count < OSC_CHAIN_MAX) {
        bool next_way = way;
        at = lane_after(context, entity, at, way, true, &next_way);
        if (at == OPENDRIVE_NONE) {
            chain->ends = true;
            break;
        }
        way = next_way;
        struct piece piece = {at, far_end(context, at, !way), far_end(context, at, way), way};
        double length_m = fabs(piece.to_m - piece.from_m);
        if (length_m > left_m) {
            piece.to_m = piece.from_m + (way ? left_m : -left_m);
        }
        chain->pieces[chain->count++] = piece;
        left_m -= length_m;
    }
}

static void add_raw(struct osc_points *raw, struct pose pose)
{
    if (raw->count > 0) {
        const struct story_point *last = &raw->points[raw->count - 1];
        double dx = pose.x_m - last->x_m;
        double dy = pose.y_m - last->y_m;
        double way_m = sqrt(dx * dx + dy * dy);
        if (way_m < 1e-6 || raw->count == OSC_POINTS_MAX) {
            return;
        }
        raw->points[raw->count] = (struct story_point){
            last->s_m + way_m, pose.x_m, pose.y_m,
            last->heading_rad + dmath_wrap_angle(pose.heading_rad - last->heading_rad), 0};
    } else {
        raw->points[0] = (struct story_point){0, pose.x_m, pose.y_m, pose.heading_rad, 0};
    }
    raw->count++;
}

static void sample_piece(const struct osc_context *context, const struct piece *piece,
                         struct osc_points *raw)
{
    double sign = piece->with_s ? 1.0 : -1.0;
    double length_m = fabs(piece->to_m - piece->from_m);
    uint32_t road = context->network->lanes[piece->lane].road;
    double at_m = 0;
    for (;;) {
        double s_m = piece->from_m + sign * at_m;
        struct pose pose = opendrive_lane_pose(context->network, piece->lane, s_m, 0);
        pose.heading_rad += piece->with_s ? 0 : PI_RAD;
        add_raw(raw, pose);
        if (at_m >= length_m ||
            raw->count == OSC_POINTS_MAX) { /* a lane may be longer than any path */
            return;
        }
        double curvature = fabs(opendrive_curvature(context->network, road, s_m));
        double step_m = sqrt(8 * SAGITTA_M / dmath_max(curvature, 1e-6));
        at_m = dmath_min(at_m + dmath_clamp(step_m, STEP_MIN_M, STEP_MAX_M), length_m);
    }
}

struct osc_tracks *osc_tracks_create(void)
{
    return calloc(1, sizeof(struct osc_tracks));
}

void osc_tracks_clear(struct osc_tracks *tracks)
{
    for (uint32_t i = 0; tracks != NULL && i < TRACKS_MAX; i++) {
        free(tracks->items[i].points);
        tracks->items[i].points = NULL;
        tracks->items[i].count = 0;
    }
}

static bool same_chain(const struct chain *a, const struct chain *b)
{
    bool same = a->count == b->count;
    for (uint32_t i = 0; same && i < a->count; i++) {
        const struct piece *p = &a->pieces[i];
        const struct piece *q = &b->pieces[i];
        same = p->lane == q->lane && p->with_s == q->with_s && p->from_m == q->from_m &&
               p->to_m == q->to_m;
    }
    return same;
}

/* The track along context->tracks->chain, for as long as no further one is asked for; NULL with
 * the error set. */
static const struct track *find_track(struct osc_context *context)
{
    struct osc_tracks *tracks = context->tracks;
    const struct chain *chain = &tracks->chain;
    struct osc_points raw = {0, tracks->points};
    for (uint32_t i = 0; i < TRACKS_MAX; i++) {
        if (tracks->items[i].count > 0 && same_chain(&tracks->items[i].chain, chain)) {
            return &tracks->items[i];
        }
    }
    struct track *track = &tracks->items[tracks->next];
    tracks->next = (tracks->next + 1) % TRACKS_MAX;
    free(track->points);
    track->count = 0;
    for (uint32_t i = 0; i < chain->count; i++) {
        track->s_m[i] = raw.count > 0 ? raw.points[raw.count - 1].s_m : 0;
        sample_piece(context, &chain->pieces[i], &raw);
    }
    osc_points_thin(&raw);
    track->points = malloc(raw.count * sizeof *track->points);
    if (memory_check(track->points, context->error, "%s: out of memory", context->path) !=
        STATUS_OK) {
        return NULL;
    }
    memcpy(track->points, raw.points, raw.count * sizeof *track->points);
    track->count = raw.count;
    track->chain = *chain;
    return track;
}

enum status osc_path_along(struct osc_context *context, const struct osc_entity *entity,
                           uint32_t lane, double s_m, bool with_s, struct osc_path *out)
{
    uint32_t first;
    struct chain *chain = &context->tracks->chain;
    *out = (struct osc_path){0};
    make_chain(context, entity, lane, s_m, with_s, chain, &first);
    out->lanes = osc_alloc(context, chain->count, sizeof *out->lanes);
    out->lane_s_m = osc_alloc(context, chain->count, sizeof *out->lane_s_m);
    out->with_s = osc_alloc(context, chain->count, sizeof *out->with_s);
    if (out->lanes == NULL || out->lane_s_m == NULL || out->with_s == NULL) {
        return STATUS_LIMIT;
    }
    const struct track *track = find_track(context);
    if (track == NULL) {
        return STATUS_NO_MEMORY;
    }
    for (uint32_t i = 0; i < chain->count; i++) {
        out->lanes[i] = chain->pieces[i].lane;
        out->with_s[i] = chain->pieces[i].with_s;
        out->lane_s_m[i] = track->s_m[i];
    }
    out->lane_count = chain->count;
    out->ends = chain->ends;
    struct pose start = opendrive_lane_pose(context->network, lane, s_m, 0);
    if (track->count < 2) {
        start.heading_rad += with_s ? 0 : PI_RAD;
        return osc_path_straight(context, start, out);
    }
    TRY(osc_path_add(context, context->root, track->points, track->count, false, &out->index));
    double offset_m;
    osc_path_project(&context->board, out->index, (struct vec2){start.x_m, start.y_m},
                     &out->start_s_m, &offset_m);
    return STATUS_OK;
}

enum status osc_path_straight(struct osc_context *context, struct pose pose, struct osc_path *out)
{
    double s;
    double c;
    double ahead_m = dmath_clamp(context->horizon_s * FASTEST_MPS, AHEAD_MIN_M, AHEAD_MAX_M);
    dmath_sincos(pose.heading_rad, &s, &c);
    struct story_point points[2] = {
        {0, pose.x_m - BEHIND_M * c, pose.y_m - BEHIND_M * s, pose.heading_rad, 0},
        {BEHIND_M + ahead_m, pose.x_m + ahead_m * c, pose.y_m + ahead_m * s, pose.heading_rad, 0}};
    *out = (struct osc_path){.start_s_m = BEHIND_M};
    return osc_path_add(context, context->root, points, 2, false, &out->index);
}

enum status osc_path_from(struct osc_context *context, const struct osc_entity *entity,
                          struct pose pose, struct osc_path *out)
{
    struct opendrive_place place;
    struct vec2 point = {pose.x_m, pose.y_m};
    if (context->network == NULL ||
        !opendrive_locate(context->network, point, pose.heading_rad, 5.0, &place) ||
        place.lane == OPENDRIVE_NONE) {
        return osc_path_straight(context, pose, out);
    }
    bool with_s = osc_runs_with_s(context, &place, pose.heading_rad);
    return osc_path_along(context, entity, place.lane, place.s_m, with_s, out);
}
