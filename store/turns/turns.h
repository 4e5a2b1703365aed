/*
 * Turns: whose queued jobs a claim takes next, between tenants and between a tenant's suites. Pure:
 * accounts in memory.
 *
 * On both levels deficit round-robin (Shreedhar & Varghese, SIGCOMM '95) with what rollouts cost as
 * the unit: a tenant's next job is the one that its suites' turns come to. Suites that are nobody's
 * are one tenant more, of weight 1; where no other has jobs, tenants change nothing.
 *
 * Jobs that share a worker's prefix are taken out of turn. They may run a suite, and where there
 * are others its tenant, into debt by TURNS_DEBT quanta; the others then catch up.
 *
 * A tenant may have a limit of what is leased at once. While its next job does not fit under it,
 * the tenant waits whole: no later job passes that one, no share is saved up, and the accounts of
 * its suites stay as they are. With nothing leased any job fits.
 */
#ifndef SWERVE_STORE_TURNS_TURNS_H
#define SWERVE_STORE_TURNS_TURNS_H

#include "base/status.h"
#include "schemas/outcome.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TURNS_QUANTUM = 8, /* units of cost per round and unit of weight */
    TURNS_DEBT = 4,    /* quanta */
};

/* Units of a rollout, of which one in the object world has one. A learned world takes about as many
 * times longer for a tick; without that a suite of a few quick jobs would wait for as many slow
 * ones of another. As macros, since SQL is made of them too. */
#define TURNS_UNITS_STUDENT 128
#define TURNS_UNITS_TEACHER 512

/* Cost of a job: its rollouts in these units. */
int64_t turns_cost(enum tier tier, int64_t rollouts);

/* A suite's, or a tenant's. */
struct turns_account {
    int64_t pool;
    int64_t id;
    int64_t tenant;    /* a suite's: 0: nobody; a tenant's: its own id */
    int64_t deficit;   /* cost of what it may still take this round; negative: debt */
    int64_t weight;    /* share */
    int64_t head_cost; /* of its next job; 0: none seen in this pass */
    int64_t units_max; /* a tenant's: most cost of jobs that are leased at once; 0: any */
    int64_t units;     /* .. and of those that are, as last told */
    bool held;         /* a tenant's: its next job waits until some of these have ended */
    bool served;       /* the round-robin stands here */
    bool waiting;      /* a tenant's: it had jobs when all was seen last, or has been met since */
};

struct turns_list {
    struct turns_account *rows;
    size_t count;
};

/* Lives in memory: a restart forgives at most one round. Suites without claimable jobs are dropped
 * when they are met. Begins as zeros. */
struct turns {
    struct turns_list suites;
    struct turns_list tenants;
};

void turns_finish(struct turns *turns);

/* The account of a suite (`now`: its pool, id, tenant and weight), which is made if it is new;
 * valid until the next call of this. NO_MEMORY. */
enum status turns_suite(struct turns *turns, const struct turns_account *now, int64_t tenant_weight,
                        struct turns_account **out, struct error *error);

/* The limit of a suite's tenant (0: none), and the cost of what it has leased. */
void turns_limit(struct turns *turns, const struct turns_account *suite, int64_t units_max,
                 int64_t units);
bool turns_limited(const struct turns *turns, const struct turns_account *suite);
/* A tenant of the pool was held up by its limit in the last pass. */
bool turns_held(const struct turns *turns, int64_t pool);

/* The suite of the pool that is being served; NULL: none. */
struct turns_account *turns_served(struct turns *turns, int64_t pool);

/* May it take a job of this cost in its turn; and one out of turn? */
bool turns_fits(const struct turns *turns, const struct turns_account *suite, int64_t cost);
bool turns_may_borrow(const struct turns *turns, const struct turns_account *suite, int64_t cost);
/* It took one. */
void turns_take(struct turns *turns, struct turns_account *suite, int64_t cost);

/* Begins a pass over the pool's suites, whose head_cost is then set. */
void turns_pass(struct turns *turns, int64_t pool);

/* Ends it: the suite whose turn it is, its next job paid for; NULL: none has a job. `whole`: the
 * pass saw all that has jobs. */
struct turns_account *turns_next(struct turns *turns, int64_t pool, bool whole);

#endif
