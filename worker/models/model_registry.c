/*
 * Reading, changing and writing registry.json. See model_registry.h.
 */
#include "worker/models/model_registry.h"

#include "base/check.h"
#include "base/file.h"
#include "schemas/json_read.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REGISTRY_FORMAT "swerve-models/1"

enum { REGISTRY_BYTES_MAX = 1 << 20 };

static const enum tier learned_tiers[] = {TIER_STUDENT, TIER_TEACHER};

enum status registry_path(const char *directory, const char *name, const char *extension,
                          char out[LIMIT_PATH_BYTES], struct error *error)
{
    if (name[0] == '\0' || name[0] == '.' || strchr(name, '/') != NULL ||
        strlen(name) >= LIMIT_ID_BYTES) {
        return error_set(error, STATUS_BAD_INPUT,
                         "model \"%.100s\": expected a plain name of at most %d bytes", name,
                         LIMIT_ID_BYTES - 1);
    }
    int bytes = snprintf(out, LIMIT_PATH_BYTES, "%s/%s%s", directory, name, extension);
    if (bytes < 0 || bytes >= LIMIT_PATH_BYTES) {
        return error_set(error, STATUS_LIMIT, "models directory %.200s..: the path is too long",
                         directory);
    }
    return STATUS_OK;
}

/* ---- reading ---- */

static enum status read_entry(const struct json_cursor *cursor, struct registry_entry *out,
                              struct error *error)
{
    static const char *const keys[] = {"name", "hash", "promoted_s", NULL};
    TRY(json_object_begin(cursor, keys, error));
    TRY(json_member_text(cursor, "name", true, out->name, sizeof out->name, error));
    TRY(json_member_text(cursor, "hash", true, out->hash, sizeof out->hash, error));
    TRY(json_member_integer(cursor, "promoted_s", true, 0, INT64_MAX, &out->promoted_s, error));
    if (out->hash[0] != '\0' && strlen(out->hash) != SHA256_HEX_BYTES - 1) {
        return json_fail(cursor, error, "expected a hash of %d hex digits, or \"\"",
                         SHA256_HEX_BYTES - 1);
    }
    return STATUS_OK;
}

static enum status read_tier(const struct json_cursor *cursor, struct registry_tier *out,
                             struct error *error)
{
    size_t count = 0;
    enum status status = json_array_begin(cursor, 0, REGISTRY_DEPTH, &count, error);
    for (size_t i = 0; status == STATUS_OK && i < count; i++) {
        struct json_cursor element = json_cursor_element(cursor, i);
        status = read_entry(&element, &out->entries[i], error);
    }
    out->count = status == STATUS_OK ? (uint32_t)count : 0;
    return status;
}

static enum status read_registry(const char *path, struct registry *out, struct error *error)
{
    static const char *const keys[] = {"format", "student", "teacher", NULL};
    char format[LIMIT_ID_BYTES] = "";
    json_t *root = NULL;
    TRY(json_read_file(path, REGISTRY_BYTES_MAX, &root, error));
    struct json_cursor cursor = json_cursor_root(path, root);
    enum status status = json_object_begin(&cursor, keys, error);
    THEN(status, json_member_text(&cursor, "format", true, format, sizeof format, error));
    if (status == STATUS_OK && strcmp(format, REGISTRY_FORMAT) != 0) {
        status = json_fail(&cursor, error, "expected format \"%s\", found \"%s\"", REGISTRY_FORMAT,
                           format);
    }
    for (size_t i = 0; status == STATUS_OK && i < COUNT_OF(learned_tiers); i++) {
        struct json_cursor tier = json_cursor_member(&cursor, tier_names[learned_tiers[i]]);
        status = read_tier(&tier, &out->tiers[learned_tiers[i]], error);
    }
    json_decref(root);
    return status;
}

enum status registry_load(const char *directory, struct registry *out, struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    struct registry *loaded = calloc(1, sizeof *loaded);
    TRY(memory_check(loaded, error, "models: out of memory"));
    enum status status = registry_path(directory, "registry", ".json", path, error);
    if (status == STATUS_OK) {
        snprintf(loaded->directory, sizeof loaded->directory, "%s", directory);
        loaded->stored = access(path, F_OK) == 0;
        if (loaded->stored) {
            status = read_registry(path, loaded, error);
        }
    }
    for (size_t i = 0; status == STATUS_OK && !loaded->stored && i < COUNT_OF(learned_tiers); i++) {
        struct registry_tier *tier = &loaded->tiers[learned_tiers[i]];
        const char *name = tier_names[learned_tiers[i]];
        status = registry_path(directory, name, ".safetensors", path, error);
        if (status == STATUS_OK && access(path, F_OK) == 0) {
            tier->count = 1;
            snprintf(tier->entries[0].name, sizeof tier->entries[0].name, "%s", name);
        }
    }
    if (status == STATUS_OK) {
        *out = *loaded;
    }
    free(loaded);
    return status;
}

/* ---- changing ---- */

const struct registry_entry *registry_promoted(const struct registry *registry, enum tier tier)
{
    const struct registry_tier *of_tier = &registry->tiers[tier];
    return of_tier->count > 0 ? &of_tier->entries[of_tier->count - 1] : NULL;
}

void registry_promote(struct registry *registry, enum tier tier, const struct registry_entry *entry)
{
    struct registry_tier *of_tier = &registry->tiers[tier];
    if (of_tier->count == REGISTRY_DEPTH) {
        memmove(&of_tier->entries[0], &of_tier->entries[1],
                (REGISTRY_DEPTH - 1) * sizeof of_tier->entries[0]);
        of_tier->count--;
    }
    of_tier->entries[of_tier->count++] = *entry;
}

enum status registry_rollback(struct registry *registry, enum tier tier, struct error *error)
{
    struct registry_tier *of_tier = &registry->tiers[tier];
    if (of_tier->count < 2) {
        return error_set(error, STATUS_CONFLICT,
                         "%s: tier %s has no earlier promoted model to go back to",
                         registry->directory, tier_names[tier]);
    }
    of_tier->count--;
    return STATUS_OK;
}

/* ---- writing ---- */

static json_t *tier_json(const struct registry_tier *tier)
{
    json_t *list = json_array();
    for (uint32_t i = 0; i < tier->count; i++) {
        const struct registry_entry *entry = &tier->entries[i];
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:I}", "name", entry->name, "hash", entry->hash,
                                        "promoted_s", (json_int_t)entry->promoted_s));
    }
    return list;
}

enum status registry_save(const struct registry *registry, struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    TRY(registry_path(registry->directory, "registry", ".json", path, error));
    json_t *json = json_pack("{s:s, s:o, s:o}", "format", REGISTRY_FORMAT, "student",
                             tier_json(&registry->tiers[TIER_STUDENT]), "teacher",
                             tier_json(&registry->tiers[TIER_TEACHER]));
    char *text = json != NULL ? json_dumps(json, JSON_INDENT(1)) : NULL;
    json_decref(json);
    TRY(memory_check(text, error, "%s: out of memory", path));
    enum status status = file_replace(path, text, strlen(text), 0644, error);
    free(text);
    return status;
}

const char *registry_world_name(const char *hash, char out[LIMIT_ID_BYTES])
{
    snprintf(out, LIMIT_ID_BYTES, "world-%.16s", hash);
    return out;
}
