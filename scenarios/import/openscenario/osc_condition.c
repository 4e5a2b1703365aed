/*
 * Triggers: condition groups to those of the storyboard.
 *
 * A condition on several entities becomes one condition each: of `all` in the same group, of `any`
 * a group each.
 */
#include "scenarios/import/openscenario/osc_internal.h"

#include "base/dmath.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define NEVER_S 1e5 /* beyond any rollout; files say 1e7 and more */

/* Of one <Condition>: alternatives, each a conjunction. */
struct parts {
    uint32_t count; /* conditions */
    bool any;       /* one of them is enough */
    struct story_condition items[LIMIT_STORY_GROUPS];
};

static enum status read_rule(struct osc_context *context, const struct osc_element *element,
                             struct story_condition *condition)
{
    static const char *const names[] = {"greaterThan", "greaterOrEqual", "lessThan", "lessOrEqual",
                                        "equalTo",     "notEqualTo",     NULL};
    int rule;
    TRY(osc_choice(context, element, "rule", names, -1, &rule));
    condition->rule = (enum story_rule)rule;
    return STATUS_OK;
}

static enum status read_measure(struct osc_context *context, const struct osc_element *element,
                                struct story_condition *condition)
{
    static const char *const types[] = {"euclidianDistance", "longitudinal", "lateral",
                                        "cartesianDistance", NULL};
    static const char *const systems[] = {"entity", "lane", "road", "trajectory", "world", NULL};
    int type;
    int system;
    bool along;
    TRY(osc_choice(context, element, "relativeDistanceType", types, 0, &type));
    TRY(osc_choice(context, element, "coordinateSystem", systems, 0, &system));
    TRY(osc_bool(context, element, "alongRoute", false, &along));
    TRY(osc_bool(context, element, "freespace", false, &condition->freespace));
    condition->along = along || (system >= 1 && system <= 3);
    bool legacy = osc_attribute(element, "relativeDistanceType") == NULL; /* of 1.0 */
    condition->measure = type == 1         ? STORY_LONGITUDINAL
                         : type == 2       ? STORY_LATERAL
                         : legacy && along ? STORY_LONGITUDINAL
                                           : STORY_EUCLIDEAN;
    return STATUS_OK;
}

static enum status read_point(struct osc_context *context, const struct osc_element *position,
                              struct story_condition *condition)
{
    struct osc_position at;
    TRY(osc_position_read(context, position, &at));
    if (at.relative_to_moving) {
        osc_note(context, position,
                 "positions relative to an entity in conditions are those of its "
                 "start");
    }
    condition->x_m = at.pose.x_m;
    condition->y_m = at.pose.y_m;
    return STATUS_OK;
}

static enum status read_other(struct osc_context *context, const struct osc_element *element,
                              struct story_condition *condition)
{
    struct osc_entity *other;
    TRY(osc_entity_named(context, element, "entityRef", &other));
    condition->other = (int32_t)other->actor;
    return STATUS_OK;
}

static enum status read_ttc(struct osc_context *context, const struct osc_element *element,
                            struct story_condition *condition)
{
    const struct osc_element *target;
    TRY(osc_required_child(context, element, "TimeToCollisionConditionTarget", &target));
    const struct osc_element *entity = osc_child(target, "EntityRef");
    const struct osc_element *position = osc_child(target, "Position");
    TRY(read_measure(context, element, condition));
    if (entity != NULL) {
        return read_other(context, entity, condition);
    }
    return position != NULL ? read_point(context, position, condition)
                            : osc_unsupported(context, target);
}

static bool holds_at_zero(enum story_rule rule, double bound)
{
    bool less = rule == STORY_LESS || rule == STORY_LESS_EQUAL || rule == STORY_NOT_EQUAL;
    bool more = rule == STORY_GREATER || rule == STORY_GREATER_EQUAL || rule == STORY_NOT_EQUAL;
    bool same = rule == STORY_EQUAL || rule == STORY_LESS_EQUAL || rule == STORY_GREATER_EQUAL;
    return bound > 0 ? less : bound < 0 ? more : same;
}

