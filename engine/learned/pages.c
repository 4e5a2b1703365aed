/*
 * Page pool: records, references, tables. See pages.h for the rules, pages_internal.h for the
 * invariants, pages_tiers.c for where pages lie.
 */
#include "engine/learned/pages_internal.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

/* ---- creation ---- */

static size_t rounded(size_t bytes)
{
    return (bytes + PAGE_ALIGN - 1) / PAGE_ALIGN * PAGE_ALIGN;
}

/* Of a page with its backing, before the configuration is rounded. */
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
    CHECK(config->backing == NULL || (config->backing->bytes % PAGE_ALIGN == 0 &&
                                      config->backing->buffers > config->host_max));
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
    TRY(memory_check(pool, error, "page pool: no memory"));
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
        pool->pages[i].next = i + 1 < records ? i + 1 : PAGE_NONE;
    }
    page_cold_init(&pool->cold);
    pool->host = (struct page_list){PAGE_NONE, PAGE_NONE, 0};
    pool->round = 1;
    enum status status = page_tiers_init(pool, error);
    if (status != STATUS_OK) {
        page_pool_destroy(pool);
        return status;
    }
    *out = pool;
    return STATUS_OK;
}

void page_pool_destroy(struct page_pool *pool)
{
    if (pool == NULL) {
        return;
    }
    page_tiers_finish(pool);
    free(pool->memory);
    free(pool->free_frames);
    free(pool->pages);
    free(pool);
}

struct page_stats page_pool_stats(const struct page_pool *pool)
{
    struct page_stats stats = pool->stats;
    stats.frame_count = pool->frame_count - pool->free_frame_count;
    stats.frame_max = pool->frame_count;
    stats.host_max = pool->config.host_max;
    stats.host_count = pool->host.count + page_tiers_leaving(pool);
    return stats;
}

/* ---- references ---- */

static struct page *existing(const struct page_pool *pool, uint32_t index)
{
    CHECK(index < pool->record_count && pool->pages[index].state != PAGE_FREE);
    return &pool->pages[index];
}

/* Called when the last hot or the last cold reference went, or the last but one cold one. */
static void settle(struct page_pool *pool, uint32_t index)
{
    struct page *page = &pool->pages[index];
    if (page->hot > 0) {
        return;
    }
    if (page->cold > 0) {
        if (page->state == PAGE_MEMORY) {
            page_cold_add(pool, index);
        }
        return;
    }
    page_tiers_forget(pool, index);
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
            page_cold_remove(pool, index);
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

uint32_t page_take(struct page_pool *pool, uint32_t tick)
{
    CHECK(pool->hot_count < pool->config.hot_max);
    uint32_t frame = page_tiers_frame(pool);
    uint32_t index = pool->free_page;
    CHECK(index != PAGE_NONE);
    struct page *page = &pool->pages[index];
    pool->free_page = page->next;
    *page = (struct page){
        .state = PAGE_WRITTEN,
        .hot = 1,
        .frame = frame,
        .tick = tick,
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
    return page_frame_at(pool, pool->pages[page].frame);
}

void page_commit(struct page_pool *pool, uint32_t page)
{
    CHECK(existing(pool, page)->state == PAGE_WRITTEN);
    pool->pages[page].state = PAGE_MEMORY;
}

static uint8_t *hot_frame(const struct page_pool *pool, uint32_t page)
{
    const struct page *record = existing(pool, page);
    CHECK(record->state == PAGE_MEMORY && record->hot > 0);
    return page_frame_at(pool, record->frame);
}

const void *page_read(const struct page_pool *pool, uint32_t page)
{
    return hot_frame(pool, page);
}

void *page_complete(struct page_pool *pool, uint32_t page)
{
    return hot_frame(pool, page);
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
    page_tiers_bring_back(pool, record);
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
        page_tiers_bring_back(pool, page);
        whole &= page->state == PAGE_MEMORY;
    }
    page_pool_start(pool); /* the tick that wants them is yet to be drawn */
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
        /* Its place among cold pages changes when it is no longer shared. */
        bool placed = page->state == PAGE_MEMORY && page->hot == 0 && page->cold <= 2;
        if (placed) {
            page_cold_remove(pool, index);
        }
        remove_cold(pool, index);
        if (placed || (page->hot == 0 && page->cold == 0)) {
            settle(pool, index);
        }
    }
    parked->count = 0;
}
