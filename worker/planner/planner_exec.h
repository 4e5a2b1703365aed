/*
 * Process adapter: runs an exec planner as a child process and presents it through the C ABI of
 * schemas/planner.h. Private to the planner host (worker/planner/planner.c).
 *
 * Whatever the child does (hang, crash, talk nonsense, flood stderr) costs at most the deadline:
 * its processes are killed and reaped, the instance is dead, and a sentence says why.
 */
#ifndef SWERVE_WORKER_PLANNER_PLANNER_EXEC_H
#define SWERVE_WORKER_PLANNER_PLANNER_EXEC_H

#include "worker/planner/planner.h"
#include "worker/planner/planner_spec.h"

struct planner_exec;

/* Starts the program, exchanges hello and welcome within the open deadline. `config` has its
 * defaults filled in; `spec` is for messages. `rig` is what is offered, and becomes what it is
 * shown sensors of; borrowed for the call. *choice is written where it chooses. */
enum status planner_exec_open(const char *spec, const struct planner_argv *words,
                              const struct planner_config *config, struct rig *rig,
                              struct rig_choice *choice, struct planner_exec **out,
                              struct error *error);

uint32_t planner_exec_wants(const struct planner_exec *exec);
const char *planner_exec_loaded(const struct planner_exec *exec); /* see planner_loaded() */
enum swerve_tracker planner_exec_tracker(const struct planner_exec *exec);
bool planner_exec_alive(const struct planner_exec *exec);

/* Drains what the child has written so far. Terminated; valid until the next call. */
const char *planner_exec_stderr(struct planner_exec *exec);

/* A sentence in brackets about the limit of ours that the last line of a session's output complains
 * about; "" for none. */
void planner_exec_limit(struct planner_exec *exec, uint32_t session, char *text, size_t bytes);

/* The same for what is known to be one session's (worker/planner/planner_output.h). */
const char *planner_exec_session_output(struct planner_exec *exec, uint32_t session, size_t *bytes);

/* reset, act, fork, end and close; the instance pointer is a struct planner_exec. A failure leaves
 * the instance either alive (the child answered with an error) or dead. open is NULL. */
extern const struct swerve_planner_ops planner_exec_ops;

#endif
