/*
 * Benchmarks of the object world on one core: physics alone, frames alone, and the closed loop of
 * physics, BEV grid, reference planner and scoring. Each beside a baseline of the same run,
 * alternated, medians.
 */
#ifndef SWERVE_WORKER_BENCH_BENCH_WORLD_H
#define SWERVE_WORKER_BENCH_BENCH_WORLD_H

#include "base/status.h"

#include <stdint.h>

enum { BENCH_RESULTS_MAX = 112, BENCH_REPEATS = 5 };

struct bench_result {
    char name[64];
    double value;
    char unit[48];
    double baseline;
    char baseline_name[96];
    double ratio; /* value / baseline */
};

/* Fills results[BENCH_RESULTS_MAX]; takes a few seconds. */
enum status bench_world(struct bench_result *results, uint32_t *count, struct error *error);

#endif
