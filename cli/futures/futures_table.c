/*
 * Scores of forecasts, and what is shown of them. See futures_table.h.
 */
#include "cli/futures/futures_table.h"

#include "base/text.h"
#include "cli/cli.h"
#include "scheduler/calibration.h"
#include "schemas/scenario_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- how good it is ---- */

/* Forecasts: each model's share, all models', the models' that do not know what is written, and
 * the one nominal future. Compared with the share of drives that failed, which nobody knows before:
 * a hard base line. */
enum forecast {
    FORECAST_ALL = TRAFFIC_MODEL_COUNT,
    FORECAST_FORESEEN,
    FORECAST_NOMINAL,
    FORECAST_COUNT
};

static const char *const forecast_names[FORECAST_COUNT] = {
    [TRAFFIC_MODEL_WRITTEN] = "written", [TRAFFIC_MODEL_IDM] = "idm",
    [TRAFFIC_MODEL_DRIVERS] = "drivers", [TRAFFIC_MODEL_CONSTANT] = "constant",
    [TRAFFIC_MODEL_TOKENS] = "tokens",   [FORECAST_ALL] = "all",
    [FORECAST_FORESEEN] = "foreseen",    [FORECAST_NOMINAL] = "one_default",
};

struct answers {
    int64_t drives;
    int64_t failed;
};

struct scores {
    struct answers all[FORECAST_ANSWERS];      /* of all models, */
    struct answers foreseen[FORECAST_ANSWERS]; /* and of those that do not know what is written */
    int64_t different;
    int64_t ended;         /* before the moment */
    int64_t failed_before; /* .. or had failed for good by then */
    int64_t without;       /* futures with no verdict, of drives that count */
    int64_t drives;
    int64_t failed;
    double base;
    struct calibration of[FORECAST_COUNT];
    struct calibration foreseen_beside_one; /* future of default drivers */
    struct paired_cluster *clusters;        /* owned */
};

static double forecast(const struct futures *found, int which)
{
    if (which < TRAFFIC_MODEL_COUNT) {
        return futures_share_of(found, (enum traffic_model)which).value;
    }
    if (which == FORECAST_NOMINAL) {
        return found->nominal > VERDICT_FAIL ? NAN : found->nominal == VERDICT_FAIL;
    }
    return futures_share_over(found, which == FORECAST_ALL ? FUTURES_ALL : FUTURES_FORESEEN).value;
}

static bool teacher_differs(const struct future_drive *drive)
{
    return drive->teacher != VERDICT_COUNT && drive->teacher != drive->outcome.verdict;
}

static bool counts(const struct future_drive *drive)
{
    return drive->found.same && drive->found.begun && !drive->found.failed_before;
}

static void count_answer(const struct future_drive *drive, uint32_t models,
                         struct answers answers[FORECAST_ANSWERS])
{
    const struct forecast_share share = futures_share_over(&drive->found, models);
    struct answers *at = &answers[forecast_answer(&share)];
    at->drives++;
    at->failed += drive->outcome.verdict == VERDICT_FAIL;
}

static void count_drive(const struct future_drive *drive, struct scores *scores)
{
    scores->different += !drive->found.same;
    scores->ended += drive->found.same && !drive->found.begun;
    scores->failed_before += drive->found.same && drive->found.failed_before;
    if (!counts(drive)) {
        return;
    }
    scores->drives++;
    scores->failed += drive->outcome.verdict == VERDICT_FAIL;
    for (int m = 0; m < TRAFFIC_MODEL_COUNT; m++) {
        scores->without += drive->found.models[m].without;
    }
    count_answer(drive, FUTURES_ALL, scores->all);
    count_answer(drive, FUTURES_FORESEEN, scores->foreseen);
}

static void score(const struct future_drive *drive, int64_t logical_key, int64_t case_key,
                  struct scores *scores)
{
    bool failed = drive->outcome.verdict == VERDICT_FAIL;
    for (int f = 0; f < FORECAST_COUNT; f++) {
        calibration_add(&scores->of[f], logical_key, case_key, forecast(&drive->found, f),
                        scores->base, failed);
    }
    calibration_add(&scores->foreseen_beside_one, logical_key, case_key,
                    forecast(&drive->found, FORECAST_FORESEEN),
                    forecast(&drive->found, FORECAST_NOMINAL), failed);
}

