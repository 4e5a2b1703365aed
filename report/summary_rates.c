/*
 * Rates of a summary: which outcomes are drives of one case (a concrete scenario under one
 * planner) and which cases are of one logical scenario, so that scheduler/rate.h gets them in
 * order; and what a summary says about seeds.
 */
#include "report/summary.h"

#include "schemas/scenario_id.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool summary_is_sample(const struct outcome *outcome)
{
    return outcome->branch_id[0] == '\0' && verdict_is_result(outcome->verdict);
}

/* ---- logical scenarios ---- */

static int compare_logical(const struct outcome *x, const struct outcome *y)
{
    size_t x_bytes = scenario_id_logical_bytes(x->scenario_id);
    size_t y_bytes = scenario_id_logical_bytes(y->scenario_id);
    int order = memcmp(x->scenario_id, y->scenario_id, x_bytes < y_bytes ? x_bytes : y_bytes);
    return order != 0 ? order : (x_bytes > y_bytes) - (x_bytes < y_bytes);
}

static int compare_cases(const struct outcome *x, const struct outcome *y)
{
    int order = compare_logical(x, y);
    if (order == 0) {
        order = strcmp(x->scenario_hash, y->scenario_hash);
    }
    return order != 0 ? order : strcmp(x->planner, y->planner);
}

/* Outcomes come by id, so their places are their order in time. */
static int compare_outcomes(const void *a, const void *b)
{
    const struct outcome *x = *(const struct outcome *const *)a;
    const struct outcome *y = *(const struct outcome *const *)b;
    int order = compare_cases(x, y);
    return order != 0 ? order : (x > y) - (x < y);
}

/* ---- order ---- */

/* Whether two drives of a case are told once in a list of failures. */
static bool ended_alike(const struct outcome *x, const struct outcome *y)
{
    return summary_is_sample(x) && summary_is_sample(y) && x->tier == y->tier &&
           x->verdict == y->verdict && x->reasons == y->reasons;
}

/* Drives of one case: ordered[first .. end). */
static void group_case(struct summary *summary, const struct outcome *const *ordered,
                       uint32_t first, uint32_t end)
{
    int64_t drives = 0;
    int64_t passed = 0;
    for (uint32_t i = first; i < end; i++) {
        uint32_t index = (uint32_t)(ordered[i] - summary->outcomes);
        summary->same_as[index] = index;
        for (uint32_t k = first; k < i; k++) {
            if (ended_alike(ordered[k], ordered[i])) {
                summary->same_as[index] = (uint32_t)(ordered[k] - summary->outcomes);
                break;
            }
        }
        drives += summary_is_sample(ordered[i]);
        passed += summary_is_sample(ordered[i]) && ordered[i]->verdict == VERDICT_PASS;
    }
    if (drives > 1) {
        summary->seeded_cases++;
        summary->seeded_drives += drives;
        summary->seeded_still += passed == 0 || passed == drives;
    }
}

enum status summary_order(struct summary *summary, struct error *error)
{
    size_t most = (size_t)summary->outcome_count + 1;
    const struct outcome **ordered = calloc(most, sizeof(const struct outcome *));
    summary->order = calloc(most, sizeof *summary->order);
    summary->same_as = calloc(most, sizeof *summary->same_as);
    if (ordered == NULL || summary->order == NULL || summary->same_as == NULL) {
        free(ordered);
        return error_set(error, STATUS_NO_MEMORY, "summary: out of memory");
    }
    uint32_t count = summary->outcome_count;
    for (uint32_t i = 0; i < count; i++) {
        ordered[i] = &summary->outcomes[i];
    }
    qsort(ordered, count, sizeof(const struct outcome *), compare_outcomes);
    int64_t logical_key = 0;
    int64_t case_key = 0;
    uint32_t first = 0;
    for (uint32_t i = 0; i < count; i++) {
        bool new_case = i == 0 || compare_cases(ordered[i - 1], ordered[i]) != 0;
        logical_key += i == 0 || compare_logical(ordered[i - 1], ordered[i]) != 0;
        case_key += new_case;
        summary->order[i] =
            (struct summary_place){.index = (uint32_t)(ordered[i] - summary->outcomes),
                                   .logical_key = logical_key,
                                   .case_key = case_key};
        if (new_case) {
            group_case(summary, ordered, first, i);
            first = i;
        }
    }
    group_case(summary, ordered, first, count);
    free(ordered);
    return STATUS_OK;
}

