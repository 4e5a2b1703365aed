/*
 * Risk: how often an event happens on the road, from how often it happens in each logical scenario
 * and how often traffic brings that scenario about. Pure functions over counts; reading exposures
 * and outcomes is report/risk's.
 *
 * The rate is R = sum over logical scenarios of exposure x weight x probability. A probability is
 * known from few concrete scenarios, and logical scenarios resemble each other, so they share a
 * beta distribution whose mean and size are unknown as well (a beta-binomial hierarchy); an
 * exposure is known from a count or from an interval. The interval of R joins all of it, by draws
 * from the posterior. A concrete scenario is one draw of its logical scenario, whatever its seeds.
 * Where a contact harms with a probability (somebody is killed), the probability is that of a
 * contact, and the harm of contacts is drawn apart: it says nothing of how often there are any.
 *
 * Invariant: the same counts give the same figures: draws come from a counter, not from a clock.
 */
#ifndef SWERVE_SCHEDULER_RISK_H
#define SWERVE_SCHEDULER_RISK_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Frequency with which situations of a class come about, per unit of driving. */
struct risk_class {
    double rate;
    double low; /* of its 95% interval, log-normal, of that mean; 0: none is known */
    double high;
    double count; /* events that the rate was counted from; 0: it was not counted */
};

/* A logical scenario: one of the situations of a class. */
struct risk_stratum {
    uint32_t class_index;
    double weight; /* share of its class */
    double draws;  /* concrete scenarios that have a result; 0: not driven */
    double events; /* sum of their values, 0 to 1 each */
    double harm;   /* of these events, the sum of their harm, 0 to 1 each; if `harms` */
};

struct risk_input {
    uint32_t class_count;
    const struct risk_class *classes;
    uint32_t stratum_count;
    const struct risk_stratum *strata;
    bool harms;          /* what is counted is the harm of the events, not each event */
    uint32_t draw_count; /* from the posterior; 0: RISK_DRAWS */
    uint64_t key;        /* of the draws */
};

enum { RISK_DRAWS = 4000 };

struct risk_estimate {
    double value; /* median of the posterior; NAN: harm, of which no event has told anything */
    double low;   /* of the 95% interval */
    double high;
    double observed;       /* from shares alone; strata that were not driven are not in it */
    double missed;         /* sum of exposure x weight of these */
    double size;           /* of the shared beta distribution, posterior mean */
    double exposure_share; /* of the variance that is due to exposures, 0 to 1 */
    double unseen_share;   /* of the mean that comes from strata without an event, 0 to 1 */
};

/* `probability` is NULL or [stratum_count]: the posterior means, of harm if `harms`. NO_MEMORY. */
enum status risk_estimate(const struct risk_input *input, struct risk_estimate *out,
                          double *probability, struct error *error);

/* Half the interval over the value; infinite without a value. */
double risk_precision(const struct risk_estimate *estimate);

/* Stopping: the jobs (further concrete scenarios) that each logical scenario needs until that
 * precision is to be expected, spread as Neyman did (J. Royal Statistical Society 97, 1934): where
 * exposure times spread is greatest. */
#define RISK_JOBS_MOST 1e9 /* of a logical scenario; as many stand for any number */
struct risk_plan {
    double jobs;      /* all together */
    double precision; /* that they are to reach */
    double reachable; /* what no number of jobs goes below: exposures stay uncertain */
    bool enough;      /* what was asked for can be reached; else the plan is for what can */
};

/* jobs[stratum_count]; `probability` as risk_estimate() gave it. NO_MEMORY. */
enum status risk_plan(const struct risk_input *input, const struct risk_estimate *estimate,
                      const double *probability, double precision, struct risk_plan *out,
                      double *jobs, struct error *error);

#endif
