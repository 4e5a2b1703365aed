/*
 * Ids for claims that a test does not repeat: each is higher than those before it, whatever the
 * worker, the source file and the process. Tests of repeated claims count by themselves.
 */
#ifndef SWERVE_TESTS_CLAIM_IDS_H
#define SWERVE_TESTS_CLAIM_IDS_H

#include "base/clock.h"

#include <stdint.h>

static inline int64_t *fresh_claim_id(void)
{
    static _Thread_local int64_t last;
    static _Thread_local int64_t id; /* the answer overwrites it */
    int64_t now_ns = clock_now_ns(clock_system());
    last = now_ns > last ? now_ns : last + 1;
    id = last;
    return &id;
}

#endif
