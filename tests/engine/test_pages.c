/*
 * Goal: the page pool keeps every rollout's memory bit for bit through forks, parking, spilling
 * and faults of the spill, shares what is shared, and frees what nobody holds.
 * Method: model-based. A twin copies everything: each of its rollouts owns full copies of all its
 * pages, and references are counted by looking at all rollouts. Random operations run on both; the
 * spill knows which page it was given (pages begin with their serial), so the twin also knows which
 * pages an injected fault must have cost, and no others. The same with a device that holds a part
 * of every page (elsewhere.h), a host tier of a few buffers or none, and a thread that reads ahead.
 */
#include "base/check.h"
#include "base/rng.h"
#include "engine/learned/pages.h"
#include "tests/engine/elsewhere.h"
#include "tests/engine/faulty_spill.h"
#include "tests/engine/pages_account.h"
#include "tests/harness.h"

#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BYTES = 128,
    WHOLE = BYTES + ELSEWHERE_BYTES, /* with a device */
    WINDOW = 4,
    SLOTS = 5,
    PARKED = 24,
    HOT = SLOTS * WINDOW + 1,
    SERIALS = 400000,
};

/* ---- the twin ---- */

struct twin_page {
    uint32_t index; /* in the pool */
    uint64_t serial;
    uint8_t data[WHOLE];
};

struct twin {
    bool used;
    uint32_t count;
    struct twin_page pages[WINDOW];
    struct page_table table; /* the pool's side of the same rollout */
};

struct rig {
    struct page_pool *pool;
    struct faulty_spill *spill;
    struct spill_ops ops;
    struct elsewhere device;
    struct page_backing backing; /* bytes 0: none */
    uint32_t host_max;
    struct twin slots[SLOTS];
    struct twin parked[PARKED];
    uint32_t parked_max;
    uint32_t tick; /* of the next pages */
    uint64_t random;
    uint64_t shared;
    uint32_t restored, lost_restores, refused_parks, shares, prefetches;
    uint8_t *lost;
};

struct setting {
    uint32_t frames;
    uint32_t parked_max; /* pages */
    uint32_t heap_max;
    bool spill;
    uint32_t refuse_percent, fail_percent, damage_percent;
    uint32_t host_max;
    bool ahead;
    uint32_t peek_fault_percent;
    uint32_t buffers; /* of a device; 0: none */
    uint32_t save_fail_percent, load_fail_percent, wait_fail_percent;
};

static bool has_faults(const struct setting *setting)
{
    return setting->refuse_percent + setting->save_fail_percent > 0;
}

static void device_lost(void *context, uint64_t serial)
{
    ((uint8_t *)context)[serial] = 1;
}

static void rig_device(struct rig *rig, const struct setting *setting)
{
    rig->backing = elsewhere_init(&rig->device, setting->frames, setting->buffers, BYTES);
    rig->device.save_fail_percent = setting->save_fail_percent;
    rig->device.load_fail_percent = setting->load_fail_percent;
    rig->device.wait_fail_percent = setting->wait_fail_percent;
    rig->device.lose = device_lost;
    rig->device.context = rig->lost;
    rig->spill->bytes = WHOLE;
}

static void rig_init(struct rig *rig, const struct setting *setting, uint64_t seed)
{
    struct error error;
    memset(rig, 0, sizeof *rig);
    rig->random = seed;
    rig->lost = calloc(SERIALS, 1);
    rig->spill = calloc(1, sizeof *rig->spill);
    EXPECT(rig->lost != NULL && rig->spill != NULL);
    rig->spill->random = seed + 1;
    rig->spill->refuse_percent = setting->refuse_percent;
    rig->spill->fail_percent = setting->fail_percent;
    rig->spill->damage_percent = setting->damage_percent;
    rig->spill->heap_max = setting->heap_max;
    rig->spill->lost = rig->lost;
    rig->spill->peek_fault_percent = setting->peek_fault_percent;
    rig->spill->bytes = BYTES;
    pthread_mutex_init(&rig->spill->mutex, NULL);
    rig->ops = (struct spill_ops){
        .context = rig->spill,
        .write = faulty_write,
        .read = faulty_read,
        .drop = faulty_drop,
        .peek = setting->ahead ? faulty_peek : NULL,
    };
    if (setting->buffers > 0) {
        rig_device(rig, setting);
    }
    rig->host_max = setting->host_max;
    rig->parked_max = setting->parked_max;
    struct page_pool_config config = {
        .page_bytes = BYTES,
        .bytes_max = (size_t)setting->frames * rig->spill->bytes,
        .hot_max = HOT,
        .parked_max = setting->parked_max,
        .heap_max = setting->heap_max,
        .host_max = setting->host_max,
        .spill = setting->spill ? &rig->ops : NULL,
        .backing = setting->buffers > 0 ? &rig->backing : NULL,
    };
    EXPECT_OK(page_pool_create(&config, &rig->pool, &error), error);
    rig->spill->pool = rig->pool;
}

