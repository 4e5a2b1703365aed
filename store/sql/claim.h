/*
 * Claiming: which queued jobs a worker gets.
 *
 * Order: jobs that share the worker's prefix (same map and model: it has the context at hand), then
 * the tenant and the suite whose turn it is (store/turns/turns.h), then priority, then age.
 */
#ifndef SWERVE_STORE_SQLITE_CLAIM_H
#define SWERVE_STORE_SQLITE_CLAIM_H

#include "base/status.h"
#include "schemas/outcome.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A suite's jobs in front of this one are no longer free, or were held by another process. */
struct claim_place {
    int64_t pool;
    int64_t suite;
    int64_t priority;
    int64_t id;
    bool end; /* nor are those behind it */
};

enum { CLAIM_PLACES = 32 };

/* Progress of one transaction's claims, where processes claim side by side: what others
 * hold is stepped over once, not by each claim. What has become free since then is the next
 * transaction's. Writer thread. */
struct claim_places {
    int64_t transaction; /* group_commit_transaction */
    uint32_t count;
    struct claim_place rows[CLAIM_PLACES]; /* further suites are looked through by each claim */
};

struct sql_store;

/* Now, as a row keeps it of a claim; never 0, which says that nothing is known. */
int64_t claim_time_ns(const struct sql_store *store);

/* Of the device time that an attempt asks to be charged, what can be: no more than has passed since
 * its claim by the store's wall clock, as far as clocks of different machines agree. claimed_ns: of
 * its row (jobs, attempts); 0: not known, so nothing has. A worker drives what it holds in one
 * thread or on one device, so honest ones never ask for more. Writer thread. */
int64_t claim_billable_ns(struct sql_store *store, int64_t job_id, int64_t claimed_ns,
                          int64_t asked_ns);

#endif
