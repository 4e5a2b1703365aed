/*
 * Page pool: records, frames, the list of cold pages. See pages.h for the rules.
 *
 * A record is in one of the states below; a *frame* is the room of one page in the pool's memory.
 * Invariants: a page with hot references has a frame (or is lost, for the moment in which a restore
 * finds that out); the pages that are cold and in memory form a list in the order in which they
 * became cold; frames in use and free frames add up. Pages out of memory carry a digest, so that
 * what comes back is what went out or counts as lost.
 */
#include "engine/pages.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

#define NONE UINT32_MAX

enum page_state {
    PAGE_FREE = 0,
    PAGE_WRITTEN,
    PAGE_MEMORY,
    PAGE_LEAVING, /* a copy from its backing into a buffer is under way */
    PAGE_SPILLED,
    PAGE_HEAP,
    PAGE_LOST
};

struct page {
    enum page_state state;
    uint32_t hot;
    uint32_t cold;
    uint32_t frame;    /* WRITTEN, MEMORY */
    uint32_t previous; /* in the list of cold pages; `next` also links free records */
    uint32_t next;
    uint64_t serial;
    uint64_t handle; /* SPILLED */
    void *copy;      /* HEAP */
    uint32_t buffer; /* LEAVING */
    uint64_t digest; /* SPILLED, HEAP */
};

struct page_pool {
    struct page_pool_config config;
    uint8_t *memory; /* [frame_count][page_bytes] */
    uint32_t frame_count;
    uint32_t *free_frames; /* stack */
    uint32_t free_frame_count;
    uint32_t record_count;
    struct page *pages;
    uint32_t free_page;
    uint32_t oldest_cold; /* list of cold pages in memory */
    uint32_t newest_cold;
    uint32_t hot_count;    /* pages with hot references */
    uint32_t parked_count; /* pages with cold references */
    uint64_t next_serial;
    uint32_t buffer_count;              /* of the backing's: in use until the next wait */
    uint32_t leaving[PAGE_BUFFERS_MAX]; /* by buffer: the page that leaves through it, or NONE */
    struct page_stats stats;
};

/* ---- creation ---- */

static size_t rounded(size_t bytes)
{
    return (bytes + PAGE_ALIGN - 1) / PAGE_ALIGN * PAGE_ALIGN;
}

/* Of a page with its backing. */
static size_t whole_bytes(const struct page_pool_config *config)
{
    return rounded(config->page_bytes) + (config->backing != NULL ? config->backing->bytes : 0);
}

uint32_t page_pool_frames(const struct page_pool_config *config)
{
    uint32_t records = config->hot_max + config->parked_max;
    size_t frames = config->bytes_max / whole_bytes(config);
    if (frames < config->hot_max) {
        return 0;
    }
    return frames < records ? (uint32_t)frames : records; /* more could never be used */
}

enum status page_pool_create(const struct page_pool_config *config, struct page_pool **out,
                             struct error *error)
{
    CHECK(config->page_bytes > 0 && config->hot_max > 0);
    CHECK(config->backing == NULL ||
          (config->backing->bytes % PAGE_ALIGN == 0 && config->backing->buffers >= 1 &&
           config->backing->buffers <= PAGE_BUFFERS_MAX));
    size_t page_bytes = rounded(config->page_bytes);
    uint32_t records = config->hot_max + config->parked_max;
    size_t frames = page_pool_frames(config);
    if (frames == 0) {
        return error_set(error, STATUS_LIMIT,
                         "page pool: expected at least %zu bytes (%u pages of %zu), found %zu",
                         whole_bytes(config) * config->hot_max, config->hot_max,
                         whole_bytes(config), config->bytes_max);
    }
    struct page_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL) {
        return error_set(error, STATUS_NO_MEMORY, "page pool: no memory");
    }
    pool->config = *config;
    pool->config.page_bytes = page_bytes;
    pool->frame_count = (uint32_t)frames;
    pool->record_count = records;
    /* Untouched until used: the system gives memory page by page. */
    pool->memory = aligned_alloc(PAGE_ALIGN, frames * page_bytes);
    pool->free_frames = calloc(frames, sizeof *pool->free_frames);
    pool->pages = calloc(records, sizeof *pool->pages);
    if (pool->memory == NULL || pool->free_frames == NULL || pool->pages == NULL) {
        page_pool_destroy(pool);
        return error_set(error, STATUS_NO_MEMORY, "page pool: no memory for %zu pages of %zu bytes",
                         frames, page_bytes);
    }
    for (uint32_t i = 0; i < pool->frame_count; i++) {
        pool->free_frames[i] = pool->frame_count - 1 - i;
    }
    pool->free_frame_count = pool->frame_count;
    for (uint32_t i = 0; i < records; i++) {
        pool->pages[i].next = i + 1 < records ? i + 1 : NONE;
    }
    pool->oldest_cold = pool->newest_cold = NONE;
    *out = pool;
    return STATUS_OK;
}

