/*
 * Evaluating a version of a model by the audits that a store holds. See model_evaluate.h.
 */
#include "cli/model/model_evaluate.h"

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/cli.h"
#include "cli/model/model_drive.h"
#include "cli/model/model_shadow.h"
#include "cli/model/model_slices.h"
#include "cli/model/model_store.h"
#include "report/summary.h"
#include "report/trust/table.h"
#include "scheduler/gate.h"
#include "worker/frozen/frozen.h"
#include "worker/versions/versions.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DAY_S = 86400 };

struct evaluation {
    const struct model_evaluate_options *options;
    struct model_version version;
    struct model_version incumbent;
    bool has_incumbent;
    struct trust_policy *policy; /* owned */
    struct table table;
    char policy_hash[SHA256_HEX_BYTES]; /* of the file; "": the defaults */
    uint32_t reported;                  /* slices that decide nothing */
    struct frozen *frozen;              /* owned; NULL: it was not driven */
    json_t *misses;                     /* owned: of frozen seeds */
    json_t *jobs;                       /* owned: audited ones */
    json_t *driven;                     /* owned: of --drive; NULL: nothing was */
    struct decisions decisions;         /* of the store */
    int64_t left_out;  /* audited rollouts of frozen slices from before their freeze */
    uint32_t slices;   /* of the audits */
    uint32_t verdicts; /* on them, and on frozen seeds */
    uint32_t failed;
    uint32_t named;   /* of them in `missed` */
    char missed[320]; /* names of slices that failed, as many as fit whole */
    json_t *report;
};

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

static struct model_slices slices_of(const struct evaluation *evaluation)
{
    return (struct model_slices){.table = &evaluation->table,
                                 .policy = evaluation->policy,
                                 .version = &evaluation->version,
                                 .incumbent =
                                     evaluation->has_incumbent ? &evaluation->incumbent : NULL};
}

/* One that decides has to pass; of the others one that is shown to be below its band fails. */
static void judge_row(struct evaluation *evaluation, const struct table_row *row, json_t *slices)
{
    char name[TRUST_SLICE_TEXT_BYTES];
    const struct model_slices judged = slices_of(evaluation);
    const struct table_judgement verdict = model_slices_judge(&judged, row);
    trust_slice_text(&row->verdict.slice, name);
    evaluation->slices++;
    evaluation->verdicts += verdict.decides || verdict.result == GATE_BELOW;
    if (table_refuses(&verdict)) {
        note_missed(evaluation, name, gate_result_names[verdict.result]);
    }
    json_array_append_new(slices, model_slices_json(&judged, row, &verdict));
    if (!evaluation->options->json) {
        model_slices_print(row, &verdict, stdout);
    }
}

/* Those that decide, then the others. */
static void judge_rows(struct evaluation *evaluation, bool decide, json_t *slices)
{
    bool any = false;
    for (uint32_t i = 0; i < evaluation->table.count; i++) {
        const struct table_row *row = &evaluation->table.rows[i];
        if (model_slices_is_of(row, &evaluation->version) &&
            trust_decides(evaluation->policy, &row->verdict.slice) == decide) {
            if (!any && !evaluation->options->json) {
                text_print(stdout, decide ? "slices that decide\n" : "reported\n");
            }
            any = true;
            judge_row(evaluation, row, slices);
        }
    }
}

/* A slice that the policy names, and that no audited job belongs to, is not shown. */
static void judge_absent(struct evaluation *evaluation)
{
    char name[TRUST_SLICE_TEXT_BYTES];
    for (uint32_t d = 0; d < evaluation->policy->decides_count; d++) {
        const struct trust_slice *slice = &evaluation->policy->decides[d];
        bool judged = false;
        for (uint32_t i = 0; i < evaluation->table.count; i++) {
            const struct table_row *row = &evaluation->table.rows[i];
            judged = judged || (model_slices_is_of(row, &evaluation->version) &&
                                trust_slice_equal(&row->verdict.slice, slice));
        }
        if (!judged && evaluation->slices > 0) {
            evaluation->verdicts++;
            note_missed(evaluation, trust_slice_text(slice, name), "no audited job");
        }
    }
}

/* Frozen seeds have verdicts on spans of time and layers too, shadows one as a whole. */
static const char *unit_of(const struct evaluation *evaluation)
{
    return evaluation->frozen != NULL || evaluation->policy->shadow.jobs > 0 ? "verdicts"
                                                                             : "slices";
}

