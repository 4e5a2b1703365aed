/*
 * Planners of a submission, each tried once with each rig that it is offered: what names its
 * results, and whether the world that is asked can make what it is shown. A world that cannot is
 * refused before anything is sent, so that nobody finds out job by job.
 */
#ifndef SWERVE_WORKER_SUBMISSION_SUBMISSION_PLANNER_H
#define SWERVE_WORKER_SUBMISSION_SUBMISSION_PLANNER_H

#include "worker/submission/submission.h"

/* A planner as it starts when it is offered a rig. */
struct submission_planner {
    char spec[LIMIT_SPEC_BYTES];
    char offered[SHA256_HEX_BYTES]; /* of the rig */
    char hash[SHA256_HEX_BYTES];    /* its identity */
    char rig[SHA256_HEX_BYTES];     /* whose sensors it is shown */
    bool asked;                     /* a trial was made .. */
    struct planner_trial told;      /* .. and told this; zeros where it tells nothing */
};

enum { SUBMISSION_PLANNERS_MAX = 4 * (LIMIT_PLANNERS + 1) }; /* most suites have one rig */

struct submission_planners {
    struct submission_planner list[SUBMISSION_PLANNERS_MAX];
    uint32_t count;
};

/* A planner spec that is offered a rig (NULL: the built-in one). *out stays in the list. */
enum status submission_planner_find(struct submission_planners *planners,
                                    const struct submission_options *options, const char *spec,
                                    const struct rig *rig, struct submission_planner **out,
                                    struct error *error);

/* Tier and model of a job of the planner against the rig that it sees and the sensors that it chose
 * of it. A world of the form RIG is opened with the rig, as a worker will, unless it was `opened`
 * with it before. A plugin is tried for its choice where that matters. BAD_INPUT, or what the world
 * refuses with. */
enum status submission_planner_suits(struct submission_planner *planner,
                                     const struct submission_options *options,
                                     const struct rig *offered, const struct job_spec *spec,
                                     bool opened, struct error *error);

#endif
