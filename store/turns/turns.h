/*
 * Turns: whose queued jobs a claim takes next, between tenants, between the classes of a tenant's
 * suites and between the suites of a class. Pure: accounts in memory.
 *
 * On all three levels deficit round-robin (Shreedhar & Varghese, SIGCOMM '95) with what rollouts
 * cost as the unit: a tenant's next job is the one that its classes' turns come to, and a class's
 * the one that its suites' turns come to. Suites that are nobody's are one tenant more, of
 * weight 1. Where no other has jobs, tenants change nothing, and neither do classes.
 *
 * Classes wait boundedly. While one has jobs, at most turns_class_wait() jobs of the tenant's other
 * classes are taken before its own next one, whatever that costs. An interactive one that comes
 * anew is next.
 *
 * Jobs that share a worker's prefix are taken out of turn. They may run a suite, and where there
 * are others its class and its tenant, into debt by TURNS_DEBT quanta; the others then catch up.
 * None are taken so past an interactive class that has its turn.
 *
 * A tenant may have a limit of what is leased at once. While its next job does not fit under it,
 * the tenant waits whole: no later job passes that one, no share is saved up, and the accounts of
 * its suites stay as they are. With nothing leased any job fits.
 */
#ifndef SWERVE_STORE_TURNS_TURNS_H
#define SWERVE_STORE_TURNS_TURNS_H

#include "base/status.h"
#include "schemas/job.h"

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

/* Share of a class beside a tenant's others, and the most jobs of those that pass it by. */
int64_t turns_class_weight(enum suite_class of);
int64_t turns_class_wait(enum suite_class of);

/* A suite's, a class's of a tenant, or a tenant's. */
struct turns_account {
    int64_t pool;
    int64_t id;
    int64_t tenant; /* 0: nobody; a tenant's: its own id */
    int64_t ring;   /* id of whom it is one of: a suite's its class, a class's its tenant */
    enum suite_class of_class; /* a suite's, and a class's own; REGRESSION where it is not set */
    int64_t deficit;           /* cost of what it may still take this round; negative: debt */
    int64_t weight;            /* share */
    int64_t head_cost;         /* of its next job; 0: none seen in this pass */
    int64_t units_max;         /* a tenant's: most cost of jobs that are leased at once; 0: any */
    int64_t units;             /* .. and of those that are, as last told */
    bool held;                 /* a tenant's: its next job waits until some of these have ended */
    bool served;               /* the round-robin stands here */
    bool waiting;   /* a tenant's, a class's: it had jobs when all was seen last, or has been met
                       since */
    bool barred;    /* a class's: the last pass saw no job of it */
    int64_t passed; /* a class's: jobs of the tenant's others that were taken while it waited */
};

struct turns_list {
    struct turns_account *rows;
    size_t count;
};

/* Lives in memory: a restart forgives at most one round. Suites without claimable jobs are dropped
 * when they are met. Begins as zeros. */
struct turns {
    struct turns_list suites;
    struct turns_list classes;
    struct turns_list tenants;
    bool news; /* somebody came who is not to wait until who is served has had his share */
};

void turns_finish(struct turns *turns);

/* The account of a suite (`now`: its pool, id, tenant, class and weight), which is made if it is
 * new; valid until the next call of this. NO_MEMORY. */
enum status turns_suite(struct turns *turns, const struct turns_account *now, int64_t tenant_weight,
                        struct turns_account **out, struct error *error);

/* The limit of a suite's tenant (0: none), and the cost of what it has leased. */
void turns_limit(struct turns *turns, const struct turns_account *suite, int64_t units_max,
                 int64_t units);
bool turns_limited(const struct turns *turns, const struct turns_account *suite);
/* A tenant of the pool was held up by its limit in the last pass. */
bool turns_held(const struct turns *turns, int64_t pool);

/* The suite of the pool that is being served; NULL: none, or there are news. */
struct turns_account *turns_served(struct turns *turns, int64_t pool);

/* May it take a job of this cost in its turn; and one out of turn? */
bool turns_fits(const struct turns *turns, const struct turns_account *suite, int64_t cost);
bool turns_may_borrow(const struct turns *turns, const struct turns_account *suite, int64_t cost);
/* May it, whatever the accounts say: its tenant's limit alone is asked. */
bool turns_has_room(const struct turns *turns, const struct turns_account *suite, int64_t cost);
/* It took one. */
void turns_take(struct turns *turns, struct turns_account *suite, int64_t cost);

/* Begins a pass over the pool's suites, whose head_cost is then set. */
void turns_pass(struct turns *turns, int64_t pool);

/* Ends it: the suite whose turn it is, its next job paid for; NULL: none has a job. `whole`: the
 * pass saw all that has jobs. */
struct turns_account *turns_next(struct turns *turns, int64_t pool, bool whole);

#endif
