/*
 * WOMD import: lanes, driveways and crosswalks. See womd.h.
 *
 * Lanes have a centre line and nothing else. Where one begins at another's end and goes on in its
 * direction, it follows it.
 */
#include "scenarios/import/womd/womd.h"

#include "base/dmath.h"
#include "base/units.h"
#include "scenarios/resolve.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LANE_WIDTH_M 3.5
#define CYCLE_WIDTH_M 1.8
#define WIDTH_MIN_M 0.5
#define WIDTH_MAX_M 20.0
#define SPEED_LIMIT_MAX_MPS 100.0
#define LINK_M 1.0 /* between the end of a lane and the beginning of the next */
#define LINK_RAD 0.8
#define STEP_MIN_M 1.0 /* between points that are kept; the file has one every half metre */
#define LANE_MIN_M 0.5
#define POLYGON_MIN_M2 0.5
enum { ROADS_MAX = 20000, ROAD_POINTS_MAX = 20000, CYCLE_ELEMENT = 3, FREEWAY_ELEMENT = 1 };

void womd_lanes_finish(struct womd_lanes *lanes)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        free(lanes->items[i].points);
    }
    free(lanes->items);
    *lanes = (struct womd_lanes){.count = 0};
}

enum status womd_point(const struct womd_context *context, const struct json_cursor *cursor,
                       struct vec2 *out)
{
    TRY(json_member_number(cursor, "x", true, -WOMD_COORDINATE_MAX_M, WOMD_COORDINATE_MAX_M,
                           &out->x_m, context->error));
    TRY(json_member_number(cursor, "y", true, -WOMD_COORDINATE_MAX_M, WOMD_COORDINATE_MAX_M,
                           &out->y_m, context->error));
    out->x_m -= context->origin.x_m;
    out->y_m -= context->origin.y_m;
    return STATUS_OK;
}

static double apart_m(struct vec2 a, struct vec2 b)
{
    double x = a.x_m - b.x_m;
    double y = a.y_m - b.y_m;
    return sqrt(x * x + y * y);
}

/* The points of a road, STEP_MIN_M apart but for the last one. *points has room for all. */
static enum status read_points(struct womd_context *context, const struct json_cursor *road,
                               struct vec2 **points, uint32_t *count)
{
    size_t given;
    struct json_cursor geometry = json_cursor_member(road, "geometry");
    TRY(json_array_begin(&geometry, 0, ROAD_POINTS_MAX, &given, context->error));
    *points = calloc(given + 1, sizeof **points);
    *count = 0;
    TRY(memory_check(*points, context->error, "%s: out of memory", context->name));
    for (size_t i = 0; i < given; i++) {
        struct json_cursor element = json_cursor_element(&geometry, i);
        struct vec2 point;
        TRY(womd_point(context, &element, &point));
        bool last = i + 1 == given;
        double step = *count > 0 ? apart_m((*points)[*count - 1], point) : INFINITY;
        if (last && step<STEP_MIN_M && * count> 1) {
            (*points)[*count - 1] = point; /* the end stays where it is */
        } else if (step >= STEP_MIN_M || (last && step > 0.05)) {
            (*points)[(*count)++] = point;
        }
    }
    return STATUS_OK;
}

static json_t *points_json(const struct vec2 *points, uint32_t count)
{
    json_t *json = json_array();
    for (uint32_t i = 0; i < count; i++) {
        json_array_append_new(json, json_pack("[f, f]", points[i].x_m, points[i].y_m));
    }
    return json;
}

/* ---- lanes ---- */

/* Whether the document's rules would take it; thinned until its points are few enough. */
static bool is_usable(struct womd_context *context, struct vec2 *points, uint32_t *count)
{
    uint32_t stride = (*count + LIMIT_LANE_POINTS - 2) / (LIMIT_LANE_POINTS - 1);
    uint32_t first;
    uint32_t second;
    if (stride > 1) {
        uint32_t kept = 0;
        for (uint32_t i = 0; i < *count; i++) {
            if (i % stride == 0 || i + 1 == *count) {
                points[kept++] = points[i];
            }
        }
        *count = kept;
        context->notes.lanes_thinned++;
    }
    return *count >= 2 && polyline_length_m(points, *count) >= LANE_MIN_M &&
           !points_self_intersect(points, *count, false, &first, &second);
}

static bool lane_is_known(const struct womd_lanes *lanes, const char *id)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        if (strcmp(lanes->items[i].id, id) == 0) {
            return true;
        }
    }
    return false;
}

