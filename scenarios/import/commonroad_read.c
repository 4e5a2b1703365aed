/*
 * CommonRoad import: values, points and shapes. Every reader says where it stood when it fails.
 */
#include "base/dmath.h"
#include "scenarios/import/commonroad.h"
#include "schemas/scenario_id.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const cr_tag_names[CR_TAG_COUNT] = {
    [CR_ABSOLUTE_SHAPE_GROUP] = "absoluteShapeGroup",
    [CR_ACTIVE] = "active",
    [CR_ADDITIONAL_VALUE] = "additionalValue",
    [CR_ADJACENT_LEFT] = "adjacentLeft",
    [CR_ADJACENT_RIGHT] = "adjacentRight",
    [CR_CENTER] = "center",
    [CR_CIRCLE] = "circle",
    [CR_COLOR] = "color",
    [CR_COMMON_ROAD] = "commonRoad",
    [CR_CRITICAL] = "critical",
    [CR_CROSSING] = "crossing",
    [CR_CROSSING_LANELET] = "crossingLanelet",
    [CR_CUT_IN] = "cut_in",
    [CR_CYCLE] = "cycle",
    [CR_CYCLE_ELEMENT] = "cycleElement",
    [CR_DIRECTION] = "direction",
    [CR_DURATION] = "duration",
    [CR_DYNAMIC_OBSTACLE] = "dynamicObstacle",
    [CR_EMERGENCY_BRAKING] = "emergency_braking",
    [CR_ENVIRONMENT] = "environment",
    [CR_ENVIRONMENT_OBSTACLE] = "environmentObstacle",
    [CR_EVASIVE] = "evasive",
    [CR_EXACT] = "exact",
    [CR_GOAL_STATE] = "goalState",
    [CR_HIGHWAY] = "highway",
    [CR_ILLEGAL_CUTIN] = "illegal_cutin",
    [CR_INCOMING] = "incoming",
    [CR_INCOMING_LANELET] = "incomingLanelet",
    [CR_INITIAL_STATE] = "initialState",
    [CR_INTERSECTION] = "intersection",
    [CR_INTERSTATE] = "interstate",
    [CR_INTERVAL_END] = "intervalEnd",
    [CR_INTERVAL_START] = "intervalStart",
    [CR_LANELET] = "lanelet",
    [CR_LANELET_TYPE] = "laneletType",
    [CR_LEFT_BOUND] = "leftBound",
    [CR_LENGTH] = "length",
    [CR_LINE_MARKING] = "lineMarking",
    [CR_LOCATION] = "location",
    [CR_OBSTACLE] = "obstacle",
    [CR_OCCUPANCY] = "occupancy",
    [CR_OCCUPANCY_SET] = "occupancySet",
    [CR_ORIENTATION] = "orientation",
    [CR_PHANTOM_OBSTACLE] = "phantomObstacle",
    [CR_PLANNING_PROBLEM] = "planningProblem",
    [CR_POINT] = "point",
    [CR_POLYGON] = "polygon",
    [CR_POSITION] = "position",
    [CR_PREDECESSOR] = "predecessor",
    [CR_RACE_TRACK] = "race_track",
    [CR_RADIUS] = "radius",
    [CR_RECTANGLE] = "rectangle",
    [CR_RIGHT_BOUND] = "rightBound",
    [CR_ROLE] = "role",
    [CR_ROUNDABOUT] = "roundabout",
    [CR_RURAL] = "rural",
    [CR_SCENARIO_TAGS] = "scenarioTags",
    [CR_SEMI_TRAILER_TRUCK_SHAPE] = "semiTrailerTruckShape",
    [CR_SHAPE] = "shape",
    [CR_SHAPE_GROUP] = "shapeGroup",
    [CR_SPEED_LIMIT] = "speedLimit",
    [CR_STATE] = "state",
    [CR_STATIC_OBSTACLE] = "staticObstacle",
    [CR_STOP_LINE] = "stopLine",
    [CR_SUCCESSOR] = "successor",
    [CR_SUCCESSORS_LEFT] = "successorsLeft",
    [CR_SUCCESSORS_RIGHT] = "successorsRight",
    [CR_SUCCESSORS_STRAIGHT] = "successorsStraight",
    [CR_TIME] = "time",
    [CR_TIME_OF_DAY] = "timeOfDay",
    [CR_TIME_OFFSET] = "timeOffset",
    [CR_TRAFFIC_LIGHT] = "trafficLight",
    [CR_TRAFFIC_LIGHT_REF] = "trafficLightRef",
    [CR_TRAFFIC_SIGN] = "trafficSign",
    [CR_TRAFFIC_SIGN_ELEMENT] = "trafficSignElement",
    [CR_TRAFFIC_SIGN_ID] = "trafficSignID",
    [CR_TRAFFIC_SIGN_REF] = "trafficSignRef",
    [CR_TRAILER_DIMS] = "trailerDims",
    [CR_TRAJECTORY] = "trajectory",
    [CR_TRUCK_DIMS] = "truckDims",
    [CR_TRUCK_SHAPE] = "truckShape",
    [CR_TYPE] = "type",
    [CR_UNDERGROUND] = "underground",
    [CR_URBAN] = "urban",
    [CR_USER_BIDIRECTIONAL] = "userBidirectional",
    [CR_USER_ONE_WAY] = "userOneWay",
    [CR_VELOCITY] = "velocity",
    [CR_VELOCITY_Y] = "velocityY",
    [CR_WEATHER] = "weather",
    [CR_WIDTH] = "width",
    [CR_X] = "x",
    [CR_Y] = "y",
};

