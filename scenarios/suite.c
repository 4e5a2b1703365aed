/*
 * Suites: a suite file with everything it includes, a single scenario, or a directory of them, to
 * the list of what is to be run.
 *
 * Included suites are walked with an explicit stack, which is also what finds a cycle. Nothing is
 * handed out until everything has been checked. suite_check goes on after a mistake, entry by entry
 * and file by file, and hands nothing out then.
 */
#include "base/array.h"
#include "base/check.h"
#include "scenarios/resolve.h"
#include "schemas/scenario_json.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INCLUDES_MAX = 64, SUITE_TEXT_BYTES = 64 << 20 };

/* Seeds, planners and question of one level; in the suite's arena. */
struct defaults {
    uint32_t seed_count;
    const uint64_t *seeds;
    uint32_t planner_count;
    const char *const *planners;
    struct scenario_changes changes; /* an entry's may differ */
};

/* Suite that is being built. The suite comes first: suite_destroy gets a pointer to it. */
struct suite_owner {
    struct suite suite;
    struct arena arena;
    size_t document_bytes;
    uint64_t job_count;
};

/* One suite file that is open. */
struct level {
    char path[LIMIT_PATH_BYTES];
    json_t *root;
    dev_t device;
    ino_t inode;
    struct defaults defaults;
    size_t include_next;
};

struct loading {
    struct suite_owner *owner;
    struct part_cache cache;
    struct level *levels; /* [LIMIT_SUITE_DEPTH] */
    int depth;            /* open levels */
    const json_t *set;    /* parameters of the caller's; NULL: none */
    struct error *error;
    struct errors *all;   /* of the whole; NULL: the first mistake ends it */
    struct errors *found; /* of the document in hand; NULL with `all` */
};

static enum status suite_no_memory(const struct loading *loading, const char *path)
{
    return error_set(loading->error, STATUS_NO_MEMORY, "%s: out of memory", path);
}

/* Takes the last entries back, down to `count`. */
static void drop_entries(struct suite_owner *owner, uint32_t count)
{
    struct suite *suite = &owner->suite;
    while (suite->entry_count > count) {
        const struct suite_entry *entry = &suite->entries[--suite->entry_count];
        uint32_t planners = entry->planner_count > 0 ? entry->planner_count : 1;
        owner->job_count -= (uint64_t)entry->seed_count * planners;
        scenario_destroy((struct scenario_document *)(uintptr_t)entry->document);
    }
}

void suite_destroy(struct suite *suite)
{
    if (suite == NULL) {
        return;
    }
    struct suite_owner *owner = (struct suite_owner *)suite;
    drop_entries(owner, 0);
    free(suite->entries);
    arena_finish(&owner->arena);
    free(owner);
}

/* ---- entries ---- */

struct entry_context {
    struct loading *loading;
    const struct json_cursor *cursor;
    struct suite_entry entry; /* all but the document */
};

/* Adds one concrete scenario; takes the document over, on failure too. */
static enum status add_entry(void *context_pointer, struct scenario_document *document,
                             struct error *error)
{
    struct entry_context *context = context_pointer;
    struct suite_owner *owner = context->loading->owner;
    struct suite *suite = &owner->suite;
    uint32_t planners = context->entry.planner_count > 0 ? context->entry.planner_count : 1;
    owner->job_count += (uint64_t)context->entry.seed_count * planners;
    owner->document_bytes += sizeof *document + document->arena.used_bytes;
    owner->document_bytes += document->map != NULL ? shared_map_bytes_once(document->map) : 0;
    enum status status = STATUS_OK;
    if (owner->job_count > LIMIT_SUITE_JOBS) {
        status =
            json_fail_status(context->cursor, STATUS_LIMIT, error,
                             "expected at most %d jobs in one suite, found more", LIMIT_SUITE_JOBS);
    } else if (owner->document_bytes > LIMIT_SUITE_BYTES) {
        status = json_fail_status(context->cursor, STATUS_LIMIT, error,
                                  "expected a suite whose scenarios fit %d bytes in memory, found "
                                  "more",
                                  LIMIT_SUITE_BYTES);
    } else if (array_room(&suite->entries, suite->entry_count, sizeof *suite->entries, NULL) !=
               STATUS_OK) {
        status = suite_no_memory(context->loading, context->cursor->file);
    }
    if (status != STATUS_OK) {
        scenario_destroy(document);
        return status;
    }
    context->entry.document = document;
    suite->entries[suite->entry_count++] = context->entry;
    return STATUS_OK;
}

