/*
 * Stage cache: scenarios made ready for worlds, by content hash, least recently used out first.
 * Bodies come from the store once; jobs of one scenario (seeds, planners) share its roadmap and
 * raster layers.
 */
#ifndef SWERVE_WORKER_RUN_PREPARED_CACHE_H
#define SWERVE_WORKER_RUN_PREPARED_CACHE_H

#include "engine/sensors/prepared.h"
#include "scenarios/scenarios.h"
#include "store/api/store.h"

struct prepared_cache;

/* NULL when memory runs out. */
struct prepared_cache *prepared_cache_create(void);
void prepared_cache_destroy(
    struct prepared_cache *cache); /* accepts NULL; every get must be put back before */

/* *stage stays valid until the matching put. */
enum status prepared_cache_get(struct prepared_cache *cache, struct store *store, const char *hash,
                               struct prepared **prepared, struct error *error);
void prepared_cache_put(struct prepared_cache *cache, struct prepared *prepared);

#endif
