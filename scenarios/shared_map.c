/*
 * Maps that documents of a suite have from one file.
 *
 * Invariant: a map is decoded and checked where its file is read, and nobody changes it then; it
 * lives as long as the last document that refers to it. Documents of one map belong to one thread.
 */
#include "scenarios/resolve.h"
#include "schemas/scenario_json.h"

#include <stdlib.h>
#include <string.h>

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
