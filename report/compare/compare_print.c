/*
 * A comparison in the terminal and as JSON, and the tables that its page has too.
 */
#include "report/compare/compare.h"
#include "report/page/metrics.h"

#include "base/text.h"
#include "schemas/json_record.h"

#include <math.h>

enum { LISTED_MAX = 40 };

const struct compare_rollout *compare_rollout(const struct compare *compare, uint32_t pair,
                                              bool of_b)
{
    return of_b ? &compare->b->rollouts[compare->pairs[pair].b]
                : &compare->a->rollouts[compare->pairs[pair].a];
}

static void print_side(const char *name, const struct compare_side *side, FILE *out)
{
    text_print(out, "%s  %s  suite %s in %s, revision %.12s%s%.12s\n", name, side->planner,
               side->suite_id, side->store_url, side->revision,
               side->model_hash[0] != '\0' ? ", model " : "", side->model_hash);
}

static void write_row(struct page *page, const struct compare_row *row, bool total)
{
    char p[16];
    snprintf(p, sizeof p, isnan(row->p) ? "-" : row->p < 1e-4 ? "<0.0001" : "%.4f", row->p);
    page_row(page, "[%s]{wrap}%s %s|%lld|%.1f%%|%.1f%%|%+6.1f [%+6.1f, %+6.1f]|%lld|%lld|%s",
             total ? "total" : "", row->group, row->value, (long long)row->mains,
             100 * row->a.value, 100 * row->b.value, 100 * row->difference.value,
             rate_down(100 * row->difference.low, 0.1), rate_up(100 * row->difference.high, 0.1),
             (long long)row->fixed, (long long)row->broken, p);
}

static void open_rows(struct page *page)
{
    page_table(
        page, " class=\"lines rates\"",
        "  36 main lines that pass| #6 count|  #6 A|  #6 B|  #23 B - A, points, 95%%=B &minus; "
        "A, points, 95%%|  #5 fixed| #6 broken|  #7 p");
}

static void write_end(struct page *page, const char *name, const struct compare_ends *ends)
{
    const int64_t *of = ends->verdicts;
    page_row(page, "%s|%lld|%lld|%lld|%lld|%lld|%lld|%lld|%.1f%%|%.1f to %.1f%%", name,
             (long long)of[VERDICT_PASS], (long long)of[VERDICT_FAIL],
             (long long)of[VERDICT_PLANNER_ERROR], (long long)of[VERDICT_INVALID],
             (long long)of[VERDICT_FLAGGED], (long long)ends->missing, (long long)ends->changed,
             100 * ends->rate.value, 100 * ends->rate.worst, 100 * ends->rate.best);
}

void compare_write_ends(const struct compare *compare, struct page *page)
{
    page_table(page, " class=\"lines ends\"",
               "10 main lines| #6 pass| #6 fail| #6 error| #8 invalid| #8 flagged| #8 missing| "
               "#8 changed| #7 passed|  #16 without a result, failed or passed=range: what has no "
               "result that could be compared failed, or passed");
    write_end(page, "A", &compare->ends_a);
    write_end(page, "B", &compare->ends_b);
    page_table_end(page);
}

void compare_write_whole(const struct compare *compare, struct page *page)
{
    open_rows(page);
    write_row(page, &compare->all, true);
}

void compare_write_slices(const struct compare *compare, struct page *page)
{
    open_rows(page);
    for (uint32_t i = 0; i < compare->row_count; i++) {
        if (compare->rows[i].mains < compare->all.mains) {
            write_row(page, &compare->rows[i], false);
        }
    }
    page_table_end(page);
}

uint32_t compare_write_changed(const struct compare *compare, struct page *page)
{
    uint32_t still = 0;
    compare_write_whole(compare, page);
    for (uint32_t i = 0; i < compare->row_count; i++) {
        const struct compare_row *row = &compare->rows[i];
        if (row->mains < compare->all.mains && row->fixed + row->broken > 0) {
            write_row(page, row, false);
        }
        still += row->fixed + row->broken == 0;
    }
    return still;
}

static void print_rows(const struct compare *compare, struct page *page)
{
    char words[COMPARE_WORDS_BYTES];
    uint32_t still = compare_write_changed(compare, page);
    if (still > 0) {
        text_print(page->out, "  %u slices in which nothing changed: --json has them\n", still);
    }
    text_print(
        page->out,
        "p: exact test over %s whether B passes as often as A; slices after Tarone and Holm. "
        "Intervals: clustered likewise; one of twenty misses\n",
        compare->by_case ? "scenarios (too few logical ones)" : "logical scenarios");
    text_print(page->out, "%s\n\n", compare_words(compare, words));
}

