/*
 * swerve futures: how the drives of a suite might have ended, had others driven otherwise from a
 * moment on (worker/careful/futures.h), how well that foretells how they did end
 * (scheduler/calibration.h), and what it says where student and teacher differ.
 */
#include "cli/cli.h"
#include "cli/confinement_options.h"
#include "cli/kept/again.h"
#include "scheduler/calibration.h"
#include "schemas/scenario_json.h"
#include "worker/careful/futures.h"

#include "base/array.h"
#include "base/text.h"
#include "base/units.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROGRESS_MS = 3000 };

struct future_drive {
    struct outcome outcome;
    enum verdict teacher; /* of its audit; VERDICT_COUNT: none */
    struct futures found;
};

struct future_audit {
    int64_t job_id; /* first, for array_compare_int64() */
    enum verdict verdict;
};

struct future_drives {
    struct again again;
    const char *suite;
    const char *planner; /* that is asked for; NULL: each */
    uint32_t tick;
    uint32_t draws;
    bool tokens; /* are one of the models */
    bool json;
    uint32_t count;
    struct future_drive
        *drives; /* owned; main lines, by planner, in the order of again_compare() */
    int64_t without[VERDICT_COUNT]; /* main lines that neither passed nor failed, by verdict */
    struct store_suite_status status;
    uint32_t audit_count;
    struct future_audit *audits; /* owned */
};

/* ---- what is asked ---- */

static int compare_drives(const void *a, const void *b)
{
    const struct outcome *x = &((const struct future_drive *)a)->outcome;
    const struct outcome *y = &((const struct future_drive *)b)->outcome;
    int order = strcmp(x->planner, y->planner);
    return order != 0 ? order : again_compare(x, y);
}

static enum status add_drive(void *context, const struct outcome *outcome, struct error *error)
{
    struct future_drives *self = context;
    if (outcome->branch_id[0] != '\0' || outcome->shadow ||
        (self->planner != NULL && strcmp(self->planner, outcome->planner) != 0)) {
        return STATUS_OK;
    }
    if (outcome->verdict > VERDICT_FAIL) {
        self->without[outcome->verdict] += outcome->audit_of == 0;
        return STATUS_OK;
    }
    if (outcome->audit_of != 0) {
        TRY(array_room(&self->audits, self->audit_count, sizeof *self->audits, error));
        self->audits[self->audit_count++] =
            (struct future_audit){outcome->audit_of, outcome->verdict};
        return STATUS_OK;
    }
    TRY(array_room(&self->drives, self->count, sizeof *self->drives, error));
    self->drives[self->count++] =
        (struct future_drive){.outcome = *outcome, .teacher = VERDICT_COUNT};
    return STATUS_OK;
}

static enum status load_drives(struct future_drives *self, struct error *error)
{
    char text[AGAIN_LEFT_OUT_BYTES];
    struct store *store = self->again.store;
    TRY(store->ops->suite_status(store, self->suite, &self->status, error));
    TRY(store_outcomes_each(store, self->suite, add_drive, self, error));
    if (self->count == 0) {
        return error_set(error, STATUS_NOT_FOUND,
                         "suite %s: expected a main line%s%s that passed or failed, found none%s",
                         self->suite, self->planner != NULL ? " of " : "",
                         self->planner != NULL ? self->planner : "",
                         again_left_out_text(&self->status, self->without, text));
    }
    qsort(self->drives, self->count, sizeof *self->drives, compare_drives);
    if (self->audit_count > 0) {
        qsort(self->audits, self->audit_count, sizeof *self->audits, array_compare_int64);
    }
    for (uint32_t i = 0; i < self->count && self->audit_count > 0; i++) {
        const struct future_audit key = {.job_id = self->drives[i].outcome.job_id};
        const struct future_audit *audit =
            bsearch(&key, self->audits, self->audit_count, sizeof key, array_compare_int64);
        self->drives[i].teacher = audit != NULL ? audit->verdict : VERDICT_COUNT;
    }
    return STATUS_OK;
}

