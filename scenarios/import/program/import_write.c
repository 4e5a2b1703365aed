/*
 * Documents of an import to files. See import_write.h.
 *
 * A document waits until WAITING_MAX others have come, because the first one with a part is to
 * refer to its file too. Later ones with a part of one written long ago share a file without it.
 */
#include "scenarios/import/program/import_write.h"

#include "base/sha256.h"
#include "schemas/json_read.h"
#include "schemas/limits.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PARTS_MAX = 1024,    /* that are told apart: variations have few of each */
    WAITING_MAX = 4,     /* documents */
    SEEN_MAX = 8,        /* parts as they were handed in, which documents may share */
    PATH_POINTS_MIN = 64 /* below them a path is no longer than most of what refers to it */
};

enum { PART_MAP, PART_PATH, PART_KIND_COUNT };
static const char *const part_names[PART_KIND_COUNT] = {"map", "path"};

struct part {
    uint8_t digest[SHA256_BYTES];
    int kind;
    uint32_t documents; /* that have it */
    uint32_t number;    /* of its file, 0: none */
};

struct waiting {
    json_t *document;
    size_t number;       /* from 1 */
    struct part *map;    /* NULL: not told apart */
    struct part **paths; /* by the storyboard's, owned */
};

struct import_writer {
    const char *out;
    size_t stem_bytes; /* of out without ".json" */
    json_t *taken;     /* ids so far */
    json_t *suite;     /* its scenarios */
    size_t count;
    struct waiting waiting[WAITING_MAX]; /* from `first` on, round */
    size_t first;
    size_t waiting_count;
    struct {
        json_t *value; /* owned, NULL: empty */
        struct part *part;
    } seen[SEEN_MAX];                /* the last ones, not looked at again */
    size_t seen_next;                /* to be replaced */
    uint32_t files[PART_KIND_COUNT]; /* so far */
    size_t part_count;
    struct part parts[PARTS_MAX];
};

static enum status no_memory(const struct import_writer *writer, struct error *error)
{
    return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", writer->out);
}

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

static enum status write_json(const struct import_writer *writer, const char *path,
                              const json_t *value, struct error *error)
{
    char *text = json_canonical_text(value);
    TRY(text != NULL ? STATUS_OK : no_memory(writer, error));
    enum status status = write_whole(path, text, error);
    free(text);
    return status;
}

/* A file beside OUT; its name without the folder is what others say of it. */
static const char *name_file(const struct import_writer *writer, const char *tail, size_t number,
                             char path[LIMIT_PATH_BYTES])
{
    const char *slash = strrchr(writer->out, '/');
    snprintf(path, LIMIT_PATH_BYTES, "%.*s%s-%zu.json", (int)writer->stem_bytes, writer->out, tail,
             number);
    return path + (slash != NULL ? slash + 1 - writer->out : 0);
}

static json_t *reference_to(const char *name)
{
    return json_pack("{s:s}", "file", name);
}

/* ---- ids ---- */

/* Ids must be unique in a suite, but public files repeat theirs: the second becomes ID-2, and so
 * on. */
static enum status make_id_unique(struct import_writer *writer, json_t *document,
                                  struct error *error)
{
    char base[LIMIT_ID_BYTES];
    char id[LIMIT_ID_BYTES];
    snprintf(base, sizeof base, "%s", json_string_value(json_object_get(document, "id")));
    memcpy(id, base, sizeof id);
    for (int number = 2; json_object_get(writer->taken, id) != NULL; number++) {
        snprintf(id, sizeof id, "%.50s-%d", base, number);
    }
    bool bad = json_object_set_new(writer->taken, id, json_true()) != 0 ||
               json_object_set_new(document, "id", json_string(id)) != 0;
    return bad ? no_memory(writer, error) : STATUS_OK;
}

/* ---- parts ---- */

