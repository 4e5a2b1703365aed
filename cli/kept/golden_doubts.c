/*
 * Doubts, looked up in the lists of sets. See golden_doubts.h.
 */
#include "cli/kept/golden_doubts.h"

#include "base/text.h"
#include "report/outcome_text.h"
#include "scheduler/calibration.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TOLD_MAX = 5 };

enum status golden_doubts_list(struct store *store, const char *hash, struct golden_list *out,
                               struct error *error)
{
    void *data = NULL;
    size_t bytes = 0;
    TRY(store->ops->artifact_get(store, hash, &data, &bytes, error));
    enum status status = golden_list_decode(data, bytes, out, error);
    free(data);
    return status;
}

static json_t *entry_json(const struct golden_entry *entry)
{
    const struct forecast_share share = forecast_kept(&entry->futures);
    return json_pack("{s:s, s:I, s:i, s:o, s:f, s:f, s:s}", "scenario", entry->scenario_id, "seed",
                     (json_int_t)entry->seed, "at_tick", (int)entry->futures.tick, "p_fail",
                     isnan(share.value) ? json_null() : json_real(share.value), "low", share.low,
                     "high", share.high, "answer", forecast_answer_names[forecast_answer(&share)]);
}

json_t *golden_doubts_json(const struct golden_list *list)
{
    json_t *doubts = json_array();
    for (uint32_t i = 0; i < list->entry_count; i++) {
        if (golden_entry_doubtful(&list->entries[i])) {
            json_array_append_new(doubts, entry_json(&list->entries[i]));
        }
    }
    return doubts;
}

static void tell_one(const struct golden_entry *entry, uint32_t told)
{
    char text[FUTURES_TEXT_BYTES];
    if (told == 0) {
        text_print(stdout, "verdicts that rest on a recording in doubt (docs/goldens.md):\n");
    }
    if (told < TOLD_MAX) {
        text_print(stdout, "  %s, seed %llu: %s\n", entry->scenario_id,
                   (unsigned long long)entry->seed, outcome_text_futures(&entry->futures, text));
    }
}

void golden_doubts_tell(struct store *store, const struct summary *summary, json_t *json)
{
    struct golden_list list = {.name = ""};
    const char *hash = "";
    json_t *doubts = json_array();
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[i];
        struct error gone; /* of a set that was let go nothing is known */
        if (outcome->tier != TIER_GOLDEN || outcome->branch_id[0] != '\0') {
            continue;
        }
        if (strcmp(hash, outcome->model_hash) != 0) {
            golden_list_finish(&list);
            list = (struct golden_list){.name = ""};
            hash = outcome->model_hash;
            (void)golden_doubts_list(store, hash, &list, &gone);
        }
        const struct golden_entry *entry =
            golden_list_find(&list, outcome->scenario_id, outcome->seed);
        if (entry != NULL && golden_entry_doubtful(entry)) {
            if (json == NULL) {
                tell_one(entry, (uint32_t)json_array_size(doubts));
            }
            json_array_append_new(doubts, entry_json(entry));
        }
    }
    if (json == NULL && json_array_size(doubts) > TOLD_MAX) {
        text_print(stdout, "  and %zu more\n", json_array_size(doubts) - TOLD_MAX);
    }
    if (json != NULL && json_array_size(doubts) > 0) {
        json_object_set(json, "golden_doubts", doubts);
    }
    json_decref(doubts);
    golden_list_finish(&list);
}