/* The measure's name, with its definition as in reports where these have one. */
static void write_measure(struct page *page, enum compare_measure measure)
{
    static const char *const defined[COMPARE_MEASURE_COUNT] = {
        [COMPARE_SCORE] = "score",          [COMPARE_PROGRESS] = "progress",
        [COMPARE_COMFORT] = "comfort",      [COMPARE_MIN_DISTANCE] = "closest",
        [COMPARE_MIN_TTC] = "TTC",          [COMPARE_PDMS] = "PDMS",
        [COMPARE_EPDMS] = "EPDMS",          [COMPARE_EXTENDED_COMFORT] = "extended comfort",
        [COMPARE_TWO_STAGE] = "two stages",
    };
    const char *name = compare_measure_names[measure];
    if (page->form == PAGE_HTML && defined[measure] != NULL) {
        html_raw(page->html, "<td>");
        report_metric(page->html, defined[measure], name);
        html_raw(page->html, "</td>");
    } else {
        page_cells(page, 0, "%s", name);
    }
}

void compare_write_measures(const struct compare *compare, struct page *page)
{
    page_table(page, "",
               "  36 mean over scenarios| #6 count|  #9 A| #9 B|  #B - A, 95%%=B &minus; A, 95%%");
    for (int m = 0; m < COMPARE_MEASURE_COUNT; m++) {
        char difference[PAIRED_TEXT_BYTES];
        if (compare->measures[m].cases > 0) {
            page_row_begin(page, "");
            write_measure(page, (enum compare_measure)m);
            page_cells(page, 1, "%lld|%.4g|%.4g|%s", (long long)compare->measures[m].cases,
                       compare->measures[m].a, compare->measures[m].b,
                       paired_mean_text(&compare->measures[m].difference, difference));
            page_row_end(page);
        }
    }
    page_table_end(page);
}

static void print_command(const struct compare *compare, bool of_b, int64_t id, FILE *out)
{
    char command[COMPARE_COMMAND_BYTES];
    text_print(out, "    %s --store %s\n", compare_command(compare, of_b, id, command),
               (of_b ? compare->b : compare->a)->store_url);
}

static void print_flip(const struct compare *compare, uint32_t pair, FILE *out)
{
    const struct compare_rollout *a = compare_rollout(compare, pair, false);
    const struct compare_rollout *b = compare_rollout(compare, pair, true);
    const struct compare_rollout *worse = compare_passed(a) ? b : a;
    char reasons[REASONS_TEXT_BYTES];
    text_print(out, "  %s%s%s, seed %llu, %s: %s%s\n", a->scenario_id,
               a->branch_id[0] != '\0' ? " branch " : "", a->branch_id, (unsigned long long)a->seed,
               tier_names[a->tier], worse->reasons == 0 ? verdict_names[worse->verdict] : "",
               reasons_text(worse->reasons, ", ", reasons));
    print_command(compare, false, a->id, out);
    print_command(compare, true, b->id, out);
}

