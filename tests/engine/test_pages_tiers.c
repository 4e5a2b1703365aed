/*
 * Goal: pages go from the device to the host tier and on to the spill in the order that pages.h
 * says, come back from each with their bits, and what is read ahead spares a wait and nothing else.
 * Method: a device whose copies are late (elsewhere.h), and a spill whose reading thread stops at a
 * gate, so that a read is not begun, under way or done when the test says so. Random operations on
 * all of it are in test_pages.c.
 */
#include "base/check.h"
#include "engine/learned/pages.h"
#include "tests/engine/elsewhere.h"
#include "tests/engine/pages_account.h"
#include "tests/harness.h"

#include <pthread.h>
#include <stdlib.h>

enum { BYTES = PAGE_ALIGN, FRAMES = 2, PARKED = 8, STORED = 16, WHOLE = BYTES + ELSEWHERE_BYTES };

/* ---- a spill with a gate ---- */

struct gated_spill {
    struct {
        bool used;
        uint8_t data[WHOLE];
    } stored[STORED];
    uint32_t count, reads;
    bool damage_peeks, damage_reads;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    uint32_t begun, ended; /* peeks */
    uint32_t open;         /* how many may end */
};

static uint64_t gated_write(void *context, const void *data, size_t bytes)
{
    struct gated_spill *spill = context;
    uint64_t handle = 0;
    CHECK(bytes == WHOLE || bytes == BYTES);
    pthread_mutex_lock(&spill->mutex);
    for (uint64_t i = 0; i < STORED && handle == 0; i++) {
        if (!spill->stored[i].used) {
            spill->stored[i].used = true;
            memcpy(spill->stored[i].data, data, bytes);
            spill->count++;
            handle = i + 1;
        }
    }
    pthread_mutex_unlock(&spill->mutex);
    return handle;
}

static void gated_drop(void *context, uint64_t handle)
{
    struct gated_spill *spill = context;
    pthread_mutex_lock(&spill->mutex);
    CHECK(spill->stored[handle - 1].used);
    spill->stored[handle - 1].used = false;
    spill->count--;
    pthread_mutex_unlock(&spill->mutex);
}

static bool gated_read(void *context, uint64_t handle, void *data, size_t bytes)
{
    struct gated_spill *spill = context;
    memcpy(data, spill->stored[handle - 1].data, bytes);
    ((uint8_t *)data)[bytes / 2] ^= spill->damage_reads;
    spill->reads++;
    gated_drop(context, handle);
    return true;
}

static bool gated_peek(void *context, uint64_t handle, void *data, size_t bytes)
{
    struct gated_spill *spill = context;
    pthread_mutex_lock(&spill->mutex);
    spill->begun++;
    pthread_cond_broadcast(&spill->changed);
    while (spill->ended >= spill->open) {
        pthread_cond_wait(&spill->changed, &spill->mutex);
    }
    memcpy(data, spill->stored[handle - 1].data, bytes);
    ((uint8_t *)data)[bytes / 2] ^= spill->damage_peeks;
    spill->ended++;
    pthread_cond_broadcast(&spill->changed);
    pthread_mutex_unlock(&spill->mutex);
    return true;
}

static void open_gate(struct gated_spill *spill, uint32_t count)
{
    pthread_mutex_lock(&spill->mutex);
    spill->open += count;
    pthread_cond_broadcast(&spill->changed);
    pthread_mutex_unlock(&spill->mutex);
}

/* Until that many peeks began, or ended, since the start. */
static void await(struct gated_spill *spill, const uint32_t *counter, uint32_t count)
{
    pthread_mutex_lock(&spill->mutex);
    while (*counter < count) {
        pthread_cond_wait(&spill->changed, &spill->mutex);
    }
    pthread_mutex_unlock(&spill->mutex);
}

/* ---- the rig: parked rollouts of one page each ---- */

struct rig {
    struct elsewhere device;
    struct page_backing backing;
    struct gated_spill spill;
    struct spill_ops ops;
    struct page_pool *pool;
    struct page_table parked[PARKED];
    bool backed;
};

struct shape {
    uint32_t buffers; /* of a device; 0: the CPU */
    uint32_t host_max;
    bool no_spill, no_peek;
};

