/*
 * The storyboard: stories, acts, manoeuvre groups, manoeuvres and events to a flat list of events.
 *
 * Three passes: elements get their numbers, so that conditions may name what stands later; actions
 * are read, in the order of the file; triggers are.
 */
#include "scenarios/import/openscenario/osc_internal.h"

#include "base/dmath.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

enum {
    NODES_MAX = 2048,
    EXECUTIONS_MAX = 8,      /* of an act's only group */
    REPEATED_EVENTS_MAX = 24 /* in all of them but the first */
};

enum node_kind {
    NODE_STORY = 0,
    NODE_ACT,
    NODE_GROUP,
    NODE_MANEUVER,
    NODE_EVENT,
    NODE_ACTION,
    NODE_KIND_COUNT
};

struct node {
    enum node_kind kind;
    const struct osc_element *element;
    const char *name;
    int32_t parent;
    int32_t event;  /* of an act and an event */
    int32_t before; /* of an act: the execution before of its group, -1: none */
    uint32_t first_action;
    uint32_t action_count;
};

struct osc_nodes {
    uint32_t count;
    struct node *items;
    int32_t act; /* whose triggers are read */
};

static const char *const element_names[NODE_KIND_COUNT] = {"Story",    "Act",   "ManeuverGroup",
                                                           "Maneuver", "Event", "Action"};

enum status osc_add_condition(struct osc_context *context, const struct osc_element *element,
                              const struct story_condition *condition, uint32_t *index)
{
    struct storyboard *board = &context->board;
    if (board->condition_count == LIMIT_STORY_CONDITIONS) {
        return osc_fail(context, element,
                        "expected at most %d conditions in a storyboard, found "
                        "more",
                        LIMIT_STORY_CONDITIONS);
    }
    *index = board->condition_count;
    board->conditions[board->condition_count++] = *condition;
    return STATUS_OK;
}

enum status osc_add_action(struct osc_context *context, const struct osc_element *element,
                           const struct story_action *action)
{
    struct storyboard *board = &context->board;
    if (board->action_count == LIMIT_STORY_ACTIONS) {
        return osc_fail(context, element, "expected at most %d actions in a storyboard, found more",
                        LIMIT_STORY_ACTIONS);
    }
    board->actions[board->action_count++] = *action;
    return STATUS_OK;
}

/* ---- numbers ---- */

static enum status add_event(struct osc_context *context, const struct osc_element *element,
                             const struct story_event *event, int32_t *index)
{
    struct storyboard *board = &context->board;
    if (board->event_count == LIMIT_STORY_EVENTS) {
        return osc_fail(context, element, "expected at most %d acts and events, found more",
                        LIMIT_STORY_EVENTS);
    }
    *index = (int32_t)board->event_count;
    board->events[board->event_count++] = *event;
    return STATUS_OK;
}

static int32_t act_of(const struct osc_nodes *nodes, int32_t at)
{
    while (nodes->items[at].kind != NODE_ACT) {
        at = nodes->items[at].parent;
    }
    return at;
}

static enum status number_event(struct osc_context *context, struct osc_nodes *nodes,
                                struct node *node)
{
    static const char *const priorities[] = {"overwrite", "skip", "parallel", "override", NULL};
    int priority;
    double repeats = 1;
    int32_t maneuver = node->parent;
    TRY(osc_choice(context, node->element, "priority", priorities, 0, &priority));
    TRY(osc_number(context, node->element, "maximumExecutionCount", false, 0, 1e9, &repeats));
    struct story_event event = {.parent = nodes->items[act_of(nodes, maneuver)].event,
                                .group = (uint32_t)maneuver,
                                .priority =
                                    priority == 3 ? STORY_OVERWRITE : (enum story_priority)priority,
                                .repeats = (uint32_t)dmath_clamp(repeats, 1, 10000)};
    return add_event(context, node->element, &event, &node->event);
}

static uint32_t count_events(const struct osc_element *group)
{
    uint32_t count = 0;
    const struct osc_element *maneuver = osc_child(group, "Maneuver");
    for (; maneuver != NULL; maneuver = osc_next(maneuver)) {
        const struct osc_element *event = osc_child(maneuver, "Event");
        for (; event != NULL; event = osc_next(event)) {
            count++;
        }
    }
    return count;
}

/* Number of times that an act is there, one after the other: as often as its only group is
 * executed, for triggers are looked at anew each time. */
