/*
 * The report's sections, in reading order: the whole in numbers, verdicts by slice, what it cost,
 * the failures, the counterfactual branches, every rollout. Pictures come from report_drive.c.
 */
#include "worker/report.h"

#include "base/check.h"
#include "base/embedded.h"
#include "base/units.h"
#include "schemas/scenario_json.h"
#include "worker/report_drive.h"
#include "worker/report_html.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

extern const struct embedded_text report_assets[];
extern const size_t report_assets_count;

enum { FAILURES_MAX = 60, FANOUTS_MAX = 40, STRIP_FRAMES = 6 };

struct report {
    struct html html;
    struct store *store;
    const char *suite_id;
    const struct summary *summary;
    struct report_drive drive;
};

static const char *asset(const char *name)
{
    for (size_t i = 0; i < report_assets_count; i++) {
        if (strcmp(report_assets[i].name, name) == 0) {
            return report_assets[i].text;
        }
    }
    CHECK(!"an asset that was not compiled in");
    return "";
}

/* ---- head ---- */

static void tile(struct html *html, const char *label, const char *format, double value)
{
    char text[64];
    snprintf(text, sizeof text, format, value);
    html_format(html, "<div class=\"tile\"><b>%s</b>", text);
    html_text(html, label);
    html_raw(html, "</div>");
}

static void write_head(struct report *report)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    const struct summary_row *total = &summary->total;
    double low;
    double high;
    double miles = summary_miles(total);
    char date[64];
    time_t now = time(NULL);
    struct tm parts;
    strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &parts));
    summary_wilson(total->main_passed, total->main_total, &low, &high);
    html_raw(html, "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">"
                   "<meta name=\"viewport\" content=\"width=device-width\"><title>Swerve: ");
    html_text(html, report->suite_id);
    html_raw(html, "</title><style>");
    html_raw(html, asset("report.css"));
    html_raw(html, "</style></head><body><header><h1>");
    html_text(html, report->suite_id);
    html_format(html, "</h1><p class=\"soft\">%s, written %s</p>", "Swerve closed-loop report",
                date);
    html_raw(html, "<nav><a href=\"#slices\">Slices</a><a href=\"#cost\">Cost</a>"
                   "<a href=\"#failures\">Failures</a><a href=\"#branches\">What if</a>"
                   "<a href=\"#all\">All rollouts</a></nav><div class=\"tiles\">");
    if (total->main_total > 0) {
        tile(html, "main lines passed", "%.1f%%",
             100.0 * (double)total->main_passed / (double)total->main_total);
    }
    html_format(html, "<div class=\"tile\"><b>%.0f&ndash;%.0f%%</b>95%% confidence</div>",
                100 * low, 100 * high);
    tile(html, "rollouts, branches included", "%.0f", (double)summary->outcome_count);
    tile(html, "scenarios driven by the planner", "%.0f", (double)total->main_total);
    tile(html, "miles", "%.2f", miles);
    tile(html, "per mile", "$%.6f", miles > 0 ? total->usd / miles : 0.0);
    tile(html, "ticks saved by sharing pasts", "%.0f", (double)summary->prefix_ticks_saved);
    tile(html, "guardian would have overridden", "%.0f", (double)summary->interventions);
    html_raw(html, "</div></header><main>");
}

/* ---- slices ---- */

static void rate_bar(struct html *html, const struct summary_row *row)
{
    double low;
    double high;
    if (row->main_total == 0) {
        html_raw(html, "<span class=\"soft\">branches only</span>");
        return;
    }
    double rate = (double)row->main_passed / (double)row->main_total;
    summary_wilson(row->main_passed, row->main_total, &low, &high);
    html_format(html,
                "<svg class=\"rate\" viewBox=\"0 0 190 16\"><title>%.1f%%, 95%% confidence "
                "%.0f to %.0f%%</title><rect class=\"whole\" y=\"3\" width=\"190\" height=\"10\" "
                "rx=\"3\"/><rect class=\"share\" y=\"3\" width=\"%.1f\" height=\"10\" rx=\"3\"/>"
                "<line class=\"range\" x1=\"%.1f\" x2=\"%.1f\" y1=\"8\" y2=\"8\"/></svg>",
                100 * rate, 100 * low, 100 * high, 190 * rate, 190 * low, 190 * high);
}

