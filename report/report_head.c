/*
 * The head: what came of the suite in labelled lines, then in tiles; and the notes on what did not
 * run as asked: unfinished and dead jobs, results taken over, questions answered by a cheaper
 * world.
 */
#include "report/report_internal.h"

#include "schemas/scenario_json.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Bits of rescue_kinds: what ego itself does. */
#define OWN_KINDS ((1u << INTERVENE_AGENT_BRAKE) - 1)

enum { WEAKEST_MAX = 4, PLANNERS_NAMED_MAX = 6, DEAD_PAGE = 20 };

/* ---- what came of it ---- */

/* A line of the list of results: begin_line, its words, end_line. */
static void begin_line(struct html *html, const char *label)
{
    html_format(html, "<dt>%s</dt><dd>", label);
}

static void end_line(struct html *html)
{
    html_raw(html, "</dd>");
}

/* The rate of each tier of a planner's row; tiers are not mixed. */
static void rate_words(struct html *html, const struct summary_row *row)
{
    char range[SUMMARY_SEEDS_BYTES];
    for (uint32_t i = 0; i < row->part_count; i++) {
        struct rate_estimate at = rate_estimate(&row->parts[i].rate);
        if (at.cases > 0) {
            html_raw(html, "<br>");
            html_format(html,
                        "<b>%.1f%%</b> of %lld scenario%s in the %s world (95%% interval "
                        "%.0f&ndash;%.0f%%, from %lld logical scenario%s)",
                        100 * at.value, (long long)at.cases, summary_plural(at.cases),
                        tier_names[row->parts[i].tier], rate_down(100 * at.low, 1),
                        rate_up(100 * at.high, 1), (long long)at.logical,
                        summary_plural(at.logical));
        }
    }
    for (uint32_t i = 0; i < row->part_count; i++) {
        summary_range_text(&row->parts[i], range);
        html_raw(html, range[0] != '\0' ? "<br>" : "");
        html_format(html, "%s", range);
    }
}

static void planner_sentences(struct report *report)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    uint32_t named = 0;
    for (uint32_t i = 0; i < summary->row_count; i++) {
        const struct summary_row *row = &summary->rows[i];
        if (strcmp(row->group, "planner") != 0 || row->main_total == 0) {
            continue;
        }
        if (++named > PLANNERS_NAMED_MAX) {
            begin_line(html, "");
            html_raw(html, "More planners: see the slices.");
            end_line(html);
            break;
        }
        begin_line(html, named == 1 ? "Passes" : "");
        html_format(html, "<b>%s</b>", row->value);
        rate_words(html, row);
        end_line(html);
    }
}

/* "NAME in COUNT", the first after *separator, the others after a comma. */
static void counted_name(struct html *html, const char **separator, const char *name, int64_t count)
{
    char plain[LIMIT_ID_BYTES];
    html_format(html, "%s%s in %lld", *separator, summary_plain_text(name, plain),
                (long long)count);
    *separator = ", ";
}

static void reason_sentence(struct report *report)
{
    struct html *html = &report->html;
    const struct report_plan *plan = &report->plan;
    uint32_t reasons[REASON_BIT_COUNT] = {0};
    uint32_t verdicts[VERDICT_COUNT] = {0};
    uint32_t guarded = 0;
    for (uint32_t j = 0; j < plan->job_count; j++) {
        if (plan->jobs[j].failure) {
            const struct kept_outcome *outcome = &report->summary->outcomes[plan->jobs[j].main];
            verdicts[outcome->verdict]++;
            guarded += outcome->metrics.intervention_count > 0;
            for (int bit = 0; bit < REASON_BIT_COUNT; bit++) {
                reasons[bit] += (outcome->reasons >> bit) & 1u;
            }
        }
    }
    begin_line(html, "Failures");
    html_format(html, "<b>%u</b> main line%s", plan->failures, summary_plural(plan->failures));
    const char *separator = ": ";
    for (int bit = 0; bit < REASON_BIT_COUNT; bit++) {
        if (reasons[bit] > 0) {
            counted_name(html, &separator, reason_names[bit], reasons[bit]);
        }
    }
    for (int v = VERDICT_PLANNER_ERROR; v < VERDICT_COUNT; v++) {
        if (verdicts[v] > 0) {
            counted_name(html, &separator, verdict_names[v], verdicts[v]);
        }
    }
    html_format(html, "; the guardian would have overridden in %u of them", guarded);
    end_line(html);
}

