/*
 * swerve search: where in the declared ranges of a suite's parameters a planner fails, and where
 * failing begins. Drives are jobs of one suite in the store, so that they can be shown, replayed
 * and reported like any other, and a search that was interrupted goes on.
 */
#include "cli/search/search_run.h"

#include "base/check.h"
#include "base/text.h"
#include "cli/confinement_options.h"
#include "report/draw/painter.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SHARE_MIN = 10, BUDGET_MAX = 10000, RESOLUTION_MAX = 100000 };

/* Every logical scenario with its space and an equal share of the budget. */
static enum status begin(struct search_run *run, struct error *error)
{
    run->count = range_set_count(run->set);
    int64_t seeds = run->options->suite.seeds;
    int64_t drives_each = (seeds == SEEDS_NOT_GIVEN ? 0 : seeds) + run->options->suite.nominal;
    int64_t points = run->options->budget / (drives_each > 0 ? drives_each : 1);
    if (points / run->count < SHARE_MIN) {
        return error_set(
            error, STATUS_USAGE,
            "--budget: expected at least %lld drives, %d points for each of %u logical "
            "scenarios, found %lld",
            (long long)(SHARE_MIN * run->count * drives_each), SHARE_MIN, run->count,
            (long long)run->options->budget);
    }
    run->logicals = calloc(run->count, sizeof *run->logicals);
    TRY(memory_check(run->logicals, error, "search: out of memory"));
    for (uint32_t l = 0; l < run->count; l++) {
        struct search_logical *logical = &run->logicals[l];
        logical->scenario = range_set_scenario(run->set, l);
        logical->share = (uint32_t)points / run->count + (l < (uint32_t)points % run->count);
        logical->space.count = logical->scenario->range_count;
        for (uint32_t d = 0; d < logical->space.count; d++) {
            const struct range *range = &logical->scenario->ranges[d];
            if (range->choice_count > SEARCH_CHOICES_MAX) {
                return error_set(
                    error, STATUS_LIMIT, "%s: expected at most %d values of parameter %s, found %u",
                    logical->scenario->file, SEARCH_CHOICES_MAX, range->name, range->choice_count);
            }
            logical->space.dimensions[d].choice_count = range->choice_count;
        }
    }
    return STATUS_OK;
}

static void finish(struct search_run *run)
{
    for (uint32_t l = 0; run->logicals != NULL && l < run->count; l++) {
        struct search_logical *logical = &run->logicals[l];
        for (uint32_t i = 0; i < logical->drive_count; i++) {
            free(logical->drives[i].worst);
        }
        free(logical->drives);
        free(logical->clusters);
        free(logical->boundaries);
    }
    free(run->logicals);
    range_set_destroy(run->set);
    cli_store_close(run->store);
}

/* The bulk pool stays from one round to the next; the teacher's begins with its first job. */
static void set_pools(struct search_run *run)
{
    const struct search_options *options = run->options;
    run->pools.wanted[POOLS_BULK] = true;
    run->pools.config = (struct pool_config){
        .store_url = cli_store_url(options->store_url),
        .models = options->suite.models,
        .device = options->suite.device,
        .worker_count = (uint32_t)options->workers,
        .slot_count = (uint32_t)options->slots,
        .planner_deadline_ms = options->planner_deadline_ms,
        .keep_every_ms = KEEP_EVERY_MS,
        .confinement = options->suite.confinement,
        .verbose = options->verbose,
        .logger = run->logger,
    };
}

static enum status search(struct search_run *run, const char *given, struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    struct suite *suite = NULL;
    const struct store_config config = {.logger = run->logger};
    /* The suite as it is, for its mistakes and its name. */
    TRY(cli_suite_load(given, &suite, error));
    memcpy(run->base_id, suite->id, sizeof run->base_id);
    suite_destroy(suite);
    TRY(range_set_load(cli_suite_path(given, path), &run->set, error));
    TRY(begin(run, error));
    TRY(store_open(cli_store_url(run->options->store_url), &config, &run->store, error));
    TRY(pool_check_rights(run->store, error));
    set_pools(run);
    enum status status = search_plan(run, error);
    pools_stop(&run->pools);
    return status;
}

