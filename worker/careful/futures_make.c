/*
 * Futures as an outcome. See futures_make.h.
 */
#include "worker/careful/futures_make.h"

#include "schemas/job_context.h"
#include "worker/run/outcome_build.h"
#include "worker/run/runner_open.h"

#include <stdlib.h>
#include <string.h>

enum { LOOK_MS = 1 };

struct futures_maker {
    uint32_t slot_count;
    struct open_runner open;
    struct job_spec spec;         /* the runner's */
    const struct clip_task *task; /* the present one, .. */
    struct clip_made *made;       /* .. and what comes of it */
};

static bool goes_on(void *context)
{
    const struct clip_task *task = ((const struct futures_maker *)context)->task;
    return task->goes_on(task->context);
}

static bool is_open_for(const struct futures_maker *self, const struct job_spec *spec)
{
    const struct job_context has = job_context_of_spec(&self->spec);
    const struct job_context asked = job_context_of_spec(spec);
    return self->open.runner != NULL &&
           job_context_differs(&has, &asked, JOB_CONTEXT_RUNNER | JOB_CONTEXT_PLANNER_HASH) == 0;
}

/* Jobs beside it go on while its planner starts. */
static enum status open_for(struct futures_maker *self, const struct clip_task *task,
                            struct error *error)
{
    const struct runner_source source = {.planner_config = *task->planners,
                                         .slot_count = self->slot_count,
                                         .start_apart = true,
                                         .clock = clock_system()};
    bool ended = false;
    if (is_open_for(self, task->spec)) {
        return STATUS_OK;
    }
    runner_close(&self->open);
    TRY(runner_open(&source, task->spec, prepared_scenario(task->prepared)->rig, &self->open,
                    error));
    self->spec = *task->spec;
    while (!ended && runner_starts(self->open.runner, LOOK_MS)) {
        ended = !goes_on(self);
    }
    enum status status = ended ? error_set(error, STATUS_CANCELLED, "futures: it was to end")
                               : runner_started(self->open.runner, error);
    if (status != STATUS_OK) {
        runner_close(&self->open);
    }
    return status;
}

/* Keeps the drive's outcome and its trace. */
static enum status keep_drive(void *context, const struct job_run *job, struct error *error)
{
    struct clip_made *made = ((const struct futures_maker *)context)->made;
    const uint32_t main_line = 0;
    made->outcome = calloc(1, sizeof *made->outcome);
    TRY(memory_check(made->outcome, error, "futures: out of memory"));
    outcome_build(job, main_line, made->outcome);
    return outcome_pack_traces(job, &job->results[main_line].trace, &main_line, 1, &made->data,
                               &made->bytes, error);
}

static enum futures_state state_of(const struct futures *found)
{
    return found->verdict > VERDICT_FAIL ? FUTURES_WITHOUT
           : !found->begun               ? FUTURES_ENDED
           : found->failed_before        ? FUTURES_FAILED_BEFORE
                                         : FUTURES_DRIVEN;
}

static struct outcome_futures kept_of(const struct futures *found, uint32_t tick)
{
    struct outcome_futures kept = {.state = state_of(found), .tick = tick, .draws = found->draws};
    if (kept.state == FUTURES_DRIVEN) {
        const struct futures_of_model *models = found->models;
        kept.idm_passed = models[TRAFFIC_MODEL_IDM].passed;
        kept.idm_failed = models[TRAFFIC_MODEL_IDM].failed;
        kept.drivers_passed = models[TRAFFIC_MODEL_DRIVERS].passed;
        kept.drivers_failed = models[TRAFFIC_MODEL_DRIVERS].failed;
        kept.constant_passed = models[TRAFFIC_MODEL_CONSTANT].passed;
        kept.constant_failed = models[TRAFFIC_MODEL_CONSTANT].failed;
    }
    return kept;
}

static enum status drive(struct futures_maker *self, struct error *error)
{
    const struct job_lease lease = {.spec = *self->task->spec};
    struct clip_made *made = self->made;
    struct futures found;
    struct futures_cost cost = {.device_ns = 0};
    struct futures_task task = {.lease = &lease,
                                .scenario = prepared_scenario(self->task->prepared),
                                .have = FUTURES_KEPT,
                                .cost = &cost,
                                .goes_on = goes_on,
                                .shown = keep_drive,
                                .context = self};
    if (!job_futures(self->task->spec, &task.tick, &task.draws)) {
        return error_set(error, STATUS_CONFLICT, "futures: the job makes \"%s\"",
                         self->task->spec->makes);
    }
    enum status status = futures_drive(self->open.runner, &task, &found, error);
    made->device_ns = cost.device_ns;
    made->metres_mm = cost.metres_mm;
    if (status == STATUS_OK) {
        made->outcome->futures = kept_of(&found, task.tick);
        made->ticks = made->outcome->ticks;
    }
    return status;
}

enum status futures_make(struct futures_maker *self, const struct clip_task *task,
                         struct clip_made *out, struct error *error)
{
    *out = (struct clip_made){.ticks = 0};
    self->task = task;
    self->made = out;
    TRY(open_for(self, task, error));
    enum status status = drive(self, error);
    if (status != STATUS_OK) {
        free(out->data);
        free(out->outcome);
        *out = (struct clip_made){.device_ns = out->device_ns, .metres_mm = out->metres_mm};
        runner_close(&self->open);
    }
    if (status == STATUS_PLANNER || status == STATUS_BUSY || status == STATUS_TIMEOUT) {
        status = error->status = STATUS_CONFLICT; /* it did start: this attempt has failed */
    }
    return status;
}

void futures_close_planners(struct futures_maker *self)
{
    runner_close(&self->open);
}

enum status futures_maker_create(uint32_t slot_count, struct futures_maker **out,
                                 struct error *error)
{
    struct futures_maker *self = calloc(1, sizeof *self);
    TRY(memory_check(self, error, "futures: out of memory"));
    self->slot_count = slot_count;
    *out = self;
    return STATUS_OK;
}

void futures_maker_destroy(struct futures_maker *self)
{
    if (self != NULL) {
        futures_close_planners(self);
        free(self);
    }
}