static void slice_table_row(struct html *html, const struct summary_row *row)
{
    double miles = summary_miles(row);
    html_raw(html, "<tr><td>");
    html_text(html, row->value[0] != '\0' ? row->value : "(none)");
    html_format(html, "</td><td class=\"n\">%lld / %lld</td><td>", (long long)row->main_passed,
                (long long)row->main_total);
    rate_bar(html, row);
    int64_t branches = -row->main_total;
    for (int v = 0; v < VERDICT_COUNT; v++) {
        branches += v == VERDICT_FLAGGED ? 0 : row->verdicts[v];
    }
    html_format(
        html, "</td><td class=\"n\">%lld</td><td class=\"n\">%lld</td><td class=\"n\">%.2f</td>",
        (long long)branches,
        (long long)(row->verdicts[VERDICT_PLANNER_ERROR] + row->verdicts[VERDICT_FLAGGED]), miles);
    html_format(html, "<td class=\"n\">%.6f</td></tr>", miles > 0 ? row->usd / miles : 0.0);
}

static void write_slices(struct report *report)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    const char *group = "";
    html_raw(html, "<h2 id=\"slices\">Verdicts by slice</h2><p class=\"soft\">Main lines: the "
                   "planner drove from start to end. The black line is the 95% Wilson interval; "
                   "where it is wide, run more seeds.</p><div class=\"columns\">");
    for (uint32_t i = 0; i < summary->row_count; i++) {
        const struct summary_row *row = &summary->rows[i];
        if (strcmp(group, row->group) != 0) {
            html_raw(html, group[0] != '\0' ? "</tbody></table></div>" : "");
            group = row->group;
            html_raw(html, "<div class=\"card\"><h3>");
            html_text(html, group);
            html_raw(html, "</h3><table><thead><tr><th></th><th class=\"n\">passed</th><th></th>"
                           "<th class=\"n\">branches</th><th class=\"n\">errors</th>"
                           "<th class=\"n\">miles</th><th class=\"n\">$/mile</th></tr></thead>"
                           "<tbody>");
        }
        slice_table_row(html, row);
    }
    html_raw(html, group[0] != '\0' ? "</tbody></table></div></div>" : "</div>");
}

static void write_cost(struct report *report)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    html_raw(html, "<h2 id=\"cost\">What it cost</h2><p class=\"soft\">The store's ledger: every "
                   "attempt at a job, the failed and lost ones too. Workers report device time and "
                   "distance; only the ledger turns them into money.</p><div class=\"card\">"
                   "<table><thead><tr><th>pool</th><th>device</th><th>tier</th><th>ended</th>"
                   "<th class=\"n\">attempts</th><th class=\"n\">device s</th>"
                   "<th class=\"n\">miles</th><th class=\"n\">$</th><th class=\"n\">$/mile</th>"
                   "</tr></thead><tbody>");
    for (uint32_t i = 0; i < summary->ledger_count; i++) {
        const struct store_ledger_row *row = &summary->ledger[i];
        double miles = (double)row->totals.metres_mm / (double)MM_PER_M / M_PER_MILE;
        double usd = (double)row->totals.cost_uusd / (double)UUSD_PER_USD;
        html_raw(html, "<tr><td>");
        html_text(html, row->pool);
        html_raw(html, "</td><td>");
        html_text(html, row->device);
        html_format(html, "</td><td>%s</td><td>", tier_names[row->tier]);
        html_text(html, row->end);
        html_format(html,
                    "</td><td class=\"n\">%lld</td><td class=\"n\">%.2f</td><td class=\"n\">%.2f"
                    "</td><td class=\"n\">%.6f</td><td class=\"n\">%.6f</td></tr>",
                    (long long)row->totals.attempts,
                    (double)row->totals.device_ns / (double)NS_PER_S, miles, usd,
                    miles > 0 ? usd / miles : 0.0);
    }
    html_raw(html, "</tbody></table></div>");
}

