/*
 * Planners that do not start on this host. See unstarted.h.
 */
#include "worker/run/unstarted.h"

#include <string.h>

void unstarted_planner(const struct job_spec *spec, struct store_planner *out)
{
    *out = (struct store_planner){.in_world = false};
    memcpy(out->planner, spec->planner, sizeof out->planner);
    memcpy(out->planner_hash, spec->planner_hash, sizeof out->planner_hash);
}

void unstarted_world(const struct job_spec *spec, struct store_planner *out)
{
    unstarted_planner(spec, out);
    out->in_world = true;
    out->tier = spec->tier;
    memcpy(out->model_hash, spec->model_hash, sizeof out->model_hash);
    memcpy(out->sampler, spec->sampler, sizeof out->sampler);
    memcpy(out->backend, spec->backend, sizeof out->backend);
}

void unstarted_release(const struct job_spec *spec, struct store_planner *out)
{
    unstarted_world(spec, out);
    memcpy(out->revision, spec->revision, sizeof out->revision);
}

static bool same(const struct store_planner *a, const struct store_planner *b)
{
    return strcmp(a->planner, b->planner) == 0 && strcmp(a->planner_hash, b->planner_hash) == 0 &&
           a->in_world == b->in_world && a->tier == b->tier &&
           strcmp(a->model_hash, b->model_hash) == 0 && strcmp(a->sampler, b->sampler) == 0 &&
           strcmp(a->backend, b->backend) == 0 && strcmp(a->revision, b->revision) == 0;
}

uint32_t unstarted_list(struct store_planner *list, uint32_t count, const struct job_spec *spec)
{
    struct store_planner planner;
    unstarted_world(spec, &planner);
    for (uint32_t i = 0; i < count; i++) {
        if (same(&list[i], &planner)) {
            return count;
        }
    }
    if (count < STORE_WITHOUT_MAX) {
        list[count++] = planner;
    }
    return count;
}

static void rig_of(const struct job_spec *spec, const struct rig *rig, struct unstarted_rig *out)
{
    struct error unused;
    out->rig[0] = '\0';
    unstarted_world(spec, &out->planner); /* which must make the rig too */
    memcpy(out->job_rig, spec->rig, sizeof out->job_rig);
    if (rig != NULL && rig_hash(rig, out->rig, &unused) != STATUS_OK) {
        out->rig[0] = '\0';
    }
}

const struct error *unstarted_refused(const struct unstarted *unstarted,
                                      const struct job_spec *spec, const struct rig *rig)
{
    struct unstarted_rig wanted;
    if (unstarted->rig_count > 0) {
        rig_of(spec, rig, &wanted);
    }
    for (uint32_t i = 0; i < unstarted->rig_count && i < UNSTARTED_RIGS_MAX; i++) {
        const struct unstarted_rig *at = &unstarted->rigs[i];
        if (same(&at->planner, &wanted.planner) && strcmp(at->rig, wanted.rig) == 0 &&
            strcmp(at->job_rig, wanted.job_rig) == 0) {
            return &at->why;
        }
    }
    return NULL;
}

void unstarted_refuse(struct unstarted *unstarted, const struct job_spec *spec,
                      const struct rig *rig, const struct error *why)
{
    struct unstarted_rig *at = &unstarted->rigs[unstarted->rig_count++ % UNSTARTED_RIGS_MAX];
    rig_of(spec, rig, at);
    at->why = *why;
}

/* unstarted->count: it is not among them. */
static uint32_t find(const struct unstarted *unstarted, const struct store_planner *planner)
{
    uint32_t i = 0;
    while (i < unstarted->count && !same(&unstarted->planners[i], planner)) {
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

/* The host is at fault: said once for each. */
static void note(struct unstarted *unstarted, uint32_t at, int64_t job_id,
                 const struct logger *logger)
{
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
    note(unstarted, at, job_id, logger);
}

void unstarted_hand_back(struct unstarted *unstarted, const struct store_planner *planner,
                         int64_t job_id, const struct logger *logger)
{
    note(unstarted, find(unstarted, planner), job_id, logger);
}

enum status unstarted_left(const struct unstarted *unstarted, struct store *store,
                           struct error *error)
{
    for (uint32_t i = 0; unstarted->count > 0 && i < unstarted->job_count; i++) {
        struct store_job job;
        enum status status = store->ops->job(store, unstarted->jobs[i], &job, error);
        if (status == STATUS_STALE) { /* another token's worker has claimed it */
            continue;
        }
        TRY(status);
        if (job.state == JOB_QUEUED) {
            return error_set(error, unstarted->why.status,
                             "%.600s (on this host; job %lld and others wait for one on which it "
                             "starts, and no attempt was charged)",
                             unstarted->why.text, (long long)job.id);
        }
    }
    return STATUS_OK;
}
