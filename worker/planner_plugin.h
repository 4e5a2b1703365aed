/*
 * Loading a planner plugin: a shared object with the C ABI of schemas/planner.h. Private to the
 * planner host and to the process that runs a plugin apart (worker/planner_host.h).
 */
#ifndef SWERVE_WORKER_PLANNER_PLUGIN_H
#define SWERVE_WORKER_PLANNER_PLUGIN_H

#include "base/status.h"
#include "schemas/planner.h"

struct planner_plugin {
    void *library; /* of dlopen; NULL: not loaded */
    const struct swerve_planner_ops *ops;
};

/* Loads the file and checks its table. On failure *plugin is unchanged. */
enum status planner_plugin_load(const char *file, struct planner_plugin *plugin,
                                struct error *error);
void planner_plugin_unload(struct planner_plugin *plugin); /* accepts one that is not loaded */

#endif
