/*
 * Failures: main lines that did not pass, first in a table, then a card each: what was asked, which
 * criterion broke by how much, the paths that led there, the last seconds as frames, and which
 * branch would have saved it.
 */
#include "report/report_chart.h"
#include "report/report_internal.h"

#include "base/check.h"
#include "base/units.h"
#include "scheduler/route.h"
#include "schemas/scenario_json.h"

enum { STRIP_FRAMES = 6, DECISIVE_TICKS = 50, BRANCH_LINKS_MAX = 24, SEEDS_LISTED_MAX = 24 };

/* "seed 4", or every seed that ended alike. */
static void seeds_text(struct report *report, const struct report_job *job)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    uint32_t repeats = 0;
    for (uint32_t j = 0; j < report->plan.job_count; j++) {
        const struct report_job *other = &report->plan.jobs[j];
        if (other->repeat && summary->same_as[other->main] == (uint32_t)job->main) {
            if (repeats == 0) {
                html_format(html, "seeds %llu",
                            (unsigned long long)summary->outcomes[job->main].seed);
            }
            if (++repeats <= SEEDS_LISTED_MAX) {
                html_format(html, ", %llu",
                            (unsigned long long)summary->outcomes[other->main].seed);
            }
        }
    }
    if (repeats == 0) {
        html_format(html, "seed %llu", (unsigned long long)summary->outcomes[job->main].seed);
    } else if (repeats > SEEDS_LISTED_MAX) {
        html_format(html, " and %u more", repeats - SEEDS_LISTED_MAX);
    }
    html_raw(html, repeats > 0 ? ": ended alike" : "");
}

/* ---- the table ---- */

static void rig_name(struct report *report, const struct kept_outcome *outcome)
{
    struct scenario_document *document = NULL;
    struct error unneeded;
    char text[REPORT_RIG_BYTES];
    if (report_drive_scenario(&report->drive, report->store, outcome->scenario_hash, &document,
                              &unneeded) != STATUS_OK) {
        document = NULL;
    }
    html_text(&report->html,
              report_rig_text(document != NULL ? &document->scenario : NULL, outcome->rig, text));
    html_raw(&report->html, ", ");
}

static void triage_row(struct report *report, const struct report_job *job)
{
    struct html *html = &report->html;
    const struct kept_outcome *outcome = &report->summary->outcomes[job->main];
    html_raw(html, "<tr><td class=\"wrap\">");
    report_play(html, job, outcome);
    if (job->failure_card) {
        html_format(html, "<a href=\"#o%lld\">", (long long)outcome->id);
    }
    html_name(html, outcome->scenario_id);
    html_raw(html, job->failure_card ? "</a> <span class=\"soft\">" : " <span class=\"soft\">");
    if (outcome->rig[0] != '\0') {
        rig_name(report, outcome);
    }
    seeds_text(report, job);
    html_raw(html, "</span></td><td>");
    report_chips(html, outcome);
    html_raw(html, "</td><td>");
    if (outcome->metrics.collision_kind != COLLISION_NONE) {
        html_format(html, "%s, %.1f m/s", report_contact(outcome->metrics.collision_kind),
                    outcome->metrics.impact_speed_mps);
    }
    html_format(html, "</td><td class=\"n\">%u</td><td class=\"wrap\">",
                outcome->metrics.intervention_count);
    if (job->count == 1) {
        html_raw(html, "<span class=\"soft\">no branches</span>");
    } else if (job->rescues == 0) {
        html_format(html, "none of %u", job->count - 1);
    } else {
        html_format(html, "<b class=\"good\">%u of %u</b>", job->rescues, job->count - 1);
        const char *separator = " ";
        for (int k = 0; k < INTERVENE_COUNT; k++) {
            if (job->rescue_kinds & (1u << k)) {
                char name[LIMIT_ID_BYTES];
                html_format(html, "%s%s", separator,
                            summary_plain_text(intervention_names[k], name));
                separator = ", ";
            }
        }
    }
    html_raw(html, "</td></tr>");
}

static void triage(struct report *report)
{
    struct html *html = &report->html;
    uint32_t shown = 0;
    html_raw(html, "<div class=\"card\">");
    page_table(&report->page, " class=\"filtered\"",
               "scenario|verdict|first contact|#?guardian|saved by branch");
    for (uint32_t j = 0; j < report->plan.job_count; j++) {
        const struct report_job *job = &report->plan.jobs[j];
        if (job->failure && !job->repeat && ++shown <= REPORT_FAILURE_ROWS_MAX) {
            triage_row(report, job);
        }
    }
    html_raw(html, "</tbody></table>");
    html_more(html, shown, REPORT_FAILURE_ROWS_MAX, "in the table of all rollouts.");
    html_raw(html, "</div>");
}

/* ---- a card ---- */