/* Of a speed or an acceleration: all of it, or along or across the entity. */
static enum status read_direction(struct osc_context *context, const struct osc_element *element,
                                  struct story_condition *condition)
{
    static const char *const names[] = {"longitudinal", "lateral", "vertical", NULL};
    int direction;
    if (osc_attribute(element, "direction") == NULL) {
        return STATUS_OK;
    }
    TRY(osc_choice(context, element, "direction", names, -1, &direction));
    condition->measure = direction == 1 ? STORY_LATERAL : STORY_LONGITUDINAL;
    if (direction == 2) { /* nothing moves up or down here */
        condition->kind = STORY_CONSTANT;
        condition->value = holds_at_zero(condition->rule, condition->value);
    }
    return STATUS_OK;
}

/* Headings; pitch and roll are 0. */
static enum status read_angle(struct osc_context *context, const struct osc_element *element,
                              struct story_condition *condition)
{
    static const char *const types[] = {"heading", "pitch", "roll", NULL};
    static const char *const systems[] = {"entity", "lane", "road", "trajectory", "world", NULL};
    int type;
    int system;
    condition->kind = STORY_ANGLE;
    TRY(osc_choice(context, element, "angleType", types, -1, &type));
    TRY(osc_choice(context, element, "coordinateSystem", systems, 4, &system));
    TRY(osc_number(context, element, "angle", true, -100, 100, &condition->value));
    TRY(osc_number(context, element, "angleTolerance", true, 0, 100, &condition->tolerance_rad));
    condition->along = system >= 1 && system <= 3;
    if (type != 0) {
        condition->kind = STORY_CONSTANT;
        condition->value = fabs(condition->value) <= condition->tolerance_rad;
    }
    return STATUS_OK;
}

/* Reads one entity condition, the triggering entity apart. */
static enum status read_entity_condition(struct osc_context *context,
                                         const struct osc_element *element,
                                         struct story_condition *condition)
{
    static const struct {
        const char *name;
        enum story_condition_kind kind;
        const char *value; /* attribute, NULL: none */
        bool rule;
        bool measure;
        bool other;
        bool point;
    } kinds[] = {
        {"TimeHeadwayCondition", STORY_HEADWAY, "value", true, true, true, false},
        {"RelativeDistanceCondition", STORY_RELATIVE_DISTANCE, "value", true, true, true, false},
        {"DistanceCondition", STORY_DISTANCE, "value", true, true, false, true},
        {"SpeedCondition", STORY_SPEED, "value", true, false, false, false},
        {"RelativeSpeedCondition", STORY_RELATIVE_SPEED, "value", true, false, true, false},
        {"AccelerationCondition", STORY_ACCELERATION, "value", true, false, false, false},
        {"StandStillCondition", STORY_STANDSTILL, "duration", false, false, false, false},
        {"TraveledDistanceCondition", STORY_TRAVELLED, "value", false, false, false, false},
        {"ReachPositionCondition", STORY_REACH, "tolerance", false, false, false, true},
        {"TimeToCollisionCondition", STORY_TTC, "value", true, false, false, false},
        {"OffroadCondition", STORY_OFF_ROAD, "duration", false, false, false, false},
        {"EndOfRoadCondition", STORY_ROAD_END, "duration", false, false, false, false},
    };
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        if (!osc_is(element, kinds[i].name)) {
            continue;
        }
        const struct osc_element *position = osc_child(element, "Position");
        condition->kind = kinds[i].kind;
        const double least = strcmp(kinds[i].value, "duration") == 0 ? 0 : -1e6;
        TRY(osc_number(context, element, kinds[i].value, true, least, 1e6, &condition->value));
        TRY(kinds[i].rule ? read_rule(context, element, condition) : STATUS_OK);
        TRY(kinds[i].measure ? read_measure(context, element, condition) : STATUS_OK);
        TRY(kinds[i].other ? read_other(context, element, condition) : STATUS_OK);
        TRY(kinds[i].kind == STORY_TTC ? read_ttc(context, element, condition) : STATUS_OK);
        if (kinds[i].point && position == NULL) {
            return osc_fail(context, element, "expected a <Position>, found none");
        }
        bool directed = kinds[i].kind == STORY_SPEED || kinds[i].kind == STORY_RELATIVE_SPEED ||
                        kinds[i].kind == STORY_ACCELERATION;
        TRY(directed ? read_direction(context, element, condition) : STATUS_OK);
        return kinds[i].point ? read_point(context, position, condition) : STATUS_OK;
    }
    if (osc_is(element, "AngleCondition") || osc_is(element, "RelativeAngleCondition")) {
        TRY(osc_is(element, "AngleCondition") ? STATUS_OK
                                              : read_other(context, element, condition));
        return read_angle(context, element, condition);
    }
    if (osc_is(element, "CollisionCondition")) {
        static const char *const types[] = {"vehicle", "pedestrian", "miscellaneous", NULL};
        const struct osc_element *other = osc_child(element, "EntityRef");
        const struct osc_element *type = osc_child(element, "ByType");
        int which = 0;
        condition->kind = STORY_COLLISION;
        if (other != NULL || type == NULL) {
            return other != NULL ? read_other(context, other, condition)
                                 : osc_unsupported(context, element);
        }
        TRY(osc_choice(context, type, "type", types, -1, &which));
        condition->type = (enum story_type)(STORY_VEHICLE + which);
        return STATUS_OK;
    }
    return osc_unsupported(context, element);
}