/* Takes the points over. */
static enum status add_lane(struct womd_context *context, const struct json_cursor *road,
                            struct vec2 *points, uint32_t count, json_t *list,
                            struct womd_lanes *lanes)
{
    int64_t id = 0;
    int64_t element = 0;
    double width_m = 0.0; /* the dataset itself has no widths and limits in the lane */
    double limit_mps = 0.0;
    enum status status =
        json_member_integer(road, "id", true, -1, INT64_C(1) << 53, &id, context->error);
    THEN(status,
         json_member_integer(road, "map_element_id", false, -1, 1000, &element, context->error));
    THEN(status, json_member_number(road, "width_m", false, WIDTH_MIN_M, WIDTH_MAX_M, &width_m,
                                    context->error));
    THEN(status, json_member_number(road, "speed_limit_mps", false, 0.0, SPEED_LIMIT_MAX_MPS,
                                    &limit_mps, context->error));
    struct womd_lane *lane = &lanes->items[lanes->count];
    snprintf(lane->id, sizeof lane->id, "lane%lld", (long long)id);
    bool usable = status == STATUS_OK && lanes->count < LIMIT_LANES - 1 &&
                  lanes->point_total + count < LIMIT_MAP_POINTS / 2 &&
                  is_usable(context, points, &count) && !lane_is_known(lanes, lane->id);
    if (!usable) {
        context->notes.lanes_dropped++;
        free(points);
        return status;
    }
    bool cycle = element == CYCLE_ELEMENT;
    lane->points = points;
    lane->point_count = count;
    lanes->point_total += count;
    lanes->count++;
    if (width_m == 0.0) {
        width_m = cycle ? CYCLE_WIDTH_M : LANE_WIDTH_M;
    }
    json_t *json = json_pack("{s:s, s:s, s:o, s:f, s:f, s:s, s:s}", "id", lane->id, "kind",
                             cycle ? "cycle" : "driving", "centre_line", points_json(points, count),
                             "width_m", width_m, "speed_limit_mps", limit_mps, "left_marking",
                             "dashed", "right_marking", "dashed");
    json_array_append_new(list, json);
    return STATUS_OK;
}

static double heading_of(struct vec2 a, struct vec2 b)
{
    return dmath_atan2(b.y_m - a.y_m, b.x_m - a.x_m);
}

/* Whether `next` goes on where `lane` ends. */
static bool follows(const struct womd_lane *lane, const struct womd_lane *next)
{
    const struct vec2 *end = &lane->points[lane->point_count - 1];
    if (lane == next || apart_m(*end, next->points[0]) > LINK_M) {
        return false;
    }
    double turn = dmath_wrap_angle(heading_of(next->points[0], next->points[1]) -
                                   heading_of(end[-1], end[0]));
    return fabs(turn) <= LINK_RAD;
}

static void link_lanes(const struct womd_lanes *lanes, json_t *list)
{
    for (uint32_t i = 0; i < lanes->count; i++) {
        json_t *successors = json_array();
        for (uint32_t j = 0; j < lanes->count; j++) {
            if (json_array_size(successors) < LIMIT_LANE_LINKS &&
                follows(&lanes->items[i], &lanes->items[j])) {
                json_array_append_new(successors, json_string(lanes->items[j].id));
            }
        }
        json_object_set_new(json_array_get(list, i), "successors", successors);
    }
}

/* ---- areas ---- */

static double area_m2(const struct vec2 *points, uint32_t count)
{
    double sum = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct vec2 a = points[i];
        struct vec2 b = points[(i + 1) % count];
        sum += a.x_m * b.y_m - b.x_m * a.y_m;
    }
    return fabs(0.5 * sum);
}

/* A polygon that the loader takes, into the list; others are left out. */
static void add_polygon(const struct vec2 *points, uint32_t count, json_t *list)
{
    uint32_t first;
    uint32_t second;
    while (count > 1 && apart_m(points[0], points[count - 1]) < 0.05) {
        count--; /* closed by itself */
    }
    if (count >= 3 && count <= LIMIT_LANE_POINTS && json_array_size(list) < LIMIT_POLYGONS - 1 &&
        area_m2(points, count) >= POLYGON_MIN_M2 &&
        !points_self_intersect(points, count, true, &first, &second)) {
        json_array_append_new(list, points_json(points, count));
    }
}

static enum status read_road(struct womd_context *context, const struct json_cursor *road,
                             json_t *map, struct womd_lanes *lanes)
{
    char type[LIMIT_ID_BYTES];
    if (!json_is_object(road->value)) {
        return json_fail(road, context->error, "expected an object, a road");
    }
    TRY(json_member_text(road, "type", true, type, sizeof type, context->error));
    bool lane = strcmp(type, "lane") == 0;
    bool driveway = strcmp(type, "driveway") == 0;
    if (!lane && !driveway && strcmp(type, "crosswalk") != 0) {
        return STATUS_OK; /* edges, lines, bumps, stop signs */
    }
    struct vec2 *points = NULL;
    uint32_t count = 0;
    enum status status = read_points(context, road, &points, &count);
    if (status == STATUS_OK && lane) {
        return add_lane(context, road, points, count, json_object_get(map, "lanes"), lanes);
    }
    if (status == STATUS_OK) {
        add_polygon(points, count, json_object_get(map, driveway ? "drivable" : "crosswalks"));
    }
    free(points);
    return status;
}

enum status womd_map(struct womd_context *context, const struct json_cursor *roads, json_t **out,
                     struct womd_lanes *lanes)
{
    size_t count;
    TRY(json_array_begin(roads, 0, ROADS_MAX, &count, context->error));
    lanes->items = calloc(LIMIT_LANES, sizeof *lanes->items);
    json_t *map = json_pack("{s:[], s:[], s:[]}", "lanes", "drivable", "crosswalks");
    enum status status = memory_check(lanes->items != NULL ? (void *)map : NULL, context->error,
                                      "%s: out of memory", context->name);
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct json_cursor road = json_cursor_element(roads, i);
        status = read_road(context, &road, map, lanes);
    }
    if (status != STATUS_OK) {
        json_decref(map);
        return status;
    }
    link_lanes(lanes, json_object_get(map, "lanes"));
    *out = map;
    return STATUS_OK;
}
