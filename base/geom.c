/*
 * Plane geometry. Textbook formulas (Ericson, "Real-Time Collision Detection", chapters 4 and 5);
 * every loop runs in index order so that results are reproducible to the bit.
 */
#include "base/geom.h"

#include "base/check.h"
#include "base/dmath.h"

#include <math.h>

static struct vec2 sub(struct vec2 a, struct vec2 b)
{
    return (struct vec2){a.x_m - b.x_m, a.y_m - b.y_m};
}

static double dot(struct vec2 a, struct vec2 b)
{
    return a.x_m * b.x_m + a.y_m * b.y_m;
}

static double cross(struct vec2 a, struct vec2 b)
{
    return a.x_m * b.y_m - a.y_m * b.x_m;
}

static double length(struct vec2 a)
{
    return sqrt(dot(a, a));
}

struct box box_make(struct pose pose, double length_m, double width_m)
{
    struct box box = {
        .center = {pose.x_m, pose.y_m},
        .half_length_m = length_m / 2,
        .half_width_m = width_m / 2,
    };
    dmath_sincos(pose.heading_rad, &box.sin_heading, &box.cos_heading);
    return box;
}

void box_corners(const struct box *box, struct vec2 corners[4])
{
    double lx = box->half_length_m * box->cos_heading;
    double ly = box->half_length_m * box->sin_heading;
    double wx = -box->half_width_m * box->sin_heading;
    double wy = box->half_width_m * box->cos_heading;
    corners[0] = (struct vec2){box->center.x_m + lx + wx, box->center.y_m + ly + wy};
    corners[1] = (struct vec2){box->center.x_m - lx + wx, box->center.y_m - ly + wy};
    corners[2] = (struct vec2){box->center.x_m - lx - wx, box->center.y_m - ly - wy};
    corners[3] = (struct vec2){box->center.x_m + lx - wx, box->center.y_m + ly - wy};
}

/* Widest gap that is taken for a touch: rounding makes such gaps, up to 5,000 km from the origin.
 */
#define TOUCH_SLACK_M 1e-9

/* Whether an axis of `a` separates the two boxes. */
static bool separated_by_axes_of(const struct box *a, const struct box *b)
{
    struct vec2 d = sub(b->center, a->center);
    double along = d.x_m * a->cos_heading + d.y_m * a->sin_heading;
    double across = -d.x_m * a->sin_heading + d.y_m * a->cos_heading;
    double c = fabs(a->cos_heading * b->cos_heading + a->sin_heading * b->sin_heading);
    double s = fabs(a->cos_heading * b->sin_heading - a->sin_heading * b->cos_heading);
    return fabs(along) >
               a->half_length_m + b->half_length_m * c + b->half_width_m * s + TOUCH_SLACK_M ||
           fabs(across) >
               a->half_width_m + b->half_length_m * s + b->half_width_m * c + TOUCH_SLACK_M;
}

bool box_overlap(const struct box *a, const struct box *b)
{
    return !separated_by_axes_of(a, b) && !separated_by_axes_of(b, a);
}

static double box_point_distance_m(const struct box *box, struct vec2 point)
{
    struct vec2 d = sub(point, box->center);
    double along = fabs(d.x_m * box->cos_heading + d.y_m * box->sin_heading) - box->half_length_m;
    double across = fabs(-d.x_m * box->sin_heading + d.y_m * box->cos_heading) - box->half_width_m;
    double a = dmath_max(along, 0.0);
    double b = dmath_max(across, 0.0);
    return sqrt(a * a + b * b);
}

double box_distance_m(const struct box *a, const struct box *b)
{
    if (box_overlap(a, b)) {
        return 0.0;
    }
    /* Two disjoint convex polygons are closest at a vertex of one of them. */
    struct vec2 corners[4];
    double best = INFINITY;
    box_corners(a, corners);
    for (int i = 0; i < 4; i++) {
        best = dmath_min(best, box_point_distance_m(b, corners[i]));
    }
    box_corners(b, corners);
    for (int i = 0; i < 4; i++) {
        best = dmath_min(best, box_point_distance_m(a, corners[i]));
    }
    return best;
}

bool box_contains(const struct box *box, struct vec2 point)
{
    return box_point_distance_m(box, point) == 0.0;
}

