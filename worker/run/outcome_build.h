/*
 * From a job run to what the store keeps: one outcome per rollout; one trace artifact per job, or
 * several where some rollouts were handed over before the job ended.
 */
#ifndef SWERVE_WORKER_RUN_OUTCOME_BUILD_H
#define SWERVE_WORKER_RUN_OUTCOME_BUILD_H

#include "schemas/job.h"
#include "schemas/outcome.h"
#include "worker/run/rollout.h"

/* Whose it is, and of what: everything that is known before the rollout is driven; else zeros. */
void outcome_name(const struct job_run *job, uint32_t rollout, struct outcome *out);

/* Fills outcome `rollout` (0: main line) of the job; ids and artifact hash are the store's to set.
 */
void outcome_build(const struct job_run *job, uint32_t rollout, struct outcome *out);

/* The finished rollouts whose outcomes the store does not keep yet, and whose past is recorded in
 * full: picked[rollout_count], ascending; how many. `main_trace`: of the main line, as far as it is
 * recorded. */
uint32_t outcome_pick(const struct job_run *job, const struct trace *main_trace, uint32_t *picked);

/* The trace artifact of rollouts that were picked, with the main line where they forked from it;
 * malloc'ed, owned by the caller. */
enum status outcome_pack_traces(const struct job_run *job, const struct trace *main_trace,
                                const uint32_t *picked, uint32_t count, uint8_t **data,
                                size_t *bytes, struct error *error);

/* Millions of operations of a whole job, what it discarded included. */
int64_t outcome_job_mflop(const struct job_run *job);

/* Whether any rollout was flagged by a health check. */
bool outcome_any_flagged(const struct job_run *job);

#endif
