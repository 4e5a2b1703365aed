/*
 * A planner that starts in a thread of its own, while its worker goes on: processes and servers may
 * take as long as their start deadline, and answer nothing then.
 *
 * Invariant: until planner_start_end() has returned, `open` and what its context holds belong to
 * that thread, but for what neither changes.
 */
#ifndef SWERVE_WORKER_PLANNER_PLANNER_START_H
#define SWERVE_WORKER_PLANNER_PLANNER_START_H

#include "worker/planner/planner.h"

#include <stdatomic.h>

struct planner_start;

/* Opens what the context asks for; `abandoned` is for planner_config.abandoned. Its status and its
 * error are those of planner_start_end(). */
typedef enum status planner_start_open(void *context, const atomic_bool *abandoned,
                                       struct error *error);

/* Whether the planner answers from a process or a server, so that its start may take long: a plugin
 * of this process and one that is built in do not. */
bool planner_starts_apart(const char *spec, const struct planner_config *config);

/* STATUS_NO_MEMORY; STATUS_LIMIT: no thread can be made. */
enum status planner_start_begin(planner_start_open *open, void *context, struct planner_start **out,
                                struct error *error);

/* Waits until `open` has returned, for `wait_ms` at most. False: it has not. */
bool planner_start_wait(struct planner_start *start, int64_t wait_ms);

/* Ends it, destroys *start and returns what `open` did. One that has not returned is abandoned:
 * that takes a fraction of a second. */
enum status planner_start_end(struct planner_start *start, struct error *error);

#endif
