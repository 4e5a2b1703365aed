/*
 * Sandbox of an exec planner: what a program that somebody else chose may see and do on this
 * machine. On a shared store the command line of a job comes from whoever submitted it.
 *
 * Built from the kernel's own facilities, nothing to install: new user, mount, process, network,
 * IPC, host name and cgroup namespaces; a root of its own; no privileges and no way to get any; a
 * filter of system calls; limits. Inside, process 1 is the planner's keeper
 * (worker/planner/planner_keeper.h): when the planner ends, or the worker, everything that it
 * started ends with it.
 *
 *   sees      what is on the list that worker/planner/planner_sight.h makes, read-only; its own
 * empty /tmp and /dev/shm, in memory; its own processes has not   network (a loopback of its own),
 * other processes, other files, sockets of others, devices but null, full, random and urandom,
 * privileges, the worker's secrets is        the worker's user; where that is root, nobody (65534)
 *
 * Not covered: time (the planner's deadlines are), faults of the kernel. Memory is the business of
 * worker/planner/planner_memory.h and worker/planner/planner_cgroup.h. Plugins in the worker's
 * process cannot be confined.
 *
 * Prepared before the clone, entered after it with system calls alone, because the worker has
 * threads and their locks are not ours. Private to the planner host.
 */
#ifndef SWERVE_WORKER_PLANNER_PLANNER_SANDBOX_H
#define SWERVE_WORKER_PLANNER_PLANNER_SANDBOX_H

#include "base/status.h"
#include "worker/planner/planner.h"
#include "worker/planner/planner_spec.h"

#include <stddef.h>
#include <sys/types.h>

enum {
    SANDBOX_PROCESSES_MAX = 512, /* threads included */
    SANDBOX_TMP_BYTES = 256 << 20,
    SANDBOX_TMP_FILES = 1 << 16,
    SANDBOX_UID_OF_ROOT = 65534,
};

struct sandbox;

enum sandbox_step {
    SANDBOX_EXEC = 0,
    SANDBOX_USERS,
    SANDBOX_PRIVATE,
    SANDBOX_ROOT,
    SANDBOX_SHOW,
    SANDBOX_TURN,
    SANDBOX_PRIVILEGES,
    SANDBOX_FILTER,
    SANDBOX_STEPS
};

/* Why a child could not be started: what it writes to its parent. */
struct sandbox_fault {
    int code; /* errno */
    int step; /* enum sandbox_step */
    int item; /* which of the visible paths, for the step that shows them */
};

/* For a command line whose program was found at `program`: what it will see, and that no secret is
 * among it (STATUS_USAGE). */
enum status sandbox_prepare(const struct planner_confinement *confinement,
                            const struct planner_argv *words, const char *program,
                            struct sandbox **out, struct error *error);
void sandbox_free(struct sandbox *sandbox); /* accepts NULL */

/* See planner_sight.unseen; valid while the sandbox is. */
const char *sandbox_unseen(const struct sandbox *sandbox);

/* Limits that hold: as the confinement says, or the ordinary ones. */
uint32_t sandbox_processes(const struct planner_confinement *confinement);
int64_t sandbox_tmp_bytes(const struct planner_confinement *confinement);

/* fork() into new namespaces; -1 with errno. */
pid_t sandbox_clone(void);
/* By the parent: makes the child's users known in its namespace. 0 or -1 with errno. The child must
 * not go on before. */
int sandbox_map_users(pid_t child);
/* By the keeper: builds and enters the new root, gives up privileges. 0 or -1 with *fault. */
int sandbox_enter(const struct sandbox *sandbox, struct sandbox_fault *fault);
/* By the planner: how many processes there may be, and with what priority. 0 or -1 with *fault. */
int sandbox_limit(const struct sandbox *sandbox, struct sandbox_fault *fault);
/* By the planner, last before exec: the filter of system calls. 0 or -1 with *fault. */
int sandbox_filter(struct sandbox_fault *fault);

/* A sentence about a fault, with what can be done about it. */
void sandbox_fault_text(const struct sandbox *sandbox, const struct sandbox_fault *fault,
                        char *text, size_t bytes);

#endif
