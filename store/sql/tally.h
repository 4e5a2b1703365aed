/*
 * Tallies: what one operation changes (counters, ledger sums, carries), collected so that each row
 * is written once at the end and a batch of completions costs little more than one. And paces: how
 * long tiers of a suite run, of which estimates are made.
 */
#ifndef SWERVE_STORE_SQL_TALLY_H
#define SWERVE_STORE_SQL_TALLY_H

#include "schemas/job.h"
#include "store/api/digest.h"
#include "store/sql/ledger.h"
#include "store/sql/sqlite_db.h"

#include <stdbool.h>
#include <stdint.h>

enum {
    TALLY_SUITES = 16,
    TALLY_POOLS = 8,
    TALLY_ENTRIES = 32,
    TALLY_ACCOUNTS = 8,
    TALLY_PARTS = 16,
    TALLY_TENANTS = 8,
    PACE_GROUPS_MAX = 128
};

struct tally_suite {
    int64_t suite;
    int64_t jobs[JOB_STATE_COUNT];
    int64_t jobs_memoised;
    int64_t rollouts_total;
    int64_t rollouts[VERDICT_COUNT];
    int64_t rollouts_audit;
    int64_t ticks;
    int64_t prefix_ticks_saved;
    int64_t metres_mm;
    int64_t outcomes_digested;
    struct digest outcomes_digest; /* what is added to the suite's */
};

/* Jobs of a pool by state. */
struct tally_pool {
    int64_t pool;
    int64_t jobs[JOB_STATE_COUNT];
};

/* Jobs of a suite by pool and tier, as suite_progress counts them. */
struct tally_part {
    int64_t suite;
    int64_t pool;
    enum tier tier;
    int64_t jobs_open;
    int64_t ticks;
    int64_t ticks_open;
    int64_t wall_ns;
};

/* Units (turns_cost()) of a tenant's jobs that were leased, and of those whose lease has ended. */
struct tally_tenant {
    int64_t tenant;
    int64_t units[2];
};

/* When which tiers of a suite run in a pool: in memory, since estimates alone are made of it. The
 * time between two changes is shared among the tiers by how many of their jobs are leased. */
struct pace_group {
    int64_t suite; /* 0: free */
    int64_t pool;
    int64_t settled_ns;
    int64_t leased[TIER_COUNT];
    int64_t wall_ns[TIER_COUNT]; /* not yet taken over into suite_progress */
};

struct paces {
    struct pace_group groups[PACE_GROUPS_MAX];
};

/* Jobs of a suite were leased (1), or one is no more (-1). */
void pace_lease(struct paces *paces, int64_t suite, int64_t pool, enum tier tier, int change,
                int64_t now_ns);

struct tally_entry {
    int64_t suite;
    int64_t pool;
    char device[LIMIT_ID_BYTES];
    enum tier tier;
    enum ledger_kind kind;
    enum attempt_end end;
    bool no_tenant; /* nobody's day has to be charged */
    struct ledger_totals totals;
};

struct tally_account {
    int64_t pool;
    char device[LIMIT_ID_BYTES];
    int64_t price_uusd_per_hour;
    int64_t carry;
    bool changed;
};

/* Price in force, looked up once per operation. */
struct tally_price {
    char pool[LIMIT_ID_BYTES];
    char device[LIMIT_ID_BYTES];
    int64_t price_uusd_per_hour;
};

struct tally {
    struct db *db;
    int64_t day;              /* on which its entries are booked: tenants_day() */
    bool books;               /* this transaction has the lock of the books */
    struct tally_price price; /* the last one; device "": none */
    uint32_t suite_count;
    uint32_t pool_count;
    uint32_t entry_count;
    uint32_t account_count;
    uint32_t part_count;
    uint32_t tenant_count;
    uint32_t budget_count;
    bool beside; /* other processes may be claiming: nothing that was not asked for can be cancelled
                  */
    bool stops;  /* .. but has to be, so that the operation failed and is to be run alone */
    struct tally_suite suites[TALLY_SUITES];
    struct tally_pool pools[TALLY_POOLS];
    struct tally_entry entries[TALLY_ENTRIES];
    struct tally_account accounts[TALLY_ACCOUNTS];
    struct tally_part parts[TALLY_PARTS];
    struct tally_tenant tenants[TALLY_TENANTS];
    int64_t budgets[TALLY_SUITES]; /* suites that have a budget, to be looked at */
};

struct clock;
void tally_init(struct tally *tally, struct db *db, const struct clock *clock);
/* Outcomes, attempts' costs and sums are written by one transaction at a time, those of other
 * processes included: from here on by this one, until it ends. What is flushed asks for it. */
enum status tally_books(struct tally *tally, struct error *error);
/* The suite's counters, to be added to; valid until the next tally call. */
enum status tally_suite(struct tally *tally, int64_t suite, struct tally_suite **out,
                        struct error *error);
/* One job of the suite and pool went from one state to another (from JOB_STATE_COUNT: it is new
 * there; to it: it is there no more). */
enum status tally_move(struct tally *tally, int64_t suite, int64_t pool, enum job_state from,
                       enum job_state to, struct error *error);
/* Adds to what the suite counts of its jobs in this pool and tier. */
enum status tally_progress(struct tally *tally, const struct tally_part *part, struct error *error);
/* An attempt at a job (suite, pool, tier, ticks_open) is over: was it leased until now, and is the
 * job open still? */
enum status tally_over(struct tally *tally, struct paces *paces, const struct tally_part *job,
                       bool leased, bool open, int64_t now_ns, struct error *error);
/* The suite may have a budget, and something is charged to it or queued in it: where it has cost as
 * much when the tally is flushed, its queued jobs are cancelled, those of this transaction too. */
enum status tally_budget(struct tally *tally, int64_t suite, struct error *error);
/* The suite's budget from now on. *spent: it has cost as much already. */
enum status tally_budget_set(struct tally *tally, int64_t suite, int64_t budget_uusd, bool *spent,
                             struct error *error);
/* Queues what a budget of the suite's cancelled. *queued: how many jobs. */
enum status tally_budget_resume(struct tally *tally, int64_t suite, int64_t *queued,
                                struct error *error);
/* Writes everything; the tally is empty afterwards. */
enum status tally_flush(struct tally *tally, struct error *error);

/* The sums of attempts like this one that ended so; valid until the next tally call. */
enum status tally_entry(struct tally *tally, const struct ledger_attempt *attempt,
                        enum attempt_end end, struct tally_entry **out, struct error *error);
/* The account of attempts at this price, as it stands; valid until the next tally call. */
enum status tally_account(struct tally *tally, int64_t pool, const char *device,
                          int64_t price_uusd_per_hour, struct tally_account **out,
                          struct error *error);

#endif
