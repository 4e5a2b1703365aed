/*
 * Pictures for people of what a learned world showed: keyframes, and of a world that makes pictures
 * of a rig what each of its cameras saw, at the camera's own size, in the rollout's trace
 * (engine/trace). No verdict depends on them.
 */
#ifndef SWERVE_WORKER_GIVEN_PICTURES_H
#define SWERVE_WORKER_GIVEN_PICTURES_H

#include "engine/trace/trace.h"
#include "engine/worlds/world.h"

#include <stdbool.h>

/* Keeps the tick's, where the trace wants them; `last`: the rollout ends here. NO_MEMORY. */
enum status pictures_keep(struct trace *trace, const struct world *world, uint32_t slot,
                          uint32_t tick, bool last, struct error *error);

#endif
