/*
 * Submission: from an expanded suite to job rows in a store. Routes every scenario to a tier, names
 * every result by its key, and submits idempotently: the same suite, planner and world give the
 * same suite id and the same keys, so running it again resumes what was left and repeats nothing.
 */
#ifndef SWERVE_WORKER_SUBMISSION_SUBMISSION_H
#define SWERVE_WORKER_SUBMISSION_SUBMISSION_H

#include "scenarios/scenarios.h"
#include "scheduler/audit.h"
#include "scheduler/route.h"
#include "scheduler/trust.h"
#include "store/api/store.h"
#include "worker/models/models.h"
#include "worker/planner/planner_trial.h"

#define SUBMISSION_SKIP_ALL UINT32_MAX

struct submission_options {
    const char *planner; /* for entries that name none */
    /* Asked once of each planner and rig that it is offered (NULL: the built-in one), by starting
     * it: which files it loaded, and of which rig it is shown which sensors. Files and rig name its
     * results. Where *out stays zeros, or nobody asks, the files of its spec and the offered rig
     * do. `on_device`: where its world will run. */
    enum status (*trial)(void *context, const char *planner, const struct rig *rig, bool on_device,
                         struct planner_trial *out, struct error *error);
    void *trial_context;
    uint64_t fresh;      /* not 0: results under this number are no others' (make them again) */
    const char *backend; /* of learned tiers: "cpu", "cuda:sm_90"; other tiers run on the CPU */
    struct route_policy policy;
    /* Learned tiers: where their models are, and how they are sampled. */
    struct models *models; /* borrowed; may be NULL when the policy has none available */
    enum conditioning conditioning;
    enum nn_precision precision;
    /* Of the student's sampler, that each tick leaves out, or SUBMISSION_SKIP_ALL; on the CPU. */
    uint32_t skipped_steps;
    const char *previous; /* model that makes the student's ticks which say so; likewise; NULL: none
                           */
    enum route_beyond beyond; /* the horizon for which these models are trusted */
    /* Slices in which the student that answers is frozen, borrowed. */
    const struct trust_slice *frozen;
    uint32_t frozen_count;
    bool evaluation; /* jobs of the student say what it is worth: no freeze concerns them */
    const struct audit_policy *audit; /* borrowed; NULL: no audit jobs */
    uint32_t seed_count;              /* > 0: seeds 1 .. n instead of the suite's */
    bool nominal; /* seed 0 instead of the suite's; before 1 .. n where those are asked for */
    uint32_t attempts_max;     /* per job */
    const char *makes;         /* what jobs are driven for, if not for verdicts; NULL: for those */
    uint32_t weight;           /* the suite's share among others, 1..100 */
    enum suite_class of_class; /* SAME: regression, or what the suite has */
};

struct submission {
    char suite_id[LIMIT_ID_BYTES];
    const char *tenant;  /* for whom it is sent; NULL: for whoever the token or the suite says */
    int64_t budget_uusd; /* that the suite may cost; 0: nothing is said of it */
    /* After sending: an earlier suite of these jobs that its budget has stopped; "": none. */
    char passed_id[LIMIT_ID_BYTES];
    enum suite_class of_class; /* that the suite is of; SAME: nothing is said of it */
    uint32_t job_count;
    /* One job of each kind: planner, tier, pool, model, sampler, backend, who is asked when it is
     * flagged. Those of audits are among them. Scenario, seed and key are empty. */
    uint32_t kind_count;
    struct job_spec *kinds; /* [kind_count], owned */
    /* The page at hand: a suite of up to half a page lies in it whole. */
    uint32_t page_count;
    struct job_spec *specs; /* [page_count], owned */
    const struct scenario_document *
        *documents;            /* [page_count], owned array of the suite's documents */
    int64_t rollout_count;     /* without those of audit jobs */
    uint32_t audit_count;      /* audit jobs among the jobs */
    uint32_t degraded_count;   /* scenarios answered by a cheaper tier than their question wants */
    uint32_t frozen_count;     /* scenarios that the teacher answers, for their slice is frozen */
    uint32_t evaluation_count; /* jobs of the student that no freeze concerns */
    uint32_t open_count;       /* scenarios of which the market decided who answers */
    uint32_t rerouted_count;   /* scenarios that another tier answers, for it is trusted longer */
    uint32_t clipped_count;    /* scenarios of which only the trusted part is driven */
    uint32_t memoised_count;   /* after sending */
    struct scenario_document **clipped; /* [clipped_count], owned, among the documents */
    /* Groups that jobs are made of, and the first job behind the page. */
    struct submission_work *work; /* [work_count], owned */
    uint32_t work_count;
    uint32_t work_next;
    uint32_t seed_next;
    uint64_t fresh;
};

enum { SUBMISSION_PAGE = 4000 }; /* jobs at hand, at the most */

/* Pure but for planner files, whose content is hashed, and for what `trial` does. Fails with
 * everything unsent. The suite has to stay as long as the submission, the options need not. The
 * first page is at hand. */
enum status submission_build(const struct suite *suite, const struct submission_options *options,
                             struct submission *out, struct error *error);
void submission_finish(struct submission *submission);

/* Scenario of a group of jobs, i < work_count. Groups follow each other as their jobs do, and those
 * that differ in their planner alone have the same. */
const struct scenario_document *submission_document(const struct submission *submission,
                                                    uint32_t i);

/* A scenario that jobs of a kind ask about; NULL: no job is of it. */
const struct scenario_document *submission_example(const struct submission *submission,
                                                   uint32_t kind);

/* Makes the first page of jobs the one at hand, and the next. False: there is none. A job and what
 * audits it are in one page. */
bool submission_first(struct submission *submission);
bool submission_next(struct submission *submission);

/* Another suite id for all jobs, before they are sent: one suite may be submitted piece by piece.
 */
void submission_name(struct submission *submission, const char *id);

/* The job that asks the promoted teacher what `student` (a student's job) asks: pool, tier, model,
 * sampler, key. `precision`: of a teacher that no store points to. NOT_FOUND: no teacher is
 * promoted, or it is not trusted for the `ticks` that the scenario lasts. */
enum status submission_teacher_spec(struct models *models, const struct job_spec *student,
                                    enum nn_precision precision, uint32_t ticks,
                                    struct job_spec *out, struct error *error);

/* Prefix of the ids of suites that drive these jobs of a suite again. */
void submission_renewed_prefix(const char *suite_id, const struct job_spec *specs, uint32_t count,
                               char out[LIMIT_ID_BYTES]);

/* Makes jobs that a store has had into new ones of a suite of their own: the planner and the
 * revision as they are now, and keys under `options->fresh`. Of the options that and `trial` count:
 * not for jobs of another rig than the built-in one, which lies in their scenario or their planner;
 * those go by the planner's files. */
enum status submission_renew(const struct submission_options *options, const char *suite_id,
                             struct job_spec *specs, uint32_t count, struct error *error);

/* Puts scenario bodies, then submits all jobs. When the suite is in the store already and ended
 * with dead or cancelled jobs, it gets a new id ("<id>-2", ..) so that those are run again. One
 * that its budget has stopped goes on with a larger one; without any word of a budget it is passed.
 */
enum status submission_send(struct submission *submission, struct store *store, uint32_t weight,
                            struct error *error);

#endif
