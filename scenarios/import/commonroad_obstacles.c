/*
 * CommonRoad import: obstacles as the file has them. commonroad_agents.c makes agents of them.
 *
 * 2018b has <obstacle> with a role, 2020a one element per role. A dynamic obstacle moves by its
 * trajectory, or by the middles of its predicted occupancies; what a state leaves out (heading,
 * speed) follows from its neighbours. A static shape of several parts becomes several agents.
 */
#include "base/dmath.h"
#include "scenarios/import/commonroad.h"
#include "scenarios/import/recorded.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double SIZE_MIN_M = 0.05; /* of a scenario document */
static const double SIZE_MAX_M = 50.0;
static const double PIECE_MAX_M = 49.0; /* long static boxes are cut into such pieces */
static const double STEP_MAX = 1e7;
static const double MOVING_M = 0.05; /* between two samples, for a heading to mean something */
static const double COAST_S = 600.0;

struct obstacle_reader {
    struct cr_context *context;
    const struct cr_map *map;
    struct cr_obstacles *out;
    const struct xml_element *element;
    const char *type;
};

/* ---- kinds ---- */

struct kind_name {
    const char *type;
    enum agent_kind kind;
    double height_m;
};

static const struct kind_name kind_names[] = {
    {"car", AGENT_CAR, 1.5},
    {"taxi", AGENT_CAR, 1.5},
    {"priorityVehicle", AGENT_VAN, 2.3},
    {"truck", AGENT_TRUCK, 3.5},
    {"bus", AGENT_BUS, 3.2},
    {"train", AGENT_BUS, 3.8},
    {"motorcycle", AGENT_MOTORCYCLE, 1.5},
    {"bicycle", AGENT_CYCLIST, 1.7},
    {"pedestrian", AGENT_PEDESTRIAN, 1.75},
    {"constructionZone", AGENT_OBJECT, 1.0},
    {"roadBoundary", AGENT_OBJECT, 0.8},
    {"building", AGENT_OBJECT, 8.0},
    {"pillar", AGENT_OBJECT, 3.0},
    {"median_strip", AGENT_OBJECT, 0.3},
};

/* "unknown", "parkedVehicle" and what later versions add: by size. */
static struct kind_name kind_by_size(bool moves, bool vehicle, double length_m, double width_m)
{
    double longer = dmath_max(length_m, width_m);
    double shorter = dmath_min(length_m, width_m);
    if (moves && longer < 1.2) {
        return (struct kind_name){"", AGENT_PEDESTRIAN, 1.75};
    }
    if (moves && longer < 2.6 && shorter < 1.1) {
        return (struct kind_name){"", AGENT_CYCLIST, 1.7};
    }
    bool like_a_car = longer > 2.4 && longer < 20 && shorter > 1.2 && shorter < 3.2;
    if (!moves && !vehicle && !like_a_car) {
        return (struct kind_name){"", AGENT_OBJECT, 1.0};
    }
    if (longer > 7.5) {
        return (struct kind_name){"", AGENT_TRUCK, 3.5};
    }
    return longer > 5.3 ? (struct kind_name){"", AGENT_VAN, 2.3}
                        : (struct kind_name){"", AGENT_CAR, 1.5};
}

static void set_kind(const struct obstacle_reader *reader, struct cr_obstacle *out)
{
    for (size_t i = 0; i < sizeof kind_names / sizeof kind_names[0]; i++) {
        if (strcmp(reader->type, kind_names[i].type) == 0) {
            out->kind = kind_names[i].kind;
            out->height_m = kind_names[i].height_m;
            return;
        }
    }
    struct kind_name kind = kind_by_size(out->moves, strcmp(reader->type, "parkedVehicle") == 0,
                                         out->length_m, out->width_m);
    out->kind = kind.kind;
    out->height_m = kind.height_m;
}

static double capped_size(struct cr_context *context, double size_m)
{
    if (size_m > SIZE_MAX_M) {
        cr_note(context, CR_NOTE_SIZE_CAPPED);
    }
    return dmath_clamp(size_m, SIZE_MIN_M, SIZE_MAX_M);
}