static void note_frozen(void *context, const struct frozen_miss *miss)
{
    struct evaluation *evaluation = context;
    note_missed(evaluation, miss->name, miss->part);
    json_array_append_new(evaluation->misses,
                          json_pack("{s:s, s:s, s:s}", "part", miss->part, "name", miss->name,
                                    "reason", miss->reason));
    if (!evaluation->options->json) {
        text_print(stdout, "%-20s %-34s %s\n", miss->part, miss->name, miss->reason);
    }
}

/* As its file says. */
static int64_t trusted_ticks(const struct model_version *version, int conditioning)
{
    const int64_t ticks[CONDITIONING_COUNT] = {version->agents_ticks, version->map_ticks,
                                               version->none_ticks};
    return ticks[conditioning];
}

/* The conditionings that are asked for; without any those in which the version is trusted. */
static enum status choose_conditionings(const struct evaluation *evaluation,
                                        bool conditionings[CONDITIONING_COUNT], struct error *error)
{
    const char *rest = evaluation->options->layouts;
    for (int i = 0; i < CONDITIONING_COUNT; i++) {
        conditionings[i] = rest == NULL && trusted_ticks(&evaluation->version, i) > 0;
    }
    while (rest != NULL) {
        char name[LIMIT_ID_BYTES];
        enum conditioning conditioning = CONDITIONING_AGENTS;
        const char *comma = strchr(rest, ',');
        int length = comma != NULL ? (int)(comma - rest) : (int)strlen(rest);
        snprintf(name, sizeof name, "%.*s", length, rest);
        TRY(models_parse_conditioning(name, &conditioning, error));
        if (conditioning_foresees(conditioning)) {
            return error_set(error, STATUS_USAGE,
                             "--layouts: expected agents, map or none, found %s: frozen "
                             "frames tell of the network, which is given the agents in it",
                             name);
        }
        conditionings[conditioning] = true;
        rest = comma != NULL ? comma + 1 : NULL;
    }
    return STATUS_OK;
}

/* Weights of a version, wherever they come from. */
static enum status find_weights(const struct evaluation *evaluation,
                                const struct model_version *version, const char *precision_name,
                                const struct models_model **out, struct error *error)
{
    enum nn_precision precision = NN_FP32;
    TRY(models_parse_precision(precision_name, &precision, error));
    TRY(models_find(evaluation->options->models, version->hash, precision, out, error));
    models_hold(evaluation->options->models, *out); /* beside the others, to the end */
    return STATUS_OK;
}

static enum status drive_frozen(struct evaluation *evaluation, struct store *store,
                                struct error *error)
{
    const struct model_version *version = &evaluation->version;
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct frozen_options options = {.suite = evaluation->options->frozen,
                                     .planner = evaluation->options->planner,
                                     .thread_count = cores > 0 ? (uint32_t)cores : 1,
                                     .policy = evaluation->policy};
    TRY(versions_fetch_from(store, evaluation->options->models, error));
    TRY(find_weights(evaluation, version, version->precision, &options.candidate, error));
    if (strcmp(version->precision, nn_precision_names[NN_FP32]) != 0) {
        TRY(find_weights(evaluation, version, nn_precision_names[NN_FP32], &options.exact, error));
    }
    if (evaluation->has_incumbent) {
        TRY(find_weights(evaluation, &evaluation->incumbent, evaluation->incumbent.precision,
                         &options.incumbent, error));
    }
    TRY(choose_conditionings(evaluation, options.conditionings, error));
    TRY(frozen_run(&options, &evaluation->frozen, error));
    if (!evaluation->options->json) {
        frozen_print(evaluation->frozen, &evaluation->policy->frozen, stdout);
        text_print(stdout, "\n");
    }
    evaluation->verdicts +=
        frozen_judge(evaluation->frozen, &evaluation->policy->frozen, note_frozen, evaluation);
    return STATUS_OK;
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

/* The audited jobs that the verdicts rest on. */
static void note_jobs(struct evaluation *evaluation, const struct pairs *pairs)
{
    for (uint32_t i = 0; i < pairs->count; i++) {
        const struct pairs_pair *pair = &pairs->pairs[i];
        if (pair->shadow || strcmp(pair->student_hash, evaluation->version.hash) != 0 ||
            strcmp(pair->student_sampler, evaluation->version.sampler) != 0) {
            continue;
        }
        json_array_append_new(evaluation->jobs,
                              json_pack("{s:I, s:s, s:s, s:I, s:I, s:I, s:s, s:s}", "job",
                                        (json_int_t)pair->job_id, "scenario", pair->scenario_id,
                                        "branch", pair->branch_id, "seed", (json_int_t)pair->seed,
                                        "outcome", (json_int_t)pair->student.outcome_id,
                                        "teacher_outcome", (json_int_t)pair->teacher.outcome_id,
                                        "verdict", verdict_names[pair->student.verdict],
                                        "teacher_verdict", verdict_names[pair->teacher.verdict]));
    }
}

/* Whether a pair is what a freeze that holds rests on. The slice is to show itself anew. */
static bool is_before_freeze(const struct pairs *pairs, const struct pairs_pair *pair)
{
    const struct drives_student student =
        drives_student_of(pair->student_hash, pair->student_sampler);
    return !pair->shadow &&
           decisions_are_before_freeze(&pairs->decisions, &student,
                                       (const char(*)[LIMIT_ID_BYTES])pair->slice,
                                       pair->safety_critical, pair->student.outcome_id);
}

/* Returns how many of the version's are dropped. */
static int64_t drop_before_freeze(const struct model_version *version, struct pairs *pairs)
{
    int64_t dropped = 0;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < pairs->count; i++) {
        if (!is_before_freeze(pairs, &pairs->pairs[i])) {
            pairs->pairs[kept++] = pairs->pairs[i];
        } else {
            dropped += strcmp(pairs->pairs[i].student_hash, version->hash) == 0;
        }
    }
    pairs->count = kept;
    return dropped;
}

