/*
 * Routing: the cheapest tier that can answer. The order is fixed (replay, object, student,
 * teacher): each computes what the one before it does and more, so it needs no arithmetic with
 * prices.
 */
#include "scheduler/route.h"

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

static struct route_decision decide(enum tier tier, bool degraded)
{
    struct route_decision decision = {.tier = tier, .degraded = degraded};
    snprintf(decision.pool, sizeof decision.pool, "%s", tier == TIER_TEACHER ? "teacher" : "bulk");
    return decision;
}

static struct route_decision decide_auto(const struct scenario *scenario,
                                         const struct route_policy *policy)
{
    switch (scenario->question) {
    case QUESTION_REGRESSION:
        return decide(agent_without_log(scenario) == NULL ? TIER_REPLAY : TIER_OBJECT, false);
    case QUESTION_PERCEPTION:
        return decide(policy->student_available ? TIER_STUDENT : TIER_OBJECT,
                      !policy->student_available);
    default:
        return decide(TIER_OBJECT, false);
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
        *out = decide(TIER_REPLAY, false);
        return STATUS_OK;
    case WORLD_OBJECT:
        *out = decide(TIER_OBJECT, scenario->question == QUESTION_PERCEPTION);
        return STATUS_OK;
    case WORLD_STUDENT:
        if (!policy->student_available) {
            return error_set(error, STATUS_BAD_INPUT,
                             "scenario %s: the student world needs a promoted model, found none",
                             scenario->id);
        }
        *out = decide(TIER_STUDENT, false);
        return STATUS_OK;
    case WORLD_TEACHER:
        if (!policy->teacher_available) {
            return error_set(error, STATUS_BAD_INPUT,
                             "scenario %s: the teacher world needs a model, found none",
                             scenario->id);
        }
        *out = decide(TIER_TEACHER, false);
        return STATUS_OK;
    case WORLD_GOLDEN:
        *out = decide(TIER_GOLDEN, false);
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
    *decision = decide(TIER_TEACHER, false);
    decision->frozen = true;
    return STATUS_OK;
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
        *decision = decide(teacher ? TIER_TEACHER : TIER_OBJECT, false);
        decision->rerouted = true;
        return STATUS_OK;
    }
    return error_set(error, STATUS_BAD_INPUT,
                     "scenario %s: expected at most %g s, for which the %s is trusted here, found "
                     "%g s; --horizon clip drives the trusted part, --horizon route asks a world "
                     "that is trusted for longer",
                     scenario->id, trusted_ticks / 10.0, tier_names[decision->tier],
                     scenario->horizon_ticks / 10.0);
}
