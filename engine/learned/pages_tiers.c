/*
 * Tiers in which pages lie: frames, the host tier's buffers, spill and heap. See pages.h for the
 * rules and pages_internal.h for the invariants.
 *
 * What lies where follows from the owner's calls alone: the reader's thread decides when a page
 * arrives, never which page has a place, so the order in which pages leave is the same every time.
 */
#include "engine/learned/pages_internal.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

/* ---- lists and buffers ---- */

static uint32_t index_of(const struct page_pool *pool, const struct page *page)
{
    return (uint32_t)(page - pool->pages);
}

static uint8_t *buffer_at(const struct page_pool *pool, uint32_t buffer)
{
    return pool->buffers + buffer * page_whole_bytes(&pool->config);
}

static void free_buffer(struct page_pool *pool, uint32_t buffer)
{
    uint32_t end = (pool->free_buffer_first + pool->free_buffer_count++) % pool->buffer_count;
    pool->free_buffers[end] = buffer;
}

static uint32_t first_free_buffer(struct page_pool *pool)
{
    uint32_t buffer = pool->free_buffers[pool->free_buffer_first];
    pool->free_buffer_first = (pool->free_buffer_first + 1) % pool->buffer_count;
    pool->free_buffer_count--;
    return buffer;
}

/* There is a free one. The thread may still be at a cancelled read into one of them, which is taken
 * when there is no other. */
static uint32_t next_buffer(struct page_pool *pool)
{
    CHECK(pool->free_buffer_count > 0);
    uint32_t buffer = first_free_buffer(pool);
    if (pool->read_ahead == NULL) {
        return buffer;
    }
    if (pool->free_buffer_count > 0 && !read_ahead_idle(pool->read_ahead, buffer)) {
        free_buffer(pool, buffer);
        buffer = first_free_buffer(pool);
    }
    read_ahead_wait(pool->read_ahead, buffer);
    return buffer;
}

/* ---- init and finish ---- */

enum status page_tiers_init(struct page_pool *pool, struct error *error)
{
    struct page_pool_config *config = &pool->config;
    const struct page_backing *backing = config->backing;
    size_t bytes = page_whole_bytes(config);
    bool reads = config->host_max > 0 && config->spill != NULL && config->spill->peek != NULL;
    if (backing == NULL && !reads) {
        config->host_max = 0; /* its only use would be reading ahead */
    }
    pool->buffer_count = backing != NULL ? backing->buffers : config->host_max;
    if (pool->buffer_count == 0) {
        return STATUS_OK;
    }
    pool->free_buffers = calloc(pool->buffer_count, sizeof *pool->free_buffers);
    pool->busy = calloc(pool->buffer_count, sizeof *pool->busy);
    pool->leaving = calloc(pool->buffer_count, sizeof *pool->leaving);
    if (backing == NULL) {
        /* As the pool's memory, untouched until used. */
        pool->own_buffers = aligned_alloc(PAGE_ALIGN, pool->buffer_count * bytes);
    }
    pool->buffers = backing != NULL ? backing->staging : pool->own_buffers;
    if (pool->free_buffers == NULL || pool->busy == NULL || pool->leaving == NULL ||
        pool->buffers == NULL) {
        return error_set(error, STATUS_NO_MEMORY,
                         "page pool: no memory for %u buffers of %zu bytes", pool->buffer_count,
                         bytes);
    }
    for (uint32_t i = 0; i < pool->buffer_count; i++) {
        free_buffer(pool, i);
    }
    return reads ? read_ahead_create(config->spill, pool->buffers, bytes, pool->buffer_count,
                                     &pool->read_ahead, error)
                 : STATUS_OK;
}

void page_tiers_finish(struct page_pool *pool)
{
    read_ahead_destroy(pool->read_ahead);
    pool->read_ahead = NULL;
    for (uint32_t i = 0; pool->pages != NULL && i < pool->record_count; i++) {
        page_tiers_forget(pool, i);
    }
    free(pool->own_buffers);
    free(pool->free_buffers);
    free(pool->busy);
    free(pool->leaving);
}

