/*
 * Steps of an evaluation that drives. See model_drive.h.
 *
 * A draw of a slice is a logical scenario of which a rollout in the slice has a verdict on both
 * sides. What is driven next decides nothing: it is chosen by what is there, never by how it agreed
 * within a slice, and of the cases of a logical scenario by their hash.
 */
#include "cli/model/model_drive.h"

#include "base/check.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/confinement_options.h"
#include "cli/model/model_slices.h"
#include "cli/pool.h"
#include "cli/suite_options.h"
#include "report/summary.h"
#include "scheduler/rate.h"
#include "schemas/scenario_id.h"
#include "worker/versions/versions.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { SLOTS = 16 };

const char *const model_drive_end_names[MODEL_DRIVE_ENDS] = {
    "passed", "below its band", "beyond the suite", "out of budget", "planned"};

struct drive {
    const struct model_drive_options *options;
    struct store *store;
    struct suite *suite;
    uint32_t ticks_max; /* for which version and teacher are trusted */
    struct reach reach;
    bool *driven;                /* [suite->entry_count], owned: in this evaluation */
    struct suite_entry *entries; /* [suite->entry_count], owned: of the next step */
    struct pairs pairs;          /* of the last look */
    struct table table;
    int64_t jobs;
    int64_t looks;
    struct confinement_options confined;
    const struct planner_confinement *confinement;
    struct pools pools;
    const atomic_int *interrupted;
};

/* ---- workers ---- */

static enum status look_at(void *context, const struct store_suite_status *now, struct error *error)
{
    const struct drive *drive = context;
    return store_jobs_open(now) == 0 || atomic_load(drive->interrupted) == 0
               ? STATUS_OK
               : error_set(error, STATUS_CANCELLED,
                           "interrupted; what is driven is kept: the same command goes on");
}

/* The entries of the step, in a world. */
static enum status drive_in(struct drive *drive, const struct suite *step, const char *world,
                            bool evaluation, struct error *error)
{
    struct suite_options options = SUITE_OPTIONS_DEFAULT;
    struct submission submission = {0};
    options.planner = drive->options->planner;
    options.world = world;
    options.confinement = drive->confinement;
    options.store_url = drive->options->store_url;
    options.models = drive->options->models;
    options.version = evaluation ? drive->options->version : NULL;
    options.evaluation = evaluation;
    options.audit = evaluation ? NULL : "off";
    options.seeds = 1;
    TRY(suite_options_build_of(&options, step, &submission, error));
    enum status status =
        submission_send(&submission, drive->store, (uint32_t)options.weight, error);
    THEN(status,
         pools_wait(&drive->pools, drive->store, submission.suite_id, look_at, drive, error));
    submission_finish(&submission);
    return status;
}

/* ---- looks ---- */

static enum status look(struct drive *drive, struct error *error)
{
    table_finish(&drive->table);
    pairs_finish(&drive->pairs);
    drive->table = (struct table){.count = 0};
    drive->pairs = (struct pairs){.count = 0};
    drive->looks++;
    TRY(pairs_read_taken(drive->store, &drive->pairs, error));
    drive->options->leave_out(drive->options->version, &drive->pairs);
    return table_make_judged(&drive->pairs, drive->options->policy, &drive->table, error);
}

/* The version's row of a slice, with the result that is worst over its teachers; NULL: none. */
static const struct table_row *find_row(const struct drive *drive, const struct trust_slice *slice,
                                        struct table_judgement *worst)
{
    const struct model_slices slices = {.table = &drive->table,
                                        .policy = drive->options->policy,
                                        .version = drive->options->version,
                                        .incumbent = drive->options->incumbent};
    const struct table_row *found = NULL;
    for (uint32_t i = 0; i < drive->table.count; i++) {
        const struct table_row *row = &drive->table.rows[i];
        if (model_slices_is_of(row, slices.version) &&
            trust_slice_equal(&row->verdict.slice, slice)) {
            struct table_judgement judged = model_slices_judge(&slices, row);
            if (found == NULL || judged.result != GATE_PASSED) {
                found = row;
                *worst = judged;
            }
        }
    }
    return found;
}

/* ---- what is next ---- */

/* Whether an audited rollout of the version in the slice is of this logical scenario. */
static bool is_drawn(const struct drive *drive, const struct trust_slice *slice,
                     const struct scenario *scenario)
{
    const struct model_version *version = drive->options->version;
    for (uint32_t i = 0; i < drive->pairs.count; i++) {
        const struct pairs_pair *pair = &drive->pairs.pairs[i];
        if (!pair->shadow && pairs_judged(pair) &&
            scenario_id_compare_logical(pair->scenario_id, scenario->id) == 0 &&
            strcmp(pair->student_hash, version->hash) == 0 &&
            strcmp(pair->student_sampler, version->sampler) == 0 &&
            trust_slice_has(slice, (const char(*)[LIMIT_ID_BYTES])pair->slice,
                            pair->safety_critical)) {
            return true;
        }
    }
    return false;
}