/* Forgets what a page has outside of the pool's memory. */
static void forget_copy(struct page_pool *pool, struct page *page)
{
    if (page->state == PAGE_SPILLED) {
        pool->config.spill->drop(pool->config.spill->context, page->handle);
        pool->stats.spill_count--;
    } else if (page->state == PAGE_HEAP) {
        free(page->copy);
        pool->stats.heap_count--;
    } else if (page->state == PAGE_LEAVING) {
        pool->leaving[page->buffer] = NONE;
    }
}

void page_pool_destroy(struct page_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    for (uint32_t i = 0; pool->pages != NULL && i < pool->record_count; i++) {
        forget_copy(pool, &pool->pages[i]);
    }
    free(pool->memory);
    free(pool->free_frames);
    free(pool->pages);
    free(pool);
}

struct page_stats page_pool_stats(const struct page_pool *pool)
{
    struct page_stats stats = pool->stats;
    stats.frame_count = pool->frame_count - pool->free_frame_count;
    return stats;
}

/* ---- out of memory and back ---- */

static uint8_t *frame_at(const struct page_pool *pool, uint32_t frame)
{
    return pool->memory + frame * pool->config.page_bytes;
}

/* Four lanes of multiply and rotate over 64-bit words: finds damage, not malice. */
static uint64_t digest_of(const uint8_t *data, size_t bytes)
{
    const uint64_t prime = 0x9E3779B185EBCA87ull;
    uint64_t lanes[4] = {1, 2, 3, 4};
    for (size_t i = 0; i < bytes; i += sizeof lanes) {
        uint64_t words[4];
        memcpy(words, data + i, sizeof words);
        for (int k = 0; k < 4; k++) {
            lanes[k] = (lanes[k] ^ words[k]) * prime;
            lanes[k] ^= lanes[k] >> 29;
        }
    }
    return lanes[0] ^ lanes[1] * 3 ^ lanes[2] * 5 ^ lanes[3] * 7;
}

static void list_append(struct page_pool *pool, uint32_t index)
{
    struct page *page = &pool->pages[index];
    page->previous = pool->newest_cold;
    page->next = NONE;
    if (pool->newest_cold != NONE) {
        pool->pages[pool->newest_cold].next = index;
    } else {
        pool->oldest_cold = index;
    }
    pool->newest_cold = index;
}

static void list_remove(struct page_pool *pool, uint32_t index)
{
    const struct page *page = &pool->pages[index];
    if (page->previous != NONE) {
        pool->pages[page->previous].next = page->next;
    } else {
        pool->oldest_cold = page->next;
    }
    if (page->next != NONE) {
        pool->pages[page->next].previous = page->previous;
    } else {
        pool->newest_cold = page->previous;
    }
}

static void lose(struct page_pool *pool, struct page *page)
{
    page->state = PAGE_LOST;
    pool->stats.lost++;
}

/* Keeps a copy of `data`, the page in one piece: in the spill, else on the heap. */
static bool keep_copy(struct page_pool *pool, struct page *page, const uint8_t *data)
{
    const struct spill_ops *spill = pool->config.spill;
    const size_t bytes = whole_bytes(&pool->config);
    page->digest = digest_of(data, bytes);
    page->handle = spill != NULL ? spill->write(spill->context, data, bytes) : 0;
    if (page->handle != 0) {
        page->state = PAGE_SPILLED;
        pool->stats.spill_count++;
        return true;
    }
    page->copy = pool->stats.heap_count < pool->config.heap_max ? malloc(bytes) : NULL;
    if (page->copy == NULL) {
        return false;
    }
    memcpy(page->copy, data, bytes);
    page->state = PAGE_HEAP;
    pool->stats.heap_count++;
    return true;
}