static void situation(struct report *report, const struct report_job *job,
                      const struct scenario *scenario)
{
    struct html *html = &report->html;
    const struct kept_outcome *outcome = &report->summary->outcomes[job->main];
    const struct conditions *c = &scenario->conditions;
    if (scenario->prompt[0] != '\0') {
        html_format(html, "<blockquote>%s</blockquote>", scenario->prompt);
    }
    html_format(html, "<p class=\"soft\">%s, %s, friction %.2f, visibility %.0f m; ",
                weather_names[c->weather], light_names[c->light], c->friction, c->visibility_m);
    static const enum slice_kind kinds[] = {SLICE_ROAD, SLICE_GEOGRAPHY, SLICE_ACTOR};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (outcome->slice[kinds[i]][0] != '\0') {
            html_format(html, "%s %s, ", slice_names[kinds[i]], outcome->slice[kinds[i]]);
        }
    }
    char why[ROUTE_TEXT_BYTES];
    route_reason_text(outcome->tier, outcome->route_reason, outcome->route_own,
                      outcome->route_other, why);
    html_format(html, why[0] != '\0' ? "%s world (%s), " : "%s world%s, ",
                tier_names[outcome->tier], why);
    if (outcome->model_hash[0] != '\0') {
        html_format(html, "model <code>%.12s</code> %s, ", outcome->model_hash, outcome->sampler);
    }
    seeds_text(report, job);
    if (scenario->source[0] != '\0') {
        html_format(html, ". Source: %s", scenario->source);
    }
    html_raw(html, "</p>");
}

static void contact(struct html *html, const struct scenario *scenario,
                    const struct kept_outcome *outcome, const struct report_moment *moment)
{
    const struct metrics *m = &outcome->metrics;
    html_raw(html, "<p>");
    if (m->collision_kind != COLLISION_NONE && m->collision_agent >= 0 &&
        (uint32_t)m->collision_agent < scenario->agent_count) {
        const struct agent *agent = &scenario->agents[m->collision_agent];
        html_format(html, "<b>%.1f s: %s</b>: the %s %s, %.1f m/s, ", m->collision_tick * TICK_S,
                    report_contact(m->collision_kind), agent_kind_names[agent->kind], agent->id,
                    m->impact_speed_mps);
        report_metric(html, "at fault", m->at_fault ? "at fault" : "not at fault");
        html_raw(html, ". ");
    }
    if (moment != NULL && moment->guardian_tick != UINT32_MAX) {
        report_metric(html, "guardian", "The guardian");
        html_format(html, " would first have overridden at %.1f s, %.1f s before.",
                    moment->guardian_tick * TICK_S,
                    (moment->tick - moment->guardian_tick) * TICK_S);
    } else if (moment != NULL) {
        report_metric(html, "guardian", "The guardian");
        html_raw(html, " would not have overridden before.");
    }
    html_raw(html, "</p>");
}

static void branch_links(struct report *report, const struct report_job *job)
{
    struct html *html = &report->html;
    if (job->count == 1) {
        return;
    }
    html_raw(html, "<p>What if: ");
    uint32_t shown = 0;
    for (uint32_t i = job->first; i < job->first + job->count; i++) {
        const struct kept_outcome *branch = &report->summary->outcomes[i];
        char anchor[REPORT_ANCHOR_BYTES];
        if ((int32_t)i == job->main || ++shown > BRANCH_LINKS_MAX) {
            continue;
        }
        if (job->fanout_card) {
            html_format(html, "<a class=\"chip %s\" href=\"#%s\">", verdict_names[branch->verdict],
                        report_anchor(job, branch, anchor));
        } else {
            html_format(html, "<span class=\"chip %s\">", verdict_names[branch->verdict]);
        }
        html_format(html, "%s: %s", branch->branch_id, verdict_names[branch->verdict]);
        html_raw(html, job->fanout_card ? "</a> " : "</span> ");
    }
    if (shown > BRANCH_LINKS_MAX) {
        html_format(html, "and %u more", shown - BRANCH_LINKS_MAX);
    }
    html_raw(html, "</p>");
}

/* Evenly spread frames of the last seconds up to `end`. */
static void strip(struct report *report, const struct kept_outcome *outcome, int32_t rollout,
                  uint32_t start, uint32_t end)
{
    uint32_t shown = UINT32_MAX;
    html_format(&report->html, "<div class=\"strip\" data-frames=\"%lld\">",
                (long long)outcome->id);
    for (uint32_t i = 0; i < STRIP_FRAMES; i++) {
        uint32_t tick = start + (end - start) * i / (STRIP_FRAMES - 1);
        if (tick != shown) {
            report_drive_frame(&report->drive, rollout, tick, outcome->seed, true, &report->html);
            shown = tick;
        }
    }
    html_raw(&report->html, "</div>");
}

