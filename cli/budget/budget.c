/*
 * The budget of a suite. See budget.h.
 *
 * Of the store is asked what every store can say: its newest outcomes, and its ledger. The first
 * say how long a tick of a tier takes in a pool, the second what that time costs there.
 */
#include "cli/budget/budget.h"

#include "base/array.h"
#include "base/text.h"
#include "base/units.h"
#include "report/summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SEEN_OUTCOMES = 2000, OUTCOME_PAGE = 500, LEDGER_ROWS = 1024, DECIMALS = 6 };

enum status budget_read(const char *text, int64_t *uusd, struct error *error)
{
    int64_t amount = 0;
    int decimals = -1; /* behind a point */
    bool good = text == NULL || (text[0] != '\0' && text[0] != '.');

    for (const char *at = text; good && at != NULL && *at != '\0'; at++) {
        if (*at == '.' && decimals < 0 && at[1] != '\0') {
            decimals = 0;
            continue;
        }
        good = *at >= '0' && *at <= '9' && decimals < DECIMALS && amount <= STORE_BUDGET_UUSD_MAX;
        amount = good ? amount * 10 + (*at - '0') : amount;
        decimals += decimals >= 0;
    }
    for (int i = decimals > 0 ? decimals : 0; good && i < DECIMALS; i++) {
        amount = amount <= STORE_BUDGET_UUSD_MAX ? amount * 10 : amount;
    }
    if (!good || (text != NULL && amount < 1) || amount > STORE_BUDGET_UUSD_MAX) {
        return error_set(error, STATUS_USAGE,
                         "--budget: expected dollars above 0 and up to %" PRId64
                         ", with at most %d decimals, found \"%.64s\"",
                         STORE_BUDGET_UUSD_MAX / UUSD_PER_USD, DECIMALS, text);
    }
    *uusd = amount;
    return STATUS_OK;
}

/* ---- measures ---- */