/* Lanes of a range, as far left and right of the entity's as if they were as wide. */
static enum status read_lane_range(struct osc_context *context, const struct osc_element *element,
                                   const struct osc_entity *entity,
                                   struct story_condition *condition)
{
    const struct osc_element *range = osc_child(element, "RelativeLaneRange");
    double from = -OSC_CHAIN_MAX;
    double to = OSC_CHAIN_MAX;
    if (!entity->on_road || entity->place.lane == OPENDRIVE_NONE) {
        return osc_fail(context, element, "expected an entity in a lane, found \"%.60s\"",
                        entity->name);
    }
    if (range != NULL) {
        TRY(osc_number(context, range, "from", false, -1e3, 1e3, &from));
        TRY(osc_number(context, range, "to", false, -1e3, 1e3, &to));
    }
    double width_m =
        opendrive_lane_width_m(context->network, entity->place.lane, entity->place.s_m);
    condition->low_m = (from - 0.5) * width_m;
    condition->high_m = (to + 0.5) * width_m;
    return STATUS_OK;
}

/* That none of the entities named, or of all others, is in lanes beside one: all at once. */
static enum status read_clearance(struct osc_context *context, const struct osc_element *element,
                                  const struct osc_entity *entity, struct story_condition base,
                                  struct parts *out)
{
    const struct osc_element *named = osc_child(element, "EntityRef");
    bool opposite;
    base.kind = STORY_CLEARANCE;
    base.measure = STORY_LONGITUDINAL;
    base.along = true;
    base.actor = (int32_t)entity->actor;
    TRY(osc_number(context, element, "distanceForward", false, 0, 1e5, &base.ahead_m));
    TRY(osc_number(context, element, "distanceBackward", false, 0, 1e5, &base.behind_m));
    TRY(osc_bool(context, element, "freeSpace", false, &base.freespace));
    TRY(osc_bool(context, element, "oppositeLanes", false, &opposite));
    TRY(read_lane_range(context, element, entity, &base));
    base.same_way = !opposite;
    for (uint32_t i = 0; i < context->entity_count; i++) {
        const struct osc_entity *other = &context->entities[i];
        const struct osc_element *at = named;
        while (at != NULL &&
               strcmp(osc_attribute(at, "entityRef") != NULL ? osc_attribute(at, "entityRef") : "",
                      other->name) != 0) {
            at = osc_next(at);
        }
        if (other == entity || (named != NULL && at == NULL)) {
            continue;
        }
        if (out->count == LIMIT_STORY_GROUPS) {
            return osc_fail(context, element, "expected at most %d entities, found more",
                            LIMIT_STORY_GROUPS);
        }
        base.other = (int32_t)other->actor;
        out->items[out->count++] = base;
    }
    return STATUS_OK;
}

