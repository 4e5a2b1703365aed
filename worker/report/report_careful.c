/*
 * On the card of a failure: whether a careful driver would have avoided it (worker/careful). Driven
 * when the report is written; a scenario of another domain says which.
 */
#include "worker/report/report_internal.h"

#include <stdio.h>
#include <string.h>

static const char *const who[CAREFUL_MODELS] = {"A careful driver", "The fuzzy safety model"};

static void one(struct html *html, const struct scenario *scenario, enum careful_model model,
                const struct careful_drive *drive)
{
    html_raw(html, model > 0 ? " " : "");
    report_metric(html, "careful driver", who[model]);
    if (drive->avoids) {
        html_raw(html, " would have <b class=\"good\">avoided</b> it.");
    } else if (drive->collides && drive->agent >= 0 &&
               (uint32_t)drive->agent < scenario->agent_count) {
        html_format(html, " would have touched %s, at %.1f m/s.", scenario->agents[drive->agent].id,
                    drive->impact_mps);
    } else {
        html_raw(html, " would have touched nothing, but broken a criterion of safety.");
    }
}

enum status report_careful(struct report *report, const struct scenario *scenario,
                           const struct outcome *outcome, struct error *error)
{
    struct html *html = &report->html;
    struct careful found;
    if (!careful_asked(outcome)) {
        return STATUS_OK;
    }
    if (report->careful == NULL) {
        TRY(careful_drivers_create(&report->careful, error));
    }
    TRY(careful_ask(report->careful, scenario, outcome->scenario_hash, outcome->seed, &found,
                    error));
    html_raw(html, "<p>");
    if (found.outside[0] != '\0') {
        html_raw(html, "<span class=\"soft\">What a ");
        report_metric(html, "careful driver", "careful driver");
        html_format(html, " would have done is not known: %s.</span>", found.outside);
    }
    for (int m = 0; found.outside[0] == '\0' && m < CAREFUL_MODELS; m++) {
        one(html, scenario, (enum careful_model)m, &found.drives[m]);
    }
    html_raw(html, "</p>");
    return STATUS_OK;
}

/* A scenario that the store has lost or damaged has no answer, and keeps none from the others. */
static enum status ask_one(struct careful_drivers *drivers, struct store *store,
                           const struct outcome *outcome, json_t *list, struct error *error)
{
    struct scenario_document *document = NULL;
    struct careful found = {.outside = ""};
    char *body = NULL;
    size_t bytes = 0;
    const char *hash = outcome->scenario_hash;
    enum status status = store->ops->scenario_get(store, hash, &body, &bytes, error);
    THEN(status, scenario_load_text(hash, body, bytes, &document, error));
    free(body);
    if (status == STATUS_NOT_FOUND || status == STATUS_BAD_INPUT) {
        snprintf(found.outside, sizeof found.outside, "%.*s", (int)sizeof found.outside - 1,
                 error->text);
        status = STATUS_OK;
    } else {
        THEN(status, careful_ask(drivers, &document->scenario, hash, outcome->seed, &found, error));
    }
    scenario_destroy(document);
    if (status == STATUS_OK) {
        json_t *json = careful_json(&found);
        json_object_set_new(json, "outcome", json_integer(outcome->id));
        json_object_set_new(json, "scenario_id", json_string(outcome->scenario_id));
        json_object_set_new(json, "seed", json_integer((json_int_t)outcome->seed));
        json_array_append_new(list, json);
    }
    return status;
}

enum status report_careful_json(struct store *store, const struct summary *summary, json_t **out,
                                struct error *error)
{
    struct careful_drivers *drivers = NULL;
    json_t *list = json_array();
    enum status status = memory_check(list, error, "careful drivers");
    for (uint32_t i = 0; status == STATUS_OK && i < summary->outcome_count; i++) {
        const struct outcome *outcome = &summary->outcomes[i];
        if (!careful_asked(outcome)) {
            continue;
        }
        if (drivers == NULL) {
            status = careful_drivers_create(&drivers, error);
        }
        THEN(status, ask_one(drivers, store, outcome, list, error));
    }
    careful_drivers_destroy(drivers);
    if (status != STATUS_OK) {
        json_decref(list);
        return status;
    }
    *out = list;
    return STATUS_OK;
}
