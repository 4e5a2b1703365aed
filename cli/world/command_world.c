/*
 * swerve world: what a world model of the user's says of itself, and whether it keeps its word. The
 * shipped models can be asked as well: `swerve world check student`.
 */
#include "base/text.h"
#include "cli/cli.h"
#include "cli/confinement_options.h"
#include "engine/worlds/foreign.h"
#include "schemas/json_record.h"
#include "worker/onnx/ort.h"
#include "worker/run/calibrate.h"
#include "worker/world/world_check.h"
#include "worker/world/world_source.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TICKS_DEFAULT = 24, TICKS_MIN = 8 };

struct world_command {
    const char *spec;
    const char *suite;
    const char *layout;
    const char *models;
    const char *rig_file; /* NULL: the built-in rig */
    const char *planner;  /* calibrate */
    int64_t seeds;        /* calibrate; 0: the suite's */
    int64_t ticks;
    int64_t deadline_ms;
    int64_t threads;
    bool json;
    struct confinement_options confinement;
    struct world_source_options how;
    struct models *opened;
    struct world_source *source;
    struct health_bounds bounds; /* that `run` applies */
    struct rig rig;
};

static const char *const form_names[SWERVE_WORLD_FORM_COUNT] = {"ego", "window", "rig"};
static const char *const form_titles[SWERVE_WORLD_FORM_COUNT] = {"EGO", "WINDOW", "RIG"};

static const char *const row_verdicts[] = {"ok", "BAD", "-"};

/* The first scenario with agents. */
static enum status find_scenario(const struct suite *suite, const struct scenario **out,
                                 struct error *error)
{
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        if (suite->entries[i].document->scenario.agent_count > 0) {
            *out = &suite->entries[i].document->scenario;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_BAD_INPUT, "suite %s: expected a scenario with agents",
                     suite->id);
}

/* A model of ours, by its tier. */
static enum status take_model(struct world_command *command, enum tier tier,
                              struct world_check_options *options, struct error *error)
{
    const struct models_model *model = NULL;
    TRY(models_open(command->models, NULL, &command->opened, error));
    TRY(models_promoted(command->opened, tier, NN_BF16, &model, error));
    models_hold(command->opened, model);
    options->ops = world_ops_for_tier(tier);
    options->config.model = model->model;
    options->exact = true;
    command->bounds = model->bounds;
    return STATUS_OK;
}

/* Bounds that a calibration left in the directory of models. */
static enum status find_bounds(struct world_command *command, struct error *error)
{
    char directory[LIMIT_PATH_BYTES];
    char name[LIMIT_ID_BYTES];
    const char *hash = world_source_hash(command->source);
    models_directory(command->models, directory);
    return health_bounds_load(directory, registry_world_name(hash, name), hash, NN_BF16,
                              &command->bounds, error);
}

/* Check of a world. One that cannot be opened is a finding, too. */
static enum status take_world(struct world_command *command, struct world_check_options *options,
                              struct error *error)
{
    if (strcmp(command->spec, "student") == 0 || strcmp(command->spec, "teacher") == 0) {
        enum tier tier = command->spec[0] == 's' ? TIER_STUDENT : TIER_TEACHER;
        return take_model(command, tier, options, error);
    }
    TRY(world_source_open(command->spec, &command->how, &command->source, error));
    const struct foreign *foreign = world_source_foreign(command->source);
    options->ops = foreign_world_ops(foreign, TIER_STUDENT);
    options->config.foreign = foreign;
    options->exact = (foreign->declared.flags & SWERVE_WORLD_DETERMINISTIC) != 0;
    options->config.picture_bounds = command->bounds.pictures;
    return find_bounds(command, error);
}

/* Whether the host has no ONNX Runtime for an ONNX file: no finding about the world. */
static bool lacks_runtime(const struct world_command *command, struct error *error)
{
    struct ort *ort = NULL;
    bool lacks = strncmp(command->spec, "onnx:", 5) == 0 && ort_open(&ort, error) != STATUS_OK;
    ort_close(ort);
    return lacks;
}

