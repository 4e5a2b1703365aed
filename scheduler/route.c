/*
 * Routing. See route.h.
 */
#include "scheduler/route.h"

#include "base/check.h"
#include "base/units.h"

#include <stdio.h>

const char *const route_beyond_names[ROUTE_BEYOND_COUNT] = {"refuse", "clip", "route"};

/* The first agent that moves without a log, or NULL: the replay world can run the scenario. */
static const struct agent *agent_without_log(const struct scenario *scenario)
{
    for (uint32_t i = 0; i < scenario->agent_count; i++) {
        const struct agent *agent = &scenario->agents[i];
        if (agent->behaviour != BEHAVIOUR_STATIC && agent->trajectory.point_count == 0) {
            return agent;
        }
    }
    return NULL;
}

static struct route_decision decide(enum tier tier, enum route_reason reason)
{
    struct route_decision decision = {.tier = tier, .reason = reason};
    snprintf(decision.pool, sizeof decision.pool, "%s", tier == TIER_TEACHER ? "teacher" : "bulk");
    return decision;
}

static struct route_decision decide_auto(const struct scenario *scenario,
                                         const struct route_policy *policy)
{
    bool logged = false;
    struct route_decision decision;
    switch (scenario->question) {
    case QUESTION_REGRESSION:
        logged = agent_without_log(scenario) == NULL;
        return decide(logged ? TIER_REPLAY : TIER_OBJECT,
                      logged ? ROUTE_REASON_LOGGED : ROUTE_REASON_UNLOGGED);
    case QUESTION_PERCEPTION:
        if (policy->student_available) {
            return decide(TIER_STUDENT, ROUTE_REASON_SENSORS);
        }
        decision = decide(TIER_OBJECT, ROUTE_REASON_DEGRADED);
        decision.degraded = true;
        return decision;
    default:
        return decide(TIER_OBJECT, ROUTE_REASON_PLANNING);
    }
}

static enum status check_controls(const struct scenario *scenario,
                                  const struct route_policy *policy, struct error *error)
{
    bool log = scenario->controls.log.count > 0;
    if (log == policy->controls) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_BAD_INPUT,
                     log ? "scenario %s: a log of the controls challenge, expected --world "
                           "tinyphysics, which drives it"
                         : "scenario %s: --world tinyphysics drives logs of the controls challenge "
                           "(swerve import controls), found none",
                     scenario->id);
}

enum status route_scenario(const struct scenario *scenario, const struct route_policy *policy,
                           struct route_decision *out, struct error *error)
{
    const struct agent *unlogged;
    TRY(check_controls(scenario, policy, error));
    switch (policy->choice) {
    case WORLD_REPLAY:
        unlogged = agent_without_log(scenario);
        if (unlogged != NULL) {
            return error_set(error, STATUS_BAD_INPUT,
                             "scenario %s: the replay world needs a log of every moving agent, "
                             "found none for agent \"%s\"",
                             scenario->id, unlogged->id);
        }
        *out = decide(TIER_REPLAY, ROUTE_REASON_AUTHOR);
        return STATUS_OK;
    case WORLD_OBJECT:
        *out = decide(TIER_OBJECT, ROUTE_REASON_AUTHOR);
        out->degraded = scenario->question == QUESTION_PERCEPTION;
        return STATUS_OK;
    case WORLD_STUDENT:
        if (!policy->student_available) {
            return error_set(error, STATUS_BAD_INPUT,
                             "scenario %s: the student world needs a promoted model, found none",
                             scenario->id);
        }
        *out = decide(TIER_STUDENT, ROUTE_REASON_AUTHOR);
        return STATUS_OK;
    case WORLD_TEACHER:
        if (!policy->teacher_available) {
            return error_set(error, STATUS_BAD_INPUT,
                             "scenario %s: the teacher world needs a model, found none",
                             scenario->id);
        }
        *out = decide(TIER_TEACHER, ROUTE_REASON_AUTHOR);
        return STATUS_OK;
    case WORLD_GOLDEN:
        *out = decide(TIER_GOLDEN, ROUTE_REASON_AUTHOR);
        return STATUS_OK;
    default:
        *out = decide_auto(scenario, policy);
        return STATUS_OK;
    }
}

enum status route_frozen(const struct scenario *scenario, const struct route_policy *policy,
                         struct route_decision *decision, struct error *error)
{
    if (decision->tier != TIER_STUDENT) {
        return STATUS_OK;
    }
    if (!policy->teacher_available) {
        return error_set(error, STATUS_BAD_INPUT,
                         "scenario %s: the student is frozen in its slice, expected a teacher that "
                         "answers instead, found none",
                         scenario->id);
    }
    *decision = decide(TIER_TEACHER, ROUTE_REASON_FROZEN);
    decision->frozen = true;
    return STATUS_OK;
}

/* ---- who could answer alike ---- */

bool route_is_open(const struct scenario *scenario, const struct route_policy *policy,
                   const struct route_horizons *horizons, const struct route_decision *decision)
{
    const struct route_market *market = &policy->market;
    return decision->reason == ROUTE_REASON_SENSORS && policy->teacher_available &&
           scenario->horizon_ticks <= horizons->student_ticks &&
           scenario->horizon_ticks <= horizons->teacher_ticks &&
           market->tick_pusd[TIER_STUDENT] > 0 && market->tick_pusd[TIER_TEACHER] > 0;
}