static enum status count_executions(struct osc_context *context, const struct osc_element *act,
                                    uint32_t *out)
{
    const struct osc_element *group = osc_child(act, "ManeuverGroup");
    uint32_t most = 0;
    *out = 1;
    for (const struct osc_element *at = group; at != NULL; at = osc_next(at)) {
        double asked = 1;
        uint32_t events = count_events(at);
        TRY(osc_number(context, at, "maximumExecutionCount", false, 0, 1e9, &asked));
        most = osc_next(group) == NULL && events > 0 ? 1 + REPEATED_EVENTS_MAX / events : 1;
        *out = (uint32_t)dmath_clamp(asked, 1, most < EXECUTIONS_MAX ? most : EXECUTIONS_MAX);
        if (asked > *out && events > 0) {
            osc_note(context, at, "a group is executed as often as fits, beside others once");
        }
    }
    return STATUS_OK;
}

static enum status number_node(struct osc_context *context, struct osc_nodes *nodes,
                               const struct osc_element *element, enum node_kind kind,
                               int32_t parent)
{
    if (nodes->count == NODES_MAX) {
        return osc_fail(context, element,
                        "expected at most %d elements of a storyboard, found more", NODES_MAX);
    }
    int32_t self = (int32_t)nodes->count++;
    struct node *node = &nodes->items[self];
    const char *name = osc_attribute(element, "name");
    *node = (struct node){.kind = kind,
                          .element = element,
                          .name = name != NULL ? name : "",
                          .parent = parent,
                          .event = -1,
                          .before = -1};
    if (kind == NODE_ACT) {
        struct story_event act = {.parent = -1, .repeats = 1};
        TRY(add_event(context, element, &act, &node->event));
    } else if (kind == NODE_EVENT) {
        TRY(number_event(context, nodes, node));
    }
    if (kind == NODE_ACTION) {
        return STATUS_OK;
    }
    const struct osc_element *child = osc_child(element, element_names[kind + 1]);
    for (; child != NULL; child = osc_next(child)) {
        uint32_t executions = 1;
        int32_t before = -1;
        TRY(kind == NODE_STORY ? count_executions(context, child, &executions) : STATUS_OK);
        for (uint32_t i = 0; i < executions; i++) {
            int32_t made = (int32_t)nodes->count;
            TRY(number_node(context, nodes, child, (enum node_kind)(kind + 1), self));
            nodes->items[made].before = before;
            before = made;
        }
    }
    return STATUS_OK;
}

/* ---- actions ---- */

/* Reference to the one entity that a start trigger looks at, whom `selectTriggeringEntities` has
 * act; NULL: there are several, or none. */
static const struct osc_element *sole_trigger(const struct osc_element *event)
{
    const struct osc_element *start = osc_child(event, "StartTrigger");
    const struct osc_element *group = start != NULL ? osc_child(start, "ConditionGroup") : NULL;
    const struct osc_element *found = NULL;
    for (; group != NULL; group = osc_next(group)) {
        const struct osc_element *condition = osc_child(group, "Condition");
        for (; condition != NULL; condition = osc_next(condition)) {
            const struct osc_element *by = osc_child(condition, "ByEntityCondition");
            const struct osc_element *who = by != NULL ? osc_child(by, "TriggeringEntities") : NULL;
            const struct osc_element *at = who != NULL ? osc_child(who, "EntityRef") : NULL;
            for (; at != NULL; at = osc_next(at)) {
                const char *name = osc_attribute(at, "entityRef");
                const char *before = found != NULL ? osc_attribute(found, "entityRef") : name;
                if (name == NULL || strcmp(name, before) != 0) {
                    return NULL;
                }
                found = at;
            }
        }
    }
    return found;
}

static enum status act(struct osc_context *context, const struct osc_element *private,
                       const struct osc_element *reference)
{
    struct osc_entities entities;
    TRY(osc_entities_of(context, reference, &entities));
    for (uint32_t i = 0; i < entities.count; i++) {
        TRY(osc_private_action(context, private, entities.items[i]));
    }
    return STATUS_OK;
}

static enum status read_action(struct osc_context *context, const struct osc_element *element,
                               const struct osc_element *actors)
{
    const struct osc_element *private = osc_child(element, "PrivateAction");
    const struct osc_element *global = osc_child(element, "GlobalAction");
    if (global != NULL) {
        return osc_global_action(context, global);
    }
    if (private == NULL) {
        return osc_user_action(context, element);
    }
    const struct osc_element *reference = osc_child(actors, "EntityRef");
    bool triggers;
    TRY(osc_bool(context, actors, "selectTriggeringEntities", false, &triggers));
    const struct osc_element *sole = triggers ? sole_trigger(element->parent) : NULL;
    if (reference == NULL && sole == NULL) {
        return osc_fail(context, actors,
                        "expected at least one <EntityRef>, or one entity that triggers the event, "
                        "found none");
    }
    TRY(sole != NULL ? act(context, private, sole) : STATUS_OK);
    for (; reference != NULL; reference = osc_next(reference)) {
        bool done = sole != NULL && strcmp(osc_attribute(reference, "entityRef") != NULL
                                               ? osc_attribute(reference, "entityRef")
                                               : "",
                                           osc_attribute(sole, "entityRef")) == 0;
        TRY(done ? STATUS_OK : act(context, private, reference));
    }
    return STATUS_OK;
}