static void rig_finish(struct rig *rig)
{
    page_pool_destroy(rig->pool);
    EXPECT_INT(rig->spill->count, 0); /* nothing stays behind */
    elsewhere_finish(&rig->device);
    pthread_mutex_destroy(&rig->spill->mutex);
    free(rig->spill);
    free(rig->lost);
}

static uint32_t draw(struct rig *rig, uint32_t below)
{
    rig->random = rng_mix(rig->random + 1);
    return (uint32_t)(rig->random >> 20) % below;
}

/* References to a page as all rollouts of the twin together hold them. */
static void twin_references(const struct rig *rig, uint64_t serial, uint32_t *hot, uint32_t *cold)
{
    *hot = *cold = 0;
    for (uint32_t r = 0; r < SLOTS + PARKED; r++) {
        const struct twin *twin = r < SLOTS ? &rig->slots[r] : &rig->parked[r - SLOTS];
        for (uint32_t i = 0; twin->used && i < twin->count; i++) {
            if (twin->pages[i].serial == serial) {
                ++*(r < SLOTS ? hot : cold);
            }
        }
    }
}

/* The part of a page that lies on the device; the device's work comes after the copies. */
static uint8_t *device_part(struct rig *rig, uint32_t page)
{
    elsewhere_arrive(&rig->device);
    return rig->device.frames[page_frame(rig->pool, page)];
}

static void compare_rollout(struct rig *rig, const struct twin *twin, bool hot)
{
    EXPECT_INT(twin->table.count, twin->count);
    for (uint32_t i = 0; i < twin->count; i++) {
        const struct twin_page *page = &twin->pages[i];
        uint32_t expected[2];
        uint32_t found[2];
        EXPECT_INT(twin->table.page[i], page->index);
        EXPECT(page_serial(rig->pool, page->index) == page->serial);
        twin_references(rig, page->serial, &expected[0], &expected[1]);
        page_references(rig->pool, page->index, &found[0], &found[1]);
        EXPECT_INT(found[0], expected[0]);
        EXPECT_INT(found[1], expected[1]);
        EXPECT(!hot || memcmp(page_read(rig->pool, page->index), page->data, BYTES) == 0);
        EXPECT(!hot || rig->backing.bytes == 0 ||
               memcmp(device_part(rig, page->index), page->data + BYTES, ELSEWHERE_BYTES) == 0);
    }
}

/* Every rollout, and that nothing exists which no rollout holds. */
static void compare(struct rig *rig)
{
    uint64_t seen[(SLOTS + PARKED) * WINDOW];
    uint32_t distinct = 0;
    uint32_t lost = 0;
    for (uint32_t r = 0; r < SLOTS + PARKED; r++) {
        const struct twin *twin = r < SLOTS ? &rig->slots[r] : &rig->parked[r - SLOTS];
        if (!twin->used) {
            continue;
        }
        compare_rollout(rig, twin, r < SLOTS);
        for (uint32_t i = 0; i < twin->count; i++) {
            uint32_t k = 0;
            while (k < distinct && seen[k] != twin->pages[i].serial) {
                k++;
            }
            if (k == distinct) {
                seen[distinct++] = twin->pages[i].serial;
                lost += rig->lost[twin->pages[i].serial];
            }
        }
    }
    struct page_stats stats = page_pool_stats(rig->pool);
    EXPECT_INT(stats.page_count, distinct);
    EXPECT_INT(stats.spill_count, rig->spill->count);
    EXPECT_INT(stats.frame_count + stats.host_count + stats.spill_count - stats.ahead_count +
                   stats.heap_count,
               distinct - lost); /* each in one tier */
    EXPECT(stats.ahead_count <= stats.host_count);
    EXPECT(stats.frame_count <= stats.frame_peak && stats.frame_peak <= stats.frame_max);
    EXPECT(stats.shared == rig->shared);
    EXPECT(page_pool_consistent(rig->pool));
}

