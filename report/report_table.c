/*
 * Every rollout in a table that the script can filter and sort. When there are too many to be shown
 * at once, those that did not pass come first, and the script shows the others when asked.
 */
#include "report/report_internal.h"

#include "base/units.h"
#include "schemas/field/field.h"

static void table_row(struct report *report, uint32_t index, bool hidden)
{
    struct html *html = &report->html;
    const struct outcome *outcome = &report->summary->outcomes[index];
    const struct report_job *job = report_job_of(report, index);
    bool main = (int32_t)index == job->main;
    char anchor[REPORT_ANCHOR_BYTES];
    double field[FIELD_SCORE_COUNT];
    field_scores_of(outcome, field);
    html_format(html, "<tr id=\"r%lld\"%s><td class=\"n\">", (long long)outcome->id,
                hidden ? " hidden" : "");
    report_play(html, job, outcome);
    html_format(html, "%lld</td><td class=\"wrap\">", (long long)outcome->id);
    if (main && job->failure_card) {
        html_format(html, "<a href=\"#o%lld\">", (long long)outcome->id);
    } else if (job->fanout_card) {
        html_format(html, "<a href=\"#%s\">", report_anchor(job, outcome, anchor));
    }
    html_name(html, outcome->scenario_id);
    html_raw(html, (main && job->failure_card) || job->fanout_card ? "</a>" : "");
    html_raw(html, "</td><td class=\"wrap\">");
    html_name(html, outcome->branch_id);
    html_raw(html, "</td><td>");
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
    uint32_t count = summary->outcome_count;
    bool all = count <= REPORT_TABLE_ROWS_SHOWN;
    uint32_t shown = 0;
    struct page *page = &report->page;
    html_raw(html, "<h2 id=\"all\">All rollouts</h2>");
    playable(report);
    html_raw(html, "<div class=\"card\"><div class=\"scroll\">");
    page_table(page, " id=\"rollouts\"",
               "#id|scenario|branch|verdict|tier|#seed|#?score|#?PDMS|#?EPDMS|#?closest=closest, "
               "m|#?TTC=TTC, s|#driven, s");
    for (int pass = 0; pass < (all ? 1 : 2); pass++) {
        for (uint32_t i = 0; i < count && shown < REPORT_TABLE_ROWS_MAX; i++) {
            bool passed = summary->outcomes[i].verdict == VERDICT_PASS;
            if (all || passed == (pass == 1)) {
                table_row(report, i, shown++ >= REPORT_TABLE_ROWS_SHOWN);
            }
        }
    }
    page_table_end(page);
    html_raw(html, "</div>");
    if (!all) {
        html_raw(html, "<noscript><style>#rollouts tr[hidden]{display:table-row !important}"
                       "</style></noscript><button id=\"more\" type=\"button\" hidden></button>");
    }
    if (count > REPORT_TABLE_ROWS_MAX) {
        html_format(html,
                    "<p class=\"note\">%u of %u rollouts, those that did not pass first; the "
                    "others: <code>swerve show --json</code>.</p>",
                    shown, count);
    }
    html_raw(html, "</div>");
}