/* ---- the list ---- */

/* A zeroed obstacle with the element's id; parts after the first get ".1", ".2" .. */
static enum status add_obstacle(struct obstacle_reader *reader, uint32_t part,
                                struct cr_obstacle **out)
{
    struct cr_obstacles *list = reader->out;
    char id[LIMIT_ID_BYTES];
    TRY(cr_reference(reader->context, reader->element, "id", id));
    if (list->count == list->capacity) {
        uint32_t capacity = list->capacity == 0 ? 64 : list->capacity * 2;
        struct cr_obstacle *items = cr_alloc(reader->context, capacity, sizeof *items);
        if (items == NULL) {
            return STATUS_LIMIT;
        }
        if (list->count > 0) {
            memcpy(items, list->items, list->count * sizeof *items);
        }
        list->items = items;
        list->capacity = capacity;
    }
    *out = &list->items[list->count++];
    if (part == 0) {
        memcpy((*out)->id, id, sizeof id);
    } else {
        snprintf((*out)->id, sizeof(*out)->id, "%.50s.%u", id, part);
    }
    return STATUS_OK;
}

/* ---- static ---- */

static struct vec2 placed(struct pose frame, struct vec2 point)
{
    double s;
    double c;
    dmath_sincos(frame.heading_rad, &s, &c);
    return (struct vec2){frame.x_m + c * point.x_m - s * point.y_m,
                         frame.y_m + s * point.x_m + c * point.y_m};
}

/* One box of a static obstacle, cut into pieces where it is too long for one agent. */
static enum status add_static_part(struct obstacle_reader *reader, struct pose frame,
                                   const struct cr_part *part, uint32_t *number)
{
    uint32_t rows = (uint32_t)dmath_max(ceil(part->width_m / PIECE_MAX_M), 1);
    uint32_t columns = (uint32_t)dmath_max(ceil(part->length_m / PIECE_MAX_M), 1);
    struct vec2 centre = {part->pose.x_m, part->pose.y_m};
    struct vec2 at = placed(frame, centre);
    struct pose box = {at.x_m, at.y_m,
                       dmath_wrap_angle(frame.heading_rad + part->pose.heading_rad)};
    if ((uint64_t)rows * columns > LIMIT_AGENTS) {
        return cr_fail(reader->context, reader->element, STATUS_LIMIT,
                       "expected an obstacle of at most %d pieces of %g m, found %g m x %g m",
                       LIMIT_AGENTS, PIECE_MAX_M, part->length_m, part->width_m);
    }
    for (uint32_t row = 0; row < rows; row++) {
        for (uint32_t column = 0; column < columns; column++) {
            struct cr_obstacle *out;
            TRY(add_obstacle(reader, (*number)++, &out));
            out->length_m = capped_size(reader->context, part->length_m / columns);
            out->width_m = capped_size(reader->context, part->width_m / rows);
            struct vec2 piece = {(column + 0.5) * part->length_m / columns - part->length_m / 2,
                                 (row + 0.5) * part->width_m / rows - part->width_m / 2};
            struct vec2 middle = placed(box, piece);
            out->pose = (struct pose){middle.x_m, middle.y_m, box.heading_rad};
            out->boundary = strcmp(reader->type, "roadBoundary") == 0;
            set_kind(reader, out);
        }
    }
    return STATUS_OK;
}

static enum status read_static(struct obstacle_reader *reader, bool environment)
{
    const struct xml_element *shape;
    struct cr_part *parts;
    uint32_t count;
    uint32_t number = 0;
    struct pose frame = {0};
    TRY(cr_required(reader->context, reader->element, CR_SHAPE, &shape));
    TRY(cr_shape(reader->context, shape, environment, &count, &parts));
    if (!environment) {
        const struct xml_element *state;
        struct vec2 at;
        TRY(cr_required(reader->context, reader->element, CR_INITIAL_STATE, &state));
        TRY(cr_position(reader->context, state, reader->map, &at));
        frame = (struct pose){at.x_m, at.y_m, 0};
        TRY(cr_child_heading(reader->context, state, &frame.heading_rad));
    }
    for (uint32_t i = 0; i < count; i++) {
        TRY(add_static_part(reader, frame, &parts[i], &number));
    }
    return STATUS_OK;
}

