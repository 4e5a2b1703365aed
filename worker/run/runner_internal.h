/*
 * Runner internals, shared by runner.c (the tick), runner_place.c (where rollouts are),
 * runner_fork.c (branches) and runner_isolate.c (a planner that died). Nobody else includes this.
 *
 * Invariants: a rollout is in exactly one place: a slot (`slots`), the waiting list (parked, or not
 * started) or the isolated list; those of higher classes stand first, of one class parked ones
 * before those not started, and within each kind those of earlier jobs before those of later ones.
 * A job is in `jobs` until every rollout of it is finished, then in `done`. Nothing depends on slot
 * numbers, so neither do results.
 */
#ifndef SWERVE_WORKER_RUN_RUNNER_INTERNAL_H
#define SWERVE_WORKER_RUN_RUNNER_INTERNAL_H

#include "engine/learned/device.h"
#include "engine/worlds/world.h"
#include "worker/run/runner.h"

/* Branches that wait for a slot. A main line that finds no place for its next branch waits too. */
enum { RUNNER_PARKED_MAX = 64 };

struct rollout_list {
    struct rollout *head;
    struct rollout *tail;
};

struct runner {
    struct runner_config config;
    char planner_spec[LIMIT_SPEC_BYTES];
    bool guardian_acts;                  /* the spec is guarded */
    char planner_hash[SHA256_HEX_BYTES]; /* "": not checked */
    struct world *world;
    struct planner *planner; /* NULL: died, opened again before the next tick */
    struct opening *opening; /* in a thread; NULL: none */
    bool planner_opened;     /* once, so that `wants` is known */
    uint32_t wants;
    struct sensors *sensors; /* that the planner chose; NULL: none */
    struct rig *rig;         /* owned; NULL: the built-in one is offered */
    char rig_hash[SHA256_HEX_BYTES];
    bool rig_checked;
    bool on_device; /* the world runs on one */
    char backend[DEVICE_NAME_BYTES];
    struct swerve_place place; /* of the world's pictures; backend NULL: in host memory */
    bool views_opened;
    uint32_t slot_count;
    uint32_t width;         /* slots in use at a time: <= slot_count */
    uint64_t orders;        /* jobs that arrived */
    struct rollout **slots; /* [slot_count], NULL: free */
    uint32_t active_count;
    uint32_t *free_sessions; /* stack, [session_count] */
    uint32_t free_session_count;
    uint32_t session_count;
    uint32_t parked_branch_count;
    struct rollout_list waiting;
    struct rollout_list isolated; /* to be run alone and solo */
    struct rollout *alone;        /* the isolated rollout that is running */
    struct job_run *jobs;
    struct job_run *done;
    struct stepper *stepper; /* NULL: all slots take their turn together */
    uint32_t turn;           /* 0 or 1: whose it is of two halves */
    struct runner_stats stats;
    struct health_bounds builtin_bounds;
    double flop_seen; /* of the world's account, already given to rollouts */
    /* per tick, [slot_count] */
    struct action *actions;
    uint8_t *active;  /* driven and not stepped yet */
    uint8_t *stepped; /* .. and those that the present step moves */
    struct swerve_observation *observations;
    struct swerve_surroundings *around;
    struct swerve_sensors *shown;
    struct world_view *views;
    struct swerve_action *answers;
    uint8_t *failed;
    uint32_t *slot_of_query;
};

/* Whether the planner looks at pictures on the device. */
static inline bool runner_observes_on_device(const struct runner *runner)
{
    return (runner->wants & SWERVE_WANTS_DEVICE) != 0;
}

/* Whether a slot takes part in the present tick: even and odd ones take turns where they are in two
 * halves. */
static inline bool runner_turn_of(const struct runner *runner, uint32_t slot)
{
    return runner->stepper == NULL || slot % 2 == runner->turn;
}

static inline const struct world_ops *runner_ops(const struct runner *runner)
{
    return runner->config.world;
}

/* ---- places (runner_place.c) ---- */

void rollout_list_push_back(struct rollout_list *list, struct rollout *rollout);
struct rollout *rollout_list_pop(struct rollout_list *list);
void rollout_list_remove(struct rollout_list *list, struct rollout *rollout); /* it is in there */
bool rollout_list_has(const struct rollout_list *list, const struct job_run *job, int32_t branch);

/* -1: all are occupied. */
int32_t runner_find_free_slot(const struct runner *runner);
void runner_occupy(struct runner *runner, struct rollout *rollout, int32_t slot);
void runner_take_session(struct runner *runner, struct rollout *rollout);

/* Puts a rollout, parked or not started, at its place in the waiting list. */
void runner_wait(struct runner *runner, struct rollout *rollout);
/* Moves a rollout from its slot to the waiting list; it keeps its session. False when memory is
 * short: nothing happened. */
bool runner_park(struct runner *runner, struct rollout *rollout);
/* A free slot for a rollout of a job that is of a higher class than another that has one, or
 * arrived before it: a rollout of the lowest class's latest job is parked. -1: there is none, and
 * nothing happened. */
int32_t runner_make_way(struct runner *runner, const struct job_run *job);
/* The first of those that wait for which there are sessions: its own, and one for the branch for
 * which it stepped aside. NULL: none, or what has sessions is in the slots. */
struct rollout *runner_next(const struct runner *runner);
/* A slot for the next that waits: a free one, or that of a rollout of a lower class, which is
 * parked. -1: there is none. */
