/*
 * A plugin in a process of its own: speaks the exec protocol (schemas/planner.md) on one side and
 * the C ABI (schemas/planner.h) on the other. So a worker can confine a plugin as it confines any
 * other planner, and one that crashes or hangs costs its rollouts and not the worker.
 *
 * Numbers and pixels are passed on as they are: the answers have the same bits as in process.
 */
#ifndef SWERVE_WORKER_PLANNER_PLANNER_HOST_H
#define SWERVE_WORKER_PLANNER_PLANNER_HOST_H

#include "base/status.h"

/* The name of the command that runs this, for our own child processes: PLANNER_HOST_COMMAND FILE
 * CONFIG. */
#define PLANNER_HOST_COMMAND "plugin-host"

/* Serves the plugin on descriptors 0 and 1 until `bye` or the end of input. What the plugin prints
 * to stdout goes to stderr. STATUS_PLANNER: the worker's frames make no sense, or it is gone. */
enum status planner_host_run(const char *file, const char *config, struct error *error);

#endif
