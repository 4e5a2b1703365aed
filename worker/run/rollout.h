/*
 * Rollout: one simulated drive, the main line of a job or one of its branches, from its first tick
 * to its verdict. The runner owns slots and batches; this file owns what one rollout carries with
 * it, how it forks, and what it leaves behind.
 */
#ifndef SWERVE_WORKER_RUN_ROLLOUT_H
#define SWERVE_WORKER_RUN_ROLLOUT_H

#include "base/status.h"
#include "engine/trace/trace.h"
#include "engine/traffic/roadmap.h"
#include "engine/worlds/world.h"
#include "scenarios/scenarios.h"
#include "schemas/job.h"
#include "schemas/planner.h"
#include "worker/given/given.h"
#include "worker/given/sensors.h"
#include "worker/models/health.h"
#include "worker/run/actuation.h"
#include "worker/score/field/stage.h"
#include "worker/score/score.h"
#include "worker/score/validity.h"

#include <stdbool.h>
#include <stdint.h>

enum { ROLLOUT_MAIN = -1 };

/* In the sentence of a death after which a rollout was run again. */
#define ROLLOUT_DEATH "run again alone, since its planner died here"

/* Results of a finished rollout. Owned by its job run. */
struct rollout_result {
    bool started; /* a branch: it was forked, or queued to run alone */
    bool finished;
    enum verdict verdict;
    uint32_t reasons;
    struct metrics metrics;
    struct drive_health drive_health; /* of a learned world; else zero */
    uint32_t ticks;
    uint32_t prefix_ticks;
    int32_t parent; /* rollout it forked from, -1: none; rollout r is branch r - 1 */
    int64_t device_ns;
    int64_t metres_mm;
    double flop;                 /* of a learned world .. */
    uint32_t pages_used_percent; /* .. its frame pages at the fullest, so far; 0: it has none */
    double peak_flops; /* .. operations a second of a core here, or the device; 0: not measured */
    char trace_hash[SHA256_HEX_BYTES];
    struct trace trace;
    struct health_verdict health; /* check != OK: flagged */
    const char *invalid;          /* name of the validity check that did not hold; NULL: none */
    uint32_t invalid_tick;
    double invalid_value;
    double invalid_threshold;
    uint8_t *snapshot; /* what the sensors of a learned world saw then: [BEV_BYTES], then the
                          cameras [CAMERA_COUNT][CAMERA_BYTES]; owned, NULL: not kept */
    /* Of a rollout that is run again, because its planner died or varies: the sentence about that
     * (ROLLOUT_DEATH, OUTCOME_VARIES), which stays, behind whatever else there is to be said. */
    char error[OUTCOME_ERROR_BYTES];
    /* Partial outcome that the store keeps while the job goes on, owned; NULL: nothing yet. Device
     * time, metres and operations above are this attempt's alone, whichever attempt drove it. */
    struct outcome *kept;
};

/* A job while this worker runs it. */
struct job_run {
    struct job_lease lease;
    const struct scenario *scenario; /* borrowed, outlives the run */
    struct prepared *prepared;       /* one reference */
    uint32_t rollout_count;
    struct rollout_result *results; /* [rollout_count] */
    uint32_t finished_count;
    uint64_t order;                    /* of arrival at its runner */
    uint32_t keyframes_period_ticks;   /* 0: no keyframes */
    bool filmed;                       /* every frame is kept in its traces .. */
    uint64_t film_room_bytes;          /* .. which so many more may take */
    uint64_t film_ticks;               /* that were kept */
    char film_fault[ERROR_TEXT_BYTES]; /* why the rest is not; "": all are */
    /* Kind that a list of objects would be in its world, for planners that ask for one. */
    enum swerve_objects_source objects_of_world;
    enum swerve_objects_source objects_source; /* what it is for this one */
    char chunks[GIVEN_CHUNKS_BYTES];           /* of its world; stands behind what is shown */
    const struct sensors *sensors;        /* of its runner, that its planner chose; NULL: none */
    struct given_map *map;                /* NULL: not asked for */
    struct swerve_controls_row *controls; /* of tick 0 on; owned, NULL: not asked for */
    char given[LIMIT_ID_BYTES];           /* what its planner is shown, for outcomes */
    bool no_forks;                        /* branches are run from tick 0, or not at all */
    bool cancelled;
    struct drive_log *past; /* of its main line, from an earlier attempt; owned, NULL: none */
    bool partial_refused;   /* the store keeps nothing of this attempt */
    int64_t handed_ns;      /* when it began, or last handed something over */
    enum status failure;    /* not OK: the attempt broke, `error` says how */
    char error[OUTCOME_ERROR_BYTES];
    struct job_run *next;
    void *owner; /* the claim loop's bookkeeping */
};

