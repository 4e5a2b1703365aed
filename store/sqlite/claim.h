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

/* What a job counts: its rollouts in units of one in the object world. A learned world takes about
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
    size_t capacity;
};

void fairness_finish(struct fairness *fairness);

/* A worker's id, pool and device are there and fit. */
struct store_worker;
enum status claim_worker_check(const struct store_worker *worker, struct error *error);

#endif
