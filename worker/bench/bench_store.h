/*
 * Benchmarks of the job store: alone beside a bare SQLite loop (store/bench/bench.h), and as a
 * fleet of workers gets it over HTTP beside the same calls in this process
 * (store/bench/bench_fleet.h).
 */
#ifndef SWERVE_WORKER_BENCH_BENCH_STORE_H
#define SWERVE_WORKER_BENCH_BENCH_STORE_H

#include "worker/bench/bench_world.h"

struct bench_store_options {
    const char *directory; /* the disk to measure */
    const char *workers;   /* "10,100,500,2000": sizes of the fleet; "": none */
    int64_t jobs;          /* per repetition, without the fleet */
    int64_t batch;         /* jobs of a fleet worker's claim */
};

/* Fills results[BENCH_RESULTS_MAX]. */
enum status bench_store(const struct bench_store_options *options, struct bench_result *results,
                        uint32_t *count, struct error *error);

#endif