/* ---- positions ---- */

enum status cr_position(const struct cr_context *context, const struct xml_element *state,
                        const struct cr_map *map, struct vec2 *out)
{
    const struct xml_element *position;
    char id[LIMIT_ID_BYTES];
    TRY(cr_required(context, state, CR_POSITION, &position));
    const struct xml_element *point = xml_child(position, CR_POINT);
    const struct xml_element *reference = xml_child(position, CR_LANELET);
    if (point != NULL) {
        return cr_point(context, point, true, out);
    }
    if (xml_child(position, CR_X) != NULL) {
        return cr_point(context, position, true, out);
    }
    if (reference != NULL) {
        TRY(cr_reference(context, reference, "ref", id));
        const struct cr_lanelet *lanelet = cr_map_find(map, id);
        if (lanelet == NULL || lanelet->lane_count == 0) {
            return cr_fail(context, reference, STATUS_BAD_INPUT,
                           "expected the id of a <lanelet> of this file, found \"%s\"", id);
        }
        const struct lane *lane = &map->map.lanes[lanelet->first_lane];
        double length_m = polyline_length_m(lane->centre_line, lane->point_count);
        struct pose middle =
            polyline_pose_at(lane->centre_line, lane->point_count, length_m / 2, 0);
        *out = (struct vec2){middle.x_m, middle.y_m};
        return STATUS_OK;
    }
    struct cr_part *parts;
    uint32_t count;
    struct vec2 low;
    struct vec2 high;
    TRY(cr_shape(context, position, true, &count, &parts));
    cr_parts_bounds(parts, count, &low, &high);
    *out = (struct vec2){(low.x_m + high.x_m) / 2, (low.y_m + high.y_m) / 2};
    return STATUS_OK;
}

/* ---- motion ---- */

static int compare_points(const void *a, const void *b)
{
    const struct trajectory_point *left = a;
    const struct trajectory_point *right = b;
    return (left->t_s > right->t_s) - (left->t_s < right->t_s);
}

/* Sorts by time, keeps the first of equal times. */
static void order_points(struct cr_obstacle *out)
{
    uint32_t kept = 0;
    bool ordered = true;
    for (uint32_t i = 1; i < out->point_count; i++) {
        ordered = ordered && out->points[i - 1].t_s <= out->points[i].t_s;
    }
    if (!ordered) {
        qsort(out->points, out->point_count, sizeof *out->points, compare_points);
    }
    for (uint32_t i = 0; i < out->point_count; i++) {
        if (kept == 0 || out->points[i].t_s > out->points[kept - 1].t_s + 1e-9) {
            out->points[kept++] = out->points[i];
        }
    }
    out->point_count = kept;
}

/* Neighbours of point i that are apart in time: central differences, one-sided at the ends. */
static void difference(const struct cr_obstacle *out, uint32_t i, double *dx, double *dy,
                       double *dt)
{
    const struct trajectory_point *a = &out->points[i > 0 ? i - 1 : 0];
    const struct trajectory_point *b = &out->points[i + 1 < out->point_count ? i + 1 : i];
    *dx = b->x_m - a->x_m;
    *dy = b->y_m - a->y_m;
    *dt = b->t_s - a->t_s;
}