/* ---- operations on both sides ---- */

static void twin_push(struct twin *twin, const struct twin_page *page)
{
    uint32_t kept = twin->count < WINDOW ? twin->count : WINDOW - 1;
    memmove(&twin->pages[1], &twin->pages[0], kept * sizeof *page);
    twin->pages[0] = *page;
    twin->count = kept + 1;
}

static void do_tick(struct rig *rig, struct twin *slot)
{
    struct twin_page page = {.index = page_take(rig->pool, rig->tick)};
    page.serial = page_serial(rig->pool, page.index);
    EXPECT(page.serial < SERIALS);
    uint8_t *bytes = page_write(rig->pool, page.index);
    EXPECT((uintptr_t)bytes % PAGE_ALIGN == 0);
    memcpy(page.data, &page.serial, sizeof page.serial);
    for (uint32_t i = sizeof page.serial; i < BYTES; i++) {
        page.data[i] = (uint8_t)draw(rig, 256);
    }
    memcpy(bytes, page.data, BYTES);
    if (rig->backing.bytes > 0) {
        memcpy(page.data + BYTES, page.data, ELSEWHERE_BYTES);
        page.data[WHOLE - 1] ^= 0xFF;
        memcpy(device_part(rig, page.index), page.data + BYTES, ELSEWHERE_BYTES);
    }
    page_commit(rig->pool, page.index);
    page_table_push(rig->pool, &slot->table, page.index, WINDOW);
    twin_push(slot, &page);
    slot->used = true;
}

/* A new rollout that begins with the oldest page of another one. */
static void do_share(struct rig *rig, struct twin *slot)
{
    const struct twin *other = &rig->parked[draw(rig, PARKED)];
    if (!other->used || other->count == 0) {
        return;
    }
    const struct twin_page *page = &other->pages[other->count - 1];
    bool shared = page_share(rig->pool, page->index, page->serial);
    EXPECT_INT(shared, !rig->lost[page->serial]);
    EXPECT(!page_share(rig->pool, page->index, page->serial + 1));
    if (shared) {
        page_table_push(rig->pool, &slot->table, page->index, WINDOW);
        twin_push(slot, page);
        slot->used = true;
        rig->shares++;
        rig->shared++;
    }
}

static void do_fork(struct rig *rig, const struct twin *from, struct twin *to)
{
    *to = *from;
    memset(&to->table, 0xA5, sizeof to->table);
    page_table_fork(rig->pool, &from->table, &to->table);
    rig->shared += to->count;
}

static void do_release(struct rig *rig, struct twin *slot)
{
    page_table_release(rig->pool, &slot->table);
    EXPECT_INT(slot->table.count, 0);
    memset(slot, 0, sizeof *slot);
}

static uint32_t parked_pages(const struct rig *rig, const struct twin *extra)
{
    uint32_t count = 0;
    for (uint32_t r = 0; r <= PARKED; r++) {
        const struct twin *twin = r < PARKED ? &rig->parked[r] : extra;
        for (uint32_t i = 0; (twin->used || twin == extra) && i < twin->count; i++) {
            bool before = false;
            for (uint32_t q = 0; q < r && !before; q++) {
                for (uint32_t k = 0; rig->parked[q].used && k < rig->parked[q].count; k++) {
                    before |= rig->parked[q].pages[k].serial == twin->pages[i].serial;
                }
            }
            count += !before;
        }
    }
    return count;
}