static void keep_or_lose(struct page_pool *pool, struct page *page, const uint8_t *data)
{
    if (keep_copy(pool, page, data)) {
        pool->stats.out++;
    } else {
        lose(pool, page);
    }
}

static uint8_t *buffer_at(const struct page_pool *pool, uint32_t buffer)
{
    return (uint8_t *)pool->config.backing->staging + buffer * whole_bytes(&pool->config);
}

void page_pool_settle(struct page_pool *pool)
{
    const struct page_backing *backing = pool->config.backing;
    if (pool->buffer_count == 0) {
        return;
    }
    bool good = backing->wait(backing->context);
    for (uint32_t i = 0; i < pool->buffer_count; i++) {
        if (pool->leaving[i] == NONE) {
            continue; /* came in, or nobody wants it any more */
        }
        struct page *page = &pool->pages[pool->leaving[i]];
        if (good) {
            keep_or_lose(pool, page, buffer_at(pool, i));
        } else {
            lose(pool, page);
        }
    }
    pool->buffer_count = 0;
}

static uint32_t take_buffer(struct page_pool *pool)
{
    if (pool->buffer_count == pool->config.backing->buffers) {
        page_pool_settle(pool);
    }
    pool->leaving[pool->buffer_count] = NONE;
    return pool->buffer_count++;
}

/* The page's frame is free at once: the device orders what comes next behind the copy. */
static void start_leaving(struct page_pool *pool, uint32_t index)
{
    const struct page_backing *backing = pool->config.backing;
    struct page *page = &pool->pages[index];
    uint32_t buffer = take_buffer(pool);
    uint8_t *data = buffer_at(pool, buffer);
    memcpy(data, frame_at(pool, page->frame), pool->config.page_bytes);
    if (!backing->save(backing->context, page->frame, data + pool->config.page_bytes)) {
        lose(pool, page);
        return;
    }
    page->state = PAGE_LEAVING;
    page->buffer = buffer;
    pool->leaving[buffer] = index;
}

/* Moves the page that has been cold longest out of memory; returns the frame it had. */
static uint32_t evict(struct page_pool *pool)
{
    uint32_t index = pool->oldest_cold;
    CHECK(index != NONE); /* else more pages are hot than the pool was sized for */
    struct page *page = &pool->pages[index];
    list_remove(pool, index);
    if (pool->config.backing != NULL) {
        start_leaving(pool, index);
    } else {
        keep_or_lose(pool, page, frame_at(pool, page->frame));
    }
    return page->frame;
}

static uint32_t take_frame(struct page_pool *pool)
{
    return pool->free_frame_count > 0 ? pool->free_frames[--pool->free_frame_count] : evict(pool);
}

/* What was kept elsewhere, in one piece, into `data`. */
static bool fetch_copy(struct page_pool *pool, struct page *page, uint8_t *data)
{
    const struct spill_ops *spill = pool->config.spill;
    const size_t bytes = whole_bytes(&pool->config);
    bool read = true;
    if (page->state == PAGE_SPILLED) {
        read = spill->read(spill->context, page->handle, data, bytes);
        if (!read) {
            spill->drop(spill->context, page->handle);
        }
        pool->stats.spill_count--;
    } else {
        memcpy(data, page->copy, bytes);
        free(page->copy);
        pool->stats.heap_count--;
    }
    return read && digest_of(data, bytes) == page->digest;
}

/* Brings a page back into memory; it may turn out to be lost. */
static void bring_back(struct page_pool *pool, struct page *page)
{
    const struct page_backing *backing = pool->config.backing;
    if (page->state == PAGE_LEAVING) {
        page_pool_settle(pool);
    }
    if (page->state != PAGE_SPILLED && page->state != PAGE_HEAP) {
        return;
    }
    uint32_t frame = take_frame(pool);
    uint8_t *home = frame_at(pool, frame);
    uint8_t *data = backing != NULL ? buffer_at(pool, take_buffer(pool)) : home;
    bool good = fetch_copy(pool, page, data);
    if (good && backing != NULL) {
        memcpy(home, data, pool->config.page_bytes);
        good = backing->load(backing->context, frame, home, data + pool->config.page_bytes);
    }
    if (good) {
        page->state = PAGE_MEMORY;
        page->frame = frame;
        pool->stats.back++;
    } else {
        pool->free_frames[pool->free_frame_count++] = frame;
        lose(pool, page);
    }
}

