/*
 * Trajectories of a file as paths: polylines, clothoids and NURBS, in the world or in the frame of
 * the entity that follows them.
 */
#include "scenarios/import/openscenario/osc_internal.h"

#include "base/dmath.h"

#include <math.h>
#include <string.h>

#define CORNER_M 0.5 /* within which a polyline's heading turns at a vertex */

enum { ORDER_MAX = 16, CONTROLS_MAX = 1024 };

static enum status read_vertex(struct osc_context *context, const struct osc_element *vertex,
                               struct osc_points *raw, bool timed, double *time_s)
{
    const struct osc_element *position;
    struct osc_position at;
    TRY(osc_required_child(context, vertex, "Position", &position));
    TRY(osc_position_read(context, position, &at));
    *time_s = 0;
    TRY(osc_number(context, vertex, "time", timed, -1e5, 1e5, time_s));
    if (raw->count == OSC_POINTS_MAX) {
        return osc_fail(context, vertex, "expected at most %d vertices, found more",
                        OSC_POINTS_MAX);
    }
    raw->points[raw->count++] = (struct story_point){
        .x_m = at.pose.x_m, .y_m = at.pose.y_m, .heading_rad = at.pose.heading_rad, .t_s = *time_s};
    return STATUS_OK;
}

/* Vertices to points: straight between them, the heading that of each segment, turning within
 * CORNER_M of a vertex. */
static enum status lay_polyline(struct osc_context *context, const struct osc_element *element,
                                const struct osc_points *vertices, bool timed, uint32_t *index)
{
    struct story_point *points = osc_alloc(context, 3 * (size_t)vertices->count, sizeof *points);
    uint32_t count = 0;
    double s_m = 0;
    double heading = vertices->points[0].heading_rad;
    if (points == NULL) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i + 1 < vertices->count; i++) {
        const struct story_point *a = &vertices->points[i];
        const struct story_point *b = a + 1;
        double dx = b->x_m - a->x_m;
        double dy = b->y_m - a->y_m;
        double length_m = sqrt(dx * dx + dy * dy);
        if (timed && b->t_s <= a->t_s) {
            return osc_fail(context, element, "expected times that grow, found %g s after %g s",
                            b->t_s, a->t_s);
        }
        if (length_m > 1e-6) {
            double along = dmath_atan2(dy, dx);
            heading = i == 0 ? along : heading + dmath_wrap_angle(along - heading);
        }
        double share = length_m > 0 ? dmath_min(CORNER_M / length_m, 0.3) : 0.3;
        double at[3] = {0, share, 1 - share};
        for (int k = 0; k < 3; k++) {
            points[count++] = (struct story_point){s_m + at[k] * length_m, a->x_m + at[k] * dx,
                                                   a->y_m + at[k] * dy, heading,
                                                   a->t_s + at[k] * (b->t_s - a->t_s)};
        }
        s_m += length_m;
    }
    const struct story_point *last = &vertices->points[vertices->count - 1];
    points[count++] = (struct story_point){s_m, last->x_m, last->y_m, heading, last->t_s};
    for (uint32_t i = 3; i + 1 < count; i += 3) { /* at a vertex between both segments' */
        points[i].heading_rad = 0.5 * (points[i - 1].heading_rad + points[i + 1].heading_rad);
    }
    return osc_path_add(context, element, points, count, timed, index);
}

static enum status read_polyline(struct osc_context *context, const struct osc_element *polyline,
                                 bool closed, bool timed, uint32_t *index)
{
    struct osc_points raw = {0, osc_alloc(context, OSC_POINTS_MAX + 1, sizeof *raw.points)};
    if (raw.points == NULL) {
        return STATUS_LIMIT;
    }
    const struct osc_element *vertex = osc_child(polyline, "Vertex");
    for (; vertex != NULL; vertex = osc_next(vertex)) {
        double time_s;
        TRY(read_vertex(context, vertex, &raw, timed, &time_s));
    }
    if (raw.count < 2) {
        return osc_fail(context, polyline, "expected at least 2 vertices, found %u", raw.count);
    }
    if (closed && !timed) {
        raw.points[raw.count++] = raw.points[0];
    }
    return lay_polyline(context, polyline, &raw, timed, index);
}

