/*
 * Learned tiers in the report: what each tier took and cost per mile, what was flagged and
 * who answered instead, and how audited rollouts agree with the teacher.
 */
#include "report/meters.h"
#include "report/report_internal.h"

#include "base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FLAG_CARDS_MAX = 24, FLAG_PICTURE_WIDTH = 288, DISAGREEMENTS_MAX = 60 };

/* ---- tiers ---- */

static void booked_cell(struct html *html, int64_t attempts, int64_t uusd)
{
    char money[SUMMARY_MONEY_BYTES];
    html_format(html, "<td class=\"n\">%s</td>",
                attempts > 0 ? summary_uusd_text(uusd, money) : "\u2013");
}

static void tier_row(struct report *report, enum tier tier)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    struct summary_tier_cost cost;
    char rate[SUMMARY_MONEY_BYTES];
    char retried[SUMMARY_MONEY_BYTES];
    char tick[SUMMARY_MONEY_BYTES] = "\u2013";
    if (!summary_tier_cost(summary, tier, &cost)) {
        return;
    }
    const struct summary_row *row = cost.row;
    if (!isnan(cost.tick_ms)) {
        summary_number_text(cost.tick_ms, tick);
    }
    html_format(html,
                "<tr><td><b>%s</b></td><td class=\"n\">%lld</td><td class=\"n\">%lld</td>"
                "<td class=\"n%s\">%lld</td><td class=\"n%s\">%lld</td><td class=\"n\">%lld</td>"
                "<td class=\"n\">%s s</td><td class=\"n\">%s</td>",
                tier_names[tier], (long long)row->verdicts[VERDICT_PASS],
                (long long)row->verdicts[VERDICT_FAIL],
                row->verdicts[VERDICT_PLANNER_ERROR] > 0 ? " bad" : "",
                (long long)row->verdicts[VERDICT_PLANNER_ERROR],
                row->verdicts[VERDICT_FLAGGED] > 0 ? " flag" : "",
                (long long)row->verdicts[VERDICT_FLAGGED], (long long)row->work.ticks,
                summary_number_text(cost.device_s, rate), tick);
    if (row->work.mflop > 0) {
        html_format(html, "<td class=\"n\">%s</td>",
                    summary_number_text((double)row->work.mflop / 1e6, rate));
    } else {
        html_raw(html, "<td class=\"n soft\">&ndash;</td>");
    }
    if (isnan(cost.mfu)) {
        html_raw(html, "<td class=\"n soft\">&ndash;</td>");
    } else {
        html_format(html, "<td class=\"n\">%.0f%%</td>", 100 * cost.mfu);
    }
    html_format(html,
                "<td class=\"n\">%.2f</td><td class=\"n\"><b>%s</b></td><td class=\"n\">%s</td>",
                cost.miles, summary_rate_text(row->work.usd, cost.miles, rate),
                summary_rate_text(cost.with_retries_usd, cost.miles, retried));
    booked_cell(html, cost.over.flagged_attempts, cost.over.flagged_uusd);
    booked_cell(html, cost.over.failed_attempts, cost.over.failed_uusd);
    booked_cell(html, cost.over.audit_attempts, cost.over.audit_uusd);
    html_raw(html, "</tr>");
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
static void write_meters(const struct summary *summary, struct html *html)
{
    struct meter *meters = NULL;
    uint32_t count = 0;
    struct error ignored;
    if (meters_of(summary, &meters, &count, &ignored) != STATUS_OK || count == 0) {
        free(meters);
        return;
    }
    html_raw(html, "<div class=\"card scroll\"><table><thead><tr><th>pool</th><th>tier</th>"
                   "<th>device</th><th>model</th><th class=\"n\">rollouts</th><th class=\"n\">"
                   "miles per device-hour</th><th class=\"n\">$/1000 miles</th><th class=\"n\">"
                   "MFU</th><th class=\"n\">frame pages free at the fullest</th><th class=\"n\">"
                   "ms/tick p50 / p95 / p99</th><th class=\"n\">"
                   "s/rollout p50 / p95 / p99</th></tr></thead><tbody>");
    for (uint32_t i = 0; i < count; i++) {
        const struct meter *meter = &meters[i];
        struct meter_words words;
        meter_words_of(meter, &words);
        html_format(html,
                    "<tr><td>%s</td><td>%s</td><td>%s</td><td><code>%s</code></td>"
                    "<td class=\"n\">%lld</td><td class=\"n\">%s</td><td class=\"n\">%s</td>",
                    meter->pool, tier_names[meter->tier], meter->device, words.model,
                    (long long)meter->rollouts, words.miles_per_hour, words.usd);
        html_format(html,
                    "<td class=\"n\">%s</td><td class=\"n%s\">%s</td><td class=\"n\">%s</td>"
                    "<td class=\"n\">%s</td></tr>",
                    words.mfu, meter_pages_short(meter) ? " bad" : "", words.pages_free,
                    words.tick_ms, words.rollout_s);
    }
    html_raw(html, "</tbody></table><p class=\"soft\">All that was driven, audits and flagged "
                   "rollouts too. A tick is a rollout's mean.</p></div>");
    free(meters);
}

