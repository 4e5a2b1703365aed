/*
 * Every rollout in a table that the script can filter and sort. When there are too many, those that
 * did not pass come first.
 */
#include "report/report_internal.h"

#include "base/units.h"
#include "schemas/field/field.h"

static void table_row(struct report *report, uint32_t index)
{
    struct html *html = &report->html;
    const struct outcome *outcome = &report->summary->outcomes[index];
    const struct report_job *job = report_job_of(report, index);
    bool main = (int32_t)index == job->main;
    char anchor[REPORT_ANCHOR_BYTES];
    double field[FIELD_SCORE_COUNT];
    field_scores_of(outcome, field);
    html_format(html, "<tr id=\"r%lld\"><td class=\"n\">", (long long)outcome->id);
    report_play(html, job, outcome);
    html_format(html, "%lld</td><td class=\"wrap\">", (long long)outcome->id);
    if (main && job->failure_card) {
        html_format(html, "<a href=\"#o%lld\">%s</a>", (long long)outcome->id,
                    outcome->scenario_id);
    } else if (job->fanout_card) {
        html_format(html, "<a href=\"#%s\">%s</a>", report_anchor(job, outcome, anchor),
                    outcome->scenario_id);
    } else {
        html_text(html, outcome->scenario_id);
    }
    html_format(html, "</td><td class=\"wrap\">%s</td><td>", outcome->branch_id);
    report_chips(html, outcome);
    html_raw(html, "</td>");
    page_cells(&report->page, 4, "%s|%llu|%.2f|%.2f|%.2f|%.2f|%.2f|%.1f", tier_names[outcome->tier],
               (unsigned long long)outcome->seed, outcome->metrics.score, field[FIELD_PDMS],
               field[FIELD_EPDMS], outcome->metrics.min_distance_m, outcome->metrics.min_ttc_s,
               outcome->ticks * TICK_S);
    html_raw(html, "</tr>");
}

/* Drives that the player has here, and where it has the others. */
static void playable(struct report *report)
{
    struct html *html = &report->html;
    uint32_t played = report->plan.played;
    uint32_t count = report->summary->outcome_count;
    if (count == 0) {
        return;
    }
    html_format(html, "<p class=\"soft\">%u of %u rollouts can be played here (&#9654;)", played,
                count);
    html_raw(html, played < count
                       ? ". The others: <code>swerve show ID --video FILE.mp4</code>, or "
                         "the pages of <code>swerve serve</code>.</p>"
                       : ".</p>");
}

void report_rollouts(struct report *report)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    bool all = summary->outcome_count <= REPORT_TABLE_ROWS_MAX;
    uint32_t shown = 0;
    struct page *page = &report->page;
    html_raw(html, "<h2 id=\"all\">All rollouts</h2>");
    playable(report);
    html_raw(html, "<div class=\"card\"><div class=\"scroll\">");
    page_table(page, " id=\"rollouts\"",
               "#id|scenario|branch|verdict|tier|#seed|#?score|#?PDMS|#?EPDMS|#?closest=closest, "
               "m|#?TTC=TTC, s|#driven, s");
    for (int pass = 0; pass < (all ? 1 : 2); pass++) {
        for (uint32_t i = 0; i < summary->outcome_count && shown < REPORT_TABLE_ROWS_MAX; i++) {
            bool passed = summary->outcomes[i].verdict == VERDICT_PASS;
            if (all || passed == (pass == 1)) {
                table_row(report, i);
                shown++;
            }
        }
    }
    page_table_end(page);
    html_raw(html, "</div>");
    if (!all) {
        html_format(html,
                    "<p class=\"note\">%u of %u rollouts, those that did not pass first; the "
                    "others: <code>swerve show --json</code>.</p>",
                    shown, summary->outcome_count);
    }
    html_raw(html, "</div>");
}
