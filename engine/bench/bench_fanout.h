/*
 * Bench of a fanout in a learned world: what a fork costs, what the branches share, and what the
 * whole costs beside as many rollouts that each simulate the past themselves. `swerve bench engine`
 * calls it.
 */
#ifndef SWERVE_ENGINE_BENCH_BENCH_FANOUT_H
#define SWERVE_ENGINE_BENCH_BENCH_FANOUT_H

#include "base/clock.h"
#include "engine/learned/model.h"

enum { BENCH_FANOUT_BRANCHES = 16, BENCH_FANOUT_TICKS = 24 };

struct bench_fanout_result {
    double fork_ns;     /* of one slot_fork with a full memory and 20 agents: median */
    double fork_p99_ns; /* of the same */
    double fanout_ns;   /* processor time of BENCH_FANOUT_BRANCHES that fork at half of the ticks */
    double apart_ns;    /* of as many rollouts of their own */
    uint64_t fanout_ticks;
    uint64_t apart_ticks;
    uint64_t pages_shared;   /* by the forks, as the world counted */
    uint64_t pages_expected; /* as computed from the memory's length */
    uint64_t page_bytes;
    uint64_t fanout_pages; /* most in use at once until all have forked */
    uint64_t apart_pages;  /* most in use at once */
};

/* One thread; takes BENCH_FANOUT_BRANCHES * BENCH_FANOUT_TICKS * 1.5 ticks of the model. */
enum status bench_fanout_run(const struct model *model, const struct clock *clock,
                             struct bench_fanout_result *out, struct error *error);

#endif
