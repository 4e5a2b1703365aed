/*
 * XML by expat, the only file that includes it. The text is parsed where it lies; handlers build
 * the tree and stop the parser at the first thing that is refused.
 */
#include "scenarios/import/commonroad_xml.h"

#include <expat.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 64 << 10 };

struct builder {
    XML_Parser parser;
    const char *file;
    const char *const *names;
    size_t name_count;
    struct arena *arena;
    struct error *error;
    enum status status;
    struct xml_document document;
    struct xml_element *at; /* innermost open element that is kept */
    uint32_t depth;
    uint32_t skipped; /* open elements that are not kept, all of them innermost */
    uint32_t element_count;
    uint32_t blank_lines; /* before the text that the parser is given */
    size_t text_bytes;
    char text[XML_TEXT_BYTES_MAX + 1]; /* of the innermost open element, since its last child */
};

static uint32_t current_line(const struct builder *builder)
{
    XML_Size line = XML_GetCurrentLineNumber(builder->parser);
    line += builder->blank_lines;
    return line > UINT32_MAX ? UINT32_MAX : (uint32_t)line;
}

static void __attribute__((format(printf, 3, 4)))
refuse(struct builder *builder, enum status status, const char *format, ...)
{
    if (builder->status != STATUS_OK) {
        return;
    }
    struct error local = {0};
    struct error *error = builder->error != NULL ? builder->error : &local;
    va_list args;
    va_start(args, format);
    builder->status = error_setv(error, status, format, args);
    va_end(args);
    error_prefix(error, "%s: line %u", builder->file, current_line(builder));
    XML_StopParser(builder->parser, XML_FALSE);
}

static void refuse_memory(struct builder *builder)
{
    refuse(builder, STATUS_LIMIT, "expected a file of at most %zu bytes in memory, found more",
           builder->arena->limit_bytes);
}

static int compare_name(const void *key, const void *entry)
{
    return strcmp(key, *(const char *const *)entry);
}

static int find_tag(const struct builder *builder, const char *name)
{
    const char *const *found = builder->names == NULL
                                   ? NULL
                                   : bsearch(name, builder->names, builder->name_count,
                                             sizeof *builder->names, compare_name);
    return found != NULL ? (int)(found - builder->names) : XML_TAG_NONE;
}

static const char *copy_attribute(struct builder *builder, const char *value)
{
    size_t bytes = strlen(value);
    if (bytes > XML_TEXT_BYTES_MAX) {
        refuse(builder, STATUS_LIMIT, "expected an attribute of at most %d bytes, found %zu",
               XML_TEXT_BYTES_MAX, bytes);
        return NULL;
    }
    char *copy = arena_copy_text(builder->arena, value, bytes);
    if (copy == NULL) {
        refuse_memory(builder);
    }
    return copy;
}

static bool copy_attributes(struct builder *builder, struct xml_element *element,
                            const char **attributes)
{
    uint32_t count = 0;
    while (attributes[2 * count] != NULL) {
        count++;
    }
    if (count > XML_ATTRIBUTES_MAX) {
        refuse(builder, STATUS_LIMIT, "expected at most %d attributes, found %u",
               XML_ATTRIBUTES_MAX, count);
        return false;
    }
    if (count == 0) {
        return true;
    }
    element->attributes = arena_alloc(builder->arena, 2 * count, sizeof *element->attributes);
    if (element->attributes == NULL) {
        refuse_memory(builder);
        return false;
    }
    for (uint32_t i = 0; i < 2 * count; i++) {
        element->attributes[i] = copy_attribute(builder, attributes[i]);
        if (element->attributes[i] == NULL) {
            return false;
        }
    }
    element->attribute_count = count;
    return true;
}

