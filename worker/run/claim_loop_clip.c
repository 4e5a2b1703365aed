/*
 * Claim loop's clips: jobs that make training data have no runner. They wait in a list, and each
 * round makes one, so that what runs beside them goes on; it is reported like any other job. What
 * waits is lost with the worker, what is made is not. See worker/datagen/clip.h.
 */
#include "worker/run/claim_loop_internal.h"

#include "base/units.h"
#include "schemas/job_context.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum status claim_loop_clip_add(struct claim_loop *loop, const struct job_lease *lease,
                                struct prepared *prepared, struct error *error)
{
    struct claim_clip *clip = malloc(sizeof *clip);
    if (clip == NULL) {
        prepared_cache_put(loop->prepared_scenarios, prepared);
        return error_set(error, STATUS_NO_MEMORY, "clip: out of memory");
    }
    *clip = (struct claim_clip){.lease = *lease, .prepared = prepared, .next = loop->clips};
    loop->clips = clip;
    return STATUS_OK;
}

static void drop_first(struct claim_loop *loop)
{
    struct claim_clip *clip = loop->clips;
    loop->clips = clip->next;
    prepared_cache_put(loop->prepared_scenarios, clip->prepared);
    free(clip);
}

/* Of all threads: a world model computes in several. */
static int64_t process_cpu_ns(void)
{
    struct timespec now = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (int64_t)now.tv_sec * NS_PER_S + now.tv_nsec;
}

/* Tells that the drive was made, and what came of it: no verdict is asked for. */
static enum status attach_outcome(const struct claim_clip *clip, const struct clip_made *made,
                                  struct job_completion *completion, struct error *error)
{
    struct outcome *outcome = malloc(sizeof *outcome);
    TRY(memory_check(outcome, error, "clip: out of memory"));
    *outcome = (struct outcome){
        .job_id = clip->lease.job_id,
        .epoch = clip->lease.epoch,
        .verdict = VERDICT_PASS,
        .metrics = {.collision_tick = UINT32_MAX, .collision_agent = -1},
        .ticks = made->ticks,
        .metres_mm = made->metres_mm,
        .device_ns = completion->device_ns,
    };
    double *const measured[] = {
        &outcome->metrics.no_at_fault_collision,
        &outcome->metrics.drivable_area,
        &outcome->metrics.driving_direction,
        &outcome->metrics.making_progress,
        &outcome->metrics.progress,
        &outcome->metrics.ttc,
        &outcome->metrics.speed_limit,
        &outcome->metrics.comfort,
        &outcome->metrics.score,
        &outcome->metrics.min_ttc_s,
        &outcome->metrics.min_distance_m,
        &outcome->metrics.impact_speed_mps,
        &outcome->metrics.progress_m,
        &outcome->metrics.distance_m,
        &outcome->metrics.speed_max_mps,
        &outcome->metrics.accel_min_mps2,
        &outcome->metrics.jerk_max_mps3,
        &outcome->metrics.lataccel_cost,
        &outcome->metrics.jerk_cost,
        &outcome->metrics.total_cost,
        &outcome->metrics.lane_keeping,
        &outcome->metrics.traffic_light,
        &outcome->metrics.extended_comfort,
        &outcome->metrics.stage_distance_m,
        &outcome->metrics.stage_epdms,
    };
    for (size_t i = 0; i < sizeof measured / sizeof *measured; i++) {
        *measured[i] = NAN;
    }
    memcpy(outcome->suite_id, clip->lease.spec.suite_id, sizeof outcome->suite_id);
    job_context_copy(&clip->lease.spec, outcome);
    memcpy(outcome->artifact_hash, completion->artifact_hash, sizeof outcome->artifact_hash);
    completion->kind = COMPLETION_DONE;
    completion->outcomes = outcome;
    completion->outcome_count = 1;
    return STATUS_OK;
}

/* Not OK: the store cannot keep it now (TIMEOUT), or at all. */
static enum status put_clip(struct claim_loop *loop, const struct clip_made *made,
                            char hash[SHA256_HEX_BYTES], struct error *error)
{
    struct store *store = loop->config->store;
    hash[0] = '\0';
    return made->data == NULL
               ? STATUS_OK
               : store->ops->artifact_put(store, made->data, made->bytes, hash, error);
}

static void complete_clip(struct claim_loop *loop, const struct claim_clip *clip,
                          const struct clip_made *made, const char *hash, int64_t device_ns,
                          enum status status, struct error *error)
{
    if (status == STATUS_PLANNER) {
        claim_loop_hand_back_unstarted(loop, &clip->lease, error);
        return;
    }
    struct job_completion *completion = claim_loop_pending_add(loop, &clip->lease);
    completion->device_ns = device_ns;
    completion->metres_mm = made->metres_mm;
    memcpy(completion->artifact_hash, hash, sizeof completion->artifact_hash);
    THEN(status, attach_outcome(clip, made, completion, error));
    if (status == STATUS_OK) {
        loop->stats.jobs++;
        loop->stats.ticks += made->ticks;
        loop->fault_count = 0;
    } else {
        claim_loop_end_broken(loop, completion, &clip->lease, status, error->text);
    }
}

enum status claim_loop_clip_make(struct claim_loop *loop, bool *busy, struct error *error)
{
    const struct claim_loop_config *config = loop->config;
    struct clip_made made = {.data = NULL};
    char hash[SHA256_HEX_BYTES] = "";
    if (loop->clips == NULL || loop->clips_go_back) {
        return claim_loop_clips_release(loop, error);
    }
    TRY(claim_loop_make_room(loop, error));
    const struct claim_clip *clip = loop->clips;
    *busy = true;
    int64_t start_ns = process_cpu_ns();
    enum status status =
        config->make_clip(config->clip_context, &clip->lease.spec, clip->prepared, &made, error);
    int64_t device_ns = process_cpu_ns() - start_ns;
    enum status kept = status == STATUS_OK ? put_clip(loop, &made, hash, error) : STATUS_OK;
    free(made.data);
    if (kept == STATUS_TIMEOUT) {
        return kept;
    }
    if (kept != STATUS_OK) { /* as of any job: the store has no room, and the loop ends */
        claim_loop_pending_add(loop, &clip->lease)->kind = COMPLETION_RELEASED;
        loop->refusal = *error;
    } else {
        complete_clip(loop, clip, &made, hash, device_ns, status, error);
    }
    drop_first(loop);
    return STATUS_OK;
}

enum status claim_loop_clips_release(struct claim_loop *loop, struct error *error)
{
    while (loop->clips != NULL) {
        TRY(claim_loop_make_room(loop, error));
        claim_loop_pending_add(loop, &loop->clips->lease)->kind = COMPLETION_RELEASED;
        drop_first(loop);
    }
    loop->clips_go_back = false;
    return STATUS_OK;
}

void claim_loop_clips_drop(struct claim_loop *loop)
{
    while (loop->clips != NULL) {
        drop_first(loop);
    }
}
