/*
 * Benchmarks of the job store. See bench.h.
 */
#include "cli/bench/bench.h"

#include "base/check.h"
#include "base/program/cli_options.h"
#include "base/units.h"
#include "schemas/limits.h"
#include "store/bench/bench.h"
#include "store/bench/bench_fleet.h"

#include <stdio.h>
#include <stdlib.h>

enum { FLEETS_MAX = 8, FLEET_ROWS = 6, FLEET_JOBS_MAX = 10000000 };

static struct bench_place place_of(const struct bench_store_options *options)
{
    return (struct bench_place){.directory = options->directory, .url = options->url};
}

/* The store at several batch sizes, against a bare loop on the same disk. */
static enum status bench_batches(const struct bench_store_options *options,
                                 struct bench_report *report, struct error *error)
{
    static const uint32_t batches[] = {1, 4, 32, 128};
    const struct bench_place place = place_of(options);
    uint32_t jobs = (uint32_t)options->jobs;
    for (size_t i = 0; i < COUNT_OF(batches); i++) {
        struct store_bench_result measured;
        char bare[96];
        /* Small batches pay a commit per few jobs: fewer jobs keep the run short. */
        uint32_t share = batches[i] < 32 ? jobs / 8 : jobs;
        TRY(store_bench(&place, share > 0 ? share : 1, batches[i], &measured, error));
        snprintf(bare, sizeof bare, "bare %s loop; fsync p50 %.2f ms",
                 options->url != NULL ? "libpq" : "SQLite",
                 (double)measured.fsync_p50_ns / (double)NS_PER_MS);
        bench_add(report, measured.store_jobs_per_s, "jobs/s", measured.bare_jobs_per_s, bare,
                  "store.claim_complete.batch_%u", batches[i])
            ->ratio = measured.ratio;
        bench_add(report, measured.store_cpu_us, "us", measured.bare_cpu_us, bare,
                  "store.claim_complete.batch_%u.cpu_per_job", batches[i])
            ->ratio = measured.cpu_ratio;
    }
    return STATUS_OK;
}

/* A fleet over HTTP, against threads that call the same store. */
static enum status bench_fleet(const struct bench_store_options *options, uint32_t workers,
                               struct bench_report *report, struct error *error)
{
    struct store_bench_fleet_result fleet;
    char prefix[64];
    char bare[96];
    const struct bench_place place = place_of(options);
    TRY(store_bench_fleet(&place, (uint32_t)options->servers, workers, (uint32_t)options->batch,
                          (uint32_t)options->fleet_jobs, &fleet, error));
    int bytes = snprintf(prefix, sizeof prefix, "store.fleet.workers_%u.batch_%u", fleet.workers,
                         fleet.batch);
    if (options->servers > 1) {
        snprintf(prefix + bytes, sizeof prefix - (size_t)bytes, ".servers_%d",
                 (int)options->servers);
    }
    snprintf(bare, sizeof bare, "the store in this process, %u threads; fsync p50 %.2f ms",
             fleet.bare_threads, (double)fleet.fsync_p50_ns / (double)NS_PER_MS);
    bench_add(report, fleet.served.jobs_per_s, "jobs/s", fleet.bare.jobs_per_s, bare, "%s.rate",
              prefix)
        ->ratio = fleet.ratio;
    bench_add(report, fleet.served.cpu_us_per_job, "us", fleet.bare.cpu_us_per_job,
              "the same, without a server", "%s.cpu_per_job", prefix);
    const struct {
        const char *name;
        int64_t served_ns, bare_ns;
    } calls[] = {
        {"claim_p50", fleet.served.claim_p50_ns, fleet.bare.claim_p50_ns},
        {"claim_p99", fleet.served.claim_p99_ns, fleet.bare.claim_p99_ns},
        {"complete_p50", fleet.served.complete_p50_ns, fleet.bare.complete_p50_ns},
        {"complete_p99", fleet.served.complete_p99_ns, fleet.bare.complete_p99_ns},
    };
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        bench_add(report, (double)calls[i].served_ns / (double)NS_PER_MS, "ms",
                  (double)calls[i].bare_ns / (double)NS_PER_MS, "the same call in this process",
                  "%s.%s", prefix, calls[i].name);
    }
    return STATUS_OK;
}

/* "10,100": up to FLEETS_MAX sizes. */
static enum status parse_fleets(const char *text, uint32_t *fleets, uint32_t *count,
                                struct error *error)
{
    const char *at = text;
    *count = 0;
    while (*at != '\0') {
        char *end = NULL;
        long value = strtol(at, &end, 10);
        if (end == at || (*end != '\0' && *end != ',') || value < 1 ||
            value > STORE_BENCH_WORKERS_MAX || *count == FLEETS_MAX) {
            return error_set(error, STATUS_USAGE,
                             "--workers: expected up to %d numbers from 1 to %d, found \"%s\"",
                             FLEETS_MAX, STORE_BENCH_WORKERS_MAX, text);
        }
        fleets[(*count)++] = (uint32_t)value;
        at = *end == ',' ? end + 1 : end;
    }
    return STATUS_OK;
}

enum status bench_store(const struct bench_store_options *options, struct bench_report *report,
                        struct error *error)
{
    uint32_t fleets[FLEETS_MAX];
    uint32_t fleet_count = 0;
    _Static_assert(FLEETS_MAX * FLEET_ROWS + 8 <= BENCH_RESULTS_MAX, "all rows fit");
    const struct cli_bounds bounds[] = {
        {"--batch", options->batch, 1, LIMIT_CLAIM_JOBS},
        {"--fleet-jobs", options->fleet_jobs, 0, FLEET_JOBS_MAX},
        {"--servers", options->servers, 1, STORE_BENCH_SERVERS_MAX},
    };
    TRY(cli_bounds_check(bounds, COUNT_OF(bounds), error));
    TRY(parse_fleets(options->workers, fleets, &fleet_count, error));
    if (options->jobs > 0) {
        TRY(bench_batches(options, report, error));
    }
    for (uint32_t i = 0; i < fleet_count; i++) {
        TRY(bench_fleet(options, fleets[i], report, error));
    }
    return STATUS_OK;
}
