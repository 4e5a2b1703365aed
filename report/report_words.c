/*
 * Words: verdicts, interventions, criteria and metric definitions as people read them. Definitions
 * repeat worker/METRICS.md in a sentence each.
 */
#include "report/report_internal.h"

#include "base/check.h"
#include "base/units.h"
#include "schemas/scenario_json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct definition {
    const char *metric;
    const char *text;
} definitions[] = {
    {"main line", "The planner drives from the start to the end, without intervention."},
    {"branch", "A fork from the live state of the main line that goes on under an intervention; "
               "what came before the fork is simulated once."},
    {"95% interval", "Of the pass rate of main lines in one world: each scenario counts once, with "
                     "the mean of its seeds; Wilson's interval with as many draws as the spread "
                     "between logical scenarios amounts to. " SUMMARY_COVERAGE_TEXT},
    {"score", "nuPlan's closed-loop score, 0 to 1: no at-fault collision x drivable area x making "
              "progress x direction x (5 progress + 5 TTC + 4 speed limit + 2 comfort) / 16."},
    {"PDMS",
     "NAVSIM's score over the whole drive, 0 to 1: no at-fault collision x drivable area x (5 "
     "progress + 5 TTC + 2 comfort) / 12."},
    {"EPDMS",
     "NAVSIM's extended score over the whole drive, 0 to 1: no at-fault collision x drivable "
     "area x direction x no red light passed x (5 progress + 5 TTC + 2 lane keeping + 2 "
     "comfort + 2 extended comfort) / 16; without plans the last term is left out, / 14."},
    {"extended comfort", "Share of plans that agree with the plan of 0.5 s before about "
                         "acceleration, jerk, yaw rate and yaw acceleration. Of planners that "
                         "answer with trajectories of 4 s or more."},
    {"two stages",
     "EPDMS of the main line times the weighted mean of EPDMS of its branches that take ego over "
     "and give it back, from there on; weights by how near to its planned place that was."},
    {"lane keeping", "1 unless ego was more than 0.5 m off the centre of its route for 2 s on end, "
                     "outside junctions."},
    {"closest", "Smallest distance between ego's box and any agent's box, in metres; 0 on "
                "contact."},
    {"TTC", "Smallest time to collision at constant speed and heading, in seconds, up to 3 s; "
            "nuPlan's rules say which agents count."},
    {"impact", "Length of the difference of the two velocity vectors at the first contact, m/s."},
    {"progress", "Progress along the route over the progress expected, 0 to 1."},
    {"at fault", "nuPlan: ego hit a stopped agent, hit with its front, or was hit sideways while "
                 "in several lanes."},
    {"guardian", "A rule-based monitor: how often it overrides, or would have, by "
                 "the RSS safe distances or about to leave the drivable area."},
    {"careful driver",
     "One of the two driver models of UN R157, driven from the same start with the "
     "same seed in the object world, on what ego's sensors see: it stays in its lane, "
     "takes time to notice, and brakes."},
    {"drivable area", "Off when a corner of ego's box is 0.3 m or more outside it."},
    {"direction", "1 if ego moves less than 2 m against the lane within 1 s, 0.5 below 6 m, "
                  "else 0."},
    {"comfort", "nuPlan's seven bounds on filtered acceleration, jerk and yaw."},
    {"miles", "Driven in simulation, what branches share counted once."},
    {"MFU",
     "Model FLOP utilisation: operations of the model, counted from its shapes, over what the "
     "machine's measured peak could have done in the device time."},
    {"$/1000 miles",
     "Device time of the results at the price of their pool, over the miles that they drove. What "
     "a "
     "planner computes in a process of its own is not in it; the ledger also charges attempts that "
     "failed."},
};

static const char *definition(const char *metric)
{
    for (size_t i = 0; i < COUNT_OF(definitions); i++) {
        if (strcmp(definitions[i].metric, metric) == 0) {
            return definitions[i].text;
        }
    }
    CHECK(!"a metric without a definition");
    return "";
}

void report_metric(struct html *html, const char *metric, const char *text)
{
    html_format(html, "<abbr title=\"%s\">", definition(metric));
    html_raw(html, text);
    html_raw(html, "</abbr>");
}

void report_definitions(struct html *html)
{
    html_raw(html, "<h2 id=\"words\">What the words mean</h2><div class=\"card\"><dl>");
    for (size_t i = 0; i < COUNT_OF(definitions); i++) {
        html_raw(html, "<dt>");
        html_raw(html, definitions[i].metric);
        html_format(html, "</dt><dd>%s</dd>", definitions[i].text);
    }
    html_raw(html, "</dl><p class=\"soft\">In full, with sources: worker/METRICS.md.</p></div>");
}

void report_chips(struct html *html, const struct outcome *outcome)
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

void report_key_figures(struct html *html, const struct outcome *outcome)
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

static void criterion(struct html *html, const struct outcome *outcome, uint32_t reason,
                      const char *name, const char *required, const char *measured)
{
    /* A drive that its planner or a health check cut short was not judged. */
    bool judged = outcome->verdict == VERDICT_PASS || outcome->verdict == VERDICT_FAIL;
    bool broken = judged && (outcome->reasons & reason) != 0;
    html_raw(html, broken ? "<tr class=\"broken\">" : "<tr>");
    html_format(html, "<td>%s</td><td>%s</td><td>%s</td>", name, required, measured);
    html_raw(html, !judged  ? "<td><span class=\"soft\">not judged</span></td></tr>"
                   : broken ? "<td><b class=\"bad\">not met</b></td></tr>"
                            : "<td>met</td></tr>");
}

