/*
 * Benchmarks of the network kernels on one core, each beside what the machine could do at best in
 * the same run. `swerve bench kernels` prints them.
 */
#ifndef SWERVE_ENGINE_BENCH_BENCH_NN_H
#define SWERVE_ENGINE_BENCH_BENCH_NN_H

#include "base/clock.h"
#include "base/status.h"
#include "kernels/nn.h"

enum { ENGINE_BENCH_NN_MAX = 112 };

struct engine_bench_nn_row {
    char name[64]; /* "kernels.<precision>.<instruction set>.<kernel>_<shape>" */
    double value;
    const char *unit; /* "GFLOP/s" or "GB/s" */
    double baseline;  /* in the same unit */
    const char *baseline_name;
};

/* Every instruction set that the machine has, every precision, at the shapes of the world models;
 * rows[ENGINE_BENCH_NN_MAX]. Takes a few seconds. */
enum status engine_bench_nn(const struct clock *clock, struct engine_bench_nn_row *rows,
                            uint32_t *count, struct error *error);

#endif
