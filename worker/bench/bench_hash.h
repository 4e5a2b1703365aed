/*
 * Benchmark of SHA-256, which artifacts, downloads and weights go through: the machine's own
 * instructions beside plain C.
 */
#ifndef SWERVE_WORKER_BENCH_BENCH_HASH_H
#define SWERVE_WORKER_BENCH_BENCH_HASH_H

#include "worker/bench/bench_world.h"

/* Fills results[BENCH_RESULTS_MAX]; takes a second. */
enum status bench_hash(struct bench_result *results, uint32_t *count, struct error *error);

#endif
