/*
 * Counts ticks that leave out steps. See skipped.h.
 *
 * Most scenarios have none: a text that lacks the member is not decoded.
 */
#include "report/trust/skipped.h"

#include "scenarios/scenarios.h"

#include <stdlib.h>
#include <string.h>

static uint32_t of_intervention(const struct intervention *what, uint32_t ticks)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < what->skipped_count && what->tick + i < ticks; i++) {
        count += what->skipped[i] > 0;
    }
    return count;
}

static uint32_t of_branch(const struct scenario *scenario, const char *branch_id, uint32_t ticks)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < scenario->branch_count; i++) {
        const struct branch *branch = &scenario->branches[i];
        if (strcmp(branch->id, branch_id) == 0) {
            for (uint32_t k = 0; k < branch->intervention_count; k++) {
                count += of_intervention(&branch->interventions[k], ticks);
            }
        }
    }
    return count;
}

enum status skipped_find(struct store *store, const char *scenario_hash, const char *branch_id,
                         uint32_t ticks, uint32_t *out, struct error *error)
{
    char *text = NULL;
    size_t bytes = 0;
    struct scenario_document *document = NULL;
    enum status status = STATUS_OK;
    *out = 0;
    if (branch_id[0] == '\0') {
        return STATUS_OK;
    }
    TRY(store->ops->scenario_get(store, scenario_hash, &text, &bytes, error));
    if (strstr(text, "\"skipped_steps\"") != NULL) {
        status = scenario_load_text(scenario_hash, text, bytes, &document, error);
    }
    if (document != NULL) {
        *out = of_branch(&document->scenario, branch_id, ticks);
    }
    scenario_destroy(document);
    free(text);
    return status;
}
