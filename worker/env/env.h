/*
 * Environments: many rollouts that a learner steps by itself, as a C ABI for libswerve_env.so. The
 * loop is the runner's (worker/run/runner.h) with the caller in the planner's place: the same
 * physics, sensors, scoring and checks in the same order, so a drive here has the bits, and the
 * trace hash, of `swerve run` under the same actions. docs/python.md describes the Gymnasium
 * environments that stand on it.
 *
 * One handle holds `count` environments over the scenarios of one suite, in the object, the replay
 * or a learned world. What they show lies in arrays with a row per environment, at addresses that
 * stay: nothing is copied. Environments are independent: what one does never depends on the others,
 * on its index or on the number of threads.
 *
 * Functions that return int give 0, or the number of a status and a terminated sentence in
 * error_text; after a failure nothing has been stepped. One thread at a time may call with a
 * handle. This header is self-contained: C11 or C++11, libc types only.
 */
#ifndef SWERVE_WORKER_ENV_ENV_H
#define SWERVE_WORKER_ENV_ENV_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SWERVE_ENV_ABI_VERSION 1u
#define SWERVE_ENV_API __attribute__((visibility("default")))

struct swerve_env;
struct swerve_env_state;

enum swerve_env_wants {
    SWERVE_ENV_BEV = 1, /* as SWERVE_WANTS_BEV and SWERVE_WANTS_CAMERAS of planner.h */
    SWERVE_ENV_CAMERAS = 2,
    SWERVE_ENV_HASH = 4, /* outcomes have a trace hash */
};

enum {
    SWERVE_ENV_COUNT_MAX = 1024,
    SWERVE_ENV_EGO = 8, /* x_m, y_m, heading_rad, speed_mps, accel_mps2, lat_accel_mps2,
                           yaw_rate_rps, steer_rad */
    SWERVE_ENV_ROUTE_POINTS = 32,
    SWERVE_ENV_ROUTE = 7, /* members of struct swerve_route_point of planner.h, in their order */
    SWERVE_ENV_BEV_BYTES = 4 * 192 * 96,
    SWERVE_ENV_CAMERA_BYTES = 3 * 64 * 96 * 3,
    SWERVE_ENV_OUTCOME_BYTES = 16384,
    SWERVE_ENV_CONTROLS = 5, /* target_mps2, roll_lataccel_mps2, v_ego_mps, a_ego_mps2, steer */
};

enum swerve_env_end {
    SWERVE_ENV_GOES_ON = 0,
    SWERVE_ENV_HORIZON,   /* the scenario's time is over */
    SWERVE_ENV_COLLISION, /* ego hit a vehicle or a person; rollouts end there */
    SWERVE_ENV_SICK,      /* a health check found the world unbelievable: no result */
    SWERVE_ENV_EMPTY,     /* not reset yet */
};

struct swerve_env_config {
    uint32_t abi_version; /* SWERVE_ENV_ABI_VERSION */
    uint32_t count;       /* environments, 1 to SWERVE_ENV_COUNT_MAX */
    uint32_t threads;     /* that score and draw; 0 counts as 1 */
    uint32_t wants;       /* enum swerve_env_wants */
    const char *world;    /* "object" or "replay" */
    const char *suite;    /* file or folder of a suite or scenario */
};

/* Rows of all environments, valid until close. All but `actions` are written by reset, step, fork
 * and restore. */
struct swerve_env_rows {
    double *actions;          /* [count][2], in: acceleration in m/s2, front-wheel angle in rad */
    const double *ego;        /* [count][SWERVE_ENV_EGO], world frame */
    const float *route;       /* [count][SWERVE_ENV_ROUTE_POINTS][SWERVE_ENV_ROUTE], ego frame */
    const uint8_t *bev;       /* [count][4][192][96]; NULL: not wanted */
    const uint8_t *cameras;   /* [count][3][64][96][3]; NULL: not wanted */
    const double *advance_m;  /* [count], along the route in the last step, 0 after a reset */
    const uint8_t *contact;   /* [count], 1: ego touched something in the last step, not before */
    const uint8_t *end;       /* [count], enum swerve_env_end */
    const uint32_t *tick;     /* [count] */
    const uint32_t *scenario; /* [count], index of the scenario that is driven */
    const uint64_t *seed;     /* [count] */
};

/* Hash over the sources that decide a drive's bits; that of `swerve` is in each of its outcomes. */
SWERVE_ENV_API const char *swerve_env_revision(void);

/* Loads the suite; every environment is empty. On success *out is the caller's to close. */
SWERVE_ENV_API int swerve_env_open(const struct swerve_env_config *config, struct swerve_env **out,
                                   char *error_text, uint32_t error_bytes);
/* The same, looking through sensors of a rig (docs/rigs.md) in place of the grid and the cameras of
 * `wants`, which names neither. `choice` is what planners of version 4 answer with
 * (schemas/planner.md): {"sensors": ["front", "bev"], "rig": {..}}; cameras as plain bytes, and the
 * grid. Lidars are refused: their turns differ in size. Nothing is drawn that is not chosen. */
SWERVE_ENV_API int swerve_env_open_sensors(const struct swerve_env_config *config,
                                           const char *choice, uint64_t bytes,
                                           struct swerve_env **out, char *error_text,
                                           uint32_t error_bytes);

