/*
 * Job context: the question that a job asks and what it is to be answered with. Whoever sends an
 * outcome, a flag or an audit says it too, but that is a copy: the job's row decides, and a copy
 * that differs is refused.
 *
 * One table says where a member is in a job's spec and where in its outcomes; copying, comparing
 * and naming go by it.
 */
#ifndef SWERVE_SCHEMAS_JOB_CONTEXT_H
#define SWERVE_SCHEMAS_JOB_CONTEXT_H

#include "schemas/job.h"

/* A record that says the context, borrowed. */
struct job_context {
    const void *record;
    enum { JOB_CONTEXT_IN_SPEC = 0, JOB_CONTEXT_IN_OUTCOME, JOB_CONTEXT_RECORDS } kind;
};

/* A bit each, in the order of the table. An outcome does not say how many rollouts there are. */
enum job_context_member {
    JOB_CONTEXT_SCENARIO_ID = 1 << 0,
    JOB_CONTEXT_SCENARIO_HASH = 1 << 1,
    JOB_CONTEXT_SEED = 1 << 2,
    JOB_CONTEXT_PLANNER = 1 << 3,
    JOB_CONTEXT_PLANNER_HASH = 1 << 4,
    JOB_CONTEXT_REVISION = 1 << 5,
    JOB_CONTEXT_ROLLOUT_COUNT = 1 << 6,
    JOB_CONTEXT_POOL = 1 << 7,
    JOB_CONTEXT_TIER = 1 << 8,
    JOB_CONTEXT_MODEL_HASH = 1 << 9,
    JOB_CONTEXT_SAMPLER = 1 << 10,
    JOB_CONTEXT_BACKEND = 1 << 11,
    JOB_CONTEXT_RIG = 1 << 12,
    JOB_CONTEXT_MEMBER_COUNT = 13
};

enum {
    JOB_CONTEXT_ALL = (1 << JOB_CONTEXT_MEMBER_COUNT) - 1,
    /* Question alone, whoever answers: of an audit and what it repeats. */
    JOB_CONTEXT_QUESTION = JOB_CONTEXT_SCENARIO_ID | JOB_CONTEXT_SCENARIO_HASH | JOB_CONTEXT_SEED |
                           JOB_CONTEXT_PLANNER | JOB_CONTEXT_PLANNER_HASH | JOB_CONTEXT_REVISION |
                           JOB_CONTEXT_ROLLOUT_COUNT | JOB_CONTEXT_RIG,
    /* Members that an outcome repeats. */
    JOB_CONTEXT_OF_OUTCOME = JOB_CONTEXT_ALL & ~JOB_CONTEXT_ROLLOUT_COUNT,
    /* Members for which a runner is opened. */
    JOB_CONTEXT_RUNNER = JOB_CONTEXT_PLANNER | JOB_CONTEXT_TIER | JOB_CONTEXT_MODEL_HASH |
                         JOB_CONTEXT_SAMPLER | JOB_CONTEXT_BACKEND | JOB_CONTEXT_RIG,
    /* The question as far as outcomes say it. */
    JOB_CONTEXT_ASKED = JOB_CONTEXT_QUESTION & ~JOB_CONTEXT_ROLLOUT_COUNT,
};

/* Names nobody to answer in its place, as of a teacher's and an audit job. */
void job_escalation_clear(struct job_spec *spec);
/* The job that answers in place of a flagged one by its row: all but its key. */
void job_escalation_take(const struct job_spec *flagged, struct job_spec *out);

struct job_context job_context_of_spec(const struct job_spec *spec);
struct job_context job_context_of_outcome(const struct outcome *outcome);

/* Copies into an outcome what it repeats of its job. */
void job_context_copy(const struct job_spec *spec, struct outcome *outcome);

/* Copies some members of an outcome into a spec: of those that outcomes repeat. */
void job_context_take(const struct outcome *outcome, uint32_t members, struct job_spec *spec);

/* The first of `members` in which two differ, a bit; 0: none. */
uint32_t job_context_differs(const struct job_context *a, const struct job_context *b,
                             uint32_t members);

/* A number that two have alike that differ in none of `members`. */
uint64_t job_context_hash(const struct job_context *context, uint32_t members);

/* "planner is \"exec:rival\", the job asks for \"exec:ours\"" of the member (a bit) in which
 * `found` differs from the job that it is to answer; returns `out`. */
enum { JOB_CONTEXT_TEXT_BYTES = 512 };
const char *job_context_text(const struct job_context *found, const struct job_context *job,
                             uint32_t member, char out[JOB_CONTEXT_TEXT_BYTES]);

#endif
