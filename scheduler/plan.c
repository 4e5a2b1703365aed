/*
 * Arithmetic of a fleet. See plan.h.
 */
#include "scheduler/plan.h"

#include <math.h>

const char *const plan_pool_names[PLAN_POOL_COUNT] = {"cpu", "student", "teacher"};

enum plan_pool plan_pool_of(enum tier tier)
{
    return tier == TIER_TEACHER ? PLAN_TEACHER : tier == TIER_STUDENT ? PLAN_STUDENT : PLAN_CPU;
}

/* Ticks that each tier drives: the student's without frozen slices, the teacher's with what it
 * repeats. */
static void share_ticks(const struct plan_inputs *inputs, double ticks[TIER_COUNT])
{
    double all = inputs->miles_per_day * PLAN_METRES_PER_MILE / inputs->metres_per_tick;
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        ticks[tier] = all * inputs->share[tier];
    }
    double student = ticks[TIER_STUDENT];
    double driven = student * (1.0 - inputs->frozen_share);
    ticks[TIER_STUDENT] = driven;
    ticks[TIER_TEACHER] += student * inputs->frozen_share;
    ticks[TIER_TEACHER] += driven * (inputs->audit_rate + inputs->flag_rate);
}

static void size_pool(const struct plan_inputs *inputs, enum plan_pool pool,
                      struct plan_pool_size *size)
{
    double needed = size->device_s / PLAN_DAY_S / inputs->load_max;
    size->cards = (int64_t)ceil(needed);
    size->load = size->cards > 0 ? size->device_s / PLAN_DAY_S / (double)size->cards : 0.0;
    size->usd_per_day = (double)size->cards * 24.0 * inputs->usd_per_hour[pool];
    size->usd_busy = size->device_s / 3600.0 * inputs->usd_per_hour[pool];
}

struct plan plan_of(const struct plan_inputs *inputs)
{
    struct plan plan = {0};
    double ticks[TIER_COUNT];
    double result_ticks = inputs->miles_per_day * PLAN_METRES_PER_MILE / inputs->metres_per_tick;
    share_ticks(inputs, ticks);
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        struct plan_tier *out = &plan.tiers[tier];
        double frozen = result_ticks * inputs->share[TIER_STUDENT] * inputs->frozen_share;
        double flagged = ticks[TIER_STUDENT] * inputs->flag_rate;
        double counts = tier == TIER_STUDENT ? ticks[tier] - flagged
                        : tier == TIER_TEACHER
                            ? result_ticks * inputs->share[tier] + frozen + flagged
                            : ticks[tier];
        out->ticks = ticks[tier];
        out->miles = counts * inputs->metres_per_tick / PLAN_METRES_PER_MILE;
        out->jobs = ticks[tier] / inputs->ticks_per_job;
        out->device_s = ticks[tier] * inputs->tick_s[tier] / (1.0 - inputs->failed_share);
        plan.pools[plan_pool_of((enum tier)tier)].device_s += out->device_s;
    }
    for (int pool = 0; pool < PLAN_POOL_COUNT; pool++) {
        size_pool(inputs, (enum plan_pool)pool, &plan.pools[pool]);
        plan.usd_per_day += plan.pools[pool].usd_per_day;
    }
    plan.usd_per_mile = plan.usd_per_day / inputs->miles_per_day;
    return plan;
}

struct plan_loss plan_lose(const struct plan *plan, enum plan_pool pool, int64_t cards,
                           double hours)
{
    const struct plan_pool_size *size = &plan->pools[pool];
    double asked = size->device_s / PLAN_DAY_S; /* busy cards, on average */
    double left = (double)(size->cards > cards ? size->cards - cards : 0);
    double short_of = asked > left ? asked - left : 0.0;
    double spare = (double)size->cards - asked;
    struct plan_loss loss = {.queued_s = short_of * hours * 3600.0};
    loss.recovery_h = loss.queued_s == 0.0 ? 0.0
                      : spare > 0.0        ? loss.queued_s / 3600.0 / spare
                                           : (double)INFINITY;
    return loss;
}
