/*
 * Reading the audit log. See log.h.
 */
#include "store/keep/log.h"

#include "store/sqlite/check_internal.h"
#include "store/sqlite/sqlite_store.h"

static void found_silent(void *context, const struct store_check_finding *finding)
{
    (void)context;
    (void)finding;
}

enum status keep_log(const char *store_path, int64_t after_id, int64_t wait_ms,
                     enum status (*visit)(void *context, const struct store_audit *entry,
                                          struct error *error),
                     void *context, struct error *error)
{
    struct store_check_summary unused = {.faults = 0};
    const struct store_check_options quiet = {.wait_ms = wait_ms, .found = found_silent};
    struct check check = {.options = &quiet, .summary = &unused, .path = store_path};
    struct store_audit entry;
    struct error why;
    enum status status = check_begin(&check, error);

    if (status == STATUS_OK) {
        struct query query = query_begin(check.db, STATEMENT_AUDIT_PAGE);
        query_int(&query, after_id);
        query_int(&query, AUDIT_ROWS_MAX);
        while (status == STATUS_OK && query_row(&query)) {
            audit_row(&query, &entry);
            status = visit(context, &entry, error);
        }
        enum status ended = query_end(&query, &why);
        if (status == STATUS_OK && ended != STATUS_OK) {
            *error = why;
            status = ended;
        }
    }
    db_close(check.db);
    return status;
}
