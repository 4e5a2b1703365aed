/*
 * Fleet benchmark: how much of the store a fleet gets through the HTTP server.
 *
 * The same jobs, in the same batches, on the same database and disk, are claimed and completed by
 * simulated workers over TCP on loopback (bench_client.h), and by threads that call the store in
 * this process; both in turns, the medians are compared. Server and clients share this machine's
 * processors, so the ratio counts the clients' work against the server.
 */
#ifndef SWERVE_STORE_BENCH_BENCH_FLEET_H
#define SWERVE_STORE_BENCH_BENCH_FLEET_H

#include "base/status.h"
#include "store/bench/bench_parts.h"

#include <stdint.h>

enum { STORE_BENCH_FLEET_ROUNDS = 3, STORE_BENCH_WORKERS_MAX = 4000, STORE_BENCH_SERVERS_MAX = 4 };

struct store_bench_side {
    double jobs_per_s;    /* claimed and completed, median of the rounds */
    int64_t claim_p50_ns; /* of one claim, over all rounds */
    int64_t claim_p99_ns;
    int64_t complete_p50_ns; /* of one batch of completions */
    int64_t complete_p99_ns;
    double cpu_us_per_job; /* processor time of this process, clients included; median */
};

struct store_bench_fleet_result {
    uint32_t workers;
    uint32_t batch;
    struct store_bench_side served; /* over HTTP */
    struct store_bench_side bare;   /* in this process */
    uint32_t bare_threads;
    double ratio; /* served / bare jobs per second, median of the rounds' ratios */
    int64_t fsync_p50_ns;
};

/* Works on a store of its own, and removes it. `servers`: so many stand in front of one database,
 * each with its part of the workers. `jobs`: of each round and side, but at least a batch for each
 * worker; 0: 4,000, and three batches for each. Raises this process's limit of open files, where it
 * may. */
enum status store_bench_fleet(const struct bench_place *place, uint32_t servers, uint32_t workers,
                              uint32_t batch, uint32_t jobs, struct store_bench_fleet_result *out,
                              struct error *error);

#endif
