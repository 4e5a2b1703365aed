/*
 * A day of a fleet, simulated: the store, its life cycle of jobs, fairness, escalation and ledger,
 * and the sampling of audits are the product's own; machines, arrivals and verdicts are drawn from
 * a seed. Time is the simulation's, so a day takes seconds.
 *
 * Invariant: the same inputs and seed give the same day, event by event (its digest).
 */
#ifndef SWERVE_REPORT_PLAN_DAY_H
#define SWERVE_REPORT_PLAN_DAY_H

#include "base/sha256.h"
#include "base/status.h"
#include "scheduler/plan.h"

enum { DAY_HOURS = 24, DAY_WORKERS_MAX = 1000, DAY_LENGTHS_MAX = 4096, DAY_JOBS_MAX = 200000 };

struct day_inputs {
    struct plan_inputs plan;
    struct plan sized;       /* plan_of() it, or with other numbers of cards */
    double hours[DAY_HOURS]; /* weight of submissions in each hour; not all 0 */
    uint32_t length_count;
    uint32_t lengths[DAY_LENGTHS_MAX]; /* ticks of jobs, of which each is as likely */
    double losses_per_hour;            /* of a worker: spot machines that go */
    double start_s;                    /* until another is there in its place */
    double lease_s;                    /* until the store notices */
    double freeze_from_h;
    double freeze_hours;  /* 0: nothing freezes */
    double freeze_share;  /* of the student's jobs of that time */
    double rollback_at_h; /* the student's jobs of `rollback_hours` before are driven again */
    double rollback_hours;
    double budget_usd; /* of the whole fleet's jobs of the day, which are one suite then; 0: none */
    int64_t
        jobs_max; /* a larger day is simulated in part: so many jobs, with as many fewer cards */
    uint64_t seed;
    const char *store_path; /* of a database that is made, and is the caller's to remove */
};

struct day_pool {
    int64_t cards;
    int64_t jobs; /* that ended with a result or a flag */
    int64_t attempts;
    int64_t losses;
    int64_t queued; /* when the day ended */
    double busy_s;
    double load;         /* of its cards' time */
    double load_planned; /* closed form, for these cards */
    double wait_mean_s;  /* from submission to claim */
    double wait_p50_s;
    double wait_p99_s;
    double wait_max_s;
    double usd;         /* of its cards, all day */
    double usd_ledger;  /* as the store's ledger has it */
    double usd_planned; /* closed form, of device time */
};

struct day {
    double fraction; /* of the fleet that was simulated */
    int64_t jobs;    /* submitted, audits not counted */
    int64_t audits;
    int64_t flagged;
    int64_t frozen;
    int64_t redriven;
    double stopped_h;  /* when the budget was spent; NAN: it was not */
    int64_t cancelled; /* jobs that it cancelled */
    struct day_pool pools[PLAN_POOL_COUNT];
    char digest[SHA256_HEX_BYTES]; /* over every event */
};

enum status day_simulate(const struct day_inputs *inputs, struct day *out, struct error *error);

#endif
