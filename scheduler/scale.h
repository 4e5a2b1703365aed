/*
 * Scaling: how many workers a pool should have, from what waits for them. Pure functions: the same
 * facts in the same order give the same advice, and nothing here starts or ends a worker. A site's
 * own scheduler (Slurm, KEDA, an HPA, a person) does, and asks again.
 *
 * Up when the queue's age or the 99th percentile of a tick is over its threshold, by no more than
 * `starts_max` workers beyond those that are alive, because each start loads a model; down only
 * after `quiet_ms` in which nothing waited, to the workers that are busy; and after every change
 * nothing for `cooldown_ms`. A timetable raises the floor before a load that is known.
 *
 * Invariant: the advice is never above workers_max, and never above those alive by more than
 * starts_max; below the floor it is for the sake of these two alone.
 */
#ifndef SWERVE_SCHEDULER_SCALE_H
#define SWERVE_SCHEDULER_SCALE_H

#include "base/status.h"
#include "schemas/outcome.h"
#include "store/api/store.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
    SCALE_POOLS_MAX = 16,
    SCALE_WINDOWS_MAX = 32,
    SCALE_WORKERS_MAX = 100000,
    SCALE_DAY_MIN = 24 * 60,
};

/* Of some days of the week, from one minute of the day (UTC) until another; past midnight where
 * `until_min` is not above `from_min`. */
struct scale_window {
    bool days[7]; /* Monday first: those on which it begins */
    int32_t from_min;
    int32_t until_min;
    int64_t workers_min;
};

struct scale_policy {
    char pool[LIMIT_ID_BYTES];
    int64_t workers_min; /* warm, whatever waits */
    int64_t workers_max;
    int64_t starts_max; /* at one time */
    int64_t age_max_ms;
    int64_t tick_p99_max_ns; /* 0: not looked at */
    int64_t drain_ms;        /* the queue is worth no more workers than empty it in this time */
    int64_t quiet_ms;
    int64_t cooldown_ms;
    int64_t
        planned_tick_ns[TIER_COUNT]; /* device time, until rollouts say what it is; 0: unknown */
    uint32_t window_count;
    struct scale_window windows[SCALE_WINDOWS_MAX];
};

struct scale_plan {
    uint32_t count;
    struct scale_policy pools[SCALE_POOLS_MAX];
};

/* Warm 0, at most 8, two starts; 5 minutes of age, 10 of quiet, 5 of cooldown. */
struct scale_policy scale_policy_default(void);
/* A document of schemas/fleet/scaling.schema.json. BAD_INPUT names file and member. */
enum status scale_plan_load(const char *path, struct scale_plan *out, struct error *error);
const struct scale_policy *scale_plan_find(const struct scale_plan *plan, const char *pool);

/* One look at a pool. */
struct scale_facts {
    int64_t now_ms; /* since 1970; a clock that is set back only delays changes */
    int64_t jobs_queued;
    int64_t age_ms;
    int64_t tick_p99_ns;      /* of its slowest tier; 0: unknown */
    int64_t device_ms_queued; /* that the queue takes; -1: unknown */
    int64_t workers_alive;
    int64_t workers_busy;
};

/* A pool's part of a store's demand. */
struct scale_facts scale_facts_of(const struct scale_policy *policy,
                                  const struct store_demand *rows, uint32_t count, int64_t now_ms);

/* Memory between looks; begins as zeros. */
struct scale_state {
    bool begun;
    bool quiet;
    int64_t target;
    int64_t changed_ms; /* when the target last rose or fell by load */
    int64_t quiet_since_ms;
};

enum scale_reason {
    SCALE_STEADY = 0,
    SCALE_FLOOR,    /* the warm minimum, or the timetable */
    SCALE_AGE,      /* up: what waits has waited too long */
    SCALE_TICK,     /* up: ticks take too long */
    SCALE_QUIET,    /* down */
    SCALE_COOLDOWN, /* it would change, but has just changed */
    SCALE_REASON_COUNT
};
extern const char *const scale_reason_names[SCALE_REASON_COUNT];

struct scale_advice {
    int64_t workers;
    enum scale_reason reason;
};

struct scale_advice scale_advise(const struct scale_policy *policy, const struct scale_facts *facts,
                                 struct scale_state *state);

/* The most that a policy wants warm at a moment. */
int64_t scale_floor(const struct scale_policy *policy, int64_t now_ms);

/* {"pool", "workers", "reason", ..}: the advice and what it is from; NULL when memory runs out. */
json_t *scale_advice_json(const struct scale_policy *policy, const struct scale_facts *facts,
                          const struct scale_advice *advice);

#endif