void report_tiers(struct report *report)
{
    struct html *html = &report->html;
    const struct summary_peak *peak = &report->summary->peak;
    html_raw(html, "<div class=\"card\"><table class=\"tiers\"><thead><tr><th>tier</th>"
                   "<th class=\"n\">pass</th><th class=\"n\">fail</th><th class=\"n\">error</th>"
                   "<th class=\"n\">flagged</th><th class=\"n\">ticks</th>"
                   "<th class=\"n\">device time</th><th class=\"n\">ms/tick</th>"
                   "<th class=\"n\">TFLOP</th><th class=\"n\">");
    report_metric(html, "MFU", "MFU");
    html_raw(html, "</th><th class=\"n\">miles</th><th class=\"n\">");
    report_metric(html, "$/1000 miles", "$/1000 miles");
    html_raw(html, "</th><th class=\"n\">with retries</th><th class=\"n\">spent on flags</th>"
                   "<th class=\"n\">failures</th><th class=\"n\">audit</th></tr></thead>"
                   "<tbody>");
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        tier_row(report, (enum tier)tier);
    }
    html_raw(html, "</tbody></table>");
    models_list(report);
    if (peak->bf16_flops > 0) {
        html_format(html,
                    "<p class=\"soft\">MFU against the peak of a core of the machine that wrote "
                    "this: %.0f GFLOP/s in bf16, %.0f in fp32, %.0f in int8, measured then.</p>",
                    peak->bf16_flops / 1e9, peak->fp32_flops / 1e9, peak->int8_flops / 1e9);
    }
    html_raw(html, "</div>");
    write_meters(report->summary, html);
}

/* ---- flags ---- */

static void snapshot(struct report *report, const struct outcome *outcome)
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
    const struct outcome *outcome = &summary->outcomes[flag->outcome];
    html_format(html, "<article class=\"card flagcard\" id=\"g%lld\"><div>",
                (long long)outcome->id);
    snapshot(report, outcome);
    html_format(html, "</div><div><h4>%s", outcome->scenario_id);
    html_raw(html, outcome->branch_id[0] != '\0' ? " &middot; " : "");
    html_format(html, "%s</h4><p><span class=\"chip flagged\">", outcome->branch_id);
    report_plain(html, outcome->health_check);
    html_format(html, "</span> at %.1f s", outcome->health_tick * TICK_S);
    if (isfinite(outcome->health_value)) {
        html_format(html, ": measured %.3g, bound %.3g", outcome->health_value,
                    outcome->health_threshold);
    }
    html_format(html, "</p><p class=\"soft\">%s <code>%.12s</code> %s, seed %llu, job %lld</p>",
                tier_names[outcome->tier], outcome->model_hash, outcome->sampler,
                (unsigned long long)outcome->seed, (long long)outcome->job_id);
    if (flag->answer >= 0) {
        const struct outcome *answer = &summary->outcomes[flag->answer];
        html_format(html, "<p>Requeued to the %s, job %lld: ", tier_names[answer->tier],
                    (long long)answer->job_id);
        report_chips(html, answer);
        html_format(html, " <a href=\"#r%lld\">its rollout</a></p>", (long long)answer->id);
    } else {
        html_raw(html, "<p><b class=\"bad\">No answer</b>: nothing has run in its place.</p>");
    }
    html_raw(html, "</div></article>");
}

static void flag_rate_row(struct html *html, const struct summary_row *row)
{
    struct rate_estimate at = rate_estimate(&row->flag_rate);
    html_format(
        html,
        "<tr><td class=\"name\">%s</td><td class=\"n\">%lld</td><td class=\"n%s\">%lld</td><td "
        "class=\"n\">%.1f%%</td><td class=\"n soft\">%.1f&ndash;%.1f%%</td></tr>",
        row->value[0] != '\0' ? row->value : "(none)", (long long)row->learned,
        row->caught > 0 ? " flag" : "", (long long)row->caught, 100 * at.value,
        rate_down(100 * at.low, 0.1), rate_up(100 * at.high, 0.1));
}

