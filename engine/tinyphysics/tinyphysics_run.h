/*
 * Tinyphysics run: many drives at once under the challenge's own controllers, in batches and
 * threads. Costs depend on neither.
 */
#ifndef SWERVE_ENGINE_TINYPHYSICS_TINYPHYSICS_RUN_H
#define SWERVE_ENGINE_TINYPHYSICS_TINYPHYSICS_RUN_H

#include "engine/learned/threads.h"
#include "engine/tinyphysics/tinyphysics_episode.h"

enum tinyphysics_controller { TINYPHYSICS_PID = 0, TINYPHYSICS_ZERO, TINYPHYSICS_CONTROLLER_COUNT };

extern const char *const tinyphysics_controller_names[TINYPHYSICS_CONTROLLER_COUNT]; /* "pid" .. */

struct tinyphysics_drive {
    const struct controls_log *log; /* borrowed */
    uint32_t seed;
    struct tinyphysics_costs costs; /* filled in */
};

/* NO_MEMORY: costs are not all filled in. The model computes its network itself. */
enum status tinyphysics_run(const struct tinyphysics_model *model,
                            enum tinyphysics_controller controller, struct threads *threads,
                            struct tinyphysics_drive *drives, uint32_t count, struct error *error);

#endif
