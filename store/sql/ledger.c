/*
 * Ledger: attempts, what they cost, and prices. See ledger.h; tallies are in tally.c.
 */
#include "store/sql/ledger.h"

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "store/sql/records.h"
#include "store/sql/sql_store.h"
#include "store/sql/tenants.h"

#include <inttypes.h>
#include <string.h>

#define PRICE_MAX_UUSD_PER_HOUR (INT64_C(1000000) * UUSD_PER_USD)

const char *const attempt_end_names[ATTEMPT_END_COUNT] = {
    "done", "flagged", "failed", "released", "lost", "stale",
};

/* ---- money ---- */

int64_t ledger_cost_uusd(int64_t device_ns, int64_t price_uusd_per_hour, int64_t *carry)
{
    __int128 total = (__int128)device_ns * price_uusd_per_hour + *carry;

    CHECK(device_ns >= 0 && price_uusd_per_hour >= 0 && *carry >= 0);
    *carry = (int64_t)(total % NS_PER_HOUR);
    return (int64_t)(total / NS_PER_HOUR);
}

enum status ledger_price(struct db *db, const char *pool, const char *device,
                         int64_t *price_uusd_per_hour, struct error *error)
{
    int64_t price = -1;
    struct query query = query_begin(db, STATEMENT_PRICE_GET);

    query_text(&query, pool);
    query_text(&query, device);
    if (query_row(&query) && !query_column_is_null(&query, 0)) {
        price = query_column_int(&query, 0);
    }
    TRY(query_end(&query, error));
    if (price < 0) {
        return error_set(error, STATUS_NOT_FOUND,
                         "the price table has no price for pool \"%s\" on device \"%s\"; set one "
                         "first (swerve price set)",
                         pool, device);
    }
    *price_uusd_per_hour = price;
    return STATUS_OK;
}

enum status ledger_entry_get(struct db *db, int64_t job_id, int64_t epoch,
                             struct ledger_entry *entry, struct error *error)
{
    struct query query = query_begin(db, STATEMENT_ATTEMPT_GET);

    memset(entry, 0, sizeof *entry);
    query_int(&query, job_id);
    query_int(&query, epoch);
    if (query_row(&query)) {
        entry->found = true;
        entry->end = (enum attempt_end)query_take_int(&query);
        query_take_text(&query, entry->worker_id, sizeof entry->worker_id);
        entry->device_ns = query_take_int(&query);
        entry->metres_mm = query_take_int(&query);
        entry->price_uusd_per_hour = query_take_int(&query);
        entry->cost_uusd = query_take_int(&query);
        entry->escalated_job = query_take_int(&query);
        entry->pool = query_take_int(&query);
        query_take_text(&query, entry->device, sizeof entry->device);
        entry->tier = (enum tier)query_take_int(&query);
        entry->mflop = query_take_int(&query);
        entry->claimed_ns = query_take_int(&query);
    }
    return query_end(&query, error);
}

enum status ledger_job_ns(struct db *db, int64_t job_id, int64_t *ns, struct error *error)
{
    struct query query = query_begin(db, STATEMENT_ATTEMPTS_NS);

    query_int(&query, job_id);
    *ns = query_row(&query) ? query_column_int(&query, 0) : 0;
    return query_end(&query, error);
}

static enum status insert_attempt(struct tally *tally, const struct ledger_attempt *attempt,
                                  int64_t price_uusd_per_hour, const struct ledger_totals *bill,
                                  struct error *error)
{
    struct query query = query_begin(tally->db, STATEMENT_ATTEMPT_INSERT);

    query_int(&query, attempt->job_id);
    query_int(&query, attempt->epoch);
    query_int(&query, attempt->worker);
    query_int(&query, attempt->pool);
    query_text(&query, attempt->device);
    query_int(&query, (int64_t)attempt->tier);
    query_int(&query, (int64_t)attempt->end);
    query_int(&query, bill->device_ns);
    query_int(&query, bill->metres_mm);
    query_int(&query, bill->mflop);
    query_int(&query, price_uusd_per_hour);
    query_int(&query, bill->cost_uusd);
    query_int_or_null(&query, attempt->escalated_job);
    query_text_or_null(&query, attempt->artifact_hash);
    query_text_or_null(&query, attempt->error);
    query_int_or_null(&query, attempt->claimed_ns);
    return query_send(&query, error);
}