/* ---- one outcome ---- */

static void chips(struct html *html, const struct outcome *outcome)
{
    html_format(html, "<span class=\"chip %s\">%s</span>", verdict_names[outcome->verdict],
                verdict_names[outcome->verdict]);
    for (int bit = 0; bit < REASON_BIT_COUNT; bit++) {
        if (outcome->reasons & (1u << bit)) {
            html_format(html, "<span class=\"chip reason\">%s</span>", reason_names[bit]);
        }
    }
}

static void number(struct html *html, const char *label, double value, const char *unit)
{
    if (isfinite(value)) {
        html_format(html, "%s %.2f%s &middot; ", label, value, unit);
    }
}

static void key_figures(struct html *html, const struct outcome *outcome)
{
    const struct metrics *m = &outcome->metrics;
    html_raw(html, "<p class=\"soft\">");
    number(html, "score", m->score, "");
    number(html, "closest", m->min_distance_m, " m");
    number(html, "TTC", m->min_ttc_s, " s");
    number(html, "impact", m->impact_speed_mps, " m/s");
    number(html, "progress", m->progress, "");
    html_format(html, "%u ticks</p>", outcome->ticks);
}

static void replay_line(struct report *report, const struct outcome *outcome)
{
    html_format(&report->html,
                "<p><code>swerve replay %lld</code> <code>swerve show %lld "
                "--trace</code></p>",
                (long long)outcome->id, (long long)outcome->id);
}

static void planner_error(struct html *html, const struct outcome *outcome)
{
    if (outcome->error[0] != '\0') {
        html_raw(html, "<pre>");
        html_text(html, outcome->error);
        html_raw(html, "</pre>");
    }
}

/* Evenly spread frames that end at the outcome's last tick, or at the first contact. */
static void strip(struct report *report, const struct outcome *outcome, uint32_t first_tick,
                  uint32_t frames, bool camera)
{
    int32_t rollout = report_drive_rollout(&report->drive, outcome);
    if (rollout < 0) {
        return;
    }
    uint32_t last = trace_reader_last_tick(&report->drive.reader, rollout);
    if (outcome->metrics.collision_tick < last) {
        last = outcome->metrics.collision_tick;
    }
    if (first_tick > last) {
        first_tick = last;
    }
    html_raw(&report->html, "<div class=\"strip\">");
    uint32_t shown = UINT32_MAX;
    for (uint32_t i = 0; i < frames; i++) {
        uint32_t tick = first_tick + (last - first_tick) * i / (frames - 1);
        if (tick != shown) {
            report_drive_frame(&report->drive, rollout, tick, outcome->seed, camera, &report->html);
            shown = tick;
        }
    }
    html_raw(&report->html, "</div>");
}

static enum status write_failure(struct report *report, const struct outcome *outcome,
                                 struct error *error)
{
    struct html *html = &report->html;
    enum status status = report_drive_open(&report->drive, report->store, outcome, error);
    if (status != STATUS_OK) {
        return status;
    }
    const struct scenario *scenario = &report->drive.document->scenario;
    html_format(html, "<div class=\"card\" id=\"o%lld\"><h3>", (long long)outcome->id);
    html_text(html, scenario->title[0] != '\0' ? scenario->title : scenario->id);
    html_raw(html, "</h3><p class=\"soft\">");
    html_text(html, outcome->scenario_id);
    if (scenario->source[0] != '\0') {
        html_raw(html, " &middot; ");
        html_text(html, scenario->source);
    }
    html_raw(html, "</p><p>");
    chips(html, outcome);
    if (outcome->metrics.collision_agent >= 0 &&
        (uint32_t)outcome->metrics.collision_agent < scenario->agent_count) {
        const struct agent *agent = &scenario->agents[outcome->metrics.collision_agent];
        html_format(html, "<span class=\"soft\"> %s contact with %s ",
                    collision_kind_names[outcome->metrics.collision_kind],
                    agent_kind_names[agent->kind]);
        html_text(html, agent->id);
        html_raw(html, "</span>");
    }
    html_raw(html, "</p>");
    key_figures(html, outcome);
    planner_error(html, outcome);
    /* The last five seconds before it went wrong say the most. */
    uint32_t end = outcome->metrics.collision_tick != UINT32_MAX ? outcome->metrics.collision_tick
                                                                 : outcome->ticks;
    strip(report, outcome, end > 50 ? end - 50 : 0, STRIP_FRAMES, true);
    html_raw(html, "<details><summary>All cameras and speed at the decisive moment</summary>");
    int32_t rollout = report_drive_rollout(&report->drive, outcome);
    if (rollout >= 0) {
        uint32_t last = trace_reader_last_tick(&report->drive.reader, rollout);
        report_drive_cameras(&report->drive, rollout, end < last ? end : last, outcome->seed, html);
        report_drive_speed(&report->drive, rollout, 0, last, end, html);
    }
    html_raw(html, "</details>");
    replay_line(report, outcome);
    html_raw(html, "</div>");
    return STATUS_OK;
}