static void do_park(struct rig *rig, const struct twin *slot, struct twin *parked)
{
    bool fits = parked_pages(rig, slot) <= rig->parked_max;
    *parked = *slot;
    memset(&parked->table, 0xA5, sizeof parked->table);
    EXPECT_INT(page_table_park(rig->pool, &slot->table, &parked->table), fits);
    if (fits) {
        rig->shared += parked->count;
    } else {
        EXPECT_INT(parked->table.count, 0);
        memset(parked, 0, sizeof *parked);
        rig->refused_parks++;
    }
}

static void do_restore(struct rig *rig, struct twin *parked, struct twin *slot)
{
    *slot = *parked;
    memset(parked, 0, sizeof *parked);
    bool whole = page_table_restore(rig->pool, &slot->table);
    bool expected = true;
    for (uint32_t i = 0; i < slot->count; i++) {
        expected &= !rig->lost[slot->pages[i].serial];
    }
    EXPECT_INT(whole, expected);
    rig->restored += whole;
    if (!whole) {
        EXPECT_INT(slot->table.count, 0);
        memset(slot, 0, sizeof *slot);
        rig->lost_restores++;
    }
}

/* As after a tick: then no more than host_max pages are in the host tier. */
static void do_settle(struct rig *rig)
{
    page_pool_settle(rig->pool);
    EXPECT(page_pool_stats(rig->pool).host_count <= rig->host_max);
}

/* Changes nothing that anybody can see, and takes no more places than there are. */
static void do_prefetch(struct rig *rig, const struct twin *parked)
{
    struct page_stats before = page_pool_stats(rig->pool);
    bool more = page_table_prefetch(rig->pool, &parked->table);
    struct page_stats stats = page_pool_stats(rig->pool);
    EXPECT(!more || (rig->ops.peek != NULL && rig->host_max > 0));
    EXPECT_INT(stats.frame_count, before.frame_count);
    EXPECT(stats.ahead_count <= rig->host_max && stats.back == before.back);
    rig->prefetches++;
    if (draw(rig, 2) == 0) {
        sched_yield();
    }
}

static void operate(struct rig *rig)
{
    struct twin *slot = &rig->slots[draw(rig, SLOTS)];
    struct twin *parked = &rig->parked[draw(rig, PARKED)];
    uint32_t what = draw(rig, 100);
    rig->tick = draw(rig, 50);
    if (!slot->used && parked->used && what < 60) {
        do_restore(rig, parked, slot);
    } else if (!slot->used && what < 70) {
        do_share(rig, slot);
    } else if (!slot->used) {
        const struct twin *from = &rig->slots[draw(rig, SLOTS)];
        if (from->used) {
            do_fork(rig, from, slot);
        } else {
            do_tick(rig, slot);
        }
    } else if (what < 55) {
        do_tick(rig, slot);
    } else if (what < 80 && !parked->used) {
        do_park(rig, slot, parked);
        if (what < 70) {
            do_release(rig, slot);
        }
    } else if (what < 88) {
        do_release(rig, slot);
    } else if (what < 92 && parked->used) {
        page_table_drop(rig->pool, &parked->table);
        memset(parked, 0, sizeof *parked);
    } else if (what < 97 && parked->used) {
        do_prefetch(rig, parked);
    } else if (what >= 97) {
        do_settle(rig);
    }
}

static void run(const struct setting *setting, uint64_t seed, uint32_t count, struct rig *rig)
{
    rig_init(rig, setting, seed);
    for (uint32_t i = 0; i < count; i++) {
        operate(rig);
        if (i % 5 == 0) {
            compare(rig);
        }
    }
    compare(rig);
}

/* ---- tests ---- */

