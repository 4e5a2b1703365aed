/*
 * Job: the unit that the store hands to workers, and its life cycle.
 *
 * A job is a *prefix group*: one scenario x planner x seed with all its branches, so that the
 * worker that simulates the shared past also runs what follows from it.
 *
 *   queued -> leased -> done
 *                    -> flagged   (a teacher job is queued in the same transaction)
 *                    -> queued    (failed, with backoff, while attempts remain)
 *                    -> queued    (handed back, or its planner cannot be started on this host)
 *                    -> dead      (attempts used up, or a flagged job without anywhere to go)
 *   queued, leased -> cancelled
 *
 * Every claim raises `epoch`; only the holder of the current epoch may complete.
 */
#ifndef SWERVE_SCHEMAS_JOB_H
#define SWERVE_SCHEMAS_JOB_H

#include "schemas/limits.h"
#include "schemas/outcome.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum job_state {
    JOB_QUEUED = 0,
    JOB_LEASED,
    JOB_DONE,
    JOB_FLAGGED,
    JOB_DEAD,
    JOB_CANCELLED,
    JOB_STATE_COUNT
};

extern const char *const job_state_names[JOB_STATE_COUNT];

/* Whom a suite is driven for: a person who waits, a change that is tested, or whoever looks for
 * what is rare. Between a tenant's suites jobs are claimed by it (store/turns/turns.h). */
enum suite_class {
    SUITE_CLASS_SAME = 0, /* of a submission: nothing is said of it; a new suite's is regression */
    SUITE_REGRESSION,
    SUITE_INTERACTIVE,
    SUITE_MINING,
    SUITE_CLASS_COUNT
};

extern const char *const suite_class_names[SUITE_CLASS_COUNT]; /* "" for SAME */

/* Place of a class, 0 the highest; SAME counts as regression. */
static inline int suite_class_rank(enum suite_class of)
{
    return of == SUITE_INTERACTIVE ? 0 : of == SUITE_MINING ? 2 : 1;
}

/* Submission of a job. Texts are owned by the caller for the duration of the call. */
struct job_spec {
    char key[SHA256_HEX_BYTES]; /* result identity: SHA-256 of scenario, branches, planner, tier,
                                   model, sampler, seed, backend, revision, rig. Memoisation looks
                                   it up; within a suite it makes submission idempotent */
    char suite_id[LIMIT_ID_BYTES];
    char scenario_id[LIMIT_ID_BYTES];
    char scenario_hash[SHA256_HEX_BYTES]; /* a scenario body put with store->scenario_put */
    char planner[LIMIT_SPEC_BYTES];
    char planner_hash[SHA256_HEX_BYTES];
    char pool[LIMIT_ID_BYTES]; /* which workers may take it: "bulk", "teacher" */
    enum tier tier;
    char model_hash[SHA256_HEX_BYTES];
    char sampler[LIMIT_ID_BYTES];
    char backend[LIMIT_ID_BYTES];
    char revision[SHA256_HEX_BYTES];
    char rig[SHA256_HEX_BYTES]; /* whose sensors the planner is shown (schemas/rig/rig.h rig_hash);
                                   "": the built-in one */
    uint64_t seed;
    int32_t priority;                  /* higher first within a suite */
    uint32_t rollout_count;            /* 1 + branches */
    uint32_t attempts_max;             /* >= 1 */
    int64_t parent_job_id;             /* lineage: the flagged job this one replaces; 0: none */
    char prefix_key[SHA256_HEX_BYTES]; /* affinity: jobs with equal keys share context (map, model)
                                        */
    char audit_key[SHA256_HEX_BYTES];  /* key of the job of this suite that this one repeats on the
                                          teacher, to compare the verdicts; "": a job in its own
                                          right. Its outcomes do not count as the suite's, its cost
                                          does */
    bool follows;   /* answered by the version that its tier points to when it is claimed, where the
                       store has one (store/api/models.h); else by the model that it names */
    bool evaluates; /* a student's, in evidence of what it is worth: no freeze concerns it, and it
                       is audited whatever the rates say */
    /* Who is asked the same question when the job is flagged, as its submitter fixed it; a
     * teacher's or an audit job escalates no further. */
    char escalate_pool[LIMIT_ID_BYTES]; /* "": the store's promoted teacher, or nobody */
    enum tier escalate_tier;
    char escalate_model_hash[SHA256_HEX_BYTES];
    char escalate_sampler[LIMIT_ID_BYTES];
    /* Purpose of the drive, if not for its verdict; "": for that. Such a job is in no rate and
     * answers for nobody, as an audit; what it made is the artifact of its outcomes. */
    char makes[LIMIT_ID_BYTES];
    /* Why this tier answers, as whoever routed it says; nothing is decided by it. */
    enum route_reason route_reason;
    int64_t route_own;
    int64_t route_other;
};

