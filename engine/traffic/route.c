/*
 * Routes: a lane sequence as one track. Lane changes are quintic blends of two centre lines; past
 * the last lane the route goes on along first successors for EXTENSION_M, then straight.
 */
#include "base/check.h"
#include "base/dmath.h"
#include "engine/traffic/route_internal.h"

#include <math.h>
#include <stdlib.h>

#define EXTENSION_M 200.0
#define BLEND_M 40.0
#define BLEND_MIN_M 10.0
#define BLEND_LEAD_M 5.0 /* a change on the first lane begins this far ahead of the start */

struct route {
    struct track *track;
    double length_m; /* without the extension */
};

/* Appends the lane's centre line from from_m to its end. */
static void add_lane(struct track_builder *builder, const struct roadmap *roadmap, int32_t lane,
                     double from_m)
{
    const struct lane *record = &roadmap_map(roadmap)->lanes[lane];
    track_builder_lane(builder, lane);
    struct pose start = roadmap_lane_pose(roadmap, lane, from_m, 0.0);
    track_builder_add(builder, start.x_m, start.y_m);
    double s_m = 0.0;
    for (uint32_t i = 1; i < record->point_count; i++) {
        struct vec2 a = record->centre_line[i - 1];
        struct vec2 b = record->centre_line[i];
        s_m += sqrt((b.x_m - a.x_m) * (b.x_m - a.x_m) + (b.y_m - a.y_m) * (b.y_m - a.y_m));
        if (s_m > from_m) {
            track_builder_add(builder, b.x_m, b.y_m);
        }
    }
}

void route_add_chain(struct track_builder *builder, const struct roadmap *roadmap, int32_t lane,
                     double length_m)
{
    const struct map *map = roadmap_map(roadmap);
    double until_m = builder->length_m + length_m;
    while (builder->length_m < until_m && !builder->failed) {
        double before_m = builder->length_m;
        add_lane(builder, roadmap, lane, 0.0);
        if (map->lanes[lane].successor_count == 0 || builder->length_m <= before_m) {
            return;
        }
        lane = (int32_t)map->lanes[lane].successors[0];
    }
}

/* Leaves lane `from` at from_m for its neighbour `to`; returns where on `to` the blend ends. */
static double add_change(struct track_builder *builder, const struct roadmap *roadmap, int32_t from,
                         int32_t to, double from_m)
{
    const struct lane *target = &roadmap_map(roadmap)->lanes[to];
    double remaining_m = roadmap_lane_length_m(roadmap, from) - from_m;
    double blend_m = dmath_clamp(remaining_m, BLEND_MIN_M, BLEND_M);
    struct polyline_projection foot = {0};
    for (double along = 1.0; along <= blend_m; along += 1.0) {
        struct pose a = roadmap_lane_pose(roadmap, from, from_m + along, 0.0);
        foot =
            polyline_project(target->centre_line, target->point_count, (struct vec2){a.x_m, a.y_m});
        struct pose b = roadmap_lane_pose(roadmap, to, foot.s_m, 0.0);
        double u = along / blend_m;
        double w = u * u * u * (10.0 + u * (-15.0 + 6.0 * u));
        if (w >= 0.5) {
            track_builder_lane(builder, to);
        }
        track_builder_add(builder, a.x_m + w * (b.x_m - a.x_m), a.y_m + w * (b.y_m - a.y_m));
    }
    return foot.s_m;
}

static bool is_successor(const struct lane *lane, uint32_t next)
{
    for (uint32_t i = 0; i < lane->successor_count; i++) {
        if (lane->successors[i] == next) {
            return true;
        }
    }
    return false;
}

static bool is_neighbour(const struct lane *lane, uint32_t next)
{
    return (lane->left == (int32_t)next && !lane->left_opposite) ||
           (lane->right == (int32_t)next && !lane->right_opposite);
}

