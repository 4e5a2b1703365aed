/*
 * swerve model: the world models of a directory: what there is, what answers for a tier, what did
 * before, and what their health checks were calibrated on; with --store those of a store.
 */
#include "cli/cli.h"
#include "cli/model/model_store.h"
#include "cli/model/retrain.h"
#include "engine/bench/machine.h"
#include "engine/tinyphysics/tinyphysics_model.h"
#include "scenarios/scenarios.h"
#include "worker/frozen/frozen.h"
#include "worker/models/models.h"
#include "worker/models/precision.h"
#include "worker/run/calibrate.h"
#include "worker/world/world_source.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MODEL_FILE_BYTES_MAX = 1 << 30, PARITY_FRAMES_MAX = 1000000 };

struct model_command {
    const char *directory;
    const char *name;
    const char *suite;
    const char *planner;
    const char *precision;
    int64_t seeds;
    int64_t frames;
    bool json;
    struct models *models;
    enum nn_precision parsed_precision;
};

static bool has_extension(const char *file, size_t *stem)
{
    size_t bytes = strlen(file);
    size_t tail = strlen(".safetensors");
    *stem = bytes > tail ? bytes - tail : 0;
    return bytes > tail && file[0] != '.' && *stem < LIMIT_ID_BYTES &&
           strcmp(file + *stem, ".safetensors") == 0;
}

static const char *promoted_mark(const struct registry *registry, const char *name, enum tier tier)
{
    const struct registry_entry *entry = registry_promoted(registry, tier);
    return entry != NULL && strcmp(entry->name, name) == 0 ? "promoted" : "";
}

static json_t *model_json(const struct model_command *command, const struct models_model *model)
{
    const struct model_config *config = model->config;
    char sampler[LIMIT_ID_BYTES];
    json_t *horizon = json_object();
    models_loader(command->models)->sampler(model->model, CONDITIONING_AGENTS, sampler);
    for (int i = 0; horizon != NULL && i < CONDITIONING_COUNT; i++) {
        json_object_set_new(horizon, conditioning_names[i], json_integer(config->horizon_ticks[i]));
    }
    const char *mark = promoted_mark(models_registry(command->models), model->name, config->tier);
    return json_pack("{s:s, s:s, s:s, s:s, s:b, s:i, s:i, s:i, s:s, s:o, s:b, s:b}", "name",
                     model->name, "hash", model->hash, "tier", tier_names[config->tier], "sampler",
                     sampler, "promoted", mark[0] != '\0', "width", (int)config->width, "layers",
                     (int)config->layers, "steps", (int)config->steps, "title", config->name,
                     "horizon_ticks", horizon, "calibrated", model->bounds.calibrated, "plain_c",
                     model_plain(config));
}

static void print_model(const struct model_command *command, const struct models_model *model)
{
    const struct model_config *config = model->config;
    text_print(stdout, "%-24s %-8s %-9s %.12s  width %u, %u layers, %u steps%s%s\n", model->name,
               tier_names[config->tier],
               promoted_mark(models_registry(command->models), model->name, config->tier),
               model->hash, config->width, config->layers, config->steps,
               model->bounds.calibrated ? "" : "; not calibrated: built-in health bounds",
               model_plain(config) ? "; plain C computes its attention or products: slow" : "");
}

/* The simulator of the controls challenge, where a directory has it: no tier is answered by it. */
static uint32_t print_controls(const char *directory)
{
    char path[LIMIT_PATH_BYTES];
    char hash[SHA256_HEX_BYTES];
    struct error ignored;
    char *data = NULL;
    size_t bytes = 0;
    snprintf(path, sizeof path, "%.*s/" WORLD_CONTROLS_FILE, LIMIT_PATH_BYTES - 32, directory);
    if (file_read(path, MODEL_FILE_BYTES_MAX, &data, &bytes, &ignored) != STATUS_OK) {
        return 0;
    }
    sha256_hex(data, bytes, hash);
    free(data);
    text_print(stdout, "%-24s %-8s %-9s %.12s  the controls challenge's: --world tinyphysics\n",
               "tinyphysics", "-", "", hash);
    return 1;
}

