/*
 * Futures of a drive as branches of it. See futures.h.
 */
#include "worker/careful/futures.h"

#include "base/check.h"
#include "schemas/scenario_json.h"
#include "worker/run/runner_open.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reasons that nothing undoes once they hold, and those that are judged over the whole drive. */
enum {
    REASONS_LASTING = REASON_AT_FAULT_COLLISION | REASON_COLLISION | REASON_OFF_DRIVABLE |
                      REASON_WRONG_DIRECTION | REASON_TTC | REASON_DISTANCE | REASON_IMPACT_SPEED |
                      REASON_SPEED | REASON_RED_LIGHT | REASON_STOP_SIGN,
    REASONS_OF_THE_WHOLE = REASON_GOAL_NOT_REACHED | REASON_UNCOMFORTABLE | REASON_PROGRESS |
                           REASON_SCORE | REASON_COST,
};
_Static_assert((REASONS_LASTING ^ REASONS_OF_THE_WHOLE) == (1 << REASON_BIT_COUNT) - 1,
               "each reason is of one kind");

/* ---- branches ---- */

struct fan {
    struct scenario scenario; /* with branches of its own */
    struct branch branches[LIMIT_BRANCHES];
    struct intervention interventions[LIMIT_BRANCHES];
};

static void add_future(struct fan *fan, uint32_t tick, enum traffic_model model, uint32_t draw)
{
    uint32_t b = fan->scenario.branch_count++;
    struct branch *branch = &fan->branches[b];
    CHECK(b < LIMIT_BRANCHES);
    fan->interventions[b] = (struct intervention){
        .kind = INTERVENE_TRAFFIC, .tick = tick, .agent = -1, .traffic = model, .draw = draw};
    branch->at_tick = tick;
    branch->intervention_count = 1;
    branch->interventions = &fan->interventions[b];
    snprintf(branch->id, sizeof branch->id, "%s-%u", traffic_model_names[model], draw);
}

bool futures_have(const struct futures *futures, enum traffic_model model)
{
    return (futures->have >> model & 1) != 0;
}

static void fan_init(struct fan *fan, const struct scenario *scenario, uint32_t tick,
                     const struct futures *futures)
{
    fan->scenario = *scenario;
    fan->scenario.branches = fan->branches;
    fan->scenario.branch_count = 0;
    if (tick >= scenario->horizon_ticks) {
        return; /* the drive ends before */
    }
    add_future(fan, tick, TRAFFIC_MODEL_IDM, 0);
    for (int m = 0; m < TRAFFIC_MODEL_COUNT; m++) {
        bool has = futures_have(futures, (enum traffic_model)m);
        for (uint32_t draw = 1; has && draw <= futures->draws; draw++) {
            add_future(fan, tick, (enum traffic_model)m, draw);
        }
    }
}

/* ---- drives ---- */

static void collect(const struct job_run *job, const struct futures_task *task, struct futures *out)
{
    const struct rollout_result *main_line = &job->results[0];
    out->same = task->trace_hash == NULL || strcmp(main_line->trace_hash, task->trace_hash) == 0;
    out->verdict = main_line->verdict;
    out->begun = job->rollout_count > 1 && task->tick < main_line->ticks;
    for (uint32_t r = 1; out->begun && r < job->rollout_count; r++) {
        const struct intervention *future = &job->scenario->branches[r - 1].interventions[0];
        enum verdict verdict = job->results[r].verdict;
        if (future->draw == 0) {
            out->nominal = verdict;
            continue;
        }
        struct futures_of_model *model = &out->models[future->traffic];
        bool failed = verdict == VERDICT_FAIL;
        model->passed += verdict == VERDICT_PASS;
        model->failed += failed;
        model->without += verdict > VERDICT_FAIL;
        model->failing |= failed ? UINT64_C(1) << (future->draw - 1) : 0;
    }
}

/* Drives a scenario that lives as long as *out, which the caller destroys. */
static enum status drive_job(struct runner *runner, const struct futures_task *task,
                             const struct scenario *scenario, struct job_run **out,
                             struct error *error)
{
    struct prepared *prepared = NULL;
    struct job_run *job = NULL;
    TRY(prepared_create(scenario, &prepared, error));
    enum status status = job_run_create(task->lease, prepared, &job, error);
    prepared_unref(prepared); /* the job has its own reference */
    TRY(status);
    status = runner_add(runner, job, ROLLOUT_ALL, error);
    if (status != STATUS_OK) {
        job_run_destroy(job);
        return status;
    }
    while ((job = runner_take(runner)) == NULL) {
        if (task->goes_on != NULL && !task->goes_on(task->context)) {
            runner_cancel_all(runner);
        }
        runner_tick(runner);
    }
    for (uint32_t r = 0; task->cost != NULL && r < job->rollout_count; r++) {
        task->cost->device_ns += job->results[r].device_ns;
        task->cost->metres_mm += job->results[r].metres_mm;
    }
    if (job->cancelled || job->failure != STATUS_OK) {
        status = job->cancelled ? error_set(error, STATUS_CANCELLED, "futures: it was to end")
                                : error_set(error, job->failure, "%s", job->error);
        job_run_destroy(job);
        return status;
    }
    *out = job;
    return STATUS_OK;
}

/* Whether the drive, cut at the tick, has failed for good. The frame of the tick is in all futures,
 * and is judged with what was before it. */
static enum status look_back(struct runner *runner, const struct futures_task *task,
                             struct futures *found, struct error *error)
{
    struct scenario cut = *task->scenario;
    struct job_run *job = NULL;
    cut.branches = NULL;
    cut.branch_count = 0;
    cut.horizon_ticks = task->tick;
    TRY(drive_job(runner, task, &cut, &job, error));
    found->failed_before = (job->results[0].reasons & REASONS_LASTING) != 0;
    job_run_destroy(job);
    return STATUS_OK;
}

enum status futures_drive(struct runner *runner, const struct futures_task *task,
                          struct futures *out, struct error *error)
{
    struct futures found = {.nominal = VERDICT_INVALID, .draws = task->draws, .have = task->have};
    struct job_run *job = NULL;
    bool tokens = futures_have(&found, TRAFFIC_MODEL_TOKENS);
    CHECK(task->draws >= 1 &&
          task->draws <= (uint32_t)(tokens ? FUTURES_DRAWS_WITH_TOKENS_MAX : FUTURES_DRAWS_MAX));
    struct fan *fan = calloc(1, sizeof *fan);
    TRY(memory_check(fan, error, "futures"));
    fan_init(fan, task->scenario, task->tick, &found);
    enum status status = drive_job(runner, task, &fan->scenario, &job, error);
    if (status == STATUS_OK) {
        collect(job, task, &found);
        bool may_have_failed =
            found.begun && task->tick > 0 && (job->results[0].reasons & REASONS_LASTING) != 0;
        status = may_have_failed ? look_back(runner, task, &found, error) : STATUS_OK;
    }
    if (status == STATUS_OK && task->shown != NULL) {
        status = task->shown(task->context, job, error);
    }
    job_run_destroy(job);
    free(fan);
    if (status == STATUS_OK) {
        *out = found;
    }
    return status;
}
