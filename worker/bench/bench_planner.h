/*
 * Benchmark of exec planners: what the sandbox costs, at the start and at each tick, beside the
 * same program without it in the same run.
 */
#ifndef SWERVE_WORKER_BENCH_BENCH_PLANNER_H
#define SWERVE_WORKER_BENCH_BENCH_PLANNER_H

#include "worker/bench/bench_world.h"

/* `spec`: an exec planner that starts in the working directory. Fills results[BENCH_RESULTS_MAX];
 * takes a few seconds. STATUS_PLANNER where it cannot be confined. */
enum status bench_planner(const char *spec, struct bench_result *results, uint32_t *count,
                          struct error *error);

#endif