/* Of the logical scenario of entry `at`, the case in the slice that is driven next; its own number
 * or a later one, so that each is found once. UINT32_MAX: none, or an earlier one was asked. */
static uint32_t next_case(const struct drive *drive, const struct trust_slice *slice, uint32_t at)
{
    uint32_t best = UINT32_MAX;
    for (uint32_t i = 0; i < drive->suite->entry_count; i++) {
        const struct scenario_document *document = drive->suite->entries[i].document;
        if (scenario_id_compare_logical(document->scenario.id,
                                        drive->suite->entries[at].document->scenario.id) != 0) {
            continue;
        }
        if (i < at) {
            return UINT32_MAX;
        }
        bool better = best == UINT32_MAX ||
                      strcmp(document->hash, drive->suite->entries[best].document->hash) < 0;
        if (better && !drive->driven[i] && document->scenario.horizon_ticks <= drive->ticks_max &&
            reach_has(&document->scenario, slice)) {
            best = i;
        }
    }
    return best;
}

/* Cases that the slice lacks, one of each logical scenario: picked [at most `most`]. */
static uint32_t pick(const struct drive *drive, const struct trust_slice *slice, uint32_t most,
                     uint32_t *picked)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < drive->suite->entry_count && count < most; i++) {
        uint32_t best = next_case(drive, slice, i);
        if (best != UINT32_MAX &&
            !is_drawn(drive, slice, &drive->suite->entries[best].document->scenario)) {
            picked[count++] = best;
        }
    }
    return count;
}

/* Draws that a slice lacks yet, were all to agree; -1: no number will do. */
static int64_t lacking(const struct drive *drive, const struct trust_slice *slice)
{
    struct table_judgement judged;
    const struct table_row *row = find_row(drive, slice, &judged);
    int64_t most = 0;
    for (uint32_t i = 0; row != NULL && i < GATE_PROPERTIES; i++) {
        const struct gate_bands bands = trust_gate_bands(drive->options->policy);
        double band = gate_band(&bands, (enum gate_property)i, slice->safety_critical);
        const struct gate_measure *measure = &row->measure[i];
        if (band > 0.0 && !(measure->above >= log(LOOKS_EVIDENCE))) {
            double agree = measure->draws > 0 ? measure->value * (double)measure->draws : 0.0;
            int64_t more = looks_more(agree, (double)measure->draws - agree, band);
            most = more < 0 || most < 0 ? -1 : more > most ? more : most;
        }
    }
    return most;
}

/* The slice that decides, is not passed and can be, whose interval is the widest: its cases.
 * *end: why there is none. */
static uint32_t choose(const struct drive *drive, uint32_t *picked, struct trust_slice *chosen,
                       enum model_drive_end *end)
{
    uint32_t *found = picked + drive->suite->entry_count; /* scratch behind it */
    uint32_t count = 0;
    double widest = -1.0;
    *end = MODEL_DRIVE_PASSED;
    for (uint32_t i = 0; i < drive->reach.count; i++) {
        const struct trust_slice *slice = &drive->reach.rows[i].slice;
        struct table_judgement judged = {.result = GATE_NOT_SHOWN};
        if (!drive->reach.rows[i].decides) {
            continue;
        }
        const struct table_row *row = find_row(drive, slice, &judged);
        if (judged.result == GATE_PASSED) {
            continue;
        }
        if (judged.result == GATE_BELOW || judged.result == GATE_OPTIMISTIC) {
            *end = MODEL_DRIVE_BELOW;
            return 0;
        }
        double low = 0.0;
        double high = 1.0;
        if (row != NULL && row->measure[GATE_VERDICT].draws > 0) {
            rate_interval(row->measure[GATE_VERDICT].value,
                          (double)row->measure[GATE_VERDICT].draws, &low, &high);
        }
        int64_t lacks = row != NULL ? lacking(drive, slice) : drive->reach.rows[i].needed;
        uint32_t there = pick(drive, slice, drive->suite->entry_count, found);
        if (lacks < 0 || there < lacks || there == 0) {
            *end = *end == MODEL_DRIVE_PASSED ? MODEL_DRIVE_BEYOND : *end;
        } else if (high - low > widest) {
            *end = MODEL_DRIVE_BUDGET; /* if nothing is driven now */
            widest = high - low;
            *chosen = *slice;
            count = there;
            memcpy(picked, found, there * sizeof *picked);
        }
    }
    return count;
}

