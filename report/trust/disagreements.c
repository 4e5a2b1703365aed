/*
 * Pairs that differ, sorted by scenario and seed, to files. See disagreements.h.
 */
#include "report/trust/disagreements.h"

#include "report/trust/suite_folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare(const void *a, const void *b)
{
    const struct pairs_pair *x = *(const struct pairs_pair *const *)a;
    const struct pairs_pair *y = *(const struct pairs_pair *const *)b;
    int order = strcmp(x->scenario_hash, y->scenario_hash);
    return order != 0 ? order : (x->seed > y->seed) - (x->seed < y->seed);
}

static enum status add_scenario(struct store *store, const struct pairs_pair *pair,
                                struct suite_folder *folder, struct error *error)
{
    char *body = NULL;
    size_t bytes = 0;
    TRY(store->ops->scenario_get(store, pair->scenario_hash, &body, &bytes, error));
    enum status status = suite_folder_add(folder, pair->scenario_hash, body, strlen(body), error);
    free(body);
    return status;
}

/* pairs[count] in order: a file for each scenario, its seeds once. */
static enum status add_all(struct store *store, const struct pairs_pair *const *pairs,
                           uint32_t count, struct suite_folder *folder, struct error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        bool first = i == 0 || strcmp(pairs[i]->scenario_hash, pairs[i - 1]->scenario_hash) != 0;
        TRY(first ? add_scenario(store, pairs[i], folder, error) : STATUS_OK);
        if (first || pairs[i]->seed != pairs[i - 1]->seed) {
            TRY(suite_folder_seed(folder, pairs[i]->seed, error));
        }
    }
    return STATUS_OK;
}

enum status disagreements_write_list(const struct pairs_pair **list, uint32_t count,
                                     struct store *store, const char *directory, const char *id,
                                     const char *title, uint32_t *scenarios, struct error *error)
{
    struct suite_folder folder;
    TRY(suite_folder_begin(&folder, directory, error));
    qsort(list, count, sizeof *list, compare);
    enum status status = add_all(store, list, count, &folder, error);
    THEN(status, suite_folder_write(&folder, id, title, error));
    if (status == STATUS_OK) {
        *scenarios = (uint32_t)json_array_size(folder.entries);
    }
    suite_folder_finish(&folder);
    return status;
}

enum status disagreements_write(const struct pairs *pairs, struct store *store,
                                const char *directory, uint32_t *count, struct error *error)
{
    uint32_t found = 0;
    const struct pairs_pair **list = calloc((size_t)pairs->count + 1, sizeof *list);
    TRY(memory_check(list, error, "disagreements: out of memory"));
    for (uint32_t i = 0; i < pairs->count; i++) {
        const struct pairs_pair *pair = &pairs->pairs[i];
        bool counts = !pair->shadow || pairs->tiers; /* a shadow's are evidence of no student's */
        if (counts && pairs_judged(pair) && pair->student.verdict != pair->teacher.verdict) {
            list[found++] = pair;
        }
    }
    *count = 0;
    enum status status =
        found == 0
            ? STATUS_OK
            : disagreements_write_list(list, found, store, directory, "disagreements",
                                       pairs->tiers
                                           ? "On these a tier gave another verdict than all steps"
                                           : "On these student and teacher gave different verdicts",
                                       count, error);
    free(list);
    return status;
}