static enum status ask(struct future_drives *self, struct future_drive *drive, struct error *error)
{
    struct scenario_document *document = NULL;
    enum status status = again_begin(&self->again, &drive->outcome, &document, error);
    if (status == STATUS_OK) {
        status =
            futures_drive(self->again.planner.open.runner, &document->scenario, &drive->outcome,
                          self->tick, self->draws, self->tokens, &drive->found, error);
        /* A drive of a world that generates has no likeness in the object world. */
        drive->found.same |= drive->outcome.tier >= TIER_STUDENT;
        scenario_destroy(document);
    }
    return status == STATUS_OK ? status
                               : error_prefix(error, "outcome %lld", (long long)drive->outcome.id);
}

static enum status ask_all(struct future_drives *self, struct error *error)
{
    const struct clock *clock = clock_system();
    int64_t shown_ns = clock_now_ns(clock);
    for (uint32_t i = 0; i < self->count; i++) {
        TRY(ask(self, &self->drives[i], error));
        int64_t now_ns = clock_now_ns(clock);
        if (now_ns - shown_ns >= PROGRESS_MS * NS_PER_MS) {
            text_print(stderr, "%u/%u drives\n", i + 1, self->count);
            shown_ns = now_ns;
        }
    }
    return STATUS_OK;
}

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
    struct answers all[FUTURES_ANSWERS];      /* of all models, */
    struct answers foreseen[FUTURES_ANSWERS]; /* and of those that do not know what is written */
    int64_t disagreements;                    /* of student and teacher, */
    int64_t settled[FUTURES_ANSWERS];         /* by what the futures say */
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
                         struct answers answers[FUTURES_ANSWERS])
{
    const struct futures_share share = futures_share_over(&drive->found, models);
    struct answers *at = &answers[futures_answer(&share)];
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
    if (teacher_differs(drive)) {
        const struct futures_share all = futures_share_over(&drive->found, FUTURES_ALL);
        scores->disagreements++;
        scores->settled[futures_answer(&all)]++;
    }
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
    const struct futures_share all = futures_share_over(&drive->found, FUTURES_ALL);
    return teacher_differs(drive) ||
           !(all.value == (drive->outcome.verdict == VERDICT_FAIL ? 1.0 : 0.0)) ||
           (drive->found.draws >= futures_draws_decisive() &&
            futures_answer(&all) == FUTURES_UNDECIDED);
}

