/*
 * Page pool internals, shared by pages.c (records, references, tables), pages_tiers.c (where pages
 * lie), pages_cold.c (which one leaves next) and read_ahead.c. Nobody else includes this.
 *
 * A record is in one of the states below; a *frame* is the room of one page in the pool's memory, a
 * *buffer* that of a page with its backing in the host tier. Invariants: a page with hot references
 * has a frame (or is lost, or on its way, for the duration of a restore); a page is in at most one
 * list, one of `cold` when it is cold and in memory, `host` when it is HOST or AHEAD, each in the
 * order in which pages came; frames in use and free ones add up; a buffer is free, `busy` (a copy
 * of the backing's is under way) or a listed page's. Pages out of memory carry a digest, so that
 * what comes back is what went out or counts as lost.
 */
#ifndef SWERVE_ENGINE_LEARNED_PAGES_INTERNAL_H
#define SWERVE_ENGINE_LEARNED_PAGES_INTERNAL_H

#include "engine/learned/pages.h"
#include "engine/learned/read_ahead.h"

#define PAGE_NONE UINT32_MAX

enum page_state {
    PAGE_FREE = 0,
    PAGE_WRITTEN,
    PAGE_MEMORY,
    PAGE_LEAVING, /* a copy from its backing into a buffer is under way */
    PAGE_HOST,    /* in a buffer */
    PAGE_AHEAD,   /* in the spill, and a buffer waits for it, or has it by now */
    PAGE_SPILLED,
    PAGE_HEAP,
    PAGE_LOST
};

struct page {
    enum page_state state;
    uint32_t hot;
    uint32_t cold;
    uint32_t frame;    /* WRITTEN, MEMORY */
    uint32_t buffer;   /* LEAVING, HOST, AHEAD */
    uint32_t previous; /* in a list; `next` also links free records */
    uint32_t next;
    uint32_t tick; /* of its rollout */
    uint64_t serial;
    uint64_t wished; /* the round in which somebody last wished to have it near */
    uint64_t handle; /* SPILLED, AHEAD */
    void *copy;      /* HEAP */
    uint64_t digest; /* AHEAD, SPILLED, HEAP */
};

struct page_list {
    uint32_t oldest;
    uint32_t newest;
    uint32_t count;
};

enum { PAGE_SLAB_TICKS = 4, PAGE_SLABS = 1536 };

/* Cold pages in memory, by whether more than one table holds them, and by time slab (the last one
 * holds all that is later). */
struct page_cold {
    struct page_list list[2][PAGE_SLABS];
    uint64_t used[2][PAGE_SLABS / 64]; /* a bit per list: it is not empty */
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
    struct page_cold cold;
    struct page_list host;
    uint32_t hot_count;    /* pages with hot references */
    uint32_t parked_count; /* pages with cold references */
    uint64_t next_serial;
    uint64_t round; /* between two calls of page_pool_settle */

    uint8_t *buffers;     /* [buffer_count][page with its backing]: the backing's, or own_buffers */
    uint8_t *own_buffers; /* NULL with a backing */
    uint32_t buffer_count;
    uint32_t *free_buffers; /* ring */
    uint32_t free_buffer_first;
    uint32_t free_buffer_count;
    uint32_t *busy; /* in use until the next wait, in the order of their copies */
    uint32_t busy_count;
    uint32_t *leaving; /* by busy buffer: the page that leaves through it, or PAGE_NONE */
    struct read_ahead *read_ahead; /* NULL: nothing is read ahead */
    struct page_stats stats;
};

static inline uint8_t *page_frame_at(const struct page_pool *pool, uint32_t frame)
{
    return pool->memory + frame * pool->config.page_bytes;
}

/* Of a page with its backing; config.page_bytes is rounded up already. */
static inline size_t page_whole_bytes(const struct page_pool_config *config)
{
    return config->page_bytes + (config->backing != NULL ? config->backing->bytes : 0);
}

void page_list_append(struct page_pool *pool, struct page_list *list, uint32_t index);
void page_list_remove(struct page_pool *pool, struct page_list *list, uint32_t index);

/* ---- cold pages (pages_cold.c) ---- */

void page_cold_init(struct page_cold *cold);
/* A page that is cold and in memory now; before its references change it is taken out again. */
void page_cold_add(struct page_pool *pool, uint32_t index);
void page_cold_remove(struct page_pool *pool, uint32_t index);
/* The one that leaves next; PAGE_NONE: there is none. */
uint32_t page_cold_first(const struct page_pool *pool);
uint32_t page_cold_slab(const struct page *page);

/* ---- tiers (pages_tiers.c) ---- */

/* Buffers, and the thread that reads ahead when spill and configuration allow one. What was made
 * before an error is freed by finish, which also forgets every page's copies outside of memory. */
enum status page_tiers_init(struct page_pool *pool, struct error *error);
void page_tiers_finish(struct page_pool *pool);

/* A free frame; the first of the cold pages leaves its own when there is none. */
uint32_t page_tiers_frame(struct page_pool *pool);
/* Brings a page back into memory; it may turn out to be lost. */
void page_tiers_bring_back(struct page_pool *pool, struct page *page);
/* Forgets what a page has outside of the pool's memory. */
void page_tiers_forget(struct page_pool *pool, uint32_t index);
/* For page_pool_stats: pages whose copies to the host tier are under way. */
uint32_t page_tiers_leaving(const struct page_pool *pool);

#endif