static void on_start(void *context, const char *full_name, const char **attributes)
{
    struct builder *builder = context;
    const char *colon = strrchr(full_name, ':');
    const char *name = colon != NULL ? colon + 1 : full_name;
    builder->text_bytes = 0;
    if (++builder->depth > XML_DEPTH_MAX) {
        refuse(builder, STATUS_LIMIT, "expected at most %d nested elements, found more",
               XML_DEPTH_MAX);
        return;
    }
    if (++builder->element_count > XML_ELEMENTS_MAX) {
        refuse(builder, STATUS_LIMIT, "expected at most %d elements, found more", XML_ELEMENTS_MAX);
        return;
    }
    int tag = find_tag(builder, name);
    bool unknown = tag == XML_TAG_NONE && builder->names != NULL;
    if (builder->skipped > 0 || (unknown && builder->at != NULL)) {
        builder->skipped++;
        return;
    }
    struct xml_element *element = arena_alloc(builder->arena, 1, sizeof *element);
    if (element == NULL) {
        refuse_memory(builder);
        return;
    }
    *element = (struct xml_element){
        .tag = tag, .line = current_line(builder), .text = "", .parent = builder->at};
    if (builder->names == NULL) {
        element->name = copy_attribute(builder, name);
    }
    if (!copy_attributes(builder, element, attributes)) {
        return;
    }
    if (builder->at == NULL) {
        builder->document.root = element;
        builder->document.root_name = copy_attribute(builder, name);
    } else if (builder->at->last == NULL) {
        builder->at->first = element;
        builder->at->last = element;
    } else {
        builder->at->last->next = element;
        builder->at->last = element;
    }
    builder->at = element;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static void on_end(void *context, const char *name)
{
    struct builder *builder = context;
    (void)name;
    builder->depth--;
    if (builder->skipped > 0) {
        builder->skipped--;
        builder->text_bytes = 0;
        return;
    }
    if (builder->at == NULL) {
        return; /* an element that was refused */
    }
    while (builder->text_bytes > 0 && is_space(builder->text[builder->text_bytes - 1])) {
        builder->text_bytes--;
    }
    if (builder->at->first == NULL && builder->text_bytes > 0) {
        const char *text = arena_copy_text(builder->arena, builder->text, builder->text_bytes);
        if (text == NULL) {
            refuse_memory(builder);
            return;
        }
        builder->at->text = text;
    }
    builder->text_bytes = 0;
    builder->at = builder->at->parent;
}

static void on_text(void *context, const char *text, int bytes)
{
    struct builder *builder = context;
    if (builder->skipped > 0) {
        return;
    }
    for (int i = 0; i < bytes; i++) {
        if (builder->text_bytes == 0 && is_space(text[i])) {
            continue;
        }
        if (builder->text_bytes == XML_TEXT_BYTES_MAX) {
            if (is_space(text[i])) {
                continue;
            }
            refuse(builder, STATUS_LIMIT,
                   "expected an element's text of at most %d bytes, found "
                   "more",
                   XML_TEXT_BYTES_MAX);
            return;
        }
        builder->text[builder->text_bytes++] = text[i];
    }
}

static void on_doctype(void *context, const char *name, const char *system_id,
                       const char *public_id, int has_internal_subset)
{
    if (system_id != NULL || public_id != NULL || has_internal_subset) {
        refuse(
            context, STATUS_BAD_INPUT,
            "expected a document type declaration of a name alone (entities are not read), found "
            "<!DOCTYPE %.64s",
            name);
    }
}

/* Never reached while declarations of anything are refused; a second lock on the same door. */
static int on_external_entity(XML_Parser parser, const char *names, const char *base,
                              const char *system_id, const char *public_id)
{
    (void)parser;
    (void)names;
    (void)base;
    (void)system_id;
    (void)public_id;
    return XML_STATUS_ERROR;
}

/* The text in pieces, so that a tag is measured before it is complete: expat collects all of its
 * attributes before a handler could count them. */
static enum XML_Status parse_pieces(struct builder *builder, const char *text, size_t bytes)
{
    enum XML_Status parsed = XML_STATUS_OK;
    for (size_t at = 0, piece; parsed == XML_STATUS_OK && at < bytes; at += piece) {
        piece = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;
        parsed = XML_Parse(builder->parser, text + at, (int)piece, 0);
        XML_Index begun = XML_GetCurrentByteIndex(builder->parser);
        size_t done = begun > 0 ? (size_t)begun : 0;
        if (parsed == XML_STATUS_OK && at + piece - done > XML_TAG_BYTES_MAX) {
            refuse(builder, STATUS_LIMIT,
                   "expected a tag or comment of at most %d bytes, found more", XML_TAG_BYTES_MAX);
            parsed = XML_STATUS_ERROR;
        }
    }
    return parsed == XML_STATUS_OK ? XML_Parse(builder->parser, text, 0, 1) : parsed;
}

enum status xml_parse(const char *file, const char *text, size_t bytes, const char *const *names,
                      size_t name_count, struct arena *arena, struct xml_document *out,
                      struct error *error)
{
    XML_Parser parser = XML_ParserCreate(NULL);
    struct builder *builder = calloc(1, sizeof *builder);
    enum status status = STATUS_OK;
    if (parser == NULL || builder == NULL) {
        status = error_set(error, STATUS_NO_MEMORY, "%s: out of memory", file);
        goto done;
    }
    builder->parser = parser;
    builder->file = file;
    builder->names = names;
    builder->name_count = name_count;
    builder->arena = arena;
    builder->error = error;
    /* Many tools write an empty line before the XML declaration, where expat wants none. */
    for (; bytes > 0 && is_space(text[0]); text++, bytes--) {
        builder->blank_lines += text[0] == '\n';
    }
    XML_SetUserData(parser, builder);
    XML_SetElementHandler(parser, on_start, on_end);
    XML_SetCharacterDataHandler(parser, on_text);
    XML_SetStartDoctypeDeclHandler(parser, on_doctype);
    XML_SetExternalEntityRefHandler(parser, on_external_entity);
    enum XML_Status parsed = parse_pieces(builder, text, bytes);
    status = builder->status;
    if (status == STATUS_OK && parsed != XML_STATUS_OK) {
        enum XML_Error code = XML_GetErrorCode(parser);
        status = error_set(error, code == XML_ERROR_NO_MEMORY ? STATUS_NO_MEMORY : STATUS_BAD_INPUT,
                           "%s: line %u: expected well-formed XML, found: %s", file,
                           current_line(builder), XML_ErrorString(code));
    }
    if (status == STATUS_OK) {
        *out = builder->document;
    }
done:
    free(builder);
    if (parser != NULL) {
        XML_ParserFree(parser);
    }
    return status;
}

const struct xml_element *xml_child(const struct xml_element *element, int tag)
{
    const struct xml_element *child = element->first;
    while (child != NULL && child->tag != tag) {
        child = child->next;
    }
    return child;
}

const struct xml_element *xml_next(const struct xml_element *element)
{
    const struct xml_element *next = element->next;
    while (next != NULL && next->tag != element->tag) {
        next = next->next;
    }
    return next;
}

uint32_t xml_count(const struct xml_element *element, int tag)
{
    uint32_t count = 0;
    for (const struct xml_element *child = element->first; child != NULL; child = child->next) {
        count += child->tag == tag;
    }
    return count;
}

const char *xml_attribute(const struct xml_element *element, const char *name)
{
    for (uint32_t i = 0; i < element->attribute_count; i++) {
        if (strcmp(element->attributes[2 * i], name) == 0) {
            return element->attributes[2 * i + 1];
        }
    }
    return NULL;
}