/* "golden": a recording of every rollout, with every frame. "clip:N": N ticks as training data, of
 * the main line alone. "futures:TICK:DRAWS": how the drive of the job that it looks at (audit_key)
 * might have ended from a tick on, by so many draws of each traffic model; likewise. */
#define JOB_MAKES_GOLDEN "golden"
#define JOB_MAKES_CLIP "clip:"
#define JOB_MAKES_FUTURES "futures:"
enum { JOB_CLIP_TICKS_MAX = 600 };
/* Ticks of the clip that a job makes; 0: it makes none. */
uint32_t job_clip_ticks(const struct job_spec *spec);
/* Whether it makes futures; then tick and draws, which may be NULL, are filled in. */
bool job_futures(const struct job_spec *spec, uint32_t *tick, uint32_t *draws);
void job_futures_put(uint32_t tick, uint32_t draws, struct job_spec *spec);
/* Whether a maker drives it, the main line alone, in place of a runner (clips, futures). */
bool job_has_maker(const struct job_spec *spec);
/* Whether that is something that there is. */
bool job_makes_known(const struct job_spec *spec);

/* Answer to a claim. */
struct job_lease {
    int64_t job_id;
    int64_t epoch;
    uint32_t attempt;          /* 1-based */
    uint32_t lost;             /* earlier attempts that ended with the loss of their worker */
    enum suite_class of_class; /* of its suite; SAME: a server of an earlier version does not say */
    struct job_spec spec;
};

/* A job that was lost this often is suspected of killing its workers: it is run with nothing beside
 * it. Once is no ground: machines come and go. */
enum { JOB_LOST_POISON = 2 };

enum completion_kind {
    COMPLETION_DONE = 0,  /* outcomes attached, one per rollout */
    COMPLETION_FLAGGED,   /* discard; outcomes carry the evidence; escalated, or dead */
    COMPLETION_FAILED,    /* this attempt broke: retry with backoff, else dead */
    COMPLETION_RELEASED,  /* handed back unharmed (drain): queued at once, attempt not counted */
    COMPLETION_UNSTARTED, /* the planner cannot be started on this host: as released, unless other
                             hosts say so too; then as failed */
    COMPLETION_PARTIAL, /* ends nothing: outcomes of rollouts that are finished already, for whoever
                           claims the job after this attempt; costs are those so far */
    COMPLETION_KIND_COUNT
};

extern const char *const completion_kind_names[COMPLETION_KIND_COUNT];

struct job_completion {
    int64_t job_id;
    int64_t epoch;
    char worker_id[LIMIT_ID_BYTES];
    enum completion_kind kind;
    int64_t device_ns; /* whole attempt, discarded work included */
    int64_t metres_mm;
    int64_t mflop;                        /* millions of operations of a learned world */
    char artifact_hash[SHA256_HEX_BYTES]; /* "" or an artifact already in the store */
    /* FLAGGED only: a copy of what the job's row says of its successor, and that one's key, by
     * workers that send it; empty or equal. */
    char escalate_pool[LIMIT_ID_BYTES];
    enum tier escalate_tier;
    char escalate_model_hash[SHA256_HEX_BYTES];
    char escalate_sampler[LIMIT_ID_BYTES];
    char escalate_key[SHA256_HEX_BYTES];
    char error[OUTCOME_ERROR_BYTES];
    uint32_t outcome_count;
    const struct outcome *outcomes; /* borrowed */
};

/* One attempt at a job, as the ledger charges it. */
struct ledger_totals {
    int64_t attempts;
    int64_t device_ns;
    int64_t metres_mm;
    int64_t mflop; /* 0 for attempts whose worker vanished */
    int64_t cost_uusd;
};

#endif
