/*
 * A suite's hash: over what its entries ask for, in order, and nothing else, so that the same
 * content has the same hash wherever its files lie.
 */
#include "scenarios/resolve.h"

#include <stdio.h>
#include <string.h>

void suite_hash(struct suite *suite)
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    sha256_init(&hash);
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        const struct suite_entry *entry = &suite->entries[i];
        char line[64];
        sha256_update(&hash, entry->document->hash, SHA256_HEX_BYTES);
        int bytes = snprintf(line, sizeof line, "%d,%u,%u:", entry->priority, entry->seed_count,
                             entry->planner_count);
        sha256_update(&hash, line, (size_t)bytes);
        for (uint32_t k = 0; k < entry->seed_count; k++) {
            bytes = snprintf(line, sizeof line, "%llu,", (unsigned long long)entry->seeds[k]);
            sha256_update(&hash, line, (size_t)bytes);
        }
        for (uint32_t k = 0; k < entry->planner_count; k++) {
            sha256_update(&hash, entry->planners[k], strlen(entry->planners[k]) + 1);
        }
    }
    sha256_final(&hash, digest);
    sha256_to_hex(digest, suite->hash);
}