enum status cr_fail(const struct cr_context *context, const struct xml_element *element,
                    enum status status, const char *format, ...)
{
    struct error local = {0};
    struct error *error = context->error != NULL ? context->error : &local;
    va_list args;
    va_start(args, format);
    error_setv(error, status, format, args);
    va_end(args);
    const char *tag = element->tag >= 0 ? cr_tag_names[element->tag] : "?";
    return error_prefix(error, "%s: line %u: <%s>", context->name, element->line, tag);
}

void *cr_alloc(const struct cr_context *context, size_t count, size_t size)
{
    void *memory = arena_alloc(context->arena, count, size);
    if (memory == NULL) {
        error_set(context->error, STATUS_LIMIT,
                  "%s: expected a file of at most %zu bytes in memory, found more", context->name,
                  context->arena->limit_bytes);
    }
    return memory;
}

enum status cr_required(const struct cr_context *context, const struct xml_element *element,
                        enum cr_tag tag, const struct xml_element **out)
{
    const struct xml_element *child = xml_child(element, (int)tag);
    if (child == NULL) {
        return cr_fail(context, element, STATUS_BAD_INPUT, "expected <%s> in it, found none",
                       cr_tag_names[tag]);
    }
    *out = child;
    return STATUS_OK;
}

void cr_make_id(const char *text, char out[LIMIT_ID_BYTES])
{
    scenario_id_make(text, SCENARIO_ID_MARKS, out);
}

enum status cr_reference(const struct cr_context *context, const struct xml_element *element,
                         const char *attribute, char out[LIMIT_ID_BYTES])
{
    const char *text = xml_attribute(element, attribute);
    if (text == NULL || text[0] == '\0') {
        return cr_fail(context, element, STATUS_BAD_INPUT,
                       "expected an attribute \"%s\", found none", attribute);
    }
    if (strlen(text) >= LIMIT_ID_BYTES) {
        return cr_fail(context, element, STATUS_LIMIT,
                       "expected \"%s\" of at most %d bytes, found %zu", attribute,
                       LIMIT_ID_BYTES - 1, strlen(text));
    }
    cr_make_id(text, out);
    return STATUS_OK;
}

/* ---- numbers ---- */

bool cr_parse_number(const char *text, double *out)
{
    char *end;
    if (text[0] == '\0' || strspn(text, "0123456789+-.eE") != strlen(text)) {
        return false; /* also keeps out what strtod takes besides decimals: hex, inf, nan */
    }
    double value = strtod(text, &end);
    if (*end != '\0' || !isfinite(value)) {
        return false;
    }
    *out = value;
    return true;
}

