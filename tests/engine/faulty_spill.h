/*
 * A spill in memory for tests of the page pool: it refuses, fails and damages at random, and keeps
 * account of the pages that this must have cost. Pages begin with their serial.
 */
#ifndef SWERVE_TESTS_ENGINE_FAULTY_SPILL_H
#define SWERVE_TESTS_ENGINE_FAULTY_SPILL_H

#include "base/check.h"
#include "base/rng.h"
#include "engine/learned/pages.h"
#include "tests/engine/elsewhere.h"

#include <pthread.h>
#include <sched.h>
#include <string.h>

enum { FAULTY_RECORDS = 4096, FAULTY_BYTES_MAX = 256 };

struct faulty_record {
    bool used;
    uint8_t data[FAULTY_BYTES_MAX];
};

struct faulty_spill {
    struct faulty_record stored[FAULTY_RECORDS];
    size_t bytes;
    uint64_t random; /* state; faults are drawn from it */
    uint32_t refuse_percent, fail_percent, damage_percent;
    uint32_t peek_fault_percent;
    uint64_t peek_random;  /* the reading thread's own */
    pthread_mutex_t mutex; /* of what is stored */
    uint32_t count;
    uint32_t failures;
    struct page_pool *pool;
    uint32_t heap_max;
    uint8_t *lost;  /* [serial] what the faults cost */
    uint64_t order; /* digest of what was written, in this order */
};

static inline bool faulty_strikes(struct faulty_spill *spill, uint32_t percent)
{
    spill->random = rng_mix(spill->random + 1);
    bool hit = spill->random % 100 < percent;
    spill->failures += hit;
    return hit;
}

static inline uint64_t faulty_write(void *context, const void *data, size_t bytes)
{
    struct faulty_spill *spill = context;
    CHECK(bytes == spill->bytes);
    uint64_t slot = 0;
    while (slot < FAULTY_RECORDS && spill->stored[slot].used) {
        slot++;
    }
    if (slot == FAULTY_RECORDS || faulty_strikes(spill, spill->refuse_percent)) {
        if (page_pool_stats(spill->pool).heap_count >= spill->heap_max) {
            spill->lost[elsewhere_serial(data)] = 1;
        }
        return 0;
    }
    spill->count++;
    spill->order = rng_mix(spill->order ^ elsewhere_serial(data));
    pthread_mutex_lock(&spill->mutex);
    spill->stored[slot].used = true;
    memcpy(spill->stored[slot].data, data, bytes);
    pthread_mutex_unlock(&spill->mutex);
    return slot + 1;
}

static inline void faulty_drop(void *context, uint64_t handle)
{
    struct faulty_spill *spill = context;
    CHECK(handle >= 1 && handle <= FAULTY_RECORDS && spill->stored[handle - 1].used);
    pthread_mutex_lock(&spill->mutex);
    spill->stored[handle - 1].used = false;
    pthread_mutex_unlock(&spill->mutex);
    spill->count--;
}

static inline bool faulty_read(void *context, uint64_t handle, void *data, size_t bytes)
{
    struct faulty_spill *spill = context;
    CHECK(handle >= 1 && handle <= FAULTY_RECORDS && spill->stored[handle - 1].used &&
          bytes == spill->bytes);
    struct faulty_record *stored = &spill->stored[handle - 1];
    if (faulty_strikes(spill, spill->fail_percent)) {
        spill->lost[elsewhere_serial(stored->data)] = 1;
        return false;
    }
    memcpy(data, stored->data, bytes);
    if (faulty_strikes(spill, spill->damage_percent)) {
        spill->lost[elsewhere_serial(stored->data)] = 1;
        ((uint8_t *)data)[spill->random / 100 % bytes] ^= (uint8_t)(1 << spill->random / 7 % 8);
    }
    faulty_drop(context, handle);
    return true;
}

/* The thread's. Of two faults one is noticed by the digest alone; neither costs a page. */
static inline bool faulty_peek(void *context, uint64_t handle, void *data, size_t bytes)
{
    struct faulty_spill *spill = context;
    CHECK(handle >= 1 && handle <= FAULTY_RECORDS && bytes == spill->bytes);
    spill->peek_random = rng_mix(spill->peek_random + 1);
    for (uint64_t i = spill->peek_random >> 32 & 3; i > 0; i--) {
        sched_yield(); /* so that some are overtaken */
    }
    pthread_mutex_lock(&spill->mutex);
    bool used = spill->stored[handle - 1].used;
    memcpy(data, spill->stored[handle - 1].data, bytes);
    pthread_mutex_unlock(&spill->mutex);
    if (spill->peek_random % 100 < spill->peek_fault_percent) {
        ((uint8_t *)data)[spill->peek_random / 100 % bytes] ^= 0x10;
        return spill->peek_random >> 40 & 1;
    }
    return used;
}

#endif
