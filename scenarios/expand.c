/*
 * Grid expansion: one suite entry to its concrete scenarios, the last parameter varying fastest.
 */
#include "base/check.h"
#include "scenarios/resolve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One parameter of the grid; `values` borrows from the entry. */
struct axis {
    const char *name;
    const json_t *values;
    size_t count;
    size_t at;
};

struct grid {
    struct axis axes[LIMIT_PARAMETERS];
    uint32_t axis_count;
    uint64_t point_count;
};

static enum status read_axis(const struct json_cursor *axis, const struct json_cursor *scenario,
                             struct grid *grid, struct error *error)
{
    size_t count;
    TRY(json_array_begin(axis, 1, LIMIT_SUITE_SCENARIOS, &count, error));
    for (size_t i = 0; i < count; i++) {
        /* The value's own place, under the parameter's name, which the check looks up. */
        struct json_cursor value = json_cursor_element(axis, i);
        struct json_cursor named = {
            .file = axis->file, .value = value.value, .parent = axis->parent, .key = axis->key};
        TRY(parameters_check_override(scenario, &named, error));
    }
    grid->axes[grid->axis_count++] =
        (struct axis){.name = axis->key, .values = axis->value, .count = count};
    grid->point_count *= count;
    if (grid->point_count > LIMIT_SUITE_JOBS) {
        return json_fail_status(axis, STATUS_LIMIT, error,
                                "expected at most %d combinations, found more", LIMIT_SUITE_JOBS);
    }
    return STATUS_OK;
}

static enum status read_grid(const struct json_cursor *cursor, const struct json_cursor *scenario,
                             struct grid *grid, struct error *error)
{
    const char *name;
    json_t *value;
    *grid = (struct grid){.point_count = 1};
    if (!json_cursor_present(cursor)) {
        return STATUS_OK;
    }
    if (!json_is_object(cursor->value)) {
        return json_fail(cursor, error, "expected an object of parameters with lists of values");
    }
    size_t count = json_object_size(cursor->value);
    if (count == 0) {
        return json_fail(cursor, error, "expected at least one parameter, found none");
    }
    if (count > LIMIT_PARAMETERS) {
        return json_fail_status(cursor, STATUS_LIMIT, error,
                                "expected at most %d parameters, found %zu", LIMIT_PARAMETERS,
                                count);
    }
    json_object_foreach ((json_t *)(uintptr_t)cursor->value, name, value) {
        struct json_cursor axis = json_cursor_member(cursor, name);
        TRY(read_axis(&axis, scenario, grid, error));
    }
    return STATUS_OK;
}

/* Sets every axis to its value at grid point `point`. */
static enum status choose_point(struct grid *grid, uint64_t point, json_t *values,
                                const struct json_cursor *entry, struct error *error)
{
    for (uint32_t i = grid->axis_count; i-- > 0;) {
        struct axis *axis = &grid->axes[i];
        axis->at = (size_t)(point % axis->count);
        point /= axis->count;
        json_t *value = json_array_get(axis->values, axis->at);
        if (json_object_set(values, axis->name, value) != 0) {
            return json_fail_status(entry, STATUS_NO_MEMORY, error, "out of memory");
        }
    }
    return STATUS_OK;
}

static enum status append(const struct json_cursor *cursor, char id[LIMIT_ID_BYTES], size_t *used,
                          const char *separator, const char *text, struct error *error)
{
    size_t bytes = strlen(separator) + strlen(text);
    if (*used + bytes >= LIMIT_ID_BYTES) {
        return json_fail_status(cursor, STATUS_LIMIT, error,
                                "expected an id of at most %d bytes with the grid's values, found "
                                "\"%s%s%s\" and more (a shorter \"id\" with {name} places helps)",
                                LIMIT_ID_BYTES - 1, id, separator, text);
    }
    snprintf(id + *used, LIMIT_ID_BYTES - *used, "%s%s", separator, text);
    *used += bytes;
    return STATUS_OK;
}