/* "suite.json: $.scenarios[3]" in the suite's arena; NULL when it is full. */
static const char *place_of(struct loading *loading, const struct json_cursor *entry)
{
    char place[LIMIT_PATH_BYTES + 64];
    if (entry->parent == NULL) {
        snprintf(place, sizeof place, "%s: $.id", entry->file);
    } else {
        snprintf(place, sizeof place, "%s: $.scenarios[%zu]", entry->file, entry->index);
    }
    return arena_copy_text(&loading->owner->arena, place, strlen(place));
}

static enum status expand_file(struct loading *loading, const char *path,
                               const struct json_cursor *entry, const json_t *scenario,
                               const struct defaults *defaults, int32_t priority)
{
    struct json_cursor written = json_cursor_root(path, scenario);
    struct entry_context context = {
        .loading = loading,
        .cursor = entry,
        .entry = {.file = arena_copy_text(&loading->owner->arena, path, strlen(path)),
                  .place = place_of(loading, entry),
                  .seed_count = defaults->seed_count,
                  .seeds = defaults->seeds,
                  .planner_count = defaults->planner_count,
                  .planners = defaults->planners,
                  .priority = priority}};
    if (context.entry.file == NULL || context.entry.place == NULL) {
        return suite_no_memory(loading, path);
    }
    uint32_t before = loading->owner->suite.entry_count;
    struct scenario_changes changes = defaults->changes;
    enum status status = entry_expand(entry, &written, &changes, &loading->cache, add_entry,
                                      &context, loading->found, loading->error);
    if (changes.set == NULL || status != STATUS_BAD_INPUT) {
        return status;
    }
    drop_entries(loading->owner, before); /* as written: they may not be what the caller wants */
    context.entry.refused =
        arena_copy_text(&loading->owner->arena, loading->error->text, strlen(loading->error->text));
    changes.set = NULL;
    return context.entry.refused == NULL
               ? suite_no_memory(loading, path)
               : entry_expand(entry, &written, &changes, &loading->cache, add_entry, &context,
                              loading->found, loading->error);
}

/* ---- mistakes ---- */

/* An error in an included suite names the suites that led to it. */
static enum status name_includers(const struct loading *loading, struct error *error)
{
    for (int i = loading->depth - 2; i >= 0; i--) {
        const struct level *level = &loading->levels[i];
        struct json_cursor top = json_cursor_root(level->path, level->root);
        struct json_cursor includes = json_cursor_member(&top, "suites");
        struct json_cursor reference = json_cursor_element(&includes, level->include_next - 1);
        json_prefix(&reference, error);
    }
    return error->status;
}

/* Ends a step over one document or entry, which `place` asked for (NULL: the caller). OK: go on,
 * its errors, if any, are in the list. A limit of the whole suite ends it. */
static enum status set_aside(const struct loading *loading, enum status status,
                             const struct json_cursor *place)
{
    struct errors *found = loading->found;
    if (status == STATUS_OK) {
        return STATUS_OK;
    }
    if (loading->all == NULL || (status == STATUS_LIMIT && found->count == 0)) {
        return place != NULL ? json_prefix(place, loading->error) : status;
    }
    enum status kept = errors_keep(found, status, loading->error);
    enum status listed = STATUS_OK;
    for (uint32_t i = 0; i < found->count; i++) {
        struct error *one = &found->items[i];
        if (errors_have(loading->all, one->text)) {
            continue; /* of a document that another entry has asked for */
        }
        if (place != NULL) {
            json_prefix(place, one);
        }
        name_includers(loading, one);
        THEN(listed, errors_keep(loading->all, one->status, one));
    }
    loading->all->more |= found->more;
    found->count = 0;
    return kept != STATUS_OK ? kept : listed;
}

/* ---- seeds and planners ---- */