static void rig_init(struct rig *rig, struct shape shape)
{
    struct error error;
    *rig = (struct rig){.backed = shape.buffers > 0};
    pthread_mutex_init(&rig->spill.mutex, NULL);
    pthread_cond_init(&rig->spill.changed, NULL);
    rig->ops = (struct spill_ops){
        .context = &rig->spill,
        .write = gated_write,
        .read = gated_read,
        .drop = gated_drop,
        .peek = shape.no_peek ? NULL : gated_peek,
    };
    rig->backing = elsewhere_init(&rig->device, FRAMES, rig->backed ? shape.buffers : 1, BYTES);
    const struct page_pool_config config = {
        .page_bytes = BYTES,
        .bytes_max = FRAMES * (BYTES + (rig->backed ? ELSEWHERE_BYTES : 0)),
        .hot_max = FRAMES,
        .parked_max = PARKED,
        .heap_max = PARKED,
        .host_max = shape.host_max,
        .spill = shape.no_spill ? NULL : &rig->ops,
        .backing = rig->backed ? &rig->backing : NULL,
    };
    EXPECT_OK(page_pool_create(&config, &rig->pool, &error), error);
}

static void rig_finish(struct rig *rig)
{
    page_pool_destroy(rig->pool);
    EXPECT_INT(rig->spill.count, 0);
    elsewhere_finish(&rig->device);
    pthread_cond_destroy(&rig->spill.changed);
    pthread_mutex_destroy(&rig->spill.mutex);
}

/* A rollout of one page of that byte, here and elsewhere. */
static struct page_table hot(struct rig *rig, uint8_t byte)
{
    struct page_table table = {0};
    uint32_t page = page_take(rig->pool, 0);
    memset(page_write(rig->pool, page), byte, BYTES);
    elsewhere_arrive(&rig->device);
    if (rig->backed) {
        memset(rig->device.frames[page_frame(rig->pool, page)], byte, ELSEWHERE_BYTES);
    }
    page_commit(rig->pool, page);
    page_table_push(rig->pool, &table, page, 1);
    return table;
}

/* Rollouts number `first` to `end` - 1, parked in this order; two frames hold the last of them. */
static void park(struct rig *rig, uint32_t first, uint32_t end)
{
    for (uint32_t i = first; i < end; i++) {
        struct page_table table = hot(rig, (uint8_t)(i + 1));
        EXPECT(page_table_park(rig->pool, &table, &rig->parked[i]));
        page_table_release(rig->pool, &table);
        EXPECT(page_pool_consistent(rig->pool));
    }
}

/* Comes back with its bits, and goes. */
static void resume(struct rig *rig, uint32_t number)
{
    struct page_table *table = &rig->parked[number];
    EXPECT(page_table_restore(rig->pool, table));
    const uint8_t *page = page_read(rig->pool, table->page[0]);
    elsewhere_arrive(&rig->device);
    EXPECT_INT(page[BYTES - 1], number + 1);
    if (rig->backed) {
        uint32_t frame = page_frame(rig->pool, table->page[0]);
        EXPECT_INT(rig->device.frames[frame][ELSEWHERE_BYTES - 1], number + 1);
    }
    EXPECT(page_pool_consistent(rig->pool));
    page_table_release(rig->pool, table);
}

static bool in_spill(const struct rig *rig, uint32_t number)
{
    for (uint32_t i = 0; i < STORED; i++) {
        if (rig->spill.stored[i].used && rig->spill.stored[i].data[0] == number + 1) {
            return true;
        }
    }
    return false;
}

static void expect_tiers(const struct rig *rig, uint32_t host, uint32_t ahead, uint32_t spill)
{
    struct page_stats stats = page_pool_stats(rig->pool);
    EXPECT_INT(stats.host_count, host);
    EXPECT_INT(stats.ahead_count, ahead);
    EXPECT_INT(stats.spill_count, spill);
    EXPECT(page_pool_consistent(rig->pool));
}

/* ---- the device ---- */

/* Two frames, both hot at first; one page parks, makes room, and comes back to another frame. A
 * page that the device does not give or take is lost, with a host tier or without. */
