/*
 * Selections: who a name stands for where it may be that of several entities.
 */
#include "scenarios/import/openscenario/osc_internal.h"

#include <string.h>
#include <strings.h>

static bool is_of_object_type(const struct osc_entity *entity, const char *type)
{
    const struct osc_element *element = entity->element->first;
    return (strcasecmp(type, "vehicle") == 0 && osc_is(element, "Vehicle")) ||
           (strcasecmp(type, "pedestrian") == 0 && osc_is(element, "Pedestrian")) ||
           (strcasecmp(type, "miscellaneous") == 0 && osc_is(element, "MiscObject"));
}

/* Who a member of a selection is: an entity by its name, or all of a type. */
static enum status add_members(struct osc_context *context, const struct osc_element *member,
                               struct osc_entities *out)
{
    const char *type = osc_attribute(member, osc_is(member, "ByType") ? "objectType" : "type");
    struct osc_entity *named = NULL;
    bool by_type = osc_is(member, "ByType") || osc_is(member, "ByObjectType");
    if (!by_type && !osc_is(member, "EntityRef")) {
        return osc_unsupported(context, member);
    }
    TRY(by_type ? STATUS_OK : osc_entity_named(context, member, "entityRef", &named));
    for (uint32_t i = 0; i < context->entity_count; i++) {
        struct osc_entity *entity = &context->entities[i];
        bool there = false; /* twice named, once a member */
        for (uint32_t k = 0; k < out->count; k++) {
            there |= out->items[k] == entity;
        }
        if (!there &&
            (by_type ? type != NULL && is_of_object_type(entity, type) : entity == named)) {
            out->items[out->count++] = entity;
        }
        if (out->count == OSC_ENTITIES_MAX) {
            return osc_fail(context, member, "expected fewer than %d members, found more",
                            OSC_ENTITIES_MAX);
        }
    }
    return STATUS_OK;
}

enum status osc_entities_of(struct osc_context *context, const struct osc_element *reference,
                            struct osc_entities *out)
{
    const char *name;
    const struct osc_element *entities = osc_child(context->root, "Entities");
    const struct osc_element *at = osc_child(entities, "EntitySelection");
    *out = (struct osc_entities){0};
    TRY(osc_required_text(context, reference, "entityRef", &name));
    while (at != NULL &&
           (osc_attribute(at, "name") == NULL || strcmp(osc_attribute(at, "name"), name) != 0)) {
        at = osc_next(at);
    }
    if (at == NULL) {
        out->count = 1;
        return osc_entity_named(context, reference, "entityRef", &out->items[0]);
    }
    const struct osc_element *members;
    TRY(osc_required_child(context, at, "Members", &members));
    for (const struct osc_element *one = members->first; one != NULL; one = one->next) {
        TRY(add_members(context, one, out));
    }
    return out->count > 0 ? STATUS_OK
                          : osc_fail(context, at, "expected a member that is there, found none");
}