/* Types, lengths and values in order. Documents are as deep as their schema, a handful. */
static void add_value(struct sha256 *hash, const json_t *value)
{
    uint8_t type = (uint8_t)json_typeof(value);
    sha256_update(hash, &type, 1);
    if (json_is_real(value)) {
        double number = json_real_value(value);
        sha256_update(hash, &number, sizeof number);
    } else if (json_is_integer(value)) {
        json_int_t number = json_integer_value(value);
        sha256_update(hash, &number, sizeof number);
    } else if (json_is_string(value)) {
        sha256_update(hash, json_string_value(value), json_string_length(value) + 1);
    } else if (json_is_array(value)) {
        size_t count = json_array_size(value);
        sha256_update(hash, &count, sizeof count);
        for (size_t i = 0; i < count; i++) {
            add_value(hash, json_array_get(value, i));
        }
    } else if (json_is_object(value)) {
        size_t count = json_object_size(value);
        const char *key;
        json_t *member;
        sha256_update(hash, &count, sizeof count);
        json_object_foreach ((json_t *)(uintptr_t)value, key, member) {
            sha256_update(hash, key, strlen(key) + 1);
            add_value(hash, member);
        }
    }
}

/* The part of a kind that has the value; NULL: there are too many. */
static struct part *look_up_part(struct import_writer *writer, int kind, const json_t *value)
{
    uint8_t digest[SHA256_BYTES];
    struct sha256 hash;
    sha256_init(&hash);
    add_value(&hash, value);
    sha256_final(&hash, digest);
    for (size_t i = 0; i < writer->part_count; i++) {
        struct part *part = &writer->parts[i];
        if (part->kind == kind && memcmp(part->digest, digest, sizeof digest) == 0) {
            return part;
        }
    }
    if (writer->part_count == PARTS_MAX) {
        return NULL;
    }
    struct part *part = &writer->parts[writer->part_count++];
    part->kind = kind;
    memcpy(part->digest, digest, sizeof digest);
    return part;
}

/* The same, which is now of one document more. */
static struct part *find_part(struct import_writer *writer, int kind, json_t *value)
{
    struct part *part = NULL;
    for (size_t i = 0; part == NULL && i < SEEN_MAX; i++) {
        part = writer->seen[i].value == value ? writer->seen[i].part : NULL;
    }
    if (part == NULL) {
        part = look_up_part(writer, kind, value);
        json_decref(writer->seen[writer->seen_next].value);
        writer->seen[writer->seen_next].value = json_incref(value);
        writer->seen[writer->seen_next].part = part;
        writer->seen_next = (writer->seen_next + 1) % SEEN_MAX;
    }
    if (part != NULL) {
        part->documents++;
    }
    return part;
}

static json_t *paths_of(const json_t *document)
{
    return json_object_get(json_object_get(document, "storyboard"), "paths");
}

static enum status find_parts(struct import_writer *writer, struct waiting *waiting,
                              struct error *error)
{
    const json_t *paths = paths_of(waiting->document);
    waiting->map = find_part(writer, PART_MAP, json_object_get(waiting->document, "map"));
    waiting->paths = calloc(json_array_size(paths) + 1, sizeof *waiting->paths);
    if (waiting->paths == NULL) {
        return no_memory(writer, error);
    }
    for (size_t i = 0; i < json_array_size(paths); i++) {
        json_t *path = json_array_get(paths, i);
        bool is_long = json_array_size(json_object_get(path, "points")) >= PATH_POINTS_MIN;
        waiting->paths[i] = is_long ? find_part(writer, PART_PATH, path) : NULL;
    }
    return STATUS_OK;
}

/* Reference to the file of a part that others have too; *out stays NULL where none has. */
static enum status refer(struct import_writer *writer, struct part *part, const json_t *value,
                         json_t **out, struct error *error)
{
    if (part == NULL || part->documents < 2) {
        return STATUS_OK;
    }
    char tail[16];
    char path[LIMIT_PATH_BYTES];
    bool is_new = part->number == 0;
    part->number = is_new ? ++writer->files[part->kind] : part->number;
    snprintf(tail, sizeof tail, "-%s", part_names[part->kind]);
    const char *name = name_file(writer, tail, part->number, path);
    TRY(is_new ? write_json(writer, path, value, error) : STATUS_OK);
    *out = reference_to(name);
    return *out != NULL ? STATUS_OK : no_memory(writer, error);
}

