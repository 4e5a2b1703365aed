/*
 * Outcomes of a store one by one, read page by page. See store.h.
 */
#include "store/api/store.h"

#include <stdio.h>
#include <stdlib.h>

enum { PAGE_OUTCOMES = 1000, OUTCOMES_MAX = 100000000 };

enum status store_outcomes_each(struct store *store, const char *suite_id, store_visit *visit,
                                void *context, struct error *error)
{
    struct store_outcome_filter filter = {.limit = PAGE_OUTCOMES};
    struct outcome *page = calloc(PAGE_OUTCOMES, sizeof *page);
    uint32_t count = PAGE_OUTCOMES;
    int64_t visited = 0; /* ids ascend, but a hostile server has 2^63 of them */
    enum status status = memory_check(page, error, "out of memory for a page of outcomes");
    snprintf(filter.suite_id, sizeof filter.suite_id, "%s", suite_id != NULL ? suite_id : "");
    while (status == STATUS_OK && count > 0) {
        status = store->ops->outcomes(store, &filter, page, &count, error);
        if (status == STATUS_OK && (visited += count) > OUTCOMES_MAX) {
            status = error_set(error, STATUS_LIMIT, "outcomes: more than %d", OUTCOMES_MAX);
        }
        for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
            status = visit(context, &page[i], error);
            filter.after_id = page[i].id;
        }
    }
    free(page);
    return status;
}
