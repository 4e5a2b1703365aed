/*
 * The trace artifact of a job that has ended, with all its rollouts.
 */
#ifndef SWERVE_TESTS_WORKER_PACK_ALL_H
#define SWERVE_TESTS_WORKER_PACK_ALL_H

#include "worker/run/outcome_build.h"

static inline enum status pack_all(const struct job_run *job, uint8_t **data, size_t *bytes,
                                   struct error *error)
{
    uint32_t picked[1 + LIMIT_BRANCHES];
    const struct trace *main_trace = &job->results[0].trace;
    uint32_t count = outcome_pick(job, main_trace, picked);
    return outcome_pack_traces(job, main_trace, picked, count, data, bytes, error);
}

#endif
