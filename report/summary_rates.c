/*
 * Rates of a summary: which outcomes are drives of one case (a concrete scenario under one
 * planner) and which cases are of one logical scenario, so that scheduler/rate.h gets them in
 * order; and what a summary says about seeds.
 */
#include "report/summary.h"

#include "scenarios/scenarios.h"
#include "schemas/scenario_id.h"
#include "schemas/scenario_json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool summary_is_sample(const struct kept_outcome *outcome)
{
    return outcome->branch_id[0] == '\0' && verdict_is_result(outcome->verdict);
}

/* ---- logical scenarios ---- */

static int compare_logical(const struct kept_outcome *x, const struct kept_outcome *y)
{
    return scenario_id_compare_logical(x->scenario_id, y->scenario_id);
}

static int compare_cases(const struct kept_outcome *x, const struct kept_outcome *y)
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
    const struct kept_outcome *x = *(const struct kept_outcome *const *)a;
    const struct kept_outcome *y = *(const struct kept_outcome *const *)b;
    int order = compare_cases(x, y);
    return order != 0 ? order : (x > y) - (x < y);
}

/* ---- order ---- */

/* Whether two drives of a case are told once in a list of failures. */
static bool ended_alike(const struct kept_outcome *x, const struct kept_outcome *y)
{
    return summary_is_sample(x) && summary_is_sample(y) && x->tier == y->tier &&
           x->verdict == y->verdict && x->reasons == y->reasons;
}

