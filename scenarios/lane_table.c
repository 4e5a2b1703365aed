/*
 * Lane table: the centre lines of a map that is still JSON, found by lane id, and the short ways of
 * writing them (segments, beside another lane). See resolve.h.
 *
 * Invariant: points_made bounds what short input can make us generate.
 */
#include "base/check.h"
#include "base/dmath.h"
#include "scenarios/resolve.h"
#include "schemas/scenario_parts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Points while a centre line is being drawn. */
struct pen {
    struct vec2 points[LIMIT_LANE_POINTS];
    uint32_t count;
    struct pose pose; /* of the last point, heading included */
    double step_m;
};

void lane_table_finish(struct lane_table *table)
{
    arena_finish(&table->arena);
    *table = (struct lane_table){0};
}

static enum status no_memory(const struct json_cursor *cursor, struct error *error)
{
    return json_fail_status(cursor, STATUS_LIMIT, error,
                            "expected a map of at most %d bytes in memory, found more",
                            LIMIT_SCENARIO_ARENA_BYTES);
}

/* ---- segments ---- */

static enum status pen_mark(struct pen *pen, const struct json_cursor *cursor, struct error *error)
{
    if (pen->count == LIMIT_LANE_POINTS) {
        return json_fail_status(cursor, STATUS_LIMIT, error,
                                "expected at most %d points of one centre line, found more (a "
                                "larger step_m helps)",
                                LIMIT_LANE_POINTS);
    }
    if (!(fabs(pen->pose.x_m) <= 1e5 && fabs(pen->pose.y_m) <= 1e5)) {
        return json_fail(cursor, error, "expected coordinates from -1e5 to 1e5, found (%g, %g)",
                         pen->pose.x_m, pen->pose.y_m);
    }
    pen->points[pen->count++] = (struct vec2){pen->pose.x_m, pen->pose.y_m};
    return STATUS_OK;
}

/* Number of equal steps of at most step_m. */
static uint32_t step_count(double length_m, double step_m)
{
    double steps = ceil(length_m / step_m - 1e-9);
    return steps < 1.0 ? 1u : (uint32_t)steps;
}

/* Straight on, shifted sideways by the quintic 10u^3 - 15u^4 + 6u^5, whose slope and curvature are
 * zero at both ends. */
static enum status pen_line(struct pen *pen, const struct json_cursor *cursor, double length_m,
                            double shift_m, struct error *error)
{
    struct pose start = pen->pose;
    double sine;
    double cosine;
    uint32_t steps = shift_m != 0.0 ? step_count(length_m, pen->step_m) : 1u;
    dmath_sincos(start.heading_rad, &sine, &cosine);
    for (uint32_t i = 1; i <= steps; i++) {
        double u = (double)i / steps;
        double along = u * length_m;
        double across = shift_m * u * u * u * (10.0 + u * (6.0 * u - 15.0));
        pen->pose.x_m = start.x_m + cosine * along - sine * across;
        pen->pose.y_m = start.y_m + sine * along + cosine * across;
        TRY(pen_mark(pen, cursor, error));
    }
    return STATUS_OK;
}

static enum status pen_arc(struct pen *pen, const struct json_cursor *cursor, double length_m,
                           double radius_m, struct error *error)
{
    struct pose start = pen->pose;
    double sine;
    double cosine;
    uint32_t steps = step_count(length_m, pen->step_m);
    dmath_sincos(start.heading_rad, &sine, &cosine);
    for (uint32_t i = 1; i <= steps; i++) {
        double turn = length_m * i / steps / radius_m;
        double turn_sine;
        double turn_cosine;
        dmath_sincos(start.heading_rad + turn, &turn_sine, &turn_cosine);
        pen->pose.x_m = start.x_m + radius_m * (turn_sine - sine);
        pen->pose.y_m = start.y_m + radius_m * (cosine - turn_cosine);
        TRY(pen_mark(pen, cursor, error));
    }
    pen->pose.heading_rad = dmath_wrap_angle(start.heading_rad + length_m / radius_m);
    return STATUS_OK;
}

