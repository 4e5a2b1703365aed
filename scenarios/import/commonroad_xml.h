/*
 * XML, private to the importers: a bounded tree of the elements a format knows, with line numbers.
 *
 * Only elements whose names the caller lists are kept; anything else is skipped with all it holds.
 * A caller without a list gets every element. Invariant: memory comes from the caller's arena,
 * depth, element count and text are bounded, no external entity is ever read and a document type
 * declaration is refused.
 */
#ifndef SWERVE_SCENARIOS_IMPORT_COMMONROAD_XML_H
#define SWERVE_SCENARIOS_IMPORT_COMMONROAD_XML_H

#include "base/arena.h"
#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

enum {
    XML_DEPTH_MAX = 64,
    XML_ELEMENTS_MAX = 4 << 20,
    XML_TEXT_BYTES_MAX = 4096, /* text or attribute of one element, white space around it apart */
    XML_ATTRIBUTES_MAX = 32,
    XML_TAG_BYTES_MAX = 1 << 20, /* one tag with its attributes, comment or instruction */
    XML_TAG_NONE = -1
};

struct xml_element {
    int tag;                  /* index in the caller's names, or XML_TAG_NONE (the root only) */
    const char *name;         /* where the caller has no names; else NULL */
    uint32_t line;            /* from 1 */
    uint32_t attribute_count; /* pairs */
    const char **attributes;  /* [2 * attribute_count] name, value */
    const char *text; /* character data without the white space around it; "" with children */
    struct xml_element *parent;
    struct xml_element *first;
    struct xml_element *last;
    struct xml_element *next; /* sibling */
};

struct xml_document {
    struct xml_element *root;
    const char *root_name;
};

/* `names` is sorted by strcmp; NULL: every element is kept, and knows its name; name prefixes
 * ("cr:lanelet") are ignored. STATUS_BAD_INPUT for what is not well-formed, STATUS_LIMIT beyond the
 * bounds above or the arena's. The tree lives in the arena; `file` is for messages. */
enum status xml_parse(const char *file, const char *text, size_t bytes, const char *const *names,
                      size_t name_count, struct arena *arena, struct xml_document *out,
                      struct error *error);

/* First child with the tag, or NULL. */
const struct xml_element *xml_child(const struct xml_element *element, int tag);
/* Next sibling with the same tag, or NULL. */
const struct xml_element *xml_next(const struct xml_element *element);
/* Number of children with the tag. */
uint32_t xml_count(const struct xml_element *element, int tag);
/* Value of the attribute, or NULL. */
const char *xml_attribute(const struct xml_element *element, const char *name);

#endif
