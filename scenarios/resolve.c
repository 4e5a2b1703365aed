/*
 * Resolving a document: parameters substituted, map inlined or shared, places computed. See
 * resolve.h.
 */
#include "scenarios/resolve.h"
#include "base/check.h"
#include "schemas/storyboard/storyboard_paths.h"

#include "schemas/scenario_json.h"

#include <stdlib.h>
#include <string.h>

enum { PART_SEARCH_LEVELS = 3 }; /* the document's directory and the two above it */

/* ---- maps that documents share: nobody changes one; its documents belong to one thread ---- */

struct shared_map {
    uint32_t references;
    bool counted;
    struct arena arena;
    struct map map;
    char *text; /* canonical, owned */
    size_t text_bytes;
};

/* The text that a document of the map has of it. */
static enum status write_text(const char *path, struct shared_map *made, struct error *error)
{
    const struct scenario around = {.map = made->map};
    json_t *json = scenario_encode(&around);
    const json_t *map = json != NULL ? json_object_get(json, "map") : NULL;
    made->text = map != NULL ? json_canonical_text(map) : NULL;
    json_decref(json);
    TRY(memory_check(made->text, error, "%s: out of memory", path));
    made->text_bytes = strlen(made->text);
    return STATUS_OK;
}

enum status shared_map_create(const char *path, const json_t *value, struct shared_map **out,
                              struct error *error)
{
    struct shared_map *made = calloc(1, sizeof *made);
    TRY(memory_check(made, error, "%s: out of memory", path));
    made->references = 1;
    arena_init(&made->arena, LIMIT_SCENARIO_ARENA_BYTES);
    enum status status = map_decode(path, value, &made->arena, &made->map, error);
    THEN(status, map_validate(path, "$", &made->map, true, error));
    THEN(status, write_text(path, made, error));
    if (status != STATUS_OK) {
        shared_map_unref(made);
        return status;
    }
    *out = made;
    return STATUS_OK;
}

struct shared_map *shared_map_ref(struct shared_map *map)
{
    map->references++;
    return map;
}

void shared_map_unref(struct shared_map *map)
{
    if (map != NULL && --map->references == 0) {
        arena_finish(&map->arena);
        free(map->text);
        free(map);
    }
}

const struct map *shared_map_record(const struct shared_map *map)
{
    return &map->map;
}

const char *shared_map_text(const struct shared_map *map, size_t *bytes)
{
    *bytes = map->text_bytes;
    return map->text;
}

size_t shared_map_bytes_once(struct shared_map *map)
{
    bool counted = map->counted;
    map->counted = true;
    return counted ? 0 : sizeof *map + map->arena.used_bytes + map->text_bytes;
}

/* ---- files ---- */

static json_t *mutable(const json_t *value)
{
    return (json_t *)(uintptr_t)value;
}

static enum status no_memory(const struct json_cursor *cursor, struct error *error)
{
    return json_fail_status(cursor, STATUS_NO_MEMORY, error, "out of memory");
}

/* ---- file names ---- */

enum status file_reference_check(const struct json_cursor *cursor, char out[LIMIT_SPEC_BYTES],
                                 struct error *error)
{
    char text[LIMIT_SPEC_BYTES];
    TRY(json_value_text(cursor, text, sizeof text, error));
    bool climbs = false;
    for (const char *step = text; step != NULL && !climbs;) {
        const char *slash = strchr(step, '/');
        size_t bytes = slash != NULL ? (size_t)(slash - step) : strlen(step);
        climbs = bytes == 2 && memcmp(step, "..", 2) == 0;
        step = slash != NULL ? slash + 1 : NULL;
    }
    if (text[0] == '\0' || text[0] == '/' || climbs) {
        return json_fail(cursor, error,
                         "expected a relative file name without \"..\", found \"%s\"", text);
    }
    memcpy(out, text, sizeof text);
    return STATUS_OK;
}

enum status file_path_join(const char *path, int up_count, const char *name,
                           char out[LIMIT_PATH_BYTES], struct error *error)
{
    const char *slash = strrchr(path, '/');
    size_t used = slash != NULL ? (size_t)(slash - path) + 1 : 0;
    size_t bytes = strlen(name);
    if (used + 3 * (size_t)up_count + bytes >= LIMIT_PATH_BYTES) {
        return error_set(error, STATUS_LIMIT,
                         "%.512s: expected a path of at most %d bytes, found a "
                         "longer one",
                         path, LIMIT_PATH_BYTES - 1);
    }
    memcpy(out, path, used);
    for (int i = 0; i < up_count; i++, used += 3) {
        memcpy(out + used, "../", 3);
    }
    memcpy(out + used, name, bytes + 1);
    return STATUS_OK;
}

