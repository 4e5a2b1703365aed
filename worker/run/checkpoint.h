/*
 * Checkpoints: the log of a long main line in a learned world (engine/trace/drive_log.h), with
 * which another worker goes on where this one dies. It goes through the ticks of the log as through
 * all others, planner, judgement and record included, and shows their frames; the sampler alone is
 * spared. So the drive has the bits of one that nobody disturbed; where an action or what is seen
 * is another, as of a planner that varies, the world generates from that tick on.
 */
#ifndef SWERVE_WORKER_RUN_CHECKPOINT_H
#define SWERVE_WORKER_RUN_CHECKPOINT_H

#include "engine/trace/drive_log.h"
#include "worker/run/rollout.h"

struct checkpoint;

/* Ticks after which a rollout that will take less device time than a checkpoint's period is no
 * longer logged. */
enum { CHECKPOINT_TRIAL_TICKS = 4 };

/* Of a rollout at tick 0, if it is a main line that the store does not keep yet; it takes its job's
 * past where there is one. Nothing where memory is short. */
void checkpoint_create(struct rollout *rollout);
void checkpoint_destroy(struct checkpoint *checkpoint); /* accepts NULL */

/* The following are of a rollout with a checkpoint, but for checkpoint_note(). */

/* Drops it where the drive is too short, by the device time of its ticks so far. */
void checkpoint_judge(struct rollout *rollout, uint32_t tick, int64_t period_ns);
/* Steps the rollout's slot as its past did under the same action. False: there is no such tick, and
 * from now on the world generates. */
bool checkpoint_retrace(struct rollout *rollout, struct world *world);
/* Logs the tick that was stepped. Where that fails, or the store keeps nothing of the attempt, no
 * checkpoint is made any more. */
void checkpoint_note(struct rollout *rollout, const struct world *world);

/* Whether the store is to have it: for so long as a period, or (0) with any tick more, it has gone
 * on behind its past and the last that the store has. */
bool checkpoint_due(const struct rollout *rollout, int64_t period_ns);
/* The log, malloc'ed, and its ticks; the store is going to have it. */
enum status checkpoint_take(struct rollout *rollout, char **data, size_t *bytes, uint32_t *ticks,
                            struct error *error);

/* Among partial outcomes: no artifact of a trace yet, but a log as evidence. */
bool checkpoint_is(const struct outcome *outcome);
/* The log becomes the job's past. BAD_INPUT: it is none, or of another drive or build. */
enum status checkpoint_restore(struct job_run *job, const void *data, size_t bytes,
                               struct error *error);

#endif
