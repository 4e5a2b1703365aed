/*
 * Debug dump: what a planner saw and answered, a file per tick.
 */
#ifndef SWERVE_CLI_DUMP_DEBUG_DUMP_H
#define SWERVE_CLI_DUMP_DEBUG_DUMP_H

#include "base/status.h"
#include "schemas/planner.h"

#include <stdint.h>

struct debug_dump {
    const char *folder;
    enum status status; /* the first failure; later ticks are not written */
    struct error error;
    uint32_t ticks;    /* written */
    uint32_t pictures; /* of these, with a picture */
};

/* Creates the folder unless it is there. */
enum status debug_dump_open(struct debug_dump *dump, const char *folder, struct error *error);

/* A planner_config's `observed`; the context is the dump. Writes tNNNN.npz (every member of the
 * observation, the pictures it has, and the action) and, where it has pictures, tNNNN.png. */
void debug_dump_observed(void *context, uint32_t count,
                         const struct swerve_observation *observations,
                         const struct swerve_action *actions);

#endif
