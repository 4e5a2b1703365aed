/*
 * Jobs of a suite for tests with several processes, and what their workers say.
 */
#ifndef SWERVE_TESTS_STORE_POSTGRES_POSTGRES_JOBS_H
#define SWERVE_TESTS_STORE_POSTGRES_POSTGRES_JOBS_H

#include "store/api/store.h"

/* A job of that suite, one of several. */
void jobs_fill_spec(struct job_spec *spec, uint32_t index);
/* So many jobs, 256 at most, of the suite "suite". */
void jobs_submit(struct store *store, uint32_t count);
/* .. which is this tenant's; NULL: nobody's. */
void jobs_submit_as(struct store *store, const char *tenant, uint32_t count);
struct store_worker jobs_worker(const char *name);
/* The job is done, with one outcome, which the completion refers to. */
void jobs_fill_done(struct job_completion *completion, struct outcome *outcome,
                    const struct job_lease *lease, const char *worker_id);
/* Attempts of the suite that ended so, as the ledger has them. */
int64_t jobs_attempts_ended(struct store *store, const char *end);

#endif
