/*
 * OpenSCENARIO documents: a file and its catalogs to one tree in which every reference to a catalog
 * is replaced by what it names and every attribute has its value.
 *
 * The tree is copied element by element under a stack of scopes: the file's parameters, those of
 * an element, a catalog entry's with what the reference assigns. Invariant: depth, catalogs and
 * elements are bounded, so references in circles end with an error.
 */
#include "scenarios/import/openscenario/osc_internal.h"

#include "base/check.h"
#include "base/file.h"
#include "scenarios/import/commonroad_xml.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct catalog {
    const char *name;
    const char *stem; /* of its file: other tools find catalogs by that */
    const char *file;
    const struct xml_element *element;
};

enum { LOOKED_BYTES = 320 };
_Static_assert((int)OSC_VALUE_BYTES > (int)XML_TEXT_BYTES_MAX, "no value is cut");

struct loader {
    struct osc_context *context;
    struct catalog *catalogs;
    uint32_t catalog_count;
    const struct xml_element *root;
    int catalog_depth;
    const struct xml_element
        *entry; /* of a catalog: its parameters have what a reference assigns */
    const struct osc_parameter *overrides;
    uint32_t override_count;
    char looked[LOOKED_BYTES]; /* folders of catalogs, "": none is named */
};

/* ---- files ---- */

static enum status parse_file(struct osc_context *context, const char *path,
                              struct xml_document *document)
{
    char *text = NULL;
    size_t bytes = 0;
    TRY(file_read(path, LIMIT_XML_BYTES, &text, &bytes, context->error));
    enum status status =
        xml_parse(path, text, bytes, NULL, 0, context->arena, document, context->error);
    free(text);
    return status;
}

/* `relative` behind the folder that the first `bytes` of a name are; backslashes become slashes. */
static void join_path(const char *folder, size_t bytes, const char *relative, const char *suffix,
                      char out[LIMIT_PATH_BYTES])
{
    bytes = relative[0] != '/' ? bytes : 0;
    snprintf(out, LIMIT_PATH_BYTES, "%.*s%s%s", (int)bytes, folder, relative, suffix);
    bytes = bytes < strlen(out) ? bytes : strlen(out);
    for (char *at = strchr(out + bytes, '\\'); at != NULL; at = strchr(at, '\\')) {
        *at = '/';
    }
}

/* Below a folder: the whole name, else its last part alone. */
static bool find_below(const char *folder, const char *relative, const char *suffix,
                       char out[LIMIT_PATH_BYTES])
{
    const char *last = relative + strlen(relative);
    struct stat info;
    while (last > relative && last[-1] != '/' && last[-1] != '\\') {
        last--;
    }
    const char *const names[] = {relative, last};
    char start[LIMIT_PATH_BYTES];
    int bytes = snprintf(start, sizeof start, "%s/", folder);
    for (size_t i = 0; i < COUNT_OF(names) && names[i][0] != '\0'; i++) {
        join_path(start, (size_t)bytes, names[i], suffix, out);
        if (stat(out, &info) == 0) {
            return true;
        }
    }
    return false;
}

void osc_find_path(const struct osc_context *context, const char *relative, const char *suffix,
                   char out[LIMIT_PATH_BYTES])
{
    const struct osc_options *options = context->options;
    const char *slash = strrchr(context->path, '/');
    struct stat info;
    join_path(context->path, slash != NULL ? (size_t)(slash - context->path) + 1 : 0, relative,
              suffix, out);
    bool found = stat(out, &info) == 0;
    for (uint32_t i = 0; !found && i < options->search_count; i++) {
        char path[LIMIT_PATH_BYTES];
        found = find_below(options->search[i], relative, suffix, path);
        if (found) {
            memcpy(out, path, sizeof path);
        }
    }
}

static const struct xml_element *child_named(const struct xml_element *element, const char *name)
{
    const struct xml_element *child = element->first;
    while (child != NULL && strcmp(child->name, name) != 0) {
        child = child->next;
    }
    return child;
}

/* Keeps the folder for the sentence about a catalog that is not found. */
static void note_folder(struct loader *loader, const char *path, bool is_there)
{
    size_t used = strlen(loader->looked);
    snprintf(loader->looked + used, LOOKED_BYTES - used, "%s%.150s%s", used > 0 ? ", " : "", path,
             is_there ? "" : " (cannot be opened)");
}