static enum status read_node_actions(struct osc_context *context, struct osc_nodes *nodes,
                                     uint32_t at)
{
    struct node *node = &nodes->items[at];
    const struct node *event = &nodes->items[node->parent];
    const struct node *group = &nodes->items[nodes->items[event->parent].parent];
    const struct osc_element *actors;
    TRY(osc_required_child(context, group->element, "Actors", &actors));
    node->first_action = context->board.action_count;
    TRY(read_action(context, node->element, actors));
    node->action_count = context->board.action_count - node->first_action;
    struct story_event *record = &context->board.events[event->event];
    if (record->actions == NULL) {
        record->actions = osc_alloc(context, LIMIT_STORY_ACTIONS, sizeof *record->actions);
        if (record->actions == NULL) {
            return STATUS_LIMIT;
        }
    }
    for (uint32_t i = 0; i < node->action_count; i++) {
        record->actions[record->action_count++] = node->first_action + i;
    }
    return STATUS_OK;
}

/* ---- states ---- */

/* Names may be qualified: "Act::Maneuver::Event". */
static bool name_matches(const struct osc_nodes *nodes, int32_t at, const char *reference)
{
    size_t bytes = strlen(reference);
    while (at >= 0) {
        const char *name = nodes->items[at].name;
        size_t length = strlen(name);
        if (length > bytes || memcmp(reference + bytes - length, name, length) != 0) {
            return false;
        }
        bytes -= length;
        if (bytes == 0) {
            return true;
        }
        if (bytes < 2 || memcmp(reference + bytes - 2, "::", 2) != 0) {
            return false;
        }
        bytes -= 2;
        at = nodes->items[at].parent;
    }
    return false;
}

static bool lies_under(const struct osc_nodes *nodes, int32_t at, int32_t above)
{
    while (at >= 0 && at != above) {
        at = nodes->items[at].parent;
    }
    return at == above;
}

static enum status add_to_group(struct osc_context *context, const struct osc_element *element,
                                const struct story_condition *condition, struct story_group *group)
{
    if (group->count == LIMIT_STORY_GROUPS) {
        return osc_fail(context, element, "expected at most %d conditions in a group, found more",
                        LIMIT_STORY_GROUPS);
    }
    TRY(osc_add_condition(context, element, condition, &group->conditions[group->count]));
    group->count++;
    return STATUS_OK;
}

/* Of what holds events: its end is that of all of them, its start its act's, a story's at once. */
static enum status add_states(struct osc_context *context, const struct osc_element *element,
                              const struct osc_nodes *nodes, int32_t found,
                              struct story_condition condition, struct story_group *group)
{
    const struct node *node = &nodes->items[found];
    bool at_end = condition.state == STORY_COMPLETE || condition.state == STORY_ENDS;
    if (node->kind == NODE_ACT || node->kind == NODE_EVENT) {
        condition.event = node->event;
        return add_to_group(context, element, &condition, group);
    }
    if (node->kind == NODE_ACTION) {
        for (uint32_t i = 0; i < node->action_count; i++) {
            condition.action = (int32_t)(node->first_action + i);
            TRY(add_to_group(context, element, &condition, group));
        }
        return STATUS_OK;
    }
    if (!at_end && node->kind == NODE_STORY) { /* it runs from the start, before its acts do */
        condition.kind = STORY_CONSTANT;
        condition.value = condition.state == STORY_RUNNING || condition.state == STORY_STARTS;
        condition.state = STORY_STANDBY;
        condition.edge = STORY_EDGE_NONE;
        return add_to_group(context, element, &condition, group);
    }
    if (!at_end) {
        condition.event = nodes->items[act_of(nodes, found)].event;
        return add_to_group(context, element, &condition, group);
    }
    uint32_t events = 0;
    for (uint32_t i = 0; i < nodes->count; i++) {
        events += nodes->items[i].kind == NODE_EVENT && lies_under(nodes, (int32_t)i, found);
    }
    for (uint32_t i = 0; i < nodes->count; i++) {
        if (nodes->items[i].kind == NODE_EVENT && lies_under(nodes, (int32_t)i, found)) {
            /* The ends of several are no one moment: all must have been. */
            condition.state = events > 1 ? STORY_COMPLETE : condition.state;
            condition.edge = events > 1 ? STORY_EDGE_NONE : condition.edge;
            condition.event = nodes->items[i].event;
            TRY(add_to_group(context, element, &condition, group));
        }
    }
    return STATUS_OK;
}

