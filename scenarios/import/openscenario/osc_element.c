/*
 * Access to the elements of a document: attributes as numbers and choices, errors with their place,
 * notes.
 */
#include "scenarios/import/openscenario/osc_internal.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { NOTE_BYTES = 256 };

void *osc_alloc(struct osc_context *context, size_t count, size_t size)
{
    void *memory = arena_alloc(context->arena, count > 0 ? count : 1, size);
    if (memory == NULL) {
        error_set(context->error, STATUS_LIMIT,
                  "%s: expected at most %zu bytes in memory, found more", context->path,
                  context->arena->limit_bytes);
    }
    return memory;
}

enum status osc_fail(struct osc_context *context, const struct osc_element *element,
                     const char *format, ...)
{
    va_list args;
    va_start(args, format);
    enum status status = error_setv(context->error, STATUS_BAD_INPUT, format, args);
    va_end(args);
    error_prefix(context->error, "%s: line %u: <%s>", element->file, element->line, element->name);
    return status;
}

enum status osc_unsupported(struct osc_context *context, const struct osc_element *element)
{
    return osc_fail(
        context, element,
        "expected one of the elements that scenarios/import/openscenario.md lists, found one "
        "that is not supported");
}

void osc_note(struct osc_context *context, const struct osc_element *element, const char *text)
{
    for (uint32_t i = 0; i < context->note_count; i++) {
        if (strcmp(context->notes[i].text, text) == 0) {
            context->notes[i].count++;
            return;
        }
    }
    if (context->note_count < OSC_NOTES_MAX) {
        context->notes[context->note_count++] =
            (struct osc_note){element->file, element->line, text, 1};
    } else {
        context->notes_left_out++;
    }
}

enum status osc_note_made(struct osc_context *context, const struct osc_element *element,
                          const char *format, ...)
{
    char text[NOTE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    const char *copy = arena_copy_text(context->arena, text, strlen(text));
    if (copy == NULL) {
        return STATUS_LIMIT;
    }
    osc_note(context, element, copy);
    return STATUS_OK;
}

bool osc_is(const struct osc_element *element, const char *name)
{
    return strcmp(element->name, name) == 0;
}

const struct osc_element *osc_child(const struct osc_element *element, const char *name)
{
    const struct osc_element *child = element->first;
    while (child != NULL && !osc_is(child, name)) {
        child = child->next;
    }
    return child;
}

const struct osc_element *osc_next(const struct osc_element *element)
{
    const struct osc_element *next = element->next;
    while (next != NULL && !osc_is(next, element->name)) {
        next = next->next;
    }
    return next;
}

const char *osc_attribute(const struct osc_element *element, const char *name)
{
    for (uint32_t i = 0; i < element->attribute_count; i++) {
        if (strcmp(element->attributes[2 * i], name) == 0) {
            return element->attributes[2 * i + 1];
        }
    }
    return NULL;
}

enum status osc_required_child(struct osc_context *context, const struct osc_element *element,
                               const char *name, const struct osc_element **out)
{
    *out = osc_child(element, name);
    return *out != NULL ? STATUS_OK
                        : osc_fail(context, element, "expected a <%s>, found none", name);
}

enum status osc_required_text(struct osc_context *context, const struct osc_element *element,
                              const char *name, const char **out)
{
    *out = osc_attribute(element, name);
    return *out != NULL ? STATUS_OK
                        : osc_fail(context, element, "expected an attribute %s, found none", name);
}

enum status osc_number(struct osc_context *context, const struct osc_element *element,
                       const char *name, bool required, double min, double max, double *out)
{
    const char *text = osc_attribute(element, name);
    double value;
    if (text == NULL || text[0] == '\0') {
        return required ? osc_fail(context, element, "expected a number in %s, found none", name)
                        : STATUS_OK;
    }
    if (strcasecmp(text, "INF") == 0 || strcasecmp(text, "+INF") == 0) {
        value = INFINITY;
    } else if (!osc_parse_number(text, &value)) {
        return osc_fail(context, element, "expected a number in %s, found \"%.60s\"", name, text);
    }
    if (!(value >= min && value <= max)) {
        return osc_fail(context, element, "expected a number from %g to %g in %s, found %g", min,
                        max, name, value);
    }
    *out = value;
    return STATUS_OK;
}

enum status osc_bool(struct osc_context *context, const struct osc_element *element,
                     const char *name, bool fallback, bool *out)
{
    const char *text = osc_attribute(element, name);
    *out = fallback;
    if (text == NULL) {
        return STATUS_OK;
    }
    bool yes = strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0;
    bool no = strcasecmp(text, "false") == 0 || strcmp(text, "0") == 0;
    *out = yes;
    return yes || no ? STATUS_OK
                     : osc_fail(context, element, "expected true or false in %s, found \"%.60s\"",
                                name, text);
}

enum status osc_choice(struct osc_context *context, const struct osc_element *element,
                       const char *name, const char *const *names, int fallback, int *out)
{
    const char *text = osc_attribute(element, name);
    if (text == NULL && fallback >= 0) {
        *out = fallback;
        return STATUS_OK;
    }
    char list[256] = "";
    for (int i = 0; names[i] != NULL; i++) {
        if (text != NULL && strcasecmp(text, names[i]) == 0) {
            *out = i;
            return STATUS_OK;
        }
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    return osc_fail(context, element, "expected one of %s in %s, found \"%.60s\"", list, name,
                    text != NULL ? text : "");
}
