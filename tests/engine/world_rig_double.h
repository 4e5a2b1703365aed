/*
 * World of the form RIG for tests; see world_rig_double.c.
 */
#ifndef SWERVE_TESTS_ENGINE_WORLD_RIG_DOUBLE_H
#define SWERVE_TESTS_ENGINE_WORLD_RIG_DOUBLE_H

#include "schemas/world/world.h"

extern const struct swerve_world_ops world_rig_double_ops;

#endif