static json_t *declared_json(const struct world_command *command)
{
    const struct foreign *foreign =
        command->source != NULL ? world_source_foreign(command->source) : NULL;
    if (foreign == NULL) {
        return json_null();
    }
    const struct swerve_world_declared *declared = &foreign->declared;
    return json_pack("{s:s, s:s, s:s, s:b, s:b, s:b, s:b, s:b, s:f, s:s}", "name", declared->name,
                     "version", declared->version, "form", form_names[declared->form],
                     "deterministic", (declared->flags & SWERVE_WORLD_DETERMINISTIC) != 0, "bev",
                     (declared->flags & SWERVE_WORLD_BEV) != 0, "cameras",
                     (declared->flags & SWERVE_WORLD_CAMERAS) != 0, "moves_agents",
                     (declared->flags & SWERVE_WORLD_MOVES_AGENTS) != 0, "reads_raster",
                     (declared->flags & SWERVE_WORLD_READS_RASTER) != 0, "horizon_s",
                     declared->horizon_ticks * declared->tick_s, "hash",
                     world_source_hash(command->source));
}

static int print_json(const struct world_command *command, const struct world_check *check)
{
    json_t *rows = json_array();
    for (uint32_t i = 0; i < check->row_count; i++) {
        const struct world_check_row *row = &check->rows[i];
        json_array_append_new(rows, json_pack("{s:s, s:s, s:o}", "check", row->name, "verdict",
                                              row_verdicts[row->verdict], "text",
                                              json_text_new(row->text, sizeof row->text)));
    }
    return cli_print_json(json_pack("{s:s, s:b, s:o, s:o}", "world", command->spec, "ok",
                                    check->bad_count == 0, "declared", declared_json(command),
                                    "checks", rows));
}

static void print_chunks(const struct swerve_world_declared *declared)
{
    char states[32] = "";
    if (declared->states_max > 0) {
        snprintf(states, sizeof states, ", %u at once", declared->states_max);
    }
    if (declared->form == SWERVE_WORLD_FORM_RIG) {
        text_print(stdout, "chunks of %u frames, the first of %u, at %u Hz%s\n",
                   declared->chunk_frames, declared->first_frames, declared->rate_hz, states);
    }
}

static void print_text(const struct world_command *command, const struct world_check *check)
{
    const struct foreign *foreign =
        command->source != NULL ? world_source_foreign(command->source) : NULL;
    if (foreign != NULL) {
        const struct swerve_world_declared *declared = &foreign->declared;
        text_print(stdout, "%s %s: %s frames%s%s%s, %s, trusted for %g s; hash %.12s\n",
                   declared->name, declared->version, form_titles[declared->form],
                   (declared->flags & SWERVE_WORLD_BEV) != 0 ? ", grid" : "",
                   (declared->flags & SWERVE_WORLD_CAMERAS) != 0 ? ", cameras" : "",
                   (declared->flags & SWERVE_WORLD_MOVES_AGENTS) != 0 ? ", moves agents" : "",
                   (declared->flags & SWERVE_WORLD_DETERMINISTIC) != 0 ? "deterministic"
                                                                       : "not deterministic",
                   declared->horizon_ticks * declared->tick_s, world_source_hash(command->source));
        print_chunks(declared);
    }
    for (uint32_t i = 0; i < check->row_count; i++) {
        const struct world_check_row *row = &check->rows[i];
        text_print(stdout, "%-4s %-9s %s\n", row_verdicts[row->verdict], row->name, row->text);
    }
}