static enum status list_models(struct model_command *command, struct error *error)
{
    const char *directory = models_registry(command->models)->directory;
    DIR *folder = opendir(directory);
    if (folder == NULL) {
        return models_missing(command->directory, TIER_STUDENT, error);
    }
    enum status status = STATUS_OK;
    uint32_t listed = 0;
    json_t *list = json_array();
    const struct dirent *file;
    while (status == STATUS_OK && (file = readdir(folder)) != NULL) {
        char name[LIMIT_ID_BYTES];
        size_t stem = 0;
        const struct models_model *model = NULL;
        if (!has_extension(file->d_name, &stem)) {
            continue;
        }
        listed++;
        snprintf(name, sizeof name, "%.*s", (int)stem, file->d_name);
        status = models_named(command->models, name, command->parsed_precision, &model, error);
        if (status == STATUS_OK && command->json) {
            json_array_append_new(list, model_json(command, model));
        } else if (status == STATUS_OK) {
            print_model(command, model);
        }
    }
    closedir(folder);
    if (status == STATUS_OK && !command->json) {
        listed += print_controls(directory);
    }
    if (status == STATUS_OK && listed == 0 && !command->json) {
        text_print(stdout, "%s: no models\n", directory);
    }
    if (status == STATUS_OK && command->json) {
        status =
            cli_write_json(json_pack("{s:s, s:O}", "directory", directory, "models", list), error);
    }
    json_decref(list);
    return status;
}

static enum status show_model(struct model_command *command, struct error *error)
{
    const struct models_model *model = NULL;
    TRY(models_named(command->models, command->name, command->parsed_precision, &model, error));
    const struct registry_tier *tier =
        &models_registry(command->models)->tiers[model->config->tier];
    json_t *json = model_json(command, model);
    json_t *history = json_array();
    json_t *bounds = json_object();
    for (uint32_t i = 0; history != NULL && i < tier->count; i++) {
        json_array_append_new(history, json_pack("{s:s, s:s, s:I}", "name", tier->entries[i].name,
                                                 "hash", tier->entries[i].hash, "promoted_s",
                                                 (json_int_t)tier->entries[i].promoted_s));
    }
    for (int d = 0; bounds != NULL && d < CONDITIONING_COUNT; d++) {
        json_t *conditioning = json_object();
        for (int i = 0; conditioning != NULL && i < MEASURE_COUNT; i++) {
            json_object_set_new(conditioning, health_measure_kinds[i].name,
                                json_real(model->bounds.bound[d][i]));
        }
        json_object_set_new(bounds, conditioning_names[d], conditioning);
    }
    json_object_set_new(json, "history", history);
    json_object_set_new(json, "health_bounds", bounds);
    return cli_write_json(json, error);
}

/* The simulator of the controls challenge, which needs no promotion: --world tinyphysics names it.
 */
static enum status add_controls(const struct model_command *command, const char *directory,
                                struct error *error)
{
    struct tinyphysics_model *model = NULL;
    char path[LIMIT_PATH_BYTES];
    char *data = NULL;
    size_t bytes = 0;
    TRY(tinyphysics_model_load(command->name, NN_FP32, machine_cpu_flags(NN_FP32), &model, error));
    tinyphysics_model_free(model);
    if (snprintf(path, sizeof path, "%s/%s", directory, WORLD_CONTROLS_FILE) >= (int)sizeof path) {
        return error_set(error, STATUS_LIMIT, "%.200s..: the path is too long", directory);
    }
    if (access(path, F_OK) == 0) {
        return error_set(error, STATUS_CONFLICT, "%s: is there already; remove it first", path);
    }
    TRY(file_read(command->name, MODEL_FILE_BYTES_MAX, &data, &bytes, error));
    enum status status = file_replace(path, data, bytes, 0644, error);
    free(data);
    if (status == STATUS_OK) {
        text_print(stdout, "%s added; \"--world tinyphysics\" drives in it\n", path);
    }
    return status;
}

/* Checks the file where it is, then copies it into the directory under its own name. */
static enum status add_model(struct model_command *command, struct error *error)
{
    const char *slash = strrchr(command->name, '/');
    const char *file = slash != NULL ? slash + 1 : command->name;
    const char *directory = models_registry(command->models)->directory;
    char name[LIMIT_ID_BYTES];
    char path[LIMIT_PATH_BYTES];
    struct model *model = NULL;
    size_t stem = 0;
    size_t bytes = 0;
    char *data = NULL;
    if (strcmp(file, WORLD_CONTROLS_FILE) == 0) {
        return add_controls(command, directory, error);
    }
    if (!has_extension(file, &stem)) {
        return error_set(error, STATUS_USAGE,
                         "%s: expected NAME.safetensors or " WORLD_CONTROLS_FILE, command->name);
    }
    snprintf(name, sizeof name, "%.*s", (int)stem, file);
    TRY(registry_path(directory, name, ".safetensors", path, error));
    TRY(models_loader(command->models)
            ->open(command->name, command->parsed_precision, &model, error));
    models_loader(command->models)->close(model);
    if (access(path, F_OK) == 0) {
        return error_set(error, STATUS_CONFLICT,
                         "%s: there is a model of that name; rename the new one", path);
    }
    enum status status = file_read(command->name, MODEL_FILE_BYTES_MAX, &data, &bytes, error);
    if (status == STATUS_OK) {
        status = file_replace(path, data, bytes, 0644, error);
        free(data);
    }
    if (status == STATUS_OK) {
        text_print(stdout, "%s added; \"swerve model promote %s\" puts it into service\n", path,
                   name);
    }
    return status;
}