/* Drives of one case: ordered[first .. end). */
static void group_case(struct summary *summary, const struct kept_outcome *const *ordered,
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
    const struct kept_outcome **ordered = calloc(most, sizeof(const struct kept_outcome *));
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
    qsort(ordered, count, sizeof(const struct kept_outcome *), compare_outcomes);
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

/* ---- rates of a row ---- */

static int compare_part(const struct summary_part *part, const char *planner, enum tier tier)
{
    int order = strcmp(part->planner, planner);
    return order != 0 ? order : (int)part->tier - (int)tier;
}

/* The part of a planner in a tier, made where it is not there; NULL: out of memory. */
static struct summary_part *find_part(struct summary_row *row, const char *planner, enum tier tier)
{
    uint32_t at = 0;
    while (at < row->part_count && compare_part(&row->parts[at], planner, tier) < 0) {
        at++;
    }
    if (at < row->part_count && compare_part(&row->parts[at], planner, tier) == 0) {
        return &row->parts[at];
    }
    struct summary_part *grown = realloc(row->parts, (row->part_count + 1) * sizeof *grown);
    if (grown == NULL) {
        return NULL;
    }
    row->parts = grown;
    memmove(&grown[at + 1], &grown[at], (row->part_count++ - at) * sizeof *grown);
    grown[at] = (struct summary_part){.planner = planner, .tier = tier};
    row->planners = strcmp(grown[0].planner, grown[row->part_count - 1].planner) != 0;
    return &grown[at];
}

/* Value of a main line, as rate_add() takes it. */
static double value_of(enum verdict verdict)
{
    return verdict == VERDICT_PASS ? 1.0 : verdict_is_result(verdict) ? 0.0 : (double)NAN;
}

enum status summary_add_rates(struct summary_row *row, const struct summary_place *place,
                              const struct kept_outcome *outcome, struct error *error)
{
    if (outcome->branch_id[0] == '\0') {
        struct summary_part *part = find_part(row, outcome->planner, outcome->tier);
        TRY(memory_check(part, error, "summary: out of memory"));
        rate_add(&part->rate, place->logical_key, place->case_key, value_of(outcome->verdict));
        part->lacking[SUMMARY_FLAGGED] += outcome->verdict == VERDICT_FLAGGED;
        part->lacking[SUMMARY_INVALID] += outcome->verdict == VERDICT_INVALID;
        if (verdict_is_result(outcome->verdict)) {
            rate_add(&part->guardian[outcome->verdict == VERDICT_PASS], place->logical_key,
                     place->case_key, outcome->metrics.intervention_count > 0);
        }
    }
    if (summary_is_learned(outcome)) {
        rate_add(&row->flag_rate, place->logical_key, place->case_key, summary_is_caught(outcome));
    }
    return STATUS_OK;
}

/* ---- main lines that were not driven ---- */

/* By case and tier. */
static int compare_undriven(const struct summary_undriven *x, const char *scenario_hash,
                            const char *planner, enum tier tier)
{
    int order = strcmp(x->scenario_hash, scenario_hash);
    order = order != 0 ? order : strcmp(x->planner, planner);
    return order != 0 ? order : (int)x->tier - (int)tier;
}

static int by_case(const void *a, const void *b)
{
    const struct summary_undriven *x = *(const struct summary_undriven *const *)a;
    const struct summary_undriven *y = *(const struct summary_undriven *const *)b;
    int order = compare_undriven(x, y->scenario_hash, y->planner, y->tier);
    return order != 0 ? order : (x > y) - (x < y);
}

enum status summary_order_undriven(struct summary *summary, struct error *error)
{
    uint32_t count = summary->undriven_count;
    summary->undriven_order = calloc((size_t)count + 1, sizeof *summary->undriven_order);
    TRY(memory_check(summary->undriven_order, error, "summary: out of memory"));
    for (uint32_t i = 0; i < count; i++) {
        summary->undriven_order[i] = &summary->undriven[i];
    }
    qsort(summary->undriven_order, count, sizeof *summary->undriven_order, by_case);
    return STATUS_OK;
}

static enum status add_lacking(struct summary_row *row, const struct summary_undriven *undriven,
                               const struct summary_place *place, struct error *error)
{
    struct summary_part *part = find_part(row, undriven->planner, undriven->tier);
    TRY(memory_check(part, error, "summary: out of memory"));
    rate_add(&part->rate, place->logical_key, place->case_key, NAN);
    part->lacking[undriven->lack]++;
    return STATUS_OK;
}

/* Slices of a scenario: of an outcome, or of a document. */
struct slice_texts {
    const char *value[SLICE_KIND_COUNT];
    bool safety_critical;
};

static enum status add_to_slices(struct summary *summary, const struct summary_undriven *undriven,
                                 const struct summary_place *place,
                                 const struct slice_texts *slices, struct error *error)
{
    for (int k = 0; k <= SLICE_KIND_COUNT; k++) {
        bool is_slice = k < SLICE_KIND_COUNT;
        struct summary_row *row =
            is_slice ? summary_row_make(summary, slice_names[k], slices->value[k])
                     : summary_row_make(summary, "safety_critical",
                                        slices->safety_critical ? "true" : "false");
        TRY(memory_check(row, error, "summary: out of memory"));
        TRY(add_lacking(row, undriven, place, error));
    }
    return STATUS_OK;
}

/* To the whole, its tier, its planner and its slices (NULL: not known). */
static enum status add_undriven(struct summary *summary, struct summary_undriven *undriven,
                                const struct summary_place *place, const struct slice_texts *slices,
                                struct error *error)
{
    undriven->counted = true;
    TRY(slices != NULL ? add_to_slices(summary, undriven, place, slices, error) : STATUS_OK);
    TRY(add_lacking(&summary->total, undriven, place, error));
    for (uint32_t k = 0; k < summary->row_count; k++) {
        struct summary_row *row = &summary->rows[k];
        bool of_tier =
            strcmp(row->group, "tier") == 0 && strcmp(row->value, tier_names[undriven->tier]) == 0;
        bool of_planner =
            strcmp(row->group, "planner") == 0 && strcmp(row->value, undriven->planner) == 0;
        TRY(of_tier || of_planner ? add_lacking(row, undriven, place, error) : STATUS_OK);
    }
    return STATUS_OK;
}

enum status summary_add_beside(struct summary *summary, const struct summary_place *place,
                               struct error *error)
{
    const struct kept_outcome *outcome = &summary->outcomes[place->index];
    struct summary_undriven **ordered = summary->undriven_order;
    const uint32_t count = summary->undriven_count;
    struct slice_texts slices = {.safety_critical = outcome->safety_critical};
    uint32_t low = 0;
    uint32_t high = count;
    memcpy(slices.value, outcome->slice, sizeof slices.value);
    if (outcome->branch_id[0] != '\0') {
        return STATUS_OK;
    }
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        bool before = compare_undriven(ordered[middle], outcome->scenario_hash, outcome->planner,
                                       outcome->tier) < 0;
        *(before ? &low : &high) = before ? middle + 1 : middle;
    }
    for (; low < count && !ordered[low]->counted &&
           compare_undriven(ordered[low], outcome->scenario_hash, outcome->planner,
                            outcome->tier) == 0;
         low++) {
        TRY(add_undriven(summary, ordered[low], place, &slices, error));
    }
    return STATUS_OK;
}