/* Mistakes of a world are in *check; an error is somebody else's. */
static enum status run(struct world_command *command, struct world_check *check,
                       struct error *error)
{
    struct suite *suite = NULL;
    const struct scenario *scenario = NULL;
    struct world_check_options options = {
        .config = {.thread_count = (uint32_t)command->threads, .rig = &command->rig},
        .ticks = (uint32_t)command->ticks,
        .bounds = &command->bounds,
    };
    TRY(models_parse_conditioning(command->layout, &options.config.conditioning, error));
    rig_swerve(&command->rig);
    if (command->rig_file != NULL) {
        TRY(rig_read(command->rig_file, &command->rig, NULL, error));
    }
    TRY(cli_suite_load(command->suite != NULL ? command->suite : "smoke", &suite, error));
    enum status status = find_scenario(suite, &scenario, error);
    THEN(status, prepared_create(scenario, &options.prepared, error));
    if (status == STATUS_OK) {
        status = take_world(command, &options, error);
        if (status == STATUS_DEVICE && !lacks_runtime(command, error)) {
            check->rows[0] =
                (struct world_check_row){.name = "declares", .verdict = WORLD_CHECK_BAD};
            snprintf(check->rows[0].text, sizeof check->rows[0].text, "%.290s", error->text);
            check->row_count = check->bad_count = 1;
            status = STATUS_OK;
        } else {
            THEN(status, world_check_run(&options, check, error));
        }
    }
    prepared_unref(options.prepared);
    suite_destroy(suite);
    return status;
}

/* Drives the suite, writes the world's bounds into the directory of models, and says so. */
static enum status calibrate(struct world_command *command, struct error *error)
{
    struct calibrate_result result;
    char name[LIMIT_ID_BYTES];
    char found[LIMIT_PATH_BYTES];
    struct calibrate_options options = {
        .planner = command->planner, .precision = NN_BF16, .seed_count = (uint32_t)command->seeds};
    if (!world_spec_is(command->spec)) {
        return error_set(error, STATUS_USAGE,
                         "world calibrate: expected a world of yours, found \"%s\"; models are "
                         "calibrated by swerve model calibrate",
                         command->spec);
    }
    if (command->suite == NULL) {
        return error_set(error, STATUS_USAGE, "world calibrate: expected --suite FILE");
    }
    options.suite = cli_suite_path(command->suite, found);
    TRY(models_open(command->models, NULL, &command->opened, error));
    TRY(world_source_lend(command->spec, NULL, &command->how, command->opened, error));
    TRY(models_promoted(command->opened, TIER_STUDENT, NN_BF16, &options.model, error));
    options.models = command->opened;
    const bool pictures = options.model->foreign->declared.form == SWERVE_WORLD_FORM_RIG;
    if (command->rig_file != NULL && !pictures) {
        return error_set(error, STATUS_USAGE,
                         "--rig: expected a world of the form RIG, found %s of the form %s",
                         options.model->foreign->declared.name,
                         form_titles[options.model->foreign->declared.form]);
    }
    if (command->rig_file != NULL) {
        TRY(rig_read(command->rig_file, &command->rig, NULL, error));
        options.rig = &command->rig;
    }
    if (options.planner == NULL) { /* one that looks at nothing drives by any rig */
        options.planner = pictures ? "builtin:maintain" : "builtin:reference";
    }
    TRY(calibrate_run(&options, &result, error));
    if (command->json) {
        return cli_write_json(json_pack("{s:s, s:s, s:I, s:I}", "world", command->spec, "bounds",
                                        registry_world_name(options.model->hash, name), "rollouts",
                                        (json_int_t)result.rollouts, "ticks",
                                        (json_int_t)result.ticks),
                              error);
    }
    text_print(stdout,
               "%s: bounds from %lld rollouts, %lld ticks, in %s/%s%s; what was flagged before is "
               "driven again by run --fresh\n",
               command->spec, (long long)result.rollouts, (long long)result.ticks,
               models_registry(command->opened)->directory,
               registry_world_name(options.model->hash, name), health_bounds_extension(NN_BF16));
    return STATUS_OK;
}