/* Missing headings and speeds (NAN) by differences; a standing agent keeps its heading. */
static void complete_points(struct cr_obstacle *out)
{
    double heading = NAN;
    double dx;
    double dy;
    double dt;
    for (uint32_t i = 0; i < out->point_count; i++) {
        struct trajectory_point *p = &out->points[i];
        difference(out, i, &dx, &dy, &dt);
        double moved_m = sqrt(dx * dx + dy * dy);
        if (isnan(p->speed_mps)) {
            p->speed_mps = dt > 0 ? moved_m / dt : 0;
        }
        p->speed_mps = dmath_min(p->speed_mps, CR_SPEED_MAX_MPS);
        if (isnan(p->heading_rad)) {
            p->heading_rad = moved_m > MOVING_M ? dmath_atan2(dy, dx) : heading;
        }
        heading = p->heading_rad;
    }
    heading = 0;
    for (uint32_t i = out->point_count; i-- > 0;) { /* before the first movement */
        struct trajectory_point *p = &out->points[i];
        p->heading_rad = isnan(p->heading_rad) ? heading : p->heading_rad;
        heading = p->heading_rad;
    }
}

/* Leaves out speeds that the places do not fit, and what comes behind a jump. */
static void check_points(struct cr_context *context, struct cr_obstacle *out)
{
    const struct trajectory drive = {out->point_count, out->points};
    uint32_t end = recorded_jump(&drive);
    if (end < out->point_count) {
        out->point_count = end;
        cr_note(context, CR_NOTE_JUMP);
    }
    if (!recorded_speeds_fit(&drive)) {
        for (uint32_t i = 0; i < out->point_count; i++) {
            out->points[i].speed_mps = NAN;
        }
        cr_note(context, CR_NOTE_SPEEDS);
    }
}

/* time, position, orientation, velocity of one state; NAN for what is not there. */
static enum status read_state(const struct obstacle_reader *reader, const struct xml_element *state,
                              double default_t_s, struct trajectory_point *out)
{
    const struct cr_context *context = reader->context;
    struct trajectory_point point = {.heading_rad = NAN, .speed_mps = NAN};
    struct vec2 at;
    double step = default_t_s / context->dt_s;
    double velocity = NAN;
    double sideways = 0;
    TRY(cr_child_value(context, state, CR_TIME, 0, STEP_MAX, &step));
    TRY(cr_position(context, state, reader->map, &at));
    TRY(cr_child_heading(context, state, &point.heading_rad));
    TRY(cr_child_value(context, state, CR_VELOCITY, -CR_SPEED_MAX_MPS, CR_SPEED_MAX_MPS,
                       &velocity));
    TRY(cr_child_value(context, state, CR_VELOCITY_Y, -CR_SPEED_MAX_MPS, CR_SPEED_MAX_MPS,
                       &sideways));
    point.t_s = step * context->dt_s;
    point.x_m = at.x_m;
    point.y_m = at.y_m;
    point.speed_mps = sqrt(velocity * velocity + sideways * sideways); /* reversing: positive too */
    *out = point;
    return STATUS_OK;
}

static enum status read_occupancy(const struct obstacle_reader *reader,
                                  const struct xml_element *occupancy, struct trajectory_point *out,
                                  struct cr_part *extent)
{
    const struct cr_context *context = reader->context;
    const struct xml_element *shape;
    const struct xml_element *time;
    struct cr_part *parts;
    uint32_t count;
    double step;
    TRY(cr_required(context, occupancy, CR_SHAPE, &shape));
    TRY(cr_required(context, occupancy, CR_TIME, &time));
    TRY(cr_shape(context, shape, true, &count, &parts));
    TRY(cr_value(context, time, 0, STEP_MAX, &step));
    *extent = parts[0];
    struct vec2 middle = {parts[0].pose.x_m, parts[0].pose.y_m};
    if (count > 1) {
        cr_parts_bounds(parts, count, &extent->low, &extent->high);
        middle.x_m = (extent->low.x_m + extent->high.x_m) / 2;
        middle.y_m = (extent->low.y_m + extent->high.y_m) / 2;
    }
    *out = (struct trajectory_point){
        .t_s = step * context->dt_s,
        .x_m = middle.x_m,
        .y_m = middle.y_m,
        .heading_rad = count == 1 && parts[0].oriented ? parts[0].pose.heading_rad : NAN,
        .speed_mps = NAN,
    };
    return STATUS_OK;
}