static enum status read_by_entity(struct osc_context *context, const struct osc_element *element,
                                  const struct story_condition *base, struct parts *out)
{
    static const char *const rules[] = {"any", "all", NULL};
    const struct osc_element *triggering;
    const struct osc_element *entity_condition;
    struct story_condition condition = *base;
    int rule;
    TRY(osc_required_child(context, element, "TriggeringEntities", &triggering));
    TRY(osc_required_child(context, element, "EntityCondition", &entity_condition));
    TRY(osc_choice(context, triggering, "triggeringEntitiesRule", rules, 0, &rule));
    if (entity_condition->first == NULL) {
        return osc_fail(context, entity_condition, "expected a condition, found none");
    }
    const struct osc_element *reference = osc_child(triggering, "EntityRef");
    bool clearance = osc_is(entity_condition->first, "RelativeClearanceCondition");
    if (clearance && rule == 0 && reference != NULL && osc_next(reference) != NULL) {
        return osc_unsupported(context, entity_condition->first);
    }
    TRY(clearance ? STATUS_OK
                  : read_entity_condition(context, entity_condition->first, &condition));
    out->any = rule == 0 && !clearance;
    for (; reference != NULL; reference = osc_next(reference)) {
        struct osc_entities entities;
        TRY(osc_entities_of(context, reference, &entities));
        if (clearance && rule == 0 && entities.count > 1) {
            return osc_unsupported(context, entity_condition->first);
        }
        for (uint32_t i = 0; i < entities.count; i++) {
            if (clearance) {
                TRY(read_clearance(context, entity_condition->first, entities.items[i], *base,
                                   out));
                continue;
            }
            if (out->count == LIMIT_STORY_GROUPS) {
                return osc_fail(context, triggering, "expected at most %d entities, found more",
                                LIMIT_STORY_GROUPS);
            }
            condition.actor = (int32_t)entities.items[i]->actor;
            out->items[out->count++] = condition;
        }
    }
    return out->count > 0
               ? STATUS_OK
               : osc_fail(context, triggering, "expected at least one <EntityRef>, found none");
}

static enum status read_by_value(struct osc_context *context, const struct osc_element *element,
                                 struct story_condition *condition, struct story_group *group,
                                 bool *added)
{
    const struct osc_element *at = element->first;
    *added = false;
    if (at == NULL) {
        return osc_fail(context, element, "expected a condition, found none");
    }
    if (osc_is(at, "SimulationTimeCondition")) {
        condition->kind = STORY_TIME;
        TRY(read_rule(context, at, condition));
        TRY(osc_number(context, at, "value", true, -1e5, 1e9, &condition->value));
        condition->value = dmath_min(condition->value, NEVER_S);
        return STATUS_OK;
    }
    if (osc_is(at, "StoryboardElementStateCondition")) {
        *added = true;
        return osc_state_condition(context, at, *condition, group);
    }
    if (osc_is(at, "ParameterCondition") || osc_is(at, "VariableCondition")) {
        bool variable = osc_is(at, "VariableCondition");
        TRY(read_rule(context, at, condition));
        return osc_variable_condition(context, at, variable ? OSC_VARIABLE : OSC_PARAMETER,
                                      condition);
    }
    if (osc_is(at, "TrafficSignalCondition")) {
        condition->rule = STORY_EQUAL;
        return osc_variable_condition(context, at, OSC_SIGNAL, condition);
    }
    return osc_unsupported(context, at);
}

