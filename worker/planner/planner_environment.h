/*
 * The environment of an exec planner. The worker's own holds what is not the planner's: where its
 * token is, and in services whatever the machine's owner put there. Private to the planner host.
 */
#ifndef SWERVE_WORKER_PLANNER_PLANNER_ENVIRONMENT_H
#define SWERVE_WORKER_PLANNER_PLANNER_ENVIRONMENT_H

#include "base/status.h"
#include "worker/planner/planner.h"

#include <stddef.h>

/* *out: one malloc, free() it; its texts are in it or in our own environment. It holds what
 * `confinement` (NULL: none) lets through of ours, never anything that begins with SWERVE_TOKEN,
 * and where the shared memory is; in a sandbox HOME and TMPDIR are /tmp. */
enum status planner_environment_make(const struct planner_confinement *confinement, int shm_fd,
                                     size_t shm_bytes, char ***out, struct error *error);

#endif
