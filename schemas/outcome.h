/*
 * Outcome: the verdict on one rollout (the main line or one branch of a job) and everything needed
 * to reproduce it. JSON codec in schemas/outcome_json.c; member names are the same.
 */
#ifndef SWERVE_SCHEMAS_OUTCOME_H
#define SWERVE_SCHEMAS_OUTCOME_H

#include "base/sha256.h"
#include "schemas/limits.h"

#include <stdbool.h>
#include <stdint.h>

enum tier {
    TIER_REPLAY = 0,
    TIER_OBJECT,
    TIER_STUDENT,
    TIER_TEACHER,
    TIER_GOLDEN, /* frames that a student or teacher generated before */
    TIER_COUNT
};

/* Reason for which a job's tier answers, and what the two figures are that stand beside it.
 * scheduler/route.h tells it to people. */
enum route_reason {
    ROUTE_REASON_NONE = 0, /* not routed here, or before reasons were kept */
    ROUTE_REASON_AUTHOR,   /* its submitter named the world */
    ROUTE_REASON_LOGGED,   /* regression, and every agent that moves has a log */
    ROUTE_REASON_UNLOGGED, /* regression, and one has none */
    ROUTE_REASON_PLANNING,
    ROUTE_REASON_SENSORS,  /* perception: sensors of a learned world */
    ROUTE_REASON_DEGRADED, /* perception, without a world model */
    ROUTE_REASON_FROZEN,   /* the student is frozen in a slice of it */
    ROUTE_REASON_HORIZON,  /* ticks that it lasts; ticks for which the first choice is trusted */
    ROUTE_REASON_PRICE, /* 1e-12 dollars of a tick, in this tier; in the other that could answer */
    ROUTE_REASON_BACKLOG, /* likewise: milliseconds until it is answered */
    ROUTE_REASON_AUDIT,   /* repeats a job of the student */
    ROUTE_REASON_FLAGGED, /* answers for a job that was flagged */
    ROUTE_REASON_COUNT
};

enum verdict {
    VERDICT_PASS = 0,
    VERDICT_FAIL,          /* a criterion was not met; `reasons` says which */
    VERDICT_PLANNER_ERROR, /* the planner crashed, hung or answered nonsense */
    VERDICT_FLAGGED,       /* a health check fired: evidence only, never counted as a result */
    VERDICT_INVALID,       /* beyond what the models hold for: neither pass nor fail */
    VERDICT_COUNT
};

/* Whether a verdict says how the planner did: the others are in no rate. */
static inline bool verdict_is_result(enum verdict verdict)
{
    return verdict != VERDICT_FLAGGED && verdict != VERDICT_INVALID;
}

/* Why a rollout failed: a bit each, in this order, named in reason_names. */
enum reason {
    REASON_AT_FAULT_COLLISION = 1 << 0,
    REASON_COLLISION = 1 << 1,
    REASON_OFF_DRIVABLE = 1 << 2,
    REASON_WRONG_DIRECTION = 1 << 3,
    REASON_GOAL_NOT_REACHED = 1 << 4,
    REASON_UNCOMFORTABLE = 1 << 5,
    REASON_TTC = 1 << 6,
    REASON_DISTANCE = 1 << 7,
    REASON_IMPACT_SPEED = 1 << 8,
    REASON_PROGRESS = 1 << 9,
    REASON_SCORE = 1 << 10,
    REASON_SPEED = 1 << 11,
    REASON_RED_LIGHT = 1 << 12,
    REASON_COST = 1 << 13,
    REASON_STOP_SIGN = 1 << 14,
    REASON_BIT_COUNT = 15
};

enum collision_kind {
    COLLISION_NONE = 0,
    COLLISION_STOPPED_EGO,
    COLLISION_STOPPED_TRACK,
    COLLISION_REAR,
    COLLISION_FRONT,
    COLLISION_LATERAL,
    COLLISION_KIND_COUNT
};

