/*
 * A summary as the terminal shows it: a table per group, tiers with what they took, what was
 * flagged, how audited rollouts agreed, what did not pass and what has no answer.
 */
#include "report/meters.h"
#include "report/page/metrics.h"
#include "report/page/page.h"
#include "report/summary.h"

#include "base/text.h"
#include "base/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *summary_budget_text(const struct store_suite_status *status,
                                char out[SUMMARY_BUDGET_BYTES])
{
    char budget[SUMMARY_MONEY_BYTES];
    char cost[SUMMARY_MONEY_BYTES];
    bool over = status->cost_uusd > status->budget_uusd;
    if (status->stopped_by_budget && over) {
        snprintf(out, SUMMARY_BUDGET_BYTES, "budget of %s spent (%s in all)",
                 summary_amount_text(status->budget_uusd, budget),
                 summary_amount_text(status->cost_uusd, cost));
    } else {
        snprintf(out, SUMMARY_BUDGET_BYTES, "budget of %s%s",
                 summary_amount_text(status->budget_uusd, budget),
                 status->stopped_by_budget ? " spent" : "");
    }
    return out;
}

void summary_budget_json(const struct store_suite_status *status, json_t *json)
{
    if (status->budget_uusd > 0) {
        json_object_set_new(json, "budget_usd",
                            json_real((double)status->budget_uusd / (double)UUSD_PER_USD));
        json_object_set_new(json, "stopped_by_budget", json_boolean(status->stopped_by_budget));
    }
}

enum {
    NAME_WIDTH_MIN = 26,
    SUMMARY_FAILURES_SHOWN = 40,
    SUMMARY_FLAGS_SHOWN = 20,
    SUMMARY_DEAD_SHOWN = 10
};

/* ---- terminal ---- */

static int64_t sum_of(const int64_t verdicts[VERDICT_COUNT])
{
    int64_t sum = 0;
    for (int v = 0; v < VERDICT_COUNT; v++) {
        sum += verdicts[v];
    }
    return sum;
}

/* Width of the names of the group that begins at rows[first]: nothing of them is cut off. */
static int name_width(const struct summary *summary, uint32_t first)
{
    int width = NAME_WIDTH_MIN;
    for (uint32_t i = first;
         i < summary->row_count && strcmp(summary->rows[i].group, summary->rows[first].group) == 0;
         i++) {
        int bytes = (int)strlen(summary->rows[i].value);
        width = bytes > width ? bytes : width;
    }
    return width;
}

/* Main lines that no column counts, since they were not driven. */
static void print_undriven(struct page *page, const struct summary_row *row)
{
    int64_t lacking[SUMMARY_LACK_COUNT] = {0};
    int64_t count = 0;
    char names[SUMMARY_SEEDS_BYTES];
    for (int k = SUMMARY_NO_ANSWER; k < SUMMARY_LACK_COUNT; k++) {
        for (uint32_t i = 0; i < row->part_count; i++) {
            lacking[k] += row->parts[i].lacking[k];
        }
        count += lacking[k];
    }
    if (count > 0) {
        text_print(page->out, "%*s and %s\n", page->name_width, "",
                   summary_lacking_text(lacking, names));
    }
}

/* Counts and rate are those of main lines; branches have a column of their own, for they answer
 * another question. With several tiers the rates of each follow in lines of their own. */
