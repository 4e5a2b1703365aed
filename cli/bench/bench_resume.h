/*
 * Bench of a parked rollout that goes on after its pages went to the spill: how long its restore
 * takes when the world was told two ticks before, and when it was not. `swerve bench engine` calls
 * it.
 */
#ifndef SWERVE_CLI_BENCH_BENCH_RESUME_H
#define SWERVE_CLI_BENCH_BENCH_RESUME_H

#include "base/clock.h"
#include "engine/learned/model.h"

enum { BENCH_RESUME_REPEATS = 21 };

struct bench_resume_result {
    double ahead_ns;  /* slot_restore of a full memory that was announced, median */
    double wanted_ns; /* the same, read when it is wanted */
    uint32_t pages;   /* of one memory: all of them came from the spill */
    double ready;     /* share of the announced pages that were there in time */
};

/* On the CPU, one thread beside the one that reads; the spill in $TMPDIR, else /tmp. STATUS_IO: it
 * took no page. */
enum status bench_resume_run(const struct model *model, const struct clock *clock,
                             struct bench_resume_result *out, struct error *error);

#endif