/* One stretch of linear curvature, by the midpoint rule in steps that keep errors below 1 mm. */
static void add_clothoid(struct osc_points *raw, struct pose *at, double curvature, double slope,
                         double length_m, double start_s, double stop_s)
{
    enum { STEPS_MAX = 4000 };
    int steps = (int)dmath_clamp(ceil(length_m / 0.2), 1, STEPS_MAX);
    double step_m = length_m / steps;
    for (int i = 0; i < steps && raw->count < OSC_POINTS_MAX; i++) {
        double middle_m = (i + 0.5) * step_m;
        double s;
        double c;
        double turn = (curvature + slope * middle_m) * step_m;
        dmath_sincos(at->heading_rad + 0.5 * turn, &s, &c);
        at->x_m += step_m * c;
        at->y_m += step_m * s;
        at->heading_rad += turn;
        const struct story_point *last = &raw->points[raw->count - 1];
        raw->points[raw->count++] =
            (struct story_point){last->s_m + step_m, at->x_m, at->y_m, at->heading_rad,
                                 start_s + (i + 1) * (stop_s - start_s) / steps};
    }
}

static enum status read_clothoids(struct osc_context *context, const struct osc_element *element,
                                  bool timed, bool relative, uint32_t *index)
{
    struct osc_points raw = {0, osc_alloc(context, OSC_POINTS_MAX + 1, sizeof *raw.points)};
    bool spline = osc_is(element, "ClothoidSpline");
    const struct osc_element *part = spline ? osc_child(element, "ClothoidSplineSegment") : element;
    struct pose at = {0};
    if (raw.points == NULL) {
        return STATUS_LIMIT;
    }
    for (; part != NULL; part = spline ? osc_next(part) : NULL) {
        double curvature = 0;
        double end = NAN;
        double slope = 0;
        double length_m = 0;
        double turn_rad = 0;
        double start_s = 0;
        double stop_s = 0;
        const struct osc_element *next = spline ? osc_next(part) : NULL;
        const struct osc_element *position = osc_child(part, spline ? "PositionStart" : "Position");
        TRY(osc_number(context, part, spline ? "curvatureStart" : "curvature", true, -10, 10,
                       &curvature));
        TRY(osc_number(context, part, "length", true, 1e-6, 1e5, &length_m));
        TRY(osc_number(context, part, "curvatureEnd", spline, -10, 10, &end));
        TRY(osc_number(context, part, "curvatureDot", false, -10, 10, &slope));
        TRY(osc_number(context, part, "curvaturePrime", false, -10, 10, &slope));
        TRY(osc_number(context, part, "hOffset", false, -1e3, 1e3, &turn_rad));
        TRY(osc_number(context, part, spline ? "timeStart" : "startTime", timed && spline, -1e5,
                       1e5, &start_s));
        TRY(next != NULL ? osc_number(context, next, "timeStart", timed, -1e5, 1e5, &stop_s)
                         : osc_number(context, element, spline ? "timeEnd" : "stopTime", timed,
                                      -1e5, 1e5, &stop_s));
        if (timed && stop_s <= start_s) {
            return osc_fail(context, part, "expected times that grow, found %g s after %g s",
                            stop_s, start_s);
        }
        slope = spline ? (end - curvature) / length_m : slope;
        if (position != NULL) {
            struct osc_position start;
            TRY(osc_position_read(context, position, &start));
            at = start.pose;
        } else if (raw.count == 0 && !relative) {
            return osc_fail(context, part, "expected a position to start at, found none");
        }
        at.heading_rad += turn_rad * osc_plane_sign(context);
        if (raw.count == 0) {
            raw.points[raw.count++] =
                (struct story_point){0, at.x_m, at.y_m, at.heading_rad, start_s};
        }
        add_clothoid(&raw, &at, curvature, slope, length_m, start_s, stop_s);
    }
    if (raw.count < 2) {
        return osc_fail(context, element, "expected at least one segment, found none");
    }
    if (!timed) {
        osc_points_thin(&raw);
    }
    return osc_path_add(context, element, raw.points, raw.count, timed, index);
}

