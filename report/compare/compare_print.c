/*
 * A comparison in the terminal, and as JSON.
 */
#include "report/compare/compare.h"

#include "base/text.h"
#include "schemas/json_record.h"

#include <math.h>
#include <string.h>

enum { LISTED_MAX = 40 };

static const struct compare_rollout *rollout_a(const struct compare *compare, uint32_t pair)
{
    return &compare->a->rollouts[compare->pairs[pair].a];
}

static const struct compare_rollout *rollout_b(const struct compare *compare, uint32_t pair)
{
    return &compare->b->rollouts[compare->pairs[pair].b];
}

static void print_side(const char *name, const struct compare_side *side, FILE *out)
{
    text_print(out, "%s  %s  suite %s in %s, revision %.12s", name, side->planner, side->suite_id,
               side->store_url, side->revision);
    if (side->model_hash[0] != '\0') {
        text_print(out, ", model %.12s", side->model_hash);
    }
    text_print(out, "\n");
}

static void print_row(const struct compare_row *row, FILE *out)
{
    char p[16] = "      -";
    char name[2 * LIMIT_ID_BYTES];
    snprintf(name, sizeof name, "%s%s%s", row->group, row->value[0] != '\0' ? " " : "", row->value);
    if (!isnan(row->p)) {
        if (row->p < 1e-4) {
            snprintf(p, sizeof p, "<0.0001");
        } else {
            snprintf(p, sizeof p, "%7.4f", row->p);
        }
    }
    text_print(out, "  %-36s %6lld  %5.1f%%  %5.1f%%  %+6.1f [%+6.1f, %+6.1f]  %5lld %6lld  %s\n",
               name, (long long)row->mains, 100 * row->a.value, 100 * row->b.value,
               100 * row->difference.value, rate_down(100 * row->difference.low, 0.1),
               rate_up(100 * row->difference.high, 0.1), (long long)row->fixed,
               (long long)row->broken, p);
}

static void print_rows(const struct compare *compare, FILE *out)
{
    text_print(out, "\n  %-36s %6s  %6s  %6s  %24s  %5s %6s  %7s\n", "main lines that pass",
               "count", "A", "B", "B - A, points, 95%", "fixed", "broken", "p");
    uint32_t still = 0; /* slices in which nothing changed */
    print_row(&compare->all, out);
    for (uint32_t i = 0; i < compare->row_count; i++) {
        const struct compare_row *row = &compare->rows[i];
        if (row->mains < compare->all.mains && row->fixed + row->broken > 0) {
            print_row(row, out);
        }
        still += row->fixed + row->broken == 0;
    }
    if (still > 0) {
        text_print(out, "  %u slices in which nothing changed: --json has them\n", still);
    }
    text_print(out,
               "p: exact test over %s whether B passes as often as A; slices after Tarone "
               "and Holm. Intervals: clustered likewise, each for itself\n",
               compare->by_case ? "scenarios (too few logical ones)" : "logical scenarios");
}

static void print_measures(const struct compare *compare, FILE *out)
{
    text_print(out, "\n  %-36s %6s  %9s %9s  %s\n", "mean over scenarios", "count", "A", "B",
               "B - A, 95% each: of twenty one misses");
    for (int m = 0; m < COMPARE_MEASURE_COUNT; m++) {
        char difference[PAIRED_TEXT_BYTES];
        if (compare->measures[m].cases > 0) {
            text_print(out, "  %-36s %6lld  %9.4g %9.4g  %s\n", compare_measure_names[m],
                       (long long)compare->measures[m].cases, compare->measures[m].a,
                       compare->measures[m].b,
                       paired_mean_text(&compare->measures[m].difference, difference));
        }
    }
}

static void print_flip(const struct compare *compare, uint32_t pair, FILE *out)
{
    const struct compare_rollout *a = rollout_a(compare, pair);
    const struct compare_rollout *b = rollout_b(compare, pair);
    const struct compare_rollout *worse = compare_passed(a) ? b : a;
    char reasons[REASONS_TEXT_BYTES];
    text_print(out, "  %s%s%s, seed %llu, %s: ", a->scenario_id,
               a->branch_id[0] != '\0' ? " branch " : "", a->branch_id, (unsigned long long)a->seed,
               tier_names[a->tier]);
    if (worse->reasons == 0) {
        text_print(out, "%s", verdict_names[worse->verdict]);
    }
    text_print(out, "%s", reasons_text(worse->reasons, ", ", reasons));
    text_print(out, "\n    swerve replay %lld --store %s\n", (long long)a->id,
               compare->a->store_url);
    text_print(out, "    swerve replay %lld --store %s\n", (long long)b->id, compare->b->store_url);
}

static void print_flips(const struct compare *compare, bool broken, FILE *out)
{
    uint32_t shown = 0;
    uint32_t all = 0;
    for (uint32_t i = 0; i < compare->flip_count; i++) {
        uint32_t pair = compare->flips[i];
        if (compare_passed(rollout_a(compare, pair)) != broken) {
            continue;
        }
        if (all++ == 0) {
            text_print(out, "\n%s\n",
                       broken ? "broken: A passes, B does not" : "fixed: B passes, A does not");
        }
        if (shown < LISTED_MAX) {
            print_flip(compare, pair, out);
            shown++;
        }
    }
    if (all > shown) {
        text_print(out, "  and %u more: --json has all\n", all - shown);
    }
}

