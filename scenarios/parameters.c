/*
 * Parameters: their values, and putting values where a document asks for them. See resolve.h.
 *
 * Defaults may use one another in any order; they are evaluated in passes until nothing is left to
 * do, and what is left then is a cycle.
 */
#include "scenarios/resolve.h"

#include "base/check.h"
#include "base/text.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SUBSTITUTIONS_MAX = 1 << 17 };

/* The value cursor of parameter i: its override, or its default. */
static struct json_cursor value_cursor(const struct json_cursor *defaults,
                                       const struct json_cursor *overrides, const char *name)
{
    if (overrides != NULL && json_object_get(overrides->value, name) != NULL) {
        return json_cursor_member(overrides, name);
    }
    return json_cursor_member(defaults, name);
}

static enum status check_value(const struct json_cursor *value, struct error *error)
{
    if (json_is_string(value->value)) {
        char text[EXPRESSION_BYTES];
        return json_value_text(value, text, sizeof text, error);
    }
    if (!json_is_number(value->value)) {
        return json_fail(value, error, "expected a number or text as a parameter's value");
    }
    double number;
    return json_value_number(value, -1e12, 1e12, &number, error);
}

/* Member of the object that the name may be a slip of, or NULL. */
static const char *nearest_member(const json_t *object, const char *name)
{
    const char *names[LIMIT_PARAMETERS + 1];
    size_t count = 0;
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)object, key, value) {
        if (count < LIMIT_PARAMETERS) {
            names[count++] = key;
        }
    }
    names[count] = NULL;
    return text_nearest(name, names);
}

enum status parameters_check_override(const struct json_cursor *scenario,
                                      const struct json_cursor *value, struct error *error)
{
    const json_t *defaults = json_object_get(scenario->value, "parameters");
    if (json_object_get(defaults, value->key) == NULL) {
        const char *nearest = nearest_member(defaults, value->key);
        return json_fail(value, error,
                         "expected the name of a parameter of %s, found \"%.64s\", which it has "
                         "not%s%s%s",
                         scenario->file, value->key, nearest != NULL ? "; did you mean \"" : "",
                         nearest != NULL ? nearest : "", nearest != NULL ? "\"?" : "");
    }
    return check_value(value, error);
}

static enum status check_range(const struct json_cursor *scenario, const struct json_cursor *range,
                               struct error *error)
{
    size_t count;
    TRY(json_array_begin(range, 1, LIMIT_SUITE_SCENARIOS, &count, error));
    bool words = json_is_string(json_array_get(range->value, 0));
    for (size_t i = 0; i < count; i++) {
        struct json_cursor value = json_cursor_element(range, i);
        struct json_cursor named = {
            .file = range->file, .value = value.value, .parent = range->parent, .key = range->key};
        TRY(parameters_check_override(scenario, &named, error));
        const char *text = json_string_value(value.value);
        if (words != (text != NULL) || (text != NULL && text[0] == '=')) {
            return json_fail(&value, error, "expected two numbers or a list of words");
        }
    }
    if (!words && (count != 2 || json_number_value(json_array_get(range->value, 0)) >=
                                     json_number_value(json_array_get(range->value, 1)))) {
        return json_fail(range, error,
                         "expected the lowest and the highest number of a range, found %zu", count);
    }
    return STATUS_OK;
}

enum status parameters_check_ranges(const struct json_cursor *scenario,
                                    const struct json_cursor *holder, struct errors *errors,
                                    struct error *error)
{
    uint32_t before = errors_count(errors);
    const char *name;
    json_t *value;
    struct json_cursor ranges = json_cursor_member(holder, "ranges");
    if (!json_cursor_present(&ranges)) {
        return STATUS_OK;
    }
    if (!json_is_object(ranges.value) || json_object_size(ranges.value) == 0) {
        return json_fail(&ranges, error, "expected an object of parameters with their ranges");
    }
    json_object_foreach ((json_t *)(uintptr_t)ranges.value, name, value) {
        struct json_cursor range = json_cursor_member(&ranges, name);
        TRY(errors_keep(errors, check_range(scenario, &range, error), error));
        if (json_object_get(json_object_get(holder->value, "set"), name) != NULL) {
            json_fail(&range, error,
                      "expected a parameter that the entry does not set, found one "
                      "it does");
            TRY(errors_keep(errors, STATUS_BAD_INPUT, error));
        }
    }
    return errors_end(errors, before, error);
}