/* Definitions, sources and units: worker/METRICS.md. NAN where a metric does not apply. */
struct metrics {
    double no_at_fault_collision; /* 1 or 0 */
    double drivable_area;         /* 1 or 0 */
    double driving_direction;     /* 1, 0.5 or 0 */
    double making_progress;       /* 1 or 0 */
    double progress;              /* 0..1 */
    double ttc;                   /* 1 or 0 */
    double speed_limit;           /* 0..1 */
    double comfort;               /* 1 or 0 */
    double score;                 /* 0..1 */
    double min_ttc_s;             /* smallest over the rollout, 3.0 horizon; INFINITY: none */
    double min_distance_m;        /* INFINITY: no agent was ever present */
    double impact_speed_mps;      /* relative speed at the first contact; NAN: none */
    double progress_m;            /* along the route */
    double distance_m;            /* driven */
    double speed_max_mps;
    double accel_min_mps2; /* smoothed, as comfort sees it */
    double jerk_max_mps3;
    double lataccel_cost; /* of a log of the controls challenge (docs/controls.md) */
    double jerk_cost;
    double total_cost;
    double lane_keeping;     /* 1 or 0; NAN, as below: driven before it was measured */
    double traffic_light;    /* 0: passed on red; else 1 */
    double extended_comfort; /* share of successive plans that agree; NAN: there are none */
    double stage_distance_m; /* of a branch that is a follow-up scene (worker/METRICS.md), ..  */
    double stage_epdms;      /* .. else NAN, both */
    uint32_t intervention_count; /* ticks' runs in which the guardian would have overridden */
    uint32_t collision_count;    /* distinct agents touched */
    uint32_t collision_tick;     /* of the first contact; UINT32_MAX: none */
    int32_t collision_agent;     /* index in the scenario, -1: none */
    enum collision_kind collision_kind; /* of the first contact */
    bool at_fault;                      /* any contact was ego's fault */
    bool goal_reached;
};

/* Bounds of two subscores, and nuPlan's score of them all: gates times a weighted mean of the rest
 * (worker/METRICS.md, [A]). */
#define METRICS_MAKING_PROGRESS_MIN 0.2
#define METRICS_TTC_BOUND_S 0.95
static inline double metrics_score(const struct metrics *metrics)
{
    const double gate = metrics->no_at_fault_collision * metrics->drivable_area *
                        metrics->making_progress * metrics->driving_direction;
    const double sum = 5.0 * metrics->progress + 5.0 * metrics->ttc + 4.0 * metrics->speed_limit +
                       2.0 * metrics->comfort;
    return gate * sum / 16.0;
}

/* Measures of what a learned world generated (docs/health.md); worker/models/health_bounds.h has
 * their bounds. */
enum health_measure {
    MEASURE_SATURATED = 0, /* share of latents at the end of their range */
    MEASURE_STILL,     /* change of the picture while ego moves: the larger of BEV and cameras */
    MEASURE_CUT,       /* share of the occupied area that moved from one tick to the next */
    MEASURE_MASS_HIGH, /* occupied area over what the layout (agents) or the past says */
    MEASURE_MASS_LOW,
    MEASURE_LAYOUT, /* overlap of occupancy and layout */
    MEASURE_CAMERA, /* correlation of cameras and their layout */
    MEASURE_JUMP,   /* unexplained step of an agent, m */
    MEASURE_LOST,   /* agents that vanished in view */
    /* Of the agent that is worst over its own ticks (agents). */
    MEASURE_ABSENT,     /* share of the returns due that are not drawn; of anybody but .. */
    MEASURE_ABSENT_VRU, /* .. a vulnerable road user */
    MEASURE_OFFSET,     /* distance between where it is drawn and where it is, m */
    /* Returns where nobody is, in cells (agents). */
    MEASURE_PHANTOM,
    MEASURE_PHANTOM_VRU,
    MEASURE_COUNT
};