static void print_row(struct page *page, const struct summary_row *row)
{
    double miles = summary_miles(row);
    bool one = summary_row_rates(row) == 1 && !row->planners;
    char rate[SUMMARY_MONEY_BYTES] = "-";
    char branches[SUMMARY_MONEY_BYTES] = "-";
    char per_mile[SUMMARY_MONEY_BYTES];
    char name[SUMMARY_PART_BYTES];
    if (one) {
        struct rate_estimate at = rate_estimate(&summary_row_lowest(row)->rate);
        summary_interval_text(&at, rate);
    }
    int64_t branch_count = sum_of(row->verdicts) - sum_of(row->mains);
    if (branch_count > 0) {
        snprintf(branches, sizeof branches, "%lld of %lld",
                 (long long)(row->verdicts[VERDICT_PASS] - row->mains[VERDICT_PASS]),
                 (long long)branch_count);
    }
    page_row(page, "  %s|%lld|%lld|%lld|%lld|%lld|%lld|%s|%s|%.2f|%s",
             row->value[0] != '\0' ? row->value : "(none)", (long long)sum_of(row->mains),
             (long long)row->mains[VERDICT_PASS], (long long)row->mains[VERDICT_FAIL],
             (long long)row->mains[VERDICT_PLANNER_ERROR], (long long)row->mains[VERDICT_FLAGGED],
             (long long)row->mains[VERDICT_INVALID], rate, branches, miles,
             summary_rate_text(row->work.usd, miles, per_mile));
    print_undriven(page, row);
    for (uint32_t i = 0; i < row->part_count && !one; i++) {
        struct rate_estimate at = rate_estimate(&row->parts[i].rate);
        if (at.cases > 0) {
            text_print(page->out, "%*s%-10s %s\n", page->name_width + 40, "",
                       summary_part_text(row, &row->parts[i], name),
                       summary_interval_text(&at, rate));
        }
    }
}

static void print_head(struct page *page, const char *group, int width)
{
    page->name_width = width + 2;
    fputc('\n', page->out);
    page_table(page, "",
               "%s| #10 main lines| #6 pass| #6 fail| #6 error| #7 flagged| #7 invalid|  17 pass "
               "rate, 95%%| "
               "#14 branches pass| #8 miles| #12 $/1000 miles",
               group);
}

/* ---- learned tiers ---- */

static void print_tier(struct page *page, const struct summary *summary, enum tier tier)
{
    struct summary_tier_cost cost;
    char text[6][SUMMARY_MONEY_BYTES];
    if (!summary_tier_cost(summary, tier, &cost)) {
        return;
    }
    const struct summary_row *row = cost.row;
    double tflop = row->work.mflop > 0 ? (double)row->work.mflop / 1e6 : (double)NAN;
    page_row(page, "  %s|%lld|%s|%s|%s|%.0f%%|%.2f|%s|%s|%s", tier_names[tier],
             (long long)row->work.ticks, summary_number_text(cost.device_s, text[0]),
             summary_number_text(cost.tick_ms, text[1]), summary_number_text(tflop, text[2]),
             100 * cost.mfu, cost.miles, summary_rate_text(row->work.usd, cost.miles, text[3]),
             summary_rate_text(cost.with_retries_usd, cost.miles, text[4]),
             cost.over.audit_attempts > 0 ? summary_uusd_text(cost.over.audit_uusd, text[5]) : "-");
}

static void print_tiers(const struct summary *summary, FILE *stream)
{
    struct page page = {.out = stream};
    fputc('\n', stream);
    page_table(&page, "",
               "12 what it took| #9 ticks| #9 device s| #8 ms/tick| #9 TFLOP| #5 MFU| #8 miles| "
               "#12 $/1000 miles| #12 with retries| #11 audit");
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        print_tier(&page, summary, (enum tier)tier);
    }
    text_print(stream, "$/1000 miles: of the world; what a planner computes in a process of its "
                       "own is not in it\n");
    text_print(stream, "MFU: of the peak of a core, or the GPU, of the machine that drove\n");
}

/* Whom the store's freezes had answer. */
static void print_freezes(const struct summary *summary, FILE *stream)
{
    if (summary->frozen_answers + summary->in_flight > 0) {
        text_print(
            stream,
            "\nfrozen slices: %lld rollout%s answered by the teacher in the student's place; "
            "%lld of the student's were on their way when the freeze came\n",
            (long long)summary->frozen_answers, summary_plural(summary->frozen_answers),
            (long long)summary->in_flight);
    }
}

/* Number of rollouts that are flagged, in worlds with a model or in those without: as verdicts
 * count them, those that were discarded with another rollout of their job too. */
static int64_t count_flagged(const struct summary *summary, bool learned)
{
    int64_t count = 0;
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[i];
        count += outcome->verdict == VERDICT_FLAGGED && (outcome->tier >= TIER_STUDENT) == learned;
    }
    return count;
}

