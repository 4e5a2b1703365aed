/*
 * Planners that do not start on this host. See unstarted.h.
 */
#include "worker/run/unstarted.h"

#include <string.h>

void unstarted_planner(const struct job_spec *spec, struct store_planner *out)
{
    memcpy(out->planner, spec->planner, sizeof out->planner);
    memcpy(out->planner_hash, spec->planner_hash, sizeof out->planner_hash);
}

/* unstarted->count: it is not among them. */
static uint32_t find(const struct unstarted *unstarted, const struct store_planner *planner)
{
    uint32_t i = 0;
    while (i < unstarted->count &&
           (strcmp(unstarted->planners[i].planner, planner->planner) != 0 ||
            strcmp(unstarted->planners[i].planner_hash, planner->planner_hash) != 0)) {
        i++;
    }
    return i;
}

bool unstarted_has(const struct unstarted *unstarted, const struct store_planner *planner)
{
    return find(unstarted, planner) < unstarted->count;
}

bool unstarted_add(struct unstarted *unstarted, const struct store_planner *planner,
                   const struct error *why)
{
    if (unstarted->count == STORE_WITHOUT_MAX) {
        return false;
    }
    unstarted->told[unstarted->count] = false;
    unstarted->planners[unstarted->count++] = *planner;
    unstarted->why = *why;
    return true;
}

void unstarted_judge(struct unstarted *unstarted, const struct store_planner *planner,
                     int64_t job_id, bool excused, const struct logger *logger)
{
    uint32_t at = find(unstarted, planner);
    if (at == unstarted->count) {
        return;
    }
    if (!excused) {
        unstarted->count--;
        unstarted->planners[at] = unstarted->planners[unstarted->count];
        unstarted->told[at] = unstarted->told[unstarted->count];
        return;
    }
    if (unstarted->job_count < UNSTARTED_JOBS_MAX) {
        unstarted->jobs[unstarted->job_count++] = job_id;
    }
    if (!unstarted->told[at]) {
        unstarted->told[at] = true;
        log_event(logger, LOG_ERROR,
                  "%.*s; its jobs go back uncharged, and this worker takes no more of them",
                  (int)strcspn(unstarted->why.text, "\r\n"), unstarted->why.text);
    }
}

enum status unstarted_left(const struct unstarted *unstarted, struct store *store,
                           struct error *error)
{
    for (uint32_t i = 0; unstarted->count > 0 && i < unstarted->job_count; i++) {
        struct store_job job;
        TRY(store->ops->job(store, unstarted->jobs[i], &job, error));
        if (job.state == JOB_QUEUED) {
            return error_set(error, STATUS_PLANNER,
                             "%.600s (on this host; job %lld and others wait for one on which it "
                             "starts, and no attempt was charged)",
                             unstarted->why.text, (long long)job.id);
        }
    }
    return STATUS_OK;
}
