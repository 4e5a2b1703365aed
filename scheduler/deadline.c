/*
 * Earliest deadlines and tiers. See deadline.h.
 */
#include "scheduler/deadline.h"

#include "base/check.h"
#include "base/units.h"

#include <math.h>
#include <string.h>

#define QUANTILE 0.95

/* ---- what ticks cost ---- */

/* Place where a value stands, or would, among sorted ones. */
static size_t place_of(const double *sorted, size_t count, double value)
{
    size_t low = 0;
    size_t high = count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (sorted[middle] < value) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void deadline_observe(struct deadline_pool *pool, uint32_t costs, enum deadline_part part,
                      double cost_ms)
{
    struct deadline_cost *cost = &pool->costs[costs][part];
    double *sorted = cost->sorted_ms;
    double *oldest = &cost->samples_ms[cost->count % DEADLINE_SAMPLES];
    size_t count = cost->count < DEADLINE_SAMPLES ? (size_t)cost->count : DEADLINE_SAMPLES;
    if (count == DEADLINE_SAMPLES) {
        size_t out = place_of(sorted, count, *oldest);
        memmove(sorted + out, sorted + out + 1, (count - out - 1) * sizeof *sorted);
        count--;
    }
    size_t in = place_of(sorted, count, cost_ms);
    memmove(sorted + in + 1, sorted + in, (count - in) * sizeof *sorted);
    sorted[in] = cost_ms;
    *oldest = cost_ms;
    cost->count++;
    cost->p95_ms = sorted[(size_t)(QUANTILE * (double)count + 0.5)];
}

void deadline_forget(struct deadline_pool *pool)
{
    memset(pool->costs, 0, sizeof pool->costs);
    pool->period_ticks = 0;
    pool->closed = false;
    pool->margin_ms = 0.0;
}

double deadline_cost_ms(const struct deadline_pool *pool, uint32_t tier)
{
    CHECK(tier < pool->tier_count);
    const struct deadline_tier *way = &pool->tiers[tier];
    const struct deadline_cost *costs = pool->costs[way->costs];
    return costs[DEADLINE_CONTEXT].p95_ms + way->steps * costs[DEADLINE_STEP].p95_ms +
           costs[DEADLINE_OVERHEAD].p95_ms;
}

static int64_t cost_ns(const struct deadline_pool *pool, uint32_t tier)
{
    return (int64_t)(deadline_cost_ms(pool, tier) * NS_PER_MS);
}

/* ---- who is let in ---- */

/* Whether enough was measured of a tier to refuse somebody by it. */
static bool is_known(const struct deadline_pool *pool, uint32_t tier)
{
    return pool->costs[pool->tiers[tier].costs][DEADLINE_CONTEXT].count >= DEADLINE_KNOWN;
}

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

enum deadline_refusal deadline_refusal(const struct deadline_pool *pool,
                                       const struct deadline_session *sessions, uint32_t count,
                                       const struct deadline_session *more)
{
    if (count >= DEADLINE_SESSIONS_MAX) {
        return DEADLINE_FULL;
    }
    if (!is_known(pool, more->least)) {
        return DEADLINE_LET_IN;
    }
    if (cost_ns(pool, more->least) > more->limit_ns) {
        return DEADLINE_SLOW;
    }
    if (pool->closed) {
        return DEADLINE_LATE;
    }
    return deadline_load(pool, sessions, count, more) > DEADLINE_LOAD_MAX ? DEADLINE_LADEN
                                                                          : DEADLINE_LET_IN;
}

/* ---- who is next ---- */

/* The session whose next tick is served at a moment: of those that are due the one with the
 * earliest deadline, of equal ones the first. -1: none is due. */
static int32_t first_due(const struct deadline_session *sessions, uint32_t count, uint64_t served,
                         int64_t now_ns)
{
    int32_t first = -1;
    for (uint32_t i = 0; i < count; i++) {
        bool due = sessions[i].goes_on && (served >> i & 1) == 0 && sessions[i].due_ns <= now_ns;
        if (due && (first < 0 || sessions[i].deadline_ns < sessions[first].deadline_ns)) {
            first = (int32_t)i;
        }
    }
    return first;
}

/* The moment at which the next tick is due of those that are not served; INT64_MAX: none. */
static int64_t next_due(const struct deadline_session *sessions, uint32_t count, uint64_t served)
{
    int64_t next_ns = INT64_MAX;
    for (uint32_t i = 0; i < count; i++) {
        bool open = sessions[i].goes_on && (served >> i & 1) == 0;
        next_ns = open && sessions[i].due_ns < next_ns ? sessions[i].due_ns : next_ns;
    }
    return next_ns;
}

/* Which sessions are late in their next tick, those in `served` aside, when serving begins at a
 * moment and gives each its lowest tier. */
static uint64_t late_from(const struct deadline_pool *pool, const struct deadline_session *sessions,
                          uint32_t count, uint64_t served, int64_t moment_ns)
{
    uint64_t late = 0;
    for (;;) {
        int32_t next = first_due(sessions, count, served, moment_ns);
        if (next < 0) {
            moment_ns = next_due(sessions, count, served);
            if (moment_ns == INT64_MAX) {
                return late;
            }
            continue;
        }
        moment_ns += cost_ns(pool, sessions[next].least);
        served |= UINT64_C(1) << next;
        late |= moment_ns > sessions[next].deadline_ns ? UINT64_C(1) << next : 0;
    }
}

struct deadline_choice deadline_pick(const struct deadline_pool *pool,
                                     const struct deadline_session *sessions, uint32_t count,
                                     int64_t now_ns)
{
    CHECK(count <= DEADLINE_SESSIONS_MAX);
    struct deadline_choice choice = {.session = first_due(sessions, count, 0, now_ns)};
    if (choice.session < 0) {
        return choice;
    }
    const struct deadline_session *first = &sessions[choice.session];
    uint64_t served = UINT64_C(1) << choice.session;
    uint64_t late_anyway = late_from(pool, sessions, count, served, now_ns);
    bool fits = false;
    for (uint32_t tier = 0; tier <= first->least && !fits; tier++) {
        int64_t end_ns = now_ns + cost_ns(pool, tier) + (int64_t)(pool->margin_ms * NS_PER_MS);
        choice.tier = tier;
        fits = end_ns <= first->deadline_ns &&
               (late_from(pool, sessions, count, served, end_ns) & ~late_anyway) == 0;
    }
    choice.late = now_ns + cost_ns(pool, choice.tier) > first->deadline_ns;
    return choice;
}

bool deadline_room(const struct deadline_pool *pool, const struct deadline_session *sessions,
                   uint32_t count, uint32_t tier, int64_t now_ns)
{
    CHECK(count <= DEADLINE_SESSIONS_MAX);
    int64_t end_ns = now_ns + cost_ns(pool, tier) + (int64_t)(pool->margin_ms * NS_PER_MS);
    uint64_t late_anyway = late_from(pool, sessions, count, 0, now_ns);
    return (late_from(pool, sessions, count, 0, end_ns) & ~late_anyway) == 0;
}

/* ---- whether it goes well ---- */

void deadline_served(struct deadline_pool *pool, int64_t now_ns, bool late)
{
    if (pool->period_ticks == 0 || now_ns - pool->period_began_ns >= DEADLINE_LATE_NS) {
        pool->period_began_ns = now_ns;
        pool->period_ticks = 0;
        pool->period_lates = 0;
    }
    double widened_ms =
        pool->margin_ms + DEADLINE_MARGIN_STEP_MS * ((late ? 1.0 : 0.0) - DEADLINE_LATE_AIM);
    pool->margin_ms = fmin(fmax(0.0, widened_ms), DEADLINE_MARGIN_MAX_MS);
    pool->period_ticks++;
    pool->period_lates += late;
    pool->good_ticks = late ? 0 : pool->good_ticks + 1;
    if (pool->period_ticks >= 100 && pool->period_lates > DEADLINE_LATE_MAX * pool->period_ticks) {
        pool->closed = true;
    }
    if (pool->closed && pool->good_ticks >= DEADLINE_GOOD_TICKS) {
        pool->closed = false;
        pool->period_ticks = 0;
    }
}