/* Drives of one planner: what is drawn for its table and its calibration. */
struct group {
    const struct future_drive *drives; /* borrowed */
    uint32_t count;                    /* at least 1 */
};

/* Clusters of all calibrations: of one after the other. The caller frees scores->clusters. */
static enum status scores_init(const struct group *group, struct scores *scores,
                               struct error *error)
{
    size_t count = (size_t)group->count + 1;
    *scores = (struct scores){0};
    scores->clusters = calloc((FORECAST_COUNT + 1) * count, sizeof *scores->clusters);
    TRY(memory_check(scores->clusters, error, "calibration"));
    for (size_t f = 0; f <= FORECAST_COUNT; f++) {
        struct calibration *of = f < FORECAST_COUNT ? &scores->of[f] : &scores->foreseen_beside_one;
        of->clusters = &scores->clusters[f * count];
        of->cluster_max = (uint32_t)count;
    }
    return STATUS_OK;
}

static void score_all(const struct group *group, struct scores *scores)
{
    int64_t logical_key = 0;
    int64_t case_key = 0;
    for (uint32_t i = 0; i < group->count; i++) {
        count_drive(&group->drives[i], scores);
    }
    scores->base = scores->drives > 0 ? (double)scores->failed / (double)scores->drives : NAN;
    for (uint32_t i = 0; i < group->count; i++) {
        const struct outcome *outcome = &group->drives[i].outcome;
        again_keys(i > 0 ? &group->drives[i - 1].outcome : NULL, outcome, &logical_key, &case_key);
        if (counts(&group->drives[i])) {
            score(&group->drives[i], logical_key, case_key, scores);
        }
    }
}

/* ---- what is shown ---- */

static const char *share_text(double value, char out[16])
{
    snprintf(out, 16, "-");
    if (!isnan(value)) {
        snprintf(out, 16, "%.0f%%", 100 * value);
    }
    return out;
}

/* Drives of which there is something to say: not all futures end as it did, or the teacher says
 * otherwise, or it is undecided for want of futures with a verdict. */
static bool in_question(const struct future_drive *drive)
{
    const struct forecast_share all = futures_share_over(&drive->found, FUTURES_ALL);
    return teacher_differs(drive) ||
           !(all.value == (drive->outcome.verdict == VERDICT_FAIL ? 1.0 : 0.0)) ||
           (drive->found.draws >= forecast_draws_decisive() &&
            forecast_answer(&all) == FORECAST_UNDECIDED);
}

static void print_drive(const struct future_drive *drive)
{
    char text[TRAFFIC_MODEL_COUNT + 1][16];
    const struct forecast_share all = futures_share_over(&drive->found, FUTURES_ALL);
    for (int m = 0; m < TRAFFIC_MODEL_COUNT; m++) {
        share_text(futures_share_of(&drive->found, (enum traffic_model)m).value, text[m]);
    }
    const char *tokens =
        futures_have(&drive->found, TRAFFIC_MODEL_TOKENS) ? text[TRAFFIC_MODEL_TOKENS] : "";
    text_print(stdout, "%7lld %-44s %4llu %-5s %7s %7s %7s %8s%*s   %5s [%.0f-%.0f%%] %s%s%s\n",
               (long long)drive->outcome.id, drive->outcome.scenario_id,
               (unsigned long long)drive->outcome.seed, verdict_names[drive->outcome.verdict],
               text[TRAFFIC_MODEL_WRITTEN], text[TRAFFIC_MODEL_IDM], text[TRAFFIC_MODEL_DRIVERS],
               text[TRAFFIC_MODEL_CONSTANT],
               futures_have(&drive->found, TRAFFIC_MODEL_TOKENS) ? 8 : 0, tokens,
               share_text(all.value, text[TRAFFIC_MODEL_COUNT]), rate_down(100 * all.low, 1),
               rate_up(100 * all.high, 1), forecast_answer_names[forecast_answer(&all)],
               teacher_differs(drive) ? ", the teacher: " : "",
               teacher_differs(drive) ? verdict_names[drive->teacher] : "");
}

