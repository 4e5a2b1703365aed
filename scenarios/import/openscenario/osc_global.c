/*
 * Global actions: of no entity, but for those that add and delete one.
 *
 * What nobody here carries out is an action of no length, so that what waits for it goes on, and a
 * note.
 */
#include "scenarios/import/openscenario/osc_internal.h"

#include "base/check.h"

#include <math.h>
#include <string.h>

static struct story_action of_nobody(void)
{
    return (struct story_action){.kind = STORY_DO_WAIT,
                                 .actor = -1,
                                 .other = -1,
                                 .path = -1,
                                 .ways_on = -1,
                                 .variable = -1,
                                 .time_s = NAN,
                                 .scale = 1.0,
                                 .accel_mps2 = INFINITY,
                                 .decel_mps2 = INFINITY,
                                 .speed_max_mps = 200.0};
}

enum status osc_nothing_happens(struct osc_context *context, const struct osc_element *element,
                                const char *note)
{
    struct story_action wait = of_nobody();
    osc_note(context, element, note);
    return osc_add_action(context, element, &wait);
}

/* A name that conditions look at becomes another; else a note says that nothing does. */
static enum status set_variable(struct osc_context *context, const struct osc_element *element,
                                enum osc_named kind, const char *note)
{
    struct story_action set = of_nobody();
    bool looked_at = false;
    TRY(osc_variable_action(context, element, kind, &set, &looked_at));
    if (!looked_at) {
        osc_note(context, element, note);
    }
    return osc_add_action(context, element, &set);
}

static enum status read_signal(struct osc_context *context, const struct osc_element *element)
{
    static const char note[] = "actions on traffic signals are left out";
    const struct osc_element *action = osc_child(element, "TrafficSignalAction");
    const struct osc_element *state =
        action != NULL ? osc_child(action, "TrafficSignalStateAction") : NULL;
    if (state == NULL) {
        return osc_nothing_happens(context, element, note);
    }
    osc_note(context, state,
             "states of traffic signals are what conditions look at: none is shown");
    return set_variable(context, state, OSC_SIGNAL, note);
}

/* Traffic that is drawn at random around what the file tells is left out; who is to be taken away
 * is not known here. */
static enum status read_traffic(struct osc_context *context, const struct osc_element *element)
{
    static const char *const drawn[] = {"TrafficSwarmAction", "TrafficSourceAction",
                                        "TrafficAreaAction", "TrafficStopAction"};
    const struct osc_element *at = element->first;
    for (size_t i = 0; at != NULL && i < COUNT_OF(drawn); i++) {
        if (osc_is(at, drawn[i])) {
            return osc_nothing_happens(
                context, at, "traffic that is drawn at random is left out: swarms and sources");
        }
    }
    return osc_unsupported(context, at != NULL ? at : element);
}

enum status osc_global_action(struct osc_context *context, const struct osc_element *action)
{
    const struct osc_element *at = action->first;
    if (at == NULL) {
        return osc_fail(context, action, "expected an action, found none");
    }
    if (osc_is(at, "EntityAction")) {
        return osc_entity_action(context, at);
    }
    if (osc_is(at, "EnvironmentAction")) {
        return osc_nothing_happens(context, at,
                                   "environments are left out: conditions come from the "
                                   "scenario's defaults");
    }
    if (osc_is(at, "SetMonitorAction")) {
        return osc_nothing_happens(context, at, "monitors are not set");
    }
    if (osc_is(at, "ParameterAction") || osc_is(at, "VariableAction")) {
        return set_variable(context, at,
                            osc_is(at, "VariableAction") ? OSC_VARIABLE : OSC_PARAMETER,
                            "parameters and variables are not changed where no condition looks");
    }
    if (osc_is(at, "InfrastructureAction")) {
        return read_signal(context, at);
    }
    if (osc_is(at, "TrafficAction")) {
        return read_traffic(context, at);
    }
    return osc_unsupported(context, at);
}

enum status osc_user_action(struct osc_context *context, const struct osc_element *action)
{
    return osc_nothing_happens(context, action, "user-defined actions are left out");
}
