/*
 * Runner cache: the runners that a worker keeps open, one per (tier, planner and its hash, model,
 * sampler, rig). What is asked for often stays open; the least recently used idle one makes room.
 */
#ifndef SWERVE_WORKER_RUN_RUNNER_CACHE_H
#define SWERVE_WORKER_RUN_RUNNER_CACHE_H

#include "worker/run/runner_open.h"

enum {
    RUNNER_CACHE_RUNNERS_MAX = 8,
    RUNNER_CACHE_STARTS_MAX = 4, /* at a time, so that others find a place beside those that never
                                    start */
};

struct cache_entry {
    struct open_runner open; /* runner NULL: free */
    struct job_spec spec;    /* the first that it was opened for */
    uint64_t last_use;
    bool starts;         /* its planner does */
    struct error failed; /* to start, which nobody was told yet; else OK */
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
 * *out NULL: its planner starts, or so many others do that it has to wait; ask again once
 * runner_cache_settle() is true. STATUS_BUSY: all are running, or an earlier version of a plugin
 * is. Opening fails when the planner's files are not those that were submitted. */
enum status runner_cache_get(struct runner_cache *cache, const struct job_spec *spec,
                             const struct rig *rig, struct runner **out, struct error *error);

/* Whether a start has ended, well or not, since the last time. */
bool runner_cache_settle(struct runner_cache *cache);

/* Waits for the first planner that starts, for `wait_ms` at most. Without one returns at once. */
void runner_cache_wait(const struct runner_cache *cache, int64_t wait_ms);

/* Jobs of runners whose planner starts again. */
uint32_t runner_cache_starting(const struct runner_cache *cache);

/* Closes all; their jobs must have been taken out. */
void runner_cache_finish(struct runner_cache *cache);

#endif
