/*
 * The machine's clocks behind struct clock.
 */
#include "base/clock.h"

#include "base/check.h"
#include "base/units.h"

#include <stddef.h>

static int64_t read_ns(clockid_t id)
{
    struct timespec time;
    CHECK(clock_gettime(id, &time) == 0);
    return (int64_t)time.tv_sec * NS_PER_S + time.tv_nsec;
}

static int64_t system_now_ns(void *context)
{
    (void)context;
    return read_ns(CLOCK_BOOTTIME);
}

static int64_t system_wall_ns(void *context)
{
    (void)context;
    return read_ns(CLOCK_REALTIME);
}

static int64_t system_thread_cpu_ns(void *context)
{
    (void)context;
    return read_ns(CLOCK_THREAD_CPUTIME_ID);
}

const struct clock *clock_system(void)
{
    static const struct clock system = {
        .now_ns = system_now_ns,
        .wall_ns = system_wall_ns,
        .thread_cpu_ns = system_thread_cpu_ns,
        .context = NULL,
    };
    return &system;
}

int64_t clock_monotonic_ns(void)
{
    return read_ns(CLOCK_MONOTONIC);
}

void clock_condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(condition, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

struct timespec clock_moment_in(int64_t ns)
{
    int64_t at_ns = clock_monotonic_ns() + ns;
    return (struct timespec){.tv_sec = at_ns / NS_PER_S, .tv_nsec = at_ns % NS_PER_S};
}
