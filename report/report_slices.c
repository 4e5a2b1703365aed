/*
 * Verdicts by slice, by what grids vary, scores of the field, and the ledger. Within a slice the
 * values that fail come first, weakest first; the others follow by name. Values of a grid keep
 * their order: it shows from where on a planner fails.
 */
#include "report/report_internal.h"

#include "base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BAR_WIDTH = 120 };

/* The lowest rate; 1 without any. */
static double pass_rate(const struct summary_row *row)
{
    const struct summary_part *lowest = summary_row_lowest(row);
    return lowest != NULL ? rate_estimate(&lowest->rate).value : 1.0;
}

/* Rows of one group; what fails first. */
static int compare_rows(const void *a, const void *b)
{
    const struct summary_row *x = *(const struct summary_row *const *)a;
    const struct summary_row *y = *(const struct summary_row *const *)b;
    double difference = pass_rate(x) - pass_rate(y);
    return difference < 0 ? -1 : difference > 0 ? 1 : strcmp(x->value, y->value);
}

/* A bar for each planner and tier; with several, each is named. */
static void rate_bars(struct html *html, const struct summary_row *row)
{
    bool several = summary_row_rates(row) > 1 || row->planners;
    char name[SUMMARY_PART_BYTES];
    for (uint32_t i = 0; i < row->part_count; i++) {
        struct rate_estimate at = rate_estimate(&row->parts[i].rate);
        summary_part_text(row, &row->parts[i], name);
        if (at.cases == 0) {
            continue;
        }
        html_format(html,
                    "<svg class=\"rate\" viewBox=\"0 0 %d 14\"><title>%s: %.1f%% pass, 95%% "
                    "interval %.0f to %.0f%%, %lld scenarios, %lld logical</title><rect "
                    "class=\"whole\" y=\"2\" width=\"%d\" height=\"10\" rx=\"2\"/><rect "
                    "class=\"share\" y=\"2\" width=\"%.1f\" height=\"10\" rx=\"2\"/><path "
                    "class=\"range\" d=\"M%.1f 7H%.1fM%.1f 4v6M%.1f 4v6\"/></svg>",
                    BAR_WIDTH, name, 100 * at.value, rate_down(100 * at.low, 1),
                    rate_up(100 * at.high, 1), (long long)at.cases, (long long)at.logical,
                    BAR_WIDTH, BAR_WIDTH * at.value, BAR_WIDTH * at.low, BAR_WIDTH * at.high,
                    BAR_WIDTH * at.low + 0.7, BAR_WIDTH * at.high - 0.7);
        if (several) {
            html_format(html, " <span class=\"soft\">%s %.0f%%</span><br>", name, 100 * at.value);
        }
    }
}

static void slice_row(struct page *page, const struct summary_row *row, bool lacking)
{
    char rate[SUMMARY_MONEY_BYTES];
    double miles = summary_miles(row);
    int64_t counted = 0;
    int64_t unanswered = 0;
    for (int v = 0; v < VERDICT_COUNT; v++) {
        counted += verdict_is_result((enum verdict)v) ? row->verdicts[v] : 0;
    }
    for (uint32_t i = 0; i < row->part_count; i++) {
        unanswered += row->parts[i].rate.missing;
    }
    int64_t branches = counted - row->main_total;
    html_format(page->html, "<tr><td class=\"name\">%s</td>",
                row->value[0] != '\0' ? row->value : "(none)");
    if (row->main_total > 0) {
        page_cells(page, 1, "{%s}%lld/%lld", row->main_passed < row->main_total ? "bad" : "",
                   (long long)row->main_passed, (long long)row->main_total);
    } else {
        page_cells(page, 1, "&ndash;");
    }
    html_raw(page->html, "<td>");
    rate_bars(page->html, row);
    html_raw(page->html, "</td>");
    if (branches > 0) {
        page_cells(page, 3, "%lld/%lld",
                   (long long)(row->verdicts[VERDICT_PASS] - row->main_passed),
                   (long long)branches);
    } else {
        page_cells(page, 3, "{soft}&ndash;");
    }
    if (lacking) {
        page_cells(page, 4, "%lld", (long long)unanswered);
    }
    page_cells(page, 4, "%.2f|%s", miles, summary_rate_text(row->work.usd, miles, rate));
    html_raw(page->html, "</tr>");
}