/* ---- out of memory ---- */

static void lose(struct page_pool *pool, struct page *page)
{
    page->state = PAGE_LOST;
    pool->stats.lost++;
}

/* Keeps a copy of `data`, the page in one piece: in the spill, else on the heap. */
static bool keep_copy(struct page_pool *pool, struct page *page, const uint8_t *data)
{
    const struct spill_ops *spill = pool->config.spill;
    const size_t bytes = page_whole_bytes(&pool->config);
    page->digest = page_digest(data, bytes);
    page->handle = spill != NULL ? spill->write(spill->context, data, bytes) : 0;
    if (page->handle != 0) {
        page->state = PAGE_SPILLED;
        pool->stats.spill_count++;
        return true;
    }
    page->copy = pool->stats.heap_count < pool->config.heap_max ? malloc(bytes) : NULL;
    if (page->copy == NULL) {
        lose(pool, page);
        return false;
    }
    memcpy(page->copy, data, bytes);
    page->state = PAGE_HEAP;
    pool->stats.heap_count++;
    return true;
}

/* Takes a page out of the host tier. What was read ahead is in the spill anyway. */
static void send_on(struct page_pool *pool, uint32_t index)
{
    struct page *page = &pool->pages[index];
    page_list_remove(pool, &pool->host, index);
    if (page->state == PAGE_AHEAD) {
        read_ahead_cancel(pool->read_ahead, page->buffer);
        page->state = PAGE_SPILLED;
        pool->stats.ahead_count--;
    } else {
        keep_copy(pool, page, buffer_at(pool, page->buffer));
    }
    free_buffer(pool, page->buffer);
}

/* The page of the host tier that has been there longest among those that nobody wished for in this
 * round; PAGE_NONE when all are wished for or on their way to a restored table. */
static uint32_t unwished(const struct page_pool *pool)
{
    uint32_t index = pool->host.oldest;
    while (index != PAGE_NONE &&
           (pool->pages[index].wished == pool->round || pool->pages[index].hot > 0)) {
        index = pool->pages[index].next;
    }
    return index;
}

/* The one that goes when the tier is full: wishes come second. */
static uint32_t host_victim(const struct page_pool *pool)
{
    uint32_t index = unwished(pool);
    for (uint32_t i = pool->host.oldest; index == PAGE_NONE && i != PAGE_NONE;
         i = pool->pages[i].next) {
        index = pool->pages[i].hot == 0 ? i : PAGE_NONE;
    }
    return index;
}

/* Ends all copies. Pages that have left are in the host tier then, and what is too much there goes
 * on; those which a restore is about to bring back stay. */
static void drain(struct page_pool *pool)
{
    const struct page_backing *backing = pool->config.backing;
    bool good = pool->busy_count == 0 || backing->wait(backing->context);
    for (uint32_t i = 0; i < pool->busy_count; i++) {
        uint32_t buffer = pool->busy[i];
        uint32_t index = pool->leaving[buffer];
        if (index != PAGE_NONE && good) {
            pool->pages[index].state = PAGE_HOST;
            page_list_append(pool, &pool->host, index);
            pool->stats.out++;
            continue;
        }
        free_buffer(pool, buffer); /* came in, or nobody wants it any more, or the device failed */
        if (index != PAGE_NONE) {
            lose(pool, &pool->pages[index]);
        }
    }
    pool->busy_count = 0;
    while (pool->host.count > pool->config.host_max) {
        uint32_t index = host_victim(pool);
        if (index == PAGE_NONE) {
            break;
        }
        send_on(pool, index);
    }
}

void page_pool_start(struct page_pool *pool)
{
    if (pool->busy_count > 0) {
        pool->config.backing->start(pool->config.backing->context);
    }
}

void page_pool_settle(struct page_pool *pool)
{
    drain(pool);
    pool->round++;
}

