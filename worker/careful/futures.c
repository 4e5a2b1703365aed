/*
 * Futures of a drive as branches of it. See futures.h.
 */
#include "worker/careful/futures.h"

#include "base/check.h"
#include "scheduler/rate.h"
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

const char *const futures_answer_names[FUTURES_ANSWERS] = {"undecided", "pass", "fail"};

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
    return model != TRAFFIC_MODEL_TOKENS || futures->tokens;
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

static void collect(const struct job_run *job, const struct outcome *outcome, uint32_t tick,
                    struct futures *out)
{
    const struct rollout_result *main_line = &job->results[0];
    out->same = strcmp(main_line->trace_hash, outcome->trace_hash) == 0;
    out->verdict = main_line->verdict;
    out->begun = job->rollout_count > 1 && tick < main_line->ticks;
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
static enum status drive_job(struct runner *runner, const struct scenario *scenario,
                             const struct outcome *outcome, struct job_run **out,
                             struct error *error)
{
    struct job_lease lease = {.job_id = outcome->id};
    struct prepared *prepared = NULL;
    struct job_run *job = NULL;
    lease.spec.seed = outcome->seed;
    lease.spec.tier = outcome->tier;
    enum status status = prepared_create(scenario, &prepared, error);
    THEN(status, runner_drive(runner, &lease, prepared, &job, error));
    if (status == STATUS_OK && job->failure != STATUS_OK) {
        status = error_set(error, job->failure, "%s", job->error);
    }
    prepared_unref(prepared);
    if (status != STATUS_OK) {
        job_run_destroy(job);
        return status;
    }
    *out = job;
    return STATUS_OK;
}

/* Whether the drive, cut at the tick, has failed for good. The frame of the tick is in all futures,
 * and is judged with what was before it. */
static enum status look_back(struct runner *runner, const struct scenario *scenario,
                             const struct outcome *outcome, uint32_t tick, bool *out,
                             struct error *error)
{
    struct scenario cut = *scenario;
    struct job_run *job = NULL;
    cut.branches = NULL;
    cut.branch_count = 0;
    cut.horizon_ticks = tick;
    TRY(drive_job(runner, &cut, outcome, &job, error));
    *out = (job->results[0].reasons & REASONS_LASTING) != 0;
    job_run_destroy(job);
    return STATUS_OK;
}

enum status futures_drive(struct runner *runner, const struct scenario *scenario,
                          const struct outcome *outcome, uint32_t tick, uint32_t draws, bool tokens,
                          struct futures *out, struct error *error)
{
    struct futures found = {.nominal = VERDICT_INVALID, .draws = draws, .tokens = tokens};
    struct job_run *job = NULL;
    bool may_have_failed = false;
    CHECK(draws >= 1 &&
          draws <= (uint32_t)(tokens ? FUTURES_DRAWS_WITH_TOKENS_MAX : FUTURES_DRAWS_MAX));
    struct fan *fan = calloc(1, sizeof *fan);
    TRY(memory_check(fan, error, "futures"));
    fan_init(fan, scenario, tick, &found);
    enum status status = drive_job(runner, &fan->scenario, outcome, &job, error);
    if (status == STATUS_OK) {
        collect(job, outcome, tick, &found);
        may_have_failed =
            found.begun && tick > 0 && (job->results[0].reasons & REASONS_LASTING) != 0;
    }
    job_run_destroy(job);
    free(fan);
    if (status == STATUS_OK && may_have_failed) {
        status = look_back(runner, scenario, outcome, tick, &found.failed_before, error);
    }
    if (status == STATUS_OK) {
        *out = found;
    }
    return status;
}

/* ---- shares ---- */

struct futures_share futures_share_of(const struct futures *futures, enum traffic_model model)
{
    const struct futures_of_model *of = &futures->models[model];
    struct futures_share share = {.value = NAN, .low = 0.0, .high = 1.0};
    double drives = (double)of->passed + of->failed;
    if (drives > 0) {
        share.value = of->failed / drives;
        rate_interval(share.value, drives, &share.low, &share.high);
    }
    return share;
}

struct futures_share futures_share_over(const struct futures *futures, uint32_t models)
{
    struct futures_share all = {.value = NAN, .low = 1.0, .high = 0.0};
    double sum = 0.0;
    uint32_t count = 0;
    for (int m = 0; m < TRAFFIC_MODEL_COUNT; m++) {
        if ((models >> m & 1) == 0 || !futures_have(futures, (enum traffic_model)m)) {
            continue;
        }
        struct futures_share share = futures_share_of(futures, (enum traffic_model)m);
        all.low = fmin(all.low, share.low);
        all.high = fmax(all.high, share.high);
        if (!isnan(share.value)) {
            sum += share.value;
            count++;
        }
    }
    all.value = count > 0 ? sum / count : NAN;
    return all;
}

enum futures_answer futures_answer(const struct futures_share *share)
{
    return share->high < 0.5 ? FUTURES_PASS : share->low > 0.5 ? FUTURES_FAIL : FUTURES_UNDECIDED;
}

uint32_t futures_draws_decisive(void)
{
    uint32_t draws = 0;
    double low = 0.0;
    double high = 1.0;
    while (high >= 0.5) {
        draws++;
        rate_interval(0.0, draws, &low, &high);
    }
    return draws;
}
