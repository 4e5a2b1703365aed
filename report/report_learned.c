/*
 * Learned tiers in the report: what each tier took and cost per mile, what was flagged and
 * who answered instead, and how audited rollouts agree with the teacher.
 */
#include "report/meters.h"
#include "report/outcome_text.h"
#include "report/report_internal.h"

#include "base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FLAG_CARDS_MAX = 24, FLAG_PICTURE_WIDTH = 288, DISAGREEMENTS_MAX = 60 };

/* ---- tiers ---- */

static const char *booked_text(int64_t attempts, int64_t uusd, char out[SUMMARY_MONEY_BYTES])
{
    return attempts > 0 ? summary_uusd_text(uusd, out) : "\u2013";
}

static void tier_row(struct report *report, enum tier tier)
{
    struct summary_tier_cost cost;
    char text[8][SUMMARY_MONEY_BYTES];
    if (!summary_tier_cost(report->summary, tier, &cost)) {
        return;
    }
    const struct summary_row *row = cost.row;
    const struct summary_overhead *over = &cost.over;
    page_row(
        &report->page,
        "<b>%s</b>|%lld|%lld|{%s}%lld|{%s}%lld|%lld|%s s|%s|{%s}%s|%.0f%%|%.2f|<b>%s</b>|%s|%s|"
        "%s|%s",
        tier_names[tier], (long long)row->verdicts[VERDICT_PASS],
        (long long)row->verdicts[VERDICT_FAIL],
        row->verdicts[VERDICT_PLANNER_ERROR] > 0 ? "bad" : "",
        (long long)row->verdicts[VERDICT_PLANNER_ERROR],
        row->verdicts[VERDICT_FLAGGED] > 0 ? "flag" : "", (long long)row->verdicts[VERDICT_FLAGGED],
        (long long)row->work.ticks, summary_number_text(cost.device_s, text[0]),
        isnan(cost.tick_ms) ? "\u2013" : summary_number_text(cost.tick_ms, text[1]),
        row->work.mflop > 0 ? "" : "soft",
        row->work.mflop > 0 ? summary_number_text((double)row->work.mflop / 1e6, text[2])
                            : "\u2013",
        100 * cost.mfu, cost.miles, summary_rate_text(row->work.usd, cost.miles, text[3]),
        summary_rate_text(cost.with_retries_usd, cost.miles, text[4]),
        booked_text(over->flagged_attempts, over->flagged_uusd, text[5]),
        booked_text(over->failed_attempts, over->failed_uusd, text[6]),
        booked_text(over->audit_attempts, over->audit_uusd, text[7]));
}

static void models_list(struct report *report)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    bool any = false;
    for (uint32_t i = 0; i < summary->row_count; i++) {
        const struct summary_row *row = &summary->rows[i];
        if (strcmp(row->group, "model") == 0) {
            html_raw(html, any ? ", <code>" : "<p>Models and samplers: <code>");
            html_format(html, "%s</code>", row->value);
            any = true;
        }
    }
    html_raw(html, any ? ". A sampler is the degree to which the layout is given, the steps and "
                         "the precision.</p>"
                       : "");
}

/* Meters, a card of their own; nothing where nothing was driven. */
static void write_meters(struct report *report)
{
    struct html *html = &report->html;
    struct meter *meters = NULL;
    uint32_t count = 0;
    struct error ignored;
    if (meters_of(report->summary, &meters, &count, &ignored) != STATUS_OK || count == 0) {
        free(meters);
        return;
    }
    html_raw(html, "<div class=\"card scroll\">");
    page_table(&report->page, "",
               "pool|tier|device|model|#rollouts|#miles per device-hour|#$/1000 miles|#MFU|#frame "
               "pages free at the fullest|#ms/tick p50 / p95 / p99|#s/rollout p50 / p95 / p99");
    for (uint32_t i = 0; i < count; i++) {
        const struct meter *meter = &meters[i];
        struct meter_words words;
        meter_words_of(meter, &words);
        page_row(&report->page, "%s|%s|%s|<code>%s</code>|%lld|%s|%s|%s|{%s}%s|%s|%s", meter->pool,
                 tier_names[meter->tier], meter->device, words.model, (long long)meter->rollouts,
                 words.miles_per_hour, words.usd, words.mfu, meter_pages_short(meter) ? "bad" : "",
                 words.pages_free, words.tick_ms, words.rollout_s);
    }
    html_raw(html, "</tbody></table><p class=\"soft\">All that was driven, audits and flagged "
                   "rollouts too. A tick is a rollout's mean.</p></div>");
    free(meters);
}