static void pages_move_with_what_lies_elsewhere(void)
{
    static struct rig rig;
    for (int fails = 0; fails < 8; fails++) {
        rig_init(&rig, (struct shape){.buffers = 2, .host_max = (uint32_t)fails / 4});
        rig.device.save_fail_percent = fails % 4 == 1 ? 100 : 0;
        rig.device.load_fail_percent = fails % 4 == 2 ? 100 : 0;
        rig.device.wait_fail_percent = fails % 4 == 3 ? 100 : 0;
        park(&rig, 0, 1);
        struct page_table tables[2] = {hot(&rig, 22), hot(&rig, 33)};
        page_table_release(rig.pool, &tables[0]);
        if (fails % 4 == 0) {
            uint32_t starts = rig.device.starts;
            resume(&rig, 0);
            EXPECT_INT(rig.device.starts, starts + 1);
        } else {
            EXPECT(!page_table_restore(rig.pool, &rig.parked[0]));
        }
        EXPECT_INT(page_pool_stats(rig.pool).lost, fails % 4 != 0);
        EXPECT(page_pool_consistent(rig.pool));
        rig_finish(&rig);
    }
}

/* A page that leaves holds its buffer until the pool settles; it may be dropped before that, and
 * leaving again and again takes no more buffers than there are. */
static void pages_leave_in_their_own_time(void)
{
    static struct rig rig;
    rig_init(&rig, (struct shape){.buffers = 2, .no_spill = true});
    park(&rig, 0, 7);
    /* Five have left: four through both buffers twice, the fifth is on its way. */
    EXPECT_INT(rig.device.unwaited, 1);
    EXPECT_INT(page_pool_stats(rig.pool).heap_count, 4);
    expect_tiers(&rig, 1, 0, 0);
    page_table_drop(rig.pool, &rig.parked[4]);
    page_pool_settle(rig.pool);
    EXPECT_INT(rig.device.unwaited, 0);
    EXPECT_INT(page_pool_stats(rig.pool).heap_count, 4);
    expect_tiers(&rig, 0, 0, 0);
    for (uint32_t i = 0; i < 7; i++) {
        if (i != 4) {
            resume(&rig, i);
        }
    }
    EXPECT_INT(page_pool_stats(rig.pool).page_count, 0);
    rig_finish(&rig);
}

/* ---- the host tier ---- */

static void the_longest_there_goes_on_when_the_host_tier_is_full(void)
{
    static struct rig rig;
    rig_init(&rig, (struct shape){.buffers = 5, .host_max = 3});
    park(&rig, 0, 5);
    page_pool_settle(rig.pool);
    expect_tiers(&rig, 3, 0, 0); /* 0, 1, 2 left the device; there is room for them */
    park(&rig, 5, 7);
    page_pool_settle(rig.pool);
    expect_tiers(&rig, 3, 0, 2);
    EXPECT(in_spill(&rig, 0) && in_spill(&rig, 1));
    for (uint32_t i = 2; i < 5; i++) { /* from the host tier: a copy over the bus */
        resume(&rig, i);
    }
    EXPECT_INT(rig.spill.reads, 0);
    page_pool_settle(rig.pool);
    for (uint32_t i = 0; i < 2; i++) {
        resume(&rig, i);
        EXPECT_INT(rig.spill.reads, i + 1);
    }
    page_table_drop(rig.pool, &rig.parked[5]);
    page_table_drop(rig.pool, &rig.parked[6]);
    page_pool_settle(rig.pool);
    expect_tiers(&rig, 0, 0, 0);
    rig_finish(&rig);
}

/* Without a device it would hold what memory holds as well. */
static void on_the_cpu_pages_skip_the_host_tier(void)
{
    static struct rig rig;
    rig_init(&rig, (struct shape){.host_max = 3});
    park(&rig, 0, 5);
    page_pool_settle(rig.pool);
    expect_tiers(&rig, 0, 0, 3);
    rig_finish(&rig);
}

/* A table of more pages than there are buffers for copies, some in the host tier, some in the
 * spill, comes back whole. */