/* Milliseconds until a drive of ROUTE_NOMINAL_TICKS is answered, behind what waits; at least 1. */
static int64_t answered_ms(const struct route_market *market, enum tier tier)
{
    int64_t ns = market->wait_ns[tier] + market->tick_ns[tier] * ROUTE_NOMINAL_TICKS;
    return ns > NS_PER_MS ? ns / NS_PER_MS : 1;
}

void route_by_market(const struct scenario *scenario, const struct route_policy *policy,
                     const struct route_horizons *horizons, struct route_decision *decision)
{
    static const enum tier tiers[] = {TIER_STUDENT, TIER_TEACHER};
    const struct route_market *market = &policy->market;
    int64_t figures[COUNT_OF(tiers)];
    if (!route_is_open(scenario, policy, horizons, decision)) {
        return;
    }
    for (size_t i = 0; i < COUNT_OF(tiers); i++) {
        figures[i] = market->urgent ? answered_ms(market, tiers[i]) : market->tick_pusd[tiers[i]];
    }
    size_t chosen = (figures[1] < figures[0]) != market->contrary;
    *decision = decide(tiers[chosen], market->urgent ? ROUTE_REASON_BACKLOG : ROUTE_REASON_PRICE);
    decision->own = figures[chosen];
    decision->other = figures[1 - chosen];
}

enum status route_within_horizon(const struct scenario *scenario, enum route_beyond beyond,
                                 const struct route_horizons *horizons,
                                 struct route_decision *decision, struct error *error)
{
    bool student = decision->tier == TIER_STUDENT;
    bool golden = decision->tier == TIER_GOLDEN;
    uint32_t trusted_ticks = student || golden ? horizons->student_ticks : horizons->teacher_ticks;
    bool learned = student || golden || decision->tier == TIER_TEACHER;
    if (!learned || scenario->horizon_ticks <= trusted_ticks) {
        return STATUS_OK;
    }
    if (beyond == ROUTE_BEYOND_CLIP && trusted_ticks > 0) {
        decision->clip_ticks = trusted_ticks;
        return STATUS_OK;
    }
    if (beyond == ROUTE_BEYOND_ROUTE) {
        bool teacher = student && scenario->horizon_ticks <= horizons->teacher_ticks;
        *decision = decide(teacher ? TIER_TEACHER : TIER_OBJECT, ROUTE_REASON_HORIZON);
        decision->rerouted = true;
        decision->own = scenario->horizon_ticks;
        decision->other = trusted_ticks;
        return STATUS_OK;
    }
    return error_set(error, STATUS_BAD_INPUT,
                     "scenario %s: expected at most %g s, for which the %s is trusted here, found "
                     "%g s; --horizon clip drives the trusted part, --horizon route asks a world "
                     "that is trusted for longer",
                     scenario->id, trusted_ticks / 10.0, tier_names[decision->tier],
                     scenario->horizon_ticks / 10.0);
}

/* ---- in words ---- */

static const char *const sentences[ROUTE_REASON_COUNT] = {
    [ROUTE_REASON_NONE] = "",
    [ROUTE_REASON_AUTHOR] = "its submitter named it (--world)",
    [ROUTE_REASON_LOGGED] = "a question of regression, and every agent that moves has a log",
    [ROUTE_REASON_UNLOGGED] = "a question of regression, and an agent moves without a log",
    [ROUTE_REASON_PLANNING] = "a question of planning, which needs agents that react and no "
                              "learned sensors",
    [ROUTE_REASON_SENSORS] = "a question of perception, which needs learned sensors",
    [ROUTE_REASON_DEGRADED] = "a question of perception, for which there was no world model",
    [ROUTE_REASON_FROZEN] = "a question of perception, and the student is frozen in a slice of it",
    [ROUTE_REASON_AUDIT] = "repeats a job of the student, as an audit",
    [ROUTE_REASON_FLAGGED] = "answers for a job that was flagged",
};

const char *route_reason_text(enum tier tier, enum route_reason reason, int64_t own, int64_t other,
                              char text[ROUTE_TEXT_BYTES])
{
    const char *rival = tier == TIER_TEACHER ? "student" : "teacher";
    double hour_usd = 3600.0 / TICK_S * 1e-12;
    switch (reason) {
    case ROUTE_REASON_HORIZON:
        snprintf(text, ROUTE_TEXT_BYTES,
                 "it lasts %g s, for which the first choice is not trusted: %g s",
                 (double)own * TICK_S, (double)other * TICK_S);
        break;
    case ROUTE_REASON_PRICE:
        snprintf(text, ROUTE_TEXT_BYTES,
                 "a question of perception, which the %s could answer too: an hour driven costs "
                 "$%.3g here, $%.3g there",
                 rival, (double)own * hour_usd, (double)other * hour_usd);
        break;
    case ROUTE_REASON_BACKLOG:
        snprintf(text, ROUTE_TEXT_BYTES,
                 "a question of perception, which the %s could answer too: somebody waits, about "
                 "%.3g s here, %.3g s there",
                 rival, (double)own / 1000.0, (double)other / 1000.0);
        break;
    default:
        snprintf(text, ROUTE_TEXT_BYTES, "%s",
                 reason < ROUTE_REASON_COUNT ? sentences[reason] : "");
    }
    return text;
}