/* ---- NURBS ---- */

/* Rational B-spline of degree order - 1 (Piegl and Tiller, The NURBS Book, 1997, A4.1). */
struct nurbs {
    uint32_t order;
    uint32_t count;      /* of control points */
    double (*points)[4]; /* x w, y w, t w, w */
    uint32_t knot_count; /* count + order, ascending */
    double *knots;
};

static enum status read_control(struct osc_context *context, const struct osc_element *element,
                                bool timed, struct nurbs *out)
{
    const struct osc_element *position;
    struct osc_position at;
    double weight = 1;
    double time_s = 0;
    if (out->count == CONTROLS_MAX) {
        return osc_fail(context, element, "expected at most %d control points, found more",
                        CONTROLS_MAX);
    }
    TRY(osc_required_child(context, element, "Position", &position));
    TRY(osc_position_read(context, position, &at));
    TRY(osc_number(context, element, "weight", false, 1e-6, 1e6, &weight));
    TRY(osc_number(context, element, "time", timed, -1e5, 1e5, &time_s));
    double *point = out->points[out->count++];
    point[0] = at.pose.x_m * weight;
    point[1] = at.pose.y_m * weight;
    point[2] = time_s * weight;
    point[3] = weight;
    return STATUS_OK;
}

static enum status read_knot(struct osc_context *context, const struct osc_element *element,
                             struct nurbs *out)
{
    double low = out->knot_count > 0 ? out->knots[out->knot_count - 1] : -1e9;
    if (out->knot_count == CONTROLS_MAX + ORDER_MAX) {
        return osc_fail(context, element, "expected at most %d knots, found more",
                        CONTROLS_MAX + ORDER_MAX);
    }
    return osc_number(context, element, "value", true, low, 1e9, &out->knots[out->knot_count++]);
}

static enum status read_nurbs(struct osc_context *context, const struct osc_element *element,
                              bool timed, struct nurbs *out)
{
    double order = 0;
    TRY(osc_number(context, element, "order", true, 2, ORDER_MAX, &order));
    out->order = (uint32_t)order;
    out->points = osc_alloc(context, CONTROLS_MAX, sizeof *out->points);
    out->knots = osc_alloc(context, CONTROLS_MAX + ORDER_MAX, sizeof *out->knots);
    if (out->points == NULL || out->knots == NULL) {
        return STATUS_LIMIT;
    }
    for (const struct osc_element *at = element->first; at != NULL; at = at->next) {
        TRY(osc_is(at, "ControlPoint") ? read_control(context, at, timed, out)
            : osc_is(at, "Knot")       ? read_knot(context, at, out)
                                       : osc_unsupported(context, at));
    }
    if (out->count < out->order || out->knot_count != out->count + out->order) {
        return osc_fail(context, element,
                        "expected at least %u control points, and %u knots for %u of them, found "
                        "%u knots",
                        out->order, out->count + out->order, out->count, out->knot_count);
    }
    if (!(out->knots[out->count] > out->knots[out->order - 1])) {
        return osc_fail(context, element, "expected knots that grow, found none that does");
    }
    return STATUS_OK;
}

/* Direction from one point with a weight to another; NAN where they are one. */
static double direction(const double a[4], const double b[4])
{
    double dx = b[0] / b[3] - a[0] / a[3];
    double dy = b[1] / b[3] - a[1] / a[3];
    return dx * dx + dy * dy > 1e-12 ? dmath_atan2(dy, dx) : NAN;
}