static enum status pen_segment(struct pen *pen, const struct json_cursor *cursor,
                               struct error *error)
{
    static const char *const line_keys[] = {"line_m", "shift_m", NULL};
    static const char *const arc_keys[] = {"arc_m", "radius_m", NULL};
    double length_m;
    double shift_m = 0.0;
    double radius_m;
    if (json_object_get(cursor->value, "line_m") != NULL) {
        TRY(json_object_begin(cursor, line_keys, error));
        TRY(json_member_number(cursor, "line_m", true, 0.1, 20000.0, &length_m, error));
        TRY(json_member_number(cursor, "shift_m", false, -100.0, 100.0, &shift_m, error));
        return pen_line(pen, cursor, length_m, shift_m, error);
    }
    TRY(json_object_begin(cursor, arc_keys, error));
    TRY(json_member_number(cursor, "arc_m", true, 0.1, 20000.0, &length_m, error));
    TRY(json_member_number(cursor, "radius_m", true, -1e5, 1e5, &radius_m, error));
    if (fabs(radius_m) < 1.0) {
        struct json_cursor member = json_cursor_member(cursor, "radius_m");
        return json_fail(&member, error,
                         "expected a radius of at least 1 m (left positive), found %g", radius_m);
    }
    return pen_arc(pen, cursor, length_m, radius_m, error);
}

static enum status draw_segments(const struct json_cursor *cursor, struct pen *pen,
                                 struct error *error)
{
    static const char *const keys[] = {"start", "segments", "step_m", NULL};
    size_t count;
    TRY(json_object_begin(cursor, keys, error));
    struct json_cursor start = json_cursor_member(cursor, "start");
    TRY(json_array_begin(&start, 3, 3, &count, error));
    double values[3];
    for (size_t i = 0; i < 3; i++) {
        struct json_cursor element = json_cursor_element(&start, i);
        TRY(i < 2 ? json_value_number(&element, -1e5, 1e5, &values[i], error)
                  : json_value_angle(&element, &values[i], error));
    }
    pen->pose = (struct pose){values[0], values[1], values[2]};
    pen->step_m = 5.0;
    TRY(json_member_number(cursor, "step_m", false, 0.1, 100.0, &pen->step_m, error));
    TRY(pen_mark(pen, &start, error));
    struct json_cursor segments = json_cursor_member(cursor, "segments");
    TRY(json_array_begin(&segments, 1, 64, &count, error));
    for (size_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(&segments, i);
        TRY(pen_segment(pen, &element, error));
    }
    return STATUS_OK;
}

/* ---- beside ---- */

static struct vec2 direction(struct vec2 a, struct vec2 b)
{
    double x = b.x_m - a.x_m;
    double y = b.y_m - a.y_m;
    double length = sqrt(x * x + y * y);
    return length > 0 ? (struct vec2){x / length, y / length} : (struct vec2){0.0, 0.0};
}

/* Each point moves along the bisector of its two segments' normals, far enough that both segments
 * keep their distance (a mitre, at most twice as far). */
static enum status offset_points(const struct json_cursor *cursor, const struct lane_shape *lane,
                                 double offset_m, struct pen *pen, struct error *error)
{
    for (uint32_t i = 0; i < lane->point_count; i++) {
        uint32_t last = lane->point_count - 1;
        struct vec2 in = direction(lane->points[i > 0 ? i - 1 : 0], lane->points[i > 0 ? i : 1]);
        struct vec2 out =
            direction(lane->points[i < last ? i : last - 1], lane->points[i < last ? i + 1 : last]);
        double along = 1.0 + in.x_m * out.x_m + in.y_m * out.y_m;
        double scale = offset_m / dmath_max(along, 0.5);
        pen->pose.x_m = lane->points[i].x_m - (in.y_m + out.y_m) * scale;
        pen->pose.y_m = lane->points[i].y_m + (in.x_m + out.x_m) * scale;
        TRY(pen_mark(pen, cursor, error));
    }
    return STATUS_OK;
}

