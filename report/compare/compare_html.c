/*
 * A comparison as one self-contained page: the tables, then for each of the first flips the frames
 * of both sides at the same times, up to the moment that decided the worse one.
 */
#include "report/compare/compare.h"
#include "report/page/page.h"
#include "report/report_drive.h"

#include "base/file.h"

#include <stdlib.h>

enum { CARDS_MAX = 24, STRIP_FRAMES = 6, STRIP_TICKS = 50, PAGE_BYTES_MAX = 6 << 20 };

static void write_side(struct html *html, const char *name, const struct compare_side *side)
{
    html_format(html,
                "<p><b>%s</b> %s <span class=\"soft\">suite %s, revision %.12s%s%.12s</span></p>",
                name, side->planner, side->suite_id, side->revision,
                side->model_hash[0] != '\0' ? ", model " : "", side->model_hash);
}

static void write_tables(struct page *page, const struct compare *compare)
{
    char words[COMPARE_WORDS_BYTES];
    html_raw(page->html, "<div class=\"card\">");
    compare_write_whole(compare, page);
    page_table_end(page);
    html_format(page->html, "<p>In words: %s.</p>", compare_words(compare, words));
    html_raw(page->html, "</div><div class=\"card\">");
    compare_write_measures(compare, page);
    html_format(page->html,
                "<p class=\"soft small\">p: exact test over %s whether B passes as often as A; "
                "slices after Tarone and Holm. Intervals are clustered likewise; "
                "one of twenty misses.</p></div>",
                compare->by_case ? "scenarios (too few logical ones)" : "logical scenarios");
}

/* ---- flips ---- */

static void write_flip_row(struct page *page, const struct compare *compare, uint32_t pair)
{
    const struct compare_rollout *a = compare_rollout(compare, pair, false);
    const struct compare_rollout *b = compare_rollout(compare, pair, true);
    const struct compare_rollout *worse = compare_passed(a) ? b : a;
    page_row_begin(page, "");
    page_cells(page, 0, "{%s}%s|{wrap}%s%s%s|%llu|%s", compare_passed(a) ? "bad" : "good",
               compare_passed(a) ? "broken" : "fixed", a->scenario_id,
               a->branch_id[0] != '\0' ? " branch " : "", a->branch_id, (unsigned long long)a->seed,
               tier_names[a->tier]);
    html_raw(page->html, "<td>");
    for (uint32_t bit = 0; bit < REASON_BIT_COUNT; bit++) {
        if ((worse->reasons >> bit & 1) != 0) {
            html_format(page->html, "<span class=\"chip reason\">%s</span> ", reason_names[bit]);
        }
    }
    html_raw(page->html, worse->reasons == 0 ? verdict_names[worse->verdict] : "");
    html_raw(page->html, "</td>");
    page_cells(page, 5, "%lld|%lld", (long long)a->id, (long long)b->id);
    page_row_end(page);
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
        report_drive_open(&shown->drive, side->store, shown->outcome.scenario_hash,
                          shown->outcome.artifact_hash, &ignored) != STATUS_OK) {
        return false;
    }
    report_drive_look(&shown->drive, shown->outcome.rig);
    shown->rollout = report_drive_rollout(&shown->drive, shown->outcome.branch_id);
    if (shown->rollout < 0) {
        return false;
    }
    shown->last = trace_reader_last_tick(&shown->drive.reader, shown->rollout);
    shown->moment = report_drive_moment(&shown->drive, shown->rollout, shown->outcome.reasons,
                                        &shown->outcome.metrics);
    return true;
}

/* Frames at the same times on both sides; a drive that has ended shows its end. */
static void write_strip(struct html *html, const char *name, struct shown *shown, uint32_t start,
                        uint32_t end)
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

static void write_command(struct html *html, const struct compare *compare, bool of_b, int64_t id)
{
    char command[COMPARE_COMMAND_BYTES];
    html_format(html, "<code>%s --store %s</code> ", compare_command(compare, of_b, id, command),
                (of_b ? compare->b : compare->a)->store_url);
}

