/*
 * Hash of a worker's name, for look-ups in memory. Private to the store room.
 */
#ifndef SWERVE_STORE_API_NAME_HASH_H
#define SWERVE_STORE_API_NAME_HASH_H

#include <stdint.h>

/* FNV-1a (Fowler, Noll, Vo). */
static inline uint64_t name_hash(const char *name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *name != '\0'; name++) {
        hash = (hash ^ (uint8_t)*name) * UINT64_C(0x100000001b3);
    }
    return hash;
}

#endif
