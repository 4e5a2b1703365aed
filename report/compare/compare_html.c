/*
 * A comparison as one self-contained page: the tables, then for each of the first flips the frames
 * of both sides at the same times, up to the moment that decided the worse one.
 */
#include "report/compare/compare.h"
#include "report/report_drive.h"
#include "report/report_html.h"

#include "base/file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CARDS_MAX = 24, STRIP_FRAMES = 6, STRIP_TICKS = 50, PAGE_BYTES_MAX = 6 << 20 };

static const struct compare_rollout *rollout_of(const struct compare *compare, uint32_t pair,
                                                bool of_b)
{
    return of_b ? &compare->b->rollouts[compare->pairs[pair].b]
                : &compare->a->rollouts[compare->pairs[pair].a];
}

static void write_side(struct html *html, const char *name, const struct compare_side *side)
{
    html_format(html, "<p><b>%s</b> %s <span class=\"soft\">suite %s, revision %.12s", name,
                side->planner, side->suite_id, side->revision);
    if (side->model_hash[0] != '\0') {
        html_format(html, ", model %.12s", side->model_hash);
    }
    html_raw(html, "</span></p>");
}

static void write_row(struct html *html, const struct compare_row *row, bool total)
{
    html_raw(html, total ? "<tr class=\"total\">" : "<tr>");
    html_format(html,
                "<td class=\"wrap\">%s %s</td><td class=\"n\">%lld</td><td "
                "class=\"n\">%.1f%%</td><td class=\"n\">%.1f%%</td><td class=\"n\">%+.1f [%+.1f, "
                "%+.1f]</td><td class=\"n\">%lld</td><td class=\"n\">%lld</td>",
                row->group, row->value, (long long)row->mains, 100 * row->a.value,
                100 * row->b.value, 100 * row->difference.value,
                rate_down(100 * row->difference.low, 0.1), rate_up(100 * row->difference.high, 0.1),
                (long long)row->fixed, (long long)row->broken);
    if (isnan(row->p)) {
        html_raw(html, "<td class=\"n\">-</td></tr>");
    } else {
        char p[32];
        if (row->p < 1e-4) {
            snprintf(p, sizeof p, "< 0.0001");
        } else {
            snprintf(p, sizeof p, "%.4f", row->p);
        }
        html_format(html, "<td class=\"n\">%s</td></tr>", p);
    }
}

static void begin_rows(struct html *html)
{
    html_raw(html, "<table><thead><tr><th>main lines that pass</th><th class=\"n\">count</th><th "
                   "class=\"n\">A</th><th class=\"n\">B</th><th class=\"n\">B &minus; A, points, "
                   "95%</th><th class=\"n\">fixed</th><th class=\"n\">broken</th><th "
                   "class=\"n\">p</th></tr></thead><tbody>");
}

/* The measure's name, with its definition as in reports where these have one. */
static void write_measure(struct html *html, enum compare_measure measure)
{
    static const char *const defined[COMPARE_MEASURE_COUNT] = {
        [COMPARE_SCORE] = "score",     [COMPARE_PROGRESS] = "progress",
        [COMPARE_COMFORT] = "comfort", [COMPARE_MIN_DISTANCE] = "closest",
        [COMPARE_MIN_TTC] = "TTC",     [COMPARE_PDMS] = "PDMS",
        [COMPARE_EPDMS] = "EPDMS",     [COMPARE_TWO_STAGE] = "two stages",
    };
    const char *name = compare_measure_names[measure];
    html_raw(html, "<tr><td>");
    if (defined[measure] != NULL) {
        report_metric(html, defined[measure], name);
    } else {
        html_text(html, name);
    }
    html_raw(html, "</td>");
}

static void write_tables(struct html *html, const struct compare *compare)
{
    html_raw(html, "<div class=\"card\">");
    begin_rows(html);
    write_row(html, &compare->all, true);
    html_raw(html, "</tbody></table></div><div class=\"card\"><table><thead><tr><th>mean over "
                   "scenarios</th><th class=\"n\">count</th><th class=\"n\">A</th><th "
                   "class=\"n\">B</th><th class=\"n\">B &minus; A, 95%</th></tr></thead><tbody>");
    for (int m = 0; m < COMPARE_MEASURE_COUNT; m++) {
        char difference[PAIRED_TEXT_BYTES];
        if (compare->measures[m].cases > 0) {
            write_measure(html, (enum compare_measure)m);
            html_format(html,
                        "<td class=\"n\">%lld</td><td class=\"n\">%.4g</td><td "
                        "class=\"n\">%.4g</td><td class=\"n\">%s</td></tr>",
                        (long long)compare->measures[m].cases, compare->measures[m].a,
                        compare->measures[m].b,
                        paired_mean_text(&compare->measures[m].difference, difference));
        }
    }
    html_format(html,
                "</tbody></table><p class=\"soft small\">p: exact test over %s whether B passes as "
                "often as A; slices after Tarone and Holm. Intervals are clustered likewise, each "
                "for itself: of twenty one misses.</p></div>",
                compare->by_case ? "scenarios (too few logical ones)" : "logical scenarios");
}

