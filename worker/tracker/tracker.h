/*
 * Tracker: from a trajectory that a planner answered with to the one action of this tick.
 *
 * Planners of the field plan a trajectory and leave it to a stated controller to follow it. Here
 * are two: nuPlan's linear-quadratic regulator with nuPlan's parameters, so that a planner made
 * for it drives as it was made to, and pure pursuit. Both are pure functions of the trajectory and
 * of ego's state now: they keep nothing from tick to tick, so that forks and replays need nothing.
 *
 * On the deterministic path: fixed order, base/dmath.h, no allocation.
 */
#ifndef SWERVE_WORKER_TRACKER_TRACKER_H
#define SWERVE_WORKER_TRACKER_TRACKER_H

#include "base/status.h"
#include "schemas/planner.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Ego as it is now: its box's centre, world frame. */
struct tracker_ego {
    double x_m, y_m, heading_rad;
    double speed_mps;
    double steer_rad; /* front-wheel angle as realised */
    double wheelbase_m;
};

/* The shortest reach of a trajectory: less says nothing about curvature. */
#define TRACKER_REACH_MIN_S 0.3

/* Whether a trajectory can be followed: 1 to SWERVE_TRAJECTORY_POINTS points, finite, times rising
 * from 0 or later up to TRACKER_REACH_MIN_S at least and 1,000 s at most, every position within
 * 10 km of ego, headings within 1,000 rad and speeds within 200 m/s. False: a clause that says
 * which point and what was found. */
bool tracker_check(const struct tracker_ego *ego, const struct swerve_trajectory_point *points,
                   uint32_t count, char *text, size_t text_bytes);

/* The action of this tick; the trajectory was checked. One that begins later than now begins where
 * ego is. */
struct swerve_action tracker_follow(enum swerve_tracker tracker, const struct tracker_ego *ego,
                                    const struct swerve_trajectory_point *points, uint32_t count);

/* Curvature that the regulator asks for, before the steering rate becomes an angle. */
struct tracker_command {
    double accel_mps2;
    double steer_rate_rps;
};

/*
 * nuPlan's LQRTracker (nuplan-devkit, nuplan/planning/simulation/controller/tracker/lqr.py) with
 * the parameters of its lqr_tracker.yaml. Works on the rear axle, half a wheelbase behind the
 * centre. Of what lies beyond 8 s nothing is used.
 */
struct tracker_command tracker_lqr(const struct tracker_ego *ego,
                                   const struct swerve_trajectory_point *points, uint32_t count);

/* 4 s, a sample every 0.1 s. */
enum { TRACKER_DRIVE_SAMPLES = 41 };

/* A plan as it would be driven if nothing else were planned. */
struct tracker_drive {
    double accel_mps2[TRACKER_DRIVE_SAMPLES]; /* length of the rear axle's acceleration */
    double heading_rad[TRACKER_DRIVE_SAMPLES];
};

/*
 * navsim 2.1.2's PDMSimulator: the regulator above on the plan's first 4 s, its commands through a
 * kinematic bicycle on the rear axle with a lag of 0.2 s in acceleration and 0.05 s in steering
 * (batch_lqr.py, batch_kinematic_bicycle.py), whatever ego's own model is. It fits the plan's
 * speeds otherwise than nuPlan does, and so does this. False, and nothing
 * written: the plan ends before 4 s. The trajectory was checked.
 */
bool tracker_simulate(const struct tracker_ego *ego, double accel_mps2, double yaw_rate_rps,
                      const struct swerve_trajectory_point *points, uint32_t count,
                      struct tracker_drive *out);

#endif
