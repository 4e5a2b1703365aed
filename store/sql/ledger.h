/*
 * Ledger: what attempts cost, and the counters of suites. The only place where device time becomes
 * money.
 *
 * Exactness: an account (pool, device, price) carries the remainder of every division, so
 *   sum of entries = floor(sum of device_ns * price / NS_PER_HOUR)
 * holds at every moment for the attempts charged to it.
 */
#ifndef SWERVE_STORE_SQLITE_LEDGER_H
#define SWERVE_STORE_SQLITE_LEDGER_H

#include "schemas/job.h"
#include "store/door/invariants.h"
#include "store/sql/sqlite_db.h"

#include <stdbool.h>
#include <stdint.h>

/* Endings of an attempt, as stored. */
enum attempt_end {
    ATTEMPT_DONE = 0,
    ATTEMPT_FLAGGED,
    ATTEMPT_FAILED,
    ATTEMPT_RELEASED,
    ATTEMPT_LOST,  /* its worker vanished, or its job was cancelled: charged what it had reported */
    ATTEMPT_STALE, /* a lost one that reported after all, too late to count */
    ATTEMPT_END_COUNT
};

extern const char *const attempt_end_names[ATTEMPT_END_COUNT];

/* Jobs whose attempts the ledger has apart, as stored: those that count nowhere, and those that
 * count but in no rate, since they repeat others (audits) or make something. */
enum ledger_kind { LEDGER_RESULT = 0, LEDGER_AUDIT, LEDGER_SHADOW };
static inline enum ledger_kind ledger_kind_of(const struct job_spec *spec, bool shadow)
{
    bool apart = spec->audit_key[0] != '\0' || spec->makes[0] != '\0';
    return shadow ? LEDGER_SHADOW : apart ? LEDGER_AUDIT : LEDGER_RESULT;
}

struct tally; /* store/sql/tally.h */

/* micro-dollars of device_ns at a price, the remainder carried: pure. *carry in [0, NS_PER_HOUR).
 */
int64_t ledger_cost_uusd(int64_t device_ns, int64_t price_uusd_per_hour, int64_t *carry);

/* Of the operations that an attempt reports, those that its device time has room for: pure. */
int64_t ledger_mflop(int64_t device_ns, int64_t mflop);

/* An attempt that ends (or ends differently than first recorded). */
struct ledger_attempt {
    int64_t job_id;
    int64_t epoch;
    int64_t suite;
    int64_t worker;
    int64_t pool;
    const char *pool_name;
    const char *device;
    enum tier tier;
    enum ledger_kind kind;
    enum attempt_end end;
    int64_t claimed_ns; /* 0: not known */
    bool no_tenant;     /* its suite is known to be nobody's */
    bool budgeted;      /* its suite has a budget, or may have one */
    int64_t device_ns;
    int64_t metres_mm;
    int64_t mflop;
    int64_t escalated_job; /* 0: none */
    const char *artifact_hash;
    const char *error;
};

/* An attempt that was charged before. */
struct ledger_entry {
    bool found;
    enum attempt_end end;
    char worker_id[LIMIT_ID_BYTES];
    char device[LIMIT_ID_BYTES];
    int64_t pool;
    enum tier tier;
    int64_t device_ns;
    int64_t metres_mm;
    int64_t mflop;
    int64_t price_uusd_per_hour;
    int64_t cost_uusd;
    int64_t escalated_job;
    int64_t claimed_ns; /* 0: not known */
};

enum status ledger_entry_get(struct db *db, int64_t job_id, int64_t epoch,
                             struct ledger_entry *entry, struct error *error);

/* Device time that all attempts at the job were charged. */
enum status ledger_job_ns(struct db *db, int64_t job_id, int64_t *ns, struct error *error);

/* Charges an attempt that was not charged before, at the price in force. */
enum status ledger_charge(struct tally *tally, const struct ledger_attempt *attempt,
                          struct error *error);
/* Replaces how a charged attempt ended and charges only what is more than before. */
enum status ledger_recharge(struct tally *tally, const struct ledger_attempt *attempt,
                            const struct ledger_entry *before, struct error *error);

/* Price in force; STATUS_NOT_FOUND names what is missing. */
enum status ledger_price(struct db *db, const char *pool, const char *device,
                         int64_t *price_uusd_per_hour, struct error *error);

#endif
