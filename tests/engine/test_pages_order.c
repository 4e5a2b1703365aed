/*
 * Goal: the pool moves the page that it says it does, and saying so is worth it.
 * Method: rollouts come, fork, wait and go on in the order in which the runner has them, in trees
 * of random shapes. A model of the rule, which looks through all pages for the next one to leave,
 * must count as many moves as the pool after every tick. Beside it run two others over the same
 * references: "the page that became cold first", and the best there can be, which looks into the
 * list of those who wait and takes what is wanted last (Belady, 1966).
 */
#include "base/check.h"
#include "base/rng.h"
#include "engine/learned/pages.h"
#include "tests/engine/pages_account.h"
#include "tests/harness.h"

#include <stdlib.h>

enum {
    PAGES = 1 << 11,
    BYTES = 64,
    SLAB_TICKS = 4,
    SLOTS_MAX = 8,
    ROLLOUTS = 4096,
    WAITING_MAX = 64, /* branches; a main line waits when there are as many */
    LOADS = 120,
    LEAST_MOVES = 20, /* of a load that says something */
};

enum rule { RULE_POOL, RULE_PARKED_FIRST, RULE_BEST, RULE_COUNT };

struct load {
    uint32_t slots, window, mains, ticks;
    uint32_t fork_every, fork_times, branches; /* of a main line */
    uint32_t room;                             /* frames beyond what slots need */
};

struct rollout {
    bool main, parked;
    uint32_t tick;
    uint32_t forked; /* branches so far */
    struct page_table table;
    struct rollout *next; /* waiting */
};

/* A page as the models see it, by its number in the pool. */
struct model_page {
    uint32_t hot, cold, tick;
    uint64_t since;      /* when it became cold */
    uint64_t kind_since; /* or, later, was no longer shared */
    bool resident[RULE_COUNT];
};

struct bench {
    struct page_pool *pool;
    const struct load *load;
    uint32_t frames;
    struct rollout *slots[SLOTS_MAX];
    struct rollout *waiting; /* the next one first */
    uint32_t waiting_branches;
    struct rollout rollouts[ROLLOUTS];
    uint32_t rollout_count;
    struct model_page pages[PAGES];
    uint32_t page_end; /* numbers below this were in use */
    uint32_t resident[RULE_COUNT];
    uint64_t moves[RULE_COUNT];
    uint64_t clock;
    uint64_t random;
};

static uint32_t draw(uint64_t *random, uint32_t below)
{
    *random = rng_mix(*random + 1);
    return (uint32_t)(*random >> 20) % below;
}

/* ---- the models ---- */

/* Number of those who wait that go on before the first one that wants the page. */
static uint64_t wanted_after(const struct bench *bench, uint32_t page)
{
    uint64_t before = 0;
    for (const struct rollout *r = bench->waiting; r != NULL; r = r->next, before++) {
        for (uint32_t i = 0; r->parked && i < r->table.count; i++) {
            if (r->table.page[i] == page) {
                return before;
            }
        }
    }
    return before;
}

/* The page with the least key leaves first. */
struct key {
    uint64_t first, second;
};

static struct key key_of(const struct bench *bench, enum rule rule, uint32_t index)
{
    const struct model_page *page = &bench->pages[index];
    if (rule == RULE_POOL) {
        uint64_t shared = page->cold > 1;
        return (struct key){shared << 32 | page->tick / SLAB_TICKS, page->kind_since};
    }
    if (rule == RULE_BEST) {
        return (struct key){UINT64_MAX - wanted_after(bench, index), page->since};
    }
    return (struct key){0, page->since};
}

/* One more page in a model's memory; when that is full, another one leaves. */
static void model_enter(struct bench *bench, enum rule rule, uint32_t index)
{
    struct key least = {UINT64_MAX, UINT64_MAX};
    uint32_t leaves = PAGES;
    for (uint32_t i = 0; bench->resident[rule] == bench->frames && i < bench->page_end; i++) {
        const struct model_page *page = &bench->pages[i];
        if (page->resident[rule] && page->hot == 0 && page->cold > 0) {
            struct key key = key_of(bench, rule, i);
            if (key.first < least.first ||
                (key.first == least.first && key.second < least.second)) {
                least = key;
                leaves = i;
            }
        }
    }
    if (bench->resident[rule] == bench->frames) {
        CHECK(leaves < PAGES);
        bench->pages[leaves].resident[rule] = false;
        bench->resident[rule]--;
        bench->moves[rule]++;
    }
    bench->pages[index].resident[rule] = true;
    bench->resident[rule]++;
}

/* After a reference went. */
static void model_settle(struct bench *bench, uint32_t index, bool became_cold)
{
    struct model_page *page = &bench->pages[index];
    page->kind_since = ++bench->clock;
    page->since = became_cold ? page->kind_since : page->since;
    for (enum rule rule = 0; page->hot + page->cold == 0 && rule < RULE_COUNT; rule++) {
        bench->resident[rule] -= page->resident[rule];
        page->resident[rule] = false;
    }
}