static enum status too_many_catalogs(const struct loader *loader, const char *path)
{
    return error_set(loader->context->error, STATUS_LIMIT,
                     "%s: expected at most %d files of catalogs, found more", path,
                     OSC_CATALOGS_MAX);
}

static enum status add_catalog(struct loader *loader, const char *path)
{
    struct osc_context *context = loader->context;
    struct xml_document document = {0};
    TRY(parse_file(context, path, &document));
    const struct xml_element *catalog = child_named(document.root, "Catalog");
    const char *name = catalog != NULL ? xml_attribute(catalog, "name") : NULL;
    if (name == NULL) {
        return STATUS_OK; /* something else that lies there */
    }
    if (loader->catalog_count == OSC_CATALOGS_MAX) {
        return too_many_catalogs(loader, path);
    }
    char *file = arena_copy_text(context->arena, path, strlen(path));
    if (file == NULL) {
        return STATUS_LIMIT;
    }
    const char *base = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
    const char *stem = arena_copy_text(context->arena, base, strlen(base) - strlen(".xosc"));
    if (stem == NULL) {
        return STATUS_LIMIT;
    }
    loader->catalogs[loader->catalog_count++] = (struct catalog){name, stem, file, catalog};
    return STATUS_OK;
}

static int compare_text(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Every .xosc file of a directory, by name: of two catalogs of one name the first counts. */
static enum status add_directory(struct loader *loader, const char *path)
{
    DIR *directory = opendir(path);
    char *files[OSC_CATALOGS_MAX];
    size_t count = 0;
    note_folder(loader, path, directory != NULL);
    if (directory == NULL) {
        return STATUS_OK; /* named but not there: what refers to it will say so */
    }
    const struct dirent *entry;
    bool more = false;
    while ((entry = readdir(directory)) != NULL && !more) {
        size_t bytes = strlen(entry->d_name);
        bool file = bytes > 5 && strcmp(entry->d_name + bytes - 5, ".xosc") == 0;
        more = file && count == OSC_CATALOGS_MAX;
        if (file && !more) {
            char full[LIMIT_PATH_BYTES];
            int length = snprintf(full, sizeof full, "%s/%s", path, entry->d_name);
            files[count] = length < LIMIT_PATH_BYTES
                               ? arena_copy_text(loader->context->arena, full, strlen(full))
                               : NULL;
            count += files[count] != NULL;
        }
    }
    closedir(directory);
    qsort(files, count, sizeof *files, compare_text);
    enum status status = more ? too_many_catalogs(loader, path) : STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        status = add_catalog(loader, files[i]);
    }
    return status;
}

static bool is_folder(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 && S_ISDIR(info.st_mode);
}

/* A catalog that is itself named in place of its folder, with or without ".xosc". */
static enum status add_named_file(struct loader *loader, const char *relative, const char *path)
{
    struct stat info;
    size_t bytes = strlen(relative);
    bool whole = bytes > 5 && strcmp(relative + bytes - 5, ".xosc") == 0;
    char file[LIMIT_PATH_BYTES];
    osc_find_path(loader->context, relative, whole ? "" : ".xosc", file);
    bool found = stat(file, &info) == 0 && S_ISREG(info.st_mode);
    note_folder(loader, found ? file : path, found);
    return found ? add_catalog(loader, file) : STATUS_OK; /* what refers to it will say so */
}

/* ---- scopes ---- */

static enum status evaluate(struct loader *loader, const struct osc_scope *scope, const char *file,
                            const struct xml_element *element, const char *name, const char *text,
                            const char **out)
{
    struct osc_context *context = loader->context;
    char value[OSC_VALUE_BYTES];
    char message[256];
    bool known = text[0] != '$' || osc_evaluate(scope, text, value, message, sizeof message);
    bool is_name = strcmp(name, "name") == 0 || strcmp(name, "storyboardElementRef") == 0;
    if (text[0] != '$' || (!known && is_name)) {
        *out = text; /* names may hold anything */
        return STATUS_OK;
    }
    if (!known) {
        return error_set(context->error, STATUS_BAD_INPUT, "%s: line %u: <%s> %s=\"%.80s\": %s",
                         file, element->line, element->name, name, text, message);
    }
    *out = arena_copy_text(context->arena, value, strlen(value));
    return *out != NULL ? STATUS_OK
                        : error_set(context->error, STATUS_LIMIT,
                                    "%s: expected less text in parameters, found more", file);
}