/* Kinds of branches, first to end, in which failed jobs pass; without others_too of jobs that ego
 * does not save itself. */
static void rescue_kinds(struct report *report, int first, int end, bool others_too)
{
    struct html *html = &report->html;
    const struct report_plan *plan = &report->plan;
    uint32_t kinds[INTERVENE_COUNT] = {0};
    for (uint32_t j = 0; j < plan->job_count; j++) {
        bool own = (plan->jobs[j].rescue_kinds & OWN_KINDS) != 0;
        for (int k = first; k < end && (others_too || !own); k++) {
            kinds[k] += (plan->jobs[j].rescue_kinds >> k) & 1u;
        }
    }
    const char *separator = " (";
    for (int k = first; k < end; k++) {
        if (kinds[k] > 0) {
            counted_name(html, &separator, intervention_names[k], kinds[k]);
        }
    }
    html_raw(html, separator[0] == ',' ? ")" : "");
}

/* An action of ego instead of the planner's is a way out; that another world or stack passes is
 * none. */
static void rescue_sentence(struct report *report)
{
    struct html *html = &report->html;
    const struct report_plan *plan = &report->plan;
    uint32_t own = 0;
    uint32_t other = 0;
    if (plan->failures_with_branch == 0) {
        return;
    }
    for (uint32_t j = 0; j < plan->job_count; j++) {
        bool by_ego = (plan->jobs[j].rescue_kinds & OWN_KINDS) != 0;
        own += by_ego;
        other += plan->jobs[j].rescue_kinds != 0 && !by_ego;
    }
    begin_line(html, "Ways out");
    html_format(html, "of the %u failures that %s branches, ", plan->failures_with_branch,
                plan->failures_with_branch == 1 ? "has" : "have");
    if (plan->failures_rescued == 0) {
        html_raw(html, "<b>none</b> has one that passes.");
        end_line(html);
        return;
    }
    html_format(html, "<b>%u</b> %s one that passes by what ego does", own,
                own == 1 ? "has" : "have");
    rescue_kinds(report, INTERVENE_EGO_BRAKE, INTERVENE_AGENT_BRAKE, true);
    if (other > 0) {
        html_format(html, "; %u only in another world or with another stack", other);
        rescue_kinds(report, INTERVENE_AGENT_BRAKE, INTERVENE_COUNT, false);
    }
    html_raw(html, ". Whether ego could have known in time: <code>swerve avoid</code>.");
    end_line(html);
}

/* Lower is weaker: the top of the interval, so that one bad draw does not outrank many. */
static int compare_weakness(const void *a, const void *b)
{
    const struct summary_row *x = *(const struct summary_row *const *)a;
    const struct summary_row *y = *(const struct summary_row *const *)b;
    double high_x = rate_estimate(&summary_row_lowest(x)->rate).high;
    double high_y = rate_estimate(&summary_row_lowest(y)->rate).high;
    return high_x < high_y ? -1 : high_x > high_y ? 1 : strcmp(x->value, y->value);
}

static void weakest_sentence(struct report *report)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    const struct summary_row **rows = malloc((summary->row_count + 1) * sizeof *rows);
    uint32_t count = 0;
    if (rows == NULL) {
        html->failed = true;
        return;
    }
    for (uint32_t i = 0; i < summary->row_count; i++) {
        const struct summary_row *row = &summary->rows[i];
        bool named = strcmp(row->group, "tier") != 0 && strcmp(row->group, "planner") != 0 &&
                     strcmp(row->group, "model") != 0 && strcmp(row->group, "safety_critical") != 0;
        /* Below the suite as a whole, where it is lowest. */
        const struct summary_part *lowest = summary_row_lowest(row);
        const struct summary_part *whole =
            lowest != NULL ? summary_row_part(&summary->total, lowest->planner, lowest->tier)
                           : NULL;
        bool weak =
            whole != NULL && rate_estimate(&lowest->rate).value < rate_estimate(&whole->rate).value;
        if (named && weak) {
            rows[count++] = row;
        }
    }
    qsort(rows, count, sizeof(const struct summary_row *), compare_weakness);
    uint32_t shown = count < WEAKEST_MAX ? count : WEAKEST_MAX;
    for (uint32_t i = 0; i < shown; i++) {
        char plain[LIMIT_ID_BYTES];
        if (i == 0) {
            begin_line(html, "Weakest slices");
        }
        html_format(html, "%s%s <b>%s</b> %lld/%lld", i == 0 ? "" : ", ",
                    summary_plain_text(rows[i]->group, plain),
                    rows[i]->value[0] != '\0' ? rows[i]->value : "(none)",
                    (long long)rows[i]->main_passed, (long long)rows[i]->main_total);
    }
    if (shown > 0) {
        end_line(html);
    }
    free(rows);
}