static void print_drive(const struct future_drive *drive)
{
    char text[TRAFFIC_MODEL_COUNT + 1][16];
    const struct futures_share all = futures_share_over(&drive->found, FUTURES_ALL);
    for (int m = 0; m < TRAFFIC_MODEL_COUNT; m++) {
        share_text(futures_share_of(&drive->found, (enum traffic_model)m).value, text[m]);
    }
    const char *tokens = drive->found.tokens ? text[TRAFFIC_MODEL_TOKENS] : "";
    text_print(stdout, "%7lld %-44s %4llu %-5s %7s %7s %7s %8s%*s   %5s [%.0f-%.0f%%] %s%s%s\n",
               (long long)drive->outcome.id, drive->outcome.scenario_id,
               (unsigned long long)drive->outcome.seed, verdict_names[drive->outcome.verdict],
               text[TRAFFIC_MODEL_WRITTEN], text[TRAFFIC_MODEL_IDM], text[TRAFFIC_MODEL_DRIVERS],
               text[TRAFFIC_MODEL_CONSTANT], drive->found.tokens ? 8 : 0, tokens,
               share_text(all.value, text[TRAFFIC_MODEL_COUNT]), rate_down(100 * all.low, 1),
               rate_up(100 * all.high, 1), futures_answer_names[futures_answer(&all)],
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
    if (self->draws < futures_draws_decisive()) {
        text_print(stdout, "no answer can be other than undecided with less than %u draws\n",
                   futures_draws_decisive());
    }
}

static void print_answers(const struct answers answers[FUTURES_ANSWERS])
{
    for (int a = 0; a < FUTURES_ANSWERS; a++) {
        text_print(stdout, "%s%s in %lld, of which %lld failed", a == 0 ? "  " : "; ",
                   futures_answer_names[a], (long long)answers[a].drives,
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
    if (scores->disagreements > 0) {
        text_print(
            stdout,
            "student and teacher differ in %lld: pass in %lld, fail in %lld, undecided %lld\n",
            (long long)scores->disagreements, (long long)scores->settled[FUTURES_PASS],
            (long long)scores->settled[FUTURES_FAIL],
            (long long)scores->settled[FUTURES_UNDECIDED]);
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

static json_t *share_json(const struct futures_share *share)
{
    return json_pack("{s:o, s:f, s:f}", "p_fail", number_json(share->value), "low", share->low,
                     "high", share->high);
}

static json_t *model_json(const struct futures *found, enum traffic_model model)
{
    const struct futures_of_model *of = &found->models[model];
    const struct futures_share share = futures_share_of(found, model);
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
    const struct futures_share all = futures_share_over(&drive->found, FUTURES_ALL);
    json_t *models = json_object();
    for (int m = 0; m < TRAFFIC_MODEL_COUNT; m++) {
        if (futures_have(&drive->found, (enum traffic_model)m)) {
            json_object_set_new(models, traffic_model_names[m],
                                model_json(&drive->found, (enum traffic_model)m));
        }
    }
    json_t *json = share_json(&all);
    json_object_set_new(json, "answer", json_string(futures_answer_names[futures_answer(&all)]));
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

static json_t *answers_json(const struct answers answers[FUTURES_ANSWERS])
{
    json_t *json = json_object();
    for (int a = 0; a < FUTURES_ANSWERS; a++) {
        json_object_set_new(json, futures_answer_names[a],
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
        if (futures_have(&group->drives[0].found, (enum traffic_model)f)) {
            json_object_set_new(calibration, forecast_names[f], calibration_json(&scores->of[f]));
        }
    }
    json_object_set_new(calibration, "foreseen_less_one_default",
                        beside_json(&scores->foreseen_beside_one));
    json_t *settled = json_object();
    for (int a = 0; a < FUTURES_ANSWERS; a++) {
        json_object_set_new(settled, futures_answer_names[a], json_integer(scores->settled[a]));
    }
    return json_pack("{s:s, s:I, s:I, s:I, s:o, s:o, s:{s:o, s:o}, s:o, s:o, s:o}", "planner",
                     group->drives[0].outcome.planner, "failed", (json_int_t)scores->failed,
                     "ended", (json_int_t)scores->ended, "failed_before",
                     (json_int_t)scores->failed_before, "base_rate", number_json(scores->base),
                     "drives", drives, "answers", "all", answers_json(scores->all), "foreseen",
                     answers_json(scores->foreseen), "calibration", calibration, "different",
                     different, "disagreements", settled);
}

static int print_json(const struct future_drives *self, json_t *planners)
{
    struct again_left_out kinds[AGAIN_LEFT_OUT_KINDS];
    json_t *without = json_object();
    again_left_out(&self->status, self->without, kinds);
    for (int k = 0; k < AGAIN_LEFT_OUT_KINDS; k++) {
        json_object_set_new(without, kinds[k].name, json_integer(kinds[k].count));
    }
    return cli_print_json(json_pack("{s:s, s:i, s:i, s:i, s:o, s:O}", "suite", self->suite,
                                    "at_tick", (int)self->tick, "draws", (int)self->draws,
                                    "decisive_draws", (int)futures_draws_decisive(), "left_out",
                                    without, "planners", planners));
}

/* ---- the command ---- */

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

static enum status show(const struct future_drives *self, json_t *planners, int64_t *different,
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

static int finish(struct future_drives *self, enum status status, struct error *error)
{
    int code = 0;
    int64_t different = 0;
    char text[AGAIN_LEFT_OUT_BYTES];
    json_t *planners = json_array();
    THEN(status, show(self, planners, &different, error));
    if (status != STATUS_OK) {
        code = cli_fail(error);
    } else if (self->json) {
        code = print_json(self, planners);
    } else if (again_left_out_text(&self->status, self->without, text)[0] != '\0') {
        text_print(stdout, "main lines left out%s\n", text);
    }
    if (different > 0) {
        text_print(stderr,
                   "swerve: %lld drive%s not what is stored when driven again, and left out: "
                   "swerve replay says why\n",
                   (long long)different, different == 1 ? " is" : "s are");
        code = code == 0 ? 1 : code;
    }
    json_decref(planners);
    again_close(&self->again);
    free(self->drives);
    free(self->audits);
    self->again.store->ops->close(self->again.store);
    return code;
}

static enum status read_moment(int64_t tick, int64_t draws, struct future_drives *self,
                               struct error *error)
{
    int64_t most = self->tokens ? FUTURES_DRAWS_WITH_TOKENS_MAX : FUTURES_DRAWS_MAX;
    if (tick >= LIMIT_HORIZON_TICKS) {
        return error_set(error, STATUS_USAGE, "--at-tick: expected 0 to %d, found %lld",
                         LIMIT_HORIZON_TICKS - 1, (long long)tick);
    }
    if (draws < 1 || draws > most) {
        return error_set(error, STATUS_USAGE, "--draws: expected 1 to %lld, found %lld",
                         (long long)most, (long long)draws);
    }
    self->tick = (uint32_t)tick;
    self->draws = (uint32_t)draws;
    return STATUS_OK;
}

int command_futures(int argc, char **argv)
{
    const char *url = NULL;
    int64_t tick = 0;
    int64_t draws = FUTURES_DRAWS;
    struct future_drives self = {.again = {.truth = true}};
    struct confinement_options confinement = CONFINEMENT_OPTIONS_DEFAULT;
    const struct cli_option rows[] = {
        {"--store", "URL", "job store ($SWERVE_STORE, else swerve.db)", .text = &url},
        {"--planner", "SPEC", "of the suite's planners this one alone", .text = &self.planner},
        {"--at-tick", "N", "tick from which on others drive otherwise, ten a second (0)",
         .number = &tick},
        {"--draws", "N", "futures of each traffic model, 1 to 63 (16)", .number = &draws},
        {"--tokens", NULL, "a fifth traffic model, a network's; then 1 to 51 draws",
         .flag = &self.tokens},
        {"--json", NULL, "print one JSON object", .flag = &self.json},
        AGAIN_DEADLINE_ROW(self.again),
        CONFINEMENT_OPTION_ROWS(confinement),
    };
    const struct cli_command command = {
        "futures",
        "[SUITE] --store URL",
        "How the main lines of a suite (the newest) might have ended, had others driven "
        "otherwise:\n"
        "P(fail) by four traffic models in the object world, and how well it foretells the "
        "drives,\n"
        "one table a planner. Drives that had failed by the tick are counted apart.\n"
        "Exits 1 when some are not what is stored when driven again; they are in no figure.",
        CLI_ROWS(rows, 0, 1),
    };
    char suite[LIMIT_ID_BYTES];
    struct error error;
    CLI_PARSE(&command, argc, argv, &self.suite, NULL);
    self.again.url = cli_store_url(url);
    if (read_moment(tick, draws, &self, &error) != STATUS_OK ||
        confinement_options_settle(&confinement, self.again.url, &self.again.confinement, &error) !=
            STATUS_OK ||
        cli_store_open(url, &self.again.store, &error) != STATUS_OK) {
        return cli_fail(&error);
    }
    enum status status = cli_suite_id(self.again.store, self.again.url, self.suite, suite, &error);
    self.suite = suite;
    THEN(status, load_drives(&self, &error));
    THEN(status, ask_all(&self, &error));
    return finish(&self, status, &error);
}