static const char *assigned(const struct osc_parameter *items, uint32_t count, const char *name)
{
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(items[i].name, name) == 0) {
            return items[i].value;
        }
    }
    return NULL;
}

static enum status too_many(const struct loader *loader, const char *file,
                            const struct xml_element *at, const char *what)
{
    return error_set(loader->context->error, STATUS_LIMIT,
                     "%s: line %u: expected at most %d %s, found more", file, at->line,
                     OSC_PARAMETERS_MAX, what);
}

/* The parameters that an element declares, in order: later ones may use earlier ones. What is
 * assigned from outside takes the place of the default. */
static enum status declare(struct loader *loader, const char *file,
                           const struct xml_element *declarations,
                           const struct osc_parameter *given, uint32_t given_count,
                           struct osc_scope *scope)
{
    if (declarations == NULL) {
        return STATUS_OK;
    }
    scope->items = osc_alloc(loader->context, OSC_PARAMETERS_MAX, sizeof *scope->items);
    if (scope->items == NULL) {
        return STATUS_LIMIT;
    }
    for (const struct xml_element *at = declarations->first; at != NULL; at = at->next) {
        const char *name = xml_attribute(at, "name");
        const char *text = xml_attribute(at, "value");
        if (strcmp(at->name, "ParameterDeclaration") != 0 || name == NULL) {
            continue;
        }
        if (scope->count == OSC_PARAMETERS_MAX) {
            return too_many(loader, file, at, "parameters");
        }
        const char *value = assigned(given, given_count, name);
        name += name[0] == '$'; /* as written in 1.0 */
        if (value == NULL) {
            TRY(evaluate(loader, scope, file, at, "value", text != NULL ? text : "", &value));
        }
        scope->items[scope->count++] = (struct osc_parameter){name, value};
    }
    return STATUS_OK;
}

static enum status assignments(struct loader *loader, const struct osc_scope *scope,
                               const char *file, const struct xml_element *reference,
                               struct osc_scope *out)
{
    const struct xml_element *list = child_named(reference, "ParameterAssignments");
    *out = (struct osc_scope){0};
    if (list == NULL) {
        return STATUS_OK;
    }
    out->items = osc_alloc(loader->context, OSC_PARAMETERS_MAX, sizeof *out->items);
    if (out->items == NULL) {
        return STATUS_LIMIT;
    }
    for (const struct xml_element *at = list->first; at != NULL; at = at->next) {
        const char *name = xml_attribute(at, "parameterRef");
        const char *text = xml_attribute(at, "value");
        if (name == NULL || text == NULL) {
            continue;
        }
        if (out->count == OSC_PARAMETERS_MAX) {
            return too_many(loader, file, at, "assignments");
        }
        const char *value;
        name += name[0] == '$';
        TRY(evaluate(loader, scope, file, at, "value", text, &value));
        out->items[out->count++] = (struct osc_parameter){name, value};
    }
    return STATUS_OK;
}

/* ---- the tree ---- */

static enum status copy_element(struct loader *loader, const struct osc_scope *scope,
                                const char *file, const struct xml_element *from,
                                struct osc_element *parent, struct osc_element **out);

/* By the catalog's name, else by that of its file; *catalog is the last one that is called so. */
static const struct xml_element *find_entry(const struct loader *loader, const char *name,
                                            const char *entry_name, const struct catalog **catalog)
{
    for (int by_file = 0; by_file < 2; by_file++) {
        for (uint32_t i = 0; i < loader->catalog_count; i++) {
            const struct catalog *at = &loader->catalogs[i];
            if (strcmp(by_file ? at->stem : at->name, name) != 0) {
                continue;
            }
            *catalog = at;
            const struct xml_element *entry = at->element->first;
            for (; entry != NULL; entry = entry->next) {
                const char *own = xml_attribute(entry, "name");
                if (own != NULL && strcmp(own, entry_name) == 0) {
                    return entry;
                }
            }
        }
    }
    return NULL;
}

/* Environments and controllers are left out: it does not matter whether theirs are there. */
static bool is_left_out(const struct osc_element *parent)
{
    return parent != NULL &&
           (osc_is(parent, "EnvironmentAction") || osc_is(parent, "ObjectController") ||
            osc_is(parent, "AssignControllerAction"));
}