struct forecast {
    struct store *store;
    struct outcome *outcomes; /* [SEEN_OUTCOMES], owned */
    uint32_t outcome_count;
    struct store_ledger_row *rows; /* [LEDGER_ROWS], owned */
    uint32_t row_count;
    double *tick_ns; /* [SEEN_OUTCOMES], scratch, owned */
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

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Micro-dollars of a tick in a tier and pool; negative: nobody has measured it. */
static double tick_uusd(struct forecast *forecast, enum tier tier, const char *pool)
{
    uint32_t count = 0;
    double ns = 0;
    double uusd = 0;
    for (uint32_t i = 0; i < forecast->outcome_count; i++) {
        const struct outcome *outcome = &forecast->outcomes[i];
        if (outcome->tier == tier && strcmp(outcome->pool, pool) == 0 &&
            outcome->ticks > outcome->prefix_ticks) {
            forecast->tick_ns[count++] =
                (double)outcome->device_ns / (double)(outcome->ticks - outcome->prefix_ticks);
        }
    }
    for (uint32_t i = 0; i < forecast->row_count; i++) {
        const struct store_ledger_row *row = &forecast->rows[i];
        if (row->tier == tier && strcmp(row->pool, pool) == 0) {
            ns += (double)row->totals.device_ns;
            uusd += (double)row->totals.cost_uusd;
        }
    }
    if (count == 0 || !(ns > 0)) {
        return -1;
    }
    qsort(forecast->tick_ns, count, sizeof *forecast->tick_ns, compare_doubles);
    return forecast->tick_ns[count / 2] * uusd / ns;
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

enum { PARTS_MAX = 64 };

struct part {
    enum tier tier;
    const char *pool; /* of the submission's kinds */
    int64_t ticks;
};

static struct part *part_of(struct part parts[PARTS_MAX], uint32_t *count,
                            const struct job_spec *spec)
{
    for (uint32_t i = 0; i < *count; i++) {
        if (parts[i].tier == spec->tier && strcmp(parts[i].pool, spec->pool) == 0) {
            return &parts[i];
        }
    }
    if (*count == PARTS_MAX) {
        return NULL;
    }
    parts[*count] = (struct part){.tier = spec->tier, .pool = spec->pool};
    return &parts[(*count)++];
}

/* False: more parts than are told apart. */
static bool count_ticks(struct submission *submission, struct part parts[PARTS_MAX],
                        uint32_t *count)
{
    *count = 0;
    for (uint32_t i = 0; i < submission->kind_count; i++) {
        if (part_of(parts, count, &submission->kinds[i]) == NULL) {
            return false;
        }
    }
    for (bool more = submission_first(submission); more; more = submission_next(submission)) {
        for (uint32_t i = 0; i < submission->page_count; i++) {
            struct part *part = part_of(parts, count, &submission->specs[i]);
            if (part == NULL) {
                return false;
            }
            part->ticks += planned_ticks(&submission->documents[i]->scenario);
        }
    }
    submission_first(submission);
    return true;
}

static enum status measure(struct forecast *forecast, struct submission *submission, int64_t *uusd,
                           struct error *error)
{
    struct part parts[PARTS_MAX];
    uint32_t count = 0;
    double sum = 0;
    *uusd = -1;
    TRY(read_outcomes(forecast, error));
    TRY(forecast->store->ops->ledger(forecast->store, NULL, forecast->rows, LEDGER_ROWS,
                                     &forecast->row_count, error));
    if (!count_ticks(submission, parts, &count)) {
        return STATUS_OK;
    }
    for (uint32_t i = 0; i < count; i++) {
        double tick = parts[i].ticks > 0 ? tick_uusd(forecast, parts[i].tier, parts[i].pool) : 0;
        if (tick < 0) {
            return STATUS_OK;
        }
        sum += tick * (double)parts[i].ticks;
    }
    *uusd = sum < (double)STORE_BUDGET_UUSD_MAX ? llround(sum) : STORE_BUDGET_UUSD_MAX;
    return STATUS_OK;
}

enum status budget_forecast(struct store *store, struct submission *submission, int64_t *uusd,
                            struct error *error)
{
    struct forecast forecast = {
        .store = store,
        .outcomes = calloc(SEEN_OUTCOMES, sizeof *forecast.outcomes),
        .rows = calloc(LEDGER_ROWS, sizeof *forecast.rows),
        .tick_ns = calloc(SEEN_OUTCOMES, sizeof *forecast.tick_ns),
    };
    bool room = forecast.outcomes != NULL && forecast.rows != NULL && forecast.tick_ns != NULL;
    enum status status =
        memory_check(room ? forecast.rows : NULL, error, "budget: out of memory for a forecast");
    THEN(status, measure(&forecast, submission, uusd, error));
    free(forecast.outcomes);
    free(forecast.rows);
    free(forecast.tick_ns);
    return status;
}

void budget_put(int64_t budget_uusd, int64_t forecast_uusd, json_t *json)
{
    json_object_set_new(json, "budget_usd", json_real((double)budget_uusd / (double)UUSD_PER_USD));
    json_object_set_new(
        json, "forecast_usd",
        forecast_uusd < 0 ? json_null() : json_real((double)forecast_uusd / (double)UUSD_PER_USD));
}

enum status budget_tell(struct store *store, struct submission *submission, int64_t *forecast_uusd,
                        struct error *error)
{
    char budget[SUMMARY_MONEY_BYTES];
    char cost[SUMMARY_MONEY_BYTES];
    summary_usd_text((double)submission->budget_uusd / (double)UUSD_PER_USD, budget);
    TRY(budget_forecast(store, submission, forecast_uusd, error));
    if (*forecast_uusd < 0) {
        text_print(stderr, "forecast: no measure yet of this world in its pool; the budget is %s\n",
                   budget);
        return STATUS_OK;
    }
    text_print(stderr, "forecast: %s if all of its jobs are driven; the budget is %s\n",
               summary_usd_text((double)*forecast_uusd / (double)UUSD_PER_USD, cost), budget);
    if (*forecast_uusd > submission->budget_uusd) {
        text_print(stderr, "swerve: warning: the forecast exceeds the budget, at which the suite "
                           "will stop\n");
    }
    return STATUS_OK;
}
