/*
 * Pages of labels. See label_pages.h.
 */
#include "store/api/label_pages.h"

#include <stdlib.h>

enum { PAGE = 100 };

enum status labels_each(struct store *store, enum label_kind kind, label_visit *visit,
                        void *context, struct error *error)
{
    struct label *page = calloc(PAGE, sizeof *page);
    uint32_t count = PAGE;
    int64_t after = 0;
    TRY(memory_check(page, error, "labels: out of memory"));
    enum status status = STATUS_OK;
    while (status == STATUS_OK && count == PAGE) {
        status =
            store->ops->labels(store, label_kind_names[kind], after, page, PAGE, &count, error);
        for (uint32_t i = 0; status == STATUS_OK && i < count; i++) {
            after = page[i].id;
            status = visit(context, &page[i], error);
        }
    }
    free(page);
    return status;
}