/* Branches that change the world or the stack while the planner goes on driving: those that it
 * loses say how close a pass was. Ego interventions replace the planner and say nothing of it. */
static void fragile_sentence(struct report *report)
{
    struct html *html = &report->html;
    const struct report_kind *kinds = report->plan.kinds;
    int64_t branches = 0;
    int64_t broke = 0;
    for (int k = INTERVENE_AGENT_BRAKE; k < INTERVENE_COUNT; k++) {
        branches += kinds[k].branches;
        broke += kinds[k].broke;
    }
    if (branches == 0) {
        return;
    }
    begin_line(html, "What if");
    html_format(html,
                "of %lld branches that change the world or the stack while the planner drives on, "
                "<b>%lld</b> fail%s where the main line passes",
                (long long)branches, (long long)broke, broke == 1 ? "s" : "");
    const char *separator = " (";
    for (int k = INTERVENE_AGENT_BRAKE; k < INTERVENE_COUNT; k++) {
        if (kinds[k].broke > 0) {
            counted_name(html, &separator, intervention_names[k], kinds[k].broke);
        }
    }
    html_raw(html, broke > 0 ? ")" : "");
    end_line(html);
}

/* Share that learned worlds answered, how often they were doubted, and what the teacher says. */
static void learned_sentence(struct report *report)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    if (summary->total.learned == 0) {
        return;
    }
    begin_line(html, "Health");
    html_format(html,
                "learned worlds drove <b>%lld</b> rollout%s; checks caught <b>%lld</b> of them%s",
                (long long)summary->total.learned, summary_plural(summary->total.learned),
                (long long)summary->total.caught,
                summary->total.caught > 0 ? "; another world was asked instead" : "");
    end_line(html);
    if (summary->agreement_count > 0) {
        const struct agreement *all = &summary->agreement[summary->agreement_count - 1].agreement;
        struct rate_estimate at = rate_estimate(&all->verdict.rate);
        begin_line(html, "Teacher");
        if (all->pairs == 0) {
            html_raw(html, "<b>nothing to compare yet</b>: no rollout was judged both by the "
                           "student's world and by the teacher's");
            end_line(html);
            return;
        }
        html_format(html,
                    "the same verdict in <b>%lld of %lld</b> audited rollouts of "
                    "%lld job%s (95%% interval %.0f&ndash;%.0f%%)",
                    (long long)all->verdict.pairs, (long long)all->pairs, (long long)all->jobs,
                    summary_plural(all->jobs), rate_down(100 * at.low, 1),
                    rate_up(100 * at.high, 1));
        end_line(html);
    }
}

static void invalid_sentence(struct report *report)
{
    struct html *html = &report->html;
    struct summary_invalid checks[SUMMARY_INVALID_MAX];
    uint32_t count = summary_invalid_checks(report->summary, checks);
    const char *separator = ": ";
    if (count == 0) {
        return;
    }
    long long rollouts = (long long)report->summary->total.verdicts[VERDICT_INVALID];
    begin_line(html, "Invalid");
    html_format(html, "<b>%lld</b> rollout%s, neither passed nor failed and in no rate", rollouts,
                summary_plural(rollouts));
    for (uint32_t i = 0; i < count; i++) {
        counted_name(html, &separator, checks[i].check, checks[i].rollouts);
    }
    end_line(html);
}

static void write_results(struct report *report)
{
    struct html *html = &report->html;
    const struct report_plan *plan = &report->plan;
    char conclusion[SUMMARY_CONCLUSION_BYTES];
    html_format(html, "<p class=\"conclusion\">%s</p>",
                summary_conclusion_text(report->summary, conclusion));
    if (report->summary->outcome_count == 0) {
        html_raw(html,
                 summary_made(report->summary) > 0
                     ? "<p>Jobs of this suite record goldens or training data: their rollouts are "
                       "charged as audits are, and stand in no rate.</p>"
                     : "<p>No rollout of this suite has finished yet.</p>");
        return;
    }
    html_raw(html, "<dl class=\"lead\">");
    planner_sentences(report);
    if (plan->failures > 0) {
        reason_sentence(report);
        rescue_sentence(report);
    }
    invalid_sentence(report);
    learned_sentence(report);
    weakest_sentence(report);
    fragile_sentence(report);
    char seeds[SUMMARY_SEEDS_BYTES];
    summary_seeds_text(report->summary, seeds);
    html_format(html, "</dl><p class=\"soft\">%s%s" SUMMARY_PURPOSE_TEXT "</p>", seeds,
                seeds[0] != '\0' ? " " : "");
}