/* ---- both at once ---- */

static void release(struct bench *bench, struct rollout *rollout)
{
    struct page_table table = rollout->table;
    page_table_release(bench->pool, &rollout->table);
    for (uint32_t i = 0; i < table.count; i++) {
        if (--bench->pages[table.page[i]].hot == 0) {
            model_settle(bench, table.page[i], true);
        }
    }
}

static void drop(struct bench *bench, struct rollout *rollout)
{
    struct page_table table = rollout->table;
    page_table_drop(bench->pool, &rollout->table);
    for (uint32_t i = 0; i < table.count; i++) {
        struct model_page *page = &bench->pages[table.page[i]];
        if (--page->cold <= 1 && page->hot == 0) {
            model_settle(bench, table.page[i], false);
        }
    }
}

static void park(struct bench *bench, const struct rollout *from, struct rollout *to)
{
    struct page_table table;
    EXPECT(page_table_park(bench->pool, &from->table, &table));
    for (uint32_t i = 0; i < table.count; i++) {
        bench->pages[table.page[i]].cold++;
    }
    to->table = table;
    to->parked = true;
}

static void restore(struct bench *bench, struct rollout *rollout)
{
    EXPECT(page_table_restore(bench->pool, &rollout->table));
    const struct page_table *table = &rollout->table;
    for (uint32_t i = 0; i < table->count; i++) {
        bench->pages[table->page[i]].hot++;
        bench->pages[table->page[i]].cold--;
    }
    for (uint32_t i = 0; i < table->count; i++) {
        for (enum rule rule = 0; rule < RULE_COUNT; rule++) {
            if (!bench->pages[table->page[i]].resident[rule]) {
                model_enter(bench, rule, table->page[i]);
            }
        }
    }
    rollout->parked = false;
}

static void tick(struct bench *bench, struct rollout *rollout)
{
    uint32_t page = page_take(bench->pool, rollout->tick);
    CHECK(page < PAGES);
    bench->page_end = page < bench->page_end ? bench->page_end : page + 1;
    memset(page_write(bench->pool, page), (int)rollout->tick, BYTES);
    page_commit(bench->pool, page);
    bench->pages[page] = (struct model_page){.hot = 1, .tick = rollout->tick};
    for (enum rule rule = 0; rule < RULE_COUNT; rule++) {
        model_enter(bench, rule, page);
    }
    struct page_table before = rollout->table;
    page_table_push(bench->pool, &rollout->table, page, bench->load->window);
    for (uint32_t i = bench->load->window - 1; i < before.count; i++) {
        if (--bench->pages[before.page[i]].hot == 0) {
            model_settle(bench, before.page[i], true);
        }
    }
    rollout->tick++;
}

/* ---- the runner's order ---- */

static struct rollout *new_rollout(struct bench *bench)
{
    CHECK(bench->rollout_count < ROLLOUTS);
    struct rollout *rollout = &bench->rollouts[bench->rollout_count++];
    *rollout = (struct rollout){0};
    return rollout;
}

static int free_slot(const struct bench *bench)
{
    for (uint32_t i = 0; i < bench->load->slots; i++) {
        if (bench->slots[i] == NULL) {
            return (int)i;
        }
    }
    return -1;
}

static void fill_slots(struct bench *bench)
{
    int slot;
    while (bench->waiting != NULL && (slot = free_slot(bench)) >= 0) {
        struct rollout *rollout = bench->waiting;
        bench->waiting = rollout->next;
        bench->waiting_branches -= !rollout->main;
        if (!rollout->main && draw(&bench->random, 16) == 0) { /* its job was cancelled */
            drop(bench, rollout);
            continue;
        }
        if (rollout->parked) {
            restore(bench, rollout);
        }
        bench->slots[slot] = rollout;
    }
}

/* Branches that are due: into free slots, else in front of those who wait; the main line goes
 * behind the parked ones when too many wait. */
static void fork_due(struct bench *bench, uint32_t slot)
{
    struct rollout *main = bench->slots[slot];
    const struct load *load = bench->load;
    uint32_t times = main->tick / load->fork_every;
    times = times < load->fork_times ? times : load->fork_times;
    while (main->forked < times * load->branches) {
        int free = free_slot(bench);
        if (free < 0 && bench->waiting_branches == WAITING_MAX) {
            park(bench, main, main);
            struct rollout hot = {.table = main->table};
            release(bench, &hot);
            struct rollout **at = &bench->waiting;
            while (*at != NULL && (*at)->parked) {
                at = &(*at)->next;
            }
            main->next = *at;
            *at = main;
            bench->slots[slot] = NULL;
            return;
        }
        struct rollout *branch = new_rollout(bench);
        branch->tick = main->tick;
        if (free >= 0) {
            page_table_fork(bench->pool, &main->table, &branch->table);
            for (uint32_t i = 0; i < branch->table.count; i++) {
                bench->pages[branch->table.page[i]].hot++;
            }
            bench->slots[free] = branch;
        } else {
            park(bench, main, branch);
            branch->next = bench->waiting;
            bench->waiting = branch;
            bench->waiting_branches++;
        }
        main->forked++;
    }
}

