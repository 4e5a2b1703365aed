/*
 * The state behind an environment, for the product's own programs. The C ABI is env.h.
 */
#ifndef SWERVE_WORKER_ENV_ENV_SCENE_H
#define SWERVE_WORKER_ENV_ENV_SCENE_H

#include "scenarios/scenarios.h"
#include "schemas/scene.h"
#include "worker/env/env.h"

/* Of an environment that is not empty; borrowed until its next step, reset, fork or restore. */
const struct scene *env_scene(const struct swerve_env *env, uint32_t index);

/* Scenario `index` of the suite, in range; borrowed until close. */
const struct scenario_document *env_document(const struct swerve_env *env, uint32_t index);

#endif
