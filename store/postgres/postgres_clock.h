/*
 * A clock that all processes on one database share: this machine's, moved to the database's.
 */
#ifndef SWERVE_STORE_POSTGRES_POSTGRES_CLOCK_H
#define SWERVE_STORE_POSTGRES_POSTGRES_CLOCK_H

#include "base/clock.h"

#include <stdatomic.h>
#include <stdint.h>

/* The database's clock as this machine counts it: set by each transaction of the writer. */
struct postgres_clock {
    struct clock clock;
    atomic_int_least64_t offset_ns; /* to be added to this machine's */
};
void postgres_clock_init(struct postgres_clock *clock);

#endif
