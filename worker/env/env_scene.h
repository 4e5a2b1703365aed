/*
 * The state behind an environment, for the product's own programs. The C ABI is env.h.
 */
#ifndef SWERVE_WORKER_ENV_ENV_SCENE_H
#define SWERVE_WORKER_ENV_ENV_SCENE_H

#include "engine/learned/device.h"
#include "engine/sensors/raster.h"
#include "engine/worlds/world.h"
#include "scenarios/scenarios.h"
#include "schemas/scene.h"
#include "worker/env/env.h"
#include "worker/models/models.h"

#include <stdbool.h>

/* A learned world whose ticks may leave out steps of its sampler. */
struct env_learned {
    const struct models_model *model; /* of ours; borrowed, outlives the environments */
    enum conditioning conditioning;
    uint32_t threads;                    /* that share a tick's products; 0 counts as 1 */
    const struct models_model *previous; /* that can take over for a tick; NULL: none */
    const struct device *device; /* borrowed while it is opened; NULL: the CPU. STATUS_DEVICE where
                                    it is one and there is a previous model */
};

/* As swerve_env_open(), in the learned world: config->world is not looked at. */
enum status env_open_learned(const struct swerve_env_config *config,
                             const struct env_learned *learned, struct swerve_env **out,
                             struct error *error);

/* As slot_skip of struct world_ops, of an environment that goes on; kept in its drive's trace.
 * BAD_INPUT where the world has no sampler, unless steps is 0. */
enum status env_skip(struct swerve_env *env, uint32_t index, uint32_t steps, struct error *error);

/* Time that passed in steps of the sampler so far, and their number; zeros where there is none. */
struct world_cost env_cost(const struct swerve_env *env);

/* Remains of a tick of a drive, with which the drive goes on elsewhere (env_retrace). */
struct env_past {
    uint64_t observation_digest; /* of what is seen behind the tick */
    struct world_past world;     /* of a learned world, else empty */
};
/* Of the newest tick, without its frame; borrowed until the next step. */
struct env_past env_past(const struct swerve_env *env, uint32_t index);
/* Whether its ticks are generated, which env_retrace() spares. */
bool env_generates(const struct swerve_env *env);
/* Frame of a learned world's memory as of slot_memory; NULL: none, or another world. */
const uint8_t *env_memory(const struct swerve_env *env, uint32_t index, uint32_t back);
/* As swerve_env_step() of this environment alone, under its row of actions and env_skip(), of a
 * tick that was driven before: a learned world generates nothing. Where frames are left out nothing
 * can be seen until the next one. BAD_INPUT: the past is none of this drive. */
enum status env_retrace(struct swerve_env *env, uint32_t index, const struct env_past *past,
                        struct error *error);

/* Of an environment that is not empty; borrowed until its next step, reset, fork or restore. */
const struct scene *env_scene(const struct swerve_env *env, uint32_t index);

/* Draws what a camera sees there, into rgb [height][width][3]. False: this world shows the cameras
 * of the built-in rig alone. */
bool env_picture(const struct swerve_env *env, uint32_t index, const struct raster_rays *rays,
                 uint8_t *rgb);

/* Scenario `index` of the suite, in range; borrowed until close. */
const struct scenario_document *env_document(const struct swerve_env *env, uint32_t index);

#endif