static void print_drives(const struct future_drives *self, const struct group *group,
                         const struct scores *scores)
{
    uint32_t plain = 0;
    text_print(stdout, "%s: futures from %.1f s on, %u of each model; share that fails\n",
               group->drives[0].outcome.planner, self->tick * TICK_S, self->draws);
    text_print(stdout, "%7s %-44s %4s %-5s %7s %7s %7s %8s%s   %s\n", "outcome", "scenario", "seed",
               "drive", "written", "idm", "drivers", "constant", self->tokens ? "  tokens" : "",
               "P(fail), 95%, answer");
    for (uint32_t i = 0; i < group->count; i++) {
        const struct future_drive *drive = &group->drives[i];
        if (counts(drive) && in_question(drive)) {
            print_drive(drive);
        }
        plain += counts(drive) && !in_question(drive);
    }
    if (plain > 0) {
        text_print(stdout, "in %u other drive%s every future%s ends as the drive did\n", plain,
                   plain == 1 ? "" : "s", scores->without > 0 ? " with a verdict" : "");
    }
    if (scores->without > 0) {
        text_print(stdout, "%lld of %lld futures have no verdict\n", (long long)scores->without,
                   (long long)scores->drives * (TRAFFIC_MODEL_COUNT - !self->tokens) * self->draws);
    }
    if (self->draws < forecast_draws_decisive()) {
        text_print(stdout, "no answer can be other than undecided with less than %u draws\n",
                   forecast_draws_decisive());
    }
}

static void print_answers(const struct answers answers[FORECAST_ANSWERS])
{
    for (int a = 0; a < FORECAST_ANSWERS; a++) {
        text_print(stdout, "%s%s in %lld, of which %lld failed", a == 0 ? "  " : "; ",
                   forecast_answer_names[a], (long long)answers[a].drives,
                   (long long)answers[a].failed);
    }
    text_print(stdout, "\n");
}

static void print_bins(const struct calibration *calibration)
{
    for (int b = 0; b < CALIBRATION_BINS; b++) {
        const struct calibration_bin *bin = &calibration->bins[b];
        if (bin->forecasts > 0) {
            text_print(stdout,
                       "  P(fail) %3d to %3d%%: %4lld drives, said %5.1f%%, failed %5.1f%%\n",
                       100 * b / CALIBRATION_BINS, 100 * (b + 1) / CALIBRATION_BINS,
                       (long long)bin->forecasts, 100 * bin->said / (double)bin->forecasts,
                       100.0 * (double)bin->failed / (double)bin->forecasts);
        }
    }
}

static void print_scores(const struct scores *scores)
{
    char text[PAIRED_TEXT_BYTES];
    text_print(stdout,
               "\ncalibration: %lld of %lld drives failed (%.1f%%), Brier score of that "
               "share %.4f; 0 is exact\n",
               (long long)scores->failed, (long long)scores->drives, 100 * scores->base,
               scores->base * (1 - scores->base));
    text_print(stdout, "  %-12s %6s %8s %22s\n", "forecast", "drives", "Brier", "less the share's");
    for (int f = 0; f < FORECAST_COUNT; f++) {
        const struct calibration *of = &scores->of[f];
        const struct paired_mean beside = calibration_beside(of);
        if (of->forecasts > 0) {
            text_print(stdout, "  %-12s %6lld %8.4f %s\n", forecast_names[f],
                       (long long)of->forecasts, calibration_score(of),
                       paired_mean_text(&beside, text));
        }
    }
    const struct paired_mean beside = calibration_beside(&scores->foreseen_beside_one);
    text_print(stdout, "  foreseen less one_default %s\n", paired_mean_text(&beside, text));
    text_print(stdout, "of all models together:\n");
    print_answers(scores->all);
    print_bins(&scores->of[FORECAST_ALL]);
    text_print(stdout, "of those that do not know what is written:\n");
    print_answers(scores->foreseen);
    print_bins(&scores->of[FORECAST_FORESEEN]);
}