/* rows[count], one group, in this order. */
static void slice_card(struct report *report, const struct summary_row **rows, uint32_t count)
{
    struct html *html = &report->html;
    const struct summary_row *total = &report->summary->total;
    bool lacking = total->mains[VERDICT_FLAGGED] + total->mains[VERDICT_INVALID] +
                       report->summary->undriven_count >
                   0;
    html_raw(html, "<section class=\"card slice\">");
    page_table(&report->page, "",
               lacking ? "%s|#?main line=passed|?95%% interval=95%%|#?branch=what if|#no result|"
                         "#?miles|#?$/1000 miles"
                       : "%s|#?main line=passed|?95%% interval=95%%|#?branch=what if|#?miles|"
                         "#?$/1000 miles",
               rows[0]->group);
    for (uint32_t i = 0; i < count && i < REPORT_SLICE_ROWS_MAX; i++) {
        slice_row(&report->page, rows[i], lacking);
    }
    page_table_end(&report->page);
    html_more(html, count, REPORT_SLICE_ROWS_MAX, "values, none weaker, are not listed.");
    html_raw(html, "</section>");
}

/* Names of parameters that vary over too many values for a table. */
static void wide_parameters(struct report *report)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    uint32_t wide = 0;
    for (uint32_t i = 0; i < summary->parameter_count; i++) {
        if (summary->parameters[i].count == 0) {
            html_raw(html, wide++ == 0 ? "<p class=\"note\">" : ", ");
            html_format(html, "<b>%s</b>", summary->parameters[i].name);
        }
    }
    if (wide > 0) {
        html_format(html,
                    ": more than %d values, so without a table; swerve export has each as a "
                    "column.</p>",
                    SUMMARY_PARAMETER_VALUES_MAX);
    }
}

static void parameter_slices(struct report *report)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    const struct summary_row *rows[SUMMARY_PARAMETER_VALUES_MAX];
    if (summary->parameter_count == 0) {
        return;
    }
    html_raw(html, "<h3 id=\"parameters\">By what the grids vary</h3><p class=\"soft\">Each value "
                   "over all scenarios that have it, whatever else they vary.</p>"
                   "<div class=\"columns\">");
    for (uint32_t i = 0; i < summary->parameter_count; i++) {
        const struct summary_parameter *parameter = &summary->parameters[i];
        for (uint32_t k = 0; k < parameter->count; k++) {
            rows[k] = &summary->parameter_rows[parameter->first + k];
        }
        if (parameter->count > 0) {
            slice_card(report, rows, parameter->count);
        }
    }
    html_raw(html, "</div>");
    wide_parameters(report);
}

/* Scores of the field, a row for each part that has one. */
static void field_scores(struct report *report)
{
    struct html *html = &report->html;
    const struct summary_row *total = &report->summary->total;
    struct summary_field rows[TIER_COUNT];
    bool any = false;
    for (uint32_t i = 0; i < total->part_count; i++) {
        const struct summary_field *row = &rows[total->parts[i].tier];
        char name[SUMMARY_PART_BYTES];
        summary_field(report->summary, total->parts[i].planner, rows);
        if (row->scored == 0) {
            continue;
        }
        if (!any) {
            html_raw(html, "<h2 id=\"field\">Scores of the field</h2><p class=\"soft\">Means over "
                           "the main lines that passed or failed.</p><div class=\"card\">");
            page_table(&report->page, "",
                       "tier|#drives|#?score=nuPlan's score|#?PDMS|#?EPDMS|#?extended comfort|"
                       "#?two stages=EPDMS in two stages|#collisions|#km");
        }
        any = true;
        page_row(&report->page, "%s|%lld|%.3f|%.3f|%.3f|%.3f|%.3f|%lld|%.1f",
                 summary_part_text(total, &total->parts[i], name), (long long)row->scored,
                 row->nuplan, row->pdms, row->epdms, row->extended_comfort, row->two_stage,
                 (long long)row->collisions, row->metres / 1e3);
    }
    html_raw(html, any ? "</tbody></table></div>" : "");
}

/* Groups of a single value, whose table would repeat the total. */
static void common_slices(struct report *report)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    const char *separator = "<p class=\"note\">Alike in all: ";
    for (uint32_t i = 0; i < summary->row_count; i++) {
        const char *group = summary->rows[i].group;
        bool begins = i == 0 || strcmp(summary->rows[i - 1].group, group) != 0;
        bool ends = i + 1 == summary->row_count || strcmp(summary->rows[i + 1].group, group) != 0;
        if (begins && ends && strcmp(group, "model") != 0) {
            const char *value = summary->rows[i].value;
            html_raw(html, separator);
            html_format(html, "%s <b>%s</b>", group, value[0] != '\0' ? value : "(none)");
            separator = ", ";
        }
    }
    html_raw(html, ".</p>");
}