static enum status copy_nothing(struct loader *loader, const char *file,
                                const struct xml_element *reference, struct osc_element *parent,
                                struct osc_element **out)
{
    *out = osc_alloc(loader->context, 1, sizeof **out);
    if (*out == NULL) {
        return STATUS_LIMIT;
    }
    **out = (struct osc_element){
        .name = reference->name, .file = file, .line = reference->line, .parent = parent};
    osc_note(loader->context, *out,
             "an environment or controller is not in the catalogs: it is left out anyway");
    return STATUS_OK;
}

static enum status copy_reference(struct loader *loader, const struct osc_scope *scope,
                                  const char *file, const struct xml_element *reference,
                                  struct osc_element *parent, struct osc_element **out)
{
    struct osc_context *context = loader->context;
    const char *names[2] = {xml_attribute(reference, "catalogName"),
                            xml_attribute(reference, "entryName")};
    if (names[0] == NULL || names[1] == NULL) {
        return error_set(context->error, STATUS_BAD_INPUT,
                         "%s: line %u: <CatalogReference>: expected catalogName and entryName, "
                         "found none",
                         file, reference->line);
    }
    for (int i = 0; i < 2; i++) {
        TRY(evaluate(loader, scope, file, reference, i == 0 ? "catalogName" : "entryName", names[i],
                     &names[i]));
    }
    if (loader->catalog_depth == OSC_CATALOG_DEPTH_MAX) {
        return error_set(context->error, STATUS_LIMIT,
                         "%s: line %u: <CatalogReference>: expected catalogs that refer to others "
                         "at most %d deep, found more",
                         file, reference->line, OSC_CATALOG_DEPTH_MAX);
    }
    const struct catalog *catalog = NULL;
    const struct xml_element *entry = find_entry(loader, names[0], names[1], &catalog);
    if (entry != NULL) {
        struct osc_scope given;
        struct osc_scope inner = {.outer = &context->globals};
        TRY(assignments(loader, scope, file, reference, &given));
        TRY(declare(loader, catalog->file, child_named(entry, "ParameterDeclarations"), given.items,
                    given.count, &inner));
        const struct xml_element *outer = loader->entry;
        loader->catalog_depth++;
        loader->entry = entry;
        enum status status = copy_element(loader, &inner, catalog->file, entry, parent, out);
        loader->entry = outer;
        loader->catalog_depth--;
        return status;
    }
    if (is_left_out(parent)) {
        return copy_nothing(loader, file, reference, parent, out);
    }
    if (catalog != NULL) {
        return error_set(context->error, STATUS_BAD_INPUT,
                         "%s: line %u: <CatalogReference>: expected an entry of catalog \"%.60s\", "
                         "found no entry \"%.60s\"",
                         file, reference->line, names[0], names[1]);
    }
    return error_set(context->error, STATUS_BAD_INPUT,
                     "%s: line %u: <CatalogReference>: expected a catalog that <CatalogLocations> "
                     "leads to, found no catalog \"%.60s\"; looked in %s",
                     file, reference->line, names[0],
                     loader->looked[0] != '\0' ? loader->looked : "no folder: none is named");
}

static enum status copy_attributes(struct loader *loader, const struct osc_scope *scope,
                                   const char *file, const struct xml_element *from,
                                   struct osc_element *to)
{
    to->attributes =
        osc_alloc(loader->context, 2 * (size_t)from->attribute_count, sizeof *to->attributes);
    if (to->attributes == NULL) {
        return STATUS_LIMIT;
    }
    to->attribute_count = from->attribute_count;
    for (uint32_t i = 0; i < from->attribute_count; i++) {
        const char *name = from->attributes[2 * i];
        to->attributes[2 * i] = name;
        TRY(evaluate(loader, scope, file, from, name, from->attributes[2 * i + 1],
                     &to->attributes[2 * i + 1]));
    }
    return STATUS_OK;
}

