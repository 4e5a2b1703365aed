/*
 * Benchmark of a world model on this machine: ticks per second at several numbers of slots, beside
 * what the same machine's products reach at their best, and where a tick's time goes.
 */
#ifndef SWERVE_WORKER_BENCH_BENCH_ENGINE_H
#define SWERVE_WORKER_BENCH_BENCH_ENGINE_H

#include "worker/bench/bench_world.h"

#include <stdint.h>

struct bench_engine_options {
    const char *model;     /* path, or NULL: random weights */
    const char *shape;     /* "WIDTHxLAYERS" of these */
    const char *config;    /* "student-3b", on a device; NULL: none */
    const char *device;    /* for it; the first one with ranks */
    int64_t ranks;         /* processes that share it, on a device each; 0: no exchange */
    int64_t limit_s;       /* for all ranks */
    const char *slots;     /* "1,8,32" */
    const char *precision; /* "fp32", "bf16" or "int8" */
    uint32_t threads;
    uint32_t ticks; /* per repeat, at least */
};

/* Fills results[BENCH_RESULTS_MAX]. */
enum status bench_engine(const struct bench_engine_options *options, struct bench_result *results,
                         uint32_t *count, struct error *error);

#endif