struct health_measure_kind {
    const char *name;
    bool low_is_sick; /* its bound is the least that it may be, else the most */
};

extern const struct health_measure_kind health_measure_kinds[MEASURE_COUNT];

/* Health of a drive: its measures as they are judged, tick by tick (health_world_measure), over the
 * ticks to which each applied, those before a fork included. All zero: its world has no such
 * measures, or it was driven before they were kept. */
struct drive_health {
    int64_t measured_ticks;
    double worst[MEASURE_COUNT]; /* the one nearest its bound or furthest beyond; NAN, as below: */
    double mean[MEASURE_COUNT];  /* it never applied */
};

enum { OUTCOME_DRAWS_MAX = 63 }; /* of a traffic model: branches of a scenario are few */

/* Fate of the futures of a job that makes them. */
enum futures_state {
    FUTURES_NONE = 0,      /* it makes none */
    FUTURES_DRIVEN,        /* they were driven; what follows counts */
    FUTURES_ENDED,         /* the drive, in the object world, ended by the tick */
    FUTURES_FAILED_BEFORE, /* .. or had failed by then for a reason that nothing undoes */
    FUTURES_WITHOUT,       /* .. or has no verdict at all */
    FUTURES_STATE_COUNT
};

extern const char *const futures_state_names[FUTURES_STATE_COUNT];

/* Endings that a drive might have had, had the others driven otherwise from a tick on: of each
 * traffic model that foresees, how many of its draws passed and how many failed; the rest has no
 * verdict. P(fail), its interval and its answer follow from these (scheduler/calibration.h). */
struct outcome_futures {
    enum futures_state state;
    uint32_t tick;
    uint32_t draws; /* of each model, 1 to OUTCOME_DRAWS_MAX */
    uint32_t idm_passed, idm_failed;
    uint32_t drivers_passed, drivers_failed;
    uint32_t constant_passed, constant_failed;
};

enum { OUTCOME_ERROR_BYTES = 2048 };

/* In the sentence of a branch that could not be forked because its planner answered the same past
 * otherwise: what it did then is a result, and another one each time. */
#define OUTCOME_VARIES "driven from tick 0, since its planner varies"

