/*
 * A full-scale world step (kernels/cuda/scale/scale.h) shared by several devices of this machine,
 * one process each: what `swerve bench engine --ranks` measures.
 */
#ifndef SWERVE_ENGINE_BENCH_SCALE_RANKS_H
#define SWERVE_ENGINE_BENCH_SCALE_RANKS_H

#include "engine/learned/device.h"

struct scale_ranks_options {
    const char *device; /* "cuda:N", rank 0's; rank r has cuda:N+r */
    const char *config;
    uint32_t ranks;   /* 1 to DEVICE_RANKS_MAX; divides tokens, heads and key/value heads */
    int64_t limit_ms; /* for all of it */
};

/* Runs and measures it. *out are the figures of all: times of the slowest rank, kinds of launches
 * too; operations, bytes moved and exchanged and the latents' sum of all ranks together; peaks of
 * one device. Conditions as for ranks_run; STATUS_DEVICE:
 * the limit passed, too. */
enum status scale_ranks_run(const struct scale_ranks_options *options, struct device_scale *out,
                            struct error *error);

/* Time that exchanges took of a step's launches, run one by one; *all_ms becomes that of all. */
double scale_ranks_all_to_all_ms(const struct device_scale *scale, double *all_ms);

#endif