static enum status promote_model(struct model_command *command, struct error *error)
{
    const struct models_model *model = NULL;
    TRY(models_named(command->models, command->name, command->parsed_precision, &model, error));
    struct registry registry = *models_registry(command->models);
    struct registry_entry entry = {.promoted_s = clock_wall_ns(clock_system()) / NS_PER_S};
    memcpy(entry.name, model->name, sizeof entry.name);
    snprintf(entry.hash, sizeof entry.hash, "%s", model->hash);
    const struct registry_entry *now = registry_promoted(&registry, model->config->tier);
    if (now != NULL && strcmp(now->name, entry.name) == 0 && strcmp(now->hash, entry.hash) == 0) {
        text_print(stdout, "%s is promoted for tier %s already\n", entry.name,
                   tier_names[model->config->tier]);
        return STATUS_OK;
    }
    registry_promote(&registry, model->config->tier, &entry);
    TRY(registry_save(&registry, error));
    text_print(stdout,
               "%s (%.12s) answers for tier %s now; %sa directory asks for no evaluation, as a "
               "store does\n",
               entry.name, entry.hash, tier_names[model->config->tier],
               model->bounds.calibrated ? "" : "not calibrated: built-in health bounds; ");
    return STATUS_OK;
}

static enum status rollback_model(struct model_command *command, struct error *error)
{
    struct registry registry = *models_registry(command->models);
    enum tier tier = TIER_COUNT;
    TRY(model_store_tier(command->name, &tier, error));
    TRY(registry_rollback(&registry, tier, error));
    TRY(registry_save(&registry, error));
    const struct registry_entry *entry = registry_promoted(&registry, tier);
    text_print(stdout, "%s%s%.12s answers for tier %s again\n", entry->name,
               entry->hash[0] != '\0' ? ", " : "", entry->hash, tier_names[tier]);
    return STATUS_OK;
}

static enum status calibrate_model(struct model_command *command, struct error *error)
{
    const struct models_model *model = NULL;
    struct calibrate_result result;
    char found[LIMIT_PATH_BYTES];
    if (command->suite == NULL) {
        return error_set(error, STATUS_USAGE, "calibrate: expected --suite FILE");
    }
    enum status status =
        models_named(command->models, command->name, command->parsed_precision, &model, error);
    if (status == STATUS_OK) {
        models_hold(command->models, model);
    }
    const struct calibrate_options options = {
        .models = command->models,
        .model = model,
        .precision = command->parsed_precision,
        .suite = cli_suite_path(command->suite, found),
        .planner = command->planner,
        .seed_count = (uint32_t)command->seeds,
    };
    THEN(status, calibrate_run(&options, &result, error));
    if (status == STATUS_OK) {
        text_print(stdout, "%s%s: bounds from %lld rollouts, %lld ticks\n", model->name,
                   health_bounds_extension(command->parsed_precision), (long long)result.rollouts,
                   (long long)result.ticks);
    }
    return status;
}

static void print_miss(void *context, const struct frozen_miss *miss)
{
    (void)context;
    text_print(stdout, "%-44s %s\n", miss->name, miss->reason);
}

/* Compares the model with itself in single precision, in the conditionings that it is trusted in;
 * the proof of one that passed lies beside its weights. */