static void print_flags(const struct summary *summary, FILE *stream)
{
    int64_t boxes = 0; /* caught in a world without a model */
    int64_t open = 0;  /* .. in one with a model, and nobody has answered */
    for (uint32_t i = 0; i < summary->flag_count; i++) {
        bool box = summary->outcomes[summary->flags[i].outcome].tier < TIER_STUDENT;
        boxes += box;
        open += !box && summary->flags[i].answer < 0;
    }
    if (summary->flag_count > boxes) {
        int64_t flagged = count_flagged(summary, true);
        text_print(stream,
                   "\nflagged: %lld rollout%s in learned worlds, discarded%s; health checks caught "
                   "%lld of %lld\n",
                   (long long)flagged, summary_plural(flagged),
                   open == 0                             ? " and run again in another world"
                   : open == summary->flag_count - boxes ? "; nobody has answered instead"
                                                         : "; another world has answered for some",
                   (long long)summary->total.caught, (long long)summary->total.learned);
    }
    if (boxes > 0) {
        int64_t flagged = count_flagged(summary, false);
        text_print(stream,
                   "\nflagged: %lld rollout%s in worlds without a model, discarded; no teacher is "
                   "asked; health checks caught %lld\n",
                   (long long)flagged, summary_plural(flagged), (long long)boxes);
    }
    for (uint32_t i = 0; i < summary->flag_count && i < SUMMARY_FLAGS_SHOWN; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[summary->flags[i].outcome];
        int32_t answer = summary->flags[i].answer;
        text_print(stream, "  %6lld  %-40s %-12s %s: %s at tick %u; ", (long long)outcome->id,
                   outcome->scenario_id, outcome->branch_id, tier_names[outcome->tier],
                   outcome->health_check, outcome->health_tick);
        if (answer < 0) {
            text_print(stream, "no answer\n");
        } else {
            text_print(stream, "%s: %s\n", tier_names[summary->outcomes[answer].tier],
                       verdict_names[summary->outcomes[answer].verdict]);
        }
    }
    if (summary->flag_count > SUMMARY_FLAGS_SHOWN) {
        text_print(stream, "  .. and %u more; see the report\n",
                   summary->flag_count - SUMMARY_FLAGS_SHOWN);
    }
}

static void print_share(struct page *page, uint32_t column, const struct agreement_count *count)
{
    struct rate_estimate at = rate_estimate(&count->rate);
    page_cells(page, column, "%3.0f%% [%3.0f-%3.0f]", 100 * at.value, rate_down(100 * at.low, 1),
               rate_up(100 * at.high, 1));
}

/* Figures of a part of a suite look like those of the whole. */
static void print_missing(const struct summary *summary, FILE *stream)
{
    long long unfinished = summary_unfinished(summary);
    long long cancelled = summary->status.jobs[JOB_CANCELLED];
    if (unfinished > 0) {
        text_print(stream, "\n%lld job%s not finished: what is above covers the others\n",
                   unfinished, unfinished == 1 ? " is" : "s are");
    }
    if (cancelled > 0) {
        char budget[SUMMARY_BUDGET_BYTES];
        bool stopped = summary->status.stopped_by_budget;
        text_print(stream, "\n%lld job%s cancelled%s%s: what is above covers the others\n",
                   cancelled, cancelled == 1 ? " was" : "s were", stopped ? ", " : "",
                   stopped ? summary_budget_text(&summary->status, budget) : "");
    } else if (summary->status.stopped_by_budget) {
        char budget[SUMMARY_BUDGET_BYTES];
        text_print(stream, "\n%s, when every job had been claimed: none was cancelled\n",
                   summary_budget_text(&summary->status, budget));
    }
}

