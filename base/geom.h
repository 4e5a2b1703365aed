/*
 * Plane geometry for maps, scenarios, physics and scoring. Metres and radians; x east, y north,
 * headings counter-clockwise from +x. Pure functions on values; deterministic (base/dmath.h).
 */
#ifndef SWERVE_BASE_GEOM_H
#define SWERVE_BASE_GEOM_H

#include <stdbool.h>
#include <stdint.h>

struct vec2 {
    double x_m;
    double y_m;
};

struct pose {
    double x_m;
    double y_m;
    double heading_rad;
};

/* An oriented box. The pose is that of its centre. */
struct box {
    struct vec2 center;
    double cos_heading;
    double sin_heading;
    double half_length_m;
    double half_width_m;
};

/* Projection of a point onto a polyline. */
struct polyline_projection {
    uint32_t segment;   /* index of the segment's first point */
    double s_m;         /* arc length from the first point, clamped to the ends */
    double offset_m;    /* signed lateral offset, left of the direction of travel positive */
    double distance_m;  /* Euclidean distance to the polyline */
    double heading_rad; /* of that segment */
    bool beyond_end;    /* the foot of the perpendicular lies past the first or last point */
};

struct box box_make(struct pose pose, double length_m, double width_m);

/* Corners in the order front-left, rear-left, rear-right, front-right. */
void box_corners(const struct box *box, struct vec2 corners[4]);

/* Separating-axis test; touching boxes overlap, and those with a gap of at most 1e-9 m, which
 * rounding makes. */
bool box_overlap(const struct box *a, const struct box *b);

/* Smallest distance between two boxes, 0 when they overlap. */
double box_distance_m(const struct box *a, const struct box *b);

bool box_contains(const struct box *box, struct vec2 point);

/* Even-odd rule; a point on the boundary may count either way. count >= 3. */
bool polygon_contains(const struct vec2 *points, uint32_t count, struct vec2 point);

/* Distance from a point to the segment a-b. */
double segment_distance_m(struct vec2 a, struct vec2 b, struct vec2 point);

/* True when segments a-b and c-d share a point, collinear overlap included. */
bool segments_intersect(struct vec2 a, struct vec2 b, struct vec2 c, struct vec2 d);

/* count >= 2. */
struct polyline_projection polyline_project(const struct vec2 *points, uint32_t count,
                                            struct vec2 point);
double polyline_length_m(const struct vec2 *points, uint32_t count);

/* Pose at arc length s_m (extended straight past either end), shifted left by offset_m. */
struct pose polyline_pose_at(const struct vec2 *points, uint32_t count, double s_m,
                             double offset_m);

#endif
