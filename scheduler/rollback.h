/*
 * Rollback: when a canary has to go, by what it answered beside the version that answers the other
 * jobs. Pure functions: the same facts in the same order give the same decision.
 *
 * Two ways lead there. By comparison: agreement with the teacher, share of flagged jobs or device
 * time per mile (the dollars per mile of one price) worse by more than a limit, or the 99th
 * percentile of the time for a tick, once both sides have samples enough; furthermore beyond
 * chance (ROLLBACK_Z), since whoever looks often sees everything once. By runs: so many runs of
 * jobs in a row in each of which more than a share disagreed or was flagged, which needs a hundred
 * jobs instead of a thousand; what befalls both sides at the same time is not the canary's.
 */
#ifndef SWERVE_SCHEDULER_ROLLBACK_H
#define SWERVE_SCHEDULER_ROLLBACK_H

#include <stdbool.h>
#include <stdint.h>

#define ROLLBACK_Z 3.0 /* standard errors by which a difference differs from none */

enum {
    ROLLBACK_BUCKETS = 320, /* of the time for a tick, 4% wide, from 10 us to 2.8 s */
    ROLLBACK_SAMPLES_MIN = 500,
};

struct rollback_policy {
    int64_t samples; /* of each side before they are compared */
    double worse;    /* agreement and flags, as shares of jobs */
    double cost_worse;
    double ticks_worse;
    int64_t runs; /* in a row */
    int64_t run_jobs;
    double run_share; /* of a run's jobs, above which it counts */
};

struct rollback_policy rollback_policy_default(void);

/* A share of jobs that was bad, and how many runs of them were over the policy's share. */
struct rollback_share {
    int64_t jobs;
    int64_t bad;
    int64_t run_jobs; /* of the run that goes on */
    int64_t run_bad;
    int64_t runs; /* in a row, until now */
};

/* Sums of a ratio: device time over distance, job by job. */
struct rollback_cost {
    int64_t jobs;
    double ns;
    double mm;
    double ns2;
    double mm2;
    double ns_mm;
};

/* One version's jobs. Begins as zeros. */
struct rollback_side {
    struct rollback_share agreement; /* bad: the teacher said otherwise */
    struct rollback_share flags;
    struct rollback_cost cost;
    int64_t timed; /* rollouts in the following */
    uint32_t ticks[ROLLBACK_BUCKETS];
};

/* An answered main line: `ticks` and `metres_mm` of its own. */
void rollback_add_drive(const struct rollback_policy *policy, struct rollback_side *side,
                        bool flagged, int64_t device_ns, int64_t metres_mm, int64_t ticks);
/* An audited one, both sides with a verdict. */
void rollback_add_audit(const struct rollback_policy *policy, struct rollback_side *side,
                        bool agrees);

enum rollback_cause {
    ROLLBACK_NONE = 0, /* it may stay */
    ROLLBACK_AGREEMENT,
    ROLLBACK_FLAGS,
    ROLLBACK_COST,
    ROLLBACK_TICKS,
    ROLLBACK_RUNS_DISAGREED,
    ROLLBACK_RUNS_FLAGGED,
    ROLLBACK_CAUSE_COUNT
};

extern const char *const rollback_cause_names[ROLLBACK_CAUSE_COUNT];

enum rollback_cause rollback_decide(const struct rollback_policy *policy,
                                    const struct rollback_side *canary,
                                    const struct rollback_side *incumbent);

/* Figures behind it; NAN where nothing was measured. */
double rollback_bad_share(const struct rollback_share *share);
double rollback_ns_per_m(const struct rollback_cost *cost);
/* Upper end of the bucket in which the quantile lies, in nanoseconds. */
double rollback_tick_ns(const struct rollback_side *side, double quantile);

/* The evidence in one sentence; returns `out`. */
enum { ROLLBACK_TEXT_BYTES = 256 };
const char *rollback_text(enum rollback_cause cause, const struct rollback_side *canary,
                          const struct rollback_side *incumbent, char out[ROLLBACK_TEXT_BYTES]);

#endif