struct rollout {
    struct job_run *job;
    int32_t branch;   /* index in the scenario, or ROLLOUT_MAIN */
    bool solo;        /* a branch run from tick 0, its interventions applied on the way */
    uint32_t session; /* planner session */
    bool has_session;
    int32_t slot;     /* world slot; -1: parked or not started */
    void *parked;     /* world state while waiting for a slot */
    bool wants_place; /* parked because there was no place for its next branch */
    uint32_t prefix_ticks;
    uint32_t next_intervention;
    double route_s_m; /* last projection of ego on its route */
    struct actuation actuation;
    struct health health;
    struct validity validity;
    struct trace trace;
    struct score *score; /* own memory */
    struct plans plans;
    struct stage *stage; /* of a branch that is a follow-up scene, else NULL */
    int64_t device_ns;
    double distance_m; /* driven by this rollout itself */
    double flop;
    uint32_t pages_used_percent;
    double peak_flops;
    /* sensor frames as last seen; kept so that a dark sensor shows its last frame */
    uint8_t *bev;        /* [BEV_BYTES] when the planner wants it, and not on the device */
    uint8_t *cameras;    /* [CAMERA_COUNT * CAMERA_BYTES] likewise */
    struct shots *shots; /* of the job's sensors; NULL: it has none */
    uint32_t wants;      /* enum swerve_planner_wants */
    int64_t bev_time_ns;
    int64_t camera_time_ns[CAMERA_COUNT];
    struct given_objects *given;   /* NULL: neither objects nor signals are asked for */
    struct checkpoint *checkpoint; /* of a long one in a learned world; owned, NULL: none is made */
    /* between the phases of one tick */
    struct action action;
    uint32_t skipped;            /* steps of the sampler that the world leaves out */
    uint64_t observation_digest; /* of pictures */
    uint64_t objects_digest;     /* 0: none were shown */
    struct swerve_surroundings around;
    struct swerve_route_point route_points[SWERVE_ROUTE_POINTS];
    struct rollout *next;
};

enum status job_run_create(const struct job_lease *lease, struct prepared *prepared,
                           struct job_run **out, struct error *error);
void job_run_destroy(struct job_run *job); /* accepts NULL */

/* The store keeps this outcome of a finished rollout (0: main line). */
enum status job_run_keep(struct job_run *job, uint32_t rollout, const struct outcome *outcome,
                         struct error *error);
/* Which rollout has that name; job->rollout_count: the scenario has no such branch. */
uint32_t job_run_rollout_of(const struct job_run *job, const char *branch_id);
/* Takes what earlier attempts finished as finished; before the job is given to a runner. */
enum status job_run_restore(struct job_run *job, const struct outcome *outcomes, uint32_t count,
                            struct error *error);

/* A main line, or with `solo` one branch from tick 0. `wants`: enum swerve_planner_wants. The job's
 * objects_of_world and sensors are set; what its planner is given is written there. */
enum status rollout_create(struct job_run *job, int32_t branch, bool solo, uint32_t wants,
                           struct rollout **out, struct error *error);
/* A branch that shares everything up to the parent's current tick; no slot or session yet. */
enum status rollout_fork(const struct rollout *parent, int32_t branch, uint32_t tick,
                         struct rollout **out, struct error *error);
void rollout_destroy(
    struct rollout *rollout); /* accepts NULL; not the slot, session or parked state */

/* The interventions this rollout applies: its branch's, none on the main line. */
const struct branch *rollout_branch(const struct rollout *rollout);

/* Briefing of the planner at the start. Valid while the prepared scenario lives; log points are
 * borrowed. */
void rollout_episode(const struct rollout *rollout, struct swerve_episode *out);

/* Looks at the world through this rollout's sensors and fills the planner's query, and
 * rollout->around (both borrowed from the rollout until the next call). Dark sensors keep their
 * last frame and time. Of a planner that looks on the device the pictures are those of the view
 * with its session's number, and are not drawn by this: *view says what to draw, and its digest is
 * the observation's then. */
void rollout_observe(struct rollout *rollout, const struct world *world, const struct scene *scene,
                     struct swerve_observation *out, struct world_view *view);
/* The same through the job's sensors, after rollout_observe: `out` is theirs until the next call.
 */
enum status rollout_shoot(struct rollout *rollout, const struct world *world,
                          const struct swerve_observation *observation, struct swerve_sensors *out,
                          struct error *error);

/* Notes the planner's answer of this tick, for what compares plans. */
void rollout_plan(struct rollout *rollout, const struct swerve_observation *observation,
                  const struct swerve_answer *answer);

/* Of all that was shown in this tick, as traces keep it. */
static inline uint64_t rollout_shown_digest(const struct rollout *rollout)
{
    return rollout->objects_digest == 0 ? rollout->observation_digest
                                        : trace_digest(rollout->observation_digest,
                                                       (const uint8_t *)&rollout->objects_digest,
                                                       sizeof rollout->objects_digest);
}

/* Moves device time, metres and operations so far into the job's result: the rollout ends or is
 * dropped. */
void rollout_charge(struct rollout *rollout);

/* Ends the rollout: fills its job's result from score and trace. `error` "" unless PLANNER_ERROR.
 * One whose outcome the store keeps has driven the past of others: only its trace is taken. */
void rollout_finish(struct rollout *rollout, uint32_t ticks, const char *error);

/* Ends it as flagged by a health check. `evidence` (may be NULL) becomes the result's. */
void rollout_flag(struct rollout *rollout, uint32_t ticks, const struct health_verdict *health,
                  uint8_t *snapshot);

/* A branch whose main line ended at or before its fork: the same outcome, nothing of its own. */
void rollout_result_share(struct job_run *job, int32_t branch);

#endif
