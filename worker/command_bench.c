/*
 * swerve bench: figures with their baselines, for SPEED.md. Never a test.
 */
#include "worker/bench_engine.h"
#include "worker/bench_world.h"
#include "worker/cli.h"

#include "base/check.h"
#include "base/units.h"
#include "engine/bench_nn.h"
#include "store/bench.h"

#include <stdio.h>
#include <string.h>

/* The store at several batch sizes, against the bare SQLite loop on the same disk. */
static enum status bench_store(const char *directory, uint32_t jobs, struct bench_result *results,
                               uint32_t *count, struct error *error)
{
    static const uint32_t batches[] = {1, 4, 32, 128};
    *count = 0;
    for (size_t i = 0; i < COUNT_OF(batches); i++) {
        struct store_bench_result measured;
        /* Small batches pay a commit per few jobs: fewer jobs keep the run short. */
        uint32_t share = batches[i] < 32 ? jobs / 8 : jobs;
        enum status status =
            store_bench(directory, share > 0 ? share : 1, batches[i], &measured, error);
        if (status != STATUS_OK) {
            return status;
        }
        struct bench_result *result = &results[(*count)++];
        *result = (struct bench_result){
            .value = measured.store_jobs_per_s,
            .unit = "jobs/s",
            .baseline = measured.bare_jobs_per_s,
            .ratio = measured.ratio,
        };
        snprintf(result->name, sizeof result->name, "store.claim_complete.batch_%u", batches[i]);
        snprintf(result->baseline_name, sizeof result->baseline_name,
                 "bare SQLite loop; fsync p50 %.2f ms",
                 (double)measured.fsync_p50_ns / (double)NS_PER_MS);
    }
    return STATUS_OK;
}

/* The network kernels, every instruction set of this machine. */
static enum status bench_kernels(struct bench_result *results, uint32_t *count, struct error *error)
{
    struct engine_bench_nn_row rows[ENGINE_BENCH_NN_MAX];
    _Static_assert((int)ENGINE_BENCH_NN_MAX <= (int)BENCH_RESULTS_MAX, "all rows fit");
    enum status status = engine_bench_nn(clock_system(), rows, count, error);
    for (uint32_t i = 0; status == STATUS_OK && i < *count; i++) {
        results[i] = (struct bench_result){
            .value = rows[i].value,
            .baseline = rows[i].baseline,
            .ratio = rows[i].value / rows[i].baseline,
        };
        _Static_assert(sizeof results[i].name == sizeof rows[i].name, "names fit");
        memcpy(results[i].name, rows[i].name, sizeof results[i].name);
        snprintf(results[i].unit, sizeof results[i].unit, "%s", rows[i].unit);
        snprintf(results[i].baseline_name, sizeof results[i].baseline_name, "%s",
                 rows[i].baseline_name);
    }
    return status;
}

static json_t *results_json(const struct bench_result *results, uint32_t count)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < count; i++) {
        const struct bench_result *r = &results[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:f, s:s, s:f, s:s, s:f}", "name", r->name, "value",
                                        r->value, "unit", r->unit, "baseline", r->baseline,
                                        "baseline_name", r->baseline_name, "ratio", r->ratio));
    }
    return json_pack("{s:o}", "results", list);
}

static void print_results(const struct bench_result *results, uint32_t count)
{
    printf("%-44s %14s %-22s %14s %8s  %s\n", "name", "value", "unit", "baseline", "ratio",
           "baseline is");
    for (uint32_t i = 0; i < count; i++) {
        const struct bench_result *r = &results[i];
        printf("%-44s %14.0f %-22s %14.0f %8.3f  %s\n", r->name, r->value, r->unit, r->baseline,
               r->ratio, r->baseline_name);
    }
}

int command_bench(int argc, char **argv)
{
    bool json = false;
    int64_t jobs = 4000;
    int64_t threads = 2;
    int64_t ticks = 40;
    const char *directory = ".";
    const char *precision = "bf16";
    struct bench_engine_options engine = {.shape = "128x4", .slots = "1,8,32"};
    const struct cli_option rows[] = {
        {"--json", NULL, "print one JSON object", .flag = &json},
        {"--directory", "DIR", "store: the disk to measure (.)", .text = &directory},
        {"--jobs", "N", "store: jobs per repetition (4000)", .number = &jobs},
        {"--model", "FILE", "engine: the weights (random ones)", .text = &engine.model},
        {"--random-weights", "WIDTHxLAYERS", "engine: their shape (128x4)", .text = &engine.shape},
        {"--slots", "N,..", "engine: rollouts (1,8,32)", .text = &engine.slots},
        {"--threads", "N", "engine: threads of a tick (2)", .number = &threads},
        {"--ticks", "N", "engine: slot-ticks per repetition, at least (40)", .number = &ticks},
        {"--precision", "NAME", "engine: bf16 or fp32 (bf16)", .text = &precision},
    };
    const struct cli_command command = {
        "bench",
        "kernels|engine|world|store [options]",
        "Measures against baselines of the same run.",
        rows,
        COUNT_OF(rows),
        1,
        1,
    };
    const char *what = NULL;
    uint32_t count = 0;
    bool help;
    struct error error;
    int code = cli_parse(&command, argc, argv, &what, &count, &help);
    if (code != 0 || help) {
        return code;
    }
    struct bench_result results[BENCH_RESULTS_MAX];
    enum status status;
    if (strcmp(what, "world") == 0) {
        status = bench_world(results, &count, &error);
    } else if (strcmp(what, "kernels") == 0) {
        status = bench_kernels(results, &count, &error);
    } else if (strcmp(what, "store") == 0) {
        status = bench_store(directory, (uint32_t)jobs, results, &count, &error);
    } else if (strcmp(what, "engine") == 0) {
        engine.precision = precision;
        engine.threads = (uint32_t)threads;
        engine.ticks = (uint32_t)ticks;
        status = bench_engine(&engine, results, &count, &error);
    } else {
        status = error_set(&error, STATUS_USAGE,
                           "bench: expected kernels, engine, world or store, found \"%s\"", what);
    }
    if (status != STATUS_OK) {
        return cli_fail(&error);
    }
    if (json) {
        return cli_print_json(results_json(results, count));
    }
    print_results(results, count);
    return 0;
}