/* One attempt at one parameter; *progress when it got its value. */
static enum status evaluate_one(const struct json_cursor *value, struct symbol_table *table,
                                struct symbol *symbol, bool *progress, struct error *error)
{
    char message[EXPRESSION_MESSAGE_BYTES];
    struct expression_value result;
    const char *text = json_string_value(value->value);
    if (text == NULL) {
        symbol->number = json_number_value(value->value);
        symbol->state = SYMBOL_NUMBER;
    } else if (text[0] != '=') {
        symbol->word = text;
        symbol->state = SYMBOL_WORD;
    } else {
        switch (expression_evaluate(text + 1, table, &result, message)) {
        case EXPRESSION_PENDING:
            return STATUS_OK;
        case EXPRESSION_WRONG:
            return json_fail(value, error, "%s", message);
        case EXPRESSION_OK:
            symbol->state = result.is_word ? SYMBOL_WORD : SYMBOL_NUMBER;
            symbol->word = result.is_word ? result.word : NULL;
            symbol->number = result.is_word ? 0.0 : result.number;
            break;
        }
    }
    *progress = true;
    return STATUS_OK;
}

static enum status list_symbols(const struct json_cursor *defaults, struct symbol_table *table,
                                struct error *error)
{
    const char *name;
    json_t *value;
    if (!json_is_object(defaults->value)) {
        return json_fail(defaults, error, "expected an object of parameters");
    }
    if (json_object_size(defaults->value) > LIMIT_PARAMETERS) {
        return json_fail_status(defaults, STATUS_LIMIT, error,
                                "expected at most %d parameters, found %zu", LIMIT_PARAMETERS,
                                json_object_size(defaults->value));
    }
    json_object_foreach ((json_t *)(uintptr_t)defaults->value, name, value) {
        struct json_cursor member = json_cursor_member(defaults, name);
        if (!symbol_name_valid(name)) {
            return json_fail(&member, error,
                             "expected a name of letters, digits and _ that does not begin with a "
                             "digit");
        }
        TRY(check_value(&member, error));
        table->items[table->count++] = (struct symbol){.name = name};
    }
    return STATUS_OK;
}

static enum status check_overrides(const struct json_cursor *scenario,
                                   const struct json_cursor *overrides, struct error *error)
{
    const char *name;
    json_t *value;
    if (!json_is_object(overrides->value)) {
        return json_fail(overrides, error, "expected an object of parameter values");
    }
    json_object_foreach ((json_t *)(uintptr_t)overrides->value, name, value) {
        struct json_cursor member = json_cursor_member(overrides, name);
        TRY(parameters_check_override(scenario, &member, error));
    }
    return STATUS_OK;
}

enum status parameters_evaluate(const struct json_cursor *scenario,
                                const struct json_cursor *overrides, struct symbol_table *out,
                                struct error *error)
{
    struct symbol_table table = {0};
    struct json_cursor defaults = json_cursor_member(scenario, "parameters");
    /* Or the first expression would be said to be wrong, which is right. */
    TRY(json_refuse_slip(scenario, "parameters", error));
    if (overrides != NULL) {
        TRY(check_overrides(scenario, overrides, error));
    }
    if (json_cursor_present(&defaults)) {
        TRY(list_symbols(&defaults, &table, error));
    }
    bool progress = true;
    uint32_t pending = table.count;
    while (pending > 0 && progress) {
        progress = false;
        pending = 0;
        for (uint32_t i = 0; i < table.count; i++) {
            struct symbol *symbol = &table.items[i];
            struct json_cursor value = value_cursor(&defaults, overrides, symbol->name);
            if (symbol->state == SYMBOL_PENDING) {
                TRY(evaluate_one(&value, &table, symbol, &progress, error));
                pending += symbol->state == SYMBOL_PENDING;
            }
        }
    }
    for (uint32_t i = 0; i < table.count && pending > 0; i++) {
        if (table.items[i].state == SYMBOL_PENDING) {
            struct json_cursor value = value_cursor(&defaults, overrides, table.items[i].name);
            return json_fail(&value, error,
                             "expected parameters that do not need one another, found a cyclic "
                             "reference through \"%s\"",
                             table.items[i].name);
        }
    }
    *out = table;
    return STATUS_OK;
}

