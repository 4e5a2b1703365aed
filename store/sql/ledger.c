/*
 * Ledger and counters. See ledger.h.
 */
#include "store/sql/ledger.h"

#include "base/check.h"
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

/* ---- tally ---- */

void tally_init(struct tally *tally, struct db *db, const struct clock *clock)
{
    tally->db = db;
    tally->day = tenants_day(clock);
    tally->books = false;
    tally->price.device[0] = '\0';
    tally->suite_count = tally->pool_count = tally->entry_count = 0;
    tally->account_count = tally->part_count = tally->tenant_count = 0;
}

enum status tally_books(struct tally *tally, struct error *error)
{
    if (tally->books || !db_shares(tally->db)) {
        return STATUS_OK;
    }
    tally->books = true;
    return query_simple(tally->db, STATEMENT_BOOKS, error);
}

/* The suite's digest with what the tally adds to it. */
static enum status grown_digest(struct tally *tally, const struct tally_suite *suite,
                                struct digest *out, struct error *error)
{
    size_t bytes = 0;
    struct query query = query_begin(tally->db, STATEMENT_SUITE_DIGEST);

    memset(out, 0, sizeof *out);
    query_int(&query, suite->suite);
    if (query_row(&query)) {
        const void *data = query_column_blob(&query, 0, &bytes);
        if (data != NULL && bytes == sizeof out->bytes) {
            memcpy(out->bytes, data, bytes);
        }
    }
    digest_add(out, &suite->outcomes_digest);
    return query_end(&query, error);
}

static enum status flush_suites(struct tally *tally, struct error *error)
{
    enum status status = tally_books(tally, error);

    for (uint32_t i = 0; i < tally->suite_count && status == STATUS_OK; i++) {
        const struct tally_suite *suite = &tally->suites[i];
        struct digest digest;
        if (suite->outcomes_digested > 0) {
            status = grown_digest(tally, suite, &digest, error);
            if (status != STATUS_OK) {
                break;
            }
        }
        struct query query = query_begin(tally->db, STATEMENT_SUITE_COUNT);
        query_int(&query, suite->suite);
        for (int state = 0; state < JOB_STATE_COUNT; state++) {
            query_int(&query, suite->jobs[state]);
        }
        query_int(&query, suite->jobs_memoised);
        query_int(&query, suite->rollouts_total);
        for (int verdict = 0; verdict < VERDICT_COUNT; verdict++) {
            query_int(&query, suite->rollouts[verdict]);
        }
        query_int(&query, suite->ticks);
        query_int(&query, suite->prefix_ticks_saved);
        query_int(&query, suite->metres_mm);
        query_int(&query, suite->rollouts_audit);
        query_int(&query, suite->outcomes_digested);
        if (suite->outcomes_digested > 0) {
            query_blob(&query, digest.bytes, sizeof digest.bytes);
        } else {
            query_null(&query);
        }
        status = query_send(&query, error);
    }
    tally->suite_count = 0;
    return status;
}

static enum status flush_pools(struct tally *tally, struct error *error)
{
    enum status status = tally_books(tally, error);

    for (uint32_t i = 0; i < tally->pool_count * JOB_STATE_COUNT && status == STATUS_OK; i++) {
        const struct tally_pool *pool = &tally->pools[i / JOB_STATE_COUNT];
        int64_t jobs = pool->jobs[i % JOB_STATE_COUNT];
        if (jobs != 0) {
            struct query query = query_begin(tally->db, STATEMENT_POOL_COUNT);
            query_int(&query, pool->pool);
            query_int(&query, i % JOB_STATE_COUNT);
            query_int(&query, jobs);
            status = query_send(&query, error);
        }
    }
    tally->pool_count = 0;
    return status;
}

static void bind_totals(struct query *query, const struct tally_entry *entry)
{
    query_int(query, entry->pool);
    query_text(query, entry->device);
    query_int(query, (int64_t)entry->tier);
    query_int(query, (int64_t)entry->kind);
    query_int(query, (int64_t)entry->end);
    query_int(query, entry->totals.attempts);
    query_int(query, entry->totals.device_ns);
    query_int(query, entry->totals.metres_mm);
    query_int(query, entry->totals.mflop);
    query_int(query, entry->totals.cost_uusd);
}

static enum status flush_entries(struct tally *tally, struct error *error)
{
    enum status status = tally_books(tally, error);

    for (uint32_t i = 0; i < tally->entry_count && status == STATUS_OK; i++) {
        const struct tally_entry *entry = &tally->entries[i];
        struct query query = query_begin(tally->db, STATEMENT_LEDGER_ADD);
        query_int(&query, entry->suite);
        bind_totals(&query, entry);
        TRY(query_send(&query, error));
        struct query total = query_begin(tally->db, STATEMENT_LEDGER_TOTAL_ADD);
        bind_totals(&total, entry);
        TRY(query_send(&total, error));
        status = tenants_spend(tally, entry, error);
    }
    tally->entry_count = 0;
    return status;
}