static void leave_out(struct evaluation *evaluation, struct pairs *pairs)
{
    evaluation->left_out = drop_before_freeze(&evaluation->version, pairs);
    if (evaluation->left_out > 0 && !evaluation->options->json) {
        text_print(stdout,
                   "%lld audited rollouts of frozen slices are from before the freeze, and say "
                   "nothing of the slice since\n",
                   (long long)evaluation->left_out);
    }
}

/* Bands and limits, and the hash of the file that declares them. */
static enum status read_policy(struct evaluation *evaluation, struct error *error)
{
    const char *path = evaluation->options->policy;
    evaluation->policy = malloc(sizeof *evaluation->policy);
    TRY(memory_check(evaluation->policy, error, "evaluate: out of memory"));
    *evaluation->policy = trust_policy_default();
    TRY(path != NULL ? trust_policy_load(path, evaluation->policy, error) : STATUS_OK);
    return decisions_policy_hash(path, evaluation->policy_hash, error);
}

static enum status read_audits(struct evaluation *evaluation, struct store *store,
                               struct error *error)
{
    struct pairs pairs = {0};
    enum status status = pairs_read_taken(store, &pairs, error);
    if (status == STATUS_OK) {
        leave_out(evaluation, &pairs);
    }
    THEN(status, table_make_judged(&pairs, evaluation->policy, &evaluation->table, error));
    if (status == STATUS_OK) {
        note_jobs(evaluation, &pairs);
    }
    evaluation->decisions = pairs.decisions;
    pairs.decisions = (struct decisions){.count = 0};
    pairs_finish(&pairs);
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
    snprintf(event.evidence, sizeof event.evidence, "%u of %u %s passed%s%s%s",
             evaluation->verdicts - evaluation->failed, evaluation->verdicts, unit_of(evaluation),
             evaluation->failed > 0 ? "; not " : "", evaluation->missed,
             more_missed(evaluation, more));
    event.expires_s = clock_wall_ns(clock_system()) / NS_PER_S + evaluation->options->days * DAY_S;
    enum status status =
        store->ops->artifact_put(store, text, strlen(text), event.report_hash, error);
    free(text);
    THEN(status, store->ops->model_event(store, &event, &done, error));
    return status;
}

/* Outside of what agreement sees: main lines of a version that were flagged, so that the teacher or
 * nobody answered. */
static void note_flags(const struct evaluation *evaluation, const struct model_version *version,
                       json_t *flags)
{
    int64_t drives = 0;
    int64_t flagged = 0;
    for (uint32_t i = 0; i < evaluation->table.student_count; i++) {
        const struct table_student *student = &evaluation->table.students[i];
        if (strcmp(student->student.hash, version->hash) == 0 &&
            strcmp(student->student.sampler, version->sampler) == 0) {
            drives += student->drives;
            flagged += student->flagged;
        }
    }
    json_array_append_new(flags,
                          json_pack("{s:s, s:I, s:I}", "version", version->name, "main_lines",
                                    (json_int_t)drives, "flagged", (json_int_t)flagged));
    if (!evaluation->options->json) {
        text_print(stdout, "%lld of %lld main lines of %s were flagged: in no agreement\n",
                   (long long)flagged, (long long)drives, version->name);
    }
}