/* A model of which the world is made, on the CPU. */
struct swerve_env_model {
    const char *models;    /* folder of models; NULL: as of `swerve --models` */
    const char *layout;    /* "agents", "map", "none", "foresee" or "tokens"; NULL: agents */
    const char *precision; /* "fp32", "bf16" or "int8"; NULL: bf16, of tinyphysics fp32 */
    uint32_t skip_steps;   /* of its sampler, left out of every step, as of `swerve run` */
};
/* The same in a learned world: config->world is "student", "teacher" or "tinyphysics", which is the
 * simulator of the controls challenge (docs/controls.md), of tinyphysics.onnx of that folder. A
 * scenario that lasts longer than the model is trusted is refused. The world's products are shared
 * by config->threads. An action's angle is the simulator's steering command there, and its
 * acceleration nothing. */
SWERVE_ENV_API int swerve_env_open_model(const struct swerve_env_config *config,
                                         const struct swerve_env_model *model,
                                         struct swerve_env **out, char *error_text,
                                         uint32_t error_bytes);

/* A chosen sensor; valid until close. rows[count] are its newest frames, written as the other rows
 * are: of a camera [height][width][3], of the grid [4][height][width]. */
struct swerve_env_sensor {
    const char *id;
    uint32_t is_grid;
    uint32_t width, height;
    const uint8_t *rows;
};
/* Sensor `index`, in the order of the choice; returns their number, 0: of no rig. *out stays where
 * there is no such sensor; NULL: not asked for. */
SWERVE_ENV_API uint32_t swerve_env_sensors(const struct swerve_env *env, uint32_t index,
                                           struct swerve_env_sensor *out);

/* Accepts NULL. States that were saved are freed before. */
SWERVE_ENV_API void swerve_env_close(struct swerve_env *env);

SWERVE_ENV_API uint32_t swerve_env_scenarios(const struct swerve_env *env);
/* Of scenario `index`; borrowed until close. horizon_ticks may be NULL. */
SWERVE_ENV_API const char *swerve_env_scenario(const struct swerve_env *env, uint32_t index,
                                               uint32_t *horizon_ticks);
/* Log of scenario `index` where it is one of the controls challenge, rows [*count]
 * [SWERVE_ENV_CONTROLS] from tick 0 on: what the action at a tick is asked for, and what is logged;
 * borrowed until close. NULL: another scenario, *count is 0 then. */
SWERVE_ENV_API const double *swerve_env_controls(const struct swerve_env *env, uint32_t index,
                                                 uint32_t *count);
SWERVE_ENV_API void swerve_env_rows(const struct swerve_env *env, struct swerve_env_rows *out);

/* Begins a drive in `count` environments: which[i] drives scenarios[i] with seeds[i] (0 varies
 * nothing). */
SWERVE_ENV_API int swerve_env_reset(struct swerve_env *env, uint32_t count, const uint32_t *which,
                                    const uint32_t *scenarios, const uint64_t *seeds,
                                    char *error_text, uint32_t error_bytes);

/* One tick of 0.1 s in every environment that goes on and whose idle[i] is 0 (NULL: all). An action
 * that is not finite or beyond 50 m/s2 or 2 rad is refused; within, the vehicle's limits hold. */
SWERVE_ENV_API int swerve_env_step(struct swerve_env *env, const uint8_t *idle, char *error_text,
                                   uint32_t error_bytes);

/* Environment `to` becomes an exact copy of `from`, which goes on: both then do the same under the
 * same actions. */
SWERVE_ENV_API int swerve_env_fork(struct swerve_env *env, uint32_t from, uint32_t to,
                                   char *error_text, uint32_t error_bytes);

/* The state of an environment that goes on, to be restored any number of times into any
 * environment of this handle. The caller frees it, before close. */
SWERVE_ENV_API int swerve_env_save(struct swerve_env *env, uint32_t from,
                                   struct swerve_env_state **out, char *error_text,
                                   uint32_t error_bytes);
SWERVE_ENV_API int swerve_env_restore(struct swerve_env *env, struct swerve_env_state *state,
                                      uint32_t to, char *error_text, uint32_t error_bytes);
SWERVE_ENV_API void swerve_env_state_free(struct swerve_env *env, struct swerve_env_state *state);

/* The outcome of a drive that has ended, as JSON with the members that `swerve show` prints:
 * verdict, reasons, metrics. json has `bytes`, SWERVE_ENV_OUTCOME_BYTES are enough. */
SWERVE_ENV_API int swerve_env_outcome(const struct swerve_env *env, uint32_t index, char *json,
                                      uint32_t bytes, char *error_text, uint32_t error_bytes);

/* ---- recordings ---- */

struct swerve_env_drawing;

/* A tick of a recording, as `swerve show --trace` prints it. */
struct swerve_env_moment {
    uint32_t tick;
    uint32_t agent_count; /* at most the scenario's; the others are absent */
    const double *ego;    /* [SWERVE_ENV_EGO] */
    const double *agents; /* [agent_count][4]: x_m, y_m, heading_rad, speed_mps; NaN: absent */
    const char *weather, *light; /* names */
    double visibility_m;
};

/* Draws what sensors of the object and the replay world see in a scenario, given as its document.
 * The caller closes *out. */
SWERVE_ENV_API int swerve_env_drawing_open(const char *scenario, uint64_t bytes, uint64_t seed,
                                           struct swerve_env_drawing **out, char *error_text,
                                           uint32_t error_bytes);
SWERVE_ENV_API void swerve_env_drawing_close(struct swerve_env_drawing *drawing);
/* bev [SWERVE_ENV_BEV_BYTES] and cameras [SWERVE_ENV_CAMERA_BYTES]; NULL: not drawn. */
SWERVE_ENV_API int swerve_env_draw(const struct swerve_env_drawing *drawing,
                                   const struct swerve_env_moment *moment, uint8_t *bev,
                                   uint8_t *cameras, char *error_text, uint32_t error_bytes);

#ifdef __cplusplus
}
#endif

#endif
