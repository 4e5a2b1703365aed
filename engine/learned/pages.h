/*
 * Page pool: the memory of learned rollouts. A *page* is one committed frame with all that later
 * ticks need of it (its layout is the world's business); a *page table* is a rollout's memory, its
 * newest pages first. A page is written by its one owner, committed, and immutable from then on,
 * so tables share pages and a fork copies a table and counts references. (Bytes of it that lie with
 * the backing alone may be brought later, before anybody reads them.)
 *
 * References are *hot* (tables of slots) or *cold* (tables of parked rollouts). A page lies in one
 * of three tiers, and moves as a whole:
 *
 *   memory   the pool's frames, and with a backing the device's. All hot pages; cold ones while
 *            there is room. Those that several parked tables hold go last, and of the others the
 *            oldest slab of rollout time goes first (engine/learned/pages_cold.c says why).
 *   host     buffers of a fixed number (config.host_max), with a backing the pinned ones among
 *            which copies come and go. Pages that left the device stay here, until it is full: then
 *            the one that has been here longest goes on. Coming back is one copy over the bus.
 *            Without a backing a page that leaves memory would only move within it, so it skips
 *            this tier, which then holds what was read ahead and nothing else.
 *   spill    the caller's, or when there is none or it refuses, a copy on the heap.
 *
 * page_table_prefetch says that a parked table is going to be restored: one thread of the pool's
 * then reads those of its pages that are in the spill into the host tier, where the spill allows
 * it (spill_ops.peek). The spill keeps them until they are used, so changing one's mind costs
 * nothing. Pages wished for in this way are the last to leave the host tier.
 *
 * Restoring a parked table brings its pages back bit for bit, wherever they were; a page that
 * cannot be brought back is *lost*, and the restore says so. What could not be read ahead is read
 * again when it is wanted. Pages of spill and heap carry a digest, which is verified when they come
 * back, read ahead or not; pages of the host tier do not: they never leave this process's memory,
 * which is trusted there as it is for hot pages. Taking a page never fails.
 *
 * One owner calls; where a page lies follows from its calls alone, not from the thread's pace.
 * Breaking the rules of ownership aborts through CHECK.
 */
#ifndef SWERVE_ENGINE_LEARNED_PAGES_H
#define SWERVE_ENGINE_LEARNED_PAGES_H

#include "base/status.h"
#include "engine/learned/spill_ops.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PAGE_TABLE_MAX = 16, PAGE_ALIGN = 64 };

struct page_pool;

/* The part of every page that lies elsewhere, on a device. The pool decides which frame of it a
 * page has; save and load are called when a page leaves memory or comes back. They start a copy and
 * return; whoever uses the frame later on the device sees it done. `wait` returns when all copies
 * are done. False of any of them: the device failed, and what it should have copied is lost.
 *
 * A page whose copy is under way keeps a buffer of `staging`. Copies end at page_pool_settle, or
 * before that when buffers run out or the page is wanted; what left the device is in the host tier
 * then, or with host_max 0 goes on to the spill at once. */
struct page_backing {
    void *context;
    size_t bytes;     /* per page, a multiple of PAGE_ALIGN */
    void *staging;    /* buffers of [page_bytes, rounded up, + bytes], aligned; borrowed */
    uint32_t buffers; /* more than config.host_max: the others are for copies under way */
    /* The pool's part of the page lies before `out` already; what it lacks may be added there. */
    bool (*save)(void *context, uint32_t frame, void *out);
    /* page: the same page as the pool holds it; it lies before `bytes` too. */
    bool (*load)(void *context, uint32_t frame, const void *page, const void *bytes);
    /* Copies so far should begin now, for no others will follow soon. A failure shows in `wait`. */
    void (*start)(void *context);
    bool (*wait)(void *context);
};

struct page_pool_config {
    size_t page_bytes;             /* > 0; rounded up to a multiple of PAGE_ALIGN */
    size_t bytes_max;              /* of pages with their backing; at least hot_max pages */
    uint32_t hot_max;              /* pages with hot references, the ones being written included */
    uint32_t parked_max;           /* pages with cold references */
    uint32_t heap_max;             /* copies on the heap when the spill refuses */
    uint32_t host_max;             /* pages in the host tier; 0: there is none */
    const struct spill_ops *spill; /* borrowed; NULL: none */
    const struct page_backing *backing; /* borrowed; NULL: none */
};