enum status cr_number(const struct cr_context *context, const struct xml_element *element,
                      double min, double max, double *out)
{
    double value;
    if (!cr_parse_number(element->text, &value)) {
        return cr_fail(context, element, STATUS_BAD_INPUT, "expected a number, found \"%.64s\"",
                       element->text);
    }
    if (!(value >= min && value <= max)) {
        return cr_fail(context, element, STATUS_BAD_INPUT, "expected %g to %g, found %g", min, max,
                       value);
    }
    *out = value;
    return STATUS_OK;
}

enum status cr_value(const struct cr_context *context, const struct xml_element *element,
                     double min, double max, double *out)
{
    const struct xml_element *exact = xml_child(element, CR_EXACT);
    const struct xml_element *start = xml_child(element, CR_INTERVAL_START);
    const struct xml_element *end = xml_child(element, CR_INTERVAL_END);
    double low;
    double high;
    if (exact != NULL) {
        return cr_number(context, exact, min, max, out);
    }
    if (start == NULL || end == NULL) {
        if (element->first == NULL && element->text[0] != '\0') {
            return cr_number(context, element, min, max, out);
        }
        return cr_fail(context, element, STATUS_BAD_INPUT,
                       "expected <exact>, or <intervalStart> and <intervalEnd>, found neither");
    }
    TRY(cr_number(context, start, min, max, &low));
    TRY(cr_number(context, end, min, max, &high));
    *out = low + (high - low) / 2;
    return STATUS_OK;
}

enum status cr_child_value(const struct cr_context *context, const struct xml_element *element,
                           enum cr_tag tag, double min, double max, double *out)
{
    const struct xml_element *child = xml_child(element, (int)tag);
    return child != NULL ? cr_value(context, child, min, max, out) : STATUS_OK;
}

enum status cr_child_heading(const struct cr_context *context, const struct xml_element *element,
                             double *out)
{
    double heading = NAN;
    TRY(cr_child_value(context, element, CR_ORIENTATION, -CR_HEADING_MAX_RAD, CR_HEADING_MAX_RAD,
                       &heading));
    if (!isnan(heading)) {
        *out = dmath_wrap_angle(heading);
    }
    return STATUS_OK;
}

enum status cr_interval(const struct cr_context *context, const struct xml_element *element,
                        double min, double max, double *low, double *high)
{
    const struct xml_element *start =
        element != NULL ? xml_child(element, CR_INTERVAL_START) : NULL;
    double first = 0;
    double last = 0;
    if (element == NULL) {
        return STATUS_OK;
    }
    TRY(start != NULL ? cr_number(context, start, min, max, &first)
                      : cr_value(context, element, min, max, &first));
    TRY(cr_value_end(context, element, min, max, &last));
    *low = dmath_min(first, last);
    *high = dmath_max(first, last);
    return STATUS_OK;
}

enum status cr_value_end(const struct cr_context *context, const struct xml_element *element,
                         double min, double max, double *out)
{
    const struct xml_element *end = xml_child(element, CR_INTERVAL_END);
    return end != NULL ? cr_number(context, end, min, max, out)
                       : cr_value(context, element, min, max, out);
}

enum status cr_point(const struct cr_context *context, const struct xml_element *element,
                     bool absolute, struct vec2 *out)
{
    const struct xml_element *x;
    const struct xml_element *y;
    struct vec2 point;
    TRY(cr_required(context, element, CR_X, &x));
    TRY(cr_required(context, element, CR_Y, &y));
    TRY(cr_number(context, x, -CR_RAW_COORDINATE_MAX_M, CR_RAW_COORDINATE_MAX_M, &point.x_m));
    TRY(cr_number(context, y, -CR_RAW_COORDINATE_MAX_M, CR_RAW_COORDINATE_MAX_M, &point.y_m));
    if (absolute) {
        point.x_m -= context->origin.x_m;
        point.y_m -= context->origin.y_m;
    }
    if (fabs(point.x_m) > CR_COORDINATE_MAX_M || fabs(point.y_m) > CR_COORDINATE_MAX_M) {
        return cr_fail(context, element, STATUS_BAD_INPUT,
                       "expected a point within %g m of the map's origin (%g, %g), found (%s, %s)",
                       CR_COORDINATE_MAX_M, context->origin.x_m, context->origin.y_m, x->text,
                       y->text);
    }
    *out = point;
    return STATUS_OK;
}