static void random_operations_match_a_twin_that_copies_everything(void)
{
    static const struct setting settings[] = {
        {.frames = HOT, .parked_max = PARKED * WINDOW, .spill = true},
        {.frames = HOT + 7, .parked_max = 30, .heap_max = UINT32_MAX},
        {.frames = HOT + 3,
         .parked_max = PARKED * WINDOW,
         .heap_max = 2,
         .spill = true,
         .refuse_percent = 30},
        {.frames = HOT,
         .parked_max = PARKED * WINDOW,
         .heap_max = 3,
         .spill = true,
         .refuse_percent = 20,
         .fail_percent = 5,
         .damage_percent = 5},
        /* Read ahead, on the CPU; into one buffer, with faults. */
        {.frames = HOT, .parked_max = PARKED * WINDOW, .spill = true, .host_max = 9, .ahead = true},
        {.frames = HOT + 1,
         .parked_max = PARKED * WINDOW,
         .heap_max = 3,
         .spill = true,
         .refuse_percent = 20,
         .fail_percent = 5,
         .damage_percent = 5,
         .host_max = 1,
         .ahead = true,
         .peek_fault_percent = 40},
        /* A device: without a host tier, with one that holds all, with tiny ones, with faults. */
        {.frames = HOT + 2, .parked_max = PARKED * WINDOW, .spill = true, .buffers = 8},
        {.frames = HOT, .parked_max = 30, .heap_max = 2, .host_max = 30, .buffers = 31},
        {.frames = HOT,
         .parked_max = PARKED * WINDOW,
         .spill = true,
         .host_max = 1,
         .ahead = true,
         .buffers = 2},
        {.frames = HOT, /* pages are sent on and lost while they are wanted */
         .parked_max = PARKED * WINDOW,
         .spill = true,
         .refuse_percent = 30,
         .host_max = 1,
         .buffers = 2},
        {.frames = HOT + 1,
         .parked_max = PARKED * WINDOW,
         .heap_max = UINT32_MAX,
         .spill = true,
         .host_max = 7,
         .ahead = true,
         .peek_fault_percent = 20,
         .buffers = 9},
        {.frames = HOT,
         .parked_max = PARKED * WINDOW,
         .heap_max = 3,
         .spill = true,
         .refuse_percent = 10,
         .fail_percent = 4,
         .damage_percent = 4,
         .host_max = 5,
         .ahead = true,
         .peek_fault_percent = 20,
         .buffers = 8,
         .save_fail_percent = 3,
         .load_fail_percent = 3,
         .wait_fail_percent = 3},
    };
    for (uint32_t k = 0; k < COUNT_OF(settings); k++) {
        static struct rig rig;
        run(&settings[k], 100 + k, 50000, &rig);
        struct page_stats stats = page_pool_stats(rig.pool);
        /* The run did what it is for. */
        bool faults = has_faults(&settings[k]);
        EXPECT(rig.restored > 100 && rig.shares > 100 && stats.out > 100 && stats.back > 100);
        EXPECT_INT(rig.spill->failures > 0, settings[k].refuse_percent > 0);
        EXPECT_INT(rig.device.failures > 0, settings[k].save_fail_percent > 0);
        EXPECT_INT(rig.lost_restores > 10, faults);
        EXPECT_INT(stats.lost > 0, faults);
        EXPECT_INT(rig.refused_parks > 0, settings[k].parked_max == 30);
        EXPECT(rig.prefetches > 100);
        EXPECT_INT(stats.ahead > 100, settings[k].ahead);
        EXPECT(stats.ahead_used <= stats.ahead);
        EXPECT(stats.page_peak <= HOT + settings[k].parked_max);
        EXPECT_INT(stats.frame_peak, stats.frame_max); /* for pages moved out */
        rig_finish(&rig);
    }
}

/* A thread that reads nothing but damage, and one that reads everything: every page is where it is
 * in both runs, and left in the same order. */
