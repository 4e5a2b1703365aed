/*
 * A fleet on paper: from miles a day to ticks, device time, cards and dollars. Pure arithmetic;
 * each figure is a product of inputs that the caller states.
 *
 * A student's ticks are repeated by the teacher where they are audited or flagged, and driven by it
 * instead where a slice is frozen. Attempts that fail are paid for and driven again.
 */
#ifndef SWERVE_SCHEDULER_PLAN_H
#define SWERVE_SCHEDULER_PLAN_H

#include "schemas/outcome.h"

#include <stdint.h>

#define PLAN_METRES_PER_MILE 1609.344
#define PLAN_DAY_S 86400.0

/* Kinds of machines: processors drive replay and object worlds. */
enum plan_pool { PLAN_CPU = 0, PLAN_STUDENT, PLAN_TEACHER, PLAN_POOL_COUNT };
extern const char *const plan_pool_names[PLAN_POOL_COUNT]; /* "cpu", "student", "teacher" */
enum plan_pool plan_pool_of(enum tier tier);

struct plan_inputs {
    double miles_per_day;
    double share[TIER_COUNT];  /* of miles, by the tier that is asked first; sum 1 */
    double metres_per_tick;    /* that ego drives */
    double ticks_per_job;      /* branches included, a shared past once */
    double tick_s[TIER_COUNT]; /* device time of a tick */
    double audit_rate;         /* of student jobs */
    double flag_rate;          /* likewise */
    double frozen_share;       /* likewise: the teacher is asked instead */
    double failed_share;       /* of device time, in attempts that came to nothing */
    double load_max;           /* of a card's time, that may be planned for */
    double usd_per_hour[PLAN_POOL_COUNT];
};

struct plan_tier {
    double miles; /* that count */
    double ticks; /* that are driven, repetitions included */
    double jobs;
    double device_s;
};

struct plan_pool_size {
    double device_s;
    int64_t cards;
    double load; /* of these cards */
    double usd_per_day;
    double usd_busy; /* of device time alone, as the ledger counts */
};

struct plan {
    struct plan_tier tiers[TIER_COUNT];
    struct plan_pool_size pools[PLAN_POOL_COUNT];
    double usd_per_day;
    double usd_per_mile;
};

struct plan plan_of(const struct plan_inputs *inputs);

/* Cards of the pool gone for a time: device time that queues up, and hours until the rest has
 * caught up; INFINITY: never. */
struct plan_loss {
    double queued_s;
    double recovery_h;
};
struct plan_loss plan_lose(const struct plan *plan, enum plan_pool pool, int64_t cards,
                           double hours);

#endif
