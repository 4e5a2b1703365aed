/*
 * Clocks as a value that callers pass on, so that a simulated fleet can own time.
 *
 * Three readings, all integer nanoseconds: `now_ns` for leases and durations (CLOCK_BOOTTIME: runs
 * through suspend), `wall_ns` for display only (never for decisions), `thread_cpu_ns` for metering.
 */
#ifndef SWERVE_BASE_CLOCK_H
#define SWERVE_BASE_CLOCK_H

#include <pthread.h>
#include <stdint.h>
#include <time.h>

struct clock {
    int64_t (*now_ns)(void *context);
    int64_t (*wall_ns)(void *context);
    int64_t (*thread_cpu_ns)(void *context);
    void *context;
};

/* The machine's own clocks. The object is static and immutable. */
const struct clock *clock_system(void);

static inline int64_t clock_now_ns(const struct clock *clock)
{
    return clock->now_ns(clock->context);
}

static inline int64_t clock_wall_ns(const struct clock *clock)
{
    return clock->wall_ns(clock->context);
}

static inline int64_t clock_thread_cpu_ns(const struct clock *clock)
{
    return clock->thread_cpu_ns(clock->context);
}

/* ---- threads that wait: CLOCK_MONOTONIC, which nobody sets ---- */

int64_t clock_monotonic_ns(void);

/* A condition whose waits end at moments of that clock. */
void clock_condition_init(pthread_cond_t *condition);
/* The moment in so many nanoseconds, for pthread_cond_timedwait(). */
struct timespec clock_moment_in(int64_t ns);

#endif
