/*
 * The runner cache. See runner_cache.h.
 */
#include "worker/run/runner_cache.h"
#include "engine/worlds/world.h"
#include "schemas/job_context.h"
#include "worker/planner/planner_spec.h"
#include "worker/planner/planner_start.h"

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
    entry->starts = false;
    entry->failed.status = STATUS_OK;
}

static bool is_busy(const struct cache_entry *entry)
{
    return entry->starts || runner_busy(entry->open.runner);
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
        if (!is_busy(entry)) {
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
        if (!is_busy(entry) && (place == NULL || entry->last_use < place->last_use)) {
            place = entry;
        }
    }
    return place;
}

static uint32_t count_starts(const struct runner_cache *cache)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < RUNNER_CACHE_RUNNERS_MAX; i++) {
        count += cache->entries[i].starts ? 1 : 0;
    }
    return count;
}

/* The runner of an entry, or why there will be none. */
static enum status use(struct runner_cache *cache, struct cache_entry *entry, struct runner **out,
                       struct error *error)
{
    enum status status = entry->failed.status;
    entry->last_use = ++cache->uses;
    *out = entry->starts ? NULL : entry->open.runner;
    if (status != STATUS_OK) {
        *error = entry->failed;
        close_entry(cache, entry);
    }
    return status;
}

enum status runner_cache_get(struct runner_cache *cache, const struct job_spec *spec,
                             const struct rig *rig, struct runner **out, struct error *error)
{
    for (uint32_t i = 0; i < RUNNER_CACHE_RUNNERS_MAX; i++) {
        if (serves(&cache->entries[i], spec)) {
            return use(cache, &cache->entries[i], out, error);
        }
    }
    bool apart = cache->source.start_apart &&
                 planner_starts_apart(spec->planner, &cache->source.planner_config);
    if (apart && count_starts(cache) >= RUNNER_CACHE_STARTS_MAX) {
        *out = NULL;
        return STATUS_OK;
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
    place->starts = apart;
    return use(cache, place, out, error);
}

bool runner_cache_settle(struct runner_cache *cache)
{
    bool settled = false;
    for (uint32_t i = 0; i < RUNNER_CACHE_RUNNERS_MAX; i++) {
        struct cache_entry *entry = &cache->entries[i];
        if (entry->starts && !runner_starts(entry->open.runner, 0)) {
            entry->starts = false;
            entry->failed.status = runner_started(entry->open.runner, &entry->failed);
            entry->last_use = ++cache->uses; /* whoever waits for it comes before it is closed */
            settled = true;
        }
    }
    return settled;
}

void runner_cache_wait(const struct runner_cache *cache, int64_t wait_ms)
{
    for (uint32_t i = 0; i < RUNNER_CACHE_RUNNERS_MAX; i++) {
        const struct runner *runner = cache->entries[i].open.runner;
        if (runner != NULL && runner_starts(runner, 0)) {
            (void)runner_starts(runner, wait_ms);
            return;
        }
    }
}

uint32_t runner_cache_starting(const struct runner_cache *cache)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < RUNNER_CACHE_RUNNERS_MAX; i++) {
        const struct runner *runner = cache->entries[i].open.runner;
        bool starts = runner != NULL && runner_starts(runner, 0);
        const struct job_run *job = starts ? runner_jobs(runner) : NULL;
        for (; job != NULL; job = job->next) {
            count++;
        }
    }
    return count;
}

void runner_cache_finish(struct runner_cache *cache)
{
    for (uint32_t i = 0; i < RUNNER_CACHE_RUNNERS_MAX; i++) {
        if (cache->entries[i].open.runner != NULL) {
            close_entry(cache, &cache->entries[i]);
        }
    }
}
