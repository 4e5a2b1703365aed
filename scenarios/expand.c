/*
 * Grid expansion: one suite entry to its concrete scenarios, the last parameter varying fastest. A
 * suite's cross and the caller's settings are further axes; of a parameter that the grid varies too
 * they are in place of its own. An entry's "set" is nearer than a cross, and a setting than either.
 */
#include "base/check.h"
#include "scenarios/resolve.h"
#include "schemas/scenario_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { AXES_MAX = LIMIT_PARAMETERS + CROSS_COUNT };

/* One parameter or condition of the grid; `values` borrows from the entry, or is in `added`. */
struct axis {
    const char *name;
    const json_t *values;
    size_t count;
    size_t at;
    bool added;        /* by a cross or a setting */
    int condition;     /* enum cross_kind; -1: a parameter */
    const char *shown; /* its name in ids */
};

struct grid {
    struct axis axes[AXES_MAX];
    uint32_t axis_count;
    uint64_t point_count;
    json_t *added; /* array of the lists that are nobody else's */
};

static struct axis *find_axis(struct grid *grid, const char *name)
{
    for (uint32_t i = 0; i < grid->axis_count; i++) {
        if (strcmp(grid->axes[i].name, name) == 0) {
            return &grid->axes[i];
        }
    }
    return NULL;
}

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
    grid->axes[grid->axis_count++] = (struct axis){.name = axis->key,
                                                   .values = axis->value,
                                                   .count = count,
                                                   .condition = -1,
                                                   .shown = axis->key};
    grid->point_count *= count;
    if (grid->point_count > LIMIT_SUITE_JOBS) {
        return json_fail_status(axis, STATUS_LIMIT, error,
                                "expected at most %d combinations, found more", LIMIT_SUITE_JOBS);
    }
    return STATUS_OK;
}

static enum status read_grid(const struct json_cursor *cursor, const struct json_cursor *scenario,
                             struct grid *grid, struct errors *errors, struct error *error)
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
        TRY(errors_keep(errors, read_axis(&axis, scenario, grid, error), error));
    }
    return STATUS_OK;
}

/* An axis more, or another list for one; takes `values`, which may be NULL for want of memory. */
static enum status put_axis(struct grid *grid, const struct json_cursor *entry, const char *name,
                            const char *shown, json_t *values, int condition, struct error *error)
{
    if (values == NULL || json_array_append_new(grid->added, values) != 0) {
        return json_fail_status(entry, STATUS_NO_MEMORY, error, "out of memory");
    }
    struct axis *axis = find_axis(grid, name);
    CHECK(axis != NULL || grid->axis_count < AXES_MAX);
    if (axis == NULL) {
        axis = &grid->axes[grid->axis_count++];
        axis->count = 1;
    }
    grid->point_count = grid->point_count / axis->count * json_array_size(values);
    *axis = (struct axis){.name = name,
                          .values = values,
                          .count = json_array_size(values),
                          .added = true,
                          .shown = shown,
                          .condition = condition};
    return grid->point_count <= LIMIT_SUITE_JOBS
               ? STATUS_OK
               : json_fail_status(entry, STATUS_LIMIT, error,
                                  "expected at most %d combinations, found more", LIMIT_SUITE_JOBS);
}

/* Words of the suite's cross in which the scenario makes sense; NULL: no memory. */
static json_t *sensible_words(const json_t *asked, const struct json_cursor *sensible)
{
    json_t *words = json_array();
    size_t i;
    json_t *word;
    json_array_foreach (asked, i, word) {
        bool fits = !json_cursor_present(sensible);
        for (size_t k = 0; k < json_array_size(sensible->value); k++) {
            fits = fits || json_equal(word, json_array_get(sensible->value, k));
        }
        if (fits && json_array_append(words, word) != 0) {
            json_decref(words);
            return NULL;
        }
    }
    return words;
}

