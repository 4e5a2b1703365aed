/*
 * Goal: the page pool keeps every rollout's memory bit for bit through forks, parking, spilling
 * and faults of the spill, shares what is shared, and frees what nobody holds.
 * Method: model-based. A twin copies everything: each of its rollouts owns full copies of all its
 * pages, and references are counted by looking at all rollouts. Random operations run on both; the
 * spill knows which page it was given (pages begin with their serial), so the twin also knows which
 * pages an injected fault must have cost, and no others.
 */
#include "base/check.h"
#include "base/rng.h"
#include "engine/pages.h"
#include "tests/harness.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    BYTES = 128,
    WINDOW = 4,
    SLOTS = 5,
    PARKED = 24,
    HOT = SLOTS * WINDOW + 1,
    SERIALS = 400000,
    SPILLED = 4096,
};

/* ---- a spill in memory, with faults ---- */

struct stored {
    bool used;
    uint8_t data[BYTES];
};

struct memory_spill {
    struct stored stored[SPILLED];
    uint64_t random; /* state; faults are drawn from it */
    uint32_t refuse_percent, fail_percent, damage_percent;
    uint32_t count;
    uint32_t failures;
    struct page_pool *pool;
    uint32_t heap_max;
    uint8_t *lost; /* [SERIALS] what the faults cost */
};

static bool strikes(struct memory_spill *spill, uint32_t percent)
{
    spill->random = rng_mix(spill->random + 1);
    bool hit = spill->random % 100 < percent;
    spill->failures += hit;
    return hit;
}

static uint64_t serial_in(const void *data)
{
    uint64_t serial;
    memcpy(&serial, data, sizeof serial);
    return serial;
}

static uint64_t spill_write(void *context, const void *data, size_t bytes)
{
    struct memory_spill *spill = context;
    CHECK(bytes == BYTES);
    uint64_t slot = 0;
    while (slot < SPILLED && spill->stored[slot].used) {
        slot++;
    }
    if (slot == SPILLED || strikes(spill, spill->refuse_percent)) {
        if (page_pool_stats(spill->pool).heap_count >= spill->heap_max) {
            spill->lost[serial_in(data)] = 1;
        }
        return 0;
    }
    spill->stored[slot].used = true;
    spill->count++;
    memcpy(spill->stored[slot].data, data, bytes);
    return slot + 1;
}

static void spill_drop(void *context, uint64_t handle)
{
    struct memory_spill *spill = context;
    CHECK(handle >= 1 && handle <= SPILLED && spill->stored[handle - 1].used);
    spill->stored[handle - 1].used = false;
    spill->count--;
}

static bool spill_read(void *context, uint64_t handle, void *data, size_t bytes)
{
    struct memory_spill *spill = context;
    CHECK(handle >= 1 && handle <= SPILLED && spill->stored[handle - 1].used && bytes == BYTES);
    struct stored *stored = &spill->stored[handle - 1];
    if (strikes(spill, spill->fail_percent)) {
        spill->lost[serial_in(stored->data)] = 1;
        return false;
    }
    memcpy(data, stored->data, bytes);
    if (strikes(spill, spill->damage_percent)) {
        spill->lost[serial_in(stored->data)] = 1;
        ((uint8_t *)data)[spill->random / 100 % BYTES] ^= (uint8_t)(1 << spill->random / 7 % 8);
    }
    spill_drop(context, handle);
    return true;
}

/* ---- the twin ---- */

struct twin_page {
    uint32_t index; /* in the pool */
    uint64_t serial;
    uint8_t data[BYTES];
};

struct twin {
    bool used;
    uint32_t count;
    struct twin_page pages[WINDOW];
    struct page_table table; /* the pool's side of the same rollout */
};

struct rig {
    struct page_pool *pool;
    struct memory_spill *spill;
    struct spill_ops ops;
    struct twin slots[SLOTS];
    struct twin parked[PARKED];
    uint32_t parked_max;
    uint64_t random;
    uint64_t shared;
    uint32_t restored, lost_restores, refused_parks, shares;
    uint8_t *lost;
};

struct setting {
    uint32_t frames;
    uint32_t parked_max; /* pages */
    uint32_t heap_max;
    bool spill;
    uint32_t refuse_percent, fail_percent, damage_percent;
};

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
    rig->ops = (struct spill_ops){rig->spill, spill_write, spill_read, spill_drop};
    rig->parked_max = setting->parked_max;
    struct page_pool_config config = {
        .page_bytes = BYTES,
        .bytes_max = (size_t)setting->frames * BYTES,
        .hot_max = HOT,
        .parked_max = setting->parked_max,
        .heap_max = setting->heap_max,
        .spill = setting->spill ? &rig->ops : NULL,
    };
    EXPECT_OK(page_pool_create(&config, &rig->pool, &error), error);
    rig->spill->pool = rig->pool;
}

static void rig_finish(struct rig *rig)
{
    page_pool_destroy(rig->pool);
    EXPECT_INT(rig->spill->count, 0); /* nothing stays behind */
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

static void compare_rollout(const struct rig *rig, const struct twin *twin, bool hot)
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
    }
}

