/*
 * The runner cache. See runner_cache.h.
 */
#include "worker/run/runner_cache.h"
#include "engine/worlds/world.h"
#include "schemas/job_context.h"
#include "worker/planner/planner_spec.h"

#include <string.h>

static void close_entry(struct runner_cache *cache, struct cache_entry *entry)
{
    cache->ticks += runner_stats(entry->open.runner)->ticks;
    cache->forks += runner_stats(entry->open.runner)->forks;
    struct world_cost cost = runner_cost(entry->open.runner);
    cache->captures += cost.captures;
    cache->batches += cost.batches;
    cache->up_bytes += cost.up_bytes;
    cache->down_bytes += cost.down_bytes;
    runner_close(&entry->open);
}

static bool serves(const struct cache_entry *entry, const struct job_spec *spec)
{
    const struct job_context opened = job_context_of_spec(&entry->spec);
    const struct job_context asked = job_context_of_spec(spec);
    return entry->open.runner != NULL &&
           job_context_differs(&opened, &asked, JOB_CONTEXT_RUNNER | JOB_CONTEXT_PLANNER_HASH) == 0;
}

/* A planner whose files changed gets a new runner. An idle one of the old files goes first, because
 * a plugin that is still loaded would be handed out again in place of the new one. */
static enum status drop_outdated(struct runner_cache *cache, const struct job_spec *spec,
                                 struct error *error)
{
    bool plugin = strncmp(planner_spec_bare(spec->planner), "plugin:", 7) == 0;
    for (uint32_t i = 0; i < RUNNER_CACHE_RUNNERS_MAX; i++) {
        struct cache_entry *entry = &cache->entries[i];
        if (entry->open.runner == NULL || strcmp(entry->spec.planner, spec->planner) != 0 ||
            strcmp(entry->spec.planner_hash, spec->planner_hash) == 0) {
            continue;
        }
        if (!runner_busy(entry->open.runner)) {
            close_entry(cache, entry);
        } else if (plugin) {
            return error_set(error, STATUS_BUSY, "an earlier version of the planner is running");
        }
    }
    return STATUS_OK;
}

/* A free place, else the least recently used one whose runner is idle, else NULL. */
static struct cache_entry *find_place(struct runner_cache *cache)
{
    struct cache_entry *place = NULL;
    for (uint32_t i = 0; i < RUNNER_CACHE_RUNNERS_MAX; i++) {
        struct cache_entry *entry = &cache->entries[i];
        if (entry->open.runner == NULL) {
            return entry;
        }
        if (!runner_busy(entry->open.runner) &&
            (place == NULL || entry->last_use < place->last_use)) {
            place = entry;
        }
    }
    return place;
}

enum status runner_cache_get(struct runner_cache *cache, const struct job_spec *spec,
                             const struct rig *rig, struct runner **out, struct error *error)
{
    for (uint32_t i = 0; i < RUNNER_CACHE_RUNNERS_MAX; i++) {
        if (serves(&cache->entries[i], spec)) {
            cache->entries[i].last_use = ++cache->uses;
            *out = cache->entries[i].open.runner;
            return STATUS_OK;
        }
    }
    TRY(drop_outdated(cache, spec, error));
    struct cache_entry *place = find_place(cache);
    if (place == NULL) {
        return error_set(error, STATUS_BUSY, "more than %d planners or models at once",
                         RUNNER_CACHE_RUNNERS_MAX);
    }
    if (place->open.runner != NULL) {
        close_entry(cache, place);
    }
    TRY(runner_open(&cache->source, spec, rig, &place->open, error));
    place->spec = *spec;
    place->last_use = ++cache->uses;
    *out = place->open.runner;
    return STATUS_OK;
}

void runner_cache_finish(struct runner_cache *cache)
{
    for (uint32_t i = 0; i < RUNNER_CACHE_RUNNERS_MAX; i++) {
        if (cache->entries[i].open.runner != NULL) {
            close_entry(cache, &cache->entries[i]);
        }
    }
}
