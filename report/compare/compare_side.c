/*
 * One side of a comparison: the rollouts of one planner of a suite, sorted by what joins them.
 */
#include "report/compare/compare.h"

#include "base/array.h"
#include "schemas/field/field.h"
#include "store/api/progress.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PLANNERS_NAMED = 8 };

int compare_rollout_order(const struct compare_rollout *a, const struct compare_rollout *b)
{
    int order = strcmp(a->scenario_id, b->scenario_id);
    if (order == 0) {
        order = strcmp(a->branch_id, b->branch_id);
    }
    if (order == 0) {
        order = (a->seed > b->seed) - (a->seed < b->seed);
    }
    return order != 0 ? order : (int)a->tier - (int)b->tier;
}

static int by_key_then_id(const void *a, const void *b)
{
    const struct compare_rollout *x = a;
    const struct compare_rollout *y = b;
    int order = compare_rollout_order(x, y);
    return order != 0 ? order : (x->id > y->id) - (x->id < y->id);
}

_Static_assert(sizeof((struct compare_rollout *)0)->measure ==
                   COMPARE_MEASURE_COUNT * sizeof(double),
               "measures of a rollout");

static void take(struct compare_rollout *rollout, const struct outcome *outcome)
{
    const struct metrics *metrics = &outcome->metrics;
    double field[FIELD_SCORE_COUNT];
    field_scores_of(outcome->verdict, metrics, field);
    *rollout = (struct compare_rollout){
        .id = outcome->id,
        .seed = outcome->seed,
        .tier = outcome->tier,
        .verdict = outcome->verdict,
        .reasons = outcome->reasons,
        .safety_critical = outcome->safety_critical,
        .measure = {[COMPARE_SCORE] = metrics->score,
                    [COMPARE_PROGRESS] = metrics->progress,
                    [COMPARE_COMFORT] = metrics->comfort,
                    [COMPARE_MIN_DISTANCE] = metrics->min_distance_m,
                    [COMPARE_MIN_TTC] = metrics->min_ttc_s > COMPARE_TTC_MOST_S
                                            ? COMPARE_TTC_MOST_S
                                            : metrics->min_ttc_s,
                    [COMPARE_JERK] = metrics->jerk_max_mps3,
                    [COMPARE_PDMS] = field[FIELD_PDMS],
                    [COMPARE_EPDMS] = field[FIELD_EPDMS],
                    [COMPARE_EXTENDED_COMFORT] = metrics->extended_comfort,
                    [COMPARE_AT_FAULT] =
                        isfinite(metrics->total_cost) ? (double)NAN : metrics->at_fault,
                    [COMPARE_TWO_STAGE] = NAN, /* end_job */
                    [COMPARE_LATACCEL_COST] = metrics->lataccel_cost,
                    [COMPARE_JERK_COST] = metrics->jerk_cost,
                    [COMPARE_TOTAL_COST] = metrics->total_cost},
    };
    memcpy(rollout->scenario_id, outcome->scenario_id, sizeof rollout->scenario_id);
    memcpy(rollout->scenario_hash, outcome->scenario_hash, sizeof rollout->scenario_hash);
    memcpy(rollout->branch_id, outcome->branch_id, sizeof rollout->branch_id);
    memcpy(rollout->slice, outcome->slice, sizeof rollout->slice);
}

struct reading {
    struct compare_side *side;
    const char *planner; /* wanted; NULL: the first that is found */
    /* Job that is being read; a job's outcomes follow one another. */
    int64_t job_id;
    bool has_main;
    uint32_t main_index;
    struct outcome main_line;
    struct field_stages stages;
    uint32_t planner_count;
    char planners[PLANNERS_NAMED][LIMIT_SPEC_BYTES];
};

static void note_planner(struct reading *reading, const char *planner)
{
    for (uint32_t i = 0; i < reading->planner_count; i++) {
        if (strcmp(reading->planners[i], planner) == 0) {
            return;
        }
    }
    if (reading->planner_count < PLANNERS_NAMED) {
        snprintf(reading->planners[reading->planner_count++], LIMIT_SPEC_BYTES, "%s", planner);
    }
}

static void end_job(struct reading *reading)
{
    if (reading->has_main) {
        reading->side->rollouts[reading->main_index].measure[COMPARE_TWO_STAGE] =
            field_stages_score(&reading->stages, reading->main_line.verdict,
                               &reading->main_line.metrics);
    }
    reading->has_main = false;
    reading->stages.count = 0;
}