static void write_slices(struct html *html, const struct compare *compare)
{
    html_raw(html, "<h2>Slices</h2><details class=\"card\"><summary>Every slice</summary>");
    begin_rows(html);
    for (uint32_t i = 0; i < compare->row_count; i++) {
        if (compare->rows[i].mains < compare->all.mains) {
            write_row(html, &compare->rows[i], false);
        }
    }
    html_raw(html, "</tbody></table></details>");
}

/* ---- flips ---- */

static void write_flip_row(struct html *html, const struct compare *compare, uint32_t pair)
{
    const struct compare_rollout *a = rollout_of(compare, pair, false);
    const struct compare_rollout *b = rollout_of(compare, pair, true);
    const struct compare_rollout *worse = compare_passed(a) ? b : a;
    html_format(html, "<tr><td class=\"%s\">%s</td><td class=\"wrap\">%s",
                compare_passed(a) ? "bad" : "good", compare_passed(a) ? "broken" : "fixed",
                a->scenario_id);
    if (a->branch_id[0] != '\0') {
        html_format(html, " branch %s", a->branch_id);
    }
    html_format(html, "</td><td class=\"n\">%llu</td><td>%s</td><td>", (unsigned long long)a->seed,
                tier_names[a->tier]);
    for (uint32_t bit = 0; bit < REASON_BIT_COUNT; bit++) {
        if ((worse->reasons >> bit & 1) != 0) {
            html_format(html, "<span class=\"chip reason\">%s</span> ", reason_names[bit]);
        }
    }
    if (worse->reasons == 0) {
        html_raw(html, verdict_names[worse->verdict]);
    }
    html_format(html, "</td><td class=\"n\">%lld</td><td class=\"n\">%lld</td></tr>",
                (long long)a->id, (long long)b->id);
}

/* One side's drive, reopened. False: it cannot be drawn. */
struct shown {
    struct report_drive drive;
    struct outcome outcome;
    int32_t rollout;
    uint32_t last;
    struct report_moment moment;
};

static bool open_shown(struct shown *shown, const struct compare_side *side, int64_t id)
{
    struct store_outcome_filter filter = {.outcome_id = id, .limit = 1};
    struct error ignored;
    uint32_t count = 0;
    if (side->store->ops->outcomes(side->store, &filter, &shown->outcome, &count, &ignored) !=
            STATUS_OK ||
        count == 0 ||
        report_drive_open(&shown->drive, side->store, &shown->outcome, &ignored) != STATUS_OK) {
        return false;
    }
    shown->rollout = report_drive_rollout(&shown->drive, &shown->outcome);
    if (shown->rollout < 0) {
        return false;
    }
    shown->last = trace_reader_last_tick(&shown->drive.reader, shown->rollout);
    shown->moment = report_drive_moment(&shown->drive, shown->rollout, &shown->outcome);
    return true;
}

/* Frames at the same times on both sides; a drive that has ended shows its end. */
static void write_strip(struct html *html, const char *name, const struct shown *shown,
                        uint32_t start, uint32_t end)
{
    html_format(html, "<p><b>%s</b> <span class=\"chip %s\">%s</span></p><div class=\"strip\">",
                name, verdict_names[shown->outcome.verdict], verdict_names[shown->outcome.verdict]);
    for (uint32_t i = 0; i < STRIP_FRAMES; i++) {
        uint32_t tick = start + (end - start) * i / (STRIP_FRAMES - 1);
        report_drive_frame(&shown->drive, shown->rollout, tick < shown->last ? tick : shown->last,
                           shown->outcome.seed, true, html);
    }
    html_raw(html, "</div>");
}