static void a_table_comes_back_through_few_buffers(void)
{
    for (uint32_t host_max = 0; host_max < 4; host_max++) {
        struct elsewhere device;
        struct page_pool *pool = NULL;
        struct page_table table = {0};
        struct page_table parked;
        struct error error;
        const struct page_backing backing = elsewhere_init(&device, 6, host_max + 1, BYTES);
        const struct page_pool_config config = {
            .page_bytes = BYTES,
            .bytes_max = (size_t)6 * WHOLE,
            .hot_max = 6,
            .parked_max = 6,
            .heap_max = 6,
            .host_max = host_max,
            .backing = &backing,
        };
        EXPECT_OK(page_pool_create(&config, &pool, &error), error);
        for (int round = 0; round < 2; round++) {
            for (uint8_t i = 0; i < 6; i++) {
                uint32_t page = page_take(pool, 0);
                elsewhere_arrive(&device);
                memset(page_write(pool, page), i, BYTES);
                memset(device.frames[page_frame(pool, page)], i, ELSEWHERE_BYTES);
                page_commit(pool, page);
                page_table_push(pool, &table, page, 6);
            }
            if (round == 0) {
                EXPECT(page_table_park(pool, &table, &parked));
                page_table_release(pool, &table);
            }
        }
        page_table_release(pool, &table);
        EXPECT(page_table_restore(pool, &parked));
        elsewhere_arrive(&device);
        for (uint8_t i = 0; i < 6; i++) {
            EXPECT_INT(((const uint8_t *)page_read(pool, parked.page[5 - i]))[1], i);
            EXPECT_INT(device.frames[page_frame(pool, parked.page[5 - i])][1], i);
        }
        EXPECT(page_pool_consistent(pool));
        page_pool_destroy(pool);
        elsewhere_finish(&device);
    }
}

/* ---- ahead ---- */

static void what_was_read_ahead_is_not_waited_for(void)
{
    static struct rig rig;
    for (uint32_t buffers = 0; buffers < 8; buffers += 5) { /* the CPU, a device */
        rig_init(&rig, (struct shape){.buffers = buffers, .host_max = 3});
        park(&rig, 0, 8);
        page_pool_settle(rig.pool);
        expect_tiers(&rig, buffers > 0 ? 3 : 0, 0, buffers > 0 ? 3 : 6);
        EXPECT(page_table_prefetch(rig.pool, &rig.parked[7])); /* in memory: nothing to do */
        EXPECT(page_table_prefetch(rig.pool, &rig.parked[1]));
        EXPECT(page_table_prefetch(rig.pool, &rig.parked[0]));
        EXPECT(page_table_prefetch(rig.pool, &rig.parked[0])); /* is under way */
        /* On a device two others went on for them. */
        expect_tiers(&rig, buffers > 0 ? 3 : 2, 2, buffers > 0 ? 5 : 6);
        open_gate(&rig.spill, 2);
        await(&rig.spill, &rig.spill.ended, 2);
        for (uint32_t i = 0; i < 2; i++) {
            resume(&rig, i);
        }
        EXPECT_INT(rig.spill.reads, 0);
        EXPECT_INT(page_pool_stats(rig.pool).ahead, 2);
        EXPECT_INT(page_pool_stats(rig.pool).ahead_used, 2);
        rig_finish(&rig);
    }
}

/* The first wishes get the places, and keep them until the pool settles; evicted pages go on in
 * their stead. A wish that is not repeated counts no more. */
static void wishes_keep_their_places_for_a_tick(void)
{
    static struct rig rig;
    rig_init(&rig, (struct shape){.buffers = 4, .host_max = 2});
    park(&rig, 0, 6);
    page_pool_settle(rig.pool);
    expect_tiers(&rig, 2, 0, 2); /* 2 and 3 in the host tier, 0 and 1 in the spill */
    EXPECT(page_table_prefetch(rig.pool, &rig.parked[0]));
    EXPECT(in_spill(&rig, 2));
    EXPECT(page_table_prefetch(rig.pool, &rig.parked[1]));
    EXPECT(in_spill(&rig, 3));
    EXPECT(!page_table_prefetch(rig.pool, &rig.parked[2]));
    expect_tiers(&rig, 2, 2, 4);
    park(&rig, 6, 8); /* 4 and 5 leave the device */
    page_pool_settle(rig.pool);
    expect_tiers(&rig, 2, 2, 6);
    EXPECT(in_spill(&rig, 4) && in_spill(&rig, 5));
    EXPECT(page_table_prefetch(rig.pool, &rig.parked[2]));
    expect_tiers(&rig, 2, 2, 6);
    open_gate(&rig.spill, 8);
    resume(&rig, 2);
    resume(&rig, 1);
    resume(&rig, 0); /* lost its place to 2 */
    rig_finish(&rig);
}

/* Of two reads one is under way, the other not begun, when nobody wants the first any more and the
 * second is wanted at once. The cancelled one goes on into a buffer that others get last. */