/* Every rollout, and that nothing exists which no rollout holds. */
static void compare(const struct rig *rig)
{
    uint64_t seen[(SLOTS + PARKED) * WINDOW];
    uint32_t distinct = 0;
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
            }
        }
    }
    struct page_stats stats = page_pool_stats(rig->pool);
    EXPECT_INT(stats.page_count, distinct);
    EXPECT_INT(stats.spill_count, rig->spill->count);
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
    struct twin_page page = {.index = page_take(rig->pool)};
    page.serial = page_serial(rig->pool, page.index);
    EXPECT(page.serial < SERIALS);
    uint8_t *bytes = page_write(rig->pool, page.index);
    EXPECT((uintptr_t)bytes % PAGE_ALIGN == 0);
    memcpy(page.data, &page.serial, sizeof page.serial);
    for (uint32_t i = sizeof page.serial; i < BYTES; i++) {
        page.data[i] = (uint8_t)draw(rig, 256);
    }
    memcpy(bytes, page.data, BYTES);
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

static void operate(struct rig *rig)
{
    struct twin *slot = &rig->slots[draw(rig, SLOTS)];
    struct twin *parked = &rig->parked[draw(rig, PARKED)];
    uint32_t what = draw(rig, 100);
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
    };
    for (uint32_t k = 0; k < COUNT_OF(settings); k++) {
        static struct rig rig;
        run(&settings[k], 100 + k, 50000, &rig);
        struct page_stats stats = page_pool_stats(rig.pool);
        /* The run did what it is for. */
        EXPECT(rig.restored > 100 && rig.shares > 100 && stats.out > 100 && stats.back > 100);
        EXPECT_INT(rig.spill->failures > 0, settings[k].refuse_percent > 0);
        EXPECT_INT(rig.lost_restores > 10, settings[k].refuse_percent > 0);
        EXPECT_INT(stats.lost > 0, settings[k].refuse_percent > 0);
        EXPECT_INT(rig.refused_parks > 0, settings[k].parked_max == 30);
        EXPECT(stats.page_peak <= HOT + settings[k].parked_max);
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
    EXPECT(serial_in(rig.spill->stored[0].data) == rig.parked[0].pages[0].serial);
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
    EXPECT(serial_in(rig.spill->stored[0].data) == rig.parked[1].pages[0].serial);
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

/* ---- a part of every page elsewhere ---- */

enum { BACKED_FRAMES = 2, BACKED_BYTES = 64, BACKED_BUFFERS = 2 };

/* A copy that was started out of a frame: its bytes arrive at the wait. */
struct late_copy {
    uint8_t bytes[BACKED_BYTES];
    void *out;
};

struct elsewhere {
    uint8_t frame[BACKED_FRAMES][BACKED_BYTES];
    _Alignas(PAGE_ALIGN) uint8_t staging[BACKED_BUFFERS][PAGE_ALIGN + BACKED_BYTES];
    struct late_copy late[BACKED_BUFFERS];
    uint32_t late_count;
    bool save_fails, load_fails, wait_fails;
};

static bool save_elsewhere(void *context, uint32_t frame, void *out)
{
    struct elsewhere *elsewhere = context;
    EXPECT(elsewhere->late_count < BACKED_BUFFERS);
    struct late_copy *copy = &elsewhere->late[elsewhere->late_count++];
    memcpy(copy->bytes, elsewhere->frame[frame], BACKED_BYTES);
    copy->out = out;
    memset(out, 0xEE, BACKED_BYTES);
    return !elsewhere->save_fails;
}

static bool wait_elsewhere(void *context)
{
    struct elsewhere *elsewhere = context;
    for (uint32_t i = 0; i < elsewhere->late_count; i++) {
        memcpy(elsewhere->late[i].out, elsewhere->late[i].bytes, BACKED_BYTES);
    }
    elsewhere->late_count = 0;
    return !elsewhere->wait_fails;
}

static bool load_elsewhere(void *context, uint32_t frame, const void *page, const void *bytes)
{
    struct elsewhere *elsewhere = context;
    EXPECT_INT(*(const uint8_t *)page, *(const uint8_t *)bytes); /* both of the same page */
    memcpy(elsewhere->frame[frame], bytes, BACKED_BYTES);
    return !elsewhere->load_fails;
}

static struct page_backing backing_of(struct elsewhere *elsewhere)
{
    return (struct page_backing){elsewhere,      BACKED_BYTES,   elsewhere->staging, BACKED_BUFFERS,
                                 save_elsewhere, load_elsewhere, wait_elsewhere};
}

static struct page_pool_config backed_config(const struct page_backing *backing, uint32_t copies)
{
    return (struct page_pool_config){
        .page_bytes = PAGE_ALIGN,
        .bytes_max = BACKED_FRAMES * (PAGE_ALIGN + BACKED_BYTES),
        .hot_max = BACKED_FRAMES,
        .parked_max = copies,
        .heap_max = copies,
        .backing = backing,
    };
}

/* A page of that byte, here and elsewhere, as a table of its own. */
static void fill_backed(struct page_pool *pool, struct elsewhere *elsewhere, uint8_t byte,
                        struct page_table *table)
{
    uint32_t page = page_take(pool);
    memset(page_write(pool, page), byte, PAGE_ALIGN);
    memset(elsewhere->frame[page_frame(pool, page)], byte, BACKED_BYTES);
    page_commit(pool, page);
    page_table_push(pool, table, page, 1);
}

/* Two frames, both hot at first; one page parks, makes room, and comes back to another frame. A
 * page that the device does not give or take is lost. */
static void pages_move_with_what_lies_elsewhere(void)
{
    static struct elsewhere elsewhere;
    struct error error;
    const struct page_backing backing = backing_of(&elsewhere);
    const struct page_pool_config config = backed_config(&backing, 4);
    EXPECT_INT(page_pool_frames(&config), BACKED_FRAMES);
    for (int fails = 0; fails < 4; fails++) {
        struct page_pool *pool = NULL;
        struct page_table tables[3] = {0};
        struct page_table parked;
        elsewhere = (struct elsewhere){
            .save_fails = fails == 1, .load_fails = fails == 2, .wait_fails = fails == 3};
        EXPECT_OK(page_pool_create(&config, &pool, &error), error);
        fill_backed(pool, &elsewhere, 11, &tables[0]);
        EXPECT(page_table_park(pool, &tables[0], &parked));
        page_table_release(pool, &tables[0]);
        fill_backed(pool, &elsewhere, 22, &tables[1]);
        fill_backed(pool, &elsewhere, 33, &tables[2]); /* takes the frame of the parked one */
        page_table_release(pool, &tables[1]);
        EXPECT_INT(page_table_restore(pool, &parked), fails == 0);
        EXPECT_INT(page_pool_stats(pool).lost, fails != 0);
        if (fails == 0) {
            const uint8_t *page = page_read(pool, parked.page[0]);
            EXPECT_INT(page[PAGE_ALIGN - 1], 11);
            EXPECT_INT(elsewhere.frame[page_frame(pool, parked.page[0])][BACKED_BYTES - 1], 11);
        }
        EXPECT(page_pool_consistent(pool));
        page_pool_destroy(pool);
    }
}

/* A page that leaves holds its buffer until the pool settles; it may be dropped before that, and
 * leaving again and again takes no more buffers than there are. */
static void pages_leave_in_their_own_time(void)
{
    static struct elsewhere elsewhere;
    struct error error;
    const struct page_backing backing = backing_of(&elsewhere);
    const struct page_pool_config config = backed_config(&backing, 8);
    struct page_pool *pool = NULL;
    struct page_table parked[7];
    EXPECT_OK(page_pool_create(&config, &pool, &error), error);
    for (uint8_t i = 0; i < COUNT_OF(parked); i++) {
        struct page_table table = {0};
        fill_backed(pool, &elsewhere, (uint8_t)(i + 1), &table);
        EXPECT(page_table_park(pool, &table, &parked[i]));
        page_table_release(pool, &table);
        EXPECT(page_pool_consistent(pool));
    }
    /* Five have left: four through both buffers twice, the fifth is on its way. */
    EXPECT_INT(elsewhere.late_count, 1);
    EXPECT_INT(page_pool_stats(pool).heap_count, 4);
    page_table_drop(pool, &parked[4]);
    page_pool_settle(pool);
    EXPECT_INT(elsewhere.late_count, 0);
    EXPECT_INT(page_pool_stats(pool).heap_count, 4);
    EXPECT(page_pool_consistent(pool));
    for (uint8_t i = 0; i < COUNT_OF(parked); i++) {
        if (i != 4) {
            EXPECT(page_table_restore(pool, &parked[i]));
            EXPECT_INT(((const uint8_t *)page_read(pool, parked[i].page[0]))[0], i + 1);
            EXPECT_INT(elsewhere.frame[page_frame(pool, parked[i].page[0])][5], i + 1);
            page_table_release(pool, &parked[i]);
        }
    }
    EXPECT_INT(page_pool_stats(pool).page_count, 0);
    EXPECT(page_pool_consistent(pool));
    page_pool_destroy(pool);
}

static void write_after_commit(struct page_pool *pool)
{
    uint32_t page = page_take(pool);
    page_commit(pool, page);
    page_write(pool, page);
}

static void read_before_commit(struct page_pool *pool)
{
    page_read(pool, page_take(pool));
}

static void release_twice(struct page_pool *pool)
{
    uint32_t page = page_take(pool);
    page_release(pool, page);
    page_release(pool, page);
}

static void more_than_hot(struct page_pool *pool)
{
    for (uint32_t i = 0; i <= HOT; i++) {
        page_take(pool);
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
                    TEST(freeing_everything_leaves_nothing), TEST(a_fork_takes_no_memory),
                    TEST(the_longest_parked_goes_first_and_only_when_memory_is_short),
                    TEST(a_lost_page_costs_only_the_rollouts_that_need_it),
                    TEST(a_pool_that_cannot_hold_its_slots_is_refused),
                    TEST(pages_move_with_what_lies_elsewhere), TEST(pages_leave_in_their_own_time),
                    TEST(breaking_the_rules_aborts));
}
