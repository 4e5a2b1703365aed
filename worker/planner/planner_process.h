/*
 * Processes of an exec planner: starting it under limits in its own process group, talking to it
 * without ever blocking beyond a deadline, and ending it. Knows nothing of the protocol. Our child
 * is its keeper (worker/planner/planner_keeper.h), which ends it when we do; the planner is the
 * keeper's child.
 *
 * The planner gets: stdin (a socket, so that writing to a dead child is an error and not SIGPIPE),
 * stdout and stderr (pipes), shared memory on descriptor 3, and no other descriptor of ours. What
 * else it may see and do is the sandbox's business (worker/planner/planner_sandbox.h).
 */
#ifndef SWERVE_WORKER_PLANNER_PLANNER_PROCESS_H
#define SWERVE_WORKER_PLANNER_PLANNER_PROCESS_H

#include "base/status.h"
#include "worker/planner/planner.h"
#include "worker/planner/planner_cgroup.h"
#include "worker/planner/planner_keeper.h"
#include "worker/planner/planner_output.h"
#include "worker/planner/planner_spec.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { PROCESS_SHM_FD = 3, PROCESS_UNSEEN_BYTES = 480 };

struct planner_process {
    pid_t pid;   /* the keeper; 0: none, or reaped */
    int pid_fd;  /* readable once the keeper has exited; -1 where the kernel has none */
    int line_fd; /* to the keeper */
    int in_fd;   /* our end of the planner's stdin; -1: closed */
    int out_fd;
    int err_fd;
    int closed_fd;              /* 0 or 1: the child closed it before it exited; -1: neither */
    bool debug;                 /* as in its limits */
    bool sandbox;               /* it is in one */
    struct keeper_report exit;  /* how the planner ended; code 0: it had to be killed */
    struct memory_watch *watch; /* of a sandbox; NULL: none */
    struct planner_cgroup cgroup;
    int64_t memory_bytes;    /* the limit */
    int64_t killed_at_bytes; /* memory of all its processes when it was ended for that; else 0 */
    struct planner_output *output; /* what it writes to stderr; borrowed, NULL: not kept */
    const atomic_bool *abandoned;  /* of its start; NULL: nobody gives it up */
    /* A sentence about a word of the command line that leads out of what its sandbox shows; "". */
    char unseen[PROCESS_UNSEEN_BYTES];
};

struct process_limits {
    int64_t memory_bytes; /* private writable memory (RLIMIT_DATA) of each process; in a sandbox
                             also of all together (worker/planner/planner_memory.h) */
    uint32_t files;
    const struct planner_confinement *confinement; /* NULL: none */
    struct planner_output *output;                 /* NULL: stderr is read and dropped */
    bool debug; /* stderr is echoed, the terminal's input is the child's */
};

/* Before anything else: no process, no descriptors. */
void process_init(struct planner_process *process);

/* Starts the program; returns once exec has succeeded or failed. shm_fd is duplicated for the
 * planner. On failure nothing is left behind. */
enum status process_start(struct planner_process *process, const struct planner_argv *words,
                          int shm_fd, size_t shm_bytes, const struct process_limits *limits,
                          struct error *error);

enum process_result {
    PROCESS_OK = 0,
    PROCESS_TIMEOUT,
    PROCESS_CLOSED,
    PROCESS_ABANDONED,
    PROCESS_FAULT,
};

/* A question and what has come of its answer; calls of process_exchange go on where the last one
 * ended. */
struct process_talk {
    const uint8_t *question;
    size_t question_bytes, sent_bytes;
    uint8_t *answer;
    size_t room_bytes, got_bytes; /* of the answer: at most, so far */
};

/* Sends the question and receives until at least `want_bytes` of the answer are there, stderr being
 * drained all the while, so neither side can deadlock. More of the answer is taken where it is
 * there already. PROCESS_CLOSED: the child closed stdout, or stdin with a part of the question
 * unsent, or it exited before the answer was there, whoever else holds stdout open. */
enum process_result process_exchange(struct planner_process *process, struct process_talk *talk,
                                     size_t want_bytes, int64_t deadline_ns);

/* The sentence of an exchange that failed: no answer, with `limit` behind it; the process, of which
 * is to be said how it exited (true); or what the system says. */
bool process_failure(enum process_result result, int64_t deadline_ms, const char *limit, char *text,
                     size_t bytes);

/* Reads what is there of stderr, without waiting. */
void process_drain(struct planner_process *process);

/* Waits until the planner has exited by itself or `wait_ns` have passed, then kills what is left:
 * in a sandbox everything, without one all that descends from it. Afterwards `exit` says how it
 * went. Idempotent. */
void process_end(struct planner_process *process, int64_t wait_ns);

/* Closes the descriptors; the process must have ended. */
void process_finish(struct planner_process *process);

/* "exited with status 3", "was killed by signal 11 (Segmentation fault)", .. */
void process_exit_text(const struct planner_process *process, char *text, size_t bytes);

#endif