static enum status read_condition(struct osc_context *context, const struct osc_element *element,
                                  struct story_group *group, struct parts *alternatives)
{
    static const char *const edges[] = {"none", "rising", "falling", "risingOrFalling", NULL};
    struct story_condition base = {
        .actor = -1, .other = -1, .event = -1, .action = -1, .variable = -1};
    const struct osc_element *by_entity = osc_child(element, "ByEntityCondition");
    const struct osc_element *by_value = osc_child(element, "ByValueCondition");
    struct parts parts = {0};
    int edge;
    bool added = false;
    TRY(osc_choice(context, element, "conditionEdge", edges, 0, &edge));
    TRY(osc_number(context, element, "delay", false, 0, 1e5, &base.delay_s));
    base.edge = (enum story_edge)edge;
    if (by_entity != NULL) {
        TRY(read_by_entity(context, by_entity, &base, &parts));
    } else if (by_value != NULL) {
        TRY(read_by_value(context, by_value, &base, group, &added));
        parts.items[0] = base;
        parts.count = !added;
    } else {
        return osc_unsupported(context, element->first != NULL ? element->first : element);
    }
    if (parts.any && parts.count > 1) {
        if (alternatives->count > 0) {
            return osc_fail(context, element,
                            "expected at most one condition on any of several "
                            "entities in a group, found two");
        }
        *alternatives = parts;
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < parts.count; i++) {
        if (group->count == LIMIT_STORY_GROUPS) {
            return osc_fail(context, element,
                            "expected at most %d conditions in a group, found "
                            "more",
                            LIMIT_STORY_GROUPS);
        }
        TRY(osc_add_condition(context, element, &parts.items[i], &group->conditions[group->count]));
        group->count++;
    }
    return STATUS_OK;
}

/* A copy of a group with one condition more; conditions have memories, so all are copied. */
static enum status add_alternative(struct osc_context *context, const struct osc_element *element,
                                   const struct story_group *group,
                                   const struct story_condition *extra, struct story_trigger *out)
{
    if (out->count == LIMIT_STORY_GROUPS || group->count == LIMIT_STORY_GROUPS) {
        return osc_fail(context, element, "expected at most %d groups of %d conditions, found more",
                        LIMIT_STORY_GROUPS, LIMIT_STORY_GROUPS);
    }
    struct story_group *copy = &out->groups[out->count];
    copy->conditions = osc_alloc(context, LIMIT_STORY_GROUPS, sizeof *copy->conditions);
    if (copy->conditions == NULL) {
        return STATUS_LIMIT;
    }
    for (uint32_t i = 0; i < group->count; i++) {
        struct story_condition condition = context->board.conditions[group->conditions[i]];
        TRY(osc_add_condition(context, element, &condition, &copy->conditions[i]));
    }
    copy->count = group->count;
    TRY(osc_add_condition(context, element, extra, &copy->conditions[copy->count]));
    copy->count++;
    out->count++;
    return STATUS_OK;
}

enum status osc_trigger_read(struct osc_context *context, const struct osc_element *trigger,
                             struct story_trigger *out)
{
    *out = (struct story_trigger){0};
    out->groups = osc_alloc(context, LIMIT_STORY_GROUPS, sizeof *out->groups);
    if (out->groups == NULL) {
        return STATUS_LIMIT;
    }
    const struct osc_element *at = osc_child(trigger, "ConditionGroup");
    for (; at != NULL; at = osc_next(at)) {
        struct story_group group = {
            0, osc_alloc(context, LIMIT_STORY_GROUPS, sizeof *group.conditions)};
        struct parts alternatives = {0};
        if (group.conditions == NULL) {
            return STATUS_LIMIT;
        }
        const struct osc_element *condition = osc_child(at, "Condition");
        for (; condition != NULL; condition = osc_next(condition)) {
            TRY(read_condition(context, condition, &group, &alternatives));
        }
        for (uint32_t i = 0; i < alternatives.count; i++) {
            TRY(add_alternative(context, at, &group, &alternatives.items[i], out));
        }
        if (alternatives.count == 0 && group.count > 0) {
            if (out->count == LIMIT_STORY_GROUPS) {
                return osc_fail(context, at, "expected at most %d groups, found more",
                                LIMIT_STORY_GROUPS);
            }
            out->groups[out->count++] = group;
        }
    }
    return STATUS_OK;
}
