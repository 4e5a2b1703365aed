/*
 * Outcomes that a finished job should have and the store has not.
 */
#ifndef SWERVE_CLI_KEPT_REPLAY_MISSING_H
#define SWERVE_CLI_KEPT_REPLAY_MISSING_H

#include "store/api/store.h"
#include "worker/run/prepared_cache.h"

/* Called for each outcome that is missing of a job, of which the store has `found`. */
typedef void replay_missed(void *context, const struct store_job *job, const char *branch_id,
                           uint32_t found);

/* Looks through the finished jobs of a suite, or of all (NULL); `last_job` is the highest of which
 * an outcome was seen. Jobs that make clips are left out. */
enum status replay_missing_find(struct store *store, struct prepared_cache *prepared,
                                const char *suite, int64_t last_job, replay_missed *missed,
                                void *context, struct error *error);

#endif
