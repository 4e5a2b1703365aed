/*
 * Filters of system calls, which the process that enters one, and all that it starts, keep for
 * good: what takes away what no planner needs and what has opened ways out of namespaces before,
 * and what beside that leaves a process alone with the files that it reads and writes. Whose files
 * those are a filter cannot see; namespaces decide it, or rules of files.
 */
#ifndef SWERVE_BASE_PROGRAM_SYSCALL_FILTER_H
#define SWERVE_BASE_PROGRAM_SYSCALL_FILTER_H

/* The filter of planners: no look at other processes, no mounts or namespaces, no wide doors into
 * the kernel, no shared memory beside files. By system calls alone, for a process that can get no
 * privileges any more. 0 or -1 with errno; ENOSYS: a machine whose calls nobody has looked at. */
int syscall_filter_enter(void);

/* The same, and no network, no program, process or thread, no signal to others, no change of files
 * but of what is in them. For a process of one thread; it can get no privileges from here on. */
int syscall_filter_enter_alone(void);

#endif
