/*
 * Identity of a suite: the name of a directory, ids that differ, and its hash: over what its
 * entries ask for, in order, and nothing else, so that the same content has the same hash wherever
 * its files lie. A rig that a command offers to every scenario makes it another suite.
 */
#include "scenarios/resolve.h"
#include "schemas/scenario_id.h"
#include "schemas/scenario_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_entry_ids(const void *a, const void *b)
{
    const struct suite_entry *const *left = a;
    const struct suite_entry *const *right = b;
    int order = strcmp((*left)->document->scenario.id, (*right)->document->scenario.id);
    return order != 0 ? order : (*left > *right) - (*left < *right);
}

enum status suite_check_ids(const struct suite *suite, struct error *error)
{
    const struct suite_entry **sorted = malloc(suite->entry_count * sizeof *sorted);
    if (suite->entry_count > 0) {
        TRY(memory_check(sorted, error, "%s: out of memory", suite->id));
    }
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        sorted[i] = &suite->entries[i];
    }
    qsort(sorted, suite->entry_count, sizeof *sorted, compare_entry_ids);
    enum status status = STATUS_OK;
    for (uint32_t i = 1; i < suite->entry_count && status == STATUS_OK; i++) {
        const char *id = sorted[i]->document->scenario.id;
        if (strcmp(id, sorted[i - 1]->document->scenario.id) == 0) {
            bool same = strcmp(sorted[i]->place, sorted[i - 1]->place) == 0;
            status = error_set(
                error, STATUS_BAD_INPUT,
                "%s: expected an id that is unique in the suite, found \"%s\" %s%s: %s",
                sorted[i]->place, id, same ? "twice" : "also from ",
                same ? "" : sorted[i - 1]->place,
                same ? "a grid value is repeated, or the entry's \"id\" lacks a {parameter}"
                     : "an entry's \"id\" can make it unique");
        }
    }
    free(sorted);
    return status;
}

void suite_name_directory(struct suite *suite, const char *path)
{
    char name[LIMIT_TEXT_BYTES];
    size_t bytes = strlen(path);
    while (bytes > 0 && path[bytes - 1] == '/') {
        bytes--;
    }
    size_t start = bytes;
    while (start > 0 && path[start - 1] != '/') {
        start--;
    }
    snprintf(name, sizeof name, "%.*s", (int)(bytes - start), path + start);
    scenario_id_make(name[0] != '\0' ? name : "suite", "", suite->id);
    snprintf(suite->title, sizeof suite->title, "%s", name);
}

void suite_hash(struct suite *suite)
{
    struct sha256 hash;
    uint8_t digest[SHA256_BYTES];
    sha256_init(&hash);
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        const struct suite_entry *entry = &suite->entries[i];
        char line[64];
        sha256_update(&hash, entry->document->hash, SHA256_HEX_BYTES);
        int bytes = snprintf(line, sizeof line, "%d,%u,%u:", entry->priority, entry->seed_count,
                             entry->planner_count);
        sha256_update(&hash, line, (size_t)bytes);
        for (uint32_t k = 0; k < entry->seed_count; k++) {
            bytes = snprintf(line, sizeof line, "%llu,", (unsigned long long)entry->seeds[k]);
            sha256_update(&hash, line, (size_t)bytes);
        }
        for (uint32_t k = 0; k < entry->planner_count; k++) {
            sha256_update(&hash, entry->planners[k], strlen(entry->planners[k]) + 1);
        }
    }
    sha256_final(&hash, digest);
    sha256_to_hex(digest, suite->hash);
}

/* ---- rig ---- */

/* The scenario with this rig, a document of its own. */
static enum status with_rig(const struct suite_entry *entry, const json_t *rig,
                            struct scenario_document **out, struct error *error)
{
    const struct scenario_document *was = entry->document;
    json_t *json = scenario_encode(&was->scenario);
    if (json == NULL || json_object_set(json, "rig", (json_t *)(uintptr_t)rig) != 0) {
        json_decref(json);
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", entry->file);
    }
    enum status status =
        scenario_document_create(entry->file, json, true, was->map, NULL, out, NULL, error);
    json_decref(json);
    if (status == STATUS_OK && was->parameters != NULL) {
        (*out)->parameters =
            arena_copy_text(&(*out)->arena, was->parameters, strlen(was->parameters));
        status = memory_check((*out)->parameters, error, "%s: out of memory", entry->file);
    }
    return status;
}

enum status suite_set_rig(struct suite *suite, const json_t *rig, struct error *error)
{
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        struct scenario_document *document = NULL;
        enum status status = with_rig(&suite->entries[i], rig, &document, error);
        if (status != STATUS_OK) {
            scenario_destroy(document);
            return status;
        }
        scenario_destroy((struct scenario_document *)(uintptr_t)suite->entries[i].document);
        suite->entries[i].document = document;
    }
    suite_hash(suite);
    return STATUS_OK;
}
