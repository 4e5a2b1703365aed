/*
 * Steps of the advice. Everything is integers of milliseconds, so a sequence of looks gives the
 * same advice on every machine.
 */
#include "scheduler/scale.h"

#include "base/check.h"
#include "base/units.h"

#include <string.h>

const char *const scale_reason_names[SCALE_REASON_COUNT] = {"steady", "floor", "age",
                                                            "tick",   "quiet", "cooldown"};

enum { MS_PER_MIN = 60000, EPOCH_WEEKDAY = 3 /* 1970-01-01 was a Thursday */ };

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t most(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Whether the window is open at a minute of the day, or still open from the day before. */
static bool window_open(const struct scale_window *window, int64_t day, int32_t minute)
{
    bool over_midnight = window->until_min <= window->from_min;
    bool today = window->days[day];
    bool yesterday = window->days[(day + 6) % 7];
    if (!over_midnight) {
        return today && minute >= window->from_min && minute < window->until_min;
    }
    return (today && minute >= window->from_min) || (yesterday && minute < window->until_min);
}

int64_t scale_floor(const struct scale_policy *policy, int64_t now_ms)
{
    int64_t minutes = most(now_ms, 0) / MS_PER_MIN;
    int64_t day = (minutes / SCALE_DAY_MIN + EPOCH_WEEKDAY) % 7;
    int32_t minute = (int32_t)(minutes % SCALE_DAY_MIN);
    int64_t floor = policy->workers_min;
    for (uint32_t i = 0; i < policy->window_count; i++) {
        if (window_open(&policy->windows[i], day, minute)) {
            floor = most(floor, policy->windows[i].workers_min);
        }
    }
    return least(floor, policy->workers_max);
}

const struct scale_policy *scale_plan_find(const struct scale_plan *plan, const char *pool)
{
    for (uint32_t i = 0; i < plan->count; i++) {
        if (strcmp(plan->pools[i].pool, pool) == 0) {
            return &plan->pools[i];
        }
    }
    return NULL;
}

/* Device time of so many ticks; all of it where it would not fit. */
static int64_t ticks_ms(int64_t ticks, int64_t tick_ns)
{
    double ms = (double)ticks * (double)tick_ns / (double)NS_PER_MS;
    return ms < 9e15 ? (int64_t)ms : (int64_t)9e15;
}

struct scale_facts scale_facts_of(const struct scale_policy *policy,
                                  const struct store_demand *rows, uint32_t count, int64_t now_ms)
{
    struct scale_facts facts = {.now_ms = now_ms};
    for (uint32_t i = 0; i < count; i++) {
        const struct store_demand *row = &rows[i];
        if (strcmp(row->pool, policy->pool) != 0) {
            continue;
        }
        int64_t tick_ns = row->tick_ns > 0 ? row->tick_ns : policy->planned_tick_ns[row->tier];
        bool known = facts.device_ms_queued >= 0 && (tick_ns > 0 || row->jobs_queued == 0) &&
                     (row->ticks_queued > 0 || row->jobs_queued == 0);
        facts.device_ms_queued =
            known ? least(facts.device_ms_queued + ticks_ms(row->ticks_queued, tick_ns),
                          (int64_t)9e15)
                  : -1;
        facts.jobs_queued += row->jobs_queued;
        facts.age_ms = most(facts.age_ms, row->age_ms);
        facts.tick_p99_ns = most(facts.tick_p99_ns, row->tick_p99_ns);
        facts.workers_alive = most(facts.workers_alive, row->workers_alive);
        facts.workers_busy = most(facts.workers_busy, row->workers_busy);
    }
    return facts;
}

/* Workers that the queue is worth beside those that are busy. */
static int64_t worth(const struct scale_policy *policy, const struct scale_facts *facts)
{
    if (facts->jobs_queued == 0) {
        return facts->workers_busy;
    }
    int64_t more = facts->device_ms_queued < 0
                       ? facts->jobs_queued
                       : (facts->device_ms_queued + policy->drain_ms - 1) / policy->drain_ms;
    /* A worker takes whole jobs. */
    more = least(most(more, 1), facts->jobs_queued);
    return least(most(facts->workers_busy, more), policy->workers_max);
}

/* Remembers since when nothing waits. */
static void note_quiet(const struct scale_facts *facts, struct scale_state *state)
{
    bool quiet = facts->jobs_queued == 0;
    if (quiet && (!state->quiet || facts->now_ms < state->quiet_since_ms)) {
        state->quiet_since_ms = facts->now_ms;
    }
    state->quiet = quiet;
}

struct scale_advice scale_advise(const struct scale_policy *policy, const struct scale_facts *facts,
                                 struct scale_state *state)
{
    int64_t floor = scale_floor(policy, facts->now_ms);
    enum scale_reason reason = SCALE_STEADY;
    if (!state->begun) {
        *state = (struct scale_state){.begun = true,
                                      .target = facts->workers_alive,
                                      .changed_ms = facts->now_ms - policy->cooldown_ms};
    }
    note_quiet(facts, state);
    state->changed_ms = least(state->changed_ms, facts->now_ms); /* the clock was set back */
    bool rested = facts->now_ms - state->changed_ms >= policy->cooldown_ms;
    bool slow = policy->tick_p99_max_ns > 0 && facts->tick_p99_ns > policy->tick_p99_max_ns;
    bool old = facts->age_ms > policy->age_max_ms;
    /* Workers that vanished are not asked for twice: the step is from those that are there. */
    int64_t base = least(state->target, facts->workers_alive);
    int64_t up = least(worth(policy, facts), base + policy->starts_max);
    int64_t down = most(floor, facts->workers_busy);
    int64_t next = state->target;
    if (facts->jobs_queued > 0 && (old || slow) && up > state->target) {
        next = up;
        reason = old ? SCALE_AGE : SCALE_TICK;
    } else if (state->quiet && facts->now_ms - state->quiet_since_ms >= policy->quiet_ms &&
               down < state->target) {
        next = down;
        reason = SCALE_QUIET;
    }
    if (next != state->target && !rested) {
        next = state->target;
        reason = SCALE_COOLDOWN;
    } else if (next != state->target) {
        state->changed_ms = facts->now_ms;
    }
    if (next < floor) {
        next = floor;
        reason = SCALE_FLOOR;
    }
    state->target = least(next, policy->workers_max);
    struct scale_advice advice = {
        .workers = least(state->target, facts->workers_alive + policy->starts_max),
        .reason = reason,
    };
    return advice;
}

json_t *scale_advice_json(const struct scale_policy *policy, const struct scale_facts *facts,
                          const struct scale_advice *advice)
{
    return json_pack(
        "{s:s, s:I, s:s, s:I, s:I, s:I, s:I, s:I, s:I}", "pool", policy->pool, "workers",
        (json_int_t)advice->workers, "reason", scale_reason_names[advice->reason], "workers_alive",
        (json_int_t)facts->workers_alive, "workers_busy", (json_int_t)facts->workers_busy,
        "jobs_queued", (json_int_t)facts->jobs_queued, "age_ms", (json_int_t)facts->age_ms,
        "tick_p99_ns", (json_int_t)facts->tick_p99_ns, "device_ms_queued",
        (json_int_t)facts->device_ms_queued);
}
