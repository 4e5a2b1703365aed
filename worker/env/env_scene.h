/*
 * The state behind an environment, for the product's own programs. The C ABI is env.h.
 */
#ifndef SWERVE_WORKER_ENV_ENV_SCENE_H
#define SWERVE_WORKER_ENV_ENV_SCENE_H

#include "engine/sensors/raster.h"
#include "scenarios/scenarios.h"
#include "schemas/scene.h"
#include "worker/env/env.h"

#include <stdbool.h>

/* Of an environment that is not empty; borrowed until its next step, reset, fork or restore. */
const struct scene *env_scene(const struct swerve_env *env, uint32_t index);

/* Draws what a camera sees there, into rgb [height][width][3]. False: this world shows the cameras
 * of the built-in rig alone. */
bool env_picture(const struct swerve_env *env, uint32_t index, const struct raster_rays *rays,
                 uint8_t *rgb);

/* Scenario `index` of the suite, in range; borrowed until close. */
const struct scenario_document *env_document(const struct swerve_env *env, uint32_t index);

#endif
