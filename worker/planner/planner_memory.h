/*
 * Memory of a sandboxed planner, all of its processes together. The limits that each process has
 * (RLIMIT_DATA) do not add up, so a thread of the worker looks at the whole several times a second
 * and ends the planner when it has grown too large.
 *
 * Counted are the private pages and page tables of every process of its process namespace, in
 * memory and swapped out, pages that several share once, and what lies in its /tmp and /dev/shm.
 * Nothing else is there to be counted: memory that belongs to no process (memfd_create, System V,
 * mappings that are shared and anonymous) is refused by the filter of system calls. Not counted is
 * what the kernel keeps for it: pipes, sockets, names.
 *
 * Between two looks it can grow by what the machine can clear in that time; they come the closer
 * the nearer it is to its limit. Private to the planner host.
 */
#ifndef SWERVE_WORKER_PLANNER_PLANNER_MEMORY_H
#define SWERVE_WORKER_PLANNER_PLANNER_MEMORY_H

#include "base/status.h"

#include <stdint.h>
#include <sys/types.h>

struct memory_watch;

/* Watches the sandbox whose first process is `leader`, the planner's keeper: a child of this
 * process that has made the sandbox, has started nothing in it yet, and is not reaped before the
 * watch has ended. Its own memory does not count. Beyond limit_bytes it is killed. */
enum status memory_watch_start(pid_t leader, int64_t limit_bytes, struct memory_watch **out,
                               struct error *error);

/* Ends the watch; accepts NULL. What it had when it was killed for it, else 0. */
int64_t memory_watch_end(struct memory_watch *watch);

#endif