static uint32_t take_buffer(struct page_pool *pool)
{
    if (pool->free_buffer_count == 0) {
        drain(pool);
    }
    if (pool->free_buffer_count == 0) {
        send_on(pool, pool->host.oldest); /* a large table comes back through few buffers */
    }
    return next_buffer(pool);
}

static void make_busy(struct page_pool *pool, uint32_t buffer, uint32_t leaving)
{
    pool->leaving[buffer] = leaving;
    pool->busy[pool->busy_count++] = buffer;
}

/* The page's frame is free at once: the device orders what comes next behind the copy. */
static void start_leaving(struct page_pool *pool, uint32_t index)
{
    const struct page_backing *backing = pool->config.backing;
    struct page *page = &pool->pages[index];
    uint32_t buffer = take_buffer(pool);
    uint8_t *data = buffer_at(pool, buffer);
    memcpy(data, page_frame_at(pool, page->frame), pool->config.page_bytes);
    if (backing->save(backing->context, page->frame, data + pool->config.page_bytes)) {
        page->state = PAGE_LEAVING;
        page->buffer = buffer;
        make_busy(pool, buffer, index);
    } else {
        lose(pool, page);
        make_busy(pool, buffer, PAGE_NONE);
    }
}

/* Moves the first of the cold pages out of memory; returns the frame it had. */
static uint32_t evict(struct page_pool *pool)
{
    uint32_t index = page_cold_first(pool);
    CHECK(index != PAGE_NONE); /* else more pages are hot than the pool was sized for */
    struct page *page = &pool->pages[index];
    page_cold_remove(pool, index);
    if (pool->config.backing != NULL) {
        start_leaving(pool, index);
    } else {
        pool->stats.out += keep_copy(pool, page, page_frame_at(pool, page->frame));
    }
    return page->frame;
}

uint32_t page_tiers_frame(struct page_pool *pool)
{
    uint32_t frame =
        pool->free_frame_count > 0 ? pool->free_frames[--pool->free_frame_count] : evict(pool);
    uint32_t used = pool->frame_count - pool->free_frame_count;
    pool->stats.frame_peak = used > pool->stats.frame_peak ? used : pool->stats.frame_peak;
    return frame;
}

/* ---- back ---- */

static void drop_record(struct page_pool *pool, const struct page *page)
{
    pool->config.spill->drop(pool->config.spill->context, page->handle);
    pool->stats.spill_count--;
}

/* Of spill or heap, in one piece, into `data`. */
static bool fetch_copy(struct page_pool *pool, struct page *page, uint8_t *data)
{
    const struct spill_ops *spill = pool->config.spill;
    const size_t bytes = page_whole_bytes(&pool->config);
    bool read = true;
    if (page->state == PAGE_SPILLED) {
        read = spill->read(spill->context, page->handle, data, bytes);
        if (read) {
            pool->stats.spill_count--;
        } else {
            drop_record(pool, page);
        }
    } else {
        memcpy(data, page->copy, bytes);
        free(page->copy);
        pool->stats.heap_count--;
    }
    return read && page_digest(data, bytes) == page->digest;
}

/* Ends a read ahead, good or bad. What could not be read is asked for again, so that only a page
 * that cannot be read when it is wanted is lost. */
static void finish_ahead(struct page_pool *pool, struct page *page)
{
    pool->stats.ahead_count--;
    if (read_ahead_finish(pool->read_ahead, page->buffer)) {
        drop_record(pool, page);
        page->state = PAGE_HOST;
        pool->stats.ahead_used++;
    } else {
        page_list_remove(pool, &pool->host, index_of(pool, page));
        free_buffer(pool, page->buffer);
        page->state = PAGE_SPILLED;
    }
}

