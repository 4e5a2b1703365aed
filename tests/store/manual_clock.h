/*
 * A clock that moves when a test says so. A store's committing thread and a server's threads read
 * it while the test moves it, so the time is atomic.
 */
#ifndef SWERVE_TESTS_STORE_MANUAL_CLOCK_H
#define SWERVE_TESTS_STORE_MANUAL_CLOCK_H

#include "base/clock.h"
#include "base/units.h"

#include <stdint.h>

/* The wall clock when a manual clock begins: people read 1700000000 as a day in 2023. */
#define MANUAL_CLOCK_WALL_S INT64_C(1700000000)
#define MANUAL_CLOCK_START_S INT64_C(1000) /* no test begins at nought */

struct manual_clock {
    struct clock clock; /* for a store_config; points to this struct */
    _Atomic int64_t now_ns;
};

static inline int64_t manual_clock_now(void *context)
{
    const struct manual_clock *manual = context;
    return manual->now_ns;
}

static inline int64_t manual_clock_wall(void *context)
{
    return manual_clock_now(context) + (MANUAL_CLOCK_WALL_S - MANUAL_CLOCK_START_S) * NS_PER_S;
}

static inline void manual_clock_init(struct manual_clock *manual)
{
    manual->now_ns = MANUAL_CLOCK_START_S * NS_PER_S;
    manual->clock = (struct clock){.now_ns = manual_clock_now,
                                   .wall_ns = manual_clock_wall,
                                   .thread_cpu_ns = manual_clock_now,
                                   .context = manual};
}

static inline void manual_clock_advance(struct manual_clock *manual, int64_t ns)
{
    manual->now_ns += ns;
}

#endif
