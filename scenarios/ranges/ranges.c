/*
 * Logical scenarios and their points. See ranges.h.
 */
#include "scenarios/ranges/ranges.h"

#include "base/array.h"
#include "base/check.h"
#include "scenarios/resolve.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HASH_DIGITS = 12 };

/* One logical scenario with what makes a point of it. */
struct entry {
    struct range_scenario shown;
    char *path;
    json_t *scenario;
    json_t *set; /* values that stay; NULL: none */
    struct scenario_changes changes;
};

/* A suite file that is to be read, with what it inherits. */
struct pending {
    char *path;
    struct scenario_changes changes;
};

struct range_set {
    uint32_t count;
    struct entry *entries;
    uint32_t pending_count;
    struct pending *pending; /* grows at its end, read from its start */
    uint32_t root_count;
    json_t **roots; /* documents that changes borrow from */
    json_t *no_branches;
    struct part_cache cache;
};

uint32_t range_set_count(const struct range_set *set)
{
    return set->count;
}

const struct range_scenario *range_set_scenario(const struct range_set *set, uint32_t index)
{
    CHECK(index < set->count);
    return &set->entries[index].shown;
}

void range_set_destroy(struct range_set *set)
{
    if (set == NULL) {
        return;
    }
    for (uint32_t i = 0; i < set->count; i++) {
        json_decref(set->entries[i].scenario);
        json_decref(set->entries[i].set);
        free(set->entries[i].path);
    }
    for (uint32_t i = 0; i < set->pending_count; i++) {
        free(set->pending[i].path);
    }
    for (uint32_t i = 0; i < set->root_count; i++) {
        json_decref(set->roots[i]);
    }
    part_cache_finish(&set->cache);
    json_decref(set->no_branches);
    free(set->entries);
    free(set->pending);
    free(set->roots);
    free(set);
}

/* ---- ranges of an entry ---- */

