/*
 * Words: verdicts, interventions and criteria as people read them.
 */
#include "report/report_internal.h"

#include "base/units.h"
#include "schemas/scenario_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

void report_chips(struct html *html, const struct kept_outcome *outcome)
{
    html_format(html, "<span class=\"chip %s\">%s</span>", verdict_names[outcome->verdict],
                verdict_names[outcome->verdict]);
    for (int bit = 0; bit < REASON_BIT_COUNT; bit++) {
        if (outcome->reasons & (1u << bit)) {
            html_format(html, " <span class=\"chip reason\">%s</span>", reason_names[bit]);
        }
    }
}

static void figure(struct html *html, const char *metric, double value, const char *unit)
{
    if (isfinite(value)) {
        html_raw(html, "<span>");
        report_metric(html, metric, metric);
        html_format(html, " <b>%.2f</b>%s</span> ", value, unit);
    }
}

void report_key_figures(struct html *html, const struct kept_outcome *outcome)
{
    const struct metrics *m = &outcome->metrics;
    html_raw(html, "<p class=\"figures\">");
    if (outcome->verdict != VERDICT_PLANNER_ERROR) {
        figure(html, "score", m->score, "");
    }
    figure(html, "closest", m->min_distance_m, " m");
    figure(html, "TTC", m->min_ttc_s, " s");
    figure(html, "impact", m->impact_speed_mps, " m/s");
    figure(html, "progress", m->progress, "");
    html_format(html, "<span>%.1f s driven</span></p>", outcome->ticks * TICK_S);
}

const char *report_contact(enum collision_kind kind)
{
    static const char *const words[COLLISION_KIND_COUNT] = {
        "no contact",
        "contact while ego stood",
        "contact with something that stood",
        "contact at ego's rear",
        "contact at ego's front",
        "contact at ego's side",
    };
    return words[kind];
}

/* ---- interventions ---- */

static void sensors(struct html *html, uint32_t mask)
{
    const char *separator = " ";
    for (int bit = 0; bit < SENSOR_KIND_COUNT; bit++) {
        if (mask & (1u << bit)) {
            html_format(html, "%s%s", separator, sensor_names[bit]);
            separator = ", ";
        }
    }
}

static void agent_name(struct html *html, const struct scenario *scenario, int32_t agent)
{
    if (agent >= 0 && (uint32_t)agent < scenario->agent_count) {
        html_text(html, scenario->agents[agent].id);
    } else {
        html_raw(html, "an agent");
    }
}

static void for_a_while(struct html *html, const char *word, double duration_s)
{
    if (isfinite(duration_s) && duration_s > 0) {
        html_format(html, " %s %.1f s", word, duration_s);
    }
}

bool report_is_own(enum intervention_kind kind)
{
    return kind == INTERVENE_EGO_BRAKE || kind == INTERVENE_EGO_SWERVE ||
           kind == INTERVENE_EGO_MAINTAIN || kind == INTERVENE_EGO_ACTIONS;
}

void report_intervention(struct html *html, const struct scenario *scenario,
                         const struct intervention *what)
{
    html_format(html, "At %.1f s ", what->tick * TICK_S);
    switch (what->kind) {
    case INTERVENE_EGO_BRAKE:
        html_format(html, "ego brakes at %.1f m/s&sup2;", what->decel_mps2);
        break;
    case INTERVENE_EGO_SWERVE:
        html_format(html, "ego swerves %.1f m to the %s", fabs(what->offset_m),
                    what->offset_m >= 0 ? "left" : "right");
        for_a_while(html, "within", what->duration_s);
        break;
    case INTERVENE_EGO_MAINTAIN:
        html_raw(html, "ego keeps speed and lane");
        break;
    case INTERVENE_EGO_ACTIONS:
        html_format(html, "ego follows %u given actions", what->action_count);
        break;
    case INTERVENE_EGO_PLANNER:
        html_raw(html, "back to the planner");
        break;
    case INTERVENE_AGENT_BRAKE:
        agent_name(html, scenario, what->agent);
        html_format(html, " brakes at %.1f m/s&sup2;", what->decel_mps2);
        break;
    case INTERVENE_AGENT_CUT_IN:
        agent_name(html, scenario, what->agent);
        html_raw(html, " cuts in");
        for_a_while(html, "within", what->duration_s);
        break;
    case INTERVENE_AGENT_APPEAR:
        agent_name(html, scenario, what->agent);
        html_raw(html, " appears");
        break;
    case INTERVENE_SIGNAL:
        html_raw(html, "signal ");
        html_text(html, scenario->map.signals[what->signal].id);
        html_format(html, " turns %s", traffic_light_names[what->light]);
        break;
    case INTERVENE_TRAFFIC:
        html_format(html, "traffic goes on by the model %s, draw %u",
                    traffic_model_names[what->traffic], what->draw);
        break;
    case INTERVENE_CONDITIONS:
        html_format(html, "conditions become %s, %s, friction %.2f, visibility %.0f m",
                    weather_names[what->conditions.weather], light_names[what->conditions.light],
                    what->conditions.friction, what->conditions.visibility_m);
        break;
    case INTERVENE_STACK_LATENCY:
        html_format(html, "actions arrive %.0f &plusmn; %.0f ms late", what->latency_ms,
                    what->jitter_ms);
        for_a_while(html, "for", what->duration_s);
        break;
    case INTERVENE_STACK_DROPOUT:
        html_raw(html, "dark:");
        sensors(html, what->sensors);
        for_a_while(html, "for", what->duration_s);
        break;
    case INTERVENE_COUNT:
        break;
    }
    html_raw(html, ".");
}

