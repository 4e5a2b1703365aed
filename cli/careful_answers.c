/*
 * Careful drivers, asked by commands. See careful_answers.h.
 */
#include "cli/careful_answers.h"

#include "scenarios/scenarios.h"

#include <stdio.h>
#include <stdlib.h>

static enum status ask(struct report_careful *careful, const struct scenario *scenario,
                       const struct outcome *failure, struct careful *out, struct error *error)
{
    struct careful_answers *answers = (struct careful_answers *)careful;
    if (answers->drivers == NULL) {
        TRY(careful_drivers_create(&answers->drivers, error));
    }
    return careful_ask(answers->drivers, scenario, failure->scenario_hash, failure->seed, out,
                       error);
}

struct careful_answers careful_answers_begin(void)
{
    return (struct careful_answers){.careful = {.ask = ask}};
}

void careful_answers_end(struct careful_answers *answers)
{
    careful_drivers_destroy(answers->drivers);
    answers->drivers = NULL;
}

enum status careful_answer(struct careful_answers *answers, struct store *store,
                           const struct outcome *outcome, struct careful *out, struct error *error)
{
    struct scenario_document *document = NULL;
    char *body = NULL;
    size_t bytes = 0;
    const char *hash = outcome->scenario_hash;
    TRY(store->ops->scenario_get(store, hash, &body, &bytes, error));
    enum status status = scenario_load_text(hash, body, bytes, &document, error);
    free(body);
    THEN(status, ask(&answers->careful, &document->scenario, outcome, out, error));
    scenario_destroy(document);
    return status;
}

static enum status add(struct careful_answers *answers, struct store *store,
                       const struct outcome *outcome, json_t *list, struct error *error)
{
    struct careful found = {.outside = ""};
    enum status status = careful_answer(answers, store, outcome, &found, error);
    if (status == STATUS_NOT_FOUND || status == STATUS_BAD_INPUT) {
        snprintf(found.outside, sizeof found.outside, "%.*s", (int)sizeof found.outside - 1,
                 error->text);
        status = STATUS_OK;
    }
    if (status == STATUS_OK) {
        json_t *json = careful_json(&found);
        json_object_set_new(json, "outcome", json_integer(outcome->id));
        json_object_set_new(json, "scenario_id", json_string(outcome->scenario_id));
        json_object_set_new(json, "seed", json_integer((json_int_t)outcome->seed));
        json_array_append_new(list, json);
    }
    return status;
}

enum status careful_answers_json(struct careful_answers *answers, struct store *store,
                                 const struct summary *summary, json_t **out, struct error *error)
{
    json_t *list = json_array();
    enum status status = memory_check(list, error, "careful drivers");
    for (uint32_t i = 0; status == STATUS_OK && i < summary->outcome_count; i++) {
        struct outcome outcome;
        kept_outcome_whole(&summary->outcomes[i], &outcome);
        if (careful_asked(&outcome)) {
            status = add(answers, store, &outcome, list, error);
        }
    }
    if (status != STATUS_OK) {
        json_decref(list);
        return status;
    }
    *out = list;
    return STATUS_OK;
}
