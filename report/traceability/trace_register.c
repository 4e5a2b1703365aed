/*
 * Reading a register of hazards, triggering conditions and requirements, strictly.
 */
#include "report/traceability/traceability.h"

#include "schemas/json_read.h"
#include "schemas/scenario_json.h"

#include <stdlib.h>
#include <string.h>

enum { REGISTER_ARENA_BYTES = 16 << 20 };

struct reading {
    struct trace_register *items;
    struct error *error;
};

static int32_t find_item(const struct trace_register *items, enum trace_kind kind, const char *id)
{
    for (uint32_t i = 0; i < items->count[kind]; i++) {
        if (strcmp(items->items[kind][i].id, id) == 0) {
            return (int32_t)i;
        }
    }
    return -1;
}

static enum status read_hazards(struct reading *reading, const struct json_cursor *cursor,
                                struct trace_item *out)
{
    struct json_cursor list = json_cursor_member(cursor, "hazards");
    size_t count = 0;
    if (!json_cursor_present(&list)) {
        return json_fail(cursor, reading->error, "expected \"hazards\", found none");
    }
    TRY(json_array_begin(&list, 1, LIMIT_TRACE_LINKS, &count, reading->error));
    out->hazards = arena_alloc(&reading->items->arena, count, sizeof *out->hazards);
    TRY(memory_check(out->hazards, reading->error, "register: out of memory"));
    for (size_t i = 0; i < count; i++) {
        char id[LIMIT_ID_BYTES];
        struct json_cursor element = json_cursor_element(&list, i);
        TRY(json_value_text(&element, id, sizeof id, reading->error));
        int32_t hazard = find_item(reading->items, TRACE_HAZARD, id);
        if (hazard < 0) {
            return json_fail(&element, reading->error, "expected the id of a hazard, found \"%s\"",
                             id);
        }
        out->hazards[out->hazard_count++] = (uint32_t)hazard;
    }
    return STATUS_OK;
}

static enum status read_reasons(struct reading *reading, const struct json_cursor *cursor,
                                struct trace_item *out)
{
    struct json_cursor list = json_cursor_member(cursor, "reasons");
    size_t count = 0;
    if (!json_cursor_present(&list)) {
        return STATUS_OK;
    }
    TRY(json_array_begin(&list, 1, REASON_BIT_COUNT, &count, reading->error));
    for (size_t i = 0; i < count; i++) {
        int reason;
        struct json_cursor element = json_cursor_element(&list, i);
        TRY(json_value_choice(&element, reason_names, REASON_BIT_COUNT, &reason, reading->error));
        out->reasons |= 1u << reason;
    }
    return STATUS_OK;
}

static enum status read_item(struct reading *reading, const struct json_cursor *cursor,
                             enum trace_kind kind, struct trace_item *out)
{
    static const char *const keys[][6] = {
        [TRACE_HAZARD] = {"id", "text", "source", NULL},
        [TRACE_CONDITION] = {"id", "text", "source", "hazards", NULL},
        [TRACE_REQUIREMENT] = {"id", "text", "source", "hazards", "reasons", NULL}};
    struct error *error = reading->error;
    TRY(json_object_begin(cursor, keys[kind], error));
    TRY(read_reasons(reading, cursor, out));
    struct json_cursor id = json_cursor_member(cursor, "id");
    TRY(scenario_decode_id(&id, out->id, error));
    TRY(json_member_text(cursor, "text", true, out->text, sizeof out->text, error));
    TRY(json_member_text(cursor, "source", false, out->source, sizeof out->source, error));
    if (find_item(reading->items, kind, out->id) >= 0) {
        return json_fail(&id, error, "expected an id of its own, found \"%s\" again", out->id);
    }
    return kind == TRACE_HAZARD ? STATUS_OK : read_hazards(reading, cursor, out);
}

static enum status read_kind(struct reading *reading, const struct json_cursor *top,
                             enum trace_kind kind)
{
    struct trace_register *items = reading->items;
    struct json_cursor list = json_cursor_member(top, trace_kind_names[kind]);
    size_t count = 0;
    if (!json_cursor_present(&list)) {
        return json_fail(top, reading->error, "expected \"%s\", found none",
                         trace_kind_names[kind]);
    }
    TRY(json_array_begin(&list, 1, TRACE_ITEMS_MAX, &count, reading->error));
    items->items[kind] = arena_alloc(&items->arena, count, sizeof *items->items[kind]);
    TRY(memory_check(items->items[kind], reading->error, "register: out of memory"));
    for (size_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(&list, i);
        TRY(read_item(reading, &element, kind, &items->items[kind][i]));
        items->count[kind]++;
    }
    return STATUS_OK;
}

enum status trace_register_load(const char *path, struct trace_register **out, struct error *error)
{
    static const char *const keys[] = {"$schema",      "title", "hazards", "triggering_conditions",
                                       "requirements", NULL};
    json_t *root = NULL;
    TRY(json_read_file(path, LIMIT_DOCUMENT_BYTES, &root, error));
    struct trace_register *items = calloc(1, sizeof *items);
    if (items == NULL) {
        json_decref(root);
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", path);
    }
    arena_init(&items->arena, REGISTER_ARENA_BYTES);
    struct reading reading = {.items = items, .error = error};
    struct json_cursor top = json_cursor_root(path, root);
    enum status status = json_object_begin(&top, keys, error);
    THEN(status, json_member_text(&top, "title", true, items->title, sizeof items->title, error));
    for (int k = 0; k < TRACE_KIND_COUNT; k++) {
        THEN(status, read_kind(&reading, &top, (enum trace_kind)k));
    }
    json_decref(root);
    if (status != STATUS_OK) {
        trace_register_destroy(items);
        return status;
    }
    *out = items;
    return STATUS_OK;
}

void trace_register_destroy(struct trace_register *items)
{
    if (items != NULL) {
        arena_finish(&items->arena);
        free(items);
    }
}
