/*
 * Outcomes of a store one by one, read page by page: while one page is looked at, a thread reads
 * the next. And scenarios of its jobs. See store.h.
 */
#include "store/api/store.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { PAGE_OUTCOMES = 1000, OUTCOMES_MAX = 100000000 };

struct page {
    struct store *store;
    struct store_outcome_filter filter;
    uint32_t count;
    enum status status;
    struct error error;
    bool ahead; /* a thread is reading it */
    pthread_t thread;
    struct outcome outcomes[PAGE_OUTCOMES];
};

static void *page_read(void *context)
{
    struct page *page = context;
    page->status = page->store->ops->outcomes(page->store, &page->filter, page->outcomes,
                                              &page->count, &page->error);
    return NULL;
}

/* Begins to read what follows `before`: beside the caller where that page was full and there is a
 * thread to be had. */
static void page_begin(struct page *page, const struct page *before)
{
    page->filter.after_id = before->outcomes[before->count - 1].id;
    page->ahead =
        before->count == PAGE_OUTCOMES && pthread_create(&page->thread, NULL, page_read, page) == 0;
}

static void page_end(struct page *page)
{
    if (page->ahead) {
        pthread_join(page->thread, NULL);
        page->ahead = false;
    } else {
        page_read(page);
    }
}

static enum status visit_pages(struct page *now, struct page *next, store_visit *visit,
                               void *context, struct error *error)
{
    int64_t visited = 0; /* ids ascend, but a hostile server has 2^63 of them */
    page_read(now);
    while (now->status == STATUS_OK && now->count > 0) {
        enum status status = STATUS_OK;
        if ((visited += now->count) > OUTCOMES_MAX) {
            return error_set(error, STATUS_LIMIT, "outcomes: more than %d", OUTCOMES_MAX);
        }
        page_begin(next, now);
        for (uint32_t i = 0; status == STATUS_OK && i < now->count; i++) {
            status = visit(context, &now->outcomes[i], error);
        }
        if (status != STATUS_OK) {
            if (next->ahead) {
                page_end(next);
            }
            return status;
        }
        page_end(next);
        struct page *read = next;
        next = now;
        now = read;
    }
    if (now->status != STATUS_OK && error != NULL) {
        *error = now->error;
    }
    return now->status;
}

enum status store_outcomes_each(struct store *store, const char *suite_id, store_visit *visit,
                                void *context, struct error *error)
{
    struct page *pages = calloc(2, sizeof *pages);
    TRY(memory_check(pages, error, "out of memory for a page of outcomes"));
    for (int i = 0; i < 2; i++) {
        pages[i].store = store;
        pages[i].filter.limit = PAGE_OUTCOMES;
        snprintf(pages[i].filter.suite_id, sizeof pages[i].filter.suite_id, "%s",
                 suite_id != NULL ? suite_id : "");
    }
    enum status status = visit_pages(&pages[0], &pages[1], visit, context, error);
    free(pages);
    return status;
}

enum status store_scenarios_each(struct store *store, const char *suite_id,
                                 store_scenario_visit *visit, void *context, struct error *error)
{
    int64_t after = 0;
    int64_t before;
    do {
        before = after;
        TRY(store->ops->scenarios_page(store, suite_id, &after, visit, context, error));
    } while (after > before);
    return STATUS_OK;
}

enum status store_redrives(struct store *store, int64_t *count, struct error *error)
{
    enum status status = STATUS_NOT_FOUND; /* as a server of an earlier version answers */
    *count = 0;
    if (store->ops->redrives != NULL) {
        status = store->ops->redrives(store, count, error);
    }
    return status == STATUS_NOT_FOUND ? STATUS_OK : status;
}