static int compare_seeds(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a;
    uint64_t right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static enum status check_seeds_differ(const struct json_cursor *cursor, const uint64_t *seeds,
                                      size_t count, struct error *error)
{
    uint64_t *sorted = malloc(count * sizeof *sorted);
    if (sorted == NULL) {
        return json_fail_status(cursor, STATUS_NO_MEMORY, error, "out of memory");
    }
    memcpy(sorted, seeds, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, compare_seeds);
    enum status status = STATUS_OK;
    for (size_t i = 1; i < count && status == STATUS_OK; i++) {
        if (sorted[i] == sorted[i - 1]) {
            status = json_fail(cursor, error, "expected each seed once, found %llu again",
                               (unsigned long long)sorted[i]);
        }
    }
    free(sorted);
    return status;
}

static enum status read_seeds(const struct json_cursor *cursor, struct arena *arena,
                              struct defaults *out, struct error *error)
{
    size_t count;
    if (!json_cursor_present(cursor)) {
        return STATUS_OK;
    }
    if (!json_is_array(cursor->value)) {
        int64_t number;
        TRY(json_value_integer(cursor, 1, LIMIT_SEEDS, &number, error));
        count = (size_t)number;
    } else {
        TRY(json_array_begin(cursor, 1, LIMIT_SEEDS, &count, error));
    }
    uint64_t *seeds = arena_alloc(arena, count, sizeof *seeds);
    if (seeds == NULL) {
        return json_fail_status(cursor, STATUS_LIMIT, error, "expected a smaller suite");
    }
    for (size_t i = 0; i < count; i++) {
        int64_t seed = (int64_t)i + 1;
        if (json_is_array(cursor->value)) {
            struct json_cursor element = json_cursor_element(cursor, i);
            TRY(json_value_integer(&element, 0, (INT64_C(1) << 53) - 1, &seed, error));
        }
        seeds[i] = (uint64_t)seed;
    }
    TRY(check_seeds_differ(cursor, seeds, count, error));
    out->seed_count = (uint32_t)count;
    out->seeds = seeds;
    return STATUS_OK;
}

static enum status read_planners(const struct json_cursor *cursor, struct arena *arena,
                                 struct defaults *out, struct error *error)
{
    size_t count;
    if (!json_cursor_present(cursor)) {
        return STATUS_OK;
    }
    TRY(json_array_begin(cursor, 1, LIMIT_PLANNERS, &count, error));
    const char **planners = arena_alloc(arena, count, sizeof *planners);
    if (planners == NULL) {
        return json_fail_status(cursor, STATUS_LIMIT, error, "expected a smaller suite");
    }
    for (size_t i = 0; i < count; i++) {
        struct json_cursor element = json_cursor_element(cursor, i);
        char text[LIMIT_SPEC_BYTES];
        TRY(json_value_text(&element, text, sizeof text, error));
        for (size_t j = 0; j < i; j++) {
            if (strcmp(planners[j], text) == 0) {
                return json_fail(&element, error, "expected each planner once, found \"%s\" again",
                                 text);
            }
        }
        if (text[0] == '\0') {
            return json_fail(&element, error, "expected a planner, found empty text");
        }
        planners[i] = arena_copy_text(arena, text, strlen(text));
        if (planners[i] == NULL) {
            return json_fail_status(&element, STATUS_LIMIT, error, "expected a smaller suite");
        }
    }
    out->planner_count = (uint32_t)count;
    out->planners = planners;
    return STATUS_OK;
}

/* ---- suite files ---- */

static bool is_suite(const json_t *root)
{
    return json_object_get(root, "scenarios") != NULL || json_object_get(root, "suites") != NULL;
}

static enum status load_entry(struct loading *loading, const struct level *level,
                              const struct json_cursor *entry)
{
    static const char *const keys[] = {"file",      "id",       "grid",     "set",
                                       "seeds",     "planners", "priority", "question",
                                       "horizon_s", "branches", "ego",      "traceability",
                                       "ranges",    "cross",    NULL};
    struct error *error = loading->error;
    struct defaults defaults = level->defaults;
    char name[LIMIT_SPEC_BYTES];
    char path[LIMIT_PATH_BYTES];
    int64_t priority = 0;
    TRY(json_object_begin(entry, keys, error));
    struct json_cursor part = json_cursor_member(entry, "file");
    TRY(file_reference_check(&part, name, error));
    TRY(file_path_join(level->path, 0, name, path, error));
    part = json_cursor_member(entry, "seeds");
    TRY(read_seeds(&part, &loading->owner->arena, &defaults, error));
    part = json_cursor_member(entry, "planners");
    TRY(read_planners(&part, &loading->owner->arena, &defaults, error));
    TRY(changes_read(entry, &defaults.changes, error));
    TRY(json_member_integer(entry, "priority", false, -1000000, 1000000, &priority, error));
    json_t *scenario;
    TRY(json_read_file(path, LIMIT_DOCUMENT_BYTES, &scenario, error));
    part = json_cursor_member(entry, "file");
    enum status status =
        is_suite(scenario)
            ? json_fail(&part, error,
                        "expected a scenario, found \"%s\": this is a suite, list it under "
                        "\"suites\"",
                        name)
            : expand_file(loading, path, entry, scenario, &defaults, (int32_t)priority);
    json_decref(scenario);
    return status;
}

static enum status check_suite_form(const struct json_cursor *top, struct suite *head,
                                    struct error *error)
{
    static const char *const keys[] = {"$schema", "id",           "title",    "scenarios",
                                       "suites",  "seeds",        "planners", "question",
                                       "ego",     "traceability", "cross",    NULL};
    char id[LIMIT_ID_BYTES];
    char title[LIMIT_TEXT_BYTES] = "";
    size_t count;
    TRY(json_object_begin(top, keys, error));
    struct json_cursor part = json_cursor_member(top, "id");
    TRY(scenario_decode_id(&part, id, error));
    TRY(json_member_text(top, "title", false, title, sizeof title, error));
    part = json_cursor_member(top, "suites");
    if (json_cursor_present(&part)) {
        TRY(json_array_begin(&part, 1, INCLUDES_MAX, &count, error));
    }
    part = json_cursor_member(top, "scenarios");
    if (json_cursor_present(&part)) {
        TRY(json_array_begin(&part, 1, LIMIT_SUITE_SCENARIOS, &count, error));
    }
    if (head->id[0] == '\0') { /* the outermost suite names the whole */
        memcpy(head->id, id, sizeof id);
        memcpy(head->title, title, sizeof title);
    }
    return STATUS_OK;
}

static enum status check_cycle(const struct loading *loading, const struct json_cursor *reference,
                               const char *path, const struct stat *info)
{
    for (int i = 0; i < loading->depth; i++) {
        const struct level *open = &loading->levels[i];
        if (open->device == info->st_dev && open->inode == info->st_ino) {
            return json_fail(reference, loading->error,
                             "expected suites that do not include one another, found a cyclic "
                             "reference: %.256s is being read already",
                             path);
        }
    }
    if (loading->depth == LIMIT_SUITE_DEPTH) {
        return json_fail_status(reference, STATUS_LIMIT, loading->error,
                                "expected at most %d levels of suites, found more",
                                LIMIT_SUITE_DEPTH);
    }
    return STATUS_OK;
}

/* Opens one more level; root is consumed. */
static enum status push_level(struct loading *loading, const char *path, json_t *root,
                              const struct stat *info, const struct defaults *defaults)
{
    CHECK(loading->depth < LIMIT_SUITE_DEPTH && strlen(path) < LIMIT_PATH_BYTES);
    struct level *level = &loading->levels[loading->depth++];
    *level = (struct level){
        .root = root, .device = info->st_dev, .inode = info->st_ino, .defaults = *defaults};
    strcpy(level->path, path);
    struct json_cursor top = json_cursor_root(level->path, root);
    TRY(check_suite_form(&top, &loading->owner->suite, loading->error));
    struct json_cursor part = json_cursor_member(&top, "seeds");
    TRY(read_seeds(&part, &loading->owner->arena, &level->defaults, loading->error));
    part = json_cursor_member(&top, "planners");
    TRY(read_planners(&part, &loading->owner->arena, &level->defaults, loading->error));
    return changes_read_common(&top, &level->defaults.changes, loading->error);
}

static enum status open_include(struct loading *loading, const struct level *level,
                                const struct json_cursor *reference)
{
    char name[LIMIT_SPEC_BYTES];
    char path[LIMIT_PATH_BYTES];
    struct stat info;
    json_t *root;
    TRY(file_reference_check(reference, name, loading->error));
    TRY(file_path_join(level->path, 0, name, path, loading->error));
    if (stat(path, &info) != 0) {
        return json_fail_status(reference, STATUS_NOT_FOUND, loading->error,
                                "expected a suite file, found no \"%s\": %s", name,
                                strerror(errno));
    }
    TRY(check_cycle(loading, reference, path, &info));
    if (json_read_file(path, LIMIT_DOCUMENT_BYTES, &root, loading->error) != STATUS_OK) {
        return json_prefix(reference, loading->error);
    }
    if (!is_suite(root)) {
        json_decref(root);
        return json_fail(
            reference, loading->error,
            "expected a suite with \"scenarios\" or \"suites\", found another document "
            "in \"%s\"",
            name);
    }
    return push_level(loading, path, root, &info, &level->defaults);
}

/* Includes first, depth first, then the suite's own scenarios. */
static enum status walk_levels(struct loading *loading)
{
    while (loading->depth > 0) {
        struct level *level = &loading->levels[loading->depth - 1];
        struct json_cursor top = json_cursor_root(level->path, level->root);
        struct json_cursor includes = json_cursor_member(&top, "suites");
        struct json_cursor scenarios = json_cursor_member(&top, "scenarios");
        if (level->include_next < json_array_size(includes.value)) {
            struct json_cursor reference = json_cursor_element(&includes, level->include_next++);
            TRY(set_aside(loading, open_include(loading, level, &reference), NULL));
            continue;
        }
        for (size_t i = 0; i < json_array_size(scenarios.value); i++) {
            struct json_cursor entry = json_cursor_element(&scenarios, i);
            TRY(set_aside(loading, load_entry(loading, level, &entry), &entry));
        }
        json_decref(level->root);
        loading->depth--;
    }
    return STATUS_OK;
}

/* ---- the three kinds of path ---- */

static enum status load_one_scenario(struct loading *loading, const char *path, const json_t *root,
                                     const struct defaults *defaults)
{
    json_t *nothing = json_object();
    struct json_cursor entry = json_cursor_root(path, nothing);
    enum status status = nothing == NULL ? suite_no_memory(loading, path)
                                         : expand_file(loading, path, &entry, root, defaults, 0);
    json_decref(nothing);
    return status;
}

static int is_json_name(const struct dirent *entry)
{
    size_t bytes = strlen(entry->d_name);
    return bytes > 5 && entry->d_name[0] != '.' && strcmp(entry->d_name + bytes - 5, ".json") == 0;
}

static enum status load_directory_file(struct loading *loading, const char *directory,
                                       const char *name, const struct defaults *defaults)
{
    char path[LIMIT_PATH_BYTES];
    json_t *root;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, name) >= sizeof path) {
        return error_set(loading->error, STATUS_LIMIT, "%.512s: expected a shorter path",
                         directory);
    }
    TRY(json_read_file(path, LIMIT_DOCUMENT_BYTES, &root, loading->error));
    /* Suites, maps and a register of protocols may live beside the scenarios. */
    bool other = is_suite(root) || json_object_get(root, "lanes") != NULL ||
                 json_object_get(root, "protocols") != NULL;
    enum status status = other ? STATUS_OK : load_one_scenario(loading, path, root, defaults);
    json_decref(root);
    return status;
}

