/*
 * Turns between tenants and suites. Goal: tenants that have work get cost by their weights,
 * whatever their suites are; a tenant's suites get it by theirs; and without tenants the order is
 * that of plain deficit round-robin over suites. Method: random suites and jobs, claims that take
 * what fits; shares over long runs; and the old single round-robin, written down again, played
 * beside it.
 */
#include "base/rng.h"
#include "store/turns/turns.h"
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

enum { SUITES_MAX = 12, TENANTS = 4, POOL = 1 };

/* A suite with jobs without end, of which `head` is the next one's cost. */
struct made {
    int64_t tenant;
    int64_t weight;
    int64_t cost_max;
    int64_t head;
    int64_t taken;
    bool idle;
};

struct bench {
    uint64_t random;
    int suite_count;
    struct made suites[SUITES_MAX];
    int64_t weights[TENANTS];
    int64_t taken[TENANTS];
};

static uint64_t draw(struct bench *bench, uint64_t bound)
{
    bench->random = rng_mix(bench->random + 1);
    return (bench->random >> 16) % bound;
}

static void next_head(struct bench *bench, struct made *suite)
{
    suite->head = 1 + (int64_t)draw(bench, (uint64_t)suite->cost_max);
}

static void make_bench(struct bench *bench, uint64_t seed, int tenants)
{
    *bench = (struct bench){.random = seed};
    bench->suite_count = tenants + (int)draw(bench, (uint64_t)(SUITES_MAX - tenants + 1));
    for (int i = 0; i < TENANTS; i++) {
        bench->weights[i] = i == 0 ? 1 : 1 + (int64_t)draw(bench, 10);
    }
    for (int i = 0; i < bench->suite_count; i++) {
        bench->suites[i] = (struct made){.tenant = i % tenants,
                                         .weight = 1 + (int64_t)draw(bench, 5),
                                         .cost_max = 1 + (int64_t)draw(bench, 40)};
        next_head(bench, &bench->suites[i]);
    }
}

static struct turns_account *account_of(struct turns *turns, struct bench *bench, int index)
{
    const struct made *suite = &bench->suites[index];
    const struct turns_account now = {
        .pool = POOL, .id = index + 1, .tenant = suite->tenant, .weight = suite->weight};
    struct turns_account *row = NULL;
    struct error error;
    EXPECT_OK(turns_suite(turns, &now, bench->weights[suite->tenant], &row, &error), error);
    return row;
}

/* One turn as a claim has it: the suite that is served while it can pay, else a pass. Returns the
 * suite's index. */
static int turn(struct turns *turns, struct bench *bench)
{
    struct turns_account *row = turns_served(turns, POOL);
    if (row == NULL || bench->suites[row->id - 1].idle ||
        !turns_fits(turns, row, bench->suites[row->id - 1].head)) {
        turns_pass(turns, POOL);
        for (int i = 0; i < bench->suite_count; i++) {
            if (!bench->suites[i].idle) {
                account_of(turns, bench, i)->head_cost = bench->suites[i].head;
            }
        }
        row = turns_next(turns, POOL, true);
    }
    EXPECT(row != NULL);
    struct made *suite = &bench->suites[row->id - 1];
    EXPECT(turns_fits(turns, row, suite->head));
    turns_take(turns, row, suite->head);
    suite->taken += suite->head;
    bench->taken[suite->tenant] += suite->head;
    int index = (int)row->id - 1;
    next_head(bench, suite);
    return index;
}

static void shares_follow_weights(void)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct bench bench;
        struct turns turns = {.suites.count = 0};
        int64_t total = 0;
        int64_t weights = 0;
        make_bench(&bench, seed, TENANTS);
        for (int i = 0; i < 20000; i++) {
            turn(&turns, &bench);
        }
        for (int i = 0; i < TENANTS; i++) {
            total += bench.taken[i];
            weights += bench.weights[i];
        }
        for (int i = 0; i < TENANTS; i++) {
            double share = (double)total * (double)bench.weights[i] / (double)weights;
            EXPECT_NEAR((double)bench.taken[i] / share, 1.0, 0.02);
        }
        for (int i = 0; i < bench.suite_count; i++) {
            for (int j = 0; j < bench.suite_count; j++) {
                const struct made *a = &bench.suites[i];
                const struct made *b = &bench.suites[j];
                if (a->tenant == b->tenant) {
                    EXPECT_NEAR((double)a->taken / (double)a->weight /
                                    ((double)b->taken / (double)b->weight),
                                1.0, 0.1);
                }
            }
        }
        turns_finish(&turns);
    }
}

