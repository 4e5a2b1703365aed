/*
 * Fanouts ("what if"): branches counted by what they change, then a card per fanout: every drive on
 * one map and one speed chart, and a row per branch with frames at the same moments, so that
 * columns compare.
 */
#include "report/report_chart.h"
#include "report/report_internal.h"

#include "base/units.h"
#include "scheduler/route.h"
#include "schemas/scenario_json.h"

enum { COLUMNS = 5, COMPARED_TICKS = 60 };

/* A fanout while its card is written. */
struct fanout {
    const struct report_job *job;
    const struct kept_outcome *outcomes; /* [job->count] */
    const struct scenario *scenario;
    uint32_t fork_tick; /* the earliest */
    uint32_t shown;     /* outcomes with a row, the main line first */
    uint32_t order[REPORT_FANOUT_BRANCHES_MAX + 1];
    uint32_t columns[COLUMNS]; /* ticks */
    int32_t hazard;            /* whom the main line touches, -1: nobody */
    uint32_t sight_tick;       /* from which on ego's sensors see it, UINT32_MAX: never */
};

/* Cost of driving it, -1: not known. `outcome` is one of the summary's. */
static double outcome_usd(const struct report *report, const struct kept_outcome *outcome)
{
    const struct summary *summary = report->summary;
    return summary->outcome_usd != NULL ? summary->outcome_usd[outcome - summary->outcomes] : -1.0;
}

/* ---- by intervention ---- */

static void kinds_table(struct report *report)
{
    struct html *html = &report->html;
    struct page *page = &report->page;
    char name[LIMIT_ID_BYTES];
    html_raw(html, "<div class=\"card\">");
    page_table(
        page, "",
        "what changes first|#branches|#pass|#saves a failing main line|#breaks a passing one");
    for (int k = 0; k < INTERVENE_COUNT; k++) {
        const struct report_kind *kind = &report->plan.kinds[k];
        if (kind->branches > 0) {
            page_row(page, "%s|%lld|%lld|{%s}%lld|{%s}%lld",
                     summary_plain_text(intervention_names[k], name), (long long)kind->branches,
                     (long long)kind->passed, kind->rescued > 0 ? "good" : "",
                     (long long)kind->rescued, kind->broke > 0 ? "bad" : "",
                     (long long)kind->broke);
        }
    }
    page_table_end(page);
    if (report->plan.truncated) {
        html_format(html, "<p class=\"note\">Of the first %d scenarios.</p>", REPORT_SCENARIOS_MAX);
    }
    html_raw(html, "</div>");
}

/* ---- one fanout ---- */

/* The main line, then branches whose verdict differs from it, then the others. */
static void choose_rows(struct fanout *fanout)
{
    int32_t main = fanout->job->main - (int32_t)fanout->job->first;
    enum verdict verdict = main >= 0 ? fanout->outcomes[main].verdict : VERDICT_COUNT;
    if (main >= 0) {
        fanout->order[fanout->shown++] = (uint32_t)main;
    }
    for (int pass = 0; pass < 2; pass++) {
        for (uint32_t i = 0; i < fanout->job->count; i++) {
            bool differs = fanout->outcomes[i].verdict != verdict;
            if ((int32_t)i != main && differs == (pass == 0) &&
                fanout->shown <= REPORT_FANOUT_BRANCHES_MAX) {
                fanout->order[fanout->shown++] = i;
            }
        }
    }
}

static uint32_t end_tick(const struct report *report, const struct kept_outcome *outcome)
{
    int32_t rollout = report_drive_rollout(&report->drive, outcome->branch_id);
    if (rollout < 0) {
        return 0;
    }
    uint32_t last = trace_reader_last_tick(&report->drive.reader, rollout);
    return outcome->metrics.collision_tick < last ? outcome->metrics.collision_tick : last;
}

/* Equal moments for every row: from the fork to the last contact, or as far as it goes. */
static void choose_columns(const struct report *report, struct fanout *fanout)
{
    uint32_t end = 0;
    uint32_t contact = 0;
    fanout->fork_tick = UINT32_MAX;
    for (uint32_t b = 0; b < fanout->scenario->branch_count; b++) {
        if (fanout->scenario->branches[b].at_tick < fanout->fork_tick) {
            fanout->fork_tick = fanout->scenario->branches[b].at_tick;
        }
    }
    for (uint32_t i = 0; i < fanout->shown; i++) {
        const struct kept_outcome *outcome = &fanout->outcomes[fanout->order[i]];
        uint32_t tick = end_tick(report, outcome);
        end = tick > end ? tick : end;
        if (outcome->metrics.collision_tick == tick && tick > contact) {
            contact = tick;
        }
    }
    end = contact > fanout->fork_tick ? contact : end;
    if (fanout->fork_tick >= end) {
        fanout->fork_tick = 0;
    }
    if (end - fanout->fork_tick > COMPARED_TICKS) {
        end = fanout->fork_tick + COMPARED_TICKS;
    }
    for (uint32_t i = 0; i < COLUMNS; i++) {
        fanout->columns[i] = fanout->fork_tick + (end - fanout->fork_tick) * i / (COLUMNS - 1);
    }
}

