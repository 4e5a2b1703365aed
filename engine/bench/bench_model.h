/*
 * Bench of a world model: ticks per second of the forward pass and the memory of what it made,
 * beside the rate of the same machine's own products at their best. `swerve bench engine` calls it.
 */
#ifndef SWERVE_ENGINE_BENCH_BENCH_MODEL_H
#define SWERVE_ENGINE_BENCH_BENCH_MODEL_H

#include "base/clock.h"
#include "engine/learned/model.h"

enum { BENCH_PHASES_MAX = 16, BENCH_MODEL_REPEATS = 5 };

struct bench_phase {
    const char *name; /* "conv mid", "tokens", .. */
    double ns;        /* of a tick, the least of several */
};

struct bench_model_result {
    double tick_ns; /* median of the repeats; wall time, of one thread its processor time */
    double flop;    /* of a tick */
    /* Operations per second of one product whose operands stay in the caches, all threads: of the
     * fastest table of the precision that the machine has, whichever the model uses. */
    double peak_flops;
    uint32_t phase_count;
    struct bench_phase phases[BENCH_PHASES_MAX];
};

/* The model of a file (path not NULL), or one with random weights of `shape`, "WIDTHxLAYERS": 64
 * BEV channels from width 192 on, else 32; 32 camera channels, memory 6, two steps, layers joint
 * and separate in turn.
 * The fastest tables of the machine. */
enum status bench_model_open(const char *path, const char *shape, enum nn_precision precision,
                             struct model **out, struct error *error);

/* Runs `slots` rollouts, each with a full memory of its own pages, one after the other in one
 * workspace of `threads` threads: at least `ticks` slot-ticks per repeat. */
enum status bench_model_run(const struct model *model, uint32_t slots, uint32_t threads,
                            uint32_t ticks, const struct clock *clock,
                            struct bench_model_result *out, struct error *error);

/* Processor time of a tick of one slot on one thread, the least of several, of models in turns:
 * tick_ns[count]. Takes some 5 ticks of each. */
enum status bench_model_race(const struct model *const *models, uint32_t count,
                             const struct clock *clock, double *tick_ns, struct error *error);

#endif
