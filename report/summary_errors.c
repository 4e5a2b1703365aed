/*
 * Errors of a suite's planner: main lines that it could not drive, grouped by its words, so that
 * one cause is told once and not once a scenario.
 */
#include "report/summary.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

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

static int by_count(const void *a, const void *b)
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
        qsort(out, count, sizeof *out, by_count);
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