/* Whom it is about: touched by the planner's own drive, else by the first branch that touches
 * somebody, else closest to the planner's drive. -1: nobody. */
static int32_t target(const struct report *report, const struct fanout *fanout)
{
    int32_t closest = -1;
    for (uint32_t i = 0; i < fanout->shown; i++) {
        const struct kept_outcome *outcome = &fanout->outcomes[fanout->order[i]];
        int32_t rollout = report_drive_rollout(&report->drive, outcome->branch_id);
        if (rollout < 0) {
            continue;
        }
        struct report_moment moment =
            report_drive_moment(&report->drive, rollout, outcome->reasons, &outcome->metrics);
        if (outcome->metrics.collision_kind != COLLISION_NONE && moment.agent >= 0) {
            return moment.agent;
        }
        closest = closest < 0 ? moment.agent : closest;
    }
    return closest;
}

static void overlay(struct report *report, const struct fanout *fanout)
{
    struct html *html = &report->html;
    struct report_line lines[REPORT_LINES_MAX];
    struct report_line whole[REPORT_LINES_MAX];
    uint32_t count = 0;
    for (uint32_t i = 0; i < fanout->shown && count < REPORT_LINES_MAX; i++) {
        const struct kept_outcome *outcome = &fanout->outcomes[fanout->order[i]];
        int32_t rollout = report_drive_rollout(&report->drive, outcome->branch_id);
        if (rollout < 0) {
            continue;
        }
        bool main = outcome->branch_id[0] == '\0';
        uint32_t end = end_tick(report, outcome);
        uint32_t last = fanout->columns[COLUMNS - 1];
        uint32_t start = fanout->fork_tick > 10 ? fanout->fork_tick - 10 : 0;
        lines[count] = (struct report_line){
            .rollout = rollout,
            .first_tick = start < end ? start : end,
            .last_tick = end < last ? end : last,
            .style = main ? "ego" : verdict_names[outcome->verdict],
            .name = main ? "as the planner drove" : outcome->branch_id,
        };
        whole[count] = lines[count];
        whole[count].first_tick = 0;
        whole[count].last_tick = trace_reader_last_tick(&report->drive.reader, rollout);
        count++;
    }
    int32_t agent = target(report, fanout);
    html_raw(html, "<div class=\"halves\"><div>");
    report_chart_map(&report->drive, lines, count, agent, html);
    html_raw(html, "</div><div>");
    report_chart_speed(&report->drive, whole, count, &fanout->fork_tick, 1, html);
    html_raw(html,
             "<p class=\"soft small\"><span class=\"key ego\"></span>as the planner drove "
             "<span class=\"key pass\"></span>branch passes <span class=\"key fail\"></span>branch "
             "fails; dashed: the fork.");
    if (agent >= 0) {
        html_format(html, " <span class=\"key other\"></span>%s.",
                    fanout->scenario->agents[agent].id);
    }
    html_raw(html, " Boxes of others: where they are when the planner's own drive ends on the "
                   "map.</p></div></div>");
}

/* Up to its fork a branch is its main line, so those frames are not drawn again. */
static void frames(struct report *report, const struct fanout *fanout,
                   const struct kept_outcome *outcome, const struct branch *branch)
{
    struct html *html = &report->html;
    int32_t rollout = report_drive_rollout(&report->drive, outcome->branch_id);
    if (rollout < 0) {
        return;
    }
    uint32_t last = trace_reader_last_tick(&report->drive.reader, rollout);
    uint32_t shown = UINT32_MAX;
    bool ended = false;
    html_format(html, "<div class=\"strip\" data-frames=\"%lld\">", (long long)outcome->id);
    for (uint32_t i = 0; i < COLUMNS; i++) {
        uint32_t tick = fanout->columns[i];
        if (i > 0 && tick == fanout->columns[i - 1]) {
            continue;
        }
        uint32_t now = report_drive_shown_tick(&report->drive, rollout, tick < last ? tick : last);
        if (branch != NULL && fanout->job->main >= 0 && tick <= branch->at_tick) {
            html_raw(html, "<figure class=\"blank\"><figcaption>as above</figcaption></figure>");
        } else if (ended || now == shown) {
            html_raw(html, "<figure class=\"blank\"></figure>");
        } else {
            ended = tick >= last;
            shown = now;
            report_drive_frame(&report->drive, rollout, now, outcome->seed,
                               report_drive_has_keyframes(&report->drive), html);
        }
    }
    html_raw(html, "</div>");
}

