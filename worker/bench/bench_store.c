/*
 * Benchmarks of the job store. See bench_store.h.
 */
#include "worker/bench/bench_store.h"

#include "base/check.h"
#include "base/units.h"
#include "schemas/limits.h"
#include "store/bench/bench.h"
#include "store/bench/bench_fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FLEETS_MAX = 8, FLEET_ROWS = 6 };

/* The store at several batch sizes, against the bare SQLite loop on the same disk. */
static enum status bench_batches(const struct bench_store_options *options,
                                 struct bench_result *results, uint32_t *count, struct error *error)
{
    static const uint32_t batches[] = {1, 4, 32, 128};
    uint32_t jobs = (uint32_t)options->jobs;
    for (size_t i = 0; i < COUNT_OF(batches); i++) {
        struct store_bench_result measured;
        /* Small batches pay a commit per few jobs: fewer jobs keep the run short. */
        uint32_t share = batches[i] < 32 ? jobs / 8 : jobs;
        TRY(store_bench(options->directory, share > 0 ? share : 1, batches[i], &measured, error));
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

static struct bench_result *fleet_row(struct bench_result *results, uint32_t *count,
                                      const struct store_bench_fleet_result *fleet,
                                      const char *what)
{
    struct bench_result *row = &results[(*count)++];
    memset(row, 0, sizeof *row);
    snprintf(row->name, sizeof row->name, "store.fleet.workers_%u.batch_%u.%s", fleet->workers,
             fleet->batch, what);
    return row;
}

static void fleet_latency(struct bench_result *results, uint32_t *count,
                          const struct store_bench_fleet_result *fleet, const char *what,
                          int64_t served_ns, int64_t bare_ns)
{
    struct bench_result *row = fleet_row(results, count, fleet, what);
    row->value = (double)served_ns / (double)NS_PER_MS;
    row->baseline = (double)bare_ns / (double)NS_PER_MS;
    row->ratio = bare_ns > 0 ? row->value / row->baseline : 0;
    snprintf(row->unit, sizeof row->unit, "ms");
    snprintf(row->baseline_name, sizeof row->baseline_name, "the same call in this process");
}

/* A fleet over HTTP, against threads that call the same store. */
static enum status bench_fleet(const struct bench_store_options *options, uint32_t workers,
                               struct bench_result *results, uint32_t *count, struct error *error)
{
    struct store_bench_fleet_result fleet;
    TRY(store_bench_fleet(options->directory, workers, (uint32_t)options->batch, &fleet, error));
    struct bench_result *row = fleet_row(results, count, &fleet, "rate");
    row->value = fleet.served.jobs_per_s;
    row->baseline = fleet.bare.jobs_per_s;
    row->ratio = fleet.ratio;
    snprintf(row->unit, sizeof row->unit, "jobs/s");
    snprintf(row->baseline_name, sizeof row->baseline_name,
             "the store in this process, %u threads; fsync p50 %.2f ms", fleet.bare_threads,
             (double)fleet.fsync_p50_ns / (double)NS_PER_MS);
    row = fleet_row(results, count, &fleet, "cpu_per_job");
    row->value = fleet.served.cpu_us_per_job;
    row->baseline = fleet.bare.cpu_us_per_job;
    row->ratio = row->value / row->baseline;
    snprintf(row->unit, sizeof row->unit, "us");
    snprintf(row->baseline_name, sizeof row->baseline_name, "the same, without a server");
    fleet_latency(results, count, &fleet, "claim_p50", fleet.served.claim_p50_ns,
                  fleet.bare.claim_p50_ns);
    fleet_latency(results, count, &fleet, "claim_p99", fleet.served.claim_p99_ns,
                  fleet.bare.claim_p99_ns);
    fleet_latency(results, count, &fleet, "complete_p50", fleet.served.complete_p50_ns,
                  fleet.bare.complete_p50_ns);
    fleet_latency(results, count, &fleet, "complete_p99", fleet.served.complete_p99_ns,
                  fleet.bare.complete_p99_ns);
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

enum status bench_store(const struct bench_store_options *options, struct bench_result *results,
                        uint32_t *count, struct error *error)
{
    uint32_t fleets[FLEETS_MAX];
    uint32_t fleet_count = 0;
    _Static_assert(FLEETS_MAX * FLEET_ROWS + 8 <= BENCH_RESULTS_MAX, "all rows fit");
    *count = 0;
    if (options->batch < 1 || options->batch > LIMIT_CLAIM_JOBS) {
        return error_set(error, STATUS_USAGE, "--batch: expected 1 to %d, found %lld",
                         LIMIT_CLAIM_JOBS, (long long)options->batch);
    }
    enum status status = parse_fleets(options->workers, fleets, &fleet_count, error);
    if (status == STATUS_OK && options->jobs > 0) {
        status = bench_batches(options, results, count, error);
    }
    for (uint32_t i = 0; i < fleet_count && status == STATUS_OK; i++) {
        status = bench_fleet(options, fleets[i], results, count, error);
    }
    return status;
}
