/*
 * swerve bench: figures with their baselines, for SPEED.md. Never a test.
 */
#include "cli/bench/bench.h"
#include "cli/cli.h"

#include "base/check.h"
#include "base/text.h"

#include <stdio.h>
#include <string.h>

static json_t *results_json(const struct bench_report *report)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < report->count; i++) {
        const struct bench_result *r = &report->results[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:f, s:s, s:f, s:s, s:f}", "name", r->name, "value",
                                        r->value, "unit", r->unit, "baseline", r->baseline,
                                        "baseline_name", r->baseline_name, "ratio", r->ratio));
    }
    return json_pack("{s:o}", "results", list);
}

/* Of a number in the table: three digits at least. */
static int decimals(double value)
{
    return value >= 100.0 || value == 0.0 ? 0 : value >= 10.0 ? 1 : 2;
}

static void print_results(const struct bench_report *report)
{
    text_print(stdout, "%-44s %14s %-22s %14s %8s  %s\n", "name", "value", "unit", "baseline",
               "ratio", "baseline is");
    for (uint32_t i = 0; i < report->count; i++) {
        const struct bench_result *r = &report->results[i];
        text_print(stdout, "%-44s %14.*f %-22s %14.*f %8.3f  %s\n", r->name, decimals(r->value),
                   r->value, r->unit, decimals(r->baseline), r->baseline, r->ratio,
                   r->baseline_name);
    }
}

/* Subjects to measure, and the options of the benchmarks that have any. */
struct bench_request {
    const char *what;
    const char *planner;
    const char *scene;
    struct bench_store_options store;
    struct bench_engine_options engine;
    int64_t threads;
    int64_t ticks;
    bool json;
    bool random_weights;
    bool plan;
};

static enum status measure(const struct bench_request *request, struct bench_report *report,
                           struct error *error)
{
    static const struct {
        const char *what;
        enum status (*run)(struct bench_report *report, struct error *error);
    } plain[] = {{"world", bench_world}, {"kernels", bench_kernels}, {"hash", bench_hash}};
    if (request->scene != NULL) {
        return strcmp(request->what, "world") == 0
                   ? bench_scene(request->scene, report, error)
                   : error_set(error, STATUS_USAGE, "bench %s: expected no --scene, found %s",
                               request->what, request->scene);
    }
    for (size_t i = 0; i < COUNT_OF(plain); i++) {
        if (strcmp(request->what, plain[i].what) == 0) {
            return plain[i].run(report, error);
        }
    }
    if (strcmp(request->what, "store") == 0) {
        return bench_store(&request->store, report, error);
    }
    if (strcmp(request->what, "planner") == 0) {
        return bench_planner(request->planner, report, error);
    }
    if (strcmp(request->what, "controls") == 0) {
        return bench_controls(request->engine.model, report, error);
    }
    if (strcmp(request->what, "engine") == 0) {
        return bench_engine(&request->engine, report, error);
    }
    return error_set(error, STATUS_USAGE,
                     "bench: expected controls, kernels, engine, hash, planner, world or store, "
                     "found \"%s\"",
                     request->what);
}

