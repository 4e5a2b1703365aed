/*
 * Suites whose scenarios offer planners the sensors of a rig. See scenarios.h.
 */
#include "scenarios/resolve.h"
#include "schemas/scenario_json.h"

#include <string.h>

/* The scenario with this rig, a document of its own. */
static enum status with_rig(const struct suite_entry *entry, const json_t *rig,
                            struct scenario_document **out, struct error *error)
{
    const struct scenario_document *was = entry->document;
    json_t *json = scenario_encode(&was->scenario);
    if (json == NULL || json_object_set(json, "rig", (json_t *)(uintptr_t)rig) != 0) {
        json_decref(json);
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", entry->file);
    }
    enum status status = scenario_document_create(entry->file, json, true, out, NULL, error);
    json_decref(json);
    if (status == STATUS_OK && was->parameters != NULL) {
        (*out)->parameters =
            arena_copy_text(&(*out)->arena, was->parameters, strlen(was->parameters));
        status = memory_check((*out)->parameters, error, "%s: out of memory", entry->file);
    }
    return status;
}

enum status suite_set_rig(struct suite *suite, const json_t *rig, struct error *error)
{
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        struct scenario_document *document = NULL;
        enum status status = with_rig(&suite->entries[i], rig, &document, error);
        if (status != STATUS_OK) {
            scenario_destroy(document);
            return status;
        }
        scenario_destroy((struct scenario_document *)(uintptr_t)suite->entries[i].document);
        suite->entries[i].document = document;
    }
    suite_hash(suite);
    return STATUS_OK;
}
