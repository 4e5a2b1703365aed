/*
 * Ego's vehicle: a kinematic bicycle about the box centre (Rajamani, "Vehicle Dynamics and
 * Control", 2nd ed., section 2.2; validity: Polack et al., IV 2017), behind actuators with limits
 * and lag, on tyres with a friction circle.
 *
 *   beta = atan(tan(steer) / 2), curvature = sin(beta) / (wheelbase / 2)    (lr = lf = wheelbase/2)
 *
 * Integrated in EGO_SUBSTEPS per tick, each with the mean of its acceleration, which the lag bends,
 * and constant curvature. The speed never becomes negative; a full stop is exactly 0.
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
enum { EGO_DELAY_TICKS_MAX = 10 }; /* EGO_DELAY_MAX_S */

/* Share of a command that the lag lets through by the end of one sub-step:
 * 1 - exp(-(TICK_S / EGO_SUBSTEPS) / EGO_ACCEL_TIME_CONSTANT_S) = 1 - exp(-0.25). */
#define EGO_ACCEL_SHARE 0.22119921692859513
/* .. and in its mean over the sub-step: 1 - EGO_ACCEL_SHARE / 0.25. */
#define EGO_ACCEL_MEAN_SHARE 0.11520313228561948

/* Memory of a body and its actuators beyond what everybody sees of them. A plain value; zero is
 * rolling straight on. */
struct ego_motion {
    double actuator_mps2;                        /* what drivetrain and brakes give */
    double side_mps;                             /* speed to the left; of the single-track model */
    double accel_line_mps2[EGO_DELAY_TICKS_MAX]; /* commands under way, the oldest first */
    double steer_line_rad[EGO_DELAY_TICKS_MAX];
};

/* One tick of the scenario's ego: its dead times, then its dynamics. */
void ego_motion_step(struct ego_state *ego, struct ego_motion *motion, const struct ego *record,
                     const struct action *action, double friction);

/* One tick of the kinematic bicycle. *actuator_mps2 is the acceleration that drivetrain and brakes
 * give at present, 0 or the caller's choice at the start. The action is finite; it is clamped to
 * the vehicle's limits. */
void ego_model_step(struct ego_state *ego, double *actuator_mps2, const struct action *action,
                    double wheelbase_m, double friction);

#endif
