/*
 * Builtin planners: their table, and the lane-keeping that all of them share.
 *
 * Everything here computes with base/dmath.h in a fixed order, keeps its memory in one fixed-size
 * record per session (a fork copies the record), and looks at nothing but the observation.
 */
#ifndef SWERVE_WORKER_PLANNER_BUILTIN_PLANNER_BUILTIN_H
#define SWERVE_WORKER_PLANNER_BUILTIN_PLANNER_BUILTIN_H

#include "schemas/planner.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Part of every builtin's identity: raise it with any change to what one of them answers. */
#define PLANNER_BUILTIN_VERSION "3"

extern const struct swerve_planner_ops planner_builtin_reference_ops;
extern const struct swerve_planner_ops planner_builtin_maintain_ops;
extern const struct swerve_planner_ops planner_builtin_brake_ops;
extern const struct swerve_planner_ops planner_builtin_log_ops;
extern const struct swerve_planner_ops planner_builtin_idm_ops;
extern const struct swerve_planner_ops planner_builtin_pdm_ops;
extern const struct swerve_planner_ops planner_builtin_r157_ops;
extern const struct swerve_planner_ops planner_builtin_pid_ops;
extern const struct swerve_planner_ops planner_builtin_zero_ops;

enum {
    /* Beside SWERVE_WANTS_BEV in the `wants` of a builtin: it looks at occupancy and unseen alone,
     * so the grid's other planes are not drawn for it, nor digested. */
    PLANNER_WANTS_RETURNS = 1 << 17,
    /* Somebody looks on, for whom these planes are drawn all the same. */
    PLANNER_WATCHED = 1 << 18,
};

/* The planner of that name, or NULL. */
const struct swerve_planner_ops *planner_builtin_find(const char *name);

/* "reference, maintain, .." for messages; cut to fit. */
void planner_builtin_names(char *text, size_t bytes);

/* First member of every builtin's own struct, which ends with its array of session records. */
struct planner_builtin {
    uint32_t session_count;
    size_t session_bytes; /* of one record */
    size_t sessions_at;   /* where the array begins, from the start of the struct */
};

/* A zeroed planner of `sessions_at` bytes and its records; free() ends it. NULL and a sentence when
 * memory is short. */
void *planner_builtin_create(size_t sessions_at, size_t session_bytes, uint32_t session_count,
                             char *error_text, uint32_t error_bytes);

/* The fork of a planner whose records own nothing: `to` becomes a copy of `from`. */
int planner_builtin_fork(void *planner, uint32_t from, uint32_t to, char *error_text,
                         uint32_t error_bytes);

/* One number that a config text may set. */
struct planner_parameter {
    const char *key;
    double low; /* inclusive bounds */
    double high;
    double *value; /* holds the default; written on success only */
};

/* Reads "key=number&key=number" (commas also separate). Unknown keys, repeated keys, text that is
 * not a number and numbers out of bounds fail with a sentence; returns 0 on success. */
int planner_config_read(const char *config, const struct planner_parameter *parameters,
                        uint32_t count, char *error_text, uint32_t error_bytes);

/* ---- lane keeping (ego frame: origin at the box centre, x ahead, y left) ---- */

struct planner_point {
    double x_m;
    double y_m;
};

/* The point of the route that an observation carries, at arc length s_m from ego's foot point,
 * where it begins, and offset_m to the left. Beyond its ends it goes straight on. route_count >= 2.
 */
struct planner_point planner_route_at(const struct swerve_observation *observation, double s_m,
                                      double offset_m);

/* Front-wheel angle that takes the rear axle (half a wheelbase behind the centre) on a circle
 * through the target: pure pursuit (Coulter, CMU-RI-TR-92-01). Targets behind give 0. */
double planner_pursue(struct planner_point target, double wheelbase_m);

/* Pure pursuit on the route, shifted left by offset_m, with a look-ahead that grows with speed.
 * Without a usable route: straight on. */
double planner_keep_lane(const struct swerve_observation *observation, double wheelbase_m,
                         double offset_m);

#endif