static enum status draw_beside(const struct json_cursor *cursor, const struct lane_table *table,
                               struct pen *pen, struct error *error)
{
    static const char *const keys[] = {"beside", "offset_m", "reverse", NULL};
    char id[LIMIT_ID_BYTES];
    double offset_m;
    bool reverse = false;
    TRY(json_object_begin(cursor, keys, error));
    TRY(json_member_text(cursor, "beside", true, id, sizeof id, error));
    TRY(json_member_number(cursor, "offset_m", true, -1000.0, 1000.0, &offset_m, error));
    TRY(json_member_bool(cursor, "reverse", false, &reverse, error));
    const struct lane_shape *lane = NULL;
    for (uint32_t i = 0; i < table->count && lane == NULL; i++) {
        lane = strcmp(table->shapes[i].id, id) == 0 ? &table->shapes[i] : NULL;
    }
    if (lane == NULL) {
        struct json_cursor member = json_cursor_member(cursor, "beside");
        return json_fail(&member, error,
                         "expected the id of a lane earlier in the list, found \"%s\"", id);
    }
    TRY(offset_points(cursor, lane, offset_m, pen, error));
    for (uint32_t i = 0, j = pen->count - 1; reverse && i < j; i++, j--) {
        struct vec2 swap = pen->points[i];
        pen->points[i] = pen->points[j];
        pen->points[j] = swap;
    }
    return STATUS_OK;
}

/* ---- the table ---- */

static json_t *points_to_json(const struct vec2 *points, uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count && list != NULL; i++) {
        json_t *point = json_array();
        if (point == NULL || json_array_append_new(point, json_real(points[i].x_m)) != 0 ||
            json_array_append_new(point, json_real(points[i].y_m)) != 0) {
            json_decref(point);
            json_decref(list);
            return NULL;
        }
        if (json_array_append_new(list, point) != 0) {
            json_decref(list);
            return NULL;
        }
    }
    return list;
}

/* Puts the points where the short form stood. */
static enum status replace_by_points(const struct json_cursor *owner, const char *key, size_t index,
                                     const struct vec2 *points, uint32_t count,
                                     struct lane_table *table, struct error *error)
{
    json_t *parent = (json_t *)(uintptr_t)owner->value;
    table->points_made += count;
    if (table->points_made > LIMIT_MAP_POINTS) {
        return json_fail_status(owner, STATUS_LIMIT, error,
                                "expected at most %d points in one map, found more",
                                LIMIT_MAP_POINTS);
    }
    json_t *list = points_to_json(points, count);
    int failed = key != NULL ? json_object_set_new(parent, key, list)
                             : json_array_set_new(parent, index, list);
    if (failed != 0) {
        return json_fail_status(owner, STATUS_NO_MEMORY, error, "out of memory");
    }
    return STATUS_OK;
}

static enum status read_points(const struct json_cursor *cursor, struct pen *pen,
                               struct error *error)
{
    size_t count;
    TRY(json_array_begin(cursor, 2, LIMIT_LANE_POINTS, &count, error));
    for (size_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(cursor, i);
        TRY(decode_point(&element, &pen->points[i], error));
    }
    pen->count = (uint32_t)count;
    return STATUS_OK;
}

static enum status store_shape(const struct json_cursor *lane, const char *id,
                               const struct pen *pen, struct lane_table *table, struct error *error)
{
    struct lane_shape *shape = &table->shapes[table->count];
    shape->id = arena_copy_text(&table->arena, id, strlen(id));
    shape->points = arena_alloc(&table->arena, pen->count, sizeof *shape->points);
    shape->s_m = arena_alloc(&table->arena, pen->count, sizeof *shape->s_m);
    if (shape->id == NULL || shape->points == NULL || shape->s_m == NULL) {
        return no_memory(lane, error);
    }
    shape->point_count = pen->count;
    for (uint32_t i = 0; i < pen->count; i++) {
        shape->points[i] = pen->points[i];
        if (i > 0) {
            double x = pen->points[i].x_m - pen->points[i - 1].x_m;
            double y = pen->points[i].y_m - pen->points[i - 1].y_m;
            shape->s_m[i] = shape->s_m[i - 1] + sqrt(x * x + y * y);
        }
    }
    shape->speed_limit_mps = 0.0;
    TRY(json_member_number(lane, "speed_limit_mps", false, 0.0, 100.0, &shape->speed_limit_mps,
                           error));
    table->count++;
    return STATUS_OK;
}