/* The concrete scenario's id: template or the document's own, with the grid's values. */
static enum status compose_id(const struct json_cursor *entry, const struct json_cursor *scenario,
                              const struct grid *grid, struct symbol_table *symbols,
                              char id[LIMIT_ID_BYTES], struct error *error)
{
    struct json_cursor given = json_cursor_member(entry, "id");
    struct json_cursor own = json_cursor_member(scenario, "id");
    bool filled = false;
    char value[EXPRESSION_BYTES];
    if (json_cursor_present(&given)) {
        char text[LIMIT_TEXT_BYTES];
        TRY(json_value_text(&given, text, sizeof text, error));
        TRY(parameters_fill_template(&given, text, symbols, id, LIMIT_ID_BYTES, &filled, error));
    } else {
        TRY(json_value_text(&own, id, LIMIT_ID_BYTES, error));
    }
    size_t used = strlen(id);
    for (uint32_t i = 0; i < grid->axis_count && !filled; i++) {
        const char *name = grid->axes[i].name;
        const struct symbol *symbol = symbol_find(symbols, name, strlen(name));
        CHECK(symbol != NULL);
        parameters_format(symbol, value, sizeof value);
        TRY(append(entry, id, &used, i == 0 ? "/" : ",", name, error));
        TRY(append(entry, id, &used, "=", value, error));
    }
    return STATUS_OK;
}

static enum status make_document(const struct json_cursor *entry,
                                 const struct json_cursor *scenario, const struct grid *grid,
                                 const json_t *values, const struct scenario_changes *changes,
                                 struct map_cache *cache, struct scenario_document **out,
                                 struct errors *errors, struct error *error)
{
    struct symbol_table symbols;
    char id[LIMIT_ID_BYTES];
    struct json_cursor overrides = {
        .file = entry->file, .value = values, .parent = entry, .key = "set"};
    if (!json_is_object(scenario->value)) {
        return json_fail(scenario, error, "expected an object, a scenario");
    }
    TRY(parameters_evaluate(scenario, &overrides, &symbols, error));
    TRY(compose_id(entry, scenario, grid, &symbols, id, error));
    return scenario_build(scenario, &symbols, id, changes, cache, out, errors, error);
}

/* Puts the values of the grid point that failed in front, unless the entry itself is at fault. */
static enum status name_point(const struct json_cursor *entry, const struct grid *grid,
                              struct error *error)
{
    char text[LIMIT_TEXT_BYTES] = "";
    size_t used = 0;
    size_t bytes = strlen(entry->file);
    if (error == NULL || grid->axis_count == 0 ||
        (strncmp(error->text, entry->file, bytes) == 0 && error->text[bytes] == ':')) {
        return error != NULL ? error->status : STATUS_BAD_INPUT;
    }
    for (uint32_t i = 0; i < grid->axis_count && used < sizeof text; i++) {
        const struct axis *axis = &grid->axes[i];
        char *value = json_canonical_text(json_array_get(axis->values, axis->at));
        int wrote = snprintf(text + used, sizeof text - used, "%s%s=%s", i > 0 ? "," : "",
                             axis->name, value != NULL ? value : "?");
        used += wrote > 0 ? (size_t)wrote : 0;
        free(value);
    }
    return error_prefix(error, "with %s", text);
}

enum status entry_expand(const struct json_cursor *entry, const struct json_cursor *scenario,
                         const struct scenario_changes *changes, struct map_cache *cache,
                         expand_sink *sink, void *context, struct errors *errors,
                         struct error *error)
{
    struct grid grid;
    struct json_cursor grid_cursor = json_cursor_member(entry, "grid");
    struct json_cursor set = json_cursor_member(entry, "set");
    TRY(parameters_check_ranges(scenario, scenario, error));
    TRY(parameters_check_ranges(scenario, entry, error));
    TRY(read_grid(&grid_cursor, scenario, &grid, error));
    if (json_cursor_present(&set) && !json_is_object(set.value)) {
        return json_fail(&set, error, "expected an object of parameter values");
    }
    for (uint32_t i = 0; i < grid.axis_count; i++) {
        if (json_object_get(set.value, grid.axes[i].name) != NULL) {
            struct json_cursor member = json_cursor_member(&set, grid.axes[i].name);
            return json_fail(&member, error,
                             "expected a parameter that the grid does not vary, found one it does");
        }
    }
    json_t *values = set.value != NULL ? json_copy((json_t *)(uintptr_t)set.value) : json_object();
    enum status status = STATUS_OK;
    if (values == NULL) {
        return json_fail_status(entry, STATUS_NO_MEMORY, error, "out of memory");
    }
    for (uint64_t point = 0; point < grid.point_count && status == STATUS_OK; point++) {
        struct scenario_document *document = NULL;
        status = choose_point(&grid, point, values, entry, error);
        if (status == STATUS_OK) {
            status = make_document(entry, scenario, &grid, values, changes, cache, &document,
                                   errors, error);
            if (status != STATUS_OK) {
                status = name_point(entry, &grid, error);
                for (uint32_t i = 0; i < errors_count(errors); i++) {
                    name_point(entry, &grid, &errors->items[i]);
                }
            }
        }
        THEN(status, sink(context, document, error));
    }
    json_decref(values);
    return status;
}