static enum status cross_grid(const struct json_cursor *entry, const struct json_cursor *scenario,
                              const struct scenario_changes *changes, struct grid *grid,
                              struct error *error)
{
    /* Short, for both must fit an id beside a grid's values. */
    static const char *const shown[CROSS_COUNT] = {"w", "l"};
    struct json_cursor sensible[CROSS_COUNT] = {{0}};
    const json_t *parameters = json_object_get(scenario->value, "parameters");
    TRY(cross_read(scenario, sensible, error));
    for (int k = 0; changes != NULL && k < CROSS_COUNT; k++) {
        const char *name = cross_names[k];
        const json_t *asked = changes->cross[k].value;
        if (json_array_size(asked) == 0 ||
            json_object_get(json_object_get(entry->value, "set"), name) != NULL) {
            continue;
        }
        json_t *words = sensible_words(asked, &sensible[k]);
        if (words != NULL && json_array_size(words) == 0) {
            json_decref(words);
            continue;
        }
        bool parameter = json_object_get(parameters, name) != NULL;
        TRY(put_axis(grid, entry, name, shown[k], words, parameter ? -1 : k, error));
    }
    return STATUS_OK;
}

/* Settings win over whatever the entry says of the parameter. */
static enum status apply_settings(const struct json_cursor *entry,
                                  const struct json_cursor *scenario, const json_t *settings,
                                  struct grid *grid, struct error *error)
{
    const char *name;
    json_t *value;
    const json_t *parameters = json_object_get(scenario->value, "parameters");
    json_object_foreach ((json_t *)(uintptr_t)settings, name, value) {
        if (json_object_get(parameters, name) != NULL) {
            json_t *values = json_array();
            if (values != NULL && json_array_append(values, value) != 0) {
                json_decref(values);
                values = NULL;
            }
            TRY(put_axis(grid, entry, name, name, values, -1, error));
        }
    }
    return STATUS_OK;
}