/* Returns as cli_parse. */
static int parse(int argc, char **argv, struct bench_request *request, bool *help)
{
    const struct cli_option rows[] = {
        {"--json", NULL, "print one JSON object", .flag = &request->json},
        {"--scene", "FILE", "world: the first scenario of this suite alone, its physics",
         .text = &request->scene},
        {"--directory", "DIR", "store: the disk to measure (.)", .text = &request->store.directory},
        {"--jobs", "N", "store: jobs per repetition; 0: the fleets alone (4000)",
         .number = &request->store.jobs},
        {"--workers", "N,..", "store: sizes of the fleet (10,100,500,2000)",
         .text = &request->store.workers},
        {"--batch", "N", "store: jobs of a fleet worker's claim (16)",
         .number = &request->store.batch},
        {"--fleet-jobs", "N", "store: jobs of a fleet's round (4000, and 3 claims of each worker)",
         .number = &request->store.fleet_jobs},
        {"--store", "URL", "store: a PostgreSQL database, in schemas of its own (files)",
         .text = &request->store.url},
        {"--servers", "N", "store: so many before one PostgreSQL store, 1 to 4 (1)",
         .number = &request->store.servers},
        {"--model", "FILE", "engine: the weights (random ones); controls: tinyphysics.onnx",
         .text = &request->engine.model},
        {"--random-weights", NULL, "engine: no model file", .flag = &request->random_weights},
        {"--shape", "WIDTHxLAYERS", "engine: of a model with random weights (128x4)",
         .text = &request->engine.shape},
        {"--config", "NAME",
         "engine: a full-scale world step with random weights: student-3b; with "
         "--plan also teacher-30b, or a file with a configuration",
         .text = &request->engine.config},
        {"--plan", NULL, "engine: what --model or --config takes on GPUs that are not here",
         .flag = &request->plan},
        {"--tune", NULL,
         "engine: times the products of --model at --slots on --device; the fastest "
         "are kept, and another backend",
         .flag = &request->engine.tune},
        {"--device", "NAME", "engine: where --config or --tune runs (cuda:0)",
         .text = &request->engine.device},
        {"--ranks", "N", "engine: processes that share --config, on a device each (1)",
         .number = &request->engine.ranks},
        {"--limit", "S", "engine: seconds that ranks may take (600)",
         .number = &request->engine.limit_s},
        {"--slots", "N,..", "engine: rollouts (1,8,32)", .text = &request->engine.slots},
        {"--threads", "N", "engine: threads of a tick (2)", .number = &request->threads},
        {"--ticks", "N", "engine: slot-ticks per repetition, at least (40)",
         .number = &request->ticks},
        {"--ticks-only", NULL, "engine: neither forks nor the spill",
         .flag = &request->engine.ticks_only},
        {"--planner", "SPEC", "planner: an exec planner (scripts/examples/follow.py)",
         .text = &request->planner},
        {"--precision", "NAME", "engine: fp32, bf16 or int8 (bf16)",
         .text = &request->engine.precision},
    };
    const struct cli_command command = {
        "bench",
        "controls|kernels|engine|hash|planner|world|store [options]",
        "Measures against baselines of the same run.",
        CLI_ROWS(rows, 1, 1),
    };
    uint32_t count;
    return cli_parse(&command, argc, argv, &request->what, &count, help);
}

static int plan(const struct bench_request *request)
{
    struct error error;
    json_t *json = NULL;
    enum status status =
        strcmp(request->what, "engine") == 0
            ? bench_engine_plan(&request->engine, request->json ? &json : NULL, &error)
            : error_set(&error, STATUS_USAGE, "bench %s: expected no --plan", request->what);
    if (status != STATUS_OK) {
        return cli_fail(&error);
    }
    return json != NULL ? cli_print_json(json) : 0;
}

int command_bench(int argc, char **argv)
{
    struct bench_request request = {
        .planner = "exec:/usr/bin/python3 scripts/examples/follow.py",
        .store = {.directory = ".",
                  .workers = "10,100,500,2000",
                  .jobs = 4000,
                  .batch = 16,
                  .servers = 1},
        .engine = {.shape = "128x4",
                   .slots = "1,8,32",
                   .device = "cuda:0",
                   .limit_s = 600,
                   .precision = "bf16"},
        .threads = 2,
        .ticks = 40,
    };
    bool help;
    struct error error;
    int code = parse(argc, argv, &request, &help);
    if (code != 0 || help) {
        return code;
    }
    struct bench_report report = {0};
    request.engine.threads = (uint32_t)request.threads;
    request.engine.ticks = (uint32_t)request.ticks;
    if (request.random_weights && request.engine.model != NULL) {
        error_set(&error, STATUS_USAGE, "bench: expected --model or --random-weights, found both");
        return cli_fail(&error);
    }
    if (request.plan) {
        return plan(&request);
    }
    enum status status = measure(&request, &report, &error);
    if (status != STATUS_OK) {
        return cli_fail(&error);
    }
    if (request.json) {
        return cli_print_json(results_json(&report));
    }
    print_results(&report);
    return 0;
}