static void write_command(struct html *html, const struct compare_side *side, int64_t id)
{
    html_format(html, "<code>swerve replay %lld --store %s</code> ", (long long)id,
                side->store_url);
}

static void write_card(struct html *html, const struct compare *compare, uint32_t pair)
{
    struct shown *shown = calloc(2, sizeof *shown);
    const struct compare_rollout *a = rollout_of(compare, pair, false);
    const struct compare_rollout *b = rollout_of(compare, pair, true);
    if (shown == NULL) {
        html->failed = true;
        return;
    }
    html_format(html,
                "<article class=\"card\"><h3>%s</h3><p class=\"soft\">%s, seed %llu, %s</p><p>",
                a->scenario_id, a->branch_id[0] != '\0' ? a->branch_id : "main line",
                (unsigned long long)a->seed, tier_names[a->tier]);
    write_command(html, compare->a, a->id);
    write_command(html, compare->b, b->id);
    html_raw(html, "</p>");
    if (open_shown(&shown[0], compare->a, a->id) && open_shown(&shown[1], compare->b, b->id)) {
        uint32_t end = shown[compare_passed(a) ? 1 : 0].moment.tick;
        uint32_t start = end > STRIP_TICKS ? end - STRIP_TICKS : 0;
        write_strip(html, "A", &shown[0], start, end);
        write_strip(html, "B", &shown[1], start, end);
    } else {
        html_raw(html, "<p class=\"note\">The recording of one side is not in its store.</p>");
    }
    html_raw(html, "</article>");
    report_drive_close(&shown[0].drive);
    report_drive_close(&shown[1].drive);
    free(shown);
}

static void write_flips(struct html *html, const struct compare *compare)
{
    uint32_t cards = 0;
    html_raw(html, "<h2>What changed</h2>");
    if (compare->flip_count == 0) {
        html_raw(html, "<p>Every rollout that was compared passes or fails as before.</p>");
        return;
    }
    html_raw(html, "<div class=\"card\"><table><thead><tr><th></th><th>scenario</th><th "
                   "class=\"n\">seed</th><th>world</th><th>why</th><th class=\"n\">outcome A</th>"
                   "<th class=\"n\">outcome B</th></tr></thead><tbody>");
    for (uint32_t i = 0; i < compare->flip_count; i++) {
        write_flip_row(html, compare, compare->flips[i]);
    }
    html_raw(html, "</tbody></table></div>");
    for (; cards < compare->flip_count && cards < CARDS_MAX && html->bytes < PAGE_BYTES_MAX;
         cards++) {
        write_card(html, compare, compare->flips[cards]);
    }
    if (cards < compare->flip_count) {
        html_format(html, "<p class=\"note\">%u more without pictures.</p>",
                    compare->flip_count - cards);
    }
}

enum status compare_html(const struct compare *compare, const char *path, struct error *error)
{
    struct html html = {0};
    const struct compare_row *all = &compare->all;
    char revisions[COMPARE_REVISIONS_BYTES];
    html_begin(&html, "Swerve: comparison");
    html_raw(&html, "<header><h1>Comparison</h1>");
    write_side(&html, "A", compare->a);
    write_side(&html, "B", compare->b);
    if (compare_revisions(compare, revisions)[0] != '\0') {
        html_format(&html, "<p class=\"notice\">%s.</p>", revisions);
    }
    html_format(&html,
                "<p class=\"lead\">Of %lld main lines B fixes <b class=\"good\">%lld</b> and "
                "breaks <b class=\"bad\">%lld</b>; of %lld branches %lld and %lld.</p><p "
                "class=\"soft\">Not compared: %lld rollouts only in A, %lld only in B, %lld of a "
                "changed scenario, %lld without a result on a side.</p></header><main>",
                (long long)all->mains, (long long)all->fixed, (long long)all->broken,
                (long long)compare->branch_pairs, (long long)compare->branch_fixed,
                (long long)compare->branch_broken, (long long)compare->only_a,
                (long long)compare->only_b, (long long)compare->changed,
                (long long)compare->no_result);
    if (all->mains > 0) {
        write_tables(&html, compare);
    }
    write_flips(&html, compare);
    if (all->mains > 0) {
        write_slices(&html, compare);
    }
    html_raw(&html, "</main>");
    html_end(&html);
    enum status status = html.failed ? error_set(error, STATUS_NO_MEMORY, "compare: out of memory")
                                     : file_replace(path, html.text, html.bytes, 0644, error);
    html_finish(&html);
    return status;
}
