/*
 * From options to the choice that suites are loaded with.
 */
#include "cli/choice/choice.h"

#include "base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool choice_is_made(const struct choice_options *options)
{
    return options->expression != NULL || options->ids.count > 0 || options->sets.count > 0 ||
           options->failed_in != NULL || options->name != NULL;
}

/* Main lines of a suite: what each outcome says. */
struct main_line {
    struct suite_pick pick;
    enum verdict verdict;
};

struct main_lines {
    struct main_line *items;
    uint32_t count;
};

static enum status take_outcome(void *context, const struct outcome *outcome, struct error *error)
{
    struct main_lines *lines = context;
    if (outcome->branch_id[0] != '\0') {
        return STATUS_OK;
    }
    TRY(array_room(&lines->items, lines->count, sizeof *lines->items, error));
    struct main_line *line = &lines->items[lines->count++];
    *line = (struct main_line){.pick.seed = outcome->seed, .verdict = outcome->verdict};
    memcpy(line->pick.scenario, outcome->scenario_id, sizeof line->pick.scenario);
    return STATUS_OK;
}

static int compare_lines(const void *a, const void *b)
{
    const struct main_line *x = a;
    const struct main_line *y = b;
    return suite_pick_compare(&x->pick, &y->pick);
}

/* Cases that did not pass, each once, in order. One that was flagged has the answer of whoever
 * drove it again; flagged alone it has none, which is no pass. */
static uint32_t keep_failures(struct main_lines *lines, struct suite_pick *picks)
{
    uint32_t count = 0;
    if (lines->count > 0) {
        qsort(lines->items, lines->count, sizeof *lines->items, compare_lines);
    }
    for (uint32_t first = 0, end; first < lines->count; first = end) {
        bool passed = false;
        bool failed = false;
        for (end = first;
             end < lines->count && compare_lines(&lines->items[first], &lines->items[end]) == 0;
             end++) {
            enum verdict verdict = lines->items[end].verdict;
            passed = passed || verdict == VERDICT_PASS;
            failed = failed || (verdict != VERDICT_PASS && verdict != VERDICT_FLAGGED);
        }
        if (failed || !passed) {
            picks[count++] = lines->items[first].pick;
        }
    }
    return count;
}

/* *picks is owned by the caller. */
static enum status pick_failures(const char *url, char suite[LIMIT_ID_BYTES],
                                 struct suite_pick **picks, uint32_t *pick_count,
                                 struct error *error)
{
    const struct store_config config = {.intent = STORE_ASK};
    struct store *store = NULL;
    struct main_lines lines = {.items = NULL};
    char ids[1][LIMIT_ID_BYTES];
    uint32_t count = 0;
    TRY(store_open(url, &config, &store, error));
    enum status status = store->ops->suites(store, ids, 1, &count, error);
    if (status == STATUS_OK && count == 0) {
        status = error_set(error, STATUS_NOT_FOUND, "%s: the store has no suite", url);
    }
    if (status == STATUS_OK) {
        memcpy(suite, ids[0], LIMIT_ID_BYTES);
        status = store_outcomes_each(store, suite, take_outcome, &lines, error);
    }
    store->ops->close(store);
    *picks = status == STATUS_OK ? calloc((size_t)lines.count + 1, sizeof **picks) : NULL;
    THEN(status, memory_check(*picks, error, "--failed-in: out of memory"));
    if (status == STATUS_OK) {
        *pick_count = keep_failures(&lines, *picks);
    }
    free(lines.items);
    return status;
}

enum status choice_load(const struct choice_options *options, const char *path,
                        const char *store_url, struct suite **out, struct error *error)
{
    struct suite_choice choice = {.set_count = options->sets.count,
                                  .sets = options->sets.values,
                                  .expression = options->expression,
                                  .id_count = options->ids.count,
                                  .ids = options->ids.values};
    struct suite_pick *picks = NULL;
    char suite[LIMIT_ID_BYTES] = "";
    enum status status =
        options->name != NULL ? label_name_check("--name", options->name, error) : STATUS_OK;
    if (status == STATUS_OK && options->failed_in != NULL) {
        const char *url = strcmp(options->failed_in, "last") == 0 ? store_url : options->failed_in;
        status = pick_failures(url, suite, &picks, &choice.pick_count, error);
        if (status == STATUS_OK && choice.pick_count == 0) {
            status = error_set(error, STATUS_USAGE,
                               "--failed-in %s: every main line of its newest suite %s that has a "
                               "result passed",
                               options->failed_in, suite);
        }
        choice.picked = true;
        choice.picks = picks;
    }
    THEN(status, suite_load_chosen(path, &choice, out, error));
    free(picks);
    if (status == STATUS_OK && options->name != NULL) {
        snprintf((*out)->id, sizeof(*out)->id, "%s", options->name);
    }
    return status;
}
