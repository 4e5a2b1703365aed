/*
 * Causes by which main lines have no result of the planner's: invalid parts of a suite, which are
 * neither passes nor failures because something in them lies beyond what the models hold for, by
 * the check that did not hold; and errors of the planner by its words, so that one cause is told
 * once and not once a scenario.
 */
#include "report/summary.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

/* ---- invalid ---- */

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

/* ---- errors of the planner ---- */

/* Words of an error without the tick at which it came, which differs from drive to drive. */
static const char *words_of(const char *error)
{
    static const char tick[] = "tick ";
    if (strncmp(error, tick, sizeof tick - 1) != 0) {
        return error;
    }
    const char *at = error + sizeof tick - 1;
    size_t digits = strspn(at, "0123456789");
    return digits > 0 && strncmp(at + digits, ": ", 2) == 0 ? at + digits + 2 : error;
}

bool summary_is_error(const struct summary *summary, uint32_t index)
{
    const struct kept_outcome *outcome = &summary->outcomes[index];
    return outcome->verdict == VERDICT_PLANNER_ERROR && outcome->branch_id[0] == '\0';
}

static int by_mains(const void *a, const void *b)
{
    const struct summary_error *x = a;
    const struct summary_error *y = b;
    if (x->mains != y->mains) {
        return x->mains < y->mains ? 1 : -1;
    }
    return x->example < y->example ? -1 : x->example > y->example;
}

uint32_t summary_errors(const struct summary *summary, struct summary_error out[SUMMARY_ERRORS_MAX])
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        const char *words = words_of(summary->outcomes[i].error);
        uint32_t k = 0;
        if (!summary_is_error(summary, i) || summary_is_repeat(summary, i)) {
            continue;
        }
        while (k < count && strcmp(out[k].words, words) != 0) {
            k++;
        }
        if (k == SUMMARY_ERRORS_MAX) { /* of many causes the first ones are told */
            continue;
        }
        if (k == count) {
            out[count++] = (struct summary_error){.words = words, .example = i};
        }
        out[k].mains++;
    }
    if (count > 0) {
        qsort(out, count, sizeof *out, by_mains);
    }
    return count;
}

const struct summary_error *summary_error_of(const struct summary *summary,
                                             const struct summary_error *errors, uint32_t count,
                                             uint32_t index)
{
    const char *words = words_of(summary->outcomes[index].error);
    for (uint32_t k = 0; summary_is_error(summary, index) && k < count; k++) {
        if (strcmp(errors[k].words, words) == 0) {
            return &errors[k];
        }
    }
    return NULL;
}
