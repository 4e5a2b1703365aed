/*
 * Cgroup of a sandboxed planner, where this process has been given a part of the tree (cgroups(7),
 * version 2, "delegation"): the kernel then limits the memory of all of the planner's processes,
 * its own included, at once and not some milliseconds later. Elsewhere there is none, and the watch
 * (worker/planner/planner_memory.h), which is kept in either case, is what there is.
 *
 * A part is ours when we are alone in it, may write to it and it has the memory controller, as a
 * systemd unit with Delegate=memory has. A cgroup with processes in it cannot limit others below
 * it, so this process moves to one of its own, `swerve-worker`, beside which the planners' stand.
 * Private to the planner host.
 */
#ifndef SWERVE_WORKER_PLANNER_PLANNER_CGROUP_H
#define SWERVE_WORKER_PLANNER_PLANNER_CGROUP_H

#include "schemas/limits.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct planner_cgroup {
    char base[LIMIT_PATH_BYTES]; /* "": there is none */
    char path[LIMIT_PATH_BYTES]; /* the planner's; "": none */
};

/* Before the child is made, which would keep this process company: finds the part that is ours.
 * Without one, or where anything fails, there is none. */
void planner_cgroup_prepare(struct planner_cgroup *cgroup);

/* Puts a child that has not begun into a cgroup of its own. */
void planner_cgroup_enter(struct planner_cgroup *cgroup, pid_t child, int64_t memory_bytes);

/* Removes it; its processes have ended. True: one of them was ended for the limit. */
bool planner_cgroup_leave(struct planner_cgroup *cgroup);

#endif
