/*
 * From options and a file name to a checked submission.
 */
#include "worker/suite_options.h"

enum status suite_options_build(const struct suite_options *options, const char *path,
                                struct suite **suite, struct submission *submission,
                                struct error *error)
{
    struct submission_options build = {
        .planner = options->planner,
        .backend = "cpu",
        .seed_count = (uint32_t)options->seeds,
        .attempts_max = (uint32_t)options->attempts,
    };
    if (options->seeds > LIMIT_SEEDS || options->attempts < 1 || options->attempts > 100 ||
        options->weight < 1 || options->weight > 100) {
        return error_set(error, STATUS_USAGE,
                         "expected --seeds up to %d, --attempts and --weight 1 to 100",
                         LIMIT_SEEDS);
    }
    enum status status = cli_device(options->device, error);
    if (status == STATUS_OK) {
        status = cli_world_choice(options->world, &build.policy.choice, error);
    }
    struct suite *loaded = NULL;
    if (status == STATUS_OK) {
        status = suite_load(path, &loaded, error);
    }
    if (status == STATUS_OK) {
        status = submission_build(loaded, &build, submission, error);
    }
    if (status != STATUS_OK) {
        suite_destroy(loaded);
        return status;
    }
    *suite = loaded;
    return STATUS_OK;
}