static void print_audit(const struct summary *summary, FILE *stream)
{
    const char *group = "";
    if (summary->agreement_count == 0) {
        return;
    }
    const struct agreement *all = &summary->agreement[summary->agreement_count - 1].agreement;
    if (all->pairs == 0) {
        text_print(
            stream,
            "\naudit: nothing to compare yet: of %lld rollout%s that the teacher drove as well, "
            "each was flagged on one side or ended by its planner\n",
            (long long)all->incomplete, summary_plural(all->incomplete));
        return;
    }
    struct page page = {.out = stream};
    text_print(stream, "\naudit: the same drive by the teacher; each scenario counts once; 95%% "
                       "interval\n");
    page_table(
        &page, "",
        "28| #6 jobs| #6 pairs|  16 pass/fail|  16 collision|  16 interventions| #9 distance");
    for (uint32_t i = 0; i < summary->agreement_count; i++) {
        const struct summary_agreement *row = &summary->agreement[i];
        const struct agreement *a = &row->agreement;
        if (a->pairs == 0) {
            continue;
        }
        if (strcmp(group, row->group) != 0) {
            group = row->group;
            text_print(stream, "%s\n", group);
        }
        page_cells(&page, 0, "  %s|%lld|%lld", row->value, (long long)a->jobs, (long long)a->pairs);
        print_share(&page, 3, &a->verdict);
        print_share(&page, 4, &a->collision);
        print_share(&page, 5, &a->interventions);
        if (a->distance_pairs > 0) {
            page_cells(&page, 6, "%.2f m",
                       a->distance_difference_abs_sum_m / (double)a->distance_pairs);
        }
        page_row_end(&page);
    }
}

/* Without the blanks that line a rate up in a table. */
static const char *trimmed_rate(const struct rate_estimate *at, char out[SUMMARY_MONEY_BYTES])
{
    const char *text = summary_interval_text(at, out);
    return text + strspn(text, " ");
}

static void print_guardian(const struct summary_row *total, const struct summary_part *part,
                           FILE *stream)
{
    struct rate_estimate failing = rate_estimate(&part->guardian[0]);
    struct rate_estimate passing = rate_estimate(&part->guardian[1]);
    char rate[SUMMARY_MONEY_BYTES];
    char name[SUMMARY_PART_BYTES];
    if (failing.cases + passing.cases == 0) {
        return;
    }
    text_print(stream, "%s: the guardian fires in", summary_part_text(total, part, name));
    if (failing.cases > 0) {
        text_print(stream, " %s of failing scenarios", trimmed_rate(&failing, rate));
    }
    if (passing.cases > 0) {
        text_print(stream, "%s %s of passing ones", failing.cases > 0 ? ", in" : "",
                   trimmed_rate(&passing, rate));
    }
    text_print(stream, "%s\n",
               failing.cases == 0   ? "; none fails"
               : passing.cases == 0 ? "; none passes"
                                    : "");
}

/* Notes on rates: of how many logical scenarios, what is missing, what they are not. */
static void print_notes(const struct summary *summary, FILE *stream)
{
    const struct summary_row *total = &summary->total;
    char text[SUMMARY_SEEDS_BYTES];
    char weight[SUMMARY_MONEY_BYTES];
    char name[SUMMARY_PART_BYTES];
    for (uint32_t i = 0; i < total->part_count; i++) {
        const struct summary_part *part = &total->parts[i];
        struct rate_estimate at = rate_estimate(&part->rate);
        if (at.cases > 0) {
            text_print(stream,
                       "\n%s: main lines of %lld scenario%s, of %lld logical scenario%s%s\n",
                       summary_part_text(total, part, name), (long long)at.cases,
                       summary_plural(at.cases), (long long)at.logical, summary_plural(at.logical),
                       summary_weight_text(&at, weight));
        }
        if (summary_range_text(part, text)[0] != '\0') {
            text_print(stream, "%s\n", text);
        }
    }
    if (summary_seeds_text(summary, text)[0] != '\0') {
        text_print(stream, "%s\n", text);
    }
    for (uint32_t i = 0; i < total->part_count; i++) {
        print_guardian(total, &total->parts[i], stream);
    }
    text_print(stream, "%s\n", SUMMARY_PURPOSE_TEXT);
    text_print(stream, "%s\n", METRIC_INTERVAL_TEXT);
}

static int first_line(const char *text)
{
    return (int)strcspn(text, "\r\n");
}

/* First words of a planner's error, and the last line that its process left on stderr: the first
 * names the tick, the other what went wrong there. */