void summary_add_rates(struct summary_row *row, const struct summary_place *place,
                       const struct outcome *outcome)
{
    if (outcome->branch_id[0] == '\0' && outcome->verdict != VERDICT_INVALID) {
        double value = outcome->verdict == VERDICT_PASS      ? 1.0
                       : outcome->verdict == VERDICT_FLAGGED ? NAN
                                                             : 0.0;
        rate_add(&row->rate[outcome->tier], place->logical_key, place->case_key, value);
    }
    if (summary_is_learned(outcome)) {
        rate_add(&row->flag_rate, place->logical_key, place->case_key, summary_is_caught(outcome));
    }
}

bool summary_is_repeat(const struct summary *summary, uint32_t index)
{
    return summary->same_as != NULL && summary->same_as[index] != index;
}

/* ---- rates of a row ---- */

int summary_row_tiers(const struct summary_row *row)
{
    int count = 0;
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        count += row->rate[tier].drives > 0;
    }
    return count;
}

int summary_row_lowest(const struct summary_row *row)
{
    int lowest = -1;
    double least = INFINITY;
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        struct rate_estimate at = rate_estimate(&row->rate[tier]);
        if (at.cases > 0 && at.value < least) {
            lowest = tier;
            least = at.value;
        }
    }
    return lowest;
}

/* ---- in words ---- */

const char *summary_interval_text(const struct rate_estimate *at, char out[SUMMARY_MONEY_BYTES])
{
    snprintf(out, SUMMARY_MONEY_BYTES, "-");
    if (at->cases > 0) {
        snprintf(out, SUMMARY_MONEY_BYTES, "%5.1f%% [%3.0f-%3.0f]", 100 * at->value,
                 rate_down(100 * at->low, 1), rate_up(100 * at->high, 1));
    }
    return out;
}

const char *summary_weight_text(const struct rate_estimate *at, char out[SUMMARY_MONEY_BYTES])
{
    out[0] = '\0';
    if (at->logical > 1 && at->largest >= 0.25) {
        snprintf(out, SUMMARY_MONEY_BYTES, ": one holds %.0f%% of the weight", 100 * at->largest);
    }
    return out;
}

const char *summary_seeds_text(const struct summary *summary, char out[SUMMARY_SEEDS_BYTES])
{
    long long cases = (long long)summary->seeded_cases;
    out[0] = '\0';
    if (cases > 0) {
        snprintf(out, SUMMARY_SEEDS_BYTES,
                 "%lld drives of %lld scenario%s under several seeds: each scenario counts once, "
                 "with its mean; in %lld of them every seed gave the same verdict.",
                 (long long)summary->seeded_drives, cases, summary_plural(cases),
                 (long long)summary->seeded_still);
    }
    return out;
}

const char *summary_range_text(const struct summary_row *row, enum tier tier,
                               char out[SUMMARY_SEEDS_BYTES])
{
    struct rate_estimate at = rate_estimate(&row->rate[tier]);
    out[0] = '\0';
    if (at.missing > 0) {
        snprintf(out, SUMMARY_SEEDS_BYTES,
                 "%s: %lld of %lld main lines have no result, because they were flagged: the rate "
                 "would be %.1f%% had they all failed, %.1f%% had they all passed.",
                 tier_names[tier], (long long)at.missing, (long long)(at.missing + at.drives),
                 100 * at.worst, 100 * at.best);
    }
    return out;
}
