/*
 * Pairs that differ, sorted by scenario and seed, to files. See disagreements.h.
 */
#include "report/trust/disagreements.h"

#include "base/file.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAME_DIGITS = 16 }; /* of a scenario's hash, in its file's name */

static int compare(const void *a, const void *b)
{
    const struct pairs_pair *x = *(const struct pairs_pair *const *)a;
    const struct pairs_pair *y = *(const struct pairs_pair *const *)b;
    int order = strcmp(x->scenario_hash, y->scenario_hash);
    return order != 0 ? order : (x->seed > y->seed) - (x->seed < y->seed);
}

static enum status write_text(const char *directory, const char *name, const char *text,
                              struct error *error)
{
    char path[LIMIT_PATH_BYTES];
    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path) {
        return error_set(error, STATUS_LIMIT, "%s: the path is too long", directory);
    }
    return file_replace(path, text, strlen(text), 0644, error);
}

static enum status write_scenario(struct store *store, const char *directory,
                                  const struct pairs_pair *pair, json_t *entries,
                                  struct error *error)
{
    char name[NAME_DIGITS + 8];
    char *body = NULL;
    size_t bytes = 0;
    snprintf(name, sizeof name, "%.*s.json", NAME_DIGITS, pair->scenario_hash);
    TRY(store->ops->scenario_get(store, pair->scenario_hash, &body, &bytes, error));
    enum status status = write_text(directory, name, body, error);
    free(body);
    json_t *entry = json_pack("{s:s, s:[]}", "file", name, "seeds");
    if (json_array_append_new(entries, entry) != 0 && status == STATUS_OK) {
        status = error_set(error, STATUS_NO_MEMORY, "disagreements: out of memory");
    }
    return status;
}

/* pairs[count] in order: a file for each scenario, its seeds once. */
static enum status write_all(struct store *store, const char *directory,
                             const struct pairs_pair *const *pairs, uint32_t count, json_t *entries,
                             struct error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        bool first = i == 0 || strcmp(pairs[i]->scenario_hash, pairs[i - 1]->scenario_hash) != 0;
        if (first) {
            TRY(write_scenario(store, directory, pairs[i], entries, error));
        }
        if (first || pairs[i]->seed != pairs[i - 1]->seed) {
            json_t *entry = json_array_get(entries, json_array_size(entries) - 1);
            json_array_append_new(json_object_get(entry, "seeds"),
                                  json_integer((json_int_t)pairs[i]->seed));
        }
    }
    return STATUS_OK;
}

static enum status write_suite(const char *directory, json_t *entries, struct error *error)
{
    json_t *suite =
        json_pack("{s:s, s:s, s:O}", "id", "disagreements", "title",
                  "On these student and teacher gave different verdicts", "scenarios", entries);
    char *text = suite != NULL ? json_dumps(suite, JSON_INDENT(1)) : NULL;
    json_decref(suite);
    TRY(memory_check(text, error, "disagreements: out of memory"));
    enum status status = write_text(directory, "suite.json", text, error);
    free(text);
    return status;
}

enum status disagreements_write(const struct pairs *pairs, struct store *store,
                                const char *directory, uint32_t *count, struct error *error)
{
    uint32_t found = 0;
    const struct pairs_pair **list = calloc((size_t)pairs->count + 1, sizeof *list);
    json_t *entries = json_array();
    enum status status =
        memory_check(entries != NULL ? list : NULL, error, "disagreements: out of memory");
    for (uint32_t i = 0; status == STATUS_OK && i < pairs->count; i++) {
        const struct pairs_pair *pair = &pairs->pairs[i];
        if (!pair->shadow && pairs_judged(pair) && pair->student.verdict != pair->teacher.verdict) {
            list[found++] = pair;
        }
    }
    if (status == STATUS_OK && found > 0 && mkdir(directory, 0777) != 0 && errno != EEXIST) {
        status = error_set(error, STATUS_IO, "%s: %s", directory, strerror(errno));
    }
    if (status == STATUS_OK && found > 0) {
        qsort(list, found, sizeof *list, compare);
        status = write_all(store, directory, list, found, entries, error);
        THEN(status, write_suite(directory, entries, error));
    }
    if (status == STATUS_OK) {
        *count = (uint32_t)json_array_size(entries);
    }
    json_decref(entries);
    free(list);
    return status;
}