enum status route_build_track(const struct roadmap *roadmap, const uint32_t *lanes, uint32_t count,
                              struct pose start, double extension_m, double *length_m,
                              struct track **out, struct error *error)
{
    const struct map *map = roadmap_map(roadmap);
    struct track_builder builder = {0};
    double from_m = 0.0; /* where on lanes[i] the path stands */
    for (uint32_t i = 0; i < count; i++) {
        const struct lane *lane = &map->lanes[lanes[i]];
        bool last = i + 1 == count;
        if (!last && !is_successor(lane, lanes[i + 1]) && is_neighbour(lane, lanes[i + 1])) {
            double begin_m = from_m;
            if (i == 0) {
                struct polyline_projection foot = polyline_project(
                    lane->centre_line, lane->point_count, (struct vec2){start.x_m, start.y_m});
                begin_m = foot.s_m + BLEND_LEAD_M;
            }
            begin_m = dmath_min(begin_m, roadmap_lane_length_m(roadmap, (int32_t)lanes[i]));
            track_builder_lane(&builder, (int32_t)lanes[i]);
            for (double s = from_m; s < begin_m; s += 1.0) {
                struct pose pose = roadmap_lane_pose(roadmap, (int32_t)lanes[i], s, 0.0);
                track_builder_add(&builder, pose.x_m, pose.y_m);
            }
            struct pose pose = roadmap_lane_pose(roadmap, (int32_t)lanes[i], begin_m, 0.0);
            track_builder_add(&builder, pose.x_m, pose.y_m);
            from_m =
                add_change(&builder, roadmap, (int32_t)lanes[i], (int32_t)lanes[i + 1], begin_m);
            continue;
        }
        add_lane(&builder, roadmap, (int32_t)lanes[i], from_m);
        from_m = 0.0;
        if (!last && !is_successor(lane, lanes[i + 1])) {
            track_builder_discard(&builder);
            return error_set(error, STATUS_BAD_INPUT,
                             "route: expected a successor or same-direction neighbour of lane %s, "
                             "found lane %s",
                             lane->id, map->lanes[lanes[i + 1]].id);
        }
    }
    *length_m = builder.length_m;
    const struct lane *end = &map->lanes[lanes[count - 1]];
    if (end->successor_count > 0 && extension_m > 0.0) {
        route_add_chain(&builder, roadmap, (int32_t)end->successors[0], extension_m);
    }
    return track_builder_finish(&builder, out, error);
}

enum status route_create(const struct roadmap *roadmap, const uint32_t *lanes, uint32_t count,
                         struct pose start, struct route **out, struct error *error)
{
    if (count == 0) {
        return error_set(error, STATUS_BAD_INPUT, "route: expected at least one lane");
    }
    for (uint32_t i = 0; i < count; i++) {
        if (lanes[i] >= roadmap_map(roadmap)->lane_count) {
            return error_set(error, STATUS_BAD_INPUT, "route: expected lanes of the map");
        }
    }
    struct route *route = calloc(1, sizeof *route);
    TRY(memory_check(route, error, "no memory for a route"));
    enum status status = route_build_track(roadmap, lanes, count, start, EXTENSION_M,
                                           &route->length_m, &route->track, error);
    if (status != STATUS_OK) {
        free(route);
        return status;
    }
    *out = route;
    return STATUS_OK;
}

void route_destroy(struct route *route)
{
    if (route != NULL) {
        track_destroy(route->track);
        free(route);
    }
}

struct track *route_track_mutable(struct route *route)
{
    return route->track;
}

double route_length_m(const struct route *route)
{
    return route->length_m;
}

struct polyline_projection route_project(const struct route *route, struct vec2 point,
                                         double hint_s_m)
{
    const struct track *track = route->track;
    double low_m = hint_s_m < 0 ? 0.0 : hint_s_m - 20.0;
    double high_m = hint_s_m < 0 ? track->length_m : hint_s_m + 100.0;
    struct track_position at = track_project_window(track, point, low_m, high_m);
    double s_m = dmath_clamp(at.s_m, 0.0, track->length_m);
    double past_m = at.s_m - s_m;
    return (struct polyline_projection){
        .segment = track_sample_index(track, s_m),
        .s_m = s_m,
        .offset_m = at.offset_m,
        .distance_m = sqrt(at.offset_m * at.offset_m + past_m * past_m),
        .heading_rad = dmath_wrap_angle(track_at(track, s_m).heading_rad),
        .beyond_end = past_m != 0.0,
    };
}

struct pose route_pose_at(const struct route *route, double s_m, double offset_m)
{
    struct track_pose at = track_at(route->track, s_m);
    return (struct pose){
        .x_m = at.x_m - at.uy * offset_m,
        .y_m = at.y_m + at.ux * offset_m,
        .heading_rad = dmath_wrap_angle(at.heading_rad),
    };
}

int32_t route_lane_at(const struct route *route, double s_m)
{
    return track_lane_at(route->track, s_m);
}