static enum status flush_accounts(struct tally *tally, struct error *error)
{
    enum status status = tally_books(tally, error);

    for (uint32_t i = 0; i < tally->account_count && status == STATUS_OK; i++) {
        const struct tally_account *account = &tally->accounts[i];
        if (!account->changed) {
            continue;
        }
        struct query query = query_begin(tally->db, STATEMENT_ACCOUNT_SET);
        query_int(&query, account->pool);
        query_text(&query, account->device);
        query_int(&query, account->price_uusd_per_hour);
        query_int(&query, account->carry);
        status = query_send(&query, error);
    }
    tally->account_count = 0;
    return status;
}

static enum status flush_parts(struct tally *tally, struct error *error)
{
    enum status status = tally_books(tally, error);

    for (uint32_t i = 0; i < tally->part_count && status == STATUS_OK; i++) {
        const struct tally_part *part = &tally->parts[i];
        struct query query = query_begin(tally->db, STATEMENT_PROGRESS_COUNT);
        query_int(&query, part->suite);
        query_int(&query, part->pool);
        query_int(&query, (int64_t)part->tier);
        query_int(&query, part->jobs_open);
        query_int(&query, part->ticks);
        query_int(&query, part->ticks_open);
        query_int(&query, part->wall_ns);
        status = query_send(&query, error);
    }
    tally->part_count = 0;
    return status;
}

enum status tally_progress(struct tally *tally, const struct tally_part *part, struct error *error)
{
    for (struct tally_part *to = tally->parts; to < tally->parts + tally->part_count; to++) {
        if (to->suite == part->suite && to->pool == part->pool && to->tier == part->tier) {
            to->jobs_open += part->jobs_open;
            to->ticks += part->ticks;
            to->ticks_open += part->ticks_open;
            to->wall_ns += part->wall_ns;
            return STATUS_OK;
        }
    }
    if (tally->part_count == TALLY_PARTS) {
        TRY(flush_parts(tally, error));
    }
    tally->parts[tally->part_count++] = *part;
    return STATUS_OK;
}

enum status tally_flush(struct tally *tally, struct error *error)
{
    TRY(flush_suites(tally, error));
    TRY(flush_parts(tally, error));
    TRY(tenants_flush(tally, error));
    TRY(flush_pools(tally, error));
    TRY(flush_entries(tally, error));
    return flush_accounts(tally, error);
}

enum status tally_suite(struct tally *tally, int64_t suite, struct tally_suite **out,
                        struct error *error)
{
    for (uint32_t i = 0; i < tally->suite_count; i++) {
        if (tally->suites[i].suite == suite) {
            *out = &tally->suites[i];
            return STATUS_OK;
        }
    }
    if (tally->suite_count == TALLY_SUITES) {
        TRY(flush_suites(tally, error));
    }
    *out = &tally->suites[tally->suite_count++];
    memset(*out, 0, sizeof **out);
    (*out)->suite = suite;
    return STATUS_OK;
}

static enum status tally_pool(struct tally *tally, int64_t pool, struct tally_pool **out,
                              struct error *error)
{
    for (uint32_t i = 0; i < tally->pool_count; i++) {
        if (tally->pools[i].pool == pool) {
            *out = &tally->pools[i];
            return STATUS_OK;
        }
    }
    if (tally->pool_count == TALLY_POOLS) {
        TRY(flush_pools(tally, error));
    }
    *out = &tally->pools[tally->pool_count++];
    memset(*out, 0, sizeof **out);
    (*out)->pool = pool;
    return STATUS_OK;
}

enum status tally_move(struct tally *tally, int64_t suite, int64_t pool, enum job_state from,
                       enum job_state to, struct error *error)
{
    struct tally_suite *counters;
    struct tally_pool *of_pool;
    TRY(tally_suite(tally, suite, &counters, error));
    TRY(tally_pool(tally, pool, &of_pool, error));
    if (from != JOB_STATE_COUNT) {
        counters->jobs[from]--;
        of_pool->jobs[from]--;
    }
    if (to != JOB_STATE_COUNT) {
        counters->jobs[to]++;
        of_pool->jobs[to]++;
    }
    return STATUS_OK;
}

/* ---- paces ---- */

static int64_t leased_jobs(const struct pace_group *group)
{
    int64_t leased = 0;
    for (int tier = 0; tier < TIER_COUNT; tier++) {
        leased += group->leased[tier];
    }
    return leased;
}

/* NULL: the suite is not timed in this pool. make: it takes the place of one of which nothing runs,
 * if there is any. */