static enum status write_failures(struct report *report, struct error *error)
{
    const struct summary *summary = report->summary;
    uint32_t failed = 0;
    html_raw(&report->html, "<h2 id=\"failures\">Failures</h2>");
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        const struct outcome *outcome = &summary->outcomes[i];
        if (outcome->verdict == VERDICT_PASS || outcome->branch_id[0] != '\0') {
            continue;
        }
        if (++failed <= FAILURES_MAX) {
            enum status status = write_failure(report, outcome, error);
            if (status != STATUS_OK) {
                return status;
            }
        }
    }
    if (failed == 0) {
        html_raw(&report->html, "<p>Every main line passed.</p>");
    } else if (failed > FAILURES_MAX) {
        html_format(&report->html, "<p class=\"soft\">%u more in the table of all rollouts.</p>",
                    failed - FAILURES_MAX);
    }
    return STATUS_OK;
}

/* ---- branches ---- */

static void describe_intervention(struct html *html, const struct scenario *scenario,
                                  const struct intervention *what)
{
    html_format(html, "%.1f s: %s", what->tick * TICK_S, intervention_names[what->kind]);
    switch (what->kind) {
    case INTERVENE_EGO_BRAKE:
    case INTERVENE_AGENT_BRAKE:
        html_format(html, " %.1f m/s&sup2;", what->decel_mps2);
        break;
    case INTERVENE_EGO_SWERVE:
        html_format(html, " %+.1f m in %.1f s", what->offset_m, what->duration_s);
        break;
    case INTERVENE_STACK_LATENCY:
        html_format(html, " %.0f ms &plusmn; %.0f ms", what->latency_ms, what->jitter_ms);
        break;
    case INTERVENE_CONDITIONS:
        html_format(html, " %s, %s", weather_names[what->conditions.weather],
                    light_names[what->conditions.light]);
        break;
    default:
        break;
    }
    if (what->agent >= 0) {
        html_raw(html, " (");
        html_text(html, scenario->agents[what->agent].id);
        html_raw(html, ")");
    }
    html_raw(html, "<br>");
}

static const struct branch *find_branch(const struct scenario *scenario, const char *id)
{
    for (uint32_t b = 0; b < scenario->branch_count; b++) {
        if (strcmp(scenario->branches[b].id, id) == 0) {
            return &scenario->branches[b];
        }
    }
    return NULL;
}