/* The verb of the command line; the exit code. */
static int run_verb(struct world_command *world, const char *verb, const char *usage)
{
    struct error error;
    if (strcmp(verb, "calibrate") == 0) {
        return calibrate(world, &error) == STATUS_OK ? 0 : cli_fail(&error);
    }
    struct world_check *check = calloc(1, sizeof *check);
    enum status status = memory_check(check, &error, "world: out of memory");
    if (status == STATUS_OK && strcmp(verb, "check") != 0) {
        status = error_set(&error, STATUS_USAGE, "world: expected %s", usage);
    }
    THEN(status, run(world, check, &error));
    if (status != STATUS_OK) {
        free(check);
        return cli_fail(&error);
    }
    int code = check->bad_count > 0 ? status_exit_code(STATUS_MISMATCH) : 0;
    if (!world->json) {
        print_text(world, check);
    } else if (print_json(world, check) != 0) {
        code = 1;
    }
    free(check);
    return code;
}

int command_world(int argc, char **argv)
{
    struct world_command world = {
        .layout = "agents",
        .ticks = TICKS_DEFAULT,
        .threads = 1,
        .confinement = CONFINEMENT_OPTIONS_DEFAULT,
    };
    const struct cli_option rows[] = {
        {"--suite", "FILE",
         "check: its first scenario with agents is driven (smoke); calibrate: all of it",
         .text = &world.suite},
        {"--ticks", "N", "check: of a rollout, 8 to 200 (24)", .number = &world.ticks},
        {"--layout", "CONDITIONING",
         "check: what it is given, agents, map, none, foresee, tokens (agents)",
         .text = &world.layout},
        {"--rig", "FILE", "whose cameras a world of the form RIG makes (the built-in rig)",
         .text = &world.rig_file},
        {"--threads", "N", "check: that it may use, 1 to 64 (1)", .number = &world.threads},
        {"--planner", "SPEC",
         "calibrate: who drives (builtin:reference; of the form RIG builtin:maintain)",
         .text = &world.planner},
        {"--seeds", "N", "calibrate: seeds 1 to N instead of the suite's", .number = &world.seeds},
        {"--deadline-ms", "MS", "longest answer of a process (10000; to start it has 60000)",
         .number = &world.deadline_ms},
        {"--models", "DIR",
         "world models, and bounds of worlds ($SWERVE_MODELS, else the shipped ones)",
         .text = &world.models},
        {"--json", NULL, "print one JSON object", .flag = &world.json},
        CONFINEMENT_OPTION_ROWS(world.confinement),
    };
    const struct cli_command command = {
        "world",
        "check plugin:FILE.so|exec:COMMAND|onnx:MODEL.onnx|student|teacher [options]\n"
        "       swerve world calibrate plugin:FILE.so|exec:COMMAND|onnx:MODEL.onnx [options]",
        "Whether a world model keeps the contract of schemas/world/world.h, and what of it would "
        "be\n"
        "flagged; health bounds from what it shows where it is healthy (docs/worlds.md).",
        CLI_ROWS(rows, 2, 2),
    };
    const char *arguments[2] = {NULL, NULL};
    struct error error;
    int code = 0;
    CLI_PARSE(&command, argc, argv, arguments, NULL);
    if (world.ticks < TICKS_MIN || world.ticks > WORLD_CHECK_TICKS_MAX || world.threads < 1 ||
        world.threads > 64 || world.deadline_ms < 0 || world.seeds < 0 ||
        world.seeds > LIMIT_SEEDS) {
        error_set(&error, STATUS_USAGE,
                  "world: expected %s, --ticks %d to %d, --threads 1 to 64, --seeds 1 to %d",
                  command.usage, TICKS_MIN, WORLD_CHECK_TICKS_MAX, LIMIT_SEEDS);
        return cli_fail(&error);
    }
    world.spec = arguments[1];
    world.how.step_ms = world.deadline_ms;
    code = confinement_options_settle(&world.confinement, "", &world.how.confinement, &error) ==
                   STATUS_OK
               ? run_verb(&world, arguments[0], command.usage)
               : cli_fail(&error);
    world_source_close(world.source);
    models_close(world.opened);
    return code;
}