/* The main line's hazard and since when it could be seen. */
static void find_hazard(const struct report *report, struct fanout *fanout)
{
    fanout->hazard = -1;
    fanout->sight_tick = UINT32_MAX;
    if (fanout->job->main >= 0) {
        const struct kept_outcome *main = &report->summary->outcomes[fanout->job->main];
        int32_t rollout = report_drive_rollout(&report->drive, main->branch_id);
        /* The store may have been edited: then it is nobody. */
        bool known = fanout->scenario != NULL && main->metrics.collision_agent >= 0 &&
                     (uint32_t)main->metrics.collision_agent < fanout->scenario->agent_count;
        if (rollout >= 0 && known && main->metrics.collision_count > 0) {
            fanout->hazard = main->metrics.collision_agent;
            fanout->sight_tick = report_drive_sight(&report->drive, rollout, fanout->hazard,
                                                    main->metrics.collision_tick);
        }
    }
}

/* Whether somebody who drives could have known: what ego does otherwise from the fork on counts as
 * a way out only when the hazard is in sight by then. Other changes make another world. */
static void sight_note(struct html *html, const struct fanout *fanout, const struct branch *branch)
{
    if (fanout->hazard < 0 || !report_is_own(branch->interventions[0].kind)) {
        return;
    }
    const char *name = fanout->scenario->agents[fanout->hazard].id;
    if (fanout->sight_tick == UINT32_MAX) {
        html_format(html, "<p class=\"small bad\">%s never stays in sight before the contact.</p>",
                    name);
    } else if (branch->at_tick < fanout->sight_tick) {
        html_format(
            html,
            "<p class=\"small bad\">%s is in sight only %.1f s after the fork: nobody could "
            "have known.</p>",
            name, (fanout->sight_tick - branch->at_tick) * TICK_S);
    } else {
        html_format(html, "<p class=\"small soft\">%s is in sight at the fork, since %.1f s.</p>",
                    name, (branch->at_tick - fanout->sight_tick) * TICK_S);
    }
}

static void change_badge(struct html *html, enum verdict main, const struct kept_outcome *outcome)
{
    if (outcome->verdict == VERDICT_PASS && main != VERDICT_PASS) {
        html_raw(html, " <b class=\"good\">saves it</b>");
    } else if (outcome->verdict != VERDICT_PASS && main == VERDICT_PASS) {
        html_raw(html, " <b class=\"bad\">breaks it</b>");
    } else {
        html_raw(html, " <span class=\"soft\">same verdict</span>");
    }
}

/* Device time of the rollout itself: what it shares is the main line's. */
static void own_cost(struct report *report, const struct kept_outcome *outcome)
{
    struct html *html = &report->html;
    char money[SUMMARY_MONEY_BYTES];
    double usd = outcome_usd(report, outcome);
    if (usd >= 0) {
        html_format(html, "; %.1f s of device time, %s",
                    (double)outcome->device_ns / (double)NS_PER_S, summary_usd_text(usd, money));
    }
    if (outcome->mflop > 0) {
        html_format(html, ", %.2f TFLOP", (double)outcome->mflop / 1e6);
    }
}

static void branch_row(struct report *report, const struct fanout *fanout,
                       const struct kept_outcome *outcome, bool drawn)
{
    struct html *html = &report->html;
    const struct branch *branch = report_branch(fanout->scenario, outcome->branch_id);
    html_format(html, "<div class=\"branch %s\"", verdict_names[outcome->verdict]);
    if (branch != NULL) {
        html_format(html, " id=\"o%lld\"", (long long)outcome->id);
    }
    html_raw(html, "><div><h4>");
    report_play(html, fanout->job, outcome);
    html_format(html, "%s</h4><p>",
                outcome->branch_id[0] != '\0' ? outcome->branch_id : "as the planner drove");
    report_chips(html, outcome);
    if (branch != NULL && fanout->job->main >= 0) {
        change_badge(html, report->summary->outcomes[fanout->job->main].verdict, outcome);
    }
    html_raw(html, "</p><p>");
    for (uint32_t k = 0; branch != NULL && k < branch->intervention_count; k++) {
        report_intervention(html, fanout->scenario, &branch->interventions[k]);
        html_raw(html, " ");
    }
    html_raw(html, "</p>");
    if (branch != NULL) {
        sight_note(html, fanout, branch);
    }
    report_key_figures(html, outcome);
    report_planner_error(html, outcome);
    html_format(html, "<p class=\"soft small\">%u ticks of its own, %u shared",
                outcome->ticks - outcome->prefix_ticks, outcome->prefix_ticks);
    own_cost(report, outcome);
    html_raw(html, "</p><p>");
    report_command(report, "replay", outcome->id, outcome_world_option(outcome->sampler));
    html_raw(html, "</p></div>");
    if (drawn) {
        frames(report, fanout, outcome, branch);
    }
    html_raw(html, "</div>");
}