static void the_reader_decides_no_place(void)
{
    static const struct setting settings[] = {
        {.frames = HOT, .parked_max = PARKED * WINDOW, .host_max = 6},
        {.frames = HOT, .parked_max = PARKED * WINDOW, .host_max = 6, .buffers = 9}};
    static struct rig rig;
    for (uint32_t k = 0; k < 2 * COUNT_OF(settings); k++) {
        static struct page_stats before;
        static uint64_t order;
        struct setting setting = settings[k / 2];
        setting.spill = setting.ahead = true;
        setting.peek_fault_percent = k % 2 * 100;
        run(&setting, 17, 20000, &rig);
        struct page_stats stats = page_pool_stats(rig.pool);
        EXPECT(stats.ahead > 100 && stats.lost == 0 && (k % 2 == 0 || stats.ahead_used == 0));
        if (k % 2 == 1) {
            EXPECT(rig.spill->order == order);
            EXPECT(stats.out == before.out && stats.back == before.back);
            EXPECT(stats.ahead == before.ahead && stats.ahead_count == before.ahead_count);
            EXPECT_INT(stats.frame_count, before.frame_count);
            EXPECT_INT(stats.host_count, before.host_count);
            EXPECT_INT(stats.spill_count, before.spill_count);
        }
        before = stats;
        order = rig.spill->order;
        rig_finish(&rig);
    }
}

static void freeing_everything_leaves_nothing(void)
{
    static struct rig rig;
    run(&(struct setting){.frames = HOT, .parked_max = PARKED * WINDOW, .spill = true}, 7, 2000,
        &rig);
    for (uint32_t i = 0; i < SLOTS; i++) {
        do_release(&rig, &rig.slots[i]);
    }
    EXPECT(page_pool_stats(rig.pool).page_count > 0);
    for (uint32_t i = 0; i < PARKED; i++) {
        page_table_drop(rig.pool, &rig.parked[i].table);
        memset(&rig.parked[i], 0, sizeof rig.parked[i]);
    }
    struct page_stats stats = page_pool_stats(rig.pool);
    EXPECT_INT(stats.page_count, 0);
    EXPECT_INT(stats.frame_count, 0);
    EXPECT_INT(stats.frame_peak, stats.frame_max); /* the fullest that it was */
    EXPECT_INT(stats.spill_count, 0);
    EXPECT(page_pool_consistent(rig.pool));
    rig_finish(&rig);
}

static void a_fork_takes_no_memory(void)
{
    static struct rig rig;
    rig_init(&rig, &(struct setting){.frames = HOT, .parked_max = 8, .spill = true}, 3);
    for (int i = 0; i < WINDOW + 3; i++) {
        do_tick(&rig, &rig.slots[0]);
    }
    EXPECT_INT(page_pool_stats(rig.pool).frame_count, WINDOW);
    do_fork(&rig, &rig.slots[0], &rig.slots[1]);
    do_park(&rig, &rig.slots[0], &rig.parked[0]);
    EXPECT_INT(page_pool_stats(rig.pool).frame_count, WINDOW);
    EXPECT_INT(page_pool_stats(rig.pool).shared, 2 * WINDOW);
    do_tick(&rig, &rig.slots[1]); /* diverges by one page, and frees nothing that others hold */
    EXPECT_INT(page_pool_stats(rig.pool).frame_count, WINDOW + 1);
    EXPECT_INT(page_pool_stats(rig.pool).frame_peak, WINDOW + 1);
    EXPECT_INT(page_pool_stats(rig.pool).frame_max, HOT);
    compare(&rig);
    rig_finish(&rig);
}

static void the_longest_parked_goes_first_and_only_when_memory_is_short(void)
{
    static struct rig rig;
    rig_init(&rig, &(struct setting){.frames = HOT, .parked_max = 8, .spill = true}, 5);
    for (uint32_t k = 0; k < 2; k++) {
        do_tick(&rig, &rig.slots[0]);
        do_park(&rig, &rig.slots[0], &rig.parked[k]);
        do_release(&rig, &rig.slots[0]);
    }
    for (uint32_t k = 0; k < HOT - 2; k++) {
        do_tick(&rig, &rig.slots[k / WINDOW]);
    }
    EXPECT_INT(rig.spill->count, 0);
    do_tick(&rig, &rig.slots[SLOTS - 1]);
    EXPECT_INT(rig.spill->count, 1);
    EXPECT(elsewhere_serial(rig.spill->stored[0].data) == rig.parked[0].pages[0].serial);
    do_release(&rig, &rig.slots[0]);
    do_restore(&rig, &rig.parked[0], &rig.slots[0]);
    EXPECT_INT(rig.spill->count, 0);
    compare(&rig);
    rig_finish(&rig);
}