static void reads_are_overtaken(void)
{
    static struct rig rig;
    rig_init(&rig, (struct shape){.host_max = 2});
    park(&rig, 0, 5);
    EXPECT(page_table_prefetch(rig.pool, &rig.parked[0]));
    await(&rig.spill, &rig.spill.begun, 1);
    EXPECT(page_table_prefetch(rig.pool, &rig.parked[1]));
    expect_tiers(&rig, 2, 2, 3);
    page_table_drop(rig.pool, &rig.parked[0]);
    expect_tiers(&rig, 1, 1, 2);
    resume(&rig, 1); /* the thread still stands at the gate */
    EXPECT_INT(rig.spill.reads, 1);
    EXPECT_INT(page_pool_stats(rig.pool).ahead_used, 0);
    EXPECT(page_table_prefetch(rig.pool, &rig.parked[2])); /* gets the other buffer */
    EXPECT(!in_spill(&rig, 0));
    open_gate(&rig.spill, 2);
    resume(&rig, 2);
    EXPECT_INT(page_pool_stats(rig.pool).ahead, 3);
    EXPECT_INT(page_pool_stats(rig.pool).ahead_used + rig.spill.reads, 2); /* begun or taken back */
    rig_finish(&rig);
}

/* Noticed by the digest, and read again; lost when that is no better, and then alone. */
static void damage_is_noticed_when_the_page_is_wanted(void)
{
    static struct rig rig;
    for (int both = 0; both < 2; both++) {
        rig_init(&rig, (struct shape){.host_max = 1});
        rig.spill.damage_peeks = true;
        rig.spill.damage_reads = both;
        park(&rig, 0, 3);
        EXPECT(page_table_prefetch(rig.pool, &rig.parked[0]));
        open_gate(&rig.spill, 1);
        await(&rig.spill, &rig.spill.ended, 1);
        EXPECT_INT(page_pool_stats(rig.pool).lost, 0);
        if (both) {
            EXPECT(!page_table_restore(rig.pool, &rig.parked[0]));
        } else {
            resume(&rig, 0);
        }
        EXPECT_INT(rig.spill.reads, 1);
        EXPECT_INT(page_pool_stats(rig.pool).lost, both);
        EXPECT_INT(page_pool_stats(rig.pool).ahead_used, 0);
        resume(&rig, 2);
        rig_finish(&rig);
    }
}

static void a_spill_that_cannot_is_not_asked(void)
{
    static struct rig rig;
    const struct shape shapes[] = {{.host_max = 2, .no_peek = true},
                                   {.buffers = 4, .host_max = 2, .no_peek = true},
                                   {.host_max = 0},
                                   {.buffers = 4, .host_max = 2, .no_spill = true}};
    for (size_t k = 0; k < COUNT_OF(shapes); k++) {
        rig_init(&rig, shapes[k]);
        park(&rig, 0, 6);
        page_pool_settle(rig.pool);
        EXPECT(!page_table_prefetch(rig.pool, &rig.parked[0]));
        EXPECT_INT(page_pool_stats(rig.pool).ahead, 0);
        for (uint32_t i = 0; i < 6; i++) {
            resume(&rig, i);
        }
        rig_finish(&rig);
    }
}

/* One read is under way, another waits for it. */
static void a_pool_is_destroyed_while_it_reads(void)
{
    static struct rig rig;
    rig_init(&rig, (struct shape){.buffers = 4, .host_max = 2});
    park(&rig, 0, 6);
    page_pool_settle(rig.pool);
    EXPECT(page_table_prefetch(rig.pool, &rig.parked[0]));
    EXPECT(page_table_prefetch(rig.pool, &rig.parked[1]));
    await(&rig.spill, &rig.spill.begun, 1);
    open_gate(&rig.spill, 2); /* the second one may begin before the pool says stop */
    rig_finish(&rig);
    EXPECT(rig.spill.ended >= 1 && rig.spill.begun == rig.spill.ended);
}

int main(void)
{
    return TEST_RUN(
        TEST(pages_move_with_what_lies_elsewhere), TEST(pages_leave_in_their_own_time),
        TEST(the_longest_there_goes_on_when_the_host_tier_is_full),
        TEST(on_the_cpu_pages_skip_the_host_tier), TEST(a_table_comes_back_through_few_buffers),
        TEST(what_was_read_ahead_is_not_waited_for), TEST(wishes_keep_their_places_for_a_tick),
        TEST(reads_are_overtaken), TEST(damage_is_noticed_when_the_page_is_wanted),
        TEST(a_spill_that_cannot_is_not_asked), TEST(a_pool_is_destroyed_while_it_reads));
}