static enum status drive_step(struct drive *drive, const uint32_t *picked, uint32_t count,
                              const struct trust_slice *slice, struct error *error)
{
    char name[TRUST_SLICE_TEXT_BYTES];
    struct suite step = *drive->suite;
    step.entries = drive->entries;
    step.entry_count = count;
    for (uint32_t i = 0; i < count; i++) {
        drive->driven[picked[i]] = true;
        drive->entries[i] = drive->suite->entries[picked[i]];
        drive->entries[i].planner_count = 0;
    }
    drive->jobs += count;
    text_print(stderr, "look %lld: %s is next, %u job%s\n", (long long)drive->looks,
               trust_slice_text(slice, name), count, count == 1 ? "" : "s");
    TRY(drive_in(drive, &step, "student", true, error));
    return drive_in(drive, &step, "object", false, error);
}

/* Steps until there is nothing to do. */
static enum status drive_all(struct drive *drive, enum model_drive_end *end, struct error *error)
{
    uint32_t *picked = calloc(2 * (size_t)drive->suite->entry_count + 1, sizeof *picked);
    enum status status = memory_check(picked, error, "evaluate: out of memory");
    THEN(status, look(drive, error));
    while (status == STATUS_OK) {
        struct trust_slice slice;
        uint32_t count = choose(drive, picked, &slice, end);
        int64_t left = drive->options->budget - drive->jobs;
        count = count < MODEL_DRIVE_STEP ? count : MODEL_DRIVE_STEP;
        count = (int64_t)count < left ? count : (uint32_t)(left > 0 ? left : 0);
        if (count == 0) {
            break;
        }
        status = drive_step(drive, picked, count, &slice, error);
        THEN(status, look(drive, error));
    }
    free(picked);
    return status;
}

/* For how long both sides are trusted; a teacher that no store points to says so at the first job.
 */
static enum status find_horizon(struct drive *drive, struct error *error)
{
    struct model_version teacher;
    bool found = false;
    int64_t ticks = drive->options->version->agents_ticks;
    TRY(versions_pointed(drive->store, TIER_TEACHER, MODEL_PROMOTED, &teacher, &found, error));
    ticks = found && teacher.agents_ticks < ticks ? teacher.agents_ticks : ticks;
    drive->ticks_max = (uint32_t)ticks;
    return STATUS_OK;
}

static enum status prepare(struct drive *drive, struct error *error)
{
    TRY(confinement_options_settle(&drive->confined, drive->options->store_url, &drive->confinement,
                                   error));
    drive->pools = (struct pools){
        .config = {.store_url = drive->options->store_url,
                   .models = drive->options->models,
                   .device = "auto",
                   .worker_count = (uint32_t)drive->options->workers,
                   .slot_count = SLOTS,
                   .planner_deadline_ms = 1000,
                   .keep_every_ms = KEEP_EVERY_MS,
                   .confinement = drive->confinement},
        .wanted = {[POOLS_BULK] = true, [POOLS_TEACHER] = true},
    };
    TRY(find_horizon(drive, error));
    TRY(cli_suite_load(drive->options->suite, &drive->suite, error));
    TRY(reach_of(drive->suite, drive->options->policy, drive->ticks_max, &drive->reach, error));
    if (!drive->options->json) {
        reach_print(&drive->reach, stdout);
        text_print(stdout, "\n");
    }
    drive->driven = calloc((size_t)drive->suite->entry_count + 1, sizeof *drive->driven);
    drive->entries = calloc((size_t)drive->suite->entry_count + 1, sizeof *drive->entries);
    return memory_check(drive->driven != NULL && drive->entries != NULL ? drive->entries : NULL,
                        error, "evaluate: out of memory");
}

enum status model_drive(const struct model_drive_options *options, struct store *store,
                        json_t **out, struct error *error)
{
    struct drive *drive = calloc(1, sizeof *drive);
    enum model_drive_end end = MODEL_DRIVE_PLANNED;
    TRY(memory_check(drive, error, "evaluate: out of memory"));
    *drive = (struct drive){.options = options,
                            .store = store,
                            .confined = CONFINEMENT_OPTIONS_DEFAULT,
                            .interrupted = cli_catch_interrupts()};
    enum status status = prepare(drive, error);
    if (status == STATUS_OK && !options->plan) {
        status = drive_all(drive, &end, error);
        if (status == STATUS_OK && !options->json) {
            text_print(stdout, "driven: %lld job%s, looked at %lld time%s; %s\n\n",
                       (long long)drive->jobs, summary_plural(drive->jobs), (long long)drive->looks,
                       summary_plural(drive->looks), model_drive_end_names[end]);
        }
    }
    if (status == STATUS_OK) {
        *out = json_pack("{s:s, s:I, s:I, s:s, s:o}", "suite", drive->suite->id, "jobs",
                         (json_int_t)drive->jobs, "looks", (json_int_t)drive->looks, "ended",
                         model_drive_end_names[end], "reach", reach_json(&drive->reach));
    }
    pools_stop(&drive->pools);
    table_finish(&drive->table);
    pairs_finish(&drive->pairs);
    reach_finish(&drive->reach);
    suite_destroy(drive->suite);
    free(drive->driven);
    free(drive->entries);
    free(drive);
    return status;
}