/* De Boor's algorithm at u, within the knots from order - 1 to count. The last two points that it
 * joins lie on the tangent. */
static struct story_point nurbs_at(const struct nurbs *nurbs, double u)
{
    double d[ORDER_MAX][4];
    uint32_t degree = nurbs->order - 1;
    uint32_t span = degree;
    while (span + 1 < nurbs->count && u >= nurbs->knots[span + 1]) {
        span++;
    }
    memcpy(d, nurbs->points[span - degree], nurbs->order * sizeof d[0]);
    double along = NAN;
    for (uint32_t r = 1; r <= degree; r++) {
        along = direction(d[degree - 1], d[degree]);
        for (uint32_t j = degree; j >= r; j--) {
            double low = nurbs->knots[span - degree + j];
            double high = nurbs->knots[span + 1 + j - r];
            double a = high > low ? (u - low) / (high - low) : 0;
            for (int k = 0; k < 4; k++) {
                d[j][k] = (1 - a) * d[j - 1][k] + a * d[j][k];
            }
        }
    }
    const double *at = d[degree];
    return (struct story_point){
        .x_m = at[0] / at[3], .y_m = at[1] / at[3], .heading_rad = along, .t_s = at[2] / at[3]};
}

/* Points at equal steps of the parameter, about 0.2 m apart; where there is no tangent, the heading
 * is that of the chord between the neighbours. */
static enum status sample_nurbs(struct osc_context *context, const struct osc_element *element,
                                const struct nurbs *nurbs, bool timed, uint32_t *index)
{
    enum { STEPS_MIN = 16, STEPS_MAX = 4000 };
    double way_m = 0;
    for (uint32_t i = 1; i < nurbs->count; i++) {
        const double *a = nurbs->points[i - 1];
        const double *b = nurbs->points[i];
        double dx = b[0] / b[3] - a[0] / a[3];
        double dy = b[1] / b[3] - a[1] / a[3];
        way_m += sqrt(dx * dx + dy * dy);
    }
    uint32_t steps = (uint32_t)dmath_clamp(ceil(way_m / 0.2), STEPS_MIN, STEPS_MAX);
    struct osc_points line = {0, osc_alloc(context, steps + 1, sizeof *line.points)};
    double low = nurbs->knots[nurbs->order - 1];
    double high = nurbs->knots[nurbs->count];
    if (line.points == NULL) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i <= steps; i++) {
        struct story_point at = nurbs_at(nurbs, low + (high - low) * i / steps);
        const struct story_point *last = line.count > 0 ? &line.points[line.count - 1] : &at;
        double step_m = sqrt((at.x_m - last->x_m) * (at.x_m - last->x_m) +
                             (at.y_m - last->y_m) * (at.y_m - last->y_m));
        if (i > 0 && timed && at.t_s <= last->t_s) {
            return osc_fail(context, element, "expected times that grow, found %g s after %g s",
                            at.t_s, last->t_s);
        }
        if (i == 0 || timed || step_m > 1e-6) {
            at.s_m = last->s_m + step_m;
            line.points[line.count++] = at;
        }
    }
    if (line.count < 2) {
        return osc_fail(context, element, "expected control points apart, found one place");
    }
    for (uint32_t i = 0; i < line.count; i++) {
        const struct story_point *a = &line.points[i > 0 ? i - 1 : 0];
        const struct story_point *b = &line.points[i + 1 < line.count ? i + 1 : i];
        double along = line.points[i].heading_rad;
        along = isnan(along) ? dmath_atan2(b->y_m - a->y_m, b->x_m - a->x_m) : along;
        line.points[i].heading_rad =
            i == 0 ? along : a->heading_rad + dmath_wrap_angle(along - a->heading_rad);
    }
    if (!timed) {
        osc_points_thin(&line);
    }
    return osc_path_add(context, element, line.points, line.count, timed, index);
}