/* ---- references ---- */

static struct page *existing(const struct page_pool *pool, uint32_t index)
{
    CHECK(index < pool->record_count && pool->pages[index].state != PAGE_FREE);
    return &pool->pages[index];
}

/* Called when the last hot or the last cold reference went. */
static void settle(struct page_pool *pool, uint32_t index)
{
    struct page *page = &pool->pages[index];
    if (page->hot > 0) {
        return;
    }
    if (page->cold > 0) {
        if (page->state == PAGE_MEMORY) {
            list_append(pool, index);
        }
        return;
    }
    forget_copy(pool, page);
    if (page->state == PAGE_WRITTEN || page->state == PAGE_MEMORY) {
        pool->free_frames[pool->free_frame_count++] = page->frame;
    }
    page->state = PAGE_FREE;
    page->next = pool->free_page;
    pool->free_page = index;
    pool->stats.page_count--;
}

static void add_hot(struct page_pool *pool, uint32_t index)
{
    struct page *page = existing(pool, index);
    if (page->hot++ == 0) {
        pool->hot_count++;
        CHECK(pool->hot_count <= pool->config.hot_max);
        if (page->state == PAGE_MEMORY) {
            list_remove(pool, index);
        }
    }
}

static void add_cold(struct page_pool *pool, uint32_t index)
{
    pool->parked_count += existing(pool, index)->cold++ == 0;
}

/* Does not settle: a page may exchange its last cold reference for a hot one. */
static void remove_cold(struct page_pool *pool, uint32_t index)
{
    struct page *page = existing(pool, index);
    CHECK(page->cold > 0);
    pool->parked_count -= --page->cold == 0;
}

/* ---- single pages ---- */

uint32_t page_take(struct page_pool *pool)
{
    CHECK(pool->hot_count < pool->config.hot_max);
    uint32_t frame = take_frame(pool);
    uint32_t index = pool->free_page;
    CHECK(index != NONE);
    struct page *page = &pool->pages[index];
    pool->free_page = page->next;
    *page = (struct page){
        .state = PAGE_WRITTEN,
        .hot = 1,
        .frame = frame,
        .serial = ++pool->next_serial,
    };
    pool->hot_count++;
    pool->stats.page_count++;
    if (pool->stats.page_count > pool->stats.page_peak) {
        pool->stats.page_peak = pool->stats.page_count;
    }
    return index;
}

void *page_write(struct page_pool *pool, uint32_t page)
{
    CHECK(existing(pool, page)->state == PAGE_WRITTEN);
    return frame_at(pool, pool->pages[page].frame);
}

void page_commit(struct page_pool *pool, uint32_t page)
{
    CHECK(existing(pool, page)->state == PAGE_WRITTEN);
    pool->pages[page].state = PAGE_MEMORY;
}

const void *page_read(const struct page_pool *pool, uint32_t page)
{
    const struct page *record = existing(pool, page);
    CHECK(record->state == PAGE_MEMORY && record->hot > 0);
    return frame_at(pool, record->frame);
}

void *page_complete(struct page_pool *pool, uint32_t page)
{
    const struct page *record = existing(pool, page);
    CHECK(record->state == PAGE_MEMORY && record->hot > 0);
    return frame_at(pool, record->frame);
}

uint32_t page_frame(const struct page_pool *pool, uint32_t page)
{
    const struct page *record = existing(pool, page);
    CHECK(record->state == PAGE_WRITTEN || record->state == PAGE_MEMORY);
    return record->frame;
}

uint64_t page_serial(const struct page_pool *pool, uint32_t page)
{
    return existing(pool, page)->serial;
}

bool page_share(struct page_pool *pool, uint32_t page, uint64_t serial)
{
    CHECK(page < pool->record_count);
    struct page *record = &pool->pages[page];
    if (record->state == PAGE_FREE || record->serial != serial) {
        return false;
    }
    CHECK(record->state != PAGE_WRITTEN);
    add_hot(pool, page);
    bring_back(pool, record);
    if (record->state == PAGE_LOST) {
        page_release(pool, page);
        return false;
    }
    pool->stats.shared++;
    return true;
}

void page_release(struct page_pool *pool, uint32_t page)
{
    struct page *record = existing(pool, page);
    CHECK(record->hot > 0);
    if (--record->hot == 0) {
        pool->hot_count--;
        settle(pool, page);
    }
}