struct outcome {
    int64_t id; /* store's row id; 0 before it is stored */
    int64_t job_id;
    int64_t epoch; /* the attempt that finished its job; an earlier one may have driven it */
    char suite_id[LIMIT_ID_BYTES];
    char scenario_id[LIMIT_ID_BYTES];
    char scenario_hash[SHA256_HEX_BYTES];
    char branch_id[LIMIT_ID_BYTES]; /* "" for the main line */
    char planner[LIMIT_SPEC_BYTES]; /* spec as given */
    char planner_hash[SHA256_HEX_BYTES];
    enum tier tier;
    char pool[LIMIT_ID_BYTES];
    char model_hash[SHA256_HEX_BYTES]; /* "" for worlds without a model */
    char sampler[LIMIT_ID_BYTES];      /* "" likewise */
    char backend[LIMIT_ID_BYTES];      /* "cpu", "cuda:sm_90" */
    char revision[SHA256_HEX_BYTES];   /* of the simulation sources, see worker/run/revision.h */
    char rig[SHA256_HEX_BYTES];        /* of the sensors; "": the built-in rig */
    uint64_t seed;
    enum verdict verdict;
    uint32_t reasons; /* enum reason bits */
    struct metrics metrics;
    uint32_t ticks;        /* length of the rollout, prefix included */
    uint32_t prefix_ticks; /* of these, simulated once by the main line and shared */
    int64_t metres_mm;     /* driven in simulation by this rollout, shared prefix excluded */
    int64_t device_ns;     /* compute charged to this rollout, shared prefix excluded */
    int64_t mflop;         /* millions of operations of a learned world, likewise; else 0 */
    /* Millions of operations a second that one core of the machine that drove, or its device,
     * reaches in the model's precision, measured when it opened the model or, of a device, once; 0:
     * not measured (emulated devices, other worlds). */
    int64_t peak_mflops;
    /* Frame pages of its world in use at the fullest, since the worker opened it; 0: it has none.
     */
    uint32_t pages_used_percent;
    char trace_hash[SHA256_HEX_BYTES];    /* see schemas/trace.h */
    char artifact_hash[SHA256_HEX_BYTES]; /* trace artifact in the store */
    char slice[6][LIMIT_ID_BYTES];        /* values by enum slice_kind, copied from the scenario */
    bool safety_critical;
    /* Sights that the planner was given: "bev,cameras,objects:seen,map", "route"
     * (schemas/planner.md); "" of outcomes that are older than this member. */
    char given[LIMIT_ID_BYTES];
    /* Planner error and the tail of its stderr; of another verdict, why it is invalid or flagged,
     * and the first death of a planner that was started again, or OUTCOME_VARIES; else "". */
    char error[OUTCOME_ERROR_BYTES];
    /* The evidence of a flagged rollout, or why one is invalid. */
    char health_check[LIMIT_ID_BYTES]; /* name of the check that fired; "" unless one did */
    uint32_t health_tick;
    double health_value;                  /* what was measured; NAN: not a number */
    double health_threshold;              /* what it might have been; 0 without a check */
    char evidence_hash[SHA256_HEX_BYTES]; /* artifact: PNG of the flagged frame; of a partial
                                             outcome a checkpoint; "": none */
    struct drive_health health;           /* of a learned world's pictures; all zero: of another */
    struct outcome_futures futures;       /* of a job that makes them; all zero: of another */
    /* Filled by the store from the job; not looked at in a completion. */
    int64_t parent_job_id; /* the flagged job that this one's replaces; 0: none */
    int64_t audit_of; /* the job whose audit job produced this (a second opinion, not a result of
                         the suite's own; pairs join by branch_id), or whose futures this has; its
                         own job, of another one that makes something (struct job_spec); 0: a
                         result */
    int64_t at_ms;  /* when the store took it, a partial one included: milliseconds since 1970 (UTC)
                       by the store's clock; 0: not known. No result is decided by it */
    bool shadow;    /* audit_of was driven again by a version in state shadow, not by the teacher */
    int64_t freeze; /* event of trust by which the teacher answered in the student's place, or at
                       which the student was on its way; 0: none */
    bool in_flight; /* .. the latter: it is a student's, of a slice that was frozen meanwhile */
    enum route_reason route_reason; /* of the job's tier, with .. */
    int64_t route_own;              /* .. its figures */
    int64_t route_other;
};

/* Whether it is of a job that makes something: no result, and no second opinion either. */
static inline bool outcome_is_made(const struct outcome *outcome)
{
    return outcome->futures.state != FUTURES_NONE ||
           (outcome->audit_of != 0 && outcome->audit_of == outcome->job_id);
}

extern const char *const tier_names[TIER_COUNT];
extern const char *const route_reason_names[ROUTE_REASON_COUNT];
extern const char *const verdict_names[VERDICT_COUNT];
extern const char *const reason_names[REASON_BIT_COUNT];
/* The names of the reasons in a set, in their order, with `separator` (at most two bytes) between
 * them; returns `out`. */
enum { REASONS_TEXT_BYTES = 256 };
const char *reasons_text(uint32_t reasons, const char *separator, char out[REASONS_TEXT_BYTES]);

/* Last part of the sampler of a world of the user's: one that declares to be deterministic, and
 * another. */
#define SAMPLER_EXACT "exact"
#define SAMPLER_VARIES "varies"

/* Option that a command which drives an outcome of this sampler again needs besides, as it is
 * shown: " --world SPEC" where a world of the user's answered, which the store does not name, else
 * "". */
const char *outcome_world_option(const char *sampler);

extern const char *const collision_kind_names[COLLISION_KIND_COUNT];

#endif