/* Frames and cameras of an outcome that can be redrawn. */
static void pictures(struct report *report, const struct kept_outcome *outcome, int32_t rollout,
                     const struct report_moment *moment)
{
    struct html *html = &report->html;
    uint32_t start = moment->tick > DECISIVE_TICKS ? moment->tick - DECISIVE_TICKS : 0;
    if (!report_pictures(report)) {
        return;
    }
    strip(report, outcome, rollout, start, moment->tick);
    html_raw(html, "<details><summary>All cameras at the decisive moment</summary>");
    report_drive_cameras(&report->drive, rollout, moment->tick, outcome->seed, html);
    html_raw(html, "</details>");
}

static void charts(struct report *report, int32_t rollout, const struct report_moment *moment)
{
    struct html *html = &report->html;
    const struct report_drive *drive = &report->drive;
    uint32_t start = moment->tick > DECISIVE_TICKS ? moment->tick - DECISIVE_TICKS : 0;
    const struct report_line near = {rollout, start, moment->tick, "ego", "ego"};
    const struct report_line whole = {rollout, 0, trace_reader_last_tick(&drive->reader, rollout),
                                      "ego", "ego"};
    html_raw(html, "<div class=\"charts\">");
    report_chart_map(drive, &near, 1, moment->agent, html);
    html_format(html,
                "<p class=\"soft small\">%.1f s to %.1f s. <span class=\"key ego\"></span>ego",
                start * TICK_S, moment->tick * TICK_S);
    if (moment->agent >= 0) {
        html_format(html, " <span class=\"key other\"></span>%s",
                    drive->document->scenario.agents[moment->agent].id);
    }
    html_raw(html, "</p>");
    report_chart_speed(drive, &whole, 1, &moment->tick, 1, html);
    html_raw(html, "</div>");
}

static enum status card(struct report *report, const struct report_job *job, struct error *error)
{
    struct html *html = &report->html;
    const struct kept_outcome *outcome = &report->summary->outcomes[job->main];
    bool there = false;
    html_format(html, "<article class=\"card\" id=\"o%lld\">", (long long)outcome->id);
    TRY(report_open(report, outcome, &there, error));
    const struct scenario *scenario = report_scenario(report);
    bool titled = scenario != NULL && scenario->title[0] != '\0';
    html_raw(html, "<h3>");
    report_play(html, job, outcome);
    html_format(html, "%s</h3><p>", titled ? scenario->title : outcome->scenario_id);
    report_chips(html, outcome);
    html_format(html, " <span class=\"soft\">%s &middot; %s</span></p><div class=\"halves\"><div>",
                outcome->scenario_id, outcome->planner);
    int32_t rollout = there ? report_drive_rollout(&report->drive, outcome->branch_id) : -1;
    struct report_moment moment = {0};
    if (there) {
        moment = report_drive_moment(&report->drive, rollout, outcome->reasons, &outcome->metrics);
    }
    if (scenario != NULL) {
        situation(report, job, scenario);
        contact(html, scenario, outcome, there ? &moment : NULL);
        TRY(report_card_careful(report, scenario, outcome, error));
        report_criteria(&report->page, scenario, outcome);
    }
    report_key_figures(html, outcome);
    report_planner_error(html, outcome);
    if (there) {
        report_planner_output(html, &report->drive, rollout, outcome);
    }
    branch_links(report, job);
    html_raw(html, "<p>");
    report_command(report, "replay", outcome->id, outcome_world_option(outcome->sampler));
    report_command(report, "show", outcome->id, "");
    html_raw(html, "</p></div>");
    if (there) {
        charts(report, rollout, &moment);
    }
    html_raw(html, "</div>");
    if (there) {
        pictures(report, outcome, rollout, &moment);
    }
    html_raw(html, "</article>");
    return STATUS_OK;
}

enum status report_failures(struct report *report, struct error *error)
{
    struct html *html = &report->html;
    const struct report_plan *plan = &report->plan;
    enum status status = STATUS_OK;
    uint32_t left_out = 0;
    html_raw(html, "<h2 id=\"failures\">Failures</h2>");
    if (plan->failures == 0) {
        html_format(html, "<p>%s</p>",
                    plan->job_count == 0 ? "No main line has finished."
                                         : summary_none_failed_text(report->summary));
        return STATUS_OK;
    }
    triage(report);
    html_format(html,
                "<p class=\"soft\">Cards show the last %.0f s before the first contact, the "
                "closest approach or the end. Frames: front camera and bird's-eye grid as the "
                "planner saw them; an amber frame is one in which the guardian would have "
                "overridden.</p>",
                DECISIVE_TICKS * TICK_S);
    for (uint32_t j = 0; status == STATUS_OK && j < plan->job_count; j++) {
        const struct report_job *job = &plan->jobs[j];
        left_out += job->failure && !job->repeat && !job->failure_card;
        if (job->failure_card) {
            status = card(report, job, error);
        }
    }
    html_more(html, left_out, 0, "failures have no card.");
    return status;
}