static void fanout_head(struct report *report, const struct report_job *job,
                        const struct scenario *scenario)
{
    struct html *html = &report->html;
    const struct kept_outcome *outcomes = report->summary->outcomes + job->first;
    int64_t own = 0;
    int64_t shared = 0;
    for (uint32_t i = 0; i < job->count; i++) {
        own += outcomes[i].ticks - outcomes[i].prefix_ticks;
        shared += outcomes[i].prefix_ticks;
    }
    double own_usd = 0;
    char cost[SUMMARY_MONEY_BYTES];
    char saved[SUMMARY_MONEY_BYTES];
    char why[ROUTE_TEXT_BYTES];
    for (uint32_t i = 0; i < job->count; i++) {
        own_usd += outcome_usd(report, &outcomes[i]);
    }
    html_format(
        html,
        "<h3>%s</h3><p class=\"soft\">%s &middot; %s &middot; seed %llu &middot; <b>%u of %u</b> "
        "branches change the verdict &middot; %lld ticks simulated, %lld shared (%.0f%% saved)",
        scenario != NULL && scenario->title[0] != '\0' ? scenario->title : outcomes[0].scenario_id,
        outcomes[0].scenario_id, outcomes[0].planner, (unsigned long long)outcomes[0].seed,
        job->changed, job->count - 1, (long long)own, (long long)shared,
        100.0 * (double)shared / (double)(own + shared > 0 ? own + shared : 1));
    if (own_usd > 0 && own > 0) {
        html_format(html, ": it cost %s, sharing the past saved %s",
                    summary_usd_text(own_usd, cost),
                    summary_usd_text(own_usd / (double)own * (double)shared, saved));
    }
    route_reason_text(outcomes[0].tier, outcomes[0].route_reason, outcomes[0].route_own,
                      outcomes[0].route_other, why);
    html_format(html, why[0] != '\0' ? " &middot; %s world (%s)" : " &middot; %s world%s",
                tier_names[outcomes[0].tier], why);
    if (outcomes[0].model_hash[0] != '\0') {
        html_format(html, ", model <code>%.12s</code> %s", outcomes[0].model_hash,
                    outcomes[0].sampler);
    }
    if (job->failure_card) {
        html_format(html, " &middot; <a href=\"#o%lld\">the failure</a>",
                    (long long)report->summary->outcomes[job->main].id);
    }
    html_raw(html, "</p>");
}

static enum status card(struct report *report, const struct report_job *job, struct error *error)
{
    struct html *html = &report->html;
    struct fanout fanout = {.job = job, .outcomes = report->summary->outcomes + job->first};
    bool there = false;
    html_format(html, "<article class=\"card\" id=\"f%lld\">",
                (long long)fanout.outcomes[0].job_id);
    TRY(report_open(report, &fanout.outcomes[0], &there, error));
    fanout.scenario = report_scenario(report);
    fanout_head(report, job, fanout.scenario);
    fanout.hazard = -1;
    if (fanout.scenario != NULL) {
        choose_rows(&fanout);
        if (there) {
            find_hazard(report, &fanout);
            choose_columns(report, &fanout);
            overlay(report, &fanout);
        }
        bool drawn = there && report_pictures(report);
        for (uint32_t i = 0; i < fanout.shown; i++) {
            branch_row(report, &fanout, &fanout.outcomes[fanout.order[i]], drawn);
        }
        html_more(html, job->count, fanout.shown, "branches in the table of all rollouts.");
    }
    html_raw(html, "</article>");
    return STATUS_OK;
}

enum status report_fanouts(struct report *report, struct error *error)
{
    struct html *html = &report->html;
    const struct report_plan *plan = &report->plan;
    enum status status = STATUS_OK;
    uint32_t shown = 0;
    html_raw(html, "<h2 id=\"branches\">What if</h2>");
    if (plan->fanouts == 0) {
        html_raw(html, "<p>This suite has no branches.</p>");
        return STATUS_OK;
    }
    html_raw(html, "<p class=\"soft\">Branches fork from the live state of the main line; the past "
                   "they share is simulated once. Fanouts of failures come first, then those whose "
                   "branches change the verdict. In a card, a column of frames is one moment.</p>");
    kinds_table(report);
    for (int pass = 0; pass < 3; pass++) {
        for (uint32_t j = 0; status == STATUS_OK && j < plan->job_count; j++) {
            const struct report_job *job = &plan->jobs[j];
            int rank = job->failure_card ? 0 : job->changed > 0 ? 1 : 2;
            if (job->fanout_card && rank == pass) {
                status = card(report, job, error);
                shown++;
            }
        }
    }
    html_more(html, plan->fanouts, shown, "fanouts in the table of all rollouts.");
    return status;
}