/* ---- all ---- */

/* The line of its shape; NULL: it has none. */
static const struct osc_element *form_of(const struct osc_element *trajectory)
{
    const struct osc_element *shape = osc_child(trajectory, "Shape");
    return shape != NULL ? shape->first : NULL;
}

bool osc_trajectory_has_times(const struct osc_element *trajectory)
{
    const struct osc_element *form = form_of(trajectory);
    if (form != NULL && (osc_is(form, "Clothoid") || osc_is(form, "ClothoidSpline"))) {
        return osc_attribute(form, osc_is(form, "Clothoid") ? "stopTime" : "timeEnd") != NULL;
    }
    bool any = false;
    for (const struct osc_element *at = form != NULL ? form->first : NULL; at != NULL;
         at = at->next) {
        any = any || osc_attribute(at, "time") != NULL;
    }
    return any;
}

/* Whether a position is one of the entity's own frame. */
static bool is_own(const struct osc_element *position, const struct osc_entity *entity)
{
    const struct osc_element *form = position->first;
    const char *reference = form != NULL ? osc_attribute(form, "entityRef") : NULL;
    return reference != NULL && osc_is(form, "RelativeObjectPosition") &&
           strcmp(reference, entity->name) == 0;
}

/* The same of a vertex, control point or clothoid; knots and most clothoids have no position. */
static bool is_part_own(const struct osc_element *part, const struct osc_entity *entity)
{
    const struct osc_element *position = osc_child(part, "Position");
    position = position != NULL ? position : osc_child(part, "PositionStart");
    return position != NULL ? is_own(position, entity)
                            : osc_is(part, "Clothoid") || osc_is(part, "ClothoidSplineSegment") ||
                                  osc_is(part, "Knot");
}

bool osc_trajectory_is_own(const struct osc_element *trajectory, const struct osc_entity *entity)
{
    const struct osc_element *form = form_of(trajectory);
    if (form == NULL) {
        return false;
    }
    if (osc_is(form, "Clothoid")) {
        return is_part_own(form, entity);
    }
    bool own = form->first != NULL;
    for (const struct osc_element *part = form->first; part != NULL; part = part->next) {
        own = own && is_part_own(part, entity);
    }
    return own;
}

static enum status read_shape(struct osc_context *context, const struct osc_element *trajectory,
                              bool timed, bool relative, uint32_t *index)
{
    const struct osc_element *form = form_of(trajectory);
    if (form == NULL) {
        return osc_fail(context, trajectory, "expected a <Shape>, found none");
    }
    bool closed;
    TRY(osc_bool(context, trajectory, "closed", false, &closed));
    if (closed && (timed || !osc_is(form, "Polyline"))) {
        osc_note(context, trajectory,
                 "a closed trajectory with times, of clothoids or of NURBS is left open");
    }
    if (osc_is(form, "Polyline")) {
        return read_polyline(context, form, closed, timed, index);
    }
    if (osc_is(form, "Clothoid") || osc_is(form, "ClothoidSpline")) {
        return read_clothoids(context, form, timed, relative, index);
    }
    if (osc_is(form, "Nurbs")) {
        struct nurbs nurbs = {0};
        TRY(read_nurbs(context, form, timed, &nurbs));
        return sample_nurbs(context, form, &nurbs, timed, index);
    }
    return osc_unsupported(context, form);
}

enum status osc_trajectory_read(struct osc_context *context, const struct osc_element *trajectory,
                                bool timed, uint32_t *index)
{
    return read_shape(context, trajectory, timed, false, index);
}

enum status osc_trajectory_read_own(struct osc_context *context,
                                    const struct osc_element *trajectory, struct osc_entity *entity,
                                    bool timed, uint32_t *index)
{
    struct pose pose = entity->pose;
    entity->pose = (struct pose){0};
    enum status status = read_shape(context, trajectory, timed, true, index);
    entity->pose = pose;
    return status;
}
