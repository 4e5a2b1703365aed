/*
 * Stage cache: scenarios made ready for worlds, by content hash, least recently used out first.
 * Bodies come from the store once; jobs of one scenario (seeds, planners) share its roadmap and
 * raster layers.
 */
#ifndef SWERVE_WORKER_RUN_STAGE_CACHE_H
#define SWERVE_WORKER_RUN_STAGE_CACHE_H

#include "engine/sensors/stage.h"
#include "scenarios/scenarios.h"
#include "store/api/store.h"

struct stage_cache;

/* NULL when memory runs out. */
struct stage_cache *stage_cache_create(void);
void stage_cache_destroy(
    struct stage_cache *cache); /* accepts NULL; every get must be put back before */

/* *stage stays valid until the matching put. */
enum status stage_cache_get(struct stage_cache *cache, struct store *store, const char *hash,
                            struct stage **stage, struct error *error);
void stage_cache_put(struct stage_cache *cache, struct stage *stage);

#endif
