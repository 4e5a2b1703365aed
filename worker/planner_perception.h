/*
 * Perception of builtin:reference: from BEV occupancy to moving objects along the route.
 *
 * Occupied cells are grouped into clusters, clusters are matched with the tracks of earlier frames,
 * and an alpha-beta filter estimates how fast each track moves. All positions are Frenet
 * coordinates: s along the route, d to its left, which ego's own motion changes in s alone; s is
 * anchored to the road by adding up ego's progress. Coverage of cells (their antialiasing) gives
 * edges and centroids far finer than the cell size, so two frames already tell a speed.
 *
 * Nothing but the grid and ego's odometry is used: no true objects. Fixed memory, no pointers: a
 * fork is a copy.
 */
#ifndef SWERVE_WORKER_PLANNER_PERCEPTION_H
#define SWERVE_WORKER_PLANNER_PERCEPTION_H

#include "schemas/planner.h"

#include <stdbool.h>
#include <stdint.h>

enum { PERCEPTION_TRACKS = 32 };

/* One tracked object. */
struct perception_track {
    bool live;
    uint8_t s_feature;        /* which feature of its shape the filter follows in s .. */
    uint8_t d_feature;        /* .. and in d */
    uint8_t missed;           /* frames since it was last seen */
    uint32_t age;             /* frames in which it was seen */
    uint32_t mass;            /* summed coverage of its cells, 255 per full cell */
    uint32_t conflict_ticks;  /* kept by the planner: for how long it has been in the way */
    double s_low_m, s_high_m; /* extent when last seen, carried on by speed; anchored s */
    double d_low_m, d_high_m;
    double s_centroid_m, d_centroid_m; /* the same for the centre of what was seen */
    double s_residual_m, d_residual_m; /* filtered minus measured position */
    double s_mps, d_mps;               /* speed along and across the route */
    double s_mps2;                     /* smoothed acceleration along the route */
};

struct perception {
    bool started;
    uint32_t frames;     /* grids seen since reset */
    int64_t bev_time_ns; /* of the last grid used */
    double x_m, y_m;     /* ego at the last update, world frame */
    double ego_s_m;      /* anchored s of ego's foot point */
    struct perception_track tracks[PERCEPTION_TRACKS];
};

void perception_reset(struct perception *perception);

/* Takes in one observation: odometry always, the grid when it is newer than the last one. With a
 * dark lidar, tracks move on at their last speed. Needs route_count >= 2. */
void perception_update(struct perception *perception, const struct swerve_observation *seen);

/* Whether a track has been seen often enough to act on: a stray return never is. */
bool perception_trusted(const struct perception_track *track);

/* Lateral position of ego relative to the route, left positive. */
double perception_ego_offset_m(const struct swerve_observation *seen);

/* Whether the cell at (s, d), s from ego's foot point, was reached by no ray; false outside. */
bool perception_unseen(const struct swerve_observation *seen, double s_m, double d_m);

#endif