static enum status copy_element(struct loader *loader, const struct osc_scope *scope,
                                const char *file, const struct xml_element *from,
                                struct osc_element *parent, struct osc_element **out)
{
    struct osc_context *context = loader->context;
    if (strcmp(from->name, "CatalogReference") == 0) {
        return copy_reference(loader, scope, file, from, parent, out);
    }
    if (++context->element_count > OSC_ELEMENTS_MAX) {
        return error_set(context->error, STATUS_LIMIT,
                         "%s: expected at most %d elements, found more", file, OSC_ELEMENTS_MAX);
    }
    struct osc_element *element = osc_alloc(context, 1, sizeof *element);
    if (element == NULL) {
        return STATUS_LIMIT;
    }
    *element = (struct osc_element){
        .name = from->name, .file = file, .line = from->line, .parent = parent};
    struct osc_scope inner = {.outer = scope};
    if (parent != NULL && from != loader->entry) { /* the document's are declared before */
        TRY(declare(loader, file, child_named(from, "ParameterDeclarations"), NULL, 0, &inner));
    }
    TRY(copy_attributes(loader, &inner, file, from, element));
    for (const struct xml_element *at = from->first; at != NULL; at = at->next) {
        struct osc_element *child;
        if (strcmp(at->name, "ParameterDeclarations") == 0 ||
            strcmp(at->name, "ParameterAssignments") == 0) {
            continue;
        }
        TRY(copy_element(loader, &inner, file, at, element, &child));
        if (element->last == NULL) {
            element->first = child;
        } else {
            element->last->next = child;
        }
        element->last = child;
    }
    *out = element;
    return STATUS_OK;
}

static enum status read_catalogs(struct loader *loader)
{
    const struct xml_element *locations = child_named(loader->root, "CatalogLocations");
    const struct xml_element *at = locations != NULL ? locations->first : NULL;
    for (; at != NULL; at = at->next) {
        const struct xml_element *directory = child_named(at, "Directory");
        const char *text = directory != NULL ? xml_attribute(directory, "path") : NULL;
        if (text == NULL) {
            continue;
        }
        const char *relative;
        char path[LIMIT_PATH_BYTES];
        TRY(evaluate(loader, &loader->context->globals, loader->context->path, directory, "path",
                     text, &relative));
        osc_find_path(loader->context, relative, "", path);
        TRY(is_folder(path) ? add_directory(loader, path) : add_named_file(loader, relative, path));
    }
    return STATUS_OK;
}

/* OpenSCENARIO 0.9 and the language of 2.0 are other formats; no version at all is let pass. */
static enum status check_version(struct osc_context *context, const struct xml_element *root)
{
    const struct xml_element *header = child_named(root, "FileHeader");
    const char *major = header != NULL ? xml_attribute(header, "revMajor") : NULL;
    if (major != NULL && strcmp(major, "1") != 0) {
        return error_set(context->error, STATUS_BAD_INPUT,
                         "%s: line %u: <FileHeader>: expected revMajor 1, of OpenSCENARIO XML 1.0 "
                         "to 1.3, found \"%.40s\"",
                         context->path, header->line, major);
    }
    return STATUS_OK;
}

enum status osc_document_load(struct osc_context *context, const struct osc_parameter *overrides,
                              uint32_t override_count)
{
    struct xml_document document = {0};
    struct loader loader = {
        .context = context, .overrides = overrides, .override_count = override_count};
    struct osc_element *root;
    TRY(parse_file(context, context->path, &document));
    if (strcmp(document.root->name, "OpenSCENARIO") != 0) {
        return error_set(context->error, STATUS_BAD_INPUT,
                         "%s: line %u: expected <OpenSCENARIO>, found <%.40s>", context->path,
                         document.root->line, document.root->name);
    }
    loader.root = document.root;
    if (child_named(document.root, "Catalog") != NULL) {
        return error_set(context->error, STATUS_BAD_INPUT,
                         "%s: line %u: expected a scenario or a distribution of parameters, found "
                         "a catalog",
                         context->path, child_named(document.root, "Catalog")->line);
    }
    TRY(check_version(context, document.root));
    loader.catalogs = osc_alloc(context, OSC_CATALOGS_MAX, sizeof *loader.catalogs);
    if (loader.catalogs == NULL) {
        return STATUS_LIMIT;
    }
    context->globals = (struct osc_scope){0};
    TRY(declare(&loader, context->path, child_named(document.root, "ParameterDeclarations"),
                overrides, override_count, &context->globals));
    for (uint32_t i = 0; i < override_count; i++) {
        if (assigned(context->globals.items, context->globals.count, overrides[i].name) == NULL) {
            return error_set(context->error, STATUS_BAD_INPUT,
                             "%s: expected a parameter \"%.60s\", which the distribution varies, "
                             "found none",
                             context->path, overrides[i].name);
        }
    }
    TRY(read_catalogs(&loader));
    TRY(copy_element(&loader, &context->globals, context->path, document.root, NULL, &root));
    context->root = root;
    return STATUS_OK;
}