static json_t *flags_of(const struct evaluation *evaluation)
{
    json_t *flags = json_array();
    note_flags(evaluation, &evaluation->version, flags);
    if (evaluation->has_incumbent) {
        note_flags(evaluation, &evaluation->incumbent, flags);
    }
    return flags;
}

/* Audited rollouts that have a verdict on both sides. */
static int64_t judged_pairs(const struct evaluation *evaluation)
{
    int64_t pairs = 0;
    for (uint32_t i = 0; i < evaluation->table.count; i++) {
        const struct table_row *row = &evaluation->table.rows[i];
        bool whole = trust_slice_equal(&row->verdict.slice, &(struct trust_slice){0});
        pairs +=
            !row->shadow && whole && model_slices_is_of(row, &evaluation->version) ? row->pairs : 0;
    }
    return pairs;
}

static json_t *report_of(const struct evaluation *evaluation, json_t *slices, bool passed)
{
    const struct model_version *incumbent = &evaluation->incumbent;
    bool any = evaluation->has_incumbent;
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:s, s:s, s:b, s:f, s:f, s:s, s:I, s:I, s:o, s:o, s:O, s:I, s:I, "
        "s:o, s:o, s:O, s:O?}",
        "model", evaluation->version.name, "hash", evaluation->version.hash, "sampler",
        evaluation->version.sampler, "against", any ? incumbent->name : "", "against_hash",
        any ? incumbent->hash : "", "against_sampler", any ? incumbent->sampler : "", "passed",
        passed, "band", evaluation->policy->band, "safety_critical_band",
        evaluation->policy->safety_critical_band, "policy_hash", evaluation->policy_hash,
        "verdicts", (json_int_t)evaluation->verdicts, "failed", (json_int_t)evaluation->failed,
        "slices", slices, "shadow", model_shadow_json(&evaluation->table, &evaluation->version),
        "jobs", evaluation->jobs, "jobs_judged", (json_int_t)judged_pairs(evaluation), "left_out",
        (json_int_t)evaluation->left_out, "flags", flags_of(evaluation), "frozen",
        evaluation->frozen != NULL ? frozen_json(evaluation->frozen, &evaluation->policy->frozen)
                                   : json_null(),
        "misses", evaluation->misses, "driven", evaluation->driven);
}

/* A slice that is frozen has to have shown itself since, or a thaw would rest on nothing. */
static void judge_freezes(struct evaluation *evaluation)
{
    const struct model_version *version = &evaluation->version;
    const struct drives_student student = drives_student_of(version->hash, version->sampler);
    char name[TRUST_SLICE_TEXT_BYTES];
    for (uint32_t e = 0; e < evaluation->decisions.count; e++) {
        const struct trust_event *event = &evaluation->decisions.events[e];
        bool judged = false;
        for (uint32_t i = 0; i < evaluation->table.count; i++) {
            const struct table_row *row = &evaluation->table.rows[i];
            judged = judged || (model_slices_is_of(row, version) &&
                                trust_slice_equal(&row->verdict.slice, &event->slice));
        }
        if (decisions_holds(event, &student) && !judged) {
            evaluation->verdicts++;
            note_missed(evaluation, trust_slice_text(&event->slice, name),
                        "frozen, and no audited job since");
        }
    }
}

/* A policy that asks for frozen seeds asks for every conditioning in which the version claims to be
 * trusted: one that is left out would be answered for by the others. */
static void judge_driven(struct evaluation *evaluation)
{
    const struct frozen *frozen = evaluation->frozen;
    bool any = false;
    if (frozen == NULL) {
        evaluation->verdicts++;
        note_missed(evaluation, "frozen seeds", "not driven: --frozen SUITE");
        return;
    }
    for (int i = 0; i < CONDITIONING_COUNT; i++) {
        any = any || frozen->conditionings[i].driven;
        if (!frozen->conditionings[i].driven && trusted_ticks(&evaluation->version, i) > 0) {
            struct frozen_miss miss = {.part = "frozen seeds", .reason = "not driven: --layout"};
            snprintf(miss.name, sizeof miss.name, "%s", conditioning_names[i]);
            evaluation->verdicts++;
            note_frozen(evaluation, &miss);
        }
    }
    if (!any) {
        evaluation->verdicts++;
        note_missed(evaluation, "frozen seeds", "the version is trusted in no conditioning");
    }
}