static struct pace_group *pace_group(struct paces *paces, int64_t suite, int64_t pool, bool make)
{
    struct pace_group *idle = NULL;
    for (size_t i = 0; i < PACE_GROUPS_MAX; i++) {
        struct pace_group *group = &paces->groups[i];
        if (group->suite == suite && group->pool == pool) {
            return group;
        }
        if (idle == NULL || group->suite == 0) {
            idle = leased_jobs(group) == 0 ? group : idle;
        }
    }
    if (!make || idle == NULL) {
        return NULL;
    }
    *idle = (struct pace_group){.suite = suite, .pool = pool};
    return idle;
}

void pace_lease(struct paces *paces, int64_t suite, int64_t pool, enum tier tier, int change,
                int64_t now_ns)
{
    struct pace_group *group = pace_group(paces, suite, pool, change > 0);
    if (group == NULL) {
        return;
    }
    int64_t leased = leased_jobs(group);
    int64_t passed_ns = now_ns - group->settled_ns;
    for (int i = 0; i < TIER_COUNT && leased > 0 && passed_ns > 0; i++) {
        double share = (double)group->leased[i] / (double)leased;
        group->wall_ns[i] += (int64_t)((double)passed_ns * share);
    }
    group->settled_ns = now_ns;
    /* Below 0: leased before the store was opened, or a change was undone. */
    group->leased[tier] += change;
    group->leased[tier] = group->leased[tier] > 0 ? group->leased[tier] : 0;
}

enum status tally_over(struct tally *tally, struct paces *paces, const struct tally_part *job,
                       bool leased, bool open, int64_t now_ns, struct error *error)
{
    struct tally_part part = *job;
    if (leased) {
        pace_lease(paces, job->suite, job->pool, job->tier, -1, now_ns);
    }
    if (open) {
        return STATUS_OK;
    }
    struct pace_group *group = pace_group(paces, job->suite, job->pool, false);
    part.jobs_open = -1;
    part.ticks_open = -job->ticks_open;
    if (group != NULL) {
        part.wall_ns = group->wall_ns[job->tier];
        group->wall_ns[job->tier] = 0;
    }
    return tally_progress(tally, &part, error);
}

/* ---- attempts ---- */

static enum status tally_entry(struct tally *tally, const struct ledger_attempt *attempt,
                               enum attempt_end end, struct tally_entry **out, struct error *error)
{
    for (uint32_t i = 0; i < tally->entry_count; i++) {
        struct tally_entry *entry = &tally->entries[i];
        if (entry->suite == attempt->suite && entry->pool == attempt->pool &&
            entry->tier == attempt->tier && entry->kind == attempt->kind && entry->end == end &&
            strcmp(entry->device, attempt->device) == 0) {
            *out = entry;
            return STATUS_OK;
        }
    }
    if (tally->entry_count == TALLY_ENTRIES) {
        TRY(flush_entries(tally, error));
    }
    *out = &tally->entries[tally->entry_count++];
    memset(*out, 0, sizeof **out);
    (*out)->suite = attempt->suite;
    (*out)->pool = attempt->pool;
    (*out)->tier = attempt->tier;
    (*out)->kind = attempt->kind;
    (*out)->end = end;
    memcpy((*out)->device, attempt->device, strlen(attempt->device) + 1);
    return STATUS_OK;
}

static enum status tally_account(struct tally *tally, int64_t pool, const char *device,
                                 int64_t price_uusd_per_hour, struct tally_account **out,
                                 struct error *error)
{
    for (uint32_t i = 0; i < tally->account_count; i++) {
        struct tally_account *account = &tally->accounts[i];
        if (account->pool == pool && account->price_uusd_per_hour == price_uusd_per_hour &&
            strcmp(account->device, device) == 0) {
            *out = account;
            return STATUS_OK;
        }
    }
    TRY(tally_books(tally, error));
    if (tally->account_count == TALLY_ACCOUNTS) {
        TRY(flush_accounts(tally, error));
    }
    struct tally_account *account = &tally->accounts[tally->account_count];
    memset(account, 0, sizeof *account);
    account->pool = pool;
    account->price_uusd_per_hour = price_uusd_per_hour;
    memcpy(account->device, device, strlen(device) + 1);
    struct query query = query_begin(tally->db, STATEMENT_ACCOUNT_GET);
    query_int(&query, pool);
    query_text(&query, device);
    query_int(&query, price_uusd_per_hour);
    if (query_row(&query)) {
        account->carry = query_column_int(&query, 0);
    }
    TRY(query_end(&query, error));
    tally->account_count++;
    *out = account;
    return STATUS_OK;
}

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
    if (query_row(&query)) {
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
        entry->end = (enum attempt_end)query_column_int(&query, 0);
        query_column_text(&query, 1, entry->worker_id, sizeof entry->worker_id);
        entry->device_ns = query_column_int(&query, 2);
        entry->metres_mm = query_column_int(&query, 3);
        entry->price_uusd_per_hour = query_column_int(&query, 4);
        entry->cost_uusd = query_column_int(&query, 5);
        entry->escalated_job = query_column_int(&query, 6);
        entry->pool = query_column_int(&query, 7);
        query_column_text(&query, 8, entry->device, sizeof entry->device);
        entry->tier = (enum tier)query_column_int(&query, 9);
        entry->mflop = query_column_int(&query, 10);
    }
    return query_end(&query, error);
}