static void write_branch(struct report *report, const struct outcome *outcome, uint32_t fork_tick)
{
    struct html *html = &report->html;
    const struct scenario *scenario = &report->drive.document->scenario;
    const struct branch *branch = find_branch(scenario, outcome->branch_id);
    html_format(html, "<div class=\"branch %s\"><h3>", verdict_names[outcome->verdict]);
    html_text(html, branch != NULL ? branch->id : "as the planner drove");
    html_raw(html, "</h3><p>");
    chips(html, outcome);
    html_raw(html, "</p><p class=\"soft\">");
    for (uint32_t k = 0; branch != NULL && k < branch->intervention_count; k++) {
        describe_intervention(html, scenario, &branch->interventions[k]);
    }
    html_raw(html, "</p>");
    key_figures(html, outcome);
    strip(report, outcome, branch != NULL ? branch->at_tick : fork_tick, 3, false);
    int32_t rollout = report_drive_rollout(&report->drive, outcome);
    if (rollout >= 0) {
        report_drive_speed(&report->drive, rollout, 0,
                           trace_reader_last_tick(&report->drive.reader, rollout),
                           branch != NULL ? branch->at_tick : fork_tick, html);
    }
    html_format(html,
                "<p class=\"soft\">%u ticks of its own, %u shared &middot; %.1f ms device time</p>",
                outcome->ticks - outcome->prefix_ticks, outcome->prefix_ticks,
                (double)outcome->device_ns / (double)NS_PER_MS);
    html_format(html, "<p><code>swerve replay %lld</code></p></div>", (long long)outcome->id);
}

/* Outcomes of one job lie together: [first, first + count). */
static enum status write_fanout(struct report *report, uint32_t first, uint32_t count,
                                struct error *error)
{
    struct html *html = &report->html;
    const struct outcome *outcomes = report->summary->outcomes + first;
    enum status status = report_drive_open(&report->drive, report->store, &outcomes[0], error);
    if (status != STATUS_OK) {
        return status;
    }
    const struct scenario *scenario = &report->drive.document->scenario;
    uint32_t fork_tick = UINT32_MAX;
    int64_t own = 0;
    int64_t shared = 0;
    for (uint32_t i = 0; i < count; i++) {
        own += outcomes[i].ticks - outcomes[i].prefix_ticks;
        shared += outcomes[i].prefix_ticks;
    }
    for (uint32_t b = 0; b < scenario->branch_count; b++) {
        if (scenario->branches[b].at_tick < fork_tick) {
            fork_tick = scenario->branches[b].at_tick;
        }
    }
    html_raw(html, "<div class=\"card\"><h3>");
    html_text(html, scenario->title[0] != '\0' ? scenario->title : scenario->id);
    html_raw(html, "</h3><p class=\"soft\">");
    html_text(html, outcomes[0].scenario_id);
    html_format(html,
                ", seed %llu &middot; %lld ticks simulated, %lld shared (%.0f%% saved)</p>"
                "<div class=\"branches\">",
                (unsigned long long)outcomes[0].seed, (long long)own, (long long)shared,
                100.0 * (double)shared / (double)(own + shared > 0 ? own + shared : 1));
    for (uint32_t i = 0; i < count; i++) {
        write_branch(report, &outcomes[i], fork_tick);
    }
    html_raw(html, "</div></div>");
    return STATUS_OK;
}

/* How many outcomes from `first` on belong to the same job. */
static uint32_t job_span(const struct summary *summary, uint32_t first)
{
    uint32_t count = 1;
    while (first + count < summary->outcome_count &&
           summary->outcomes[first + count].job_id == summary->outcomes[first].job_id) {
        count++;
    }
    return count;
}

/* A fanout is worth a look first when its branches disagree. */
static bool verdicts_differ(const struct outcome *outcomes, uint32_t count)
{
    for (uint32_t i = 1; i < count; i++) {
        if (outcomes[i].verdict != outcomes[0].verdict) {
            return true;
        }
    }
    return false;
}

static enum status write_fanouts(struct report *report, struct error *error)
{
    const struct summary *summary = report->summary;
    uint32_t total = 0;
    uint32_t shown = 0;
    html_raw(&report->html,
             "<h2 id=\"branches\">What if</h2><p class=\"soft\">Branches fork from the live state "
             "of the main line; the past they share is simulated once. Fanouts whose branches "
             "disagree come first. The dashed line marks the fork.</p>");
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < summary->outcome_count;) {
            uint32_t count = job_span(summary, i);
            bool differ = verdicts_differ(summary->outcomes + i, count);
            if (count > 1 && differ == (pass == 0)) {
                total++;
                if (shown < FANOUTS_MAX) {
                    enum status status = write_fanout(report, i, count, error);
                    if (status != STATUS_OK) {
                        return status;
                    }
                    shown++;
                }
            }
            i += count;
        }
    }
    if (total == 0) {
        html_raw(&report->html, "<p>This suite has no branches.</p>");
    } else if (total > shown) {
        html_format(&report->html, "<p class=\"soft\">%u more in the table of all rollouts.</p>",
                    total - shown);
    }
    return STATUS_OK;
}