/* Into a frame, from wherever the page is; false: lost. */
static bool fetch(struct page_pool *pool, struct page *page, uint32_t frame)
{
    const struct page_backing *backing = pool->config.backing;
    uint8_t *home = page_frame_at(pool, frame);
    uint32_t buffer = PAGE_NONE;
    bool good = true;
    if (page->state == PAGE_AHEAD) {
        finish_ahead(pool, page);
    }
    if (page->state == PAGE_HOST) {
        page_list_remove(pool, &pool->host, index_of(pool, page));
        buffer = page->buffer;
    } else {
        buffer = backing != NULL ? take_buffer(pool) : PAGE_NONE;
        good = fetch_copy(pool, page, buffer != PAGE_NONE ? buffer_at(pool, buffer) : home);
    }
    if (buffer == PAGE_NONE) {
        return good;
    }
    const uint8_t *data = buffer_at(pool, buffer);
    if (good) {
        memcpy(home, data, pool->config.page_bytes);
    }
    if (backing == NULL) {
        free_buffer(pool, buffer);
        return good;
    }
    good = good && backing->load(backing->context, frame, home, data + pool->config.page_bytes);
    make_busy(pool, buffer, PAGE_NONE);
    return good;
}

void page_tiers_bring_back(struct page_pool *pool, struct page *page)
{
    if (page->state == PAGE_LEAVING) {
        drain(pool);
    }
    if (page->state == PAGE_MEMORY || page->state == PAGE_LOST) {
        return;
    }
    uint32_t frame = page_tiers_frame(pool); /* may send this very page on */
    if (page->state != PAGE_LOST && fetch(pool, page, frame)) {
        page->state = PAGE_MEMORY;
        page->frame = frame;
        pool->stats.back++;
        return;
    }
    pool->free_frames[pool->free_frame_count++] = frame;
    if (page->state != PAGE_LOST) {
        lose(pool, page);
    }
}

void page_tiers_forget(struct page_pool *pool, uint32_t index)
{
    struct page *page = &pool->pages[index];
    if (page->state == PAGE_SPILLED || page->state == PAGE_AHEAD) {
        drop_record(pool, page);
    } else if (page->state == PAGE_HEAP) {
        free(page->copy);
        pool->stats.heap_count--;
    } else if (page->state == PAGE_LEAVING) {
        pool->leaving[page->buffer] = PAGE_NONE;
    }
    if (page->state == PAGE_AHEAD) {
        pool->stats.ahead_count--;
        if (pool->read_ahead != NULL) {
            read_ahead_cancel(pool->read_ahead, page->buffer);
        }
    }
    if (page->state == PAGE_HOST || page->state == PAGE_AHEAD) {
        page_list_remove(pool, &pool->host, index);
        free_buffer(pool, page->buffer);
    }
}

/* ---- ahead ---- */

/* False when the host tier has no place for it now. */
static bool start_ahead(struct page_pool *pool, uint32_t index)
{
    struct page *page = &pool->pages[index];
    if (pool->host.count >= pool->config.host_max) {
        uint32_t victim = unwished(pool);
        if (victim == PAGE_NONE) {
            return false;
        }
        send_on(pool, victim);
    }
    if (pool->free_buffer_count == 0) {
        return false; /* all are busy: waiting would cost what reading ahead saves */
    }
    page->buffer = next_buffer(pool);
    page->state = PAGE_AHEAD;
    pool->stats.ahead_count++;
    page_list_append(pool, &pool->host, index);
    pool->stats.ahead++;
    read_ahead_start(pool->read_ahead, page->buffer, page->handle, page->digest);
    return true;
}

bool page_table_prefetch(struct page_pool *pool, const struct page_table *parked)
{
    if (pool->read_ahead == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < parked->count; i++) {
        struct page *page = &pool->pages[parked->page[i]];
        CHECK(page->cold > 0);
        page->wished = pool->round;
        if (page->state == PAGE_SPILLED && !start_ahead(pool, parked->page[i])) {
            return false;
        }
    }
    return true;
}

uint32_t page_tiers_leaving(const struct page_pool *pool)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < pool->busy_count; i++) {
        count += pool->leaving[pool->busy[i]] != PAGE_NONE;
    }
    return count;
}
