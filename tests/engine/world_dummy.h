/*
 * The dummy world: see world_dummy.c.
 */
#ifndef SWERVE_TESTS_ENGINE_WORLD_DUMMY_H
#define SWERVE_TESTS_ENGINE_WORLD_DUMMY_H

#include "engine/worlds/world.h"

extern const struct world_ops world_dummy_ops;

#endif