/* The scenario of a case of which nothing was driven; *out NULL: it cannot be read. */
static enum status load_undriven(struct store *store, const char *hash,
                                 struct scenario_document **out, struct error *error)
{
    char *body = NULL;
    size_t bytes = 0;
    *out = NULL;
    enum status status = store->ops->scenario_get(store, hash, &body, &bytes, error);
    THEN(status, scenario_load_text(hash, body, bytes, out, error));
    free(body);
    bool unknown = status == STATUS_NOT_FOUND || status == STATUS_BAD_INPUT ||
                   status == STATUS_LIMIT || status == STATUS_GONE;
    return unknown ? STATUS_OK : status;
}

static struct slice_texts slices_of(const struct scenario *scenario)
{
    struct slice_texts slices = {.safety_critical = scenario->slices.safety_critical};
    for (int k = 0; k < SLICE_KIND_COUNT; k++) {
        slices.value[k] = scenario->slices.value[k];
    }
    return slices;
}

enum status summary_add_undriven(struct store *store, struct summary *summary, struct error *error)
{
    struct scenario_document *document = NULL; /* of last */
    enum status status = STATUS_OK;
    uint32_t count = summary->outcome_count;
    struct summary_place place = {.case_key = count > 0 ? summary->order[count - 1].case_key : 0};
    const struct summary_undriven *last = NULL;
    for (uint32_t i = 0; i < summary->undriven_count && status == STATUS_OK; i++) {
        struct summary_undriven *at = summary->undriven_order[i];
        if (at->counted) {
            continue;
        }
        if (last == NULL || strcmp(at->scenario_hash, last->scenario_hash) != 0) {
            scenario_destroy(document);
            status = load_undriven(store, at->scenario_hash, &document, error);
        }
        place.case_key += last == NULL ||
                          compare_undriven(at, last->scenario_hash, last->planner, last->tier) != 0;
        place.logical_key = place.case_key;
        last = at;
        struct slice_texts slices;
        if (document != NULL) {
            slices = slices_of(&document->scenario);
        }
        THEN(status, add_undriven(summary, at, &place, document != NULL ? &slices : NULL, error));
    }
    scenario_destroy(document);
    return status;
}

bool summary_is_repeat(const struct summary *summary, uint32_t index)
{
    return summary->same_as != NULL && summary->same_as[index] != index;
}

int summary_row_rates(const struct summary_row *row)
{
    int count = 0;
    for (uint32_t i = 0; i < row->part_count; i++) {
        count += row->parts[i].rate.drives > 0;
    }
    return count;
}

const struct summary_part *summary_row_lowest(const struct summary_row *row)
{
    const struct summary_part *lowest = NULL;
    double least = INFINITY;
    for (uint32_t i = 0; i < row->part_count; i++) {
        struct rate_estimate at = rate_estimate(&row->parts[i].rate);
        if (at.cases > 0 && at.value < least) {
            lowest = &row->parts[i];
            least = at.value;
        }
    }
    return lowest;
}