static enum status insert_attempt(struct tally *tally, const struct ledger_attempt *attempt,
                                  int64_t price_uusd_per_hour, int64_t cost_uusd,
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
    query_int(&query, attempt->device_ns);
    query_int(&query, attempt->metres_mm);
    query_int(&query, attempt->mflop);
    query_int(&query, price_uusd_per_hour);
    query_int(&query, cost_uusd);
    query_int_or_null(&query, attempt->escalated_job);
    query_text_or_null(&query, attempt->artifact_hash);
    query_text_or_null(&query, attempt->error);
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

/* Numbers that can be charged. They may come from rows that somebody else wrote. */
static enum status check_charge(int64_t job_id, const struct ledger_totals *bill,
                                int64_t price_uusd_per_hour, const struct tally_account *account,
                                struct error *error)
{
    if (bill->device_ns >= 0 && bill->device_ns <= LEDGER_ATTEMPT_NS_MAX && bill->metres_mm >= 0 &&
        bill->metres_mm <= LEDGER_ATTEMPT_MM_MAX && bill->mflop >= 0 &&
        bill->mflop <= LEDGER_ATTEMPT_MFLOP_MAX && price_uusd_per_hour >= 0 &&
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

enum status ledger_charge(struct tally *tally, const struct ledger_attempt *attempt,
                          struct error *error)
{
    struct tally_account *account = NULL;
    struct tally_entry *entry = NULL;
    struct ledger_totals bill = {
        .device_ns = attempt->device_ns, .metres_mm = attempt->metres_mm, .mflop = attempt->mflop};
    enum status status = tally_price(tally, attempt->pool_name, attempt->device, error);
    int64_t price = tally->price.price_uusd_per_hour;

    THEN(status, tally_account(tally, attempt->pool, attempt->device, price, &account, error));
    THEN(status, check_charge(attempt->job_id, &bill, price, account, error));
    THEN(status, tally_entry(tally, attempt, attempt->end, &entry, error));
    if (status != STATUS_OK) {
        return status;
    }
    bill.cost_uusd = ledger_cost_uusd(attempt->device_ns, price, &account->carry);
    account->changed = true;
    add_totals(&entry->totals, 1, &bill);
    return insert_attempt(tally, attempt, price, bill.cost_uusd, error);
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
                                .metres_mm = max_i64(attempt->metres_mm, before->metres_mm),
                                .mflop = max_i64(attempt->mflop, before->mflop)};
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
    if (device[0] == '\0' || strnlen(device, LIMIT_ID_BYTES) == LIMIT_ID_BYTES ||
        strnlen(pool, LIMIT_ID_BYTES) == LIMIT_ID_BYTES) {
        return error_set(error, STATUS_BAD_INPUT,
                         "a price needs a pool and a device of at most %d bytes",
                         LIMIT_ID_BYTES - 1);
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
        int64_t end = query_column_int(&query, 4);
        memset(row, 0, sizeof *row);
        query_column_text(&query, 0, row->pool, sizeof row->pool);
        query_column_text(&query, 1, row->device, sizeof row->device);
        row->tier = (enum tier)query_column_int(&query, 2);
        if (end < 0 || end >= ATTEMPT_END_COUNT || (int)row->tier < 0 || row->tier >= TIER_COUNT) {
            query_end(&query, NULL);
            return error_set(error, STATUS_STORE,
                             "the ledger has a row of tier %d that ended as number %" PRId64
                             ", which there is not; `swerve check` says what does not fit together",
                             (int)row->tier, end);
        }
        memcpy(row->end, attempt_end_names[end], strlen(attempt_end_names[end]) + 1);
        row->audit = query_column_int(&query, 3) == LEDGER_AUDIT;
        row->shadow = query_column_int(&query, 3) == LEDGER_SHADOW;
        row->totals.attempts = query_column_int(&query, 5);
        row->totals.device_ns = query_column_int(&query, 6);
        row->totals.metres_mm = query_column_int(&query, 7);
        row->totals.mflop = query_column_int(&query, 8);
        row->totals.cost_uusd = query_column_int(&query, 9);
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