static enum status add_lane(const struct json_cursor *lane, struct pen *pen,
                            struct lane_table *table, struct error *error)
{
    char id[LIMIT_ID_BYTES];
    if (!json_is_object(lane->value)) {
        return json_fail(lane, error, "expected an object, a lane");
    }
    TRY(json_member_text(lane, "id", true, id, sizeof id, error));
    struct json_cursor line = json_cursor_member(lane, "centre_line");
    pen->count = 0;
    if (!json_is_object(line.value)) {
        TRY(read_points(&line, pen, error));
    } else {
        if (json_object_get(line.value, "beside") != NULL) {
            TRY(draw_beside(&line, table, pen, error));
        } else {
            TRY(draw_segments(&line, pen, error));
        }
        TRY(replace_by_points(lane, "centre_line", 0, pen->points, pen->count, table, error));
    }
    return store_shape(lane, id, pen, table, error);
}

static int compare_shapes(const void *a, const void *b)
{
    const struct lane_shape *const *left = a;
    const struct lane_shape *const *right = b;
    return strcmp((*left)->id, (*right)->id);
}

enum status lane_table_build(const struct json_cursor *map, struct lane_table *out,
                             struct error *error)
{
    struct json_cursor lanes = json_cursor_member(map, "lanes");
    size_t count;
    enum status status = STATUS_OK;
    arena_init(&out->arena, LIMIT_SCENARIO_ARENA_BYTES);
    TRY(json_array_begin(&lanes, 1, LIMIT_LANES, &count, error));
    out->shapes = arena_alloc(&out->arena, count, sizeof *out->shapes);
    out->sorted = arena_alloc(&out->arena, count, sizeof(const struct lane_shape *));
    struct pen *pen = malloc(sizeof *pen);
    if (out->shapes == NULL || out->sorted == NULL || pen == NULL) {
        status = no_memory(&lanes, error);
    }
    for (size_t i = 0; i < count && status == STATUS_OK; i++) {
        struct json_cursor lane = json_cursor_element(&lanes, i);
        status = add_lane(&lane, pen, out, error);
        out->sorted[i] = &out->shapes[i];
    }
    free(pen);
    if (status == STATUS_OK) {
        qsort(out->sorted, out->count, sizeof(const struct lane_shape *), compare_shapes);
    }
    return status;
}

const struct lane_shape *lane_table_find(const struct lane_table *table, const char *id)
{
    const struct lane_shape key = {.id = id};
    const struct lane_shape *pointer = &key;
    const struct lane_shape *const *found = NULL;
    if (table->count > 0) {
        found = bsearch(&pointer, table->sorted, table->count, sizeof(const struct lane_shape *),
                        compare_shapes);
    }
    return found != NULL ? *found : NULL;
}

struct pose lane_shape_pose(const struct lane_shape *shape, double s_m, double offset_m)
{
    /* The last point at or before s_m; the search keeps s[low] <= s_m. */
    uint32_t low = 0;
    uint32_t high = shape->point_count - 1;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (shape->s_m[middle] <= s_m) {
            low = middle;
        } else {
            high = middle;
        }
    }
    struct vec2 a = shape->points[low];
    struct vec2 along = direction(a, shape->points[low + 1]);
    double rest = s_m - shape->s_m[low];
    return (struct pose){
        .x_m = a.x_m + along.x_m * rest - along.y_m * offset_m,
        .y_m = a.y_m + along.y_m * rest + along.x_m * offset_m,
        .heading_rad = dmath_atan2(along.y_m, along.x_m),
    };
}

