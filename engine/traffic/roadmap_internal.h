/*
 * Roadmap internals: the prepared map behind engine/traffic/roadmap.h, shared by its construction
 * (roadmap_build.c), its queries (roadmap.c) and nobody else.
 *
 * Segments are stored lane by lane, ascending; zero-length pieces of a centre line are left out.
 */
#ifndef SWERVE_ENGINE_TRAFFIC_ROADMAP_INTERNAL_H
#define SWERVE_ENGINE_TRAFFIC_ROADMAP_INTERNAL_H

#include "engine/traffic/roadmap.h"

#define ROAD_REACH_M 5.0 /* off-drivable distance is exact up to here */
#define ROAD_BLEND_M 5.0 /* headings turn over at most this much of either side of a vertex */

struct road_segment {
    double x_m; /* start of this piece of the centre line */
    double y_m;
    double ux;
    double uy;
    double length_m;
    double s_m; /* of the start, along the lane */
    double half_width0_m;
    double half_width1_m;
    double joint_m; /* radius of the disc that closes the joint at its end, 0: none */
    double heading_rad;
    double turn0_rad; /* heading at the start vertex minus heading_rad */
    double turn1_rad; /* the same at the end vertex */
    int32_t lane;
};

struct road_bounds {
    double x0, y0, x1, y1;
};

/* Cells in rows from (x0, y0); cell k lists items[start[k] .. start[k + 1]), ascending. An item is
 * a segment index, or segment_count + index of a drivable polygon. */
struct road_grid {
    double x0_m;
    double y0_m;
    double inverse_cell;
    uint32_t columns;
    uint32_t rows;
    uint32_t *start; /* [columns * rows + 1] */
    uint32_t *items;
};

struct roadmap {
    const struct map *map;
    uint32_t segment_count;
    struct road_segment *segments;
    uint32_t *lane_first; /* [lane_count + 1] index of a lane's first segment */
    struct road_grid grid;
    struct road_bounds *drivable_bounds; /* [drivable_count] */
    struct road_bounds *surface_bounds;  /* [surface_count] */
    uint32_t large_count;                /* drivable polygons too large for the grid */
    uint32_t *large;
};

/* Heading of the lane `along` metres into the segment: constant in the middle, turning linearly
 * near the vertices, so that it is continuous. Not wrapped. */
double road_segment_heading(const struct road_segment *segment, double along);

#endif
