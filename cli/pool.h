/*
 * Pool: the worker processes that `run` starts, watches and stops. A child that dies unasked is
 * reported to the store at once (its jobs are queued again without waiting for the lease) and
 * replaced.
 */
#ifndef SWERVE_CLI_POOL_H
#define SWERVE_CLI_POOL_H

#include "base/log.h"
#include "store/api/store.h"
#include "worker/planner/planner.h"

#include <sys/types.h>

enum {
    POOL_WORKERS_MAX = 256,
    POOL_EXIT_UNSTARTED = 16, /* of a child: what is left needs a planner that does not start */
};

/* Of `run` and `worker`. */
enum { KEEP_EVERY_MS = 1000 };
#define KEEP_EVERY_OPTION_ROW(place)                                                              \
    {                                                                                             \
        "--keep-every-ms", "MS", "hand what is finished of a job to the store this often (1000)", \
            .number = &(place)                                                                    \
    }
#define SLOTS_OPTION_ROWS(slots, overlap)                                                  \
    {"--slots", "N", "rollouts at a time per worker, 1 to 1024 (16)", .number = &(slots)}, \
    {                                                                                      \
        "--overlap", NULL,                                                                 \
            "the planner answers for half of the slots while the world steps the rest",    \
            .flag = &(overlap)                                                             \
    }

struct pool_config {
    const char *store_url;
    const char *pool;
    const char *models;              /* directory; NULL: as the workers find it */
    const char *device;              /* of learned worlds; NULL: auto */
    const char *world, *audit_world; /* the user's own, as specs; NULL: none */
    uint32_t worker_count;
    uint32_t slot_count;
    uint32_t thread_count; /* of a learned world in each worker; 0: one */
    bool overlap;          /* as of struct runner_config */
    int64_t planner_deadline_ms;
    int64_t world_deadline_ms; /* 0: the worker's own */
    int64_t keep_every_ms;
    const struct planner_confinement *confinement;
    bool verbose;
    const struct logger *logger; /* borrowed; may be NULL */
};

struct pool_worker {
    pid_t pid; /* 0: none */
    char worker_id[LIMIT_ID_BYTES];
};

struct pool {
    struct pool_config config;
    struct pool_worker workers[POOL_WORKERS_MAX];
    /* Worker ids hold our pid, this and a number: in a container the pid alone would come back, and
     * a dead worker's lease with it. */
    int64_t started_ms;
    uint32_t spawned;
    uint32_t deaths;      /* since the last progress */
    uint32_t store_fails; /* likewise: workers in a row that the store failed */
    int words_fd;         /* memory into which a worker that the store fails writes its sentence */
    int64_t deaths_total;
};

/* Before jobs are queued for workers of ours: whether the store lets this process's user work. What
 * a server refuses is told with what to do instead; nothing changes in the store. */
enum status pool_check_rights(struct store *store, struct error *error);

enum status pool_start(struct pool *pool, const struct pool_config *config, struct error *error);

/* Reaps and replaces dead children. `progressed` tells that jobs were finished since the last call,
 * `idle` that none were queued, so that none could be:
 * too many deaths without progress are an error (a worker that cannot start), and so is a store
 * that fails one worker after the other, and planners that start in no worker (STATUS_PLANNER),
 * with the sentence that the last of them said. */
enum status pool_watch(struct pool *pool, struct store *store, bool progressed, bool idle,
                       struct error *error);

/* Asks all to hand back and leave, waits, kills those who stay longer than grace_ms. */
void pool_stop(struct pool *pool, int64_t grace_ms);

/* Pools of a command that drives, each started when it is first wanted. */
enum { POOLS_BULK = 0, POOLS_TEACHER, POOLS_COUNT };

struct pools {
    struct pool_config config; /* of all, but for the pool's name */
    bool wanted[POOLS_COUNT];
    bool started[POOLS_COUNT];
    struct pool pool[POOLS_COUNT];
};

/* The pool of a job's. */
void pools_want(struct pools *pools, const char *pool);

/* Called at each look at the suite that is waited for; an error ends the wait. */
typedef enum status pools_look(void *context, const struct store_suite_status *now,
                               struct error *error);

/* Starts what is wanted, watches what was started, and returns when every job of the suite has
 * ended, by these workers or others. A flagged job has a successor for the teacher. */
enum status pools_wait(struct pools *pools, struct store *store, const char *suite_id,
                       pools_look *look, void *context, struct error *error);

/* Stops what was started; zeroed ones too. */
void pools_stop(struct pools *pools);

#endif
