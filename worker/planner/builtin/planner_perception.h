/*
 * Perception of builtin:reference: from BEV occupancy to moving objects.
 *
 * Occupied cells are grouped into clusters, clusters are matched with the tracks of earlier frames,
 * and alpha-beta filters estimate how fast each track moves: one in a frame that stands still
 * (ego's pose at reset), so that ego's motion drops out, and, near the route, one along it (Frenet
 * coordinates: s ahead of ego's foot point, d to the left of the route), where the sides of parked
 * and driving cars stay put whichever part of them is seen. Coverage of cells (their antialiasing)
 * gives edges and centroids far
 * finer than the cell size, so two frames already tell a speed.
 *
 * Nothing but the grid and ego's odometry is used: no true objects. Fixed memory, no pointers: a
 * fork is a copy.
 */
#ifndef SWERVE_WORKER_PLANNER_BUILTIN_PLANNER_PERCEPTION_H
#define SWERVE_WORKER_PLANNER_BUILTIN_PLANNER_PERCEPTION_H

#include "schemas/planner.h"

#include <stdbool.h>
#include <stdint.h>

enum { PERCEPTION_TRACKS = 32 };

/* ---- the route as Frenet axis ---- */

struct frenet_segment {
    double x_m, y_m; /* start, ego frame */
    double ux, uy;   /* direction */
    double length_m;
    double x_low_m, x_high_m; /* points with x in here may have their foot point on it */
};

/* The route of one observation, extended straight beyond both ends. */
struct frenet {
    uint32_t count; /* >= 1 */
    struct frenet_segment segments[SWERVE_ROUTE_POINTS];
};

struct frenet_point {
    double s_m, d_m;
    double ux, uy; /* direction of the route at the foot point, ego frame */
};

/* Needs route_count >= 2. */
void frenet_make(struct frenet *frenet, const struct swerve_observation *seen);

/* Projects a point of ego's frame. False, and *out untouched, for a point so far aside (24 m, the
 * grid's half width) that no segment is sure to hold its foot point. */
bool frenet_project(const struct frenet *frenet, double x_m, double y_m, struct frenet_point *out);

/* ---- tracks ---- */

/* An upright rectangle in the standing frame. */
struct perception_box {
    double x_low_m, x_high_m, y_low_m, y_high_m;
};

/* Extent of something along the route. */
struct perception_extent {
    double s_low_m, s_high_m, d_low_m, d_high_m;
};

/* One tracked object. */
struct perception_track {
    bool live;
    uint8_t missed;          /* frames since it was last seen */
    uint32_t age;            /* frames in which it was seen */
    uint32_t snapshot;       /* that it is real: strong returns count more than weak ones */
    uint32_t conflict_ticks; /* kept by the planner: for how long it has been in the way */
    /* In the standing frame: what was seen of it, carried on by speed. */
    struct perception_box box;
    double x_centroid_m, y_centroid_m;
    double x_residual_m, y_residual_m; /* filtered minus measured position */
    double vx_mps, vy_mps;
    /* Along the route, from ego's foot point. */
    bool near_route; /* close enough for a filter of its own in these coordinates */
    struct perception_extent at;
    double s_centroid_m, d_centroid_m;
    double s_residual_m, d_residual_m;
    double s_mps, d_mps;
    double s_mps2; /* smoothed acceleration along the route */
};

struct perception {
    bool started;
    int64_t bev_time_ns;                               /* of the last grid used */
    double origin_x_m, origin_y_m, origin_heading_rad; /* the standing frame, in the world */
    double ego_x_m, ego_y_m, ego_cos, ego_sin;         /* ego in the standing frame */
    double progress_m; /* of ego's foot point since the last update */
    struct perception_track tracks[PERCEPTION_TRACKS];
};

void perception_reset(struct perception *perception);

/* Takes in one observation: odometry always, the grid when it is newer than the last one. With a
 * dark lidar, tracks move on at their last speed. */
void perception_update(struct perception *perception, const struct frenet *frenet,
                       const struct swerve_observation *seen);

/* Whether a track has been seen often enough to act on: a stray return never is. */
bool perception_trusted(const struct perception_track *track);

/* Extent of the track along the route after t_s at the given velocity (standing frame). False
 * when that is too far aside to tell. */
bool perception_extent_after(const struct perception *perception, const struct frenet *frenet,
                             const struct perception_track *track, double vx_mps, double vy_mps,
                             double t_s, struct perception_extent *out);

/* Whether the cell at (s, d), s from ego's foot point, was reached by no ray; false outside. */
bool perception_unseen(const struct swerve_observation *seen, double s_m, double d_m);

#endif
