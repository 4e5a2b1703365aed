/*
 * swerve datagen: training data for world models, as safetensors shards. Clips are jobs of a store:
 * the one that is named, or one of its own beside the shards, which goes when they are complete.
 */
#include "cli/cli.h"
#include "cli/confinement_options.h"
#include "cli/pool.h"
#include "engine/worlds/foreign.h"
#include "worker/datagen/datagen_set.h"
#include "worker/planner/planner_trial.h"
#include "worker/world/world_source.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"
#include "base/units.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void print_shard(const char *path, uint32_t clips)
{
    text_print(stdout, "%s: %u clip%s\n", path, clips, clips == 1 ? "" : "s");
    fflush(stdout);
}

static enum status parse_fraction(const char *text, double *out, struct error *error)
{
    return cli_real(text, 0.0, 1.0, out)
               ? STATUS_OK
               : error_set(error, STATUS_USAGE,
                           "--held-out: expected a number from 0 to 1, found \"%s\"", text);
}

static enum status parse_part(const char *text, enum datagen_part *out, struct error *error)
{
    static const char *const names[] = {"all", "train", "held-out"};
    size_t part = cli_name(text, names, COUNT_OF(names));
    if (part == COUNT_OF(names)) {
        return error_set(error, STATUS_USAGE,
                         "--only: expected all, train or held-out, found \"%s\"", text);
    }
    *out = (enum datagen_part)part;
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
    const char *rig_file; /* NULL: none */
    struct rig rig;
    int64_t threads, workers;
    const char *store_url; /* as given; NULL: one of its own, at: */
    char own[LIMIT_PATH_BYTES];
    const struct planner_confinement *confinement;
    struct store *store;
    const atomic_int *interrupted;
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
        .tier = tier,
        .name = model->name,
        .hash = model->hash,
        .sampler = source->sampler,
    };
    return STATUS_OK;
}

/* ---- jobs ---- */

static const char *url_of(const struct datagen_source *source)
{
    return source->store_url != NULL ? source->store_url : source->own;
}

/* A planner that cannot even start is told to the user now, not clip by clip. */
static enum status try_planners(const struct datagen_options *options,
                                const struct datagen_source *source, struct error *error)
{
    for (uint32_t i = 0; i < options->planner_count; i++) {
        TRY(planner_try(options->planners[i], source->confinement, NULL, false, PLANNER_TRY_MS,
                        NULL, error));
    }
    return STATUS_OK;
}

static enum status look_at(void *context, const struct store_suite_status *now, struct error *error)
{
    const struct datagen_source *source = context;
    const int64_t ended = store_jobs_ended(now);
    const int64_t open = store_jobs_open(now);
    return open == 0 || atomic_load(source->interrupted) == 0
               ? STATUS_OK
               : error_set(error, STATUS_CANCELLED,
                           "datagen: interrupted with %lld of %lld drives made, which are kept: "
                           "the same command goes on",
                           (long long)ended, (long long)(ended + open));
}

static enum status drive(void *context, const char *suite_id, struct error *error)
{
    static const struct logger logger = {STDERR_FILENO, LOG_ERROR, "swerve"};
    struct datagen_source *source = context;
    struct pools *pools = calloc(1, sizeof *pools);
    TRY(memory_check(pools, error, "datagen: out of memory"));
    pools->config = (struct pool_config){
        .store_url = url_of(source),
        .models = source->models,
        .device = "cpu",
        .world = world_spec_is(source->world) ? source->world : NULL,
        .worker_count = (uint32_t)source->workers,
        .slot_count = 1,
        .thread_count = (uint32_t)source->threads,
        .planner_deadline_ms = 1000,
        .keep_every_ms = KEEP_EVERY_MS,
        .confinement = source->confinement,
        .logger = &logger,
    };
    pools_want(pools, source->found.tier == TIER_TEACHER ? "teacher" : "bulk");
    enum status status = pools_wait(pools, source->store, suite_id, look_at, source, error);
    pools_stop(pools);
    free(pools);
    return status;
}

static enum status open_store(struct datagen_source *source, const char *directory,
                              struct error *error)
{
    static const struct logger logger = {STDERR_FILENO, LOG_ERROR, "swerve"};
    const struct store_config config = {.logger = &logger};
    int length = snprintf(source->own, sizeof source->own, "%s/.clips/jobs.db", directory);
    if (length < 0 || (size_t)length >= sizeof source->own) {
        return error_set(error, STATUS_LIMIT, "%.64s..: a name longer than %d bytes", directory,
                         LIMIT_PATH_BYTES - 1);
    }
    if (source->store_url == NULL) {
        char folder[LIMIT_PATH_BYTES];
        snprintf(folder, sizeof folder, "%s/.clips", directory);
        TRY(make_directory(folder, error));
    }
    TRY(store_open(url_of(source), &config, &source->store, error));
    return pool_check_rights(source->store, error);
}

/* Its own store has served when the shards are complete. */
static enum status close_store(struct datagen_source *source, const char *directory, bool complete,
                               struct error *error)
{
    char folder[LIMIT_PATH_BYTES];
    cli_store_close(source->store);
    snprintf(folder, sizeof folder, "%s/.clips", directory);
    return !complete || source->store_url != NULL || file_remove_tree(folder)
               ? STATUS_OK
               : error_set(error, STATUS_IO, "%s: cannot remove: %s", folder, strerror(errno));
}