static void print_planner_error(const char *text, FILE *stream)
{
    text_print(stream, ": %.*s", first_line(text), text);
    const char *kept = strstr(text, "\nstderr: ");
    if (kept == NULL) {
        return;
    }
    const char *end = text + strlen(text);
    while (end > kept && strchr("\r\n ", end[-1]) != NULL) {
        end--;
    }
    const char *start = end;
    while (start > kept + 1 && start[-1] != '\n' && start[-1] != '\r') {
        start--;
    }
    if (strncmp(start, "stderr: ", strlen("stderr: ")) == 0) {
        start += strlen("stderr: ");
    }
    if (start < end) {
        text_print(stream, "; stderr ends: %.*s", (int)(end - start), start);
    }
}

/* Drives that have a verdict and a sentence all the same. Their planner had died and was started
 * again: a death that does not repeat itself is nobody's verdict, and still a fault. Or it varies
 * (OUTCOME_VARIES). */
static void print_told(const struct summary *summary, bool varies, FILE *stream)
{
    const struct kept_outcome *first = NULL;
    long long count = 0;
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[i];
        if ((outcome->verdict == VERDICT_PASS || outcome->verdict == VERDICT_FAIL) &&
            outcome->error[0] != '\0' &&
            (strstr(outcome->error, OUTCOME_VARIES) != NULL) == varies) {
            first = first != NULL ? first : outcome;
            count++;
        }
    }
    if (first == NULL) {
        return;
    }
    if (varies) {
        text_print(stream,
                   "\nthe planner varies: %lld branch%s driven from tick 0, and would be another "
                   "result each time",
                   count, count == 1 ? " was" : "es were");
    } else {
        text_print(stream,
                   "\nthe planner died in %lld drive%s, run again alone and counted as they ended "
                   "then",
                   count, summary_plural(count));
    }
    text_print(stream, "; the first: %lld %s", (long long)first->id, first->scenario_id);
    print_planner_error(first->error, stream);
    fputc('\n', stream);
}

void summary_print(const struct summary *summary, FILE *stream)
{
    const char *group = "";
    struct page page = {.out = stream};
    for (uint32_t i = 0; i < summary->row_count; i++) {
        const struct summary_row *row = &summary->rows[i];
        if (strcmp(group, row->group) != 0) {
            group = row->group;
            print_head(&page, group, name_width(summary, i));
        }
        print_row(&page, row);
    }
    print_head(&page, "all", NAME_WIDTH_MIN);
    struct summary_row total = summary->total;
    snprintf(total.value, sizeof total.value, "total");
    print_row(&page, &total);
    print_tiers(summary, stream);
    meters_print(summary, stream);
    print_freezes(summary, stream);
    print_flags(summary, stream);
    summary_print_invalid(summary, stream);
    print_told(summary, false, stream);
    print_told(summary, true, stream);
    summary_print_field(summary, stream);
    print_audit(summary, stream);
    print_notes(summary, stream);
    char saved[SUMMARY_MONEY_BYTES];
    char bill[SUMMARY_MONEY_BYTES];
    text_print(stream,
               "\n%lld ticks simulated, %lld more shared with a branch's main line (%s saved); "
               "guardian overrides in main lines: %lld; bill: %s\n",
               (long long)summary->total.work.ticks, (long long)summary->prefix_ticks_saved,
               summary_usd_text(summary->prefix_usd_saved, saved),
               (long long)summary->interventions, summary_bill_text(summary, bill));
    print_missing(summary, stream);
}

/* ---- what has no pass and what has no answer ---- */

/* `alike`: others that the planner failed in with the same words, and that get no row. */
static void print_failure(const struct summary *summary, uint32_t index, bool seeds, bool planners,
                          int64_t alike, FILE *stream)
{
    const struct kept_outcome *outcome = &summary->outcomes[index];
    uint32_t repeats = 0;
    for (uint32_t i = index + 1; i < summary->outcome_count; i++) {
        repeats += summary->same_as != NULL && summary->same_as[i] == index;
    }
    text_print(stream, "  %6lld  %-48s %-13s", (long long)outcome->id, outcome->scenario_id,
               verdict_names[outcome->verdict]);
    if (seeds) {
        text_print(stream, " seed %llu", (unsigned long long)outcome->seed);
    }
    if (repeats > 0) {
        text_print(stream, " (and %u alike)", repeats);
    }
    if (alike > 0) {
        text_print(stream, " (and %lld more with the same words)", (long long)alike);
    }
    if (planners) {
        text_print(stream, " %s", outcome->planner);
    }
    for (int bit = 0; bit < REASON_BIT_COUNT; bit++) {
        if (outcome->reasons & (1u << bit)) {
            text_print(stream, " %s", reason_names[bit]);
        }
    }
    if (outcome->verdict == VERDICT_PLANNER_ERROR) {
        print_planner_error(outcome->error, stream);
    }
    fputc('\n', stream);
}