void report_tiers(struct report *report)
{
    struct html *html = &report->html;
    html_raw(html, "<div class=\"card\">");
    page_table(&report->page, " class=\"tiers\"",
               "tier|#pass|#fail|#error|#flagged|#ticks|#device time|#ms/tick|#TFLOP|#?MFU|#miles|"
               "#?$/1000 miles|#with retries|#spent on flags|#failures|#audit");
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        tier_row(report, (enum tier)tier);
    }
    page_table_end(&report->page);
    models_list(report);
    html_raw(html, "<p class=\"soft\">MFU: of the peak of a core, or the GPU, of the machine that "
                   "drove, in the model's precision, measured when it opened the model.</p>");
    html_raw(html, "</div>");
    write_meters(report);
}

/* ---- flags ---- */

static void snapshot(struct report *report, const struct kept_outcome *outcome)
{
    struct html *html = &report->html;
    struct error error;
    void *data = NULL;
    size_t bytes = 0;
    if (outcome->evidence_hash[0] == '\0' || !report_pictures(report)) {
        return;
    }
    if (report->store->ops->artifact_get(report->store, outcome->evidence_hash, &data, &bytes,
                                         &error) != STATUS_OK ||
        !html_png(html, data, bytes, FLAG_PICTURE_WIDTH, "the flagged frame")) {
        html_raw(html, "<p class=\"note\">The picture of the frame cannot be shown.</p>");
    }
    free(data);
}

static void flag_card(struct report *report, const struct summary_flag *flag)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    const struct kept_outcome *outcome = &summary->outcomes[flag->outcome];
    html_format(html, "<article class=\"card flagcard\" id=\"g%lld\"><div>",
                (long long)outcome->id);
    snapshot(report, outcome);
    char check[LIMIT_ID_BYTES];
    html_format(html, "</div><div><h4>%s", outcome->scenario_id);
    html_raw(html, outcome->branch_id[0] != '\0' ? " &middot; " : "");
    html_format(html, "%s</h4><p><span class=\"chip flagged\">%s</span> at %.1f s",
                outcome->branch_id, summary_plain_text(outcome->health_check, check),
                outcome->health_tick * TICK_S);
    if (isfinite(outcome->health_value)) {
        html_format(html, ": measured %.3g, bound %.3g", outcome->health_value,
                    outcome->health_threshold);
    }
    html_format(html, "</p><p class=\"soft\">%s <code>%.12s</code> %s, seed %llu, job %lld</p>",
                tier_names[outcome->tier], outcome->model_hash, outcome->sampler,
                (unsigned long long)outcome->seed, (long long)outcome->job_id);
    if (flag->answer >= 0) {
        const struct kept_outcome *answer = &summary->outcomes[flag->answer];
        html_format(html, "<p>Requeued to the %s, job %lld: ", tier_names[answer->tier],
                    (long long)answer->job_id);
        report_chips(html, answer);
        html_format(html, " <a href=\"#r%lld\">its rollout</a></p>", (long long)answer->id);
    } else {
        html_raw(html, "<p><b class=\"bad\">No answer</b>: nothing has run in its place.</p>");
    }
    html_raw(html, "</div></article>");
}

/* A card per slice: how many of its rollouts in learned worlds health checks caught. */
static void flag_rates(struct report *report)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    const char *group = "";
    struct page *page = &report->page;
    html_raw(html, "<div class=\"columns\">");
    for (uint32_t i = 0; i < summary->row_count; i++) {
        const struct summary_row *row = &summary->rows[i];
        if (row->learned == 0 || strcmp(row->group, "model") == 0) {
            continue;
        }
        if (strcmp(row->group, group) != 0) {
            html_raw(html, group[0] != '\0' ? "</tbody></table></section>" : "");
            group = row->group;
            html_raw(html, "<section class=\"card slice\">");
            page_table(page, "", "%s|#rollouts|#caught|#rate|#95%%", group);
        }
        struct rate_estimate at = rate_estimate(&row->flag_rate);
        page_row(page, "{name}%s|%lld|{%s}%lld|%.1f%%|{soft}%.1f&ndash;%.1f%%",
                 row->value[0] != '\0' ? row->value : "(none)", (long long)row->learned,
                 row->caught > 0 ? "flag" : "", (long long)row->caught, 100 * at.value,
                 rate_down(100 * at.low, 0.1), rate_up(100 * at.high, 0.1));
    }
    html_raw(html, group[0] != '\0' ? "</tbody></table></section></div>" : "</div>");
}

