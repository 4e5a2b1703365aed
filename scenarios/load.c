/*
 * Loading: one file or one canonical text to a concrete, validated scenario document.
 */
#include "scenarios/resolve.h"
#include "scenarios/scenarios.h"
#include "schemas/scenario_json.h"

#include <stdlib.h>
#include <string.h>

void scenario_destroy(struct scenario_document *document)
{
    if (document != NULL) {
        arena_finish(&document->arena);
        free(document);
    }
}

/* Canonical text and its hash; the text moves into the document's arena. */
static enum status seal(const char *name, struct scenario_document *document, struct error *error)
{
    json_t *json = scenario_encode(&document->scenario);
    char *text = json != NULL ? json_canonical_text(json) : NULL;
    json_decref(json);
    TRY(memory_check(text, error, "%s: out of memory", name));
    document->canonical_bytes = strlen(text);
    document->canonical = arena_copy_text(&document->arena, text, document->canonical_bytes);
    free(text);
    if (document->canonical == NULL) {
        return error_set(error, STATUS_LIMIT,
                         "%s: expected a scenario of at most %zu bytes in memory, found more", name,
                         document->arena.limit_bytes);
    }
    sha256_hex(document->canonical, document->canonical_bytes, document->hash);
    return STATUS_OK;
}

enum status scenario_document_create(const char *name, const json_t *resolved, bool lanes_checked,
                                     struct scenario_document **out, struct errors *errors,
                                     struct error *error)
{
    struct scenario_document *document = calloc(1, sizeof *document);
    TRY(memory_check(document, error, "%s: out of memory", name));
    arena_init(&document->arena, LIMIT_SCENARIO_ARENA_BYTES);
    enum status status =
        scenario_decode_all(name, resolved, &document->arena, &document->scenario, errors, error);
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
    bool map_checked;
    uint32_t before = errors_count(errors);
    TRY(scenario_resolve(written, symbols, id, cache, &resolved, &map_checked, errors, error));
    enum status status =
        changes != NULL ? changes_apply(changes, written->file, resolved, error) : STATUS_OK;
    if (status == STATUS_OK && errors_count(errors) > before) {
        status = find_further(written->file, resolved, errors, error);
    }
    THEN(status,
         scenario_document_create(written->file, resolved, map_checked, &document, errors, error));
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
    THEN(status, scenario_document_create(name, root, false, out, NULL, error));
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
    enum status status = scenario_document_create(name, json, false, out, NULL, error);
    json_decref(json);
    return status;
}