static bool is_taken(const struct range_scenario *shown, const char *name)
{
    for (uint32_t i = 0; i < shown->range_count; i++) {
        if (strcmp(shown->ranges[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Numbers span a range, unless they are one and the same; words are choices. */
static void add_range(struct range_scenario *shown, const char *name, const json_t *values)
{
    struct range range = {.name = name, .choices = values};
    size_t i;
    json_t *value;
    json_array_foreach (values, i, value) {
        double number = json_number_value(value);
        if (!json_is_number(value)) {
            range.choice_count = (uint32_t)json_array_size(values);
        }
        range.low = i == 0 || number < range.low ? number : range.low;
        range.high = i == 0 || number > range.high ? number : range.high;
    }
    if (range.choice_count == 0 && range.low == range.high) {
        range.choice_count = 1;
    }
    if (shown->range_count < LIMIT_PARAMETERS) {
        shown->ranges[shown->range_count++] = range;
    }
}

static void add_ranges(struct range_scenario *shown, const json_t *ranges, const json_t *set)
{
    const char *name;
    json_t *values;
    json_object_foreach ((json_t *)(uintptr_t)ranges, name, values) {
        if (!is_taken(shown, name) && json_object_get(set, name) == NULL) {
            add_range(shown, name, values);
        }
    }
}

/* At least one parameter has more than one value. */
static bool varies(const struct range_scenario *shown)
{
    for (uint32_t i = 0; i < shown->range_count; i++) {
        if (shown->ranges[i].choice_count != 1) {
            return true;
        }
    }
    return false;
}

static bool id_is_known(const struct range_set *set, const char *id)
{
    for (uint32_t i = 0; i < set->count; i++) {
        if (strcmp(set->entries[i].shown.id, id) == 0) {
            return true;
        }
    }
    return false;
}

/* The entry's id, or the scenario's where that is a template; numbered where it is not the first.
 */
static void name_entry(const struct range_set *set, const json_t *entry, struct entry *out)
{
    char base[LIMIT_ID_BYTES - 8];
    const char *given = json_string_value(json_object_get(entry, "id"));
    const char *own = json_string_value(json_object_get(out->scenario, "id"));
    const char *id = given != NULL && strchr(given, '{') == NULL ? given : own;
    snprintf(base, sizeof base, "%s", id != NULL ? id : "scenario");
    snprintf(out->shown.id, sizeof out->shown.id, "%s", base);
    for (unsigned n = 2; id_is_known(set, out->shown.id); n++) {
        snprintf(out->shown.id, sizeof out->shown.id, "%s-%u", base, n % 1000000);
    }
}

/* ---- reading ---- */

/* Takes over `scenario`. */
static enum status add_entry(struct range_set *set, const char *path, const json_t *entry,
                             json_t *scenario, const struct scenario_changes *changes,
                             struct error *error)
{
    struct entry made = {.scenario = scenario, .changes = *changes};
    json_t *fixed = json_object_get(entry, "set");
    name_entry(set, entry, &made);
    add_ranges(&made.shown, json_object_get(entry, "ranges"), NULL);
    add_ranges(&made.shown, json_object_get(entry, "grid"), NULL);
    add_ranges(&made.shown, json_object_get(scenario, "ranges"), fixed);
    enum status status = STATUS_OK;
    if (varies(&made.shown)) {
        /* A search drives main lines alone. */
        made.changes.branches = json_cursor_root("search", set->no_branches);
        made.set = json_incref(fixed);
        made.path = strdup(path);
        status = memory_check(made.path, error, "%s: out of memory", path);
        THEN(status, array_room(&set->entries, set->count, sizeof *set->entries, error));
        if (status == STATUS_OK) {
            made.shown.file = made.path;
            set->entries[set->count++] = made;
            return STATUS_OK;
        }
        json_decref(made.set);
        free(made.path);
    }
    json_decref(scenario);
    return status;
}

static enum status keep_root(struct range_set *set, json_t *root, struct error *error)
{
    enum status status = array_room(&set->roots, set->root_count, sizeof *set->roots, error);
    if (status != STATUS_OK) {
        json_decref(root);
        return status;
    }
    set->roots[set->root_count++] = root;
    return STATUS_OK;
}

static enum status push(struct range_set *set, const char *path,
                        const struct scenario_changes *changes, struct error *error)
{
    struct pending pending = {.path = strdup(path), .changes = *changes};
    enum status status = memory_check(pending.path, error, "%s: out of memory", path);
    THEN(status, array_room(&set->pending, set->pending_count, sizeof *set->pending, error));
    if (status != STATUS_OK) {
        free(pending.path);
        return status;
    }
    set->pending[set->pending_count++] = pending;
    return STATUS_OK;
}

static enum status referenced(const char *path, const json_t *name, char out[LIMIT_PATH_BYTES],
                              struct error *error)
{
    char checked[LIMIT_SPEC_BYTES];
    struct json_cursor reference = json_cursor_root(path, name);
    TRY(file_reference_check(&reference, checked, error));
    return file_path_join(path, 0, checked, out, error);
}

static enum status read_suite(struct range_set *set, const char *path, const json_t *root,
                              const struct scenario_changes *inherited, struct error *error)
{
    struct json_cursor top = json_cursor_root(path, root);
    struct scenario_changes changes = *inherited;
    char file[LIMIT_PATH_BYTES];
    size_t i;
    json_t *item;
    TRY(changes_read_common(&top, &changes, error));
    json_array_foreach (json_object_get(root, "scenarios"), i, item) {
        struct json_cursor entry = json_cursor_root(path, item);
        struct scenario_changes own = changes;
        json_t *scenario;
        TRY(changes_read(&entry, &own, error));
        TRY(referenced(path, json_object_get(item, "file"), file, error));
        TRY(json_read_file(file, LIMIT_DOCUMENT_BYTES, &scenario, error));
        TRY(add_entry(set, file, item, scenario, &own, error));
    }
    json_array_foreach (json_object_get(root, "suites"), i, item) {
        TRY(referenced(path, item, file, error));
        TRY(push(set, file, &changes, error));
    }
    return STATUS_OK;
}

static enum status read_pending(struct range_set *set, uint32_t index, struct error *error)
{
    const char *path = set->pending[index].path;
    struct scenario_changes changes = set->pending[index].changes;
    json_t *root;
    TRY(json_read_file(path, LIMIT_DOCUMENT_BYTES, &root, error));
    TRY(keep_root(set, root, error));
    if (json_object_get(root, "scenarios") == NULL && json_object_get(root, "suites") == NULL) {
        return add_entry(set, path, NULL, json_incref(root), &changes, error);
    }
    return read_suite(set, path, root, &changes, error);
}

enum status range_set_load(const char *path, struct range_set **out, struct error *error)
{
    struct range_set *set = calloc(1, sizeof *set);
    TRY(memory_check(set, error, "%s: out of memory", path));
    set->no_branches = json_array();
    enum status status = memory_check(set->no_branches, error, "%s: out of memory", path);
    THEN(status, push(set, path, &SCENARIO_UNCHANGED, error));
    for (uint32_t i = 0; status == STATUS_OK && i < set->pending_count; i++) {
        status = read_pending(set, i, error);
    }
    if (status == STATUS_OK && set->count == 0) {
        status = error_set(error, STATUS_BAD_INPUT,
                           "%s: expected scenarios with \"ranges\" or a \"grid\" of several values "
                           "of a parameter, found none",
                           path);
    }
    if (status != STATUS_OK) {
        range_set_destroy(set);
        return status;
    }
    *out = set;
    return STATUS_OK;
}

/* ---- points ---- */

json_t *range_value(const struct range *range, double at)
{
    char text[32];
    if (range->choice_count > 0) {
        size_t choice = at >= 0.0 ? (size_t)at : 0;
        choice = choice < range->choice_count ? choice : range->choice_count - 1;
        return json_incref(json_array_get(range->choices, choice));
    }
    snprintf(text, sizeof text, "%.6g", range->low + at * (range->high - range->low));
    return json_real(strtod(text, NULL) + 0.0); /* no negative zero */
}

static enum status values_at(const struct entry *entry, const double *at, json_t **out,
                             struct error *error)
{
    json_t *values = entry->set != NULL ? json_copy(entry->set) : json_object();
    bool good = values != NULL;
    for (uint32_t i = 0; i < entry->shown.range_count && good; i++) {
        const struct range *range = &entry->shown.ranges[i];
        good = json_object_set_new(values, range->name, range_value(range, at[i])) == 0;
    }
    if (!good) {
        json_decref(values);
        return error_set(error, STATUS_NO_MEMORY, "%s: out of memory", entry->path);
    }
    *out = values;
    return STATUS_OK;
}

/* "cut_in/gap_m=12.5,speed_mps=8", or where that is too long a hash of the values. */
static enum status point_id(const struct entry *entry, const json_t *values,
                            char id[LIMIT_ID_BYTES], struct error *error)
{
    char hash[SHA256_HEX_BYTES];
    size_t used = (size_t)snprintf(id, LIMIT_ID_BYTES, "%s", entry->shown.id);
    for (uint32_t i = 0; i < entry->shown.range_count && used < LIMIT_ID_BYTES; i++) {
        const char *name = entry->shown.ranges[i].name;
        const json_t *value = json_object_get(values, name);
        char number[32];
        snprintf(number, sizeof number, "%.6g", json_number_value(value));
        int wrote = snprintf(id + used, LIMIT_ID_BYTES - used, "%s%s=%s", i == 0 ? "/" : ",", name,
                             json_is_string(value) ? json_string_value(value) : number);
        used += wrote > 0 ? (size_t)wrote : 0;
    }
    if (used >= LIMIT_ID_BYTES) {
        char *text = json_canonical_text(values);
        TRY(memory_check(text, error, "%s: out of memory", entry->path));
        sha256_hex(text, strlen(text), hash);
        free(text);
        snprintf(id, LIMIT_ID_BYTES, "%.40s/point=%.*s", entry->shown.id, HASH_DIGITS, hash);
    }
    return STATUS_OK;
}

static enum status take_document(void *context, struct scenario_document *document,
                                 struct error *error)
{
    (void)error;
    *(struct scenario_document **)context = document;
    return STATUS_OK;
}

enum status range_set_document(struct range_set *set, uint32_t index, const double *at,
                               struct scenario_document **out, struct error *error)
{
    CHECK(index < set->count);
    const struct entry *entry = &set->entries[index];
    char id[LIMIT_ID_BYTES] = "";
    json_t *values = NULL;
    TRY(values_at(entry, at, &values, error));
    enum status status = point_id(entry, values, id, error);
    json_t *written = json_pack("{s:s, s:O}", "id", id, "set", values);
    THEN(status, memory_check(written, error, "%s: out of memory", entry->path));
    if (status == STATUS_OK) {
        struct json_cursor cursor = json_cursor_root(entry->path, written);
        struct json_cursor scenario = json_cursor_root(entry->path, entry->scenario);
        status = entry_expand(&cursor, &scenario, &entry->changes, &set->cache, take_document, out,
                              NULL, error);
    }
    json_decref(written);
    json_decref(values);
    return status;
}