static enum status check_options(struct search_options *options, struct error *error)
{
    const struct cli_bounds bounds[] = {
        {"--budget", options->budget, SHARE_MIN, BUDGET_MAX},
        {"--resolution", options->resolution, 2, RESOLUTION_MAX},
        {"--workers", options->workers, 1, POOL_WORKERS_MAX},
        {"--slots", options->slots, 1, LIMIT_SLOTS},
    };
    TRY(cli_bounds_check(bounds, COUNT_OF(bounds), error));
    if (options->draw != NULL) {
        bool svg;
        TRY(painter_kind("--draw", options->draw, &svg, error));
    }
    if (options->suite.fresh) {
        return error_set(error, STATUS_USAGE, "--fresh: a search drives every point once");
    }
    options->suite.store_url = options->store_url;
    /* Boundaries are of parameters: by default nothing else varies. */
    options->suite.nominal = options->suite.nominal || options->suite.seeds == SEEDS_NOT_GIVEN;
    return STATUS_OK;
}

static int run_search(struct search_options *options, const char *path)
{
    const struct logger logger = {STDERR_FILENO, options->verbose ? LOG_INFO : LOG_ERROR,
                                  "swerve search"};
    struct search_run *run = calloc(1, sizeof *run);
    struct error error;
    int code = 0;
    if (memory_check(run, &error, "search: out of memory") != STATUS_OK) {
        return cli_fail(&error);
    }
    run->options = options;
    run->logger = &logger;
    run->interrupted = cli_catch_interrupts();
    if (search(run, path, &error) != STATUS_OK) {
        code = cli_fail(&error);
        code = error.status == STATUS_CANCELLED && atomic_load(run->interrupted) != 0
                   ? 128 + atomic_load(run->interrupted)
                   : code;
    } else if (options->draw != NULL &&
               search_draw_picture(run, options->draw, &error) != STATUS_OK) {
        code = cli_fail(&error);
    } else if (options->json) {
        code = cli_print_json(search_json(run));
    } else {
        search_print(run);
    }
    finish(run);
    free(run);
    return code;
}

int command_search(int argc, char **argv)
{
    struct search_options options = {
        .suite = SUITE_OPTIONS_DEFAULT,
        .budget = 200,
        .seed = 1,
        .resolution = 200,
        .workers = sysconf(_SC_NPROCESSORS_ONLN),
        .slots = 16,
        .planner_deadline_ms = 1000,
    };
    struct confinement_options confinement = CONFINEMENT_OPTIONS_DEFAULT;
    const struct cli_option rows[] = {
        {"--budget", "N", "drives, not dollars, at least 10 for each logical scenario (200)",
         .number = &options.budget, .group = "Search"},
        {"--search-seed", "N", "of what the search draws (1)", .number = &options.seed},
        {"--resolution", "N", "boundaries to this part of a parameter's range (200)",
         .number = &options.resolution},
        {"--draw", "FILE", "boundaries as a picture too: FILE.svg or FILE.png",
         .text = &options.draw},
        SUITE_OPTION_ROWS(options.suite),
        {"--store", "PATH", "job store ($SWERVE_STORE, else swerve.db)", .text = &options.store_url,
         .group = "Store and workers"},
        {"--workers", "N", "worker processes (one per core)", .number = &options.workers},
        {"--slots", "N", "rollouts at a time per worker, 1 to 1024 (16)", .number = &options.slots},
        {"--json", NULL, "print one JSON object", .flag = &options.json},
        {"--verbose", NULL, "say what is going on", .flag = &options.verbose},
        CONFINEMENT_OPTION_ROWS(confinement),
        {"--planner-deadline-ms", "MS", "longest answer of an exec planner (1000)",
         .number = &options.planner_deadline_ms},
    };
    const struct cli_command command = {
        "search",
        "SUITE [options]",
        "Looks for failures in the ranges of parameters that the suite or its scenarios declare "
        "(\"ranges\",\nor the span of a grid), and for where failing begins. The same seed gives "
        "the same search.",
        CLI_ROWS(rows, 1, 1),
    };
    const char *path = NULL;
    struct error error;
    CLI_PARSE(&command, argc, argv, &path, NULL);
    if (check_options(&options, &error) != STATUS_OK ||
        confinement_options_settle(&confinement, cli_store_url(options.store_url),
                                   &options.suite.confinement, &error) != STATUS_OK) {
        return cli_fail(&error);
    }
    return run_search(&options, path);
}
