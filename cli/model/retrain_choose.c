/*
 * Models and suites of a retraining. See retrain_choose.h.
 */
#include "cli/model/retrain_choose.h"

#include "base/array.h"
#include "base/file.h"
#include "cli/cli.h"
#include "report/trust/disagreements.h"
#include "report/trust/lessons.h"
#include "report/trust/suite_folder.h"
#include "schemas/scenario_id.h"
#include "worker/models/models.h"
#include "worker/versions/versions.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { WEIGHTS_BYTES_MAX = 1 << 30, OUTCOMES_PAGE = 100 };

/* ---- models ---- */

static struct retrain_model model_of(const struct model_version *version)
{
    struct retrain_model model;
    memcpy(model.name, version->name, sizeof model.name);
    memcpy(model.hash, version->hash, sizeof model.hash);
    memcpy(model.precision, version->precision, sizeof model.precision);
    return model;
}

static enum status find_teacher(const struct retrain_options *options, struct retrain_model *out,
                                struct error *error)
{
    struct models *models = NULL;
    const struct models_model *model = NULL;
    TRY(models_open(options->models, NULL, &models, error));
    enum status status = models_available(models, TIER_TEACHER)
                             ? models_promoted(models, TIER_TEACHER, NN_BF16, &model, error)
                             : models_missing(options->models, TIER_TEACHER, error);
    if (status == STATUS_OK) {
        *out = (struct retrain_model){.precision = "bf16"};
        memcpy(out->name, model->name, sizeof out->name);
        snprintf(out->hash, sizeof out->hash, "%s", model->hash);
    }
    models_close(models);
    return status;
}

enum status retrain_choose_models(const struct retrain_options *options, struct store *store,
                                  struct retrain_model *student, struct retrain_model *teacher,
                                  struct error *error)
{
    struct model_version version;
    bool found = false;
    TRY(versions_pointed(store, TIER_STUDENT, MODEL_PROMOTED, &version, &found, error));
    if (!found) {
        return error_set(error, STATUS_NOT_FOUND,
                         "retrain: expected a promoted student in the store, which is what is "
                         "retrained; \"swerve model add\" and \"swerve model promote\" make one");
    }
    *student = model_of(&version);
    TRY(versions_pointed(store, TIER_TEACHER, MODEL_PROMOTED, &version, &found, error));
    if (found) {
        *teacher = model_of(&version);
        return STATUS_OK;
    }
    return find_teacher(options, teacher, error);
}

/* The weights as a file: of the store, else of the models directory. */
static enum status put_weights(const struct retrain_options *options,
                               const struct retrain_plan *plan, struct store *store,
                               const struct retrain_model *model, const char *name,
                               struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    char source[2 * LIMIT_PATH_BYTES];
    char directory[LIMIT_PATH_BYTES];
    char hash[SHA256_HEX_BYTES];
    void *data = NULL;
    char *text = NULL;
    size_t bytes = 0;
    TRY(retrain_plan_path(plan, name, path, error));
    if (store->ops->artifact_get(store, model->hash, &data, &bytes, error) != STATUS_OK) {
        models_directory(options->models, directory);
        snprintf(source, sizeof source, "%s/%s.safetensors", directory, model->name);
        TRY(file_read(source, WEIGHTS_BYTES_MAX, &text, &bytes, error));
        data = text;
    }
    sha256_hex(data, bytes, hash);
    enum status status =
        strcmp(hash, model->hash) == 0
            ? file_replace(path, data, bytes, 0644, error)
            : error_set(error, STATUS_CONFLICT, "%s: expected weights %.12s, found %.12s", path,
                        model->hash, hash);
    free(data);
    return status;
}

/* ---- suites ---- */

/* Behind the audits, the student's drives that were flagged. */
static enum status add_flagged(struct store *store, const char *student_hash, struct pairs *pairs,
                               struct error *error)
{
    struct store_outcome_filter filter = {
        .by_verdict = true, .verdict = VERDICT_FLAGGED, .limit = OUTCOMES_PAGE};
    struct outcome *page = calloc(OUTCOMES_PAGE, sizeof *page);
    uint32_t count = OUTCOMES_PAGE;
    enum status status = memory_check(page, error, "retrain: out of memory");
    while (status == STATUS_OK && count == OUTCOMES_PAGE) {
        status = store->ops->outcomes(store, &filter, page, &count, error);
        for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
            filter.after_id = page[i].id;
            if (page[i].tier != TIER_STUDENT || page[i].audit_of != 0 ||
                strcmp(page[i].model_hash, student_hash) != 0) {
                continue;
            }
            status = array_room(&pairs->pairs, pairs->count, sizeof *pairs->pairs, error);
            if (status == STATUS_OK) {
                pairs->pairs[pairs->count] = pairs_pair_of_answer(&page[i]);
                pairs->pairs[pairs->count++].shadow = false;
            }
        }
    }
    free(page);
    return status;
}

static enum status write_side(const struct lessons *lessons, const struct retrain_plan *plan,
                              struct store *store, bool held_out, struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    uint32_t count = 0;
    uint32_t scenarios = 0;
    TRY(retrain_plan_path(plan, held_out ? "suite/held-out" : "suite/train", path, error));
    const struct pairs_pair **list = calloc((size_t)lessons->count + 1, sizeof *list);
    TRY(memory_check(list, error, "retrain: out of memory"));
    for (uint32_t i = 0; i < lessons->count; i++) {
        if (lessons->lessons[i].held_out == held_out) {
            list[count++] = lessons->lessons[i].pair;
        }
    }
    enum status status = disagreements_write_list(
        list, count, store, path, held_out ? "held-out" : "train",
        held_out ? "Audited scenarios that end a training" : "Audited scenarios to learn from",
        &scenarios, error);
    free(list);
    return status;
}