/* The initial state, then those of the trajectory or the middles of the occupancies. */
static enum status read_motion(struct obstacle_reader *reader, struct cr_obstacle *out,
                               struct cr_part *extent, bool *has_extent)
{
    const struct xml_element *initial = xml_child(reader->element, CR_INITIAL_STATE);
    const struct xml_element *trajectory = xml_child(reader->element, CR_TRAJECTORY);
    const struct xml_element *set = xml_child(reader->element, CR_OCCUPANCY_SET);
    uint32_t capacity = 3 + (trajectory != NULL ? xml_count(trajectory, CR_STATE) : 0) +
                        (set != NULL ? xml_count(set, CR_OCCUPANCY) : 0);
    out->points = cr_alloc(reader->context, capacity, sizeof *out->points);
    if (out->points == NULL) {
        return STATUS_LIMIT;
    }
    if (initial != NULL) {
        TRY(read_state(reader, initial, 0, &out->points[out->point_count++]));
    }
    const struct xml_element *e = trajectory != NULL ? xml_child(trajectory, CR_STATE) : NULL;
    for (; e != NULL; e = xml_next(e)) {
        double t_s = out->point_count * reader->context->dt_s;
        TRY(read_state(reader, e, t_s, &out->points[out->point_count++]));
    }
    e = set != NULL ? xml_child(set, CR_OCCUPANCY) : NULL;
    for (; e != NULL; e = xml_next(e)) {
        struct cr_part here;
        TRY(read_occupancy(reader, e, &out->points[out->point_count++], &here));
        *extent = *has_extent ? *extent : here;
        *has_extent = true;
    }
    if (out->point_count == 0) {
        return cr_fail(reader->context, reader->element, STATUS_BAD_INPUT,
                       "expected <initialState> or <occupancySet> in it, found neither");
    }
    order_points(out);
    check_points(reader->context, out);
    complete_points(out);
    return STATUS_OK;
}

/* One state alone says nothing of later: it goes on as it began. */
static void coast(struct cr_context *context, struct cr_obstacle *out)
{
    if (out->point_count > 1) {
        return;
    }
    double s;
    double c;
    struct trajectory_point next = out->points[0];
    double along = next.speed_mps * COAST_S;
    dmath_sincos(next.heading_rad, &s, &c);
    /* Not farther than coordinates reach. */
    double t = 1.0;
    while (fabs(next.x_m + t * along * c) > CR_COORDINATE_MAX_M ||
           fabs(next.y_m + t * along * s) > CR_COORDINATE_MAX_M) {
        t /= 2;
    }
    next.x_m += t * along * c;
    next.y_m += t * along * s;
    next.t_s += t * COAST_S;
    out->points[out->point_count++] = next;
    cr_note(context, CR_NOTE_NO_PREDICTION);
}

/* The box is centred on the shape, which need not be where the state is. */
static enum status apply_shape(struct obstacle_reader *reader, struct cr_obstacle *out)
{
    const struct xml_element *shape = xml_child(reader->element, CR_SHAPE);
    struct cr_part *parts;
    uint32_t count;
    struct vec2 low;
    struct vec2 high;
    if (shape == NULL) {
        return cr_fail(reader->context, reader->element, STATUS_BAD_INPUT,
                       "expected <shape> in it, found none");
    }
    TRY(cr_shape(reader->context, shape, false, &count, &parts));
    cr_parts_bounds(parts, count, &low, &high);
    out->length_m = capped_size(reader->context, high.x_m - low.x_m);
    out->width_m = capped_size(reader->context, high.y_m - low.y_m);
    struct vec2 centre = {(low.x_m + high.x_m) / 2, (low.y_m + high.y_m) / 2};
    if (fabs(centre.x_m) + fabs(centre.y_m) > 1e-9) {
        for (uint32_t i = 0; i < out->point_count; i++) {
            struct trajectory_point *p = &out->points[i];
            struct vec2 at = placed((struct pose){p->x_m, p->y_m, p->heading_rad}, centre);
            p->x_m = dmath_clamp(at.x_m, -CR_COORDINATE_MAX_M, CR_COORDINATE_MAX_M);
            p->y_m = dmath_clamp(at.y_m, -CR_COORDINATE_MAX_M, CR_COORDINATE_MAX_M);
        }
    }
    return STATUS_OK;
}

