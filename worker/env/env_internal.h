/*
 * Parts that the files of this room share: the handle, its drives, and the life of one of them.
 */
#ifndef SWERVE_WORKER_ENV_ENV_INTERNAL_H
#define SWERVE_WORKER_ENV_ENV_INTERNAL_H

#include "engine/learned/device.h"
#include "engine/learned/threads.h"
#include "engine/tinyphysics/tinyphysics_model.h"
#include "engine/worlds/foreign.h"
#include "scenarios/scenarios.h"
#include "schemas/rig/rig_choice.h"
#include "worker/env/env.h"
#include "worker/given/sensors.h"
#include "worker/models/models.h"
#include "worker/run/rollout.h"

#include <locale.h>

/* One environment. rollout and job are NULL while it is empty. */
struct env_drive {
    struct job_run *job;
    struct rollout *rollout;
    bool touched;
    uint32_t skipped;     /* steps of the sampler that the next step leaves out */
    uint32_t steps_least; /* .. and those that were taken so far .. */
    uint32_t steps_most;  /* .. of a drive that has been stepped */
    bool by_previous;     /* the previous model has made a frame */
    bool out_of_memory;   /* in the last step */
};

/* Arrays behind struct swerve_env_rows, in its order. */
struct env_arrays {
    double *actions;
    double *ego;
    float *route;
    uint8_t *bev;
    uint8_t *cameras;
    double *advance_m;
    uint8_t *contact;
    uint8_t *end;
    uint32_t *tick;
    uint32_t *scenario;
    uint64_t *seed;
};

struct swerve_env {
    uint32_t count;
    uint32_t wants; /* enum swerve_planner_wants */
    bool hashes;
    const struct world_ops *ops;
    struct world *world;
    /* Of a learned world. */
    const struct models_model *model;    /* NULL: of no learned one; borrowed */
    const struct models_model *previous; /* NULL: none */
    enum conditioning conditioning;
    char backend[DEVICE_NAME_BYTES];    /* that its bits are of; "": the CPU's */
    struct models *models;              /* owned: of swerve_env_open_model(); NULL: none */
    struct tinyphysics_model *controls; /* owned; NULL: none */
    struct foreign foreign;             /* its world */
    uint32_t skip_steps;                /* of the sampler, in every step of all */
    uint32_t horizon_ticks; /* for which the model is trusted; UINT32_MAX: nobody asks */
    struct threads *threads;
    struct suite *suite;
    struct prepared **prepared; /* [suite->entry_count], NULL: not needed so far */
    struct env_drive *drives;   /* [count] */
    struct action *reached;     /* [count], actions that reach the car in this step */
    uint8_t *active;            /* [count] */
    struct env_arrays rows;
    /* Of a rig. */
    struct sensors *sensors; /* NULL: of none */
    struct rig rig;
    struct rig_choice choice;
    char rig_hash[SHA256_HEX_BYTES];
    uint8_t *sensor_rows[RIG_SENSORS_MAX]; /* [count] frames each */
};

/* Answer of the ABI: the status as a number, its sentence in the caller's text. */
int env_answer(enum status status, const struct error *error, char *text, uint32_t bytes);

/* Documents have decimal points, whatever the locale of the program that loaded this library: the
 * calling thread has C's between the two. */
locale_t env_locale_enter(void);
void env_locale_leave(locale_t before);

/* ---- env_drive.c ---- */

/* Begins a drive of `prepared`; the environment is empty. On failure it stays so. */
enum status env_drive_begin(struct swerve_env *env, uint32_t index, struct prepared *prepared,
                            uint64_t seed, struct error *error);
/* Empties the environment; its world slot too. */
void env_drive_drop(struct swerve_env *env, uint32_t index);

/* State that a drive carries besides the world's state: a copy, for environment `index` (or, at
 * least that of env->count, for none). `from` goes on. */
enum status env_drive_copy(const struct swerve_env *env, const struct env_drive *from,
                           uint32_t index, struct env_drive *out, struct error *error);
/* Frees the parts of a drive that env_drive_copy made; the slot is not touched. */
void env_drive_finish(struct env_drive *drive);

/* The action of a row as it reaches the car, recorded; before the world's step. */
void env_drive_act(struct swerve_env *env, uint32_t index);
/* Checks, scores and looks at the state after the step, or at the start. Fills the rows. */
void env_drive_look(struct swerve_env *env, uint32_t index);
/* Fills the rows of what is seen, without judging it: after a restore. */
void env_drive_show(struct swerve_env *env, uint32_t index);

#endif