static enum status load(const struct retrain_plan *plan, const char *name, struct suite **out,
                        struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    TRY(retrain_plan_path(plan, name, path, error));
    return suite_load(path, out, error);
}

static bool is_taught(const struct suite *train, const struct scenario *scenario)
{
    for (uint32_t i = 0; i < train->entry_count; i++) {
        if (scenario_id_compare_logical(train->entries[i].document->scenario.id, scenario->id) ==
            0) {
            return true;
        }
    }
    return false;
}

static enum status add_entry(struct suite_folder *folder, const struct suite_entry *entry,
                             struct error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    TRY(scenario_canonical_text(entry->document, &text, &bytes, error));
    enum status status = suite_folder_add(folder, entry->document->hash, text, bytes, error);
    free(text);
    for (uint32_t i = 0; status == STATUS_OK && i < entry->seed_count; i++) {
        status = suite_folder_seed(folder, entry->seeds[i], error);
    }
    return status;
}

/* Scenarios that judge, without those that were trained on: else the gate asks what was learnt by
 * heart. */
static enum status write_judges(const struct retrain_options *options,
                                const struct retrain_plan *plan, struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    struct suite *train = NULL;
    struct suite *judges = NULL;
    struct suite_folder folder = {.entries = NULL};
    TRY(retrain_plan_path(plan, "suite/evaluate", path, error));
    enum status status = load(plan, "suite/train/suite.json", &train, error);
    THEN(status, options->drive != NULL ? cli_suite_load(options->drive, &judges, error)
                                        : load(plan, "suite/held-out/suite.json", &judges, error));
    THEN(status, suite_folder_begin(&folder, path, error));
    for (uint32_t i = 0; status == STATUS_OK && i < judges->entry_count; i++) {
        const struct suite_entry *entry = &judges->entries[i];
        if (!is_taught(train, &entry->document->scenario)) {
            status = add_entry(&folder, entry, error);
        }
    }
    if (status == STATUS_OK && json_array_size(folder.entries) == 0) {
        status = error_set(error, STATUS_BAD_INPUT,
                           "--drive: expected a logical scenario that is not trained on, found "
                           "none in %.200s",
                           options->drive);
    }
    THEN(status, suite_folder_write(&folder, "evaluate", "Scenarios that judge a retrained student",
                                    error));
    suite_folder_finish(&folder);
    suite_destroy(judges);
    suite_destroy(train);
    return status;
}

enum status retrain_choose(const struct retrain_options *options, double held_out,
                           const struct retrain_plan *plan, struct store *store,
                           const struct retrain_model *student, const struct retrain_model *teacher,
                           struct retrain_chosen *out, struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    const struct lessons_options how = {
        .student_hash = student->hash, .healthy = (uint32_t)options->healthy, .held_out = held_out};
    struct pairs pairs = {0};
    struct lessons lessons = {0};
    TRY(retrain_plan_path(plan, "suite", path, error));
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        return error_set(error, STATUS_IO, "%s: %s", path, strerror(errno));
    }
    enum status status = pairs_read_taken(store, &pairs, error);
    THEN(status, add_flagged(store, student->hash, &pairs, error));
    THEN(status, lessons_choose(&pairs, &how, &lessons, error));
    THEN(status, write_side(&lessons, plan, store, false, error));
    THEN(status, write_side(&lessons, plan, store, true, error));
    THEN(status, write_judges(options, plan, error));
    THEN(status, put_weights(options, plan, store, student, "base.safetensors", error));
    THEN(status, put_weights(options, plan, store, teacher, "teacher.safetensors", error));
    if (status == STATUS_OK) {
        *out = (struct retrain_chosen){.differing = lessons.differing,
                                       .healthy = lessons.healthy,
                                       .families = lessons.families,
                                       .families_held_out = lessons.families_held_out};
    }
    lessons_finish(&lessons);
    pairs_finish(&pairs);
    return status;
}

enum status retrain_choose_look(const struct retrain_plan *plan, json_t **out, struct error *error)
{
    static const char *const suites[] = {"train", "held-out", "evaluate"};
    static const char *const weights[] = {"base", "teacher"};
    char name[64];
    char path[LIMIT_PATH_BYTES];
    char hash[SHA256_HEX_BYTES];
    json_t *found = json_object();
    enum status status = memory_check(found, error, "retrain: out of memory");
    for (size_t i = 0; status == STATUS_OK && i < COUNT_OF(suites); i++) {
        struct suite *suite = NULL;
        snprintf(name, sizeof name, "suite/%s/suite.json", suites[i]);
        status = load(plan, name, &suite, error);
        if (status == STATUS_OK) {
            json_object_set_new(found, suites[i], json_string(suite->hash));
        }
        suite_destroy(suite);
    }
    for (size_t i = 0; status == STATUS_OK && i < COUNT_OF(weights); i++) {
        snprintf(name, sizeof name, "%s.safetensors", weights[i]);
        status = retrain_plan_path(plan, name, path, error);
        THEN(status, retrain_plan_digest(path, hash, error));
        if (status == STATUS_OK) {
            json_object_set_new(found, weights[i], json_string(hash));
        }
    }
    if (status != STATUS_OK) {
        json_decref(found);
        return status;
    }
    *out = found;
    return STATUS_OK;
}
