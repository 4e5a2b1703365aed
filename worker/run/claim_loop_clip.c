/*
 * Claim loop's clips: jobs that make training data or futures have no runner of the loop's. They
 * wait in a list, and each round makes one, while what runs beside them goes on; it is reported
 * like any other job. What waits is lost with the worker, what is made is not. See
 * worker/datagen/clip.h and worker/careful/futures_make.h.
 */
#include "worker/run/claim_loop_internal.h"

#include "base/units.h"
#include "schemas/job_context.h"
#include "schemas/outcome_json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum status claim_loop_clip_add(struct claim_loop *loop, const struct job_lease *lease,
                                struct prepared *prepared, struct error *error)
{
    struct claim_clip *clip = malloc(sizeof *clip);
    if (clip == NULL) {
        prepared_cache_put(loop->prepared_scenarios, prepared);
        return error_set(error, STATUS_NO_MEMORY, "clip: out of memory");
    }
    /* Behind one that is made and waits for the store. */
    bool made = loop->clips != NULL && loop->clips->made.data != NULL;
    struct claim_clip **place = made ? &loop->clips->next : &loop->clips;
    *clip = (struct claim_clip){.lease = *lease, .prepared = prepared, .next = *place};
    *place = clip;
    return STATUS_OK;
}

static void drop(struct claim_loop *loop, struct claim_clip **place)
{
    struct claim_clip *clip = *place;
    *place = clip->next;
    prepared_cache_put(loop->prepared_scenarios, clip->prepared);
    free(clip->made.outcome);
    free(clip->made.data);
    free(clip);
}

/* Tells that the drive was made, and what came of it: no verdict is asked for. */
static enum status attach_outcome(const struct claim_clip *clip, const struct clip_made *made,
                                  struct job_completion *completion, struct error *error)
{
    struct outcome *outcome = malloc(sizeof *outcome);
    TRY(memory_check(outcome, error, "clip: out of memory"));
    completion->kind = COMPLETION_DONE;
    completion->outcomes = outcome;
    completion->outcome_count = 1;
    if (made->outcome != NULL) {
        *outcome = *made->outcome;
        outcome->job_id = clip->lease.job_id;
        outcome->epoch = clip->lease.epoch;
        memcpy(outcome->artifact_hash, completion->artifact_hash, sizeof outcome->artifact_hash);
        return STATUS_OK;
    }
    *outcome = (struct outcome){
        .job_id = clip->lease.job_id,
        .epoch = clip->lease.epoch,
        .verdict = VERDICT_PASS,
        .metrics = {.collision_tick = UINT32_MAX, .collision_agent = -1},
        .ticks = made->ticks,
        .metres_mm = made->metres_mm,
        .device_ns = completion->device_ns,
    };
    for (size_t i = 0; i < metric_field_list.count; i++) {
        if (metric_field_list.fields[i].kind == JSON_FIELD_F64) {
            const double unmeasured = NAN;
            memcpy((char *)&outcome->metrics + metric_field_list.fields[i].offset, &unmeasured,
                   sizeof unmeasured);
        }
    }
    memcpy(outcome->suite_id, clip->lease.spec.suite_id, sizeof outcome->suite_id);
    job_context_copy(&clip->lease.spec, outcome);
    memcpy(outcome->artifact_hash, completion->artifact_hash, sizeof outcome->artifact_hash);
    memcpy(outcome->error, made->fault, sizeof outcome->error);
    return STATUS_OK;
}

/* Not OK: the store cannot keep it now (TIMEOUT), or at all. */
static enum status put_clip(struct claim_loop *loop, const struct clip_made *made,
                            char hash[SHA256_HEX_BYTES], struct error *error)
{
    struct store *store = loop->config->store;
    return made->data == NULL
               ? STATUS_OK
               : store->ops->artifact_put(store, made->data, made->bytes, hash, error);
}

/* Without an attempt charged, but with what it cost. */
static void release(struct claim_loop *loop, const struct claim_clip *clip)
{
    struct job_completion *completion = claim_loop_pending_add(loop, &clip->lease);
    completion->kind = COMPLETION_RELEASED;
    completion->device_ns = clip->made.device_ns;
    completion->metres_mm = clip->made.metres_mm;
}