void summary_print_planner_errors(const struct summary *summary, FILE *stream)
{
    struct summary_error errors[SUMMARY_ERRORS_MAX];
    uint32_t count = summary_errors(summary, errors);
    int64_t failed = 0;
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        failed += summary_is_error(summary, i);
    }
    if (failed == 0) {
        return;
    }
    text_print(stream, "the planner failed in %lld main line%s\n", (long long)failed,
               summary_plural(failed));
    for (uint32_t k = 0; k < count && k < SUMMARY_ERRORS_SHOWN; k++) {
        const struct kept_outcome *outcome = &summary->outcomes[errors[k].example];
        text_print(stream, "  %6lld  %s", (long long)outcome->id, outcome->scenario_id);
        if (errors[k].mains > 1) {
            text_print(stream, " (and %lld more with the same words)",
                       (long long)errors[k].mains - 1);
        }
        print_planner_error(outcome->error, stream);
        fputc('\n', stream);
    }
    text_print(stream, "  all that it wrote: swerve show ID --stderr\n");
}

void summary_print_failures(const struct summary *summary, FILE *stream)
{
    struct summary_error errors[SUMMARY_ERRORS_MAX];
    uint32_t error_count = summary_errors(summary, errors);
    int shown = 0;
    bool seeds = false;
    bool planners = false;
    for (uint32_t i = 1; i < summary->outcome_count; i++) {
        seeds = seeds || summary->outcomes[i].seed != summary->outcomes[0].seed;
        planners =
            planners || strcmp(summary->outcomes[i].planner, summary->outcomes[0].planner) != 0;
    }
    for (uint32_t i = 0; i < summary->outcome_count; i++) {
        const struct kept_outcome *outcome = &summary->outcomes[i];
        if (outcome->verdict == VERDICT_PASS || !verdict_is_result(outcome->verdict) ||
            outcome->branch_id[0] != '\0' || summary_is_repeat(summary, i)) {
            continue;
        }
        const struct summary_error *cause = summary_error_of(summary, errors, error_count, i);
        if (cause != NULL && cause->example != i) {
            continue;
        }
        if (shown++ == 0) {
            text_print(stream, "\nmain lines that did not pass\n");
        }
        if (shown <= SUMMARY_FAILURES_SHOWN) {
            print_failure(summary, i, seeds, planners, cause != NULL ? cause->mains - 1 : 0,
                          stream);
        }
    }
    if (shown > SUMMARY_FAILURES_SHOWN) {
        text_print(stream, "  .. and %d more; see the report\n", shown - SUMMARY_FAILURES_SHOWN);
    }
}

enum status summary_print_dead(struct store *store, const char *suite_id,
                               const struct summary *summary, FILE *stream, struct error *error)
{
    long long dead = (long long)summary->status.jobs[JOB_DEAD];
    if (dead == 0) {
        return STATUS_OK;
    }
    struct store_job *jobs = calloc(SUMMARY_DEAD_SHOWN, sizeof *jobs);
    TRY(memory_check(jobs, error, "summary: out of memory"));
    uint32_t count = 0;
    enum status status =
        store->ops->dead_jobs(store, suite_id, 0, jobs, SUMMARY_DEAD_SHOWN, &count, error);
    if (status == STATUS_OK) {
        text_print(stream, "\n%lld job%s no answer:\n", dead, dead == 1 ? " has" : "s have");
        for (uint32_t i = 0; i < count; i++) {
            text_print(stream, "  %s %.*s\n", jobs[i].spec.scenario_id, first_line(jobs[i].error),
                       jobs[i].error);
        }
        if (dead > count) {
            text_print(stream, "  .. and %lld more\n", dead - count);
        }
    }
    free(jobs);
    return status;
}
