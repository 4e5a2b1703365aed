/*
 * Loading: one file or one canonical text to a concrete, validated scenario document.
 */
#include "base/check.h"
#include "base/sha256.h"
#include "scenarios/resolve.h"
#include "scenarios/scenarios.h"
#include "schemas/scenario_json.h"
#include "schemas/storyboard/storyboard_paths.h"

#include <stdlib.h>
#include <string.h>

void scenario_destroy(struct scenario_document *document)
{
    if (document != NULL) {
        shared_map_unref(document->map);
        story_paths_unref(document->paths);
        arena_finish(&document->arena);
        free(document);
    }
}

/* Puts the text of a shared map in its place. */
static char *insert_map(const char *text, const struct shared_map *map)
{
    /* Within texts a quotation mark stands behind a backslash, and no other member has the name. */
    static const char mark[] = ",\"map\":";
    static const char nothing[] = "null";
    size_t map_bytes;
    const char *map_text = shared_map_text(map, &map_bytes);
    const char *found = strstr(text, mark);
    CHECK(found != NULL);
    const char *rest = found + sizeof mark - 1 + sizeof nothing - 1;
    size_t head_bytes = (size_t)(found - text) + sizeof mark - 1;
    size_t rest_bytes = strlen(rest) + 1;
    char *whole = malloc(head_bytes + map_bytes + rest_bytes);
    if (whole != NULL) {
        memcpy(whole, text, head_bytes);
        memcpy(whole + head_bytes, map_text, map_bytes);
        memcpy(whole + head_bytes + map_bytes, rest, rest_bytes);
    }
    return whole;
}

/* NULL: out of memory. */
static char *write_canonical(const struct scenario_document *document)
{
    const struct scenario_shared shared = {.map_json = document->map != NULL ? json_null() : NULL};
    json_t *json = scenario_encode_on(&document->scenario, &shared);
    char *text = json != NULL ? json_canonical_text(json) : NULL;
    json_decref(json);
    if (text == NULL || document->map == NULL) {
        return text;
    }
    char *whole = insert_map(text, document->map);
    free(text);
    return whole;
}

enum status scenario_canonical_text(const struct scenario_document *document, char **text,
                                    size_t *bytes, struct error *error)
{
    char *made =
        document->canonical != NULL ? strdup(document->canonical) : write_canonical(document);
    TRY(memory_check(made, error, "%s: out of memory", document->scenario.id));
    *text = made;
    *bytes = strlen(made);
    return STATUS_OK;
}

/* Canonical text and its hash; the text moves into the document's arena, but of one that shares
 * most of it. */
static enum status seal(const char *name, struct scenario_document *document, struct error *error)
{
    char *text = write_canonical(document);
    TRY(memory_check(text, error, "%s: out of memory", name));
    size_t bytes = strlen(text);
    sha256_hex(text, bytes, document->hash);
    if (document->map == NULL) {
        document->canonical_bytes = bytes;
        document->canonical = arena_copy_text(&document->arena, text, bytes);
    }
    free(text);
    return document->map != NULL || document->canonical != NULL
               ? STATUS_OK
               : error_set(error, STATUS_LIMIT,
                           "%s: expected a scenario of at most %zu bytes in memory, found more",
                           name, document->arena.limit_bytes);
}

enum status scenario_document_create(const char *name, const json_t *resolved, bool lanes_checked,
                                     struct shared_map *map, struct story_paths *paths,
                                     struct scenario_document **out, struct errors *errors,
                                     struct error *error)
{
    const struct scenario_shared shared = {.map = map != NULL ? shared_map_record(map) : NULL,
                                           .paths = paths};
    struct scenario_document *document = calloc(1, sizeof *document);
    TRY(memory_check(document, error, "%s: out of memory", name));
    arena_init(&document->arena, LIMIT_SCENARIO_ARENA_BYTES);
    document->map = map != NULL ? shared_map_ref(map) : NULL;
    document->paths = story_paths_ref(paths);
    enum status status = scenario_decode_on(name, resolved, &shared, &document->arena,
                                            &document->scenario, errors, error);
    THEN(status, scenario_route_complete(name, &document->scenario, &document->arena, error));
    THEN(status, scenario_validate_parts(name, &document->scenario, lanes_checked, errors, error));
    THEN(status, seal(name, document, error));
    if (status != STATUS_OK) {
        scenario_destroy(document);
        return status;
    }
    *out = document;
    return STATUS_OK;
}

/* Decodes, completes and validates. */
static enum status check_imported(const char *name, const json_t *json,
                                  const struct scenario_shared *shared, struct arena *arena,
                                  struct scenario *out, struct error *error)
{
    TRY(scenario_decode_on(name, json, shared, arena, out, NULL, error));
    TRY(scenario_route_complete(name, out, arena, error));
    return scenario_validate_parts(name, out, shared->map != NULL, NULL, error);
}

enum status scenario_write_json(const char *name, const struct scenario *scenario, json_t **map,
                                struct story_paths *paths, json_t **document, struct error *error)
{
    struct arena arena;
    struct scenario loaded;
    struct scenario_shared shared = {
        .map = *map != NULL ? &scenario->map : NULL, .map_json = *map, .paths = paths};
    json_t *json = scenario_encode_on(scenario, &shared);
    TRY(memory_check(json, error, "%s: out of memory", name));
    arena_init(&arena, LIMIT_SCENARIO_ARENA_BYTES);
    enum status status = check_imported(name, json, &shared, &arena, &loaded, error);
    if (status == STATUS_OK) {
        shared.map_json = json_object_get(json, "map");
        *document = scenario_encode_on(&loaded, &shared);
        status = memory_check(*document, error, "%s: out of memory", name);
    }
    if (status == STATUS_OK && *map == NULL) {
        *map = json_incref(json_object_get(json, "map"));
    }
    json_decref(json);
    arena_finish(&arena);
    return status;
}

