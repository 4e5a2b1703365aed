/*
 * History: the earlier ticks that a planner of version 3 asked to be shown again.
 *
 * Kept where a planner's table of functions is called, so that no frame of the exec protocol
 * carries it: by the planner host for planners of its process, by the process that runs a plugin
 * apart, and by the Python client. A moment is what was shown then, objects included; a fork copies
 * it.
 */
#ifndef SWERVE_WORKER_PLANNER_PLANNER_HISTORY_H
#define SWERVE_WORKER_PLANNER_PLANNER_HISTORY_H

#include "base/status.h"
#include "schemas/planner.h"

struct planner_history;

/* Up to `ticks` earlier moments (1 .. SWERVE_HISTORY_TICKS) of each session. */
enum status planner_history_create(uint32_t session_count, uint32_t ticks,
                                   struct planner_history **out, struct error *error);
void planner_history_destroy(struct planner_history *history); /* accepts NULL */

void planner_history_clear(struct planner_history *history, uint32_t session);

/* `to` becomes a copy of `from`. STATUS_NO_MEMORY: `to` is empty. */
enum status planner_history_fork(struct planner_history *history, uint32_t from, uint32_t to,
                                 struct error *error);

/* Fills history and history_count; valid until the session's next call. */
void planner_history_show(struct planner_history *history, uint32_t session,
                          struct swerve_surroundings *out);

/* Keeps what was shown in this tick. */
enum status planner_history_add(struct planner_history *history,
                                const struct swerve_observation *seen,
                                const struct swerve_surroundings *around, struct error *error);

#endif
