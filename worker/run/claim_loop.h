/*
 * Claim loop: the life of a worker process. Claims prefix groups, runs them over static slots,
 * reports outcomes with artifacts and cost, keeps its lease alive from a second thread, and on
 * request finishes what it can and hands back the rest.
 *
 * A store that cannot be reached does not stop the simulation. What is finished meanwhile waits;
 * when the lease ends, what still runs is discarded, because it may be somebody else's by now. When
 * the store is back it gets what waited, and decides by the epochs what of it counts.
 *
 * A store that cannot keep artifacts (its disk is full) ends the loop: what it did not take goes
 * back unfinished, and no attempt is charged for it.
 *
 * A world that does not start or fails here (its model's files, its device) is this host's fault:
 * its jobs go back uncharged, and the worker claims no more of them.
 *
 * A planner that does not start here is this host's fault until the store has heard the same from
 * another: its jobs go back uncharged, and the worker claims no more of them (unstarted.h).
 *
 * What is finished of a job that goes on is handed to the store every second or so, and before the
 * job is handed back: whoever claims it next drives the rest (claim_loop_partial.c). So is what
 * there is of a main line that takes minutes in a learned world (checkpoint.h).
 *
 * A job whose workers were lost JOB_LOST_POISON times is run with nothing beside it, and nothing
 * else is held meanwhile: if it takes the process with it, no other job is charged for that.
 */
#ifndef SWERVE_WORKER_RUN_CLAIM_LOOP_H
#define SWERVE_WORKER_RUN_CLAIM_LOOP_H

#include "base/log.h"
#include "base/status.h"
#include "engine/worlds/world.h"
#include "store/api/store.h"
#include "worker/models/models.h"
#include "worker/planner/planner.h"

#include <stdatomic.h>

enum { CLAIM_LOOP_CHECKPOINT_TIMES = 60 };

struct job_run;
struct prepared;

/* A clip of training data; `data` (malloc'ed) NULL: the drive ended before it was long enough. Or
 * futures: an outcome, and the trace of the drive in the place of the clip. */
struct clip_made {
    uint8_t *data;
    size_t bytes;
    struct outcome *outcome; /* malloc'ed, but for its job and artifact; NULL: no verdict was asked
                                for */
    uint32_t ticks;          /* of the drive */
    int64_t metres_mm;
    int64_t device_ns;               /* also of a drive that failed, as metres */
    char fault[OUTCOME_ERROR_BYTES]; /* of the planner, that ended the drive; "": none did */
};

/* Question to a maker of clips or futures; all borrowed. */
struct clip_task {
    const struct planner_config *planners;
    const struct job_spec *spec;
    struct prepared *prepared;
    /* Asked before each tick of the drive; false: it is to end (CANCELLED). What runs beside it
     * goes on meanwhile. */
    bool (*goes_on)(void *context);
    void *context; /* of goes_on */
};

struct claim_loop_config {
    struct store *store; /* borrowed */
    struct store_worker worker;
    uint32_t slot_count;
    /* Return when the pool has nothing left: no job to claim, none that waits out a delay, and none
     * that is leased by a worker that has gone. Whoever holds one and was heard of meanwhile sees
     * to it. */
    bool drain;
    /* Return, too, when all that could be claimed are jobs whose planners do not start here. */
    bool leave_unstarted;
    bool solo; /* run every branch from tick 0 (checks, benchmarks) */
    /* Learned tiers. */
    struct models *models; /* borrowed; NULL: only worlds without a model */
    /* The recording of a job that makes a golden, malloc'ed; NULL: such jobs fail here. */
    enum status (*pack_golden)(const struct job_run *job, uint8_t **data, size_t *bytes,
                               struct error *error);
    /* Makes the clip of a job, once for all of its ticks, or its futures (job_has_maker); NULL:
     * such jobs fail here. Planners that it opened as `planners` says, end_clips closes before the
     * loop returns (NULL: it kept none).
     */
    enum status (*make_clip)(void *context, const struct clip_task *task, struct clip_made *out,
                             struct error *error);
    void (*end_clips)(void *context);
    void *clip_context;
    const struct world_ops *(*world_for_tier)(enum tier tier); /* NULL: world_ops_for_tier */
    uint32_t thread_count;                                     /* per learned world; 0: one */
    bool overlap;                                              /* as of struct runner_config */
    const char *device;       /* that learned worlds may use; NULL: auto */
    uint64_t spill_bytes_max; /* per learned world; 0: 8 GiB */
    struct planner_config planner_config;
    /* A plugin that stays in one call for longer than this ends the process (exit status 6);
     * 0: the greater of 30 s and 20 planner deadlines. */
    int64_t stuck_limit_ms;
    /* Time that a job goes on before its finished rollouts are handed to the store, so that they
     * outlive this worker; 0: 1,000, < 0: as soon as they end. A main line in a learned world that
     * takes CLAIM_LOOP_CHECKPOINT_TIMES as much device time is handed over so often before its end.
     */
    int64_t keep_every_ms;
    int64_t grace_ms; /* after `stop`: how long what runs may go on; the rest is handed back */
    /* Time that a store may be silent before the loop ends with what it said; until then it goes on
     * computing what it has. 0: it ends at once. */
    int64_t offline_limit_ms;
    /* Time that a claim may wait at the store while there is nothing to do; the store must come
     * back from it when `stop` is set (store_config), or this be short. 0: 300. */
    int64_t idle_wait_ms;
    const struct logger *logger;
    const atomic_bool *stop; /* set (by a signal handler): hand back and return */
};

struct claim_loop_stats {
    int64_t jobs;
    int64_t ticks;
    int64_t forks;
    int64_t stale; /* completions that were fenced off */
};

/* Returns OK after a drain or a stop; STATUS_PLANNER, STATUS_DEVICE when jobs are left whose
 * planners or worlds do not start here; otherwise what the store said when it was gone for good or
 * could not keep an artifact. */
enum status claim_loop_run(const struct claim_loop_config *config, struct claim_loop_stats *stats,
                           struct error *error);

#endif