enum status scenario_write_text(const char *name, const struct scenario *scenario, char **text,
                                struct error *error)
{
    json_t *map = NULL;
    json_t *document = NULL;
    enum status status = scenario_write_json(name, scenario, &map, NULL, &document, error);
    if (status == STATUS_OK) {
        *text = json_canonical_text(document);
        status = memory_check(*text, error, "%s: out of memory", name);
    }
    json_decref(document);
    json_decref(map);
    return status;
}

/* The values with which the document was resolved: what a suite covers of its parameters. */
static enum status keep_parameters(const char *name, const struct symbol_table *symbols,
                                   struct scenario_document *document, struct error *error)
{
    json_t *values = json_object();
    for (uint32_t i = 0; i < symbols->count; i++) {
        const struct symbol *symbol = &symbols->items[i];
        json_object_set_new(values, symbol->name,
                            symbol->state == SYMBOL_WORD ? json_string(symbol->word)
                                                         : json_real(symbol->number));
    }
    char *text = values != NULL ? json_canonical_text(values) : NULL;
    json_decref(values);
    TRY(memory_check(text, error, "%s: out of memory", name));
    document->parameters = arena_copy_text(&document->arena, text, strlen(text));
    free(text);
    return document->parameters != NULL
               ? STATUS_OK
               : error_set(error, STATUS_LIMIT, "%s: expected a smaller scenario", name);
}

/* Form alone, of a document whose places were wrong; their errors are in the list. */
static enum status find_further(const char *name, const json_t *resolved, struct errors *errors,
                                struct error *error)
{
    struct arena arena;
    struct scenario scenario;
    arena_init(&arena, LIMIT_SCENARIO_ARENA_BYTES);
    enum status status = errors_keep(
        errors, scenario_decode_all(name, resolved, &arena, &scenario, errors, error), error);
    arena_finish(&arena);
    THEN(status, errors_end(errors, 0, error));
    return status;
}

enum status scenario_build(const struct json_cursor *written, struct symbol_table *symbols,
                           const char *id, const struct scenario_changes *changes,
                           struct part_cache *cache, struct scenario_document **out,
                           struct errors *errors, struct error *error)
{
    struct scenario_document *document = NULL;
    json_t *resolved;
    struct shared_map *map;
    bool map_checked;
    uint32_t before = errors_count(errors);
    TRY(scenario_resolve(written, symbols, id, cache, &resolved, &map_checked, &map, errors,
                         error));
    enum status status =
        changes != NULL ? changes_apply(changes, written->file, resolved, error) : STATUS_OK;
    if (status == STATUS_OK && errors_count(errors) > before) {
        status = find_further(written->file, resolved, errors, error);
    }
    THEN(status, scenario_document_create(written->file, resolved, map_checked, map, cache->paths,
                                          &document, errors, error));
    json_decref(resolved);
    if (status == STATUS_OK) {
        /* Last, because a mistake elsewhere is often what leaves a parameter unused. */
        status = parameters_check_used(written, symbols, error);
    }
    THEN(status, keep_parameters(written->file, symbols, document, error));
    if (status != STATUS_OK) {
        scenario_destroy(document);
        return status;
    }
    *out = document;
    return STATUS_OK;
}

enum status scenario_load_written(const struct json_cursor *written,
                                  const struct json_cursor *overrides,
                                  struct scenario_document **out, struct error *error)
{
    struct symbol_table symbols;
    struct part_cache cache = {0};
    TRY(parameters_evaluate(written, overrides, &symbols, error));
    enum status status = scenario_build(written, &symbols, NULL, NULL, &cache, out, NULL, error);
    part_cache_finish(&cache);
    return status;
}

enum status scenario_load_text(const char *name, const char *text, size_t bytes,
                               struct scenario_document **out, struct error *error)
{
    json_t *root = NULL;
    if (bytes > LIMIT_SCENARIO_ARENA_BYTES) {
        return error_set(error, STATUS_LIMIT, "%s: expected at most %d bytes, found %zu", name,
                         LIMIT_SCENARIO_ARENA_BYTES, bytes);
    }
    enum status status = json_read_text(name, text, bytes, &root, error);
    THEN(status, scenario_document_create(name, root, false, NULL, NULL, out, NULL, error));
    json_decref(root);
    return status;
}

static bool branch_within(const struct branch *branch, uint32_t ticks)
{
    bool within = branch->at_tick < ticks;
    for (uint32_t i = 0; i < branch->intervention_count; i++) {
        within = within && branch->interventions[i].tick < ticks;
    }
    return within;
}

enum status scenario_clip(const char *name, const struct scenario_document *document,
                          uint32_t ticks, struct scenario_document **out, struct error *error)
{
    struct scenario clipped = document->scenario;
    clipped.horizon_ticks = ticks;
    clipped.branch_count = 0;
    clipped.branches = calloc(document->scenario.branch_count + 1, sizeof *clipped.branches);
    TRY(memory_check(clipped.branches, error, "%s: out of memory", name));
    for (uint32_t i = 0; i < document->scenario.branch_count; i++) {
        if (branch_within(&document->scenario.branches[i], ticks)) {
            clipped.branches[clipped.branch_count++] = document->scenario.branches[i];
        }
    }
    json_t *json = scenario_encode(&clipped);
    free(clipped.branches);
    TRY(memory_check(json, error, "%s: out of memory", name));
    enum status status = scenario_document_create(name, json, false, NULL, NULL, out, NULL, error);
    json_decref(json);
    return status;
}
