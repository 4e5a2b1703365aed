/*
 * Worlds in a process: schemas/world/world.h over the protocol of schemas/world/world.md. One
 * process serves the whole batch; frames and rasters lie in memory that both sides map, so that
 * what goes through the pipes is a record per state.
 *
 * The worker asks one question at a time and waits for its answer until a deadline. Whatever is not
 * the one right answer ends the process; it is started again when the next rollout begins.
 */
#ifndef SWERVE_WORKER_WORLD_WORLD_EXEC_H
#define SWERVE_WORKER_WORLD_WORLD_EXEC_H

#include "schemas/world/world.h"
#include "worker/planner/planner.h"

#include <stdbool.h>

enum {
    WORLD_START_MS = 60000, /* to start, reset and fork: models load slowly */
    WORLD_STEP_MS = 10000,
    WORLD_MEMORY_MIB = 16384,
};

/* setup.host of world_exec_ops. */
struct world_exec_host {
    const char *command;                           /* borrowed */
    const struct planner_confinement *confinement; /* NULL: none */
    int64_t start_ms, step_ms;
    int64_t memory_bytes;
};

extern const struct swerve_world_ops world_exec_ops;

/* Whether the process of an instance is gone; every question to it fails then. */
bool world_exec_ended(const void *world);

/* Sends the step but for its last byte, so that the process takes the records apart while rasters
 * are drawn. A client that waits for the whole frame sees no difference. */
void world_exec_announce(void *world, uint32_t count, const struct swerve_world_given *given);

#endif