/* ---- tiles ---- */

enum { UUSD_SHOWN = 10000 }; /* a cent */

/* A figure and what it is of. */
#define TILE(figure, label) "<div class=\"tile\"><b>" figure "</b><span>" label "</span></div>"

static void write_tiles(struct report *report)
{
    struct html *html = &report->html;
    const struct summary *summary = report->summary;
    const struct report_plan *plan = &report->plan;
    const struct summary_row *total = &summary->total;
    char name[SUMMARY_PART_BYTES];
    char figure[SUMMARY_MONEY_BYTES];
    char money[SUMMARY_MONEY_BYTES];
    double miles = summary_miles(total);
    html_raw(html, "<div class=\"tiles\">");
    for (uint32_t i = 0; i < total->part_count; i++) {
        struct rate_estimate at = rate_estimate(&total->parts[i].rate);
        if (at.cases > 0) {
            html_format(html,
                        TILE("%.1f%%", "of %lld scenario%s pass in the %s world, 95%% interval "
                                       "%.0f&ndash;%.0f%%"),
                        100 * at.value, (long long)at.cases, summary_plural(at.cases),
                        summary_part_text(total, &total->parts[i], name),
                        rate_down(100 * at.low, 1), rate_up(100 * at.high, 1));
        }
    }
    html_format(html, TILE("%u", "of %u main line%s not passed, %u with a branch that passes"),
                plan->failures, plan->mains, summary_plural(plan->mains), plan->failures_rescued);
    html_format(html, TILE("%u", "branches: what if, in %u fanout%s"), plan->branches,
                plan->fanouts, summary_plural(plan->fanouts));
    html_format(html, TILE("%.2f", "miles driven; in main lines %lld override%s by the guardian"),
                miles, (long long)summary->interventions, summary_plural(summary->interventions));
    if (summary->status.cost_uusd >= UUSD_SHOWN) { /* "What it cost" has the fractions of a cent */
        html_format(html, TILE("%s", "for 1,000 miles, world only; the bill is %s"),
                    summary_rate_text(total->work.usd, miles, figure),
                    summary_bill_text(summary, money));
    }
    int64_t whole = total->work.ticks + summary->prefix_ticks_saved;
    html_format(html, TILE("%.0f%%", "of all ticks saved by sharing pasts, %lld"),
                100.0 * (double)summary->prefix_ticks_saved / (double)(whole > 0 ? whole : 1),
                (long long)summary->prefix_ticks_saved);
    html_raw(html, "</div>");
}

/* Stays in sight; its filter reaches every table and card of rollouts. */
static void menu(struct report *report)
{
    struct html *html = &report->html;
    html_raw(html, "<nav class=\"menu\"><a href=\"#top\">Top</a><a href=\"#failures\">Failures</a>"
                   "<a href=\"#slices\">Slices</a>"
                   "<a href=\"#cost\">Cost</a>");
    html_raw(html, report->summary->agreement_count > 0 ? "<a href=\"#audit\">Audit</a>" : "");
    html_raw(html, report->summary->total.learned > 0 ? "<a href=\"#flags\">Flagged</a>" : "");
    html_raw(html, "<a href=\"#branches\">What if</a>"
                   "<a href=\"#all\">All rollouts</a><a href=\"#words\">Definitions</a>"
                   "<input id=\"filter\" type=\"search\" hidden aria-label=\"filter\" "
                   "placeholder=\"Filter: words that must all occur, e.g. fail night\">"
                   "<span class=\"soft\" id=\"shown\"></span></nav>");
}

void report_head(struct report *report)
{
    struct html *html = &report->html;
    char date[64];
    time_t now = time(NULL);
    struct tm parts;
    strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &parts));
    menu(report);
    html_format(html,
                "<header id=\"top\"><h1>%s</h1><p class=\"soft\">Swerve closed-loop report, "
                "written %s%s%s</p>",
                report->suite_id, date, report->store_url != NULL ? ", from the store " : "",
                report->store_url != NULL ? report->store_url : "");
    write_results(report);
    write_tiles(report);
    html_raw(html, "</header><main>");
}

/* ---- notes ---- */

