/*
 * Ego's vehicle: a kinematic bicycle about the box centre (Rajamani, "Vehicle Dynamics and
 * Control", 2nd ed., section 2.2; validity: Polack et al., IV 2017), behind actuators with limits
 * and lag, on tyres with a friction circle.
 *
 *   beta = atan(tan(steer) / 2), curvature = sin(beta) / (wheelbase / 2)    (lr = lf = wheelbase/2)
 *
 * Integrated in EGO_SUBSTEPS per tick, each with constant acceleration and curvature. The speed
 * never becomes negative; a full stop is exactly 0.
 */
#ifndef SWERVE_ENGINE_TRAFFIC_EGO_MODEL_H
#define SWERVE_ENGINE_TRAFFIC_EGO_MODEL_H

#include "base/units.h"
#include "schemas/scenario.h"
#include "schemas/scene.h"

#define EGO_SUBSTEPS 2
#define EGO_ACCEL_MAX_MPS2 3.5
#define EGO_ACCEL_TIME_CONSTANT_S 0.2
#define EGO_STEER_MAX_RAD 0.6
#define EGO_STEER_RATE_MAX_RPS 0.8
#define EGO_SPEED_MAX_MPS 70.0

/* Share of a command that the lag lets through in one sub-step:
 * 1 - exp(-(TICK_S / EGO_SUBSTEPS) / EGO_ACCEL_TIME_CONSTANT_S) = 1 - exp(-0.25). */
#define EGO_ACCEL_SHARE 0.22119921692859513

/* One tick. *actuator_mps2 is the acceleration that drivetrain and brakes give at present, 0 or the
 * caller's choice at the start. The action is finite; it is clamped to the vehicle's limits. */
void ego_model_step(struct ego_state *ego, double *actuator_mps2, const struct action *action,
                    double wheelbase_m, double friction);

#endif