static enum status compare_layers(struct model_command *command, const struct suite *suite,
                                  const struct models_model *model,
                                  const struct models_model *exact, struct error *error)
{
    const char *directory = models_registry(command->models)->directory;
    const struct frozen_bands bands = frozen_bands_default();
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    struct frozen_parity_options options = {.candidate = model->model,
                                            .exact = exact->model,
                                            .thread_count = cores > 0 ? (uint32_t)cores : 1,
                                            .frames = command->frames,
                                            .filled = true};
    struct precision_proof proof = {.precision = command->parsed_precision};
    struct frozen_parity *parity = calloc(1, sizeof *parity);
    TRY(memory_check(parity, error, "model: out of memory"));
    for (int c = 0; c < CONDITIONING_COUNT; c++) {
        options.conditionings[c] = model->config->horizon_ticks[c] > 0;
    }
    enum status status = frozen_parity_run(&options, suite, parity, error);
    if (status == STATUS_OK) {
        frozen_parity_print(parity, stdout);
        uint32_t verdicts = frozen_parity_judge(parity, &bands, print_miss, NULL);
        uint32_t missed = frozen_parity_missed(parity, &bands);
        for (uint32_t s = 0; s < FROZEN_STRATA; s++) {
            proof.frames += parity->frames[s];
        }
        snprintf(proof.hash, sizeof proof.hash, "%s", model->hash);
        memcpy(proof.suite, suite->id, sizeof proof.suite);
        memcpy(proof.suite_hash, suite->hash, sizeof proof.suite_hash);
        precision_forget(directory, model->name, proof.precision);
        status = missed == 0 ? precision_save(&proof, frozen_parity_json(parity), directory,
                                              model->name, error)
                             : error_set(error, STATUS_MISMATCH,
                                         "model %s in %s: %u of %u layers in a weather, light and "
                                         "conditioning are too far from single precision",
                                         model->name, command->precision, missed, verdicts);
    }
    if (status == STATUS_OK) {
        text_print(stdout, "%s%s: %lld frames compared\n", model->name,
                   precision_extension(proof.precision), (long long)proof.frames);
    }
    free(parity);
    return status;
}

static enum status prove_model(struct model_command *command, struct error *error)
{
    const struct models_model *model = NULL;
    const struct models_model *exact = NULL;
    struct suite *suite = NULL;
    if (command->suite == NULL || command->parsed_precision == NN_FP32 || command->frames < 1 ||
        command->frames > PARITY_FRAMES_MAX) {
        return error_set(
            error, STATUS_USAGE,
            "parity: expected --suite FILE, --precision bf16 or int8 and --frames 1 to "
            "%d",
            PARITY_FRAMES_MAX);
    }
    TRY(models_named(command->models, command->name, command->parsed_precision, &model, error));
    models_hold(command->models, model);
    enum status status = models_named(command->models, command->name, NN_FP32, &exact, error);
    THEN(status, cli_suite_load(command->suite, &suite, error));
    THEN(status, compare_layers(command, suite, model, exact, error));
    suite_destroy(suite);
    models_release(command->models, model);
    return status;
}

static const struct {
    const char *name;
    uint32_t arguments; /* behind it */
    enum status (*run)(struct model_command *command, struct error *error);
} verbs[] = {
    {"ls", 0, list_models},          {"show", 1, show_model},
    {"add", 1, add_model},           {"promote", 1, promote_model},
    {"rollback", 1, rollback_model}, {"calibrate", 1, calibrate_model},
    {"parity", 1, prove_model},
};

/* One verb of the directory's; `count`: words behind "model". */
static enum status run_verb(struct model_command *model, const char *name, uint32_t count,
                            const char *usage, struct error *error)
{
    size_t verb = 0;
    while (verb < COUNT_OF(verbs) && strcmp(verbs[verb].name, name) != 0) {
        verb++;
    }
    if (verb == COUNT_OF(verbs) && model_store_has(name)) {
        return error_set(error, STATUS_USAGE,
                         "model %s: expected --store URL, of whose versions one is meant", name);
    }
    if (verb == COUNT_OF(verbs) || count != 1 + verbs[verb].arguments ||
        model->seeds > LIMIT_SEEDS) {
        return error_set(error, STATUS_USAGE, "model: expected %s", usage);
    }
    return verbs[verb].run(model, error);
}

/* Options that would be left out of account without a store: the wrong models would be moved. */
static enum status refuse_store_options(const struct model_store_command *stored,
                                        struct error *error)
{
    const struct {
        const char *name;
        bool given;
    } options[] = {
        {"--name", stored->as != NULL},           {"--parents", stored->parents != NULL},
        {"--note", stored->note != NULL},         {"--against", stored->against != NULL},
        {"--policy", stored->policy != NULL},     {"--force", stored->force},
        {"--evidence", stored->evidence != NULL}, {"--frozen", stored->frozen != NULL},
        {"--layout", stored->layouts != NULL},    {"--html", stored->html != NULL},
        {"--drive", stored->drive != NULL},       {"--plan", stored->plan != NULL},
    };
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        if (options[i].given) {
            return error_set(
                error, STATUS_USAGE,
                "model: %s is for versions that a store keeps: name the store with --store URL",
                options[i].name);
        }
    }
    return STATUS_OK;
}

