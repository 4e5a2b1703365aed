/*
 * Variables, parameters and states of traffic signals: what actions set and conditions look at.
 *
 * Each name that both an action of the file sets and a condition looks at becomes a variable of the
 * storyboard, a number. Texts get numbers of their own, alike in any spelling, which may be equal
 * or not and are in no order. What no action sets is constant; what an action adds to or multiplies
 * keeps its first value, with a note.
 */
#include "scenarios/import/openscenario/osc_internal.h"

#include <math.h>
#include <string.h>
#include <strings.h>

enum { TEXTS_MAX = 256 };
#define VALUE_MAX 1e6

struct variable {
    enum osc_named kind;
    const char *name;
};

struct osc_variables {
    uint32_t count;
    struct variable items[LIMIT_STORY_VARIABLES];
    uint32_t text_count;
    const char *texts[TEXTS_MAX];
};

static const struct {
    const char *condition;
    const char *action;
    const char *set; /* child of the action that sets; NULL: it does itself */
    const char *name;
    const char *value;
} kinds[] = {
    [OSC_PARAMETER] = {"ParameterCondition", "ParameterAction", "SetAction", "parameterRef",
                       "value"},
    [OSC_VARIABLE] = {"VariableCondition", "VariableAction", "SetAction", "variableRef", "value"},
    [OSC_SIGNAL] = {"TrafficSignalCondition", "TrafficSignalStateAction", NULL, "name", "state"},
};

/* Uses of a name in the file. */
struct uses {
    bool watched; /* by a condition */
    bool set;
    bool other;   /* an action adds or multiplies, or a controller's phase has the signal */
    bool numbers; /* all of its values are */
};

/* The element after one in the order of the document; NULL: it was the last. */
static const struct osc_element *after(const struct osc_element *at)
{
    if (at->first != NULL) {
        return at->first;
    }
    while (at != NULL && at->next == NULL) {
        at = at->parent;
    }
    return at != NULL ? at->next : NULL;
}

static bool names(const struct osc_element *element, const char *attribute, const char *name)
{
    const char *text = osc_attribute(element, attribute);
    return text != NULL && strcmp(text, name) == 0;
}

static void note_value(struct uses *uses, const struct osc_element *element, const char *attribute)
{
    const char *text = osc_attribute(element, attribute);
    double value;
    uses->numbers = uses->numbers && text != NULL && osc_parse_number(text, &value);
}

static struct uses uses_of(const struct osc_context *context, enum osc_named kind, const char *name)
{
    struct uses uses = {.numbers = true};
    for (const struct osc_element *at = context->root; at != NULL; at = after(at)) {
        if (osc_is(at, kinds[kind].condition) && names(at, kinds[kind].name, name)) {
            uses.watched = true;
            note_value(&uses, at, kinds[kind].value);
        } else if (osc_is(at, kinds[kind].action) && names(at, kinds[kind].name, name)) {
            const struct osc_element *set =
                kinds[kind].set != NULL ? osc_child(at, kinds[kind].set) : at;
            uses.set = uses.set || set != NULL;
            uses.other = uses.other || set == NULL;
            if (set != NULL) {
                note_value(&uses, set, kinds[kind].value);
            }
        } else if (kind == OSC_SIGNAL && osc_is(at, "TrafficSignalState")) {
            uses.other = uses.other || names(at, "trafficSignalId", name);
        }
    }
    return uses;
}

static const char *declared(const struct osc_context *context, enum osc_named kind,
                            const char *name)
{
    if (kind == OSC_SIGNAL) {
        return ""; /* no state that a condition could name */
    }
    for (uint32_t i = 0; kind == OSC_PARAMETER && i < context->globals.count; i++) {
        if (strcmp(context->globals.items[i].name, name + (name[0] == '$')) == 0) {
            return context->globals.items[i].value;
        }
    }
    const struct osc_element *list =
        kind == OSC_VARIABLE ? osc_child(context->root, "VariableDeclarations") : NULL;
    const struct osc_element *at = list != NULL ? osc_child(list, "VariableDeclaration") : NULL;
    while (at != NULL && !names(at, "name", name)) {
        at = osc_next(at);
    }
    return at != NULL ? osc_attribute(at, "value") : NULL;
}

/* The number that stands for a value. */
static enum status value_of(struct osc_context *context, const struct osc_element *element,
                            const char *text, bool numbers, double *out)
{
    struct osc_variables *all = context->variables;
    if (numbers && osc_parse_number(text, out)) {
        return fabs(*out) <= VALUE_MAX
                   ? STATUS_OK
                   : osc_fail(context, element, "expected a value from %g to %g, found %g",
                              -VALUE_MAX, VALUE_MAX, *out);
    }
    uint32_t at = 0;
    while (at < all->text_count && strcasecmp(all->texts[at], text) != 0) {
        at++;
    }
    if (at == TEXTS_MAX) {
        return osc_fail(context, element, "expected at most %d texts of variables, found more",
                        TEXTS_MAX);
    }
    all->texts[at] = text;
    all->text_count += at == all->text_count;
    *out = at;
    return STATUS_OK;
}