/* Who was away gets its share again from then on, and no more to make up for it. */
static void who_comes_back_begins_anew(void)
{
    struct bench bench;
    struct turns turns = {.suites.count = 0};
    make_bench(&bench, 1, 2);
    for (int i = 0; i < bench.suite_count; i++) {
        bench.suites[i].idle = bench.suites[i].tenant == 1;
    }
    for (int i = 0; i < 5000; i++) {
        turn(&turns, &bench);
    }
    EXPECT_INT(bench.taken[1], 0);
    bench.taken[0] = 0;
    for (int i = 0; i < bench.suite_count; i++) {
        bench.suites[i].idle = false;
    }
    for (int i = 0; i < 5000; i++) {
        turn(&turns, &bench);
    }
    double ratio = (double)bench.taken[1] / (double)bench.taken[0];
    EXPECT_NEAR(ratio / ((double)bench.weights[1] / (double)bench.weights[0]), 1.0, 0.05);
    turns_finish(&turns);
}

/* Tenant 1 may have few units leased. Goal: it never has more, but for a job that is alone; it gets
 * its share as soon as there is room, its suites get theirs under the limit, and nobody else waits.
 */
static void limits_hold_tenants_up(void)
{
    enum { LIMIT = 60, LEASES = 400 };
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct bench bench;
        struct turns turns = {.suites.count = 0};
        int64_t leased = 0;
        int64_t others = 0;
        make_bench(&bench, seed, 2);
        for (int i = 0; i < LEASES; i++) {
            for (int k = 0; k < bench.suite_count; k++) {
                turns_limit(&turns, account_of(&turns, &bench, k),
                            bench.suites[k].tenant == 1 ? LIMIT : 0, leased);
            }
            int64_t before = bench.taken[1];
            turn(&turns, &bench);
            int64_t cost = bench.taken[1] - before;
            EXPECT(leased == 0 || cost == 0 || leased + cost <= LIMIT);
            leased += cost;
            others += cost == 0;
            if (i % 50 == 49) { /* all that is leased has ended */
                EXPECT(leased > 0);
                leased = 0;
            }
        }
        EXPECT(others > LEASES / 2); /* who has no limit takes what is left */
        for (int k = 0; k < bench.suite_count; k++) {
            EXPECT(bench.suites[k].taken > 0);
        }
        turns_finish(&turns);
    }
}

/* ---- plain round-robin over suites ---- */

struct plain {
    int64_t deficit[SUITES_MAX];
    int served; /* -1: none */
};

static bool ring_before(int start, int a, int b)
{
    return (a <= start) != (b <= start) ? b <= start : a < b;
}

static int plain_turn(struct plain *plain, const struct bench *bench)
{
    int best = -1;
    int64_t rounds = 0;
    int start = plain->served;
    if (start >= 0 && plain->deficit[start] >= bench->suites[start].head) {
        plain->deficit[start] -= bench->suites[start].head;
        return start;
    }
    for (int i = 0; i < bench->suite_count; i++) {
        int64_t quantum = TURNS_QUANTUM * bench->suites[i].weight;
        int64_t needed = (bench->suites[i].head - plain->deficit[i] + quantum - 1) / quantum;
        needed = needed < 1 ? 1 : needed;
        if (best < 0 || needed < rounds || (needed == rounds && ring_before(start, i, best))) {
            best = i;
            rounds = needed;
        }
    }
    for (int i = 0; i < bench->suite_count; i++) {
        bool visited = i == best || ring_before(start, i, best);
        plain->deficit[i] +=
            TURNS_QUANTUM * bench->suites[i].weight * (visited ? rounds : rounds - 1);
    }
    plain->served = best;
    plain->deficit[best] -= bench->suites[best].head;
    return best;
}

static void without_tenants_nothing_changes(void)
{
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct bench bench;
        struct turns turns = {.suites.count = 0};
        struct plain plain = {.served = -1};
        make_bench(&bench, seed, 1);
        for (int i = 0; i < 2000; i++) {
            int expected = plain_turn(&plain, &bench);
            EXPECT_INT(turn(&turns, &bench), expected);
        }
        turns_finish(&turns);
    }
}

int main(void)
{
    return TEST_RUN(TEST(shares_follow_weights), TEST(who_comes_back_begins_anew),
                    TEST(limits_hold_tenants_up), TEST(without_tenants_nothing_changes));
}