static enum status read_dynamic(struct obstacle_reader *reader, bool phantom)
{
    struct cr_obstacle *out;
    struct cr_part extent = {0};
    bool has_extent = false;
    TRY(add_obstacle(reader, 0, &out));
    out->moves = true;
    TRY(read_motion(reader, out, &extent, &has_extent));
    if (phantom || (has_extent && xml_child(reader->element, CR_SHAPE) == NULL)) {
        out->length_m = capped_size(reader->context, extent.length_m);
        out->width_m = capped_size(reader->context, extent.width_m);
    } else {
        TRY(apply_shape(reader, out));
    }
    coast(reader->context, out);
    set_kind(reader, out);
    if (xml_child(reader->element, CR_TRAJECTORY) != NULL || has_extent) {
        reader->out->end_s = dmath_max(reader->out->end_s, out->points[out->point_count - 1].t_s);
    }
    return STATUS_OK;
}

/* ---- the file ---- */

static enum status read_one(struct obstacle_reader *reader)
{
    const struct xml_element *element = reader->element;
    const struct xml_element *type = xml_child(element, CR_TYPE);
    reader->type = type != NULL ? type->text : "unknown";
    switch (element->tag) {
    case CR_STATIC_OBSTACLE:
        return read_static(reader, false);
    case CR_ENVIRONMENT_OBSTACLE:
        return read_static(reader, true);
    case CR_DYNAMIC_OBSTACLE:
        return read_dynamic(reader, false);
    case CR_PHANTOM_OBSTACLE:
        return read_dynamic(reader, true);
    default:
        break;
    }
    const struct xml_element *role;
    TRY(cr_required(reader->context, element, CR_ROLE, &role));
    if (strcmp(role->text, "static") == 0) {
        return read_static(reader, false);
    }
    if (strcmp(role->text, "dynamic") == 0) {
        return read_dynamic(reader, false);
    }
    return cr_fail(reader->context, role, STATUS_BAD_INPUT,
                   "expected \"static\" or \"dynamic\", found \"%.64s\"", role->text);
}

static int compare_ids(const void *a, const void *b)
{
    const struct cr_obstacle *const *left = a;
    const struct cr_obstacle *const *right = b;
    return strcmp((*left)->id, (*right)->id);
}

/* Ids of the file are unique, parts of shapes included. */
static enum status check_ids(const struct cr_context *context, const struct cr_obstacles *list)
{
    const struct cr_obstacle **sorted = cr_alloc(context, list->count, sizeof *sorted);
    if (sorted == NULL) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i < list->count; i++) {
        sorted[i] = &list->items[i];
    }
    qsort(sorted, list->count, sizeof *sorted, compare_ids);
    for (uint32_t i = 0; i + 1 < list->count; i++) {
        if (strcmp(sorted[i]->id, sorted[i + 1]->id) == 0) {
            return error_set(context->error, STATUS_BAD_INPUT,
                             "%s: expected each obstacle's id once, found \"%s\" again",
                             context->name, sorted[i]->id);
        }
    }
    return STATUS_OK;
}

enum status cr_obstacles_read(struct cr_context *context, const struct xml_element *root,
                              const struct cr_map *map, struct cr_obstacles *out)
{
    struct obstacle_reader reader = {.context = context, .map = map, .out = out};
    for (const struct xml_element *e = root->first; e != NULL; e = e->next) {
        if (e->tag == CR_OBSTACLE || e->tag == CR_STATIC_OBSTACLE ||
            e->tag == CR_DYNAMIC_OBSTACLE || e->tag == CR_PHANTOM_OBSTACLE ||
            e->tag == CR_ENVIRONMENT_OBSTACLE) {
            reader.element = e;
            TRY(read_one(&reader));
        }
    }
    return check_ids(context, out);
}
