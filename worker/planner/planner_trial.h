/*
 * Trial of a planner: does it start at all? Asked before work is submitted that only it can do.
 */
#ifndef SWERVE_WORKER_PLANNER_PLANNER_TRIAL_H
#define SWERVE_WORKER_PLANNER_PLANNER_TRIAL_H

#include "worker/planner/planner.h"

enum { PLANNER_TRY_MS = 30000 }; /* above the deadline that exec planners have of their own */

/* Facts that a planner tells when it starts. */
struct planner_trial {
    char loaded[SHA256_HEX_BYTES]; /* planner_loaded() */
    char rig[SHA256_HEX_BYTES];    /* rig_hash() of planner_rig() */
    char rig_id[RIG_ID_MAX];       /* "": nothing was told */
    struct rig seen;               /* planner_rig() .. */
    struct rig_choice choice;      /* .. and what it chose of it */
    uint64_t session_bytes;        /* of the chosen sensors' frames, at most */
};

/* Opens the planner and closes it again. A plugin, whose code nothing bounds, is opened in a
 * process of its own: one that hangs or crashes is ended and named, and the caller goes on. To be
 * called before the caller has threads or locks. `on_device`: its world will run on one; a plugin
 * that reads observations there is loaded and not opened, for a device that the caller has asked
 * about cannot be used in another process. `rig` is what it is offered, NULL: the built-in one.
 * `told` (NULL: not asked) is zeros where it fails; of a plugin it has no `loaded`.
 * STATUS_CANCELLED: a signal handler ran meanwhile. */
enum status planner_try(const char *spec, const struct planner_confinement *confinement,
                        const struct rig *rig, bool on_device, int64_t deadline_ms,
                        struct planner_trial *told, struct error *error);

#endif
