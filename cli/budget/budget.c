/*
 * The budget of a suite. See budget.h.
 *
 * Of the store is asked what every store can say: its newest outcomes, its ledger, its prices. The
 * first say how long a tick of a tier takes in a pool with a planner, the second on which devices
 * the pool drives, the third what their time costs from now on. What of the suite waits, the store
 * has counted when the jobs are in.
 */
#include "cli/budget/budget.h"

#include "base/array.h"
#include "base/program/cli_options.h"
#include "base/text.h"
#include "base/units.h"
#include "cli/budget/market.h"
#include "report/summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEN_OUTCOMES = 2000, OUTCOME_PAGE = 500, LEDGER_ROWS = 1024 };

enum status budget_read(const char *text, int64_t *uusd, struct error *error)
{
    *uusd = 0;
    return cli_dollars("--budget", text, 1, STORE_BUDGET_UUSD_MAX, uusd, error);
}

/* ---- measures ---- */

enum { PARTS_MAX = 64 };

/* Jobs of a submission that cost alike. */
struct part {
    enum tier tier;
    const char *pool; /* of the submission's kinds */
    const char *planner;
    int64_t ticks;
    double tick_uusd; /* negative: nobody has measured it */
    bool others;      /* other planners have, this one not */
};

struct forecast {
    struct store *store;
    struct outcome *outcomes; /* [SEEN_OUTCOMES], owned */
    uint32_t outcome_count;
    struct store_ledger_row *rows; /* [LEDGER_ROWS], owned */
    uint32_t row_count;
    struct part parts[PARTS_MAX];
    uint32_t part_count;
    bool counted; /* false: there are more parts than are told apart */
};

static enum status read_page(struct forecast *forecast, int64_t after, uint32_t max,
                             uint32_t *count, struct error *error)
{
    const struct store_outcome_filter filter = {.after_id = after, .limit = max};
    struct outcome *out = &forecast->outcomes[forecast->outcome_count];
    return forecast->store->ops->outcomes(forecast->store, &filter, out, count, error);
}

/* The newest outcomes, found by halving: ids ascend. */
static enum status read_outcomes(struct forecast *forecast, struct error *error)
{
    int64_t low = 0; /* there may be outcomes above it */
    int64_t high = 1;
    uint32_t count = 1;
    while (count > 0 && high < INT64_MAX / 2) {
        TRY(read_page(forecast, high, 1, &count, error));
        low = count > 0 ? high : low;
        high *= count > 0 ? 2 : 1;
    }
    while (high - low > SEEN_OUTCOMES / 2) {
        int64_t middle = low + (high - low) / 2;
        TRY(read_page(forecast, middle, 1, &count, error));
        *(count > 0 ? &low : &high) = middle;
    }
    int64_t after = high > SEEN_OUTCOMES ? high - SEEN_OUTCOMES : 0;
    count = OUTCOME_PAGE;
    while (count > 0 && forecast->outcome_count + OUTCOME_PAGE <= SEEN_OUTCOMES) {
        TRY(read_page(forecast, after, OUTCOME_PAGE, &count, error));
        forecast->outcome_count += count;
        after = count > 0 ? forecast->outcomes[forecast->outcome_count - 1].id : after;
    }
    return STATUS_OK;
}

/* Mean device time of a tick; negative: there is none. planner NULL: of any. A median would leave
 * out what a few long rollouts cost, which the bill does not. */
static double mean_ns(const struct forecast *forecast, const struct part *part, const char *planner)
{
    double ticks = 0;
    double ns = 0;
    for (uint32_t i = 0; i < forecast->outcome_count; i++) {
        const struct outcome *outcome = &forecast->outcomes[i];
        if (outcome->tier == part->tier && strcmp(outcome->pool, part->pool) == 0 &&
            outcome->ticks > outcome->prefix_ticks &&
            (planner == NULL || strcmp(outcome->planner, planner) == 0)) {
            ticks += (double)(outcome->ticks - outcome->prefix_ticks);
            ns += (double)outcome->device_ns;
        }
    }
    return ticks > 0 ? ns / ticks : -1;
}

static enum status measure_part(struct forecast *forecast, struct part *part, struct error *error)
{
    double rate = -1;
    double tick_ns = mean_ns(forecast, part, part->planner);
    part->others = tick_ns < 0;
    tick_ns = part->others ? mean_ns(forecast, part, NULL) : tick_ns;
    part->tick_uusd = -1;
    if (tick_ns >= 0) {
        TRY(market_rate(forecast->store, forecast->rows, forecast->row_count, part->tier,
                        part->pool, &rate, error));
        part->tick_uusd = rate < 0 ? -1 : tick_ns * rate;
    }
    return STATUS_OK;
}

/* ---- the suite ---- */