/* ---- criteria ---- */

static void criterion(struct page *page, const struct kept_outcome *outcome, uint32_t reason,
                      const char *name, const char *required, const char *measured)
{
    /* A drive that its planner or a health check cut short was not judged. */
    bool judged = outcome->verdict == VERDICT_PASS || outcome->verdict == VERDICT_FAIL;
    bool broken = judged && (outcome->reasons & reason) != 0;
    page_row(page,
             !judged  ? "%s|%s|%s|<span class=\"soft\">not judged</span>"
             : broken ? "[broken]%s|%s|%s|<b class=\"bad\">not met</b>"
                      : "%s|%s|%s|met",
             name, required, measured);
}

static void limit(struct page *page, const struct kept_outcome *outcome, uint32_t reason,
                  const char *name, const char *relation, double required, double measured,
                  const char *unit)
{
    char wanted[64];
    char found[64];
    if (isnan(required)) {
        return;
    }
    snprintf(wanted, sizeof wanted, "%s %.2f%s", relation, required, unit);
    if (isfinite(measured)) {
        snprintf(found, sizeof found, "%.2f%s", measured, unit);
    } else {
        snprintf(found, sizeof found, "none");
    }
    criterion(page, outcome, reason, name, wanted, found);
}

void report_criteria(struct page *page, const struct scenario *scenario,
                     const struct kept_outcome *outcome)
{
    const struct criteria *c = &scenario->criteria;
    const struct metrics *m = &outcome->metrics;
    char text[64];
    page_table(page, " class=\"criteria\"", "criterion|required|measured|");
    if (c->no_at_fault_collision) {
        criterion(page, outcome, REASON_AT_FAULT_COLLISION, "at-fault collisions", "none",
                  m->at_fault ? "at fault" : "none");
    }
    if (c->no_collision) {
        snprintf(text, sizeof text, "%u", m->collision_count);
        criterion(page, outcome, REASON_COLLISION, "agents touched", "0", text);
    }
    if (c->stay_drivable) {
        criterion(page, outcome, REASON_OFF_DRIVABLE, "drivable area", "inside",
                  m->drivable_area == 0 ? "left it" : "inside");
    }
    if (c->right_direction) {
        snprintf(text, sizeof text, "%.1f", m->driving_direction);
        criterion(page, outcome, REASON_WRONG_DIRECTION, "driving direction", "> 0", text);
    }
    if (c->reach_goal) {
        criterion(page, outcome, REASON_GOAL_NOT_REACHED, "goal", "reached",
                  m->goal_reached ? "reached" : "not reached");
    }
    if (c->comfortable) {
        criterion(page, outcome, REASON_UNCOMFORTABLE, "comfort", "within bounds",
                  m->comfort == 0 ? "out of bounds" : "within bounds");
    }
    uint32_t count[TRAFFIC_SIGN_COUNT] = {0};
    for (uint32_t i = 0; i < scenario->map.signal_count; i++) {
        count[scenario->map.signals[i].sign]++;
    }
    if (c->obey_signals && count[TRAFFIC_SIGN_NONE] > 0) {
        criterion(page, outcome, REASON_RED_LIGHT, "red lights", "none passed",
                  (outcome->reasons & REASON_RED_LIGHT) != 0 ? "passed one" : "none passed");
    }
    if (c->obey_signals && count[TRAFFIC_SIGN_STOP] > 0) {
        criterion(page, outcome, REASON_STOP_SIGN, "stop signs", "a stop at each",
                  (outcome->reasons & REASON_STOP_SIGN) != 0 ? "passed one without" : "stopped");
    }
    limit(page, outcome, REASON_TTC, "smallest TTC", "\u2265", c->min_ttc_s, m->min_ttc_s, " s");
    limit(page, outcome, REASON_DISTANCE, "smallest distance", "\u2265", c->min_distance_m,
          m->min_distance_m, " m");
    /* The outcome keeps the first contact's; the verdict looks at every one. */
    limit(page, outcome, REASON_IMPACT_SPEED, "impact speed (first contact)", "\u2264",
          c->impact_speed_max_mps, m->impact_speed_mps, " m/s");
    limit(page, outcome, REASON_PROGRESS, "progress", "\u2265", c->progress_min, m->progress, "");
    limit(page, outcome, REASON_SCORE, "score", "\u2265", c->score_min, m->score, "");
    limit(page, outcome, REASON_SPEED, "top speed", "\u2264", c->speed_max_mps, m->speed_max_mps,
          " m/s");
    page_table_end(page);
}

