/*
 * OpenDRIVE: from a file to a complete network.
 *
 *   xml_parse -> roads, sections, lanes -> links over junctions -> signals
 */
#include "base/file.h"
#include "scenarios/import/opendrive/opendrive_internal.h"

#include <stdlib.h>
#include <string.h>

enum { TREE_ARENA_BYTES = 768 << 20 };

static enum status read_network(struct od_reader *reader, const char *xml, size_t bytes)
{
    struct opendrive_network *network = reader->network;
    struct xml_document document = {0};
    TRY(xml_parse(network->name, xml, bytes, od_tag_names, OD_TAG_COUNT, reader->tree, &document,
                  reader->error));
    reader->root = document.root;
    if (document.root->tag != OD_OPEN_DRIVE) {
        return error_set(reader->error, STATUS_BAD_INPUT,
                         "%s: line %u: expected a root element <OpenDRIVE>, found <%.64s>",
                         network->name, document.root->line, document.root_name);
    }
    od_geo_read(reader);
    TRY(od_roads_read(reader));
    TRY(od_links_read(reader));
    return od_signals_read(reader);
}

static enum status load(const char *name, const char *xml, size_t bytes, bool moves,
                        struct opendrive_network **out, struct error *error)
{
    struct arena tree;
    struct error local = {0};
    struct opendrive_network *network;
    if (bytes > LIMIT_XML_BYTES) {
        return error_set(error, STATUS_LIMIT, "%s: expected at most %d bytes, found %zu", name,
                         LIMIT_XML_BYTES, bytes);
    }
    network = calloc(1, sizeof *network);
    TRY(memory_check(network, error, "%s: out of memory", name));
    arena_init(&network->arena, OPENDRIVE_ARENA_BYTES);
    arena_init(&tree, TREE_ARENA_BYTES);
    network->file_bytes = bytes;
    network->name = arena_copy_text(&network->arena, name, strlen(name));
    struct od_reader reader = {
        .network = network, .tree = &tree, .error = error != NULL ? error : &local, .moves = moves};
    enum status status = memory_check(network->name, error, "%s: out of memory", name);
    THEN(status, read_network(&reader, xml, bytes));
    arena_finish(&tree);
    if (status != STATUS_OK) {
        opendrive_destroy(network);
        return status;
    }
    *out = network;
    return STATUS_OK;
}

enum status opendrive_load(const char *name, const char *xml, size_t bytes,
                           struct opendrive_network **out, struct error *error)
{
    return load(name, xml, bytes, false, out, error);
}

enum status opendrive_load_file(const char *path, struct opendrive_network **out,
                                struct error *error)
{
    char *xml;
    size_t bytes;
    TRY(file_read(path, LIMIT_XML_BYTES, &xml, &bytes, error));
    enum status status = load(path, xml, bytes, true, out, error);
    free(xml);
    return status;
}

void opendrive_destroy(struct opendrive_network *network)
{
    if (network != NULL) {
        arena_finish(&network->arena);
        free(network);
    }
}
