/*
 * Runner cache: the runners that a worker keeps open, one per (tier, planner and its hash, model,
 * sampler, rig). What is asked for often stays open; the least recently used idle one makes room.
 */
#ifndef SWERVE_WORKER_RUN_RUNNER_CACHE_H
#define SWERVE_WORKER_RUN_RUNNER_CACHE_H

#include "worker/run/runner_open.h"

enum { RUNNER_CACHE_RUNNERS_MAX = 8 };

struct cache_entry {
    struct open_runner open; /* runner NULL: free */
    struct job_spec spec;    /* the first that it was opened for */
    uint64_t last_use;
};

struct runner_cache {
    struct runner_source source;
    struct cache_entry entries[RUNNER_CACHE_RUNNERS_MAX];
    uint64_t uses;
    /* of runners that were closed */
    int64_t ticks;
    int64_t forks;
    uint64_t captures, batches, up_bytes, down_bytes; /* as in world_cost */
};

/* The runner for a spec and the rig of its scenario (NULL: the built-in one), opened when needed.
 * STATUS_BUSY: all are running, or an earlier version of a plugin is. Opening fails when the
 * planner's files are not those that were submitted. */
enum status runner_cache_get(struct runner_cache *cache, const struct job_spec *spec,
                             const struct rig *rig, struct runner **out, struct error *error);

/* Closes all; their jobs must have been taken out. */
void runner_cache_finish(struct runner_cache *cache);

#endif
