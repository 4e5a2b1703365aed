/*
 * Cost of the tiers that could answer alike, and the time that who asks them waits. See market.h.
 *
 * Device time of a tick is that of the newest rollouts, as demand says it; its price is the one in
 * force on the devices that have driven its tier in its pool.
 */
#include "cli/budget/market.h"

#include "base/units.h"

#include <stdlib.h>
#include <string.h>

enum { LEDGER_ROWS = 1024 };

#define PUSD_PER_UUSD 1e6

enum status market_rate(struct store *store, const struct store_ledger_row *rows, uint32_t count,
                        enum tier tier, const char *pool, double *rate, struct error *error)
{
    double ns = 0;
    double uusd = 0;
    for (uint32_t i = 0; i < count; i++) {
        const struct store_ledger_row *row = &rows[i];
        int64_t price = 0;
        if (row->tier == tier && strcmp(row->pool, pool) == 0 && row->totals.device_ns > 0) {
            TRY(store->ops->price_get(store, row->pool, row->device, &price, error));
            ns += (double)row->totals.device_ns;
            uusd += (double)row->totals.device_ns * (double)price / (double)NS_PER_HOUR;
        }
    }
    *rate = ns > 0 ? uusd / ns : -1;
    return STATUS_OK;
}

/* Whether it is the pool in which scheduler/route.c has a tier answer. */
static bool is_pool_of(enum tier tier, const char *pool)
{
    return strcmp(pool, tier == TIER_TEACHER ? "teacher" : "bulk") == 0;
}

static enum status note(struct store *store, struct route_market *market,
                        const struct store_demand *demand, uint32_t count,
                        const struct store_ledger_row *ledger, uint32_t ledger_count,
                        struct error *error)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct store_demand *row = &demand[i];
        double rate = -1;
        if ((row->tier != TIER_STUDENT && row->tier != TIER_TEACHER) ||
            !is_pool_of(row->tier, row->pool) || row->rollouts_seen == 0) {
            continue;
        }
        TRY(market_rate(store, ledger, ledger_count, row->tier, row->pool, &rate, error));
        double pusd = (double)row->tick_ns * rate * PUSD_PER_UUSD;
        if (rate >= 0 && pusd < 1e15) {
            market->tick_ns[row->tier] = row->tick_ns;
            market->tick_pusd[row->tier] = pusd > 1 ? (int64_t)pusd : 1;
        }
    }
    /* All that waits in a pool is in front, whatever its tier. */
    for (uint32_t i = 0; i < count; i++) {
        const struct store_demand *row = &demand[i];
        int64_t workers = row->workers_alive > 1 ? row->workers_alive : 1;
        for (int tier = TIER_STUDENT; tier <= TIER_TEACHER; tier++) {
            bool own = is_pool_of((enum tier)tier, row->pool);
            market->wait_ns[tier] += own ? row->ticks_queued * row->tick_ns / workers : 0;
        }
    }
    return STATUS_OK;
}

enum status market_read(struct store *store, struct route_market *market, struct error *error)
{
    if (store->ops->demand == NULL) { /* an earlier server */
        return STATUS_OK;
    }
    struct store_demand *demand = calloc(STORE_DEMAND_ROWS_MAX, sizeof *demand);
    struct store_ledger_row *rows = calloc(LEDGER_ROWS, sizeof *rows);
    uint32_t count = 0;
    uint32_t ledger_count = 0;
    enum status status =
        memory_check(demand != NULL ? rows : NULL, error, "out of memory for what tiers cost");
    THEN(status, store->ops->demand(store, demand, STORE_DEMAND_ROWS_MAX, &count, error));
    THEN(status, store->ops->ledger(store, NULL, rows, LEDGER_ROWS, &ledger_count, error));
    THEN(status, note(store, market, demand, count, rows, ledger_count, error));
    free(demand);
    free(rows);
    return status;
}

static enum status is_there(struct store *store, const struct submission *submission, bool *there,
                            struct error *error)
{
    struct store_suite_status now;
    enum status status = store->ops->suite_status(store, submission->suite_id, &now, error);
    *there = status == STATUS_OK;
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}

enum status market_build(const struct suite *suite, const struct submission_options *options,
                         struct store *store, struct submission *out, struct error *error)
{
    struct submission built = {0};
    struct submission other = {0};
    struct submission_options contrary = *options;
    bool there = true;
    bool other_there = false;
    TRY(submission_build(suite, options, &built, error));
    if (built.open_count > 0 && store != NULL) {
        enum status status = is_there(store, &built, &there, error);
        contrary.policy.market.contrary = !options->policy.market.contrary;
        THEN(status, there ? STATUS_OK : submission_build(suite, &contrary, &other, error));
        THEN(status, there ? STATUS_OK : is_there(store, &other, &other_there, error));
        if (status != STATUS_OK) {
            submission_finish(&built);
            submission_finish(&other);
            return status;
        }
    }
    submission_finish(other_there ? &built : &other);
    *out = other_there ? other : built;
    return STATUS_OK;
}
