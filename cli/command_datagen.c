/*
 * swerve datagen: training data for world models, as safetensors shards.
 */
#include "cli/cli.h"
#include "cli/confinement_options.h"
#include "engine/worlds/foreign.h"
#include "worker/datagen/datagen.h"
#include "worker/world/world_source.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void print_shard(const char *path, uint32_t clips)
{
    text_print(stdout, "%s: %u clip%s\n", path, clips, clips == 1 ? "" : "s");
    fflush(stdout);
}

static enum status parse_fraction(const char *text, double *out, struct error *error)
{
    char *end;
    errno = 0;
    double value = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !(value >= 0.0 && value <= 1.0)) {
        return error_set(error, STATUS_USAGE,
                         "--held-out: expected a number from 0 to 1, found \"%s\"", text);
    }
    *out = value;
    return STATUS_OK;
}

static enum status parse_part(const char *text, enum datagen_part *out, struct error *error)
{
    static const char *const names[] = {"all", "train", "held-out"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        if (strcmp(text, names[i]) == 0) {
            *out = (enum datagen_part)i;
            return STATUS_OK;
        }
    }
    return error_set(error, STATUS_USAGE, "--only: expected all, train or held-out, found \"%s\"",
                     text);
}

static enum status check_number(const char *name, int64_t value, int64_t high, uint32_t *out,
                                struct error *error)
{
    if (value < 1 || value > high) {
        return error_set(error, STATUS_USAGE, "%s: expected 1 to %lld, found %lld", name,
                         (long long)high, (long long)value);
    }
    *out = (uint32_t)value;
    return STATUS_OK;
}

/* The directory exists afterwards; its parent must. */
static enum status make_directory(const char *path, struct error *error)
{
    struct stat info;
    if (mkdir(path, 0777) != 0 && errno != EEXIST) {
        return error_set(error, STATUS_IO, "%s: cannot create the directory: %s", path,
                         strerror(errno));
    }
    if (stat(path, &info) != 0 || !S_ISDIR(info.st_mode)) {
        return error_set(error, STATUS_IO, "%s: expected a directory", path);
    }
    return STATUS_OK;
}

/* The world of a name or spec, as --world says it elsewhere. */
struct datagen_source {
    const char *world, *models, *precision;
    int64_t threads;
    const struct planner_confinement *confinement;
    struct models *opened;
    struct datagen_world found;
    char sampler[LIMIT_ID_BYTES];
};

static enum status find_world(struct datagen_source *source, struct error *error)
{
    const struct world_source_options how = {.confinement = source->confinement};
    const struct models_model *model = NULL;
    enum nn_precision precision = NN_BF16;
    enum world_choice choice;
    TRY(cli_world_choice(source->world, &choice, error));
    if (choice != WORLD_STUDENT && choice != WORLD_TEACHER) {
        return error_set(error, STATUS_USAGE,
                         "datagen: --world: expected object, student, teacher, plugin:FILE.so, "
                         "exec:COMMAND or onnx:MODEL.onnx, found \"%.200s\"",
                         source->world);
    }
    enum tier tier = choice == WORLD_TEACHER ? TIER_TEACHER : TIER_STUDENT;
    TRY(models_parse_precision(source->precision, &precision, error));
    TRY(models_open(source->models, NULL, &source->opened, error));
    if (world_spec_is(source->world)) {
        TRY(world_source_lend(source->world, NULL, &how, source->opened, error));
    } else if (!models_available(source->opened, tier)) {
        return models_missing(source->models, tier, error);
    }
    TRY(models_promoted(source->opened, tier, precision, &model, error));
    models_hold(source->opened, model);
    models_sampler(source->opened, model, CONDITIONING_AGENTS, source->sampler);
    const struct foreign *foreign = model->foreign;
    source->found = (struct datagen_world){
        .ops =
            foreign == NULL ? world_ops_for_tier(tier) : foreign_world_ops(foreign, TIER_STUDENT),
        .config = {.model = model->model,
                   .foreign = foreign,
                   .conditioning = CONDITIONING_AGENTS,
                   .thread_count = (uint32_t)source->threads,
                   .picture_bounds = model->bounds.pictures},
        .bounds = &model->bounds,
        .name = model->name,
        .hash = model->hash,
        .sampler = source->sampler,
    };
    return STATUS_OK;
}