/* ---- shapes ---- */

struct shape_reader {
    const struct cr_context *context;
    bool absolute;
    uint32_t count;
    struct cr_part *parts; /* [CR_PARTS_MAX], grown */
    uint32_t capacity;
};

static enum status add_part(struct shape_reader *reader, const struct xml_element *element,
                            const struct cr_part *part)
{
    if (reader->count == CR_PARTS_MAX) {
        return cr_fail(reader->context, element, STATUS_LIMIT,
                       "expected a shape of at most %d parts, found more", CR_PARTS_MAX);
    }
    if (reader->count == reader->capacity) {
        uint32_t capacity = reader->capacity == 0 ? 4 : reader->capacity * 4;
        struct cr_part *parts = cr_alloc(reader->context, capacity, sizeof *parts);
        if (parts == NULL) {
            return STATUS_LIMIT;
        }
        for (uint32_t i = 0; i < reader->count; i++) {
            parts[i] = reader->parts[i];
        }
        reader->parts = parts;
        reader->capacity = capacity;
    }
    reader->parts[reader->count++] = *part;
    return STATUS_OK;
}

static void bounds_of(const struct vec2 *points, uint32_t count, struct cr_part *part)
{
    part->low = points[0];
    part->high = points[0];
    for (uint32_t i = 1; i < count; i++) {
        part->low.x_m = dmath_min(part->low.x_m, points[i].x_m);
        part->low.y_m = dmath_min(part->low.y_m, points[i].y_m);
        part->high.x_m = dmath_max(part->high.x_m, points[i].x_m);
        part->high.y_m = dmath_max(part->high.y_m, points[i].y_m);
    }
}

static enum status read_centre(const struct shape_reader *reader, const struct xml_element *element,
                               struct vec2 *out)
{
    const struct xml_element *centre = xml_child(element, CR_CENTER);
    *out = (struct vec2){0, 0};
    if (centre != NULL) {
        return cr_point(reader->context, centre, reader->absolute, out);
    }
    return STATUS_OK;
}

static enum status read_extent(const struct shape_reader *reader, const struct xml_element *element,
                               enum cr_tag tag, double *out)
{
    const struct xml_element *child;
    TRY(cr_required(reader->context, element, tag, &child));
    return cr_number(reader->context, child, 0, 10000, out);
}

static enum status read_rectangle(struct shape_reader *reader, const struct xml_element *element)
{
    struct cr_part part = {0};
    struct vec2 centre;
    TRY(read_extent(reader, element, CR_LENGTH, &part.length_m));
    TRY(read_extent(reader, element, CR_WIDTH, &part.width_m));
    TRY(read_centre(reader, element, &centre));
    part.pose = (struct pose){centre.x_m, centre.y_m, 0};
    part.oriented = xml_child(element, CR_ORIENTATION) != NULL;
    TRY(cr_child_heading(reader->context, element, &part.pose.heading_rad));
    struct box box = box_make(part.pose, part.length_m, part.width_m);
    struct vec2 corners[4];
    box_corners(&box, corners);
    bounds_of(corners, 4, &part);
    return add_part(reader, element, &part);
}

static enum status read_circle(struct shape_reader *reader, const struct xml_element *element)
{
    struct cr_part part = {0};
    struct vec2 centre;
    double radius;
    TRY(read_extent(reader, element, CR_RADIUS, &radius));
    TRY(read_centre(reader, element, &centre));
    part.pose = (struct pose){centre.x_m, centre.y_m, 0};
    part.length_m = 2 * radius;
    part.width_m = 2 * radius;
    part.low = (struct vec2){centre.x_m - radius, centre.y_m - radius};
    part.high = (struct vec2){centre.x_m + radius, centre.y_m + radius};
    return add_part(reader, element, &part);
}