/* Number of pages that fit: frames are numbered below this. 0 when hot_max pages do not. */
uint32_t page_pool_frames(const struct page_pool_config *config);

struct page_stats {
    uint32_t page_count;  /* that exist, wherever they are */
    uint32_t page_peak;   /* most at once */
    uint32_t frame_count; /* of which in the pool's memory .. */
    uint32_t frame_peak;  /* .. most at once, ones that only wait to be wanted included .. */
    uint32_t frame_max;   /* .. and how many have room there */
    uint32_t host_count;  /* in the host tier, or on the way there */
    uint32_t host_max;    /* how many have room there */
    uint32_t ahead_count; /* of these, read ahead (or about to be): in the spill too */
    uint32_t spill_count; /* in the spill now */
    uint32_t heap_count;  /* on the heap now */
    uint64_t shared;      /* pages that forks and shared beginnings did not copy */
    uint64_t out;         /* moves out of the pool's memory */
    uint64_t back;        /* moves back */
    uint64_t ahead;       /* pages asked for ahead */
    uint64_t ahead_used;  /* of these, came back without waiting for the spill */
    uint64_t lost;        /* pages lost so far */
};

enum status page_pool_create(const struct page_pool_config *config, struct page_pool **out,
                             struct error *error);
/* Accepts NULL. Whatever tables still hold is gone; spilled pages are dropped. */
void page_pool_destroy(struct page_pool *pool);
struct page_stats page_pool_stats(const struct page_pool *pool);
/* No other page leaves or comes back for now: copies from and to the backing begin, and may go on
 * in the background. */
void page_pool_start(struct page_pool *pool);
/* Waits for copies from and to the backing, and sends on what is too much in the host tier: to be
 * called where they had time, after a tick. Wishes (page_table_prefetch) hold until then. */
void page_pool_settle(struct page_pool *pool);

/* A new page to write: its one hot reference is the caller's. Contents undefined. `tick` is its
 * rollout's time, which decides nothing but when a cold page leaves memory. */
uint32_t page_take(struct page_pool *pool, uint32_t tick);
/* The bytes of a page that is not committed yet, aligned to PAGE_ALIGN. */
void *page_write(struct page_pool *pool, uint32_t page);
void page_commit(struct page_pool *pool, uint32_t page);
/* The bytes of a committed hot page; valid as long as it stays hot. */
const void *page_read(const struct page_pool *pool, uint32_t page);
/* The same, to bring what of it has been with the backing alone so far. */
void *page_complete(struct page_pool *pool, uint32_t page);
/* The frame of a page in memory, of the pool and of the backing. */
uint32_t page_frame(const struct page_pool *pool, uint32_t page);
/* Names a page for ever, also after its number was given to another one. Never 0. */
uint64_t page_serial(const struct page_pool *pool, uint32_t page);
/* One more hot reference on a committed page, brought back if it must be; false when the page of
 * that serial no longer exists or is lost. */
bool page_share(struct page_pool *pool, uint32_t page, uint64_t serial);
void page_release(struct page_pool *pool, uint32_t page); /* one hot reference */

struct page_table {
    uint32_t count;
    uint32_t page[PAGE_TABLE_MAX]; /* newest first */
};

/* Puts a committed page in front; its hot reference moves into the table. Of more than `limit`
 * pages (1..PAGE_TABLE_MAX) the oldest is released first. */
void page_table_push(struct page_pool *pool, struct page_table *table, uint32_t page,
                     uint32_t limit);
void page_table_fork(struct page_pool *pool, const struct page_table *from, struct page_table *to);
void page_table_release(struct page_pool *pool, struct page_table *table);

/* *to becomes a parked copy of the hot table *from. False, and *to empty, when parked_max forbids.
 */
bool page_table_park(struct page_pool *pool, const struct page_table *from, struct page_table *to);
/* A parked table becomes a hot one. False, and the table released and empty, when a page is lost.
 */
bool page_table_restore(struct page_pool *pool, struct page_table *table);
void page_table_drop(struct page_pool *pool, struct page_table *parked);
/* A parked table is going to be restored: begins to bring its spilled pages into the host tier, in
 * the background. Tables that are wished for first go first: no page takes the place of one that
 * was wished for since the last page_pool_settle. False: no place is left for more, or nothing can
 * be read ahead here; calling again in the same round is of no use. */
bool page_table_prefetch(struct page_pool *pool, const struct page_table *parked);

#endif