void report_slices(struct report *report)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    const struct summary_row **rows = malloc((summary->row_count + 1) * sizeof *rows);
    if (rows == NULL) {
        html->failed = true;
        return;
    }
    html_raw(html, "<h2 id=\"slices\">Verdicts by slice</h2><p class=\"soft\">Passed counts main "
                   "lines: the planner drove from start to end. The bracket is the 95% interval; "
                   "where it is wide, add logical "
                   "scenarios: seeds and further points of a grid narrow it little. What if: "
                   "branches that pass.</p><div class=\"columns\">");
    uint32_t alike = 0;
    for (uint32_t i = 0; i < summary->row_count;) {
        uint32_t count = 0;
        const char *group = summary->rows[i].group;
        while (i < summary->row_count && strcmp(summary->rows[i].group, group) == 0) {
            rows[count++] = &summary->rows[i++];
        }
        if (count == 1 && strcmp(group, "model") != 0) {
            alike++;
        } else if (strcmp(group, "model") != 0) { /* models are named with what their tiers took */
            qsort(rows, count, sizeof(const struct summary_row *), compare_rows);
            slice_card(report, rows, count);
        }
    }
    html_raw(html, "</div>");
    if (alike > 0) {
        common_slices(report);
    }
    parameter_slices(report);
    free(rows);
    field_scores(report);
}

void report_cost(struct report *report)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    char money[SUMMARY_MONEY_BYTES];
    char rate[SUMMARY_MONEY_BYTES];
    struct ledger_totals all = {0};
    double all_usd = 0;
    html_raw(
        html,
        "<h2 id=\"cost\">What it cost</h2><p class=\"soft\">Dollars for 1,000 miles are those of "
        "the world alone, for results alone: what a planner computes in a process of "
        "its own is not in them. With retries, what was flagged, failed or lost on the "
        "way is paid by the same miles.</p>");
    report_tiers(report);
    html_raw(
        html,
        "<p class=\"soft\">The store's ledger: every "
        "attempt at a job, the failed and lost ones too. Workers report device time and "
        "distance. Charged is what the ledger booked, at the price of that moment, in whole "
        "micro-dollars (what an attempt leaves over is carried to the next), so that the rows add "
        "up to the bill. Dollars for 1,000 miles are the device time at today's price, not "
        "rounded.</p>"
        "<div class=\"card\">");
    page_table(&report->page, "",
               "pool|device|tier|ended|for|#attempts|#device time|#TFLOP|#miles|#charged|"
               "#$/1000 miles");
    for (uint32_t i = 0; i <= summary->ledger_count; i++) {
        bool last = i == summary->ledger_count;
        const struct store_ledger_row *row = last ? NULL : &summary->ledger[i];
        const struct ledger_totals *totals = last ? &all : &row->totals;
        double miles = (double)totals->metres_mm / (double)MM_PER_M / M_PER_MILE;
        double usd = last ? all_usd : summary->ledger_usd[i];
        if (last) {
            html_raw(html, "<tr class=\"total\"><td colspan=\"5\">all</td>");
        } else {
            html_raw(html, "<tr>");
            page_cells(&report->page, 0, "%s|%s|%s|%s|%s", row->pool, row->device,
                       tier_names[row->tier], row->end,
                       row->shadow  ? "shadow, in no sum"
                       : row->audit ? "audit"
                                    : "results");
        }
        if (!last && !row->shadow) {
            all.attempts += totals->attempts;
            all.device_ns += totals->device_ns;
            all.metres_mm += totals->metres_mm;
            all.mflop += totals->mflop;
            all.cost_uusd += totals->cost_uusd;
            all_usd += usd;
        }
        page_cells(&report->page, 5, "%lld|%.2f s|%.2f|%.2f|%s|%s", (long long)totals->attempts,
                   (double)totals->device_ns / (double)NS_PER_S, (double)totals->mflop / 1e6, miles,
                   summary_uusd_text(totals->cost_uusd, money),
                   summary_rate_text(usd, miles, rate));
        html_raw(html, "</tr>");
    }
    page_table_end(&report->page);
    const struct summary_row *total = &summary->total;
    html_format(html,
                "<p>The bill is %s.</p><p>%lld ticks were simulated; %lld more were shared with a "
                "main line and not simulated again, which saved %s.</p></div>",
                summary_bill_text(summary, money), (long long)total->work.ticks,
                (long long)summary->prefix_ticks_saved,
                summary_usd_text(summary->prefix_usd_saved, rate));
}