/* Ticks of a job as its scenario plans them, a shared past once. */
static int64_t planned_ticks(const struct scenario *scenario)
{
    int64_t ticks = scenario->horizon_ticks;
    for (uint32_t i = 0; i < scenario->branch_count; i++) {
        uint32_t at = scenario->branches[i].at_tick;
        ticks += scenario->horizon_ticks > at ? scenario->horizon_ticks - at : 0;
    }
    return ticks;
}

static struct part *part_of(struct forecast *forecast, const struct job_spec *spec)
{
    for (uint32_t i = 0; i < forecast->part_count; i++) {
        struct part *part = &forecast->parts[i];
        if (part->tier == spec->tier && strcmp(part->pool, spec->pool) == 0 &&
            strcmp(part->planner, spec->planner) == 0) {
            return part;
        }
    }
    if (forecast->part_count == PARTS_MAX) {
        return NULL;
    }
    forecast->parts[forecast->part_count] =
        (struct part){.tier = spec->tier, .pool = spec->pool, .planner = spec->planner};
    return &forecast->parts[forecast->part_count++];
}

static bool count_ticks(struct submission *submission, struct forecast *forecast)
{
    for (uint32_t i = 0; i < submission->kind_count; i++) {
        if (part_of(forecast, &submission->kinds[i]) == NULL) {
            return false;
        }
    }
    for (bool more = submission_first(submission); more; more = submission_next(submission)) {
        for (uint32_t i = 0; i < submission->page_count; i++) {
            struct part *part = part_of(forecast, &submission->specs[i]);
            if (part == NULL) {
                return false;
            }
            part->ticks += planned_ticks(&submission->documents[i]->scenario);
        }
    }
    submission_first(submission);
    return true;
}

static enum status measure(struct forecast *forecast, struct submission *submission,
                           struct error *error)
{
    TRY(read_outcomes(forecast, error));
    TRY(forecast->store->ops->ledger(forecast->store, NULL, forecast->rows, LEDGER_ROWS,
                                     &forecast->row_count, error));
    forecast->counted = count_ticks(submission, forecast);
    for (uint32_t i = 0; forecast->counted && i < forecast->part_count; i++) {
        TRY(forecast->parts[i].ticks > 0 ? measure_part(forecast, &forecast->parts[i], error)
                                         : STATUS_OK);
    }
    return STATUS_OK;
}

/* Micro-dollars that so many ticks of the suite cost, shared among its parts as those of all of
 * its jobs are. Parts without a measure cost nothing; *whole: there are none. */
static int64_t cost_of(const struct forecast *forecast, int64_t ticks, bool *whole)
{
    double all = 0;
    double uusd = 0;
    *whole = forecast->counted;
    for (uint32_t i = 0; i < forecast->part_count; i++) {
        const struct part *part = &forecast->parts[i];
        all += (double)part->ticks;
        uusd += part->tick_uusd > 0 ? part->tick_uusd * (double)part->ticks : 0;
        *whole = *whole && part->tick_uusd >= 0;
    }
    double sum = all > 0 ? uusd * (double)ticks / all : 0;
    return sum < (double)STORE_BUDGET_UUSD_MAX ? llround(sum) : STORE_BUDGET_UUSD_MAX;
}

/* ---- to people ---- */

void budget_put(int64_t budget_uusd, int64_t forecast_uusd, json_t *json)
{
    json_object_set_new(json, "budget_usd", json_real((double)budget_uusd / (double)UUSD_PER_USD));
    json_object_set_new(
        json, "forecast_usd",
        forecast_uusd < 0 ? json_null() : json_real((double)forecast_uusd / (double)UUSD_PER_USD));
}

/* Names what was not measured, and by whom what was. */
static void tell_parts(const struct forecast *forecast)
{
    for (uint32_t i = 0; i < forecast->part_count; i++) {
        const struct part *part = &forecast->parts[i];
        if (part->ticks == 0) {
            continue;
        }
        if (part->tick_uusd < 0) {
            text_print(stderr, "forecast: no measure yet of the %s world in pool %s\n",
                       tier_names[part->tier], part->pool);
        } else if (part->others) {
            text_print(stderr,
                       "forecast: %s has not driven in the %s world of pool %s yet, so other "
                       "planners' time counts\n",
                       part->planner, tier_names[part->tier], part->pool);
        }
    }
}

/* A suite that will stop goes on with what runs then. */
static void warn_of_more(const struct store_suite_status *now, int64_t waiting_uusd,
                         int64_t at_once)
{
    char money[SUMMARY_MONEY_BYTES];
    int64_t open = store_jobs_open(now);
    int64_t running = at_once < open ? at_once : open;
    text_print(stderr, "swerve: warning: the forecast exceeds the budget, at which the suite will "
                       "stop; jobs that run then go on");
    if (running > 0) {
        double more = (double)waiting_uusd * (double)running / (double)open;
        text_print(stderr, ", up to %lld at once, which cost some %s more", (long long)running,
                   summary_usd_text(more / (double)UUSD_PER_USD, money));
    }
    text_print(stderr, "\n");
}