static void add_to_job(struct reading *reading, const struct outcome *outcome, uint32_t index)
{
    if (outcome->job_id != reading->job_id) {
        end_job(reading);
        reading->job_id = outcome->job_id;
    }
    if (outcome->branch_id[0] == '\0') {
        reading->has_main = true;
        reading->main_index = index;
        reading->main_line = *outcome;
    }
    field_stages_add(&reading->stages, outcome->verdict, &outcome->metrics);
}

static enum status add_outcome(void *context, const struct outcome *outcome, struct error *error)
{
    struct reading *reading = context;
    struct compare_side *side = reading->side;
    if (outcome->audit_of != 0) {
        return STATUS_OK; /* a second opinion, no result of the planner's */
    }
    note_planner(reading, outcome->planner);
    if (reading->planner != NULL && strcmp(outcome->planner, reading->planner) != 0) {
        return STATUS_OK;
    }
    if (side->count > 0 && strcmp(side->rig, outcome->rig) != 0) {
        return error_set(error, STATUS_CONFLICT,
                         "suite %s: expected rollouts of one rig, found outcome %lld of rig "
                         "\"%.12s\" beside others of rig \"%.12s\" (\"\": the built-in one)",
                         side->suite_id, (long long)outcome->id, outcome->rig, side->rig);
    }
    TRY(array_room(&side->rollouts, side->count, sizeof *side->rollouts, error));
    take(&side->rollouts[side->count], outcome);
    add_to_job(reading, outcome, side->count++);
    memcpy(side->planner, outcome->planner, sizeof side->planner);
    memcpy(side->planner_hash, outcome->planner_hash, sizeof side->planner_hash);
    memcpy(side->model_hash, outcome->model_hash, sizeof side->model_hash);
    memcpy(side->revision, outcome->revision, sizeof side->revision);
    memcpy(side->rig, outcome->rig, sizeof side->rig);
    return STATUS_OK;
}

/* Keeps the newest rollout of every key. */
static void drop_superseded(struct compare_side *side)
{
    uint32_t kept = 0;
    if (side->count == 0) {
        return;
    }
    qsort(side->rollouts, side->count, sizeof *side->rollouts, by_key_then_id);
    for (uint32_t i = 0; i < side->count; i++) {
        bool last = i + 1 == side->count ||
                    compare_rollout_order(&side->rollouts[i], &side->rollouts[i + 1]) != 0;
        if (last) {
            side->rollouts[kept++] = side->rollouts[i];
        }
    }
    side->superseded = side->count - kept;
    side->count = kept;
}

static void name_planners(const struct reading *reading, char *out, size_t capacity)
{
    size_t used = 0;
    out[0] = '\0';
    for (uint32_t i = 0; i < reading->planner_count && used < capacity; i++) {
        used += (size_t)snprintf(out + used, capacity - used, "%s%s", i > 0 ? ", " : "",
                                 reading->planners[i]);
    }
}

static enum status several_planners(const struct reading *reading, struct error *error)
{
    char names[512];
    name_planners(reading, names, sizeof names);
    return error_set(error, STATUS_USAGE,
                     "suite %s in %s: expected one planner, found %s; name one of them as A or B, "
                     "with --store and --suite",
                     reading->side->suite_id, reading->side->store_url, names);
}

static enum status nothing_to_compare(const struct reading *reading, struct error *error)
{
    const struct compare_side *side = reading->side;
    char names[512];
    name_planners(reading, names, sizeof names);
    if (reading->planner == NULL || names[0] == '\0') {
        return error_set(error, STATUS_NOT_FOUND, "suite %s in %s: no results", side->suite_id,
                         side->store_url);
    }
    return error_set(error, STATUS_NOT_FOUND,
                     "suite %s in %s: no results of planner %s; expected one of %s", side->suite_id,
                     side->store_url, reading->planner, names);
}

enum status compare_side_load(struct compare_side *side, const char *planner, struct error *error)
{
    struct reading *reading = calloc(1, sizeof *reading);
    if (reading == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "compare: out of memory");
    }
    *reading = (struct reading){.side = side, .planner = planner};
    enum status status =
        store_outcomes_each(side->store, side->suite_id, add_outcome, reading, error);
    end_job(reading);
    if (status == STATUS_OK && planner == NULL && reading->planner_count > 1) {
        status = several_planners(reading, error);
    }
    if (status == STATUS_OK && side->count == 0) {
        status = nothing_to_compare(reading, error);
    }
    drop_superseded(side);
    free(reading);
    struct store_suite_status suite;
    THEN(status, side->store->ops->suite_status(side->store, side->suite_id, &suite, error));
    side->undriven =
        status == STATUS_OK ? progress_unanswered(&suite) + store_jobs_open(&suite) : 0;
    return status;
}

void compare_side_finish(struct compare_side *side)
{
    free(side->rollouts);
    side->rollouts = NULL;
    side->count = 0;
}