void report_flags(struct report *report)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    if (summary->total.learned == 0) {
        return;
    }
    if (summary->frozen_answers + summary->in_flight > 0) {
        html_format(html,
                    "<h2 id=\"frozen\">Frozen slices</h2><p>%lld rollout%s answered by the "
                    "teacher, for the store had frozen the student there; %lld of the student's "
                    "were on their way when the freeze came: an audit that agrees with one of "
                    "them is no agreement.</p>",
                    (long long)summary->frozen_answers, summary_plural(summary->frozen_answers),
                    (long long)summary->in_flight);
    }
    html_raw(html, "<h2 id=\"flags\">Flagged</h2>");
    if (summary->flag_count == 0) {
        html_format(html, "<p>Health checks caught none of %lld rollout%s in learned worlds.</p>",
                    (long long)summary->total.learned, summary_plural(summary->total.learned));
        return;
    }
    html_format(
        html,
        "<p class=\"soft\">Every generated frame is checked while it is driven. A rollout "
        "that fails a check is discarded, never counted, and its whole job goes to the "
        "teacher, where one was asked: checks caught %lld of %lld rollouts in learned worlds. The "
        "pictures show the frame in "
        "which the check fired.</p>",
        (long long)summary->total.caught, (long long)summary->total.learned);
    flag_rates(report);
    html_raw(html, "<div class=\"flags\">");
    for (uint32_t i = 0; i < summary->flag_count && i < FLAG_CARDS_MAX; i++) {
        flag_card(report, &summary->flags[i]);
    }
    html_raw(html, "</div>");
    html_more(html, summary->flag_count, FLAG_CARDS_MAX, "flags: <code>swerve show --json</code>.");
}

/* ---- audit ---- */

/* Pairs that agree, and the interval of the rate over scenarios. */
static void share_cell(struct page *page, uint32_t column, const struct agreement *agreement,
                       const struct agreement_count *count)
{
    struct rate_estimate at = rate_estimate(&count->rate);
    page_cells(page, column, "{%s}%lld/%lld <span class=\"soft\">[%.0f&ndash;%.0f%%]</span>",
               count->pairs < agreement->pairs ? "bad" : "", (long long)count->pairs,
               (long long)agreement->pairs, rate_down(100 * at.low, 1), rate_up(100 * at.high, 1));
}

static void agreement_row(struct page *page, const struct summary_agreement *row, bool first)
{
    const struct agreement *a = &row->agreement;
    bool all = strcmp(row->group, "all") == 0;
    char group[LIMIT_ID_BYTES];
    page_row_begin(page, all ? "total" : "");
    page_cells(page, 0, "%s|%s|%lld|%lld", first ? summary_plain_text(row->group, group) : "",
               all ? "" : row->value, (long long)a->jobs, (long long)a->pairs);
    share_cell(page, 4, a, &a->verdict);
    page_cells(page, 5, "{%s}%lld", a->student_only_passes > 0 ? "bad" : "",
               (long long)a->student_only_passes);
    share_cell(page, 6, a, &a->collision);
    share_cell(page, 7, a, &a->interventions);
    page_cells(page, 8, "%.2f m|%.2f m",
               a->distance_difference_abs_sum_m / (double)a->distance_pairs,
               a->progress_difference_abs_sum_m / (double)(a->pairs > 0 ? a->pairs : 1));
    page_row_end(page);
}

static bool disagrees(const struct agreement_pair *pair)
{
    return pair->student->verdict != pair->teacher->verdict &&
           verdict_is_result(pair->student->verdict) && verdict_is_result(pair->teacher->verdict);
}