/* The rig is every scenario's, so that jobs have it. */
static enum status set_rig(struct suite *suite, struct datagen_source *source, struct error *error)
{
    TRY(rig_read(source->rig_file, &source->rig, NULL, error));
    json_t *json = rig_encode(&source->rig);
    enum status status = memory_check(json, error, "%s: out of memory", source->rig_file);
    THEN(status, suite_set_rig(suite, json, error));
    json_decref(json);
    return status;
}

static int generate(struct datagen_options *options, struct datagen_source *source,
                    const char *path, bool json)
{
    struct error error;
    struct suite *suite = NULL;
    struct datagen_result result;
    int set = -1;
    int64_t start_ns = clock_now_ns(clock_system());
    enum status status = cli_suite_load(path, &suite, &error);
    if (strcmp(source->world, "object") != 0) {
        THEN(status, find_world(source, &error));
        options->world = &source->found;
    }
    if (status == STATUS_OK && source->rig_file != NULL) {
        status = set_rig(suite, source, &error);
        options->rig = &source->rig;
    }
    THEN(status, try_planners(options, source, &error));
    THEN(status, make_directory(options->directory, &error));
    THEN(status, datagen_set_take(suite, options, &set, &error));
    THEN(status, open_store(source, options->directory, &error));
    options->store = source->store;
    options->drive = drive;
    options->context = source;
    THEN(status, datagen_run(suite, options, &result, &error));
    suite_destroy(suite);
    models_close(source->opened);
    struct error why;
    enum status closed = close_store(source, options->directory, status == STATUS_OK, &why);
    datagen_set_release(set);
    if (status != STATUS_OK || closed != STATUS_OK) {
        int code = cli_fail(status != STATUS_OK ? &error : &why);
        int number = atomic_load(source->interrupted);
        return status == STATUS_CANCELLED && number != 0 ? 128 + number : code;
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
        "%u clips of %u frames in %u shard%s, %.2f GB, %.0f frames/s; %u scenarios to train on, "
        "%u held out\n",
        result.train_clips + result.held_out_clips, options->frames, result.shards,
        result.shards == 1 ? "" : "s", (double)result.bytes * 1e-9, (double)result.frames / wall_s,
        result.train_scenarios, result.held_out_scenarios);
    return 0;
}

static enum status check_sizes(int64_t clips, int64_t frames, int64_t shard_clips,
                               struct error *error)
{
    const struct cli_bounds bounds[] = {
        {"--clips", clips, 1, DATAGEN_CLIPS_MAX},
        {"--frames", frames, 1, DATAGEN_FRAMES_MAX},
        {"--shard-clips", shard_clips, 1, DATAGEN_SHARD_CLIPS_MAX},
    };
    return cli_bounds_check(bounds, COUNT_OF(bounds), error);
}

static enum status settle(struct datagen_source *source, struct confinement_options *confinement,
                          struct error *error)
{
    const struct cli_bounds bounds[] = {
        {"--threads", source->threads, 1, 64},
        {"--workers", source->workers, 0, POOL_WORKERS_MAX},
    };
    TRY(cli_bounds_check(bounds, COUNT_OF(bounds), error));
    return confinement_options_settle(confinement,
                                      source->store_url != NULL ? source->store_url : "",
                                      &source->confinement, error);
}

int command_datagen(int argc, char **argv)
{
    struct cli_texts planners = {.max = DATAGEN_PLANNERS_MAX};
    const char *directory = NULL;
    const char *held_out = "0.1";
    const char *only = "all";
    int64_t clips = 512, frames = 16;
    int64_t seed = 1, shard_clips = 32;
    bool json = false;
    struct datagen_source source = {.world = "object",
                                    .precision = "bf16",
                                    .threads = 1,
                                    .workers = sysconf(_SC_NPROCESSORS_ONLN)};
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
        {"--rig", "FILE", "whose sensors are drawn beside, a tensor each",
         .text = &source.rig_file},
        {"--models", "DIR", "world models ($SWERVE_MODELS, else the shipped ones)",
         .text = &source.models},
        {"--precision", "NAME", "of a world model: fp32, bf16 or int8 (bf16)",
         .text = &source.precision},
        {"--threads", "N", "of a world model, 1 to 64 (1)", .number = &source.threads},
        {"--store", "URL", "job store whose workers make the clips (one of its own, in DIR)",
         .text = &source.store_url},
        {"--workers", "N", "processes that make clips here; 0: workers elsewhere do (one per core)",
         .number = &source.workers},
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
        .clips = (uint32_t)clips,
        .frames = (uint32_t)frames,
        .shard_clips = (uint32_t)shard_clips,
        .seed = (uint64_t)seed,
        .planner_count = planners.count,
        .shard_done = json ? NULL : print_shard,
    };
    memcpy(options.planners, planners.values, planners.count * sizeof planners.values[0]);
    enum status status = directory == NULL
                             ? error_set(&error, STATUS_USAGE, "datagen: -o DIR is missing")
                             : parse_fraction(held_out, &options.held_out, &error);
    THEN(status, parse_part(only, &options.part, &error));
    THEN(status, check_sizes(clips, frames, shard_clips, &error));
    THEN(status, settle(&source, &confinement, &error));
    source.interrupted = cli_catch_interrupts();
    return status != STATUS_OK ? cli_fail(&error) : generate(&options, &source, path, json);
}