static void print_flips(const struct compare *compare, bool broken, FILE *out)
{
    uint32_t shown = 0;
    uint32_t all = 0;
    for (uint32_t i = 0; i < compare->flip_count; i++) {
        uint32_t pair = compare->flips[i];
        if (compare_passed(compare_rollout(compare, pair, false)) != broken) {
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

static void print_losses(const struct compare *compare, FILE *out)
{
    if (compare->loss_count > 0) {
        text_print(out, "\nlost: A passes, B has no result that could be compared\n");
    }
    for (uint32_t i = 0; i < compare->loss_count && i < LISTED_MAX; i++) {
        const struct compare_loss *loss = &compare->losses[i];
        const struct compare_rollout *a = &compare->a->rollouts[loss->a];
        text_print(out, "  %s, seed %llu, %s: %s\n", a->scenario_id, (unsigned long long)a->seed,
                   tier_names[a->tier], compare_loss_names[loss->kind]);
        print_command(compare, false, a->id, out);
        if (loss->b != UINT32_MAX) {
            print_command(compare, true, compare->b->rollouts[loss->b].id, out);
        }
    }
    if (compare->loss_count > LISTED_MAX) {
        text_print(out, "  and %u more: --json has all\n", compare->loss_count - LISTED_MAX);
    }
}

void compare_print(const struct compare *compare, FILE *out)
{
    struct compare_notes notes;
    print_side("A", compare->a, out);
    print_side("B", compare->b, out);
    compare_note(compare, &notes);
    for (uint32_t i = 0; i < notes.count; i++) {
        text_print(out, "NOTE: %s\n", notes.text[i]);
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
    struct page page = {.form = PAGE_TERMINAL, .out = out};
    fputs("\n", out);
    compare_write_ends(compare, &page);
    if (compare->all.mains > 0) {
        fputs("\n", out);
        print_rows(compare, &page);
        compare_write_measures(compare, &page);
    }
    print_losses(compare, out);
    print_flips(compare, true, out);
    print_flips(compare, false, out);
    text_print(
        out, "\nmain lines: %lld fixed, %lld broken, %u lost; branches: %lld fixed, %lld broken\n",
        (long long)compare->all.fixed, (long long)compare->all.broken, compare->loss_count,
        (long long)compare->branch_fixed, (long long)compare->branch_broken);
}

/* ---- JSON ---- */

static json_t *side_json(const struct compare_side *side)
{
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:i, s:i, s:I}", "store", side->store_url,
                     "suite", side->suite_id, "planner", side->planner, "planner_hash",
                     side->planner_hash, "model_hash", side->model_hash, "revision", side->revision,
                     "rollouts", (int)side->count, "superseded", (int)side->superseded, "undriven",
                     (json_int_t)side->undriven);
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
    const struct compare_rollout *a = compare_rollout(compare, pair, false);
    const struct compare_rollout *b = compare_rollout(compare, pair, true);
    return json_pack("{s:s, s:s, s:I, s:s, s:s, s:I, s:s, s:I, s:s}", "scenario_id", a->scenario_id,
                     "branch_id", a->branch_id, "seed", (json_int_t)a->seed, "world",
                     tier_names[a->tier], "change", compare_passed(a) ? "broken" : "fixed",
                     "outcome_a", (json_int_t)a->id, "verdict_a", verdict_names[a->verdict],
                     "outcome_b", (json_int_t)b->id, "verdict_b", verdict_names[b->verdict]);
}

static json_t *loss_json(const struct compare *compare, const struct compare_loss *loss)
{
    const struct compare_rollout *a = &compare->a->rollouts[loss->a];
    const struct compare_rollout *b = loss->b != UINT32_MAX ? &compare->b->rollouts[loss->b] : NULL;
    return json_pack("{s:s, s:I, s:s, s:s, s:I, s:o}", "scenario_id", a->scenario_id, "seed",
                     (json_int_t)a->seed, "world", tier_names[a->tier], "kind",
                     compare_loss_names[loss->kind], "outcome_a", (json_int_t)a->id, "outcome_b",
                     b != NULL ? json_integer((json_int_t)b->id) : json_null());
}

/* Main lines of a side by their end; they add up to those of both sides together. */
static json_t *ends_json(const struct compare_ends *ends)
{
    json_t *json = json_pack(
        "{s:I, s:I, s:o, s:o, s:o}", "missing", (json_int_t)ends->missing, "changed",
        (json_int_t)ends->changed, "rate", json_finite_new(ends->rate.value), "if_missing_fail",
        json_finite_new(ends->rate.worst), "if_missing_pass", json_finite_new(ends->rate.best));
    for (int v = 0; v < VERDICT_COUNT; v++) {
        json_object_set_new(json, verdict_names[v], json_integer((json_int_t)ends->verdicts[v]));
    }
    return json;
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
    char words[COMPARE_WORDS_BYTES];
    json_t *losses = json_array();
    json_t *slices = json_array();
    json_t *flips = json_array();
    json_t *measures = json_object();
    for (uint32_t i = 0; i < compare->row_count; i++) {
        json_array_append_new(slices, row_json(&compare->rows[i]));
    }
    for (uint32_t i = 0; i < compare->loss_count; i++) {
        json_array_append_new(losses, loss_json(compare, &compare->losses[i]));
    }
    for (uint32_t i = 0; i < compare->flip_count; i++) {
        json_array_append_new(flips, flip_json(compare, compare->flips[i]));
    }
    for (int m = 0; m < COMPARE_MEASURE_COUNT; m++) {
        json_object_set_new(measures, compare_measure_names[m], measure_json(compare, m));
    }
    return json_pack(
        "{s:o, s:o, s:{s:o, s:o}, s:o, s:s, s:s, s:i, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:o, s:o, "
        "s:{s:I, s:I, s:I}}",
        "a", side_json(compare->a), "b", side_json(compare->b), "main_lines", "a",
        ends_json(&compare->ends_a), "b", ends_json(&compare->ends_b), "lost", losses, "words",
        compare_words(compare, words), "revisions", compare_revisions(compare, revisions),
        "compared", (int)compare->pair_count, "only_a", (json_int_t)compare->only_a, "only_b",
        (json_int_t)compare->only_b, "changed", (json_int_t)compare->changed, "no_result",
        (json_int_t)compare->no_result, "cluster",
        compare->by_case ? "scenario" : "logical_scenario", "all", row_json(&compare->all),
        "slices", slices, "measures", measures, "flips", flips, "branches", "compared",
        (json_int_t)compare->branch_pairs, "fixed", (json_int_t)compare->branch_fixed, "broken",
        (json_int_t)compare->branch_broken);
}
