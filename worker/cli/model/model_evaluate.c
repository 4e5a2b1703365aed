/*
 * Evaluating a version of a model by the audits that a store holds. See model_evaluate.h.
 */
#include "worker/cli/model/model_evaluate.h"

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "scheduler/gate.h"
#include "worker/cli/cli.h"
#include "worker/cli/model/model_store.h"
#include "worker/report/summary.h"
#include "worker/trust/table.h"
#include "worker/versions/versions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORSE_MAX 0.005

enum { DAY_S = 86400 };

struct evaluation {
    const struct model_evaluate_options *options;
    struct model_version version;
    struct model_version incumbent;
    bool has_incumbent;
    struct trust_policy *policy; /* owned */
    struct table table;
    struct gate_bands bands;
    uint32_t slices;
    uint32_t failed;
    uint32_t named;   /* of them in `missed` */
    char missed[320]; /* names of slices that failed, as many as fit whole */
    json_t *report;
};

/* Whether a row is about a version: its weights, as it samples them and in its precision. */
static bool is_of(const struct table_row *row, const struct model_version *version)
{
    return strcmp(row->student_hash, version->hash) == 0 &&
           strcmp(row->student_sampler, version->sampler) == 0;
}

/* The incumbent's row for the same slice and teacher, or NULL. */
static const struct table_row *incumbent_row(const struct evaluation *evaluation,
                                             const struct table_row *row)
{
    for (uint32_t i = 0; evaluation->has_incumbent && i < evaluation->table.count; i++) {
        const struct table_row *other = &evaluation->table.rows[i];
        if (is_of(other, &evaluation->incumbent) &&
            strcmp(other->teacher_hash, row->teacher_hash) == 0 &&
            trust_slice_equal(&other->verdict.slice, &row->verdict.slice)) {
            return other;
        }
    }
    return NULL;
}

/* A name that does not fit whole, and all after it, are counted. */
static void note_missed(struct evaluation *evaluation, const char *name, const char *result)
{
    size_t used = strlen(evaluation->missed);
    size_t left = sizeof evaluation->missed - used;
    if (evaluation->named == evaluation->failed) {
        int bytes = snprintf(evaluation->missed + used, left, "%s%s (%s)", used > 0 ? "; " : "",
                             name, result);
        bool fits = bytes > 0 && (size_t)bytes < left;
        evaluation->named += fits;
        evaluation->missed[fits ? used + (size_t)bytes : used] = '\0';
    }
    evaluation->failed++;
}

/* " and 7 more" behind `missed`; "": all are named. */
static const char *more_missed(const struct evaluation *evaluation, char out[32])
{
    out[0] = '\0';
    if (evaluation->named < evaluation->failed) {
        snprintf(out, 32, " and %u more", evaluation->failed - evaluation->named);
    }
    return out;
}

static void judge_row(struct evaluation *evaluation, const struct table_row *row, json_t *slices)
{
    char name[TRUST_SLICE_TEXT_BYTES];
    const struct rate_estimate *rate = &row->rate[TABLE_VERDICT];
    const struct table_row *other = incumbent_row(evaluation, row);
    const struct gate_slice slice = {
        .safety_critical = row->verdict.slice.safety_critical,
        .share = rate->value,
        .low = rate->low,
        .optimistic = row->optimistic,
        .incumbent = other != NULL ? other->rate[TABLE_VERDICT].value : NAN,
    };
    double band =
        slice.safety_critical ? evaluation->bands.safety_critical_band : evaluation->bands.band;
    enum gate_result result = gate_judge(&evaluation->bands, &slice);
    int64_t needed = gate_draws_needed(rate->value, band);
    trust_slice_text(&row->verdict.slice, name);
    evaluation->slices++;
    if (result != GATE_PASSED) {
        note_missed(evaluation, name, gate_result_names[result]);
    }
    json_array_append_new(
        slices,
        json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:I, s:I, s:I, s:I, s:o}", "slice", name,
                  "teacher", row->teacher_hash, "result", gate_result_names[result], "band", band,
                  "agreement", isnan(rate->value) ? 0.0 : rate->value, "low", rate->low, "pairs",
                  (json_int_t)row->pairs, "scenarios", (json_int_t)rate->logical, "optimistic",
                  (json_int_t)row->optimistic, "scenarios_needed", (json_int_t)needed, "incumbent",
                  isnan(slice.incumbent) ? json_null() : json_real(slice.incumbent)));
    if (!evaluation->options->json) {
        char plan[64];
        snprintf(plan, sizeof plan, needed < 0 ? "no number of them will do" : "needs %lld",
                 (long long)needed);
        text_print(stdout,
                   "%-20s %-34s agree %5.1f%%, at least %5.1f%% of %.1f%%; opt. %lld; "
                   "%lld scenario%s, %s\n",
                   gate_result_names[result], name, 100.0 * (isnan(rate->value) ? 0 : rate->value),
                   100.0 * rate->low, 100.0 * band, (long long)row->optimistic,
                   (long long)rate->logical, summary_plural(rate->logical), plan);
    }
}

