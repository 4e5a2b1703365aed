/*
 * The database's clock. See postgres_clock.h.
 */
#include "store/postgres/postgres_clock.h"

static int64_t clock_server_ns(void *context)
{
    struct postgres_clock *clock = context;
    return clock_now_ns(clock_system()) + atomic_load(&clock->offset_ns);
}

static int64_t clock_machine_cpu_ns(void *context)
{
    (void)context;
    return clock_thread_cpu_ns(clock_system());
}

void postgres_clock_init(struct postgres_clock *clock)
{
    clock->clock = (struct clock){clock_server_ns, clock_server_ns, clock_machine_cpu_ns, clock};
    atomic_init(&clock->offset_ns, clock_wall_ns(clock_system()) - clock_now_ns(clock_system()));
}