static void a_lost_page_costs_only_the_rollouts_that_need_it(void)
{
    static struct rig rig;
    rig_init(&rig,
             &(struct setting){.frames = HOT, .parked_max = 8, .spill = true, .fail_percent = 100},
             6);
    do_tick(&rig, &rig.slots[0]);
    do_park(&rig, &rig.slots[0], &rig.parked[0]); /* the first page alone */
    do_tick(&rig, &rig.slots[0]);
    do_park(&rig, &rig.slots[0], &rig.parked[1]); /* both */
    do_release(&rig, &rig.slots[0]);
    do_tick(&rig, &rig.slots[0]);
    do_park(&rig, &rig.slots[0], &rig.parked[2]); /* another one */
    do_release(&rig, &rig.slots[0]);
    for (uint32_t k = 0; k < HOT - 2; k++) {
        do_tick(&rig, &rig.slots[k / WINDOW]);
    }
    EXPECT_INT(rig.spill->count, 1); /* the second page went */
    EXPECT(elsewhere_serial(rig.spill->stored[0].data) == rig.parked[1].pages[0].serial);
    for (uint32_t k = 0; k < 3; k++) {
        do_release(&rig, &rig.slots[k]);
        do_restore(&rig, &rig.parked[k], &rig.slots[k]);
        EXPECT_INT(rig.slots[k].used, k != 1);
    }
    compare(&rig);
    rig_finish(&rig);
}

static void a_pool_that_cannot_hold_its_slots_is_refused(void)
{
    struct page_pool *pool = NULL;
    struct error error = {0};
    struct page_pool_config config = {.page_bytes = 100, .bytes_max = 639, .hot_max = 5};
    EXPECT_INT(page_pool_create(&config, &pool, &error), STATUS_LIMIT);
    EXPECT_CONTAINS(error.text, "640");
    EXPECT_CONTAINS(error.text, "639");
    EXPECT(pool == NULL);
    config.bytes_max = 640;
    EXPECT_OK(page_pool_create(&config, &pool, &error), error);
    page_pool_destroy(pool);
    page_pool_destroy(NULL);
}

/* ---- what aborts ---- */

static void write_after_commit(struct page_pool *pool)
{
    uint32_t page = page_take(pool, 0);
    page_commit(pool, page);
    page_write(pool, page);
}

static void read_before_commit(struct page_pool *pool)
{
    page_read(pool, page_take(pool, 0));
}

static void release_twice(struct page_pool *pool)
{
    uint32_t page = page_take(pool, 0);
    page_release(pool, page);
    page_release(pool, page);
}

static void more_than_hot(struct page_pool *pool)
{
    for (uint32_t i = 0; i <= HOT; i++) {
        page_take(pool, 0);
    }
}

static void breaking_the_rules_aborts(void)
{
    void (*const crimes[])(struct page_pool *) = {write_after_commit, read_before_commit,
                                                  release_twice, more_than_hot};
    for (size_t i = 0; i < COUNT_OF(crimes); i++) {
        fflush(stdout);
        pid_t child = fork();
        EXPECT(child >= 0);
        if (child == 0) {
            static struct rig rig;
            (void)!freopen("/dev/null", "w", stderr);
            rig_init(&rig, &(struct setting){.frames = HOT + 1, .parked_max = 1}, 1);
            crimes[i](rig.pool);
            _exit(0);
        }
        int status;
        EXPECT(waitpid(child, &status, 0) == child);
        EXPECT(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
    }
}

int main(void)
{
    return TEST_RUN(TEST(random_operations_match_a_twin_that_copies_everything),
                    TEST(the_reader_decides_no_place), TEST(freeing_everything_leaves_nothing),
                    TEST(a_fork_takes_no_memory),
                    TEST(the_longest_parked_goes_first_and_only_when_memory_is_short),
                    TEST(a_lost_page_costs_only_the_rollouts_that_need_it),
                    TEST(a_pool_that_cannot_hold_its_slots_is_refused),
                    TEST(breaking_the_rules_aborts));
}
