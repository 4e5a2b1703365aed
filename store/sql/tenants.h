/*
 * Tenants in SQL: the tables tenants and tenant_days, and whose suites are.
 */
#ifndef SWERVE_STORE_SQL_TENANTS_H
#define SWERVE_STORE_SQL_TENANTS_H

#include "store/api/store.h"
#include "store/sql/db.h"
#include "store/sql/tally.h"

struct sql_store;

/* Today (UTC), in days since 1970. */
int64_t tenants_day(const struct clock *clock);

/* A submission's suite. */
struct tenants_suite {
    const char *suite_id;
    uint32_t weight;
    enum suite_class of_class; /* that it gets; SAME: nothing is said of it */
    const char *asked;         /* who submits; "": nobody's suites; NULL: anybody's */
    int64_t asked_uusd;        /* the budget that it gets; 0: nothing is said of it */
    char name[LIMIT_ID_BYTES]; /* found: whose it is; "": nobody's */
    int64_t budget_uusd;       /* found: what it may cost; 0: no limit */
};

/* The suite, made if it is new, with the weight and the class that it has from now on. MISMATCH:
 * another tenant's. A tenant that is new has weight 1 and no limits. */
enum status tenants_suite(struct db *db, const struct clock *clock, struct tenants_suite *suite,
                          int64_t *id, struct error *error);

/* Gives the suite the budget that is asked for, and has it looked at when the tally is flushed: one
 * that has cost as much takes new jobs as cancelled ones. Under another budget than before, jobs
 * that the old one cancelled are done at once where another suite has their answers since; the
 * others are queued again unless that is spent too. *queued: how many were. */
enum status tenants_budget(struct sql_store *store, struct tally *tally, int64_t id,
                           const struct tenants_suite *suite, int64_t *queued, struct error *error);

/* The number of the tenant that brings a scenario of so many bytes, which are counted: LIMIT. */
enum status tenants_bring(struct db *db, const struct clock *clock, const char *name, size_t bytes,
                          int64_t *id, struct error *error);

/* The tenant's quotas allow `jobs_new` jobs that were queued in this transaction: LIMIT. */
enum status tenants_allow(struct db *db, const struct clock *clock,
                          const struct tenants_suite *suite, int64_t jobs_new, struct error *error);

/* Books what attempts at jobs of a tenant's suite cost on the tally's day; shadows' are nobody's.
 */
enum status tenants_spend(const struct tally *tally, const struct tally_entry *entry,
                          struct error *error);

/* So many units of a tenant's jobs were leased, or their leases have ended.
 *
 * Leases of a tenant that has a limit are written where they are made, by whoever holds
 * tenants_hold, so that the next claim sees them; all else by a tally's flush, in the books. */
enum status tenants_units(struct db *db, int64_t tenant, bool ended, int64_t units,
                          struct error *error);
/* Tenants that have a limit are claimed for by one transaction at a time: from here on by this one,
 * until it ends. All of them, in one order: two that each wait for the other's are none. */
enum status tenants_hold(struct db *db, struct error *error);

/* A job of a tenant (0: nobody's, which is not counted) was leased, or its lease has ended. */
enum status tenants_count(struct tally *tally, int64_t tenant, bool ended, int64_t units,
                          struct error *error);
/* Writes what was counted so, in the books. */
enum status tenants_flush(struct tally *tally, struct error *error);

/* A lease of a job of this tenant (0: nobody's) has ended. Claims that its limit held up try again.
 */
enum status tenants_lease_end(struct sql_store *store, struct tally *tally, int64_t tenant,
                              const struct job_spec *spec, struct error *error);

/* The calls of store_ops. */
enum status tenants_set(struct store *base, const struct tenant *tenant, uint32_t settings,
                        struct error *error);
enum status tenants_page(struct store *base, const char *after, struct tenant *out, uint32_t max,
                         uint32_t *count, struct error *error);
enum status tenants_sessions(struct store *base, const char *name, int64_t *most,
                             struct error *error);
enum status tenants_of_suite(struct store *base, const char *suite_id, char name[LIMIT_ID_BYTES],
                             struct error *error);

#endif