static bool run_tick(struct bench *bench)
{
    bool any = false;
    fill_slots(bench);
    for (uint32_t i = 0; i < bench->load->slots; i++) {
        if (bench->slots[i] != NULL && bench->slots[i]->main) {
            fork_due(bench, i);
        }
    }
    for (uint32_t i = 0; i < bench->load->slots; i++) {
        struct rollout *rollout = bench->slots[i];
        if (rollout != NULL) {
            any = true;
            tick(bench, rollout);
            if (rollout->tick == bench->load->ticks) {
                release(bench, rollout);
                bench->slots[i] = NULL;
            }
        }
    }
    page_pool_settle(bench->pool);
    EXPECT(page_pool_consistent(bench->pool));
    EXPECT_INT(page_pool_stats(bench->pool).out, bench->moves[RULE_POOL]);
    return any || bench->waiting != NULL;
}

/* ---- tests ---- */

static void run_load(struct bench *bench, const struct load *load, uint64_t seed)
{
    struct error error;
    memset(bench, 0, sizeof *bench);
    bench->load = load;
    bench->random = seed;
    uint32_t hot_max = load->slots * (load->window + 1);
    bench->frames = hot_max + load->room;
    const struct page_pool_config config = {
        .page_bytes = BYTES,
        .bytes_max = (size_t)bench->frames * BYTES,
        .hot_max = hot_max,
        .parked_max = PAGES - hot_max,
        .heap_max = PAGES,
    };
    EXPECT_OK(page_pool_create(&config, &bench->pool, &error), error);
    for (uint32_t i = 0; i < load->mains; i++) {
        struct rollout *rollout = new_rollout(bench);
        rollout->main = true;
        rollout->next = bench->waiting;
        bench->waiting = rollout;
    }
    while (run_tick(bench)) {
    }
    EXPECT_INT(page_pool_stats(bench->pool).page_count, 0);
    page_pool_destroy(bench->pool);
}

static void trees_of_branches_move_few_pages(void)
{
    static const uint32_t windows[] = {4, 8, 12};
    static struct bench bench;
    uint64_t sum[RULE_COUNT] = {0};
    double ratio[RULE_COUNT] = {0};
    uint32_t counted = 0;
    uint32_t fewer = 0;
    uint32_t more = 0;
    uint64_t shape = 7;
    for (uint32_t i = 0; i < LOADS; i++) {
        const struct load load = {
            .slots = 1 + draw(&shape, SLOTS_MAX),
            .window = windows[draw(&shape, 3)],
            .mains = 1 + draw(&shape, 6),
            .ticks = 30 + draw(&shape, 40),
            .fork_every = 2 + draw(&shape, 8),
            .fork_times = 1 + draw(&shape, 10),
            .branches = 1 + draw(&shape, 12),
            .room = draw(&shape, 40),
        };
        run_load(&bench, &load, i);
        EXPECT(bench.moves[RULE_BEST] <= bench.moves[RULE_POOL]);
        if (bench.moves[RULE_PARKED_FIRST] < LEAST_MOVES) {
            continue;
        }
        counted++;
        double before = (double)bench.moves[RULE_PARKED_FIRST];
        fewer += (double)bench.moves[RULE_POOL] < 0.98 * before;
        more += (double)bench.moves[RULE_POOL] > 1.02 * before;
        for (enum rule rule = 0; rule < RULE_COUNT; rule++) {
            sum[rule] += bench.moves[rule];
            ratio[rule] += log((double)(bench.moves[rule] + 1) / (before + 1.0));
        }
    }
    double pool = exp(ratio[RULE_POOL] / counted);
    double best = exp(ratio[RULE_BEST] / counted);
    printf("# %u trees: pages that left memory, parked first %llu, the pool %llu, at best %llu; of "
           "a tree the pool moves %.3f (%u fewer, %u more), at best %.3f\n",
           counted, (unsigned long long)sum[RULE_PARKED_FIRST], (unsigned long long)sum[RULE_POOL],
           (unsigned long long)sum[RULE_BEST], pool, fewer, more, best);
    EXPECT(counted >= 30);
    EXPECT(pool < 0.95 && sum[RULE_POOL] < sum[RULE_PARKED_FIRST]);
    EXPECT(more * 5 < fewer);
}

int main(void)
{
    return TEST_RUN(TEST(trees_of_branches_move_few_pages));
}