/* The fastest precision in which the model of a file was proven, by what lies beside it. */
static enum status choose_precision(struct model_command *model, struct error *error)
{
    char directory[LIMIT_PATH_BYTES];
    char name[LIMIT_ID_BYTES];
    char text[512];
    struct models *models = NULL;
    struct precision_choice choice;
    size_t stem = 0;
    const char *slash = model->name != NULL ? strrchr(model->name, '/') : NULL;
    const char *file = slash != NULL ? slash + 1 : model->name;
    if (file == NULL || !has_extension(file, &stem)) {
        return error_set(error, STATUS_USAGE, "%s: expected NAME.safetensors",
                         file != NULL ? model->name : "add");
    }
    snprintf(name, sizeof name, "%.*s", (int)stem, file);
    snprintf(directory, sizeof directory, "%.*s", slash != NULL ? (int)(slash - model->name) : 1,
             slash != NULL ? model->name : ".");
    TRY(models_open(directory[0] != '\0' ? directory : "/", NULL, &models, error));
    enum status status = precision_choose(models, name, &choice, error);
    models_close(models);
    if (status == STATUS_OK) {
        model->parsed_precision = choice.precision;
        precision_describe(&choice, name, text, sizeof text);
        text_print(stderr, "swerve: %s\n", text);
    }
    return status;
}

/* `count`: words behind "model". */
static int run_command(struct model_command *model, struct model_store_command *stored,
                       const char *verb, uint32_t count, const char *usage)
{
    struct error error;
    bool needs_name = strcmp(verb, "ls") != 0;
    if (stored->url != NULL && needs_name != (count == 2)) {
        error_set(&error, STATUS_USAGE, "model: expected %s", usage);
        return cli_fail(&error);
    }
    enum status status = stored->url == NULL ? refuse_store_options(stored, &error) : STATUS_OK;
    THEN(status, stored->url != NULL && strcmp(verb, "add") == 0 &&
                         strcmp(model->precision, PRECISION_AUTO) == 0
                     ? choose_precision(model, &error)
                     : models_parse_precision(model->precision, &model->parsed_precision, &error));
    THEN(status, models_open(model->directory, NULL, &model->models, &error));
    if (status == STATUS_OK && stored->url != NULL) {
        stored->verb = verb;
        stored->name = model->name;
        stored->json = model->json;
        stored->models = model->models;
        stored->precision = model->parsed_precision;
        stored->planner = model->planner;
        stored->directory = model->directory;
        status = model_store_run(stored, &error);
    } else if (status == STATUS_OK) {
        status = run_verb(model, verb, count, usage, &error);
    }
    models_close(model->models);
    return status == STATUS_OK ? 0 : cli_fail(&error);
}

#define MODEL_STORE_DEFAULTS                                  \
    .percent = MODEL_SHARE_DEFAULT, .days = 30, .jobs = 1000, \
    .workers = sysconf(_SC_NPROCESSORS_ONLN)

/* Rows of moves between states. */
#define MODEL_MOVE_ROWS(stored)                                                                  \
    {"--days", "N", "evaluate: how long a pass counts (30)", .number = &(stored).days},          \
        {"--share", "PERCENT",                                                                   \
         "canary: share of the tier's jobs, 1 to 100 (5); shadow: 0 to 100 (the policy's, else " \
         "0)",                                                                                   \
         .number = &(stored).percent},                                                           \
        {"--evidence", "TEXT", "moves in a store: why, kept with the event",                     \
         .text = &(stored).evidence},                                                            \
    {                                                                                            \
        "--force", NULL,                                                                         \
            "canary, promote, shadow: although the store would refuse, for the reason in "       \
            "--evidence",                                                                        \
            .flag = &(stored).force                                                              \
    }

static const char default_precision[] = "bf16";