static void tell_forecast(const struct forecast *forecast, const struct store_suite_status *now,
                          int64_t at_once, int64_t *forecast_uusd)
{
    char sum[SUMMARY_MONEY_BYTES];
    char budget[SUMMARY_MONEY_BYTES];
    int64_t ticks = now->ticks_planned - now->ticks_ended - now->ticks_running;
    bool whole = false;
    int64_t waiting_uusd = cost_of(forecast, ticks > 0 ? ticks : 0, &whole);
    int64_t all_uusd = now->cost_uusd + waiting_uusd;
    long long open = (long long)store_jobs_open(now);
    tell_parts(forecast);
    summary_usd_text((double)all_uusd / (double)UUSD_PER_USD, sum);
    summary_amount_text(now->budget_uusd, budget);
    if (whole) {
        text_print(stderr, "forecast: %s when its %lld waiting job%s driven; the budget is %s\n",
                   sum, open, open == 1 ? " is" : "s are", budget);
        *forecast_uusd = all_uusd;
    } else if (waiting_uusd > 0) {
        text_print(stderr, "forecast: %s and what else is driven; the budget is %s\n", sum, budget);
    } else {
        text_print(stderr, "the budget is %s, and nothing says yet what the suite will cost\n",
                   budget);
    }
    if (all_uusd > now->budget_uusd) {
        warn_of_more(now, waiting_uusd, at_once);
    }
}

static enum status forecast_suite(struct store *store, struct submission *submission,
                                  const struct store_suite_status *now, int64_t at_once,
                                  int64_t *forecast_uusd, struct error *error)
{
    struct forecast *forecast = calloc(1, sizeof *forecast);
    TRY(memory_check(forecast, error, "budget: out of memory for a forecast"));
    forecast->store = store;
    forecast->outcomes = calloc(SEEN_OUTCOMES, sizeof *forecast->outcomes);
    forecast->rows = calloc(LEDGER_ROWS, sizeof *forecast->rows);
    bool room = forecast->outcomes != NULL && forecast->rows != NULL;
    enum status status =
        memory_check(room ? forecast->rows : NULL, error, "budget: out of memory for a forecast");
    THEN(status, measure(forecast, submission, error));
    if (status == STATUS_OK) {
        tell_forecast(forecast, now, at_once, forecast_uusd);
    }
    free(forecast->outcomes);
    free(forecast->rows);
    free(forecast);
    return status;
}

/* The suite before this one of which nothing is driven any more, since nobody named a budget. */
static enum status tell_passed(struct store *store, const struct submission *submission,
                               struct error *error)
{
    struct store_suite_status passed;
    char budget[SUMMARY_BUDGET_BYTES];
    if (submission->passed_id[0] == '\0') {
        return STATUS_OK;
    }
    TRY(store->ops->suite_status(store, submission->passed_id, &passed, error));
    text_print(
        stderr,
        "swerve: warning: %s has its %s, so this is a suite of its own, %s, without a limit; "
        "a larger --budget would go on with that one\n",
        submission->passed_id, summary_budget_text(&passed, budget), submission->suite_id);
    return STATUS_OK;
}

enum status budget_tell(struct store *store, struct submission *submission, int64_t at_once,
                        int64_t *forecast_uusd, struct error *error)
{
    struct store_suite_status now;
    char budget[SUMMARY_BUDGET_BYTES];
    *forecast_uusd = -1;
    TRY(tell_passed(store, submission, error));
    TRY(store->ops->suite_status(store, submission->suite_id, &now, error));
    if (now.budget_uusd == 0) {
        return STATUS_OK;
    }
    if (submission->budget_uusd == 0) {
        text_print(stderr, "the suite keeps its %s; --budget sets another\n",
                   summary_budget_text(&now, budget));
    }
    if (!now.stopped_by_budget && store_jobs_open(&now) > 0) {
        return forecast_suite(store, submission, &now, at_once, forecast_uusd, error);
    }
    long long cancelled = now.stopped_by_budget ? (long long)now.jobs[JOB_CANCELLED] : 0;
    *forecast_uusd = now.cost_uusd;
    if (cancelled == 0) {
        text_print(stderr, "no job waits, every answer is known; %s\n",
                   summary_budget_text(&now, budget));
    } else {
        text_print(stderr,
                   "swerve: warning: %s: %lld job%s cancelled, and a larger --budget queues "
                   "%s again\n",
                   summary_budget_text(&now, budget), cancelled, cancelled == 1 ? " is" : "s are",
                   cancelled == 1 ? "it" : "them");
    }
    return STATUS_OK;
}
