/*
 * Claiming: which queued jobs a worker gets.
 *
 * Order: jobs that share the worker's prefix (same map and model: it has the context at hand), then
 * deficit round-robin over suites (Shreedhar & Varghese, SIGCOMM '95) with what rollouts cost as
 * the unit, then priority, then age. Affinity may run a suite into debt, by at most FAIRNESS_DEBT
 * quanta; the other suites then catch up, so it costs no suite its share.
 */
#ifndef SWERVE_STORE_SQLITE_CLAIM_H
#define SWERVE_STORE_SQLITE_CLAIM_H

#include "base/status.h"
#include "schemas/outcome.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    FAIRNESS_QUANTUM = 8, /* units of cost per round and unit of weight */
    FAIRNESS_DEBT = 4,    /* quanta */
};

/* Cost of a job: its rollouts in units of one in the object world. A learned world takes about
 * as many times longer for a tick; without that a suite of a few quick jobs would wait for as many
 * slow ones of another. */
int64_t claim_cost(enum tier tier, int64_t rollouts);

struct fairness_row {
    int64_t pool;
    int64_t suite;
    int64_t deficit; /* cost of what it may still take this round; negative: debt */
    int64_t weight;
    int64_t head_cost; /* of its next job; 0: none seen in this pass */
    bool served;       /* the round-robin stands here */
};

/* Lives in memory: a restart forgives at most one round. Suites without claimable jobs are dropped
 * when they are met. */
struct fairness {
    struct fairness_row *rows;
    size_t count;
};

void fairness_finish(struct fairness *fairness);

enum { CLAIM_TIME_BUCKETS = 32768, CLAIM_TIME_WAYS = 8 };

struct claim_time {
    int64_t job_id; /* 0: none */
    int64_t epoch;
    int64_t claimed_ns;
};

/* When attempts were claimed, so that none bills more time than has passed since. In memory, as
 * leases are: attempts from before the store was opened are not held against it. In a bucket that
 * is full the oldest gives way, after 260,000 claims or so. */
struct claim_times {
    struct claim_time *rows; /* CLAIM_TIME_BUCKETS * CLAIM_TIME_WAYS */
    uint64_t capped;         /* bills that were cut down */
};

/* Of the device time that an attempt asks to be charged, what can be: no more than has passed since
 * its claim by the store's clock, as far as clocks of different machines agree. A worker drives
 * what it holds in one thread or on one device, so honest ones never ask for more. Writer thread.
 */
struct sql_store;
int64_t claim_billable_ns(struct sql_store *store, int64_t job_id, int64_t epoch, int64_t asked_ns);

/* A worker's id, pool and device are there and fit. */
struct store_worker;
enum status claim_worker_check(const struct store_worker *worker, struct error *error);

#endif
