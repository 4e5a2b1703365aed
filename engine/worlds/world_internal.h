/*
 * Parts that worlds share among themselves. Private to engine/world*.c.
 */
#ifndef SWERVE_ENGINE_WORLDS_WORLD_INTERNAL_H
#define SWERVE_ENGINE_WORLDS_WORLD_INTERNAL_H

#include "engine/worlds/world.h"

/* A batch has 1..LIMIT_SLOTS slots; STATUS_LIMIT else. */
enum status world_check_slots(const char *name, uint32_t slot_count, struct error *error);

#endif