static void write_card(struct html *html, const struct compare *compare, uint32_t pair)
{
    struct shown *shown = calloc(2, sizeof *shown);
    const struct compare_rollout *a = compare_rollout(compare, pair, false);
    const struct compare_rollout *b = compare_rollout(compare, pair, true);
    if (shown == NULL) {
        html->failed = true;
        return;
    }
    html_format(html,
                "<article class=\"card\"><h3>%s</h3><p class=\"soft\">%s, seed %llu, %s</p><p>",
                a->scenario_id, a->branch_id[0] != '\0' ? a->branch_id : "main line",
                (unsigned long long)a->seed, tier_names[a->tier]);
    write_command(html, compare, false, a->id);
    write_command(html, compare, true, b->id);
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

static void write_losses(struct page *page, const struct compare *compare)
{
    if (compare->loss_count == 0) {
        return;
    }
    html_raw(page->html, "<h2>Lost passes</h2><div class=\"card\">");
    page_table(page, "", "|scenario|#seed|world|#outcome A|#outcome B");
    for (uint32_t i = 0; i < compare->loss_count; i++) {
        const struct compare_loss *loss = &compare->losses[i];
        const struct compare_rollout *a = &compare->a->rollouts[loss->a];
        page_row_begin(page, "");
        page_cells(page, 0, "{bad}%s|{wrap}%s|%llu|%s|%lld", compare_loss_names[loss->kind],
                   a->scenario_id, (unsigned long long)a->seed, tier_names[a->tier],
                   (long long)a->id);
        if (loss->b != UINT32_MAX) {
            page_cells(page, 5, "%lld", (long long)compare->b->rollouts[loss->b].id);
        } else {
            page_cells(page, 5, "&ndash;");
        }
        page_row_end(page);
    }
    page_table_end(page);
    html_raw(page->html, "</div>");
}

static void write_flips(struct page *page, const struct compare *compare)
{
    struct html *html = page->html;
    uint32_t cards = 0;
    html_raw(html, "<h2>What changed</h2>");
    if (compare->flip_count == 0) {
        html_raw(html, "<p>Every rollout that was compared passes or fails as before.</p>");
        return;
    }
    html_raw(html, "<div class=\"card\">");
    page_table(page, "", "|scenario|#seed|world|why|#outcome A|#outcome B");
    for (uint32_t i = 0; i < compare->flip_count; i++) {
        write_flip_row(page, compare, compare->flips[i]);
    }
    page_table_end(page);
    html_raw(html, "</div>");
    for (; cards < compare->flip_count && cards < CARDS_MAX && html->bytes < PAGE_BYTES_MAX;
         cards++) {
        write_card(html, compare, compare->flips[cards]);
    }
    html_more(html, compare->flip_count, cards, "without pictures.");
}

enum status compare_html(const struct compare *compare, const char *path, struct error *error)
{
    struct html html = {0};
    struct page page = {.form = PAGE_HTML, .html = &html};
    const struct compare_row *all = &compare->all;
    struct compare_notes notes;
    html_begin(&html, "Swerve: comparison");
    html_raw(&html, "<header><h1>Comparison</h1>");
    write_side(&html, "A", compare->a);
    write_side(&html, "B", compare->b);
    compare_note(compare, &notes);
    for (uint32_t i = 0; i < notes.count; i++) {
        html_format(&html, "<p class=\"notice\">%s.</p>", notes.text[i]);
    }
    html_format(&html,
                "<p class=\"lead\">Of %lld main lines B fixes <b class=\"good\">%lld</b> and "
                "breaks <b class=\"bad\">%lld</b>; <b class=\"bad\">%u</b> that passed with A "
                "%s no result with B; of %lld branches %lld and %lld.</p><p "
                "class=\"soft\">Not compared: %lld rollouts only in A, %lld only in B, %lld of a "
                "changed scenario, %lld without a result on a side.</p></header><main>",
                (long long)all->mains, (long long)all->fixed, (long long)all->broken,
                compare->loss_count, compare->loss_count == 1 ? "has" : "have",
                (long long)compare->branch_pairs, (long long)compare->branch_fixed,
                (long long)compare->branch_broken, (long long)compare->only_a,
                (long long)compare->only_b, (long long)compare->changed,
                (long long)compare->no_result);
    html_raw(&html, "<div class=\"card\">");
    compare_write_ends(compare, &page);
    html_raw(&html, "</div>");
    if (all->mains > 0) {
        write_tables(&page, compare);
    }
    write_losses(&page, compare);
    write_flips(&page, compare);
    if (all->mains > 0) {
        html_raw(&html, "<h2>Slices</h2><details class=\"card\"><summary>Every slice</summary>");
        compare_write_slices(compare, &page);
        html_raw(&html, "</details>");
    }
    html_raw(&html, "</main>");
    html_end(&html);
    enum status status = html.failed ? error_set(error, STATUS_NO_MEMORY, "compare: out of memory")
                                     : file_replace(path, html.text, html.bytes, 0644, error);
    html_finish(&html);
    return status;
}
