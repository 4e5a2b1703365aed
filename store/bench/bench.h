/*
 * Store benchmark: how much of what SQLite can do on this disk the store delivers.
 *
 * The same jobs are claimed and completed (one outcome each) twice: through store_sqlite_open, and
 * by a bare loop on one thread that executes the same prepared statements and nothing else (in
 * PostgreSQL through libpq, and waits for the answer of each). Both
 * run in turns on the same disk, so that a disk that changes its mood slows both; the medians are
 * compared. Commits per second are the limit at small batches, hence fsync beside it.
 */
#ifndef SWERVE_STORE_BENCH_BENCH_H
#define SWERVE_STORE_BENCH_BENCH_H

#include "base/status.h"
#include "store/bench/bench_parts.h"

#include <stdint.h>

enum { STORE_BENCH_ROUNDS = 5 };

struct store_bench_result {
    uint32_t batch;
    double store_jobs_per_s; /* claimed and completed, median of the rounds */
    double bare_jobs_per_s;
    double ratio;        /* store / bare, median of the rounds' ratios */
    double store_cpu_us; /* processor time of this process, a job; median of the rounds */
    double bare_cpu_us;
    double cpu_ratio;     /* store / bare, median of the rounds' ratios */
    int64_t fsync_p50_ns; /* 4 KiB write + fdatasync, in the same directory, same run */
};

/* Works on two stores of its own, and removes them. `jobs` per round and side, `batch` jobs per
 * claim and per completion (1..256). */
enum status store_bench(const struct bench_place *place, uint32_t jobs, uint32_t batch,
                        struct store_bench_result *out, struct error *error);

#endif
