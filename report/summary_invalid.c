/*
 * Invalid parts of a suite: rollouts that are neither passes nor failures, because something in
 * them lies beyond what the models hold for. Counted by the check that did not hold, and told as
 * numbers beside the rates that leave them out.
 */
#include "report/summary.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

static int by_count(const void *a, const void *b)
{
    const struct summary_invalid *x = a;
    const struct summary_invalid *y = b;
    return x->rollouts != y->rollouts ? (x->rollouts < y->rollouts ? 1 : -1)
                                      : strcmp(x->check, y->check);
}

uint32_t summary_invalid_checks(const struct summary *summary,
                                struct summary_invalid out[SUMMARY_INVALID_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[i];
        uint32_t k = 0;
        if (outcome->verdict != VERDICT_INVALID) {
            continue;
        }
        while (k < count && strcmp(out[k].check, outcome->health_check) != 0) {
            k++;
        }
        if (k ==
            SUMMARY_INVALID_MAX) { /* names that a newer program wrote: the last row has them */
            k--;
        } else if (k == count) {
            out[k] = (struct summary_invalid){.example = i};
            snprintf(out[k].check, sizeof out[k].check, "%s", outcome->health_check);
            count++;
        }
        out[k].rollouts++;
        out[k].mains += outcome->branch_id[0] == '\0';
    }
    if (count > 0) {
        qsort(out, count, sizeof *out, by_count);
    }
    return count;
}

int64_t summary_invalid_mains(const struct summary *summary)
{
    struct summary_invalid checks[SUMMARY_INVALID_MAX];
    uint32_t count = summary_invalid_checks(summary, checks);
    int64_t mains = 0;
    for (uint32_t i = 0; i < count; i++) {
        mains += checks[i].mains;
    }
    return mains;
}

void summary_print_invalid(const struct summary *summary, FILE *stream)
{
    struct summary_invalid checks[SUMMARY_INVALID_MAX];
    uint32_t count = summary_invalid_checks(summary, checks);
    long long mains = (long long)summary_invalid_mains(summary);
    long long rollouts = (long long)summary->total.verdicts[VERDICT_INVALID];
    if (count == 0) {
        return;
    }
    text_print(stream,
               "\ninvalid, neither pass nor fail, in no rate: %lld rollout%s, of them %lld main "
               "line%s\n",
               rollouts, rollouts == 1 ? "" : "s", mains, mains == 1 ? "" : "s");
    for (uint32_t i = 0; i < count; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[checks[i].example];
        text_print(stream, "  %-18s %6lld  such as %lld, %s%s%s: %s\n", checks[i].check,
                   (long long)checks[i].rollouts, (long long)outcome->id, outcome->scenario_id,
                   outcome->branch_id[0] != '\0' ? " " : "", outcome->branch_id, outcome->error);
    }
}

json_t *summary_invalid_json(const struct summary *summary)
{
    struct summary_invalid checks[SUMMARY_INVALID_MAX];
    uint32_t count = summary_invalid_checks(summary, checks);
    json_t *json = json_object();
    for (uint32_t i = 0; i < count; i++) {
        json_object_set_new(json, checks[i].check, json_integer((json_int_t)checks[i].rollouts));
    }
    return json;
}
