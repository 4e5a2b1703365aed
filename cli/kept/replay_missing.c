/*
 * Outcomes that a finished job should have and the store has not. See replay_missing.h.
 */
#include "cli/kept/replay_missing.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { REPLAY_JOB_OUTCOMES_MAX = 1000 };

struct search {
    struct store *store;
    struct prepared_cache *prepared;
    replay_missed *missed;
    void *context;
};

static bool has_branch(const struct outcome *outcomes, uint32_t count, const char *branch_id)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(outcomes[i].branch_id, branch_id) == 0) {
            return true;
        }
    }
    return false;
}

/* A finished job has an outcome for its main line and one for each branch of its scenario. */
static enum status look_for_missing(const struct search *search, const struct store_job *job,
                                    struct outcome *outcomes, struct error *error)
{
    struct store_outcome_filter filter = {.job_id = job->id, .limit = REPLAY_JOB_OUTCOMES_MAX};
    struct prepared *prepared = NULL;
    uint32_t count = 0;
    enum status status =
        search->store->ops->outcomes(search->store, &filter, outcomes, &count, error);
    THEN(status, prepared_cache_get(search->prepared, search->store, job->spec.scenario_hash,
                                    &prepared, error));
    if (status != STATUS_OK) {
        return error_prefix(error, "job %" PRId64, job->id);
    }
    const struct scenario *scenario = prepared_scenario(prepared);
    bool missed = false;
    if (!has_branch(outcomes, count, "")) {
        missed = true;
        search->missed(search->context, job, "", count);
    }
    for (uint32_t b = 0; b < scenario->branch_count; b++) {
        if (!has_branch(outcomes, count, scenario->branches[b].id)) {
            missed = true;
            search->missed(search->context, job, scenario->branches[b].id, count);
        }
    }
    if (count != job->spec.rollout_count && !missed) {
        search->missed(search->context, job, "",
                       count); /* one is there twice, or the job's own number is wrong */
    }
    prepared_cache_put(search->prepared, prepared);
    return STATUS_OK;
}

/* Jobs are numbered without gaps; one that was taken out is a gap below the last one known. */
enum status replay_missing_find(struct store *store, struct prepared_cache *prepared,
                                const char *suite, int64_t last_job, replay_missed *missed,
                                void *context, struct error *error)
{
    const struct search search = {store, prepared, missed, context};
    enum status status = STATUS_OK;
    struct store_job *job = malloc(sizeof *job);
    struct outcome *outcomes = calloc(REPLAY_JOB_OUTCOMES_MAX, sizeof *outcomes);
    if (job == NULL || outcomes == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "replay: out of memory");
    }
    for (int64_t id = 1; status == STATUS_OK; id++) {
        status = store->ops->job(store, id, job, error);
        if (status == STATUS_NOT_FOUND && id <= last_job) {
            status = STATUS_OK;
            continue;
        }
        if (status == STATUS_OK && job->state == JOB_DONE && !job_has_maker(&job->spec) &&
            (suite == NULL || strcmp(job->spec.suite_id, suite) == 0)) {
            status = look_for_missing(&search, job, outcomes, error);
            status = status == STATUS_NOT_FOUND ? STATUS_STORE : status;
        }
    }
    free(job);
    free(outcomes);
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}