static enum status refer_to_parts(struct import_writer *writer, const struct waiting *waiting,
                                  struct error *error)
{
    json_t *document = waiting->document;
    json_t *paths = paths_of(document);
    json_t *reference = NULL;
    TRY(refer(writer, waiting->map, json_object_get(document, "map"), &reference, error));
    if (reference != NULL && json_object_set_new(document, "map", reference) != 0) {
        return no_memory(writer, error);
    }
    for (size_t i = 0; i < json_array_size(paths); i++) {
        reference = NULL;
        TRY(refer(writer, waiting->paths[i], json_array_get(paths, i), &reference, error));
        if (reference != NULL && json_array_set_new(paths, i, reference) != 0) {
            return no_memory(writer, error);
        }
    }
    return STATUS_OK;
}

/* ---- all ---- */

static void waiting_finish(struct waiting *waiting)
{
    json_decref(waiting->document);
    free(waiting->paths);
    *waiting = (struct waiting){0};
}

/* Writes the document that has waited longest. */
static enum status settle_first(struct import_writer *writer, struct error *error)
{
    struct waiting *waiting = &writer->waiting[writer->first];
    char path[LIMIT_PATH_BYTES];
    const char *name = name_file(writer, "", waiting->number, path);
    enum status status = refer_to_parts(writer, waiting, error);
    THEN(status, write_json(writer, path, waiting->document, error));
    if (status == STATUS_OK && json_array_append_new(writer->suite, reference_to(name)) != 0) {
        status = no_memory(writer, error);
    }
    waiting_finish(waiting);
    writer->first = (writer->first + 1) % WAITING_MAX;
    writer->waiting_count--;
    return status;
}

enum status import_writer_create(const char *out, struct import_writer **made, struct error *error)
{
    size_t stem = strlen(out);
    struct import_writer *writer = calloc(1, sizeof *writer);
    TRY(memory_check(writer, error, "%s: out of memory", out));
    writer->out = out;
    writer->stem_bytes = stem > 5 && strcmp(out + stem - 5, ".json") == 0 ? stem - 5 : stem;
    writer->taken = json_object();
    writer->suite = json_array();
    if (writer->taken == NULL || writer->suite == NULL) {
        enum status status = no_memory(writer, error);
        import_writer_destroy(writer);
        return status;
    }
    *made = writer;
    return STATUS_OK;
}

void import_writer_destroy(struct import_writer *writer)
{
    for (size_t i = 0; writer != NULL && i < WAITING_MAX; i++) {
        waiting_finish(&writer->waiting[i]);
    }
    for (size_t i = 0; writer != NULL && i < SEEN_MAX; i++) {
        json_decref(writer->seen[i].value);
    }
    if (writer != NULL) {
        json_decref(writer->taken);
        json_decref(writer->suite);
    }
    free(writer);
}

enum status import_writer_take(void *taker, json_t *document, struct error *error)
{
    struct import_writer *writer = taker;
    enum status status =
        writer->waiting_count == WAITING_MAX ? settle_first(writer, error) : STATUS_OK;
    THEN(status, make_id_unique(writer, document, error));
    if (status != STATUS_OK) {
        json_decref(document);
        return status;
    }
    size_t at = (writer->first + writer->waiting_count++) % WAITING_MAX;
    writer->waiting[at] = (struct waiting){.document = document, .number = ++writer->count};
    return find_parts(writer, &writer->waiting[at], error);
}

static enum status write_suite(const struct import_writer *writer, struct error *error)
{
    json_t *suite = json_pack("{s:s, s:s, s:O}", "id", "imported", "title", "Imported scenarios",
                              "scenarios", writer->suite);
    char *text = suite != NULL ? json_dumps(suite, JSON_INDENT(2)) : NULL;
    enum status status =
        text != NULL ? write_whole(writer->out, text, error) : no_memory(writer, error);
    free(text);
    json_decref(suite);
    return status;
}

enum status import_writer_end(struct import_writer *writer, size_t *count, struct error *error)
{
    *count = writer->count;
    if (writer->count == 1) {
        return write_json(writer, writer->out, writer->waiting[writer->first].document, error);
    }
    while (writer->waiting_count > 0) {
        TRY(settle_first(writer, error));
    }
    return write_suite(writer, error);
}