static void limit(struct html *html, const struct outcome *outcome, uint32_t reason,
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
    criterion(html, outcome, reason, name, wanted, found);
}

void report_criteria(struct html *html, const struct scenario *scenario,
                     const struct outcome *outcome)
{
    const struct criteria *c = &scenario->criteria;
    const struct metrics *m = &outcome->metrics;
    char text[64];
    html_raw(html, "<table class=\"criteria\"><thead><tr><th>criterion</th><th>required</th>"
                   "<th>measured</th><th></th></tr></thead><tbody>");
    if (c->no_at_fault_collision) {
        criterion(html, outcome, REASON_AT_FAULT_COLLISION, "at-fault collisions", "none",
                  m->at_fault ? "at fault" : "none");
    }
    if (c->no_collision) {
        snprintf(text, sizeof text, "%u", m->collision_count);
        criterion(html, outcome, REASON_COLLISION, "agents touched", "0", text);
    }
    if (c->stay_drivable) {
        criterion(html, outcome, REASON_OFF_DRIVABLE, "drivable area", "inside",
                  m->drivable_area == 0 ? "left it" : "inside");
    }
    if (c->right_direction) {
        snprintf(text, sizeof text, "%.1f", m->driving_direction);
        criterion(html, outcome, REASON_WRONG_DIRECTION, "driving direction", "> 0", text);
    }
    if (c->reach_goal) {
        criterion(html, outcome, REASON_GOAL_NOT_REACHED, "goal", "reached",
                  m->goal_reached ? "reached" : "not reached");
    }
    if (c->comfortable) {
        criterion(html, outcome, REASON_UNCOMFORTABLE, "comfort", "within bounds",
                  m->comfort == 0 ? "out of bounds" : "within bounds");
    }
    uint32_t count[TRAFFIC_SIGN_COUNT] = {0};
    for (uint32_t i = 0; i < scenario->map.signal_count; i++) {
        count[scenario->map.signals[i].sign]++;
    }
    if (c->obey_signals && count[TRAFFIC_SIGN_NONE] > 0) {
        criterion(html, outcome, REASON_RED_LIGHT, "red lights", "none passed",
                  (outcome->reasons & REASON_RED_LIGHT) != 0 ? "passed one" : "none passed");
    }
    if (c->obey_signals && count[TRAFFIC_SIGN_STOP] > 0) {
        criterion(html, outcome, REASON_STOP_SIGN, "stop signs", "a stop at each",
                  (outcome->reasons & REASON_STOP_SIGN) != 0 ? "passed one without" : "stopped");
    }
    limit(html, outcome, REASON_TTC, "smallest TTC", "\u2265", c->min_ttc_s, m->min_ttc_s, " s");
    limit(html, outcome, REASON_DISTANCE, "smallest distance", "\u2265", c->min_distance_m,
          m->min_distance_m, " m");
    /* The outcome keeps the first contact's; the verdict looks at every one. */
    limit(html, outcome, REASON_IMPACT_SPEED, "impact speed (first contact)", "\u2264",
          c->impact_speed_max_mps, m->impact_speed_mps, " m/s");
    limit(html, outcome, REASON_PROGRESS, "progress", "\u2265", c->progress_min, m->progress, "");
    limit(html, outcome, REASON_SCORE, "score", "\u2265", c->score_min, m->score, "");
    limit(html, outcome, REASON_SPEED, "top speed", "\u2264", c->speed_max_mps, m->speed_max_mps,
          " m/s");
    html_raw(html, "</tbody></table>");
}

/* ---- commands, errors, drives ---- */

void report_command(struct report *report, const char *what, int64_t id)
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
    html_raw(html, "</code> ");
}

void report_anchor(struct html *html, const struct report_job *job, const struct outcome *outcome)
{
    /* A fanout with more branches than rows does not show every one of them. */
    if (outcome->branch_id[0] != '\0' && job->count <= REPORT_FANOUT_BRANCHES_MAX) {
        html_format(html, "o%lld", (long long)outcome->id);
    } else {
        html_format(html, "f%lld", (long long)outcome->job_id);
    }
}

void report_plain(struct html *html, const char *name)
{
    for (; *name != '\0'; name++) {
        char text[2] = {*name == '_' ? ' ' : *name, '\0'};
        html_text(html, text);
    }
}

void report_planner_error(struct html *html, const struct outcome *outcome)
{
    if (outcome->error[0] != '\0') {
        html_format(html, "<pre>%s</pre>", outcome->error);
    }
}

void report_planner_output(struct html *html, const struct report_drive *drive, int32_t rollout,
                           const struct outcome *outcome)
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

enum status report_open(struct report *report, const struct outcome *outcome, bool *there,
                        struct error *error)
{
    enum status status = report_drive_open(&report->drive, report->store, outcome, error);
    *there = status == STATUS_OK && report_drive_rollout(&report->drive, outcome) >= 0;
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

const struct scenario *report_scenario(const struct report *report, const struct outcome *outcome)
{
    const struct report_drive *drive = &report->drive;
    bool loaded =
        drive->document != NULL && strcmp(drive->scenario_hash, outcome->scenario_hash) == 0;
    return loaded ? &drive->document->scenario : NULL;
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
