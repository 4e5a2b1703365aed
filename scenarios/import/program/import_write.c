/*
 * Documents of an import to files. See import_write.h.
 *
 * The first document of a map is rewritten when a second one has it, so that a map of one document
 * stays in it. Looked for are the first MAPS_MAX maps: variations of a scenario have one or a few.
 */
#include "scenarios/import/program/import_write.h"

#include "schemas/limits.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAPS_MAX = 16 };

struct shared_map {
    json_t *map;
    size_t first;                /* document that has it */
    char file[LIMIT_PATH_BYTES]; /* "": of one document alone so far */
};

struct writer {
    const char *out;
    size_t stem_bytes; /* of out without ".json" */
    char **texts;
    json_t *taken; /* ids so far */
    struct shared_map maps[MAPS_MAX];
    size_t map_count;
    size_t file_count; /* of maps */
    struct error *error;
};

static enum status write_whole(const char *path, const char *text, struct error *error)
{
    FILE *stream = fopen(path, "wb");
    if (stream == NULL) {
        return error_set(error, STATUS_IO, "%s: cannot create: %s", path, strerror(errno));
    }
    bool bad = fputs(text, stream) == EOF || fputc('\n', stream) == EOF;
    bad = fclose(stream) != 0 || bad;
    if (bad) {
        return error_set(error, STATUS_IO, "%s: cannot write: %s", path, strerror(errno));
    }
    return STATUS_OK;
}

/* Name of a file beside OUT, without the folder. */
static const char *file_name(const struct writer *writer, const char *path)
{
    const char *slash = strrchr(writer->out, '/');
    return path + (slash != NULL ? slash + 1 - writer->out : 0);
}

/* ---- ids ---- */

/* Ids must be unique in a suite, but public files repeat theirs: the second becomes ID-2, and so
 * on. */
static bool make_id_unique(struct writer *writer, json_t *document)
{
    char base[LIMIT_ID_BYTES];
    char id[LIMIT_ID_BYTES];
    snprintf(base, sizeof base, "%s", json_string_value(json_object_get(document, "id")));
    memcpy(id, base, sizeof id);
    for (int number = 2; json_object_get(writer->taken, id) != NULL; number++) {
        snprintf(id, sizeof id, "%.50s-%d", base, number);
    }
    json_object_set_new(writer->taken, id, json_true());
    json_object_set_new(document, "id", json_string(id));
    return strcmp(id, base) != 0;
}

/* ---- maps ---- */

static enum status replace_text(struct writer *writer, size_t i, const json_t *document)
{
    char *text = json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(17));
    TRY(memory_check(text, writer->error, "%s: out of memory", writer->out));
    free(writer->texts[i]);
    writer->texts[i] = text;
    return STATUS_OK;
}

static void refer_to_map(const struct writer *writer, const struct shared_map *map,
                         json_t *document)
{
    json_object_set_new(document, "map", json_pack("{s:s}", "file", file_name(writer, map->file)));
}

/* Writes a map to a file, and has its first document refer to it. */
static enum status write_map(struct writer *writer, struct shared_map *map)
{
    json_t *document = json_loads(writer->texts[map->first], 0, NULL);
    char *text = json_dumps(map->map, JSON_COMPACT | JSON_REAL_PRECISION(17));
    bool enough = document != NULL && text != NULL;
    enum status status =
        memory_check(enough ? text : NULL, writer->error, "%s: out of memory", writer->out);
    snprintf(map->file, sizeof map->file, "%.*s-map-%zu.json", (int)writer->stem_bytes, writer->out,
             ++writer->file_count);
    THEN(status, write_whole(map->file, text, writer->error));
    if (status == STATUS_OK) {
        refer_to_map(writer, map, document);
        status = replace_text(writer, map->first, document);
    }
    free(text);
    json_decref(document);
    return status;
}

/* *shared: the document refers to a file now. */
static enum status share_map(struct writer *writer, size_t i, json_t *document, bool *shared)
{
    json_t *own = json_object_get(document, "map");
    for (size_t k = 0; k < writer->map_count; k++) {
        struct shared_map *map = &writer->maps[k];
        if (json_equal(map->map, own)) {
            TRY(map->file[0] == '\0' ? write_map(writer, map) : STATUS_OK);
            refer_to_map(writer, map, document);
            *shared = true;
            return STATUS_OK;
        }
    }
    if (writer->map_count < MAPS_MAX) {
        writer->maps[writer->map_count++] =
            (struct shared_map){.map = json_incref(own), .first = i};
    }
    return STATUS_OK;
}

/* ---- all ---- */

static enum status settle_document(struct writer *writer, size_t i)
{
    bool shared = false;
    json_t *document = json_loads(writer->texts[i], 0, NULL);
    TRY(memory_check(document, writer->error, "%s: out of memory", writer->out));
    bool renamed = make_id_unique(writer, document);
    /* Before its map is looked at: the first document of one is read again from its text. */
    enum status status = renamed ? replace_text(writer, i, document) : STATUS_OK;
    THEN(status, share_map(writer, i, document, &shared));
    if (status == STATUS_OK && shared) {
        status = replace_text(writer, i, document);
    }
    json_decref(document);
    return status;
}

static enum status write_suite(const struct writer *writer, size_t count)
{
    json_t *list = json_array();
    enum status status = STATUS_OK;
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        char path[LIMIT_PATH_BYTES];
        snprintf(path, sizeof path, "%.*s-%zu.json", (int)writer->stem_bytes, writer->out, i + 1);
        status = write_whole(path, writer->texts[i], writer->error);
        json_array_append_new(list, json_pack("{s:s}", "file", file_name(writer, path)));
    }
    json_t *suite = json_pack("{s:s, s:s, s:O}", "id", "imported", "title", "Imported scenarios",
                              "scenarios", list);
    char *text = status == STATUS_OK ? json_dumps(suite, JSON_INDENT(2)) : NULL;
    THEN(status, memory_check(text, writer->error, "%s: out of memory", writer->out));
    THEN(status, write_whole(writer->out, text, writer->error));
    free(text);
    json_decref(suite);
    json_decref(list);
    return status;
}

enum status import_write(const char *out, char **texts, size_t count, struct error *error)
{
    if (count == 1) {
        return write_whole(out, texts[0], error);
    }
    size_t stem = strlen(out);
    struct writer writer = {.out = out, .texts = texts, .error = error};
    writer.stem_bytes = stem > 5 && strcmp(out + stem - 5, ".json") == 0 ? stem - 5 : stem;
    writer.taken = json_object();
    enum status status = memory_check(writer.taken, error, "%s: out of memory", out);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        status = settle_document(&writer, i);
    }
    THEN(status, write_suite(&writer, count));
    for (size_t k = 0; k < writer.map_count; k++) {
        json_decref(writer.maps[k].map);
    }
    json_decref(writer.taken);
    return status;
}