static void note(struct html *html, int64_t count, const char *one, const char *many,
                 const char *rest)
{
    if (count > 0) {
        html_format(html, "<li><b>%lld</b> %s%s</li>", (long long)count, count == 1 ? one : many,
                    rest);
    }
}

/* Causes by which the planner could not drive, a line each. */
static void write_errors(struct html *html, const struct summary *summary,
                         const struct summary_error *errors, uint32_t count)
{
    for (uint32_t k = 0; k < count && k < SUMMARY_ERRORS_SHOWN; k++) {
        html_format(html, "<li><b>%lld</b> main line%s ended by an error of the planner, %s first:",
                    (long long)errors[k].mains, summary_plural(errors[k].mains),
                    summary->outcomes[errors[k].example].scenario_id);
        html_format(html, "<pre>%s</pre></li>", errors[k].words);
    }
}

static enum status write_dead(struct report *report, struct error *error)
{
    struct html *html = &report->html;
    struct store_job *jobs = calloc(DEAD_PAGE, sizeof *jobs);
    enum status status = STATUS_OK;
    int64_t after = 0;
    uint32_t shown = 0;
    uint32_t count = DEAD_PAGE;
    TRY(memory_check(jobs, error, "report: out of memory"));
    html_raw(html, "<details open><summary>Dead jobs: no result, attempts used up</summary>");
    page_table(&report->page, "", "#job|scenario|planner|#attempts|last error");
    while (status == STATUS_OK && count == DEAD_PAGE && shown < REPORT_DEAD_ROWS_MAX) {
        status = report->store->ops->dead_jobs(report->store, report->suite_id, after, jobs,
                                               DEAD_PAGE, &count, error);
        for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
            page_row(&report->page, "%lld|%s|%s|%u|{wrap}<pre>%s</pre>", (long long)jobs[i].id,
                     jobs[i].spec.scenario_id, jobs[i].spec.planner, jobs[i].attempts,
                     jobs[i].error);
            after = jobs[i].id;
            shown++;
        }
    }
    page_table_end(&report->page);
    html_raw(html, "</details>");
    html_more(html, report->summary->status.jobs[JOB_DEAD], shown, "dead jobs are not listed.");
    free(jobs);
    return status;
}

enum status report_notes(struct report *report, struct error *error)
{
    struct html *html = &report->html;
    const struct store_suite_status *status = &report->summary->status;
    struct summary_error errors[SUMMARY_ERRORS_MAX];
    uint32_t error_count = summary_errors(report->summary, errors);
    int64_t waiting = summary_unfinished(report->summary);
    if (waiting + status->jobs[JOB_DEAD] + status->jobs[JOB_FLAGGED] + status->jobs[JOB_CANCELLED] +
            status->memoised_jobs + report->plan.degraded + error_count +
            status->stopped_by_budget ==
        0) {
        return STATUS_OK;
    }
    html_raw(html, "<h2 id=\"notes\">To know before reading on</h2><div class=\"card\"><ul>");
    write_errors(html, report->summary, errors, error_count);
    note(html, waiting, "job is", "jobs are", " not finished: this report covers the others.");
    note(html, status->jobs[JOB_DEAD], "job is dead: it has", "jobs are dead: they have",
         " no result, which is in no figure below.");
    note(html, status->jobs[JOB_FLAGGED], "job was", "jobs were",
         " flagged by a health check; what was driven is evidence, not a result, and the teacher "
         "was asked instead.");
    char cancelled[SUMMARY_BUDGET_BYTES + 32] = " cancelled.";
    if (status->stopped_by_budget) {
        char budget[SUMMARY_BUDGET_BYTES];
        if (status->jobs[JOB_CANCELLED] == 0) {
            html_format(html, "<li>%s, when every job had been claimed: none was cancelled.</li>",
                        summary_budget_text(status, budget));
        }
        snprintf(cancelled, sizeof cancelled, " cancelled: %s.",
                 summary_budget_text(status, budget));
    }
    note(html, status->jobs[JOB_CANCELLED], "job was", "jobs were", cancelled);
    note(html, status->memoised_jobs, "job was", "jobs were",
         " known from an earlier suite: the results were taken over, not run again.");
    note(html, report->plan.degraded, "job asks", "jobs ask",
         " about perception, but no learned world answered: frames are rasterised from boxes, so "
         "verdicts are about planning.");
    html_raw(html, "</ul>");
    enum status result = STATUS_OK;
    if (status->jobs[JOB_DEAD] > 0) {
        result = write_dead(report, error);
    }
    html_raw(html, "</div>");
    return result;
}