/* A card per slice: how many of its rollouts in learned worlds were flagged. */
static void flag_rates(struct report *report)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    const char *group = "";
    html_raw(html, "<div class=\"columns\">");
    for (uint32_t i = 0; i < summary->row_count; i++) {
        const struct summary_row *row = &summary->rows[i];
        if (row->learned == 0 || strcmp(row->group, "model") == 0) {
            continue;
        }
        if (strcmp(row->group, group) != 0) {
            html_raw(html, group[0] != '\0' ? "</tbody></table></section>" : "");
            group = row->group;
            html_format(html,
                        "<section class=\"card slice\"><table><thead><tr><th>%s</th><th "
                        "class=\"n\">rollouts</th><th class=\"n\">flagged</th><th "
                        "class=\"n\">rate</th><th class=\"n\">95%%</th></tr></thead><tbody>",
                        group);
        }
        flag_rate_row(html, row);
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
        html_format(html, "<p>None of %lld rollout%s in learned worlds was flagged.</p>",
                    (long long)summary->total.learned, summary_plural(summary->total.learned));
        return;
    }
    html_format(html,
                "<p class=\"soft\">Every generated frame is checked while it is driven. A rollout "
                "that fails a check is discarded, never counted, and its whole job goes to the "
                "teacher: %lld of %lld rollouts in learned worlds. The pictures show the frame in "
                "which the check fired.</p>",
                (long long)summary->total.caught, (long long)summary->total.learned);
    flag_rates(report);
    html_raw(html, "<div class=\"flags\">");
    for (uint32_t i = 0; i < summary->flag_count && i < FLAG_CARDS_MAX; i++) {
        flag_card(report, &summary->flags[i]);
    }
    html_raw(html, "</div>");
    if (summary->flag_count > FLAG_CARDS_MAX) {
        html_format(html, "<p class=\"note\">%u more flags: <code>swerve show --json</code>.</p>",
                    summary->flag_count - FLAG_CARDS_MAX);
    }
}

/* ---- audit ---- */

/* Pairs that agree, and the interval of the rate over scenarios. */
static void share_cell(struct html *html, const struct agreement *agreement,
                       const struct agreement_count *count)
{
    struct rate_estimate at = rate_estimate(&count->rate);
    html_format(html,
                "<td class=\"n%s\">%lld/%lld <span class=\"soft\">[%.0f&ndash;%.0f%%]</span></td>",
                count->pairs < agreement->pairs ? " bad" : "", (long long)count->pairs,
                (long long)agreement->pairs, rate_down(100 * at.low, 1), rate_up(100 * at.high, 1));
}

static void agreement_row(struct html *html, const struct summary_agreement *row, bool first)
{
    const struct agreement *a = &row->agreement;
    double near = (double)(a->distance_pairs > 0 ? a->distance_pairs : 1);
    double pairs = (double)(a->pairs > 0 ? a->pairs : 1);
    html_raw(html, strcmp(row->group, "all") == 0 ? "<tr class=\"total\"><td>" : "<tr><td>");
    if (first) {
        report_plain(html, row->group);
    }
    html_format(html, "</td><td>%s</td><td class=\"n\">%lld</td><td class=\"n\">%lld</td>",
                strcmp(row->group, "all") == 0 ? "" : row->value, (long long)a->jobs,
                (long long)a->pairs);
    share_cell(html, a, &a->verdict);
    html_format(html, "<td class=\"n%s\">%lld</td>", a->student_only_passes > 0 ? " bad" : "",
                (long long)a->student_only_passes);
    share_cell(html, a, &a->collision);
    share_cell(html, a, &a->interventions);
    if (a->distance_pairs > 0) {
        html_format(html, "<td class=\"n\">%.2f m</td>", a->distance_difference_abs_sum_m / near);
    } else {
        html_raw(html, "<td class=\"n soft\">&ndash;</td>");
    }
    html_format(html, "<td class=\"n\">%.2f m</td></tr>", a->progress_difference_abs_sum_m / pairs);
}

static bool disagrees(const struct agreement_pair *pair)
{
    return pair->student->verdict != pair->teacher->verdict &&
           verdict_is_result(pair->student->verdict) && verdict_is_result(pair->teacher->verdict);
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
        report_chips(html, pair->student);
        html_raw(html, " teacher ");
        report_chips(html, pair->teacher);
        report_command(report, "show", pair->teacher->id);
        html_raw(html, "</li>");
    }
    html_raw(html, shown > 0 ? "</ul>" : "<p>Every verdict was the same.</p>");
    if (shown > DISAGREEMENTS_MAX) {
        html_format(html, "<p class=\"note\">%u more pairs differ.</p>", shown - DISAGREEMENTS_MAX);
    }
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
        "class=\"card\"><table><thead><tr><th>slice</th><th>value</th><th class=\"n\">jobs</th><th "
        "class=\"n\">pairs</th><th class=\"n\">pass/fail</th><th class=\"n\">optimistic</th><th "
        "class=\"n\">collision</th><th class=\"n\">",
        (long long)(all->pairs + all->incomplete));
    report_metric(html, "guardian", "interventions");
    html_raw(html, "</th><th class=\"n\">");
    report_metric(html, "closest", "closest");
    html_raw(html, " differs by</th><th class=\"n\">progress differs by</th></tr></thead><tbody>");
    for (uint32_t i = 0; i < summary->agreement_count; i++) {
        const struct summary_agreement *row = &summary->agreement[i];
        if (row->agreement.pairs > 0) {
            agreement_row(html, row, strcmp(group, row->group) != 0);
            group = row->group;
        }
    }
    html_raw(html, "</tbody></table>");
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