static void add_totals(struct ledger_totals *totals, int64_t sign,
                       const struct ledger_totals *attempt)
{
    totals->attempts += sign;
    totals->device_ns += sign * attempt->device_ns;
    totals->metres_mm += sign * attempt->metres_mm;
    totals->mflop += sign * attempt->mflop;
    totals->cost_uusd += sign * attempt->cost_uusd;
}

static bool in_range(const struct ledger_totals *bill)
{
    return bill->device_ns >= 0 && bill->device_ns <= LEDGER_ATTEMPT_NS_MAX &&
           bill->metres_mm >= 0 && bill->metres_mm <= LEDGER_ATTEMPT_MM_MAX && bill->mflop >= 0 &&
           bill->mflop <= LEDGER_ATTEMPT_MFLOP_MAX;
}

/* Numbers that can be charged. They may come from rows that somebody else wrote. */
static enum status check_charge(int64_t job_id, const struct ledger_totals *bill,
                                int64_t price_uusd_per_hour, const struct tally_account *account,
                                struct error *error)
{
    if (in_range(bill) && price_uusd_per_hour >= 0 &&
        price_uusd_per_hour <= PRICE_MAX_UUSD_PER_HOUR && account->carry >= 0 &&
        account->carry < NS_PER_HOUR) {
        return STATUS_OK;
    }
    return error_set(error, STATUS_STORE,
                     "the attempt at job %" PRId64 " cannot be charged: %" PRId64 " ns, %" PRId64
                     " mm and %" PRId64 " mflop at %" PRId64 " uusd per hour, with %" PRId64
                     " left over in its account; `swerve check` says what does not fit together",
                     job_id, bill->device_ns, bill->metres_mm, bill->mflop, price_uusd_per_hour,
                     account->carry);
}

static enum status tally_price(struct tally *tally, const char *pool, const char *device,
                               struct error *error)
{
    struct tally_price *price = &tally->price;
    int64_t found = 0;

    if (strcmp(price->device, device) == 0 && strcmp(price->pool, pool) == 0) {
        return STATUS_OK;
    }
    TRY(ledger_price(tally->db, pool, device, &found, error));
    memcpy(price->pool, pool, strlen(pool) + 1);
    memcpy(price->device, device, strlen(device) + 1);
    price->price_uusd_per_hour = found;
    return STATUS_OK;
}

/* ---- what the books hold ---- */

/* Another process may book beside this one. */
enum { BOOKED_CHARGES_MAX = 64 };

static int64_t add_up(int64_t a, int64_t b)
{
    return a > INT64_MAX - b ? INT64_MAX : a + b;
}

static enum status read_booked(struct db *db, struct error *error)
{
    struct db_booked booked = {.charges = 1};
    struct query query = query_begin(db, STATEMENT_LEDGER_BOOKED);

    while (query_row(&query)) {
        booked.device_ns = add_up(booked.device_ns, query_column_int(&query, 0));
        booked.metres_mm = add_up(booked.metres_mm, query_column_int(&query, 1));
        booked.mflop = add_up(booked.mflop, query_column_int(&query, 2));
    }
    TRY(query_end(&query, error));
    db->booked = booked;
    return STATUS_OK;
}