/* ---- parts in files of their own ---- */

void part_cache_finish(struct part_cache *cache)
{
    story_paths_unref(cache->paths);
    cache->paths = NULL;
    while (cache->files != NULL) {
        struct part_file *file = cache->files;
        cache->files = file->next;
        json_decref(file->value);
        shared_map_unref(file->map);
        lane_table_finish(&file->lanes);
        free(file->path);
        free(file);
    }
}

/* Puts the short forms of a map in full; `lanes` is to be finished also on failure. */
static enum status complete_map(const struct json_cursor *map, struct lane_table *lanes,
                                struct error *error)
{
    if (!json_is_object(map->value)) {
        return json_fail(map, error, "expected an object, a map");
    }
    json_object_del(mutable(map->value), "$schema");
    TRY(lane_table_build(map, lanes, error));
    return lane_table_resolve_bands(map, lanes, error);
}

static enum status read_part_file(struct part_file *file, struct error *error)
{
    struct symbol_table none = {0};
    TRY(json_read_file(file->path, LIMIT_DOCUMENT_BYTES, &file->value, error));
    if (file->kind == PART_PATH) {
        return STATUS_OK;
    }
    TRY(parameters_substitute(file->path, file->value, false, &none, NULL, error));
    struct json_cursor map = json_cursor_root(file->path, file->value);
    TRY(complete_map(&map, &file->lanes, error));
    return shared_map_create(file->path, file->value, &file->map, error);
}

static enum status find_part_file(const struct json_cursor *reference, const char *what,
                                  char path[LIMIT_PATH_BYTES], struct stat *info,
                                  struct error *error)
{
    char name[LIMIT_SPEC_BYTES];
    TRY(file_reference_check(reference, name, error));
    for (int up = 0; up < PART_SEARCH_LEVELS; up++) {
        TRY(file_path_join(reference->file, up, name, path, error));
        if (stat(path, info) == 0) {
            return STATUS_OK;
        }
    }
    return json_fail_status(reference, STATUS_NOT_FOUND, error,
                            "expected a %s file in the document's directory or the two above it, "
                            "found no \"%s\"",
                            what, name);
}

/* Files are told apart by inode: documents of several directories share one map. */
static enum status cached_part(const struct json_cursor *reference, enum part_kind kind,
                               struct part_cache *cache, const struct part_file **out,
                               struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    struct stat info;
    TRY(find_part_file(reference, kind == PART_MAP ? "map" : "path", path, &info, error));
    for (const struct part_file *file = cache->files; file != NULL; file = file->next) {
        if (file->kind == kind && file->device == info.st_dev && file->inode == info.st_ino) {
            *out = file;
            return STATUS_OK;
        }
    }
    struct part_file *file = calloc(1, sizeof *file);
    if (file == NULL) {
        return no_memory(reference, error);
    }
    file->kind = kind;
    file->device = info.st_dev;
    file->inode = info.st_ino;
    file->path = strdup(path);
    cache->paths = cache->paths != NULL ? cache->paths : story_paths_create(true);
    enum status status = file->path == NULL || cache->paths == NULL ? no_memory(reference, error)
                                                                    : read_part_file(file, error);
    if (status != STATUS_OK) {
        struct part_cache failed = {.files = file};
        part_cache_finish(&failed);
        return status;
    }
    file->next = cache->files;
    cache->files = file;
    *out = file;
    return STATUS_OK;
}

/* The file's map with the document's own areas in front, so that an error about one of them names
 * its place in the document. */
static enum status merge_map(const struct json_cursor *map, const struct part_file *file,
                             struct error *error)
{
    static const char *const lists[] = {"drivable", "crosswalks", "surfaces", "signals"};
    json_t *object = mutable(map->value);
    json_object_del(object, "file");
    for (size_t i = 0; i < COUNT_OF(lists); i++) {
        json_t *own = json_object_get(object, lists[i]);
        json_t *base = json_object_get(file->value, lists[i]);
        if (own != NULL && base != NULL && json_array_extend(own, base) != 0) {
            struct json_cursor member = json_cursor_member(map, lists[i]);
            return json_fail(&member, error, "expected an array");
        }
    }
    if (json_object_update_missing(object, file->value) != 0) {
        return no_memory(map, error);
    }
    return STATUS_OK;
}

