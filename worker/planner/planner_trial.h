/*
 * Trial of a planner: does it start at all? Asked before work is submitted that only it can do.
 */
#ifndef SWERVE_WORKER_PLANNER_PLANNER_TRIAL_H
#define SWERVE_WORKER_PLANNER_PLANNER_TRIAL_H

#include "worker/planner/planner.h"

enum { PLANNER_TRY_MS = 30000 }; /* above the deadline that exec planners have of their own */

/* Opens the planner and closes it again. A plugin, whose code nothing bounds, is opened in a
 * process of its own: one that hangs or crashes is ended and named, and the caller goes on. To be
 * called before the caller has threads or locks. `on_device`: its world will run on one; a plugin
 * that reads observations there is loaded and not opened, for a device that the caller has asked
 * about cannot be used in another process. `loaded` (NULL: not asked) becomes what planner_loaded()
 * says of an exec planner, else "". STATUS_CANCELLED: a signal handler ran meanwhile. */
enum status planner_try(const char *spec, const struct planner_confinement *confinement,
                        bool on_device, int64_t deadline_ms, char loaded[SHA256_HEX_BYTES],
                        struct error *error);

#endif