/* No scenarios: says so, and where some may be, one level further down. */
static enum status fail_empty_directory(const struct loading *loading, const char *path)
{
    DIR *directory = opendir(path);
    char below[LIMIT_PATH_BYTES] = "";
    for (struct dirent *item = directory != NULL ? readdir(directory) : NULL;
         item != NULL && below[0] == '\0'; item = readdir(directory)) {
        struct dirent **names = NULL;
        bool fits =
            (size_t)snprintf(below, sizeof below, "%s/%s", path, item->d_name) < sizeof below;
        int count = fits && item->d_name[0] != '.' ? scandir(below, &names, is_json_name, NULL) : 0;
        for (int i = 0; i < count; i++) {
            free(names[i]);
        }
        free(names);
        if (count <= 0) {
            below[0] = '\0';
        }
    }
    if (directory != NULL) {
        closedir(directory);
    }
    if (below[0] != '\0') {
        return error_set(loading->error, STATUS_BAD_INPUT,
                         "%.400s: expected scenario files (*.json), found them in subdirectories "
                         "only, which are not searched: name one, such as %.400s",
                         path, below);
    }
    return error_set(loading->error, STATUS_BAD_INPUT,
                     "%s: expected scenario files (*.json), found none", path);
}

static enum status load_directory(struct loading *loading, const char *path,
                                  const struct defaults *defaults)
{
    struct dirent **names;
    int count = scandir(path, &names, is_json_name, alphasort);
    if (count < 0) {
        return error_set(loading->error, STATUS_IO, "%s: cannot list: %s", path, strerror(errno));
    }
    enum status status = STATUS_OK;
    suite_name_directory(&loading->owner->suite, path);
    for (int i = 0; i < count; i++) {
        THEN(status,
             set_aside(loading, load_directory_file(loading, path, names[i]->d_name, defaults),
                       NULL));
        free(names[i]);
    }
    free(names);
    if (status == STATUS_OK && loading->owner->suite.entry_count == 0 &&
        errors_count(loading->all) == 0) {
        status = fail_empty_directory(loading, path);
    }
    return status;
}