/* *whole: nothing of the document's own beside the file. */
static enum status resolve_map_reference(const struct json_cursor *map, struct part_cache *cache,
                                         const struct part_file **file, bool *whole,
                                         struct error *error)
{
    static const char *const keys[] = {"file",     "drivable", "crosswalks",
                                       "surfaces", "signals",  NULL};
    struct json_cursor reference = json_cursor_member(map, "file");
    struct lane_table borrowed;
    TRY(json_object_begin(map, keys, error));
    TRY(cached_part(&reference, PART_MAP, cache, file, error));
    *whole = json_object_size(map->value) == 1;
    borrowed = (*file)->lanes; /* only its count of made points is written to */
    borrowed.points_made = 0;
    TRY(lane_table_resolve_bands(map, &borrowed, error));
    return merge_map(map, *file, error);
}

/* Paths of a storyboard that stand in files of their own; what is wrong with their form is found
 * where the document is decoded. */
static enum status resolve_paths(const struct json_cursor *top, struct part_cache *cache,
                                 struct error *error)
{
    struct json_cursor story = json_cursor_member(top, "storyboard");
    struct json_cursor list = json_cursor_member(&story, "paths");
    for (size_t i = 0; i < json_array_size(list.value); i++) {
        static const char *const keys[] = {"file", NULL};
        const struct part_file *file;
        struct json_cursor path = json_cursor_element(&list, i);
        struct json_cursor reference = json_cursor_member(&path, "file");
        if (!json_cursor_present(&reference)) {
            continue;
        }
        TRY(json_object_begin(&path, keys, error));
        TRY(cached_part(&reference, PART_PATH, cache, &file, error));
        if (json_array_set(mutable(list.value), i, file->value) != 0) {
            return no_memory(&path, error);
        }
    }
    return STATUS_OK;
}

/* ---- the document ---- */

/* Places are last: what they get wrong is in the list where there is one, and does not count. */
static enum status resolve_in_place(const struct json_cursor *top, struct part_cache *cache,
                                    bool *map_checked, struct shared_map **shared,
                                    struct errors *errors, struct error *error)
{
    struct json_cursor map = json_cursor_member(top, "map");
    *shared = NULL;
    if (json_object_get(map.value, "file") != NULL) {
        const struct part_file *file;
        bool whole;
        TRY(resolve_map_reference(&map, cache, &file, &whole, error));
        *map_checked = true;
        *shared = whole ? file->map : NULL;
        return errors_keep(errors, scenario_place(top, &file->lanes, errors, error), error);
    }
    struct lane_table lanes = {0};
    enum status status = complete_map(&map, &lanes, error);
    THEN(status, errors_keep(errors, scenario_place(top, &lanes, errors, error), error));
    lane_table_finish(&lanes);
    *map_checked = false;
    return status;
}

enum status scenario_resolve(const struct json_cursor *written, struct symbol_table *symbols,
                             const char *id, struct part_cache *cache, json_t **resolved,
                             bool *map_checked, struct shared_map **map, struct errors *errors,
                             struct error *error)
{
    if (!json_is_object(written->value)) {
        return json_fail(written, error, "expected an object, a scenario");
    }
    json_t *root = json_deep_copy(written->value);
    if (root == NULL) {
        return no_memory(written, error);
    }
    struct json_cursor top = json_cursor_root(written->file, root);
    json_object_del(root, "$schema");
    json_object_del(root, "parameters");
    /* Neither what a search varies nor what a cross does is part of one scenario. */
    json_object_del(root, "ranges");
    json_object_del(root, "cross");
    json_object_del(root, "comment");
    enum status status = parameters_substitute(written->file, root, true, symbols, errors, error);
    if (status == STATUS_OK && id != NULL &&
        json_object_set_new(root, "id", json_string(id)) != 0) {
        status = no_memory(written, error);
    }
    THEN(status, resolve_paths(&top, cache, error));
    THEN(status, resolve_in_place(&top, cache, map_checked, map, errors, error));
    if (status != STATUS_OK) {
        json_decref(root);
        return status;
    }
    *resolved = root;
    return STATUS_OK;
}