enum status parameters_check_used(const struct json_cursor *scenario,
                                  const struct symbol_table *table, struct error *error)
{
    for (uint32_t i = 0; i < table->count; i++) {
        if (!table->items[i].used) {
            struct json_cursor defaults = json_cursor_member(scenario, "parameters");
            struct json_cursor member = json_cursor_member(&defaults, table->items[i].name);
            return json_fail(&member, error,
                             "expected a parameter that the document uses, found one that nothing "
                             "refers to");
        }
    }
    return STATUS_OK;
}

void parameters_format(const struct symbol *symbol, char *out, size_t capacity)
{
    if (symbol->state == SYMBOL_WORD) {
        snprintf(out, capacity, "%s", symbol->word);
    } else {
        /* + 0.0 turns a negative zero into zero. */
        snprintf(out, capacity, "%.6g", symbol->number + 0.0);
    }
}

enum status parameters_fill_template(const struct json_cursor *cursor, const char *text,
                                     struct symbol_table *table, char *out, size_t capacity,
                                     bool *replaced, struct error *error)
{
    size_t used = 0;
    bool any = false;
    for (const char *at = text; *at != '\0';) {
        char value[EXPRESSION_BYTES] = {*at, '\0'};
        const char *close = *at == '{' ? strchr(at, '}') : NULL;
        if (close != NULL) {
            struct symbol *symbol = symbol_find(table, at + 1, (size_t)(close - at - 1));
            if (symbol == NULL) {
                return json_fail(cursor, error,
                                 "expected the name of a parameter in braces, found \"%.*s\"",
                                 (int)(close - at + 1 < 64 ? close - at + 1 : 64), at);
            }
            symbol->used = true;
            any = true;
            parameters_format(symbol, value, sizeof value);
        }
        size_t bytes = strlen(value);
        if (used + bytes >= capacity) {
            return json_fail_status(cursor, STATUS_LIMIT, error,
                                    "expected at most %zu bytes of text with the parameters filled "
                                    "in, found more",
                                    capacity - 1);
        }
        memcpy(out + used, value, bytes);
        used += bytes;
        at = close != NULL ? close + 1 : at + 1;
    }
    out[used] = '\0';
    if (replaced != NULL) {
        *replaced = any;
    }
    return STATUS_OK;
}

/* ---- substitution ---- */

/* One open container of the walk; its cursor's parent is the frame below. */
struct walk_frame {
    struct json_cursor cursor;
    void *iterator; /* of an object */
    size_t index;   /* of an array */
};

/* A new value for a text that starts with "=", or NULL with *error set. Integral numbers become
 * JSON integers, so that they serve where an integer is expected. */
static json_t *value_of(const struct json_cursor *cursor, struct symbol_table *table,
                        struct error *error)
{
    char message[EXPRESSION_MESSAGE_BYTES];
    struct expression_value value = {0};
    enum expression_outcome outcome =
        expression_evaluate(json_string_value(cursor->value) + 1, table, &value, message);
    CHECK(outcome != EXPRESSION_PENDING);
    if (outcome == EXPRESSION_WRONG) {
        json_fail(cursor, error, "%s", message);
        return NULL;
    }
    json_t *made;
    if (value.is_word) {
        made = json_string(value.word);
    } else if (value.number == floor(value.number) && fabs(value.number) < 1e15) {
        made = json_integer((json_int_t)value.number);
    } else {
        made = json_real(value.number);
    }
    if (made == NULL) {
        json_fail_status(cursor, STATUS_NO_MEMORY, error, "out of memory");
    }
    return made;
}

