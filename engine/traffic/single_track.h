/*
 * Ego as a dynamic single-track model with load transfer and tyres that saturate, for scenarios
 * that leave what the kinematic bicycle holds for ("dynamics": "single_track").
 *
 * Equations and parameters: Althoff, Koschi, Manzinger, "CommonRoad: Composable benchmarks for
 * motion planning on roads", IV 2017, and its "Vehicle Models", single-track model, vehicle 2 (BMW
 * 320i): masses only matter as ratios. In place of its linear tyre, the brush tyre of Fiala (1954;
 * Pacejka, "Tyre and Vehicle Dynamics", 3rd ed., 3.2) with the same cornering stiffness, on a
 * friction ellipse with the longitudinal force. Braking is split by axle load (electronic brake
 * force distribution) and kept below what would lock the wheels, driving is at the rear axle.
 *
 * Below SINGLE_TRACK_SLOW_MPS slip angles mean nothing and the kinematic relations hold.
 * Integrated by Runge-Kutta's fourth-order scheme; the same bits everywhere (base/dmath.h).
 */
#ifndef SWERVE_ENGINE_TRAFFIC_SINGLE_TRACK_H
#define SWERVE_ENGINE_TRAFFIC_SINGLE_TRACK_H

#include "engine/traffic/ego_model.h"

#include <stdint.h>

enum { SINGLE_TRACK_SUBSTEPS = 20 };

#define SINGLE_TRACK_SLOW_MPS 2.0
#define SINGLE_TRACK_FRONT_SHARE 0.44832679  /* l_f / wheelbase: 3.793293 ft of 8.461 ft */
#define SINGLE_TRACK_HEIGHT_SHARE 0.22291136 /* height of the centre of gravity / wheelbase */
#define SINGLE_TRACK_GYRATION2 0.24639402    /* I_z / (m wheelbase^2): 1791.5995, 1093.2953 kg */
#define SINGLE_TRACK_STIFFNESS 20.898084     /* per radian and unit of friction: 21.92 / 1.0489 */
#define SINGLE_TRACK_STEER_RATE_RPS 0.4
#define SINGLE_TRACK_BRAKE_SHARE \
    0.98 /* of the friction: what anti-lock brakes leave for steering */

/* One tick in `substeps` steps. The box centre is taken for the centre of gravity. */
void single_track_step(struct ego_state *ego, struct ego_motion *motion,
                       const struct action *action, double wheelbase_m, double friction,
                       uint32_t substeps);

#endif