static int64_t min_i64(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Cuts what is to be charged to what sums of all attempts have room for: 292 years of device time,
 * say. So no sum in the books, and none that a check or a reader makes of them, overflows, and the
 * ledger stays the exact sum of its attempts. What is known of the sums is never less than they
 * are: what was undone counts until it is read again. */
static enum status make_room(struct tally *tally, struct ledger_totals *bill, struct error *error)
{
    struct db *db = tally->db;
    struct db_booked *booked = &db->booked;
    if (!in_range(bill)) {
        return STATUS_OK; /* refused by check_charge */
    }
    bool full = bill->device_ns > INT64_MAX - booked->device_ns ||
                bill->metres_mm > INT64_MAX - booked->metres_mm ||
                bill->mflop > INT64_MAX - booked->mflop;

    if (booked->charges == 0 || full || (db_shares(db) && booked->charges >= BOOKED_CHARGES_MAX)) {
        TRY(tally_flush(tally, error)); /* what it holds is not in the books yet */
        TRY(read_booked(db, error));
    }
    bill->device_ns = min_i64(bill->device_ns, INT64_MAX - booked->device_ns);
    bill->metres_mm = min_i64(bill->metres_mm, INT64_MAX - booked->metres_mm);
    bill->mflop = min_i64(bill->mflop, INT64_MAX - booked->mflop);
    booked->device_ns += bill->device_ns;
    booked->metres_mm += bill->metres_mm;
    booked->mflop += bill->mflop;
    booked->charges += db_shares(db) ? 1 : 0;
    return STATUS_OK;
}

int64_t ledger_mflop(int64_t device_ns, int64_t mflop)
{
    return device_ns >= 0 && device_ns <= LEDGER_ATTEMPT_NS_MAX
               ? min_i64(mflop, (device_ns + LEDGER_MFLOP_SLACK_NS) * LEDGER_MFLOP_PER_NS)
               : mflop;
}

/* ---- charges ---- */

/* Behind what is charged: making room for it may flush the tally. */
static enum status look_at_budget(struct tally *tally, const struct ledger_attempt *attempt,
                                  struct error *error)
{
    return attempt->budgeted ? tally_budget(tally, attempt->suite, error) : STATUS_OK;
}

enum status ledger_charge(struct tally *tally, const struct ledger_attempt *attempt,
                          struct error *error)
{
    struct tally_account *account = NULL;
    struct tally_entry *entry = NULL;
    struct ledger_totals bill = {.device_ns = attempt->device_ns,
                                 .metres_mm = attempt->metres_mm,
                                 .mflop = ledger_mflop(attempt->device_ns, attempt->mflop)};
    enum status status = tally_price(tally, attempt->pool_name, attempt->device, error);
    int64_t price = tally->price.price_uusd_per_hour;

    THEN(status, make_room(tally, &bill, error));
    THEN(status, tally_account(tally, attempt->pool, attempt->device, price, &account, error));
    THEN(status, check_charge(attempt->job_id, &bill, price, account, error));
    THEN(status, tally_entry(tally, attempt, attempt->end, &entry, error));
    if (status != STATUS_OK) {
        return status;
    }
    bill.cost_uusd = ledger_cost_uusd(bill.device_ns, price, &account->carry);
    account->changed = true;
    add_totals(&entry->totals, 1, &bill);
    TRY(look_at_budget(tally, attempt, error));
    return insert_attempt(tally, attempt, price, &bill, error);
}

static int64_t max_i64(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

enum status ledger_recharge(struct tally *tally, const struct ledger_attempt *attempt,
                            const struct ledger_entry *before, struct error *error)
{
    struct tally_account *account = NULL;
    struct tally_entry *entry = NULL;
    const struct ledger_totals was = {.device_ns = before->device_ns,
                                      .metres_mm = before->metres_mm,
                                      .mflop = before->mflop,
                                      .cost_uusd = before->cost_uusd};
    struct ledger_totals now = {.device_ns = max_i64(attempt->device_ns, before->device_ns),
                                .metres_mm = max_i64(attempt->metres_mm, before->metres_mm)};
    now.mflop = max_i64(ledger_mflop(now.device_ns, attempt->mflop), before->mflop);
    struct ledger_totals more = {.device_ns = now.device_ns - was.device_ns,
                                 .metres_mm = now.metres_mm - was.metres_mm,
                                 .mflop = now.mflop - was.mflop};
    TRY(make_room(tally, &more, error));
    now.device_ns = was.device_ns + more.device_ns;
    now.metres_mm = was.metres_mm + more.metres_mm;
    now.mflop = was.mflop + more.mflop;
    TRY(tally_account(tally, before->pool, before->device, before->price_uusd_per_hour, &account,
                      error));
    TRY(check_charge(attempt->job_id, &was, before->price_uusd_per_hour, account, error));
    TRY(check_charge(attempt->job_id, &now, before->price_uusd_per_hour, account, error));
    now.cost_uusd =
        before->cost_uusd + ledger_cost_uusd(now.device_ns - before->device_ns,
                                             before->price_uusd_per_hour, &account->carry);
    account->changed = true;
    TRY(tally_entry(tally, attempt, before->end, &entry, error));
    add_totals(&entry->totals, -1, &was);
    TRY(tally_entry(tally, attempt, attempt->end, &entry, error));
    add_totals(&entry->totals, 1, &now);
    TRY(look_at_budget(tally, attempt, error));
    struct query query = query_begin(tally->db, STATEMENT_ATTEMPT_UPDATE);
    query_int(&query, attempt->job_id);
    query_int(&query, attempt->epoch);
    query_int(&query, (int64_t)attempt->end);
    query_int(&query, now.device_ns);
    query_int(&query, now.metres_mm);
    query_int(&query, now.mflop);
    query_int(&query, now.cost_uusd);
    query_int_or_null(&query, attempt->escalated_job);
    query_text_or_null(&query, attempt->artifact_hash);
    query_text_or_null(&query, attempt->error);
    return query_send(&query, error);
}

/* ---- calls ---- */

struct price_set_call {
    const char *pool;
    const char *device;
    int64_t price_uusd_per_hour;
};

static enum status price_set_op(struct db *db, void *context, struct error *error)
{
    const struct price_set_call *call = context;
    struct query query = query_begin(db, STATEMENT_PRICE_SET);

    query_text(&query, call->pool);
    query_text(&query, call->device);
    query_int(&query, call->price_uusd_per_hour);
    return query_run(&query, error);
}

enum status ledger_price_set(struct store *base, const char *pool, const char *device,
                             int64_t price_uusd_per_hour, struct error *error)
{
    struct price_set_call call = {
        .pool = pool, .device = device, .price_uusd_per_hour = price_uusd_per_hour};

    if (price_uusd_per_hour < 0 || price_uusd_per_hour > PRICE_MAX_UUSD_PER_HOUR) {
        return error_set(error, STATUS_BAD_INPUT,
                         "a price must lie between 0 and 1,000,000 dollars per hour");
    }
    struct error why;
    enum status named = pool[0] != '\0' ? text_name_check("pool", pool, LIMIT_ID_BYTES, &why)
                                        : STATUS_OK; /* "": all pools without a price */
    THEN(named, text_name_check("device", device, LIMIT_ID_BYTES, &why));
    if (named != STATUS_OK) {
        return error_set(error, STATUS_BAD_INPUT, "price: %.900s", why.text);
    }
    return sql_store_write(sql_store_of(base), price_set_op, &call, error);
}

enum status ledger_price_get(struct store *base, const char *pool, const char *device,
                             int64_t *price_uusd_per_hour, struct error *error)
{
    struct db *db;
    struct sql_store *store = sql_store_of(base);
    TRY(sql_store_read_begin(base, &db, error));
    enum status status = ledger_price(db, pool, device, price_uusd_per_hour, error);
    sql_store_read_end(store, db);
    return status;
}

static enum status read_rows(struct db *db, const char *suite_id, struct store_ledger_row *rows,
                             uint32_t max, uint32_t *count, struct error *error)
{
    uint32_t found = 0;
    struct query query =
        query_begin(db, suite_id != NULL ? STATEMENT_LEDGER_SUITE : STATEMENT_LEDGER_ALL);

    query_int(&query, max);
    if (suite_id != NULL) {
        query_text(&query, suite_id);
    }
    while (found < max && query_row(&query)) {
        struct store_ledger_row *row = &rows[found++];
        memset(row, 0, sizeof *row);
        query_take_text(&query, row->pool, sizeof row->pool);
        query_take_text(&query, row->device, sizeof row->device);
        row->tier = (enum tier)query_take_int(&query);
        int64_t kind = query_take_int(&query);
        int64_t end = query_take_int(&query);
        if (end < 0 || end >= ATTEMPT_END_COUNT || (int)row->tier < 0 || row->tier >= TIER_COUNT) {
            query_end(&query, NULL);
            return error_set(error, STATUS_STORE,
                             "the ledger has a row of tier %d that ended as number %" PRId64
                             ", which there is not; `swerve check` says what does not fit together",
                             (int)row->tier, end);
        }
        memcpy(row->end, attempt_end_names[end], strlen(attempt_end_names[end]) + 1);
        row->audit = kind == LEDGER_AUDIT;
        row->shadow = kind == LEDGER_SHADOW;
        row->totals.attempts = query_take_int(&query);
        row->totals.device_ns = query_take_int(&query);
        row->totals.metres_mm = query_take_int(&query);
        row->totals.mflop = query_take_int(&query);
        row->totals.cost_uusd = query_take_int(&query);
    }
    TRY(query_end(&query, error));
    *count = found;
    return STATUS_OK;
}

enum status ledger_rows(struct store *base, const char *suite_id, struct store_ledger_row *rows,
                        uint32_t max, uint32_t *count, struct error *error)
{
    struct db *db;
    int64_t suite = 0;
    struct sql_store *store = sql_store_of(base);
    TRY(sql_store_read_begin(base, &db, error));
    enum status status =
        suite_id != NULL ? record_find_suite(db, suite_id, &suite, error) : STATUS_OK;
    THEN(status, read_rows(db, suite_id, rows, max, count, error));
    sql_store_read_end(store, db);
    return status;
}