enum status osc_state_condition(struct osc_context *context, const struct osc_element *element,
                                struct story_condition base, struct story_group *group)
{
    static const char *const types[] = {"story",  "act", "maneuverGroup", "maneuver", "event",
                                        "action", NULL};
    static const char *const states[] = {"standbyState",
                                         "runningState",
                                         "completeState",
                                         "startTransition",
                                         "endTransition",
                                         "stopTransition",
                                         NULL};
    const struct osc_nodes *nodes = context->nodes;
    const char *reference;
    int type;
    int state;
    TRY(osc_choice(context, element, "storyboardElementType", types, -1, &type));
    TRY(osc_choice(context, element, "state", states, -1, &state));
    TRY(osc_required_text(context, element, "storyboardElementRef", &reference));
    base.kind = STORY_STATE;
    base.state = (enum story_state_kind)state;
    /* A transition is a moment: whether it is looked at as an edge makes no difference. */
    base.edge = base.state >= STORY_STARTS ? STORY_EDGE_NONE : base.edge;
    bool at_end = base.state == STORY_COMPLETE || base.state == STORY_ENDS;
    int32_t found = -1;
    for (int32_t i = 0; i < (int32_t)nodes->count; i++) {
        bool own = lies_under(nodes, i, nodes->act);
        bool later = found >= 0 && at_end && nodes->items[i].element == nodes->items[found].element;
        if ((int)nodes->items[i].kind == type && (found < 0 || own || later) &&
            name_matches(nodes, i, reference)) {
            found = i;
        }
        if (own && found == i) {
            break; /* of several executions the one that asks, else of ends the last one's */
        }
    }
    if (found >= 0) {
        return add_states(context, element, nodes, found, base, group);
    }
    return osc_fail(context, element,
                    "expected the name of %s %s in storyboardElementRef, found "
                    "\"%.60s\"",
                    type == NODE_ACT || type >= NODE_EVENT ? "an" : "a", types[type], reference);
}

/* ---- triggers and the end ---- */

/* A later execution starts when the one before has ended, not where it was stopped. */
static enum status follow_on(struct osc_context *context, const struct node *node,
                             struct story_trigger *start)
{
    const struct story_condition ended = {.kind = STORY_STATE,
                                          .state = STORY_ENDS,
                                          .actor = -1,
                                          .other = -1,
                                          .event = context->nodes->items[node->before].event,
                                          .action = -1,
                                          .variable = -1};
    start->groups = osc_alloc(context, 1, sizeof *start->groups);
    if (start->groups == NULL) {
        return STATUS_LIMIT;
    }
    start->groups[0].conditions = osc_alloc(context, 1, sizeof *start->groups[0].conditions);
    if (start->groups[0].conditions == NULL) {
        return STATUS_LIMIT;
    }
    start->count = 1;
    return add_to_group(context, node->element, &ended, &start->groups[0]);
}

static enum status read_triggers(struct osc_context *context, struct node *node)
{
    struct osc_nodes *nodes = context->nodes;
    struct story_event *event = &context->board.events[node->event];
    const struct osc_element *start = osc_child(node->element, "StartTrigger");
    const struct osc_element *stop = osc_child(node->element, "StopTrigger");
    nodes->act = act_of(nodes, (int32_t)(node - nodes->items));
    if (node->before >= 0) {
        TRY(follow_on(context, node, &event->start));
    } else if (start != NULL) {
        TRY(osc_trigger_read(context, start, &event->start));
    }
    return stop != NULL && node->kind == NODE_ACT ? osc_trigger_read(context, stop, &event->stop)
                                                  : STATUS_OK;
}

enum status osc_story_read(struct osc_context *context)
{
    const struct osc_element *storyboard = osc_child(context->root, "Storyboard");
    struct osc_nodes *nodes = osc_alloc(context, 1, sizeof *nodes);
    if (nodes == NULL ||
        (nodes->items = osc_alloc(context, NODES_MAX, sizeof *nodes->items)) == NULL) {
        return STATUS_LIMIT;
    }
    context->nodes = nodes;
    const struct osc_element *story = osc_child(storyboard, "Story");
    for (; story != NULL; story = osc_next(story)) {
        TRY(number_node(context, nodes, story, NODE_STORY, -1));
    }
    for (uint32_t i = 0; i < nodes->count; i++) {
        TRY(nodes->items[i].kind == NODE_ACTION ? read_node_actions(context, nodes, i) : STATUS_OK);
    }
    for (uint32_t i = 0; i < nodes->count; i++) {
        bool triggered = nodes->items[i].kind == NODE_ACT || nodes->items[i].kind == NODE_EVENT;
        TRY(triggered ? read_triggers(context, &nodes->items[i]) : STATUS_OK);
    }
    return STATUS_OK;
}