/* ---- bands ---- */

struct band {
    const struct lane_shape *lane;
    double start_m, end_m, left_m, right_m;
};

static enum status read_band(const struct json_cursor *cursor, const struct lane_table *table,
                             struct band *out, struct error *error)
{
    static const char *const keys[] = {"lane", "start_m", "end_m", "left_m", "right_m", NULL};
    char id[LIMIT_ID_BYTES];
    TRY(json_object_begin(cursor, keys, error));
    TRY(json_member_text(cursor, "lane", true, id, sizeof id, error));
    struct json_cursor member = json_cursor_member(cursor, "lane");
    out->lane = lane_table_find(table, id);
    if (out->lane == NULL) {
        return json_fail(&member, error, "expected the id of a lane, found \"%s\"", id);
    }
    double length_m = out->lane->s_m[out->lane->point_count - 1];
    TRY(json_member_number(cursor, "start_m", true, 0.0, length_m, &out->start_m, error));
    TRY(json_member_number(cursor, "end_m", true, out->start_m, length_m, &out->end_m, error));
    TRY(json_member_number(cursor, "left_m", true, -1000.0, 1000.0, &out->left_m, error));
    return json_member_number(cursor, "right_m", true, -1000.0, 1000.0, &out->right_m, error);
}

/* Out along the right edge, back along the left one; corners at the lane's own points. */
static uint32_t draw_band(const struct band *band, struct vec2 *points, uint32_t max)
{
    const struct lane_shape *lane = band->lane;
    uint32_t half = 0;
    for (uint32_t i = 0; i <= lane->point_count && half < max / 2; i++) {
        double s_m = i == 0 ? band->start_m : i == lane->point_count ? band->end_m : lane->s_m[i];
        if (i > 0 && i < lane->point_count &&
            (s_m <= band->start_m + 0.05 || s_m >= band->end_m - 0.05)) {
            continue;
        }
        struct pose right = lane_shape_pose(lane, s_m, -band->right_m);
        points[half++] = (struct vec2){right.x_m, right.y_m};
        struct pose left = lane_shape_pose(lane, s_m, band->left_m);
        points[max - half] = (struct vec2){left.x_m, left.y_m};
    }
    memmove(points + half, points + max - half, half * sizeof *points);
    return 2 * half;
}

static enum status resolve_band(const struct json_cursor *cursor, const struct json_cursor *owner,
                                const char *key, size_t index, struct lane_table *table,
                                struct error *error)
{
    struct band band;
    if (!json_is_object(cursor->value)) {
        return STATUS_OK;
    }
    TRY(read_band(cursor, table, &band, error));
    /* Room for both edges of the longest lane; the decoder refuses a polygon beyond its limit. */
    enum { BAND_POINTS = 2 * LIMIT_LANE_POINTS + 4 };
    struct vec2 *points = malloc(BAND_POINTS * sizeof *points);
    if (points == NULL) {
        return json_fail_status(cursor, STATUS_NO_MEMORY, error, "out of memory");
    }
    uint32_t count = draw_band(&band, points, BAND_POINTS);
    enum status status = replace_by_points(owner, key, index, points, count, table, error);
    free(points);
    return status;
}

enum status lane_table_resolve_bands(const struct json_cursor *map, struct lane_table *table,
                                     struct error *error)
{
    static const char *const lists[] = {"drivable", "crosswalks", "surfaces"};
    for (size_t k = 0; k < COUNT_OF(lists); k++) {
        struct json_cursor list = json_cursor_member(map, lists[k]);
        /* Anything but an array of the right things is for the decoder to refuse. */
        for (size_t i = 0; i < json_array_size(list.value); i++) {
            struct json_cursor element = json_cursor_element(&list, i);
            struct json_cursor area = json_cursor_member(&element, "area");
            if (k < 2) {
                TRY(resolve_band(&element, &list, NULL, i, table, error));
            } else {
                TRY(resolve_band(&area, &element, "area", 0, table, error));
            }
        }
    }
    return STATUS_OK;
}