/* Names what settles it: futures of the student's drive, from where the two part. */
static void put_futures(struct html *html, const struct summary *summary,
                        const struct agreement_pair *pair)
{
    char text[FUTURES_TEXT_BYTES];
    uint32_t count = summary->audited_count;
    for (uint32_t i = 0; i < count && pair->student->branch_id[0] == '\0'; i++) {
        const struct outcome *at = &summary->audited[i];
        if (at->futures.state != FUTURES_NONE && at->audit_of == pair->student->job_id) {
            const struct kept_outcome itself = kept_outcome_of(at);
            html_format(html, " futures %s, the drive itself ",
                        outcome_text_futures(&at->futures, text));
            report_chips(html, &itself);
        }
    }
}

static void disagreements(struct report *report)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    uint32_t shown = 0;
    for (uint32_t p = 0; p < summary->pair_count; p++) {
        const struct agreement_pair *pair = &summary->pairs[p];
        if (!disagrees(pair) || ++shown > DISAGREEMENTS_MAX) {
            continue;
        }
        html_raw(html, shown == 1 ? "<p>Verdicts that differ:</p><ul><li>" : "<li>");
        html_format(html, "<a href=\"#r%lld\">%s", (long long)pair->student->id,
                    pair->student->scenario_id);
        html_raw(html, pair->student->branch_id[0] != '\0' ? " &middot; " : "");
        html_format(html, "%s</a>, seed %llu: student ", pair->student->branch_id,
                    (unsigned long long)pair->student->seed);
        const struct kept_outcome sides[] = {kept_outcome_of(pair->student),
                                             kept_outcome_of(pair->teacher)};
        report_chips(html, &sides[0]);
        html_raw(html, " teacher ");
        report_chips(html, &sides[1]);
        put_futures(html, summary, pair);
        report_command(report, "show", pair->teacher->id, "");
        html_raw(html, "</li>");
    }
    html_raw(html, shown > 0 ? "</ul>" : "<p>Every verdict was the same.</p>");
    html_more(html, shown, DISAGREEMENTS_MAX, "pairs differ.");
}

void report_audit(struct report *report)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    const char *group = "";
    if (summary->agreement_count == 0) {
        return;
    }
    const struct agreement *all = &summary->agreement[summary->agreement_count - 1].agreement;
    if (all->pairs == 0) {
        html_format(html,
                    "<h2 id=\"audit\">Does the teacher agree?</h2><p>Nothing can be said: of %lld "
                    "rollout%s that the teacher drove as well, each was flagged on one side or "
                    "ended by its planner.</p>",
                    (long long)all->incomplete, summary_plural(all->incomplete));
        return;
    }
    html_format(
        html,
        "<h2 id=\"audit\">Does the teacher agree?</h2><p class=\"soft\">A sample of the student's "
        "jobs was driven by the teacher as well: same scenario, planner and seed; %lld rollouts in "
        "all. Each cell counts pairs of rollouts that agree. The bracket is the 95%% interval of "
        "the rate over scenarios: a main line, its branches and its seeds count once, and what is "
        "drawn is the logical scenario. Read it from its lower end: a slice is trusted as far as "
        "that reaches, and few scenarios reach nowhere, however well they agree. <b>Optimistic</b> "
        "counts the dangerous direction: the student passes what the teacher fails.</p><div "
        "class=\"card\">",
        (long long)(all->pairs + all->incomplete));
    page_table(
        &report->page, "",
        "slice|value|#jobs|#pairs|#pass/fail|#optimistic|#collision|#?guardian=interventions|"
        "#?closest=closest differs by|#progress differs by");
    for (uint32_t i = 0; i < summary->agreement_count; i++) {
        const struct summary_agreement *row = &summary->agreement[i];
        if (row->agreement.pairs > 0) {
            agreement_row(&report->page, row, strcmp(group, row->group) != 0);
            group = row->group;
        }
    }
    page_table_end(&report->page);
    if (all->incomplete > 0) {
        html_format(
            html,
            "<p class=\"note\">Left out: %lld pair%s of which a side was flagged or ended by "
            "its planner.</p>",
            (long long)all->incomplete, summary_plural(all->incomplete));
    }
    disagreements(report);
    html_raw(html, "</div>");
}
