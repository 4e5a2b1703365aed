/*
 * A spill in memory for tests of learned worlds: every record by itself, so that the sanitizers see
 * a read past its end.
 */
#ifndef SWERVE_TESTS_ENGINE_SPILL_IN_MEMORY_H
#define SWERVE_TESTS_ENGINE_SPILL_IN_MEMORY_H

#include "base/check.h"
#include "engine/learned/pages.h"

#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

enum { SPILL_RECORDS = 64 };

struct spill_store {
    void *data[SPILL_RECORDS];
    uint32_t writes, reads;
    bool refuses, fails;
    sem_t peeked; /* a post for each peek; of the caller */
};

static inline uint64_t spill_store_write(void *context, const void *data, size_t bytes)
{
    struct spill_store *store = context;
    for (uint64_t i = 0; i < SPILL_RECORDS && !store->refuses; i++) {
        if (store->data[i] == NULL) {
            store->data[i] = malloc(bytes);
            CHECK(store->data[i] != NULL);
            memcpy(store->data[i], data, bytes);
            store->writes++;
            return i + 1;
        }
    }
    return 0;
}

static inline void spill_store_drop(void *context, uint64_t handle)
{
    struct spill_store *store = context;
    CHECK(store->data[handle - 1] != NULL);
    free(store->data[handle - 1]);
    store->data[handle - 1] = NULL;
}

/* The thread's, of records that nobody drops before it is done; the owner waits for that. */
static inline bool spill_store_peek(void *context, uint64_t handle, void *data, size_t bytes)
{
    struct spill_store *store = context;
    memcpy(data, store->data[handle - 1], bytes);
    sem_post(&store->peeked);
    return true;
}

static inline bool spill_store_read(void *context, uint64_t handle, void *data, size_t bytes)
{
    struct spill_store *store = context;
    if (store->fails) {
        return false;
    }
    memcpy(data, store->data[handle - 1], bytes);
    spill_store_drop(context, handle);
    store->reads++;
    return true;
}

#endif