/* Production jobs that it drove again as a shadow, where the policy asks for any. */
static void judge_shadow(struct evaluation *evaluation)
{
    const struct gate_shadow_bands *bands = &evaluation->policy->shadow;
    struct gate_shadow shadow = {.low = 0.0};
    if (evaluation->has_incumbent) {
        shadow =
            model_shadow_whole(&evaluation->table, &evaluation->version, &evaluation->incumbent);
    }
    if (!evaluation->options->json) {
        model_shadow_print(&evaluation->table, &evaluation->version, stdout);
    }
    if (bands->jobs > 0) {
        enum gate_result result = gate_judge_shadow(bands, &shadow);
        evaluation->verdicts++;
        if (result != GATE_PASSED) {
            note_missed(evaluation, "shadow", gate_result_names[result]);
        }
    }
}

/* All verdicts; not passed without any audit, or without frozen seeds that the policy asks for. */
static bool judge(struct evaluation *evaluation, json_t *slices)
{
    judge_rows(evaluation, true, slices);
    judge_rows(evaluation, false, slices);
    judge_absent(evaluation);
    if (evaluation->slices == 0) { /* the record would give no reason */
        evaluation->verdicts++;
        note_missed(evaluation, "agreement", "no audited job");
    }
    judge_freezes(evaluation);
    judge_shadow(evaluation);
    if (evaluation->policy->frozen_required) {
        judge_driven(evaluation);
    }
    return evaluation->slices > 0 && evaluation->failed == 0;
}

/* Says what a suite can show, and drives what is lacking of it. */
static enum status drive(struct evaluation *evaluation, struct store *store, struct error *error)
{
    const struct model_evaluate_options *options = evaluation->options;
    const struct model_drive_options drive = {
        .version = &evaluation->version,
        .incumbent = evaluation->has_incumbent ? &evaluation->incumbent : NULL,
        .policy = evaluation->policy,
        .suite = options->plan != NULL ? options->plan : options->drive,
        .planner = options->planner,
        .models = options->models_directory,
        .store_url = options->store_url,
        .budget = options->jobs,
        .workers = options->workers,
        .plan = options->plan != NULL,
        .json = options->json,
        .leave_out = drop_before_freeze};
    if (drive.suite == NULL) {
        return STATUS_OK;
    }
    if (options->plan != NULL && options->drive != NULL) {
        return error_set(error, STATUS_USAGE, "evaluate: expected --plan or --drive, found both");
    }
    return model_drive(&drive, store, &evaluation->driven, error);
}

static enum status evaluate(struct evaluation *evaluation, struct store *store, struct error *error)
{
    const struct model_evaluate_options *options = evaluation->options;
    TRY(versions_named(store, options->name, &evaluation->version, error));
    TRY(find_incumbent(evaluation, store, error));
    TRY(read_policy(evaluation, error));
    TRY(drive(evaluation, store, error));
    if (options->plan != NULL) { /* nothing is judged or recorded */
        return options->json ? cli_write_json(json_incref(evaluation->driven), error) : STATUS_OK;
    }
    TRY(read_audits(evaluation, store, error));
    TRY(options->frozen != NULL ? drive_frozen(evaluation, store, error) : STATUS_OK);
    json_t *slices = json_array();
    bool passed = judge(evaluation, slices);
    evaluation->report = report_of(evaluation, slices, passed);
    TRY(memory_check(evaluation->report, error, "evaluate: out of memory"));
    TRY(record(evaluation, store, passed, error));
    TRY(options->json ? cli_write_json(json_incref(evaluation->report), error) : STATUS_OK);
    if (evaluation->slices == 0) {
        return error_set(error, STATUS_MISMATCH,
                         "model \"%s\": the store has no audited job of it%s", options->name,
                         evaluation->left_out > 0
                             ? " since its slices were frozen; drive it with --evaluation"
                         : options->drive != NULL
                             ? ": no slice of the suite has enough logical scenarios to be shown"
                             : "; --drive SUITE drives it");
    }
    char more[32];
    return passed
               ? STATUS_OK
               : error_set(error, STATUS_MISMATCH, "model \"%s\": %u of %u %s did not pass: %s%s",
                           options->name, evaluation->failed, evaluation->verdicts,
                           unit_of(evaluation), evaluation->missed, more_missed(evaluation, more));
}

enum status model_evaluate(const struct model_evaluate_options *options, struct store *store,
                           struct error *error)
{
    struct evaluation evaluation = {
        .options = options, .misses = json_array(), .jobs = json_array()};
    enum status status = evaluate(&evaluation, store, error);
    table_finish(&evaluation.table);
    decisions_finish(&evaluation.decisions);
    free(evaluation.policy);
    frozen_destroy(evaluation.frozen);
    json_decref(evaluation.misses);
    json_decref(evaluation.jobs);
    json_decref(evaluation.driven);
    json_decref(evaluation.report);
    return status;
}