static enum status find_incumbent(struct evaluation *evaluation, struct store *store,
                                  struct error *error)
{
    const char *against = evaluation->options->against;
    if (against != NULL) {
        evaluation->has_incumbent = true;
        return versions_named(store, against, &evaluation->incumbent, error);
    }
    TRY(versions_pointed(store, evaluation->version.tier, MODEL_PROMOTED, &evaluation->incumbent,
                         &evaluation->has_incumbent, error));
    evaluation->has_incumbent &= strcmp(evaluation->incumbent.name, evaluation->version.name) != 0;
    return STATUS_OK;
}

static enum status read_audits(struct evaluation *evaluation, struct store *store,
                               struct error *error)
{
    struct pairs pairs = {0};
    evaluation->policy = malloc(sizeof *evaluation->policy);
    TRY(memory_check(evaluation->policy, error, "evaluate: out of memory"));
    *evaluation->policy = trust_policy_default();
    enum status status =
        evaluation->options->policy != NULL
            ? trust_policy_load(evaluation->options->policy, evaluation->policy, error)
            : STATUS_OK;
    THEN(status, pairs_read(store, &pairs, error));
    THEN(status, table_make(&pairs, evaluation->policy, &evaluation->table, error));
    pairs_finish(&pairs);
    evaluation->bands =
        (struct gate_bands){.band = evaluation->policy->band,
                            .safety_critical_band = evaluation->policy->safety_critical_band,
                            .worse_max = WORSE_MAX};
    return status;
}

/* The report as an artifact, and the event. */
static enum status record(struct evaluation *evaluation, struct store *store, bool passed,
                          struct error *error)
{
    struct model_event done;
    struct model_event event = {.kind = MODEL_EVALUATED, .passed = passed};
    char more[32];
    char *text = json_dumps(evaluation->report, JSON_INDENT(1));
    TRY(memory_check(text, error, "evaluate: out of memory"));
    memcpy(event.model, evaluation->version.name, sizeof event.model);
    if (evaluation->has_incumbent) {
        memcpy(event.against, evaluation->incumbent.name, sizeof event.against);
    }
    model_store_user(event.actor);
    snprintf(event.evidence, sizeof event.evidence, "%u of %u slices passed%s%s%s",
             evaluation->slices - evaluation->failed, evaluation->slices,
             evaluation->failed > 0 ? "; not " : "", evaluation->missed,
             more_missed(evaluation, more));
    event.expires_s = clock_wall_ns(clock_system()) / NS_PER_S + evaluation->options->days * DAY_S;
    enum status status =
        store->ops->artifact_put(store, text, strlen(text), event.report_hash, error);
    free(text);
    THEN(status, store->ops->model_event(store, &event, &done, error));
    return status;
}

static enum status evaluate(struct evaluation *evaluation, struct store *store, struct error *error)
{
    const struct model_evaluate_options *options = evaluation->options;
    TRY(versions_named(store, options->name, &evaluation->version, error));
    TRY(find_incumbent(evaluation, store, error));
    TRY(read_audits(evaluation, store, error));
    json_t *slices = json_array();
    for (uint32_t i = 0; i < evaluation->table.count; i++) {
        const struct table_row *row = &evaluation->table.rows[i];
        if (is_of(row, &evaluation->version)) {
            judge_row(evaluation, row, slices);
        }
    }
    bool passed = evaluation->slices > 0 && evaluation->failed == 0;
    evaluation->report =
        json_pack("{s:s, s:s, s:s, s:b, s:f, s:f, s:o}", "model", evaluation->version.name, "hash",
                  evaluation->version.hash, "against",
                  evaluation->has_incumbent ? evaluation->incumbent.name : "", "passed", passed,
                  "band", evaluation->bands.band, "safety_critical_band",
                  evaluation->bands.safety_critical_band, "slices", slices);
    TRY(memory_check(evaluation->report, error, "evaluate: out of memory"));
    TRY(record(evaluation, store, passed, error));
    if (options->json && cli_print_json(json_incref(evaluation->report)) != 0) {
        return error_set(error, STATUS_IO, "cannot print");
    }
    if (evaluation->slices == 0) {
        return error_set(error, STATUS_MISMATCH,
                         "model \"%s\": the store has no audited job of it; drive it with --models "
                         "and an --audit rate of 1",
                         options->name);
    }
    char more[32];
    return passed ? STATUS_OK
                  : error_set(error, STATUS_MISMATCH,
                              "model \"%s\": %u of %u slices did not pass: %s%s", options->name,
                              evaluation->failed, evaluation->slices, evaluation->missed,
                              more_missed(evaluation, more));
}

enum status model_evaluate(const struct model_evaluate_options *options, struct store *store,
                           struct error *error)
{
    struct evaluation evaluation = {.options = options};
    enum status status = evaluate(&evaluation, store, error);
    table_finish(&evaluation.table);
    free(evaluation.policy);
    json_decref(evaluation.report);
    return status;
}