/* ---- every rollout ---- */

static void table_number(struct html *html, double value)
{
    if (isfinite(value)) {
        html_format(html, "<td class=\"n\">%.2f</td>", value);
    } else {
        html_raw(html, "<td class=\"n\">&ndash;</td>");
    }
}

static void write_table(struct report *report)
{
    struct html *html = &report->html;
    html_raw(html, "<h2 id=\"all\">All rollouts</h2><div class=\"card\"><input id=\"filter\" "
                   "placeholder=\"Filter: words that must all occur, e.g. fail night\"><p "
                   "class=\"soft\" id=\"shown\"></p><table id=\"rollouts\"><thead><tr><th>id</th>"
                   "<th>scenario</th><th>branch</th><th>verdict</th><th>tier</th>"
                   "<th class=\"n\">score</th><th class=\"n\">closest m</th>"
                   "<th class=\"n\">TTC s</th><th class=\"n\">ticks</th></tr></thead><tbody>");
    for (uint32_t i = 0; i < report->summary->outcome_count; i++) {
        const struct outcome *outcome = &report->summary->outcomes[i];
        html_format(html, "<tr><td>%lld</td><td>", (long long)outcome->id);
        html_text(html, outcome->scenario_id);
        html_raw(html, "</td><td>");
        html_text(html, outcome->branch_id);
        html_raw(html, "</td><td>");
        chips(html, outcome);
        html_format(html, "</td><td>%s</td>", tier_names[outcome->tier]);
        table_number(html, outcome->metrics.score);
        table_number(html, outcome->metrics.min_distance_m);
        table_number(html, outcome->metrics.min_ttc_s);
        html_format(html, "<td class=\"n\">%u</td></tr>", outcome->ticks);
    }
    html_raw(html, "</tbody></table></div><p class=\"soft\">Metric definitions and their sources: "
                   "worker/METRICS.md of the Swerve repository.</p></main><script>");
    html_raw(html, asset("report.js"));
    html_raw(html, "</script></body></html>\n");
}

static enum status write_file(const struct html *html, const char *path, struct error *error)
{
    char temporary[LIMIT_PATH_BYTES];
    if ((size_t)snprintf(temporary, sizeof temporary, "%s.tmp%d", path, (int)getpid()) >=
        sizeof temporary) {
        return error_set(error, STATUS_BAD_INPUT, "%s: the name is too long", path);
    }
    FILE *stream = fopen(temporary, "wb");
    if (stream == NULL) {
        return error_set(error, STATUS_IO, "%s: cannot create: %s", path, strerror(errno));
    }
    bool bad = fwrite(html->text, 1, html->bytes, stream) != html->bytes;
    bad = fclose(stream) != 0 || bad;
    if (bad || rename(temporary, path) != 0) {
        enum status status =
            error_set(error, STATUS_IO, "%s: cannot write: %s", path, strerror(errno));
        unlink(temporary);
        return status;
    }
    return STATUS_OK;
}

enum status report_write(struct store *store, const char *suite_id, const struct summary *summary,
                         const char *path, struct error *error)
{
    struct report report = {.store = store, .suite_id = suite_id, .summary = summary};
    write_head(&report);
    write_slices(&report);
    write_cost(&report);
    enum status status = write_failures(&report, error);
    if (status == STATUS_OK) {
        status = write_fanouts(&report, error);
    }
    write_table(&report);
    if (status == STATUS_OK && report.html.failed) {
        status = error_set(error, STATUS_NO_MEMORY, "%s: out of memory", path);
    }
    if (status == STATUS_OK) {
        status = write_file(&report.html, path, error);
    }
    report_drive_close(&report.drive);
    html_finish(&report.html);
    return status;
}