/* The storyboard's variable for a name, added where it is new. */
static enum status variable_of(struct osc_context *context, const struct osc_element *element,
                               enum osc_named kind, const char *name, bool numbers, int32_t *out)
{
    if (context->variables == NULL) {
        context->variables = osc_alloc(context, 1, sizeof *context->variables);
        context->board.variables =
            osc_alloc(context, LIMIT_STORY_VARIABLES, sizeof *context->board.variables);
        if (context->variables == NULL || context->board.variables == NULL) {
            return STATUS_LIMIT;
        }
        *context->variables = (struct osc_variables){0};
    }
    struct osc_variables *all = context->variables;
    uint32_t at = 0;
    while (at < all->count &&
           (all->items[at].kind != kind || strcmp(all->items[at].name, name) != 0)) {
        at++;
    }
    *out = (int32_t)at;
    if (at < all->count) {
        return STATUS_OK;
    }
    if (at == LIMIT_STORY_VARIABLES) {
        return osc_fail(context, element, "expected at most %d variables, found more",
                        LIMIT_STORY_VARIABLES);
    }
    const char *first = declared(context, kind, name);
    if (first == NULL) {
        return osc_fail(context, element, "expected a declared name, found \"%.60s\"", name);
    }
    TRY(value_of(context, element, first, numbers, &context->board.variables[at]));
    all->items[all->count++] = (struct variable){kind, name};
    context->board.variable_count = all->count;
    return STATUS_OK;
}

static bool is_number(const char *text)
{
    double value;
    return osc_parse_number(text, &value);
}

static bool compare_values(const char *value, enum story_rule rule, const char *bound)
{
    double a;
    double b;
    bool numbers = osc_parse_number(value, &a) && osc_parse_number(bound, &b);
    double order = numbers ? (a > b) - (a < b) : strcasecmp(value, bound);
    switch (rule) {
    case STORY_GREATER:
        return order > 0;
    case STORY_GREATER_EQUAL:
        return order >= 0;
    case STORY_LESS:
        return order < 0;
    case STORY_LESS_EQUAL:
        return order <= 0;
    case STORY_EQUAL:
        return order == 0;
    case STORY_NOT_EQUAL:
        return order != 0;
    case STORY_RULE_COUNT:
        break;
    }
    return false;
}

enum status osc_variable_condition(struct osc_context *context, const struct osc_element *element,
                                   enum osc_named kind, struct story_condition *condition)
{
    const char *name;
    const char *bound;
    TRY(osc_required_text(context, element, kinds[kind].name, &name));
    TRY(osc_required_text(context, element, kinds[kind].value, &bound));
    struct uses uses = uses_of(context, kind, name);
    const char *first = declared(context, kind, name);
    if (first == NULL) {
        return osc_fail(context, element, "expected a declared name, found \"%.60s\"", name);
    }
    if (kind == OSC_SIGNAL && (!uses.set || uses.other)) {
        return osc_unsupported(context, element); /* controllers are not run */
    }
    if (!uses.set || uses.other) {
        if (uses.other) {
            osc_note(context, element,
                     "variables and parameters that actions add to or multiply keep their first "
                     "values in conditions");
        }
        condition->kind = STORY_CONSTANT;
        condition->value = compare_values(first, condition->rule, bound);
        return STATUS_OK;
    }
    bool numbers = uses.numbers && is_number(first);
    if (!numbers && condition->rule != STORY_EQUAL && condition->rule != STORY_NOT_EQUAL) {
        return osc_fail(context, element,
                        "expected equalTo or notEqualTo as the rule for what holds texts, found "
                        "another");
    }
    condition->kind = STORY_VARIABLE;
    TRY(variable_of(context, element, kind, name, numbers, &condition->variable));
    return value_of(context, element, bound, numbers, &condition->value);
}

enum status osc_variable_action(struct osc_context *context, const struct osc_element *element,
                                enum osc_named kind, struct story_action *action, bool *looked_at)
{
    const struct osc_element *set =
        kinds[kind].set != NULL ? osc_child(element, kinds[kind].set) : element;
    const char *name;
    const char *text;
    TRY(osc_required_text(context, element, kinds[kind].name, &name));
    struct uses uses = uses_of(context, kind, name);
    const char *first = declared(context, kind, name);
    *looked_at = uses.watched;
    if (uses.watched && uses.other) {
        osc_note(context, element,
                 "what is also added to, multiplied or switched by phases keeps its first value");
        return STATUS_OK;
    }
    if (!uses.watched) {
        return STATUS_OK;
    }
    if (first == NULL) {
        return osc_fail(context, element, "expected a declared name, found \"%.60s\"", name);
    }
    bool numbers = uses.numbers && is_number(first);
    action->kind = STORY_DO_SET;
    TRY(osc_required_text(context, set, kinds[kind].value, &text));
    TRY(variable_of(context, element, kind, name, numbers, &action->variable));
    return value_of(context, set, text, numbers, &action->set_to);
}