static void print_text(const struct future_drives *self, const struct group *group,
                       const struct scores *scores)
{
    print_drives(self, group, scores);
    if (scores->drives > 0) {
        print_scores(scores);
    }
    if (scores->ended > 0) {
        text_print(stdout, "%lld drive%s ended before\n", (long long)scores->ended,
                   scores->ended == 1 ? "" : "s");
    }
    if (scores->failed_before > 0) {
        text_print(stdout, "%lld drive%s had failed before\n", (long long)scores->failed_before,
                   scores->failed_before == 1 ? "" : "s");
    }
}

/* ---- JSON ---- */

static json_t *number_json(double value)
{
    return !isfinite(value) ? json_null() : json_real(value);
}

static json_t *share_json(const struct forecast_share *share)
{
    return json_pack("{s:o, s:f, s:f}", "p_fail", number_json(share->value), "low", share->low,
                     "high", share->high);
}

static json_t *model_json(const struct futures *found, enum traffic_model model)
{
    const struct futures_of_model *of = &found->models[model];
    const struct forecast_share share = futures_share_of(found, model);
    json_t *json = share_json(&share);
    json_t *failing = json_array();
    for (uint32_t draw = 1; draw <= found->draws; draw++) {
        if ((of->failing >> (draw - 1) & 1) != 0) {
            json_array_append_new(failing, json_integer(draw));
        }
    }
    json_object_set_new(json, "passed", json_integer(of->passed));
    json_object_set_new(json, "failed", json_integer(of->failed));
    json_object_set_new(json, "without", json_integer(of->without));
    json_object_set_new(json, "failing_draws", failing);
    return json;
}

static json_t *drive_json(const struct future_drive *drive)
{
    const struct forecast_share all = futures_share_over(&drive->found, FUTURES_ALL);
    json_t *models = json_object();
    for (int m = 0; m < TRAFFIC_MODEL_COUNT; m++) {
        if (futures_have(&drive->found, (enum traffic_model)m)) {
            json_object_set_new(models, traffic_model_names[m],
                                model_json(&drive->found, (enum traffic_model)m));
        }
    }
    json_t *json = share_json(&all);
    json_object_set_new(json, "answer", json_string(forecast_answer_names[forecast_answer(&all)]));
    json_object_set_new(json, "outcome", json_integer(drive->outcome.id));
    json_object_set_new(json, "scenario", json_string(drive->outcome.scenario_id));
    json_object_set_new(json, "seed", json_integer((json_int_t)drive->outcome.seed));
    json_object_set_new(json, "planner", json_string(drive->outcome.planner));
    json_object_set_new(json, "verdict", json_string(verdict_names[drive->outcome.verdict]));
    json_object_set_new(json, "one_default", json_string(verdict_names[drive->found.nominal]));
    json_object_set_new(json, "models", models);
    if (drive->teacher != VERDICT_COUNT) {
        json_object_set_new(json, "teacher", json_string(verdict_names[drive->teacher]));
    }
    return json;
}

static json_t *beside_json(const struct calibration *calibration)
{
    const struct paired_mean beside = calibration_beside(calibration);
    return json_pack("{s:o, s:o, s:o}", "value", number_json(beside.value), "low",
                     number_json(beside.low), "high", number_json(beside.high));
}

static json_t *calibration_json(const struct calibration *calibration)
{
    json_t *bins = json_array();
    for (int b = 0; b < CALIBRATION_BINS; b++) {
        const struct calibration_bin *bin = &calibration->bins[b];
        json_array_append_new(
            bins, json_pack("{s:f, s:I, s:I, s:o}", "from", (double)b / CALIBRATION_BINS, "drives",
                            (json_int_t)bin->forecasts, "failed", (json_int_t)bin->failed, "said",
                            number_json(bin->said / (double)bin->forecasts)));
    }
    return json_pack("{s:I, s:o, s:o, s:o}", "drives", (json_int_t)calibration->forecasts, "brier",
                     number_json(calibration_score(calibration)), "less_base_rate",
                     beside_json(calibration), "bins", bins);
}

