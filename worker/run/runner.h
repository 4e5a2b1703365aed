/*
 * Runner: drives many rollouts through one world and one planner, in lockstep, over static slots.
 *
 * Each tick: fork branches that are due, apply interventions, score and check every scene, ask the
 * planner once for all, record, step the world once for all. Rollouts join and leave between ticks.
 * Jobs end in the order in which they came rather than all at once, so that what is finished is in
 * the store when the worker is interrupted: a branch that finds no free slot takes that of a later
 * job's rollout. That one, or the branch where there is none, is parked (its world state saved) and
 * goes on when a slot is free, of which the world is told beforehand; the past that a main line and
 * its branches share is simulated once. A job of a higher class (enum suite_class) comes before all
 * of lower ones, and takes their slots.
 *
 * When the planner's instance dies, every rollout it was driving is run again, alone and from tick
 * 0, until the one during which it dies again is found: that one and no other ends as
 * planner_error. A fresh instance is opened after every death.
 */
#ifndef SWERVE_WORKER_RUN_RUNNER_H
#define SWERVE_WORKER_RUN_RUNNER_H

#include "base/clock.h"
#include "base/log.h"
#include "engine/worlds/world.h"
#include "worker/models/health_bounds.h"
#include "worker/planner/planner.h"
#include "worker/run/rollout.h"

struct runner;

enum { RUNNER_CPU_WIDTH = 2 }; /* rollouts at a time and thread, of a model on the CPU */

struct runner_config {
    const struct world_ops *world;
    const char *planner;      /* spec, copied */
    const char *planner_hash; /* identity it must have, copied; NULL, "": any */
    const struct rig *rig;    /* offered to the planner, copied; NULL: the built-in one */
    const char *rig_hash;     /* that it must be shown, copied; NULL: whichever it is */
    struct planner_config planner_config; /* session_count is set by the runner */
    uint32_t slot_count;
    /* Learned worlds; see struct world_config. */
    const struct model *model;     /* borrowed */
    const struct model *previous;  /* borrowed; NULL: none */
    const struct foreign *foreign; /* borrowed; a world of the user's in place of a model */
    enum conditioning conditioning;
    uint32_t skipped;            /* steps of its sampler that every tick leaves out */
    const struct device *device; /* borrowed during create; NULL: the CPU */
    uint32_t thread_count;
    const struct spill_ops *spill;
    const struct health_bounds *bounds;          /* borrowed; NULL: the built-in ones */
    const struct health_bounds *previous_bounds; /* of frames that the previous model makes */
    /* Given every tick's frame statistics and statistics [MEASURE_COUNT]; then nothing is flagged
     * by them (calibration). */
    void (*observe_health)(void *context, const struct frame_stats *frame_stats,
                           const double *statistic);
    void *observe_context;
    struct watch_tally *picture_tally; /* of struct world_config */
    int64_t checkpoint_ns; /* device time between checkpoints in a learned world; 0: none */
    bool overlap; /* the planner is asked for one half of the slots while the world steps the other
                   */
    /* A planner that answers from a process or a server starts in a thread: runner_create() returns
     * before it has, and after its death others go on while it is started again. */
    bool start_apart;
    bool always_solo; /* run branches from tick 0 instead of forking (replay, tests) */
    const struct clock *clock;
    const struct logger *logger; /* may be NULL */
};

/* Counters since creation. */
struct runner_stats {
    int64_t ticks; /* rollout-ticks simulated */
    int64_t forks;
    int64_t fork_refusals; /* a planner's: those branches ran from tick 0 */
    int64_t parks;
    int64_t planner_restarts;
};

/* STATUS_PLANNER: the planner does not start. */
enum status runner_create(const struct runner_config *config, struct runner **out,
                          struct error *error);
void runner_destroy(struct runner *runner); /* accepts NULL; unfinished job runs are destroyed */

/* Waits until the planner has started, or failed to, for `wait_ms` at most. True: it still starts,
 * and the runner has nothing else to do meanwhile. */
bool runner_starts(const struct runner *runner, int64_t wait_ms);
/* After runner_create() with start_apart, once runner_starts() is false and before any job: as
 * runner_create() without. Not OK: it can only be destroyed. */
enum status runner_started(struct runner *runner, struct error *error);

/* Queues a job; the runner owns it until runner_take(). `only` >= -1 runs just that rollout
 * (ROLLOUT_MAIN or a branch, solo) and leaves the others unfinished; ROLLOUT_ALL runs all but what
 * earlier attempts finished (job_run_restore), and the main line's past where others fork from it.
 */
enum { ROLLOUT_ALL = -2 };
enum status runner_add(struct runner *runner, struct job_run *job, int32_t only,
                       struct error *error);

/* Files that its planner says it loaded (planner_loaded()). */
const char *runner_planner_loaded(const struct runner *runner);

/* Number of rollouts that go on at a time: at most as many as there are slots. */
uint32_t runner_width(const struct runner *runner);

/* Number of further jobs that can start without waiting. */
uint32_t runner_free_slots(const struct runner *runner);

/* Whether any rollout is unfinished. */
bool runner_busy(const struct runner *runner);

/* One tick for every rollout that has a slot, of one half after the other where they overlap. */
void runner_tick(struct runner *runner);

/* A job with every rollout finished, failed or cancelled; NULL: none now. The caller owns it. */
struct job_run *runner_take(struct runner *runner);

/* Jobs with rollouts that are not finished, linked by `next`; they stay the runner's. */
struct job_run *runner_jobs(const struct runner *runner);

/* The main line of a job, where it has a slot and a checkpoint that the store is to have
 * (checkpoint_due); NULL: none. */
struct rollout *runner_checkpoint_due(const struct runner *runner, const struct job_run *job,
                                      int64_t period_ns);

/* Record so far of the main line that a job's branches forked from. */
const struct trace *runner_main_trace(const struct runner *runner, const struct job_run *job);

/* Marks a job: its rollouts stop before the next tick and runner_take() returns it as cancelled. */
void runner_cancel(struct runner *runner, int64_t job_id, int64_t epoch);

/* Stops every job at once; runner_take() returns them as cancelled. */
void runner_cancel_all(struct runner *runner);

/* Cost so far of the unfinished jobs, for heartbeats; at most `max` entries, returns how many. */
struct runner_progress {
    int64_t job_id;
    int64_t epoch;
    int64_t device_ns;
    int64_t metres_mm;
    double flop;   /* of a learned world */
    int64_t ticks; /* a shared past once */
};
uint32_t runner_progress(const struct runner *runner, struct runner_progress *out, uint32_t max);

const struct runner_stats *runner_stats(const struct runner *runner);
/* Counts of its world so far; zeros where it counts nothing. */
struct world_cost runner_cost(const struct runner *runner);

#endif
