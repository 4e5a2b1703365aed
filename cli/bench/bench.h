/*
 * Benchmarks of the product: figures of this machine, each beside a baseline of the same run (a
 * bare library loop, a machine ceiling, the reference), by turns where a busy machine would tell.
 * `swerve bench` prints them. Every function adds its rows to a report that was zero-initialised.
 */
#ifndef SWERVE_CLI_BENCH_BENCH_H
#define SWERVE_CLI_BENCH_BENCH_H

#include "base/status.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum { BENCH_RESULTS_MAX = 112, BENCH_REPEATS = 5 };

struct bench_result {
    char name[64];
    double value;
    char unit[48];
    double baseline;
    char baseline_name[96];
    double ratio; /* value / baseline; 0 where there is none */
};

struct bench_report {
    uint32_t count;
    struct bench_result results[BENCH_RESULTS_MAX];
};

/* Adds a row of that name; its ratio is that of the two figures. Valid until the next report. */
struct bench_result *bench_add(struct bench_report *report, double value, const char *unit,
                               double baseline, const char *baseline_name, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* The object world on one core: physics alone, frames alone, the closed loop of physics, BEV grid,
 * reference planner and scoring, and sensors of a rig; medians. A few seconds. */
enum status bench_world(struct bench_report *report, struct error *error);

/* The object and the replay world on the first scenario of a file, on one core. A second or two. */
enum status bench_scene(const char *path, struct bench_report *report, struct error *error);

/* The network kernels, every instruction set of this machine. */
enum status bench_kernels(struct bench_report *report, struct error *error);

/* SHA-256, which artifacts, downloads and weights go through: the machine's own instructions beside
 * plain C. A second. */
enum status bench_hash(struct bench_report *report, struct error *error);

/* Cost of the sandbox to an exec planner, at the start and at each tick, beside the same program
 * without it. `spec` starts in the working directory; a few seconds. STATUS_PLANNER where it cannot
 * be confined. */
enum status bench_planner(const char *spec, struct bench_report *report, struct error *error);

struct bench_store_options {
    const char *directory; /* the disk to measure */
    const char *workers;   /* "10,100,500,2000": sizes of the fleet; "": none */
    int64_t jobs;          /* per repetition, without the fleet */
    int64_t batch;         /* jobs of a fleet worker's claim */
    int64_t fleet_jobs;    /* of a fleet's round; 0: 4,000, and three batches for each worker */
    const char *url;       /* of a PostgreSQL database for schemas of its own; NULL: files */
    int64_t servers;       /* in front of it */
};

/* The job store: alone beside a bare SQLite loop (store/bench/bench.h), and as a fleet of workers
 * gets it over HTTP beside the same calls in this process (store/bench/bench_fleet.h). */
enum status bench_store(const struct bench_store_options *options, struct bench_report *report,
                        struct error *error);

/* The controls challenge: episodes per second of one core under its PID controller, in batches of
 * several sizes. `model`: the challenge's tinyphysics.onnx. About a minute. */
enum status bench_controls(const char *model, struct bench_report *report, struct error *error);

struct bench_engine_options {
    const char *model;     /* path, or NULL: random weights */
    const char *shape;     /* "WIDTHxLAYERS" of these */
    const char *config;    /* "student-3b", on a device, or a file for a plan; NULL: none */
    const char *device;    /* for it, the first of its ranks; or to tune */
    int64_t ranks;         /* processes that share it, on a device each; 0: one */
    int64_t limit_s;       /* for all ranks */
    const char *slots;     /* "1,8,32" */
    const char *precision; /* "fp32", "bf16" or "int8" */
    uint32_t threads;
    uint32_t ticks;  /* per repeat, at least */
    bool ticks_only; /* no fanout, no resume */
    bool tune;       /* instead: how the model's products run fastest on the device, from now on */
};

/* A world model: ticks per second at several numbers of slots, beside what the same machine's
 * products reach at their best, and where a tick's time goes. */
enum status bench_engine(const struct bench_engine_options *options, struct bench_report *report,
                         struct error *error);

/* The plan of options->model, or else of options->config, on GPUs that are not here
 * (engine/bench/bench_plan.h): printed as tables; json not NULL: an object that the caller owns. */
enum status bench_engine_plan(const struct bench_engine_options *options, json_t **json,
                              struct error *error);

#endif