static json_t *answers_json(const struct answers answers[FORECAST_ANSWERS])
{
    json_t *json = json_object();
    for (int a = 0; a < FORECAST_ANSWERS; a++) {
        json_object_set_new(json, forecast_answer_names[a],
                            json_pack("{s:I, s:I}", "drives", (json_int_t)answers[a].drives,
                                      "failed", (json_int_t)answers[a].failed));
    }
    return json;
}

static json_t *group_json(const struct group *group, const struct scores *scores)
{
    json_t *drives = json_array();
    json_t *different = json_array();
    json_t *calibration = json_object();
    for (uint32_t i = 0; i < group->count; i++) {
        const struct future_drive *drive = &group->drives[i];
        if (counts(drive)) {
            json_array_append_new(drives, drive_json(drive));
        } else if (!drive->found.same) {
            json_array_append_new(different, json_integer(drive->outcome.id));
        }
    }
    for (int f = 0; f < FORECAST_COUNT; f++) {
        bool all = f >= TRAFFIC_MODEL_COUNT; /* of several */
        if (all || futures_have(&group->drives[0].found, (enum traffic_model)f)) {
            json_object_set_new(calibration, forecast_names[f], calibration_json(&scores->of[f]));
        }
    }
    json_object_set_new(calibration, "foreseen_less_one_default",
                        beside_json(&scores->foreseen_beside_one));
    return json_pack("{s:s, s:I, s:I, s:I, s:o, s:o, s:{s:o, s:o}, s:o, s:o}", "planner",
                     group->drives[0].outcome.planner, "failed", (json_int_t)scores->failed,
                     "ended", (json_int_t)scores->ended, "failed_before",
                     (json_int_t)scores->failed_before, "base_rate", number_json(scores->base),
                     "drives", drives, "answers", "all", answers_json(scores->all), "foreseen",
                     answers_json(scores->foreseen), "calibration", calibration, "different",
                     different);
}

/* ---- both ---- */

/* Shows one planner's drives, as text or as an element of `planners`. */
static enum status show_group(const struct future_drives *self, const struct group *group,
                              json_t *planners, int64_t *different, struct error *error)
{
    struct scores scores;
    TRY(scores_init(group, &scores, error));
    score_all(group, &scores);
    if (self->json) {
        json_array_append_new(planners, group_json(group, &scores));
    } else {
        text_print(stdout, "%s", group->drives == self->drives ? "" : "\n");
        print_text(self, group, &scores);
    }
    *different += scores.different;
    free(scores.clusters);
    return STATUS_OK;
}

enum status futures_show(const struct future_drives *self, json_t *planners, int64_t *different,
                         struct error *error)
{
    struct group group = {.drives = self->drives};
    for (uint32_t i = 0; i < self->count; i++) {
        const struct future_drive *drive = &self->drives[i];
        group.count++;
        if (i + 1 == self->count || strcmp(drive->outcome.planner, drive[1].outcome.planner) != 0) {
            TRY(show_group(self, &group, planners, different, error));
            group = (struct group){.drives = drive + 1};
        }
    }
    return STATUS_OK;
}

int futures_print_json(const struct future_drives *self, json_t *planners)
{
    struct again_left_out kinds[AGAIN_LEFT_OUT_KINDS];
    json_t *without = json_object();
    again_left_out(&self->status, self->without, kinds);
    for (int k = 0; k < AGAIN_LEFT_OUT_KINDS; k++) {
        json_object_set_new(without, kinds[k].name, json_integer(kinds[k].count));
    }
    return cli_print_json(json_pack("{s:s, s:i, s:i, s:i, s:o, s:O}", "suite", self->suite,
                                    "at_tick", (int)self->tick, "draws", (int)self->draws,
                                    "decisive_draws", (int)forecast_draws_decisive(), "left_out",
                                    without, "planners", planners));
}
