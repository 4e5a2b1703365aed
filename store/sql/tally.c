/*
 * Tallies: what one operation adds to counters, ledger sums and accounts, collected and then
 * written row by row. See tally.h. What a tally holds is bounded: one that is full is written
 * early.
 */
#include "store/sql/tally.h"

#include "base/units.h"
#include "store/sql/records.h"
#include "store/sql/sql_store.h"
#include "store/sql/tenants.h"

#include <string.h>

void tally_init(struct tally *tally, struct db *db, const struct clock *clock)
{
    tally->db = db;
    tally->day = tenants_day(clock);
    tally->books = false;
    tally->price.device[0] = '\0';
    tally->suite_count = tally->pool_count = tally->entry_count = 0;
    tally->account_count = tally->part_count = tally->tenant_count = tally->budget_count = 0;
    tally->beside = tally->stops = false;
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
    struct query query = query_begin(tally->db, STATEMENT_SUITE_DIGEST);

    memset(out, 0, sizeof *out);
    query_int(&query, suite->suite);
    if (query_row(&query)) {
        record_digest_take(&query, out);
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
        if (suite->outcomes_digested != 0) {
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
        if (suite->outcomes_digested != 0) {
            query_blob(&query, digest.bytes, sizeof digest.bytes);
        } else {
            query_null(&query);
        }
        status = query_send(&query, error);
    }
    tally->suite_count = 0;
    return status;
}

/* States two by two: a job that moves is in both. An odd one's other changes nothing. */
static enum status flush_pool(struct tally *tally, const struct tally_pool *pool,
                              struct error *error)
{
    for (int state = 0; state < JOB_STATE_COUNT; state++) {
        int other = state + 1;
        if (pool->jobs[state] == 0) {
            continue;
        }
        while (other < JOB_STATE_COUNT && pool->jobs[other] == 0) {
            other++;
        }
        bool odd = other == JOB_STATE_COUNT;
        struct query query = query_begin(tally->db, STATEMENT_POOL_COUNT);
        query_int(&query, pool->pool);
        query_int(&query, state);
        query_int(&query, pool->jobs[state]);
        query_int(&query, odd ? (state + 1) % JOB_STATE_COUNT : other);
        query_int(&query, odd ? 0 : pool->jobs[other]);
        TRY(query_send(&query, error));
        state = other;
    }
    return STATUS_OK;
}

static enum status flush_pools(struct tally *tally, struct error *error)
{
    enum status status = tally_books(tally, error);

    for (uint32_t i = 0; i < tally->pool_count && status == STATUS_OK; i++) {
        status = flush_pool(tally, &tally->pools[i], error);
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

static enum status flush_budgets(struct tally *tally, struct error *error);

enum status tally_flush(struct tally *tally, struct error *error)
{
    TRY(flush_suites(tally, error));
    TRY(flush_parts(tally, error));
    TRY(tenants_flush(tally, error));
    TRY(flush_pools(tally, error));
    TRY(flush_entries(tally, error));
    TRY(flush_accounts(tally, error));
    return flush_budgets(tally, error);
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

/* ---- budgets ---- */

enum { BUDGET_PARTS = 32 }; /* pools and tiers that are read at once */

/* Jobs of a suite in one pool and tier. */
struct budget_part {
    int64_t pool;
    enum tier tier;
    int64_t jobs;
    int64_t ticks;
};

enum status tally_budget(struct tally *tally, int64_t suite, struct error *error)
{
    for (uint32_t i = 0; i < tally->budget_count; i++) {
        if (tally->budgets[i] == suite) {
            return STATUS_OK;
        }
    }
    if (tally->budget_count == TALLY_SUITES) {
        TRY(tally_flush(tally, error));
    }
    tally->budgets[tally->budget_count++] = suite;
    return STATUS_OK;
}

static enum status read_parts(struct tally *tally, enum statement statement, int64_t suite,
                              int64_t first, struct budget_part parts[BUDGET_PARTS],
                              uint32_t *count, struct error *error)
{
    struct query query = query_begin(tally->db, statement);

    query_int(&query, suite);
    query_int(&query, BUDGET_PARTS);
    query_int(&query, first);
    *count = 0;
    while (*count < BUDGET_PARTS && query_row(&query)) {
        struct budget_part *part = &parts[(*count)++];
        part->pool = query_take_int(&query);
        part->tier = (enum tier)query_take_int(&query);
        part->jobs = query_take_int(&query);
        part->ticks = query_take_int(&query);
    }
    return query_end(&query, error);
}

/* Counts the jobs that a statement gives by pool and tier as moved; *moved: how many. */
static enum status move_jobs(struct tally *tally, enum statement statement, int64_t suite,
                             enum job_state from, enum job_state to, int64_t *moved,
                             struct error *error)
{
    struct budget_part parts[BUDGET_PARTS];
    uint32_t count = BUDGET_PARTS;
    int64_t open = to == JOB_QUEUED ? 1 : -1;

    *moved = 0;
    for (int64_t first = 0; count == BUDGET_PARTS; first += count) {
        TRY(read_parts(tally, statement, suite, first, parts, &count, error));
        for (uint32_t i = 0; i < count; i++) {
            struct tally_suite *counters;
            struct tally_pool *pool;
            const struct tally_part part = {.suite = suite,
                                            .pool = parts[i].pool,
                                            .tier = parts[i].tier,
                                            .jobs_open = open * parts[i].jobs,
                                            .ticks_open = open * parts[i].ticks};
            TRY(tally_suite(tally, suite, &counters, error));
            TRY(tally_pool(tally, parts[i].pool, &pool, error));
            counters->jobs[from] -= parts[i].jobs;
            counters->jobs[to] += parts[i].jobs;
            pool->jobs[from] -= parts[i].jobs;
            pool->jobs[to] += parts[i].jobs;
            TRY(tally_progress(tally, &part, error));
            *moved += parts[i].jobs;
        }
    }
    return STATUS_OK;
}

static enum status run_of_suite(struct tally *tally, enum statement statement, int64_t suite,
                                struct error *error)
{
    struct query query = query_begin(tally->db, statement);
    query_int(&query, suite);
    return query_run(&query, error);
}

/* Cancels what waits in a suite whose budget is spent, at once: nobody may claim any of it. */
static enum status budget_stop(struct tally *tally, int64_t suite, struct error *error)
{
    int64_t cancelled = 0;

    if (tally->beside && db_shares(tally->db)) {
        tally->stops = true;
        return error_set(
            error, STATUS_CONFLICT,
            "a suite's budget is spent: its jobs are cancelled by a transaction alone");
    }
    TRY(move_jobs(tally, STATEMENT_BUDGET_QUEUED, suite, JOB_QUEUED, JOB_CANCELLED, &cancelled,
                  error));
    TRY(run_of_suite(tally, STATEMENT_BUDGET_PARTIALS, suite, error));
    TRY(run_of_suite(tally, STATEMENT_BUDGET_CANCEL, suite, error));
    TRY(run_of_suite(tally, STATEMENT_BUDGET_SPENT, suite, error));
    TRY(flush_suites(tally, error));
    TRY(flush_parts(tally, error));
    return flush_pools(tally, error);
}

static enum status read_cost(struct tally *tally, int64_t suite, int64_t *cost_uusd,
                             struct error *error)
{
    struct query query = query_begin(tally->db, STATEMENT_LEDGER_COST);

    *cost_uusd = 0;
    query_int(&query, suite);
    if (query_row(&query)) {
        *cost_uusd = query_column_int(&query, 1);
    }
    return query_end(&query, error);
}

static enum status flush_budgets(struct tally *tally, struct error *error)
{
    for (uint32_t i = 0; i < tally->budget_count; i++) {
        int64_t budget_uusd = 0;
        int64_t cost_uusd = 0;
        bool waits = false;
        struct query query = query_begin(tally->db, STATEMENT_BUDGET_GET);
        query_int(&query, tally->budgets[i]);
        if (query_row(&query)) {
            budget_uusd = query_take_int(&query);
            waits = query_take_int(&query) == 0;         /* not stopped yet */
            waits = query_take_int(&query) > 0 || waits; /* or jobs were queued since */
        }
        TRY(query_end(&query, error));
        if (budget_uusd == 0 || !waits) {
            continue;
        }
        TRY(read_cost(tally, tally->budgets[i], &cost_uusd, error));
        if (cost_uusd >= budget_uusd) {
            TRY(budget_stop(tally, tally->budgets[i], error));
        }
    }
    tally->budget_count = 0;
    return STATUS_OK;
}

enum status tally_budget_set(struct tally *tally, int64_t suite, int64_t budget_uusd, bool *spent,
                             struct error *error)
{
    int64_t cost_uusd = 0;
    struct query set = query_begin(tally->db, STATEMENT_BUDGET_SET);
    query_int(&set, suite);
    query_int(&set, budget_uusd);
    TRY(query_run(&set, error));
    TRY(read_cost(tally, suite, &cost_uusd, error));
    *spent = cost_uusd >= budget_uusd;
    return STATUS_OK;
}

enum status tally_budget_resume(struct tally *tally, int64_t suite, int64_t *queued,
                                struct error *error)
{
    TRY(move_jobs(tally, STATEMENT_BUDGET_CANCELLED, suite, JOB_CANCELLED, JOB_QUEUED, queued,
                  error));
    return *queued > 0 ? run_of_suite(tally, STATEMENT_BUDGET_RESUME, suite, error) : STATUS_OK;
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
        if (idle == NULL || (group->suite == 0 && idle->suite != 0)) {
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

/* ---- entries and accounts ---- */

enum status tally_entry(struct tally *tally, const struct ledger_attempt *attempt,
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
    (*out)->no_tenant = attempt->no_tenant;
    memcpy((*out)->device, attempt->device, strlen(attempt->device) + 1);
    return STATUS_OK;
}

enum status tally_account(struct tally *tally, int64_t pool, const char *device,
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
