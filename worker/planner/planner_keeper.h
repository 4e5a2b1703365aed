/*
 * Keeper of a planner's processes: a process of ours between the worker and the planner, whose one
 * task is to end the planner. It waits at its end of a line, a pair of sockets whose other end the
 * worker alone holds: when the worker is gone, however it went, the kernel closes that end, the
 * keeper reads the end of the line and ends everything. A planner can take back a parent's signal
 * (prctl(PR_SET_PDEATHSIG, 0)), leave its group and its session and fork away; the line it cannot
 * touch, since it holds neither end and sockets cannot be opened through /proc.
 *
 *   in a sandbox  the keeper is process 1 of the planner's process namespace. When it ends, the
 *                 kernel kills all others. Process 1 gets no signal from inside its namespace, not
 *                 SIGKILL and not SIGSTOP; nobody may look into it (it is not dumpable), and the
 *                 filter of system calls keeps its priority and its limits out of reach.
 *   without one   it is the reaper of all that descend from the planner, and kills them one by one
 *                 until none is left. That holds for planners that are careless: they have the
 *                 worker's rights, so one that wants to can kill its keeper, or fork faster than it
 *                 is killed.
 *
 * Every fault of the keeper ends it, and with it a planner in a sandbox. It makes system calls
 * alone, because it is a copy of a process with threads. Private to the planner host.
 */
#ifndef SWERVE_WORKER_PLANNER_PLANNER_KEEPER_H
#define SWERVE_WORKER_PLANNER_PLANNER_KEEPER_H

#include <stdbool.h>
#include <sys/types.h>

/* End of the planner's own process, as waitid says; sent along the line. */
struct keeper_report {
    int code;  /* CLD_EXITED, CLD_KILLED ..; 0: not known */
    int value; /* status or signal */
};

/* In the keeper, before it has a child: a group and a name of its own, no signals. Opens what it
 * needs later: the list of its memory, -1: there is none. */
int keeper_prepare(void);

/* In the keeper: hides it from its children and makes the planner's process, by a system call: a
 * lock of fork() may be another thread's. As fork(). */
pid_t keeper_fork(bool sandbox);

/* In the keeper, which holds no other descriptors: forgets the worker's memory, waits until
 * `planner` has ended or the line has, and ends what is left. */
_Noreturn void keeper_wait(int line_fd, int memory_fd, pid_t planner, bool sandbox);

/* By the worker, at its end: how the planner ended; false: not known. */
bool keeper_hear(int line_fd, struct keeper_report *report);

#endif
