/*
 * Turns between tenants and suites. Goal: tenants that have work get cost by their weights,
 * whatever their suites are; a tenant's suites get it by theirs; and without tenants the order is
 * that of plain deficit round-robin over suites; classes share by theirs, and wait boundedly; who
 * makes way for a higher class is who has the least to lose.
 * Method: random suites and jobs, claims that take what fits; shares over long runs; and the old
 * single round-robin, written down again, played beside it.
 */
#include "base/rng.h"
#include "base/units.h"
#include "store/turns/handback.h"
#include "store/turns/turns.h"
#include "tests/harness.h"

#include <stdlib.h>
#include <string.h>

enum { SUITES_MAX = 12, TENANTS = 4, POOL = 1 };

/* A suite with jobs without end, of which `head` is the next one's cost. */
struct made {
    int64_t tenant;
    enum suite_class of_class;
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
    const struct turns_account now = {.pool = POOL,
                                      .id = index + 1,
                                      .tenant = suite->tenant,
                                      .of_class = suite->of_class,
                                      .weight = suite->weight};
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

/* ---- classes ---- */

/* Random suites of three classes, of one tenant or of two; `cheap`: jobs of those that are not
 * mined cost one unit, and those that are a hundred times that. */
static void make_classes(struct bench *bench, uint64_t seed, int tenants, bool cheap)
{
    make_bench(bench, seed, tenants);
    bench->suite_count = SUITES_MAX;
    bench->weights[1] = 1;
    for (int i = 0; i < SUITES_MAX; i++) {
        struct made *suite = &bench->suites[i];
        suite->tenant = i % tenants;
        suite->weight = 1 + (int64_t)draw(bench, 5);
        suite->of_class = (enum suite_class)(SUITE_REGRESSION + i / tenants % 3);
        suite->cost_max = cheap ? 1 : 1 + (int64_t)draw(bench, 20);
        next_head(bench, suite);
        suite->head *= cheap && suite->of_class == SUITE_MINING ? 100 : 1;
    }
}

/* Goal: under load classes of a tenant share cost by their weights, however many suites each has
 * and beside another tenant too; none waits for more jobs of the others than its bound; what one
 * does not use goes to the others, and one alone has everything. */
static void classes_share_and_wait_boundedly(void)
{
    for (uint64_t seed = 0; seed < 40; seed++) {
        bool cheap = seed % 4 == 3;
        int tenants = 1 + (int)(seed % 2);
        struct bench bench;
        struct turns turns = {.suites.count = 0};
        int64_t taken[SUITE_CLASS_COUNT] = {0};
        int64_t jobs[SUITE_CLASS_COUNT] = {0};
        int64_t waited[SUITE_CLASS_COUNT] = {0};
        int64_t total = 0;
        make_classes(&bench, seed, tenants, cheap);
        for (int i = 0; i < 20000; i++) {
            int64_t before = bench.taken[0];
            int index = turn(&turns, &bench);
            struct made *suite = &bench.suites[index];
            suite->head *= cheap && suite->of_class == SUITE_MINING ? 100 : 1;
            for (int k = SUITE_REGRESSION; suite->tenant == 0 && k < SUITE_CLASS_COUNT; k++) {
                waited[k] = k == (int)suite->of_class ? 0 : waited[k] + 1;
                EXPECT(waited[k] <= turns_class_wait((enum suite_class)k) + 2);
            }
            taken[suite->of_class] += bench.taken[0] - before;
            jobs[suite->of_class] += suite->tenant == 0;
            total += bench.taken[0] - before;
        }
        for (int k = SUITE_REGRESSION; !cheap && k < SUITE_CLASS_COUNT; k++) {
            double share = (double)total * (double)turns_class_weight((enum suite_class)k) / 13.0;
            EXPECT_NEAR((double)taken[k] / share, 1.0, 0.1);
        }
        EXPECT(!cheap || jobs[SUITE_MINING] > 20);
        for (int only = SUITE_REGRESSION; only < SUITE_CLASS_COUNT; only++) {
            for (int i = 0; i < SUITES_MAX; i++) {
                bench.suites[i].idle = (int)bench.suites[i].of_class != only;
            }
            for (int i = 0; i < 500; i++) {
                EXPECT_INT(bench.suites[turn(&turns, &bench)].of_class, only);
            }
        }
        turns_finish(&turns);
    }
}

/* Goal: who comes while a large share is being served is seen at once, where that is told. */
static void news_are_heard_within_a_share(void)
{
    struct bench bench;
    struct turns turns = {.suites.count = 0};
    make_classes(&bench, 5, 1, false);
    for (int i = 0; i < SUITES_MAX; i++) {
        bench.suites[i].idle = i != 2;
        bench.suites[i].cost_max = bench.suites[i].head = 1;
        bench.suites[i].weight = 100;
    }
    EXPECT_INT(bench.suites[2].of_class, SUITE_MINING);
    EXPECT_INT(bench.suites[1].of_class, SUITE_INTERACTIVE);
    EXPECT_INT(turn(&turns, &bench), 2);
    bench.suites[1].idle = false;
    EXPECT_INT(turn(&turns, &bench), 2); /* goes on with its share */
    turns.news = true;
    EXPECT(turns_served(&turns, POOL) == NULL);
    EXPECT_INT(turn(&turns, &bench), 1);
    EXPECT(turns_served(&turns, POOL) != NULL);
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

/* ---- hand-backs ---- */

enum { HELD = 12, NOW_S = 1000 };

static void make_look(struct bench *bench, struct handback_look *look)
{
    *look = (struct handback_look){.pool = POOL, .count = (uint32_t)draw(bench, 5)};
    for (uint32_t i = 0; i < look->count; i++) {
        look->rows[i] = (struct handback_waiting){
            .suite = 1 + (int64_t)i,
            .tenant = (int64_t)draw(bench, 2),
            .of_class = draw(bench, 2) == 0 ? SUITE_INTERACTIVE : SUITE_REGRESSION,
            .counted = draw(bench, 8) > 0,
            .waiting = (int64_t)draw(bench, 5),
            .asked = (int64_t)draw(bench, 3), /* more may have been asked for than wait now */
            .since_ns = (NOW_S - (int64_t)draw(bench, 20)) * NS_PER_S};
    }
}

static void make_held(struct bench *bench, struct handback_job *jobs)
{
    for (int i = 0; i < HELD; i++) {
        jobs[i] =
            (struct handback_job){.id = 1 + i,
                                  .tenant = (int64_t)draw(bench, 2),
                                  .of_class = (enum suite_class)draw(bench, SUITE_CLASS_COUNT),
                                  .claimed_ns = (NOW_S - (int64_t)draw(bench, 20)) * NS_PER_S,
                                  .ticks = (int64_t)draw(bench, 100),
                                  .ticks_planned = draw(bench, 2) == 0 ? 100 : 0,
                                  .times = (int64_t)draw(bench, HANDBACK_TIMES_MAX + 1),
                                  .asked = draw(bench, 6) == 0};
    }
}

/* Whether the job could make way for the row's, but for how many wait. */
static bool may_yield(const struct handback_waiting *row, const struct handback_job *job)
{
    return row->tenant == job->tenant && !job->asked && job->times < HANDBACK_TIMES_MAX &&
           suite_class_rank(row->of_class) < suite_class_rank(job->of_class) &&
           job->claimed_ns < row->since_ns &&
           NOW_S * NS_PER_S - row->since_ns >= HANDBACK_IDLE_NS &&
           (job->ticks_planned == 0 ||
            job->ticks_planned - job->ticks >= job->ticks_planned / HANDBACK_LAST_PART);
}

/* Goal: who makes way is allowed to, for one job each; nobody who could, and has less to lose or is
 * of a lower class, goes on instead; and none goes on while one waits that it could make way for.
 */
static void who_makes_way_has_the_least_to_lose(void)
{
    int64_t chosen = 0;
    for (uint64_t seed = 0; seed < 5000; seed++) {
        struct bench bench = {.random = seed};
        struct handback_look look, before;
        struct handback_job jobs[HELD];
        int64_t taken[8] = {0};
        make_look(&bench, &look);
        make_held(&bench, jobs);
        before = look;
        handback_choose(&look, jobs, HELD, NOW_S * NS_PER_S);
        for (int i = 0; i < HELD; i++) {
            if (jobs[i].for_suite != 0) {
                EXPECT(may_yield(&before.rows[jobs[i].for_suite - 1], &jobs[i]));
                taken[jobs[i].for_suite - 1]++;
                chosen++;
            }
        }
        for (uint32_t r = 0; r < look.count; r++) {
            const struct handback_waiting *row = &look.rows[r];
            EXPECT_INT(row->asked, before.rows[r].asked + taken[r]);
            EXPECT(taken[r] == 0 || (row->counted && row->asked <= row->waiting));
            for (int i = 0; i < HELD; i++) {
                bool idle = jobs[i].for_suite == 0 && may_yield(&before.rows[r], &jobs[i]);
                EXPECT(!idle || !row->counted || row->asked >= row->waiting);
                EXPECT(!idle || !handback_could(&look, &jobs[i], NOW_S * NS_PER_S));
                for (int k = 0; idle && k < HELD; k++) {
                    bool dearer =
                        jobs[k].for_suite == 1 + (int64_t)r &&
                        (suite_class_rank(jobs[k].of_class) < suite_class_rank(jobs[i].of_class) ||
                         (jobs[k].of_class == jobs[i].of_class && jobs[k].ticks > jobs[i].ticks));
                    EXPECT(!dearer);
                }
            }
        }
    }
    EXPECT(chosen > 1000);
}

/* Goal: a class waits since its first suite of the tenant came, for as long as one is there. */
static void a_class_waits_since_its_first_suite_came(void)
{
    struct handback_look before = {.count = 0};
    struct handback_look now = {.count = 2,
                                .rows = {{.suite = 1, .of_class = SUITE_INTERACTIVE},
                                         {.suite = 2, .of_class = SUITE_REGRESSION}}};
    handback_keep(&now, &before, 50);
    EXPECT(now.rows[0].since_ns == 50 && now.rows[1].since_ns == 50);
    before = now;
    now.rows[0].suite = 3; /* another of the class in its place */
    now.rows[1].tenant = 1;
    handback_keep(&now, &before, 60);
    EXPECT_INT(now.rows[0].since_ns, 50);
    EXPECT_INT(now.rows[1].since_ns, 60);
    before = (struct handback_look){.count = 0};
    handback_keep(&now, &before, 70);
    EXPECT(now.rows[0].since_ns == 70 && now.rows[1].since_ns == 70);
}

/* Goal: one job for one. What was asked for counts until a job less waits, however often is looked,
 * and whatever became of the slot; what another process asked for counts too. */
static void a_slot_that_did_not_help_frees_no_second_one(void)
{
    struct handback_look before = {
        .count = 1, .rows = {{.suite = 4, .of_class = SUITE_INTERACTIVE, .since_ns = 1}}};
    struct handback_look now = before;
    struct handback_job job = {.id = 1, .of_class = SUITE_MINING, .claimed_ns = 0};
    handback_count(&now.rows[0], 1, 0);
    EXPECT(handback_could(&now, &job, NS_PER_S));
    handback_choose(&now, &job, 1, NS_PER_S);
    EXPECT_INT(job.for_suite, 4);
    for (int64_t id = 2; id < 6; id++) { /* the attempt was handed back, and the job waits */
        const struct handback_look was = now;
        now = before;
        handback_keep(&now, &was, 1);
        handback_count(&now.rows[0], 1, 0);
        job = (struct handback_job){.id = id, .of_class = SUITE_MINING};
        handback_choose(&now, &job, 1, NS_PER_S);
        EXPECT_INT(job.for_suite, 0);
    }
    handback_count(&now.rows[0], 3, 0);
    handback_count(&now.rows[0], 2, 0); /* one of three was claimed */
    EXPECT_INT(now.rows[0].asked, 0);
    handback_count(&now.rows[0], 2, 2);
    EXPECT_INT(now.rows[0].asked, 2);
    EXPECT(!handback_could(&now, &job, NS_PER_S));
}

int main(void)
{
    return TEST_RUN(TEST(shares_follow_weights), TEST(who_comes_back_begins_anew),
                    TEST(limits_hold_tenants_up), TEST(classes_share_and_wait_boundedly),
                    TEST(news_are_heard_within_a_share), TEST(without_tenants_nothing_changes),
                    TEST(who_makes_way_has_the_least_to_lose),
                    TEST(a_class_waits_since_its_first_suite_came),
                    TEST(a_slot_that_did_not_help_frees_no_second_one));
}