static enum status load_path(struct loading *loading, const char *path)
{
    static const uint64_t first_seed = 1;
    struct defaults defaults = {
        .seed_count = 1, .seeds = &first_seed, .changes = SCENARIO_UNCHANGED};
    defaults.changes.set = loading->set;
    struct suite *suite = &loading->owner->suite;
    struct stat info;
    json_t *root;
    if (strlen(path) >= LIMIT_PATH_BYTES) {
        return error_set(loading->error, STATUS_LIMIT, "%.512s..: expected a shorter path", path);
    }
    if (stat(path, &info) != 0) {
        return error_set(loading->error, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_IO,
                         "%s: cannot open: %s", path, strerror(errno));
    }
    if (S_ISDIR(info.st_mode)) {
        return load_directory(loading, path, &defaults);
    }
    TRY(json_read_file(path, LIMIT_DOCUMENT_BYTES, &root, loading->error));
    if (is_suite(root)) {
        TRY(set_aside(loading, push_level(loading, path, root, &info, &defaults), NULL));
        return walk_levels(loading) == STATUS_OK ? STATUS_OK
                                                 : name_includers(loading, loading->error);
    }
    enum status status = load_one_scenario(loading, path, root, &defaults);
    json_decref(root);
    if (status != STATUS_OK) {
        return set_aside(loading, status, NULL);
    }
    const struct scenario *only = &suite->entries[0].document->scenario;
    memcpy(suite->id, only->id, sizeof suite->id);
    memcpy(suite->title, only->title, sizeof suite->title);
    return STATUS_OK;
}

