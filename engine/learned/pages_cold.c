/*
 * Which cold page leaves memory next: pages that one parked table alone holds before those that
 * several share, of them the oldest time slab, and in a slab the one that became cold first. A slab
 * is PAGE_SLAB_TICKS ticks of rollout time.
 *
 * Why: branches wait where they were forked and resume in the reverse order, so that of a tree of
 * them the earliest pages are wanted last, and what several hold is wanted by the first of them.
 * Without the first rule age is worse than the order of parking: the oldest pages of a fanout are
 * those that all branches hold. tests/engine/test_pages_order.c has the figures.
 *
 * A list for each kind and slab, and a bit for each list that is not empty: constant time, whatever
 * the number of pages.
 */
#include "engine/learned/pages_internal.h"

enum { WORD_BITS = 64 };

void page_list_append(struct page_pool *pool, struct page_list *list, uint32_t index)
{
    struct page *page = &pool->pages[index];
    page->previous = list->newest;
    page->next = PAGE_NONE;
    if (list->newest != PAGE_NONE) {
        pool->pages[list->newest].next = index;
    } else {
        list->oldest = index;
    }
    list->newest = index;
    list->count++;
}

void page_list_remove(struct page_pool *pool, struct page_list *list, uint32_t index)
{
    struct page *page = &pool->pages[index];
    if (page->previous != PAGE_NONE) {
        pool->pages[page->previous].next = page->next;
    } else {
        list->oldest = page->next;
    }
    if (page->next != PAGE_NONE) {
        pool->pages[page->next].previous = page->previous;
    } else {
        list->newest = page->previous;
    }
    list->count--;
}

void page_cold_init(struct page_cold *cold)
{
    *cold = (struct page_cold){0};
    for (uint32_t slab = 0; slab < PAGE_SLABS; slab++) {
        cold->list[0][slab] = cold->list[1][slab] = (struct page_list){PAGE_NONE, PAGE_NONE, 0};
    }
}

uint32_t page_cold_slab(const struct page *page)
{
    uint32_t slab = page->tick / PAGE_SLAB_TICKS;
    return slab < PAGE_SLABS ? slab : PAGE_SLABS - 1;
}

void page_cold_add(struct page_pool *pool, uint32_t index)
{
    const struct page *page = &pool->pages[index];
    uint32_t shared = page->cold > 1;
    uint32_t slab = page_cold_slab(page);
    page_list_append(pool, &pool->cold.list[shared][slab], index);
    pool->cold.used[shared][slab / WORD_BITS] |= 1ull << slab % WORD_BITS;
}

void page_cold_remove(struct page_pool *pool, uint32_t index)
{
    const struct page *page = &pool->pages[index];
    uint32_t shared = page->cold > 1;
    uint32_t slab = page_cold_slab(page);
    struct page_list *list = &pool->cold.list[shared][slab];
    page_list_remove(pool, list, index);
    if (list->count == 0) {
        pool->cold.used[shared][slab / WORD_BITS] &= ~(1ull << slab % WORD_BITS);
    }
}

uint32_t page_cold_first(const struct page_pool *pool)
{
    for (uint32_t shared = 0; shared < 2; shared++) {
        for (uint32_t word = 0; word < PAGE_SLABS / WORD_BITS; word++) {
            uint64_t bits = pool->cold.used[shared][word];
            if (bits != 0) {
                uint32_t slab = word * WORD_BITS + (uint32_t)__builtin_ctzll(bits);
                return pool->cold.list[shared][slab].oldest;
            }
        }
    }
    return PAGE_NONE;
}
