/*
 * The plan of a world model on GPUs that are not here: what a world step is made of, from the
 * list of operations that the device would be given (kernels/trunk/trunk.h), and what it takes at
 * most four fifths of a GPU's tensor cores, of its instructions and of its memory. Nothing is
 * measured: a plan says what there is to win, and what a figure that is measured is to be held
 * against.
 *
 * Operations and bytes are exact. A kernel's instructions are those of the machine code that is
 * there (kernels/cuda/machine_code.txt, which scripts/check_sass.py keeps): of its loop that
 * multiplies, by the products in it; of a kernel without such a loop, all of a warp's. Products run
 * on the vendor's library, of which no instructions are known; other kernels move their bytes; no
 * launch of a captured graph takes less than two microseconds. One rollout is driven at a time.
 */
#ifndef SWERVE_ENGINE_BENCH_BENCH_PLAN_H
#define SWERVE_ENGINE_BENCH_BENCH_PLAN_H

#include "base/status.h"

#include <stdint.h>

enum { BENCH_PLAN_ROWS_MAX = 64, BENCH_PLAN_DEVICES = 5, BENCH_PLAN_CHUNKS = 4 };

/* Of all launches of a row, by one GPU; cycles of its multiprocessors side by side. */
struct bench_plan_time {
    double tensor_cycles, issue_cycles;
    double s; /* the longest of products, instructions and bytes, each at four fifths */
};

/* Launches of one kind, weights and type. */
struct bench_plan_row {
    const char *kernel; /* "product", "attention" .. */
    const char *name;   /* of the weights; "" where there are none */
    const char *type;   /* "e4m3", "bf16" or "" */
    uint32_t launches;
    double flop, bytes;
    struct bench_plan_time on[BENCH_PLAN_DEVICES];
};

/* A GPU, and a step of a rank on it. */
struct bench_plan_device {
    const char *name;
    const char *code; /* whose rows of the table stand for its machine code */
    double usd_per_hour;
    uint32_t runs;            /* 0: it has no e4m3, which the model asks for; then the rest is 0 */
    double compute_s;         /* without exchanges */
    double exchange_s;        /* 0 without ranks */
    double step_s, chunked_s; /* one after the other; in chunks beside each other */
    double miles_per_hour;    /* of one GPU, one rollout, chunked */
    double usd_per_mile;
    uint32_t slots; /* rollouts with windows of their own, at 80% of the memory */
};

struct bench_plan {
    char name[64];
    uint32_t tokens, steps, ranks, launches, exchanges;             /* of a rank's world step */
    double parameters;                                              /* of the model */
    double flop, bytes, exchanged_bytes;                            /* of a rank's world step */
    double weight_bytes, workspace_bytes, page_bytes, window_bytes; /* of a rank */
    uint32_t row_count;
    struct bench_plan_row rows[BENCH_PLAN_ROWS_MAX];
    struct bench_plan_device devices[BENCH_PLAN_DEVICES];
};

struct model_config;
struct trunk_config;

/* Trunk of a model that the engine serves; its name is borrowed from `model`. */
struct trunk_config bench_plan_trunk(const struct model_config *model);

/* The plan of `config`; ranks 0: one that exchanges nothing; `code`: the text of the table of
 * machine code. STATUS_BAD_INPUT where it has no kernel for the configuration, STATUS_USAGE where
 * so many ranks cannot share it. */
enum status bench_plan_of(const struct trunk_config *config, uint32_t ranks, const char *code,
                          struct bench_plan *out, struct error *error);

/* The same of a model's file (`path`), whose tensors must have as many numbers as the list says;
 * of which only the header is read. path NULL: of `config`, a name ("student-3b") or the path of a
 * configuration's text, JSON as in a model's file. */
enum status bench_plan_make(const char *path, const char *config, uint32_t ranks, const char *code,
                            struct bench_plan *out, struct error *error);

/* Seconds of work and exchanges that wait for each other, cut into `chunks`: the first chunk's
 * shorter part has nothing to run beside. 1: one after the other. */
double bench_plan_chunked(double compute_s, double exchange_s, uint32_t chunks);

/* Rollouts whose windows are their own, beside what all share; never negative. */
uint32_t bench_plan_slots(double memory_bytes, double shared_bytes, double window_bytes);

#endif