static void complete_clip(struct claim_loop *loop, const struct claim_clip *clip, const char *hash,
                          enum status status, struct error *error)
{
    struct job_completion *completion = claim_loop_pending_add(loop, &clip->lease);
    completion->device_ns = clip->made.device_ns;
    completion->metres_mm = clip->made.metres_mm;
    memcpy(completion->artifact_hash, hash, sizeof completion->artifact_hash);
    THEN(status, attach_outcome(clip, &clip->made, completion, error));
    if (status == STATUS_OK) {
        loop->stats.jobs++;
        loop->stats.ticks += clip->made.ticks;
        loop->fault_count = 0;
        loop->busy_doublings = 0;
    } else {
        claim_loop_end_broken(loop, completion, &clip->lease, status, error->text);
    }
}

/* Releases those that are cancelled; where all go back, those that are not made. */
static enum status release_some(struct claim_loop *loop, struct error *error)
{
    struct claim_clip **place = &loop->clips;
    while (*place != NULL) {
        bool unmade = (*place)->made.data == NULL;
        if (!(*place)->cancelled && !(loop->clips_go_back && unmade)) {
            place = &(*place)->next;
            continue;
        }
        TRY(claim_loop_make_room(loop, error));
        release(loop, *place);
        drop(loop, place);
    }
    loop->clips_go_back = false;
    return STATUS_OK;
}

/* Whether nobody is to blame: it was to end, or (for a while) its model is not to be had. */
static bool goes_back(struct claim_loop *loop, const struct claim_clip *clip, enum status status,
                      const struct error *error)
{
    if (status == STATUS_BUSY || status == STATUS_TIMEOUT) {
        log_event(loop->config->logger, LOG_WARNING, "job %lld goes back: %s",
                  (long long)clip->lease.job_id, error->text);
        int64_t pause_ms = (int64_t)CLAIM_LOOP_FAULT_PAUSE_MS << loop->busy_doublings;
        loop->busy_doublings += loop->busy_doublings < CLAIM_LOOP_BUSY_DOUBLINGS_MAX ? 1 : 0;
        loop->paused_until_ns = clock_now_ns(loop->clock) + pause_ms * NS_PER_MS;
        return true;
    }
    return status == STATUS_CANCELLED;
}

enum status claim_loop_clip_make(struct claim_loop *loop, bool (*goes_on)(void *loop), bool *busy,
                                 struct error *error)
{
    const struct claim_loop_config *config = loop->config;
    enum status status = STATUS_OK;
    char hash[SHA256_HEX_BYTES] = "";
    TRY(release_some(loop, error));
    struct claim_clip *clip = loop->clips;
    if (clip == NULL) {
        return STATUS_OK;
    }
    TRY(claim_loop_make_room(loop, error));
    *busy = true;
    if (clip->made.data == NULL) {
        const struct clip_task task = {.planners = &loop->cache.source.planner_config,
                                       .spec = &clip->lease.spec,
                                       .prepared = clip->prepared,
                                       .goes_on = goes_on,
                                       .context = loop};
        status = config->make_clip(config->clip_context, &task, &clip->made, error);
    }
    if (status == STATUS_PLANNER) {
        claim_loop_hand_back_unstarted(loop, &clip->lease, error);
        drop(loop, &loop->clips);
        return STATUS_OK;
    }
    bool is_made = status == STATUS_OK;
    if (goes_back(loop, clip, status, error)) {
        release(loop, clip);
        drop(loop, &loop->clips);
        return STATUS_OK;
    }
    THEN(status, put_clip(loop, &clip->made, hash, error));
    if (is_made && status == STATUS_TIMEOUT) {
        return status;
    }
    if (is_made && claim_loop_store_refuses(status)) { /* as of any job: the loop ends */
        release(loop, clip);
        loop->refusal = *error;
    } else {
        complete_clip(loop, clip, hash, status, error);
    }
    drop(loop, &loop->clips);
    return STATUS_OK;
}

void claim_loop_clips_drop(struct claim_loop *loop)
{
    while (loop->clips != NULL) {
        drop(loop, &loop->clips);
    }
    if (loop->config->end_clips != NULL) {
        loop->config->end_clips(loop->config->clip_context);
    }
}
