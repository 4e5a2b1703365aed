/*
 * Logs of long rollouts. See checkpoint.h.
 *
 * Of each tick the log has an entry of what was done and what came of it, then the frame.
 */
#include "worker/run/checkpoint.h"

#include "engine/sensors/layout.h"
#include "worker/run/revision.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct checkpoint {
    struct drive_log *log;  /* NULL: none is made */
    struct drive_log *past; /* that the rollout goes through; NULL: it is behind */
    uint32_t ticks;         /* in the log */
    uint32_t kept_ticks;    /* that the store has */
    int64_t kept_ns;        /* device time then */
    struct drive_log_entry entry;
    uint8_t frame[FRAME_BYTES];
};

static void describe(const struct job_spec *spec, struct drive_log_head *out)
{
    memset(out, 0, sizeof *out);
    snprintf(out->revision, sizeof out->revision, "%s", revision_hash);
    snprintf(out->world, sizeof out->world, "%s", tier_names[spec->tier]);
    snprintf(out->scenario, sizeof out->scenario, "%s", spec->scenario_id);
    snprintf(out->scenario_hash, sizeof out->scenario_hash, "%s", spec->scenario_hash);
    snprintf(out->model_hash, sizeof out->model_hash, "%s", spec->model_hash);
    snprintf(out->sampler, sizeof out->sampler, "%s", spec->sampler);
    out->seed = spec->seed;
}

/* ---- life ---- */

void checkpoint_create(struct rollout *rollout)
{
    struct job_run *job = rollout->job;
    struct drive_log_head head;
    struct error ignored;
    if (rollout->branch != ROLLOUT_MAIN || job->results[0].kept != NULL ||
        job->lease.spec.makes[0] != '\0') {
        return;
    }
    struct checkpoint *checkpoint = calloc(1, sizeof *checkpoint);
    describe(&job->lease.spec, &head);
    if (checkpoint == NULL ||
        drive_log_create(NULL, &head, &checkpoint->log, &ignored) != STATUS_OK) {
        free(checkpoint);
        return;
    }
    checkpoint->past = job->past;
    job->past = NULL;
    rollout->checkpoint = checkpoint;
}

static void end_log(struct drive_log **log)
{
    drive_log_close(*log);
    *log = NULL;
}

void checkpoint_destroy(struct checkpoint *checkpoint)
{
    if (checkpoint != NULL) {
        end_log(&checkpoint->log);
        end_log(&checkpoint->past);
        free(checkpoint);
    }
}

void checkpoint_judge(struct rollout *rollout, uint32_t tick, int64_t period_ns)
{
    if (tick == CHECKPOINT_TRIAL_TICKS && rollout->checkpoint->past == NULL &&
        rollout->device_ns / tick * rollout->job->scenario->horizon_ticks < period_ns) {
        checkpoint_destroy(rollout->checkpoint);
        rollout->checkpoint = NULL;
    }
}

/* ---- ticks ---- */

/* The next tick of the past, entry and frame, if it is this one. */
static bool next_is(struct checkpoint *checkpoint, const struct rollout *rollout)
{
    struct drive_log_entry *entry = &checkpoint->entry;
    return drive_log_next(checkpoint->past, entry) && entry->kind == DRIVE_LOG_TICK &&
           memcmp(&entry->action, &rollout->action, sizeof entry->action) == 0 &&
           entry->skipped == rollout->skipped &&
           entry->observation_digest == rollout_shown_digest(rollout);
}

bool checkpoint_retrace(struct rollout *rollout, struct world *world)
{
    struct checkpoint *checkpoint = rollout->checkpoint;
    struct drive_log_entry frame;
    struct error ignored;
    if (checkpoint->past == NULL) {
        return false;
    }
    const struct world_past past = {&checkpoint->entry.frame_stats, checkpoint->frame};
    bool fits =
        next_is(checkpoint, rollout) && drive_log_next(checkpoint->past, &frame) &&
        frame.kind == DRIVE_LOG_FRAMES &&
        drive_log_frame(checkpoint->past, &frame, 0, checkpoint->frame, &ignored) == STATUS_OK &&
        /* A device that fails has lost the slot, which is judged as after any step. */
        world->ops->slot_retrace(world, (uint32_t)rollout->slot, &rollout->action, &past,
                                 &ignored) != STATUS_BAD_INPUT;
    if (!fits) {
        end_log(&checkpoint->past);
    }
    return fits;
}

void checkpoint_note(struct rollout *rollout, const struct world *world)
{
    struct checkpoint *checkpoint = rollout->checkpoint;
    const uint32_t slot = (uint32_t)rollout->slot;
    struct error ignored;
    if (checkpoint == NULL || checkpoint->log == NULL) {
        return;
    }
    const uint8_t *frame = world->ops->slot_memory(world, slot, 0);
    if (rollout->job->partial_refused || frame == NULL ||
        drive_log_tick(checkpoint->log, rollout->action, rollout->skipped,
                       rollout_shown_digest(rollout), world->ops->slot_frame_stats(world, slot),
                       &ignored) != STATUS_OK ||
        drive_log_frames(checkpoint->log, &frame, 1, &ignored) != STATUS_OK) {
        end_log(&checkpoint->log);
        return;
    }
    checkpoint->ticks++;
}

/* ---- the store ---- */

bool checkpoint_due(const struct rollout *rollout, int64_t period_ns)
{
    const struct checkpoint *checkpoint = rollout->checkpoint;
    return checkpoint->log != NULL && checkpoint->past == NULL &&
           checkpoint->ticks > CHECKPOINT_TRIAL_TICKS &&
           checkpoint->ticks > checkpoint->kept_ticks &&
           rollout->device_ns - checkpoint->kept_ns >= period_ns;
}

enum status checkpoint_take(struct rollout *rollout, char **data, size_t *bytes, uint32_t *ticks,
                            struct error *error)
{
    struct checkpoint *checkpoint = rollout->checkpoint;
    checkpoint->kept_ticks = checkpoint->ticks;
    checkpoint->kept_ns = rollout->device_ns;
    *ticks = checkpoint->ticks;
    return drive_log_contents(checkpoint->log, data, bytes, error);
}

bool checkpoint_is(const struct outcome *outcome)
{
    return outcome->artifact_hash[0] == '\0' && outcome->evidence_hash[0] != '\0';
}

enum status checkpoint_restore(struct job_run *job, const void *data, size_t bytes,
                               struct error *error)
{
    struct drive_log_head ours, found;
    struct drive_log *log = NULL;
    TRY(drive_log_read("checkpoint", data, bytes, &found, &log, error));
    describe(&job->lease.spec, &ours);
    if (memcmp(&ours, &found, sizeof ours) != 0) {
        drive_log_close(log);
        return error_set(error, STATUS_BAD_INPUT,
                         "checkpoint: expected one of scenario %.12s by build %.12s, found one of "
                         "%.12s by %.12s",
                         ours.scenario_hash, ours.revision, found.scenario_hash, found.revision);
    }
    drive_log_close(job->past);
    job->past = log;
    return STATUS_OK;
}