void compare_print(const struct compare *compare, FILE *out)
{
    char revisions[COMPARE_REVISIONS_BYTES];
    print_side("A", compare->a, out);
    print_side("B", compare->b, out);
    if (compare_revisions(compare, revisions)[0] != '\0') {
        text_print(out, "NOTE: %s\n", revisions);
    }
    text_print(out, "%u rollouts compared, of these %lld main lines and %lld branches\n",
               compare->pair_count, (long long)compare->all.mains,
               (long long)compare->branch_pairs);
    if (compare->only_a + compare->only_b + compare->changed + compare->no_result > 0) {
        text_print(out,
                   "not compared: %lld only in A, %lld only in B, %lld of a changed scenario, %lld "
                   "without a result on a side\n",
                   (long long)compare->only_a, (long long)compare->only_b,
                   (long long)compare->changed, (long long)compare->no_result);
    }
    if (compare->all.mains > 0) {
        print_rows(compare, out);
        print_measures(compare, out);
    }
    print_flips(compare, true, out);
    print_flips(compare, false, out);
    text_print(out, "\nmain lines: %lld fixed, %lld broken; branches: %lld fixed, %lld broken\n",
               (long long)compare->all.fixed, (long long)compare->all.broken,
               (long long)compare->branch_fixed, (long long)compare->branch_broken);
}

/* ---- JSON ---- */

static json_t *side_json(const struct compare_side *side)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i}", "store", side->store_url, "suite",
                     side->suite_id, "planner", side->planner, "planner_hash", side->planner_hash,
                     "model_hash", side->model_hash, "revision", side->revision, "rollouts",
                     (int)side->count, "superseded", (int)side->superseded);
}

static json_t *estimate_json(const struct rate_estimate *rate)
{
    return json_pack("{s:o, s:o, s:o}", "rate", json_finite_new(rate->value), "low",
                     json_finite_new(rate->low), "high", json_finite_new(rate->high));
}

static json_t *row_json(const struct compare_row *row)
{
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:{s:o, s:o, s:o}, s:o}", "group",
                     row->group, "value", row->value, "main_lines", (json_int_t)row->mains, "fixed",
                     (json_int_t)row->fixed, "broken", (json_int_t)row->broken, "a",
                     estimate_json(&row->a), "b", estimate_json(&row->b), "difference", "value",
                     json_finite_new(row->difference.value), "low",
                     json_finite_new(row->difference.low), "high",
                     json_finite_new(row->difference.high), "p", json_finite_new(row->p));
}

static json_t *flip_json(const struct compare *compare, uint32_t pair)
{
    const struct compare_rollout *a = rollout_a(compare, pair);
    const struct compare_rollout *b = rollout_b(compare, pair);
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:I, s:s, s:I, s:s}", "scenario_id", a->scenario_id,
                     "branch_id", a->branch_id, "seed", (json_int_t)a->seed, "world",
                     tier_names[a->tier], "change", compare_passed(a) ? "broken" : "fixed",
                     "outcome_a", (json_int_t)a->id, "verdict_a", verdict_names[a->verdict],
                     "outcome_b", (json_int_t)b->id, "verdict_b", verdict_names[b->verdict]);
}

static json_t *measure_json(const struct compare *compare, int m)
{
    const struct paired_mean *difference = &compare->measures[m].difference;
    return json_pack(
        "{s:I, s:o, s:o, s:{s:o, s:o, s:o}}", "scenarios", (json_int_t)compare->measures[m].cases,
        "a", json_finite_new(compare->measures[m].a), "b", json_finite_new(compare->measures[m].b),
        "difference", "value", json_finite_new(difference->value), "low",
        json_finite_new(difference->low), "high", json_finite_new(difference->high));
}

json_t *compare_json(const struct compare *compare)
{
    char revisions[COMPARE_REVISIONS_BYTES];
    json_t *slices = json_array();
    json_t *flips = json_array();
    json_t *measures = json_object();
    for (uint32_t i = 0; i < compare->row_count; i++) {
        json_array_append_new(slices, row_json(&compare->rows[i]));
    }
    for (uint32_t i = 0; i < compare->flip_count; i++) {
        json_array_append_new(flips, flip_json(compare, compare->flips[i]));
    }
    for (int m = 0; m < COMPARE_MEASURE_COUNT; m++) {
        json_object_set_new(measures, compare_measure_names[m], measure_json(compare, m));
    }
    return json_pack(
        "{s:o, s:o, s:s, s:i, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:o, s:o, s:{s:I, s:I, s:I}}", "a",
        side_json(compare->a), "b", side_json(compare->b), "revisions",
        compare_revisions(compare, revisions), "compared", (int)compare->pair_count, "only_a",
        (json_int_t)compare->only_a, "only_b", (json_int_t)compare->only_b, "changed",
        (json_int_t)compare->changed, "no_result", (json_int_t)compare->no_result, "cluster",
        compare->by_case ? "scenario" : "logical_scenario", "all", row_json(&compare->all),
        "slices", slices, "measures", measures, "flips", flips, "branches", "compared",
        (json_int_t)compare->branch_pairs, "fixed", (json_int_t)compare->branch_fixed, "broken",
        (json_int_t)compare->branch_broken);
}