/* ---- the whole ---- */

static enum status load(const char *path, const json_t *set, struct errors *all, struct suite **out,
                        struct error *error)
{
    struct error local = {0};
    struct loading loading = {.error = error != NULL ? error : &local, .all = all, .set = set};
    enum status status = STATUS_OK;
    loading.owner = calloc(1, sizeof *loading.owner);
    loading.levels = calloc(LIMIT_SUITE_DEPTH, sizeof *loading.levels);
    loading.found = all != NULL ? calloc(1, sizeof *loading.found) : NULL;
    if (loading.owner == NULL || loading.levels == NULL || (all != NULL && loading.found == NULL)) {
        free(loading.owner);
        free(loading.levels);
        free(loading.found);
        return suite_no_memory(&loading, path);
    }
    arena_init(&loading.owner->arena, SUITE_TEXT_BYTES);
    status = load_path(&loading, path);
    THEN(status, suite_check_ids(&loading.owner->suite, loading.error));
    THEN(status, errors_end(all, 0, loading.error));
    while (loading.depth > 0) {
        json_decref(loading.levels[--loading.depth].root);
    }
    part_cache_finish(&loading.cache);
    free(loading.levels);
    free(loading.found);
    if (status != STATUS_OK) {
        suite_destroy(&loading.owner->suite);
        return status;
    }
    suite_hash(&loading.owner->suite);
    *out = &loading.owner->suite;
    return STATUS_OK;
}

enum status suite_load(const char *path, struct suite **out, struct error *error)
{
    return load(path, NULL, NULL, out, error);
}

enum status suite_load_set(const char *path, const json_t *set, struct suite **out,
                           struct error *error)
{
    return load(path, set, NULL, out, error);
}

enum status suite_keep(struct suite *suite, suite_filter *filter, void *context,
                       struct error *error)
{
    struct suite_owner *owner = (struct suite_owner *)suite;
    enum status status = STATUS_OK;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < suite->entry_count; i++) {
        struct suite_entry entry = suite->entries[i];
        uint64_t *seeds = arena_alloc(&owner->arena, entry.seed_count, sizeof *seeds);
        uint32_t count = 0;
        THEN(status, memory_check(seeds, error, "%s: out of memory", entry.file));
        for (uint32_t s = 0; s < entry.seed_count && status == STATUS_OK; s++) {
            if (filter(context, &entry, entry.seeds[s])) {
                seeds[count++] = entry.seeds[s];
            }
        }
        if (status == STATUS_OK && count == 0) {
            scenario_destroy((struct scenario_document *)(uintptr_t)entry.document);
            continue;
        }
        if (status == STATUS_OK) {
            entry.seeds = seeds;
            entry.seed_count = count;
        }
        suite->entries[kept++] = entry;
    }
    suite->entry_count = kept;
    suite_hash(suite);
    return status;
}

enum status suite_check(const char *path, struct suite **out, struct errors *errors,
                        struct error *error)
{
    *errors = (struct errors){.count = 0};
    enum status status = load(path, NULL, errors, out, error);
    /* The cause of the end is the last of the list, if it is about the input. */
    errors_keep(errors, status, error);
    return status;
}