/* Sets every axis to its value at grid point `point`. */
static enum status choose_point(struct grid *grid, uint64_t point, json_t *values,
                                struct scenario_changes *changes, const struct json_cursor *entry,
                                struct error *error)
{
    for (uint32_t i = grid->axis_count; i-- > 0;) {
        struct axis *axis = &grid->axes[i];
        axis->at = (size_t)(point % axis->count);
        point /= axis->count;
        json_t *value = json_array_get(axis->values, axis->at);
        if (axis->condition >= 0) {
            changes->conditions[axis->condition] = value;
        } else if (json_object_set(values, axis->name, value) != 0) {
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

/* Whether an id's template has a place for the parameter. */
static bool has_place(const char *text, const char *name)
{
    size_t bytes = strlen(name);
    for (const char *at = strchr(text, '{'); at != NULL; at = strchr(at + 1, '{')) {
        if (strncmp(at + 1, name, bytes) == 0 && at[1 + bytes] == '}') {
            return true;
        }
    }
    return false;
}

/* An id that the entry makes, judged where the entry has it. */
static enum status check_id(const struct json_cursor *given, const char *id, struct error *error)
{
    char unused[LIMIT_ID_BYTES];
    json_t *text = json_string(id);
    TRY(memory_check(text, error, "%s: out of memory", given->file));
    struct json_cursor made = *given;
    made.value = text;
    enum status status = scenario_decode_id(&made, unused, error);
    json_decref(text);
    return status;
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
    char text[LIMIT_TEXT_BYTES] = "";
    if (json_cursor_present(&given)) {
        TRY(json_value_text(&given, text, sizeof text, error));
        TRY(parameters_fill_template(&given, text, symbols, id, LIMIT_ID_BYTES, &filled, error));
        TRY(check_id(&given, id, error));
    } else {
        TRY(json_value_text(&own, id, LIMIT_ID_BYTES, error));
    }
    size_t used = strlen(id);
    bool suffixed = strchr(id, '/') != NULL && filled;
    for (uint32_t i = 0; i < grid->axis_count; i++) {
        const struct axis *axis = &grid->axes[i];
        const char *name = axis->name;
        if (filled && (!axis->added || has_place(text, name))) {
            continue;
        }
        if (axis->condition >= 0) {
            const json_t *word = json_array_get(axis->values, axis->at);
            snprintf(value, sizeof value, "%s", json_string_value(word));
        } else {
            const struct symbol *symbol = symbol_find(symbols, name, strlen(name));
            CHECK(symbol != NULL);
            parameters_format(symbol, value, sizeof value);
        }
        TRY(append(entry, id, &used, suffixed ? "," : "/", axis->shown, error));
        suffixed = true;
        TRY(append(entry, id, &used, "=", value, error));
    }
    return STATUS_OK;
}

static enum status make_document(const struct json_cursor *entry,
                                 const struct json_cursor *scenario, const struct grid *grid,
                                 const json_t *values, const struct scenario_changes *changes,
                                 struct part_cache *cache, struct scenario_document **out,
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
        char *value = json_compact_text(json_array_get(axis->values, axis->at));
        int wrote = snprintf(text + used, sizeof text - used, "%s%s=%s", i > 0 ? "," : "",
                             axis->name, value != NULL ? value : "?");
        used += wrote > 0 ? (size_t)wrote : 0;
        free(value);
    }
    return error_prefix(error, "with %s", text);
}

/* The whole grid of an entry; `grid->added` is the caller's to release, on failure too. */
static enum status make_grid(const struct json_cursor *entry, const struct json_cursor *scenario,
                             const struct scenario_changes *changes, struct grid *grid,
                             struct errors *errors, struct error *error)
{
    struct json_cursor cursor = json_cursor_member(entry, "grid");
    struct json_cursor set = json_cursor_member(entry, "set");
    TRY(read_grid(&cursor, scenario, grid, errors, error));
    if (json_cursor_present(&set) && !json_is_object(set.value)) {
        return json_fail(&set, error, "expected an object of parameter values");
    }
    for (uint32_t i = 0; i < grid->axis_count; i++) {
        if (json_object_get(set.value, grid->axes[i].name) != NULL) {
            struct json_cursor member = json_cursor_member(&set, grid->axes[i].name);
            return json_fail(&member, error,
                             "expected a parameter that the grid does not vary, found one it does");
        }
    }
    grid->added = json_array();
    if (grid->added == NULL) {
        return json_fail_status(entry, STATUS_NO_MEMORY, error, "out of memory");
    }
    TRY(cross_grid(entry, scenario, changes, grid, error));
    return changes != NULL ? apply_settings(entry, scenario, changes->set, grid, error) : STATUS_OK;
}

/* Every point of the grid to the sink. */
static enum status expand_points(const struct json_cursor *entry,
                                 const struct json_cursor *scenario,
                                 const struct scenario_changes *asked, struct grid *grid,
                                 struct part_cache *cache, expand_sink *sink, void *context,
                                 struct errors *errors, struct error *error)
{
    const json_t *set = json_object_get(entry->value, "set");
    json_t *values = set != NULL ? json_copy((json_t *)(uintptr_t)set) : json_object();
    struct scenario_changes changes = asked != NULL ? *asked : SCENARIO_UNCHANGED;
    enum status status = STATUS_OK;
    if (values == NULL) {
        return json_fail_status(entry, STATUS_NO_MEMORY, error, "out of memory");
    }
    for (uint64_t point = 0; point < grid->point_count && status == STATUS_OK; point++) {
        struct scenario_document *document = NULL;
        status = choose_point(grid, point, values, &changes, entry, error);
        if (status == STATUS_OK) {
            status = make_document(entry, scenario, grid, values, &changes, cache, &document,
                                   errors, error);
            if (status != STATUS_OK) {
                status = name_point(entry, grid, error);
                for (uint32_t i = 0; i < errors_count(errors); i++) {
                    name_point(entry, grid, &errors->items[i]);
                }
            }
        }
        THEN(status, sink(context, document, error));
    }
    json_decref(values);
    return status;
}

enum status entry_expand(const struct json_cursor *entry, const struct json_cursor *scenario,
                         const struct scenario_changes *changes, struct part_cache *cache,
                         expand_sink *sink, void *context, struct errors *errors,
                         struct error *error)
{
    struct grid grid = {.added = NULL};
    uint32_t before = errors_count(errors);
    TRY(errors_keep(errors, parameters_check_ranges(scenario, scenario, errors, error), error));
    TRY(errors_keep(errors, parameters_check_ranges(scenario, entry, errors, error), error));
    enum status status = make_grid(entry, scenario, changes, &grid, errors, error);
    THEN(status, errors_end(errors, before, error));
    THEN(status,
         expand_points(entry, scenario, changes, &grid, cache, sink, context, errors, error));
    json_decref(grid.added);
    return status;
}