/* ---- tables ---- */

void page_table_push(struct page_pool *pool, struct page_table *table, uint32_t page,
                     uint32_t limit)
{
    CHECK(limit >= 1 && limit <= PAGE_TABLE_MAX);
    CHECK(existing(pool, page)->state == PAGE_MEMORY);
    while (table->count >= limit) {
        page_release(pool, table->page[--table->count]);
    }
    memmove(&table->page[1], &table->page[0], table->count * sizeof table->page[0]);
    table->page[0] = page;
    table->count++;
}

void page_table_fork(struct page_pool *pool, const struct page_table *from, struct page_table *to)
{
    *to = *from;
    for (uint32_t i = 0; i < to->count; i++) {
        add_hot(pool, to->page[i]);
    }
    pool->stats.shared += to->count;
}

void page_table_release(struct page_pool *pool, struct page_table *table)
{
    for (uint32_t i = 0; i < table->count; i++) {
        page_release(pool, table->page[i]);
    }
    table->count = 0;
}

bool page_table_park(struct page_pool *pool, const struct page_table *from, struct page_table *to)
{
    uint32_t fresh = 0;
    for (uint32_t i = 0; i < from->count; i++) {
        const struct page *page = existing(pool, from->page[i]);
        CHECK(page->hot > 0);
        fresh += page->cold == 0;
    }
    *to = (struct page_table){0};
    if (pool->parked_count + fresh > pool->config.parked_max) {
        return false;
    }
    *to = *from;
    for (uint32_t i = 0; i < to->count; i++) {
        add_cold(pool, to->page[i]);
    }
    pool->stats.shared += to->count;
    return true;
}

bool page_table_restore(struct page_pool *pool, struct page_table *table)
{
    bool whole = true;
    /* All are hot before the first is brought back, so that none of them is evicted for another. */
    for (uint32_t i = 0; i < table->count; i++) {
        add_hot(pool, table->page[i]);
        remove_cold(pool, table->page[i]);
    }
    for (uint32_t i = 0; i < table->count; i++) {
        struct page *page = &pool->pages[table->page[i]];
        bring_back(pool, page);
        whole &= page->state == PAGE_MEMORY;
    }
    if (!whole) {
        page_table_release(pool, table);
    }
    return whole;
}

void page_table_drop(struct page_pool *pool, struct page_table *parked)
{
    for (uint32_t i = 0; i < parked->count; i++) {
        uint32_t index = parked->page[i];
        struct page *page = &pool->pages[index];
        remove_cold(pool, index);
        if (page->cold == 0 && page->hot == 0) {
            if (page->state == PAGE_MEMORY) {
                list_remove(pool, index);
            }
            settle(pool, index);
        }
    }
    parked->count = 0;
}

/* ---- for tests ---- */

void page_references(const struct page_pool *pool, uint32_t page, uint32_t *hot, uint32_t *cold)
{
    *hot = existing(pool, page)->hot;
    *cold = existing(pool, page)->cold;
}

bool page_pool_consistent(const struct page_pool *pool)
{
    uint32_t frames = 0, live = 0, hot = 0, parked = 0, spilled = 0, heap = 0, idle = 0;
    for (uint32_t i = 0; i < pool->record_count; i++) {
        const struct page *page = &pool->pages[i];
        if (page->state == PAGE_FREE) {
            continue;
        }
        if (page->hot + page->cold == 0 || (page->hot > 0 && page->state > PAGE_MEMORY)) {
            return false;
        }
        live++;
        hot += page->hot > 0;
        parked += page->cold > 0;
        frames += page->state == PAGE_WRITTEN || page->state == PAGE_MEMORY;
        spilled += page->state == PAGE_SPILLED;
        heap += page->state == PAGE_HEAP;
        idle += page->state == PAGE_MEMORY && page->hot == 0;
    }
    uint32_t listed = 0;
    for (uint32_t i = pool->oldest_cold; i != NONE && listed <= idle; i = pool->pages[i].next) {
        listed++;
    }
    return frames + pool->free_frame_count == pool->frame_count && listed == idle &&
           live == pool->stats.page_count && hot == pool->hot_count &&
           parked == pool->parked_count && spilled == pool->stats.spill_count &&
           heap == pool->stats.heap_count;
}