static int generate(struct datagen_options *options, struct datagen_source *source,
                    const char *path, bool json)
{
    struct error error;
    struct suite *suite = NULL;
    struct datagen_result result;
    int64_t start_ns = clock_now_ns(clock_system());
    enum status status = cli_suite_load(path, &suite, &error);
    if (strcmp(source->world, "object") != 0) {
        THEN(status, find_world(source, &error));
        options->world = &source->found;
    }
    THEN(status, make_directory(options->directory, &error));
    THEN(status, datagen_run(suite, options, &result, &error));
    suite_destroy(suite);
    models_close(source->opened);
    if (status != STATUS_OK) {
        return cli_fail(&error);
    }
    double wall_s = (double)(clock_now_ns(clock_system()) - start_ns) / (double)NS_PER_S;
    if (json) {
        return cli_print_json(json_pack(
            "{s:s, s:i, s:i, s:i, s:I, s:I, s:i, s:i, s:f}", "output", options->directory, "shards",
            (int)result.shards, "train_clips", (int)result.train_clips, "held_out_clips",
            (int)result.held_out_clips, "frames", (json_int_t)result.frames, "bytes",
            (json_int_t)result.bytes, "train_scenarios", (int)result.train_scenarios,
            "held_out_scenarios", (int)result.held_out_scenarios, "wall_s", wall_s));
    }
    text_print(
        stdout,
        "%u clips of %u frames in %u shards, %.2f GB, %.0f frames/s; %u scenarios to train on, "
        "%u held out\n",
        result.train_clips + result.held_out_clips, options->frames, result.shards,
        (double)result.bytes * 1e-9, (double)result.frames / wall_s, result.train_scenarios,
        result.held_out_scenarios);
    return 0;
}

int command_datagen(int argc, char **argv)
{
    struct cli_texts planners = {.max = DATAGEN_PLANNERS_MAX};
    const char *directory = NULL;
    const char *held_out = "0.1";
    const char *only = "all";
    int64_t clips = 512;
    int64_t frames = 16;
    int64_t seed = 1;
    int64_t shard_clips = 32;
    bool json = false;
    struct datagen_source source = {.world = "object", .precision = "bf16", .threads = 1};
    struct confinement_options confinement = CONFINEMENT_OPTIONS_DEFAULT;
    const struct cli_option rows[] = {
        {"--output", "DIR", "where the shards go (also -o); made if it is not there",
         .text = &directory},
        {"--clips", "N", "how many clips (512)", .number = &clips},
        {"--frames", "N", "consecutive ticks of a clip (16)", .number = &frames},
        {"--seed", "N", "another seed, other clips (1)", .number = &seed},
        {"--planner", "SPEC", "drive with this; repeat for several (a mixture of builtin ones)",
         .texts = &planners},
        {"--shard-clips", "N", "clips per file (32)", .number = &shard_clips},
        {"--held-out", "SHARE", "scenarios to keep from training, 0 to 1 (0.1)", .text = &held_out},
        {"--only", "PART", "all, train or held-out (all)", .text = &only},
        {"--world", "NAME|SPEC",
         "object, or whose frames are written beside: student, teacher, plugin:, exec:, onnx: "
         "(object)",
         .text = &source.world},
        {"--models", "DIR", "world models ($SWERVE_MODELS, else the shipped ones)",
         .text = &source.models},
        {"--precision", "NAME", "of a world model: fp32, bf16 or int8 (bf16)",
         .text = &source.precision},
        {"--threads", "N", "of a world model, 1 to 64 (1)", .number = &source.threads},
        {"--json", NULL, "print one JSON object", .flag = &json},
        CONFINEMENT_OPTION_ROWS(confinement),
    };
    const struct cli_command command = {
        "datagen",
        "SUITE -o DIR [options]",
        "Drives a suite with good and bad planners and writes training shards for world models\n"
        "(engine/model.md): train-*.safetensors, and heldout-*.safetensors from other scenarios.",
        CLI_ROWS(rows, 1, 1),
    };
    const char *path = NULL;
    uint32_t count;
    CLI_PARSE(&command, argc, argv, &path, &count);
    struct error error;
    struct datagen_options options = {
        .directory = directory,
        .seed = (uint64_t)seed,
        .planner_count = planners.count,
        .shard_done = json ? NULL : print_shard,
    };
    memcpy(options.planners, planners.values, planners.count * sizeof planners.values[0]);
    enum status status = directory == NULL
                             ? error_set(&error, STATUS_USAGE, "datagen: -o DIR is missing")
                             : parse_fraction(held_out, &options.held_out, &error);
    THEN(status, parse_part(only, &options.part, &error));
    THEN(status, check_number("--clips", clips, DATAGEN_CLIPS_MAX, &options.clips, &error));
    THEN(status, check_number("--frames", frames, DATAGEN_FRAMES_MAX, &options.frames, &error));
    THEN(status, check_number("--shard-clips", shard_clips, DATAGEN_SHARD_CLIPS_MAX,
                              &options.shard_clips, &error));
    if (status == STATUS_OK && (source.threads < 1 || source.threads > 64)) {
        status = error_set(&error, STATUS_USAGE, "--threads: expected 1 to 64, found %lld",
                           (long long)source.threads);
    }
    THEN(status, confinement_options_settle(&confinement, "", &source.confinement, &error));
    options.confinement = source.confinement;
    return status != STATUS_OK ? cli_fail(&error) : generate(&options, &source, path, json);
}
