/*
 * Earliest deadlines and tiers. See deadline.h.
 */
#include "scheduler/deadline.h"

#include "base/check.h"
#include "base/units.h"

#include <stdlib.h>
#include <string.h>

#define QUANTILE 0.95

/* ---- what ticks cost ---- */

static int by_size(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return (*x > *y) - (*x < *y);
}

void deadline_observe(struct deadline_pool *pool, uint32_t model, enum deadline_part part,
                      double cost_ms)
{
    struct deadline_cost *cost = &pool->costs[model][part];
    double sorted[DEADLINE_SAMPLES];
    cost->samples_ms[cost->count % DEADLINE_SAMPLES] = cost_ms;
    cost->count++;
    size_t count = cost->count < DEADLINE_SAMPLES ? (size_t)cost->count : DEADLINE_SAMPLES;
    memcpy(sorted, cost->samples_ms, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, by_size);
    cost->p95_ms = sorted[(size_t)(QUANTILE * (double)(count - 1) + 0.5)];
}

double deadline_cost_ms(const struct deadline_pool *pool, uint32_t tier)
{
    CHECK(tier < pool->tier_count);
    const struct deadline_tier *way = &pool->tiers[tier];
    const struct deadline_cost *costs = pool->costs[way->model];
    return costs[DEADLINE_CONTEXT].p95_ms + way->steps * costs[DEADLINE_STEP].p95_ms +
           costs[DEADLINE_OVERHEAD].p95_ms;
}

static int64_t cost_ns(const struct deadline_pool *pool, uint32_t tier)
{
    return (int64_t)(deadline_cost_ms(pool, tier) * NS_PER_MS);
}

/* ---- who is let in ---- */

static double need_of(const struct deadline_pool *pool, const struct deadline_session *session)
{
    return (double)cost_ns(pool, session->least) / (double)session->period_ns;
}

double deadline_load(const struct deadline_pool *pool, const struct deadline_session *sessions,
                     uint32_t count, const struct deadline_session *more)
{
    double load = more != NULL ? need_of(pool, more) : 0.0;
    for (uint32_t i = 0; i < count; i++) {
        load += need_of(pool, &sessions[i]);
    }
    return load;
}

const char *deadline_refusal(const struct deadline_pool *pool,
                             const struct deadline_session *sessions, uint32_t count,
                             const struct deadline_session *more)
{
    if (count >= DEADLINE_SESSIONS_MAX) {
        return "there are as many sessions as a pool may have";
    }
    if (cost_ns(pool, more->least) > more->limit_ns) {
        return "its lowest tier takes longer than its deadline";
    }
    if (pool->closed) {
        return "more than one tick in a hundred was late in the last minute";
    }
    return deadline_load(pool, sessions, count, more) > DEADLINE_LOAD_MAX
               ? "sessions would need more than four fifths of the executor at their lowest tiers"
               : NULL;
}

/* ---- who is next ---- */

/* Ticks that wait, the earliest deadline first, those of equal deadlines as they are listed. */
static uint32_t order(const struct deadline_session *sessions, uint32_t count, uint32_t *sorted)
{
    uint32_t waiting = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (!sessions[i].waits) {
            continue;
        }
        uint32_t at = waiting++;
        while (at > 0 && sessions[sorted[at - 1]].deadline_ns > sessions[i].deadline_ns) {
            sorted[at] = sorted[at - 1];
            at--;
        }
        sorted[at] = i;
    }
    return waiting;
}

/* The latest moment at which the others may begin so that each ends in time at its lowest tier;
 * those that are late even when they begin now wait for nobody's sake. */
static int64_t latest_begin(const struct deadline_pool *pool,
                            const struct deadline_session *sessions, const uint32_t *others,
                            uint32_t count, int64_t now_ns)
{
    int64_t latest_ns = INT64_MAX;
    int64_t busy_ns = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct deadline_session *other = &sessions[others[i]];
        int64_t needs_ns = cost_ns(pool, other->least);
        if (now_ns + busy_ns + needs_ns > other->deadline_ns) {
            continue;
        }
        busy_ns += needs_ns;
        if (other->deadline_ns - busy_ns < latest_ns) {
            latest_ns = other->deadline_ns - busy_ns;
        }
    }
    return latest_ns;
}

struct deadline_choice deadline_pick(const struct deadline_pool *pool,
                                     const struct deadline_session *sessions, uint32_t count,
                                     int64_t now_ns)
{
    uint32_t sorted[DEADLINE_SESSIONS_MAX];
    CHECK(count <= DEADLINE_SESSIONS_MAX);
    uint32_t waiting = order(sessions, count, sorted);
    struct deadline_choice choice = {.session = -1};
    if (waiting == 0) {
        return choice;
    }
    const struct deadline_session *first = &sessions[sorted[0]];
    int64_t end_ns = latest_begin(pool, sessions, sorted + 1, waiting - 1, now_ns);
    end_ns = first->deadline_ns < end_ns ? first->deadline_ns : end_ns;
    choice.session = (int32_t)sorted[0];
    choice.late = true;
    for (uint32_t tier = 0; tier <= first->least && choice.late; tier++) {
        choice.tier = tier;
        choice.late = now_ns + cost_ns(pool, tier) > end_ns;
    }
    /* At its lowest tier it breaks nobody's deadline but its own, or has to go first anyway. */
    choice.late = now_ns + cost_ns(pool, choice.tier) > first->deadline_ns;
    choice.expected_ms = deadline_cost_ms(pool, choice.tier);
    return choice;
}

/* ---- whether it goes well ---- */

void deadline_served(struct deadline_pool *pool, int64_t now_ns, bool late)
{
    if (pool->period_ticks == 0 || now_ns - pool->period_began_ns >= DEADLINE_LATE_NS) {
        pool->period_began_ns = now_ns;
        pool->period_ticks = 0;
        pool->period_lates = 0;
    }
    pool->period_ticks++;
    pool->period_lates += late;
    pool->good_ticks = late ? 0 : pool->good_ticks + 1;
    if (pool->period_ticks >= 100 &&
        pool->period_lates > DEADLINE_LATE_MAX * pool->period_ticks) {
        pool->closed = true;
    }
    if (pool->closed && pool->good_ticks >= DEADLINE_GOOD_TICKS) {
        pool->closed = false;
        pool->period_ticks = 0;
    }
}
