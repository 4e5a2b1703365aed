/*
 * Hardware at the wheel is shown no frame of a tier whose verdicts are not those of all steps. See
 * interactive.h.
 */
#include "worker/interactive/interactive_internal.h"

#include <stdio.h>
#include <string.h>

/* Whether a tier is what its agreement is measured against, or has no model. */
static bool is_whole(const struct interactive *pool, uint32_t tier)
{
    return pool->model == NULL || pool->skips[tier] == 0;
}

/* The model that makes a tier's frames, or draws them. */
static const struct models_model *maker_of(const struct interactive *pool, uint32_t tier)
{
    bool previous = pool->makers[tier] == INTERACTIVE_PREVIOUS;
    return previous ? pool->previous : pool->model;
}

/* `remedy` ends the sentence of a refusal. */
static enum status check_tier(const struct interactive *pool, const struct slices *slices,
                              uint32_t tier, const char *remedy, struct error *error)
{
    char sampler[LIMIT_ID_BYTES];
    char slice[TRUST_SLICE_TEXT_BYTES];
    const struct models_model *maker = maker_of(pool, tier);
    const char *name = pool->ticks[tier].tier;
    uint32_t steps = pool->ticks[tier].steps;
    bool known = false;
    model_sampler_taking(maker->model, pool->conditioning, steps, steps, sampler);
    for (uint32_t i = 0; i < pool->judged_count; i++) {
        const struct interactive_judged *judged = &pool->judged[i];
        if (judged->previous != (maker != pool->model) || strcmp(judged->sampler, sampler) != 0) {
            continue;
        }
        known = true;
        if (judged->refused && trust_find_slice(&judged->slice, 1, slices) != NULL) {
            return error_set(error, STATUS_BAD_INPUT,
                             "session: tier %s of %u steps is refused to hardware: in slice %s "
                             "%.1f%% of its verdicts are those of all steps, over %lld scenarios, "
                             "band %.1f%%: %s; %s",
                             name, steps, trust_slice_text(&judged->slice, slice),
                             100.0 * judged->agreement, (long long)judged->scenarios,
                             100.0 * judged->band, judged->result, remedy);
        }
    }
    return known ? STATUS_OK
                 : error_set(error, STATUS_BAD_INPUT,
                             "session: tier %s of %u steps is refused to hardware: expected its "
                             "verdicts beside those of all steps, found none of sampler %s of "
                             "model %.12s; %s",
                             name, steps, sampler, maker->hash, remedy);
}

enum status interactive_check_hardware(const struct interactive *pool,
                                       const struct interactive_wish *wish, const struct seat *seat,
                                       struct error *error)
{
    if (!wish->hardware || seat->scenario >= swerve_env_scenarios(pool->env)) {
        return STATUS_OK; /* a scenario that there is not is no session's */
    }
    const struct slices *slices = &env_document(pool->env, seat->scenario)->scenario.slices;
    for (uint32_t tier = 0; tier <= seat->least; tier++) {
        if (!is_whole(pool, tier)) {
            TRY(check_tier(pool, slices, tier, "ask for more steps at the least", error));
        }
    }
    return STATUS_OK;
}

/* A tick that left out so many steps. */
static enum status check_driven(const struct interactive *pool, const struct slices *slices,
                                uint32_t skipped, struct error *error)
{
    if (pool->model == NULL || skipped == 0) {
        return STATUS_OK;
    }
    for (uint32_t tier = 0; tier < pool->deadlines.tier_count; tier++) {
        if (pool->skips[tier] == skipped) {
            return check_tier(pool, slices, tier, "begin its scenario anew", error);
        }
    }
    return error_set(error, STATUS_BAD_INPUT,
                     "session: a tier that leaves out %u steps is refused to hardware: expected "
                     "one of this server's, found none; begin its scenario anew",
                     skipped);
}

enum status interactive_check_driven(const struct interactive *pool,
                                     const struct interactive_wish *wish, const struct seat *seat,
                                     struct error *error)
{
    const struct slices *slices = &env_document(pool->env, seat->scenario)->scenario.slices;
    uint32_t count = wish->hardware ? session_tick(seat->session) : 0;
    count += wish->hardware ? session_returning(seat->session) : 0;
    for (uint32_t i = 0; i < count; i++) {
        if (check_driven(pool, slices, session_skipped(seat->session, i), error) != STATUS_OK) {
            return error_prefix(error, "tick %u", i + 1);
        }
    }
    return STATUS_OK;
}
