/*
 * A page pool's account of itself, held against its pages one by one.
 */
#ifndef SWERVE_TESTS_ENGINE_PAGES_ACCOUNT_H
#define SWERVE_TESTS_ENGINE_PAGES_ACCOUNT_H

#include "engine/learned/pages_internal.h"

static inline void page_references(const struct page_pool *pool, uint32_t page, uint32_t *hot,
                                   uint32_t *cold)
{
    *hot = pool->pages[page].hot;
    *cold = pool->pages[page].cold;
}

/* A list's pages, each in a state of the mask; UINT32_MAX when its links or its count are wrong. */
static inline uint32_t listed(const struct page_pool *pool, const struct page_list *list,
                              uint32_t states)
{
    uint32_t count = 0;
    uint32_t previous = PAGE_NONE;
    for (uint32_t i = list->oldest; i != PAGE_NONE; i = pool->pages[i].next) {
        if (pool->pages[i].previous != previous || (states >> pool->pages[i].state & 1) == 0 ||
            count++ == list->count) {
            return UINT32_MAX;
        }
        previous = i;
    }
    return count == list->count && list->newest == previous ? count : UINT32_MAX;
}

/* Pages in the cold lists, each in that of its kind and slab; UINT32_MAX when one is not. */
static inline uint32_t listed_cold(const struct page_pool *pool)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < 2 * PAGE_SLABS; i++) {
        const struct page_list *list = &pool->cold.list[i / PAGE_SLABS][i % PAGE_SLABS];
        uint32_t slab = i % PAGE_SLABS;
        bool used = (pool->cold.used[i / PAGE_SLABS][slab / 64] >> slab % 64 & 1) != 0;
        uint32_t count = listed(pool, list, 1u << PAGE_MEMORY);
        for (uint32_t p = list->oldest; count != UINT32_MAX && p != PAGE_NONE;
             p = pool->pages[p].next) {
            const struct page *page = &pool->pages[p];
            if (page->hot > 0 || page_cold_slab(page) != slab ||
                (page->cold > 1) != (i >= PAGE_SLABS)) {
                return UINT32_MAX;
            }
        }
        if (count == UINT32_MAX || used != (count > 0)) {
            return UINT32_MAX;
        }
        sum += count;
    }
    return sum;
}

static inline bool page_pool_consistent(const struct page_pool *pool)
{
    uint32_t count[PAGE_LOST + 1] = {0};
    uint32_t live = 0, hot = 0, parked = 0, idle = 0;
    for (uint32_t i = 0; i < pool->record_count; i++) {
        const struct page *page = &pool->pages[i];
        if (page->state == PAGE_FREE) {
            continue;
        }
        if (page->hot + page->cold == 0 || (page->hot > 0 && page->state > PAGE_MEMORY) ||
            (page->state == PAGE_LEAVING && pool->leaving[page->buffer] != i)) {
            return false;
        }
        count[page->state]++;
        live++;
        hot += page->hot > 0;
        parked += page->cold > 0;
        idle += page->state == PAGE_MEMORY && page->hot == 0;
    }
    return count[PAGE_WRITTEN] + count[PAGE_MEMORY] + pool->free_frame_count == pool->frame_count &&
           listed_cold(pool) == idle &&
           listed(pool, &pool->host, 1u << PAGE_HOST | 1u << PAGE_AHEAD) ==
               count[PAGE_HOST] + count[PAGE_AHEAD] &&
           pool->host.count + pool->busy_count + pool->free_buffer_count == pool->buffer_count &&
           page_tiers_leaving(pool) == count[PAGE_LEAVING] && live == pool->stats.page_count &&
           hot == pool->hot_count && parked == pool->parked_count &&
           count[PAGE_SPILLED] + count[PAGE_AHEAD] == pool->stats.spill_count &&
           count[PAGE_AHEAD] == pool->stats.ahead_count &&
           count[PAGE_HEAP] == pool->stats.heap_count;
}

#endif