static bool is_free_text(const struct json_cursor *cursor)
{
    return cursor->key != NULL && cursor->parent != NULL && cursor->parent->parent == NULL &&
           (strcmp(cursor->key, "title") == 0 || strcmp(cursor->key, "source") == 0 ||
            strcmp(cursor->key, "prompt") == 0);
}

static enum status substitute_text(struct walk_frame *frame, const struct json_cursor *child,
                                   bool texts, struct symbol_table *table, struct error *error)
{
    json_t *made;
    if (texts && is_free_text(child)) {
        char text[LIMIT_PROMPT_BYTES];
        TRY(parameters_fill_template(child, json_string_value(child->value), table, text,
                                     sizeof text, NULL, error));
        made = json_string(text);
        if (made == NULL) {
            /* The template was cut from valid UTF-8 and names are ASCII: only memory is left. */
            return json_fail_status(child, STATUS_NO_MEMORY, error, "out of memory");
        }
    } else if (json_string_value(child->value)[0] == '=') {
        made = value_of(child, table, error);
        if (made == NULL) {
            return error != NULL ? error->status : STATUS_BAD_INPUT;
        }
    } else {
        return STATUS_OK;
    }
    if (frame->iterator != NULL) {
        json_object_iter_set_new((json_t *)(uintptr_t)frame->cursor.value, frame->iterator, made);
    } else {
        json_array_set_new((json_t *)(uintptr_t)frame->cursor.value, child->index, made);
    }
    return STATUS_OK;
}

/* The next child of the frame; false when there is none. */
static bool next_child(struct walk_frame *frame, struct json_cursor *child)
{
    json_t *value = (json_t *)(uintptr_t)frame->cursor.value;
    if (json_is_object(value)) {
        frame->iterator = frame->iterator == NULL ? json_object_iter(value)
                                                  : json_object_iter_next(value, frame->iterator);
        if (frame->iterator == NULL) {
            return false;
        }
        *child = json_cursor_member(&frame->cursor, json_object_iter_key(frame->iterator));
        return true;
    }
    if (frame->index >= json_array_size(value)) {
        return false;
    }
    *child = json_cursor_element(&frame->cursor, frame->index++);
    return true;
}

enum status parameters_substitute(const char *file, json_t *root, bool texts,
                                  struct symbol_table *table, struct errors *errors,
                                  struct error *error)
{
    struct walk_frame frames[LIMIT_JSON_DEPTH + 1];
    uint32_t substitutions = 0;
    int depth = 0;
    uint32_t before = errors_count(errors);
    struct error local = {0};
    struct error *target = error != NULL ? error : &local;
    frames[0] = (struct walk_frame){.cursor = json_cursor_root(file, root)};
    while (depth >= 0) {
        struct walk_frame *frame = &frames[depth];
        struct json_cursor child;
        if (!next_child(frame, &child)) {
            depth--;
        } else if (json_is_string(child.value)) {
            substitutions += json_string_value(child.value)[0] == '=';
            if (substitutions > SUBSTITUTIONS_MAX) {
                return json_fail_status(&child, STATUS_LIMIT, target,
                                        "expected at most %d expressions in one document, found "
                                        "more",
                                        SUBSTITUTIONS_MAX);
            }
            TRY(errors_keep(errors, substitute_text(frame, &child, texts, table, target), target));
        } else if (json_is_object(child.value) || json_is_array(child.value)) {
            CHECK(depth < LIMIT_JSON_DEPTH);
            frames[++depth] = (struct walk_frame){.cursor = child};
        }
    }
    return errors_end(errors, before, target);
}