/* A retraining, with the options that it shares with the other verbs. */
static int retrain(struct retrain_options *options, const struct model_command *model,
                   const struct model_store_command *stored)
{
    struct error error;
    options->store_url = stored->url;
    options->name = stored->as;
    options->policy = stored->policy;
    options->drive = stored->drive;
    options->jobs = stored->jobs;
    options->workers = stored->workers;
    options->days = stored->days;
    options->percent = stored->percent;
    options->calibrate = model->suite;
    options->planner = model->planner;
    options->models = model->directory;
    options->json = model->json;
    if (stored->url == NULL) {
        error_set(&error, STATUS_USAGE,
                  "model retrain: expected --store URL, whose student is retrained");
        return cli_fail(&error);
    }
    if (model->precision != default_precision) {
        error_set(&error, STATUS_USAGE,
                  "model retrain: expected no --precision, found %.64s: a retrained student has "
                  "that of the promoted one",
                  model->precision);
        return cli_fail(&error);
    }
    return model_retrain(options);
}

int command_model(int argc, char **argv)
{
    struct model_command model = {.planner = "builtin:reference",
                                  .precision = default_precision,
                                  .frames = PRECISION_FRAMES_LEAST};
    struct model_store_command stored = {MODEL_STORE_DEFAULTS};
    struct retrain_options retraining = {RETRAIN_DEFAULTS};
    const struct cli_option rows[] = {
        {"--store", "URL", "versions of this store instead of the directory's (docs/models.md)",
         .text = &stored.url},
        {"--name", "NAME", "add to a store: its name there (the file's)", .text = &stored.as},
        {"--parents", "TEXT", "add to a store: what it was made from", .text = &stored.parents},
        {"--note", "TEXT", "add to a store: what it was trained on", .text = &stored.note},
        {"--against", "NAME", "evaluate: the version that it is compared with (who is promoted)",
         .text = &stored.against},
        {"--policy", "FILE",
         "evaluate, watch, shadow: bands, limits and share declared before (docs/trust.md)",
         .text = &stored.policy},
        {"--frozen", "SUITE", "evaluate: drives it on both models as well, under the same actions",
         .text = &stored.frozen},
        {"--layout", "NAMES",
         "evaluate --frozen: conditionings, with commas (those it is trusted in)",
         .text = &stored.layouts},
        {"--plan", "SUITE", "evaluate: says what a suite can show", .text = &stored.plan},
        {"--drive", "SUITE",
         "evaluate: drives what is lacking of it first, widest slice first, until passed or below",
         .text = &stored.drive},
        {"--jobs", "N", "evaluate --drive: so many at the most (1000)", .number = &stored.jobs},
        {"--workers", "N", "evaluate --drive: processes (one a core)", .number = &stored.workers},
        {"--html", "FILE", "report: a page instead", .text = &stored.html},
        MODEL_MOVE_ROWS(stored),
        {"--models", "DIR", "world models ($SWERVE_MODELS, else the shipped ones)",
         .text = &model.directory},
        {"--precision", "NAME", "fp32, bf16, int8, or, of add to a store, auto (bf16)",
         .text = &model.precision},
        {"--suite", "FILE", "calibrate: healthy scenarios to drive; parity: those to compare in",
         .text = &model.suite},
        {"--frames", "N",
         "parity: frames to compare, over all weathers, lights, conditionings (500)",
         .number = &model.frames},
        {"--planner", "SPEC",
         "calibrate, evaluate --frozen, --drive: who drives (builtin:reference)",
         .text = &model.planner},
        {"--seeds", "N", "calibrate: seeds 1 to N instead of the suite's", .number = &model.seeds},
        {"--json", NULL, "ls: print one JSON object", .flag = &model.json},
        RETRAIN_OPTION_ROWS(retraining),
    };
    const struct cli_command command = {
        "model",
        "ls|show NAME|add FILE|promote NAME|rollback TIER|calibrate NAME|\n"
        "                    parity NAME [options]\n"
        "       swerve model ls|show NAME|add FILE|candidate NAME|shadow NAME|canary NAME|\n"
        "                    promote NAME|retire NAME|rollback TIER|watch TIER|\n"
        "                    evaluate NAME|report NAME\n"
        "                    --store URL [options]\n"
        "       swerve model retrain --store URL --work DIR [options]",
        "World models: which there are and which answers for a tier.",
        CLI_ROWS(rows, 1, 2),
    };
    const char *arguments[2] = {NULL, NULL};
    uint32_t count = 0;
    CLI_PARSE(&command, argc, argv, arguments, &count);
    model.name = arguments[1];
    if (strcmp(arguments[0], "retrain") == 0 && count == 1) {
        return retrain(&retraining, &model, &stored);
    }
    return run_command(&model, &stored, arguments[0], count, command.usage);
}