bool polygon_contains(const struct vec2 *points, uint32_t count, struct vec2 point)
{
    bool inside = false;
    for (uint32_t i = 0, j = count - 1; i < count; j = i++) {
        struct vec2 a = points[i];
        struct vec2 b = points[j];
        if ((a.y_m > point.y_m) != (b.y_m > point.y_m)) {
            double x = a.x_m + (point.y_m - a.y_m) / (b.y_m - a.y_m) * (b.x_m - a.x_m);
            if (point.x_m < x) {
                inside = !inside;
            }
        }
    }
    return inside;
}

double segment_distance_m(struct vec2 a, struct vec2 b, struct vec2 point)
{
    struct vec2 ab = sub(b, a);
    struct vec2 ap = sub(point, a);
    double squared = dot(ab, ab);
    double t = squared > 0 ? dmath_clamp(dot(ap, ab) / squared, 0.0, 1.0) : 0.0;
    return length((struct vec2){ap.x_m - t * ab.x_m, ap.y_m - t * ab.y_m});
}

static int orientation(struct vec2 a, struct vec2 b, struct vec2 c)
{
    double area = cross(sub(b, a), sub(c, a));
    return (area > 0) - (area < 0);
}

/* c is known to be collinear with a-b. */
static bool within_bounds(struct vec2 a, struct vec2 b, struct vec2 c)
{
    return c.x_m >= dmath_min(a.x_m, b.x_m) && c.x_m <= dmath_max(a.x_m, b.x_m) &&
           c.y_m >= dmath_min(a.y_m, b.y_m) && c.y_m <= dmath_max(a.y_m, b.y_m);
}

bool segments_intersect(struct vec2 a, struct vec2 b, struct vec2 c, struct vec2 d)
{
    int o1 = orientation(a, b, c);
    int o2 = orientation(a, b, d);
    int o3 = orientation(c, d, a);
    int o4 = orientation(c, d, b);
    if (o1 != o2 && o3 != o4) {
        return true;
    }
    return (o1 == 0 && within_bounds(a, b, c)) || (o2 == 0 && within_bounds(a, b, d)) ||
           (o3 == 0 && within_bounds(c, d, a)) || (o4 == 0 && within_bounds(c, d, b));
}

struct polyline_projection polyline_project(const struct vec2 *points, uint32_t count,
                                            struct vec2 point)
{
    CHECK(count >= 2);
    struct polyline_projection best = {.distance_m = INFINITY};
    double start_m = 0.0;
    for (uint32_t i = 0; i + 1 < count; i++) {
        struct vec2 ab = sub(points[i + 1], points[i]);
        struct vec2 ap = sub(point, points[i]);
        double segment_m = length(ab);
        if (segment_m <= 0) {
            continue;
        }
        double along = dot(ap, ab) / segment_m;
        double clamped = dmath_clamp(along, 0.0, segment_m);
        double distance = segment_distance_m(points[i], points[i + 1], point);
        if (distance < best.distance_m) {
            best.segment = i;
            best.s_m = start_m + clamped;
            best.offset_m = cross(ab, ap) / segment_m;
            best.distance_m = distance;
            best.heading_rad = dmath_atan2(ab.y_m, ab.x_m);
            best.beyond_end = (i == 0 && along < 0) || (i + 2 == count && along > segment_m);
        }
        start_m += segment_m;
    }
    return best;
}

double polyline_length_m(const struct vec2 *points, uint32_t count)
{
    double total_m = 0.0;
    for (uint32_t i = 0; i + 1 < count; i++) {
        total_m += length(sub(points[i + 1], points[i]));
    }
    return total_m;
}

struct pose polyline_pose_at(const struct vec2 *points, uint32_t count, double s_m, double offset_m)
{
    CHECK(count >= 2);
    double start_m = 0.0;
    uint32_t i = 0;
    double segment_m = length(sub(points[1], points[0]));
    while (i + 2 < count && (s_m > start_m + segment_m || segment_m <= 0)) {
        start_m += segment_m;
        i++;
        segment_m = length(sub(points[i + 1], points[i]));
    }
    struct vec2 ab = sub(points[i + 1], points[i]);
    double scale = segment_m > 0 ? 1.0 / segment_m : 0.0;
    double ux = ab.x_m * scale;
    double uy = ab.y_m * scale;
    double along = s_m - start_m;
    return (struct pose){
        .x_m = points[i].x_m + ux * along - uy * offset_m,
        .y_m = points[i].y_m + uy * along + ux * offset_m,
        .heading_rad = dmath_atan2(uy, ux),
    };
}