const struct summary_part *summary_row_part(const struct summary_row *row, const char *planner,
                                            enum tier tier)
{
    for (uint32_t i = 0; i < row->part_count; i++) {
        const struct summary_part *part = &row->parts[i];
        if (part->tier == tier && (planner == NULL || strcmp(part->planner, planner) == 0)) {
            return part;
        }
    }
    return NULL;
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

/* The reason of most failures, and of how many; planners' errors are a reason of their own. */
static int64_t main_reason(const struct summary *summary, char out[LIMIT_ID_BYTES])
{
    int64_t counts[REASON_BIT_COUNT + 1] = {0};
    int most = 0;
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[i];
        if (!summary_is_sample(outcome)) {
            continue;
        }
        for (int bit = 0; bit < REASON_BIT_COUNT; bit++) {
            counts[bit] += outcome->verdict == VERDICT_FAIL && (outcome->reasons >> bit & 1u) != 0;
        }
        counts[REASON_BIT_COUNT] += outcome->verdict == VERDICT_PLANNER_ERROR;
    }
    for (int bit = 1; bit <= REASON_BIT_COUNT; bit++) {
        most = counts[bit] > counts[most] ? bit : most;
    }
    summary_plain_text(
        most < REASON_BIT_COUNT ? reason_names[most] : verdict_names[VERDICT_PLANNER_ERROR], out);
    return counts[most];
}

const char *summary_conclusion_text(const struct summary *summary,
                                    char out[SUMMARY_CONCLUSION_BYTES])
{
    const struct summary_row *total = &summary->total;
    long long mains = (long long)total->main_total;
    long long failed = mains - (long long)total->main_passed;
    int64_t lacking[SUMMARY_LACK_COUNT];
    int64_t missing = summary_lacking(summary, lacking);
    char reason[LIMIT_ID_BYTES];
    char names[SUMMARY_SEEDS_BYTES];
    int64_t by_reason = main_reason(summary, reason);
    char verdict[80] = "No main line has a result";
    int64_t made = summary_made(summary);
    if (made > 0 && mains == 0) {
        snprintf(verdict, sizeof verdict, "%lld rollouts made goldens or clips, none is judged",
                 (long long)made);
    } else if (failed > 0) {
        snprintf(verdict, sizeof verdict, "%lld of %lld main lines failed", failed, mains);
    } else if (mains > 0) {
        snprintf(verdict, sizeof verdict, "No main line failed, %lld passed", mains);
    }
    size_t used = (size_t)snprintf(out, SUMMARY_CONCLUSION_BYTES, "%s", verdict);
    if (by_reason > 0) {
        used += (size_t)snprintf(out + used, SUMMARY_CONCLUSION_BYTES - used, ", %lld by %s",
                                 (long long)by_reason, reason);
    }
    if (missing > 0) {
        used +=
            (size_t)snprintf(out + used, SUMMARY_CONCLUSION_BYTES - used,
                             "; %lld %s no result (%.100s)", (long long)missing,
                             missing == 1 ? "has" : "have", summary_lacking_text(lacking, names));
    }
    int64_t open = summary_unfinished(summary);
    if (open > 0) {
        used += (size_t)snprintf(out + used, SUMMARY_CONCLUSION_BYTES - used,
                                 "; %lld job%s not finished", (long long)open,
                                 open == 1 ? " is" : "s are");
    }
    snprintf(out + used, SUMMARY_CONCLUSION_BYTES - used, ".");
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

const char *summary_part_text(const struct summary_row *row, const struct summary_part *part,
                              char out[SUMMARY_PART_BYTES])
{
    snprintf(out, SUMMARY_PART_BYTES, "%s%s%s", row->planners ? part->planner : "",
             row->planners ? ", " : "", tier_names[part->tier]);
    return out;
}

const char *summary_range_text(const struct summary_part *part, char out[SUMMARY_SEEDS_BYTES])
{
    struct rate_estimate at = rate_estimate(&part->rate);
    char lacking[SUMMARY_SEEDS_BYTES];
    out[0] = '\0';
    if (at.missing > 0) {
        snprintf(
            out, SUMMARY_SEEDS_BYTES,
            "%s: %lld of %lld main lines have no result (%.100s): the rate would be %.1f%% had "
            "they all failed, %.1f%% had they all passed.",
            tier_names[part->tier], (long long)at.missing, (long long)(at.missing + at.drives),
            summary_lacking_text(part->lacking, lacking), 100 * at.worst, 100 * at.best);
    }
    return out;
}