int32_t runner_slot_for(struct runner *runner, const struct rollout *rollout);
/* Puts a rollout whose state was saved into the waiting list. */
void runner_wait_parked(struct runner *runner, struct rollout *rollout, void *state);
void runner_unpark(struct runner *runner, struct rollout *rollout, int32_t slot);

/* Takes a rollout out of wherever it is and destroys it. Device time that its result does not have
 * yet stays with its job. */
void runner_discard(struct runner *runner, struct rollout *rollout);
void runner_discard_list(struct runner *runner, struct rollout_list *list);
/* Drops the rollouts of one job from a list, keeping the order of the others. */
void runner_purge_list(struct runner *runner, struct rollout_list *list, const struct job_run *job);
void runner_purge_job(struct runner *runner, const struct job_run *job);

/* Whether a main line that the store keeps is driven again, for its past alone. */
bool runner_drives_past(const struct runner *runner, const struct job_run *job);

/* The attempt at this job broke for a reason that is not the planner's (memory, a world that
 * refuses). The first reason counts. */
void runner_fail_job(struct job_run *job, const struct error *error);

/* ---- branches (runner_fork.c) ---- */

/* Forks what is due at the tick of the main line in this slot. Afterwards that main line may be
 * parked, and the planner may be dead. */
void runner_fork_due(struct runner *runner, uint32_t slot);

/* ---- cost (runner_step.c) ---- */

/* Before the step of a tick: tells the world what ego is to do, which may change rollout->action,
 * and which steps of its sampler it leaves out, where it has one of ours. */
void runner_commit(struct runner *runner, struct rollout *rollout, uint32_t tick);

/* Keeps the tick's frames of a drive that becomes a golden. At its last tick its planner is shown
 * nothing more, but another one may be. Where there is no room for them the job's film_fault says
 * so, and none is kept any more. */
enum status runner_film(const struct runner *runner, struct rollout *rollout, bool last,
                        struct error *error);
/* Bounds of the model that made the rollout's newest frame. */
const struct health_bounds *runner_bounds(const struct runner *runner,
                                          const struct rollout *rollout);

/* Operations that the world counted since the last time, shared by the rollouts that it stepped:
 * every tick of a model costs the same. How full its pages were they all had alike. */
void runner_share_cost(struct runner *runner);

/* Whether the thread waits for a device or for another process, so that the time that passes
 * counts.
 */
bool runner_meters_wall(const struct runner *runner);
/* Time that a tick is charged for: that, else processor time. */
int64_t runner_meter_ns(const struct runner *runner);
/* Shares the processor time of a tick equally among the rollouts that go on; when all of them ended
 * in it, the first finished job bears it, so that none is lost. */
void runner_charge(struct runner *runner, int64_t elapsed_ns);

/* ---- steps (runner_step.c) ---- */

/* Starts the thread in which the world steps one half of the slots while the planner is asked for
 * the other. STATUS_NO_MEMORY; STATUS_LIMIT: no thread can be made. */
enum status runner_stepper_open(struct runner *runner, struct error *error);
void runner_stepper_close(struct runner *runner); /* where there is none, nothing happens */

/* One step of the world for all that were driven and not stepped yet (`active`); one that has a
 * past goes through that. Nobody else uses the world until runner_step_end() has returned. */
void runner_step_begin(struct runner *runner);
void runner_step_end(struct runner *runner);

/* Processor time of that thread since the last call; 0 where time that passes is what counts. */
int64_t runner_step_ns(struct runner *runner);

/* ---- planner instances (runner_isolate.c) ---- */

/* Keeps what its configuration says of a rig, which is lent while it is created. False: out of
 * memory. */
bool runner_keep_rig(struct runner *runner);

enum status runner_open_planner(struct runner *runner, struct error *error);
/* Begins to open it in a thread, where it starts apart; else as runner_open_planner(). */
enum status runner_start_planner(struct runner *runner, struct error *error);
void runner_abandon_start(struct runner *runner); /* where there is none, nothing happens */

/* Closes the dead instance; what it was driving is queued to be run again, alone. */
void runner_planner_died(struct runner *runner, const struct error *error);

/* Sentence of an outcome about a planner's fault at a tick: the sentence, then as much of the end
 * of its stderr as fits, because the last line of a traceback is the one that says why: what is
 * known to be of this rollout's session, or, where nothing is, of all of them. */
void runner_fault_text(struct runner *runner, const struct rollout *rollout, uint32_t tick,
                       const char *sentence, char text[OUTCOME_ERROR_BYTES]);

/* Whether the rollout's world is served by somebody who cannot be reached: the attempt fails, for a
 * fault of this host and not of the job. */
bool runner_is_cut_off(struct runner *runner, struct rollout *rollout);
/* The status of a runner that does not start: whatever it is that keeps the planner from it,
 * CONFLICT where the world cannot make the job's rig, or nobody serves the world. */
enum status runner_start_failed(const struct runner_config *config, enum status status);

/* Gives the rollout's trace what the planner wrote in its session; before it finishes. */
void runner_keep_output(struct runner *runner, struct rollout *rollout);

/* After a death. When it cannot be opened again every job fails: an operating fault. Where it
 * starts apart there is no planner yet afterwards. */
void runner_reopen_planner(struct runner *runner);

#endif