static enum status read_polygon(struct shape_reader *reader, const struct xml_element *element)
{
    struct cr_part part = {0};
    uint32_t count = xml_count(element, CR_POINT);
    if (count < 3) {
        return cr_fail(reader->context, element, STATUS_BAD_INPUT,
                       "expected a polygon of at least 3 <point>, found %u", count);
    }
    struct vec2 *points = cr_alloc(reader->context, count, sizeof *points);
    if (points == NULL) {
        return STATUS_LIMIT;
    }
    const struct xml_element *point = xml_child(element, CR_POINT);
    for (uint32_t i = 0; i < count; i++, point = xml_next(point)) {
        TRY(cr_point(reader->context, point, reader->absolute, &points[i]));
    }
    cr_points_box(points, count, &part.pose, &part.length_m, &part.width_m);
    bounds_of(points, count, &part);
    return add_part(reader, element, &part);
}

/* Lorries are given by the dimensions of tractor and trailer, one behind the other. */
static enum status read_truck(struct shape_reader *reader, const struct xml_element *element)
{
    const struct xml_element *truck = xml_child(element, CR_TRUCK_SHAPE);
    const struct xml_element *trailer = xml_child(element, CR_TRAILER_DIMS);
    const struct xml_element *dims;
    struct cr_part part = {0};
    double trailer_m = 0;
    double trailer_width_m = 0;
    TRY(cr_required(reader->context, truck != NULL ? truck : element, CR_TRUCK_DIMS, &dims));
    TRY(read_extent(reader, dims, CR_LENGTH, &part.length_m));
    TRY(read_extent(reader, dims, CR_WIDTH, &part.width_m));
    if (trailer != NULL) {
        TRY(read_extent(reader, trailer, CR_LENGTH, &trailer_m));
        TRY(read_extent(reader, trailer, CR_WIDTH, &trailer_width_m));
    }
    part.high = (struct vec2){part.length_m / 2, dmath_max(part.width_m, trailer_width_m) / 2};
    part.low = (struct vec2){-part.length_m / 2 - trailer_m, -part.high.y_m};
    part.pose.x_m = (part.low.x_m + part.high.x_m) / 2;
    part.length_m += trailer_m;
    part.width_m = 2 * part.high.y_m;
    return add_part(reader, element, &part);
}

/* The next element in document order within `top`. */
static const struct xml_element *walk(const struct xml_element *top,
                                      const struct xml_element *element, bool inside)
{
    if (inside && element->first != NULL) {
        return element->first;
    }
    while (element != top && element->next == NULL) {
        element = element->parent;
    }
    return element == top ? NULL : element->next;
}

enum status cr_shape(const struct cr_context *context, const struct xml_element *element,
                     bool absolute, uint32_t *count, struct cr_part **out)
{
    struct shape_reader reader = {.context = context, .absolute = absolute};
    const struct xml_element *at = walk(element, element, true);
    while (at != NULL) {
        bool group = false;
        switch (at->tag) {
        case CR_RECTANGLE:
            TRY(read_rectangle(&reader, at));
            break;
        case CR_CIRCLE:
            TRY(read_circle(&reader, at));
            break;
        case CR_POLYGON:
            TRY(read_polygon(&reader, at));
            break;
        case CR_TRUCK_SHAPE:
        case CR_SEMI_TRAILER_TRUCK_SHAPE:
            TRY(read_truck(&reader, at));
            break;
        default:
            group = at->tag == CR_SHAPE || at->tag == CR_SHAPE_GROUP ||
                    at->tag == CR_ABSOLUTE_SHAPE_GROUP;
            break;
        }
        at = walk(element, at, group);
    }
    if (reader.count == 0) {
        return cr_fail(context, element, STATUS_BAD_INPUT,
                       "expected <rectangle>, <circle> or <polygon> in it, found none");
    }
    *count = reader.count;
    *out = reader.parts;
    return STATUS_OK;
}

void cr_parts_bounds(const struct cr_part *parts, uint32_t count, struct vec2 *low,
                     struct vec2 *high)
{
    *low = parts[0].low;
    *high = parts[0].high;
    for (uint32_t i = 1; i < count; i++) {
        low->x_m = dmath_min(low->x_m, parts[i].low.x_m);
        low->y_m = dmath_min(low->y_m, parts[i].low.y_m);
        high->x_m = dmath_max(high->x_m, parts[i].high.x_m);
        high->y_m = dmath_max(high->y_m, parts[i].high.y_m);
    }
}