/* ---- commands, errors, drives ---- */

void report_command(struct report *report, const char *what, int64_t id, const char *option)
{
    struct html *html = &report->html;
    html_format(html, "<code>swerve %s %lld", what, (long long)id);
    if (report->store_url != NULL) {
        bool plain =
            strspn(report->store_url, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstu"
                                      "vwxyz0123456789_-./:@%+,") == strlen(report->store_url);
        html_raw(html, plain ? " --store " : " --store '");
        html_text(html, report->store_url);
        html_raw(html, plain ? "" : "'");
    }
    html_format(html, "%s</code> ", option);
}

const char *report_anchor(const struct report_job *job, const struct kept_outcome *outcome,
                          char out[REPORT_ANCHOR_BYTES])
{
    /* A fanout with more branches than rows does not show every one of them. */
    bool shown = outcome->branch_id[0] != '\0' && job->count <= REPORT_FANOUT_BRANCHES_MAX;
    snprintf(out, REPORT_ANCHOR_BYTES, shown ? "o%lld" : "f%lld",
             (long long)(shown ? outcome->id : outcome->job_id));
    return out;
}

void report_planner_error(struct html *html, const struct kept_outcome *outcome)
{
    if (outcome->error[0] != '\0') {
        html_format(html, "<pre>%s</pre>", outcome->error);
    }
}

void report_planner_output(struct html *html, const struct report_drive *drive, int32_t rollout,
                           const struct kept_outcome *outcome)
{
    uint32_t bytes = 0;
    char text[TRACE_OUTPUT_BYTES_MAX + 1];
    const char *found = trace_reader_output(&drive->reader, rollout, &bytes);
    if (found == NULL || outcome->verdict == VERDICT_PLANNER_ERROR) {
        return;
    }
    memcpy(text, found, bytes);
    text[bytes] = '\0';
    html_format(html, "<details><summary>The planner wrote</summary><pre>%s</pre></details>", text);
}

enum status report_open(struct report *report, const struct kept_outcome *outcome, bool *there,
                        struct error *error)
{
    enum status status = report_drive_open(&report->drive, report->store, outcome->scenario_hash,
                                           outcome->artifact_hash, error);
    *there = status == STATUS_OK && report_drive_rollout(&report->drive, outcome->branch_id) >= 0;
    report_drive_look(&report->drive, outcome->rig);
    if (status == STATUS_NO_MEMORY || status == STATUS_STORE) {
        return status;
    }
    if (status != STATUS_OK) {
        html_format(&report->html, "<p class=\"note\">Cannot be redrawn: %s</p>", error->text);
    } else if (!*there) {
        html_raw(&report->html, "<p class=\"note\">No trace of this drive was kept.</p>");
    }
    return STATUS_OK;
}

const struct scenario *report_scenario(const struct report *report)
{
    return report->drive.document != NULL ? &report->drive.document->scenario : NULL;
}

bool report_pictures(struct report *report)
{
    if (report->html.bytes + report->drives.bytes < REPORT_PICTURE_BYTES) {
        return true;
    }
    report->pictures_left_out++;
    html_raw(&report->html, "<p class=\"note\">Pictures left out to keep the file small.</p>");
    return false;
}
